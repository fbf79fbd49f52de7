"""What all kinds whose predictions are evaluated have in common: what is kept of how good those were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import numpy.typing as npt

from algorithms.core.arrays import Int32s
from algorithms.core.pool import Answered
from worker.models.base import Pool, PoolModel
from worker.watching.status import ModelStatus, Quality

P = TypeVar("P", bound=Pool)
A = TypeVar("A", bound=Answered)


class Kept(Protocol):
    """Evaluations of the predictions of a model, whatever its labels are."""

    def renumber(self, keys: Int32s) -> None:
        """Give keys, which rise, the numbers from 0 on."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the state as named arrays, not copied."""

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` returned."""

    def quality(self) -> Quality:
        """Return how good predictions are."""

    def check(self) -> Int32s:
        """Raise AssertionError unless every invariant holds; return the keys whose labels are kept."""


class EvaluatedModel(PoolModel[P, A]):
    """A model whose predictions are evaluated, if its settings say so; see `PoolModel`."""

    _evaluations: Kept | None

    def _renumber(self, keys: Int32s) -> None:
        if self._evaluations is not None:
            self._evaluations.renumber(keys)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        evaluation = self._evaluations.arrays() if self._evaluations is not None else {}
        return super().arrays() | evaluation

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` of a model with the same settings returned."""
        if self._evaluations is not None:
            self._evaluations.restore(arrays)
        super().restore(arrays)

    def status(self) -> ModelStatus:
        """Return how large the model is, and how good."""
        quality = self._evaluations.quality() if self._evaluations is not None else None
        return super().status()._replace(quality=quality)

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. For tests."""
        super().check()
        if self._evaluations is not None:
            keys = self._evaluations.check()
            assert self._pool.are_alive(keys).all(), "labels of a key that was dropped"
