"""`GrowingForestPool`: any number of forests of growing trees, which replace what drifts, one for each key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, extended, filled
from algorithms.core.cadence import Emit, When
from algorithms.core.canonical import Canonicaliser, Terms
from algorithms.core.events import DONE, TOLD, Batch, Events
from algorithms.core.fixed_point import MAX_TOTAL, PER_UNIT
from algorithms.core.given import number, whole
from algorithms.core.jit import direct
from algorithms.core.kinds import Kind
from algorithms.core.names import NO_NAMES
from algorithms.core.packing import Numbers
from algorithms.core.pool import Pool
from algorithms.core.schema import Feature, Schema
from algorithms.core.stored import Arrays
from algorithms.forests import growth as kernel
from algorithms.forests.draws import MOST_SEED, MOST_TREES, draws
from algorithms.forests.growth import (
    ALIVE,
    ASKED,
    AT_ONCE,
    BESIDE,
    DRIFTED,
    DRIFTS,
    EVENTS,
    KEY_COLUMNS,
    LEARNED,
    LEAST,
    MADE,
    MOVES,
    NUMBER,
    PLACE_COLUMNS,
    PLANNED,
    RIGHT,
    VOTER,
    WARNINGS,
    Desk,
    Growing,
    Room,
    Rules,
    Told,
)
from algorithms.forests.ledger import NONE, Hashes
from algorithms.forests.names import hashes_of
from algorithms.forests.parts import Parts
from algorithms.trees.gaussians import LARGEST_VALUE
from algorithms.trees.packing import numbers_of_keys, packed_names
from algorithms.trees.policies import adwin
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from algorithms.trees.snapshot import Tree
from algorithms.trees.state import SPLIT_MADE, Out, scratch

_NUMBERS = 1 << 31  # of trees: below
_MOVES, _TOLD = 1 << 11, 1 << 13  # moves, and what trees are told at a time: at most
_FEATURES = 1 << 14  # of all that trees are told at a time: room for so many at least
_CELLS = 1 << 16  # moves times trees, and times classes: about
_APART = 256  # moves times trees: where there are no more, parts are done at once and no thread is waited for
_SHARED = ("status", "node", "predicted", "loss", "shares", "leaf")  # of what trees say, for each part its share
_NOTHING = Events.of(np.zeros(0, np.int8), np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(0, np.uint32))
POLICIES = ("periodic", "osm", "imac", "exact")  # of trees that count an example in its leaf alone

A = TypeVar("A", bound=npt.NDArray[Any])


class Snapshot(NamedTuple):
    """The trees that vote in a key's forest."""

    event: int  # of the batch, after which it was due
    version: int  # examples that the key had learned
    trees: list[Tree]
    weights: list[float]  # of their votes: a tree that is always right has 1


class Answers(NamedTuple):
    """What a batch led to."""

    status: Int8s  # int8[n], a `Status` for each event
    snapshots: list[Snapshot]  # where they were due
    changes: int  # trees that split, and trees that another took the place of
    predicted: Int32s  # int32[n], the class predicted, -1: nothing is known, or nothing was asked
    loss: Float64s  # float64[n], of inserts: -log2 of the share given to the true class
    asked: Int64s  # int64[p], the events that were predictions
    votes: Int64s  # int64[p, c], what each was answered with: a tree that is always right has 2^20 to divide

    @property
    def leaf(self) -> Int64s:
        """int64[p], 0: there is no one node that answers."""
        return np.zeros(len(self.asked), np.int64)

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


class Replacements(NamedTuple):
    """How often detectors found that the errors of a tree have risen."""

    warnings: int
    drifts: int


class _Part:
    """A part of the trees, and its share of what trees are told and say."""

    def __init__(self, pool: TreePool, part: int) -> None:
        self.pool, self.number = pool, part
        self.splits = 0  # in the batch so far
        self.let_go()

    def let_go(self) -> None:
        """Let go of the arrays that the kernel was last called with."""
        self._go_on = direct(kernel.go_on)

    def have(self, desk: Desk) -> None:
        """Have a share of these arrays from now on."""
        self._desk = desk
        told = (None if each is None else self._share(each) for each in desk.told)
        said = (self._share(getattr(desk.said, name)) for name in _SHARED)
        self._told, self._said = Batch._make(told), Out(*said, *scratch(self.pool._classes))

    def _share(self, array: A) -> A:
        size = len(array) // len(self._desk.at)
        return array[self.number * size : (self.number + 1) * size]  # type: ignore[return-value]  # as it is

    def act(self) -> None:
        """Let the trees do what they were told."""
        count = self._desk.at[self.number, PLANNED]
        told = Batch._make((self._told.key[:count], *self._told[1:]))  # the kernel goes as far as keys do
        self._said.counts[0] = 0
        for _ in self.pool._run(told, self._said):
            self.splits += int(self._said.told[0] & SPLIT_MADE)

    def go_on(self, growing: Growing, rules: Rules, batch: Batch, hashes: Hashes, room: Room) -> None:
        """Do all that was entered."""
        is_new, count = True, 1
        while count:
            count = self._go_on(growing, rules, batch, hashes, room, self._desk, self.number, is_new)
            is_new = False
            self.act()


class GrowingForestPool(Pool[Growing, Answers, Float64s]):
    """Any number of forests of trees that grow, one for each key.

    The trees are those of a few `TreePool`, see parts.py. Each is asked before it learns. ADWIN (trees/policies)
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
        ``osm``, ``imac`` and ``exact``. Candidates of ``imac`` are looked at every `grace_period` examples.
    classes, default, kinds, radius, radius_fraction, names, max_keys
        As of `TreePool`.
    snapshots : Emit
        When `Answers` has the trees of a forest; at a change is nearly always, so that this is not served.
    threads : int
        As of `ForestPool`.
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
        radius: float | None = None,
        radius_fraction: float = 0.5,
        names: bool = False,
        max_keys: int = 1 << 30,
        snapshots: Emit = Emit(),  # noqa: B008  (a constant)
        threads: int = 1,
    ) -> None:
        if policy not in POLICIES:
            raise ValueError(f"expected a policy of {', '.join(POLICIES)} in a forest, got {policy!r}")
        check_chances(warning, drift)
        if snapshots.when == When.CHANGE or snapshots.argument < 1:
            raise ValueError("expected snapshots every n events or ms of event time, 1 at least, or never")
        grace_period = whole("a grace_period", grace_period, 1, 1 << 30)
        self.count = whole("trees", trees, 1, MOST_TREES)
        drawn = draws(self.count, whole("a seed", seed, 0, MOST_SEED), subspace, bagging)
        make = partial(
            TreePool,
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
            radius=radius,
            radius_fraction=radius_fraction,
            names=names,
        )
        self.parts: Parts[TreePool] = Parts(self.count, threads, make, each=2)
        self._classes = classes
        self.rules = Rules(
            draws=drawn,
            classes=classes,
            warning=warning,
            drift=drift,
            max_weight=MAX_TOTAL // drawn.most,
            max_keys=whole("max_keys", max_keys, 1, 1 << 30),
            snapshot_when=int(snapshots.when),
            snapshot_argument=snapshots.argument,
        )
        state = Growing(
            keys=np.zeros((1, KEY_COLUMNS), np.int64),
            places=np.zeros((self.count, PLACE_COLUMNS), np.int64),
            windows=adwin.make(2 * self.count),
            alive=np.zeros(1, np.int64),
            names=NO_NAMES,
        )
        super().__init__(state, names=names, kinds=Schema(default, kinds or {}))
        self.parts.share(self.names, self._schema)
        self._canonical = Canonicaliser(Terms(LARGEST_VALUE))
        self.can_move = all(pool.can_move for pool in self.parts.pools)
        self._apply = direct(kernel.apply)
        self._room = self._made_room(classes)
        self._parts = [_Part(pool, part) for part, pool in enumerate(self.parts.pools)]
        self._have(self._made_desk(classes))

    def _made_room(self, classes: int) -> Room:
        moves = min(_MOVES, max(1, _CELLS // max(self.count, classes)))
        return Room(
            at=np.zeros(5, np.int64),
            event=np.zeros(moves, np.int64),
            following=np.zeros(moves, np.int64),
            times=np.zeros((moves, self.count), np.int8),
            votes=np.zeros((len(self.parts), moves, classes), np.int64),
            table=np.zeros(2 << (moves - 1).bit_length(), np.int64),
            key=np.zeros(moves, np.int64),
            first=np.zeros(moves, np.int64),
            last=np.zeros(moves, np.int64),
            weights=np.zeros(classes),
        )

    def _made_desk(self, classes: int) -> Desk:
        parts = len(self.parts)
        cells = parts * len(self._room.event) * self.parts.size(0)
        told = parts * max(min(_TOLD, _CELLS // classes) // parts, 2 * AT_ONCE)
        return Desk(
            at=np.zeros((parts, 2), np.int64),
            begin=np.zeros(cells, np.int64),
            stop=np.zeros(cells, np.int64),
            gone=np.zeros(cells, np.int8),
            told=Batch(
                key=np.zeros(told, np.int32),
                op=np.zeros(told, np.int8),
                label=np.zeros(told, np.int32),
                weight=np.zeros(told, np.int64),
                time=np.ones(told, np.int64),
                pointer=np.zeros(told + parts, np.int64),
                feature=np.zeros(0, np.uint32),
                value=np.zeros(0),
                kind=np.zeros(0, np.int8),
            ),
            said=Out(
                np.zeros(told, np.int8),
                np.zeros(told, np.int64),
                np.zeros(told, np.int32),
                np.zeros(told),
                np.zeros((told, classes)),
                np.zeros(told, np.int64),
                *scratch(classes),
            ),
        )

    def _have(self, desk: Desk) -> None:
        """Have other arrays for what trees are told and say."""
        self._desk = desk
        for part in self._parts:
            part.have(desk)

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
        self._make_room(int(np.diff(made.pointer).max(initial=0)))
        hashes = hashes_of(self.names, self._state.names, made.feature)
        snapshots: list[Snapshot] = []
        given = self._state, self.rules, batch, hashes, self._room
        for part in self._parts:
            part.splits = 0
            part.pool._cover(n * self.rules.draws.most)
        self._room.at[:] = 0
        self._desk.at[:] = 0
        why = kernel.TREES
        while why != DONE:
            event, why = self._apply(*given, self._desk, told, _APART if n else -1)  # of no events, load all
            if why == kernel.TREES:
                for part in self._parts:
                    if self._desk.at[part.number, PLANNED]:
                        part.act()
            elif why == kernel.APART:
                tasks = [partial(part.go_on, *given) for part in self._parts]
                self.parts.run(tasks if n else tasks[:1])
            elif why == TOLD:
                key = int(keys[event - 1])
                shown = self.trees(key), self._vote_weights(key).tolist()
                snapshots.append(Snapshot(event - 1, int(self._state.keys[key, EVENTS]), *shown))
        np.maximum(told.status, made.status, out=told.status)  # to the kernel, what was refused is `SKIPPED`
        changes = sum(part.splits for part in self._parts) + int(self._desk.at[:, DRIFTED].sum())
        return Answers(told.status, snapshots, changes, told.predicted, told.loss, made.asked, told.votes)

    def _make_room(self, ones: int) -> None:
        """Make room for so many features of an example."""
        told, parts = self._desk.told, len(self.parts)
        if AT_ONCE * ones * parts > len(told.feature):
            more = parts * max(_FEATURES // parts, 2 * AT_ONCE * ones)
            feature, value, kind = np.zeros(more, np.uint32), np.zeros(more), np.zeros(more, np.int8)
            self._have(self._desk._replace(told=told._replace(feature=feature, value=value, kind=kind)))

    def _show_names(self) -> None:
        super()._show_names()
        self.parts.show_names()

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
        self.parts.reserve(keys)

    # --- looking

    def _voters(self, key: int) -> list[int]:
        """Return the numbers of the trees that vote in a key's forest."""
        if not 0 <= key < len(self._heads):
            return []
        places = range(key * self.count, (key + 1) * self.count)
        return [2 * place + int(self._state.places[place, VOTER]) for place in places]

    def tree(self, place: int, key: int = 0) -> Tree:
        """Return the tree that votes in a place, from 0, of a key's forest; it may have learned nothing."""
        voters = self._voters(key)
        return self.parts.tree(voters[place] if voters else -1)

    def trees(self, key: int = 0) -> list[Tree]:
        """Return the trees that vote in a key's forest."""
        return [self.parts.tree(voter) for voter in self._voters(key)]

    def accuracies(self, key: int = 0) -> Float64s:
        """Return float64[T], how often each tree has lately been right, nan where it was not asked yet."""
        places = self._state.places[key * self.count : (key + 1) * self.count]
        at = np.arange(len(places)), places[:, VOTER]
        right, asked = places[at[0], RIGHT + at[1]], places[at[0], ASKED + at[1]]
        accuracies: Float64s = np.where(asked > 0, right * PER_UNIT, np.nan)
        return accuracies

    def _vote_weights(self, key: int) -> Float64s:
        """Return float64[T], how much the vote of each tree weighs."""
        weights: Float64s = np.maximum(np.nan_to_num(self.accuracies(key), nan=1.0), LEAST * PER_UNIT)
        return weights

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
        return self.parts.node_count

    @property
    def slots(self) -> int:
        """How many features leaves keep counts of, over all leaves of all trees."""
        return sum(pool.slots for pool in self.parts.pools)

    @property
    def replacements(self) -> Replacements:
        """How often trees were begun beside others, and took their places, in all forests that there are."""
        warnings, drifts = self._state.places[:, [WARNINGS, DRIFTS]].sum(axis=0).tolist()
        return Replacements(warnings, drifts)

    @property
    def depth(self) -> int:
        """The depth of the deepest tree, 0 where none has split."""
        return self.parts.depth

    # --- packing

    @property
    def held(self) -> tuple[int, int]:
        """Bytes of nodes and features that are in use, and of all that ever were: about."""
        used, ever = zip(*(pool.held for pool in self.parts.pools), strict=True)
        return sum(used), sum(ever)

    def pack(self, keys: Int32s) -> None:
        """Give keys, which rise and are all that are alive, the numbers from 0 on, in arrays for no more.

        Names of features get other numbers, too. O(what is in use and what ever was).
        """
        state, numbers = self._state, numbers_of_keys(keys, len(self._heads))
        self.parts.pack(numbers.kept, self._packed_names())
        heads = numbers.packed(state.keys)
        places = _parts(numbers.kept, self.count), len(heads) * self.count
        windows = _parts(numbers.kept, 2 * self.count), 2 * len(heads) * self.count
        own = state.windows._asdict()
        self._state = state._replace(
            keys=heads,
            places=_moved(state.places, *places),
            windows=state.windows._replace(**{name: _moved(each, *windows) for name, each in own.items()}),
        )
        self._show_names()
        self._apply = direct(kernel.apply)  # the last calls hold on to the arrays that they were given
        for part in self._parts:
            part.let_go()

    def _packed_names(self) -> Numbers | None:
        """Give the names of features other numbers, which are returned."""
        if self.names is None:
            return None
        self.names, numbers = packed_names(self.names)
        self._schema.find(self.names)
        self.parts.share(self.names, self._schema)
        return numbers

    def warm_up(self) -> None:
        """Compile the kernels that no event calls, or load them. No state is changed."""
        self.apply(_NOTHING)
        for pool in self.parts.pools:
            pool.warm_up()

    # --- state

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied); those of the trees begin with ``trees.``."""
        return super().arrays() | self.parts.arrays()

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        super().restore(arrays)
        self.parts.restore(arrays, self.names, self._schema)
        self.parts.reserve(len(self._heads))
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
        alive = self.parts.living()
        owners = state.places[alive // 2]
        assert ((owners[:, VOTER] == alive % 2) | (owners[:, BESIDE] == 1)).all(), "a tree that has no part"
        assert self.are_alive((alive // 2 // self.count).astype(np.int32)).all(), "a tree of a key that is gone"
        assert not self._room.at[MOVES], "a batch is on its way"
        return self.parts.check()


def check_chances(warning: float, drift: float) -> None:
    """Raise ValueError where what detectors are told is no chance."""
    for what, delta in (("warning", warning), ("drift", drift)):
        if not 0.0 < number(f"a {what}", delta, 1.0) < 1.0:
            raise ValueError(f"expected a {what} between 0 and 1, got {delta!r}")


def _parts(keys: Int64s, each: int) -> Int64s:
    """Return the numbers of what keys have so many of."""
    return (keys[:, None] * each + np.arange(each)).ravel()


def _moved(array: A, rows: Int64s, capacity: int) -> A:
    """Return an array that begins with some rows of another."""
    made = np.zeros((capacity, *array.shape[1:]), array.dtype)
    made[: len(rows)] = array[rows]
    return made  # type: ignore[return-value]  # same dtype and rank
