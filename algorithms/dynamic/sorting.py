"""A merge sort in place of numpy's, which would allocate: numbers with what they belong to."""

from __future__ import annotations

from algorithms.arrays import Float64s, Int32s, int64
from algorithms.jit import jit

_RUN = 12  # shorter runs are sorted by insertion


@jit
def sort(values: Float64s, whose: Int32s, start: int, stop: int) -> None:
    """Sort columns start to stop of row 0 by value, stably; row 1 is scratch. O(n log n), whatever the order.

    Parameters
    ----------
    values : float64[2, n]
        No NaN.
    whose : int32[2, n]
        Moves along.
    """
    for begin in range(start, stop, _RUN):
        for at in range(begin + 1, min(begin + _RUN, stop)):
            value = values[0, at]
            owner = whose[0, at]
            to = at
            while to > begin and values[0, to - 1] > value:
                values[0, to] = values[0, to - 1]
                whose[0, to] = whose[0, to - 1]
                to -= 1
            values[0, to] = value
            whose[0, to] = owner
    side = 0
    width = int64(_RUN)
    while width < stop - start:
        for begin in range(start, stop, 2 * width):
            _merge(values, whose, side, begin, min(begin + width, stop), min(begin + 2 * width, stop))
        side = 1 - side
        width *= 2
    if side == 1:
        for at in range(start, stop):
            values[0, at] = values[1, at]
            whose[0, at] = whose[1, at]


@jit
def _merge(values: Float64s, whose: Int32s, side: int, start: int, middle: int, stop: int) -> None:
    """Merge two sorted runs of a row into the other row."""
    other = 1 - side
    left = start
    right = middle
    for at in range(start, stop):
        if left < middle and (right >= stop or values[side, left] <= values[side, right]):
            values[other, at] = values[side, left]
            whose[other, at] = whose[side, left]
            left += 1
        else:
            values[other, at] = values[side, right]
            whose[other, at] = whose[side, right]
            right += 1
