"""Prequential evaluation: every label is predicted first and learned afterwards.

Sums grow one example after the other, so that batches of any size leave the same bits; those of a window are made
anew from its examples whenever they are asked for, so nothing of what left it stays in a last digit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core import wide
from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import jit
from algorithms.core.means import moved
from algorithms.core.stored import Arrays, flattened, rebuilt, stored
from algorithms.core.window import Window
from algorithms.regression.moments import Moments, merged

# Columns of the window's examples.
_TRUTH, _PREDICTED = 0, 1

# Columns of `Counters.sums`.
_FIRST, _MEAN, _SQUARES = 0, 1, 2  # the first true label; of all of them less the first, see moments.py
_ABSOLUTE, _SQUARED = 3, 4  # weight times error, and times its square
_SUMS = 5

# Rows of `Counters.weight`, of the low words.
_EVALUATED, _ABSTAINED = 0, 1


class Measures(NamedTuple):
    """How good predictions were, weighted; nan where there were none to evaluate."""

    weight: float  # of the examples evaluated
    abstained: float  # of those for which nothing was known
    mae: float  # mean absolute error
    rmse: float  # root of the mean squared error
    r2: float  # 1 less the squared errors over those of the mean of the labels evaluated


class Evaluated(NamedTuple):
    """Predictions that were evaluated, as sums: those of several pools can be added."""

    weight: Int64s  # int64[4], evaluated and abstained, in units, wide numbers (see wide.py)
    sums: Float64s  # float64[5]

    def plus(self, other: Evaluated) -> Evaluated:
        """Return both together."""
        first = self.sums[_FIRST] if wide.numbers(self.weight)[_EVALUATED] else other.sums[_FIRST]
        mine, others = (
            Moments(
                float(wide.numbers(each.weight)[_EVALUATED]),  # type: ignore[arg-type]  # as a quotient it is one anyhow
                float(each.sums[_FIRST] - first + each.sums[_MEAN]),
                float(each.sums[_SQUARES]),
            )
            for each in (self, other)
        )
        labels = merged(mine, others)
        errors = self.sums[_ABSOLUTE:] + other.sums[_ABSOLUTE:]
        return Evaluated(
            wide.plus(self.weight, other.weight), np.array([first, labels.mean, labels.squares, *errors])
        )

    def measures(self) -> Measures:
        """Return how good they were."""
        n, abstained = (wide.numbers(self.weight).astype(np.float64) * PER_UNIT).tolist()
        if n == 0.0:
            return Measures(0.0, abstained, math.nan, math.nan, math.nan)
        squares, absolute, squared = self.sums[_SQUARES:].tolist()
        r2 = 1.0 - squared / squares if squares > 0.0 else math.nan
        return Measures(n, abstained, absolute / n, math.sqrt(squared / n), r2)


@stored("weight", "sums")
class Counters(NamedTuple):
    """What is counted of predictions; weights in units of 2^-20."""

    weight: Int64s  # int64[4], wide numbers: of the examples evaluated, and of those without a prediction
    sums: Float64s  # float64[_SUMS]


class Prequential:
    """Sums over predictions, over all examples and over the last so many.

    Parameters
    ----------
    window : int
        How many examples the window holds, at least 1.
    """

    def __init__(self, window: int) -> None:
        if window < 1:
            raise ValueError(f"expected a window of at least 1, got {window}")
        self._counters = Counters(weight=wide.zeros(2), sums=np.zeros(_SUMS))
        self._window = Window(window, window=(np.float64, 2), weights=(np.int64, None))

    @property
    def examples(self) -> int:
        """How many examples were evaluated in all, or abstained."""
        return self._window.examples

    def add(self, truth: Float64s, predicted: Float64s, weight: Int64s) -> None:
        """Count examples, in order.

        Parameters
        ----------
        truth, predicted : float64[n]
            The true label, and the predicted one or nan.
        weight : int64[n]
            In units of 2^-20, above 0 and below 2^62.
        """
        _add(*self._counters, truth, predicted, weight)
        self._window.push(np.stack([truth, predicted], axis=1), weight)

    def total(self) -> Evaluated:
        """Return all examples."""
        return Evaluated(self._counters.weight, self._counters.sums)

    def recent(self) -> Evaluated:
        """Return those of the window. O(window)."""
        last, weights = self._window.columns()
        return evaluated(last[:, _TRUTH].copy(), last[:, _PREDICTED].copy(), weights)

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied)."""
        return flattened(self._counters) | self._window.arrays()

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over the state that `arrays` of an evaluation of the same size returned (not copied)."""
        counters = rebuilt(self._counters, arrays)
        self._counters = counters._replace(weight=wide.restored(counters.weight, 2))
        self._window.restore(arrays)


def evaluated(truth: Float64s, predicted: Float64s, weight: Int64s) -> Evaluated:
    """Return some examples evaluated by themselves; see `Prequential.add`."""
    sums = Evaluated(wide.zeros(2), np.zeros(_SUMS))
    _add(*sums, truth, predicted, weight)
    return sums


@jit
def _add(total: Int64s, sums: Float64s, truth: Float64s, predicted: Float64s, weight: Int64s) -> None:
    """Add examples to sums."""
    for at in range(truth.size):
        which = _ABSTAINED if np.isnan(predicted[at]) else _EVALUATED
        if which == _EVALUATED and total[_EVALUATED] == 0 and total[_EVALUATED + 2] == 0:
            sums[_FIRST] = truth[at]
        word = total[which] + weight[at]
        total[which] = wide.low_of(word)
        total[which + 2] += wide.carry_of(word)
        if which == _ABSTAINED:
            continue
        label = truth[at] - sums[_FIRST]
        before = label - sums[_MEAN]
        share = weight[at] / (total[_EVALUATED] + total[_EVALUATED + 2] * wide.BASE)
        sums[_MEAN] = moved(sums[_MEAN], label, share)
        sums[_SQUARES] += weight[at] * PER_UNIT * (before * (label - sums[_MEAN]))
        error = abs(truth[at] - predicted[at])
        sums[_ABSOLUTE] += weight[at] * PER_UNIT * error
        sums[_SQUARED] += weight[at] * PER_UNIT * (error * error)
