"""BUILD and the sparse splitter against the oracle in naive_dynamic.py."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT
from algorithms.core.kinds import Kind
from algorithms.dynamic.builder import build_tree
from algorithms.dynamic.samples import ColumnSample, Sample
from algorithms.dynamic.splitter import Way, is_searched
from algorithms.trees.snapshot import Tree
from tests.oracles.naive_dynamic import Example, Feature, Terms, build, columns, rows_of, splits
from tests.support.examples import budget

BINARY, NUMERIC = Kind.BINARY, Kind.NUMERIC
KINDS: dict[Any, Kind] = {0: BINARY, 3: NUMERIC, 7: BINARY, 9: NUMERIC, 4294967295: NUMERIC}
VALUES = [-1e300, -2.5, -1.0, -5e-324, 0.0, 5e-324, 1e-9, 1.0, 1.0 + 2.0**-52, 2.0, 1e300]
WEIGHTS = [[UNIT, 2 * UNIT], [UNIT] * 4 + [1, 3, 5 * UNIT], [UNIT, UNIT << 24]]


def sample_of(examples: Sequence[Example], rng: random.Random | None = None) -> Sample:
    """Return examples in columns, the features of each in the order given, or shuffled."""
    items = [list(example.x.items()) for example in examples]
    if rng is not None:
        for each in items:
            rng.shuffle(each)
    return Sample(
        pointer=np.cumsum([0, *map(len, items)], dtype=np.int64),
        feature=np.array([feature for each in items for feature, _ in each], np.uint32),
        value=np.array([value for each in items for _, value in each], np.float64),
        label=np.array([example.label for example in examples], np.int64),
        weight=np.array([example.weight for example in examples], np.int64),
    )


def columns_of(examples: Sequence[Example], rng: random.Random | None = None) -> ColumnSample:
    """Return examples by columns, canonical unless an example has a zero; or their rows and columns shuffled."""
    entries: dict[int, list[tuple[int, float]]] = {}
    for row, example in enumerate(examples):
        for feature, value in example.x.items():
            assert isinstance(feature, int)
            entries.setdefault(feature, []).append((row, value))
    found = sorted(entries)
    if rng is not None:
        rng.shuffle(found)
        for each in entries.values():
            rng.shuffle(each)
    return ColumnSample(
        pointer=np.cumsum([0, *(len(entries[feature]) for feature in found)], dtype=np.int64),
        row=np.array([row for feature in found for row, _ in entries[feature]], np.int32),
        value=np.array([value for feature in found for _, value in entries[feature]], np.float64),
        label=np.array([example.label for example in examples], np.int64),
        weight=np.array([example.weight for example in examples], np.int64),
        feature=np.array(found, np.uint32),
    )


def forms_of(examples: Sequence[Example]) -> list[ColumnSample]:
    """Return the same examples by columns: with their zeros, without them, and shuffled."""
    alike = [replace(each, x={f: value for f, value in each.x.items() if value != 0.0}) for each in examples]
    return [columns_of(examples), columns_of(alike), columns_of(examples, random.Random(3))]


def compare(examples: Sequence[Example], terms: Terms) -> Tree:
    """Build by every way and raise AssertionError where a tree is not the oracle's; return it."""
    expected = columns(terms, build(terms, examples, 0, count()))
    for form in forms_of(examples):
        assert rows_of(build_tree(form, **vars(terms))) == expected
    trees = [build_tree(sample_of(examples, random.Random(3)), way=way, **vars(terms)) for way in Way]
    for way, tree in zip(Way, trees, strict=True):
        assert rows_of(tree) == expected, way.name
    return trees[0]


# --- against the oracle


@settings(
    max_examples=budget(200),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_any_sample_gives_the_oracles_tree(data: st.DataObject) -> None:
    """Negatives, zeros, repeated values, equal columns, weights, classes: the tree is the same to the bit."""
    terms = Terms(
        classes=data.draw(st.integers(2, 4)),
        criterion=data.draw(st.sampled_from(["gini", "entropy"])),
        kinds=KINDS,
        alpha=data.draw(st.sampled_from([0.0, 0.0, 0.3, 1.0])),
        min_examples=data.draw(st.sampled_from([1, 1, 2, 5])),
        max_depth=data.draw(st.sampled_from([0, 1, 3, 1 << 30])),
    )
    values = st.sampled_from(VALUES)
    example = st.builds(
        Example,
        st.fixed_dictionaries({}, optional=dict.fromkeys(KINDS, values)),
        st.integers(0, terms.classes - 1),
        st.sampled_from(data.draw(st.sampled_from(WEIGHTS))),
    )
    compare(data.draw(st.lists(example, max_size=30)), terms)


@pytest.mark.parametrize("weights", WEIGHTS, ids=["whole", "fractions", "heavy"])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_larger_samples_give_the_oracles_tree(criterion: str, weights: list[int]) -> None:
    """Columns that are long, sparse and dense, so that both ways of equation 8 are taken in one tree.

    Many features are so rare that they cannot be the best; few thresholds of whole weights are scored in full.
    """
    rng = random.Random(1)
    kinds: dict[Any, Kind] = {feature: NUMERIC if feature % 2 else BINARY for feature in range(50)}
    examples = []
    for _ in range(60 if budget(10) < 10 else 300):
        label = rng.randrange(3)
        x = {
            feature: round(rng.gauss(label, 2.0), 1)
            for feature in kinds
            if rng.random() < (0.9 if feature < 4 else 0.2 if feature < 12 else 0.02)
        }
        examples.append(Example(x, label, rng.choice(weights)))
    tree = compare(examples, Terms(classes=3, criterion=criterion, kinds=kinds))
    assert len(tree.number) > 20


def test_a_column_of_one_entry_is_not_searched_for_every_example() -> None:
    """Equation 8 as printed says that a search of one entry takes no step, and has each example search it."""
    assert not any(is_searched(examples, 1) for examples in range(1, 20))
    assert is_searched(1, 100)
    assert not is_searched(20, 100)
    for examples, entries in ((1, 60), (1, 58), (100, 11_000), (100, 17_000)):
        assert is_searched(examples, entries) == (examples * math.log2(entries) < 0.1 * entries)


def test_the_order_of_examples_does_not_matter() -> None:
    """A shuffled sample gives the same tree."""
    rng = random.Random(2)
    examples = [
        Example({f: rng.choice([-1.0, 0.5, 2.0]) for f in range(6) if rng.random() < 0.5}, rng.randrange(2))
        for _ in range(80)
    ]
    terms = Terms(default=NUMERIC)
    one = rows_of(build_tree(sample_of(examples), **vars(terms)))
    rng.shuffle(examples)
    assert rows_of(build_tree(sample_of(examples), **vars(terms))) == one


# --- what each reading is for


def test_zero_is_a_value_like_any_other() -> None:
    """Thresholds lie between negatives and zeros, and between zeros and positives."""
    examples = [Example({1: -2.0}, 0), Example({}, 1), Example({1: 0.0}, 1), Example({1: 4.0}, 0)]
    tree = compare(examples, Terms(default=NUMERIC))
    assert tree.threshold.tolist() == [-1.0, 0.0, 2.0, 0.0, 0.0]
    assert [each is None for each in tree.feature] == [False, True, False, True, True]


def test_what_only_two_features_tell_together_is_split() -> None:
    """No split of XOR gains anything; the lowest feature is taken, and the next level is pure."""
    sides: list[dict[Feature, float]] = [{}, {4: 1.0}, {9: 1.0}, {4: 1.0, 9: 1.0}]
    examples = [Example(x, len(x) % 2) for x in sides] * 3
    tree = compare(examples, Terms())
    assert tree.feature[0] == 4
    assert len(tree.number) == 7
    assert (np.count_nonzero(tree.weight[tree.depth == 2], axis=1) == 1).all()


def test_the_error_of_rounding_is_no_gain() -> None:
    """Of splits that gain nothing the lowest feature is taken, though another seems better by the last bit."""
    terms = Terms(criterion="entropy", max_depth=1)
    present: list[dict[Feature, float]] = [{4: 1.0}, {9: 1.0}, {9: 1.0}, {}, {}]
    examples = [Example(x, label) for x in present for label in (0, 1, 1)]  # each feature is in whole groups
    assert min(splits(terms, examples))[1] == 9
    assert compare(examples, terms).feature[0] == 4


def test_examples_that_nothing_parts_stay_together() -> None:
    """The same features under different labels make a leaf; BUILD ends."""
    tree = compare([Example({1: 2.0, 2: 1.0}, label) for label in (0, 1, 0)], Terms(kinds={1: NUMERIC}))
    assert tree.weight.tolist() == [[2 * UNIT, UNIT]]


def test_neighbours_with_nothing_between_are_parted() -> None:
    """Where no number lies between two values the threshold is the lower one."""
    examples = [Example({1: 1.0}, 0), Example({1: 1.0 + 2.0**-52}, 1)]
    assert compare(examples, Terms(default=NUMERIC)).threshold[0] == 1.0


def test_scaling_weights_changes_nothing() -> None:
    """Three times the weights give the same splits."""
    rng = random.Random(5)
    made: list[tuple[dict[Feature, float], int]] = [
        ({f: float(rng.randrange(-2, 3)) for f in range(5)}, rng.randrange(2)) for _ in range(60)
    ]
    trees = [
        compare([Example(x, label, weight) for x, label in made], Terms(default=NUMERIC))
        for weight in (UNIT, 3 * UNIT)
    ]
    assert trees[0].feature == trees[1].feature
    assert trees[0].threshold.tolist() == trees[1].threshold.tolist()


def test_one_class_or_no_example_is_a_leaf() -> None:
    """A pure sample and an empty one have one node, whatever their features."""
    assert len(compare([Example({1: 1.0}, 1), Example({2: 1.0}, 1)], Terms()).number) == 1
    assert compare([], Terms()).weight.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"criterion": "sqrt"}, "entropy or gini"),
        ({"classes": 1}, "at least 2 classes"),
        ({"alpha": -1.0}, "finite alpha"),
        ({"min_examples": 0}, "at least 1"),
        ({"kinds": {1: Kind.NOMINAL}}, "NOMINAL; declare categories"),
        ({"default": Kind.QUANTISED}, "QUANTISED"),
    ],
)
def test_wrong_terms_are_refused_with_a_reason(changed: dict[str, Any], reason: str) -> None:
    """What cannot be built is refused before anything is."""
    with pytest.raises(ValueError, match=reason):
        build_tree(sample_of([Example({1: 1.0}, 0)]), **changed)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"value": np.array([np.nan])}, "finite values, example 0"),
        ({"feature": np.array([1, 1], np.uint32), "value": np.ones(2), "pointer": np.array([0, 2])}, "twice"),
        ({"label": np.array([2])}, "labels from 0 to 1"),
        ({"weight": np.array([0])}, "weights above 0"),
        ({"weight": np.array([1 << 62])}, "in all"),
        ({"pointer": np.array([0])}, "2 pointers"),
        ({"pointer": np.array([0, 1 << 40])}, "ascends from 0 to 1"),
        ({"feature": np.array([1], np.int16)}, "feature as an array of uint32"),
        ({"weight": np.ones(1)}, "weight as whole numbers, got float64"),
        ({"label": np.zeros(1)}, "label as whole numbers, got float64"),
    ],
)
def test_wrong_samples_are_refused_with_a_reason(changed: dict[str, Any], reason: str) -> None:
    """An example that is none is named."""
    with pytest.raises(ValueError, match=reason):
        build_tree(sample_of([Example({1: 1.0}, 0)])._replace(**changed))


@pytest.mark.parametrize("depth", [1, 3])
def test_columns_may_be_of_any_types_of_numbers(depth: int) -> None:
    """Those of SciPy's matrices, read-only or every second of an array: the same tree."""
    rng = random.Random(4)
    examples = [Example({f: float(rng.randrange(-2, 3)) for f in range(9)}, rng.randrange(2)) for _ in range(40)]
    sample = columns_of([replace(each, x={f: v for f, v in each.x.items() if v}) for each in examples])
    whole = rows_of(build_tree(sample, default=NUMERIC, max_depth=depth))
    others = sample._replace(
        pointer=sample.pointer.astype(np.int32),
        row=sample.row.astype(np.uint64),
        value=sample.value.astype(np.int8),
        label=sample.label.astype(np.uint8),
        weight=np.repeat(sample.weight, 2)[::2],
        feature=sample.feature.astype(np.int64),
    )
    others.value.flags.writeable = False
    assert rows_of(build_tree(others, default=NUMERIC, max_depth=depth)) == whole


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"value": np.array([np.inf])}, "finite values, example 0"),
        ({"row": np.zeros(2, np.int32), "value": np.ones(2), "pointer": np.array([0, 2])}, "twice"),
        ({"row": np.array([1], np.int32)}, "rows from 0 to 0, got 1 to 1"),
        ({"row": np.array([-1])}, "rows from 0 to 0, got -1 to -1"),
        ({"value": np.ones(2)}, "1 values"),
        ({"pointer": np.array([0, 1 << 40])}, "2 pointers for 1 features, ascending from 0 to 1"),
        ({"pointer": np.array([0, 2, 1]), "feature": np.array([1, 2], np.uint32)}, "3 pointers for 2 features"),
        ({"label": np.array([2])}, "labels from 0 to 1"),
        ({"weight": np.array([0])}, "weights above 0"),
        ({"weight": np.ones(2, np.int64)}, "1 weights"),
        ({"row": np.zeros(1)}, "row as whole numbers, got float64"),
        ({"row": np.array([1 << 32])}, "rows from 0 to 0, got 4294967296"),
        ({"pointer": np.array([0.0, 1.0])}, "pointer as whole numbers"),
        ({"feature": np.array([1 << 32])}, "features from 0 to 4294967295, got 4294967296"),
    ],
)
def test_wrong_columns_are_refused_with_a_reason(changed: dict[str, Any], reason: str, depth: int) -> None:
    """Whether or not rows are made of them."""
    sample = columns_of([Example({1: 1.0}, 0)])._replace(**changed)
    with pytest.raises(ValueError, match=reason):
        build_tree(sample, max_depth=depth)


@pytest.mark.parametrize(
    ("feature", "value"),
    [([1, 2, 1], [1.0, 2.0, 3.0]), ([2, 1, 1], [2.0, 1.0, 3.0]), ([1, 2, 1, 5], [1.0, 2.0, 3.0, 0.0])],
    ids=["canonical", "not in order", "with a zero"],
)
def test_what_is_canonical_already_gives_the_same_tree(feature: list[int], value: list[float]) -> None:
    """Samples that need no sorting are not copied; the others are, and say the same."""
    pointer = np.array([0, 2, len(feature)])
    label, weight = np.array([0, 1]), np.full(2, UNIT)
    sample = Sample(pointer, np.array(feature, np.uint32), np.array(value), label, weight)
    before = sample._replace(feature=sample.feature.copy(), value=sample.value.copy())
    tree = build_tree(sample, default=NUMERIC)
    assert (tree.feature[0], tree.threshold[0]) == (1, 2.0)
    assert np.array_equal(sample.feature, before.feature)
    assert np.array_equal(sample.value, before.value)


def test_a_binary_feature_of_any_value_is_present() -> None:
    """5 and -1 are 1 for a binary feature, whether or not the other features are canonical."""
    examples = [Example({1: 5.0, 2: 0.5}, 0), Example({2: 0.5}, 1), Example({1: -1.0}, 0)]
    tree = compare(examples, Terms(default=NUMERIC, kinds={1: BINARY}))
    assert tree.feature[0] == 1


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_no_part_of_a_node_gains_more_than_is_said(classes: int) -> None:
    """A part of weight v gains at most v times 2 less the Gini index: so are rare features told."""
    rng = np.random.default_rng(classes)
    closest = 0.0
    for _ in range(3000):
        low, high = rng.integers(0, rng.integers(2, 60), (2, classes))
        if not low.sum():
            continue
        index = 1.0 - (((low + high) / (low + high).sum()) ** 2).sum()
        sides = sum(side.sum() - (side**2).sum() / side.sum() for side in (low, high) if side.sum())
        gain = (low + high).sum() * index - sides
        most = low.sum() * (2.0 - index)
        assert gain <= most * (1.0 + 1e-12)
        closest = max(closest, gain / most)
    assert closest > 0.5
