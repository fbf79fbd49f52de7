"""Models of kind `forest`: for each key trees that see parts of its examples, vote, and forget what is deleted."""

from __future__ import annotations

import numpy as np

from algorithms.core.events import OnDuplicate
from algorithms.forests.pool import Answers, ForestPool
from worker.codec import Bounds
from worker.models.base import Prepared
from worker.models.port import Outcome
from worker.models.tree_base import TreesModel
from worker.settings.models import ForestSettings
from worker.watching.status import ModelStatus

_OF_TREES = ("alpha", "beta", "criterion", "epsilon", "kind", "max_depth", "min_examples", "window")
_TOLD = (*_OF_TREES, "bagging", "seed", "subspace")


class ForestModel(TreesModel[ForestPool, Answers]):
    """All instances of one model name in one partition.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    settings : ForestSettings
        What the settings say of it.
    bounds : Bounds
        Of which `keys` and `live_ids` hold for it.
    """

    def __init__(self, name: str, settings: ForestSettings, bounds: Bounds) -> None:
        default, kinds = settings.feature_kinds
        pool = ForestPool(
            trees=settings.trees,
            subspace=settings.subspace,
            bagging=settings.bagging,
            seed=settings.seed,
            epsilon=settings.epsilon,
            alpha=settings.alpha,
            beta=settings.beta,
            min_examples=settings.min_examples,
            max_depth=settings.max_depth,
            criterion=settings.criterion,
            classes=len(settings.classes),
            default=default,
            kinds=kinds,
            window=settings.window,
            on_duplicate=OnDuplicate[settings.on_duplicate.upper()],
            names=settings.features == "names",
            evaluate=settings.evaluate is not None,
            max_keys=bounds.keys,
            max_live_ids=bounds.live_ids,
            snapshots=settings.emit.snapshots.due,
        )
        super().__init__(name, settings, pool, _TOLD)

    def _outcome(self, prepared: Prepared, answers: Answers) -> Outcome:
        changes = int(np.count_nonzero(answers.rebuilt))
        return super()._outcome(prepared, answers)._replace(changes=changes)

    def status(self) -> ModelStatus:
        """Return how large the model is, and how good."""
        return super().status()._replace(examples=self._pool.live_examples)
