import numpy as np
import pytest

from algorithms.core import jit
from algorithms.core.cadence import Emit, When
from algorithms.core.events import Events
from algorithms.splits import slots
from algorithms.splits.pool import SplitPool


@pytest.mark.skipif(
    jit.IS_OFF, reason="the interpreted kernels see to look-ups ahead in the smallest storage, see conftest"
)
@pytest.mark.parametrize("label", [0, 1])
def test_a_storage_beyond_the_cache_answers_as_small_ones(label: int) -> None:
    """A pool of many keys, which sees to look-ups ahead, decides of each what a pool of its own does."""
    rng = np.random.default_rng(label)
    n, ones, keys = 3_000, 40, 200
    features = (rng.integers(0, 1 << 22, (n, ones)) + np.arange(ones) * (1 << 22)).astype(np.uint32)
    features[:, 0] = rng.integers(0, 3, n)
    labels = np.where(features[:, 0] == 0, label, rng.integers(0, 2, n)).astype(np.int32)
    events = Events.of(np.zeros(n, np.int8), labels, np.arange(0, n * ones + 1, ones), features.ravel())
    events = events._replace(key=rng.integers(0, keys, n).astype(np.int32))
    pool = SplitPool(finder="exact", criterion="gini", splits=Emit(When.EVERY, 1))
    decided = pool.apply(events)
    assert len(pool.counted.table) >= slots.SPREAD
    for key in range(0, keys, 50):
        own = np.flatnonzero(events.key == key)
        alone = SplitPool(finder="exact", criterion="gini", splits=Emit(When.EVERY, 1))
        one = Events.of(
            np.zeros(len(own), np.int8),
            labels[own],
            np.arange(0, len(own) * ones + 1, ones),
            features[own].ravel(),
        )
        expected = alone.apply(one)
        for name in ("feature", "runner_up", "totals", "present", "score", "runner_up_score"):
            assert np.array_equal(getattr(decided, name)[own], getattr(expected, name)), name
