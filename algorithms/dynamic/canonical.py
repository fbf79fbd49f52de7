"""Examples as callers give them, made what kernels want: features ascending, no zeros, kinds beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int8s, Int64s, UInt32s
from algorithms.core.canonical import in_order
from algorithms.core.kinds import Kind

SERVED = (Kind.BINARY, Kind.NUMERIC)


class Canonical(NamedTuple):
    """CSR columns of n examples."""

    pointer: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[entries], ascending in an example
    value: Float64s  # float64[entries], finite where `wrong` does not say otherwise, not 0; 1 of a binary feature
    kind: Int8s  # int8[entries], a `Kind`
    wrong: npt.NDArray[np.bool_]  # bool[n], which examples have a value that is not finite
    repeated: npt.NDArray[np.bool_]  # bool[n], which name a feature twice


def canonicalised(
    pointer: Int64s, feature: UInt32s, value: Float64s, kinds_of: Callable[[Int64s], Int8s]
) -> Canonical:
    """Return entries in order, what is 0 left out. O(entries), with a sort where they are not in order."""
    n = len(pointer) - 1
    row, number, value, repeated = in_order(pointer, feature, value)
    wrong = np.zeros(n, np.bool_)
    wrong[row[~np.isfinite(value)]] = True
    present = value != 0.0
    row, number, value = row[present], number[present], value[present]
    kind = kinds_of(number)
    ends = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=n), out=ends[1:])
    return Canonical(
        pointer=ends,
        feature=number.astype(np.uint32),
        value=np.where(kind == Kind.BINARY, 1.0, value),
        kind=kind,
        wrong=wrong,
        repeated=repeated,
    )


def check_kinds(kinds: Iterable[Kind]) -> None:
    """Raise ValueError where a kind is none that these trees serve."""
    for kind in kinds:
        if kind not in SERVED:
            raise ValueError(
                f"expected features of the kinds BINARY and NUMERIC, got {Kind(kind).name}; declare categories as "
                "a binary feature each, and quantised features as numeric: here their values are exact"
            )
