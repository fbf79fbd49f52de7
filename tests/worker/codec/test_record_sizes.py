"""No record is larger than a log takes: the largest of each type that settings and bounds allow."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import msgpack
import numpy as np
import pytest

from algorithms.core.criteria import UNIT
from tests.support.one_model import one_model, records_of
from worker.broker import Cluster
from worker.checkpoint.keys import PIECE_BYTES, CheckpointRecord, Key, ManifestEntry
from worker.checkpoint.shadow import PAGE_BYTES
from worker.codec import (
    Bounds,
    DeadLetter,
    Drift,
    Evaluation,
    Expired,
    LetGo,
    Measures,
    Output,
    Prediction,
    Reason,
    Source,
    Split,
    Tree,
    cut,
    dead_letter,
    decode_output,
    joined,
    to_record,
)
from worker.codec.encode import LISTED_ROWS, branch_bytes
from worker.log.kafka import KafkaLog
from worker.log.port import LARGEST_RECORD, OutRecord, TopicPartition
from worker.models.tree import heaviest
from worker.settings import fingerprint, load
from worker.settings.file import SettingsError

LONG = 1 << 16  # the highest bounds.name_bytes, .id_bytes and .key_bytes
KEY = bytes(LONG)
NAME = "n" * LONG
MODEL = "m" * 64
CLASSES = [f"{number:03}" + "c" * 253 for number in range(1_000)]  # as many and as long as settings may have
SOURCE = Source("t" * 249, 1 << 31, (1 << 63) - 1, 1 << 24, 1 << 53)
PARAMETERS: dict[str, bool | int | float | str | None] = {f"parameter {number}": "x" * 30 for number in range(10)}
WIDEST = Bounds(key_bytes=LONG, name_bytes=LONG, id_bytes=LONG, dead_letter_bytes=1 << 26)


def _split(branches: int, classes: list[str]) -> Split:
    weights = [0.5] * len(classes)
    return Split(
        model=MODEL,
        node=1 << 62,
        feature=NAME,
        kind="nominal",
        threshold=None,
        criterion="entropy",
        score=0.5,
        gain=0.5,
        runner_up=NAME,
        runner_up_gain=0.5,
        n=0.5,
        branches=list(range(1 << 20, (1 << 20) + branches)),
        counts=[weights] * branches,
        classes=classes,
        source=SOURCE,
    )


def _tree(nodes: int, classes: list[str], names: list[str]) -> Tree:
    return Tree(
        model=MODEL,
        version=1 << 62,
        chunk=0,
        chunks=1,
        node=[(1 << 62) + at for at in range(nodes)],
        parent=[1 << 62] * nodes,
        branch=[(1 << 32) - 1] * nodes,
        feature=[at % len(names) for at in range(nodes)],
        kind=["numeric"] * nodes,
        threshold=[0.5] * nodes,
        counts=[[0.5] * len(classes)] * nodes,
        classes=classes,
        names=names,
        parameters=PARAMETERS,
        source=SOURCE,
    )


def _results() -> Iterable[Output]:
    shares = [0.5] * len(CLASSES)
    measures = Measures(0.5, 0.5, 0.5, shares, 0.5, 0.5)
    yield Prediction(MODEL, NAME, NAME, shares, 1 << 62, True, SOURCE)
    yield Drift(MODEL, 1 << 62, 0.5, 0.5, 1 << 62, SOURCE)
    yield Expired(MODEL, 1 << 62, 1 << 62, 1 << 62, SOURCE)
    yield LetGo(MODEL, 1 << 62, 1 << 62, 1 << 62, SOURCE)
    yield Evaluation(MODEL, 1 << 62, measures, measures, 1 << 16, CLASSES, SOURCE)
    yield _split(2, CLASSES)
    yield _split(LONG, CLASSES)
    yield _split(LONG, ["a", "b"])
    two = ["a", "b"]
    long, some = (
        [f"{number:03}{NAME[3:]}" for number in range(20)],
        [f"name {number:05}" for number in range(LONG)],
    )
    for nodes, classes, names in (
        (300, CLASSES, long),
        (300, two, long),
        (LONG, two, some),
        (1, CLASSES, long[:1]),
    ):
        yield from cut(_tree(nodes, classes, names))


def test_results_fit() -> None:
    """Each result fits into a record, whatever its names, classes, branches and nodes."""
    for output in _results():
        record = to_record(output, SOURCE.topic, KEY)
        assert record.size <= LARGEST_RECORD, type(output)
        back = decode_output(record.value or b"", record.headers)
        assert type(back) is type(output)


def test_large_trees_are_whole_in_parts() -> None:
    """A tree with the most and longest classes and names is there in parts of which none is too large."""
    tree = _tree(300, CLASSES, [f"{number:03}{NAME[3:]}" for number in range(20)])
    parts = cut(tree)
    assert len(parts) > 5
    assert joined(parts) == tree._replace(names=sorted(tree.names or ()))


@pytest.mark.parametrize("classes", [CLASSES, ["a", "b"]])
def test_a_split_tells_how_many_branches_it_leaves_out(classes: list[str]) -> None:
    """A split of too many branches has those of most weight, in order, and tells how many others there are."""
    split = _split(60_000, classes)
    light, heavy = [0.25] * len(classes), [0.75] * len(classes)
    split = split._replace(counts=[heavy if at % 3_000 == 7 else light for at in range(60_000)])
    record = to_record(split, "out", KEY)
    assert 0.9 * LARGEST_RECORD < record.size <= LARGEST_RECORD
    back = decode_output(record.value or b"", record.headers)
    assert isinstance(back, Split)
    assert len(back.branches) + back.left_out == 60_000
    assert list(back.branches) == sorted(back.branches)
    assert sum(weights == heavy for weights in back.counts) == 20


def test_a_model_leaves_out_what_the_record_would() -> None:
    """Of very many branches a model makes no lists, and the record is the same."""
    weights = np.random.default_rng(1).integers(1, 5, (60_000, 2)) * UNIT
    made: Any = SimpleNamespace(branches=np.arange(60_000), counts=weights)
    branches, counts = heaviest(made, LARGEST_RECORD // branch_bytes(2))
    assert len(branches) == len(counts) == 49_000
    whole = _split(60_000, ["a", "b"])._replace(branches=list(range(60_000)), counts=(weights / UNIT).tolist())
    part = whole._replace(branches=branches.tolist(), counts=(counts / UNIT).tolist(), left_out=11_000)
    found, wanted = (decode_output(*to_record(each, "out", b"k")[3:5]) for each in (part, whole))  # type: ignore[arg-type]
    assert isinstance(found, Split)
    assert found == wanted


def test_a_split_that_fits_says_nothing_of_branches() -> None:
    """Where nothing is left out the record is as it always was."""
    record = to_record(_split(2, ["a", "b"]), "out", b"k")
    assert "left_out" not in msgpack.unpackb(record.value or b"")


# --- dead letters


def _letter(rows: int, detail: str, value: bytes | None, bounds: Bounds = WIDEST, key: bytes = KEY) -> OutRecord:
    complaints = [((1 << 24) + row, Reason.WRONG_FEATURE_SPACE, detail) for row in range(rows)]
    letter = dead_letter(SOURCE, complaints or [(None, Reason.MALFORMED, detail)], key, value, bounds, MODEL)
    return to_record(letter, SOURCE.topic, letter.key)


@pytest.mark.wide(60)
@pytest.mark.slow
@pytest.mark.parametrize("value", [None, b"", bytes(10), bytes(899_000), bytes(1 << 23), bytes(1 << 26)])
@pytest.mark.parametrize("detail", ["", "short", "d" * 5_000, "\U0001f600" * 5_000, NAME * 10])
@pytest.mark.parametrize("rows", [0, 1, 99, 100, 101, 9_800])
def test_dead_letters_fit(rows: int, detail: str, value: bytes | None) -> None:
    """A dead letter fits into a record, whatever was refused, why and how often, and tells what was cut."""
    record = _letter(rows, detail, value)
    assert record.size <= LARGEST_RECORD
    letter = decode_output(record.value or b"", record.headers)
    assert isinstance(letter, DeadLetter)
    assert (letter.refused, len(letter.rows)) == (rows, min(rows, LISTED_ROWS))
    for text in (letter.detail, *(text for _, _, text in letter.rows)):
        assert text == detail or (text.endswith("…") and detail.startswith(text[:-1]))
    if value is None:
        assert (letter.value, letter.size, letter.sha256) == (None, None, None)
        return
    assert letter.size == len(value)
    assert value.startswith(letter.value or b"")
    is_cut = len(letter.value or b"") < len(value)
    assert letter.sha256 == (hashlib.sha256(value).digest() if is_cut else None)


@pytest.mark.parametrize("size", range(900_000, 990_000, 9_973))
def test_as_much_of_a_value_is_kept_as_fits(size: int) -> None:
    """A dead letter is cut only where it must be, and then to the byte."""
    record = _letter(1, "why", bytes(size), key=b"k")
    assert record.size <= LARGEST_RECORD
    letter = decode_output(record.value or b"", record.headers)
    assert isinstance(letter, DeadLetter)
    if letter.sha256 is not None:
        assert record.size >= LARGEST_RECORD - 10


def _refused_labels() -> OutRecord:
    """Return the dead letter of a columnar record with 9,800 labels that are no classes."""
    classes = [f"class {number:02} " + "c" * 80 for number in range(12)]
    pipeline = one_model(
        {
            "kind": "tree",
            "input": "in",
            "classes": classes,
            "features": "ids",
            "policy": "imac",
            "criterion": "gini",
        }
    )
    rows = 9_800
    event = {
        "n": rows,
        "ptr": np.arange(rows + 1, dtype="<u4").tobytes(),
        "i": np.arange(rows, dtype="<u4").tobytes(),
        "y": ["u" * 87] * rows,
    }
    records = records_of([(b"key", event)])
    assert len(records.values[0] or b"") > 930_000
    (record,) = pipeline.process(records).outputs
    return record


def test_many_refused_labels_fit() -> None:
    """A large record of unknown labels, to a model with long class names, gives a dead letter that fits."""
    record = _refused_labels()
    assert record.size <= LARGEST_RECORD
    letter = decode_output(record.value or b"", record.headers)
    assert isinstance(letter, DeadLetter)
    assert (letter.refused, len(letter.rows)) == (9_800, LISTED_ROWS)
    assert letter.detail.startswith("expected the label 'class 00 ccc")


def test_kafka_takes_the_largest_records(kafka: Cluster) -> None:
    """With the limits that clients and brokers have by default, the largest records are written."""
    topic = f"sizes-{uuid4().hex[:12]}"
    with KafkaLog({"bootstrap.servers": kafka.bootstrap}, group=topic, instance="writer") as log:
        log.create_topic(topic, 1)
        records = [
            _refused_labels(),
            _letter(9_800, NAME, bytes(1 << 23)),
            to_record(_split(LONG, CLASSES), topic, KEY),
            OutRecord(topic, 0, b"", bytes(LARGEST_RECORD), (), 1),
        ]
        assert max(record.size for record in records) == LARGEST_RECORD
        log.commit([record._replace(topic=topic, partition=0) for record in records], {})
        low, high = log.watermarks(TopicPartition(topic, 0))
        assert high - low >= len(records)


# --- what a worker writes for itself


def test_checkpoints_fit() -> None:
    """Pages, pieces of manifests, and the record that names all manifests of a partition's models."""
    lineage = bytes(8)
    for kind, size in (("page", PAGE_BYTES), ("manifest", PIECE_BYTES)):
        key = Key(kind, lineage, 1 << 62, MODEL, "a" * 200, 1 << 40).pack()  # type: ignore[arg-type]
        assert OutRecord("t", 0, key, bytes(size), (), 1).size <= LARGEST_RECORD
    manifests = [ManifestEntry(f"{number:04}{MODEL[4:]}", 1 << 40, bytes(16)) for number in range(1_000)]
    record = CheckpointRecord(1, 1 << 62, 1 << 62, 1 << 31, "f" * 64, "1.0.0", manifests)
    assert OutRecord("t", 0, Key("checkpoint", lineage).pack(), record.pack(), (), 1).size <= LARGEST_RECORD


def test_the_note_of_a_commit_fits(tmp_path: Path) -> None:
    """What is committed beside an offset is far below the 4,096 bytes that brokers take."""
    path = tmp_path / "worker.yaml"
    path.write_text(
        "log: {embedded: a.db}\nmodels: {m: {kind: split, input: t, classes: [a, b], features: ids}}\n"
    )
    assert len(fingerprint(load(path, {}))) == 64


# --- settings that records could not hold


def _problem(folder: Path, models: dict[str, Any], bounds: dict[str, int]) -> str:
    path = folder / "worker.yaml"
    path.write_text(json.dumps({"log": {"embedded": "a.db"}, "models": models, "bounds": bounds}))
    with pytest.raises(SettingsError) as raised:
        load(path, {})
    return str(raised.value)


def test_classes_are_bounded_together(tmp_path: Path) -> None:
    """A thousand class names of the usual length are taken, more is refused: they are part of records."""
    tree = {"kind": "tree", "input": "t", "classes": CLASSES, "features": "ids"}
    path = tmp_path / "worker.yaml"
    path.write_text(json.dumps({"log": {"embedded": "a.db"}, "models": {"m": tree}}))
    load(path, {})
    wanted = (
        "models.m.classes: expected names of at most 256,000 bytes together, which are part of many records, got"
    )
    longer = {"m": tree | {"classes": [f"{name}x" for name in CLASSES]}}
    assert f"{wanted} 257,000 bytes" in _problem(tmp_path, longer, {"name_bytes": LONG})


def test_models_are_bounded(tmp_path: Path) -> None:
    """A checkpoint names all models in one record."""
    model = {"kind": "split", "input": "t", "classes": [1, 2], "features": "ids"}
    found = _problem(tmp_path, {f"m{number}": model for number in range(1_001)}, {})
    assert "models: expected at most 1000 entries" in found
