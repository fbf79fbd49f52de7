"""What tells, without a score, that a split cannot be the best of a node: by classes and by numbers.

Along a numeric column each entry changes one class, or two sums. What a threshold scores is estimated from that,
and only where the estimate is not surely worse than the best so far is the score computed in full: the choice is
that of a splitter that computes them all. And a feature in few examples cannot gain much.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from algorithms.core.arrays import int64
from algorithms.core.class_sums import impurity, noise
from algorithms.core.criteria import Criterion, by_criterion, log2, rounding, xlogx_fixed
from algorithms.core.fixed_point import PER_UNIT, UNIT_BITS
from algorithms.core.jit import apart, inlined
from algorithms.dynamic import variance
from algorithms.dynamic.labels import by_target
from algorithms.dynamic.segment import HEAVIEST, LIGHTEST, WHOLE, Segment
from algorithms.dynamic.variance import SUM, WEIGHT, Variance

_LOG2_E = 1.4426950408889634  # 1 / ln 2, written out: the logarithms of machines differ
_ESTIMATED = 1 << (26 + UNIT_BITS)  # units; the weight below which squares of whole weights add up exactly
_SURELY = 1.0 - 2.0**-40
_NEARLY = 1.0 - 2.0**-47  # of an estimate of a number's score


class Node(NamedTuple):
    """What the scores of all columns of a node have in common."""

    examples: int
    weight: int  # in units; of numbers in examples
    class_sum: float  # see `_step`
    impurity: float  # the score of what parts nothing
    noise: float  # no gain below it is real
    margin: float  # how far estimates may be off; inf where all scores are computed in full
    reach: float  # by which `rare` bounds gains


class Passed(NamedTuple):
    """What was passed of a column, beside the sums in `Segment.part`."""

    weight: int
    part_sum: float  # of what was passed, see `_step`
    rest_sum: float  # of the rest of the node


# --- classes
#
# A threshold's score is two sums over all classes, which are kept by steps.


@inlined
def _entropy_step(criterion: Criterion, count: int, more: int) -> float:
    return xlogx_fixed(criterion.table, count + more) - xlogx_fixed(criterion.table, count)


@inlined
def _gini_step(criterion: Criterion, count: int, more: int) -> float:
    before = count * PER_UNIT
    after = (count + more) * PER_UNIT
    return after * after - before * before


@inlined
def _entropy_impurity(criterion: Criterion, total: int, class_sum: float) -> float:
    return xlogx_fixed(criterion.table, total) - class_sum


@inlined
def _gini_impurity(criterion: Criterion, total: int, class_sum: float) -> float:
    weight = total * PER_UNIT
    return weight - class_sum / weight


_step = by_criterion(
    "Return how the sum over the classes of n log2 n, for Gini of n n, changes where one class weighs `more`.",
    entropy=_entropy_step,
    gini=_gini_step,
)
_impurity_of = by_criterion(
    "Return weight times impurity by the weight, above 0, and that sum.",
    entropy=_entropy_impurity,
    gini=_gini_impurity,
)


@inlined
def _entropy_reach(criterion: Criterion, weight: int, least: float, lightest: int) -> float:
    return log2(float(weight) / float(lightest)) + _LOG2_E


@inlined
def _gini_reach(criterion: Criterion, weight: int, least: float, lightest: int) -> float:
    return min(2.0, 2.0 - least / (weight * PER_UNIT))


# Entropy: n H(v / n) = v log2(n / v) + (n - v) log2(n / (n - v)), and the second term is at most v log2 e.
#
# Gini: the gain is v (n - v) / n times the squared distance of two distributions. This is at most 2, and at most
# 1 + s / (1 - x)^2, with x = v / n and s the sum of the squared shares of the node's classes. By the second bound
# the gain is at most v (1 - x + s / (1 - x)); what is in brackets is convex in x, and is 1 + s at x = 0 and at
# x = 1 - s. Beyond, the first bound is v 2 (1 - x), below v 2 s. So the gain is at most v (1 + s), and 1 + s is 2
# less the Gini index of the node.
reach_of = by_criterion(
    "Return what parting v of n gains at most for each of v, in a node of at least this impurity.",
    entropy=_entropy_reach,
    gini=_gini_reach,
)


@apart
def _common_of_classes(criterion: Criterion, segment: Segment, start: int, stop: int) -> Node:
    weight = int64(0)
    class_sum = 0.0
    for k in range(segment.totals.size):
        weight += segment.totals[k]
        class_sum += _step(criterion, int64(0), segment.totals[k])
    # Squares of whole weights are exact below 2^53. Four steps an entry in n log2 n are rounded, by less than a
    # quarter of a `rounding` in all.
    is_whole = segment.sizes[WHOLE] == 1 and weight < _ESTIMATED
    examples = stop - start
    margin = (0.25 * examples + segment.totals.size + 2.0) * rounding(weight, int64(0)) if is_whole else math.inf
    whole = impurity(criterion, segment.totals)
    error = noise(weight, segment.totals.size)
    reach = reach_of(criterion, weight, whole - error, segment.sizes[LIGHTEST])
    return Node(examples, weight, class_sum, whole, error, margin, reach)


@apart
def _rare_by_classes(criterion: Criterion, segment: Segment, node: Node, best: float) -> int:
    gain = node.impurity - best - 2.0 * node.noise
    most = gain * _SURELY / (node.reach * (segment.sizes[HEAVIEST] * PER_UNIT))
    return int64(most) if most > 0.0 else int64(0)


@inlined
def _class_added(criterion: Criterion, segment: Segment, passed: Passed, i: int) -> Passed:
    k, more = segment.label[i], segment.weight[i]
    part_sum = passed.part_sum + _step(criterion, segment.part[k], more)
    rest_sum = passed.rest_sum - _step(criterion, segment.totals[k] - segment.part[k] - more, more)
    segment.part[k] += more
    return Passed(passed.weight + more, part_sum, rest_sum)


@inlined
def _class_removed(criterion: Criterion, segment: Segment, passed: Passed, i: int) -> Passed:
    k, less = segment.label[i], segment.weight[i]
    segment.part[k] -= less
    part_sum = passed.part_sum - _step(criterion, segment.part[k], less)
    rest_sum = passed.rest_sum + _step(criterion, segment.totals[k] - segment.part[k] - less, less)
    return Passed(passed.weight - less, part_sum, rest_sum)


@inlined
def _class_wiped(criterion: Criterion, segment: Segment, i: int) -> None:
    segment.part[segment.label[i]] = 0


@inlined
def _may_win_of_classes(criterion: Criterion, segment: Segment, node: Node, passed: Passed, best: float) -> bool:
    if node.margin == math.inf:
        return True
    low = _impurity_of(criterion, passed.weight, passed.part_sum)
    return low + _impurity_of(criterion, node.weight - passed.weight, passed.rest_sum) < best + node.margin


# --- numbers


@apart
def _common_of_numbers(criterion: Variance, segment: Segment, start: int, stop: int) -> Node:
    """Return what columns have in common; what parts nothing scores 0.

    Let a be how far a label may be off the mean of the node, at most. A split into v of n scores down to
    -v n^2 / (n - v) d^2, where d is how far the mean of the part is off, which is at most a. The reach is (n a)^2.
    """
    weight, total = segment.totals[WEIGHT], segment.totals[SUM]
    least = greatest = segment.label[segment.order[start]]
    for position in range(start + 1, stop):
        label = segment.label[segment.order[position]]
        least = min(least, label)
        greatest = max(greatest, label)
    off = float(max(total - least * weight, greatest * weight - total))
    return Node(stop - start, weight, 0.0, 0.0, 0.0, 0.0, off * off)


@inlined
def _alone_of_numbers(criterion: Variance, segment: Segment, start: int, stop: int) -> Node:
    return Node(stop - start, int64(0), 0.0, 0.0, 0.0, math.inf, 0.0)


@apart
def _rare_by_numbers(criterion: Variance, segment: Segment, node: Node, best: float) -> int:
    """Return how many examples cannot weigh v: where v n^2 / (n - v) a^2 is less than the best gain."""
    gain = -best * _SURELY
    if not 0.0 < gain < math.inf:
        return int64(0)
    most = gain * float(node.weight) / (node.reach + gain)
    return int64(most * _SURELY / float(segment.sizes[HEAVIEST]))


@inlined
def _number_added(criterion: Variance, segment: Segment, passed: Passed, i: int) -> Passed:
    more = segment.weight[i]
    segment.part[WEIGHT] += more
    segment.part[SUM] += more * segment.label[i]
    return passed


@inlined
def _number_removed(criterion: Variance, segment: Segment, passed: Passed, i: int) -> Passed:
    less = segment.weight[i]
    segment.part[WEIGHT] -= less
    segment.part[SUM] -= less * segment.label[i]
    return passed


@inlined
def _number_wiped(criterion: Variance, segment: Segment, i: int) -> None:
    segment.part[WEIGHT] = 0
    segment.part[SUM] = 0


@inlined
def _may_win_of_numbers(criterion: Variance, segment: Segment, node: Node, passed: Passed, best: float) -> bool:
    totals, part = segment.totals, segment.part
    now = variance.estimate(totals[WEIGHT], totals[SUM], part[WEIGHT], part[SUM])
    return bool(now <= best * _NEARLY)


# --- by what labels are


common = by_target(
    "Return what all columns of the node in `totals` have in common, which owns start to stop of `order`.",
    _common_of_classes,
    _common_of_numbers,
)
alone = by_target(
    "Do as `common` where one column is looked at, and `order` is not known.",
    _common_of_classes,
    _alone_of_numbers,
)
rare = by_target(
    "Return in how many examples a feature can be and surely have no score as low as the best.",
    _rare_by_classes,
    _rare_by_numbers,
)
added = by_target(
    "Return what was passed with one more example, whose label `Segment.part` takes in.",
    _class_added,
    _number_added,
)
removed = by_target(
    "Return what was passed without an example, whose label `Segment.part` gives back.",
    _class_removed,
    _number_removed,
)
wiped = by_target(
    "Forget in `Segment.part` what was passed of the label of an example.", _class_wiped, _number_wiped
)
may_win = by_target(
    "Return whether the score of what was passed and the rest of the node may be as low as the best.",
    _may_win_of_classes,
    _may_win_of_numbers,
)
