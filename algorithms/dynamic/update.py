"""UPDATE of paper 002, algorithm 1: an example comes or goes, and where a subtree has seen enough it is rebuilt.

::

    root 1000/90 -> 120/13 -> 30/4 -> leaf      s(v)/c(v): examples when built, inserts and deletes since

With epsilon = 0.1 the second node is the first that is due (13 > 12). s^ = 128, the root has more, so the second
node itself is rebuilt; had the root been built from 128 examples or fewer, it would be.
"""

from __future__ import annotations

from algorithms.core import example_store
from algorithms.core.arrays import int64
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.jit import inlined, jit
from algorithms.core.names import release
from algorithms.dynamic import nodes
from algorithms.dynamic.build import build
from algorithms.dynamic.examples import AFTER, link, side_of, unlink, value_of
from algorithms.dynamic.nodes import (
    BUILT,
    BUILT_WEIGHT,
    DEPTH,
    EDITED_WEIGHT,
    EDITS,
    EXAMPLES,
    FEATURE,
    FIRST,
    HIGH,
    KIND,
    LOW,
    NONE,
    PARENT,
)
from algorithms.dynamic.segment import HELD, Segment
from algorithms.dynamic.state import CHANGED, MADE, REBUILDS, REBUILT, ROOT, Forest, Out, Rules, examples_of


@inlined
def _next_on_way(forest: Forest, row: int, node: int) -> int:
    """Return the child of an inner node that a live example belongs to."""
    links = forest.nodes.links
    value = value_of(examples_of(forest), row, links[node, FEATURE])
    return links[node, LOW + side_of(links[node, KIND], forest.nodes.threshold[node], value)]


@inlined
def _is_due(forest: Forest, rules: Rules, node: int) -> bool:
    """Return whether a node has seen enough: c(v) > epsilon s(v), in examples or in weight.

    Impurities and gains change with weight, k with examples: for each the proof needs its own count.
    """
    links = forest.nodes.links
    examples = float(links[node, EDITS]) > rules.epsilon * float(links[node, BUILT])
    return examples or float(links[node, EDITED_WEIGHT]) > rules.epsilon * float(links[node, BUILT_WEIGHT])


@jit
def _supertree(forest: Forest, node: int) -> int:
    """Return the highest node on the way to a node that was built with at most s^ examples: lines 8 and 9."""
    links = forest.nodes.links
    most = int64(0)
    if links[node, BUILT] > 0:
        most = int64(1)
        while most < links[node, BUILT]:
            most *= 2
    highest = node
    while node != NONE:
        if links[node, BUILT] <= most:
            highest = node
        node = links[node, PARENT]
    return highest


@jit
def update(
    forest: Forest, rules: Rules, segment: Segment, tree: int, row: int, sign: int, event: int, out: Out
) -> None:
    """Let an example of the example store come to a tree (sign 1) or leave it (-1). There must be room."""
    links = forest.nodes.links
    label = forest.store.rows[row, example_store.LABEL]
    weight = forest.store.rows[row, example_store.WEIGHT]
    node = forest.trees[tree, ROOT]
    while True:
        links[node, EXAMPLES] += sign
        forest.nodes.weights[node, label] += sign * weight
        if links[node, FEATURE] == NONE:
            break
        node = _next_on_way(forest, row, node)
    if sign > 0:
        links[node, FIRST] = link(examples_of(forest), links[node, FIRST], row)
    else:
        links[node, FIRST] = unlink(examples_of(forest), links[node, FIRST], row)
    node = forest.trees[tree, ROOT]
    while True:
        links[node, EDITS] += 1
        # With a large epsilon c(v) could pass what 64 bits hold: it stops before, the count of examples goes on.
        links[node, EDITED_WEIGHT] = min(links[node, EDITED_WEIGHT], MAX_TOTAL) + weight
        if _is_due(forest, rules, node):
            _rebuild(forest, rules, segment, tree, _supertree(forest, node), event, out)
            return
        if links[node, FEATURE] == NONE:
            return
        node = _next_on_way(forest, row, node)


@jit
def _rebuild(forest: Forest, rules: Rules, segment: Segment, tree: int, top: int, event: int, out: Out) -> None:
    """Put the tree that BUILD makes of a subtree's examples in its place: lines 10 and 11."""
    links = forest.nodes.links
    parent = links[top, PARENT]
    depth = links[top, DEPTH]
    side = int64(LOW)
    if parent != NONE and links[parent, HIGH] == top:
        side = int64(HIGH)
    was_leaf = links[top, FEATURE] == NONE
    collect(forest, segment, top)
    top = begin(forest, rules, segment, tree, parent, side, depth)
    out.rebuilt[event] += links[top, EXAMPLES]
    if not was_leaf or links[top, FEATURE] != NONE:
        out.told[0] |= CHANGED


@jit
def begin(forest: Forest, rules: Rules, segment: Segment, tree: int, parent: int, side: int, depth: int) -> int:
    """Build the tree of the examples in a segment, below a parent or as the root; return its top."""
    trees = forest.trees
    trees[tree, REBUILDS] += 1
    trees[tree, REBUILT] += segment.sizes[HELD]
    top, made = build(
        forest.criterion,
        forest.nodes,
        segment,
        examples_of(forest),
        forest.words,
        forest.names,
        rules.terms,
        parent,
        side,
        depth,
        trees[tree, MADE],
    )
    trees[tree, MADE] = made
    if parent == NONE:
        trees[tree, ROOT] = top
    return top


@jit
def collect(forest: Forest, segment: Segment, top: int) -> None:
    """Write the examples of a subtree to a segment, and give its nodes back. O(nodes + examples)."""
    links = forest.nodes.links
    held = int64(0)
    todo = top
    links[top, PARENT] = NONE  # from here on the next one to do: nobody asks a node that goes for its parent
    while todo != NONE:
        node = todo
        todo = links[node, PARENT]
        if links[node, FEATURE] != NONE:
            release(forest.names, links[node, FEATURE])
            for side in (LOW, HIGH):
                links[links[node, side], PARENT] = todo
                todo = links[node, side]
        row = links[node, FIRST]
        while row != NONE:
            segment.rows[held] = row
            held += 1
            row = int64(forest.chain[row, AFTER])
        nodes.free(forest.nodes, node)
    segment.sizes[HELD] = held
