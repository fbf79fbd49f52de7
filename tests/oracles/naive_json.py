"""JSON read by hand, one character after the other: what RFC 8259 says, each name once, and nothing clever."""

from __future__ import annotations

import re
from typing import Any

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}


class NoJsonError(Exception):
    """The text is none."""


class TwiceError(Exception):
    """An object has a name twice."""


def parse(data: bytes) -> Any:
    """Return what a text holds."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise NoJsonError from error
    value, at = _value(text, _blank(text, 0))
    if _blank(text, at) != len(text):
        raise NoJsonError
    return value


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n\r":
        at += 1
    return at


def _value(text: str, at: int) -> tuple[Any, int]:
    for word, value in _WORDS.items():
        if text.startswith(word, at):
            return value, at + len(word)
    match text[at : at + 1]:
        case '"':
            return _text(text, at + 1)
        case "[":
            return _list(text, _blank(text, at + 1))
        case "{":
            return _object(text, _blank(text, at + 1))
    match = _NUMBER.match(text, at)
    if match is None:
        raise NoJsonError
    number: int | float = float(match[0]) if match[2] or match[3] else int(match[0])
    return number, match.end()


def _text(text: str, at: int) -> tuple[str, int]:
    found = ""
    while True:
        character = text[at : at + 1]
        if character == '"':
            break
        if character < " ":  # also none
            raise NoJsonError
        if character == "\\":
            escape = text[at + 1 : at + 2]
            if escape == "u":
                digits = text[at + 2 : at + 6]
                if not re.fullmatch("[0-9a-fA-F]{4}", digits, re.ASCII):
                    raise NoJsonError
                found += chr(int(digits, 16))
                at += 6
                continue
            if escape not in _ESCAPES or not escape:
                raise NoJsonError
            character, at = _ESCAPES[escape], at + 1
        found += character
        at += 1
    try:
        return found.encode("utf-16", "surrogatepass").decode("utf-16"), at + 1
    except UnicodeDecodeError as error:
        raise NoJsonError from error


def _list(text: str, at: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    if text[at : at + 1] == "]":
        return found, at + 1
    while True:
        value, at = _value(text, _blank(text, at))
        found.append(value)
        at = _blank(text, at)
        if text[at : at + 1] == "]":
            return found, at + 1
        if text[at : at + 1] != ",":
            raise NoJsonError
        at += 1


def _object(text: str, at: int) -> tuple[dict[str, Any], int]:
    pairs: list[tuple[str, Any]] = []
    if text[at : at + 1] == "}":
        return {}, at + 1
    while True:
        at = _blank(text, at)
        if text[at : at + 1] != '"':
            raise NoJsonError
        name, at = _text(text, at + 1)
        at = _blank(text, at)
        if text[at : at + 1] != ":":
            raise NoJsonError
        value, at = _value(text, _blank(text, at + 1))
        pairs.append((name, value))
        at = _blank(text, at)
        if text[at : at + 1] == "}":
            break
        if text[at : at + 1] != ",":
            raise NoJsonError
        at += 1
    if len({name for name, _ in pairs}) < len(pairs):
        raise TwiceError
    return dict(pairs), at + 1
