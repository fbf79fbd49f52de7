"""ADWIN against the oracle in naive_adwin.py, and what it promises of changes."""

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core.arrays import Int8s, Int64s, int64
from algorithms.core.jit import jit
from algorithms.trees.policies import adwin
from algorithms.trees.policies.adwin import DELTA, EVERY, LEVELS, ONES, WIDTH, M, Windows
from tests.oracles.naive_adwin import Window
from tests.support.examples import budget


@jit
def _feed(windows: Windows, at: int, inputs: Int8s, risen: Int8s, width: Int64s) -> None:
    for number in range(inputs.size):
        risen[number] = adwin.add(windows, at, int64(inputs[number]), DELTA)
        width[number] = windows.sums[at, WIDTH]


def feed(windows: Windows, at: int, inputs: Sequence[int] | npt.NDArray[np.bool_]) -> tuple[Int8s, Int64s]:
    """Add inputs to a window; return after which its mean had risen, and how wide it was after each."""
    risen, width = np.zeros(len(inputs), np.int8), np.zeros(len(inputs), np.int64)
    _feed(windows, at, np.asarray(inputs, np.int8), risen, width)
    return risen, width


def draws(seed: int, *parts: tuple[int, float]) -> list[int]:
    """Return zeros and ones: for each part, how many, and how likely a one is."""
    rng = random.Random(seed)
    return [int(rng.random() < share) for count, share in parts for _ in range(count)]


def sizes_of(windows: Windows, at: int) -> list[int]:
    """Return the sizes of a window's buckets, the oldest first."""
    return [1 << level for level in reversed(range(LEVELS)) for _ in range(windows.buckets[at, level])]


def agree(inputs: Sequence[int], step: int) -> int:
    """Compare a window with the oracle after every so many inputs; return how often it was cut."""
    windows, twin = adwin.make(3), Window()
    cuts = 0
    for start in range(0, len(inputs), step):
        part = inputs[start : start + step]
        before = len(twin.inputs)
        expected = [int(twin.add(one)) for one in part]
        assert feed(windows, 1, part)[0].tolist() == expected
        assert windows.sums[1, [WIDTH, ONES]].tolist() == [len(twin.inputs), sum(twin.inputs)]
        assert sizes_of(windows, 1) == twin.sizes
        cuts += len(twin.inputs) < before + len(part)
        adwin.check(windows, [0, 1, 2])
    assert not windows.sums[[0, 2]].any()
    return cuts


@pytest.mark.parametrize("seed", range(6))
def test_windows_agree_with_the_oracle(seed: int) -> None:
    """What is kept, in which buckets, and which changes are told is the oracle's, over rises and falls."""
    rng = random.Random(seed)
    parts = [(rng.randrange(20, budget(700) + 30), rng.choice([0.0, 0.05, 0.3, 0.5, 0.95, 1.0])) for _ in range(6)]
    assert agree(draws(seed, *parts), rng.choice([1, 13, 64])) > 0 or budget(10) < 10


@settings(max_examples=budget(100), deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(st.integers(1, 120), st.lists(st.integers(0, 1), min_size=1, max_size=4)), max_size=8))
def test_any_inputs_agree_with_the_oracle(runs: list[tuple[int, list[int]]]) -> None:
    """Whatever patterns are repeated, one after the other, window and oracle agree."""
    agree([one for times, pattern in runs for one in pattern * times], 16)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.2, 0.5, 1.0])
def test_without_a_change_hardly_any_is_found(share: float) -> None:
    """Of all looks at a window whose inputs keep their mean, fewer than delta find a change."""
    looks, cuts = 0, 0
    for seed in range(20):
        width = feed(adwin.make(1), 0, draws(seed, (budget(10_000), share)))[1]
        looks += len(width) // EVERY
        cuts += int((np.diff(width) < 1).sum())
    assert cuts <= DELTA * looks
    if share in (0.0, 1.0):
        assert cuts == 0


@pytest.mark.parametrize("seed", range(5))
def test_an_abrupt_change_is_found_soon(seed: int) -> None:
    """A mean that goes from 0.1 to 0.5 is found within 100 inputs; of the old ones few are kept."""
    windows = adwin.make(1)
    assert not feed(windows, 0, draws(seed, (1000, 0.1)))[0].any()
    risen, width = feed(windows, 0, draws(seed + 100, (320, 0.5)))
    assert 0 < np.flatnonzero(risen)[0] <= 100
    assert width[-1] < 500
    assert 0.4 < adwin.mean(windows, 0) < 0.6


def test_a_fall_is_forgotten_and_not_told() -> None:
    """Where the mean falls the window gets shorter, but no rise is told."""
    windows = adwin.make(1)
    risen, width = feed(windows, 0, draws(1, (1000, 0.5), (500, 0.05)))
    assert not risen.any()
    assert width[-1] < 700


def test_how_inputs_are_dealt_out_changes_nothing() -> None:
    """One input at a time or all at once, beside another window or alone: the same windows to the byte."""
    inputs = draws(3, (budget(900), 0.2), (budget(300), 0.7), (budget(500), 0.1))
    seen = []
    for step in (1, 7, 1000):
        windows = adwin.make(2)
        told: list[int] = []
        for start in range(0, len(inputs), step):
            told += feed(windows, 0, inputs[start : start + step])[0].tolist()
            feed(windows, 1, inputs[start : start + step : 2])
            windows = adwin.grown(windows, len(windows.sums) + 1)
        seen.append((told, *(array[0].tolist() for array in windows)))
    assert seen[0] == seen[1] == seen[2]


def test_a_full_window_forgets_its_oldest_bucket() -> None:
    """A window of more than five million inputs grows no further, and counts on rightly."""
    windows = adwin.make(1)
    windows.buckets[0] = M
    windows.ones[0] = np.repeat(1 << np.arange(LEVELS), M)  # nothing but ones
    windows.sums[0, :2] = M * ((1 << LEVELS) - 1)
    adwin.check(windows, [0])
    feed(windows, 0, [1])
    assert windows.sums[0, :2].tolist() == [M * ((1 << LEVELS) - 1) + 1 - (1 << LEVELS)] * 2
    feed(windows, 0, [1] * 100)
    adwin.check(windows, [0])
    assert adwin.mean(windows, 0) == 1.0


def test_a_window_can_be_begun_anew() -> None:
    """A window that is emptied knows nothing of what it held."""
    windows, fresh = adwin.make(1), adwin.make(1)
    feed(windows, 0, draws(1, (1000, 0.5)))
    adwin.begin(windows, 0)
    for each in (windows, fresh):
        feed(each, 0, draws(2, (100, 0.3)))
        adwin.check(each, [0])
    assert windows.sums.tolist() == fresh.sums.tolist()
    assert sizes_of(windows, 0) == sizes_of(fresh, 0)
