"""The storage that all indexes of a pool share: totals for each index, counts for each feature it has seen.

A *slot* holds the two counts of one (index, feature). Slots are dense, in order of first sight, so the
frequent features of a stream lie together in the cache; a hash table maps (index, feature) to the slot.
Memory therefore follows what was seen: feature 4294967295 is as cheap as 0. Everything about "feature
absent" follows from the totals, so an example touches only the features that it contains.

::

    table:  [ .. hash|2 .. hash|0 .. hash|1 .. ]           open addressing, see hashing.py
    rows:   slot 0: (index 0, feature 7)   c10  c11  mark
            slot 1: (index 0, feature 9)   c10  c11  mark   <- chain of index 0: 1 -> 0
            slot 2: (index 5, feature 7)   c10  c11  mark   <- chain of index 5: 2
    heads:  index 0: c0 c1 ..., index 5: c0 c1 ...
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import free_list, hashing
from algorithms.core.arrays import Int32s, Int64s, extended
from algorithms.core.free_list import EVER as EVER
from algorithms.core.free_list import NONE as NONE
from algorithms.core.free_list import USED as USED
from algorithms.core.jit import ahead, inlined, jit, prefetch
from algorithms.core.stored import stored

# Columns of `Slots.rows`. (C0, C1) are c_j10 and c_j11, int64 in units of 2^-20.
KEY, C0, C1 = 0, 1, 2
MARK = 3  # belongs to the finder; NO_MARK until it says otherwise

# Columns of `Slots.chain`: the neighbours in the list of all slots of one index, newest first.
OLDER, NEWER = 0, 1

# Columns of `Slots.heads`.
N0, N1 = 0, 1  # c_0 and c_1, the weights of the two labels in the node
FEATURES = 2  # how many slots the index has
CHAIN = 3  # its newest slot, or NONE
GRAIN = 4  # lowest bit of all weights ever seen: every count is a multiple of it; 0 before the first
BEST = 5  # the slot of the best split when last looked at, or NONE
HEAD_COLUMNS = 6

NO_MARK = -1
_FREE_KEY = -1
SPREAD = 1 << 16  # entries of a table: half a megabyte


@stored("table", "rows", "chain", "heads", "counts")
class Slots(NamedTuple):
    """Shared storage of the indexes of one pool."""

    table: Int64s  # int64[places]
    rows: Int64s  # int64[capacity, 4]
    chain: Int32s  # int32[capacity, 2]
    heads: Int64s  # int64[indexes, HEAD_COLUMNS]
    counts: Int64s  # int64[3], a free list through C0


def make(indexes: int, capacity: int) -> Slots:
    """Return empty storage."""
    slots = Slots(
        table=hashing.table_for(capacity),
        rows=np.zeros((capacity, 4), np.int64),
        chain=np.zeros((capacity, 2), np.int32),
        heads=np.zeros((indexes, HEAD_COLUMNS), np.int64),
        counts=np.array([0, 0, NONE], np.int64),
    )
    for index in range(indexes):
        reset(slots, index)
    return slots


def grown(slots: Slots, indexes: int, capacity: int, needed: int | None = None) -> Slots:
    """Return the same storage with room for more indexes and slots.

    The rows beyond `needed`, where that is told, come into the table later, as room for them costs time there.
    """
    before = len(slots.heads)
    more = Slots(
        table=hashing.grown(slots.table, capacity, needed),
        rows=extended(slots.rows, capacity) if capacity > len(slots.rows) else slots.rows,
        chain=extended(slots.chain, capacity) if capacity > len(slots.chain) else slots.chain,
        heads=extended(slots.heads, indexes) if indexes > before else slots.heads,
        counts=slots.counts,
    )
    more.heads[before:, [CHAIN, BEST]] = NONE
    return more


@jit
def reset(slots: Slots, index: int) -> None:
    """Make the head of an index that of an empty one."""
    for column in range(HEAD_COLUMNS):
        slots.heads[index, column] = 0
    slots.heads[index, CHAIN] = NONE
    slots.heads[index, BEST] = NONE


@ahead(lambda: (make(1, 1),))
@inlined
def room(slots: Slots) -> int:
    """Return how many slots can be made before the storage must grow."""
    return min(slots.rows.shape[0], hashing.holds(slots.table)) - slots.counts[USED]


@inlined
def feature_of(slots: Slots, slot: int) -> int:
    """Return the feature of a slot."""
    return slots.rows[slot, KEY] & 0xFFFFFFFF


@inlined
def hash_of(index: int, feature: int) -> int:
    """Return the hash under which the slot of (index, feature) is in the table."""
    return hashing.mix(index, feature)


@inlined
def lookup(slots: Slots, index: int, feature: int) -> int:
    """Return the slot of (index, feature), or NONE."""
    return find(slots, index, feature, hash_of(index, feature))


@inlined
def find(slots: Slots, index: int, feature: int, hashed: int) -> int:
    """Return the slot of (index, feature), whose hash is known, or NONE."""
    table = slots.table
    rows = slots.rows
    wanted = (index << 32) | feature
    at = hashing.home(table, hashed)
    while True:
        entry = table[at]
        if entry == 0:
            return NONE
        if hashing.entry_hash(entry) == hashed:
            slot = hashing.entry_row(entry)
            if rows[slot, KEY] == wanted:
                return slot
        at = hashing.after(table, at)


@inlined
def is_spread(slots: Slots) -> bool:
    """Return whether the storage may be larger than a cache, so that it pays to see to look-ups ahead."""
    return slots.table.size >= SPREAD


@inlined
def see_to_entry(slots: Slots, hashed: int) -> None:
    """Have the place in the table brought to the cache from which on a hash will be looked for."""
    prefetch(slots.table, hashing.home(slots.table, hashed))


@inlined
def see_to_row(slots: Slots, hashed: int) -> None:
    """Have the slot brought to the cache that probably has this hash; its entry is there by now."""
    entry = slots.table[hashing.home(slots.table, hashed)]
    if hashing.entry_hash(entry) == hashed:
        prefetch(slots.rows, hashing.entry_row(entry))


@inlined
def create(slots: Slots, index: int, feature: int) -> int:
    """Return a new slot with counts 0 for an (index, feature) that has none; there must be room."""
    return enter(slots, index, feature, hash_of(index, feature))


@inlined
def enter(slots: Slots, index: int, feature: int, hashed: int) -> int:
    """Return a new slot as `create` does, where the hash is known."""
    slot = free_list.take(slots.counts, slots.rows[:, C0])
    slots.rows[slot, KEY] = (index << 32) | feature
    slots.rows[slot, C0] = 0
    slots.rows[slot, C1] = 0
    slots.rows[slot, MARK] = NO_MARK
    hashing.put(slots.table, hashed, slot)
    newest = slots.heads[index, CHAIN]
    slots.chain[slot, OLDER] = newest
    slots.chain[slot, NEWER] = NONE
    if newest != NONE:
        slots.chain[newest, NEWER] = slot
    slots.heads[index, CHAIN] = slot
    slots.heads[index, FEATURES] += 1
    return slot


@inlined
def remove(slots: Slots, index: int, slot: int) -> None:
    """Give back a slot."""
    hashing.take(slots.table, hash_of(index, feature_of(slots, slot)), slot)
    older = slots.chain[slot, OLDER]
    newer = slots.chain[slot, NEWER]
    if older != NONE:
        slots.chain[older, NEWER] = newer
    if newer != NONE:
        slots.chain[newer, OLDER] = older
    else:
        slots.heads[index, CHAIN] = older
    slots.heads[index, FEATURES] -= 1
    if slots.heads[index, BEST] == slot:
        slots.heads[index, BEST] = NONE
    slots.rows[slot, KEY] = _FREE_KEY
    free_list.give(slots.counts, slots.rows[:, C0], slot)


def check(slots: Slots) -> None:
    """Raise AssertionError unless every invariant of the storage holds. O(everything)."""
    rows, heads = slots.rows, slots.heads
    high = int(slots.counts[EVER])
    used = [slot for slot in range(high) if rows[slot, KEY] != _FREE_KEY]
    free_list.check(slots.counts, rows[:, C0], used)
    hashing.check(slots.table, len(used))
    chained = []
    for index in range(len(heads)):
        n0, n1 = heads[index, N0], heads[index, N1]
        assert n0 >= 0 <= n1
        before, slot, length = NONE, int(heads[index, CHAIN]), 0
        while slot != NONE:
            key = int(rows[slot, KEY])
            assert key >> 32 == index
            assert lookup(slots, index, key & 0xFFFFFFFF) == slot, "a slot is not found under its key"
            assert slots.chain[slot, NEWER] == before
            a, b = rows[slot, C0], rows[slot, C1]
            assert 0 <= a <= n0, "a feature occurs more often than its label"
            assert 0 <= b <= n1, "a feature occurs more often than its label"
            assert a + b > 0, "an empty slot was kept"
            assert heads[index, GRAIN] > 0
            assert (a | b) % heads[index, GRAIN] == 0
            chained.append(slot)
            length += 1
            before, slot = slot, int(slots.chain[slot, OLDER])
        assert length == heads[index, FEATURES]
        assert heads[index, BEST] == NONE or rows[heads[index, BEST], KEY] >> 32 == index
    assert sorted(chained) == used
