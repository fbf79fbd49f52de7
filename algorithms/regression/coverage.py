"""How many labels were within their interval, and how wide these were: over all, and over the last ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core import wide
from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import ahead, jit
from algorithms.core.stored import Arrays
from algorithms.core.window import Window

# Rows of `Covered.weight`, of the low words.
_JUDGED, _WITHIN = 0, 1

# Columns of the window's examples.
_RESIDUAL, _MARGIN = 0, 1


class CoverageMeasures(NamedTuple):
    """How good intervals were, weighted; nan where there were none."""

    coverage: float  # the share of labels that were within
    width: float  # mean width


class Covered(NamedTuple):
    """Intervals that were judged, as sums: those of several pools can be added."""

    weight: Int64s  # int64[4], of examples with an interval and of those within, in units, wide numbers
    width: Float64s  # float64[1], weight times width

    def plus(self, other: Covered) -> Covered:
        """Return both together."""
        return Covered(wide.plus(self.weight, other.weight), self.width + other.width)

    def copied(self) -> Covered:
        """Return the same, which no later example changes."""
        return Covered(self.weight.copy(), self.width.copy())

    def measures(self) -> CoverageMeasures:
        """Return how good they were."""
        judged, within = (wide.numbers(self.weight).astype(np.float64) * PER_UNIT).tolist()
        if judged == 0.0:
            return CoverageMeasures(math.nan, math.nan)
        return CoverageMeasures(within / judged, float(self.width[0]) / judged)


class Coverage:
    """Sums over intervals, over all examples and over the last so many.

    Parameters
    ----------
    window : int
        How many examples the window holds, at least 1.
    """

    def __init__(self, window: int) -> None:
        self._total = nothing()
        self._window = Window(window, window=(np.float64, 2), weights=(np.int64, None))

    def add(self, residual: Float64s, margin: Float64s, weight: Int64s) -> None:
        """Judge intervals, in order.

        Parameters
        ----------
        residual, margin : float64[n]
            How far the prediction was off, and half the width of its interval; nan: there was none.
        weight : int64[n]
            In units of 2^-20, above 0 and below 2^62.
        """
        _add(*self._total, residual, margin, weight)
        self._window.push(np.stack([residual, margin], axis=1), weight)

    def total(self) -> Covered:
        """Return all examples."""
        return self._total

    def recent(self) -> Covered:
        """Return those of the window. O(window)."""
        last, weights = self._window.columns()
        found = nothing()
        _add(*found, last[:, _RESIDUAL].copy(), last[:, _MARGIN].copy(), weights)
        return found

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied)."""
        return {"weight": self._total.weight, "width": self._total.width, **self._window.arrays()}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over the state that `arrays` of the same size returned (not copied)."""
        self._total = Covered(arrays["weight"], arrays["width"])
        self._window.restore(arrays)


def nothing() -> Covered:
    """Return no intervals."""
    return Covered(wide.zeros(2), np.zeros(1))


@ahead(lambda: (wide.zeros(2), np.zeros(1), np.zeros(0), np.zeros(0), np.zeros(0, np.int64)))
@jit
def _add(weights: Int64s, width: Float64s, residual: Float64s, margin: Float64s, weight: Int64s) -> None:
    """Add examples to sums, one after the other."""
    for at in range(residual.size):
        if np.isnan(margin[at]):
            continue
        for which in range(_WITHIN + 1):
            if which == _WITHIN and not residual[at] <= margin[at]:
                continue
            word = weights[which] + weight[at]
            weights[which] = wide.low_of(word)
            weights[which + 2] += wide.carry_of(word)
        width[0] += weight[at] * PER_UNIT * (2.0 * margin[at])
