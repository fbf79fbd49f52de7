"""`on_defect: quarantine`: a record at which processing fails is found, passed by, and stays passed by."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import pytest
import structlog
from click.testing import CliRunner
from structlog.testing import capture_logs

from tests.support.recordings import CLICKS, PARTITIONS, SETTINGS, WORDS, mixed, write
from tests.support.workers import outputs_of, worker_on
from tests.worker.kafka.test_kafka_worker import Place, finish
from tests.worker.state.test_crash import CHECKPOINT_STEPS, LATE_DEATHS, OFTEN, Died, deadly
from worker.broker import Cluster
from worker.checkpoint import Attempt, Marks, read_marks, returned
from worker.checkpoint.marks import DEATH
from worker.codec import DeadLetter, Events, decode_output
from worker.commands import main
from worker.commands.common import in_transactions_of
from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, LogError, OutRecord, Records, TopicPartition
from worker.models.split import SplitModel
from worker.quarantine import MOST_AN_HOUR
from worker.settings import CheckpointSettings, load

POISON = b"boom"
QUIET = {"x": [POISON.decode()], "y": "nobody's"}  # refused by every model, so it changes nothing either way
MALFORMED = b"\xc1" + POISON  # the same without a defect: a record that nobody can read
SELDOM = CheckpointSettings()


def meets(records: Records, events: Events) -> bool:
    """Return whether one of the events came in a record that holds the poison."""
    return any(POISON in (records.values[at] or b"") for at in set(events.record.tolist()))


def plant(patch: pytest.MonkeyPatch, error: Callable[[], BaseException] = lambda: KeyError("secret")) -> None:
    """Let a model fail at the poison after it has taken the batch: its state is in disorder then."""
    apply = SplitModel.apply

    def failing(model: SplitModel, records: Records, events: Events) -> Any:
        outcome = apply(model, records, events)
        if meets(records, events):
            raise error()
        return outcome

    patch.setattr(SplitModel, "apply", failing)


class Work:
    """A recording with some poison in it, and what a worker makes of the same with malformed records instead."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = folder / "settings.yaml"
        self.settings.write_text(SETTINGS.replace("mixed.db", str(folder / "log.db")) + "on_defect: quarantine\n")
        records = list(mixed(240))
        for at in (30, 31, 32, 110, 200):
            records[at] = records[at]._replace(topic=WORDS, partition=at % PARTITIONS, key=b"key-1")
        poisoned = [record for at, record in enumerate(records) if at in (30, 31, 32, 110, 200)]
        self.poison = len(poisoned)
        topics = {WORDS: PARTITIONS, CLICKS: PARTITIONS}
        for name, value in (("poisoned.db", msgpack.packb(QUIET)), ("harmless.db", MALFORMED)):
            changed = (r._replace(value=value) if r in poisoned else r for r in records)
            write(folder / name, changed, topics)
        self.expected = self.live(folder / "undisturbed.db", "harmless.db")

    def live(
        self,
        log: Path,
        recording: str = "poisoned.db",
        batch: int = 50,
        checkpoint: CheckpointSettings = SELDOM,
        threads: int = 1,
    ) -> dict[TopicPartition, list[Any]]:
        """Run a worker to the end of a recording and return every byte that it wrote, checked."""
        told = in_transactions_of(batch, load(self.settings, {}))
        told = told.model_copy(update={"checkpoint": checkpoint, "threads": threads})
        with EmbeddedLog(log, source=self.folder / recording) as opened:
            worker = worker_on(opened, told)
            worker.run(lambda: False, until_end=True)
            for partition in worker.partitions.values():
                for model in partition.pipeline.models:
                    model.check()
        return outputs_of(self.settings, log)

    def assert_passed_by(self, outputs: dict[TopicPartition, list[Any]], error: str = "KeyError") -> None:
        """Make sure that all is as expected but for one dead letter for each record with poison."""
        passed = 0
        assert outputs.keys() == self.expected.keys()
        for source, wanted in self.expected.items():
            assert len(outputs[source]) == len(wanted)
            for found, other in zip(outputs[source], wanted, strict=True):
                if found == other:
                    continue
                (key, value, headers, time), (other_key, _, other_headers, other_time) = found, other
                assert (key, headers, time) == (other_key, other_headers, other_time)
                letter = decode_output(value, headers)
                assert isinstance(letter, DeadLetter)
                assert (letter.reason, letter.model, letter.rows) == ("defect", None, [])
                assert POISON in (letter.value or b"")
                assert f"got {error}: a defect" in letter.detail
                assert "secret" not in letter.detail
                passed += 1
        assert passed == self.poison


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Return a recording and what is expected of it."""
    return Work(tmp_path_factory.mktemp("quarantine"))


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "threads"), [(1, 1), (7, 1), (7, 2), (400, 1), (400, 2), (400, 3)])
@pytest.mark.parametrize("checkpoint", [SELDOM, OFTEN], ids=["seldom", "often"])
def test_one_dead_letter_and_nothing_else(
    work: Work,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
    threads: int,
    checkpoint: CheckpointSettings,
) -> None:
    """A record at which a model fails leads to a dead letter; all other bytes are as without it."""
    log = tmp_path / "log.db"
    plant(monkeypatch)
    work.assert_passed_by(work.live(log, batch=batch, checkpoint=checkpoint, threads=threads))
    monkeypatch.undo()  # a version without the defect passes them by as well: they are part of the input
    again = tmp_path / "again.db"
    keep_skips_alone(log, again)
    work.assert_passed_by(work.live(again, batch=33, threads=threads))


def keep_skips_alone(log: Path, into: Path) -> None:
    """Copy what a state topic says of skips into a new log."""
    with EmbeddedLog(log) as opened, EmbeddedLog(into) as target:
        for number in range(PARTITIONS):
            state = TopicPartition(f"{WORDS}.state", number)
            skips = marks_of(opened, state).skips
            target.create_topic(state.topic, PARTITIONS, compacted=True)
            target.append(OutRecord(*state, skip.key, skip.pack(), (), skip.time) for skip in skips.values())


def marks_of(log: Log, state: TopicPartition) -> Marks:
    """Return the marks of a partition of a state topic."""
    return returned(read_marks(log, state, lambda: 0.0, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("step", CHECKPOINT_STEPS)
def test_death_while_records_are_passed_by(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Workers that die at a step, with a defect beside it, leave each dead letter once, and the same bytes."""
    log, deaths = tmp_path / "log.db", 0
    where, what, done = CHECKPOINT_STEPS[step]
    plant(monkeypatch)
    for turn, (count, records) in enumerate((*LATE_DEATHS[:3], (1, 40), (2, 9))):
        with monkeypatch.context() as patch, suppress(Died):
            patch.setattr(where, what, deadly(getattr(where, what), count, done))
            deaths += 1
            work.live(log, batch=records, checkpoint=OFTEN, threads=1 + turn % 3)
            deaths -= 1
    assert deaths >= 1
    work.assert_passed_by(work.live(log, batch=100, checkpoint=OFTEN))


def test_a_replay_of_the_recording_passes_them_by(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`record` keeps what was passed by and says so; a replay without the defect gives the worker's bytes."""
    log, recording, results = (tmp_path / name for name in ("log.db", "recording.db", "results.db"))
    log.write_bytes((work.folder / "poisoned.db").read_bytes())
    settings = tmp_path / "settings.yaml"
    settings.write_text(work.settings.read_text().replace(str(work.folder / "log.db"), str(log)))
    with monkeypatch.context() as patch, EmbeddedLog(log) as opened:
        plant(patch)
        worker_on(opened, load(settings, {})).run(lambda: False, until_end=True)
    work.assert_passed_by(outputs_of(work.settings, log))
    recorded = CliRunner().invoke(main, ["record", str(settings), str(recording)])
    assert recorded.exit_code == 0
    assert "5 records passed by (on_defect: quarantine); a replay does so too" in recorded.output
    replay = ["replay", str(settings), str(recording), str(results), "--expect", str(log)]
    assert CliRunner().invoke(main, replay).output.endswith(f"the results equal {log}\n")


def test_stop_is_the_default(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the setting the failure ends the worker, as it does where memory runs out."""
    plant(monkeypatch)
    told = load(work.settings, {})
    with EmbeddedLog(tmp_path / "log.db", source=work.folder / "poisoned.db") as log:
        stops = told.model_copy(update={"on_defect": "stop"})
        with pytest.raises(KeyError):
            worker_on(log, stops).run(lambda: False, until_end=True)
        monkeypatch.undo()
        plant(monkeypatch, MemoryError)
        with pytest.raises(MemoryError):
            worker_on(log, told).run(lambda: False, until_end=True)
        assert log.partitions(f"{WORDS}.state") == PARTITIONS
        assert not any(marks_of(log, TopicPartition(f"{WORDS}.state", n)).skips for n in range(PARTITIONS))


def test_what_a_person_reads(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log names offsets, the class of the failure and where it was, and nothing of the data."""
    plant(monkeypatch)
    with capture_logs() as lines:
        monkeypatch.setattr("worker.watching.listener.logger", structlog.get_logger())
        work.live(tmp_path / "log.db")
    errors = [line for line in lines if line["log_level"] == "error"]
    assert errors[0].pop("failure").startswith("KeyError at test_quarantine.py:")
    assert errors[0] == {
        "event": "processing failed: a defect, please report it; looking for the record",
        "log_level": "error",
        "topic": "words",
        "partition": 0,
        "offsets": errors[0]["offsets"],
    }
    assert [line["error"] for line in errors if line["event"] == "passed a record by"] == [
        "KeyError"
    ] * work.poison
    assert "secret" not in str(lines)
    assert POISON.decode() not in str(lines)


def test_a_failure_in_silent_replay_stops(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the results of a record are written, it cannot be passed by any more: a message says what to do."""
    log = tmp_path / "log.db"
    work.live(log)  # without the defect, and without a checkpoint before the end
    with EmbeddedLog(log) as opened:
        opened.truncate(
            TopicPartition(f"{WORDS}.state", 0), opened.watermarks(TopicPartition(f"{WORDS}.state", 0)).high
        )
    plant(monkeypatch)
    with pytest.raises(
        LogError,
        match=r"expected to apply again the records from offset 0 up to \d+, whose results "
        r"are written, got KeyError at .*run the version that wrote them",
    ):
        work.live(log)


@pytest.mark.slow
def test_more_than_ten_an_hour_stop_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect that many records meet is no accident: the eleventh in an hour stops the worker."""
    settings, log, recording = tmp_path / "settings.yaml", tmp_path / "log.db", tmp_path / "in.db"
    settings.write_text(SETTINGS + "on_defect: quarantine\n")
    poison = msgpack.packb(QUIET)
    records = [OutRecord(WORDS, 0, b"key", poison, (), 1_000 + n) for n in range(2 * MOST_AN_HOUR + 1)]
    write(recording, iter(records), {WORDS: PARTITIONS, CLICKS: PARTITIONS})
    told, now = load(settings, {}), 1_000_000.0
    plant(monkeypatch)

    def letters() -> int:
        with EmbeddedLog(log, source=recording) as opened:
            return opened.watermarks(TopicPartition(f"{WORDS}.dead", 0)).high

    def run() -> None:
        with EmbeddedLog(log, source=recording) as opened:
            worker_on(opened, told, lambda: now).run(lambda: False, until_end=True)

    for _ in range(2):
        with pytest.raises(LogError, match="expected at most 10 records an hour to be passed by"):
            run()
        assert letters() == MOST_AN_HOUR
    now += 3_601
    with pytest.raises(LogError, match="expected at most 10 records an hour"):
        run()
    assert letters() == 2 * MOST_AN_HOUR
    now += 3_601
    run()
    assert letters() == 2 * MOST_AN_HOUR + 1


DYING = """
import os, signal, sys
from tests.worker.state.test_quarantine import meets
from worker.commands import main
from worker.models.split import SplitModel

apply = SplitModel.apply

def dying(model, records, events):
    if meets(records, events):
        os.kill(os.getpid(), signal.SIGKILL)
    return apply(model, records, events)

SplitModel.apply = dying
main(["run", sys.argv[1], "--until-end"])
"""


@pytest.mark.slow
def test_a_process_that_dies_of_a_record(tmp_path: Path) -> None:
    """Starts that find no progress die three times, then three times at the announced record, which goes then."""
    log, settings = tmp_path / "log.db", tmp_path / "settings.yaml"
    settings.write_text(
        f"log: {{embedded: {log}}}\nmetrics: null\non_defect: quarantine\ntransaction: {{records: 40}}\n"
        "models: {spam: {kind: split, input: words, classes: [ham, spam], features: names}}\n"
    )
    events = [{"x": [f"word{n % 5}"], "y": ("ham", "spam")[n % 3 == 0]} for n in range(120)]
    events[67] = {"x": [POISON.decode()], "y": "ham"}
    write(
        log,
        (OutRecord("words", 0, b"key", msgpack.packb(event), (), 1_000 + n) for n, event in enumerate(events)),
        {"words": 1},
    )
    state = TopicPartition("words.state", 0)
    said = []
    for start in range(1, 9):
        command = [sys.executable, "-c", DYING, str(settings)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ)
        assert done.returncode == (0 if start == 8 else -9), done.stderr
        with EmbeddedLog(log) as opened:
            said.append(marks_of(opened, state))
    assert [marks.attempt for marks in said[:7]] == [
        *(Attempt(0, None, 1), Attempt(40, None, 1), Attempt(40, None, 2), Attempt(40, None, 3)),
        *(Attempt(67, 67, 1), Attempt(67, 67, 2), Attempt(67, 67, 3)),
    ]
    with EmbeddedLog(log) as opened:
        (skip,) = said[-1].skips.values()
        assert (skip.offset, skip.error) == (67, DEATH)
        assert opened.watermarks(TopicPartition("words.dead", 0)).high == 1
        assert opened.committed(TopicPartition("words", 0)) == 120


def test_on_kafka(kafka: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Kafka the skip, its dead letter and the offset are one transaction; a recording and its replay agree."""
    place = Place(kafka, on_defect="quarantine")
    place.send(30)
    with place.log("publisher") as log:
        log.commit([place.event(30)._replace(value=msgpack.packb(QUIET))], {})
    place.sent += 1
    place.send(30)
    with monkeypatch.context() as patch, place.worker() as first:
        plant(patch)
        first.join()
        finish(first, 60)
    with place.worker() as second:  # a version without the defect
        second.run(lambda: False, until_end=True)
        assert second.partitions[place.source].pipeline.skips.keys() == {31}  # behind the end of a transaction
        state = marks_of(second._log, place.state)
        assert state.skips[31].error == "KeyError"
    settings = tmp_path / "settings.json"
    settings.write_text(place.settings.model_dump_json())
    recording, golden, results = (str(tmp_path / name) for name in ("recording.db", "golden.db", "results.db"))
    for command in (
        ["record", str(settings), recording],
        ["record", str(settings), golden, "--topic", f"{place.topic}.out", "--topic", f"{place.topic}.dead"],
        ["replay", str(settings), recording, results, "--expect", golden],
    ):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
    with EmbeddedLog(golden) as log:
        letters = log.read(TopicPartition(f"{place.topic}.dead", 0), 0, 10)
    letter = decode_output(letters.values[0] or b"", letters.headers[0])
    assert isinstance(letter, DeadLetter)
    assert (len(letters.values), letter.reason, letter.source.offset) == (1, "defect", 31)
