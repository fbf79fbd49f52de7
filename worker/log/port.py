"""The narrow port between the worker and a log; every adapter passes the same contract suite.

A log has topics, a topic has partitions, a partition holds records at rising offsets. Reading is
batched and columnar: one `Records` for each partition that had something, so the hot path handles
lists and arrays, never one object per record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

# In order; a name may occur more than once. Bytes of a name that are no UTF-8 are lone surrogates (PEP 383).
Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Int64s: TypeAlias = npt.NDArray[np.int64]

Metadata: TypeAlias = "str | Mapping[TopicPartition, str]"  # kept with offsets: of all of them, or of each its own
NO_TIMESTAMP = -1  # what a record without a timestamp carries


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


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

    def part(self, start: int, stop: int) -> Records:
        """Return the records from index `start` up to `stop`; a last part keeps `next_offset`."""
        whole = stop >= len(self.keys)
        return Records(
            source=self.source,
            offsets=self.offsets[start:stop],
            timestamps=self.timestamps[start:stop],
            keys=self.keys[start:stop],
            values=self.values[start:stop],
            headers=self.headers[start:stop],
            next_offset=self.next_offset if whole else int(self.offsets[stop - 1]) + 1,
        )


# The most that a record may have of key, value and headers: what is written is cut, or comes in parts. Unless told
# otherwise librdkafka takes 1,000,000 bytes with its framing, and a broker 1,048,588.
LARGEST_RECORD = 980_000


class OutRecord(NamedTuple):
    """A record to be written."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int  # ms since the epoch, at least 1

    @property
    def size(self) -> int:
        """Bytes of key, value and headers."""
        headers = sum(len(name.encode()) + len(content or b"") for name, content in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


class Reader(Protocol):
    """Reads partitions of its own choice. It belongs to no group and commits nothing."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets from now on, and no others.

        Raises `LogError` where a partition is unknown or a position lies outside its watermarks.
        """
        ...

    def poll(self, limit: int, timeout: float) -> list[Records]:
        """Return up to `limit` committed records of the assigned partitions; wait up to `timeout` s for one.

        Partitions take turns, so that a full one cannot starve the rest. An empty list: nothing came.
        """
        ...

    def close(self) -> None:
        """Give back what the reader holds. Closing twice is harmless."""
        ...


class Log(Protocol):
    """What the worker needs of a log. One thread owns it; no method is called from two threads.

    A member of a group is given partitions and loses them again, both inside `poll`. What it was given is
    read only once the member says from where: `start`.
    """

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions the topic has, None where there is no such topic."""
        ...

    def is_compacted(self, topic: str) -> bool:
        """Return whether the log keeps only the last record of each key of this topic."""
        ...

    def expires(self, topic: str) -> bool:
        """Return whether the log deletes records of this topic for their age, or for the size of the topic."""
        ...

    def create_topic(self, topic: str, partitions: int, *, compacted: bool = False) -> None:
        """Create a topic; raise `LogError` where it exists with another number of partitions."""
        ...

    def watermarks(self, source: TopicPartition) -> Watermarks:
        """Return the low and high watermark of a partition, open transactions included."""
        ...

    def committed(self, source: TopicPartition) -> int | None:
        """Return the group's committed offset (the next to be read), None where it has committed none."""
        ...

    def metadata(self, source: TopicPartition) -> str:
        """Return the metadata that was committed with the offset, empty where there is none."""
        ...

    def reader(self) -> Reader:
        """Return a reader of its own positions; the caller closes it."""
        ...

    def join(self, topics: Collection[str], leaving: Callable[[], None]) -> None:
        """Become a member of the group that reads these topics; partitions come in later polls.

        Parameters
        ----------
        topics : collection of str
            Topics that exist.
        leaving : callable
            Called inside `poll` before partitions are given away, while they can still be committed. Not
            called for partitions that are already lost. What it raises, `poll` raises.
        """
        ...

    @property
    def owned(self) -> Mapping[TopicPartition, int] | None:
        """The partitions that the group has given to this member, each with the number of the assignment.

        None while the group shares them out anew, also before the first time: nothing can be committed then.
        The number is another one after each time that a partition was taken and given, even to the same
        member: somebody else may have had it in between.
        """
        ...

    def start(self, source: TopicPartition, offset: int) -> None:
        """Read an owned partition from this offset on."""
        ...

    def stop(self, source: TopicPartition) -> None:
        """Read no more of a partition until it is started again; it stays owned. Harmless where it is not read."""
        ...

    def poll(self, limit: int, timeout: float) -> list[Records]:
        """Return up to `limit` committed records of the started partitions; wait up to `timeout` s for one.

        Partitions take turns, so that a full one cannot starve the rest. An empty list: nothing came.
        """
        ...

    def commit(
        self, outputs: Sequence[OutRecord], offsets: Mapping[TopicPartition, int], metadata: Metadata = ""
    ) -> None:
        """Write the outputs and the consumed offsets in one transaction: all of it, or (on an error) none.

        The metadata is kept with the offsets.

        Raises
        ------
        CommitAborted
            Nothing was written, and the same call may be made again.
        OwnershipLost
            Nothing was written: one of the offsets is no longer this member's to commit.
        LogError
            Nothing was written, and trying again would not help.
        """
        ...

    def close(self) -> None:
        """Leave the group and give back what the log holds. Closing twice is harmless."""
        ...


def metadata_of(source: TopicPartition, metadata: Metadata) -> str:
    """Return what is kept with the offset of a partition."""
    return metadata if isinstance(metadata, str) else metadata[source]


class LogError(Exception):
    """The log refused or failed; the message says what was expected, what came and what to do."""


class CommitAborted(LogError):
    """The transaction was given up by the log, whole; the writer is still the owner and may send it again."""


class OwnershipLost(LogError):
    """The group has given a partition to somebody else; what was to be committed for it is theirs to make."""
