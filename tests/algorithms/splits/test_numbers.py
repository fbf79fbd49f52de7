"""Splits of labels that are numbers against exact rationals over all features, with deletes and windows."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.events import OnDuplicate, Status
from algorithms.core.scale import Scale
from algorithms.splits.numbers import NumberSplitPool, NumberSplits
from tests.oracles.naive_numbers import Naive
from tests.support.examples import budget


def compare(splits: NumberSplits, naive: Naive, key: int = 0) -> None:
    """Raise AssertionError unless both have the same best split."""
    best = splits.best(key)
    feature, reduction = naive.best()
    assert best.feature == feature
    assert best.reduction == float(reduction)
    for labels, side in ((best.absent, False), (best.present, True)):
        own = [each for each in naive.live if (feature is not None and feature in each[0]) == side]
        weight = sum(each[2] for each in own)
        assert labels.weight == weight
        if weight:
            assert labels.mean == float(sum((each[1] * each[2] for each in own), Fraction(0)) / weight)
        else:
            assert math.isnan(labels.mean)


@settings(
    max_examples=budget(150),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_any_stream_has_the_oracles_splits(data: st.DataObject) -> None:
    """Inserts and deletes, of weights, in windows, around 0, at 1e-9 and at 1e12: the best after each event."""
    window = data.draw(st.sampled_from([None, None, 1, 5]))
    low, unit = data.draw(st.sampled_from([(-8.0, 1.0), (-(2.0**-27), 2.0**-30), (2.0**40, 0.25)]))
    splits = NumberSplits(low, low + 16 * unit, unit=unit, window=window)
    naive = Naive(window)
    for number in range(data.draw(st.integers(1, 25))):
        if data.draw(st.integers(0, 3)) or not naive.live:
            x = data.draw(st.sets(st.integers(0, 5)))
            label = low + unit * data.draw(st.integers(0, 16))
            weight = data.draw(st.sampled_from([1, 1, 3, 1 << 20]))
            assert splits.insert(x, label, weight=weight, id=number) == Status.APPLIED
            naive.insert(x, Fraction(label), weight, number)
        else:
            gone = data.draw(st.integers(0, number))
            assert (splits.delete(gone) == Status.APPLIED) == naive.delete(gone)
        compare(splits, naive)
    splits.check()


def test_sums_that_hover_around_0_and_many_keys() -> None:
    """Labels of either sign that cancel, under deletes: the best is that of brute force after every event."""
    rng = random.Random(4)
    splits, naive = NumberSplits(-1e6, 1e6, unit=0.01), [Naive() for _ in range(2)]
    for number in range(budget(250)):
        key = number % 2
        x = sorted({rng.randrange(60) for _ in range(5)})
        cents = rng.choice((-1, 1)) * rng.choice((1, 2, 10**8)) if number % 5 else 0
        splits.insert(x, cents / 100, id=number, key=key)
        naive[key].insert(x, Fraction(-(10**6)) + Fraction(0.01) * (10**8 + cents), 1, number)
        if number > 20 and rng.random() < 0.6:
            gone = rng.randrange(number)
            assert (splits.delete(gone, key=gone % 2) == Status.APPLIED) == naive[gone % 2].delete(gone)
        best = splits.best(key)
        feature, reduction = naive[key].best()
        assert (best.feature, best.reduction) == (feature, float(reduction))
    splits.check()


def test_a_delete_undoes_an_insert_to_the_bit() -> None:
    """After the deletes of all that came since, the split is what it was, whatever labels these had."""
    splits = NumberSplits(-1e9, 1e9, unit=0.01)
    for number in range(40):
        splits.insert([number % 3, 10 + number % 4], 0.01 * (number % 7), id=number)
    before = splits.best()
    for number in range(100, 160):
        splits.insert([number % 5], 1e9 if number % 2 else -1e9, id=number)
    assert splits.best() != before
    for number in range(100, 160):
        assert splits.delete(number) == Status.APPLIED
    assert splits.best() == before
    splits.check()


def test_labels_that_are_all_the_same_are_never_split() -> None:
    """Without variance there is nothing to reduce, nor where labels balance; nor without examples."""
    splits = NumberSplits(0.0, 10.0, unit=0.1)
    assert splits.best().feature is None
    for number in range(20):
        splits.insert([number % 3], 0.7, id=number)
    best = splits.best()
    assert (best.feature, best.reduction, best.labels.weight) == (None, 0.0, 20)
    assert best.labels.mean == pytest.approx(0.7)
    for label in (1.0, 3.0):
        for x in ([], [1]):
            splits.insert(x, label, key=1)
    assert splits.best(1).feature is None


def test_ties_go_to_the_lowest_feature() -> None:
    """Features that say the same, the one where it is present and the other where absent too, are a tie."""
    for names in (False, True):
        splits = NumberSplits(0.0, 3.0, names=names)
        for number in range(30):
            x = [9, 4] if number % 3 else [2]
            splits.insert([b"%d" % each for each in x] if names else x, number % 3, id=number)
        assert splits.best().feature == (b"2" if names else 2)


def test_windows_duplicates_and_drops() -> None:
    """The window counts examples, ids are those of examples, and a dropped key has nothing."""
    splits = NumberSplits(0.0, 1.0, window=3, on_duplicate=OnDuplicate.REPLACE)
    for number in range(5):
        splits.insert([1], number % 2, id=number)
    assert splits.best().labels.weight == 3
    assert splits.delete(0) == Status.ALREADY_DROPPED
    assert splits.delete("4") == Status.ABSENT_ID
    splits.insert([2], 1.0, id=4)
    assert splits.best().labels.weight == 3
    splits.drop()
    assert splits.best().labels.weight == 0
    plain = NumberSplits(0.0, 1.0)
    assert plain.insert([1], 1.0, id=1) == Status.APPLIED
    assert plain.insert([1], 0.0, id=1) == Status.DUPLICATE_ID
    plain.check()


def test_too_much_weight_is_refused_as_a_whole() -> None:
    """Sums stay below 2^62: what would pass that changes nothing."""
    splits = NumberSplits(0.0, 2.0**40 - 2, unit=1.0)
    got = [splits.insert([1], 2.0**39, weight=1 << 20) for _ in range(5)]
    assert got == [*[Status.APPLIED] * 3, *[Status.COUNT_OVERFLOW] * 2]
    assert splits.best().labels.weight == 3 << 20
    splits.check()


def test_wrong_settings_and_examples_are_refused_with_a_reason() -> None:
    """What cannot be is refused, and nothing has changed."""
    for low, high, unit in (
        (0.0, 0.0, 1.0),
        (1.0, 0.0, 1.0),
        (0.0, 1.0, 0.0),
        (0.0, 1.0, 1e-13),
        (0.0, 1.0, 2.0),  # half a unit: all labels would be the same
        (0.0, math.inf, 1.0),
    ):
        with pytest.raises(ValueError, match="expected a"):
            NumberSplits(low, high, unit=unit)
    splits = NumberSplits(0.0, 1.0, unit=0.5)
    wrong: list[tuple[Any, Any, dict[str, Any]]] = [
        ([1], 1.5, {}),
        ([1], -0.1, {}),
        ([1], math.nan, {}),
        ([1, 1], 0.0, {}),
        ([b"a"], 0.0, {}),
        ([1], 0.0, {"weight": 0}),
        ([1], 0.0, {"weight": 0.5}),
        ([1], 0.0, {"id": 1.5}),
        ([1], 0.0, {"key": -1}),
    ]
    for x, label, rest in wrong:
        with pytest.raises(ValueError, match="expected"):
            splits.insert(x, label, **rest)
    assert splits.best().labels.weight == 0


def test_false_deletes_leave_no_mean_outside_the_range() -> None:
    """9, 9 less a 7 that never was there, and 1, 1 less a 3, sum up to what no label has: the bound is told."""
    scale = Scale(-0.5, 0.5, 0.1)
    for weights, mean in (([0, 12], 0.5), ([12, 0], -0.5), ([1, 11], 0.5), ([6, 6], 0.0)):
        assert scale.labels(weights).mean == pytest.approx(mean, abs=1e-15)
    pool = NumberSplitPool(Scale(0.0, 10.0, 1.0))
    for label, rest in ((9.0, 7.0), (1.0, 3.0)):
        key = int(label)
        for _ in range(2):
            pool.insert([1], label=label, key=key)
        pool.delete([1], label=rest, key=key)
    assert [pool.best_split(key).labels for key in (9, 1)] == [(1, 10.0), (1, 0.0)]
