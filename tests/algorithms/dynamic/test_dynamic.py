"""The contract of trees that forget, against the oracle in naive_dynamic.py."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate, Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.dynamic.pool import DynamicPool
from tests.oracles.naive import words
from tests.oracles.naive_dynamic import Event, Feature, Pair, Settings, columns, infeasible, outcomes, rows_of
from tests.support.examples import budget

BINARY, NUMERIC = Kind.BINARY, Kind.NUMERIC
OFF = bool(numba.config.DISABLE_JIT)


def steps(count: int) -> int:
    """Return how long a stream is to be: a quarter where the compiler is off."""
    return count // 4 if OFF else count


@dataclass(frozen=True)
class Mix:
    """What a random stream is made of."""

    kinds: dict[Feature, Kind]
    classes: int = 2
    weights: tuple[int, ...] = (UNIT,)
    indexes: int = 1
    deletes: float = 0.3
    ids: bool = False
    dense: float = 0.5


MIXES = {
    "binary": Mix(dict.fromkeys(range(8), BINARY)),
    "numeric": Mix(dict.fromkeys(range(5), NUMERIC), ids=True),
    "mixed": Mix(
        {f: NUMERIC if f % 2 else BINARY for f in range(7)}, classes=3, weights=(UNIT, UNIT // 3, 4 * UNIT)
    ),
    "keys": Mix({f: NUMERIC if f % 3 else BINARY for f in range(5)}, indexes=3, ids=True),
    "up and down": Mix(dict.fromkeys(range(4), NUMERIC), deletes=0.5),
}


class Stream:
    """Random events; what is deleted was mostly inserted before."""

    def __init__(self, seed: int, mix: Mix) -> None:
        self._rng = random.Random(seed)
        self._mix = mix
        self._made: list[Event] = []
        self._count = 0

    def take(self, count: int) -> list[Event]:
        """Return the next events."""
        return [self._next() for _ in range(count)]

    def _next(self) -> Event:
        rng, mix = self._rng, self._mix
        kind = rng.random()
        if kind < mix.deletes and self._made:
            made = self._made.pop(rng.randrange(len(self._made)))
            return replace(made, op=Op.DELETE, label=made.label if rng.random() < 0.9 else 0)
        label = rng.randrange(mix.classes)
        x: dict[Feature, float] = {}
        for rank, (feature, each) in enumerate(mix.kinds.items()):
            if rng.random() < mix.dense:
                says = label if rng.random() < 0.6 and rank % 2 else rng.randrange(mix.classes)
                x[feature] = float(says) if each == BINARY else round(rng.gauss(says, 0.6), 1)
        self._count += 1
        event = Event(
            Op.INSERT,
            x,
            label,
            rng.choice(mix.weights),
            self._count if mix.ids else None,
            rng.randrange(mix.indexes),
        )
        if kind > 0.95:
            return replace(event, op=Op.PREDICT if kind < 0.997 else Op.DROP, id=None)
        self._made.append(event)
        return event


def of(mix: Mix, **rest: Any) -> Settings:
    """Return settings for a mix."""
    return Settings(classes=mix.classes, kinds={f: k for f, k in mix.kinds.items() if k != BINARY}, **rest)


def insert(*features: Feature, label: int = 0, **rest: Any) -> Event:
    """Return an insert of binary features."""
    return Event(Op.INSERT, dict.fromkeys(features, 1.0), label, **rest)


def deleted(event: Event) -> Event:
    """Return the delete of what an event inserts."""
    return replace(event, op=Op.DELETE)


# --- long streams


@pytest.mark.parametrize("epsilon", [0.0, 0.04, 0.3, 2.0])
@pytest.mark.parametrize("name", MIXES)
def test_long_streams_agree_with_the_oracle(name: str, epsilon: float) -> None:
    """Trees, s(v), c(v), statuses and guesses are the oracle's after every batch, of any size, restored or not."""
    mix = MIXES[name]
    pair = Pair(of(mix, epsilon=epsilon, window=25 if name == "keys" else None))
    stream = Stream(3, mix)
    rebuilds = 0
    for size in (1, 7, steps(120), steps(80), 1):
        rebuilds += sum(out.rebuilt > 0 for out in pair.feed(stream.take(size)))
        pair.check()
        pair.restored()
    assert rebuilds > (4 if epsilon < 1.0 else 2)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_trees_are_the_oracles_after_every_event(criterion: str) -> None:
    """Not only after a batch: each single event leaves the oracle's tree."""
    mix = MIXES["mixed"]
    pair = Pair(of(mix, epsilon=0.1, criterion=criterion, max_depth=4, alpha=0.1))
    for event in Stream(8, mix).take(steps(150)):
        pair.feed([event])
    pair.check()


def test_names_are_ordered_by_their_bytes() -> None:
    """Features with names give the oracle's trees, and what nobody refers to is forgotten."""
    mix = Mix({word: NUMERIC if at % 3 else BINARY for at, word in enumerate(words(9))}, indexes=2, ids=True)
    pair = Pair(of(mix, names=True, epsilon=0.2))
    stream = Stream(1, mix)
    for _ in range(4):
        pair.feed(stream.take(steps(60)))
        pair.check()
        pair.restored()
    pair.feed([Event(Op.DROP, key=key) for key in range(2)])
    pair.check()
    assert pair.pool.names is not None
    assert len(pair.pool.names) == len(pair.settings.kinds)


def test_what_is_told_does_not_depend_on_how_names_came_to_be_interned() -> None:
    """Batches of any size give the same answers to the bit, though names get other numbers in each."""
    mix = Mix({word: NUMERIC if at % 2 else BINARY for at, word in enumerate(words(8))}, indexes=2, deletes=0.4)
    events = Stream(8, mix).take(steps(250))
    seen = []
    for size in (1, 9, 1000):
        pool = of(mix, names=True, epsilon=0.2).pool()
        seen.append([out for at in range(0, len(events), size) for out in outcomes(pool, events[at : at + size])])
        pool.check()
    assert seen[0] == seen[1] == seen[2]


def test_batches_of_any_size_give_the_same_trees() -> None:
    """Batches of 1, 7 and 1000 give the same answers, trees and sizes."""
    for name, mix in MIXES.items():
        events = Stream(2, mix).take(steps(200))
        seen = []
        for size in (1, 7, 1000):
            pool = of(mix, epsilon=0.15, window=40 if name == "mixed" else None).pool()
            got = [out for at in range(0, len(events), size) for out in outcomes(pool, events[at : at + size])]
            seen.append((got, [(rows_of(pool.tree(key)), pool.sizes(key)) for key in range(3)]))
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
    pair = Pair(
        Settings(
            epsilon=data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.5])),
            alpha=data.draw(st.sampled_from([0.0, 0.4])),
            min_examples=data.draw(st.sampled_from([1, 3])),
            max_depth=data.draw(st.sampled_from([0, 2, 1 << 30])),
            criterion=data.draw(st.sampled_from(["gini", "entropy"])),
            classes=data.draw(st.integers(2, 3)),
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
    event = st.builds(
        Event,
        st.sampled_from([Op.INSERT] * 6 + [Op.DELETE] * 4 + [Op.PREDICT, Op.DROP]),
        st.fixed_dictionaries({}, optional={feature: values[each] for feature, each in kinds.items()}),
        st.integers(-1, pair.settings.classes) if data.draw(st.booleans()) else st.integers(0, 1),
        st.sampled_from([UNIT] * 5 + [1, 0, -UNIT, 5 * UNIT]),
        st.sampled_from([None, None, 1, 2, 3]),
        st.integers(0, 1) if data.draw(st.booleans()) else st.just(0),
    )
    for _ in range(data.draw(st.integers(1, 3))):
        pair.feed(data.draw(st.lists(event, max_size=40)))
        pair.check()
        pair.restored()


# --- what the paper promises


PROMISES = [
    Settings(epsilon=0.0159, alpha=0.1, beta=0.2),
    Settings(epsilon=0.0799, alpha=1.0, beta=1.0),
    Settings(epsilon=0.039, alpha=0.2, beta=0.5, min_examples=4, max_depth=3),
]


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("name", MIXES)
def test_trees_are_feasible_after_every_update(name: str, promise: Settings) -> None:
    """Definition 3.1 by brute force, over all splits of all nodes, where epsilon is just below the bound."""
    mix = replace(MIXES[name], indexes=1)
    chosen = replace(of(mix), **{each: getattr(promise, each) for each in ("epsilon", "alpha", "beta")})
    chosen = replace(chosen, min_examples=promise.min_examples, max_depth=promise.max_depth)
    pair = Pair(chosen)
    for event in Stream(5, mix).take(steps(120)):
        pair.feed([event])
        for tree in pair.twin.trees.values():
            assert infeasible(chosen, tree) is None


def test_an_infeasible_tree_is_told_from_a_feasible_one() -> None:
    """The check can fail: with a large epsilon and a small beta it does."""
    chosen = Settings(epsilon=2.0, alpha=0.01, max_depth=5)
    pair = Pair(chosen)
    found = set()
    for at in range(200):
        concept = at // 50 % 2
        pair.feed([insert(concept, label=at % 2) if at % 2 else insert(2)])
        found.add(infeasible(replace(chosen, beta=0.01), pair.twin.trees[0]))
    assert len(found) > 1


def test_without_slack_the_tree_is_always_the_greedy_one() -> None:
    """With epsilon 0 each event rebuilds the root: the splits are those of a tree built from scratch."""
    mix = MIXES["up and down"]
    pair = Pair(of(mix, epsilon=0.0))
    for event in Stream(4, mix).take(steps(100)):
        out = pair.feed([event])[0]
        if out.status == Status.APPLIED and event.op in (Op.INSERT, Op.DELETE):
            assert out.rebuilt == len(pair.twin.trees[0].live)


def test_a_subtree_is_rebuilt_with_those_above_of_about_its_size() -> None:
    """Line 9 of UPDATE: the highest ancestor that was built with at most s^ examples goes along."""
    pair = Pair(Settings(epsilon=0.5, kinds={0: NUMERIC}))
    rng = random.Random(0)
    seen = set()
    for _ in range(steps(300)):
        value = rng.random()
        out = pair.feed([Event(Op.INSERT, {0: value}, int(value * 8) % 2)])[0]
        seen.add(out.rebuilt)
    assert len(seen) > 4, "always the same subtree"


# --- storage


def test_a_steady_window_needs_no_more_room() -> None:
    """Once a window is full no array grows, however long the stream and however often trees are rebuilt."""
    mix = Mix({f: NUMERIC if f % 2 else BINARY for f in range(6)}, ids=True, deletes=0.0)
    pool = of(mix, epsilon=0.05, window=30).pool()
    stream = Stream(9, mix)

    def run(count: int) -> None:
        for event in stream.take(count):
            if event.op == Op.INSERT:
                outcomes(pool, [event])

    def sizes() -> dict[str, int]:
        return {name: len(array) for name, array in {**pool.arrays(), **pool._scratch._asdict()}.items()}

    run(steps(200))
    before = sizes()
    run(steps(800))
    after = sizes()
    # Twice what is live, when they are made; how many features that are depends on the examples.
    for name in ("ledger.features", "values", "column", "owner", "value"):
        assert after.pop(name) <= 2 * (30 + 1) * len(mix.kinds)
        del before[name]
    assert after == before
    assert pool.live_examples == 30
    pool.check()


def test_what_was_forgotten_leaves_nothing_behind() -> None:
    """Deleting all examples, or dropping the trees, gives everything back; the pool goes on."""
    mix = MIXES["keys"]
    pair = Pair(of(mix, epsilon=0.2))
    events = [event for event in Stream(6, mix).take(200) if event.op == Op.INSERT]
    pair.feed(events)
    pair.feed([deleted(event) for event in reversed(events)])
    pair.check()
    assert (pair.pool.live_examples, pair.pool.slots) == (0, 0)
    assert pair.pool.predict({0: 1.0}).tolist() == [0.0, 0.0]
    pair.feed([Event(Op.DROP, key=key) for key in range(3)])
    assert (pair.pool.alive, pair.pool.node_count) == (0, 0)
    pair.feed(events)
    pair.check()


def test_a_restored_pool_may_drop_first() -> None:
    """A pool whose scratch is still small can drop a tree that is not."""
    pair = Pair(Settings())
    pair.feed([insert(at % 7, label=at % 2) for at in range(60)])
    pair.restored()
    pair.feed([Event(Op.DROP), insert(1)])
    pair.check()


def test_a_deep_tree_is_built_without_recursion() -> None:
    """A tree as deep as it has splits is built, walked, checked and torn down."""
    size = 100 if OFF else 3000
    pool = Settings(epsilon=0.5, kinds={0: NUMERIC}, evaluate=False).pool()
    # Labels in turn: the best split takes one example from an end, every time.
    outcomes(pool, [Event(Op.INSERT, {0: float(at)}, at % 2) for at in range(size)])
    assert pool.depth > size // 3
    assert len(pool.tree().number) == pool.node_count
    pool.drop()
    assert pool.node_count == 0


# --- what is told


@pytest.mark.parametrize("snapshots", [Emit(When.CHANGE), Emit(When.EVERY, 7), Emit(When.EVERY_MS, 40)])
def test_snapshots_are_taken_when_they_are_due(snapshots: Emit) -> None:
    """After every rebuild, every n events or in every period of event time: the tree as it is then."""
    mix = MIXES["keys"]
    rng = random.Random(4)
    events = [replace(event, time=5 * at + rng.randrange(30)) for at, event in enumerate(Stream(6, mix).take(200))]
    pair = Pair(of(mix, snapshots=snapshots, epsilon=0.3))
    got = [out for at in range(0, len(events), 50) for out in pair.feed(events[at : at + 50])]
    assert sum(out.snapshot is not None for out in got) > 3


def test_reading_changes_nothing() -> None:
    """Predictions, snapshots and sizes leave every array as it was."""
    mix = MIXES["numeric"]
    pool = of(mix).pool()
    outcomes(pool, Stream(6, mix).take(100))
    before = {name: array.copy() for name, array in pool.arrays().items()}
    outcomes(pool, [replace(event, op=Op.PREDICT) for event in Stream(7, mix).take(50)])
    pool.tree()
    pool.sizes()
    pool.check()
    for name, array in pool.arrays().items():
        assert np.array_equal(array, before[name]), name


def test_a_leaf_that_was_emptied_leaves_the_answer_to_its_parent() -> None:
    """Where deletes have left a leaf without examples the nodes above answer."""
    pair = Pair(Settings(epsilon=1.0))
    pair.feed([insert(1, label=1) for _ in range(2)] + [insert(2) for _ in range(14)])
    pair.feed([insert(1, label=1) for _ in range(2)])
    assert pair.pool.sizes().leaves == 2
    pair.feed([deleted(insert(1, label=1)) for _ in range(4)])
    assert pair.pool.predict([1]).tolist() == [14.0, 0.0]
    assert pair.pool.sizes().leaves in (1, 2)


def test_what_is_refused_changes_nothing() -> None:
    """Deletes of what is not there, wrong labels, weights and values, and one tree too many are told by status."""
    settings_ = Settings(max_keys=1, max_live_ids=2, window=3, kinds={5: NUMERIC}, evaluate=False)
    pool = settings_.pool()
    outcomes(pool, [insert(1, label=1, id=1), insert(2), insert(2), insert(2), insert(3, id=4)])
    before = {name: array.copy() for name, array in pool.arrays().items()}
    wrong = [
        (insert(1, key=5), Status.TOO_MANY_KEYS),
        (deleted(insert(2, label=1)), Status.ABSENT_EXAMPLE),
        (deleted(insert(2, weight=2 * UNIT)), Status.ABSENT_EXAMPLE),
        (deleted(insert(2, weight=-UNIT)), Status.ABSENT_EXAMPLE),
        (deleted(insert(2, 5)), Status.ABSENT_EXAMPLE),
        (deleted(insert(2, key=7)), Status.ABSENT_EXAMPLE),
        (deleted(insert(3)), Status.ABSENT_EXAMPLE),  # it has an id
        (deleted(insert(id=1)), Status.ALREADY_DROPPED),
        (deleted(insert(id=9)), Status.ABSENT_ID),
        (deleted(insert(id=1, key=8)), Status.ABSENT_ID),
        (insert(1, id=4), Status.DUPLICATE_ID),
        (insert(1, label=2), Status.WRONG_LABEL),
        (insert(1, label=-1), Status.WRONG_LABEL),
        (insert(1, weight=-1), Status.WRONG_WEIGHT),
        (insert(1, weight=0), Status.IGNORED),
        (insert(1, weight=MAX_TOTAL), Status.COUNT_OVERFLOW),
        (Event(Op.INSERT, {5: float("nan")}), Status.WRONG_VALUE),
        (Event(Op.DELETE, {5: float("inf")}), Status.WRONG_VALUE),
        (Event(Op.PREDICT, {5: -float("inf")}), Status.WRONG_VALUE),
    ]
    got = outcomes(pool, [event for event, _ in wrong])
    assert [each.status for each in got] == [status for _, status in wrong]
    for name, array in pool.arrays().items():
        same = array[: len(before[name])] if name == "trees" or name == "ledger.heads" else array
        assert np.array_equal(same, before[name]), name
    pool.check()


def test_a_corrected_label_takes_the_old_ones_place() -> None:
    """With on_duplicate REPLACE the tree is that of the examples as corrected."""
    pair = Pair(Settings(on_duplicate=OnDuplicate.REPLACE, epsilon=0.0))
    pair.feed([insert(at % 2, label=at % 2, id=at) for at in range(10)])
    pair.feed([insert(at % 2, label=1 - at % 2, id=at) for at in range(10)])
    assert pair.pool.predict([0]).tolist() == [0.0, 5.0]
    pair.check()


def test_scaling_weights_changes_no_split() -> None:
    """Three times the weights give the same trees, rebuilt at the same events."""
    mix = MIXES["mixed"]
    events = Stream(5, replace(mix, weights=(UNIT, 5 * UNIT))).take(steps(200))
    told = []
    for factor in (1, 3):
        pool = of(mix, epsilon=0.1).pool()
        got = outcomes(pool, [replace(event, weight=factor * event.weight) for event in events])
        told.append(([(out.status, out.predicted, out.rebuilt) for out in got], pool.tree().feature))
    assert told[0] == told[1]


def test_counts_of_the_heaviest_edits_do_not_overflow() -> None:
    """However often the heaviest example comes and goes, and however large epsilon is, c(v) stays a count."""
    pair = Pair(Settings(epsilon=50.0))
    heavy = insert(1, weight=MAX_TOTAL // 2, label=1)
    for _ in range(40):
        pair.feed([heavy, insert(2, weight=MAX_TOTAL // 4), deleted(heavy)])
        pair.feed([deleted(insert(2, weight=MAX_TOTAL // 4))])
        pair.check()


# --- for library users


def test_one_example_at_a_time() -> None:
    """Examples come and go by value or by id; what is wrong with one is said."""
    pool = DynamicPool(kinds={7: NUMERIC}, classes=3, epsilon=0.0)
    assert pool.insert([3, 1], 1) == Status.APPLIED
    assert pool.insert({1: 2.0, 7: 0.5, 8: 0.0}, 2, weight=0.5) == Status.APPLIED
    assert pool.insert({7: -1.0}, 0, id="mail 1") == Status.APPLIED
    assert pool.insert({7: -1.0}, 0, id=b"mail 1") == Status.APPLIED
    assert pool.insert([], 0, id="mail 1") == Status.DUPLICATE_ID
    assert pool.predict({7: -3.0}).tolist() == [2.0, 0.0, 0.0]
    assert pool.delete({1: 1.0, 7: 0.5}, 2, weight=0.5) == Status.APPLIED
    assert pool.delete({1: 1.0, 7: 0.5}, 2, weight=0.5) == Status.ABSENT_EXAMPLE
    assert pool.delete(id="mail 1") == Status.APPLIED
    assert pool.delete(id="mail 1") == Status.ABSENT_ID
    assert pool.sizes().examples == 2
    for x, rest in (
        ([1, 1], {"label": 0}),
        ([1], {"label": 3}),
        ([1], {"label": 0, "weight": -1.0}),
        ([1], {"label": 0, "weight": float("nan")}),
        ({1: float("nan")}, {"label": 0}),
        ([b"name"], {"label": 0}),
        ([1 << 32], {"label": 0}),
        ([1], {"label": 0, "key": -1}),
    ):
        with pytest.raises(ValueError, match=r"expected|twice"):
            pool.insert(x, **rest)
    pool.drop()
    assert (pool.alive, pool.tree().feature) == (0, [])
    pool.check()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"epsilon": -0.1}, "epsilon of at least 0"),
        ({"epsilon": float("nan")}, "epsilon of at least 0"),
        ({"beta": 2.0}, "beta from 0 to 1"),
        ({"beta": 0.5, "alpha": 0.0, "epsilon": 0.01}, "alpha above 0"),
        ({"beta": 0.5, "alpha": 0.5, "epsilon": 0.04}, r"below 0\.04"),
        ({"beta": 1.0, "alpha": 0.1, "epsilon": 0.02}, r"below 0\.02"),
        ({"beta": 1.0, "alpha": 1.0, "epsilon": 0.05, "min_examples": 19}, r"below 0\.05"),
        ({"beta": 0.5, "alpha": 0.5, "epsilon": 0.01, "criterion": "entropy"}, "the criterion gini"),
        ({"guarantee": "near"}, "the guarantee 'exact', or none"),
        ({"guarantee": "exact", "epsilon": 0.1}, "no epsilon and no beta"),
        ({"guarantee": "exact", "beta": 0.1}, "no epsilon and no beta"),
        ({"window": 0}, "window of at least 1"),
        ({"kinds": {1: Kind.NOMINAL}}, "a binary feature each"),
        ({"snapshots": Emit(When.EVERY, 0)}, "at least 1"),
        ({"classes": 1}, "at least 2 classes"),
    ],
)
def test_wrong_settings_are_refused_with_a_reason(changed: dict[str, Any], reason: str) -> None:
    """What cannot be, or could not be promised, is refused when the pool is made."""
    with pytest.raises(ValueError, match=reason):
        DynamicPool(**changed)


def test_an_empty_tree_knows_nothing() -> None:
    """Predictions of a tree that has seen nothing are no class, and no error."""
    pair = Pair(Settings())
    out = pair.feed([Event(Op.PREDICT, {1: 1.0})])[0]
    assert (out.predicted, out.leaf, out.weights) == (-1, 0, ("0x0.0p+0", "0x0.0p+0"))


def trees_of(events: Sequence[Event], chosen: Settings) -> list[Any]:
    """Return the oracle's rows of the one tree that events lead to."""
    pair = Pair(chosen)
    pair.feed(events)
    return columns(pair.twin.terms, pair.twin.trees[0].root)


def test_history_leaves_no_trace_with_epsilon_0() -> None:
    """What came and went again changes no split: the tree is that of the examples that are left."""
    stays = [Event(Op.INSERT, {0: float(at % 5), 1: float(at % 3)}, at % 2) for at in range(20)]
    goes = [Event(Op.INSERT, {0: float(at), 2: 1.0}, at % 2) for at in range(15)]
    chosen = Settings(epsilon=0.0, default=NUMERIC)
    there_and_back = [*goes, *stays, *(deleted(event) for event in goes)]
    assert [row[3:] for row in trees_of(there_and_back, chosen)] == [row[3:] for row in trees_of(stays, chosen)]
