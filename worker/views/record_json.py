"""Records as JSON objects, for programs."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from worker.codec import AnyTree, Bounds, DeadLetter, Output, decode_output
from worker.codec.encode import fields_of
from worker.codec.reference import Event, decode
from worker.formats.framing import FRAME, schema_id
from worker.log.browse import Record

_OPS = ("insert", "delete", "predict", "drop", "label")  # in the order of their numbers in `worker.codec.events`


def result_of(record: Record) -> Output:
    """Return the result that a record holds; a ValueError names the record."""
    try:
        return decode_output(record.value or b"", record.headers)
    except ValueError as error:
        topic, partition = record.source
        raise ValueError(f"{topic}/{partition} offset {record.offset}: {error}") from error


def as_object(record: Record) -> dict[str, Any]:
    """Return a record with its contents; bytes are given as hex."""
    fields: dict[str, Any] = {
        "topic": record.source.topic,
        "partition": record.source.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": None if record.key is None else record.key.decode("utf-8", "backslashreplace"),
        "type": record.type or "event",
    }
    if record.type:
        output = result_of(record)
        contents = fields_of(output)
        if isinstance(output, DeadLetter):
            contents["dead_key"] = contents.pop("key")
        return fields | {name: _plain(value) for name, value in contents.items()}
    if record.value is not None and (other := other_format(record.value)) is not None:
        return fields | other
    rows = decode(record.value, record.timestamp, Bounds())
    return fields | {
        "events": [_event(row) if isinstance(row, Event) else dataclasses.asdict(row) for row in rows]
    }


def other_format(value: bytes) -> dict[str, Any] | None:
    """Return what can be said of an event that is not msgpack, its JSON or schema; None of one that may be."""
    if value[:1] == b"{":
        try:
            return {"json": json.loads(value)}
        except (ValueError, RecursionError):
            return {"text": value.decode("utf-8", "backslashreplace")}
    if value[:1] == b"\0" and len(value) >= FRAME:
        return {"schema": schema_id(value), "value": value.hex()}
    return None


def tree_object(key: bytes | None, tree: AnyTree) -> dict[str, Any]:
    """Return a whole tree, whose parts may have come in several records; nodes are columns, as in a record."""
    return {"key": None if key is None else key.decode("utf-8", "backslashreplace"), **fields_of(tree)}


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _event(event: Event) -> dict[str, Any]:
    fields = dataclasses.asdict(event)
    return fields | {"op": _OPS[event.op]}
