"""The best split of a node of which all is counted: the one that `best_split` would choose, to the bit.

Binary features are scored one by one, but for those that part too little to gain as much as the best so far.

The class weights of a part of a trie tell how low the scores of the thresholds in it can be. With L below the
part and R above it none scores less than h(L) + h(R), as an insert lowers no score (slack.py). So few blocks are
opened, and what cannot matter is passed as a whole::

    probe   thresholds between large parts, of all features: more than the least of their scores does not matter
    sweep   of each feature from its least value on: parts are passed, or opened and all of them scored in full

How many are opened depends on which features come first, and this on the numbers of names. What is chosen does
not.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from algorithms.core.arrays import int64
from algorithms.core.class_sums import added, closed, impurity, noise, score
from algorithms.core.criteria import Criterion
from algorithms.core.example_store import LABEL, WEIGHT
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.names import precedes
from algorithms.core.rows import NEXT, NONE, item_of
from algorithms.dynamic import vocabulary
from algorithms.dynamic.aside import HOLDERS, NEGATIVE, POSITIVE, WEIGHTS, has_values, is_numeric
from algorithms.dynamic.estimates import reach_of
from algorithms.dynamic.labels import by_target
from algorithms.dynamic.segment import Segment
from algorithms.dynamic.splitter import NO_SPLIT, Choice
from algorithms.dynamic.state import Forest
from algorithms.dynamic.values import (
    BIT,
    HIGH,
    KEY,
    LOW,
    SAME,
    Values,
    add_up_to,
    greatest,
    key_of,
    two_least,
    value_of_key,
)
from algorithms.dynamic.values import HOLDERS as BELOW_IT
from algorithms.dynamic.values import WEIGHTS as WEIGHTS_BELOW_IT
from algorithms.dynamic.variance import Variance
from algorithms.trees.quantised import between

_PROBED_BITS = 8  # parts of less than 1 / 2^8 of a feature's examples are not probed


class _Threshold(NamedTuple):
    """The best threshold of a feature so far; the score inf: there is none yet."""

    score: float
    below: float  # the values that it lies between; of a probe they are not known
    above: float


class _Node(NamedTuple):
    """What the scores of all splits of a node have in common."""

    examples: int
    weight: int  # in units
    impurity: float  # weight times impurity of the whole node
    noise: float  # no gain below it is real


_NONE_YET = _Threshold(math.inf, 0.0, 0.0)


@jit
def _choose(criterion: Criterion, forest: Forest, segment: Segment, first: int, examples: int) -> Choice:
    """Return the best split of a node of which all is counted.

    Ties go to the lowest feature, then to the lowest threshold, as in `best_split`, and so do nodes where no gain
    is more than what rounding may add. The node's class weights are in `totals`. O(features), and for a numeric
    one O(values that may part best).
    """
    weight = int64(0)
    for k in range(segment.totals.size):
        weight += segment.totals[k]
    node = _Node(examples, weight, impurity(forest.criterion, segment.totals), noise(weight, segment.totals.size))
    choice = _best_binary(forest, segment, first, node)
    if has_values(forest.aside):
        choice = _best_numeric(forest, segment, first, node, choice)
    return choice if choice.column != NONE else _lowest(forest, first, node)


@inlined
def _choose_nothing(criterion: Variance, forest: Forest, segment: Segment, first: int, examples: int) -> Choice:
    """Nothing is built aside of trees of numbers, which have no max_work."""
    return NO_SPLIT


choose = by_target(
    "Return the best split of a node of which all is counted: a chain of `Aside.seen` from `first` on.",
    _choose,
    _choose_nothing,
)


@jit
def _best_binary(forest: Forest, segment: Segment, first: int, node: _Node) -> Choice:
    """Return the best split by a binary feature, the column NONE where none gains."""
    seen = forest.aside.seen
    reach = reach_of(forest.criterion, node.weight, node.impurity - node.noise, int64(1))
    least, best = node.impurity - node.noise, int64(NONE)
    enough = int64(0)  # a feature that parts no more weight gains less than the best
    at = first
    while at != NONE:
        weight = int64(0)
        for k in range(segment.totals.size):
            weight += seen.cells[at, WEIGHTS + k]
        if weight > enough and seen.cells[at, HOLDERS] < node.examples and not is_numeric(forest.aside, at):
            for k in range(segment.totals.size):
                segment.below[k] = segment.totals[k] - seen.cells[at, WEIGHTS + k]
            now = score(forest.criterion, segment.below, segment.totals)
            if now < least or (now == least and best != NONE and _precedes(forest, at, best)):
                least, best = now, at
                enough = _parted(node.impurity - least - 2.0 * node.noise, reach)
        at = seen.cells[at, NEXT]
    if best == NONE:
        return NO_SPLIT
    column = vocabulary.find(forest.words, item_of(seen, best))
    return Choice(column, 0.0, node.impurity - least, 0.0, 0.0, least, math.inf)


@inlined
def _parted(gain: float, reach: float) -> int:
    """Return how much weight a feature can part, in units, and surely gain less than this."""
    most = gain * (1.0 - 2.0**-40) / (reach * PER_UNIT)
    return int64(most) if most > 0.0 else int64(0)


@inlined
def _precedes(forest: Forest, at: int, other: int) -> bool:
    """Return whether the feature of a row of `seen` comes before that of another."""
    return precedes(forest.names, item_of(forest.aside.seen, at), item_of(forest.aside.seen, other))


@jit
def _best_numeric(forest: Forest, segment: Segment, first: int, node: _Node, choice: Choice) -> Choice:
    """Return the better of the best binary split and the best threshold of a numeric feature."""
    seen, is_known = forest.aside.seen, choice.column != NONE
    least = node.impurity - node.noise
    if is_known:
        least = choice.score
    limit = least
    at = first
    while at != NONE:
        few = seen.cells[at, HOLDERS] >> _PROBED_BITS
        if few > 0 and is_numeric(forest.aside, at):
            limit = min(limit, _sweep(forest, segment, at, node, limit, few).score)
        at = seen.cells[at, NEXT]
    at = first
    while at != NONE:
        if is_numeric(forest.aside, at):
            found = _sweep(forest, segment, at, node, min(limit, least), int64(0))
            is_tied = is_known and found.score == least
            if found.score < least or (is_tied and _is_before(forest, at, choice.column)):
                is_known = True
                least = found.score
                column, gain = vocabulary.find(forest.words, item_of(seen, at)), node.impurity - least
                threshold = between(found.below, found.above)
                choice = Choice(column, threshold, gain, found.below, found.above, least, math.inf)
        at = seen.cells[at, NEXT]
    return choice


@jit
def _is_before(forest: Forest, at: int, column: int) -> bool:
    """Return whether a feature comes before that of a column, which may be NONE."""
    return column == NONE or precedes(
        forest.names, item_of(forest.aside.seen, at), vocabulary.feature_of(forest.words, column)
    )


@jit
def _sweep(forest: Forest, segment: Segment, at: int, node: _Node, limit: float, few: int) -> _Threshold:
    """Return the best threshold of a feature, or any worse one where none scores as little as `limit`.

    With `few` above 0 probe those between parts that have more.
    """
    seen, held = forest.aside.seen, forest.aside.values
    negative, positive = seen.cells[at, NEGATIVE] - 1, seen.cells[at, POSITIVE] - 1
    part = segment.part  # class weights below where the sweep is; 0 between two sweeps
    best = _NONE_YET
    last = -math.inf
    if negative != NONE:
        best = _sweep_trie(forest, segment, negative, True, 2.0 * node.noise, limit, best, last, few)
        last = value_of_key(greatest(held, negative), True)
    if seen.cells[at, HOLDERS] < node.examples:
        if last > -math.inf:
            now = score(forest.criterion, part, segment.totals)
            if now < best.score:
                best = _Threshold(now, last, 0.0)
        for k in range(part.size):
            part[k] += segment.totals[k] - seen.cells[at, WEIGHTS + k]
        last = 0.0
    if positive != NONE:
        best = _sweep_trie(forest, segment, positive, False, 2.0 * node.noise, limit, best, last, few)
    for k in range(part.size):
        part[k] = 0
    return best


@jit
def _sweep_trie(
    forest: Forest,
    segment: Segment,
    top: int,
    is_negative: bool,
    slack: float,
    limit: float,
    best: _Threshold,
    last: float,
    few: int,
) -> _Threshold:
    """Go on with a sweep through a trie, `last` the greatest value so far, or -inf; `part` takes in all of it.

    `slack` is how far rounding may put a score below the bound of its part.
    """
    held = forest.aside.values
    cells, part, pending = held.cells, segment.part, segment.pending
    store = forest.store.rows
    key = int64(NONE)  # the greatest so far of this trie
    passed = int64(NONE)  # the part that was passed last, if none was opened after it
    pending[0, 0] = top
    size = int64(1)
    while size > 0:
        size -= 1
        at = pending[size, 0]
        bit = cells[at, BIT]
        if (few > 0 and (bit < 0 or cells[at, BELOW_IT] <= few)) or _bound(
            forest.criterion, held, segment, at
        ) - slack > min(limit, best.score):
            for k in range(part.size):
                part[k] += cells[at, WEIGHTS_BELOW_IT + k]
            passed = at
            continue
        if bit >= 0:
            if few > 0:
                for k in range(part.size):
                    segment.below[k] = part[k] + cells[cells[at, LOW], WEIGHTS_BELOW_IT + k]
                now = score(forest.criterion, segment.below, segment.totals)
                if now < best.score:
                    best = _Threshold(now, 0.0, 0.0)
            pending[size, 0] = cells[at, HIGH]
            pending[size + 1, 0] = cells[at, LOW]
            size += 2
            continue
        if passed != NONE:
            key = greatest(held, passed)
            passed = int64(NONE)
        entry = int64(0)
        while entry < cells[at, BELOW_IT]:
            here = cells[at, KEY] if bit == SAME else held.keys[cells[at, LOW], entry]
            if key != NONE or last > -math.inf:
                now = score(forest.criterion, part, segment.totals)
                if now < best.score:
                    below = last if key == NONE else value_of_key(key, is_negative)
                    best = _Threshold(now, below, value_of_key(here, is_negative))
            key = here
            if bit == SAME:
                for k in range(part.size):
                    part[k] += cells[at, WEIGHTS_BELOW_IT + k]
                break
            while entry < cells[at, BELOW_IT] and held.keys[cells[at, LOW], entry] == here:
                row = int64(held.rows[cells[at, LOW], entry])
                part[store[row, LABEL]] += store[row, WEIGHT]
                entry += 1
    return best


@inlined
def _bound(criterion: Any, held: Values, segment: Segment, at: int) -> float:
    """Return a bound under the scores of all thresholds in a part of a trie, and at its borders.

    `part` has the class weights below it.
    """
    low = segment.totals[0] * 0
    high = segment.totals[0] * 0
    low_so_far = 0.0
    high_so_far = 0.0
    for k in range(segment.totals.size):
        below = segment.part[k]
        above = segment.totals[k] - below - held.cells[at, WEIGHTS_BELOW_IT + k]
        low_so_far = added(criterion, low_so_far, low, below)
        high_so_far = added(criterion, high_so_far, high, above)
        low += below
        high += above
    return closed(criterion, low_so_far, low) + closed(criterion, high_so_far, high)


@jit
def _lowest(forest: Forest, first: int, node: _Node) -> Choice:
    """Return the lowest split of the lowest feature that has one."""
    seen, choice = forest.aside.seen, NO_SPLIT
    at = first
    while at != NONE:
        if _is_before(forest, at, choice.column):
            below, above = 0.0, 1.0
            if is_numeric(forest.aside, at):
                below, above = _lowest_neighbours(forest, at, node.examples)
            elif seen.cells[at, HOLDERS] == node.examples:
                above = -math.inf
            if below < above:
                column = vocabulary.find(forest.words, item_of(seen, at))
                threshold = between(below, above) if is_numeric(forest.aside, at) else 0.0
                choice = Choice(column, threshold, 0.0, below, above, node.impurity, math.inf)
        at = seen.cells[at, NEXT]
    return choice


@jit
def _lowest_neighbours(forest: Forest, at: int, examples: int) -> tuple[float, float]:
    """Return the values on both sides of a feature's lowest threshold; the second is -inf where it has none."""
    seen, held = forest.aside.seen, forest.aside.values
    least, after = -math.inf, -math.inf
    first, second = two_least(held, seen.cells[at, NEGATIVE] - 1)
    if first != NONE:
        least = value_of_key(first, True)
    if second != NONE:
        return least, value_of_key(second, True)
    if seen.cells[at, HOLDERS] < examples:
        if least > -math.inf:
            return least, 0.0
        least = 0.0
    first, second = two_least(held, seen.cells[at, POSITIVE] - 1)
    if first == NONE:
        return least, after
    if least > -math.inf:
        return least, value_of_key(first, False)
    if second != NONE:
        after = value_of_key(second, False)
    return value_of_key(first, False), after


@jit
def low_side(forest: Forest, segment: Segment, at: int, threshold: float, examples: int) -> int:
    """Write to `below` the class weights of a node's examples with a value of at most a threshold.

    Returns how many there are. `at` is the row of the feature in `Aside.seen`.
    """
    seen, held, store = forest.aside.seen, forest.aside.values, forest.store.rows
    negative, positive = seen.cells[at, NEGATIVE] - 1, seen.cells[at, POSITIVE] - 1
    for k in range(segment.below.size):
        segment.below[k] = 0
    if threshold < 0.0:
        return add_up_to(held, store, negative, key_of(threshold), segment.below)
    count = examples - seen.cells[at, HOLDERS]
    for k in range(segment.below.size):
        segment.below[k] = segment.totals[k] - seen.cells[at, WEIGHTS + k]
    if negative != NONE:
        count += held.cells[negative, BELOW_IT]
        for k in range(segment.below.size):
            segment.below[k] += held.cells[negative, WEIGHTS_BELOW_IT + k]
    if threshold > 0.0:
        count += add_up_to(held, store, positive, key_of(threshold), segment.below)
    return count
