from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core.sorting import sort
from tests.support.examples import budget

VALUES = [-1e300, -2.5, -1.0, -5e-324, 0.0, 5e-324, 1e-9, 1.0, 1.0 + 2.0**-52, 2.0, 1e300]


@given(st.lists(st.sampled_from(VALUES), max_size=80), st.integers(0, 5))
@settings(max_examples=budget(100), deadline=None, derandomize=True, database=None)
def test_sorting_is_stable_and_leaves_the_rest_alone(values: list[float], start: int) -> None:
    """Numbers are sorted with what belongs to them, equal ones in the order in which they came."""
    room = np.full(len(values) + 10, -7.0)
    room[start : start + len(values)] = values
    whose = np.arange(len(room), dtype=np.int32)
    before = room.copy()
    stop = start + len(values)
    sort(room, whose, start, stop, np.zeros(len(values)), np.zeros(len(values), np.int32))
    order = start + np.argsort(np.array(values), kind="stable")
    assert whose[start:stop].tolist() == order.tolist()
    assert room[start:stop].tolist() == before[order].tolist()
    assert (room[:start] == -7.0).all()
    assert (room[stop:] == -7.0).all()
