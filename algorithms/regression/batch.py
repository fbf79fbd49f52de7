"""The greedy regression tree of a batch on sparse columns, level by level.

::

    root -> scan all columns once, for all nodes of a level -> split what has a split -> their children: next level

A column holds its entries that are not zero, in the order of their values: negatives | positives. A node's zeros
are what is missing. So a scan goes over the negatives from below and over the positives from above, and for each
node sums weights and labels as it passes. Entries of examples whose leaf is done are dropped on the way. O(entries
of nodes that are not done) a level.

Labels are whole numbers of a unit, less the rounded mean of their node. With weights and labels of n, s in the
node and of m, r on one side,

    weight times reduction of the variance = (n r - m s)^2 / (n m (n - m))

and all of them are whole numbers below 2^62: sums are exact, in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt32s, int64
from algorithms.core.jit import inlined, jit
from algorithms.regression.sorted_columns import Scratch, sort_columns
from algorithms.trees.quantised import between

NONE = -1
_LOW_WEIGHT, _LOW_SUM, _LOW_COUNT, _HIGH_WEIGHT, _HIGH_SUM, _HIGH_COUNT = range(6)  # columns of `Scan.passed`
_SLACK = 1.0 - 2.0**-50


class Columns(NamedTuple):
    """The entries of all features, those of each ascending by value."""

    begin: Int64s  # int64[c], where those of a column begin
    end: Int64s  # int64[c], and end, which comes down as leaves are done
    owner: Int32s  # int32[entries], the examples
    value: Float64s  # float64[entries], finite and not 0; of binary columns not written
    binary: Int8s  # int8[c], 1 where all values are 1
    chosen: Int8s  # int8[c], scratch, 0


class Examples(NamedTuple):
    """What is known of n examples."""

    label: Int64s  # int64[n], in units, from 0
    weight: Int64s  # int64[n]
    centred: Int64s  # int64[n], weight times (label less the rounded mean of the node)
    node: Int32s  # int32[n], the place of its node in the level, or NONE where its leaf is done
    high: Int8s  # int8[n], whether it goes to the high side


class Level(NamedTuple):
    """The nodes of a level."""

    number: Int64s  # int64[n], of the node in `Nodes`
    examples: Int64s  # int64[n]
    weight: Int64s  # int64[n]
    total: Int64s  # int64[n], the sum of labels, then that of `centred`
    mean: Int64s  # int64[n], rounded
    is_open: Int8s  # int8[n], 1 where it may split: its labels differ, and it is neither too small nor too deep
    gain: Float64s  # float64[n], of the best split so far; negative: none
    column: Int64s  # int64[n]
    below: Float64s  # float64[n], the values on both sides of the threshold
    above: Float64s


class Scan(NamedTuple):
    """What was passed of a column in each node of the level: 0 between two columns."""

    passed: Int64s  # int64[n, 6]
    last: Float64s  # float64[n, 2], the last value passed from below, and from above
    touched: Int64s  # int64[n], the nodes that have any entry of the column


class Nodes(NamedTuple):
    """The tree, in the order of levels."""

    parent: Int64s
    branch: Int64s
    depth: Int64s
    column: Int64s  # NONE: a leaf
    threshold: Float64s
    weight: Int64s
    mean: Float64s  # in units
    variance: Float64s
    child: Int64s  # int64[.., 2]


def make_level(nodes: int) -> Level:
    """Make room for so many nodes of a level."""
    number, examples, weight, total, mean, column = (np.zeros(nodes, np.int64) for _ in range(6))
    gain, below, above = (np.zeros(nodes) for _ in range(3))
    return Level(number, examples, weight, total, mean, np.zeros(nodes, np.int8), gain, column, below, above)


def make_nodes(nodes: int) -> Nodes:
    """Make room for a tree of so many nodes."""
    parent, branch, depth, column, weight = (np.zeros(nodes, np.int64) for _ in range(5))
    threshold, mean, variance = (np.zeros(nodes) for _ in range(3))
    return Nodes(parent, branch, depth, column, threshold, weight, mean, variance, np.zeros((nodes, 2), np.int64))


@jit
def lay_out(
    columns: Columns,
    place: Int32s,
    feature: UInt32s,
    pointer: Int64s,
    values: Float64s,
    spare: Scratch,
    spare_owner: Int32s,
) -> None:
    """Write entries to the columns that their features have by `place`, and put these in order. O(entries)."""
    for i in range(pointer.size - 1):
        for entry in range(pointer[i], pointer[i + 1]):
            column = place[feature[entry]]
            at = columns.end[column]
            columns.end[column] = at + 1
            columns.owner[at] = i
            if columns.binary[column] == 0:
                columns.value[at] = values[entry]
    sort_columns(columns, spare, spare_owner)


@inlined
def _offer(level: Level, k: int, column: int, weight: int, total: int, below: float, above: float) -> None:
    """Take a split where it gains more than the best: then the lowest column, and its lowest threshold."""
    n = float(level.weight[k])
    difference = total * n - level.total[k] * float(weight)
    parts = weight * (n - weight)
    best = level.gain[k]
    if difference * difference < best * parts * _SLACK:
        return
    gain = difference * difference / parts
    if gain > best or (gain == best and level.column[k] == column and below < level.below[k]):
        level.gain[k] = gain
        level.column[k] = column
        level.below[k] = below
        level.above[k] = above


@jit
def _scan_root(columns: Columns, examples: Examples, level: Level, column: int) -> None:
    """Offer all splits of a column to the root: all examples are there, so sums stay in registers. O(entries)."""
    owner = columns.owner
    value = columns.value
    begin, end = columns.begin[column], columns.end[column]
    has_zeros = end - begin < level.examples[0]
    weight = int64(0)
    total = int64(0)
    if columns.binary[column] == 1:
        for entry in range(begin, end):
            weight += examples.weight[owner[entry]]
            total += examples.centred[owner[entry]]
        if has_zeros:
            _offer_high(level, 0, column, weight, total, 0.0, 1.0)
        return
    at = begin
    while at < end and value[at] < 0.0:
        weight += examples.weight[owner[at]]
        total += examples.centred[owner[at]]
        now = value[at]
        at += 1
        if at == end and not has_zeros:
            return
        above = 0.0 if at == end or (has_zeros and value[at] > 0.0) else value[at]
        if above != now:
            _offer(level, 0, column, weight, total, now, above)
    weight = int64(0)
    total = int64(0)
    for entry in range(end - 1, at - 1, -1):
        weight += examples.weight[owner[entry]]
        total += examples.centred[owner[entry]]
        if entry == at and not has_zeros:
            return  # no value is lower, or the highest negative one, which was offered
        below = 0.0 if entry == at else value[entry - 1]
        if below != value[entry]:
            _offer_high(level, 0, column, weight, total, below, value[entry])


@jit
def _scan_binary(columns: Columns, examples: Examples, level: Level, scan: Scan, column: int) -> None:
    """Offer the split by a binary column to the nodes of the level. O(entries)."""
    owner = columns.owner
    passed = scan.passed
    touched = 0
    to = columns.begin[column]
    for entry in range(columns.begin[column], columns.end[column]):
        i = int64(owner[entry])
        k = int64(examples.node[i])
        if k == NONE:
            continue
        owner[to] = i
        to += 1
        if level.is_open[k] == 1:
            if passed[k, _HIGH_COUNT] == 0:
                scan.touched[touched] = k
                touched += 1
            passed[k, _HIGH_COUNT] += 1
            passed[k, _HIGH_WEIGHT] += examples.weight[i]
            passed[k, _HIGH_SUM] += examples.centred[i]
    columns.end[column] = to
    for at in range(touched):
        k = scan.touched[at]
        if passed[k, _HIGH_COUNT] < level.examples[k]:
            _offer_high(level, k, column, passed[k, _HIGH_WEIGHT], passed[k, _HIGH_SUM], 0.0, 1.0)
        for each in (_HIGH_COUNT, _HIGH_WEIGHT, _HIGH_SUM):
            passed[k, each] = 0


@jit
def _scan_ordered(columns: Columns, examples: Examples, level: Level, scan: Scan, column: int) -> None:
    """Offer all thresholds of a column to the nodes of the level. O(entries)."""
    owner = columns.owner
    value = columns.value
    passed = scan.passed
    last = scan.last
    touched = 0
    to = columns.begin[column]
    positives = to
    for entry in range(columns.begin[column], columns.end[column]):
        i = int64(owner[entry])
        k = int64(examples.node[i])
        if k == NONE:
            continue
        owner[to] = i
        now = value[entry]
        value[to] = now
        to += 1
        if now < 0.0 and level.is_open[k] == 1:
            positives = to
            if passed[k, _LOW_COUNT] == 0:
                scan.touched[touched] = k
                touched += 1
            elif last[k, 0] != now:
                _offer(level, k, column, passed[k, _LOW_WEIGHT], passed[k, _LOW_SUM], last[k, 0], now)
            passed[k, _LOW_COUNT] += 1
            passed[k, _LOW_WEIGHT] += examples.weight[i]
            passed[k, _LOW_SUM] += examples.centred[i]
            last[k, 0] = now
    columns.end[column] = to
    for entry in range(to - 1, positives - 1, -1):
        i = int64(owner[entry])
        k = int64(examples.node[i])
        now = value[entry]
        if level.is_open[k] == 0 or now < 0.0:
            continue
        if passed[k, _HIGH_COUNT] == 0:
            if passed[k, _LOW_COUNT] == 0:
                scan.touched[touched] = k
                touched += 1
        elif last[k, 1] != now:
            _offer_high(level, k, column, passed[k, _HIGH_WEIGHT], passed[k, _HIGH_SUM], now, last[k, 1])
        passed[k, _HIGH_COUNT] += 1
        passed[k, _HIGH_WEIGHT] += examples.weight[i]
        passed[k, _HIGH_SUM] += examples.centred[i]
        last[k, 1] = now
    for at in range(touched):
        k = scan.touched[at]
        lows = passed[k, _LOW_COUNT]
        highs = passed[k, _HIGH_COUNT]
        zeros = level.examples[k] - lows - highs
        if lows > 0 and (zeros > 0 or highs > 0):
            above = 0.0 if zeros > 0 else last[k, 1]
            _offer(level, k, column, passed[k, _LOW_WEIGHT], passed[k, _LOW_SUM], last[k, 0], above)
        if highs > 0 and zeros > 0:
            _offer_high(level, k, column, passed[k, _HIGH_WEIGHT], passed[k, _HIGH_SUM], 0.0, last[k, 1])
        for each in range(6):
            passed[k, each] = 0


@inlined
def _offer_high(level: Level, k: int, column: int, weight: int, total: int, below: float, above: float) -> None:
    """Take a split of which the high side is known."""
    _offer(level, k, column, level.weight[k] - weight, level.total[k] - total, below, above)


@jit
def scan_all(columns: Columns, examples: Examples, level: Level, scan: Scan) -> None:
    """Find the best split of each node of a level."""
    for column in range(columns.begin.size):
        if columns.begin[column] == columns.end[column]:
            continue
        if level.examples[0] == examples.label.size:
            _scan_root(columns, examples, level, column)
        elif columns.binary[column] == 1:
            _scan_binary(columns, examples, level, scan, column)
        else:
            _scan_ordered(columns, examples, level, scan, column)


@jit
def describe(examples: Examples, level: Level, nodes: Nodes, size: int, min_examples: int, max_depth: int) -> bool:
    """Sum up the nodes of a level, and centre the labels in each; return whether any may split. O(examples)."""
    for k in range(size):
        level.examples[k] = 0
        level.weight[k] = 0
        level.total[k] = 0
        level.is_open[k] = 0
        level.gain[k] = -1.0
        level.column[k] = NONE
    for i in range(examples.label.size):
        k = int64(examples.node[i])
        if k != NONE:
            level.examples[k] += 1
            level.weight[k] += examples.weight[i]
            level.total[k] += examples.weight[i] * examples.label[i]
    for k in range(size):
        level.mean[k] = (level.total[k] + level.weight[k] // 2) // level.weight[k]
        level.total[k] -= level.mean[k] * level.weight[k]
        nodes.weight[level.number[k]] = level.weight[k]
        nodes.mean[level.number[k]] = level.mean[k] + level.total[k] / level.weight[k]
    for i in range(examples.label.size):
        k = int64(examples.node[i])
        if k != NONE:
            off = examples.label[i] - level.mean[k]
            examples.centred[i] = examples.weight[i] * off
            nodes.variance[level.number[k]] += examples.weight[i] * (float(off) * float(off))
            if off != 0:
                level.is_open[k] = 1
    any_open = False
    for k in range(size):
        node = level.number[k]
        mean = level.total[k] / level.weight[k]
        # Labels that are all the same are 0 off the mean, which is one of them.
        nodes.variance[node] = max(nodes.variance[node] / level.weight[k] - mean * mean, 0.0)
        if level.examples[k] <= min_examples or nodes.depth[node] >= max_depth:
            level.is_open[k] = 0
        any_open = any_open or level.is_open[k] == 1
    return any_open


@jit
def divide(
    columns: Columns, examples: Examples, level: Level, following: Level, nodes: Nodes, size: int, made: int
) -> tuple[int, int]:
    """Make the children of all nodes that split, and give them their examples.

    Returns how many nodes the next level has, and how many there are in all.
    """
    for i in range(examples.label.size):
        k = int64(examples.node[i])
        if k != NONE and level.column[k] != NONE:
            examples.high[i] = 1 if between(level.below[k], level.above[k]) < 0.0 else 0
    for at in range(size):
        column = level.column[at]
        if column == NONE or columns.chosen[column] == 1:
            continue
        columns.chosen[column] = 1
        is_binary = columns.binary[column] == 1
        for entry in range(columns.begin[column], columns.end[column]):
            i = int64(columns.owner[entry])
            k = int64(examples.node[i])
            if k != NONE and level.column[k] == column:
                value = 1.0 if is_binary else columns.value[entry]
                examples.high[i] = 1 if value > between(level.below[k], level.above[k]) else 0
    count = 0
    for k in range(size):
        if level.column[k] != NONE:
            columns.chosen[level.column[k]] = 0
        node = level.number[k]
        nodes.column[node] = level.column[k]
        if level.column[k] == NONE:
            level.examples[k] = NONE
            continue
        nodes.threshold[node] = between(level.below[k], level.above[k])
        level.examples[k] = count  # where its low child is in the next level
        for side in range(2):
            nodes.child[node, side] = made
            nodes.parent[made] = node
            nodes.branch[made] = side
            nodes.depth[made] = nodes.depth[node] + 1
            following.number[count] = made
            count += 1
            made += 1
    for i in range(examples.label.size):
        k = int64(examples.node[i])
        if k != NONE:
            examples.node[i] = NONE if level.examples[k] == NONE else level.examples[k] + examples.high[i]
    return count, made


@jit
def preorder(nodes: Nodes, order: Int64s, pending: Int64s) -> None:
    """Write the nodes in preorder, low sides first."""
    pending[0] = 0
    size = 1
    at = 0
    while size > 0:
        size -= 1
        node = pending[size]
        order[at] = node
        at += 1
        if nodes.column[node] != NONE:
            pending[size] = nodes.child[node, 1]
            pending[size + 1] = nodes.child[node, 0]
            size += 2
