"""A pool for small kinds of models: of each key some numbers, and nothing else. No feature has a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int32s, Int64s, are_set, extended
from algorithms.core.events import Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.names import Interner
from worker.models.intake import Bools


class Rows:
    """A row of weights for each key, which is alive once it has learned something, until it is dropped.

    Parameters
    ----------
    columns : int
        Numbers of a row.
    keys : int
        Keys at most.

    Attributes
    ----------
    rows : ndarray of int64, shape (n, columns)
        By the numbers of keys, in 2^-20 of an example; not negative, a row sums to less than 2^62.
    """

    names: Interner | None = None

    def __init__(self, columns: int, keys: int) -> None:
        self.rows: Int64s = np.zeros((0, columns), np.int64)
        self._learned: Int64s = np.zeros(0, np.int64)  # 1 of the keys that are alive
        self._keys = keys
        self.alive = 0

    def grow(self, instance: Int32s) -> None:
        """Make room for the keys of a batch."""
        more = int(instance.max(initial=-1)) + 1 - len(self.rows)
        if more > 0:
            keys = len(self.rows) + more
            self.rows, self._learned = extended(self.rows, keys), extended(self._learned, keys)

    def add(self, key: int, column: int, weight: int) -> Status:
        """Add to a number, or take away from it; nothing changes where it is not `APPLIED`. Cost: a row."""
        row = self.rows[key]
        total = int(row.sum()) + weight
        if weight >= 0 and not self._learned[key] and self.alive == self._keys:
            return Status.TOO_MANY_KEYS
        if total >= MAX_TOTAL:
            return Status.COUNT_OVERFLOW
        if row[column] + weight < 0:
            return Status.ABSENT_EXAMPLE
        row[column] += weight
        self.alive += 1 - int(self._learned[key])
        self._learned[key] = 1
        return Status.APPLIED

    def drop(self, key: int) -> Status:
        """Forget a key."""
        self.alive -= int(self._learned[key])
        self.rows[key] = self._learned[key] = 0
        return Status.APPLIED

    def are_alive(self, keys: Int32s) -> Bools:
        """Return which keys have learned something; one that no event came for has no row."""
        return are_set(self._learned, keys)

    def sweep(self, interned: Any) -> None:
        """Forget the names that nothing refers to: there are none."""

    def warm_up(self) -> None:
        """Compile nothing: there are no kernels."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        return {"rows": self.rows, "learned": self._learned}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` returned."""
        self.rows = arrays["rows"]
        # Earlier versions forgot a key once its row was zero.
        self._learned = arrays.get("learned", np.array(self.rows.any(axis=1), np.int64))
        self.alive = int(self._learned.sum())

    def check(self) -> None:
        """Raise AssertionError unless every invariant holds. For tests."""
        assert (self.rows >= 0).all()
        assert all(sum(row) < MAX_TOTAL for row in self.rows.tolist())
        assert set(self._learned.tolist()) <= {0, 1}
        assert self._learned[self.rows.any(axis=1)].all(), "a key that is not alive knows something"
        assert self.alive == self._learned.sum()
