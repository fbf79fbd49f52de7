"""Workers on real Apache Kafka, and faults: what comes out must be what an undisturbed worker makes.

::

    python -m tests.faults --faults 100 --seed 1

Input is published all the while. Faults are drawn from a seed: workers are killed, ended, added, removed and
frozen beyond their session; brokers are restarted, those that coordinate the workers' transactions too; settings
change, and workers are restarted with them one after the other, some of them killed. After each fault the run
waits until everything published before is committed, and prints how long that took. In the end the results, the
dead letters and the models of every partition are compared with those of one worker on the embedded log, byte for
byte; and, with those of the model that changes, with a replay of a recording.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.support.model_contents import model_contents
from tests.support.places import ROOT
from tests.support.recordings import CLICKS, WORDS, every_kind, mixed, waiting, with_labels
from tests.support.workers import worker_on
from worker.broker import Cluster, install
from worker.codec import decode_output
from worker.log.embedded import EmbeddedLog
from worker.log.kafka import KafkaLog
from worker.log.port import Log, OutRecord, TopicPartition
from worker.settings import Settings, load
from worker.topics import create_topics

PARTITIONS = 4
KEYS = 40
TOPICS = (WORDS, CLICKS)
GROUP = "faults"
MOST_WORKERS = 3
SESSION_SECONDS = 3.0
SHARE_SECONDS = 5.0  # in which the share of one fault is published
LARGEST_BYTES = 900_000  # of a value; brokers take no larger ones unless told otherwise
RECOVERY_SECONDS = 120.0  # after which a fault is taken for fatal
Output = tuple[bytes | None, bytes | None, Any, int]  # key, value, headers, timestamp

# The events' times lie years back, and brokers keep records by their time.
BROKER = {"log.retention.ms": "-1"}
_HASTY = {
    "session.timeout.ms": int(SESSION_SECONDS * 1000),
    "heartbeat.interval.ms": 500,
    "max.poll.interval.ms": 6_000,
    "transaction.timeout.ms": 5_000,
}


class Failure(Exception):
    """What the run was made to find."""


EXTRA = "extra"  # the model that changes
_TREE = {"kind": "tree", "input": WORDS, "classes": ["ham", "spam"], "features": "names", "policy": "periodic"} | {
    "grace_period": 8,
    "delta": 0.3,
    "tau": 0.3,
    "on_delete": "ignore",
    "evaluate": {"window": 20, "emit": {"every": 15}},
    "emit": {"snapshots": {"every": 25}},
}
# What it may be: not there, two trees that differ in what they learn, in what they write, and in where they begin.
EXTRAS: tuple[dict[str, Any] | None, ...] = (
    None,
    _TREE,
    _TREE | {"shadow": True},
    _TREE | {"delta": 0.2},
    _TREE | {"emit": {"snapshots": "change"}},
    _TREE | {"grace_period": 5, "start": "latest"},
)


def write_settings(
    folder: Path,
    log: dict[str, Any],
    name: str,
    extra: dict[str, Any] | None = None,
    revision: int = 0,
    threads: int = 2,
) -> Path:
    """Write settings with models of every kind, on this log; partitions and trees run in so many threads."""
    options = yaml.safe_load(waiting(every_kind()))
    options |= {"revision": revision, "threads": threads}
    for model in options["models"].values():
        if model["kind"] == "forest":
            model["threads"] = threads
    if extra is not None:
        options["models"][EXTRA] = extra
    options["bounds"] = {"keys": 25, "live_ids": 400}
    options |= {
        "log": log,
        "group": GROUP,
        "metrics": None,
        "on_defect": "quarantine",  # there is none: nothing may be passed by, however often workers die
        "transaction": {"interval_ms": 100, "records": 50},
        "checkpoint": {"interval_ms": 1_500, "records": 200, "bytes_per_second": 5_000_000},
        "logging": {"format": "json"},
    }
    path, whole = folder / name, folder / f"{name}.new"
    whole.write_text(yaml.safe_dump(options))
    whole.replace(path)  # workers may start at any moment
    return path


# --- workers


@dataclass
class Fleet:
    """The worker processes, looked after as a supervisor would: one that ends by itself is started again."""

    settings: Path
    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    starts: int = 0
    ended: list[str] = field(default_factory=list)  # last words of those that ended by themselves

    def start(self, name: str) -> None:
        """Start a worker under a name that it keeps."""
        self.starts += 1
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.support.anabranch", "run", str(self.settings)],
                stderr=log,
                stdout=log,
                cwd=ROOT,
                env=os.environ | {"ANABRANCH_LOG__KAFKA__INSTANCE": name},
            )

    def supervise(self) -> None:
        """Start again what ended by itself."""
        for name, process in list(self.running.items()):
            if process.poll() is not None:
                last = (self.folder / f"{name}.log").read_text().splitlines()[-1:]
                self.ended.append(f"{name} ({process.returncode}): {' '.join(last)[-300:]}")
                self.start(name)

    def stop(self, name: str, number: signal.Signals) -> None:
        """End a worker with a signal, and wait for its end."""
        process = self.running.pop(name)
        process.send_signal(number)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Failure(f"{name} did not end within 60 s of {number.name}") from None

    def close(self) -> None:
        """End all workers at once, whatever they do."""
        for process in self.running.values():
            process.kill()
            process.wait()


# --- input


class Input:
    """Publishes the stream at a steady pace, in the background of everything else, each fault its share."""

    def __init__(self, bootstrap: str, records: list[OutRecord], share: int) -> None:
        # One request at a time, so that the order of a partition is that of the stream, whatever fails.
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
        self._records = iter(records)
        self._share = share
        self._started = time.monotonic()
        self._allowed = 0
        self.published = 0
        self.ends = dict.fromkeys((TopicPartition(t, n) for t in TOPICS for n in range(PARTITIONS)), 0)

    def allow_more(self) -> None:
        """Begin the next share."""
        self._started = time.monotonic()
        self._allowed += self._share

    def go_on(self, *, all_of_it: bool = False) -> None:
        """Publish what is due by now."""
        left = int(self._share * (1 - (time.monotonic() - self._started) / SHARE_SECONDS))
        due = sys.maxsize if all_of_it else self._allowed - max(0, left)
        for record in islice(self._records, max(0, due - self.published)):
            self._producer.produce(
                record.topic, record.value, record.key, record.partition, timestamp=record.timestamp
            )
            self.ends[TopicPartition(record.topic, record.partition)] += 1
            self.published += 1
        self._producer.poll(0)

    def flush(self) -> None:
        """Publish everything that is left, and wait until it has arrived."""
        self.go_on(all_of_it=True)
        if self._producer.flush(60):
            raise Failure("the input could not be published within 60 s")


# --- faults


class Run:
    """One run: a cluster, workers, input, and the faults that can be done to them."""

    def __init__(
        self, cluster: Cluster, fleet: Fleet, stream: Input, draw: random.Random, kafka: dict[str, Any]
    ) -> None:
        self.kafka = kafka
        self.revision = 0
        self.extra: dict[str, Any] | None = None
        self.cluster = cluster
        self.fleet = fleet
        self.stream = stream
        self.draw = draw
        self.looking = KafkaLog({"bootstrap.servers": cluster.bootstrap}, group=GROUP, instance="onlooker")
        self.faults: dict[str, Callable[[], str]] = {
            "kill": self.kill,
            "terminate": self.terminate,
            "add": self.add,
            "remove": self.remove,
            "zombie": self.zombie,
            "broker": self.broker,
            "coordinator": self.coordinator,
            "settings": self.settings,
        }

    def spend(self, seconds: float) -> None:
        """Let time pass: input goes on, and what ends is started again."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.stream.go_on()
            self.fleet.supervise()
            time.sleep(0.02)

    def kill(self) -> str:
        """Kill a worker, and start it again at once or after its session."""
        name = self.draw.choice(sorted(self.fleet.running))
        self.fleet.stop(name, signal.SIGKILL)
        self.spend(self.draw.choice((0.0, SESSION_SECONDS + 1)))
        self.fleet.start(name)
        return name

    def terminate(self) -> str:
        """End a worker in good order, and start it again."""
        name = self.draw.choice(sorted(self.fleet.running))
        self.fleet.stop(name, signal.SIGTERM)
        self.spend(self.draw.choice((0.0, SESSION_SECONDS + 1)))
        self.fleet.start(name)
        return name

    def add(self) -> str:
        """Add a worker, or another fault where there are enough."""
        free = [f"worker-{n}" for n in range(MOST_WORKERS) if f"worker-{n}" not in self.fleet.running]
        if not free:
            return self.remove()
        self.fleet.start(free[0])
        return free[0]

    def remove(self) -> str:
        """Remove a worker for good, or add one where there is only one."""
        if len(self.fleet.running) == 1:
            return self.add()
        name = self.draw.choice(sorted(self.fleet.running))
        self.fleet.stop(name, self.draw.choice((signal.SIGTERM, signal.SIGKILL)))
        return f"-{name}"

    def zombie(self) -> str:
        """Freeze a worker for longer than its session: others take over, and then it wakes up."""
        name = self.draw.choice(sorted(self.fleet.running))
        process = self.fleet.running[name]
        process.send_signal(signal.SIGSTOP)
        self.spend(SESSION_SECONDS * self.draw.uniform(1.2, 2.5))
        process.send_signal(signal.SIGCONT)
        return name

    def broker(self) -> str:
        """Restart a node, in good order or not; of one node, the only one."""
        node = self.draw.choice(self.cluster.nodes)
        how = self.draw.choice((node.stop, node.kill))
        how()
        self.spend(self.draw.uniform(0.0, 3.0))
        node.start()
        return f"node {node.number} {how.__name__}"

    def coordinator(self) -> str:
        """Stop the node that coordinates a worker's transactions: another takes over; then bring it back."""
        name = self.draw.choice(sorted(self.fleet.running))
        topic = AdminClient({"bootstrap.servers": self.cluster.bootstrap}).list_topics("__transaction_state", 10)
        partitions = topic.topics["__transaction_state"].partitions
        leader = partitions[java_hash(f"{GROUP}-{name}") % len(partitions)].leader
        node = next((each for each in self.cluster.nodes if each.number == leader), self.cluster.nodes[0])
        node.stop()
        self.spend(self.draw.uniform(1.0, 3.0))
        node.start()
        return f"node {node.number} of {name}"

    def settings(self) -> str:
        """Change the settings, and restart all workers with them, one after the other, in good order or not."""
        self.revision += 1
        self.extra = self.draw.choice([each for each in EXTRAS if each != self.extra])
        path = self.fleet.settings
        write_settings(path.parent, {"kafka": self.kafka}, path.name, self.extra, self.revision)
        for name in sorted(self.fleet.running):
            how = self.draw.choice((signal.SIGTERM, signal.SIGKILL))
            self.fleet.stop(name, how)
            self.fleet.start(name)
            self.spend(self.draw.uniform(0.0, SESSION_SECONDS))
            if self.draw.random() < 0.3:  # in the middle of the change, perhaps
                self.fleet.stop(name, signal.SIGKILL)
                self.fleet.start(name)
        return f"{EXTRAS.index(self.extra)}"

    def settle(self) -> float:
        """Wait until everything published by now is committed; return the seconds that it took."""
        self.stream.go_on()
        targets = dict(self.stream.ends)
        started = time.monotonic()
        while any((self.looking.committed(source) or 0) < end for source, end in targets.items()):
            if time.monotonic() - started > RECOVERY_SECONDS:
                behind = {
                    f"{source.topic}/{source.partition}": (
                        self.looking.committed(source),
                        self.looking.watermarks(source).high,
                        end,
                    )
                    for source, end in targets.items()
                }
                raise Failure(
                    f"not recovered within {RECOVERY_SECONDS:.0f} s: committed, arrived, published: {behind}"
                )
            self.spend(0.05)
        return time.monotonic() - started


def java_hash(text: str) -> int:
    """Return the hash by which a broker finds the coordinator of a transactional id."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF


# --- what came of it


def outputs_of(log: Log, settings: Settings) -> dict[TopicPartition, list[Output]]:
    """Return all results and dead letters, by partition, as a reader sees them that skips what was aborted."""
    found: dict[TopicPartition, list[Output]] = {}
    for route in settings.routes.values():
        for topic in route.results:
            for number in range(PARTITIONS):
                source = TopicPartition(topic, number)
                found[source] = list(_read(log, source))
    return found


def _read(log: Log, source: TopicPartition) -> Iterator[Output]:
    reader = log.reader()
    low, high = log.watermarks(source)
    reader.assign({source: low})
    position = low
    while position < high:
        for records in reader.poll(10_000, 1.0):
            position = records.next_offset
            columns = (records.keys, records.values, records.headers, records.timestamps.tolist())
            yield from zip(*columns, strict=True)
    reader.close()


def models_of(log: Log, settings: Settings) -> dict[str, dict[bytes, Any]]:
    """Restore all models as a new worker would, and return what they hold, by partition and name."""
    worker = worker_on(log, settings)
    worker.run(lambda: False, until_end=True)
    found = {}
    for source, partition in sorted(worker.partitions.items()):
        for model in partition.pipeline.models:
            model.check()
            if model.name != EXTRA:
                found[f"{source.topic}/{source.partition} {model.name}"] = model_contents(model)
    return found


def model_of(row: Output) -> str | None:
    """Return whose result it is, None for the decoder's."""
    return decode_output(row[1] or b"", row[2]).model


def replayed(path: Path, folder: Path, settings: Settings) -> dict[TopicPartition, list[Output]]:
    """Return what a replay of a recording makes, by the settings that held where."""
    recording, output = folder / "recording.db", folder / "replayed.db"
    for command in (["record", path, recording], ["replay", recording, output]):
        call = [sys.executable, "-m", "tests.support.anabranch", *map(str, command)]
        done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"{command[0]}: {done.stderr}")
    with EmbeddedLog(output) as log:
        return outputs_of(log, settings)


def undisturbed(
    folder: Path, records: list[OutRecord]
) -> tuple[dict[TopicPartition, list[Output]], dict[str, dict[bytes, Any]]]:
    """Return what one worker makes of the stream on the embedded log."""
    settings = load(write_settings(folder, {"embedded": "undisturbed.db"}, "undisturbed.yaml", threads=1), {})
    with EmbeddedLog(folder / "undisturbed.db", group=GROUP) as log:
        for topic in TOPICS:
            log.create_topic(topic, PARTITIONS)
        log.append(records)
        models = models_of(log, settings)
        return outputs_of(log, settings), models


def differences(
    found: dict[TopicPartition, list[Output]], expected: dict[TopicPartition, list[Output]]
) -> Iterator[str]:
    """Yield a sentence for each partition whose bytes are not those expected."""
    for source, wanted in expected.items():
        got = found[source]
        if got != wanted:
            at = next(
                (n for n, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b),
                min(len(got), len(wanted)),
            )
            yield (
                f"{source.topic}/{source.partition}: {len(got)} records, expected {len(wanted)}; the first "
                f"difference is at {at}: {got[at : at + 1]} instead of {wanted[at : at + 1]}"
            )


def differences_of_models(
    found: dict[str, dict[bytes, Any]], expected: dict[str, dict[bytes, Any]]
) -> Iterator[str]:
    """Yield a sentence for each key whose model is not that of an undisturbed worker."""
    for model in sorted(found.keys() | expected.keys()):
        keys, wanted = found.get(model, {}), expected.get(model, {})
        for key in sorted(keys.keys() | wanted.keys()):
            if keys.get(key) != wanted.get(key):
                yield f"{model}, key {key!r}: {keys.get(key)} instead of {wanted.get(key)}"


# --- all together


def run(
    folder: Path,
    cluster: Cluster,
    faults: int,
    seed: int,
    *,
    guarantee: str = "exactly_once",
    kinds: tuple[str, ...] = (),
    report: Callable[[dict[str, Any]], None] = lambda line: None,
) -> None:
    """Do so many faults to workers on a running cluster; raise `Failure` where something is not as it must be."""
    draw = random.Random(seed)
    share = 120
    stream_of = with_labels(mixed((faults + 2) * share * 2 // 3, seed, KEYS, PARTITIONS), seed, KEYS, PARTITIONS)
    records = [record for record in stream_of if len(record.value or b"") < LARGEST_BYTES]
    expected, expected_models = undisturbed(folder, records)
    kafka = {"bootstrap": cluster.bootstrap, "guarantee": guarantee, "properties": _HASTY}
    path = write_settings(folder, {"kafka": kafka}, "worker.yaml")
    settings = load(path, {})
    with KafkaLog({"bootstrap.servers": cluster.bootstrap}, group=GROUP, instance="creator") as log:
        for topic in TOPICS:
            log.create_topic(topic, PARTITIONS)
        create_topics(log, settings)
    fleet = Fleet(path, folder)
    stream = Input(cluster.bootstrap, records, share)
    trial = Run(cluster, fleet, stream, draw, kafka)
    choices = kinds or tuple(trial.faults)
    with ExitStack() as stack:
        stack.callback(fleet.close)
        stack.callback(trial.looking.close)
        fleet.start("worker-0")
        fleet.start("worker-1")
        stream.allow_more()
        trial.spend(SHARE_SECONDS)
        report({"fault": "none", "recovery_seconds": round(trial.settle(), 2)})
        for number in range(1, faults + 1):
            kind = draw.choice(choices)
            stream.allow_more()
            began, restarts = time.monotonic(), len(fleet.ended)
            target = trial.faults[kind]()
            lasted = time.monotonic() - began
            recovery = trial.settle()
            report(
                {
                    "number": number,
                    "fault": kind,
                    "target": target,
                    "lasted_seconds": round(lasted, 2),
                    "recovery_seconds": round(recovery, 2),
                    "published": stream.published,
                    "workers": len(fleet.running),
                    "ended_by_themselves": fleet.ended[restarts:],
                }
            )
        stream.flush()
        report({"fault": "end", "recovery_seconds": round(trial.settle(), 2), "published": stream.published})
        for name in list(fleet.running):
            fleet.stop(name, signal.SIGTERM)
    settings = load(path, {})
    with KafkaLog(
        settings.log.kafka.resolved() if settings.log.kafka else {}, group=GROUP, instance="judge"
    ) as log:
        found = outputs_of(log, settings)
        if guarantee == "at_least_once":
            found = {source: list(dict.fromkeys(records)) for source, records in found.items()}
        others = {source: [row for row in rows if model_of(row) != EXTRA] for source, rows in found.items()}
        if problems := list(differences(others, expected)):
            raise Failure("\n".join(problems))
        if problems := list(differences_of_models(models_of(log, settings), expected_models)):
            raise Failure("the models are not those of an undisturbed worker: " + "\n".join(problems))
    # At least once, records behind the committed offset may have had results under both settings.
    if guarantee == "exactly_once" and (problems := list(differences(found, replayed(path, folder, settings)))):
        raise Failure("a replay makes other results: " + "\n".join(problems))
    report({"result": "identical", "outputs": sum(map(len, expected.values())), "faults": faults, "seed": seed})


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=3)
    parser.add_argument("--guarantee", choices=("exactly_once", "at_least_once"), default="exactly_once")
    parser.add_argument("--kinds", nargs="*", default=(), help="only these")
    parser.add_argument("--keep", type=Path, help="keep logs and data in this folder")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        cluster = stack.enter_context(Cluster(install(), folder / "kafka", options.nodes, properties=BROKER))
        try:
            run(
                folder,
                cluster,
                options.faults,
                options.seed,
                guarantee=options.guarantee,
                kinds=tuple(options.kinds),
                report=lambda line: print(json.dumps(line), flush=True),
            )
        except Failure as failure:
            sys.exit(f"failed: {failure}")


if __name__ == "__main__":
    main()
