"""Prequential evaluation of a model name in a partition: what is counted, and when a record tells of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.arrays import Int64s
from algorithms.cadence import When
from algorithms.trees.answers import Answers
from algorithms.trees.evaluation import Judged, Prequential
from algorithms.trees.pool import Events
from worker.codec import Evaluation, Measures, Source
from worker.settings_models import EvaluateSettings, TreeSettings
from worker.status import Quality


class Evaluations:
    """Judges predictions, and says when a record is due.

    Parameters
    ----------
    model : str
        The model's name in the settings.
    settings : TreeSettings
        Its settings.
    rules : EvaluateSettings
        What they say of its evaluation.
    """

    def __init__(self, model: str, settings: TreeSettings, rules: EvaluateSettings) -> None:
        self._model = model
        self._classes = settings.classes
        self._window = rules.window
        self._emit = rules.emit.due
        self._counts = Prequential(len(settings.classes), rules.window)
        self._period = np.full(1, -1, np.int64)  # of event time, of the last example

    def add(
        self, judged: Int64s, batch: Events, answers: Answers, source: Callable[[int], Source]
    ) -> Iterator[tuple[int, Evaluation]]:
        """Judge the predictions of some events, in order; yield where a record is due: the event, the record."""
        start = 0
        for stop in self._due(batch.time[judged]):
            self._judge(judged[start:stop], batch, answers)
            last = int(judged[stop - 1])
            yield last, self._record(source(last))
            start = stop
        self._judge(judged[start:], batch, answers)

    def _judge(self, events: Int64s, batch: Events, answers: Answers) -> None:
        guess, loss = answers.guess[events], answers.loss[events]
        self._counts.add(batch.label[events], guess, batch.weight[events], loss)

    def _due(self, time: Int64s) -> list[int]:
        """Return after how many of some examples a record is due; their periods of event time count as passed."""
        when, argument = self._emit
        if when == When.EVERY:
            return list(range(argument - int(self._counts.examples[0]) % argument, len(time) + 1, argument))
        if when == When.EVERY_MS and len(time):
            before = np.maximum.accumulate(np.concatenate([self._period, time // argument]))
            self._period[0] = before[-1]
            return (np.flatnonzero((before[1:] > before[:-1]) & (before[:-1] >= 0)) + 1).tolist()
        return []

    def _record(self, source: Source) -> Evaluation:
        return Evaluation(
            model=self._model,
            examples=int(self._counts.examples[0]),
            total=_measures(self._counts.total()),
            recent=_measures(self._counts.recent()),
            window=self._window,
            classes=self._classes,
            source=source,
        )

    def quality(self) -> Quality:
        """Return how good the predictions were; reading it changes nothing, and it may be kept."""
        total, recent = self._counts.total(), self._counts.recent()
        return Quality(
            int(self._counts.examples[0]),
            total._replace(confusion=total.confusion.copy()),
            recent._replace(confusion=recent.confusion.copy()),
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        return {"period": self._period, **self._counts.arrays()}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` returned."""
        self._period = arrays["period"]
        self._counts.restore(arrays)


def _measures(judged: Judged) -> Measures:
    weight, accuracy, kappa, f1, macro_f1, log_loss = judged.measures()
    return Measures(weight, _number(accuracy), _number(kappa), f1.tolist(), _number(macro_f1), _number(log_loss))


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
