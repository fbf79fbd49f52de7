"""The exact policy: best and second are known after every example, so a leaf splits at its true time.

Each leaf is an index of splits.exact, which has the best split at hand. The second best needs a search, but
seldom: the second of the last search, scored now, is no better than the true one, so while even that is not worse
than the best by the bound, no split is due.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Int64s, extended, int64
from algorithms.core.class_sums import noise
from algorithms.core.criteria import score
from algorithms.core.events import Batch
from algorithms.core.jit import inlined, jit
from algorithms.core.names import refer, release
from algorithms.core.rows import COUNT
from algorithms.core.stored import stored
from algorithms.splits import exact, slots
from algorithms.splits.quadtree import Quadtrees
from algorithms.splits.slots import BEST, C0, C1, CHAIN, FEATURES, GRAIN, N0, N1, NONE, Slots, feature_of
from algorithms.trees.nodes import WEIGHT
from algorithms.trees.ranking import is_sure
from algorithms.trees.state import LATER, SHORT, Choice, Forest, Rules


@stored("slots", "finder", "pair")
class Exact(NamedTuple):
    """One index a leaf."""

    slots: Slots
    finder: Quadtrees
    pair: Int64s  # int64[nodes, 2], the slots of the best and the second of the last search for a second


@inlined
def begin(policy: Exact, leaf: int) -> None:
    """Start a leaf that has seen nothing."""
    policy.pair[leaf, 0] = NONE
    policy.pair[leaf, 1] = NONE


@jit
def _end(policy: Exact, forest: Forest, leaf: int) -> None:
    slot = policy.slots.heads[leaf, CHAIN]
    while slot != NONE:
        release(forest.names, feature_of(policy.slots, slot))
        exact.removing(policy.finder, policy.slots, leaf, slot)
        slots.remove(policy.slots, leaf, slot)
        slot = policy.slots.heads[leaf, CHAIN]
    exact.dropping(policy.finder, policy.slots, leaf)
    slots.reset(policy.slots, leaf)


@inlined
def end(policy: Exact, forest: Forest, leaf: int) -> None:
    """Give back the index of a leaf."""
    _end(policy, forest, leaf)


@inlined
def ready(policy: Exact, ones: int, learners: int) -> bool:
    """Return whether so many features can be counted."""
    return slots.room(policy.slots) >= ones and exact.ready(policy.finder, ones)


@jit
def learn(policy: Exact, forest: Forest, batch: Batch, event: int, leaf: int) -> None:
    """Count an example in the index of its leaf. O(features of the example)."""
    heads = policy.slots.heads
    label = int64(batch.label[event])
    weight = batch.weight[event]
    heads[leaf, N0 + label] += weight
    lowest_bit = weight & -weight
    if heads[leaf, GRAIN] == 0 or lowest_bit < heads[leaf, GRAIN]:
        heads[leaf, GRAIN] = lowest_bit
    for at in range(batch.pointer[event], batch.pointer[event + 1]):
        if batch.value[at] == 0.0:
            continue
        feature = int64(batch.feature[at])
        slot = slots.lookup(policy.slots, leaf, feature)
        if slot == NONE:
            slot = slots.create(policy.slots, leaf, feature)
            refer(forest.names, feature)
        policy.slots.rows[slot, C0 + label] += weight
        exact.touched(policy.finder, policy.slots, leaf, slot, label, weight)


@inlined
def due(policy: Exact, forest: Forest, rules: Rules, batch: Batch, event: int, leaf: int) -> bool:
    """Every example is an occasion."""
    return True


@inlined
def _score(policy: Exact, forest: Forest, leaf: int, slot: int) -> float:
    heads = policy.slots.heads
    rows = policy.slots.rows
    return score(forest.criterion, rows[slot, C0], rows[slot, C1], heads[leaf, N0], heads[leaf, N1])


@jit
def seek(policy: Exact, forest: Forest, rules: Rules, leaf: int) -> Choice:
    """Return the best split where it may be the best for good, else LATER. Amortised O(1)."""
    heads = policy.slots.heads
    later = Choice(int64(LATER), 0.0, 0.0, 0.0)
    best = exact.find(policy.finder, policy.slots, forest.names, forest.criterion, leaf, NONE)
    if best == exact.SHORT:
        return Choice(int64(SHORT), 0.0, 0.0, 0.0)
    heads[leaf, BEST] = best
    if best == NONE:
        return later
    whole = score(forest.criterion, 0, 0, heads[leaf, N0], heads[leaf, N1])
    value = _score(policy, forest, leaf, best)
    if not value < whole - noise(forest.nodes.links[leaf, WEIGHT], 2):
        return later
    second = whole
    if policy.pair[leaf, 0] == best and policy.pair[leaf, 1] != NONE:
        second = min(second, _score(policy, forest, leaf, policy.pair[leaf, 1]))
    elif policy.pair[leaf, 1] == best:
        second = min(second, _score(policy, forest, leaf, policy.pair[leaf, 0]))
    if not is_sure(forest.nodes, rules, leaf, value, second):
        return later
    runner_up = exact.find(policy.finder, policy.slots, forest.names, forest.criterion, leaf, best)
    if runner_up == exact.SHORT:
        return Choice(int64(SHORT), 0.0, 0.0, 0.0)
    policy.pair[leaf, 0] = best
    policy.pair[leaf, 1] = runner_up
    second = whole
    if runner_up != NONE:
        second = min(second, _score(policy, forest, leaf, runner_up))
    return Choice(int64(best), value, second, 0.0)


@jit
def failed(policy: Exact, forest: Forest, rules: Rules, leaf: int, choice: Choice) -> None:
    """Nothing follows from a look that failed."""


@inlined
def feature_at(policy: Exact, forest: Forest, row: int) -> int:
    """Return the feature of a choice."""
    return feature_of(policy.slots, row)


@inlined
def weight_above(policy: Exact, forest: Forest, leaf: int, row: int, threshold: float, k: int) -> int:
    """Return the weight of a class where the feature is present."""
    return policy.slots.rows[row, C0 + k]


def make(nodes: int, features: int, classes: int, candidates: int) -> Exact:
    """Make the policy."""
    return Exact(slots.make(nodes, features), exact.make(nodes, features), np.full((nodes, 2), NONE, np.int64))


def grown(policy: Exact, nodes: int) -> Exact:
    """Return the policy with room for more nodes."""
    capacity = len(policy.slots.rows)
    before = len(policy.pair)
    pair = extended(policy.pair, nodes)
    pair[before:] = NONE
    return Exact(slots.grown(policy.slots, nodes, capacity), exact.grown(policy.finder, nodes, capacity), pair)


def is_full(policy: Exact, ones: int, rows: int) -> bool:
    """Return whether so many features more need a slot where only so many slots are allowed."""
    return len(policy.slots.rows) - policy.slots.counts[slots.USED] < ones and len(policy.slots.rows) >= rows


def keys(policy: Exact) -> Int64s:
    """Return leaf << 32 | feature of each slot in use."""
    found = policy.slots.rows[: policy.slots.counts[slots.EVER], slots.KEY]
    return found[found >= 0]


def enlarged(policy: Exact, ones: int, rows: int) -> Exact:
    """Return the policy with room for twice as many slots or, where those suffice, quadtree nodes."""
    if slots.room(policy.slots) >= ones:
        return policy._replace(finder=exact.enlarged(policy.finder))
    nodes, capacity = len(policy.pair), min(2 * max(len(policy.slots.rows), ones), rows)
    return policy._replace(
        slots=slots.grown(policy.slots, nodes, capacity), finder=exact.grown(policy.finder, nodes, capacity)
    )


def check(policy: Exact, forest: Forest, leaves: list[int]) -> None:
    """Raise AssertionError unless all invariants of the indexes hold. O(everything)."""
    slots.check(policy.slots)
    exact.check(policy.finder, policy.slots)
    cells = forest.nodes.rows.cells
    for leaf in range(len(policy.pair)):
        if leaf in leaves:
            assert policy.slots.heads[leaf, [N0, N1]].tolist() == cells[leaf, COUNT:].tolist()
            for slot in policy.pair[leaf].tolist():
                assert slot == NONE or policy.slots.rows[slot, 0] >> 32 == leaf
        else:
            assert policy.slots.heads[leaf, FEATURES] == 0
