"""A tree as columns, for readers: nodes in preorder, children in the order of their branches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.kinds import Kind
from algorithms.core.rows import COUNT
from algorithms.trees import nodes
from algorithms.trees.nodes import DEPTH, FEATURE, KIND, NUMBER, ROOTS, THRESHOLD, Nodes


class Tree(NamedTuple):
    """A tree of n nodes; node 0 is the root, an empty tree has none."""

    number: Int64s  # int64[n], which the node keeps for as long as it is there: `Split.node`, `Answers.leaf`
    parent: Int64s  # int64[n], -1: the root
    branch: Int64s  # int64[n], of the parent: 0 absent or at most the threshold, 1 present or above, or a category
    depth: Int64s  # int64[n]
    feature: list[int | bytes | None]  # what the node splits on, None: a leaf
    kind: list[Kind | None]  # of that feature
    threshold: Float64s  # float64[n], of a numeric split, else 0
    weight: Int64s  # int64[n, c], class weights in units of 2^-20; an inner node's are those of when it split


class NumberTree(NamedTuple):
    """A tree of n nodes that predicts numbers; node 0 is the root, an empty tree has none."""

    number: Int64s  # int64[n], which the node keeps for as long as it is there
    parent: Int64s  # int64[n], -1: the root
    branch: Int64s  # int64[n], of the parent: 0 absent or at most the threshold, 1 present or above, or a category
    depth: Int64s  # int64[n]
    feature: list[int | bytes | None]  # what the node splits on, None: a leaf
    kind: list[Kind | None]  # of that feature
    threshold: Float64s  # float64[n], of a numeric split, else 0
    weight: Float64s  # float64[n], in examples; an inner node's is that of when it split, as what follows
    mean: Float64s  # float64[n], what the node predicts
    variance: Float64s  # float64[n], mean squared deviation


def snapshot(state: Nodes, tree: int) -> Tree:
    """Return a tree; its features are numbers."""
    order = nodes.preorder(state, int(nodes.root_of(state, tree)))
    place = {node: at for at, node in enumerate(order)}
    parents = [int(rows.owner_of(state.rows, node)) for node in order]
    inner = [int(feature) >= 0 for feature in state.links[order, FEATURE]]
    return Tree(
        number=state.links[order, NUMBER],
        parent=np.array([-1 if parent == ROOTS else place[parent] for parent in parents], np.int64),
        branch=np.array(
            [0 if at == 0 else nodes.branch_of(state, node) for at, node in enumerate(order)], np.int64
        ),
        depth=state.links[order, DEPTH],
        feature=[
            int(state.links[node, FEATURE]) if split else None for node, split in zip(order, inner, strict=True)
        ],
        kind=[
            Kind(int(state.links[node, KIND])) if split else None for node, split in zip(order, inner, strict=True)
        ],
        threshold=state.numbers[order, THRESHOLD],
        weight=state.prior[order] + state.rows.cells[order, COUNT:],
    )
