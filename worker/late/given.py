"""What a model answered for examples that are pending, and how good the answers were once the labels came.

That is the figure for those who act on the answers. The other one, of the answer that the model would give when
the label comes, is that of its inserts, as ever.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int32s, Int64s, extended
from algorithms.regression.baselines import Guesses as NumberGuesses
from algorithms.trees.evaluation import Guesses
from worker.codec import (
    DelayedEvaluation,
    Events,
    Prediction,
    RegressionDelayedEvaluation,
    RegressionPrediction,
    Source,
)
from worker.codec.selected import selected
from worker.late.kernel import TAKEN
from worker.late.pending import Resolved
from worker.log.port import Records
from worker.models.evaluation import Evaluations, Predictions
from worker.models.intake import ClassIntake, NumberIntake, RangeIntake, result_of, source_of
from worker.models.port import Outcome, Result
from worker.models.regression_evaluation import Evaluations as NumberEvaluations
from worker.models.regression_evaluation import Predictions as NumberPredictions
from worker.settings.models import (
    ClassifierSettings,
    EvaluateSettings,
    ExampleSettings,
    ModelSettings,
    PrequentialSettings,
    TargetSettings,
)
from worker.watching.status import Quality

SEQ = 1_500_000  # of a record: behind the trees of the event, before the keys that expire
_NONE = 0  # in place of an answer: none was given
_UNKNOWN, _CLASSES = 1, 2  # the model knew nothing; from here on: the classes


class Given(ABC):
    """The answers of a model by the rows of the store of pending examples.

    Parameters
    ----------
    dtype
        Of an answer. One whose bits are all 0 is none.
    evaluations
        Counts how good they were.
    """

    def __init__(self, dtype: Any, evaluations: _OfClasses | _OfNumbers) -> None:
        self._said: npt.NDArray[Any] = np.zeros(0, dtype)
        self._evaluations: Any = evaluations

    # --- what classes and numbers differ in

    @abstractmethod
    def _answers(self, results: Iterable[Result]) -> dict[tuple[int, int], Any]:
        """Return what was answered, by record and row."""

    @abstractmethod
    def _truth(self, events: Events) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return labels, and whether the model takes them."""

    @abstractmethod
    def _evaluate(
        self,
        events: Events,
        at: Int64s,
        truth: npt.NDArray[Any],
        said: npt.NDArray[Any],
        source: Callable[[int], Source],
    ) -> Iterator[tuple[int, Any]]:
        """Evaluate answers; yield where a record is due: the event, the record."""

    def _are_given(self, said: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        given: npt.NDArray[np.bool_] = said.view(f"i{said.itemsize}") != _NONE
        return given

    def quality(self) -> Quality:
        """Return how good the answers were."""
        found: Quality = self._evaluations.quality()
        return found

    # --- a batch

    def after(self, outcome: Outcome, resolved: Resolved, records: Records) -> Outcome:
        """Note what the model has answered, and evaluate what has its label now; return its outcome with that."""
        event, fate, row, given, stays = resolved.answered
        asked = resolved.asked
        if len(row) and (rows := int(row.max()) + 1) > len(self._said):
            self._said = extended(self._said, max(rows, 2 * len(self._said)))
        is_taken = fate == TAKEN
        taken = event[is_taken]
        said = np.zeros(len(taken), self._said.dtype)
        if len(taken):
            answers = self._answers(outcome.results)
            places = zip(asked.record[taken].tolist(), asked.row[taken].tolist(), strict=True)
            said[:] = [answers.get(place, _NONE) for place in places]
        results: list[Result] = []
        due = ~is_taken
        if due.any():
            at, of = event[due], given[due]
            was = self._said[row[due]]
            was[of >= 0] = said[np.searchsorted(taken, of[of >= 0])]
            wanted = np.zeros(len(asked.op), np.bool_)
            wanted[at] = True
            truth, takes = self._truth(selected(asked, wanted))
            counts = takes & self._are_given(was)
            source_at = partial(source_of, records, asked)
            for number, record in self._evaluate(asked, at[counts], truth[counts], was[counts], source_at):
                results.append(result_of(asked, number, SEQ, record, keyed=False))
        self.wipe(resolved.gone)
        self._said[row[is_taken][stays[is_taken]]] = said[stays[is_taken]]
        if results:
            results = sorted([*outcome.results, *results], key=attrgetter("place"))
            return outcome._replace(results=results)
        return outcome

    def wipe(self, rows: Int32s) -> None:
        """Forget the answers for examples that are gone."""
        self._said[rows[rows < len(self._said)]] = _NONE

    def moved(self, rows: Mapping[int, int]) -> None:
        """Take other rows for the examples: those of another store, where they are pending too."""
        before = self._said
        self._said = np.zeros(max(rows.values(), default=-1) + 1, before.dtype)
        for old, new in rows.items():
            if old < len(before):
                self._said[new] = before[old]

    # --- state

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the state as named arrays, not copied."""
        return {"said": self._said, **self._evaluations.arrays()}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` returned."""
        self._said = arrays["said"]
        self._evaluations.restore(arrays)

    def holds(self) -> Int64s:
        """Return the rows for which there is an answer. For tests."""
        return np.flatnonzero(self._are_given(self._said))


class GivenClasses(Given):
    """Answers that are classes."""

    def __init__(self, name: str, settings: ClassifierSettings, rules: EvaluateSettings) -> None:
        quiet = rules.model_copy(update={"drift": None})
        super().__init__(np.int32, _OfClasses(name, settings.classes, quiet))
        self._numbers = {label: number for number, label in enumerate(settings.classes, _CLASSES)}
        self._intake = ClassIntake(settings.classes, settings.features)

    def _answers(self, results: Iterable[Result]) -> dict[tuple[int, int], Any]:
        return {
            (record, row): _UNKNOWN if output.label is None else self._numbers[output.label]  # type: ignore[index]
            for record, row, _, output, *_ in results
            if isinstance(output, Prediction)
        }

    def _truth(self, events: Events) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        label = self._intake.labels(events)
        return label, label >= 0

    def _evaluate(
        self,
        events: Events,
        at: Int64s,
        truth: npt.NDArray[Any],
        said: npt.NDArray[Any],
        source: Callable[[int], Source],
    ) -> Iterator[tuple[int, Any]]:
        nothing = np.full(len(at), -1, np.int32)
        predicted = np.where(said == _UNKNOWN, -1, said - _CLASSES).astype(np.int32)
        found = Predictions(
            at, truth, events.weight[at], events.time[at], predicted, np.zeros(len(at)), Guesses(nothing, nothing)
        )
        due: Iterator[tuple[int, Any]] = self._evaluations.add(found, source)
        return due


class GivenNumbers(Given):
    """Answers that are numbers; 0 has its sign, as all bits 0 are none."""

    def __init__(self, name: str, settings: ExampleSettings, rules: PrequentialSettings) -> None:
        super().__init__(np.float64, _OfNumbers(name, rules))
        self._intake = NumberIntake(settings.features)
        if isinstance(settings, TargetSettings):
            self._intake = RangeIntake(settings.scale, settings.features)

    def _answers(self, results: Iterable[Result]) -> dict[tuple[int, int], Any]:
        return {
            (record, row): math.nan if output.value is None else output.value or -0.0
            for record, row, _, output, *_ in results
            if isinstance(output, RegressionPrediction)
        }

    def _truth(self, events: Events) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        label = self._intake.labels(events)
        return label, ~np.isnan(label)

    def _evaluate(
        self,
        events: Events,
        at: Int64s,
        truth: npt.NDArray[Any],
        said: npt.NDArray[Any],
        source: Callable[[int], Source],
    ) -> Iterator[tuple[int, Any]]:
        nothing = np.full(len(at), np.nan)
        found = NumberPredictions(
            at, truth, events.weight[at], events.time[at], said, NumberGuesses(nothing, nothing.copy())
        )
        due: Iterator[tuple[int, Any]] = self._evaluations.add(found, source)
        return due


class _OfClasses(Evaluations):
    """Evaluates answers; the baselines have said nothing then, and the shares of classes are not kept."""

    def _record(self, source: Source) -> DelayedEvaluation:
        found = super()._record(source)
        unknown: dict[str, Any] = dict.fromkeys(("log_loss", "majority", "no_change", "kappa_m", "kappa_temporal"))
        total, recent = (each._replace(**unknown) for each in (found.total, found.recent))
        return DelayedEvaluation(*found._replace(total=total, recent=recent))


class _OfNumbers(NumberEvaluations):
    """Evaluates answers; the baselines have said nothing then."""

    def _record(self, source: Source) -> RegressionDelayedEvaluation:
        return RegressionDelayedEvaluation(*super()._record(source))


def given_of(name: str, settings: ModelSettings) -> Given | None:
    """Return an empty store of a model's answers, None where nobody evaluates them."""
    rules = getattr(settings, "evaluate", None)
    if isinstance(settings, ClassifierSettings) and settings.classes and isinstance(rules, EvaluateSettings):
        return GivenClasses(name, settings, rules)
    if isinstance(settings, ExampleSettings) and isinstance(rules, PrequentialSettings):
        return GivenNumbers(name, settings, rules)
    return None
