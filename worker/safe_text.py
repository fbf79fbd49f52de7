"""Text from outside, such as names, keys and reasons, made safe to print."""

from __future__ import annotations

import json
import unicodedata
from typing import Any


def printable(text: str, most: int = 60) -> str:
    """Return a text without characters that could steer a terminal, cut to `most` characters."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)


def printable_lines(text: str) -> str:
    """Return a message of several lines without characters that could steer a terminal, other than line ends."""
    return "\n".join(printable(line, len(line)) for line in text.split("\n"))


def json_line(value: Any) -> str:
    """Return a value as JSON on one line, readable where that is safe: what could steer a terminal is escaped."""
    written = json.dumps(value, ensure_ascii=False)
    if written.isprintable():
        return written
    return "".join(char if _is_plain(char) else json.dumps(char)[1:-1] for char in written)


def _is_plain(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"  # spaces of any width
