"""What the oracle of growing trees is made of: events, nodes, what leaves saw, and the arithmetic on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from algorithms.core.cadence import Emit
from algorithms.core.criteria import UNIT, log2
from algorithms.core.events import Op, Status
from algorithms.core.kinds import Kind
from algorithms.trees.normal import log2_density
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from tests.oracles.naive_adwin import Window

Feature: TypeAlias = int | bytes
NO_SNAPSHOTS = Emit()


@dataclass(frozen=True)
class Settings:
    """The parameters of `TreePool`, with the same meaning; the bound is loose, so that short streams split."""

    policy: str = "periodic"
    criterion: str = "entropy"
    classes: int = 2
    predict: Predict = Predict.MAJORITY
    grace_period: int = 20
    check_every: int = 15
    candidates: int | None = None
    split_confidence: float = 0.3
    tie_threshold: float = 0.2
    default: Kind = Kind.BINARY
    kinds: dict[Feature, Kind] = field(default_factory=dict)
    radius: float | None = None
    radius_fraction: float = 0.5
    max_slots: int = 256
    inherit: bool = False
    local_range: bool = False
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
