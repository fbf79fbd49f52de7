"""What is the best question of an index, exactly, without a look at most of them.

Let F be the score of a question: the impurity of both sides together, times their weight. An insert lowers no
score, and a delete of weight w lowers one by at most h(w, m), the impurity of w beside the weight m of the other
classes in the node: see "Floors" on the page on trees that forget. So what a row's questions scored when they were
last looked at, less what deletes since then can have taken away, is a *floor* under what they score now. LOWERED
sums up what deletes can have taken away, and a row's key in the heap is

    the least score of its questions + LOWERED, both as they were at the look

A key less LOWERED as it is now is the floor: a delete moves all floors and no key. A new question parted nothing
before its first example, so it begins with the floor of the node left whole; a value inside a column begins with
that of the next value outwards, whose question was the same one until then.

A question gains at most the impurity of its own two sides, h(v, n - v), whatever the classes in them: with
entropy a mutual information is at most the entropy of either variable; with Gini the gain is v (n - v) / n times
the squared distance of two distributions, which is at most 2. So features that fewer examples have than the best
gain needs lie in a heap of their own, by a power of two above their weights: *rare* ones, of which nobody looks
at more than that.

A search scores the best of the time before. Then it walks the first heap as far as floors lie below the second
best that it knows, and the heap of rare features as far as they can gain as much. All that it scores gets a new
key. With G the gain of the second best, a row that gains little is looked at once in about G / 2 deletes (Gini),
and never where there are none. At worst, where nothing gains, it looks at all: O(rows of the index K), and for a
block O((its values + the blocks before it) K).

Rounding is counted against the floors: `noise` of scores, and of LOWERED some units in its last place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core import class_sums
from algorithms.core.arrays import Float64s, Int32s, Int64s, int64
from algorithms.core.class_sums import noise
from algorithms.core.criteria import impurity
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import NUMERIC
from algorithms.core.names import Names, precedes
from algorithms.mixed import questions as asked
from algorithms.mixed.heads import FIRST, RARE, ROOT, SECOND
from algorithms.mixed.questions import (
    AT,
    BEFORE,
    BLOCK,
    CATEGORY,
    COLUMN,
    IS_RARE,
    KIND,
    NEXT,
    SIZE,
    TOTAL,
    WEIGHT,
    Questions,
    feature_of,
)
from algorithms.splits import heaps
from algorithms.splits.slots import NONE
from algorithms.trees.quantised import between

_LAST_PLACES = 2.0**-51


class Found(NamedTuple):
    """Where a search writes, and its scratch."""

    row: Int64s  # int64[2], of the best and of the best on another feature, or NONE
    place: Int64s  # int64[2], where the value lies in its block; 0 of rows that are none
    score: Float64s  # float64[2]
    value: Float64s  # float64[2], the category or the value; 1 of a binary feature
    seen: Int32s  # int32[rows], those that were scored
    key: Float64s  # float64[rows], their new keys
    totals: Int64s  # int64[K], weights in the node
    below: Int64s  # int64[K], on the side that a question tells of
    before: Int64s  # int64[K], in the blocks before one, and in the values before one
    counts: Int64s  # int64[2]: rows that were scored, and questions


def make(rows: int, classes: int) -> Found:
    """Return room for a search among so many rows."""
    return Found(
        row=np.full(2, NONE, np.int64),
        place=np.zeros(2, np.int64),
        score=np.zeros(2),
        value=np.zeros(2),
        seen=np.zeros(rows, np.int32),
        key=np.zeros(rows),
        totals=np.zeros(classes, np.int64),
        below=np.zeros(classes, np.int64),
        before=np.zeros(classes, np.int64),
        counts=np.zeros(2, np.int64),
    )


# --- floors


@inlined
def most_lowered(criterion: Any, weight: int, others: int, lowered: float) -> float:
    """Return LOWERED after the delete of a weight beside others of other classes: never too little."""
    bound = impurity(criterion, weight, others) + noise(weight + others, 2)
    return (lowered + bound) * (1.0 + _LAST_PLACES)


@inlined
def whole_key(criterion: Any, totals: Int64s, lowered: float) -> float:
    """Return the key of a question that parts nothing."""
    total = int64(0)
    for k in range(totals.size):
        total += totals[k]
    return class_sums.impurity(criterion, totals) - noise(total, totals.size) + lowered


@inlined
def lower(questions: Questions, root: int, row: int, key: float) -> int:
    """Give a row a key that is not above its own; return the root of its heap."""
    if key < questions.floor[row]:
        root = asked.enter(questions, asked.leave(questions, root, row), row, key)
    return root


# --- scoring


@inlined
def _total(weights: Int64s) -> int:
    total = int64(0)
    for k in range(weights.size):
        total += weights[k]
    return total


@inlined
def _is_before(questions: Questions, names: Names, row: int, value: float, found: Found, at: int) -> bool:
    """Return whether a question comes before one that was found, of equal scores: by feature, then by value."""
    feature = feature_of(questions, row)
    other = feature_of(questions, found.row[at])
    if feature == other:
        return value < found.value[at]
    return precedes(names, feature, other)


@inlined
def _write(found: Found, at: int, row: int, place: int, value: float, score: float) -> None:
    found.row[at] = row
    found.place[at] = place
    found.value[at] = value
    found.score[at] = score


@jit
def _offer(
    questions: Questions, names: Names, found: Found, row: int, place: int, value: float, score: float
) -> None:
    """Note a question where it is the best, or the best on another feature than the best."""
    is_best = (
        found.row[0] == NONE
        or score < found.score[0]
        or (score == found.score[0] and _is_before(questions, names, row, value, found, 0))
    )
    if found.row[0] != NONE and feature_of(questions, row) == feature_of(questions, found.row[0]):
        if is_best:
            _write(found, 0, row, place, value, score)
    elif is_best:
        _write(found, 1, found.row[0], found.place[0], found.value[0], found.score[0])
        _write(found, 0, row, place, value, score)
    elif (
        found.row[1] == NONE
        or score < found.score[1]
        or (score == found.score[1] and _is_before(questions, names, row, value, found, 1))
    ):
        _write(found, 1, row, place, value, score)


@jit
def _sum_before(questions: Questions, row: int, found: Found) -> None:
    """Write the class weights of the blocks before a block. O(them K)."""
    for k in range(found.before.size):
        found.before[k] = 0
    block = questions.rows[row, BEFORE]
    while block != NONE:
        for k in range(found.before.size):
            found.before[k] += questions.rows[block, WEIGHT + k]
        block = questions.rows[block, BEFORE]


@inlined
def _next_value(questions: Questions, row: int, place: int, found: Found) -> None:
    """Take one more value of a block into `before`, and write to `below` which side its question tells of."""
    column = questions.rows[row, COLUMN]
    for k in range(found.below.size):
        here = questions.weight[place, k]
        if questions.value[place] < 0.0:
            found.below[k] = found.before[k] + here
        else:
            found.below[k] = questions.rows[column, WEIGHT + k] - found.before[k]
        found.before[k] += here


@jit
def _score_row(questions: Questions, names: Names, criterion: Any, row: int, total: int, found: Found) -> float:
    """Offer the questions of a row; return the least that one scores, those among them that part nothing."""
    rows = questions.rows
    least = np.inf
    found.counts[0] += 1
    if rows[row, KIND] != BLOCK:
        for k in range(found.below.size):
            found.below[k] = rows[row, WEIGHT + k]
        least = class_sums.score(criterion, found.below, found.totals)
        found.counts[1] += 1
        if _total(found.below) < total:
            category = rows[row, CATEGORY]
            _offer(questions, names, found, row, int64(0), category * 1.0 if category > 0 else 1.0, least)
        return least
    _sum_before(questions, row, found)
    for place in range(rows[row, AT], rows[row, AT] + rows[row, SIZE]):
        _next_value(questions, row, place, found)
        score = class_sums.score(criterion, found.below, found.totals)
        found.counts[1] += 1
        least = min(least, score)
        if _total(found.below) < total:
            _offer(questions, names, found, row, place, questions.value[place], score)
    return least


# --- searching


@inlined
def _see(
    questions: Questions,
    names: Names,
    criterion: Any,
    row: int,
    total: int,
    lowered: float,
    found: Found,
    count: int,
) -> None:
    least = _score_row(questions, names, criterion, row, total, found)
    found.seen[count] = row
    found.key[count] = least - noise(total, found.totals.size) + lowered


@inlined
def _most(criterion: Any, cap: float, total: int) -> float:
    """Return the most that a question gains whose one side weighs at most `cap`."""
    side = total >> 1
    if cap < side:  # caps reach 2^63
        side = int64(cap)
    return impurity(criterion, side, total - side)


@inlined
def _settle(
    questions: Questions,
    criterion: Any,
    heads: Int64s,
    index: int,
    total: int,
    needed: float,
    found: Found,
    at: int,
) -> None:
    """Put a row that was seen into the heap where it belongs, with its new key."""
    row = int64(found.seen[at])
    rows = questions.rows
    key = found.key[at]
    cap = asked.cap_of(rows[row, TOTAL])
    # Twice as rare as it must be, so that it does not come and go.
    is_rare = rows[row, KIND] != BLOCK and (key == np.inf or _most(criterion, 2.0 * cap, total) < needed)
    key = -cap if is_rare else key
    was_rare = rows[row, IS_RARE] == 1
    if was_rare == is_rare and questions.floor[row] == key:
        return
    heap = RARE if was_rare else ROOT
    heads[index, heap] = asked.leave(questions, heads[index, heap], row)
    heap = RARE if is_rare else ROOT
    heads[index, heap] = asked.enter(questions, heads[index, heap], row, key)
    rows[row, IS_RARE] = 1 if is_rare else 0


@jit
def search(
    questions: Questions,
    names: Names,
    criterion: Any,
    heads: Int64s,
    totals: Int64s,
    index: int,
    lowered: float,
    both: bool,
    found: Found,
) -> None:
    """Write the best question of an index, and where `both` the best on another feature.

    Parameters
    ----------
    heads : int64[indexes, ..]
        See heads.py. The rows that were best before are a guess: the better, the less is looked at.
    totals : int64[indexes, K]
        Weights of the classes.
    """
    found.row[0] = NONE
    found.row[1] = NONE
    found.counts[0] = 0
    found.counts[1] = 0
    classes = int64(0)
    for k in range(found.totals.size):
        found.totals[k] = totals[index, k]
        classes += 1 if found.totals[k] > 0 else 0
    if classes < 2:
        return  # a pure node needs no split
    total = _total(found.totals)
    node = class_sums.impurity(criterion, found.totals)
    count = int64(0)
    first = heads[index, FIRST]
    if first != NONE:
        _see(questions, names, criterion, first, total, lowered, found, count)
        count += 1
    also = heads[index, SECOND] if both and heads[index, SECOND] != first else int64(NONE)
    if also != NONE:
        _see(questions, names, criterion, also, total, lowered, found, count)
        count += 1
    at = int64(1) if both else int64(0)
    error = 2.0 * noise(total, found.totals.size) + 4.0 * _LAST_PLACES * lowered
    row = heads[index, ROOT]
    while row != NONE:
        limit = found.score[at] if found.row[at] != NONE else np.inf
        is_open = questions.floor[row] - lowered - error <= limit
        if is_open and row != first and row != also:
            _see(questions, names, criterion, row, total, lowered, found, count)
            count += 1
        row = heaps.following(questions.links, row, is_open)
    row = heads[index, RARE]
    while row != NONE:
        needed = node - found.score[at] - error if found.row[at] != NONE else -np.inf
        is_open = _most(criterion, -questions.floor[row], total) >= needed
        if is_open and row != first and row != also:
            if _most(criterion, questions.rows[row, TOTAL] * 1.0, total) >= needed:
                _see(questions, names, criterion, row, total, lowered, found, count)
            else:
                found.seen[count] = row
                found.key[count] = np.inf  # rarer than was known
            count += 1
        row = heaps.following(questions.links, row, is_open)
    needed = node - found.score[at] - error if found.row[at] != NONE else -np.inf
    for each in range(count):
        _settle(questions, criterion, heads, index, total, needed, found, each)


# --- what was found


@jit
def part(questions: Questions, found: Found, at: int) -> float:
    """Write to `found.below` the class weights of the high side of what was found; return its threshold.

    The threshold of a category is the category, that of a binary feature 0.
    """
    row = found.row[at]
    rows = questions.rows
    if rows[row, KIND] != BLOCK:
        for k in range(found.below.size):
            found.below[k] = rows[row, WEIGHT + k]
        return rows[row, CATEGORY] * 1.0
    place = found.place[at]
    value = questions.value[place]
    column = rows[row, COLUMN]
    _sum_before(questions, row, found)
    for k in range(found.below.size):
        for before in range(rows[row, AT], place + (1 if value < 0.0 else 0)):
            found.before[k] += questions.weight[before, k]
        # A value below 0 tells of the low side, one above it of the high side.
        if value < 0.0:
            found.below[k] = found.totals[k] - found.before[k]
        else:
            found.below[k] = rows[column, WEIGHT + k] - found.before[k]
    low, high = _neighbours(questions, row, place, found)
    return between(low, high)


@inlined
def _neighbours(questions: Questions, row: int, place: int, found: Found) -> tuple[float, float]:
    """Return the values beside the threshold of a question that parts, 0 among them where an example has it."""
    rows = questions.rows
    value = questions.value[place]
    has_zeros = rows[rows[row, COLUMN], TOTAL] < _total(found.totals)
    if value < 0.0:
        other = 0.0
        if place + 1 < rows[row, AT] + rows[row, SIZE]:
            other = questions.value[place + 1]
        elif rows[row, NEXT] != NONE:
            other = questions.value[rows[rows[row, NEXT], AT]]
        else:
            return value, 0.0
        return value, 0.0 if has_zeros and other > 0.0 else other
    other = 0.0
    if place > rows[row, AT]:
        other = questions.value[place - 1]
    elif rows[row, BEFORE] != NONE:
        before = rows[row, BEFORE]
        other = questions.value[rows[before, AT] + rows[before, SIZE] - 1]
    else:
        return 0.0, value
    return 0.0 if has_zeros and other < 0.0 else other, value


@inlined
def kind_of_row(questions: Questions, row: int) -> int:
    """Return the `Kind` of a row's feature."""
    kind = questions.rows[row, KIND]
    return int64(NUMERIC) if kind == BLOCK else kind
