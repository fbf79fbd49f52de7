"""A limit of memory: the leaves that promise least are put to sleep, and wake when there is room again.

A leaf promises as much as splits of it could gain at most: the weight that its majority class gets wrong. A leaf
that sleeps forgets what it saw and counts classes only, so it predicts its majority and does not split. When it
wakes it begins anew.

Sleepers are chosen only where an example would not fit into the limit, and then so many that the others need at
most half of it: what that costs is paid by all the examples until it is full again. It happens at an event, never
between batches, so that batches of any size give the same trees.
"""

from __future__ import annotations

import numpy as np

from algorithms.core.arrays import Int64s
from algorithms.core.jit import jit
from algorithms.core.rows import COUNT, EVER, KEY, NONE, Rows
from algorithms.trees import observers, policies
from algorithms.trees.nodes import ASLEEP, BAYES, FEATURE, MAJORITY, PRIOR, SEEN, SQUARES, WEIGHT, Nodes
from algorithms.trees.state import Forest

_HASH = 24  # bytes of the hash table for a row, at most
_QUANTISED = 48  # bytes beside a slot, and beside a quantised feature
_INDEXED = 200  # bytes of a slot of the exact index with its share of boxes, at most


def rows_within(memory: int, classes: int, plain: bool, counted: bool, indexed: bool, slots: bool) -> int:
    """Return how many features fit into so many bytes, each with a value and a Gaussian where not plain.

    `slots` says that a value may be a slot, and a feature quantised.
    """
    row = 8 * (COUNT + classes) + _HASH
    size = (row + 32) * counted + _INDEXED * indexed
    if not plain:
        size += row + 32 * classes + 4 + _QUANTISED * slots
    return memory // size


def _owners(state: Rows) -> Int64s:
    keys = state.cells[: state.used[EVER], KEY]
    return keys[keys != NONE] >> 32


def sleepers(nodes: Nodes) -> int:
    """Return how many leaves sleep."""
    used = nodes.rows.cells[: nodes.rows.used[EVER], KEY] != NONE
    return int(np.count_nonzero(used & (nodes.links[: len(used), ASLEEP] > 0)))


def make_room(forest: Forest, limit: int, ones: int) -> None:
    """Put leaves to sleep, or wake them, until the rows of the others fill at most half of `limit`.

    The most promising leaf may need more, as long as `ones` rows are left.
    """
    links, features = forest.nodes.links, forest.features
    used = forest.nodes.rows.cells[: forest.nodes.rows.used[EVER], KEY] != NONE
    leaves = np.flatnonzero(used & (links[: len(used), FEATURE] == NONE))
    of_values = _owners(features.values)
    owners = [
        _owners(features.rows),
        features.rows.cells[of_values, KEY] >> 32,
        policies.keys(forest.policy) >> 32,
    ]
    cost = np.bincount(np.concatenate(owners), minlength=len(links))[leaves]
    asleep = links[leaves, ASLEEP] > 0
    cost[asleep] = 1 + cost.sum() // max(1, int((~asleep).sum()))  # as much as the others on average
    weight = forest.nodes.prior[leaves] + forest.nodes.rows.cells[leaves, COUNT:]
    promise = weight.sum(axis=1) - weight.max(axis=1)
    order = np.lexsort((leaves, -promise))
    so_far = np.cumsum(cost[order])
    kept = (so_far <= limit // 2) | ((np.arange(len(order)) == 0) & (so_far <= limit - ones))
    for leaf, keep in zip(leaves[order].tolist(), kept.tolist(), strict=True):
        if keep and links[leaf, ASLEEP]:
            _wake(forest, leaf)
        elif not keep and not links[leaf, ASLEEP]:
            _sleep(forest, leaf)


@jit
def _sleep(forest: Forest, leaf: int) -> None:
    observers.forget(forest.features, forest.nodes, forest.names, leaf)
    policies.end(forest.policy, forest, leaf)
    forest.nodes.links[leaf, ASLEEP] = 1


@jit
def _wake(forest: Forest, leaf: int) -> None:
    """Begin a leaf anew: what it saw becomes what it was told."""
    links = forest.nodes.links
    for k in range(forest.nodes.prior.shape[1]):
        forest.nodes.prior[leaf, k] += forest.nodes.rows.cells[leaf, COUNT + k]
        forest.nodes.rows.cells[leaf, COUNT + k] = 0
    links[leaf, PRIOR] += links[leaf, WEIGHT]
    links[leaf, WEIGHT] = 0
    links[leaf, SEEN] = 0
    links[leaf, MAJORITY] = 0
    links[leaf, BAYES] = 0
    links[leaf, ASLEEP] = 0
    forest.nodes.numbers[leaf, SQUARES] = 0.0
    policies.begin(forest.policy, leaf)
