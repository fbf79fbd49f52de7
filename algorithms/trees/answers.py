"""What a batch of events led to, for the caller of a pool."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s
from algorithms.core.kinds import Kind
from algorithms.core.rows import COUNT, item_of
from algorithms.trees import nodes
from algorithms.trees.nodes import DEPTH, KIND, NUMBER, THRESHOLD, Nodes
from algorithms.trees.snapshot import Tree


class Split(NamedTuple):
    """A split that was made. Scores are un-normalised: weight times impurity, lower is better."""

    event: int  # after which
    node: int  # the number of the node in its tree, see `Tree.number`
    depth: int
    feature: int | bytes
    kind: Kind
    threshold: float  # of a numeric feature, else 0
    score: float  # after the split
    second: float  # of what it was compared with: the second best, or no split
    impurity: float  # of the node before
    totals: Int64s  # int64[c], class weights that the node had seen, in units of 2^-20
    branches: Int64s  # int64[b], 0 absent or at most the threshold, 1 present or above, or the category
    counts: Int64s  # int64[b, c], of `totals` what went to each, as far as it is known (NUMERIC: estimated)


class Answers(NamedTuple):
    """What a batch led to."""

    status: Int8s  # int8[n], a `Status` for each event
    splits: list[Split]  # ascending by event
    snapshots: list[tuple[int, int, Tree]]  # where they were due: event, examples learned, the tree then
    predicted: Int32s  # int32[n], the class predicted, -1: nothing is known, or nothing was asked
    loss: Float64s  # float64[n], of examples where `evaluate` is set: -log2 of the share given to the true class
    asked: Int64s  # int64[p], the events that were predictions
    weights: Float64s  # float64[p, c], the class weights that each was answered with, in examples
    leaf: Int64s  # int64[p], the number of the node that answered, 0 where nothing is known


def split_of(
    state: Nodes, node: int, event: int, feature: int | bytes, scores: tuple[float, float, float]
) -> Split:
    """Return the split that a node just made, before its children have seen anything.

    `scores` are `score`, `second` and `impurity`.
    """
    links = state.links[node]
    children = nodes.children(state, node)
    score, second, impurity = scores
    return Split(
        event=event,
        node=int(links[NUMBER]),
        depth=int(links[DEPTH]),
        feature=feature,
        kind=Kind(int(links[KIND])),
        threshold=float(state.numbers[node, THRESHOLD]),
        score=score,
        second=second,
        impurity=impurity,
        totals=state.rows.cells[node, COUNT:].copy(),
        branches=np.array([item_of(state.rows, child) for child in children], np.int64),
        counts=state.prior[children],
    )
