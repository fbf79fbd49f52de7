"""A log with a checkpoint in which examples wait, as an earlier version wrote it: it goes on to the same bytes.

`python -m tests.worker.late.test_late_golden` writes it anew, after a change of the formats that is meant.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
from pathlib import Path

from tests.support.places import GOLDEN
from tests.support.recordings import CLICKS, PARTITIONS, SETTINGS, WORDS, mixed, waiting, with_labels
from tests.support.workers import worker_on
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord, TopicPartition
from worker.recordings.compare import first_difference
from worker.settings import Settings, load

TOPICS = {WORDS: PARTITIONS, CLICKS: PARTITIONS}
RECORDS = list(with_labels(mixed(200, seed=11), seed=11))
HALF = len(RECORDS) // 2
STATE, WHOLE = "late.db", "late.out.db"


def _settings(folder: Path) -> Settings:
    path = folder / "settings.yaml"
    path.write_text(waiting(SETTINGS))
    return load(path, {})


def _run(log: Path, settings: Settings, records: list[OutRecord]) -> int:
    """Publish records and let a worker read them to the end; return how many examples wait."""
    with EmbeddedLog(log, group=settings.group) as opened:
        for topic, partitions in TOPICS.items():
            opened.create_topic(topic, partitions)
        opened.append(records)
        worker = worker_on(opened, settings)
        worker.run(lambda: False, until_end=True)
        for partition in worker.partitions.values():
            partition.pipeline.late.check()
        return sum(partition.pipeline.late.waiting or 0 for partition in worker.partitions.values())


def _unpacked(name: str, folder: Path) -> Path:
    path = folder / name
    with gzip.open(GOLDEN / f"{name}.gz") as packed, path.open("wb") as out:
        shutil.copyfileobj(packed, out)
    return path


def _is_as_kept(log: Path, settings: Settings, folder: Path) -> str | None:
    topics = [topic for route in settings.routes.values() for topic in route.results]
    with EmbeddedLog(_unpacked(WHOLE, folder), create=False) as wanted, EmbeddedLog(log) as found:
        return first_difference(wanted, found, topics)


def test_what_waits_is_restored_and_goes_on(tmp_path: Path) -> None:
    """What waits comes from the checkpoint alone: the records before it are gone."""
    settings, log = _settings(tmp_path), _unpacked(STATE, tmp_path)
    with EmbeddedLog(log, group=settings.group) as opened:
        for topic, partitions in TOPICS.items():
            for number in range(partitions):
                source = TopicPartition(topic, number)
                committed = opened.committed(source)
                assert committed
                opened.truncate(source, committed)
    _run(log, settings, RECORDS[HALF:])
    assert _is_as_kept(log, settings, tmp_path) is None


def test_the_results_are_made_again(tmp_path: Path) -> None:
    """From the first record on, the golden bytes come out."""
    settings = _settings(tmp_path)
    assert _run(tmp_path / "log.db", settings, RECORDS) > 20
    assert _is_as_kept(tmp_path / "log.db", settings, tmp_path) is None


def _write() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings, log, whole = _settings(folder), folder / "log.db", folder / "whole.db"
        _run(log, settings, RECORDS[:HALF])
        shutil.copyfile(log, whole)
        _run(whole, settings, RECORDS[HALF:])
        with EmbeddedLog(whole) as opened, EmbeddedLog(folder / "results.db") as results:
            for topic in (topic for route in settings.routes.values() for topic in route.results):
                results.create_topic(topic, PARTITIONS)
                for number in range(PARTITIONS):
                    results.record(opened.read(TopicPartition(topic, number), 0, 1_000_000))
        for made, kept in ((log, STATE), (folder / "results.db", WHOLE)):
            with made.open("rb") as raw, gzip.GzipFile(GOLDEN / f"{kept}.gz", "wb", mtime=0) as packed:
                shutil.copyfileobj(raw, packed)


if __name__ == "__main__":
    _write()
