"""When a partition is checkpointed, and what is written for it: pages, manifests, the record, tombstones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from worker.checkpoint.keys import (
    PIECE_BYTES,
    SCHEMA,
    CheckpointRecord,
    Key,
    ManifestEntry,
    digest,
)
from worker.checkpoint.reader import Saved
from worker.checkpoint.shadow import Models, Page, Shadow
from worker.log.port import OutRecord, TopicPartition
from worker.settings import CheckpointSettings

_RESERVE_SECONDS = 0.01  # for which the loop may stop to take memory, each turn
SHARE_BYTES = 2_000_000  # in one transaction: some tens of milliseconds, for which results do not wait longer


class Stage(Enum):
    """Where a checkpointer is; each stage is followed by the next, and the last by the first."""

    WAITING = "waiting"  # until the next one is due
    RESERVING = "reserving"  # memory for what has grown
    READY = "ready"  # to copy the models
    WRITING = "writing"  # what was copied


@dataclass(frozen=True)
class Identity:
    """What a checkpoint says of where it comes from."""

    partitions: int  # that the input topic has
    settings: str  # note of the epoch
    version: str  # of Anabranch
    group: str = ""


class Checkpointer:
    """The checkpoints of one partition, as long as one worker owns it.

    A lineage is part of the name of all that is written. A checkpoint builds on the pages that earlier ones
    of its lineage wrote. Where the log shuts out a worker that lost the partition (exactly once), the lineage
    passes from owner to owner; where it does not, each owner begins a lineage, so that nothing which
    a former owner still writes or deletes can hurt it.

    Parameters
    ----------
    target : TopicPartition
        Of the state topic.
    settings : CheckpointSettings
        When, and how fast.
    identity : Identity
        For the checkpoint record.
    lineage : bytes
        A new one.
    inherits : bool
        Whether to go on with the lineage of the checkpoint that is adopted instead.
    clock, wall_clock : callable
        Seconds: monotonic, and since the epoch.

    Attributes
    ----------
    identity : Identity
        For the checkpoint records to come.
    offset, behind
        Of the last checkpoint, taken or read: its offset, -1 where there is none, and the models that had learned
        less by then, with the offset up to which they had.
    holds : bool
        Whether the record that makes the last one valid has been handed out.
    """

    def __init__(
        self,
        target: TopicPartition,
        settings: CheckpointSettings,
        identity: Identity,
        lineage: bytes,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        *,
        inherits: bool = True,
    ) -> None:
        self.stage = Stage.WAITING
        self.offset = -1
        self.behind: dict[str, int] = {}
        self.holds = False
        self.target = target
        self._settings = settings
        self.identity = identity
        self._lineage = lineage
        self._inherits = inherits
        self._clock = clock
        self._wall_clock = wall_clock
        self._generation = 0  # of the last checkpoint
        self._shadow = Shadow()
        self._obsolete: list[bytes] = []  # keys of records that the next checkpoint deletes
        self._manifests: list[bytes] = []  # keys of the last checkpoint's
        self._due_records = settings.records  # consumed, at which the next is due whatever the clock says
        self._reserving: Iterator[None] = iter(())
        self._records: Iterator[OutRecord] = iter(())
        self._is_bound = False  # the next record belongs into the same transaction
        self._shared_at = 0.0
        self._wait()

    def adopt(self, saved: Saved) -> Iterator[None]:
        """Go on after a checkpoint that was read, step by step; its arrays must not change before the end.

        In a lineage of its own it is only deleted, once there is a new one.
        """
        self.offset, self.behind = saved.record.offset, dict(saved.record.behind)
        self._generation = saved.generation
        self._obsolete = list(saved.obsolete)
        if self._inherits:
            self._lineage = saved.lineage
            self._manifests = saved.manifest_keys
            yield from self._shadow.reserve(saved.models)
            self._shadow.adopt(saved.models, saved.manifests)
        else:
            self._obsolete += saved.keys

    def proceed(
        self, models: Callable[[], Models], offset: int, records: int, behind: Mapping[str, int] | None = None
    ) -> bool:
        """Do the next bit of work between two transactions; return whether the models were copied just now.

        Parameters
        ----------
        models : callable
            Returns the partition's state, all of which is committed; asked where something is due.
        offset : int
            The committed offset.
        records : int
            How many were consumed of the partition so far.
        behind : mapping, optional
            Models that have learned less, and up to which offset.
        """
        now = self._clock()
        is_due = now >= self._due_at or records >= self._due_records
        if self.stage is Stage.WAITING and is_due and not self.is_current(offset, behind):
            self.stage = Stage.RESERVING
            self._reserving = self._shadow.reserve(models())
        if self.stage is Stage.RESERVING:
            self._reserve_until(now + _RESERVE_SECONDS)
        if self.stage is not Stage.READY:
            return False
        self.take(models(), offset, behind)
        self._due_records = records + self._settings.records
        return True

    def is_current(self, offset: int, behind: Mapping[str, int] | None = None) -> bool:
        """Return whether the last checkpoint, taken or read, holds all that there is by now."""
        return offset == self.offset and (behind or {}) == self.behind

    def _reserve_until(self, end: float) -> None:
        for _ in self._reserving:
            if self._clock() >= end:
                return
        self.stage = Stage.READY

    def take(
        self,
        models: Models,
        offset: int,
        behind: Mapping[str, int] | None = None,
        beside: Sequence[OutRecord] = (),
    ) -> None:
        """Copy the models, which is what the loop stops for, and begin to write.

        What is told `beside` comes in the portion that makes the checkpoint valid.
        """
        self._generation += 1
        self.offset, self.behind, self.holds = offset, dict(behind or {}), False
        written, stale = self._shadow.take(models, self._generation)
        self._records = self._all_records(written, stale, beside)
        self.stage = Stage.WRITING
        self._shared_at = self._clock()

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do for it soon."""
        return self.stage is not Stage.WAITING

    @property
    def is_writing(self) -> bool:
        """Whether there is something left to write."""
        return self.stage is Stage.WRITING

    def share(self) -> list[OutRecord]:
        """Return what the next transaction should carry of the checkpoint: perhaps nothing yet."""
        now = self._clock()
        if (now - self._shared_at) * self._settings.bytes_per_second < SHARE_BYTES:
            return []
        self._shared_at = now
        return self.records(SHARE_BYTES)

    def records(self, most: float = math.inf) -> list[OutRecord]:
        """Return what comes next of the checkpoint being written, so many bytes or a little more."""
        records = []
        while self.is_writing and (most > 0 or self._is_bound):
            record = next(self._records, None)
            if record is None:
                self._wait()
                break
            records.append(record)
            most -= len(record.key or b"") + len(record.value or b"")
        return records

    def _wait(self) -> None:
        self.stage = Stage.WAITING
        self._due_at = self._clock() + self._settings.interval_ms / 1000

    @property
    def state_bytes(self) -> int:
        """How large the last copied state is."""
        return self._shadow.size

    # --- records, in the order in which they must reach the log

    def _all_records(
        self, written: list[Page], stale: list[Page], beside: Sequence[OutRecord]
    ) -> Iterator[OutRecord]:
        for page in written:
            yield self._record(self._page_key(page), self._shadow.read(page))
        entries, keys = [], []
        for model, manifest in self._shadow.manifests().items():
            packed = manifest.pack()
            pieces = [packed[start : start + PIECE_BYTES] for start in range(0, len(packed), PIECE_BYTES)]
            for number, piece in enumerate(pieces):
                keys.append(Key("manifest", self._lineage, self._generation, model, "", number).pack())
                yield self._record(keys[-1], piece)
            entries.append(ManifestEntry(model, len(pieces), digest(packed)))
        self._is_bound = bool(beside)
        yield from beside
        self._is_bound, self.holds = False, True
        yield self._record(
            Key("checkpoint", self._lineage).pack(),
            CheckpointRecord(
                schema=SCHEMA,
                offset=self.offset,
                generation=self._generation,
                partitions=self.identity.partitions,
                settings=self.identity.settings,
                version=self.identity.version,
                manifests=entries,
                behind=self.behind,
                group=self.identity.group,
            ).pack(),
        )
        # From here on the checkpoint holds, and what only the one before it needs may go.
        for key in [*map(self._page_key, stale), *self._manifests, *self._obsolete]:
            yield self._record(key, None)
        self._manifests, self._obsolete = keys, []

    def _page_key(self, page: Page) -> bytes:
        return Key("page", self._lineage, page.generation, page.model, page.array, page.number).pack()

    def _record(self, key: bytes, value: bytes | None) -> OutRecord:
        return OutRecord(*self.target, key, value, (), max(1, int(self._wall_clock() * 1000)))
