"""What every reader of a file yields, and the words and numbers that all of them understand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from worker.sources.lines import Lines

Label: TypeAlias = int | float | str

_WORD = re.compile(r"[a-z0-9]+")
_INT = re.compile(r"0|-?[1-9][0-9]{0,17}")  # as Python writes it: "007" and "+1" are other names than 7 and 1


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


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a table are. A column goes by its name, or by its number where there is no header.

    Parameters
    ----------
    label
        The column that holds the label.
    key, id, text, time
        The columns of the model's key, the example's id, text to be cut into words, and the event
        time; None where there is none.
    features
        The columns that are features; None: all that are left, or none at all beside a `text`.
    categorical
        Those of them whose 0 and 1 are names of categories, not absent and present.
    header
        Whether the first line names the columns.
    """

    label: str | None = None
    key: str | None = None
    id: str | None = None
    text: str | None = None
    time: str | None = None
    features: tuple[str, ...] | None = None
    categorical: frozenset[str] = field(default_factory=frozenset)
    header: bool = True


Entry: TypeAlias = Example | BadLine
Reader: TypeAlias = Callable[[Lines, Columns], Iterator[Entry]]


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
        raise UnreadableError(f"expected UTF-8 text, got the byte 0x{ord(text[error.start]) & 0xFF:02x}") from None


def words(text: str) -> list[str]:
    """Return the words of a text: runs of a-z and 0-9 of the lower-cased text, each once, as they come."""
    return list(dict.fromkeys(_WORD.findall(text.lower())))


def name(text: str) -> int | str:
    """Return an id: an int where the text is one as Python writes it, else the text."""
    return int(text) if _INT.fullmatch(text) else text


def label(text: str) -> Label:
    """Return a label: a whole number as an int (1, +1 and 1.0 are one class), other numbers, or a name."""
    if (plain := text.removeprefix("+")) != text and not plain[:1].isdigit():
        return text
    if _INT.fullmatch(plain):
        return int(plain)
    try:
        value = number(plain)
    except UnreadableError:
        return text
    return int(value) if value.is_integer() and abs(value) < 1 << 53 else value


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
