"""`bench splits`: what it costs to know the best split after every event, beside what counting costs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from algorithms.core.cadence import Emit, When
from algorithms.splits.finders import FINDERS
from algorithms.splits.pool import SplitPool
from worker.bench.cases import Case, Progress, Row, machine, measured, significant
from worker.bench.sides import FLOORS, finding, floors, warm_up
from worker.bench.updates import Workload, one_of


def bench_splits(
    work: Workload,
    finders: list[str],
    criterion: str,
    repeats: int,
    progress: Progress = lambda step: None,
    *,
    latency: bool = False,
) -> Iterator[Row]:
    """Yield one line for each floor and each finder.

    Parameters
    ----------
    work : Workload
        What is inserted and deleted; a query follows each event.
    finders : list of str
        Names in `FINDERS`.
    criterion : str
        For the finders that serve more than one.
    repeats : int
        Rounds; in each round everything runs once, figures are medians over the rounds.
    progress : callable
        Called with what is about to run.
    latency : bool
        Whether each finder takes the events once more, one by one, and the time of each is measured.
    """
    chosen = [(finder, FINDERS[finder].criterion or criterion) for finder in finders]
    warm_up(chosen, progress)
    cases = floors(work) + [finding(work, *each) for each in chosen]
    for case, row in zip(cases, measured(cases, FLOORS, repeats, progress), strict=True):
        line = {"bench": "splits", **row, "machine": machine()}
        if case.finder in FINDERS:
            progress(f"scores of {case.finder}")
            line |= answers(case)
            if latency:
                progress(f"single events of {case.finder}")
                line |= latencies(case)
        yield line


def answers(case: Case) -> Row:
    """Return what a finder answers: the sum of the best scores after each event, and the last split."""
    assert case.criterion is not None
    pool = SplitPool(finder=case.finder, criterion=case.criterion, splits=Emit(When.EVERY, 1))
    total, refused = 0.0, 0
    for batch in case.work.batches:
        decisions = pool.apply(batch, checked=True)
        total += float(np.sum(decisions.score))
        refused += int(np.count_nonzero(decisions.status))
    best = pool.best()
    return {
        "sum_of_scores": total,
        "best": best.feature,
        "score": best.score,
        "state_bytes": pool.nbytes,
        "refused": refused,
    }


def latencies(case: Case) -> Row:
    """Return how long single events take a finder, in processor time of the thread that applies them."""
    assert case.criterion is not None
    pool = SplitPool(finder=case.finder, criterion=case.criterion, splits=Emit(When.CHANGE))
    took = np.zeros(case.work.events, np.int64)  # ns
    at = 0
    for batch in case.work.batches:
        for event in range(len(batch.key)):
            alone = one_of(batch, event)
            started = time.thread_time_ns()
            pool.apply(alone, checked=True)
            took[at] = time.thread_time_ns() - started
            at += 1
    return {
        "median_event_us": significant(float(np.median(took)) / 1e3),
        "p999_event_us": significant(float(np.quantile(took, 0.999)) / 1e3),
        "longest_event_ms": significant(float(took.max()) / 1e6),
        "longest_event": int(np.argmax(took)),
    }
