"""Skew heaps: any number of small heaps in one pool of nodes, from which any node can be taken.

A heap is its root, NONE when empty. Melding walks down the right spines and swaps children on its way,
which alone keeps all operations at amortised O(log n); there is nothing to balance, and the shape follows
from the history alone. Sleator and Tarjan, "Self-adjusting heaps" (1986).
"""

from __future__ import annotations

from algorithms.core.arrays import Float64s, Int32s, int64
from algorithms.core.jit import inlined, jit
from algorithms.splits.slots import NONE

# Columns of the nodes, int32[capacity, at least 3]; beside them lie the keys, float64[capacity].
LEFT, RIGHT, PARENT = 0, 1, 2


@jit
def melded(keys: Float64s, nodes: Int32s, one: int, other: int) -> int:
    """Return the root of the heap that two heaps become."""
    if one == NONE:
        return other
    if other == NONE:
        return one
    if keys[other] < keys[one]:
        one, other = other, one
    root = one
    while True:
        # `one` is above `other`: what was right goes left after melding, what was left goes right.
        rest = int64(nodes[one, RIGHT])
        nodes[one, RIGHT] = nodes[one, LEFT]
        if rest != NONE and keys[rest] < keys[other]:
            rest, other = other, rest
        nodes[one, LEFT] = other
        nodes[other, PARENT] = one
        if rest == NONE:
            return root
        one, other = other, rest


@jit
def added(keys: Float64s, nodes: Int32s, root: int, node: int) -> int:
    """Return the root of a heap after a node, whose key is set, has come to it."""
    nodes[node, LEFT] = NONE
    nodes[node, RIGHT] = NONE
    nodes[node, PARENT] = NONE
    return melded(keys, nodes, root, node)


@jit
def taken(keys: Float64s, nodes: Int32s, root: int, node: int) -> int:
    """Return the root of a heap after one of its nodes has left it."""
    left = int64(nodes[node, LEFT])
    right = int64(nodes[node, RIGHT])
    above = int64(nodes[node, PARENT])
    heir = melded(keys, nodes, left, right)
    if heir != NONE:
        nodes[heir, PARENT] = above
    if above == NONE:
        return heir
    nodes[above, LEFT if nodes[above, LEFT] == node else RIGHT] = heir
    return root


@inlined
def following(nodes: Int32s, node: int, deeper: bool) -> int:
    """Return the next node in preorder, with what is below this one left out unless `deeper`; NONE at the end.

    Children have no smaller keys than their parent, so a walk that goes deeper only below keys up to a limit
    visits all of these, and at most two others for each. It needs no stack: a skew heap may be deep.
    """
    if deeper:
        if nodes[node, LEFT] != NONE:
            return int64(nodes[node, LEFT])
        if nodes[node, RIGHT] != NONE:
            return int64(nodes[node, RIGHT])
    while True:
        above = int64(nodes[node, PARENT])
        if above == NONE:
            return NONE
        if nodes[above, LEFT] == node and nodes[above, RIGHT] != NONE:
            return int64(nodes[above, RIGHT])
        node = above
