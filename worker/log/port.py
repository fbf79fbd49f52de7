"""The narrow port between the worker and a log; every adapter passes the same contract suite.

A log has topics, a topic has partitions, a partition holds records at rising offsets. Reading is
batched and columnar: one `Records` for each partition that had something, so the hot path handles
lists and arrays, never one object per record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]  # in order; a name may occur more than once
Int64s: TypeAlias = npt.NDArray[np.int64]

NO_TIMESTAMP = -1  # what a record without a timestamp carries


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class Watermarks(NamedTuple):
    """The offsets that bound a partition: `low` is the first one kept, `high` the next to be written."""

    low: int
    high: int


class Records(NamedTuple):
    """Consecutive records of one partition, in columns of equal length, ascending by offset.

    There may be none: then the reader has passed over offsets that hold none, at the end of the partition.
    """

    source: TopicPartition
    offsets: Int64s  # int64[n]; gaps are possible (compaction, control records)
    timestamps: Int64s  # int64[n], ms since the epoch, NO_TIMESTAMP where there is none
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]  # None is a tombstone, b"" an empty value
    headers: Sequence[Headers]
    next_offset: int  # where a reader goes on after these records; what is committed for them


class OutRecord(NamedTuple):
    """A record to be written."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int  # ms since the epoch, at least 1


class Log(Protocol):
    """What the worker needs of a log. One thread owns it; no method is called from two threads."""

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions the topic has, None where there is no such topic."""
        ...

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create a topic; raise `LogError` where it exists with another number of partitions."""
        ...

    def watermarks(self, source: TopicPartition) -> Watermarks:
        """Return the low and high watermark of a partition."""
        ...

    def committed(self, source: TopicPartition) -> int | None:
        """Return the group's committed offset (the next to be read), None where it has committed none."""
        ...

    def note(self, source: TopicPartition) -> str:
        """Return the note that was committed with the offset, an empty one where there is none."""
        ...

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets from now on, and no others."""
        ...

    def poll(self, limit: int, timeout: float) -> list[Records]:
        """Return up to `limit` committed records of the assigned partitions; wait up to `timeout` s for one.

        Partitions take turns, so that a full one cannot starve the rest. An empty list: nothing came.
        """
        ...

    def commit(self, outputs: Sequence[OutRecord], offsets: Mapping[TopicPartition, int], note: str = "") -> None:
        """Write the outputs and the consumed offsets in one transaction: all of it, or (on an error) none.

        The note is kept with each of the offsets. Where another reader of the group has committed an offset
        since this one last asked or committed, nothing is written: `LogError`.
        """
        ...

    def close(self) -> None:
        """Give back what the log holds. Closing twice is harmless."""
        ...


class LogError(Exception):
    """The log refused or failed; the message says what was expected, what came and what to do."""
