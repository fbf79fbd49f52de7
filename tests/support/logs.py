"""What tests of logs share: records to write, and ways to read until what was written has come."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Protocol, TypeAlias, overload

import pytest

from worker.log.kafka import KafkaLog
from worker.log.port import (
    Headers,
    Log,
    OutRecord,
    Records,
    TopicPartition,
)

TIME_LIMIT = 60.0  # s, for machines that are busy with something else; what is there comes much sooner


Content: TypeAlias = tuple[bytes | None, bytes | None, Headers, int]  # key, value, headers, timestamp


class Opener(Protocol):
    """Opens the log under test once more, as another process would."""

    def __call__(self, group: str = "readers", *, hasty: bool = False) -> Log:
        """Return the log as a member of `group` sees it; a hasty one may be replaced once it sleeps."""
        ...


def kafka_log(
    bootstrap: str,
    group: str,
    instance: str,
    *,
    hasty: bool = False,
    transactional: bool = True,
    notify: Callable[[str], None] = lambda sentence: None,
    **properties: str | int,
) -> KafkaLog:
    """Return a log that hears soon of changes in its group, and is put out of it soon where it is hasty."""
    timeouts = {"heartbeat.interval.ms": 300}
    if hasty:
        timeouts |= {"session.timeout.ms": 1_500, "max.poll.interval.ms": 2_000}
    if properties.get("group_protocol") == "consumer":
        timeouts = {}
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return KafkaLog(
        {"bootstrap.servers": bootstrap, **timeouts, **given},
        group=group,
        instance=instance,
        transactional=transactional,
        notify=notify,
    )


class Interrupted(Sequence[OutRecord]):
    """Outputs that call `interrupt` when the log has taken half of them."""

    def __init__(self, records: Sequence[OutRecord], interrupt: Callable[[], object]) -> None:
        self.records = records
        self.interrupt = interrupt

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> OutRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[OutRecord]: ...
    def __getitem__(self, index: int | slice) -> OutRecord | Sequence[OutRecord]:
        if index == len(self.records) // 2:
            self.interrupt()
        return self.records[index]


def out(
    source: TopicPartition,
    value: bytes | None = b"value",
    *,
    key: bytes | None = b"key",
    headers: Headers = (),
    timestamp: int = 1_700_000_000_000,
) -> OutRecord:
    """Return a record for a partition."""
    return OutRecord(*source, key, value, headers, timestamp)


def numbered(source: TopicPartition, how_many: int) -> list[OutRecord]:
    """Return records whose values are 0, 1, 2, ..."""
    return [out(source, b"%d" % number) for number in range(how_many)]


class Polled(Protocol):
    """Whatever is polled for records: a log, of which something was started, or a reader."""

    def poll(self, limit: int, timeout: float) -> list[Records]:
        """Return up to `limit` records; wait up to `timeout` s for one."""
        ...


def drain(polled: Polled, how_many: int, limit: int = 1_000) -> list[Records]:
    """Poll until so many records have come, and make sure that no more come."""
    batches: list[Records] = []
    deadline = time.monotonic() + TIME_LIMIT
    while sum(len(batch.keys) for batch in batches) < how_many and time.monotonic() < deadline:
        batches += polled.poll(limit, 0.2)
    assert not any(batch.keys for batch in polled.poll(limit, 0.0))
    assert sum(len(batch.keys) for batch in batches) == how_many
    return batches


def contents(batches: Sequence[Records]) -> list[Content]:
    """Return what the records hold, in order."""
    return [
        content
        for batch in batches
        for content in zip(batch.keys, batch.values, batch.headers, batch.timestamps.tolist(), strict=True)
    ]


def values(batches: Sequence[Records]) -> list[bytes | None]:
    """Return the values of the records, in order."""
    return [value for batch in batches for value in batch.values]


def read_all(log: Log, source: TopicPartition, how_many: int) -> list[Content]:
    """Return all that a partition holds, which must be so many records."""
    with closing(log.reader()) as reader:
        reader.assign({source: log.watermarks(source).low})
        return contents(drain(reader, how_many))


def ignore() -> None:
    """Do nothing about partitions that are given away."""


def own(log: Log, *topics: str, leaving: Callable[[], None] = ignore) -> None:
    """Join the group and wait until the log is given all partitions of the topics."""
    wanted = {TopicPartition(topic, number) for topic in topics for number in range(log.partitions(topic) or 0)}
    log.join(topics, leaving)
    deadline = time.monotonic() + TIME_LIMIT
    while set(log.owned or ()) != wanted and time.monotonic() < deadline:
        assert log.poll(10, 0.05) == []
    assert set(log.owned or ()) == wanted


def read_to_the_end(log: Log, polled: Polled, source: TopicPartition) -> list[Records]:
    """Poll until the position in the only partition that is read is its high watermark."""
    batches: list[Records] = []
    deadline = time.monotonic() + TIME_LIMIT
    while time.monotonic() < deadline:
        batches += polled.poll(1_000, 0.2)
        # Asked for each time: that a transaction has ended may be written after the commit has returned.
        if batches and batches[-1].next_offset == log.watermarks(source).high:
            return batches
    pytest.fail("the high watermark was not reached")
