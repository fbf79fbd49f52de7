"""What a state topic says beside checkpoints: records that are passed by, what is about to be tried, epochs.

Checkpoints come and go; a skip and an epoch stay, since they tell how the input is to be read from then on.
"""

from __future__ import annotations

from typing import NamedTuple

import msgpack

from worker.checkpoint.keys import Key

DEATH = "the end of the process"  # in the place of an exception's class


class Skip(NamedTuple):
    """A record of the input that all models pass by, because processing it fails."""

    offset: int
    error: str  # class of the exception, or DEATH
    version: str  # of Anabranch
    time: int  # ms since the epoch, when it was decided

    @property
    def key(self) -> bytes:
        """The key of its record; the offset stands where other keys have a generation."""
        return Key("skip", b"", self.offset).pack()

    @property
    def detail(self) -> str:
        """What the dead letter says."""
        return (
            f"expected Anabranch {self.version} to process the record, got {self.error}: a defect; all models "
            "passed the record by; report it, and publish the event again to a version without it"
        )

    def pack(self) -> bytes:
        """Return the value of its record."""
        packed: bytes = msgpack.packb(tuple(self))
        return packed


class Attempt(NamedTuple):
    """Committed before records are processed: where a process dies of them, the next one knows."""

    offset: int  # the committed one; with another one there was progress, and the attempt says nothing any more
    record: int | None  # offset of the one that is tried; None: whatever comes
    tries: int  # so far, this one included

    @property
    def key(self) -> bytes:
        """The key of its record: a partition has one."""
        return Key("attempt", b"").pack()

    def pack(self) -> bytes:
        """Return the value of its record."""
        packed: bytes = msgpack.packb(tuple(self))
        return packed


class Marks(NamedTuple):
    """All that a partition of a state topic says beside its checkpoint."""

    skips: dict[int, Skip]  # by offset
    attempt: Attempt | None
    epochs: dict[bytes, bytes]  # keys and values of what worker/epochs.py keeps


def unpack_skip(value: bytes) -> Skip:
    """Return what `Skip.pack` wrote."""
    return Skip(*msgpack.unpackb(value)[: len(Skip._fields)])


def unpack_attempt(value: bytes) -> Attempt:
    """Return what `Attempt.pack` wrote."""
    return Attempt(*msgpack.unpackb(value)[: len(Attempt._fields)])
