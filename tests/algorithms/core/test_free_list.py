"""The free list against a plain list of what is out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.core import free_list


@given(st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=60))
def test_rows_are_given_out_once_and_again_last_in_first_out(steps: list[int | None]) -> None:
    """Rows that are out are all different; what came back last goes out first; no row is skipped."""
    used = np.array([0, 0, free_list.NONE], np.int64)
    links = np.zeros((60, 2), np.int32)
    out: list[int] = []
    back: list[int] = []
    for step in steps:
        if step is None:
            row = int(free_list.take(used, links[:, 1]))
            assert row == (back.pop() if back else len(out))
            out.append(row)
        elif out:
            row = out.pop(step % len(out))
            free_list.give(used, links[:, 1], row)
            back.append(row)
        free_list.check(used, links[:, 1], out)
    assert not links[:, 0].any(), "another column was written"


def test_the_check_tells_a_row_that_is_lost_or_in_two_places() -> None:
    """It would not guard anything otherwise."""
    used = np.array([1, 3, 2], np.int64)
    links = np.array([0, -1, 1])
    free_list.check(used, links, [0])
    for wrong_used, wrong_links in (([1, 4, 2], links), ([2, 3, 2], links), ([1, 3, 2], np.array([0, 2, 1]))):
        with pytest.raises(AssertionError):
            free_list.check(np.array(wrong_used, np.int64), wrong_links, [0])
