import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.criteria import UNIT
from algorithms.trees.evaluation import Measures, Prequential
from tests.naive import budget

ROW = st.tuples(
    st.integers(0, 2), st.integers(-1, 2), st.sampled_from([UNIT, UNIT // 2, 3 * UNIT]), st.floats(0.0, 50.0)
)
Row = tuple[int, int, int, float]


def plain(rows: list[Row]) -> dict[str, Any]:
    """Return the measures from their definitions."""
    n = sum(weight for _, _, weight, _ in rows)
    pairs = [(t, g) for t in range(3) for g in range(-1, 3)]
    share = {pair: sum(row[2] for row in rows if row[:2] == pair) / n for pair in pairs}
    actual = [sum(share[t, g] for g in range(-1, 3)) for t in range(3)]
    guessed = [sum(share[t, g] for t in range(3)) for g in range(3)]
    accuracy = sum(share[k, k] for k in range(3))
    chance = sum(a * g for a, g in zip(actual, guessed, strict=True))
    f1 = [2 * share[k, k] / (actual[k] + guessed[k]) if actual[k] + guessed[k] else 0.0 for k in range(3)]
    return {
        "weight": n / UNIT,
        "accuracy": accuracy,
        "kappa": (accuracy - chance) / (1 - chance) if chance < 1 - 1e-12 else None,
        "f1": f1,
        "macro_f1": sum(f1) / sum(a + g > 0 for a, g in zip(actual, guessed, strict=True)),
        "log_loss": math.log(2) * sum(round(loss * w) for _, _, w, loss in rows) / n,
    }


def agree(got: Measures, rows: list[Row]) -> None:
    """Raise AssertionError unless the measures are those of the rows."""
    expected = plain(rows)
    if expected.pop("kappa") is not None:
        assert got.kappa == pytest.approx(plain(rows)["kappa"], abs=1e-12)
    for name, value in expected.items():
        assert getattr(got, name) == pytest.approx(value, abs=1e-12), name


@settings(max_examples=budget(200), deadline=None, derandomize=True, database=None)
@given(st.lists(st.lists(ROW, max_size=9), min_size=1, max_size=6), st.integers(1, 12))
def test_measures_are_those_of_all_examples_and_of_the_last(batches: list[list[Row]], window: int) -> None:
    """Accuracy, Kappa, F1 and log-loss agree with their definitions, in all and over the window."""
    kept = Prequential(3, window)
    rows: list[Row] = []
    for batch in batches:
        rows += batch
        truth, guess, weight, loss = ([row[k] for row in batch] for k in range(4))
        kept.add(
            np.array(truth, np.int32),
            np.array(guess, np.int32),
            np.array(weight, np.int64),
            np.array(loss, np.float64),
        )
        again = Prequential(3, window)
        again.restore({name: array.copy() for name, array in kept.arrays().items()})
        kept = again
        if rows:
            agree(kept.total().measures(), rows)
            agree(kept.recent().measures(), rows[-window:])


def test_nothing_judged_is_not_a_number() -> None:
    """Before the first example there is no accuracy, and no error either."""
    measures = Prequential(2, 5).total().measures()
    assert measures.weight == 0.0
    assert math.isnan(measures.accuracy)
    assert measures.f1.tolist() == [0.0, 0.0]


def test_an_evaluation_without_classes_or_window_is_refused() -> None:
    """The sizes are checked when it is made."""
    with pytest.raises(ValueError, match="at least 2 classes"):
        Prequential(1, 5)
    with pytest.raises(ValueError, match="window of at least 1"):
        Prequential(2, 0)
