"""Pools whose window is a span of time."""

from __future__ import annotations

import pytest

from algorithms.dynamic.pool import DynamicPool
from algorithms.forests.pool import ForestPool
from algorithms.mixed.pool import MixedSplitPool
from algorithms.splits.pool import SplitPool


@pytest.mark.parametrize("kind", [SplitPool, DynamicPool, ForestPool, MixedSplitPool])
def test_events_without_a_clock_are_refused(
    kind: type[SplitPool] | type[DynamicPool] | type[ForestPool] | type[MixedSplitPool],
) -> None:
    """A kernel would read beyond the end of the clock; a pool without a span needs none."""
    with pytest.raises(ValueError, match="expected a clock for each event of a pool with a span, got none"):
        kind(span=1_000).insert([1], 1, id=1)
    assert kind().insert([1], 1, id=1) == 0
