"""The worker on real Apache Kafka: partitions that move, brokers that go, topics that are not as expected."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from tests.support.model_contents import model_contents
from tests.support.workers import worker_on
from tests.worker.kafka.test_kafka_log import usurper
from worker.broker import Cluster
from worker.checkpoint.keys import unpack_key
from worker.checkpoint.reader import is_silent
from worker.codec.event import encode_event
from worker.log.kafka import KafkaLog
from worker.log.port import LogError, OutRecord, TopicPartition
from worker.loop import Worker
from worker.pipeline import Pipeline
from worker.settings import Settings
from worker.topics import create_topics

HASTY = {
    "session.timeout.ms": 1_500,
    "heartbeat.interval.ms": 300,
    "max.poll.interval.ms": 3_000,
    "transaction.timeout.ms": 5_000,
}


class Place:
    """Topics of a test's own, with workers on them."""

    def __init__(self, cluster: Cluster, partitions: int = 1, **changes: Any) -> None:
        self.topic = f"in-{uuid4().hex[:10]}"
        self.properties = HASTY | changes.pop("properties", {})
        self.bootstrap = cluster.bootstrap
        self.settings = Settings.model_validate_json(
            json.dumps(
                {
                    "log": {"kafka": {"bootstrap": cluster.bootstrap}},
                    "group": f"group-{self.topic}",
                    "models": {
                        "spam": {
                            "kind": "split",
                            "input": self.topic,
                            "classes": ["ham", "spam"],
                            "features": "names",
                        }
                    },
                    "transaction": {"interval_ms": 50},
                    "checkpoint": {"records": 20, "bytes_per_second": 1 << 40},
                    "metrics": None,
                }
                | changes
            )
        )
        self.told: list[str] = []
        with self.log("creator") as log:
            log.create_topic(self.topic, partitions)
            create_topics(log, self.settings)
        self.source = TopicPartition(self.topic, 0)
        self.state = TopicPartition(f"{self.topic}.state", 0)
        self.sent = 0

    @contextmanager
    def log(self, instance: str, **named: Any) -> Iterator[KafkaLog]:
        """Open the log as one instance of the group."""
        properties = {"bootstrap.servers": self.bootstrap, **self.properties}
        log = KafkaLog(properties, group=self.settings.group, instance=instance, notify=self.told.append, **named)
        with closing(log):
            yield log

    @contextmanager
    def worker(self, instance: str = "one", settings: Settings | None = None) -> Iterator[Worker]:
        """Make a worker, which has not joined yet."""
        with self.log(instance) as log:
            yield worker_on(log, settings or self.settings)

    def send(self, how_many: int, partition: int = 0) -> None:
        """Publish events, each with its number as a word."""
        with self.log("publisher") as log:
            numbers = range(self.sent, self.sent + how_many)
            log.commit([self.event(number, partition) for number in numbers], {})
        self.sent += how_many

    def event(self, number: int, partition: int = 0) -> OutRecord:
        """Return an event as it is published."""
        value = encode_event([f"word{number % 7}"], ("ham", "spam")[number % 3 == 0], id=number)
        return OutRecord(self.topic, partition, b"key", value, (), 1_000 + number)

    def log_end(self) -> int:
        """Return the high watermark of the first partition of the input."""
        with self.log("judge") as log:
            return log.watermarks(self.source).high

    def results(self) -> list[tuple[bytes | None, int]]:
        """Return value and timestamp of each result, of all partitions in turn."""
        found = []
        with self.log("judge") as log, closing(log.reader()) as reader:
            for number in range(log.partitions(f"{self.topic}.out") or 0):
                source = TopicPartition(f"{self.topic}.out", number)
                low, high = log.watermarks(source)
                reader.assign({source: low})
                position = low
                while position < high:
                    for records in reader.poll(1_000, 0.5):
                        position = records.next_offset
                        found += list(zip(records.values, records.timestamps.tolist(), strict=True))
        return found


@pytest.fixture
def place(kafka: Cluster) -> Place:
    """Return topics of one partition and settings for workers on them."""
    return Place(kafka)


def until(worker: Worker, done: Callable[[], bool], seconds: float = 30.0) -> None:
    """Let a worker work until something holds."""
    deadline = time.monotonic() + seconds
    while not done():
        worker.run_once()
        assert time.monotonic() < deadline, "it never came to hold"


def make_ready(worker: Worker) -> None:
    """Join, and work until everything owned is live, which is something."""
    worker.join()
    until(worker, lambda: worker.is_ready and bool(worker.partitions))


def examples(worker: Worker) -> int:
    """Return how many examples the worker's models hold."""
    partitions = worker.partitions.values()
    return sum(model.status().examples for partition in partitions for model in partition.pipeline.models)


def finish(worker: Worker, how_many: int) -> None:
    """Work until so many examples are in the models, and commit."""
    until(worker, lambda: examples(worker) == how_many)
    worker.commit()


def test_a_restart_goes_on_from_the_checkpoint(place: Place) -> None:
    """A worker leaves a checkpoint when it ends, and the next one replays nothing and has the same models."""
    place.send(50)
    with place.worker() as first:
        make_ready(first)
        finish(first, 50)
        first.finish()
        before = model_contents(first.partitions[place.source].pipeline.models[0])
    with place.worker() as second, pytest.MonkeyPatch.context() as patch:
        processed: list[int] = []
        process = Pipeline.process

        def counting(pipeline: Pipeline, records: Any) -> Any:
            processed.append(len(records.keys))
            return process(pipeline, records)

        patch.setattr(Pipeline, "process", counting)
        make_ready(second)
        assert sum(processed) == 0
        assert model_contents(second.partitions[place.source].pipeline.models[0]) == before


def test_a_former_owner_changes_nothing(place: Place) -> None:
    """A worker that slept while another took over can neither commit results nor a checkpoint, and starts anew."""
    place.send(30)
    with place.worker("slow") as slow, place.worker("quick") as quick:
        make_ready(slow)
        until(slow, lambda: examples(slow) == 30)
        quick.join()  # the session of the other ends while only this one is heard
        until(quick, lambda: quick.is_ready and place.source in quick.partitions)
        finish(quick, 30)
        place.send(30)
        finish(quick, 60)
        quick.finish()
        results = place.results()
        slow.commit()
        assert slow.partitions == {}
        assert place.results() == results
        until(slow, lambda: slow.is_ready, 40)
    with place.worker("third") as third:
        make_ready(third)
        assert examples(third) == 60


def test_partitions_are_shared_and_come_back(kafka: Cluster) -> None:
    """A second worker takes half of the partitions with their models, and what it leaves is taken back."""
    place = Place(kafka, partitions=4, threads=2)
    for number in range(4):
        place.send(25, number)
    with place.worker("one") as one:
        make_ready(one)
        finish(one, 100)
        with place.worker("two") as two:
            two.join()
            deadline = time.monotonic() + 30
            while not (len(one.partitions) == len(two.partitions) == 2 and one.is_ready and two.is_ready):
                one.run_once()
                two.run_once()
                assert time.monotonic() < deadline
            assert not one.partitions.keys() & two.partitions.keys()
            assert examples(one) == examples(two) == 50
            two.finish()
        until(one, lambda: len(one.partitions) == 4 and one.is_ready)
        assert examples(one) == 100


def test_an_eager_revoke_keeps_what_comes_back(kafka: Cluster) -> None:
    """A worker whose partitions are taken and given back at once goes on with the models that it has."""
    place = Place(kafka, partitions=2, threads=2)
    place.send(30, 0)
    place.send(30, 1)
    with place.worker("one") as one, place.worker("two") as two:
        make_ready(one)
        finish(one, 60)
        kept = {source: partition.pipeline for source, partition in one.partitions.items()}
        two.join()
        deadline = time.monotonic() + 30
        while not (one.is_ready and two.is_ready and len(one.partitions) == 1):
            one.run_once()
            two.run_once()
            assert time.monotonic() < deadline
        [(source, partition)] = one.partitions.items()
        assert partition.pipeline is kept[source]


def test_a_worker_whose_name_was_given_away_goes_on(place: Place) -> None:
    """A worker that its group has replaced by a client of its name, which writes nothing, is let in anew."""
    place.send(30)
    with place.worker("one") as worker:
        make_ready(worker)
        until(worker, lambda: examples(worker) == 30)
        with usurper(place.bootstrap, place.settings.group, place.topic, "one"):
            place.send(30)
            until(worker, lambda: examples(worker) == 60 and worker.is_ready)
            worker.commit()
            values = [value for value, _ in place.results()]
    assert any("joining it anew" in sentence for sentence in place.told)
    assert len(values) == len(set(values)) > 0


def test_state_that_somebody_wrote_is_noticed(place: Place) -> None:
    """Ends of transactions in the state topic are no news; records are, and what nobody can tell yet."""
    with place.log("reader") as log:

        def is_silent_from(begin: int) -> bool:
            return is_silent(log, place.state, begin, log.watermarks(place.state).high, time.monotonic, 1.0)

        record = OutRecord(*place.state, b"key", b"value", (), 1)
        assert is_silent_from(0)
        log.commit([record], {})
        assert not is_silent_from(0)
        assert is_silent_from(1)
        with open_transaction(place) as foreign:
            end = log.watermarks(place.state).high
            assert not is_silent_from(end - 1)
            foreign.abort_transaction(10)
            assert is_silent_from(end - 1)
            foreign.begin_transaction()


@contextmanager
def open_transaction(place: Place) -> Iterator[Producer]:
    """Keep a transaction open that has written to the state topic."""
    producer = Producer(
        {"bootstrap.servers": place.bootstrap, "transactional.id": uuid4().hex, "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(place.state.topic, b"", b"\x96\xa4page\xc4\x00\x00\xa0\xa0\x00", 0)
    producer.flush(10)
    yield producer
    producer.abort_transaction(10)


def test_a_restore_waits_for_an_open_transaction(place: Place) -> None:
    """While a transaction is open on the state topic it is unknown what the newest state is: a restore waits."""
    place.send(40)
    with place.worker() as first:
        make_ready(first)
        finish(first, 40)
        first.finish()
    with open_transaction(place) as foreign, place.worker() as second:
        second.join()
        waited_until = time.monotonic() + 3
        while time.monotonic() < waited_until:
            second.run_once()
            assert not any(partition.is_live for partition in second.partitions.values())
        foreign.abort_transaction(10)
        until(second, lambda: second.is_ready and bool(second.partitions))
        assert examples(second) == 40
        foreign.begin_transaction()


def test_a_restore_gives_up_on_a_transaction_that_stays_open(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the restore timeout it ends with what to do; it never goes on with an older state."""
    monkeypatch.setattr("worker.loop.RESTORE_TIMEOUT", 2.0)
    place.send(40)
    with place.worker() as first:
        make_ready(first)
        finish(first, 40)
        first.finish()
    with open_transaction(place), place.worker() as second:
        second.join()
        with pytest.raises(LogError, match=r"state/0: expected to read up to offset.*a transaction is open there"):
            until(second, lambda: second.is_ready and bool(second.partitions))


def test_a_damaged_page_is_noticed(place: Place) -> None:
    """A page that is not what was written ends the start with what to do."""
    place.send(40)
    with place.worker() as first:
        make_ready(first)
        finish(first, 40)
        first.finish()
    with place.log("vandal") as log, closing(log.reader()) as reader:
        reader.assign({place.state: 0})
        keys = [key for records in reader.poll(1_000, 5) for key in records.keys]
        page = next(key for key in reversed(keys) if key is not None and unpack_key(key).kind == "page")
        log.commit([OutRecord(*place.state, page, b"something else", (), 1)], {})
    with place.worker() as second:
        second.join()
        with pytest.raises(LogError, match="is missing or not what was written"):
            until(second, lambda: second.is_ready and bool(second.partitions))


def test_latest_starts_at_the_end_and_stays_there(kafka: Cluster) -> None:
    """Without state and with start: latest, older records are in no model, nor after a restart."""
    place = Place(kafka, start="latest")
    place.send(30)
    with place.worker() as first:
        make_ready(first)
        assert examples(first) == 0
    place.send(10)
    with place.worker() as second:
        make_ready(second)
        finish(second, 10)
    with place.worker() as third:
        make_ready(third)
        assert examples(third) == 10


def test_an_event_slower_than_the_poll_interval(
    kafka: Cluster, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is put out of its group while it works on a batch loses that work, and none is doubled."""
    place.send(40)
    process = Pipeline.process
    slept: list[int] = []

    def slow(pipeline: Pipeline, records: Any) -> Any:
        if not slept and records.keys:
            slept.append(1)
            time.sleep(4.5)  # longer than max.poll.interval.ms
        return process(pipeline, records)

    monkeypatch.setattr(Pipeline, "process", slow)
    with place.worker() as worker:
        make_ready(worker)
        until(worker, lambda: bool(slept))
        place.send(20)
        until(worker, lambda: examples(worker) == 60 and worker.is_ready, 40)
        worker.commit()
        values = place.results()
    assert len(values) == len(set(values))
    other = Place(kafka)
    other.send(40)  # in as many transactions, whose ends take up offsets
    other.send(20)
    with other.worker() as undisturbed:
        make_ready(undisturbed)
        finish(undisturbed, 60)
        mine, theirs = place.topic.encode(), other.topic.encode()
        expected = [(value or b"").replace(theirs, mine) for value, _ in other.results()]
    assert [value for value, _ in values] == expected


def test_missing_topics_are_named(place: Place) -> None:
    """A worker creates nothing in a cluster: it names what is missing, and the command that creates it."""
    changed = place.settings.model_dump(mode="json")
    changed["log"]["kafka"]["topic_wait_seconds"] = 0
    changed["topics"] = {place.topic: {"output": "elsewhere", "dead_letters": "nowhere", "state": "lost"}}
    settings = Settings.model_validate_json(json.dumps(changed))
    with (
        place.worker(settings=settings) as worker,
        pytest.raises(LogError, match=r"'elsewhere'.*'nowhere'.*'lost'.*anabranch topics create"),
    ):
        worker.join()


def test_a_topic_of_another_size_is_refused(place: Place) -> None:
    """An output topic whose partitions are not as many as the input's is not written to."""
    with place.log("creator") as log:
        log.create_topic(f"{place.topic}-wide", 3)
    wide = json.dumps({"topics": {place.topic: {"output": f"{place.topic}-wide"}}})
    text = place.settings.model_dump_json().replace('"topics":{}', wide[1:-1])
    with (
        place.worker(settings=Settings.model_validate_json(text)) as worker,
        pytest.raises(LogError, match=r"to have 1 partitions, as its input does; it has 3"),
    ):
        worker.join()


def test_a_compacted_input_is_refused(place: Place) -> None:
    """A topic that keeps only the last event of each key would lose the others."""
    with place.log("creator") as log:
        log.create_topic(f"{place.topic}-compacted", 1, compacted=True)
    input_of = '"input":"{}"'.format
    text = place.settings.model_dump_json()
    text = text.replace(input_of(place.topic), input_of(f"{place.topic}-compacted"))
    with (
        place.worker(settings=Settings.model_validate_json(text)) as worker,
        pytest.raises(LogError, match="to keep every event; it is compacted"),
    ):
        worker.join()


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        ({"cleanup.policy": "compact,delete"}, True),
        ({"cleanup.policy": "delete,compact", "retention.ms": "-1", "retention.bytes": "1000"}, True),
        ({"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"}, False),
    ],
)
def test_state_that_expires_is_refused(place: Place, config: dict[str, str], refused: bool) -> None:
    """A state topic that also deletes what is old would lose checkpoints; the advice mends it."""
    admin = AdminClient({"bootstrap.servers": place.bootstrap})

    def configure(entries: dict[str, str]) -> None:
        values = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in entries.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, place.state.topic, incremental_configs=values)
        admin.incremental_alter_configs([resource])[resource].result(30)

    configure({"retention.ms": "604800000"} | config)
    with place.worker() as worker:
        if refused:
            with pytest.raises(LogError, match=r"for good; its .* --add-config cleanup\.policy=compact$"):
                worker.join()
            configure({"cleanup.policy": "compact"})
        worker.join()


@pytest.mark.timeout(200)
def test_brokers_that_are_away(installation: Any, tmp_path: Path) -> None:
    """At the start and in the middle, a worker waits for the brokers, says so, and goes on."""
    with Cluster(installation, tmp_path / "kafka", properties={"log.retention.ms": "-1"}) as cluster:
        place = Place(cluster)
        place.send(20)
        (node,) = cluster.nodes
        node.stop()
        back = threading.Timer(6.0, node.start)
        back.start()
        with place.worker() as worker:
            make_ready(worker)  # waits for the broker
            back.join()
            assert any("waiting for them" in sentence for sentence in place.told)
            finish(worker, 20)
            place.told.clear()
            # The end of the last transaction may be on its way to the offsets. An only node that is killed before
            # that takes it for written when it starts again, and holds those offsets back for ever.
            with place.log("judge") as log:
                assert log.committed(place.source) is not None  # waits for that
            assert place.results()
            node.kill()
            back = threading.Timer(12.0, node.start)
            back.start()
            away_until = time.monotonic() + 12
            while time.monotonic() < away_until:
                worker.run_once()
            back.join()
            assert any("waiting for them" in sentence for sentence in place.told)
            place.send(20)
            until(worker, lambda: examples(worker) == 40 and worker.is_ready, 90)
            worker.commit()
            assert any("answer again" in sentence for sentence in place.told)
            values = place.results()
            assert len(values) == len(set(values))
