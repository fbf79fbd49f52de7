"""Models of kind `dynamic-tree`: a classification tree for each key that forgets what is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from algorithms.dynamic.pool import Answers, DynamicPool
from algorithms.trees.snapshot import Tree
from worker.codec import Bounds
from worker.models.forgetting import ForgettingTreesModel, holdings_of, pool_terms, told_of
from worker.models.holdings import Holdings
from worker.settings.models import DynamicTreeSettings

_OF_VALUES = [f"values.{name}" for name in ("cells", "used", "keys", "rows", "taken", "longest")]
_OF_BANDS = ("of", "heads", "edges", "least", "floors", "sums", "before", "gone", "whole", "used")
# Since thresholds have bands, and since it is known which examples of a scan are still there.
OF_FLOORS = {*(f"slack.bands.{name}" for name in _OF_BANDS), "slack.seen", "slack.old", "slack.lightest"}
LATER = OF_FLOORS | {  # since rebuilds are spread, and since floors of columns are there for classes
    *(f"aside.{name}" for name in ("heads", "counted", "seen.table", "seen.cells", "seen.used", *_OF_VALUES)),
    *(f"slack.columns.{name}" for name in ("features", "floors", "sizes", "lost", "extremes")),
}


class DynamicTreeModel(ForgettingTreesModel[DynamicPool, Answers]):
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

    LATER: ClassVar[frozenset[str]] = ForgettingTreesModel.LATER | LATER

    def __init__(self, name: str, settings: DynamicTreeSettings, bounds: Bounds) -> None:
        pool = DynamicPool(snapshots=settings.emit.snapshots.due, **pool_terms(settings, bounds))
        super().__init__(name, settings, pool, told_of(settings))
        self._settings = settings

    def holdings(self) -> Mapping[bytes, Holdings]:
        """Return for each key the live examples and, where that follows from them alone, the tree."""
        return holdings_of(self._settings, self.arrays(), self._pool.names, self._trees_of)

    def _trees_of(self, index: int) -> list[Tree]:
        return [self._pool.tree(index)]
