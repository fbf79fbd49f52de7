"""The greedy tree of a batch whose labels are numbers, against exact rationals over all splits."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.fixed_point import UNIT
from algorithms.core.kinds import Kind
from algorithms.regression import batch
from algorithms.regression.builder import NumberSample, build_regression_tree
from algorithms.regression.sorted_columns import scratch, sort_columns
from algorithms.trees.quantised import between
from algorithms.trees.snapshot import NumberTree as Tree
from tests.support.examples import budget

Row = tuple[dict[int, float], float, int]  # features with their values, label, weight
Told = tuple[Any, ...]


def sample_of(rows: list[Row]) -> NumberSample:
    """Return examples as columns."""
    return NumberSample(
        pointer=np.cumsum([0, *(len(x) for x, _, _ in rows)]),
        feature=np.array([feature for x, _, _ in rows for feature in x], np.uint32),
        value=np.array([value for x, _, _ in rows for value in x.values()], np.float64),
        label=np.array([label for _, label, _ in rows], np.float64),
        weight=np.array([weight * UNIT for _, _, weight in rows], np.int64),
    )


def naive(rows: list[Row], kinds: dict[int, Kind], least: int, depth: int) -> list[Told]:
    """Return the nodes of the tree in preorder: feature, threshold, weight, mean, variance."""

    def moments(part: list[Row]) -> tuple[int, Fraction, Fraction]:
        n = sum(weight for *_, weight in part)
        mean = sum((Fraction(y) * weight for _, y, weight in part), Fraction(0)) / n
        return n, mean, sum(((Fraction(y) - mean) ** 2 * weight for _, y, weight in part), Fraction(0))

    n, mean, squares = moments(rows)
    own = (n, float(mean), float(squares / n))
    found = []
    if len(rows) > least and depth and squares:
        for feature in {each for x, *_ in rows for each in x}:
            values = sorted({x.get(feature, 0.0) for x, *_ in rows})
            for low, high in pairwise(values):
                threshold = between(low, high)
                sides = [
                    [row for row in rows if (row[0].get(feature, 0.0) > threshold) == side] for side in (0, 1)
                ]
                found.append((sum(moments(side)[2] for side in sides), feature, threshold, sides))
    if not found:
        return [(None, 0.0, *own)]
    _, feature, threshold, sides = min(found, key=lambda each: each[:3])
    shown = 0.0 if kinds.get(feature, Kind.BINARY) == Kind.BINARY else threshold
    below = [node for side in sides for node in naive(side, kinds, least, depth - 1)]
    return [(feature, shown, *own), *below]


def told(tree: Tree) -> list[Told]:
    """Return the nodes of a tree in the same words."""
    columns = (tree.feature, tree.threshold.tolist(), tree.weight.tolist(), tree.mean, tree.variance)
    return list(zip(*columns, strict=True))


def same(tree: Tree, wanted: list[Told]) -> None:
    """Raise AssertionError unless a tree is the oracle's: in structure, and in figures but for rounding."""
    found = told(tree)
    assert [each[:3] for each in found] == [each[:3] for each in wanted]
    for node, expected in zip(found, wanted, strict=True):
        assert node[3:] == pytest.approx(expected[3:], rel=1e-9, abs=1e-12)


@settings(
    max_examples=budget(200),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_any_sample_has_the_oracles_tree(data: st.DataObject) -> None:
    """Values of either sign, zeros, ties, weights, equal examples: each split is the best of all, to the tie."""
    kinds = {feature: data.draw(st.sampled_from([Kind.BINARY, Kind.NUMERIC])) for feature in range(4)}
    value = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 3.0])
    rows = []
    for _ in range(data.draw(st.integers(1, 14))):
        x: dict[int, float] = {}
        for feature in data.draw(st.sets(st.integers(0, 3))):
            x[feature] = 1.0 if kinds[feature] == Kind.BINARY else data.draw(value)
        rows.append((x, float(data.draw(st.integers(-4, 4))), data.draw(st.sampled_from([1, 1, 2, 7]))))
    least, depth = data.draw(st.sampled_from([1, 1, 3])), data.draw(st.sampled_from([1, 2, 30]))
    tree = build_regression_tree(sample_of(rows), unit=1.0, kinds=kinds, min_examples=least, max_depth=depth)
    same(tree, naive(rows, kinds, least, depth))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_labels_of_any_size(scale: float) -> None:
    """Small and large labels, far from 0 and around it, make the same splits, in any order of the examples."""
    draw = random.Random(5)
    kinds = dict.fromkeys(range(5), Kind.NUMERIC)
    rows: list[Row] = []
    for _ in range(budget(120)):
        x = {feature: draw.gauss(0.0, 1.0) for feature in range(5) if draw.random() < 0.6}
        rows.append((x, (x.get(2, 0.0) > 0.3) + draw.random(), 1))
    wanted = naive(rows, kinds, 1, 4)
    for shift in (0.0, 1000.0):
        moved = [(x, (y + shift) * scale, weight) for x, y, weight in rows]
        tree = build_regression_tree(sample_of(moved), kinds=kinds, max_depth=4)
        assert [each[:3] for each in told(tree)] == [each[:3] for each in wanted]
        draw.shuffle(moved)
        again = build_regression_tree(sample_of(moved), kinds=kinds, max_depth=4)
        assert (again.mean.tolist(), again.threshold.tolist()) == (tree.mean.tolist(), tree.threshold.tolist())


def test_labels_that_are_all_the_same_are_a_leaf() -> None:
    """So are examples that no feature parts, and there is no tree of nothing."""
    alike: list[Row] = [({at % 3: 1.0}, 0.1, 1) for at in range(9)]
    assert told(build_regression_tree(sample_of(alike))) == [(None, 0.0, 9.0, pytest.approx(0.1), 0.0)]
    parted: list[Row] = [({1: 1.0}, float(at), 1) for at in range(3)]
    assert told(build_regression_tree(sample_of(parted))) == [(None, 0.0, 3.0, 1.0, pytest.approx(2 / 3))]
    assert told(build_regression_tree(sample_of([]))) == []


def test_two_features_may_only_tell_together() -> None:
    """Where no split gains anything the lowest feature is taken, and the next level knows all."""
    rows: list[Row] = [
        ({**({3: 1.0} if a else {}), **({5: 1.0} if b else {})}, float(a != b), 1) for a in (0, 1) for b in (0, 1)
    ]
    tree = build_regression_tree(sample_of(rows))
    assert tree.feature == [3, 5, None, None, 5, None, None]
    assert tree.variance[[2, 3, 5, 6]].tolist() == [0.0] * 4


def test_wrong_samples_are_refused_with_a_reason() -> None:
    """What is wrong is told, and what was expected."""
    good = sample_of([({1: 1.0}, 0.0, 1), ({}, 1.0, 1)])
    cases: list[tuple[dict[str, Any], str]] = [
        ({"label": np.array([0.0])}, "expected 1 weights and 2 pointers"),
        ({"label": np.array([0.0, np.nan])}, "expected labels up to 1e\\+140"),
        ({"label": np.array([0.0, 1e300])}, "expected labels up to 1e\\+140"),
        ({"weight": np.array([1, 0])}, "expected weights above 0"),
        ({"weight": np.ones(2)}, "expected the column weight as an array of int64"),
        ({"value": np.array([np.inf])}, "expected finite values"),
        ({"value": np.zeros(0)}, "expected 1 rows in the column value"),
        ({"pointer": np.array([0, 9, 1])}, "expected a pointer that ascends from 0 to 1"),
        ({"weight": np.array([(1 << 61) - 1, 1 << 61])}, "expected weights whose sum"),
    ]
    for change, words in cases:
        with pytest.raises(ValueError, match=words):
            build_regression_tree(good._replace(**change), default=Kind.NUMERIC)
    twice = good._replace(pointer=np.array([0, 2, 2]), feature=np.array([1, 1], np.uint32), value=np.ones(2))
    with pytest.raises(ValueError, match="example 0 lists a feature twice"):
        build_regression_tree(twice)
    for terms, words in (
        ({"min_examples": 0}, "expected min_examples of at least 1"),
        ({"unit": 1e-30}, "expected a unit"),
        ({"default": Kind.NOMINAL}, "expected kinds of features"),
    ):
        with pytest.raises(ValueError, match=words):
            build_regression_tree(good, **terms)


@pytest.mark.parametrize(
    "lengths", [[3_000], [30, 0, 1, 24, 2_500, 25, 700], [30_000, 40_000, 2_100], [90_000, 3]]
)
@pytest.mark.parametrize("values", ["any", "few", "float32"])
def test_columns_are_put_in_order_stably(lengths: list[int], values: str) -> None:
    """Long columns, sorted in groups, and short ones have their values in order, equal ones as they came."""
    lengths = [length if length < 5_000 else budget(length) for length in lengths]
    rng = np.random.default_rng(len(lengths))
    size = sum(lengths)
    value = rng.standard_normal(size) * 10.0 ** rng.integers(-300, 300, size)
    if values == "few":
        value = rng.choice([-2.0, -1e-9, 5e-324, 1.0, 3.0, 1e300], size)
    elif values == "float32":
        value = rng.standard_normal(size).astype(np.float32).astype(np.float64)
    end = np.cumsum(np.array(lengths, np.int64))
    begin = end - np.array(lengths, np.int64)
    binary = (np.arange(len(lengths)) % 5 == 3).astype(np.int8)
    columns = batch.Columns(
        begin, end.copy(), np.arange(size, dtype=np.int32), value.copy(), binary, np.zeros(len(lengths), np.int8)
    )
    longest = max(lengths)
    sort_columns(columns, scratch(size, longest), np.empty(longest, np.int32))
    assert columns.end.tolist() == end.tolist()
    for column in range(len(lengths)):
        at = slice(begin[column], end[column])
        order = np.arange(lengths[column])
        if not binary[column]:
            order = np.argsort(value[at], kind="stable")
        assert columns.value[at].tolist() == value[at][order].tolist()
        assert columns.owner[at].tolist() == (begin[column] + order).tolist()
