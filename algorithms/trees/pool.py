"""`TreePool`: any number of classification trees in one set of arrays, grown by one kernel call a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from algorithms.core import rows
from algorithms.core.arrays import Float64s, Int32s, Int64s, extended, filled
from algorithms.core.cadence import Emit
from algorithms.core.canonical import Canonicaliser, Terms
from algorithms.core.criteria import make_criterion
from algorithms.core.events import Batch, Events
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.core.names import NO_NAMES, name_or_id
from algorithms.core.packing import Numbers
from algorithms.core.pool import MEMO
from algorithms.core.rows import COUNT, NONE
from algorithms.core.schema import Feature, Schema
from algorithms.trees import grow, memory, nodes, observers, packing, policies
from algorithms.trees.answers import Answers, Split, split_of
from algorithms.trees.bounds import bound_of, check_bound, check_range, squared_range
from algorithms.trees.earlier import with_learned
from algorithms.trees.gaussians import LARGEST_VALUE
from algorithms.trees.growing import GrowingPool
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
    Forest,
    Out,
    Rules,
    scratch,
)

LEAST_CANDIDATES = 2  # where the second best is not among them, nearly every example is said to be due
_FEATURE_BYTES = 100  # of what a leaf saw of a feature or of a value, about
MOST_CANDIDATES = 1_000  # each costs memory in every leaf, and time for every example


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


class TreePool(GrowingPool[Forest, Answers, Float64s]):
    """Any number of trees, one for each key.

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
    grace_period : int
        Examples until a leaf tries to split: n_min of VFDT, OSM, EFDT and HAT, eta of IMAC. ``exact`` needs none.
    check_every : int
        Examples between checks of IMAC's candidates, and of EFDT's inner nodes, mu.
    candidates : int, optional
        How many features of a leaf IMAC keeps the scores of, K, from 2 to 1000; without it a tenth of those that
        the leaf saw, but from 5 to 10. Of ``imac`` only.
    split_confidence : float
        How likely a split may be another than the best.
    tie_threshold : float
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
    local_range : bool
        The range R of the bound is log2 of the number of classes that a leaf has seen, not of all classes: a leaf
        with few of them splits sooner, as in MOA and river. Of ``entropy`` only: the range of ``gini`` is 1.
    drop_poor : bool
        After an attempt that failed drop the features that are worse than the best by more than the bound: a leaf
        looks at them no more, and what it counted of their values is given back. Not for ``efdt`` and ``exact``.
    names : bool
        Features are byte strings, interned here; otherwise ids below 2^32.
    evaluate : bool
        Predict every example before it is learned. ``hat`` does so anyhow.
    max_keys, max_depth : int
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

    _ALIVE = LEARNED
    _KERNEL = staticmethod(grow.apply)
    _VALUES = f"finite values up to {LARGEST_VALUE} in size, whole ones from 0 to 4294967295 of nominal features"

    def __init__(
        self,
        *,
        policy: str = "periodic",
        criterion: str = "entropy",
        classes: int = 2,
        predict: Predict = Predict.MAJORITY,
        grace_period: int = 200,
        check_every: int = 200,
        candidates: int | None = None,
        split_confidence: float = 1e-7,
        tie_threshold: float = 0.05,
        default: Kind = Kind.BINARY,
        kinds: Mapping[Feature, Kind] | None = None,
        radius: float | None = None,
        radius_fraction: float = 0.5,
        max_slots: int = 256,
        inherit: bool = False,
        local_range: bool = False,
        drop_poor: bool = False,
        names: bool = False,
        evaluate: bool = False,
        max_keys: int = 1 << 30,
        max_depth: int = 1 << 30,
        memory_limit: int | None = None,
        measure_delay: bool = False,
        snapshots: Emit = Emit(),  # noqa: B008  (a constant)
    ) -> None:
        _check_settings(policy, criterion, classes, grace_period, check_every)
        check_bound(split_confidence, tie_threshold)
        _check_quantiser(radius, radius_fraction, max_slots)
        check_range(criterion, local=local_range)
        _check_candidates(policy, candidates)
        slots = Kind.QUANTISED in (default, *(kinds or {}).values())
        plain = default == Kind.BINARY and all(kind == Kind.BINARY for kind in (kinds or {}).values())
        _check_policy(policy, classes, plain, memory_limit, measure_delay=measure_delay, drop_poor=drop_poor)
        self._classes = classes
        self.rules = Rules(
            classes=classes,
            grace_period=grace_period,
            check_every=check_every,
            candidates=candidates or 0,
            bound=bound_of(1.0 if local_range else squared_range(criterion, classes), split_confidence),
            tie_threshold=tie_threshold,
            predict=int(predict),
            evaluated=evaluate or POLICIES[policy].adapts,
            counted=POLICIES[policy].counted or predict != Predict.MAJORITY,
            measured=measure_delay,
            keeps=POLICIES[policy].keeps,
            adapts=POLICIES[policy].adapts,
            plain=plain,
            inherit=inherit,
            local_range=local_range,
            drop_poor=drop_poor,
            quantiser=Quantiser(radius or 0.0, radius_fraction, max_slots),
            max_keys=max_keys,
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
        forest = Forest(
            trees=np.zeros((1, TREE_COLUMNS), np.int64),
            alive=np.zeros(1, np.int64),
            nodes=nodes.make(8, classes),
            features=observers.make(16, classes, slots=slots),
            policy=POLICIES[policy].function("make")(8, 16, classes, candidates or 0),
            names=NO_NAMES,
            criterion=make_criterion(criterion, MEMO),
        )
        super().__init__(forest, names=names, kinds=Schema(default, kinds or {}), criterion=criterion)
        # Which leaves sleep may depend on the order of rows; the indexes of ``exact`` have rows of other kinds.
        self.can_move = memory_limit is None and not indexed
        self._canonical = Canonicaliser(Terms(LARGEST_VALUE))
        self._scratch = scratch(classes)

    # --- events

    def apply(self, events: Events, *, checked: bool = False) -> Answers:
        """Apply events in order. O(features of the examples), attempts and searches apart; see `Pool.apply`."""
        events = self._begin(events, checked)
        made = self._canonical(events, self._schema.known)
        keys, label, weight, time = events.key, events.label, events.weight, events.time
        batch = Batch(keys, made.op, label, weight, time, made.pointer, made.feature, made.value, made.kind)
        n, asked = len(made.op), made.asked
        out = Out(
            np.zeros(n, np.int8),
            np.empty(n, np.int64),
            filled(n, NONE, np.int32),
            np.zeros(n),
            np.zeros((len(asked), self._classes)),
            np.zeros(len(asked), np.int64),
            *self._scratch,
        )
        out.counts[0] = 0
        splits: list[Split] = []
        snapshots: list[tuple[int, int, Tree]] = []
        for event in self._run(batch, out):
            if out.told[0] & SPLIT_MADE:
                splits.append(self._split(out, event))
            if out.told[0] & SNAPSHOT_DUE:
                key = int(batch.key[event])
                snapshots.append((event, int(self._heads[key, EVENTS]), self.tree(key)))
        np.maximum(out.status, made.status, out=out.status)  # to the kernel, what was refused is `SKIPPED`
        return Answers(out.status, splits, snapshots, out.predicted, out.loss, asked, out.shares, out.leaf)

    def _prediction(self, answers: Answers) -> Float64s:
        return answers.weights[0]

    def _split(self, out: Out, event: int) -> Split:
        node = int(out.node[event])
        feature = name_or_id(self.names, int(self._state.nodes.links[node, FEATURE]))
        score, second, impurity = out.scores.tolist()
        return split_of(self._state.nodes, node, event, feature, (score, second, impurity))

    @property
    def _heads(self) -> Int64s:
        return self._state.trees

    def _grow_keys(self, keys: int) -> None:
        self._state = self._state._replace(trees=extended(self._state.trees, keys))

    def _enlarge(self, short: int, key: int, ones: int) -> None:  # noqa: ARG002
        forest = self._state
        features = forest.features
        limit = self._limit(short, ones)
        if self._is_full(short, ones, limit):
            memory.make_room(forest, limit, ones)
        elif short == grow.NODES:
            # A split into more branches than there are nodes comes here more than once.
            more = 2 * len(forest.nodes.links)
            self._state = forest._replace(
                nodes=nodes.grown(forest.nodes, more), policy=policies.grown(forest.policy, more)
            )
        elif short == grow.POLICY:
            self._state = forest._replace(policy=policies.enlarged(forest.policy, ones, limit))
        elif short == grow.FEATURES:
            more = min(2 * max(ones, len(features.rows.cells)), limit)
            self._state = forest._replace(features=observers.with_rows(features, more))
        elif short == grow.VALUES:
            more = min(2 * max(ones, len(features.values.cells)), limit)
            self._state = forest._replace(features=observers.with_values(features, more))
        else:
            more = min(2 * max(ones, len(features.gaussians.following)), limit)
            self._state = forest._replace(features=observers.with_gaussians(features, more))

    def _limit(self, short: int, ones: int) -> int:
        """Return how many rows what is short may have: by the limit, but enough for two such examples."""
        return max(self._most_rows, 2 * ones, self._capacity(short))

    def _capacity(self, short: int) -> int:
        features = self._state.features
        rows_of = {grow.FEATURES: features.rows.cells, grow.VALUES: features.values.cells}
        if short == grow.GAUSSIANS:
            return len(features.gaussians.following)
        return len(rows_of[short]) if short in rows_of else 0

    def _is_full(self, short: int, ones: int, limit: int) -> bool:
        if short == grow.POLICY:
            return bool(policies.is_full(self._state.policy, ones, limit))
        return self._capacity(short) >= limit

    def _heaviest(self) -> int:
        return int(self._state.nodes.links[:, WEIGHT].max())

    # --- packing

    def _held_in(self) -> Iterable[tuple[Int64s, int]]:
        forest = self._state
        return (
            (forest.nodes.rows.used, 8 * (nodes.COLUMNS + 8)),
            (forest.features.rows.used, _FEATURE_BYTES),
            (forest.features.values.used, _FEATURE_BYTES),
        )

    def _packed(self, keys: Int32s, names: Numbers | None) -> Forest:
        return packing.packed(self._state, keys, names)

    def warm_up(self) -> None:
        """Compile the kernels that no event calls, or load them. No state is changed."""
        if self.can_move:
            packing.packed(self._state, np.zeros(0, np.int32))

    # --- looking

    def tree(self, key: int = 0) -> Tree:
        """Return a tree as columns; one that has learned nothing has no nodes. No state is changed."""
        found = snapshot(self._state.nodes, key)
        return found._replace(feature=self._features(found.feature))

    def sizes(self, key: int = 0) -> Sizes:
        """Return how large a tree is and what it did."""
        if not 0 <= key < len(self._state.trees):
            return Sizes(0, 0, 0, 0, 0)
        return Sizes(*self._state.trees[key, [EVENTS, ATTEMPTS, SPLITS, LEAVES, WAITED]].tolist())

    @property
    def node_count(self) -> int:
        """How many nodes all trees have, and the alternates beside them."""
        return int(self._state.nodes.rows.used[rows.USED])

    @property
    def slots(self) -> int:
        """How many features leaves keep counts of, over all leaves."""
        return int(self._state.features.rows.used[rows.USED]) + len(policies.keys(self._state.policy))

    @property
    def depth(self) -> int:
        """The depth of the deepest tree, 0 where none has split."""
        used = int(self._state.nodes.rows.used[rows.EVER])
        links = self._state.nodes.links[:used]
        own = (self._state.nodes.rows.cells[:used, rows.KEY] != NONE) & (links[:, BESIDE] == 0)
        return int(links[own, DEPTH].max(initial=0))

    @property
    def alternates(self) -> Alternates:
        """What became of the subtrees that grew beside trees; none with a policy that has none."""
        if not self.rules.adapts:
            return Alternates(0, 0, 0)
        started, promoted = self._state.policy.counts.tolist()
        open_ = len(nodes.alternates(self._state.nodes))
        return Alternates(open_, promoted, started - promoted - open_)

    @property
    def asleep(self) -> int:
        """How many leaves sleep because of the limit of memory."""
        return memory.sleepers(self._state.nodes)

    # --- state

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        super().restore(arrays)
        trees, links = self._state.trees, self._state.nodes.links
        trees = with_learned(trees, self._state.nodes.rows.cells, links, self.rules.keeps)
        self._state = self._state._replace(trees=trees)
        return self

    def _check(self) -> list[npt.NDArray[Any]]:
        forest, links = self._state, self._state.nodes.links
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
        policies.check(forest.policy, forest, [leaf for leaf in leaves if not links[leaf, ASLEEP]])
        return features_of(forest)

    def _check_weights(self, tree: int, own: list[int]) -> None:
        """Raise AssertionError unless what a tree has learned bounds what its nodes hold."""
        links, learned = self._state.nodes.links, int(self._state.trees[tree, LEARNED])
        assert (len(own) > 0) == (learned > 0)
        assert learned < MAX_TOTAL
        assert all(int(links[node, WEIGHT]) + int(links[node, PRIOR]) <= learned for node in own)
        if self.rules.keeps:
            assert not own or links[own[0], WEIGHT] == learned, "the root did not see all"
        else:
            assert sum(links[own, WEIGHT].tolist()) <= learned


def features_of(forest: Forest) -> list[Int64s]:
    """Return the features that trees refer to, as often as they do: in leaves, their policy and in splits."""
    seen = forest.features.rows.cells[: forest.features.rows.used[rows.EVER], rows.KEY]
    is_used = forest.nodes.rows.cells[:, rows.KEY] != NONE
    is_used[forest.nodes.rows.used[rows.EVER] :] = False
    split_on = forest.nodes.links[is_used, FEATURE]
    return [
        seen[seen != NONE] & 0xFFFFFFFF,
        policies.keys(forest.policy) & 0xFFFFFFFF,
        split_on[split_on != NONE],
    ]


def _check_settings(policy: str, criterion: str, classes: int, grace_period: int, check_every: int) -> None:
    """Raise ValueError where a setting of all policies is none."""
    if policy not in POLICIES:
        raise ValueError(f"expected a policy of {', '.join(POLICIES)}, got {policy!r}")
    if criterion not in ("entropy", "gini"):
        raise ValueError(f"expected the criterion entropy or gini, got {criterion!r}")
    if classes < 2:
        raise ValueError(f"expected at least 2 classes, got {classes}")
    if grace_period < 1 or check_every < 1:
        raise ValueError(
            f"expected grace_period and check_every of at least 1, got {grace_period} and {check_every}"
        )


def _check_candidates(policy: str, candidates: int | None) -> None:
    """Raise ValueError where the number of candidates is none, or the policy has none."""
    if candidates is None:
        return
    if not POLICIES[policy].scores:
        others = ", ".join(name for name, each in POLICIES.items() if each.scores)
        raise ValueError(
            f"expected no candidates with the policy {policy!r}, only {others} have them; leave them out"
        )
    if not LEAST_CANDIDATES <= candidates <= MOST_CANDIDATES:
        raise ValueError(
            f"expected from {LEAST_CANDIDATES} to {MOST_CANDIDATES} candidates, or None, got {candidates}"
        )


def _check_quantiser(radius: float | None, radius_fraction: float, max_slots: int) -> None:
    """Raise ValueError where a setting of quantised features is none."""
    if radius is not None and not 0.0 < radius <= LARGEST_VALUE:
        raise ValueError(f"expected a radius above 0 and up to {LARGEST_VALUE:g}, or None, got {radius}")
    if not 0.0 < radius_fraction <= 100.0:
        raise ValueError(f"expected a radius_fraction above 0 and up to 100, got {radius_fraction}")
    if max_slots < 2:
        raise ValueError(f"expected max_slots of at least 2, got {max_slots}")


def _check_policy(
    policy: str, classes: int, plain: bool, memory_limit: int | None, *, measure_delay: bool, drop_poor: bool
) -> None:
    """Raise ValueError where a policy does not serve what is asked of it."""
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
