"""Records of every shape that brokers take: the worker and the commands survive them, and carry their bytes."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from tests.support.wild_records import WildRecord, send_wild
from tests.worker.kafka.test_kafka_commands import Bench, Content, _contents, _kafka_contents, _released
from worker.broker import Cluster
from worker.codec import DeadLetter, decode_output
from worker.codec.event import encode_event
from worker.log.embedded import EmbeddedLog
from worker.log.port import TopicPartition

__all__ = ["_released"]

NOW = 1_700_000_000_000
GOOD = encode_event(["word"], "spam")
HEADERS: list[tuple[tuple[bytes, bytes | None], ...]] = [
    (),
    (
        (b"\xff\xfe-latin-\xe9", b"v"),
        (b"after", b"1"),
        (b"\xff", None),
        (b"\xff", b"again"),
        (b"\xed\xa0\x80", b""),
    ),
    ((b"", None), (b"", b""), (b"null", None), (b"twice", b"1"), (b"twice", b"2"), ("größe".encode(), b"\xff")),
    tuple((b"%d" % number, b"v") for number in range(3_000)),
    # As a result has them, and as other programs may.
    ((b"type", b"split"),),
    ((b"type", b"\xff"), (b"out_id", None)),
]
KEYS = [None, b"", b"k", b"\xff\x00", b"k" * 5_000]
VALUES = [GOOD, None, b"", b"\x00\xff", b"\xc1" * 70_000]
TIMES = [-1, 1, NOW, 2**63 - 1, -(2**62)]


def _wild() -> list[WildRecord]:
    """Return good records among wild ones."""
    good = WildRecord(b"k", GOOD, (), NOW)
    shapes = [WildRecord(key, value, (), NOW) for key, value in product(KEYS, VALUES)]
    headers = [good._replace(headers=each) for each in HEADERS]
    times = [good._replace(timestamp=each) for each in TIMES]
    return [*[good] * 10, *shapes, *headers, *times, *[good] * 3]


def _as_read(record: WildRecord) -> Content:
    names = tuple((name.decode("utf-8", "surrogateescape"), value) for name, value in record.headers)
    return record.key, record.value, names, record.timestamp


@pytest.fixture
def bench(kafka: Cluster, tmp_path: Path) -> Bench:
    """Return settings with topics, and wild records in the input."""
    made = Bench(kafka, tmp_path)
    made.create(1)
    send_wild(kafka.bootstrap, made.input, _wild())
    return made


def test_wild_records_are_worked_off(bench: Bench) -> None:
    """A worker reads every record, good ones after wild ones too; a restart goes on; a replay gives the same."""
    bench.done("run", bench.settings, "--until-end")
    bench.done("run", bench.settings, "--until-end")
    send_wild(bench.kafka.bootstrap, bench.input, _wild())
    bench.done("run", bench.settings, "--until-end")
    source = TopicPartition(bench.input, 0)
    with bench.log() as log:
        assert log.committed(source) == log.watermarks(source).high
        ((*results,),) = _kafka_contents(log, f"{bench.input}.out")
        ((*dead,),) = _kafka_contents(log, f"{bench.input}.dead")
    refused = {
        letter.source.offset
        for _, value, headers, _ in dead
        if isinstance(letter := decode_output(value or b"", headers), DeadLetter)
    }
    expected = {
        offset
        for offset, (key, value, *_) in enumerate(2 * _wild())
        if key is None or len(key) > 1_024 or value not in (None, GOOD)
    }
    assert refused == expected
    bench.record()
    bench.done("replay", bench.settings, bench.folder / "rec.db", bench.folder / "out.db")
    with EmbeddedLog(bench.folder / "out.db") as replayed:
        assert _contents(replayed, f"{bench.input}.out") == [results]
        assert _contents(replayed, f"{bench.input}.dead") == [dead]


def test_wild_records_are_carried(bench: Bench) -> None:
    """A recording holds every byte of every record, and publishing it writes them again."""
    expected = [_as_read(record) for record in _wild()]
    with bench.log() as log:
        assert _kafka_contents(log, bench.input) == [expected]
    bench.record()
    with EmbeddedLog(bench.folder / "rec.db") as recording:
        assert _contents(recording, bench.input) == [expected]
    publish = ("publish", "--recording", bench.folder / "rec.db")
    assert "expected a timestamp of each record" in bench.run(*publish, "--to", bench.settings).output
    bench.done(*publish, "--to", bench.settings, "--timestamp", NOW)
    with bench.log() as log:
        (published,) = _kafka_contents(log, bench.input)
    timed = [(*content, time if time > 0 else NOW) for *content, time in expected]
    assert published[len(expected) :] == timed


def test_wild_records_are_shown(bench: Bench) -> None:
    """Every record is shown, as text and as JSON."""
    assert [each["type"] for each in bench.objects("--topic", bench.input)] == ["event"] * len(_wild())
    for options in ((), ("--last", 100), ("--key", "k")):
        assert bench.done("show", bench.settings, "--topic", bench.input, *options)
    assert json.loads(bench.done("show", bench.settings, "--json").splitlines()[0])["topic"] == bench.input
