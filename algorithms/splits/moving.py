"""Indexes that move from one pool to another, one by one: how a pool of which most is gone becomes small again.

What finders of exact answers keep besides the slots makes them quick and decides nothing, so it stays behind: in
its new pool an index begins with none of it, as one whose features all wait.
"""

from __future__ import annotations

import numpy as np

from algorithms.core import ages, example_store
from algorithms.core.arrays import Int32s, Int64s, UInt32s, int64
from algorithms.core.example_store import (
    ALL,
    DROPPED,
    DROPS,
    FIRST_DROPPED,
    HIGH,
    LABEL,
    LENGTH,
    LIVES,
    LOW,
    NAMED,
    NEWER,
    NEWEST,
    OLDEST,
    OWNER,
    START,
    STATE,
    WEIGHT,
)
from algorithms.core.jit import inlined, jit
from algorithms.core.names import refer
from algorithms.splits import kernel, slots
from algorithms.splits.kernel import State
from algorithms.splits.slots import BEST, C0, C1, CHAIN, FEATURES, GRAIN, N0, N1, NONE
from algorithms.splits.slots import NEWER as NEWER_SLOT
from algorithms.splits.slots import OLDER as OLDER_SLOT


@jit
def measure(pool: State, keys: Int32s, needs: Int64s) -> None:
    """Add what indexes hold to `needs`, int64[4]: slots, examples, features of all of these, of the largest."""
    for at in range(keys.size):
        index = int64(keys[at])
        needs[0] += pool.slots.heads[index, FEATURES]
        needs[1] += pool.store.heads[index, LIVES] + pool.store.heads[index, DROPS]
        row = pool.store.heads[index, OLDEST]
        while row != NONE:
            needs[2] += pool.store.rows[row, LENGTH]
            needs[3] = max(needs[3], pool.store.rows[row, LENGTH])
            row = pool.store.rows[row, NEWER]


@jit
def numbers_of(pool: State, keys: Int32s, found: UInt32s) -> int:
    """Write the features of some indexes and of their examples, some more than once; return how many."""
    count = int64(0)
    for each in range(keys.size):
        index = int64(keys[each])
        slot = int64(pool.slots.heads[index, CHAIN])
        while slot != NONE:
            found[count] = slots.feature_of(pool.slots, slot)
            count += 1
            slot = int64(pool.slots.chain[slot, OLDER_SLOT])
        row = pool.store.heads[index, OLDEST]
        while row != NONE:
            start = pool.store.rows[row, START]
            for at in range(start, start + pool.store.rows[row, LENGTH]):
                found[count] = pool.store.features[at]
                count += 1
            row = pool.store.rows[row, NEWER]
    return count


@inlined
def _renamed(numbers: Int64s, feature: int) -> int:
    """Return the number of a feature in the other pool; ids stay what they are."""
    return numbers[feature] if numbers.size > 0 else feature


@jit
def move(pool: State, keys: Int32s, into: State, to: Int32s, numbers: Int64s, features: UInt32s) -> int:
    """Move indexes, which are empty afterwards; return the weight of the heaviest.

    What pools tell of all indexes together, `alive` and `NAMED`, was taken over before the first: bounds hold for
    both pools as for one.

    Parameters
    ----------
    pool, into : State
        Where they are, and where they shall be, with room for them.
    keys, to : int32[n]
        Their numbers; `to` are empty.
    numbers : int64[...]
        The features' numbers in the other pool, by those here; of no size where features are ids.
    features : uint32[...]
        Scratch for the features of one example.
    """
    alive = into.alive[0]
    named = into.store.counts[NAMED]
    heaviest = int64(0)
    for at in range(keys.size):
        index = int64(keys[at])
        heaviest = max(heaviest, pool.slots.heads[index, N0] + pool.slots.heads[index, N1])
        _copy(pool, index, into, int64(to[at]), numbers, features)
        kernel.drop(pool, index)
    into.alive[0] = alive
    into.store.counts[NAMED] = named
    return heaviest


@jit
def _copy(pool: State, index: int, into: State, to: int, numbers: Int64s, features: UInt32s) -> None:
    for column in range(pool.heads.shape[1]):
        into.heads[to, column] = pool.heads[index, column]
    if pool.heads[index, kernel.LAST] >= 0:
        into.heads[to, kernel.LAST] = _renamed(numbers, pool.heads[index, kernel.LAST])
    _copy_slots(pool, index, into, to, numbers)
    row = pool.store.heads[index, OLDEST]
    while row != NONE:
        _copy_row(pool, row, into, to, numbers, features)
        row = pool.store.rows[row, NEWER]
    row = pool.store.heads[index, FIRST_DROPPED]
    while row != NONE:
        _copy_row(pool, row, into, to, numbers, features)
        row = pool.store.rows[row, NEWER]


@jit
def _copy_slots(pool: State, index: int, into: State, to: int, numbers: Int64s) -> None:
    heads = pool.slots.heads
    slot = int64(heads[index, CHAIN])
    while slot != NONE and pool.slots.chain[slot, OLDER_SLOT] != NONE:
        slot = int64(pool.slots.chain[slot, OLDER_SLOT])
    while slot != NONE:
        feature = _renamed(numbers, slots.feature_of(pool.slots, slot))
        copy = slots.create(into.slots, to, feature)
        refer(into.names, feature)
        into.slots.rows[copy, C0] = pool.slots.rows[slot, C0]
        into.slots.rows[copy, C1] = pool.slots.rows[slot, C1]
        if heads[index, BEST] == slot:
            into.slots.heads[to, BEST] = copy
        slot = int64(pool.slots.chain[slot, NEWER_SLOT])
    into.slots.heads[to, N0] = heads[index, N0]
    into.slots.heads[to, N1] = heads[index, N1]
    into.slots.heads[to, GRAIN] = heads[index, GRAIN]


@jit
def _copy_row(pool: State, row: int, into: State, to: int, numbers: Int64s, features: UInt32s) -> None:
    """Enter an example in the other pool as the newest of its index."""
    rows = pool.store.rows
    length = rows[row, LENGTH]
    for at in range(length):
        feature = _renamed(numbers, int64(pool.store.features[rows[row, START] + at]))
        features[at] = feature
        refer(into.names, feature)
    high = rows[row, HIGH]
    low = rows[row, LOW]
    label = rows[row, LABEL]
    weight = rows[row, WEIGHT]
    named = rows[row, OWNER] & 1
    if not named and numbers.size > 0:  # the digest of an anonymous one is made of the numbers of its features
        high, low = kernel.digest(features, 0, length, label, weight)
    example_store.add(into.store, to * 2 + named, high, low, label, weight, features, 0, length)
    copy = into.store.heads[to, NEWEST]
    if rows[row, STATE] == DROPPED:
        example_store.expire(into.store, copy, int64(ALL))
    if ages.are_kept(into.store.ages):
        ages.move(pool.store.ages, row, into.store.ages, copy)


NO_NUMBERS = np.zeros(0, np.int64)
