"""Reading started partitions with a consumer, whoever chose them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import confluent_kafka as client
from confluent_kafka import Consumer, KafkaError, KafkaException

from worker.log.kafka.columns import to_records
from worker.log.kafka.errors import MISSING, Fenced, Needed, Verdict, explain, verdict
from worker.log.kafka.outage import Outage
from worker.log.port import LogError, Records, TopicPartition

GONE_SECONDS = 10.0  # after which a topic that a broker does not know is taken for deleted
_LOOK_SECONDS = 1.0  # between two looks whether the brokers are back


class Reading:
    """Polls a consumer. Records of partitions that are not in `positions` are dropped.

    Parameters
    ----------
    consumer : Consumer
        Whose partitions are assigned by others.
    outage : Outage
        Told where the brokers do not answer, and where they do.
    needed : Needed
        What it must be allowed to do besides reading topics.

    Attributes
    ----------
    positions : dict
        The next offset of each partition that is read.
    """

    def __init__(self, consumer: Consumer, outage: Outage, *needed: Needed) -> None:
        self._consumer = consumer
        self._outage = outage
        self._needed = needed
        self._looked = 0.0
        self.positions: dict[TopicPartition, int] = {}

    def poll(self, limit: int, timeout: float, check: Callable[[], None] = lambda: None) -> list[Records]:
        """Return up to `limit` records; wait up to `timeout` s for one.

        The partitions come as the brokers send them, which is in turns of at most `max.partition.fetch.bytes`.
        `check` is called after whatever the client did meanwhile. Where it raises, nothing was read.
        """
        deadline = time.monotonic() + timeout
        while True:
            left = max(0.0, deadline - time.monotonic())
            messages = self._take(limit, left)
            try:
                check()
            except BaseException:
                self._rewind()
                raise
            batches = self._sorted(messages)
            self._look()
            if batches or left <= 0:
                return batches

    def _take(self, limit: int, timeout: float) -> list[Any]:
        # A call with both a limit and a timeout waits for all of the limit, or all of the timeout.
        try:
            messages: list[Any] = self._consumer.consume(limit, 0.0)
            if not messages and timeout > 0:
                messages = self._consumer.consume(1, timeout)
                if messages and limit > 1:
                    messages += self._consumer.consume(limit - 1, 0.0)
        except RuntimeError as error:
            raise LogError("the log is closed; open it again") from error
        return messages

    def _rewind(self) -> None:
        for source, position in self.positions.items():
            self._consumer.seek(client.TopicPartition(*source, position))

    def _sorted(self, messages: Sequence[Any]) -> list[Records]:
        found: dict[tuple[str, int], list[Any]] = defaultdict(list)
        ends: dict[tuple[str, int], int] = {}
        for message in messages:
            error = message.error()
            if error is None:
                found[message.topic(), message.partition()].append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ends[message.topic(), message.partition()] = message.offset()
                found[message.topic(), message.partition()] += ()
            elif error.code() != KafkaError._AUTO_OFFSET_RESET or self._reads(message):
                self._judge(message, error)
        if found:
            self._outage.over()
        batches = []
        for key, some in found.items():
            source = TopicPartition(*key)
            position = self.positions.get(source)
            if position is None:
                continue
            # Beyond the last record there may be offsets without one, which only the end tells of.
            next_offset = max(some[-1].offset() + 1 if some else position, ends.get(key, position))
            if next_offset > position:
                self.positions[source] = next_offset
                batches.append(to_records(source, some, next_offset))
        return batches

    def _reads(self, message: Any) -> bool:
        # A partition that is assigned and not started yet may be looked at for a moment, at offset 0.
        return TopicPartition(message.topic(), message.partition()) in self.positions

    def _judge(self, message: Any, error: Any) -> None:
        match verdict(error):
            case Verdict.WAIT:
                self._outage.seen(explain(error))
            case Verdict.LOST | Verdict.STALE:
                pass  # the group tells by taking the partitions away
            case Verdict.REFUSED if error.code() in MISSING and self._turns_up(message.topic()):
                pass
            case Verdict.FENCED:
                raise Fenced(
                    f"another process is in the group under the name of this instance ({explain(error)}); stop "
                    "one of them, or give each a name of its own; the group lets go of a dead one by and by"
                )
            case _:
                where = (
                    f"{message.topic()}/{message.partition()}, offset {message.offset()}: "
                    if message.topic()
                    else ""
                )
                needed = (Needed("Read", "topic", message.topic()), *self._needed)
                raise LogError(f"{where}{explain(error, *needed)}")

    def _turns_up(self, topic: str | None) -> bool:
        """Return whether a topic is there after all: not every broker has heard of a new one at once."""
        deadline = time.monotonic() + GONE_SECONDS
        while topic is not None and time.monotonic() < deadline:
            with suppress(KafkaException):
                found = self._consumer.list_topics(topic, timeout=1.0).topics[topic]
                if found.error is None and found.partitions:
                    return True
            time.sleep(0.1)
        return False

    def _look(self) -> None:
        """In an outage, ask from time to time whether it is over: an idle partition would not tell."""
        self._outage.check()
        now = time.monotonic()
        if self._outage.lasts and now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            try:
                self._consumer.list_topics(timeout=0.1)
            except KafkaException as failure:
                self._outage.seen(explain(failure.args[0]))
            else:
                self._outage.over()
