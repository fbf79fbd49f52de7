"""The values of numeric features in a node that is scanned: in order, with class weights, under any edits.

A feature has two tries, one of its negative values and one of its positive ones; zeros are stored nowhere. A trie
parts values by the highest bit in which any of them differ, as a PATRICIA trie does, so no order in which values
come makes it deeper than the 63 bits of a value, and nothing is ever balanced::

    inner node, bit 51       class weights of all below it
      block  [ 1.25 1.25 1.5 ] of the rows [ 7 3 12 ]
      same   1.75            one value: its class weights alone, however many examples have it

A block holds up to `WIDTH` entries, by value, those of one value in the order in which they came. One that is full
is parted; where all of it is one value, its entries are no longer needed.

Values are known by keys, whole numbers in the same order: see `key_of`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import free_list
from algorithms.core.arrays import Int32s, Int64s, extended, int64
from algorithms.core.example_store import LABEL, WEIGHT
from algorithms.core.free_list import NONE, USED
from algorithms.core.jit import inlined, jit
from algorithms.core.stored import stored

# Columns of `Values.cells`.
BIT = 0  # of an inner node: the bit by which its children differ; BLOCK or SAME of a leaf
KEY = 1  # of an inner node: the bits above that one; of a leaf of one value: that value
LOW, HIGH = 2, 3  # the children; LOW of a leaf with a block: the block. Free rows are linked through LOW.
HOLDERS = 4  # how many examples are below it
WEIGHTS = 5  # and their class weights

BLOCK, SAME = -1, -2  # leaves, as BIT

WIDTH = 32  # entries of a block


@stored("cells", "used", "keys", "rows", "taken", "longest")
class Values(NamedTuple):
    """Tries of any number of features."""

    cells: Int64s  # int64[capacity, WEIGHTS + c]
    used: Int64s  # int64[3], a free list through LOW
    keys: Int64s  # int64[blocks, WIDTH], of the entries of a block; 0 where there is none
    rows: Int32s  # int32[blocks, WIDTH], the examples that have them
    taken: Int64s  # int64[3], a free list of blocks through the first of `keys`
    longest: Int64s  # int64[1], how many values of one example may come at once


def make(capacity: int, classes: int) -> Values:
    """Return storage for so many nodes, of no size where there is none."""
    return Values(
        cells=np.zeros((capacity, WEIGHTS + classes), np.int64),
        used=np.array([0, 0, NONE], np.int64),
        keys=np.zeros((capacity >> 1, WIDTH), np.int64),
        rows=np.zeros((capacity >> 1, WIDTH), np.int32),
        taken=np.array([0, 0, NONE], np.int64),
        longest=np.zeros(1, np.int64),
    )


def grown(held: Values) -> Values:
    """Return the same storage with room for twice as many nodes and blocks."""
    return held._replace(
        cells=extended(held.cells, 2 * len(held.cells)),
        keys=extended(held.keys, 2 * len(held.keys)),
        rows=extended(held.rows, 2 * len(held.rows)),
    )


@inlined
def room(held: Values) -> int:
    """Return how many entries can be made before the storage must grow.

    One takes four nodes and two blocks at most: it may part a block, and then lie beside both parts.
    """
    return min(
        (held.cells.shape[0] - held.used[USED]) >> 2,
        (held.keys.shape[0] - held.taken[USED]) >> 1,
    )


# --- values as whole numbers


@inlined
def key_of(value: float) -> int:
    """Return a number of 63 bits for a value that is not 0. Of values of one sign the greater has the greater."""
    bits = int64(np.float64(value).view(np.int64))
    return bits if bits >= 0 else ~bits


@inlined
def value_of_key(key: int, is_negative: bool) -> float:
    """Return the value that has a key among those of its sign."""
    return float(np.int64(~key if is_negative else key).view(np.float64))


@inlined
def _highest_bit(number: int) -> int:
    """Return the place of the highest bit of a number above 0."""
    bit = int64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if number >> step > 0:
            number >>= step
            bit += step
    return bit


@inlined
def child_at(held: Values, node: int, key: int) -> int:
    """Return the child of an inner node to which a key belongs."""
    return held.cells[node, LOW + ((key >> held.cells[node, BIT]) & 1)]


# --- what comes


@jit
def add(held: Values, store: Int64s, top: int, key: int, row: int) -> int:
    """Enter a value of an example, a row of `store`; return the top of its trie, before NONE where it is empty."""
    cells = held.cells
    if top == NONE:
        return _leaf(held, store, key, row)
    node = top
    while True:
        bit = cells[node, BIT]
        if bit == BLOCK and cells[node, HOLDERS] == WIDTH:
            _part(held, store, node)
            continue
        above = int64(0)
        if bit != BLOCK:
            above = (key ^ cells[node, KEY]) >> (bit + 1 if bit >= 0 else 0)
        if above != 0:
            _put_beside(held, store, node, key, row)
            return top
        cells[node, HOLDERS] += 1
        cells[node, WEIGHTS + store[row, LABEL]] += store[row, WEIGHT]
        if bit < 0:
            break
        node = child_at(held, node, key)
    if bit == BLOCK:
        _put(held, cells[node, LOW], cells[node, HOLDERS] - 1, key, row)
    return top


@jit
def _leaf(held: Values, store: Int64s, key: int, row: int) -> int:
    """Return a leaf with one entry."""
    node = _empty_leaf(held)
    held.cells[node, HOLDERS] = 1
    held.cells[node, WEIGHTS + store[row, LABEL]] = store[row, WEIGHT]
    _put(held, held.cells[node, LOW], int64(0), key, row)
    return node


@jit
def _empty_leaf(held: Values) -> int:
    node = free_list.take(held.used, held.cells[:, LOW])
    for column in range(held.cells.shape[1]):
        held.cells[node, column] = 0
    block = free_list.take(held.taken, held.keys[:, 0])
    held.keys[block, 0] = 0
    held.cells[node, BIT] = BLOCK
    held.cells[node, LOW] = block
    held.cells[node, HIGH] = NONE
    return node


@inlined
def _put(held: Values, block: int, size: int, key: int, row: int) -> None:
    """Put an entry behind those of a block whose keys are not greater."""
    at = size
    while at > 0 and held.keys[block, at - 1] > key:
        held.keys[block, at] = held.keys[block, at - 1]
        held.rows[block, at] = held.rows[block, at - 1]
        at -= 1
    held.keys[block, at] = key
    held.rows[block, at] = row


@jit
def _part(held: Values, store: Int64s, node: int) -> None:
    """Make an inner node with two blocks of a full leaf, or a leaf of one value."""
    cells = held.cells
    block, size = cells[node, LOW], cells[node, HOLDERS]
    first, differ = held.keys[block, 0], held.keys[block, 0] ^ held.keys[block, size - 1]
    if differ == 0:
        cells[node, BIT] = SAME
        cells[node, KEY] = first
        cells[node, LOW] = NONE
        _give_block(held, block, size)
        return
    bit = _highest_bit(differ)
    low, high = _empty_leaf(held), free_list.take(held.used, cells[:, LOW])
    for column in range(cells.shape[1]):
        cells[high, column] = cells[node, column]
    other = cells[low, LOW]
    begin = int64(0)
    while held.keys[block, begin] >> bit & 1 == 0:
        _move(held, store, high, low, block, begin, other, begin)
        begin += 1
    for at in range(begin, size):  # what stays moves up
        held.keys[block, at - begin] = held.keys[block, at]
        held.rows[block, at - begin] = held.rows[block, at]
    for at in range(size - begin, size):
        held.keys[block, at] = 0
        held.rows[block, at] = 0
    _make_inner(held, node, bit, first, low, high)


@inlined
def _move(held: Values, store: Int64s, source: int, leaf: int, block: int, at: int, other: int, to: int) -> None:
    """Move an entry from one leaf to another."""
    row = int64(held.rows[block, at])
    held.keys[other, to] = held.keys[block, at]
    held.rows[other, to] = row
    held.cells[source, HOLDERS] -= 1
    held.cells[leaf, HOLDERS] += 1
    held.cells[source, WEIGHTS + store[row, LABEL]] -= store[row, WEIGHT]
    held.cells[leaf, WEIGHTS + store[row, LABEL]] += store[row, WEIGHT]


@inlined
def _make_inner(held: Values, node: int, bit: int, key: int, low: int, high: int) -> None:
    """Let a node, whose counts are right, have two children."""
    held.cells[node, BIT] = bit
    held.cells[node, KEY] = key >> (bit + 1) << (bit + 1)
    held.cells[node, LOW] = low
    held.cells[node, HIGH] = high


@jit
def _put_beside(held: Values, store: Int64s, node: int, key: int, row: int) -> None:
    """Let a node and a new leaf for a key, which differs from all keys below it in a higher bit, have one parent.

    The parent is in the place of the node.
    """
    cells = held.cells
    leaf = _leaf(held, store, key, row)
    moved = free_list.take(held.used, cells[:, LOW])
    for column in range(cells.shape[1]):
        cells[moved, column] = cells[node, column]
    cells[node, HOLDERS] += 1
    cells[node, WEIGHTS + store[row, LABEL]] += store[row, WEIGHT]
    bit = _highest_bit(key ^ cells[node, KEY])
    if key >> bit & 1 == 1:
        _make_inner(held, node, bit, key, moved, leaf)
    else:
        _make_inner(held, node, bit, key, leaf, moved)


# --- what goes


@jit
def take(held: Values, store: Int64s, top: int, key: int, row: int) -> int:
    """Take out a value of an example if it is there; return the top of its trie, NONE where nothing is left."""
    cells = held.cells
    leaf = top
    while leaf != NONE and cells[leaf, BIT] >= 0:
        leaf = child_at(held, leaf, key)
    at = int64(NONE)
    if leaf != NONE and cells[leaf, BIT] == SAME:
        at = int64(0) if cells[leaf, KEY] == key else int64(NONE)
    elif leaf != NONE:
        at = _place_of(held, cells[leaf, LOW], cells[leaf, HOLDERS], key, row)
    if at == NONE:
        return top
    node, parent = top, int64(NONE)
    while True:
        cells[node, HOLDERS] -= 1
        cells[node, WEIGHTS + store[row, LABEL]] -= store[row, WEIGHT]
        if node == leaf:
            break
        parent = node
        node = child_at(held, node, key)
    if cells[leaf, BIT] == BLOCK:
        block, size = cells[leaf, LOW], cells[leaf, HOLDERS]
        for after in range(at, size):
            held.keys[block, after] = held.keys[block, after + 1]
            held.rows[block, after] = held.rows[block, after + 1]
        held.keys[block, size] = 0
        held.rows[block, size] = 0
    return _without(held, top, parent, leaf) if cells[leaf, HOLDERS] == 0 else top


@inlined
def _place_of(held: Values, block: int, size: int, key: int, row: int) -> int:
    """Return where an entry is in a block, or NONE."""
    for at in range(size):
        if held.keys[block, at] == key and held.rows[block, at] == row:
            return int64(at)
    return int64(NONE)


@jit
def _without(held: Values, top: int, parent: int, leaf: int) -> int:
    """Give back a leaf, whose block is wiped but for its entries: its sibling is in the place of both's parent."""
    cells = held.cells
    if cells[leaf, BIT] == BLOCK:
        _give_block(held, cells[leaf, LOW], cells[leaf, HOLDERS])
    if parent == NONE:
        _give(held, leaf)
        return int64(NONE)
    sibling = cells[parent, LOW] + cells[parent, HIGH] - leaf
    for column in range(cells.shape[1]):
        cells[parent, column] = cells[sibling, column]
    _give(held, leaf)
    _give(held, sibling)
    return top


@inlined
def _give(held: Values, node: int) -> None:
    """Wipe a node and give it back."""
    for column in range(held.cells.shape[1]):
        held.cells[node, column] = 0
    free_list.give(held.used, held.cells[:, LOW], node)


@inlined
def _give_block(held: Values, block: int, size: int) -> None:
    """Wipe a block of so many entries and give it back."""
    for at in range(size):
        held.keys[block, at] = 0
        held.rows[block, at] = 0
    free_list.give(held.taken, held.keys[:, 0], block)


@jit
def drop_first(held: Values, top: int) -> int:
    """Take out all of the first leaf; return the top of the trie, NONE where nothing is left. O(depth)."""
    cells = held.cells
    leaf, parent = top, int64(NONE)
    while cells[leaf, BIT] >= 0:
        parent = leaf
        leaf = cells[leaf, LOW]
    node = top
    while node != leaf:
        cells[node, HOLDERS] -= cells[leaf, HOLDERS]
        for column in range(WEIGHTS, cells.shape[1]):
            cells[node, column] -= cells[leaf, column]
        node = cells[node, LOW]
    return _without(held, top, parent, leaf)


# --- looking


@jit
def greatest(held: Values, node: int) -> int:
    """Return the greatest key below a node."""
    while held.cells[node, BIT] >= 0:
        node = held.cells[node, HIGH]
    if held.cells[node, BIT] == SAME:
        return held.cells[node, KEY]
    return held.keys[held.cells[node, LOW], held.cells[node, HOLDERS] - 1]


@jit
def two_least(held: Values, top: int) -> tuple[int, int]:
    """Return the least key of a trie and the next one, NONE where there is none."""
    cells = held.cells
    if top == NONE:
        return int64(NONE), int64(NONE)
    node, beside = top, int64(NONE)
    while cells[node, BIT] >= 0:
        beside = cells[node, HIGH]
        node = cells[node, LOW]
    least = cells[node, KEY]
    if cells[node, BIT] == BLOCK:
        block, size = cells[node, LOW], cells[node, HOLDERS]
        least = held.keys[block, 0]
        if held.keys[block, size - 1] > least:
            at = int64(1)
            while held.keys[block, at] == least:
                at += 1
            return least, held.keys[block, at]
    after = int64(NONE)
    if beside != NONE:
        while cells[beside, BIT] >= 0:
            beside = cells[beside, LOW]
        after = cells[beside, KEY] if cells[beside, BIT] == SAME else held.keys[cells[beside, LOW], 0]
    return least, after


@jit
def add_up_to(held: Values, store: Int64s, top: int, key: int, weights: Int64s) -> int:
    """Add the class weights of all keys up to one to `weights`; return how many examples that are. O(depth)."""
    cells = held.cells
    count = int64(0)
    node = top
    while node != NONE:
        bit = cells[node, BIT]
        if bit == BLOCK:
            block = cells[node, LOW]
            for at in range(cells[node, HOLDERS]):
                if held.keys[block, at] <= key:
                    row = int64(held.rows[block, at])
                    weights[store[row, LABEL]] += store[row, WEIGHT]
                    count += 1
            break
        own = cells[node, KEY]
        if bit == SAME:
            if own <= key:
                count += _add_all(held, node, weights)
            break
        if key >> (bit + 1) != own >> (bit + 1):
            if own < key:
                count += _add_all(held, node, weights)
            break
        if key >> bit & 1 == 1:
            count += _add_all(held, cells[node, LOW], weights)
        node = child_at(held, node, key)
    return count


@inlined
def _add_all(held: Values, node: int, weights: Int64s) -> int:
    for k in range(weights.size):
        weights[k] += held.cells[node, WEIGHTS + k]
    return held.cells[node, HOLDERS]


# --- invariants


def found(held: Values, top: int) -> list[int]:
    """Return the keys of a trie, each as often as examples have it, ascending."""
    bit, key, low, high, holders = held.cells[top, :WEIGHTS].tolist()
    if bit == SAME:
        return [key] * holders
    if bit == BLOCK:
        return [int(each) for each in held.keys[low, :holders]]
    return found(held, low) + found(held, high)


def check(held: Values, store: Int64s, tops: list[int]) -> None:
    """Raise AssertionError unless tries are as they must be and hold all that is in use. O(everything)."""
    reached: list[int] = []
    blocks: list[int] = []
    for top in tops:
        _check(held, store, top, reached, blocks)
    free_list.check(held.used, held.cells[:, LOW], reached)
    free_list.check(held.taken, held.keys[:, 0], blocks)
    idle = np.setdiff1d(np.arange(len(held.keys)), blocks)
    assert not held.keys[idle, 1:].any()
    assert not held.rows[idle].any()


def _check(held: Values, store: Int64s, node: int, reached: list[int], blocks: list[int]) -> list[int]:
    """Check a node and all below; return its keys where they are known one by one, else its only one."""
    reached.append(node)
    bit, key, low, high, holders = held.cells[node, :WEIGHTS].tolist()
    weights = held.cells[node, WEIGHTS:]
    assert holders > 0
    if bit == SAME:
        assert weights.sum() > 0
        return [key]
    if bit == BLOCK:
        blocks.append(low)
        keys, rows = held.keys[low].tolist(), held.rows[low, :holders]
        assert keys[:holders] == sorted(keys[:holders])
        assert not any(keys[holders:])
        assert not held.rows[low, holders:].any()
        expected = np.zeros_like(weights)
        np.add.at(expected, store[rows, LABEL], store[rows, WEIGHT])
        assert (expected == weights).all()
        return keys[:holders]
    below = [_check(held, store, child, reached, blocks) for child in (low, high)]
    assert (held.cells[[low, high], HOLDERS:].sum(axis=0) == held.cells[node, HOLDERS:]).all()
    for side, keys in enumerate(below):
        assert all(each >> bit & 1 == side and each >> (bit + 1) == key >> (bit + 1) for each in keys)
    return below[0] + below[1]
