"""What trees do that holds for some policies only: values other than 0 and 1, and a true split time."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from algorithms.core.criteria import UNIT
from algorithms.core.events import Op
from algorithms.core.kinds import Kind
from algorithms.core.rows import USED
from algorithms.trees.policies import POLICIES
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from tests.algorithms.trees.test_trees import EXACT, MIXES, ODD, mixes_of, of
from tests.algorithms.trees.test_trees_habits import grown, shape
from tests.oracles.differential import columns_of
from tests.oracles.naive_trees import KINDS
from tests.oracles.tree_parts import Event, Feature, Node, Seen
from tests.oracles.tree_streams import Mix, Pair, Stream, outcomes, pool_columns
from tests.support.examples import budget

VALUED = [kind for kind in KINDS if kind not in EXACT]
TreeKind = tuple[str, str]


@pytest.mark.parametrize("kind", EXACT, ids="-".join)
def test_the_exact_policy_grows_the_reference_tree(kind: TreeKind) -> None:
    """The exact policy splits when VFDT with n_min = 1 does, on the same feature: its delay is 0."""
    for name in mixes_of(kind):
        events = Stream(4, MIXES[name]).take(budget(800))
        reference = of(("periodic", kind[1]), MIXES[name], grace_period=1).pool()
        pool = of(kind, MIXES[name]).pool()
        assert outcomes(pool, events) == outcomes(reference, events)
        for key in range(MIXES[name].indexes):
            assert pool_columns(pool, key) == pool_columns(reference, key)
            assert pool.sizes(key).attempts <= reference.sizes(key).attempts


@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_a_category_never_seen_is_answered_by_the_node_above(kind: TreeKind) -> None:
    """A prediction stops where it lacks a branch; learning the example makes the branch."""
    events = [Event(Op.INSERT, {5: float(k % 3)}, int(k % 3 == 1)) for k in range(90)]
    pool = grown(of(kind, kinds={5: Kind.NOMINAL}), events)
    assert (pool.tree().feature[0], pool.sizes().leaves) == (5, 3)
    whole = pool.tree().weight[0] / UNIT
    assert pool.predict({5: 7}).tolist() == whole.tolist()
    pool.learn({5: 7}, 1)
    assert pool.sizes().leaves == 4
    assert pool.predict({5: 7}).tolist() == [0.0, 1.0]
    pool.check()


@pytest.mark.parametrize("predict", list(Predict)[1:])
@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_values_too_near_each_other_for_a_deviation_have_a_likelihood(kind: TreeKind, predict: Predict) -> None:
    """Where all of 2^-10 of the range underflows, the least deviation is the least number with all its digits."""
    pool = of(kind, kinds={7: Kind.NUMERIC}, predict=predict).pool()
    for value, label in ((5e-324, 0), (1e-323, 0), (1.0, 1), (5e-324, 0)):
        pool.learn({7: value}, label)
    assert pool.predict({7: 5e-324})[0] > 3.9
    pool = of(kind, kinds={7: Kind.NUMERIC}, predict=predict).pool()
    for value, label in ((5e-324, 0), (1e-323, 0), (1.5e-323, 1)):
        pool.learn({7: value}, label)
    assert (
        pool.predict({7: 1e-323}).tolist() == pool.predict({7: 5e-324}).tolist() == pytest.approx([2.0, 1.0], 0.3)
    )
    assert np.isfinite(pool.predict({7: 1e140})).all()
    pool.check()


# What is hard to count with: zeros, the least numbers, neighbours, the greatest.
EXTREMES = [
    *(0.0, -0.0, 5e-324, 1e-323, -5e-324, 2.2250738585072014e-308, -2.225073858507201e-308, 1e-300),
    *(1.0, 1.0000000000000002, -1.0, 0.1, 9007199254740993.0, 1e140, 9.999999999999999e139, -1e140),
]


@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_extreme_values_and_weights_agree_with_the_oracle(kind: TreeKind) -> None:
    """No difference, square, quotient or sum of theirs overflows: guesses, losses and splits are the oracle's."""
    rng = random.Random("-".join(kind))
    kinds: dict[Feature, Kind] = {each: (Kind.NUMERIC, Kind.QUANTISED)[each % 2] for each in range(4)}
    for seed in range(budget(20)):
        values = rng.sample(EXTREMES, 2 + seed % 5)
        weights = rng.sample([1, ODD, UNIT, 1 << 51, 1 << 40], 2)
        pair = Pair(
            of(
                kind,
                kinds=kinds,
                predict=list(Predict)[seed % 4],
                grace_period=8,
                check_every=5,
                evaluate=True,
                tie_threshold=0.9,
            )
        )
        events = []
        for _ in range(60):
            x: dict[Feature, float] = {each: rng.choice(values) for each in range(4) if rng.random() < 0.8}
            label = int(x.get(seed % 4, 0.0) > values[0]) if rng.random() < 0.9 else rng.randrange(2)
            op = Op.PREDICT if rng.random() < 0.2 else Op.INSERT
            events.append(Event(op, x, label, rng.choice(weights)))
        pair.feed(events)
        pair.check()


@pytest.mark.parametrize("of_features", [Kind.NUMERIC, Kind.QUANTISED])
@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_tiny_and_huge_values_split_alike(kind: TreeKind, of_features: Kind) -> None:
    """Values around 1e-9 and 1e9 give the splits that values around 1 give: no epsilon is absolute."""
    mix = Mix(dict.fromkeys(range(5), of_features), others=0.0)
    events = Stream(9, mix).take(budget(400))
    trees = []
    for scale in (1.0, 2.0**-30, 2.0**30, 2.0**-800):
        scaled = [replace(event, x={f: v * scale for f, v in event.x.items()}) for event in events]
        pool = grown(of(kind, mix), scaled)
        trees.append((shape(pool.tree()), (pool.tree().threshold / scale).tolist()))
    assert trees[0] == trees[1] == trees[2]
    assert of_features == Kind.NUMERIC or trees[0] == trees[3]  # squares of values do not underflow either
    assert budget(10) < 10 or len(trees[0][0]) > 1


def observed(pair: Pair) -> list[Seen]:
    """Return what the leaves of the oracle saw of quantised features."""
    found, todo = [], [tree.root for tree in pair.twin.trees.values()]
    while todo:
        node = todo.pop()
        todo.extend(node.children.values())
        found += [seen for seen in node.features.values() if seen.kind == Kind.QUANTISED]
    return found


@pytest.mark.parametrize(
    "slots",
    [
        {"radius_fraction": 0.5},
        {"radius_fraction": 0.01, "max_slots": 40},
        {"max_slots": 5},
        {"max_slots": 2},
        {"radius": 0.01},
        {"radius": 1e-300, "max_slots": 12},
        {"radius": 1e100},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_slots_of_any_width_agree_with_the_oracle(kind: TreeKind, slots: dict[str, Any]) -> None:
    """Leaves that see many values settle on a width, double it where slots are too many, and stay the oracle's."""
    mix = Mix(
        {each: list(Kind)[each % 4] for each in range(8)}, classes=3, weights=(UNIT, ODD, 2 * UNIT), others=0.1
    )
    pair = Pair(of(kind, mix, predict=Predict.NAIVE_BAYES, grace_period=150, check_every=40, max_depth=1, **slots))
    stream = Stream(11, mix)
    for size in (1, 40, budget(400), 7, budget(300)):
        pair.feed(stream.take(size))
        pair.check()
        pair.restored()
    seen = observed(pair)
    assert all(len(each.slots) <= slots.get("max_slots", 256) for each in seen)
    if budget(10) == 10:
        widths = [each.radius for each in seen if each.radius is not None]
        assert widths, "no leaf saw enough values for a width"
        if slots.get("max_slots", 256) < 40 and "radius" in slots:
            assert max(widths) > slots["radius"], "no width was doubled"


@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_slots_next_to_zero_are_told_apart(kind: TreeKind) -> None:
    """A threshold may lie between negative and positive values, and on either side of the zeros, in any width."""
    for radius in (None, 1.0, 1e9):
        for low, high in ((-0.4, 0.4), (0.0, 0.4), (-0.4, 0.0), (-5e-324, 5e-324), (0.0, 5e-324)):
            events = [Event(Op.INSERT, {5: high if k % 3 else low}, int(k % 3 > 0)) for k in range(90)]
            tree = grown(of(kind, kinds={5: Kind.QUANTISED}, radius=radius), events).tree()
            assert (tree.feature[0], tree.kind[0]) == (5, Kind.NUMERIC)
            assert low <= tree.threshold[0] < high
            assert tree.branch[1:].tolist() == [0, 1]


@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_what_is_counted_in_slots_is_exact(kind: TreeKind) -> None:
    """A split on a few values, zero among them, has all of them as candidates and tells the true class weights."""
    values = (-2.5, -0.1, 0.0, 0.1, 0.3, 1e15, 1e15 + 1)
    rng = random.Random(5)
    events = []
    for _ in range(budget(400)):
        value = rng.choice(values)
        label = int(value > 1e15) if rng.random() < 0.9 else rng.randrange(2)
        events.append(Event(Op.INSERT, {5: value}, label, rng.choice((UNIT, ODD))))
    pool = of(kind, kinds={5: Kind.QUANTISED}).pool()
    answers = pool.apply(columns_of(events, pool))
    made = answers.splits[0]
    assert made.threshold == 1e15 + 0.5
    counts = np.zeros((2, 2), np.int64)
    for event in events[: made.event + 1]:
        counts[int(event.x[5] > made.threshold), event.label] += event.weight
    assert made.counts.tolist() == counts.tolist()


@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_an_offset_costs_no_resolution(kind: TreeKind) -> None:
    """Values that differ little from each other and much from 0, as times do, are told apart."""
    rng = random.Random(6)
    offset = 1.7e18  # ns since 1970, a second of them
    events = []
    for _ in range(200):
        value = offset + 256.0 * rng.randrange(4_000_000)
        events.append(Event(Op.INSERT, {5: value}, int(value > offset + 5e8)))
    tree = grown(of(kind, kinds={5: Kind.QUANTISED}, grace_period=100), events).tree()
    assert tree.feature[0] == 5
    assert abs(tree.threshold[0] - (offset + 5e8)) < 1.5e8


@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_wrong_widths_are_refused_with_a_reason(kind: TreeKind) -> None:
    """A width that is no width is refused when the pool is made."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"radius": 0.0}, "expected a radius above 0"),
        ({"radius": float("nan")}, "expected a radius above 0"),
        ({"radius_fraction": 0.0}, "expected a radius_fraction above 0"),
        ({"max_slots": 1}, "expected max_slots of at least 2"),
    ]
    for changed, reason in wrong:
        with pytest.raises(ValueError, match=reason):
            of(kind, kinds={5: Kind.QUANTISED}, **changed).pool()


def leaves(pair: Pair) -> list[Node]:
    """Return the leaves of the oracle."""
    found, todo = [], [tree.root for tree in pair.twin.trees.values()]
    while todo:
        node = todo.pop()
        todo.extend(node.children.values())
        found += [] if node.children else [node]
    return found


@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_poor_features_are_dropped_on_request(kind: TreeKind) -> None:
    """What is surely not the best of a leaf is not looked at again, and the memory for its values comes back."""
    if POLICIES[kind[0]].keeps:
        with pytest.raises(ValueError, match="takes no drop_poor"):
            of(kind, drop_poor=True).pool()
        return
    dropped = 0
    for name in ("many", "nominal", "numeric", "mixed", "quantised"):
        mix = replace(MIXES[name], indexes=1, others=0.0)
        for predict in Predict:
            pair = Pair(
                of(
                    kind,
                    mix,
                    predict=predict,
                    drop_poor=True,
                    grace_period=60,
                    split_confidence=0.5,
                    tie_threshold=0.0,
                )
            )
            stream = Stream(12, mix)
            for _ in range(5):
                pair.feed(stream.take(budget(120)))
                pair.check()
                pair.restored()
                dropped += sum(seen.poor for leaf in leaves(pair) for seen in leaf.features.values())
    assert budget(10) < 10 or dropped > 0, "no feature was poor"


@pytest.mark.parametrize("kind", VALUED, ids="-".join)
def test_a_dropped_feature_gives_its_values_back(kind: TreeKind) -> None:
    """Of two features that tell the same and others that tell nothing the latter are dropped, save candidates."""
    if POLICIES[kind[0]].keeps:
        return
    rng = random.Random(7)
    events = []
    for _ in range(budget(300)):
        label = rng.randrange(2)
        told = float(1 + (label if rng.random() < 0.9 else 1 - label))
        x: dict[Feature, float] = {1: told, 2: told}
        x.update((feature, rng.random()) for feature in range(3, 13))
        events.append(Event(Op.INSERT, x, label))
    kinds: dict[Feature, Kind] = {1: Kind.NOMINAL, 2: Kind.NOMINAL}
    kept, dropped = (
        grown(
            of(kind, kinds=kinds, default=Kind.QUANTISED, grace_period=150, tie_threshold=0.0, drop_poor=drop),
            events,
        )
        for drop in (False, True)
    )
    assert pool_columns(kept, 0) == pool_columns(dropped, 0)
    if budget(10) == 10:
        assert values_of(dropped) < 0.7 * values_of(kept)


def values_of(pool: TreePool) -> int:
    """Return how many values and slots leaves keep."""
    return int(pool.arrays()["features.values.used"][USED])
