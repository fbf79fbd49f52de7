from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from algorithms.core import rooms
from algorithms.core.arrays import extended, larger, zeros


@pytest.mark.parametrize("rows", [0, 1, 100, 2_047, 2_048, 100_000])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float64, np.uint8])
def test_zeros_are_those_of_numpy(rows: int, dtype: type) -> None:
    """Shape, type and content are the same; large ones begin with a line of the cache."""
    made = zeros((rows, 4), dtype)
    expected: npt.NDArray[Any] = np.zeros((rows, 4), dtype)
    assert (made.shape, made.dtype, made.nbytes) == (expected.shape, expected.dtype, expected.nbytes)
    assert not made.any()
    assert made.flags.c_contiguous
    assert made.flags.aligned
    assert made.flags.writeable
    if made.nbytes >= 1 << 16:
        assert made.ctypes.data % 64 == 0


def test_what_is_extended_keeps_its_rows() -> None:
    """The rows that were there are copied, those that are new are zero."""
    array = np.arange(30_000, dtype=np.int64).reshape(-1, 3)
    longer = extended(array, 20_000)
    assert np.array_equal(longer[:10_000], array)
    assert not longer[10_000:].any()


def _large(rows: int) -> npt.NDArray[np.int64]:
    return extended(np.arange(8, dtype=np.int64).reshape(-1, 2), rows)


def test_a_large_array_grows_where_it_lies() -> None:
    """Nothing is copied, rows keep what they hold, and those that are new are zero."""
    before = _large(100_000)
    before[99_999] = 7
    longer = extended(before, 1_000_000)
    assert longer.ctypes.data == before.ctypes.data
    assert (longer.shape, longer.dtype) == ((1_000_000, 2), before.dtype)
    assert longer[:4].ravel().tolist() == list(range(8))
    assert longer[99_999].tolist() == [7, 7]
    assert not longer[100_000:].any()
    assert longer.flags.c_contiguous
    assert longer.flags.aligned
    assert longer.flags.writeable


@pytest.mark.parametrize("part", ["first", "some", "turned"])
def test_what_was_extended_before_is_copied(part: str) -> None:
    """Rows beyond an array may be another's: they are not taken, and nothing that they hold is seen."""
    first = _large(100_000)
    longer = extended(first, 200_000)
    longer[100_000:] = 5
    of = {"first": first, "some": longer[:150_000], "turned": longer[::-1]}[part]
    again = extended(of, 300_000)
    assert not np.shares_memory(again, longer)
    assert np.array_equal(again[: len(of)], of)
    assert not again[len(of) :].any()


def test_without_addresses_to_spare_arrays_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system gives no room it is as with small arrays."""
    monkeypatch.setattr(rooms, "_LEAST_SPACE", 1 << 62)
    before = _large(100_000)
    longer = extended(before, 200_000)
    assert not np.shares_memory(before, longer)
    assert np.array_equal(longer[:100_000], before)
    assert not longer[100_000:].any()


def test_capacities_double_and_then_grow_by_an_eighth() -> None:
    """Each is reached from each that is smaller by the same steps, whatever is needed on the way."""
    assert larger(16, 16) == 16
    assert larger(16, 17) == 32
    assert larger(0, 1) == 1
    assert larger(1 << 16, (1 << 16) + 1) == (1 << 16) + (1 << 13)
    assert larger(larger(16, 100_000), 1_000_000) == larger(16, 1_000_000)
    assert larger(1 << 23, (1 << 23) + 1) == (1 << 23) + (1 << 17)
