"""JSON lines: one event a line, in the field names of a record, with the key beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from worker.codec.event import encode_event
from worker.sources.columns import Columns
from worker.sources.example import Entry, UnreadableError, brief, each_line
from worker.sources.lines import Lines

FIELDS = ("key", "op", "id", "x", "y", "w", "ts")


def read(lines: Lines, _: Columns) -> Iterator[Entry]:
    """Yield the events of a JSON lines file, deletes and predicts too. A null is none, nor an empty id or key."""
    return each_line(lines, _parse)


def parse_object(line: str) -> dict[str, Any]:
    """Return the object of a line; raise `UnreadableError` where it holds another value, or is no JSON."""
    try:
        event = json.loads(line, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"expected a JSON object, got {brief(line)} ({error.msg})") from error
    except (ValueError, RecursionError) as error:  # an int of thousands of digits, or endless brackets
        raise UnreadableError("expected an event in JSON, got numbers or nesting beyond any event") from error
    if not isinstance(event, dict):
        raise UnreadableError(f"expected a JSON object, got {brief(line)}")
    return event


def _parse(line: str) -> tuple[str | None, dict[str, Any]] | None:
    if not line.strip():
        return None
    event = parse_object(line)
    for name in event:
        if name not in FIELDS:
            is_event = "op" in event or isinstance(event.get("x"), list | dict)
            hint = "" if is_event else "; where names are columns of yours say --format jsonrows"
            raise UnreadableError(f"expected the fields {', '.join(FIELDS)}, got {brief(name)}{hint}")
    fields = {name: value for name, value in event.items() if value is not None}
    for name in ("id", "key"):
        if fields.get(name) == "":  # as little a name as none
            del fields[name]
    key = fields.pop("key", None)
    if key is not None and not isinstance(key, str):
        raise UnreadableError(f"expected key to be a string, got {brief(json.dumps(key))}")
    try:
        (key or "").encode()
        encode_event(**fields)
    except ValueError as error:
        raise UnreadableError(f"expected an event that a record can hold, got another: {error}") from error
    return key, fields


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise UnreadableError(f"expected each name once, got {brief(name)} again")
    return dict(pairs)


def _refuse_constant(constant: str) -> NoReturn:
    raise UnreadableError(f"expected finite numbers, got {constant}")
