"""Prequential evaluation: every example is predicted first and learned afterwards.

All is counted in integers, so that the measures of a window are those of its examples alone, to the bit, however
long the stream was before it. The integers have two words (wide.py), so that no stream is too long or too heavy.

Beside the accuracy stands what costs nothing. Bifet, de Francisci Morales, Read, Holmes, Pfahringer: Efficient
online evaluation of big data stream classifiers. KDD 2015::

    majority        always says the class of most weight among the key's labels so far; of equal ones the first
    no change       always says the key's last label
    Kappa M         1 - error / error of majority
    Kappa temporal  1 - error / error of no change

Both say nothing of a key's first example and are wrong about it, as a tree is. Where such an error is 0, its kappa
is not a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core import wide
from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, extended, int64
from algorithms.core.fixed_point import LN2, PER_UNIT
from algorithms.core.jit import jit
from algorithms.core.stored import Arrays, flattened, rebuilt, stored
from algorithms.core.window import Window

# Columns of the window's examples.
_TRUTH, _PREDICTED, _WEIGHT, _LOSS = range(4)
_ABOVE = 32  # in the column of the predicted, from this bit on: what of the loss is above 62 bits

# Rows of `Counters.loss` and `Counters.compared`.
_ALL, _RECENT = 0, 1
_OVERS = 2  # rows of low words; as many of high words follow

# Columns of `Counters.compared`, and bits of an example's marks.
_COMPARED = 0  # with the baselines: all examples, except those that an earlier version evaluated
_RIGHT, _MAJORITY, _NO_CHANGE = 1, 2, 3  # of these: predicted rightly, by the model and by the baselines
_MARKS = 4

# Columns of `Counters.labels`.
_LEADER, _LAST = 0, 1  # class + 1; 0: there is none
_WEIGHTS = 2  # from here on: the low words of the weight of each class, then the high ones


class Measures(NamedTuple):
    """How good predictions were, weighted; nan where there were none to evaluate."""

    weight: float  # of the examples evaluated
    accuracy: float
    kappa: float  # Cohen's: agreement beyond chance, over the most that could be
    f1: Float64s  # float64[c], harmonic mean of precision and recall of each class, 0 of one without either
    macro_f1: float  # mean of f1 over the classes that occurred or were predicted
    log_loss: float  # mean of -ln of the share given to the true class
    majority: float  # accuracy of always saying the most frequent label so far
    no_change: float  # accuracy of always saying the last label
    kappa_m: float  # 1 - error / error of majority; nan where that is 0
    kappa_temporal: float  # 1 - error / error of no change; nan where that is 0


class Guesses(NamedTuple):
    """What the baselines say of examples, -1: nothing."""

    majority: Int32s
    last: Int32s


class Evaluated(NamedTuple):
    """Predictions that were evaluated, as sums: those of several pools can be added."""

    # int64[2 c, c + 1], wide numbers: weight by true and predicted class, in units; last column: no prediction
    confusion: Int64s
    loss: int  # weight times log2 loss, in units
    # int64[2, 4], wide numbers: weight of examples compared with the baselines, and of those predicted rightly by
    # the model, by majority and by no change
    compared: Int64s

    def plus(self, other: Evaluated) -> Evaluated:
        """Return both together."""
        return Evaluated(
            wide.plus(self.confusion, other.confusion),
            self.loss + other.loss,
            wide.plus(self.compared, other.compared),
        )

    def copied(self) -> Evaluated:
        """Return sums that stay as they are."""
        return self._replace(confusion=self.confusion.copy(), compared=self.compared.copy())

    def measures(self) -> Measures:
        """Return how good they were."""
        return _measures(self.confusion, self.loss, self.compared)


@stored("confusion", "windowed", "loss", "compared", "labels")
class Counters(NamedTuple):
    """What is counted of predictions; weights in units of 2^-20."""

    confusion: Int64s  # int64[2 c, c + 1], wide numbers: weight by true and predicted class; last column: none
    windowed: Int64s  # int64[2 c, c + 1], likewise, of the window
    loss: Int64s  # int64[4], wide numbers: weight times log2 loss, in all and in the window
    compared: Int64s  # int64[4, 4], wide numbers: see `Evaluated.compared`, in all and in the window
    labels: Int64s  # int64[keys, 2 + 2 c], of each key: the class of most weight, the last one, weights of all


class Prequential:
    """Counters of predictions, over all examples and over the last so many.

    Parameters
    ----------
    classes : int
        Labels are 0 to classes - 1.
    window : int
        How many examples the window holds, at least 1.
    """

    def __init__(self, classes: int, window: int) -> None:
        if classes < 2 or window < 1:
            raise ValueError(f"expected at least 2 classes and a window of at least 1, got {classes} and {window}")
        self._classes = classes
        self._counters = Counters(
            confusion=wide.zeros(classes, classes + 1),
            windowed=wide.zeros(classes, classes + 1),
            loss=wide.zeros(2),
            compared=wide.zeros(2, _MARKS),
            labels=np.zeros((0, _WEIGHTS + 2 * classes), np.int64),
        )
        self._window = Window(window, window=(np.int64, 4), marks=(np.int8, None))

    @property
    def examples(self) -> int:
        """How many examples were evaluated in all."""
        return self._window.examples

    def guess(self, key: Int32s, truth: Int32s, weight: Int64s) -> Guesses:
        """Return what the baselines say of examples, which they learn one after the other.

        Parameters
        ----------
        key : int32[n]
            Small numbers of the models that the examples belong to.
        truth : int32[n]
            The true class; -1: the key is dropped here, and what its labels were is forgotten.
        weight : int64[n]
            In units of 2^-20, below 2^62.
        """
        keys, labels = int(key.max(initial=-1)) + 1, self._counters.labels
        if keys > len(labels):
            labels = extended(labels, max(keys, 2 * len(labels)))
            self._counters = self._counters._replace(labels=labels)
        guesses = np.full((len(key), 2), -1, np.int32)
        _guess(labels, key, truth, weight, guesses)
        return Guesses(guesses[:, 0], guesses[:, 1])

    def add(
        self, truth: Int32s, predicted: Int32s, weight: Int64s, loss: Float64s, guesses: Guesses | None = None
    ) -> None:
        """Count examples, in order.

        Parameters
        ----------
        truth, predicted : int32[n]
            The true class, and the predicted one or -1.
        weight : int64[n]
            In units of 2^-20, below 2^62.
        loss : float64[n]
            -log2 of the share given to the true class.
        guesses : Guesses, optional
            What `guess` said of them; without, all are of one key.
        """
        if guesses is None:
            guesses = self.guess(np.zeros(len(truth), np.int32), truth, weight)
        scaled = np.rint(loss * weight)
        above = np.floor(scaled / wide.BASE)
        new = np.empty((len(truth), 4), np.int64)
        new[:, _TRUTH], new[:, _WEIGHT], new[:, _LOSS] = truth, weight, scaled - above * wide.BASE
        new[:, _PREDICTED] = predicted + (above.astype(np.int64) << _ABOVE)
        marks = np.full(len(truth), 1 << _COMPARED, np.int8)
        for bit, said in ((_RIGHT, predicted), (_MAJORITY, guesses.majority), (_NO_CHANGE, guesses.last)):
            marks |= (said == truth).astype(np.int8) << bit
        confusion, windowed, sums, compared, _ = self._counters
        _count(confusion, sums, compared, _ALL, new, marks, 1)
        _count(windowed, sums, compared, _RECENT, new, marks, 1)
        gone, marks_gone = self._window.push(new, marks)
        _count(windowed, sums, compared, _RECENT, gone, marks_gone, -1)

    def total(self) -> Evaluated:
        """Return all examples."""
        return self._evaluated(self._counters.confusion, _ALL)

    def recent(self) -> Evaluated:
        """Return those of the window."""
        return self._evaluated(self._counters.windowed, _RECENT)

    def _evaluated(self, confusion: Int64s, over: int) -> Evaluated:
        return Evaluated(
            confusion, int(wide.numbers(self._counters.loss)[over]), self._counters.compared[over::_OVERS]
        )

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied)."""
        return flattened(self._counters) | self._window.arrays()

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over the state that `arrays` of an evaluation of the same size returned (not copied).

        In the state of an earlier version there are no baselines: they begin here, and are compared with the
        examples from here on.
        """
        classes = self._classes
        nothing = {"compared": wide.zeros(2, _MARKS), "labels": self._counters.labels[:0]}
        counters = rebuilt(self._counters, nothing | dict(arrays))
        self._counters = counters._replace(
            confusion=wide.restored(counters.confusion, classes),
            windowed=wide.restored(counters.windowed, classes),
            loss=wide.restored(counters.loss, 2),
        )
        self._window.restore(arrays)

    def keys(self) -> Int32s:
        """Return the keys whose labels are known."""
        return np.flatnonzero(self._counters.labels[:, _LAST]).astype(np.int32)

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. O(everything)."""
        confusion, windowed, _, compared, labels = self._counters
        for matrix, over in ((confusion, _ALL), (windowed, _RECENT)):
            weights = wide.numbers(matrix)
            weight, right, *baselines = wide.numbers(compared[over::_OVERS])[0].tolist()
            assert 0 <= right <= weight <= int(weights.sum()), "more is compared than was evaluated"
            assert right <= int(np.trace(weights))
            assert all(0 <= each <= weight for each in baselines)
        for row in labels.tolist():
            low, high = row[_WEIGHTS : _WEIGHTS + self._classes], row[_WEIGHTS + self._classes :]
            seen = [(above << 62) + below for below, above in zip(low, high, strict=True)]
            assert min(seen) >= 0
            if row[_LEADER] == 0:
                assert not any(row), "weights of a key without labels"
                continue
            assert 1 <= row[_LAST] <= self._classes
            assert seen[row[_LEADER] - 1] == max(seen), "another class has more weight"
            assert row[_LEADER] - 1 == seen.index(max(seen)) or max(seen) == 0, "a class before it has as much"


@jit
def _guess(labels: Int64s, key: Int32s, truth: Int32s, weight: Int64s, guesses: Int32s) -> None:
    """Say what the baselines say of each example, then let them learn it."""
    classes = (labels.shape[1] - _WEIGHTS) >> 1
    for at in range(key.size):
        row = int64(key[at])
        if truth[at] < 0:
            for column in range(labels.shape[1]):
                labels[row, column] = 0
            continue
        leader = labels[row, _LEADER] - 1
        guesses[at, 0] = leader
        guesses[at, 1] = labels[row, _LAST] - 1
        label = int64(truth[at])
        low = _WEIGHTS + label
        word = labels[row, low] + weight[at]
        labels[row, low] = wide.low_of(word)
        labels[row, low + classes] += wide.carry_of(word)
        labels[row, _LAST] = label + 1
        if leader < 0 or _leads(labels, row, classes, label, leader):
            labels[row, _LEADER] = label + 1


@jit
def _leads(labels: Int64s, row: int, classes: int, label: int, other: int) -> bool:
    """Return whether a class has more weight than another one, or as much and comes first."""
    more = labels[row, _WEIGHTS + classes + label] - labels[row, _WEIGHTS + classes + other]
    if more == 0:
        more = labels[row, _WEIGHTS + label] - labels[row, _WEIGHTS + other]
    return more > 0 or (more == 0 and label < other)


@jit
def _count(
    confusion: Int64s, loss: Int64s, compared: Int64s, over: int, rows: Int64s, marks: Int8s, sign: int
) -> None:
    """Add examples to sums, or take them away."""
    classes = confusion.shape[0] >> 1
    for at in range(rows.shape[0]):
        told = rows[at, _PREDICTED] + 1
        predicted = (told & ((1 << _ABOVE) - 1)) - 1
        truth = rows[at, _TRUTH]
        weight = sign * rows[at, _WEIGHT]
        column = predicted if predicted >= 0 else int64(classes)  # no prediction
        word = confusion[truth, column] + weight
        confusion[truth, column] = wide.low_of(word)
        confusion[truth + classes, column] += wide.carry_of(word)
        word = loss[over] + sign * rows[at, _LOSS]
        loss[over] = wide.low_of(word)
        loss[over + 2] += wide.carry_of(word) + sign * (told >> _ABOVE)
        for mark in range(_MARKS):
            if (int64(marks[at]) >> mark) & 1:
                word = compared[over, mark] + weight
                compared[over, mark] = wide.low_of(word)
                compared[over + 2, mark] += wide.carry_of(word)


def _measures(confusion: Int64s, loss: int, compared: Int64s) -> Measures:
    weights = wide.numbers(confusion)
    n = int(weights.sum())
    actual = weights.sum(axis=1).astype(np.float64)
    predicted = weights[:, :-1].sum(axis=0).astype(np.float64)
    hits = np.diagonal(weights).astype(np.float64)
    either = actual + predicted
    f1 = np.divide(2.0 * hits, either, out=np.zeros(len(hits)), where=either > 0)
    if n == 0:
        return Measures(0.0, np.nan, np.nan, f1, *[np.nan] * 6)
    accuracy = float(hits.sum()) / n
    chance = float((actual * predicted).sum()) / (float(n) * float(n))
    common, right, majority, no_change = wide.numbers(compared)[0].tolist()
    return Measures(
        weight=n * PER_UNIT,
        accuracy=accuracy,
        kappa=(accuracy - chance) / (1.0 - chance) if chance < 1.0 else np.nan,
        f1=f1,
        macro_f1=float(f1[either > 0].mean()),
        log_loss=LN2 * loss / n,
        majority=majority / common if common else np.nan,
        no_change=no_change / common if common else np.nan,
        kappa_m=(right - majority) / (common - majority) if majority < common else np.nan,
        kappa_temporal=(right - no_change) / (common - no_change) if no_change < common else np.nan,
    )
