"""The bad records of hostile.py as JSON, and those that only JSON has."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import msgpack

from tests.support.hostile import HOSTILE
from worker.codec.reasons import Reason

# What msgpack alone can write, and JSON cannot say: its own types, lengths and cut values.
_OTHER = {Reason.MALFORMED, Reason.UNSUPPORTED_TYPE, Reason.BAD_FIELD_NAME}


def _texts() -> list[tuple[str, bytes, Reason]]:
    """Return the bad events that JSON can write, for the same reason; a name that comes twice is a field's."""
    texts = []
    for name, value, reason in HOSTILE:
        if reason in _OTHER or len(value) > 1_000_000:
            continue
        try:
            event = msgpack.unpackb(value, strict_map_key=False, object_pairs_hook=_Pairs)
        except ValueError:  # declared and not there
            continue
        if _is_json(event) and not _is_absent(event):
            texts.append(
                (name, _text(event).encode(), reason if "repeated key" != name else Reason.DUPLICATE_FIELD)
            )
    return texts


class _Pairs(list[tuple[Any, Any]]):
    """A map, which may have a key twice."""


def _is_json(value: Any) -> bool:
    match value:
        case _Pairs():
            return all(isinstance(name, str) and _is_json(content) for name, content in value)
        case list():
            return all(map(_is_json, value))
        case bytes():
            return False
        case float():
            return math.isfinite(value)
    return True


def _is_absent(event: Any) -> bool:
    """Return whether a field has no value: then it is not there in JSON."""
    if not isinstance(event, _Pairs):
        return False
    return any(
        content is None or (isinstance(content, _Pairs) and any(value is None for _, value in content))
        for _, content in event
    )


def _text(value: Any) -> str:
    match value:
        case _Pairs():
            return "{" + ", ".join(f"{json.dumps(name)}: {_text(content)}" for name, content in value) + "}"
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
    return json.dumps(value)


def _event(x: str = "[1, 2]", y: str = "1", more: str = "") -> bytes:
    return f'{{"x": {x}, "y": {y}{more}}}'.encode()


_DEEP = 100_000

HOSTILE_JSON: list[tuple[str, bytes, Reason]] = [
    ("no bytes", b"", Reason.MALFORMED),
    ("blanks", b" \n", Reason.MALFORMED),
    ("msgpack", b"\x82\xa1x\x92\x01\x02\xa1y\x01", Reason.MALFORMED),
    ("two events", _event() + _event(), Reason.MALFORMED),
    ("a byte order mark", b"\xef\xbb\xbf" + _event(), Reason.MALFORMED),
    ("UTF-16", _event().decode().encode("utf-16"), Reason.MALFORMED),
    ("not UTF-8", _event('["\xe9"]').decode().encode("latin-1"), Reason.MALFORMED),
    ("a surrogate in UTF-8", b'{"x": ["\xed\xa0\x80"], "y": 1}', Reason.MALFORMED),
    ("half of a surrogate pair", _event(r'["\ud800"]'), Reason.MALFORMED),
    ("half of a surrogate pair as a name", _event(r'{"\udc00": 1}'), Reason.MALFORMED),
    ("two second halves", _event(r'["\udc00\udc00"]'), Reason.MALFORMED),
    ("a control character", _event('["a\n"]'), Reason.MALFORMED),
    ("an unknown escape", _event(r'["\x41"]'), Reason.MALFORMED),
    ("single quotes", b"{'x': [1], 'y': 1}", Reason.MALFORMED),
    ("a comment", b'{"x": [1], "y": 1} // new', Reason.MALFORMED),
    ("a trailing comma", b'{"x": [1,], "y": 1}', Reason.MALFORMED),
    ("a name without quotes", b'{x: [1], "y": 1}', Reason.MALFORMED),
    ("NaN", _event('{"a": NaN}'), Reason.MALFORMED),
    ("Infinity", _event('{"a": -Infinity}'), Reason.MALFORMED),
    ("a leading zero", _event("[01]"), Reason.MALFORMED),
    ("a leading plus", _event("[+1]"), Reason.MALFORMED),
    ("a hexadecimal number", _event("[0x1]"), Reason.MALFORMED),
    ("a number that ends with a point", _event("[1.]"), Reason.MALFORMED),
    ("True", _event("[True]"), Reason.MALFORMED),
    ("a duplicate name", b'{"x": [1], "y": 1, "y": 1}', Reason.DUPLICATE_FIELD),
    ("a duplicate name by an escape", rb'{"x": [1], "y": 1, "\u0079": 1}', Reason.DUPLICATE_FIELD),
    ("a duplicate feature", _event('{"a": 1, "a": 1}'), Reason.DUPLICATE_FIELD),
    ("a value beyond float64", _event('{"a": 1e999}'), Reason.BAD_VALUE),
    ("an int beyond float64", _event('{"a": 1' + 400 * "0" + "}"), Reason.BAD_VALUE),
    ("an int of 100,000 digits", _event('{"a": ' + 100_000 * "7" + "}"), Reason.BAD_VALUE),
    ("a label beyond float64", _event(y="-1e999"), Reason.BAD_LABEL),
    ("a label beyond int64", _event(y="9223372036854775808"), Reason.BAD_LABEL),
    ("a label that is true", _event(y="true"), Reason.BAD_LABEL),
    ("an id beyond int64", _event(more=', "id": 18446744073709551616'), Reason.BAD_ID),
    ("an id that is a float", _event(more=', "id": 1.0'), Reason.BAD_ID),
    ("a weight beyond float64", _event(more=', "w": 1e400'), Reason.BAD_WEIGHT),
    ("a time that is a float", _event(more=', "ts": 1.0'), Reason.BAD_TIME),
    ("ids as names", _event('{"i": ["1", 2]}'), Reason.BAD_FEATURES),
    ("a feature that is a float", _event("[1.0]"), Reason.BAD_FEATURES),
    ("a map in a feature", _event('{"a": {"b": {"c": 1}}}'), Reason.BAD_VALUE),
    ("no object", b"[1, 2]", Reason.NOT_A_MAP),
    ("null", b"null", Reason.NOT_A_MAP),
    ("a text", b'"x"', Reason.NOT_A_MAP),
    ("columns", b'{"n": 1, "ptr": [0, 1], "i": [1], "y": [1]}', Reason.BAD_BATCH),
    ("lists without end", b"[" * _DEEP, Reason.TOO_DEEP),
    ("objects without end", b'{"x":' * _DEEP, Reason.TOO_DEEP),
    ("deep lists", _event("[" * _DEEP + "]" * _DEEP), Reason.TOO_DEEP),
    ("lists five deep", _event("[[[[[1]]]]]"), Reason.TOO_DEEP),
    ("100 lists", _event("[" + ", ".join(100 * ["[]"]) + "]"), Reason.TOO_MANY_ELEMENTS),
    ("65,537 features", _event(json.dumps(list(range(65_537)))), Reason.TOO_MANY_ELEMENTS),
    ("too large", b" " * ((8 << 20) + 1), Reason.TOO_LARGE),
    ("the frame of a schema and nothing", b"\0" + struct.pack(">I", 7), Reason.MALFORMED),
    *_texts(),
]  # fmt: skip
