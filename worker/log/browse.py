"""Looking through a topic of any log: all its records, the last ones, those still to come."""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from operator import attrgetter
from typing import NamedTuple

from worker.log.bounded import BoundedReader, Stretch
from worker.log.port import Headers, Log, LogError, Reader, Records, TopicPartition, Watermarks

READ_RECORDS = 5_000  # at a time
POLL_SECONDS = 0.25
POLL_TIMEOUT_SECONDS = 5.0  # without a record where there should be some
_WIDEN = 4  # how many times as far back each look at the last records goes as the one before


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
        """The type of result; empty for an input event, whatever headers of its own it has."""
        return (dict(self.headers).get("type") or b"").decode("utf-8", "replace") if self._out_id else ""

    @property
    def model(self) -> str:
        """The model that it is of; empty where it is of none."""
        return self._out_id.partition(":")[0]

    @property
    def event(self) -> str:
        """Model, partition, offset and row that it follows from; empty for an input event."""
        return self._out_id.rpartition(":")[0]

    @property
    def _out_id(self) -> str:
        return (dict(self.headers).get("out_id") or b"").decode("utf-8", "replace")


class Filter(NamedTuple):
    """Which records are wanted; None: any."""

    key: bytes | None = None
    model: str | None = None

    def wants(self, record: Record) -> bool:
        """Return whether a record is of the key and the model."""
        return self.key in (None, record.key) and self.model in (None, record.model)


def partitions_of(log: Log, topic: str, known: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions of a topic; raise `LogError`, which tells the known ones, where there is none."""
    count = log.partitions(topic)
    if count is None:
        raise LogError(
            f"expected a topic of the log ({', '.join(known) or 'none'}), got {topic!r}; name one of these"
        )
    return [TopicPartition(topic, number) for number in range(count)]


class Browser:
    """Looks through what some partitions hold.

    Parameters
    ----------
    log : Log
        Where they are.
    bounds : mapping
        The watermarks of the partitions: what is written later is looked at by `coming` alone.
    wanted : Filter
        Which records to show.
    notify : callable, optional
        Told in a sentence which records cannot be read now.
    """

    def __init__(
        self,
        log: Log,
        bounds: Mapping[TopicPartition, Watermarks],
        wanted: Filter = Filter(),  # noqa: B008 - it is immutable
        notify: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._log = log
        self._bounds = bounds
        self._wanted = wanted
        self._notify = notify

    def scan(self, passed: Callable[[int], None] = lambda offsets: None) -> Iterator[Record]:
        """Yield all records: those of a partition in order, partitions merged by timestamp.

        `passed` is told by and by how many offsets it has gone past since it was last told.
        """
        with closing(self._log.reader()) as reader:
            turns = _Turns(reader)
            each = [self._scan_one(turns, source, passed) for source in self._bounds]
            yield from heapq.merge(*each, key=attrgetter("timestamp"))

    def tail(self, last: int) -> Iterator[Record]:
        """Yield the last of all records, as `scan` would; read from the end backwards, no more than it takes."""
        found: dict[TopicPartition, list[Record]] = {source: [] for source in self._bounds}
        starts = {source: high for source, (_, high) in self._bounds.items()}
        span = last
        with closing(self._log.reader()) as reader:
            while stretches := {
                source: Stretch(max(low, starts[source] - span), starts[source])
                for source, (low, _) in self._bounds.items()
                if starts[source] > low and len(found[source]) < last
            }:
                starts |= {source: stretch.start for source, stretch in stretches.items()}
                before = self._read_all(BoundedReader(reader, stretches))
                found |= {source: before[source] + found[source] for source in before}
                span *= _WIDEN
        merged = heapq.merge(*found.values(), key=attrgetter("timestamp"))
        yield from deque(merged, maxlen=last)

    def coming(self) -> Iterator[Record]:
        """Yield the records from the ends on as they are written, for ever."""
        with closing(self._log.reader()) as reader:
            reader.assign({source: high for source, (_, high) in self._bounds.items()})
            while True:
                for records in reader.poll(READ_RECORDS, POLL_SECONDS):
                    yield from self._rows(records)

    def _scan_one(self, turns: _Turns, source: TopicPartition, passed: Callable[[int], None]) -> Iterator[Record]:
        position, high = self._bounds[source]
        while position < high:
            bounded = turns.of(source, Stretch(position, high))
            batches = self._poll(bounded)
            if not batches:
                return
            for records in batches:
                yield from self._rows(records)
            passed(bounded.positions[source] - position)
            position = bounded.positions[source]

    def _read_all(self, bounded: BoundedReader) -> dict[TopicPartition, list[Record]]:
        """Return all the wanted records of each partition."""
        found: dict[TopicPartition, list[Record]] = {}
        while bounded.remaining and (batches := self._poll(bounded)):
            for records in batches:
                found.setdefault(records.source, []).extend(self._rows(records))
        return found

    def _poll(self, bounded: BoundedReader) -> list[Records]:
        """Return some records, none where nothing comes: then a transaction is open, or no broker answers."""
        deadline = time.monotonic() + POLL_TIMEOUT_SECONDS
        while True:
            batches = bounded.poll(READ_RECORDS, POLL_SECONDS)
            if batches:
                return batches
            if time.monotonic() >= deadline:
                for (topic, number), offset in bounded.remaining.items():
                    self._notify(
                        f"{topic}/{number}: expected records from offset {offset} on, but none came for "
                        f"{POLL_TIMEOUT_SECONDS:.0f} s: a transaction is open there, or no broker answers; "
                        "they are left out, try again later"
                    )
                return []

    def _rows(self, records: Records) -> Iterator[Record]:
        columns = (records.offsets.tolist(), records.timestamps.tolist(), records.keys, records.values)
        for offset, timestamp, key, value, headers in zip(*columns, records.headers, strict=True):
            record = Record(records.source, offset, timestamp, key, value, headers)
            if self._wanted.wants(record):
                yield record


class _Turns:
    """One reader for many partitions, of which one is read at a time: that of whoever asked last."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._source: TopicPartition | None = None
        self._bounded: BoundedReader | None = None

    def of(self, source: TopicPartition, stretch: Stretch) -> BoundedReader:
        """Return what reads this stretch. Where the last turn was the same partition's, it simply goes on."""
        if self._bounded is None or self._source != source:
            self._source = source
            self._bounded = BoundedReader(self._reader, {source: stretch})
        return self._bounded
