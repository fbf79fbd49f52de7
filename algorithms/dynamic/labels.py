"""What trees keep of labels: of classes their weights, of numbers the sums of variance.py.

The criterion says which it is, and kernels are compiled for each: so the structure of trees is one, and classes
cost what they would cost alone.
"""

from __future__ import annotations

import math
from typing import Any

from algorithms.core import class_sums
from algorithms.core.arrays import Float64s, Int64s, int64
from algorithms.core.criteria import Criterion
from algorithms.core.fixed_point import MAX_TOTAL, PER_UNIT
from algorithms.core.jit import apart, dispatch, inlined
from algorithms.dynamic import variance
from algorithms.dynamic.nodes import NONE
from algorithms.dynamic.variance import SUM, WEIGHT, Variance
from algorithms.trees.predict import loss_of


@inlined
def _add_class(criterion: Criterion, sums: Int64s, row: int, label: int, weight: int) -> None:
    sums[row, label] += weight


@inlined
def _add_to_feature(criterion: Variance, sums: Int64s, row: int, label: int, weight: int) -> None:
    variance.add_to_feature(sums, row, label, weight)


@inlined
def _add_to_node(criterion: Variance, sums: Int64s, row: int, label: int, weight: int) -> None:
    variance.add_to_node(sums, row, label, weight)


@inlined
def _class_weight(criterion: Criterion, sums: Int64s, row: int) -> int:
    weight = int64(0)
    for k in range(sums.shape[1]):
        weight += sums[row, k]
    return weight


@inlined
def _number_weight(criterion: Variance, sums: Int64s, row: int) -> int:
    return sums[row, WEIGHT]


@inlined
def _is_pure(criterion: Criterion, sums: Int64s, row: int, totals: Int64s, alpha: float) -> bool:
    weight = int64(0)
    for k in range(totals.size):
        weight += totals[k]
    return class_sums.impurity(criterion, totals) <= 0.5 * alpha * (weight * PER_UNIT)


@inlined
def _are_alike(criterion: Variance, sums: Int64s, row: int, totals: Int64s, alpha: float) -> bool:
    return variance.are_alike(sums, row)


@apart
def _class_score(criterion: Criterion, below: Int64s, totals: Int64s) -> float:
    return class_sums.score(criterion, below, totals)


@inlined
def _is_class(criterion: Criterion, label: int, classes: int) -> bool:
    return 0 <= label < classes


@inlined
def _is_number(criterion: Variance, label: int, classes: int) -> bool:
    return 0 <= label <= criterion.most


@inlined
def _class_room(criterion: Criterion) -> int:
    return int64(MAX_TOTAL)


@inlined
def _number_room(criterion: Variance) -> int:
    return int64(criterion.most_weight + 1)


@inlined
def _class_told(criterion: Criterion, sum_: int) -> float:
    return sum_ * PER_UNIT


@inlined
def _number_told(criterion: Variance, sum_: int) -> int:
    return sum_


@inlined
def _heaviest(criterion: Criterion, weights: Float64s, node: int) -> int:
    best = int64(0)
    for k in range(1, weights.size):
        if weights[k] > weights[best]:
            best = int64(k)
    return best if node != NONE else int64(NONE)


@inlined
def _mean(criterion: Variance, sums: Int64s, node: int) -> float:
    return float(sums[SUM]) / float(sums[WEIGHT]) if node != NONE else math.nan


@inlined
def _class_loss(criterion: Criterion, weights: Float64s, label: int) -> float:
    return loss_of(weights, label)


@inlined
def _no_loss(criterion: Variance, sums: Int64s, label: int) -> float:
    return 0.0


def by_target(doc: str, of_classes: Any, of_numbers: Any) -> Any:
    """Make a function that calls one of two by its first argument, the criterion, chosen while compiling."""
    return dispatch(doc, {Criterion: of_classes, Variance: of_numbers})


add_to_feature = by_target(
    "Add an example to the sums of a feature; a negative weight takes it out.", _add_class, _add_to_feature
)
add_to_node = by_target(
    "Add an example to the sums of a node; a negative weight takes it out.", _add_class, _add_to_node
)
weight_of = by_target("Return the weight of a node by its sums.", _class_weight, _number_weight)
is_pure = by_target(
    "Return whether a node is a leaf for its labels alone; what features have of its sums is in `totals`.",
    _is_pure,
    _are_alike,
)
score = by_target(
    "Return the score of a split into `below` and the rest of `totals`: lower is better.",
    _class_score,
    variance.score,
)
is_label = by_target("Return whether a label is one of the model's.", _is_class, _is_number)
room_for = by_target("Return what the weights of a tree's examples sum to less than.", _class_room, _number_room)
told = by_target("Return what a prediction tells of a node's sum.", _class_told, _number_told)
guess = by_target(
    "Return what is predicted by what is told of a node, or by none: the class with most weight, the lowest of "
    "equal ones, or NONE; the mean, or nan.",
    _heaviest,
    _mean,
)
loss = by_target("Return the loss of a true label by what is told of a node.", _class_loss, _no_loss)
