"""Prequential evaluation of a model name in a partition: what is counted, and when a record tells of it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int32s, Int64s
from algorithms.core.cadence import When
from algorithms.trees.drift import DriftWatch
from algorithms.trees.evaluation import Evaluated, Guesses, Prequential
from worker.codec import Drift, Evaluation, Measures, Source
from worker.settings.models import ClassName, EvaluateSettings, PrequentialSettings
from worker.watching.status import Quality

PREFIX = "evaluation."  # of the names of arrays
_WATCHED = ("drift.window.sums", "drift.window.buckets", "drift.window.ones", "drift.counts")
# Arrays that earlier versions did not have.
LATER = {f"{PREFIX}{name}" for name in ("compared", "labels", "marks", *_WATCHED)}


class Predictions(NamedTuple):
    """Examples that were predicted before they were learned, in order."""

    event: Int64s
    label: Int32s
    weight: Int64s
    time: Int64s
    prediction: Int32s  # -1: nothing was known
    loss: Float64s  # -log2 of the share given to the true class
    guesses: Guesses  # what the baselines said


class Predicted(Protocol):
    """What all kinds of predictions have."""

    @property
    def event(self) -> Int64s:
        """int64[n], ascending."""
        ...

    @property
    def time(self) -> Int64s:
        """int64[n], of events."""
        ...


P = TypeVar("P", bound=Predicted)
R = TypeVar("R")  # a record


class Paced(ABC, Generic[P, R]):
    """Evaluates predictions, and says when a record is due.

    Parameters
    ----------
    rules : PrequentialSettings
        What the settings say of a model's evaluation.
    """

    def __init__(self, rules: PrequentialSettings) -> None:
        self._emit = rules.emit.due
        self._period = np.full(1, -1, np.int64)  # of event time, of the last example

    @property
    @abstractmethod
    def _examples(self) -> int:
        """How many were evaluated so far."""

    @abstractmethod
    def _evaluate(self, predictions: P, part: slice) -> None:
        """Count some of them."""

    @abstractmethod
    def _record(self, source: Source) -> R:
        """Return what there is to tell after an example."""

    @abstractmethod
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` returned, which may be among others."""

    def renumber(self, keys: Int32s) -> None:
        """Give keys, which are all whose labels are known, the numbers from 0 on."""
        arrays = self.arrays()
        for name in [name for name in arrays if name.startswith(f"{PREFIX}labels")]:
            known = keys < len(arrays[name])
            of_keys = np.zeros((len(keys), *arrays[name].shape[1:]), arrays[name].dtype)
            of_keys[known] = arrays[name][keys[known]]
            arrays[name] = of_keys
        self.restore(arrays)

    def add(self, predictions: P, source: Callable[[int], Source]) -> Iterator[tuple[int, R]]:
        """Evaluate some predictions; yield where a record is due: the event, the record."""
        start = 0
        for stop in self._due(predictions.time):
            self._evaluate(predictions, slice(start, stop))
            last = int(predictions.event[stop - 1])
            yield last, self._record(source(last))
            start = stop
        self._evaluate(predictions, slice(start, None))

    def _due(self, time: Int64s) -> list[int]:
        """Return after how many of some examples a record is due; their periods of event time count as passed."""
        when, argument = self._emit
        if when == When.EVERY:
            return list(range(argument - self._examples % argument, len(time) + 1, argument))
        if when == When.EVERY_MS and len(time):
            before = np.maximum.accumulate(np.concatenate([self._period, time // argument]))
            self._period[0] = before[-1]
            return (np.flatnonzero((before[1:] > before[:-1]) & (before[:-1] >= 0)) + 1).tolist()
        return []


class Evaluations(Paced[Predictions, Evaluation]):
    """Evaluates predictions of classes, and says when a record is due.

    Parameters
    ----------
    model : str
        The model's name in the settings.
    classes : sequence of int or of str
        Label 0, label 1 and so on.
    rules : EvaluateSettings
        What they say of its evaluation.
    """

    def __init__(self, model: str, classes: Sequence[ClassName], rules: EvaluateSettings) -> None:
        super().__init__(rules)
        self._model = model
        self._classes = classes
        self._window = rules.window
        self._counts = Prequential(len(classes), rules.window)
        self._watch = DriftWatch(rules.drift.delta) if rules.drift is not None else None

    @property
    def _examples(self) -> int:
        return self._counts.examples

    def guess(self, key: Int32s, label: Int32s, weight: Int64s) -> Guesses:
        """Return what the baselines say of examples, in order; label -1: the key is dropped."""
        return self._counts.guess(key, label, weight)

    def drifts(self, predictions: Predictions, source: Callable[[int], Source]) -> list[tuple[int, Drift]] | None:
        """Watch predictions that were evaluated just now; return the rises of the error: the event, the record.

        None: nobody watches.
        """
        if self._watch is None:
            return None
        before = self._counts.examples - len(predictions.label)
        found = []
        for rise in self._watch.add(predictions.prediction != predictions.label):
            event = int(predictions.event[rise.at])
            told = Drift(self._model, before + rise.at + 1, rise.before, rise.after, rise.width, source(event))
            found.append((event, told))
        return found

    def _evaluate(self, predictions: Predictions, part: slice) -> None:
        majority, last = predictions.guesses
        self._counts.add(
            predictions.label[part],
            predictions.prediction[part],
            predictions.weight[part],
            predictions.loss[part],
            Guesses(majority[part], last[part]),
        )

    def _record(self, source: Source) -> Evaluation:
        return Evaluation(
            model=self._model,
            examples=self._counts.examples,
            total=_measures(self._counts.total()),
            recent=_measures(self._counts.recent()),
            window=self._window,
            classes=self._classes,
            source=source,
        )

    def quality(self) -> Quality:
        """Return how good the predictions were; reading it changes nothing, and it may be kept."""
        return Quality(
            self._counts.examples,
            self._counts.total().copied(),
            self._counts.recent().copied(),
            *((self._watch.rises, self._watch.since) if self._watch is not None else ()),
        )

    def check(self) -> Int32s:
        """Raise AssertionError unless every invariant holds; return the keys whose labels are known. For tests."""
        self._counts.check()
        if self._watch is not None:
            self._watch.check()
        return self._counts.keys()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        watched = self._watch.arrays() if self._watch is not None else {}
        arrays = {"period": self._period, **self._counts.arrays(), **watched}
        return {f"{PREFIX}{name}": array for name, array in arrays.items()}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` returned, which may be among others."""
        own = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
        self._period = own["period"]
        self._counts.restore(own)
        if self._watch is not None:
            self._watch.restore(own)


def _measures(evaluated: Evaluated) -> Measures:
    measures = evaluated.measures()
    numbers = {name: number(value) for name, value in measures._asdict().items() if name not in ("weight", "f1")}
    return Measures(weight=measures.weight, f1=measures.f1.tolist(), **numbers)


def number(value: float) -> float | None:
    """Return a measure as a record has it."""
    return None if math.isnan(value) else float(value)
