"""A worker that dies at any step and is started again leaves the bytes that an undisturbed one leaves."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count as counter
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml

import worker.checkpoint.writer
import worker.pipeline
from algorithms.dynamic.aside import IDLE, SCANNING, WIPING
from tests.support.model_contents import Forgetting, model_contents
from tests.support.places import ROOT
from tests.support.recordings import (
    CLICKS,
    PARTITIONS,
    WORDS,
    every_kind,
    half,
    mixed,
    waiting,
    with_labels,
    write,
)
from tests.support.workers import outputs_of, worker_on
from worker import demo
from worker.checkpoint import Checkpointer
from worker.codec import decode_output
from worker.codec.event import encode_event
from worker.commands.common import in_transactions_of
from worker.log.embedded import EmbeddedLog
from worker.log.embedded_reader import EmbeddedReader
from worker.log.port import LogError, Metadata, OutRecord, Records, TopicPartition
from worker.log.storage import LogFile
from worker.loop import Worker
from worker.models import KINDS
from worker.models.split import SplitModel
from worker.pipeline import Pipeline
from worker.settings import CheckpointSettings, KafkaSettings, LogSettings, Settings, load
from worker.settings.by_kind import kind_of
from worker.topics import create_topics

SMS_SETTINGS = """
log: {embedded: sms.db}
models:
  spam:
    kind: split
    input: sms
    classes: [ham, spam]
    features: names
    on_duplicate: replace
    emit: {splits: change, snapshots: {every: 50}}
"""


class Died(BaseException):
    """The end of a worker's life. No handler of errors may keep it alive."""


class Work(NamedTuple):
    """Something to do: settings, input, and what an undisturbed worker makes of it."""

    settings: Path
    recording: Path
    outputs: dict[TopicPartition, list[Any]]
    contents: list[dict[bytes, Any]]


def _worker(
    log: EmbeddedLog,
    settings: Settings,
    records: int,
    checkpoint: CheckpointSettings | None = None,
    threads: int = 1,
) -> Worker:
    """Return a worker with so many records in a transaction."""
    settings = in_transactions_of(records, settings)
    return worker_on(log, settings.model_copy(update={"checkpoint": checkpoint, "threads": threads}))


def _make_ready(worker: Worker) -> None:
    worker.join()
    while not worker.is_ready:
        worker.run_once()


@pytest.fixture(autouse=True)
def _unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commits not wait for the disk: what dies here is a process, which no disk forgets a write of."""
    made = LogFile.__init__

    def unsynced(self: LogFile, *arguments: Any) -> None:
        made(self, *arguments)
        self.query("PRAGMA synchronous = OFF")

    monkeypatch.setattr(LogFile, "__init__", unsynced)


def _live(
    settings: Path,
    recording: Path,
    log: Path,
    records: int,
    checkpoint: CheckpointSettings | None = None,
    kind: type[EmbeddedLog] = EmbeddedLog,
    threads: int = 1,
) -> list[dict[bytes, Any]]:
    """Run a worker to the end of the recording and return what its models hold then."""
    told = load(settings, {})
    with kind(log, group=told.group, source=recording) as opened:
        if kind is not EmbeddedLog:
            create_topics(opened, told)
            told = told.model_copy(update={"log": AT_LEAST_ONCE})
        running = _worker(opened, told, records, checkpoint, threads)
        running.run(lambda: False, until_end=True)
        partitions = sorted(running.partitions.items())
        models = [model for _, partition in partitions for model in partition.pipeline.models]
        for model in models:
            model.check()
        return [model_contents(model) for model in models]


def _work(folder: Path, text: str, records: Iterator[OutRecord], topics: dict[str, int]) -> Work:
    settings, recording = folder / "settings.yaml", folder / "recording.db"
    settings.write_text(text)
    write(recording, records, topics)
    contents = _live(settings, recording, folder / "undisturbed.db", 5_000)
    return Work(settings, recording, outputs_of(settings, folder / "undisturbed.db"), contents)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Return work on two topics of two partitions, with models of every kind and events of all kinds."""
    topics = {WORDS: PARTITIONS, CLICKS: PARTITIONS}
    return _work(tmp_path_factory.mktemp("mixed"), every_kind(), mixed(250), topics)


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Return the same work with labels that come later, of which some come too late."""
    topics = {WORDS: PARTITIONS, CLICKS: PARTITIONS}
    return _work(tmp_path_factory.mktemp("labels"), waiting(every_kind()), with_labels(mixed(250)), topics)


def _halves(
    factory: pytest.TempPathFactory, settings: str, records: Callable[[], Iterator[OutRecord]]
) -> list[Work]:
    """Return work in two parts: every second model, and the others."""
    topics = {WORDS: PARTITIONS, CLICKS: PARTITIONS}
    return [_work(factory.mktemp("half"), half(settings, number), records(), topics) for number in (0, 1)]


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> list[Work]:
    """Return the work of `everything` in two parts."""
    return _halves(tmp_path_factory, every_kind(), lambda: mixed(250))


@pytest.fixture(scope="module")
def halves_with_labels(tmp_path_factory: pytest.TempPathFactory) -> list[Work]:
    """Return the work of `labels` in two parts."""
    return _halves(tmp_path_factory, waiting(every_kind()), lambda: with_labels(mixed(250)))


@pytest.fixture(scope="module")
def sms(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Return work on the demo's first messages and on its end: deletes, corrections, mistakes, questions."""
    records = list(demo.records())
    some = iter([*records[:500], *records[-520:]])
    return _work(tmp_path_factory.mktemp("sms"), SMS_SETTINGS, some, {demo.TOPIC: 1})


def test_undisturbed_work_is_worth_comparing(everything: Work, sms: Work) -> None:
    """The work that is disturbed below has results, dead letters and models in every partition."""
    for work in (everything, sms):
        assert all(len(records) > 5 for records in work.outputs.values() if records)
        assert sum(map(len, work.outputs.values())) > 100
        assert all(work.contents)
    held = [told for contents in everything.contents for told in contents.values()]
    stages = {told.stage for told in held if isinstance(told, Forgetting)}
    assert stages >= {IDLE, SCANNING, WIPING}, "subtrees are being built aside at the end, and all the time"
    models = load(everything.settings, {}).models.values()
    assert {kind_of(type(model)) for model in models} == set(KINDS)


STEPS: dict[str, tuple[Any, str, bool]] = {  # where, what, whether it is done before the worker dies
    "before polling": (EmbeddedLog, "poll", False),
    "after polling": (EmbeddedLog, "poll", True),
    "after decoding": (worker.pipeline, "decode_batch", True),
    "after one model has applied": (SplitModel, "apply", True),
    "after processing": (Pipeline, "process", True),
    "before the commit": (EmbeddedLog, "commit", False),
    "inside the commit": (LogFile, "append", True),
    "after the commit": (EmbeddedLog, "commit", True),
}
CHECKPOINT_STEPS: dict[str, tuple[Any, str, bool]] = {
    **STEPS,
    "before the models are copied": (Checkpointer, "take", False),
    "after the models were copied": (Checkpointer, "take", True),
    "after reading a part of a checkpoint": (EmbeddedReader, "poll", True),
    "before the models are put in place": (Pipeline, "restore", False),
    "after the models were put in place": (Pipeline, "restore", True),
}
DEATHS = ((1, 10), (2, 7), (3, 40), (9, 1), (17, 13), (40, 25))  # at which call, records in a transaction
EARLY_DEATHS = ((1, 4), (1, 3), (2, 4), (1, 1), (3, 3), (4, 2))  # for what happens seldom
LATE_DEATHS = ((2, 20), (9, 4), (28, 2), (55, 1), (90, 1))
OFTEN = CheckpointSettings(records=12, bytes_per_second=1 << 40)
AT_LEAST_ONCE = LogSettings(kafka=KafkaSettings(bootstrap="nowhere:9092", guarantee="at_least_once"))


class Plain(EmbeddedLog):
    """A log that writes without transactions: first the outputs, in order, then the offsets."""

    def commit(
        self, outputs: Sequence[OutRecord], offsets: Mapping[TopicPartition, int], metadata: Metadata = ""
    ) -> None:
        """Write the outputs one after the other, then the offsets."""
        for output in outputs:
            self.append([output])
        super().commit([], offsets, metadata)


def test_work_with_labels_is_worth_comparing(labels: Work) -> None:
    """Labels come in time and too late, and answers are judged by them."""
    with EmbeddedLog(labels.recording.with_name("undisturbed.db")) as log:
        letters = [log.read(TopicPartition(f"{WORDS}.dead", number), 0, 10_000) for number in range(PARTITIONS)]
        results = [log.read(TopicPartition(f"{WORDS}.out", number), 0, 10_000) for number in range(PARTITIONS)]
    reasons = [
        decode_output(value or b"", headers)
        for each in letters
        for value, headers in zip(each.values, each.headers, strict=True)
    ]
    assert sum(getattr(letter, "reason", "") == "not-pending" for letter in reasons) > 10
    types = [dict(headers)["type"] for each in results for headers in each.headers]
    assert types.count(b"delayed-evaluation") >= 2


def deadly(step: Callable[..., Any], count: int, done: bool) -> Callable[..., Any]:
    """Return the step such that its `count`-th call ends the worker."""
    calls = counter(1)  # several threads may call

    def dying(*arguments: Any, **named: Any) -> Any:
        is_last = next(calls) == count
        if is_last and not done:
            raise Died
        result = step(*arguments, **named)
        if is_last:
            raise Died
        return result

    return dying


def _die_often(
    work: Work,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: tuple[Any, str, bool],
    checkpoint: CheckpointSettings | None = None,
    kind: type[EmbeddedLog] = EmbeddedLog,
    deaths_at: Sequence[tuple[int, int]] = DEATHS,
) -> int:
    """Let workers die at a step, one after the other, each in other batches and threads; return how many did."""
    where, what, done = step
    deaths = 0
    for turn, (count, records) in enumerate(deaths_at):
        with monkeypatch.context() as patch, suppress(Died):
            patch.setattr(where, what, deadly(getattr(where, what), count, done))
            deaths += 1
            _live(work.settings, work.recording, log, records, checkpoint, kind, threads=1 + turn % 3)
            deaths -= 1
    return deaths


@pytest.mark.wide(14)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["everything", "labels", "sms"])
@pytest.mark.parametrize("step", STEPS)
def test_death_at_a_step(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, name: str
) -> None:
    """Workers that die one after the other, each in other batches, leave the bytes of one that lives."""
    work: Work = request.getfixturevalue(name)
    log = tmp_path / "log.db"
    assert _die_often(work, log, monkeypatch, STEPS[step]) >= 4
    assert _live(work.settings, work.recording, log, 100) == work.contents
    assert outputs_of(work.settings, log) == work.outputs


# Each model meets each step with its checkpoint in one transaction, or over many; half of them at a time.
_WAYS = [
    pytest.param(step, name, (number + turn) % 2, share, id=f"{step} - {what}")
    for number, step in enumerate(CHECKPOINT_STEPS)
    for turn, (what, name, share, steps) in enumerate(
        (
            ("record by record", "halves", 1, CHECKPOINT_STEPS),
            ("at once", "halves", 8_000_000, CHECKPOINT_STEPS),
            ("labels", "halves_with_labels", 8_000_000, CHECKPOINT_STEPS.keys() - STEPS.keys()),
        )
    )
    if step in steps
]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "name", "part", "share"), _WAYS)
def test_death_around_checkpoints(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    name: str,
    part: int,
    share: int,
) -> None:
    """The same with checkpoints, written over many transactions or in one: any part of one may be missing.

    Record by record, workers die with some pages sent, with manifests but no record, with the record but not
    all tombstones.
    """
    work: Work = request.getfixturevalue(name)[part]
    monkeypatch.setattr(worker.checkpoint.writer, "SHARE_BYTES", share)
    log = tmp_path / "log.db"
    deaths_at = LATE_DEATHS if step in STEPS else EARLY_DEATHS
    assert _die_often(work, log, monkeypatch, CHECKPOINT_STEPS[step], OFTEN, deaths_at=deaths_at) >= 3
    assert _live(work.settings, work.recording, log, 100, OFTEN) == work.contents
    restored: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(Pipeline, "restore", _counted(Pipeline.restore, restored))
        assert _live(work.settings, work.recording, log, 100, OFTEN) == work.contents
    assert len(restored) == 4, "each partition began with the checkpoint that the one before left at its end"
    assert outputs_of(work.settings, log) == work.outputs


def _counted(step: Callable[..., Any], calls: list[int]) -> Callable[..., Any]:
    def counting(*arguments: Any) -> Any:
        calls.append(1)
        return step(*arguments)

    return counting


@pytest.mark.slow
@pytest.mark.parametrize(("part", "step"), [(number % 2, step) for number, step in enumerate(CHECKPOINT_STEPS)])
def test_death_at_least_once(
    halves: list[Work], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int, step: str
) -> None:
    """Without transactions results may come again; none is missing, none differs, and the models are right."""
    work = halves[part]
    monkeypatch.setattr(worker.checkpoint.writer, "SHARE_BYTES", 200_000)
    log = tmp_path / "log.db"
    deaths_at = LATE_DEATHS if step in STEPS else EARLY_DEATHS
    assert _die_often(work, log, monkeypatch, CHECKPOINT_STEPS[step], OFTEN, Plain, deaths_at) >= 3
    assert _live(work.settings, work.recording, log, 100, OFTEN, Plain) == work.contents
    repeated = 0
    for source, records in outputs_of(work.settings, log).items():
        once = list(dict.fromkeys(records))
        assert once == work.outputs[source]
        repeated += len(records) - len(once)
    if step == "inside the commit":
        assert repeated


def die_inside_the_commit(settings: str, recording: str, log: str) -> None:
    """Run in a process of its own, which ends before the third transaction does; nothing is closed."""
    count = 0
    append = LogFile.append

    def dying(self: LogFile, records: Any) -> int:
        nonlocal count
        count += 1
        written = append(self, records)
        if count == 3:
            os._exit(9)
        return written

    LogFile.append = dying  # type: ignore[method-assign]
    _live(Path(settings), Path(recording), Path(log), 30)


@pytest.mark.slow
def test_a_process_that_ends_inside_a_commit(everything: Work, tmp_path: Path) -> None:
    """What a dead process had written of a transaction is not seen, and the next worker writes it."""
    log = tmp_path / "log.db"
    call = f"die_inside_the_commit({str(everything.settings)!r}, {str(everything.recording)!r}, {str(log)!r})"
    died = subprocess.run(
        [sys.executable, "-c", f"from tests.worker.state.test_crash import die_inside_the_commit; {call}"],
        cwd=ROOT,
        check=False,
    )
    assert died.returncode == 9
    with EmbeddedLog(log, source=everything.recording) as opened:
        committed = [
            opened.committed(TopicPartition(topic, number)) or 0
            for topic in (WORDS, CLICKS)
            for number in range(PARTITIONS)
        ]
        assert sum(committed) == 60
    assert _live(everything.settings, everything.recording, log, 50) == everything.contents
    assert outputs_of(everything.settings, log) == everything.outputs


@pytest.mark.slow
def test_kill_9(tmp_path: Path) -> None:
    """A worker process killed at any moment, and again, leaves the bytes of an undisturbed one."""
    draw = random.Random(5)
    topics = {WORDS: PARTITIONS, CLICKS: PARTITIONS}
    work = _work(tmp_path, every_kind().replace("mixed.db", "killed.db"), mixed(300), topics)
    log = tmp_path / "killed.db"
    write(log, mixed(300), topics)
    for _ in range(4):
        options = yaml.safe_load(work.settings.read_text())
        options |= {"metrics": None, "transaction": {"records": draw.randrange(1, 4)}}
        told = tmp_path / "now.yaml"
        told.write_text(yaml.safe_dump(options))
        with (
            EmbeddedLog(log, create=False) as opened,
            subprocess.Popen(
                [sys.executable, "-m", "tests.support.anabranch", "run", str(told)],
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
            ) as running,
        ):
            target = _committed(opened) + draw.randrange(30, 70)
            deadline = time.monotonic() + 120
            while _committed(opened) < target:
                assert running.poll() is None, f"it ended by itself with {running.returncode}"
                assert time.monotonic() < deadline, f"it has committed {_committed(opened)} of {target}"
                time.sleep(0.002)
            time.sleep(draw.random() * 0.005)
            running.send_signal(signal.SIGKILL)
        assert running.returncode == -signal.SIGKILL
    assert _live(work.settings, log, tmp_path / "unused.db", 5_000) == work.contents
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.anabranch", "run", str(told), "--until-end"],
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    assert b"stopped" in ended.stderr
    assert outputs_of(work.settings, log) == work.outputs


def _committed(log: EmbeddedLog) -> int:
    """Return how many records of the mixed recording are committed."""
    sources = [TopicPartition(topic, number) for topic in (WORDS, CLICKS) for number in range(PARTITIONS)]
    return sum(log.committed(source) or 0 for source in sources)


# --- what a worker refuses to restore


def _small(tmp_path: Path, events: int = 5) -> tuple[EmbeddedLog, Worker]:
    """Return a log with some events and a worker of it that has committed them all."""
    log = EmbeddedLog(tmp_path / "small.db")
    log.create_topic(demo.TOPIC, 1)
    log.append(islice(demo.records(), events))
    settings = demo.settings(tmp_path / "small.db", None)
    _worker(log, settings, 5_000).run(lambda: False, until_end=True)
    return log, _worker(log, settings, 5_000)


SOURCE = TopicPartition(demo.TOPIC, 0)


def test_records_that_are_gone_are_missed(tmp_path: Path) -> None:
    """A committed offset whose records are partly gone ends the start: the models could not be rebuilt."""
    log, again = _small(tmp_path)
    with log:
        log.truncate(SOURCE, 1)
        with pytest.raises(
            LogError, match=r"sms/0: expected the records from offset 0 on.*those below 1 are gone"
        ):
            again.run(lambda: False, until_end=True)
        assert log.committed(SOURCE) == 5


def test_a_checkpoint_of_other_arrays_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that another version's arrays hold is not put into this one's."""
    log, _ = _small(tmp_path)
    settings = demo.settings(tmp_path / "small.db", None)
    with log:
        _worker(log, settings, 5_000, OFTEN).run(lambda: False, until_end=True)
        arrays = SplitModel.arrays
        monkeypatch.setattr(SplitModel, "arrays", lambda model: arrays(model) | {"new": np.zeros(3)})
        with pytest.raises(LogError, match=r"sms/0: expected a checkpoint with the arrays of this version"):
            _worker(log, settings, 5_000, OFTEN).run(lambda: False, until_end=True)


def test_an_uncommitted_topic_starts_at_what_is_left(tmp_path: Path) -> None:
    """Without a committed offset the first record kept is the first one processed."""
    with EmbeddedLog(tmp_path / "log.db") as log:
        log.create_topic(demo.TOPIC, 1)
        log.append(islice(demo.records(), 5))
        log.truncate(SOURCE, 2)
        fresh = _worker(log, demo.settings(tmp_path / "log.db", None), 2)
        fresh.run(lambda: False, until_end=True)
        assert log.committed(SOURCE) == 5
        examples = {model.name: model.status().examples for model in fresh.partitions[SOURCE].pipeline.models}
        assert examples["word"] == 3


def test_an_offset_beyond_the_end_is_refused(tmp_path: Path) -> None:
    """A committed offset that the topic never reached means another topic of the same name."""
    log, again = _small(tmp_path)
    with log:
        log.commit([], {SOURCE: 6})
        with pytest.raises(LogError, match=r"expected the committed offset to be at most 5.*got 6"):
            again.run(lambda: False, until_end=True)


@pytest.mark.parametrize("checkpoints", [True, False])
def test_an_offset_that_a_person_sets(tmp_path: Path, checkpoints: bool) -> None:
    """The models hold what is left below it, from the last checkpoint on; going back behind that is refused."""
    log, _ = _small(tmp_path)
    settings = demo.settings(tmp_path / "small.db", None)
    often = OFTEN if checkpoints else None
    with log:
        if checkpoints:
            _worker(log, settings, 5_000, often).run(lambda: False, until_end=True)
        log.append(islice(demo.records(), 5, 12))
        log.truncate(SOURCE, 8)
        log.commit([], {SOURCE: 10})
    with EmbeddedLog(tmp_path / "small.db") as log:
        again = _worker(log, settings, 5_000, often)
        _make_ready(again)
        assert again.partitions[SOURCE].position == 10
        examples = {model.name: model.status().examples for model in again.partitions[SOURCE].pipeline.models}
        assert examples["word"] == (7 if checkpoints else 2)  # those at offsets 8 and 9, and five before
        if checkpoints:
            log.commit([], {SOURCE: 3})
    if checkpoints:
        with (
            EmbeddedLog(tmp_path / "small.db") as log,
            pytest.raises(LogError, match=r"from 10 on, where the last checkpoint is, got 3.*--to-offset 10"),
        ):
            _make_ready(_worker(log, settings, 5_000, often))


def test_other_settings_are_refused(tmp_path: Path) -> None:
    """Results up to the committed offset came from other settings; the message names topics for new ones."""
    log, again = _small(tmp_path)
    settings = demo.settings(tmp_path / "small.db", None)
    spam = settings.models["word"].model_copy(update={"criterion": "gini"})
    changed = settings.model_copy(update={"models": {"spam": spam}})
    with log:
        with pytest.raises(LogError, match=r"expected the settings that the results up to offset 5") as raised:
            _worker(log, changed, 5_000).run(lambda: False, until_end=True)
        again.run(lambda: False, until_end=True)
        done = log.watermarks(SOURCE).high
    advised = re.search(r"topics: (\{.*\})\)", str(raised.value))
    assert advised is not None
    said = changed.model_dump(exclude_unset=True) | {"group": "second", "topics": yaml.safe_load(advised[1])}
    anew = Settings.model_validate(said)
    with EmbeddedLog(tmp_path / "small.db", group="second") as log:
        _worker(log, anew, 5_000).run(lambda: False, until_end=True)
        assert log.committed(SOURCE) == done


def test_a_second_worker_of_the_group_is_stopped(tmp_path: Path) -> None:
    """Of two workers on one log the one that commits too late ends, and no result is written twice."""
    log, first = _small(tmp_path, events=10)
    with log, EmbeddedLog(tmp_path / "small.db") as same:
        second = _worker(same, demo.settings(tmp_path / "small.db", None), 5_000)
        _make_ready(first)
        _make_ready(second)
        log.append(islice(demo.records(), 10, 20))
        first.run_once()
        first.commit()
        written = log.watermarks(TopicPartition("sms.out", 0)).high
        second.run_once()
        second.commit()
        with pytest.raises(LogError, match="another worker of the group"):
            second.run_once()
        assert log.watermarks(TopicPartition("sms.out", 0)).high == written


def test_a_missing_input_is_named(tmp_path: Path) -> None:
    """A worker whose input topic is not there says so, with the model that wants it."""
    with EmbeddedLog(tmp_path / "log.db") as log:
        fresh = _worker(log, demo.settings(tmp_path / "log.db", None), 2)
        with pytest.raises(LogError, match="the topic 'sms', the input of model word, tree; there is none"):
            fresh.run(lambda: False, until_end=True)


@pytest.mark.parametrize("topic", ["sms.out", "sms.dead"])
def test_an_output_topic_with_other_partitions_is_refused(tmp_path: Path, topic: str) -> None:
    """Results of input partition n go to output partition n, so there must be as many."""
    with EmbeddedLog(tmp_path / "log.db") as log:
        log.create_topic(demo.TOPIC, 2)
        log.create_topic(topic, 3)
        fresh = _worker(log, demo.settings(tmp_path / "log.db", None), 2)
        with pytest.raises(LogError, match=f"expected the topic '{topic}'.*to have 2 partitions.*it has 3"):
            fresh.run(lambda: False, until_end=True)


def test_a_stop_ends_a_long_restore(tmp_path: Path) -> None:
    """A worker that is told to stop while it rebuilds its models does so, and commits nothing."""
    log, again = _small(tmp_path)
    with log:
        log.append(islice(demo.records(), 3))
        again.run(lambda: True)
        assert log.committed(SOURCE) == 5
        assert not again.is_ready


@pytest.mark.parametrize("records", [1, 2, 3, 100])
def test_a_gap_at_the_end_of_a_recording_is_its_end(tmp_path: Path, records: int) -> None:
    """Offsets without records, such as those of control records, are passed over, also in a restore."""
    offsets = np.array([0, 1, 6])
    values = [encode_event(["a"], "spam")] * 3
    with EmbeddedLog(tmp_path / "recording.db") as recording:
        recording.create_topic(demo.TOPIC, 1)
        recording.record(Records(SOURCE, offsets, offsets + 1, [b"k"] * 3, values, [()] * 3, 20))
    settings = demo.settings(tmp_path / "log.db", None)
    with EmbeddedLog(tmp_path / "log.db", source=tmp_path / "recording.db") as log:
        for _ in range(2):
            running = _worker(log, settings, records)
            running.run(lambda: False, until_end=True)
            assert running.partitions[SOURCE].position == 20
            assert running.partitions[SOURCE].pipeline.models[0].status().keys == 1
