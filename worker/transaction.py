"""What has been processed and not yet committed: outputs, state and offsets, written together or not at all."""

from __future__ import annotations

import math
from collections.abc import Sequence

from worker.log.port import Log, Metadata, OutRecord, Records, TopicPartition
from worker.settings import TransactionSettings


class Transaction:
    """The open transaction. It becomes due by age, by records or by bytes, whichever comes first."""

    def __init__(self, limits: TransactionSettings) -> None:
        self._limits = limits
        self.outputs: list[OutRecord] = []
        self.state: list[OutRecord] = []  # of checkpoints
        self.checkpointed: list[TopicPartition] = []  # whose checkpoints are complete with it
        self.offsets: dict[TopicPartition, int] = {}  # the next one to be read, by input partition
        self.earliest: dict[str, int] = {}  # least record timestamp, by input topic
        self.records = 0  # consumed
        self._bytes = 0  # consumed
        self.due_at = math.inf  # on the clock of `add`

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.offsets

    @property
    def room(self) -> int:
        """How many records may still be consumed before it is due."""
        return self._limits.records - self.records

    def add(self, records: Records, outputs: Sequence[OutRecord], now: float) -> None:
        """Take in a batch and what it led to."""
        self._begin(now)
        topic = records.source.topic
        earliest = int(records.timestamps.min())
        self.earliest[topic] = min(earliest, self.earliest.get(topic, earliest))
        self.outputs += outputs
        self.offsets[records.source] = records.next_offset
        self.records += len(records.values)
        self._bytes += sum(map(len, filter(None, records.values)))

    def add_state(
        self, source: TopicPartition, offset: int, state: Sequence[OutRecord], now: float, *, completes: bool
    ) -> None:
        """Take in records of a partition's checkpoint, with its offset: only its owner can commit that.

        It is due at once: the next share waits for that.
        """
        self._begin(now)
        self.due_at = now
        if completes:
            self.checkpointed.append(source)
        self.state += state
        self.offsets[source] = offset

    def _begin(self, now: float) -> None:
        if self.is_empty:
            self.due_at = now + self._limits.interval_ms / 1000

    def is_due(self, now: float) -> bool:
        """Return whether it should be committed now."""
        return not self.is_empty and (now >= self.due_at or self.room <= 0 or self._bytes >= self._limits.bytes)

    def commit(self, log: Log, metadata: Metadata) -> None:
        """Write outputs, state and offsets; on an error none is written, and it may be tried again."""
        log.commit([*self.outputs, *self.state], self.offsets, metadata)
