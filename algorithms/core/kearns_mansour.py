"""The square-root impurity, the third of the classic three.

It bounds the error of a grown tree best: Kearns and Mansour, "On the boosting ability of top-down decision tree
learning algorithms", 1996.
"""

from __future__ import annotations

import math
from typing import Any

from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined


@inlined
def kearns_mansour(criterion: Any, u: int, v: int) -> float:  # noqa: ARG001  (all are called alike)
    """Return 2 sqrt(u v), weight times 2 sqrt(p (1 - p)); `u` and `v` are in units of 2^-20.

    IEEE 754 fixes every bit of a square root.
    """
    return 2.0 * math.sqrt((u * PER_UNIT) * (v * PER_UNIT))
