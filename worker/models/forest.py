"""Models of kind `forest`: for each key trees that see parts of its examples, vote, and forget what is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import numpy as np

from algorithms.forests.draws import MOST_PARTS
from algorithms.forests.ledger import ALIVE
from algorithms.forests.pool import Answers, ForestPool
from worker.codec import Bounds
from worker.models.dynamic import OF_FLOORS
from worker.models.forgetting import ForgettingTreesModel, learned, pool_terms, told_of
from worker.models.holdings import Example, Holdings, keys_of, remembered, store_of
from worker.settings.models import ForestSettings


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

    LATER: ClassVar[frozenset[str]] = ForgettingTreesModel.LATER | {
        f"trees.{part}.{name}" for part in range(MOST_PARTS) for name in OF_FLOORS
    }

    def __init__(self, name: str, settings: ForestSettings, bounds: Bounds) -> None:
        pool = ForestPool(
            trees=settings.trees,
            subspace=settings.subspace,
            bagging=settings.bagging,
            seed=settings.seed,
            snapshots=settings.emit.snapshots.due,
            threads=settings.threads,
            **pool_terms(settings, bounds),
        )
        super().__init__(name, settings, pool, told_of(settings, ("bagging", "seed", "subspace")))
        self._settings = settings

    def holdings(self) -> Mapping[bytes, Holdings]:
        """Return for each key the live examples and, where they follow from these alone, the trees.

        Of an example there are the features that some tree sees: nobody keeps the others.
        """
        arrays = self.arrays()
        keys, store = keys_of(arrays), store_of(arrays)
        return {
            keys.name(index): Holdings(
                live=self._live(index),
                remembered=remembered(store, index),
                learned=learned(self._settings, partial(self._pool.trees, index)),
                windowed=self._settings.window is not None,
            )
            for index in np.flatnonzero(arrays["keys"][:, ALIVE]).tolist()
        }

    def _live(self, index: int) -> tuple[Example, ...]:
        """Return the live examples of a key, ascending."""
        found = [
            Example(each.id, each.label, each.weight, tuple(sorted(each.features.items())))
            for each in self._pool.live(index)
        ]
        return tuple(sorted(found, key=lambda each: (each.id or (0, 0), each)))
