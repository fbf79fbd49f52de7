"""The contract of forests that forget, against the oracle in naive_forest.py."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate, Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.dynamic.pool import DynamicPool
from algorithms.forests.draws import draws, ticket
from algorithms.forests.pool import ForestPool
from tests.algorithms.dynamic.test_dynamic import MIXES, Mix, Stream
from tests.oracles.naive import words
from tests.oracles.naive_dynamic import Event, Feature, events_of, rows_of
from tests.oracles.naive_forest import Live, Pair, Settings, is_seen, outcomes, ticket_of, times_of
from tests.support.examples import budget

BINARY, NUMERIC = Kind.BINARY, Kind.NUMERIC
OFF = bool(numba.config.DISABLE_JIT)
SUBSPACES: list[float | str] = [1.0, 0.5, "sqrt of 9"]
BAGGINGS = ("none", "poisson:1", "poisson:6", "2 of 3", "1 of 3")


def of(mix: Mix, **rest: Any) -> Settings:
    """Return settings for a mix."""
    return Settings(classes=mix.classes, kinds={f: k for f, k in mix.kinds.items() if k != BINARY}, **rest)


def examples_in(pool: ForestPool) -> list[int]:
    """Return how many examples each tree of key 0 has."""
    homes = map(pool.parts.home, range(pool.count))
    return [trees.sizes(at).examples for trees, at in homes]


def steps(count: int) -> int:
    """Return how long a stream is to be: a quarter where the compiler is off."""
    return count // 4 if OFF else count


# --- against the oracle


@pytest.mark.parametrize("bagging", BAGGINGS)
@pytest.mark.parametrize("name", MIXES)
def test_long_streams_agree_with_the_oracle(name: str, bagging: str) -> None:
    """Trees, s(v), c(v), statuses, votes and losses are the oracle's after every batch, restored or not."""
    mix = MIXES[name]
    window = 25 if name in ("keys", "binary") else None
    pair = Pair(of(mix, bagging=bagging, subspace=0.7, window=window, epsilon=0.0 if name == "mixed" else 0.2))
    stream = Stream(3, mix)
    rebuilds = 0
    for size in (1, 7, steps(80), steps(60), 1):
        rebuilds += sum(out.rebuilt > 0 for out in pair.feed(stream.take(size)))
        pair.check()
        pair.restored()
    assert rebuilds > 8


@pytest.mark.parametrize("bagging", ["poisson:1", "2 of 3"])
@pytest.mark.parametrize("name", MIXES)
def test_rebuilds_are_spread_as_those_of_a_tree_alone(name: str, bagging: str) -> None:
    """Each tree of a forest is the tree of a pool of its own that sees what it sees, at every batch."""
    mix = MIXES[name]
    window = 40 if name in ("keys", "binary") else None
    pair = Pair(of(mix, bagging=bagging, subspace=0.7, window=window, epsilon=0.2, max_work=12))
    stream = Stream(5, mix)
    under_way = 0
    for size in (1, 7, steps(200), steps(100), 1):
        pair.feed(stream.take(size))
        pair.check()
        under_way += sum(int(trees._state.aside.heads.any()) for trees in pair.pool.parts.pools)
        pair.restored()
    assert under_way > 0, "nothing was built aside"


def test_parts_of_many_trees_agree_with_the_oracle() -> None:
    """Twenty-two trees are in four parts, of which two have one less; names of features are shared by all."""
    mix = Mix({word: NUMERIC if at % 3 else BINARY for at, word in enumerate(words(6))}, classes=3, indexes=3)
    pair = Pair(of(mix, trees=22, bagging="5 of 22", subspace=0.7, names=True, window=25))
    stream = Stream(4, mix)
    for size in (1, 7, steps(120), 1):
        pair.feed(stream.take(size))
        pair.check()
        pair.restored()


@pytest.mark.parametrize("bagging", BAGGINGS)
def test_forests_are_the_oracles_after_every_event(bagging: str) -> None:
    """Not only after a batch: each single event leaves the oracle's trees."""
    mix = MIXES["numeric"]
    pair = Pair(of(mix, bagging=bagging, subspace="sqrt of 3", criterion="entropy", max_depth=4))
    for event in Stream(8, mix).take(steps(100)):
        pair.feed([event])
        pair.check()


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
    trees = data.draw(st.sampled_from([1, 3, 6]))
    pair = Pair(
        Settings(
            trees=trees,
            bagging=data.draw(st.sampled_from(["none", "poisson:1", "poisson:6", f"{trees // 2 + 1} of {trees}"])),
            subspace=data.draw(st.sampled_from(SUBSPACES)),
            seed=data.draw(st.integers(0, 3)),
            epsilon=data.draw(st.sampled_from([0.0, 0.3])),
            criterion=data.draw(st.sampled_from(["gini", "entropy"])),
            classes=data.draw(st.integers(2, 3)),
            kinds={feature: kind for feature, kind in kinds.items() if kind != BINARY},
            window=data.draw(st.sampled_from([None, None, 1, 4])),
            on_duplicate=data.draw(st.sampled_from(OnDuplicate)),
            evaluate=data.draw(st.booleans()),
            max_keys=data.draw(st.sampled_from([1, 9])),
            max_live_ids=data.draw(st.sampled_from([2, 99])),
        )
    )
    values = {
        BINARY: st.sampled_from([0.0, 1.0, -2.5]),
        NUMERIC: st.sampled_from([-1.0, -0.0, 0.5, 0.5, math.inf]),
    }
    event = st.builds(
        Event,
        st.sampled_from([Op.INSERT] * 6 + [Op.DELETE] * 4 + [Op.PREDICT, Op.DROP]),
        st.fixed_dictionaries({}, optional={feature: values[each] for feature, each in kinds.items()}),
        st.integers(-1, pair.settings.classes) if data.draw(st.booleans()) else st.integers(0, 1),
        st.sampled_from([UNIT] * 6 + [1, 0, -UNIT, MAX_TOTAL // 40]),
        st.sampled_from([None, None, None, 1, 2, 3]),
        st.integers(0, 1) if data.draw(st.booleans()) else st.just(0),
    )
    for _ in range(data.draw(st.integers(1, 3))):
        pair.feed(data.draw(st.lists(event, max_size=30)))
        pair.check()
        pair.restored()


def test_names_are_drawn_by_their_bytes() -> None:
    """Forests of features with names are the oracle's, though names come, go and get other numbers."""
    mix = Mix({word: NUMERIC if at % 3 else BINARY for at, word in enumerate(words(9))}, indexes=2)
    pair = Pair(of(mix, names=True, subspace=0.4, epsilon=0.2))
    stream = Stream(1, mix)
    for _ in range(4):
        pair.feed(stream.take(steps(60)))
        pair.check()
        pair.restored()
    pair.feed([Event(Op.DROP, key=key) for key in range(2)])
    pair.check()
    assert pair.pool.names is not None
    assert len(pair.pool.names) == len(pair.settings.kinds)


def test_a_feature_that_no_tree_sees_tells_examples_apart() -> None:
    """Nobody keeps the name of such a feature, and an example is found by it all the same."""
    chosen = Settings(names=True, subspace=0.01, trees=2)
    hidden = next(name for name in words(99) if not any(is_seen(chosen, tree, name) for tree in range(2)))
    pair = Pair(chosen)
    pair.feed([Event(Op.INSERT, {hidden: 1.0}), Event(Op.INSERT, {})])
    pair.feed([Event(Op.INSERT, {name: 1.0}) for name in words(60) if name != hidden])
    pair.feed([Event(Op.DELETE, {hidden: 1.0})])
    assert pair.feed([Event(Op.DELETE, {hidden: 1.0})])[0].status == Status.ABSENT_EXAMPLE
    pair.check()


@pytest.mark.parametrize("names", [False, True])
def test_batches_of_any_size_give_the_same_forests(names: bool) -> None:
    """Batches of 1, 7 and of more than the trees take at once give the same answers and trees."""
    called: Sequence[Feature] = words(8) if names else range(8)
    mix = Mix({f: NUMERIC if at % 2 else BINARY for at, f in enumerate(called)}, ids=not names, indexes=2)
    events = Stream(2, mix).take(steps(1400))
    seen = []
    for size in (1, 7, 5000):
        pool = of(mix, names=names, subspace=0.6, window=30, epsilon=0.5, bagging="2 of 3").pool()
        got = [out for at in range(0, len(events), size) for out in outcomes(pool, events[at : at + size])]
        seen.append((got, [(rows_of(pool.tree(t, key)), pool.sizes(key)) for t in range(3) for key in range(2)]))
        pool.check()
    assert seen[0] == seen[1] == seen[2]


# --- exact trees


def live_of(pair: Pair) -> list[Event]:
    """Return inserts of what is live, in the order of arrival."""
    return [
        Event(Op.INSERT, each.x, each.label, each.weight, each.id, key)
        for key, forest in pair.twin.keys.items()
        for each in forest.live
    ]


@pytest.mark.parametrize("window", [None, 12])
@pytest.mark.parametrize("bagging", BAGGINGS)
@pytest.mark.parametrize("guarantee", [None, "exact"])
@pytest.mark.parametrize("name", ["binary", "mixed", "keys"])
def test_an_exact_forest_is_that_of_its_live_examples_alone(
    name: str, guarantee: str | None, bagging: str, window: int | None
) -> None:
    """Splits and votes are as if nothing else had ever been seen, copies and windows included."""
    mix = replace(MIXES[name], kinds=dict(list(MIXES[name].kinds.items())[:4]))  # few features: many copies
    epsilon = None if guarantee else 0.0
    chosen = of(mix, epsilon=epsilon, guarantee=guarantee, bagging=bagging, subspace=0.8, window=window)
    pair = Pair(chosen)
    pair.feed(Stream(5, mix).take(steps(160)))
    fresh = chosen.pool()
    outcomes(fresh, live_of(pair))
    contents = Counter(repr(event) for event in live_of(pair))
    assert name != "binary" or max(contents.values()) > 1, "no copies"
    for key in range(mix.indexes):
        for tree in range(3):
            mine, other = rows_of(pair.pool.tree(tree, key)), rows_of(fresh.tree(tree, key))
            if guarantee and other:
                assert mine == other
            elif other:
                assert [row[3:] for row in mine] == [row[3:] for row in other]
            else:
                assert len(mine) <= 1
    questions = [replace(event, op=Op.PREDICT, id=None) for event in live_of(pair)]
    assert outcomes(pair.pool, questions) == outcomes(fresh, questions)


@pytest.mark.parametrize("name", ["binary", "mixed", "keys"])
def test_exact_trees_are_the_oracles_after_every_event(name: str) -> None:
    """Whatever looked in between, restored or not: trees, floors and votes are those of building from scratch."""
    mix = MIXES[name]
    pair = Pair(of(mix, epsilon=None, guarantee="exact", bagging="poisson:1", subspace=0.7, window=15))
    for at, event in enumerate(Stream(6, mix).take(steps(150))):
        pair.feed([event])
        pair.check()
        if at % 20 == 0:
            pair.restored()


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("guarantee", [None, "exact"])
def test_looking_changes_nothing_and_writing_looks(guarantee: str | None, names: bool) -> None:
    """A page leaves the state as it is; a snapshot is of the trees that a page shows, and is taken by a record."""
    mix = MIXES["mixed"]
    if names:  # which nodes hold, too
        mix = replace(mix, kinds=dict(zip(words(len(mix.kinds)), mix.kinds.values(), strict=True)))
    pool = of(mix, epsilon=None, guarantee=guarantee, window=20, names=names).pool()
    pool.apply(events_of([each for each in Stream(2, mix).take(80) if each.op == Op.INSERT], pool))
    before = {name: array.copy() for name, array in pool.arrays().items()}
    seen = [rows_of(tree) for tree in pool.trees()]
    assert seen == [rows_of(pool.tree(number)) for number in range(3)]
    assert pool.sizes().nodes == sum(map(len, seen))
    after = pool.arrays()
    assert all(np.array_equal(array, after[name]) for name, array in before.items())
    pool.check()
    rebuilt = pool.look()
    assert bool(rebuilt) == bool(guarantee)
    assert seen == [rows_of(tree) for tree in pool.trees()]
    assert pool.node_count == sum(map(len, seen))
    pool.check()


@pytest.mark.parametrize("terms", [{}, {"guarantee": "exact"}, {"beta": 0.02}], ids=str)
def test_one_tree_that_sees_everything_is_a_tree(terms: dict[str, Any]) -> None:
    """A forest of one tree, without bagging, predicts and costs what `DynamicPool` does."""
    mix = MIXES["mixed"]
    told = terms | {"classes": mix.classes, "kinds": {f: k for f, k in mix.kinds.items() if k != BINARY}}
    forest = ForestPool(trees=1, subspace=1.0, bagging="none", window=20, evaluate=True, **told)
    tree = DynamicPool(window=20, evaluate=True, **told)
    for event in Stream(4, mix).take(steps(200)):
        if event.op == Op.INSERT:
            label, weight = event.label, event.weight / UNIT
            assert forest.insert(event.x, label, weight=weight) == tree.insert(event.x, label, weight=weight)
            assert rows_of(forest.tree(0)) == rows_of(tree.tree())
            assert forest.sizes() == tree.sizes()


# --- draws


def test_an_example_is_in_k_trees_and_a_delete_touches_these_alone() -> None:
    """With `k of T` exactly k trees hold an example, and no other tree changes when it goes."""
    pool = ForestPool(subspace=1.0, trees=7, bagging="3 of 7", epsilon=0.0)
    for at in range(40):
        pool.insert([at % 5, 5 + at % 3], at % 2, id=at)
    before = examples_in(pool)
    assert sum(before) == 3 * 40
    pool.delete(id=7)
    changed = [had - has for had, has in zip(before, examples_in(pool), strict=True)]
    assert sorted(changed) == [0, 0, 0, 0, 1, 1, 1]
    pool.check()


@pytest.mark.parametrize(
    ("bagging", "mean", "variance"), [("poisson:1", 1.0, 1.0), ("poisson:6", 6.0, 6.0), ("3 of 10", 0.3, 0.21)]
)
def test_draws_have_their_distribution(bagging: str, mean: float, variance: float) -> None:
    """How often an example weighs in a tree has mean and variance of its law, in each tree alike."""
    chosen = Settings(trees=10, bagging=bagging)
    drawn = np.array([times_of(chosen, ticket_of(Live({}, 0, UNIT, id), 0)) for id in range(1500)])
    error = 5 * math.sqrt(variance / len(drawn))
    assert np.abs(drawn.mean(axis=0) - mean).max() < error
    assert drawn.var() == pytest.approx(variance, rel=0.1)
    between = np.corrcoef(drawn.T) - np.eye(10)
    assert np.abs(between).max() < (0.2 if "of" in bagging else 5 / math.sqrt(len(drawn)))


def test_tickets_differ_whatever_callers_give_as_ids() -> None:
    """Digests are two numbers; counted ones, or the same number twice, scatter as well as real ones do."""
    for pair in ((0, 1), (1, 0), (1, 1), (1 << 40, 1), (-1, 1)):
        tickets = {ticket(pair[0] * at, pair[1] * at, 0) for at in range(2000)}
        assert len(tickets) > 1990, pair
        high = sum(each >> 31 for each in tickets)
        assert 800 < high < 1200, pair


def test_identical_examples_are_not_drawn_in_step() -> None:
    """Copies weigh differently in a tree, and a delete takes the highest."""
    pool = ForestPool(subspace=1.0, trees=1, bagging="poisson:1")
    chosen, weights = Settings(trees=1), []
    for copy in range(12):
        pool.insert([1], 1)
        drawn = [times_of(chosen, ticket_of(Live({1: 1.0}, 1, UNIT, None), each))[0] for each in range(copy + 1)]
        weights.append(sum(drawn))
        assert pool.tree(0).weight.sum() == weights[-1] * UNIT
    assert len(set(np.diff([0, *weights]))) > 2
    for total in [*reversed(weights[:-1]), 0]:
        pool.delete([1], 1)
        assert pool.tree(0).weight.sum() == total * UNIT


@pytest.mark.parametrize("bagging", BAGGINGS)
def test_copies_are_counted_when_a_window_drops_old_ones(bagging: str) -> None:
    """Copies leave at both ends: by the window the oldest, by a delete the newest."""
    pair = Pair(Settings(bagging=bagging, subspace=1.0, epsilon=0.0, window=4))
    rng = random.Random(2)
    for _ in range(steps(300)):
        op = Op.INSERT if rng.random() < 0.65 else Op.DELETE
        pair.feed([Event(op, dict.fromkeys(range(rng.randrange(2)), 1.0), rng.randrange(2))])
        pair.check()


def test_a_correction_keeps_its_trees() -> None:
    """An insert that replaces an example by its id goes to the trees that had it."""
    pool = ForestPool(subspace=1.0, trees=5, bagging="2 of 5", on_duplicate=OnDuplicate.REPLACE)
    for at in range(20):
        pool.insert([at % 3], at % 2, id=at)
    before = examples_in(pool)
    for at in range(20):
        pool.insert([at % 4, 9], 1 - at % 2, id=at)
    assert examples_in(pool) == before
    pool.check()


def test_a_window_counts_the_examples_of_a_key() -> None:
    """Not those of a bag: the last W examples are live, wherever they were drawn."""
    pool = ForestPool(subspace=1.0, trees=4, bagging="1 of 4", window=10)
    for at in range(100):
        pool.insert([at], at % 2, id=at)
    assert pool.live_examples == 10
    assert sum(examples_in(pool)) == 10
    assert [pool.delete(id=at) for at in (3, 89, 90)] == [
        Status.ABSENT_ID,
        Status.ALREADY_DROPPED,
        Status.APPLIED,
    ]


def test_another_seed_is_another_forest() -> None:
    """Seeds change which features and examples a tree sees; the same seed does not."""
    drawn = [draws(4, seed, 0.5, "poisson:1").salts.tolist() for seed in (0, 1, 0)]
    assert drawn[0] == drawn[2] != drawn[1]
    assert len({salt for row in drawn[0] for salt in row}) == 8


def test_subspaces_have_their_share() -> None:
    """A tree sees about the share that it was told, and each tree another part."""
    chosen = Settings(trees=6, subspace="sqrt of 16")
    seen = np.array([[is_seen(chosen, tree, feature) for feature in range(2000)] for tree in range(6)])
    assert np.abs(seen.mean(axis=1) - 0.25).max() < 0.05
    assert np.abs(np.corrcoef(seen) - np.eye(6)).max() < 0.1


# --- for library users


def test_votes_are_summed_in_whole_units() -> None:
    """Three trees that are sure give three votes; shares are those of the votes."""
    pool = ForestPool(subspace=1.0, trees=3, bagging="none", classes=3)
    for _ in range(3):
        pool.insert([1], 2)
        pool.insert([2], 0)
    assert pool.predict([1]).tolist() == [0.0, 0.0, 3.0]
    answers = pool.apply(_questions(pool, [[1], [2], [7]]))
    assert answers.votes.tolist()[:2] == [[0, 0, 3 * UNIT], [3 * UNIT, 0, 0]]
    assert answers.shares.sum(axis=1) == pytest.approx(1.0)
    assert ForestPool().predict([1]).tolist() == [0.0, 0.0]


def _questions(pool: ForestPool, of_: Sequence[Sequence[int]]) -> Any:
    return events_of([Event(Op.PREDICT, dict.fromkeys(x, 1.0)) for x in of_], pool)


def test_live_weights_are_those_of_the_ledger() -> None:
    """A class counts while an example of it is live, whether a tree has it or not."""
    pool = ForestPool(trees=2, bagging="1 of 2", classes=3)
    for at in range(9):
        pool.insert([at], at % 3, weight=0.5, id=at, key=at % 2)
    pool.delete(id=2)
    assert (pool.live_weights(0) / UNIT).tolist() == [1.0, 0.5, 0.5]
    assert (pool.live_weights(1) / UNIT).tolist() == [0.5, 1.0, 0.5]
    assert pool.live_weights(7).tolist() == [0, 0, 0]


def test_what_was_forgotten_leaves_nothing_behind() -> None:
    """Deleting all examples, and dropping the keys, gives everything back; the pool goes on."""
    mix = MIXES["keys"]
    pair = Pair(of(mix, subspace=0.7))
    events = [event for event in Stream(6, mix).take(150) if event.op == Op.INSERT]
    pair.feed(events)
    pair.feed([replace(event, op=Op.DELETE) for event in events])
    pair.check()
    assert (pair.pool.live_examples, pair.pool.slots) == (0, 0)
    pair.feed([Event(Op.DROP, key=key) for key in range(3)])
    assert (pair.pool.alive, pair.pool.node_count) == (0, 0)
    pair.feed(events)
    pair.check()


def test_a_steady_window_needs_no_more_room() -> None:
    """Once a window is full no array of the ledger grows, and the trees' do not either."""
    mix = Mix(dict.fromkeys(range(4), NUMERIC), ids=True, deletes=0.0)
    pool = of(mix, window=20, bagging="2 of 3").pool()
    events = [event for event in Stream(9, mix).take(steps(900)) if event.op == Op.INSERT]
    outcomes(pool, events[: len(events) // 2])
    before = pool.nbytes
    outcomes(pool, events[len(events) // 2 :])
    assert pool.nbytes <= 1.5 * before


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"trees": 0}, "trees, a whole number from 1"),
        ({"bagging": "poisson:0"}, "expected as bagging"),
        ({"bagging": "3 of 4"}, "bagging of 10 trees"),
        ({"bagging": "11 of 10"}, "expected as bagging"),
        ({"bagging": 3}, "expected as bagging"),
        ({"subspace": 0.0}, "expected as subspace"),
        ({"subspace": 1.5}, "expected as subspace"),
        ({"subspace": float("nan")}, "expected as subspace"),
        ({"subspace": "sqrt"}, "sqrt of D"),
        ({"seed": -1}, "a seed"),
        ({"window": 0}, "window of at least 1"),
        ({"epsilon": -1.0}, "epsilon of at least 0"),
    ],
)
def test_wrong_settings_are_refused_with_a_reason(changed: dict[str, Any], reason: str) -> None:
    """What cannot be is refused when the pool is made."""
    with pytest.raises(ValueError, match=reason):
        ForestPool(**changed)


def test_keys_beyond_the_numbers_of_trees_are_refused() -> None:
    """Trees are numbered over all keys; before they run out a key is refused, and nothing has changed."""
    pool = ForestPool(trees=1000)
    with pytest.raises(ValueError, match=r"keys below 2,147,483 in forests of 1,000 trees, got 3,000,000"):
        pool.insert([1], 0, key=3_000_000)
    assert pool.alive == 0
