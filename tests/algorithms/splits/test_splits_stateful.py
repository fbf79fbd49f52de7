"""One state machine feeds every kind of pool and the oracle the same events and compares all answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate, Op
from tests.oracles.naive import KINDS, REFERENCES, Event, Feature, Mix, Pair, Settings, Stream, ids, words
from tests.support.examples import budget

TENTHS = [round(k / 10 * UNIT) for k in range(1, 11)]  # odd numbers of units among them
WEIGHTS = st.one_of(st.just(UNIT), st.sampled_from([UNIT // 2, 2 * UNIT, 3 * UNIT, *TENTHS, 1, 3]))
EMITS = st.one_of(
    st.just(Emit(When.CHANGE)),
    st.just(Emit()),
    st.builds(Emit, st.just(When.EVERY), st.integers(1, 4)),
    st.builds(Emit, st.just(When.EVERY_MS), st.integers(1, 9)),
)
FEW = 6  # features of the hand-drawn events: collisions and ties are frequent
MANY = 260  # features of the random streams: far beyond what the exact finder merely scans
INDEXES = 3


class Splits(RuleBasedStateMachine):
    """Events are collected, then applied as one batch."""

    kind = KINDS[0]

    @initialize(
        window=st.sampled_from([None, None, 1, 4, 40]),
        verify_deletes=st.booleans(),
        on_duplicate=st.sampled_from(OnDuplicate),
        names=st.booleans(),
        splits=EMITS,
        trees=EMITS,
        max_keys=st.sampled_from([2, 1 << 30]),
        max_live_ids=st.sampled_from([3, 1 << 30]),
    )
    def begin(self, names: bool, **rest: Any) -> None:
        """Make an empty pool and its oracle."""
        finder, criterion = self.kind
        self.pair = Pair(Settings(finder=finder, criterion=criterion, names=names, **rest))
        self.features: tuple[Feature, ...] = words(MANY) if names else ids(MANY)
        self.pending: list[Event] = []
        # An example with an id must be deleted by it. Where no example store vouches, a delete by value can
        # take such an example away, and what the id then stands for is undefined.
        self.with_ids = self.pair.twin.tracked or not names
        self.time = 1

    @rule(
        features=st.lists(st.integers(0, FEW - 1), max_size=FEW, unique=True),
        label=st.integers(0, 1),
        weight=WEIGHTS,
        id=st.one_of(st.none(), st.integers(0, 5)),
        key=st.integers(0, INDEXES - 1),
        later=st.integers(-2, 5),
        op=st.sampled_from([Op.INSERT, Op.INSERT, Op.INSERT, Op.DELETE, Op.PREDICT]),
        mirrored=st.booleans(),
    )
    def event(self, features: list[int], id: int | None, op: Op, mirrored: bool, later: int, **rest: Any) -> None:
        """Draw an event; mirrored, its reflection in label and features follows it."""
        self.time = max(1, self.time + later)
        event = Event(op, self._named(features), id=id if self.with_ids else None, time=self.time, **rest)
        self.pending.append(event)
        if mirrored and op == Op.INSERT:
            reflected = self._named([FEW - 1 - feature for feature in features])
            self.pending.append(replace(event, features=reflected, label=1 - event.label, id=None))

    @rule(choice=st.integers(0, 1 << 16), key=st.integers(0, INDEXES - 1), twice=st.booleans())
    def delete_a_live_one(self, choice: int, key: int, twice: bool) -> None:
        """Delete what is live, also twice."""
        self.apply()
        state = self.pair.twin.indexes.get(key)
        if state is None or not state.live:
            return
        example = state.live[choice % len(state.live)]
        event = replace(example, op=Op.DELETE, time=self.time)
        if example.id is not None:
            event = replace(event, features=(), weight=UNIT)
        self.pending.extend([event] * (2 if twice else 1))

    @rule(choice=st.integers(0, 1 << 16), key=st.integers(0, INDEXES - 1))
    def delete_a_dropped_one(self, choice: int, key: int) -> None:
        """Delete an id that the window has let go."""
        self.apply()
        state = self.pair.twin.indexes.get(key)
        if state is not None and state.dropped:
            self.pending.append(Event(Op.DELETE, id=state.dropped[choice % len(state.dropped)], key=key))

    @rule(key=st.integers(0, INDEXES - 1))
    def drop(self, key: int) -> None:
        """Forget a key."""
        self.pending.append(Event(Op.DROP, key=key))

    @rule(seed=st.integers(0, 1 << 16), length=st.integers(20, 150), deletes=st.sampled_from([0.1, 0.5]))
    def flood(self, seed: int, length: int, deletes: float) -> None:
        """Take a random stream over many features, then perhaps all of it back."""
        stream = Stream(seed)
        mix = Mix(self.features, deletes=deletes, indexes=2, weights=(UNIT, UNIT, TENTHS[seed % 10]), longest=15)
        self.pending.extend(stream.take(length, mix))
        if seed % 2:
            self.pending.extend(stream.drain())

    @rule()
    def apply(self) -> None:
        """Apply what was collected: all answers must agree, and all invariants hold."""
        self.pair.feed(self.pending)
        self.pair.check()
        self.pending = []

    @rule()
    def restore(self) -> None:
        """Go on from a copy of the state."""
        self.apply()
        self.pair.restored()

    def teardown(self) -> None:
        """Apply the rest."""
        if hasattr(self, "pair"):
            self.apply()

    def _named(self, features: list[int]) -> tuple[Feature, ...]:
        return tuple(self.features[feature] for feature in features)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_any_history_of_events_leads_to_what_the_oracle_says(kind: tuple[str, str]) -> None:
    """Whatever is inserted, deleted, dropped, predicted and restored, pool and oracle agree to the bit."""
    machine = type("Machine", (Splits,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=budget(20 if kind[0] in REFERENCES else 75),  # the references are slow
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
