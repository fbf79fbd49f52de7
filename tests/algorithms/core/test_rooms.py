import time
import weakref
from collections import deque
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from algorithms.core import rooms
from algorithms.core.arrays import extended
from algorithms.core.rooms import room_of

PAGE = 1 << 21
FEW = 8


@pytest.fixture
def reserve(monkeypatch: pytest.MonkeyPatch) -> deque[int]:
    """Return the reserve, which is empty and filled by nobody."""
    ready: deque[int] = deque()
    monkeypatch.setattr(rooms, "_ready", ready)
    monkeypatch.setattr(rooms, "_wanted", SimpleQueue())
    monkeypatch.setattr(rooms, "_keep_reserve", lambda: None)
    return ready


def _fill(reserve: deque[int], pages: int) -> None:
    for _ in range(pages):
        page = rooms._page()
        assert page is not None
        reserve.append(page)


def _array(size: int) -> npt.NDArray[Any]:
    """Return an array of so many bytes that lies in a room."""
    array = extended(np.arange(FEW), size // 8)
    assert room_of(array, array.nbytes) is not None
    return array


def _has_memory(address: int) -> bool:
    """Return whether there is memory at an address before anything was written there."""
    with Path("/proc/self/pagemap").open("rb", buffering=0) as pages:
        pages.seek(address // 4096 * 8)
        return int.from_bytes(pages.read(8), "little") >> 63 == 1


def _laid(array: npt.NDArray[Any]) -> list[bool]:
    """Return which huge pages of an array have memory to their ends."""
    begin = array.ctypes.data
    return [_has_memory(begin + at + PAGE - 4096) for at in range(0, array.nbytes, PAGE)]


def test_a_page_that_cannot_be_laid_leaves_room(reserve: deque[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system takes away what was there, and then moves nothing, the array still grows."""
    system = rooms._system()

    def refuse(_page: int, size: int, new_size: int, how: int, place: int) -> int | None:
        assert (size, new_size, how) == (PAGE, PAGE, rooms._MOVE)
        system.munmap(place, PAGE)
        return rooms._FAILED

    array = _array(PAGE // 2)
    monkeypatch.setattr(rooms, "_system", lambda: system._replace(mremap=refuse))
    _fill(reserve, 1)
    array = extended(array, 3 * PAGE // 8)
    assert not reserve
    array[FEW:] = 7
    assert array[:FEW].tolist() == list(range(FEW))


def test_pages_are_laid_where_an_array_grows(reserve: deque[int]) -> None:
    """As many as there are, from its old end to its new one; what it holds stays, and what is new is zero."""
    _fill(reserve, 3)
    array = _array(PAGE // 2)
    assert array.ctypes.data % PAGE == 0
    assert _laid(array) == [True]
    assert len(reserve) == 2
    array[-1] = 7
    array = extended(array, array.size + 2)  # within the page
    assert len(reserve) == 2
    array = extended(array, 5 * PAGE // 8)
    assert _laid(array) == [True, True, True, False, False]
    assert (len(reserve), rooms._wanted.qsize()) == (0, 3)
    assert np.flatnonzero(array).tolist() == [*range(1, FEW), PAGE // 16 - 1]
    array[:] = 1
    _fill(reserve, 1)
    array = extended(array, 11 * PAGE // 16)  # it ends within the page
    assert _laid(array) == [True] * 6
    assert array[: 5 * PAGE // 8].all()
    assert not array[5 * PAGE // 8 :].any()


def test_no_page_is_laid_over_what_was_written(reserve: deque[int]) -> None:
    """A page that an array has begun to use stays, however many there are."""
    array = _array(3 * PAGE // 2)
    array[:] = 5
    _fill(reserve, 4)
    array = extended(array, 3 * PAGE // 8)
    assert _laid(array) == [True, False, True]
    assert len(reserve) == 3
    assert (array[: 3 * PAGE // 16] == 5).all()
    assert not array[3 * PAGE // 16 :].any()


def test_where_the_system_moves_no_pages_arrays_grow_as_well(
    reserve: deque[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small pages come where something is written."""
    _fill(reserve, 2)
    system = rooms._system()._replace(mremap=lambda *_: rooms._FAILED)
    monkeypatch.setattr(rooms, "_system", lambda: system)
    array = extended(_array(PAGE), PAGE)
    array[FEW:] = 1
    assert array[:FEW].tolist() == list(range(FEW))


def test_no_more_pages_are_laid_than_the_system_takes(
    reserve: deque[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a mapping of its own, of which a process may have so many."""
    monkeypatch.setattr(rooms, "_MOST_LAID", rooms._laid + 1)
    _fill(reserve, 3)
    array = extended(_array(PAGE), PAGE)
    assert len(reserve) == 2
    assert array[:FEW].tolist() == list(range(FEW))


def test_a_thread_fills_the_reserve() -> None:
    """There is one, and what it made is laid; a room that nobody uses is given back."""
    arrays = [_array(PAGE) for _ in range(20)]
    thread = rooms._maker
    deadline = time.monotonic() + 60
    while len(rooms._ready) < rooms._RESERVE:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    arrays = [extended(array, 3 * PAGE // 8) for array in arrays]
    assert rooms._maker is thread
    for array in arrays:
        assert array[:FEW].tolist() == list(range(FEW))
        assert not array[FEW:].any()
    used = [weakref.ref(room_of(array, array.nbytes)) for array in arrays]
    del array, arrays
    assert [each() for each in used] == [None] * 20
