"""Leaves in the order of their gains, features and examples that are drawn: as in naive_growth.py, to the bit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.dynamic.builder import build_tree
from algorithms.dynamic.splitter import Way
from algorithms.trees.snapshot import Tree
from tests.algorithms.dynamic.test_dynamic_build import KINDS, VALUES, WEIGHTS, forms_of, sample_of
from tests.oracles.naive_dynamic import Example, Feature, Terms, columns, rows_of
from tests.oracles.naive_growth import Growth, build, resampled
from tests.support.examples import budget

SEARCHED: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


def compare(examples: Sequence[Example], terms: Terms, growth: Growth) -> Tree:
    """Build by every way and raise AssertionError where a tree is not the oracle's; return it."""
    expected = columns(terms, build(terms, growth, examples))
    by_columns = forms_of(examples)[1]
    assert rows_of(build_tree(by_columns, **vars(terms), **vars(growth))) == expected
    trees = [build_tree(sample_of(examples), way=way, **vars(terms), **vars(growth)) for way in Way]
    for way, tree in zip(Way, trees, strict=True):
        assert rows_of(tree) == expected, way.name
    return trees[0]


@settings(max_examples=budget(200), **SEARCHED)
@given(st.data())
def test_any_growth_is_the_oracles(data: st.DataObject) -> None:
    """Any bound of leaves, any number of drawn features, drawn examples or not: the same tree to the bit."""
    terms = Terms(
        classes=data.draw(st.integers(2, 4)),
        criterion=data.draw(st.sampled_from(["gini", "entropy"])),
        kinds=KINDS,
        alpha=data.draw(st.sampled_from([0.0, 0.0, 0.3])),
        min_examples=data.draw(st.sampled_from([1, 1, 3])),
        max_depth=data.draw(st.sampled_from([1, 2, 1 << 30, 1 << 30])),
    )
    growth = Growth(
        max_leaves=data.draw(st.sampled_from([None, 1, 2, 3, 5, 100])),
        max_features=data.draw(st.sampled_from([None, 1, 2, 4, 100])),
        bootstrap=data.draw(st.booleans()),
        seed=data.draw(st.integers(0, 3)),
    )
    example = st.builds(
        Example,
        st.fixed_dictionaries({}, optional=dict.fromkeys(KINDS, st.sampled_from(VALUES))),
        st.integers(0, terms.classes - 1),
        st.sampled_from(data.draw(st.sampled_from(WEIGHTS))),
    )
    compare(data.draw(st.lists(example, max_size=30)), terms, growth)


@pytest.mark.parametrize("growth", [Growth(max_leaves=40), Growth(max_features=3), Growth(9, 5, bootstrap=True)])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_larger_samples(criterion: str, growth: Growth) -> None:
    """Dense and sparse columns, some of which become constant, over many levels."""
    rng = random.Random(5)
    kinds: dict[Any, Kind] = {feature: Kind.NUMERIC if feature % 3 else Kind.BINARY for feature in range(30)}
    examples = []
    for _ in range(60 if budget(10) < 10 else 250):
        label = rng.randrange(3)
        x = {
            feature: 7.0 if feature in (1, 2) and label else round(rng.gauss(label, 2.0), rng.randrange(2))
            for feature in kinds
            if rng.random() < (1.0 if feature < 5 else 0.4 if feature < 12 else 0.05)
        }
        examples.append(Example(x, label))
    tree = compare(examples, Terms(classes=3, criterion=criterion, kinds=kinds), growth)
    assert len(tree.number) > 12


def _blobs() -> list[Example]:
    rng = random.Random(1)
    return [Example({f: rng.gauss(0.1 * f * label, 1.0) for f in range(1, 9)}, label) for label in [0, 1] * 40]


def test_leaves_go_to_the_largest_gains() -> None:
    """Of a tree without a bound the splits that are kept are those of the largest gains, parents first."""
    terms = Terms(default=Kind.NUMERIC)
    sample = sample_of(_blobs())
    for most in range(1, 9):
        tree = build_tree(sample, max_leaves=most, **vars(terms))
        assert tree.feature.count(None) == most
    whole = build_tree(sample, **vars(terms))
    assert rows_of(build_tree(sample, max_leaves=whole.feature.count(None), **vars(terms))) == rows_of(whole)
    assert rows_of(build_tree(sample, max_leaves=10**9, **vars(terms))) == rows_of(whole)


def test_what_is_drawn_depends_on_the_seed() -> None:
    """Trees of some seeds differ, those of one seed do not; all features that part a node may be drawn."""
    sample = sample_of(_blobs())

    def tree(seed: int, **more: Any) -> Tree:
        return build_tree(sample, default=Kind.NUMERIC, max_depth=1, seed=seed, **more)

    roots = [tree(seed, max_features=1).feature[0] for seed in range(100)]
    assert set(roots) == set(range(1, 9))
    assert roots == [tree(seed, max_features=1).feature[0] for seed in range(100)]
    assert {tree(seed, max_features=8).feature[0] for seed in range(10)} == {tree(0).feature[0]}


def test_constant_features_are_not_drawn() -> None:
    """Of features that all have alike none is looked at in place of one that parts."""
    constant: dict[Feature, float] = dict.fromkeys(range(10, 60), 3.0)
    examples = [Example({**constant, 1: float(label)}, label) for label in (0, 1)] * 5
    for seed in range(20):
        tree = compare(examples, Terms(default=Kind.NUMERIC), Growth(max_features=1, seed=seed))
        assert tree.feature[0] == 1


def test_a_bootstrap_has_as_many_examples() -> None:
    """Weights of the root sum to n; about a third of the examples are not in it."""
    n = 400
    examples = [Example({1: float(at)}, at) for at in range(n)]
    tree = build_tree(sample_of(examples), classes=n, default=Kind.NUMERIC, max_depth=0, bootstrap=True, seed=3)
    assert int(tree.weight[0].sum()) == n * UNIT
    assert 0.55 < np.count_nonzero(tree.weight[0]) / n < 0.72


@pytest.mark.parametrize("name", ["max_leaves", "max_features"])
def test_bounds_are_checked(name: str) -> None:
    """None at all makes no tree."""
    bounds: dict[str, Any] = {name: 0}
    with pytest.raises(ValueError, match=f"expected {name} of at least 1, got 0"):
        build_tree(sample_of([]), **bounds)


def test_drawn_weights_have_a_bound() -> None:
    """Weights that are too large after drawing are told."""
    heavy = MAX_TOTAL - 20 * UNIT
    examples = [Example({1: 1.0}, 0, heavy), *(Example({2: 1.0}, 1) for _ in range(9))]
    twice = next(seed for seed in count() if resampled(examples, seed)[0].weight > MAX_TOTAL)
    once = next(seed for seed in count() if resampled(examples, seed)[0].weight == heavy)
    build_tree(sample_of(examples), bootstrap=True, seed=once)
    with pytest.raises(ValueError, match="in all, drawn are"):
        build_tree(sample_of(examples), bootstrap=True, seed=twice)
