"""The naive twin of splits of labels that are numbers: exact rationals over all live examples and features."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

Live = tuple[frozenset[Any], Fraction, int, Any]  # features, label, weight, id


class Naive:
    """A list of live examples; the best split by the variance of every feature's branches, exactly."""

    def __init__(self, window: int | None = None) -> None:
        self.window = window
        self.live: list[Live] = []

    def insert(self, x: Any, label: Fraction, weight: int, id: Any) -> None:
        """Learn an example; the window drops the oldest."""
        self.live.append((frozenset(x), label, weight, id))
        if self.window is not None and len(self.live) > self.window:
            del self.live[0]

    def delete(self, id: Any) -> bool:
        """Forget one; return whether it was there."""
        before = len(self.live)
        self.live = [each for each in self.live if each[3] != id]
        return len(self.live) < before

    def best(self) -> tuple[Any, Fraction]:
        """Return the feature and by how much it reduces the variance."""
        return self.ranked()[0]

    def ranked(self) -> list[tuple[Any, Fraction]]:
        """Return all features that reduce the variance and by how much, the best first; at the end, none."""
        scored = []
        for feature in {each for have, *_ in self.live for each in have}:
            sides = [[each for each in self.live if (feature in each[0]) == side] for side in (False, True)]
            after = sum((squares(side) for side in sides), Fraction(0))
            scored.append((after - squares(self.live), feature))
        n = sum(weight for _, _, weight, _ in self.live)
        return [*((feature, -less / n) for less, feature in sorted(scored) if less), (None, Fraction(0))]


def squares(live: list[Live]) -> Fraction:
    """Return the sum of squared deviations."""
    n = sum(weight for _, _, weight, _ in live)
    if not n:
        return Fraction(0)
    mean = sum((label * weight for _, label, weight, _ in live), Fraction(0)) / n
    return sum(((label - mean) ** 2 * weight for _, label, weight, _ in live), Fraction(0))
