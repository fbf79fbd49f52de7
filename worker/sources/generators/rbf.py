"""RBF: the class is that of the centroid around which an example lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.core.arrays import Float64s, Int64s
from worker.sources.generators.draws import MODEL, NORMALS, Draws
from worker.sources.generators.port import NUMERIC, Attribute, Examples, Schema, at_least


@dataclass(eq=False, kw_only=True)
class Rbf:
    """Numeric attributes around random centroids, each with a weight, a deviation and a class.

    The distance from the centroid is normal with its deviation, the direction random. With a speed, centroids
    move before every example and turn round where they meet the walls of [0, 1].

    Bifet, Holmes, Pfahringer, Kirkby and Gavalda: New ensemble methods for evolving data streams. KDD 2009. MOA's
    `RandomRBFGenerator` and `RandomRBFGeneratorDrift`.

    Parameters
    ----------
    classes : int
        2 or more.
    attributes : int
        1 or more.
    centroids : int
        1 or more.
    speed : float
        0 or more: how far centroids move before each example.
    drifting : int
        How many centroids move, from the first.
    model_seed, seed : int
        0 or more: of the centroids, of the examples.
    """

    classes: int = 2
    attributes: int = 10
    centroids: int = 50
    speed: float = 0.0
    drifting: int = 50
    model_seed: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        at_least("classes", self.classes, 2)
        at_least("attributes", self.attributes, 1)
        at_least("centroids", self.centroids, 1)
        at_least("speed", self.speed, 0)
        at_least("drifting", self.drifting, 0)
        at_least("model_seed", self.model_seed, 0)
        at_least("seed", self.seed, 0)
        names = (f"att{number}" for number in range(1, self.attributes + 1))
        self.schema = Schema(tuple(Attribute(name, NUMERIC) for name in names), self.classes)
        draws = Draws(self.model_seed, MODEL)
        drawn = draws.uniform(self.centroids, self.attributes + 3)
        self._centre, (label, self._deviation, weight) = drawn[:, :-3], drawn[:, -3:].T
        self._label = (self.classes * label).astype(np.int64)
        self._cumulated = np.cumsum(weight)
        direction = draws.uniform(min(self.drifting, self.centroids), self.attributes)
        self._velocity = direction / _lengths(direction)[:, np.newaxis] * self.speed
        self._draws, self._normals = Draws(self.seed), Draws(self.seed, NORMALS)

    def take(self, n: int) -> Examples:
        """Return the next n examples."""
        drawn = self._draws.uniform(n, 1 + self.attributes)
        chosen = np.searchsorted(self._cumulated[:-1], drawn[:, 0] * self._cumulated[-1], side="right")
        direction = drawn[:, 1:] * 2.0 - 1.0
        scale = self._normals.normal(n) * self._deviation[chosen] / _lengths(direction)
        centre = self._moving(chosen) if self.speed > 0 else self._centre[chosen]
        return Examples(centre + direction * scale[:, np.newaxis], self._label[chosen])

    def _moving(self, chosen: Int64s) -> Float64s:
        """Return the centre of each chosen centroid at its time, while all that drift move on."""
        centre = np.empty((len(chosen), self.attributes))
        drifting = self._centre[: len(self._velocity)]
        for row, centroid in enumerate(chosen.tolist()):
            drifting += self._velocity
            outside = (drifting < 0.0) | (drifting > 1.0)
            if outside.any():
                np.clip(drifting, 0.0, 1.0, out=drifting)
                self._velocity[outside] *= -1.0
            centre[row] = self._centre[centroid]
        return centre


def _lengths(rows: Float64s) -> Float64s:
    """Return the length of each row, summed from the left: a sum in another order has other last bits."""
    squares = np.zeros(len(rows))
    for column in rows.T:
        squares += column * column
    return np.sqrt(squares)
