r"""What UPDENT and UPDGINI of paper 000 share: features in bins of rho, and in each bin three heaps.

The score of a feature j splits into a part K that only its own counts (a, b) = (c_j10, c_j11) change, and
a part that all features of a bin have in common, if rho = c_j01 / n_j0, the label's share where the feature
is absent, is taken for the bin's mu (Propositions 4.1 and 5.1). So the least K of each bin names the
candidates, one of which scores at most (1 + alpha) times the best. Whether rho has left a bin [s, t] is told
by own counts on one side and totals on the other, too: rho < s iff s n_j1 - c_j11 < s n - c_1 (Proposition 4.3).

Features with equal counts in equal bins have equal keys, so a *group* of them is one element of the heaps.
Of a million features most are rare and share a few thousand points::

    index -> bin -2 <-> bin -1 <-> bin 1      (those that hold something, by rank)
               |          |          |
             tops       tops       tops       heaps by K: every group in every bin of its run
             lows       lows       lows       heaps by distance to s: every group in its lowest bin
             highs      highs      highs      heaps by distance to t: every group in its highest bin

    group = (a, b, lowest bin, highest bin) -> slots with these counts

Counting only notes which slots were touched; `settle`, after every event, puts them into the right groups and
then moves the groups whose rho has left their bins. A touched slot whose counts are what they were (a refused
delete) stays where it is, so that a refusal changes nothing.

Floats decide by themselves only whom to look at: limits carry a margin for rounding, and what lies within
is decided by rho itself, or by the score.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core import hashing
from algorithms.core.arrays import Float64s, Int32s, Int64s, extended, int64
from algorithms.core.criteria import CRITERIA, impurity, rounding, score
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names, precedes
from algorithms.core.stored import stored
from algorithms.splits.exact import SHORT
from algorithms.splits.heaps import LEFT, PARENT, RIGHT, added, following, taken
from algorithms.splits.ranking import Ranking
from algorithms.splits.scan import overfull as overfull
from algorithms.splits.scan import rank_chain
from algorithms.splits.slots import C0, C1, FEATURES, KEY, MARK, N0, N1, NO_MARK, NONE, Slots, feature_of

# Columns of `Bins.ladder`. Ranks ascend with rho. From rank MIDDLE on bins are mirrored: they speak of 1 - rho,
# the share of label 0, which floats can tell from 0 where rho itself is 1 to them.
START = 0  # a feature is placed into the bin with the nearest start at or below its share
LOWER, UPPER = 1, 2  # ends of the interval of shares
COST0, COST1 = 3, 4  # K = h(a, b) - COST0 a - COST1 b
LADDER_COLUMNS = 5

# `Bins.rules`.
MIDDLE = 0
WIDENS = 1  # 1: a feature that leaves its bin stays there as well; 0: it moves

# Columns of `Bins.bins`.
RANK, INDEX, BELOW, ABOVE = 0, 1, 2, 3  # ABOVE links the free ones, too
TOPS, LOWS, HIGHS = 4, 5, 6  # roots

# Columns of `Bins.groups`.
LOW, HIGH = 0, 1  # the bins at the ends of the run
TOP = 2  # the group's first node among the tops, the others follow it through NEXT
LOW_NODE, HIGH_NODE = 3, 4
FIRST, SIZE = 5, 6  # the slots, linked through `lists`
LEAST = 7  # the slot of the first feature in order, or NONE: not known
QUEUE = 8  # the next group that has to move; links the free ones, too

# Columns of `Bins.nodes` after those of heaps.
GROUP, BIN, NEXT = 3, 4, 5  # NEXT links the free ones, too

# Columns of `Bins.lists`.
LATER, EARLIER = 0, 1

# Rows and columns of `Bins.counts`.
OF_BINS, OF_GROUPS, OF_NODES, OF_PENDING = 0, 1, 2, 3
USED, EVER, FREE = 0, 1, 2  # in use; ever used; first of the free list

_TOUCHED = -3  # minus a mark (a group, or NO_MARK): the mark of a slot that is pending


@stored(
    *("ladder", "rules", "first", "bins", "points", "groups", "table"),
    *("keys", "nodes", "lists", "pending", "counts"),
)
class Bins(NamedTuple):
    """The bins, groups and heaps of all indexes of a pool."""

    ladder: Float64s  # float64[ranks, 5], the intervals of the paper
    rules: Int64s  # int64[2]
    first: Int32s  # int32[indexes], the lowest bin that holds something, or NONE
    bins: Int32s  # int32[capacity, 7]
    points: Int64s  # int64[groups, 2], the counts (a, b)
    groups: Int32s  # int32[groups, 9]
    table: Int64s  # int64[power of two], of groups, see hashing.py
    keys: Float64s  # float64[nodes]
    nodes: Int32s  # int32[nodes, 6]
    lists: Int32s  # int32[slots, 2], neighbours in the group
    pending: Int32s  # int32[...], slots touched since the last settling
    counts: Int64s  # int64[4, 3]


# --- intervals


@inlined
def _shares(a: int, b: int, n0: int, n1: int) -> tuple[float, float]:
    """Return rho and 1 - rho: the labels' shares where the feature is absent; 0 and 1 where it never is."""
    absent0 = n0 - a
    absent1 = n1 - b
    absent = absent0 + absent1
    if absent == 0:
        return 0.0, 1.0
    return absent1 / absent, absent0 / absent


@inlined
def rank_of(finder: Bins, a: int, b: int, n0: int, n1: int) -> int:
    """Return the rank of the bin for a feature: ind(rho)."""
    ladder = finder.ladder
    middle = finder.rules[MIDDLE]
    rho, rest = _shares(a, b, n0, n1)
    if middle == ladder.shape[0] or n1 - b < n0 - a or rho == 0.0:
        low = int64(0)
        high = middle - 1
        while low < high:
            half = (low + high + 1) >> 1
            if ladder[half, START] <= rho:
                low = half
            else:
                high = half - 1
        return low
    low = middle
    high = int64(ladder.shape[0] - 1)
    while low < high:
        half = (low + high) >> 1
        if ladder[half, START] <= rest:
            high = half
        else:
            low = half + 1
    return low


@inlined
def _is_below(finder: Bins, rank: int, rho: float, rest: float) -> bool:
    """Return whether rho is below the bin."""
    if rank >= finder.rules[MIDDLE]:
        return rest > finder.ladder[rank, UPPER]
    return rho < finder.ladder[rank, LOWER]


@inlined
def _is_above(finder: Bins, rank: int, rho: float, rest: float) -> bool:
    """Return whether rho is above the bin."""
    if rank >= finder.rules[MIDDLE]:
        return rest < finder.ladder[rank, LOWER]
    return rho > finder.ladder[rank, UPPER]


@inlined
def _low_key(finder: Bins, rank: int, a: int, b: int) -> float:
    """Return a linear form that for (a, b) is less than for the totals iff rho is below the bin."""
    if rank >= finder.rules[MIDDLE]:
        return a - finder.ladder[rank, UPPER] * (a + b)
    return finder.ladder[rank, LOWER] * (a + b) - b


@inlined
def _high_key(finder: Bins, rank: int, a: int, b: int) -> float:
    """Return a linear form that for (a, b) is less than for the totals iff rho is above the bin."""
    if rank >= finder.rules[MIDDLE]:
        return finder.ladder[rank, LOWER] * (a + b) - a
    return b - finder.ladder[rank, UPPER] * (a + b)


@inlined
def _top_key(finder: Bins, criterion: Any, rank: int, a: int, b: int) -> float:
    """Return K(a, b, mu)."""
    costs = finder.ladder[rank, COST0] * a + finder.ladder[rank, COST1] * b
    return impurity(criterion, a, b) - costs * 2.0**-20


# --- the pools of bins, groups and nodes


@inlined
def _new(finder: Bins, links: Int32s, column: int, kind: int) -> int:
    """Return a row that is not in use; there must be one."""
    counts = finder.counts
    row = counts[kind, FREE]
    if row != NONE:
        counts[kind, FREE] = links[row, column]
    else:
        row = counts[kind, EVER]
        counts[kind, EVER] += 1
    counts[kind, USED] += 1
    return row


@inlined
def _give_back(finder: Bins, links: Int32s, column: int, kind: int, row: int) -> None:
    counts = finder.counts
    links[row, column] = counts[kind, FREE]
    counts[kind, FREE] = row
    counts[kind, USED] -= 1


@inlined
def _room(finder: Bins, more: int) -> bool:
    """Return whether a group can be put into so many bins that may not exist yet."""
    counts = finder.counts
    return (
        finder.bins.shape[0] - counts[OF_BINS, USED] >= more
        and finder.groups.shape[0] > counts[OF_GROUPS, USED]
        and finder.nodes.shape[0] - counts[OF_NODES, USED] >= more + 2
    )


@jit
def _bin_at(finder: Bins, index: int, rank: int, near: int) -> int:
    """Return the bin of a rank, made where there is none, found from a near one (NONE: from the lowest)."""
    bins = finder.bins
    at = near if near != NONE else int64(finder.first[index])
    below = int64(NONE)
    above = int64(NONE)
    if at != NONE:
        while bins[at, RANK] > rank and bins[at, BELOW] != NONE:
            at = int64(bins[at, BELOW])
        while bins[at, RANK] < rank and bins[at, ABOVE] != NONE and bins[bins[at, ABOVE], RANK] <= rank:
            at = int64(bins[at, ABOVE])
        if bins[at, RANK] == rank:
            return at
        if bins[at, RANK] < rank:
            below = at
            above = int64(bins[at, ABOVE])
        else:
            above = at
    bin_ = _new(finder, bins, ABOVE, OF_BINS)
    bins[bin_, RANK] = rank
    bins[bin_, INDEX] = index
    bins[bin_, BELOW] = below
    bins[bin_, ABOVE] = above
    bins[bin_, TOPS] = NONE
    bins[bin_, LOWS] = NONE
    bins[bin_, HIGHS] = NONE
    if below != NONE:
        bins[below, ABOVE] = bin_
    else:
        finder.first[index] = bin_
    if above != NONE:
        bins[above, BELOW] = bin_
    return bin_


@inlined
def _drop_bin(finder: Bins, bin_: int) -> None:
    """Give back a bin that has become empty."""
    bins = finder.bins
    below = int64(bins[bin_, BELOW])
    above = int64(bins[bin_, ABOVE])
    if below != NONE:
        bins[below, ABOVE] = above
    else:
        finder.first[bins[bin_, INDEX]] = above
    if above != NONE:
        bins[above, BELOW] = below
    _give_back(finder, bins, ABOVE, OF_BINS, bin_)


@inlined
def _hash(a: int, b: int, low: int, high: int) -> int:
    # Counts of whole examples end in 20 zeros: fold what is above them down.
    a = (a ^ (a >> 20) ^ (a >> 40)) & 0xFFFFFFFF
    b = (b ^ (b >> 20) ^ (b >> 40)) & 0xFFFFFFFF
    return hashing.mix(hashing.mix(a, b), ((low << 16) ^ high) & 0xFFFFFFFF)


@inlined
def _hash_of(finder: Bins, group: int) -> int:
    low = int64(finder.groups[group, LOW])
    high = int64(finder.groups[group, HIGH])
    return _hash(finder.points[group, 0], finder.points[group, 1], low, high)


@inlined
def _lookup(finder: Bins, a: int, b: int, low: int, high: int) -> int:
    """Return the group (a, b) in a run of bins, or NONE."""
    table = finder.table
    hashed = _hash(a, b, low, high)
    mask = table.size - 1
    at = hashed & mask
    while True:
        entry = table[at]
        if entry == 0:
            return NONE
        if hashing.entry_hash(entry) == hashed:
            group = hashing.entry_row(entry)
            if (
                finder.points[group, 0] == a
                and finder.points[group, 1] == b
                and finder.groups[group, LOW] == low
                and finder.groups[group, HIGH] == high
            ):
                return group
        at = (at + 1) & mask


# --- groups in heaps


@inlined
def _put_node(finder: Bins, group: int, bin_: int, tree: int, key: float) -> int:
    """Return a new node of a group, in a heap of a bin."""
    nodes = finder.nodes
    node = _new(finder, nodes, NEXT, OF_NODES)
    finder.keys[node] = key
    nodes[node, GROUP] = group
    nodes[node, BIN] = bin_
    nodes[node, NEXT] = NONE
    finder.bins[bin_, tree] = added(finder.keys, nodes, int64(finder.bins[bin_, tree]), node)
    return node


@inlined
def _take_node(finder: Bins, node: int, tree: int) -> None:
    bin_ = int64(finder.nodes[node, BIN])
    finder.bins[bin_, tree] = taken(finder.keys, finder.nodes, int64(finder.bins[bin_, tree]), node)
    _give_back(finder, finder.nodes, NEXT, OF_NODES, node)


@jit
def _attach(finder: Bins, criterion: Any, group: int, bin_: int) -> None:
    """Put a group that is nowhere into one bin."""
    groups = finder.groups
    a = finder.points[group, 0]
    b = finder.points[group, 1]
    rank = int64(finder.bins[bin_, RANK])
    groups[group, LOW] = bin_
    groups[group, HIGH] = bin_
    groups[group, TOP] = _put_node(finder, group, bin_, TOPS, _top_key(finder, criterion, rank, a, b))
    groups[group, LOW_NODE] = _put_node(finder, group, bin_, LOWS, _low_key(finder, rank, a, b))
    groups[group, HIGH_NODE] = _put_node(finder, group, bin_, HIGHS, _high_key(finder, rank, a, b))
    hashing.put(finder.table, _hash_of(finder, group), group)


@jit
def _detach(finder: Bins, group: int) -> None:
    """Take a group out of all its bins; those that become empty go."""
    groups = finder.groups
    hashing.take(finder.table, _hash_of(finder, group), group)
    _take_node(finder, int64(groups[group, LOW_NODE]), LOWS)
    _take_node(finder, int64(groups[group, HIGH_NODE]), HIGHS)
    node = int64(groups[group, TOP])
    while node != NONE:
        later = int64(finder.nodes[node, NEXT])
        bin_ = int64(finder.nodes[node, BIN])
        _take_node(finder, node, TOPS)
        if finder.bins[bin_, TOPS] == NONE:
            _drop_bin(finder, bin_)
        node = later


@inlined
def _group_of(slots: Slots, slot: int) -> int:
    """Return the group of a slot, whether that is pending or not, or NONE."""
    mark = slots.rows[slot, MARK]
    return mark if mark >= NO_MARK else _TOUCHED - mark


@inlined
def _join(finder: Bins, slots: Slots, names: Names, slot: int, group: int) -> None:
    """Put a slot into a group."""
    groups = finder.groups
    lists = finder.lists
    first = int64(groups[group, FIRST])
    lists[slot, LATER] = first
    lists[slot, EARLIER] = NONE
    if first != NONE:
        lists[first, EARLIER] = slot
    least = int64(groups[group, LEAST])
    if groups[group, SIZE] == 0 or (
        least != NONE and precedes(names, feature_of(slots, slot), feature_of(slots, least))
    ):
        groups[group, LEAST] = slot
    groups[group, FIRST] = slot
    groups[group, SIZE] += 1
    slots.rows[slot, MARK] = group


@inlined
def _leave(finder: Bins, slots: Slots, slot: int, group: int) -> None:
    """Take a slot out of its group; a group that becomes empty goes."""
    groups = finder.groups
    lists = finder.lists
    later = int64(lists[slot, LATER])
    earlier = int64(lists[slot, EARLIER])
    if later != NONE:
        lists[later, EARLIER] = earlier
    if earlier != NONE:
        lists[earlier, LATER] = later
    else:
        groups[group, FIRST] = later
    if groups[group, LEAST] == slot:
        groups[group, LEAST] = NONE
    groups[group, SIZE] -= 1
    if groups[group, SIZE] == 0:
        _detach(finder, group)
        _give_back(finder, groups, QUEUE, OF_GROUPS, group)


@jit
def _absorb(finder: Bins, slots: Slots, names: Names, group: int, other: int) -> None:
    """Let the slots of one group come to another, the larger one. O(those that come)."""
    groups = finder.groups
    lists = finder.lists
    first = int64(groups[other, FIRST])
    last = first
    slot = first
    while slot != NONE:
        slots.rows[slot, MARK] = group
        last = slot
        slot = int64(lists[slot, LATER])
    lists[last, LATER] = groups[group, FIRST]
    lists[groups[group, FIRST], EARLIER] = last
    groups[group, FIRST] = first
    groups[group, SIZE] += groups[other, SIZE]
    mine = int64(groups[group, LEAST])
    theirs = int64(groups[other, LEAST])
    if mine == NONE or theirs == NONE:
        groups[group, LEAST] = NONE
    elif precedes(names, feature_of(slots, theirs), feature_of(slots, mine)):
        groups[group, LEAST] = theirs


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
        slots.rows[slot, MARK] = _TOUCHED - mark
        counts = finder.counts
        finder.pending[counts[OF_PENDING, USED]] = slot
        counts[OF_PENDING, USED] += 1


@inlined
def taking(finder: Bins, slots: Slots, criterion: Any, index: int, label: int, weight: int) -> None:
    """Nothing is done before the event is over."""


@jit
def removing(finder: Bins, slots: Slots, index: int, slot: int) -> None:
    """Take a slot that is about to be given back out of its group."""
    group = _group_of(slots, slot)
    if group != NONE:
        _leave(finder, slots, slot, group)


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
            group = _group_of(slots, slot)
            a = rows[slot, C0]
            b = rows[slot, C1]
            if group != NONE and finder.points[group, 0] == a and finder.points[group, 1] == b:
                rows[slot, MARK] = group
            else:
                if not _room(finder, 1):
                    return False
                if group != NONE:
                    _leave(finder, slots, slot, group)
                near = _bin_at(finder, index, rank_of(finder, a, b, n0, n1), near)
                group = _lookup(finder, a, b, near, near)
                if group == NONE:
                    group = _new(finder, finder.groups, QUEUE, OF_GROUPS)
                    finder.points[group, 0] = a
                    finder.points[group, 1] = b
                    finder.groups[group, FIRST] = NONE
                    finder.groups[group, SIZE] = 0
                    _attach(finder, criterion, group, near)
                _join(finder, slots, names, slot, group)
        counts[OF_PENDING, USED] -= 1
    # Rounding errors of keys and limits stay below n 2^-49.
    margin = (n0 + n1) * 2.0**-48
    bin_ = int64(finder.first[index])
    while bin_ != NONE:
        rank = int64(finder.bins[bin_, RANK])
        low_limit = _low_key(finder, rank, n0, n1) + margin
        high_limit = _high_key(finder, rank, n0, n1) + margin
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
            rho, rest = _shares(finder.points[group, 0], finder.points[group, 1], n0, n1)
            left = _is_below(finder, rank, rho, rest) if tree == LOWS else _is_above(finder, rank, rho, rest)
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
    rho, rest = _shares(a, b, n0, n1)
    old_low = int64(bins[groups[group, LOW], RANK])
    old_high = int64(bins[groups[group, HIGH], RANK])
    low = old_low
    high = old_high
    # No run starts or ends at -inf and inf, where rho is 0 and 1: there and back is one jump.
    jumps = finder.rules[WIDENS] == 0 or low == 0 or low == finder.ladder.shape[0] - 1 or rho == 0.0 or rest == 0.0
    if jumps:
        low = rank_of(finder, a, b, n0, n1)
        high = low
        if not _room(finder, 1):
            return False
    else:
        while _is_below(finder, low, rho, rest):
            low -= 1
        while _is_above(finder, high, rho, rest):
            high += 1
        if not _room(finder, old_low - low + high - old_high):
            return False
    low_bin = _bin_at(finder, index, low, int64(groups[group, LOW]))
    high_bin = _bin_at(finder, index, high, int64(groups[group, HIGH]))
    twin = _lookup(finder, a, b, low_bin, high_bin)
    if twin != NONE and groups[twin, SIZE] >= groups[group, SIZE]:
        _absorb(finder, slots, names, twin, group)
        _detach(finder, group)
        _give_back(finder, groups, QUEUE, OF_GROUPS, group)
        return True
    if twin != NONE:
        _absorb(finder, slots, names, group, twin)
    if jumps:
        _detach(finder, group)
        _attach(finder, criterion, group, low_bin)
    else:
        _widen(finder, criterion, index, group, low_bin, high_bin)
    if twin != NONE:
        # Only now: the bins that both are in stay in use all the while.
        _detach(finder, twin)
        _give_back(finder, groups, QUEUE, OF_GROUPS, twin)
    return True


@inlined
def _widen(finder: Bins, criterion: Any, index: int, group: int, low_bin: int, high_bin: int) -> None:
    """Lengthen the run of a group: lines 12 to 17 of Algorithm 1."""
    groups = finder.groups
    bins = finder.bins
    a = finder.points[group, 0]
    b = finder.points[group, 1]
    hashing.take(finder.table, _hash_of(finder, group), group)
    old = int64(groups[group, LOW])
    if old != low_bin:
        low = int64(bins[low_bin, RANK])
        _take_node(finder, int64(groups[group, LOW_NODE]), LOWS)
        groups[group, LOW_NODE] = _put_node(finder, group, low_bin, LOWS, _low_key(finder, low, a, b))
        groups[group, LOW] = low_bin
        _fill(finder, criterion, index, group, low, int64(bins[old, RANK]) - 1)
    old = int64(groups[group, HIGH])
    if old != high_bin:
        high = int64(bins[high_bin, RANK])
        _take_node(finder, int64(groups[group, HIGH_NODE]), HIGHS)
        groups[group, HIGH_NODE] = _put_node(finder, group, high_bin, HIGHS, _high_key(finder, high, a, b))
        groups[group, HIGH] = high_bin
        _fill(finder, criterion, index, group, int64(bins[old, RANK]) + 1, high)
    hashing.put(finder.table, _hash_of(finder, group), group)


@inlined
def _fill(finder: Bins, criterion: Any, index: int, group: int, low: int, high: int) -> None:
    """Put a group among the tops of the bins of a range of ranks."""
    near = int64(finder.groups[group, LOW])
    for rank in range(low, high + 1):
        near = _bin_at(finder, index, rank, near)
        key = _top_key(finder, criterion, rank, finder.points[group, 0], finder.points[group, 1])
        node = _put_node(finder, group, near, TOPS, key)
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
        alone = _group_of(slots, excluded)
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


# --- the arrays


def make(indexes: int, capacity: int, ladder: Float64s, middle: int, *, widens: bool) -> Bins:
    """Make the finder for so many indexes and slots.

    Parameters
    ----------
    ladder : Float64s
        float64[ranks, 5], the intervals by ascending rho.
    middle : int
        From this rank on they are mirrored.
    widens : bool
        Whether a feature may lie in a run of bins.
    """
    counts = np.zeros((4, 3), np.int64)
    counts[:, FREE] = NONE
    return Bins(
        ladder=ladder,
        rules=np.array([middle, widens], np.int64),
        first=np.full(indexes, NONE, np.int32),
        bins=np.zeros((16, 7), np.int32),
        points=np.zeros((16, 2), np.int64),
        groups=np.zeros((16, 9), np.int32),
        table=hashing.table_for(16),
        keys=np.zeros(64, np.float64),
        nodes=np.zeros((64, 6), np.int32),
        lists=np.zeros((capacity, 2), np.int32),
        pending=np.zeros(16, np.int32),
        counts=counts,
    )


def grown(finder: Bins, indexes: int, capacity: int) -> Bins:
    """Return the finder with room for more indexes and slots."""
    before = len(finder.first)
    more = finder._replace(
        first=extended(finder.first, max(indexes, before)),
        lists=extended(finder.lists, max(capacity, len(finder.lists))),
    )
    more.first[before:] = NONE
    return more


def enlarged(finder: Bins) -> Bins:
    """Return the finder with twice the room for what is more than half full; for everything where nothing is."""
    sizes = [len(array) for array in (finder.bins, finder.groups, finder.nodes, finder.pending)]
    short = [2 * used > size for used, size in zip(finder.counts[:, USED].tolist(), sizes, strict=True)]
    bins, groups, nodes, pending = (
        2 * size if more or not any(short) else size for size, more in zip(sizes, short, strict=True)
    )
    return finder._replace(
        bins=extended(finder.bins, bins),
        points=extended(finder.points, groups),
        groups=extended(finder.groups, groups),
        table=hashing.grown(finder.table, groups),
        keys=extended(finder.keys, nodes),
        nodes=extended(finder.nodes, nodes),
        pending=extended(finder.pending, pending),
    )


def trees(finder: Bins, index: int) -> int:
    """Return how many bins of an index hold something."""
    return len(_bins_of(finder, index))


def check(finder: Bins, slots: Slots) -> None:
    """Raise AssertionError unless every invariant holds: bins, heaps, keys, groups. O(everything)."""
    criterion = CRITERIA["entropy" if finder.rules[WIDENS] else "gini"][2](1)
    in_use: list[set[int]] = [set(), set(), set()]  # bins, groups, nodes
    for index in range(len(finder.first)):
        n0, n1 = (int(total) for total in slots.heads[index, [N0, N1]])
        bins = _bins_of(finder, index)
        ranks = finder.bins[bins, RANK].tolist()
        assert ranks == sorted(set(ranks)), "bins are out of order"
        in_use[OF_BINS].update(bins)
        held: list[dict[int, int]] = []  # of each kind of heap: node -> group
        for tree in (TOPS, LOWS, HIGHS):
            nodes = [node for bin_ in bins for node in _nodes_of(finder, bin_, tree)]
            held.append({node: int(finder.nodes[node, GROUP]) for node in nodes})
            assert not in_use[OF_NODES].intersection(nodes), "a node is in two heaps"
            in_use[OF_NODES].update(nodes)
        assert all(finder.bins[bin_, TOPS] != NONE for bin_ in bins), "an empty bin was kept"
        members: list[int] = []
        for group in sorted(set(held[0].values())):
            in_use[OF_GROUPS].add(group)
            a, b = (int(count) for count in finder.points[group])
            low_bin, high_bin, top, low_node, high_node = finder.groups[group, : HIGH_NODE + 1].tolist()
            low, high = (int(finder.bins[bin_, RANK]) for bin_ in (low_bin, high_bin))
            assert _lookup(finder, a, b, low_bin, high_bin) == group, "a group is not found, or twice there"
            rho, rest = _shares(a, b, n0, n1)
            assert not _is_below(finder, low, rho, rest), "rho is below the bins"
            assert not _is_above(finder, high, rho, rest), "rho is above the bins"
            if not finder.rules[WIDENS] or {low, high} & {0, len(finder.ladder) - 1}:
                assert low == high, "a run where one bin is all"
            assert finder.nodes[low_node, BIN] == low_bin
            assert finder.nodes[high_node, BIN] == high_bin
            assert finder.keys[low_node] == _low_key(finder, low, a, b)
            assert finder.keys[high_node] == _high_key(finder, high, a, b)
            tops = []
            while top != NONE:
                rank = int(finder.bins[finder.nodes[top, BIN], RANK])
                tops.append(rank)
                assert finder.keys[top] == _top_key(finder, criterion, rank, a, b), "a key is stale"
                assert held[0].pop(top) == group
                top = int(finder.nodes[top, NEXT])
            assert sorted(tops) == list(range(low, high + 1)), "a group is not in all bins of its run"
            assert held[1].pop(low_node) == group
            assert held[2].pop(high_node) == group
            before, slot, first = NONE, int(finder.groups[group, FIRST]), len(members)
            while slot != NONE:
                assert slots.rows[slot, [C0, C1]].tolist() == [a, b], "a slot is in a group of other counts"
                assert slots.rows[slot, KEY] >> 32 == index
                assert _group_of(slots, slot) == group
                assert finder.lists[slot, EARLIER] == before
                members.append(slot)
                before, slot = slot, int(finder.lists[slot, LATER])
            assert len(members) - first == finder.groups[group, SIZE] > 0
            assert finder.groups[group, LEAST] in [NONE, *members[first:]]
        assert held == [{}, {}, {}], "a heap holds what has gone"
        assert len(set(members)) == slots.heads[index, FEATURES], "a slot is in no group, or in two"
    assert np.count_nonzero(finder.table) == len(in_use[OF_GROUPS])
    links = ((finder.bins, ABOVE), (finder.groups, QUEUE), (finder.nodes, NEXT))
    for kind, (array, column) in enumerate(links):
        free, row = [], int(finder.counts[kind, FREE])
        while row != NONE:
            free.append(row)
            row = int(array[row, column])
        assert sorted([*free, *in_use[kind]]) == list(range(int(finder.counts[kind, EVER]))), "a row is lost"
        assert finder.counts[kind, USED] == len(in_use[kind])


def _bins_of(finder: Bins, index: int) -> list[int]:
    """Return the bins of an index, from the lowest."""
    found: list[int] = []
    bin_ = int(finder.first[index])
    while bin_ != NONE:
        assert finder.bins[bin_, BELOW] == (found[-1] if found else NONE)
        assert finder.bins[bin_, INDEX] == index
        found.append(bin_)
        bin_ = int(finder.bins[bin_, ABOVE])
    return found


def _nodes_of(finder: Bins, bin_: int, tree: int) -> list[int]:
    """Return the nodes of a heap, and assert that it is one."""
    found = []
    todo = [(int(finder.bins[bin_, tree]), NONE)]
    while todo:
        node, above = todo.pop()
        if node == NONE:
            continue
        assert finder.nodes[node, PARENT] == above
        assert finder.nodes[node, BIN] == bin_
        assert above == NONE or finder.keys[above] <= finder.keys[node], "a child is before its parent"
        found.append(node)
        todo += [(int(finder.nodes[node, side]), node) for side in (LEFT, RIGHT)]
    return found
