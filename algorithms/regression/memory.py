"""A limit of memory: the leaves that promise least are put to sleep, and wake when there is room again.

A leaf promises as much as splits of it could gain at most: the squared deviations of its labels. A leaf that
sleeps forgets what it saw of features: it counts labels, predicts their mean and does not split. When it wakes it
begins anew. Where the leaf that promises most is alone too large, as one that never splits and keeps all values
may become, it begins anew at once.

Coefficients that inner nodes keep for the leaves below go first. Sleepers are chosen only where an example might
not fit into the limit, and then so many that the others need at most half of it: what that costs is paid by all
the examples until it is full again. It happens at an event, never between batches. Of leaves that promise the same
those of lower rows stay awake. Rows follow from the events alone: so batches of any size, and restored pools, give
the same trees. Numbers of keys do not: a key whose event is refused has one until its batch ends. Nor do the rows
of a packed pool: one with a limit is not packed.
"""

from __future__ import annotations

import numpy as np

from algorithms.core.arrays import Float64s, Int8s, Int64s
from algorithms.core.jit import jit
from algorithms.core.rows import EVER, KEY, NEXT, NONE
from algorithms.regression import linear
from algorithms.regression.elements import SIZE
from algorithms.regression.leaves import forget, known_of
from algorithms.regression.linear import MEAN_ALONE
from algorithms.regression.state import (
    FIRST_LABEL,
    MEAN,
    PRIOR_MEAN,
    PRIOR_SQUARES,
    SQUARES,
    Forest,
    Rules,
)
from algorithms.trees.nodes import ASLEEP, FEATURE, OBSERVED, PRIOR, SEEN, WEIGHT
from algorithms.trees.nodes import SQUARES as SQUARED_WEIGHTS

_FEATURE = 104  # bytes of a feature in a leaf: row, hash table, moments, head of an observer
_COEFFICIENT = 40
_ELEMENT = 72
_ALL = 1 << 62

# What becomes of a leaf: as it is, awake or asleep; forgets and sleeps; forgets, wakes and begins anew.
_STAYS, _SLEEPS, _RENEWED = 0, 1, 2


def rows_within(memory: int | None, *, plain: bool, has_models: bool) -> tuple[int, int]:
    """Return how many features and elements fit into so many bytes, half of them for each where not plain."""
    if memory is None:
        return _ALL, _ALL
    size = _FEATURE + _COEFFICIENT * has_models
    if plain:
        return max(memory // size, 1), _ALL
    return max(memory // 2 // size, 1), max(memory // 2 // _ELEMENT, 1)


def sleepers(forest: Forest) -> int:
    """Return how many leaves sleep."""
    return int(np.count_nonzero(forest.nodes.links[_alive(forest), ASLEEP]))


def _alive(forest: Forest) -> Int64s:
    return np.flatnonzero(forest.nodes.rows.cells[: forest.nodes.rows.used[EVER], KEY] != NONE)


def make_room(forest: Forest, rules: Rules, ones: int) -> None:
    """Put leaves to sleep, or wake them, until the others need at most half of the limit.

    The most promising leaf may need more, as long as there is room for an example of `ones` features.
    """
    links = forest.nodes.links
    alive = _alive(forest)
    is_inner = links[alive, FEATURE] != NONE
    leaves = alive[~is_inner]
    most_features, most_elements = max(rules.most_features, 2 * ones), max(rules.most_elements, 2 * ones)
    need, promise = np.zeros((len(leaves), 2), np.int64), np.zeros(len(leaves))
    survey(forest, leaves, need, promise)
    share = (need / [most_features, most_elements]).max(axis=1)
    asleep = links[leaves, ASLEEP] == 1
    share[asleep] = share.sum() / max(1, np.count_nonzero(~asleep)) + 1.0 / most_features  # as the others, about
    order = np.lexsort((leaves, -promise))
    first = order[0]
    is_too_large = (need[first] + ones > [most_features, most_elements]).any()
    if is_too_large:
        share[first] = 0.0
    kept = np.zeros(len(leaves), np.bool_)
    kept[order] = np.cumsum(share[order]) <= 0.5
    kept[first] = True
    becomes = np.full(len(leaves), _STAYS, np.int8)
    becomes[~kept & ~asleep] = _SLEEPS
    becomes[kept & asleep] = _RENEWED
    if is_too_large:
        becomes[first] = _RENEWED
    settle(forest, rules, alive[is_inner], leaves, becomes)


@jit
def survey(forest: Forest, leaves: Int64s, need: Int64s, promise: Float64s) -> None:
    """Tell how many features and elements each leaf has, and what it promises. O(features of all leaves)."""
    for at in range(leaves.size):
        promise[at] = known_of(forest, leaves[at]).squares
        row = forest.nodes.links[leaves[at], OBSERVED]
        while row != NONE:
            need[at, 0] += 1
            need[at, 1] += forest.elements.heads[row, SIZE]
            row = forest.features.rows.cells[row, NEXT]


@jit
def settle(forest: Forest, rules: Rules, inner: Int64s, leaves: Int64s, becomes: Int8s) -> None:
    """Let inner nodes forget their coefficients, and leaves become what is said of each."""
    for at in range(inner.size):
        forget(forest, inner[at])
    for at in range(leaves.size):
        if becomes[at] == _STAYS:
            continue
        forget(forest, leaves[at])
        forest.nodes.links[leaves[at], ASLEEP] = 1
        if becomes[at] == _RENEWED:
            _wake(forest, rules, leaves[at])


@jit
def _wake(forest: Forest, rules: Rules, leaf: int) -> None:
    """Begin a leaf anew: what it saw becomes what it was told."""
    links, numbers = forest.nodes.links, forest.targets.numbers
    known = known_of(forest, leaf)
    links[leaf, PRIOR] = known.weight
    numbers[leaf, PRIOR_MEAN] = known.mean
    numbers[leaf, PRIOR_SQUARES] = known.squares
    links[leaf, WEIGHT] = 0
    links[leaf, SEEN] = 0
    links[leaf, ASLEEP] = 0
    forest.nodes.numbers[leaf, SQUARED_WEIGHTS] = 0.0
    numbers[leaf, MEAN] = 0.0
    numbers[leaf, SQUARES] = 0.0
    numbers[leaf, FIRST_LABEL] = 0.0
    forest.targets.tried[leaf] = 0
    if rules.predict != MEAN_ALONE:
        linear.restart(forest, leaf, known.mean)
