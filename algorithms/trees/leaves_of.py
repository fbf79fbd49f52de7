"""From rows to the leaves of a tree that is given as columns: for trees whose nodes have two branches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int64s, UInt32s, int64
from algorithms.core.events import UNREAD, Batch
from algorithms.core.jit import jit
from algorithms.core.rows import NONE
from algorithms.trees.routing import branch_of, value_of
from algorithms.trees.snapshot import Tree


class _Nodes(NamedTuple):
    """The nodes of a tree as a kernel takes them."""

    feature: Int64s  # int64[n], NONE: a leaf
    kind: Int64s  # int64[n], a `Kind`; of a leaf NONE
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
        kind=np.array([NONE if each is None else int(each) for each in tree.kind], np.int64),
        threshold=np.ascontiguousarray(tree.threshold, np.float64),
        child=child,
    )
    rows = Batch(UNREAD, UNREAD, UNREAD, UNREAD, UNREAD, pointer, feature, value)
    leaf = np.empty(len(pointer) - 1, np.int64)
    _descend(nodes, rows, leaf)
    return leaf


@jit
def _descend(nodes: _Nodes, rows: Batch, leaf: Int64s) -> None:
    """Write the leaf of each row. O(depth log features of the row) each."""
    for row in range(leaf.size):
        node = int64(0)
        while nodes.feature[node] != NONE:
            value = value_of(rows, row, nodes.feature[node])
            node = nodes.child[node, branch_of(nodes.kind[node], nodes.threshold[node], value)]
        leaf[row] = node
