"""The range of labels that are numbers, in steps of a unit: labels as whole numbers, and what their sums tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.given import number

_MOST_STEPS = 1 << 40  # of units in the range of labels
LARGEST_BOUND = 1e140


class Labels(NamedTuple):
    """What is known of the labels of some examples."""

    weight: int
    mean: float  # nan: there are none


class Scale:
    """A range of labels, cut into steps of a unit.

    Parameters
    ----------
    low, high : float
        The range.
    unit : float
        Labels are told apart to this unit; at most 2^40 of them are in the range.

    Raises
    ------
    ValueError
        With what was expected.
    """

    def __init__(self, low: float, high: float, unit: float) -> None:
        self.low, self.high = (number("a bound of labels", each, LARGEST_BOUND) for each in (low, high))
        self.unit = number("a unit of labels", unit, LARGEST_BOUND)
        if not (self.unit > 0.0 and 0.5 < (self.high - self.low) / self.unit <= _MOST_STEPS):
            raise ValueError(f"expected a range of 1 to 2^40 units, got {unit!r} in {low!r} to {high!r}")
        self._steps = round((self.high - self.low) / self.unit)
        # Both classes get one more, so that no weight is 0: this moves and shrinks labels, all alike.
        self.whole = self._steps + 2

    def holds(self, label: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return which labels are in the range."""
        given = np.asarray(label)
        return (given >= self.low) & (given <= self.high)

    def steps(self, label: Float64s) -> Int64s:
        """Return the nearest step of each label, 0 of one that is not in the range."""
        within = np.where(self.holds(label), label, self.low)
        steps: Int64s = np.rint((within - self.low) / self.unit).astype(np.int64)
        return np.minimum(steps, self._steps)

    def between(self, steps: Float64s) -> Float64s:
        """Return the labels that means of steps stand for."""
        return self.low + self.unit * steps

    def label(self, steps: int) -> float:
        """Return the label that a step stands for."""
        return float(Fraction(self.low) + Fraction(self.unit) * steps)

    def labels(self, weights: Sequence[int]) -> Labels:
        """Return what the weights of both classes tell of labels.

        Deletes by value of what never was inserted may leave sums that no labels have: these are taken for the
        nearest mean that labels can have.
        """
        n, total = self._sums(weights)
        if not n:
            return Labels(0, math.nan)
        total = min(max(total, 0), n * self._steps)
        return Labels(n, float(Fraction(self.low) + Fraction(self.unit) * Fraction(total, n)))

    def reduction(self, totals: Sequence[int], present: Sequence[int]) -> float:
        """Return by how much a split reduces the variance, as a fraction rounded once."""
        n, total = self._sums(totals)
        m, part = self._sums(present)
        if not 0 < m < n:
            return 0.0
        difference, unit = n * part - m * total, Fraction(self.unit)
        return float(Fraction(difference * difference, n * n * m * (n - m)) * unit * unit)

    def _sums(self, weights: Sequence[int]) -> tuple[int, int]:
        """Return the weight of examples and the sum of their labels, in units above the least."""
        n = sum(weights) // self.whole
        return n, weights[1] - n
