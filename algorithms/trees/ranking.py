"""An attempt to split: all features of a leaf are scored, and the best and the second best compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import int64
from algorithms.core.class_sums import noise
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY
from algorithms.core.names import Names, precedes
from algorithms.core.rows import NEXT, NONE
from algorithms.trees.bounds import margin
from algorithms.trees.gain import feature_score, impurity, most_gain
from algorithms.trees.nodes import OBSERVED, WEIGHT, Nodes
from algorithms.trees.observers import KIND, Features
from algorithms.trees.state import Choice, Rules

_ROUNDED_UP = 1.0 + 1e-9  # a bound times this is one, whatever its rounding


@inlined
def beats(features: Features, names: Names, row: int, score: float, best: int, best_score: float) -> bool:
    """Return whether a feature comes before another: by score, then by the order of features."""
    if best == NONE or score < best_score:
        return True
    return score == best_score and precedes(
        names, rows.item_of(features.rows, row), rows.item_of(features.rows, best)
    )


@jit
def rank(nodes: Nodes, features: Features, names: Names, criterion: Any, leaf: int, noted: bool) -> Choice:
    """Score the features of a leaf and return the best. O(features of the leaf, times classes and values).

    To leave the leaf whole is a split like any other, with the impurity of the leaf as its score; a gain within
    the error of rounding does not beat it. `noted` says that the gains of all features are to be kept; else binary
    ones that surely come after the second are not scored, which in text leaves out nearly all.
    """
    weight = nodes.links[leaf, WEIGHT]
    whole = impurity(criterion, nodes.rows, leaf)
    least_gain = noise(weight, nodes.prior.shape[1])
    best = int64(NONE)
    best_score = np.inf
    second = np.inf
    best_threshold = 0.0
    row = nodes.links[leaf, OBSERVED]
    while row != NONE:
        if not noted and features.about[row, KIND] == BINARY:
            enough = whole - max(best_score, min(second, whole)) - 2.0 * least_gain
            if most_gain(criterion, nodes.rows, leaf, features.rows, row) * _ROUNDED_UP < enough:
                row = features.rows.cells[row, NEXT]
                continue
        score, threshold = feature_score(criterion, features, nodes, leaf, row)
        if noted:
            features.gain[row] = -score / (weight * PER_UNIT)
        if score < np.inf and beats(features, names, row, score, best, best_score):
            second = best_score
            best = row
            best_score = score
            best_threshold = threshold
        else:
            second = min(second, score)
        row = features.rows.cells[row, NEXT]
    if not best_score < whole - least_gain:
        return Choice(int64(NONE), whole, best_score, 0.0)
    return Choice(best, best_score, min(second, whole), best_threshold)


@inlined
def is_sure(nodes: Nodes, rules: Rules, leaf: int, score: float, second: float) -> bool:
    """Return whether the best split is the best for good, or so near a tie that it does not matter."""
    bound = margin(nodes, rules, leaf, 0)
    return (second - score) / (nodes.links[leaf, WEIGHT] * PER_UNIT) > bound or bound < rules.tie_threshold
