"""The contract of forests that grow, against the oracle in naive_growing.py."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import pytest

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT
from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.forests import growing, growth
from algorithms.forests.growing import GrowingForestPool
from algorithms.trees.predict import Predict
from tests.oracles.differential import columns_of, times_of
from tests.oracles.naive import words
from tests.oracles.naive_growing import Outcome, Pair, Settings, outcomes
from tests.oracles.tree_parts import Event
from tests.oracles.tree_streams import Mix, Stream, tree_columns

OFF = bool(numba.config.DISABLE_JIT)
BINARY = Mix(dict.fromkeys(range(9), Kind.BINARY))
MIXED = Mix(
    {0: Kind.NUMERIC, 1: Kind.NOMINAL, 2: Kind.NUMERIC, 3: Kind.BINARY, 4: Kind.NUMERIC, 5: Kind.QUANTISED},
    classes=3,
    weights=(UNIT, UNIT // 2, 3 * UNIT),
    indexes=2,
)
NAMED = Mix({word: Kind.NUMERIC if at % 3 else Kind.BINARY for at, word in enumerate(words(9))}, indexes=2)
VARIANTS: dict[str, tuple[Mix, dict[str, Any]]] = {
    "binary": (BINARY, {"subspace": 0.6}),
    "everything": (BINARY, {"bagging": "none", "predict": Predict.MAJORITY, "max_depth": 3}),
    "exact": (BINARY, {"policy": "exact", "predict": Predict.MAJORITY, "subspace": 0.7}),
    "mixed": (MIXED, {"subspace": 0.7, "bagging": "poisson:6", "criterion": "gini"}),
    "k of T": (MIXED, {"bagging": "2 of 3", "policy": "osm", "inherit": True, "local_range": True}),
    "names": (NAMED, {"names": True, "subspace": "sqrt of 3", "policy": "imac"}),
    "more trees than parts": (BINARY, {"trees": 6, "subspace": 0.6}),
}


def steps(count: int) -> int:
    """Return how long a stream is to be: half where the compiler is off."""
    return count // 2 if OFF else count


def of(mix: Mix, **rest: Any) -> Settings:
    """Return settings for a mix."""
    return Settings(classes=mix.classes, kinds={f: k for f, k in mix.kinds.items() if k != Kind.BINARY}, **rest)


def drifting(seed: int, mix: Mix, count: int, every: int = 100) -> Iterator[Event]:
    """Yield a stream whose labels one feature tells, and which turn now and then: detectors find that."""
    telling = next(iter(mix.kinds))
    for at, event in enumerate(Stream(seed, mix).take(count)):
        told = int(event.x.get(telling, 0.0) > 0.01) + at // every
        yield replace(event, label=told % mix.classes)


@pytest.mark.wide(2)  # each policy is a kernel of its own, which takes half a minute to compile
@pytest.mark.parametrize("name", VARIANTS)
def test_long_streams_agree_with_the_oracle(name: str) -> None:
    """Trees, votes, losses and what detectors did are the oracle's after every batch, restored or not."""
    mix, rest = VARIANTS[name]
    pair = Pair(of(mix, **rest))
    events = drifting(3, mix, steps(900))
    sizes = [1, 7, *[steps(150)] * 9]
    for size in sizes:
        pair.feed([event for _, event in zip(range(size), events, strict=False)])
        pair.check()
        pair.restored()
    done = [pair.pool.sizes(key) for key in range(mix.indexes)]
    assert sum(each.warnings + each.drifts for each in done) > 0
    assert sum(each.leaves for each in done) > 3


def test_forests_are_the_oracles_after_every_event() -> None:
    """Not only after a batch: each single event leaves the oracle's trees."""
    pair = Pair(of(MIXED, subspace=0.7))
    for event in drifting(8, MIXED, steps(400), every=30):
        pair.feed([event])
        pair.check()


def test_batches_of_any_size_give_the_same_forests() -> None:
    """A batch of 1 and one of thousands lead to the same answers and trees."""
    events = list(drifting(2, MIXED, steps(900)))
    seen = []
    for size in (1, 7, 5000):
        pool = of(MIXED, subspace=0.6, bagging="poisson:6").pool()
        got = [out for at in range(0, len(events), size) for out in outcomes(pool, events[at : at + size])]
        shown = [[tree_columns(tree) for tree in pool.trees(key)] for key in range(2)]
        seen.append((got, shown, [pool.sizes(key) for key in range(2)]))
        pool.check()
    assert seen[0] == seen[1] == seen[2]


def test_however_little_trees_are_told_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is room for a few events, or for what a tree is told of one of them, forests are the same."""
    events = list(drifting(2, MIXED, steps(400), every=40))
    events[150:150] = [Event(Op.DROP, key=1), Event(Op.DROP, key=1)]
    seen = []
    for moves, told, features in ((1 << 11, 1 << 13, 1 << 14), (7, 9, 1), (50, 8, 1 << 14), (1 << 11, 1 << 13, 1)):
        monkeypatch.setattr(growing, "_MOVES", moves)
        monkeypatch.setattr(growing, "_TOLD", told)
        monkeypatch.setattr(growing, "_FEATURES", features)
        pool = of(MIXED, subspace=0.6, bagging="poisson:6").pool()
        got = outcomes(pool, events)
        pool.check()
        seen.append((got, [[tree_columns(tree) for tree in pool.trees(key)] for key in range(2)]))
    assert all(each == seen[0] for each in seen)


@pytest.mark.parametrize("size", [1, 30, 500])
def test_snapshots_are_of_the_trees_that_vote_then(size: int) -> None:
    """Every n examples of a key, or in each period of event time; with them how heavy each vote is."""
    pool = GrowingForestPool(trees=3, classes=3, drift=0.02, snapshots=Emit(When.EVERY, 70))
    by_time = GrowingForestPool(trees=3, classes=3, snapshots=Emit(When.EVERY_MS, 1_000))
    other = GrowingForestPool(trees=3, classes=3, drift=0.02)
    draw = random.Random(size)
    events = [
        replace(event, x=dict.fromkeys(event.x, 1.0), time=at * 20, key=int(draw.random() < 0.3))
        for at, event in enumerate(drifting(2, MIXED, 400))
        if event.op == Op.INSERT
    ]
    expected, periods, count = [], [], [0, 0]
    for at, event in enumerate(events):
        other.apply(columns_of([event], other, None))
        count[event.key] += 1
        if count[event.key] % 70 == 0:
            shown = [tree_columns(tree) for tree in other.trees(event.key)]
            expected.append((at, count[event.key], shown, other.accuracies(event.key).tolist()))
        before = [each.time for each in events[:at] if each.key == event.key]
        if before and event.time // 1_000 > before[-1] // 1_000:
            periods.append(at)
    found, at_times = [], []
    for begin in range(0, len(events), size):
        part = events[begin : begin + size]
        batch = columns_of(part, pool, None)._replace(time=times_of(part))
        found += [
            (begin + each.event, each.version, [tree_columns(tree) for tree in each.trees], each.weights)
            for each in pool.apply(batch).snapshots
        ]
        at_times += [begin + each.event for each in by_time.apply(batch).snapshots]
    assert found == expected
    assert len(found) > 2
    assert at_times == periods


def test_a_pool_that_became_small_goes_on_as_it_was() -> None:
    """Keys with other numbers, and names, trees and detectors go on as they would have."""
    settings = of(NAMED, names=True, drift=1e-9)
    events = list(drifting(4, NAMED, steps(900), every=70))
    half = len(events) // 2
    kept, packed = settings.pool(), settings.pool()
    for pool in (kept, packed):
        outcomes(pool, events[:half])
        outcomes(
            pool, [Event(Op.INSERT, {b"only here": 1.0}, key=5), Event(Op.DROP, key=5), Event(Op.DROP, key=0)]
        )
    assert packed.sizes(1).beside > 0
    packed.pack(np.array([1], np.int32))
    packed.check()
    assert len(packed._state.keys) < len(kept._state.keys)
    rest = [event for event in events[half:] if event.key == 1]
    assert outcomes(packed, [replace(event, key=0) for event in rest]) == outcomes(kept, rest)
    packed.check()
    assert packed.sizes(0) == kept.sizes(1)
    assert [tree_columns(tree) for tree in packed.trees(0)] == [tree_columns(tree) for tree in kept.trees(1)]


def test_what_is_refused_changes_nothing() -> None:
    """Deletes, wrong labels, weights and values, keys and weights past the bounds."""
    pair = Pair(of(BINARY, max_keys=1, bagging="poisson:6"))
    pair.feed(list(drifting(1, BINARY, 50)))
    before = {name: array.copy() for name, array in pair.pool.arrays().items()}
    x: dict[int | bytes, float] = {1: 1.0}
    refused = [
        (Event(Op.DELETE, x), Status.CANNOT_FORGET),
        (Event(Op.INSERT, x, label=2), Status.WRONG_LABEL),
        (Event(Op.INSERT, x, weight=-1), Status.WRONG_WEIGHT),
        (Event(Op.INSERT, x, weight=0), Status.IGNORED),
        (Event(Op.INSERT, x, key=1), Status.TOO_MANY_KEYS),
        (Event(Op.INSERT, x, weight=MAX_TOTAL // 20), Status.COUNT_OVERFLOW),
    ]
    assert [out.status for out in pair.feed([event for event, _ in refused])] == [status for _, status in refused]
    [wrong] = outcomes(pair.pool, [Event(Op.INSERT, {1: float("nan")})])
    assert wrong.status == Status.WRONG_VALUE
    after = pair.pool.arrays()
    for name, array in before.items():
        assert np.array_equal(array, after[name][: len(array)], equal_nan=True), name
    pair.check()


def test_a_key_that_is_dropped_leaves_nothing_and_begins_anew() -> None:
    """All trees of the key go, those beside others too, and so do its detectors and names."""
    pair = Pair(of(NAMED, names=True, drift=1e-9))
    pair.feed([event for event in drifting(1, NAMED, steps(600), every=70) if event.op == Op.INSERT])
    assert pair.pool.sizes(0).beside > 0
    pair.feed([Event(Op.DROP, key=key) for key in range(2)])
    pair.check()
    assert (pair.pool.alive, pair.pool.node_count, pair.pool.sizes(0).beside) == (0, 0, 0)
    assert pair.pool.names is not None
    assert len(pair.pool.names) == len(pair.settings.kinds)
    pair.feed(list(drifting(2, NAMED, steps(200))))
    pair.check()


def test_a_tree_that_drifts_is_replaced_by_the_one_beside_it() -> None:
    """When labels turn trees go that were right before; those begun at a warning say the new ones."""
    draw = random.Random(4)
    pool = GrowingForestPool(trees=3, default=Kind.NUMERIC, subspace=1.0, bagging="poisson:1", drift=1e-20)
    taken = 0
    for at in range(1500):
        value = draw.random()
        before = pool.sizes()
        pool.insert({0: value + 1.0}, int((value > 0.5) ^ (at >= 900)))
        taken += before.beside - pool.sizes().beside if pool.sizes().drifts > before.drifts else 0
    assert pool.sizes().drifts >= 1
    assert taken > 0
    assert int(pool.predict({0: 1.9}).argmax()) == 0
    assert pool.accuracies().min() > 0.9
    assert pool.sizes(7) == GrowingForestPool(trees=3).sizes()


def test_votes_are_as_heavy_as_trees_were_right() -> None:
    """Of a forest that knows nothing all votes are 0; a tree that was always right has one vote to give."""
    pool = GrowingForestPool(trees=4, bagging="none", subspace=1.0)
    assert pool.predict([1]).tolist() == [0.0, 0.0]
    assert np.isnan(pool.accuracies()).all()
    assert outcomes(pool, [Event(Op.PREDICT)]) == [Outcome(Status.APPLIED, votes=(0, 0))]
    for _ in range(300):
        pool.insert([1], 1)
    assert pool.predict([1]).tolist() == pytest.approx([0.0, 4.0], abs=0.02)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"trees": 0}, "trees, a whole number from 1"),
        ({"bagging": "11 of 10"}, "expected as bagging"),
        ({"subspace": 0.0}, "expected as subspace"),
        ({"warning": 0.0}, "expected a warning between 0 and 1"),
        ({"drift": 1.0}, "expected a drift between 0 and 1"),
        ({"policy": "hat"}, "expected a policy of periodic, osm, imac, exact in a forest"),
        ({"policy": "exact", "classes": 3}, "two classes"),
        ({"grace_period": 0}, "expected a grace_period, a whole number from 1"),
        ({"max_keys": 0}, "expected max_keys, a whole number from 1"),
        ({"snapshots": Emit(When.CHANGE)}, "expected snapshots every n events"),
    ],
)
def test_wrong_settings_are_refused_with_a_reason(changed: dict[str, Any], reason: str) -> None:
    """What cannot be is refused when the pool is made."""
    with pytest.raises(ValueError, match=reason):
        GrowingForestPool(**changed)


@pytest.mark.skipif(OFF, reason="nothing is compiled")
def test_one_kernel_serves_trees_of_any_policy_and_features() -> None:
    """A forest adds two kernels to those of the trees, each compiled once."""
    kinds: dict[int | bytes, Kind] = {1: Kind.NUMERIC, 2: Kind.NOMINAL, 3: Kind.QUANTISED}
    none: dict[int | bytes, Kind] = {}
    for policy, named, told in (("osm", False, kinds), ("periodic", True, none), ("exact", False, none)):
        pool = GrowingForestPool(trees=3, policy=policy, names=named, kinds=told)
        pool.insert([b"a"] if named else [5], 1)
        pool.apply(columns_of([Event(Op.INSERT, {}, label=at % 2) for at in range(200)], pool))
    kernels: list[Any] = [growth.apply, growth.go_on]
    assert [len(kernel.compiled.signatures) for kernel in kernels] == [1, 1]


def test_keys_beyond_the_numbers_of_trees_are_refused() -> None:
    """Each place has two trees; before their numbers run out a key is refused."""
    with pytest.raises(ValueError, match=r"keys below 1,073,741 in forests of 1,000 trees, got 2,000,000"):
        GrowingForestPool(trees=1000).insert([1], 0, key=2_000_000)
