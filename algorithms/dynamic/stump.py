"""A tree of one split, from columns as they come: no rows are made of them.

::

    columns, checked and counted on the way -> the best split (splitter.py) -> three nodes
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt8s, int64
from algorithms.core.jit import jit
from algorithms.core.kinds import BINARY, Kind
from algorithms.core.names import NO_NAMES, Names
from algorithms.core.rows import Rows
from algorithms.core.schema import Schema
from algorithms.dynamic import nodes, segment, vocabulary
from algorithms.dynamic.labels import add_to_feature, is_pure
from algorithms.dynamic.nodes import FEATURE, HIGH, KIND, LOW, NONE
from algorithms.dynamic.samples import ColumnSample
from algorithms.dynamic.segment import HEAVIEST, LIGHTEST, TOUCHED, Segment, begin_weights, note_weight
from algorithms.dynamic.splitter import NO_SPLIT, Choice, Way, best_split
from algorithms.trees.snapshot import Tree

_ORDERED = int(Way.ORDERED)


def build_stump(
    criterion: Any, sample: ColumnSample, classes: int, schema: Schema, *, alpha: float, is_leaf: bool
) -> Tree | None:
    """Return the tree of plain columns whose labels and weights have been checked: a leaf, or a node with two.

    None where the columns are not as scipy's canonical ones: rows ascend in each, features do, and no value is 0.
    O(entries), and a sort of numeric columns.
    """
    n, width = len(sample.label), len(sample.feature)
    feature = sample.feature.astype(np.int64)
    if not n or (np.diff(feature) <= 0).any():
        return None
    schema.intern(None)
    kind = schema.of(feature)
    is_plain = not (kind == Kind.NUMERIC).any()
    scratch = segment.make(n, 0 if is_plain else len(sample.row), max(width, 1), classes, is_plain)
    scratch = scratch._replace(label=sample.label, weight=sample.weight)
    of_two = (sample.label if classes == 2 else sample.label[:0]).astype(np.uint8)  # small: it stays in the cache
    if not _lay_out(criterion, scratch, of_two, kind, *sample[:3]):
        return None
    choice = NO_SPLIT
    if not is_leaf:
        choice = Choice(*_best(criterion, scratch, vocabulary.listed(feature, kind), NO_NAMES, alpha))
    state = nodes.make(3, classes)
    root = nodes.create(state, NONE, 0, 0, 0)
    state.weights[root] = scratch.totals
    if choice.column != NONE:
        _split(state, root, sample, choice, int(kind[choice.column]))
    return nodes.snapshot(state, root)


def _split(state: nodes.Nodes, root: int, sample: ColumnSample, choice: Choice, kind: int) -> None:
    """Give the root the split that was chosen, and two leaves. O(entries of its column)."""
    low = nodes.create(state, root, LOW, 1, 1)
    high = nodes.create(state, root, HIGH, 1, 2)
    state.links[root, FEATURE], state.links[root, KIND] = sample.feature[choice.column], kind
    state.threshold[root] = choice.threshold
    entries = slice(*sample.pointer[choice.column : choice.column + 2])
    zeros = high if choice.threshold < 0.0 else low  # where those go that lack the feature
    of_others = (sample.value[entries] <= choice.threshold) == (zeros == high)
    rows = sample.row[entries][of_others]
    others = low + high - zeros
    np.add.at(state.weights[others], sample.label[rows], sample.weight[rows])
    state.weights[zeros] = state.weights[root] - state.weights[others]


@jit
def _lay_out(
    criterion: Any,
    segment: Segment,
    of_two: UInt8s,
    kind: Int8s,
    pointer: Int64s,
    row: Int32s,
    value: Float64s,
) -> bool:
    """Fill a segment as `segment.lay_out` does, without what only the nodes below the root need.

    `of_two` has the labels where these are two, else nothing. False where the columns are not canonical.
    """
    n = int64(segment.label.size)
    begin_weights(segment)
    for i in range(n):
        note_weight(segment, segment.weight[i])
        segment.order[i] = i
        segment.totals[segment.label[i]] += segment.weight[i]
    counts_ones = of_two.size == n and segment.sizes[LIGHTEST] == segment.sizes[HEAVIEST]
    touched = int64(0)
    at = int64(0)
    for column in range(kind.size):
        stop = pointer[column + 1]
        if pointer[column] != at or not at <= stop <= row.size:
            return False
        if stop == at:
            continue
        segment.touched[touched] = column
        touched += 1
        segment.present[column] = stop - at
        segment.group[column] = at
        segment.numeric[column] = kind[column] != BINARY
        before = int64(-1)
        if segment.numeric[column] == 1:
            for entry in range(at, stop):
                i = int64(row[entry])
                if not before < i < n or not 0.0 < abs(value[entry]) < math.inf:
                    return False
                segment.owner[entry] = i
                segment.value[entry] = value[entry]
                before = i
        elif counts_ones:
            ones = int64(0)
            for entry in range(at, stop):
                i = int64(row[entry])
                if not before < i < n or value[entry] != 1.0:
                    return False
                ones += of_two[i]
                before = i
            segment.counts[column, 0] = (stop - at - ones) * segment.sizes[HEAVIEST]
            segment.counts[column, 1] = ones * segment.sizes[HEAVIEST]
        else:
            for entry in range(at, stop):
                i = int64(row[entry])
                if not before < i < n or value[entry] != 1.0:
                    return False
                add_to_feature(criterion, segment.counts, column, segment.label[i], segment.weight[i])
                before = i
        at = stop
    segment.sizes[TOUCHED] = touched
    return at == row.size


@jit
def _best(criterion: Any, segment: Segment, words: Rows, names: Names, alpha: float) -> Choice:
    """Return the best split, or none where the root is pure."""
    if is_pure(criterion, segment.counts, int64(0), segment.totals, alpha):  # of classes `totals` tell
        return NO_SPLIT
    n = int64(segment.label.size)
    return best_split(
        criterion, segment, words, names, int64(0), n, _ORDERED, int64(1), int64(0), int64(0), int64(0)
    )
