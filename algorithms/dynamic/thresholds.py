"""What thresholds of a column leave: scored by a scan, then bounded in bands while edits come and go.

Along a column the thresholds next to the best one leave almost as little as it does. So a floor for all of them is
soon spent, in a node's own column at once. But an edit far from two thresholds moves what both leave by nearly the
same. So thresholds are in bands (bands.py), which tell by how much. Near a node's own threshold, or the best of
another column, each has a band to itself; farther away more share one, the more the farther they are::

    values     1 2 3 4 5 6 7 8 9 ..            the node's threshold is between 5 and 6
    bands      -----|-|-|-|o|-|-|-|----- ..    o: its own

A band that nothing is inside parts the examples in one way, whose score is known. What any other leaves is what
the best of its thresholds left at the scan, and a bound under how it has changed. A side leaves h of its sums, a
concave function, so along a way from those of the scan to those of now h changes by the integral of its gradient.
The sides of a threshold take part in all edits beyond the band, and in some inside::

    beyond     what is on a side of the band has changed by d: the same for all its thresholds
    inside     what has come raises h (of numbers: see below), what was there at the scan and is gone lowers it

The way is taken one class after another, the edits beyond the band first. It stays in a box: of each class no less
than lies on the side of the band, or lay there at the scan; no more than this and all inside.

* Gini: the gradient of a class with the share p is (1 - p)^2 and the squares of the shares of all others.
* Entropy: the gradient is -log2 p, without a bound where p may be 0. So what one class makes of it is bounded as
  a whole: X(n + d) - X(n) - X(c + d) + X(c) of c in n, with X(n) = n log2 n. For d > 0 it grows with n and falls
  with c, for d < 0 the other way.
* Numbers: h is Q - S^2 / W. The sum of squares Q of both sides is that of the node, and the rest has the gradient
  (m^2, -2 m) by weight and sum, m the mean of the side. Labels are counted from near the node's mean, so that m is
  small. Beyond the band this makes m^2 dW - 2 m dS. Inside, an example y makes m^2 - 2 m y where it comes, and
  less that where it goes, on whichever side is worse.

Sums are whole numbers. All that is rounded is lowered by more than rounding can have added.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from algorithms.core.arrays import Int64s, int64
from algorithms.core.criteria import Criterion, by_criterion, coarse_rounding, xlogx_fixed
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import apart, inlined, jit
from algorithms.dynamic import bands
from algorithms.dynamic.bands import (
    AT,
    CENTER,
    GONE_NEGATIVE,
    GONE_POSITIVE,
    INSIDE,
    LOW,
    LOW_BEFORE,
    OWN,
    POSITIVE,
    SIZE,
    ZEROS,
    Bands,
)
from algorithms.dynamic.columns import lowered
from algorithms.dynamic.floors import Whole, left_by
from algorithms.dynamic.labels import by_target, score
from algorithms.dynamic.segment import HELD, Segment
from algorithms.dynamic.variance import SUM, WEIGHT, Variance

_PARTS = 16  # a band has at most one of so many parts of the thresholds, while there are bands enough
_ALONE = 6  # as far from a node's own threshold each has a band to itself
_ERROR = 2.0**-44  # of numbers: more than what rounding makes of sums of a dozen terms


class _Box(NamedTuple):
    """Between what a class of a side weighs, along a way, and the sums of that over all classes of the side."""

    low: int
    high: int
    least: int
    most: int
    least_squares: float
    most_squares: float


class _Layout(NamedTuple):
    """Where bands begin."""

    thresholds: int
    own: int  # the node's own is that of this number, in their order
    width: int  # a band has at most so many, but for the farthest
    low: int  # so many bands are below the node's own
    high: int  # and above


# --- what is counted, as kernels of scores want it


@inlined
def _has_no_class(criterion: Criterion, sums: Int64s, at: int) -> bool:
    total = int64(0)
    for k in range(sums.shape[1]):
        total += sums[at, k]
    return bool(total == 0)


@inlined
def _has_no_number(criterion: Variance, sums: Int64s, at: int) -> bool:
    return bool(sums[at, WEIGHT] == 0)


@inlined
def _class_sums(criterion: Criterion, sums: Int64s, at: int, center: int, below: Int64s) -> None:
    for k in range(below.size):
        below[k] = sums[at, k]


@inlined
def _number_sums(criterion: Variance, sums: Int64s, at: int, center: int, below: Int64s) -> None:
    below[WEIGHT] = sums[at, WEIGHT]
    below[SUM] = sums[at, SUM] + center * sums[at, WEIGHT]


@inlined
def _no_center(criterion: Criterion, totals: Int64s) -> int:
    return int64(0)


@inlined
def _near_mean(criterion: Variance, totals: Int64s) -> int:
    return totals[SUM] // totals[WEIGHT]


@inlined
def _nothing(criterion: Criterion, whole: Whole, totals: Int64s, center: int) -> float:
    return 0.0


@inlined
def _squares(criterion: Variance, whole: Whole, totals: Int64s, center: int) -> float:
    total = float(totals[SUM] - center * totals[WEIGHT])
    return whole.left + total * total / float(totals[WEIGHT])


_has_none = by_target("Return whether no example is counted.", _has_no_class, _has_no_number)
_write_sums = by_target("Write what is counted to `below`, as `score` takes it.", _class_sums, _number_sums)
_center_of = by_target("Return from where labels of a node are counted.", _no_center, _near_mean)
_base = by_target(
    "Return what `Bands.least` leaves out: of numbers the sum of squares of a node, counted from its center.",
    _nothing,
    _squares,
)


# --- a scan


@jit
def _bands_within(distance: int, width: int) -> int:
    """Return how many bands there are beside a node's own threshold as far as this. O(bands)."""
    count, begin = int64(0), int64(1)
    while begin <= distance:
        count += 1
        begin += min(begin >> 1, width) if begin >= _ALONE else 1
    return count


@jit
def _lay_out(segment: Segment, entries: int, below: float) -> _Layout:
    """Return the layout of a column that is sorted alone, with the node's own threshold just above a value."""
    values = segment.found_value
    has_zeros = entries < segment.sizes[HELD]
    thresholds, own = int64(has_zeros) - 1, int64(has_zeros and below > 0.0)
    for at in range(entries):
        if at == 0 or values[at] != values[at - 1]:
            thresholds += 1
            own += int64(values[at] < below)
    width = max(thresholds // _PARTS, int64(1))
    low, high = _bands_within(own, width), _bands_within(thresholds - 1 - own, width)
    most = int64(bands.WIDTH - 3)  # beside the node's own, and those that part nothing
    if low + high > most:
        low = min(low, max(most >> 1, most - high))
        high = most - low
    return _Layout(thresholds, own, width, low, high)


@inlined
def _band_of(layout: _Layout, number: int) -> int:
    """Return which band a threshold is in: 0 the node's own, 1 and -1 those beside it, and so on."""
    within = _bands_within(abs(number - layout.own), layout.width)
    return -min(within, layout.low) if number < layout.own else min(within, layout.high)


@jit
def scan(
    criterion: Any,
    held: Bands,
    row: int,
    segment: Segment,
    entries: int,
    below: float,
    is_own: bool,
    whole: Whole,
    lost: float,
) -> float:
    """Lay out the bands of a column, which is sorted alone, in an empty row; score all its thresholds.

    Parameters
    ----------
    entries : int
        How many examples have the feature.
    below : float
        The threshold in the middle is just above it: the node's where the column `is_own`, else the best one.
    is_own : bool
        Whether that one is left out of the floors.
    whole : Whole
        What the node leaves; its sums are in `totals`.
    lost : float
        See columns.py.

    Returns
    -------
    float
        A floor under what thresholds leave. O(examples + classes times different values).
    """
    layout = _lay_out(segment, entries, below)
    center = _center_of(criterion, segment.totals)
    held.heads[row, SIZE] = layout.low + layout.high + 3
    held.heads[row, OWN] = layout.low + 1 if is_own else 0
    held.heads[row, CENTER] = center
    _count_zeros(criterion, held, row, segment, entries)
    base = _base(criterion, whole, segment.totals, center)
    _begin(held, row, int64(0), -math.inf, whole.left, base)
    floor = whole.left
    values, has_zeros = segment.found_value, entries < segment.sizes[HELD]
    at, band, last = int64(0), int64(0), int64(0)
    for number in range(layout.thresholds + 1):
        is_zero = has_zeros and (at == entries or values[at] > 0.0)
        here = 0.0 if is_zero else values[at]
        before, last = last, _band_of(layout, int64(number))
        begins = number in (0, layout.thresholds) or last != before
        if begins:
            band += 1
            _begin(held, row, band, here, whole.left, base)
        cell = 2 * band + (AT if begins else INSIDE)
        if is_zero:
            _add_up(held.scratch, ZEROS, held.sums[row], cell)
            _add_up(held.scratch, ZEROS, held.scratch, LOW)
            has_zeros = False
        while at < entries and values[at] == here:
            i = int64(segment.found_owner[at])
            bands.add(criterion, held.sums[row], cell, center, segment.label[i], segment.weight[i])
            bands.add(criterion, held.scratch, LOW, center, segment.label[i], segment.weight[i])
            at += 1
        if number < layout.thresholds and not (is_own and number == layout.own):
            _write_sums(criterion, held.scratch, LOW, center, segment.below)
            left = left_by(criterion, whole, score(criterion, segment.below, segment.totals))
            floor = min(floor, left)
            if begins or left < held.floors[row, band]:
                held.floors[row, band] = left
                held.least[row, band] = left - base
    held.edges[row, band + 1] = math.inf
    for each in range(band + 1):
        held.floors[row, each] = lowered(lowered(held.floors[row, each] - whole.error) + lost)
        held.least[row, each] -= whole.error
        for place in (AT, INSIDE):
            _add_up(held.sums[row], 2 * each + place, held.before[row], 2 * each + place)
    return floor - whole.error


@inlined
def _begin(held: Bands, row: int, band: int, edge: float, left: float, base: float) -> None:
    """Begin a band whose thresholds leave as much as what parts nothing."""
    held.edges[row, band] = edge
    held.floors[row, band] = left
    held.least[row, band] = left - base


@jit
def _count_zeros(criterion: Any, held: Bands, row: int, segment: Segment, entries: int) -> None:
    """Write what a node weighs, and those without the feature, whose others are sorted alone."""
    scratch, center = held.scratch, held.heads[row, CENTER]
    for i in range(segment.sizes[HELD]):
        bands.add(criterion, held.whole, row, center, segment.label[i], segment.weight[i])
    for k in range(scratch.shape[1]):
        scratch[LOW, k] = 0
        scratch[ZEROS, k] = held.whole[row, k]
    for at in range(entries):
        i = int64(segment.found_owner[at])
        bands.add(criterion, scratch, ZEROS, center, segment.label[i], -segment.weight[i])


@inlined
def _add_up(source: Int64s, at: int, sums: Int64s, to: int) -> None:
    for k in range(sums.shape[1]):
        sums[to, k] += source[at, k]


# --- how what a side leaves may have changed


@inlined
def _gini_raised(criterion: Criterion, more: int, box: _Box) -> float:
    others, size = float(box.least - box.low), float(box.low)
    rest = others / (float(box.high) + others)
    shares = max(box.least_squares - size * size, 0.0) / (float(box.most) * float(box.most))
    return more * PER_UNIT * (rest * rest + shares)


@inlined
def _entropy_raised(criterion: Criterion, more: int, box: _Box) -> float:
    table = criterion.table
    of_all = xlogx_fixed(table, box.least + more) - xlogx_fixed(table, box.least)
    return max(of_all - xlogx_fixed(table, box.high) + xlogx_fixed(table, box.high - more), 0.0)


@inlined
def _gini_lowered(criterion: Criterion, less: int, box: _Box) -> float:
    others, size = float(box.most - box.high), float(box.high)
    rest = others / (float(box.low) + others) if box.low + box.most > box.high else 1.0
    shares = rest * rest
    if box.least > 0:
        squares = max(box.most_squares - size * size, 0.0) / (float(box.least) * float(box.least))
        shares = min(shares, squares)
    return less * PER_UNIT * (rest * rest + shares)


@inlined
def _entropy_lowered(criterion: Criterion, less: int, box: _Box) -> float:
    table = criterion.table
    of_all = xlogx_fixed(table, box.most) - xlogx_fixed(table, box.most - less)
    return max(of_all - xlogx_fixed(table, box.low + less) + xlogx_fixed(table, box.low), 0.0)


_raised = by_criterion(
    "Return by how much more of a class raises what a side leaves, at least.",
    entropy=_entropy_raised,
    gini=_gini_raised,
)
_lowered = by_criterion(
    "Return by how much less of a class lowers what a side leaves, at most.",
    entropy=_entropy_lowered,
    gini=_gini_lowered,
)


@inlined
def _beside(held: Bands, row: int, band: int, whole: Int64s, k: int, is_low: bool) -> tuple[int, int]:
    """Return what lies on a side of a band, at the scan and now; `whole` is what the node has now."""
    before, now = held.scratch[LOW_BEFORE, k], held.scratch[LOW, k]
    if not is_low:
        before = held.whole[row, k] - before - held.before[row, 2 * band + INSIDE, k]
        now = whole[k] - now - held.sums[row, 2 * band + INSIDE, k]
    return before, now


@inlined
def _limits(held: Bands, row: int, band: int, k: int, before: int, now: int) -> tuple[int, int]:
    """Return between what a class of a side has been and is."""
    had, has = held.before[row, 2 * band + INSIDE, k], held.sums[row, 2 * band + INSIDE, k]
    return min(before, now), max(before + had, now + max(had, has))


@apart
def _change_of_classes(criterion: Criterion, held: Bands, row: int, band: int, totals: Int64s) -> float:
    weight, change = int64(0), 0.0
    for is_low in (True, False):
        least, most = int64(0), int64(0)
        least_squares, most_squares = 0.0, 0.0
        for k in range(totals.size):
            before, now = _beside(held, row, band, totals, k, is_low)
            low, high = _limits(held, row, band, k, before, now)
            least += low
            most += high
            least_squares += float(low) * float(low)
            most_squares += float(high) * float(high)
        weight = max(weight, most)
        for k in range(totals.size):
            before, now = _beside(held, row, band, totals, k, is_low)
            low, high = _limits(held, row, band, k, before, now)
            box = _Box(low, high, least, most, least_squares, most_squares)
            if now > before:
                change += _raised(criterion, now - before, box)
            elif now < before:
                change -= _lowered(criterion, before - now, box)
            if held.gone[row, band, k] > 0:
                change -= _lowered(criterion, held.gone[row, band, k], box)
    return change - 2 * totals.size * coarse_rounding(weight, int64(0))


class _Mean(NamedTuple):
    """Between what the mean of a side has been, and by how much what it leaves has changed, but for the inside."""

    low: float
    high: float
    change: float
    error: float


@jit
def _mean(criterion: Variance, held: Bands, row: int, band: int, totals: Int64s, is_low: bool) -> _Mean:
    """Return what is known of the mean of a side."""
    before, now = _beside(held, row, band, totals, WEIGHT, is_low)
    lightest, heaviest = _limits(held, row, band, WEIGHT, before, now)
    lightest, heaviest = max(lightest, 1), max(heaviest, 1)  # what is empty has a sum of 0
    least = float(-held.heads[row, CENTER])  # of all labels that there can be
    sum_before, sum_now = _number_beside(held, row, band, totals, is_low)
    inside = 2 * band + INSIDE
    positive = max(held.before[row, inside, POSITIVE], held.sums[row, inside, POSITIVE])
    negative = max(_negative(held.before, row, inside), _negative(held.sums, row, inside))
    low, high = float(min(sum_before, sum_now) - negative), float(max(sum_before, sum_now) + positive)
    low = max(low / float(lightest if low < 0.0 else heaviest), least)
    high = min(high / float(heaviest if high < 0.0 else lightest), least + float(criterion.most))
    more, sum_of_more = float(now - before), float(sum_now - sum_before)
    change = min((more * low - 2.0 * sum_of_more) * low, (more * high - 2.0 * sum_of_more) * high)
    if more > 0.0 and more * low < sum_of_more < more * high:
        change = -sum_of_more * sum_of_more / more
    far = max(-low, high)
    return _Mean(low, high, change, far * (far * abs(more) + 2.0 * abs(sum_of_more)))


@inlined
def _negative(sums: Int64s, row: int, cell: int) -> int:
    """Return the sum of labels below 0, without the sign."""
    return sums[row, cell, POSITIVE] - sums[row, cell, SUM]


@apart
def _change_of_numbers(criterion: Variance, held: Bands, row: int, band: int, totals: Int64s) -> float:
    inside, gone = 2 * band + INSIDE, held.gone[row, band]
    one = _mean(criterion, held, row, band, totals, True)
    other = _mean(criterion, held, row, band, totals, False)
    low, high = min(one.low, other.low), max(one.high, other.high)
    far, negative = max(-low, high), max(-low, 0.0)
    nearest = max(min(max(one.low, -one.high), max(other.low, -other.high)), 0.0)
    # What has come is what is inside now but for what was at the scan and is not gone.
    weight = held.sums[row, inside, WEIGHT] - held.before[row, inside, WEIGHT] + gone[WEIGHT]
    above = held.sums[row, inside, POSITIVE] - held.before[row, inside, POSITIVE] + gone[GONE_POSITIVE]
    below = _negative(held.sums, row, inside) - _negative(held.before, row, inside) + gone[GONE_NEGATIVE]
    # That less is gone than may be would make both together no less: far is no less than nearest.
    raised = nearest * nearest * float(weight)
    of_come = 2.0 * (max(high, 0.0) * float(above) + negative * float(below))
    of_gone = 2.0 * (negative * float(gone[GONE_POSITIVE]) + max(high, 0.0) * float(gone[GONE_NEGATIVE]))
    of_gone += far * far * float(gone[WEIGHT])
    error = one.error + other.error + raised + of_come + of_gone
    return one.change + other.change + raised - of_come - of_gone - _ERROR * error


@inlined
def _number_beside(held: Bands, row: int, band: int, totals: Int64s, is_low: bool) -> tuple[int, int]:
    """Return the sum of labels on a side of a band, counted from the center, at the scan and now."""
    before, now = held.scratch[LOW_BEFORE, SUM], held.scratch[LOW, SUM]
    if not is_low:
        before = held.whole[row, SUM] - before - held.before[row, 2 * band + INSIDE, SUM]
        whole = totals[SUM] - held.heads[row, CENTER] * totals[WEIGHT]
        now = whole - now - held.sums[row, 2 * band + INSIDE, SUM]
    return before, now


_change_of = by_target(
    "Return by how much what any threshold of a band leaves has changed since the scan, at least.",
    _change_of_classes,
    _change_of_numbers,
)


# --- what thresholds leave now


@inlined
def _next_band(held: Bands, row: int, band: int) -> None:
    """Let `scratch` have what lies below a band, which comes after the one that it was of."""
    for k in range(held.scratch.shape[1]):
        if band == 0:
            held.scratch[LOW, k] = 0
            held.scratch[LOW_BEFORE, k] = 0
        else:
            held.scratch[LOW, k] += held.sums[row, 2 * band - 1, k]
            held.scratch[LOW_BEFORE, k] += held.before[row, 2 * band - 1, k]
        held.scratch[LOW, k] += held.sums[row, 2 * band, k]
        held.scratch[LOW_BEFORE, k] += held.before[row, 2 * band, k]


@jit
def floor_of(
    criterion: Any,
    held: Bands,
    row: int,
    own: float,
    whole: Whole,
    totals: Int64s,
    below: Int64s,
    lost: float,
    may_change: bool,
) -> float:
    """Return a floor under what all thresholds of a column leave but a node's own, whose score is `own`.

    It is -inf unless that surely is the one that the builder would choose: ties go to the lower threshold, and are
    not told of another column. The sums of the node are in `totals`; `below` is scratch. O(bands times classes).

    A band is asked where its own floor is spent, which sinks as those of columns do by what has been `lost`, and
    gets a new one if it `may_change`.
    """
    left, base = left_by(criterion, whole, own), _base(criterion, whole, totals, held.heads[row, CENTER])
    floor, own_band = math.inf, held.heads[row, OWN]
    for band in range(held.heads[row, SIZE]):
        _next_band(held, row, band)
        if 0 < band == own_band:
            continue
        bound = held.floors[row, band] - lost
        if not left < bound - whole.error:
            if _has_none(criterion, held.sums[row], 2 * band + INSIDE):
                _write_sums(criterion, held.scratch, LOW, held.heads[row, CENTER], below)
                now = score(criterion, below, totals)
                if now < own or (now == own and not 0 < own_band < band):
                    return -math.inf
                bound = left_by(criterion, whole, now) - whole.error
            else:
                bound = _bound(criterion, held, row, band, totals, base)
                if not left < bound - whole.error:
                    return -math.inf
            if may_change:
                held.floors[row, band] = lowered(bound + lost)
        floor = min(floor, bound)
    return floor


@jit
def _bound(criterion: Any, held: Bands, row: int, band: int, totals: Int64s, base: float) -> float:
    """Return a bound under what all thresholds of a band leave, below which `scratch` has what lies."""
    least = held.least[row, band]
    change = _change_of(criterion, held, row, band, totals)
    return base + least + change - _ERROR * (base + abs(least))


def bounds(criterion: Any, held: Bands, row: int, whole: Whole, totals: Int64s) -> list[float]:
    """Return a bound under what the thresholds of each band leave, for checks; that of the node's own is none."""
    base, found = _base(criterion, whole, totals, held.heads[row, CENTER]), []
    for band in range(held.heads[row, SIZE]):
        _next_band(held, row, band)
        found.append(float(_bound(criterion, held, row, band, totals, base)))
    return found
