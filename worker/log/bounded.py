"""Reading partitions up to given ends, of any log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from worker.log.port import Reader, Records, TopicPartition

NO_END = (1 << 63) - 1  # an offset that no partition comes to


class Stretch(NamedTuple):
    """A piece of a partition."""

    start: int  # the first offset
    end: int  # the one to stop at; it may lie ahead of where the partition ends


class BoundedReader:
    """Reads each partition from one offset up to another one.

    Parameters
    ----------
    reader : Reader
        Whose assignment it takes over; the caller closes it.
    stretches : mapping
        What to read of each partition; the start lies within its watermarks.
    before : int, optional
        A time in ms since the epoch: a partition also stops at its first record of this time or later.

    Attributes
    ----------
    positions : dict
        The next offset of each partition.
    """

    def __init__(
        self, reader: Reader, stretches: Mapping[TopicPartition, Stretch], before: int | None = None
    ) -> None:
        self._reader = reader
        self._ends = {source: stretch.end for source, stretch in stretches.items()}
        self._before = before
        self.positions = {source: stretch.start for source, stretch in stretches.items()}
        self._assign()

    @property
    def remaining(self) -> dict[TopicPartition, int]:
        """The partitions that are not at their ends yet, each with its next offset."""
        return {source: at for source, at in self.positions.items() if at < self._ends[source]}

    def poll(self, limit: int, timeout: float) -> list[Records]:
        """Return up to `limit` records below the ends; wait up to `timeout` s for one."""
        wanted, left_over = [], False
        for records in self._reader.poll(limit, timeout):
            source = records.source
            if self.positions[source] >= self._ends[source]:
                left_over = True
                continue
            records = self._up_to_the_end(records)
            self.positions[source] = records.next_offset
            wanted.append(records)
        if left_over:  # not as soon as a partition is done: what was fetched of the others would be fetched again
            self._assign()
        return wanted

    def _assign(self) -> None:
        self._reader.assign(self.remaining)

    def _up_to_the_end(self, records: Records) -> Records:
        source = records.source
        if self._before is not None:
            late = np.flatnonzero(records.timestamps >= self._before)
            if late.size:
                self._ends[source] = min(self._ends[source], int(records.offsets[late[0]]))
        return below(records, self._ends[source])


def below(records: Records, end: int) -> Records:
    """Return those of the records whose offsets are below `end`, as which they also go on at most there."""
    if records.next_offset <= end:
        return records
    count = int(np.searchsorted(records.offsets, end))
    return Records(
        source=records.source,
        offsets=records.offsets[:count],
        timestamps=records.timestamps[:count],
        keys=records.keys[:count],
        values=records.values[:count],
        headers=records.headers[:count],
        next_offset=end,
    )
