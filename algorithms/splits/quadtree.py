r"""Quadtrees over the points (a, b) of features: the weights of the two labels where a feature is present.

A tree is path-compressed: a node with one child is skipped, so there are fewer than two nodes a leaf. A leaf
holds the features whose points lie in its square as a linked list::

    level 24  [ whole plane ]            nodes[k] = child x 4, parent, level, qa, qb
                /        \               of a leaf the first columns are a list of features:
    level 20 [ node ]  [ leaf ]           first, lowest, second, seen
              /   \
         [ leaf ] [ leaf ] level 16      qa, qb: the lowest coordinates in the square

A finder keeps state, others, stack and bounds beside them; see exact.py.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from algorithms.core import free_list
from algorithms.core.arrays import Float64s, Int32s, Int64s, int64
from algorithms.core.criteria import score
from algorithms.core.free_list import USED as USED
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names, precedes
from algorithms.core.stored import stored
from algorithms.splits.slots import C0, C1, KEY, MARK, NO_MARK, NONE, Slots, feature_of

# Columns of `Quadtrees.nodes`. A node holds nodes, its children in columns 0..3, or it is a leaf and holds slots.
FIRST = 0  # of a leaf: the first slot of its list
LOWEST, SECOND = 1, 2  # of a leaf: its two lowest features from `SEEN` on; LOWEST is NONE where not known
SEEN = 3  # of a leaf: the first slot of the list when last looked at
PARENT, LEVEL, QA, QB = 4, 5, 6, 7

# Columns of `Quadtrees.lists`: the neighbours of a slot in its leaf.
NEXT, PREVIOUS = 0, 1

# Columns of `Quadtrees.state`.
ROOT = 0  # the node that covers everything, or NONE

BITS = 18  # of a count that coordinates keep below its leading one
LEVELS = 24  # coordinates of counts are below 2^24
COARSE = 16  # the level of a leaf where no search has asked for a finer one: four an octave
LEAF = 32  # added to the level in `LEVEL`: this node is a leaf
_CROWD = 32  # a leaf of more features is divided rather than read
_RARELY = 4  # if each of them is in less than one of 2^4 examples


@stored("boxes", "lists", "state", "others", "stack", "bounds", "counts")
class Quadtrees(NamedTuple):
    """The nodes of all indexes of a pool."""

    nodes: Int32s  # int32[capacity, 8]
    lists: Int32s  # int32[slots, 2]
    state: Int64s  # int64[indexes, 5]
    others: Float64s  # float64[indexes], a lower bound on every score but the best one's; -inf: not known
    stack: Int32s  # int32[128], scratch of the search
    bounds: Float64s  # float64[128], likewise
    counts: Int64s  # int64[3], a free list through PARENT


@inlined
def coordinate(count: int) -> int:
    """Return the coordinate of a count: the count itself as far as 19 bits hold it, else its 19 first bits.

    Like a float, which rises with the count and takes as many values in each octave.
    """
    shift = 0
    if count >> (BITS + 1) > 0:
        shift = math.frexp(float(count))[1] - 1 - BITS
        # float() may round a count beyond 2^53 up to the next octave.
        if count >> (shift + BITS) == 0:
            shift -= 1
    return (shift << BITS) + (count >> shift)


@inlined
def edge(at: int) -> int:
    """Return the lowest count that has this coordinate; some count of at least 2^62 where none has.

    Below 2^63 in any case: what is shifted has at most 19 bits, and by at most 44.
    """
    shift = max(at >> BITS, 1) - 1
    return (at - (shift << BITS)) << min(shift, 62 - BITS)


# --- nodes


@inlined
def new_node(finder: Quadtrees, parent: int, level: int, qa: int, qb: int) -> int:
    """Return a new node without children, from the free list where there is one."""
    node = free_list.take(finder.counts, finder.nodes[:, PARENT])
    finder.nodes[node, 0] = NONE
    finder.nodes[node, 1] = NONE
    finder.nodes[node, 2] = NONE
    finder.nodes[node, 3] = NONE
    finder.nodes[node, PARENT] = parent
    finder.nodes[node, LEVEL] = level
    finder.nodes[node, QA] = qa
    finder.nodes[node, QB] = qb
    return node


@inlined
def free_node(finder: Quadtrees, node: int) -> None:
    """Put a node on the free list."""
    finder.nodes[node, LEVEL] = -1
    free_list.give(finder.counts, finder.nodes[:, PARENT], node)


@inlined
def _new_leaf(finder: Quadtrees, parent: int, qa: int, qb: int) -> int:
    """Return a new leaf for (qa, qb): a coarse one, or a fine one where the node above was a leaf once."""
    level = min(COARSE, finder.nodes[parent, LEVEL] - 1)
    return new_node(finder, parent, LEAF | level, (qa >> level) << level, (qb >> level) << level)


@inlined
def is_leaf(finder: Quadtrees, node: int) -> bool:
    """Return whether a node is a leaf: it holds features rather than nodes."""
    return finder.nodes[node, LEVEL] >= LEAF


@inlined
def level_of(finder: Quadtrees, node: int) -> int:
    """Return the level of a node: its square is 2^level coordinates wide."""
    return finder.nodes[node, LEVEL] & (LEAF - 1)


@inlined
def covers(finder: Quadtrees, node: int, qa: int, qb: int) -> bool:
    """Return whether the point (qa, qb) lies in the square of a node."""
    level = level_of(finder, node)
    return ((qa ^ finder.nodes[node, QA]) | (qb ^ finder.nodes[node, QB])) >> level == 0


@inlined
def quadrant_of(finder: Quadtrees, node: int, qa: int, qb: int) -> int:
    """Return which child of a node a point belongs to."""
    level = level_of(finder, node) - 1
    return ((qa >> level) & 1) | (((qb >> level) & 1) << 1)


@inlined
def _leaf_at(finder: Quadtrees, node: int, qa: int, qb: int) -> int:
    """Return the leaf of (qa, qb) below a node that covers it, made where there is none. O(levels)."""
    nodes = finder.nodes
    while not is_leaf(finder, node):
        quadrant = quadrant_of(finder, node, qa, qb)
        child = int64(nodes[node, quadrant])
        if child == NONE:
            child = _new_leaf(finder, node, qa, qb)
            nodes[node, quadrant] = child
        elif not covers(finder, child, qa, qb):
            # The child covers less than is asked for: put the smallest node that covers both between.
            level = level_of(finder, child)
            apart = ((qa ^ nodes[child, QA]) | (qb ^ nodes[child, QB])) >> level
            while apart > 0:
                apart >>= 1
                level += 1
            between = new_node(finder, node, level, (qa >> level) << level, (qb >> level) << level)
            nodes[between, quadrant_of(finder, between, nodes[child, QA], nodes[child, QB])] = child
            nodes[child, PARENT] = between
            nodes[node, quadrant] = between
            child = between
        node = child
    return node


@inlined
def prune(finder: Quadtrees, node: int) -> None:
    """Take out a leaf that has become empty, and the node above it where that is left with one child."""
    nodes = finder.nodes
    parent = int64(nodes[node, PARENT])
    nodes[parent, quadrant_of(finder, parent, nodes[node, QA], nodes[node, QB])] = NONE
    free_node(finder, node)
    above = int64(nodes[parent, PARENT])
    if above == NONE:
        return  # the root stays
    only = NONE
    children = 0
    for quadrant in range(4):
        if nodes[parent, quadrant] != NONE:
            only = int64(nodes[parent, quadrant])
            children += 1
    if children == 1:
        nodes[above, quadrant_of(finder, above, nodes[parent, QA], nodes[parent, QB])] = only
        nodes[only, PARENT] = above
        free_node(finder, parent)


# --- features in leaves


@inlined
def mark_of(finder: Quadtrees, leaf: int) -> int:
    """Return how a slot names its leaf: with the level, so that most changes of a count need no look at it."""
    return (leaf << 5) | level_of(finder, leaf)


@inlined
def leaf_of(mark: int) -> int:
    """Return the leaf that a mark names."""
    return mark >> 5


@inlined
def link(finder: Quadtrees, slots: Slots, slot: int, node: int, qa: int, qb: int) -> None:
    """Put a slot into the leaf of (qa, qb) below a node that covers it."""
    leaf = _leaf_at(finder, node, qa, qb)
    first = finder.nodes[leaf, FIRST]
    finder.lists[slot, NEXT] = first
    finder.lists[slot, PREVIOUS] = NONE
    if first != NONE:
        finder.lists[first, PREVIOUS] = slot
    finder.nodes[leaf, FIRST] = slot
    slots.rows[slot, MARK] = mark_of(finder, leaf)


@jit
def insert(finder: Quadtrees, slots: Slots, index: int, slot: int) -> None:
    """Put a waiting slot into its leaf."""
    qa = coordinate(slots.rows[slot, C0])
    qb = coordinate(slots.rows[slot, C1])
    link(finder, slots, slot, finder.state[index, ROOT], qa, qb)


@inlined
def unlink(finder: Quadtrees, slots: Slots, slot: int) -> None:
    """Take a slot out of its leaf; the leaf itself stays, maybe empty."""
    nodes = finder.nodes
    leaf = leaf_of(slots.rows[slot, MARK])
    following = finder.lists[slot, NEXT]
    previous = finder.lists[slot, PREVIOUS]
    if following != NONE:
        finder.lists[following, PREVIOUS] = previous
    if previous != NONE:
        finder.lists[previous, NEXT] = following
    else:
        nodes[leaf, FIRST] = following
    if nodes[leaf, LOWEST] == slot or nodes[leaf, SECOND] == slot:
        nodes[leaf, LOWEST] = NONE
    if nodes[leaf, SEEN] == slot:
        nodes[leaf, SEEN] = following
    slots.rows[slot, MARK] = NO_MARK


@jit
def divide(finder: Quadtrees, slots: Slots, leaf: int) -> None:
    """Make a leaf the smallest node that holds its features, with leaves half as wide below it.

    Where all have the same coordinates it stays a leaf, of level 0. There must be room for four nodes.
    """
    nodes = finder.nodes
    rows = slots.rows
    first = int64(nodes[leaf, FIRST])
    qa = coordinate(rows[first, C0])
    qb = coordinate(rows[first, C1])
    apart = int64(0)
    slot = first
    while slot != NONE:
        apart |= (qa ^ coordinate(rows[slot, C0])) | (qb ^ coordinate(rows[slot, C1]))
        slot = int64(finder.lists[slot, NEXT])
    level = 0
    while apart > 0:
        apart >>= 1
        level += 1
    nodes[leaf, QA] = (qa >> level) << level
    nodes[leaf, QB] = (qb >> level) << level
    nodes[leaf, LEVEL] = level if level > 0 else LEAF
    if level > 0:
        for quadrant in range(4):
            nodes[leaf, quadrant] = NONE
    slot = first
    while slot != NONE:
        following = int64(finder.lists[slot, NEXT])
        if level > 0:
            link(finder, slots, slot, leaf, coordinate(rows[slot, C0]), coordinate(rows[slot, C1]))
        else:
            rows[slot, MARK] = mark_of(finder, leaf)
        slot = following


@jit
def find_lowest(finder: Quadtrees, slots: Slots, names: Names, leaf: int) -> None:
    """Bring the two lowest features of a leaf up to date: new ones are in front of those seen before."""
    nodes = finder.nodes
    lowest = int64(nodes[leaf, LOWEST])
    second = int64(nodes[leaf, SECOND])
    stop = int64(nodes[leaf, SEEN])
    if lowest == NONE:
        second = NONE
        stop = NONE
    slot = int64(nodes[leaf, FIRST])
    while slot != stop:
        if lowest == NONE or precedes(names, feature_of(slots, slot), feature_of(slots, lowest)):
            second = lowest
            lowest = slot
        elif second == NONE or precedes(names, feature_of(slots, slot), feature_of(slots, second)):
            second = slot
        slot = int64(finder.lists[slot, NEXT])
    nodes[leaf, LOWEST] = lowest
    nodes[leaf, SECOND] = second
    nodes[leaf, SEEN] = nodes[leaf, FIRST]


# --- for searches


@inlined
def bound_of(finder: Quadtrees, criterion: Any, node: int, n0: int, n1: int, grain: int) -> float:
    """Return a lower bound on the scores in a node: the better of its two off-diagonal corners."""
    width = 1 << level_of(finder, node)
    qa = int64(finder.nodes[node, QA])
    qb = int64(finder.nodes[node, QB])
    # Counts are multiples of the grain, which edges need not be: take the multiples just inside.
    a1 = (edge(qa) + grain - 1) & -grain
    b1 = (edge(qb) + grain - 1) & -grain
    a2 = min((edge(qa + width) - 1) & -grain, n0)
    b2 = min((edge(qb + width) - 1) & -grain, n1)
    return min(score(criterion, a1, b2, n0, n1), score(criterion, a2, b1, n0, n1))


@inlined
def is_point(finder: Quadtrees, leaf: int, grain: int) -> bool:
    """Return whether all features of a leaf must have the same counts."""
    width = 1 << level_of(finder, leaf)
    qa = int64(finder.nodes[leaf, QA])
    qb = int64(finder.nodes[leaf, QB])
    return max(edge(qa + width) - edge(qa), edge(qb + width) - edge(qb)) <= grain


@inlined
def is_crowded(finder: Quadtrees, leaf: int, total: int) -> bool:
    """Return whether a leaf has so many features, and such rare ones, that it should be divided.

    A feature in a fine leaf moves whenever it is seen, and a move costs what a dozen features cost to read.
    """
    rare = edge(int64(finder.nodes[leaf, QA])) + edge(int64(finder.nodes[leaf, QB])) <= total >> _RARELY
    if not rare or level_of(finder, leaf) == 0:
        return False
    slot = int64(finder.nodes[leaf, FIRST])
    features = 0
    while slot != NONE and features <= _CROWD:
        features += 1
        slot = int64(finder.lists[slot, NEXT])
    return features > _CROWD


# --- checking


def check_tree(finder: Quadtrees, slots: Slots, index: int, root: int) -> tuple[list[int], list[int]]:
    """Return the nodes and the inserted slots of an index; raise AssertionError unless its tree is sound."""
    nodes = finder.nodes
    reached: list[int] = []
    inserted: list[int] = []
    todo = [root] if root != NONE else []
    if todo:
        assert nodes[root].tolist()[PARENT:] == [NONE, LEVELS, 0, 0]
    while todo:
        node = todo.pop()
        reached.append(node)
        level = int(nodes[node, LEVEL]) % LEAF
        assert (int(nodes[node, QA]) | int(nodes[node, QB])) % (1 << level) == 0
        if is_leaf(finder, node):
            assert level <= COARSE
            inserted += _check_leaf(finder, slots, index, node)
            continue
        children = [int(child) for child in nodes[node, :4] if child != NONE]
        assert node == root or len(children) > 1, "a node with one child was kept"
        for quadrant, child in enumerate(nodes[node, :4].tolist()):
            if child != NONE:
                assert nodes[child, PARENT] == node
                assert nodes[child, LEVEL] % LEAF < level
                assert covers(finder, node, int(nodes[child, QA]), int(nodes[child, QB]))
                assert quadrant_of(finder, node, int(nodes[child, QA]), int(nodes[child, QB])) == quadrant
                todo.append(child)
    return reached, inserted


def _check_leaf(finder: Quadtrees, slots: Slots, index: int, leaf: int) -> list[int]:
    """Return the slots of a leaf, whose list must be sound and whose points must lie in its square."""
    level, qa, qb = int(finder.nodes[leaf, LEVEL]) % LEAF, int(finder.nodes[leaf, QA]), int(finder.nodes[leaf, QB])
    listed: list[int] = []
    before, slot = NONE, int(finder.nodes[leaf, FIRST])
    assert slot != NONE, "an empty leaf was kept"
    while slot != NONE:
        a, b = (int(x) for x in slots.rows[slot, [C0, C1]])
        assert edge(qa) <= a < edge(qa + (1 << level)), "a feature lies outside its leaf"
        assert edge(qb) <= b < edge(qb + (1 << level)), "a feature lies outside its leaf"
        assert slots.rows[slot, MARK] == mark_of(finder, leaf)
        assert slots.rows[slot, KEY] >> 32 == index
        assert finder.lists[slot, PREVIOUS] == before
        listed.append(slot)
        before, slot = slot, int(finder.lists[slot, NEXT])
    lowest, second = finder.nodes[leaf, [LOWEST, SECOND]].tolist()
    if lowest != NONE:
        seen = listed[listed.index(int(finder.nodes[leaf, SEEN])) :]
        assert lowest in seen
        assert second in seen if len(seen) > 1 else second == NONE
    return listed
