"""All that a pool of trees consists of, as its kernels see it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s
from algorithms.core.names import Names
from algorithms.core.stored import stored
from algorithms.trees.nodes import Nodes
from algorithms.trees.observers import Features
from algorithms.trees.quantised import Quantiser

# Columns of `Forest.trees`.
LEARNED = 0  # weight of all examples learned since the tree was begun, in units; 0: it has learned nothing
EVENTS = 1  # examples learned
ATTEMPTS = 2  # how often all features of a leaf were ranked
SPLITS = 3  # in alternates (alternates.py) they are not counted, nor are their leaves
LEAVES = 4
WAITED = 5  # where that is measured: examples that leaves saw after they could have split
MADE = 6  # nodes ever made
PERIOD = 7  # the period of event time that the last example was in, plus 1; 0: none yet
TREE_COLUMNS = 8


@stored("trees", "alive", "nodes", "features", "policy", None, None)
class Forest(NamedTuple):
    """Any number of trees."""

    trees: Int64s  # int64[trees, TREE_COLUMNS]
    alive: Int64s  # int64[1], how many trees are alive
    nodes: Nodes
    features: Features
    policy: Any  # the state of what decides when a leaf tries to split, see policies.py
    names: Names  # stored by the pool, where features have names
    criterion: Any  # see gain.py


class Rules(NamedTuple):
    """The settings of a pool, as its kernels see them."""

    classes: int
    grace_period: int  # n_min, of IMAC eta: examples until a leaf first tries to split
    check_every: int  # mu of IMAC
    candidates: int  # K of IMAC; 0: a tenth of the features that a leaf saw, from 5 to 10
    bound: float  # R^2 ln(1 / delta) / 2, see bounds.py; with `local_range` ln(1 / delta) / 2
    tie_threshold: float
    predict: int  # a `Predict`
    evaluated: bool  # whether every example is predicted before it is learned
    counted: bool  # whether leaves count in `features`; the exact policy counts in storage of its own
    measured: bool  # whether it is noted when each leaf could first have split
    keeps: bool  # all nodes on the way of an example count it, and may be split anew
    adapts: bool  # subtrees that do badly are replaced by alternates, see alternates.py
    plain: bool  # all features are binary
    inherit: bool  # the bound counts what the split above said that a leaf would have
    local_range: bool  # R is that of the classes that a leaf has seen
    drop_poor: bool  # after an attempt that failed features that are surely not the best are dropped
    quantiser: Quantiser  # of numeric features that are counted in slots
    max_keys: int
    max_depth: int
    snapshot_when: int  # a `When`
    snapshot_argument: int


class Out(NamedTuple):
    """Where the kernels write."""

    status: Int8s  # int8[n]
    node: Int64s  # int64[n], which node is to try to split, while an example is learned; of others anything
    predicted: Int32s  # int32[n], the class predicted, -1: nothing is known or nothing was asked
    loss: Float64s  # float64[n], -log2 of the share given to the true class
    shares: Float64s  # float64[predictions, c], the class weights of each prediction asked for
    leaf: Int64s  # int64[predictions], the number of the node that answered, 0 where nothing is known
    # What follows is the same arrays in every batch, see `scratch`.
    weights: Float64s  # float64[c]
    logs: Int64s  # int64[c]
    counts: Int64s  # int64[1], predictions so far
    told: Int64s  # int64[1], what is to be told of the last event: SPLIT_MADE and so on
    scores: Float64s  # float64[3], of the split: score, second, impurity of the node before


def scratch(classes: int) -> tuple[npt.NDArray[Any], ...]:
    """Return the parts of `Out` that one batch after the other writes: weights, logs, counts, told, scores."""
    return (
        np.zeros(classes),
        np.zeros(classes, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(3),
    )


class Choice(NamedTuple):
    """The best split of a leaf, by un-normalised score: weight times impurity, lower is better."""

    row: int  # where the policy found it; NONE: nothing beats leaving the leaf whole; SHORT, LATER
    score: float
    second: float  # of the second best, the leaf left whole among them
    threshold: float  # of a numeric feature


# Bits of `Out.told`.
SPLIT_MADE, SNAPSHOT_DUE, REPLACED = 1, 2, 4  # the last: an alternate has taken a node's place

SHORT = -2  # the policy's storage must grow first
LATER = -3  # the policy sees without a ranking that no split is due
