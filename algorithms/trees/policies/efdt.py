"""EFDT: a leaf splits once a split is surely better than none; inner nodes think again.

Manapragada, Webb, Salehi, "Extremely fast decision tree", 2018. All nodes on the way of an example count it.
Every n_min examples a leaf compares its best split with no split; every mu examples an inner node compares its
best split with its own, and where that is surely worse gives up all below it. A split never gains less than none,
since impurity is concave, so an inner node never becomes a leaf again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Int64s, extended, int64
from algorithms.core.events import Batch
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.rows import NONE
from algorithms.core.stored import stored
from algorithms.trees.bounds import margin
from algorithms.trees.gain import feature_score, impurity
from algorithms.trees.nodes import FEATURE, SEEN, WEIGHT, is_leaf
from algorithms.trees.ranking import rank
from algorithms.trees.state import Choice, Forest, Rules


@stored("tried")
class Efdt(NamedTuple):
    """When each node last compared."""

    tried: Int64s  # int64[nodes], how many examples the node had seen


@inlined
def begin(policy: Efdt, leaf: int) -> None:
    """Start a leaf that has seen nothing."""
    policy.tried[leaf] = 0


@inlined
def due(policy: Any, forest: Forest, rules: Rules, batch: Batch, event: int, node: int) -> bool:
    """Return whether the period of a leaf, or of an inner node, is over."""
    seen = forest.nodes.links[node, SEEN]
    if seen - policy.tried[node] < (rules.grace_period if is_leaf(forest.nodes, node) else rules.check_every):
        return False
    policy.tried[node] = seen
    return True


@inlined
def seek(policy: Efdt, forest: Forest, rules: Rules, node: int) -> Choice:
    """Return the best split and, as the second, what it must beat: no split, or the node's own."""
    return best_and_rival(forest, rules, node, False)


@jit
def best_and_rival(forest: Forest, rules: Rules, node: int, keeps_gains: bool) -> Choice:
    """Return what `seek` does; the gains of all features may be kept."""
    nodes = forest.nodes
    found = rank(nodes, forest.features, forest.names, forest.criterion, node, keeps_gains)
    if found.row == NONE:
        return found
    if is_leaf(nodes, node):
        return Choice(found.row, found.score, impurity(forest.criterion, nodes.rows, node), found.threshold)
    own = rows.find(forest.features.rows, node, nodes.links[node, FEATURE])
    score, _ = feature_score(forest.criterion, forest.features, nodes, node, own)
    gap = (score - found.score) / (nodes.links[node, WEIGHT] * PER_UNIT)
    if found.row == own or not gap > margin(nodes, rules, node, 0):
        return Choice(int64(NONE), found.score, score, 0.0)
    return Choice(found.row, found.score, score, found.threshold)


def make(nodes: int, features: int, classes: int, candidates: int) -> Efdt:
    """Make the policy."""
    return Efdt(np.zeros(nodes, np.int64))


def grown(policy: Efdt, nodes: int) -> Efdt:
    """Return the policy with room for more nodes."""
    return Efdt(extended(policy.tried, nodes))


def check(policy: Efdt, forest: Forest, nodes: list[int]) -> None:
    """Raise AssertionError unless the policy's state is right."""
    assert (policy.tried[nodes] <= forest.nodes.links[nodes, SEEN]).all()
