"""Features, keys and numbers as short pieces of text that are safe to print."""

from __future__ import annotations

import re

from worker.codec.encode import Class, Feature

_ASCII, _BYTE = 0x7F, 16
_PLAIN = re.compile(r"[^\s'\"]+")


def printable(text: str, most: int = 60) -> str:
    """Return a text without characters that could steer a terminal, cut to `most` characters."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)


def feature_word(feature: Feature | None) -> str:
    """Return a feature as a word: a name as it is, quoted where it has spaces or quotes; an id as #17."""
    if feature is None:
        return "-"
    if isinstance(feature, int):
        return f"#{feature}"
    text = printable(feature)
    return text if _PLAIN.fullmatch(text) and not text.startswith("#") else repr(text)


def class_word(name: Class) -> str:
    """Return a class's name."""
    return printable(str(name), 24)


def key_word(key: bytes | None) -> str:
    """Return a record's key; bytes that are no UTF-8 are escaped."""
    return "(none)" if key is None else printable(key.decode("utf-8", "backslashreplace"))


def weight_word(weight: float) -> str:
    """Return a weight to three places, without zeros at the end."""
    return f"{weight:,.3f}".rstrip("0").rstrip(".")


def number_word(number: float) -> str:
    """Return a threshold or a value to six digits."""
    return f"{number:.6g}"


def branch_word(kind: str | None, threshold: float | None, branch: int) -> str:
    """Return what leads to a branch of a split on a feature of this kind, see `worker.codec.Split.branches`."""
    if threshold is not None:
        return f"{'>' if branch else '≤'} {number_word(threshold)}"
    if kind == "nominal" and branch:
        return f"= {branch}"
    return "present" if branch else "absent"


def share_word(share: float | None) -> str:
    """Return a share of 1 to four places, such as an accuracy."""
    return "-" if share is None else f"{share:.4f}"


def gain_word(gain: float | None) -> str:
    """Return a gain to four places."""
    return "-" if gain is None else f"{gain:.4f}"
