"""Reading an embedded log: partitions from positions, in turns, whoever reads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from worker.log.port import LogError, Records, TopicPartition
from worker.log.storage import LogFile, Partition

POLL_SECONDS = 0.02  # between two looks at a log that had nothing; a look costs some 10 us a partition


class Files:
    """The files of one log, in the order in which a topic is looked for."""

    def __init__(self, files: Sequence[LogFile]) -> None:
        self._files = files

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic, in the order of the names."""
        counts: dict[str, int] = {}
        for file in reversed(self._files):
            counts |= file.topics()
        return dict(sorted(counts.items()))

    def find(self, source: TopicPartition) -> Partition:
        """Return a partition as it is now; raise `LogError` where no file has it."""
        for file in self._files:
            partition = file.partition(source)
            if partition is not None:
                return partition
        raise LogError(" and ".join(f"{file.path}: {file.unknown(source)}" for file in self._files))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read everything inside from one and the same state of each file."""
        # Else a cut between the look at the watermarks and the read would pass for a gap.
        with ExitStack() as stack:
            for file in self._files:
                stack.enter_context(file.reading())
            yield

    def close(self) -> None:
        """Close all of them."""
        for file in self._files:
            file.close()


class EmbeddedReader:
    """Reads partitions of an embedded log, which it is closed before; see `Reader`.

    Parameters
    ----------
    files
        Those of the log.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._positions: dict[TopicPartition, int] = {}  # in the order of whose turn it is

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets from now on, and no others.

        Raises
        ------
        LogError
            Where a partition is unknown or a position lies outside its watermarks; then the
            assignment stays what it was.
        """
        with self._files.snapshot():
            for source, position in positions.items():
                _check_position(self._files.find(source), position)
        self._positions = dict(positions)

    def seek(self, source: TopicPartition, position: int) -> None:
        """Read this partition too, from this offset on; errors as in `assign`."""
        self.assign({**self._positions, source: position})

    def leave(self, source: TopicPartition) -> None:
        """Read this partition no more, where it was read."""
        self._positions.pop(source, None)

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
        with self._files.snapshot():
            ready = [found for found in map(self._files.find, self._positions) if self._behind(found)]
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

    def close(self) -> None:
        """Read nothing any more. Closing twice is harmless."""
        self._positions = {}


def _check_position(partition: Partition, position: int) -> None:
    if not partition.low <= position <= partition.high:
        raise LogError(
            f"{partition.source} was to be read from offset {position}; expected one between its low "
            f"watermark {partition.low} (older records are gone) and its high watermark {partition.high}; "
            "start from one of these"
        )
