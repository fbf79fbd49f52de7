"""Array types used in signatures, and arrays that grow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from algorithms.core import rooms

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


_LINE = 64  # bytes that come to the cache together
_LARGE = 1 << 16  # bytes; what is smaller is in the cache
_STEP = 1 << 16  # rows; up to here capacities double, from here on they grow by an eighth


def zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros; many of them begin with a line of the cache, so that no row of 32 bytes lies in two.

    Each line may be a miss: with 1,200,000 slots counting takes a quarter less time than where `np.zeros` begins.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < _LARGE:
        return np.zeros(shape, kind)
    whole = np.zeros(size + _LINE, np.uint8)
    begin = -whole.ctypes.data % _LINE
    return whole[begin : begin + size].view(kind).reshape(shape)


def extended(array: A, rows: int) -> A:
    """Return `array` with room for `rows` rows; the new ones are zero, and the array given is used no more.

    A large array lies in a room of addresses that is larger than it, and grows there: nothing is copied and no
    event waits for it. A small one is copied, as is one that has outgrown its room. An array that was extended
    before is copied, too, for its rows may be another's by now.
    """
    shape = (rows, *array.shape[1:])
    size = math.prod(shape) * array.itemsize
    room = rooms.room_of(array, size)
    if room is not None:
        return rooms.array_in(room, shape, array.dtype)  # type: ignore[return-value]  # same dtype and rank
    room = rooms.room_for(size)
    longer = zeros(shape, array.dtype) if room is None else rooms.array_in(room, shape, array.dtype)
    longer[: len(array)] = array
    return longer  # type: ignore[return-value]  # same dtype and rank


def larger(capacity: int, needed: int) -> int:
    """Return the capacity that steps from one come to where so many rows are needed.

    Few rows double, for then they are copied seldom. Many are extended where they lie, so that small steps cost
    nothing and leave little unused: by an eighth, and by 131,072 at most.
    """
    while capacity < needed:
        capacity += max(capacity, 1) if capacity < _STEP else min(capacity >> 3, 2 * _STEP)
    return capacity


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
