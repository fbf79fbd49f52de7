"""The kinds of features, and what an example's value means to each. Absent is 0 for all of them."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s
from algorithms.core.jit import inlined


class Kind(IntEnum):
    """What the values of a feature are."""

    BINARY = 0  # present or absent; any value but 0 is present
    NOMINAL = 1  # a category, 0 to 2^32 - 1; a split has a branch for each category seen
    NUMERIC = 2  # a finite number, observed by a normal distribution for each class; a split has a threshold
    QUANTISED = 3  # a finite number, counted in slots; a split on it is a numeric one


BINARY, NOMINAL, NUMERIC, QUANTISED = (int(kind) for kind in Kind)


@inlined
def is_number(kind: int) -> bool:
    """Return whether a split on a feature of this kind has a threshold."""
    return kind in (NUMERIC, QUANTISED)


def is_category(value: Float64s) -> npt.NDArray[np.bool_]:
    """Return which of these finite values a nominal feature may have."""
    whole: npt.NDArray[np.bool_] = (value >= 0) & (value < 1 << 32) & (value % 1.0 == 0)
    return whole
