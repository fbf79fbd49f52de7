"""Open addressing that finds row numbers by hash: the one hash table of slots, live examples and count groups.

An entry packs ``hash << 31 | row + 1`` into an int64, 0 is empty. The 32 hash bits in the entry keep
a probe away from the rows of other keys (a cache miss each), and let growth and deletion work without
reading any row. Deletion shifts the following entries back, so there are no tombstones to sweep.

All arithmetic stays below 2^63, so the compiled and the interpreted kernels agree without overflow.
"""

from __future__ import annotations

import numpy as np

from algorithms.core.arrays import Int64s, zeros
from algorithms.core.jit import ahead, inlined, jit

_M31 = (1 << 31) - 1
_M32 = (1 << 32) - 1


@inlined
def mix(x: int, y: int) -> int:
    """Return a 32-bit hash of two numbers below 2^32; sequential inputs scatter.

    The factors are below 2^31, so no product reaches 2^63.
    """
    h = ((x * 0x2545F491) ^ (y * 0x5851F42D)) & _M32
    h ^= h >> 16
    h = (h * 0x2C1B3C6D) & _M32
    h ^= h >> 13
    h = (h * 0x297A2D39) & _M32
    return h ^ (h >> 16)


@inlined
def entry_row(entry: int) -> int:
    """Return the row number in a table entry (not 0)."""
    return (entry & _M31) - 1


@inlined
def entry_hash(entry: int) -> int:
    """Return the hash in a table entry."""
    return entry >> 31


@inlined
def put(table: Int64s, hashed: int, row: int) -> None:
    """Add a row under its hash. The table must not be full."""
    mask = table.size - 1
    at = hashed & mask
    while table[at] != 0:
        at = (at + 1) & mask
    table[at] = (hashed << 31) | (row + 1)


@jit
def take(table: Int64s, hashed: int, row: int) -> None:
    """Remove a row that is in the table, and close the gap behind it."""
    mask = table.size - 1
    gap = hashed & mask
    wanted = (hashed << 31) | (row + 1)
    while table[gap] != wanted:
        gap = (gap + 1) & mask
    at = gap
    while True:
        at = (at + 1) & mask
        entry = table[at]
        if entry == 0:
            break
        home = (entry >> 31) & mask
        # The entry may move back only as far as its home: home must not lie in (gap, at], cyclically.
        if ((at - home) & mask) >= ((at - gap) & mask):
            table[gap] = entry
            gap = at
    table[gap] = 0


@jit
def swap(table: Int64s, hashed: int, row: int, other: int) -> None:
    """Let another row of the same hash take a row's place."""
    mask = table.size - 1
    at = hashed & mask
    wanted = (hashed << 31) | (row + 1)
    while table[at] != wanted:
        at = (at + 1) & mask
    table[at] = (hashed << 31) | (other + 1)


@ahead(lambda: (table_for(1), table_for(1)))
@jit
def _refill(table: Int64s, bigger: Int64s) -> None:
    for entry in table:
        if entry != 0:
            put(bigger, entry >> 31, (entry & _M31) - 1)


def table_for(rows: int) -> Int64s:
    """Return an empty table that `rows` rows fill to at most two thirds."""
    return zeros((_size_for(rows),), np.int64)


def _size_for(rows: int) -> int:
    size = 8
    while size * 2 < rows * 3:
        size *= 2
    return size


def grown(table: Int64s, rows: int) -> Int64s:
    """Return a table with the same entries that `rows` rows fill to at most two thirds."""
    if _size_for(rows) <= len(table):
        return table
    bigger = table_for(rows)
    _refill(table, bigger)
    return bigger
