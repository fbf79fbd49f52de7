"""Splits of K labels, categories and thresholds against lists of examples, to the bit, deletes and windows too."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.cadence import Emit, When
from algorithms.core.events import OnDuplicate, Status
from algorithms.core.free_list import USED
from algorithms.core.kinds import Kind
from algorithms.mixed.heads import LAST
from algorithms.mixed.pool import MixedSplitPool, Split
from algorithms.splits.last import GONE
from algorithms.splits.pool import SplitPool
from tests.oracles.naive_mixed import NaiveMixed
from tests.support.examples import budget

CRITERIA = ["gini", "entropy"]
KINDS: dict[bytes, Kind] = {
    b"hot": Kind.NUMERIC,
    b"wet": Kind.NUMERIC,
    b"town": Kind.NOMINAL,
    b"job": Kind.NOMINAL,
}
VALUES = {
    b"flag": st.sampled_from([0.0, 1.0]),
    b"call": st.just(1.0),
    b"hot": st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6)),
    b"wet": st.sampled_from([-1.5, -0.0, 0.25, 5e-324, 1e139]),
    b"town": st.integers(0, 3).map(float),
    b"job": st.sampled_from([1.0, 4294967295.0]),
}


def spelled(split: Split) -> tuple[Any, ...]:
    """Return a split with its floats to the bit."""
    return tuple(each.hex() if isinstance(each, float) else each for each in split)


def same(pool: MixedSplitPool, naive: NaiveMixed, key: int = 0) -> None:
    """Raise AssertionError unless both have the same best split."""
    assert spelled(pool.best(key)) == spelled(naive.best(key))


@settings(
    max_examples=budget(250),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_any_stream_has_the_oracles_splits(data: st.DataObject) -> None:
    """Inserts and deletes by id and by value, of weights, in windows, with bounds: split and status after each."""
    told: dict[str, Any] = {
        "classes": data.draw(st.integers(2, 5)),
        "criterion": data.draw(st.sampled_from(CRITERIA)),
        "kinds": KINDS,
        "window": data.draw(st.sampled_from([None, None, 1, 6])),
        "on_duplicate": data.draw(st.sampled_from(OnDuplicate)),
        "max_keys": data.draw(st.sampled_from([1, 2])),
        "max_live_ids": data.draw(st.sampled_from([5, 100])),
    }
    pool, naive = MixedSplitPool(names=True, **told), NaiveMixed(**told)
    example = st.fixed_dictionaries({}, optional=VALUES)
    sent: list[dict[str, Any]] = []
    for _ in range(data.draw(st.integers(1, 30))):
        key = data.draw(st.sampled_from([0, 0, 0, 1]))
        what = data.draw(st.sampled_from(["insert", "insert", "insert", "delete", "again", "drop"]))
        if what == "drop" and data.draw(st.booleans()):
            pool.drop(key)
            naive.drop(key)
        event: dict[str, Any] = {
            "x": data.draw(example),
            "label": data.draw(st.integers(0, told["classes"] - 1)),
            "weight": data.draw(st.sampled_from([1.0, 1.0, 0.25, 3.0, 0.0, 2.0**-20, 2.0**41])),
            "id": data.draw(st.one_of(st.none(), st.integers(0, 9))),
            "key": key,
        }
        if what == "delete" and sent:
            event = data.draw(st.sampled_from(sent))
        if what == "delete" and event["weight"]:
            assert pool.delete(**event) == naive.delete(**event)
        else:
            assert pool.insert(**event) == naive.insert(**event)
            sent.append(event)
        same(pool, naive, key)
        asked = data.draw(example)
        assert pool.predict(asked, key=key).tolist() == naive.predict(asked, key)
        assert pool.alive == len(naive.keys)
    pool.check()


@pytest.mark.wide(2)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("window", [None, 60])
def test_long_columns_and_many_features(criterion: str, window: int | None) -> None:
    """Blocks are split and joined, floors sink with deletes and rise by looks, and the best stays the best."""
    rng = random.Random(3)
    kinds: dict[int | bytes, Kind] = {0: Kind.NUMERIC, 1: Kind.NUMERIC, 2: Kind.NOMINAL}
    told: dict[str, Any] = {"classes": 4, "criterion": criterion, "kinds": kinds, "window": window}
    pool, naive = MixedSplitPool(**told), NaiveMixed(**told)
    steps = budget(400)
    most = 0
    for number in range(steps):
        label = rng.randrange(4)
        drift = number / steps * 5.0
        x = {
            0: rng.gauss(label - 2.0 + drift, 0.7),
            1: float(rng.randrange(-40, 40)),
            2: float(rng.randrange(6)),
            **{10 + rng.randrange(60): 1.0 for _ in range(5)},
        }
        x[3] = 1.0 if rng.random() < 0.3 else 0.0
        assert pool.insert(x, label, id=number) == naive.insert(x, label, id=number)
        if number > 20 and rng.random() < (0.4 if number < steps / 2 else 0.9):
            gone = rng.randrange(number)
            assert pool.delete(id=gone) == naive.delete(id=gone)
        same(pool, naive)
        most = max(most, int(pool._state.questions.blocks[USED]))
        if number % 20 == 0:
            pool.check()
    pool.check()
    for each in [each.id for each in naive.keys[0].live]:
        pool.delete(id=each)
        naive.delete(id=each)
        if each % 5 == 0:
            same(pool, naive)
            pool.check()
    assert pool.slots == 0
    assert most > (4 if steps == 400 else 1)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_two_labels_and_binary_features_are_those_of_the_other_index(criterion: str) -> None:
    """Feature, runner-up and scores are those of `SplitPool`, to the bit."""
    rng = random.Random(5)
    mixed, two = MixedSplitPool(criterion=criterion), SplitPool(criterion=criterion)
    for number in range(budget(400)):
        label = rng.randrange(2)
        x = sorted({rng.randrange(30) for _ in range(4)} | ({100} if rng.random() < 0.3 + 0.3 * label else set()))
        for pool in (mixed, two):
            pool.insert(x, label, id=number)
            if number % 3 == 0 and number > 5:
                pool.delete(id=number - 5)
        one, other = mixed.best(), two.best()
        assert one.feature == other.feature
        assert (one.score.hex(), one.totals, one.high) == (other.score.hex(), other.totals, other.present)
        assert one.runner_up == other.runner_up
        if one.runner_up is not None:
            assert one.runner_up_score.hex() == other.runner_up_score.hex()


def test_few_questions_are_scored() -> None:
    """Among features that tell nothing, nearly none is looked at: neither while examples come nor as they go."""
    rng = random.Random(1)
    pool = MixedSplitPool(classes=5, criterion="gini")
    scored, looks = 0, 0
    for number in range(2_000):
        label = rng.randrange(5)
        x = {10 + rng.randrange(1_000) for _ in range(8)} | ({label} if rng.random() < 0.8 else set())
        pool.insert(x, label, id=number)
        if number >= 1_000:
            pool.delete(id=number - 1_000)
            pool.best()
            scored, looks = scored + pool.looked_at[1], looks + 1
    assert scored / looks < 40
    assert pool.slots > 900


def test_decisions_are_those_of_one_by_one() -> None:
    """A batch has the decisions of its events one by one: on change, every n, by time."""
    rng = random.Random(2)
    kinds: dict[int | bytes, Kind] = {1: Kind.NUMERIC, 2: Kind.NOMINAL}
    for splits, trees in (
        (Emit(When.CHANGE), Emit()),
        (Emit(When.EVERY, 3), Emit(When.CHANGE)),
        (Emit(), Emit(When.EVERY_MS, 7)),
    ):
        told: dict[str, Any] = {"classes": 3, "kinds": kinds, "splits": splits, "trees": trees, "window": 9}
        pool, naive = MixedSplitPool(**told), NaiveMixed(classes=3, kinds=kinds, window=9)
        before: tuple[Any, Any] = (None, 0.0)
        seen = 0
        for number in range(60):
            x = {1: rng.randrange(-2, 3), 2: rng.randrange(3), 3 + rng.randrange(3): 1}
            label = rng.randrange(3)
            _, answers = pool._one(0, x, label, 1 << 20, None, 0, number + 1)  # type: ignore[arg-type]
            naive.insert(x, label)
            split = naive.best()
            now = (split.feature, split.threshold or 0.0)
            changed = now != before
            due = [
                {
                    When.NEVER: False,
                    When.CHANGE: changed,
                    When.EVERY: (number + 1) % when.argument == 0,
                    When.EVERY_MS: number > 0 and (number + 1) // when.argument > number // when.argument,
                }[when.when]
                for when in (splits, trees)
            ]
            assert answers.due.tolist() == ([due[0] + 2 * due[1]] if any(due) else [])
            if any(due):
                seen += 1
                assert (answers.feature[0] if split.feature is not None else None) == split.feature
                assert answers.threshold[0] == (split.threshold or 0.0)
                assert answers.totals[0].tolist() == list(split.totals)
                assert answers.high[0].tolist() == list(split.high)
                assert answers.events[0] == number + 1
                assert [answers.score[0], answers.runner_up_score[0], answers.impurity[0]] == [
                    split.score,
                    split.runner_up_score,
                    split.impurity,
                ]
            if any(due) or When.CHANGE in (splits.when, trees.when):
                before = now
        assert seen > 5


def test_what_was_best_is_kept_as_long_as_it_is_there() -> None:
    """Between decisions the best feature or category may leave the index; what is kept then says so."""
    rng = random.Random(4)
    kinds: dict[int | bytes, Kind] = {b"a": Kind.NUMERIC, b"b": Kind.NOMINAL}
    pool = MixedSplitPool(classes=3, kinds=kinds, window=2, names=True, splits=Emit(When.EVERY, 5))
    gone = 0
    for number in range(200):
        x = {rng.choice((b"a", b"b")): rng.randrange(4), b"c%d" % rng.randrange(6): 1}
        pool._one(0, x, rng.randrange(3), 1 << 20, None, 0, number + 1)  # type: ignore[arg-type]
        pool.check()
        gone += int(pool.arrays()["heads"][0, LAST]) == GONE
    assert gone > 5


def test_a_restored_pool_goes_on() -> None:
    """Arrays of a pool are its whole state."""
    rng = random.Random(4)
    told: dict[str, Any] = {"classes": 3, "default": Kind.NUMERIC, "names": True, "window": 30}
    pool = MixedSplitPool(**told)
    for number in range(200):
        x = {b"a%d" % rng.randrange(9): rng.gauss(0, 1) for _ in range(3)}
        pool.insert(x, rng.randrange(3), id=number if number % 2 else None)
        if number % 40 == 39:
            arrays = {name: array.copy() for name, array in pool.arrays().items()}
            other = MixedSplitPool(**told).restore(arrays)
            other.check()
            assert spelled(other.best()) == spelled(pool.best())
            pool = other


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"classes": 1}, "classes, a whole number from 2 to 1000"),
        ({"criterion": "sqrt"}, "expected a criterion of entropy, gini, got 'sqrt'"),
        ({"default": Kind.QUANTISED}, "BINARY, NOMINAL and NUMERIC, got QUANTISED"),
        ({"window": 0}, "a window of at least 1"),
        ({"splits": Emit(When.EVERY, 0)}, "n or ms of at least 1"),
    ],
)
def test_what_is_not_offered_is_refused(told: dict[str, Any], message: str) -> None:
    """Settings that are none raise ValueError."""
    with pytest.raises(ValueError, match=message):
        MixedSplitPool(**told)


def test_a_value_that_is_none_changes_nothing() -> None:
    """Infinities and fractions of categories are refused, in batches too."""
    pool = MixedSplitPool(kinds={1: Kind.NOMINAL, 2: Kind.NUMERIC})
    for x in ({1: 0.5}, {1: -1}, {2: np.inf}, {2: 1e141}):
        with pytest.raises(ValueError, match="expected finite values"):
            pool.insert(x, 0)
    assert pool.alive == 0
    assert pool.insert({1: 7, 2: 1e139}, 0) == Status.APPLIED
    pool.check()
