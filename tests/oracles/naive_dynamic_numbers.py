"""The oracle of the trees that forget whose labels are numbers: naive_dynamic.py, with sums of exact rationals.

A split's score is the reduction of the sum of squared deviations, times the weight of the node: a fraction, of
which the nearest double is taken, as ties are decided on these.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from algorithms.core.cadence import Emit
from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate, Op, Status
from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.dynamic.numbers import DynamicNumberPool
from algorithms.dynamic.terms import EPSILON
from algorithms.trees.snapshot import NumberTree as Snapshot
from tests.oracles.differential import Differential, columns_of, times_of
from tests.oracles.naive_dynamic import (
    NO_SNAPSHOTS,
    Event,
    Example,
    Feature,
    NaiveForgetful,
    Node,
    Outcome,
    Terms,
    Tree,
    counters_of,
    id_columns,
)

Range = tuple[float, float, float]  # the least label, the greatest, and the unit


class NumberTerms(Terms):
    """What trees of numbers are built by; labels are whole numbers of the unit, weights of examples."""

    def counts(self, examples: Sequence[Example]) -> list[int]:
        """Return the weight, the sum of labels and that of their squares."""
        return [sum(each.weight * each.label**power for each in examples) for power in range(3)]

    def impurity(self, counts: Sequence[int]) -> float:  # noqa: ARG002
        """Return the score of what parts nothing."""
        return 0.0

    def score(self, low: Sequence[int], whole: Sequence[int]) -> float:
        """Return the double nearest to the score of a split."""
        high = [count - below for count, below in zip(whole, low, strict=True)]
        return float(whole[0] * (squares(low) + squares(high) - squares(whole)))

    def noise(self, counts: Sequence[int]) -> float:  # noqa: ARG002
        """Return 0: sums are exact."""
        return 0.0

    def is_pure(self, counts: Sequence[int]) -> bool:
        """Return whether all labels are alike."""
        return squares(counts) == 0

    def weight(self, counts: Sequence[int]) -> int:
        """Return the weight of a node."""
        return counts[0]


def squares(counts: Sequence[int]) -> Fraction:
    """Return the sum of squared deviations from the mean."""
    weight, total, of_squares = counts
    return Fraction(0) if not weight else of_squares - Fraction(total * total, weight)


@dataclass(frozen=True)
class NumberSettings:
    """The parameters of `DynamicNumberPool`, with the same meaning."""

    scale: Range = (0.0, 100.0, 1.0)
    epsilon: float | None = 0.1
    beta: float = 0.0
    guarantee: str | None = None
    min_examples: int = 1
    max_depth: int = 1 << 30
    default: Kind = Kind.BINARY
    kinds: dict[Feature, Kind] = field(default_factory=dict)
    window: int | None = None
    on_duplicate: OnDuplicate = OnDuplicate.REJECT
    names: bool = False
    evaluate: bool = True
    max_keys: int = 1 << 30
    max_live_ids: int = 1 << 30
    snapshots: Emit = NO_SNAPSHOTS

    def pool(self) -> DynamicNumberPool:
        """Return a new pool with these settings."""
        return DynamicNumberPool(**{**vars(self), "scale": Scale(*self.scale)})

    def terms(self) -> NumberTerms:
        """Return what BUILD goes by."""
        return NumberTerms(
            default=self.default, kinds=self.kinds, min_examples=self.min_examples, max_depth=self.max_depth
        )


class NaiveNumbers(NaiveForgetful):
    """Trees of numbers that forget, in lists and dictionaries."""

    _nothing: Any = "nan"

    def _learned(self, event: Event) -> tuple[int | None, int]:
        low, high, unit = self.settings.scale
        weight = event.weight // UNIT if event.weight % UNIT == 0 else -1
        if not low <= event.label <= high:
            return None, weight
        return round((Fraction(event.label) - Fraction(low)) / Fraction(unit)), weight

    def _room(self) -> int:
        low, high, unit = self.settings.scale
        most: int = round((high - low) / unit)
        return min(2**31, (2**62 - 1) // most + 1)

    def _told(self, node: Node | None) -> list[float]:
        """Return weight, variance and mean."""
        return [0.0, 0.0, math.nan] if node is None else self.tell(self.terms.counts(node.all_examples()))

    def tell(self, counts: Sequence[int]) -> list[float]:
        """Return weight, variance and mean of a node."""
        low, high, unit = self.settings.scale
        weight, total, _ = counts
        mean = low + unit * (float(total) / float(weight))
        exact = Fraction(low) + Fraction(unit) * Fraction(total, weight)
        assert abs(Fraction(mean) - exact) <= max(abs(low), abs(high)) * Fraction(1, 2**50)
        return [float(weight), unit * unit * float(squares(counts) / weight), mean]

    def _guess(self, told: list[float]) -> str:
        return told[2].hex()

    def _loss(self, told: list[float], label: int) -> str:  # noqa: ARG002
        return ""

    def columns(self, tree: Tree | None) -> list[tuple[Any, ...]]:
        """Return a tree as rows: number, parent's number, branch, depth, feature, kind, threshold, labels."""
        rows: list[tuple[Any, ...]] = []

        def walk(node: Node, parent: int, branch: int, above: float) -> None:
            counts = self.terms.counts(node.all_examples())
            weight, variance, mean = self.tell(counts) if counts[0] else [0.0, 0.0, above]
            kind = None if node.feature is None else self.terms.kind(node.feature)
            rows.append(
                (
                    *(node.number, parent, branch, node.depth, node.feature, kind, node.threshold.hex()),
                    *(weight, mean.hex(), variance.hex()),
                )
            )
            for at, child in enumerate(node.children):
                walk(child, node.number, at, mean)

        if tree is not None:
            walk(tree.root, -1, 0, math.nan)
        return rows


# --- a pool beside it


def number_outcomes(
    pool: DynamicNumberPool, events: Sequence[Event], rng: random.Random | None = None
) -> list[Outcome]:
    """Apply events to a pool as one batch and return what each led to, in the oracle's words."""
    batch = columns_of(events, pool, rng, label=np.float64, time=times_of(events), **id_columns(events))
    answers = pool.apply(batch)
    pool.sweep(batch.feature)
    snapshots = {event: number_rows_of(tree) for event, _, tree in answers.snapshots}
    found = []
    for at, status in enumerate(answers.status.tolist()):
        was_asked = events[at].op == Op.PREDICT and status == 0
        is_guessed = was_asked or (events[at].op == Op.INSERT and status == 0)
        told = (answers.weight[at], answers.variance[at], answers.predicted[at])
        found.append(
            Outcome(
                status=Status(status),
                predicted=float(answers.predicted[at]).hex() if is_guessed else -1,
                rebuilt=int(answers.rebuilt[at]) if pool.rules.terms.policy == EPSILON else 0,
                weights=tuple(float(each).hex() for each in told) if was_asked else (),
                leaf=int(answers.leaf[at]),
                snapshot=snapshots.get(at),
            )
        )
    return found


def number_rows_of(tree: Snapshot) -> list[tuple[Any, ...]]:
    """Return a tree in the oracle's words, see `NaiveNumbers.columns`."""
    return [
        (
            int(tree.number[at]),
            -1 if tree.parent[at] < 0 else int(tree.number[tree.parent[at]]),
            int(tree.branch[at]),
            int(tree.depth[at]),
            tree.feature[at],
            tree.kind[at],
            float(tree.threshold[at]).hex(),
            float(tree.weight[at]),
            float(tree.mean[at]).hex(),
            float(tree.variance[at]).hex(),
        )
        for at in range(len(tree.number))
    ]


class NumberPair(Differential):
    """A differential harness: a pool beside its oracle, compared after every batch."""

    def __init__(self, settings: NumberSettings) -> None:
        super().__init__(settings, NaiveNumbers(settings), number_outcomes)

    def compare(self, key: int) -> None:
        """Compare a tree, its s(v) and c(v) and its sizes with the oracle's."""
        tree = self.twin.trees.get(key)
        assert number_rows_of(self.pool.tree(key)) == self.twin.columns(tree)
        own = list(tree.root.preorder()) if tree is not None else []
        assert counters_of(self.pool, key) == [
            (node.built, node.edits, node.built_weight, node.edited_weight) for node in own
        ]
        leaves = sum(node.feature is None for node in own)
        made = (tree.events, len(tree.live), len(own), leaves, tree.rebuilds, tree.rebuilt) if tree else (0,) * 6
        assert self.pool.sizes(key) == made

    def check(self) -> None:
        """Raise AssertionError unless the pool's invariants hold and its sizes are the oracle's."""
        self.pool.check()
        trees = self.twin.trees.values()
        assert self.pool.alive == len(self.twin.trees)
        assert self.pool.live_examples == sum(len(tree.live) for tree in trees)
        assert self.pool.slots == len({f for tree in trees for each in tree.live for f in each.x})
