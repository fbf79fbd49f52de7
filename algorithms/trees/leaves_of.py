"""From rows to the leaves of a tree that is given as columns: for trees whose nodes have two branches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int32s, Int64s, UInt32s, int64
from algorithms.core.jit import jit
from algorithms.core.kinds import BINARY
from algorithms.core.rows import NONE
from algorithms.trees.snapshot import Tree


class _Nodes(NamedTuple):
    """The nodes of a tree as a kernel takes them."""

    feature: Int64s  # int64[n], NONE: a leaf
    is_binary: Int32s  # int32[n], whether presence alone counts
    threshold: Float64s  # float64[n]
    child: Int64s  # int64[n, 2]


def leaves_of(tree: Tree, pointer: Int64s, feature: UInt32s, value: Float64s) -> Int64s:
    """Return int64[rows], the place in the tree of the leaf of each row.

    Parameters
    ----------
    tree : Tree
        With a node at least; its features are ids below 2^32, and binary or numeric.
    pointer, feature, value
        Rows in CSR form, canonical: features ascend in each, and no value is 0.
    """
    child = np.full((len(tree.parent), 2), NONE, np.int64)
    child[tree.parent[1:], tree.branch[1:]] = np.arange(1, len(tree.parent))
    nodes = _Nodes(
        feature=np.array([NONE if each is None else each for each in tree.feature], np.int64),
        is_binary=np.array([kind == BINARY for kind in tree.kind], np.int32),
        threshold=np.ascontiguousarray(tree.threshold, np.float64),
        child=child,
    )
    leaf = np.empty(len(pointer) - 1, np.int64)
    _descend(nodes, pointer, feature, value, leaf)
    return leaf


@jit
def _descend(nodes: _Nodes, pointer: Int64s, feature: UInt32s, value: Float64s, leaf: Int64s) -> None:
    """Write the leaf of each row. O(depth log features of the row) each."""
    for row in range(leaf.size):
        node = int64(0)
        while nodes.feature[node] != NONE:
            low, high = pointer[row], pointer[row + 1]
            while low < high:
                middle = (low + high) >> 1
                if int64(feature[middle]) < nodes.feature[node]:
                    low = middle + 1
                else:
                    high = middle
            found = 0.0
            if low < pointer[row + 1] and int64(feature[low]) == nodes.feature[node]:
                found = value[low]
            goes_high = found != 0.0 if nodes.is_binary[node] == 1 else found > nodes.threshold[node]
            node = nodes.child[node, 1 if goes_high else 0]
        leaf[row] = node
