"""Arrays without gaps: the rows in use get other numbers, in the same order, and what refers to them follows.

::

    array      [ a  .  .  b  .  c ]     in use: 0, 3, 5
    packed     [ a  b  c  . ]           0 -> 0, 3 -> 1, 5 -> 2

A pool that can be packed knows which of its columns refer to rows of which array. Rows that are given out later
do not come in the order in which they would have come in the arrays with gaps. So a pool whose answers depend on
the order of rows must not be packed.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from algorithms.core import hashing
from algorithms.core.arrays import Int64s
from algorithms.core.hashing import mix, put
from algorithms.core.jit import ahead, jit
from algorithms.core.rows import EVER, KEY, NEXT, NONE, Rows

_LEAST = 8  # rows of an array
_ITEM = 0xFFFFFFFF

A = TypeVar("A", bound=npt.NDArray[np.generic])


class Numbers:
    """The new numbers of the rows of an array.

    Parameters
    ----------
    in_use : ndarray of bool, shape (rows,)
        Which are in use.
    least : int
        Rows of the packed array at least.
    """

    def __init__(self, in_use: npt.NDArray[np.bool_], least: int = _LEAST) -> None:
        self.kept = np.flatnonzero(in_use)
        self._new = np.full(len(in_use) + 1, NONE, np.int64)  # the last is that of `NONE`
        self._new[self.kept] = np.arange(len(self.kept))
        self._capacity = least
        while self._capacity < len(self.kept):
            self._capacity *= 2

    def __len__(self) -> int:
        """Return how many rows are in use."""
        return len(self.kept)

    def of(self, rows: npt.NDArray[np.integer]) -> Int64s:
        """Return the new numbers of rows; that of `NONE`, and of a row that is not in use, is `NONE`."""
        return self._new[rows]

    def packed(self, array: A) -> A:
        """Return the rows of an array that are in use, with room as doubling makes it."""
        made = np.zeros((self._capacity, *array.shape[1:]), array.dtype)
        made[: len(self)] = array[self.kept]
        return made  # type: ignore[return-value]  # same dtype and rank

    @property
    def used(self) -> Int64s:
        """int64[3], a free list of which nothing is free."""
        return np.array([len(self), len(self), NONE], np.int64)


def numbers_of(rows: Rows, kept: npt.NDArray[np.bool_] | None = None) -> Numbers:
    """Return the new numbers of rows under keys: of all, or of those that are kept."""
    in_use = rows.cells[:, KEY] != NONE
    in_use[rows.used[EVER] :] = False
    return Numbers(in_use if kept is None else in_use & kept)


def owners_of(rows: Rows) -> Int64s:
    """Return the owner of each row; of one that is not in use it is nothing, or NONE."""
    owners: Int64s = rows.cells[:, KEY] >> 32
    owners[rows.used[EVER] :] = NONE
    return owners


def keys_of(rows: Rows, numbers: Numbers) -> tuple[Int64s, Int64s]:
    """Return owners and items of the rows in use."""
    key = rows.cells[numbers.kept, KEY]
    return key >> 32, key & _ITEM


def packed_rows(rows: Rows, numbers: Numbers, owner: Int64s, item: Int64s) -> Rows:
    """Return the rows in use under these owners and items, in the same chains."""
    count = len(numbers)
    cells = numbers.packed(rows.cells)
    cells[:count, KEY] = owner << 32 | item
    cells[:count, NEXT] = numbers.of(cells[:count, NEXT])
    return Rows(packed_table(len(cells), owner, item), cells, numbers.used)


def packed_table(capacity: int, owner: Int64s, item: Int64s) -> Int64s:
    """Return a table of rows 0, 1, .. under keys (owner, item), with room for so many."""
    table: Int64s = hashing.table_for(capacity)
    _enter(table, owner, item)
    return table


@ahead(lambda: (np.zeros(8, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)))
@jit
def _enter(table: Int64s, owner: Int64s, item: Int64s) -> None:
    for row in range(owner.size):
        put(table, mix(owner[row], item[row]), row)
