"""The kinds of features, and what an example's value means to each. Absent is 0 for all of them."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from algorithms.arrays import Float64s


class Kind(IntEnum):
    """What the values of a feature are."""

    BINARY = 0  # present or absent; any value but 0 is present
    NOMINAL = 1  # a category, 0 to 2^32 - 1; a split has a branch for each category seen
    NUMERIC = 2  # a finite number; a split has a threshold


BINARY, NOMINAL, NUMERIC = (int(kind) for kind in Kind)


def is_category(value: Float64s) -> npt.NDArray[np.bool_]:
    """Return which of these finite values a nominal feature may have."""
    whole: npt.NDArray[np.bool_] = (value >= 0) & (value < 1 << 32) & (value % 1.0 == 0)
    return whole
