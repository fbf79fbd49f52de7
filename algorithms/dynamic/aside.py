"""Subtrees that are built anew aside of the ones that answer, some of them with each event: what is kept of it.

A rebuild that is too much for one event goes its way through these stages (parts.py), from the whole down::

    GATHERING   examples move from the lists of the old leaves to that of one new leaf
    NEXT        the next leaf that waits: it stays one, or BUILD makes all below it at once, or
    SCANNING    its examples are counted, one by one, and their values are put in order (values.py)
    WIPING      its split is chosen, counts and values are no longer needed
    PARTING     its examples move to the lists of its children, which wait
    FREEING     no leaf waits: the new subtree is in the place of the old one, whose nodes are given back

An example is in one list at any time. All class weights are right at once, so a new node's split is the one that
BUILD would choose of the examples that are live when the node has been scanned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Int8s, Int64s, extended
from algorithms.core.jit import inlined
from algorithms.core.rows import COUNT, Rows
from algorithms.core.stored import stored
from algorithms.dynamic import values
from algorithms.dynamic.values import Values

# Columns of `Aside.heads`; while a tree is IDLE all of them are 0.
STAGE = 0
OLD, NEW = 1, 2  # the tops of both subtrees; while FREEING, OLD is the first node to give back
NODE = 3  # at work: the old leaf that is emptied, or the new node that is scanned and parted; else NONE
CURSOR = 4  # the next example to be counted, or NONE
WAITING = 5  # the first leaf that waits, linked through LOW, or NONE
FOUND = 6  # the first of the rows of `seen`, or NONE
TO_WIPE = 7  # while WIPING: how many features and leaves it takes work for, of which some may be wiped already;
# while SCANNING: 2 for each binary feature, 4 for each numeric one, and 1 for each node of its values
_COLUMNS = 8

IDLE, GATHERING, NEXT, SCANNING, WIPING, PARTING, FREEING = range(7)

# Columns of `Aside.seen`: how many examples that were counted have the feature, the row before in the chain plus 1
# (0: none), and the class weights of these examples.
HOLDERS, BEFORE, WEIGHTS = COUNT, COUNT + 1, COUNT + 2

# The last two columns where features may be numeric: the tops of the tries of its values, plus 1; 0: it has none.
NEGATIVE, POSITIVE = -2, -1


@stored("heads", "counted", "seen", None)
class Aside(NamedTuple):
    """Of each tree, the subtree that is built aside."""

    heads: Int64s  # int64[trees, 8]; of no size where nothing bounds the work of an event
    counted: Int8s  # int8[rows of the example store], 1: it is in `seen`, if the node it is in is being scanned
    seen: Rows  # under (tree, feature), of no feature that is forgotten
    values: Values  # of numeric features, which the pool stores where there may be any; else of no size


def make(trees: int, examples: int, classes: int, *, is_bounded: bool, is_plain: bool) -> Aside:
    """Return storage for so many trees and examples, of no size where nothing is built aside.

    `is_plain` says that all features are binary.
    """
    return Aside(
        np.zeros((trees if is_bounded else 0, _COLUMNS), np.int64),
        np.zeros(examples if is_bounded else 0, np.int8),
        rows.make(16 if is_bounded else 1, 2 + classes + (0 if is_plain else 2)),
        values.make(16 if is_bounded and not is_plain else 0, classes),
    )


def is_bounded(aside: Aside) -> bool:
    """Return whether subtrees are built aside."""
    return len(aside.heads) > 0


def with_trees(aside: Aside, trees: int) -> Aside:
    """Return the same storage with room for more trees."""
    return aside._replace(heads=extended(aside.heads, trees)) if is_bounded(aside) else aside


def with_examples(aside: Aside, examples: int) -> Aside:
    """Return the same storage with room for more examples."""
    return aside._replace(counted=extended(aside.counted, examples)) if is_bounded(aside) else aside


def with_features(aside: Aside, more: int) -> Aside:
    """Return the same storage with room to count so many more features."""
    wanted = int(aside.seen.used[rows.USED]) + more
    return aside._replace(seen=rows.grown(aside.seen, 2 * wanted))


def with_values(aside: Aside) -> Aside:
    """Return the same storage with room for twice as many values."""
    return aside._replace(values=values.grown(aside.values))


@inlined
def has_values(aside: Aside) -> bool:
    """Return whether features may be numeric."""
    return aside.values.cells.shape[0] > 0


@inlined
def is_numeric(aside: Aside, at: int) -> bool:
    """Return whether the feature of a row of `seen` is numeric, while none of its values has been wiped."""
    return has_values(aside) and aside.seen.cells[at, NEGATIVE] + aside.seen.cells[at, POSITIVE] > 0
