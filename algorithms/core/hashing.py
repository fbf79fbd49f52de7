"""Open addressing that finds row numbers by hash: the one hash table of slots, live examples and count groups.

An entry packs ``hash << 31 | row + 1`` into an int64, 0 is empty. The 32 hash bits in the entry keep
a probe away from the rows of other keys (a cache miss each), and let growth and deletion work without
reading any row. Deletion shifts the following entries back, so there are no tombstones to sweep.

A large table grows where it lies, some places at a time (linear hashing: Litwin, VLDB 1980), so that no event
waits while all entries are put into another one. Its last places, which are new, share the entries of as many at
its beginning, or in the middle; all others stay::

    8 places    [ 0  1  2  3  4  5  6  7 ]              the place where a probe begins: the hash mod 8
    10 places   [ 0  1  2  3  4  5  6  7  8  9 ]        the hash mod 16 where that is below 10, else mod 8:
                  ^  ^                    |  |          entries of 0 and 1 have parted with 8 and 9
                  |  +--------------------|--+
                  +-----------------------+

Which these are follows from the number of places, so a table is an array and nothing else.

All arithmetic stays below 2^63, so the compiled and the interpreted kernels agree without overflow.
"""

from __future__ import annotations

import numpy as np

from algorithms.core.arrays import Int64s, extended, int64, zeros
from algorithms.core.jit import ahead, inlined, jit

_M31 = (1 << 31) - 1
_M32 = (1 << 32) - 1
_SMALL = 1 << 15  # places; a smaller table is rehashed in less time than a batch takes
_STEP = 1 << 16  # places that a table grows by at most, in half a millisecond
_FEW = _STEP  # rows; a table is made for as many as there may be, up to so many
_SHARE = 16  # of a table's places as many rows come in while it doubles: a step for every 4,096 rows


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
def _mask(places: int) -> int:
    """Return the bits of a hash that say where to begin: those that numbers below `places`, up to 2^32, have."""
    mask = places - 1
    mask |= mask >> 1
    mask |= mask >> 2
    mask |= mask >> 4
    mask |= mask >> 8
    return mask | (mask >> 16)


@inlined
def home(table: Int64s, hashed: int) -> int:
    """Return the place where a probe for a hash begins."""
    mask = _mask(table.size)
    at = hashed & mask
    return at if at < table.size else at & (mask >> 1)


@inlined
def after(table: Int64s, at: int) -> int:
    """Return the place where a probe goes on."""
    at += 1
    return at if at < table.size else 0


@inlined
def _from(table: Int64s, first: int, at: int) -> int:
    """Return how many places a probe goes on from one to another."""
    return at - first if at >= first else at - first + table.size


@inlined
def put(table: Int64s, hashed: int, row: int) -> None:
    """Add a row under its hash. The table must not be full."""
    at = home(table, hashed)
    while table[at] != 0:
        at = after(table, at)
    table[at] = (hashed << 31) | (row + 1)


@jit
def take(table: Int64s, hashed: int, row: int) -> None:
    """Remove a row that is in the table, and close the gap behind it."""
    gap = home(table, hashed)
    wanted = (hashed << 31) | (row + 1)
    while table[gap] != wanted:
        gap = after(table, gap)
    at = gap
    while True:
        at = after(table, at)
        entry = table[at]
        if entry == 0:
            break
        # The entry may move back only as far as its home, which must not lie behind the gap.
        if _from(table, home(table, entry >> 31), at) >= _from(table, gap, at):
            table[gap] = entry
            gap = at
    table[gap] = 0


@jit
def swap(table: Int64s, hashed: int, row: int, other: int) -> None:
    """Let another row of the same hash take a row's place."""
    at = home(table, hashed)
    wanted = (hashed << 31) | (row + 1)
    while table[at] != wanted:
        at = after(table, at)
    table[at] = (hashed << 31) | (other + 1)


# --- growth


@inlined
def holds(table: Int64s) -> int:
    """Return how many rows a table is for: they fill no part of it to more than three quarters.

    A table of a power of two is for two thirds of its places. While it doubles, those that have not been shared
    out yet become fuller, by a sixteenth at most.
    """
    least = (_mask(table.size) + 1) >> 1  # the power of two that the table has outgrown
    least = least * 2 if least * 2 == table.size else least
    return least * 2 // 3 + (table.size - least) // _SHARE


def table_for(rows: int) -> Int64s:
    """Return an empty table for so many rows."""
    return grown(zeros((8,), np.int64), rows)


def grown(table: Int64s, rows: int, needed: int | None = None) -> Int64s:
    """Return a table with the same entries for so many rows; the one given is used no more.

    A large one is made for no more than are `needed`, where that is told: so none is enlarged by much at once.
    """
    if needed is not None:
        rows = min(rows, max(needed, _FEW))
    while holds(table) < rows:
        if len(table) < _SMALL:
            bigger = zeros((2 * len(table),), np.int64)
            _refill(table, bigger)
            table = bigger
        else:
            table = lengthened(table, min(len(table), _STEP))
    return table


def lengthened(table: Int64s, places: int) -> Int64s:
    """Return a table with so many more places, no more than it takes to the next power of two. O(places)."""
    longer = extended(table, len(table) + places)
    _share_out(longer, len(table))
    return longer


@ahead(lambda: (zeros((8,), np.int64), zeros((16,), np.int64)))
@jit
def _refill(table: Int64s, bigger: Int64s) -> None:
    for entry in table:
        if entry != 0:
            put(bigger, entry >> 31, (entry & _M31) - 1)


@inlined
def _put_again(table: Int64s, at: int) -> None:
    """Take out the entry of a place and put it in as if it came now. Those behind it may be cut off by that."""
    entry = table[at]
    table[at] = 0
    put(table, entry >> 31, (entry & _M31) - 1)


@ahead(lambda: (zeros((16,), np.int64), 8))
@jit
def _share_out(table: Int64s, before: int) -> None:
    """Bring to their places the entries of a table that had `before` of them.

    An entry goes to a new place or nearer to its home, never past an entry that stays: so those behind it, as far
    as there is no gap, follow in their order.
    """
    at = int64(0)
    while table[at] != 0:  # probes went on from the end to the beginning; the end is another now
        _put_again(table, at)
        at = after(table, at)
    at = before - ((_mask(table.size) + 1) >> 1)
    left = table.size - before
    while left > 0 or table[at] != 0:
        if table[at] != 0:
            _put_again(table, at)
        at = after(table, at)
        left -= 1


def check(table: Int64s, rows: int) -> None:
    """Raise AssertionError unless a table has so many entries, and a probe comes to each. O(places)."""
    (at,) = np.nonzero(table)
    assert len(at) == rows, "a row is not in the table, or twice"
    assert len(at) < len(table), "a full table would probe for ever"
    homes = np.array([home(table, int(entry) >> 31) for entry in table[at]], np.int64)
    gaps = np.concatenate([[0], np.cumsum(table == 0)])  # before each place
    between = gaps[at] - gaps[homes] + np.where(homes > at, gaps[-1], 0)
    assert not between.any(), "a gap cuts an entry off from its home"
