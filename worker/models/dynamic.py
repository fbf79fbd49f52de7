"""Models of kind `dynamic-tree`: a classification tree for each key that forgets what is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from algorithms.dynamic.pool import Answers, DynamicPool
from algorithms.dynamic.state import ALIVE
from worker.codec import Bounds
from worker.models.forgetting import TOLD, ForgettingTreesModel, pool_terms
from worker.models.holdings import Holdings, keys_of, live_examples, remembered, store_of
from worker.settings.models import DynamicTreeSettings


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

    def __init__(self, name: str, settings: DynamicTreeSettings, bounds: Bounds) -> None:
        pool = DynamicPool(
            guarantee=settings.guarantee, snapshots=settings.emit.snapshots.due, **pool_terms(settings, bounds)
        )
        told = [each for each in (*TOLD, "guarantee") if getattr(settings, each) is not None or each == "window"]
        super().__init__(name, settings, pool, told)
        self._settings = settings

    def holdings(self) -> Mapping[bytes, Holdings]:
        """Return for each key the live examples and, where that follows from them alone, the tree."""
        arrays = self.arrays()
        keys, store = keys_of(arrays), store_of(arrays)
        return {
            keys.name(index): Holdings(
                live=live_examples(store, index, self._pool.names, arrays["values"]),
                remembered=remembered(store, index),
                learned=self._learned(index),
                windowed=self._settings.window is not None,
            )
            for index in np.flatnonzero(arrays["trees"][:, ALIVE]).tolist()
        }

    def _learned(self, index: int) -> list[list[Any]] | None:
        """Return the tree; with epsilon 0 not the numbers of its nodes, which tell how often it was rebuilt."""
        is_exact = self._settings.guarantee == "exact"
        if not is_exact and self._settings.epsilon != 0.0:
            return None
        columns: list[Any] = list(self._pool.tree(index))
        return [
            column if isinstance(column, list) else column.tolist() for column in columns[0 if is_exact else 1 :]
        ]
