"""The contract of trees, over every policy and criterion, against the oracle in naive_trees.py."""

import random
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT
from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.trees.policies import POLICIES
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from algorithms.trees.state import LEARNED
from tests.oracles.naive import ids, words
from tests.oracles.naive_trees import KINDS
from tests.oracles.tree_parts import Event, Feature, Settings, nodes_of
from tests.oracles.tree_streams import Mix, Pair, Stream, outcomes, pool_columns
from tests.support.examples import budget

BINARY, NOMINAL, NUMERIC, QUANTISED = Kind
EXACT = [kind for kind in KINDS if POLICIES[kind[0]].only_binary]
HALF, ODD = UNIT // 2, round(0.3 * UNIT)

pytestmark = pytest.mark.parametrize("kind", KINDS, ids="-".join)
TreeKind = tuple[str, str]

MIXES = {
    "binary": Mix(dict.fromkeys(ids(14), BINARY)),
    "many": Mix(dict.fromkeys(ids(120), BINARY), dense=0.2),
    "keys": Mix(dict.fromkeys(ids(10), BINARY), indexes=4, weights=(UNIT, 2 * UNIT, HALF), others=0.1),
    "weights": Mix(dict.fromkeys(ids(12), BINARY), weights=(UNIT, ODD, 1, 3 * ODD)),
    "classes": Mix(dict.fromkeys(ids(12), BINARY), classes=4),
    "nominal": Mix(dict.fromkeys(range(9), NOMINAL), classes=3, indexes=2),
    "numeric": Mix(dict.fromkeys(range(7), NUMERIC)),
    "mixed": Mix({each: list(Kind)[each % 4] for each in range(12)}, classes=3, weights=(UNIT, ODD), indexes=2),
    "quantised": Mix(dict.fromkeys(range(7), QUANTISED), weights=(UNIT, ODD)),
}


def of(kind: TreeKind, mix: Mix | None = None, **rest: Any) -> Settings:
    """Return settings for a policy and criterion, and for a mix."""
    if mix is not None:
        rest["classes"] = mix.classes
        rest["kinds"] = {feature: each for feature, each in mix.kinds.items() if each != BINARY}
    return Settings(policy=kind[0], criterion=kind[1], **rest)


def mixes_of(kind: TreeKind) -> list[str]:
    """Return the mixes that a policy serves."""
    plain = [name for name, mix in MIXES.items() if mix.classes == 2 and set(mix.kinds.values()) == {BINARY}]
    return plain if kind in EXACT else list(MIXES)


def insert(*features: Feature, label: int = 0, **rest: Any) -> Event:
    """Return an insert of binary features."""
    return Event(Op.INSERT, dict.fromkeys(features, 1.0), label, **rest)


# --- long streams


def test_long_streams_agree_with_the_oracle(kind: TreeKind) -> None:
    """Every prediction, loss, split and tree is the oracle's to the bit, whatever features, classes, weights."""
    for seed, name in enumerate(mixes_of(kind)):
        predict = list(Predict)[seed % len(Predict)]
        pair = Pair(of(kind, MIXES[name], predict=predict))
        stream = Stream(seed, MIXES[name])
        for size in (1, 7, budget(300), budget(200), 1, budget(300)):
            pair.feed(stream.take(size))
            pair.check()
            pair.restored()
        if budget(10) == 10:
            assert max(pair.pool.sizes(key).splits for key in range(4)) > 0, f"{name}: no tree grew"


def test_leaves_predict_as_the_oracle_says(kind: TreeKind) -> None:
    """Majority, naive Bayes and the better of them, by kinds of features."""
    for name in {"binary", "mixed"} & set(mixes_of(kind)):
        for predict in Predict:
            pair = Pair(of(kind, MIXES[name], predict=predict))
            pair.feed(Stream(5, replace(MIXES[name], others=0.3)).take(budget(300)))


def test_names_are_ordered_by_their_bytes(kind: TreeKind) -> None:
    """Features with names give the oracle's trees, and what nobody refers to is forgotten."""
    mix = Mix(dict.fromkeys(words(12), BINARY), indexes=2, others=0.1)
    pair = Pair(of(kind, mix, names=True))
    stream = Stream(1, mix)
    for _ in range(4):
        pair.feed(stream.take(budget(150)))
        pair.check()
        pair.restored()
    for key in range(2):
        pair.feed([Event(Op.DROP, key=key)])
    pair.check()
    assert pair.pool.names is not None
    assert len(pair.pool.names) == 0


def test_batches_of_any_size_give_the_same_trees(kind: TreeKind) -> None:
    """Batches of 1, 7 and 1000 give the same answers, trees and sizes."""
    for name in mixes_of(kind)[::2]:
        events = Stream(2, MIXES[name]).take(budget(500))
        seen = []
        for size in (1, 7, 1000):
            pool = of(kind, MIXES[name], predict=Predict.ADAPTIVE).pool()
            got = [out for at in range(0, len(events), size) for out in outcomes(pool, events[at : at + size])]
            seen.append((got, [(pool_columns(pool, key), pool.sizes(key)) for key in range(4)]))
        assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("snapshots", [Emit(When.CHANGE), Emit(When.EVERY, 7), Emit(When.EVERY_MS, 40)])
def test_snapshots_are_taken_when_they_are_due(kind: TreeKind, snapshots: Emit) -> None:
    """After every split, every n examples or in every period of event time: the tree as it is then."""
    mix = MIXES["keys"]
    rng = random.Random(4)
    events = [replace(event, time=5 * at + rng.randrange(30)) for at, event in enumerate(Stream(6, mix).take(400))]
    pair = Pair(of(kind, mix, snapshots=snapshots))
    got = [out for at in range(0, len(events), 50) for out in pair.feed(events[at : at + 50])]
    assert sum(out.snapshot is not None for out in got) > 3


def test_what_is_told_does_not_depend_on_how_names_came_to_be_interned(kind: TreeKind) -> None:
    """Batches of any size give the same answers to the bit, though names get other numbers in each."""
    kinds = [BINARY] if kind in EXACT else [BINARY, NUMERIC, QUANTISED]
    mix = Mix({word: kinds[at % len(kinds)] for at, word in enumerate(words(14))})
    events = Stream(8, replace(mix, indexes=3, others=0.2)).take(budget(400))
    seen = []
    for size in (1, 9, 1000):
        pool = of(kind, mix, predict=Predict.NAIVE_BAYES, names=True).pool()
        seen.append([out for at in range(0, len(events), size) for out in outcomes(pool, events[at : at + size])])
    assert seen[0] == seen[1] == seen[2]


SMALL: dict[Feature, Kind] = {
    0: BINARY,
    1: NOMINAL,
    2: NUMERIC,
    3: BINARY,
    4: QUANTISED,
    7: QUANTISED,
    4294967295: NUMERIC,
}


@settings(
    max_examples=budget(60),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_any_history_leads_to_what_the_oracle_says(kind: TreeKind, data: st.DataObject) -> None:
    """Whatever is learned, predicted, dropped and restored, pool and oracle agree to the bit."""
    only = kind in EXACT
    features: dict[Feature, Kind] = dict.fromkeys(range(5), BINARY) if only else SMALL
    mix = Mix(features, classes=2 if only else data.draw(st.integers(2, 3)))
    pair = Pair(
        of(
            kind,
            mix,
            predict=data.draw(st.sampled_from(Predict)),
            grace_period=data.draw(st.integers(1, 6)),
            check_every=data.draw(st.integers(1, 6)),
            split_confidence=data.draw(st.sampled_from([0.05, 0.5, 0.9])),
            tie_threshold=data.draw(st.sampled_from([0.0, 0.2, 0.6])),
            max_keys=data.draw(st.sampled_from([1, 9])),
            max_depth=data.draw(st.sampled_from([1, 2, 99])),
            radius=data.draw(st.sampled_from([None, None, 0.01, 1.0])),
            radius_fraction=data.draw(st.sampled_from([0.1, 0.5])),
            max_slots=data.draw(st.sampled_from([2, 3, 256])),
        )
    )
    values = {
        BINARY: st.sampled_from([0.0, 1.0, -2.5]),
        NOMINAL: st.integers(0, 3).map(float),
        NUMERIC: st.sampled_from([-1e9, -1.0, 0.0, 1e-9, 0.5, 2.0, 1e140]),
        QUANTISED: st.sampled_from([-1e9, -1.0, -5e-324, 0.0, 5e-324, 1e-9, 0.5, 2.0, 2.1, 1e140]),
    }
    event = st.builds(
        Event,
        st.sampled_from([Op.INSERT] * 9 + [Op.PREDICT, Op.DROP, Op.DELETE]),
        st.fixed_dictionaries({}, optional={feature: values[each] for feature, each in features.items()}),
        st.integers(-1, mix.classes) if data.draw(st.booleans()) else st.integers(0, mix.classes - 1),
        st.sampled_from([UNIT] * 5 + [HALF, ODD, 1, 0, -UNIT, 5 * UNIT]),
        st.integers(0, 1),
    )
    for _ in range(data.draw(st.integers(1, 3))):
        pair.feed(data.draw(st.lists(event, max_size=40)))
        pair.check()
        pair.restored()


# --- what each policy is for


def test_a_node_that_proves_wrong_is_split_anew(kind: TreeKind) -> None:
    """Where another feature comes to tell the labels, EFDT gives up what it had; the others mend it below."""
    pair = Pair(of(kind, split_confidence=0.05, tie_threshold=0.05))
    for at in range(1200):
        label = at & 1
        old = label if at < 200 else at >> 1 & 1
        x: dict[Feature, float] = {1: float(old), 2: float(label if at % 10 else 1 - label)}
        pair.feed([Event(Op.INSERT, x, label)])
    tree = pair.pool.tree()
    assert tree.feature[0] == (2 if POLICIES[kind[0]].keeps else 1)
    pair.check()


def test_delay_is_counted_from_when_a_leaf_could_have_split(kind: TreeKind) -> None:
    """Measuring changes no tree; who tries after every example is never late."""
    if kind in EXACT:
        with pytest.raises(ValueError, match="without delay"):
            of(kind, measure_delay=True).pool()
        return
    for name in mixes_of(kind)[::3]:
        events = Stream(3, replace(MIXES[name], indexes=1)).take(budget(500))
        for period in (1, 30):
            pools = [
                of(kind, MIXES[name], grace_period=period, measure_delay=measure).pool()
                for measure in (False, True)
            ]
            assert outcomes(pools[0], events) == outcomes(pools[1], events)
            assert pool_columns(pools[0], 0) == pool_columns(pools[1], 0)
            sizes = pools[1].sizes()
            if kind[0] == "periodic":
                assert (sizes.waited > 0) == (period > 1 and sizes.splits > 0)


# --- refusals


def test_what_is_refused_changes_nothing(kind: TreeKind) -> None:
    """Deletes, wrong labels, weights and values, and one tree too many are refused by status."""
    pool = of(kind, max_keys=1).pool()
    outcomes(pool, [insert(1, label=1), insert(2)])
    before = {name: array.copy() for name, array in pool.arrays().items()}
    wrong = [
        (insert(1, key=5), Status.TOO_MANY_KEYS),
        (replace(insert(1), op=Op.DELETE), Status.CANNOT_FORGET),
        (insert(1, label=2), Status.WRONG_LABEL),
        (insert(1, label=-1), Status.WRONG_LABEL),
        (insert(1, weight=-1), Status.WRONG_WEIGHT),
        (insert(1, weight=0), Status.IGNORED),
        (insert(1, weight=MAX_TOTAL), Status.COUNT_OVERFLOW),
        (Event(Op.INSERT, {1: float("nan")}), Status.WRONG_VALUE),
        (Event(Op.INSERT, {1: float("inf")}), Status.WRONG_VALUE),
        (Event(Op.PREDICT, {1: -1e141}), Status.WRONG_VALUE),
    ]
    got = outcomes(pool, [event for event, _ in wrong])
    assert [each.status for each in got] == [status for _, status in wrong]
    for name, array in pool.arrays().items():
        assert name == "trees" or np.array_equal(array, before[name]), name
    pool.check()


def heavy_events(count: int) -> list[Event]:
    """Return examples of the largest weight that a worker takes, whose features tell both bits of the class."""
    return [
        Event(Op.INSERT, {1: float(at & 1), 2: float(at >> 1 & 1), 3: 1.0}, at & 3, weight=1 << 51)
        for at in range(count)
    ]


def test_the_weight_of_a_tree_has_a_bound_whatever_its_nodes_hold(kind: TreeKind) -> None:
    """2,047 examples of 2^51 units weigh less than 2^62, one more is refused: also where inner nodes count all."""
    two = kind in EXACT
    settings = of(kind, classes=2 if two else 4, grace_period=50, predict=Predict.ADAPTIVE, evaluate=True)
    pair = Pair(settings)
    events = [replace(event, label=event.label & 1) if two else event for event in heavy_events(2_060)]
    got = pair.feed(events)
    assert [each.status for each in got] == [Status.APPLIED] * 2_047 + [Status.COUNT_OVERFLOW] * 13
    assert pair.pool.sizes().splits > 0
    pair.check()
    pair.restored()
    pair.feed([replace(events[0], weight=1 << 50), replace(events[0], weight=(1 << 51) - 1), events[0]])
    pair.feed([insert(1, key=1, weight=MAX_TOTAL - 1), insert(2, key=1, weight=1), insert(2, key=2)])
    (answer,) = pair.feed([Event(Op.PREDICT, {1: 1.0, 9: 1.0}, key=1)])
    assert [float.fromhex(weight) for weight in answer.weights[:2]] == [2.0**42, 0.0]
    pair.check()


def test_a_checkpoint_that_did_not_note_what_trees_have_learned_is_taken_over(kind: TreeKind) -> None:
    """Earlier versions noted that a tree lives, and nothing more: its weight follows from its nodes."""
    mix = MIXES["keys"]
    pair = Pair(of(kind, mix))
    stream = Stream(3, mix)
    pair.feed(stream.take(400))
    arrays = {name: array.copy() for name, array in pair.pool.arrays().items()}
    learned = arrays["trees"][:, LEARNED].copy()
    assert (learned > 1).any()
    arrays["trees"][:, LEARNED] = learned > 0
    pair.pool = pair.settings.pool().restore(arrays)
    assert pair.pool.arrays()["trees"][:, LEARNED].tolist() == learned.tolist()
    pair.feed(stream.take(100))
    pair.check()


def test_wrong_settings_are_refused_with_a_reason(kind: TreeKind) -> None:
    """What cannot be is refused when the pool is made."""
    rest: dict[str, Any] = {"policy": kind[0], "criterion": kind[1]}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"policy": "none"}, "expected a policy of"),
        ({"criterion": "sqrt"}, "entropy or gini"),
        ({"classes": 1}, "at least 2 classes"),
        ({"grace_period": 0}, "at least 1"),
        ({"split_confidence": 0.0}, "between 0 and 1"),
        ({"tie_threshold": -1.0}, "at least 0"),
    ]
    if not POLICIES[kind[0]].limits:
        wrong.append(({"memory_limit": 10_000}, "takes no memory_limit"))
    if kind in EXACT:
        wrong += [({"classes": 3}, "two classes"), ({"kinds": {1: NUMERIC}}, "binary features")]
    for changed, reason in wrong:
        with pytest.raises(ValueError, match=reason):
            TreePool(**{**rest, **changed})


def test_one_example_at_a_time_tells_what_is_wrong(kind: TreeKind) -> None:
    """The interface for one example raises where an example is not one, and answers in class weights."""
    pool = of(kind, tie_threshold=0.0, split_confidence=1e-7).pool()
    assert pool.learn([3, 1], 1) == Status.APPLIED
    assert pool.learn({1: 2.0, 7: 0.0}, 0, weight=0.5) == Status.APPLIED
    assert pool.predict([1]).tolist() == [0.5, 1.0]
    wrong: list[tuple[Any, dict[str, Any]]] = [
        ([1, 1], {"label": 0}),
        ([1], {"label": 2}),
        ([1], {"label": 0, "weight": -1.0}),
        ([1], {"label": 0, "weight": float("nan")}),
        ({1: float("nan")}, {"label": 0}),
        ([b"name"], {"label": 0}),
        ([1 << 32], {"label": 0}),
        ([1], {"label": 0, "key": -1}),
    ]
    for x, rest in wrong:
        with pytest.raises(ValueError, match=r"expected|twice"):
            pool.learn(x, **rest)
    assert pool.sizes().events == 2
    pool.drop()
    assert (pool.alive, pool.sizes().events) == (0, 0)
    assert pool.tree().feature == []
    pool.check()


def test_an_example_may_come_with_its_features_in_any_order(kind: TreeKind) -> None:
    """The order of an example's features changes no bit of any answer."""
    name = mixes_of(kind)[-1]
    events = Stream(8, MIXES[name]).take(budget(300))
    made = []
    for rng in (None, random.Random(1)):
        pool = of(kind, MIXES[name], predict=Predict.NAIVE_BAYES).pool()
        made.append((outcomes(pool, events, rng), pool_columns(pool, 0)))
    assert made[0] == made[1]


def test_leaves_inherit_on_request(kind: TreeKind) -> None:
    """The bound counts what the split above said of a leaf: trees split sooner."""
    splits = {False: 0, True: 0}
    for name in mixes_of(kind):
        mix = replace(MIXES[name], others=0.0)
        for inherit in splits:
            pair = Pair(of(kind, mix, inherit=inherit, split_confidence=0.3, tie_threshold=0.1))
            stream = Stream(13, mix)
            for _ in range(3):
                pair.feed(stream.take(budget(150)))
                pair.check()
                pair.restored()
            splits[inherit] += pair.pool.sizes().splits
    assert budget(10) < 10 or splits[True] > splits[False]


def test_the_range_of_the_bound_is_that_of_the_classes_seen_on_request(kind: TreeKind) -> None:
    """Where a leaf has seen two of many classes R is 1: trees split sooner. What it inherits counts as seen."""
    policy, criterion = kind
    if criterion == "gini":
        with pytest.raises(ValueError, match="whose range is 1 whatever the classes"):
            of(kind, local_range=True).pool()
        return
    splits = {False: 0, True: 0}
    for name, inherit in product(mixes_of(kind), (False, True)):
        mix = replace(MIXES[name], others=0.0)
        for local in splits:
            told = of(kind, mix, inherit=inherit, local_range=local, split_confidence=0.3, tie_threshold=0.1)
            pair = Pair(told if policy == "exact" else replace(told, classes=9))  # the stream has fewer
            stream = Stream(13, mix)
            for _ in range(2):
                pair.feed(stream.take(budget(150)))
                pair.check()
                pair.restored()
            splits[local] += pair.pool.sizes().splits
    if policy == "exact":
        assert splits[True] == splits[False]  # of two classes R is 1 anyhow
    else:
        assert budget(10) < 10 or splits[True] > splits[False]


@pytest.mark.parametrize("candidates", [2, 3, 30])
def test_the_number_of_candidates_is_given(kind: TreeKind, candidates: int) -> None:
    """IMAC keeps the scores of so many features, of fewer where the leaf saw fewer; others have no candidates."""
    if not POLICIES[kind[0]].scores:
        with pytest.raises(ValueError, match="only imac, efdt-imac, hat-imac have them"):
            of(kind, candidates=candidates).pool()
        return
    kept = []
    for seed, name in enumerate(("mixed", "many")):
        pair = Pair(of(kind, MIXES[name], candidates=candidates, split_confidence=1e-3, tie_threshold=0.01))
        stream = Stream(seed, MIXES[name])
        for _ in range(3):
            pair.feed(stream.take(budget(120)))
            pair.check()
            pair.restored()
        kept += [len(leaf.candidates) for leaf in nodes_of(pair.twin.trees.values()) if leaf.candidates]
    assert max(kept) == min(candidates, 30)
    with pytest.raises(ValueError, match="from 2 to 1000 candidates"):
        of(kind, candidates=1).pool()
