"""An upgrade while events come: two versions of the code in one group, restarted one after the other, and back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from algorithms.core import cache, jit
from tests.support.places import ROOT
from tests.worker.commands.test_run_command import TIME_LIMIT, Running
from tests.worker.kafka.test_kafka_commands import Bench, _contents, _kafka_contents
from worker.broker import Cluster
from worker.codec.event import encode_event
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord, TopicPartition

NEWER = "9.9.9"
PARTITIONS = 4
PIECE = 240  # events, of three keys in each partition
QUICK = {"session.timeout.ms": 30_000, "heartbeat.interval.ms": 300}


class Version:
    """A folder with the sources of a version, and a folder with its kernels where these are not the checkout's."""

    def __init__(self, folder: Path, kernels: Path | None = None) -> None:
        self.folder = folder
        self.variables = {"PYTHONPATH": str(folder)}
        if kernels is not None:
            self.variables[cache.VARIABLE] = str(kernels)

    def start(self, settings: Path, instance: str) -> Running:
        """Start a worker, a member of the group under a name that it keeps."""
        named = {"ANABRANCH_LOG__KAFKA__INSTANCE": instance}
        return Running(settings, self.folder, **self.variables, **named).__enter__()


@pytest.fixture
def newer(tmp_path: Path) -> Version:
    """Return another version: its number differs, and the digest of its kernels, which are compiled."""
    folder, kernels = tmp_path / "newer", tmp_path / "kernels"
    for name in ("algorithms", "worker"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "kernels"))
    source = folder / "algorithms" / "splits" / "scan.py"
    source.write_text(source.read_text("utf-8") + "# A newer version.\n", "utf-8")
    metadata = folder / f"anabranch-{NEWER}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: anabranch\nVersion: {NEWER}\n")
    made = Version(folder, kernels)
    command = [sys.executable, "-m", "worker", "compile", "baseent"]  # the cheapest
    subprocess.run(command, cwd=folder, env=os.environ | made.variables, check=True, capture_output=True)
    assert jit.IS_OFF or list(kernels.rglob("*.nbc")), "the digest is another one, so they were compiled"
    return made


class Group:
    """Two workers on a topic, either of which may be of another version than before."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.sent = 0
        self.workers: dict[str, Running] = {}

    def start(self, instance: str, code: Version) -> None:
        """Start a worker and wait until it has its partitions."""
        self.workers[instance] = code.start(self.bench.settings, instance)

    def stop(self, instance: str) -> None:
        """End a worker as Kubernetes does."""
        worker = self.workers.pop(instance)
        worker.process.terminate()
        assert worker.process.wait(TIME_LIMIT) == 0
        worker.__exit__()

    def publish(self) -> None:
        """Publish a piece of the events."""
        with self.bench.log("publisher") as log:
            log.commit([self._event(number) for number in range(self.sent, self.sent + PIECE)], {})
        self.sent += PIECE

    def _event(self, number: int) -> OutRecord:
        label = "spam" if number % 5 < 2 or number % 11 == 0 else "ham"
        words = [f"word{number % 5}", f"word{number * 7 % 13}x"]
        key = f"key{number % (3 * PARTITIONS)}".encode()
        return OutRecord(
            self.bench.input, number % PARTITIONS, key, encode_event(words, label), (), 1_000 + number
        )

    def read(self) -> None:
        """Wait until all that was published is committed."""
        sources = [TopicPartition(self.bench.input, number) for number in range(PARTITIONS)]
        deadline = time.monotonic() + TIME_LIMIT
        with self.bench.log("judge") as log:
            ends = {source: log.watermarks(source).high for source in sources}
            while any((log.committed(source) or 0) < ends[source] - 1 for source in sources):  # -1: a marker
                assert all(worker.process.poll() is None for worker in self.workers.values())
                assert time.monotonic() < deadline
                time.sleep(0.2)

    def versions(self) -> dict[str, str]:
        """Return the version of each worker, all of which read some of what was published last."""
        found = {}
        for instance, worker in self.workers.items():
            samples = worker.metrics()
            assert sum(value for name, value in samples.items() if name[0] == "records_consumed_total") > 0
            (info,) = (name for name in samples if name[0] == "build_info")
            found[instance] = info[-1]
        return found


@pytest.fixture
def group(kafka: Cluster, tmp_path: Path) -> Iterator[Group]:
    """Yield a group whose topics are there; its workers end with the test."""
    bench = Bench(kafka, tmp_path)
    bench.write(
        {
            "spam": bench.model
            | {"finder": "baseent", "emit": {"splits": "change", "snapshots": {"every": 20}}, "window": 100}
        },
        log={"kafka": {"bootstrap": kafka.bootstrap, "properties": QUICK}},
        checkpoint={"records": 30},
        metrics={"port": 0},
        logging={"format": "json"},
    )
    bench.create(PARTITIONS)
    made = Group(bench)
    yield made
    for worker in made.workers.values():
        worker.__exit__()


def test_a_rolling_restart_with_a_newer_version(group: Group, newer: Version) -> None:
    """Events that come meanwhile are missed by nobody, and the results are those of one version, to the byte.

    A worker of the older version may take the place of one of the newer again: checkpoints have one format.
    """
    older = Version(ROOT)
    ours = version("anabranch")
    for instance in ("one", "two"):
        group.start(instance, older)
    group.publish()
    group.read()
    seen = [group.versions()]
    for instance, code in (("two", newer), ("one", newer), ("two", older)):
        group.stop(instance)
        group.publish()
        group.start(instance, code)
        group.publish()
        group.read()
        seen.append(group.versions())
    assert seen == [
        {"one": ours, "two": ours},
        {"one": ours, "two": NEWER},
        {"one": NEWER, "two": NEWER},
        {"one": NEWER, "two": ours},
    ]
    _check_results(group)


def test_a_rolling_restart_of_three_workers_from_an_older_version(group: Group) -> None:
    """From the sources of an earlier commit, in the folder OLDER_VERSION: nothing is lost, and nothing repeated.

    ::

        git archive COMMIT algorithms worker | tar x -C OLDER
        OLDER_VERSION=OLDER pytest tests/worker/kafka/test_upgrade.py -k older
    """
    folder = os.environ.get("OLDER_VERSION")
    if not folder:
        pytest.skip("there is no older version: OLDER_VERSION names none")
    older, newer = Version(Path(folder)), Version(ROOT)
    older.variables["NUMBA_DISABLE_JIT"] = "1"
    for instance in ("one", "two", "three"):
        group.start(instance, older)
    group.publish()
    group.read()
    for instance in ("two", "one", "three"):
        group.stop(instance)
        group.publish()
        group.start(instance, newer)
        group.publish()
        group.read()
        assert len(group.versions()) == 3
    _check_results(group)


def _check_results(group: Group) -> None:
    """End all workers; their results must be those of a replay of all that came."""
    for instance in list(group.workers):
        group.stop(instance)
    bench = group.bench
    bench.record()
    bench.done("replay", bench.settings, bench.folder / "rec.db", bench.folder / "out.db")
    with bench.log() as log, EmbeddedLog(bench.folder / "out.db") as replayed:
        results = _kafka_contents(log, f"{bench.input}.out")
        assert results == _contents(replayed, f"{bench.input}.out")
    assert len(results) == PARTITIONS
    assert min(map(len, results)) > group.sent / PARTITIONS / 20
