"""Friedman's function: five of ten numbers tell a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.core.arrays import Float64s
from worker.sources.generators.port import Examples
from worker.sources.generators.ten_numbers import ATTRIBUTES, TenNumbers

_PI = 3.141592653589793  # written out for its last bit


@dataclass(eq=False, kw_only=True)
class Friedman(TenNumbers):
    """Ten numeric attributes a, b, .. from [0, 1); 10 sin(pi a b) + 20 (c - 1/2)^2 + 10 d + 5 e, and noise.

    Friedman: Multivariate adaptive regression splines. The Annals of Statistics 19, 1991. river's `Friedman`. A
    drift from one function to the other lets other attributes tell the label.

    Parameters
    ----------
    function : int
        1: attrib1 to attrib5 tell the label; 2: attrib10 down to attrib6 do.
    noise : float
        The standard deviation of the noise.
    seed : int
        0 or more.
    """

    def take(self, n: int) -> Examples:
        """Return the next n examples."""
        rows = self._draws.uniform(n, ATTRIBUTES)
        a, b, c, d, e, *_ = rows.T if self.function == 1 else rows.T[::-1]
        c = c - 0.5
        label = 10.0 * _sine(a * b) + 20.0 * (c * c) + 10.0 * d + 5.0 * e
        return Examples(rows, label + self.noise * self._normals.normal(n))


def _sine(x: Float64s) -> Float64s:
    """Return sin(pi x) for numbers from 0 to 1: numpy's have not the same last bit on every CPU."""
    angle = _PI * np.minimum(x, 1.0 - x)
    square = angle * angle
    series = np.ones(len(x))
    for k in range(21, 0, -2):  # the last that is left out is below 1e-17 at pi / 2
        series = 1.0 - series * square / ((k + 1) * (k + 2))
    return series * angle
