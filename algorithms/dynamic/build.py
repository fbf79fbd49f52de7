"""BUILD of paper 002, algorithm 2: the greedy tree of some examples, without recursion.

::

    lay out columns -> next node -> leaf, or best split and partition -> its children are next nodes

Where a policy keeps floors (slack.py) each node is left with its own, from the scan that chose its split. There a
look builds no more than the way of an example::

    split -> the child on the way is the next node; the other waits: a leaf of which nothing is known, until it is
             looked at in its turn

Nodes of up to `_WHOLE` examples are built with all below them: for so few, to come back takes longer.
"""

from __future__ import annotations

import math
from typing import Any

from algorithms.core.arrays import int64
from algorithms.core.hashing import mix
from algorithms.core.jit import apart, dispatch, inlined, jit
from algorithms.core.kinds import BINARY
from algorithms.core.names import Names, refer
from algorithms.core.rows import Rows
from algorithms.dynamic import columns, exact, floors, indexes, nodes, rivals, slack, vocabulary
from algorithms.dynamic.columns import UNKNOWN
from algorithms.dynamic.examples import Examples, Route, everywhere, link, side_of, value_of, value_on
from algorithms.dynamic.labels import add_to_node, is_pure
from algorithms.dynamic.nodes import (
    BUILT,
    BUILT_WEIGHT,
    EXAMPLES,
    FEATURE,
    FIRST,
    HIGH,
    KIND,
    LOW,
    NONE,
    NUMBER,
    Nodes,
)
from algorithms.dynamic.rivals import FEW, WORTHWHILE
from algorithms.dynamic.segment import (
    HANDED,
    HELD,
    KEPT,
    LIGHTEST,
    MOST_KEPT,
    PENDING,
    TOUCHED,
    Segment,
    clear,
    lay_out,
)
from algorithms.dynamic.slack import ABOVE, AT_BELOW, BELOW, BLOCK, INDEXED, IS_KNOWN, NoSlack, Slack
from algorithms.dynamic.splitter import (
    NO_SPLIT,
    Choice,
    Way,
    best_split,
    forget,
    part_columns,
    partition,
    take_out,
    tally,
)
from algorithms.dynamic.terms import EPSILON, EXACT, Terms

_ORDERED = int(Way.ORDERED)
_WHOLE = 16
_PLACES = 50  # levels whose nodes are numbered by their places; deeper ones, by a hash of theirs


@inlined
def _push(segment: Segment, parent: int, side: int, depth: int, start: int, stop: int, salt: int) -> None:
    at = segment.sizes[PENDING]
    segment.pending[at, 0] = parent
    segment.pending[at, 1] = side
    segment.pending[at, 2] = depth
    segment.pending[at, 3] = start
    segment.pending[at, 4] = stop
    segment.pending[at, 5] = salt
    segment.sizes[PENDING] += 1


@jit
def describe(criterion: Any, state: Nodes, segment: Segment, node: int, start: int, stop: int) -> None:
    """Write what a node holds that owns start to stop of `order`; s(v) and c(v) begin with it."""
    weight = int64(0)
    for position in range(start, stop):
        i = segment.order[position]
        add_to_node(criterion, state.weights, node, segment.label[i], segment.weight[i])
        weight += segment.weight[i]
    state.links[node, EXAMPLES] = stop - start
    state.links[node, BUILT] = stop - start
    state.links[node, BUILT_WEIGHT] = weight


@jit
def is_done(criterion: Any, state: Nodes, segment: Segment, terms: Terms, node: int, depth: int) -> bool:
    """Return whether a node is a leaf whatever its features are: algorithm 2, line 3.

    Where it is not, what features have of its sums is in `totals`.
    """
    if state.links[node, EXAMPLES] <= terms.min_examples or depth >= terms.max_depth:
        return True
    for k in range(segment.totals.size):
        segment.totals[k] = state.weights[node, k]
    return is_pure(criterion, state.weights, node, segment.totals, terms.alpha)


@jit
def hold(state: Nodes, segment: Segment, examples: Examples, leaf: int, start: int, stop: int) -> None:
    """Make a leaf's list of its examples."""
    for position in range(start, stop):
        row = segment.rows[segment.order[position]]
        state.links[leaf, FIRST] = link(examples, state.links[leaf, FIRST], row)


@jit
def wait(
    criterion: Any,
    state: Nodes,
    known: Any,
    segment: Segment,
    examples: Examples,
    parent: int,
    side: int,
    depth: int,
    number: int,
    start: int,
    stop: int,
) -> int:
    """Make a leaf of start to stop of `order` that waits for a look; return it."""
    leaf = nodes.create(state, parent, side, depth, number)
    describe(criterion, state, segment, leaf, start, stop)
    hold(state, segment, examples, leaf, start, stop)
    _mark(known, leaf)
    return leaf


@inlined
def _mark_nothing(known: NoSlack, leaf: int) -> None:
    pass


@inlined
def _mark_waiting(known: Slack, leaf: int) -> None:
    known.floor[leaf] = UNKNOWN


_mark = dispatch("Note that nothing is known of a leaf.", {NoSlack: _mark_nothing, Slack: _mark_waiting})


@inlined
def waits(known: Slack, leaf: int) -> bool:
    """Return whether nothing is known of a leaf: it may be split, whatever its impurity is."""
    return bool(known.floor[leaf] == UNKNOWN)


@jit
def split(
    state: Nodes,
    segment: Segment,
    examples: Examples,
    words: Rows,
    names: Names,
    node: int,
    column: int,
    threshold: float,
    start: int,
    stop: int,
) -> int:
    """Let a node test a column, and put its low side first; return where the high side begins."""
    feature = vocabulary.feature_of(words, column)
    kind = words.cells[column, vocabulary.KIND]
    state.links[node, FEATURE] = feature
    state.links[node, KIND] = kind
    state.threshold[node] = threshold
    refer(names, feature)
    return partition(segment, examples, start, stop, feature, kind, threshold)


@inlined
def below(salt: int, side: int) -> int:
    """Return by what a child draws, its parent's LOW or HIGH."""
    return mix(salt, side)


@inlined
def _place(state: Nodes, terms: Terms, parent: int, side: int, depth: int) -> int:
    """Return the number of a node by its place: the root 0, then 1 and 2, then 3 to 6; by the clock 0 for now.

    Below `_PLACES` levels it is a hash of 60 bits, above all places, as places would be too many.
    """
    if terms.policy == EPSILON or parent == NONE:
        return int64(0)
    number = state.links[parent, NUMBER]
    if depth <= _PLACES:
        return 2 * number + 1 + side - LOW
    high, low = mix(number >> 32, side), mix(number & 0xFFFFFFFF, side)
    return int64(1) << 60 | (int64(mix(high, low)) << 28) ^ mix(low, high)


@inlined
def _side_on(route: Route, state: Nodes, node: int, examples: int) -> int:
    """Return which child of a node is built, LOW or HIGH; NONE: both are."""
    if route.stop < route.start or examples <= _WHOLE:
        return int64(NONE)
    value = value_on(route, state.links[node, FEATURE])
    return int64(LOW + side_of(state.links[node, KIND], state.threshold[node], value))


@inlined
def _has_rivals(segment: Segment, examples: int) -> bool:
    """Return whether a node is worth a block of rivals: a large one, or one whose features may all be in it."""
    return examples > WORTHWHILE or (examples > FEW and segment.sizes[TOUCHED] <= rivals.WIDTH)


@inlined
def wanted(known: Slack, segment: Segment, examples: int) -> int:
    """Return how many splits a scan of a node is to keep, whose features are counted."""
    if segment.owner.size == 0 and indexes.serves(known.indexes, examples):
        return 0  # its index tells all
    if segment.sizes[TOUCHED] <= rivals.WIDTH:
        return MOST_KEPT if examples > FEW else 2
    return min(MOST_KEPT, examples >> 1) if examples > WORTHWHILE else 2


@jit
def settle(
    criterion: Any,
    state: Nodes,
    known: Slack,
    segment: Segment,
    examples: Examples,
    words: Rows,
    terms: Terms,
    node: int,
    start: int,
    stop: int,
    choice: Choice,
) -> None:
    """Write what is known of a node after a scan: its floor, what is beside its threshold, rivals or an index.

    The node owns start to stop of `order`, its class weights are in `totals`, and its own split need not be the
    one that was chosen. O(kept + classes), and for EXACT O(examples log features) where it is numeric.
    """
    slack.clear(known, node)
    known.counts[node, IS_KNOWN] = 1
    if choice.column == NONE and terms.policy == EXACT:
        known.floor[node] = math.inf
        indexes.drop(known.indexes, node)
        return
    is_indexed = indexes.serves(known.indexes, stop - start)
    if is_indexed:
        known.counts[node, BLOCK] = INDEXED
        _take_index(known, segment, words, node)
        if segment.owner.size == 0:
            known.floor[node] = math.inf
            return
    else:
        indexes.drop(known.indexes, node)
    whole = floors.whole_of(criterion, state.weights, node, segment.totals)
    floor = choice.floor
    is_binary = state.links[node, FEATURE] != NONE and state.links[node, KIND] == BINARY
    floor = _take_rivals(state, known, segment, words, node, stop - start, floor)
    seen = floors.left_by(criterion, whole, floor) - whole.error
    floors.begin_old(criterion, known, node, seen, segment.totals, segment.sizes[LIGHTEST])
    are_all_rivals = (
        is_binary and known.counts[node, BLOCK] > 0 and floor == math.inf and not _has_numbers(segment)
    )
    known.floor[node] = math.inf if are_all_rivals else min(seen, whole.left - whole.error)
    _take_columns(known, criterion, state, segment, words, terms, node, start, stop, whole)
    if terms.policy != EXACT or is_binary:
        return
    if not exact.knows_beside(known.columns, node, state.links[node, FEATURE]):
        return
    known.beside[node, BELOW] = choice.below
    known.beside[node, ABOVE] = choice.above
    for position in range(start, stop):
        value = value_of(examples, segment.rows[segment.order[position]], state.links[node, FEATURE])
        for side in (BELOW, ABOVE):
            if value == known.beside[node, side]:
                known.counts[node, AT_BELOW + side] += 1


@inlined
def _has_numbers(segment: Segment) -> bool:
    """Return whether some example of a node that has been scanned has a numeric feature."""
    found = False
    for at in range(segment.sizes[TOUCHED] if segment.owner.size > 0 else 0):
        found = found or segment.numeric[segment.touched[at]] == 1
    return found


@jit
def _take_index(known: Slack, segment: Segment, words: Rows, node: int) -> None:
    """Give a node that has been scanned an index: its own, that of the node in whose place it is, or a new one."""
    if known.indexes.of[node] == 0:
        known.indexes.of[node] = segment.sizes[HANDED]
        segment.sizes[HANDED] = 0
    if known.indexes.of[node] == 0:
        known.indexes.of[node] = indexes.begin(known.indexes, segment, words) + 1


@jit
def _take_columns(
    known: Slack,
    criterion: Any,
    state: Nodes,
    segment: Segment,
    words: Rows,
    terms: Terms,
    node: int,
    start: int,
    stop: int,
    whole: floors.Whole,
) -> None:
    """Give the numeric features that a scan has kept floors of their own, and note which labels a node has."""
    floors.begin_labels(criterion, known, node, segment.label[segment.order[start]])
    for position in range(start + 1, stop):
        floors.note_label(criterion, known, node, segment.label[segment.order[position]])
    kept = segment.kept_columns
    for at in range(kept.size[0]):
        feature = vocabulary.feature_of(words, kept.column[at])
        is_own = feature == state.links[node, FEATURE]
        score = min(kept.second[at], columns.bar(kept)) if is_own and terms.policy == EXACT else kept.score[at]
        floor = floors.left_by(criterion, whole, min(score, whole.score)) - whole.error
        columns.add(known.columns, node, feature, floor, is_own)


@jit
def _take_rivals(
    state: Nodes,
    known: Slack,
    segment: Segment,
    words: Rows,
    node: int,
    examples: int,
    floor: float,
) -> float:
    """Make rivals of what a scan has kept below its floor; return the floor under all else that it has seen.

    These are scores. What scores as much as the floor is no rival: which of several that is kept depends on the
    order of the scan.
    """
    block = int64(NONE)
    if known.counts[node, BLOCK] == INDEXED:
        return floor
    if _has_rivals(segment, examples):
        block = rivals.take(known.rivals)
        known.counts[node, BLOCK] = block + 1
    most = floor
    for at in range(segment.sizes[KEPT]):
        feature = vocabulary.feature_of(words, segment.kept_column[at])
        if feature == state.links[node, FEATURE]:
            continue
        if block == NONE:
            floor = min(floor, segment.kept_score[at])
        elif segment.kept_score[at] < most:
            cell = block * rivals.WIDTH + known.rivals.heads[block, rivals.SIZE]
            known.rivals.heads[block, rivals.SIZE] += 1
            known.rivals.cells[cell, rivals.FEATURE] = feature
            for k in range(segment.totals.size):
                known.rivals.cells[cell, rivals.WEIGHTS + k] = segment.kept_below[at, k]
    return floor


@jit
def number_all(state: Nodes, segment: Segment, top: int, number: int) -> int:
    """Give a node and all below their numbers, in preorder from `number`; return the next number."""
    segment.pending[0, 0] = top
    pending = int64(1)
    while pending > 0:
        pending -= 1
        node = segment.pending[pending, 0]
        state.links[node, NUMBER] = number
        number += 1
        if state.links[node, FEATURE] != NONE:
            segment.pending[pending, 0] = state.links[node, HIGH]
            segment.pending[pending + 1, 0] = state.links[node, LOW]
            pending += 2
    return number


# --- by the clock or with floors


@inlined
def _want_none(known: NoSlack, segment: Segment, examples: int) -> int:
    return int64(0)


_wanted = dispatch("See `wanted`; by the clock it is none.", {NoSlack: _want_none, Slack: wanted})


@inlined
def _settle_nothing(
    known: NoSlack,
    criterion: Any,
    state: Nodes,
    segment: Segment,
    examples: Examples,
    words: Rows,
    terms: Terms,
    node: int,
    start: int,
    stop: int,
    choice: Choice,
    is_done: bool,
) -> None:
    pass


@apart
def _settle_built(
    known: Slack,
    criterion: Any,
    state: Nodes,
    segment: Segment,
    examples: Examples,
    words: Rows,
    terms: Terms,
    node: int,
    start: int,
    stop: int,
    choice: Choice,
    is_done: bool,
) -> None:
    if is_done:
        slack.clear(known, node)
    else:
        settle(criterion, state, known, segment, examples, words, terms, node, start, stop, choice)


_settle = dispatch(
    "Write what is known of a node that has been built, see `settle`.",
    {NoSlack: _settle_nothing, Slack: _settle_built},
)


@inlined
def _finish_by_clock(known: NoSlack, state: Nodes, segment: Segment, top: int, number: int) -> int:
    return number_all(state, segment, top, number)


@apart
def _finish_with_floors(known: Slack, state: Nodes, segment: Segment, top: int, number: int) -> int:
    if segment.sizes[HANDED] > 0:
        indexes.end(known.indexes, segment.sizes[HANDED] - 1)
        segment.sizes[HANDED] = 0
    return number


_finish = dispatch(
    "Number the nodes of a subtree that has been built, unless they have their places; return the next number.",
    {NoSlack: _finish_by_clock, Slack: _finish_with_floors},
)


@jit
def build(
    criterion: Any,
    state: Nodes,
    known: Any,
    segment: Segment,
    examples: Examples,
    words: Rows,
    names: Names,
    terms: Terms,
    parent: int,
    side: int,
    depth: int,
    number: int,
) -> tuple[int, int]:
    """Build the tree of the examples in `segment.rows` below a parent; there must be room.

    Nodes are numbered from `number` in preorder, low sides first, where the policy is EPSILON; else by their
    places. Returns the top and the next number. O(entries) a level where features are numeric, and a sort of each
    column; see `Way` for others. Features that are binary are counted anew in the smaller of two children alone:
    what was counted of their parent, less that, is of the larger, which comes next. So an entry is counted
    O(log examples) times.
    """
    lay_out(criterion, segment, examples, words)
    return grow(
        criterion,
        state,
        known,
        segment,
        examples,
        words,
        names,
        terms,
        parent,
        side,
        depth,
        number,
        NO_SPLIT,
        int64(0),
        everywhere(examples),
    )


@jit
def grow(
    criterion: Any,
    state: Nodes,
    known: Any,
    segment: Segment,
    examples: Examples,
    words: Rows,
    names: Names,
    terms: Terms,
    parent: int,
    side: int,
    depth: int,
    number: int,
    choice: Choice,
    is_chosen: int,
    route: Route,
) -> tuple[int, int]:
    """Do as `build` with examples that are laid out, on a way, the split of the top chosen (1) or not (0)."""
    segment.sizes[PENDING] = 0
    _push(segment, parent, side, depth, int64(0), segment.sizes[HELD], terms.salt)
    top = int64(NONE)
    # Whether the next node's features are those counted of its parent, less those of `sibling` to `end`.
    is_heir = int64(0)
    low, high = int64(LOW), int64(HIGH)
    sibling = int64(0)
    end = int64(0)
    while segment.sizes[PENDING] > 0:
        segment.sizes[PENDING] -= 1
        at = segment.sizes[PENDING]
        parent, side, depth = segment.pending[at, 0], segment.pending[at, 1], segment.pending[at, 2]
        start, stop, salt = segment.pending[at, 3], segment.pending[at, 4], segment.pending[at, 5]
        node = nodes.create(state, parent, side, depth, _place(state, terms, parent, side, depth))
        if top == NONE:
            top = node
        describe(criterion, state, segment, node, start, stop)
        done = is_done(criterion, state, segment, terms, node, depth)
        if done or is_chosen == 0 or node != top:
            choice = NO_SPLIT
        if not done and (is_chosen == 0 or node != top):
            if is_heir == 1:
                take_out(criterion, segment, sibling, end)
            elif node != top:
                tally(criterion, segment, start, stop)
            kept = _wanted(known, segment, stop - start)
            choice = best_split(
                criterion, segment, words, names, start, stop, terms.way, is_heir, terms.drawn, salt, kept
            )
        column = choice.column
        is_heir = int64(0)
        if column == NONE:
            hold(state, segment, examples, node, start, stop)
            _settle(known, criterion, state, segment, examples, words, terms, node, start, stop, choice, done)
            continue
        middle = split(state, segment, examples, words, names, node, column, choice.threshold, start, stop)
        _settle(known, criterion, state, segment, examples, words, terms, node, start, stop, choice, done)
        takes_high = stop - middle > middle - start
        on = _side_on(route, state, node, stop - start)
        is_heir = int64(on == NONE or takes_high == (on == HIGH))
        if terms.way == _ORDERED and depth + 1 < terms.max_depth:
            part_columns(segment, start, stop, middle, takes_high, False)
        # The larger comes next: it is pushed last.
        for is_high in (not takes_high, takes_high):
            to, begin, until = (high, middle, stop) if is_high else (low, start, middle)
            if on in (NONE, to):
                _push(segment, node, to, depth + 1, begin, until, below(salt, to))
            else:
                place = _place(state, terms, node, to, depth + 1)
                wait(criterion, state, known, segment, examples, node, to, depth + 1, place, begin, until)
        sibling, end = (start, middle) if takes_high else (middle, stop)
    forget(segment)
    clear(segment)
    return top, _finish(known, state, segment, top, number)
