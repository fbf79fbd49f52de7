"""HAT on streams that drift: alternates are begun, take a place or go, and the oracle has the same."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT
from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.trees.nodes import alternates
from algorithms.trees.policies import POLICIES
from algorithms.trees.pool import Alternates, TreePool
from algorithms.trees.predict import Predict
from tests.algorithms.trees.test_trees import MIXES, of
from tests.oracles.naive import words
from tests.oracles.naive_trees import KINDS
from tests.oracles.tree_parts import Event, Settings
from tests.oracles.tree_streams import Mix, Pair, Stream, outcomes, pool_columns
from tests.support.examples import budget

pytestmark = pytest.mark.parametrize("kind", [kind for kind in KINDS if POLICIES[kind[0]].adapts], ids="-".join)
TreeKind = tuple[str, str]

FULL = budget(10) == 10  # the compiler is on, and streams are long enough for alternates


def drifting(mix: Mix, seed: int, parts: int = 3, length: int = 900) -> list[Event]:
    """Return a stream in which features tell another class in every part, and nothing for a while in between."""
    stream, rng = Stream(seed, mix), random.Random(seed)
    events = []
    for part in range(parts):
        events += [
            replace(event, label=(event.label + part) % mix.classes) for event in stream.take(budget(length))
        ]
        events += [replace(event, label=rng.randrange(mix.classes)) for event in stream.take(budget(60))]
    return events


def halves(count: int, seed: int, *, drifted: bool) -> list[Event]:
    """Return examples whose feature 1 tells one bit of the label, and 2 or 3, as feature 1 says, the other.

    In a drift feature 3 comes to tell the opposite, and feature 2 tells so much more that over all errors fall.
    """
    rng, events = random.Random(seed), []
    for _ in range(count):
        high, low = int(rng.random() < 0.25), rng.randrange(2)
        share = 0.9 if high else 0.95 if drifted else 0.7
        told = low if rng.random() < share else 1 - low
        x = {1: high, 2: rng.randrange(2) if high else told, 3: told ^ drifted if high else rng.randrange(2)}
        events.append(Event(Op.INSERT, {feature: float(value) for feature, value in x.items()}, 2 * high + low))
    return events


def right(pool: TreePool, events: list[Event]) -> float:
    """Return the share of examples that a pool predicts rightly before it learns them."""
    return float(
        np.mean([out.predicted == event.label for out, event in zip(outcomes(pool, events), events, strict=True)])
    )


DRIFTING = {
    "binary": Predict.NAIVE_BAYES,
    "keys": Predict.ADAPTIVE,
    "weights": Predict.MAJORITY,
    "classes": Predict.MAJORITY,
    "nominal": Predict.ADAPTIVE,
    "numeric": Predict.NAIVE_BAYES,
    "mixed": Predict.MAJORITY,
}


@pytest.mark.parametrize("name", DRIFTING)
def test_drifting_streams_agree_with_the_oracle(kind: TreeKind, name: str) -> None:
    """Every prediction, split, tree and alternate is equal to the oracle's, over drifts, restores and batches."""
    mix = replace(MIXES[name], indexes=2 if name == "keys" else 1, others=0.01)
    if name == "mixed":
        mix = replace(mix, classes=2)  # of three its features tell too little for errors to rise
    pair = Pair(of(kind, mix, predict=DRIFTING[name], snapshots=Emit(When.CHANGE)))
    events = drifting(mix, 6, length=1200)
    rng = random.Random(2)
    while events:
        size = rng.choice([1, 50, 400])
        pair.feed(events[:size])
        events = events[size:]
        pair.check()
        pair.restored()
    if FULL:
        assert pair.pool.alternates.promoted > 0, f"{name}: no alternate did better"


def test_alternates_take_a_place_or_go(kind: TreeKind) -> None:
    """Over a few drifting streams some alternates are promoted and some given up, as the oracle says."""
    total = np.zeros(3, np.int64)
    for seed in range(4):
        mix = Mix(dict.fromkeys(range(8), Kind.BINARY), indexes=1, others=0.02)
        pair = Pair(of(kind, mix, grace_period=60, split_confidence=0.01, tie_threshold=0.05))
        for at in range(2):
            pair.feed(drifting(mix, 10 * seed + at, parts=2))
        pair.check()
        total += pair.pool.alternates
    if FULL:
        assert (total[1:] > 0).all()


def test_a_replacement_is_a_change_of_the_tree(kind: TreeKind) -> None:
    """A snapshot that is due on change is taken where an alternate takes a place, though nothing splits."""
    mix = MIXES["binary"]
    pair = Pair(of(kind, mix, snapshots=Emit(When.CHANGE)))
    got = [out for seed in range(2) for out in pair.feed(drifting(mix, seed))]
    replaced = sum(out.snapshot is not None and out.split is None for out in got)
    assert replaced <= pair.pool.alternates.promoted
    if FULL:
        assert replaced > 0


def test_batches_of_any_size_give_the_same_alternates(kind: TreeKind) -> None:
    """Batches of 1, 7 and 1000, restored in between, give the same answers and trees."""
    for name in ("keys", "mixed"):
        mix = replace(MIXES[name], indexes=2)
        events = drifting(mix, 5, parts=2)
        seen = []
        for size in (1, 7, 1000):
            settings = of(kind, mix, predict=Predict.ADAPTIVE)
            pool = settings.pool()
            got = []
            for at in range(0, len(events), size):
                got += outcomes(pool, events[at : at + size])
                if size == 7:
                    pool = settings.pool().restore({each: array.copy() for each, array in pool.arrays().items()})
            trees = [(pool_columns(pool, key), pool.sizes(key)) for key in range(2)]
            seen.append((got, trees, pool.alternates, pool.node_count))
        assert seen[0] == seen[1] == seen[2]


def test_a_drift_below_a_node_leaves_what_is_above(kind: TreeKind) -> None:
    """Where errors rise below one branch alone the subtree there is replaced, and the root stays."""
    pool = of(kind, classes=4, grace_period=50, split_confidence=0.01, tie_threshold=0.1).pool()
    outcomes(pool, halves(budget(4000), 1, drifted=False))
    before = pool.tree()
    outcomes(pool, halves(budget(4000), 2, drifted=True))
    pool.check()
    after = pool.tree()
    if FULL:
        assert before.feature[0] == after.feature[0] == 1
        assert before.number[0] == after.number[0] == 0
        assert pool.alternates.promoted > 0


def test_accuracy_recovers_from_an_abrupt_drift(kind: TreeKind) -> None:
    """Where labels come to mean the opposite HAT is soon right again, and VFDT is not."""
    mix = Mix(dict.fromkeys(range(10), Kind.BINARY), others=0.0)
    events = Stream(1, mix).take(budget(6000))
    flipped = [replace(event, label=1 - event.label) for event in Stream(2, mix).take(budget(2000))]
    found = []
    for policy in ("hat", "periodic"):
        pool = of((policy, kind[1]), grace_period=100, split_confidence=1e-5, tie_threshold=0.05).pool()
        right(pool, events)
        found.append((right(pool, flipped[: len(flipped) // 2]), right(pool, flipped[len(flipped) // 2 :])))
        pool.check()
    if FULL:
        assert found[0][0] > found[1][0]
        assert found[0][1] > found[1][1] + 0.1


def test_without_a_drift_hat_is_vfdt(kind: TreeKind) -> None:
    """Where no error rises the trees and guesses are those of the policy periodic, to the bit."""
    for name in ("binary", "nominal", "numeric"):
        events = Stream(4, MIXES[name]).take(budget(600))
        pools = [of((policy, kind[1]), MIXES[name]).pool() for policy in ("hat", "periodic")]
        answers = [outcomes(pool, events) for pool in pools]
        if pools[0].alternates == (0, 0, 0):
            assert answers[0] == answers[1]
            assert pool_columns(pools[0], 0) == pool_columns(pools[1], 0)
    assert pools[1].alternates == Alternates(0, 0, 0)


def test_a_tree_goes_with_its_alternates(kind: TreeKind) -> None:
    """Dropping a tree while alternates grow beside it gives everything back, the names too."""
    mix = Mix(dict.fromkeys(words(8), Kind.BINARY), others=0.0)
    pool = of(kind, mix, names=True).pool()
    events, open_ = drifting(mix, 2), 0
    for at in range(0, len(events), 40):
        outcomes(pool, events[at : at + 40])
        open_ = max(open_, pool.alternates.open)
        if pool.alternates.open:
            outcomes(pool, [Event(Op.DROP)])
            pool.check()
            assert pool.alternates.open == pool.node_count == pool.alive == 0
            assert pool.names is not None
            assert len(pool.names) == 0
    assert open_ > 0 or not FULL


def test_depth_and_leaves_are_those_of_the_tree(kind: TreeKind) -> None:
    """Sizes and depth do not count what grows beside; nodes do, since they take room."""
    mix = Mix(dict.fromkeys(range(8), Kind.BINARY), others=0.0)
    pool = of(kind, mix).pool()
    seen = 0
    for events in np.array_split(np.array(drifting(mix, 1), object), 60):
        outcomes(pool, events.tolist())
        tree = pool.tree()
        assert pool.sizes().leaves == tree.feature.count(None)
        assert pool.depth == tree.depth.max()
        beside = len(alternates(pool._state.nodes))
        assert beside == pool.alternates.open
        assert pool.node_count >= len(tree.feature) + beside
        seen += beside
    assert seen > 0 or not FULL


def test_a_replaced_node_is_nowhere_any_more(kind: TreeKind) -> None:
    """Node numbers are given once: what an alternate brings has numbers that the tree never had."""
    mix = Mix(dict.fromkeys(range(8), Kind.BINARY), others=0.0)
    pool = of(kind, mix, snapshots=Emit(When.CHANGE)).pool()
    gone: set[int] = set()
    here: set[int] = set()
    for seed in range(2):
        for out in outcomes(pool, drifting(mix, seed)):
            if out.snapshot is not None:
                now = {node[0] for node in out.snapshot}
                assert not now & gone
                gone |= here - now
                here = now
    assert gone or not FULL


def test_what_a_tree_has_learned_bounds_its_alternates_too(kind: TreeKind) -> None:
    """An alternate counts what the tree learns, to the last unit: it needs no bound of its own."""
    pool = of(kind, grace_period=30, max_depth=1).pool()
    told = [Event(Op.INSERT, {1: float(at & 1)}, at & 1) for at in range(600)]
    outcomes(pool, told)
    assert pool.tree().feature[0] == 1
    flipped = [replace(event, label=1 - event.label) for event in told]
    at = 0
    while not pool.alternates.open:
        outcomes(pool, flipped[at : at + 1])
        at += 1
    learned = sum(event.weight for event in told + flipped[:at])
    heavy = [replace(flipped[each], weight=MAX_TOTAL // 4) for each in range(3)]
    rest = [replace(flipped[3], weight=MAX_TOTAL // 4 - learned - less) for less in (0, 1)]
    assert [out.status for out in outcomes(pool, heavy + rest)] == [
        *[Status.APPLIED] * 3,
        Status.COUNT_OVERFLOW,
        Status.APPLIED,
    ]
    pool.check()
    outcomes(pool, flipped[:50])
    pool.check()


def test_the_weight_of_an_example_is_no_part_of_its_error(kind: TreeKind) -> None:
    """All weights times the same number give the same alternates."""
    mix = replace(MIXES["binary"], weights=(UNIT, 3 * UNIT), others=0.0)
    events = drifting(mix, 4, parts=2)
    seen: list[Any] = []
    for scale in (1, 4, 1 << 20):
        pool = of(kind, mix).pool()
        outcomes(pool, [replace(event, weight=event.weight * scale) for event in events])
        seen.append((pool.alternates, pool.sizes(), pool.tree().number.tolist()))
    assert seen[0] == seen[1] == seen[2]


def test_guesses_are_made_unasked(kind: TreeKind) -> None:
    """HAT predicts every example to learn from it, so the answers have it whether `evaluate` is set or not."""
    events = drifting(MIXES["binary"], 1, parts=2)
    pools = [Settings(policy=kind[0], criterion=kind[1], evaluate=each).pool() for each in (False, True)]
    assert outcomes(pools[0], events) == outcomes(pools[1], events)
