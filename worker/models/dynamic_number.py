"""Models of kind `dynamic-tree` whose labels are numbers: a tree for each key that forgets what is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from algorithms.dynamic.numbers import DynamicNumberPool, NumberAnswers
from algorithms.trees.snapshot import NumberTree as Tree
from worker.codec import Bounds
from worker.models.base import Prepared
from worker.models.dynamic import OF_FLOORS
from worker.models.forgetting import holdings_of, shared_terms, told_of
from worker.models.holdings import Holdings
from worker.models.intake import RangeIntake
from worker.models.port import Outcome
from worker.models.regression_evaluation import Evaluations
from worker.models.regressor import RegressorModel
from worker.models.two_kinds import TwoKindsModel
from worker.settings.models import DynamicTreeSettings
from worker.watching.status import ModelStatus

_TOLD = ("label_unit",)  # by snapshots, beside what those of classes tell
_OF_CLASSES = ("alpha",)


class DynamicNumberModel(
    TwoKindsModel[DynamicNumberPool, NumberAnswers], RegressorModel[DynamicNumberPool, NumberAnswers]
):
    """All instances of one model name in one partition.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    settings : DynamicTreeSettings
        What the settings say of it.
    bounds : Bounds
        Of which `keys` and `live_ids` hold for it.
    """

    LATER: ClassVar[frozenset[str]] = RegressorModel.LATER | OF_FLOORS

    def __init__(self, name: str, settings: DynamicTreeSettings, bounds: Bounds) -> None:
        self._settings = settings
        pool = DynamicNumberPool(
            settings.scale, snapshots=settings.emit.snapshots.due, **shared_terms(settings, bounds)
        )
        left_out = _OF_CLASSES if settings.beta else (*_OF_CLASSES, "beta")
        told = {name: each for name, each in told_of(settings, _TOLD).items() if name not in left_out}
        evaluations = None if settings.evaluate is None else Evaluations(name, settings.evaluate)
        super().__init__(name, settings, RangeIntake(settings.scale, settings.features), pool, told, evaluations)
        self._take_kinds(settings)

    def _outcome(self, prepared: Prepared, answers: NumberAnswers) -> Outcome:
        changes = int(np.count_nonzero(answers.rebuilt))
        return super()._outcome(prepared, answers)._replace(changes=changes)

    def status(self) -> ModelStatus:
        """Return how large the model is, and how good."""
        return super().status()._replace(examples=self._pool.live_examples)

    def holdings(self) -> Mapping[bytes, Holdings]:
        """Return for each key the live examples and, where that follows from them alone, the tree."""
        return holdings_of(self._settings, self.arrays(), self._pool.names, self._trees_of)

    def _trees_of(self, index: int) -> list[Tree]:
        tree = self._pool.tree(index)
        return [tree._replace(mean=np.nan_to_num(tree.mean, nan=0.0))]  # of one without examples
