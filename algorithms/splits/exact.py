r"""The exact split index: the best split after every event, in about the time that counting takes.

For examples with totals (c0, c1) the score of a feature depends only on its point (a, b), the weights of
the two labels where it is present: F(a, b) = h(a, b) + h(c0 - a, c1 - b). F is concave, and on each side
of the diagonal b / a = c1 / c0 monotone in both coordinates, so over a box [a1, a2] x [b1, b2]

    min F = min(F(a1, b2), F(a2, b1))

and branch and bound over a quadtree of such boxes (quadtree.py) finds the minimum (README.md has the proof).
Five ideas keep it cheap:

* *Coarse leaves.* Both axes are cut into four pieces an octave. A feature moves to another leaf only when a
  count crosses an edge, which a frequent one seldom does; the rest is one addition.
* *Fine leaves where asked for.* A search divides a leaf of many features that it cannot leave out, rather than
  read it, down to leaves of one point, whose features all tie: the lowest is remembered.
* *Lazy insertion.* A feature of weight s cannot score below `_waiting_bound(s)`. While that is worse than
  the best, features of weight < `THRESHOLD` are counted but in no leaf: they wait.
* *Start from the last answer.* Its present score prunes almost everything.
* *Search seldom.* h is superadditive, so an insert raises every score and a delete lowers none by more than
  h(weight, other label's total). A search leaves a lower bound on all scores but the best; while the best
  stays below it, nothing can have overtaken it and one score answers the query.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.core import free_list
from algorithms.core.arrays import extended, int64, larger
from algorithms.core.criteria import coarse_rounding, impurity, rounding, score
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names, precedes
from algorithms.splits import quadtree
from algorithms.splits.quadtree import (
    BITS,
    FIRST,
    LEAF,
    LEVELS,
    LOWEST,
    NEXT,
    PARENT,
    QA,
    QB,
    ROOT,
    SECOND,
    USED,
    Quadtrees,
    bound_of,
    coordinate,
    covers,
    divide,
    edge,
    find_lowest,
    free_node,
    insert,
    is_crowded,
    is_leaf,
    is_point,
    leaf_of,
    level_of,
    link,
    new_node,
    prune,
    unlink,
)
from algorithms.splits.ranking import Ranking, offer, seeks_one
from algorithms.splits.scan import chain_overfull, rank_chain, scan
from algorithms.splits.slots import (
    BEST,
    C0,
    C1,
    CHAIN,
    FEATURES,
    GRAIN,
    MARK,
    N0,
    N1,
    NO_MARK,
    NONE,
    OLDER,
    Slots,
    feature_of,
)

# Columns of `Quadtrees.state` after `ROOT`.
THRESHOLD = 1  # features lighter than this may be in no leaf; a power of two
HOLD = 2  # queries to wait before THRESHOLD may rise again
STREAK = 3  # queries answered since the last search
BUDGET = 4  # how many the next search shall provide for

SHORT = -2  # `find` ran out of nodes: enlarge and ask again

_SMALL = 128  # an index of so few features is scanned: no nodes, and no slower, see README.md
_ALL_WAIT = 1 << 62
_MOST_BUDGET = 63
_HOLD_SHARE = 6  # to insert those that wait costs O(features); it is paid back over features >> 6 queries

_EMPTY = (NONE, _ALL_WAIT, 0, 0, 0)  # a row of `Quadtrees.state`


@jit
def start(finder: Quadtrees, index: int) -> None:
    """Begin an empty index: no nodes, all features wait."""
    finder.state[index, ROOT] = NONE
    finder.state[index, THRESHOLD] = _ALL_WAIT
    finder.state[index, HOLD] = 0
    finder.state[index, STREAK] = 0
    finder.state[index, BUDGET] = 0
    finder.others[index] = -np.inf


@inlined
def ready(finder: Quadtrees, ones: int) -> bool:
    """Return whether `ones` features can change leaves: each may need a leaf and a node above it."""
    return finder.nodes.shape[0] - finder.counts[USED] >= 2 * ones + 1


@inlined
def touched(finder: Quadtrees, slots: Slots, index: int, slot: int, label: int, weight: int) -> None:
    """Bring a slot to whose count of a label a weight has been added into the right leaf."""
    count = slots.rows[slot, C0 + label]
    mark = slots.rows[slot, MARK]
    if mark == NO_MARK:
        if slots.rows[slot, C0] + slots.rows[slot, C1] >= finder.state[index, THRESHOLD]:
            insert(finder, slots, index, slot)
    else:
        # The side of a leaf is told by a count's top bits, three where it is coarse. Only a change that reaches
        # up there (or may, the test is cheap and cautious) is worth a look at the node, seldom in the cache.
        level = mark & (LEAF - 1)
        if (count ^ (count - weight)) >= count >> (BITS + 1 - level):
            low = int64(finder.nodes[leaf_of(mark), QA + label])
            if count < edge(low) or count >= edge(low + (1 << level)):
                _move(finder, slots, index, slot, leaf_of(mark))


@jit
def _move(finder: Quadtrees, slots: Slots, index: int, slot: int, leaf: int) -> None:
    """Take a slot from a leaf that it has outgrown to the right one: up to a node that covers both, and down.

    A slot that is light enough to wait by now (THRESHOLD may have risen) goes back to waiting and moves no more.
    """
    a = slots.rows[slot, C0]
    b = slots.rows[slot, C1]
    unlink(finder, slots, slot)
    if a + b >= finder.state[index, THRESHOLD]:
        qa = coordinate(a)
        qb = coordinate(b)
        above = int64(finder.nodes[leaf, PARENT])
        while not covers(finder, above, qa, qb):
            above = int64(finder.nodes[above, PARENT])
        link(finder, slots, slot, above, qa, qb)
    if finder.nodes[leaf, FIRST] == NONE:
        prune(finder, leaf)


@inlined
def taking(finder: Quadtrees, slots: Slots, criterion: Any, index: int, label: int, weight: int) -> None:
    """Note that a weight of a label is about to be taken from the totals: scores may fall by so much."""
    others = finder.others[index]
    other_total = slots.heads[index, N1 - label]
    fall = impurity(criterion, weight, other_total) + rounding(weight, other_total)
    finder.others[index] = others - (fall + 2.0**-50 * abs(others))


@inlined
def removing(finder: Quadtrees, slots: Slots, index: int, slot: int) -> None:
    """Take a slot that is about to be given back out of its leaf."""
    mark = slots.rows[slot, MARK]
    if mark != NO_MARK:
        leaf = leaf_of(mark)
        unlink(finder, slots, slot)
        if finder.nodes[leaf, FIRST] == NONE:
            prune(finder, leaf)


@jit
def dropping(finder: Quadtrees, slots: Slots, index: int) -> None:
    """Give back the root of an index whose slots are gone."""
    root = finder.state[index, ROOT]
    if root != NONE:
        free_node(finder, root)
    start(finder, index)


@inlined
def settle(finder: Quadtrees, slots: Slots, names: Names, criterion: Any, index: int) -> bool:
    """Nothing is left to do after an event."""
    return True


# --- the search


@jit
def _waiting_bound(criterion: Any, weight: int, n0: int, n1: int) -> float:
    """Return a lower bound on the score of every feature whose weight is at most `weight`.

    F is concave, so its minimum over {a + b <= weight} within the totals lies in a corner.
    """
    a = min(weight, n0)
    b = min(weight, n1)
    low = min(score(criterion, a, 0, n0, n1), score(criterion, 0, b, n0, n1))
    if weight > n0:
        low = min(low, score(criterion, n0, min(weight - n0, n1), n0, n1))
    if weight > n1:
        low = min(low, score(criterion, min(weight - n1, n0), n1, n0, n1))
    return low


@inlined
def _push_children(
    finder: Quadtrees, criterion: Any, node: int, depth: int, n0: int, n1: int, grain: int, limit: float
) -> tuple[int, float]:
    """Put the children of a node whose bounds are within a limit on the stack, the most promising on top.

    Return the stack's depth, and the least bound of a child that was left out.
    """
    stack = finder.stack
    bounds = finder.bounds
    left_out = np.inf
    base = depth
    for quadrant in range(4):
        child = finder.nodes[node, quadrant]
        if child == NONE:
            continue
        bound = bound_of(finder, criterion, child, n0, n1, grain)
        if bound > limit:
            left_out = min(left_out, bound)
            continue
        at = depth
        while at > base and bounds[at - 1] < bound:
            stack[at] = stack[at - 1]
            bounds[at] = bounds[at - 1]
            at -= 1
        stack[at] = child
        bounds[at] = bound
        depth += 1
    return depth, left_out


@jit
def _search(
    finder: Quadtrees,
    slots: Slots,
    names: Names,
    criterion: Any,
    index: int,
    excluded: int,
    best: int,
    best_value: float,
    allowance: float,
) -> tuple[int, float, float]:
    """Return the best slot in the leaves, its score, and a lower bound on all others there.

    Starts from a candidate. Nodes are left out only where they are worse than the best by more than
    `allowance`, which covers rounding and makes the bound on the others worth something. The slot is SHORT
    where a leaf could not be divided for lack of nodes.
    """
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    grain = slots.heads[index, GRAIN]
    rows = slots.rows
    nodes = finder.nodes
    stack = finder.stack
    bounds = finder.bounds
    others = np.inf
    stack[0] = finder.state[index, ROOT]
    bounds[0] = -np.inf
    depth = 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if bounds[depth] > best_value + allowance:
            others = min(others, bounds[depth])
            continue
        point = is_leaf(finder, node) and is_point(finder, node, grain)
        if is_leaf(finder, node) and not point and is_crowded(finder, node, n0 + n1):
            if nodes.shape[0] - finder.counts[USED] < 4:
                return SHORT, best_value, others
            divide(finder, slots, node)
            point = is_leaf(finder, node) and is_point(finder, node, grain)
        if not is_leaf(finder, node):
            depth, left_out = _push_children(finder, criterion, node, depth, n0, n1, grain, best_value + allowance)
            others = min(others, left_out)
            continue
        # In a point all scores are the same: the lowest feature stands for the others, the next for it.
        if point:
            find_lowest(finder, slots, names, node)
        slot = int64(nodes[node, LOWEST if point else FIRST])
        last_a = int64(-1)
        last_b = int64(-1)
        value = np.inf
        while slot != NONE:
            a = rows[slot, C0]
            b = rows[slot, C1]
            if slot != excluded and slot != best and a + b < n0 + n1:
                if a != last_a or b != last_b:
                    value = score(criterion, a, b, n0, n1)
                    last_a = a
                    last_b = b
                if value < best_value or (
                    value == best_value
                    and (best == NONE or precedes(names, feature_of(slots, slot), feature_of(slots, best)))
                ):
                    others = min(others, best_value)
                    best = slot
                    best_value = value
                else:
                    others = min(others, value)
            if not point:
                slot = int64(finder.lists[slot, NEXT])
            else:
                slot = int64(nodes[node, SECOND]) if slot == nodes[node, LOWEST] else int64(NONE)
    return best, best_value, others


@jit
def _insert_waiting(finder: Quadtrees, slots: Slots, index: int, weight: int) -> bool:
    """Put every waiting feature of at least this weight into a leaf; False where the nodes ran short."""
    if finder.state[index, ROOT] == NONE:
        if not ready(finder, 1):
            return False
        finder.state[index, ROOT] = new_node(finder, NONE, LEVELS, 0, 0)
    slot = slots.heads[index, CHAIN]
    while slot != NONE:
        if slots.rows[slot, MARK] == NO_MARK and slots.rows[slot, C0] + slots.rows[slot, C1] >= weight:
            if not ready(finder, 1):
                return False
            insert(finder, slots, index, slot)
        slot = int64(slots.chain[slot, OLDER])
    return True


@jit
def _lower_threshold(
    finder: Quadtrees, slots: Slots, criterion: Any, index: int, best_value: float, slack: float
) -> bool:
    """Let fewer features wait, until those that do cannot beat the best; False where the nodes ran short."""
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    grain = slots.heads[index, GRAIN]
    rare = finder.state[index, THRESHOLD]
    while rare > grain and _waiting_bound(criterion, rare - grain, n0, n1) <= best_value + slack:
        rare >>= 1
    if not _insert_waiting(finder, slots, index, rare):
        return False
    finder.state[index, THRESHOLD] = rare
    finder.state[index, HOLD] = slots.heads[index, FEATURES] >> _HOLD_SHARE
    return True


@inlined
def find(finder: Quadtrees, slots: Slots, names: Names, criterion: Any, index: int, excluded: int) -> int:
    """Return the best slot but `excluded`, NONE where nothing splits the node, SHORT where nodes ran out."""
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    best = slots.heads[index, BEST]
    best_value = np.inf
    if best != NONE and best != excluded:
        a = slots.rows[best, C0]
        b = slots.rows[best, C1]
        if a + b < n0 + n1:
            best_value = score(criterion, a, b, n0, n1)
            if excluded == NONE and best_value + coarse_rounding(n0, n1) < finder.others[index]:
                finder.state[index, STREAK] += 1
                return best
        else:
            best = NONE
    else:
        best = NONE
    return _find_anew(finder, slots, names, criterion, index, excluded, best, best_value)


@inlined
def is_alone(finder: Quadtrees, slots: Slots, criterion: Any, index: int, best: int) -> bool:
    """Return whether the best slot that was just found is better than all others by more than rounding."""
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    value = score(criterion, slots.rows[best, C0], slots.rows[best, C1], n0, n1)
    return value + coarse_rounding(n0, n1) < finder.others[index]


@jit
def _find_anew(
    finder: Quadtrees,
    slots: Slots,
    names: Names,
    criterion: Any,
    index: int,
    excluded: int,
    best: int,
    best_value: float,
) -> int:
    """Search, starting from a candidate (or NONE), and note what the search says about the others."""
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    grain = slots.heads[index, GRAIN]
    slack = rounding(n0, n1)
    # A small index is cheaper to scan; and with nothing to start from, a scan beats waking all for good.
    if slots.heads[index, FEATURES] <= _SMALL or (
        best == NONE and excluded == NONE and finder.state[index, THRESHOLD] > grain
    ):
        best, others = scan(slots, names, criterion, index, excluded)
        if excluded == NONE:
            _note_others(finder, criterion, index, n0, n1, others, slack)
        return best
    if excluded == NONE:
        _adapt(finder, index)
    while True:
        others = np.inf
        allowance = slack
        if excluded == NONE and best != NONE:
            # About what so many inserts of the usual weight add to the best score.
            allowance += finder.state[index, BUDGET] * best_value * (grain / (n0 + n1))
        if finder.state[index, ROOT] != NONE:
            best, best_value, others = _search(
                finder, slots, names, criterion, index, excluded, best, best_value, allowance
            )
            if best == SHORT:
                return SHORT
        rare = finder.state[index, THRESHOLD]
        if rare <= grain:
            break
        waiting_bound = _waiting_bound(criterion, rare - grain, n0, n1)
        if waiting_bound > best_value + slack:
            others = min(others, waiting_bound)
            break
        if not _lower_threshold(finder, slots, criterion, index, best_value, slack):
            return SHORT
    if excluded != NONE:
        return best
    _note_others(finder, criterion, index, n0, n1, others, slack)
    if finder.state[index, HOLD] == 0:
        # Only where twice as much would do: a margin, so that the threshold does not flutter.
        while rare <= (n0 + n1) >> 1 and (
            _waiting_bound(criterion, 4 * rare - grain, n0, n1) > best_value + allowance
        ):
            rare *= 2
        finder.state[index, THRESHOLD] = rare
    return best


@inlined
def _adapt(finder: Quadtrees, index: int) -> None:
    """Provide for more queries where the last search lasted as long as it should, for fewer where it did not.

    Among near ties no bound lasts, and a wide search is wasted; behind a clear winner it is paid once.
    """
    budget = finder.state[index, BUDGET]
    finder.state[index, HOLD] = max(0, finder.state[index, HOLD] - finder.state[index, STREAK] - 1)
    if finder.state[index, STREAK] >= budget:
        finder.state[index, BUDGET] = min(2 * budget + 1, _MOST_BUDGET)
    else:
        finder.state[index, BUDGET] = budget >> 1
    finder.state[index, STREAK] = 0


@inlined
def _note_others(
    finder: Quadtrees, criterion: Any, index: int, n0: int, n1: int, others: float, slack: float
) -> None:
    """Keep a lower bound on all scores but the best: of features seen, and of those that no example had yet."""
    unseen = score(criterion, 0, 0, n0, n1)
    finder.others[index] = min(others, unseen) - 2.0 * slack


@jit
def rank(finder: Quadtrees, slots: Slots, names: Names, criterion: Any, index: int, ranking: Ranking) -> None:
    """Offer to a ranking all features that its limit lets through: `_search` with a limit that falls as it fills.

    Waiting features are looked at where they are, since to wake them for one question would slow all that follows.
    """
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    grain = slots.heads[index, GRAIN]
    slack = rounding(n0, n1)
    nodes = finder.nodes
    stack = finder.stack
    bounds = finder.bounds
    stack[0] = finder.state[index, ROOT]
    bounds[0] = -np.inf
    depth = 1 if stack[0] != NONE else 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if bounds[depth] > ranking.limit[0] + slack:
            continue
        if not is_leaf(finder, node):
            limit = ranking.limit[0] + slack
            depth, _ = _push_children(finder, criterion, node, depth, n0, n1, grain, limit)
            continue
        # Where one is looked for, the two lowest features of a point stand for all: it may be without the lowest.
        few = seeks_one(ranking) and is_point(finder, node, grain)
        if few:
            find_lowest(finder, slots, names, node)
        slot = int64(nodes[node, LOWEST if few else FIRST])
        while slot != NONE:
            a = slots.rows[slot, C0]
            b = slots.rows[slot, C1]
            if a + b < n0 + n1:
                offer(ranking, slots, names, slot, score(criterion, a, b, n0, n1))
            if not few:
                slot = int64(finder.lists[slot, NEXT])
            else:
                slot = int64(nodes[node, SECOND]) if slot == nodes[node, LOWEST] else int64(NONE)
    rare = finder.state[index, THRESHOLD]
    if rare > grain and _waiting_bound(criterion, rare - grain, n0, n1) <= ranking.limit[0] + slack:
        rank_chain(slots, names, criterion, index, ranking, True)


@jit
def overfull(finder: Quadtrees, slots: Slots, index: int) -> bool:
    """Return whether some feature now occurs more often than its label: what a false delete leaves behind.

    Only nodes that reach beyond the totals are entered, and a waiting feature weighs less than THRESHOLD.
    """
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    if (
        finder.state[index, ROOT] == NONE
        or finder.state[index, THRESHOLD] > min(n0, n1) + slots.heads[index, GRAIN]
    ):
        return chain_overfull(slots, index)
    finder.stack[0] = finder.state[index, ROOT]
    depth = 1
    while depth > 0:
        depth -= 1
        node = finder.stack[depth]
        width = 1 << level_of(finder, node)
        qa = int64(finder.nodes[node, QA])
        qb = int64(finder.nodes[node, QB])
        if edge(qa + width) - 1 <= n0 and edge(qb + width) - 1 <= n1:
            continue
        if not is_leaf(finder, node):
            for quadrant in range(4):
                if finder.nodes[node, quadrant] != NONE:
                    finder.stack[depth] = finder.nodes[node, quadrant]
                    depth += 1
            continue
        slot = int64(finder.nodes[node, FIRST])
        while slot != NONE:
            if slots.rows[slot, C0] > n0 or slots.rows[slot, C1] > n1:
                return True
            slot = int64(finder.lists[slot, NEXT])
    return False


# --- the arrays


def make(indexes: int, capacity: int) -> Quadtrees:
    """Make the finder for so many indexes and slots."""
    finder = Quadtrees(
        nodes=np.zeros((16, 8), np.int32),
        lists=np.zeros((capacity, 2), np.int32),
        state=np.zeros((indexes, 5), np.int64),
        others=np.full(indexes, -np.inf),
        stack=np.zeros(128, np.int32),
        bounds=np.zeros(128, np.float64),
        counts=np.array([0, 0, NONE], np.int64),
    )
    finder.state[:] = _EMPTY
    return finder


def grown(finder: Quadtrees, indexes: int, capacity: int) -> Quadtrees:
    """Return the finder with room for more indexes and slots."""
    before = len(finder.state)
    if capacity > len(finder.lists):
        finder = finder._replace(lists=extended(finder.lists, capacity))
    if indexes <= before:
        return finder
    more = finder._replace(state=extended(finder.state, indexes), others=extended(finder.others, indexes))
    more.state[before:] = _EMPTY
    more.others[before:] = -np.inf
    return more


def enlarged(finder: Quadtrees) -> Quadtrees:
    """Return the finder with room for more nodes."""
    return finder._replace(nodes=extended(finder.nodes, larger(len(finder.nodes), len(finder.nodes) + 1)))


def check(finder: Quadtrees, slots: Slots) -> None:
    """Raise AssertionError unless every invariant of the quadtrees holds. O(everything)."""
    reached: list[int] = []
    for index in range(len(finder.state)):
        root, threshold, hold, _, budget = (int(x) for x in finder.state[index])
        assert threshold & (threshold - 1) == 0
        assert hold >= 0
        assert 0 <= budget <= _MOST_BUDGET
        nodes, inserted = quadtree.check_tree(finder, slots, index, root)
        reached += nodes
        slot = int(slots.heads[index, CHAIN])
        while slot != NONE:
            if slots.rows[slot, MARK] == NO_MARK:
                weight = slots.rows[slot, C0] + slots.rows[slot, C1]
                assert weight < threshold, "a heavy feature is in no leaf"
            else:
                inserted.remove(slot)
            slot = int(slots.chain[slot, OLDER])
        assert not inserted, "a slot is in a leaf but not in its index"
    free_list.check(finder.counts, finder.nodes[:, PARENT], reached)
