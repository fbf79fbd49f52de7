"""`bench splits`: what it costs to know the best split after every example, beside what counting costs.

Two floors are measured in the same run: ``count-only`` adds to a dense array, ``count-hash`` adds to the
counters in the pool's own storage. Both do nothing else.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from algorithms import slots
from algorithms.arrays import Int32s, Int64s, int64
from algorithms.criteria import UNIT
from algorithms.jit import jit
from algorithms.slots import C0, N0, NONE, Slots
from algorithms.splits import Batch, Emit, SplitPool, When
from worker.bench.streams import Stream

_BATCH = 1_000  # examples in one call of a kernel


@jit
def _count_only(counts: Int64s, batch: Batch) -> None:
    for event in range(batch.index.size):
        label = int64(batch.label[event])
        for at in range(batch.pointer[event], batch.pointer[event + 1]):
            counts[batch.feature[at], label] += 1


@jit
def _count_hash(storage: Slots, batch: Batch, found: Int32s) -> None:
    for event in range(batch.index.size):
        label = int64(batch.label[event])
        start = batch.pointer[event]
        ones = batch.pointer[event + 1] - start
        storage.heads[0, N0 + label] += UNIT
        for at in range(ones):
            feature = int64(batch.feature[start + at])
            slot = slots.lookup(storage, 0, feature)
            found[at] = slots.create(storage, 0, feature) if slot == NONE else slot
        for at in range(ones):
            storage.rows[int64(found[at]), C0 + label] += UNIT


def _batches(stream: Stream) -> list[Batch]:
    n = len(stream.label)
    return [
        Batch(
            index=np.zeros(stop - start, np.int32),
            op=np.zeros(stop - start, np.int8),
            label=stream.label[start:stop],
            weight=np.full(stop - start, UNIT, np.int64),
            time=np.ones(stop - start, np.int64),
            named=np.zeros(stop - start, np.int8),
            id_high=np.zeros(stop - start, np.int64),
            id_low=np.zeros(stop - start, np.int64),
            pointer=stream.pointer[start : stop + 1],
            feature=stream.feature,
        )
        for start, stop in ((start, min(start + _BATCH, n)) for start in range(0, n, _BATCH))
    ]


def _run_count_only(stream: Stream, batches: list[Batch]) -> float:
    counts = np.zeros((stream.features, 2), np.int64)
    started = time.perf_counter()
    for batch in batches:
        _count_only(counts, batch)
    return time.perf_counter() - started


def _run_count_hash(stream: Stream, batches: list[Batch]) -> float:
    storage = slots.make(1, 16)
    found = np.empty(int(np.diff(stream.pointer).max(initial=1)), np.int32)
    started = time.perf_counter()
    for batch in batches:
        ones = int(batch.pointer[-1] - batch.pointer[0])
        while slots.room(storage) < ones:  # doubling, as the pool does
            storage = slots.grown(storage, 1, 2 * len(storage.rows))
        _count_hash(storage, batch, found)
    return time.perf_counter() - started


def _run_finder(finder: str, criterion: str, batches: list[Batch]) -> tuple[float, SplitPool]:
    pool = SplitPool(finder=finder, criterion=criterion, splits=Emit(When.CHANGE))
    started = time.perf_counter()
    for batch in batches:
        pool.apply(batch)
    return time.perf_counter() - started, pool


def _sum_of_scores(finder: str, criterion: str, batches: list[Batch]) -> float:
    pool = SplitPool(finder=finder, criterion=criterion, splits=Emit(When.EVERY, 1))
    return float(sum(float(np.sum(pool.apply(batch).score)) for batch in batches))


def bench_splits(
    stream: Stream,
    finders: list[str],
    criterion: str,
    repeats: int,
    progress: Callable[[str], None] = lambda step: None,
) -> Iterator[dict[str, Any]]:
    """Yield one line for each floor and each finder.

    Parameters
    ----------
    stream : Stream
        The examples, all inserted, with a query after each.
    finders : list of str
        Names in `FINDERS`.
    criterion : str
        For the finders that serve more than one.
    repeats : int
        Rounds; in each round everything runs once, figures are medians over the rounds.
    progress : callable
        Called with what is about to run.
    """
    from algorithms.finders import FINDERS

    criteria = {finder: FINDERS[finder].criterion or criterion for finder in finders}
    batches = _batches(stream)
    progress("compiling")
    warm = _batches(stream._replace(pointer=stream.pointer[:2], label=stream.label[:1]))
    _run_count_only(stream, warm)
    _run_count_hash(stream, warm)
    for finder in finders:
        _run_finder(finder, criteria[finder], warm)
    seconds: dict[str, list[float]] = {name: [] for name in ("count-only", "count-hash", *finders)}
    pools = {}
    for repeat in range(repeats):
        progress(f"round {repeat + 1} of {repeats}")
        seconds["count-only"].append(_run_count_only(stream, batches))
        seconds["count-hash"].append(_run_count_hash(stream, batches))
        for finder in finders:
            taken, pools[finder] = _run_finder(finder, criteria[finder], batches)
            seconds[finder].append(taken)
    examples, ones = len(stream.label), int(stream.pointer[-1])
    for name, runs in seconds.items():
        median = statistics.median(runs)
        line: dict[str, Any] = {
            "bench": "splits",
            "data": stream.name,
            "finder": name,
            "criterion": criteria.get(name),
            "examples": examples,
            "ones": ones,
            "seconds": round(median, 6),
            "us_per_example": round(median / examples * 1e6, 4),
            "ns_per_one": round(median / max(ones, 1) * 1e9, 3),
            "to_count_only": round(_ratio(runs, seconds["count-only"]), 3),
            "to_count_hash": round(_ratio(runs, seconds["count-hash"]), 3),
            "repeats": repeats,
            "machine": f"{platform.machine()} {platform.system()} Python {platform.python_version()}",
        }
        if name in pools:
            progress(f"scores of {name}")
            best = pools[name].best()
            line["sum_of_scores"] = _sum_of_scores(name, criteria[name], batches)
            line["best"] = best.feature
            line["score"] = best.score
            line["state_bytes"] = pools[name].nbytes
        yield line


def _ratio(taken: list[float], base: list[float]) -> float:
    """Return the median of the ratios round by round, which cancels the machine's drift."""
    return statistics.median(mine / other for mine, other in zip(taken, base, strict=True))
