"""Results as JSON, so that jq, ksqlDB and Kafka Connect read them: one result has one text.

The fields come in the order in which their class declares them, without spaces, in UTF-8. A string escapes what
JSON says it must, and nothing else. A float is the shortest decimal number that reads back as the same float64, as
Python writes it, and always has a point or an exponent: 1.0 is a float and 1 an int. What is not finite is null.
Bytes are base64.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

_BRACE = b"{"  # no msgpack map begins with it


def _base64(content: Any) -> str:
    if not isinstance(content, bytes):
        raise TypeError(f"expected what JSON or base64 can hold, got {type(content).__name__}")
    return base64.b64encode(content).decode()


_encoder = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=_base64
)


def to_json(fields: Any) -> bytes:
    """Return the one text of these fields."""
    try:
        return _encoder.encode(fields).encode()
    except ValueError:
        return _encoder.encode(_finite(fields)).encode()


def is_json(value: bytes) -> bool:
    """Return whether the value of a result's record is JSON, rather than msgpack."""
    return value[:1] == _BRACE


def from_json(value: bytes, of_bytes: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a text, those of these names as bytes; raise ValueError where it is none."""
    fields: dict[str, Any] = json.loads(value)
    for name in of_bytes:
        if fields.get(name) is not None:
            fields[name] = base64.b64decode(fields[name], validate=True)
    return fields


def _finite(fields: Any) -> Any:
    if isinstance(fields, float):
        return fields if math.isfinite(fields) else None
    if isinstance(fields, Mapping):
        return {name: _finite(content) for name, content in fields.items()}
    return [_finite(each) for each in fields] if isinstance(fields, list | tuple) else fields
