"""The contract of regression trees, over every observer, against the oracle in naive_regression.py."""

import math
import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT
from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.regression.observers import OBSERVERS
from algorithms.regression.pool import RegressionPool
from algorithms.trees.state import LEARNED
from tests.oracles.differential import columns_of
from tests.oracles.naive import words
from tests.oracles.naive_regression import Event, Feature, Pair, Settings, outcomes, pool_columns
from tests.support.examples import budget

BINARY, NOMINAL, NUMERIC = Kind.BINARY, Kind.NOMINAL, Kind.NUMERIC
PREDICT = ("mean", "linear", "adaptive")
HALF, ODD = UNIT // 2, round(0.3 * UNIT)

pytestmark = pytest.mark.parametrize("observer", OBSERVERS)


@dataclass(frozen=True)
class Mix:
    """What a random stream is made of."""

    kinds: dict[Feature, Kind]  # of all features
    weights: tuple[int, ...] = (UNIT,)
    indexes: int = 1
    others: float = 0.05  # share of predictions, and of a tenth as many deletes and drops
    offset: float = 0.0  # of all labels
    scale: float = 1.0


MIXES = {
    "binary": Mix(dict.fromkeys(range(12), BINARY)),
    "numeric": Mix(dict.fromkeys(range(6), NUMERIC)),
    "mixed": Mix({each: (BINARY, NUMERIC)[each % 2] for each in range(9)}, (UNIT, ODD, 3 * UNIT, 1), 3, 0.1),
    "nominal": Mix(dict.fromkeys(range(5), NOMINAL)),
    "all": Mix({each: (BINARY, NOMINAL, NUMERIC)[each % 3] for each in range(9)}, (UNIT, ODD, 3 * UNIT), 2, 0.1),
    "far": Mix({each: (BINARY, NUMERIC)[each % 2] for each in range(6)}, offset=1e9),
}


class Stream:
    """Random events whose features say something of the label; 3 and 4, of one kind, are the same: they tie."""

    def __init__(self, seed: int, mix: Mix) -> None:
        self._rng = random.Random(seed)
        self._mix = mix

    def take(self, count: int) -> list[Event]:
        """Return the next events."""
        return [self._next() for _ in range(count)]

    def _next(self) -> Event:
        rng, mix = self._rng, self._mix
        x: dict[Feature, float] = {}
        y = rng.gauss(0, 0.3)
        for rank, (feature, kind) in enumerate(mix.kinds.items()):
            if rng.random() < 0.4:
                continue
            value = 1.0
            if kind == NUMERIC:
                value = round(rng.gauss(0, 1), 1 if rank % 2 else 15) * 10.0 ** (rank % 3 - 1)
            if kind == NOMINAL:
                value = float(
                    min(rng.randrange(5) ** 2 + (1 << 32) - 17, (1 << 32) - 1) if rng.random() < 0.9 else 2
                )
                y += value % 7 / 2
            x[feature] = value
            y += kind != NOMINAL and (value > 0.2 * 10.0 ** (rank % 3 - 1)) * (3.0, 0.1, 1.0)[rank % 3]
        if 3 in x and mix.kinds.get(4) == mix.kinds[3]:
            x[4] = x[3]
        op, kind_of_event = Op.INSERT, rng.random()
        if kind_of_event < mix.others:
            op = Op.PREDICT if kind_of_event < 0.9 * mix.others else Op.DELETE
            if kind_of_event > 0.98 * mix.others:
                op = Op.DROP
        return Event(op, x, mix.offset + mix.scale * y, rng.choice(mix.weights), rng.randrange(mix.indexes))


def of(observer: str, mix: Mix | None = None, **rest: Any) -> Settings:
    """Return settings for an observer, and for a mix."""
    if mix is not None:
        rest["kinds"] = {feature: each for feature, each in mix.kinds.items() if each != BINARY}
    return Settings(observer=observer, **rest)


def insert(*features: Feature, label: float = 0.0, **rest: Any) -> Event:
    """Return an insert of binary features."""
    return Event(Op.INSERT, dict.fromkeys(features, 1.0), label, **rest)


# --- long streams


@pytest.mark.parametrize("predict", PREDICT)
@pytest.mark.parametrize("name", MIXES)
def test_long_streams_agree_with_the_oracle(observer: str, name: str, predict: str) -> None:
    """Every prediction, split and tree is the oracle's to the bit, whatever the features, weights and labels."""
    pair = Pair(of(observer, MIXES[name], predict=predict, interval=0.9))
    stream = Stream(1, MIXES[name])
    for size in (1, 7, budget(800), budget(700), 1, budget(800)):
        pair.feed(stream.take(size))
        pair.check()
        pair.restored()
    if budget(10) == 10:
        assert max(pair.pool.sizes(key).splits for key in range(3)) > 1


@pytest.mark.parametrize("predict", PREDICT)
def test_names_are_ordered_by_their_bytes(observer: str, predict: str) -> None:
    """Features with names give the oracle's trees, and what nobody refers to is forgotten."""
    mix = Mix({word: (BINARY, NUMERIC)[at % 2] for at, word in enumerate(words(10))}, indexes=2, others=0.1)
    pair = Pair(of(observer, mix, names=True, predict=predict))
    stream = Stream(2, mix)
    for _ in range(4):
        pair.feed(stream.take(budget(200)))
        pair.check()
        pair.restored()
    for key in range(2):
        pair.feed([Event(Op.DROP, key=key)])
    pair.check()
    assert pair.pool.names is not None
    assert len(pair.pool.names) == sum(each == NUMERIC for each in mix.kinds.values())  # those declared


@pytest.mark.parametrize("predict", PREDICT)
def test_batches_of_any_size_give_the_same_trees(observer: str, predict: str) -> None:
    """Batches of 1, 7 and 1000 give the same answers, trees and sizes, and leave the same bytes."""
    mix = MIXES["mixed"]
    events = Stream(3, mix).take(budget(1000))
    seen = []
    for size in (1, 7, 1000):
        pool = of(observer, mix, predict=predict, interval=0.8).pool()
        got = [out for at in range(0, len(events), size) for out in outcomes(pool, events[at : at + size])]
        state = {name: array.tobytes() for name, array in pool.arrays().items() if name.split(".")[-1] != "trees"}
        seen.append((got, [(pool_columns(pool, key), pool.sizes(key)) for key in range(3)], state))
    assert seen[0] == seen[1] == seen[2]


SMALL: dict[Feature, Kind] = {0: NUMERIC, 1: BINARY, 2: NOMINAL, 3: NUMERIC, 4294967295: NUMERIC}
VALUES = st.sampled_from([-1e140, -1.0, -5e-324, -0.0, 0.0, 0.0004, 1e-9, 0.5, 2.0, 2.1, 1e140])
CATEGORIES = st.sampled_from([-1.0, 0.0, 1.0, 2.0, 2.5, 4294967295.0, 4294967296.0])


@settings(
    max_examples=budget(150),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_any_history_leads_to_what_the_oracle_says(observer: str, data: st.DataObject) -> None:
    """Whatever is learned, predicted, dropped and restored, pool and oracle agree to the bit."""
    options: dict[str, Any] = {"most": data.draw(st.sampled_from([2, 3, 99]))}
    if observer == "qo":
        options["radius"] = data.draw(st.sampled_from([None, 0.5]))
    pair = Pair(
        of(
            observer,
            Mix(SMALL),
            options=options,
            grace_period=data.draw(st.integers(1, 6)),
            split_confidence=data.draw(st.sampled_from([0.05, 0.5, 0.9])),
            tie_threshold=data.draw(st.sampled_from([0.0, 0.2, 0.6])),
            predict=data.draw(st.sampled_from(PREDICT)),
            interval=data.draw(st.sampled_from([None, 0.5, 0.9])),
            max_keys=data.draw(st.sampled_from([1, 9])),
            max_depth=data.draw(st.sampled_from([1, 2, 99])),
        )
    )
    labels = [0.0, 1.0, 1.0, 2.5, -1e9, 1e9, 1e9 + 1, 1e-9, 1e140, math.nan, math.inf]
    event = st.builds(
        Event,
        st.sampled_from([Op.INSERT] * 9 + [Op.PREDICT, Op.DROP, Op.DELETE]),
        st.fixed_dictionaries(
            {}, optional={at: CATEGORIES if kind == NOMINAL else VALUES for at, kind in SMALL.items()}
        ),
        st.sampled_from(labels if data.draw(st.booleans()) else labels[:4]),
        st.sampled_from([UNIT] * 5 + [HALF, ODD, 1, 0, -UNIT, 5 * UNIT]),
        st.integers(0, 1),
    )
    for _ in range(data.draw(st.integers(1, 3))):
        pair.feed(data.draw(st.lists(event, max_size=40)))
        pair.check()
        pair.restored()


# --- habits


def grown(observer: str, events: list[Event], **rest: Any) -> RegressionPool:
    """Return a pool that has learned the events, in batches of 100."""
    pool = of(observer, **rest).pool()
    for at in range(0, len(events), 100):
        outcomes(pool, events[at : at + 100])
    return pool


def test_an_absent_feature_is_a_zero(observer: str) -> None:
    """Explicit zeros, of either sign, and features left out give the same tree and the same predictions."""
    mix = replace(MIXES["mixed"], others=0.0)
    events = Stream(4, mix).take(budget(600))
    zero = [replace(event, x={feature: event.x.get(feature, -0.0) for feature in mix.kinds}) for event in events]
    kinds = {feature: kind for feature, kind in mix.kinds.items() if kind == NUMERIC}
    trees = [pool_columns(grown(observer, each, kinds=kinds), 0) for each in (events, zero)]
    assert trees[0] == trees[1]


@pytest.mark.parametrize(("offset", "scale"), [(1e9, 1.0), (-1e9, 1.0), (0.0, 2.0**-30)])
def test_labels_far_from_0_or_tiny_grow_the_same_tree(observer: str, offset: float, scale: float) -> None:
    """1e9 and a little, or labels of 1e-9, are split where labels of 1 are."""
    plain = Mix({0: NUMERIC, 1: BINARY, 2: BINARY, 3: NUMERIC}, others=0.0)
    kinds = {0: NUMERIC, 3: NUMERIC}
    whole = [replace(event, label=round(event.label * 2**20) / 2**20) for event in Stream(5, plain).take(800)]
    moved = [replace(event, label=offset + scale * event.label) for event in whole]
    a, b = (grown(observer, events, kinds=kinds, grace_period=50) for events in (whole, moved))
    assert a.sizes().splits > 1
    assert [row[:7] for row in pool_columns(a, 0)] == [row[:7] for row in pool_columns(b, 0)]
    assert b.tree().mean == pytest.approx(offset + scale * a.tree().mean, rel=1e-12 if offset else 1e-9, abs=0.0)
    a.check()
    b.check()


def test_the_scale_of_weights_changes_nothing(observer: str) -> None:
    """Weights times 8 grow the same tree, with the same linear models."""
    mix = replace(MIXES["mixed"], others=0.0, weights=(UNIT, HALF, 3 * UNIT))
    events = Stream(6, mix).take(budget(800))
    heavy = [replace(event, weight=8 * event.weight) for event in events]
    kinds = {feature: kind for feature, kind in mix.kinds.items() if kind == NUMERIC}
    a, b = (grown(observer, each, kinds=kinds, predict="linear") for each in (events, heavy))
    assert all(a.predict(event.x) == b.predict(event.x) for event in events[:50])
    assert [(*row[:7], row[8]) for row in pool_columns(a, 0)] == [(*row[:7], row[8]) for row in pool_columns(b, 0)]


def test_a_rare_feature_is_split_on(observer: str) -> None:
    """A word in one of a hundred examples that tells the label is found among a hundred that do not."""
    rng = random.Random(7)
    events = []
    for at in range(1000):
        x: dict[Feature, float] = {rng.randrange(1, 100): 1.0 for _ in range(5)}
        if at % 100 == 7:
            x[4294967295] = 1.0
        events.append(Event(Op.INSERT, x, 1e6 + 50.0 * (4294967295 in x) + rng.gauss(0, 1)))
    pool = grown(observer, events, grace_period=100, split_confidence=1e-3, tie_threshold=0.0)
    tree = pool.tree()
    assert tree.feature[0] == 4294967295
    assert pool.predict([4294967295]) == pytest.approx(1e6 + 50, abs=2)
    assert pool.predict([]) == pytest.approx(1e6, abs=1)


def test_ties_go_to_the_lowest_feature(observer: str) -> None:
    """Of features that say the same the lowest is split on, feature 0 like any other, once the bound is loose."""
    for features in ((0, 4), (4, 0), (9, 3)):
        events = [insert(*(features if at % 2 else ()), label=at % 2) for at in range(100)]
        assert grown(observer, events).tree().feature[0] == min(features)


def test_equal_labels_are_never_split(observer: str) -> None:
    """A leaf of one label makes no attempt, however long it waits."""
    events = [insert(at % 3, label=0.1) for at in range(200)]
    pool = grown(observer, events)
    assert pool.sizes() == (200, 0, 0, 1)
    assert pool.predict([1]) == 0.1


def test_a_weak_feature_is_split_on_and_one_that_says_nothing_is_not(observer: str) -> None:
    """A hundredth of the variance is worth a split where nothing else is; labels that balance are worth none."""
    for effect, splits in ((0.2, 1), (0.0, 0)):
        events = [
            insert(*([1] if at & 1 else []), label=(1.0 if at & 2 else -1.0) + effect * (at & 1))
            for at in range(400)
        ]
        pool = grown(observer, events, grace_period=400, split_confidence=0.05, tie_threshold=0.0)
        assert pool.sizes() == (400, 1, splits, splits + 1)


def test_depth_costs_no_recursion(observer: str) -> None:
    """A tree that is far deeper than Python's stack is grown, read, restored, dropped and checked."""
    pool = of(
        observer, kinds={0: NUMERIC}, options={}, grace_period=2, split_confidence=0.999, tie_threshold=9.0
    ).pool()
    depth = budget(1500)
    for at in range(depth):
        outcomes(pool, [Event(Op.INSERT, {0: at + 2.0 - side}, 2.0**-side * at) for side in (1, 0)])
    assert pool.tree().depth.max() > 0.9 * depth
    assert pool.predict({0: 1e9}) > 0
    pool.check()
    pool = of(observer, kinds={0: NUMERIC}).pool().restore(pool.arrays())
    pool.drop()
    assert (pool.node_count, pool.element_count, pool.alive) == (0, 0, 0)
    pool.check()


@pytest.mark.parametrize("predict", PREDICT)
def test_reading_changes_no_state(observer: str, predict: str) -> None:
    """Predictions and snapshots leave every array as it is."""
    mix = MIXES["mixed"]
    pool = grown(observer, Stream(8, mix).take(300), kinds={1: NUMERIC, 3: NUMERIC}, predict=predict)
    before = {name: array.tobytes() for name, array in pool.arrays().items()}
    assert math.isfinite(pool.predict({1: 0.3, 2: 1.0}))
    assert len(pool.tree().number) == pool.sizes().leaves + pool.sizes().splits
    pool.check()
    assert {name: array.tobytes() for name, array in pool.arrays().items()} == before


def test_an_empty_tree_says_that_it_knows_nothing(observer: str) -> None:
    """Without an example the prediction is nan, and the tree has no nodes."""
    pool = of(observer).pool()
    assert math.isnan(pool.predict([1]))
    assert math.isnan(pool.predict([1], key=7))
    assert pool.tree(3).feature == []
    assert pool.sizes(99) == (0, 0, 0, 0)
    pool.check()


# --- linear models of leaves


@pytest.mark.parametrize("predict", ["linear", "adaptive"])
def test_linear_leaves_learn_what_is_linear(observer: str, predict: str) -> None:
    """Words that each add to the label, and a number that does, are learned better than by any mean."""
    rng = random.Random(9)
    effect = {word: rng.gauss(0, 3) for word in range(60)}
    events = []
    for _ in range(1_500):
        x: dict[Feature, float] = {rng.randrange(60): 1.0 for _ in range(6)}
        label = sum(effect[int(word)] for word in x)
        x[99] = rng.gauss(1_000.0, 0.01)
        events.append(Event(Op.INSERT, x, label + 500.0 * (x[99] - 1_000.0) + rng.gauss(0, 0.1)))
    errors = []
    for way in ("mean", predict):
        pool = of(observer, kinds={99: NUMERIC}, predict=way, split_confidence=1e-7, tie_threshold=0.0).pool()
        got = [float.fromhex(out.predicted) for out in outcomes(pool, events)[1_000:]]
        errors.append(
            np.mean([(event.label - said) ** 2 for event, said in zip(events[1_000:], got, strict=True)])
        )
        pool.check()
    assert errors[1] < 0.05 * errors[0]


def test_predictions_stay_within_the_labels_seen(observer: str) -> None:
    """However far a line leads, no prediction is beyond the labels that its tree has learned."""
    events = [Event(Op.INSERT, {0: x / 100}, x / 10) for x in range(200)]
    pool = grown(observer, events, kinds={0: NUMERIC}, predict="linear", split_confidence=1e-9, tie_threshold=0.0)
    assert pool.predict({0: 1e140}) == 19.9
    assert pool.predict({0: -1e140}) == 0.0
    assert 0.0 < pool.predict({0: 0.9}) < 19.9


@pytest.mark.parametrize("predict", ["linear", "adaptive"])
def test_no_value_or_label_breaks_a_linear_model(observer: str, predict: str) -> None:
    """The largest and least numbers leave finite models and predictions within the labels."""
    rng = random.Random(10)
    most = (1e140, -1e140, 5e-324, -5e-324, 1e-160, 1e-9, 1.0, 3.0, 0.0)
    kinds: dict[Feature, Kind] = dict.fromkeys(range(3), NUMERIC)
    pool = of(observer, kinds=kinds, predict=predict, grace_period=30).pool()
    for _ in range(budget(40)):
        events = [
            Event(
                Op.INSERT,
                {0: rng.choice(most), 1: rng.choice(most), 2: rng.choice(most), 9: 1.0},
                rng.choice(most),
                rng.choice((UNIT, 1, 1 << 50)),
            )
            for _ in range(20)
        ]
        assert all(
            out.predicted == "nan" or abs(float.fromhex(out.predicted)) <= 1e140 for out in outcomes(pool, events)
        )
        pool.check()
    assert pool.sizes().events == budget(40) * 20


@pytest.mark.parametrize("heavy", [1 << 60, 1 << 61, 3 << 59])
def test_a_heavy_example_after_light_ones_is_learned(observer: str, heavy: int) -> None:
    """Its weight times the examples of its leaf is beyond an int64; it is learned as the oracle learns it."""
    pair = Pair(of(observer, predict="linear"))
    pair.feed([insert(1, 2 + at % 2, label=float(at % 2)) for at in range(7)])
    pair.feed([insert(1, 2, label=5.0, weight=heavy), Event(Op.PREDICT, {1: 1.0, 3: 1.0})])
    pair.check()


@pytest.mark.parametrize("predict", PREDICT)
def test_a_light_side_of_a_split_has_a_mean_among_the_labels(observer: str, predict: str) -> None:
    """Where heavy examples have a feature and a light one has not, rounding does not make up its label."""
    rng = random.Random(18)
    splits = 0
    for _ in range(20):
        pair = Pair(of(observer, grace_period=40, split_confidence=0.9, predict=predict))
        events = [insert(label=1e6, weight=1)]
        events += [insert(1, label=rng.gauss(0, 1), weight=rng.randrange(1 << 45, 1 << 46)) for _ in range(39)]
        pair.feed(events)
        splits += pair.pool.sizes().splits
        assert -1e4 < pair.pool.predict([]) < 1.01e6
    assert splits > 5


def test_the_order_of_names_changes_no_prediction(observer: str) -> None:
    """Names that have other numbers, as happens where numbers are given out again, lead to the same bits."""
    names = words(10)
    mix = Mix({word: (BINARY, NUMERIC)[at % 2] for at, word in enumerate(names)}, others=0.0)
    events = Stream(11, mix).take(300)
    said = []
    for order in (1, -1):
        pool = of(observer, mix, names=True, predict="linear").pool()
        assert pool.names is not None
        pool.names.intern_all(names[::order])
        batch = columns_of(events, pool, None, np.float64)
        said.append(pool.apply(batch).predicted.tobytes())
    assert said[0] == said[1]


def test_the_leaves_of_a_split_take_over_its_model(observer: str) -> None:
    """Right after a split both leaves say what the leaf said before, also of features that they have not seen."""
    events = [
        insert(*([1] if at % 2 else []), *([2] if at % 3 else []), label=10.0 * (at % 2) + (at % 3))
        for at in range(40)
    ]
    pair = Pair(of(observer, predict="linear", grace_period=40))
    pair.feed(events)
    whole = grown(observer, events, predict="linear", grace_period=41)  # one example from its first attempt
    assert (whole.sizes().splits, pair.pool.sizes().splits) == (0, 1)
    for x in ([], [1], [2], [1, 2], [7]):
        assert pair.pool.predict(x) == whole.predict(x)
    pair.feed([insert(1, 2, label=12.0), insert(2, label=1.0), Event(Op.DROP)])
    pair.check()
    assert pair.pool.slots == 0


def test_an_adaptive_leaf_predicts_by_what_was_less_wrong(observer: str) -> None:
    """A line is followed where there is one; where labels are noise, the mean is."""
    rng = random.Random(12)
    for slope, better in ((5.0, "linear"), (0.0, "mean")):
        events = []
        for _ in range(200):
            x = rng.gauss(0, 1)
            events.append(Event(Op.INSERT, {0: x}, slope * x + rng.gauss(0, 1)))
        both = [
            grown(observer, events, kinds={0: NUMERIC}, predict=way, max_depth=0) for way in ("adaptive", better)
        ]
        assert both[0].predict({0: 1.5}) == both[1].predict({0: 1.5})
        others = {"linear": "mean", "mean": "linear"}[better]
        other = grown(observer, events, kinds={0: NUMERIC}, predict=others, max_depth=0)
        assert other.predict({0: 1.5}) != both[0].predict({0: 1.5})


# --- intervals


@pytest.mark.parametrize(("share", "predict"), [(0.5, "mean"), (0.9, "linear"), (0.9, "adaptive"), (0.99, "mean")])
def test_intervals_hold_the_share_asked_for(observer: str, share: float, predict: str) -> None:
    """Of leaves that differ, and of noise that is not normal, the share of labels within is what was asked for."""
    rng = random.Random(13)
    events = []
    for _ in range(4_000):
        x = rng.gauss(0, 1)
        noise = rng.expovariate(1.0) * (5.0 if x > 0 else 0.2)
        events.append(Event(Op.INSERT, {0: x, 1: 1.0}, 3.0 * x + noise))
    pool = of(
        observer,
        kinds={0: NUMERIC},
        options={},
        predict=predict,
        interval=share,
        grace_period=200,
        tie_threshold=0.05,
    ).pool()
    batch = columns_of(events, pool, None, np.float64)
    answers = pool.apply(batch)
    assert answers.margin is not None
    told = ~np.isnan(answers.margin)
    assert told[20:].all()
    assert not told[:10].any()
    within = np.abs(batch.label - answers.predicted)[told] <= answers.margin[told]
    assert within.mean() == pytest.approx(share, abs=0.01)
    assert within[:1_000].mean() == pytest.approx(share, abs=0.03)
    high = batch.value[::2] > 0
    margin = answers.margin
    assert np.nanmean(margin[high]) > 2.0 * np.nanmean(margin[~high]), "leaves differ in how far they are off"


def test_intervals_recover_after_a_drift(observer: str) -> None:
    """Where noise is suddenly ten times as large, intervals are as wide 200 examples later, and hold again."""
    rng = random.Random(14)
    events = [Event(Op.INSERT, {0: 1.0}, rng.gauss(0, 1 if at < 2_000 else 10)) for at in range(4_000)]
    pool = of(observer, interval=0.9).pool()
    batch = columns_of(events, pool, None, np.float64)
    answers = pool.apply(batch)
    assert answers.margin is not None
    within = np.abs(batch.label - answers.predicted) <= answers.margin
    assert within[2_000:2_020].mean() < 0.6
    assert within[2_200:].mean() == pytest.approx(0.9, abs=0.02)
    assert answers.margin[-1_000:].mean() == pytest.approx(16.4, rel=0.15)


def test_intervals_of_labels_that_are_always_the_same_have_no_width(observer: str) -> None:
    """Where no prediction was ever off, the interval is the prediction alone, until a label differs."""
    pool = of(observer, interval=0.9).pool()
    assert of(observer).pool().apply(columns_of([insert(1)], pool, None, np.float64)).margin is None
    events = [*(insert(1, label=3.5) for _ in range(50)), *(insert(1, label=9.5) for _ in range(30))]
    answers = pool.apply(columns_of(events, pool, None, np.float64))
    assert answers.margin is not None
    assert np.isnan(answers.margin[:11]).all()
    assert (answers.margin[11:51] == 0.0).all()
    assert (answers.margin[51:] > 0.0).all()


# --- nominal features


def test_a_split_on_a_nominal_feature_has_a_branch_for_each_category(observer: str) -> None:
    """Categories and examples without the feature part; one that comes later is answered by the node above."""
    pool = of(observer, kinds={1: NOMINAL}, grace_period=80).pool()
    label = {0.0: -4.0, 3.0: 1.0, 7.0: 8.0, 4294967295.0: 20.0}
    events = [Event(Op.INSERT, {1: value}, label[value]) for value in [*label] * 20]
    (split,) = pool.apply(columns_of(events, pool, None, np.float64)).splits
    assert (split.feature, split.kind, split.branches) == (1, NOMINAL, [0, 3, 7, 4294967295])
    assert [side.mean for side in split.sides] == pytest.approx(list(label.values()))
    assert [pool.predict({1: value}) for value in label] == pytest.approx(list(label.values()))
    assert pool.predict({1: 99.0}) == pool.tree().mean[0] == pytest.approx(6.25)
    pool.insert({1: 99.0}, label=-50.0)
    assert pool.predict({1: 99.0}) == -50.0
    assert pool.tree().branch.tolist() == [0, 0, 3, 7, 99, 4294967295]
    pool.check()


def test_a_split_may_have_more_branches_than_there_are_nodes(observer: str) -> None:
    """A feature of a thousand categories is split on at once, in arrays that grow as often as it takes."""
    pool = of(observer, kinds={1: NOMINAL}, grace_period=4_000).pool()
    events = [Event(Op.INSERT, {1: at % 1_000 + 1.0}, float(at % 1_000)) for at in range(4_000)]
    assert [each.predicted != "nan" for each in outcomes(pool, events)] == [False] + [True] * 3_999
    assert pool.sizes() == (4_000, 1, 1, 1_000)
    assert pool.predict({1: 777.0}) == 776.0
    pool.check()


# --- a limit of memory

LIMITED: dict[Feature, Kind] = {each: (BINARY, NUMERIC, NOMINAL)[each % 3] for each in range(12)}


def observed(pool: RegressionPool) -> int:
    """Return the bytes of what leaves saw."""
    parts = ("features.", "elements.", "models.features")
    return sum(array.nbytes for name, array in pool.arrays().items() if name.startswith(parts))


@pytest.mark.parametrize("predict", PREDICT)
def test_the_limit_of_memory_is_kept_and_leaves_sleep(observer: str, predict: str) -> None:
    """What leaves saw never takes more than the limit; trees grow on, all labels count, and invariants hold."""
    mix = Mix(dict(LIMITED), indexes=3, others=0.02)
    pool = of(observer, mix, predict=predict, interval=0.9, memory_limit=30_000).pool()
    free = of(observer, mix, predict=predict).pool()
    fixed, most = observed(pool), 0
    stream = Stream(15, mix)
    for _ in range(8):
        events = stream.take(budget(200))
        outcomes(free, events)
        got = outcomes(pool, events)
        pool.check()
        most = max(most, pool.asleep)
        assert observed(pool) <= 30_000 + fixed
        assert all(abs(float.fromhex(each.predicted)) < 50 for each in got if each.predicted != "nan")
    if budget(10) == 10:
        assert most > 0, "a stream like this does not exercise the limit"
        assert observed(free) > 30_000
        assert sum(pool.sizes(key).splits for key in range(3)) > 0
    assert [pool.sizes(key).events for key in range(3)] == [free.sizes(key).events for key in range(3)]


def test_the_limit_of_memory_acts_at_events(observer: str) -> None:
    """With a limit, too, batches of any size give the same answers and trees, and restored pools do."""
    mix = Mix(dict(LIMITED), indexes=3, others=0.02)
    events = Stream(16, mix).take(budget(900))
    chosen = of(observer, mix, predict="adaptive", memory_limit=20_000)
    seen = []
    for size in (1, 7, 1000):
        pool, got = chosen.pool(), []
        for at in range(0, len(events), size):
            got += outcomes(pool, events[at : at + size])
            if size == 7:
                pool = chosen.pool().restore({name: array.copy() for name, array in pool.arrays().items()})
        seen.append((got, pool.asleep, [pool_columns(pool, key) for key in range(3)]))
    assert seen[0] == seen[1] == seen[2]


def test_a_leaf_that_keeps_all_values_and_never_splits_is_bounded(observer: str) -> None:
    """Of two numbers that tie no more values are kept than fit; the mean stays that of all labels."""
    kinds: dict[Feature, Kind] = {0: NUMERIC, 1: NUMERIC}
    pool = of(observer, kinds=kinds, tie_threshold=0.0, memory_limit=10_000).pool()
    rng = random.Random(17)
    labels = [rng.gauss(0, 1) for _ in range(budget(2_000))]
    for label in labels:
        pool.insert(dict.fromkeys((0, 1), rng.random()), label=label)
        assert pool.element_count <= 10_000 // 2 // 72
    assert pool.sizes().splits == pool.asleep == 0
    assert pool.predict([]) == pytest.approx(np.mean(labels))
    pool.check()


def test_an_example_longer_than_the_limit_is_still_learned(observer: str) -> None:
    """The limit gives way to the longest example, and to nothing else."""
    pool = of(observer, memory_limit=1, predict="linear").pool()
    for label in (0.0, 1.0, 0.0, 1.0):
        pool.insert(list(range(200)), label=label)
        pool.insert([], label=label)
        pool.check()
    assert pool.slots <= 400
    assert pool.sizes().events == 8
    assert 0.0 <= pool.predict([1]) <= 1.0


# --- refusals


@pytest.mark.parametrize(("share", "within"), [(math.nextafter(1.0, 0.0), 29), (5e-324, 0)])
def test_the_greatest_and_the_least_share_have_intervals(observer: str, share: float, within: int) -> None:
    """Whatever is between 0 and 1 may be asked for: the widest intervals hold all these labels, the least none."""
    pool = of(observer, interval=share).pool()
    events = [insert(1, label=float(at % 2)) for at in range(40)]
    answers = pool.apply(columns_of(events, pool, None, np.float64))
    assert answers.margin is not None
    residual = np.abs(np.array([event.label for event in events]) - answers.predicted)
    assert np.count_nonzero(residual <= answers.margin) == within
    assert np.isnan(answers.margin).sum() == 11


def test_what_is_refused_changes_nothing(observer: str) -> None:
    """Deletes, wrong labels, weights and values, and one tree too many are refused by status."""
    pool = of(observer, max_keys=1).pool()
    outcomes(pool, [insert(1, label=1.0), insert(2)])
    before = {name: array.copy() for name, array in pool.arrays().items()}
    wrong = [
        (insert(1, key=5), Status.TOO_MANY_KEYS),
        (replace(insert(1), op=Op.DELETE), Status.CANNOT_FORGET),
        (insert(1, label=math.nan), Status.WRONG_LABEL),
        (insert(1, label=-math.inf), Status.WRONG_LABEL),
        (insert(1, label=1e141), Status.WRONG_LABEL),
        (insert(1, weight=-1), Status.WRONG_WEIGHT),
        (insert(1, weight=0), Status.IGNORED),
        (insert(1, weight=MAX_TOTAL), Status.COUNT_OVERFLOW),
        (Event(Op.INSERT, {1: math.nan}), Status.WRONG_VALUE),
        (Event(Op.INSERT, {1: math.inf}), Status.WRONG_VALUE),
        (Event(Op.PREDICT, {1: -1e141}), Status.WRONG_VALUE),
    ]
    got = outcomes(pool, [event for event, _ in wrong])
    assert [each.status for each in got] == [status for _, status in wrong]
    for name, array in pool.arrays().items():
        assert name == "trees" or np.array_equal(array, before[name]), name
    pool.check()


def test_the_weight_of_a_tree_has_a_bound_whatever_its_leaves_hold(observer: str) -> None:
    """What all leaves have learned stays below 2^62 units, also from a checkpoint that did not note that sum."""
    pair = Pair(of(observer, grace_period=50))
    events = [insert(at & 1, 3, label=float(at & 1), weight=1 << 51) for at in range(2_060)]
    got = pair.feed(events)
    assert [each.status for each in got] == [Status.APPLIED] * 2_047 + [Status.COUNT_OVERFLOW] * 13
    assert pair.pool.sizes().splits > 0
    pair.pool.check()
    arrays = {name: array.copy() for name, array in pair.pool.arrays().items()}
    arrays["trees"][:, LEARNED] = arrays["trees"][:, LEARNED] > 0
    pair.pool = pair.settings.pool().restore(arrays)
    pair.feed([replace(events[0], weight=(1 << 51) - 1), events[0]])
    pair.pool.check()


def test_wrong_settings_are_refused_with_a_reason(observer: str) -> None:
    """What cannot be is refused when the pool is made."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"observer": "none"}, "expected an observer of"),
        ({"options": {"width": 1}}, f"expected options of {observer}"),
        ({"predict": "median"}, "mean, linear, adaptive, got 'median'"),
        ({"interval": 1.0}, "above 0 and below 1"),
        ({"interval": 90.0}, "above 0 and below 1"),
        ({"grace_period": 0}, "at least 1"),
        ({"split_confidence": 0.0}, "between 0 and 1"),
        ({"tie_threshold": -1.0}, "at least 0"),
        ({"kinds": {1: Kind.QUANTISED}}, "binary, nominal and numeric features only, got QUANTISED"),
        ({"memory_limit": 0}, "memory_limit of at least 1, or None, got 0"),
        ({"kinds": {b"a": NUMERIC}}, "feature id"),
        ({"kinds": {1: NUMERIC}, "names": True}, "names"),
    ]
    for changed, reason in wrong:
        with pytest.raises(ValueError, match=reason):
            RegressionPool(**{"observer": observer, **changed})


def test_one_example_at_a_time_tells_what_is_wrong(observer: str) -> None:
    """The interface for one example raises where an example is not one."""
    pool = of(observer).pool()
    assert pool.learn([3, 1], 1.0) == Status.APPLIED
    assert pool.learn({1: 2.0, 7: 0.0}, 4.0, weight=0.5) == Status.APPLIED
    assert pool.predict([1]) == 2.0
    wrong: list[tuple[Any, dict[str, Any]]] = [
        ([1, 1], {"label": 0.0}),
        ([1], {"label": math.nan}),
        ([1], {"label": 0.0, "weight": -1.0}),
        ([1], {"label": 0.0, "weight": math.nan}),
        ({1: math.nan}, {"label": 0.0}),
        ([b"name"], {"label": 0.0}),
        ([1 << 32], {"label": 0.0}),
        ([1], {"label": 0.0, "key": -1}),
    ]
    for x, rest in wrong:
        with pytest.raises(ValueError, match="expected"):
            pool.learn(x, **rest)
    assert pool.sizes().events == 2
    pool.drop()
    assert (pool.alive, pool.sizes().events) == (0, 0)
    pool.check()
