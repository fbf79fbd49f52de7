"""`bench splits`: what it costs to know the best split after every event, beside what counting costs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.core.cadence import Emit, When
from algorithms.splits.finders import FINDERS
from algorithms.splits.pool import SplitPool
from worker.bench.cases import Case, Progress, Row, machine, measured
from worker.bench.sides import FLOORS, finding, floors, warm_up
from worker.bench.updates import Workload


def bench_splits(
    work: Workload,
    finders: list[str],
    criterion: str,
    repeats: int,
    progress: Progress = lambda step: None,
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
    """
    chosen = [(finder, FINDERS[finder].criterion or criterion) for finder in finders]
    warm_up(chosen, progress)
    cases = floors(work) + [finding(work, *each) for each in chosen]
    for case, row in zip(cases, measured(cases, FLOORS, repeats, progress), strict=True):
        line = {"bench": "splits", **row, "machine": machine()}
        if case.finder in FINDERS:
            progress(f"scores of {case.finder}")
            line |= answers(case)
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
