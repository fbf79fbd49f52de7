"""IMAC, paper 001: the scores of a few candidates are kept up to date, and say when an attempt can succeed.

A leaf first tries once it has seen eta examples. After an attempt that failed its K best features are the
candidates (the set P): each example brings their scores up to date by theorems.py, in constant time. Once the
best of them is surely better than the second, the leaf tries again, with all features. Every mu examples the
worst candidate must stand against the best of the other features that still have a chance (the set M,
`POTENTIAL`); those that the best beats by more than the bound have none (the set I, `ILLEGAL`).

K is given, or a tenth of the features that the leaf saw, but from 5 to 10. A numeric candidate keeps the threshold
at which it was scored and counts exactly on both sides of it from there on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import free_list, rows
from algorithms.core.arrays import Float64s, Int32s, Int64s, extended, int64
from algorithms.core.class_sums import noise
from algorithms.core.events import Batch
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY, NOMINAL, is_number
from algorithms.core.rows import COUNT, NEXT, NONE
from algorithms.core.stored import stored
from algorithms.trees import gain
from algorithms.trees.bounds import margin
from algorithms.trees.gain import feature_score, impurity
from algorithms.trees.nodes import OBSERVED, SEEN, WEIGHT
from algorithms.trees.observers import HELD, KIND, MARK
from algorithms.trees.ranking import beats, rank
from algorithms.trees.routing import branch_of, value_of
from algorithms.trees.state import Choice, Forest, Rules
from algorithms.trees.theorems import step

MOST = 10  # candidates of a leaf, where their number is not given
LEAST = 5

# `MARK` of a feature's row.
POTENTIAL, CANDIDATE, ILLEGAL = 0, HELD, 2


@stored("set", "looked", "size", "row", "score", "threshold", "branches", "used")
class Imac(NamedTuple):
    """The candidates of all leaves that failed once. Sets are given out as they are needed."""

    set: Int32s  # int32[nodes], the leaf's candidates, or NONE
    looked: Int64s  # int64[nodes], examples seen at the last attempt or check
    size: Int64s  # int64[sets], how many candidates
    row: Int64s  # int64[sets, K], the candidate's row in `Features`
    score: Float64s  # float64[sets, K], now
    threshold: Float64s  # float64[sets, K], of a numeric candidate
    branches: Int64s  # int64[sets, K, 2, c], its class weights up to the threshold, and above; together the leaf's
    used: Int64s  # int64[3], a free list through `size`


@inlined
def begin(policy: Imac, leaf: int) -> None:
    """Start a leaf that has seen nothing."""
    policy.set[leaf] = NONE
    policy.looked[leaf] = 0


@inlined
def end(policy: Imac, forest: Forest, leaf: int) -> None:
    """Give back the candidates of a leaf."""
    at = int64(policy.set[leaf])
    if at != NONE:
        free_list.give(policy.used, policy.size, at)
        policy.set[leaf] = NONE


@inlined
def ready(policy: Imac, ones: int, learners: int) -> bool:
    """Return whether each leaf that learns an example can be given candidates."""
    return policy.size.size - policy.used[free_list.USED] >= learners


@jit
def _advance(policy: Imac, forest: Forest, batch: Batch, event: int, leaf: int, at: int, which: int) -> None:
    """Bring the score of a candidate up to date with an example that was just counted."""
    features = forest.features
    row = policy.row[at, which]
    kind = features.about[row, KIND]
    label = int64(batch.label[event])
    weight = batch.weight[event]
    value = value_of(batch, event, rows.item_of(features.rows, row))
    branch = branch_of(kind, policy.threshold[at, which], value)
    found = int64(NONE)
    if kind == NOMINAL and branch > 0:
        found = rows.find(features.values, row, branch)
    total = weight * 0
    of_class = weight * 0
    squares = 0.0
    for k in range(forest.nodes.prior.shape[1]):
        if is_number(kind):
            if k == label:
                policy.branches[at, which, branch, k] += weight
            count = policy.branches[at, which, branch, k]
        elif branch == 0:
            count = forest.nodes.rows.cells[leaf, COUNT + k] - features.rows.cells[row, COUNT + k]
        elif kind == BINARY:
            count = features.rows.cells[row, COUNT + k]
        else:
            count = features.values.cells[found, COUNT + k]
        if k == label:
            count -= weight
            of_class = count
        total += count
        squares += (count * PER_UNIT) * (count * PER_UNIT)
    policy.score[at, which] += step(forest.criterion, total, of_class, squares, weight)


@jit
def _enter(
    policy: Imac, forest: Forest, leaf: int, at: int, which: int, row: int, score: float, threshold: float
) -> None:
    """Make a feature a candidate."""
    features = forest.features
    policy.row[at, which] = row
    policy.score[at, which] = score
    policy.threshold[at, which] = threshold
    features.about[row, MARK] = CANDIDATE
    if is_number(features.about[row, KIND]):
        for k in range(forest.nodes.prior.shape[1]):
            above = gain.weight_above(features, forest.nodes, leaf, row, k, threshold)
            policy.branches[at, which, 0, k] = forest.nodes.rows.cells[leaf, COUNT + k] - above
            policy.branches[at, which, 1, k] = above


@jit
def _best(policy: Imac, forest: Forest, at: int) -> tuple[int, float]:
    """Return the best candidate's place, and the score of the second best."""
    best = int64(0)
    second = np.inf
    for which in range(1, policy.size[at]):
        score = policy.score[at, which]
        if beats(
            forest.features,
            forest.names,
            policy.row[at, which],
            score,
            policy.row[at, best],
            policy.score[at, best],
        ):
            second = policy.score[at, best]
            best = int64(which)
        else:
            second = min(second, score)
    return best, second


@jit
def _worst(policy: Imac, forest: Forest, at: int) -> int:
    """Return the worst candidate's place."""
    worst = int64(0)
    for which in range(1, policy.size[at]):
        if beats(
            forest.features,
            forest.names,
            policy.row[at, worst],
            policy.score[at, worst],
            policy.row[at, which],
            policy.score[at, which],
        ):
            worst = int64(which)
    return worst


@jit
def _check(policy: Imac, forest: Forest, rules: Rules, leaf: int, at: int) -> None:
    """Let the worst candidate stand against the best of the potential features. O(features of the leaf)."""
    features = forest.features
    weight = forest.nodes.links[leaf, WEIGHT] * PER_UNIT
    rival = int64(NONE)
    row = forest.nodes.links[leaf, OBSERVED]
    while row != NONE:
        if (
            features.about[row, MARK] == POTENTIAL
            and features.gain[row] > -np.inf
            and beats(features, forest.names, row, -features.gain[row], rival, -features.gain[max(rival, 0)])
        ):
            rival = row
        row = features.rows.cells[row, NEXT]
    if rival == NONE:
        return
    score, threshold = feature_score(forest.criterion, features, forest.nodes, leaf, rival)
    worst = _worst(policy, forest, at)
    loser = policy.row[at, worst]
    lost = policy.score[at, worst]
    if score < lost:
        _enter(policy, forest, leaf, at, worst, rival, score, threshold)
    else:
        loser = rival
        lost = score
    best, _ = _best(policy, forest, at)
    features.gain[loser] = -lost / weight
    hopeless = (lost - policy.score[at, best]) / weight > margin(forest.nodes, rules, leaf, 0)
    features.about[loser, MARK] = ILLEGAL if hopeless else POTENTIAL


@inlined
def due(policy: Imac, forest: Forest, rules: Rules, batch: Batch, event: int, leaf: int) -> bool:
    """Return whether the candidates say that an attempt can succeed. O(candidates)."""
    return can_succeed(policy, forest, rules, batch, event, leaf, True)


@jit
def can_succeed(
    policy: Imac, forest: Forest, rules: Rules, batch: Batch, event: int, leaf: int, has_rivals: bool
) -> bool:
    """Return whether the best candidate is surely better than no split, and than the second where that counts."""
    seen = forest.nodes.links[leaf, SEEN]
    at = int64(policy.set[leaf])
    if at == NONE:
        if seen - policy.looked[leaf] < rules.grace_period:
            return False
        policy.looked[leaf] = seen
        return True
    for which in range(policy.size[at]):
        _advance(policy, forest, batch, event, leaf, at, which)
    if seen - policy.looked[leaf] >= rules.check_every:
        policy.looked[leaf] = seen
        _check(policy, forest, rules, leaf, at)
    best, second = _best(policy, forest, at)
    score = policy.score[at, best]
    weight = forest.nodes.links[leaf, WEIGHT]
    whole = impurity(forest.criterion, forest.nodes.rows, leaf)
    if not score < whole - noise(weight, rules.classes):
        return False
    if not has_rivals:
        second = np.inf
    bound = margin(forest.nodes, rules, leaf, 0)
    return (min(second, whole) - score) / (weight * PER_UNIT) > bound or bound < rules.tie_threshold


@inlined
def seek(policy: Imac, forest: Forest, rules: Rules, leaf: int) -> Choice:
    """Rank the features; their gains say which of them become candidates."""
    return rank(forest.nodes, forest.features, forest.names, forest.criterion, leaf, True)


@jit
def failed(policy: Imac, forest: Forest, rules: Rules, leaf: int, choice: Choice) -> None:
    """Make the best features candidates, and sort the others into potential and illegal ones."""
    features = forest.features
    end(policy, forest, leaf)
    seen = 0
    best_gain = -np.inf
    row = forest.nodes.links[leaf, OBSERVED]
    while row != NONE:
        best_gain = max(best_gain, features.gain[row])
        seen += 1
        row = features.rows.cells[row, NEXT]
    policy.looked[leaf] = forest.nodes.links[leaf, SEEN]
    if best_gain == -np.inf:
        return  # no feature splits the leaf yet
    at = free_list.take(policy.used, policy.size)
    policy.set[leaf] = at
    policy.size[at] = 0
    most = rules.candidates if rules.candidates > 0 else max(LEAST, min(MOST, seen // 10))
    bound = margin(forest.nodes, rules, leaf, 0)
    row = forest.nodes.links[leaf, OBSERVED]
    while row != NONE:
        value = features.gain[row]
        features.about[row, MARK] = ILLEGAL if best_gain - value > bound else POTENTIAL
        if value > -np.inf:
            _insert(policy, forest, at, most, row, value)
        row = features.rows.cells[row, NEXT]
    for which in range(policy.size[at]):
        row = policy.row[at, which]
        score, threshold = feature_score(forest.criterion, features, forest.nodes, leaf, row)
        _enter(policy, forest, leaf, at, which, row, score, threshold)


@jit
def _insert(policy: Imac, forest: Forest, at: int, most: int, row: int, value: float) -> None:
    """Insert a feature into the list of the best so far, which is in order; `score` holds the negative gain."""
    size = policy.size[at]
    which = size
    while which > 0 and beats(
        forest.features, forest.names, row, -value, policy.row[at, which - 1], policy.score[at, which - 1]
    ):
        which -= 1
    if which == most:
        return
    if size < most:
        policy.size[at] = size + 1
    else:
        size -= 1
    while size > which:
        policy.row[at, size] = policy.row[at, size - 1]
        policy.score[at, size] = policy.score[at, size - 1]
        size -= 1
    policy.row[at, which] = row
    policy.score[at, which] = -value


def make(nodes: int, features: int, classes: int, candidates: int) -> Imac:
    """Make the policy."""
    most = candidates or MOST
    return Imac(
        set=np.full(nodes, NONE, np.int32),
        looked=np.zeros(nodes, np.int64),
        size=np.zeros(4, np.int64),
        row=np.zeros((4, most), np.int64),
        score=np.zeros((4, most)),
        threshold=np.zeros((4, most)),
        branches=np.zeros((4, most, 2, classes), np.int64),
        used=np.array([0, 0, NONE], np.int64),
    )


def grown(policy: Imac, nodes: int) -> Imac:
    """Return the policy with room for more nodes."""
    more = policy._replace(set=extended(policy.set, nodes), looked=extended(policy.looked, nodes))
    more.set[len(policy.set) :] = NONE
    return more


def enlarged(policy: Imac, ones: int, rows: int) -> Imac:
    """Return the policy with room for twice as many sets."""
    sets = 2 * len(policy.size)
    return policy._replace(
        size=extended(policy.size, sets),
        row=extended(policy.row, sets),
        score=extended(policy.score, sets),
        threshold=extended(policy.threshold, sets),
        branches=extended(policy.branches, sets),
    )


def check(policy: Imac, forest: Forest, leaves: list[int]) -> None:
    """Raise AssertionError unless the policy's state is right, the scores to 1e-9. O(everything)."""
    features = forest.features
    sets = []
    for leaf in leaves:
        at = int(policy.set[leaf])
        marked = {
            row
            for row in rows.chain(features.rows, int(forest.nodes.links[leaf, OBSERVED]))
            if features.about[row, MARK] == CANDIDATE
        }
        if at == NONE:
            assert not marked
            continue
        sets.append(at)
        own = policy.row[at, : policy.size[at]].tolist()
        assert 0 < len(own) <= policy.row.shape[1]
        assert set(own) == marked, "a candidate is not marked, or what is marked is none"
        weight = forest.nodes.links[leaf, WEIGHT] * PER_UNIT
        for which, row in enumerate(own):
            if is_number(features.about[row, KIND]):
                both = policy.branches[at, which].sum(axis=0)
                assert (both == forest.nodes.rows.cells[leaf, COUNT:]).all()
            else:
                score, _ = feature_score(forest.criterion, features, forest.nodes, leaf, row)
                assert score == np.inf or abs(score - policy.score[at, which]) <= 1e-9 * (1.0 + weight)
    free_list.check(policy.used, policy.size, sets)
