"""Every kind of model on the same events: what an example costs from bytes to results, state, how good it is."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from algorithms.regression.baselines import Compared
from worker.bench.cases import Progress, Row, significant
from worker.codec.event import encode_event
from worker.data import sms_spam
from worker.log.port import Records, TopicPartition
from worker.pipeline import Pipeline
from worker.settings import Settings
from worker.sources.generators import generate
from worker.sources.generators.events import events

_SOURCE = TopicPartition("events", 0)
_BATCH = 1_000  # records
_WARM_UP = 300
_WINDOW = 1_000

_FORGETS: dict[str, Any] = {"window": _WINDOW, "evaluate": {}}
_NUMBERS: dict[str, dict[str, Any]] = {
    "regression-tree": {"kind": "regression-tree", "predict": "adaptive", "evaluate": {}},
    "dynamic-tree": {"kind": "dynamic-tree"} | _FORGETS,
    "dynamic-tree, exact": {"kind": "dynamic-tree", "guarantee": "exact"} | _FORGETS,
}
_OF_NUMBERS: dict[str, Any] = {"target": "number", "label_range": [-1_000, 1_000], "label_unit": 0.001}


def _classes(predict: str) -> dict[str, dict[str, Any]]:
    """Return models of classes, whose trees that grow predict in this way."""
    return {
        "split": {"kind": "split"},
        "tree": {"kind": "tree", "policy": "periodic", "predict": predict, "evaluate": {}},
        "tree, by IMAC": {"kind": "tree", "predict": predict, "evaluate": {}},
        "dynamic-tree": {"kind": "dynamic-tree"} | _FORGETS,
        "dynamic-tree, exact": {"kind": "dynamic-tree", "guarantee": "exact"} | _FORGETS,
        "forest": {"kind": "forest"} | _FORGETS,
        "forest of tree": {"kind": "forest", "of": {"kind": "tree", "predict": predict}, "evaluate": {}},
    }


SIDES = tuple(dict.fromkeys((*_classes(""), *_NUMBERS)))
DECODE, MAJORITY = "decoding alone", "majority class"  # what any kind costs, and what each must beat


class _Stream(NamedTuple):
    """Events, and the settings that all models of them have."""

    name: str
    values: Sequence[bytes]  # records
    common: dict[str, Any]
    models: dict[str, dict[str, Any]]


def by_kind(examples: int, repeats: int, time_limit: float, progress: Progress) -> Iterator[Row]:
    """Yield a line for each model on each stream: one partition, one key, records as msgpack, without a log.

    Parameters
    ----------
    examples : int
        Taken of each stream.
    repeats : int
        Rounds, in each of which every model has its turn; figures are medians.
    time_limit : float
        Seconds; a model that has taken more in all is not run again.
    progress : callable
        Called with what is about to run.
    """
    for stream in _streams(examples):
        runs: dict[str, list[_Run]] = {name: [] for name in stream.models}
        for name in stream.models:
            progress(f"{stream.name}: compile {name}")
            _run(stream._replace(values=stream.values[:_WARM_UP]), name)
        for turn in range(repeats):
            for name, done in runs.items():
                if sum(run.seconds for run in done) <= time_limit:
                    progress(f"{stream.name}: {name}, round {turn + 1} of {repeats}")
                    done.append(_run(stream, name))
        count = len(stream.values)
        decoding = [run.decoding for done in runs.values() for run in done]
        yield _row(stream, DECODE, decoding, {})
        for name, done in runs.items():
            yield _row(stream, name, [run.seconds for run in done], done[-1].told(count))
        majority = next((run.majority for done in runs.values() for run in done if run.majority), None)
        if majority is not None:
            told = {"quality": significant(majority / count)}
            yield {"data": stream.name, "finder": MAJORITY, "criterion": None, "examples": count} | told


def _row(stream: _Stream, name: str, seconds: Sequence[float], told: Row) -> Row:
    row: Row = {"data": stream.name, "finder": name, "criterion": None, "examples": len(stream.values)}
    row["us_per_example"] = significant(statistics.median(seconds) / len(stream.values) * 1e6)
    return row | told | {"repeats": len(seconds)}


class _Run(NamedTuple):
    """What a run took and led to."""

    seconds: float
    decoding: float  # of these
    results: int
    state_bytes: int
    right: int  # predictions before learning
    majority: int  # those of the most frequent class so far
    r2: float | None  # where labels are numbers

    def told(self, examples: int) -> Row:
        """Return the figures of a row."""
        quality = self.r2 if self.r2 is not None else self.right / examples if self.right else None
        row: Row = {"results": self.results, "state_bytes": self.state_bytes}
        return row | ({"quality": significant(quality)} if quality is not None else {})


def _run(stream: _Stream, name: str) -> _Run:
    """Let a new model of a name have the events of a stream."""
    model = {"input": _SOURCE.topic, **stream.common, **stream.models[name]}
    settings = {"log": {"embedded": "unused.db"}, "models": {"it": model}}
    pipeline = Pipeline(_SOURCE, Settings.model_validate_json(json.dumps(settings)), time.perf_counter)
    pipeline.warm_up()
    decoding, results, right, majority = 0.0, 0, 0, 0
    started = time.perf_counter()
    for batch in _batches(stream.values):
        done = pipeline.process(batch)
        if done.faults or any(outcome.refusals for _, outcome in done.outcomes):
            raise AssertionError(f"{name} has refused an event of {stream.name}")
        ((_, outcome),) = done.outcomes
        decoding += done.decode_seconds
        results += len(done.outputs)
        right += outcome.right
        majority += outcome.majority
    seconds = time.perf_counter() - started
    status = pipeline.models[0].status()
    total = status.quality.total if status.quality is not None else None
    r2 = total.measures().r2 if isinstance(total, Compared) else None
    return _Run(seconds, decoding, results, status.bytes, right, majority, r2)


def _batches(values: Sequence[bytes]) -> Iterator[Records]:
    for start in range(0, len(values), _BATCH):
        part = values[start : start + _BATCH]
        offsets = np.arange(start, start + len(part))
        keys, next_offset = [b"key"] * len(part), start + len(part)
        yield Records(_SOURCE, offsets, 1_000 * offsets, keys, part, [()] * len(part), next_offset)


def _streams(examples: int) -> Iterator[_Stream]:
    """Yield texts of two classes, numbers that tell two classes, and numbers that tell a number."""
    texts = [encode_event(words, label) for label, words in islice(sms_spam(), examples)]
    yield _Stream("sms_spam", texts, {"classes": ["ham", "spam"], "features": "names"}, _classes("naive_bayes"))
    numeric: dict[str, Any] = {"features": "names", "attributes": {"default": "numeric"}}
    yield _Stream("rbf", _generated("rbf", examples), {"classes": [0, 1], **numeric}, _classes("adaptive"))
    numbers = _generated("friedman", examples)
    models = {
        name: told | (_OF_NUMBERS if told["kind"] == "dynamic-tree" else {}) for name, told in _NUMBERS.items()
    }
    yield _Stream("friedman", numbers, numeric, models)


def _generated(text: str, examples: int) -> list[bytes]:
    made = islice(events(generate(text), ids=False), examples)
    return [encode_event(example.fields["x"], example.fields["y"]) for example in made]
