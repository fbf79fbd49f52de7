"""The oracles of trees of numbers that keep floors: built from scratch at every look, and all splits of all nodes.

What splits leave is compared as exact rationals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from algorithms.core.kinds import Kind
from algorithms.dynamic import columns, nodes
from algorithms.dynamic.columns import GREATEST, LEAST
from algorithms.dynamic.exact import knows_beside
from algorithms.dynamic.nodes import FEATURE, NONE
from algorithms.dynamic.numbers import DynamicNumberPool
from algorithms.dynamic.slack import IS_KNOWN
from algorithms.dynamic.terms import EXACT
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
    check_rivals,
    examples_below,
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
        check_number_floors(self.pool, self.twin.terms, key)


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


def check_number_floors(pool: DynamicNumberPool, terms: NumberTerms, key: int) -> None:
    """Raise AssertionError where a split leaves less than the floor that is under it, looked at or not.

    A column has its own floor, all else that of the node. For EXACT a node's own split has none, nor have those of
    its feature that part its examples as it does: if such a one is another threshold, it must be told that nothing
    is known. Rivals do not count, whose sums must be right.
    """
    forest, known, links = pool._state, pool._state.slack, pool._state.nodes.links
    is_exact = pool.rules.terms.policy == EXACT
    for node in nodes.preorder(forest.nodes, pool._root(key)):
        examples = examples_below(pool, node)
        others = check_rivals(pool, terms, node, examples)
        floor = float(known.floor[node])
        held = known.columns
        features = pool._features(held.features[node, : held.sizes[node]].tolist())
        assert len(set(features)) == len(features)
        floors = {each: float(columns.floor_of(held, node, at)) for at, each in enumerate(features)}
        if held.sizes[node]:
            labels = [each.label for each in examples]
            assert held.extremes[node, LEAST] <= min(labels)
            assert held.extremes[node, GREATEST] >= max(labels)
        number = int(links[node, FEATURE])
        if number == NONE and is_exact:
            if floor == math.inf:
                assert not splits(terms, examples), "a leaf that a split parts"
            continue
        feature, own = None, float(forest.nodes.threshold[node])
        if number != NONE:
            feature = pool._features([number])[0]
        for left, other, threshold in all_left(terms, examples):
            under = floors.get(other, floor if other not in others else -math.inf)
            is_alike = other == feature and is_exact
            if is_alike and parts(terms, examples, other, threshold) == parts(terms, examples, feature, own):
                if terms.kind(other) == Kind.NUMERIC and knows_beside(held, known, node, number):
                    assert threshold == own, "the threshold has moved and nothing says so"
            elif terms.kind(other) == Kind.NUMERIC or other != feature:
                assert left >= under, (node, other, threshold)
        if known.counts[node, IS_KNOWN] and is_exact:
            assert best_of(terms, examples, splits(terms, examples))[1:] == (feature, own), (
                "what is known is not so"
            )
