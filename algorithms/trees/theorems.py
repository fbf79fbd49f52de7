"""Theorems 1 and 2 of paper 001: the score of a split after one more example, in constant time.

The paper's G(D|X) of the entropy is our score over the weight, that of the Gini index is 1 minus it. In terms
of the score (n G and n - n G) both theorems lose their division by n + w, and the terms of the entropy become
n log2 n, which the criterion knows by heart: with r the branch that the example takes and m its class,

* Theorem 1: X(n_r + w) - X(n_r) - (X(n_rm + w) - X(n_rm)) is added, X(n) = n log2 n and X(0) = 0;
* Theorem 2: w - (2 w n_rm + w^2) / (n_r + w) + w sum_k n_rk^2 / (n_r (n_r + w)) is added, the sum's term being 0
  where n_r is.
"""

from __future__ import annotations

from algorithms.core.criteria import Criterion, by_criterion, xlogx_fixed
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined


@inlined
def _entropy_step(criterion: Criterion, branch: int, branch_class: int, squares: float, weight: int) -> float:  # noqa: ARG001
    table = criterion.table
    return (xlogx_fixed(table, branch + weight) - xlogx_fixed(table, branch)) - (
        xlogx_fixed(table, branch_class + weight) - xlogx_fixed(table, branch_class)
    )


@inlined
def _gini_step(criterion: Criterion, branch: int, branch_class: int, squares: float, weight: int) -> float:  # noqa: ARG001
    w = weight * PER_UNIT
    n = branch * PER_UNIT
    step = w - (2.0 * w * (branch_class * PER_UNIT) + w * w) / (n + w)
    return step + w * squares / (n * (n + w)) if branch > 0 else step


step = by_criterion(
    "Return what an example of weight > 0 adds to the score of a split. Before it came, `branch` was the weight "
    "of the branch that it takes, `branch_class` that of its class there, in units; `squares` the sum of the "
    "squared class weights there, in examples.",
    entropy=_entropy_step,
    gini=_gini_step,
)
