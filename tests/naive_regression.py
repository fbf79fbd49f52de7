"""The oracle of regression: the same behaviour from dictionaries and lists, in the plainest words.

The naive observers repeat the operations on floats, so that they agree to the bit; `exact_merit` says in rational
numbers what a merit should have been.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from algorithms.criteria import UNIT

Labels = Sequence[tuple[float, int]]  # label, weight in units


@dataclass
class Seen:
    """The moments of some labels: weight in units, mean, sum of weighted squared deviations."""

    weight: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def learn(self, y: float, weight: int) -> None:
        """Add a label."""
        before, self.weight = self.mean, self.weight + weight
        mean = before + (y - before) * (weight / self.weight)
        self.mean = min(max(mean, min(before, y)), max(before, y))
        self.squares += weight / UNIT * ((y - before) * (y - self.mean))

    def plus(self, other: Seen) -> Seen:
        """Return both."""
        if not self.weight or not other.weight:
            return self if self.weight else other
        n, step = self.weight + other.weight, other.mean - self.mean
        share = other.weight / n
        squares = self.squares + other.squares + step * step * (self.weight / UNIT * share)
        return Seen(n, self.mean + step * share, squares)

    def minus(self, other: Seen) -> Seen:
        """Return what is not in the other."""
        n = self.weight - other.weight
        if not n or not other.weight:
            return self if n else Seen()
        mean = self.mean + (self.mean - other.mean) * (other.weight / n)
        step = other.mean - mean
        squares = self.squares - other.squares - step * step * (n / UNIT * (other.weight / self.weight))
        return Seen(n, mean, max(squares, 0.0))

    def variance(self, one: float) -> float:
        """Return s^2."""
        n = self.weight / UNIT
        return self.squares / (n - one) if n > one else self.squares / n if n else 0.0


def merit(whole: Seen, low: Seen, high: Seen, one: float) -> float:
    """Return the variance reduction of a split."""
    below, above = (side.weight / whole.weight * side.variance(one) for side in (low, high))
    return whole.variance(one) - below - above


@dataclass
class Point:
    """An element: its prototype, and the labels of its values."""

    x: float
    seen: Seen = field(default_factory=Seen)
    labels: list[tuple[float, int]] = field(default_factory=list)  # less the first of all

    def learn(self, x: float, y: float, weight: int) -> None:
        """Add an example."""
        self.seen.learn(y, weight)
        self.x = prototype(self.x, x, weight / self.seen.weight)
        self.labels.append((y, weight))


def prototype(before: float, x: float, share: float) -> float:
    """Return a mean of values that is among them."""
    return min(max(before + (x - before) * share, min(before, x)), max(before, x))


class NaiveObserver:
    """What `OBSERVERS` promises, from a dictionary of points."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.name = name
        self.decimals = options.get("decimals", 3)
        self.radius: float | None = options.get("radius")
        self.fraction = options.get("fraction", 0.5)
        self.most = options.get("most", 1 << 16)
        self.points: dict[float, Point] = {}
        self.total = Seen()  # of labels less the first
        self.first = 0.0
        self.examples = 0

    def observe(self, x: float, y: float, weight: int) -> None:
        """Count an example."""
        if not self.examples:
            self.first = y
        y -= self.first
        self.total.learn(y, weight)
        self.examples += 1
        if self.name == "tebst":
            x = cut_off(x, self.decimals)
        key = self._key(x)
        if self.name == "qo" and key not in self.points:
            if self.radius is None and len(self.points) >= min(32, self.most):
                self._regroup(max(self.fraction * self._deviation(), 1e-160))
                key = self._key(x)
            while key not in self.points and len(self.points) >= self.most:
                assert self.radius is not None
                self._regroup(2.0 * self.radius)
                key = self._key(x)
        self.points.setdefault(key, Point(x)).learn(x, y, weight)

    def _key(self, x: float) -> float:
        if self.radius is None:
            return x
        return min(math.floor(x / self.radius), -1 if x < 0 else math.inf)

    def _deviation(self) -> float:
        points = self.in_order()
        weight, mean = 0.0, 0.0
        for point in points:
            weight += point.seen.weight
            mean += (point.x - mean) * (point.seen.weight / weight)
        largest = max(abs(point.x - mean) for point in points)
        squares = 0.0
        for point in points:
            part = (point.x - mean) / largest
            squares += point.seen.weight * (part * part)
        return largest * math.sqrt(squares / weight)

    def _regroup(self, radius: float) -> None:
        points, self.points, self.radius = self.in_order(), {}, radius
        for point in points:
            key = self._key(point.x)
            if key not in self.points:
                self.points[key] = point
                continue
            kept = self.points[key]
            kept.seen = kept.seen.plus(point.seen)
            kept.x = prototype(kept.x, point.x, point.seen.weight / kept.seen.weight)
            kept.labels += point.labels

    def in_order(self) -> list[Point]:
        """Return the points by their prototypes."""
        return sorted(self.points.values(), key=lambda point: point.x)

    def best_split(self) -> tuple[str, ...] | None:
        """Return threshold, merit, and both sides, as hexadecimal text."""
        one = self.total.weight / UNIT / max(self.examples, 1)
        found = best_cut(self.name, self.in_order(), self.total, one)
        if found is None:
            return None
        worth, threshold, low, high = found
        sides = [
            each
            for side in (low, high)
            for each in (side.weight / UNIT, self.first + side.mean, side.variance(one))
        ]
        return tuple(each.hex() for each in (threshold, worth, *sides))


def best_cut(name: str, points: list[Point], whole: Seen, one: float) -> tuple[float, float, Seen, Seen] | None:
    """Return merit, threshold and sides of the best split between points in order."""
    best: tuple[float, float, Seen, Seen] | None = None
    low = Seen()
    for at, point in enumerate(points):
        if at:
            high = whole.minus(low)
            worth = merit(whole, low, high, one)
            if best is None or worth > best[0]:
                best = (worth, threshold_of(name, points[at - 1].x, point.x), low, high)
        low = low.plus(point.seen)
    return best


def threshold_of(name: str, low: float, high: float) -> float:
    """Return the threshold between prototypes: midway, or the lower."""
    middle = low / 2 + high / 2
    return middle if name == "qo" and low <= middle < high else low


def cut_off(x: float, decimals: int) -> float:
    """Return the largest of the numbers with so many decimals that is no larger in size."""
    scale, size = 10.0**decimals, abs(x)
    if size * scale >= 2.0**53:
        return x
    near = math.floor(size * scale)
    found = max(whole / scale for whole in (near - 1, near, near + 1) if whole / scale <= size)
    return math.copysign(found, x) + 0.0


def exact_merit(low: Labels, high: Labels) -> Fraction:
    """Return the variance reduction of a split, from its definition, in rational numbers."""
    examples = len(low) + len(high)
    weight = sum(Fraction(w, UNIT) for _, w in (*low, *high))
    one = weight / examples

    def part(labels: Labels) -> Fraction:
        n = sum((Fraction(w, UNIT) for _, w in labels), Fraction(0))
        mean = sum((Fraction(w, UNIT) * Fraction(y) for y, w in labels), Fraction(0)) / n
        squares = sum((Fraction(w, UNIT) * (Fraction(y) - mean) ** 2 for y, w in labels), Fraction(0))
        return n / weight * (squares / (n - one) if n > one else squares / n)

    return part([*low, *high]) - part(low) - part(high)
