"""The best split of a node, from the columns of its segment: paper 003, section 3.

A numeric column in a node is negatives | zeros | positives. Only what is not zero is stored; zeros are known by
what is missing, and are a value like any other. A binary feature needs its class weights and nothing else, of
numbers their sums (labels.py).
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple

from algorithms.core.arrays import Float64s, Int32s, int64
from algorithms.core.criteria import log2
from algorithms.core.hashing import mix
from algorithms.core.jit import apart, inlined, jit
from algorithms.core.names import Names, precedes
from algorithms.core.rows import NONE, Rows
from algorithms.dynamic import columns, estimates
from algorithms.dynamic.estimates import Node, Passed
from algorithms.dynamic.examples import Examples, side_of, value_of
from algorithms.dynamic.labels import add_to_feature, score
from algorithms.dynamic.ordering import put_in_order
from algorithms.dynamic.segment import BEGIN, END, HELD, KEPT, TOUCHED, Segment, begin_weights, bring, take_label
from algorithms.dynamic.vocabulary import feature_of
from algorithms.trees.quantised import between


class Way(IntEnum):
    """How the non-zeros of a column in a node are found, and put in order."""

    ORDERED = (
        0  # columns are sorted when they are scored first, and parted as their nodes are: O(non-zeros in the node)
    )
    MAP = 1  # each entry of the column is looked up in the mapping, then sorted: paper 003, algorithm 4
    SEARCH = 2  # each example of the node is searched for in the column, then sorted: algorithm 5
    EITHER = 3  # whichever of the two equation 8 says
    DENSE = 4  # written out with all its zeros and sorted, rare or not: a baseline, as the paper measures against


_ORDERED, _MAP, _SEARCH, _DENSE = int(Way.ORDERED), int(Way.MAP), int(Way.SEARCH), int(Way.DENSE)
_SEARCH_BELOW = 0.1  # of a column's entries: equation 8, as its authors measured


class Choice(NamedTuple):
    """A split; the column NONE: there is none."""

    column: int
    threshold: float  # of a numeric feature, else 0
    gain: float  # how much less it scores than what parts nothing; 0 where that is within the error of rounding
    below: float  # the value of a numeric feature next to the threshold on its low side
    above: float  # and on its high side
    score: float
    floor: float  # where splits are kept, no other but these scores less


NO_SPLIT = Choice(NONE, 0.0, 0.0, 0.0, 0.0, math.inf, math.inf)


class _Leader(NamedTuple):
    """The best split of the columns that have been looked at."""

    column: int  # NONE: none yet
    score: float
    below: float  # the values on both sides of a numeric feature's threshold
    above: float
    others: float  # a floor under the scores of what was looked at and is not kept
    bar: float  # what scores more does not matter
    rare: int  # a feature of at most so many examples cannot score less than the bar


class _Best(NamedTuple):
    """The best threshold of a numeric column."""

    score: float  # inf where no score can be as low as that of another column
    below: float  # the values that it lies between
    above: float
    second: float  # no other threshold of the column scores less; inf where none can be as low as the limit


# --- the non-zeros of a column


@jit
def _group(segment: Segment, column: int, start: int) -> int:
    """Return where in a column the entries of the node begin that owns `start`. O(log entries)."""
    low = segment.spans[column, BEGIN]
    high = segment.spans[column, END]
    while low < high:
        middle = (low + high) >> 1
        if segment.place[segment.owner[middle]] < start:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def group_all(segment: Segment, start: int) -> None:
    """Find where the entries of the node that was tallied last, and owns `start`, begin in all its columns."""
    for at in range(segment.sizes[TOUCHED]):
        column = segment.touched[at]
        if segment.numeric[column] == 1:
            segment.group[column] = _group(segment, column, start)


@inlined
def _is_constant(segment: Segment, column: int, start: int, stop: int) -> bool:
    """Return whether all of a node are known to have one value of a numeric column: of a node above, or itself."""
    return segment.constant[column, BEGIN] <= start and stop <= segment.constant[column, END]


@jit
def part_columns(segment: Segment, start: int, stop: int, middle: int, keeps_high: bool, are_all: bool) -> None:
    """Put the low side first in all columns of the node that was looked at last, for `Way.ORDERED`.

    What was in order stays in order. `group` tells then where the entries of one side begin, the side that is
    looked at next. Unless `are_all`, constant columns stay as they are: nobody looks at them below this node, if
    no other node is looked at before those below it.
    """
    for at in range(segment.sizes[TOUCHED]):
        column = segment.touched[at]
        if segment.numeric[column] == 0 or (not are_all and _is_constant(segment, column, start, stop)):
            continue
        low = segment.group[column]
        high = int64(0)
        for entry in range(low, low + segment.present[column]):
            owner = segment.owner[entry]
            if segment.place[owner] < middle:
                segment.owner[low] = owner
                segment.value[low] = segment.value[entry]
                low += 1
            else:
                segment.spare_owner[high] = owner
                segment.spare_value[high] = segment.value[entry]
                high += 1
        for entry in range(high):
            segment.owner[low + entry] = segment.spare_owner[entry]
            segment.value[low + entry] = segment.spare_value[entry]
        if keeps_high:
            segment.group[column] = low


@jit
def look_up(segment: Segment, column: int, start: int, stop: int, way: int) -> int:
    """Write a numeric column of the node that owns start to stop to `found_owner` and `found_value`, sorted.

    Returns how many entries there are: `present[column]`, or with `Way.DENSE` one for each example.
    """
    entries = segment.spans[column, END] - segment.spans[column, BEGIN]
    searches = way == _SEARCH or (way != _MAP and is_searched(stop - start, entries))
    negatives = int64(0)
    positives = segment.present[column]
    if searches:
        for position in range(start, stop):
            at = _entry_of(segment, column, segment.order[position])
            if at != NONE:
                negatives, positives = _put(segment, at, negatives, positives)
    else:
        for at in range(segment.spans[column, BEGIN], segment.spans[column, END]):
            if start <= segment.place[segment.owner[at]] < stop:
                negatives, positives = _put(segment, at, negatives, positives)
    if way == _DENSE:
        _write_out(segment, segment.present[column], start, stop)
        _sort(segment, segment.found_value, segment.found_owner, int64(0), stop - start)
        return stop - start
    _sort(segment, segment.found_value, segment.found_owner, int64(0), negatives)
    _sort(segment, segment.found_value, segment.found_owner, negatives, segment.present[column])
    return segment.present[column]


@jit
def _write_out(segment: Segment, entries: int, start: int, stop: int) -> None:
    """Make a value of each example of the node, in their order, of those that were found."""
    for entry in range(entries):
        segment.spare_value[entry] = segment.found_value[entry]
        segment.spare_owner[entry] = segment.found_owner[entry]
    for position in range(start, stop):
        segment.found_value[position - start] = 0.0
        segment.found_owner[position - start] = segment.order[position]
    for entry in range(entries):
        segment.found_value[segment.place[segment.spare_owner[entry]] - start] = segment.spare_value[entry]


@inlined
def _sort(segment: Segment, values: Float64s, owners: Int32s, start: int, stop: int) -> None:
    put_in_order(values, owners, start, stop, segment.spare_value, segment.spare_owner, segment.digits)


@inlined
def is_searched(examples: int, entries: int) -> bool:
    """Return whether it is faster to search a column for each example than to look at each entry: equation 8.

    Its logarithm is 0 for a column of one entry; a search looks at one entry at least.
    """
    most = _SEARCH_BELOW * entries
    return examples < most and examples * max(1.0, log2(float(entries))) < most  # mostly without a logarithm


@inlined
def _entry_of(segment: Segment, column: int, i: int) -> int:
    """Return where an example's entry of a column is, or NONE."""
    low = segment.spans[column, BEGIN]
    high = segment.spans[column, END]
    while low < high:
        middle = (low + high) >> 1
        if segment.owner[middle] < i:
            low = middle + 1
        else:
            high = middle
    if low < segment.spans[column, END] and segment.owner[low] == i:
        return low
    return int64(NONE)


@inlined
def _put(segment: Segment, at: int, negatives: int, positives: int) -> tuple[int, int]:
    """Put an entry behind the negatives or before the positives; return where both end and begin now."""
    value = segment.value[at]
    if value < 0.0:
        to = negatives
        negatives += 1
    else:
        positives -= 1
        to = positives
    segment.found_value[to] = value
    segment.found_owner[to] = segment.owner[at]
    return negatives, positives


# --- scores


@inlined
def _binary_score(criterion: Any, segment: Segment, column: int) -> float:
    for k in range(segment.totals.size):
        segment.below[k] = segment.totals[k] - segment.counts[column, k]
    return score(criterion, segment.below, segment.totals)


# --- thresholds


@jit
def _sweep(
    criterion: Any,
    segment: Segment,
    node: Node,
    entries: int,
    values: Float64s,
    owners: Int32s,
    begin: int,
    limit: float,
    has_second: bool,
) -> _Best:
    """Score all thresholds between neighbours of a column, zeros among them; its entries are sorted from `begin`.

    Paper 003, algorithm 3, with the thresholds on both sides of zero. O(non-zeros), and O(classes) for each
    threshold that is scored in full: what scores more than `limit`, or than the best of the column so far, where
    `has_second` than the second best, is not.
    """
    stop = begin + entries
    zeros = entries < node.examples
    part = segment.part  # sums of the negatives so far, then of the positives to come; 0 between two columns
    best = _Best(math.inf, 0.0, 0.0, math.inf)
    at = begin
    passed = Passed(int64(0), 0.0, node.class_sum)
    while at < stop and values[at] < 0.0:
        here = values[at]
        while at < stop and values[at] == here:
            passed = estimates.added(criterion, segment, passed, int64(owners[at]))
            at += 1
        after = 0.0 if zeros else math.inf
        if at < stop and values[at] < 0.0:
            after = values[at]
        bar = min(limit, best.second if has_second else best.score)
        if after < math.inf and estimates.may_win(criterion, segment, node, passed, bar):
            for k in range(part.size):
                segment.below[k] = part[k]
            best = _less(criterion, segment, best, here, after)
    middle = at
    for entry in range(begin, middle):
        estimates.wiped(criterion, segment, int64(owners[entry]))
    if at == stop:
        return best
    if stop - middle == node.examples:
        passed = Passed(node.weight, node.class_sum, 0.0)
        for k in range(part.size):
            part[k] = segment.totals[k]
    else:
        passed = Passed(int64(0), 0.0, node.class_sum)
        for entry in range(middle, stop):
            passed = estimates.added(criterion, segment, passed, int64(owners[entry]))
    last = -math.inf
    if zeros:
        last = 0.0
    elif middle > begin:
        last = values[middle - 1]
    while at < stop:
        here = values[at]
        bar = min(limit, best.second if has_second else best.score)
        if last > -math.inf and estimates.may_win(criterion, segment, node, passed, bar):
            for k in range(part.size):
                segment.below[k] = segment.totals[k] - part[k]
            best = _less(criterion, segment, best, last, here)
        if values[stop - 1] == here:  # no threshold is above it
            for entry in range(at, stop):
                estimates.wiped(criterion, segment, int64(owners[entry]))
            break
        while values[at] == here:
            passed = estimates.removed(criterion, segment, passed, int64(owners[at]))
            at += 1
        last = here
    return best


@jit
def _less(criterion: Any, segment: Segment, best: _Best, last: float, here: float) -> _Best:
    """Return the better of the best so far and the threshold between two neighbours; `below` is its low side."""
    now = score(criterion, segment.below, segment.totals)
    if now < best.score:
        return _Best(now, last, here, best.score)
    return _Best(best.score, best.below, best.above, min(best.second, now))


@jit
def _lowest_neighbours(node: Node, entries: int, values: Float64s, begin: int) -> tuple[float, float]:
    """Return the values on both sides of the lowest threshold of a column that has one."""
    stop = begin + entries
    lowest = values[begin]
    zeros = entries < node.examples
    if zeros and lowest > 0.0:
        return 0.0, lowest
    at = begin
    while at < stop and values[at] == lowest:
        at += 1
    if zeros and (at == stop or values[at] > 0.0):
        return lowest, 0.0
    return lowest, values[at]


# --- the best of all columns


@jit
def tally(criterion: Any, segment: Segment, start: int, stop: int) -> None:
    """Count the features of the node that owns start to stop. O(entries of the node)."""
    forget(segment)
    touched = int64(0)
    for position in range(start, stop):
        i = segment.order[position]
        for entry in range(segment.first[i], segment.first[i + 1]):
            column = int64(segment.column[entry])
            if segment.present[column] == 0:
                segment.touched[touched] = column
                touched += 1
            segment.present[column] += 1
            if segment.numeric[column] == 0:
                add_to_feature(criterion, segment.counts, column, segment.label[i], segment.weight[i])
    segment.sizes[TOUCHED] = touched


@jit
def take_out(criterion: Any, segment: Segment, start: int, stop: int) -> None:
    """Make what was counted of a node that of its child, taking out the other child. O(entries of that)."""
    for position in range(start, stop):
        i = segment.order[position]
        for entry in range(segment.first[i], segment.first[i + 1]):
            column = int64(segment.column[entry])
            segment.present[column] -= 1
            if segment.numeric[column] == 0:
                add_to_feature(criterion, segment.counts, column, segment.label[i], -segment.weight[i])


@jit
def forget(segment: Segment) -> None:
    """Undo what was counted of features."""
    for at in range(segment.sizes[TOUCHED]):
        column = segment.touched[at]
        segment.present[column] = 0
        if segment.numeric[column] == 0:
            for k in range(segment.totals.size):
                segment.counts[column, k] = 0
    segment.sizes[TOUCHED] = 0


@jit
def best_split(
    criterion: Any,
    segment: Segment,
    words: Rows,
    names: Names,
    start: int,
    stop: int,
    way: int,
    are_grouped: int,
    drawn: int,
    salt: int,
    wanted: int,
) -> Choice:
    """Return the best split of the node that owns start to stop of `order`.

    Ties go to the lowest feature, then to the lowest threshold. A gain within the error of rounding is none: where
    no split has more, they all tie. The node must not be pure; its classes are in `totals`, and `tally` or
    `take_out` has counted its features. `are_grouped` is 1 where `group` tells where its entries begin in their
    columns, else 0.

    `drawn`: so many features alone, of those that part the node, see `_draw`; 0: all.

    The best splits of binary features are kept, as many as are wanted, and told with a floor under the scores of
    all others but the best: what may be as good as that is scored as well. So two tell the second best; none is
    wanted where the best alone counts. Numeric features have floors of their own (columns.py): where splits are
    wanted these are kept as well, and the floor is that of all the rest. A numeric feature that all examples have
    alike counts nowhere.
    """
    node = estimates.common(criterion, segment, start, stop)
    leader = _Leader(int64(NONE), math.inf, 0.0, 0.0, math.inf, math.inf, int64(0))
    segment.sizes[KEPT] = 0
    columns.begin(segment.kept_columns)
    first = int64(0)
    if drawn > 0:
        leader, first = _drawn_split(
            criterion, segment, words, names, node, start, stop, way, are_grouped, drawn, salt, leader
        )
    else:
        kept = int64(0)
        for at in range(segment.sizes[TOUCHED]):
            column = segment.touched[at]
            if segment.present[column] == 0:
                continue
            segment.touched[kept] = column
            kept += 1
            if segment.numeric[column] == 1 and way == _ORDERED and are_grouped == 0:
                segment.group[column] = _group(segment, column, start)
            if segment.present[column] > leader.rare:
                leader = _consider(
                    criterion, segment, words, names, node, column, start, stop, way, leader, wanted
                )
        segment.sizes[TOUCHED] = kept
    if leader.score >= node.impurity - node.noise:
        return _lowest(segment, words, names, node, first, start, stop, way, min(leader.bar, leader.score))
    threshold = between(leader.below, leader.above)
    gain = node.impurity - leader.score
    return Choice(leader.column, threshold, gain, leader.below, leader.above, leader.score, leader.bar)


@inlined
def _consider(
    criterion: Any,
    segment: Segment,
    words: Rows,
    names: Names,
    node: Node,
    column: int,
    start: int,
    stop: int,
    way: int,
    leader: _Leader,
    wanted: int,
) -> _Leader:
    """Return the better of the best so far and the best split of a column."""
    everywhere = segment.present[column] == node.examples
    others = leader.others
    found = _Best(math.inf, 0.0, 0.0, math.inf)
    if segment.numeric[column] == 0:
        if everywhere and wanted == 0:
            return leader
        if not everywhere:
            found = _Best(_binary_score(criterion, segment, column), 0.0, 0.0, math.inf)
        kept_score = min(found.score, node.impurity)  # what all have parts nothing yet
        if wanted > 0 and kept_score < leader.bar:
            others = min(others, _keep(segment, column, kept_score, wanted))
    else:
        if everywhere and _is_constant(segment, column, start, stop):
            return leader
        if way == _ORDERED:
            values, owners, begin = segment.value, segment.owner, segment.group[column]
            entries = segment.present[column]
            _sort(segment, values, owners, begin, begin + entries)
        else:
            entries = look_up(segment, column, start, stop, way)
            values, owners, begin = segment.found_value, segment.found_owner, int64(0)
        if everywhere and values[begin] == values[begin + entries - 1]:
            segment.constant[column, BEGIN] = start
            segment.constant[column, END] = stop
            return leader
        # What columns are kept, and with what, must not depend on their order.
        limit = columns.bar(segment.kept_columns) if wanted > 0 else leader.bar
        found = _sweep(criterion, segment, node, entries, values, owners, begin, limit, wanted > 0)
        others = min(others, columns.keep(segment.kept_columns, column, found.score, found.second))
    best, least, below, above = leader.column, leader.score, leader.below, leader.above
    if found.score < least or (
        found.score == least and least < math.inf and _precedes(words, names, column, best)
    ):
        best, least, below, above = column, found.score, found.below, found.above
    bar = least
    if wanted > 0:
        bar = min(others, columns.bar(segment.kept_columns))
        if segment.sizes[KEPT] == wanted:
            bar = min(bar, segment.kept_score[0])
    rare = leader.rare
    if bar < leader.bar and way != _DENSE:
        rare = estimates.rare(criterion, segment, node, bar)
    return _Leader(best, least, below, above, others, bar, rare)


@inlined
def _keep(segment: Segment, column: int, score: float, wanted: int) -> float:
    """Keep the split of a binary feature; return the score of what is not kept then, or inf. O(log wanted)."""
    kept = segment.kept_score
    left_out = math.inf
    if segment.sizes[KEPT] == wanted:
        left_out = kept[0]
        if score >= left_out:
            return score
        at = int64(0)  # the worst goes, the worse child moves up
        while 2 * at + 1 < wanted:
            child = 2 * at + 1
            if child + 1 < wanted and kept[child + 1] > kept[child]:
                child += 1
            if kept[child] <= score:
                break
            _move_kept(segment, child, at)
            at = child
    else:
        at = segment.sizes[KEPT]
        segment.sizes[KEPT] += 1
        while at > 0 and kept[(at - 1) >> 1] < score:
            _move_kept(segment, (at - 1) >> 1, at)
            at = (at - 1) >> 1
    kept[at] = score
    segment.kept_column[at] = column
    for k in range(segment.below.size):
        segment.kept_below[at, k] = segment.totals[k] - segment.counts[column, k]
    return left_out


@inlined
def _move_kept(segment: Segment, source: int, to: int) -> None:
    segment.kept_score[to] = segment.kept_score[source]
    segment.kept_column[to] = segment.kept_column[source]
    for k in range(segment.below.size):
        segment.kept_below[to, k] = segment.kept_below[source, k]


@jit
def sort_alone(segment: Segment, examples: Examples, feature: int) -> int:
    """Put what the examples in `rows` have of a numeric feature in order; they need not be laid out.

    Returns how many entries there are, which are in `found_value` and `found_owner`. O(examples log features of
    one), and a sort.
    """
    entries = int64(0)
    begin_weights(segment)
    for i in range(segment.sizes[HELD]):
        bring(segment, examples, i)
        take_label(segment, examples, i)
        value = value_of(examples, segment.rows[i], feature)
        if value != 0.0:
            segment.found_value[entries] = value
            segment.found_owner[entries] = i
            entries += 1
    _sort(segment, segment.found_value, segment.found_owner, int64(0), entries)
    return entries


@jit
def best_threshold(criterion: Any, segment: Segment, entries: int, has_second: bool) -> _Best:
    """Return the best threshold of a column that is sorted alone; the sums of all are in `totals`.

    Its score is inf where all have one value. What the second best scores is told where `has_second`.
    """
    held, values = segment.sizes[HELD], segment.found_value
    if entries == 0 or (entries == held and values[0] == values[entries - 1]):
        return _Best(math.inf, 0.0, 0.0, math.inf)
    node = estimates.alone(criterion, segment, int64(0), held)
    return _sweep(criterion, segment, node, entries, values, segment.found_owner, int64(0), math.inf, has_second)


# --- features that are drawn
#
# The features of a node are in the order of a hash of the node and the feature, and those that part the node are
# taken from the first on. So what is drawn depends on the seed, the way from the root, and nothing else. The first
# of `touched` are a heap with the lowest key on top, those that were taken come behind it.


@apart
def _drawn_split(
    criterion: Any,
    segment: Segment,
    words: Rows,
    names: Names,
    node: Node,
    start: int,
    stop: int,
    way: int,
    are_grouped: int,
    drawn: int,
    salt: int,
    leader: _Leader,
) -> tuple[_Leader, int]:
    """Return the best split of the features that a node draws, and how many keys are left. None is kept."""
    first = _draw(segment, words, start, way, are_grouped, salt)
    left = drawn
    while left > 0 and first > 0:
        first -= 1
        column = _lowest_key(segment, first)
        if segment.present[column] > leader.rare:
            leader = _consider(criterion, segment, words, names, node, column, start, stop, way, leader, int64(0))
        if segment.present[column] < node.examples or (
            segment.numeric[column] == 1 and not _is_constant(segment, column, start, stop)
        ):
            left -= 1
    return leader, first


@jit
def _draw(segment: Segment, words: Rows, start: int, way: int, are_grouped: int, salt: int) -> int:
    """Make a heap of the features of a node; return how many there are."""
    kept = int64(0)
    for at in range(segment.sizes[TOUCHED]):
        column = segment.touched[at]
        if segment.present[column] == 0:
            continue
        segment.touched[kept] = column
        kept += 1
        if segment.numeric[column] == 1 and way == _ORDERED and are_grouped == 0:
            segment.group[column] = _group(segment, column, start)
        feature = feature_of(words, column)
        segment.keys[column] = (mix(salt, feature) >> 1 << 32) | feature
    segment.sizes[TOUCHED] = kept
    for at in range((kept >> 1) - 1, -1, -1):
        _sift(segment, at, kept)
    return kept


@jit
def _lowest_key(segment: Segment, last: int) -> int:
    """Take the top of a heap of `last + 1` columns, which comes behind the others; return it."""
    column = segment.touched[0]
    segment.touched[0] = segment.touched[last]
    segment.touched[last] = column
    _sift(segment, int64(0), last)
    return column


@inlined
def _sift(segment: Segment, at: int, size: int) -> None:
    """Let a column sink to its place in a heap."""
    column = segment.touched[at]
    key = segment.keys[column]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and segment.keys[segment.touched[child + 1]] < segment.keys[segment.touched[child]]:
            child += 1
        if key <= segment.keys[segment.touched[child]]:
            break
        segment.touched[at] = segment.touched[child]
        at = child
    segment.touched[at] = column


@inlined
def _precedes(words: Rows, names: Names, column: int, other: int) -> bool:
    return precedes(names, feature_of(words, column), feature_of(words, other))


@jit
def _lowest(
    segment: Segment,
    words: Rows,
    names: Names,
    node: Node,
    first: int,
    start: int,
    stop: int,
    way: int,
    floor: float,
) -> Choice:
    """Return the lowest split of the lowest feature that has a split, of those from `first` on in `touched`."""
    lowest = int64(NONE)
    below, above = 0.0, 0.0
    for at in range(first, segment.sizes[TOUCHED]):
        column = segment.touched[at]
        if lowest != NONE and not _precedes(words, names, column, lowest):
            continue
        everywhere = segment.present[column] == node.examples
        if segment.numeric[column] == 0:
            if not everywhere:
                lowest, below, above = column, 0.0, 0.0
            continue
        if everywhere and _is_constant(segment, column, start, stop):
            continue
        if way == _ORDERED:  # it has been scored, so that it is in order: no feature is rare where nothing gains
            entries, values, begin = segment.present[column], segment.value, segment.group[column]
        else:
            entries = look_up(segment, column, start, stop, way)
            values, begin = segment.found_value, int64(0)
        lowest = column
        below, above = _lowest_neighbours(node, entries, values, begin)
    return Choice(lowest, between(below, above), 0.0, below, above, node.impurity, floor)


@jit
def partition(
    segment: Segment, examples: Examples, start: int, stop: int, feature: int, kind: int, threshold: float
) -> int:
    """Put the low side of a split first in start to stop of `order`; return where the high side begins."""
    low = start
    high = stop
    while low < high:
        i = segment.order[low]
        if side_of(kind, threshold, value_of(examples, segment.rows[i], feature)) == 0:
            segment.place[i] = low
            low += 1
        else:
            high -= 1
            segment.order[low] = segment.order[high]
            segment.order[high] = i
            segment.place[i] = high
    return low
