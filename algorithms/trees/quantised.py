"""The quantisation observer of numeric features, paper 004: class weights in slots of width r, floor(x / r).

A slot's prototype is the mean of its values; thresholds lie midway between the prototypes of neighbours. What is
on either side of one is a sum of slots, so it is exact. As everywhere only values other than 0 are observed: zeros
are known from the leaf's totals, and stand as a point of their own between negative and positive slots.

The radius is a share of the standard deviation, as the paper has it, or is given. Before there is a deviation the
paper takes r = 0.01, which says nothing to a feature that is measured in billionths. Here a leaf keeps the first
`EXACT` different values one by one, which is enough for all of many features; the next one settles the radius from
their deviation, and it stays as long as the leaf. Where the slots would be too many the radius doubles: neighbours
become one, and floor(x / 2r) = floor(floor(x / r) / 2), so nothing that was counted is in the wrong slot.

The slots of a feature are rows of `Features.values`, in a chain that ascends by value, since a ranking needs them
in order and a new slot is rare::

    radius 0    -7.5 | 3.0 | 3.5 | 12.0                    a slot for each value
    radius 2    [-8, -6) -7.5 | [2, 4) 3.25 | [12, 14) 12.0
    radius 4    [-8, -4) -7.5 | [0, 4) 3.25 | [12, 16) 12.0
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Float64s, Int64s, extended, int64
from algorithms.core.jit import inlined, jit
from algorithms.core.means import moved
from algorithms.core.rows import COUNT, NEXT, NONE, Rows
from algorithms.core.stored import stored

EXACT = 32  # different values that are kept one by one

# Columns of `Quantised.about`.
FIRST = 0  # the slot of the lowest values, or NONE
SIZE = 1  # how many slots
ORIGIN = 2  # a slot's item in its key is its code, floor(x / r), less this, so that an offset costs no resolution

_ITEMS = 1 << 32
_LARGEST_CODE = 2.0**62
_LEAST_RADIUS = 2.0**-1022


class Quantiser(NamedTuple):
    """How values are put into slots."""

    radius: float  # of all features; 0: each has its own, a share of its deviation
    fraction: float  # that share
    most: int  # slots of a feature in a leaf, at least 2; beyond them the radius doubles


@stored("mean", "weight", "radius", "about", "below")
class Quantised(NamedTuple):
    """What lies beside the class weights of slots, and beside the features that have them."""

    mean: Float64s  # float64[values], the slot's prototype
    weight: Int64s  # int64[values], of all classes, in units
    radius: Float64s  # float64[features], 0: still a slot for each value
    about: Int64s  # int64[features, 3]
    below: Int64s  # int64[c], the class weights below a threshold, while a feature is scored; else 0


def make(values: int, features: int, classes: int) -> Quantised:
    """Return empty storage beside so many values and features."""
    return Quantised(
        mean=np.zeros(values),
        weight=np.zeros(values, np.int64),
        radius=np.zeros(features),
        about=np.zeros((features, 3), np.int64),
        below=np.zeros(classes, np.int64),
    )


def grown(quantised: Quantised, values: int, features: int) -> Quantised:
    """Return the same storage beside more values and features."""
    return quantised._replace(
        mean=extended(quantised.mean, values),
        weight=extended(quantised.weight, values),
        radius=extended(quantised.radius, features),
        about=extended(quantised.about, features),
    )


@inlined
def begin(quantised: Quantised, quantiser: Quantiser, row: int) -> None:
    """Start a feature without slots."""
    quantised.radius[row] = quantiser.radius
    quantised.about[row, FIRST] = NONE
    quantised.about[row, SIZE] = 0
    quantised.about[row, ORIGIN] = 0


@inlined
def _fits(value: float, radius: float) -> bool:
    """Return whether the code of a value is a number that can be counted with."""
    return abs(value) < radius * _LARGEST_CODE


@inlined
def _code(value: float, radius: float) -> int:
    """Return floor(x / r). A negative value has a negative code, also where the quotient underflows to 0."""
    code = int64(np.floor(value / radius))
    return min(code, -1) if value < 0.0 else code


@jit
def _last_below(values: Rows, quantised: Quantised, row: int, value: float) -> int:
    """Return the last slot whose prototype is below a value, or NONE. O(slots)."""
    last = int64(NONE)
    slot = quantised.about[row, FIRST]
    while slot != NONE and quantised.mean[slot] < value:
        last = slot
        slot = values.cells[slot, NEXT]
    return last


@jit
def _insert(values: Rows, quantised: Quantised, row: int, item: int, value: float) -> int:
    """Return a new slot for a value; there must be room."""
    last = _last_below(values, quantised, row, value)
    following = quantised.about[row, FIRST] if last == NONE else values.cells[last, NEXT]
    slot = rows.create(values, row, item, following)
    if last == NONE:
        quantised.about[row, FIRST] = slot
    else:
        values.cells[last, NEXT] = slot
    quantised.about[row, SIZE] += 1
    quantised.mean[slot] = value
    quantised.weight[slot] = 0
    return slot


@jit
def _take_in(values: Rows, quantised: Quantised, slot: int, other: int) -> None:
    """Add the following slot to a slot."""
    mean, weight = quantised.mean, quantised.weight
    total = weight[slot] + weight[other]
    between = (mean[slot] * weight[slot] + mean[other] * weight[other]) / total
    mean[slot] = min(max(between, mean[slot]), mean[other])
    weight[slot] = total
    for column in range(COUNT, values.cells.shape[1]):
        values.cells[slot, column] += values.cells[other, column]


@jit
def _regroup(values: Rows, quantised: Quantised, row: int) -> None:
    """Put the slots of a feature under their codes by its radius; those of the same code become one. O(slots)."""
    kept = int64(NONE)
    slot = quantised.about[row, FIRST]
    while slot != NONE:
        item = _code(quantised.mean[slot], quantised.radius[row]) - quantised.about[row, ORIGIN]
        if kept != NONE and rows.item_of(values, kept) == item:
            _take_in(values, quantised, kept, slot)
            slot = rows.remove(values, slot)
            values.cells[kept, NEXT] = slot
            quantised.about[row, SIZE] -= 1
        else:
            rows.rename(values, slot, item)
            kept = slot
            slot = values.cells[slot, NEXT]


@jit
def _double(values: Rows, quantised: Quantised, row: int) -> None:
    """Double a radius. What was in the middle of the items stays there."""
    quantised.radius[row] *= 2.0
    quantised.about[row, ORIGIN] = (quantised.about[row, ORIGIN] >> 1) - _ITEMS // 4
    _regroup(values, quantised, row)


@jit
def _settle(values: Rows, quantised: Quantised, row: int, fraction: float) -> None:
    """Set the radius from the deviation of the values so far, of which there are two at least. O(slots).

    The deviation is that of the values in their weights, n and not n - 1 below the root, and is found in parts of
    the largest: neither the scale of values nor that of weights changes anything.
    """
    mean, weight = quantised.mean, quantised.weight
    first = quantised.about[row, FIRST]
    last = first
    total = weight[first] * 0
    middle = 0.0
    slot = first
    while slot != NONE:
        total += weight[slot]
        middle += mean[slot] * weight[slot]
        last = slot
        slot = values.cells[slot, NEXT]
    middle /= total
    largest = max(middle - mean[first], mean[last] - middle)
    squares = 0.0
    slot = first
    while slot != NONE:
        part = (mean[slot] - middle) / largest
        squares += weight[slot] * (part * part)
        slot = values.cells[slot, NEXT]
    radius = max(fraction * (largest * math.sqrt(squares / total)), _LEAST_RADIUS)
    while not (_fits(mean[first], radius) and _fits(mean[last], radius)):
        radius *= 2.0
    while _code(mean[last], radius) - _code(mean[first], radius) >= _ITEMS // 2:
        radius *= 2.0
    quantised.radius[row] = radius
    quantised.about[row, ORIGIN] = _code(mean[first], radius) - _ITEMS // 2
    _regroup(values, quantised, row)


@jit
def find(values: Rows, quantised: Quantised, row: int, value: float) -> int:
    """Return the slot of a value, or NONE."""
    radius = quantised.radius[row]
    if radius == 0.0:
        last = _last_below(values, quantised, row, value)
        slot = quantised.about[row, FIRST] if last == NONE else values.cells[last, NEXT]
        return slot if slot != NONE and quantised.mean[slot] == value else int64(NONE)
    if not _fits(value, radius):
        return int64(NONE)
    item = _code(value, radius) - quantised.about[row, ORIGIN]
    return rows.find(values, row, item) if 0 <= item < _ITEMS else int64(NONE)


@jit
def _make(values: Rows, quantised: Quantised, quantiser: Quantiser, row: int, value: float) -> int:
    """Return a slot for a value that has none. Amortised O(slots)."""
    about = quantised.about
    if quantised.radius[row] == 0.0:
        if about[row, SIZE] < min(EXACT, quantiser.most):
            return _insert(values, quantised, row, about[row, SIZE], value)
        _settle(values, quantised, row, quantiser.fraction)
    while True:
        radius = quantised.radius[row]
        if _fits(value, radius):
            code = _code(value, radius)
            if about[row, SIZE] == 0:
                about[row, ORIGIN] = code - _ITEMS // 2
            item = code - about[row, ORIGIN]
            if 0 <= item < _ITEMS:
                slot = rows.find(values, row, item)
                if slot != NONE:
                    return slot
                if about[row, SIZE] < quantiser.most:
                    return _insert(values, quantised, row, item, value)
        _double(values, quantised, row)


@jit
def observe(
    values: Rows, quantised: Quantised, quantiser: Quantiser, row: int, k: int, weight: int, value: float
) -> None:
    """Count a value of class k; there must be room for a slot. O(1), or O(`EXACT`) before there is a radius.

    A running mean rather than a sum: that of equal values is their value, and it is among the values of its slot
    whatever is rounded, so that prototypes ascend strictly.
    """
    slot = find(values, quantised, row, value)
    if slot == NONE:
        slot = _make(values, quantised, quantiser, row, value)
    values.cells[slot, COUNT + k] += weight
    quantised.weight[slot] += weight
    quantised.mean[slot] = moved(quantised.mean[slot], value, weight / quantised.weight[slot])


@jit
def forget(values: Rows, quantised: Quantised, row: int) -> None:
    """Give back the slots of a feature."""
    slot = quantised.about[row, FIRST]
    while slot != NONE:
        slot = rows.remove(values, slot)


@jit
def above(values: Rows, quantised: Quantised, row: int, k: int, threshold: float) -> int:
    """Return the weight of class k, in units, in slots whose prototype is above a threshold. O(slots)."""
    weight = values.cells[0, COUNT] * 0
    slot = quantised.about[row, FIRST]
    while slot != NONE:
        if quantised.mean[slot] > threshold:
            weight += values.cells[slot, COUNT + k]
        slot = values.cells[slot, NEXT]
    return weight


@inlined
def between(low: float, high: float) -> float:
    """Return the threshold between two neighbours: midway, or the lower where no number is between them."""
    middle = low / 2.0 + high / 2.0
    return middle if low <= middle < high else low


def check(values: Rows, quantised: Quantised, row: int, counts: Int64s) -> list[int]:
    """Raise AssertionError unless the slots of a feature hold what it counted; return them."""
    own = rows.chain(values, int(quantised.about[row, FIRST]))
    cells, mean, radius = values.cells[own], quantised.mean[own], float(quantised.radius[row])
    assert len(own) == quantised.about[row, SIZE]
    assert (cells[:, COUNT:].sum(axis=0) == counts).all()
    assert (cells[:, COUNT:].sum(axis=1) == quantised.weight[own]).all()
    assert (quantised.weight[own] > 0).all(), "an empty slot was kept"
    assert (np.diff(mean) > 0.0).all(), "slots are out of order"
    assert not (mean == 0.0).any(), "zeros were observed"
    if radius > 0.0:
        for slot, prototype in zip(own, mean.tolist(), strict=True):
            assert rows.item_of(values, slot) == _code(prototype, radius) - quantised.about[row, ORIGIN]
    assert not quantised.below.any()
    return own
