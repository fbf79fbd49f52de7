"""A pool for small kinds of models: of each key some numbers, and nothing else. No feature has a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int32s, Int64s
from algorithms.core.events import Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.names import Interner
from worker.models.intake import Bools


class Rows:
    """A row of weights for each key; a key whose row is zero has learned nothing.

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
        self._keys = keys
        self.alive = 0

    def grow(self, instance: Int32s) -> None:
        """Make room for the keys of a batch."""
        more = int(instance.max(initial=-1)) + 1 - len(self.rows)
        if more > 0:
            self.rows = np.concatenate([self.rows, np.zeros((more, self.rows.shape[1]), np.int64)])

    def add(self, key: int, column: int, weight: int) -> Status:
        """Add to a number, or take away from it; nothing changes where it is not `APPLIED`. Cost: a row."""
        row = self.rows[key]
        was_alive, total = bool(row.any()), int(row.sum()) + weight
        if weight >= 0 and not was_alive and self.alive == self._keys:
            return Status.TOO_MANY_KEYS
        if total >= MAX_TOTAL:
            return Status.COUNT_OVERFLOW
        if row[column] + weight < 0:
            return Status.ABSENT_EXAMPLE
        row[column] += weight
        self.alive += int(total > 0) - int(was_alive)
        return Status.APPLIED

    def drop(self, key: int) -> Status:
        """Forget a key."""
        self.alive -= int(self.rows[key].any())
        self.rows[key] = 0
        return Status.APPLIED

    def are_alive(self, keys: Int32s) -> Bools:
        """Return which keys have learned something; one that no event came for has no row."""
        alive = np.zeros(len(keys), np.bool_)
        has_row = keys < len(self.rows)
        alive[has_row] = self.rows[keys[has_row]].any(axis=1)
        return alive

    def sweep(self, interned: Any) -> None:
        """Forget the names that nothing refers to: there are none."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        return {"rows": self.rows}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` returned."""
        self.rows = arrays["rows"]
        self.alive = int(np.count_nonzero(self.rows.any(axis=1)))

    def check(self) -> None:
        """Raise AssertionError unless every invariant holds. For tests."""
        assert (self.rows >= 0).all()
        assert all(sum(row) < MAX_TOTAL for row in self.rows.tolist())
        assert self.alive == np.count_nonzero(self.rows.any(axis=1))
