"""Features, keys and numbers as short pieces of text that are safe to print."""

from __future__ import annotations

import math
import re

from worker.codec.encode import Class, Feature
from worker.safe_text import printable

_PLAIN = re.compile(r"[^\s'\"]+")


def feature_word(feature: Feature | None, most: int = 60) -> str:
    """Return a feature as a word: a name as it is, quoted where it has spaces or quotes; an id as #17.

    Of a longer name so many characters are there, with a mark where it is cut.
    """
    if feature is None:
        return "-"
    if isinstance(feature, int):
        return f"#{feature}"
    text = printable(feature, most)
    return text if _PLAIN.fullmatch(text) and not text.startswith("#") else repr(text)


def model_word(model: str) -> str:
    """Return a model's name."""
    return printable(model, 64)


def topic_word(topic: str) -> str:
    """Return a topic's name."""
    return printable(topic, 249)


def class_word(name: Class, most: int = 24) -> str:
    """Return a class's name, at most so many characters of it."""
    return printable(str(name), most)


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
    """Return a threshold or a value to six digits, those before the point always all of them."""
    if not 1e5 <= abs(number) < 1e15:
        return f"{number:,.6g}"
    return f"{number:,.0f}" if abs(number) >= 1e6 or number.is_integer() else f"{number:,.1f}"


def deviation_word(variance: float | None) -> str:
    """Return the standard deviation of a value as what stands behind it; nothing where it is not known."""
    return "" if variance is None else f"± {number_word(float(f'{math.sqrt(variance):.3g}'))}"


def value_word(value: float, variance: float | None) -> str:
    """Return a value with its standard deviation, where that is known."""
    return f"{number_word(value)} {deviation_word(variance)}".rstrip()


def branch_word(kind: str | None, threshold: float | None, branch: int) -> str:
    """Return what leads to a branch of a split on a feature of this kind, see `worker.codec.Split.branches`."""
    if kind == "category" and threshold is not None:
        return f"{'=' if branch else '≠'} {number_word(threshold)}"
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
