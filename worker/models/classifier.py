"""What all kinds that predict classes have in common: predictions, and how good those were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from algorithms.core import pool as core
from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s
from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import UNIT
from algorithms.trees.evaluation import Guesses
from algorithms.trees.predict import loss_of
from worker.codec import Prediction
from worker.models.awaited import Awaited
from worker.models.base import Pool, Prepared
from worker.models.evaluated import EvaluatedModel
from worker.models.evaluation import LATER, Evaluations, Predictions
from worker.models.intake import ClassIntake, id_of, result_of, source_of
from worker.models.port import Outcome, Result
from worker.settings.models import ClassifierSettings, EvaluateSettings
from worker.settings.values import span_of

SPLIT_SEQ, EVALUATION_SEQ, TREE_SEQ = 0, 1, 2  # a tree's parts go on from there
DRIFT_SEQ = 1_000_000  # no tree has as many parts

P = TypeVar("P", bound=Pool)
A = TypeVar("A", bound="Answered")


class Answered(core.Answered, Protocol):
    """What a pool of classifiers returns of a batch; a kind knows more of it."""

    @property
    def predicted(self) -> Int32s:
        """int32[n], the class predicted, -1: nothing is known, or nothing was asked."""
        ...

    @property
    def loss(self) -> Float64s:
        """float64[n], of inserts where they are evaluated: -log2 of the share given to the true class."""
        ...

    @property
    def asked(self) -> Int64s:
        """int64[p], the events that were predictions."""
        ...

    @property
    def weights(self) -> Float64s:
        """float64[p, c], the class weights that each was answered with, in examples."""
        ...

    @property
    def leaf(self) -> Int64s:
        """int64[p], the number of the node that answered, 0 where nothing is known or there are no nodes."""
        ...


class Answers(NamedTuple):
    """Answers of a kind that knows nothing more, see `Answered`."""

    status: Int8s
    predicted: Int32s
    loss: Float64s
    asked: Int64s
    weights: Float64s
    leaf: Int64s

    @classmethod
    def by_weight(cls, prepared: Prepared, status: Int8s, before: Int64s) -> Answers:
        """Return the answers of a kind that predicts the class of most weight, of equal ones the first.

        `before` is int64[n, c]: weights of the classes at each event, in 2^-20 of an example,
        all 0 where nothing is known. Cost: O(n c).
        """
        asked = np.flatnonzero(prepared.op == Op.PREDICT)
        loss = np.zeros(len(before))
        for event in np.flatnonzero((prepared.op == Op.INSERT) & (prepared.label >= 0)).tolist():
            loss[event] = loss_of(before[event] / UNIT, int(prepared.label[event]))
        predicted = np.where(before.any(axis=1), before.argmax(axis=1), -1).astype(np.int32)
        return cls(status, predicted, loss, asked, before[asked] / UNIT, np.zeros(len(asked), np.int64))


class ClassifierModel(EvaluatedModel[P, A]):
    """A model that predicts classes; see `EvaluatedModel`.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    settings : ClassifierSettings
        What the settings say of it.
    pool : Pool
        An empty one.
    evaluate : EvaluateSettings, optional
        How its predictions are evaluated, if they are.
    """

    LATER: ClassVar[frozenset[str]] = EvaluatedModel.LATER | LATER
    _evaluations: Evaluations | None

    def __init__(
        self, name: str, settings: ClassifierSettings, pool: P, evaluate: EvaluateSettings | None = None
    ) -> None:
        awaited = Awaited(settings.classes, settings.feature_kinds[1], complete=settings.names_all_features)
        intake = ClassIntake(settings.classes, settings.features)
        window = getattr(settings, "window", None)  # which kinds that only grow have not
        super().__init__(name, intake, pool, awaited, settings.expire, span_of(window))
        self._classes = settings.classes
        self._evaluations = Evaluations(name, settings.classes, evaluate) if evaluate is not None else None

    def _outcome(self, prepared: Prepared, answers: A) -> Outcome:
        results = [*self._records(prepared, answers), *self._predictions(prepared, answers)]
        if self._evaluations is None:
            return Outcome(sorted(results, key=attrgetter("place")))
        predictions = self._predicted(self._evaluations, prepared, answers)
        source_at = partial(source_of, prepared.records, prepared.events)
        for event, evaluation in self._evaluations.add(predictions, source_at):
            results.append(result_of(prepared.events, event, EVALUATION_SEQ, evaluation, keyed=False))
        drifts = self._evaluations.drifts(predictions, source_at)
        for event, drift in drifts or ():
            results.append(result_of(prepared.events, event, DRIFT_SEQ, drift, keyed=False))
        said = (predictions.prediction, predictions.guesses.majority, predictions.guesses.last)
        right, majority, no_change = (int(np.count_nonzero(each == predictions.label)) for each in said)
        return Outcome(
            sorted(results, key=attrgetter("place")),
            evaluated=len(predictions.label),
            right=right,
            majority=majority,
            no_change=no_change,
            drifts=None if drifts is None else len(drifts),
        )

    def _records(self, prepared: Prepared, answers: A) -> Iterable[Result]:  # noqa: ARG002
        """Return what the kind writes beside predictions and evaluations, in any order."""
        return ()

    def _predicted(self, evaluations: Evaluations, prepared: Prepared, answers: A) -> Predictions:
        """Return what was predicted of the inserts, by the baselines too; these forget keys that are dropped."""
        op, weight = prepared.op, prepared.events.weight
        told = np.flatnonzero((answers.status == Status.APPLIED) & ((op == Op.INSERT) | (op == Op.DROP)))
        is_insert = op[told] == Op.INSERT
        label = np.where(is_insert, prepared.label[told], np.int32(-1))
        guesses = evaluations.guess(prepared.instance[told], label, weight[told])
        inserts = told[is_insert]
        return Predictions(
            inserts,
            prepared.label[inserts],
            weight[inserts],
            prepared.events.time[inserts],
            answers.predicted[inserts],
            answers.loss[inserts],
            Guesses(guesses.majority[is_insert], guesses.last[is_insert]),
        )

    def _predictions(self, prepared: Prepared, answers: A) -> Iterator[Result]:
        events = prepared.events
        for event, leaf, weights in zip(
            answers.asked.tolist(), answers.leaf.tolist(), answers.weights.tolist(), strict=True
        ):
            label = int(answers.predicted[event])
            prediction = Prediction(
                model=self.name,
                id=id_of(events, event),
                label=None if label < 0 else self._classes[label],
                weights=weights,
                leaf=leaf,
                known=label >= 0,
                source=source_of(prepared.records, events, event),
            )
            yield result_of(events, event, 0, prediction)
