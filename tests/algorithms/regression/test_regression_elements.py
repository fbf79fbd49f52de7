"""The parts below observers: moments, the store of elements, and what is particular to each observer."""

import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT
from algorithms.regression import ebst, elements
from algorithms.regression.ebst import truncated
from algorithms.regression.elements import EVER, SIZE, X
from algorithms.regression.moments import Moments, learned, merged, nothing, unmerged
from algorithms.regression.observer import Observer
from algorithms.regression.observers import observe
from tests.support.examples import budget

NUMBERS = st.one_of(
    st.floats(-1e140, 1e140), st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.0, 1.5, -1.0]), st.integers(-9, 9)
).map(float)


# --- moments


def of(labels: list[tuple[float, int]]) -> Moments:
    """Return the moments of labels, learned one by one."""
    seen = nothing()
    for y, weight in labels:
        seen = learned(seen, y, weight)
    return seen


def exactly(labels: list[tuple[float, int]]) -> tuple[Fraction, Fraction]:
    """Return mean and M_2 in rational numbers."""
    n = Fraction(sum(w for _, w in labels), UNIT)
    mean = sum((Fraction(w, UNIT) * Fraction(y) for y, w in labels), Fraction(0)) / n
    return mean, sum((Fraction(w, UNIT) * (Fraction(y) - mean) ** 2 for y, w in labels), Fraction(0))


def near(got: Moments, labels: list[tuple[float, int]], size: float) -> None:
    """Raise AssertionError unless moments are those of the labels, within rounding of labels of that size."""
    mean, squares = exactly(labels)
    weight = sum(w for _, w in labels)
    assert got.weight == weight
    assert got.mean == pytest.approx(float(mean), abs=1e-12 * size)
    assert got.squares == pytest.approx(float(squares), abs=1e-12 * size**2 * weight / UNIT)


LABELS = st.lists(
    st.tuples(st.floats(-100, 100), st.sampled_from([UNIT, 2 * UNIT, UNIT // 4])), min_size=1, max_size=30
)


@settings(max_examples=budget(200), deadline=None, derandomize=True, database=None)
@given(LABELS, LABELS)
def test_moments_are_added_and_taken_apart(a: list[tuple[float, int]], b: list[tuple[float, int]]) -> None:
    """Equations 2 to 7 give the moments of both lots, and of each."""
    near(of(a), a, 100.0)
    both = merged(of(a), of(b))
    near(both, a + b, 100.0)
    assert merged(nothing(), of(a)) == merged(of(a), nothing()) == unmerged(of(a), nothing()) == of(a)
    near(unmerged(both, of(b)), a, 1e4)  # one of the lots may have a hundred times the weight of the other
    assert unmerged(both, both) == nothing()


def test_taking_apart_never_gives_a_negative_variance() -> None:
    """What rounding would make negative is 0."""
    rng = random.Random(1)
    for _ in range(200):
        labels = [(rng.gauss(1e6, 1), UNIT) for _ in range(20)]
        rest = unmerged(of(labels), of(labels[:19]))
        assert rest.weight == UNIT
        assert rest.squares >= 0.0


# --- elements


@settings(max_examples=budget(200), deadline=None, derandomize=True, database=None)
@given(NUMBERS, NUMBERS)
def test_keys_ascend_as_numbers_do(a: float, b: float) -> None:
    """Keys, read without a sign, have the order of the numbers, and 0.0 and -0.0 have one."""
    keys = [int(elements.ordered(each)) % 2**64 for each in (a, b)]
    assert (keys[0] < keys[1]) == (a < b)
    assert (keys[0] == keys[1]) == (a == b)


@settings(max_examples=budget(100), deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(st.integers(0, 2), NUMBERS, st.booleans()), max_size=60))
def test_elements_of_several_observers_share_one_store(steps: list[tuple[int, float, bool]]) -> None:
    """Each observer has its own in order, whoever gives all of his back, and rows are used again."""
    state = elements.make(2, 3)
    kind = ebst.make()
    for observer in range(3):
        elements.begin(state, observer, 0.0)
    expected: list[set[float]] = [set(), set(), set()]
    most = 0
    for observer, x, forget in steps:
        if forget and len(expected[observer]) > 3:
            elements.forget(state, observer)
            expected[observer] = set()
        if elements.room(state) == 0:
            state = elements.grown(state, 2 * len(state.key))
        observe(kind, state, observer, x + 0.0, 1.0, UNIT)
        expected[observer].add(x)
        most = max(most, sum(map(len, expected)))
        assert elements.find(state, observer, elements.ordered(x)) != elements.NONE
        assert (
            elements.find(state, observer, elements.ordered(1e139)) == elements.NONE or 1e139 in expected[observer]
        )
    owned = [elements.check_tree(state, observer) for observer in range(3)]
    elements.check(state, [element for own in owned for element in own])
    assert [state.numbers[own, X].tolist() for own in owned] == [sorted(each) for each in expected]
    assert state.heads[:, SIZE].tolist() == [len(each) for each in expected]
    assert state.used[EVER] == most


# --- what is particular to each


def prototypes(observer: Observer) -> list[float]:
    """Return the prototypes of all elements in order."""
    arrays = observer.arrays()
    return sorted(arrays["elements.numbers"][arrays["elements.weight"] > 0, X].tolist())


def test_slots_are_floors_for_negative_values_too() -> None:
    """With a radius of 1, -0.5 and 0.5 lie in different slots, -1.0 with -0.5, 1.0 apart from 0.5."""
    observer = Observer("qo", radius=1.0)
    observer.observe([-0.5, 0.5, -1.0, 1.0, 0.0], [0.0] * 5)
    assert prototypes(observer) == [-0.75, 0.25, 1.0]
    tiny = Observer("qo", radius=1e9)
    tiny.observe([-5e-324, 5e-324], [0.0, 1.0])
    assert prototypes(tiny) == [-5e-324, 5e-324]


def test_a_boundary_right_after_the_first_slot_is_found() -> None:
    """The first slot is scored against the rest, with the threshold between the first two (algorithm 2)."""
    observer = Observer("qo", radius=1.0)
    x = [0.5, 0.5, 1.5, 1.5, 2.5, 2.5, 3.5, 3.5]
    y = [0.0, 0.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    observer.observe(x, y)
    found = observer.best_split()
    assert found is not None
    assert found.threshold == 1.0
    assert found.merit == pytest.approx(sum((each - 7.5) ** 2 for each in y) / 7)
    assert (found.low.weight, found.low.mean, found.high.mean, found.high.variance) == (2.0, 0.0, 10.0, 0.0)


def test_the_radius_is_a_share_of_the_deviation_of_the_first_values() -> None:
    """32 different values are kept as they are; the 33rd settles the radius, which then stays."""
    observer = Observer("qo", fraction=0.5)
    first = [float(at) for at in range(32)]
    observer.observe(first * 2, [0.0] * 64)
    assert prototypes(observer) == first
    assert observer.arrays()["elements.radius"][0] == 0.0
    observer.observe(40.0, 0.0)
    radius = math.sqrt(sum((each - 15.5) ** 2 for each in first) / 32) / 2
    assert observer.arrays()["elements.radius"][0] == pytest.approx(radius)
    assert len(prototypes(observer)) == len({x // radius for x in [*first, 40.0]})
    observer.observe([1e6, -1e6], [0.0, 0.0])
    assert observer.arrays()["elements.radius"][0] == pytest.approx(radius)


def test_too_many_slots_double_the_radius() -> None:
    """Beyond `most` slots neighbours become one, as if the radius had been so wide before."""
    narrow, wide = Observer("qo", radius=1.0, most=4), Observer("qo", radius=4.0)
    x = [float(at) for at in range(-8, 8)]
    narrow.observe(x, x)
    wide.observe(x, x)
    narrow.check()
    assert narrow.arrays()["elements.radius"][0] == 4.0
    assert prototypes(narrow) == pytest.approx(prototypes(wide))
    a, b = narrow.best_split(), wide.best_split()
    assert a is not None
    assert b is not None
    assert a.merit == pytest.approx(b.merit)


def test_values_in_ascending_order_do_not_fill_the_memory() -> None:
    """A radius from first values that lie near each other is doubled once there are 256 slots."""
    observer = Observer("qo")
    x = [at / 100 for at in range(5000)]
    observer.observe(x, [float(each > 20) for each in x])
    observer.check()
    assert 100 < observer.size <= 256
    found = observer.best_split()
    assert found is not None
    assert found.threshold == pytest.approx(20, abs=0.3)


@settings(max_examples=budget(200), deadline=None, derandomize=True, database=None)
@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_truncation_keeps_so_many_decimals(x: float, decimals: int) -> None:
    """A truncated value is no larger in size, less than a last decimal away, and is its own truncation."""
    got = truncated(x, 10.0**decimals)
    assert abs(got) <= abs(x) < abs(got) + 10.0**-decimals * (1 + 1e-9)
    assert got * x >= 0.0
    assert truncated(got, 10.0**decimals) == got


def test_a_decimal_number_is_its_own_truncation() -> None:
    """0.29 * 100 is less than 29 in floats; it is not taken for 0.28."""
    assert truncated(0.29, 100.0) == 0.29
    assert truncated(-0.29, 100.0) == -0.29
    assert truncated(0.2999, 100.0) == 0.29
    assert truncated(1e140, 1000.0) == 1e140
    observer = Observer("tebst", decimals=1)
    observer.observe([0.31, 0.39, -0.31, 0.05, -0.05], [0.0] * 5)
    assert prototypes(observer) == [-0.3, 0.0, 0.3]


def test_wrong_settings_are_refused_with_a_reason() -> None:
    """What cannot be is refused when the observer is made."""
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("histogram", {}, "expected an observer of qo, ebst, tebst, got 'histogram'"),
        ("qo", {"radius": 0.0}, "expected a radius from 1e-160"),
        ("qo", {"radius": math.nan}, "expected a radius"),
        ("qo", {"fraction": 0.0}, "expected a fraction above 0"),
        ("qo", {"most": 1}, "at least 2"),
        ("tebst", {"decimals": 16}, "0 to 15 decimals"),
        ("ebst", {"decimals": 3}, r"expected options of ebst \(most\), got decimals"),
        ("ebst", {"most": 1}, "expected most, the bound on values, of at least 2, got 1"),
        ("tebst", {"most": 0}, "expected most, the bound on values, of at least 2, got 0"),
    ]
    for name, options, reason in wrong:
        with pytest.raises(ValueError, match=reason):
            Observer(name, **options)


@pytest.mark.parametrize("name", ["ebst", "tebst"])
def test_values_beyond_the_bound_are_counted_as_the_next_lower(name: str) -> None:
    """As many values as may be are kept; a later one counts as the next lower of them, or else as the lowest."""
    observer = Observer(name, most=3)
    observer.observe([1.0, 3.0, 5.0], [0.0, 1.0, 2.0])
    observer.observe([2.5, 0.5, 9.0, 3.0], [7.0, 7.0, 7.0, 7.0])
    observer.check()
    told = Observer(name)
    told.observe([1.0, 3.0, 5.0, 1.0, 1.0, 5.0, 3.0], [0.0, 1.0, 2.0, 7.0, 7.0, 7.0, 7.0])
    assert observer.size == told.size == 3
    assert observer.best_split() == told.best_split()
