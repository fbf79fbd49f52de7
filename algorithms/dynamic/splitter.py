"""The best split of a node, from the columns of its segment: paper 003, section 3.

A numeric column in a node is negatives | zeros | positives. Only what is not zero is looked up and sorted; zeros
are known by what is missing, and are a value like any other. A binary feature needs its class weights and nothing
else.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple

from algorithms.arrays import Int64s, int64
from algorithms.dynamic.examples import Examples, side_of, value_of
from algorithms.dynamic.segment import BEGIN, END, TOUCHED, Segment
from algorithms.dynamic.sorting import sort
from algorithms.dynamic.vocabulary import KIND, feature_of
from algorithms.jit import inlined, jit
from algorithms.names import Names, precedes
from algorithms.trees.gain import added, closed, noise
from algorithms.trees.kinds import BINARY
from algorithms.trees.quantised import between
from algorithms.trees.rows import NONE, Rows


class Way(IntEnum):
    """How the non-zeros of a column in a node are found."""

    EITHER = 0  # whichever should be faster
    MAP = 1  # each entry of the column is looked up in the mapping: paper 003, algorithm 4
    SEARCH = 2  # each example of the node is searched for in the column: algorithm 5


_MAP, _SEARCH = int(Way.MAP), int(Way.SEARCH)
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
def gather(segment: Segment, column: int, start: int, stop: int, way: int) -> int:
    """Write a numeric column of the node that owns start to stop to `values` and `owners`, sorted.

    Returns how many are negative; the positives follow them. `present[column]` says how many there are in all.
    """
    entries = segment.spans[column, END] - segment.spans[column, BEGIN]
    searches = way == _SEARCH or (
        way != _MAP and (stop - start) * math.log2(entries) < _SEARCH_BELOW * entries
    )  # equation 8
    negatives = int64(0)
    positives = segment.present[column]
    if searches:
        for position in range(start, stop):
            i = segment.order[position]
            at = _entry_of(segment, column, i)
            if at != NONE:
                negatives, positives = _put(segment, at, negatives, positives)
    else:
        for at in range(segment.spans[column, BEGIN], segment.spans[column, END]):
            if start <= segment.place[segment.owner[at]] < stop:
                negatives, positives = _put(segment, at, negatives, positives)
    sort(segment.values, segment.owners, 0, negatives)
    sort(segment.values, segment.owners, negatives, segment.present[column])
    return negatives


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
    segment.values[0, to] = value
    segment.owners[0, to] = segment.owner[at]
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
def _sweep(criterion: Any, segment: Segment, column: int, examples: int, negatives: int) -> _Sweep:
    """Score all thresholds between neighbours of a column that `gather` wrote, zeros among them.

    Paper 003, algorithm 3, with the thresholds on both sides of zero. O(non-zeros).
    """
    present = segment.present[column]
    zeros = present < examples
    below = segment.below
    for k in range(below.size):
        below[k] = 0
    best = math.inf
    best_threshold = 0.0
    lowest = math.inf
    last = -math.inf
    at = int64(0)
    while at < present or zeros:
        at_zero = zeros and at == negatives
        here = 0.0 if at_zero else segment.values[0, at]
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
            while at < present and segment.values[0, at] == here:
                i = int64(segment.owners[0, at])
                below[segment.label[i]] += segment.weight[i]
                at += 1
        last = here
    return _Sweep(best, best_threshold, lowest)


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
def _forget(segment: Segment) -> None:
    """Undo what `_tally` counted of features."""
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
    no split has more, they all tie. The node must not be pure.
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
            negatives = gather(segment, column, start, stop, way)
            found = _sweep(criterion, segment, column, examples, negatives)
            now, threshold, lowest = found.score, found.threshold, found.lowest
            if now == math.inf:
                continue
        if now < best_score or (now == best_score and precedes(names, feature, feature_of(words, best))):
            best, best_score, best_threshold = column, now, threshold
        if first == NONE or precedes(names, feature, feature_of(words, first)):
            first, first_score, first_threshold = column, now, lowest
    _forget(segment)
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
