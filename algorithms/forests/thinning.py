"""What one tree sees of a batch, and what all trees together say.

::

    moves x features  ->  less the moves that a tree has no part in, less the features that it does not see
    weights of each tree's node  ->  a vote of 2^20 units from each tree  ->  integer sums
"""

from __future__ import annotations

from typing import NamedTuple

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt32s, int64
from algorithms.core.events import INSERT, PREDICT, Batch
from algorithms.core.fixed_point import PER_UNIT, UNIT
from algorithms.core.jit import jit
from algorithms.forests.draws import Draws, sees
from algorithms.forests.ledger import NONE, Hashes, Plan
from algorithms.trees.predict import loss_of


class Thinned(NamedTuple):
    """Events for one tree: columns of `Events`, and for which event of the batch each of them is; scratch."""

    key: Int32s  # int32[moves], as those that follow
    op: Int8s
    label: Int32s
    weight: Int64s
    named: Int8s
    high: Int64s
    low: Int64s
    event: Int64s
    pointer: Int64s  # int64[moves + 1]
    feature: UInt32s  # uint32[entries of all inserts and predictions]
    value: Float64s


class Poll(NamedTuple):
    """What the trees said of a batch."""

    predicted: Int32s  # int32[n], the class, NONE: nothing is known, or nothing was asked
    loss: Float64s  # float64[n], -log2 of the share given to the true class
    votes: Int64s  # int64[predictions asked for, c], in units of 2^-20
    weights: Float64s  # float64[c], scratch
    counts: Int64s  # int64[1], predictions asked for so far


@jit
def thin(draws: Draws, plan: Plan, batch: Batch, hashes: Hashes, tree: int, made: Thinned) -> tuple[int, int]:
    """Write the moves of a tree; return how many events and entries they have. O(moves + entries)."""
    to = int64(0)
    end = int64(0)
    made.pointer[0] = 0
    for move in range(plan.used[0]):
        count = int64(plan.times[move, tree])
        if count == 0:
            continue
        event = plan.event[move]
        op = int64(plan.op[move])
        made.key[to] = batch.key[event]
        made.op[to] = op
        made.label[to] = batch.label[event]
        made.weight[to] = count * batch.weight[event] if op == INSERT else UNIT
        made.named[to] = 1
        made.high[to] = plan.high[move]
        made.low[to] = plan.low[move]
        made.event[to] = event
        if op in (INSERT, PREDICT):
            for at in range(batch.pointer[event], batch.pointer[event + 1]):
                if sees(draws, tree, int64(hashes.first[at])):
                    made.feature[end] = batch.feature[at]
                    made.value[end] = batch.value[at]
                    end += 1
        to += 1
        made.pointer[to] = end
    return to, end


@jit
def vote(weights: Float64s, votes: Int64s) -> None:
    """Add one tree's votes: it divides 2^20 units among the classes of the node that answers, in whole units."""
    for at in range(weights.shape[0]):
        total = 0.0
        for k in range(weights.shape[1]):
            total += weights[at, k]
        if total > 0.0:
            for k in range(weights.shape[1]):
                votes[at, k] += int64(weights[at, k] / total * UNIT)


@jit
def count(votes: Int64s, plan: Plan, batch: Batch, poll: Poll) -> None:
    """Write what the votes on each prediction of a plan come to: most votes, the lowest class of equal ones."""
    at = int64(0)
    for move in range(plan.used[0]):
        if plan.op[move] != PREDICT:
            continue
        event = plan.event[move]
        best = int64(0)
        for k in range(poll.weights.size):
            poll.weights[k] = votes[at, k] * PER_UNIT
            if votes[at, k] > votes[at, best]:
                best = int64(k)
        poll.predicted[event] = best if votes[at, best] > 0 else NONE
        if batch.op[event] == PREDICT:
            for k in range(poll.weights.size):
                poll.votes[poll.counts[0], k] = votes[at, k]
            poll.counts[0] += 1
        else:
            poll.loss[event] = loss_of(poll.weights, int64(batch.label[event]))
        at += 1
