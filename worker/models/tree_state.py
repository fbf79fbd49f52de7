"""What all kinds of trees keep: a pool, the keys of its trees, what their predictions were worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy.typing as npt

from algorithms.dynamic.pool import DynamicPool
from algorithms.trees.pool import TreePool
from worker.models.evaluation import Evaluations
from worker.models.keys import Keys
from worker.watching.status import ModelStatus

Pool = TypeVar("Pool", TreePool, DynamicPool)


class TreeState(Generic[Pool]):
    """The state of a model of trees, to be saved, taken up again and looked at."""

    name: str
    _pool: Pool
    _keys: Keys
    _evaluations: Evaluations | None

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        evaluation = self._evaluations.arrays() if self._evaluations is not None else {}
        return self._keys.arrays() | evaluation | self._pool.arrays()

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` of a model with the same settings returned."""
        self._keys.restore(arrays)
        if self._evaluations is not None:
            self._evaluations.restore(arrays)
        self._pool.restore(arrays)

    def status(self) -> ModelStatus:
        """Return how large the model is, and how good."""
        pool = self._pool
        return ModelStatus(
            self.name,
            keys=pool.alive,
            slots=pool.slots,
            examples=pool.live_examples
            if isinstance(pool, DynamicPool)
            else 0,  # a tree that only grows keeps none
            bytes=sum(array.nbytes for array in self.arrays().values()),
            nodes=pool.node_count,
            depth=pool.depth,
            quality=self._evaluations.quality() if self._evaluations is not None else None,
        )

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. For tests."""
        self._pool.check()
        self._keys.check(self._pool.alive)
