"""Events as JSON: one object a record. The rules are those of RFC 8259, and each name comes once.

msgspec reads what is plain, ten times faster than the standard library, and does not see a name that comes twice.
But then there are fewer texts than quotes tell of. What is not plain is read again with the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

import msgspec

from worker.codec.bounds import Bounds
from worker.codec.reasons import Reason
from worker.codec.reference import brief
from worker.codec.survey import CONTAINERS, DEPTH, RefusedError
from worker.formats.port import Document, Refused, Shape, malformed, packed, read_each

_FRAME = 5  # bytes before the text, where a serializer of JSON Schema has written it
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_LONGEST_INT = 400  # digits; float64 ends at 309

_plain = msgspec.json.Decoder().decode


class JsonReader:
    """Reads JSON; also behind the frame of a schema registry, whose schema it does not need."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def read(self, values: Sequence[bytes | None], bounds: Bounds) -> list[bytes | Refused | None]:
        """Return the msgpack event of each value, or why there is none."""
        return read_each(values, bounds, self._event)

    def schemas(self, values: Sequence[bytes | None]) -> Collection[int]:  # noqa: ARG002
        """Return nothing: a text says what it holds."""
        return ()

    def _event(self, value: bytes) -> bytes:
        document = parse(value[_FRAME:] if value[:1] == b"\0" else value)
        return packed(self._shape(document))


def parse(text: bytes) -> Document:
    """Return the object that a text holds; raise `RefusedError` where it holds none."""
    if text.count(b"[") + text.count(b"{") > CONTAINERS:
        _check_nesting(text)
    try:
        document = _plain(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        document = parse_carefully(text)
    else:
        if b"\\" in text or 2 * _texts(document) != text.count(b'"'):
            document = parse_carefully(text)
    if not isinstance(document, dict):
        raise RefusedError(Reason.NOT_A_MAP, f"expected a JSON object, found {_kind(document)}; send an object")
    return document


def _texts(value: Any) -> int:
    """Return how many texts there are in a value, names included."""
    kind = type(value)
    if kind is not dict and kind is not list:
        return int(kind is str)
    inside = value.values() if kind is dict else value
    kinds = list(map(type, inside))
    texts = kinds.count(str) + (len(value) if kind is dict else 0)
    if list in kinds or dict in kinds:
        texts += sum(_texts(each) for each in inside if type(each) is list or type(each) is dict)
    return texts


def parse_carefully(text: bytes) -> Any:
    """Return what a text of few containers holds; raise `RefusedError` where it is no JSON or has a name twice."""
    try:
        document = _careful.decode(text.decode())
    except ValueError:  # also of bytes that are no UTF-8
        raise malformed("one JSON object in UTF-8", "other bytes", "send JSON as RFC 8259 has it") from None
    _check_texts(document)
    return document


def _object(pairs: list[tuple[str, Any]]) -> Document:
    document = dict(pairs)
    if len(document) < len(pairs):
        seen: set[str] = set()
        again = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise RefusedError(
            Reason.DUPLICATE_FIELD,
            f"expected each name once in an object, {brief(again)} comes again; send it once",
        )
    return document


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INT else float(digits)


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


_careful = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant)


def _check_texts(value: Any) -> None:
    """Refuse halves of surrogate pairs, which escapes can write and no UTF-8 can hold."""
    match value:
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise malformed("Unicode text", "half of a surrogate pair", "send both halves") from None
        case dict():
            for name, content in value.items():
                _check_texts(name)
                _check_texts(content)
        case list():
            for each in value:
                _check_texts(each)


def _check_nesting(text: bytes) -> None:
    """Refuse what has more containers or nesting than an event needs, before anything is built of it."""
    containers = nested = 0
    for token in _TOKENS.finditer(text):
        match token[0]:
            case b"[" | b"{":
                containers, nested = containers + 1, nested + 1
            case b"]" | b"}":
                nested -= 1
        if containers > CONTAINERS:
            raise RefusedError(
                Reason.TOO_MANY_ELEMENTS,
                f"expected at most {CONTAINERS} lists and objects, found another at byte {token.start()}; "
                "flatten the event",
            )
        if nested > DEPTH:
            raise RefusedError(
                Reason.TOO_DEEP,
                f"expected at most {DEPTH} lists and objects inside each other, found another at byte "
                f"{token.start()}; flatten the event",
            )


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case list():
            return "a list"
        case str():
            return "a text"
    return "a number"
