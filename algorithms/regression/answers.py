"""What a batch of events led to, and a tree as columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Float64s, Int8s, Int64s
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.kinds import Kind
from algorithms.regression.leaves import known_of, seen_by
from algorithms.regression.moments import Moments
from algorithms.regression.state import FIRST_LABEL, PRIOR_MEAN, PRIOR_SQUARES, Forest
from algorithms.trees import nodes
from algorithms.trees.nodes import DEPTH, FEATURE, KIND, NUMBER, PRIOR, ROOTS, THRESHOLD
from algorithms.trees.snapshot import NumberTree as Tree


class Labels(NamedTuple):
    """What is known of the labels of a node or a branch."""

    weight: float  # in examples
    mean: float
    variance: float  # mean squared deviation, n below


class Split(NamedTuple):
    """A split that was made."""

    event: int  # after which
    node: int  # the number of the node in its tree, see `Tree.number`
    depth: int
    feature: int | bytes
    kind: Kind
    threshold: float  # of a numeric feature, else 0
    merit: float  # by how much it reduces the variance, n - 1 below
    second: float  # of the second best feature, at least 0: no split
    labels: Labels  # that the node had seen
    # In ascending order: 0 absent or at most the threshold, 1 present or above; of a nominal feature 0 absent,
    # where there were such examples, and categories.
    branches: list[int]
    sides: list[Labels]  # of those of the node, those of each branch


class Answers(NamedTuple):
    """What a batch led to."""

    status: Int8s  # int8[n], a `Status` for each event
    splits: list[Split]  # ascending by event
    predicted: Float64s  # float64[n], the label predicted for an example or on demand, nan: nothing is known
    leaf: Int64s  # int64[n], the number of the node that predicted it, 0 where nothing is known
    weight: Float64s  # float64[n], of predictions on demand: what the leaf knows weighs so many examples
    variance: Float64s  # float64[n], and has this mean squared deviation
    snapshots: list[tuple[int, int, Tree]]  # those that are due, ascending: event, examples of the key, its tree
    # float64[n], half the width of the interval around what was predicted, nan: too little is known; None: nobody
    # asks for intervals
    margin: Float64s | None = None


def _labels(seen: Moments, first: float = 0.0) -> Labels:
    weight = float(seen.weight * PER_UNIT)
    return Labels(weight, first + float(seen.mean), float(seen.squares) / weight if weight else 0.0)


def split_of(forest: Forest, node: int, event: int, feature: int | bytes, merit: float, second: float) -> Split:
    """Return the split that a node just made, before its children have seen anything."""
    links, numbers = forest.nodes.links, forest.targets.numbers
    children = nodes.children(forest.nodes, node)
    sides = [
        Moments(int(links[child, PRIOR]), float(numbers[child, PRIOR_MEAN]), float(numbers[child, PRIOR_SQUARES]))
        for child in children
    ]
    return Split(
        event=event,
        node=int(links[node, NUMBER]),
        depth=int(links[node, DEPTH]),
        feature=feature,
        kind=Kind(int(links[node, KIND])),
        threshold=float(forest.nodes.numbers[node, THRESHOLD]),
        merit=merit,
        second=second,
        labels=_labels(seen_by(forest, node), float(numbers[node, FIRST_LABEL])),
        branches=[nodes.branch_of(forest.nodes, child) for child in children],
        sides=[_labels(side) for side in sides],
    )


def snapshot(forest: Forest, tree: int) -> Tree:
    """Return a tree; its features are numbers."""
    state = forest.nodes
    order = nodes.preorder(state, int(nodes.root_of(state, tree)))
    place = {node: at for at, node in enumerate(order)}
    parents = [int(rows.owner_of(state.rows, node)) for node in order]
    inner = [int(feature) >= 0 for feature in state.links[order, FEATURE]]
    known = [_labels(known_of(forest, node)) for node in order]
    return Tree(
        number=state.links[order, NUMBER],
        parent=np.array([-1 if parent == ROOTS else place[parent] for parent in parents], np.int64),
        branch=np.array([nodes.branch_of(state, node) if at else 0 for at, node in enumerate(order)], np.int64),
        depth=state.links[order, DEPTH],
        feature=[
            int(state.links[node, FEATURE]) if split else None for node, split in zip(order, inner, strict=True)
        ],
        kind=[
            Kind(int(state.links[node, KIND])) if split else None for node, split in zip(order, inner, strict=True)
        ],
        threshold=state.numbers[order, THRESHOLD],
        weight=np.array([each.weight for each in known], np.float64),
        mean=np.array([each.mean for each in known], np.float64),
        variance=np.array([each.variance for each in known], np.float64),
    )
