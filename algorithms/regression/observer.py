"""`Observer`: one numeric feature and the labels that come with it, and where to split it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.fixed_point import MAX_TOTAL, PER_UNIT, UNIT
from algorithms.core.stored import flattened, rebuilt
from algorithms.regression import elements, observers
from algorithms.regression.elements import USED
from algorithms.regression.moments import Moments, nothing, variance
from algorithms.trees.gaussians import LARGEST_VALUE


class Side(NamedTuple):
    """The labels on one side of a split."""

    weight: float  # in examples
    mean: float
    variance: float  # s^2, n - 1 below the root


class SplitPoint(NamedTuple):
    """Where a feature is best split."""

    threshold: float  # what is at most this goes low
    merit: float  # by how much the split reduces the variance of labels
    low: Side
    high: Side


class Observer:
    """One numeric feature with a real-valued target.

    Parameters
    ----------
    name : str
        A name in `OBSERVERS`.
    options
        Its settings: `radius`, or `fraction`, of ``qo``; `decimals` of ``tebst``; `most` elements of all.

    Raises
    ------
    ValueError
        With what was expected.
    """

    def __init__(self, name: str = "qo", **options: Any) -> None:
        self._kind = observers.made(name, options)
        self._elements = elements.make(16, 1)
        observers.begin(self._kind, self._elements, 0)
        self._counts = np.zeros(2, np.int64)  # weight in units, examples
        self._moments = np.zeros(3)  # mean and M_2 of all labels less the first; the first

    def observe(self, x: npt.ArrayLike, y: npt.ArrayLike, weight: npt.ArrayLike = 1.0) -> None:
        """Count examples, in order: a value, a label and a weight each.

        Weights are rounded to multiples of 2^-20; an example of weight 0 is left out. O(1) each, at most 64 steps
        to an element and 192 for a new one.

        Parameters
        ----------
        x, y : float64[n] or float
            Values and labels, finite, up to 1e140 in size.
        weight : float64[n] or float
            Finite, at least 0.

        Raises
        ------
        ValueError
            With what was expected; nothing is counted then.
        """
        values, labels = _numbers(x, "values"), _numbers(y, "labels")
        if len(values) != len(labels):
            raise ValueError(f"expected a label for each value, got {len(labels)} for {len(values)}")
        units = self._units(weight, len(values))
        kept = units > 0
        values, labels, units = values[kept], labels[kept], units[kept]
        at = 0
        while at < len(values):
            if elements.room(self._elements) == 0:
                self._elements = elements.grown(self._elements, 2 * len(self._elements.key))
            at = observers.observe_all(
                self._kind, self._elements, 0, values, labels, units, self._counts, self._moments, at
            )

    def _units(self, weight: npt.ArrayLike, n: int) -> Int64s:
        """Return weights in units of 2^-20."""
        given = np.asarray(weight, np.float64)
        if not (given >= 0.0).all() or not np.isfinite(given).all():
            raise ValueError(f"expected finite weights of at least 0, got {weight!r}")
        if given.ndim > 0 and given.shape != (n,):
            raise ValueError(f"expected a weight for each of {n} values, or one for all, got {given.shape}")
        scaled = np.rint(np.minimum(np.broadcast_to(given, n), MAX_TOTAL * PER_UNIT) * UNIT)
        if float(scaled.sum()) >= MAX_TOTAL - int(self._counts[0]):
            raise ValueError(f"expected a total weight below {MAX_TOTAL * PER_UNIT:g}, got more by {weight!r}")
        return scaled.astype(np.int64)

    def best_split(self) -> SplitPoint | None:
        """Return the best split, of equal ones that with the lowest threshold; None where no two elements differ.

        A split may be worse than none: then its merit is negative. No state is changed. O(elements).
        """
        one = self._one()
        cut = observers.best_cut(self._kind, self._elements, 0, self._whole(), nothing(), one)
        if not np.isfinite(cut.merit):
            return None
        return SplitPoint(float(cut.threshold), float(cut.merit), self._side(cut.low), self._side(cut.high))

    def total(self) -> Side:
        """Return the moments of all labels."""
        return self._side(self._whole())

    def _whole(self) -> Moments:
        return Moments(int(self._counts[0]), float(self._moments[0]), float(self._moments[1]))

    def _side(self, seen: Moments) -> Side:
        mean = float(self._moments[2]) + float(seen.mean)
        return Side(float(seen.weight * PER_UNIT), mean, float(variance(seen, self._one())))

    def _one(self) -> float:
        return float(self._counts[0]) * PER_UNIT / max(int(self._counts[1]), 1)

    @property
    def size(self) -> int:
        """How many elements are kept: slots, or different values."""
        return int(self._elements.used[USED])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the state, room to grow included."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays (not copied)."""
        return {"counts": self._counts, "moments": self._moments, **flattened(self._elements, "elements")}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of an observer with the same settings returned (not copied)."""
        self._counts, self._moments = arrays["counts"], arrays["moments"]
        self._elements = rebuilt(self._elements, arrays, "elements")
        return self

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. O(everything)."""
        own = observers.check(self._kind, self._elements, 0)
        elements.check(self._elements, own)
        assert self._elements.weight[own].sum() == self._counts[0]


def _numbers(given: npt.ArrayLike, what: str) -> Float64s:
    """Return numbers as an array; -0.0 is 0.0."""
    found = np.atleast_1d(np.asarray(given, np.float64))
    if found.ndim != 1:
        raise ValueError(f"expected {what} in one dimension, got the shape {found.shape}")
    wrong = np.flatnonzero(~(np.abs(found) <= LARGEST_VALUE))
    if len(wrong):
        raise ValueError(
            f"expected finite {what} up to {LARGEST_VALUE:g} in size, got {found[wrong[0]]} at {wrong[0]}; "
            "leave such examples out"
        )
    return found + 0.0
