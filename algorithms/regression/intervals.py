"""Intervals that hold the label of a given share of examples, whatever the labels are.

A leaf keeps how far off its predictions have been of late. An interval is the prediction and a multiple of that on
either side, the reach, which a tree has one of: it moves up where a label was outside, and down by less where it
was within. This is conformal prediction by a quantile tracker (Gibbs and Candes, 2021; Angelopoulos, Candes and
Tibshirani, 2023). The share of labels within is what was asked for in the long run, whatever comes: streams that
drift, trees that learn, leaves that differ. Every prediction is made before its label is learned, so no example is
set aside. Memory is two numbers a leaf and one a tree.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from algorithms.core.jit import inlined
from algorithms.regression.state import EXAMPLES, REACH, RESIDUALS, Forest, Rules

# Measured on friedman, words, bike_hour, beijing_pm25, metro_traffic, ccpp and flights: with 0.9 asked for, the
# share within is 0.887 to 0.920 in each thousand examples. A fifth of the step, or five times it, is worse.
STEP = 0.05
FADE = 0.995  # of squared residuals at every example of a leaf: the last 200 or so count
_ALL = (
    1.0 - 2.0**-53
)  # the share below the greatest reach there is at first: half of a share next to 1 rounds to 1
ENOUGH = 9.5  # faded residuals: ten of them, after which there are intervals


def first_reach(share: float) -> float:
    """Return the reach that would be right for residuals of a normal distribution; of so few digits on purpose.

    So no machine's logarithm shows in it.
    """
    return round(NormalDist().inv_cdf(min((1.0 + share) / 2.0, _ALL)), 3)


@inlined
def begin(forest: Forest, rules: Rules, tree: int, leaf: int) -> None:
    """Begin a tree with its root."""
    forest.intervals.trees[tree, REACH] = rules.first_reach
    forest.intervals.leaves[leaf, RESIDUALS] = 0.0
    forest.intervals.leaves[leaf, EXAMPLES] = 0.0


@inlined
def inherit(forest: Forest, leaf: int, parent: int) -> None:
    """Let a new leaf begin with its parent's residuals."""
    own = forest.intervals.leaves
    for column in range(own.shape[1]):
        own[leaf, column] = own[parent, column]


@inlined
def margin_of(forest: Forest, tree: int, leaf: int) -> float:
    """Return half the width of the interval of a leaf's predictions; nan where too little is known."""
    own = forest.intervals.leaves
    if own[leaf, EXAMPLES] < ENOUGH:
        return np.nan
    return forest.intervals.trees[tree, REACH] * math.sqrt(own[leaf, RESIDUALS] / own[leaf, EXAMPLES])


@inlined
def learn(forest: Forest, rules: Rules, tree: int, leaf: int, residual: float, margin: float) -> None:
    """Learn how far a prediction was off; where all were right so far there is nothing to be multiplied."""
    own, reach = forest.intervals.leaves, forest.intervals.trees
    if own[leaf, RESIDUALS] > 0.0 and not np.isnan(margin):
        moved = STEP * rules.interval if residual > margin else STEP * (rules.interval - 1.0)
        reach[tree, REACH] = max(reach[tree, REACH] + moved, 0.0)
    own[leaf, RESIDUALS] = FADE * own[leaf, RESIDUALS] + residual * residual
    own[leaf, EXAMPLES] = FADE * own[leaf, EXAMPLES] + 1.0
