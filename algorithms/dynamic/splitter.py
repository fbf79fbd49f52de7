"""The best split of a node, from the columns of its segment: paper 003, section 3.

A numeric column in a node is negatives | zeros | positives. Only what is not zero is stored; zeros are known by
what is missing, and are a value like any other. A binary feature needs its class weights and nothing else.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple

from algorithms.core.arrays import Float64s, Int32s, Int64s, int64
from algorithms.core.criteria import log2
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY
from algorithms.core.names import Names, precedes
from algorithms.core.rows import NONE, Rows
from algorithms.core.sorting import sort
from algorithms.dynamic.examples import Examples, side_of, value_of
from algorithms.dynamic.segment import BEGIN, END, STORED, TOUCHED, Segment
from algorithms.dynamic.vocabulary import KIND, feature_of
from algorithms.trees.gain import added, closed, noise
from algorithms.trees.quantised import between


class Way(IntEnum):
    """How the non-zeros of a column in a node are found, and put in order."""

    ORDERED = 0  # columns are sorted once, and parted as their nodes are: O(non-zeros in the node)
    MAP = 1  # each entry of the column is looked up in the mapping, then sorted: paper 003, algorithm 4
    SEARCH = 2  # each example of the node is searched for in the column, then sorted: algorithm 5
    EITHER = 3  # whichever of the two equation 8 says


_ORDERED, _MAP, _SEARCH = int(Way.ORDERED), int(Way.MAP), int(Way.SEARCH)
_SEARCH_BELOW = 0.1  # of a column's entries: equation 8, as its authors measured


class Choice(NamedTuple):
    """A split; the column NONE: there is none."""

    column: int
    threshold: float  # of a numeric feature, else 0
    score: float  # weight times impurity after it, lower is better


class _Sweep(NamedTuple):
    """What a numeric column has."""

    score: float  # of its best threshold, inf where all values are the same
    threshold: float
    lowest: float  # its lowest threshold


# --- the non-zeros of a column


@jit
def sort_columns(segment: Segment) -> None:
    """Put all columns in the order of values, for `Way.ORDERED`."""
    for at in range(segment.sizes[STORED]):
        begin = segment.spans[segment.stored[at], BEGIN]
        end = segment.spans[segment.stored[at], END]
        sort(segment.value, segment.owner, begin, end, segment.spare_value, segment.spare_owner)


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
def part_columns(segment: Segment, words: Rows, middle: int) -> None:
    """Put the low side first in all columns of the node that was looked at last, for `Way.ORDERED`."""
    for at in range(segment.sizes[TOUCHED]):
        column = segment.touched[at]
        if words.cells[column, KIND] == BINARY:
            continue
        low = segment.group[column]
        stop = low + segment.present[column]
        high = int64(0)
        for entry in range(low, stop):
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


@jit
def look_up(segment: Segment, column: int, start: int, stop: int, way: int) -> None:
    """Write a numeric column of the node that owns start to stop to `found_owner` and `found_value`, sorted.

    `present[column]` says how many entries there are.
    """
    entries = segment.spans[column, END] - segment.spans[column, BEGIN]
    searches = way == _SEARCH or (
        way != _MAP and (stop - start) * log2(float(entries)) < _SEARCH_BELOW * entries
    )  # equation 8
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
    values, owners = segment.found_value, segment.found_owner
    sort(values, owners, int64(0), negatives, segment.spare_value, segment.spare_owner)
    sort(values, owners, negatives, segment.present[column], segment.spare_value, segment.spare_owner)


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


@jit
def impurity(criterion: Any, totals: Int64s) -> float:
    """Return weight times impurity of class weights."""
    total = totals[0] * 0
    so_far = 0.0
    for k in range(totals.size):
        so_far = added(criterion, so_far, total, totals[k])
        total += totals[k]
    return closed(criterion, so_far, total)


@jit
def score(criterion: Any, below: Int64s, totals: Int64s) -> float:
    """Return weight times impurity after a split into `below` and the rest of `totals`: lower is better."""
    low = totals[0] * 0
    high = totals[0] * 0
    low_so_far = 0.0
    high_so_far = 0.0
    for k in range(totals.size):
        above = totals[k] - below[k]
        low_so_far = added(criterion, low_so_far, low, below[k])
        high_so_far = added(criterion, high_so_far, high, above)
        low += below[k]
        high += above
    return closed(criterion, low_so_far, low) + closed(criterion, high_so_far, high)


@jit
def _binary_score(criterion: Any, segment: Segment, column: int) -> float:
    for k in range(segment.totals.size):
        segment.below[k] = segment.totals[k] - segment.counts[column, k]
    return score(criterion, segment.below, segment.totals)


@jit
def _sweep(
    criterion: Any, segment: Segment, column: int, examples: int, values: Float64s, owners: Int32s, at: int
) -> _Sweep:
    """Score all thresholds between neighbours of a column, zeros among them, whose entries begin at `at`, sorted.

    Paper 003, algorithm 3, with the thresholds on both sides of zero. O(non-zeros).
    """
    stop = at + segment.present[column]
    zeros = segment.present[column] < examples
    below = segment.below
    for k in range(below.size):
        below[k] = 0
    best = math.inf
    best_threshold = 0.0
    lowest = math.inf
    last = -math.inf
    while at < stop or zeros:
        at_zero = zeros and (at == stop or values[at] > 0.0)
        here = 0.0 if at_zero else values[at]
        if last > -math.inf:
            threshold = between(last, here)
            lowest = min(lowest, threshold)
            now = score(criterion, below, segment.totals)
            if now < best:
                best = now
                best_threshold = threshold
        if at_zero:
            for k in range(below.size):
                below[k] += segment.totals[k] - segment.counts[column, k]
            zeros = False
        else:
            while at < stop and values[at] == here:
                i = int64(owners[at])
                below[segment.label[i]] += segment.weight[i]
                at += 1
        last = here
    return _Sweep(best, best_threshold, lowest)


@jit
def _numeric(criterion: Any, segment: Segment, column: int, start: int, stop: int, way: int) -> _Sweep:
    """Score the thresholds of a column in the node that owns start to stop."""
    if way == _ORDERED:
        begin = _group(segment, column, start)
        segment.group[column] = begin
        return _sweep(criterion, segment, column, stop - start, segment.value, segment.owner, begin)
    look_up(segment, column, start, stop, way)
    return _sweep(criterion, segment, column, stop - start, segment.found_value, segment.found_owner, int64(0))


# --- the best of all columns


@jit
def _tally(segment: Segment, start: int, stop: int) -> None:
    """Count the node that owns start to stop: its classes, and those of each feature. O(entries of the node)."""
    for k in range(segment.totals.size):
        segment.totals[k] = 0
    touched = int64(0)
    for position in range(start, stop):
        i = segment.order[position]
        label = segment.label[i]
        segment.totals[label] += segment.weight[i]
        for entry in range(segment.first[i], segment.first[i + 1]):
            column = int64(segment.column[entry])
            if segment.present[column] == 0:
                segment.touched[touched] = column
                touched += 1
            segment.present[column] += 1
            segment.counts[column, label] += segment.weight[i]
    segment.sizes[TOUCHED] = touched


@jit
def forget(segment: Segment) -> None:
    """Undo what `best_split` counted of features."""
    for at in range(segment.sizes[TOUCHED]):
        column = segment.touched[at]
        segment.present[column] = 0
        for k in range(segment.totals.size):
            segment.counts[column, k] = 0
    segment.sizes[TOUCHED] = 0


@jit
def best_split(
    criterion: Any, segment: Segment, words: Rows, names: Names, start: int, stop: int, way: int
) -> Choice:
    """Return the best split of the node that owns start to stop of `order`.

    Ties go to the lowest feature, then to the lowest threshold. A gain within the error of rounding is none: where
    no split has more, they all tie. The node must not be pure. `forget` is to follow.
    """
    _tally(segment, start, stop)
    examples = stop - start
    best = int64(NONE)
    best_score = math.inf
    best_threshold = 0.0
    first = int64(NONE)  # the lowest feature that has a split at all
    first_score = math.inf
    first_threshold = 0.0
    for at in range(segment.sizes[TOUCHED]):
        column = segment.touched[at]
        feature = feature_of(words, column)
        lowest = 0.0
        if words.cells[column, KIND] == BINARY:
            if segment.present[column] == examples:
                continue
            now = _binary_score(criterion, segment, column)
            threshold = 0.0
        else:
            found = _numeric(criterion, segment, column, start, stop, way)
            now, threshold, lowest = found.score, found.threshold, found.lowest
            if now == math.inf:
                continue
        if now < best_score or (now == best_score and precedes(names, feature, feature_of(words, best))):
            best, best_score, best_threshold = column, now, threshold
        if first == NONE or precedes(names, feature, feature_of(words, first)):
            first, first_score, first_threshold = column, now, lowest
    weight = int64(0)
    for k in range(segment.totals.size):
        weight += segment.totals[k]
    left_whole = impurity(criterion, segment.totals)
    if best_score >= left_whole - noise(weight, segment.totals.size):
        return Choice(first, first_threshold, first_score)
    return Choice(best, best_threshold, best_score)


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
