"""The watch over errors against the oracle's window, and what it tells of changes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.trees.drift import DriftWatch, Rise
from tests.oracles.naive_adwin import Window
from tests.support.examples import budget


def watched(watch: DriftWatch, wrong: list[int]) -> list[Rise]:
    """Add errors as one batch."""
    return watch.add(np.array(wrong, np.bool_))


def naive_rises(wrong: list[int], delta: float) -> list[Rise]:
    """Return the rises from the inputs themselves."""
    twin, rises = Window(delta), []
    for at, one in enumerate(wrong):
        before = [*twin.inputs, one]
        if twin.add(one):
            forgotten = before[: len(before) - len(twin.inputs)]
            rises.append(
                Rise(
                    at,
                    sum(forgotten) / len(forgotten),
                    sum(twin.inputs) / len(twin.inputs),
                    len(twin.inputs),
                )
            )
    return rises


def errors(seed: int, *parts: tuple[int, float]) -> list[int]:
    """Return errors: for each part, how many predictions, and how likely one is wrong."""
    rng = random.Random(seed)
    return [int(rng.random() < share) for count, share in parts for _ in range(count)]


@settings(max_examples=budget(100), deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.tuples(st.integers(1, 120), st.lists(st.integers(0, 1), min_size=1, max_size=4)), max_size=8),
    st.sampled_from([0.002, 0.5, 1e-9]),
    st.integers(1, 90),
)
def test_rises_are_those_of_the_oracle(runs: list[tuple[int, list[int]]], delta: float, step: int) -> None:
    """Where, from what, to what and over how many is the oracle's, in batches and restored between them."""
    wrong = [one for times, pattern in runs for one in pattern * times]
    watch, found = DriftWatch(delta), list[Rise]()
    for start in range(0, len(wrong), step):
        rises = watched(watch, wrong[start : start + step])
        found += [rise._replace(at=rise.at + start) for rise in rises]
        again = DriftWatch(delta)
        again.restore({name: array.copy() for name, array in watch.arrays().items()})
        watch = again
        watch.check()
    assert found == naive_rises(wrong, delta)
    assert watch.rises == len(found)
    assert watch.since == (len(wrong) - 1 - found[-1].at if found else None)


@pytest.mark.parametrize("seed", range(4))
def test_a_rise_is_told_and_a_fall_is_not(seed: int) -> None:
    """An error that goes from 0.1 to 0.4 is told within 200 predictions, more as more is seen; a fall is not."""
    watch = DriftWatch()
    assert not watched(watch, errors(seed, (1_000, 0.4), (1_500, 0.1)))
    rises = watched(watch, errors(seed + 10, (500, 0.4)))
    assert rises[0].at < 200
    assert all(0.0 < rise.before < rise.after < 0.6 for rise in rises)
    assert rises[0].before < 0.12
    assert rises[-1].after > 0.25
    assert watch.since == 499 - rises[-1].at


def test_a_smaller_delta_waits_longer() -> None:
    """Whoever wants fewer false alarms learns of a rise later."""
    wrong = errors(1, (2_000, 0.1), (1_000, 0.25))
    at = [watched(DriftWatch(delta), wrong)[0].at for delta in (0.1, 0.002, 1e-9)]
    assert 2_000 < at[0] < at[1] < at[2]


def test_a_checkpoint_without_it_is_taken_over() -> None:
    """An evaluation of an earlier version has no window over errors: it begins at the restore."""
    watch, fresh = DriftWatch(), DriftWatch()
    watched(watch, errors(1, (500, 0.0), (500, 0.9)))
    watch.restore({})
    for each in (watch, fresh):
        watched(each, errors(2, (100, 0.5)))
        each.check()
    assert {name: array.tolist() for name, array in watch.arrays().items()} == {
        name: array.tolist() for name, array in fresh.arrays().items()
    }


def test_a_wrong_state_is_noticed() -> None:
    """`check` finds more rises than examples, and a window with more than there was."""
    for at, value, message in ((0, 3, "more is in the window"), (1, 2, None), (2, 7, None)):
        watch = DriftWatch()
        watched(watch, [0, 1] * 10)
        arrays = {name: array.copy() for name, array in watch.arrays().items()}
        arrays["drift.counts"][at] = value
        watch.restore(arrays)
        with pytest.raises(AssertionError, match=message):
            watch.check()


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_a_delta_that_is_none_is_refused(delta: float) -> None:
    """It is a probability."""
    with pytest.raises(ValueError, match="expected a delta between 0 and 1, got"):
        DriftWatch(delta)
