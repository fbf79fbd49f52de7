"""Models of kind `dynamic-tree`: a classification tree for each key that forgets what is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import numpy as np

from algorithms.dynamic.pool import Answers, DynamicPool
from algorithms.dynamic.state import ALIVE
from algorithms.trees.snapshot import Tree
from worker.codec import Bounds
from worker.models.forgetting import ForgettingTreesModel, learned, pool_terms, told_of
from worker.models.holdings import Holdings, keys_of, live_examples, remembered, store_of
from worker.settings.models import DynamicTreeSettings

_OF_VALUES = [f"values.{name}" for name in ("cells", "used", "keys", "rows", "taken", "longest")]


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

    LATER: ClassVar[frozenset[str]] = ForgettingTreesModel.LATER | {
        f"aside.{name}" for name in ("heads", "counted", "seen.table", "seen.cells", "seen.used", *_OF_VALUES)
    }

    def __init__(self, name: str, settings: DynamicTreeSettings, bounds: Bounds) -> None:
        pool = DynamicPool(
            snapshots=settings.emit.snapshots.due, max_work=settings.max_work, **pool_terms(settings, bounds)
        )
        super().__init__(name, settings, pool, told_of(settings))
        self._settings = settings

    def holdings(self) -> Mapping[bytes, Holdings]:
        """Return for each key the live examples and, where that follows from them alone, the tree."""
        arrays = self.arrays()
        keys, store = keys_of(arrays), store_of(arrays)
        return {
            keys.name(index): Holdings(
                live=live_examples(store, index, self._pool.names, arrays["values"]),
                remembered=remembered(store, index),
                learned=learned(self._settings, partial(self._trees_of, index)),
                windowed=self._settings.window is not None,
            )
            for index in np.flatnonzero(arrays["trees"][:, ALIVE]).tolist()
        }

    def _trees_of(self, index: int) -> list[Tree]:
        return [self._pool.tree(index)]
