"""A merge sort in place of numpy's, which would allocate: numbers with what they belong to."""

from __future__ import annotations

from typing import Any

from algorithms.core.arrays import int64
from algorithms.core.jit import jit

_RUN = 12  # shorter runs are sorted by insertion


@jit
def sort(values: Any, whose: Any, start: int, stop: int, spare_values: Any, spare_whose: Any) -> None:
    """Sort values start to stop, none of them NaN, stably; `whose` moves along. O(n log n), whatever the order.

    The spare arrays have room for stop - start, and the types of those that they are spare for.
    """
    for begin in range(start, stop, _RUN):
        for at in range(begin + 1, min(begin + _RUN, stop)):
            value = values[at]
            owner = whose[at]
            to = at
            while to > begin and values[to - 1] > value:
                values[to] = values[to - 1]
                whose[to] = whose[to - 1]
                to -= 1
            values[to] = value
            whose[to] = owner
    width = int64(_RUN)
    while width < stop - start:
        for begin in range(start, stop - width, 2 * width):
            end = min(begin + 2 * width, stop)
            _merge(values, whose, begin, begin + width, end, spare_values, spare_whose)
        width *= 2


@jit
def _merge(
    values: Any, whose: Any, start: int, middle: int, stop: int, spare_values: Any, spare_whose: Any
) -> None:
    """Merge two sorted runs in place, the first of them by way of the spare arrays."""
    if values[middle - 1] <= values[middle]:
        return
    size = middle - start
    for at in range(size):
        spare_values[at] = values[start + at]
        spare_whose[at] = whose[start + at]
    left = int64(0)
    right = middle
    to = start
    while left < size:
        if right >= stop or spare_values[left] <= values[right]:
            values[to] = spare_values[left]
            whose[to] = spare_whose[left]
            left += 1
        else:
            values[to] = values[right]
            whose[to] = whose[right]
            right += 1
        to += 1
