"""What every format is made of: documents in plain values, their shape, and the event as msgpack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from worker.codec.bounds import Bounds
from worker.codec.reasons import Reason
from worker.codec.survey import RefusedError

# What a record holds: names and values, which are None, bool, int, float, str, and lists and maps of these.
Document: TypeAlias = dict[str, Any]

# Makes the fields of an event of a document; raises `RefusedError` where there is none in it.
Shape: TypeAlias = Callable[[Document], Document]


class Refused(NamedTuple):
    """Why a record holds no event; `detail` is a sentence for a person."""

    reason: Reason
    detail: str


class Reader(Protocol):
    """Reads the values of one input topic."""

    def read(self, values: Sequence[bytes | None], bounds: Bounds) -> list[bytes | Refused | None]:
        """Return the msgpack event of each value, or why there is none; a tombstone stays None.

        What it returns for a value depends on the value, the settings and the schemas alone.
        """
        ...

    def schemas(self, values: Sequence[bytes | None]) -> Collection[int]:
        """Return the ids of the schemas that these values are written with."""
        ...


def as_document(document: Document) -> Document:
    """Return the fields of a document that is an event already; a field without a value is left out."""
    x = document.get("x")
    if type(x) is dict and None in x.values():
        document["x"] = _without_none(x)
    return _without_none(document) if None in document.values() else document


def _without_none(document: Document) -> Document:
    return {name: content for name, content in document.items() if content is not None}


def read_each(
    values: Sequence[bytes | None], bounds: Bounds, event_of: Callable[[bytes], bytes]
) -> list[bytes | Refused | None]:
    """Return what `event_of` makes of each value, or what it refuses."""
    read: list[bytes | Refused | None] = []
    for value in values:
        try:
            read.append(value if value is None else event_of(_within(value, bounds)))
        except RefusedError as refused:
            read.append(Refused(refused.reason, refused.detail))
    return read


def _within(value: bytes, bounds: Bounds) -> bytes:
    if len(value) > bounds.record_bytes:
        raise RefusedError(
            Reason.TOO_LARGE,
            f"expected at most {bounds.record_bytes} bytes, the record has {len(value)}; "
            "send smaller records or raise bounds.record_bytes",
        )
    return value


def malformed(expected: str, found: str, advice: str) -> RefusedError:
    """Return the error for bytes that are not of the topic's format."""
    return RefusedError(Reason.MALFORMED, f"expected {expected}, found {found}; {advice}")


_INT64, _UINT64 = 1 << 63, 1 << 64


def packed(event: Document) -> bytes:
    """Return the msgpack of an event. An int beyond 64 bits is the nearest float64."""
    try:
        return msgspec.msgpack.encode(event)
    except (OverflowError, ValueError):
        return msgspec.msgpack.encode(_with_floats(event))


def _with_floats(value: Any) -> Any:
    match value:
        case int() if not -_INT64 <= value < _UINT64:
            try:
                return float(value)
            except OverflowError:
                return float("inf") if value > 0 else float("-inf")
        case dict():
            return {name: _with_floats(content) for name, content in value.items()}
        case list():
            return [_with_floats(content) for content in value]
    return value
