"""The criterion of labels that are numbers: Gini's score with each example in both classes, ties in whole numbers.

Let t be a label in units above the least one, from 0 to `whole` - 2. An example of weight w counts as one of class
1 with the weight w (t + 1), and as one of class 0 with the rest of w `whole`. A feature whose examples weigh
(a, b) has n = (a + b) / `whole` of them, and b is the sum of their labels but for a shift, which no variance sees.
numbers.py says why the least score is the greatest reduction of the variance.

A score is a float, and scores that are equal but for rounding would be told apart by it. So what is as good as the
best, as far as floats tell, is compared once more, in whole numbers: with all examples weighing (n, s), those with
the feature (m, r), and those without it n - m,

    reduction = (n r - m s)^2 / (n^2 m (n - m))

where n and s are the same for all features. What is 0 there splits nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import digits
from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.criteria import Criterion, make_criterion
from algorithms.core.jit import apart, inlined, jit
from algorithms.core.names import Names, precedes
from algorithms.splits.slots import C0, C1, KEY, N0, N1, NONE, Slots, feature_of

ROUNDING = 2.0**-48  # of a score: what floats may err by, and more

# Rows of digits; what is compared has fewer than 370 bits, as all weights sum to less than 2^62.
_ONE, _OTHER, _WORK, _MORE, _SPARE = range(5)

_BEST, _EXCLUDED = 0, 1  # places in `Variance.slots`


class Variance(NamedTuple):
    """Labels that are numbers; also what takes in the slots that may be the best, while a finder offers them."""

    table: Float64s  # as of `Criterion`, as is the next
    number: int
    whole: int  # what an example of weight 1 weighs in both classes together
    slots: Int64s  # int64[2], the best so far, or NONE, and one that is left out
    limit: Float64s  # float64[1], the worst score that is worth a comparison
    digits: Int64s  # int64[5, 14], see digits.py: scratch


def make(whole: int) -> Variance:
    """Make the criterion of labels in `whole` - 1 steps."""
    gini = make_criterion("gini", 1)
    return Variance(gini.table, gini.number, whole, np.full(2, NONE, np.int64), np.zeros(1), digits.make(5))


# --- how much an example weighs, called by the type of the criterion


@inlined
def class_share(criterion: Criterion, label: int, of: int, weight: int) -> int:
    """Return how much an example weighs in a class, which is all in its own."""
    return weight if of == label else 0


@inlined
def number_share(criterion: Variance, label: int, of: int, weight: int) -> int:
    """Return how much an example with a number as its label weighs in a class."""
    return weight * (of + 1) if label == 1 else weight * (criterion.whole - 1 - of)


@inlined
def class_room(criterion: Criterion, weight: int) -> int:
    """Return which weight an example must be below, for weights to sum to less than `weight` more."""
    return weight


@inlined
def number_room(criterion: Variance, weight: int) -> int:
    """Return the same where the label is a number."""
    return weight // criterion.whole


# --- whole numbers


@jit
def _difference(slots: Slots, variance: Variance, index: int, slot: int, row: int) -> None:
    """Write |n r - m s| of a slot to a row, see above."""
    spare = variance.digits
    heads = slots.heads
    digits.set_to(spare, _WORK, (heads[index, N0] + heads[index, N1]) // variance.whole)
    digits.set_to(spare, _MORE, slots.rows[slot, C1])
    digits.multiply(spare, row, _WORK, _MORE)
    digits.set_to(spare, _WORK, (slots.rows[slot, C0] + slots.rows[slot, C1]) // variance.whole)
    digits.set_to(spare, _MORE, heads[index, N1])
    digits.multiply(spare, _SPARE, _WORK, _MORE)
    digits.subtract(spare, row, _SPARE)


@apart
def reduces(slots: Slots, variance: Variance, index: int, slot: int) -> bool:
    """Return whether a slot reduces the variance at all."""
    _difference(slots, variance, index, slot, _ONE)
    digits.set_to(variance.digits, _WORK, 0)
    return digits.compare(variance.digits, _ONE, _WORK) != 0


@jit
def _scale(slots: Slots, variance: Variance, index: int, slot: int, row: int) -> None:
    """Square a row and multiply it by m (n - m) of a slot."""
    spare = variance.digits
    heads = slots.heads
    here = (slots.rows[slot, C0] + slots.rows[slot, C1]) // variance.whole
    digits.multiply(spare, _WORK, row, row)
    digits.set_to(spare, _MORE, here)
    digits.multiply(spare, _SPARE, _WORK, _MORE)
    digits.set_to(spare, _MORE, (heads[index, N0] + heads[index, N1]) // variance.whole - here)
    digits.multiply(spare, row, _SPARE, _MORE)


@apart
def _beyond(slots: Slots, variance: Variance, index: int, slot: int, other: int) -> int:
    """Return 1, 0 or -1: whether a slot reduces the variance by more than another."""
    rows = slots.rows
    if rows[slot, C0] == rows[other, C0] and rows[slot, C1] == rows[other, C1]:
        return 0
    _difference(slots, variance, index, slot, _ONE)
    _difference(slots, variance, index, other, _OTHER)
    _scale(slots, variance, index, other, _ONE)
    _scale(slots, variance, index, slot, _OTHER)
    return int(digits.compare(variance.digits, _ONE, _OTHER))


# --- ties


@inlined
def begin(variance: Variance, excluded: int, score: float) -> None:
    """Begin to look for the best of all slots but one, given the least score of them."""
    variance.slots[_BEST] = NONE
    variance.slots[_EXCLUDED] = excluded
    variance.limit[0] = score * (1.0 + ROUNDING)


@jit
def offer_tied(variance: Variance, slots: Slots, names: Names, slot: int, score: float) -> None:
    """Take a slot in the place of the best where it is better, or as good and of a lower feature."""
    if score > variance.limit[0] or slot == variance.slots[_EXCLUDED]:
        return
    best = variance.slots[_BEST]
    if best != NONE:
        order = _beyond(slots, variance, slots.rows[slot, KEY] >> 32, slot, best)
        if order < 0 or (order == 0 and not precedes(names, feature_of(slots, slot), feature_of(slots, best))):
            return
    variance.slots[_BEST] = slot


@inlined
def best_of(variance: Variance) -> int:
    """Return the best of the slots that were offered."""
    return variance.slots[_BEST]
