"""Small streams for estimators, and what there is to compare of a model."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

WORDS = ["win", "prize", "call", "see", "you", "now", "free", "lunch"]
Example = tuple[Any, Any]


def texts(n: int, labels: int = 2, seed: int = 0) -> list[Example]:
    """Return words with a label that some of them tell."""
    source = random.Random(seed)
    found: list[Example] = []
    for _ in range(n):
        label = source.randrange(labels)
        words = [word for word in WORDS if source.random() < 0.3]
        if source.random() < 0.9:
            words = [*words, f"topic {label}"]
        found.append((words, f"label {label}"))
    return found


def tables(n: int, labels: int = 2, seed: int = 0) -> list[Example]:
    """Return dicts of numbers, categories and flags; the label is in the numbers."""
    source = random.Random(seed)
    found: list[Example] = []
    for _ in range(n):
        x: dict[Any, Any] = {
            "heat": source.uniform(-5, 5),
            7: source.choice([0, 1, 2.5]),
            "wet": source.random() < 0.5,
        }
        x["colour"] = source.choice(["red", "blue", None])
        at = float(x["heat"] + 5) / 10
        found.append((x, f"label {min(labels - 1, int(at * labels))}"))
    return found


def trees_equal(one: Any, other: Any) -> bool:
    """Return whether two trees of pools are the same, to the bit, but for how nodes are numbered."""
    return all(
        np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right
        for name, left, right in zip(one._fields, one, other, strict=True)
        if name != "number"
    )
