"""What all estimators check of their parameters before a pool sees them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from algorithms.core.given import number, whole
from algorithms.trees.bounds import check_bound

FEATURES = ("auto", "binary", "numeric")
UNBOUNDED = 1 << 30  # a depth, or a window, that nothing reaches


def check_choice(what: str, given: Any, choices: Iterable[str]) -> None:
    """Raise ValueError unless a parameter is one of these words."""
    choices = list(choices)
    if not isinstance(given, str) or given not in choices:
        raise ValueError(f"expected {what} of {', '.join(choices)}, got {given!r}")


def check_whole(what: str, given: Any, least: int, *, optional: bool = False) -> None:
    """Raise ValueError unless a parameter is a whole number from `least` on, or None where that is allowed."""
    if given is not None or not optional:
        whole(what, given, least, UNBOUNDED)


def check_growth(grace_period: Any, split_confidence: Any, tie_threshold: Any, max_depth: Any) -> None:
    """Raise ValueError unless these say when a leaf splits."""
    check_whole("grace_period", grace_period, 1)
    check_bound(number("split_confidence", split_confidence, 1.0), number("tie_threshold", tie_threshold, 1e300))
    check_whole("max_depth", max_depth, 0, optional=True)


def depth_of(max_depth: int | None) -> int:
    """Return a bound on depth as pools take it."""
    return UNBOUNDED if max_depth is None else int(max_depth)
