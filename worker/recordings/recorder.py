"""Topics of a log, copied into a recording: an embedded log with the same partitions, offsets and gaps.

A recording can be gone on with at any time: where each partition stands is what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from worker.log.bounded import NO_END, BoundedReader, Stretch
from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, LogError, Reader, Records, TopicPartition

_BATCH = 5_000  # records at a time
_WAIT_SECONDS = 0.2  # for records; so long may a signal be kept waiting

Beginning: TypeAlias = Literal["earliest", "latest"] | int


class Until(NamedTuple):
    """How far each partition is recorded: up to the end that it has at the start, or less, or on and on."""

    offset: int | None = None  # the first one to be left out
    time: int | None = None  # ms since the epoch; up to the partition's first record of this time or later
    follows: bool = False  # go on beyond the end


def partitions_of(log: Log, topics: Collection[str]) -> dict[str, int]:
    """Return how many partitions each topic has; raise `LogError` where there is no such topic."""
    counts = {}
    for topic in topics:
        count = log.partitions(topic)
        if count is None:
            raise LogError(
                f"expected the topic {topic!r}, to be recorded; there is none in the log; check the name"
            )
        counts[topic] = count
    return counts


def plan(
    log: Log, recording: EmbeddedLog, topics: Mapping[str, int], beginning: Beginning, until: Until
) -> dict[TopicPartition, Stretch]:
    """Return what there is to record of each partition, and prepare the recording for it.

    Parameters
    ----------
    log : Log
        What is recorded. It is only looked at.
    recording : EmbeddedLog
        Where to. It gets the topics that it does not have yet.
    topics : mapping
        What is wanted, as `partitions_of` returns it.
    beginning : "earliest", "latest" or int
        Where a topic begins that the recording does not have yet; the others go on where they end.
    until : Until
        How far it goes.

    Raises
    ------
    LogError
        Where a topic has another number of partitions than in the recording, or no longer has the records
        with which the recording would go on.
    """
    new = {topic: count for topic, count in topics.items() if _held(recording, topic, count) is None}
    stretches = {}
    for topic, count in topics.items():
        for number in range(count):
            source = TopicPartition(topic, number)
            start = _first(log, source, beginning) if topic in new else _next(log, recording, source)
            stretches[source] = Stretch(start, _end(log, source, until))
    for topic, count in new.items():
        recording.create_topic(topic, count)
        for number in range(count):
            source = TopicPartition(topic, number)
            _begin(recording, source, stretches[source].start)
    return stretches


def copy(
    reader: Reader,
    recording: EmbeddedLog,
    stretches: Mapping[TopicPartition, Stretch],
    until: Until,
    stop: Callable[[], bool],
) -> Iterator[tuple[list[Records], dict[TopicPartition, int]]]:
    """Write the records as they come, until all are there or `stop` says so.

    Yields
    ------
    list of Records
        Those that were written; empty where none came for a moment.
    dict
        The partitions of which more is wanted, with the next offset of each.
    """
    bounded = BoundedReader(reader, stretches, until.time)
    while bounded.remaining and not stop():
        batches = bounded.poll(_BATCH, _WAIT_SECONDS)
        for records in batches:
            recording.record(records)
        yield batches, bounded.remaining


def _held(recording: EmbeddedLog, topic: str, count: int) -> int | None:
    """Return how many partitions the topic has in the recording; raise where it is another number."""
    held = recording.partitions(topic)
    if held not in (None, count):
        raise LogError(
            f"expected the topic {topic!r} to have {held} partitions, as in the recording; it has {count}, and "
            "keys have moved to others of them; record into a new file"
        )
    return held


def _first(log: Log, source: TopicPartition, beginning: Beginning) -> int:
    low, high = log.watermarks(source)
    match beginning:
        case "earliest":
            return low
        case "latest":
            return high
    if not low <= beginning <= high:
        raise LogError(
            f"{source.topic}/{source.partition} was to be recorded from offset {beginning}; expected one from "
            f"{low} (older records are gone) to {high}, where it ends; name one of these, or earliest or latest"
        )
    return beginning


def _next(log: Log, recording: EmbeddedLog, source: TopicPartition) -> int:
    low, high = log.watermarks(source)
    offset = recording.watermarks(source).high
    name = f"{source.topic}/{source.partition}"
    if offset < low:
        raise LogError(
            f"{name}: expected to go on at offset {offset}, where the recording ends, but the log has dropped "
            f"what lies below {low} (retention); record into a new file, and more often than records are dropped"
        )
    if offset > high:
        raise LogError(
            f"{name}: expected to go on at offset {offset}, where the recording ends, but the topic ends at "
            f"{high}: it is not the one that was recorded; record into a new file"
        )
    return offset


def _end(log: Log, source: TopicPartition, until: Until) -> int:
    high = NO_END if until.follows else log.watermarks(source).high
    return high if until.offset is None else min(high, until.offset)


def _begin(recording: EmbeddedLog, source: TopicPartition, offset: int) -> None:
    """Let an empty partition end where it is to begin, so that the next run goes on from there."""
    none = np.array([], np.int64)
    recording.record(Records(source, none, none, [], [], [], offset))
