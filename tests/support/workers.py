"""Workers for tests, and every byte that they wrote."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, TopicPartition
from worker.loop import Worker
from worker.settings import Settings, load
from worker.watching.listener import WorkerListener
from worker.watching.metrics import Metrics
from worker.watching.status import Status, StatusBoard


def worker_on(log: Log, settings: Settings, wall_clock: Callable[[], float] = time.time) -> Worker:
    """Return a worker, which has not joined yet."""
    listener = WorkerListener(Metrics(CollectorRegistry(), "0"), StatusBoard(Status(0.0)))
    return Worker(log, settings, listener, wall_clock=wall_clock)


def outputs_of(settings: Path, log: Path) -> dict[TopicPartition, list[Any]]:
    """Return every byte of the results and dead letters in an embedded log."""
    found: dict[TopicPartition, list[Any]] = {}
    with EmbeddedLog(log) as opened:
        for route in load(settings, {}).routes.values():
            for topic in route.results:
                for number in range(opened.partitions(topic) or 0):
                    source = TopicPartition(topic, number)
                    records = opened.read(source, 0, 100_000)
                    columns = (records.keys, records.values, records.headers, records.timestamps.tolist())
                    found[source] = list(zip(*columns, strict=True))
    return found
