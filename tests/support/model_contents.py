"""What a model holds, as plain values that do not depend on where in its arrays things lie."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core import example_store
from algorithms.core.names import NO_NAMES, Interner, name_or_id
from algorithms.core.rows import COUNT, EVER, KEY
from algorithms.core.stored import rebuilt
from algorithms.dynamic.aside import IDLE, STAGE, TO_WIPE
from algorithms.dynamic.numbers import DynamicNumberPool
from algorithms.dynamic.pool import DynamicPool
from algorithms.dynamic.pool import Sizes as ForgettingSizes
from algorithms.mixed import heads as mixed
from algorithms.regression import elements
from algorithms.regression.pool import Sizes as RegressionSizes
from algorithms.splits import slots
from algorithms.splits.kernel import ALIVE, EVENTS, LAST, SPLIT_PERIOD, TREE_PERIOD
from algorithms.trees.nodes import NUMBER, TREE
from algorithms.trees.pool import Sizes
from algorithms.trees.state import LEARNED
from tests.oracles.naive_regression import tree_columns as regression_columns
from tests.oracles.tree_streams import tree_columns
from worker.models import Model
from worker.models.dynamic import DynamicTreeModel
from worker.models.dynamic_number import DynamicNumberModel
from worker.models.forest import ForestModel
from worker.models.growing_forest import GrowingForestModel
from worker.models.mixed_split import MixedSplitModel
from worker.models.regression_tree import RegressionTreeModel
from worker.models.split import SplitModel
from worker.models.tree import TreeModel

Feature = int | bytes
_EVALUATION = "evaluation."
_ASIDE = "aside.heads"
_OF_LEDGER = (example_store.HIGH, example_store.LOW, example_store.LABEL, example_store.WEIGHT)


class Example(NamedTuple):
    """A live example, or what is remembered of one that the window dropped."""

    id: tuple[int, int] | None  # its digest
    label: int
    weight: int
    features: frozenset[Feature]


class Instance(NamedTuple):
    """The model of one key."""

    totals: tuple[int, int]
    counts: dict[Feature, tuple[int, int]]
    events: int
    last: Feature  # the best after the event before; a number below 0 where there was none or it is gone
    periods: tuple[int, int]
    live: list[Example]  # oldest first
    dropped: list[tuple[int, int] | None]  # digests of ids


class Forgetting(NamedTuple):
    """The tree of one key that forgets, and what is built aside of it."""

    tree: Any
    sizes: ForgettingSizes
    live: list[Any]  # features, label, weight; oldest first
    stage: int
    counted: int  # what takes work to wipe


class Grown(NamedTuple):
    """The tree of one key."""

    nodes: list[tuple[Any, ...]]
    sizes: Sizes | RegressionSizes
    seen: dict[int, dict[tuple[str, Feature], Any]]  # what leaves counted and where, by the number of the node


def model_contents(model: Model) -> dict[bytes, Any]:
    """Return what a model holds, by key; what it holds in common under an empty key."""
    model.settle()
    match model:
        case TreeModel():
            return _trees(model)
        case DynamicTreeModel():
            return _dynamic_trees(model)
        case DynamicNumberModel():
            return _dynamic_numbers(model)
        case ForestModel():
            return _forests(model)
        case GrowingForestModel():
            return _growing_forests(model)
        case RegressionTreeModel():
            return _regression_trees(model)
        case SplitModel():
            return dict(_splits(model))
        case MixedSplitModel():
            return dict(_mixed_splits(model))
    return _any(model)


def _any(model: Model) -> dict[bytes, Any]:
    """Return what can be told of a kind that is not known here: its size, and what all kinds evaluate."""
    arrays = model.arrays()
    return {b"": (model.status()._replace(bytes=0, quality=None), _evaluation(arrays))}


def _evaluation(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return what is evaluated; the labels of keys by their names."""
    found = {name: array.tolist() for name, array in arrays.items() if name.startswith(_EVALUATION)}
    labels = found.pop(f"{_EVALUATION}labels", None)
    if labels is not None:
        keys = Interner(rebuilt(NO_NAMES, arrays, "keys"))
        found["labels"] = {keys.name(key): row for key, row in enumerate(labels) if any(row)}
    return found


def _dynamic_trees(model: DynamicTreeModel) -> dict[bytes, Any]:
    arrays = model.arrays()
    pool = model._pool
    keys = Interner(rebuilt(NO_NAMES, arrays, "keys"))
    found: dict[bytes, Any] = {b"": _evaluation(arrays)}
    for index in np.flatnonzero(arrays["trees"].any(axis=1)).tolist():
        stage, left = arrays[_ASIDE][index, [STAGE, TO_WIPE]].tolist() if _ASIDE in arrays else [IDLE, 0]
        seen = tree_columns(pool.tree(index)), pool.sizes(index), _live(pool, index)
        found[keys.name(index)] = Forgetting(*seen, stage, left)
    return found


def _dynamic_numbers(model: DynamicNumberModel) -> dict[bytes, Any]:
    arrays = model.arrays()
    pool = model._pool
    keys = Interner(rebuilt(NO_NAMES, arrays, "keys"))
    found: dict[bytes, Any] = {b"": _evaluation_of_numbers(arrays, keys)}
    for index in np.flatnonzero(arrays["trees"].any(axis=1)).tolist():
        found[keys.name(index)] = (regression_columns(pool.tree(index)), pool.sizes(index), _live(pool, index))
    return found


def _live(pool: DynamicPool | DynamicNumberPool, index: int) -> list[Any]:
    """Return the live examples of a tree that forgets, oldest first."""
    return [
        (sorted(name_or_id(pool.names, number) for number in features.tolist()), label, weight)
        for features, label, weight in example_store.live(pool._state.store, index)
    ]


def _forests(model: ForestModel) -> dict[bytes, Any]:
    arrays = model.arrays()
    pool = model._pool
    keys = Interner(rebuilt(NO_NAMES, arrays, "keys"))
    found: dict[bytes, Any] = {b"": _evaluation(arrays)}
    for index, told in enumerate(arrays["keys"].tolist()):
        if any(told):
            rows = pool._state.store.rows[pool._live_rows(index)]
            live = [tuple(row[column] for column in _OF_LEDGER) for row in rows.tolist()]
            trees = [tree_columns(tree) for tree in pool.trees(index)]
            found[keys.name(index)] = (told, trees, pool.sizes(index), live)
    return found


def _growing_forests(model: GrowingForestModel) -> dict[bytes, Any]:
    arrays = model.arrays()
    pool = model._pool
    keys = Interner(rebuilt(NO_NAMES, arrays, "keys"))
    found: dict[bytes, Any] = {b"": _evaluation(arrays)}
    for index, told in enumerate(arrays["keys"].tolist()):
        if any(told):
            own = slice(index * pool.count, (index + 1) * pool.count)
            detectors = [array[2 * own.start : 2 * own.stop].tolist() for array in pool._state.windows[:2]]
            trees = [tree_columns(tree) for tree in pool.trees(index)]
            places = arrays["places"][own].tolist()
            found[keys.name(index)] = (told, trees, places, detectors, pool.sizes(index))
    return found


def _trees(model: TreeModel) -> dict[bytes, Any]:
    arrays = model.arrays()
    pool, links = model._pool, arrays["nodes.links"]
    keys = Interner(rebuilt(NO_NAMES, arrays, "keys"))
    seen: dict[int, dict[int, dict[tuple[str, Feature], Any]]] = {}

    def count(where: str, node: int, feature: int, what: Any) -> None:
        name = feature if pool.names is None else pool.names.name(feature)
        of_node = seen.setdefault(int(links[node, TREE]), {}).setdefault(int(links[node, NUMBER]), {})
        assert (where, name) not in of_node
        of_node[where, name] = what

    cells = arrays["features.rows.cells"]
    for row in np.flatnonzero(cells[: arrays["features.rows.used"][EVER], KEY] >= 0).tolist():
        count(
            "observers", int(cells[row, KEY]) >> 32, int(cells[row, KEY]) & 0xFFFFFFFF, cells[row, COUNT:].tolist()
        )
    if "policy.slots.rows" in arrays:
        for row in arrays["policy.slots.rows"][: arrays["policy.slots.counts"][slots.EVER]].tolist():
            if row[slots.KEY] >= 0:
                count("index", row[slots.KEY] >> 32, row[slots.KEY] & 0xFFFFFFFF, (row[slots.C0], row[slots.C1]))
    found: dict[bytes, Any] = {b"": _evaluation(arrays)}
    for index in np.flatnonzero(arrays["trees"][:, LEARNED]).tolist():
        found[keys.name(index)] = Grown(tree_columns(pool.tree(index)), pool.sizes(index), seen.get(index, {}))
    return found


def _regression_trees(model: RegressionTreeModel) -> dict[bytes, Any]:
    arrays = model.arrays()
    pool, links = model._pool, arrays["nodes.links"]
    forest = pool._state
    keys = Interner(rebuilt(NO_NAMES, arrays, "keys"))
    seen: dict[int, dict[int, dict[tuple[str, Feature], Any]]] = {}
    cells = arrays["features.rows.cells"]
    for row in np.flatnonzero(cells[: arrays["features.rows.used"][EVER], KEY] >= 0).tolist():
        leaf, feature = int(cells[row, KEY]) >> 32, int(cells[row, KEY]) & 0xFFFFFFFF
        own = elements.chain(forest.elements, row)
        seen.setdefault(int(links[leaf, TREE]), {}).setdefault(int(links[leaf, NUMBER]), {})[
            "moments", name_or_id(pool.names, feature)
        ] = (
            cells[row, COUNT:].tolist(),
            arrays["features.moments"][row].tolist(),
            forest.elements.weight[own].tolist(),
            forest.elements.numbers[own].tolist(),
        )
    found: dict[bytes, Any] = {b"": _evaluation_of_numbers(arrays, keys)}
    for index in np.flatnonzero(arrays["trees"][:, LEARNED]).tolist():
        nodes = regression_columns(pool.tree(index))
        found[keys.name(index)] = Grown(nodes, pool.sizes(index), seen.get(index, {}))
    return found


def _evaluation_of_numbers(arrays: dict[str, Any], keys: Interner) -> dict[str, Any]:
    """Return what is evaluated, as text, in which one prediction that is missing is like another."""
    found: dict[str, Any] = {
        name: str(array.tolist()) for name, array in arrays.items() if name.startswith(_EVALUATION)
    }
    if f"{_EVALUATION}labels.weight" in found:
        weight, numbers = (arrays[f"{_EVALUATION}labels.{each}"].tolist() for each in ("weight", "numbers"))
        del found[f"{_EVALUATION}labels.weight"], found[f"{_EVALUATION}labels.numbers"]
        known = [key for key, each in enumerate(weight) if each]
        found["labels"] = {keys.name(key): (weight[key], numbers[key]) for key in known}
    return found


def _mixed_splits(model: MixedSplitModel) -> dict[bytes, Any]:
    arrays, holdings = model.arrays(), model.holdings()
    pool = model._pool
    keys = Interner(rebuilt(NO_NAMES, arrays, "keys"))
    found = {}
    for index, head in enumerate(arrays["heads"].tolist()):
        if head[mixed.ALIVE]:
            last = head[mixed.LAST] if head[mixed.LAST] < 0 else name_or_id(pool.names, head[mixed.LAST])
            when = head[mixed.EVENTS], head[mixed.SPLIT_PERIOD], head[mixed.TREE_PERIOD]
            live = [
                (sorted(name_or_id(pool.names, number) for number in features.tolist()), label, weight)
                for features, label, weight in example_store.live(pool._state.store, index)
            ]
            key = keys.name(index)
            found[key] = (
                holdings[key].learned,
                when,
                last,
                arrays["numbers"][index, mixed.LAST_VALUE],
                pool.best(index),
                live,
            )
    return found


def _splits(model: Model) -> dict[bytes, Instance]:
    arrays = model.arrays()

    keys = Interner(rebuilt(NO_NAMES, arrays, "keys"))
    names = Interner(rebuilt(NO_NAMES, arrays, "names")) if "names.start" in arrays else None
    book, counted = rebuilt(example_store.make(1), arrays, "ledger"), rebuilt(slots.make(1, 1), arrays, "slots")
    rows, heads = counted.rows, counted.heads

    def feature(number: int) -> Feature:
        return number if names is None else names.name(number)

    counts: dict[int, dict[Feature, tuple[int, int]]] = {}
    for row in rows[: arrays["slots.counts"][slots.EVER]]:
        if row[slots.KEY] >= 0:
            of_key = counts.setdefault(int(row[slots.KEY]) >> 32, {})
            of_key[feature(int(row[slots.KEY]) & 0xFFFFFFFF)] = (int(row[slots.C0]), int(row[slots.C1]))

    def examples(index: int, first: int) -> list[Example]:
        found = []
        at = int(book.heads[index, first])
        while at != example_store.NONE:
            row = book.rows[at].tolist()
            start, stop = row[example_store.START], row[example_store.START] + row[example_store.LENGTH]
            found.append(
                Example(
                    (row[example_store.HIGH], row[example_store.LOW]) if row[example_store.OWNER] & 1 else None,
                    row[example_store.LABEL],
                    row[example_store.WEIGHT],
                    frozenset(feature(number) for number in book.features[start:stop].tolist()),
                )
            )
            at = row[example_store.NEWER]
        return found

    found = {}
    for index, head in enumerate(arrays["heads"].tolist()):
        if head[ALIVE]:
            found[keys.name(index)] = Instance(
                totals=(int(heads[index, slots.N0]), int(heads[index, slots.N1])),
                counts=counts.get(index, {}),
                events=head[EVENTS],
                last=head[LAST] if head[LAST] < 0 else feature(head[LAST]),
                periods=(head[SPLIT_PERIOD], head[TREE_PERIOD]),
                live=examples(index, example_store.OLDEST),
                dropped=[example.id for example in examples(index, example_store.FIRST_DROPPED)],
            )
    return found
