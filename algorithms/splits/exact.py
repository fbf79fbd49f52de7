r"""The exact split index: the best split after every event, in about the time that counting takes.

For a node with totals (c0, c1) the score of a feature depends only on its point (a, b), the weights of
the two labels where it is present: F(a, b) = h(a, b) + h(c0 - a, c1 - b). F is concave, and on each side
of the diagonal b / a = c1 / c0 monotone in both coordinates, so over a box [a1, a2] x [b1, b2]

    min F = min(F(a1, b2), F(a2, b1))

and branch and bound over a quadtree of boxes finds the minimum (README.md has the proof). Five ideas
keep it cheap:

* *Coarse cells.* Both axes are cut into four pieces an octave. A feature moves to another cell only when a
  count crosses an edge, which a frequent one seldom does; the rest is one addition.
* *Fine cells where asked for.* A search divides a cell of many features that it cannot leave out, rather than
  read it, down to cells of one point, whose features all tie: the lowest is remembered.
* *Rare features wait.* A feature of weight s cannot score below `_rare_bound(s)`. While that is worse than
  the best, features of weight < `RARE` are counted but in no cell.
* *Start from the last answer.* Its present score prunes almost everything.
* *Search seldom.* h is superadditive, so an insert raises every score and a delete lowers none by more than
  h(weight, other label's total). A search leaves a lower bound on all scores but the best; while the best
  stays below it, nothing can have overtaken it and one score answers the query.

The quadtree is path-compressed (a box with one child is skipped), so it has fewer than two boxes a cell::

    level 24  [ whole plane ]            boxes[k] = child x 4, parent, level, qa, qb
                /        \\               of a cell the first columns are a list of features:
    level 20 [ box ]   [ cell ]           first, lowest, second, seen
              /   \\
         [ cell ] [ cell ] level 16      qa, qb: the lowest coordinates in the box
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int32s, Int64s, extended, int64
from algorithms.core.criteria import coarse_rounding, impurity, rounding, score
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names, precedes
from algorithms.core.stored import stored
from algorithms.splits.ranking import Ranking, offer
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

# Columns of `Exact.boxes`. A box holds boxes, its children in columns 0..3, or it is a cell and holds slots.
FIRST = 0  # of a cell: the first slot of its list
LOWEST, SECOND = 1, 2  # of a cell: its two lowest features from `SEEN` on; LOWEST is NONE where not known
SEEN = 3  # of a cell: the first slot of the list when last looked at
PARENT, LEVEL, QA, QB = 4, 5, 6, 7

# Columns of `Exact.lists`: the neighbours of a slot in its cell.
NEXT, PREVIOUS = 0, 1

# Columns of `Exact.state`.
ROOT = 0  # the box that covers everything, or NONE
RARE = 1  # features lighter than this may be in no cell; a power of two
HOLD = 2  # queries to wait before RARE may rise again
STREAK = 3  # queries answered since the last search
PATIENCE = 4  # how many the next search shall provide for

# Rows of `Exact.counts`.
USED, HIGH, FREE = 0, 1, 2  # boxes in use, ever used, first of the free list (linked through PARENT)

SHORT = -2  # `find` ran out of boxes: enlarge and ask again

_BITS = 18  # of a count that coordinates keep below its leading one
_LEVELS = 24  # coordinates of counts are below 2^24
COARSE = 16  # the level of a cell where no search has asked for a finer one: four an octave
CELL = 32  # added to the level in `LEVEL`: this box is a cell
_THICK = 32  # a cell of more features is divided rather than read
_RARELY = 4  # if each of them is in less than one of 2^4 examples
_SMALL = 24  # an index of so few features is scanned: no boxes, and no slower
_ALL_RARE = 1 << 62
_MOST_PATIENCE = 63
_HOLD_SHARE = 6  # waking costs O(features); it is paid back over features >> 6 queries


_EMPTY = (NONE, _ALL_RARE, 0, 0, 0)  # a row of `Exact.state`


@stored("boxes", "lists", "state", "others", "stack", "bounds", "counts")
class Exact(NamedTuple):
    """The boxes of all indexes of a pool."""

    boxes: Int32s  # int32[capacity, 8]
    lists: Int32s  # int32[slots, 2]
    state: Int64s  # int64[indexes, 5]
    others: Float64s  # float64[indexes], a lower bound on every score but the best one's; -inf: not known
    stack: Int32s  # int32[128], scratch of the search
    bounds: Float64s  # float64[128], likewise
    counts: Int64s  # int64[3]


@inlined
def coordinate(count: int) -> int:
    """Return the coordinate of a count: the count itself as far as 19 bits hold it, else its 19 first bits.

    Like a float, which rises with the count and takes as many values in each octave.
    """
    shift = 0
    if count >> (_BITS + 1) > 0:
        shift = math.frexp(float(count))[1] - 1 - _BITS
        # float() may round a count beyond 2^53 up to the next octave.
        if count >> (shift + _BITS) == 0:
            shift -= 1
    return (shift << _BITS) + (count >> shift)


@inlined
def edge(at: int) -> int:
    """Return the lowest count that has this coordinate; some count of at least 2^62 where none has.

    Below 2^63 in any case: what is shifted has at most 19 bits, and by at most 44.
    """
    shift = max(at >> _BITS, 1) - 1
    return (at - (shift << _BITS)) << min(shift, 62 - _BITS)


# --- boxes


@inlined
def _new_box(finder: Exact, parent: int, level: int, qa: int, qb: int) -> int:
    counts = finder.counts
    box = counts[FREE]
    if box != NONE:
        counts[FREE] = finder.boxes[box, PARENT]
    else:
        box = counts[HIGH]
        counts[HIGH] += 1
    counts[USED] += 1
    finder.boxes[box, 0] = NONE
    finder.boxes[box, 1] = NONE
    finder.boxes[box, 2] = NONE
    finder.boxes[box, 3] = NONE
    finder.boxes[box, PARENT] = parent
    finder.boxes[box, LEVEL] = level
    finder.boxes[box, QA] = qa
    finder.boxes[box, QB] = qb
    return box


@inlined
def _free_box(finder: Exact, box: int) -> None:
    finder.boxes[box, PARENT] = finder.counts[FREE]
    finder.boxes[box, LEVEL] = -1
    finder.counts[FREE] = box
    finder.counts[USED] -= 1


@inlined
def _new_cell(finder: Exact, parent: int, qa: int, qb: int) -> int:
    """Return a new cell for (qa, qb): a coarse one, or a fine one where the box above was a cell once."""
    level = min(COARSE, finder.boxes[parent, LEVEL] - 1)
    return _new_box(finder, parent, CELL | level, (qa >> level) << level, (qb >> level) << level)


@inlined
def _is_cell(finder: Exact, box: int) -> bool:
    return finder.boxes[box, LEVEL] >= CELL


@inlined
def _level(finder: Exact, box: int) -> int:
    return finder.boxes[box, LEVEL] & (CELL - 1)


@inlined
def _covers(finder: Exact, box: int, qa: int, qb: int) -> bool:
    level = _level(finder, box)
    return ((qa ^ finder.boxes[box, QA]) | (qb ^ finder.boxes[box, QB])) >> level == 0


@inlined
def _quadrant(finder: Exact, box: int, qa: int, qb: int) -> int:
    """Return which child of a box a point belongs to."""
    level = _level(finder, box) - 1
    return ((qa >> level) & 1) | (((qb >> level) & 1) << 1)


@inlined
def _cell(finder: Exact, box: int, qa: int, qb: int) -> int:
    """Return the cell of (qa, qb) below a box that covers it, made where there is none. O(levels)."""
    boxes = finder.boxes
    while not _is_cell(finder, box):
        quadrant = _quadrant(finder, box, qa, qb)
        child = int64(boxes[box, quadrant])
        if child == NONE:
            child = _new_cell(finder, box, qa, qb)
            boxes[box, quadrant] = child
        elif not _covers(finder, child, qa, qb):
            # The child covers less than is asked for: put the smallest box that covers both between.
            level = _level(finder, child)
            apart = ((qa ^ boxes[child, QA]) | (qb ^ boxes[child, QB])) >> level
            while apart > 0:
                apart >>= 1
                level += 1
            between = _new_box(finder, box, level, (qa >> level) << level, (qb >> level) << level)
            boxes[between, _quadrant(finder, between, boxes[child, QA], boxes[child, QB])] = child
            boxes[child, PARENT] = between
            boxes[box, quadrant] = between
            child = between
        box = child
    return box


@inlined
def _prune(finder: Exact, box: int) -> None:
    """Take out a cell that has become empty, and the box above it where that is left with one child."""
    boxes = finder.boxes
    parent = int64(boxes[box, PARENT])
    boxes[parent, _quadrant(finder, parent, boxes[box, QA], boxes[box, QB])] = NONE
    _free_box(finder, box)
    above = int64(boxes[parent, PARENT])
    if above == NONE:
        return  # the root stays
    only = NONE
    children = 0
    for quadrant in range(4):
        if boxes[parent, quadrant] != NONE:
            only = int64(boxes[parent, quadrant])
            children += 1
    if children == 1:
        boxes[above, _quadrant(finder, above, boxes[parent, QA], boxes[parent, QB])] = only
        boxes[only, PARENT] = above
        _free_box(finder, parent)


# --- features in cells


@inlined
def _mark(finder: Exact, cell: int) -> int:
    """Return how a slot names its cell: with the level, so that most changes of a count need no look at it."""
    return (cell << 5) | _level(finder, cell)


@inlined
def _cell_of(mark: int) -> int:
    return mark >> 5


@inlined
def _link(finder: Exact, slots: Slots, slot: int, box: int, qa: int, qb: int) -> None:
    """Put a slot into the cell of (qa, qb) below a box that covers it."""
    cell = _cell(finder, box, qa, qb)
    first = finder.boxes[cell, FIRST]
    finder.lists[slot, NEXT] = first
    finder.lists[slot, PREVIOUS] = NONE
    if first != NONE:
        finder.lists[first, PREVIOUS] = slot
    finder.boxes[cell, FIRST] = slot
    slots.rows[slot, MARK] = _mark(finder, cell)


@jit
def _place(finder: Exact, slots: Slots, index: int, slot: int) -> None:
    """Put a waiting slot into its cell."""
    qa = coordinate(slots.rows[slot, C0])
    qb = coordinate(slots.rows[slot, C1])
    _link(finder, slots, slot, finder.state[index, ROOT], qa, qb)


@inlined
def _unlink(finder: Exact, slots: Slots, slot: int) -> None:
    """Take a slot out of its cell; the cell itself stays, maybe empty."""
    boxes = finder.boxes
    cell = _cell_of(slots.rows[slot, MARK])
    following = finder.lists[slot, NEXT]
    previous = finder.lists[slot, PREVIOUS]
    if following != NONE:
        finder.lists[following, PREVIOUS] = previous
    if previous != NONE:
        finder.lists[previous, NEXT] = following
    else:
        boxes[cell, FIRST] = following
    if boxes[cell, LOWEST] == slot or boxes[cell, SECOND] == slot:
        boxes[cell, LOWEST] = NONE
    if boxes[cell, SEEN] == slot:
        boxes[cell, SEEN] = following
    slots.rows[slot, MARK] = NO_MARK


@jit
def start(finder: Exact, index: int) -> None:
    """Begin an empty index: no boxes, all features wait."""
    finder.state[index, ROOT] = NONE
    finder.state[index, RARE] = _ALL_RARE
    finder.state[index, HOLD] = 0
    finder.state[index, STREAK] = 0
    finder.state[index, PATIENCE] = 0
    finder.others[index] = -np.inf


@inlined
def ready(finder: Exact, ones: int) -> bool:
    """Return whether `ones` features can change cells: each may need a cell and a box above it."""
    return finder.boxes.shape[0] - finder.counts[USED] >= 2 * ones + 1


@inlined
def touched(finder: Exact, slots: Slots, index: int, slot: int, label: int, weight: int) -> None:
    """Bring a slot to whose count of a label a weight has been added into the right cell."""
    count = slots.rows[slot, C0 + label]
    mark = slots.rows[slot, MARK]
    if mark == NO_MARK:
        if slots.rows[slot, C0] + slots.rows[slot, C1] >= finder.state[index, RARE]:
            _place(finder, slots, index, slot)
    else:
        # The side of a cell is told by a count's top bits, three where it is coarse. Only a change that reaches
        # up there (or may, the test is cheap and cautious) is worth a look at the box, seldom in the cache.
        level = mark & (CELL - 1)
        if (count ^ (count - weight)) >= count >> (_BITS + 1 - level):
            low = int64(finder.boxes[_cell_of(mark), QA + label])
            if count < edge(low) or count >= edge(low + (1 << level)):
                _move(finder, slots, index, slot, _cell_of(mark))


@jit
def _move(finder: Exact, slots: Slots, index: int, slot: int, cell: int) -> None:
    """Take a slot from a cell that it has outgrown to the right one: up to a box that covers both, and down.

    A slot that is light enough to wait by now (RARE may have risen) goes back to waiting and moves no more.
    """
    a = slots.rows[slot, C0]
    b = slots.rows[slot, C1]
    _unlink(finder, slots, slot)
    if a + b >= finder.state[index, RARE]:
        qa = coordinate(a)
        qb = coordinate(b)
        above = int64(finder.boxes[cell, PARENT])
        while not _covers(finder, above, qa, qb):
            above = int64(finder.boxes[above, PARENT])
        _link(finder, slots, slot, above, qa, qb)
    if finder.boxes[cell, FIRST] == NONE:
        _prune(finder, cell)


@inlined
def taking(finder: Exact, slots: Slots, criterion: Any, index: int, label: int, weight: int) -> None:
    """Note that a weight of a label is about to be taken from the totals: scores may fall by so much."""
    others = finder.others[index]
    other_total = slots.heads[index, N1 - label]
    fall = impurity(criterion, weight, other_total) + rounding(weight, other_total)
    finder.others[index] = others - (fall + 2.0**-50 * abs(others))


@inlined
def removing(finder: Exact, slots: Slots, index: int, slot: int) -> None:
    """Take a slot that is about to be given back out of its cell."""
    mark = slots.rows[slot, MARK]
    if mark != NO_MARK:
        cell = _cell_of(mark)
        _unlink(finder, slots, slot)
        if finder.boxes[cell, FIRST] == NONE:
            _prune(finder, cell)


@jit
def dropping(finder: Exact, slots: Slots, index: int) -> None:
    """Give back the root of an index whose slots are gone."""
    root = finder.state[index, ROOT]
    if root != NONE:
        _free_box(finder, root)
    start(finder, index)


@inlined
def settle(finder: Exact, slots: Slots, names: Names, criterion: Any, index: int) -> bool:
    """Nothing is left to do after an event."""
    return True


# --- the search


@jit
def _rare_bound(criterion: Any, weight: int, n0: int, n1: int) -> float:
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
def _box_bound(finder: Exact, criterion: Any, box: int, n0: int, n1: int, grain: int) -> float:
    """Return a lower bound on the scores in a box: the better of its two off-diagonal corners."""
    width = 1 << _level(finder, box)
    qa = int64(finder.boxes[box, QA])
    qb = int64(finder.boxes[box, QB])
    # Counts are multiples of the grain, which edges need not be: take the multiples just inside.
    a1 = (edge(qa) + grain - 1) & -grain
    b1 = (edge(qb) + grain - 1) & -grain
    a2 = min((edge(qa + width) - 1) & -grain, n0)
    b2 = min((edge(qb + width) - 1) & -grain, n1)
    return min(score(criterion, a1, b2, n0, n1), score(criterion, a2, b1, n0, n1))


@inlined
def _is_point(finder: Exact, cell: int, grain: int) -> bool:
    """Return whether all features of a cell must have the same counts."""
    width = 1 << _level(finder, cell)
    qa = int64(finder.boxes[cell, QA])
    qb = int64(finder.boxes[cell, QB])
    return max(edge(qa + width) - edge(qa), edge(qb + width) - edge(qb)) <= grain


@inlined
def _is_thick(finder: Exact, cell: int, total: int) -> bool:
    """Return whether a cell has so many features, and such rare ones, that it should be divided.

    A feature in a fine cell moves whenever it is seen, and a move costs what a dozen features cost to read.
    """
    rare = edge(int64(finder.boxes[cell, QA])) + edge(int64(finder.boxes[cell, QB])) <= total >> _RARELY
    if not rare or _level(finder, cell) == 0:
        return False
    slot = int64(finder.boxes[cell, FIRST])
    features = 0
    while slot != NONE and features <= _THICK:
        features += 1
        slot = int64(finder.lists[slot, NEXT])
    return features > _THICK


@jit
def _divide(finder: Exact, slots: Slots, cell: int) -> None:
    """Make a cell the smallest box that holds its features, with cells half as wide below it.

    Where all have the same coordinates it stays a cell, of level 0. There must be room for four boxes.
    """
    boxes = finder.boxes
    rows = slots.rows
    first = int64(boxes[cell, FIRST])
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
    boxes[cell, QA] = (qa >> level) << level
    boxes[cell, QB] = (qb >> level) << level
    boxes[cell, LEVEL] = level if level > 0 else CELL
    if level > 0:
        for quadrant in range(4):
            boxes[cell, quadrant] = NONE
    slot = first
    while slot != NONE:
        following = int64(finder.lists[slot, NEXT])
        if level > 0:
            _link(finder, slots, slot, cell, coordinate(rows[slot, C0]), coordinate(rows[slot, C1]))
        else:
            rows[slot, MARK] = _mark(finder, cell)
        slot = following


@jit
def _look_for_lowest(finder: Exact, slots: Slots, names: Names, cell: int) -> None:
    """Bring the two lowest features of a cell up to date: new ones are in front of those seen before."""
    boxes = finder.boxes
    lowest = int64(boxes[cell, LOWEST])
    second = int64(boxes[cell, SECOND])
    stop = int64(boxes[cell, SEEN])
    if lowest == NONE:
        second = NONE
        stop = NONE
    slot = int64(boxes[cell, FIRST])
    while slot != stop:
        if lowest == NONE or precedes(names, feature_of(slots, slot), feature_of(slots, lowest)):
            second = lowest
            lowest = slot
        elif second == NONE or precedes(names, feature_of(slots, slot), feature_of(slots, second)):
            second = slot
        slot = int64(finder.lists[slot, NEXT])
    boxes[cell, LOWEST] = lowest
    boxes[cell, SECOND] = second
    boxes[cell, SEEN] = boxes[cell, FIRST]


@jit
def _search(
    finder: Exact,
    slots: Slots,
    names: Names,
    criterion: Any,
    index: int,
    excluded: int,
    best: int,
    best_value: float,
    allowance: float,
) -> tuple[int, float, float]:
    """Return the best slot in the cells, its score, and a lower bound on all others there.

    Starts from a candidate. Boxes are left out only where they are worse than the best by more than
    `allowance`, which covers rounding and makes the bound on the others worth something. The slot is SHORT
    where a cell could not be divided for lack of boxes.
    """
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    grain = slots.heads[index, GRAIN]
    rows = slots.rows
    boxes = finder.boxes
    stack = finder.stack
    bounds = finder.bounds
    others = np.inf
    stack[0] = finder.state[index, ROOT]
    bounds[0] = -np.inf
    depth = 1
    while depth > 0:
        depth -= 1
        box = stack[depth]
        if bounds[depth] > best_value + allowance:
            others = min(others, bounds[depth])
            continue
        point = _is_cell(finder, box) and _is_point(finder, box, grain)
        if _is_cell(finder, box) and not point and _is_thick(finder, box, n0 + n1):
            if boxes.shape[0] - finder.counts[USED] < 4:
                return SHORT, best_value, others
            _divide(finder, slots, box)
            point = _is_cell(finder, box) and _is_point(finder, box, grain)
        if not _is_cell(finder, box):
            base = depth
            for quadrant in range(4):
                child = boxes[box, quadrant]
                if child == NONE:
                    continue
                bound = _box_bound(finder, criterion, child, n0, n1, grain)
                if bound > best_value + allowance:
                    others = min(others, bound)
                    continue
                at = depth
                while at > base and bounds[at - 1] < bound:  # the most promising child goes on top
                    stack[at] = stack[at - 1]
                    bounds[at] = bounds[at - 1]
                    at -= 1
                stack[at] = child
                bounds[at] = bound
                depth += 1
            continue
        # In a point all scores are the same: the lowest feature stands for the others, the next for it.
        if point:
            _look_for_lowest(finder, slots, names, box)
        slot = int64(boxes[box, LOWEST if point else FIRST])
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
                slot = int64(boxes[box, SECOND]) if slot == boxes[box, LOWEST] else int64(NONE)
    return best, best_value, others


@jit
def _wake(finder: Exact, slots: Slots, index: int, weight: int) -> bool:
    """Put every waiting feature of at least this weight into a cell; False where the boxes ran short."""
    if finder.state[index, ROOT] == NONE:
        if not ready(finder, 1):
            return False
        finder.state[index, ROOT] = _new_box(finder, NONE, _LEVELS, 0, 0)
    slot = slots.heads[index, CHAIN]
    while slot != NONE:
        if slots.rows[slot, MARK] == NO_MARK and slots.rows[slot, C0] + slots.rows[slot, C1] >= weight:
            if not ready(finder, 1):
                return False
            _place(finder, slots, index, slot)
        slot = int64(slots.chain[slot, OLDER])
    return True


@jit
def _let_fewer_wait(
    finder: Exact, slots: Slots, criterion: Any, index: int, best_value: float, slack: float
) -> bool:
    """Let fewer features wait, until those that do cannot beat the best; False where the boxes ran short."""
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    grain = slots.heads[index, GRAIN]
    rare = finder.state[index, RARE]
    while rare > grain and _rare_bound(criterion, rare - grain, n0, n1) <= best_value + slack:
        rare >>= 1
    if not _wake(finder, slots, index, rare):
        return False
    finder.state[index, RARE] = rare
    finder.state[index, HOLD] = slots.heads[index, FEATURES] >> _HOLD_SHARE
    return True


@inlined
def find(finder: Exact, slots: Slots, names: Names, criterion: Any, index: int, excluded: int) -> int:
    """Return the best slot but `excluded`, NONE where nothing splits the node, SHORT where boxes ran out."""
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


@jit
def _find_anew(
    finder: Exact,
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
        best == NONE and excluded == NONE and finder.state[index, RARE] > grain
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
            allowance += finder.state[index, PATIENCE] * best_value * (grain / (n0 + n1))
        if finder.state[index, ROOT] != NONE:
            best, best_value, others = _search(
                finder, slots, names, criterion, index, excluded, best, best_value, allowance
            )
            if best == SHORT:
                return SHORT
        rare = finder.state[index, RARE]
        if rare <= grain:
            break
        rare_bound = _rare_bound(criterion, rare - grain, n0, n1)
        if rare_bound > best_value + slack:
            others = min(others, rare_bound)
            break
        if not _let_fewer_wait(finder, slots, criterion, index, best_value, slack):
            return SHORT
    if excluded != NONE:
        return best
    _note_others(finder, criterion, index, n0, n1, others, slack)
    if finder.state[index, HOLD] == 0:
        # Only where twice as much would do: a margin, so that the threshold does not flutter.
        while rare <= (n0 + n1) >> 1 and (
            _rare_bound(criterion, 4 * rare - grain, n0, n1) > best_value + allowance
        ):
            rare *= 2
        finder.state[index, RARE] = rare
    return best


@inlined
def _adapt(finder: Exact, index: int) -> None:
    """Provide for more queries where the last search lasted as long as it should, for fewer where it did not.

    Among near ties no bound lasts, and a wide search is wasted; behind a clear winner it is paid once.
    """
    patience = finder.state[index, PATIENCE]
    finder.state[index, HOLD] = max(0, finder.state[index, HOLD] - finder.state[index, STREAK] - 1)
    if finder.state[index, STREAK] >= patience:
        finder.state[index, PATIENCE] = min(2 * patience + 1, _MOST_PATIENCE)
    else:
        finder.state[index, PATIENCE] = patience >> 1
    finder.state[index, STREAK] = 0


@inlined
def _note_others(finder: Exact, criterion: Any, index: int, n0: int, n1: int, others: float, slack: float) -> None:
    """Keep a lower bound on all scores but the best: of features seen, and of those that no example had yet."""
    unseen = score(criterion, 0, 0, n0, n1)
    finder.others[index] = min(others, unseen) - 2.0 * slack


@jit
def rank(finder: Exact, slots: Slots, names: Names, criterion: Any, index: int, ranking: Ranking) -> None:
    """Offer to a ranking all features that its limit lets through: `_search` with a limit that falls as it fills.

    Waiting features are looked at where they are, since to wake them for one question would slow all that follows.
    """
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    grain = slots.heads[index, GRAIN]
    slack = rounding(n0, n1)
    boxes = finder.boxes
    stack = finder.stack
    bounds = finder.bounds
    stack[0] = finder.state[index, ROOT]
    bounds[0] = -np.inf
    depth = 1 if stack[0] != NONE else 0
    while depth > 0:
        depth -= 1
        box = stack[depth]
        if bounds[depth] > ranking.limit[0] + slack:
            continue
        if not _is_cell(finder, box):
            base = depth
            for quadrant in range(4):
                child = boxes[box, quadrant]
                if child == NONE:
                    continue
                bound = _box_bound(finder, criterion, child, n0, n1, grain)
                at = depth
                while at > base and bounds[at - 1] < bound:  # the most promising child goes on top
                    stack[at] = stack[at - 1]
                    bounds[at] = bounds[at - 1]
                    at -= 1
                stack[at] = child
                bounds[at] = bound
                depth += 1
            continue
        slot = int64(boxes[box, FIRST])
        while slot != NONE:
            a = slots.rows[slot, C0]
            b = slots.rows[slot, C1]
            if a + b < n0 + n1:
                offer(ranking, slots, names, slot, score(criterion, a, b, n0, n1))
            slot = int64(finder.lists[slot, NEXT])
    rare = finder.state[index, RARE]
    if rare > grain and _rare_bound(criterion, rare - grain, n0, n1) <= ranking.limit[0] + slack:
        rank_chain(slots, names, criterion, index, ranking, True)


@jit
def overfull(finder: Exact, slots: Slots, index: int) -> bool:
    """Return whether some feature now occurs more often than its label: what a false delete leaves behind.

    Only boxes that reach beyond the totals are entered, and a waiting feature weighs less than RARE.
    """
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    if finder.state[index, ROOT] == NONE or finder.state[index, RARE] > min(n0, n1) + slots.heads[index, GRAIN]:
        return chain_overfull(slots, index)
    finder.stack[0] = finder.state[index, ROOT]
    depth = 1
    while depth > 0:
        depth -= 1
        box = finder.stack[depth]
        width = 1 << _level(finder, box)
        qa = int64(finder.boxes[box, QA])
        qb = int64(finder.boxes[box, QB])
        if edge(qa + width) - 1 <= n0 and edge(qb + width) - 1 <= n1:
            continue
        if not _is_cell(finder, box):
            for quadrant in range(4):
                if finder.boxes[box, quadrant] != NONE:
                    finder.stack[depth] = finder.boxes[box, quadrant]
                    depth += 1
            continue
        slot = int64(finder.boxes[box, FIRST])
        while slot != NONE:
            if slots.rows[slot, C0] > n0 or slots.rows[slot, C1] > n1:
                return True
            slot = int64(finder.lists[slot, NEXT])
    return False


# --- the arrays


def make(indexes: int, capacity: int) -> Exact:
    """Make the finder for so many indexes and slots."""
    finder = Exact(
        boxes=np.zeros((16, 8), np.int32),
        lists=np.zeros((capacity, 2), np.int32),
        state=np.zeros((indexes, 5), np.int64),
        others=np.full(indexes, -np.inf),
        stack=np.zeros(128, np.int32),
        bounds=np.zeros(128, np.float64),
        counts=np.array([0, 0, NONE], np.int64),
    )
    finder.state[:] = _EMPTY
    return finder


def grown(finder: Exact, indexes: int, capacity: int) -> Exact:
    """Return the finder with room for more indexes and slots."""
    before = len(finder.state)
    more = finder._replace(
        lists=extended(finder.lists, max(capacity, len(finder.lists))),
        state=extended(finder.state, max(indexes, before)),
        others=extended(finder.others, max(indexes, before)),
    )
    more.state[before:] = _EMPTY
    more.others[before:] = -np.inf
    return more


def enlarged(finder: Exact) -> Exact:
    """Return the finder with room for twice as many boxes."""
    return finder._replace(boxes=extended(finder.boxes, 2 * len(finder.boxes)))


def check(finder: Exact, slots: Slots) -> None:
    """Raise AssertionError unless every invariant of the boxes holds. O(everything)."""
    boxes = finder.boxes
    reached: list[int] = []
    placed: list[int] = []
    for index in range(len(finder.state)):
        root, rare, hold, _, patience = (int(x) for x in finder.state[index])
        assert rare & (rare - 1) == 0
        assert hold >= 0
        assert 0 <= patience <= _MOST_PATIENCE
        todo = [root] if root != NONE else []
        if todo:
            assert boxes[root].tolist()[PARENT:] == [NONE, _LEVELS, 0, 0]
        while todo:
            box = todo.pop()
            reached.append(box)
            level, qa, qb = int(boxes[box, LEVEL]) % CELL, int(boxes[box, QA]), int(boxes[box, QB])
            assert (qa | qb) % (1 << level) == 0
            if _is_cell(finder, box):
                assert level <= COARSE
                listed = []
                before, slot = NONE, int(boxes[box, FIRST])
                assert slot != NONE, "an empty cell was kept"
                while slot != NONE:
                    a, b = (int(x) for x in slots.rows[slot, [C0, C1]])
                    assert edge(qa) <= a < edge(qa + (1 << level)), "a feature lies outside its cell"
                    assert edge(qb) <= b < edge(qb + (1 << level)), "a feature lies outside its cell"
                    assert slots.rows[slot, MARK] == _mark(finder, box)
                    assert slots.rows[slot, 0] >> 32 == index
                    assert finder.lists[slot, PREVIOUS] == before
                    listed.append(slot)
                    before, slot = slot, int(finder.lists[slot, NEXT])
                placed += listed
                if boxes[box, LOWEST] != NONE:
                    seen = listed[listed.index(int(boxes[box, SEEN])) :]
                    assert boxes[box, LOWEST] in seen
                    assert boxes[box, SECOND] in seen if len(seen) > 1 else boxes[box, SECOND] == NONE
                continue
            children = [int(child) for child in boxes[box, :4] if child != NONE]
            assert box == root or len(children) > 1, "a box with one child was kept"
            for quadrant, child in enumerate(boxes[box, :4].tolist()):
                if child != NONE:
                    assert boxes[child, PARENT] == box
                    assert boxes[child, LEVEL] % CELL < level
                    assert _covers(finder, box, int(boxes[child, QA]), int(boxes[child, QB]))
                    assert _quadrant(finder, box, int(boxes[child, QA]), int(boxes[child, QB])) == quadrant
                    todo.append(child)
        slot = int(slots.heads[index, CHAIN])
        while slot != NONE:
            if slots.rows[slot, MARK] == NO_MARK:
                assert slots.rows[slot, C0] + slots.rows[slot, C1] < rare, "a heavy feature is in no cell"
            else:
                placed.remove(slot)
            slot = int(slots.chain[slot, OLDER])
    assert not placed, "a slot is in a cell but not in its index"
    free = []
    box = int(finder.counts[FREE])
    while box != NONE:
        free.append(box)
        box = int(boxes[box, PARENT])
    assert sorted(reached + free) == list(range(int(finder.counts[HIGH]))), "a box is lost or in two places"
    assert finder.counts[USED] == len(reached)
