"""The wire format of schema registries: a byte 0, the schema's id, for Protobuf the message's place, the rest."""

from __future__ import annotations

from collections.abc import Iterable

from worker.formats.port import malformed

FRAME = 5  # bytes of the magic byte and the id
_MAGIC = b"\0"
_DEEPEST = 16  # messages inside each other


def schema_id(value: bytes) -> int:
    """Return the id of the schema that a value is written with; raise `RefusedError` where it says none."""
    if len(value) < FRAME or value[:1] != _MAGIC:
        raise malformed(
            "a byte 0 and the id of a schema in front of the event",
            f"{value[:FRAME].hex(' ') or 'nothing'}",
            "write events with a serializer of the schema registry",
        )
    return int.from_bytes(value[1:FRAME], "big")


def schema_ids(values: Iterable[bytes | None]) -> set[int]:
    """Return the ids of all schemas that values are written with."""
    heads = {value[:FRAME] for value in values if value is not None}
    return {int.from_bytes(head[1:], "big") for head in heads if len(head) == FRAME and head[:1] == _MAGIC}


def frame(schema: int, indexes: Iterable[int] | None = None) -> bytes:
    """Return what stands in front of an event; `indexes` is the place of a Protobuf message."""
    head = _MAGIC + schema.to_bytes(4, "big")
    if indexes is None:
        return head
    place = list(indexes)
    return head + (b"\0" if place == [0] else b"".join(map(_zigzag, [len(place), *place])))


def message_place(value: bytes) -> tuple[tuple[int, ...], int]:
    """Return the indexes of a Protobuf message, the outer one first, and where the message begins."""
    count, at = _read(value, FRAME)
    if count == 0:
        return (0,), at
    if not 0 < count <= _DEEPEST:
        raise malformed(
            f"the place of a message, at most {_DEEPEST} deep", str(count), "use the registry's serializer"
        )
    place = []
    for _ in range(count):
        index, at = _read(value, at)
        place.append(index)
    return tuple(place), at


def _read(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    for at in range(at, min(at + 5, len(value))):  # noqa: B020  (where it ends is asked for)
        number |= (value[at] & 0x7F) << shift
        shift += 7
        if value[at] < 0x80:
            return (number >> 1) ^ -(number & 1), at + 1
    raise malformed("the place of a Protobuf message", "bytes that are cut off", "send the whole value")


def _zigzag(number: int) -> bytes:
    number <<= 1
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])
