"""The oracles of trees of numbers that keep floors: built from scratch at every look, and all splits of all nodes.

What splits leave is compared as exact rationals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from algorithms.trees.snapshot import NumberTree as Snapshot
from tests.oracles.differential import Differential
from tests.oracles.naive_dynamic import Example, best_of, splits, thresholds
from tests.oracles.naive_dynamic_numbers import (
    NaiveNumbers,
    NumberSettings,
    NumberTerms,
    number_outcomes,
    number_rows_of,
    squares,
)
from tests.oracles.naive_guarantees import (
    GreedyPair,
    NaiveGreedy,
    NearPair,
    check_floors,
    held_by,
    leaf_of,
    parts,
)


class NaiveGreedyNumbers(NaiveGreedy, NaiveNumbers):
    """The tree of the live examples, built anew at every insert and delete."""


class NumberGreedyPair(GreedyPair):
    """A pool of numbers with the guarantee `exact` beside trees built from scratch."""

    def __init__(self, settings: NumberSettings) -> None:
        Differential.__init__(self, settings, NaiveGreedyNumbers(settings), number_outcomes)

    def rows_of(self, tree: Any) -> list[tuple[Any, ...]]:
        """Return a tree of the pool in the oracle's words."""
        return number_rows_of(tree)

    def check_floors(self, key: int) -> None:
        """Raise AssertionError where a split leaves less than a floor says."""
        check_floors(self.pool, self.twin.terms, key, all_left, _best)


class NumberNearPair(NumberGreedyPair, NearPair):
    """A pool of numbers with a beta beside all splits of all nodes."""

    feed, compare = NearPair.feed, NearPair.compare

    def lacks(self, tree: Any, live: Sequence[Example]) -> str | None:
        """Return what a tree lacks, see the function."""
        return number_lacks(self.settings, tree, live)

    def answer(self, tree: Any, x: Mapping[Any, float]) -> tuple[int, tuple[str, ...]]:
        """Return what a tree answers."""
        at = leaf_of(self.twin.terms, tree, x)
        told = (float(tree.weight[at]), float(tree.variance[at]), float(tree.mean[at]))
        return int(tree.number[at]), tuple(each.hex() for each in told)


def left_by(terms: NumberTerms, examples: Sequence[Example], feature: Any, threshold: float) -> Fraction:
    """Return the squared deviations that a split leaves."""
    ways = parts(terms, examples, feature, threshold)
    sides = ([each for each, way in zip(examples, ways, strict=True) if way == at] for at in (0, 1))
    return sum((squares(terms.counts(side)) for side in sides), Fraction(0))


def all_left(terms: NumberTerms, examples: Sequence[Example]) -> list[tuple[Fraction, Any, float]]:
    """Return what is left by each split that parts examples, its feature and threshold."""
    return [
        (left_by(terms, examples, feature, threshold), feature, threshold)
        for feature in {feature for each in examples for feature in each.x}
        for threshold in thresholds(terms, feature, examples)
    ]


def number_lacks(settings: NumberSettings, tree: Snapshot, live: Sequence[Example]) -> str | None:
    """Return what a tree lacks to be what `beta` promises, None where it is; all splits are looked at."""
    terms = settings.terms()
    whole = terms.counts(live)
    for at, examples in enumerate(held_by(terms, tree, live)):
        counts = terms.counts(examples)
        assert tree.weight[at] == counts[0]
        feature = tree.feature[at]
        if len(examples) <= terms.min_examples or tree.depth[at] >= terms.max_depth or not squares(counts):
            if feature is not None:
                return f"node {at} must be a leaf"
            continue
        own = squares(counts)
        if feature is not None:
            own = left_by(terms, examples, feature, float(tree.threshold[at]))
        most = Fraction(settings.beta) * squares(whole) / whole[0] * counts[0]
        found = all_left(terms, examples)
        if found and own > min(found)[0] + most:
            return f"node {at} leaves {float(own)}, the best split {min(found)}"
    return None


def _best(terms: NumberTerms, examples: Sequence[Example]) -> tuple[Any, Any, float]:
    """Return the split that a batch would choose."""
    return best_of(terms, examples, splits(terms, examples))
