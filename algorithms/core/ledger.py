"""The ledger of live examples: what a delete by id, an exact delete by value and a sliding window need.

A row is one live example: its key, label, weight and features. A named example's key is the digest of
its id; an anonymous one's is the digest of its content, and equal ones hang together as *twins*, newest
first. All live rows of an index form a list from oldest to newest, which is its window. A named example
that the window has dropped leaves its key behind (without features) for a while, so that a late delete
of it can be told from a delete of an id that never was.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core import free_list, hashing
from algorithms.core.arrays import Int64s, UInt32s, extended, int64
from algorithms.core.free_list import EVER as EVER
from algorithms.core.free_list import NONE as NONE
from algorithms.core.free_list import USED as USED
from algorithms.core.hashing import mix
from algorithms.core.jit import ahead, inlined, jit
from algorithms.core.stored import stored

# Columns of `Ledger.rows`.
HIGH, LOW = 0, 1  # the key, 61 bits each
OWNER = 2  # index * 2 + 1 for named examples, index * 2 for anonymous ones
STATE = 3  # FREE, LIVE or DROPPED
LABEL, WEIGHT = 4, 5
START, LENGTH = 6, 7  # its features in `Ledger.features`
OLDER, NEWER = 8, 9  # neighbours in the list of live (or dropped) rows of the index
TWIN = 10  # the next older row with the same key
ELDER = 11  # the next newer one

FREE, LIVE, DROPPED = 0, 1, 2

# Columns of `Ledger.heads`.
OLDEST, NEWEST, LIVES = 0, 1, 2  # ends and length of the list of live rows
FIRST_DROPPED, LAST_DROPPED, DROPS = 3, 4, 5  # likewise of the dropped ones

# Rows of `Ledger.counts` after those of a free list, which is linked through OLDER.
END, HELD = 3, 4  # end of what was written to `features`; how much of it belongs to live rows
NAMED = 5  # live named examples

_M61 = (1 << 61) - 1


@stored("table", "rows", "features", "heads", "counts")
class Ledger(NamedTuple):
    """Live examples of all indexes of a pool."""

    table: Int64s  # int64[power of two], see hashing.py; of twins only the newest is in it
    rows: Int64s  # int64[capacity, 12]
    features: UInt32s  # uint32[...]
    heads: Int64s  # int64[indexes, 6]
    counts: Int64s  # int64[6]


_EMPTY_HEAD = (NONE, NONE, 0, NONE, NONE, 0)


def make(indexes: int) -> Ledger:
    """Return an empty ledger."""
    ledger = Ledger(
        table=hashing.table_for(8),
        rows=np.zeros((8, 12), np.int64),
        features=np.zeros(64, np.uint32),
        heads=np.zeros((indexes, 6), np.int64),
        counts=np.array([0, 0, NONE, 0, 0, 0], np.int64),
    )
    ledger.heads[:] = _EMPTY_HEAD
    return ledger


def grown(ledger: Ledger, indexes: int) -> Ledger:
    """Return the ledger with room for more indexes."""
    before = len(ledger.heads)
    more = ledger._replace(heads=extended(ledger.heads, max(indexes, before)))
    more.heads[before:] = _EMPTY_HEAD
    return more


def with_rows(ledger: Ledger) -> Ledger:
    """Return the ledger with room for twice as many examples."""
    capacity = 2 * len(ledger.rows)
    return ledger._replace(table=hashing.grown(ledger.table, capacity), rows=extended(ledger.rows, capacity))


def with_features(ledger: Ledger, more: int) -> Ledger:
    """Return the ledger with room for `more` features, what dropped examples left behind squeezed out."""
    features = np.zeros(max(64, 2 * (int(ledger.counts[HELD]) + more)), np.uint32)
    _squeeze(ledger, features)
    return ledger._replace(features=features)


@ahead(lambda: (make(1), np.zeros(1, np.uint32)))
@jit
def _squeeze(ledger: Ledger, features: UInt32s) -> None:
    end = 0
    for row in range(ledger.counts[EVER]):
        if ledger.rows[row, STATE] == LIVE:
            start = ledger.rows[row, START]
            length = ledger.rows[row, LENGTH]
            for at in range(length):
                features[end + at] = ledger.features[start + at]
            ledger.rows[row, START] = end
            end += length
    ledger.counts[END] = end


@inlined
def room(ledger: Ledger, ones: int) -> tuple[bool, bool]:
    """Return whether there is room for one more row, and for so many more features."""
    rows = ledger.rows.shape[0] - ledger.counts[USED] > 0
    return rows, ledger.features.size - ledger.counts[END] >= ones


@jit
def content_key(features: UInt32s, start: int, stop: int, label: int, weight: int) -> tuple[int, int]:
    """Return the digest of an example's content, whatever the order of its features.

    Summands are below 2^61 + 2^61 + 2^32, so that sums fit.
    """
    high = (mix(label, 1) << 29) + mix(weight & 0xFFFFFFFF, weight >> 32)
    low = (mix(label, 2) << 29) + mix(weight >> 32, weight & 0xFFFFFFFF)
    for at in range(start, stop):
        feature = int64(features[at])
        high = (high + (mix(feature, 3) << 29) + mix(feature, 4)) & _M61
        low = (low + (mix(feature, 5) << 29) + mix(feature, 6)) & _M61
    return high, low


@jit
def _hash(owner: int, low: int) -> int:
    return mix((low ^ (low >> 32)) & 0xFFFFFFFF, owner)


@jit
def lookup(ledger: Ledger, owner: int, high: int, low: int) -> int:
    """Return the newest row with a key, or NONE."""
    table = ledger.table
    hashed = _hash(owner, low)
    mask = table.size - 1
    at = hashed & mask
    while True:
        entry = table[at]
        if entry == 0:
            return NONE
        if hashing.entry_hash(entry) == hashed:
            row = hashing.entry_row(entry)
            if (
                ledger.rows[row, LOW] == low
                and ledger.rows[row, HIGH] == high
                and ledger.rows[row, OWNER] == owner
            ):
                return row
        at = (at + 1) & mask


@jit
def _append(ledger: Ledger, row: int, first: int) -> None:
    """Add a row at the newest end of the list whose head columns begin at `first`."""
    index = ledger.rows[row, OWNER] >> 1
    last = ledger.heads[index, first + 1]
    ledger.rows[row, OLDER] = last
    ledger.rows[row, NEWER] = NONE
    if last != NONE:
        ledger.rows[last, NEWER] = row
    else:
        ledger.heads[index, first] = row
    ledger.heads[index, first + 1] = row
    ledger.heads[index, first + 2] += 1


@jit
def _detach(ledger: Ledger, row: int, first: int) -> None:
    """Take a row out of the list whose head columns begin at `first`."""
    index = ledger.rows[row, OWNER] >> 1
    older = ledger.rows[row, OLDER]
    newer = ledger.rows[row, NEWER]
    if older != NONE:
        ledger.rows[older, NEWER] = newer
    else:
        ledger.heads[index, first] = newer
    if newer != NONE:
        ledger.rows[newer, OLDER] = older
    else:
        ledger.heads[index, first + 1] = older
    ledger.heads[index, first + 2] -= 1


@jit
def add(
    ledger: Ledger,
    owner: int,
    high: int,
    low: int,
    label: int,
    weight: int,
    features: UInt32s,
    start: int,
    stop: int,
) -> None:
    """Enter a live example as the newest of its index. There must be room; a named key must be new."""
    counts = ledger.counts
    rows = ledger.rows
    elder = lookup(ledger, owner, high, low)
    row = free_list.take(counts, rows[:, OLDER])
    counts[NAMED] += owner & 1
    rows[row, HIGH] = high
    rows[row, LOW] = low
    rows[row, OWNER] = owner
    rows[row, STATE] = LIVE
    rows[row, LABEL] = label
    rows[row, WEIGHT] = weight
    rows[row, START] = counts[END]
    rows[row, LENGTH] = stop - start
    end = counts[END]
    for at in range(stop - start):
        ledger.features[end + at] = features[start + at]
    counts[END] += stop - start
    counts[HELD] += stop - start
    rows[row, TWIN] = elder
    rows[row, ELDER] = NONE
    if elder == NONE:
        hashing.put(ledger.table, _hash(owner, low), row)
    else:
        rows[elder, ELDER] = row
        hashing.swap(ledger.table, _hash(owner, low), elder, row)
    _append(ledger, row, OLDEST)


@jit
def _release_content(ledger: Ledger, row: int) -> None:
    ledger.counts[HELD] -= ledger.rows[row, LENGTH]
    ledger.counts[NAMED] -= ledger.rows[row, OWNER] & 1
    ledger.rows[row, LENGTH] = 0


@jit
def remove(ledger: Ledger, row: int) -> None:
    """Strike out a row, live or dropped."""
    rows = ledger.rows
    if rows[row, STATE] == LIVE:
        _release_content(ledger, row)
        _detach(ledger, row, OLDEST)
    else:
        _detach(ledger, row, FIRST_DROPPED)
    twin = rows[row, TWIN]
    elder = rows[row, ELDER]
    if twin != NONE:
        rows[twin, ELDER] = elder
    if elder != NONE:
        rows[elder, TWIN] = twin
    else:
        hashed = _hash(rows[row, OWNER], rows[row, LOW])
        if twin != NONE:
            hashing.swap(ledger.table, hashed, row, twin)
        else:
            hashing.take(ledger.table, hashed, row)
    rows[row, STATE] = FREE
    free_list.give(ledger.counts, rows[:, OLDER], row)


@jit
def shelve(ledger: Ledger, row: int, limit: int) -> None:
    """Let a live example leave its window: a named one is remembered while no more than `limit` are."""
    if ledger.rows[row, OWNER] & 1 == 0:
        remove(ledger, row)
        return
    index = ledger.rows[row, OWNER] >> 1
    _release_content(ledger, row)
    _detach(ledger, row, OLDEST)
    ledger.rows[row, STATE] = DROPPED
    _append(ledger, row, FIRST_DROPPED)
    if ledger.heads[index, DROPS] > limit:
        remove(ledger, ledger.heads[index, FIRST_DROPPED])


def live(ledger: Ledger, index: int) -> list[tuple[npt.NDArray[np.uint32], int, int]]:
    """Return (features, label, weight) of the live examples of an index, oldest first."""
    examples = []
    row = int(ledger.heads[index, OLDEST])
    while row != NONE:
        start, length = int(ledger.rows[row, START]), int(ledger.rows[row, LENGTH])
        examples.append(
            (ledger.features[start : start + length], int(ledger.rows[row, LABEL]), int(ledger.rows[row, WEIGHT]))
        )
        row = int(ledger.rows[row, NEWER])
    return examples


def check(ledger: Ledger) -> None:
    """Raise AssertionError unless every invariant of the ledger holds. O(everything)."""
    rows, counts = ledger.rows, ledger.counts
    seen: list[int] = []
    keys = set()
    for index in range(len(ledger.heads)):
        for first, state in ((OLDEST, LIVE), (FIRST_DROPPED, DROPPED)):
            before, row, length = NONE, int(ledger.heads[index, first]), 0
            while row != NONE:
                assert rows[row, STATE] == state
                assert rows[row, OWNER] >> 1 == index
                assert rows[row, OLDER] == before
                key = tuple(rows[row, [OWNER, HIGH, LOW]].tolist())
                newest = lookup(ledger, *key)
                twins = []
                while newest != NONE:
                    twins.append(newest)
                    newest = int(rows[newest, TWIN])
                assert row in twins, "a row is not found under its key"
                assert key[0] & 1 == 0 or len(twins) == 1, "two rows bear the same id"
                keys.add(key)
                seen.append(row)
                length += 1
                before, row = row, int(rows[row, NEWER])
            assert ledger.heads[index, first + 1] == before
            assert ledger.heads[index, first + 2] == length
    assert np.count_nonzero(ledger.table) == len(keys)
    free_list.check(counts, rows[:, OLDER], seen)
    alive = [row for row in seen if rows[row, STATE] == LIVE]
    assert counts[HELD] == sum(int(rows[row, LENGTH]) for row in alive)
    assert counts[NAMED] == sum(int(rows[row, OWNER]) & 1 for row in alive)
