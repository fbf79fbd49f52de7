"""The square-root impurity, the third of the classic three.

It bounds the error of a grown tree best: Kearns and Mansour, "On the boosting ability of top-down decision tree
learning algorithms", 1996.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined


class KearnsMansour(NamedTuple):
    """Weight times 2 sqrt(p (1 - p)): h(u, v) = 2 sqrt(u v)."""

    table: Float64s  # not used; a NamedTuple needs a field to be told apart by the compiler


@inlined
def kearns_mansour(criterion: KearnsMansour, u: int, v: int) -> float:  # noqa: ARG001  (all are called alike)
    """Return 2 sqrt(u v); `u` and `v` are in units of 2^-20. IEEE 754 fixes every bit of a square root."""
    return 2.0 * math.sqrt((u * PER_UNIT) * (v * PER_UNIT))


def make_kearns_mansour(examples: int) -> KearnsMansour:  # noqa: ARG001  (all are made alike)
    """Make the criterion; it needs no memo."""
    return KearnsMansour(np.zeros(1, np.float64))
