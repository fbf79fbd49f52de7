"""Examples as callers give them, on the way to what kernels want."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.arrays import Float64s, Int64s, UInt32s
from algorithms.criteria import UNIT
from algorithms.names import Interner, number_of


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


def entries_of(x: Mapping[Any, float] | Iterable[Any], names: Interner | None) -> tuple[UInt32s, Float64s]:
    """Return the features of one example, with their values, or those that are present."""
    values = dict(x) if isinstance(x, Mapping) else None
    present: Sequence[Any] = list(values) if values is not None else list(x)
    numbers = np.array([number_of(names, feature) for feature in present], np.uint32)
    return numbers, np.ones(len(numbers)) if values is None else np.array(list(values.values()), np.float64)


def units_of(weight: float) -> int:
    """Return a weight in units of 2^-20.

    Raises
    ------
    ValueError
        Where it is none.
    """
    units = round(weight * UNIT) if np.isfinite(weight) else -1
    if units < 0:
        raise ValueError(f"expected a finite weight of at least 0, got {weight}")
    return units
