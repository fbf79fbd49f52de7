"""The criterion of labels that are numbers: a split is the better, the more it reduces their variance.

A label is a whole number t, from 0, of units. A feature has the weight m of the examples where it is present and
the sum r of their labels, each as often as it weighs. With n and s of all examples of the node, a split gains

    n times weight times reduction of the variance = (n r - m s)^2 / (m (n - m))

and scores the same, negative. All of these are whole numbers, of two words where they are large (wide.py). A score
is the double nearest to the fraction (nearest.py), so it depends on the fraction alone: what gains the same ties,
and what gains nothing scores 0. Sums are exact in any order, so a delete undoes an insert.

Nodes have the sum of squares too, for the variance that predictions tell, and for whether all labels are alike.
"""

from __future__ import annotations

from typing import NamedTuple

from algorithms.core import digits, nearest
from algorithms.core.arrays import Int64s
from algorithms.core.jit import apart, inlined
from algorithms.core.nearest import nearest_ratio
from algorithms.core.wide import BASE, carry_of, difference, low_of, product

# Columns of the sums: of features the first two, of nodes all.
WEIGHT, SUM, LOW_SQUARES, HIGH_SQUARES = range(4)
OF_FEATURE, OF_NODE = 2, 4

_MOST_WEIGHT = (1 << 31) - 1  # of all examples of a tree: so m (n - m) is below 2^60, and n r - m s below 2^93
_MOST_SUM = (1 << 62) - 1


class Variance(NamedTuple):
    """Labels that are numbers."""

    most: int  # the greatest label
    most_weight: int  # of all examples of a tree: sums of labels are below 2^62
    digits: Int64s  # int64[4, ..], see nearest.py: scratch


def make(most: int) -> Variance:
    """Make the criterion of labels from 0 to `most`."""
    return Variance(most, min(_MOST_WEIGHT, _MOST_SUM // max(most, 1)), digits.make(nearest.ROWS))


@inlined
def add_to_feature(sums: Int64s, row: int, label: int, weight: int) -> None:
    """Add an example to the sums of a feature; a negative weight takes it out."""
    sums[row, WEIGHT] += weight
    sums[row, SUM] += weight * label


@inlined
def add_to_node(sums: Int64s, row: int, label: int, weight: int) -> None:
    """Add an example to the sums of a node; a negative weight takes it out."""
    add_to_feature(sums, row, label, weight)
    sums[row, HIGH_SQUARES], sums[row, LOW_SQUARES] = squares_with(sums, row, label, weight)


@inlined
def squares_with(sums: Int64s, row: int, label: int, weight: int) -> tuple[int, int]:
    """Return the words of a node's sum of squares with an example more; with a negative weight, with one less."""
    high, low = product(abs(weight) * label, label)
    low = sums[row, LOW_SQUARES] + (low if weight > 0 else -low)
    return sums[row, HIGH_SQUARES] + (high if weight > 0 else -high) + carry_of(low), low_of(low)


@apart
def deviations(weight: int, total: int, high: int, low: int) -> float:
    """Return the sum of squared deviations from the mean, but for 2^-50 of itself, by the sums of a node.

    Squares are taken from the whole number next to the mean, so that little is lost by the last difference: this
    number is off the mean by at most 1/2, and where it is off by f, labels, which are whole, deviate at least as
    much as f says of them, in all by at least weight f^2.
    """
    if weight == 0:
        return 0.0
    middle = total // weight
    if 2 * (total - middle * weight) > weight:
        middle += 1
    rest = total - middle * weight  # the sum of deviations from there
    # Of the squares of all y - c: sum y^2 - c (s + r), with s = n c + r.
    one_high, one_low = product(middle, total)
    high, low = difference(high, low, one_high, one_low)
    one_high, one_low = product(middle, abs(rest))
    if rest > 0:
        high, low = difference(high, low, one_high, one_low)
    else:
        low += one_low
        high, low = high + one_high + carry_of(low), low_of(low)
    off = float(rest)
    return max(float(high) * BASE + float(low) - off * off / float(weight), 0.0)


@apart
def are_alike(sums: Int64s, row: int) -> bool:
    """Return whether all labels of a node are the same.

    They are where the sum of their squares is that of as many means; and where those differ so do the labels, as
    a sum of whole squared deviations is 0 of no others.
    """
    weight, total = sums[row, WEIGHT], sums[row, SUM]
    if weight == 0:
        return True
    mean = total // weight
    if mean * weight != total:
        return False
    high, low = product(total, mean)
    return bool(high == sums[row, HIGH_SQUARES] and low == sums[row, LOW_SQUARES])


@inlined
def distance(weight: int, total: int, part: int, sum_of_part: int) -> tuple[int, int]:
    """Return the high and the low word of |n r - m s|."""
    high, low = product(weight, sum_of_part)
    other_high, other_low = product(part, total)
    if high < other_high or (high == other_high and low < other_low):
        return difference(other_high, other_low, high, low)
    return difference(high, low, other_high, other_low)


@inlined
def estimate(weight: int, total: int, part: int, sum_of_part: int) -> float:
    """Return the score of a split into a part and the rest of a node, but for 2^-49 of itself."""
    high, low = distance(weight, total, part, sum_of_part)
    far = float(high) * BASE + float(low)
    return -(far * far / float(part * (weight - part)))


@apart
def score(criterion: Variance, below: Int64s, totals: Int64s) -> float:
    """Return the score of a split into `below` and the rest of `totals`: lower is better, 0 gains nothing."""
    weight, part = totals[WEIGHT], below[WEIGHT]
    rest = weight - part
    high, low = distance(weight, totals[SUM], part, below[SUM])
    if part * rest == 0 or (high == 0 and low == 0):
        return 0.0
    return -nearest_ratio(criterion.digits, high, low, part * rest)
