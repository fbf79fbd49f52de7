"""LED: the digit on a display of seven segments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from worker.sources.generators.draws import Draws
from worker.sources.generators.port import BINARY, Attribute, Examples, Schema, at_least, within

SEGMENTS = 7
IRRELEVANT = 17
# Top, upper left, upper right, middle, lower left, lower right, bottom; bool[10, 7].
DIGITS = np.array(
    [
        [1, 1, 1, 0, 1, 1, 1],
        [0, 0, 1, 0, 0, 1, 0],
        [1, 0, 1, 1, 1, 0, 1],
        [1, 0, 1, 1, 0, 1, 1],
        [0, 1, 1, 1, 0, 1, 0],
        [1, 1, 0, 1, 0, 1, 1],
        [1, 1, 0, 1, 1, 1, 1],
        [1, 0, 1, 0, 0, 1, 0],
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 0, 1, 1],
    ],
    bool,
)


@dataclass(eq=False, kw_only=True)
class Led:
    """Seven binary attributes, the segments, and 17 that say nothing; the class is the digit.

    Breiman, Friedman, Olshen and Stone: Classification and regression trees. Wadsworth, 1984. MOA's `LEDGenerator`
    and `LEDGeneratorDrift`.

    Parameters
    ----------
    noise : float
        Percentage of segments that show the opposite.
    drift : int
        0 to 7: how many segments, from the first, have changed places with irrelevant attributes.
    irrelevant : bool
        Whether the 17 are there.
    seed : int
        0 or more.
    """

    noise: float = 10.0
    drift: int = 0
    irrelevant: bool = True
    seed: int = 1

    def __post_init__(self) -> None:
        within("noise", self.noise, 0, 100)
        within("drift", self.drift, 0, SEGMENTS)
        at_least("seed", self.seed, 0)
        if self.drift and not self.irrelevant:
            raise ValueError(
                f"expected drift=0 with irrelevant=false, got drift={self.drift}; there are no places to change"
            )
        count = SEGMENTS + (IRRELEVANT if self.irrelevant else 0)
        self.schema = Schema(
            tuple(Attribute(f"att{number}", BINARY) for number in range(1, count + 1)), classes=10
        )
        self._draws = Draws(self.seed)
        # place[j]: where the value that is made as the j-th goes.
        self._place = np.arange(count)
        if self.irrelevant:
            moved = np.arange(self.drift)
            self._place[moved], self._place[SEGMENTS + moved] = SEGMENTS + moved, moved

    def take(self, n: int) -> Examples:
        """Return the next n examples."""
        count = len(self._place)
        drawn = self._draws.uniform(n, 1 + count)
        digit = (10.0 * drawn[:, 0]).astype(np.int64)
        value = np.empty((n, count))
        value[:, self._place[:SEGMENTS]] = DIGITS[digit] ^ (100.0 * drawn[:, 1 : 1 + SEGMENTS] < self.noise)
        value[:, self._place[SEGMENTS:]] = drawn[:, 1 + SEGMENTS :] >= 0.5
        return Examples(value, digit)
