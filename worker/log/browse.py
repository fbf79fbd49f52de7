"""Looking through a topic of an embedded log: all its records, the last ones, those still to come."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from worker.log.embedded import EmbeddedLog
from worker.log.port import Headers, LogError, Records, TopicPartition

READ_RECORDS = 5_000  # at a time
POLL_SECONDS = 0.25


class Record(NamedTuple):
    """A record of the topic. Type and model come from the headers: most records are passed over unread."""

    source: TopicPartition
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def type(self) -> str:
        """The type of result; empty for an input event."""
        return (dict(self.headers).get("type") or b"").decode("utf-8", "replace")

    @property
    def model(self) -> str:
        """The model that it is of; empty where it is of none."""
        return (dict(self.headers).get("out_id") or b"").decode("utf-8", "replace").partition(":")[0]


class Filter(NamedTuple):
    """Which records are wanted; None: any."""

    key: bytes | None
    model: str | None

    def wants(self, record: Record) -> bool:
        """Return whether a record is of the key and the model."""
        return self.key in (None, record.key) and self.model in (None, record.model)


def partitions_of(log: EmbeddedLog, topic: str) -> list[TopicPartition]:
    """Return the partitions of a topic; raise `LogError` where there is none."""
    count = log.partitions(topic)
    if count is None:
        known = ", ".join(log.topics()) or "none"
        raise LogError(f"expected a topic of the log ({known}), got {topic!r}; name one of these")
    return [TopicPartition(topic, number) for number in range(count)]


def scan(log: EmbeddedLog, ends: Mapping[TopicPartition, int], wanted: Filter) -> Iterator[Record]:
    """Yield the records below the ends: each partition's in order, partitions merged by timestamp."""
    each = [_scan_one(log, source, end, wanted) for source, end in ends.items()]
    return heapq.merge(*each, key=attrgetter("timestamp"))


def tail(log: EmbeddedLog, ends: Mapping[TopicPartition, int], wanted: Filter, last: int) -> Iterable[Record]:
    """Return the last of what `scan` yields."""
    return deque(scan(log, ends, wanted), maxlen=last)


def coming(log: EmbeddedLog, ends: Mapping[TopicPartition, int], wanted: Filter) -> Iterator[Record]:
    """Yield the records from the ends on as they are written, for ever."""
    reader = log.reader()
    reader.assign(ends)
    while True:
        for records in reader.poll(READ_RECORDS, POLL_SECONDS):
            yield from filter(wanted.wants, _rows(records))


def _scan_one(log: EmbeddedLog, source: TopicPartition, end: int, wanted: Filter) -> Iterator[Record]:
    position = 0
    while position < end:
        records = log.read(source, position, READ_RECORDS)
        yield from (record for record in _rows(records) if record.offset < end and wanted.wants(record))
        position = records.next_offset


def _rows(records: Records) -> Iterator[Record]:
    columns = (records.offsets.tolist(), records.timestamps.tolist(), records.keys, records.values)
    for offset, timestamp, key, value, headers in zip(*columns, records.headers, strict=True):
        yield Record(records.source, offset, timestamp, key, value, headers)
