"""Two logs side by side: whether their results are the same, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from worker.log.embedded import EmbeddedLog
from worker.log.port import Records, TopicPartition

_CHUNK = 1_000


def first_difference(expected: EmbeddedLog, got: EmbeddedLog, topics: Iterable[str]) -> str | None:
    """Return a sentence about the first record that differs in these topics, None where all are equal.

    Key, value, headers and timestamp of every record count, and the number of records.
    """
    for topic in topics:
        partitions = (expected.partitions(topic), got.partitions(topic))
        if partitions[0] != partitions[1]:
            return f"{topic}: expected {partitions[0]} partitions, got {partitions[1]}"
        for number in range(partitions[0] or 0):
            source = TopicPartition(topic, number)
            pairs = zip(_padded(expected, source), _padded(got, source), strict=False)
            for position, (wanted, came) in enumerate(pairs):
                if wanted == came:
                    if wanted is None:
                        break
                    continue
                return (
                    f"{topic}/{number}, record {position}:\n  expected {_shown(wanted)}\n  got      {_shown(came)}"
                )
    return None


_Row = tuple[bytes | None, bytes | None, object, int]


def _padded(log: EmbeddedLog, source: TopicPartition) -> Iterator[_Row | None]:
    """Yield the records of a partition, then None for ever."""
    start, high = log.watermarks(source)
    while start < high:
        records: Records = log.read(source, start, _CHUNK)
        yield from zip(records.keys, records.values, records.headers, records.timestamps.tolist(), strict=True)
        start = records.next_offset
    while True:
        yield None


def _shown(row: _Row | None) -> str:
    if row is None:
        return "no more records"
    key, value, headers, timestamp = row
    return f"key {key!r}, timestamp {timestamp}, headers {headers!r}, value {value!r}"
