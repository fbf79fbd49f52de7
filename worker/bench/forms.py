"""The forms of an event that `bench pipeline` compares: msgpack in three ways, and each other format."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, NamedTuple, TypeAlias

import msgpack
import numpy as np
import numpy.typing as npt

from worker.formats.framing import frame
from worker.formats.schemas import Schema, Schemas
from worker.settings.topics import ColumnSettings, Format, TopicSettings

AVRO, PROTOBUF = 1, 2  # ids of schemas

_AVRO_EVENT = {
    "type": "record",
    "name": "Event",
    "fields": [{"name": "x", "type": {"type": "array", "items": "int"}}, {"name": "y", "type": "int"}],
}
_PROTOBUF_EVENT = 'syntax = "proto3"; message Event { repeated uint32 x = 1; optional int64 y = 2; }'

SCHEMAS = Schemas(
    known={AVRO: Schema("AVRO", json.dumps(_AVRO_EVENT)), PROTOBUF: Schema("PROTOBUF", _PROTOBUF_EVENT)}
)

Encoder: TypeAlias = Callable[[Sequence[int], int], bytes]


class Form(NamedTuple):
    """How single events are written and read."""

    encode: Encoder  # of feature ids and a label
    format: Format = "msgpack"
    columns: ColumnSettings | None = None
    named: bool = False  # features have names

    @property
    def topic(self) -> TopicSettings:
        """The settings of its topic."""
        return TopicSettings(format=self.format, columns=self.columns)


def _listed(x: Sequence[int], y: int) -> bytes:
    packed: bytes = msgpack.packb({"x": x, "y": y})
    return packed


def _packed(x: Sequence[int], y: int) -> bytes:
    packed: bytes = msgpack.packb({"x": {"i": np.array(x, "<u4").tobytes()}, "y": y})
    return packed


def _named(x: Sequence[int], y: int) -> bytes:
    packed: bytes = msgpack.packb({"x": [f"column {at}={each}" for at, each in enumerate(x)], "y": y})
    return packed


def _json(x: Sequence[int], y: int) -> bytes:
    return json.dumps({"x": x, "y": y}).encode()


def _json_columns(x: Sequence[int], y: int) -> bytes:
    return json.dumps({**{f"column {at}": str(each) for at, each in enumerate(x)}, "label": y}).encode()


def _avro(x: Sequence[int], y: int) -> bytes:
    import fastavro

    stream = BytesIO(frame(AVRO))
    stream.seek(0, 2)
    fastavro.schemaless_writer(stream, _AVRO_EVENT, {"x": x, "y": y})
    return stream.getvalue()


def _protobuf(x: Sequence[int], y: int) -> bytes:
    """Return the message by hand: a packed list of varints, and a varint."""
    ids = b"".join(map(_varint, x))
    return frame(PROTOBUF, [0]) + b"\x0a" + _varint(len(ids)) + ids + b"\x10" + _varint(y)


def _varint(number: int) -> bytes:
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


SINGLE = {
    "list": Form(_listed),
    "packed": Form(_packed),
    "named": Form(_named, named=True),
    "json": Form(_json, "json"),
    "json-columns": Form(_json_columns, "json", ColumnSettings(label="label"), named=True),
    "avro": Form(_avro, "avro"),
    "protobuf": Form(_protobuf, "protobuf"),
}
COLUMNS = "columns"
IDS = ("list", "packed", COLUMNS)  # msgpack with ids of features
FORMS = (*IDS, "named", "json", "json-columns", "avro", "protobuf")


def columnar(features: npt.NDArray[Any], label: npt.NDArray[Any]) -> bytes:
    """Return the record of many events."""
    rows, ones = features.shape
    value = {
        "n": rows,
        "ptr": np.arange(0, rows * ones + 1, ones, dtype="<u4").tobytes(),
        "i": features.astype("<u4").tobytes(),
        "y": label.tobytes(),
    }
    packed: bytes = msgpack.packb(value)
    return packed
