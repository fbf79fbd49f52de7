"""OSM: after an attempt that failed a leaf predicts when the next can succeed, and waits so long.

Losing, Wersing, Hammer, "Enhancing very fast decision trees with local split-time predictions", 2018: suppose
that x examples come, all of the majority class, into the purest branch of the best feature, while the second best
stays as it is; the next attempt is due where the difference first exceeds the bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Int64s, extended
from algorithms.core.events import Batch
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import NOMINAL, is_number
from algorithms.core.rows import COUNT, NEXT, NONE
from algorithms.core.stored import stored
from algorithms.trees import gain
from algorithms.trees.bounds import examples, leaf_bound, margin
from algorithms.trees.nodes import SEEN, WEIGHT
from algorithms.trees.observers import KIND, PART
from algorithms.trees.state import Choice, Forest, Rules
from algorithms.trees.theorems import step

_LONGEST = 100_000  # examples to wait at most
_HEAVIEST = (1 << 61) // _LONGEST  # units that so many of them may weigh each: with a leaf's 2^62 below 2^63


@stored("next")
class Osm(NamedTuple):
    """When each leaf tries again."""

    next: Int64s  # int64[nodes], how many examples the leaf must have seen; 0: not decided yet


@inlined
def begin(policy: Osm, leaf: int) -> None:
    """Start a leaf that has seen nothing."""
    policy.next[leaf] = 0


@inlined
def due(policy: Osm, forest: Forest, rules: Rules, batch: Batch, event: int, leaf: int) -> bool:
    """Return whether the leaf has waited long enough; a pure one then waits for n_min more."""
    seen = forest.nodes.links[leaf, SEEN]
    if seen < max(policy.next[leaf], rules.grace_period):
        return False
    policy.next[leaf] = seen + rules.grace_period
    return True


@jit
def _purest(forest: Forest, leaf: int, choice: Choice) -> tuple[int, int, float]:
    """Return weight, weight of the majority class and sum of squares of the purest branch of a choice.

    Purest is where the majority's share is greatest, of equal ones the first: branch 0, then 1 or the categories
    from the newest to the oldest.
    """
    features = forest.features
    cells = forest.nodes.rows.cells
    kind = features.about[choice.row, KIND]
    value = features.about[choice.row, PART]
    weight = cells[leaf, COUNT] * 0
    majority = cells[leaf, COUNT] * 0
    squares = 0.0
    share = -1.0
    branch = 0
    while True:
        total = cells[leaf, COUNT] * 0
        most = cells[leaf, COUNT] * 0
        sum_of_squares = 0.0
        for k in range(cells.shape[1] - COUNT):
            if branch > 0 and kind == NOMINAL:
                count = features.values.cells[value, COUNT + k]
            else:
                above = features.rows.cells[choice.row, COUNT + k]
                if is_number(kind):
                    above = gain.weight_above(features, forest.nodes, leaf, choice.row, k, choice.threshold)
                count = above if branch > 0 else cells[leaf, COUNT + k] - above
            total += count
            most = max(most, count)
            sum_of_squares += (count * PER_UNIT) * (count * PER_UNIT)
        if total > 0 and most / total > share:
            share = most / total
            weight = total
            majority = most
            squares = sum_of_squares
        if branch > 0 and kind == NOMINAL:
            value = features.values.cells[value, NEXT]
        branch += 1
        if (value == NONE) if kind == NOMINAL else branch == 2:
            return weight, majority, squares


@jit
def _exceeds(
    forest: Forest, rules: Rules, leaf: int, choice: Choice, x: int, purest: tuple[int, int, float]
) -> bool:
    """Return whether after x more examples the best would be better than the second by more than the bound."""
    links = forest.nodes.links
    weight = links[leaf, WEIGHT]
    more = x * max(min(weight // links[leaf, SEEN], _HEAVIEST), 1)  # of the usual weight
    score = choice.score
    if x > 0:
        score += step(forest.criterion, purest[0], purest[1], purest[2], more)
    gap = choice.second / (weight * PER_UNIT) - score / ((weight + more) * PER_UNIT)
    return gap > margin(forest.nodes, rules, leaf, x)


@jit
def failed(policy: Osm, forest: Forest, rules: Rules, leaf: int, choice: Choice) -> None:
    """Predict when the next attempt can succeed. O(log of the longest wait)."""
    if choice.row == NONE:
        return  # nothing is better than no split: ask again after n_min
    purest = _purest(forest, leaf, choice)
    low = 0
    high = _LONGEST
    while high - low > 1:
        middle = (low + high) >> 1
        if _exceeds(forest, rules, leaf, choice, middle, purest):
            high = middle
        else:
            low = middle
    wait = max(high, rules.grace_period)
    enough = rules.tie_threshold * rules.tie_threshold
    now = examples(forest.nodes, leaf, rules.inherit)
    bound = leaf_bound(forest.nodes, rules, leaf)
    if bound < enough * (now + (wait + 1)):  # else the wait is the shorter one, and the quotient has no bound
        # After so many more examples the bound is below tau, and a tie is split.
        wait = min(wait, max(1, math.floor(bound / enough - now) + 1))
    policy.next[leaf] = forest.nodes.links[leaf, SEEN] + wait


def make(nodes: int, features: int, classes: int, candidates: int) -> Osm:
    """Make the policy."""
    return Osm(np.zeros(nodes, np.int64))


def grown(policy: Osm, nodes: int) -> Osm:
    """Return the policy with room for more nodes."""
    return Osm(extended(policy.next, nodes))


def check(policy: Osm, forest: Forest, leaves: list[int]) -> None:
    """Raise AssertionError unless the policy's state is right."""
    assert ((policy.next[leaves] == 0) | (policy.next[leaves] > forest.nodes.links[leaves, SEEN])).all()
