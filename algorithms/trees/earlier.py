"""What earlier versions kept otherwise: their checkpoints are taken over all the same."""

from __future__ import annotations

import numpy as np

from algorithms.core.arrays import Int64s
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.rows import KEY, NONE
from algorithms.trees.nodes import PRIOR, ROOTS, TREE, WEIGHT
from algorithms.trees.state import LEARNED

_ALIVE = 1  # what earlier versions had in the column of every tree that has learned something


def with_learned(trees: Int64s, cells: Int64s, links: Int64s, keeps: bool) -> Int64s:
    """Return the heads of trees with what each has learned, which earlier versions did not note.

    It is what the nodes saw, alternates among them; where all on an example's way see it (`keeps`), what the root
    saw. Where an alternate took a node's place or a leaf slept, more is not known than what nodes hold. A tree
    that has learned one unit looks like one of earlier, and its one node says the same.
    """
    marked = trees[:, LEARNED] == _ALIVE
    if not marked.any():
        return trees
    learned = [0] * len(trees)  # Python's ints: what earlier versions let nodes sum up to has no bound
    held = learned.copy()
    used = np.flatnonzero((cells[:, KEY] != NONE) & marked[links[: len(cells), TREE]])
    counts = (cells[used, KEY] >> 32 == ROOTS) | (not keeps)
    columns = (links[used, TREE], links[used, WEIGHT], links[used, PRIOR], counts)
    for tree, weight, prior, counted in zip(*(column.tolist() for column in columns), strict=True):
        learned[tree] += weight % (1 << 64) if counted else 0  # of a root that had passed 2^63, too
        held[tree] = max(held[tree], weight + prior)
    restored = trees.copy()
    for tree in np.flatnonzero(marked).tolist():
        restored[tree, LEARNED] = min(max(learned[tree], held[tree]), MAX_TOTAL - 1)
    return restored
