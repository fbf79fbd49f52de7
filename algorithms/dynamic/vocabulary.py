"""The features that live examples have, each with a small number: its column. Memory follows what is live."""

from __future__ import annotations

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Int8s, Int64s
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names, refer, release
from algorithms.core.rows import COUNT, NONE, Rows

# Columns of the cells: how many live examples have the feature, and its `Kind`. The key is (0, feature).
HOLDERS, KIND = COUNT, COUNT + 1


def make(capacity: int) -> Rows:
    """Return an empty vocabulary."""
    return rows.make(capacity, 2)


def listed(features: Int64s, kinds: Int8s) -> Rows:
    """Return a vocabulary whose columns are these features in their order. `find` does not know them."""
    words = make(1)._replace(cells=np.zeros((max(len(features), 1), COUNT + 2), np.int64))
    words.cells[: len(features), rows.KEY] = features
    words.cells[: len(features), KIND] = kinds
    return words


@inlined
def find(vocabulary: Rows, feature: int) -> int:
    """Return the column of a feature, or NONE."""
    return rows.find(vocabulary, 0, feature)


@inlined
def feature_of(vocabulary: Rows, column: int) -> int:
    """Return the feature of a column."""
    return rows.item_of(vocabulary, column)


@inlined
def enter(vocabulary: Rows, names: Names, feature: int, kind: int) -> int:
    """Return the column of a new feature, which nobody holds; there must be room."""
    column = rows.create(vocabulary, 0, feature, NONE)
    vocabulary.cells[column, KIND] = kind
    refer(names, feature)
    return column


@jit
def hold(vocabulary: Rows, names: Names, feature: int, kind: int) -> None:
    """Note that one more example has a feature; there must be room."""
    column = find(vocabulary, feature)
    if column == NONE:
        column = enter(vocabulary, names, feature, kind)
    vocabulary.cells[column, HOLDERS] += 1


@jit
def let_go(vocabulary: Rows, names: Names, feature: int) -> None:
    """Note that one example less has a feature; the last takes it along."""
    column = find(vocabulary, feature)
    vocabulary.cells[column, HOLDERS] -= 1
    if vocabulary.cells[column, HOLDERS] == 0:
        rows.remove(vocabulary, column)
        release(names, feature)


def features(vocabulary: Rows) -> Int64s:
    """Return all features. O(those that there ever were at a time)."""
    keys = vocabulary.cells[: vocabulary.used[rows.EVER], rows.KEY]
    found: Int64s = keys[keys != NONE]
    return found
