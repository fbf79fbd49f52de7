"""Rebuilds that are spread over events, against the oracle in naive_parts.py."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate, Op
from algorithms.core.jit import IS_OFF
from algorithms.core.kinds import Kind
from algorithms.dynamic import aside, values
from algorithms.dynamic.aside import FREEING, GATHERING, IDLE, NEXT, NODE, OLD, PARTING, SCANNING, STAGE, WIPING
from algorithms.dynamic.pool import DynamicPool
from tests.algorithms.dynamic.test_dynamic import Mix, Stream, insert, of, steps
from tests.oracles.naive import words
from tests.oracles.naive_dynamic import Event, Settings, outcomes, rows_of
from tests.oracles.naive_parts import PairInParts
from tests.support.examples import budget

MIXES = {
    "binary": Mix(dict.fromkeys(range(9), Kind.BINARY)),
    "classes": Mix(dict.fromkeys(range(7), Kind.BINARY), classes=3, weights=(UNIT, UNIT // 3, 4 * UNIT), ids=True),
    "keys": Mix(dict.fromkeys(range(8), Kind.BINARY), indexes=3, deletes=0.2),
    "up and down": Mix(dict.fromkeys(range(12), Kind.BINARY), deletes=0.5, dense=0.3),
    "numeric": Mix(dict.fromkeys(range(5), Kind.NUMERIC), ids=True),
    "mixed": Mix(
        {f: Kind.NUMERIC if f % 2 else Kind.BINARY for f in range(7)},
        classes=3,
        weights=(UNIT, UNIT // 3, 4 * UNIT),
        deletes=0.4,
    ),
}


def stage(pool: DynamicPool, key: int = 0) -> int:
    """Return the stage of a tree."""
    return int(pool._state.aside.heads[key, STAGE])


@pytest.mark.parametrize("max_work", [1, 30, 90, 1000])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("name", MIXES)
def test_long_streams_agree_with_the_oracle(name: str, epsilon: float, max_work: int) -> None:
    """Trees, s(v), c(v), statuses and guesses are the oracle's after every event, restored or not."""
    pair = PairInParts(of(MIXES[name], epsilon=epsilon, window=60 if name == "keys" else None, max_work=max_work))
    stream = Stream(3, MIXES[name])
    for size in (steps(200), steps(100), steps(100)):
        pair.feed(stream.take(size))
        pair.check()
        pair.restored()
    assert pair.twin.handed_over > 0 or max_work != 30  # with 1000 all fits into an event


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_invariants_hold_in_every_stage(criterion: str) -> None:
    """Lists, counts and class weights are right after every event, whatever it finds under way."""
    pair = PairInParts(of(MIXES["binary"], epsilon=0.1, max_work=10, criterion=criterion, max_depth=5, alpha=0.05))
    stream, seen = Stream(8, MIXES["binary"]), set()
    for event in stream.take(500):
        pair.feed([event])
        pair.check()
        seen.add(stage(pair.pool))
    assert seen == {IDLE, GATHERING, NEXT, SCANNING, WIPING, PARTING, FREEING}


@settings(
    max_examples=budget(150),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_any_history_leads_to_what_the_oracle_says(data: st.DataObject) -> None:
    """Whatever is inserted, deleted, predicted, dropped and restored, pool and oracle agree to the bit."""
    features: list[Any] = [0, 2, 3, 5, 4294967295]
    pair = PairInParts(
        Settings(
            epsilon=data.draw(st.sampled_from([0.0, 0.1, 0.5])),
            alpha=data.draw(st.sampled_from([0.0, 0.4])),
            min_examples=data.draw(st.sampled_from([1, 3])),
            max_depth=data.draw(st.sampled_from([0, 2, 1 << 30])),
            criterion=data.draw(st.sampled_from(["gini", "entropy"])),
            classes=data.draw(st.integers(2, 3)),
            window=data.draw(st.sampled_from([None, None, 1, 9])),
            on_duplicate=data.draw(st.sampled_from(OnDuplicate)),
            evaluate=data.draw(st.booleans()),
            max_work=data.draw(st.sampled_from([1, 3, 10, 40])),
            snapshots=data.draw(st.sampled_from([Emit(), Emit(When.CHANGE), Emit(When.EVERY, 3)])),
            kinds=dict.fromkeys(data.draw(st.sets(st.sampled_from(features))), Kind.NUMERIC),
        )
    )
    event = st.builds(
        Event,
        st.sampled_from([Op.INSERT] * 9 + [Op.DELETE] * 4 + [Op.PREDICT, Op.DROP]),
        st.fixed_dictionaries(
            {}, optional=dict.fromkeys(features, st.sampled_from([0.0, 1.0, -2.5, 3.25, 1e-300]))
        ),
        st.integers(0, 1),
        st.sampled_from([UNIT] * 5 + [1, 5 * UNIT]),
        st.sampled_from([None, None, 1, 2, 3]),
        st.integers(0, 1) if data.draw(st.booleans()) else st.just(0),
    )
    for _ in range(data.draw(st.integers(1, 3))):
        pair.feed(data.draw(st.lists(event, max_size=60)))
        pair.check()
        pair.restored()


def _arrays(pool: DynamicPool) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in pool.arrays().items()}


def test_batches_of_any_size_give_the_same_bytes() -> None:
    """Batches of 1, 7 and 1000, restored between them or not, give the same answers and the same arrays."""
    for name, mix in MIXES.items():
        events = Stream(2, mix).take(steps(300))
        settings_ = of(mix, epsilon=0.15, window=80 if name == "binary" else None, max_work=25)
        seen = []
        for size, is_restored in ((1, False), (7, True), (1000, False)):
            pool, got = settings_.pool(), []
            for at in range(0, len(events), size):
                got += outcomes(pool, events[at : at + size])
                if is_restored:
                    pool = settings_.pool().restore({name: each.copy() for name, each in pool.arrays().items()})
            seen.append((got, _arrays(pool)))
        assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("kind", [Kind.BINARY, Kind.NUMERIC])
def test_the_numbers_of_names_do_not_count(kind: Kind) -> None:
    """What an event does is the same whatever numbers names have: these follow from batches and restarts."""
    rng = random.Random(7)
    known = words(24)
    events: list[Event] = []
    made: list[int] = []
    for number in range(500):
        if made and rng.random() < 0.4:
            events.append(Event(Op.DELETE, {}, id=made.pop(rng.randrange(len(made)))))
            continue
        made.append(number)
        x = [name for name in known if rng.random() < 0.3]
        label = int((known[0] in x) != (known[1] in x)) if rng.random() < 0.8 else rng.randrange(2)
        says: dict[Any, float] = {name: rng.choice([-1.0, 1.0, 2.0]) for name in x}
        events.append(Event(Op.INSERT, says, label, id=number))
    seen = []
    for names in (known, known[::-1]):
        pool = Settings(epsilon=0.1, names=True, max_work=25, default=kind).pool()
        assert pool.names is not None
        pool.names.intern_all(names)
        got = []
        for event in events:
            got += outcomes(pool, [event])
            got.append(pool._state.aside.heads[0, [STAGE, OLD, NODE]].tolist())
        seen.append(got)
    assert seen[0] == seen[1]


def _planted(n: int, d: int, seed: int = 5) -> list[Event]:
    """Return inserts of examples whose label is that of two features, with noise."""
    rng = random.Random(seed)
    events = []
    for number in range(n):
        x = [feature for feature in range(d) if rng.random() < 0.3]
        label = int((0 in x) != (1 in x)) if rng.random() < 0.9 else rng.randrange(2)
        events.append(insert(*x, label=label, id=number))
    return events


def _of_numbers(n: int, kinds: str, seed: int = 5) -> list[Event]:
    """Return inserts of examples with numbers: some many, some few, of one sign or both, with zeros or without."""
    rng = random.Random(seed)
    events = []
    for number in range(n):
        label = rng.randrange(3)
        x: dict[Any, float] = {}
        for feature, kind in enumerate(kinds):
            says = rng.gauss(label if feature % 2 else 0, 2.0)
            if kind == "r" or (kind == "s" and rng.random() < 0.5):  # real numbers, half of them missing
                x[feature] = says
            elif kind == "p":
                x[feature] = abs(says) + 0.5
            elif kind == "i":
                x[feature] = float(round(3 * says))
            elif kind == "b" and says > 0.7:
                x[feature] = 1.0
        events.append(Event(Op.INSERT, x, label, id=number))
    return events


NUMBERS: dict[Any, Kind] = {feature: Kind.NUMERIC for feature, kind in enumerate("rspib") if kind != "b"}


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("kinds", ["", "rspib", "s", "ii"])
def test_a_tree_that_rests_is_the_one_that_is_built_at_once(kinds: str, criterion: str) -> None:
    """Where each event leaves the same examples live, the new tree is the one that BUILD makes of them."""
    events = _of_numbers(700, kinds) if kinds else _planted(200, 10)
    settings_ = Settings(epsilon=1e9, on_duplicate=OnDuplicate.REPLACE, criterion=criterion, max_work=400)
    settings_ = replace(settings_, classes=3, kinds=NUMBERS) if kinds else replace(settings_, max_work=40)
    at_once, pool = replace(settings_, max_work=None).pool(), settings_.pool()
    outcomes(at_once, events)
    outcomes(pool, events)
    always = replace(settings_, epsilon=0.0)
    at_once = replace(always, max_work=None).pool().restore(at_once.arrays())
    pool = always.pool().restore(pool.arrays())
    outcomes(at_once, events[-1:])
    built = 0
    while built < (1 if kinds else 3):
        before = stage(pool)
        outcomes(pool, events[-1:])  # the same example once more
        built += before not in (IDLE, FREEING) and stage(pool) in (IDLE, FREEING)
    shapes = [[row[2:] for row in rows_of(each.tree())] for each in (at_once, pool)]
    assert len(shapes[0]) > 30
    assert shapes[0] == shapes[1]
    pool.check()


def test_the_old_subtree_answers_until_the_new_one_is_whole() -> None:
    """While all of a tree is built anew it stays as it is, but for its class weights, and then changes at once."""
    pool = Settings(epsilon=0.5, max_work=64).pool()
    events = _planted(600, 10)
    before, lasted = None, 0
    for event in events:
        outcomes(pool, [event])
        is_whole = pool._state.aside.heads[0, OLD] == pool._root(0) and stage(pool) not in (IDLE, FREEING)
        now = [row[:7] for row in rows_of(pool.tree())] if is_whole else None
        if now is not None and before is not None:
            assert now == before
            lasted += 1
        elif before is not None:
            assert [row[:7] for row in rows_of(pool.tree())] != before
        before = now
    assert lasted > 50


@pytest.mark.parametrize("max_work", [40, 160])
def test_an_event_does_no_more_than_it_may(max_work: int) -> None:
    """However many examples are live, an event moves at most so many of them from list to list."""
    pool = Settings(epsilon=0.3, max_work=max_work).pool()
    most = 0
    for event in _planted(1200, 6):
        before = pool._state.chain.copy()
        outcomes(pool, [event])
        changed = np.count_nonzero((pool._state.chain[: len(before)] != before).any(axis=1))
        most = max(most, int(changed))
    assert 10 < most <= 3 * max_work


def test_few_examples_with_many_features_find_room() -> None:
    """What counts is how many features examples have: room is made for these, however few examples there are."""
    pair = PairInParts(Settings(epsilon=0.2, max_work=200))
    rng = random.Random(2)
    events = [insert(*rng.sample(range(300), 40), label=rng.randrange(2)) for _ in range(30)]
    pair.feed(events)
    pair.check()
    assert pair.twin.handed_over > 0


def test_what_is_forgotten_meanwhile_is_in_no_array() -> None:
    """A feature, its name and an id that go while a subtree is built aside leave nothing behind."""
    name, number = b"a diagnosis that nobody else has", 4_000_000_007
    for names in (False, True):
        feature: Any = name if names else number
        others: list[Any] = [*words(10)] if names else [*range(10)]
        for wait in range(0, 120, 5):
            pool = Settings(epsilon=0.3, max_work=24, names=names).pool()
            rng = random.Random(4)
            made = [insert(*rng.sample(others, 3), label=rng.randrange(2)) for _ in range(200)]
            outcomes(pool, [*made[:100], insert(feature, others[0], label=1, id=7), *made[100 : 100 + wait]])
            outcomes(pool, [Event(Op.DELETE, {}, id=7)])
            pool.check()
            split_on = {feature_ for feature_ in pool.tree().feature if feature_ is not None}
            for array in pool.arrays().values():
                if names:
                    assert feature in split_on or name not in array.tobytes()
                elif array.dtype == np.int64 and feature not in split_on and stage(pool) in (SCANNING, WIPING):
                    assert not (array & 0xFFFFFFFF == number).any()


def test_a_value_that_goes_meanwhile_is_in_no_array() -> None:
    """A number that nobody else has is in no array once it is deleted, whatever is done with it at the moment."""
    rare, stages, step = 0.12345678901234567, set(), 31 if IS_OFF else 7
    for number in (rare, -rare):
        key = values.key_of(np.float64(number))
        for wait in range(0, 400, step):
            pool = Settings(epsilon=0.3, max_work=24, default=Kind.NUMERIC).pool()
            rng = random.Random(4)
            made = [
                Event(Op.INSERT, {feature: round(rng.gauss(0, 1), 1) for feature in range(3)}, rng.randrange(2))
                for _ in range(500)
            ]
            outcomes(pool, [*made[:100], Event(Op.INSERT, {0: number}, 1, id=7), *made[100 : 100 + wait]])
            stages.add(stage(pool))
            outcomes(pool, [Event(Op.DELETE, {}, id=7)])
            for name, array in pool.arrays().items():
                bits = array.view(np.int64) if array.dtype == np.float64 else array
                assert name == "nodes.threshold" or not (bits == key).any()
                assert not (bits == np.float64(number).view(np.int64)).any()
            pool.check()
    assert stages >= {SCANNING, WIPING, PARTING}


@pytest.mark.parametrize("kind", [Kind.BINARY, Kind.NUMERIC])
def test_a_key_that_is_dropped_takes_along_what_is_aside(kind: Kind) -> None:
    """In every stage a drop gives back all nodes, counts and values."""
    seen = set()
    for size in range(30, 250, 4):
        pool = Settings(epsilon=0.3, max_work=12, default=kind).pool()
        outcomes(pool, _planted(size, 8))
        seen.add(stage(pool))
        outcomes(pool, [Event(Op.DROP)])
        pool.check()
        assert pool.node_count == 0
        assert pool._state.aside.seen.used[0] == 0
        assert pool._state.aside.values.used[0] == pool._state.aside.values.taken[0] == 0
    assert len(seen) >= (4 if kind == Kind.BINARY else 3)


def test_a_state_without_what_is_aside_is_taken_over() -> None:
    """A state of before there were bounds, or one without a bound, goes on with nothing aside."""
    events = _planted(300, 8)
    before = Settings(epsilon=0.2, max_work=None).pool()
    outcomes(before, events[:200])
    arrays = {name: array.copy() for name, array in before.arrays().items()}
    assert not any(name.startswith("aside") for name in arrays)
    pool = Settings(epsilon=0.2, max_work=30).pool().restore(arrays)
    outcomes(pool, events[200:])
    pool.check()
    assert aside.is_bounded(pool._state.aside)


def test_a_state_in_the_middle_of_a_rebuild_needs_a_bound() -> None:
    """Without one nobody would finish the rebuild, and its examples would be in no leaf; at rest it is taken."""
    events = _planted(300, 8)
    pool, taken = Settings(epsilon=0.2, max_work=30).pool(), set()
    for event in events:
        outcomes(pool, [event])
        unbounded = Settings(epsilon=0.2, max_work=None).pool()
        if stage(pool) == IDLE:
            unbounded.restore({name: array.copy() for name, array in pool.arrays().items()})
            assert rows_of(unbounded.tree()) == rows_of(pool.tree())
        else:
            with pytest.raises(ValueError, match="expected a state of which nothing is built aside, got one with"):
                unbounded.restore(pool.arrays())
        taken.add(stage(pool) == IDLE)
    assert taken == {False, True}


@pytest.mark.parametrize(
    "settings_",
    [
        {"guarantee": "exact", "epsilon": None},
        {"beta": 0.1, "epsilon": None},
    ],
    ids=str,
)
def test_where_nothing_is_bounded_a_bound_is_refused(settings_: dict[str, Any]) -> None:
    """Floors have no bound yet: it is none by default, and an error says so."""
    assert replace(Settings(), **settings_).pool().rules.max_work == 0
    with pytest.raises(ValueError, match="expected a max_work of None with a guarantee, or a beta"):
        replace(Settings(max_work=5000), **settings_).pool()


def test_a_bound_is_at_least_one_entry() -> None:
    """An event that may do nothing would never come to an end."""
    with pytest.raises(ValueError, match="expected a max_work of at least 1, or None, got 0"):
        Settings(max_work=0).pool()
