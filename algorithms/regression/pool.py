"""`RegressionPool`: any number of regression trees in one set of arrays, grown by one kernel call a batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from algorithms.core import rows
from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt32s, extended
from algorithms.core.declared import Declared
from algorithms.core.entries import in_order
from algorithms.core.events import Op, Status
from algorithms.core.given import check_batch, entries_of, index_of, number, units_of
from algorithms.core.kinds import Kind
from algorithms.core.names import Interner, name_or_id
from algorithms.core.rows import COUNT, NONE
from algorithms.core.stored import flattened, rebuilt
from algorithms.core.units import MAX_TOTAL, UNIT
from algorithms.regression import elements, grow, observers, state
from algorithms.regression.answers import Answers, Split, Tree, snapshot, split_of
from algorithms.regression.state import Examples, Out, Rules
from algorithms.trees import nodes
from algorithms.trees.earlier import with_learned
from algorithms.trees.gaussians import LARGEST_VALUE
from algorithms.trees.nodes import FEATURE, OBSERVED, PRIOR, SEEN, TREE, WEIGHT
from algorithms.trees.state import ATTEMPTS, EVENTS, LEARNED, LEAVES, SPLITS, Batch

Feature = int | bytes


class Events(NamedTuple):
    """Events for a pool, in order."""

    index: Int32s  # type: ignore[assignment]  # int32[n], whose event (hides tuple.index, which nobody needs)
    op: Int8s  # int8[n], an `Op`; negative: skip
    label: Float64s  # float64[n], finite, up to 1e140 in size
    weight: Int64s  # int64[n], in units of 2^-20
    pointer: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[ones], in any order
    value: Float64s  # float64[ones], 0 is the same as absent


class Sizes(NamedTuple):
    """How large a tree is and what it did."""

    events: int  # examples learned
    attempts: int  # how often all features of a leaf were ranked
    splits: int
    leaves: int


class RegressionPool:
    """Any number of regression trees; an index is a small integer.

    Parameters
    ----------
    observer : str
        How numeric features are observed, a name in `OBSERVERS`.
    options : Mapping[str, Any], optional
        The observer's settings, see `Observer`.
    period : int
        Examples until a leaf tries to split.
    delta : float
        How likely a split may be another than the best.
    tau : float
        Where the bound falls below it the best feature is taken, however near the second.
    default : Kind
        ``BINARY`` or ``NUMERIC``: the kind of the features that `kinds` does not name.
    kinds : Mapping[int | bytes, Kind], optional
        The kinds of others.
    names : bool
        Features are byte strings, interned here; otherwise ids below 2^32.
    max_trees, max_depth : int
        Bounds: an example that would begin one tree more is refused, a leaf so deep does not split.

    Raises
    ------
    ValueError
        With what was expected.
    """

    def __init__(
        self,
        *,
        observer: str = "qo",
        options: Mapping[str, Any] | None = None,
        period: int = 200,
        delta: float = 1e-7,
        tau: float = 0.05,
        default: Kind = Kind.BINARY,
        kinds: Mapping[Feature, Kind] | None = None,
        names: bool = False,
        max_trees: int = 1 << 30,
        max_depth: int = 1 << 30,
    ) -> None:
        if period < 1:
            raise ValueError(f"expected a period of at least 1, got {period}")
        if not 0.0 < delta < 1.0:
            raise ValueError(f"expected a delta between 0 and 1, got {delta}")
        if not 0.0 <= tau < np.inf:
            raise ValueError(f"expected a finite tau of at least 0, got {tau}")
        if other := {default, *(kinds or {}).values()} - {Kind.BINARY, Kind.NUMERIC}:
            listed = ", ".join(sorted(each.name for each in other))
            raise ValueError(f"expected binary and numeric features only, got {listed}")
        self.rules = Rules(period, math.log(min(1.0 / delta, 2.0**1023)) / 2.0, tau, max_trees, max_depth)
        self.names = Interner() if names else None
        self._declared = Declared(default, kinds or {})
        self._forest = state.make(observers.made(observer, options or {}))
        self._declared.intern(self.names)

    # --- events

    def apply(self, events: Events) -> Answers:
        """Apply events in order: predict each example, then learn it. O(features of the examples), attempts apart.

        Raises
        ------
        ValueError
            Where the columns are none, or an index is negative; no event is applied. Whatever else is wrong with
            an event is told by its status.
        """
        check_batch(events, np.float64, self.names)
        n = len(events.index)
        if n:
            self._reserve(int(events.index.max()) + 1)
        examples, refused = self._prepared(events)
        out = Out(
            status=np.zeros(n, np.int8),
            node=np.full(n, NONE, np.int64),
            guess=np.full(n, np.nan),
            leaf=np.zeros(n, np.int64),
            scores=np.zeros(2),
        )
        if self.names is not None:
            self._forest = self._forest._replace(names=self.names.arrays)
        splits: list[Split] = []
        event, short = 0, -1
        while short != grow.DONE:
            event, short = grow.apply(self._forest, self.rules, examples, out, event)
            if short == grow.SPLIT:
                splits.append(self._split(out, event - 1))
            elif short != grow.DONE:
                pointer = examples.events.pointer
                self._enlarge(short, int(pointer[event + 1] - pointer[event]))
        out.status[refused > 0] = refused[refused > 0]
        return Answers(out.status, splits, out.guess, out.leaf)

    def _split(self, out: Out, event: int) -> Split:
        node = int(out.node[event])
        feature = name_or_id(self.names, int(self._forest.nodes.links[node, FEATURE]))
        return split_of(self._forest, node, event, feature, *out.scores.tolist())

    def _prepared(self, events: Events) -> tuple[Examples, Int8s]:
        """Return the events with features in order and their kinds, and what is refused for a value or label."""
        n = len(events.index)
        row, feature, value, repeated = in_order(events.pointer, events.feature, events.value + 0.0)  # -0.0 is 0.0
        refused = np.zeros(n, np.int8)
        refused[(events.op == Op.INSERT) & ~(np.abs(events.label) <= LARGEST_VALUE)] = Status.WRONG_LABEL
        refused[row[~(np.abs(value) <= LARGEST_VALUE)]] = Status.WRONG_VALUE
        refused[repeated] = Status.REPEATED_FEATURE
        refused[(events.op != Op.INSERT) & (events.op != Op.PREDICT)] = 0  # nobody looks at their features
        batch = Batch(
            index=events.index,
            op=np.where(refused > 0, np.int8(-1), events.op).astype(np.int8),
            label=np.zeros(n, np.int32),
            weight=events.weight,
            time=np.zeros(n, np.int64),
            pointer=events.pointer,
            feature=feature.astype(np.uint32),
            value=value,
            kind=self._declared.of(feature),
        )
        return Examples(batch, events.label + 0.0), refused

    def _reserve(self, trees: int) -> None:
        before = len(self._forest.trees)
        if trees > before:
            self._forest = self._forest._replace(trees=extended(self._forest.trees, max(trees, 2 * before)))

    def _enlarge(self, short: int, ones: int) -> None:
        forest = self._forest
        if short == grow.NODES:
            self._forest = state.with_nodes(forest, 2 * len(forest.nodes.links))
        elif short == grow.FEATURES:
            self._forest = state.with_features(forest, 2 * max(ones, len(forest.features.kind)))
        else:
            self._forest = state.with_elements(forest, 2 * max(ones, len(forest.elements.key)))

    # --- one event at a time, for library users

    def learn(
        self, x: Mapping[Any, float] | Iterable[Any], label: float, *, weight: float = 1.0, index: int = 0
    ) -> Status:
        """Learn one example: its features with their values, or those that are present; see `apply` for many.

        Raises
        ------
        ValueError
            Where the example is not one: a wrong feature, value, label or weight.
        """
        return self._one(Op.INSERT, x, number("a label", label, LARGEST_VALUE), units_of(weight), index)[0]

    def predict(self, x: Mapping[Any, float] | Iterable[Any], *, index: int = 0) -> float:
        """Return the label predicted for an example, nan where nothing is known. No state is changed.

        Raises
        ------
        ValueError
            Where the example is not one.
        """
        return float(self._one(Op.PREDICT, x, 0.0, UNIT, index)[1].guess[0])

    def drop(self, index: int = 0) -> None:
        """Forget a tree."""
        self._one(Op.DROP, (), 0.0, UNIT, index)

    def _one(
        self, op: Op, x: Mapping[Any, float] | Iterable[Any], label: float, units: int, index: int
    ) -> tuple[Status, Answers]:
        index = index_of(index)
        numbers, values = entries_of(x, self.names)
        answers = self.apply(
            Events(
                index=np.array([index], np.int32),
                op=np.array([op], np.int8),
                label=np.array([label], np.float64),
                weight=np.array([units], np.int64),
                pointer=np.array([0, len(numbers)], np.int64),
                feature=numbers,
                value=values,
            )
        )
        self.sweep(numbers)
        status = Status(int(answers.status[0]))
        if status == Status.WRONG_VALUE:
            raise ValueError(f"expected finite values up to {LARGEST_VALUE:g} in size, got {x!r}")
        return status, answers

    # --- looking

    def tree(self, index: int = 0) -> Tree:
        """Return a tree as columns; one that has learned nothing has no nodes. No state is changed."""
        found = snapshot(self._forest, index)
        return found._replace(
            feature=[None if number is None else name_or_id(self.names, int(number)) for number in found.feature]
        )

    def sizes(self, index: int = 0) -> Sizes:
        """Return how large a tree is and what it did."""
        if not 0 <= index < len(self._forest.trees):
            return Sizes(0, 0, 0, 0)
        return Sizes(*self._forest.trees[index, [EVENTS, ATTEMPTS, SPLITS, LEAVES]].tolist())

    @property
    def alive(self) -> int:
        """How many trees have learned something since they were last dropped."""
        return int(self._forest.alive[0])

    @property
    def node_count(self) -> int:
        """How many nodes all trees have."""
        return int(self._forest.nodes.rows.used[rows.USED])

    @property
    def element_count(self) -> int:
        """How many elements the observers of all leaves keep."""
        return int(self._forest.elements.used[elements.USED])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the state, room to grow included."""
        return sum(array.nbytes for array in self.arrays().values())

    # --- state

    def sweep(self, interned: Int64s | UInt32s) -> None:
        """Forget the names that nothing refers to any more: of those just interned, and of what leaves forgot."""
        if self.names is not None:
            self.names.sweep(interned)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays (not copied)."""
        names = flattened(self.names.arrays, "names") if self.names is not None else {}
        return flattened(self._forest) | names

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        if self.names is not None:
            self.names = Interner(rebuilt(self.names.arrays, arrays, "names"))
            self._declared.find(self.names)
        self._forest = rebuilt(self._forest, arrays)
        forest = self._forest
        trees = with_learned(forest.trees, forest.nodes.rows.cells, forest.nodes.links, False)
        self._forest = forest._replace(trees=trees)
        return self

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. O(everything)."""
        forest, links = self._forest, self._forest.nodes.links
        assert forest.alive[0] == np.count_nonzero(forest.trees[:, LEARNED])
        reached: list[int] = []
        for tree in range(len(forest.trees)):
            own = nodes.preorder(forest.nodes, int(nodes.root_of(forest.nodes, tree)))
            reached += own
            assert sum(links[node, FEATURE] == NONE for node in own) == forest.trees[tree, LEAVES]
            assert links[own, WEIGHT].sum() == forest.trees[tree, LEARNED] < MAX_TOTAL
            assert len(own) > 0 or not forest.trees[tree].any()
            assert all(links[node, TREE] == tree for node in own)
        rows.check(forest.nodes.rows, reached)
        chained: list[int] = []
        owned: list[int] = []
        for node in reached:
            leaf = links[node, FEATURE] == NONE
            assert len(nodes.children(forest.nodes, node)) == (0 if leaf else 2)
            assert leaf or links[node, OBSERVED] == NONE, "an inner node keeps what it saw"
            assert forest.targets.tried[node] <= links[node, SEEN]
            assert links[node, WEIGHT] + links[node, PRIOR] > 0, "a node knows nothing"
            for row in rows.chain(forest.features.rows, int(links[node, OBSERVED])):
                chained.append(row)
                weight = forest.features.rows.cells[row, COUNT]
                assert rows.owner_of(forest.features.rows, row) == node
                assert 0 < weight <= links[node, WEIGHT], "a feature weighs more than its leaf"
                own = observers.check(forest.observer, forest.elements, row)
                owned += own
                if forest.features.kind[row] == Kind.BINARY:
                    assert not own
                else:
                    assert forest.elements.weight[own].sum() == weight
        rows.check(forest.features.rows, chained)
        elements.check(forest.elements, owned)
        if self.names is not None:
            seen = forest.features.rows.cells[chained, rows.KEY] & 0xFFFFFFFF
            split_on = [number for number in links[reached, FEATURE] if number != NONE]
            self.names.check_references([seen, self._declared.numbers, np.array(split_on, np.int64)])
