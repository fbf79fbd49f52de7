"""The nodes of all trees of a pool: two children an inner node, a list of examples a leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from algorithms.core import free_list
from algorithms.core.arrays import Float64s, Int64s, extended
from algorithms.core.free_list import EVER as EVER
from algorithms.core.free_list import NONE as NONE
from algorithms.core.free_list import USED as USED
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import Kind
from algorithms.core.stored import stored
from algorithms.trees.snapshot import Tree

# Columns of `Nodes.links`.
FEATURE = 0  # the feature that an inner node splits on; NONE: a leaf
KIND = 1  # of that feature
LOW, HIGH = 2, 3  # the children: absent or at most the threshold; present or above
PARENT = 4  # NONE: the root
DEPTH = 5  # 0: the root
NUMBER = 6  # of the node in its tree, in the order in which nodes were made, none given twice
EXAMPLES = 7  # that it holds now
FIRST = 8  # a leaf's first example, or NONE
BUILT, EDITS = 9, 10  # s(v) and c(v): examples when it was built; inserts and deletes that reached it since
BUILT_WEIGHT, EDITED_WEIGHT = 11, 12  # the same in weight, units of 2^-20
COLUMNS = 13

_FREED = -2  # as FEATURE: not in use


@stored("links", "threshold", "weights", "used")
class Nodes(NamedTuple):
    """Leaves and inner nodes."""

    links: Int64s  # int64[capacity, COLUMNS]
    threshold: Float64s  # float64[capacity], of a numeric split, else 0
    # int64[capacity, c], class weights of the examples that a node holds now, in units of 2^-20; of numbers their
    # four sums, see variance.py
    weights: Int64s
    used: Int64s  # int64[3], a free list through PARENT


def make(capacity: int, classes: int) -> Nodes:
    """Return empty storage."""
    return Nodes(
        links=np.zeros((capacity, COLUMNS), np.int64),
        threshold=np.zeros(capacity),
        weights=np.zeros((capacity, classes), np.int64),
        used=np.array([0, 0, NONE], np.int64),
    )


def grown(nodes: Nodes, capacity: int) -> Nodes:
    """Return the same storage with room for more nodes."""
    return Nodes(
        links=extended(nodes.links, capacity),
        threshold=extended(nodes.threshold, capacity),
        weights=extended(nodes.weights, capacity),
        used=nodes.used,
    )


@inlined
def room(nodes: Nodes) -> int:
    """Return how many nodes can be made before the storage must grow."""
    return nodes.links.shape[0] - nodes.used[USED]


@jit
def needed(examples: int, max_depth: int) -> int:
    """Return how many nodes a tree of so many examples has at most; one that holds none has one."""
    most = 2 * examples + 1
    return min(most, 2 << max_depth) if max_depth < 40 else most


@jit
def create(nodes: Nodes, parent: int, side: int, depth: int, number: int) -> int:
    """Return a new leaf that holds nothing, its parent's child LOW or HIGH; there must be room."""
    node = free_list.take(nodes.used, nodes.links[:, PARENT])
    for column in range(COLUMNS):
        nodes.links[node, column] = 0
    for column in (FEATURE, LOW, HIGH, FIRST):
        nodes.links[node, column] = NONE
    nodes.links[node, PARENT] = parent
    nodes.links[node, DEPTH] = depth
    nodes.links[node, NUMBER] = number
    nodes.threshold[node] = 0.0
    for k in range(nodes.weights.shape[1]):
        nodes.weights[node, k] = 0
    if parent != NONE:
        nodes.links[parent, side] = node
    return node


@inlined
def free(nodes: Nodes, node: int) -> None:
    """Give back a node."""
    nodes.links[node, FEATURE] = _FREED
    free_list.give(nodes.used, nodes.links[:, PARENT], node)


def preorder(nodes: Nodes, top: int) -> list[int]:
    """Return a node and all below, parents before children, LOW before HIGH."""
    found, todo = [], [top] if top != NONE else []
    while todo:
        node = todo.pop()
        found.append(node)
        if nodes.links[node, FEATURE] != NONE:
            todo += [int(nodes.links[node, HIGH]), int(nodes.links[node, LOW])]
    return found


def snapshot(nodes: Nodes, top: int) -> Tree:
    """Return a tree as the columns that all trees have; its features are numbers, its weights those of now."""
    order = preorder(nodes, top)
    place = {node: at for at, node in enumerate(order)}
    links = nodes.links[order]
    inner = links[:, FEATURE] != NONE
    parents = [place.get(int(parent), NONE) for parent in links[:, PARENT]]
    return Tree(
        number=links[:, NUMBER],
        parent=np.array(parents, np.int64),
        branch=np.array(
            [
                int(parent != NONE and nodes.links[parent, HIGH] == node)
                for parent, node in zip(links[:, PARENT], order, strict=True)
            ],
            np.int64,
        ),
        depth=links[:, DEPTH],
        feature=[int(row[FEATURE]) if split else None for row, split in zip(links, inner, strict=True)],
        kind=[Kind(int(row[KIND])) if split else None for row, split in zip(links, inner, strict=True)],
        threshold=nodes.threshold[order],
        weight=nodes.weights[order],
    )


def check(nodes: Nodes, reached: list[int], joined: Callable[[Int64s, Int64s], Int64s]) -> None:
    """Raise AssertionError unless the nodes reached from roots are those in use. O(everything).

    `joined` returns the sums of labels of two children together.
    """
    high = int(nodes.used[EVER])
    used = np.flatnonzero(nodes.links[:high, FEATURE] != _FREED).tolist()
    assert sorted(reached) == used, "a node is lost or in two places"
    free_list.check(nodes.used, nodes.links[:, PARENT], used)
    for node in used:
        links = nodes.links[node]
        if links[FEATURE] != NONE:
            low, high_child = int(links[LOW]), int(links[HIGH])
            assert (nodes.links[[low, high_child], PARENT] == node).all()
            assert (nodes.links[[low, high_child], DEPTH] == links[DEPTH] + 1).all()
            assert nodes.links[[low, high_child], EXAMPLES].sum() == links[EXAMPLES]
            assert (joined(nodes.weights[low], nodes.weights[high_child]) == nodes.weights[node]).all()
