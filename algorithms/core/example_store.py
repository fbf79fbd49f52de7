"""The store of live examples: what a delete by id, an exact delete by value and a sliding window need.

A row is one live example: its key, label, weight and features. A named example's key is the digest of
its id; an anonymous one's is the digest of its content, and equal ones hang together as *duplicates*, newest
first. All live rows of an index form a list from oldest to newest, which is its window. A named example
that the window has dropped leaves its key behind (without features) for a while, so that a late delete
of it can be told from a delete of an id that never was.

Where a window is a span of time the store has ages, see ages.py. Then a dropped id is remembered for as long as
the window is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core import ages, free_list, hashing
from algorithms.core.ages import Ages
from algorithms.core.arrays import Int64s, UInt32s, extended, int64
from algorithms.core.events import LEFT, SINCE, WHEN, Batch
from algorithms.core.free_list import EVER as EVER
from algorithms.core.free_list import NONE as NONE
from algorithms.core.free_list import USED as USED
from algorithms.core.hashing import mix
from algorithms.core.jit import ahead, inlined, jit
from algorithms.core.stored import stored

# Columns of `ExampleStore.rows`.
HIGH, LOW = 0, 1  # the key, 61 bits each
OWNER = 2  # index * 2 + 1 for named examples, index * 2 for anonymous ones
STATE = 3  # FREE, LIVE or DROPPED
LABEL, WEIGHT = 4, 5
START, LENGTH = 6, 7  # its features in `ExampleStore.features`
OLDER, NEWER = 8, 9  # neighbours in the list of live (or dropped) rows of the index
DUPLICATE = 10  # the next older row with the same key
ELDER = 11  # the next newer one

FREE, LIVE, DROPPED = 0, 1, 2

# Columns of `ExampleStore.heads`.
OLDEST, NEWEST, LIVES = 0, 1, 2  # ends and length of the list of live rows
FIRST_DROPPED, LAST_DROPPED, DROPS = 3, 4, 5  # likewise of the dropped ones

# Rows of `ExampleStore.counts` after those of a free list, which is linked through OLDER.
END, HELD = 3, 4  # end of what was written to `features`; how much of it belongs to live rows
NAMED = 5  # live named examples

ALL = 1 << 62  # a limit that nothing reaches

_M61 = (1 << 61) - 1


@stored("table", "rows", "features", "heads", "counts", None)
class ExampleStore(NamedTuple):
    """Live examples of all indexes of a pool."""

    table: Int64s  # int64[places], see hashing.py; of duplicates only the newest is in it
    rows: Int64s  # int64[capacity, 12]
    features: UInt32s  # uint32[...]
    heads: Int64s  # int64[indexes, 6]
    counts: Int64s  # int64[6]
    ages: Ages  # stored by the pool, where it asks for them


_EMPTY_HEAD = (NONE, NONE, 0, NONE, NONE, 0)


def make(indexes: int, *, aged: bool = False) -> ExampleStore:
    """Return an empty store, with ages or without."""
    store = ExampleStore(
        table=hashing.table_for(8),
        rows=np.zeros((8, 12), np.int64),
        features=np.zeros(64, np.uint32),
        heads=np.zeros((indexes, 6), np.int64),
        counts=np.array([0, 0, NONE, 0, 0, 0], np.int64),
        ages=ages.make(8 if aged else 0),
    )
    store.heads[:] = _EMPTY_HEAD
    return store


def grown(store: ExampleStore, indexes: int) -> ExampleStore:
    """Return the example store with room for more indexes."""
    before = len(store.heads)
    more = store._replace(heads=extended(store.heads, max(indexes, before)))
    more.heads[before:] = _EMPTY_HEAD
    return more


def with_rows(store: ExampleStore) -> ExampleStore:
    """Return the example store with room for twice as many examples."""
    is_short = ages.are_kept(store.ages) and not ages.room(store.ages)
    if is_short:
        store = store._replace(ages=ages.with_places(store.ages))
        if store.counts[USED] < len(store.rows):  # places alone were short, as some are another pool's
            return store
    capacity = 2 * len(store.rows)
    return store._replace(
        table=hashing.grown(store.table, capacity),
        rows=extended(store.rows, capacity),
        ages=ages.with_rows(store.ages, capacity),
    )


def with_features(store: ExampleStore, more: int) -> ExampleStore:
    """Return the example store with room for `more` features, what dropped examples left behind squeezed out."""
    features = np.zeros(max(64, 2 * (int(store.counts[HELD]) + more)), np.uint32)
    _squeeze(store, features)
    return store._replace(features=features)


@ahead(lambda: (make(1), np.zeros(1, np.uint32)))
@jit
def _squeeze(store: ExampleStore, features: UInt32s) -> None:
    end = 0
    for row in range(store.counts[EVER]):
        if store.rows[row, STATE] == LIVE:
            start = store.rows[row, START]
            length = store.rows[row, LENGTH]
            for at in range(length):
                features[end + at] = store.features[start + at]
            store.rows[row, START] = end
            end += length
    store.counts[END] = end


@inlined
def room(store: ExampleStore, ones: int) -> tuple[bool, bool]:
    """Return whether there is room for one more row, and for so many more features."""
    rows = store.rows.shape[0] - store.counts[USED] > 0
    if ages.are_kept(store.ages):
        rows = rows and ages.room(store.ages) > 0
    return rows, store.features.size - store.counts[END] >= ones


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
def lookup(store: ExampleStore, owner: int, high: int, low: int) -> int:
    """Return the newest row with a key, or NONE."""
    table = store.table
    hashed = _hash(owner, low)
    at = hashing.home(table, hashed)
    while True:
        entry = table[at]
        if entry == 0:
            return NONE
        if hashing.entry_hash(entry) == hashed:
            row = hashing.entry_row(entry)
            if store.rows[row, LOW] == low and store.rows[row, HIGH] == high and store.rows[row, OWNER] == owner:
                return row
        at = hashing.after(table, at)


@jit
def _append(store: ExampleStore, row: int, first: int) -> None:
    """Add a row at the newest end of the list whose head columns begin at `first`."""
    index = store.rows[row, OWNER] >> 1
    last = store.heads[index, first + 1]
    store.rows[row, OLDER] = last
    store.rows[row, NEWER] = NONE
    if last != NONE:
        store.rows[last, NEWER] = row
    else:
        store.heads[index, first] = row
    store.heads[index, first + 1] = row
    store.heads[index, first + 2] += 1


@jit
def _detach(store: ExampleStore, row: int, first: int) -> None:
    """Take a row out of the list whose head columns begin at `first`."""
    index = store.rows[row, OWNER] >> 1
    older = store.rows[row, OLDER]
    newer = store.rows[row, NEWER]
    if older != NONE:
        store.rows[older, NEWER] = newer
    else:
        store.heads[index, first] = newer
    if newer != NONE:
        store.rows[newer, OLDER] = older
    else:
        store.heads[index, first + 1] = older
    store.heads[index, first + 2] -= 1


@jit
def add(
    store: ExampleStore,
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
    counts = store.counts
    rows = store.rows
    elder = lookup(store, owner, high, low)
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
        store.features[end + at] = features[start + at]
    counts[END] += stop - start
    counts[HELD] += stop - start
    rows[row, DUPLICATE] = elder
    rows[row, ELDER] = NONE
    if elder == NONE:
        hashing.put(store.table, _hash(owner, low), row)
    else:
        rows[elder, ELDER] = row
        hashing.swap(store.table, _hash(owner, low), elder, row)
    _append(store, row, OLDEST)


@jit
def _release_content(store: ExampleStore, row: int) -> None:
    """Wipe what a row holds but its key: what is forgotten is in no array, and in no checkpoint, any more."""
    start = store.rows[row, START]
    for at in range(start, start + store.rows[row, LENGTH]):
        store.features[at] = 0
    store.counts[HELD] -= store.rows[row, LENGTH]
    store.counts[NAMED] -= store.rows[row, OWNER] & 1
    store.rows[row, LENGTH] = 0
    store.rows[row, LABEL] = 0
    store.rows[row, WEIGHT] = 0


@jit
def remove(store: ExampleStore, row: int) -> None:
    """Strike out a row, live or dropped, and wipe it."""
    rows = store.rows
    if ages.are_kept(store.ages):
        ages.forget(store.ages, row, rows[row, STATE] == LIVE)
    if rows[row, STATE] == LIVE:
        _release_content(store, row)
        _detach(store, row, OLDEST)
    else:
        _detach(store, row, FIRST_DROPPED)
    duplicate = rows[row, DUPLICATE]
    elder = rows[row, ELDER]
    if duplicate != NONE:
        rows[duplicate, ELDER] = elder
    if elder != NONE:
        rows[elder, DUPLICATE] = duplicate
    else:
        hashed = _hash(rows[row, OWNER], rows[row, LOW])
        if duplicate != NONE:
            hashing.swap(store.table, hashed, row, duplicate)
        else:
            hashing.take(store.table, hashed, row)
    rows[row, STATE] = FREE
    rows[row, OWNER] = 0
    rows[row, HIGH] = 0
    rows[row, LOW] = 0
    free_list.give(store.counts, rows[:, OLDER], row)


@jit
def expire(store: ExampleStore, row: int, limit: int) -> None:
    """Let a live example leave its window: a named one is remembered while no more than `limit` are."""
    if store.rows[row, OWNER] & 1 == 0:
        remove(store, row)
        return
    index = store.rows[row, OWNER] >> 1
    _release_content(store, row)
    _detach(store, row, OLDEST)
    if ages.are_kept(store.ages):
        ages.shelve(store.ages, row)
    store.rows[row, STATE] = DROPPED
    _append(store, row, FIRST_DROPPED)
    if store.heads[index, DROPS] > limit:
        remove(store, store.heads[index, FIRST_DROPPED])


# --- a window by time


@inlined
def date(store: ExampleStore, index: int, batch: Batch, event: int) -> None:
    """Give the newest example of an index, which an event has just inserted, its age, where ages are kept."""
    if ages.are_kept(store.ages):
        ages.enter(store.ages, store.heads[index, NEWEST], batch.clock[event, WHEN])


@inlined
def is_remembered(store: ExampleStore, row: int, batch: Batch, event: int, span: int) -> bool:
    """Return whether a dropped id counts as known: with ages, as long as it went no longer ago than a span."""
    if not ages.are_kept(store.ages):
        return True
    return store.ages.stamp[store.ages.place[row]] > batch.clock[event, WHEN] - 2 * span


@jit
def turn(store: ExampleStore, batch: Batch, event: int, span: int) -> int:
    """Return the row of the example whose turn it is at an event, or NONE; the event is its key's from now on."""
    if not ages.are_kept(store.ages):
        return int64(NONE)
    row = ages.oldest_due(store.ages, batch.clock[event, WHEN] - span)
    if row != NONE:
        batch.key[event] = store.rows[row, OWNER] >> 1
        batch.clock[event, SINCE] = store.ages.stamp[store.ages.place[row]]
    return row


@jit
def let_go(store: ExampleStore, row: int, batch: Batch, event: int, span: int) -> None:
    """Let the example whose turn it is go, and forget up to two ids that have been remembered for long enough."""
    expire(store, row, int64(ALL))
    counts = store.ages.counts
    counts[ages.GONE] += 1
    batch.clock[event, LEFT] = counts[ages.DUE]
    for _ in range(2):
        first = counts[ages.FIRST_GONE]
        if first == NONE or store.ages.stamp[first] > batch.clock[event, WHEN] - 2 * span:
            return
        if store.ages.row[first] < 0:  # its key has not moved to this pool yet
            return
        remove(store, int64(store.ages.row[first]))


def live(store: ExampleStore, index: int) -> list[tuple[npt.NDArray[np.uint32], int, int]]:
    """Return (features, label, weight) of the live examples of an index, oldest first."""
    examples = []
    row = int(store.heads[index, OLDEST])
    while row != NONE:
        start, length = int(store.rows[row, START]), int(store.rows[row, LENGTH])
        examples.append(
            (
                store.features[start : start + length],
                int(store.rows[row, LABEL]),
                int(store.rows[row, WEIGHT]),
            )
        )
        row = int(store.rows[row, NEWER])
    return examples


def check(store: ExampleStore) -> None:
    """Raise AssertionError unless every invariant of the example store holds. O(everything)."""
    rows, counts = store.rows, store.counts
    seen: list[int] = []
    keys = set()
    for index in range(len(store.heads)):
        for first, state in ((OLDEST, LIVE), (FIRST_DROPPED, DROPPED)):
            before, row, length = NONE, int(store.heads[index, first]), 0
            while row != NONE:
                assert rows[row, STATE] == state
                assert rows[row, OWNER] >> 1 == index
                assert rows[row, OLDER] == before
                key = tuple(rows[row, [OWNER, HIGH, LOW]].tolist())
                newest = lookup(store, *key)
                duplicates = []
                while newest != NONE:
                    duplicates.append(newest)
                    newest = int(rows[newest, DUPLICATE])
                assert row in duplicates, "a row is not found under its key"
                assert key[0] & 1 == 0 or len(duplicates) == 1, "two rows bear the same id"
                keys.add(key)
                seen.append(row)
                length += 1
                before, row = row, int(rows[row, NEWER])
            assert store.heads[index, first + 1] == before
            assert store.heads[index, first + 2] == length
    hashing.check(store.table, len(keys))
    free_list.check(counts, rows[:, OLDER], seen)
    alive = [row for row in seen if rows[row, STATE] == LIVE]
    assert counts[HELD] == sum(int(rows[row, LENGTH]) for row in alive)
    assert counts[NAMED] == sum(int(rows[row, OWNER]) & 1 for row in alive)
    ages.check(store.ages, alive, [row for row in seen if rows[row, STATE] == DROPPED])
