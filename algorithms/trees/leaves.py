"""What happens to a leaf: it is begun, counts examples, and is given back with whatever has grown from it."""

from __future__ import annotations

from algorithms.core import rows
from algorithms.core.arrays import int64
from algorithms.core.events import Batch
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.names import release
from algorithms.core.rows import COUNT, NEXT, NONE
from algorithms.trees import nodes, observers, policies
from algorithms.trees.nodes import (
    ALTERNATES,
    ASLEEP,
    BESIDE,
    FEATURE,
    FIRST,
    NUMBER,
    SEEN,
    SQUARES,
    TREE,
    WEIGHT,
    make_leaf,
)
from algorithms.trees.state import LEAVES, MADE, Forest, Rules


@inlined
def begin_leaf(forest: Forest, tree: int, parent: int, branch: int) -> int:
    """Return a new leaf; there must be room."""
    leaf = make_leaf(forest.nodes, tree, parent, branch)
    policies.begin(forest.policy, leaf)
    forest.nodes.links[leaf, NUMBER] = forest.trees[tree, MADE]
    forest.trees[tree, MADE] += 1
    forest.trees[tree, LEAVES] += 1 - forest.nodes.links[leaf, BESIDE]
    return leaf


@inlined
def count(forest: Forest, rules: Rules, batch: Batch, event: int, leaf: int) -> None:
    """Count an example in a leaf. O(features of the example)."""
    k = int64(batch.label[event])
    weight = batch.weight[event]
    examples = weight * PER_UNIT
    forest.nodes.links[leaf, SEEN] += 1
    forest.nodes.links[leaf, WEIGHT] += weight
    forest.nodes.numbers[leaf, SQUARES] += examples * examples
    forest.nodes.rows.cells[leaf, COUNT + k] += weight
    if forest.nodes.links[leaf, ASLEEP]:
        return
    policies.learn(forest.policy, forest, batch, event, leaf)
    if rules.counted:
        for at in range(batch.pointer[event], batch.pointer[event + 1]):
            if batch.value[at] != 0.0:
                observers.count(
                    forest.features,
                    forest.nodes,
                    forest.names,
                    rules.quantiser,
                    leaf,
                    int64(batch.feature[at]),
                    int64(batch.kind[at]),
                    batch.value[at],
                    k,
                    weight,
                )


@inlined
def forget(forest: Forest, node: int) -> None:
    """Give back all that a leaf saw."""
    observers.forget(forest.features, forest.nodes, forest.names, node)
    policies.end(forest.policy, forest, node)


@jit
def _free(forest: Forest, node: int) -> None:
    """Give back a node without children."""
    links = forest.nodes.links
    forget(forest, node)
    if links[node, FEATURE] == NONE:
        forest.trees[links[node, TREE], LEAVES] -= 1 - links[node, BESIDE]
    else:
        release(forest.names, links[node, FEATURE])
    rows.remove(forest.nodes.rows, node)


@jit
def free_below(forest: Forest, top: int) -> None:
    """Give back all below a node, and what grows beside it there: not what grows beside the node itself.

    Children go before parents, each taken from its parent's list on the way down.
    """
    links = forest.nodes.links
    node = top
    while True:
        child = links[node, FIRST]
        if child != NONE:
            links[node, FIRST] = forest.nodes.rows.cells[child, NEXT]
            node = child
            continue
        if node == top:
            return
        if links[node, FEATURE] != NONE:
            child = nodes.alternate_of(forest.nodes, node)
        if child != NONE:
            node = child
            continue
        parent = rows.owner_of(forest.nodes.rows, node)
        if parent == ALTERNATES:
            parent = rows.item_of(forest.nodes.rows, node)
        _free(forest, node)
        node = parent


@jit
def free_all(forest: Forest, top: int) -> None:
    """Give back a node and all below, see `free_below`."""
    free_below(forest, top)
    _free(forest, top)
