"""Models of kind `dynamic-tree`: a classification tree for each key that forgets what is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from algorithms.core.events import OnDuplicate
from algorithms.dynamic.pool import Answers, DynamicPool
from algorithms.dynamic.state import ALIVE
from worker.codec import Bounds
from worker.models.base import Prepared
from worker.models.holdings import Holdings, keys_of, live_examples, remembered, store_of
from worker.models.port import Outcome
from worker.models.tree_base import TreesModel
from worker.settings.models import DynamicTreeSettings
from worker.watching.status import ModelStatus

_TOLD = ("alpha", "beta", "criterion", "epsilon", "kind", "max_depth", "min_examples", "window")


class DynamicTreeModel(TreesModel[DynamicPool, Answers]):
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
        default, kinds = settings.feature_kinds
        pool = DynamicPool(
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
        self._settings = settings

    def _outcome(self, prepared: Prepared, answers: Answers) -> Outcome:
        changes = int(np.count_nonzero(answers.rebuilt))
        return super()._outcome(prepared, answers)._replace(changes=changes)

    def status(self) -> ModelStatus:
        """Return how large the model is, and how good."""
        return super().status()._replace(examples=self._pool.live_examples)

    def holdings(self) -> Mapping[bytes, Holdings]:
        """Return for each key the live examples and, where every event rebuilds it, the tree."""
        arrays = self.arrays()
        keys, store = keys_of(arrays), store_of(arrays)
        return {
            keys.name(index): Holdings(
                live=live_examples(store, index, self._pool.names, arrays["values"]),
                remembered=remembered(store, index),
                learned=self._plain_tree(index) if self._settings.epsilon == 0.0 else None,
                windowed=self._settings.window is not None,
            )
            for index in np.flatnonzero(arrays["trees"][:, ALIVE]).tolist()
        }

    def _plain_tree(self, index: int) -> list[list[Any]]:
        """Return the tree but for the numbers of its nodes, which tell how often it was rebuilt."""
        columns: list[Any] = list(self._pool.tree(index))
        return [column if isinstance(column, list) else column.tolist() for column in columns[1:]]
