"""One input partition that this worker owns: its models, how far they are, its checkpoints.

A partition is restored, then live, until the group gives it to somebody else.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from worker.checkpoint import Checkpointer
from worker.log.port import Records, TopicPartition
from worker.pipeline import Pipeline
from worker.quarantine import Caution
from worker.restore import Start


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
        Rebuilds the models step by step; None once the partition is live.
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
    restoring: Generator[int, None, Start] | None
    caution: Caution = field(default_factory=Caution)
    applied: int = -1
    position: int = -1
    consumed: int = 0
    awaited: Records | None = None
    state_end: int = -1

    @property
    def is_live(self) -> bool:
        """Whether its records are processed."""
        return self.restoring is None
