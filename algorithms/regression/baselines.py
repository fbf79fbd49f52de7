"""Predictions beside what costs nothing: always to say the mean of the key's labels so far, or its last one.

Both say nothing of a key's first example, as a tree does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int32s, Int64s, extended, int64
from algorithms.core.jit import jit
from algorithms.core.means import moved
from algorithms.core.stored import Arrays, flattened, rebuilt, stored
from algorithms.regression.evaluation import Evaluated, Prequential, evaluated

# Columns of `Labels.numbers`.
_FIRST, _MEAN, _LAST = 0, 1, 2  # the mean is less the first label, see moments.py
_NUMBERS = 3

# Columns of what `guess` finds.
_OF_MEAN, _OF_LAST = 0, 1

_SIDES = ("model", "mean", "no_change")  # as the fields of `Compared`


class Measures(NamedTuple):
    """How good predictions were, and those of the baselines, weighted; nan where there were none to evaluate."""

    weight: float  # of the examples evaluated
    mae: float  # mean absolute error
    rmse: float  # root of the mean squared error
    r2: float  # 1 less the squared errors over those of the mean of the labels evaluated
    mean_mae: float  # the same of always saying the mean of the key's labels so far
    mean_rmse: float
    mean_r2: float
    no_change_mae: float  # the same of always saying the key's last label
    no_change_rmse: float
    no_change_r2: float


class Guesses(NamedTuple):
    """What the baselines say of examples, nan: nothing."""

    mean: Float64s
    last: Float64s


class Compared(NamedTuple):
    """Predictions that were evaluated, and the baselines', as sums: those of several pools can be added."""

    model: Evaluated
    mean: Evaluated
    no_change: Evaluated

    def plus(self, other: Compared) -> Compared:
        """Return both together."""
        return Compared(*(own.plus(theirs) for own, theirs in zip(self, other, strict=True)))

    def copied(self) -> Compared:
        """Return the same, which no later example changes."""
        return Compared(*(Evaluated(each.weight.copy(), each.sums.copy()) for each in self))

    @classmethod
    def of(cls, truth: Float64s, predicted: Float64s, weight: Int64s, guesses: Guesses) -> Compared:
        """Return some examples evaluated by themselves; see `Comparison.add`."""
        return cls(*(evaluated(truth, said, weight) for said in (predicted, *guesses)))

    def measures(self) -> Measures:
        """Return how good they were."""
        model, mean, last = (each.measures() for each in self)
        return Measures(model.weight, *model[2:], mean.mae, mean.rmse, mean.r2, last.mae, last.rmse, last.r2)


@stored("weight", "numbers")
class Labels(NamedTuple):
    """What is remembered of the labels of each key."""

    weight: Int64s  # int64[keys], in units; 0: nothing
    numbers: Float64s  # float64[keys, _NUMBERS]


class Comparison:
    """Sums over predictions and over those of the baselines, over all examples and over the last so many.

    Parameters
    ----------
    window : int
        How many examples the window holds, at least 1.
    """

    def __init__(self, window: int) -> None:
        self._labels = Labels(np.zeros(1, np.int64), np.zeros((1, _NUMBERS)))
        self._sides = {side: Prequential(window) for side in _SIDES}

    @property
    def examples(self) -> int:
        """How many examples were evaluated in all, or had no prediction."""
        return self._sides["model"].examples

    def guess(self, key: Int32s, truth: Float64s, weight: Int64s) -> Guesses:
        """Return what the baselines say of examples, which they learn one after the other.

        Parameters
        ----------
        key : int32[n]
            Small numbers of the models that the examples belong to.
        truth : float64[n]
            The label; nan: the key is dropped here, and what its labels were is forgotten.
        weight : int64[n]
            In units of 2^-20, above 0; of a key below 2^62 in all.
        """
        keys = int(key.max(initial=-1)) + 1
        if keys > len(self._labels.weight):
            more = max(keys, 2 * len(self._labels.weight))
            known, numbers = self._labels
            self._labels = Labels(extended(known, more), extended(numbers, more))
        found = np.full((len(key), 2), np.nan)
        _guess(*self._labels, key, truth, weight, found)
        return Guesses(found[:, _OF_MEAN].copy(), found[:, _OF_LAST].copy())

    def add(self, truth: Float64s, predicted: Float64s, weight: Int64s, guesses: Guesses) -> None:
        """Count examples, in order; see `Prequential.add`."""
        for side, said in zip(self._sides.values(), (predicted, *guesses), strict=True):
            side.add(truth, said, weight)

    def total(self) -> Compared:
        """Return all examples."""
        return Compared(*(side.total() for side in self._sides.values()))

    def recent(self) -> Compared:
        """Return those of the window. O(window)."""
        return Compared(*(side.recent() for side in self._sides.values()))

    def keys(self) -> Int32s:
        """Return the keys whose labels are known."""
        return np.flatnonzero(self._labels.weight).astype(np.int32)

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied)."""
        sides = {
            f"{side}.{name}": array
            for side, counts in self._sides.items()
            for name, array in counts.arrays().items()
        }
        return flattened(self._labels, "labels") | sides

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over the state that `arrays` of a comparison of the same size returned (not copied)."""
        self._labels = rebuilt(self._labels, arrays, "labels")
        for side, counts in self._sides.items():
            start = f"{side}."
            counts.restore(
                {name.removeprefix(start): each for name, each in arrays.items() if name.startswith(start)}
            )

    def check(self) -> None:
        """Raise AssertionError unless every invariant holds. For tests."""
        assert (self._labels.weight >= 0).all()
        assert np.isfinite(self._labels.numbers).all()
        assert not self._labels.numbers[self._labels.weight == 0].any(), "labels of a key that was dropped"
        assert len({side.examples for side in self._sides.values()}) == 1


@jit
def _guess(
    known: Int64s, numbers: Float64s, key: Int32s, truth: Float64s, weight: Int64s, found: Float64s
) -> None:
    """Say what the baselines say of each example, then let them learn it."""
    for at in range(key.size):
        row = int64(key[at])
        label = truth[at]
        if np.isnan(label):
            known[row] = 0
            for column in range(numbers.shape[1]):
                numbers[row, column] = 0.0
            continue
        if known[row] > 0:
            found[at, _OF_MEAN] = numbers[row, _FIRST] + numbers[row, _MEAN]
            found[at, _OF_LAST] = numbers[row, _LAST]
        else:
            numbers[row, _FIRST] = label
        known[row] += weight[at]
        share = weight[at] / known[row]
        numbers[row, _MEAN] = moved(numbers[row, _MEAN], label - numbers[row, _FIRST], share)
        numbers[row, _LAST] = label
