"""A pipeline with one model of trees, events for it, and what comes of them."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgpack
import numpy as np

from tests.support.model_contents import model_contents
from worker.codec import Output, decode_output
from worker.log.port import OutRecord, Records, TopicPartition
from worker.pipeline import Pipeline
from worker.settings import Settings

SOURCE = TopicPartition("in", 0)


def one_model(
    model: dict[str, Any], bounds: dict[str, int] | None = None, pending: dict[str, Any] | None = None
) -> Pipeline:
    """Return a pipeline with a model of these settings, and a store of what waits for labels, if any."""
    settings = {
        "log": {"embedded": "unused.db"},
        "models": {"tree": model},
        "bounds": bounds or {},
        "topics": {SOURCE.topic: {"pending": pending}},
    }
    return Pipeline(SOURCE, Settings.model_validate_json(json.dumps(settings)), time.monotonic)


def records_of(events: Sequence[tuple[bytes, Any]], start: int = 0) -> Records:
    """Return records with these keys and events, a second apart; None is a tombstone."""
    offsets = np.arange(start, start + len(events))
    values = [None if event is None else msgpack.packb(event) for _, event in events]
    keys = [key for key, _ in events]
    return Records(SOURCE, offsets, 1_000 * offsets + 1, keys, values, [()] * len(events), start + len(events))


def results_of(outputs: Iterable[OutRecord]) -> list[Output]:
    """Return the results in records."""
    return [decode_output(record.value or b"", record.headers) for record in outputs]


def run(pipeline: Pipeline, events: Sequence[tuple[bytes, Any]]) -> list[Output]:
    """Apply events as one batch."""
    return results_of(pipeline.process(records_of(events)).outputs)


def labelled(count: int, seed: int = 0, keys: int = 1) -> list[tuple[bytes, Any]]:
    """Return inserts whose label the words "told" tells, and after it "more", among others that say nothing."""
    draw = random.Random(seed)
    events: list[tuple[bytes, Any]] = []
    for _ in range(count):
        label = draw.randrange(2)
        x = [f"word {number}" for number in range(6) if draw.random() < 0.4]
        if (label or draw.random() < 0.2) and draw.random() < 0.9:
            x.append("told")
        events.append((b"key %d" % draw.randrange(keys), {"x": x, "y": "ab"[label]}))
    return events


def sorted_by_source(outputs: list[OutRecord]) -> list[OutRecord]:
    """Return results, then dead letters, as one batch would have them."""
    return sorted(outputs, key=lambda record: record.topic, reverse=True)


def same_however_run(make: Any, events: Sequence[tuple[bytes, Any]]) -> list[OutRecord]:
    """Return the results of events; raise AssertionError where batches or restarts change them, or the state."""
    seen = []
    for size, restored in ((1, False), (7, True), (1_000, False)):
        pipeline = make()
        outputs: list[OutRecord] = []
        for start in range(0, len(events), size):
            outputs += pipeline.process(records_of(events[start : start + size], start)).outputs
            if restored:
                saved = {
                    model: {name: array.copy() for name, array in arrays.items()}
                    for model, arrays in pipeline.arrays().items()
                }
                pipeline.restore(saved)
        pipeline.models[0].check()
        seen.append((sorted_by_source(outputs), model_contents(pipeline.models[0])))
    assert seen[0] == seen[1] == seen[2]
    return seen[0][0]
