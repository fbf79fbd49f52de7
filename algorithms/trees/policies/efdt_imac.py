"""EFDT whose leaves try to split when IMAC's candidates say so; inner nodes think again every mu examples.

A leaf compares its best split with no split, so it tries once a candidate is surely better than none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Int64s, extended, int64
from algorithms.core.events import Batch
from algorithms.core.jit import inlined, jit
from algorithms.core.rows import NONE
from algorithms.core.stored import stored
from algorithms.trees.nodes import SEEN, is_leaf
from algorithms.trees.observers import MARK
from algorithms.trees.policies import efdt, imac
from algorithms.trees.policies.imac import POTENTIAL, Imac
from algorithms.trees.state import Choice, Forest, Rules


@stored("leaves", "tried")
class EfdtImac(NamedTuple):
    """The candidates of leaves, and when each inner node last compared."""

    leaves: Imac
    tried: Int64s  # int64[nodes], as of `Efdt`


@inlined
def begin(policy: EfdtImac, leaf: int) -> None:
    """Start a leaf that has seen nothing."""
    imac.begin(policy.leaves, leaf)
    policy.tried[leaf] = 0


@jit
def end(policy: EfdtImac, forest: Forest, leaf: int) -> None:
    """Give back the candidates of a leaf, which may go on as an inner node with the features that it saw."""
    at = int64(policy.leaves.set[leaf])
    if at != NONE:
        for which in range(policy.leaves.size[at]):
            forest.features.about[policy.leaves.row[at, which], MARK] = POTENTIAL
    imac.end(policy.leaves, forest, leaf)


@inlined
def ready(policy: EfdtImac, ones: int, learners: int) -> bool:
    """Return whether a leaf can be given candidates."""
    return imac.ready(policy.leaves, ones, learners)


@jit
def due(policy: EfdtImac, forest: Forest, rules: Rules, batch: Batch, event: int, node: int) -> bool:
    """Return whether a leaf's candidates say so, or the period of an inner node is over."""
    if is_leaf(forest.nodes, node):
        policy.tried[node] = forest.nodes.links[node, SEEN]
        return imac.can_succeed(policy.leaves, forest, rules, batch, event, node, False)
    return efdt.due(policy, forest, rules, batch, event, node)


@jit
def seek(policy: EfdtImac, forest: Forest, rules: Rules, node: int) -> Choice:
    """Return the best split and what it must beat, as EFDT does; the gains of all say what become candidates."""
    return efdt.best_and_rival(forest, rules, node, True)


@inlined
def failed(policy: EfdtImac, forest: Forest, rules: Rules, node: int, choice: Choice) -> None:
    """Make the best features of a leaf candidates."""
    if is_leaf(forest.nodes, node):
        imac.failed(policy.leaves, forest, rules, node, choice)


def make(nodes: int, features: int, classes: int, candidates: int) -> EfdtImac:
    """Make the policy."""
    return EfdtImac(imac.make(nodes, features, classes, candidates), np.zeros(nodes, np.int64))


def grown(policy: EfdtImac, nodes: int) -> EfdtImac:
    """Return the policy with room for more nodes."""
    return EfdtImac(imac.grown(policy.leaves, nodes), extended(policy.tried, nodes))


def enlarged(policy: EfdtImac, ones: int, rows: int) -> EfdtImac:
    """Return the policy with room for twice as many sets."""
    return policy._replace(leaves=imac.enlarged(policy.leaves, ones, rows))


def check(policy: EfdtImac, forest: Forest, nodes: list[int]) -> None:
    """Raise AssertionError unless the policy's state is right."""
    imac.check(policy.leaves, forest, nodes)
    assert (policy.tried[nodes] <= forest.nodes.links[nodes, SEEN]).all()
