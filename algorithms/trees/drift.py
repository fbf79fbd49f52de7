"""Drift: when the error of predictions has risen, as ADWIN (policies/adwin.py) finds it over right and wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int64s, int64
from algorithms.core.jit import jit
from algorithms.core.stored import Arrays, flattened, rebuilt, stored
from algorithms.trees.policies import adwin
from algorithms.trees.policies.adwin import DELTA, EVERY, ONES, WIDTH, Windows

_NAME = "drift"  # of the arrays in checkpoints, before their own

# Columns of `Watched.counts`.
_EXAMPLES, _RISES, _LAST = range(3)

# Columns of what the kernel finds.
_AT, _KEPT, _KEPT_WRONG, _FORGOTTEN, _FORGOTTEN_WRONG = range(5)


class Rise(NamedTuple):
    """The error of predictions has risen."""

    at: int  # the index, among those just added, of the example that shows it
    before: float  # error over the examples that are forgotten, for they differ
    after: float  # error over those that are kept
    width: int  # how many are kept


@stored("window", "counts")
class Watched(NamedTuple):
    """The window over errors, and what was found."""

    window: Windows  # one
    counts: Int64s  # int64[3], examples ever, how often the error has risen, examples ever when it last had


class DriftWatch:
    """Watches right and wrong predictions for a rise of the error. Its memory is bounded: some 600 bytes.

    Parameters
    ----------
    delta : float
        How likely a look, of which there is one every 32 examples, finds a change where there is none.
    """

    def __init__(self, delta: float = DELTA) -> None:
        if not 0.0 < delta < 1.0:
            raise ValueError(f"expected a delta between 0 and 1, got {delta!r}")
        self._delta = float(delta)
        self._state = _empty()

    @property
    def rises(self) -> int:
        """How often the error has risen."""
        return int(self._state.counts[_RISES])

    @property
    def since(self) -> int | None:
        """How many examples there were since it last had, None where it never has."""
        examples, rises, last = self._state.counts.tolist()
        return examples - last if rises else None

    def add(self, wrong: npt.NDArray[np.bool_]) -> list[Rise]:
        """Add predictions, in order; return where the error has risen. O(1) each, and looks at 100 buckets."""
        counts = self._state.counts
        found = np.zeros((len(wrong) // EVERY + 1, 5), np.int64)
        rises = [
            Rise(row[_AT], row[_FORGOTTEN_WRONG] / row[_FORGOTTEN], row[_KEPT_WRONG] / row[_KEPT], row[_KEPT])
            for row in found[: _add(self._state.window, wrong, self._delta, found)].tolist()
        ]
        if rises:
            counts[_RISES] += len(rises)
            counts[_LAST] = counts[_EXAMPLES] + rises[-1].at + 1
        counts[_EXAMPLES] += len(wrong)
        return rises

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied)."""
        return flattened(self._state, _NAME)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over the state that `arrays` returned (not copied); what an earlier version lacks begins here."""
        self._state = rebuilt(self._state, flattened(_empty(), _NAME) | dict(arrays), _NAME)

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds."""
        examples, rises, last = self._state.counts.tolist()
        adwin.check(self._state.window, [0])
        assert self._state.window.sums[0, WIDTH] <= examples, "more is in the window than there was"
        assert 0 <= rises <= last <= examples
        assert (rises == 0) == (last == 0)


def _empty() -> Watched:
    return Watched(adwin.make(1), np.zeros(3, np.int64))


@jit
def _add(window: Windows, wrong: npt.NDArray[np.bool_], delta: float, found: Int64s) -> int:
    """Add predictions to the window; write where the error has risen, and return how often."""
    rises = int64(0)
    for at in range(wrong.size):
        one = int64(wrong[at])
        held = window.sums[0, WIDTH] + 1
        held_wrong = window.sums[0, ONES] + one
        if adwin.add(window, 0, one, delta):
            found[rises, _AT] = at
            found[rises, _KEPT] = window.sums[0, WIDTH]
            found[rises, _KEPT_WRONG] = window.sums[0, ONES]
            found[rises, _FORGOTTEN] = held - window.sums[0, WIDTH]
            found[rises, _FORGOTTEN_WRONG] = held_wrong - window.sums[0, ONES]
            rises += 1
    return rises
