"""Two planes: a switch says which of two linear functions tells a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from worker.sources.generators.port import Examples
from worker.sources.generators.ten_numbers import ATTRIBUTES, TenNumbers


@dataclass(eq=False, kw_only=True)
class Planes(TenNumbers):
    """attrib1 is -1 or 1, nine more are -1, 0 or 1; 3 + 3 a + 2 b + c or -3 + 3 d + 2 e + f, and noise.

    Breiman, Friedman, Olshen and Stone: Classification and regression trees. 1984. river's `Planes2D`.
    a, b, c are attrib2 to attrib4 and d, e, f attrib5 to attrib7; the first plane is that of 1. A drift from one
    function to the other turns both over.

    Parameters
    ----------
    function : int
        1, or 2: the negative of the planes.
    noise : float
        The standard deviation of the noise.
    seed : int
        0 or more.
    """

    def take(self, n: int) -> Examples:
        """Return the next n examples."""
        drawn = self._draws.uniform(n, ATTRIBUTES)
        rows = np.floor(3.0 * drawn) - 1.0
        rows[:, 0] = np.where(drawn[:, 0] < 0.5, -1.0, 1.0)
        switch, a, b, c, d, e, f, *_ = rows.T
        plane = np.where(switch > 0.0, 3.0 + 3.0 * a + 2.0 * b + c, -3.0 + 3.0 * d + 2.0 * e + f)
        sign = 1.0 if self.function == 1 else -1.0
        return Examples(rows, sign * plane + self.noise * self._normals.normal(n))
