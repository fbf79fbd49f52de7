"""Rooms: ranges of addresses in which arrays grow, and the huge pages that are laid there.

A room costs nothing but addresses. The system gives memory page by page where something is first written. Huge
pages make random reads of large arrays cheaper, for the processor finds them without a look at a table. But who
first writes to one waits until its 2 MB are cleared: for 0.2 ms, and for 5 ms and more in a virtual machine whose
host has to find the memory, too. So another thread keeps a few that are ready, and where an array grows the system
moves them there, which takes some microseconds::

    room     [ rows of the array                  |                                 ... ]
             [ huge   ][ huge   ][ small  ][ huge ]
                                                   ^used
    reserve  [ huge   ][ huge   ][ huge   ]         <- the other thread

An array that grows faster than that comes to small pages, of 4 KB each: it is never kept waiting, and what is read
there costs a few percent more.
"""

from __future__ import annotations

import ctypes
import mmap
from collections import deque
from contextlib import suppress
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_ROOMY = 1 << 18  # bytes; what is smaller is copied in less time than a batch takes
_SOON = 1 << 16  # bytes; what has so many will need a room before long
_SPACE = 16  # times its size is set aside for an array that grows, and no less than
_LEAST_SPACE = 1 << 32  # bytes of addresses, which cost nothing
_PAGE = 1 << 21  # bytes of a huge page
_RESERVE = 8  # pages that are ready: an array of 32 bytes a row takes two where it grows, see `larger`
_MOST_LAID = 1 << 14  # pages: each is a mapping of its own, and the system allows 65,530 of them

# The last is MAP_NORESERVE, which mmap has from Python 3.13 on.
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
_ACCESS = mmap.PROT_READ | mmap.PROT_WRITE
_FIXED = 0x10  # MAP_FIXED
_MOVE = 1 | 2  # MREMAP_MAYMOVE | MREMAP_FIXED
_FAILED = ctypes.c_void_p(-1).value


class Room(mmap.mmap):
    """Addresses for an array that grows."""

    begin: int = 0  # bytes before the array, which begins where a huge page may
    used: int = 0  # bytes of the longest array in it; what lies beyond has never been written to


@cache
def _may_set_aside() -> bool:
    """Return whether addresses are free: not where the system counts each as memory (`overcommit_memory` 2)."""
    try:
        return Path("/proc/sys/vm/overcommit_memory").read_text("ascii").strip() != "2"
    except OSError:
        return False  # another system than Linux


def room_for(size: int) -> Room | None:
    """Return room for a growing array that has so many bytes now; None where the system gives none."""
    if size < _SOON or not _may_set_aside():
        return None
    _keep_reserve()
    if size < _ROOMY:
        return None
    try:
        room = Room(-1, max(_SPACE * size, _LEAST_SPACE), flags=_FLAGS)
    except (OSError, OverflowError):  # a limit on addresses
        return None
    with suppress(OSError):  # a kernel without huge pages
        room.madvise(mmap.MADV_NOHUGEPAGE)
    address = np.ndarray((1,), np.uint8, room).ctypes.data
    room.begin = _up(address) - address
    return room


def room_of(array: npt.NDArray[Any], size: int) -> Room | None:
    """Return the room in which an array can grow to so many bytes: it is the longest there."""
    room: object = array.base
    if isinstance(room, Room) and room.used == array.nbytes <= size <= len(room) - room.begin:
        return room if array.flags.c_contiguous else None
    return None


def array_in(room: Room, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the array at the beginning of a room, the longest in it from now on; what is new is zero."""
    array: npt.NDArray[Any] = np.ndarray(shape, dtype, room, room.begin)
    address, end = array.ctypes.data, room.begin + array.nbytes
    laid = _lay(address + room.used, address + array.nbytes) - address + room.begin
    if room.used == 0 and laid + _PAGE <= end:  # all of it is about to be written, which takes its time anyway
        with suppress(OSError):
            room.madvise(mmap.MADV_HUGEPAGE, laid, end - laid)
    room.used = array.nbytes
    return array


def _up(address: int) -> int:
    return -(-address // _PAGE) * _PAGE


# --- the reserve


class _System(NamedTuple):
    """Calls of the system."""

    mmap: Any
    munmap: Any
    madvise: Any
    mremap: Any  # it keeps other threads of Python waiting, as it is over before they could begin


@cache
def _system() -> _System:
    library, waiting = ctypes.CDLL(None), ctypes.PyDLL(None)
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.mmap.restype = waiting.mremap.restype = address
    library.mmap.argtypes = (address, size, number, number, number, ctypes.c_long)
    library.munmap.argtypes = (address, size)
    library.madvise.argtypes = (address, size, number)
    waiting.mremap.argtypes = (address, size, size, number, address)
    return _System(library.mmap, library.munmap, library.madvise, waiting.mremap)


_ready: deque[int] = deque()  # addresses of pages
_wanted: SimpleQueue[None] = SimpleQueue()  # one for each that is missing
_laid = 0
_maker: Thread | None = None


def _keep_reserve() -> None:
    """Begin the thread that fills the reserve, where none is: at first, and in a process that was forked."""
    global _maker
    if _maker is None or not _maker.is_alive():
        _maker = Thread(target=_fill, name="pages", daemon=True)
        for _ in range(_RESERVE - len(_ready) - _wanted.qsize()):
            _wanted.put(None)
        _maker.start()


def _fill() -> None:
    while True:
        _wanted.get()
        page = _page()
        if page is None:
            return
        _ready.append(page)


def _page() -> int | None:
    """Return the address of a huge page that has memory; None where the system gives none."""
    system = _system()
    found = system.mmap(None, 2 * _PAGE, _ACCESS, _FLAGS, -1, 0)
    if found == _FAILED:
        return None
    page = _up(found)
    if page > found:
        system.munmap(found, page - found)
    system.munmap(page + _PAGE, found + _PAGE - page)
    system.madvise(page, _PAGE, mmap.MADV_HUGEPAGE)
    ctypes.memset(page, 0, _PAGE)  # all of it: the system may have no huge page to give
    return page


def _lay(begin: int, end: int) -> int:
    """Lay pages between two addresses, where nothing is yet; return where the next would be laid."""
    global _laid
    page = _up(begin)
    while page < end and _laid < _MOST_LAID:
        try:
            ready = _ready.popleft()
        except IndexError:
            break
        _wanted.put(None)
        if _system().mremap(ready, _PAGE, _PAGE, _MOVE, page) == _FAILED:
            # What was there may be gone by now: who wrote to it would end the process.
            _system().mmap(page, _PAGE, _ACCESS, _FLAGS | _FIXED, -1, 0)
            break
        _laid += 1
        page += _PAGE
    return page
