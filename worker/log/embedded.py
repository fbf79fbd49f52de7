"""The embedded log: topics, partitions, offsets and transactions in one SQLite file.

It serves the demo, tests, recordings and replays, needs no broker, and keeps every promise of the
port: committed offsets and outputs are written together or not at all, and are seen only then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from worker.log.port import LogError, OutRecord, Records, TopicPartition, Watermarks
from worker.log.storage import OFFSET_BITS, LogFile, Partition, pack_rows

POLL_SECONDS = 0.02  # between two looks at a log that had nothing; a look costs some 10 us a partition


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
    except where `record` kept those of the log that was recorded.
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
        self._files = [self._own, *recordings]  # in the order in which a topic is looked for
        self._group = group
        self._committed: dict[TopicPartition, int | None] = {}  # as last seen
        self._positions: dict[TopicPartition, int] = {}  # in the order of whose turn it is

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic, in the order of the names."""
        counts: dict[str, int] = {}
        for file in reversed(self._files):
            counts |= file.topics()
        return dict(sorted(counts.items()))

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions the topic has, None where there is no such topic."""
        return self.topics().get(topic)

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create a topic; raise `LogError` where it exists with another number of partitions.

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
            self._own.query_many(
                "INSERT OR IGNORE INTO partitions (topic, number) VALUES (?, ?)",
                [(topic, number) for number in range(partitions)],
            )

    def watermarks(self, source: TopicPartition) -> Watermarks:
        """Return the low and high watermark of a partition."""
        partition = self._find(source)
        return Watermarks(partition.low, partition.high)

    def committed(self, source: TopicPartition) -> int | None:
        """Return the group's committed offset (the next to be read), None where it has committed none."""
        offset = self._committed[source] = self._stored(source)[0]
        return offset

    def note(self, source: TopicPartition) -> str:
        """Return the note that was committed with the offset, an empty one where there is none."""
        return self._stored(source)[1]

    def _stored(self, source: TopicPartition) -> tuple[int | None, str]:
        rows = self._own.query(
            "SELECT next_offset, note FROM offsets WHERE grp = ? AND topic = ? AND number = ?",
            (self._group, *source),
        )
        return rows[0] if rows else (None, "")

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets from now on, and no others.

        Raises
        ------
        LogError
            Where a partition is unknown or a position lies outside its watermarks; then the
            assignment stays what it was.
        """
        with self._snapshot():
            for source, position in positions.items():
                _check_position(self._find(source), position)
        self._positions = dict(positions)

    def poll(self, limit: int, timeout: float) -> list[Records]:
        """Return up to `limit` committed records of the assigned partitions; wait up to `timeout` s for one.

        The partitions that have records share the limit evenly, and those that were served go to the
        end of the queue. An empty list: nothing came.
        """
        deadline = time.monotonic() + timeout
        while True:
            batch = self._take(limit)
            left = deadline - time.monotonic()
            if batch or left <= 0:
                return batch
            time.sleep(min(POLL_SECONDS, left))

    def _take(self, limit: int) -> list[Records]:
        taken: list[Records] = []
        with self._snapshot():
            ready = [found for found in map(self._find, self._positions) if self._behind(found)]
            for turn, partition in enumerate(ready):
                share = -(-limit // (len(ready) - turn))  # rounded up, so that a small limit serves someone
                if share <= 0:
                    break
                records = partition.file.read(partition, self._positions[partition.source], share)
                limit -= len(records.keys)
                taken.append(records)
        for records in taken:
            del self._positions[records.source]
            self._positions[records.source] = records.next_offset
        return taken

    def _behind(self, partition: Partition) -> bool:
        position = self._positions[partition.source]
        _check_position(partition, position)
        return position < partition.high

    def commit(self, outputs: Sequence[OutRecord], offsets: Mapping[TopicPartition, int], note: str = "") -> None:
        """Write the outputs and the consumed offsets in one transaction: all of it, or (on an error) none.

        Raises
        ------
        LogError
            Where a topic or partition is unknown, or a timestamp is below 1; where another worker of the group
            has committed one of the offsets since this one last asked or committed.
        """
        with self._own.writing():
            self._own.append(outputs)
            for source in offsets:
                self._find(source)
                self._check_alone(source)
            self._own.query_many(
                "INSERT OR REPLACE INTO offsets (grp, topic, number, next_offset, note) VALUES (?, ?, ?, ?, ?)",
                [(self._group, *source, offset, note) for source, offset in offsets.items()],
            )
        self._committed |= offsets

    def _check_alone(self, source: TopicPartition) -> None:
        """Refuse to go on where somebody else has: this log has no groups that share partitions out."""
        expected, found = self._committed.get(source), self._stored(source)[0]
        if source in self._committed and expected != found:
            raise LogError(
                f"{_name(source)}: expected the committed offset of group {self._group!r} to be {expected}, as "
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
                    f"offsets {offsets[0]} to {records.next_offset} of {_name(partition.source)} "
                    f"were to be recorded; expected none below {partition.high}, where the recording ends, "
                    f"and none above 2^{OFFSET_BITS}; record into a new file"
                )
            low = partition.low if partition.low < partition.high else offsets[0]
            self._own.insert(pack_rows(partition, records))
            self._own.query(
                "UPDATE partitions SET low = ?, high = ? WHERE id = ?",
                (low, records.next_offset, partition.id),
            )

    def read(self, source: TopicPartition, start: int, limit: int) -> Records:
        """Return up to `limit` records from offset `start` on, whatever is assigned; perhaps none."""
        with self._snapshot():
            partition = self._find(source)
            return partition.file.read(partition, max(start, partition.low), limit)

    def truncate(self, source: TopicPartition, low: int) -> None:
        """Drop the records below an offset, as a broker's retention does; raise `LogError` beyond the end."""
        with self._own.writing():
            partition = self._find_own(source)
            if low > partition.high:
                raise LogError(
                    f"{_name(source)} was to be cut below offset {low}; "
                    f"expected at most {partition.high}, where it ends"
                )
            first = partition.id << OFFSET_BITS
            self._own.query("DELETE FROM records WHERE id >= ? AND id < ?", (first, first + low))
            self._own.query("UPDATE partitions SET low = max(low, ?) WHERE id = ?", (low, partition.id))

    def close(self) -> None:
        """Give back the files. Closing twice is harmless."""
        for file in self._files:
            file.close()

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        # Else a cut between the look at the watermarks and the read would pass for a gap.
        with ExitStack() as stack:
            for file in self._files:
                stack.enter_context(file.reading())
            yield

    def _find(self, source: TopicPartition) -> Partition:
        for file in self._files:
            partition = file.partition(source)
            if partition is not None:
                return partition
        raise LogError(" and ".join(f"{file.path}: {file.unknown(source)}" for file in self._files))

    def _find_own(self, source: TopicPartition) -> Partition:
        partition = self._own.partition(source)
        if partition is None:
            raise LogError(f"{self._own.path}: {self._own.unknown(source)}")
        return partition


def _check_position(partition: Partition, position: int) -> None:
    if not partition.low <= position <= partition.high:
        raise LogError(
            f"{_name(partition.source)} was to be read from offset {position}; expected one between its low "
            f"watermark {partition.low} (older records are gone) and its high watermark {partition.high}; "
            "start from one of these"
        )


def _name(source: TopicPartition) -> str:
    return f"{source.topic}/{source.partition}"
