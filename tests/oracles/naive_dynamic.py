"""The oracle of the trees that forget: paper 002's algorithms 1 and 2 in plain Python, on lists and dictionaries.

It shares only log2 with `algorithms`, because ties are decided on floats. What the papers leave open is read as
algorithms/dynamic/README.md says.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Any, TypeAlias

import numpy as np

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT, log2
from algorithms.core.events import Events, OnDuplicate, Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.given import digest_of
from algorithms.core.kinds import Kind
from algorithms.dynamic import nodes
from algorithms.dynamic.pool import DynamicPool
from algorithms.dynamic.terms import EPSILON
from algorithms.trees.snapshot import Tree as Snapshot
from tests.oracles.differential import Differential, columns_of, times_of
from tests.oracles.tree_parts import heaviest, xlogx

NO_SNAPSHOTS = Emit()

Feature: TypeAlias = int | bytes


@dataclass(frozen=True, eq=False)
class Example:
    """One labelled example; zeros are left out, the weight is in units of 2^-20."""

    x: Mapping[Feature, float]
    label: int
    weight: int = UNIT


@dataclass
class Terms:
    """The parameters of `build_tree`, with the same meaning."""

    classes: int = 2
    criterion: str = "gini"
    default: Kind = Kind.BINARY
    kinds: dict[Feature, Kind] = field(default_factory=dict)
    alpha: float = 0.0
    min_examples: int = 1  # k
    max_depth: int = 1 << 30  # h

    def kind(self, feature: Feature) -> Kind:
        """Return what the values of a feature mean."""
        return self.kinds.get(feature, self.default)

    def impurity(self, counts: Sequence[int]) -> float:
        """Return weight times impurity of class weights."""
        total, so_far = 0, 0.0
        for each in counts:
            so_far += (total / UNIT) * (each / UNIT) if self.criterion == "gini" else xlogx(each)
            total += each
        if self.criterion == "gini":
            return 2.0 * so_far / (total / UNIT) if total else 0.0
        return xlogx(total) - so_far

    def score(self, low: Sequence[int], whole: Sequence[int]) -> float:
        """Return what a split scores, by the class weights of its low side and of the node."""
        high = [count - below for count, below in zip(whole, low, strict=True)]
        return self.impurity(low) + self.impurity(high)

    def noise(self, counts: Sequence[int]) -> float:
        """Return the gain that is within the error of rounding."""
        n = sum(counts) / UNIT
        return self.classes * (2.0**-46 * (abs(xlogx(sum(counts))) + n + 1.0))

    def is_pure(self, counts: Sequence[int]) -> bool:
        """Return whether a node is a leaf for its labels alone."""
        return self.impurity(counts) <= 0.5 * self.alpha * (sum(counts) / UNIT)

    def weight(self, counts: Sequence[int]) -> int:
        """Return the weight of a node."""
        return sum(counts)

    def counts(self, examples: Sequence[Example]) -> list[int]:
        """Return the class weights of examples."""
        counts = [0] * self.classes
        for example in examples:
            counts[example.label] += example.weight
        return counts


@dataclass(eq=False)
class Node:
    """A vertex of the tree; a leaf holds its examples."""

    number: int
    depth: int
    built: int  # s(v), examples
    built_weight: int
    feature: Feature | None = None
    threshold: float = 0.0
    children: list[Node] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)
    edits: int = 0  # c(v)
    edited_weight: int = 0

    def all_examples(self) -> list[Example]:
        """Return S_v."""
        return [*self.examples, *(each for child in self.children for each in child.all_examples())]

    def preorder(self) -> Iterator[Node]:
        """Yield the node and all below."""
        yield self
        for child in self.children:
            yield from child.preorder()


def side(terms: Terms, feature: Feature, threshold: float, x: Mapping[Feature, float]) -> int:
    """Return 1 where an example goes to the high side."""
    value = x.get(feature, 0.0)
    return int(value > threshold if terms.kind(feature) == Kind.NUMERIC else value != 0)


def thresholds(terms: Terms, feature: Feature, examples: Sequence[Example]) -> list[float]:
    """Return the thresholds of a feature that part examples, ascending."""
    values = sorted({example.x.get(feature, 0.0) + 0.0 for example in examples})
    if terms.kind(feature) == Kind.BINARY:
        return [0.0] if len({value != 0 for value in values}) == 2 else []
    middles = [(low, low / 2.0 + high / 2.0, high) for low, high in pairwise(values)]
    return [middle if low <= middle < high else low for low, middle, high in middles]


def splits(terms: Terms, examples: Sequence[Example]) -> list[tuple[float, Any, float]]:
    """Return score, feature and threshold of every split that parts examples."""
    found = []
    whole = terms.counts(examples)
    for feature in {feature for example in examples for feature in example.x}:
        for threshold in thresholds(terms, feature, examples):
            low = terms.counts([each for each in examples if not side(terms, feature, threshold, each.x)])
            found.append((terms.score(low, whole), feature, threshold))
    return found


def best_split(terms: Terms, examples: Sequence[Example]) -> tuple[Any, float] | None:
    """Return feature and threshold of the best split, None where nothing parts the examples."""
    found = splits(terms, examples)
    return best_of(terms, examples, found)[1:] if found else None


def best_of(
    terms: Terms, examples: Sequence[Example], found: Sequence[tuple[float, Any, float]]
) -> tuple[float, Any, float]:
    """Return gain, feature and threshold of the best of these splits; a gain within the error of rounding is 0."""
    counts = terms.counts(examples)
    best = min(found)
    if best[0] >= terms.impurity(counts) - terms.noise(counts):
        return 0.0, *min(each[1:] for each in found)
    return terms.impurity(counts) - best[0], *best[1:]


def build(terms: Terms, examples: Sequence[Example], depth: int, numbers: Iterator[int]) -> Node:
    """BUILD: algorithm 2."""
    counts = terms.counts(examples)
    node = Node(next(numbers), depth, len(examples), terms.weight(counts))
    found = None
    if len(examples) > terms.min_examples and not terms.is_pure(counts) and depth < terms.max_depth:
        found = best_split(terms, examples)
    if found is None:
        node.examples = list(examples)
        return node
    node.feature, node.threshold = found
    for way in (0, 1):
        there = [each for each in examples if side(terms, *found, each.x) == way]
        node.children.append(build(terms, there, depth + 1, numbers))
    return node


def columns(terms: Terms, root: Node | None) -> list[tuple[Any, ...]]:
    """Return a tree as rows: number, parent's number, branch, depth, feature, kind, threshold, class weights."""
    if root is None:
        return []
    above = {child.number: (node.number, at) for node in root.preorder() for at, child in enumerate(node.children)}
    return [
        (
            node.number,
            *above.get(node.number, (-1, 0)),
            node.depth,
            node.feature,
            None if node.feature is None else terms.kind(node.feature),
            node.threshold.hex(),
            tuple(terms.counts(node.all_examples())),
        )
        for node in root.preorder()
    ]


# --- algorithm 1


@dataclass(frozen=True)
class Settings:
    """The parameters of `DynamicPool`, with the same meaning."""

    epsilon: float | None = 0.1
    alpha: float = 0.0
    beta: float = 0.0
    guarantee: str | None = None
    min_examples: int = 1
    max_depth: int = 1 << 30
    criterion: str = "gini"
    classes: int = 2
    default: Kind = Kind.BINARY
    kinds: dict[Feature, Kind] = field(default_factory=dict)
    window: int | None = None
    on_duplicate: OnDuplicate = OnDuplicate.REJECT
    names: bool = False
    evaluate: bool = True
    max_work: int | None = None
    max_keys: int = 1 << 30
    max_live_ids: int = 1 << 30
    snapshots: Emit = NO_SNAPSHOTS

    def pool(self) -> DynamicPool:
        """Return a new pool with these settings."""
        return DynamicPool(**vars(self))

    def terms(self) -> Terms:
        """Return what BUILD goes by."""
        return Terms(**{name: getattr(self, name) for name in vars(Terms())})


@dataclass(frozen=True)
class Event:
    """One event; the weight is in units of 2^-20."""

    op: Op
    x: dict[Feature, float] = field(default_factory=dict)
    label: Any = 0  # a class or a number
    weight: int = UNIT
    id: int | None = None
    key: int = 0
    time: int = 1  # ms


@dataclass(frozen=True)
class Outcome:
    """All that an event led to; floats as hexadecimal text, so that equal means equal to the bit."""

    status: Status
    predicted: Any = -1
    loss: str = ""
    rebuilt: int = 0
    weights: tuple[str, ...] = ()
    leaf: int = 0
    snapshot: Any = None


@dataclass(frozen=True, eq=False)
class Live(Example):
    """An example that can be deleted."""

    id: int | None = None


@dataclass(eq=False)
class Tree:
    """One tree, and the examples that it was learned from, oldest first."""

    root: Node
    numbers: Iterator[int]
    live: list[Live] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)  # ids that the window dropped, oldest first
    events: int = 0
    rebuilds: int = 1
    rebuilt: int = 0
    period: int | None = None
    changed: bool = False  # by the event at hand

    def named(self, id: int | None) -> Live | None:
        """Return the live example with an id."""
        return next((example for example in self.live if id is not None and example.id == id), None)


class NaiveForgetful:
    """Trees that forget, in lists and dictionaries."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.terms: Terms = settings.terms()
        self.trees: dict[int, Tree] = {}

    def apply(self, event: Event) -> Outcome:
        """Apply one event."""
        if event.op == Op.DROP:
            self.trees.pop(event.key, None)
            return Outcome(Status.APPLIED)
        by_id = event.op == Op.DELETE and event.id is not None
        if not by_id and any(not math.isfinite(value) for value in event.x.values()):
            return Outcome(Status.WRONG_VALUE)
        x = {
            feature: 1.0 if self.terms.kind(feature) == Kind.BINARY else value
            for feature, value in event.x.items()
            if value != 0
        }
        tree = self.trees.get(event.key)
        if event.op == Op.PREDICT:
            node, weights = self._answer(tree, x)
            return Outcome(
                Status.APPLIED,
                predicted=self._guess(weights),
                weights=tuple(weight.hex() for weight in weights),
                leaf=node.number if node is not None else 0,
            )
        before = (tree.rebuilds, tree.rebuilt) if tree is not None else (0, 0)
        if tree is not None:
            tree.changed = False
        outcome = self._insert(tree, event, x) if event.op == Op.INSERT else self._delete(tree, event, x)
        if outcome.status != Status.APPLIED:
            return outcome
        tree = self.trees[event.key]
        tree.events += 1
        self.spend(tree, event.key)
        due = self._is_snapshot_due(tree, event)
        return replace(
            outcome,
            rebuilt=tree.rebuilt - before[1],
            snapshot=self.columns(tree) if due else None,
        )

    def columns(self, tree: Tree | None) -> list[tuple[Any, ...]]:
        """Return a tree as rows, see the function."""
        return columns(self.terms, tree.root if tree is not None else None)

    def spend(self, tree: Tree, key: int) -> None:
        """Go on with what takes more than one event; here nothing does."""

    def _is_snapshot_due(self, tree: Tree, event: Event) -> bool:
        when, n = self.settings.snapshots
        before = tree.period
        tree.period = event.time // n if before is None else max(before, event.time // n)
        due = {
            When.NEVER: False,
            When.CHANGE: tree.changed,
            When.EVERY: tree.events % n == 0,
            When.EVERY_MS: before is not None and tree.period > before,
        }
        return bool(due[when])

    def _insert(self, tree: Tree | None, event: Event, x: dict[Feature, float]) -> Outcome:
        settings = self.settings
        label, weight = self._learned(event)
        if weight < 0:
            return Outcome(Status.WRONG_WEIGHT)
        if label is None:
            return Outcome(Status.WRONG_LABEL)
        if weight == 0:
            return Outcome(Status.IGNORED)
        if tree is None and len(self.trees) >= settings.max_keys:
            return Outcome(Status.TOO_MANY_KEYS)
        if tree is not None and sum(each.weight for each in tree.live) + weight >= self._room():
            return Outcome(Status.COUNT_OVERFLOW)
        old = tree.named(event.id) if tree is not None else None
        if old is not None and settings.on_duplicate != OnDuplicate.REPLACE:
            ignored = settings.on_duplicate == OnDuplicate.IGNORE
            return Outcome(Status.IGNORED if ignored else Status.DUPLICATE_ID)
        if event.id is not None and old is None and self.live_ids() >= settings.max_live_ids:
            return Outcome(Status.TOO_MANY_LIVE_IDS)
        predicted, loss = self._nothing, ""
        if settings.evaluate:
            _, weights = self._answer(tree, x)
            predicted, loss = self._guess(weights), self._loss(weights, label)
        if tree is None:
            numbers = count()
            tree = self.trees[event.key] = Tree(build(self.terms, [], 0, numbers), numbers)
        if old is not None:
            self._forget(tree, old)
        if event.id in tree.dropped:
            tree.dropped.remove(event.id)
        tree.live.append(Live(x, label, weight, event.id))
        self.update(tree, tree.live[-1], 1)
        if settings.window is not None and len(tree.live) > settings.window:
            oldest = tree.live[0]
            self._forget(tree, oldest)
            if oldest.id is not None:
                tree.dropped = [*tree.dropped, oldest.id][-settings.window :]
        return Outcome(Status.APPLIED, predicted, loss)

    def _delete(self, tree: Tree | None, event: Event, x: dict[Feature, float]) -> Outcome:
        if event.id is not None:
            example = tree.named(event.id) if tree is not None else None
            if tree is None or example is None:
                dropped = tree is not None and event.id in tree.dropped
                return Outcome(Status.ALREADY_DROPPED if dropped else Status.ABSENT_ID)
            self._forget(tree, example)
            return Outcome(Status.APPLIED)
        wanted = (x, *self._learned(event))
        for example in reversed(tree.live if tree is not None else []):  # of equal ones the newest goes
            if example.id is None and (example.x, example.label, example.weight) == wanted:
                assert tree is not None
                self._forget(tree, example)
                return Outcome(Status.APPLIED)
        return Outcome(Status.ABSENT_EXAMPLE)

    def _forget(self, tree: Tree, example: Live) -> None:
        del tree.live[next(at for at, each in enumerate(tree.live) if each is example)]
        self.update(tree, example, -1)

    def live_ids(self) -> int:
        """Return how many named examples are live."""
        return sum(example.id is not None for tree in self.trees.values() for example in tree.live)

    def update(self, tree: Tree, example: Live, sign: int) -> None:
        """UPDATE: algorithm 1."""
        path = [tree.root]
        while path[-1].children:
            node = path[-1]
            assert node.feature is not None
            path.append(node.children[side(self.terms, node.feature, node.threshold, example.x)])
        leaf = path[-1]
        if sign > 0:
            leaf.examples.append(example)
        else:
            del leaf.examples[next(at for at, each in enumerate(leaf.examples) if each is example)]
        for i, node in enumerate(path):
            node.edits += 1
            node.edited_weight = min(node.edited_weight, MAX_TOTAL) + example.weight
            if self.is_due(node):
                most = 2 ** math.ceil(math.log2(node.built)) if node.built else 0
                j = next(at for at in range(i + 1) if path[at].built <= most)
                self._rebuild(tree, path[j], path[j - 1] if j else None)
                return

    def is_due(self, node: Node) -> bool:
        """Return whether c(v) > epsilon s(v)."""
        epsilon: float = self.settings.epsilon
        return node.edits > epsilon * node.built or float(node.edited_weight) > epsilon * float(node.built_weight)

    def _rebuild(self, tree: Tree, old: Node, parent: Node | None) -> None:
        new = build(self.terms, old.all_examples(), old.depth, tree.numbers)
        if parent is None:
            tree.root = new
        else:
            parent.children[parent.children.index(old)] = new
        tree.rebuilds += 1
        tree.rebuilt += new.built
        tree.changed |= bool(old.children or new.children)

    def _answer(self, tree: Tree | None, x: Mapping[Feature, float]) -> tuple[Node | None, list[float]]:
        """Return the last node on the way that holds examples, and its class weights."""
        if tree is None or not tree.live:
            return None, self._told(None)
        node = tree.root
        while node.children:
            assert node.feature is not None
            child = node.children[side(self.terms, node.feature, node.threshold, x)]
            if not child.all_examples():
                break
            node = child
        return node, self._told(node)

    # --- of labels that are classes

    _nothing: Any = -1  # the guess where nothing is known, or nobody asks

    def _learned(self, event: Event) -> tuple[int | None, int]:
        """Return label and weight as they are learned; no label where it is none."""
        return int(event.label) if 0 <= event.label < self.settings.classes else None, event.weight

    def _room(self) -> int:
        """Return what weights sum to less than."""
        return MAX_TOTAL

    def _told(self, node: Node | None) -> list[float]:
        """Return what a prediction tells of a node."""
        if node is None:
            return [0.0] * self.settings.classes
        return [count / UNIT for count in self.terms.counts(node.all_examples())]

    def _guess(self, told: list[float]) -> Any:
        return heaviest(told)

    def _loss(self, told: list[float], label: int) -> str:
        total = 0.0
        for weight in told:
            total += weight
        share = told[label] / total if total > 0 else 1.0 / self.settings.classes
        return (-float(log2(max(share, 2.0**-50)))).hex()


def infeasible(settings: Settings, tree: Tree) -> str | None:
    """Return what a tree lacks to be feasible (definition 3.1) by the settings' alpha and beta, None where it is.

    All gains are looked at. A leaf that should be split is one whose best split gains more than beta.
    """
    terms = settings.terms()
    for node in tree.root.preorder():
        examples = node.all_examples()
        counts = terms.counts(examples)
        n = sum(counts) / UNIT
        index = terms.impurity(counts) / n if n else 0.0
        must_be_leaf = len(examples) <= settings.min_examples or index == 0 or node.depth >= settings.max_depth
        if must_be_leaf:
            if node.children:
                return f"node {node.number} must be a leaf"
            continue
        gains = {found[1:]: (terms.impurity(counts) - found[0]) / n for found in splits(terms, examples)}
        best = max(gains.values(), default=0.0)
        if node.feature is None:
            if index >= settings.alpha and best > settings.beta:
                return f"node {node.number} must be split"
            continue
        low = [each for each in examples if not side(terms, node.feature, node.threshold, each.x)]
        low_counts = terms.counts(low)
        high_counts = [whole - below for whole, below in zip(counts, low_counts, strict=True)]
        own = (terms.impurity(counts) - terms.impurity(low_counts) - terms.impurity(high_counts)) / n
        if own < best - settings.beta:
            return f"node {node.number} gains {own}, the best split {best}"
    return None


# --- a pool beside it


def events_of(events: Sequence[Event], pool: Any, rng: random.Random | None = None) -> Events:
    """Return the events in columns, the features of each in the order given, or shuffled."""
    return columns_of(events, pool, rng, time=times_of(events), **id_columns(events))


def id_columns(events: Sequence[Event]) -> dict[str, Any]:
    """Return the columns that tell of ids."""
    ids = [digest_of(event.id) if event.id is not None else (0, 0) for event in events]
    return {
        "named": np.array([event.id is not None for event in events], np.int8),
        "id_high": np.array([high for high, _ in ids], np.int64),
        "id_low": np.array([low for _, low in ids], np.int64),
    }


def outcomes(pool: DynamicPool, events: Sequence[Event], rng: random.Random | None = None) -> list[Outcome]:
    """Apply events to a pool as one batch and return what each led to, in the oracle's words."""
    batch = events_of(events, pool, rng)
    answers = pool.apply(batch)
    pool.sweep(batch.feature)
    snapshots = {event: rows_of(tree) for event, _, tree in answers.snapshots}
    asked = dict(zip(answers.asked.tolist(), answers.weights.tolist(), strict=True))
    leaves = dict(zip(answers.asked.tolist(), answers.leaf.tolist(), strict=True))
    told = pool.rules.evaluated
    is_counted = pool.rules.terms.policy == EPSILON
    return [
        Outcome(
            status=Status(status),
            predicted=int(answers.predicted[at]),
            loss=float(answers.loss[at]).hex() if told and status == 0 and events[at].op == Op.INSERT else "",
            rebuilt=int(answers.rebuilt[at]) if is_counted else 0,
            weights=tuple(weight.hex() for weight in asked.get(at, ())),
            leaf=leaves.get(at, 0),
            snapshot=snapshots.get(at),
        )
        for at, status in enumerate(answers.status.tolist())
    ]


def rows_of(tree: Snapshot) -> list[tuple[Any, ...]]:
    """Return a tree in the oracle's words, see `columns`."""
    return [
        (
            int(tree.number[at]),
            -1 if tree.parent[at] < 0 else int(tree.number[tree.parent[at]]),
            int(tree.branch[at]),
            int(tree.depth[at]),
            tree.feature[at],
            tree.kind[at],
            float(tree.threshold[at]).hex(),
            tuple(tree.weight[at].tolist()),
        )
        for at in range(len(tree.number))
    ]


def counters_of(pool: DynamicPool, key: int) -> list[tuple[int, ...]]:
    """Return s(v) and c(v) of a tree's nodes in preorder, in examples and in weight."""
    forest = pool._state
    columns_ = [nodes.BUILT, nodes.EDITS, nodes.BUILT_WEIGHT, nodes.EDITED_WEIGHT]
    order = nodes.preorder(forest.nodes, pool._root(key))
    return [tuple(row) for row in forest.nodes.links[order][:, columns_].tolist()]


class Pair(Differential):
    """A differential harness: a pool beside its oracle, compared after every batch."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, NaiveForgetful(settings), outcomes)

    def compare(self, key: int) -> None:
        """Compare a tree, its s(v) and c(v) and its sizes with the oracle's."""
        tree = self.twin.trees.get(key)
        assert rows_of(self.pool.tree(key)) == columns(self.twin.terms, tree.root if tree is not None else None)
        own = list(tree.root.preorder()) if tree is not None else []
        assert counters_of(self.pool, key) == [
            (node.built, node.edits, node.built_weight, node.edited_weight) for node in own
        ]
        leaves = sum(node.feature is None for node in own)
        expected = (
            (tree.events, len(tree.live), len(own), leaves, tree.rebuilds, tree.rebuilt)
            if tree is not None
            else (0, 0, 0, 0, 0, 0)
        )
        assert self.pool.sizes(key) == expected

    def check(self) -> None:
        """Raise AssertionError unless the pool's invariants hold and its sizes are the oracle's."""
        self.pool.check()
        trees = self.twin.trees.values()
        assert self.pool.alive == len(self.twin.trees)
        assert self.pool.live_examples == sum(len(tree.live) for tree in trees)
        assert self.pool.slots == len({f for tree in trees for each in tree.live for f in each.x})
        nodes_ = [node for tree in trees for node in tree.root.preorder()]
        assert self.pool.node_count == len(nodes_)
        assert self.pool.depth == max((node.depth for node in nodes_), default=0)
