"""The nodes of a snapshot as whoever draws it goes through them. Nothing recurses: trees may be deep."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from worker.codec.encode import AnyTree, Tree
from worker.codec.regression import RegressionTree
from worker.views.words import branch_word, feature_word


def children_of(tree: AnyTree) -> list[list[int]]:
    """Return for each node the places of its children in the columns, in the order of their branches."""
    place = {number: at for at, number in enumerate(tree.node)}
    children: list[list[int]] = [[] for _ in tree.node]
    for at, parent in enumerate(tree.parent[1:], 1):
        children[place[parent]].append(at)
    return children


def opened(children: list[list[int]], most: int, deepest: int) -> set[int]:
    """Return the nodes whose children are drawn, where at most so many nodes are, down to a depth.

    The top of the tree comes first: level by level, and of a node all children or none.
    """
    nodes: set[int] = set()
    drawn, waiting = 1, deque([(0, 0)] if children else [])
    while waiting:
        node, depth = waiting.popleft()
        below = children[node]
        if below and depth < deepest and drawn + len(below) <= most:
            nodes.add(node)
            drawn += len(below)
            waiting.extend((child, depth + 1) for child in below)
    return nodes


def preorder(children: list[list[int]], open_nodes: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the nodes that are drawn and their depths, parents first, from the root or the cut on."""
    stack = [(0, 0)] if children else []
    while stack:
        node, depth = stack.pop()
        yield node, depth
        if node in open_nodes:
            stack.extend((child, depth + 1) for child in reversed(children[node]))


def sizes(children: list[list[int]]) -> list[int]:
    """Return how many nodes there are below each, itself included; children stand behind their parents."""
    found = [1] * len(children)
    for node in reversed(range(len(children))):
        found[node] += sum(found[child] for child in children[node])
    return found


def feature_at(tree: AnyTree, node: int, most: int = 60) -> str:
    """Return the feature that a node tests as a word, of a name at most so many characters."""
    feature = tree.feature[node]
    return feature_word(feature if tree.names is None or feature is None else tree.names[feature], most)


def tree_words(tree: AnyTree) -> str:
    """Return which tree of a key it is: the one, or one of a forest."""
    number = getattr(tree, "tree", None)
    return "tree" if number is None else f"tree {number}"


def counted_word(tree: AnyTree) -> str:
    """Return of when the counts at inner nodes are, as said behind one; empty where a record tells no kind."""
    match tree.parameters.get("kind"), tree.parameters.get("policy"):
        case "dynamic-tree" | "forest", None:
            return "live"
        case "tree", "efdt" | "efdt-imac":  # goes on counting there, to reconsider the split
            return "so far"
        case "tree" | "forest" | "regression-tree", _:
            return "at the split"
        case _:
            return ""


def branch_to(tree: AnyTree, parent: int, child: int) -> str:
    """Return what leads from a node to one of its children."""
    return branch_word(tree.kind[parent], tree.threshold[parent], tree.branch[child])


def heaviest(tree: Tree, node: int) -> int | None:
    """Return which class weighs most at a node, the first of equals; None where nothing was learned."""
    weights = tree.counts[node]
    return max(range(len(weights)), key=weights.__getitem__) if any(weights) else None


class Scale(NamedTuple):
    """The scale that the values of a regression tree's leaves are drawn on."""

    low: float
    high: float

    @classmethod
    def of(cls, tree: RegressionTree) -> Scale:
        """Return that from the least value of a leaf to the greatest."""
        values = [value for value, feature in zip(tree.value, tree.feature, strict=True) if feature is None]
        return cls(min(values, default=0.0), max(values, default=0.0))

    def spread(self, tree: RegressionTree, node: int) -> tuple[float, float, float]:
        """Return where the value of a node is, from 0 to 1, with a standard deviation before and behind it."""
        value, deviation = tree.value[node], math.sqrt(tree.variance[node] or 0.0)
        return self._place(value - deviation), self._place(value), self._place(value + deviation)

    def _place(self, value: float) -> float:
        if not self.low < self.high:
            return 0.5
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
