"""The words for parameters, the same for all estimators, checked in these words before a pool sees them.

==================  =====================================================================
``grace_period``    ``period`` of the pools
``split_confidence``  ``delta``
``tie_threshold``   ``tau``
``leaf_prediction``  ``predict``
``max_depth``       the same; None: no bound
==================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from algorithms.core.given import number, whole

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
    if not 0.0 < number("split_confidence", split_confidence, 1.0) < 1.0:
        raise ValueError(f"expected a split_confidence between 0 and 1, got {split_confidence}")
    if number("tie_threshold", tie_threshold, 1e300) < 0.0:
        raise ValueError(f"expected a tie_threshold of at least 0, got {tie_threshold}")
    check_whole("max_depth", max_depth, 0, optional=True)


def depth_of(max_depth: int | None) -> int:
    """Return a bound on depth as pools take it."""
    return UNBOUNDED if max_depth is None else int(max_depth)
