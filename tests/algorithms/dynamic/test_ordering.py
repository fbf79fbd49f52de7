"""Columns in order, beside numpy's stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from algorithms.core.arrays import Float64s, Int32s
from algorithms.dynamic.ordering import DIGITS, put_in_order

SIZES = (0, 1, 2, 12, 13, 40, 300, 1023, 1024, 3000)
RANDOM = np.random.default_rng(0)
VALUES: dict[str, Any] = {
    "few counts": lambda n: RANDOM.integers(1, 4, n).astype(float),
    "many counts": lambda n: RANDOM.integers(-500, 500, n).astype(float),
    "even": RANDOM.random,
    "equal": np.ones,
    "falling": lambda n: -np.arange(n) / 7.0,
    "rising": lambda n: np.arange(n) / 7.0,
    "both signs": RANDOM.standard_normal,
    "many orders of magnitude": lambda n: RANDOM.choice([-1.0, 1.0], n) * 10.0 ** RANDOM.uniform(-300, 300, n),
    "one far away": lambda n: np.append(RANDOM.random(max(n - 1, 0)), 1e12)[:n],
    "wider than numbers go": lambda n: RANDOM.choice([-1.7e308, 0.5, 1.7e308], n),
    "nearly nothing": lambda n: RANDOM.integers(1, 90, n) * 5e-324,
    "huge whole numbers": lambda n: 2.0**60 + 2.0**10 * RANDOM.integers(0, 5, n),
}


def put(values: Float64s, start: int, stop: int) -> tuple[Float64s, Int32s]:
    """Return values, and where each came from, with start to stop put in order."""
    values, whose = values.copy(), np.arange(len(values), dtype=np.int32)
    room = stop - start
    spare = np.empty(room), np.empty(room, np.int32)
    put_in_order(values, whose, start, stop, *spare, np.full(2 * DIGITS, 7, np.int64))
    return values, whose


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", VALUES)
def test_the_order_is_that_of_a_stable_sort(kind: str, size: int) -> None:
    """Whichever way is taken: equal values keep their order, and each value its owner."""
    values = VALUES[kind](size)
    made, whose = put(values, 0, size)
    expected = np.argsort(values, kind="stable")
    assert whose.tolist() == expected.tolist()
    assert made.tolist() == values[expected].tolist()


@pytest.mark.parametrize("kind", ["few counts", "even"])
def test_what_is_beside_a_range_stays(kind: str) -> None:
    """Only a column is sorted, not its neighbours."""
    values = VALUES[kind](2000)
    made, whose = put(values, 100, 1900)
    assert made[100:1900].tolist() == sorted(values[100:1900])
    for part in (slice(0, 100), slice(1900, 2000)):
        assert made[part].tolist() == values[part].tolist()
        assert whose[part].tolist() == list(range(2000))[part]
