"""One input partition that this worker owns: its models, how far they are, its checkpoints.

A partition is restored, then live, until the group gives it to somebody else.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from dataclasses import dataclass, field, replace
from inspect import GEN_RUNNING, getgeneratorstate

from worker.checkpoint import Checkpointer
from worker.epochs import Epoch
from worker.log.port import OutRecord, Records, TopicPartition
from worker.pipeline import Pipeline, Processed
from worker.quarantine import Caution


@dataclass
class Partition:
    """A partition of an input topic, as long as it is owned.

    Attributes
    ----------
    assignment : int
        The number that the log gave to this assignment.
    checkpoints : Checkpointer, optional
        None where the settings want none.
    restoring : generator, optional
        Brings it up step by step, and yields how many offsets remain; None once the partition is live.
    epoch : Epoch, optional
        Which settings hold; its note stands beside the offsets that are committed. None before it is known.
    unwritten : list of OutRecord
        What the state topic has still to be told of epochs; it goes with the next results.
    behind : dict
        Models that have learned only the records below some offset.
    is_learning : bool
        Whether these learn the others now.
    ahead : list of Epoch
        That are to come, in a replay.
    applied : int
        The offset after the last record that is in the models.
    position : int
        The next offset to be read. Between the two there may be offsets without a record.
    consumed : int
        Records since it went live.
    caution : Caution
        Whether its records are processed one by one.
    awaited : Records, optional
        Records that came and cannot be read yet: their schemas are not known. It is not read on meanwhile.
    state_end : int
        The high watermark of its state when the group last took it back: from there on only somebody else
        has written records.
    """

    source: TopicPartition
    assignment: int
    pipeline: Pipeline
    checkpoints: Checkpointer | None
    restoring: Generator[int, None, None] | None = None
    caution: Caution = field(default_factory=Caution)
    epoch: Epoch | None = None
    unwritten: list[OutRecord] = field(default_factory=list)
    behind: dict[str, int] = field(default_factory=dict)
    is_learning: bool = False
    ahead: list[Epoch] = field(default_factory=list)
    applied: int = -1
    position: int = -1
    consumed: int = 0
    awaited: Records | None = None
    state_end: int = -1

    def hold(self, epoch: Epoch) -> None:
        """Let an epoch hold from the next commit on."""
        self.epoch = epoch
        if self.checkpoints is not None:
            self.checkpoints.identity = replace(self.checkpoints.identity, settings=epoch.note)

    def turn(self, epoch: Epoch, kept: Collection[str]) -> None:
        """Have the models of an epoch: those that are not kept are empty, and behind where they begin earlier."""
        parsed = epoch.parsed()
        assert parsed is not None, "settings that the worker has, or that were looked at before"
        begun = {name: entry for name, entry in epoch.models.items() if name not in kept}
        begins = {name: entry.first for name, entry in begun.items() if entry.first < entry.joined}
        self.pipeline.have(parsed, epoch.parsed_bounds, epoch.parsed_pending, kept, begins)
        self.behind = {name: at for name, at in self.behind.items() if name in kept} | begins

    def stop(self) -> None:
        """Give up what is being restored: a reader of it must not outlive the log."""
        if self.restoring is not None and getgeneratorstate(self.restoring) != GEN_RUNNING:
            self.restoring.close()  # one that runs comes to see that the partition is gone

    @property
    def is_live(self) -> bool:
        """Whether its records are processed."""
        return self.restoring is None


@dataclass(slots=True)
class Portion:
    """Records that a partition processes at once, in whatever thread, while others process theirs.

    Partitions have nothing in common that changes, so what comes of it does not depend on others or on threads.
    """

    partition: Partition
    records: Records
    _done: Processed | Exception | None = None

    def process(self) -> None:
        """Change the models of the partition, and nothing else."""
        try:
            self._done = self.partition.pipeline.process(self.records)
        except Exception as error:
            self._done = error

    def result(self) -> Processed:
        """Return what it led to; raise what it raised."""
        if isinstance(self._done, Exception):
            raise self._done
        assert self._done is not None, "it is processed first"
        return self._done
