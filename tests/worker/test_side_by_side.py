"""Partitions that are processed side by side: same bytes and models with any number of threads, whatever fails."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from algorithms.core.crew import Crew
from tests.support.model_contents import model_contents
from tests.support.recordings import CLICKS, WORDS, mixed, some_kinds, waiting, with_labels, write
from tests.support.workers import outputs_of, worker_on
from worker.commands.common import in_transactions_of
from worker.log.embedded import EmbeddedLog
from worker.log.port import Metadata, OutRecord, OwnershipLost, Records, TopicPartition
from worker.loop import Worker
from worker.pipeline import Pipeline, Processed
from worker.settings import CheckpointSettings, load

PARTITIONS = 3  # of each of the two topics
OFTEN = CheckpointSettings(interval_ms=1, records=40)


class Together(EmbeddedLog):
    """A log that is read only once all partitions are, so that the first poll has records of each."""

    def __init__(self, path: Path, source: Path) -> None:
        super().__init__(path, source=source)
        self._begun: set[TopicPartition] = set()

    def start(self, source: TopicPartition, offset: int) -> None:
        """Read one more."""
        super().start(source, offset)
        self._begun.add(source)

    def poll(self, limit: int, timeout: float) -> list[Records]:
        """Return records, where it is time."""
        return super().poll(limit, timeout) if len(self._begun) == 2 * PARTITIONS else []


class Work(NamedTuple):
    """Something to do, and what an undisturbed worker with one thread makes of it."""

    settings: Path
    recording: Path
    outputs: dict[TopicPartition, list[Any]]
    contents: list[dict[bytes, Any]]

    def worker(self, log: EmbeddedLog, threads: int, records: int = 5_000, **changes: Any) -> Worker:
        """Return a worker with so many threads, and so many records in a transaction."""
        told = in_transactions_of(records, load(self.settings, {}))
        return worker_on(log, told.model_copy(update={"threads": threads, "checkpoint": OFTEN} | changes))

    def live(self, path: Path, threads: int, records: int = 5_000) -> None:
        """Run a worker to the end of the recording; what it leaves is what is expected."""
        with Together(path, self.recording) as log:
            worker = self.worker(log, threads, records)
            worker.run(lambda: False, until_end=True)
            assert contents_of(worker) == self.contents
        assert outputs_of(self.settings, path) == self.outputs


def contents_of(worker: Worker) -> list[dict[bytes, Any]]:
    """Return what the models of a worker hold, checked."""
    models = [model for _, each in sorted(worker.partitions.items()) for model in each.pipeline.models]
    for model in models:
        model.check()
    return [model_contents(model) for model in models]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Return a recording of everything that may come, good and bad, for six partitions."""
    folder = tmp_path_factory.mktemp("work")
    settings, recording, log = (folder / name for name in ("settings.yaml", "recording.db", "log.db"))
    settings.write_text(waiting(some_kinds()) + "on_defect: quarantine\n")
    records = with_labels(mixed(500, partitions=PARTITIONS), partitions=PARTITIONS)
    write(recording, records, {WORDS: PARTITIONS, CLICKS: PARTITIONS})
    with EmbeddedLog(log, source=recording) as opened:
        worker = Work(settings, recording, {}, []).worker(opened, 1)
        worker.run(lambda: False, until_end=True)
        contents = contents_of(worker)
    outputs = outputs_of(settings, log)
    assert min(len(outputs[TopicPartition(f"{WORDS}.out", number)]) for number in range(PARTITIONS)) > 50
    assert any(outputs[TopicPartition(f"{WORDS}.dead", number)] for number in range(PARTITIONS))
    return Work(settings, recording, outputs, contents)


def plant(
    patch: pytest.MonkeyPatch,
    before: Callable[[Pipeline], None],
    after: Callable[[Pipeline], None] = lambda _: None,
) -> None:
    """Have something done before and after each batch with records, in the thread that processes it."""
    process = Pipeline.process

    def planted(pipeline: Pipeline, records: Records) -> Processed:
        if not records.keys:  # it warms up
            return process(pipeline, records)
        before(pipeline)
        processed = process(pipeline, records)
        after(pipeline)
        return processed

    patch.setattr(Pipeline, "process", planted)


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "records"), [(2, 5_000), (3, 5_000), (3, 40), (8, 200)])
def test_threads_change_no_byte(work: Work, tmp_path: Path, threads: int, records: int) -> None:
    """Results, dead letters and models are those of one thread, with checkpoints on the way."""
    work.live(tmp_path / "log.db", threads, records)
    work.live(tmp_path / "log.db", threads)  # restored


def test_partitions_are_processed_at_once(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of six threads has one of six partitions: they meet in the middle, or the test ends."""
    meeting = threading.Barrier(2 * PARTITIONS)
    met: list[str] = []

    def meet(_: Pipeline) -> None:
        if len(met) < 2 * PARTITIONS:  # the first batch of each
            meeting.wait(30)
            met.append(threading.current_thread().name)

    plant(monkeypatch, meet)
    work.live(tmp_path / "log.db", 2 * PARTITIONS)
    assert len(set(met)) == 2 * PARTITIONS


def test_one_thread_is_one(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one thread all is processed in that of the loop."""
    names: set[str] = set()
    plant(monkeypatch, lambda _: names.add(threading.current_thread().name))
    work.live(tmp_path / "log.db", 1)
    assert names == {threading.current_thread().name}


class FailedError(Exception):
    """What a partition raises."""


@pytest.mark.parametrize("threads", [2, 3, 6])
def test_of_several_errors_the_first_of_the_poll_stops(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """Whichever comes first by the clock; nothing of that poll is committed, and a next start makes up for it."""
    path = tmp_path / "log.db"
    late, soon = TopicPartition(CLICKS, 1), TopicPartition(WORDS, 0)

    def fail(pipeline: Pipeline) -> None:
        if pipeline.source in (late, soon):
            time.sleep(0.05 * (pipeline.source == late))
            raise FailedError(pipeline.source)

    with monkeypatch.context() as patch, Together(path, work.recording) as log:
        plant(patch, lambda _: None, fail)
        worker = work.worker(log, threads, on_defect="stop")
        worker.join()
        polled: list[TopicPartition] = []
        poll = log.poll

        def polling(limit: int, timeout: float) -> Sequence[Records]:
            batches = poll(limit, timeout)
            polled.extend(records.source for records in batches)
            return batches

        patch.setattr(log, "poll", polling)
        with pytest.raises(FailedError) as raised:
            worker.run(lambda: False, until_end=True)
        first = min((late, soon), key=polled.index)
        assert raised.value.args == (first,)
    assert not any(outputs_of(work.settings, path).values())
    work.live(path, threads)


def test_a_failure_of_one_leaves_what_others_did(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a quarantine the partition that failed is restored, and goes on in steps; others go on as they were."""
    failing, batches = TopicPartition(WORDS, 1), Counter[TopicPartition]()

    def count(pipeline: Pipeline) -> None:
        batches[pipeline.source] += 1

    def fail_once(pipeline: Pipeline) -> None:
        if pipeline.source == failing and batches[failing] == 1:
            raise FailedError

    plant(monkeypatch, count, fail_once)
    work.live(tmp_path / "log.db", 3)
    assert batches.pop(failing) > 50, "one by one"
    assert list(batches.values()) == [1] * (2 * PARTITIONS - 1)


class Losing(EmbeddedLog):
    """A log that finds at some commits that what they are about was given to somebody else."""

    commits = 0

    def commit(
        self, outputs: Sequence[OutRecord], offsets: Mapping[TopicPartition, int], metadata: Metadata = ""
    ) -> None:
        """Commit, or not."""
        self.commits += 1
        if self.commits % 7 == 2:
            raise OwnershipLost("it was given to somebody else")
        super().commit(outputs, offsets, metadata)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_what_is_lost_on_the_way(work: Work, tmp_path: Path, threads: int) -> None:
    """Partitions that go while their records are announced, or with a transaction before, come back whole."""
    with Losing(tmp_path / "log.db", source=work.recording) as log:
        work.worker(log, threads, 50).run(lambda: False, until_end=True)
        assert log.commits > 20
    work.live(tmp_path / "log.db", threads)  # the last commit may have been lost, too


def test_threads_are_those_of_the_settings(work: Work, tmp_path: Path) -> None:
    """The crew of a worker has as many."""
    with EmbeddedLog(tmp_path / "log.db", source=work.recording) as log:
        crews = [vars(work.worker(log, threads))["_crew"] for threads in (1, 3)]
    assert [crew.threads for crew in crews if isinstance(crew, Crew)] == [1, 3]
