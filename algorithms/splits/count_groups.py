r"""Count groups in bins: features with equal counts in equal bins of rho, and in each bin three heaps of groups.

Features with equal counts in equal bins have equal keys, so a *group* of them is one element of the heaps.
Of a million features most are rare and share a few thousand points::

    index -> bin -2 <-> bin -1 <-> bin 1      (those that hold something, by rank)
               |          |          |
             tops       tops       tops       heaps by K: every group in every bin of its run
             lows       lows       lows       heaps by distance to s: every group in its lowest bin
             highs      highs      highs      heaps by distance to t: every group in its highest bin

    group = (a, b, lowest bin, highest bin) -> slots with these counts

What bins are for, and when groups move between them, is in bins.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core import free_list, hashing
from algorithms.core.arrays import Float64s, Int32s, Int64s, extended, int64
from algorithms.core.criteria import impurity, make_criterion
from algorithms.core.free_list import USED as USED
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names, precedes
from algorithms.core.stored import stored
from algorithms.splits.heaps import LEFT, PARENT, RIGHT, added, taken
from algorithms.splits.scan import overfull as overfull
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

# Rows of `Bins.counts`.
OF_BINS, OF_GROUPS, OF_NODES, OF_PENDING = 0, 1, 2, 3

TOUCHED = -3  # minus a mark (a group, or NO_MARK): the mark of a slot that is pending


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
    table: Int64s  # int64[places], of groups, see hashing.py
    keys: Float64s  # float64[nodes]
    nodes: Int32s  # int32[nodes, 6]
    lists: Int32s  # int32[slots, 2], neighbours in the group
    pending: Int32s  # int32[...], slots touched since the last settling
    counts: Int64s  # int64[4, 3], free lists of bins, groups and nodes; of `pending` the first alone


# --- intervals


@inlined
def shares(a: int, b: int, n0: int, n1: int) -> tuple[float, float]:
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
    rho, rest = shares(a, b, n0, n1)
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
def is_below(finder: Bins, rank: int, rho: float, rest: float) -> bool:
    """Return whether rho is below the bin."""
    if rank >= finder.rules[MIDDLE]:
        return rest > finder.ladder[rank, UPPER]
    return rho < finder.ladder[rank, LOWER]


@inlined
def is_above(finder: Bins, rank: int, rho: float, rest: float) -> bool:
    """Return whether rho is above the bin."""
    if rank >= finder.rules[MIDDLE]:
        return rest < finder.ladder[rank, LOWER]
    return rho > finder.ladder[rank, UPPER]


@inlined
def low_key(finder: Bins, rank: int, a: int, b: int) -> float:
    """Return a linear form that for (a, b) is less than for the totals iff rho is below the bin."""
    if rank >= finder.rules[MIDDLE]:
        return a - finder.ladder[rank, UPPER] * (a + b)
    return finder.ladder[rank, LOWER] * (a + b) - b


@inlined
def high_key(finder: Bins, rank: int, a: int, b: int) -> float:
    """Return a linear form that for (a, b) is less than for the totals iff rho is above the bin."""
    if rank >= finder.rules[MIDDLE]:
        return finder.ladder[rank, LOWER] * (a + b) - a
    return b - finder.ladder[rank, UPPER] * (a + b)


@inlined
def top_key(finder: Bins, criterion: Any, rank: int, a: int, b: int) -> float:
    """Return K(a, b, mu)."""
    costs = finder.ladder[rank, COST0] * a + finder.ladder[rank, COST1] * b
    return impurity(criterion, a, b) - costs * 2.0**-20


# --- the pools of bins, groups and nodes


@inlined
def has_room(finder: Bins, more: int) -> bool:
    """Return whether a group can be put into so many bins that may not exist yet."""
    counts = finder.counts
    return (
        finder.bins.shape[0] - counts[OF_BINS, USED] >= more
        and finder.groups.shape[0] > counts[OF_GROUPS, USED]
        and finder.nodes.shape[0] - counts[OF_NODES, USED] >= more + 2
    )


@jit
def bin_at(finder: Bins, index: int, rank: int, near: int) -> int:
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
    bin_ = free_list.take(finder.counts[OF_BINS], bins[:, ABOVE])
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
    free_list.give(finder.counts[OF_BINS], bins[:, ABOVE], bin_)


@inlined
def _hash(a: int, b: int, low: int, high: int) -> int:
    # Counts of whole examples end in 20 zeros: fold what is above them down.
    a = (a ^ (a >> 20) ^ (a >> 40)) & 0xFFFFFFFF
    b = (b ^ (b >> 20) ^ (b >> 40)) & 0xFFFFFFFF
    return hashing.mix(hashing.mix(a, b), ((low << 16) ^ high) & 0xFFFFFFFF)


@inlined
def hash_of(finder: Bins, group: int) -> int:
    """Return the hash of a group: of its counts and its run of bins."""
    low = int64(finder.groups[group, LOW])
    high = int64(finder.groups[group, HIGH])
    return _hash(finder.points[group, 0], finder.points[group, 1], low, high)


@inlined
def find_group(finder: Bins, a: int, b: int, low: int, high: int) -> int:
    """Return the group (a, b) in a run of bins, or NONE."""
    table = finder.table
    hashed = _hash(a, b, low, high)
    at = hashing.home(table, hashed)
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
        at = hashing.after(table, at)


# --- groups in heaps


@inlined
def put_node(finder: Bins, group: int, bin_: int, tree: int, key: float) -> int:
    """Return a new node of a group, in a heap of a bin."""
    nodes = finder.nodes
    node = free_list.take(finder.counts[OF_NODES], nodes[:, NEXT])
    finder.keys[node] = key
    nodes[node, GROUP] = group
    nodes[node, BIN] = bin_
    nodes[node, NEXT] = NONE
    finder.bins[bin_, tree] = added(finder.keys, nodes, int64(finder.bins[bin_, tree]), node)
    return node


@inlined
def take_node(finder: Bins, node: int, tree: int) -> None:
    """Take a node out of the heap that it is in, and free it."""
    bin_ = int64(finder.nodes[node, BIN])
    finder.bins[bin_, tree] = taken(finder.keys, finder.nodes, int64(finder.bins[bin_, tree]), node)
    free_list.give(finder.counts[OF_NODES], finder.nodes[:, NEXT], node)


@jit
def attach(finder: Bins, criterion: Any, group: int, bin_: int) -> None:
    """Put a group that is nowhere into one bin."""
    groups = finder.groups
    a = finder.points[group, 0]
    b = finder.points[group, 1]
    rank = int64(finder.bins[bin_, RANK])
    groups[group, LOW] = bin_
    groups[group, HIGH] = bin_
    groups[group, TOP] = put_node(finder, group, bin_, TOPS, top_key(finder, criterion, rank, a, b))
    groups[group, LOW_NODE] = put_node(finder, group, bin_, LOWS, low_key(finder, rank, a, b))
    groups[group, HIGH_NODE] = put_node(finder, group, bin_, HIGHS, high_key(finder, rank, a, b))
    hashing.put(finder.table, hash_of(finder, group), group)


@jit
def detach(finder: Bins, group: int) -> None:
    """Take a group out of all its bins; those that become empty go."""
    groups = finder.groups
    hashing.take(finder.table, hash_of(finder, group), group)
    take_node(finder, int64(groups[group, LOW_NODE]), LOWS)
    take_node(finder, int64(groups[group, HIGH_NODE]), HIGHS)
    node = int64(groups[group, TOP])
    while node != NONE:
        later = int64(finder.nodes[node, NEXT])
        bin_ = int64(finder.nodes[node, BIN])
        take_node(finder, node, TOPS)
        if finder.bins[bin_, TOPS] == NONE:
            _drop_bin(finder, bin_)
        node = later


@inlined
def group_of(slots: Slots, slot: int) -> int:
    """Return the group of a slot, whether that is pending or not, or NONE."""
    mark = slots.rows[slot, MARK]
    return mark if mark >= NO_MARK else TOUCHED - mark


@inlined
def join(finder: Bins, slots: Slots, names: Names, slot: int, group: int) -> None:
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
def leave(finder: Bins, slot: int, group: int) -> None:
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
        detach(finder, group)
        free_list.give(finder.counts[OF_GROUPS], groups[:, QUEUE], group)


@jit
def absorb(finder: Bins, slots: Slots, names: Names, group: int, other: int) -> None:
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
    counts[:, free_list.FREE] = NONE
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
    criterion = make_criterion("entropy" if finder.rules[WIDENS] else "gini", 1)
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
            assert find_group(finder, a, b, low_bin, high_bin) == group, "a group is not found, or twice there"
            rho, rest = shares(a, b, n0, n1)
            assert not is_below(finder, low, rho, rest), "rho is below the bins"
            assert not is_above(finder, high, rho, rest), "rho is above the bins"
            if not finder.rules[WIDENS] or {low, high} & {0, len(finder.ladder) - 1}:
                assert low == high, "a run where one bin is all"
            assert finder.nodes[low_node, BIN] == low_bin
            assert finder.nodes[high_node, BIN] == high_bin
            assert finder.keys[low_node] == low_key(finder, low, a, b)
            assert finder.keys[high_node] == high_key(finder, high, a, b)
            tops = []
            while top != NONE:
                rank = int(finder.bins[finder.nodes[top, BIN], RANK])
                tops.append(rank)
                assert finder.keys[top] == top_key(finder, criterion, rank, a, b), "a key is stale"
                assert held[0].pop(top) == group
                top = int(finder.nodes[top, NEXT])
            assert sorted(tops) == list(range(low, high + 1)), "a group is not in all bins of its run"
            assert held[1].pop(low_node) == group
            assert held[2].pop(high_node) == group
            before, slot, first = NONE, int(finder.groups[group, FIRST]), len(members)
            while slot != NONE:
                assert slots.rows[slot, [C0, C1]].tolist() == [a, b], "a slot is in a group of other counts"
                assert slots.rows[slot, KEY] >> 32 == index
                assert group_of(slots, slot) == group
                assert finder.lists[slot, EARLIER] == before
                members.append(slot)
                before, slot = slot, int(finder.lists[slot, LATER])
            assert len(members) - first == finder.groups[group, SIZE] > 0
            assert finder.groups[group, LEAST] in [NONE, *members[first:]]
        assert held == [{}, {}, {}], "a heap holds what has gone"
        assert len(set(members)) == slots.heads[index, FEATURES], "a slot is in no group, or in two"
    hashing.check(finder.table, len(in_use[OF_GROUPS]))
    links = ((finder.bins, ABOVE), (finder.groups, QUEUE), (finder.nodes, NEXT))
    for kind, (array, column) in enumerate(links):
        free_list.check(finder.counts[kind], array[:, column], list(in_use[kind]))


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
