"""`GrowingForestPool`: any number of forests of growing trees, which replace what drifts, one for each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, extended, filled
from algorithms.core.canonical import Canonicaliser, Terms
from algorithms.core.events import DONE, Batch, Events
from algorithms.core.fixed_point import MAX_TOTAL, PER_UNIT
from algorithms.core.given import whole
from algorithms.core.jit import direct
from algorithms.core.kinds import Kind
from algorithms.core.names import NO_NAMES
from algorithms.core.pool import Pool
from algorithms.core.schema import Feature, Schema
from algorithms.core.stored import Arrays
from algorithms.forests import growth as kernel
from algorithms.forests.arrays import of_trees, with_trees
from algorithms.forests.draws import MOST_SEED, MOST_TREES, draws
from algorithms.forests.growth import (
    ALIVE,
    ASKED,
    BESIDE,
    DRIFTS,
    EVENT,
    EVENTS,
    KEY_COLUMNS,
    LEARNED,
    MADE,
    NUMBER,
    PLACE,
    PLACE_COLUMNS,
    RIGHT,
    VOTER,
    WARNINGS,
    Growing,
    Room,
    Rules,
    Told,
)
from algorithms.forests.ledger import NONE
from algorithms.forests.names import hashes_of
from algorithms.trees.gaussians import LARGEST_VALUE
from algorithms.trees.policies import adwin
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from algorithms.trees.snapshot import Tree
from algorithms.trees.state import Out, scratch

_NUMBERS = 1 << 31  # of trees: below
POLICIES = ("periodic", "osm", "imac", "exact")  # of trees that count an example in its leaf alone


class Answers(NamedTuple):
    """What a batch led to."""

    status: Int8s  # int8[n], a `Status` for each event
    predicted: Int32s  # int32[n], the class predicted, -1: nothing is known, or nothing was asked
    loss: Float64s  # float64[n], of inserts: -log2 of the share given to the true class
    asked: Int64s  # int64[p], the events that were predictions
    votes: Int64s  # int64[p, c], what each was answered with: a tree that is always right has 2^20 to divide

    @property
    def weights(self) -> Float64s:
        """float64[p, c], the votes in trees."""
        return np.multiply(self.votes, PER_UNIT, dtype=np.float64)


class Sizes(NamedTuple):
    """How large a forest is and what it did."""

    events: int  # examples learned
    nodes: int  # of the trees that vote
    leaves: int
    beside: int  # trees that grow beside others
    warnings: int
    drifts: int


class GrowingForestPool(Pool[Growing, Answers, Float64s]):
    """Any number of forests of trees that grow, one for each key.

    The trees are those of `TreePool`, all in one. Every tree is asked before it learns. ADWIN (trees/policies)
    watches its errors twice: at a warning another tree is begun beside it, with a part of the features of its own,
    and at a drift that one takes its place, or one that has learned nothing where there is none. A vote is as
    heavy as its tree was lately right. Nothing is forgotten: `ForestPool` takes deletes.

    Parameters
    ----------
    trees : int
        T, 1 to 1000.
    subspace : float or str
        The share of the features that a tree sees, or ``sqrt of D`` for 1 / sqrt(D).
    bagging : str
        ``none``, ``poisson:1``, ``poisson:6`` or ``k of T``: how often an example weighs in each tree.
    seed : int
        Another one, another forest.
    warning, drift : float
        How likely a look of a detector finds a change where there is none.
    policy, criterion, predict, grace_period, split_confidence, tie_threshold, inherit, local_range, max_depth
        Of each tree, as of `TreePool`, but that trees of a forest split soon; of the policies ``periodic``,
        ``osm``, ``imac`` and ``exact``.
    classes, default, kinds, names, max_keys
        As of `TreePool`.
    """

    _ALIVE = ALIVE
    _VALUES = TreePool._VALUES

    def __init__(
        self,
        *,
        trees: int = 10,
        subspace: float | str = 0.6,
        bagging: str = "poisson:6",
        seed: int = 0,
        warning: float = 0.01,
        drift: float = 0.001,
        policy: str = "periodic",
        criterion: str = "gini",
        predict: Predict = Predict.ADAPTIVE,
        grace_period: int = 10,
        split_confidence: float = 0.5,
        tie_threshold: float = 0.05,
        inherit: bool = False,
        local_range: bool = False,
        max_depth: int = 1 << 30,
        classes: int = 2,
        default: Kind = Kind.BINARY,
        kinds: Mapping[Feature, Kind] | None = None,
        names: bool = False,
        max_keys: int = 1 << 30,
    ) -> None:
        if policy not in POLICIES:
            raise ValueError(f"expected a policy of {', '.join(POLICIES)} in a forest, got {policy!r}")
        for what, delta in (("warning", warning), ("drift", drift)):
            if not 0.0 < delta < 1.0:
                raise ValueError(f"expected a {what} between 0 and 1, got {delta!r}")
        self.count = whole("trees", trees, 1, MOST_TREES)
        drawn = draws(self.count, whole("a seed", seed, 0, MOST_SEED), subspace, bagging)
        self.pool = TreePool(
            policy=policy,
            criterion=criterion,
            predict=predict,
            grace_period=grace_period,
            check_every=grace_period,
            split_confidence=split_confidence,
            tie_threshold=tie_threshold,
            inherit=inherit,
            local_range=local_range,
            max_depth=max_depth,
            classes=classes,
            default=default,
            kinds=kinds,
            names=names,
        )
        self._classes = classes
        self.rules = Rules(drawn, classes, warning, drift, MAX_TOTAL // drawn.most, max_keys)
        state = Growing(
            keys=np.zeros((1, KEY_COLUMNS), np.int64),
            places=np.zeros((self.count, PLACE_COLUMNS), np.int64),
            windows=adwin.make(2 * self.count),
            alive=np.zeros(1, np.int64),
            names=NO_NAMES,
        )
        super().__init__(state, names=names, kinds=Schema(default, kinds or {}))
        self._share_names()
        self._canonical = Canonicaliser(Terms(LARGEST_VALUE))
        self._apply = direct(kernel.apply)
        self._room = Room(
            at=np.zeros(7, np.int64),
            one=Batch(
                key=np.zeros(1, np.int32),
                op=np.zeros(1, np.int8),
                label=np.zeros(1, np.int32),
                weight=np.ones(1, np.int64),
                time=np.ones(1, np.int64),
                pointer=np.zeros(2, np.int64),
                feature=np.zeros(0, np.uint32),
                value=np.zeros(0),
                kind=np.zeros(0, np.int8),
            ),
            out=Out(
                np.zeros(1, np.int8),
                np.zeros(1, np.int64),
                np.zeros(1, np.int32),
                np.zeros(1),
                np.zeros((1, classes)),
                np.zeros(1, np.int64),
                *scratch(classes),
            ),
            votes=np.zeros(classes, np.int64),
            weights=np.zeros(classes),
        )

    def _share_names(self) -> None:
        """Let the trees have the forest's names and kinds of features."""
        self.pool.names, self.pool._schema = self.names, self._schema

    # --- events

    def apply(self, events: Events, *, checked: bool = False) -> Answers:
        """Apply events in order, see `Pool.apply`. O(trees) times what each tree needs for them."""
        events = self._begin(events, checked)
        made = self._canonical(events, self._schema.known)
        keys, label, weight, time = events.key, events.label, events.weight, events.time
        batch = Batch(keys, made.op, label, weight, time, made.pointer, made.feature, made.value, made.kind)
        n = len(made.op)
        told = Told(
            status=np.zeros(n, np.int8),
            predicted=filled(n, NONE, np.int32),
            loss=np.zeros(n),
            votes=np.zeros((len(made.asked), self._classes), np.int64),
            counts=np.zeros(1, np.int64),
        )
        self.pool._reserve(2 * self.count * len(self._heads))
        self.pool._cover(n * self.rules.draws.most)
        self.pool._show_names()
        self._make_room(int(np.diff(made.pointer).max(initial=0)))
        hashes = hashes_of(self.names, self._state.names, made.feature)
        self._room.at[:] = 0
        while (
            short := self._apply(
                self.pool._state, self._state, self.rules, self.pool.rules, batch, hashes, self._room, told
            )
        ) != DONE:
            self.pool._enlarge(short, 0, int(self._room.one.pointer[1]))
        np.maximum(told.status, made.status, out=told.status)  # to the kernel, what was refused is `SKIPPED`
        return Answers(told.status, told.predicted, told.loss, made.asked, told.votes)

    def _make_room(self, ones: int) -> None:
        """Make room for so many features of an example."""
        one = self._room.one
        if ones > len(one.feature):
            more = 2 * ones
            feature, value, kind = np.zeros(more, np.uint32), np.zeros(more), np.zeros(more, np.int8)
            self._room = self._room._replace(one=one._replace(feature=feature, value=value, kind=kind))

    def _prediction(self, answers: Answers) -> Float64s:
        weights: Float64s = answers.weights[0]
        return weights

    def _step(self, batch: Any, out: Any, *at: Any) -> tuple[Any, ...]:
        raise NotImplementedError  # `apply` calls the kernel

    def _enlarge(self, short: int, key: int, ones: int) -> None:
        raise NotImplementedError

    @property
    def _heads(self) -> Int64s:
        return self._state.keys

    def _reserve(self, keys: int) -> None:
        if 2 * keys * self.count > _NUMBERS:
            raise ValueError(
                f"expected keys below {_NUMBERS // (2 * self.count):,} in forests of {self.count:,} trees, "
                f"got {keys - 1:,}; give keys numbers from 0"
            )
        super()._reserve(keys)

    def _grow_keys(self, keys: int) -> None:
        self._state = self._state._replace(
            keys=extended(self._state.keys, keys),
            places=extended(self._state.places, keys * self.count),
            windows=adwin.grown(self._state.windows, 2 * keys * self.count),
        )

    # --- looking

    def _voters(self, key: int) -> list[int]:
        """Return the numbers of the trees that vote in a key's forest."""
        if not 0 <= key < len(self._heads):
            return []
        places = range(key * self.count, (key + 1) * self.count)
        return [2 * place + int(self._state.places[place, VOTER]) for place in places]

    def trees(self, key: int = 0) -> list[Tree]:
        """Return the trees that vote in a key's forest."""
        return [self.pool.tree(number) for number in self._voters(key)]

    def accuracies(self, key: int = 0) -> Float64s:
        """Return float64[T], how often each tree has lately been right, nan where it was not asked yet."""
        places = self._state.places[key * self.count : (key + 1) * self.count]
        at = np.arange(len(places)), places[:, VOTER]
        right, asked = places[at[0], RIGHT + at[1]], places[at[0], ASKED + at[1]]
        accuracies: Float64s = np.where(asked > 0, right * PER_UNIT, np.nan)
        return accuracies

    def sizes(self, key: int = 0) -> Sizes:
        """Return how large a forest is and what it did. O(its nodes)."""
        trees = self.trees(key)
        places = self._state.places[max(key, 0) * self.count : (key + 1) * self.count]
        is_known = 0 <= key < len(self._heads)
        return Sizes(
            events=int(self._state.keys[key, EVENTS]) if is_known else 0,
            nodes=sum(len(tree.number) for tree in trees),
            leaves=sum(sum(feature is None for feature in tree.feature) for tree in trees),
            beside=int(places[:, BESIDE].sum()),
            warnings=int(places[:, WARNINGS].sum()),
            drifts=int(places[:, DRIFTS].sum()),
        )

    @property
    def node_count(self) -> int:
        """How many nodes all trees have, those among them that grow beside others."""
        return self.pool.node_count

    # --- state

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied); those of the trees begin with ``trees.``."""
        return with_trees(super().arrays(), self.pool.arrays())

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        super().restore(arrays)
        self.pool.restore(of_trees(arrays))
        self._share_names()
        return self

    # --- invariants

    def _check(self) -> list[npt.NDArray[Any]]:
        state = self._state
        adwin.check(state.windows, list(range(2 * len(state.keys) * self.count)))
        for key in range(len(state.keys)):
            places = state.places[key * self.count : (key + 1) * self.count]
            if not state.keys[key, ALIVE]:
                assert not state.keys[key].any()
                assert not places.any()
                continue
            assert 0 < state.keys[key, LEARNED] < self.rules.max_weight
            assert (places[:, NUMBER : NUMBER + 2] <= places[:, [MADE]]).all()
            assert (places[:, MADE] <= places[:, WARNINGS] + places[:, DRIFTS]).all()
        heads = self.pool._heads
        alive = np.flatnonzero(heads[:, self.pool._ALIVE])
        owners = state.places[alive // 2]
        assert ((owners[:, VOTER] == alive % 2) | (owners[:, BESIDE] == 1)).all(), "a tree that has no part"
        assert self.are_alive((alive // 2 // self.count).astype(np.int32)).all(), "a tree of a key that is gone"
        assert self._room.at[PLACE] == 0
        assert self._room.at[EVENT] >= 0
        self.pool.names = None  # its references are checked with the forest's
        try:
            self.pool.check()
        finally:
            self.pool.names = self.names
        return list(self.pool._check())
