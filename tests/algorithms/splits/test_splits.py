"""The contract of split models, over every finder and criterion, against the oracle in naive.py."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate, Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.splits import quadtree, slots
from algorithms.splits.finders import FINDERS
from algorithms.splits.kernel import LAST, SPLIT_DUE, TREE_DUE
from algorithms.splits.pool import SplitPool
from tests.oracles.naive import (
    KINDS,
    Event,
    Feature,
    Mix,
    Outcome,
    Pair,
    Settings,
    Stream,
    batch_of,
    ids,
    outcomes,
    words,
)
from tests.support.examples import budget

HALF, ODD = UNIT // 2, round(0.3 * UNIT)

pytestmark = pytest.mark.parametrize("kind", KINDS, ids="-".join)
Kind = tuple[str, str]


def of(kind: Kind, **rest: Any) -> Settings:
    """Return settings for a finder and criterion."""
    return Settings(finder=kind[0], criterion=kind[1], **rest)


def insert(*features: Feature, label: int = 0, **rest: Any) -> Event:
    """Return an insert."""
    return Event(Op.INSERT, features, label, **rest)


def delete(*features: Feature, label: int = 0, **rest: Any) -> Event:
    """Return a delete."""
    return Event(Op.DELETE, features, label, **rest)


def statuses(got: list[Outcome]) -> list[Status]:
    """Return what became of the events."""
    return [outcome.status for outcome in got]


def splits_due(got: list[Outcome]) -> list[int]:
    """Return after which events a split was due."""
    return [at for at, each in enumerate(got) if each.decision is not None and each.decision.due & SPLIT_DUE]


# --- what a split is


def test_the_best_split_parts_the_labels(kind: Kind) -> None:
    """The feature that all examples of one label have, and none of the other, has score 0."""
    pool = of(kind).pool()
    for _ in range(3):
        pool.insert([1, 5], 0)
        pool.insert([2, 5], 1)
    split = pool.best()
    assert (split.feature, split.runner_up) == (1, 2)  # an exact tie, so the lower id; all have 5
    assert (split.score, split.runner_up_score) == (0.0, 0.0)
    assert (split.totals, split.present) == ((3 * UNIT, 3 * UNIT), (3 * UNIT, 0))


def test_an_empty_or_pure_node_has_no_split(kind: Kind) -> None:
    """Nothing splits a node without two labels, and a prediction says that nothing is known."""
    pair = Pair(of(kind))
    pair.compare_best(0)
    got = pair.feed([Event(Op.PREDICT, (1,)), insert(1), insert(2), Event(Op.PREDICT, (1,))])
    assert got[0].prediction is not None
    assert got[0].prediction.weights == (0, 0)
    assert got[3].prediction is not None
    assert (got[3].prediction.leaf, got[3].prediction.weights) == (0, (2 * UNIT, 0))
    assert pair.pool.best().feature is None


def test_what_all_examples_have_is_no_split(kind: Kind) -> None:
    """A feature of all examples is neither best nor runner-up, until one comes that lacks it."""
    pair = Pair(of(kind, splits=Emit(When.EVERY, 1)))
    got = pair.feed([insert(0), insert(0, label=1), insert(0, 3, label=1), insert(3)])
    named = [(each.decision.feature, each.decision.runner_up) for each in got if each.decision is not None]
    assert named == [(None, None), (None, None), (3, None), (0, 3)]


@pytest.mark.parametrize("features", [(0, 4294967295), (b"", b"\xff"), (b"a", b"aa"), (b"\x7f", b"\x80")])
def test_ties_go_to_the_lower_feature_and_not_to_the_earlier(kind: Kind, features: tuple[Feature, ...]) -> None:
    """Of mirrored features, which tie to the bit, the lower id or name is best, whichever came first."""
    low, high = features
    for first, second in ((low, high), (high, low)):
        pair = Pair(of(kind, names=isinstance(low, bytes)))
        pair.feed([insert(first), insert(second, label=1), insert(), insert(label=1)])
        assert (pair.pool.best().feature, pair.pool.best().runner_up) == (low, high)


@pytest.mark.parametrize("more", [UNIT, ODD])
def test_a_tie_survives_among_many_features(kind: Kind, more: int) -> None:
    """Where a hundred features have equal counts the lowest is best; without it, the next lowest is."""
    pair = Pair(of(kind, verify_deletes=True))
    tens = [range(k, k + 10) for k in range(1, 101, 10)]
    pair.feed([insert(*ten) for ten in reversed(tens)])
    pair.feed([insert(label=1), insert(label=1), insert(200, label=1, weight=more)])
    pair.feed([delete(200, label=1, weight=more)])
    for ten in tens[:-1]:
        assert (pair.pool.best().feature, pair.pool.best().runner_up) == (ten[0], ten[1])
        pair.feed([delete(*ten)])
        pair.check()


def test_an_index_that_saw_nothing_has_no_split(kind: Kind) -> None:
    """Asking about a key that no event was for is no error, and a negative one is refused."""
    pool = of(kind).pool()
    assert (pool.best(5).feature, pool.best(5).totals) == (None, (0, 0))
    assert pool.alive == 0
    with pytest.raises(ValueError, match="the number of a key"):
        pool.best(-1)


# --- long streams


MIXES = {
    "few": Mix(ids(5), longest=5),
    "sparse": Mix(ids(300), longest=20),
    "named": Mix(ids(300), ids=0.5, longest=12),
    "weights": Mix(ids(300), weights=(UNIT, 2 * UNIT, HALF)),
    "odd-weights": Mix(ids(300), weights=(UNIT, ODD, 1, 3 * ODD), longest=12),
    "keys": Mix(ids(60), indexes=4, drops=0.01, ids=0.3, weights=(UNIT, HALF)),
    "words": Mix(words(300), longest=12, indexes=2),
}
STORES: dict[str, dict[str, Any]] = {
    "counts-only": {},
    "verified": {"verify_deletes": True},
    "window": {"window": 150},
}


@pytest.mark.wide(36)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("mix", MIXES)
def test_a_long_stream_with_deletes_agrees_with_the_oracle(kind: Kind, mix: str, store: str) -> None:
    """Up, mostly down, up, down to nothing and up again: every answer is the oracle's, to the bit."""
    few: dict[str, Any] = {"on_duplicate": OnDuplicate.REPLACE} if mix == "named" else {}
    named = isinstance(MIXES[mix].universe[0], bytes)
    pair = Pair(of(kind, names=named, trees=Emit(When.EVERY_MS, 40), **few, **STORES[store]))
    stream = Stream(len(mix))
    for deletes in (0.1, 0.65, 0.3):
        for batch in stream.batches(stream.take(budget(240), replace(MIXES[mix], deletes=deletes))):
            pair.feed(batch)
        pair.check()
        pair.restored()
        if deletes == 0.3:
            for batch in stream.batches(stream.drain()):
                pair.feed(batch)
            pair.check()
    if store == "verified":
        assert all(not state.counts for state in pair.twin.indexes.values())
    pair.feed(stream.take(budget(100), MIXES[mix]))
    pair.check()


def test_rare_features_wait_and_wake(kind: Kind) -> None:
    """Where one feature is much the best most others are in no cell, and are found once it is not."""
    pair = Pair(of(kind))
    rng = random.Random(0)
    # 1 marks the label well, 2 the other label less well, the rest say nothing.
    events = [
        insert(
            *[1] * (label and rng.random() < 0.95),
            *[2] * (not label and rng.random() < 0.7),
            *rng.sample(range(3, 200), 3),
            label=label,
        )
        for label in (k % 2 for k in range(600))
    ]
    pair.feed(events)
    pair.check()
    if kind[0] == "exact":
        rows = pair.pool.arrays()["slots.rows"][: pair.pool.slots]
        waiting = np.count_nonzero(rows[:, slots.MARK] == slots.NO_MARK)
        assert len(rows) / 2 < waiting < len(rows), "streams of this kind do not exercise the waiting"
    assert (pair.pool.best().feature, pair.pool.best().runner_up) == (1, 2)
    for event in events:
        if 1 in event.features or 2 in event.features:
            pair.feed([replace(event, op=Op.DELETE)])
    pair.check()
    assert pair.pool.best().feature not in (1, 2)
    if kind[0] == "exact":
        rows = pair.pool.arrays()["slots.rows"]
        assert np.count_nonzero((rows[:, slots.KEY] > 0) & (rows[:, slots.MARK] != slots.NO_MARK)) > 24, (
            "no quadtree worth the name"
        )


@pytest.mark.parametrize("names", [False, True])
def test_many_features_at_almost_the_same_counts_are_told_apart(kind: Kind, names: bool) -> None:
    """Of hundreds of near ties and ties the best is found, while they come, move and go."""
    pair = Pair(of(kind, names=names, splits=Emit(When.EVERY, 1)))
    rng = random.Random(8)
    universe: tuple[Feature, ...] = words(400) if names else ids(400)
    events: list[Event] = []
    for _ in range(max(2, budget(4))):
        features = rng.sample(universe, len(universe))
        for at in range(0, len(features), 16):
            # Both labels in turn: wherever they are the features tie, but for rounding, and leaves are near.
            one = insert(*features[at : at + 16], weight=rng.choice((16, 16, 17, 18)) * UNIT)
            both = [one, replace(one, label=1)]
            pair.feed(both)
            events += both
    pair.check()
    if kind[0] == "exact":
        nodes = pair.pool.arrays()["finder.boxes"]
        levels = nodes[:, quadtree.LEVEL]
        fine = (levels >= quadtree.LEAF) & (levels < quadtree.LEAF + quadtree.COARSE)
        assert np.count_nonzero(fine) > 4, "streams of this kind do not exercise the division of leaves"
        assert np.count_nonzero(nodes[fine, quadtree.LOWEST] != slots.NONE) > 4, "nor leaves of one point"
    rng.shuffle(events)
    for event in events[: budget(80)]:
        pair.feed([replace(event, op=Op.DELETE)])
    pair.check()
    pair.restored()


def test_the_only_feature_of_a_rare_label_is_found(kind: Kind) -> None:
    """A box whose far edge is no multiple of the grain is not cut off: skewed labels, few positives."""
    pair = Pair(of(kind))
    pair.feed([insert(10 + k % 30, 100 + k % 7, label=0) for k in range(budget(3000))])
    pair.feed([insert(100, label=1), insert(101, 11, label=1)])
    for k in range(60):
        pair.feed([insert(100 + k % 7, 10 + k % 30, label=k % 9 == 0)])
    pair.check()


@pytest.mark.parametrize("unit", [1, 1 << 37, 1 << 39])
def test_weights_of_any_size_agree_with_the_oracle(kind: Kind, unit: int) -> None:
    """From the least weight to totals near the bound, where floats no longer hold every count."""
    pair = Pair(of(kind, verify_deletes=True))
    stream = Stream(5)
    mix = Mix(ids(80), weights=(unit, 3 * unit, 4 * unit + 1), longest=12)
    for batch in stream.batches(stream.take(budget(400), mix)):
        pair.feed(batch)
    pair.check()


def test_totals_up_to_the_bound_are_searched_without_overflow(kind: Kind) -> None:
    """Three examples that together weigh almost 2^62 units, among forty features."""
    pair = Pair(of(kind))
    heavy = MAX_TOTAL // 4
    pair.feed([insert(*range(30), weight=heavy), insert(*range(20, 40), label=1, weight=heavy)])
    pair.feed([insert(*range(10, 25), label=1, weight=heavy), insert(*range(5, 35), weight=heavy - 1)])
    assert (
        statuses(pair.feed([insert(50), insert(weight=1 << 62), insert(weight=(1 << 63) - 1)]))
        == [Status.COUNT_OVERFLOW] * 3
    )
    pair.check()


def test_a_best_feature_of_half_the_largest_total_is_searched_without_overflow(kind: Kind) -> None:
    """The threshold of the waiting features may double only as far as int64 allows."""
    pair = Pair(of(kind))
    half = [insert(1, *range(100 + 20 * k, 115 + 20 * k), weight=MAX_TOTAL // 4) for k in range(2)]
    pair.feed([*half, insert(*range(200, 210), label=1, weight=MAX_TOTAL // 4)])
    pair.feed([insert(300, label=1) for _ in range(5)])
    pair.check()


def test_counts_near_the_bound_are_ranked_exactly(kind: Kind) -> None:
    """Up to the last unit below 2^62, all ranks are the oracle's, in weights that no double holds."""
    pair = Pair(of(kind, verify_deletes=True))
    rng = random.Random(62)
    heavy = [
        insert(*rng.sample(range(80), 25), label=k % 2, weight=(MAX_TOTAL >> 6) - rng.randrange(1, 9))
        for k in range(64)
    ]
    pair.feed(heavy)
    n0, n1 = pair.pool.best().totals
    pair.feed([insert(7, weight=MAX_TOTAL - 1 - n0 - n1)])
    assert sum(pair.pool.best().totals) == MAX_TOTAL - 1
    assert pair.twin.top(0, 100) == [(row.feature, row.score.hex(), row.present) for row in pair.pool.top(0, 100)]
    assert statuses(pair.feed([insert(8, weight=1)])) == [Status.COUNT_OVERFLOW]
    for example in heavy[:40]:
        pair.feed([replace(example, op=Op.DELETE)])
    pair.check()


def test_a_leaf_is_as_large_as_what_it_saw(kind: Kind) -> None:
    """500 features out of a million take the room of 500, wherever they lie."""
    rng = random.Random(6)
    seen = rng.sample(range(1_000_000), 500)
    pool = of(kind).pool()
    for at in range(0, 500, 25):
        pool.insert(seen[at : at + 25], at % 2)
    assert pool.features(0) == 500
    assert pool.nbytes < 100 * 1024


# --- batches, order, copies


def batched(settings: Settings, events: list[Event], size: int) -> tuple[list[Outcome], SplitPool]:
    """Return the outcomes of events applied in batches of a size."""
    pool = settings.pool()
    got = [each for at in range(0, len(events), size) for each in outcomes(pool, events[at : at + size])]
    return got, pool


@pytest.mark.parametrize("named", [False, True])
def test_batches_of_any_size_give_the_same_answers(kind: Kind, named: bool) -> None:
    """Batches of 1, 7 and 1000 give the same statuses, decisions and predictions, one after the other."""
    settings = of(kind, names=named, window=120, trees=Emit(When.EVERY, 5), on_duplicate=OnDuplicate.REPLACE)
    mix = Mix((words if named else ids)(200), indexes=3, ids=0.4, drops=0.005, weights=(UNIT, ODD))
    events = Stream(11).take(budget(1000), mix)
    one, pool = batched(settings, events, 1)
    for size in (7, 1000):
        many, other = batched(settings, events, size)
        assert many == one
        assert other.slots == pool.slots


def test_what_was_best_is_kept_as_long_as_it_is_there(kind: Kind) -> None:
    """Between decisions the best feature may leave, and another name get its number: sooner in small batches."""
    settings = of(kind, names=True, window=4, splits=Emit(When.EVERY, 7))
    events = Stream(14).take(budget(300), Mix(words(30), indexes=2, longest=3))
    kept = []
    for size in (1, 7, 1000):
        _, pool = batched(settings, events, size)
        pool.check()
        last = pool.arrays()["heads"][:, LAST].tolist()
        names = pool.names
        assert names is not None
        kept.append([each if each < 0 else names.name(each) for each in last])
    assert kept[0] == kept[1] == kept[2]


def test_the_order_of_an_examples_features_does_not_matter(kind: Kind) -> None:
    """Shuffling the features inside each example changes no answer."""
    rng = random.Random(3)
    events = Stream(12).take(budget(700), Mix(ids(200), longest=15))
    shuffled = [replace(each, features=tuple(rng.sample(each.features, len(each.features)))) for each in events]
    settings = of(kind, verify_deletes=True)
    assert batched(settings, events, 50)[0] == batched(settings, shuffled, 50)[0]


def test_reading_changes_no_answer(kind: Kind) -> None:
    """Predictions and looks at the best split leave no trace in what comes after."""
    events = Stream(13).take(budget(500), Mix(ids(200), predicts=0.0, longest=15))
    expected = batched(of(kind), events, 10)[0]
    pool = of(kind).pool()
    got: list[Outcome] = []
    for event in events:
        got.append(outcomes(pool, [event, Event(Op.PREDICT, event.features)])[0])
        pool.best()
    assert got == expected


def test_a_delete_of_all_leaves_an_index_as_good_as_new(kind: Kind) -> None:
    """After everything is taken back the key counts nothing and learns like a fresh one."""
    pair = Pair(of(kind, verify_deletes=True))
    events = [insert(*range(k % 7, k % 7 + 40), label=k % 2) for k in range(50)]
    pair.feed(events)
    pair.feed([replace(event, op=Op.DELETE) for event in reversed(events)])
    assert (pair.pool.slots, pair.pool.live_examples, pair.pool.alive) == (0, 0, 1)
    pair.feed([*events, Event(Op.DROP)])
    assert (pair.pool.slots, pair.pool.alive) == (0, 0)
    pair.check()
    pair.feed(events)
    pair.check()


# --- deletes


def test_a_false_delete_is_refused_where_the_counts_show_it(kind: Kind) -> None:
    """Without an example store a delete is refused that would leave a feature with more weight than its label."""
    pair = Pair(of(kind))
    common = [insert(*range(30), label=k % 2) for k in range(4)]
    got = pair.feed(
        [
            *common,
            delete(*range(29)),  # would leave 29 in two of one
            delete(*range(31)),  # 30 was never seen
            delete(*range(30), weight=3 * UNIT),
            delete(*range(30), label=1, weight=2 * UNIT),
            delete(*range(30), label=1),
            delete(),
            delete(*range(30)),
        ]
    )
    absent, applied = Status.ABSENT_EXAMPLE, Status.APPLIED
    assert statuses(got)[4:] == [absent, absent, absent, applied, absent, absent, applied]
    pair.check()


def test_false_deletes_are_told_from_true_ones_among_many_features(kind: Kind) -> None:
    """Single-feature deletes against hundreds of leaves and waiting features: refused as the counts say."""
    pair = Pair(of(kind))
    stream = Stream(21)
    mix = Mix(ids(250), deletes=0.1, longest=25)
    seen: set[Status] = set()
    for round_ in range(budget(40)):
        pair.feed(stream.take(15, mix))
        pair.feed([insert(0, label=round_ % 2), insert(0, 1, label=1)])
        false = stream.take(10, replace(mix, deletes=0.0, false_deletes=1.0, longest=1 + round_ % 2))
        seen.update(statuses(pair.feed(false)))
    assert seen == {Status.APPLIED, Status.ABSENT_EXAMPLE}
    pair.check()


def test_with_a_store_only_what_was_inserted_can_be_deleted(kind: Kind) -> None:
    """An example that the counts would allow, but that never came, is absent; weight and label matter."""
    pair = Pair(of(kind, verify_deletes=True))
    pair.feed([insert(1, 2), insert(3, 4), insert(1, 2), insert(5, id=1)])
    got = pair.feed(
        [
            delete(1, 4),
            delete(1, 2, label=1),
            delete(1, 2, weight=HALF),
            delete(5),  # it has an id
            delete(2, 1),
            delete(1, 2),
            delete(1, 2),
            delete(id=2),
            delete(id=1),
            delete(id=1),
        ]
    )
    absent, applied = Status.ABSENT_EXAMPLE, Status.APPLIED
    assert statuses(got)[:7] == [absent, absent, absent, absent, applied, applied, absent]
    assert statuses(got)[7:] == [Status.ABSENT_ID, applied, Status.ABSENT_ID]
    pair.check()


@pytest.mark.parametrize("on_duplicate", OnDuplicate)
@pytest.mark.parametrize("store", STORES)
def test_a_live_id_that_comes_again_follows_the_rule(kind: Kind, store: str, on_duplicate: OnDuplicate) -> None:
    """It is refused, ignored or takes the place of the old one: a corrected label."""
    pair = Pair(of(kind, on_duplicate=on_duplicate, **STORES[store]))
    got = pair.feed([insert(1, id=7), insert(2, id=8, label=1), insert(1, 3, id=7, label=1), delete(id=7)])
    expected = (Status.DUPLICATE_ID, Status.IGNORED, Status.APPLIED)[on_duplicate]
    assert statuses(got) == [Status.APPLIED, Status.APPLIED, expected, Status.APPLIED]
    assert pair.pool.slots == 1
    pair.check()


def test_a_replacement_with_the_same_best_feature_is_no_change(kind: Kind) -> None:
    """Where a replaced example alone bears the best feature, and still does, nothing is due."""
    pair = Pair(of(kind, on_duplicate=OnDuplicate.REPLACE))
    got = pair.feed([insert(5, id=1, label=1), insert(), insert(5, id=1, label=1), insert(5, 9, id=1, label=1)])
    assert splits_due(got) == [1]


# --- windows


def test_a_window_keeps_the_last_examples(kind: Kind) -> None:
    """The oldest example leaves as one comes; a late delete of it is told from that of an unknown id."""
    pair = Pair(of(kind, window=2))
    pair.feed([insert(1, id=1), insert(2, id=2, label=1), insert(3, id=3), insert(4, label=1), insert(5, id=5)])
    got = pair.feed([delete(id=1), delete(id=2), delete(id=2), delete(id=9), delete(id=3), delete(4, label=1)])
    dropped, applied, absent = Status.ALREADY_DROPPED, Status.APPLIED, Status.ABSENT_ID
    assert statuses(got) == [absent, dropped, dropped, absent, dropped, applied]
    assert pair.pool.live_examples == 1
    got = pair.feed([insert(2, id=2), delete(id=2), delete(id=2), delete(id=3)])
    assert statuses(got) == [applied, applied, absent, dropped]
    pair.check()


def test_a_window_of_one_knows_the_last_example_only(kind: Kind) -> None:
    """The smallest window holds one example, so that the node is always pure."""
    pair = Pair(of(kind, window=1))
    pair.feed([insert(k % 3, k % 2 + 5, label=k % 2, id=k if k % 3 else None) for k in range(20)])
    assert pair.pool.live_examples == 1
    pair.check()


# --- when something is due


def test_a_change_is_reported_once(kind: Kind) -> None:
    """A decision is due when the best feature is another than before, also when it becomes none."""
    pair = Pair(of(kind))
    events = [insert(1), insert(label=1), insert(1), insert(label=1), insert(2), insert(1)]
    undo = [delete(1), delete(1), delete(1), delete(2), delete(label=1)]
    got = pair.feed([*events, *undo])
    assert {at: each.decision.feature for at, each in enumerate(got) if each.decision is not None} == {
        1: 1,
        8: 2,
        9: None,
    }


def test_every_nth_applied_event_is_reported(kind: Kind) -> None:
    """Refused events and predictions do not count; a dropped key counts anew."""
    pair = Pair(of(kind, splits=Emit(When.EVERY, 3), trees=Emit(When.EVERY, 2)))
    events = [insert(1), delete(9), Event(Op.PREDICT, (1,)), insert(2, label=1), insert(1), delete(1)]
    got = pair.feed([*events, insert(1, key=1), Event(Op.DROP), insert(1), insert(1), insert(1)])
    due = {at: each.decision.due for at, each in enumerate(got) if each.decision is not None}
    assert due == {3: TREE_DUE, 4: SPLIT_DUE, 5: TREE_DUE, 9: TREE_DUE, 10: SPLIT_DUE}


def test_every_period_of_event_time_is_reported(kind: Kind) -> None:
    """The first event beyond a period reports; late events neither report nor turn the clock back."""
    pair = Pair(of(kind, splits=Emit(When.EVERY_MS, 10)))
    times = [5, 9, 10, 19, 3, 12, 45, 44, 49, 50]
    got = pair.feed([insert(k, label=k % 2, time=time) for k, time in enumerate(times)])
    assert splits_due(got) == [2, 6, 9]


# --- bounds


def test_bounds_refuse_and_change_nothing(kind: Kind) -> None:
    """Beyond the allowed indexes, live ids or total weight an insert is refused; room comes back."""
    pair = Pair(of(kind, max_keys=1, max_live_ids=1))
    got = pair.feed(
        [
            insert(1, id=1),
            insert(2, key=1),
            insert(3, id=2),
            insert(4, weight=MAX_TOTAL - UNIT),
            insert(4, weight=MAX_TOTAL - UNIT - 1),
            insert(5, weight=UNIT),
            delete(id=1),
            insert(3, id=2),
            Event(Op.DROP),
            insert(2, key=1, id=1),
        ]
    )
    applied = Status.APPLIED
    assert statuses(got) == [
        applied,
        Status.TOO_MANY_KEYS,
        Status.TOO_MANY_LIVE_IDS,
        Status.COUNT_OVERFLOW,
        applied,
        Status.COUNT_OVERFLOW,
        applied,
        applied,
        applied,
        applied,
    ]
    pair.check()


def test_a_skipped_event_changes_nothing(kind: Kind) -> None:
    """An event that the caller refused before is passed over."""
    pool = of(kind).pool()
    events = [insert(1), insert(2, label=1)]
    batch = batch_of(events, pool)
    batch.op[0] = -1
    assert pool.apply(batch).status.tolist() == [Status.SKIPPED, Status.APPLIED]
    assert pool.best().totals == (0, UNIT)


def test_a_batch_of_nothing_gives_nothing(kind: Kind) -> None:
    """An empty batch is no error."""
    pool = of(kind).pool()
    answer = pool.apply(batch_of([], pool))
    assert not any(np.size(column) for column in answer[:-1])
    assert answer.changes == 0


# --- what library users call


def test_bad_arguments_are_named(kind: Kind) -> None:
    """What is no example is refused with a message, and nothing is learned."""
    pool = of(kind).pool()
    named = of(kind, names=True).pool()
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: pool.insert([1], 2), "expected a label"),
        (lambda: pool.insert([1], 0, weight=0), "expected a weight, a number from 2"),
        (lambda: pool.insert([1], 0, weight=-1.0), "expected a weight, a number from 2"),
        (lambda: pool.insert([1, 1], 0), "twice"),
        (lambda: pool.insert([-1], 0), "feature id"),
        (lambda: pool.insert([1 << 32], 0), "feature id"),
        (lambda: pool.insert([b"a"], 0), "feature id"),
        (lambda: named.insert([1], 0), "names"),
        (lambda: of(kind, window=0).pool(), "window"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()
    assert (pool.alive, named.alive) == (0, 0)


def test_a_finder_of_one_criterion_refuses_the_other(kind: Kind) -> None:
    """The scans serve the criterion in their name only."""
    only = FINDERS[kind[0]].criterion
    other = "gini" if kind[1] == "entropy" else "entropy"
    if only is not None:
        with pytest.raises(ValueError, match="serves the criterion"):
            SplitPool(finder=kind[0], criterion=other)


def test_an_untouched_pool_can_be_restored(kind: Kind) -> None:
    """The state of a pool that saw nothing is a state, of names as of ids."""
    for named in (False, True):
        pair = Pair(of(kind, names=named))
        pair.restored()
        pair.feed([insert(*((b"a",) if named else (1,))), insert(label=1)])
        pair.check()


def test_names_interned_meanwhile_do_not_disturb_ties(kind: Kind) -> None:
    """Names that no event has used yet may be interned at any time, however many."""
    pool = of(kind, names=True).pool()
    for feature, label in ((b"zz", 0), (b"aa", 1), (b"forgotten", 0)):
        pool.insert([feature], label)
    pool.delete([b"forgotten"], 0)
    assert pool.names is not None
    pool.names.intern_all([b"x" * 50 + b"%d" % k for k in range(100)])
    assert (pool.best().feature, pool.best().runner_up) == (b"aa", b"zz")
