"""Handing records to a producer, and what became of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from worker.log.kafka.errors import Needed, Verdict, explain, verdict
from worker.log.kafka.names import names_of_any_bytes
from worker.log.port import Headers, LogError, OutRecord, TopicPartition

_DROPPED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
_FULL_SECONDS = 0.1  # to wait for room in the client's queue, before looking again


def flush(producer: Producer, seconds: float) -> None:
    """Wait until all records have arrived or failed; raise `KafkaException` where that takes longer."""
    if producer.flush(seconds):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


class Failure(NamedTuple):
    """A record that did not arrive."""

    error: Any
    target: TopicPartition
    size: int  # bytes of key and value


class Sender:
    """Hands records to a producer and keeps the failures that it reports.

    Parameters
    ----------
    expect : callable
        Raises `LogError` where there is no such partition.
    expect_still : callable
        Raises `LogError` where topics are gone that were there before.
    """

    def __init__(self, expect: Callable[[TopicPartition], None], expect_still: Callable[[set[str]], None]) -> None:
        self._expect = expect
        self._expect_still = expect_still
        self._known: set[TopicPartition] = set()
        self._failures: list[Failure] = []

    def on_delivery(self, error: Any, message: Any) -> None:
        """Take note of a failure; called by the producer, which does not survive exceptions in here.

        Of what a commit has dropped the reports may come during the next commit, to which they mean nothing.
        """
        if error.code() in _DROPPED:
            return
        size = len(message.key() or b"") + len(message.value() or b"")
        self._failures.append(Failure(error, TopicPartition(message.topic(), message.partition()), size))

    def send(self, producer: Producer, outputs: Sequence[OutRecord]) -> None:
        """Hand over the records; `failure` tells later what became of them.

        Raises
        ------
        LogError
            Where a topic or partition is unknown, a timestamp is below 1, or a record is too large.
        KafkaException
            Where the producer takes no records.
        """
        self._failures.clear()
        for topic, partition, key, value, headers, timestamp in outputs:
            target = TopicPartition(topic, partition)
            self.expect(target)
            if timestamp < 1:  # 0 means now to the client
                raise LogError(
                    f"a record for {topic}/{partition} has timestamp {timestamp}; "
                    "expected ms since the epoch, at least 1; set one"
                )
            while True:
                try:
                    _produce(producer, target, key, value, headers, timestamp)
                except BufferError:
                    producer.poll(_FULL_SECONDS)
                except KafkaException as failure:
                    error = failure.args[0]
                    if error.code() != KafkaError._STATE:  # that follows from a record before, which has a report
                        self._failures.append(Failure(error, target, len(key or b"") + len(value or b"")))
                    raise
                else:
                    break

    def expect(self, target: TopicPartition) -> None:
        """Raise `LogError` where there is no such partition. The client would wait for it, 30 s by default."""
        if target not in self._known:
            self._expect(target)
            self._known.add(target)

    def look(self) -> None:
        """Raise `LogError` where a topic is gone; the client would wait for it, a minute by default."""
        self._expect_still({target.topic for target in self._known})

    def refusal(self) -> str | None:
        """Return why a record was refused for good, None where none was."""
        refused = [failure for failure in self._failures if verdict(failure.error) is Verdict.REFUSED]
        if not refused:
            return None
        # All records of a batch share its fate, and a large one is the likeliest reason.
        error, (topic, partition), size = max(refused, key=attrgetter("size"))
        needed = Needed("Write", "topic", topic)
        return f"a record for {topic}/{partition} of {size:,} bytes was refused: {explain(error, needed)}"

    def failed(self) -> str | None:
        """Return what kept a record from arriving, None where all have."""
        return explain(self._failures[0].error) if self._failures else None

    def forget(self) -> None:
        """Look anew for the topics to send to: one of them may be gone."""
        self._known.clear()


def _produce(
    producer: Producer,
    target: TopicPartition,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
    timestamp: int,
) -> None:
    def produce() -> None:
        producer.produce(
            target.topic,
            value,
            key,
            target.partition,
            timestamp=timestamp,
            headers=list(headers) if headers else None,
        )

    if all(name.isascii() for name, _ in headers):  # as those of all results
        produce()
    else:
        with names_of_any_bytes():
            produce()
