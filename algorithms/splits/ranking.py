"""The k best features so far, while a finder looks for more: a heap with the worst of them on top.

Where it is full its worst score is what a feature must beat, so that a search can leave out whatever is worse.
The order is that of decisions, by score and then by feature, so that the k are the same whatever was seen first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.jit import dispatch, inlined, jit
from algorithms.core.names import Names, precedes
from algorithms.splits.slots import Slots, feature_of
from algorithms.splits.variance import Variance, offer_tied


class Ranking(NamedTuple):
    """At most k slots."""

    slot: Int64s  # int64[k], a binary heap
    score: Float64s  # float64[k], of these slots
    limit: Float64s  # float64[1], the worst score that is still wanted
    taken: Int64s  # int64[1], how many slots are in


def make(k: int, limit: float) -> Ranking:
    """Return an empty ranking of at most `k` slots, none of which scores worse than `limit`."""
    return Ranking(np.zeros(k, np.int64), np.zeros(k, np.float64), np.array([limit]), np.zeros(1, np.int64))


@inlined
def _worse(slots: Slots, names: Names, j: int, j_score: float, k: int, k_score: float) -> bool:
    """Return whether slot j comes after slot k."""
    if j_score != k_score:
        return j_score > k_score
    return precedes(names, feature_of(slots, k), feature_of(slots, j))


@jit
def _offer(ranking: Ranking, slots: Slots, names: Names, slot: int, score: float) -> None:
    """Take in a slot where it is among the best so far. O(log k)."""
    if score > ranking.limit[0] or ranking.slot.size == 0:
        return
    heap = ranking.slot
    scores = ranking.score
    count = ranking.taken[0]
    if count < heap.size:
        at = count
        count += 1
        ranking.taken[0] = count
        while at > 0:
            above = (at - 1) >> 1
            if not _worse(slots, names, slot, score, heap[above], scores[above]):
                break
            heap[at] = heap[above]
            scores[at] = scores[above]
            at = above
    elif _worse(slots, names, heap[0], scores[0], slot, score):
        at = 0
        while 2 * at + 1 < count:
            below = 2 * at + 1
            if below + 1 < count and _worse(
                slots, names, heap[below + 1], scores[below + 1], heap[below], scores[below]
            ):
                below += 1
            if not _worse(slots, names, heap[below], scores[below], slot, score):
                break
            heap[at] = heap[below]
            scores[at] = scores[below]
            at = below
    else:
        return
    heap[at] = slot
    scores[at] = score
    if count == heap.size:
        ranking.limit[0] = scores[0]


@inlined
def _seeks_many(ranking: Ranking) -> bool:
    return False


@inlined
def _seeks_one(ranking: Variance) -> bool:
    return True


# A finder offers slots to a ranking, or to what looks for the best of those that tie.
offer = dispatch("Offer a slot and its score.", {Ranking: _offer, Variance: offer_tied})
seeks_one = dispatch("Return whether one slot is looked for.", {Ranking: _seeks_many, Variance: _seeks_one})
