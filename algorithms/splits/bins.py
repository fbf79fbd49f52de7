r"""What UPDENT and UPDGINI of paper 000 share: features in bins of rho, and in each bin three heaps.

The score of a feature j splits into a part K that only its own counts (a, b) = (c_j10, c_j11) change, and
a part that all features of a bin have in common, if rho = c_j01 / n_j0, the label's share where the feature
is absent, is taken for the bin's mu (Propositions 4.1 and 5.1). So the least K of each bin names the
candidates, one of which scores at most (1 + alpha) times the best. Whether rho has left a bin [s, t] is told
by own counts on one side and totals on the other, too: rho < s iff s n_j1 - c_j11 < s n - c_1 (Proposition 4.3).

Features with equal counts in equal bins are one element of the heaps, a *group*: see count_groups.py.

Counting only notes which slots were touched; `settle`, after every event, puts them into the right groups and
then moves the groups whose rho has left their bins. A touched slot whose counts are what they were (a refused
delete) stays where it is, so that a refusal changes nothing.

Floats decide by themselves only whom to look at: limits carry a margin for rounding, and what lies within
is decided by rho itself, or by the score.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.core import free_list, hashing
from algorithms.core.arrays import int64
from algorithms.core.criteria import rounding, score
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names, precedes
from algorithms.splits.count_groups import (
    ABOVE,
    FIRST,
    GROUP,
    HIGH,
    HIGH_NODE,
    HIGHS,
    LATER,
    LEAST,
    LOW,
    LOW_NODE,
    LOWS,
    NEXT,
    OF_GROUPS,
    OF_PENDING,
    QUEUE,
    RANK,
    SIZE,
    TOP,
    TOPS,
    TOUCHED,
    USED,
    WIDENS,
    Bins,
    absorb,
    attach,
    bin_at,
    detach,
    find_group,
    group_of,
    has_room,
    hash_of,
    high_key,
    is_above,
    is_below,
    join,
    leave,
    low_key,
    put_node,
    rank_of,
    shares,
    take_node,
    top_key,
)
from algorithms.splits.count_groups import check as check
from algorithms.splits.count_groups import enlarged as enlarged
from algorithms.splits.count_groups import grown as grown
from algorithms.splits.exact import SHORT
from algorithms.splits.heaps import following
from algorithms.splits.ranking import Ranking
from algorithms.splits.scan import overfull as overfull
from algorithms.splits.scan import rank_chain
from algorithms.splits.slots import C0, C1, KEY, MARK, N0, N1, NO_MARK, NONE, Slots, feature_of

# --- what finders are told


@inlined
def start(finder: Bins, index: int) -> None:
    """Begin an empty index: no bins."""
    finder.first[index] = NONE


@inlined
def ready(finder: Bins, ones: int) -> bool:
    """Return whether so many more slots can be noted."""
    return finder.pending.size - finder.counts[OF_PENDING, USED] >= ones


@inlined
def touched(finder: Bins, slots: Slots, index: int, slot: int, label: int, weight: int) -> None:
    """Note that a slot's counts have changed."""
    mark = slots.rows[slot, MARK]
    if mark >= NO_MARK:
        slots.rows[slot, MARK] = TOUCHED - mark
        counts = finder.counts
        finder.pending[counts[OF_PENDING, USED]] = slot
        counts[OF_PENDING, USED] += 1


@inlined
def taking(finder: Bins, slots: Slots, criterion: Any, index: int, label: int, weight: int) -> None:
    """Nothing is done before the event is over."""


@jit
def removing(finder: Bins, slots: Slots, index: int, slot: int) -> None:
    """Take a slot that is about to be given back out of its group."""
    group = group_of(slots, slot)
    if group != NONE:
        leave(finder, slot, group)


@inlined
def dropping(finder: Bins, slots: Slots, index: int) -> None:
    """Nothing is left to do: the bins have gone with the last of the slots."""


# --- settling


@jit
def settle(finder: Bins, slots: Slots, names: Names, criterion: Any, index: int) -> bool:
    """Bring every feature into bins that its rho lies in; False where room ran out: enlarge and go on.

    Lines 2 to 18 of Algorithm 1, 2 to 9 of Algorithm 2.
    """
    rows = slots.rows
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    counts = finder.counts
    near = int64(NONE)
    while counts[OF_PENDING, USED] > 0:
        slot = int64(finder.pending[counts[OF_PENDING, USED] - 1])
        if rows[slot, KEY] >= 0 and rows[slot, MARK] < NO_MARK:
            group = group_of(slots, slot)
            a = rows[slot, C0]
            b = rows[slot, C1]
            if group != NONE and finder.points[group, 0] == a and finder.points[group, 1] == b:
                rows[slot, MARK] = group
            else:
                if not has_room(finder, 1):
                    return False
                if group != NONE:
                    leave(finder, slot, group)
                near = bin_at(finder, index, rank_of(finder, a, b, n0, n1), near)
                group = find_group(finder, a, b, near, near)
                if group == NONE:
                    group = free_list.take(finder.counts[OF_GROUPS], finder.groups[:, QUEUE])
                    finder.points[group, 0] = a
                    finder.points[group, 1] = b
                    finder.groups[group, FIRST] = NONE
                    finder.groups[group, SIZE] = 0
                    attach(finder, criterion, group, near)
                join(finder, slots, names, slot, group)
        counts[OF_PENDING, USED] -= 1
    # Rounding errors of keys and limits stay below n 2^-49.
    margin = (n0 + n1) * 2.0**-48
    bin_ = int64(finder.first[index])
    while bin_ != NONE:
        rank = int64(finder.bins[bin_, RANK])
        low_limit = low_key(finder, rank, n0, n1) + margin
        high_limit = high_key(finder, rank, n0, n1) + margin
        moved = 0
        if _may_hold_less(finder, bin_, LOWS, low_limit):
            moved = _move_all(finder, slots, names, criterion, index, bin_, LOWS, low_limit)
        if moved == 0 and _may_hold_less(finder, bin_, HIGHS, high_limit):
            moved = _move_all(finder, slots, names, criterion, index, bin_, HIGHS, high_limit)
        if moved == SHORT:
            return False
        # A move may have dropped this bin and others.
        bin_ = int64(finder.first[index]) if moved else int64(finder.bins[bin_, ABOVE])
    return True


@inlined
def _may_hold_less(finder: Bins, bin_: int, tree: int, limit: float) -> bool:
    """Return whether the least key of a heap is below a limit."""
    root = int64(finder.bins[bin_, tree])
    return root != NONE and finder.keys[root] < limit


@jit
def _move_all(
    finder: Bins, slots: Slots, names: Names, criterion: Any, index: int, bin_: int, tree: int, limit: float
) -> int:
    """Move the groups whose rho has left a bin at one of its ends; return how many, or SHORT of room."""
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    rank = int64(finder.bins[bin_, RANK])
    queue = int64(NONE)
    node = int64(finder.bins[bin_, tree])
    while node != NONE:
        near = finder.keys[node] < limit
        if near:
            group = int64(finder.nodes[node, GROUP])
            rho, rest = shares(finder.points[group, 0], finder.points[group, 1], n0, n1)
            left = is_below(finder, rank, rho, rest) if tree == LOWS else is_above(finder, rank, rho, rest)
            if left:
                finder.groups[group, QUEUE] = queue
                queue = group
        node = following(finder.nodes, node, near)
    moved = 0
    while queue != NONE:
        later = int64(finder.groups[queue, QUEUE])
        if not _move(finder, slots, names, criterion, index, queue):
            return SHORT
        moved += 1
        queue = later
    return moved


@jit
def _move(finder: Bins, slots: Slots, names: Names, criterion: Any, index: int, group: int) -> bool:
    """Move a group whose rho has left its bins, or lengthen its run; False, and nothing done, without room."""
    groups = finder.groups
    bins = finder.bins
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    a = finder.points[group, 0]
    b = finder.points[group, 1]
    rho, rest = shares(a, b, n0, n1)
    old_low = int64(bins[groups[group, LOW], RANK])
    old_high = int64(bins[groups[group, HIGH], RANK])
    low = old_low
    high = old_high
    # No run starts or ends at -inf and inf, where rho is 0 and 1: there and back is one jump.
    jumps = finder.rules[WIDENS] == 0 or low == 0 or low == finder.ladder.shape[0] - 1 or rho == 0.0 or rest == 0.0
    if jumps:
        low = rank_of(finder, a, b, n0, n1)
        high = low
        if not has_room(finder, 1):
            return False
    else:
        while is_below(finder, low, rho, rest):
            low -= 1
        while is_above(finder, high, rho, rest):
            high += 1
        if not has_room(finder, old_low - low + high - old_high):
            return False
    low_bin = bin_at(finder, index, low, int64(groups[group, LOW]))
    high_bin = bin_at(finder, index, high, int64(groups[group, HIGH]))
    equal = find_group(finder, a, b, low_bin, high_bin)
    if equal != NONE and groups[equal, SIZE] >= groups[group, SIZE]:
        absorb(finder, slots, names, equal, group)
        detach(finder, group)
        free_list.give(finder.counts[OF_GROUPS], groups[:, QUEUE], group)
        return True
    if equal != NONE:
        absorb(finder, slots, names, group, equal)
    if jumps:
        detach(finder, group)
        attach(finder, criterion, group, low_bin)
    else:
        _widen(finder, criterion, index, group, low_bin, high_bin)
    if equal != NONE:
        # Only now: the bins that both are in stay in use all the while.
        detach(finder, equal)
        free_list.give(finder.counts[OF_GROUPS], groups[:, QUEUE], equal)
    return True


@inlined
def _widen(finder: Bins, criterion: Any, index: int, group: int, low_bin: int, high_bin: int) -> None:
    """Lengthen the run of a group: lines 12 to 17 of Algorithm 1."""
    groups = finder.groups
    bins = finder.bins
    a = finder.points[group, 0]
    b = finder.points[group, 1]
    hashing.take(finder.table, hash_of(finder, group), group)
    old = int64(groups[group, LOW])
    if old != low_bin:
        low = int64(bins[low_bin, RANK])
        take_node(finder, int64(groups[group, LOW_NODE]), LOWS)
        groups[group, LOW_NODE] = put_node(finder, group, low_bin, LOWS, low_key(finder, low, a, b))
        groups[group, LOW] = low_bin
        _fill(finder, criterion, index, group, low, int64(bins[old, RANK]) - 1)
    old = int64(groups[group, HIGH])
    if old != high_bin:
        high = int64(bins[high_bin, RANK])
        take_node(finder, int64(groups[group, HIGH_NODE]), HIGHS)
        groups[group, HIGH_NODE] = put_node(finder, group, high_bin, HIGHS, high_key(finder, high, a, b))
        groups[group, HIGH] = high_bin
        _fill(finder, criterion, index, group, int64(bins[old, RANK]) + 1, high)
    hashing.put(finder.table, hash_of(finder, group), group)


@inlined
def _fill(finder: Bins, criterion: Any, index: int, group: int, low: int, high: int) -> None:
    """Put a group among the tops of the bins of a range of ranks."""
    near = int64(finder.groups[group, LOW])
    for rank in range(low, high + 1):
        near = bin_at(finder, index, rank, near)
        key = top_key(finder, criterion, rank, finder.points[group, 0], finder.points[group, 1])
        node = put_node(finder, group, near, TOPS, key)
        finder.nodes[node, NEXT] = finder.groups[group, TOP]
        finder.groups[group, TOP] = node


# --- the answer


@inlined
def _is_candidate(finder: Bins, group: int, n: int, alone: int) -> bool:
    """Return whether a group splits the node (not all examples have it) and is not the one left out."""
    return group != alone and finder.points[group, 0] + finder.points[group, 1] < n


@inlined
def _least_of(finder: Bins, slots: Slots, names: Names, group: int, excluded: int) -> int:
    """Return the slot of a group that comes first in the order of features; O(its slots) where not known."""
    slot = int64(finder.groups[group, LEAST])
    if slot != NONE and slot != excluded:
        return slot
    least = int64(NONE)
    slot = int64(finder.groups[group, FIRST])
    while slot != NONE:
        if slot != excluded and (
            least == NONE or precedes(names, feature_of(slots, slot), feature_of(slots, least))
        ):
            least = slot
        slot = int64(finder.lists[slot, LATER])
    if excluded == NONE:
        finder.groups[group, LEAST] = least
    return least


@jit
def find(finder: Bins, slots: Slots, names: Names, criterion: Any, index: int, excluded: int) -> int:
    """Return the slot of the best candidate of all bins but `excluded`, NONE where there is none.

    Candidates of a bin are those with the least K, up to rounding; of equal scores the first in the order of
    features is taken. Lines 19 and 20 of Algorithm 1, 10 and 11 of Algorithm 2. O(bins).
    """
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    n = n0 + n1
    # Costs are at most 64 a unit of weight; the rest of K is a part of a score.
    slack = rounding(n0, n1) + 2.0**-40 * (n * 2.0**-20)
    alone = int64(NONE)
    if excluded != NONE:
        alone = group_of(slots, excluded)
        if finder.groups[alone, SIZE] > 1:
            alone = int64(NONE)
    best = int64(NONE)
    best_value = np.inf
    best_slot = int64(NONE)
    bin_ = int64(finder.first[index])
    while bin_ != NONE:
        node = int64(finder.bins[bin_, TOPS])
        limit = finder.keys[node]
        if not _is_candidate(finder, int64(finder.nodes[node, GROUP]), n, alone):
            limit = np.inf
            while node != NONE:
                deeper = finder.keys[node] < limit
                if deeper and _is_candidate(finder, int64(finder.nodes[node, GROUP]), n, alone):
                    limit = finder.keys[node]
                node = following(finder.nodes, node, deeper)
            node = int64(finder.bins[bin_, TOPS])
        limit += slack
        while node != NONE:
            deeper = finder.keys[node] <= limit
            group = int64(finder.nodes[node, GROUP])
            if deeper and group != best and _is_candidate(finder, group, n, alone):
                value = score(criterion, finder.points[group, 0], finder.points[group, 1], n0, n1)
                if value <= best_value:
                    slot = _least_of(finder, slots, names, group, excluded)
                    if value < best_value or precedes(
                        names, feature_of(slots, slot), feature_of(slots, best_slot)
                    ):
                        best = group
                        best_value = value
                        best_slot = slot
            node = following(finder.nodes, node, deeper)
        bin_ = int64(finder.bins[bin_, ABOVE])
    return best_slot


@jit
def rank(finder: Bins, slots: Slots, names: Names, criterion: Any, index: int, ranking: Ranking) -> None:
    """Offer all features to a ranking, which is exact: a bin knows its first only."""
    rank_chain(slots, names, criterion, index, ranking, False)
