import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core import criteria
from algorithms.core.criteria import UNIT
from algorithms.splits import exact, quadtree
from tests.support.examples import budget

NAMES = list(criteria.CRITERIA)
WIDEST = (1 << 62) - 1
POSITIVE = st.one_of(
    st.floats(min_value=2.0**-20, max_value=2.0**42), st.integers(1, 1 << 42).map(float), st.floats(0.5, 2.0)
)
GIVEN = settings(max_examples=budget(300), deadline=None, derandomize=True, database=None)


def interpreted(function: object) -> object:
    """Return the Python source of a kernel as a function."""
    return getattr(function, "py_func", function)


def make(name: str) -> criteria.Criterion:
    """Return a criterion with the shortest memo."""
    return criteria.make_criterion(name, 1)


def h(name: str, u: int, v: int) -> float:
    """Return the un-normalised impurity from the textbook formula, in double precision."""
    x, y = u / UNIT, v / UNIT
    n = x + y
    if n == 0:
        return 0.0
    if name == "gini":
        return n * (1 - (x / n) ** 2 - (y / n) ** 2)
    if name == "sqrt":
        return 2 * n * math.sqrt((x / n) * (y / n))
    return -sum(part * math.log2(part / n) for part in (x, y) if part > 0)


@GIVEN
@given(POSITIVE)
def test_log2_agrees_with_the_library(x: float) -> None:
    """Our log2 and the library's differ by a few units in the last place at most."""
    ours, theirs = criteria.log2(x), math.log2(x)
    assert abs(ours - theirs) <= 4 * math.ulp(theirs)


def test_log2_is_exact_at_powers_of_two() -> None:
    """The logarithm of a power of two is its exponent, to the bit."""
    for exponent in range(-60, 63):
        assert criteria.log2(2.0**exponent) == exponent


@GIVEN
@given(POSITIVE)
def test_log2_does_not_depend_on_the_compiler(x: float) -> None:
    """Compiled and interpreted, log2 gives the same bits."""
    python = interpreted(criteria.log2)
    assert callable(python)
    assert criteria.log2(x).hex() == float(python(x)).hex()


@pytest.mark.parametrize("name", NAMES)
@GIVEN
@given(st.integers(0, 1 << 45), st.integers(0, 1 << 45))
def test_impurity_is_the_textbook_formula(name: str, u: int, v: int) -> None:
    """Entropy, Gini index and the square-root impurity, times the weight."""
    expected = h(name, u, v)
    error = criteria.rounding(u, v)
    assert criteria.impurity(make(name), u, v) == pytest.approx(expected, rel=1e-9, abs=8 * error)


@pytest.mark.parametrize("name", NAMES)
@GIVEN
@given(st.data())
def test_score_is_symmetric_to_the_bit(name: str, data: st.DataObject) -> None:
    """Swapping the labels, or the sides of the split, changes no bit of a score."""
    c0, c1 = data.draw(st.integers(0, 1 << 50)), data.draw(st.integers(0, 1 << 50))
    a, b = data.draw(st.integers(0, c0)), data.draw(st.integers(0, c1))
    criterion = make(name)
    score = criteria.score(criterion, a, b, c0, c1)
    assert score == criteria.score(criterion, b, a, c1, c0)
    assert score == criteria.score(criterion, c0 - a, c1 - b, c0, c1)


GROWN = criteria.covering(criteria.covering(make("entropy"), 2_000), 7_000)


@GIVEN
@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, UNIT - 1))
def test_the_memo_changes_no_bit_of_the_entropy(u: int, v: int, fraction: int) -> None:
    """A long memo, a short one, one that has grown and none at all give the same entropy."""
    u, v = u * UNIT, v * UNIT + fraction
    bare = make("entropy")._replace(table=np.zeros(1, np.float64))
    values = {
        criteria.impurity(memo, u, v)
        for memo in (bare, make("entropy"), criteria.make_criterion("entropy", 20_000), GROWN)
    }
    assert len(values) == 1


def test_a_memo_grows_as_far_as_it_is_worth() -> None:
    """What is added is what a memo made at once holds; nothing is where it is no use."""
    memo = make("entropy")
    for examples in (100, 5_000, 5_001, 100_000, 3_000_000, 4_000_000):
        memo = criteria.covering(memo, examples)
    assert np.array_equal(memo.table, criteria.make_criterion("entropy", 4_000_000).table)
    assert criteria.covering(memo, 5_000_000) is memo
    assert len(criteria.covering(make("gini"), 5_000).table) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_pure_side_has_no_impurity(name: str) -> None:
    """Impurity is exactly 0 where one label is missing, whatever the weight."""
    criterion = make(name)
    for units in (0, 1, 3, UNIT, 10**9 + 7, (1 << 61) + 1):
        assert criteria.impurity(criterion, units, 0) == 0.0
        assert criteria.impurity(criterion, 0, units) == 0.0


@st.composite
def nodes(draw: st.DrawFn) -> tuple[int, int, int]:
    """Draw a grain and node totals that are multiples of it."""
    grain = 1 << draw(st.sampled_from([0, 3, 18, 19, 20, 22]))
    most = draw(st.sampled_from([3, 40, 3000, 10**6]))
    return grain, grain * draw(st.integers(1, most)), grain * draw(st.integers(1, most))


@pytest.mark.parametrize("name", NAMES)
@GIVEN
@given(st.data(), nodes())
def test_no_feature_in_a_square_scores_below_its_bound(
    name: str, data: st.DataObject, node: tuple[int, int, int]
) -> None:
    """The bound of every square around a feature, from the finest leaf to half the plane, is below its score."""
    grain, c0, c1 = node
    a = grain * data.draw(st.integers(0, c0 // grain))
    b = grain * data.draw(st.integers(0, c1 // grain))
    criterion = make(name)
    finder = exact.make(1, 1)
    qa, qb = quadtree.coordinate(a), quadtree.coordinate(b)
    limit = criteria.score(criterion, a, b, c0, c1) + criteria.rounding(c0, c1)
    for level in range(24):
        corner = ((qa >> level) << level, (qb >> level) << level)
        finder.nodes[0] = (-1, -1, -1, -1, -1, level, *corner)
        assert quadtree.bound_of(finder, criterion, 0, c0, c1, grain) <= limit


@pytest.mark.parametrize("name", NAMES)
@GIVEN
@given(st.data(), nodes())
def test_no_waiting_feature_scores_below_the_bound_on_waiting_ones(
    name: str, data: st.DataObject, node: tuple[int, int, int]
) -> None:
    """A feature of some weight scores no better than the bound for that weight or for a larger one."""
    grain, c0, c1 = node
    a = grain * data.draw(st.integers(0, c0 // grain))
    b = grain * data.draw(st.integers(0, c1 // grain))
    criterion = make(name)
    limit = criteria.score(criterion, a, b, c0, c1) + criteria.rounding(c0, c1)
    for more in (0, grain, 5 * grain, c0, c0 + c1, 1 << 40):
        assert exact._waiting_bound(criterion, a + b + more, c0, c1) <= limit


@pytest.mark.parametrize("name", NAMES)
@GIVEN
@given(st.data(), nodes())
def test_scores_are_monotone_on_each_side_of_the_diagonal(
    name: str, data: st.DataObject, node: tuple[int, int, int]
) -> None:
    """Away from the diagonal b / a = c1 / c0, a score falls, in both coordinates."""
    grain, c0, c1 = node
    a = grain * data.draw(st.integers(0, c0 // grain))
    b = grain * data.draw(st.integers(0, c1 // grain))
    farther_a = grain * data.draw(st.integers(a // grain, c0 // grain))
    farther_b = grain * data.draw(st.integers(0, b // grain))
    if b * c0 > a * c1:
        return
    criterion = make(name)
    limit = criteria.score(criterion, a, b, c0, c1) + criteria.rounding(c0, c1)
    assert criteria.score(criterion, farther_a, b, c0, c1) <= limit
    assert criteria.score(criterion, a, farther_b, c0, c1) <= limit


@GIVEN
@given(st.one_of(st.integers(0, 70), st.integers(0, WIDEST), st.integers(0, 61).map(lambda k: (1 << k) - 1)))
def test_a_count_lies_between_the_edges_of_its_coordinate(count: int) -> None:
    """Coordinates are found without an error at their edges, up to the largest count."""
    at = quadtree.coordinate(count)
    assert 0 <= at < 1 << 24
    assert quadtree.edge(at) <= count < quadtree.edge(at + 1)


def test_edges_rise_and_small_counts_are_their_own_coordinates() -> None:
    """Below 2^19 there is a coordinate a count, from there on 2^18 an octave; beyond 2^62 there are no counts."""
    assert all(quadtree.edge(at) == at == quadtree.coordinate(at) for at in [0, 1, 2, 3, 1000, (1 << 19) - 1])
    octaves = [octave << 18 for octave in range(2, 46)]
    edges = [quadtree.edge(start + step) for start in octaves for step in (0, 1, (1 << 18) - 1)]
    assert all(np.diff(edges) > 0)
    assert [quadtree.edge(start) for start in octaves] == [1 << bits for bits in range(19, 63)]
    assert all(quadtree.edge(at) >= 1 << 62 for at in range(45 << 18, (1 << 24) + 1, 9999))
