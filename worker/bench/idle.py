"""`bench idle`: what is left of a state of which nine tenths expire, and how long a batch takes meanwhile."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from worker.bench.cases import machine
from worker.checkpoint.shadow import PAGE_BYTES, Shadow
from worker.log.port import Records, TopicPartition
from worker.models.base import PoolModel
from worker.pipeline import Pipeline
from worker.settings import Settings
from worker.warming import freeze

_SOURCE = TopicPartition("idle", 0)
_BATCH = 500  # records
_SPAN = 1_000_000  # ms
_FEATURES = 5_000  # of which each example has some
# What settings of the kinds say beside what all say.
KINDS: dict[str, dict[str, Any]] = {
    "split": {"classes": [0, 1], "emit": {"splits": "never"}},
    "tree": {"classes": [0, 1]},
    "dynamic-tree": {"classes": [0, 1]},
    "forest": {"classes": [0, 1], "trees": 3},
    "forest of tree": {"classes": [0, 1], "trees": 3, "of": {"kind": "tree"}},
    "regression-tree": {},
}


def bench_idle(
    keys: int, ones: int, kind: str = "split", progress: Callable[[str], None] = lambda step: None
) -> Iterator[dict[str, Any]]:
    """Yield a line for the run in which most keys expire, and one for a run that only had the others.

    Each runs in a process of its own, so that memory is its own.

    Parameters
    ----------
    keys : int
        Of which every tenth is used again.
    ones : int
        Features of an example; each key has one.
    kind : str
        Of the model.
    progress : callable
        Called with what is done next.
    """
    rows = []
    for told, step in (("a tenth lives", 1), ("only the tenth", 10)):
        progress(told)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as apart:
            rows.append(apart.submit(_run, keys, ones, kind, step).result())
        sizes = {f"times_{name}": rows[0][name] / rows[-1][name] for name in _SIZES} if len(rows) == 2 else {}
        yield {"bench": "idle", "kind": kind, "run": told, **rows[-1], **sizes, "machine": machine()}


_SIZES = ("state_bytes", "memory_bytes", "checkpoint_bytes")


def _run(keys: int, ones: int, kind: str, step: int) -> dict[str, Any]:
    """Let every `step`-th key learn an example, then use every tenth until all others have gone."""
    model = {
        "kind": kind.partition(" ")[0],
        "input": "idle",
        "features": "ids",
        "expire": f"{_SPAN // 1_000}s",
        **KINDS[kind],
    }
    settings = {"log": {"embedded": "unused"}, "models": {"idle": model}}
    pipeline = Pipeline(_SOURCE, Settings.model_validate_json(json.dumps(settings)), time.monotonic)
    pipeline.warm_up()
    freeze()
    before = _memory()
    shadow = Shadow()
    longest, offset, living = [(0.0, 0.0)] * 2, 0, [b"%d" % key for key in range(0, keys, 10)]
    for phase, batches in enumerate((_inserts(keys, ones, step), _uses(living, pipeline, keys // step))):
        for told, values, now in batches:
            records = _records(told, values, now, offset)
            started = time.perf_counter(), time.process_time()
            pipeline.process(records)
            taken = time.perf_counter() - started[0], time.process_time() - started[1]
            longest[phase] = max(longest[phase][0], taken[0]), max(longest[phase][1], taken[1])
            offset += len(told)
        written, _ = shadow.take(pipeline.arrays(), 1 + phase)
        for page in written:
            shadow.read(page)
    pages = [
        PAGE_BYTES
        for manifest in shadow.manifests().values()
        for entry in manifest.arrays
        for generation in np.frombuffer(entry.generations, "<i8").tolist()
        if generation
    ]
    [status] = [model.status() for model in pipeline.models]
    return {
        "keys": status.keys,
        "events": offset,
        "state_bytes": status.bytes,
        "memory_bytes": _memory() - before,
        "checkpoint_bytes": sum(pages),
        "longest_growing_ms": longest[0][0] * 1_000,
        "longest_expiring_ms": longest[1][0] * 1_000,
        "longest_expiring_processor_ms": longest[1][1] * 1_000,
    }


_Batch = tuple[list[bytes], list[bytes], int]


def _inserts(keys: int, ones: int, step: int) -> Iterator[_Batch]:
    """Yield an example for each key."""
    drawn = np.random.default_rng(1)
    for start in range(0, keys, _BATCH * step):
        told = [b"%d" % key for key in range(start, min(start + _BATCH * step, keys), step)]
        features = drawn.integers(0, _FEATURES, (len(told), ones)).tolist()
        values = [msgpack.packb({"x": sorted(set(x)), "y": at % 2}) for at, x in enumerate(features)]
        yield told, values, 1_000


def _uses(living: list[bytes], pipeline: Pipeline, keys: int) -> Iterator[_Batch]:
    """Yield uses of the living keys: once before the others are due, then until all of these have gone."""
    value = msgpack.packb({"op": "predict", "x": [1]})
    [model] = pipeline.models
    assert isinstance(model, PoolModel)
    batches = -(-len(living) // _BATCH)
    for turn in range(10 * keys):
        at = turn % batches * _BATCH
        told = living[at : at + _BATCH]
        now = 1_000 + _SPAN // 2 if turn < batches else 1_000 + _SPAN
        yield told, [value] * len(told), now
        if turn > batches and model.status().keys == len(living) and not model.is_moving:
            return


def _records(keys: list[bytes], values: list[bytes], now: int, start: int) -> Records:
    offsets = np.arange(start, start + len(keys))
    return Records(_SOURCE, offsets, np.full(len(keys), now), keys, values, [()] * len(keys), start + len(keys))


def _memory() -> int:
    """Return what of the process is in memory, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
