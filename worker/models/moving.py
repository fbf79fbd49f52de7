"""How the pool of a model becomes small again: what lives moves to a new pool, some keys with each event.

Pools give freed rows out again and never become smaller: once nine of ten keys have gone, arrays are ten times
what they need to be, and checkpoints with them. To move what is left within the arrays takes a second, for which
no event can wait. So a new pool is made, with room for what is left, and the old one is `Left`:

::

    most has gone       memory for the new pool is looked for, some with each event
    a batch comes       its keys move first: events meet them in the new pool alone
    after its events    `AT_ONCE` more keys move for each of them
    nothing is left     the old pool is let go

The arrays of other kinds refer to each other in more ways. A `PackingPool` knows all of these, and makes its
arrays anew: what is left moves at once.

Nothing that is written depends on where a key lies, so it does not matter to results when that happens. A
checkpoint on the way holds both pools.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any, Generic, Protocol, Self, TypeGuard, TypeVar, runtime_checkable

import numpy as np

from algorithms.core.arrays import Int32s, UInt8s
from worker.models.expiry import MEANWHILE
from worker.models.keys import Keys

AT_ONCE = 2  # keys that move with an event, beside its own
LEAST = 1 << 22  # bytes of rows, below which a pool stays as it is
KEY_BYTES = 256  # of the rows that a key has whatever it learned, about
FOUND = 1 << 13  # bytes of memory that are made ready with an event
_PAGE = 4096

MOVED = "moved."  # before the names of what has moved; the names of the rest stay, so it is not written anew

T = TypeVar("T")


def moved_of(arrays: Mapping[str, T]) -> dict[str, T]:
    """Return what of a state is of the smaller pool, by the names that it has when nothing moves; else nothing."""
    return {name.removeprefix(MOVED): array for name, array in arrays.items() if name.startswith(MOVED)}


def at_rest(arrays: Mapping[str, T]) -> Mapping[str, T]:
    """Return what of a state has the names that it has when nothing moves."""
    moved = moved_of(arrays)
    return {name: array for name, array in moved.items() if name not in MEANWHILE} if moved else arrays


class Holding(Protocol):
    """A pool that knows how much of it is in use."""

    can_move: bool  # whether its settings allow what its kind can

    @property
    def held(self) -> tuple[int, int]:
        """Bytes of rows that are in use, and of all that ever were, those of keys left out."""
        ...


@runtime_checkable
class MovingPool(Holding, Protocol):
    """A pool whose keys can move to another, one by one."""

    def emptied(self) -> Self:
        """Return an empty pool with room for what this one holds, which counts that as its own."""
        ...

    def take(self, other: Self, keys: Int32s, to: Int32s) -> None:
        """Move keys from the other pool here, where they have other numbers."""
        ...

    def moved(self) -> None:
        """All keys have moved here."""
        ...

    def check_beside(self, other: Self) -> None:
        """Raise AssertionError unless every invariant holds of two pools between which keys move."""
        ...


@runtime_checkable
class PackingPool(Holding, Protocol):
    """A pool whose keys can move within it, all at once."""

    def pack(self, keys: Int32s) -> None:
        """Give keys, which rise and are all that are alive, the numbers from 0 on, in arrays for no more."""
        ...


P = TypeVar("P")


class Left(Generic[P]):
    """What of a model has not moved yet."""

    def __init__(self, pool: P, keys: Keys) -> None:
        self.pool = pool
        self.keys = keys
        self._next = 0  # below it nothing is left

    def next(self, count: int) -> Int32s:
        """Return which keys are to move next."""
        numbers, self._next = self.keys.in_use(self._next, count)
        return numbers


class Memory:
    """Memory for the new pool, which the system is asked for before it is needed, a little at a time.

    The first touch of fresh memory costs much more than the move: 60 ms for a table of 32 MB where the system has
    to find it, and a few keys touch all of such a table. What was given back last is the first to be given again.

    Parameters
    ----------
    size : int
        In bytes.
    """

    def __init__(self, size: int) -> None:
        self._bytes: UInt8s = np.empty(size, np.uint8)
        self._ready = 0

    def made_ready(self, events: int) -> bool:
        """Touch so much as it is for so many events; return whether all was touched."""
        begin, self._ready = self._ready, self._ready + FOUND * events
        self._bytes[begin : self._ready : _PAGE] = 0
        return self._ready >= len(self._bytes)


def needed(pool: Holding, keys: Keys) -> int:
    """Return how many bytes the arrays of a pool are that has no more than this one holds, at most, about."""
    held, _ = pool.held
    return 2 * (held + KEY_BYTES * len(keys))  # they double as they grow


def is_sparse(pool: Any, keys: Keys) -> TypeGuard[MovingPool | PackingPool]:
    """Return whether less than half of the rows that were ever in use still are, in a pool that can move."""
    if not getattr(pool, "can_move", False):
        return False
    _, ever = pool.held
    ever += KEY_BYTES * keys.reached
    # Whether a pool has all methods takes longest, and this is asked after every batch.
    return ever >= LEAST and needed(pool, keys) < ever and isinstance(pool, MovingPool | PackingPool)


def give_back() -> None:
    """Return freed memory to the system, where the C library would keep it for the next arrays.

    Of 1.3 GB of which a tenth stayed glibc kept 160 MB.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    try:
        return getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc alone has it
    except (OSError, TypeError):
        return None
