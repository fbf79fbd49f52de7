"""What earlier versions kept otherwise: a pool for each tree number, then one for all, where there are parts now.

::

    tree.0. tree.1. tree.2. ..      ->  trees.        ->  trees.0. trees.1. ..
    a pool for each tree number         one for all       a pool for each part, see parts.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core import example_store, rows
from algorithms.core.arrays import Int64s
from algorithms.core.example_store import HIGH, LABEL, LENGTH, LIVES, LOW, NEWER, NEWEST, OLDEST, START, WEIGHT
from algorithms.core.names import References
from algorithms.core.packing import Numbers
from algorithms.core.stored import flattened, rebuilt
from algorithms.dynamic import nodes, rivals, slack, vocabulary
from algorithms.dynamic.examples import AFTER, BEFORE
from algorithms.dynamic.nodes import FEATURE, FIRST, NONE, PARENT
from algorithms.dynamic.nodes import HIGH as HIGH_CHILD
from algorithms.dynamic.nodes import LOW as LOW_CHILD
from algorithms.dynamic.pool import DynamicPool
from algorithms.dynamic.slack import BLOCK, NO_SLACK
from algorithms.dynamic.state import ALIVE, ENTRIES, ROOT, TREE_COLUMNS, Forest
from algorithms.forests.parts import Parts
from algorithms.trees.packing import packed
from algorithms.trees.pool import TreePool, features_of

_COPIED = [HIGH, LOW, LABEL, WEIGHT, START, LENGTH]

Arrays = Mapping[str, npt.NDArray[Any]]


def in_one(arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of forests whose trees have a pool for each number as if one had all. O(everything)."""
    made = {name: array for name, array in arrays.items() if not name.startswith("tree.")}
    like, each = DynamicPool()._state, list[Forest]()
    while f"tree.{len(each)}.trees" in arrays:
        each.append(rebuilt(like, arrays, f"tree.{len(each)}"))
    keys, count = max(len(forest.trees) for forest in each), len(each)
    numbers = [np.arange(len(forest.trees)) * count + number for number, forest in enumerate(each)]
    held = _gathered(list(map(_Source, each, numbers)), keys * count)
    if "names.references" in made:  # a name was referred to by each tree number with such a feature
        references = made["names.references"].copy()
        for forest in each:
            references[vocabulary.features(forest.words)] -= 1
        references[vocabulary.features(held.words)] += 1
        made["names.references"] = references
    return made | flattened(held, "trees")


def in_parts(arrays: Arrays, trees: int) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of forests of so many trees in one pool as those of parts. O(everything)."""
    made = {name: array for name, array in arrays.items() if not name.startswith("trees.")}
    has_floors = "trees.slack.floor" in arrays
    parts = Parts(trees, 1, partial(DynamicPool, guarantee="exact" if has_floors else None))
    one = rebuilt(parts.pools[0]._state, arrays, "trees")
    if has_floors:
        has_numeric, classes = arrays["trees.values"].size > 0, one.nodes.weights.shape[1]
        like = slack.make(1, classes, has_binary=True, has_numeric=has_numeric, of_numbers=False, is_exact=True)
        known = slack.with_later(arrays, "trees.slack", like)
        one = one._replace(slack=rebuilt(one.slack, known, "trees.slack"))
    keys = -(-len(one.trees) // parts.trees)
    references = made["names.references"] - _references(one, made) if "names.references" in made else None
    for part in range(len(parts)):
        local = np.arange(keys * parts.size(part))
        numbers = np.full(keys * parts.trees, NONE)
        numbers[parts.numbers(part, local)] = local
        held = _gathered([_Source(one, numbers[: len(one.trees)])], len(local))
        made |= flattened(held, f"trees.{part}")
        if held.slack is not NO_SLACK:
            made |= flattened(held.slack, f"trees.{part}.slack")
        if references is not None:
            made |= names_of(_references(held, made), f"trees.{part}.names")
    if references is not None:
        made["names.references"] = references
    return made


def grown_in_parts(arrays: Arrays, trees: int, policy: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of forests of trees that grow in one pool as those of parts, as `in_parts` does."""
    made = {name: array for name, array in arrays.items() if not name.startswith("trees.")}
    parts = Parts(trees, 1, partial(TreePool, policy=policy), each=2)
    one = rebuilt(parts.pools[0]._state, arrays, "trees")
    keys = range(-(-len(one.trees) // (2 * parts.trees)))
    references = made["names.references"].copy() if "names.references" in made else None
    for part in range(len(parts)):
        local = np.array(parts.local(part, keys))
        numbers = parts.numbers(part, local)
        held = packed(one, numbers[numbers < len(one.trees)].astype(np.int32))
        made |= flattened(held, f"trees.{part}")
        if references is not None:
            seen = np.concatenate(features_of(held)).astype(np.int64)
            counted = np.bincount(seen, minlength=len(references)).astype(np.int32)
            made |= names_of(counted, f"trees.{part}.names")
            references -= counted
    if references is not None:
        made["names.references"] = references
    return made


def names_of(references: npt.NDArray[np.int32], name: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a part that refers so often to each name."""
    return flattened(References(references, np.zeros_like(references), np.zeros(3, np.int64)), name)


def _references(forest: Forest, arrays: Arrays) -> npt.NDArray[np.int32]:
    """Return how often trees refer to each name: features of live examples once, those of splits each time."""
    split_on = forest.nodes.links[_in_use(forest, range(len(forest.trees))), FEATURE]
    held = np.concatenate([vocabulary.features(forest.words), split_on[split_on != NONE]])
    return np.bincount(held, minlength=len(arrays["names.references"])).astype(np.int32)


class _Source(NamedTuple):
    """Where trees come from."""

    forest: Forest
    numbers: Int64s  # int64[trees], the new number of each, NONE: it stays behind


def _gathered(sources: Sequence[_Source], trees: int) -> Forest:
    """Return one state of trees from several, in arrays for no more than them."""
    like = sources[0].forest
    used = [Numbers(_in_use(forest, np.flatnonzero(numbers != NONE).tolist())) for forest, numbers in sources]
    examples = sum(int(forest.store.heads[numbers != NONE, LIVES].sum()) for forest, numbers in sources)
    entries = sum(int(forest.trees[numbers != NONE, ENTRIES].sum()) for forest, numbers in sources)
    size, blocks = sum(map(len, used)), sum(map(_blocks_of, sources, used))
    capacity = max(8, size, rivals.NODES * blocks)
    made = like._replace(
        trees=np.zeros((trees, TREE_COLUMNS), np.int64),
        alive=np.zeros(1, np.int64),
        nodes=nodes.make(capacity, like.nodes.weights.shape[1]),
        store=_room(trees, examples, entries),
        words=vocabulary.make(max(16, sum(len(vocabulary.features(forest.words)) for forest, _ in sources))),
    )
    made = made._replace(
        values=np.zeros(len(made.store.features) if like.values.size else 0),
        chain=np.zeros((len(made.store.rows), 2), np.int32),
    )
    if like.slack is not NO_SLACK:
        made = made._replace(slack=_no_slack(like.slack, capacity))
    begin = 0
    for source, own in zip(sources, used, strict=True):
        _enter_nodes(made, source, own, begin, _enter_examples(made, source))
        begin += len(own)
    made.nodes.used[:2] = size
    made.alive[0] = np.count_nonzero(made.trees[:, ALIVE])
    return made


def _no_slack(like: slack.Slack, capacity: int) -> slack.Slack:
    """Return storage for so many nodes, of which nothing is known."""
    return slack.make(
        capacity,
        like.old.shape[1],
        has_binary=len(like.rivals.heads) > 0,
        has_numeric=len(like.columns.sizes) > 0,
        of_numbers=False,
        is_exact=len(like.bands.of) > 0,
    )


def _in_use(forest: Forest, trees: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return which nodes these trees have."""
    found = np.zeros(len(forest.nodes.links), np.bool_)
    for tree in trees:
        if forest.trees[tree, ALIVE]:
            found[nodes.preorder(forest.nodes, int(forest.trees[tree, ROOT]))] = True
    return found


def _blocks_of(source: _Source, own: Numbers) -> int:
    """Return how many blocks of rivals some nodes have."""
    if source.forest.slack is NO_SLACK:
        return 0
    return int(np.count_nonzero(source.forest.slack.counts[own.kept, BLOCK] > 0))


def _enter_nodes(made: Forest, source: _Source, own: Numbers, begin: int, row_of: Int64s) -> None:
    """Enter nodes behind others, and their trees; `row_of` has the new rows of examples."""
    forest, stop = source.forest, begin + len(own)
    links = forest.nodes.links[own.kept]
    for column in (LOW_CHILD, HIGH_CHILD, PARENT):
        links[:, column] = _behind(begin, own.of(links[:, column]))
    links[:, FIRST] = row_of[links[:, FIRST]]
    made.nodes.links[begin:stop] = links
    made.nodes.threshold[begin:stop] = forest.nodes.threshold[own.kept]
    made.nodes.weights[begin:stop] = forest.nodes.weights[own.kept]
    if made.slack is not NO_SLACK:
        _enter_slack(made.slack, forest.slack, own, begin)
    moves = source.numbers != NONE
    trees = forest.trees[moves]
    trees[:, ROOT] = np.where(trees[:, ALIVE] == 1, _behind(begin, own.of(trees[:, ROOT])), 0)
    made.trees[source.numbers[moves]] = trees


def _enter_slack(made: slack.Slack, forest: slack.Slack, own: Numbers, begin: int) -> None:
    """Enter what is known of nodes, behind others."""
    stop, used = begin + len(own), made.rivals.used
    of_nodes: Any = zip((*made, *made.columns), (*forest, *forest.columns), strict=True)
    for array, kept in of_nodes:
        if isinstance(array, np.ndarray) and len(kept):
            array[begin:stop] = kept[own.kept]
    has = begin + np.flatnonzero(made.counts[begin:stop, BLOCK] > 0)
    old, new = made.counts[has, BLOCK] - 1, np.arange(used[0], used[0] + len(has))
    made.rivals.heads[new, rivals.SIZE] = forest.rivals.heads[old, rivals.SIZE]
    columns = forest.rivals.cells.shape[1]
    to, cells = (each.cells.reshape(-1, rivals.WIDTH, columns) for each in (made.rivals, forest.rivals))
    to[new] = cells[old]
    made.counts[has, BLOCK] = new + 1
    used[:2] += len(has)


def _behind(begin: int, numbers: Int64s) -> Int64s:
    """Return the numbers of rows that begin behind others, NONE that of `NONE`."""
    return np.where(numbers == NONE, NONE, begin + numbers)


def _room(indexes: int, examples: int, entries: int) -> example_store.ExampleStore:
    """Return an empty store with room for so many examples and features."""
    store = example_store.make(indexes)
    while len(store.rows) < examples:
        store = example_store.with_rows(store)
    return store._replace(features=np.zeros(max(64, entries), np.uint32))


def _enter_examples(made: Forest, source: _Source) -> Int64s:
    """Enter the live examples of trees; return the new row of each old one, NONE as the last."""
    store, forest = made.store, source.forest
    old = forest.store
    row_of = np.full(len(old.rows) + 1, NONE, np.int64)
    seen = [np.zeros(0, np.uint32)]
    for before, tree in enumerate(source.numbers.tolist()):
        row = int(old.heads[before, OLDEST])
        for _ in range(int(old.heads[before, LIVES]) if tree != NONE else 0):
            high, low, label, weight, start, length = old.rows[row, _COPIED].tolist()
            example_store.add(store, 2 * tree + 1, high, low, label, weight, old.features, start, start + length)
            row_of[row] = store.heads[tree, NEWEST]
            to = store.rows[row_of[row], START]
            if forest.values.size:
                made.values[to : to + length] = forest.values[start : start + length]
            seen.append(old.features[start : start + length])
            row = int(old.rows[row, NEWER])
    for row in np.flatnonzero(row_of[:-1] != NONE).tolist():
        for column in (BEFORE, AFTER):
            made.chain[row_of[row], column] = row_of[forest.chain[row, column]]
    features, counts = np.unique(np.concatenate(seen), return_counts=True)
    for feature, holders in zip(features.tolist(), counts.tolist(), strict=True):
        at = int(vocabulary.find(made.words, feature))
        if at == NONE:
            at = int(rows.create(made.words, 0, feature, NONE))
            kind = forest.words.cells[vocabulary.find(forest.words, feature), vocabulary.KIND]
            made.words.cells[at, vocabulary.KIND] = kind
        made.words.cells[at, vocabulary.HOLDERS] += holders
    return row_of
