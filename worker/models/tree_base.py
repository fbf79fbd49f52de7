"""What all kinds of trees have in common: kinds of features, evaluation, what they write and keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import UInt32s
from algorithms.core.events import Op, Status
from algorithms.dynamic.pool import Answers as DynamicAnswers
from algorithms.dynamic.pool import DynamicPool
from algorithms.trees.answers import Answers as TreeAnswers
from algorithms.trees.pool import TreePool
from worker.codec import Events, Reason
from worker.models.base import PoolModel, Prepared
from worker.models.evaluation import Evaluations
from worker.models.intake import Bools, Intake
from worker.models.port import Outcome, Result
from worker.models.tree_results import Parameters, TreeResults, place
from worker.models.values import judged_values
from worker.settings.models import DynamicTreeSettings, TreeSettings
from worker.watching.status import ModelStatus

P = TypeVar("P", bound=TreePool | DynamicPool)
A = TypeVar("A", bound=TreeAnswers | DynamicAnswers)


class TreesModel(PoolModel[P, A]):
    """A model of trees; see `PoolModel`.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    settings : TreeSettings or DynamicTreeSettings
        What the settings say of it.
    pool : TreePool or DynamicPool
        An empty one.
    parameters : sequence of str
        Settings that snapshots tell.
    """

    def __init__(
        self, name: str, settings: TreeSettings | DynamicTreeSettings, pool: P, parameters: Sequence[str]
    ) -> None:
        super().__init__(name, Intake(settings.classes, settings.features), pool)
        rules = settings.evaluate
        self._evaluations = Evaluations(name, settings.classes, rules) if rules is not None else None
        told: Parameters = {each: getattr(settings, each) for each in sorted(parameters)}
        named = settings.features == "names"
        self._trees = TreeResults(name, settings.classes, named, told, self._evaluations)

    def _wrong_values(self, feature: UInt32s, events: Events) -> tuple[Bools, Callable[[int], tuple[Reason, str]]]:
        values = judged_values(self._pool.kinds_of(feature), events.value)
        return values.wrong, lambda event: values.detail(events, event)

    def _outcome(self, prepared: Prepared, answers: A) -> Outcome:
        records, events, label = prepared.records, prepared.events, prepared.label
        evaluated = np.zeros(0, np.int64)  # events whose predictions are judged: inserts
        if self._evaluations is not None:
            evaluated = np.flatnonzero((answers.status == Status.APPLIED) & (prepared.op == Op.INSERT))
        results = [
            *self._splits(prepared, answers),
            *self._trees.results(records, events, label, evaluated, answers),
        ]
        right = np.count_nonzero(answers.guess[evaluated] == label[evaluated])
        return Outcome(sorted(results, key=place), judged=len(evaluated), right=int(right))

    def _splits(self, prepared: Prepared, answers: A) -> Iterable[Result]:  # noqa: ARG002
        """Return the records of nodes that split."""
        return ()

    # --- state

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        evaluation = self._evaluations.arrays() if self._evaluations is not None else {}
        return self._keys.arrays() | evaluation | self._pool.arrays()

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` of a model with the same settings returned."""
        if self._evaluations is not None:
            self._evaluations.restore(arrays)
        super().restore(arrays)

    def status(self) -> ModelStatus:
        """Return how large the model is, and how good."""
        pool = self._pool
        return ModelStatus(
            self.name,
            keys=pool.alive,
            slots=pool.slots,
            examples=pool.live_examples if isinstance(pool, DynamicPool) else 0,  # others keep none
            bytes=sum(array.nbytes for array in self.arrays().values()),
            nodes=pool.node_count,
            depth=pool.depth,
            quality=self._evaluations.quality() if self._evaluations is not None else None,
        )
