import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT, make_criterion
from algorithms.trees import normal
from algorithms.trees.theorems import step
from tests.support.examples import budget

GIVEN = settings(max_examples=budget(100), deadline=None, derandomize=True, database=None)
WEIGHTS = st.sampled_from([UNIT, UNIT // 2, 3 * UNIT, round(0.3 * UNIT), 1])


def paper_g(criterion: str, branches: list[list[float]]) -> float:
    """Return G(D|X) from the counts: equation 2 of paper 001 in bits, or equation 4."""
    n = sum(map(sum, branches))
    if criterion == "entropy":
        return -sum(x * math.log2(x / sum(row)) for row in branches for x in row if x) / n
    return sum(x * x / sum(row) for row in branches for x in row if x) / n


def paper_delta(criterion: str, row: list[float], m: int, w: float) -> float:
    """Return the Delta that theorem 1 or 2 gives, with 0 log 0 = 0, and 0 for what an empty branch divides by."""
    n_r, n_rm = sum(row), row[m]
    if criterion == "entropy":
        delta = w * math.log2((n_rm + w) / (n_r + w))
        delta += n_r * math.log2(n_r / (n_r + w)) if n_r else 0.0
        return delta + (n_rm * math.log2((n_rm + w) / n_rm) if n_rm else 0.0)
    squares = sum(w * x * x / (n_r * (n_r + w)) for x in row) if n_r else 0.0
    return (2 * w * n_rm + w * w) / (n_r + w) - squares


@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@GIVEN
@given(
    st.integers(2, 5),
    st.integers(2, 5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), WEIGHTS), min_size=1),
)
def test_the_theorems_agree_with_recomputation(
    criterion: str, classes: int, arity: int, examples: list[tuple[int, int, int]]
) -> None:
    """Over any stream, weights and empty cells, score and theorem stay within 1e-12 of the counts' own G."""
    made = make_criterion(criterion, 100)
    counts = [[0] * classes for _ in range(arity)]
    score, g = 0.0, 0.0
    for r, m, weight in examples:
        branch, label = r % arity, m % classes
        row = [units / UNIT for units in counts[branch]]
        n, w = sum(map(sum, counts)) / UNIT, weight / UNIT
        delta = paper_delta(criterion, row, label, w)
        g = (n * g - delta if criterion == "entropy" else n * g + delta) / (n + w)
        score += step(made, sum(counts[branch]), counts[branch][label], sum(x * x for x in row), weight)
        counts[branch][label] += weight
        expected = paper_g(criterion, [[units / UNIT for units in each] for each in counts])
        assert g == pytest.approx(expected, rel=1e-12, abs=1e-12)
        ours = score / (n + w)
        assert (ours if criterion == "entropy" else 1.0 - ours) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@GIVEN
@given(st.floats(-1000.0, 1000.0))
def test_exp2_agrees_with_the_library(x: float) -> None:
    """Our power of two and the library's differ by a few units in the last place at most."""
    assert normal.exp2(x) == pytest.approx(2.0**x, rel=4e-15)


@GIVEN
@given(st.floats(-40.0, 40.0))
def test_the_normal_distribution_agrees_with_the_library(z: float) -> None:
    """Our cumulative normal distribution is good to 1e-15, in the tail relatively to 1e-9."""
    expected = 0.5 * math.erfc(-z / math.sqrt(2.0))
    assert normal.cumulative(z) == pytest.approx(expected, abs=1e-15, rel=1e-9 if z < 0 else 1e-15)


def test_powers_of_two_are_exact_and_tiny_ones_vanish() -> None:
    """Whole exponents are exact, and what is beyond the range is 0."""
    assert [normal.exp2(float(x)) for x in (-3, 0, 1, 10)] == [0.125, 1.0, 2.0, 1024.0]
    assert normal.exp2(-math.inf) == 0.0
    assert (normal.cumulative(-38.0), normal.cumulative(38.0), normal.cumulative(0.0)) == (0.0, 1.0, 0.5)
