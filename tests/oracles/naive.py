"""The oracle of the split models: the same behaviour from dictionaries and lists, in the plainest words.

`NaiveSplits` is written from what `SplitPool` promises, not from how it works. It shares one thing with
it: the scalar `criteria.score`, because ties are decided on floats. `Pair` feeds both and compares.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import CRITERIA, UNIT, make_criterion, score
from algorithms.core.events import Events, OnDuplicate, Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.splits.finders import FINDERS
from algorithms.splits.kernel import SPLIT_DUE, TREE_DUE
from algorithms.splits.pool import SplitPool
from algorithms.splits.reference import UpdEnt, UpdGini

Feature: TypeAlias = int | bytes
Features: TypeAlias = tuple[Feature, ...]
Change: TypeAlias = tuple[Features, int, int]  # features, label, units

# Every finder with every criterion that it serves.
KINDS = [(name, each) for name, made in FINDERS.items() for each in CRITERIA if made.criterion in (None, each)]
ON_CHANGE, NEVER = Emit(When.CHANGE), Emit()


@dataclass(frozen=True)
class Settings:
    """The parameters of `SplitPool`, with the same meaning and defaults."""

    finder: str = "exact"
    criterion: str = "entropy"
    window: int | None = None
    verify_deletes: bool = False
    on_duplicate: OnDuplicate = OnDuplicate.REJECT
    names: bool = False
    alpha: float = 0.1
    splits: Emit = ON_CHANGE
    trees: Emit = NEVER
    max_keys: int = 1 << 30
    max_live_ids: int = 1 << 30

    def pool(self) -> SplitPool:
        """Return a new pool with these settings."""
        return SplitPool(**vars(self))


@dataclass(frozen=True)
class Event:
    """One event; the weight is in units of 2^-20."""

    op: Op
    features: Features = ()
    label: int = 0
    weight: int = UNIT
    id: int | None = None
    key: int = 0
    time: int = 1


@dataclass(frozen=True)
class Decision:
    """What was due after an event; the scores as hexadecimal text, so that equal means equal to the bit."""

    due: int
    feature: Feature | None
    runner_up: Feature | None
    totals: tuple[int, int]
    present: tuple[int, int]
    score: str
    runner_up_score: str
    impurity: str
    events: int


@dataclass(frozen=True)
class Prediction:
    """The leaf that an example falls into: 0 no split yet, 1 feature absent, 2 feature present."""

    leaf: int
    weights: tuple[int, int]


@dataclass(frozen=True)
class Outcome:
    """All that an event led to."""

    status: Status
    decision: Decision | None = None
    prediction: Prediction | None = None


@dataclass(frozen=True)
class Best:
    """The best split and the second best of a node."""

    feature: Feature | None
    runner_up: Feature | None
    present: tuple[int, int]
    score: float
    runner_up_score: float
    impurity: float


@dataclass
class _Index:
    totals: list[int] = field(default_factory=lambda: [0, 0])
    counts: dict[Feature, list[int]] = field(default_factory=dict)
    live: list[Event] = field(default_factory=list)  # the inserts that can be told apart, oldest first
    dropped: list[int] = field(default_factory=list)  # ids that the window dropped, oldest first
    events: int = 0
    last: Feature | None = None
    periods: dict[str, int] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)  # that the reference has not been told of
    reference: UpdEnt | UpdGini | None = None

    def add(self, example: Event, sign: int) -> None:
        self.changes.append((example.features, example.label, sign * example.weight))
        self.totals[example.label] += sign * example.weight
        for feature in example.features:
            self.counts.setdefault(feature, [0, 0])[example.label] += sign * example.weight
            if self.counts[feature] == [0, 0]:
                del self.counts[feature]

    def could_hold(self, example: Event) -> bool:
        """Return whether the counts allow that the example is among those counted."""
        n = list(self.totals)
        n[example.label] -= example.weight
        for feature in example.features:
            if self.counts.get(feature, [0, 0])[example.label] < example.weight:
                return False
        for feature, counts in self.counts.items():
            left = list(counts)
            left[example.label] -= example.weight if feature in example.features else 0
            if left[0] > n[0] or left[1] > n[1]:
                return False
        return n[example.label] >= 0

    def named(self, id: int | None) -> Event | None:
        return next((example for example in self.live if example.id == id), None)


class NaiveSplits:
    """Split models in dictionaries and lists."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.indexes: dict[int, _Index] = {}
        self.tracked = settings.verify_deletes or settings.window is not None
        self._criterion = make_criterion(settings.criterion, 1024)
        self._scores: dict[tuple[int, int, int, int], float] = {}

    def apply(self, event: Event) -> Outcome:
        """Apply one event."""
        if event.op == Op.DROP:
            self.indexes.pop(event.key, None)
            return Outcome(Status.APPLIED)
        if event.op == Op.PREDICT:
            return Outcome(Status.APPLIED, prediction=self._predict(event))
        status = self._insert(event) if event.op == Op.INSERT else self._delete(event)
        if status != Status.APPLIED:
            return Outcome(status)
        self.indexes[event.key].events += 1
        return Outcome(status, decision=self._decide(event))

    def best(self, key: int) -> Best:
        """Return the best split and the second best of a key."""
        impurity = self._score(0, 0, *self.indexes.get(key, _Index()).totals)
        none = (impurity, None, (0, 0))
        first, second, *_ = [*self._ranked(key), none, none]
        return Best(first[1], second[1], first[2], first[0], second[0], impurity)

    def top(self, key: int, k: int) -> list[tuple[Feature, str, tuple[int, int]]]:
        """Return the k best features, with their scores as hexadecimal text and their counts."""
        return [(feature, value.hex(), present) for value, feature, present in self._ranked(key)[:k]]

    def within(self, key: int, alpha: float) -> list[Feature]:
        """Return the features whose score is at most (1 + alpha) times the best."""
        ranked = self._ranked(key)
        return [feature for value, feature, _ in ranked if value <= (1.0 + alpha) * ranked[0][0]]

    def _ranked(self, key: int) -> list[tuple[float, Any, tuple[int, int]]]:
        state = self.indexes.get(key, _Index())
        n0, n1 = state.totals
        return sorted(
            (self._score(a, b, n0, n1), feature, (a, b))
            for feature, (a, b) in state.counts.items()
            if n0 > 0 and n1 > 0 and a + b < n0 + n1  # else there is nothing to part
        )

    def live_ids(self) -> int:
        """Return how many named examples are live."""
        return sum(example.id is not None for state in self.indexes.values() for example in state.live)

    def _score(self, a: int, b: int, n0: int, n1: int) -> float:
        point = (a, b, n0, n1)
        if point not in self._scores:
            self._scores[point] = float(score(self._criterion, *point))
        return self._scores[point]

    def _insert(self, event: Event) -> Status:
        state = self.indexes.get(event.key)
        if state is None and len(self.indexes) >= self.settings.max_keys:
            return Status.TOO_MANY_KEYS
        state = state or _Index()
        if sum(state.totals) + event.weight >= MAX_TOTAL:
            return Status.COUNT_OVERFLOW
        if event.id is not None:
            old = state.named(event.id)
            if old is not None:
                if self.settings.on_duplicate == OnDuplicate.IGNORE:
                    return Status.IGNORED
                if self.settings.on_duplicate == OnDuplicate.REJECT:
                    return Status.DUPLICATE_ID
                if not self.tracked and not state.could_hold(old):
                    return Status.ABSENT_EXAMPLE
                self._forget(state, old)
            elif self.live_ids() >= self.settings.max_live_ids:
                return Status.TOO_MANY_LIVE_IDS
            if event.id in state.dropped:
                state.dropped.remove(event.id)
        self.indexes[event.key] = state
        state.add(event, 1)
        if event.id is not None or self.tracked:
            state.live.append(event)
        if self.settings.window is not None and len(state.live) > self.settings.window:
            oldest = state.live[0]
            self._forget(state, oldest)
            if oldest.id is not None:
                state.dropped = [*state.dropped, oldest.id][-self.settings.window :]
        return Status.APPLIED

    def _forget(self, state: _Index, example: Event) -> None:
        state.add(example, -1)
        newest_first = range(len(state.live) - 1, -1, -1)
        del state.live[next(at for at in newest_first if state.live[at] is example)]

    def _delete(self, event: Event) -> Status:
        state = self.indexes.get(event.key, _Index())
        if event.id is not None:
            example = state.named(event.id)
            if example is None:
                return Status.ALREADY_DROPPED if event.id in state.dropped else Status.ABSENT_ID
            if not self.tracked and not state.could_hold(example):
                return Status.ABSENT_EXAMPLE
            self._forget(state, example)
            return Status.APPLIED
        if not self.tracked:
            if not state.could_hold(event):
                return Status.ABSENT_EXAMPLE
            state.add(event, -1)
            return Status.APPLIED
        for example in reversed(state.live):  # of equal ones the newest goes
            if example.id is None and _content(example) == _content(event):
                self._forget(state, example)
                return Status.APPLIED
        return Status.ABSENT_EXAMPLE

    def _predict(self, event: Event) -> Prediction:
        best = self.best(event.key)
        n0, n1 = self.indexes.get(event.key, _Index()).totals
        a, b = best.present
        if best.feature is None:
            return Prediction(0, (n0, n1))
        if best.feature in event.features:
            return Prediction(2, (a, b))
        return Prediction(1, (n0 - a, n1 - b))

    def _decide(self, event: Event) -> Decision | None:
        state = self.indexes[event.key]
        best = self.best(event.key)
        changed = best.feature != state.last
        state.last = best.feature
        due = 0
        for bit, emit in ((SPLIT_DUE, self.settings.splits), (TREE_DUE, self.settings.trees)):
            if emit.when == When.CHANGE and changed:
                due |= bit
            if emit.when == When.EVERY and state.events % emit.argument == 0:
                due |= bit
            if emit.when == When.EVERY_MS:
                period = event.time // emit.argument
                before = state.periods.get(str(bit), period)
                due |= bit if period > before else 0
                state.periods[str(bit)] = max(before, period)
        if not due:
            return None
        return Decision(
            due,
            best.feature,
            best.runner_up,
            (state.totals[0], state.totals[1]),
            best.present,
            best.score.hex(),
            best.runner_up_score.hex(),
            best.impurity.hex(),
            state.events,
        )


REFERENCES: dict[str, type[UpdEnt] | type[UpdGini]] = {"updent": UpdEnt, "updgini": UpdGini}


class ReferenceSplits(NaiveSplits):
    """The same, but what is best is for the reference of an approximate finder to say."""

    def best(self, key: int) -> Best:
        """Return what the reference says after the events so far."""
        state = self.indexes.get(key, _Index())
        reference = state.reference or REFERENCES[self.settings.finder](self.settings.alpha)
        state.reference = reference
        if state.changes:
            reference.process(state.changes)
            state.changes = []
        split = reference.best()
        impurity = self._score(0, 0, *state.totals)
        return Best(split.feature, split.runner_up, split.present, split.score, split.runner_up_score, impurity)


def _content(example: Event) -> tuple[frozenset[Feature], int, int]:
    return frozenset(example.features), example.label, example.weight


def batch_of(events: Sequence[Event], pool: SplitPool) -> Events:
    """Return the events in columns; names are interned in the pool."""
    lengths = [len(event.features) for event in events]
    flat = [feature for event in events for feature in event.features]
    ids = [-1 if event.id is None else event.id for event in events]
    named = np.array([event.id is not None for event in events], np.int8)
    return Events.of(
        np.array([event.op for event in events], np.int8),
        np.array([event.label for event in events], np.int32),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        np.array([_number(feature, pool) for feature in flat], np.uint32),
        key=np.array([event.key for event in events], np.int32),
        weight=np.array([event.weight for event in events], np.int64),
        time=np.array([event.time for event in events], np.int64),
        named=named,
        id_high=np.array([id * 7919 if id >= 0 else 0 for id in ids], np.int64),
        id_low=np.array([id if id >= 0 else 0 for id in ids], np.int64),
    )


def _number(feature: Feature, pool: SplitPool) -> int:
    if isinstance(feature, int):
        return feature
    assert pool.names is not None
    return pool.names.intern(feature)


def outcomes(pool: SplitPool, events: Sequence[Event]) -> list[Outcome]:
    """Apply events to a pool as one batch and return what each led to, in the oracle's words."""
    batch = batch_of(events, pool)
    answer = pool.apply(batch)
    decisions: dict[int, Decision] = {}
    for at, event in enumerate(answer.event.tolist()):
        decisions[event] = Decision(
            int(answer.due[at]),
            _named(answer.feature[at], pool),
            _named(answer.runner_up[at], pool),
            (int(answer.totals[at, 0]), int(answer.totals[at, 1])),
            (int(answer.present[at, 0]), int(answer.present[at, 1])),
            float(answer.score[at]).hex(),
            float(answer.runner_up_score[at]).hex(),
            float(answer.impurity[at]).hex(),
            int(answer.events[at]),
        )
    predictions = {
        event: Prediction(int(leaf), (int(weights[0]), int(weights[1])))
        for event, leaf, weights in zip(answer.asked, answer.leaf, answer.weights, strict=True)
    }
    pool.sweep(batch.feature)
    return [
        Outcome(Status(status), decisions.get(at), predictions.get(at))
        for at, status in enumerate(answer.status.tolist())
    ]


def _named(number: Any, pool: SplitPool) -> Feature | None:
    if number == -1:
        return None
    return int(number) if pool.names is None else pool.names.name(int(number))


class Pair:
    """A differential harness: a pool beside its oracle, compared after every batch."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.pool = settings.pool()
        self.twin = (ReferenceSplits if settings.finder in REFERENCES else NaiveSplits)(settings)

    def feed(self, events: Iterable[Event]) -> list[Outcome]:
        """Apply events as one batch; raise AssertionError where pool and oracle differ."""
        events = list(events)
        return self.compare(events, [self.twin.apply(event) for event in events])

    def compare(self, events: Sequence[Event], expected: list[Outcome]) -> list[Outcome]:
        """Apply to the pool what the oracle has applied already."""
        got = outcomes(self.pool, events)
        for at, event in enumerate(events):
            assert got[at] == expected[at], f"event {at}: {event}"
        for key in sorted({event.key for event in events}):
            self.compare_best(key)
        return got

    def compare_best(self, key: int) -> None:
        """Compare the best split and the totals of a key."""
        twin = self.twin.best(key)
        split = self.pool.best(key)
        state = self.twin.indexes.get(key, _Index())
        assert (split.feature, split.runner_up) == (twin.feature, twin.runner_up)
        assert (split.totals, split.present) == (tuple(state.totals), twin.present)
        assert split.score.hex() == twin.score.hex()
        assert split.runner_up_score.hex() == twin.runner_up_score.hex()
        assert [(row.feature, row.score.hex(), row.present) for row in self.pool.top(key, 9)] == self.twin.top(
            key, 9
        )
        assert self.pool.within(key, 0.125) == self.twin.within(key, 0.125)
        assert self.pool.features(key) == len(state.counts)
        assert self.pool.are_alive(np.array([key], np.int32)).tolist() == [key in self.twin.indexes]

    def check(self) -> None:
        """Raise AssertionError unless the pool's invariants hold and its sizes are the oracle's."""
        self.pool.check()
        states = self.twin.indexes.values()
        assert self.pool.alive == len(states)
        assert self.pool.slots == sum(len(state.counts) for state in states)
        assert self.pool.live_examples == sum(len(state.live) for state in states)
        for state in states:
            if state.reference is not None:
                state.reference.check()
        if self.twin.tracked:
            for state in states:
                again = _Index()
                for example in state.live:
                    again.add(example, 1)
                assert (again.totals, again.counts) == (state.totals, state.counts)

    def restored(self) -> None:
        """Go on with a copy of the pool's state in a new pool."""
        arrays = {name: array.copy() for name, array in self.pool.arrays().items()}
        self.pool = self.settings.pool().restore(arrays)


@dataclass(frozen=True)
class Mix:
    """What a random stream is made of; shares of all events, the rest are inserts."""

    universe: tuple[Feature, ...]  # from frequent to rare
    deletes: float = 0.3  # of examples that were inserted before
    false_deletes: float = 0.03
    predicts: float = 0.03
    drops: float = 0.0
    ids: float = 0.0  # share of the inserts
    weights: tuple[int, ...] = (UNIT,)
    indexes: int = 1
    longest: int = 8  # features of an example


class Stream:
    """Random events: frequent and rare features, mirrored between the labels so that scores tie often."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._inserted: list[Event] = []
        self._ids = 0
        self._time = 1

    def take(self, events: int, mix: Mix) -> list[Event]:
        """Return the next events."""
        return [self._next(mix) for _ in range(events)]

    def drain(self) -> list[Event]:
        """Return the deletes of all that is left, in random order."""
        self._rng.shuffle(self._inserted)
        gone = [self._undo(example) for example in self._inserted]
        self._inserted = []
        return gone

    def batches(self, events: Sequence[Event], longest: int = 60) -> list[list[Event]]:
        """Return the events cut into batches of random lengths."""
        cut, start = [], 0
        while start < len(events):
            size = self._rng.randint(1, longest)
            cut.append(list(events[start : start + size]))
            start += size
        return cut

    def _undo(self, example: Event) -> Event:
        self._time += self._rng.randint(0, 3)
        if example.id is not None:
            return Event(Op.DELETE, id=example.id, key=example.key, time=self._time)
        return replace(example, op=Op.DELETE, time=self._time)

    def _next(self, mix: Mix) -> Event:
        rng = self._rng
        self._time += rng.randint(-1, 4)
        self._time = max(1, self._time)
        kind = rng.random()
        if kind < mix.deletes:
            if self._inserted:
                at = rng.randrange(len(self._inserted))
                self._inserted[at], self._inserted[-1] = self._inserted[-1], self._inserted[at]
                return self._undo(self._inserted.pop())
            kind = 1.0
        example = self._example(mix)
        for share, op in (
            (mix.false_deletes, Op.DELETE),
            (mix.predicts, Op.PREDICT),
            (mix.drops, Op.DROP),
        ):
            if mix.deletes <= kind < mix.deletes + share:
                return replace(example, op=op)
            kind -= share
        if rng.random() < mix.ids:
            # Now and then an id that is live already, or was.
            self._ids += rng.random() < 0.9
            example = replace(example, id=self._ids)
        self._inserted.append(example)
        return example

    def _example(self, mix: Mix) -> Event:
        rng = self._rng
        label = rng.randrange(2)
        size = len(mix.universe)
        features = set()
        for _ in range(rng.randint(0, mix.longest)):
            rank = int(size ** rng.random()) - 1
            # Neighbours in rank favour opposite labels.
            features.add(mix.universe[min(rank ^ label, size - 1) if rng.random() < 0.8 else rank])
        shuffled = sorted(features, key=str)
        rng.shuffle(shuffled)
        key = rng.randrange(mix.indexes)
        return Event(Op.INSERT, tuple(shuffled), label, rng.choice(mix.weights), key=key, time=self._time)


def ids(count: int) -> tuple[int, ...]:
    """Return feature ids, the extremes among them."""
    return (0, 4294967295, *(7 * k + 1 for k in range(count - 2)))


def words(count: int) -> tuple[bytes, ...]:
    """Return feature names: prefixes of each other, high bytes, zeros, and their order is not the ranks'."""
    odd = [b"a", b"", b"aa", b"\xff", b"\x00", b"a\x00", b"\x7f", b"\x80"]
    return (*odd, *(b"%x" % (k * 2654435761 % 65521) for k in range(1, count - len(odd) + 1)))[:count]
