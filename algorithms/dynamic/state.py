"""All that a pool of trees that forget consists of, as its kernels see it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s
from algorithms.core.example_store import ExampleStore
from algorithms.core.jit import inlined
from algorithms.core.names import Names
from algorithms.core.rows import Rows
from algorithms.core.stored import stored
from algorithms.dynamic.aside import Aside
from algorithms.dynamic.examples import Examples
from algorithms.dynamic.nodes import Nodes
from algorithms.dynamic.terms import Terms

Numbers = npt.NDArray[Any]

# Columns of `Forest.trees`.
ALIVE = 0  # 1 once the tree has learned something, until it is dropped; all else counts only then
EVENTS = 1  # inserts and deletes applied
ROOT = 2
ENTRIES = 3  # of the live examples: features that are not 0
MADE = 4  # nodes ever made
REBUILDS = 5  # calls of BUILD, the first included
REBUILT = 6  # examples in them
PERIOD = 7  # the period of event time that the last event was in, plus 1; 0: none yet
TREE_COLUMNS = 8


@stored("trees", "alive", "nodes", "ledger", "values", "chain", "words", None, None, None, None)
class Forest(NamedTuple):
    """Any number of trees, and what they were learned from."""

    trees: Int64s  # int64[trees, TREE_COLUMNS]
    alive: Int64s  # int64[1], how many trees are alive
    nodes: Nodes
    store: ExampleStore  # live examples, an index for each tree
    values: Float64s  # float64[...] beside the store's features; of no size where all are binary
    chain: Int32s  # int32[rows of the example store, 2], the lists of the leaves
    words: Rows  # the features of live examples, see vocabulary.py
    slack: Any  # a Slack, which the pool stores, or NO_SLACK: kernels are compiled for each
    aside: Aside  # what is built aside, which the pool stores where there may be any
    names: Names  # stored by the pool, where features have names
    criterion: Any  # a Criterion of classes, or the Variance of numbers, see labels.py


class Rules(NamedTuple):
    """The settings of a pool, as its kernels see them."""

    epsilon: float  # of the policy EPSILON
    terms: Terms
    max_work: int  # entries that an event may touch of what is built aside; 0: nothing is
    classes: int  # of numbers how many sums a feature has, see variance.py
    window: int  # 0: no window of a number of examples
    span: int  # in ms, 0: no window by time
    on_duplicate: int
    evaluated: bool  # whether every example is predicted before it is learned
    max_keys: int
    max_live_ids: int
    snapshot_when: int  # a `When`
    snapshot_argument: int


class Out(NamedTuple):
    """Where the kernels write."""

    status: Int8s  # int8[n]
    # int32[n], the class predicted, -1: nothing is known or nothing was asked; of numbers float64[n], the mean in
    # units or nan
    predicted: Numbers
    loss: Float64s  # float64[n], -log2 of the share given to the true class
    rebuilt: Int64s  # int64[n], examples that BUILD was called for
    scanned: Int64s  # int64[n], examples of nodes that were scanned, whether or not they were then rebuilt
    # float64[predictions, c], the class weights of each prediction asked for; of numbers int64[predictions, 4],
    # the sums
    shares: Numbers
    leaf: Int64s  # int64[predictions], the number of the node that answered, 0 where nothing is known
    weights: Numbers  # float64[c] or int64[4], scratch
    counts: Int64s  # int64[1], predictions so far
    told: Int64s  # int64[1], what is to be told of the last event: CHANGED, SNAPSHOT_DUE


# Bits of `Out.told`.
CHANGED, SNAPSHOT_DUE = 1, 2


@inlined
def examples_of(forest: Forest) -> Examples:
    """Return the live examples as BUILD sees them."""
    return Examples(forest.store.rows, forest.store.features, forest.values, forest.chain)
