import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core.criteria import UNIT
from algorithms.trees.evaluation import Evaluated, Guesses, Measures, Prequential
from tests.oracles.naive_evaluation import Judged, NaiveBaselines, kappa_against, share_right
from tests.support.examples import budget

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


def judge(kept: Prequential, batch: list[tuple[int, Row | None]]) -> None:
    """Evaluate examples of keys, None being a drop, as one batch."""
    key, rows = [each[0] for each in batch], [each[1] for each in batch]
    learned = [row for row in rows if row is not None]
    truth, predicted, weight, loss = (np.array([row[k] for row in learned]) for k in range(4))
    guesses = kept.guess(
        np.array(key, np.int32),
        np.array([-1 if row is None else row[0] for row in rows], np.int32),
        np.array([0 if row is None else row[2] for row in rows], np.int64),
    )
    is_learned = np.array([row is not None for row in rows], np.bool_)
    kept.add(
        truth.astype(np.int32),
        predicted.astype(np.int32),
        weight.astype(np.int64),
        loss.astype(np.float64),
        Guesses(guesses.majority[is_learned], guesses.last[is_learned]),
    )


def compare(got: Evaluated, judged: list[Judged]) -> None:
    """Raise AssertionError unless the baselines and kappas are those of the oracle."""
    measures = got.measures()
    expected = {
        "majority": share_right(judged, "majority"),
        "no_change": share_right(judged, "last"),
        "kappa_m": kappa_against(judged, "majority"),
        "kappa_temporal": kappa_against(judged, "last"),
    }
    for name, value in expected.items():
        found = getattr(measures, name)
        assert math.isnan(found) if value is None else found == pytest.approx(float(value), rel=1e-12), name


STEP = st.tuples(st.integers(0, 3), st.one_of(ROW, ROW, ROW, st.none()))


@settings(max_examples=budget(200), deadline=None, derandomize=True, database=None)
@given(st.lists(st.lists(STEP, max_size=9), min_size=1, max_size=6), st.integers(1, 12))
def test_baselines_are_those_of_the_oracle(batches: list[list[tuple[int, Row | None]]], window: int) -> None:
    """Majority, no change and both kappas are the oracle's, whatever keys come and are dropped, and restored."""
    kept, twin, judged = Prequential(3, window), NaiveBaselines(), list[Judged]()
    for batch in batches:
        for key, row in batch:
            if row is None:
                twin.drop(key)
            else:
                judged.append(twin.judge(key, row[0], None if row[1] < 0 else row[1], row[2]))
        judge(kept, batch)
        again = Prequential(3, window)
        again.restore({name: array.copy() for name, array in kept.arrays().items()})
        kept = again
        kept.check()
        compare(kept.total(), judged)
        compare(kept.recent(), judged[-window:])
    half = len(judged) // 2
    parts = [Prequential(3, window), Prequential(3, window)]
    for part, some in zip(parts, (judged[:half], judged[half:]), strict=True):
        guess = [np.array([-1 if each[k] is None else each[k] for each in some], np.int32) for k in (1, 2, 3)]
        truth, weight = np.array([each.truth for each in some], np.int32), [each.weight for each in some]
        loss = np.zeros(len(some))
        part.add(truth, guess[0], np.array(weight, np.int64), loss, Guesses(guess[1], guess[2]))
    compare(parts[0].total().plus(parts[1].total()), judged)


def test_batches_of_any_size_leave_the_same_bytes() -> None:
    """Examples of three keys, one by one, in sevens and all at once, leave the same sums and the same labels."""
    rng = np.random.default_rng(5)
    steps: list[tuple[int, Row | None]] = [
        (int(rng.integers(3)), None if rng.random() < 0.1 else (int(t), int(g), UNIT, 0.5))
        for t, g in rng.integers(0, 3, (120, 2))
    ]
    states = []
    for size in (1, 7, 120):
        kept = Prequential(3, 20)
        for start in range(0, len(steps), size):
            judge(kept, steps[start : start + size])
        arrays = kept.arrays()
        arrays["labels"] = arrays["labels"][:3]
        states.append({name: array.tobytes() for name, array in arrays.items()})
    assert states[0] == states[1] == states[2]


def test_baselines_are_wrong_about_a_first_example() -> None:
    """Nothing is said before there is a label; the first class wins a tie."""
    kept = Prequential(3, 10)
    add(kept, [(2, 2, UNIT, 0.0)])
    assert kept.total().measures()[6:] == (0.0, 0.0, 1.0, 1.0)
    guesses = kept.guess(*(np.array(column) for column in ([0, 0, 0, 1], [1, 1, 1, 0], [UNIT] * 4)))
    assert guesses.majority.tolist() == [2, 1, 1, -1]
    assert guesses.last.tolist() == [2, 1, 1, -1]


def test_a_kappa_against_a_perfect_baseline_is_not_a_number() -> None:
    """Where the baselines are always right, over the window, there is nothing to compare with."""
    kept = Prequential(2, 2)
    add(kept, [(1, 0, UNIT, 0.0)] * 4)
    measures = kept.recent().measures()
    assert (measures.majority, measures.no_change) == (1.0, 1.0)
    assert math.isnan(measures.kappa_m)
    assert math.isnan(measures.kappa_temporal)
    assert kept.total().measures().kappa_temporal == -3.0


def test_a_checkpoint_without_baselines_is_taken_over() -> None:
    """Earlier versions had none: they begin at the restore, and are compared with what comes from there on."""
    rows = [(t % 3, (t + t % 2) % 3, UNIT * (1 + t % 4), 1.0) for t in range(30)]
    kept = Prequential(3, 8)
    add(kept, rows)
    saved = {
        name: array.copy() for name, array in kept.arrays().items() if name not in ("compared", "labels", "marks")
    }
    again, fresh, twin = Prequential(3, 8), Prequential(3, 8), NaiveBaselines()
    again.restore(saved)
    again.check()
    agree(again.total().measures(), rows)
    assert all(math.isnan(each) for each in again.total().measures()[6:])
    assert all(math.isnan(each) for each in again.recent().measures()[6:])
    judged = [twin.judge(0, t, g, w) for t, g, w, _ in rows[:20]]
    for start in range(0, 20, 5):
        add(again, rows[start : start + 5])
        compare(again.total(), judged[: start + 5])
        compare(again.recent(), judged[max(0, start - 3) : start + 5])
    add(fresh, rows[:20])
    assert again.total().measures()[6:] == fresh.total().measures()[6:]
    agree(again.total().measures(), rows + rows[:20])


def test_a_wrong_state_is_noticed() -> None:
    """`check` finds more that is right than there is, and a class that does not lead."""
    kept = Prequential(2, 5)
    add(kept, [(0, 0, UNIT, 0.0), (1, 1, 3 * UNIT, 0.0)])
    kept.check()
    for name, at, value, message in (
        ("compared", (0, 1), 5 * UNIT, "more is compared"),
        ("labels", (0, 0), 1, "another class"),
        ("labels", (0, 0), 0, "without labels"),
    ):
        again = Prequential(2, 5)
        arrays = {each: array.copy() for each, array in kept.arrays().items()}
        arrays[name][at] = value
        again.restore(arrays)
        with pytest.raises(AssertionError, match=message):
            again.check()


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
