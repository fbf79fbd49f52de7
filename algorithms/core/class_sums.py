"""The impurity of any number of classes, as sums over them.

It is that of criteria.py for more than two classes, to the bit the same for two: `added` takes in one class after
another, `closed` makes the impurity of the sum.
"""

from __future__ import annotations

from algorithms.core.arrays import Int64s
from algorithms.core.criteria import Criterion, by_criterion, rounding, xlogx_fixed
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit


@inlined
def _entropy_added(criterion: Criterion, so_far: float, before: int, count: int) -> float:  # noqa: ARG001
    return so_far + xlogx_fixed(criterion.table, count)


@inlined
def _entropy_closed(criterion: Criterion, so_far: float, total: int) -> float:
    return xlogx_fixed(criterion.table, total) - so_far


@inlined
def _gini_added(criterion: Criterion, so_far: float, before: int, count: int) -> float:  # noqa: ARG001
    return so_far + (before * PER_UNIT) * (count * PER_UNIT)


@inlined
def _gini_closed(criterion: Criterion, so_far: float, total: int) -> float:  # noqa: ARG001
    return 2.0 * so_far / (total * PER_UNIT) if total > 0 else 0.0


added = by_criterion(
    "Return the sum with one more class of weight `count`, those so far weighing `before`.",
    entropy=_entropy_added,
    gini=_gini_added,
)
closed = by_criterion(
    "Return weight times impurity of a node of weight `total`: entropy n log2 n - sum n_k log2 n_k, "
    "Gini 2 / n times the sum of n_i n_k over all pairs of classes.",
    entropy=_entropy_closed,
    gini=_gini_closed,
)


@jit
def impurity(criterion: Criterion, totals: Int64s) -> float:
    """Return weight times impurity of class weights."""
    total = totals[0] * 0
    so_far = 0.0
    for k in range(totals.size):
        so_far = added(criterion, so_far, total, totals[k])
        total += totals[k]
    return closed(criterion, so_far, total)


@jit
def score(criterion: Criterion, below: Int64s, totals: Int64s) -> float:
    """Return weight times impurity after a split into `below` and the rest of `totals`: lower is better."""
    low = totals[0] * 0
    high = totals[0] * 0
    low_so_far = 0.0
    high_so_far = 0.0
    for k in range(totals.size):
        above = totals[k] - below[k]
        low_so_far = added(criterion, low_so_far, low, below[k])
        high_so_far = added(criterion, high_so_far, high, above)
        low += below[k]
        high += above
    return closed(criterion, low_so_far, low) + closed(criterion, high_so_far, high)


@inlined
def noise(weight: int, classes: int) -> float:
    """Return a bound on the rounding error of the scores of a leaf: no gain below it is real."""
    return classes * rounding(weight, 0)
