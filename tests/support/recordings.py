"""Recorded input for whole runs: everything that may come, good and bad, in an order drawn from a seed."""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import yaml

from tests.support.examples import THOROUGH
from tests.support.hostile import HOSTILE
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord
from worker.models import KINDS

WORDS, CLICKS = "words", "clicks"
PARTITIONS = 2
START = 1_700_000_000_000  # ms

SETTINGS = """
log: {embedded: mixed.db}
models:
  everything:
    kind: split
    input: words
    classes: [ham, spam]
    features: names
    on_duplicate: replace
    emit: {splits: change, snapshots: {every: 25}}
  recent:
    kind: split
    input: words
    finder: basegini
    classes: [ham, spam]
    features: names
    window: 20
    emit: {splits: {every: 7}, snapshots: {every_ms: 60000}}
  clicks:
    kind: split
    input: clicks
    criterion: gini
    classes: [0, 1]
    features: ids
    verify_deletes: true
    emit: {splits: change}
  clicks-scan:
    kind: split
    input: clicks
    finder: baseent
    classes: [0, 1]
    features: ids
    on_duplicate: ignore
    emit: {splits: change}
  tree:
    kind: tree
    input: words
    classes: [ham, spam]
    features: names
    policy: exact
    predict: naive_bayes
    delta: 0.3
    tau: 0.2
    on_delete: ignore
    evaluate: {window: 20, emit: {every: 15}}
    emit: {snapshots: change}
  tree-clicks:
    kind: tree
    input: clicks
    classes: [1, 0, 2]
    features: ids
    attributes: {numeric: [3, 4294967295], nominal: [5]}
    policy: imac
    criterion: gini
    predict: adaptive
    period: 6
    check_every: 4
    delta: 0.4
    tau: 0.3
    evaluate: {emit: {every_ms: 90000}}
    emit: {snapshots: {every: 20}}
  forgetting:
    kind: dynamic-tree
    input: words
    classes: [ham, spam]
    features: names
    epsilon: 0.3
    max_depth: 4
    window: 40
    on_duplicate: replace
    evaluate: {window: 20, emit: {every: 25}}
    emit: {snapshots: change}
  forgetting-clicks:
    kind: dynamic-tree
    input: clicks
    classes: [1, 0, 2]
    features: ids
    attributes: {numeric: [3, 4294967295]}
    criterion: entropy
    epsilon: 0
    max_depth: 5
    min_examples: 3
    on_duplicate: ignore
    emit: {snapshots: {every: 15}}
bounds: {keys: 6, live_ids: 150}
"""


def sample(kind: str, topic: str) -> dict[str, Any]:
    """Return settings of a model of a kind, with its sample, that reads one of the topics."""
    section = KINDS[kind].settings
    examples: dict[str, Any] = {"classes": [0, 1], "features": "ids"}
    if topic == WORDS:
        examples = {"classes": ["ham", "spam"], "features": "names"}
    told = {name: value for name, value in examples.items() if name in section.model_fields}
    return {"kind": kind.partition(" ")[0], "input": topic, **told, **section.SAMPLE}


FLOORS: dict[str, dict[str, Any]] = {
    "exact-words": {
        "kind": "dynamic-tree",
        "input": WORDS,
        "classes": ["ham", "spam"],
        "features": "names",
        "guarantee": "exact",
        "on_duplicate": "replace",
        "evaluate": {"window": 20, "emit": {"every": 25}},
        "emit": {"snapshots": {"every": 20}},
    },
    "beta-clicks": {
        "kind": "dynamic-tree",
        "input": CLICKS,
        "classes": [1, 0, 2],
        "features": "ids",
        "attributes": {"numeric": [3, 4294967295]},
        "criterion": "entropy",
        "beta": 0.01,
        "window": 60,
        "emit": {"snapshots": "change"},
    },
}


AGED: dict[str, dict[str, Any]] = {
    "aged": {
        "kind": "split",
        "input": WORDS,
        "classes": ["ham", "spam"],
        "features": "names",
        "window": "90s",
        "emit": {"splits": "change", "snapshots": {"every": 20}},
    },
    "aged-clicks": {
        "kind": "dynamic-tree",
        "input": CLICKS,
        "classes": [1, 0, 2],
        "features": "ids",
        "window": "60s",
        "expire": "2m",
        "on_duplicate": "replace",
        "emit": {"snapshots": "change"},
    },
    "aged-forest": {
        "kind": "forest",
        "input": WORDS,
        "classes": ["ham", "spam"],
        "features": "names",
        "trees": 2,
        "window": "60s",
        "evaluate": {"window": 20, "emit": {"every": 25}},
        "emit": {"snapshots": {"every": 25}},
    },
}


MIXED: dict[str, dict[str, Any]] = {
    "mixed-words": {
        "kind": "split",
        "input": WORDS,
        "classes": ["eggs", "ham", "spam"],
        "features": "names",
        "attributes": {"nominal": ["word3", "word4"]},
        "window": "90s",
        "on_duplicate": "replace",
        "emit": {"snapshots": {"every": 25}},
    },
    "mixed-clicks": {
        "kind": "split",
        "input": CLICKS,
        "classes": [1, 0, 2],
        "features": "ids",
        "attributes": {"numeric": [3, 4294967295], "nominal": [5]},
        "criterion": "gini",
        "window": 20,
        "emit": {"splits": {"every": 7}, "snapshots": {"every_ms": 60000}},
    },
}


NUMBERS: dict[str, dict[str, Any]] = {
    "numbers-clicks": {
        "kind": "split",
        "input": CLICKS,
        "target": "number",
        "label_range": [-1, 1],
        "label_unit": 0.5,
        "features": "ids",
        "on_duplicate": "replace",
        "emit": {"splits": "change", "snapshots": {"every": 25}},
    },
    "numbers-recent": {
        "kind": "split",
        "input": CLICKS,
        "target": "number",
        "label_range": [0, 1000],
        "label_unit": 1e-9,
        "features": "ids",
        "window": "90s",
        "expire": "2m",
        "emit": {"splits": {"every": 7}, "snapshots": {"every_ms": 60000}},
    },
    "numbers-forgotten": {
        "kind": "dynamic-tree",
        "input": CLICKS,
        "target": "number",
        "label_range": [-1, 1],
        "label_unit": 0.5,
        "features": "ids",
        "attributes": {"numeric": [3, 4294967295]},
        "epsilon": 0.3,
        "max_depth": 4,
        "window": "90s",
        "expire": "2m",
        "on_duplicate": "replace",
        "evaluate": {"window": 20, "emit": {"every": 25}},
        "emit": {"snapshots": "change"},
    },
}


# Of numbers too, with floors under what splits leave.
NUMBERS_KEPT: dict[str, dict[str, Any]] = {
    "numbers-exact": {
        "kind": "dynamic-tree",
        "input": CLICKS,
        "target": "number",
        "label_range": [-1, 1],
        "label_unit": 0.5,
        "features": "ids",
        "attributes": {"numeric": [3, 4294967295]},
        "guarantee": "exact",
        "on_duplicate": "replace",
        "evaluate": {"window": 20, "emit": {"every": 25}},
        "emit": {"snapshots": {"every": 20}},
    },
    "numbers-near": {
        "kind": "dynamic-tree",
        "input": CLICKS,
        "target": "number",
        "label_range": [0, 5],
        "label_unit": 0.25,
        "features": "ids",
        "attributes": {"default": "numeric"},
        "beta": 0.02,
        "window": 60,
        "emit": {"snapshots": "change"},
    },
}


# So little work for an event that most of them find a rebuild under way.
IN_PARTS: dict[str, dict[str, Any]] = {
    "parts-words": {
        "kind": "dynamic-tree",
        "input": WORDS,
        "classes": ["ham", "spam"],
        "features": "names",
        "epsilon": 0.1,
        "max_work": 64,
        "on_duplicate": "replace",
        "evaluate": {"window": 20, "emit": {"every": 25}},
        "emit": {"snapshots": "change"},
    },
    "parts-clicks": {
        "kind": "dynamic-tree",
        "input": CLICKS,
        "classes": [1, 0, 2],
        "features": "ids",
        "attributes": {"numeric": [3, 5, 4294967295]},
        "criterion": "entropy",
        "epsilon": 0.1,
        "max_work": 64,
        "window": 60,
        "emit": {"snapshots": {"every": 15}},
    },
}


def every_kind(settings: str = SETTINGS) -> str:
    """Return settings with models of every kind: of one that has none, its sample on each topic.

    So there are of trees that forget such as keep floors under the scores of splits, or are rebuilt in parts,
    windows by time, and of splits such as have more than two classes and binary features, and of both such whose
    labels are numbers.
    """
    options = yaml.safe_load(settings)
    known = {model["kind"] for model in options["models"].values()}
    options["models"] |= {
        f"{kind.replace(' ', '-')}-{topic}": sample(kind, topic)
        for kind in KINDS
        if kind not in known
        for topic in (WORDS, CLICKS)
    }
    options["models"] |= FLOORS | AGED | MIXED | NUMBERS | NUMBERS_KEPT | IN_PARTS
    return yaml.safe_dump(options, sort_keys=False)


def some_kinds() -> str:
    """Return settings with the models of `SETTINGS` and a third of the others of `every_kind`.

    For tests of what no kind has a part in. Which third it is depends on the name of the test that runs, so that
    together they have all; with THOROUGH=1 each has. A fixture that tests share would have that of the first.
    """
    options = yaml.safe_load(every_kind())
    if not THOROUGH:
        test = os.environ["PYTEST_CURRENT_TEST"].partition(" ")[0]  # a phase comes after the name
        own = yaml.safe_load(SETTINGS)["models"]
        others = [each for each in options["models"] if each not in own]
        kept = {*own, *others[zlib.crc32(test.encode()) % 3 :: 3]}
        options["models"] = {each: told for each, told in options["models"].items() if each in kept}
    return yaml.safe_dump(options, sort_keys=False)


def half(settings: str, number: int) -> str:
    """Return settings with every second model, from the first on or from the second."""
    options = yaml.safe_load(settings)
    options["models"] = dict(list(options["models"].items())[number::2])
    return yaml.safe_dump(options, sort_keys=False)


def mixed(events: int = 600, seed: int = 7, keys: int = 8, partitions: int = PARTITIONS) -> Iterator[OutRecord]:
    """Yield records of both topics: inserts, deletes, predicts, tombstones, columnar batches and bad ones."""
    draw = random.Random(seed)
    hostile = [value for _, value, _ in HOSTILE]
    vocabulary = [f"word{number}" for number in range(40)] + ["naïve", "größe", "", "a" * 200]
    sent: dict[str, list[dict[str, Any]]] = {WORDS: [], CLICKS: []}
    for number in range(events):
        topic = draw.choice((WORDS, CLICKS))
        key = b"key-%d" % draw.randrange(keys)
        time = START + number * 1_000 + draw.randrange(500)
        kind = draw.choices(
            ("insert", "delete", "predict", "hostile", "tombstone", "batch", "no key"), (60, 16, 10, 6, 1, 6, 1)
        )[0]
        value: bytes | None = None
        if kind == "insert":
            event = _insert(draw, topic, vocabulary)
            sent[topic].append(event | {"key": key})
            value = msgpack.packb(event)
        elif kind == "delete":
            event = dict(draw.choice(sent[topic])) if sent[topic] and draw.random() < 0.8 else {"id": "nobody"}
            key = event.pop("key", key)
            if "id" in event:
                event = {"id": event["id"]}
            value = msgpack.packb({"op": "delete", **event})
        elif kind == "predict":
            event = _insert(draw, topic, vocabulary)
            value = msgpack.packb({"op": "predict", "id": number, "x": event["x"]})
        elif kind == "hostile":
            value = draw.choice(hostile)
        elif kind == "batch":
            value = _batch(draw)
            topic = CLICKS
        elif kind == "no key":
            yield OutRecord(topic, draw.randrange(partitions), None, b"\x80", (), time)
            continue
        yield OutRecord(topic, int(key[4:]) % partitions, key, value, (), time)


def waiting(settings: str) -> str:
    """Return settings that wait for labels, but for one model; the store is full most of the time."""
    options = yaml.safe_load(settings)
    options["topics"] = {topic: {"pending": {"max": 30, "for": "2m"}} for topic in (WORDS, CLICKS)}
    if "recent" in options["models"]:
        options["models"]["recent"]["late_labels"] = False
    return yaml.safe_dump(options, sort_keys=False)


def with_labels(
    records: Iterable[OutRecord], seed: int = 7, keys: int = 8, partitions: int = PARTITIONS
) -> Iterator[OutRecord]:
    """Yield records, and among them predicts with ids and, later or too late or never, their labels."""
    draw = random.Random(seed)
    vocabulary = [f"word{number}" for number in range(40)]
    asked: list[tuple[str, bytes, str, Any]] = []  # of late: topic, key, id, label
    for number, record in enumerate(records):
        yield record
        topic, key = draw.choice((WORDS, CLICKS)), b"key-%d" % draw.randrange(keys)
        what = draw.choices(("predict", "label", "delete", "insert", "columns", ""), (50, 30, 4, 3, 6, 20))[0]
        event = _insert(draw, topic, vocabulary)
        value: dict[str, Any]
        if what == "predict" or (what and not asked):
            named = f"late-{number if draw.random() < 0.9 else draw.randrange(number + 1)}"
            value = {"op": "predict", "id": named, "x": event["x"]}
            asked.append((topic, key, named, event["y"]))
        elif what == "columns":
            topic, key, *_ = asked[-1 - draw.randrange(min(len(asked), 12))]
            rows = [each for each in asked[-30:] if each[:2] == (topic, key)]
            value = {"op": "label", "n": len(rows), "ids": [row[2] for row in rows], "y": [row[3] for row in rows]}
        elif what:
            topic, key, named, label = asked[-1 - draw.randrange(min(len(asked), 12))]
            value = {"op": what, "id": named, "y": label}
            if what == "delete":
                del value["y"]
            elif what == "insert":
                value["x"] = event["x"] if topic == WORDS else [3, 5]
                if topic == WORDS:
                    value["x"] = [each for each in value["x"] if isinstance(each, str)]
            elif draw.random() < 0.2:
                value["w"] = 2.5
        else:
            continue
        yield OutRecord(topic, int(key[4:]) % partitions, key, msgpack.packb(value), (), record.timestamp)


def _insert(draw: random.Random, topic: str, vocabulary: list[str]) -> dict[str, Any]:
    label = draw.randrange(2)
    picked = draw.sample(range(len(vocabulary)), draw.randrange(9))
    if label:
        picked = sorted({*picked, draw.randrange(3)})
    event: dict[str, Any] = {"y": ["ham", "spam"][label] if topic == WORDS else label}
    if topic == WORDS:
        event["x"] = [vocabulary[at] for at in picked]
    elif draw.random() < 0.5:
        event["x"] = {"i": np.array(picked, "<u4").tobytes()}
    else:
        event["x"] = [4_294_967_295 - at for at in picked]
    if draw.random() < 0.4:
        event["id"] = draw.choice((draw.randrange(60), f"example-{draw.randrange(60)}"))
    if draw.random() < 0.3:
        event["w"] = draw.choice((0.5, 2, 3.25, 0.1))
    return event


def _batch(draw: random.Random) -> bytes:
    rows = draw.randrange(1, 20)
    sizes = [draw.randrange(6) for _ in range(rows)]
    features = [feature for size in sizes for feature in sorted(draw.sample(range(30), size))]
    if features and draw.random() < 0.2 and sizes[0] > 1:
        features[1] = features[0]  # a repeat: this row is refused, the others are not
    packed: bytes = msgpack.packb(
        {
            "n": rows,
            "ptr": np.cumsum([0, *sizes]).astype("<u4").tobytes(),
            "i": np.array(features, "<u4").tobytes(),
            "y": bytes(draw.randrange(2) for _ in range(rows)),
        }
    )
    return packed


def understood(kind: str, records: Iterable[OutRecord]) -> Iterator[OutRecord]:
    """Yield records as a kind takes them: where it has no classes labels that are names become numbers."""
    numbers = {} if "classes" in KINDS[kind].settings.model_fields else {"ham": 1.5, "spam": -30.25}
    for record in records:
        value = record.value
        for name, number in numbers.items() if value is not None else ():
            assert value is not None
            value = value.replace(
                msgpack.packb("y") + msgpack.packb(name), msgpack.packb("y") + msgpack.packb(number)
            )
        yield record._replace(value=value)


def write(path: Path, records: Iterator[OutRecord], topics: dict[str, int]) -> None:
    """Write a recording."""
    with EmbeddedLog(path) as log:
        for topic, partitions in topics.items():
            log.create_topic(topic, partitions)
        log.append(records)
