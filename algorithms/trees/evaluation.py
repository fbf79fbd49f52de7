"""Prequential evaluation: every example is predicted first and learned afterwards.

All is counted in integers, so that the measures of a window are those of its examples alone, to the bit, however
long the stream was before it. The integers have two words (wide.py), so that no stream is too long or too heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core import wide
from algorithms.core.arrays import Float64s, Int32s, Int64s, int64
from algorithms.core.fixed_point import LN2, PER_UNIT
from algorithms.core.jit import jit
from algorithms.core.stored import Arrays, flattened, rebuilt, stored

# Columns of `Counters.window`.
_TRUTH, _PREDICTED, _WEIGHT, _LOSS = range(4)
_ABOVE = 32  # in the column of the predicted, from this bit on: what of the loss is above 62 bits

# Rows of `Counters.loss`.
_ALL, _RECENT = 0, 1


class Measures(NamedTuple):
    """How good predictions were, weighted; nan where there were none to evaluate."""

    weight: float  # of the examples evaluated
    accuracy: float
    kappa: float  # Cohen's: agreement beyond chance, over the most that could be
    f1: Float64s  # float64[c], harmonic mean of precision and recall of each class, 0 of one without either
    macro_f1: float  # mean of f1 over the classes that occurred or were predicted
    log_loss: float  # mean of -ln of the share given to the true class


class Evaluated(NamedTuple):
    """Predictions that were evaluated, as sums: those of several pools can be added."""

    # int64[2 c, c + 1], wide numbers: weight by true and predicted class, in units; last column: no prediction
    confusion: Int64s
    loss: int  # weight times log2 loss, in units

    def plus(self, other: Evaluated) -> Evaluated:
        """Return both together."""
        return Evaluated(wide.plus(self.confusion, other.confusion), self.loss + other.loss)

    def measures(self) -> Measures:
        """Return how good they were."""
        return _measures(self.confusion, self.loss)


@stored("confusion", "windowed", "loss", "window", "size", "examples")
class Counters(NamedTuple):
    """What is counted of predictions; weights in units of 2^-20."""

    confusion: Int64s  # int64[2 c, c + 1], wide numbers: weight by true and predicted class; last column: none
    windowed: Int64s  # int64[2 c, c + 1], likewise, of the window
    loss: Int64s  # int64[4], wide numbers: weight times log2 loss, in all and in the window
    window: Int64s  # int64[w, 4], true class, predicted class, weight and loss of the last examples, oldest first
    size: Int64s  # int64[1], how many of them there are
    examples: Int64s  # int64[1], how many were evaluated in all


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
        self._counters = Counters(
            confusion=wide.zeros(classes, classes + 1),
            windowed=wide.zeros(classes, classes + 1),
            loss=wide.zeros(2),
            window=np.zeros((window, 4), np.int64),
            size=np.zeros(1, np.int64),
            examples=np.zeros(1, np.int64),
        )

    @property
    def examples(self) -> int:
        """How many examples were evaluated in all."""
        return int(self._counters.examples[0])

    def add(self, truth: Int32s, predicted: Int32s, weight: Int64s, loss: Float64s) -> None:
        """Count examples, in order.

        Parameters
        ----------
        truth, predicted : int32[n]
            The true class, and the predicted one or -1.
        weight : int64[n]
            In units of 2^-20, below 2^62.
        loss : float64[n]
            -log2 of the share given to the true class.
        """
        scaled = np.rint(loss * weight)
        above = np.floor(scaled / wide.BASE)
        new = np.empty((len(truth), 4), np.int64)
        new[:, _TRUTH], new[:, _WEIGHT], new[:, _LOSS] = truth, weight, scaled - above * wide.BASE
        new[:, _PREDICTED] = predicted + (above.astype(np.int64) << _ABOVE)
        confusion, windowed, sums, window, size, examples = self._counters
        examples += len(new)
        both = np.concatenate([window[: size[0]], new])
        gone = both[: max(0, len(both) - len(window))]
        _count(confusion, sums, _ALL, new, 1)
        _count(windowed, sums, _RECENT, new, 1)
        _count(windowed, sums, _RECENT, gone, -1)
        kept = both[len(gone) :]
        window[: len(kept)] = kept
        size[0] = len(kept)

    def total(self) -> Evaluated:
        """Return all examples."""
        return Evaluated(self._counters.confusion, int(wide.numbers(self._counters.loss)[_ALL]))

    def recent(self) -> Evaluated:
        """Return those of the window."""
        return Evaluated(self._counters.windowed, int(wide.numbers(self._counters.loss)[_RECENT]))

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied)."""
        return flattened(self._counters)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over the state that `arrays` of an evaluation of the same size returned (not copied)."""
        counters = rebuilt(self._counters, arrays)
        classes = self._counters.confusion.shape[1] - 1
        self._counters = counters._replace(
            confusion=wide.restored(counters.confusion, classes),
            windowed=wide.restored(counters.windowed, classes),
            loss=wide.restored(counters.loss, 2),
        )


@jit
def _count(confusion: Int64s, loss: Int64s, over: int, rows: Int64s, sign: int) -> None:
    """Add examples to sums, or take them away."""
    classes = confusion.shape[0] >> 1
    for at in range(rows.shape[0]):
        told = rows[at, _PREDICTED] + 1
        predicted = (told & ((1 << _ABOVE) - 1)) - 1
        truth = rows[at, _TRUTH]
        column = predicted if predicted >= 0 else int64(classes)  # no prediction
        word = confusion[truth, column] + sign * rows[at, _WEIGHT]
        confusion[truth, column] = wide.low_of(word)
        confusion[truth + classes, column] += wide.carry_of(word)
        word = loss[over] + sign * rows[at, _LOSS]
        loss[over] = wide.low_of(word)
        loss[over + 2] += wide.carry_of(word) + sign * (told >> _ABOVE)


def _measures(confusion: Int64s, loss: int) -> Measures:
    weights = wide.numbers(confusion)
    n = int(weights.sum())
    actual = weights.sum(axis=1).astype(np.float64)
    predicted = weights[:, :-1].sum(axis=0).astype(np.float64)
    hits = np.diagonal(weights).astype(np.float64)
    either = actual + predicted
    f1 = np.divide(2.0 * hits, either, out=np.zeros(len(hits)), where=either > 0)
    if n == 0:
        return Measures(0.0, np.nan, np.nan, f1, np.nan, np.nan)
    accuracy = float(hits.sum()) / n
    chance = float((actual * predicted).sum()) / (float(n) * float(n))
    return Measures(
        weight=n * PER_UNIT,
        accuracy=accuracy,
        kappa=(accuracy - chance) / (1.0 - chance) if chance < 1.0 else np.nan,
        f1=f1,
        macro_f1=float(f1[either > 0].mean()),
        log_loss=LN2 * loss / n,
    )
