from typing import Any

import numpy as np
import pytest

from algorithms.core import hashing
from algorithms.core.cadence import Emit, When
from algorithms.splits.kernel import Decisions
from algorithms.splits.pool import SplitPool
from worker.bench.streams import load
from worker.bench.updates import one_of, workload


def _run(batches: list[Any]) -> tuple[SplitPool, list[Decisions]]:
    pool = SplitPool(criterion="gini", splits=Emit(When.EVERY, 1))
    return pool, [pool.apply(batch) for batch in batches]


def test_storage_that_grows_in_steps_is_the_same_for_any_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are equal to the byte, all invariants hold, and answers are those of a table that doubles."""
    work = workload(load("fresh:120,4,9"), "window:76")
    _, doubled = _run(work.batches)
    for name, value in (("_SMALL", 64), ("_STEP", 16), ("_FEW", 16)):
        monkeypatch.setattr(hashing, name, value)
    together, answers = _run(work.batches)
    alone, _ = _run([one_of(batch, event) for batch in work.batches for event in range(len(batch.key))])
    for pool in (together, alone):
        pool.check()
    places = len(together.counted.table)
    assert places & (places - 1), "the table is between two powers of two"
    for name, array in together.arrays().items():
        assert np.array_equal(array, alone.arrays()[name]), name
    for one, other in zip(doubled, answers, strict=True):
        assert np.array_equal(one.score, other.score)
        assert np.array_equal(one.feature, other.feature)
    again = SplitPool(criterion="gini", splits=Emit(When.EVERY, 1)).restore(together.arrays())
    again.check()
    assert again.best() == together.best()
