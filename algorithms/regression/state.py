"""All that a pool of regression trees consists of, as its kernels see it.

Nodes, rows under (leaf, feature) and routing are those of the classification trees, without classes; what is known
of labels lies beside.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Float64s, Int8s, Int64s, extended
from algorithms.core.names import NO_NAMES, Names
from algorithms.core.rows import Rows
from algorithms.core.stored import stored
from algorithms.regression import elements as storage
from algorithms.regression.elements import Elements
from algorithms.trees import nodes
from algorithms.trees.nodes import Nodes
from algorithms.trees.state import TREE_COLUMNS

# Columns of `Targets.numbers`.
MEAN, SQUARES = 0, 1  # of the labels seen since the node was made, less its first: see moments.py
FIRST_LABEL = 2
PRIOR_MEAN, PRIOR_SQUARES = 3, 4  # of the labels that the split above said the node would have

# Columns of `Models.leaves`.
OFFSET = 0  # the tree's first label, which the intercept leaves out
INTERCEPT = 1
UNCERTAINTY_OF_INTERCEPT = 2
LOW, HIGH = 3, 4  # the labels that the model has seen lie between them
ERROR_OF_MEAN, ERROR_OF_LINEAR = 5, 6  # squared, those of late
_OF_LEAF = 7

# Columns of `Models.features`.
COEFFICIENT = 0  # of the value less its mean, in standard deviations; of a binary feature as it is
UNCERTAINTY = 1
VALUES, CENTER, SPREAD = 2, 3, 4  # of a numeric feature how many there were, their mean, squared deviations
_OF_FEATURE = 5

# Columns of `Intervals.leaves`, both faded, see intervals.py.
RESIDUALS, EXAMPLES = 0, 1  # squared, those of late; how many
_OF_INTERVAL = 2

# Columns of `Intervals.trees`.
REACH = 0  # how many residuals an interval reaches


@stored("numbers", "tried")
class Targets(NamedTuple):
    """What lies beside nodes."""

    numbers: Float64s  # float64[nodes, 5]
    tried: Int64s  # int64[nodes], how many examples the leaf had seen when it last tried to split


@stored("rows", "moments", "kind")
class Features(NamedTuple):
    """The features that leaves saw."""

    rows: Rows  # (leaf, feature): weight where it is present
    moments: Float64s  # float64[capacity, 2], MEAN and SQUARES of the labels where it is present
    kind: Int64s  # int64[capacity], a `Kind`


@stored("leaves", "features")
class Models(NamedTuple):
    """The linear models of leaves, see linear.py; without columns where leaves predict means alone."""

    leaves: Float64s  # float64[nodes, 7]
    features: Float64s  # float64[capacity of `Features`, 5]


@stored("leaves", "trees")
class Intervals(NamedTuple):
    """How far predictions are off, see intervals.py; without columns where nobody asks for intervals."""

    leaves: Float64s  # float64[nodes, 2]
    trees: Float64s  # float64[trees, 1]


@stored("trees", "alive", "nodes", "targets", "features", "elements", "models", "intervals", None, None)
class Forest(NamedTuple):
    """Any number of trees."""

    trees: Int64s  # int64[trees, TREE_COLUMNS], see trees/state.py
    alive: Int64s  # int64[1], how many trees are alive
    nodes: Nodes  # of no classes
    targets: Targets
    features: Features
    elements: Elements  # a numeric feature's observer is its row in `features`
    models: Models
    intervals: Intervals
    names: Names  # stored by the pool, where features have names
    observer: Any  # the settings of the observers, see observers.py


class Rules(NamedTuple):
    """The settings of a pool, as its kernels see them."""

    grace_period: int  # examples until a leaf tries to split
    bound: float  # ln(1 / delta) / 2, see `attempt.py`
    tie_threshold: float
    max_keys: int
    max_depth: int
    predict: int  # a `Predict`, see linear.py
    interval: float  # the share of labels that are to be within their interval, 0: there are none
    first_reach: float
    most_features: int  # that leaves keep at once, and
    most_elements: int  # of their observers: where an example might need more, see memory.py
    snapshot_when: int  # a `When`
    snapshot_argument: int


class Out(NamedTuple):
    """Where the kernels write."""

    status: Int8s  # int8[n]
    node: Int64s  # int64[n], which node the example came to
    predicted: Float64s  # float64[n], the label predicted, nan: nothing is known or nothing was asked
    leaf: Int64s  # int64[n], the number of the node that predicted it
    margin: Float64s  # float64[n], half the width of its interval, nan: there is none; [0] where nobody asks
    known: Float64s  # float64[n, 2], of predictions asked for: weight in examples and M_2 of the leaf's labels
    scores: Float64s  # float64[2], of the last split: merit and second
    told: Int64s  # int64[1], what is to be told of the last event: SPLIT_MADE, SNAPSHOT_DUE of trees/state.py


def make(observer: Any, *, has_models: bool, has_intervals: bool) -> Forest:
    """Return a pool without trees."""
    return Forest(
        trees=np.zeros((1, TREE_COLUMNS), np.int64),
        nodes=nodes.make(8, 0),
        targets=Targets(np.zeros((8, 5)), np.zeros(8, np.int64)),
        features=Features(rows.make(16, 1), np.zeros((16, 2)), np.zeros(16, np.int64)),
        elements=storage.make(16, 16),
        models=Models(np.zeros((8, has_models * _OF_LEAF)), np.zeros((16, has_models * _OF_FEATURE))),
        intervals=Intervals(np.zeros((8, has_intervals * _OF_INTERVAL)), np.zeros((1, int(has_intervals)))),
        names=NO_NAMES,
        observer=observer,
        alive=np.zeros(1, np.int64),
    )


def with_trees(forest: Forest, trees: int) -> Forest:
    """Return the same pool with room for more trees."""
    return forest._replace(
        trees=extended(forest.trees, trees),
        intervals=forest.intervals._replace(trees=extended(forest.intervals.trees, trees)),
    )


def with_nodes(forest: Forest, capacity: int) -> Forest:
    """Return the same pool with room for more nodes."""
    targets = forest.targets
    return forest._replace(
        nodes=nodes.grown(forest.nodes, capacity),
        targets=Targets(extended(targets.numbers, capacity), extended(targets.tried, capacity)),
        models=forest.models._replace(leaves=extended(forest.models.leaves, capacity)),
        intervals=forest.intervals._replace(leaves=extended(forest.intervals.leaves, capacity)),
    )


def with_features(forest: Forest, capacity: int) -> Forest:
    """Return the same pool with room for more features."""
    features = forest.features
    return forest._replace(
        features=Features(
            rows.grown(features.rows, capacity),
            extended(features.moments, capacity),
            extended(features.kind, capacity),
        ),
        elements=storage.with_observers(forest.elements, capacity),
        models=forest.models._replace(features=extended(forest.models.features, capacity)),
    )


def with_elements(forest: Forest, capacity: int) -> Forest:
    """Return the same pool with room for more elements of observers."""
    return forest._replace(elements=storage.grown(forest.elements, capacity))
