"""The contract of trees that forget numbers, against the oracle in naive_dynamic_numbers.py."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate, Op, Status
from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.dynamic.numbers import DynamicNumberPool
from algorithms.regression.builder import NumberSample, build_regression_tree
from tests.algorithms.dynamic.test_dynamic import deleted, steps
from tests.oracles.naive import words
from tests.oracles.naive_dynamic import Event, Feature
from tests.oracles.naive_dynamic_numbers import (
    NumberPair,
    NumberSettings,
    Range,
    number_outcomes,
    number_rows_of,
)
from tests.support.examples import budget

BINARY, NUMERIC = Kind.BINARY, Kind.NUMERIC

# Labels of 1e-9 and of 1e12, around 0, all of one sign, with the most units there may be, and few of them.
RANGES: dict[str, Range] = {
    "plain": (-50.0, 50.0, 0.25),
    "tiny": (0.0, 1e-6, 1e-9),
    "huge": (-1e12, 1e12, 2.0),
    "fine": (0.0, 1e6, 1e6 / 2**40),
    "far": (1e12, 1e12 + 4096.0, 0.5),
    "two": (0.0, 1.0, 1.0),
}


def label_of(scale: Range, share: float) -> float:
    """Return a label of the range that is next to a multiple of the unit."""
    low, high, unit = scale
    return min(low + unit * round(share * (high - low) / unit), high)


class Stream:
    """Random events; what is deleted was mostly inserted before."""

    def __init__(
        self,
        seed: int,
        kinds: dict[Feature, Kind],
        scale: Range,
        *,
        deletes: float = 0.35,
        ids: bool = False,
        keys: int = 1,
        heavy: bool = False,
    ) -> None:
        self._rng = random.Random(seed)
        self._kinds, self._scale, self._deletes, self._ids, self._keys = kinds, scale, deletes, ids, keys
        self._weights = [1, 1, 3, 1 << 16] if heavy else [1]
        self._made: list[Event] = []
        self._count = 0

    def take(self, count: int) -> list[Event]:
        """Return the next events."""
        return [self._next() for _ in range(count)]

    def _next(self) -> Event:
        rng = self._rng
        kind = rng.random()
        if kind < self._deletes and self._made:
            made = self._made.pop(rng.randrange(len(self._made)))
            return replace(made, op=Op.DELETE)
        x: dict[Feature, float] = {}
        share = rng.choice([0.1, 0.5])
        for feature, each in self._kinds.items():
            if rng.random() < 0.5:
                x[feature] = 1.0 if each == BINARY else round(rng.gauss(0.0, 1.0), 1) + 0.0
                share += 0.1 * x[feature] if rng.random() < 0.8 else 0.0
        self._count += 1
        label = label_of(self._scale, min(max(share, 0.0), 1.0))
        weight = rng.choice(self._weights) * UNIT
        event = Event(Op.INSERT, x, label, weight, self._count if self._ids else None, rng.randrange(self._keys))
        if kind > 0.94:
            return replace(event, op=Op.PREDICT if kind < 0.995 else Op.DROP, id=None)
        self._made.append(event)
        return event


KINDS: dict[str, dict[Feature, Kind]] = {
    "binary": dict.fromkeys(range(8), BINARY),
    "numeric": dict.fromkeys(range(4), NUMERIC),
    "mixed": {f: NUMERIC if f % 2 else BINARY for f in range(6)},
}


def of(kinds: dict[Feature, Kind], **rest: Any) -> NumberSettings:
    """Return settings for features of these kinds."""
    return NumberSettings(kinds={f: k for f, k in kinds.items() if k != BINARY}, **rest)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("scale", RANGES)
@pytest.mark.parametrize("name", KINDS)
def test_long_streams_agree_with_the_oracle(name: str, scale: str, epsilon: float) -> None:
    """Trees, what they tell, statuses and guesses are the oracle's after batches of any size, restored or not."""
    kinds, heavy = KINDS[name], scale in ("plain", "tiny")
    pair = NumberPair(of(kinds, scale=RANGES[scale], epsilon=epsilon, window=30 if name == "mixed" else None))
    stream = Stream(3, kinds, RANGES[scale], ids=name == "mixed", keys=2, heavy=heavy)
    rebuilds = 0
    for size in (1, 7, steps(100), steps(80), 1):
        rebuilds += sum(out.rebuilt > 0 for out in pair.feed(stream.take(size)))
        pair.check()
        pair.restored()
    assert rebuilds > 4


def test_trees_are_the_oracles_after_every_event() -> None:
    """Not only after a batch: each single event leaves the oracle's tree."""
    kinds = KINDS["mixed"]
    pair = NumberPair(of(kinds, epsilon=0.1, max_depth=4, min_examples=2))
    for event in Stream(8, kinds, (0.0, 100.0, 1.0)).take(steps(200)):
        pair.feed([event])
    pair.check()


def test_names_are_ordered_by_their_bytes() -> None:
    """Features with names give the oracle's trees, and what nobody refers to is forgotten."""
    kinds: dict[Feature, Kind] = {word: NUMERIC if at % 3 else BINARY for at, word in enumerate(words(7))}
    pair = NumberPair(of(kinds, names=True, epsilon=0.2))
    stream = Stream(1, kinds, (0.0, 100.0, 1.0), ids=True, keys=2)
    for _ in range(3):
        pair.feed(stream.take(steps(60)))
        pair.check()
        pair.restored()
    pair.feed([Event(Op.DROP, key=key) for key in range(2)])
    pair.check()
    assert len(pair.pool.names) == len(pair.settings.kinds)


def test_batches_of_any_size_give_the_same_trees() -> None:
    """Batches of 1, 7 and 1000 give the same answers, trees and sizes."""
    for name, kinds in KINDS.items():
        events = Stream(2, kinds, RANGES["fine"]).take(steps(200))
        seen = []
        for size in (1, 7, 1000):
            pool = of(kinds, scale=RANGES["fine"], window=40 if name == "mixed" else None).pool()
            got = [
                out for at in range(0, len(events), size) for out in number_outcomes(pool, events[at : at + size])
            ]
            seen.append((repr(got), number_rows_of(pool.tree()), pool.sizes()))
        assert seen[0] == seen[1] == seen[2]


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
    kinds = {0: BINARY, 2: NUMERIC, 5: BINARY, 4294967295: NUMERIC}
    scale = data.draw(st.sampled_from(list(RANGES.values())))
    pair = NumberPair(
        NumberSettings(
            scale=scale,
            epsilon=data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.5])),
            min_examples=data.draw(st.sampled_from([1, 3])),
            max_depth=data.draw(st.sampled_from([0, 2, 1 << 30])),
            kinds={feature: kind for feature, kind in kinds.items() if kind != BINARY},
            window=data.draw(st.sampled_from([None, None, 1, 4])),
            on_duplicate=data.draw(st.sampled_from(OnDuplicate)),
            evaluate=data.draw(st.booleans()),
            max_keys=data.draw(st.sampled_from([1, 9])),
            max_live_ids=data.draw(st.sampled_from([2, 99])),
            snapshots=data.draw(st.sampled_from([Emit(), Emit(When.CHANGE), Emit(When.EVERY, 3)])),
        )
    )
    values = {
        BINARY: st.sampled_from([0.0, 1.0, -2.5]),
        NUMERIC: st.sampled_from([-1e300, -1.0, -0.0, 5e-324, 0.5, 2.0]),
    }
    label = st.builds(label_of, st.just(scale), st.sampled_from([0.0, 0.25, 0.5, 0.5 + 1e-9, 1.0]))
    wrong = st.sampled_from([math.nan, math.inf, -math.inf, 1e308, scale[1] * 2.0 + 1.0])
    event = st.builds(
        Event,
        st.sampled_from([Op.INSERT] * 6 + [Op.DELETE] * 4 + [Op.PREDICT, Op.DROP]),
        st.fixed_dictionaries({}, optional={feature: values[each] for feature, each in kinds.items()}),
        st.one_of(label, label, label, wrong) if data.draw(st.booleans()) else label,
        st.sampled_from([UNIT] * 5 + [1, 0, -UNIT, 5 * UNIT, 3 * UNIT // 2]),
        st.sampled_from([None, None, 1, 2, 3]),
        st.integers(0, 1) if data.draw(st.booleans()) else st.just(0),
    )
    for _ in range(data.draw(st.integers(1, 3))):
        pair.feed(data.draw(st.lists(event, max_size=40)))
        pair.check()
        pair.restored()


@pytest.mark.parametrize("scale", RANGES)
def test_deletes_undo_inserts_to_the_bit(scale: str) -> None:
    """What was inserted and deleted again in any order leaves the sums of nodes as they were."""
    kinds = KINDS["mixed"]
    events = [event for event in Stream(5, kinds, RANGES[scale], deletes=0.0).take(60) if event.op == Op.INSERT]
    rng = random.Random(1)
    pool = of(kinds, scale=RANGES[scale], epsilon=0.0).pool()
    number_outcomes(pool, events[:20])
    before = [row[4:] for row in number_rows_of(pool.tree())]
    number_outcomes(pool, events[20:])
    gone = events[20:]
    rng.shuffle(gone)
    number_outcomes(pool, [deleted(event) for event in gone])
    assert [row[4:] for row in number_rows_of(pool.tree())] == before
    pool.check()


@pytest.mark.parametrize("name", KINDS)
def test_without_slack_the_tree_is_that_of_the_batch_builder(name: str) -> None:
    """With epsilon 0 the splits are those of the batch builder, where labels are few enough for its floats."""
    kinds = KINDS[name]
    pool = of(kinds, epsilon=0.0, scale=(0.0, 64.0, 1.0), max_depth=3).pool()
    live: list[Event] = []
    for event in Stream(7, kinds, (0.0, 64.0, 1.0)).take(steps(120)):
        out = number_outcomes(pool, [event])[0]
        if out.status == Status.APPLIED and event.op == Op.INSERT:
            live.append(event)
        elif out.status == Status.APPLIED and event.op == Op.DELETE:
            live.remove(replace(event, op=Op.INSERT))
        elif event.op == Op.DROP:
            live.clear()
    items = [sorted(event.x.items()) for event in live]
    sample = NumberSample(
        pointer=np.cumsum([0, *map(len, items)], dtype=np.int64),
        feature=np.array([feature for each in items for feature, _ in each], np.uint32),
        value=np.array([value for each in items for _, value in each], np.float64),
        label=np.array([event.label for event in live], np.float64),
        weight=np.full(len(live), UNIT, np.int64),
    )
    whole = {f: k for f, k in kinds.items() if isinstance(f, int)}
    built, own = build_regression_tree(sample, unit=1.0, kinds=whole, max_depth=3), pool.tree()
    assert len(built.number) > 5
    assert (own.feature, own.threshold.tolist()) == (built.feature, built.threshold.tolist())
    assert own.weight.tolist() == built.weight.tolist()
    assert own.mean == pytest.approx(built.mean)
    assert own.variance == pytest.approx(built.variance)


def test_constant_labels_never_split() -> None:
    """Whatever the labels' size, a node whose labels are all the same is a leaf; one that differs splits it."""
    for low, high, unit in RANGES.values():
        pool = DynamicNumberPool(Scale(low, high, unit), epsilon=0.0)
        for at in range(20):
            pool.insert([at % 3, 5], low + unit)
        assert len(pool.tree().number) == 1
        assert pool.tree().variance.tolist() == [0.0]
        pool.insert([7], low, id="other")
        assert pool.tree().feature[0] == 5
        pool.delete(id="other")
        assert len(pool.tree().number) == 1


def test_ties_go_to_the_lowest_feature_whatever_floats_say() -> None:
    """Two splits gain the same by other sums, which a quotient of doubles tells apart: the lower one is taken."""
    y = 1_000_000_008
    assert float(15 * y) ** 2 / 9.0 > float(20 * y) ** 2 / 16.0  # (n r - m s)^2 / (m (n - m)) of 2, and of 1
    pool = DynamicNumberPool(Scale(0.0, 14.0 * y, 1.0), epsilon=0.0, max_depth=1)
    for features, label in (([2], 4 * y), ([1], 3 * y), ([1], 4 * y), ([], 14 * y), *[([], 0)] * 6):
        pool.insert(features, float(label))
    assert pool.tree().feature[0] == 1


def test_what_weighs_too_much_is_refused() -> None:
    """A tree's examples weigh less than what sums hold; an example that would pass it changes nothing."""
    pool = DynamicNumberPool(Scale(0.0, float(1 << 40), 1.0))
    assert pool.insert([1], float(1 << 40), weight=(1 << 22) - 1) == Status.APPLIED
    assert pool.insert([1], 0.0) == Status.COUNT_OVERFLOW
    assert pool.tree().mean.tolist() == [float(1 << 40)]
    pool.check()


def test_an_emptied_leaf_predicts_what_the_node_above_does() -> None:
    """Where deletes have emptied a leaf the nearest node above answers, and tells so in a snapshot."""
    pool = DynamicNumberPool(Scale(0.0, 10.0, 1.0), epsilon=1.0)
    assert math.isnan(pool.predict([1]))
    for at in range(3):
        pool.insert([1] if at < 2 else [2], 10.0 if at < 2 else 0.0, id=at)
    pool.delete(id=0)
    pool.delete(id=1)
    tree = pool.tree()
    assert tree.weight.tolist() == [1.0, 1.0, 0.0]
    assert set(tree.mean.tolist()) == {0.0}
    assert pool.predict([1]) == 0.0
    pool.delete(id=2)
    assert math.isnan(pool.predict([1]))
    assert all(map(math.isnan, pool.tree().mean))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"min_examples": 0}, "min_examples"),
        ({"kinds": {1: Kind.NOMINAL}}, "BINARY and NUMERIC"),
        ({"window": 0}, "window"),
        ({"snapshots": Emit(When.EVERY, 0)}, "snapshots"),
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any], message: str) -> None:
    """What cannot be is said in words."""
    with pytest.raises(ValueError, match=message):
        DynamicNumberPool(Scale(0.0, 1.0, 0.5), **wrong)


def test_wrong_labels_are_refused() -> None:
    """A label beyond the range, or none, is an error where one example is given."""
    pool = DynamicNumberPool(Scale(0.0, 1.0, 0.5))
    for wrong in (2.0, -0.1, math.nan, "x"):
        with pytest.raises(ValueError, match="label"):
            pool.insert([1], wrong)  # type: ignore[arg-type]
    assert pool.insert([1], 0.5, weight=0.5) == Status.WRONG_WEIGHT
    assert pool.alive == 0
