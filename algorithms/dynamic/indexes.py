"""The exact split index of large nodes of two classes: what their binary features score is known, however many.

A node of more than `LARGE` examples has an index of its own (splits/exact.py) in one pool for all nodes: the class
weights of each binary feature that an example of the node has. An edit costs the features of its example, a look a
comparison, or a search of some dozen boxes. So such a node is scanned for its numeric features alone, whose floor
it keeps (slack.py).

::

    floor      numeric splits                      by a scan; infinity where there are none
    index      binary features, its own included   by counts
    rivals     none

An index says nothing that the examples of its node do not say, so it is no state: checkpoints have none. A node
that lacks one, after a restore or for lack of room, counts its examples at the next look, and the same is decided.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core import free_list
from algorithms.core.arrays import Int64s, extended, int64
from algorithms.core.criteria import coarse_rounding, score
from algorithms.core.example_store import LENGTH, START
from algorithms.core.free_list import NONE, USED
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY
from algorithms.core.names import Names
from algorithms.core.rows import Rows
from algorithms.dynamic import vocabulary
from algorithms.dynamic.examples import Examples
from algorithms.dynamic.segment import TOUCHED, Segment
from algorithms.splits import exact, scan, slots
from algorithms.splits.exact import SHORT
from algorithms.splits.quadtree import Quadtrees
from algorithms.splits.slots import BEST, C0, C1, CHAIN, GRAIN, N0, N1, Slots

LARGE = 200  # examples; a smaller node is scanned in less time than its index takes
_MARGIN = 4  # examples for whose features there is always room


class Indexes(NamedTuple):
    """The indexes of all nodes that have one; of no size where none can."""

    of: Int64s  # int64[nodes], the index of a node, plus 1; 0: it has none
    slots: Slots
    finder: Quadtrees
    following: Int64s  # int64[indexes], of a free one the next
    used: Int64s  # int64[3], a free list
    wanted: Int64s  # int64[1], room for how many slots has been missed


def make(nodes: int, *, has_indexes: bool) -> Indexes:
    """Return storage for a few beside so many nodes, or for none, which never grows."""
    size = 8 if has_indexes else 0
    return Indexes(
        np.zeros(nodes, np.int64),
        slots.make(size, 8 * size),
        exact.make(size, 8 * size),
        np.zeros(size, np.int64),
        np.array([0, 0, NONE], np.int64),
        np.zeros(1, np.int64),
    )


def beside(indexes: Indexes, nodes: int) -> Indexes:
    """Return the same storage beside more nodes."""
    return indexes._replace(of=extended(indexes.of, nodes))


def enlarged(indexes: Indexes) -> Indexes:
    """Return the same storage with the room that was missed, and no less than twice as much of what is short."""
    ones = int(indexes.wanted[0])
    capacity = len(indexes.slots.rows)
    if slots.room(indexes.slots) < 2 * ones:
        capacity = 2 * (capacity + ones)
    count = len(indexes.following)
    if 2 * indexes.used[USED] >= count:
        count *= 2
    finder = exact.grown(indexes.finder, count, capacity)
    while not exact.ready(finder, ones):
        finder = exact.enlarged(finder)
    indexes.wanted[0] = 0
    return indexes._replace(
        slots=slots.grown(indexes.slots, count, capacity),
        finder=finder,
        following=extended(indexes.following, count),
    )


@inlined
def is_short(indexes: Indexes) -> bool:
    """Return whether room has been missed since there was more."""
    return indexes.wanted[0] > 0


@inlined
def serves(indexes: Indexes, examples: int) -> bool:
    """Return whether a node of so many examples is worth an index."""
    return examples > LARGE and indexes.following.size > 0


@inlined
def _has_room(indexes: Indexes, ones: int) -> bool:
    """Return whether there is room for so many features more; where it is short, it is asked for."""
    if slots.room(indexes.slots) < _MARGIN * ones or not exact.ready(indexes.finder, _MARGIN * ones):
        indexes.wanted[0] = max(indexes.wanted[0], _MARGIN * ones)
    return slots.room(indexes.slots) >= ones and exact.ready(indexes.finder, ones)


@jit
def take(indexes: Indexes, node: int) -> int:
    """Return the index that a node has, plus 1, and leave it without; 0: it has none."""
    taken = indexes.of[node]
    indexes.of[node] = 0
    return taken


@jit
def drop(indexes: Indexes, node: int) -> None:
    """Give back the index that a node may have."""
    if indexes.of[node] > 0:
        end(indexes, take(indexes, node) - 1)


@jit
def begin(indexes: Indexes, segment: Segment, words: Rows) -> int:
    """Return a new index of the node whose features a segment has counted, or NONE. O(its features)."""
    features = int64(0)
    for at in range(segment.sizes[TOUCHED]):
        column = segment.touched[at]
        if segment.numeric[column] == 0 and segment.present[column] > 0:
            features += 1
    if not _has_room(indexes, features):
        return int64(NONE)
    if indexes.used[USED] == indexes.following.size:
        indexes.wanted[0] = max(indexes.wanted[0], int64(1))
        return int64(NONE)
    index = free_list.take(indexes.used, indexes.following)
    slots.reset(indexes.slots, index)
    exact.start(indexes.finder, index)
    bits = segment.totals[0] | segment.totals[1]
    indexes.slots.heads[index, N0] = segment.totals[0]
    indexes.slots.heads[index, N1] = segment.totals[1]
    for at in range(segment.sizes[TOUCHED]):
        column = segment.touched[at]
        if segment.numeric[column] == 0 and segment.present[column] > 0:
            slot = slots.create(indexes.slots, index, vocabulary.feature_of(words, column))
            indexes.slots.rows[slot, C0] = segment.counts[column, 0]
            indexes.slots.rows[slot, C1] = segment.counts[column, 1]
            bits |= segment.counts[column, 0] | segment.counts[column, 1]
    indexes.slots.heads[index, GRAIN] = bits & -bits
    return index


@jit
def end(indexes: Indexes, index: int) -> None:
    """Give back an index. O(its features)."""
    slot = indexes.slots.heads[index, CHAIN]
    while slot != NONE:
        exact.removing(indexes.finder, indexes.slots, index, slot)
        slots.remove(indexes.slots, index, slot)
        slot = indexes.slots.heads[index, CHAIN]
    exact.dropping(indexes.finder, indexes.slots, index)
    slots.reset(indexes.slots, index)
    free_list.give(indexes.used, indexes.following, index)


@jit
def note(
    indexes: Indexes,
    criterion: Any,
    words: Rows,
    examples: Examples,
    index: int,
    row: int,
    label: int,
    change: int,
) -> bool:
    """Let an example's weight come to an index or leave it; False, and nothing is changed, without room."""
    held, finder = indexes.slots, indexes.finder
    start = examples.rows[row, START]
    stop = start + examples.rows[row, LENGTH]
    if not _has_room(indexes, stop - start):
        return False
    if change < 0:
        exact.taking(finder, held, criterion, index, label, -change)
    held.heads[index, N0 + label] += change
    lowest_bit = change & -change
    if lowest_bit < held.heads[index, GRAIN]:
        held.heads[index, GRAIN] = lowest_bit
    for at in range(start, stop):
        feature = int64(examples.features[at])
        slot = slots.lookup(held, index, feature)
        if slot == NONE:
            if change < 0 or words.cells[vocabulary.find(words, feature), vocabulary.KIND] != BINARY:
                continue
            slot = slots.create(held, index, feature)
        held.rows[slot, C0 + label] += change
        exact.touched(finder, held, index, slot, label, change)
        if held.rows[slot, C0] + held.rows[slot, C1] == 0:
            exact.removing(finder, held, index, slot)
            slots.remove(held, index, slot)
    return True


@jit
def best(indexes: Indexes, criterion: Any, names: Names, index: int) -> int:
    """Return the slot of the feature that scores least, the lowest of equal ones; NONE: none parts the node."""
    slot = exact.find(indexes.finder, indexes.slots, names, criterion, index, int64(NONE))
    if slot == SHORT:
        indexes.wanted[0] = max(indexes.wanted[0], indexes.slots.heads[index, slots.FEATURES])
        slot, _ = scan.scan(indexes.slots, names, criterion, index, int64(NONE))
    indexes.slots.heads[index, BEST] = slot
    return slot


@inlined
def feature_of(indexes: Indexes, slot: int) -> int:
    """Return the feature of a slot."""
    return slots.feature_of(indexes.slots, slot)


@inlined
def score_of(indexes: Indexes, criterion: Any, index: int, slot: int) -> float:
    """Return the score of a feature, by its slot."""
    held = indexes.slots
    return score(criterion, held.rows[slot, C0], held.rows[slot, C1], held.heads[index, N0], held.heads[index, N1])


@jit
def surely_best(indexes: Indexes, criterion: Any, index: int) -> int:
    """Return what `best` surely would, NONE where that takes a search; nothing is changed."""
    held = indexes.slots
    slot = held.heads[index, BEST]
    if slot == NONE:
        return slot
    n0, n1 = held.heads[index, N0], held.heads[index, N1]
    if held.rows[slot, C0] + held.rows[slot, C1] == n0 + n1:
        return int64(NONE)
    error = coarse_rounding(n0, n1)
    is_sure = score_of(indexes, criterion, index, slot) + error < indexes.finder.others[index]
    return slot if is_sure else int64(NONE)


def check(indexes: Indexes, owned: list[int]) -> None:
    """Raise AssertionError unless these indexes are in use, and nothing is left in others. O(everything)."""
    if not indexes.following.size:
        return
    free_list.check(indexes.used, indexes.following, owned)
    slots.check(indexes.slots)
    exact.check(indexes.finder, indexes.slots)
    is_free = np.ones(len(indexes.following), np.bool_)
    is_free[owned] = False
    assert not indexes.slots.heads[is_free][:, [N0, N1]].any()
    assert (indexes.slots.heads[is_free, CHAIN] == NONE).all()


def counts(indexes: Indexes, index: int) -> dict[int, list[int]]:
    """Return the class weights of each feature of an index, by its number. For checks."""
    found = {}
    slot = int(indexes.slots.heads[index, CHAIN])
    while slot != NONE:
        found[int(slots.feature_of(indexes.slots, slot))] = indexes.slots.rows[slot, [C0, C1]].tolist()
        slot = int(indexes.slots.chain[slot, slots.OLDER])
    return found
