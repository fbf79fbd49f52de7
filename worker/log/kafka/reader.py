"""A reader of partitions of its own choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import confluent_kafka as client
from confluent_kafka import Consumer

from worker.log.kafka.closing import close_within
from worker.log.kafka.errors import Needed, as_log_errors
from worker.log.kafka.outage import Outage
from worker.log.kafka.reading import Reading
from worker.log.port import Records, TopicPartition


class KafkaReader:
    """Reads partitions of a Kafka cluster; see `Reader`.

    Parameters
    ----------
    consumer : Consumer
        One of its own, of no use to a group.
    outage : Outage
        What to do where no broker answers.
    needed : Needed
        What it must be allowed to do besides reading topics.
    check : callable
        Raises `LogError` where positions lie outside the watermarks.
    """

    def __init__(
        self,
        consumer: Consumer,
        outage: Outage,
        needed: Needed,
        check: Callable[[dict[TopicPartition, int]], None],
    ) -> None:
        self._consumer = consumer
        self._reading = Reading(consumer, outage, needed)
        self._check = check
        self._closed = False

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets from now on, and no others.

        Raises
        ------
        LogError
            Where a partition is unknown or a position lies outside its watermarks; then the
            assignment stays what it was.
        """
        self._check(dict(positions))
        with as_log_errors("partitions to be read"):
            self._consumer.assign([client.TopicPartition(*source, offset) for source, offset in positions.items()])
        self._reading.positions = dict(positions)

    def poll(self, limit: int, timeout: float) -> list[Records]:
        """Return up to `limit` committed records of the assigned partitions; wait up to `timeout` s for one."""
        return self._reading.poll(limit, timeout)

    def close(self) -> None:
        """Give back the connections. Closing twice is harmless."""
        if not self._closed:
            self._closed = True
            close_within(self._consumer.close)
