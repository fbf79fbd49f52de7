"""SEA: the class says whether the sum of two of three numbers is above a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.core.arrays import Float64s, Int64s
from worker.sources.generators.balance import Balance
from worker.sources.generators.draws import Draws
from worker.sources.generators.port import NUMERIC, Attribute, Examples, Schema, at_least, within

THRESHOLDS = (8.0, 9.0, 7.0, 9.5)  # of the four concepts, in the order in which the paper lets them follow


@dataclass(eq=False, kw_only=True)
class Sea:
    """Three numeric attributes from [0, 10); class 0 where attrib1 + attrib2 <= threshold, else 1.

    Street and Kim: A streaming ensemble algorithm (SEA) for large-scale classification. KDD 2001. MOA's
    `SEAGenerator`. The paper's abrupt drift is `drift` from one function to the next with width 0.

    Parameters
    ----------
    function : int
        1 to 4: the threshold is 8, 9, 7 or 9.5.
    noise : float
        Percentage of labels that are flipped.
    balance : bool
        Let the classes alternate, before noise.
    seed : int
        0 or more.
    """

    function: int = 1
    noise: float = 10.0
    balance: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        within("function", self.function, 1, len(THRESHOLDS))
        within("noise", self.noise, 0, 100)
        at_least("seed", self.seed, 0)
        self.schema = Schema(tuple(Attribute(f"attrib{number}", NUMERIC) for number in (1, 2, 3)), classes=2)
        self._draws = Draws(self.seed)
        self._balance = Balance()

    def take(self, n: int) -> Examples:
        """Return the next n examples."""
        rows, group = self._balance.take(self._candidates, n) if self.balance else self._candidates(n)
        flipped = 100.0 * rows[:, 3] < self.noise
        return Examples(10.0 * rows[:, :3], group ^ flipped)

    def _candidates(self, n: int) -> tuple[Float64s, Int64s]:
        """Return three numbers and one for the noise, all from [0, 1); and the classes without noise."""
        rows = self._draws.uniform(n, 4)
        above = 10.0 * rows[:, 0] + 10.0 * rows[:, 1] > THRESHOLDS[self.function - 1]
        return rows, above.astype(np.int64)
