"""The greedy tree of some examples, grown where a split gains most: of so many leaves, not of a depth.

::

    look at the root -> waiting node of the largest gain -> split it -> look at its two children, who wait too
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int64s, int64
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names
from algorithms.core.rows import Rows
from algorithms.dynamic import nodes
from algorithms.dynamic.build import below, describe, hold, is_done, number_all, split
from algorithms.dynamic.examples import Examples
from algorithms.dynamic.nodes import DEPTH, FEATURE, HIGH, LOW, NONE, Nodes
from algorithms.dynamic.segment import HELD, Segment, clear, lay_out
from algorithms.dynamic.splitter import (
    Way,
    best_split,
    forget,
    group_all,
    part_columns,
    take_out,
    tally,
)
from algorithms.dynamic.terms import Terms

_ORDERED = int(Way.ORDERED)

# Columns of `Frontier.spans`.
START, STOP, COLUMN, SALT = 0, 1, 2, 3


class Frontier(NamedTuple):
    """What is known of each node, and the nodes that wait: a heap, the largest gain on top."""

    spans: Int64s  # int64[nodes, 4], where its examples are in `order`, the column of its split, how it draws
    threshold: Float64s  # float64[nodes]
    gain: Float64s  # float64[nodes], in weight times impurity
    waiting: Int64s  # int64[nodes]
    held: Int64s  # int64[1], how many wait


def frontier(capacity: int) -> Frontier:
    """Return room for so many nodes."""
    return Frontier(
        np.zeros((capacity, 4), np.int64),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity, np.int64),
        np.zeros(1, np.int64),
    )


@inlined
def _comes_first(frontier: Frontier, node: int, other: int) -> bool:
    """Return whether a node is split before another: by gain, then as they were made."""
    if frontier.gain[node] != frontier.gain[other]:
        return frontier.gain[node] > frontier.gain[other]
    return node < other


@jit
def _wait(frontier: Frontier, node: int) -> None:
    heap = frontier.waiting
    at = frontier.held[0]
    frontier.held[0] += 1
    while at > 0 and _comes_first(frontier, node, heap[(at - 1) >> 1]):
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = node


@jit
def _take(frontier: Frontier) -> int:
    heap = frontier.waiting
    top = heap[0]
    frontier.held[0] -= 1
    size = frontier.held[0]
    node = heap[size]
    at = int64(0)
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _comes_first(frontier, heap[child + 1], heap[child]):
            child += 1
        if not _comes_first(frontier, heap[child], node):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = node
    return top


@jit
def _create(
    criterion: Any,
    state: Nodes,
    segment: Segment,
    frontier: Frontier,
    parent: int,
    side: int,
    start: int,
    stop: int,
    salt: int,
) -> int:
    depth = int64(0) if parent == NONE else state.links[parent, DEPTH] + 1
    node = nodes.create(state, parent, side, depth, int64(0))
    describe(criterion, state, segment, node, start, stop)
    frontier.spans[node, START] = start
    frontier.spans[node, STOP] = stop
    frontier.spans[node, SALT] = salt
    return node


@jit
def _look(
    criterion: Any,
    segment: Segment,
    frontier: Frontier,
    words: Rows,
    names: Names,
    terms: Terms,
    node: int,
    are_grouped: int,
) -> None:
    """Find the split of a node whose features were counted; where there is one, let it wait."""
    start, stop, salt = frontier.spans[node, START], frontier.spans[node, STOP], frontier.spans[node, SALT]
    choice = best_split(
        criterion, segment, words, names, start, stop, terms.way, are_grouped, terms.drawn, salt, int64(0)
    )
    if choice.column != NONE:
        frontier.spans[node, COLUMN] = choice.column
        frontier.threshold[node] = choice.threshold
        frontier.gain[node] = choice.gain
        _wait(frontier, node)


@jit
def build_best_first(
    criterion: Any,
    state: Nodes,
    segment: Segment,
    frontier: Frontier,
    examples: Examples,
    words: Rows,
    names: Names,
    terms: Terms,
    most: int,
) -> int:
    """Build a tree of at most so many leaves of the examples in `segment.rows`; return its root.

    The storage of nodes is empty. As `build`, but that the features of a node are counted again when it is split,
    if others were looked at since: at most twice the time of the same nodes by `build`.
    """
    lay_out(criterion, segment, examples, words)
    root = _create(
        criterion, state, segment, frontier, int64(NONE), int64(0), int64(0), segment.sizes[HELD], terms.salt
    )
    counted = root  # the node whose features are counted
    if not is_done(criterion, state, segment, terms, root, int64(0)):
        _look(criterion, segment, frontier, words, names, terms, root, int64(0))
    leaves = int64(1)
    while leaves < most and frontier.held[0] > 0:
        leaves += 1
        node = _take(frontier)
        start, stop, salt = frontier.spans[node, START], frontier.spans[node, STOP], frontier.spans[node, SALT]
        if node != counted:
            tally(criterion, segment, start, stop)
            if terms.way == _ORDERED:
                group_all(segment, start)
        column, threshold = frontier.spans[node, COLUMN], frontier.threshold[node]
        middle = split(state, segment, examples, words, names, node, column, threshold, start, stop)
        takes_high = stop - middle > middle - start
        if terms.way == _ORDERED:
            part_columns(segment, start, stop, middle, takes_high, True)
        low = _create(criterion, state, segment, frontier, node, LOW, start, middle, below(salt, LOW))
        high = _create(criterion, state, segment, frontier, node, HIGH, middle, stop, below(salt, HIGH))
        larger, smaller = (high, low) if takes_high else (low, high)
        counted = int64(NONE)
        if not is_done(criterion, state, segment, terms, larger, state.links[larger, DEPTH]):
            take_out(criterion, segment, frontier.spans[smaller, START], frontier.spans[smaller, STOP])
            _look(criterion, segment, frontier, words, names, terms, larger, int64(1))
            counted = larger
        if not is_done(criterion, state, segment, terms, smaller, state.links[smaller, DEPTH]):
            tally(criterion, segment, frontier.spans[smaller, START], frontier.spans[smaller, STOP])
            _look(criterion, segment, frontier, words, names, terms, smaller, int64(0))
            counted = smaller
    for node in range(2 * leaves - 1):
        if state.links[node, FEATURE] == NONE:
            hold(state, segment, examples, node, frontier.spans[node, START], frontier.spans[node, STOP])
    forget(segment)
    clear(segment)
    number_all(state, segment, root, int64(0))
    return root
