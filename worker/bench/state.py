"""`bench state`: how long the loop stops for a checkpoint, what it writes, and how fast it is read again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from worker.bench.kafka import Timed, kafka_settings, machine, make_live, open_kafka
from worker.bench.streams import load
from worker.checkpoint.keys import unpack_key
from worker.checkpoint.writer import Checkpointer, Identity
from worker.log.port import OutRecord, Records, TopicPartition
from worker.loop import Worker
from worker.pipeline import Pipeline
from worker.settings import CheckpointSettings, LogSettings, Settings
from worker.settings.models import SplitSettings
from worker.topics import create_topics

_SHARED = 40  # features of an example that others have too
_MINUTE = 60.0


def bench_state(
    bootstrap: str, features: int, examples: int, progress: Callable[[str], None] = lambda step: None
) -> Iterator[dict[str, Any]]:
    """Yield one line: a model of so many features and live examples is checkpointed and restored.

    Parameters
    ----------
    bootstrap : str
        A cluster for trying things out.
    features : int
        At least so many are seen, each by one example or more.
    examples : int
        Each with an id, so that it is kept.
    progress : callable
        Called with what is done next.
    """
    topic = f"bench-state-{secrets.token_hex(4)}"
    settings = kafka_settings(bootstrap, topic, "exactly_once", CheckpointSettings(records=examples))
    progress("publishing")
    with open_kafka(settings) as log:
        log.create_topic(topic, 1)
        create_topics(log, settings)
        for start in range(0, examples, 5_000):
            log.commit(list(_events(topic, features, examples, start, min(start + 5_000, examples))), {})
    timed = Timed()
    with open_kafka(settings) as log:
        progress("learning")
        worker = Worker(log, settings, timed)
        source = make_live(worker, topic)
        partition = worker.partitions[source]
        while partition.consumed < examples:
            worker.run_once()
        progress("checkpointing")
        began, longest, polled = time.perf_counter(), 0.0, 0.0
        poll = log.poll

        def timed_poll(limit: int, timeout: float) -> list[Records]:
            nonlocal polled
            started = time.perf_counter()
            found = poll(limit, timeout)
            polled = time.perf_counter() - started
            return found

        log.poll = timed_poll  # type: ignore[method-assign]
        while not timed.checkpointed:
            started = time.perf_counter()
            worker.run_once()
            longest = max(longest, time.perf_counter() - started - polled)
        seconds = time.perf_counter() - began
        written = timed.state_bytes
        status = partition.pipeline.models[0].status()
    with open_kafka(settings) as log:
        progress("restoring")
        again = Worker(log, settings, Timed())
        again.join()
        while not again.partitions:
            again.run_once()
        began = time.perf_counter()
        while not again.is_ready:
            again.run_once()
        restored = time.perf_counter() - began
    yield {
        "bench": "state",
        "features": status.slots,
        "live_examples": status.examples,
        "state_bytes": status.bytes,
        "checkpoint_bytes": written,
        "checkpoint_seconds": round(seconds, 2),
        "copy_ms": round(max(timed.pauses) * 1000, 1),
        "longest_pause_ms": round(longest * 1000, 1),
        "restore_seconds": round(restored, 2),
        "restore_bytes_per_second": round(written / restored),  # read from the state topic
        "restored_state_bytes_per_second": round(status.bytes / restored),
        "machine": machine(),
    }


def _events(topic: str, features: int, examples: int, start: int, stop: int) -> Iterator[OutRecord]:
    """Yield examples that have features of their own, all together each feature once, and some of the first."""
    random = np.random.default_rng(start)
    for number in range(start, stop):
        own = np.arange(number * features // examples, (number + 1) * features // examples, dtype=np.int64)
        shared = random.integers(features // 100, size=_SHARED)
        x = {"i": np.unique(np.concatenate([own, shared])).astype("<u4").tobytes()}
        value = msgpack.packb({"x": x, "y": number % 2, "id": number})
        yield OutRecord(topic, 0, b"key", value, (), 1)


def bench_changes(data: Path, progress: Callable[[str], None] = lambda step: None) -> Iterator[dict[str, Any]]:
    """Yield one line: what a second checkpoint writes, a minute after the first, beside all of the state.

    The recorded examples come at a rate that spreads them over two minutes, with a checkpoint after each.
    """
    stream = load(str(data), None)
    model = SplitSettings(kind="split", input="in", classes=(0, 1), features="ids")
    settings = Settings(log=LogSettings(embedded=Path("unused.db")), models={"splits": model})
    pipeline = Pipeline(TopicPartition("in", 0), settings, time.monotonic)
    checkpoints = Checkpointer(
        TopicPartition("in.state", 0),
        CheckpointSettings(),
        Identity(1, "", ""),
        b"",
        time.monotonic,
        time.time,
    )
    n = len(stream.label)
    line: dict[str, Any] = {
        "bench": "state-changes",
        "data": data.stem,
        "examples_per_second": round(n / 2 / _MINUTE),
    }
    for half, name in enumerate(("first", "second")):
        progress(f"the {name} minute")
        for start in range(half * n // 2, (half + 1) * n // 2, 500):
            stop = min(start + 500, (half + 1) * n // 2)
            values = [
                msgpack.packb(
                    {
                        "x": {
                            "i": stream.feature[stream.pointer[at] : stream.pointer[at + 1]]
                            .astype("<u4")
                            .tobytes()
                        },
                        "y": int(stream.label[at]),
                    }
                )
                for at in range(start, stop)
            ]
            offsets = np.arange(start, stop)
            pipeline.process(
                Records(
                    pipeline.source, offsets, offsets + 1, [b"key"] * len(values), values, [()] * len(values), stop
                )
            )
        started = time.perf_counter()
        checkpoints.take(pipeline.arrays(), (half + 1) * n // 2)
        line[f"{name}_copy_ms"] = round((time.perf_counter() - started) * 1000, 1)
        records = checkpoints.records()
        pages = [record for record in records if record.value and unpack_key(record.key or b"").kind == "page"]
        line[f"{name}_pages_bytes"] = sum(len(record.value or b"") for record in pages)
    yield line | {"state_bytes": checkpoints.state_bytes, "machine": machine()}
