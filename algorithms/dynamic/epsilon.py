"""The policy EPSILON, algorithm 1 of paper 002: a subtree is rebuilt once it has seen enough edits.

::

    root 1000/90 -> 120/13 -> 30/4 -> leaf      s(v)/c(v): examples when built, inserts and deletes since

With epsilon = 0.1 the second node is the first that is due (13 > 12). s^ = 128, the root has more, so the second
node itself is rebuilt; had the root been built from 128 examples or fewer, it would be.
"""

from __future__ import annotations

from algorithms.core.arrays import int64
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.jit import inlined, jit
from algorithms.dynamic.nodes import BUILT, BUILT_WEIGHT, EDITED_WEIGHT, EDITS, NONE, PARENT
from algorithms.dynamic.state import Forest


@inlined
def note(forest: Forest, node: int, weight: int) -> None:
    """Count an edit of a node."""
    links = forest.nodes.links
    links[node, EDITS] += 1
    # With a large epsilon c(v) could pass what 64 bits hold: it stops before, the count of examples goes on.
    links[node, EDITED_WEIGHT] = min(links[node, EDITED_WEIGHT], MAX_TOTAL) + weight


@inlined
def is_due(forest: Forest, epsilon: float, node: int) -> bool:
    """Return whether a node has seen enough: c(v) > epsilon s(v), in examples or in weight.

    Impurities and gains change with weight, k with examples: for each the proof needs its own count.
    """
    links = forest.nodes.links
    examples = float(links[node, EDITS]) > epsilon * float(links[node, BUILT])
    return examples or float(links[node, EDITED_WEIGHT]) > epsilon * float(links[node, BUILT_WEIGHT])


@jit
def supertree(forest: Forest, node: int) -> int:
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
