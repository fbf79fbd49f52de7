"""Array types used in signatures, and arrays that grow."""

from __future__ import annotations

import math
import mmap
from contextlib import suppress
from functools import cache
from pathlib import Path
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


_LINE = 64  # bytes that come to the cache together
_LARGE = 1 << 16  # bytes; what is smaller is in the cache
_ROOMY = 1 << 20  # bytes; what is smaller is copied in less time than a batch takes
_AHEAD = 16  # times its size is set aside for an array that grows, and no less than
_LEAST_ROOM = 1 << 32  # bytes of addresses, which cost nothing
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


# The last is MAP_NORESERVE, which mmap has from Python 3.13 on.
_ROOM_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000


class _Room(mmap.mmap):
    """Addresses for an array that grows: memory is taken from the system where rows are first written."""

    used: int = 0  # bytes of the longest array in it; what lies beyond has never been written to


@cache
def _may_set_aside() -> bool:
    """Return whether addresses are free: not where the system counts each as memory (`overcommit_memory` 2)."""
    try:
        return Path("/proc/sys/vm/overcommit_memory").read_text("ascii").strip() != "2"
    except OSError:
        return False  # another system than Linux


def _room_for(size: int) -> _Room | None:
    """Return room for a growing array that has so many bytes now; None where the system gives none."""
    if size < _ROOMY or not _may_set_aside():
        return None
    try:
        room = _Room(-1, max(_AHEAD * size, _LEAST_ROOM), flags=_ROOM_FLAGS)
    except (OSError, OverflowError):  # a limit on addresses
        return None
    with suppress(OSError):  # a kernel without huge pages
        room.madvise(mmap.MADV_HUGEPAGE)
    return room


def _room_of(array: npt.NDArray[Any]) -> _Room | None:
    """Return the room that an array can grow in: it is the longest there."""
    room: object = array.base
    if isinstance(room, _Room) and room.used == array.nbytes and array.flags.c_contiguous:
        return room
    return None


def extended(array: A, rows: int) -> A:
    """Return `array` with room for `rows` rows; the new ones are zero, and the array given is used no more.

    A large array lies in a room of addresses that is larger than it, and grows there: nothing is copied and no
    event waits for it. A small one is copied, as is one that has outgrown its room. An array that was extended
    before is copied, too, for its rows may be another's by now.
    """
    shape = (rows, *array.shape[1:])
    size = math.prod(shape) * array.itemsize
    room = _room_of(array)
    if room is not None and array.nbytes <= size <= len(room):
        longer = np.ndarray(shape, array.dtype, room)
    else:
        room = _room_for(size)
        longer = zeros(shape, array.dtype) if room is None else np.ndarray(shape, array.dtype, room)
        longer[: len(array)] = array
    if room is not None:
        room.used = size
    return longer  # type: ignore[return-value]  # same dtype and rank as `array`


def larger(capacity: int, needed: int) -> int:
    """Return the capacity that steps from one come to where so many rows are needed.

    Few rows double, for then they are copied seldom. Many are extended where they lie, so that small steps cost
    nothing and leave little unused.
    """
    while capacity < needed:
        capacity += max(capacity, 1) if capacity < _STEP else capacity >> 3
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
