"""What earlier versions kept otherwise: a pool for each tree number, where there is one for all trees now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.core import example_store, rows
from algorithms.core.arrays import Int64s
from algorithms.core.example_store import HIGH, LABEL, LENGTH, LIVES, LOW, NEWER, NEWEST, OLDEST, START, WEIGHT
from algorithms.core.packing import Numbers
from algorithms.core.stored import flattened, rebuilt
from algorithms.dynamic import nodes, vocabulary
from algorithms.dynamic.examples import AFTER, BEFORE
from algorithms.dynamic.nodes import FEATURE, FIRST, NONE, PARENT
from algorithms.dynamic.nodes import HIGH as HIGH_CHILD
from algorithms.dynamic.nodes import LOW as LOW_CHILD
from algorithms.dynamic.pool import DynamicPool
from algorithms.dynamic.state import ALIVE, ROOT, TREE_COLUMNS, Forest

_COPIED = [HIGH, LOW, LABEL, WEIGHT, START, LENGTH]
_FREED = -2  # as FEATURE of a node: not in use

Arrays = Mapping[str, npt.NDArray[Any]]


def in_one(arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of forests whose trees have a pool for each number as those of today. O(everything)."""
    made = {name: array for name, array in arrays.items() if not name.startswith("tree.")}
    like, count = DynamicPool()._state, 0
    parts: list[Forest] = []
    while f"tree.{count}.trees" in arrays:
        parts.append(rebuilt(like, arrays, f"tree.{count}"))
        count += 1
    held = _joined(parts)
    if "names.references" in made:  # a name was referred to by each tree number with such a feature
        references = made["names.references"].copy()
        for part in parts:
            references[_features(part)] -= 1
        references[_features(held)] += 1
        made["names.references"] = references
    return made | flattened(held, "trees")


def _features(forest: Forest) -> Int64s:
    """Return the features of live examples."""
    cells = forest.words.cells[: forest.words.used[rows.EVER]]
    return cells[cells[:, rows.KEY] != NONE, rows.KEY]


def _joined(parts: list[Forest]) -> Forest:
    """Return one state of all trees: tree t of key k is k T + t."""
    first, keys = parts[0], max(len(part.trees) for part in parts)
    used = [Numbers(_are_in_use(part)) for part in parts]
    size, entries = sum(map(len, used)), sum(int(part.store.counts[example_store.HELD]) for part in parts)
    joined = first._replace(
        trees=np.zeros((keys * len(parts), TREE_COLUMNS), np.int64),
        alive=np.array([sum(int(part.alive[0]) for part in parts)], np.int64),
        nodes=nodes.make(max(8, size), first.nodes.weights.shape[1]),
        store=_room(keys * len(parts), sum(int(part.store.counts[example_store.USED]) for part in parts), entries),
        words=vocabulary.make(max(16, sum(len(_features(part)) for part in parts))),
    )
    joined = joined._replace(
        values=np.zeros(len(joined.store.features) if first.values.size else 0),
        chain=np.zeros((len(joined.store.rows), 2), np.int32),
    )
    begin = 0
    for number, (part, own) in enumerate(zip(parts, used, strict=True)):
        row_of = _enter_examples(joined, part, number, len(parts))
        links = part.nodes.links[own.kept]
        for column in (LOW_CHILD, HIGH_CHILD, PARENT):
            links[:, column] = _behind(begin, own.of(links[:, column]))
        links[:, FIRST] = row_of[links[:, FIRST]]
        stop = begin + len(own)
        joined.nodes.links[begin:stop] = links
        joined.nodes.threshold[begin:stop] = part.nodes.threshold[own.kept]
        joined.nodes.weights[begin:stop] = part.nodes.weights[own.kept]
        trees = part.trees.copy()
        trees[:, ROOT] = np.where(trees[:, ALIVE] == 1, _behind(begin, own.of(trees[:, ROOT])), 0)
        joined.trees[number :: len(parts)][: len(trees)] = trees
        begin = stop
    joined.nodes.used[:2] = size
    return joined


def _are_in_use(part: Forest) -> npt.NDArray[np.bool_]:
    """Return which nodes are."""
    in_use: npt.NDArray[np.bool_] = part.nodes.links[:, FEATURE] != _FREED
    in_use[part.nodes.used[nodes.EVER] :] = False
    return in_use


def _behind(begin: int, numbers: Int64s) -> Int64s:
    """Return the numbers of rows that begin behind others, NONE that of `NONE`."""
    return np.where(numbers == NONE, NONE, begin + numbers)


def _room(indexes: int, examples: int, entries: int) -> example_store.ExampleStore:
    """Return an empty store with room for so many examples and features."""
    store = example_store.make(indexes)
    while len(store.rows) < examples:
        store = example_store.with_rows(store)
    return store._replace(features=np.zeros(max(64, entries), np.uint32))


def _enter_examples(joined: Forest, part: Forest, number: int, count: int) -> Int64s:
    """Enter the live examples of a tree number; return the new row of each old one, NONE as the last."""
    store, old = joined.store, part.store
    row_of = np.full(len(old.rows) + 1, NONE, np.int64)
    for key in range(len(part.trees)):
        row = int(old.heads[key, OLDEST])
        tree = key * count + number
        for _ in range(int(old.heads[key, LIVES])):
            high, low, label, weight, start, length = old.rows[
                row, [HIGH, LOW, LABEL, WEIGHT, START, LENGTH]
            ].tolist()
            example_store.add(store, 2 * tree + 1, high, low, label, weight, old.features, start, start + length)
            row_of[row] = store.heads[tree, NEWEST]
            to = store.rows[row_of[row], START]
            if part.values.size:
                joined.values[to : to + length] = part.values[start : start + length]
            row = int(old.rows[row, NEWER])
    for row in np.flatnonzero(row_of[:-1] != NONE).tolist():
        for column in (BEFORE, AFTER):
            joined.chain[row_of[row], column] = row_of[part.chain[row, column]]
    cells = part.words.cells[: part.words.used[rows.EVER]]
    for cell in cells[cells[:, rows.KEY] != NONE].tolist():
        at = int(vocabulary.find(joined.words, cell[rows.KEY]))
        if at == NONE:
            at = int(rows.create(joined.words, 0, cell[rows.KEY], NONE))
            joined.words.cells[at, vocabulary.KIND] = cell[vocabulary.KIND]
        joined.words.cells[at, vocabulary.HOLDERS] += cell[vocabulary.HOLDERS]
    return row_of
