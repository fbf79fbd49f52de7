"""`bench pipeline --kafka`: what exactly once costs on a real cluster, beside a bare consumer."""

from __future__ import annotations

import itertools
import multiprocessing
import platform
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, Literal

import numpy as np
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from prometheus_client import CollectorRegistry

from worker.bench.pipeline import records
from worker.log.kafka import KafkaLog
from worker.log.port import TopicPartition
from worker.loop import Worker
from worker.settings import CheckpointSettings, KafkaSettings, LogSettings, Settings
from worker.settings.models import SplitSettings
from worker.settings.topics import TopicSettings
from worker.topics import create_topics
from worker.transaction import Transaction
from worker.watching.listener import WorkerListener
from worker.watching.metrics import Metrics
from worker.watching.status import Status, StatusBoard

_LATENCY_SECONDS = 20.0
_LATENCY_CHECKPOINTS = 4

Guarantee = Literal["exactly_once", "at_least_once"]


class Timed(WorkerListener):
    """Keeps how long commits took, and the end-to-end latency of each transaction's oldest record."""

    def __init__(self) -> None:
        super().__init__(Metrics(CollectorRegistry(), "bench"), StatusBoard(Status(0.0)))
        self.commits: list[float] = []
        self.latencies: list[float] = []
        self.pauses: list[float] = []
        self.state_bytes = 0
        self.checkpointed: list[TopicPartition] = []

    def committed(self, transaction: Transaction, seconds: float) -> None:
        """Keep the times of a commit."""
        super().committed(transaction, seconds)
        self.commits.append(seconds)
        self.state_bytes += sum(len(record.value or b"") for record in transaction.state)
        self.checkpointed += transaction.checkpointed
        if transaction.earliest:
            self.latencies.append(time.time() - min(transaction.earliest.values()) / 1000)

    def copied(self, source: TopicPartition, size: int, seconds: float) -> None:
        """Count a checkpoint, and keep for how long the loop stopped for it."""
        self.pauses.append(seconds)
        super().copied(source, size, seconds)


def bench_kafka(
    bootstrap: str,
    forms: Sequence[str],
    events: int,
    repeats: int,
    progress: Callable[[str], None] = lambda step: None,
) -> Iterator[dict[str, Any]]:
    """Yield one line for each form of event, and one for the latency at half of the highest rate.

    Parameters
    ----------
    bootstrap : str
        A cluster for trying things out; topics of new names are created there and stay.
    forms : sequence of str
        Of `worker.bench.forms.IDS`.
    events : int
        Examples in each run.
    repeats : int
        Runs; figures are medians.
    progress : callable
        Called with what is done next.
    """
    fastest = 0.0
    for form in forms:
        topic = f"bench-{form}-{secrets.token_hex(4)}"
        progress(f"{form}: publishing")
        _publish(bootstrap, topic, form, events)
        line: dict[str, Any] = {"bench": "pipeline-kafka", "form": form, "examples": events}
        sides: dict[str, list[float]] = {"bare_consumer": [], "at_least_once": [], "exactly_once": []}
        commits: list[float] = []
        for number in range(repeats):  # in turns, so that a disturbance hits all sides alike
            progress(f"{form}: round {number + 1}")
            sides["bare_consumer"].append(_consume(bootstrap, topic))
            sides["at_least_once"].append(_work(bootstrap, topic, "at_least_once")[0])
            seconds, timed = _work(bootstrap, topic, "exactly_once")
            sides["exactly_once"].append(seconds)
            commits += timed.commits
        for side, seconds_of in sides.items():
            line[f"{side}_per_second"] = round(events / statistics.median(seconds_of))
        line["exactly_once_to_bare"] = round(line["exactly_once_per_second"] / line["bare_consumer_per_second"], 3)
        line |= {f"commit_ms_p{p}": round(float(np.percentile(commits, p)) * 1000, 2) for p in (50, 99)}
        yield line | {"repeats": repeats, "machine": machine()}
        if form != "columns":
            fastest = max(fastest, line["exactly_once_per_second"])
    if fastest:
        progress("latency")
        yield _latency(bootstrap, fastest / 2)


def kafka_settings(bootstrap: str, topic: str, guarantee: Guarantee, checkpoint: CheckpointSettings) -> Settings:
    """Return settings of a new group and of new topics for what it writes."""
    name = secrets.token_hex(4)
    model = SplitSettings(kind="split", input=topic, classes=(0, 1), features="ids")
    own = TopicSettings(
        output=f"{topic}-{name}-out", dead_letters=f"{topic}-{name}-dead", state=f"{topic}-{name}-state"
    )
    return Settings(
        log=LogSettings(kafka=KafkaSettings(bootstrap=bootstrap, instance=name, guarantee=guarantee)),
        group=f"bench-{name}",
        topics={topic: own},
        models={"splits": model},
        checkpoint=checkpoint,
    )


def open_kafka(settings: Settings) -> KafkaLog:
    """Open the log of settings."""
    assert settings.log.kafka is not None
    return KafkaLog(
        settings.log.kafka.resolved(),
        group=settings.group,
        instance=settings.log.kafka.name,
        transactional=settings.log.kafka.guarantee == "exactly_once",
    )


def _publish(bootstrap: str, topic: str, form: str, events: int) -> None:
    with KafkaLog({"bootstrap.servers": bootstrap}, group=topic, instance="publisher") as log:
        log.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "enable.idempotence": True})
    now = int(time.time() * 1000)
    for record in records(form, events, 1):
        while True:
            try:
                producer.produce(topic, record.value, record.key, 0, timestamp=now)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def _consume(bootstrap: str, topic: str) -> float:
    """Return the seconds that a bare consumer takes for all records, reading what the worker reads of each."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bare",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign([Place(topic, 0, 0)])
    started = 0.0
    with closing(consumer):
        while True:
            for message in consumer.consume(1_000, 0.1):
                started = started or time.perf_counter()
                if message.error() is not None:
                    return time.perf_counter() - started
                message.key(), message.value(), message.offset(), message.timestamp(), message.headers()


def _work(bootstrap: str, topic: str, guarantee: Guarantee) -> tuple[float, Timed]:
    """Return the seconds from the first poll of a live worker to its last commit."""
    settings = kafka_settings(bootstrap, topic, guarantee, CheckpointSettings())
    timed = Timed()
    with open_kafka(settings) as log:
        create_topics(log, settings)
        worker = Worker(log, settings, timed)
        source = make_live(worker, topic)
        end = log.watermarks(source).high
        started = time.perf_counter()
        while worker.partitions[source].position < end:
            worker.run_once()
        worker.commit()
        return time.perf_counter() - started, timed


def make_live(worker: Worker, topic: str) -> TopicPartition:
    """Let a worker join and restore the only partition of a topic."""
    worker.join()
    source = TopicPartition(topic, 0)
    while source not in worker.partitions or not worker.partitions[source].is_live:
        worker.run_once()
    return source


def _latency(bootstrap: str, rate: float) -> dict[str, Any]:
    """Return percentiles of the latency at a steady rate, of each transaction's oldest record."""
    topic = f"bench-latency-{secrets.token_hex(4)}"
    interval = int(_LATENCY_SECONDS * 1000 / (_LATENCY_CHECKPOINTS + 1))
    settings = kafka_settings(bootstrap, topic, "exactly_once", CheckpointSettings(interval_ms=interval))
    timed = Timed()
    with open_kafka(settings) as log:
        log.create_topic(topic, 1)
        create_topics(log, settings)
        worker = Worker(log, settings, timed)
        make_live(worker, topic)
        context = multiprocessing.get_context("spawn")
        pace = context.Process(target=publish_steadily, args=(bootstrap, topic, rate, _LATENCY_SECONDS))
        pace.start()
        while pace.is_alive():
            worker.run_once()
        worker.commit()
    consumed = int(rate * _LATENCY_SECONDS)
    line = {f"latency_ms_p{p}": round(float(np.percentile(timed.latencies, p)) * 1000, 1) for p in (50, 99)}
    return {
        "bench": "pipeline-kafka-latency",
        "examples": consumed,
        "examples_per_second": round(rate),
        **line,
        "transactions": len(timed.latencies),
        "checkpoints": len(timed.pauses),
        "machine": machine(),
    }


def publish_steadily(bootstrap: str, topic: str, rate: float, seconds: float) -> None:
    """Publish packed events at a rate, each with the time at which it is sent; a process of its own."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    values = itertools.cycle([record.value for record in records("packed", 20_000, 1)])
    started, sent = time.perf_counter(), 0
    while (passed := time.perf_counter() - started) < seconds:
        due = int(passed * rate) - sent
        for value in itertools.islice(values, due):
            producer.produce(topic, value, b"key-0", 0)
        sent += due
        producer.poll(0)
        time.sleep(0.002)
    producer.flush()


def machine() -> str:
    """Say what the figures were measured on."""
    return f"{platform.machine()} {platform.system()} Python {platform.python_version()}"
