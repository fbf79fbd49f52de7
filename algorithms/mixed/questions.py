"""What can be asked of the examples of an index, with class weights: the storage of splits of any kind.

A *question* parts the examples in two. Each value that a live example has makes one::

    binary     is the feature present?
    nominal    is it this category?              a category is a feature of its own
    numeric    below 0: is it at most this value?    above 0: is it at least this value?

Zeros are stored nowhere: a question's other side is the totals less its own. Questions are nested along a numeric
column, so its values lie in order in *blocks*, with what weighs at each value alone; the sum of the blocks before
one, and of the values before one inside, makes the class weights of a question. ::

    rows    0: (index 0, feature 7)   binary                    weights of the classes
            1: (index 0, feature 9)   numeric, first block 2    those of all that is not 0
            2:    block   -3.0  -0.5   2.0                      those of the block; 3 follows
            3:    block    2.5                                  likewise

Rows but those of numeric columns are nodes of one of two heaps of their index: see search.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from algorithms.core import free_list, hashing
from algorithms.core.arrays import Float64s, Int32s, Int64s, extended, filled, int64
from algorithms.core.free_list import EVER, NONE, USED
from algorithms.core.hashing import mix
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY, NUMERIC
from algorithms.core.stored import stored
from algorithms.splits import heaps

# Columns of `Questions.rows`.
KEY = 0  # index << 32 | feature; also of blocks, which no look-up finds
KIND = 1  # a `Kind`, or BLOCK
CATEGORY = 2  # of a nominal row, else 0
NEXT = 3  # of a numeric column its first block, of a block the one after it, or NONE
BEFORE = 4  # of a block the one before it, or NONE
COLUMN = 5  # of a block the row of its column
AT = 6  # of a block where its values begin
SIZE = 7  # of a block how many values it has
TOTAL = 8  # of a row that is no block: the weight of all classes
IS_RARE = 9  # 1 in the heap of rare features
WEIGHT = 10  # of class 0, in units of 2^-20; then those of the others

BLOCK = 4  # a kind of rows beside those of features
LENGTH = 32  # values of a block at most

_FREE_KEY = -1


@stored("table", "rows", "links", "floor", "used", "value", "weight", "following", "blocks")
class Questions(NamedTuple):
    """The questions of all indexes of a pool."""

    table: Int64s  # int64[places], see hashing.py; blocks are not in it
    rows: Int64s  # int64[capacity, WEIGHT + K]
    links: Int32s  # int32[capacity, 3], see heaps.py
    floor: Float64s  # float64[capacity], the keys in the heaps
    used: Int64s  # int64[3], a free list of rows through NEXT
    value: Float64s  # float64[blocks * LENGTH], ascending in a block and from block to block, none is 0
    weight: Int64s  # int64[blocks * LENGTH, K], at each value alone
    following: Int32s  # int32[blocks], of free blocks the next
    blocks: Int64s  # int64[3], their free list


def make(capacity: int, blocks: int, classes: int) -> Questions:
    """Return empty storage."""
    return Questions(
        table=hashing.table_for(capacity),
        rows=np.zeros((capacity, WEIGHT + classes), np.int64),
        links=filled(3 * capacity, NONE, np.int32).reshape(capacity, 3),
        floor=np.zeros(capacity),
        used=np.array([0, 0, NONE], np.int64),
        value=np.zeros(blocks * LENGTH),
        weight=np.zeros((blocks * LENGTH, classes), np.int64),
        following=np.zeros(blocks, np.int32),
        blocks=np.array([0, 0, NONE], np.int64),
    )


def with_rows(questions: Questions, capacity: int) -> Questions:
    """Return the same storage with room for so many rows."""
    return questions._replace(
        table=hashing.grown(questions.table, capacity),
        rows=extended(questions.rows, capacity),
        links=extended(questions.links, capacity),
        floor=extended(questions.floor, capacity),
    )


def with_blocks(questions: Questions, blocks: int) -> Questions:
    """Return the same storage with room for so many blocks."""
    return questions._replace(
        value=extended(questions.value, blocks * LENGTH),
        weight=extended(questions.weight, blocks * LENGTH),
        following=extended(questions.following, blocks),
    )


@inlined
def has_room(questions: Questions, rows: int) -> bool:
    """Return whether so many rows can be made."""
    return questions.rows.shape[0] - questions.used[USED] >= rows


@inlined
def has_blocks(questions: Questions, blocks: int) -> bool:
    """Return whether so many blocks can be made."""
    return questions.following.size - questions.blocks[USED] >= blocks


@inlined
def enter(questions: Questions, root: int, row: int, key: float) -> int:
    """Put a row into a heap; return its root."""
    questions.floor[row] = key
    return heaps.added(questions.floor, questions.links, root, row)


@inlined
def leave(questions: Questions, root: int, row: int) -> int:
    """Take a row out of its heap; return the root."""
    return heaps.taken(questions.floor, questions.links, root, row)


@inlined
def cap_of(weight: int) -> float:
    """Return the power of two above a weight, in units."""
    cap = int64(1)
    while cap <= weight:
        cap *= 2
    return cap * 1.0


@inlined
def feature_of(questions: Questions, row: int) -> int:
    """Return the feature of a row."""
    return questions.rows[row, KEY] & 0xFFFFFFFF


@jit
def lookup(questions: Questions, index: int, feature: int, category: int) -> int:
    """Return the row of a feature, or of a category of a nominal one, NONE where there is none."""
    table = questions.table
    hashed = mix(mix(index, feature), category)
    wanted = (index << 32) | feature
    at = hashing.home(table, hashed)
    while True:
        entry = table[at]
        if entry == 0:
            return NONE
        if hashing.entry_hash(entry) == hashed:
            row = hashing.entry_row(entry)
            if questions.rows[row, KEY] == wanted and questions.rows[row, CATEGORY] == category:
                return row
        at = hashing.after(table, at)


@jit
def create(questions: Questions, index: int, feature: int, kind: int, category: int) -> int:
    """Return a new row without weights, in no heap; there must be room."""
    rows = questions.rows
    row = free_list.take(questions.used, rows[:, NEXT])
    for column in range(rows.shape[1]):
        rows[row, column] = 0
    rows[row, KEY] = (index << 32) | feature
    rows[row, KIND] = kind
    rows[row, CATEGORY] = category
    rows[row, NEXT] = NONE
    rows[row, BEFORE] = NONE
    if kind == BLOCK:
        rows[row, AT] = free_list.take(questions.blocks, questions.following) * LENGTH
    else:
        hashing.put(questions.table, mix(mix(index, feature), category), row)
    return row


@jit
def remove(questions: Questions, row: int) -> None:
    """Give back a row that is in no heap, wiped; a block has no values left."""
    rows = questions.rows
    if rows[row, KIND] == BLOCK:
        free_list.give(questions.blocks, questions.following, rows[row, AT] // LENGTH)
    else:
        key = rows[row, KEY]
        hashing.take(questions.table, mix(mix(key >> 32, key & 0xFFFFFFFF), rows[row, CATEGORY]), row)
    for column in range(rows.shape[1]):
        rows[row, column] = 0
    questions.floor[row] = 0.0
    rows[row, KEY] = _FREE_KEY
    free_list.give(questions.used, rows[:, NEXT], row)


# --- numeric columns


@jit
def block_for(questions: Questions, column: int, value: float) -> int:
    """Return the block of a numeric column that has a value or is to have it, NONE where there is no block.

    O(blocks of the column).
    """
    rows = questions.rows
    block = rows[column, NEXT]
    while block != NONE:
        last = questions.value[rows[block, AT] + rows[block, SIZE] - 1]
        if value <= last or rows[block, NEXT] == NONE:
            return block
        block = rows[block, NEXT]
    return NONE


@jit
def place_for(questions: Questions, block: int, value: float) -> int:
    """Return where the first value of a block that is not below this one lies; behind the last where none is."""
    low = questions.rows[block, AT]
    high = low + questions.rows[block, SIZE]
    while low < high:
        middle = (low + high) >> 1
        if questions.value[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def put(questions: Questions, block: int, at: int, value: float) -> None:
    """Put a new value without weights into a block that is not full."""
    end = questions.rows[block, AT] + questions.rows[block, SIZE]
    for to in range(end, at, -1):
        _copy(questions, to - 1, to)
    questions.value[at] = value
    for k in range(questions.weight.shape[1]):
        questions.weight[at, k] = 0
    questions.rows[block, SIZE] += 1


@jit
def take(questions: Questions, block: int, at: int) -> None:
    """Take a value without weights out of a block; its place is wiped."""
    end = questions.rows[block, AT] + questions.rows[block, SIZE]
    for to in range(at, end - 1):
        _copy(questions, to + 1, to)
    _wipe(questions, end - 1)
    questions.rows[block, SIZE] -= 1


@inlined
def _copy(questions: Questions, at: int, to: int) -> None:
    questions.value[to] = questions.value[at]
    for k in range(questions.weight.shape[1]):
        questions.weight[to, k] = questions.weight[at, k]


@inlined
def _wipe(questions: Questions, at: int) -> None:
    questions.value[at] = 0.0
    for k in range(questions.weight.shape[1]):
        questions.weight[at, k] = 0


@jit
def link(questions: Questions, column: int, block: int, before: int) -> None:
    """Put a block behind another of its column, first where that is NONE."""
    rows = questions.rows
    after = rows[column, NEXT] if before == NONE else rows[before, NEXT]
    rows[block, COLUMN] = column
    rows[block, BEFORE] = before
    rows[block, NEXT] = after
    if after != NONE:
        rows[after, BEFORE] = block
    if before == NONE:
        rows[column, NEXT] = block
    else:
        rows[before, NEXT] = block


@jit
def unlink(questions: Questions, block: int) -> None:
    """Take a block out of its column."""
    rows = questions.rows
    before = rows[block, BEFORE]
    after = rows[block, NEXT]
    if after != NONE:
        rows[after, BEFORE] = before
    if before == NONE:
        rows[rows[block, COLUMN], NEXT] = after
    else:
        rows[before, NEXT] = after


@jit
def shift(questions: Questions, block: int, count: int, to: int) -> None:
    """Move the last values of a block to the front of another, which has room: the one behind it."""
    rows = questions.rows
    for place in range(rows[to, SIZE] - 1, -1, -1):
        _copy(questions, rows[to, AT] + place, rows[to, AT] + place + count)
    first = rows[block, AT] + rows[block, SIZE] - count
    for place in range(count):
        _copy(questions, first + place, rows[to, AT] + place)
        for k in range(questions.weight.shape[1]):
            weight = questions.weight[first + place, k]
            rows[block, WEIGHT + k] -= weight
            rows[to, WEIGHT + k] += weight
        _wipe(questions, first + place)
    rows[block, SIZE] -= count
    rows[to, SIZE] += count


# --- invariants


def walk(questions: Questions, root: int) -> list[int]:
    """Return the rows of a heap."""
    found, row = [], root
    while row != NONE:
        found.append(row)
        row = int(heaps.following(questions.links, row, True))
    return found


def told(questions: Questions, roots: Iterable[int]) -> list[tuple[int, float, list[int]]]:
    """Return what the rows of heaps count: feature, value (of a binary one 1) and class weights."""
    rows = questions.rows
    found = []
    for row in (row for root in roots for row in walk(questions, root)):
        feature = int(rows[row, KEY]) & 0xFFFFFFFF
        if rows[row, KIND] != BLOCK:
            found.append((feature, float(max(rows[row, CATEGORY], 1)), rows[row, WEIGHT:].tolist()))
            continue
        places = slice(int(rows[row, AT]), int(rows[row, AT] + rows[row, SIZE]))
        values = zip(questions.value[places].tolist(), questions.weight[places].tolist(), strict=True)
        found += [(feature, value, weights) for value, weights in values]
    return found


def check(questions: Questions, roots: Sequence[Sequence[int]], totals: list[list[int]]) -> list[int]:
    """Raise AssertionError unless every invariant holds; return the features of rows, once for each but blocks."""
    rows = questions.rows
    high = int(questions.used[EVER])
    in_use = [row for row in range(high) if rows[row, KEY] != _FREE_KEY]
    free_list.check(questions.used, rows[:, NEXT], in_use)
    found = [row for row in in_use if rows[row, KIND] != BLOCK]
    hashing.check(questions.table, len(found))
    columns = [row for row in found if rows[row, KIND] == NUMERIC]
    blocks: list[int] = []
    for row in found:
        index, feature = divmod(int(rows[row, KEY]), 1 << 32)
        assert lookup(questions, index, feature, int(rows[row, CATEGORY])) == row, "not found under its key"
        assert (rows[row, CATEGORY] == 0) == (rows[row, KIND] in (BINARY, NUMERIC))
        assert rows[row, TOTAL] == rows[row, WEIGHT:].sum() > 0, "an empty row was kept"
        assert (rows[row, WEIGHT:] >= 0).all()
        assert (rows[row, WEIGHT:] <= totals[index]).all(), "a feature occurs more often than its label"
    for column in columns:
        values: list[float] = []
        before, block, whole = NONE, int(rows[column, NEXT]), np.zeros_like(rows[column, WEIGHT:])
        assert block != NONE
        while block != NONE:
            assert rows[block, KIND] == BLOCK
            assert rows[block, [KEY, BEFORE, COLUMN]].tolist() == [rows[column, KEY], before, column]
            places = slice(int(rows[block, AT]), int(rows[block, AT] + rows[block, SIZE]))
            assert 0 < rows[block, SIZE] <= LENGTH
            assert (questions.weight[places].sum(axis=1) > 0).all(), "a value that nobody has was kept"
            assert (questions.weight[places] >= 0).all()
            assert (questions.weight[places].sum(axis=0) == rows[block, WEIGHT:]).all()
            values += questions.value[places].tolist()
            whole += rows[block, WEIGHT:]
            blocks.append(block)
            before, block = block, int(rows[block, NEXT])
        assert values == sorted(set(values))
        assert 0.0 not in values
        assert (whole == rows[column, WEIGHT:]).all()
    taken = (rows[blocks, AT] // LENGTH).tolist() if blocks else []
    free_list.check(questions.blocks, questions.following, taken)
    in_heaps: list[int] = []
    for index, is_rare, root in ((index, *pair) for index, two in enumerate(roots) for pair in enumerate(two)):
        own = walk(questions, root)
        assert all(rows[row, KEY] >> 32 == index for row in own)
        for row in own:
            assert rows[row, IS_RARE] == is_rare
            assert not is_rare or rows[row, TOTAL] <= -questions.floor[row]
            above = int(questions.links[row, heaps.PARENT])
            assert above == NONE or questions.floor[above] <= questions.floor[row]
        in_heaps += own
    assert sorted(in_heaps) == sorted({*in_use} - {*columns}), "a row is in no heap, or in two"
    return [int(rows[row, KEY]) & 0xFFFFFFFF for row in found]
