"""Whole runs over each format: the same results to the byte, and nothing lost while a registry is away."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
import structlog
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.support.about import ABOUT
from tests.support.format_runs import (
    TIMESTAMP,
    examples,
    results,
    settings_of,
    started,
    written_to,
)
from tests.support.hostile_json import HOSTILE_JSON
from tests.support.other_formats import AVRO, AVRO_EVENT, FORMATS, PROTOBUF, PROTOBUF_EVENT, known, written
from worker.codec import DeadLetter, Reason, decode_output, encode
from worker.formats import Schemas
from worker.formats.framing import frame
from worker.formats.schemas import RegistryAway, Schema
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord, TopicPartition
from worker.watching.http import Pages
from worker.watching.status import Status, StatusBoard


def _letters(records: Any) -> list[DeadLetter]:
    letters = [decode_output(each.value or b"", each.headers) for each in records]
    assert all(isinstance(letter, DeadLetter) for letter in letters)
    return letters  # type: ignore[return-value]


@pytest.mark.slow
def test_the_same_stream_gives_the_same_results_by_each_format(tmp_path: Path) -> None:
    """Splits, trees, predictions and evaluations are the same bytes, whatever wrote the events, in any batches."""
    events = examples(120)
    seen = {}
    for format in FORMATS:
        values = [written(event, format) for event in events]
        for batch in (1, 7, 5_000):
            path = tmp_path / f"{format}-{batch}.db"
            seen[format, batch] = results(path, values, {"format": format}, batch)
    first = seen["msgpack", 5_000]
    assert {dict(each.headers)["type"] for each in first["in.out"]} >= {
        b"split",
        b"tree",
        b"prediction",
        b"evaluation",
    }
    assert len(first["in.out"]) > 25
    assert first["in.dead"] == []
    assert [name for name, written_ in seen.items() if written_ != first] == []


def test_columns_of_json_give_the_results_of_events(tmp_path: Path) -> None:
    """A flat object with a label among its columns is the event that it stands for."""
    columns = [
        {"age": at % 7, "member": at % 3 == 0, "job": "clerk", "class": "spam" if at % 3 else "ham"}
        for at in range(90)
    ]
    events = [
        {
            "x": {"age": each["age"], **({"member": 1} if each["member"] else {}), "job=clerk": 1},
            "y": each["class"],
        }
        for each in columns
    ]
    ours = [json.dumps(each).encode() for each in columns]
    theirs = [written(each, "msgpack") for each in events]
    found = results(tmp_path / "a.db", ours, {"format": "json", "columns": {"label": "class"}}, 7)
    expected = results(tmp_path / "b.db", theirs, {})
    assert found["in.out"] == expected["in.out"]
    # The split model takes no ages: both refuse them, with the bytes that came.
    assert len(found["in.dead"]) == len(expected["in.dead"]) > 0
    assert {letter.value for letter in _letters(found["in.dead"])} <= set(ours)


def test_results_as_json_say_what_msgpack_says(tmp_path: Path) -> None:
    """Each record of the output and of the dead letters is the same result, in one text, in any batches."""
    values = [written(event, "json") for event in examples(120)] + [
        b"\xff",
        b'{"x": ["a"], "y": "eggs"}',
        b"{" * 9,
    ]
    packed = results(tmp_path / "msgpack.db", values, {"format": "json"})
    as_json = results(tmp_path / "json.db", values, {"format": "json", "results": "json"})
    again = results(tmp_path / "again.db", values, {"format": "json", "results": "json"}, 7)
    for topic in ("in.out", "in.dead"):
        # Results before dead letters in each batch: within a topic the order is that of the events.
        assert again[topic] == as_json[topic]
        assert [each._replace(value=None) for each in as_json[topic]] == [
            each._replace(value=None) for each in packed[topic]
        ]
        for ours, theirs in zip(as_json[topic], packed[topic], strict=True):
            assert ours.value is not None
            assert ours.value.startswith(b"{")
            output = decode_output(ours.value, ours.headers)
            assert output == decode_output(theirs.value or b"", theirs.headers)
            assert encode(output, "json") == ours.value
            # Of a tree that is no part of a forest, and of a split that is whole, some fields are not told.
            absent = {"left_out", "tree", "trees", "weight"}
            assert list(json.loads(ours.value)) == [name for name in output._fields if name not in absent]
    assert len(as_json["in.dead"]) == 4


def test_hostile_json_through_a_whole_worker(tmp_path: Path) -> None:
    """Each bad text becomes one dead letter with its bytes; good events are applied as without it."""
    good = [written(event, "json") for event in examples(20)]
    bad = [(value, reason) for _, value, reason in HOSTILE_JSON if len(value) < 1_000]
    found = results(tmp_path / "a.db", [*good, *(value for value, _ in bad)], {"format": "json"}, 50)
    alone = results(tmp_path / "b.db", good, {"format": "json"})
    assert found["in.out"] == alone["in.out"]
    letters = [letter for letter in _letters(found["in.dead"]) if letter.model is None]
    assert [(letter.value, letter.reason) for letter in letters] == bad
    assert all(letter.rows == [] for letter in letters)


@pytest.mark.parametrize("format", ["avro", "protobuf"])
def test_hostile_bytes_through_a_whole_worker(tmp_path: Path, format: str) -> None:
    """Each record that is none becomes one dead letter with its bytes; good events are applied as without it."""
    events = examples(20)
    good = [written(event, format) for event in events]
    place = [0] if format == "protobuf" else None
    bad = [b"", b"\0", b"{}", written(events[0], "msgpack"), written(events[0], format, number=3)]
    bad += [
        frame(AVRO if format == "avro" else PROTOBUF, place) + junk
        for junk in (b"\xff", b"\xff" * 50, b"\x01\x02\x03")
    ]
    bad += [frame(PROTOBUF if format == "avro" else AVRO, place) + b"other", good[0][:-3], good[0] + b"\0"]
    found = results(tmp_path / "a.db", [*good, *bad], {"format": format}, 9)
    assert found["in.out"] == results(tmp_path / "b.db", good, {"format": format})["in.out"]
    letters = [letter for letter in _letters(found["in.dead"]) if letter.model is None]
    assert [letter.value for letter in letters] == bad
    assert {letter.reason for letter in letters} >= {
        Reason.MALFORMED,
        Reason.UNKNOWN_SCHEMA,
        Reason.UNUSABLE_SCHEMA,
    }


def test_unknown_schemas_are_dead_letters_and_change_nothing(tmp_path: Path) -> None:
    """A record with an id that the registry does not have is refused with its bytes; the others are applied."""
    events = examples(30)
    good = [written(event, "avro") for event in events]
    unknown = written(events[0], "avro", number=77)
    found = results(tmp_path / "a.db", [*good[:10], unknown, *good[10:]], {"format": "avro"}, 7)
    (letter,) = _letters(found["in.dead"])
    assert (letter.reason, letter.value, letter.source.offset) == (Reason.UNKNOWN_SCHEMA, unknown, 10)
    assert "77" in letter.detail
    alone = results(tmp_path / "b.db", good, {"format": "avro"})["in.out"]
    assert len(found["in.out"]) == len(alone)


def test_keys_and_tombstones_are_as_ever(tmp_path: Path) -> None:
    """A record without a key is refused for that, and one without a value forgets the key's model."""
    path = tmp_path / "a.db"
    with EmbeddedLog(path) as log:
        log.create_topic("in", 1)
        log.append(
            OutRecord("in", 0, key, value, (), TIMESTAMP)
            for key, value in [
                (None, b"\xff"),
                (b"k", written(examples(1)[0], "json")),
                (b"k", None),
                (None, None),
            ]
        )
        worker = started(log, settings_of(path, {"format": "json"}))
        worker.run(lambda: False, until_end=True)
        letters = _letters(written_to(log, "in.dead"))
        assert [(letter.reason, letter.source.offset) for letter in letters] == [
            (Reason.NO_KEY, 0),
            (Reason.NO_KEY, 3),
        ]
        (partition,) = worker.partitions.values()
        assert [model.status().keys for model in partition.pipeline.models] == [0, 0]


class Registry:
    """A registry that comes and goes."""

    def __init__(self) -> None:
        self.is_there = False
        self.asked = 0

    def fetch(self, number: int) -> Schema | None:
        """Answer, or not."""
        self.asked += 1
        if not self.is_there:
            raise RegistryAway("http://r: ConnectError")
        known = {AVRO: Schema("AVRO", AVRO_EVENT), PROTOBUF: Schema("PROTOBUF", PROTOBUF_EVENT)}
        return known.get(number)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["avro", "protobuf"])
def test_a_registry_that_is_away_is_waited_for(tmp_path: Path, format: str) -> None:
    """The worker ticks on, tells what it waits for, once and on its page, and loses nothing."""
    values = [written(event, format) for event in examples(60)]
    expected = results(tmp_path / "b.db", values, {"format": format})
    registry, path = Registry(), tmp_path / "a.db"
    board = StatusBoard(Status(0.0))
    with EmbeddedLog(path) as log, capture_logs() as logged:
        structlog.get_logger().debug("logs are captured")
        log.create_topic("in", 1)
        log.append(OutRecord("in", 0, b"k", value, (), TIMESTAMP) for value in values)
        schemas = Schemas(registry.fetch, notify=lambda sentence: structlog.get_logger().warning(sentence))
        settings = settings_of(path, {"format": format}, transaction={"records": 7})
        worker = started(log, settings, schemas, board)
        while registry.asked < 3:
            worker.run_once()
        assert board.status.state == "waiting"
        assert board.status.phase == "waiting for the schema registry"
        pages = Pages(CollectorRegistry(), board, 30.0, time.monotonic, ABOUT)
        alive, ready = (pages.get(path, "") for path in ("/livez", "/readyz"))
        assert (alive.status, ready.status) == (200, 503)
        assert b"the loop ticked" in alive.body
        assert b"waiting for the schema registry" in ready.body
        assert [partition.position for partition in worker.partitions.values()] == [0]
        assert log.committed(TopicPartition("in", 0)) is None
        ticked = board.status.tick
        worker.run_once()
        assert board.status.tick > ticked
        registry.is_there = True
        worker.run(lambda: False, until_end=True)
        assert {name: written_to(log, name) for name in ("in.out", "in.dead")} == expected
    said = [line["event"] for line in logged if "registry" in line["event"]]
    assert said == [
        "waiting for the schema registry, which does not answer: http://r: ConnectError",
        "the schema registry answers again",
    ]


@pytest.mark.slow
def test_a_restart_waits_for_the_registry_too(tmp_path: Path) -> None:
    """Records that are applied again silently are waited for as well, longer than a restore otherwise may take."""
    events = examples(40)
    values = [written(event, "avro") for event in events]
    expected = results(tmp_path / "b.db", values, {"format": "avro"})
    path, registry = tmp_path / "a.db", Registry()
    settings = settings_of(path, {"format": "avro"})
    half = len(values) // 2
    with EmbeddedLog(path) as log:
        log.create_topic("in", 1)
        log.append(OutRecord("in", 0, b"k", value, (), TIMESTAMP) for value in values[:half])
        started(log, settings).run(lambda: False, until_end=True)
        log.append(OutRecord("in", 0, b"k", value, (), TIMESTAMP) for value in values[half:])
    board = StatusBoard(Status(0.0))
    with EmbeddedLog(path) as log:
        worker = started(log, settings, Schemas(registry.fetch), board)
        while registry.asked < 2:
            worker.run_once()
        assert board.status.phase == "waiting for the schema registry"
        registry.is_there = True
        worker.run(lambda: False, until_end=True)
        assert written_to(log, "in.out") == expected["in.out"]


def test_a_worker_stops_while_it_waits(tmp_path: Path) -> None:
    """A signal ends it, with nothing read that is not committed."""
    path = tmp_path / "a.db"
    with EmbeddedLog(path) as log:
        log.create_topic("in", 1)
        log.append([OutRecord("in", 0, b"k", written(examples(1)[0], "avro"), (), TIMESTAMP)])
        registry = Registry()
        worker = started(log, settings_of(path, {"format": "avro"}), Schemas(registry.fetch))
        worker.run(lambda: registry.asked > 1)
        assert log.committed(TopicPartition("in", 0)) is None
    after = results(tmp_path / "b.db", [written(examples(1)[0], "avro")], {"format": "avro"})
    assert after["in.dead"] == []


def test_numbers_of_results_stay_what_they_are() -> None:
    """1 and 1.0 stay apart, floats are the shortest that read back, what is not finite is null."""
    from worker.codec import Prediction, Source

    source = Source("in", 0, 1, 0, 5)
    floats = [1.0, 0.1, 1e22, 5e-324, 123456789.125, -0.0]
    prediction = Prediction("m", 1, 'é\u2028\x01"', floats, 3, True, source)
    text = encode(prediction, "json")
    assert text.decode() == (
        '{"model":"m","id":1,"label":"é\u2028\\u0001\\"","weights":[1.0,0.1,1e+22,5e-324,123456789.125,-0.0],"leaf":3,'
        '"known":true,"source":{"topic":"in","partition":0,"offset":1,"row":0,"time":5}}'
    )
    assert decode_output(text, (("type", b"prediction"),)) == prediction
    endless = encode(prediction._replace(weights=[math.inf, -math.inf, math.nan, 1.0]), "json")
    assert json.loads(endless)["weights"] == [None, None, None, 1.0]


def test_frames_of_others_are_not_schemas_of_ours() -> None:
    """The schemas of the tests are those of the records."""
    assert known().has([AVRO, PROTOBUF])
    assert written({"x": ["a"], "y": "ham"}, "avro").startswith(frame(AVRO))
    assert written({"x": ["a"], "y": "ham"}, "protobuf").startswith(frame(PROTOBUF, [0]))
