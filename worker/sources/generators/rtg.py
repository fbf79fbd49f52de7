"""RTG: the class is what a random tree says."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int64s
from worker.sources.generators.draws import MODEL, Draws
from worker.sources.generators.port import NUMERIC, Attribute, Examples, Schema, at_least, within

NODES = 1 << 22  # a tree with more would fill the memory


@dataclass(eq=False, kw_only=True)
class Rtg:
    """Nominal attributes, then numeric ones from [0, 1), all uniform; a random tree gives the class.

    Domingos and Hulten: Mining high-speed data streams. KDD 2000. MOA's `RandomTreeGenerator`. Drift is `drift`
    from one tree to another.

    Parameters
    ----------
    classes : int
        2 or more.
    nominals, numerics : int
        Numbers of attributes, one or more together.
    values : int
        2 or more: values of a nominal attribute.
    depth : int
        At which every node is a leaf; the root's is 0.
    first_leaf : int
        Depth from which on a node may be a leaf.
    leaf_fraction : float
        Probability that it is one.
    tree_seed, seed : int
        0 or more: of the tree, of the examples.
    """

    classes: int = 2
    nominals: int = 5
    numerics: int = 5
    values: int = 5
    depth: int = 5
    first_leaf: int = 3
    leaf_fraction: float = 0.15
    tree_seed: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        at_least("classes", self.classes, 2)
        at_least("nominals", self.nominals, 0)
        at_least("numerics", self.numerics, 0)
        at_least("nominals + numerics", self.nominals + self.numerics, 1)
        at_least("values", self.values, 2)
        at_least("depth", self.depth, 0)
        at_least("first_leaf", self.first_leaf, 0)
        within("leaf_fraction", self.leaf_fraction, 0, 1)
        at_least("tree_seed", self.tree_seed, 0)
        at_least("seed", self.seed, 0)
        nominal = tuple(Attribute(f"nominal{number}", self.values) for number in range(1, self.nominals + 1))
        numeric = tuple(Attribute(f"numeric{number}", NUMERIC) for number in range(1, self.numerics + 1))
        self.schema = Schema(nominal + numeric, self.classes)
        self._tree = self._grown()
        self._draws = Draws(self.seed)

    def take(self, n: int) -> Examples:
        """Return the next n examples."""
        value = self._draws.uniform(n, len(self.schema.attributes))
        value[:, : self.nominals] = np.floor(self.values * value[:, : self.nominals])
        return Examples(value, self._labels(value))

    def _labels(self, value: Float64s) -> Int64s:
        """Return what the tree says of each row: all rows go down one level at a time."""
        tree = self._tree
        node = np.zeros(len(value), np.int64)
        while (inner := np.flatnonzero(tree.attribute[node] >= 0)).size:
            at = node[inner]
            attribute = tree.attribute[at]
            own = value[inner, attribute]
            step = np.where(attribute < self.nominals, own, own >= tree.threshold[at])
            node[inner] = tree.child[at] + step.astype(np.int64)
        return tree.label[node]

    def _grown(self) -> _Tree:
        """Return the tree, grown level by level: no tree is too deep for it."""
        draws = Draws(self.tree_seed, MODEL)
        nodes = [_Node()]
        waiting = deque([_Open(0, 0, tuple(range(self.nominals)), ((0.0, 1.0),) * self.numerics)])
        while waiting:
            node, depth, nominals, ranges = waiting.popleft()
            may_split = depth < self.depth and len(nominals) + len(ranges) > 0
            may_be_leaf = depth >= self.first_leaf
            if not may_split or (may_be_leaf and self.leaf_fraction >= 1.0 - draws.uniform(1)[0]):
                nodes[node] = _Node(label=draws.below(self.classes))
                continue
            chosen = draws.below(len(nominals) + len(ranges))
            first = len(nodes)
            if chosen < len(nominals):
                nodes[node] = _Node(nominals[chosen], child=first)
                left = nominals[:chosen] + nominals[chosen + 1 :]
                below = [(left, ranges)] * self.values
            else:
                numeric = chosen - len(nominals)
                low, high = ranges[numeric]
                threshold = (high - low) * draws.uniform(1)[0] + low
                nodes[node] = _Node(self.nominals + numeric, threshold, first)
                below = [
                    (nominals, (*ranges[:numeric], part, *ranges[numeric + 1 :]))
                    for part in ((low, threshold), (threshold, high))
                ]
            nodes += [_Node()] * len(below)
            if len(nodes) > NODES:
                raise ValueError(f"expected a tree of at most {NODES} nodes, got more; lower depth or values")
            waiting.extend(_Open(first + number, depth + 1, *each) for number, each in enumerate(below))
        attribute, threshold, child, label = zip(*nodes, strict=True)
        return _Tree(
            attribute=np.array(attribute, np.int64),
            threshold=np.array(threshold, np.float64),
            child=np.array(child, np.int64),
            label=np.array(label, np.int64),
        )


class _Node(NamedTuple):
    """One node; what does not apply is 0."""

    attribute: int = -1  # -1: a leaf
    threshold: float = 0.0  # of a numeric attribute: below it goes to the first child, else to the second
    child: int = 0  # the first child; the others follow it, one for each value of a nominal attribute
    label: int = 0


class _Tree(NamedTuple):
    """The nodes in columns; see `_Node`."""

    attribute: Int64s
    threshold: Float64s
    child: Int64s
    label: Int64s


class _Open(NamedTuple):
    """A node that is still to be grown, and what may be split there."""

    node: int
    depth: int
    nominals: tuple[int, ...]  # not yet used above
    ranges: tuple[tuple[float, float], ...]  # of each numeric attribute
