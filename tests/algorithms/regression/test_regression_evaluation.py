import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT
from algorithms.regression.evaluation import Measures, Prequential
from tests.support.examples import budget

Row = tuple[float, float, int]  # label, prediction, weight

NUMBER = st.floats(-100, 100)
ROW = st.tuples(NUMBER, st.one_of(NUMBER, st.just(math.nan)), st.sampled_from([UNIT, UNIT // 2, 3 * UNIT]))


def agree(got: Measures, rows: list[Row]) -> None:
    """Raise AssertionError unless the measures are those of the rows, from their definitions."""
    evaluated = [(y, predicted, w / UNIT) for y, predicted, w in rows if not math.isnan(predicted)]
    n = sum(w for _, _, w in evaluated)
    assert got.weight == n
    assert got.abstained == sum(w / UNIT for _, predicted, w in rows if math.isnan(predicted))
    if not n:
        assert all(math.isnan(each) for each in got[2:])
        return
    squared = sum(w * (y - predicted) ** 2 for y, predicted, w in evaluated)
    mean = sum(w * y for y, _, w in evaluated) / n
    squares = sum(w * (y - mean) ** 2 for y, _, w in evaluated)
    assert got.mae == pytest.approx(sum(w * abs(y - predicted) for y, predicted, w in evaluated) / n, abs=1e-12)
    assert got.rmse == pytest.approx(math.sqrt(squared / n), abs=1e-12)
    if squares > 1e-6:
        assert got.r2 == pytest.approx(1 - squared / squares, rel=1e-6, abs=1e-6)


def add(kept: Prequential, rows: list[Row]) -> None:
    """Add rows as one batch."""
    truth, predicted, weight = ([row[k] for row in rows] for k in range(3))
    kept.add(np.array(truth, np.float64), np.array(predicted, np.float64), np.array(weight, np.int64))


@settings(max_examples=budget(200), deadline=None, derandomize=True, database=None)
@given(st.lists(st.lists(ROW, max_size=9), min_size=1, max_size=6), st.integers(1, 12))
def test_measures_are_those_of_all_examples_and_of_the_last(batches: list[list[Row]], window: int) -> None:
    """MAE, RMSE and R2 agree with their definitions, in all and over the window, also of a restored copy."""
    kept = Prequential(window)
    rows: list[Row] = []
    for batch in batches:
        rows += batch
        add(kept, batch)
        again = Prequential(window)
        again.restore({name: array.copy() for name, array in kept.arrays().items()})
        kept = again
        agree(kept.total().measures(), rows)
        agree(kept.recent().measures(), rows[-window:])
        assert kept.examples == len(rows)
    half = len(rows) // 2
    parts = []
    for part in (rows[:half], rows[half:]):
        parts.append(Prequential(window))
        add(parts[-1], part)
    agree(parts[0].total().plus(parts[1].total()).measures(), rows)


def test_no_stream_is_too_heavy() -> None:
    """Weights pass 2^63, and 2^64, evaluated and abstained, and the measures stay those of their definitions."""
    heaviest = (1 << 62) - 1
    rows = [
        (float(k % 7), math.nan if k % 5 == 0 else float(k % 3), (1 << 51, heaviest, UNIT)[k % 3])
        for k in range(60)
    ]
    kept, other = Prequential(9), Prequential(9)
    for start in range(0, 40, 8):
        add(kept, rows[start : start + 8])
    add(other, rows[40:])
    for got, of in (
        (kept.total(), rows[:40]),
        (kept.recent(), rows[31:40]),
        (kept.total().plus(other.total()), rows),
    ):
        expected = Prequential(100)
        add(expected, [(y, predicted, weight >> 40) for y, predicted, weight in of if weight >> 40])
        measures, scaled = got.measures(), expected.total().measures()
        assert measures[2:] == pytest.approx(scaled[2:], rel=1e-6)
        assert measures.weight == sum(w for _, predicted, w in of if not math.isnan(predicted)) / UNIT
        assert measures.abstained == sum(w for _, predicted, w in of if math.isnan(predicted)) / UNIT


def test_a_checkpoint_of_plain_sums_is_taken_over() -> None:
    """Earlier versions had weights of one word: they are the low words."""
    kept, again = Prequential(4), Prequential(4)
    add(kept, [(1.0, 2.0, UNIT), (2.0, math.nan, UNIT), (3.0, 3.0, UNIT)])
    saved = {name: array.copy() for name, array in kept.arrays().items()}
    again.restore(saved | {"weight": saved["weight"][:2]})
    assert again.arrays()["weight"].tolist() == kept.arrays()["weight"].tolist()


def test_batches_of_any_size_leave_the_same_bytes() -> None:
    """Examples one by one, in sevens and all at once leave the same sums and the same window."""
    rng = np.random.default_rng(1)
    rows = [
        (float(y), float(y + e), int(w))
        for y, e, w in zip(*rng.normal(1e6, 1, (2, 100)), rng.integers(1, UNIT, 100), strict=True)
    ]
    states: list[Any] = []
    for size in (1, 7, 100):
        kept = Prequential(30)
        for at in range(0, len(rows), size):
            add(kept, rows[at : at + size])
        states.append({name: array.tobytes() for name, array in kept.arrays().items()})
    assert states[0] == states[1] == states[2]


def test_labels_far_from_0_are_judged_like_others() -> None:
    """R2 of labels near 1e9 that differ by little is that of the differences, in one part and in two."""
    rng = np.random.default_rng(2)
    rows = [(round(y, 6), round(y + e, 6), UNIT) for y, e in rng.normal(0, [[1.0], [0.3]], (2, 2000)).T.tolist()]
    far = [
        (2.0**30 + round(y * 1024) / 1024, 2.0**30 + round(predicted * 1024) / 1024, w) for y, predicted, w in rows
    ]
    near = [(y - 2.0**30, predicted - 2.0**30, w) for y, predicted, w in far]
    kept = [Prequential(10) for _ in range(4)]
    for each, part in zip(kept, (near, far, far[:700], far[700:]), strict=True):
        add(each, part)
    plain = kept[0].total().measures()
    assert plain.r2 == pytest.approx(0.91, abs=0.02)
    for evaluated in (kept[1].total(), kept[2].total().plus(kept[3].total())):
        assert evaluated.measures().r2 == pytest.approx(plain.r2, rel=1e-12)
    empty = Prequential(10).total()
    assert empty.plus(kept[1].total()).measures() == kept[1].total().plus(empty).measures()


def test_an_early_outlier_leaves_no_trace_in_the_window() -> None:
    """What has left the window is not in any digit of its measures."""
    kept, alone = Prequential(2), Prequential(2)
    last = [(1.0, 1.25, UNIT), (2.0, 2.5, UNIT)]
    add(kept, [(1e100, 0.0, UNIT), *last])
    add(alone, last)
    assert kept.recent().measures() == alone.recent().measures() == alone.total().measures()


def test_an_evaluation_without_a_window_is_refused() -> None:
    """The size is checked when it is made; nothing evaluated is not a number."""
    with pytest.raises(ValueError, match="window of at least 1"):
        Prequential(0)
    assert math.isnan(Prequential(3).total().measures().rmse)
