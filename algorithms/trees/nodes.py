"""The nodes of all trees of a pool. A node's key is (parent, branch), so that routing is one look-up a level.

The branch of an absent or lower value is 0, of a present or greater one 1, of a category the category itself.

An alternate (alternates.py) is a subtree that grows beside an inner node, to take its place if it does better. Its
top is a node under the key (ALTERNATES, that node); nobody's child, so that all walks of the tree pass it by.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Float64s, Int64s, extended, int64
from algorithms.core.jit import ahead, inlined, jit
from algorithms.core.rows import COUNT, NONE, Rows
from algorithms.core.stored import stored

# Columns of `Nodes.links`.
FEATURE = 0  # the feature that an inner node splits on; NONE: a leaf
KIND = 1  # of that feature
FIRST = 2  # an inner node's newest child
OBSERVED = 3  # the newest row in `Features`
TREE = 4
DEPTH = 5  # 0: the root
SEEN = 6  # examples since the node was made; an inner node's stay as they were, unless the policy keeps counting
WEIGHT = 7  # their weight, in units
PRIOR = 8  # weight of `prior`
MAJORITY, BAYES = 9, 10  # weight of the examples that each would have predicted rightly
ASLEEP = 11  # 1: a leaf that counts classes only, to save memory
RIPE = 12  # where that is measured: examples seen when the leaf could first have split, 0 before
NUMBER = 13  # of the node in its tree: 0 the first, then in the order in which nodes were made, none given twice
BESIDE = 14  # 1: the node is part of an alternate, not of the tree
COLUMNS = 15

# Columns of `Nodes.numbers`.
THRESHOLD = 0  # of a numeric split
SQUARES = 1  # sum of the squared weights of the examples seen, in examples

ROOTS = (1 << 31) - 1  # the parent of all roots; their branch is the tree
ALTERNATES = ROOTS - 1  # the parent of the tops of alternates; their branch is the node that they grow beside


@stored("rows", "links", "numbers", "prior")
class Nodes(NamedTuple):
    """Leaves and inner nodes."""

    rows: Rows  # counts: class weights of the examples seen since the node was made
    links: Int64s  # int64[capacity, COLUMNS]
    numbers: Float64s  # float64[capacity, 2]
    prior: Int64s  # int64[capacity, c], class weights that the split above said the node would have


def make(capacity: int, classes: int) -> Nodes:
    """Return empty storage."""
    return Nodes(
        rows.make(capacity, classes),
        np.zeros((capacity, COLUMNS), np.int64),
        np.zeros((capacity, 2)),
        np.zeros((capacity, classes), np.int64),
    )


def grown(nodes: Nodes, capacity: int) -> Nodes:
    """Return the same storage with room for more nodes."""
    return Nodes(
        rows.grown(nodes.rows, capacity),
        extended(nodes.links, capacity),
        extended(nodes.numbers, capacity),
        extended(nodes.prior, capacity),
    )


@jit
def make_leaf(nodes: Nodes, tree: int, parent: int, branch: int) -> int:
    """Return a new leaf that has seen nothing; there must be room."""
    first = int64(NONE)
    depth = int64(0)
    beside = int64(0)
    if parent == ALTERNATES:
        depth = nodes.links[branch, DEPTH]
        beside = int64(1)
    elif parent != ROOTS:
        first = nodes.links[parent, FIRST]
        depth = nodes.links[parent, DEPTH] + 1
        beside = nodes.links[parent, BESIDE]
    leaf = rows.create(nodes.rows, parent, branch, first)
    if parent < ALTERNATES:
        nodes.links[parent, FIRST] = leaf
    for column in range(COLUMNS):
        nodes.links[leaf, column] = 0
    nodes.links[leaf, FEATURE] = NONE
    nodes.links[leaf, FIRST] = NONE
    nodes.links[leaf, OBSERVED] = NONE
    nodes.links[leaf, TREE] = tree
    nodes.links[leaf, DEPTH] = depth
    nodes.links[leaf, BESIDE] = beside
    nodes.numbers[leaf, THRESHOLD] = 0.0
    nodes.numbers[leaf, SQUARES] = 0.0
    for k in range(nodes.prior.shape[1]):
        nodes.prior[leaf, k] = 0
    return leaf


@inlined
def is_leaf(nodes: Nodes, node: int) -> bool:
    """Return whether a node is a leaf."""
    return nodes.links[node, FEATURE] == NONE


@ahead(lambda: (make(1, 2), 0))
@inlined
def root_of(nodes: Nodes, tree: int) -> int:
    """Return the root of a tree, NONE where the tree is empty."""
    return rows.find(nodes.rows, ROOTS, tree)


@inlined
def alternate_of(nodes: Nodes, node: int) -> int:
    """Return the top of the alternate that grows beside a node, NONE where there is none."""
    return rows.find(nodes.rows, ALTERNATES, node)


@inlined
def class_weight(nodes: Nodes, node: int, k: int) -> int:
    """Return the weight of a class in a node: what it was said to have when it was made, and what it saw."""
    return nodes.prior[node, k] + nodes.rows.cells[node, COUNT + k]


@jit
def is_pure(nodes: Nodes, leaf: int) -> bool:
    """Return whether a leaf has seen at most one class."""
    classes = 0
    for k in range(nodes.prior.shape[1]):
        if nodes.rows.cells[leaf, COUNT + k] > 0:
            classes += 1
    return classes < 2


def children(nodes: Nodes, node: int) -> list[int]:
    """Return the children of a node in the order of their branches."""
    return sorted(
        rows.chain(nodes.rows, int(nodes.links[node, FIRST])), key=lambda child: int(branch_of(nodes, child))
    )


def branch_of(nodes: Nodes, node: int) -> int:
    """Return which branch of its parent a node is."""
    return int(rows.item_of(nodes.rows, node))


def alternates(nodes: Nodes) -> list[int]:
    """Return the tops of all alternates."""
    keys = nodes.rows.cells[: nodes.rows.used[rows.EVER], rows.KEY]
    return [int(top) for top in np.flatnonzero(keys >> 32 == ALTERNATES)]


def preorder(nodes: Nodes, top: int) -> list[int]:
    """Return a node and all below, parents before their children, these in the order of their branches."""
    found, todo = [], [top] if top != NONE else []
    while todo:
        node = todo.pop()
        found.append(node)
        todo.extend(reversed(children(nodes, node)))
    return found
