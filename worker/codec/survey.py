"""Walk over a record's msgpack bytes before anything is built from them.

Schema lengths, nesting and the number of elements are judged here, in our own words, so that the
library afterwards only ever sees one whole value of known size, and no message of its own gets out.
"""

from __future__ import annotations

from worker.codec.bounds import Bounds
from worker.codec.reasons import Reason

DEPTH = 4  # an event nests three deep (event, x, list); one more lets "wrong form" be said of an element

CONTAINERS = 64  # lists and maps in one record; no event needs ten, and each costs memory to build

_NUMBERS = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_BINS = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_STRINGS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_ARRAYS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_EXTENSIONS = {0xC7, 0xC8, 0xC9, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8}


class RefusedError(Exception):
    """Something in a record is not as it must be."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def survey(data: bytes, bounds: Bounds) -> None:
    """Raise `RefusedError` unless the bytes are one whole msgpack value within the bounds.

    Costs one step an element; builds nothing but the strings, one at a time, to see that they are UTF-8.
    """
    most = max(bounds.elements, 2 * bounds.features) + 4 * bounds.rows + 64
    left = [1]  # how many values each open container still expects
    elements = containers = 0
    at = 0
    while left:
        if left[-1] == 0:
            left.pop()
            continue
        left[-1] -= 1
        if at >= len(data):
            raise _truncated(data)
        code = data[at]
        at += 1
        if code < 0x80 or code >= 0xE0 or code in (0xC0, 0xC2, 0xC3):
            continue
        if code in _NUMBERS:
            at += _NUMBERS[code]
            continue
        if 0xA0 <= code < 0xC0 or code in _STRINGS or code in _BINS:
            width = 0 if code < 0xC0 else (_STRINGS.get(code) or _BINS[code])
            size = code & 31 if code < 0xC0 else _length(data, at, width)
            at += width
            if size > len(data) - at:
                raise _truncated(data)
            if code not in _BINS:
                _check_text(data[at : at + size], at)
            at += size
            continue
        if code < 0x90:
            inside = 2 * (code & 15)
            left.append(inside)
        elif code < 0xA0:
            inside = code & 15
            left.append(inside)
        elif code in _ARRAYS or code in _MAPS:
            width = _ARRAYS.get(code) or _MAPS[code]
            inside = _length(data, at, width) * (2 if code in _MAPS else 1)
            at += width
            left.append(inside)
        elif code in _EXTENSIONS:
            raise RefusedError(
                Reason.UNSUPPORTED_TYPE,
                f"expected plain msgpack types, found an extension or timestamp at byte {at - 1}; "
                "write times as int milliseconds",
            )
        else:
            raise RefusedError(
                Reason.MALFORMED,
                f"expected msgpack, found the reserved code 0xc1 at byte {at - 1}; send msgpack maps",
            )
        elements += inside
        containers += 1
        _check_containers(containers, elements, most, len(left), at)
    if at > len(data):
        raise _truncated(data)
    if at < len(data):
        raise RefusedError(
            Reason.MALFORMED,
            f"expected one msgpack value, {len(data) - at} bytes follow it; send one value a record",
        )


def _check_containers(containers: int, elements: int, most: int, nested: int, at: int) -> None:
    """Refuse what has more containers, elements or nesting than an event needs."""
    if containers > CONTAINERS:
        raise RefusedError(
            Reason.TOO_MANY_ELEMENTS,
            f"expected at most {CONTAINERS} lists and maps, found another at byte {at - 1}; flatten the event",
        )
    if elements > most:
        raise RefusedError(
            Reason.TOO_MANY_ELEMENTS,
            f"expected at most {most} elements, {elements} are declared by byte {at}; "
            "send smaller records or raise bounds.elements",
        )
    if nested > DEPTH + 1:
        raise RefusedError(
            Reason.TOO_DEEP,
            f"expected at most {DEPTH} containers inside each other, found another at byte {at - 1}; "
            "flatten the event",
        )


def _length(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise _truncated(data)
    return int.from_bytes(data[at : at + width], "big")


def _truncated(data: bytes) -> RefusedError:
    return RefusedError(
        Reason.MALFORMED,
        f"expected one whole msgpack value, it is cut off after {len(data)} bytes; send the whole value",
    )


def _check_text(text: bytes, at: int) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise RefusedError(
            Reason.MALFORMED,
            f"expected UTF-8 in the string at byte {at}, found other bytes; send raw bytes as bin",
        ) from None
