"""Publishing a recording, and publishing to the log that settings name."""

from __future__ import annotations

import os
import signal
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result

from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import NO_TIMESTAMP, CommitAborted, Headers, OutRecord, Records, TopicPartition
from worker.publishing.publisher import write

START = 1_700_000_000_000
ODD = TopicPartition("sms", 1)
HEADERS: list[Headers] = [(), (("a", None), ("a", b""), ("b", b"x")), (), ()]
KEYS = [None, b"", b"k", b"k"]
VALUES = [b"", None, b"x" * 100_000, b"y"]
TIMES = [START, START + 1, START, START - 1]

SETTINGS = """
log: {embedded: there.db}
models:
  spam: {kind: split, input: sms, classes: [ham, spam], features: names}
"""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Return a recording of `sms`, whose partition 1 has odd records and gaps, and of some results."""
    (tmp_path / "worker.yaml").write_text(SETTINGS)
    with EmbeddedLog(tmp_path / "rec.db") as log:
        log.create_topic("sms", 2)
        log.create_topic("sms.out", 2)
        log.record(Records(ODD, np.array([5, 6, 9, 11]), np.array(TIMES), KEYS, VALUES, HEADERS, 15))
        log.append([OutRecord("sms.out", 0, b"k", b"result", (), START)])
    return tmp_path / "rec.db"


def _publish(recording: Path, *options: str) -> Result:
    """Publish a recording from its folder, where also the settings are."""
    before = Path.cwd()
    os.chdir(recording.parent)
    try:
        return CliRunner().invoke(main, ["publish", "--recording", recording.name, *options])
    finally:
        os.chdir(before)


def _there(recording: Path) -> Records:
    with EmbeddedLog(recording.parent / "there.db", create=False) as log:
        return log.read(ODD, 0, 1_000)


@pytest.mark.parametrize(
    "options", [["--to", "worker.yaml"], ["--log", "there.db", "--topic", "sms"]], ids=lambda options: options[0]
)
def test_records_stay_as_they_are(recording: Path, options: list[str]) -> None:
    """Partitions, keys, values, headers and times stay; offsets are those of the new log, without gaps."""
    result = _publish(recording, *options)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("4 records of rec.db to sms of there.db\nnext: anabranch run ")
    there = _there(recording)
    assert (list(there.keys), list(there.values), list(there.headers)) == (KEYS, VALUES, HEADERS)
    assert there.timestamps.tolist() == TIMES
    assert there.offsets.tolist() == [0, 1, 2, 3]
    with EmbeddedLog(recording.parent / "there.db") as log:
        assert log.topics() == {"sms": 2}


def test_a_named_topic(recording: Path) -> None:
    """Another topic than the inputs can be named, and again and again."""
    for _ in range(2):
        assert _publish(recording, "--to", "worker.yaml", "--topic", "sms.out").exit_code == 0
    with EmbeddedLog(recording.parent / "there.db") as log:
        assert log.watermarks(TopicPartition("sms.out", 0)).high == 2


def test_progress(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows a bar that counts records."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = _publish(recording, "--to", "worker.yaml")
    assert "4 records" in result.stderr
    assert "━━━" in result.stderr


def test_limit(recording: Path) -> None:
    """It stops after as many records as are wanted."""
    result = _publish(recording, "--to", "worker.yaml", "--limit", "2")
    assert result.output.startswith("2 records of rec.db")
    assert list(_there(recording).values) == VALUES[:2]


def test_partitions_are_merged_by_time(tmp_path: Path) -> None:
    """Records of several topics and partitions are written in the order of their times."""
    (tmp_path / "worker.yaml").write_text(
        SETTINGS + "  ads: {kind: split, input: ads, classes: [0, 1], features: ids}\n"
    )
    with EmbeddedLog(tmp_path / "rec.db") as log:
        for topic in ("ads", "sms"):
            log.create_topic(topic, 2)
        records = [OutRecord(("ads", "sms")[n % 2], n // 2 % 2, None, b"%d" % n, (), START + n) for n in range(40)]
        log.append(records)
    result = _publish(tmp_path / "rec.db", "--to", "worker.yaml", "--limit", "30")
    assert result.output.startswith("30 records of rec.db to ads, sms")
    with EmbeddedLog(tmp_path / "there.db") as log:
        came = [
            value
            for topic in ("ads", "sms")
            for n in range(2)
            for value in log.read(TopicPartition(topic, n), 0, 99).values
        ]
    assert sorted(came, key=lambda value: int(value or b"")) == [b"%d" % n for n in range(30)]


def test_speed(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --speed the records take the time that they took, divided by it."""
    with EmbeddedLog(recording) as log:
        log.append([OutRecord("sms", 1, b"k", b"late", (), START + 3_600_000)])
    slept: list[float] = []
    now = SimpleNamespace(value=0.0)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now.value += seconds

    module = import_module("worker.commands.publish_recording")
    real = module.Pacing
    monkeypatch.setattr(
        module, "Pacing", lambda speed, notify: real(speed, lambda: now.value, sleep, notify=notify)
    )
    result = _publish(recording, "--to", "worker.yaml", "--speed", "60")
    assert result.exit_code == 0, result.output
    assert sum(slept) == pytest.approx(60.1, abs=0.11)
    assert "the next record is due in 60 s" in result.stderr
    assert len(_there(recording).keys) == 5


def test_without_times(recording: Path) -> None:
    """A record without a time is refused, or gets the one that is told."""
    with EmbeddedLog(recording) as log:
        log.record(
            Records(ODD, np.array([20]), np.array([NO_TIMESTAMP]), [b"k"], [b"timeless"], [()], 21),
        )
    result = _publish(recording, "--to", "worker.yaml")
    assert result.exit_code == 1
    assert "rec.db: expected a timestamp of each record, sms/1 offset 20 has none (-1)" in result.stderr
    result = _publish(recording, "--to", "worker.yaml", "--timestamp", "7")
    assert result.exit_code == 0, result.output
    assert _there(recording).timestamps.tolist() == [*TIMES, 7]


def test_another_number_of_partitions(recording: Path) -> None:
    """Where the topic has another number of partitions keys would leave their models: nothing is written."""
    with EmbeddedLog(recording.parent / "there.db") as log:
        log.create_topic("sms", 3)
    result = _publish(recording, "--to", "worker.yaml")
    assert result.exit_code == 1
    assert "topic 'sms' was to have 2 partitions, but it exists with 3" in result.stderr
    assert len(_there(recording).keys) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "worker.yaml", "--topic", "sns"], "expected a recording of sns, rec.db holds sms, sms.out"),
        (["--log", "rec.db", "--topic", "sms"], "rec.db: is the log to publish to as well"),
    ],
)
def test_what_cannot_be_published(recording: Path, options: list[str], message: str) -> None:
    """What is wrong with the recording is told."""
    result = _publish(recording, *options)
    assert result.exit_code == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "expected --to SETTINGS, the log to publish to, or --log FILE; name one"),
        (["--log", "there.db"], "expected --topic NAME, the topic of the recording to publish"),
        (["--log", "there.db", "--to", "worker.yaml"], "expected --log or --to, got both; leave one out"),
        (["--to", "worker.yaml", "--key-value", "k"], "expected no --key-value with --recording"),
        (["--to", "worker.yaml", "--label", "y"], "expected no --label with --recording"),
        (["--to", "worker.yaml", "--partitions", "2"], "expected no --partitions with --recording"),
        (["--to", "worker.yaml", "--generate", "sea"], "expected no --generate with --recording"),
        (["--to", "worker.yaml", "worker.yaml"], "expected no FILE with --recording"),
        (["--to", "worker.yaml", "--speed", "0"], "0.0 is not in the range x>0"),
    ],
)
def test_usage(recording: Path, options: list[str], message: str) -> None:
    """Options that mean nothing to a recording are refused."""
    result = _publish(recording, *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not (recording.parent / "there.db").exists()


def test_a_signal_ends_it(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal ends what is paced between two transactions; what was written before is told."""
    with EmbeddedLog(recording) as log:
        log.append([OutRecord("sms", 1, b"k", b"late", (), START + 3_600_000)])
    module = import_module("worker.commands.publish_recording")
    monkeypatch.setattr(module, "_notify_wait", lambda seconds: os.kill(os.getpid(), signal.SIGTERM))
    result = _publish(recording, "--to", "worker.yaml", "--speed", "1")
    assert result.exit_code == 1
    assert "stopped before the end of the recording\n4 records before that went to sms" in result.stderr
    assert list(_there(recording).values) == VALUES


# --- files, to the log that settings name


def _publish_text(folder: Path, *options: object) -> Result:
    (folder / "messages.txt").write_text("ham\tsee you soon\nspam\twin a prize\n")
    return CliRunner().invoke(main, ["publish", str(folder / "messages.txt"), *map(str, options)])


def test_to_settings(recording: Path) -> None:
    """A file goes to the input topic of the settings, in the log that they name, which is made if need be."""
    settings = recording.parent / "worker.yaml"
    result = _publish_text(recording.parent, "--to", settings, "--partitions", 2, "--key-value", "k")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        f"2 events to sms (2 partitions) of {recording.parent / 'there.db'}",
        f"next: anabranch run {settings} --until-end; then",
        f"      anabranch show {settings} --topic sms.out",
    ]
    murmur2 = _publish_text(recording.parent, "--to", settings, "--key-value", "k", "--partitioner", "murmur2")
    assert murmur2.exit_code == 0
    with EmbeddedLog(recording.parent / "there.db") as log:
        ends = [log.watermarks(TopicPartition("sms", number)).high for number in range(2)]
    assert ends == [2, 2]  # the two partitioners differ about this key


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--log", "x.db"], "expected --topic NAME, the topic to publish to; name one"),
        (["--to", "two.yaml"], "expected --topic NAME, the topic to publish to (the models' inputs are ads, sms)"),
        (["--to", "two.yaml", "--log", "x.db"], "expected --log or --to, got both; leave one out"),
        (["--to", "two.yaml", "--speed", "2"], "expected --speed with --recording alone"),
        ([], "expected --log FILE, an embedded log to write to, or --to SETTINGS; name one, or --dry-run"),
    ],
)
def test_usage_with_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    """Where a file is to go has to be clear."""
    monkeypatch.chdir(tmp_path)
    more = "  ads: {kind: split, input: ads, classes: [0, 1], features: ids}\n"
    Path("two.yaml").write_text(SETTINGS + more)
    result = _publish_text(tmp_path, *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not list(tmp_path.glob("*.db"))


def test_a_transaction_that_is_given_up_is_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the log gives up is written by another attempt, but not by ever more of them."""
    attempts = 0
    commit = EmbeddedLog.commit

    def reluctant(log: EmbeddedLog, outputs: list[OutRecord], offsets: dict[TopicPartition, int]) -> None:
        nonlocal attempts
        attempts += 1
        if attempts % 11:
            raise CommitAborted("no")
        commit(log, outputs, offsets)

    monkeypatch.setattr(EmbeddedLog, "commit", reluctant)
    with EmbeddedLog(tmp_path / "log.db") as log:
        log.create_topic("t", 1)
        record = OutRecord("t", 0, b"k", b"v", (), START)
        with pytest.raises(CommitAborted):
            write(log, [record])
        assert attempts == 10
        assert write(log, [record, record]) == 2
        assert log.watermarks(TopicPartition("t", 0)).high == 2
