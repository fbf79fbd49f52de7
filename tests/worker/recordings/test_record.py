"""Recording topics of an embedded log: what is kept, how far it goes, and going on with it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result

from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import NO_TIMESTAMP, Headers, OutRecord, Records, TopicPartition

START = 1_704_067_200_000  # 2024-01-01T00:00:00Z
HOUR = 3_600_000
SMS, CLICKS = TopicPartition("sms", 0), TopicPartition("clicks", 1)

SETTINGS = """
log: {embedded: events.db}
models:
  spam: {kind: split, input: sms, classes: [ham, spam], features: names}
  ads: {kind: split, input: clicks, classes: [0, 1], features: ids}
"""


def _event(number: int, topic: str = "sms", partition: int = 0) -> OutRecord:
    return OutRecord(topic, partition, b"k", b"%d" % number, (), START + number * HOUR)


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Return settings whose log has 10 hours of events in `sms`, 3 events in `clicks/1`, and other topics."""
    path = tmp_path / "worker.yaml"
    path.write_text(SETTINGS)
    with EmbeddedLog(tmp_path / "events.db") as log:
        for topic, partitions in {"sms": 1, "clicks": 2, "sms.out": 1, "seven": 7}.items():
            log.create_topic(topic, partitions)
        log.append(_event(number) for number in range(10))
        log.append(_event(number, "clicks", 1) for number in range(3))
    return path


def _record(settings: Path, *options: object, to: str = "rec.db") -> Result:
    recording = settings.parent / to
    return CliRunner().invoke(main, ["record", str(settings), str(recording), *map(str, options)])


def _recorded(settings: Path, *options: object) -> str:
    """Record what can be recorded, and return what was said."""
    result = _record(settings, *options)
    assert result.exit_code == 0, result.output
    return result.output


def _offsets(folder: Path, source: TopicPartition = SMS, file: str = "rec.db") -> list[int]:
    with EmbeddedLog(folder / file, create=False) as log:
        return list(map(int, log.read(source, 0, 1_000).offsets))


Content = tuple[int, int, bytes | None, bytes | None, Headers]


def _contents(path: Path, source: TopicPartition) -> tuple[tuple[int, int], list[Content]]:
    with EmbeddedLog(path, create=False) as log:
        found = log.read(source, 0, 100_000)
        columns = (found.offsets.tolist(), found.timestamps.tolist(), found.keys, found.values, found.headers)
        return log.watermarks(source), list(zip(*columns, strict=True))


def test_records_stay_as_they_are(settings: Path) -> None:
    """Offsets, gaps, null and empty keys and values, headers and times stay, and the log is unchanged."""
    log = settings.parent / "events.db"
    headers: list[Headers] = [(), (("a", None), ("a", b""), ("b", b"x")), (), ()]
    with EmbeddedLog(log) as opened:
        opened.create_topic("odd", 2)
        offsets, timestamps = np.array([5, 6, 9, 11]), np.array([START, NO_TIMESTAMP, 0, START - 1])
        keys, values = [None, b"", b"k", b"k"], [b"", None, b"x" * 100_000, b"y"]
        opened.record(Records(TopicPartition("odd", 1), offsets, timestamps, keys, values, headers, 15))
    before = log.read_bytes()
    told = _recorded(settings, "--topic", "odd")
    assert told.splitlines() == [
        "odd: 2 partitions, new in the recording",
        f"recorded 4 records of odd to {settings.parent / 'rec.db'}",
    ]
    assert log.read_bytes() == before
    for number in range(2):
        source = TopicPartition("odd", number)
        assert _contents(settings.parent / "rec.db", source) == _contents(log, source)
    bounds, contents = _contents(settings.parent / "rec.db", TopicPartition("odd", 1))
    assert (bounds, len(contents)) == ((5, 15), 4)


def test_the_inputs_are_recorded(settings: Path) -> None:
    """Unless others are named, the input topics of the models are recorded, and can be replayed."""
    told = _recorded(settings)
    assert "recorded 13 records of clicks, sms" in told
    assert f"next: anabranch replay {settings} {settings.parent / 'rec.db'} OUTPUT" in told
    with EmbeddedLog(settings.parent / "rec.db", create=False) as log:
        assert log.topics() == {"clicks": 2, "sms": 1}


def test_topics_that_are_named(settings: Path) -> None:
    """Any topics of the log can be named, also twice."""
    assert "recorded 10 records of seven, sms" in _recorded(
        settings, "--topic", "seven", "--topic", "sms", "--topic", "seven"
    )
    with EmbeddedLog(settings.parent / "rec.db", create=False) as log:
        assert log.topics() == {"seven": 7, "sms": 1}


def test_going_on(settings: Path) -> None:
    """The same command goes on where the recording ends, whatever --from says, and says so."""
    assert "sms: 1 partition, new in the recording" in _recorded(settings, "--topic", "sms", "--from", 2)
    assert _offsets(settings.parent) == list(range(2, 10))
    assert "recorded 0 records of sms" in _recorded(settings, "--topic", "sms", "--from", 2)
    with EmbeddedLog(settings.parent / "events.db") as log:
        log.append(_event(number) for number in range(10, 13))
    told = _recorded(settings, "--from", "earliest")
    assert "sms: 1 partition, goes on where the recording ends" in told
    assert "clicks: 2 partitions, new in the recording" in told
    assert "recorded 6 records of clicks, sms" in told
    assert _offsets(settings.parent) == list(range(2, 13))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--until", "end"], range(10)),
        (["--until", "4"], range(4)),
        (["--until", "400"], range(10)),
        (["--until", "0"], range(0)),
        (["--from", "3", "--until", "7"], range(3, 7)),
        (["--from", "10"], range(0)),
        (["--from", "latest", "--for", "0"], range(0)),
        (["--until", "2024-01-01"], range(0)),
        (["--until", "2024-01-01T03:30"], range(4)),
        (["--until", "2024-01-01T03:00:00Z"], range(3)),
        (["--until", "2024-01-01T05:00:00+02:00"], range(3)),
        (["--until", "2124-01-01"], range(10)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bounds(settings: Path, options: list[str], expected: range) -> None:
    """It begins and ends where it is told; without bounds the rest follows."""
    _recorded(settings, "--topic", "sms", *options)
    assert _offsets(settings.parent) == list(expected)
    _recorded(settings, "--topic", "sms")
    assert _offsets(settings.parent) == list(
        range(expected.start or (10 if "10" in options or "latest" in options else 0), 10)
    )


@contextmanager
def _meanwhile(folder: Path, then: Callable[[], None]) -> Iterator[None]:
    """Write an event once the recording holds ten, and do something once it holds that one too."""

    def act() -> None:
        try:
            _until_recorded(folder, 10)
            with EmbeddedLog(folder / "events.db") as log:
                log.append([_event(10)])
            _until_recorded(folder, 11)
        except BaseException:
            os.kill(os.getpid(), signal.SIGTERM)  # else the recording would go on and on
            raise
        then()

    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join()


def _until_recorded(folder: Path, high: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if (folder / "rec.db").exists():
            with EmbeddedLog(folder / "rec.db") as log:
                if log.partitions("sms") and log.watermarks(SMS).high >= high:
                    return
        time.sleep(0.02)
    raise AssertionError(f"the recording did not come to {high} records")


def test_for_some_seconds(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --for what comes meanwhile is recorded too; then it ends by itself."""
    over = threading.Event()
    clock = SimpleNamespace(monotonic=lambda: 601.0 if over.is_set() else 0.0)
    monkeypatch.setattr(import_module("worker.commands.record"), "time", clock)
    with _meanwhile(settings.parent, over.set):
        told = _recorded(settings, "--topic", "sms", "--for", 600)
    assert "recorded 11 records of sms" in told
    assert "stopped" not in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(settings: Path, number: int) -> None:
    """A signal ends it with exit code 0 and what is there; the same command goes on."""
    with _meanwhile(settings.parent, lambda: os.kill(os.getpid(), number)):
        told = _recorded(settings, "--topic", "sms", "--for", 600)
    assert "recorded 11 records of sms" in told
    assert "stopped before its end; the same command goes on with it" in told
    assert _offsets(settings.parent) == list(range(11))
    assert "recorded 0 records" in _recorded(settings, "--topic", "sms")


def test_progress(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows a bar that counts records; elsewhere there is a line now and then."""
    assert "so far" not in _recorded(settings, "--topic", "clicks")
    monkeypatch.setattr(import_module("worker.commands.record"), "_NOTIFY_SECONDS", 0.0)
    assert "10 records so far, 100% of what there is" in _recorded(settings, "--topic", "sms")
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = _record(settings, "--topic", "sms", to="new.db")
    assert "10 records" in result.stderr
    assert "━━━" in result.stderr
    assert "so far" not in result.stderr


def test_where_it_began_is_kept(settings: Path) -> None:
    """A recording that began at the end and was given nothing goes on from there, not from the end of today."""
    _recorded(settings, "--topic", "sms", "--from", "latest", "--for", "0")
    with EmbeddedLog(settings.parent / "events.db") as log:
        log.append([_event(10)])
    _recorded(settings, "--topic", "sms", "--from", "latest", "--for", "0.3")
    assert _offsets(settings.parent) == [10]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--topic", "clicks", "--topic", "sns"],
            "expected the topic 'sns', to be recorded; there is none in the log; check the name",
        ),
        (["--topic", "sms", "--from", "11"], "sms/0 was to be recorded from offset 11; expected one from 0 "),
        (
            ["--topic", "sms", "--topic", "seven"],
            "expected the topic 'seven' to have 2 partitions, as in the recording; it has 7",
        ),
    ],
)
def test_what_cannot_be_recorded(settings: Path, options: list[str], message: str) -> None:
    """What is wrong is told, and the recording stays as it was."""
    with EmbeddedLog(settings.parent / "rec.db") as log:
        log.create_topic("seven", 2)
    result = _record(settings, *options)
    assert result.exit_code == 1
    assert message in result.stderr
    with EmbeddedLog(settings.parent / "rec.db") as log:
        assert log.topics() == {"seven": 2}


def test_records_that_are_gone(settings: Path) -> None:
    """Where retention has dropped what would come next, it stops rather than leave a hole."""
    _recorded(settings, "--topic", "sms", "--until", "4")
    with EmbeddedLog(settings.parent / "events.db") as log:
        log.truncate(SMS, 6)
    result = _record(settings)
    assert result.exit_code == 1
    assert (
        "sms/0: expected to go on at offset 4, where the recording ends, but the log has dropped" in result.stderr
    )
    assert "record into a new file" in result.stderr
    assert _record(settings, "--topic", "sms", to="new.db").exit_code == 0
    assert _offsets(settings.parent, file="new.db") == [6, 7, 8, 9]


def test_another_topic_of_the_name(settings: Path) -> None:
    """A topic that ends before the recording does is not the one that was recorded."""
    _recorded(settings)
    (settings.parent / "events.db").unlink()
    with EmbeddedLog(settings.parent / "events.db") as log:
        log.create_topic("sms", 1)
        log.append([_event(0)])
    result = _record(settings, "--topic", "sms")
    assert result.exit_code == 1
    assert "offset 10, where the recording ends, but the topic ends at 1" in result.stderr


def test_the_log_itself(settings: Path) -> None:
    """A log is not recorded into itself."""
    result = _record(settings, to="events.db")
    assert result.exit_code == 1
    assert "events.db: is the log itself" in result.stderr


def test_no_recording_is_made_in_vain(settings: Path, tmp_path: Path) -> None:
    """Without the topic or the log no recording is begun."""
    assert _record(settings, "--topic", "sns").exit_code == 1
    assert not (tmp_path / "rec.db").exists()
    (tmp_path / "events.db").unlink()
    (tmp_path / "worker.yaml").write_text(SETTINGS)
    result = _record(tmp_path / "worker.yaml")
    assert result.exit_code == 1
    assert "events.db: expected an existing log file, found none" in result.stderr
    assert not (tmp_path / "rec.db").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "middle"], "expected earliest, latest or an offset, got 'middle'"),
        (["--from", "-1"], "expected earliest, latest or an offset, got '-1'"),
        (["--until", "never"], "expected end, an offset or a time like 2024-05-01T12:00:00Z, got 'never'"),
        (["--until", "5", "--for", "5"], "expected --until or --for, got both"),
        (["--from", "latest"], "expected --for SECONDS with --from latest"),
        (["--for", "-1"], "-1.0 is not in the range x>=0"),
    ],
)
def test_usage(settings: Path, options: list[str], message: str) -> None:
    """Options that mean nothing are refused before anything is made."""
    result = _record(settings, *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not (settings.parent / "rec.db").exists()
