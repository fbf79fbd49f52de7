"""The features of many examples, made what kernels want; those of one come from given.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int64s, UInt32s


class InOrder(NamedTuple):
    """The features of n examples, ascending in each."""

    row: Int64s  # int64[entries], which example
    feature: Int64s  # int64[entries]
    value: Float64s  # float64[entries]
    repeated: npt.NDArray[np.bool_]  # bool[n], which examples name a feature twice


def in_order(pointer: Int64s, feature: UInt32s, value: Float64s) -> InOrder:
    """Return entries in order. O(entries), with a sort where they are not in order."""
    n = len(pointer) - 1
    number = feature.astype(np.int64)
    row = np.repeat(np.arange(n), np.diff(pointer))
    if not (np.diff(number) + (np.diff(row) << 33) > 0).all():
        order = np.lexsort((number, row))
        number, value = number[order], value[order]
    repeated = np.zeros(n, np.bool_)
    repeated[row[1:][(np.diff(number) == 0) & (np.diff(row) == 0)]] = True
    return InOrder(row, number, value, repeated)
