"""Columns in the order of their values: many columns are sorted at once, by the bits of their values.

A merge sort of each column takes some 60 ns an entry, this half of it. The entries of a group of columns are put
in order by 11 bits of the value at a time, from the lowest bits on, and then go back to their columns: each finds
its values in order. Bits that are the same in all values, as in counts or in what was a float32, cost nothing. A
group fits into the cache. Short columns, and few entries, are sorted column by column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int64s, int64
from algorithms.core.jit import inlined, jit
from algorithms.core.sorting import sort
from algorithms.regression.elements import ordered

_GROUP = 1 << 16  # entries
_FEW = 1 << 11
_SHORT = 24  # entries of a column; a merge sort of so few compares neighbours alone
_BITS = 11  # of a digit
_MASK = (1 << _BITS) - 1
_DIGITS = 6  # 11 bits each, the last one 9


class Scratch(NamedTuple):
    """Room to sort in; of a group, or of the longest column."""

    value: Float64s
    item: Int64s  # column << 32 | owner
    other_value: Float64s
    other_item: Int64s
    counts: Int64s  # int64[2048], how often a digit has each value


def scratch(entries: int, longest: int) -> Scratch:
    """Make room for columns with so many entries in all, and in the longest."""
    size = max(min(entries, _GROUP), longest)
    values, items = np.empty((2, size)), np.empty((2, size), np.int64)
    return Scratch(values[0], items[0], values[1], items[1], np.zeros(1 << _BITS, np.int64))


@inlined
def _digit(value: float, which: int) -> int:
    """Return a digit of a number that is not 0; digits ascend with the numbers, from the last one on."""
    return (ordered(value) >> (_BITS * which)) & _MASK


@jit
def sort_columns(columns: Any, spare: Scratch, spare_owner: Any) -> None:
    """Put the entries of all columns that are not binary in order, equal values as they are. See `batch.Columns`.

    O(entries).
    """
    start = int64(0)
    while start < columns.begin.size:
        stop = start
        size = int64(0)
        while stop < columns.begin.size:
            length = columns.end[stop] - columns.begin[stop] if _is_long(columns, stop) else int64(0)
            if stop > start and size + length > _GROUP:
                break
            size += length
            stop += 1
        is_worth_it = size >= _FEW
        if is_worth_it:
            _sort_group(columns, spare, start, stop)
        for column in range(start, stop):
            if columns.binary[column] == 0 and not (is_worth_it and _is_long(columns, column)):
                begin, end = columns.begin[column], columns.end[column]
                sort(columns.value, columns.owner, begin, end, spare.value, spare_owner)
        start = stop


@inlined
def _is_long(columns: Any, column: int) -> bool:
    return columns.binary[column] == 0 and columns.end[column] - columns.begin[column] > _SHORT


@jit
def _sort_group(columns: Any, spare: Scratch, start: int, stop: int) -> None:
    """Sort the long ones of columns start to stop together."""
    value, item, other_value, other_item, counts = spare
    size = int64(0)
    first = int64(0)
    varied = int64(0)  # bits that are not the same in all values
    for column in range(start, stop):
        if not _is_long(columns, column):
            continue
        for at in range(columns.begin[column], columns.end[column]):
            value[size] = columns.value[at]
            item[size] = (column << 32) | int64(columns.owner[at])
            if size == 0:
                first = ordered(value[0])
            varied |= ordered(value[size]) ^ first
            size += 1
        columns.end[column] = columns.begin[column]
    for which in range(_DIGITS):
        if (varied >> (_BITS * which)) & _MASK == 0:
            continue
        for digit in range(counts.size):
            counts[digit] = 0
        for at in range(size):
            counts[_digit(value[at], which)] += 1
        before = int64(0)
        for digit in range(counts.size):
            counts[digit], before = before, before + counts[digit]
        for at in range(size):
            digit = _digit(value[at], which)
            other_value[counts[digit]] = value[at]
            other_item[counts[digit]] = item[at]
            counts[digit] += 1
        value, other_value = other_value, value
        item, other_item = other_item, item
    for at in range(size):
        column = item[at] >> 32
        to = columns.end[column]
        columns.end[column] = to + 1
        columns.value[to] = value[at]
        columns.owner[to] = item[at] & 0xFFFFFFFF
