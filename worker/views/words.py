"""Features, keys and numbers as short pieces of text that are safe to print."""

from __future__ import annotations

import re

from worker.codec.encode import Class, Feature
from worker.safe_text import printable

_PLAIN = re.compile(r"[^\s'\"]+")


def feature_word(feature: Feature | None) -> str:
    """Return a feature as a word: a name as it is, quoted where it has spaces or quotes; an id as #17."""
    if feature is None:
        return "-"
    if isinstance(feature, int):
        return f"#{feature}"
    text = printable(feature)
    return text if _PLAIN.fullmatch(text) and not text.startswith("#") else repr(text)


def model_word(model: str) -> str:
    """Return a model's name."""
    return printable(model, 64)


def topic_word(topic: str) -> str:
    """Return a topic's name."""
    return printable(topic, 249)


def class_word(name: Class) -> str:
    """Return a class's name."""
    return printable(str(name), 24)


def key_word(key: bytes | None) -> str:
    """Return a record's key; bytes that are no UTF-8 are escaped."""
    return "(none)" if key is None else printable(key.decode("utf-8", "backslashreplace"))


def weight_word(weight: float) -> str:
    """Return a weight to three places, without zeros at the end."""
    return f"{weight:,.3f}".rstrip("0").rstrip(".")


def brief_weight_word(weight: float) -> str:
    """Return a weight to four digits, whole from 1,000 on: what stands in a leaf may be an estimate anyway."""
    places = 0 if weight >= 1_000 else 1 if weight >= 100 else 2 if weight >= 10 else 3
    text = f"{weight:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


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
