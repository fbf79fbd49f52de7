"""Prequential evaluation of a model name whose labels are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int32s, Int64s
from algorithms.regression.baselines import Compared, Comparison, Guesses
from algorithms.regression.coverage import Coverage, Covered
from worker.codec import RegressionEvaluation, RegressionMeasures, Source
from worker.models.evaluation import PREFIX, Paced, number
from worker.settings.models import PrequentialSettings
from worker.watching.status import Quality

_COVERAGE = "coverage."  # of the names of arrays


class Predictions(NamedTuple):
    """Examples that were predicted before they were learned, in order."""

    event: Int64s
    label: Float64s
    weight: Int64s
    time: Int64s
    prediction: Float64s  # nan: nothing was known
    guesses: Guesses  # what the baselines said
    margin: Float64s | None = None  # half the width of the interval, nan: none; None: nobody asks for intervals

    def errors(self) -> Compared:
        """Return how good they were, by themselves."""
        return Compared.of(self.label, self.prediction, self.weight, self.guesses)


class Evaluations(Paced[Predictions, RegressionEvaluation]):
    """Evaluates predictions of numbers, and says when a record is due.

    Parameters
    ----------
    model : str
        The model's name in the settings.
    rules : PrequentialSettings
        What they say of its evaluation.
    has_intervals : bool
        Whether predictions have intervals, which are judged too.
    """

    def __init__(self, model: str, rules: PrequentialSettings, *, has_intervals: bool = False) -> None:
        super().__init__(rules)
        self._model = model
        self._window = rules.window
        self._counts = Comparison(rules.window)
        self._coverage = Coverage(rules.window) if has_intervals else None

    @property
    def _examples(self) -> int:
        return self._counts.examples

    def guess(self, key: Int32s, label: Float64s, weight: Int64s) -> Guesses:
        """Return what the baselines say of examples, in order; label nan: the key is dropped."""
        return self._counts.guess(key, label, weight)

    def _evaluate(self, predictions: Predictions, part: slice) -> None:
        self._counts.add(
            predictions.label[part],
            predictions.prediction[part],
            predictions.weight[part],
            Guesses(*(each[part] for each in predictions.guesses)),
        )
        if self._coverage is not None and predictions.margin is not None:
            residual = np.abs(predictions.label[part] - predictions.prediction[part])
            self._coverage.add(residual, predictions.margin[part], predictions.weight[part])

    def _record(self, source: Source) -> RegressionEvaluation:
        return RegressionEvaluation(
            model=self._model,
            examples=self._counts.examples,
            total=_measures(self._counts.total(), self._covered),
            recent=_measures(self._counts.recent(), self._covered_recently),
            window=self._window,
            source=source,
        )

    @property
    def _covered(self) -> Covered | None:
        return self._coverage.total() if self._coverage is not None else None

    @property
    def _covered_recently(self) -> Covered | None:
        return self._coverage.recent() if self._coverage is not None else None

    def quality(self) -> Quality:
        """Return how good the predictions were; reading it changes nothing, and it may be kept."""
        covered = self._covered
        return Quality(
            self._counts.examples,
            self._counts.total().copied(),
            self._counts.recent(),
            covered=None if covered is None else covered.copied(),
            covered_recently=self._covered_recently,
        )

    def check(self) -> Int32s:
        """Raise AssertionError unless every invariant holds; return the keys whose labels are known. For tests."""
        self._counts.check()
        return self._counts.keys()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        coverage = self._coverage.arrays() if self._coverage is not None else {}
        arrays = {"period": self._period, **self._counts.arrays()}
        arrays |= {f"{_COVERAGE}{name}": array for name, array in coverage.items()}
        return {f"{PREFIX}{name}": array for name, array in arrays.items()}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` returned, which may be among others."""
        own = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
        self._period = own["period"]
        self._counts.restore(own)
        if self._coverage is not None:
            self._coverage.restore(
                {name.removeprefix(_COVERAGE): each for name, each in own.items() if name.startswith(_COVERAGE)}
            )


def _measures(compared: Compared, covered: Covered | None) -> RegressionMeasures:
    weight, *others = compared.measures()
    intervals = covered.measures() if covered is not None else ()
    return RegressionMeasures(weight, *map(number, others), *map(number, intervals))
