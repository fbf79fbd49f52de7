"""`bench optimal`: how often the approximate finders name a split that is not the best, and how far off it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from algorithms.core.arrays import Float64s
from algorithms.core.cadence import Emit, When
from algorithms.splits.finders import FINDERS
from algorithms.splits.pool import SplitPool
from worker.bench.cases import Progress, Row, machine, significant
from worker.bench.sides import criteria_of
from worker.bench.streams import Stream
from worker.bench.updates import Workload, workload

APPROXIMATE = [name for name, finder in FINDERS.items() if finder.approximate is not None]


def bench_optimal(
    stream: Stream, alphas: Sequence[float], orders: int, progress: Progress = lambda step: None
) -> Iterator[Row]:
    """Yield one line for each order of the examples, finder, criterion and alpha.

    Parameters
    ----------
    stream : Stream
        Examples that are inserted; the best split is asked for after each.
    alphas : sequence of float
        A finder promises a score of at most 1 + alpha times the least one.
    orders : int
        So many orders at random, after the one in which the examples come.
    progress : callable
        Called with what is about to run.
    """
    for order in range(orders + 1):
        work = workload(_in_order(stream, order))
        for finder in APPROXIMATE:
            for criterion in criteria_of(finder):
                progress(f"{stream.name}, order {order}: exact, {criterion}")
                least = _scores(work, "exact", criterion)
                for alpha in alphas:
                    progress(f"{stream.name}, order {order}: {finder}, alpha {alpha:g}")
                    scores = _scores(work, finder, criterion, alpha)
                    worse = scores > least
                    # A least score of 0 has no ratio: everything that is worse is infinitely worse.
                    ratio = np.divide(scores, least, out=np.where(worse, np.inf, 1.0), where=least > 0.0)
                    yield {
                        "bench": "optimal",
                        "data": stream.name,
                        "order": order,
                        "finder": finder,
                        "criterion": criterion,
                        "alpha": alpha,
                        "updates": len(scores),
                        "suboptimal": int(np.count_nonzero(worse)),
                        "share": significant(float(worse.mean())),
                        "largest_ratio": significant(float(ratio.max())),
                        "machine": machine(),
                    }


def _in_order(stream: Stream, order: int) -> Stream:
    """Return a stream in an order of its examples by number, 0: as it is."""
    if order == 0:
        return stream
    shuffled = np.random.default_rng(order).permutation(len(stream.label))
    rows = [stream.feature[stream.pointer[at] : stream.pointer[at + 1]] for at in shuffled]
    pointer = np.concatenate([[0], np.cumsum(list(map(len, rows)))])
    return stream._replace(pointer=pointer, feature=np.concatenate(rows), label=stream.label[shuffled])


def _scores(work: Workload, finder: str, criterion: str, alpha: float = 0.1) -> Float64s:
    """Return the score of the split that a finder names after each event."""
    pool = SplitPool(finder=finder, criterion=criterion, alpha=alpha, splits=Emit(When.EVERY, 1))
    return np.concatenate([pool.apply(batch, checked=True).score for batch in work.batches])
