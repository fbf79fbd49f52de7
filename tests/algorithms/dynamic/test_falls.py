"""How far a delete lowers what a split leaves: against all splits that there can be, and how much it is worth."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT, make_criterion
from algorithms.dynamic.falls import fall
from tests.support.examples import budget

GINI = make_criterion("gini", 1)


def left(side: tuple[int, ...]) -> Fraction:
    """Return what a side leaves: its weight times its Gini index."""
    total = sum(side)
    return total - Fraction(sum(count * count for count in side), total) if total else Fraction(0)


@pytest.mark.parametrize(
    "node", [(1, 1), (5, 1), (1, 6), (4, 4), (12, 2), (9, 3), (3, 2, 2), (6, 1, 1), (2, 0, 5)]
)
def test_no_split_of_examples_that_weigh_the_same_falls_further(node: tuple[int, ...]) -> None:
    """Of every split of a node with these counts, whatever the example and whatever is known of gains."""
    whole, checked = left(node), 0
    for low in product(*(range(count + 1) for count in node)):
        high = tuple(count - each for count, each in zip(node, low, strict=True))
        score = left(low) + left(high)
        for label, count in enumerate(low):
            if not count:
                continue
            after = left(tuple(each - (k == label) for k, each in enumerate(low))) + left(high)
            for slack in (0.0, 0.01, 1.0, 50.0):
                gain = float(whole - score) + slack
                others = UNIT * (sum(node) - node[label])
                for lightest in (UNIT, UNIT // 4, 0):
                    most = fall(GINI, UNIT, others, UNIT * sum(node), gain, lightest, len(node))
                    assert score - after <= most + 1e-12, (low, label, gain)
                    checked += 1
    assert checked > 0


WEIGHTS = st.integers(1, 400)


@settings(max_examples=budget(3000), deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), WEIGHTS), max_size=5),
    st.lists(st.tuples(st.integers(0, 2), WEIGHTS), max_size=5),
    WEIGHTS,
    st.floats(0, 3),
)
def test_no_split_falls_further(
    beside: list[tuple[int, int]], high: list[tuple[int, int]], weight: int, slack: float
) -> None:
    """Of examples of any weights: class 0 loses one of `weight`, which has `beside` on its side."""

    def counts(examples: list[tuple[int, int]]) -> tuple[int, ...]:
        return tuple(sum(each for label, each in examples if label == k) for k in range(3))

    low, rest, other = counts([(0, weight), *beside]), counts(beside), counts(high)
    node = tuple(a + b for a, b in zip(low, other, strict=True))
    gain = float(left(node) - left(low) - left(other)) + slack
    lightest = min(each for _, each in [(0, weight), *beside, *high])
    most = fall(GINI, weight * UNIT, sum(node[1:]) * UNIT, sum(node) * UNIT, gain, lightest * UNIT, 3)
    assert left(low) - left(rest) <= most * (1 + 1e-12) + 1e-12


def test_it_is_worth_something_where_little_is_gained() -> None:
    """In a nearly pure node the fall is a small share of 2 w. Of entropy, or without gains, nothing is known."""
    one = fall(GINI, UNIT, UNIT, 1600 * UNIT, 0.05, UNIT, 2)
    assert one < 0.002
    assert fall(GINI, UNIT, UNIT, 1600 * UNIT, 0.05, 0, 2) < 0.4
    assert fall(GINI, UNIT, 800 * UNIT, 1600 * UNIT, 1e9, UNIT, 2) <= 2.000001
    assert fall(GINI, UNIT, UNIT, 1600 * UNIT, math.inf, UNIT, 2) == math.inf
    assert fall(make_criterion("entropy", 1), UNIT, UNIT, 1600 * UNIT, 0.05, UNIT, 2) == math.inf
