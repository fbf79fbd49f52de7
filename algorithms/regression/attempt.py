"""An attempt to split: the best cut of each feature of a leaf, and whether the best of them is sure enough.

As FIMT does it, in paper 004's words: merits have no range, but the ratio of the second best to the best lies in
[0, 1], so the Hoeffding bound (R = 1) is for that ratio. The best is taken where second / best < 1 - epsilon, or
where epsilon < tau. To leave the leaf whole is a split too, of merit 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import int64
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import jit
from algorithms.core.kinds import BINARY, NOMINAL
from algorithms.core.names import precedes
from algorithms.core.rows import NEXT, NONE
from algorithms.regression import categories, observers
from algorithms.regression.leaves import present_in, seen_by
from algorithms.regression.moments import nothing, reduction, unmerged, variance
from algorithms.regression.observers import Cut
from algorithms.regression.state import Forest, Rules
from algorithms.trees.bounds import epsilon, examples
from algorithms.trees.nodes import OBSERVED, SEEN

NOISE = 2.0**-30  # of the leaf's variance: what rounding may feign, and no example could tell from nothing


class Choice(NamedTuple):
    """The best split of a leaf."""

    row: int  # in `Features`; NONE: nothing is better than to leave the leaf whole
    cut: Cut
    second: float  # the merit of the second best feature, at least 0


@jit
def _cut(forest: Forest, leaf: int, row: int, one: float) -> Cut:
    """Return the best cut of a feature. What is absent is what the leaf saw less what is present.

    That of a nominal one has a branch for each category, and tells what is absent alone.
    """
    whole, present = seen_by(forest, leaf), present_in(forest, row)
    absent = unmerged(whole, present)
    if forest.features.kind[row] == NOMINAL:
        return Cut(categories.merit(forest.elements, row, whole, absent, one), 0.0, absent, nothing())
    if forest.features.kind[row] != BINARY:
        return observers.best_cut(forest.observer, forest.elements, row, whole, absent, one)
    if absent.weight == 0:
        return Cut(-np.inf, 0.0, nothing(), nothing())
    return Cut(reduction(whole, absent, present, one), 0.0, absent, present)


@jit
def _precedes(forest: Forest, row: int, other: int) -> bool:
    """Return whether the feature of a row comes before that of another."""
    state = forest.features.rows
    return precedes(forest.names, rows.item_of(state, row), rows.item_of(state, other))


@jit
def rank(forest: Forest, leaf: int) -> Choice:
    """Return the best split of a leaf, ties to the lowest feature. O(features of the leaf, and their elements)."""
    whole = seen_by(forest, leaf)
    one = whole.weight * PER_UNIT / forest.nodes.links[leaf, SEEN]
    best = Choice(int64(NONE), Cut(NOISE * variance(whole, one), 0.0, nothing(), nothing()), 0.0)
    row = forest.nodes.links[leaf, OBSERVED]
    while row != NONE:
        cut = _cut(forest, leaf, row, one)
        ties = cut.merit == best.cut.merit and best.row != NONE and _precedes(forest, row, best.row)
        if cut.merit > best.cut.merit or ties:
            second = best.cut.merit if best.row != NONE else best.second
            best = Choice(row, cut, second)
        else:
            best = Choice(best.row, best.cut, max(best.second, cut.merit))
        row = forest.features.rows.cells[row, NEXT]
    return best


@jit
def is_sure(forest: Forest, rules: Rules, leaf: int, choice: Choice) -> bool:
    """Return whether the best split is the best for good, or so near a tie that it does not matter."""
    margin = epsilon(rules.bound, examples(forest.nodes, leaf, False))
    return choice.row != NONE and (choice.second / choice.cut.merit < 1.0 - margin or margin < rules.tie_threshold)
