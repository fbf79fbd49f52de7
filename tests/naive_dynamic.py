"""The oracle of the trees that forget: paper 002's algorithms 1 and 2 in plain Python, on lists and dictionaries.

It shares only log2 with `algorithms`, because ties are decided on floats. What the papers leave open is read as
algorithms/dynamic/README.md says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from algorithms.criteria import UNIT
from algorithms.trees.kinds import Kind
from tests.naive_trees import xlogx

Feature: TypeAlias = int | bytes


@dataclass(frozen=True, eq=False)
class Example:
    """One labelled example; zeros are left out, the weight is in units of 2^-20."""

    x: Mapping[Feature, float]
    label: int
    weight: int = UNIT


@dataclass
class Terms:
    """The parameters of `build_tree`, with the same meaning."""

    classes: int = 2
    criterion: str = "gini"
    default: Kind = Kind.BINARY
    kinds: dict[Feature, Kind] = field(default_factory=dict)
    alpha: float = 0.0
    min_examples: int = 1  # k
    max_depth: int = 1 << 30  # h

    def kind(self, feature: Feature) -> Kind:
        """Return what the values of a feature mean."""
        return self.kinds.get(feature, self.default)

    def impurity(self, counts: Sequence[int]) -> float:
        """Return weight times impurity of class weights."""
        total, so_far = 0, 0.0
        for count in counts:
            so_far += (total / UNIT) * (count / UNIT) if self.criterion == "gini" else xlogx(count)
            total += count
        if self.criterion == "gini":
            return 2.0 * so_far / (total / UNIT) if total else 0.0
        return xlogx(total) - so_far

    def counts(self, examples: Sequence[Example]) -> list[int]:
        """Return the class weights of examples."""
        counts = [0] * self.classes
        for example in examples:
            counts[example.label] += example.weight
        return counts


@dataclass(eq=False)
class Node:
    """A vertex of the tree; a leaf holds its examples."""

    number: int
    depth: int
    built: int  # s(v), examples
    built_weight: int
    feature: Feature | None = None
    threshold: float = 0.0
    children: list[Node] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)
    edits: int = 0  # c(v)
    edited_weight: int = 0

    def all_examples(self) -> list[Example]:
        """Return S_v."""
        return [*self.examples, *(each for child in self.children for each in child.all_examples())]

    def preorder(self) -> Iterator[Node]:
        """Yield the node and all below."""
        yield self
        for child in self.children:
            yield from child.preorder()


def side(terms: Terms, feature: Feature, threshold: float, x: Mapping[Feature, float]) -> int:
    """Return 1 where an example goes to the high side."""
    value = x.get(feature, 0.0)
    return int(value > threshold if terms.kind(feature) == Kind.NUMERIC else value != 0)


def thresholds(terms: Terms, feature: Feature, examples: Sequence[Example]) -> list[float]:
    """Return the thresholds of a feature that part examples, ascending."""
    values = sorted({example.x.get(feature, 0.0) + 0.0 for example in examples})
    if terms.kind(feature) == Kind.BINARY:
        return [0.0] if len({value != 0 for value in values}) == 2 else []
    middles = [(low, low / 2.0 + high / 2.0, high) for low, high in pairwise(values)]
    return [middle if low <= middle < high else low for low, middle, high in middles]


def splits(terms: Terms, examples: Sequence[Example]) -> list[tuple[float, Any, float]]:
    """Return score, feature and threshold of every split that parts examples."""
    found = []
    whole = terms.counts(examples)
    for feature in {feature for example in examples for feature in example.x}:
        for threshold in thresholds(terms, feature, examples):
            low = terms.counts([each for each in examples if not side(terms, feature, threshold, each.x)])
            high = [count - below for count, below in zip(whole, low, strict=True)]
            found.append((terms.impurity(low) + terms.impurity(high), feature, threshold))
    return found


def best_split(terms: Terms, examples: Sequence[Example]) -> tuple[Any, float] | None:
    """Return feature and threshold of the best split, None where nothing parts the examples."""
    found = splits(terms, examples)
    if not found:
        return None
    counts = terms.counts(examples)
    n = sum(counts) / UNIT
    noise = terms.classes * (2.0**-46 * (abs(xlogx(sum(counts))) + n + 1.0))
    best = min(found)
    if best[0] >= terms.impurity(counts) - noise:
        best = min(found, key=lambda each: each[1:])
    return best[1:]


def build(terms: Terms, examples: Sequence[Example], depth: int, numbers: Iterator[int]) -> Node:
    """BUILD: algorithm 2."""
    counts = terms.counts(examples)
    node = Node(next(numbers), depth, len(examples), sum(counts))
    found = None
    impure = terms.impurity(counts) > 0.5 * terms.alpha * (sum(counts) / UNIT)
    if len(examples) > terms.min_examples and impure and depth < terms.max_depth:
        found = best_split(terms, examples)
    if found is None:
        node.examples = list(examples)
        return node
    node.feature, node.threshold = found
    for way in (0, 1):
        there = [each for each in examples if side(terms, *found, each.x) == way]
        node.children.append(build(terms, there, depth + 1, numbers))
    return node


def columns(terms: Terms, root: Node | None) -> list[tuple[Any, ...]]:
    """Return a tree as rows: number, parent's number, branch, depth, feature, kind, threshold, class weights."""
    if root is None:
        return []
    above = {child.number: (node.number, at) for node in root.preorder() for at, child in enumerate(node.children)}
    return [
        (
            node.number,
            *above.get(node.number, (-1, 0)),
            node.depth,
            node.feature,
            None if node.feature is None else terms.kind(node.feature),
            node.threshold.hex(),
            tuple(terms.counts(node.all_examples())),
        )
        for node in root.preorder()
    ]


def close(one: float, other: float) -> bool:
    """Return whether two sums are the same up to rounding."""
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
