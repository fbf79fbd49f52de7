"""Array types used in signatures, and growth by doubling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Int64s: TypeAlias = npt.NDArray[np.int64]
Int32s: TypeAlias = npt.NDArray[np.int32]
Int8s: TypeAlias = npt.NDArray[np.int8]
UInt8s: TypeAlias = npt.NDArray[np.uint8]
UInt32s: TypeAlias = npt.NDArray[np.uint32]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
Float64s: TypeAlias = npt.NDArray[np.float64]

if TYPE_CHECKING:

    def int64(number: Any) -> int:
        """Widen a number from an array of narrower ones; to the type checker, kernels compute with ints."""
else:
    int64 = np.int64

A = TypeVar("A", bound=npt.NDArray[Any])


def extended(array: A, rows: int) -> A:
    """Return a copy of `array` with room for `rows` rows; the new ones are zero."""
    longer = np.zeros((rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer  # type: ignore[return-value]  # same dtype and rank as `array`


def filled(n: int, value: float, dtype: type) -> npt.NDArray[Any]:
    """Return n times a value. `np.full` does the same in four times the time where n is small."""
    array: npt.NDArray[Any] = np.empty(n, dtype)
    array.fill(value)
    return array


def are_set(flags: Int64s, indexes: Int32s) -> npt.NDArray[np.bool_]:
    """Return which of these indexes have a flag above 0; beyond the end none has."""
    found = indexes < len(flags)
    found[found] = flags[indexes[found]] > 0
    return found
