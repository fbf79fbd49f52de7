"""What every reader of a file yields, and the names, labels and numbers that all of them understand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from worker.sources.columns import Columns
from worker.sources.lines import Lines

Label: TypeAlias = int | float | str

_INT = re.compile(r"0|-?[1-9][0-9]{0,18}")  # as Python writes it: "007" and "+1" are other names than 7 and 1


@dataclass(frozen=True, slots=True)
class Example:
    """One event of a file.

    Parameters
    ----------
    key
        The model's key, None where the file names none.
    fields
        The event's fields by the names they have in a record: op, id, x, y, w, ts.
    line
        Where it begins in the file, from 1.
    """

    key: str | None
    fields: dict[str, Any]
    line: int


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no event, and why: what was expected there and what came."""

    line: int
    why: str


Entry: TypeAlias = Example | BadLine
Reader: TypeAlias = Callable[[Lines, Columns], Iterator[Entry]]


def as_op(fields: dict[str, Any], op: str) -> dict[str, Any]:
    """Return the fields of an event as those of an op: a predict has no label, a delete no more than its id.

    A label has no features.
    """
    if op == "insert":
        return fields
    left_out = {"predict": {"y", "w"}, "label": {"x"}, "delete": {"x", "y", "w"} if "id" in fields else set()}[op]
    return {"op": op, **{name: value for name, value in fields.items() if name not in left_out}}


class UnreadableError(Exception):
    """A line is not what it should be; the message says what was expected and what came."""


def each_line(lines: Lines, parse: Callable[[str], tuple[str | None, dict[str, Any]] | None]) -> Iterator[Entry]:
    """Yield what `parse` makes of each line: key and fields, None for a line that holds nothing."""
    for line in lines:
        try:
            check_text(line)
            parsed = parse(line.rstrip("\r\n"))
        except UnreadableError as error:
            yield BadLine(lines.number, str(error))
            continue
        if parsed is not None:
            yield Example(*parsed, lines.number)


def check_text(text: str) -> None:
    """Raise `UnreadableError` where the bytes that the text was read from were not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnreadableError(
            f"expected UTF-8 text, got the byte 0x{ord(text[error.start]) & 0xFF:02x}; where the file was written "
            "otherwise say how, as in --encoding latin-1"
        ) from None


def name(text: str) -> int | str:
    """Return an id: an int of 64 bits where the text is one as Python writes it, else the text."""
    whole = _whole(text)
    return text if whole is None else whole


def label(text: str) -> Label:
    """Return a label: a whole number as an int (1, +1 and 1.0 are one class), other numbers, or a name.

    A whole number beyond 64 bits stays a name, since a float would lose its digits.
    """
    if (plain := text.removeprefix("+")) != text and not plain[:1].isdigit():
        return text
    whole = _whole(plain)
    if whole is not None:
        return whole
    try:
        value = number(plain)
    except UnreadableError:
        return text
    if plain.lstrip("-").isdigit() and abs(value) >= 1 << 53:
        return text
    return int(value) if value.is_integer() and abs(value) < 1 << 53 else value


def _whole(text: str) -> int | None:
    """Return the 64-bit int that a text writes as Python does; None where it writes none."""
    value = int(text) if _INT.fullmatch(text) else None
    return value if value is not None and -(1 << 63) <= value < 1 << 63 else None


def number(text: str) -> float:
    """Return a finite number written in digits."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in text:
        raise UnreadableError(f"expected a number, got {brief(text)}")
    return value


def moment(text: str) -> int:
    """Return a time in ms since the epoch, of such a number or of ISO 8601; one without a zone is taken as UTC."""
    if text.isascii() and text.isdigit():
        return int(text[:19])
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UnreadableError(f"expected ms since the epoch or an ISO 8601 time, got {brief(text)}") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return since.days * 86_400 * _MS + since.seconds * _MS + since.microseconds // _MS


def brief(text: str) -> str:
    """Return a piece of a file, quoted and cut, for a message."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}... ({len(text)} characters)"


_SHOWN = 40
_MS = 1000
