"""Models of kind `regression-tree`: for each key a tree that grows with its examples and predicts a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int32s, UInt32s
from algorithms.core.events import Events as Columns
from algorithms.core.events import Op, Status
from algorithms.core.kinds import Kind
from algorithms.regression.answers import Answers
from algorithms.regression.answers import Split as Made
from algorithms.regression.answers import Tree as Snapshot
from algorithms.regression.baselines import Guesses
from algorithms.regression.pool import RegressionPool
from worker.codec import (
    Bounds,
    Events,
    Reason,
    RegressionPrediction,
    RegressionSplit,
    RegressionTree,
    Source,
)
from worker.models.awaited import Awaited
from worker.models.base import PoolModel, Prepared
from worker.models.classifier import EVALUATION_SEQ, SPLIT_SEQ
from worker.models.intake import NOTHING, Bools, NumberIntake, id_of, result_of, source_of
from worker.models.port import Outcome, Result
from worker.models.regression_evaluation import Evaluations, Predictions
from worker.models.tree_results import Parameters, in_parts, structure
from worker.models.values import checked_values
from worker.settings.models import RegressionTreeSettings
from worker.watching.status import ModelStatus

_TOLD = (
    "kind",
    "observer",
    "split_confidence",
    "tie_threshold",
)  # by snapshots, and how leaves predict unless it is the mean


class RegressionTreeModel(PoolModel[RegressionPool, Answers]):
    """All instances of one model name in one partition.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    settings : RegressionTreeSettings
        What the settings say of it.
    bounds : Bounds
        Of which `keys` holds for it.
    """

    LATER: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, name: str, settings: RegressionTreeSettings, bounds: Bounds) -> None:
        default, kinds = settings.feature_kinds
        pool = RegressionPool(
            observer=settings.observer,
            options=settings.observer_options,
            predict=settings.predict,
            interval=settings.interval,
            grace_period=settings.grace_period,
            split_confidence=settings.split_confidence,
            tie_threshold=settings.tie_threshold,
            default=default,
            kinds=kinds,
            names=settings.features == "names",
            max_keys=bounds.keys,
            max_depth=settings.max_depth,
            memory_limit=settings.memory_limit,
            snapshots=settings.emit.snapshots.due,
        )
        awaited = Awaited((), kinds, complete=settings.names_all_features)
        super().__init__(name, NumberIntake(settings.features), pool, awaited, settings.expire)
        self._settings = settings
        names = _TOLD if settings.predict == "mean" else (*_TOLD, "predict")
        told = {settings.recorded(each): getattr(settings, each) for each in names}
        self._parameters: Parameters = dict(sorted(told.items()))
        rules = settings.evaluate
        self._evaluations = (
            None if rules is None else Evaluations(name, rules, has_intervals=settings.interval is not None)
        )

    # --- events

    def _looks_at_deletes(self) -> bool:
        return False  # it cannot take any

    def _wrong_values(self, feature: UInt32s, events: Events) -> tuple[Bools, Callable[[int], tuple[Reason, str]]]:
        values = checked_values(self._pool.kinds_of(feature), events.value)
        return values.wrong, lambda event: values.detail(events, event)

    def _columns(self, prepared: Prepared) -> Columns:
        columns = prepared.columns()
        if self._settings.on_delete != "ignore":
            return columns
        return columns._replace(op=np.where(columns.op == Op.DELETE, NOTHING, columns.op))

    def _outcome(self, prepared: Prepared, answers: Answers) -> Outcome:
        ignored = self._settings.on_delete == "ignore"
        outcome = Outcome(
            [],
            changes=len(answers.splits),
            deletes_ignored=int(np.count_nonzero(prepared.op == Op.DELETE)) if ignored else 0,
        )
        results = [*self._records(prepared, answers), *self._predictions(prepared, answers)]
        if self._evaluations is not None:
            predictions = self._predicted(self._evaluations, prepared, answers)
            source_at = partial(source_of, prepared.records, prepared.events)
            for event, evaluation in self._evaluations.add(predictions, source_at):
                results.append(result_of(prepared.events, event, EVALUATION_SEQ, evaluation, keyed=False))
            outcome = outcome._replace(evaluated=len(predictions.label), errors=predictions.errors())
        return outcome._replace(results=sorted(results, key=attrgetter("place")))

    def _predicted(self, evaluations: Evaluations, prepared: Prepared, answers: Answers) -> Predictions:
        """Return what was predicted of the inserts, by the baselines too; these forget keys that are dropped."""
        op, weight = prepared.op, prepared.events.weight
        told = np.flatnonzero((answers.status == Status.APPLIED) & ((op == Op.INSERT) | (op == Op.DROP)))
        is_insert = op[told] == Op.INSERT
        label = np.where(is_insert, prepared.label[told], np.nan)
        guesses = evaluations.guess(prepared.instance[told], label, weight[told])
        inserts = told[is_insert]
        return Predictions(
            inserts,
            prepared.label[inserts],
            weight[inserts],
            prepared.events.time[inserts],
            answers.predicted[inserts],
            Guesses(*(each[is_insert] for each in guesses)),
            None if answers.margin is None else answers.margin[inserts],
        )

    # --- results

    def _records(self, prepared: Prepared, answers: Answers) -> Iterator[Result]:
        """Yield splits and snapshots."""
        source_at = partial(source_of, prepared.records, prepared.events)
        if self._settings.emit.splits != "never":
            for made in answers.splits:
                split = self._split(made, source_at(made.event))
                yield result_of(prepared.events, made.event, SPLIT_SEQ, split)
        for event, version, tree in answers.snapshots:
            yield from in_parts(prepared.result, event, [self._tree(version, tree, source_at(event))])

    def _split(self, made: Made, source: Source) -> RegressionSplit:
        return RegressionSplit(
            model=self.name,
            node=made.node,
            feature=made.feature.decode() if isinstance(made.feature, bytes) else made.feature,
            kind=made.kind.name.lower(),
            threshold=made.threshold if made.kind == Kind.NUMERIC else None,
            merit=made.merit,
            runner_up_merit=made.second,
            n=made.labels.weight,
            value=made.labels.mean,
            variance=made.labels.variance,
            branches=made.branches,
            labels=[(side.weight, side.mean, side.variance) for side in made.sides],
            source=source,
        )

    def _tree(self, version: int, tree: Snapshot, source: Source) -> RegressionTree:
        return RegressionTree(
            model=self.name,
            version=version,
            chunk=0,
            chunks=1,
            **structure(tree, named=self._settings.features == "names"),
            n=tree.weight.tolist(),
            value=tree.mean.tolist(),
            variance=tree.variance.tolist(),
            parameters=self._parameters,
            source=source,
        )

    def _predictions(self, prepared: Prepared, answers: Answers) -> Iterator[Result]:
        events = prepared.events
        for event in np.flatnonzero(prepared.op == Op.PREDICT).tolist():
            value = float(answers.predicted[event])
            known = not math.isnan(value)
            margin = math.nan if answers.margin is None else float(answers.margin[event])
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

    def _renumber(self, keys: Int32s) -> None:
        if self._evaluations is not None:
            self._evaluations.renumber(keys)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        evaluation = self._evaluations.arrays() if self._evaluations is not None else {}
        return super().arrays() | evaluation

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` of a model with the same settings returned."""
        if self._evaluations is not None:
            self._evaluations.restore(arrays)
        super().restore(arrays)

    def status(self) -> ModelStatus:
        """Return how large the model is, and how good."""
        pool = self._pool
        quality = self._evaluations.quality() if self._evaluations is not None else None
        size = super().status()
        return size._replace(slots=pool.slots, nodes=pool.node_count, depth=pool.depth, quality=quality)

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. For tests."""
        super().check()
        if self._evaluations is not None:
            keys = self._evaluations.check()
            assert self._pool.are_alive(keys).all(), "labels of a key that was dropped"
