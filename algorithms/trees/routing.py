"""From an example to its leaf: one look-up a level, no recursion."""

from __future__ import annotations

from algorithms.core import rows
from algorithms.core.arrays import int64
from algorithms.core.events import Batch
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY, is_number
from algorithms.core.rows import NONE
from algorithms.trees.nodes import FEATURE, KIND, THRESHOLD, Nodes


@inlined
def value_of(batch: Batch, event: int, feature: int) -> float:
    """Return the value of a feature in an example, 0 where it is absent. O(log features of the example)."""
    low = batch.pointer[event]
    high = batch.pointer[event + 1]
    while low < high:
        middle = (low + high) >> 1
        if int64(batch.feature[middle]) < feature:
            low = middle + 1
        else:
            high = middle
    if low < batch.pointer[event + 1] and int64(batch.feature[low]) == feature:
        return batch.value[low]
    return 0.0


@inlined
def branch_of(kind: int, threshold: float, value: float) -> int:
    """Return the branch that a value takes: at most the threshold goes to 0, a category goes its own way."""
    if kind == BINARY:
        return 1 if value != 0.0 else 0
    if is_number(kind):
        return 1 if value > threshold else 0
    return int64(value)


@inlined
def next_on_way(nodes: Nodes, batch: Batch, event: int, node: int) -> int:
    """Return the child of an inner node that an example goes to; there must be one."""
    value = value_of(batch, event, nodes.links[node, FEATURE])
    branch = branch_of(nodes.links[node, KIND], nodes.numbers[node, THRESHOLD], value)
    return rows.find(nodes.rows, node, branch)


@jit
def descend(nodes: Nodes, batch: Batch, event: int, node: int) -> tuple[int, int]:
    """Return the last node on an example's way from `node` down, and the branch that it lacks there.

    The branch is NONE where the node is a leaf, else a category that the node has never seen.
    """
    while nodes.links[node, FEATURE] != NONE:
        value = value_of(batch, event, nodes.links[node, FEATURE])
        branch = branch_of(nodes.links[node, KIND], nodes.numbers[node, THRESHOLD], value)
        child = rows.find(nodes.rows, node, branch)
        if child == NONE:
            return node, branch
        node = child
    return node, int64(NONE)
