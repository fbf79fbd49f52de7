"""A free list: rows of an array that are given out, given back and given out again, last in, first out.

::

    used    [2, 5, 3]           2 rows in use, 5 ever used, 3 is the first free one
    links   [ ., ., -1, 4, 2 ]  of a free row the next free one: 3 -> 4 -> 2

`links` is an array that has no other use for the rows that are free, or one column of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int64s, int64
from algorithms.core.jit import inlined

NONE = -1

# What `used` holds.
USED = 0  # rows in use
EVER = 1  # rows ever used: from here on the array is untouched
FREE = 2  # the first free row, or NONE


@inlined
def take(used: Int64s, links: npt.NDArray[np.integer]) -> int:
    """Return a row that is not in use; there must be one. What it held is still in it. O(1)."""
    row = used[FREE]
    if row != NONE:
        used[FREE] = int64(links[row])
    else:
        row = used[EVER]
        used[EVER] += 1
    used[USED] += 1
    return row


@inlined
def give(used: Int64s, links: npt.NDArray[np.integer], row: int) -> None:
    """Give back a row. O(1)."""
    links[row] = used[FREE]
    used[FREE] = row
    used[USED] -= 1


def check(used: Int64s, links: npt.NDArray[np.integer], in_use: list[int]) -> None:
    """Raise AssertionError unless these rows are in use, each once, and all others are free. O(rows)."""
    free: list[int] = []
    row = int(used[FREE])
    while row != NONE:
        assert len(free) < used[EVER], "the free list runs in a circle"
        free.append(row)
        row = int(links[row])
    assert used[USED] == len(in_use)
    assert sorted([*in_use, *free]) == list(range(int(used[EVER]))), "a row is lost or in two places"
