"""`bench pending`: what examples take that wait for labels, and how fast labels are learned beside inserts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from algorithms.core.arrays import Int64s
from worker.bench.kafka import machine
from worker.log.port import OutRecord, Records, TopicPartition
from worker.pipeline import Pipeline
from worker.settings import LogSettings, Settings
from worker.settings.models import SplitSettings
from worker.settings.topics import PendingSettings, TopicSettings

_BATCH = 2_000  # records
_VOCABULARY = 20_000
_DAY = 86_400_000


def bench_pending(
    examples: int, features: int, seed: int = 1, progress: Callable[[str], None] = lambda step: None
) -> Iterator[dict[str, Any]]:
    """Yield one line: so many examples wait for their labels, which then come in another order.

    Beside it a model learns the same examples by inserts in the order of the labels. Seconds are of the processor,
    and of the whole way of a record but for the log.

    Parameters
    ----------
    examples : int
        How many wait at once.
    features : int
        Of each, all present.
    seed : int
        Of the examples and of the order.
    progress : callable
        Called with what is done next.
    """
    draw = np.random.default_rng(seed)
    x = np.sort(draw.integers(_VOCABULARY // features, size=(examples, features)), axis=1)
    x = (x * features + np.arange(features)).astype("<u4")  # a feature comes once
    y = (x[:, 0] // features % 2 ^ (draw.random(examples) < 0.1)).astype(np.int64)
    order = draw.permutation(examples)
    line: dict[str, Any] = {"bench": "pending", "examples": examples, "features": features}
    waits, inserts = _pipeline(PendingSettings.model_validate({"max": examples, "for": "30d"})), _pipeline(None)

    def encoded(numbers: Int64s, **fields: bool) -> list[bytes]:
        return [
            msgpack.packb(
                {"id": number}
                | ({"op": "predict"} if "y" not in fields else {} if "x" in fields else {"op": "label"})
                | ({"x": {"i": x[number].tobytes()}} if "x" in fields else {})
                | ({"y": int(y[number])} if "y" in fields else {})
            )
            for number in numbers.tolist()
        ]

    progress("predicts")
    _, seconds = _run(waits, encoded, np.arange(examples), 0, x=True)
    store = waits.late.store
    assert store is not None
    assert len(store) == examples
    line |= {"pending": len(store), "bytes_each": round(store.size / examples, 1)}
    line["predicts_per_second"] = round(examples / seconds)
    progress("labels")
    labelled, seconds = _run(waits, encoded, order, examples, y=True)
    line["labels_per_second"] = round(examples / seconds)
    progress("inserts")
    inserted, seconds_of_inserts = _run(inserts, encoded, order, examples, x=True, y=True)
    line["inserts_per_second"] = round(examples / seconds_of_inserts)
    line["labels_over_inserts"] = round(seconds_of_inserts / seconds, 3)
    (mine,), (other,) = waits.models, inserts.models
    arrays = other.arrays()
    line["same_results"] = labelled == inserted
    line["same_model"] = all(  # but for the place of the key's name: a predict looks for it
        np.array_equal(array, arrays[name])
        for name, array in mine.arrays().items()
        if not name.startswith("keys.")
    )
    yield line | {"machine": machine()}


def _pipeline(pending: PendingSettings | None) -> Pipeline:
    model = SplitSettings(kind="split", input="in", classes=(0, 1), features="ids")
    settings = Settings(
        log=LogSettings(embedded=Path("unused.db")),
        models={"splits": model},
        topics={"in": TopicSettings(pending=pending)},
    )
    pipeline = Pipeline(TopicPartition("in", 0), settings, time.monotonic)
    pipeline.warm_up()
    return pipeline


def _run(
    pipeline: Pipeline, encoded: Callable[..., list[bytes]], numbers: Int64s, first: int, **fields: bool
) -> tuple[Sequence[OutRecord], float]:
    """Let a pipeline process events; return what it wrote but for predictions, and the seconds that it took."""
    outputs: list[OutRecord] = []
    seconds = 0.0
    for start in range(0, len(numbers), _BATCH):
        values = encoded(numbers[start : start + _BATCH], **fields)
        offsets = np.arange(first + start, first + start + len(values))
        records = Records(
            pipeline.source,
            offsets,
            offsets + _DAY,
            [b"key"] * len(values),
            values,
            [()] * len(values),
            int(offsets[-1]) + 1,
        )
        began = time.process_time()
        processed = pipeline.process(records)
        seconds += time.process_time() - began
        if "y" in fields:
            outputs += processed.outputs
    return outputs, seconds
