"""The score of a split with any number of classes and branches: the sum of its branches' impurities."""

from __future__ import annotations

import numpy as np

from algorithms.core.arrays import Int64s
from algorithms.core.class_sums import added, closed
from algorithms.core.criteria import Criterion, by_criterion
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY, NUMERIC, QUANTISED
from algorithms.core.rows import COUNT, NEXT, NONE, Rows
from algorithms.trees import gaussians, quantised
from algorithms.trees.gaussians import CANDIDATES
from algorithms.trees.nodes import Nodes
from algorithms.trees.observers import KIND, PART, POOR, Features
from algorithms.trees.quantised import FIRST

_LOG2_E = 1.4426950408889634  # 1 / ln 2, written out: the logarithms of machines differ


@inlined
def _entropy_reach(criterion: Criterion, squares: float, count: int, total: int) -> float:  # noqa: ARG001
    return squares * (total / count) * _LOG2_E


@inlined
def _gini_reach(criterion: Criterion, squares: float, count: int, total: int) -> float:  # noqa: ARG001
    return squares


_reach = by_criterion(
    "Return what a class adds to `most_gain`: `squares` is how far its weight where a feature is present is from "
    "what its share of all would be, squared, `count` its weight and `total` that of all.",
    entropy=_entropy_reach,
    gini=_gini_reach,
)


@jit
def most_gain(criterion: Criterion, whole: Rows, node: int, part: Rows, row: int) -> float:
    """Return what dividing a node into a part and the rest gains at most: no logarithm, O(classes).

    Entropy: n I = sum_b n_b KL(p_b || p), and KL in nats is at most chi-squared, so it is Pearson's statistic of
    the table of branches and classes, in bits: near independence twice the gain. For Gini it is the gain.
    """
    total = 0.0
    weight = 0.0
    for k in range(whole.cells.shape[1] - COUNT):
        total += whole.cells[node, COUNT + k]
        weight += part.cells[row, COUNT + k]
    if not 0.0 < weight < total:
        return 0.0
    share = weight / total
    most = 0.0
    for k in range(whole.cells.shape[1] - COUNT):
        count = whole.cells[node, COUNT + k]
        if count > 0:
            apart = part.cells[row, COUNT + k] - count * share
            most += _reach(criterion, apart * apart, count, total)
    return most / (share * (total - weight)) * PER_UNIT


@jit
def impurity(criterion: Criterion, rows: Rows, row: int) -> float:
    """Return weight times impurity of a row's classes."""
    total = rows.cells[row, COUNT] * 0
    so_far = 0.0
    for k in range(rows.cells.shape[1] - COUNT):
        so_far = added(criterion, so_far, total, rows.cells[row, COUNT + k])
        total += rows.cells[row, COUNT + k]
    return closed(criterion, so_far, total)


@jit
def _rest(criterion: Criterion, whole: Rows, node: int, part: Rows, row: int) -> tuple[float, int]:
    """Return weight times impurity of a node without a part of it, and the weight."""
    total = whole.cells[node, COUNT] * 0
    so_far = 0.0
    for k in range(whole.cells.shape[1] - COUNT):
        count = whole.cells[node, COUNT + k] - part.cells[row, COUNT + k]
        so_far = added(criterion, so_far, total, count)
        total += count
    return closed(criterion, so_far, total), total


@jit
def weight_above(features: Features, nodes: Nodes, leaf: int, row: int, k: int, threshold: float) -> int:
    """Return the weight of class k whose value of a feature is above a threshold. Zeros are exact, and slots."""
    present = features.rows.cells[row, COUNT + k]
    if features.about[row, KIND] == QUANTISED:
        above = quantised.above(features.values, features.quantised, row, k, threshold)
    else:
        above = present - gaussians.below(features.gaussians, features.about[row, PART], k, present, threshold)
    return above if threshold >= 0.0 else above + nodes.rows.cells[leaf, COUNT + k] - present


@jit
def _threshold_score(
    criterion: Criterion, features: Features, nodes: Nodes, leaf: int, row: int, threshold: float
) -> float:
    """Return the score of a threshold, inf where it leaves a side empty."""
    low = nodes.rows.cells[leaf, COUNT] * 0
    high = nodes.rows.cells[leaf, COUNT] * 0
    low_so_far = 0.0
    high_so_far = 0.0
    for k in range(nodes.rows.cells.shape[1] - COUNT):
        above = weight_above(features, nodes, leaf, row, k, threshold)
        below = nodes.rows.cells[leaf, COUNT + k] - above
        low_so_far = added(criterion, low_so_far, low, below)
        high_so_far = added(criterion, high_so_far, high, above)
        low += below
        high += above
    if low == 0 or high == 0:
        return np.inf
    return closed(criterion, low_so_far, low) + closed(criterion, high_so_far, high)


@jit
def _numeric_score(
    criterion: Criterion, features: Features, nodes: Nodes, leaf: int, row: int
) -> tuple[float, float]:
    """Return the score of the best of ten thresholds, the lowest of equal ones, and that threshold."""
    least, most = gaussians.extremes(features.gaussians, features.about[row, PART])
    if _rest(criterion, nodes.rows, leaf, features.rows, row)[1] > 0:
        least = min(least, 0.0)
        most = max(most, 0.0)
    best = np.inf
    best_threshold = 0.0
    step = (most - least) / (CANDIDATES + 1)
    for k in range(CANDIDATES):
        threshold = least + step * (k + 1)
        if least <= threshold < most:
            score = _threshold_score(criterion, features, nodes, leaf, row, threshold)
            if score < best:
                best = score
                best_threshold = threshold
    return best, best_threshold


@jit
def _sides_score(criterion: Criterion, below: Int64s, nodes: Nodes, leaf: int) -> float:
    """Return the score of a split of a leaf into class weights below and the rest; neither may be empty."""
    low = below[0] * 0
    high = below[0] * 0
    low_so_far = 0.0
    high_so_far = 0.0
    for k in range(below.size):
        above = nodes.rows.cells[leaf, COUNT + k] - below[k]
        low_so_far = added(criterion, low_so_far, low, below[k])
        high_so_far = added(criterion, high_so_far, high, above)
        low += below[k]
        high += above
    return closed(criterion, low_so_far, low) + closed(criterion, high_so_far, high)


@jit
def _quantised_score(
    criterion: Criterion, features: Features, nodes: Nodes, leaf: int, row: int
) -> tuple[float, float]:
    """Return the score of the best threshold between neighbouring slots, the lowest of equal ones, and it.

    Where there are zeros they are a neighbour too. Paper 004, algorithm 2, for classes. O(slots).
    """
    cells = features.values.cells
    below = features.quantised.below
    zeros = _rest(criterion, nodes.rows, leaf, features.rows, row)[1] > 0
    best = np.inf
    best_threshold = 0.0
    last = -np.inf
    slot = features.quantised.about[row, FIRST]
    while zeros or slot != NONE:
        at_zero = zeros and (slot == NONE or features.quantised.mean[slot] > 0.0)
        here = 0.0 if at_zero else features.quantised.mean[slot]
        if last > -np.inf:
            score = _sides_score(criterion, below, nodes, leaf)
            if score < best:
                best = score
                best_threshold = quantised.between(last, here)
        for k in range(below.size):
            if at_zero:
                below[k] += nodes.rows.cells[leaf, COUNT + k] - features.rows.cells[row, COUNT + k]
            else:
                below[k] += cells[slot, COUNT + k]
        if at_zero:
            zeros = False
        else:
            slot = cells[slot, NEXT]
        last = here
    below[:] = 0
    return best, best_threshold


@jit
def feature_score(
    criterion: Criterion, features: Features, nodes: Nodes, leaf: int, row: int
) -> tuple[float, float]:
    """Return the score of a feature of a leaf, and its threshold where it is a number.

    The score is inf where all examples would go one way: that is no split. So it is of a feature that was dropped.
    """
    kind = features.about[row, KIND]
    if kind == POOR:
        return np.inf, 0.0
    if kind == NUMERIC:
        return _numeric_score(criterion, features, nodes, leaf, row)
    if kind == QUANTISED:
        return _quantised_score(criterion, features, nodes, leaf, row)
    absent, absent_weight = _rest(criterion, nodes.rows, leaf, features.rows, row)
    if kind == BINARY:
        score = impurity(criterion, features.rows, row) + absent
        return (score if absent_weight > 0 else np.inf), 0.0
    branches = 1 if absent_weight > 0 else 0
    score = absent
    value = features.about[row, PART]
    while value != NONE:
        score += impurity(criterion, features.values, value)
        branches += 1
        value = features.values.cells[value, NEXT]
    return (score if branches > 1 else np.inf), 0.0
