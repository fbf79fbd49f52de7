"""The O(d) scan over the features an index has seen: BASEENT and BASEGINI of paper 000, and our small cases."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Int64s, int64
from algorithms.core.criteria import score
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names, precedes
from algorithms.core.stored import stored
from algorithms.splits.ranking import Ranking, offer
from algorithms.splits.slots import (
    C0,
    C1,
    CHAIN,
    EVER,
    FEATURES,
    KEY,
    MARK,
    N0,
    N1,
    NO_MARK,
    NONE,
    OLDER,
    Slots,
    feature_of,
)


@stored("nothing")
class Scan(NamedTuple):
    """The scan keeps nothing of its own."""

    nothing: Int64s  # int64[0]; a NamedTuple needs a field to be told apart by the compiler


@jit
def _better(slots: Slots, names: Names, slot: int, value: float, best: int, best_value: float) -> bool:
    """Return whether a slot beats the best so far: by score, then by the order of features."""
    if best == NONE or value < best_value:
        return True
    return value == best_value and precedes(names, feature_of(slots, slot), feature_of(slots, best))


@jit
def scan(slots: Slots, names: Names, criterion: Any, index: int, excluded: int) -> tuple[int, float]:
    """Return the slot with the best score but `excluded`, and the score of the second best.

    The slot is NONE where no feature splits the node. A feature that all examples have sends everything
    one way and is no split. O(features of the index).
    """
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    rows = slots.rows
    best = NONE
    best_value = np.inf
    second_value = np.inf
    high = slots.counts[EVER]
    # Where the index has most of the slots, reading them in a row beats following its chain.
    in_a_row = slots.heads[index, FEATURES] * 2 > high
    slot = high - 1 if in_a_row else slots.heads[index, CHAIN]
    while slot >= 0:
        if rows[slot, KEY] >> 32 == index and slot != excluded:
            a = rows[slot, C0]
            b = rows[slot, C1]
            if a + b < n0 + n1:
                value = score(criterion, a, b, n0, n1)
                if value <= best_value and _better(slots, names, slot, value, best, best_value):
                    second_value = best_value
                    best = slot
                    best_value = value
                else:
                    second_value = min(second_value, value)
        slot = slot - 1 if in_a_row else int64(slots.chain[slot, OLDER])
    return best, second_value


@jit
def start(finder: Scan, index: int) -> None:
    """Nothing is kept for an index."""


@inlined
def ready(finder: Scan, ones: int) -> bool:
    """Nothing can run short."""
    return True


@inlined
def touched(finder: Scan, slots: Slots, index: int, slot: int, label: int, weight: int) -> None:
    """Nothing depends on a count."""


@inlined
def taking(finder: Scan, slots: Slots, criterion: Any, index: int, label: int, weight: int) -> None:
    """Nothing depends on the totals."""


@inlined
def removing(finder: Scan, slots: Slots, index: int, slot: int) -> None:
    """Nothing refers to a slot."""


@jit
def dropping(finder: Scan, slots: Slots, index: int) -> None:
    """Nothing refers to an index."""


@inlined
def settle(finder: Scan, slots: Slots, names: Names, criterion: Any, index: int) -> bool:
    """Nothing is left to do after an event."""
    return True


@jit
def find(finder: Scan, slots: Slots, names: Names, criterion: Any, index: int, excluded: int) -> int:
    """Return the best slot but `excluded`, by looking at every feature."""
    return scan(slots, names, criterion, index, excluded)[0]


@jit
def rank_chain(slots: Slots, names: Names, criterion: Any, index: int, ranking: Ranking, unmarked: bool) -> None:
    """Offer all features of an index to a ranking, or only those without a mark. O(features of the index)."""
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    slot = slots.heads[index, CHAIN]
    while slot != NONE:
        a = slots.rows[slot, C0]
        b = slots.rows[slot, C1]
        if a + b < n0 + n1 and not (unmarked and slots.rows[slot, MARK] != NO_MARK):
            offer(ranking, slots, names, slot, score(criterion, a, b, n0, n1))
        slot = int64(slots.chain[slot, OLDER])


@jit
def rank(finder: Scan, slots: Slots, names: Names, criterion: Any, index: int, ranking: Ranking) -> None:
    """Offer all features to a ranking."""
    rank_chain(slots, names, criterion, index, ranking, False)


@jit
def chain_overfull(slots: Slots, index: int) -> bool:
    """Return whether some feature now occurs more often than its label. O(features of the index)."""
    n0 = slots.heads[index, N0]
    n1 = slots.heads[index, N1]
    slot = slots.heads[index, CHAIN]
    while slot != NONE:
        if slots.rows[slot, C0] > n0 or slots.rows[slot, C1] > n1:
            return True
        slot = int64(slots.chain[slot, OLDER])
    return False


@jit
def overfull(finder: Scan, slots: Slots, index: int) -> bool:
    """Return whether some feature now occurs more often than its label."""
    return chain_overfull(slots, index)


def make(indexes: int, capacity: int) -> Scan:
    """Make the finder."""
    return Scan(np.zeros(0, np.int64))


def grown(finder: Scan, indexes: int, capacity: int) -> Scan:
    """Nothing grows."""
    return finder


def enlarged(finder: Scan) -> Scan:
    """Nothing can run short."""
    return finder


def check(finder: Scan, slots: Slots) -> None:
    """Nothing can be wrong."""
