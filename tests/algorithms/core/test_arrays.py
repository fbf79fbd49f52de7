from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from algorithms.core.arrays import extended, zeros


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
