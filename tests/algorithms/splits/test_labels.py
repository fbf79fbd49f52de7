"""Splits of K labels and of categories against counts in plain Python, to the bit, with deletes and windows."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate, Status
from algorithms.core.kinds import Kind
from algorithms.splits.labels import LabelSplits, _least
from tests.oracles.naive_dynamic import Terms
from tests.support.examples import budget

CRITERIA = ["gini", "entropy"]


def binary(x: Any) -> frozenset[bytes | int]:
    """Return the binary features of an example."""
    if not isinstance(x, dict):
        return frozenset(x)
    present = [f"{name}={value}" if isinstance(value, str) else name for name, value in x.items() if value != 0]
    return frozenset(name.encode() for name in present)


class Naive:
    """A list of live examples; the best split by scoring every feature of them."""

    def __init__(self, classes: int, criterion: str, window: int | None = None) -> None:
        self.terms = Terms(classes=classes, criterion=criterion, default=Kind.BINARY)
        self.window = window
        self.live: list[tuple[frozenset[Any], int, int, Any]] = []

    def insert(self, x: Any, label: int, weight: float, id: Any) -> None:
        """Learn an example; the window drops the oldest."""
        self.live.append((binary(x), label, round(weight * UNIT), id))
        if self.window is not None and len(self.live) > self.window:
            del self.live[0]

    def delete(self, x: Any, label: int, weight: float, id: Any) -> bool:
        """Forget one; return whether it was there."""
        wanted = (binary(x), label, round(weight * UNIT), None)
        found = [at for at, each in enumerate(self.live) if (each[3] == id if id is not None else each == wanted)]
        if found:
            del self.live[found[0]]
        return bool(found)

    def counts(self, features: Any) -> list[int]:
        """Return the weights of labels of the examples that have a feature, or of all."""
        totals = [0] * self.terms.classes
        for have, label, weight, _ in self.live:
            totals[label] += weight if features is None or features in have else 0
        return totals

    def best(self) -> tuple[Any, str, list[int], list[int]]:
        """Return feature, score, totals, and weights where it is present."""
        totals = self.counts(None)
        if sum(each > 0 for each in totals) < 2:
            return None, self.terms.impurity(totals).hex(), totals, [0] * len(totals)
        scored = []
        for feature in {each for have, *_ in self.live for each in have}:
            present = self.counts(feature)
            absent = [whole - part for whole, part in zip(totals, present, strict=True)]
            if not any(absent):
                continue
            scored.append((self.terms.impurity(absent) + self.terms.impurity(present), feature))
        if not scored:
            return None, self.terms.impurity(totals).hex(), totals, [0] * len(totals)
        score, feature = min(scored)
        return feature, score.hex(), totals, self.counts(feature)


def compare(splits: LabelSplits, naive: Naive, key: int = 0) -> None:
    """Raise AssertionError unless both have the same best split."""
    best = splits.best(key)
    found = (best.feature, best.score.hex(), list(best.totals), list(best.present))
    assert found == naive.best()
    assert best.impurity == naive.terms.impurity(best.totals)


@settings(
    max_examples=budget(120),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_any_stream_has_the_oracles_splits(data: st.DataObject) -> None:
    """Inserts and deletes by id and by value, of weights, in windows: the best split after each event."""
    classes = data.draw(st.integers(2, 6))
    criterion = data.draw(st.sampled_from(CRITERIA))
    window = data.draw(st.sampled_from([None, None, 1, 5]))
    splits = LabelSplits(classes, criterion=criterion, names=True, window=window, verify_deletes=True)
    naive = Naive(classes, criterion, window)
    value = st.sampled_from(["red", "blue", "", "gr=een"])
    example = st.fixed_dictionaries(
        {}, optional={"colour": value, "shape": value, "call": st.sampled_from([0, 1])}
    )
    for number in range(data.draw(st.integers(1, 25))):
        label = data.draw(st.integers(0, classes - 1))
        weight = data.draw(st.sampled_from([1.0, 1.0, 0.25, 3.0]))
        x = data.draw(example)
        named = window is not None or data.draw(st.booleans())
        if data.draw(st.integers(0, 3)) or not naive.live:
            id = number if named else None
            assert splits.insert(x, label, weight=weight, id=id) == Status.APPLIED
            naive.insert(x, label, weight, id)
        elif named:
            id = data.draw(st.integers(0, number))
            assert (splits.delete(id=id) == Status.APPLIED) == naive.delete({}, 0, 1.0, id)
        else:
            assert (splits.delete(x, label, weight=weight) == Status.APPLIED) == naive.delete(
                x, label, weight, None
            )
        compare(splits, naive)
    splits.check()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_many_features_and_keys(criterion: str) -> None:
    """Lists are read further where the first features of each label are not the best of all."""
    rng = random.Random(3)
    splits, naive = LabelSplits(5, criterion=criterion), [Naive(5, criterion) for _ in range(2)]
    looked = 0
    steps = budget(300)
    for number in range(steps):
        key, label = number % 2, rng.randrange(5)
        x = sorted({rng.randrange(200) for _ in range(6)} | ({1000 + label} if rng.random() < 0.7 else set()))
        splits.insert(x, label, id=number, key=key)
        naive[key].insert(x, label, 1.0, number)
        if number > 20 and rng.random() < 0.4:
            gone = rng.randrange(number)
            done = splits.delete(id=gone, key=gone % 2) == Status.APPLIED
            assert done == naive[gone % 2].delete((), 0, 1.0, gone)
        if number % 7 == 0 or number < 10:
            compare(splits, naive[key], key)
            looked = max(looked, splits.best(key).looked_at)
    assert looked > 8
    splits.check()


def test_a_clear_best_is_found_among_few() -> None:
    """Where labels have features of their own, a query looks at some features of thousands."""
    rng = random.Random(1)
    splits = LabelSplits(4)
    for _ in range(400):
        label = rng.randrange(4)
        splits.insert({*(rng.randrange(100, 3000) for _ in range(5)), 1 if label == 2 else 2}, label)
    best = splits.best()
    assert best.feature == 1
    assert best.looked_at < 100


@pytest.mark.parametrize("criterion", CRITERIA)
def test_no_feature_scores_better_than_its_bounds(criterion: str) -> None:
    """What half the scores of each label against the rest, and the sum of the gains, say of any counts."""
    rng = random.Random(7)
    for _ in range(budget(2000)):
        classes = rng.randrange(2, 7)
        many, two = Terms(classes=classes, criterion=criterion), Terms(criterion=criterion)
        branches = [[round(rng.expovariate(1) ** 3 * 100) * UNIT for _ in range(classes)] for _ in range(2)]
        totals = [sum(column) for column in zip(*branches, strict=True)]
        score = sum(map(many.impurity, branches))
        ends = [sum(two.impurity([sum(each) - each[k], each[k]]) for each in branches) for k in range(classes)]
        wholes = [two.impurity([sum(totals) - totals[k], totals[k]]) for k in range(classes)]
        gains = [whole - end for whole, end in zip(wholes, ends, strict=True)]
        least = _least(ends, gains, many.impurity(totals))
        assert least <= score * (1 + 1e-9) + 1e-9
        if criterion == "gini" or classes == 2:
            assert least == pytest.approx(score, rel=1e-9, abs=1e-9)


def test_what_is_refused_changes_no_index() -> None:
    """A second insert of an id, a delete of what is not there: no index learns it."""
    splits = LabelSplits(3, verify_deletes=True, on_duplicate=OnDuplicate.REJECT)
    splits.insert([1, 2], 0, id="a")
    splits.insert([1], 1)
    before = splits.best()
    assert splits.insert([3], 2, id="a") == Status.DUPLICATE_ID
    assert splits.delete([1], 2) == Status.ABSENT_EXAMPLE
    assert splits.delete(id="b") == Status.ABSENT_ID
    assert splits.best() == before
    splits.check()


def test_replaced_and_dropped() -> None:
    """A replaced example may have another label; a key that was dropped knows nothing."""
    splits, naive = LabelSplits(3, on_duplicate=OnDuplicate.REPLACE), Naive(3, "gini")
    splits.insert([1, 2], 0, id="a")
    splits.insert([1], 1, id="b")
    splits.insert([3], 2, id="a")
    for x, label, id in (([1], 1, "b"), ([3], 2, "a")):
        naive.insert(x, label, 1.0, id)
    compare(splits, naive)
    splits.drop()
    assert splits.best().totals == (0, 0, 0)
    assert splits.best(7).feature is None
    assert splits.nbytes > 0


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda: LabelSplits(1), "classes"),
        (lambda: LabelSplits(3, criterion="sqrt"), "expected the criterion gini or entropy, got 'sqrt'"),
        (lambda: LabelSplits(3).insert([1], 3), "a label"),
        (lambda: LabelSplits(3).insert({1: "red"}, 0), "expected names of features with categories"),
        (
            lambda: LabelSplits(3, names=True).insert({"a": 2.5}, 0),
            "expected 0, 1 or a category as the value of 'a'",
        ),
        (lambda: LabelSplits(3, window=5).delete([1], 0), "expected an id of the example to delete"),
        (lambda: LabelSplits(3, names=True).insert({1: "red"}, 0), "expected names of features with categories"),
        (lambda: LabelSplits(2).insert([1], 0, key=0.5), "expected a key, a whole number"),  # type: ignore[arg-type]
        (lambda: LabelSplits(2).delete([1], 0, key=-1), "expected a key, a whole number"),
        (lambda: LabelSplits(3).drop(1 << 30), "expected a key, a whole number"),
    ],
)
def test_what_is_no_example_is_told(do: Any, message: str) -> None:
    """A message says what was expected."""
    with pytest.raises(ValueError, match=message):
        do()
