"""`RegressionPool`: any number of regression trees in one set of arrays, grown by one kernel call a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from algorithms.core import rows
from algorithms.core.arrays import Int8s, Int32s, Int64s, filled
from algorithms.core.cadence import Emit
from algorithms.core.canonical import Canonicaliser, Terms
from algorithms.core.events import INSERT, WRONG_LABEL, Batch, Events
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.given import number
from algorithms.core.kinds import Kind
from algorithms.core.names import name_or_id
from algorithms.core.packing import Numbers
from algorithms.core.rows import COUNT, NONE
from algorithms.core.schema import Feature, Schema
from algorithms.core.stored import Arrays, flattened
from algorithms.regression import categories, elements, grow, linear, memory, observers, packing, state
from algorithms.regression.answers import Answers, Split, snapshot, split_of
from algorithms.regression.intervals import first_reach
from algorithms.regression.leaves import known_of, seen_by
from algorithms.regression.linear import Predict
from algorithms.regression.state import UNCERTAINTY, Forest, Out, Rules
from algorithms.trees import nodes
from algorithms.trees.bounds import bound_of, check_bound
from algorithms.trees.earlier import with_learned
from algorithms.trees.gaussians import LARGEST_VALUE
from algorithms.trees.growing import GrowingPool
from algorithms.trees.nodes import ASLEEP, DEPTH, FEATURE, KIND, OBSERVED, PRIOR, SEEN, TREE, WEIGHT
from algorithms.trees.snapshot import NumberTree as Tree
from algorithms.trees.state import ATTEMPTS, EVENTS, LEARNED, LEAVES, SNAPSHOT_DUE, SPLIT_MADE, SPLITS

WAYS = [each.name.lower() for each in Predict]


_FEATURE_BYTES = 100  # of what a leaf saw of a feature, about
_ELEMENT_BYTES = 80


class Sizes(NamedTuple):
    """How large a tree is and what it did."""

    events: int  # examples learned
    attempts: int  # how often all features of a leaf were ranked
    splits: int
    leaves: int


class RegressionPool(GrowingPool[Forest, Answers, float]):
    """Any number of regression trees, one for each key.

    Parameters
    ----------
    observer : str
        How numeric features are observed, a name in `OBSERVERS`.
    options : Mapping[str, Any], optional
        The observer's settings, see `Observer`.
    predict : str
        How a leaf predicts: by the ``mean`` of its labels; ``linear``, by a linear model of the features that are
        present, within the labels seen; ``adaptive``, by whichever was less wrong of late.
    interval : float, optional
        The share of labels that are to be within an interval around their prediction, above 0 and below 1; None:
        there are no intervals.
    grace_period : int
        Examples until a leaf tries to split.
    split_confidence : float
        How likely a split may be another than the best.
    tie_threshold : float
        Where the bound falls below it the best feature is taken, however near the second.
    default : Kind
        ``BINARY``, ``NOMINAL`` or ``NUMERIC``: the kind of the features that `kinds` does not name.
    kinds : Mapping[int | bytes, Kind], optional
        The kinds of others.
    names : bool
        Features are byte strings, interned here; otherwise ids below 2^32.
    max_keys, max_depth : int
        Bounds: an example that would begin one tree more is refused, a leaf so deep does not split.
    memory_limit : int, optional
        Bytes for what leaves saw: where they would not suffice the leaves that promise least sleep, see memory.py.
        Only two of the longest examples may take more.
    snapshots : Emit
        When `apply` also returns a key's tree; on change: after every split.

    Raises
    ------
    ValueError
        With what was expected.
    """

    _ALIVE = LEARNED
    _KERNEL = staticmethod(grow.apply)
    _LABEL = np.float64
    _VALUES = f"finite values up to {LARGEST_VALUE:g} in size"

    def __init__(
        self,
        *,
        observer: str = "qo",
        options: Mapping[str, Any] | None = None,
        predict: str = "mean",
        interval: float | None = None,
        grace_period: int = 200,
        split_confidence: float = 1e-7,
        tie_threshold: float = 0.05,
        default: Kind = Kind.BINARY,
        kinds: Mapping[Feature, Kind] | None = None,
        names: bool = False,
        max_keys: int = 1 << 30,
        max_depth: int = 1 << 30,
        memory_limit: int | None = None,
        snapshots: Emit = Emit(),  # noqa: B008  (a constant)
    ) -> None:
        if grace_period < 1:
            raise ValueError(f"expected a grace_period of at least 1, got {grace_period}")
        check_bound(split_confidence, tie_threshold)
        if predict.upper() not in Predict.__members__:
            raise ValueError(f"expected predict of {', '.join(WAYS)}, got {predict!r}")
        if interval is not None and not 0.0 < interval < 1.0:
            raise ValueError(f"expected an interval above 0 and below 1, as 0.9, got {interval}")
        if memory_limit is not None and memory_limit < 1:
            raise ValueError(f"expected a memory_limit of at least 1, or None, got {memory_limit}")
        of = {default, *(kinds or {}).values()}
        if Kind.QUANTISED in of:
            raise ValueError(
                "expected binary, nominal and numeric features only, got QUANTISED; make them NUMERIC: the "
                "observer 'qo' counts them in slots"
            )
        has_models = predict.upper() != Predict.MEAN.name
        most = memory.rows_within(memory_limit, plain=of == {Kind.BINARY}, has_models=has_models)
        self.rules = Rules(
            grace_period=grace_period,
            bound=bound_of(1.0, split_confidence),
            tie_threshold=tie_threshold,
            max_keys=max_keys,
            max_depth=max_depth,
            predict=int(Predict[predict.upper()]),
            interval=float(interval or 0.0),
            first_reach=first_reach(interval) if interval else 0.0,
            most_features=most[0],
            most_elements=most[1],
            snapshot_when=int(snapshots.when),
            snapshot_argument=snapshots.argument,
        )
        forest = state.make(
            observers.made(observer, options or {}),
            has_models=self._has_models,
            has_intervals=self._has_intervals,
        )
        super().__init__(forest, names=names, kinds=Schema(default, kinds or {}))
        self.can_move = memory_limit is None  # which leaves sleep may depend on the order of rows, see memory.py
        self._canonical = Canonicaliser(Terms(LARGEST_VALUE))

    # --- events

    def apply(self, events: Events, *, checked: bool = False) -> Answers:
        """Apply events in order: predict each example, then learn it; see `Pool.apply`.

        O(features of the examples), attempts apart.
        """
        batch, refused = self._canonicalised(self._begin(events, checked))
        n = len(batch.key)
        out = Out(
            status=np.zeros(n, np.int8),
            node=filled(n, NONE, np.int64),
            predicted=filled(n, np.nan, np.float64),
            leaf=np.zeros(n, np.int64),
            margin=filled(n if self._has_intervals else 0, np.nan, np.float64),
            known=np.zeros((n, 2)),
            scores=np.zeros(2),
            told=np.zeros(1, np.int64),
        )
        splits: list[Split] = []
        snapshots: list[tuple[int, int, Tree]] = []
        for event in self._run(batch, out):
            if out.told[0] & SPLIT_MADE:
                splits.append(self._split(out, event))
            if out.told[0] & SNAPSHOT_DUE:
                key = int(batch.key[event])
                snapshots.append((event, int(self._heads[key, EVENTS]), self.tree(key)))
        np.maximum(out.status, refused, out=out.status)  # to the kernel, what was refused is `SKIPPED`
        weight, squares = out.known[:, 0], out.known[:, 1]
        variance = np.divide(squares, weight, out=np.zeros(n), where=weight > 0.0)
        margin = out.margin if self._has_intervals else None
        return Answers(out.status, splits, out.predicted, out.leaf, weight, variance, snapshots, margin)

    def _label(self, given: Any) -> float:
        return number("a label", given, LARGEST_VALUE)

    def _prediction(self, answers: Answers) -> float:
        return float(answers.predicted[0])

    def _split(self, out: Out, event: int) -> Split:
        node = int(out.node[event])
        feature = name_or_id(self.names, int(self._state.nodes.links[node, FEATURE]))
        return split_of(self._state, node, event, feature, *out.scores.tolist())

    def _canonicalised(self, events: Events) -> tuple[Batch, Int8s]:
        """Return the events with features in order and their kinds, and what is refused for a value or label."""
        made = self._canonical(events._replace(value=events.value + 0.0), self._schema.known)  # -0.0 is 0.0
        wrong = (made.op == INSERT) & ~(np.abs(events.label) <= LARGEST_VALUE)
        made.op[wrong] = -1
        made.status[wrong] = WRONG_LABEL
        key, weight, time = events.key, events.weight, events.time
        batch = Batch(
            key, made.op, events.label + 0.0, weight, time, made.pointer, made.feature, made.value, made.kind
        )
        return batch, made.status

    @property
    def _has_models(self) -> bool:
        return self.rules.predict != Predict.MEAN

    @property
    def _has_intervals(self) -> bool:
        return self.rules.interval > 0.0

    @property
    def _heads(self) -> Int64s:
        return self._state.trees

    def _grow_keys(self, keys: int) -> None:
        self._state = state.with_trees(self._state, keys)

    def _enlarge(self, short: int, key: int, ones: int) -> None:  # noqa: ARG002
        forest = self._state
        if short == grow.MEMORY:
            memory.make_room(forest, self.rules, ones)
        elif short == grow.NODES:
            # A split into more branches than there are nodes comes here more than once.
            self._state = state.with_nodes(forest, 2 * len(forest.nodes.links))
        elif short == grow.FEATURES:
            more = 2 * max(ones, len(forest.features.kind))
            self._state = state.with_features(forest, min(more, max(self.rules.most_features, 2 * ones)))
        else:
            more = 2 * max(ones, len(forest.elements.key))
            self._state = state.with_elements(forest, min(more, max(self.rules.most_elements, 2 * ones)))

    # --- packing

    def _held_in(self) -> Iterable[tuple[Int64s, int]]:
        forest = self._state
        return (
            (forest.nodes.rows.used, 8 * (nodes.COLUMNS + 16)),
            (forest.features.rows.used, _FEATURE_BYTES),
            (forest.elements.used, _ELEMENT_BYTES),
        )

    def _packed(self, keys: Int32s, names: Numbers | None) -> Forest:
        return packing.packed(self._state, keys, names)

    # --- looking

    def warm_up(self) -> None:
        """Compile the kernels that no event calls, or load them. No state is changed."""
        if self.can_move:
            packing.packed(self._state, np.zeros(0, np.int32))
        none = np.zeros(0, np.int64)
        memory.survey(self._state, none, np.zeros((0, 2), np.int64), np.zeros(0))
        memory.settle(self._state, self.rules, none, none, np.zeros(0, np.int8))
        for told in (seen_by, known_of):  # of any node: what splits and trees are told by
            told(self._state, 0)

    def tree(self, key: int = 0) -> Tree:
        """Return a tree as columns; one that has learned nothing has no nodes. No state is changed."""
        found = snapshot(self._state, key)
        return found._replace(feature=self._features(found.feature))

    def sizes(self, key: int = 0) -> Sizes:
        """Return how large a tree is and what it did."""
        if not 0 <= key < len(self._state.trees):
            return Sizes(0, 0, 0, 0)
        return Sizes(*self._state.trees[key, [EVENTS, ATTEMPTS, SPLITS, LEAVES]].tolist())

    @property
    def node_count(self) -> int:
        """How many nodes all trees have."""
        return int(self._state.nodes.rows.used[rows.USED])

    @property
    def slots(self) -> int:
        """How many features leaves keep moments of, over all leaves."""
        return int(self._state.features.rows.used[rows.USED])

    @property
    def depth(self) -> int:
        """The depth of the deepest tree, 0 where none has split."""
        used = int(self._state.nodes.rows.used[rows.EVER])
        own = self._state.nodes.rows.cells[:used, rows.KEY] != NONE
        return int(self._state.nodes.links[:used, DEPTH][own].max(initial=0))

    @property
    def element_count(self) -> int:
        """How many elements the observers of all leaves keep."""
        return int(self._state.elements.used[elements.USED])

    @property
    def asleep(self) -> int:
        """How many leaves sleep because of the limit of memory."""
        return memory.sleepers(self._state)

    # --- state

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied)."""
        without = self._without()
        return {name: array for name, array in super().arrays().items() if name.split(".")[0] not in without}

    def _without(self) -> dict[str, NamedTuple]:
        """Return the parts of the state that the settings do without, by their names in checkpoints, empty."""
        found: dict[str, NamedTuple] = {}
        if not self._has_models:
            found["models"] = self._state.models
        if not self._has_intervals:
            found["intervals"] = self._state.intervals
        return found

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        rows_of = {"leaves": len(arrays["nodes.links"]), "features": len(arrays["features.kind"])}
        rows_of["trees"] = len(arrays["trees"])
        for part, empty in self._without().items():
            none = {name: np.zeros((rows_of[name.split(".")[1]], 0)) for name in flattened(empty, part)}
            arrays = {**arrays, **none}
        super().restore(arrays)
        forest = self._state
        trees = with_learned(forest.trees, forest.nodes.rows.cells, forest.nodes.links, False)
        self._state = forest._replace(trees=trees)
        return self

    def _check(self) -> list[npt.NDArray[Any]]:
        forest, links = self._state, self._state.nodes.links
        reached: list[int] = []
        for tree in range(len(forest.trees)):
            own = nodes.preorder(forest.nodes, int(nodes.root_of(forest.nodes, tree)))
            reached += own
            assert sum(links[node, FEATURE] == NONE for node in own) == forest.trees[tree, LEAVES]
            learned = forest.trees[tree, LEARNED]
            assert learned < MAX_TOTAL
            # A leaf that wakes begins to count anew.
            seen = links[own, WEIGHT].sum()
            assert seen == learned or (seen < learned and self.rules.most_features < 1 << 62)
            assert len(own) > 0 or not forest.trees[tree].any()
            assert all(links[node, TREE] == tree for node in own)
        rows.check(forest.nodes.rows, reached)
        chained: list[int] = []
        owned: list[int] = []
        for node in reached:
            leaf = links[node, FEATURE] == NONE
            branches = len(nodes.children(forest.nodes, node))
            assert branches > 0 if links[node, KIND] == Kind.NOMINAL and not leaf else branches == 2 * (not leaf)
            assert leaf or not links[node, ASLEEP]
            assert links[node, OBSERVED] == NONE or not links[node, ASLEEP], "a leaf that sleeps keeps what it saw"
            assert leaf or self._has_models or links[node, OBSERVED] == NONE, "an inner node keeps what it saw"
            assert forest.targets.tried[node] <= links[node, SEEN]
            assert links[node, WEIGHT] + links[node, PRIOR] > 0, "a node knows nothing"
            for row in rows.chain(forest.features.rows, int(links[node, OBSERVED])):
                chained.append(row)
                weight = forest.features.rows.cells[row, COUNT]
                assert rows.owner_of(forest.features.rows, row) == node
                assert 0 < weight <= links[node, WEIGHT], "a feature weighs more than its leaf"
                if forest.features.kind[row] == Kind.NOMINAL:
                    own = categories.check(forest.elements, row)
                else:
                    own = observers.check(forest.observer, forest.elements, row)
                owned += own
                if forest.features.kind[row] == Kind.BINARY or not leaf:
                    assert not own
                else:
                    assert forest.elements.weight[own].sum() == weight
        assert all(np.isfinite(each).all() for each in (*forest.models, *forest.intervals))
        assert all((each >= 0.0).all() for each in forest.intervals)
        assert not self._has_models or (forest.models.features[chained, UNCERTAINTY] >= linear.FLOOR).all()
        rows.check(forest.features.rows, chained)
        elements.check(forest.elements, owned)
        seen = forest.features.rows.cells[chained, rows.KEY] & 0xFFFFFFFF
        split_on = links[reached, FEATURE]
        return [seen, split_on[split_on != NONE]]
