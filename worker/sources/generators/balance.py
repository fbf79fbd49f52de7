"""As many examples of one class as of the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from algorithms.core.arrays import Float64s, Int64s


class Balance:
    """Keeps candidates whose classes alternate, 1 first, as MOA's `balanceClasses` does.

    A candidate of the class that was kept last is dropped. So what is kept is the first candidate of each run of
    one class, which needs no loop over candidates.
    """

    def __init__(self) -> None:
        self._last = 0

    def take(self, draw: Callable[[int], tuple[Float64s, Int64s]], n: int) -> tuple[Float64s, Int64s]:
        """Return n rows and their classes, out of as many candidates as it takes.

        Parameters
        ----------
        draw : callable
            Returns the next candidates: float64[k, ...] and their classes, int64[k], 0 or 1.
        n : int
            How many to keep.
        """
        rows, groups = draw(0)
        while len(rows) < n:
            # Exactly as many as are missing, so that none is left over for the next call.
            candidates, group = draw(n - len(rows))
            kept = np.diff(group, prepend=self._last) != 0
            self._last = int(group[-1])
            rows, groups = np.concatenate([rows, candidates[kept]]), np.concatenate([groups, group[kept]])
        return rows, groups
