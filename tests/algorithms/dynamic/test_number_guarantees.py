"""Trees of numbers that keep floors: exact ones are built from scratch, others near, by exact rationals."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate, Op
from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.dynamic import bands, columns, floors, rivals, slack, variance
from algorithms.dynamic.numbers import DynamicNumberPool
from tests.algorithms.dynamic.test_dynamic import OFF, deleted, steps
from tests.algorithms.dynamic.test_dynamic_numbers import KINDS, RANGES, Stream, label_of
from tests.oracles.naive import words
from tests.oracles.naive_dynamic import Event, Example, Feature
from tests.oracles.naive_dynamic_numbers import (
    NumberSettings,
    NumberTerms,
    number_outcomes,
    number_rows_of,
    squares,
)
from tests.oracles.naive_number_guarantees import NumberGreedyPair, NumberNearPair, number_lacks
from tests.support.examples import budget

BINARY, NUMERIC = Kind.BINARY, Kind.NUMERIC

# How often a stream looks: at all of the tree, on the way of each example, hardly ever.
LOOKS: dict[str, dict[str, Any]] = {
    "all": {"evaluate": False, "snapshots": Emit(When.EVERY, 1)},
    "change": {"evaluate": False, "snapshots": Emit(When.CHANGE)},
    "ways": {"evaluate": True, "snapshots": Emit(When.EVERY, 40)},
    "few": {"evaluate": False, "snapshots": Emit(When.EVERY, 90)},
}


ALIKE = [72, 204, 497, 515, 621]  # draws of which each kept a split that was no longer allowed


def of(kinds: dict[Feature, Kind], **rest: Any) -> NumberSettings:
    """Return settings for features of these kinds."""
    return NumberSettings(epsilon=None, kinds={f: k for f, k in kinds.items() if k != BINARY}, **rest)


def exact_of(kinds: dict[Feature, Kind], **rest: Any) -> NumberSettings:
    """Return settings of an exact tree for features of these kinds."""
    return of(kinds, guarantee="exact", **rest)


@pytest.mark.parametrize("looks", LOOKS)
@pytest.mark.parametrize("scale", RANGES)
@pytest.mark.parametrize("name", KINDS)
def test_exact_trees_are_built_from_scratch_at_every_look(name: str, scale: str, looks: str) -> None:
    """Structure, thresholds, sums and numbers are those of a build from scratch, whoever looks and when."""
    kinds, heavy = KINDS[name], scale in ("plain", "tiny")
    window = 25 if name == "mixed" else None
    pair = NumberGreedyPair(exact_of(kinds, scale=RANGES[scale], window=window, **LOOKS[looks]))
    stream = Stream(3, kinds, RANGES[scale], ids=name == "mixed", keys=2, heavy=heavy)
    for size in (1, 7, steps(90), steps(60), 1):
        pair.feed(stream.take(size))
        pair.check()
        pair.restored()


@pytest.mark.parametrize("terms", [{"max_depth": 3}, {"min_examples": 4}, {"max_depth": 0}])
def test_exact_trees_mind_the_terms(terms: dict[str, Any]) -> None:
    """What is a leaf by depth or size becomes one and ceases to be one as a build from scratch has it."""
    kinds = KINDS["mixed"]
    pair = NumberGreedyPair(exact_of(kinds, **terms))
    for event in Stream(8, kinds, (0.0, 100.0, 1.0)).take(steps(90)):
        pair.feed([event])
    pair.check()


def test_exact_trees_of_names() -> None:
    """Ties go by the bytes of names, and what nobody has any more is no name of a node."""
    kinds: dict[Feature, Kind] = {word: NUMERIC if at % 3 else BINARY for at, word in enumerate(words(9))}
    pair = NumberGreedyPair(exact_of(kinds, names=True, evaluate=False))
    stream = Stream(1, kinds, (0.0, 4.0, 1.0), deletes=0.45, ids=True, keys=2)
    for _ in range(4):
        pair.feed(stream.take(steps(60)))
        pair.check()
        pair.restored()
        for key in range(2):
            pair.compare(key)
    pair.feed([Event(Op.DROP, key=key) for key in range(2)])
    pair.check()
    assert len(pair.pool.names) == len(pair.settings.kinds)


def history(data: st.DataObject, pair: NumberGreedyPair, kinds: dict[int, Kind]) -> None:
    """Feed a pair any history."""
    scale = pair.settings.scale
    values = {
        BINARY: st.sampled_from([0.0, 1.0, -2.5]),
        NUMERIC: st.sampled_from([-1e300, -1.0, -0.0, 5e-324, 0.5, 0.75, 1.0, 2.0]),
    }
    label = st.builds(label_of, st.just(scale), st.sampled_from([0.0, 0.25, 0.5, 0.5 + 1e-9, 1.0]))
    wrong = st.sampled_from([math.nan, math.inf, -math.inf, 1e308, scale[1] * 2.0 + 1.0])
    event = st.builds(
        Event,
        st.sampled_from([Op.INSERT] * 6 + [Op.DELETE] * 5 + [Op.PREDICT] * 2 + [Op.DROP]),
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


def any_settings(data: st.DataObject, kinds: dict[int, Kind], **rest: Any) -> NumberSettings:
    """Return any settings with these."""
    return NumberSettings(
        epsilon=None,
        scale=data.draw(st.sampled_from(list(RANGES.values()))),
        min_examples=data.draw(st.sampled_from([1, 3])),
        max_depth=data.draw(st.sampled_from([0, 2, 1 << 30])),
        kinds={feature: kind for feature, kind in kinds.items() if kind != BINARY},
        window=data.draw(st.sampled_from([None, None, 1, 4])),
        on_duplicate=data.draw(st.sampled_from(OnDuplicate)),
        evaluate=data.draw(st.booleans()),
        max_keys=data.draw(st.sampled_from([1, 9])),
        max_live_ids=data.draw(st.sampled_from([2, 99])),
        snapshots=data.draw(st.sampled_from([Emit(), Emit(When.CHANGE), Emit(When.EVERY, 3)])),
        **rest,
    )


MIXED = {0: BINARY, 2: NUMERIC, 5: BINARY, 4294967295: NUMERIC}
ANY = settings(
    max_examples=budget(250),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@ANY
@given(st.data())
def test_any_history_leads_to_the_tree_from_scratch(data: st.DataObject) -> None:
    """Whatever is inserted, deleted, predicted, dropped and restored, in any order of looks."""
    history(data, NumberGreedyPair(any_settings(data, MIXED, guarantee="exact")), MIXED)


@ANY
@given(st.data())
def test_any_history_leads_to_a_tree_that_is_near(data: st.DataObject) -> None:
    """Whatever comes, no split is more than beta times the variance of the tree's labels below the best."""
    beta = data.draw(st.sampled_from([0.001, 0.05, 0.5, 1.0]))
    history(data, NumberNearPair(any_settings(data, MIXED, beta=beta)), MIXED)


# --- adversarial orders


def number(value: float, label: float, **rest: Any) -> Event:
    """Return an insert of one number."""
    return Event(Op.INSERT, {0: value}, label, **rest)


def test_values_that_move_a_threshold_leave_the_subtrees() -> None:
    """A value beside the threshold comes and goes: the threshold moves as from scratch, and nothing is rebuilt."""
    pair = NumberGreedyPair(exact_of({0: NUMERIC}, scale=(0.0, 1000.0, 1.0), evaluate=False))
    low, high = [1.0, 2.0, 3.0, 4.0], [8.0, 9.0, 10.0, 11.0]
    pair.feed([number(v, v) for v in low] + [number(v, 900.0 + v) for v in high])
    pool = pair.pool
    pool.look(0)
    for event in [number(6.0, 6.0), deleted(number(6.0, 6.0)), deleted(number(8.0, 908.0)), number(5.0, 5.0)]:
        before = pool.tree().threshold[0]
        number_outcomes(pool, [event])
        pair.twin.apply(event)
        pair.compare(0)
        # The subtree that the edit is in may be another: the other one, of at least three examples, is not built.
        assert pool.look(0) <= 5
        assert pool.tree().threshold[0] != before


def test_ties_that_flip() -> None:
    """Two features say the same but of one example, which comes and goes: the lower feature wins every tie."""
    pair = NumberGreedyPair(exact_of({0: NUMERIC, 1: NUMERIC}, evaluate=False))
    both = [Event(Op.INSERT, {0: v, 1: v}, 10.0 * (v > 3)) for v in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)]
    pair.feed(both)
    for feature in (0, 1):
        for label in (0.0, 10.0):
            event = Event(Op.INSERT, {feature: 9.0}, label)
            pair.feed([event])
            pair.feed([deleted(event)])
    pair.check()


def test_no_gain_until_there_is_one() -> None:
    """Where no split reduces the variance the lowest feature parts, and one edit makes another the best."""
    pair = NumberGreedyPair(exact_of({}, evaluate=False))
    for a in (0, 1):
        for b in (0, 1):
            pair.feed([Event(Op.INSERT, {f: 1.0 for f, on in ((3, a), (4, b)) if on}, 10.0 * (a ^ b))])
    extra = Event(Op.INSERT, {4: 1.0}, 30.0)
    for _ in range(3):
        pair.feed([extra])
        pair.feed([deleted(extra)])
    pair.check()


def test_a_feature_that_all_have_parts_once_one_has_it_not() -> None:
    """A value that all have parts nothing, until an example comes without it that tells nothing new otherwise."""
    kinds: dict[Feature, Kind] = {3: NUMERIC}
    pair = NumberGreedyPair(exact_of(kinds, max_depth=1, evaluate=False))
    both = [Event(Op.INSERT, {3: 5.0, 7: 1.0}, label) for label in (9.0, 9.0, 9.0, 0.0)]
    pair.feed([*both, *(Event(Op.INSERT, {3: 5.0}, label) for label in (0.0, 0.0, 9.0))])
    pair.pool.look(0)
    for _ in range(8):
        pair.feed([Event(Op.INSERT, {7: 1.0}, 50.0)])
    assert pair.pool.tree().feature[0] == 3


def test_outliers_come_and_go() -> None:
    """One label that is a billion times as far off as the others does not blur what floors say of these."""
    kinds = KINDS["mixed"]
    scale = (0.0, float(1 << 40), 1.0)
    pair = NumberGreedyPair(exact_of(kinds, scale=scale, evaluate=False))
    near = NumberNearPair(of(kinds, scale=scale, beta=0.01, evaluate=False))
    rng = random.Random(4)
    stream = Stream(9, kinds, (0.0, 16.0, 1.0))
    for _ in range(8):
        features: dict[Feature, float] = {0: 1.0, 1: rng.choice([0.5, -0.5])}
        outlier = Event(Op.INSERT, features, float(rng.randrange(1 << 39, 1 << 40)), id=99)
        for events in ([outlier], stream.take(6), [deleted(outlier)], stream.take(6)):
            pair.feed(events)
            near.feed(events)
    pair.check()
    near.check()


@pytest.mark.parametrize("guarantee", [{"guarantee": "exact"}, {"beta": 0.01}])
def test_constant_labels_never_split(guarantee: dict[str, Any]) -> None:
    """Whatever the labels' size, a node whose labels are all the same is a leaf; one that differs splits it."""
    for low, high, unit in RANGES.values():
        pool = DynamicNumberPool(Scale(low, high, unit), **guarantee)
        for at in range(20):
            pool.insert([at % 3, 5], low + unit)
        assert len(pool.tree().number) == 1
        pool.insert([7], low, id="other")
        assert pool.tree().feature[0] == 5
        pool.delete(id="other")
        assert len(pool.tree().number) == 1


@pytest.mark.parametrize("seed", ALIKE)
def test_a_beta_holds_where_labels_become_alike_elsewhere(seed: int) -> None:
    """What a split may lack is a share of the variance of all labels: edits in one node ask more of another."""
    draw = random.Random(seed)
    told = NumberSettings(epsilon=None, kinds={}, beta=draw.choice([0.01, 0.03, 0.1]))
    pool = DynamicNumberPool(Scale(0, 1000, 1), beta=told.beta)
    live: dict[str, Example] = {}

    def insert(id: str, x: list[int], label: int) -> None:
        pool.insert(x, label, id=id)
        live[id] = Example(dict.fromkeys(x, 1.0), label, 1)
        pool.look(0)

    def low(id: str) -> None:
        x = [feature for feature in (1, 2, 4) if draw.random() < 0.5]
        insert(id, x, 10 + 3 * (1 in x) + 3 * (2 in x) + draw.randrange(3))

    def delete(id: str) -> None:
        pool.delete(id=id)
        del live[id]
        pool.look(0)

    for at in range(14):
        low(f"low {at}")
    for at in range(6):
        insert(f"high {at}", [0, 3] if at % 2 else [0], draw.choice([40, 60, 90]) if at % 2 else 30)
    for at in range(8):
        low(f"more {at}")
        delete(f"low {at}")
    for at in range(6):
        delete(f"high {at}")
        insert(f"alike {at}", [0, 3] if at % 2 else [0], 31 if at % 2 else 30)
        assert not number_lacks(told, pool.tree(), list(live.values()))


@pytest.mark.skipif(not OFF, reason="compiled kernels do not see another width")
@pytest.mark.parametrize("guarantee", [{"guarantee": "exact"}, {"beta": 0.01}])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_few_columns_have_floors_of_their_own(
    guarantee: dict[str, Any], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a node has more numeric features than places, or binary ones than rivals, the rest has a floor."""
    monkeypatch.setattr(columns, "WIDTH", width)
    monkeypatch.setattr(bands, "WIDTH", width + 4)
    monkeypatch.setattr(bands, "WORTHWHILE", 2)
    monkeypatch.setattr(rivals, "WIDTH", 2)
    kinds: dict[Feature, Kind] = {f: NUMERIC if f % 3 else BINARY for f in range(9)}
    pair = (NumberGreedyPair if "guarantee" in guarantee else NumberNearPair)(
        of(kinds, evaluate=True, **guarantee)
    )
    stream = Stream(5, kinds, (0.0, 20.0, 1.0))
    for size in (1, steps(60), steps(60)):
        pair.feed(stream.take(size))
        pair.check()
        pair.restored()


# --- floors


@settings(max_examples=budget(300), deadline=None, derandomize=True, database=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 2, 5, 1 << 20, 1 << 39, 1 << 40]), st.integers(1, 4)),
        min_size=2,
        max_size=7,
    ),
    st.integers(0, 6),
)
def test_an_edit_lowers_what_is_left_by_no_more_than_is_said(pairs: list[tuple[int, int]], gone: int) -> None:
    """Of all ways to part a node none leaves less than floors say, after a delete and after an insert."""
    criterion, terms = variance.make(1 << 40), NumberTerms()
    made = [Example({}, label, weight) for label, weight in pairs]
    gone %= len(made)
    weights = np.zeros((1, 4), np.int64)
    for each in made:
        variance.add_to_node(weights, 0, each.label, each.weight)
    known = slack.make(1, 2, has_binary=False, has_numeric=False, of_numbers=True, is_exact=True)
    columns.begin_extremes(known.columns, 0, made[0].label)
    for each in made:
        columns.note_label(known.columns, 0, each.label)
    whole = floors.whole_of(criterion, weights, 0, weights[0, :2])
    exact = squares(terms.counts(made))
    assert abs(Fraction(whole.left) - exact) <= exact * Fraction(1, 1 << 50)
    sides = [set(low) for size in range(len(made) + 1) for low in combinations(range(len(made)), size)]

    def left(low: set[int], without: int | None) -> Fraction:
        parts = [[], []]  # type: list[list[Example]]
        for at, each in enumerate(made):
            if at != without:
                parts[at in low].append(each)
        return sum((squares(terms.counts(part)) for part in parts), Fraction(0))

    for low in sides:
        # From all to one less, and back, which is an insert.
        known.floor[0] = floor = float(left(low, None)) - whole.error
        known.columns.lost[0] = 0.0
        columns.add(known.columns, 0, 7, floor, False)
        floors.note(criterion, known, weights, 0, made[gone].label, made[gone].weight, -1)
        assert left(low, gone) >= known.floor[0]
        assert left(low, gone) >= columns.floor_of(known.columns, 0, 0)
        assert left(low, gone) <= left(low, None)
        known.columns.sizes[0] = 0
    without = floors.left_without(criterion, weights, 0, made[gone].label, -made[gone].weight)
    assert without <= squares(terms.counts([each for at, each in enumerate(made) if at != gone]))


def test_scans_wait_for_edits_that_could_matter() -> None:
    """Where one split is far ahead many edits are looked through without a scan of the node."""
    pool = DynamicNumberPool(Scale(0.0, 100.0, 1.0), guarantee="exact", max_depth=1, evaluate=True)
    rng = random.Random(1)
    scanned = 0
    for at in range(400):
        x = [feature for feature in range(1, 6) if rng.random() < 0.5] + [9] * (at % 2)
        batch = [Event(Op.INSERT, dict.fromkeys(x, 1.0), 90.0 * (at % 2) + rng.randrange(10))]
        number_outcomes(pool, batch)
        if at > 200:
            scanned += pool.look(0)
    assert scanned == 0


def test_looking_by_hand_changes_nothing() -> None:
    """Trees, sizes and questions leave all arrays as they are."""
    kinds = KINDS["mixed"]
    pool = exact_of(kinds, evaluate=False).pool()
    events = Stream(2, kinds, (0.0, 100.0, 1.0)).take(40)
    number_outcomes(pool, [event for event in events if event.op != Op.DROP])
    before = {name: array.copy() for name, array in pool.arrays().items()}
    assert pool.awaits_look(0)
    pool.tree()
    pool.sizes()
    assert all(np.array_equal(before[name], array) for name, array in pool.arrays().items())


@pytest.mark.parametrize("guarantee", [{"guarantee": "exact"}, {"beta": 0.02}])
def test_batches_of_any_size_leave_the_same_arrays(guarantee: dict[str, Any]) -> None:
    """Batches of 1, 7 and 1000 give the same answers and the same bytes."""
    for name, kinds in KINDS.items():
        events = Stream(2, kinds, RANGES["plain"]).take(steps(200))
        seen = []
        for size in (1, 7, 1000):
            pool = of(kinds, scale=RANGES["plain"], window=40 if name == "mixed" else None, **guarantee).pool()
            got = [
                out for at in range(0, len(events), size) for out in number_outcomes(pool, events[at : at + size])
            ]
            arrays = {name: array.tobytes() for name, array in pool.arrays().items()}
            seen.append((repr(got), number_rows_of(pool.tree()), arrays))
        assert seen[0] == seen[1] == seen[2]


def test_history_leaves_no_trace() -> None:
    """Examples that came and went leave the tree, numbers of nodes among it, of those that stay."""
    kinds = KINDS["mixed"]
    events = [each for each in Stream(5, kinds, (0.0, 100.0, 1.0), deletes=0.0).take(80) if each.op == Op.INSERT]
    stay, go = events[::2], events[1::2]
    pool, other = (exact_of(kinds).pool() for _ in range(2))
    number_outcomes(pool, [*go[:10], *stay[:20], *go[10:], *stay[20:], *(deleted(each) for each in go)])
    number_outcomes(other, stay)
    assert number_rows_of(pool.tree()) == number_rows_of(other.tree())


# --- beta


@pytest.mark.parametrize("beta", [0.001, 0.02, 0.2])
@pytest.mark.parametrize("scale", ["plain", "huge", "fine"])
@pytest.mark.parametrize("name", KINDS)
def test_no_split_is_more_than_beta_below_the_best(name: str, scale: str, beta: float) -> None:
    """Every split of every node that is looked through is near the best one, of all, whatever comes."""
    kinds = KINDS[name]
    pair = NumberNearPair(of(kinds, scale=RANGES[scale], beta=beta, max_depth=5))
    stream = Stream(4, kinds, RANGES[scale])
    for size in (steps(60), steps(60)):
        pair.feed(stream.take(size))
        pair.check()
        pair.restored()


def test_a_tree_that_is_not_near_is_told_from_one_that_is() -> None:
    """The brute force of these tests finds a split that is too far below the best."""
    kinds = KINDS["numeric"]
    settings_ = of(kinds, beta=0.5, max_depth=4)
    pair = NumberNearPair(settings_)
    events = [event for event in Stream(4, kinds, (0.0, 100.0, 1.0)).take(steps(200)) if event.op != Op.DROP]
    pair.feed(events)
    live = pair.twin.trees[0].live
    assert number_lacks(settings_, pair.pool.tree(), live) is None
    assert number_lacks(replace(settings_, beta=1e-6), pair.pool.tree(), live) is not None


def test_more_slack_rebuilds_less() -> None:
    """The larger beta is, the less is rebuilt and scanned, and exact trees are rebuilt most."""
    kinds = KINDS["numeric"]
    events = Stream(6, kinds, (0.0, 100.0, 1.0)).take(steps(300))
    work = []
    for told in ({"guarantee": "exact"}, {"beta": 0.01}, {"beta": 0.3}):
        pool = of(kinds, max_depth=4, window=60, **told).pool()
        work.append(sum(int(_rebuilt(pool, event)) for event in events))
    assert work == sorted(work, reverse=True)
    assert work[-1] < work[0]


def _rebuilt(pool: DynamicNumberPool, event: Event) -> int:
    before = pool.sizes(event.key).rebuilt
    number_outcomes(pool, [event])
    return max(pool.sizes(event.key).rebuilt - before, 0)  # less where the tree was dropped
