"""The best split of examples whose labels are numbers: the binary feature that reduces their variance most.

It is the index of two labels. Let t be a label as a share of its range, from 0 to 1. An example counts as one of
class 1 with weight t, and as one of class 0 with weight 1 - t. The weight of a class where a feature is present is
a sum of labels then, and half the Gini score is

    sum over the branches of n p (1 - p) = sum of labels - sum over the branches of (sum of labels)^2 / n

with p the mean of a branch. The first part is the same for all features: the least score is the greatest reduction
of the variance. Weights are whole numbers, so a delete undoes an insert to the bit, and the index finds the best
after every event as it does with classes: what it knows of score and order holds for any weights.

An index compares scores in floats. Features whose scores are equal but for rounding are compared once more, in
whole numbers (variance.py): so ties are ties, and go to the lowest feature, and what reduces nothing is no split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.cadence import Emit, When
from algorithms.core.events import Events, OnDuplicate, Op, Status
from algorithms.core.fixed_point import UNIT
from algorithms.core.given import check_columns, key_of, number, whole
from algorithms.core.pool import Id
from algorithms.core.scale import LARGEST_BOUND, Labels, Scale
from algorithms.splits import variance
from algorithms.splits.kernel import Decisions
from algorithms.splits.pool import SplitPool, check_events
from algorithms.splits.slots import N0, N1


class NumberSplit(NamedTuple):
    """The best split of a key's examples."""

    feature: int | bytes | None  # None: none reduces the variance
    reduction: float  # of the variance, n below
    labels: Labels  # of all examples
    absent: Labels  # of those without the feature, of all where there is none
    present: Labels


class NumberSplitPool(SplitPool):
    """Any number of nodes with labels that are numbers, in one set of arrays, one for each key.

    `apply` takes labels as float64 within the range, weights that are whole numbers of examples, and features that
    are present. What weights its decisions tell of are those of both classes: `scale` makes labels of them.

    Parameters
    ----------
    scale : Scale
        Of labels.
    others
        As of `SplitPool`, but for what says how features are scored.
    """

    _LABEL = np.float64
    _COUNTED = np.int64

    def __init__(self, scale: Scale, **others: Any) -> None:
        super().__init__(criterion="gini", **others)
        self.scale = scale
        self._criterion = None  # it has no memo
        self._state = self._state._replace(criterion=variance.make(scale.whole))

    def apply(self, events: Events, *, checked: bool = False) -> Decisions:
        """Apply events in order and return what was due, see `SplitPool.apply`.

        Raises
        ------
        ValueError
            Where they are no such events; none is applied.
        """
        if not checked:
            self._check_events(events)
        steps = self.scale.steps(events.label)
        return super().apply(events._replace(label=steps, weight=events.weight // UNIT), checked=True)

    def _check_events(self, events: Events) -> None:
        check_columns(events, np.float64, self.names)
        learned = (events.op == Op.INSERT) | ((events.op == Op.DELETE) & (events.named == 0))
        for what, wrong, column in (
            (f"labels from {self.scale.low} to {self.scale.high}", ~self.scale.holds(events.label), events.label),
            ("whole numbers of examples as weights", events.weight % UNIT != 0, events.weight),
        ):
            if (wrong & learned).any():
                event = int(np.argmax(wrong & learned))
                raise ValueError(f"expected {what}, got {column[event]} in the event {event}")
        check_events(events._replace(label=np.zeros(len(events.key), np.int32)), self.names)

    def _label(self, given: Any) -> float:
        label = number("a label", given, LARGEST_BOUND)
        if not self.scale.holds(label):
            raise ValueError(f"expected a label from {self.scale.low} to {self.scale.high}, got {label}")
        return label

    def best_split(self, key: int = 0) -> NumberSplit:
        """Return the best split of a key now; no state is changed."""
        found, scale = self.best(key), self.scale
        everything = scale.labels(found.totals)
        if found.feature is None:
            return NumberSplit(None, 0.0, everything, everything, Labels(0, math.nan))
        (n0, n1), (a, b) = found.totals, found.present
        reduction = scale.reduction(found.totals, found.present)
        return NumberSplit(
            found.feature, reduction, everything, scale.labels((n0 - a, n1 - b)), scale.labels((a, b))
        )

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. O(everything)."""
        super().check()
        heads = self.counted.heads
        assert not ((heads[:, N0] + heads[:, N1]) % self.scale.whole).any(), "half an example"


class NumberSplits:
    """Any number of nodes with labels that are numbers, one for each key: the exact best split after every event.

    An event costs up to twice what it costs `SplitPool`, and so does a query.

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
        if window is not None:
            window = whole("a window", window, 1, 1 << 30)
        self._pool = NumberSplitPool(
            Scale(low, high, unit),
            names=names,
            window=window,
            on_duplicate=on_duplicate,
            splits=Emit(When.NEVER),
        )

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
        return self._pool.insert(x, label, weight=whole("a weight", weight, 1, 1 << 20), id=id, key=key)

    def delete(self, id: Id, *, key: int = 0) -> Status:
        """Forget an example by its id."""
        return self._pool.delete((), self._pool.scale.low, id=id, key=key)

    def drop(self, key: int = 0) -> None:
        """Forget a key."""
        self._pool.drop(key)

    def best(self, key: int = 0) -> NumberSplit:
        """Return the best split of a key now; no state is changed."""
        return self._pool.best_split(key_of(key))

    @property
    def nbytes(self) -> int:
        """How many bytes the state has."""
        return self._pool.nbytes

    def check(self) -> None:
        """Raise AssertionError unless the index is whole, and its weights are those of examples. For tests."""
        self._pool.check()
