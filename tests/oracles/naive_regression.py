"""The oracle of regression: the same behaviour from dictionaries and lists, in the plainest words.

The naive observers repeat the operations on floats, so that they agree to the bit; `exact_merit` says in rational
numbers what a merit should have been.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from algorithms.core.criteria import UNIT
from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.regression.answers import Split
from algorithms.regression.pool import RegressionPool
from algorithms.trees.snapshot import NumberTree as Tree
from tests.oracles.differential import Differential, columns_of

Feature: TypeAlias = int | bytes

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
        left = max(self.squares - other.squares, 0.0) + 2.0**-40 * self.squares
        farthest = math.sqrt(left / (n / UNIT)) * (1.0 + 2.0**-20)
        mean = self.mean + min(max((self.mean - other.mean) * (other.weight / n), -farthest), farthest)
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
        of_slots = 256 if self.radius is None else 1 << 16
        self.most = options.get("most") or (of_slots if name == "qo" else math.inf)
        self.points: dict[float, Point] = {}
        self.total = Seen()  # of labels less the first
        self.first = 0.0
        self.examples = 0

    def observe(self, x: float, y: float, weight: int) -> None:
        """Count an example."""
        if not self.examples:
            self.first = y
        self.total.learn(y - self.first, weight)
        self.examples += 1
        self.count(x, y - self.first, weight)

    def count(self, x: float, y: float, weight: int) -> None:
        """Count an example among the points alone."""
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
        elif key not in self.points and len(self.points) >= self.most:
            x = key = max((each for each in self.points if each < key), default=min(self.points))
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


Cut: TypeAlias = tuple[float, float, Seen, Seen]  # merit, threshold, low and high


def best_cut(name: str, points: list[Point], whole: Seen, one: float) -> Cut | None:
    """Return the best split between points in order."""
    best: Cut | None = None
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
    weight = Fraction(sum(w for _, w in (*low, *high)), UNIT)
    one = weight / examples

    def part(labels: Labels) -> Fraction:
        n = Fraction(sum(w for _, w in labels), UNIT)
        mean = sum((Fraction(w, UNIT) * Fraction(y) for y, w in labels), Fraction(0)) / n
        squares = sum((Fraction(w, UNIT) * (Fraction(y) - mean) ** 2 for y, w in labels), Fraction(0))
        return n / weight * (squares / (n - one) if n > one else squares / n)

    return part([*low, *high]) - part(low) - part(high)


# --- trees


@dataclass(frozen=True)
class Settings:
    """The parameters of `RegressionPool`; the bound is loose, so that short streams split."""

    observer: str = "qo"
    options: dict[str, Any] = field(default_factory=dict)
    predict: str = "mean"
    interval: float | None = None
    grace_period: int = 20
    split_confidence: float = 0.3
    tie_threshold: float = 0.2
    default: Kind = Kind.BINARY
    kinds: dict[Feature, Kind] = field(default_factory=dict)
    names: bool = False
    max_keys: int = 1 << 30
    max_depth: int = 1 << 30
    memory_limit: int | None = None  # the oracle has none

    def pool(self) -> RegressionPool:
        """Return a new pool with these settings."""
        return RegressionPool(**vars(self))


@dataclass(frozen=True)
class Event:
    """One event; the weight is in units of 2^-20."""

    op: Op
    x: dict[Feature, float] = field(default_factory=dict)
    label: float = 0.0
    weight: int = UNIT
    key: int = 0


@dataclass(frozen=True)
class Outcome:
    """All that an event led to; floats as hexadecimal text, so that equal means equal to the bit."""

    status: Status
    predicted: str = "nan"
    leaf: int = 0
    margin: str = "nan"
    split: Any = None


@dataclass
class Coefficient:
    """What a linear model knows of a feature."""

    value: float = 0.0
    uncertainty: float = 1.0
    values: float = 0.0  # of a numeric feature how many there were
    center: float = 0.0  # their mean
    spread: float = 0.0  # sum of squared deviations

    def scaled(self, x: float, numeric: bool) -> float:
        """Return a value in standard deviations from the mean."""
        if not numeric:
            return 1.0
        deviation = math.sqrt(self.spread / max(self.values, 1.0))
        return min(max((x - self.center) / deviation, -4.0), 4.0) if deviation else 0.0


@dataclass
class Linear:
    """The linear model of a leaf: AROW for regression with a floor, parts in integers so that order is nothing."""

    offset: float
    low: float
    high: float
    intercept: float = 0.0
    uncertainty: float = 1.0
    errors: tuple[float, float] = (0.0, 0.0)  # of the mean, of the model
    coefficients: dict[Feature, Coefficient] = field(default_factory=dict)

    def look(self, x: Mapping[Feature, tuple[float, bool]]) -> tuple[float, float]:
        """Return what is said of an example, less the offset, and how uncertain that is."""
        total, uncertain = 0, 0
        for feature, (value, numeric) in x.items():
            if feature not in self.coefficients:
                uncertain += 0 if numeric else 1 << 32
                continue
            known = self.coefficients[feature]
            scaled = known.scaled(value, numeric)
            uncertain += round(known.uncertainty * (scaled * scaled) * 2.0**32)
            if self.high > self.low:
                part = known.value * scaled / (self.high - self.low) * 2.0**30
                total += round(min(max(part, -(2.0**38)), 2.0**38))
        return (
            self.intercept + total * ((self.high - self.low) / 2.0**30),
            self.uncertainty + uncertain / 2.0**32,
        )

    def predict(self, said: float) -> float:
        """Return the label predicted, within those seen."""
        return min(max(self.offset + said, self.low), self.high)

    def judge(self, label: float, mean: float, said: float) -> None:
        """Count how wrong both were."""
        found = zip(self.errors, (label - mean, label - self.predict(said)), strict=True)
        of_mean, of_model = (0.995 * before + wrong * wrong for before, wrong in found)
        self.errors = of_mean, of_model

    def learn(
        self, x: Mapping[Feature, tuple[float, bool]], label: float, lightness: float, said: tuple[float, float]
    ) -> None:
        """Learn an example; a mean one is so many times as heavy."""
        whole = said[1] + lightness
        moves = (label - self.offset - said[0]) / whole
        self.intercept = held(self.intercept + self.uncertainty * moves)
        self.uncertainty = max(self.uncertainty - self.uncertainty * self.uncertainty / whole, 0.01)
        self.low, self.high = min(self.low, label), max(self.high, label)
        for feature, (value, numeric) in x.items():
            known = self.coefficients.setdefault(feature, Coefficient())
            before = known.uncertainty * known.scaled(value, numeric)
            known.value = held(known.value + before * moves)
            known.uncertainty = max(known.uncertainty - before * before / whole, 0.01)
            if numeric:
                known.values += 1.0
                center = known.center
                known.center = prototype(center, value, 1.0 / known.values)
                known.spread += (value - center) * (value - known.center)


def held(coefficient: float) -> float:
    """Return a coefficient that no product overflows by."""
    return min(max(coefficient, -1e200), 1e200)


@dataclass
class SeenFeature:
    """What a leaf saw of a feature."""

    present: Seen
    observer: NaiveObserver | None  # of a numeric one
    categories: dict[int, Seen] = field(default_factory=dict)  # of a nominal one


@dataclass
class Node:
    """A leaf, or an inner node once it has a feature."""

    number: int
    depth: int
    prior: Seen
    first: float = 0.0
    seen: Seen = field(default_factory=Seen)  # of labels less the first
    examples: int = 0
    squared_weights: float = 0.0
    tried: int = 0
    features: dict[Feature, SeenFeature] = field(default_factory=dict)
    feature: Feature | None = None
    kind: Kind | None = None
    threshold: float = 0.0
    children: dict[int, Node] = field(default_factory=dict)  # by branch
    model: Linear | None = None
    residuals: tuple[float, float] = (0.0, 0.0)  # squared, and how many, both faded

    def known(self) -> Seen:
        """Return the moments of all that is known."""
        return self.prior.plus(Seen(self.seen.weight, self.first + self.seen.mean, self.seen.squares))


@dataclass
class NaiveTree:
    """One tree."""

    root: Node
    made: int = 1
    events: int = 0
    learned: int = 0  # weight
    attempts: int = 0
    splits: int = 0
    reach: float = 0.0


class NaiveForest:
    """What `RegressionPool` promises."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.trees: dict[int, NaiveTree] = {}

    def apply(self, event: Event) -> Outcome:
        """Apply an event."""
        if event.op == Op.DELETE:
            return Outcome(Status.CANNOT_FORGET)
        if event.op == Op.DROP:
            self.trees.pop(event.key, None)
            return Outcome(Status.APPLIED)
        if not all(self._is_value(feature, value) for feature, value in event.x.items()):
            return Outcome(Status.WRONG_VALUE)
        if event.op == Op.PREDICT:
            return Outcome(Status.APPLIED, *self._guess(event))
        return self._insert(event)

    def _is_value(self, feature: Feature, value: float) -> bool:
        if self._kind(feature) == Kind.NOMINAL:
            return 0 <= value < 1 << 32 and value == int(value)
        return abs(value) <= 1e140

    def _leaf(self, event: Event) -> Node | None:
        if event.key not in self.trees:
            return None
        node = self.trees[event.key].root
        while node.feature is not None:
            value = event.x.get(node.feature, 0.0)
            branch = int(value)
            if node.kind != Kind.NOMINAL:
                branch = int(value > node.threshold if node.kind == Kind.NUMERIC else value != 0.0)
            if branch not in node.children:
                return node
            node = node.children[branch]
        return node

    def _kind(self, feature: Feature) -> Kind:
        return self.settings.kinds.get(feature, self.settings.default)

    def _present(self, event: Event) -> dict[Feature, tuple[float, bool]]:
        """Return what an example has, with its values, and whether they are numeric; no categories."""
        return {
            feature: (value, self._kind(feature) == Kind.NUMERIC)
            for feature, value in event.x.items()
            if value and self._kind(feature) != Kind.NOMINAL
        }

    def _guess(self, event: Event) -> tuple[str, int, str]:
        leaf = self._leaf(event)
        if leaf is None:
            return "nan", 0, "nan"
        mean, model = leaf.known().mean, leaf.model
        if model is None or (self.settings.predict == "adaptive" and not model.errors[1] < model.errors[0]):
            return mean.hex(), leaf.number, self._margin(event.key, leaf).hex()
        said = model.predict(model.look(self._present(event))[0])
        return said.hex(), leaf.number, self._margin(event.key, leaf).hex()

    def _margin(self, key: int, leaf: Node) -> float:
        """Return half the width of an interval."""
        squares, examples = leaf.residuals
        if self.settings.interval is None or examples < 9.5:
            return math.nan
        return self.trees[key].reach * math.sqrt(squares / examples)

    def _judge(self, tree: NaiveTree, leaf: Node, residual: float, margin: float) -> None:
        """Let intervals learn how far a prediction was off."""
        share = self.settings.interval
        squares, examples = leaf.residuals
        if share is None:
            return
        if squares > 0.0 and not math.isnan(margin):
            tree.reach = max(tree.reach + (0.05 * share if residual > margin else 0.05 * (share - 1.0)), 0.0)
        leaf.residuals = 0.995 * squares + residual * residual, 0.995 * examples + 1.0

    def _insert(self, event: Event) -> Outcome:
        if not abs(event.label) <= 1e140:
            return Outcome(Status.WRONG_LABEL)
        if event.weight <= 0:
            return Outcome(Status.IGNORED if event.weight == 0 else Status.WRONG_WEIGHT)
        if event.weight + (self.trees[event.key].learned if event.key in self.trees else 0) >= MAX_TOTAL:
            return Outcome(Status.COUNT_OVERFLOW)
        leaf = self._leaf(event)
        predicted = self._guess(event)
        if leaf is None:
            if len(self.trees) >= self.settings.max_keys:
                return Outcome(Status.TOO_MANY_KEYS)
            leaf = Node(0, 0, Seen())
        share = self.settings.interval
        first = round(NormalDist().inv_cdf((1 + share) / 2), 3) if share else 0.0
        tree = self.trees.setdefault(event.key, NaiveTree(leaf, reach=first))
        mean = leaf.known().mean
        if leaf.feature is not None:  # a category that the node has not seen
            below = self._below(tree, leaf, Seen())
            leaf.children[int(event.x.get(leaf.feature, 0.0))] = below
            tree.made += 1
            leaf = below
        if predicted[0] != "nan":
            self._judge(tree, leaf, abs(event.label - float.fromhex(predicted[0])), float.fromhex(predicted[2]))
        tree.events += 1
        tree.learned += event.weight
        x, model = self._present(event), leaf.model
        if predicted[0] != "nan" and model is not None:
            model.judge(event.label, mean, model.look(x)[0])
        self._count(leaf, event)
        if self.settings.predict != "mean":
            model = leaf.model = model or Linear(event.label, event.label, event.label)
            lightness = leaf.seen.weight / (event.weight * leaf.examples)
            model.learn(x, event.label, lightness, model.look(x))
        return Outcome(Status.APPLIED, *predicted, self._maybe_split(tree, leaf))

    def _below(self, tree: NaiveTree, node: Node, said: Seen) -> Node:
        return Node(tree.made, node.depth + 1, said, model=deepcopy(node.model), residuals=node.residuals)

    def _count(self, leaf: Node, event: Event) -> None:
        if not leaf.examples:
            leaf.first = event.label
        y = event.label - leaf.first
        leaf.examples += 1
        leaf.seen.learn(y, event.weight)
        leaf.squared_weights += (event.weight / UNIT) ** 2
        for feature, value in event.x.items():
            if value:
                numeric = self._kind(feature) == Kind.NUMERIC
                if feature not in leaf.features:
                    observer = NaiveObserver(self.settings.observer, self.settings.options) if numeric else None
                    leaf.features[feature] = SeenFeature(Seen(), observer)
                seen = leaf.features[feature]
                seen.present.learn(y, event.weight)
                if seen.observer is not None:
                    seen.observer.count(value, y, event.weight)
                if self._kind(feature) == Kind.NOMINAL:
                    seen.categories.setdefault(int(value), Seen()).learn(y, event.weight)

    def _maybe_split(self, tree: NaiveTree, leaf: Node) -> Any:
        if leaf.examples - leaf.tried < self.settings.grace_period:
            return None
        leaf.tried = leaf.examples
        if leaf.depth >= self.settings.max_depth or not leaf.seen.squares:
            return None
        tree.attempts += 1
        one = leaf.seen.weight / UNIT / leaf.examples
        cuts: list[tuple[Feature, Cut]] = []
        for feature in sorted(leaf.features):
            cut = self._cut(leaf, leaf.features[feature], one)
            if cut is not None:
                cuts.append((feature, cut))
        if not cuts:
            return None
        feature, best = max(cuts, key=lambda each: each[1][0])  # the first of equal ones
        second = max([0.0, *(cut[0] for other, cut in cuts if other != feature)])
        n = (leaf.seen.weight / UNIT) ** 2 / leaf.squared_weights
        margin = math.sqrt(math.log(1 / self.settings.split_confidence) / 2 / n)
        if best[0] <= 2.0**-30 * leaf.seen.variance(one):
            return None
        if not (second / best[0] < 1 - margin or margin < self.settings.tie_threshold):
            return None
        worth, threshold, *halves = best
        sides = dict(enumerate(halves))
        if self._kind(feature) == Kind.NOMINAL:
            absent = {0: sides[0]} if sides[0].weight else {}
            sides = absent | dict(sorted(leaf.features[feature].categories.items()))
        sides = {branch: Seen(side.weight, leaf.first + side.mean, side.squares) for branch, side in sides.items()}
        leaf.feature, leaf.threshold = feature, threshold
        leaf.kind = self._kind(feature)
        for branch, side in sides.items():
            leaf.children[branch] = self._below(tree, leaf, side)
            tree.made += 1
        leaf.features = {}
        tree.splits += 1
        whole = Seen(leaf.seen.weight, leaf.first + leaf.seen.mean, leaf.seen.squares)
        told = [each for side in (whole, *sides.values()) for each in labels_of(side)]
        return (
            leaf.number,
            leaf.depth,
            feature,
            leaf.kind,
            list(sides),
            *(each.hex() for each in (threshold, worth, second, *told)),
        )

    def _cut(self, leaf: Node, seen: SeenFeature, one: float) -> Cut | None:
        absent = leaf.seen.minus(seen.present)
        if seen.categories:
            sides = [absent, *(side for _, side in sorted(seen.categories.items()))]
            if sum(side.weight > 0 for side in sides) < 2:
                return None
            worth = leaf.seen.variance(one)
            for side in sides:
                worth -= side.weight / leaf.seen.weight * side.variance(one)
            return worth, 0.0, absent, Seen()
        if seen.observer is None:
            if not absent.weight:
                return None
            return merit(leaf.seen, absent, seen.present, one), 0.0, absent, seen.present
        points = [Point(point.x, point.seen) for point in seen.observer.in_order()]
        if absent.weight:
            at_zero = [point for point in points if point.x == 0.0]
            if at_zero:
                at_zero[0].seen = at_zero[0].seen.plus(absent)
            else:
                points = sorted([*points, Point(0.0, absent)], key=lambda point: point.x)
        return best_cut(self.settings.observer, points, leaf.seen, one)


def labels_of(seen: Seen) -> tuple[float, float, float]:
    """Return weight in examples, mean and mean squared deviation."""
    weight = seen.weight / UNIT
    return weight, seen.mean, seen.squares / weight if weight else 0.0


def columns(tree: NaiveTree | None) -> list[tuple[Any, ...]]:
    """Return the nodes of a tree in preorder."""
    found: list[tuple[Any, ...]] = []
    todo = [] if tree is None else [(-1, 0, tree.root)]
    while todo:
        parent, branch, node = todo.pop()
        floats = tuple(each.hex() for each in (node.threshold, *labels_of(node.known())))
        here = len(found)
        found.append((node.number, parent, branch, node.depth, node.feature, node.kind, *floats))
        todo.extend((here, branch, child) for branch, child in sorted(node.children.items(), reverse=True))
    return found


def pool_columns(pool: RegressionPool, key: int) -> list[tuple[Any, ...]]:
    """Return the nodes of a pool's tree in the oracle's words."""
    return tree_columns(pool.tree(key))


def tree_columns(tree: Tree) -> list[tuple[Any, ...]]:
    """Return the nodes of a snapshot in the oracle's words."""
    whole = zip(tree.number.tolist(), tree.parent.tolist(), tree.branch.tolist(), tree.depth.tolist(), strict=True)
    floats = [[x.hex() for x in each.tolist()] for each in (tree.threshold, tree.weight, tree.mean, tree.variance)]
    return [(*numbers, *rest) for numbers, *rest in zip(whole, tree.feature, tree.kind, *floats, strict=True)]


def split_words(split: Split) -> Any:
    """Return a split in the oracle's words."""
    sides = [each for side in split.sides for each in side]
    floats = (split.threshold, split.merit, split.second, *split.labels, *sides)
    told = (split.node, split.depth, split.feature, split.kind, split.branches)
    return (*told, *(float(each).hex() for each in floats))


def outcomes(pool: RegressionPool, events: Sequence[Event], rng: random.Random | None = None) -> list[Outcome]:
    """Apply events to a pool as one batch and return what each led to, in the oracle's words."""
    batch = columns_of(events, pool, rng, np.float64)
    answers = pool.apply(batch)
    pool.sweep(batch.feature)
    margins = [math.nan] * len(events) if answers.margin is None else answers.margin.tolist()
    splits = {split.event: split_words(split) for split in answers.splits}
    return [
        Outcome(Status(status), predicted.hex(), leaf, margin.hex(), splits.get(at))
        for at, (status, predicted, leaf, margin) in enumerate(
            zip(answers.status.tolist(), answers.predicted.tolist(), answers.leaf.tolist(), margins, strict=True)
        )
    ]


class Pair(Differential):
    """A differential harness: a pool beside its oracle, compared after every batch."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, NaiveForest(settings), outcomes)

    def compare(self, key: int) -> None:
        """Compare a tree with the oracle's."""
        tree = self.twin.trees.get(key)
        assert pool_columns(self.pool, key) == columns(tree)
        sizes = self.pool.sizes(key)
        assert sizes[:3] == ((tree.events, tree.attempts, tree.splits) if tree else (0, 0, 0))
        assert sizes.leaves == sum(node[4] is None for node in columns(tree))

    def check(self) -> None:
        """Raise AssertionError unless the pool's invariants hold and its size is the oracle's."""
        self.pool.check()
        assert self.pool.alive == len(self.twin.trees)
        assert self.pool.node_count == sum(len(columns(tree)) for tree in self.twin.trees.values())
