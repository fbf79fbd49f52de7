"""What happens to a leaf: it is begun, counts examples, predicts, and is given back."""

from __future__ import annotations

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import int64
from algorithms.core.events import Batch
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY, NOMINAL
from algorithms.core.names import refer, release
from algorithms.core.rows import COUNT, NEXT, NONE
from algorithms.regression import categories, linear, observers
from algorithms.regression import elements as storage
from algorithms.regression.linear import MEAN_ALONE, Lesson, Said
from algorithms.regression.moments import Moments, learned, merged
from algorithms.regression.state import (
    FIRST_LABEL,
    MEAN,
    PRIOR_MEAN,
    PRIOR_SQUARES,
    SQUARES,
    Forest,
    Rules,
)
from algorithms.trees import nodes
from algorithms.trees.nodes import ASLEEP, FEATURE, FIRST, NUMBER, OBSERVED, PRIOR, SEEN, TREE, WEIGHT
from algorithms.trees.nodes import SQUARES as SQUARED_WEIGHTS
from algorithms.trees.state import LEAVES, MADE


@jit
def begin(forest: Forest, tree: int, parent: int, branch: int, prior: Moments) -> int:
    """Return a new leaf of which no more is known than what the split above said; there must be room."""
    leaf = nodes.make_leaf(forest.nodes, tree, parent, branch)
    forest.nodes.links[leaf, NUMBER] = forest.trees[tree, MADE]
    forest.nodes.links[leaf, PRIOR] = prior.weight
    forest.trees[tree, MADE] += 1
    forest.trees[tree, LEAVES] += 1
    numbers = forest.targets.numbers
    for column in range(numbers.shape[1]):
        numbers[leaf, column] = 0.0
    numbers[leaf, PRIOR_MEAN] = prior.mean
    numbers[leaf, PRIOR_SQUARES] = prior.squares
    forest.targets.tried[leaf] = 0
    return leaf


@inlined
def seen_by(forest: Forest, node: int) -> Moments:
    """Return the moments of the labels that a node saw, less its first."""
    numbers = forest.targets.numbers
    return Moments(forest.nodes.links[node, WEIGHT], numbers[node, MEAN], numbers[node, SQUARES])


@inlined
def present_in(forest: Forest, row: int) -> Moments:
    """Return the moments of the labels, less its leaf's first, of the examples that have a feature."""
    features = forest.features
    return Moments(features.rows.cells[row, COUNT], features.moments[row, MEAN], features.moments[row, SQUARES])


@inlined
def known_of(forest: Forest, node: int) -> Moments:
    """Return the moments of all that is known of a node's labels: what it was said to have, and what it saw."""
    numbers = forest.targets.numbers
    prior = Moments(forest.nodes.links[node, PRIOR], numbers[node, PRIOR_MEAN], numbers[node, PRIOR_SQUARES])
    own = seen_by(forest, node)
    return merged(prior, Moments(own.weight, numbers[node, FIRST_LABEL] + own.mean, own.squares))


@inlined
def mean_of(forest: Forest, node: int) -> float:
    """Return the mean of what is known of a node's labels; nan where nothing is."""
    known = known_of(forest, node)
    return known.mean if known.weight > 0 else np.nan


@jit
def _begin_feature(forest: Forest, rules: Rules, leaf: int, feature: int, kind: int) -> int:
    above = linear.find(forest, leaf, feature) if rules.predict != MEAN_ALONE else int64(NONE)
    row = rows.create(forest.features.rows, leaf, feature, forest.nodes.links[leaf, OBSERVED])
    forest.nodes.links[leaf, OBSERVED] = row
    forest.features.kind[row] = kind
    forest.features.moments[row, MEAN] = 0.0
    forest.features.moments[row, SQUARES] = 0.0
    observers.begin(forest.observer, forest.elements, row)
    if rules.predict != MEAN_ALONE:
        linear.begin_feature(forest, row, above)
    refer(forest.names, feature)
    return row


@jit
def count(forest: Forest, rules: Rules, batch: Batch, event: int, leaf: int, said: Said) -> None:
    """Count an example in a leaf, whose model has said something of it; there must be room.

    One that sleeps counts labels alone. O(features of the example), those that are new to the leaf O(depth) each.
    """
    weight = batch.weight[event]
    links, numbers = forest.nodes.links, forest.targets.numbers
    if links[leaf, SEEN] == 0:
        numbers[leaf, FIRST_LABEL] = batch.label[event]
    y = batch.label[event] - numbers[leaf, FIRST_LABEL]
    own = learned(seen_by(forest, leaf), y, weight)
    links[leaf, WEIGHT] = own.weight
    numbers[leaf, MEAN] = own.mean
    numbers[leaf, SQUARES] = own.squares
    links[leaf, SEEN] += 1
    forest.nodes.numbers[leaf, SQUARED_WEIGHTS] += weight * PER_UNIT * (weight * PER_UNIT)
    if links[leaf, ASLEEP] == 1:
        return
    lesson = Lesson(0.0, 1.0)
    if rules.predict != MEAN_ALONE:
        lesson = linear.learn(forest, leaf, batch.label[event], weight, said)
    features = forest.features
    for at in range(batch.pointer[event], batch.pointer[event + 1]):
        if batch.value[at] == 0.0:
            continue
        feature, kind = int64(batch.feature[at]), int64(batch.kind[at])
        row = rows.find(features.rows, leaf, feature)
        if row == NONE:
            row = _begin_feature(forest, rules, leaf, feature, kind)
        present = learned(present_in(forest, row), y, weight)
        features.rows.cells[row, COUNT] = present.weight
        features.moments[row, MEAN] = present.mean
        features.moments[row, SQUARES] = present.squares
        if kind == NOMINAL:
            categories.count(forest.elements, row, int64(batch.value[at]), y, weight)
        elif kind != BINARY:
            observers.observe(forest.observer, forest.elements, row, batch.value[at], y, weight)
        if rules.predict != MEAN_ALONE:
            linear.learn_feature(forest, row, kind, batch.value[at], lesson)


@jit
def retire(forest: Forest, leaf: int) -> None:
    """Give back all that the observers of a leaf saw; its coefficients stay for the leaves below."""
    row = forest.nodes.links[leaf, OBSERVED]
    while row != NONE:
        storage.forget(forest.elements, row)
        row = forest.features.rows.cells[row, NEXT]


@jit
def forget(forest: Forest, leaf: int) -> None:
    """Give back all that a leaf saw of features. O(features of the leaf, and elements)."""
    row = forest.nodes.links[leaf, OBSERVED]
    while row != NONE:
        storage.forget(forest.elements, row)
        release(forest.names, rows.item_of(forest.features.rows, row))
        row = rows.remove(forest.features.rows, row)
    forest.nodes.links[leaf, OBSERVED] = NONE


@jit
def free_all(forest: Forest, top: int) -> None:
    """Give back a root and all below, children before parents, each taken from its parent's list on the way."""
    links = forest.nodes.links
    node = top
    while True:
        child = links[node, FIRST]
        if child != NONE:
            links[node, FIRST] = forest.nodes.rows.cells[child, NEXT]
            node = child
            continue
        forget(forest, node)
        if links[node, FEATURE] == NONE:
            forest.trees[links[node, TREE], LEAVES] -= 1
        else:
            release(forest.names, links[node, FEATURE])
        parent = rows.owner_of(forest.nodes.rows, node)
        rows.remove(forest.nodes.rows, node)
        if node == top:
            return
        node = parent
