import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT
from algorithms.trees.evaluation import Measures, Prequential
from tests.oracles.naive import budget

HEAVIEST = (1 << 62) - 1
WEIGHTS = st.sampled_from([UNIT, UNIT // 2, 3 * UNIT, 1, 1 << 51, HEAVIEST])
ROW = st.tuples(st.integers(0, 2), st.integers(-1, 2), WEIGHTS, st.floats(0.0, 50.0))
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
        "kappa": (accuracy - chance) / (1 - chance) if chance < 1 - 1e-6 else None,
        "f1": f1,
        "macro_f1": sum(f1) / sum(a + g > 0 for a, g in zip(actual, guessed, strict=True)),
        "log_loss": math.log(2) * sum(round(loss * w) for _, _, w, loss in rows) / n,
    }


def agree(got: Measures, rows: list[Row]) -> None:
    """Raise AssertionError unless the measures are those of the rows."""
    expected = plain(rows)
    if expected.pop("kappa") is not None:
        assert got.kappa == pytest.approx(plain(rows)["kappa"], abs=1e-9)
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
        truth, predicted, weight, loss = ([row[k] for row in batch] for k in range(4))
        kept.add(
            np.array(truth, np.int32),
            np.array(predicted, np.int32),
            np.array(weight, np.int64),
            np.array(loss, np.float64),
        )
        again = Prequential(3, window)
        again.restore({name: array.copy() for name, array in kept.arrays().items()})
        kept = again
        if rows:
            agree(kept.total().measures(), rows)
            agree(kept.recent().measures(), rows[-window:])


def add(kept: Prequential, rows: list[Row]) -> None:
    """Add rows as one batch."""
    truth, predicted, weight, loss = (np.array([row[k] for row in rows]) for k in range(4))
    kept.add(truth.astype(np.int32), predicted.astype(np.int32), weight.astype(np.int64), loss)


def test_no_stream_is_too_heavy() -> None:
    """Sums pass 2^63, and 2^64, in all, over the window and of several partitions, and stay what they are."""
    rng = np.random.default_rng(3)
    rows = [
        (int(t), int(g), int(w), float(loss))
        for t, g, w, loss in zip(
            rng.integers(0, 3, 900),
            rng.integers(-1, 3, 900),
            rng.choice([1 << 51, HEAVIEST, 1 << 20], 900),
            rng.choice([50.0, 0.0, 1.5], 900),
            strict=True,
        )
    ]
    kept, other = Prequential(3, 50), Prequential(3, 50)
    for start in range(0, 600, 60):
        add(kept, rows[start : start + 60])
    add(other, rows[600:])
    agree(kept.total().measures(), rows[:600])
    agree(kept.recent().measures(), rows[550:600])
    agree(kept.total().plus(other.total()).measures(), rows)
    assert kept.total().measures().weight > 2.0**45
    assert 0.0 < kept.total().measures().accuracy < 1.0


def test_a_checkpoint_of_plain_sums_is_taken_over() -> None:
    """Earlier versions had sums of one word: they are the low words, also where they had passed 2^63 just once."""
    rows = [(t % 3, t % 2, 1 << 51, 50.0) for t in range(40)]
    kept = Prequential(3, 5)
    add(kept, rows)
    saved = {name: array.copy() for name, array in kept.arrays().items()}

    def plain_words(words: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
        both: np.ndarray[Any, Any] = words[:count] + (words[count:] << 62)  # wraps, as it did
        return both

    saved |= {name: plain_words(saved[name], 3) for name in ("confusion", "windowed")}
    saved["loss"] = plain_words(saved["loss"], 2)
    again = Prequential(3, 5)
    again.restore(saved)
    for name, array in kept.arrays().items():
        assert again.arrays()[name].tolist() == array.tolist(), name
    add(again, rows)
    agree(again.total().measures(), rows + rows)
    agree(again.recent().measures(), rows[-5:])


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
