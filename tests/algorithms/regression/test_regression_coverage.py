"""How many labels were within their interval, against the definition."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.regression.coverage import Coverage, CoverageMeasures, Covered
from tests.support.examples import budget

Row = tuple[float, float, int]  # residual, margin, weight

ROW = st.tuples(
    st.sampled_from([0.0, 0.5, 1.0, 2.0, math.nan]),
    st.sampled_from([0.0, 1.0, 1.5, math.nan]),
    st.sampled_from([UNIT, UNIT // 2, 3 * UNIT]),
)


def by_definition(rows: list[Row]) -> CoverageMeasures:
    """Return the measures of rows."""
    judged = [(residual, margin, weight) for residual, margin, weight in rows if not math.isnan(margin)]
    whole = sum(weight for _, _, weight in judged)
    if not whole:
        return CoverageMeasures(math.nan, math.nan)
    within = sum(weight for residual, margin, weight in judged if residual <= margin)
    return CoverageMeasures(within / whole, sum(2 * margin * weight for _, margin, weight in judged) / whole)


def add(kept: Coverage, rows: list[Row]) -> None:
    """Add rows as one batch."""
    residual, margin, weight = ([row[k] for row in rows] for k in range(3))
    kept.add(np.array(residual, np.float64), np.array(margin, np.float64), np.array(weight, np.int64))


def agree(got: Covered, rows: list[Row]) -> None:
    """Raise AssertionError unless the measures are those of the rows."""
    assert got.measures() == pytest.approx(by_definition(rows), nan_ok=True)


@settings(max_examples=budget(100), deadline=None, derandomize=True, database=None)
@given(st.lists(st.lists(ROW, max_size=12), max_size=4), st.integers(1, 9))
def test_coverage_is_what_it_is_defined_as(batches: list[list[Row]], window: int) -> None:
    """In all and over the window, in batches of any size and after a restore, and added up in two parts."""
    kept, seen = Coverage(window), list[Row]()
    parts = [Coverage(window), Coverage(window)]
    for number, rows in enumerate(batches):
        add(kept, rows)
        add(parts[number % 2], rows)
        seen += rows
        again = Coverage(window)
        again.restore({name: array.copy() for name, array in kept.arrays().items()})
        kept = again
        agree(kept.total(), seen)
        agree(kept.recent(), seen[-window:])
        agree(parts[0].total().plus(parts[1].total()), seen)


def test_no_weight_overflows() -> None:
    """Examples of the largest weight are counted for ever."""
    kept = Coverage(1)
    for _ in range(4):
        add(kept, [(1.0, 2.0, MAX_TOTAL - 1), (3.0, 2.0, MAX_TOTAL - 1)])
    assert kept.total().measures() == (0.5, 4.0)
