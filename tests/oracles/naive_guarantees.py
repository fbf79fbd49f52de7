"""The oracles of trees that keep floors: a tree built from scratch at every look, and all splits of all nodes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from algorithms.core.cadence import When
from algorithms.core.criteria import UNIT
from algorithms.core.events import Op
from algorithms.core.example_store import LABEL, LENGTH, START, WEIGHT
from algorithms.core.jit import IS_OFF
from algorithms.core.kinds import Kind
from algorithms.dynamic import bands, floors, indexes, nodes, rivals, thresholds
from algorithms.dynamic.columns import GREATEST, LEAST, floor_of
from algorithms.dynamic.exact import knows_beside
from algorithms.dynamic.examples import value_of
from algorithms.dynamic.floors import rest
from algorithms.dynamic.nodes import FEATURE, NONE
from algorithms.dynamic.slack import BLOCK, INDEXED, IS_KNOWN
from algorithms.dynamic.state import examples_of
from algorithms.dynamic.terms import EXACT
from algorithms.trees.snapshot import Tree as Snapshot
from tests.oracles.naive_dynamic import (
    Event,
    Example,
    Live,
    NaiveForgetful,
    Node,
    Outcome,
    Pair,
    Settings,
    Terms,
    Tree,
    build,
    columns,
    rows_of,
    side,
    splits,
)
from tests.oracles.tree_parts import xlogx


def placed(root: Node) -> Node:
    """Return a tree whose nodes are numbered by their places: the root 0, its children 1 and 2, then 3 to 6."""
    todo = [(root, 0)]
    while todo:
        node, number = todo.pop()
        node.number = number
        todo += [(child, 2 * number + 1 + at) for at, child in enumerate(node.children)]
    return root


class NaiveGreedy(NaiveForgetful):
    """The tree of the live examples, built anew at every insert and delete."""

    def apply(self, event: Event) -> Outcome:
        """Apply one event; a tree has changed where it is another after all of it."""
        tree = self.trees.get(event.key)
        self._before = self._shape(tree.root if tree is not None else build(self.terms, [], 0, count()))
        return super().apply(event)

    def update(self, tree: Tree, example: Live, sign: int) -> None:  # noqa: ARG002
        """Build the tree."""
        tree.root = placed(build(self.terms, tree.live, 0, count()))
        tree.changed = self._shape(tree.root) != self._before

    def _shape(self, root: Node) -> list[Any]:
        return [row[:-1] for row in columns(self.terms, root)]


class GreedyPair(Pair):
    """A pool with the guarantee `exact` beside trees built from scratch."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.twin = NaiveGreedy(settings)

    def feed(self, events: Sequence[Event]) -> list[Outcome]:
        """Apply events as one batch; raise AssertionError where pool and oracle differ."""
        expected = []
        for event in events:
            outcome = self.twin.apply(event)
            expected.append((outcome, self.twin.columns(self.twin.trees.get(event.key))))
        got = self._outcomes(self.pool, events, None if self.settings.names else self._rng)
        for at, (outcome, rows) in enumerate(expected):
            told = got[at]
            # A subtree may be rebuilt to be what it was: a change is told once too often then.
            if self.settings.snapshots.when == When.CHANGE and told.snapshot is not None:
                assert told.snapshot == rows
                told = told.__class__(**vars(told) | {"snapshot": outcome.snapshot})
            assert told == outcome, f"event {at}: {events[at]}"
        for key in sorted({event.key for event in events}):
            self.compare(key)
        return got

    def compare(self, key: int) -> None:
        """Compare a tree, looked at as a whole, with one built from scratch; check all floors."""
        assert self.rows_of(self.pool.tree(key)) == self.twin.columns(self.twin.trees.get(key))
        self.check_floors(key)

    def rows_of(self, tree: Any) -> list[tuple[Any, ...]]:
        """Return a tree of the pool in the oracle's words."""
        return rows_of(tree)

    def check_floors(self, key: int) -> None:
        """Raise AssertionError where a split leaves less than a floor says."""
        check_floors(self.pool, self.twin.terms, key)

    def check(self) -> None:
        """Raise AssertionError unless the pool's invariants hold and it holds what the oracle does."""
        self.pool.check()
        trees = self.twin.trees.values()
        assert self.pool.alive == len(self.twin.trees)
        assert self.pool.live_examples == sum(len(tree.live) for tree in trees)
        assert self.pool.slots == len({f for tree in trees for each in tree.live for f in each.x})


class NearPair(GreedyPair):
    """A pool with a beta beside all splits of all nodes."""

    def feed(self, events: Sequence[Event]) -> list[Outcome]:
        """Apply events one by one; raise AssertionError where a tree that was looked through is not feasible."""
        got = []
        for event in events:
            expected = self.twin.apply(event)
            before = self.pool.tree(event.key)
            (outcome,) = self._outcomes(self.pool, [event])
            got.append(outcome)
            assert outcome.status == expected.status
            tree = self.twin.trees.get(event.key)
            if tree is not None and event.op in (Op.INSERT, Op.DELETE):
                seen = self.pool.tree(event.key)
                assert self.lacks(seen, tree.live) is None
                if outcome.snapshot is not None:
                    assert outcome.snapshot == self.rows_of(seen)
            if event.op == Op.PREDICT and outcome.weights and tree is not None:
                x = {f: value for f, value in event.x.items() if value != 0}
                assert (outcome.leaf, outcome.weights) == self.answer(before, x)
            self.check_floors(event.key)
        return got

    def compare(self, key: int) -> None:
        """Compare nothing: `feed` has."""

    def lacks(self, tree: Any, live: Sequence[Example]) -> str | None:
        """Return what a tree lacks, see the function."""
        return lacks(self.settings, tree, live)

    def answer(self, tree: Any, x: Mapping[Any, float]) -> tuple[int, tuple[str, ...]]:
        """Return what a tree answers, see the function."""
        return answer(self.twin.terms, tree, x)


def answer(terms: Terms, tree: Snapshot, x: Mapping[Any, float]) -> tuple[int, tuple[str, ...]]:
    """Return the number and the class weights of the leaf of an example."""
    at = leaf_of(terms, tree, x)
    return int(tree.number[at]), tuple((weight / UNIT).hex() for weight in tree.weight[at].tolist())


def leaf_of(terms: Terms, tree: Any, x: Mapping[Any, float]) -> int:
    """Return the row of the leaf of an example."""
    at = 0
    while (feature := tree.feature[at]) is not None:
        way = side(terms, feature, float(tree.threshold[at]), x)
        at = next(i for i in range(len(tree.parent)) if tree.parent[i] == at and tree.branch[i] == way)
    return at


def lacks(settings: Settings, tree: Snapshot, live: Sequence[Example]) -> str | None:
    """Return what a tree lacks to be what `beta` promises, None where it is; all splits are scored."""
    terms = settings.terms()
    for at, examples in enumerate(held_by(terms, tree, live)):
        counts = terms.counts(examples)
        assert tree.weight[at].tolist() == counts
        n = sum(counts) / UNIT
        whole = terms.impurity(counts)
        is_leaf = tree.feature[at] is None
        if (
            len(examples) <= terms.min_examples
            or tree.depth[at] >= terms.max_depth
            or whole <= 0.5 * terms.alpha * n
        ):
            if not is_leaf:
                return f"node {at} must be a leaf"
            continue
        found = splits(terms, examples)
        own = whole
        if not is_leaf:
            own = _score(terms, examples, tree.feature[at], float(tree.threshold[at]))
        if found and own > min(found)[0] + settings.beta * n:
            return f"node {at} scores {own}, the best split {min(found)}"
    return None


def best_of_classes(terms: Terms, examples: Sequence[Example]) -> tuple[float, Any, float]:
    """Return the split that a batch would choose: the lowest where none gains more than rounding."""
    counts, found = terms.counts(examples), splits(terms, examples)
    best = min(found)
    if best[0] >= terms.impurity(counts) - noise(terms, counts):
        best = min(found, key=lambda each: each[1:])
    return best


def held_by(terms: Terms, tree: Any, live: Sequence[Example]) -> list[list[Example]]:
    """Return the examples of each node of a tree."""
    held: list[list[Example]] = []
    for at in range(len(tree.number)):
        parent = int(tree.parent[at])
        if parent == NONE:
            held.append(list(live))
            continue
        feature, threshold = tree.feature[parent], float(tree.threshold[parent])
        assert feature is not None
        held.append([each for each in held[parent] if side(terms, feature, threshold, each.x) == tree.branch[at]])
    return held


def _score(terms: Terms, examples: Sequence[Example], feature: Any, threshold: float) -> float:
    low, high = (
        terms.counts([each for each in examples if side(terms, feature, threshold, each.x) == at]) for at in (0, 1)
    )
    return terms.impurity(low) + terms.impurity(high)


def check_floors(
    pool: Any,
    terms: Terms,
    key: int,
    all_left: Callable[[Any, Sequence[Example]], Sequence[tuple[Any, Any, float]]] = splits,
    best_of: Callable[[Any, Sequence[Example]], tuple[Any, Any, float]] = best_of_classes,
) -> None:
    """Raise AssertionError where a split leaves less than the floor that is under it, looked at or not.

    A column has its own floor, all else that of the node. For EXACT a node's own split has none, nor have those of
    its feature that part its examples as it does: if such a one is another threshold, it must be told that nothing
    is known. Rivals and what is in an index do not count, whose sums must be right.
    """
    forest, known, links = pool._state, pool._state.slack, pool._state.nodes.links
    held = known.columns
    is_exact = pool.rules.terms.policy == EXACT
    for node in nodes.preorder(forest.nodes, pool._root(key)):
        examples = examples_below(pool, node)
        others = check_rivals(pool, terms, node, examples)
        floor = max(float(known.floor[node]), float(rest(forest.criterion, known, node)))
        if len(known.lightest):
            assert known.lightest[node] <= min((each.weight for each in examples), default=UNIT)
        features = pool._features(held.features[node, : held.sizes[node]].tolist()) if len(held.sizes) else []
        assert len(set(features)) == len(features)
        floors = {each: float(floor_of(held, node, at)) for at, each in enumerate(features)}
        if features and len(held.extremes):
            labels = [each.label for each in examples]
            assert held.extremes[node, LEAST] <= min(labels)
            assert held.extremes[node, GREATEST] >= max(labels)
        number = int(links[node, FEATURE])
        if number == NONE and is_exact:
            if floor == math.inf:
                assert not splits(terms, examples), "a leaf that a split parts"
            continue
        feature, own = None, float(forest.nodes.threshold[node])
        if number != NONE:
            feature = pool._features([number])[0]
        lefts = all_left(terms, examples)
        check_bands(pool, node, examples, lefts)
        for left, other, threshold in lefts:
            under = floors.get(other, floor if other not in others else -math.inf)
            is_alike = other == feature and is_exact
            if is_alike and parts(terms, examples, other, threshold) == parts(terms, examples, feature, own):
                if terms.kind(other) == Kind.NUMERIC and knows_beside(held, node, number):
                    assert threshold == own, "the threshold has moved and nothing says so"
            elif terms.kind(other) == Kind.NUMERIC or other != feature:
                assert left >= under, (node, other, threshold)
        if known.counts[node, IS_KNOWN] and is_exact:
            assert best_of(terms, examples)[1:] == (feature, own), "what is known is not so"


def check_bands(
    pool: Any, node: int, examples: Sequence[Example], lefts: Sequence[tuple[Any, Any, float]]
) -> None:
    """Raise AssertionError unless bands of a node's columns count its examples, and are under their splits."""
    held, known = pool._state.slack.bands, pool._state.slack.columns
    for at in np.flatnonzero(held.of[node]).tolist() if len(held.of) else []:
        number = int(known.features[node, at])
        is_own = at == 0 and number == pool._state.nodes.links[node, FEATURE]
        row = int(held.of[node, at]) - 1
        assert (held.heads[row, bands.OWN] > 0) == is_own
        check_band_row(pool, node, pool._features([number])[0], row, examples, lefts)


def check_band_row(
    pool: Any,
    node: int,
    feature: Any,
    row: int,
    examples: Sequence[Example],
    lefts: Sequence[tuple[Any, Any, float]],
) -> None:
    """Do as `check_bands` with those of one column."""
    forest, held = pool._state, pool._state.slack.bands
    size, center = int(held.heads[row, bands.SIZE]), int(held.heads[row, bands.CENTER])
    edges = held.edges[row, : size + 1].tolist()
    expected = np.zeros_like(held.sums[row])
    for each in examples:
        value = each.x.get(feature, 0.0)
        band = bisect_right(edges, value) - 1
        cell = 2 * band + (bands.INSIDE if value > edges[band] else bands.AT)
        bands.add(forest.criterion, expected, cell, center, each.label, each.weight)
    assert (held.sums[row] == expected).all()
    own = int(held.heads[row, bands.OWN])
    assert not own or not expected[2 * own + bands.INSIDE].any()
    if not IS_OFF:
        return
    totals = forest.nodes.weights[node, : pool.rules.classes].copy()
    whole = floors.whole_of(forest.criterion, forest.nodes.weights, node, totals)
    under = thresholds.bounds(forest.criterion, held, row, whole, totals)
    for left, other, threshold in lefts:
        band = bisect_right(edges, threshold) - 1
        if other == feature and (band != own or not own):
            floor = held.floors[row, band] - forest.slack.columns.lost[node]
            assert left >= max(under[band], floor), (node, threshold)


def examples_below(pool: Any, node: int) -> list[Example]:
    """Return the examples of a node of a pool."""
    live = examples_of(pool._state)
    return [
        Example(_x(pool, row), int(live.rows[row, LABEL]), int(live.rows[row, WEIGHT]))
        for leaf in nodes.preorder(pool._state.nodes, node)
        for row in pool._check_leaf(leaf)
    ]


def check_rivals(pool: Any, terms: Terms, node: int, examples: Sequence[Example]) -> set[Any]:
    """Return the features of a node's rivals, each a binary one that is not its own; check their class weights."""
    known = pool._state.slack
    if known.indexes.of[node]:
        check_index(pool, terms, node, examples)
    if known.counts[node, BLOCK] == INDEXED:
        return _binary(terms, examples)
    block = int(known.counts[node, BLOCK]) - 1
    if block < 0:
        return set()
    begin = block * rivals.WIDTH
    cells = known.rivals.cells[begin : begin + known.rivals.heads[block, rivals.SIZE]].tolist()
    features = [pool._features([cell[rivals.FEATURE]])[0] for cell in cells]
    assert len(set(features)) == len(features)
    for feature, cell in zip(features, cells, strict=True):
        assert feature is not None
        assert terms.kind(feature) == Kind.BINARY
        assert cell[rivals.FEATURE] != pool._state.nodes.links[node, FEATURE]
        counts = terms.counts([each for each in examples if not each.x.get(feature, 0.0)])
        assert cell[rivals.WEIGHTS :] == counts[: len(cell) - rivals.WEIGHTS]
    return set(features)


def check_index(pool: Any, terms: Terms, node: int, examples: Sequence[Example]) -> None:
    """Raise AssertionError unless a node's index has the class weights of all its binary features."""
    known = pool._state.slack
    index = int(known.indexes.of[node]) - 1
    found = indexes.counts(known.indexes, index)
    features = _binary(terms, examples)
    numbers = dict(zip(pool._features(list(found)), found.values(), strict=True))
    assert set(numbers) == features
    for feature in features:
        assert numbers[feature] == terms.counts([each for each in examples if each.x.get(feature, 0.0)])
    heads = known.indexes.slots.heads[index]
    assert heads[:2].tolist() == terms.counts(examples)


def _binary(terms: Terms, examples: Sequence[Example]) -> set[Any]:
    """Return the binary features that some example has."""
    features = {feature for each in examples for feature in each.x if each.x[feature]}
    return {feature for feature in features if terms.kind(feature) == Kind.BINARY}


def noise(terms: Terms, counts: Sequence[int]) -> float:
    """Return the error of scores by rounding."""
    n = sum(counts) / UNIT
    return float(terms.classes * (2.0**-46 * (abs(xlogx(sum(counts))) + n + 1.0)))


def parts(terms: Terms, examples: Sequence[Example], feature: Any, threshold: float) -> list[int]:
    """Return the side of each example by a split."""
    return [side(terms, feature, threshold, each.x) for each in examples]


def _x(pool: Any, row: int) -> dict[Any, float]:
    live = examples_of(pool._state)
    start = int(live.rows[row, START])
    numbers = live.features[start : start + int(live.rows[row, LENGTH])].tolist()
    return {pool._features([number])[0]: float(value_of(live, row, number)) for number in numbers}
