"""Columns are put in order by counting: small whole numbers as they are, others by digits and insertion."""

from __future__ import annotations

from algorithms.core.arrays import Float64s, Int32s, Int64s, int64
from algorithms.core.jit import apart, inlined, jit
from algorithms.core.sorting import sort

DIGITS = 2048  # values of a digit
_SHORT = 12  # entries; up to so many, insertion is faster than anything else
_LONG = 1024  # entries; below it one digit is enough
_HUGE, _TINY = 1e300, 1e-290  # beyond them a spread, or what divides by it, may be infinite
_PLACES = 4  # an entry, of a single digit
_MOVES = 4  # an entry; beyond it the digits told too little, and a merge sort is faster than insertion


@apart
def put_in_order(
    values: Float64s,
    whose: Int32s,
    start: int,
    stop: int,
    spare_values: Float64s,
    spare_whose: Int32s,
    digits: Int64s,
) -> None:
    """Sort finite values start to stop, stably, as `sort` does; `whose` moves along.

    O(n) where they are in order, small whole numbers, or spread evenly; else O(n log n).
    """
    at = start + 1
    while at < stop and values[at - 1] <= values[at]:
        at += 1
    if at >= stop:
        return
    size = stop - start
    if size <= _SHORT:
        sort(values, whose, start, stop, spare_values, spare_whose)
        return
    least, greatest, are_whole = _look_at(values, start, stop)
    spread = greatest - least if -_HUGE < least and greatest < _HUGE else 0.0
    if are_whole and spread < min(DIGITS, size):
        places = int64(spread) + 1
        _by_digit(values, whose, start, stop, spare_values, spare_whose, digits, least, 1.0, places)
        return
    if spread > _TINY:
        if size < _LONG:
            places = min(_PLACES * size, DIGITS)
            scale = (places - 1) / spread
            _by_digit(values, whose, start, stop, spare_values, spare_whose, digits, least, scale, places)
        else:
            scale = (DIGITS * DIGITS - 1) / spread
            _by_digits(values, whose, start, stop, spare_values, spare_whose, digits, least, scale)
        if _inserted(values, whose, start, stop):
            return
    sort(values, whose, start, stop, spare_values, spare_whose)


@inlined
def _look_at(values: Float64s, start: int, stop: int) -> tuple[float, float, bool]:
    """Return the least and the greatest value, and whether all are whole numbers that are not huge."""
    least, greatest = values[start], values[start]
    are_whole = True
    for at in range(start, stop):
        value = values[at]
        least = min(least, value)
        greatest = max(greatest, value)
        are_whole = are_whole and abs(value) < 1e9 and value == int64(value)
    return least, greatest, are_whole


@jit
def _by_digit(
    values: Float64s,
    whose: Int32s,
    start: int,
    stop: int,
    spare_values: Float64s,
    spare_whose: Int32s,
    digits: Int64s,
    least: float,
    scale: float,
    places: int,
) -> None:
    """Sort by the place of each value between the least and the greatest; what has one place keeps its order."""
    for digit in range(places):
        digits[digit] = 0
    for at in range(start, stop):
        digits[int64((values[at] - least) * scale)] += 1
        spare_values[at - start] = values[at]
        spare_whose[at - start] = whose[at]
    below = start
    for digit in range(places):
        count = digits[digit]
        digits[digit] = below
        below += count
    for at in range(stop - start):
        digit = int64((spare_values[at] - least) * scale)
        to = digits[digit]
        digits[digit] = to + 1
        values[to] = spare_values[at]
        whose[to] = spare_whose[at]


@inlined
def _digits_of(value: float, least: float, scale: float) -> tuple[int, int]:
    """Return the low and the high digit of a value: they never fall where values rise."""
    place = int64((value - least) * scale)
    return place % DIGITS, DIGITS + place // DIGITS


@jit
def _by_digits(
    values: Float64s,
    whose: Int32s,
    start: int,
    stop: int,
    spare_values: Float64s,
    spare_whose: Int32s,
    digits: Int64s,
    least: float,
    scale: float,
) -> None:
    """Sort by the place of each value between the least and the greatest; what has one place keeps its order."""
    for digit in range(2 * DIGITS):
        digits[digit] = 0
    for at in range(start, stop):
        low, high = _digits_of(values[at], least, scale)
        digits[low] += 1
        digits[high] += 1
    below_low, below_high = int64(0), start
    for digit in range(DIGITS):
        count = digits[digit]
        digits[digit] = below_low
        below_low += count
        count = digits[DIGITS + digit]
        digits[DIGITS + digit] = below_high
        below_high += count
    for at in range(start, stop):
        low, _ = _digits_of(values[at], least, scale)
        to = digits[low]
        digits[low] = to + 1
        spare_values[to] = values[at]
        spare_whose[to] = whose[at]
    for at in range(stop - start):
        _, high = _digits_of(spare_values[at], least, scale)
        to = digits[high]
        digits[high] = to + 1
        values[to] = spare_values[at]
        whose[to] = spare_whose[at]


@inlined
def _inserted(values: Float64s, whose: Int32s, start: int, stop: int) -> bool:
    """Sort what is nearly in order by insertion; return whether it was near enough."""
    left = _MOVES * (stop - start)
    for at in range(start + 1, stop):
        value, owner = values[at], whose[at]
        to = at
        while to > start and values[to - 1] > value:
            values[to] = values[to - 1]
            whose[to] = whose[to - 1]
            to -= 1
        values[to] = value
        whose[to] = owner
        left -= at - to
        if left < 0:
            return False
    return True
