"""`bench floor`: what an exact split costs for each one of a stream on this machine, and where the time goes.

The sides are a ladder. Each does what the one that it stands over does, and one thing more, so the difference of
the two is what this thing costs::

    read             the features of all examples are read and summed up
    count-only         + counted in a dense array
    random-access      + a random place of an array as large as the pool's table is written to
    count-entries      + counted in a table whose entries are the counts, which grows
    look-up            + the slot of each is found in storage that has them all
    count-slots          + and counted there
    count-hash             + slots are made, the storage grows
    exact-unasked            + events, totals, the index is kept; nobody asks
    exact                      + the best split is known after every event
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from algorithms.core import hashing
from algorithms.core.arrays import Int32s, Int64s, int64
from algorithms.core.cadence import Emit, When
from algorithms.core.events import Events, Op
from algorithms.core.jit import jit
from algorithms.splits import slots
from algorithms.splits.slots import Slots
from worker.bench.cases import Case, Progress, Row, machine, measured, significant
from worker.bench.sides import count_hash, count_only, count_slots, finding, grow_for
from worker.bench.streams import sparse
from worker.bench.updates import Workload, workload

_DELETE = int(Op.DELETE)
_FINDER = "exact"


class _Side(NamedTuple):
    """A rung: what is measured, and over which other."""

    case: Case
    over: str | None
    touches: int  # bytes of the arrays that it jumps about in, when the stream is over


def bench_floor(
    work: Workload, criterion: str, repeats: int, progress: Progress = lambda step: None
) -> Iterator[Row]:
    """Yield one line for each side.

    Parameters
    ----------
    work : Workload
        What is inserted and deleted.
    criterion : str
        Of the exact splits.
    repeats : int
        Rounds; in each round everything runs once, figures are medians over the rounds.
    progress : callable
        Called with what is about to run.
    """
    progress("compiling")
    for side in _sides(workload(sparse(50, 2, 20, 0.2), "window:10"), criterion):
        side.case.seconds()
    sides = _sides(work, criterion)
    rows = list(measured([side.case for side in sides], ("count-only",), repeats, progress))
    took = {row["finder"]: row["ns_per_one"] for row in rows}
    for side, row in zip(sides, rows, strict=True):
        name = row.pop("finder")
        more = took[name] - took[side.over] if side.over is not None else took[name]
        yield {
            "bench": "floor",
            "side": name,
            "over": side.over,
            "more_ns_per_one": significant(more),
            **row,
            "bytes": side.touches,
            "machine": machine(),
        }


def _sides(work: Workload, criterion: str) -> list[_Side]:
    full = _filled(work)
    dense = work.features * 16
    table = full.table.nbytes
    counted = table + int(full.counts[slots.EVER]) * full.rows.itemsize * full.rows.shape[1]
    entries = hashing.table_for(int(full.counts[slots.EVER])).nbytes * 2
    asked = finding(work, _FINDER, criterion)
    unasked = finding(work, _FINDER, criterion, splits=Emit(When.NEVER))._replace(
        finder="exact-unasked", options={}
    )
    return [
        _Side(_timed("read", work, lambda: lambda: [_read(batch) for batch in work.batches]), None, 0),
        _Side(count_only(work), "read", dense),
        _Side(_timed("random-access", work, lambda: _jumping(work, table)), "read", table),
        _Side(_timed("count-entries", work, lambda: lambda: count_entries(work)), "read", entries),
        _Side(
            _timed("look-up", work, lambda: lambda: [_look_up(full, each) for each in work.batches]),
            "read",
            counted,
        ),
        _Side(_timed("count-slots", work, lambda: _counting(work)), "look-up", counted),
        _Side(count_hash(work), "count-slots", counted),
        _Side(unasked, "count-hash", counted),
        _Side(asked, "exact-unasked", counted),
    ]


def _timed(name: str, work: Workload, make: Callable[[], Callable[[], object]]) -> Case:
    """Return a case; what it needs is made before its clock starts."""

    def seconds() -> float:
        run = make()
        started = time.thread_time()
        run()
        return time.thread_time() - started

    return Case(name, None, work, seconds)


# --- the sides


@jit
def _read(events: Events) -> int:
    found = int64(0)
    for at in range(events.feature.size):
        found += int64(events.feature[at])
    return found


@jit
def _jump(places: Int64s, events: Events, first: int) -> None:
    """Write to a random place for each feature of a batch; `first` is how many there were before."""
    mask = places.size - 1
    for at in range(events.feature.size):
        places[hashing.mix(first + at, int64(events.feature[at])) & mask] += 1


@jit
def _look_up(storage: Slots, events: Events) -> int:
    found = int64(0)
    for at in range(events.feature.size):
        found += slots.lookup(storage, 0, int64(events.feature[at]))
    return found


def _jumping(work: Workload, size: int) -> Callable[[], None]:
    places: Int64s = np.full(size // 8, 0, np.int64)

    def run() -> None:
        first = 0
        for batch in work.batches:
            _jump(places, batch, first)
            first += len(batch.feature)

    return run


def _filled(work: Workload) -> Slots:
    """Return storage with all features of a stream, none of which has counts."""
    storage = slots.make(1, 16)
    found = _scratch(work)
    for batch in work.batches:
        storage = grow_for(storage, batch)
        count_slots(storage, batch, found)
    storage.rows[:, slots.C0 :] = 0
    return storage


def _scratch(work: Workload) -> Int32s:
    return np.empty(max(int(np.diff(batch.pointer).max()) for batch in work.batches), np.int32)


def _counting(work: Workload) -> Callable[[], None]:
    storage, found = _filled(work), _scratch(work)

    def run() -> None:
        for batch in work.batches:
            count_slots(storage, batch, found)

    return run


# --- a table whose entries are the counts: the least that a hash table can cost, one miss for each one

_LIVE = 1 << 32  # of a key in use; the feature is below
_KEY, _COUNTS = 0, 1  # columns of an entry: the key; both counts, of 32 bits each


@jit
def _count_in_entries(entries: Int64s, events: Events) -> int:
    """Count the features of a batch; return how many were new. There must be room."""
    mask = entries.shape[0] - 1
    new = 0
    for event in range(events.key.size):
        unit = int64(1) << (32 * int64(events.label[event]))
        if events.op[event] == _DELETE:
            unit = -unit
        for at in range(events.pointer[event], events.pointer[event + 1]):
            key = _LIVE | int64(events.feature[at])
            place = hashing.mix(0, int64(events.feature[at])) & mask
            while entries[place, _KEY] != key and entries[place, _KEY] != 0:
                place = (place + 1) & mask
            if entries[place, _KEY] == 0:
                entries[place, _KEY] = key
                new += 1
            entries[place, _COUNTS] += unit
    return new


@jit
def _refill(entries: Int64s, bigger: Int64s) -> None:
    mask = bigger.shape[0] - 1
    for at in range(entries.shape[0]):
        if entries[at, _KEY] != 0:
            place = hashing.mix(0, entries[at, _KEY] - _LIVE) & mask
            while bigger[place, _KEY] != 0:
                place = (place + 1) & mask
            bigger[place, _KEY] = entries[at, _KEY]
            bigger[place, _COUNTS] = entries[at, _COUNTS]


def count_entries(work: Workload) -> Int64s:
    """Count the features of a stream; return int64[entries, 2], 0 where there is none."""
    entries: Int64s = np.zeros((16, 2), np.int64)
    used = 0
    for batch in work.batches:
        while 3 * (used + len(batch.feature)) > 2 * len(entries):
            bigger: Int64s = np.zeros((2 * len(entries), 2), np.int64)
            _refill(entries, bigger)
            entries = bigger
        used += _count_in_entries(entries, batch)
    return entries
