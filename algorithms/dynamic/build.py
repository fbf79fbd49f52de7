"""BUILD of paper 002, algorithm 2: the greedy tree of some examples, without recursion.

::

    lay out columns -> next node -> leaf, or best split and partition -> its children are next nodes
"""

from __future__ import annotations

from typing import Any, NamedTuple

from algorithms.core.arrays import int64
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.hashing import mix
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names, refer
from algorithms.core.rows import Rows
from algorithms.dynamic import nodes, vocabulary
from algorithms.dynamic.examples import Examples, link
from algorithms.dynamic.nodes import (
    BUILT,
    BUILT_WEIGHT,
    EXAMPLES,
    FEATURE,
    FIRST,
    HIGH,
    KIND,
    LOW,
    NONE,
    NUMBER,
    Nodes,
)
from algorithms.dynamic.segment import HELD, PENDING, Segment, clear, lay_out
from algorithms.dynamic.splitter import (
    Way,
    best_split,
    forget,
    impurity,
    part_columns,
    partition,
    take_out,
    tally,
)

_ORDERED = int(Way.ORDERED)


class Terms(NamedTuple):
    """What a tree is built by."""

    alpha: float  # a node whose impurity is at most half of it is a leaf
    min_examples: int  # k: so is one of no more examples
    max_depth: int  # h: so is one this deep
    way: int  # a `Way`
    drawn: int = 0  # so many features alone are looked at in a node, of those that part it; 0: all
    salt: int = 0  # below 2^32, by which they are drawn


@inlined
def _push(segment: Segment, parent: int, side: int, depth: int, start: int, stop: int, salt: int) -> None:
    at = segment.sizes[PENDING]
    segment.pending[at, 0] = parent
    segment.pending[at, 1] = side
    segment.pending[at, 2] = depth
    segment.pending[at, 3] = start
    segment.pending[at, 4] = stop
    segment.pending[at, 5] = salt
    segment.sizes[PENDING] += 1


@jit
def describe(state: Nodes, segment: Segment, node: int, start: int, stop: int) -> None:
    """Write what a node holds that owns start to stop of `order`; s(v) and c(v) begin with it."""
    weight = int64(0)
    for position in range(start, stop):
        i = segment.order[position]
        state.weights[node, segment.label[i]] += segment.weight[i]
        weight += segment.weight[i]
    state.links[node, EXAMPLES] = stop - start
    state.links[node, BUILT] = stop - start
    state.links[node, BUILT_WEIGHT] = weight


@jit
def is_done(criterion: Any, state: Nodes, segment: Segment, terms: Terms, node: int, depth: int) -> bool:
    """Return whether a node stays a leaf whatever its features are: algorithm 2, line 3."""
    if state.links[node, EXAMPLES] <= terms.min_examples or depth >= terms.max_depth:
        return True
    for k in range(segment.totals.size):
        segment.totals[k] = state.weights[node, k]
    whole = impurity(criterion, segment.totals)
    return whole <= 0.5 * terms.alpha * (state.links[node, BUILT_WEIGHT] * PER_UNIT)


@jit
def hold(state: Nodes, segment: Segment, examples: Examples, leaf: int, start: int, stop: int) -> None:
    """Make a leaf's list of its examples."""
    for position in range(start, stop):
        row = segment.rows[segment.order[position]]
        state.links[leaf, FIRST] = link(examples, state.links[leaf, FIRST], row)


@jit
def split(
    state: Nodes,
    segment: Segment,
    examples: Examples,
    words: Rows,
    names: Names,
    node: int,
    column: int,
    threshold: float,
    start: int,
    stop: int,
) -> int:
    """Let a node test a column, and put its low side first; return where the high side begins."""
    feature = vocabulary.feature_of(words, column)
    kind = words.cells[column, vocabulary.KIND]
    state.links[node, FEATURE] = feature
    state.links[node, KIND] = kind
    state.threshold[node] = threshold
    refer(names, feature)
    return partition(segment, examples, start, stop, feature, kind, threshold)


@inlined
def below(salt: int, side: int) -> int:
    """Return by what a child draws, its parent's LOW or HIGH."""
    return mix(salt, side)


@jit
def number_all(state: Nodes, segment: Segment, top: int, number: int) -> int:
    """Give a node and all below their numbers, in preorder from `number`; return the next number."""
    segment.pending[0, 0] = top
    pending = int64(1)
    while pending > 0:
        pending -= 1
        node = segment.pending[pending, 0]
        state.links[node, NUMBER] = number
        number += 1
        if state.links[node, FEATURE] != NONE:
            segment.pending[pending, 0] = state.links[node, HIGH]
            segment.pending[pending + 1, 0] = state.links[node, LOW]
            pending += 2
    return number


@jit
def build(
    criterion: Any,
    state: Nodes,
    segment: Segment,
    examples: Examples,
    words: Rows,
    names: Names,
    terms: Terms,
    parent: int,
    side: int,
    depth: int,
    number: int,
) -> tuple[int, int]:
    """Build the tree of the examples in `segment.rows` below a parent; there must be room.

    Nodes are numbered from `number` in preorder, low sides first. Returns the top and the next number.
    O(entries) a level where features are numeric, and a sort of each column; see `Way` for others. Features that
    are binary are counted anew in the smaller of two children alone: what was counted of their parent, less
    that, is of the larger, which comes next. So an entry is counted O(log examples) times.
    """
    lay_out(segment, examples, words)
    segment.sizes[PENDING] = 0
    _push(segment, parent, side, depth, int64(0), segment.sizes[HELD], terms.salt)
    top = int64(NONE)
    is_heir = False  # the next node's features are those counted of its parent, less those of `sibling` to `end`
    sibling = int64(0)
    end = int64(0)
    while segment.sizes[PENDING] > 0:
        segment.sizes[PENDING] -= 1
        at = segment.sizes[PENDING]
        parent, side, depth = segment.pending[at, 0], segment.pending[at, 1], segment.pending[at, 2]
        start, stop, salt = segment.pending[at, 3], segment.pending[at, 4], segment.pending[at, 5]
        node = nodes.create(state, parent, side, depth, int64(0))
        if top == NONE:
            top = node
        describe(state, segment, node, start, stop)
        column = int64(NONE)
        threshold = 0.0
        if not is_done(criterion, state, segment, terms, node, depth):
            if is_heir:
                take_out(segment, sibling, end)
            elif node != top:
                tally(segment, start, stop)
            choice = best_split(
                criterion, segment, words, names, start, stop, terms.way, is_heir, terms.drawn, salt
            )
            column, threshold = choice.column, choice.threshold
        is_heir = column != NONE
        if column == NONE:
            hold(state, segment, examples, node, start, stop)
            continue
        middle = split(state, segment, examples, words, names, node, column, threshold, start, stop)
        takes_high = stop - middle > middle - start
        if terms.way == _ORDERED and depth + 1 < terms.max_depth:
            part_columns(segment, start, stop, middle, takes_high, False)
        if takes_high:
            sibling, end = start, middle
            _push(segment, node, LOW, depth + 1, start, middle, below(salt, LOW))
            _push(segment, node, HIGH, depth + 1, middle, stop, below(salt, HIGH))
        else:
            sibling, end = middle, stop
            _push(segment, node, HIGH, depth + 1, middle, stop, below(salt, HIGH))
            _push(segment, node, LOW, depth + 1, start, middle, below(salt, LOW))
    forget(segment)
    clear(segment)
    return top, number_all(state, segment, top, number)
