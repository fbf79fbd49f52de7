import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from algorithms.core import rooms
from algorithms.core.arrays import extended
from algorithms.core.rooms import Room, room_of

HUGE = 1 << 21
ROW = np.dtype(np.int64).itemsize


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[rooms._Pages]]:
    """Return what is asked for; nothing is brought by itself."""
    pages: list[rooms._Pages] = []
    monkeypatch.setattr(rooms, "_ask", pages.append)
    yield pages
    pages.clear()


def _room(array: np.ndarray) -> Room:
    room = room_of(array)
    assert room is not None
    return room


def _present(address: int) -> bool:
    """Return whether the page at an address has memory."""
    with Path("/proc/self/pagemap").open("rb", buffering=0) as pages:
        pages.seek(address // 4096 * 8)
        return int.from_bytes(pages.read(8), "little") >> 63 == 1


def test_pages_are_asked_for_where_an_array_grows_next(asked: list[rooms._Pages]) -> None:
    """They lie behind its end, up to an eighth of it away, no more than 16 MB, and none is asked for twice."""
    array = extended(np.zeros(8, np.int64), 100_000)
    before = 0
    while array.nbytes < 200 * HUGE:
        array = extended(array, len(array) + 50_000)
        begin = array.ctypes.data
        if not asked:
            continue
        (pages,) = asked
        asked.clear()
        assert pages.room is _room(array)
        assert pages.first % HUGE == pages.end % HUGE == 0
        assert begin + array.nbytes <= pages.first < pages.end
        assert pages.end < begin + array.nbytes + min(array.nbytes >> 3, 1 << 24) + HUGE
        assert pages.end > before
        assert pages.end - begin <= len(pages.room)
        before = pages.end
    assert before > array.ctypes.data + 190 * HUGE


def test_what_is_brought_is_zero_and_there(asked: list[rooms._Pages]) -> None:
    """The pages have memory before anything is written to them, and the array is as it was."""
    array = extended(np.arange(8), 3 * HUGE // ROW)
    array[-1] = 7
    array = extended(array, 20 * HUGE // ROW)
    pages = asked[-1]
    rooms._bring(pages)
    longer = extended(array, 40 * HUGE // ROW)
    assert np.flatnonzero(longer).tolist() == [*range(1, 8), 3 * HUGE // ROW - 1]
    kernel = tuple(int(part) for part in Path("/proc/sys/kernel/osrelease").read_text().split(".")[:2])
    if kernel >= (5, 14):
        assert all(_present(page) for page in range(pages.first, pages.end, 4096))


def test_pages_are_not_brought_once_others_are_asked_for(asked: list[rooms._Pages]) -> None:
    """An array that grows faster than pages come is followed, not pursued."""
    array = extended(np.arange(8), 30 * HUGE // ROW)
    (pages,) = asked
    array = extended(array, 60 * HUGE // ROW)
    rooms._bring(pages)
    assert not any(_present(page) for page in range(pages.first, pages.end, HUGE))


def test_one_thread_brings_all_and_holds_on_to_nothing() -> None:
    """A room that is no longer used is given back, whatever was asked for."""
    arrays = [extended(np.arange(8), (16 + each) * HUGE // ROW) for each in range(3)]
    thread = rooms._bringer
    arrays = [extended(array, 2 * len(array)) for array in arrays]
    assert rooms._bringer is thread
    for array in arrays:
        assert array[:8].tolist() == list(range(8))
        assert not array[8:].any()
    used = [weakref.ref(_room(array)) for array in arrays]
    del array, arrays
    deadline = time.monotonic() + 60
    while any(each() is not None for each in used):
        assert time.monotonic() < deadline
        time.sleep(0.01)
