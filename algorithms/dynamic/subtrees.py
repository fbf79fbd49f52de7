"""What is done to a subtree as a whole, and to an example on its way through one."""

from __future__ import annotations

from algorithms.core.arrays import int64
from algorithms.core.jit import inlined, jit, prefetch
from algorithms.core.names import release
from algorithms.dynamic import nodes, slack
from algorithms.dynamic.build import build
from algorithms.dynamic.examples import AFTER, side_of, value_of
from algorithms.dynamic.nodes import DEPTH, FEATURE, FIRST, HIGH, KIND, LOW, NONE, PARENT
from algorithms.dynamic.segment import HELD, Segment
from algorithms.dynamic.state import MADE, Forest, Rules, examples_of

ALL = 1 << 62  # more nodes than there are
_SIDE_BY_SIDE = 16  # lists


@inlined
def value_at(forest: Forest, row: int, node: int) -> float:
    """Return the value of a live example that an inner node asks for."""
    return value_of(examples_of(forest), row, forest.nodes.links[node, FEATURE])


@inlined
def child_of(forest: Forest, node: int, value: float) -> int:
    """Return the child of an inner node that an example with this value belongs to."""
    links = forest.nodes.links
    return links[node, LOW + side_of(links[node, KIND], forest.nodes.threshold[node], value)]


@inlined
def stand_of(forest: Forest, node: int) -> tuple[int, int, int]:
    """Return the parent of a node, which of its sides the node is on, and the node's depth."""
    links = forest.nodes.links
    parent = links[node, PARENT]
    side = int64(LOW)
    if parent != NONE and links[parent, HIGH] == node:
        side = int64(HIGH)
    return parent, side, links[node, DEPTH]


@jit
def gather(forest: Forest, segment: Segment, top: int) -> None:
    """Write the examples of a subtree to a segment. O(nodes + examples).

    Lists of leaves are anywhere in the store. So a few of them are followed side by side: what comes next in each
    is fetched while it is the others' turn. `pending` has where they are: of few rows it has more than there are
    lists, so its size changes nothing.
    """
    links = forest.nodes.links
    most = min(int64(_SIDE_BY_SIDE), segment.pending.shape[0])
    held, lanes, at = int64(0), int64(0), int64(0)
    node = top
    while True:
        while links[node, FEATURE] != NONE:
            prefetch(links, links[node, LOW])
            node = links[node, HIGH]
        row = links[node, FIRST]
        if row != NONE and lanes < most:
            _follow(forest, segment, lanes, row)
            lanes += 1
            row = int64(NONE)
        while row != NONE:  # until a list has ended, in whose place this one is followed
            after = _pass(forest, segment, at, held)
            held += 1
            if after == NONE:
                after, row = row, after
            _follow(forest, segment, at, after)
            at = at + 1 if at + 1 < most else int64(0)
        while node != top and links[links[node, PARENT], LOW] == node:
            node = links[node, PARENT]
        if node == top:
            break
        node = links[links[node, PARENT], LOW]
    while lanes > 0:
        at = int64(0)
        while at < lanes:
            after = _pass(forest, segment, at, held)
            held += 1
            if after == NONE:
                lanes -= 1
                segment.pending[at, 0] = segment.pending[lanes, 0]
            else:
                _follow(forest, segment, at, after)
                at += 1
    segment.sizes[HELD] = held


@inlined
def _follow(forest: Forest, segment: Segment, lane: int, row: int) -> None:
    """Have an example as the next of a list that is followed."""
    prefetch(forest.chain, row)
    segment.pending[lane, 0] = row


@inlined
def _pass(forest: Forest, segment: Segment, lane: int, held: int) -> int:
    """Write the next example of a list that is followed as `held`; return the one after it, or NONE."""
    row = segment.pending[lane, 0]
    segment.rows[held] = row
    return int64(forest.chain[row, AFTER])


@inlined
def discard(forest: Forest, top: int) -> None:
    """Give the nodes of a subtree back. O(nodes)."""
    forest.nodes.links[top, PARENT] = NONE
    give_back(forest, top, ALL)


@jit
def give_back(forest: Forest, todo: int, most: int) -> int:
    """Give back so many nodes at most, `todo` the first; return the next one, or NONE.

    These are linked by PARENT: nobody asks a node that goes for its parent.
    """
    links = forest.nodes.links
    while todo != NONE and most > 0:
        node = todo
        most -= 1
        todo = links[node, PARENT]
        if links[node, FEATURE] != NONE:
            release(forest.names, links[node, FEATURE])
            for side in (LOW, HIGH):
                links[links[node, side], PARENT] = todo
                todo = links[node, side]
        slack.forget(forest.slack, node)
        nodes.free(forest.nodes, node)
    return todo


@jit
def put_below(
    forest: Forest, rules: Rules, segment: Segment, tree: int, parent: int, side: int, depth: int
) -> int:
    """Build the tree of the examples in a segment below a parent, or below none; return its top."""
    top, made = build(
        forest.criterion,
        forest.nodes,
        forest.slack,
        segment,
        examples_of(forest),
        forest.words,
        forest.names,
        rules.terms,
        parent,
        side,
        depth,
        forest.trees[tree, MADE],
    )
    forest.trees[tree, MADE] = made
    return top
