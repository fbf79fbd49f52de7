"""The oracle of the trees that grow: the same behaviour from dictionaries and lists, in the plainest words.

`NaiveTrees` is written from what `TreePool` promises, not from how it works. It shares the scalar functions
(log2, the normal distribution) with it, because ties are decided on floats. `Pair` feeds both and compares.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import numba

from algorithms.core.cadence import Emit, When
from algorithms.core.criteria import UNIT, log2
from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.trees.answers import Split
from algorithms.trees.normal import cumulative, exp2, log2_density
from algorithms.trees.policies import POLICIES
from algorithms.trees.pool import Alternates, TreePool
from algorithms.trees.predict import Predict
from algorithms.trees.snapshot import Tree as Snapshot
from tests.oracles.differential import Differential, columns_of, times_of
from tests.oracles.naive_adwin import Window

Feature: TypeAlias = int | bytes
Score: TypeAlias = tuple[float, float]  # score, threshold

NO_SNAPSHOTS = Emit()

# Every policy with both criteria where the compiler is off. A combination takes a minute to compile, and the
# criterion is one file that no policy knows: compiled, `periodic` has both and the others one each.
_BOTH: tuple[str, ...] = ("entropy", "gini")
_COMPILED: dict[str, tuple[str, ...]] = {
    "osm": ("gini",),
    "imac": ("gini",),
    "efdt": ("entropy",),
    "hat": ("entropy",),
    "exact": ("entropy",),
}
KINDS = [
    (policy, criterion)
    for policy in POLICIES
    for criterion in (_BOTH if numba.config.DISABLE_JIT else _COMPILED.get(policy, _BOTH))
]


@dataclass(frozen=True)
class Settings:
    """The parameters of `TreePool`, with the same meaning; the bound is loose, so that short streams split."""

    policy: str = "periodic"
    criterion: str = "entropy"
    classes: int = 2
    predict: Predict = Predict.MAJORITY
    period: int = 20
    check_every: int = 15
    delta: float = 0.3
    tau: float = 0.2
    default: Kind = Kind.BINARY
    kinds: dict[Feature, Kind] = field(default_factory=dict)
    radius: float | None = None
    radius_fraction: float = 0.5
    max_slots: int = 256
    inherit: bool = False
    drop_poor: bool = False
    names: bool = False
    evaluate: bool = True
    max_keys: int = 1 << 30
    max_depth: int = 1 << 30
    measure_delay: bool = False
    snapshots: Emit = NO_SNAPSHOTS

    def pool(self) -> TreePool:
        """Return a new pool with these settings."""
        return TreePool(**vars(self))


@dataclass(frozen=True)
class Event:
    """One event; the weight is in units of 2^-20."""

    op: Op
    x: dict[Feature, float] = field(default_factory=dict)
    label: int = 0
    weight: int = UNIT
    key: int = 0
    time: int = 1  # ms


@dataclass(frozen=True)
class Outcome:
    """All that an event led to; floats as hexadecimal text, so that equal means equal to the bit."""

    status: Status
    predicted: int = -1
    loss: str = ""
    split: Any = None  # node, feature, kind, depth, threshold, score, second, impurity, class weights, branches
    weights: tuple[str, ...] = ()
    leaf: int = 0  # the number of the node that answered a prediction
    snapshot: Any = None  # the columns of the tree, where they were due


@dataclass
class Slot:
    """Values of a quantised feature that lie near each other."""

    mean: float
    counts: list[int]


@dataclass
class Seen:
    """What a leaf saw of a feature."""

    kind: Kind
    counts: list[int]
    values: dict[int, list[int]] = field(default_factory=dict)
    moments: list[list[float]] = field(default_factory=list)  # mean, sum of squared deviations, least, most
    slots: dict[float, Slot] = field(default_factory=dict)  # by value while there is no radius, then by code
    radius: float | None = None
    poor: bool = False  # dropped: never looked at again
    origin: int = 0  # codes are counted from here, and must stay below 2^32


@dataclass
class Candidate:
    """A feature that IMAC keeps up to date."""

    feature: Any
    score: float
    threshold: float
    branches: list[list[int]]


@dataclass
class Node:
    """A leaf, until it has children."""

    classes: int
    number: int = 0
    depth: int = 0
    prior: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    seen: int = 0
    squares: float = 0.0
    right: list[int] = field(
        default_factory=lambda: [0, 0]
    )  # weight that majority and naive Bayes were right about
    features: dict[Any, Seen] = field(default_factory=dict)
    feature: Feature | None = None
    kind: Kind | None = None
    threshold: float = 0.0
    children: dict[int, Node] = field(default_factory=dict)
    since: int = 0  # of periodic and IMAC: examples at the last look
    next: int = 0  # of OSM: examples at the next
    gains: dict[Any, float] = field(default_factory=dict)
    illegal: set[Any] = field(default_factory=set)
    candidates: list[Candidate] = field(default_factory=list)
    window: Window = field(default_factory=Window)  # of HAT
    alternate: Node | None = None

    def __post_init__(self) -> None:
        self.prior = self.prior or [0] * self.classes
        self.counts = [0] * self.classes

    @property
    def weight(self) -> int:
        """Return the weight that the leaf has seen."""
        return sum(self.counts)


@dataclass
class Tree:
    """One tree."""

    root: Node
    events: int = 0
    learned: int = 0  # weight
    attempts: int = 0
    splits: int = 0
    nodes: int = 1  # ever made
    period: int | None = None  # of event time

    def next_number(self) -> int:
        """Return the number of another node."""
        self.nodes += 1
        return self.nodes - 1


def xlogx(units: int) -> float:
    """Return n log2 n."""
    n = units / UNIT
    return n * float(log2(n)) if units else 0.0


def is_number(kind: Kind | None) -> bool:
    """Return whether a split on such a feature has a threshold."""
    return kind in (Kind.NUMERIC, Kind.QUANTISED)


def branch_of(kind: Kind | None, threshold: float, value: float) -> int:
    """Return the branch that a value takes."""
    if is_number(kind):
        return int(value > threshold)
    return int(value) if kind == Kind.NOMINAL else int(value != 0)


class NaiveTrees:
    """Trees in dictionaries and lists."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.trees: dict[int, Tree] = {}
        self.started, self.promoted = 0, 0  # alternates
        r = 1.0 if settings.criterion == "gini" else float(log2(float(max(2, settings.classes))))
        self.bound = r * r * float(log2(1.0 / settings.delta)) * math.log(2.0) / 2.0

    # --- the way of an event

    def apply(self, event: Event) -> Outcome:
        """Apply one event."""
        if event.op == Op.DROP:
            self.trees.pop(event.key, None)
            return Outcome(Status.APPLIED)
        if event.op == Op.DELETE:
            return Outcome(Status.CANNOT_FORGET)
        x = {feature: value for feature, value in event.x.items() if value != 0}
        tree = self.trees.get(event.key)
        root = tree.root if tree is not None else None
        if event.op == Op.PREDICT:
            weights = self.weights(root, x)
            return Outcome(
                Status.APPLIED,
                predicted=heaviest(weights),
                weights=tuple(float(weight).hex() for weight in weights),
                leaf=self._walk(root, x)[0].number if root is not None else 0,
            )
        if event.weight < 0:
            return Outcome(Status.WRONG_WEIGHT)
        if not 0 <= event.label < self.settings.classes:
            return Outcome(Status.WRONG_LABEL)
        if event.weight == 0:
            return Outcome(Status.IGNORED)
        if event.weight + (tree.learned if tree is not None else 0) >= MAX_TOTAL:
            return Outcome(Status.COUNT_OVERFLOW)
        if tree is None and len(self.trees) >= self.settings.max_keys:
            return Outcome(Status.TOO_MANY_KEYS)
        predicted, loss = -1, ""
        if self.settings.evaluate or self.settings.policy == "hat":
            weights = self.weights(root, x)
            predicted, total = heaviest(weights), 0.0
            for weight in weights:
                total += weight
            share = weights[event.label] / total if total > 0 else 1.0 / self.settings.classes
            loss = (-float(log2(max(share, 2.0**-50)))).hex()
        tree = tree or self.trees.setdefault(event.key, Tree(Node(self.settings.classes)))
        split, replaced = self._learn(tree, x, event, predicted != event.label)
        changed = split is not None or replaced
        snapshot = columns(tree) if self._is_snapshot_due(tree, event, changed) else None
        return Outcome(Status.APPLIED, predicted, loss, split=split, snapshot=snapshot)

    def _is_snapshot_due(self, tree: Tree, event: Event, changed: bool) -> bool:
        when, n = self.settings.snapshots
        before = tree.period
        tree.period = event.time // n if before is None else max(before, event.time // n)
        return {
            When.NEVER: False,
            When.CHANGE: changed,
            When.EVERY: tree.events % n == 0,
            When.EVERY_MS: before is not None and tree.period > before,
        }[when]

    def _walk(self, node: Node, x: dict[Feature, float]) -> tuple[Node, int | None]:
        """Return the last node on the way of an example, and the branch that it lacks."""
        while node.feature is not None:
            branch = branch_of(node.kind, node.threshold, x.get(node.feature, 0.0))
            if branch not in node.children:
                return node, branch
            node = node.children[branch]
        return node, None

    def _learn(self, tree: Tree, x: dict[Feature, float], event: Event, wrong: bool) -> tuple[Any, bool]:
        """Learn an example; return the split that it led to, and whether an alternate took a node's place."""
        leaf = self._reached(tree, tree.root, x, event)
        tree.events += 1
        tree.learned += event.weight
        learners = self._way(tree.root, x) if self.settings.policy == "efdt" else [leaf]
        for node in learners:
            self._count(node, x, event)
        replaced = False
        if self.settings.policy == "hat":
            replaced = self._adapt(tree, x, event, wrong)
            beside = [node.alternate for node in self._way(tree.root, x) if node.alternate is not None]
            for node in beside:
                self._try(tree, self._walk(node, x)[0], x, event)
            learners = self._way(tree.root, x)[-1:]
        split = next((split for node in learners if (split := self._try(tree, node, x, event)) is not None), None)
        tree.splits += split is not None
        return split, replaced

    def _reached(self, tree: Tree, top: Node, x: dict[Feature, float], event: Event) -> Node:
        """Return the leaf that is to learn an example, made where there was none."""
        leaf, lacking = self._walk(top, x)
        if lacking is not None:
            leaf.children[lacking] = leaf = Node(self.settings.classes, tree.next_number(), leaf.depth + 1)
        if self.settings.predict >= Predict.ADAPTIVE and leaf.weight:
            for which, weights in enumerate((majority(leaf), self._bayes(leaf, x))):
                leaf.right[which] += event.weight if heaviest(weights) == event.label else 0
        return leaf

    def _count(self, node: Node, x: dict[Feature, float], event: Event) -> None:
        node.seen += 1
        node.squares += (event.weight / UNIT) * (event.weight / UNIT)
        node.counts[event.label] += event.weight
        for feature in sorted(x):
            self._observe(node, feature, x[feature], event)

    def _adapt(self, tree: Tree, x: dict[Feature, float], event: Event, wrong: bool) -> bool:
        """Do what HAT does once the tree has learned; return whether an alternate took a node's place."""
        above = None
        for node in self._way(tree.root, x):
            risen = node.window.add(wrong)
            if node.feature is not None and node.alternate is not None:
                self._learn_beside(tree, node.alternate, x, event)
                better = self._better_by(node, node.alternate)
                if better > 0:
                    if above is None:
                        tree.root = node.alternate
                    else:
                        [branch] = [branch for branch, child in above.children.items() if child is node]
                        above.children[branch] = node.alternate
                    self.promoted += 1
                    return True
                if better < 0:
                    node.alternate = None
            elif node.feature is not None and risen:
                node.alternate = Node(self.settings.classes, tree.next_number(), node.depth)
                self.started += 1
            above = node
        return False

    def _learn_beside(self, tree: Tree, top: Node, x: dict[Feature, float], event: Event) -> None:
        wrong = heaviest(self.weights(top, x)) != event.label
        self._count(self._reached(tree, top, x, event), x, event)
        for node in self._way(top, x):
            node.window.add(wrong)

    def _better_by(self, node: Node, alternate: Node) -> int:
        """Return 1 where an alternate is surely better, -1 where it is surely worse, else 0."""
        n, m = len(node.window.inputs), len(alternate.window.inputs)
        if n < 300 or m < 300:
            return 0
        error = float(node.window.mean)
        gap = error - float(alternate.window.mean)
        constant = 2.0 * float(log2(2.0 / 0.05)) * math.log(2.0)
        bound = math.sqrt(constant * error * (1.0 - error) * (1.0 / n + 1.0 / m))
        return (gap > bound) - (-gap > bound)

    def _way(self, node: Node, x: dict[Feature, float]) -> list[Node]:
        """Return the nodes on the way of an example that lacks no branch."""
        way = [node]
        while node.feature is not None:
            node = node.children[branch_of(node.kind, node.threshold, x.get(node.feature, 0.0))]
            way.append(node)
        return way

    def _try(self, tree: Tree, leaf: Node, x: dict[Feature, float], event: Event) -> Any:
        """Let a node split where that is due, and tell how."""
        due = leaf.depth < self.settings.max_depth and self._is_due(leaf, x, event)
        if not due or sum(count > 0 for count in leaf.counts) < 2:
            return None
        tree.attempts += 1
        best, second = self.best(leaf)
        if self.settings.policy == "efdt":
            best, second = self._better(leaf, best)
        if best is not None and self._is_sure(leaf, best[0], second):
            whole = self.impurity(leaf.counts)
            floats = tuple(each.hex() for each in (best[2], best[0], min(second, whole), whole))
            kind = Kind.NUMERIC if is_number(leaf.features[best[1]].kind) else leaf.features[best[1]].kind
            self._split(tree, leaf, best[1], best[2])
            branches = {branch: tuple(child.prior) for branch, child in leaf.children.items()}
            return (leaf.number, best[1], kind, leaf.depth, *floats, tuple(leaf.counts), branches)
        self._failed(leaf, best, second)
        return None

    def _better(self, node: Node, best: tuple[float, Any, float] | None) -> tuple[Any, float]:
        """Return the best split and the score that it must beat, in EFDT: of no split, or of the node's own."""
        if best is None or node.feature is None:
            return best, self.impurity(node.counts)
        own, _ = self.score(node, node.features[node.feature])
        better = best[1] != node.feature and (own - best[0]) / (node.weight / UNIT) > self.margin(node)
        return best if better else None, own

    def _observe(self, leaf: Node, feature: Feature, value: float, event: Event) -> None:
        kind = self.settings.kinds.get(feature, self.settings.default)
        classes = self.settings.classes
        if feature not in leaf.features:
            leaf.features[feature] = Seen(kind, [0] * classes)
            leaf.features[feature].moments = [[0.0, 0.0, math.inf, -math.inf] for _ in range(classes)]
        seen = leaf.features[feature]
        seen.counts[event.label] += event.weight
        if kind == Kind.NOMINAL:
            seen.values.setdefault(int(value), [0] * classes)[event.label] += event.weight
        if kind == Kind.NUMERIC:
            moments = seen.moments[event.label]
            before = value - moments[0]
            mean = moments[0] + before * (float(event.weight) / float(seen.counts[event.label]))
            moments[0] = min(max(mean, min(moments[0], value)), max(moments[0], value))
            moments[1] += event.weight / UNIT * (before * (value - moments[0]))
            moments[2:] = [min(moments[2], value), max(moments[3], value)]
        if kind == Kind.QUANTISED:
            slot = self._slot(seen, value)
            slot.counts[event.label] += event.weight
            mean = slot.mean + (value - slot.mean) * (float(event.weight) / float(sum(slot.counts)))
            slot.mean = min(max(mean, min(slot.mean, value)), max(slot.mean, value))

    def _slot(self, seen: Seen, value: float) -> Slot:
        """Return the slot that a value belongs to, a new one where it has none yet."""
        if not seen.slots:
            seen.radius = self.settings.radius
        if seen.radius is None:
            if value in seen.slots or len(seen.slots) < min(32, self.settings.max_slots):
                return seen.slots.setdefault(value, Slot(value, [0] * self.settings.classes))
            self._settle(seen)
        while True:
            if (code := code_of(seen, value)) is not None:
                if not seen.slots:
                    seen.origin = code - 2**31
                fits = 0 <= code - seen.origin < 2**32
                if fits and (code in seen.slots or len(seen.slots) < self.settings.max_slots):
                    return seen.slots.setdefault(code, Slot(value, [0] * self.settings.classes))
            assert seen.radius is not None
            seen.radius, seen.origin = 2 * seen.radius, seen.origin // 2 - 2**30
            regroup(seen)

    def _settle(self, seen: Seen) -> None:
        """Set the radius from the deviation of the values so far."""
        points = [
            (slot.mean, sum(slot.counts)) for slot in sorted(seen.slots.values(), key=lambda slot: slot.mean)
        ]
        total, middle, squares = sum(weight for _, weight in points), 0.0, 0.0
        for mean, weight in points:
            middle += mean * weight
        middle /= total
        largest = max(middle - points[0][0], points[-1][0] - middle)
        for mean, weight in points:
            squares += weight * (((mean - middle) / largest) * ((mean - middle) / largest))
        deviation = largest * math.sqrt(squares / total)
        seen.radius = max(self.settings.radius_fraction * deviation, 2.0**-1022)
        while True:
            first, last = code_of(seen, points[0][0]), code_of(seen, points[-1][0])
            if first is not None and last is not None and last - first < 2**31:
                break
            seen.radius *= 2
        seen.origin = first - 2**31
        regroup(seen)

    def _split(self, tree: Tree, leaf: Node, feature: Feature, threshold: float) -> None:
        seen = leaf.features[feature]
        absent = [n - count for n, count in zip(leaf.counts, seen.counts, strict=True)]
        if seen.kind == Kind.NOMINAL:
            branches = {0: absent, **dict(reversed(seen.values.items()))}
        elif seen.kind == Kind.BINARY:
            branches = {0: absent, 1: seen.counts}
        else:
            branches = dict(enumerate(self._sides(leaf, seen, threshold)))
        leaf.feature, leaf.threshold = feature, threshold
        leaf.kind = Kind.NUMERIC if is_number(seen.kind) else seen.kind
        leaf.children = {}
        for branch, prior in branches.items():
            if sum(prior):
                leaf.children[branch] = Node(leaf.classes, tree.next_number(), leaf.depth + 1, list(prior))
        leaf.candidates = []
        if self.settings.policy != "efdt":
            leaf.features = {}

    # --- scores

    def impurity(self, counts: Sequence[int]) -> float:
        """Return weight times impurity."""
        total, so_far = 0, 0.0
        for count in counts:
            if self.settings.criterion == "gini":
                so_far += (total / UNIT) * (count / UNIT)
            else:
                so_far += xlogx(count)
            total += count
        if self.settings.criterion == "gini":
            return 2.0 * so_far / (total / UNIT) if total else 0.0
        return xlogx(total) - so_far

    def _sides(self, leaf: Node, seen: Seen, threshold: float) -> tuple[list[int], list[int]]:
        """Return the class weights up to a threshold and above it, as estimated."""
        if seen.kind == Kind.QUANTISED:
            lower = [counts for mean, counts in self._points(leaf, seen) if mean <= threshold]
            upper = [counts for mean, counts in self._points(leaf, seen) if mean > threshold]
            return total(lower, leaf.classes), total(upper, leaf.classes)
        below = []
        for n, count, (mean, squares, least, most) in zip(leaf.counts, seen.counts, seen.moments, strict=True):
            deviation = math.sqrt(squares / (count / UNIT)) if count else 0.0
            if threshold < least or not count:
                low = 0
            elif threshold >= most:
                low = count
            elif deviation == 0.0:
                low = count if threshold >= mean else 0
            else:
                low = min(count, int(count * float(cumulative((threshold - mean) / deviation))))
            below.append(low + (n - count if threshold >= 0 else 0))
        return below, [n - low for n, low in zip(leaf.counts, below, strict=True)]

    def _points(self, leaf: Node, seen: Seen) -> list[tuple[float, list[int]]]:
        """Return the prototypes of slots with their class weights, and those of the zeros, in order."""
        points = [(slot.mean, slot.counts) for slot in seen.slots.values()]
        absent = [n - count for n, count in zip(leaf.counts, seen.counts, strict=True)]
        return sorted(points + [(0.0, absent)] * (sum(absent) > 0))

    def score(self, leaf: Node, seen: Seen) -> Score:
        """Return the score of a feature and its threshold; inf where it is no split."""
        if seen.poor:
            return math.inf, 0.0
        absent = [n - count for n, count in zip(leaf.counts, seen.counts, strict=True)]
        if seen.kind == Kind.NUMERIC:
            least = min([moments[2] for moments in seen.moments] + [0.0] * (sum(absent) > 0))
            most = max([moments[3] for moments in seen.moments] + [0.0] * (sum(absent) > 0))
            step = (most - least) / 11
            best = (math.inf, 0.0)
            for threshold in (least + step * k for k in range(1, 11)):
                if least <= threshold < most:
                    low, high = self._sides(leaf, seen, threshold)
                    if sum(low) and sum(high):
                        best = min(best, (self.impurity(low) + self.impurity(high), threshold), key=lambda s: s[0])
            return best
        if seen.kind == Kind.QUANTISED:
            best = (math.inf, 0.0)
            means = [mean for mean, _ in self._points(leaf, seen)]
            for a, b in pairwise(means):
                threshold = a / 2 + b / 2 if a <= a / 2 + b / 2 < b else a
                low, high = self._sides(leaf, seen, threshold)
                best = min(best, (self.impurity(low) + self.impurity(high), threshold), key=lambda s: s[0])
            return best
        branches = list(reversed(seen.values.values())) if seen.kind == Kind.NOMINAL else [seen.counts]
        if len(branches) + (sum(absent) > 0) < 2:
            return math.inf, 0.0
        score = self.impurity(absent)
        for branch in branches:
            score += self.impurity(branch)
        return score, 0.0

    def noise(self, leaf: Node) -> float:
        """Return the gain that could be the error of rounding."""
        n = leaf.weight / UNIT
        return leaf.classes * (2.0**-46 * (abs(n * float(log2(n))) + n + 1.0))

    def best(self, leaf: Node) -> tuple[tuple[float, Any, float] | None, float]:
        """Return the best split (score, feature, threshold) or None, and the score of the second."""
        scores = {feature: self.score(leaf, seen) for feature, seen in leaf.features.items()}
        leaf.gains = {feature: -score / (leaf.weight / UNIT) for feature, (score, _) in scores.items()}
        ranked = sorted((score, feature, at) for feature, (score, at) in scores.items() if score < math.inf)
        whole = self.impurity(leaf.counts)
        if not ranked or not ranked[0][0] < whole - self.noise(leaf):
            return None, whole
        return ranked[0], min([score for score, _, _ in ranked[1:2]] + [whole])

    def examples(self, leaf: Node) -> float:
        """Return the effective number of examples."""
        n = leaf.weight / UNIT
        return n * (n + (sum(leaf.prior) / UNIT if self.settings.inherit else 0.0)) / leaf.squares

    def margin(self, leaf: Node, more: int = 0) -> float:
        """Return the Hoeffding bound."""
        return math.sqrt(self.bound / (self.examples(leaf) + more))

    def _is_sure(self, leaf: Node, score: float, second: float) -> bool:
        margin = self.margin(leaf)
        return (second - score) / (leaf.weight / UNIT) > margin or margin < self.settings.tau

    # --- policies

    def _is_due(self, leaf: Node, x: dict[Feature, float], event: Event) -> bool:
        policy = self.settings.policy
        if policy == "exact":
            return True
        if policy == "osm":
            if leaf.seen < max(leaf.next, self.settings.period):
                return False
            leaf.next = leaf.seen + self.settings.period
            return True
        if policy == "imac" and leaf.candidates:
            return self._candidates_say_so(leaf, x, event)
        inner = leaf.feature is not None
        if leaf.seen - leaf.since < (self.settings.check_every if inner else self.settings.period):
            return False
        leaf.since = leaf.seen
        return True

    def _failed(self, leaf: Node, best: tuple[float, Any, float] | None, second: float) -> None:
        if self.settings.policy == "osm" and best is not None:
            leaf.next = leaf.seen + self._wait(leaf, best, second)
        if self.settings.policy == "imac":
            leaf.since = leaf.seen
            top = max(leaf.gains.values(), default=-math.inf)
            leaf.illegal = {feature for feature, gain in leaf.gains.items() if top - gain > self.margin(leaf)}
            able = sorted((-gain, feature) for feature, gain in leaf.gains.items() if gain > -math.inf)
            most = max(5, min(10, len(leaf.features) // 10))
            leaf.candidates = [self._candidate(leaf, feature) for _, feature in able[:most]]
        if self.settings.drop_poor:
            top = max(leaf.gains.values(), default=-math.inf)
            kept = {each.feature for each in leaf.candidates}
            for feature, gain in leaf.gains.items():
                if gain > -math.inf and top - gain > self.margin(leaf) and feature not in kept:
                    leaf.features[feature].poor = True
                    leaf.gains[feature] = -math.inf

    def _wait(self, leaf: Node, best: tuple[float, Any, float], second: float) -> int:
        """Return for how many examples OSM waits."""
        score, feature, threshold = best
        seen = leaf.features[feature]
        absent = [n - count for n, count in zip(leaf.counts, seen.counts, strict=True)]
        if is_number(seen.kind):
            branches = list(self._sides(leaf, seen, threshold))
        else:
            branches = [absent, *(reversed(seen.values.values()) if seen.kind == Kind.NOMINAL else [seen.counts])]
        purest = max((b for b in branches if sum(b)), key=lambda b: max(b) / sum(b))
        each = max(min(leaf.weight // leaf.seen, 2**61 // 100_000), 1)
        n = leaf.weight / UNIT

        def exceeds(x: int) -> bool:
            after = score + self.step(purest, purest.index(max(purest)), x * each) if x else score
            gap = second / n - after / ((leaf.weight + x * each) / UNIT)
            return gap > self.margin(leaf, x)

        low, high = 0, 100_000
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if exceeds(middle) else (middle, high)
        wait = max(high, self.settings.period)
        if self.settings.tau > 0:
            until_tie = self.bound / (self.settings.tau * self.settings.tau) - self.examples(leaf)
            wait = min(wait, max(1, math.floor(until_tie) + 1))
        return wait

    def step(self, branch: Sequence[int], label: int, units: int) -> float:
        """Return what an example adds to a score: theorems 1 and 2."""
        n, m = sum(branch), branch[label]
        if self.settings.criterion == "entropy":
            return (xlogx(n + units) - xlogx(n)) - (xlogx(m + units) - xlogx(m))
        w, total = units / UNIT, n / UNIT
        squares = 0.0
        for count in branch:
            squares += (count / UNIT) * (count / UNIT)
        step = w - (2.0 * w * (m / UNIT) + w * w) / (total + w)
        return step + w * squares / (total * (total + w)) if n else step

    def _candidate(self, leaf: Node, feature: Feature) -> Candidate:
        score, threshold = self.score(leaf, leaf.features[feature])
        seen = leaf.features[feature]
        branches = [list(side) for side in self._sides(leaf, seen, threshold)] if is_number(seen.kind) else []
        return Candidate(feature, score, threshold, branches)

    def _candidates_say_so(self, leaf: Node, x: dict[Feature, float], event: Event) -> bool:
        for each in leaf.candidates:
            self._advance(leaf, each, x.get(each.feature, 0.0), event)
        n = leaf.weight / UNIT
        if leaf.seen - leaf.since >= self.settings.check_every:
            leaf.since = leaf.seen
            taken = {each.feature for each in leaf.candidates} | leaf.illegal
            able = [
                (-leaf.gains[feature], feature)
                for feature in leaf.features
                if feature not in taken and leaf.gains.get(feature, -math.inf) > -math.inf
            ]
            if able:
                rival = self._candidate(leaf, min(able)[1])
                worst = max(leaf.candidates, key=lambda each: (each.score, each.feature))
                loser = worst if rival.score < worst.score else rival
                if loser is worst:
                    leaf.candidates[leaf.candidates.index(worst)] = rival
                top = min(each.score for each in leaf.candidates)
                leaf.gains[loser.feature] = -loser.score / n
                if (loser.score - top) / n > self.margin(leaf):
                    leaf.illegal.add(loser.feature)
        scores = sorted(each.score for each in leaf.candidates)
        whole = self.impurity(leaf.counts)
        if not scores[0] < whole - self.noise(leaf):
            return False
        return self._is_sure(leaf, scores[0], min(*scores[1:2], whole) if scores[1:] else whole)

    def _advance(self, leaf: Node, each: Candidate, value: float, event: Event) -> None:
        seen = leaf.features[each.feature]
        side = branch_of(seen.kind, each.threshold, value)
        if is_number(seen.kind):
            each.branches[side][event.label] += event.weight
            branch = list(each.branches[side])
        elif side == 0:
            branch = [n - count for n, count in zip(leaf.counts, seen.counts, strict=True)]
        else:
            branch = list(seen.values[side] if seen.kind == Kind.NOMINAL else seen.counts)
        branch[event.label] -= event.weight
        each.score += self.step(branch, event.label, event.weight)

    # --- predictions

    def weights(self, top: Node | None, x: dict[Feature, float]) -> list[float]:
        """Return the class weights for an example, from a node down."""
        if top is None:
            return [0.0] * self.settings.classes
        node, lacking = self._walk(top, x)
        bayes = self.settings.predict == Predict.NAIVE_BAYES or (
            self.settings.predict >= Predict.ADAPTIVE and node.right[1] >= node.right[0]
        )
        if bayes and lacking is None and node.weight:
            return self._bayes(node, x)
        return majority(node)

    def _bayes(self, leaf: Node, x: dict[Feature, float]) -> list[float]:
        smooth = max(min(leaf.weight // leaf.seen, 1 << 61), 1)
        logs = [fixed(float(log2(n / UNIT))) if n else -math.inf for n in leaf.counts]
        for feature, seen in leaf.features.items():
            if seen.poor:
                continue
            value = x.get(feature, 0.0)
            silent = not value and self.settings.predict == Predict.ADAPTIVE_PRESENT
            for k, n in enumerate(leaf.counts):
                if not n or silent:
                    continue
                count = seen.counts[k]
                logs[k] += fixed(float(log2(((count if value else n - count) + smooth) / (n + 2 * smooth))))
                if value and seen.kind == Kind.NOMINAL:
                    of_value = seen.values.get(int(value), [0] * len(logs))[k]
                    logs[k] += fixed(float(log2((of_value + smooth) / (count + len(seen.values) * smooth))))
                if value and seen.kind == Kind.QUANTISED:
                    key = value if seen.radius is None else code_of(seen, value)
                    of_value = seen.slots[key].counts[k] if key in seen.slots else 0
                    logs[k] += fixed(float(log2((of_value + smooth) / (count + len(seen.slots) * smooth))))
                if value and seen.kind == Kind.NUMERIC:
                    logs[k] += fixed(likelihood(seen, k, value))
        shares = [float(exp2((log - max(logs)) / (1 << 28))) for log in logs]
        total = 0.0
        for share in shares:
            total += share
        return [leaf.weight / UNIT * (share / total) for share in shares]


def total(points: list[list[int]], classes: int) -> list[int]:
    """Return the class weights of points together."""
    return [sum(counts[k] for counts in points) for k in range(classes)]


def code_of(seen: Seen, value: float) -> int | None:
    """Return floor(value / radius), below 0 for values below 0; None where it is no number to count with."""
    assert seen.radius is not None
    if abs(value) >= seen.radius * 2.0**62:
        return None
    code = math.floor(value / seen.radius)
    return min(code, -1) if value < 0 else code


def regroup(seen: Seen) -> None:
    """Put what was counted into the slots of a feature's radius."""
    before, seen.slots = sorted(seen.slots.values(), key=lambda slot: slot.mean), {}
    for slot in before:
        code = code_of(seen, slot.mean)
        assert code is not None
        if code not in seen.slots:
            seen.slots[code] = slot
            continue
        kept = seen.slots[code]
        n, more = sum(kept.counts), sum(slot.counts)
        mean = (kept.mean * n + slot.mean * more) / (n + more)
        kept.mean = min(max(mean, kept.mean), slot.mean)
        kept.counts = [count + other for count, other in zip(kept.counts, slot.counts, strict=True)]


def fixed(log: float) -> int:
    """Return a logarithm in units of 2^-28."""
    return round(min(max(log, -4096.0), 4096.0) * (1 << 28))


def likelihood(seen: Seen, k: int, value: float) -> float:
    """Return log2 of the density of a value in a class."""
    spread = max(moments[3] for moments in seen.moments) - min(moments[2] for moments in seen.moments)
    if spread <= 0:
        return 0.0
    if not seen.counts[k]:
        return -float(log2(spread))
    deviation = math.sqrt(seen.moments[k][1] / (seen.counts[k] / UNIT))
    return float(log2_density(value, seen.moments[k][0], max(deviation, spread / 1024, 2.0**-1022)))


def majority(node: Node) -> list[float]:
    """Return the class weights of a node."""
    return [(prior + count) / UNIT for prior, count in zip(node.prior, node.counts, strict=True)]


def heaviest(weights: Sequence[float]) -> int:
    """Return the class with most weight, -1 where there is none."""
    return -1 if not any(weights) else max(range(len(weights)), key=lambda k: (weights[k], -k))


def nodes_of(trees: Iterable[Tree]) -> list[Node]:
    """Return all nodes of trees, and of alternates."""
    found, todo = [], [tree.root for tree in trees]
    while todo:
        node = todo.pop()
        found.append(node)
        todo.extend(node.children.values())
        todo.extend([node.alternate] if node.alternate is not None else [])
    return found


def columns(tree: Tree | None) -> list[tuple[Any, ...]]:
    """Return the nodes of a tree in preorder."""
    found: list[tuple[Any, ...]] = []
    todo = [] if tree is None else [(-1, 0, tree.root)]
    while todo:
        parent, branch, node = todo.pop()
        weight = tuple(prior + count for prior, count in zip(node.prior, node.counts, strict=True))
        here = len(found)
        found.append(
            (node.number, parent, branch, node.depth, node.feature, node.kind, float(node.threshold).hex(), weight)
        )
        todo.extend((here, branch, node.children[branch]) for branch in sorted(node.children, reverse=True))
    return found


def pool_columns(pool: TreePool, key: int) -> list[tuple[Any, ...]]:
    """Return the nodes of a pool's tree in the oracle's words."""
    return tree_columns(pool.tree(key))


def tree_columns(tree: Snapshot) -> list[tuple[Any, ...]]:
    """Return the nodes of a snapshot in the oracle's words."""
    return [
        (number, parent, branch, depth, feature, kind, float(threshold).hex(), tuple(weight))
        for number, parent, branch, depth, feature, kind, threshold, weight in zip(
            tree.number.tolist(),
            tree.parent.tolist(),
            tree.branch.tolist(),
            tree.depth.tolist(),
            tree.feature,
            tree.kind,
            tree.threshold.tolist(),
            tree.weight.tolist(),
            strict=True,
        )
    ]


def split_words(split: Split) -> Any:
    """Return a split in the oracle's words."""
    floats = tuple(each.hex() for each in (split.threshold, split.score, split.second, split.impurity))
    branches = dict(zip(split.branches.tolist(), map(tuple, split.counts.tolist()), strict=True))
    return (split.node, split.feature, split.kind, split.depth, *floats, tuple(split.totals.tolist()), branches)


def outcomes(pool: TreePool, events: Sequence[Event], rng: random.Random | None = None) -> list[Outcome]:
    """Apply events to a pool as one batch and return what each led to, in the oracle's words."""
    batch = columns_of(events, pool, rng, time=times_of(events))
    answers = pool.apply(batch)
    pool.sweep(batch.feature)
    splits = {split.event: split_words(split) for split in answers.splits}
    snapshots = {event: tree_columns(tree) for event, _, tree in answers.snapshots}
    asked = dict(zip(answers.asked.tolist(), answers.weights.tolist(), strict=True))
    leaves = dict(zip(answers.asked.tolist(), answers.leaf.tolist(), strict=True))
    told = pool.rules.evaluated
    return [
        Outcome(
            status=Status(status),
            predicted=int(answers.predicted[at]),
            loss=float(answers.loss[at]).hex() if told and status == 0 and events[at].op == Op.INSERT else "",
            split=splits.get(at),
            weights=tuple(weight.hex() for weight in asked.get(at, ())),
            leaf=leaves.get(at, 0),
            snapshot=snapshots.get(at),
        )
        for at, status in enumerate(answers.status.tolist())
    ]


class Pair(Differential):
    """A differential harness: a pool beside its oracle, compared after every batch."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, NaiveTrees(settings), outcomes)

    def compare(self, key: int) -> None:
        """Compare a tree with the oracle's."""
        tree = self.twin.trees.get(key)
        assert pool_columns(self.pool, key) == columns(tree)
        sizes = self.pool.sizes(key)
        nodes = columns(tree)
        assert sizes.leaves == sum(node[4] is None for node in nodes)
        assert (sizes.events, sizes.splits) == ((tree.events, tree.splits) if tree else (0, 0))
        if self.settings.policy != "exact":  # which attempts only where it is not plain that they would fail
            assert sizes.attempts == (tree.attempts if tree else 0)

    def check(self) -> None:
        """Raise AssertionError unless the pool's invariants hold and its size is the oracle's."""
        self.pool.check()
        assert self.pool.alive == len(self.twin.trees)
        nodes = nodes_of(self.twin.trees.values())
        assert self.pool.node_count == len(nodes)
        open_, promoted = sum(node.alternate is not None for node in nodes), self.twin.promoted
        assert self.pool.alternates == Alternates(open_, promoted, self.twin.started - promoted - open_)


@dataclass(frozen=True)
class Mix:
    """What a random stream is made of."""

    kinds: dict[Feature, Kind]  # of all features
    classes: int = 2
    weights: tuple[int, ...] = (UNIT,)
    indexes: int = 1
    others: float = 0.05  # share of predictions, and of a tenth as many deletes and drops
    dense: float = 0.5  # how many features an example has


class Stream:
    """Random events whose features say something of the label, some of them the same, so that scores tie."""

    def __init__(self, seed: int, mix: Mix) -> None:
        self._rng = random.Random(seed)
        self._mix = mix

    def take(self, count: int) -> list[Event]:
        """Return the next events."""
        return [self._next() for _ in range(count)]

    def _next(self) -> Event:
        rng, mix = self._rng, self._mix
        label = rng.randrange(mix.classes)
        first = rng.random() < 0.5  # the concept differs between its halves, so that trees grow deep
        x: dict[Feature, float] = {}
        for rank, (feature, kind) in enumerate(mix.kinds.items()):
            telling = 0.85 if rank % 3 == 0 and rank < 12 else 0.1
            says = (
                (label + rank // 3 * first) % mix.classes if rng.random() < telling else rng.randrange(mix.classes)
            )
            if kind == Kind.BINARY:
                if rng.random() < mix.dense and says % 2 == 0:
                    x[feature] = 1.0
            elif kind == Kind.NOMINAL:
                x[feature] = float(says + rng.randrange(2))
            elif rng.random() < 0.9:
                x[feature] = round(rng.gauss(says, 0.7), 2 if rank % 2 else 15) * 10.0 ** (rank % 5 - 2)
        if rank_of(mix) > 4 and 4 in x:
            x[3] = x[4]  # the same to the bit: ties go to the lower
        op, kind_of_event = Op.INSERT, rng.random()
        if kind_of_event < mix.others:
            op = Op.PREDICT if kind_of_event < 0.9 * mix.others else Op.DELETE
            if kind_of_event > 0.98 * mix.others:
                op = Op.DROP
        return Event(op, x, label, rng.choice(mix.weights), rng.randrange(mix.indexes))


def rank_of(mix: Mix) -> int:
    """Return how many features a mix has."""
    return len(mix.kinds)
