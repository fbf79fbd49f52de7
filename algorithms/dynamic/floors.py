"""Floors under what splits leave, by classes and by numbers: how an edit can lower it, with the proof.

What a split leaves is h(low) + h(high), the impurity of both sides, each times its weight. Of classes this is its
score. Of numbers h is the sum of squared deviations from the mean, and a split that scores -n g (variance.py)
leaves h(whole) - g. A split is a function of an example, so all of them can be asked about any examples; one that
parts nothing leaves h(whole). A scan of a node tells the least that any split leaves: a floor. From then on:

* An insert lowers it for no split. h is concave and homogeneous, of the weights of examples, so it is
  superadditive: h(s + e) >= h(s) + h(e), and h(e) = 0 of one example.
* A delete of weight w lowers it by h(s) - h(s - e), for the side s that the example e was on. The other stays.

With classes, m the weight of the node's other classes, this is at most h(w, m): by concavity h(s) - h(s - e) is
the larger, the less of its class the side holds, and it grows with the side's other classes, which are m at most.
For Gini h(w, m) = 2 w m / (w + m) < 2 w, for entropy h(w, m) <= w (log2((w + m) / w) + log2 e). By Gini it is less
where no split gains much: falls.py.

What has parted none of the examples of a scan, as a feature that nobody had, has all of these on one side. So it
leaves h(o) at least, by superadditivity, o those of them that are still there. With classes o is known, but that
deletes of examples that came later are taken off it, too: then it is too small, and h(o) with it. So beside the
floor under all splits there is another: h(o), and the floor under what the scan has seen part its examples. It
mostly sinks less. For Gini h(o) sinks by some 2 p^2 w, p the share of the other classes in the node, where the
floor sinks by 2 w m / (w + m).

With numbers, let the side weigh k, the rest of it have the mean a, and the label be y. Then
h(s) - h(s - e) = w (k - w) / k (y - a)^2. The first factor grows with k, which is the node's weight n at most. A
mean lies between the least and the greatest label of the node, so |y - a| is at most the distance d of y to the
farther one. So what is left falls by at most w (n - w) / n d^2. The least and the greatest label are those since
the last scan; what was deleted since then only makes d too large.

All is rounded. What a scan tells is lowered by the error of rounding, and so is each difference. So what is
decided by floors is what would be decided by scores in full.
"""

from __future__ import annotations

from typing import NamedTuple

from algorithms.core import class_sums, criteria
from algorithms.core.arrays import Int64s, int64
from algorithms.core.criteria import Criterion, coarse_rounding
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import apart, inlined
from algorithms.dynamic import columns, rivals, variance
from algorithms.dynamic.columns import GREATEST, LEAST, lowered
from algorithms.dynamic.falls import fall
from algorithms.dynamic.labels import by_target
from algorithms.dynamic.slack import Slack
from algorithms.dynamic.variance import HIGH_SQUARES, LOW_SQUARES, SUM, WEIGHT, Variance

_ERROR = 2.0**-46  # of what is left, by numbers: sixteen times what rounding can make of it
_MORE = 1.0 + 2.0**-40
_LESS = 1.0 - 2.0**-40


class Whole(NamedTuple):
    """What a node leaves where nothing parts it."""

    score: float  # of what parts nothing
    left: float
    error: float  # by which rounding may make what a split leaves differ
    weight: int


# --- classes


@apart
def _whole_of_classes(criterion: Criterion, weights: Int64s, node: int, totals: Int64s) -> Whole:
    left = class_sums.impurity(criterion, totals)
    weight = int64(0)
    for k in range(totals.size):
        weight += totals[k]
    return Whole(left, left, class_sums.noise(weight, totals.size), weight)


@inlined
def _left_of_classes(criterion: Criterion, whole: Whole, score: float) -> float:
    return score


@inlined
def _gains_of_classes(criterion: Criterion, whole: Whole, score: float) -> bool:
    return score < whole.score - whole.error


@inlined
def _allowed_of_classes(criterion: Criterion, weights: Int64s, root: int, whole: Whole, beta: float) -> float:
    return beta * (whole.weight * PER_UNIT)


@inlined
def _of_the_node(criterion: Criterion) -> bool:
    return True


@apart
def _note_class(
    criterion: Criterion, slack: Slack, weights: Int64s, node: int, label: int, weight: int, sign: int
) -> None:
    if sign > 0:
        slack.lightest[node] = min(slack.lightest[node], weight)
        return
    total = int64(0)
    so_far = 0.0
    for k in range(weights.shape[1]):
        so_far = class_sums.added(criterion, so_far, total, weights[node, k])
        total += weights[node, k]
    others = total - weights[node, label]
    error = coarse_rounding(total, int64(0))
    most = criteria.impurity(criterion, weight, others) + error
    slack.floor[node] -= most
    # What is not under `floor` alone gains no more than these say.
    least = slack.seen[node]
    for at in range(columns.size_of(slack.columns, node)):
        least = min(least, columns.floor_of(slack.columns, node, at))
    gain = class_sums.closed(criterion, so_far, total) + error - least
    lightest = slack.lightest[node]
    most = min(most, fall(criterion, weight, others, total, gain, lightest, weights.shape[1]) + error)
    columns.lose(slack.columns, node, most)
    slack.seen[node] -= most
    slack.old[node, label] = max(slack.old[node, label] - weight, int64(0))


@inlined
def _begin_old(criterion: Criterion, slack: Slack, node: int, seen: float, totals: Int64s, lightest: int) -> None:
    slack.seen[node] = seen
    slack.lightest[node] = lightest
    for k in range(totals.size):
        slack.old[node, k] = totals[k]


@inlined
def _rest_of_classes(criterion: Criterion, slack: Slack, node: int) -> float:
    return min(slack.seen[node], _class_without(criterion, slack.old, node, int64(0), int64(0)))


@inlined
def _note_no_label(criterion: Criterion, slack: Slack, node: int, label: int) -> None:
    pass


@apart
def _class_without(criterion: Criterion, weights: Int64s, node: int, label: int, change: int) -> float:
    total = weights[node, 0] * 0
    so_far = 0.0
    for k in range(weights.shape[1]):
        here = weights[node, k] + (change if k == label else 0)
        so_far = class_sums.added(criterion, so_far, total, here)
        total += here
    return class_sums.closed(criterion, so_far, total) - class_sums.noise(total, weights.shape[1])


@inlined
def _add_class_to_rival(criterion: Criterion, cells: Int64s, at: int, label: int, weight: int) -> None:
    cells[at, rivals.WEIGHTS + label] += weight


@inlined
def _is_last_of_classes(
    criterion: Criterion, cells: Int64s, at: int, weights: Int64s, node: int, label: int, change: int
) -> bool:
    for k in range(weights.shape[1]):
        if cells[at, rivals.WEIGHTS + k] != weights[node, k] + (change if k == label else 0):
            return False
    return True


# --- numbers


@apart
def _whole_of_numbers(criterion: Variance, weights: Int64s, node: int, totals: Int64s) -> Whole:
    left = variance.deviations(
        weights[node, WEIGHT], weights[node, SUM], weights[node, HIGH_SQUARES], weights[node, LOW_SQUARES]
    )
    return Whole(0.0, left, left * _ERROR, weights[node, WEIGHT])


@inlined
def _left_of_numbers(criterion: Variance, whole: Whole, score: float) -> float:
    return whole.left + score / float(whole.weight)


@inlined
def _gains_of_numbers(criterion: Variance, whole: Whole, score: float) -> bool:
    return score < 0.0


@apart
def _allowed_of_numbers(criterion: Variance, weights: Int64s, root: int, whole: Whole, beta: float) -> float:
    squares = variance.deviations(
        weights[root, WEIGHT], weights[root, SUM], weights[root, HIGH_SQUARES], weights[root, LOW_SQUARES]
    )
    return beta * (squares / float(weights[root, WEIGHT])) * float(whole.weight) * _LESS


@inlined
def _of_the_tree(criterion: Variance) -> bool:
    return False


@apart
def _note_number(
    criterion: Variance, slack: Slack, weights: Int64s, node: int, label: int, weight: int, sign: int
) -> None:
    if sign > 0:
        columns.note_label(slack.columns, node, label)
        return
    extremes = slack.columns.extremes
    off = float(max(label - extremes[node, LEAST], extremes[node, GREATEST] - label))
    whole = weights[node, WEIGHT]
    most = float(weight) * (float(whole - weight) / float(whole)) * (off * off) * _MORE
    columns.lose(slack.columns, node, most)
    slack.floor[node] = lowered(slack.floor[node] - most)


@inlined
def _begin_no_old(
    criterion: Variance, slack: Slack, node: int, seen: float, totals: Int64s, lightest: int
) -> None:
    pass


@inlined
def _no_rest(criterion: Variance, slack: Slack, node: int) -> float:
    return columns.UNKNOWN


@inlined
def _begin_extremes(criterion: Variance, slack: Slack, node: int, label: int) -> None:
    columns.begin_extremes(slack.columns, node, label)


@inlined
def _note_label(criterion: Variance, slack: Slack, node: int, label: int) -> None:
    columns.note_label(slack.columns, node, label)


@apart
def _number_without(criterion: Variance, weights: Int64s, node: int, label: int, change: int) -> float:
    weight, total = weights[node, WEIGHT], weights[node, SUM]
    if change == 0:
        high, low = weights[node, HIGH_SQUARES], weights[node, LOW_SQUARES]
    else:
        high, low = variance.squares_with(weights, node, label, change)
    return variance.deviations(weight + change, total + change * label, high, low) * (1.0 - _ERROR)


@inlined
def _add_number_to_rival(criterion: Variance, cells: Int64s, at: int, label: int, weight: int) -> None:
    cells[at, rivals.WEIGHTS + WEIGHT] += weight
    cells[at, rivals.WEIGHTS + SUM] += weight * label


@inlined
def _is_last_of_numbers(
    criterion: Variance, cells: Int64s, at: int, weights: Int64s, node: int, label: int, change: int
) -> bool:
    return bool(cells[at, rivals.WEIGHTS + WEIGHT] == weights[node, WEIGHT] + change)


# --- by what labels are


whole_of = by_target(
    "Return what a node leaves by its sums; what features have of them is in `totals`.",
    _whole_of_classes,
    _whole_of_numbers,
)
left_by = by_target("Return what a split of a score leaves.", _left_of_classes, _left_of_numbers)
gains = by_target(
    "Return whether a split of a score gains more than rounding.", _gains_of_classes, _gains_of_numbers
)
allowed = by_target(
    "Return how much more than the best a split of a node may leave, by beta: for each unit of weight so much of "
    "classes, of numbers so much of the variance of all live labels of the tree.",
    _allowed_of_classes,
    _allowed_of_numbers,
)
is_local = by_target(
    "Return whether what is allowed in a node changes by its own examples alone: of numbers, by all of the tree.",
    _of_the_node,
    _of_the_tree,
)
note = by_target(
    "Keep the floors of a node true when an example comes or goes, before the sums of its labels change.",
    _note_class,
    _note_number,
)
begin_old = by_target(
    "Begin to note which examples of a scan are still there. `seen` is under what the scan has seen part them, "
    "and none weighs less than `lightest`.",
    _begin_old,
    _begin_no_old,
)
rest = by_target(
    "Return a floor under what all splits leave that have no place of their own, another than `Slack.floor`.",
    _rest_of_classes,
    _no_rest,
)
begin_labels = by_target(
    "Begin to note between which labels those of a node are: of classes there is nothing to note.",
    _note_no_label,
    _begin_extremes,
)
note_label = by_target("Note that a node has a label.", _note_no_label, _note_label)
left_without = by_target(
    "Return what a node leaves where nothing parts it once an example has gone, or come, less what rounding may "
    "have added.",
    _class_without,
    _number_without,
)
add_to_rival = by_target(
    "Add an example to the sums of those without the feature of a rival, see rivals.py.",
    _add_class_to_rival,
    _add_number_to_rival,
)
is_last = by_target(
    "Return whether no other example of a node has the feature of a rival than one that goes.",
    _is_last_of_classes,
    _is_last_of_numbers,
)
