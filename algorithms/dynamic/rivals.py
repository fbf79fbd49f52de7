"""The next best splits of a large node, each with its class weights: what is known of them needs no floor.

::

    floor 61.2    own: feature 7, score 41.0    rivals: 12 at 44.9, 3 at 45.0, 31 at 52.7, ..

A floor sinks with every delete, the score of a rival is what it is. So a node with rivals is not scanned until the
floor has sunk to its own score from that of the last rival, which may be far above that of the second best. And
features that tie with its own, as they say the same of all examples, cost it nothing.

Where all features of a node's examples are binary, and few enough, all of them are its rivals, also such as every
example has. Then the floor is infinity: there is nothing else, and a new feature becomes a rival when it comes.

Rivals are features that some example of the node has. One that none has any more is dropped, since it parts
nothing; so no rival keeps a feature that is forgotten. A block lives as long as its node, and where no block
is free a node goes without: the trees are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import free_list
from algorithms.core.arrays import Int64s, extended, int64
from algorithms.core.free_list import NONE, USED
from algorithms.core.jit import inlined, jit
from algorithms.core.stored import stored
from algorithms.dynamic.segment import MOST_KEPT

WIDTH = MOST_KEPT - 1  # rivals in a block
WORTHWHILE = 32  # examples; a smaller node is scanned in less time than rivals take
FEW = 4  # examples; so is one of so few that has few features
NODES = 8  # for so many nodes there is a block

# Columns of `Rivals.cells`.
FEATURE = 0
WEIGHTS = 1  # the class weights of those without the feature, c of them

# Columns of `Rivals.heads`.
NEXT, SIZE = 0, 1  # in the free list; how many rivals


@stored("heads", "cells", "used")
class Rivals(NamedTuple):
    """Blocks of rivals."""

    heads: Int64s  # int64[blocks, 2]
    cells: Int64s  # int64[blocks * WIDTH, 1 + c]
    used: Int64s  # int64[3], a free list


def make(nodes: int, classes: int) -> Rivals:
    """Return storage beside so many nodes; of no nodes: none, and it never grows."""
    blocks = _blocks(nodes)
    return Rivals(
        np.zeros((blocks, 2), np.int64),
        np.zeros((blocks * WIDTH, WEIGHTS + classes), np.int64),
        np.array([0, 0, NONE], np.int64),
    )


def grown(rivals: Rivals, nodes: int) -> Rivals:
    """Return the same storage beside more nodes."""
    blocks = _blocks(nodes) if rivals.heads.size else 0
    return Rivals(extended(rivals.heads, blocks), extended(rivals.cells, blocks * WIDTH), rivals.used)


def _blocks(nodes: int) -> int:
    return -(-nodes // NODES)


@inlined
def take(rivals: Rivals) -> int:
    """Return an empty block, or NONE."""
    if rivals.used[USED] == rivals.heads.shape[0]:
        return int64(NONE)
    return free_list.take(rivals.used, rivals.heads[:, NEXT])


@jit
def give(rivals: Rivals, block: int) -> None:
    """Give back a block; what it held is wiped."""
    for at in range(block * WIDTH, block * WIDTH + rivals.heads[block, SIZE]):
        _wipe(rivals, at)
    rivals.heads[block, SIZE] = 0
    free_list.give(rivals.used, rivals.heads[:, NEXT], block)


@inlined
def _wipe(rivals: Rivals, at: int) -> None:
    for column in range(rivals.cells.shape[1]):
        rivals.cells[at, column] = 0


@inlined
def drop(rivals: Rivals, block: int, at: int) -> None:
    """Drop a rival; the last takes its place."""
    rivals.heads[block, SIZE] -= 1
    last = block * WIDTH + rivals.heads[block, SIZE]
    for column in range(rivals.cells.shape[1]):
        rivals.cells[at, column] = rivals.cells[last, column]
    _wipe(rivals, last)


def check(rivals: Rivals, blocks: list[int]) -> None:
    """Raise AssertionError unless these blocks are in use, and nothing is left in others. O(everything)."""
    free_list.check(rivals.used, rivals.heads[:, NEXT], blocks)
    is_used = np.zeros(len(rivals.heads), np.bool_)
    is_used[blocks] = True
    assert not rivals.heads[~is_used, SIZE].any()
    cells = rivals.cells.reshape(len(rivals.heads), WIDTH, rivals.cells.shape[1])
    for block in range(len(rivals.heads)):
        assert not cells[block, rivals.heads[block, SIZE] :].any(), "a rival that is gone"
