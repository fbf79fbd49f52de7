"""The best split of examples whose labels are numbers: the binary feature that reduces their variance most.

It is the index of two labels. Let t be a label as a share of its range, from 0 to 1. An example counts as one of
class 1 with weight t, and as one of class 0 with weight 1 - t. The weight of a class where a feature is present is
a sum of labels then, and half the Gini score is

    sum over the branches of n p (1 - p) = sum of labels - sum over the branches of (sum of labels)^2 / n

with p the mean of a branch. The first part is the same for all features: the least score is the greatest reduction
of the variance. Weights are whole numbers, so a delete undoes an insert to the bit, and the index finds the best
after every event as it does with classes: what it knows of score and order holds for any weights.

An index compares scores in floats. Features whose scores are equal but for rounding are compared once more, in
whole numbers: so ties are ties, and go to the lowest feature.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from algorithms.core.cadence import Emit, When
from algorithms.core.events import Events, OnDuplicate, Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.given import digest_of, features_of, id_of, key_of, number, whole
from algorithms.core.pool import Id
from algorithms.splits.pool import SplitPool
from algorithms.splits.slots import N0, N1

_MOST_STEPS = 1 << 40  # of units in the range of labels
_LARGEST_LABEL = 1e140
_ROUNDING = 2.0**-48  # of a score: what floats may err by, and more


class Labels(NamedTuple):
    """What is known of the labels of some examples."""

    weight: int
    mean: float  # nan: there are none


class NumberSplit(NamedTuple):
    """The best split of a key's examples."""

    feature: int | bytes | None  # None: none reduces the variance
    reduction: float  # of the variance, n below
    labels: Labels  # of all examples
    absent: Labels  # of those without the feature, of all where there is none
    present: Labels


class NumberSplits:
    """Any number of nodes with labels that are numbers, one for each key: the exact best split after every event.

    An event costs up to twice what it costs `SplitPool`. A query costs what it costs there; where many features
    tie, as with labels that are all the same, it is O(these).

    Labels are learned as the nearest multiple of a unit above the least one. A range that is far wider than the
    spread of labels costs digits: scores tell features apart whose reductions differ by 2^-48 of the square of the
    range, and the rest are compared in whole numbers, one by one.

    Parameters
    ----------
    low, high : float
        The range of labels; one outside is refused.
    unit : float
        Labels are told apart to this unit; at most 2^40 of them are in the range.
    names : bool
        Features are byte strings, otherwise ids below 2^32.
    window : int, optional
        Keep only the last so many examples of each key.
    on_duplicate : OnDuplicate
        What an insert of a live id does.

    Raises
    ------
    ValueError
        With what was expected.

    Examples
    --------
    >>> from algorithms.splits.numbers import NumberSplits
    >>> splits = NumberSplits(0.0, 100.0, unit=0.01)
    >>> for at in range(6):
    ...     splits.insert([1, 7] if at % 2 else [7 - at], 40.0 if at % 2 else 20.0, id=at)
    >>> splits.best().feature, splits.best().present.mean, splits.best().absent.mean
    (1, 40.0, 20.0)
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        unit: float = 1.0,
        names: bool = False,
        window: int | None = None,
        on_duplicate: OnDuplicate = OnDuplicate.REJECT,
    ) -> None:
        self._low, self._high = (number("a bound of labels", each, _LARGEST_LABEL) for each in (low, high))
        self._unit = number("a unit of labels", unit, _LARGEST_LABEL)
        if not (self._unit > 0.0 and 0.5 < (self._high - self._low) / self._unit <= _MOST_STEPS):
            raise ValueError(f"expected a range of 1 to 2^40 units, got {unit!r} in {low!r} to {high!r}")
        self._steps = round((self._high - self._low) / self._unit)
        # Both classes get one more, so that no weight is 0: this moves and shrinks labels, all alike.
        self._whole = self._steps + 2
        if window is not None:
            window = 2 * whole("a window", window, 1, 1 << 29)
        self._pool = SplitPool(
            criterion="gini",
            names=names,
            window=window,
            on_duplicate=on_duplicate,
            splits=Emit(When.NEVER),
        )

    # --- events

    def insert(
        self, x: Iterable[int | bytes], label: float, *, weight: int = 1, id: Id | None = None, key: int = 0
    ) -> Status:
        """Learn an example.

        Parameters
        ----------
        x : iterable of int or of bytes
            The features that are present.
        label : float
            Within the range.
        weight : int
            A whole number from 1 to 2^20.
        id : int, str or bytes, optional
            Names the example, so that it can be deleted.
        key : int
            Whose examples it belongs to.

        Raises
        ------
        ValueError
            Where the example is not one. Nothing has changed.
        """
        label = number("a label", label, _LARGEST_LABEL)
        weight = whole("a weight", weight, 1, 1 << 20)
        key = key_of(key)
        if not self._low <= label <= self._high:
            raise ValueError(f"expected a label from {self._low} to {self._high}, got {label}")
        steps = min(round((label - self._low) / self._unit), self._steps)
        above = weight * (steps + 1)
        if self._weight(key) + weight * self._whole >= MAX_TOTAL:
            return Status.COUNT_OVERFLOW
        return self._apply(Op.INSERT, x, (above, weight * self._whole - above), id, key)

    def delete(self, id: Id, *, key: int = 0) -> Status:
        """Forget an example by its id."""
        return self._apply(Op.DELETE, (), (1, 1), id_of(id), key_of(key))

    def drop(self, key: int = 0) -> None:
        """Forget a key."""
        self._pool.drop(key)

    def _weight(self, key: int) -> int:
        heads = self._pool.counted.heads
        return int(heads[key, N0] + heads[key, N1]) if key < len(heads) else 0

    def _apply(
        self, op: Op, x: Iterable[int | bytes], weights: tuple[int, int], id: Id | None, key: int
    ) -> Status:
        """Apply an event to both classes, of which 1 comes first; both are refused or none."""
        feature = features_of(x, self._pool.names)
        high, low = (0, 0) if id is None else digest_of(id_of(id))
        events = Events(
            key=np.full(2, key, np.int32),
            op=np.full(2, op, np.int8),
            label=np.array([1, 0], np.int32),
            weight=np.array(weights, np.int64),
            time=np.ones(2, np.int64),
            named=np.full(2, id is not None, np.int8),
            id_high=np.full(2, high, np.int64),
            id_low=np.array([low, low ^ 1], np.int64),
            pointer=np.array([0, len(feature), 2 * len(feature)], np.int64),
            feature=np.concatenate([feature, feature]),
            value=np.ones(2 * len(feature)),
        )
        answers = self._pool.apply(events, checked=True)
        self._pool.sweep(feature)
        first, second = answers.status.tolist()
        assert first == second, "one half of an example was refused"
        return Status(first)

    # --- looking

    def best(self, key: int = 0) -> NumberSplit:
        """Return the best split of a key now; no state is changed."""
        key = key_of(key)
        found = self._pool.best(key)
        totals = found.totals
        everything = self._labels(totals)
        if found.feature is None:
            return NumberSplit(None, 0.0, everything, everything, Labels(0, math.nan))
        near = self._pool.top(key, self._pool.features(key), found.score * (1.0 + _ROUNDING))
        reductions = {each.feature: self._reduction(totals, each.present) for each in near}
        greatest = max(reductions.values())
        if not greatest:
            return NumberSplit(None, 0.0, everything, everything, Labels(0, math.nan))
        best = min((each for each in near if reductions[each.feature] == greatest), key=lambda each: each.feature)
        absent = (totals[0] - best.present[0], totals[1] - best.present[1])
        return NumberSplit(
            best.feature,
            float(greatest * Fraction(self._unit) * Fraction(self._unit)),
            everything,
            self._labels(absent),
            self._labels(best.present),
        )

    def _sums(self, weights: tuple[int, int]) -> tuple[int, int]:
        """Return the weight of examples and the sum of their labels, in units above the least."""
        n = sum(weights) // self._whole
        return n, weights[1] - n

    def _labels(self, weights: tuple[int, int]) -> Labels:
        n, total = self._sums(weights)
        if not n:
            return Labels(0, math.nan)
        return Labels(n, float(Fraction(self._low) + Fraction(self._unit) * Fraction(total, n)))

    def _reduction(self, totals: tuple[int, int], present: tuple[int, int]) -> Fraction:
        """Return by how much a split reduces the variance, in squares of the unit, exactly."""
        n, total = self._sums(totals)
        here, there = self._sums(present), self._sums((totals[0] - present[0], totals[1] - present[1]))
        found = Fraction(0)
        for weight, part in (here, there):
            if weight:
                found += Fraction(part * part, weight)
        return (found - Fraction(total * total, n)) / n

    @property
    def nbytes(self) -> int:
        """How many bytes the state has."""
        return self._pool.nbytes

    def check(self) -> None:
        """Raise AssertionError unless the index is whole, and its weights are those of examples. For tests."""
        self._pool.check()
        heads = self._pool.counted.heads
        assert not ((heads[:, N0] + heads[:, N1]) % self._whole).any(), "half an example"
