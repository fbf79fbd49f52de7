"""What the trees see of a batch, and what all together say.

::

    moves x trees x features  ->  less the moves that a tree has no part in, less the features that it does not see
    weights of each tree's node  ->  a vote of 2^20 units from each tree  ->  integer sums
"""

from __future__ import annotations

from typing import NamedTuple

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt32s, int64
from algorithms.core.events import INSERT, PREDICT, Batch
from algorithms.core.fixed_point import PER_UNIT, UNIT
from algorithms.core.jit import inlined, jit
from algorithms.forests.draws import Draws, sees
from algorithms.forests.ledger import NONE, Hashes, Plan
from algorithms.trees.predict import loss_of


class Thinned(NamedTuple):
    """Events for the trees: columns of `Events`, and for which event of the batch each of them is; scratch."""

    key: Int32s  # int32[moves x trees], as those that follow: tree t of key k is k T + t
    op: Int8s
    label: Int32s
    weight: Int64s
    named: Int8s
    high: Int64s
    low: Int64s
    event: Int64s
    pointer: Int64s  # int64[moves x trees + 1]
    feature: UInt32s  # uint32[entries that there is room for]
    value: Float64s


class Poll(NamedTuple):
    """What the trees said of a batch, and what they did."""

    predicted: Int32s  # int32[n], the class, NONE: nothing is known, or nothing was asked
    loss: Float64s  # float64[n], -log2 of the share given to the true class
    rebuilt: Int64s  # int64[n], how many examples subtrees were rebuilt from, over all trees
    votes: Int64s  # int64[predictions asked for, c], in units of 2^-20
    sums: Int64s  # int64[c], scratch: the votes on one example
    weights: Float64s  # float64[c], scratch
    counts: Int64s  # int64[1], predictions asked for so far


@jit
def thin(draws: Draws, plan: Plan, batch: Batch, hashes: Hashes, made: Thinned) -> tuple[int, int]:
    """Write what each move is to the trees; return how many events and entries they have.

    Where there are more entries than `made` has room for, they are not written. O(trees x (moves + entries)).
    """
    trees = plan.times.shape[1]
    to = int64(0)
    end = int64(0)
    made.pointer[0] = 0
    for move in range(plan.used[0]):
        event = plan.event[move]
        op = int64(plan.op[move])
        for tree in range(trees):
            count = int64(plan.times[move, tree])
            if count == 0:
                continue
            made.key[to] = int64(batch.key[event]) * trees + tree
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
                        if end < made.feature.size:
                            made.feature[end] = batch.feature[at]
                            made.value[end] = batch.value[at]
                        end += 1
            to += 1
            made.pointer[to] = end
    return to, end


@inlined
def _add_vote(weights: Float64s, at: int, sums: Int64s) -> None:
    """Add one tree's vote: it divides 2^20 units among the classes of the node that answers, in whole units."""
    total = 0.0
    for k in range(sums.size):
        total += weights[at, k]
    if total > 0.0:
        for k in range(sums.size):
            sums[k] += int64(weights[at, k] / total * UNIT)


@jit
def count(plan: Plan, batch: Batch, made: Thinned, weights: Float64s, rebuilt: Int64s, poll: Poll) -> None:
    """Write what the votes on each prediction of a plan come to: most votes, the lowest class of equal ones.

    `weights` has those of each tree's node, float64[predictions x trees, c], `rebuilt` what each event led to.
    """
    for at in range(rebuilt.size):
        poll.rebuilt[made.event[at]] += rebuilt[at]
    trees = plan.times.shape[1]
    first = int64(0)
    for move in range(plan.used[0]):
        if plan.op[move] != PREDICT:
            continue
        for k in range(poll.sums.size):
            poll.sums[k] = 0
        for at in range(first, first + trees):
            _add_vote(weights, at, poll.sums)
        first += trees
        event = plan.event[move]
        best = int64(0)
        for k in range(poll.sums.size):
            poll.weights[k] = poll.sums[k] * PER_UNIT
            if poll.sums[k] > poll.sums[best]:
                best = int64(k)
        poll.predicted[event] = best if poll.sums[best] > 0 else NONE
        if batch.op[event] == PREDICT:
            for k in range(poll.sums.size):
                poll.votes[poll.counts[0], k] = poll.sums[k]
            poll.counts[0] += 1
        else:
            poll.loss[event] = loss_of(poll.weights, int64(batch.label[event]))
