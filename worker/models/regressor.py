"""What all kinds of trees that predict numbers have in common: predictions, how good those were, snapshots."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any, Protocol, TypeVar

import numpy as np

from algorithms.core import pool as core
from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.events import Op, Status
from algorithms.regression.baselines import Guesses
from algorithms.trees.snapshot import NumberTree as Snapshot
from worker.codec import RegressionPrediction, RegressionTree, Source
from worker.models.awaited import Awaited
from worker.models.base import Pool, Prepared
from worker.models.classifier import EVALUATION_SEQ
from worker.models.evaluated import EvaluatedModel
from worker.models.intake import Intake, id_of, result_of, source_of
from worker.models.port import Outcome, Result
from worker.models.regression_evaluation import Evaluations, Predictions
from worker.models.tree_results import Parameters, in_parts, structure
from worker.settings.models import ExampleSettings
from worker.settings.values import span_of
from worker.watching.status import ModelStatus


class Answered(core.Answered, Protocol):
    """What a pool of trees that predict numbers returns of a batch; a kind knows more of it."""

    @property
    def snapshots(self) -> list[tuple[int, int, Snapshot]]:
        """Those that are due, ascending: event, what a snapshot tells as its version, the tree."""
        ...

    @property
    def predicted(self) -> Float64s:
        """float64[n], the label predicted for an example or on demand, nan: nothing is known."""
        ...

    @property
    def leaf(self) -> Int64s:
        """int64[n], the number of the node that predicted it, 0 where nothing is known."""
        ...

    @property
    def weight(self) -> Float64s:
        """float64[n], of predictions on demand: what the node knows weighs so many examples."""
        ...

    @property
    def variance(self) -> Float64s:
        """float64[n], and has this mean squared deviation."""
        ...


P = TypeVar("P", bound=Pool)
A = TypeVar("A", bound=Answered)


class RegressorModel(EvaluatedModel[P, A]):
    """A model of trees that predict numbers; see `EvaluatedModel`.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    settings : ExampleSettings
        What the settings say of it.
    intake : Intake
        Which labels it takes.
    pool : Pool
        An empty one.
    parameters : Parameters
        What snapshots tell of the settings.
    evaluations : Evaluations, optional
        What evaluates its predictions, if they are evaluated.
    """

    _evaluations: Evaluations | None

    def __init__(
        self,
        name: str,
        settings: ExampleSettings,
        intake: Intake,
        pool: P,
        parameters: Parameters,
        evaluations: Evaluations | None,
    ) -> None:
        awaited = Awaited((), settings.feature_kinds[1], complete=settings.names_all_features)
        window = getattr(settings, "window", None)  # which kinds that only grow have not
        super().__init__(name, intake, pool, awaited, settings.expire, span_of(window))
        self._named = settings.features == "names"
        self._parameters = dict(sorted(parameters.items()))
        self._evaluations = evaluations

    # --- events

    def _outcome(self, prepared: Prepared, answers: A) -> Outcome:
        outcome = Outcome([])
        results = [*self._records(prepared, answers), *self._predictions(prepared, answers)]
        if self._evaluations is not None:
            predictions = self._predicted(self._evaluations, prepared, answers)
            source_at = partial(source_of, prepared.records, prepared.events)
            for event, evaluation in self._evaluations.add(predictions, source_at):
                results.append(result_of(prepared.events, event, EVALUATION_SEQ, evaluation, keyed=False))
            outcome = outcome._replace(evaluated=len(predictions.label), errors=predictions.errors())
        return outcome._replace(results=sorted(results, key=attrgetter("place")))

    def _predicted(self, evaluations: Evaluations, prepared: Prepared, answers: A) -> Predictions:
        """Return what was predicted of the inserts, by the baselines too; these forget keys that are dropped."""
        op, weight = prepared.op, prepared.events.weight
        told = np.flatnonzero((answers.status == Status.APPLIED) & ((op == Op.INSERT) | (op == Op.DROP)))
        is_insert = op[told] == Op.INSERT
        label = np.where(is_insert, prepared.label[told], np.nan)
        guesses = evaluations.guess(prepared.instance[told], label, weight[told])
        inserts = told[is_insert]
        margin = self._margin(answers)
        return Predictions(
            inserts,
            prepared.label[inserts],
            weight[inserts],
            prepared.events.time[inserts],
            answers.predicted[inserts],
            Guesses(*(each[is_insert] for each in guesses)),
            None if margin is None else margin[inserts],
        )

    def _margin(self, answers: A) -> Float64s | None:  # noqa: ARG002
        """Return half the widths of the intervals around what was predicted, None where there are none."""
        return None

    # --- results

    def _records(self, prepared: Prepared, answers: A) -> Iterable[Result]:
        """Yield what a kind writes beside predictions and evaluations, in any order: snapshots."""
        for event, version, tree in answers.snapshots:
            source = source_of(prepared.records, prepared.events, event)
            yield from in_parts(prepared.result, event, [self._tree(version, tree, source)])

    def _tree(self, version: int, tree: Snapshot, source: Source) -> RegressionTree:
        return RegressionTree(
            model=self.name,
            version=version,
            chunk=0,
            chunks=1,
            **structure(tree, named=self._named),
            n=tree.weight.tolist(),
            value=np.nan_to_num(tree.mean, nan=0.0).tolist(),  # of a tree without examples
            variance=tree.variance.tolist(),
            parameters=self._parameters,
            source=source,
        )

    def _predictions(self, prepared: Prepared, answers: A) -> Iterator[Result]:
        events, margins = prepared.events, self._margin(answers)
        for event in np.flatnonzero(prepared.op == Op.PREDICT).tolist():
            value = float(answers.predicted[event])
            known = not math.isnan(value)
            margin = math.nan if margins is None else float(margins[event])
            has_interval = not math.isnan(margin)
            prediction = RegressionPrediction(
                model=self.name,
                id=id_of(events, event),
                value=value if known else None,
                n=float(answers.weight[event]),
                deviation=math.sqrt(answers.variance[event]),
                leaf=int(answers.leaf[event]),
                known=known,
                source=source_of(prepared.records, events, event),
                low=value - margin if has_interval else None,
                high=value + margin if has_interval else None,
            )
            yield result_of(events, event, 0, prediction)

    # --- state

    def status(self) -> ModelStatus:
        """Return how large the model is, and how good."""
        pool: Any = self._pool
        return super().status()._replace(slots=pool.slots, nodes=pool.node_count, depth=pool.depth)
