"""What is compared: finders with a query after every event, and two floors that only count.

``count-only`` adds to a dense array, ``count-hash`` adds to the counters in the pool's own storage. Both do
nothing else; a delete subtracts. Seconds are of CPU, as other programs may run on the machine.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from algorithms.core.arrays import Int32s, Int64s, int64
from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import CRITERIA, UNIT
from algorithms.core.events import Events, Op
from algorithms.core.jit import jit
from algorithms.splits import slots
from algorithms.splits.finders import FINDERS
from algorithms.splits.pool import SplitPool
from algorithms.splits.slots import C0, N0, NONE, Slots
from worker.bench.cases import Case, Progress
from worker.bench.streams import sparse
from worker.bench.updates import Workload, workload

FLOORS = ("count-only", "count-hash")
_DELETE = int(Op.DELETE)


@jit
def count_dense(counts: Int64s, events: Events) -> None:
    """Count the features of a batch in `counts`, int64[features, 2]."""
    for event in range(events.key.size):
        label = int64(events.label[event])
        weight = -1 if events.op[event] == _DELETE else 1
        for at in range(events.pointer[event], events.pointer[event + 1]):
            counts[events.feature[at], label] += weight


@jit
def count_slots(storage: Slots, events: Events, found: Int32s) -> None:
    """Count the features of a batch in storage that has room; `found` is scratch for one example."""
    for event in range(events.key.size):
        label = int64(events.label[event])
        weight = -UNIT if events.op[event] == _DELETE else UNIT
        start = events.pointer[event]
        ones = events.pointer[event + 1] - start
        storage.heads[0, N0 + label] += weight
        for at in range(ones):
            feature = int64(events.feature[start + at])
            slot = slots.lookup(storage, 0, feature)
            found[at] = slots.create(storage, 0, feature) if slot == NONE else slot
        for at in range(ones):
            storage.rows[int64(found[at]), C0 + label] += weight


def grow_for(storage: Slots, events: Events) -> Slots:
    """Return storage that has room for a batch, doubled as the pool does."""
    while slots.room(storage) < int(events.pointer[-1]):
        storage = slots.grown(storage, 1, 2 * len(storage.rows))
    return storage


def count_only(work: Workload) -> Case:
    """Count in a dense array."""

    def seconds() -> float:
        # Written once before the clock starts: to be given memory, page by page, is not counting. With 10^7
        # features, each seen seldom, it would take thirty times as long as the counting.
        counts = np.full((work.features, 2), 0, np.int64)
        started = time.thread_time()
        for batch in work.batches:
            count_dense(counts, batch)
        return time.thread_time() - started

    return Case("count-only", None, work, seconds)


def count_hash(work: Workload) -> Case:
    """Count in the storage of a pool."""

    def seconds() -> float:
        storage = slots.make(1, 16)
        found = np.empty(max(int(np.diff(batch.pointer).max()) for batch in work.batches), np.int32)
        started = time.thread_time()
        for batch in work.batches:
            storage = grow_for(storage, batch)
            count_slots(storage, batch, found)
        return time.thread_time() - started

    return Case("count-hash", None, work, seconds)


def floors(work: Workload) -> list[Case]:
    """Return both floors."""
    return [count_only(work), count_hash(work)]


def finding(work: Workload, finder: str, criterion: str, **options: Any) -> Case:
    """Keep the best split with a finder, a query after each event; options go to the pool."""

    def seconds() -> float:
        pool = SplitPool(finder=finder, criterion=criterion, **{"splits": Emit(When.CHANGE), **options})
        started = time.thread_time()
        for batch in work.batches:
            pool.apply(batch, checked=True)
        return time.thread_time() - started

    return Case(finder, criterion, work, seconds, options)


def criteria_of(finder: str) -> list[str]:
    """Return the criteria that a finder serves."""
    only = FINDERS[finder].criterion
    return [only] if only else list(CRITERIA)


def warm_up(cases: list[tuple[str, str]], progress: Progress) -> None:
    """Compile what measures the floors and these finders with their criteria."""
    progress("compiling")
    work = workload(sparse(50, 2, 20, 0.2), "window:10")
    for case in floors(work) + [finding(work, finder, criterion) for finder, criterion in cases]:
        case.seconds()
