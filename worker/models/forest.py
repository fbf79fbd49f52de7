"""Models of kind `forest`: for each key trees that see parts of its examples, vote, and forget what is deleted."""

from __future__ import annotations

from algorithms.forests.pool import Answers, ForestPool
from worker.codec import Bounds
from worker.models.forgetting import TOLD, ForgettingTreesModel, pool_terms
from worker.settings.models import ForestSettings

_TOLD = (*TOLD, "bagging", "seed", "subspace")


class ForestModel(ForgettingTreesModel[ForestPool, Answers]):
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
        pool = ForestPool(
            trees=settings.trees,
            subspace=settings.subspace,
            bagging=settings.bagging,
            seed=settings.seed,
            snapshots=settings.emit.snapshots.due,
            **pool_terms(settings, bounds),
        )
        super().__init__(name, settings, pool, _TOLD)
