"""`bench pipeline`: examples a second through the whole path, log to committed results.

Of one partition, or of several in so many threads: all counts of threads are sides of one run, in turns.
"""

from __future__ import annotations

import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from prometheus_client import CollectorRegistry

from worker.bench.forms import COLUMNS, SCHEMAS, SINGLE, columnar
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord
from worker.loop import Worker
from worker.settings import LogSettings, Settings
from worker.settings.models import SplitSettings
from worker.settings.topics import RegistrySettings, TopicSettings
from worker.watching.listener import WorkerListener
from worker.watching.metrics import Metrics
from worker.watching.status import ModelStatus, Status, StatusBoard

TOPIC = "events"
_ONES = 15  # features of an example
_VOCABULARY = 2_000
_ROWS = 1_000  # rows of a columnar record


def _examples(n: int, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return n examples of 15 different features, and their labels.

    Features are as frequent as words are (the most frequent in 11 % of the examples); the label follows two of
    them, so that the best split gains 0.1 bits an example, as in the SMS Spam Collection.
    """
    random = np.random.default_rng(seed)
    # Without repeats and in ascending order: one feature from each of 15 ranges, skewed inside its range.
    width = _VOCABULARY // _ONES
    inside = (width * random.random((n, _ONES)) ** 3).astype(np.uint32)
    features = inside + np.arange(_ONES, dtype=np.uint32) * width
    told = (inside[:, 0] == 0) | (inside[:, 1] == 0)
    label = (told ^ (random.random(n) < 0.1)).astype(np.uint8)
    return features, label


def records(form: str, n: int, keys: int, partitions: int = 1) -> Iterator[OutRecord]:
    """Yield the input: n examples in a form, of so many keys in each partition; partitions take turns."""
    features, label = _examples(n)
    random = np.random.default_rng(1)
    if form == COLUMNS:
        for number, start in enumerate(range(0, n, _ROWS)):
            rows = slice(start, start + _ROWS)
            value = columnar(features[rows], label[rows])
            yield OutRecord(TOPIC, number % partitions, _key(int(random.integers(keys))), value, (), 1)
        return
    encode = SINGLE[form].encode
    chosen = random.integers(keys, size=n).tolist()
    for number, (key, row, y) in enumerate(zip(chosen, features, label.tolist(), strict=True)):
        yield OutRecord(TOPIC, number % partitions, _key(key), encode(row.tolist(), y), (), 1)


def _key(number: int) -> bytes:
    return b"key-%d" % number


def _settings(path: Path, form: str, threads: int) -> Settings:
    is_named = form in SINGLE and SINGLE[form].named
    model = SplitSettings(kind="split", input=TOPIC, classes=(0, 1), features="names" if is_named else "ids")
    return Settings(
        log=LogSettings(embedded=path),
        models={"splits": model},
        topics={TOPIC: SINGLE[form].topic if form in SINGLE else TopicSettings()},
        registry=RegistrySettings(url="http://unused"),
        checkpoint=None,
        threads=threads,
    )


class _Run(NamedTuple):
    """What a run took and left."""

    seconds: float
    cpu_seconds: float  # the same where nothing else runs on the core
    worker: Worker
    written: int


def _run(path: Path, form: str, group: str, threads: int = 1) -> _Run:
    """Run a worker over the whole log as a new group."""
    settings = _settings(path, form, threads)
    written = 0

    def count(transaction: Any) -> None:
        nonlocal written
        written += len(transaction.outputs)

    with EmbeddedLog(path, group=group) as log:
        metrics = Metrics(CollectorRegistry(), "bench")
        listener = WorkerListener(metrics, StatusBoard(Status(0.0)))
        worker = Worker(log, settings, listener, committed=count, schemas=SCHEMAS)
        started, cpu = time.perf_counter(), time.process_time()
        worker.run(lambda: False, until_end=True, alone=True)
        return _Run(time.perf_counter() - started, time.process_time() - cpu, worker, written)


def bench_pipeline(
    forms: list[str],
    key_counts: list[int],
    events: int,
    repeats: int,
    progress: Callable[[str], None] = lambda step: None,
    partitions: int = 1,
    threads: Sequence[int] = (1,),
) -> Iterator[dict[str, Any]]:
    """Yield one line for each form of event, number of keys and of threads: the embedded log to committed results.

    Parameters
    ----------
    forms : list of str
        Of `worker.bench.forms.FORMS`: single events with a list of ints, single packed ones, columnar records of
        1,000 rows, single events with names, and single events of each other format.
    key_counts : list of int
        How many model keys the events are spread over, at random, in each partition.
    events : int
        Examples in each run.
    repeats : int
        Runs of each, figures are medians.
    progress : callable
        Called with what is about to run.
    partitions : int
        Of the input.
    threads : sequence of int
        Numbers of threads that process partitions; these are run in turns.
    """
    with tempfile.TemporaryDirectory() as folder:
        progress("compiling")
        for form in ("list", "named"):
            _filled(Path(folder) / f"{form}.db", form, 2_000, 10)
            _run(Path(folder) / f"{form}.db", form, "first")
        for form in forms:
            for keys in key_counts:
                progress(f"{form}, {keys} keys")
                path = Path(folder) / f"{form}-{keys}.db"
                _filled(path, form, events, keys, partitions)
                sides: list[list[_Run]] = [[] for _ in threads]
                for round_ in range(repeats):
                    for count, runs in zip(threads, sides, strict=True):
                        runs.append(_run(path, form, f"{count} threads, round {round_}", count))
                lines = [_line(form, keys, events, runs) for runs in sides]
                for count, line in zip(threads, lines, strict=True):
                    sped = {"times_the_first": round(lines[0]["seconds"] / line["seconds"], 2)}
                    yield line | {"partitions": partitions, "threads": count} | (sped if len(lines) > 1 else {})
                path.unlink()


def _filled(path: Path, form: str, events: int, keys: int, partitions: int = 1) -> None:
    with EmbeddedLog(path) as log:
        log.create_topic(TOPIC, partitions)
        log.append(records(form, events, keys, partitions))


def _line(form: str, keys: int, events: int, runs: list[_Run]) -> dict[str, Any]:
    seconds = statistics.median(run.seconds for run in runs)
    owned = runs[-1].worker.partitions.values()
    status = reduce(ModelStatus.plus, (partition.pipeline.models[0].status() for partition in owned))
    return {
        "bench": "pipeline",
        "form": form,
        "keys": keys,
        "examples": events,
        "ones": events * _ONES,
        "seconds": round(seconds, 4),
        "cpu_seconds": round(statistics.median(run.cpu_seconds for run in runs), 4),
        "examples_per_second": round(events / seconds),
        "results": runs[-1].written,
        "live_keys": status.keys,
        "state_bytes_per_key": round(status.bytes / status.keys, 1),
        "state_bytes_per_key_and_feature": round(status.bytes / status.slots, 1),
        "repeats": len(runs),
        "machine": f"{platform.machine()} {platform.system()} Python {platform.python_version()}",
    }
