"""Streams of events for growing trees, and the pool and its oracle side by side over them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from algorithms.core.criteria import UNIT
from algorithms.core.events import Op, Status
from algorithms.core.kinds import Kind
from algorithms.trees.answers import Split
from algorithms.trees.pool import Alternates, TreePool
from algorithms.trees.snapshot import Tree as Snapshot
from tests.oracles.differential import Differential, columns_of, times_of
from tests.oracles.naive_trees import NaiveTrees
from tests.oracles.tree_parts import (
    Event,
    Feature,
    Outcome,
    Settings,
    columns,
    nodes_of,
)


def pool_columns(pool: TreePool, key: int) -> list[tuple[Any, ...]]:
    """Return the nodes of a pool's tree in the oracle's words."""
    return tree_columns(pool.tree(key))


def tree_columns(tree: Snapshot) -> list[tuple[Any, ...]]:
    """Return the nodes of a snapshot in the oracle's words."""
    return [
        (number, parent, branch, depth, feature, kind, float(threshold).hex(), tuple(weight))
        for number, parent, branch, depth, feature, kind, threshold, weight in zip(
            tree.number.tolist(),
            tree.parent.tolist(),
            tree.branch.tolist(),
            tree.depth.tolist(),
            tree.feature,
            tree.kind,
            tree.threshold.tolist(),
            tree.weight.tolist(),
            strict=True,
        )
    ]


def split_words(split: Split) -> Any:
    """Return a split in the oracle's words."""
    floats = tuple(each.hex() for each in (split.threshold, split.score, split.second, split.impurity))
    branches = dict(zip(split.branches.tolist(), map(tuple, split.counts.tolist()), strict=True))
    return (split.node, split.feature, split.kind, split.depth, *floats, tuple(split.totals.tolist()), branches)


def outcomes(pool: TreePool, events: Sequence[Event], rng: random.Random | None = None) -> list[Outcome]:
    """Apply events to a pool as one batch and return what each led to, in the oracle's words."""
    batch = columns_of(events, pool, rng, time=times_of(events))
    answers = pool.apply(batch)
    pool.sweep(batch.feature)
    splits = {split.event: split_words(split) for split in answers.splits}
    snapshots = {event: tree_columns(tree) for event, _, tree in answers.snapshots}
    asked = dict(zip(answers.asked.tolist(), answers.weights.tolist(), strict=True))
    leaves = dict(zip(answers.asked.tolist(), answers.leaf.tolist(), strict=True))
    told = pool.rules.evaluated
    return [
        Outcome(
            status=Status(status),
            predicted=int(answers.predicted[at]),
            loss=float(answers.loss[at]).hex() if told and status == 0 and events[at].op == Op.INSERT else "",
            split=splits.get(at),
            weights=tuple(weight.hex() for weight in asked.get(at, ())),
            leaf=leaves.get(at, 0),
            snapshot=snapshots.get(at),
        )
        for at, status in enumerate(answers.status.tolist())
    ]


class Pair(Differential):
    """A differential harness: a pool beside its oracle, compared after every batch."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, NaiveTrees(settings), outcomes)

    def compare(self, key: int) -> None:
        """Compare a tree with the oracle's."""
        tree = self.twin.trees.get(key)
        assert pool_columns(self.pool, key) == columns(tree)
        sizes = self.pool.sizes(key)
        nodes = columns(tree)
        assert sizes.leaves == sum(node[4] is None for node in nodes)
        assert (sizes.events, sizes.splits) == ((tree.events, tree.splits) if tree else (0, 0))
        if self.settings.policy != "exact":  # which attempts only where it is not plain that they would fail
            assert sizes.attempts == (tree.attempts if tree else 0)

    def check(self) -> None:
        """Raise AssertionError unless the pool's invariants hold and its size is the oracle's."""
        self.pool.check()
        assert self.pool.alive == len(self.twin.trees)
        nodes = nodes_of(self.twin.trees.values())
        assert self.pool.node_count == len(nodes)
        open_, promoted = sum(node.alternate is not None for node in nodes), self.twin.promoted
        assert self.pool.alternates == Alternates(open_, promoted, self.twin.started - promoted - open_)


@dataclass(frozen=True)
class Mix:
    """What a random stream is made of."""

    kinds: dict[Feature, Kind]  # of all features
    classes: int = 2
    weights: tuple[int, ...] = (UNIT,)
    indexes: int = 1
    others: float = 0.05  # share of predictions, and of a tenth as many deletes and drops
    dense: float = 0.5  # how many features an example has


class Stream:
    """Random events whose features say something of the label, some of them the same, so that scores tie."""

    def __init__(self, seed: int, mix: Mix) -> None:
        self._rng = random.Random(seed)
        self._mix = mix

    def take(self, count: int) -> list[Event]:
        """Return the next events."""
        return [self._next() for _ in range(count)]

    def _next(self) -> Event:
        rng, mix = self._rng, self._mix
        label = rng.randrange(mix.classes)
        first = rng.random() < 0.5  # the concept differs between its halves, so that trees grow deep
        x: dict[Feature, float] = {}
        for rank, (feature, kind) in enumerate(mix.kinds.items()):
            telling = 0.85 if rank % 3 == 0 and rank < 12 else 0.1
            says = (
                (label + rank // 3 * first) % mix.classes if rng.random() < telling else rng.randrange(mix.classes)
            )
            if kind == Kind.BINARY:
                if rng.random() < mix.dense and says % 2 == 0:
                    x[feature] = 1.0
            elif kind == Kind.NOMINAL:
                x[feature] = float(says + rng.randrange(2))
            elif rng.random() < 0.9:
                x[feature] = round(rng.gauss(says, 0.7), 2 if rank % 2 else 15) * 10.0 ** (rank % 5 - 2)
        if rank_of(mix) > 4 and 4 in x:
            x[3] = x[4]  # the same to the bit: ties go to the lower
        op, kind_of_event = Op.INSERT, rng.random()
        if kind_of_event < mix.others:
            op = Op.PREDICT if kind_of_event < 0.9 * mix.others else Op.DELETE
            if kind_of_event > 0.98 * mix.others:
                op = Op.DROP
        return Event(op, x, label, rng.choice(mix.weights), rng.randrange(mix.indexes))


def rank_of(mix: Mix) -> int:
    """Return how many features a mix has."""
    return len(mix.kinds)
