"""How records of the state topic are called, and what the manifest and the checkpoint record say."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import msgpack

SCHEMA = 1  # of everything in a state topic; a reader refuses a newer one
DIGEST_BYTES = 16
PIECE_BYTES = 512 * 1024  # of a manifest; brokers take records of a megabyte unless told otherwise

# The last three: marks.py, worker/epochs.py.
Kind: TypeAlias = Literal["checkpoint", "manifest", "page", "skip", "attempt", "epoch"]


class Key(NamedTuple):
    """The name of a record in the state topic.

    A record replaces the one before it of the same name, so whatever must outlive a checkpoint that is never
    finished has its generation in the name.
    """

    kind: Kind
    lineage: bytes  # whose checkpoints build on each other; see `Checkpointer`
    generation: int = 0  # number of the checkpoint that wrote it; 0 for the checkpoint record itself
    model: str = ""
    array: str = ""
    number: int = 0  # of the page, or of the manifest's piece

    def pack(self) -> bytes:
        """Return the record's key."""
        packed: bytes = msgpack.packb(tuple(self))
        return packed


def unpack_key(key: bytes) -> Key:
    """Return the name that `Key.pack` wrote."""
    return Key(*msgpack.unpackb(key))


def new_lineage(group: str) -> bytes:
    """Return the name of a new lineage of a group: those of other groups in the same topic are passed over."""
    return _tag(group) + secrets.token_bytes(8)


def is_of_another(lineage: bytes, group: str) -> bool:
    """Return whether a lineage tells that it is of another group; those of earlier versions do not tell."""
    return len(lineage) == 16 and lineage[:8] != _tag(group)


def _tag(group: str) -> bytes:
    return digest(group.encode())[:8]


class ArrayEntry(NamedTuple):
    """What a manifest says of one array."""

    name: str
    dtype: str  # as numpy spells it, byte order included
    shape: list[int]
    generations: bytes  # little-endian int64, one a page; 0 is a page of zeros, which is not written
    digests: bytes  # 16 bytes a page


class Manifest(NamedTuple):
    """The arrays of one model at a checkpoint."""

    arrays: list[ArrayEntry]

    def pack(self) -> bytes:
        """Return the manifest as bytes, to be cut into pieces."""
        packed: bytes = msgpack.packb([tuple(entry) for entry in self.arrays])
        return packed


def unpack_manifest(packed: bytes) -> Manifest:
    """Return what `Manifest.pack` wrote."""
    return Manifest([ArrayEntry(*entry) for entry in msgpack.unpackb(packed)])


class ManifestEntry(NamedTuple):
    """What the checkpoint record says of one manifest."""

    model: str
    pieces: int
    digest: bytes  # of all pieces together


class CheckpointRecord(NamedTuple):
    """What makes a checkpoint valid."""

    schema: int
    offset: int  # all records below it are in the state, none from it on
    generation: int
    partitions: int  # that the input topic had
    settings: str  # note of the epoch that the state belongs to
    version: str  # of Anabranch
    manifests: list[ManifestEntry]
    behind: Mapping[str, int] = MappingProxyType({})  # models that have learned less, and up to which offset
    group: str = ""  # whose state it is; earlier versions do not tell

    def pack(self) -> bytes:
        """Return the record's value; what came later is left out where it says nothing, as earlier versions do."""
        fields: dict[str, Any] = self._asdict() | {"manifests": [list(entry) for entry in self.manifests]}
        later = {"behind": dict(fields.pop("behind")), "group": fields.pop("group")}
        packed: bytes = msgpack.packb(fields | {name: value for name, value in later.items() if value})
        return packed


def unpack_checkpoint(value: bytes) -> CheckpointRecord:
    """Return what `CheckpointRecord.pack` wrote; fields that a newer schema added are left out."""
    fields: dict[str, Any] = msgpack.unpackb(value)
    known = {name: fields[name] for name in CheckpointRecord._fields if name in fields}
    return CheckpointRecord(**known | {"manifests": [ManifestEntry(*entry) for entry in known["manifests"]]})


def digest(data: bytes) -> bytes:
    """Return the data's fingerprint, `DIGEST_BYTES` long."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()
