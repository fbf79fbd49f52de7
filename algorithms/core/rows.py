"""Rows of class weights under a key (owner, item), in a chain for each owner: the one storage of trees.

A tree needs it three times: its nodes under (parent, branch), what a leaf saw under (leaf, feature), and the
values of a nominal feature, or the slots of a quantised one, under (feature's row, value or slot). Memory follows
what was seen, never the largest id.

::

    table:      [ .. hash|2 .. hash|0 .. ]        open addressing, see hashing.py
    cells:      row 0: (leaf 0, feature 7)  NONE   weight of class 0, of class 1, ..
                row 1: (leaf 0, feature 9)  0      ..            <- chain of leaf 0: 1 -> 0
                row 2: (leaf 5, feature 7)  NONE   ..            <- chain of leaf 5: 2
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import free_list, hashing
from algorithms.core.arrays import Int64s, extended
from algorithms.core.free_list import EVER as EVER
from algorithms.core.free_list import NONE as NONE
from algorithms.core.free_list import USED as USED
from algorithms.core.jit import ahead, inlined, jit
from algorithms.core.stored import stored

# Columns of `Rows.cells`.
KEY = 0  # owner << 32 | item; owner < 2^31, item < 2^32
NEXT = 1  # the next row of the same owner, newest first, or NONE
COUNT = 2  # of class 0, in units of 2^-20; then those of the others

_FREE_KEY = -1


@stored("table", "cells", "used")
class Rows(NamedTuple):
    """Class weights under keys."""

    table: Int64s  # int64[places]
    cells: Int64s  # int64[capacity, COUNT + c]; key and weights lie together, one cache miss a look-up
    used: Int64s  # int64[3], a free list through NEXT


def make(capacity: int, classes: int) -> Rows:
    """Return empty storage."""
    return Rows(
        table=hashing.table_for(capacity),
        cells=np.zeros((capacity, COUNT + classes), np.int64),
        used=np.array([0, 0, NONE], np.int64),
    )


def grown(rows: Rows, capacity: int) -> Rows:
    """Return the same storage with room for more rows."""
    return Rows(
        table=hashing.grown(rows.table, capacity),
        cells=extended(rows.cells, capacity),
        used=rows.used,
    )


@inlined
def room(rows: Rows) -> int:
    """Return how many rows can be made before the storage must grow."""
    return rows.cells.shape[0] - rows.used[USED]


@ahead(lambda: (make(1, 2), 0))
@inlined
def item_of(rows: Rows, row: int) -> int:
    """Return the item in a row's key."""
    return rows.cells[row, KEY] & 0xFFFFFFFF


@ahead(lambda: (make(1, 2), 0))
@inlined
def owner_of(rows: Rows, row: int) -> int:
    """Return the owner in a row's key."""
    return rows.cells[row, KEY] >> 32


@inlined
def find(rows: Rows, owner: int, item: int) -> int:
    """Return the row of (owner, item), or NONE."""
    table = rows.table
    hashed = hashing.mix(owner, item)
    wanted = (owner << 32) | item
    at = hashing.home(table, hashed)
    while True:
        entry = table[at]
        if entry == 0:
            return NONE
        if hashing.entry_hash(entry) == hashed:
            row = hashing.entry_row(entry)
            if rows.cells[row, KEY] == wanted:
                return row
        at = hashing.after(table, at)


@jit
def create(rows: Rows, owner: int, item: int, following: int) -> int:
    """Return a new row of weights 0 for a key that has none, ahead of `following` in its chain.

    There must be room.
    """
    row = free_list.take(rows.used, rows.cells[:, NEXT])
    rows.cells[row, KEY] = (owner << 32) | item
    rows.cells[row, NEXT] = following
    for column in range(COUNT, rows.cells.shape[1]):
        rows.cells[row, column] = 0
    hashing.put(rows.table, hashing.mix(owner, item), row)
    return row


@jit
def remove(rows: Rows, row: int) -> int:
    """Give back a row that its chain no longer needs, and return the one that followed it."""
    following = rows.cells[row, NEXT]
    hashing.take(rows.table, hashing.mix(owner_of(rows, row), item_of(rows, row)), row)
    rows.cells[row, KEY] = _FREE_KEY
    free_list.give(rows.used, rows.cells[:, NEXT], row)
    return following


@jit
def move(rows: Rows, row: int, owner: int, item: int, following: int) -> None:
    """Give a row another key, which no other has, and put it ahead of `following`."""
    hashing.take(rows.table, hashing.mix(owner_of(rows, row), item_of(rows, row)), row)
    rows.cells[row, KEY] = (owner << 32) | item
    rows.cells[row, NEXT] = following
    hashing.put(rows.table, hashing.mix(owner, item), row)


@jit
def rename(rows: Rows, row: int, item: int) -> None:
    """Put a row under another item of its owner, which no other row has once all that are renamed have been."""
    move(rows, row, owner_of(rows, row), item, rows.cells[row, NEXT])


def chain(rows: Rows, first: int) -> list[int]:
    """Return the rows of a chain. For `check` and snapshots."""
    found = []
    while first != NONE:
        found.append(first)
        first = int(rows.cells[first, NEXT])
    return found


def check(rows: Rows, chained: list[int]) -> None:
    """Raise AssertionError unless all invariants hold and the rows in use are those in chains. O(everything)."""
    high = int(rows.used[EVER])
    used = np.flatnonzero(rows.cells[:high, KEY] != _FREE_KEY).tolist()
    assert sorted(chained) == used, "a row is in no chain, or in two"
    free_list.check(rows.used, rows.cells[:, NEXT], used)
    hashing.check(rows.table, len(used))
    for row in used:
        assert find(rows, int(owner_of(rows, row)), int(item_of(rows, row))) == row, "not found under its key"
    assert (rows.cells[used, COUNT:] >= 0).all()
