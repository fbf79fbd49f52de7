"""`TreePool`: any number of classification trees in one set of arrays, grown by one kernel call a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from algorithms.core import rows
from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt32s, are_set, extended
from algorithms.core.cadence import Emit
from algorithms.core.criteria import CRITERIA, UNIT, Entropy, Gini
from algorithms.core.declared import Declared
from algorithms.core.entries import in_order
from algorithms.core.events import Op, Status
from algorithms.core.given import check_batch, entries_of, index_of, label_of, units_of
from algorithms.core.kinds import Kind, is_category
from algorithms.core.names import NO_NAMES, Interner, name_or_id
from algorithms.core.rows import COUNT, NONE
from algorithms.core.stored import flattened, rebuilt
from algorithms.core.units import MAX_TOTAL
from algorithms.trees import grow, memory, nodes, observers
from algorithms.trees.answers import Answers, Split, split_of
from algorithms.trees.bounds import bound_of
from algorithms.trees.earlier import with_learned
from algorithms.trees.gaussians import LARGEST_VALUE
from algorithms.trees.nodes import ASLEEP, BESIDE, DEPTH, FEATURE, OBSERVED, PRIOR, TREE, WEIGHT
from algorithms.trees.policies import POLICIES
from algorithms.trees.predict import Predict
from algorithms.trees.quantised import Quantiser
from algorithms.trees.snapshot import Tree, snapshot
from algorithms.trees.state import (
    ATTEMPTS,
    EVENTS,
    LEARNED,
    LEAVES,
    SNAPSHOT_DUE,
    SPLIT_MADE,
    SPLITS,
    TREE_COLUMNS,
    WAITED,
    Batch,
    Forest,
    Out,
    Rules,
)

Feature = int | bytes
Value = float | int


class Events(NamedTuple):
    """Events for a pool, in order."""

    index: Int32s  # type: ignore[assignment]  # int32[n], whose event (hides tuple.index, which nobody needs)
    op: Int8s  # int8[n], an `Op`; negative: skip
    label: Int32s  # int32[n], the number of the class
    weight: Int64s  # int64[n], in units of 2^-20
    time: Int64s  # int64[n], event time in ms; only snapshots by time depend on it
    pointer: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[ones], in any order
    value: Float64s  # float64[ones], 0 is the same as absent


class Sizes(NamedTuple):
    """How large a tree is and what it did."""

    events: int  # examples learned
    attempts: int  # how often all features of a leaf were ranked
    splits: int
    leaves: int
    waited: int  # examples that leaves saw between when they could have split and when they did, if measured


class Alternates(NamedTuple):
    """Of the policy ``hat``, over all trees: subtrees that were grown beside, see alternates.py."""

    open: int  # are grown now
    promoted: int  # took a node's place
    given_up: int  # did worse, or went with what they were grown beside


class TreePool:
    """Any number of trees; an index is a small integer.

    Parameters
    ----------
    policy : str
        When a leaf tries to split, a name in `POLICIES`. ``exact`` serves two classes and binary features.
    criterion : str
        ``entropy`` or ``gini``.
    classes : int
        Labels are 0 to classes - 1.
    predict : Predict
        How a leaf predicts.
    period : int
        Examples until a leaf tries to split: n_min of VFDT, OSM, EFDT and HAT, eta of IMAC. ``exact`` needs none.
    check_every : int
        Examples between checks of IMAC's candidates, and of EFDT's inner nodes, mu.
    delta : float
        How likely a split may be another than the best.
    tau : float
        Where the bound falls below it the best feature is taken, however near the second.
    default : Kind
        The kind of the features that `kinds` does not name.
    kinds : Mapping[int | bytes, Kind], optional
        The kinds of others.
    radius : float, optional
        The width of the slots of quantised features; without it each feature has its own in each leaf.
    radius_fraction : float
        That width as a share of the standard deviation of the first values that the leaf saw.
    max_slots : int
        Slots of a quantised feature in a leaf, at least 2: where they would be more their width doubles.
    inherit : bool
        The bound of a new leaf also counts the examples that its parent saw for it, though it has forgotten their
        features: it splits sooner, as in MOA and river.
    drop_poor : bool
        After an attempt that failed drop the features that are worse than the best by more than the bound: a leaf
        looks at them no more, and what it counted of their values is given back. Not for ``efdt`` and ``exact``.
    names : bool
        Features are byte strings, interned here; otherwise ids below 2^32.
    evaluate : bool
        Predict every example before it is learned. ``hat`` does so anyhow.
    max_trees, max_depth : int
        Bounds: an example that would begin one tree more is refused, a leaf so deep does not split.
    memory_limit : int, optional
        Bytes for what leaves saw: where they would not suffice the leaves that promise least sleep, see memory.py.
        Only two of the longest examples may take more. Not for ``efdt`` and ``hat``.
    measure_delay : bool
        Count in `Sizes.waited` how late leaves split. As slow as an attempt after every example, and nothing else
        changes. Not for ``exact``, whose leaves are never late.
    snapshots : Emit
        When `Answers` has a tree's snapshot; at a change means after every split, and where an alternate took a
        node's place.
    """

    def __init__(
        self,
        *,
        policy: str = "periodic",
        criterion: str = "entropy",
        classes: int = 2,
        predict: Predict = Predict.MAJORITY,
        period: int = 200,
        check_every: int = 200,
        delta: float = 1e-7,
        tau: float = 0.05,
        default: Kind = Kind.BINARY,
        kinds: Mapping[Feature, Kind] | None = None,
        radius: float | None = None,
        radius_fraction: float = 0.5,
        max_slots: int = 256,
        inherit: bool = False,
        drop_poor: bool = False,
        names: bool = False,
        evaluate: bool = False,
        max_trees: int = 1 << 30,
        max_depth: int = 1 << 30,
        memory_limit: int | None = None,
        measure_delay: bool = False,
        snapshots: Emit = Emit(),  # noqa: B008  (a constant)
    ) -> None:
        if policy not in POLICIES:
            raise ValueError(f"expected a policy of {', '.join(POLICIES)}, got {policy!r}")
        if criterion not in ("entropy", "gini"):
            raise ValueError(f"expected the criterion entropy or gini, got {criterion!r}")
        if classes < 2:
            raise ValueError(f"expected at least 2 classes, got {classes}")
        if min(period, check_every) < 1:
            raise ValueError(f"expected period and check_every of at least 1, got {period} and {check_every}")
        if not 0.0 < delta < 1.0:
            raise ValueError(f"expected a delta between 0 and 1, got {delta}")
        if not 0.0 <= tau < np.inf:
            raise ValueError(f"expected a finite tau of at least 0, got {tau}")
        if radius is not None and not 0.0 < radius <= LARGEST_VALUE:
            raise ValueError(f"expected a radius above 0 and up to {LARGEST_VALUE:g}, or None, got {radius}")
        if not 0.0 < radius_fraction <= 100.0:
            raise ValueError(f"expected a radius_fraction above 0 and up to 100, got {radius_fraction}")
        if max_slots < 2:
            raise ValueError(f"expected max_slots of at least 2, got {max_slots}")
        slots = Kind.QUANTISED in (default, *(kinds or {}).values())
        plain = default == Kind.BINARY and all(kind == Kind.BINARY for kind in (kinds or {}).values())
        if POLICIES[policy].only_binary and not (plain and classes == 2):
            raise ValueError(
                f"the policy {policy!r} serves two classes and binary features only; take another for {classes} "
                "classes or for nominal and numeric features"
            )
        if measure_delay and not POLICIES[policy].counted:
            raise ValueError(f"the policy {policy!r} splits without delay; leave out measure_delay")
        if memory_limit is not None and not POLICIES[policy].limits:
            raise ValueError(
                f"the policy {policy!r} counts an example in more than one node and takes no memory_limit; "
                "take another"
            )
        if drop_poor and not POLICIES[policy].drops:
            raise ValueError(f"the policy {policy!r} needs all features and takes no drop_poor; take another")
        self._module = POLICIES[policy].module
        self._make_criterion = CRITERIA[criterion][2]
        self._reach = 1024  # weights that the criterion's memo covers
        self._covered = self._reach  # examples of weight 1 until a leaf could have outgrown it
        made: Entropy | Gini = self._make_criterion(self._reach)
        self.rules = Rules(
            classes=classes,
            period=period,
            check_every=check_every,
            bound=bound_of(made, classes, delta),
            tau=tau,
            predict=int(predict),
            evaluated=evaluate or POLICIES[policy].adapts,
            counted=POLICIES[policy].counted or predict != Predict.MAJORITY,
            measured=measure_delay,
            keeps=POLICIES[policy].keeps,
            adapts=POLICIES[policy].adapts,
            plain=plain,
            inherit=inherit,
            drop_poor=drop_poor,
            quantiser=Quantiser(radius or 0.0, radius_fraction, max_slots),
            max_trees=max_trees,
            max_depth=max_depth,
            snapshot_when=int(snapshots.when),
            snapshot_argument=snapshots.argument,
        )
        indexed = POLICIES[policy].only_binary
        self._most_rows = (
            1 << 31
            if memory_limit is None
            else memory.rows_within(memory_limit, classes, plain, self.rules.counted, indexed, slots)
        )
        self.names = Interner() if names else None
        self._declared = Declared(default, kinds or {})
        self._forest = Forest(
            trees=np.zeros((1, TREE_COLUMNS), np.int64),
            nodes=nodes.make(8, classes),
            features=observers.make(16, classes, slots=slots),
            names=NO_NAMES,
            policy=self._module.make(8, 16, classes),
            criterion=made,
            alive=np.zeros(1, np.int64),
        )
        self._declared.intern(self.names)

    # --- events

    def apply(self, events: Events) -> Answers:
        """Apply events in order. O(features of the examples), attempts and searches apart.

        Raises
        ------
        ValueError
            Where the columns are none, or an index is negative; no event is applied. Whatever else is wrong with
            an event is told by its status.
        """
        check_batch(events, np.int32, self.names)
        n = len(events.index)
        if n:
            self._reserve(int(events.index.max()) + 1)
        self._provide_memo(n)
        batch, refused = self._prepared(events)
        asked = np.flatnonzero(batch.op == Op.PREDICT)
        out = Out(
            status=np.zeros(n, np.int8),
            node=np.full(n, NONE, np.int64),
            guess=np.full(n, NONE, np.int32),
            loss=np.zeros(n),
            shares=np.zeros((len(asked), self.rules.classes)),
            weights=np.zeros(self.rules.classes),
            leaf=np.zeros(len(asked), np.int64),
            logs=np.zeros(self.rules.classes, np.int64),
            counts=np.zeros(1, np.int64),
            told=np.zeros(1, np.int64),
            scores=np.zeros(3),
        )
        if self.names is not None:
            self._forest = self._forest._replace(names=self.names.arrays)
        splits: list[Split] = []
        snapshots: list[tuple[int, int, Tree]] = []
        event, learned, short = 0, False, -1
        while short != grow.DONE:
            event, learned, short = grow.apply(self._forest, self.rules, batch, out, event, learned)
            if short == grow.TOLD:
                if out.told[0] & SPLIT_MADE:
                    splits.append(self._split(out, event - 1))
                if out.told[0] & SNAPSHOT_DUE:
                    index = int(batch.index[event - 1])
                    snapshots.append((event - 1, int(self._forest.trees[index, EVENTS]), self.tree(index)))
            elif short != grow.DONE:
                self._enlarge(short, int(batch.pointer[event + 1] - batch.pointer[event]))
        out.status[refused > 0] = refused[refused > 0]
        return Answers(out.status, splits, snapshots, out.guess, out.loss, asked, out.shares, out.leaf)

    def _split(self, out: Out, event: int) -> Split:
        node = int(out.node[event])
        feature = name_or_id(self.names, int(self._forest.nodes.links[node, FEATURE]))
        score, second, impurity = out.scores.tolist()
        return split_of(self._forest.nodes, node, event, feature, (score, second, impurity))

    def _prepared(self, events: Events) -> tuple[Batch, Int8s]:
        """Return the events with features in order and their kinds, and what is refused for a value."""
        row, feature, value, repeated = in_order(events.pointer, events.feature, events.value)
        kind = self.kinds_of(feature)
        refused = np.zeros(len(events.index), np.int8)
        wrong = ~(np.abs(value) <= LARGEST_VALUE)
        if not self.rules.plain:
            wrong |= (kind == Kind.NOMINAL) & ~is_category(np.where(wrong, 0.0, value))
        refused[row[wrong]] = Status.WRONG_VALUE
        refused[repeated] = Status.REPEATED_FEATURE
        refused[(events.op != Op.INSERT) & (events.op != Op.PREDICT)] = 0  # nobody looks at their features
        op = np.where(refused > 0, np.int8(-1), events.op).astype(np.int8)
        batch = Batch(
            index=events.index,
            op=op,
            label=events.label,
            weight=events.weight,
            time=events.time,
            pointer=events.pointer,
            feature=feature.astype(np.uint32),
            value=value,
            kind=kind,
        )
        return batch, refused

    def kinds_of(self, feature: Int64s | UInt32s) -> Int8s:
        """Return the `Kind` of each of these features, which are given by their numbers."""
        return self._declared.of(feature)

    def _reserve(self, trees: int) -> None:
        before = len(self._forest.trees)
        if trees > before:
            self._forest = self._forest._replace(trees=extended(self._forest.trees, max(trees, 2 * before)))

    def _enlarge(self, short: int, ones: int) -> None:
        forest = self._forest
        features = forest.features
        limit = self._limit(short, ones)
        if self._is_full(short, ones, limit):
            memory.make_room(forest, self._module, limit, ones)
        elif short == grow.NODES:
            # A split into more branches than there are nodes comes here more than once.
            more = 2 * len(forest.nodes.links)
            self._forest = forest._replace(
                nodes=nodes.grown(forest.nodes, more), policy=self._module.grown(forest.policy, more)
            )
        elif short == grow.POLICY:
            self._forest = forest._replace(policy=self._module.enlarged(forest.policy, ones, limit))
        elif short == grow.FEATURES:
            more = min(2 * max(ones, len(features.rows.cells)), limit)
            self._forest = forest._replace(features=observers.with_rows(features, more))
        elif short == grow.VALUES:
            more = min(2 * max(ones, len(features.values.cells)), limit)
            self._forest = forest._replace(features=observers.with_values(features, more))
        else:
            more = min(2 * max(ones, len(features.gaussians.following)), limit)
            self._forest = forest._replace(features=observers.with_gaussians(features, more))

    def _limit(self, short: int, ones: int) -> int:
        """Return how many rows what is short may have: by the limit, but enough for two such examples."""
        return max(self._most_rows, 2 * ones, self._capacity(short))

    def _capacity(self, short: int) -> int:
        features = self._forest.features
        rows_of = {grow.FEATURES: features.rows.cells, grow.VALUES: features.values.cells}
        if short == grow.GAUSSIANS:
            return len(features.gaussians.following)
        return len(rows_of[short]) if short in rows_of else 0

    def _is_full(self, short: int, ones: int, limit: int) -> bool:
        if short == grow.POLICY:
            return bool(self._module.is_full(self._forest.policy, ones, limit))
        return self._capacity(short) >= limit

    def _provide_memo(self, inserts: int) -> None:
        """Make the memo of the criterion long enough for the largest leaf."""
        self._covered -= inserts
        if self._covered >= 0:
            return
        largest = int(self._forest.nodes.links[:, WEIGHT].max()) // UNIT + inserts
        if 2 * largest > self._reach:
            self._reach = 2 * largest
            self._forest = self._forest._replace(criterion=self._make_criterion(self._reach))
        self._covered = self._reach - largest

    # --- one event at a time, for library users

    def learn(
        self, x: Mapping[Any, Value] | Iterable[Any], label: int, *, weight: float = 1.0, index: int = 0
    ) -> Status:
        """Learn one example: its features with their values, or those that are present; see `apply` for many.

        Raises
        ------
        ValueError
            Where the example is not one: a wrong feature, value, label or weight.
        """
        return self._one(Op.INSERT, x, label_of(label, self.rules.classes), units_of(weight), index)[0]

    def predict(self, x: Mapping[Any, Value] | Iterable[Any], *, index: int = 0) -> Float64s:
        """Return the class weights for an example, in examples: all 0 where nothing is known. No state is changed.

        Raises
        ------
        ValueError
            Where the example is not one.
        """
        return self._one(Op.PREDICT, x, 0, UNIT, index)[1].weights[0]

    def drop(self, index: int = 0) -> None:
        """Forget a tree."""
        self._one(Op.DROP, (), 0, UNIT, index)

    def _one(
        self, op: Op, x: Mapping[Any, Value] | Iterable[Any], label: int, units: int, index: int
    ) -> tuple[Status, Answers]:
        index = index_of(index)
        numbers, values = entries_of(x, self.names)
        answers = self.apply(
            Events(
                index=np.array([index], np.int32),
                op=np.array([op], np.int8),
                label=np.array([label], np.int32),
                weight=np.array([units], np.int64),
                time=np.zeros(1, np.int64),
                pointer=np.array([0, len(numbers)], np.int64),
                feature=numbers,
                value=values,
            )
        )
        self.sweep(numbers)
        status = Status(int(answers.status[0]))
        if status == Status.WRONG_VALUE:
            raise ValueError(
                f"expected finite values up to {LARGEST_VALUE} in size, whole ones from 0 to 4294967295 of "
                f"nominal features, got {x!r}"
            )
        return status, answers

    # --- looking

    def tree(self, index: int = 0) -> Tree:
        """Return a tree as columns; one that has learned nothing has no nodes. No state is changed."""
        found = snapshot(self._forest.nodes, index)
        return found._replace(
            feature=[None if number is None else name_or_id(self.names, int(number)) for number in found.feature]
        )

    def sizes(self, index: int = 0) -> Sizes:
        """Return how large a tree is and what it did."""
        if not 0 <= index < len(self._forest.trees):
            return Sizes(0, 0, 0, 0, 0)
        return Sizes(*self._forest.trees[index, [EVENTS, ATTEMPTS, SPLITS, LEAVES, WAITED]].tolist())

    @property
    def alive(self) -> int:
        """How many trees have learned something since they were last dropped."""
        return int(self._forest.alive[0])

    def are_alive(self, indexes: Int32s) -> npt.NDArray[np.bool_]:
        """Return which of these trees have learned something since they were last dropped."""
        return are_set(self._forest.trees[:, LEARNED], indexes)

    @property
    def node_count(self) -> int:
        """How many nodes all trees have, and the alternates beside them."""
        return int(self._forest.nodes.rows.used[rows.USED])

    @property
    def slots(self) -> int:
        """How many features leaves keep counts of, over all leaves."""
        return int(self._forest.features.rows.used[rows.USED]) + len(self._module.keys(self._forest.policy))

    @property
    def depth(self) -> int:
        """The depth of the deepest tree, 0 where none has split."""
        used = int(self._forest.nodes.rows.used[rows.EVER])
        links = self._forest.nodes.links[:used]
        own = (self._forest.nodes.rows.cells[:used, rows.KEY] != NONE) & (links[:, BESIDE] == 0)
        return int(links[own, DEPTH].max(initial=0))

    @property
    def alternates(self) -> Alternates:
        """What became of the subtrees that grew beside trees; none with a policy that has none."""
        if not self.rules.adapts:
            return Alternates(0, 0, 0)
        started, promoted = self._forest.policy.counts.tolist()
        open_ = len(nodes.alternates(self._forest.nodes))
        return Alternates(open_, promoted, started - promoted - open_)

    @property
    def asleep(self) -> int:
        """How many leaves sleep because of the limit of memory."""
        return memory.sleepers(self._forest.nodes)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the state."""
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
        trees = with_learned(forest.trees, forest.nodes.rows.cells, forest.nodes.links, self.rules.keeps)
        self._forest = forest._replace(trees=trees)
        self._covered = 0
        return self

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. O(everything)."""
        forest, links = self._forest, self._forest.nodes.links
        assert forest.alive[0] == np.count_nonzero(forest.trees[:, LEARNED])
        reached: list[int] = []
        leaves: list[int] = []
        for tree in range(len(forest.trees)):
            own = nodes.preorder(forest.nodes, int(nodes.root_of(forest.nodes, tree)))
            reached += own
            own_leaves = [node for node in own if links[node, FEATURE] == NONE]
            leaves += own if self.rules.keeps else own_leaves
            assert len(own_leaves) == forest.trees[tree, LEAVES]
            assert len(own) > 0 or not forest.trees[tree].any()
            self._check_weights(tree, own)
            assert all(links[node, [TREE, BESIDE]].tolist() == [tree, 0] for node in own)
        within = set(reached)
        for top in nodes.alternates(forest.nodes):
            beside = nodes.branch_of(forest.nodes, top)
            assert self.rules.adapts
            assert beside in within, "an alternate grows beside nothing"
            assert links[beside, FEATURE] != NONE
            assert links[top, DEPTH] == links[beside, DEPTH]
            own = nodes.preorder(forest.nodes, top)
            reached += own
            leaves += [node for node in own if links[node, FEATURE] == NONE]
            assert all(links[node, [TREE, BESIDE]].tolist() == [links[beside, TREE], 1] for node in own)
        for node in reached:
            assert forest.nodes.rows.cells[node, COUNT:].sum() == links[node, WEIGHT]
            assert forest.nodes.prior[node].sum() == links[node, PRIOR]
            assert links[node, OBSERVED] == NONE or self.rules.keeps or links[node, FEATURE] == NONE
        rows.check(forest.nodes.rows, reached)
        observers.check(forest.features, forest.nodes, leaves)
        if self.names is not None:
            split_on = [number for number in links[reached, FEATURE] if number != NONE]
            self.names.check_references(
                [*self._features_seen(), self._declared.numbers, np.array(split_on, np.int64)]
            )
        self._module.check(forest.policy, forest, [leaf for leaf in leaves if not links[leaf, ASLEEP]])

    def _check_weights(self, tree: int, own: list[int]) -> None:
        """Raise AssertionError unless what a tree has learned bounds what its nodes hold."""
        links, learned = self._forest.nodes.links, int(self._forest.trees[tree, LEARNED])
        assert (len(own) > 0) == (learned > 0)
        assert learned < MAX_TOTAL
        assert all(int(links[node, WEIGHT]) + int(links[node, PRIOR]) <= learned for node in own)
        if self.rules.keeps:
            assert not own or links[own[0], WEIGHT] == learned, "the root did not see all"
        else:
            assert sum(links[own, WEIGHT].tolist()) <= learned

    def _features_seen(self) -> tuple[Int64s, Int64s]:
        """Return the feature of each row of the observers, and of the policy's own."""
        cells = self._forest.features.rows.cells[: self._forest.features.rows.used[rows.EVER], rows.KEY]
        return cells[cells != NONE] & 0xFFFFFFFF, self._module.keys(self._forest.policy) & 0xFFFFFFFF
