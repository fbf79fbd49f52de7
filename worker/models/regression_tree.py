"""Models of kind `regression-tree`: for each key a tree that grows with its examples and predicts a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from algorithms.core.arrays import Float64s, UInt32s
from algorithms.core.events import Events as Columns
from algorithms.core.events import Op
from algorithms.core.kinds import Kind
from algorithms.regression.answers import Answers
from algorithms.regression.answers import Split as Made
from algorithms.regression.pool import RegressionPool
from worker.codec import Bounds, Events, RegressionSplit, Source
from worker.models.base import Prepared
from worker.models.classifier import SPLIT_SEQ
from worker.models.intake import NOTHING, NumberIntake, result_of, source_of
from worker.models.port import Outcome, Result
from worker.models.regression_evaluation import Evaluations
from worker.models.regressor import RegressorModel
from worker.models.tree_results import Parameters
from worker.models.values import Values, checked_values
from worker.settings.models import RegressionTreeSettings

_TOLD = (
    "kind",
    "observer",
    "split_confidence",
    "tie_threshold",
)  # by snapshots, and how leaves predict unless it is the mean


class RegressionTreeModel(RegressorModel[RegressionPool, Answers]):
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
        self._settings = settings
        names = _TOLD if settings.predict == "mean" else (*_TOLD, "predict")
        told: Parameters = {settings.recorded(each): getattr(settings, each) for each in names}
        rules = settings.evaluate
        evaluations = (
            None if rules is None else Evaluations(name, rules, has_intervals=settings.interval is not None)
        )
        super().__init__(name, settings, NumberIntake(settings.features), pool, told, evaluations)

    # --- events

    def _looks_at_deletes(self) -> bool:
        return False  # it cannot take any

    def _checked(self, feature: UInt32s, events: Events) -> Values:
        return checked_values(self._pool.kinds_of(feature), events.value)

    def _columns(self, prepared: Prepared) -> Columns:
        columns = prepared.columns()
        if self._settings.on_delete != "ignore":
            return columns
        return columns._replace(op=np.where(columns.op == Op.DELETE, NOTHING, columns.op))

    def _outcome(self, prepared: Prepared, answers: Answers) -> Outcome:
        ignored = self._settings.on_delete == "ignore"
        outcome = super()._outcome(prepared, answers)
        deletes = int(np.count_nonzero(prepared.op == Op.DELETE)) if ignored else 0
        return outcome._replace(changes=len(answers.splits), deletes_ignored=deletes)

    def _margin(self, answers: Answers) -> Float64s | None:
        return answers.margin

    # --- results

    def _records(self, prepared: Prepared, answers: Answers) -> Iterator[Result]:
        """Yield splits and snapshots."""
        if self._settings.emit.splits != "never":
            for made in answers.splits:
                source = source_of(prepared.records, prepared.events, made.event)
                yield result_of(prepared.events, made.event, SPLIT_SEQ, self._split(made, source))
        yield from super()._records(prepared, answers)

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
