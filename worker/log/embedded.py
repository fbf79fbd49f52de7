"""The embedded log: topics, partitions, offsets and transactions in one SQLite file.

It serves the demo, tests, recordings and replays, needs no broker, and keeps every promise of the
port: committed offsets and outputs are written together or not at all, and are seen only then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from worker.log.embedded_reader import EmbeddedReader, Files
from worker.log.port import (
    LogError,
    Metadata,
    OutRecord,
    OwnershipLost,
    Records,
    TopicPartition,
    Watermarks,
    metadata_of,
)
from worker.log.rows import OFFSET_BITS, pack_rows
from worker.log.storage import LogFile, Partition


class EmbeddedLog:
    """A log in one file, behind the port `Log`.

    Parameters
    ----------
    path
        The file that holds the topics and the committed offsets, and takes all that is written.
    group
        The name under which offsets are committed.
    source
        A recording to read from, never changed: topics that `path` does not hold are read from there.
        A topic that both hold is the one in `path`.
    create
        Whether to make the file at `path` where there is none.

    Raises
    ------
    LogError
        Where a file is missing, is no log, or comes from a newer version; where `source` is `path`.

    Notes
    -----
    Any number of processes may read while one writes; writers take turns. Offsets have no gaps,
    except where `record` kept those of the log that was recorded, and in compacted topics.

    There is no protocol that shares partitions out: each member of a group owns all of them, and of two
    members the one that commits too late is told to end.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        group: str = "anabranch",
        source: str | os.PathLike[str] | None = None,
        create: bool = True,
    ) -> None:
        own = Path(path)
        if source is not None and own.exists() and own.samefile(source):
            raise LogError(f"{own}: is the recording itself, which is only read; give the results another file")
        recordings = [] if source is None else [LogFile(Path(source), "ro")]
        try:
            self._own = LogFile(own, "rwc" if create else "rw")
        except BaseException:
            for recording in recordings:
                recording.close()
            raise
        self._files = Files([self._own, *recordings])
        self._started = EmbeddedReader(self._files)
        self._owned: dict[TopicPartition, int] | None = None
        self._replaced = False  # by another member of the group
        self._group = group
        self._committed: dict[TopicPartition, int | None] = {}  # as last seen

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic, in the order of the names."""
        return self._files.topics()

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions the topic has, None where there is no such topic."""
        return self.topics().get(topic)

    def is_compacted(self, topic: str) -> bool:
        """Return whether the log keeps only the last record of each key of this topic."""
        return self._files.find(TopicPartition(topic, 0)).file.is_compacted(topic)

    def expires(self, topic: str) -> bool:
        """Return whether the log deletes old records of this topic by itself: it never does."""
        self._files.find(TopicPartition(topic, 0))
        return False

    def create_topic(self, topic: str, partitions: int, *, compacted: bool = False) -> None:
        """Create a topic; raise `LogError` where it exists with another number of partitions, or not compacted.

        A topic that only the recording holds is made anew, empty, in the log's own file.
        """
        if partitions < 1:
            raise LogError(f"topic {topic!r} was to have {partitions} partitions; expected at least 1")
        with self._own.writing():
            count = self.partitions(topic)
            if count is not None and count != partitions:
                raise LogError(
                    f"topic {topic!r} was to have {partitions} partitions, but it exists with {count}; "
                    f"ask for {count}, or use another topic"
                )
            if compacted and topic not in self._own.topics():
                self._own.compact(topic)
            if compacted and not self._own.is_compacted(topic):
                raise LogError(f"topic {topic!r} was to be compacted, but it exists and is not; use another topic")
            self._own.query_many(
                "INSERT OR IGNORE INTO partitions (topic, number) VALUES (?, ?)",
                [(topic, number) for number in range(partitions)],
            )

    def watermarks(self, source: TopicPartition) -> Watermarks:
        """Return the low and high watermark of a partition."""
        partition = self._files.find(source)
        return Watermarks(partition.low, partition.high)

    def committed(self, source: TopicPartition) -> int | None:
        """Return the group's committed offset (the next to be read), None where it has committed none."""
        offset = self._committed[source] = self._stored(source)[0]
        return offset

    def metadata(self, source: TopicPartition) -> str:
        """Return the metadata that was committed with the offset, empty where there is none."""
        return self._stored(source)[1]

    def _stored(self, source: TopicPartition) -> tuple[int | None, str]:
        rows = self._own.query(
            "SELECT next_offset, note FROM offsets WHERE grp = ? AND topic = ? AND number = ?",
            (self._group, *source),
        )
        return rows[0] if rows else (None, "")

    def reader(self) -> EmbeddedReader:
        """Return a reader of its own positions."""
        return EmbeddedReader(self._files)

    def join(self, topics: Collection[str], leaving: Callable[[], None]) -> None:  # noqa: ARG002
        """Become the owner of all partitions of these topics. `leaving` is never called: nothing takes them away.

        Raises `LogError` where a topic is unknown.
        """
        owned: dict[TopicPartition, int] = {}
        for topic in topics:
            self._files.find(TopicPartition(topic, 0))
            owned |= {TopicPartition(topic, number): 1 for number in range(self.topics()[topic])}
        self._owned = owned

    @property
    def owned(self) -> Mapping[TopicPartition, int] | None:
        """The partitions of the topics joined, each with the number 1; None before that."""
        return self._owned

    def start(self, source: TopicPartition, offset: int) -> None:
        """Read an owned partition from this offset on.

        Raises `LogError` where it is not owned, or the offset lies outside its watermarks.
        """
        if source not in (self._owned or ()):
            raise LogError(f"{source} was to be read, but is not owned; join its topic")
        self._started.seek(source, offset)

    def stop(self, source: TopicPartition) -> None:
        """Read no more of a partition until it is started again."""
        self._started.leave(source)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets from now on, and no others, as `EmbeddedReader.assign` does."""
        self._started.assign(positions)

    def poll(self, limit: int, timeout: float) -> list[Records]:
        """Return up to `limit` committed records of the started partitions; wait up to `timeout` s for one.

        Raises `LogError` where another member of the group has taken over: there is nothing to wait for.
        """
        if self._replaced:
            raise LogError(f"another worker of the group {self._group!r} is running on this log; stop one of them")
        return self._started.poll(limit, timeout)

    def commit(
        self, outputs: Sequence[OutRecord], offsets: Mapping[TopicPartition, int], metadata: Metadata = ""
    ) -> None:
        """Write the outputs and the consumed offsets in one transaction: all of it, or (on an error) none.

        Raises
        ------
        OwnershipLost
            Where another member of the group has committed one of the offsets since this one last asked or
            committed; where the log has joined the group and does not own one of them.
        LogError
            Where a topic or partition is unknown, a timestamp is below 1, or a record of a compacted topic has
            no key.
        """
        with self._own.writing():
            self._own.append(outputs)
            for source in offsets:
                self._files.find(source)
                self._check_owned(source)
            self._own.query_many(
                "INSERT OR REPLACE INTO offsets (grp, topic, number, next_offset, note) VALUES (?, ?, ?, ?, ?)",
                [
                    (self._group, *source, offset, metadata_of(source, metadata))
                    for source, offset in offsets.items()
                ],
            )
        self._committed |= offsets

    def _check_owned(self, source: TopicPartition) -> None:
        if self._owned is not None and source not in self._owned:
            raise OwnershipLost(f"{source} was to be committed, but is not owned; join its topic")
        expected, found = self._committed.get(source), self._stored(source)[0]
        if source in self._committed and expected != found:
            self._replaced = True
            raise OwnershipLost(
                f"{source}: expected the committed offset of group {self._group!r} to be {expected}, as "
                f"this worker left it, found {found}: another worker of the group is running; stop one of them"
            )

    def append(self, records: Iterable[OutRecord]) -> int:
        """Write records in a transaction of their own and return how many; errors as in `commit`."""
        with self._own.writing():
            return self._own.append(records)

    def record(self, records: Records) -> None:
        """Write records of another log as they are, offsets and gaps included, in a transaction of their own.

        Raises
        ------
        LogError
            Where the topic is unknown, or the offsets do not go on from what the partition holds.
        """
        with self._own.writing():
            partition = self._find_own(records.source)
            offsets = [*records.offsets.tolist(), records.next_offset]
            if offsets[0] < partition.high or records.next_offset >> OFFSET_BITS:
                raise LogError(
                    f"offsets {offsets[0]} to {records.next_offset} of {partition.source} "
                    f"were to be recorded; expected none below {partition.high}, where the recording ends, "
                    f"and none above 2^{OFFSET_BITS}; record into a new file"
                )
            low = partition.low if partition.low < partition.high else offsets[0]
            self._own.insert(pack_rows(partition.id, records))
            self._own.query(
                "UPDATE partitions SET low = ?, high = ? WHERE id = ?",
                (low, records.next_offset, partition.id),
            )

    def read(self, source: TopicPartition, start: int, limit: int) -> Records:
        """Return up to `limit` records from offset `start` on, whatever is being polled; perhaps none."""
        with self._files.snapshot():
            partition = self._files.find(source)
            return partition.file.read(partition, max(start, partition.low), limit)

    def truncate(self, source: TopicPartition, low: int) -> None:
        """Drop the records below an offset, as a broker's retention does; raise `LogError` beyond the end."""
        with self._own.writing():
            partition = self._find_own(source)
            if low > partition.high:
                raise LogError(
                    f"{source} was to be cut below offset {low}; expected at most {partition.high}, where it ends"
                )
            self._own.forget(partition, low)

    def close(self) -> None:
        """Give back the files. Closing twice is harmless."""
        self._owned = None
        self._files.close()

    def _find_own(self, source: TopicPartition) -> Partition:
        partition = self._own.partition(source)
        if partition is None:
            raise LogError(f"{self._own.path}: {self._own.unknown(source)}")
        return partition
