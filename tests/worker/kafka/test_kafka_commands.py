"""The commands around a real Kafka: publish to it, look at it, record it, and replay what was recorded."""

from __future__ import annotations

import gc
import json
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from tests.support import recordings
from tests.support.logs import TIME_LIMIT
from tests.support.places import ROOT
from tests.worker.commands.test_run_command import Running
from worker.broker import Cluster
from worker.codec.event import encode_event
from worker.commands import main
from worker.log import browse
from worker.log.embedded import EmbeddedLog
from worker.log.kafka import KafkaLog
from worker.log.kafka.reader import KafkaReader
from worker.log.port import Headers, OutRecord, TopicPartition
from worker.publishing.partitioners import crc32

MESSAGES = "ham\tsee you soon\nspam\twin a prize\nham\tsee you there\nspam\tprize to win\n"


class Bench:
    """Settings with topics and a group of their own, and the commands, run in their folder."""

    def __init__(self, kafka: Cluster, folder: Path) -> None:
        self.kafka = kafka
        self.folder = folder
        self.suffix = uuid4().hex[:12]
        self.input = f"sms-{self.suffix}"
        self.settings = folder / "worker.yaml"
        self.model = {"kind": "split", "input": self.input, "classes": ["ham", "spam"], "features": "names"}
        self.write({"spam": self.model})

    def write(self, models: Mapping[str, Any], **more: Any) -> None:
        """Write the settings."""
        kafka = {"bootstrap": self.kafka.bootstrap, "instance": "w"}
        document = {"log": {"kafka": kafka}, "group": f"g-{self.suffix}", "models": models, "metrics": None}
        self.settings.write_text(yaml.safe_dump(document | more))

    def run(self, *arguments: object) -> Result:
        """Run a command."""
        return CliRunner().invoke(main, [str(argument) for argument in arguments], env={"COLUMNS": "120"})

    def done(self, *arguments: object) -> str:
        """Run a command that succeeds, and return what it said."""
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.output

    def create(self, partitions: int) -> None:
        """Make all the topics."""
        self.done("topics", "create", self.settings, "--inputs", partitions, "--yes")

    def log(self, instance: str = "test") -> KafkaLog:
        """Open the log as another member of the group."""
        properties = {"bootstrap.servers": self.kafka.bootstrap}
        return KafkaLog(properties, group=f"g-{self.suffix}", instance=instance)

    def record(self, *options: object, to: str = "rec.db") -> str:
        """Record, and return what was said."""
        return self.done("record", self.settings, self.folder / to, *options)

    def objects(self, *options: object) -> list[dict[str, Any]]:
        """Return what `show --json` shows."""
        return [json.loads(line) for line in self.done("show", self.settings, "--json", *options).splitlines()]


@pytest.fixture(scope="module", autouse=True)
def _released(kafka: Cluster) -> Iterator[None]:  # noqa: ARG001 - it is still there afterwards
    """Let go of all clients while the cluster runs: results of commands hold tracebacks, and those hold logs."""
    yield
    gc.collect()


@pytest.fixture
def bench(kafka: Cluster, tmp_path: Path) -> Bench:
    """Return settings for the running Kafka that no other test uses; their topics are not there yet."""
    return Bench(kafka, tmp_path)


Content = tuple[bytes | None, bytes | None, Headers, int]


def _kafka_contents(log: KafkaLog, topic: str) -> list[list[Content]]:
    """Return key, value, headers and timestamp of all committed records of each partition."""
    sources = [TopicPartition(topic, number) for number in range(log.partitions(topic) or 0)]
    found: dict[TopicPartition, list[Content]] = {source: [] for source in sources}
    ends = {source: log.watermarks(source).high for source in sources}
    positions = {source: log.watermarks(source).low for source in sources}
    deadline = time.monotonic() + TIME_LIMIT
    with closing(log.reader()) as reader:
        reader.assign(positions)
        while positions != ends:
            assert time.monotonic() < deadline
            for each in reader.poll(1_000, 0.1):
                positions[each.source] = each.next_offset
                columns = (each.keys, each.values, each.headers, map(int, each.timestamps))
                found[each.source] += zip(*columns, strict=True)
    return list(found.values())


def _contents(log: EmbeddedLog, topic: str) -> list[list[Content]]:
    every = []
    for number in range(log.topics()[topic]):
        each = log.read(TopicPartition(topic, number), 0, 100_000)
        every.append(list(zip(each.keys, each.values, each.headers, map(int, each.timestamps), strict=True)))
    return every


# --- publish, run, record, replay


def test_a_replay_gives_the_bytes_of_the_run(bench: Bench) -> None:
    """What a worker wrote to Kafka is, byte for byte, what a replay of its recorded input writes."""
    names = {topic: f"{topic}-{bench.suffix}" for topic in (recordings.WORDS, recordings.CLICKS)}
    settings = yaml.safe_load(recordings.SETTINGS)
    for model in settings["models"].values():
        model["input"] = names[model["input"]]
    bench.write(settings["models"], bounds=settings["bounds"])
    source = bench.folder / "source.db"
    mixed = (record._replace(topic=names[record.topic]) for record in recordings.mixed())
    recordings.write(source, mixed, dict.fromkeys(names.values(), recordings.PARTITIONS))
    bench.create(recordings.PARTITIONS)
    # Two transactions, so that the input has offsets without records, which recording and replay have to keep.
    for _ in range(2):
        assert "600 records of" in bench.done("publish", "--recording", source, "--to", bench.settings)
    bench.done("run", bench.settings, "--until-end")
    assert "recorded 1,200 records of" in bench.record()
    assert "1,200 records in" in bench.done(
        "replay", bench.settings, bench.folder / "rec.db", bench.folder / "out.db"
    )
    with bench.log() as log, EmbeddedLog(bench.folder / "out.db") as replayed, EmbeddedLog(source) as published:
        for topic in names.values():
            ours = _kafka_contents(log, topic)
            assert ours == [2 * partition for partition in _contents(published, topic)]
            for results in (f"{topic}.out", f"{topic}.dead"):
                ours = _kafka_contents(log, results)
                assert ours == _contents(replayed, results)
                assert all(ours)
    topics = [f"{name}.{kind}" for name in names.values() for kind in ("out", "dead")]
    bench.record(*(part for topic in topics for part in ("--topic", topic)), to="golden.db")
    replay = ("replay", bench.settings, bench.folder / "rec.db", bench.folder / "again.db")
    assert "the results equal" in bench.done(*replay, "--expect", bench.folder / "golden.db")


def test_a_worker_waits_for_its_topics(bench: Bench) -> None:
    """One that starts before its topics are there is alive, says what it waits for, and goes on once they are."""
    bench.write({"spam": bench.model}, metrics={"port": 0}, logging={"format": "json"})
    worker = Running(bench.settings)
    try:
        worker.page = str(worker.logged("starting")["page"])
        said = worker.logged("waiting for topics, which `anabranch topics create SETTINGS` creates")
        topics = [bench.input, *(f"{bench.input}.{kind}" for kind in ("out", "dead", "state"))]
        assert (said["topics"], said["at_most_seconds"]) == (topics, 300.0)
        assert worker.get("livez")[0] == 200
        status, body = worker.get("readyz")
        assert (status, json.loads(body)["why"]) == (
            503,
            f"the worker is waiting for the topics {', '.join(topics)}",
        )
        bench.create(2)
        worker.logged("running")
        assert worker.get("readyz")[0] == 200
        worker.process.terminate()
        assert worker.process.wait(TIME_LIMIT) == 0
    finally:
        worker.__exit__()


# --- publish


def _publish(bench: Bench, *options: object, text: str = MESSAGES) -> Result:
    (bench.folder / "messages.txt").write_text(text)
    return bench.run("publish", bench.folder / "messages.txt", "--to", bench.settings, *options)


def test_publish_needs_the_topic(bench: Bench) -> None:
    """A cluster's topics are not made by the way; it is told how to make them."""
    result = _publish(bench)
    assert result.exit_code == 1
    assert f"expected the topic '{bench.input}' at {bench.kafka.bootstrap}; there is none" in result.stderr
    assert f"create it first: anabranch topics create {bench.settings} --inputs N" in result.stderr
    result = _publish(bench, "--topic", "elsewhere")
    assert (
        f"create it with the tools of Kafka, or publish to an input of the models: {bench.input}" in result.stderr
    )


def test_publish_a_file(bench: Bench) -> None:
    """Events go to the partition of their key, with the time they have, and what comes next is told."""
    bench.create(3)
    result = _publish(bench, "--timestamp", 1_700_000_000_000, "--key-value", "k")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [  # the client may warn on standard error of a coordinator that loads
        f"4 events to {bench.input} (3 partitions) of {bench.kafka.bootstrap}",
        f"next: anabranch run {bench.settings} --until-end; then",
        f"      anabranch show {bench.settings} --topic {bench.input}.out",
    ]
    result = _publish(bench, "--partitions", 4)
    assert result.exit_code == 1
    assert "to have 4 partitions, it has 3; publish to a topic with as many" in result.stderr
    shown = bench.objects("--topic", bench.input)
    assert [(each["key"], each["timestamp"], each["partition"]) for each in shown] == [
        ("k", 1_700_000_000_000, crc32(b"k", 3))
    ] * 4
    assert [each["events"][0]["label"] for each in shown] == ["ham", "spam", "ham", "spam"]


def test_init_of_a_topic(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings for a topic that is there, found at a cluster or in its settings; the commands go through."""
    monkeypatch.setenv("ANABRANCH_METRICS__PORT", "null")
    monkeypatch.setenv("ANABRANCH_GROUP", f"init-{bench.suffix}")
    bench.done("topics", "create", bench.settings, "--inputs", 2, "--yes")
    assert _publish(bench).exit_code == 0
    made, again = bench.folder / "made.yaml", bench.folder / "again.yaml"
    said = bench.done("init", "--bootstrap", bench.kafka.bootstrap, "--topic", bench.input, "-o", made)
    assert "4 events" in said
    assert yaml.safe_load(made.read_text())["models"]["tree"]["classes"] == ["ham", "spam"]
    bench.done("init", bench.settings, "--topic", bench.input, "-o", again)
    assert yaml.safe_load(again.read_text())["log"]["kafka"]["instance"] == "w"
    commands = re.findall(r"^  anabranch (.*)$", said, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["topics", "run", "show"]
    results = [bench.done(*shlex.split(command)) for command in commands]
    assert re.search(r"\n tree +4 +0 +0 +0 ", results[1])
    missing = bench.run(
        "init", "--bootstrap", bench.kafka.bootstrap, "--topic", "none", "-o", bench.folder / "x.yaml"
    )
    assert "expected the topic 'none' in the cluster, there is none; check its name" in missing.stderr


def test_publish_disturbs_no_worker(bench: Bench) -> None:
    """A worker of the same settings goes on writing after somebody has published."""
    bench.create(1)
    with bench.log("w") as log:
        record = OutRecord(bench.input, 0, b"k", b"\x80", (), 1)
        log.commit([record], {})
        assert _publish(bench).exit_code == 0
        log.commit([record], {})
    with bench.log() as log:
        assert [len(each) for each in _kafka_contents(log, bench.input)] == [6]


def test_publish_a_recording_needs_its_partitions(bench: Bench) -> None:
    """A recording goes to a topic with as many partitions as it has."""
    bench.create(2)
    with EmbeddedLog(bench.folder / "rec.db") as log:
        log.create_topic(bench.input, 3)
    result = bench.run("publish", "--recording", bench.folder / "rec.db", "--to", bench.settings)
    assert result.exit_code == 1
    assert "to have 3 partitions, it has 2; publish to a topic with as many" in result.stderr


# --- record


def test_models_that_come_and_go(bench: Bench) -> None:
    """`validate --against` tells of a group on Kafka what the next run does; a recording holds what was done."""
    models = {"spam": bench.model, "gone": bench.model | {"criterion": "gini"}}
    bench.write(models, checkpoint={"records": 100}, metrics={"port": None})
    bench.create(2)
    assert _publish(bench).exit_code == 0
    bench.done("run", bench.settings, "--until-end")
    bench.write(
        {"spam": bench.model, "late": bench.model | {"window": 50}},
        checkpoint={"records": 100},
        metrics={"port": None},
    )
    told = bench.done("validate", bench.settings, "--against", f"g-{bench.suffix}")
    assert re.search(r"late: new; learns \d offsets silently", told)
    assert "gone: removed: what it has learned goes" in told
    assert "spam: kept" in told
    assert _publish(bench).exit_code == 0
    bench.done("run", bench.settings, "--until-end")
    assert "all models: kept" in bench.done("validate", bench.settings, "--against", f"g-{bench.suffix}")
    assert "2 changes of settings" in bench.record()
    assert "gone" not in bench.done("validate", bench.settings, "--against", bench.folder / "rec.db")
    bench.done("replay", bench.folder / "rec.db", bench.folder / "out.db")
    with bench.log() as log, EmbeddedLog(bench.folder / "out.db") as replayed:
        assert _contents(replayed, f"{bench.input}.out") == _kafka_contents(log, f"{bench.input}.out")


def test_recording_leaves_no_trace(bench: Bench) -> None:
    """Recording joins no group and commits nothing, so the group of the settings is as if it had not been."""
    bench.create(2)
    assert _publish(bench).exit_code == 0
    assert "recorded 4 records" in bench.record()
    admin = AdminClient({"bootstrap.servers": bench.kafka.bootstrap})
    groups = admin.list_consumer_groups().result(TIME_LIMIT).valid
    assert f"g-{bench.suffix}" not in {group.group_id for group in groups}


def test_recording_goes_on(bench: Bench) -> None:
    """A recording goes on where it ends, over the offsets that transactions leave without records."""
    bench.create(1)
    for count in (4, 4, 0, 4):
        if count:
            assert _publish(bench).exit_code == 0
        assert f"recorded {count} records" in bench.record()
    with EmbeddedLog(bench.folder / "rec.db") as log, bench.log() as there:
        source = TopicPartition(bench.input, 0)
        assert log.watermarks(source) == there.watermarks(source) == (0, 15)
        assert list(map(int, log.read(source, 0, 99).offsets)) == [0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13]


@pytest.mark.parametrize("commits", [True, False])
def test_an_open_transaction(bench: Bench, monkeypatch: pytest.MonkeyPatch, commits: bool) -> None:
    """Records of an open transaction are waited for, and a person is told; aborted ones leave a gap."""
    bench.create(1)
    assert _publish(bench).exit_code == 0
    module = import_module("worker.commands.record")
    monkeypatch.setattr(module, "_DRY_SECONDS", 0.5)
    producer = Producer({"bootstrap.servers": bench.kafka.bootstrap, "transactional.id": bench.suffix})
    producer.init_transactions(TIME_LIMIT)
    producer.begin_transaction()
    producer.produce(bench.input, b"open", b"k", 0)
    producer.flush(TIME_LIMIT)
    told = threading.Event()
    look = module._Dry.look

    def looked(dry: Any, batches: list[Any], remaining: Mapping[TopicPartition, int]) -> None:
        look(dry, batches, remaining)
        if dry._notified:
            told.set()

    monkeypatch.setattr(module._Dry, "look", looked)

    def end() -> None:
        told.wait(TIME_LIMIT)
        (producer.commit_transaction if commits else producer.abort_transaction)(TIME_LIMIT)

    thread = threading.Thread(target=end)
    thread.start()
    said = bench.record()
    thread.join()
    assert f"waiting at {bench.input}/0 offset 5: a transaction is open there" in said
    assert f"recorded {5 if commits else 4} records" in said
    with EmbeddedLog(bench.folder / "rec.db") as log:
        found = log.read(TopicPartition(bench.input, 0), 0, 99)
        assert list(found.values[4:]) == ([b"open"] if commits else [])
        assert found.next_offset == log.watermarks(found.source).high == 6


def test_records_that_are_gone(bench: Bench) -> None:
    """Where the brokers have dropped what would come next, it stops rather than leave a hole."""
    bench.create(1)
    assert _publish(bench).exit_code == 0
    bench.record("--until", 2)
    admin = AdminClient({"bootstrap.servers": bench.kafka.bootstrap})
    (done,) = admin.delete_records([Place(bench.input, 0, 3)]).values()
    done.result(TIME_LIMIT)
    result = bench.run("record", bench.settings, bench.folder / "rec.db")
    assert result.exit_code == 1
    assert (
        f"{bench.input}/0: expected to go on at offset 2, where the recording ends, but the log has"
        in result.stderr
    )
    assert "recorded 1 record of" in bench.record(to="new.db")


def test_what_cannot_be_recorded(bench: Bench) -> None:
    """An unknown topic is told, as is one that has more partitions than it had."""
    result = bench.run("record", bench.settings, bench.folder / "rec.db")
    assert result.exit_code == 1
    assert f"expected the topic '{bench.input}', to be recorded; there is none in the log" in result.stderr
    bench.create(2)
    with EmbeddedLog(bench.folder / "rec.db") as log:
        log.create_topic(bench.input, 1)
    result = bench.run("record", bench.settings, bench.folder / "rec.db")
    assert "to have 1 partitions, as in the recording; it has 2" in result.stderr


def test_a_compacted_topic(bench: Bench) -> None:
    """A compacted topic is recorded as it is found, with a word about what may be gone."""
    bench.create(1)
    assert _publish(bench).exit_code == 0
    bench.done("run", bench.settings, "--until-end")
    state = f"{bench.input}.state"
    said = bench.record("--topic", state)
    assert f"{state}: 1 partition, new in the recording; it is compacted" in said
    with bench.log() as log, EmbeddedLog(bench.folder / "rec.db") as recorded:
        assert _contents(recorded, state) == _kafka_contents(log, state)
        assert not recorded.is_compacted(state)


# --- show


def test_show_topics(bench: Bench) -> None:
    """The overview has the topics of the settings with what the group has read, and those that are missing."""
    assert bench.done("show", bench.settings).startswith(f"not there yet: {bench.input}, {bench.input}.out")
    bench.create(2)
    assert _publish(bench).exit_code == 0
    bench.done("run", bench.settings, "--until-end")
    found = [each for each in bench.objects() if each["topic"] == bench.input]
    assert sorted((each["records"], each["committed"]) for each in found) == [(0, 0), (5, 5)]
    other = bench.objects("--group", f"other-{bench.suffix}")
    assert {each["committed"] for each in other} == {None}
    assert f"g-{bench.suffix}" in bench.done("show", bench.settings)


def test_show_results(bench: Bench) -> None:
    """Splits, trees, predictions and dead letters of a cluster are shown as those of a file are."""
    model = {"kind": "split", "input": bench.input, "classes": ["ham", "spam"], "features": "names"}
    bench.write({"spam": model | {"emit": {"snapshots": "change"}}})
    bench.create(2)
    assert _publish(bench).exit_code == 0
    producer = Producer({"bootstrap.servers": bench.kafka.bootstrap})  # unlike `publish`, it knows no classes
    producer.produce(bench.input, encode_event(["no"], "news"), b"k", 0)
    assert producer.flush(TIME_LIMIT) == 0
    ask = {"op": "predict", "id": "q", "x": ["prize"], "key": bench.input}
    (bench.folder / "asks.jsonl").write_text(json.dumps(ask))
    bench.done("publish", bench.folder / "asks.jsonl", "--to", bench.settings)
    bench.done("run", bench.settings, "--until-end")
    shown = bench.done("show", bench.settings, "--topic", f"{bench.input}.out")
    assert "spam: the latest split of each key" in shown
    assert f"spam: tree of {bench.input}  version 4" in shown
    assert "predictions" in shown
    assert "unknown-class" in bench.done("show", bench.settings, "--topic", f"{bench.input}.dead")
    bench.record("--topic", f"{bench.input}.out")
    ours = bench.objects("--topic", f"{bench.input}.out")
    file = bench.done("show", bench.folder / "rec.db", "--topic", f"{bench.input}.out", "--json")
    assert ours == [json.loads(line) for line in file.splitlines()]
    assert bench.objects("--topic", f"{bench.input}.out", "--last", 2) == ours[-2:]


@pytest.fixture
def assigned(monkeypatch: pytest.MonkeyPatch) -> list[dict[TopicPartition, int]]:
    """Return what readers are told to read from now on."""
    told: list[dict[TopicPartition, int]] = []
    assign = KafkaReader.assign

    def noted(reader: KafkaReader, positions: Mapping[TopicPartition, int]) -> None:
        told.append(dict(positions))
        assign(reader, positions)

    monkeypatch.setattr(KafkaReader, "assign", noted)
    return told


def test_only_the_end_is_read(bench: Bench, assigned: list[dict[TopicPartition, int]]) -> None:
    """The last records are read from the end of the topic, not from its start."""
    bench.create(1)
    with bench.log() as log:
        log.commit([OutRecord(bench.input, 0, b"k", b"\x80", (), n + 1) for n in range(5_000)], {})
    shown = bench.objects("--topic", bench.input, "--last", 3)
    assert [each["offset"] for each in shown] == [4_997, 4_998, 4_999]
    assert [min(each.values()) for each in assigned] == [4_998, 4_986]


def test_show_does_not_wait_for_transactions(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an open transaction holds back is left out, with a word about it."""
    monkeypatch.setattr(browse, "POLL_TIMEOUT_SECONDS", 0.5)
    bench.create(1)
    assert _publish(bench).exit_code == 0
    producer = Producer({"bootstrap.servers": bench.kafka.bootstrap, "transactional.id": bench.suffix})
    producer.init_transactions(TIME_LIMIT)
    producer.begin_transaction()
    for _ in range(10):
        producer.produce(bench.input, b"open", b"k", 0)
    producer.flush(TIME_LIMIT)
    result = bench.run("show", bench.settings, "--topic", bench.input)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 4
    assert f"{bench.input}/0: expected records from offset 5 on, but none came" in result.stderr
    last = bench.run("show", bench.settings, "--topic", bench.input, "--last", 2)
    assert last.stdout.splitlines() == result.stdout.splitlines()[-2:]
    producer.abort_transaction(TIME_LIMIT)


# --- what is to be pasted


def test_readme(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's commands for Kafka work in their order, and end with the bytes that the worker wrote."""
    monkeypatch.chdir(bench.folder)
    monkeypatch.setenv("ANABRANCH_METRICS__PORT", "null")
    monkeypatch.setenv("ANABRANCH_GROUP", f"readme-{bench.suffix}")
    readme = re.sub(r"\bsms\b", bench.input, (ROOT / "README.md").read_text("utf-8"))
    blocks = re.findall(r"^```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    (settings,) = re.findall(r"cat > worker.yaml <<END\n(.*?)^END$", readme, re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if "kafka.yaml" in block]
    other_log, *commands = block.replace("127.0.0.1:9092", bench.kafka.bootstrap).splitlines()
    Path("worker.yaml").write_text(settings)
    subprocess.run(["bash", "-c", other_log], check=True)
    Path("messages.tsv").write_text(MESSAGES)
    said = {}
    for command in commands:
        _, name, *arguments = shlex.split(command, comments=True)
        said[name] = bench.done(name, *arguments)
    assert list(said) == ["topics", "publish", "run", "show", "record", "replay"]
    assert "spam: the latest split of each key" in said["show"]
    assert said["replay"].startswith("4 records in, ")
    with bench.log() as log, EmbeddedLog("results.db") as replayed:
        assert _contents(replayed, f"{bench.input}.out") == _kafka_contents(log, f"{bench.input}.out")
