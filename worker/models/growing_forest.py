"""Models of kind `forest` of trees that grow: for each key trees that vote, and are replaced where they drift."""

from __future__ import annotations

from algorithms.forests.growing import Answers, GrowingForestPool
from algorithms.trees.predict import Predict
from worker.codec import Bounds
from worker.models.growing import GrowingTreesModel
from worker.models.tree import TOLD
from worker.models.tree_base import told_of
from worker.settings.models import GrowingForestSettings, TreeSettings
from worker.watching.status import ModelStatus

_TOLD = ("bagging", "drift", "seed", "subspace", "warning")


class GrowingForestModel(GrowingTreesModel[GrowingForestPool, Answers]):
    """All instances of one model name in one partition.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    settings : GrowingForestSettings
        What the settings say of it.
    bounds : Bounds
        Of which `keys` holds for it.
    """

    def __init__(self, name: str, settings: GrowingForestSettings, bounds: Bounds) -> None:
        default, kinds = settings.feature_kinds
        of = settings.of
        pool = GrowingForestPool(
            trees=settings.trees,
            subspace=settings.subspace,
            bagging=settings.bagging,
            seed=settings.seed,
            warning=settings.warning,
            drift=settings.drift,
            policy=of.policy,
            criterion=of.criterion,
            predict=Predict[of.predict.upper()],
            grace_period=of.grace_period,
            split_confidence=of.split_confidence,
            tie_threshold=of.tie_threshold,
            inherit=of.inherit,
            local_range=of.local_range,
            max_depth=of.max_depth,
            classes=len(settings.classes),
            default=default,
            kinds=kinds,
            radius=settings.attributes.radius,
            radius_fraction=settings.attributes.radius_fraction or 0.5,
            names=settings.features == "names",
            max_keys=bounds.keys,
            snapshots=settings.emit.snapshots.due,
            threads=settings.threads,
        )
        told = told_of(of, TOLD, TreeSettings.recorded) | told_of(settings, _TOLD)
        super().__init__(name, settings, pool, told | {"kind": settings.kind})

    def status(self) -> ModelStatus:
        """Return how large the model is, how good, and how often its trees were replaced."""
        done = self._pool.replacements
        return super().status()._replace(warnings=done.warnings, drifts=done.drifts)

    def _changes(self, answers: Answers) -> int:
        return answers.changes
