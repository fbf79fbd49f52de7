"""Rooms: ranges of addresses in which arrays grow, and the memory that is brought to them ahead of time.

A room costs nothing but addresses. The system gives memory page by page where something is first written. Huge
pages make random reads of large arrays cheaper, for the processor finds them without a look at a table. But who
first writes to one waits until its 2 MB are cleared: for 0.2 ms, and for 5 ms and more in a virtual machine whose
host has to find the memory, too. So another thread brings them::

    room   [ rows of the array                |                                    ... ]
           [ brought before        ][ small   |  ][ huge ][ huge ][ huge ]
                                              ^used    <- from the far end

An array that grows faster than that comes to small pages, of 4 KB each: it is never kept waiting, and what is read
there costs a few percent more.
"""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_ROOMY = 1 << 18  # bytes; what is smaller is copied in less time than a batch takes
_SPACE = 16  # times its size is set aside for an array that grows, and no less than
_LEAST_SPACE = 1 << 32  # bytes of addresses, which cost nothing
_PAGE = 1 << 21  # bytes of a huge page
_AHEAD = 1 << 24  # bytes that are brought at most, and an eighth of the array's

# MADV_POPULATE_WRITE, from Linux 5.14 on: as if each page were written to, and nothing changes.
_POPULATE_WRITE = 23

# The last is MAP_NORESERVE, which mmap has from Python 3.13 on.
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000


class Room(mmap.mmap):
    """Addresses for an array that grows."""

    used: int = 0  # bytes of the longest array in it; what lies beyond has never been written to
    asked: int = 0  # bytes up to which huge pages have been asked for


@cache
def _may_set_aside() -> bool:
    """Return whether addresses are free: not where the system counts each as memory (`overcommit_memory` 2)."""
    try:
        return Path("/proc/sys/vm/overcommit_memory").read_text("ascii").strip() != "2"
    except OSError:
        return False  # another system than Linux


def room_for(size: int) -> Room | None:
    """Return room for a growing array that has so many bytes now; None where the system gives none."""
    if size < _ROOMY or not _may_set_aside():
        return None
    try:
        room = Room(-1, max(_SPACE * size, _LEAST_SPACE), flags=_FLAGS)
    except (OSError, OverflowError):  # a limit on addresses
        return None
    with suppress(OSError):  # a kernel without huge pages
        room.madvise(mmap.MADV_NOHUGEPAGE)
        if size >= _PAGE:  # what is copied now waits for its pages anyway
            room.madvise(mmap.MADV_HUGEPAGE, 0, size)
    return room


def room_of(array: npt.NDArray[Any]) -> Room | None:
    """Return the room that an array can grow in: it is the longest there."""
    room: object = array.base
    if isinstance(room, Room) and room.used == array.nbytes and array.flags.c_contiguous:
        return room
    return None


def array_in(room: Room, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the array at the beginning of a room, the longest in it from now on; have pages brought behind it."""
    array: npt.NDArray[Any] = np.ndarray(shape, dtype, room)
    room.used = array.nbytes
    begin = array.ctypes.data
    first = _up(begin + room.used)
    end = _up(begin + room.used + min(_AHEAD, room.used >> 3))
    if first < end and room.asked < end - begin <= len(room):
        room.asked = end - begin
        _ask(_Pages(room, room.asked, first, end))
    return array


def _up(address: int) -> int:
    return -(-address // _PAGE) * _PAGE


# --- the other thread: one for all rooms, as two that bring pages would be in each other's way, and in everyone's


class _Pages(NamedTuple):
    """Huge pages that are asked for."""

    room: Room  # which is not given back to the system before they are there
    asked: int  # that it has while no others are asked for
    first: int  # address
    end: int


_asked_for: SimpleQueue[_Pages] = SimpleQueue()
_bringer: Thread | None = None


def _ask(pages: _Pages) -> None:
    """Have pages brought by the thread, which begins with the first, and anew in a process that was forked."""
    global _bringer
    if _bringer is None or not _bringer.is_alive():
        _bringer = Thread(target=_bring_all, name="pages", daemon=True)
        _bringer.start()
    _asked_for.put(pages)


def _bring_all() -> None:
    while True:
        _bring(_asked_for.get())


@cache
def _madvise() -> Any:
    """Return the system's call; that of `mmap` would keep all threads of Python waiting."""
    call = ctypes.CDLL(None).madvise
    call.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return call


def _bring(pages: _Pages) -> None:
    """Bring pages, until others of the room are asked for.

    From the far end: the array may come to those in front while they are brought.
    """
    advise = _madvise()
    for page in range(pages.end - _PAGE, pages.first - 1, -_PAGE):
        if pages.room.asked != pages.asked:
            return
        if advise(page, _PAGE, mmap.MADV_HUGEPAGE) or advise(page, _PAGE, _POPULATE_WRITE):
            return
