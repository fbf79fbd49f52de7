"""Whole runs of a worker over records of any format, on an embedded log."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry

from tests.support.other_formats import known
from worker.formats import Schemas
from worker.log.embedded import EmbeddedLog
from worker.log.port import Headers, OutRecord, TopicPartition
from worker.loop import Worker
from worker.settings import Settings
from worker.watching.listener import WorkerListener
from worker.watching.metrics import Metrics
from worker.watching.status import Status, StatusBoard

TIMESTAMP = 1_700_000_000_000
MODELS: dict[str, Any] = {
    "best": {"kind": "split", "input": "in", "classes": ["ham", "spam"], "features": "names"},
    "grown": {
        "kind": "tree",
        "input": "in",
        "classes": ["ham", "spam"],
        "features": "names",
        "policy": "periodic",
        "grace_period": 20,
        "on_delete": "ignore",
        "attributes": {"default": "numeric"},
        "evaluate": {"emit": {"every": 20}},
        "emit": {"snapshots": {"every": 30}},
    },
}


class Written(NamedTuple):
    """A record that a worker wrote."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int


def settings_of(path: Path, topic: dict[str, Any], **more: Any) -> Settings:
    """Return settings of two models whose input is read so."""
    content = {
        "log": {"embedded": str(path)},
        "models": MODELS,
        "topics": {"in": topic},
        "registry": {"url": "http://127.0.0.1:1"},
        "checkpoint": None,
        "metrics": {"port": None},
    }
    return Settings.model_validate_json(json.dumps(content | more))


def examples(count: int) -> list[dict[str, Any]]:
    """Return events whose label a word tells, with numbers, predicts and deletes among them."""
    events: list[dict[str, Any]] = []
    for number in range(count):
        spam = number * 7 % 3 == 0
        names = {"free" if spam else "see", f"word {number % 5}", "é" if number % 2 else "ž"}
        event: dict[str, Any] = {"x": sorted(names), "y": "spam" if spam else "ham", "id": f"m{number}"}
        if number % 4 == 1:
            event["x"] = {"i": sorted(names), "v": [1.0, 1.0, 1.0]}
        if number % 6 == 1:
            event["w"] = 0.5
        if number % 10 == 3:
            event["ts"] = TIMESTAMP + number
        events.append(event)
        if number % 11 == 5:
            events.append({"op": "predict", "x": ["free"], "id": number})
        if number % 13 == 7:
            events.append({"op": "delete", "id": f"m{number - 3}"})
    return events


def started(
    log: EmbeddedLog, settings: Settings, schemas: Schemas | None = None, board: StatusBoard | None = None
) -> Worker:
    """Return a worker that has joined."""
    board = board or StatusBoard(Status(0.0))
    listener = WorkerListener(Metrics(CollectorRegistry(), "0"), board)
    worker = Worker(log, settings, listener, schemas=schemas or known())
    worker.join()
    return worker


def results(
    path: Path,
    values: Sequence[bytes | None],
    topic: dict[str, Any],
    batch: int = 5_000,
    schemas: Callable[[], Schemas] = known,
) -> dict[str, list[Written]]:
    """Return what a worker writes of these records to each topic, in transactions of so many."""
    settings = settings_of(path, topic, transaction={"records": batch})
    with EmbeddedLog(path) as log:
        log.create_topic("in", 1)
        log.append(OutRecord("in", 0, b"k", value, (), TIMESTAMP) for value in values)
        started(log, settings, schemas()).run(lambda: False, until_end=True)
        return {name: written_to(log, name) for name in ("in.out", "in.dead")}


def written_to(log: EmbeddedLog, topic: str) -> list[Written]:
    """Return all records of a topic."""
    records = log.read(TopicPartition(topic, 0), 0, 1_000_000)
    columns = zip(records.keys, records.values, records.headers, records.timestamps.tolist(), strict=True)
    return [Written(*each) for each in columns]
