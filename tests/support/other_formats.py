"""Events in each format, written as producers write them: with fastavro, and with protobuf's own classes."""

from __future__ import annotations

import json
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import msgpack

from worker.formats.framing import frame
from worker.formats.protobuf import _compiled
from worker.formats.schemas import Schema, Schemas

SCHEMAS = Path(__file__).parents[2] / "deploy" / "schemas"
AVRO_EVENT = (SCHEMAS / "event.avsc").read_text("utf-8")
PROTOBUF_EVENT = (SCHEMAS / "event.proto").read_text("utf-8")
AVRO, PROTOBUF = 1, 2  # ids

FORMATS = ("msgpack", "json", "avro", "protobuf")


def known() -> Schemas:
    """Return the schemas of events, as if a registry had told them."""
    return Schemas(known={AVRO: Schema("AVRO", AVRO_EVENT), PROTOBUF: Schema("PROTOBUF", PROTOBUF_EVENT)})


def written(event: dict[str, Any], format: str, number: int | None = None) -> bytes:
    """Return a record with an event, whose x lists what is present, or is a map or {"i": ..., "v": ...}."""
    match format:
        case "json":
            return json.dumps(event, ensure_ascii=False).encode()
        case "avro":
            return avro(json.loads(AVRO_EVENT), _of_avro(event), AVRO if number is None else number)
        case "protobuf":
            return _protobuf(event, PROTOBUF if number is None else number)
    packed: bytes = msgpack.packb(event)
    return packed


def avro(schema: Any, record: Any, number: int) -> bytes:
    """Return a record that is written with a schema of this id."""
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), record)
    return frame(number) + stream.getvalue()


def _sparse(x: Any) -> dict[str, Any]:
    if isinstance(x, list):
        return {"i": x}
    return x if "i" in x else {"i": list(x), "v": list(x.values())}


def _of_avro(event: dict[str, Any]) -> dict[str, Any]:
    if "x" not in event:
        return event
    x = _sparse(event["x"])
    name = "anabranch.Names" if any(isinstance(each, str) for each in x["i"]) else "anabranch.Ids"
    return {**event, "x": {"-type": name, "v": None, **x}}


@cache
def _message() -> Any:
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_compiled(Schema("PROTOBUF", PROTOBUF_EVENT)).at((0,)))


def _protobuf(event: dict[str, Any], number: int) -> bytes:
    message = _message()()
    for name, content in event.items():
        match name, content:
            case "x", _:
                x = _sparse(content)
                part = message.names if any(isinstance(each, str) for each in x["i"]) else message.ids
                part.SetInParent()
                part.i.extend(x["i"])
                part.v.extend(x.get("v", []))
            case "id", int():
                message.id_number = content
            case "id", _:
                message.id_text = content
            case "y", int():
                message.y_int = content
            case "y", float():
                message.y_float = content
            case "y", _:
                message.y_text = content
            case _:
                setattr(message, name, content)
    data: bytes = message.SerializeToString()
    return frame(number, [0]) + data
