"""What the loop tells about itself: a frozen value, published by one assignment and only read elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

State: TypeAlias = Literal["starting", "restoring", "running", "stopping"]


class PartitionStatus(NamedTuple):
    """How far a partition has been read."""

    topic: str
    partition: int
    position: int  # the next offset to be read
    high: int  # high watermark, the next offset to be written


class ModelStatus(NamedTuple):
    """How large a model name is, over all its keys in this worker."""

    name: str
    keys: int
    slots: int  # counted (key, feature) pairs
    examples: int  # live examples kept
    bytes: int


@dataclass(frozen=True, slots=True)
class Status:
    """The loop as of its last turn."""

    tick: float  # seconds on the clock that the server is given too (monotonic)
    state: State = "starting"
    partitions: tuple[PartitionStatus, ...] = ()
    models: tuple[ModelStatus, ...] = ()


class StatusBoard:
    """Where the loop puts its status.

    Assigning an attribute is atomic and a `Status` never changes, so no lock is needed.
    """

    def __init__(self, status: Status) -> None:
        self.status = status

    def tick(self, now: float) -> None:
        """Say that the loop is alive."""
        self.status = replace(self.status, tick=now)
