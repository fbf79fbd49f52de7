"""What the trees see of a batch, and what all together say.

::

    each part:  moves x trees x features   ->  less what a tree has no part in, less what it does not see
                weights of each tree's node  ->  a vote of 2^20 units from each tree  ->  integer sums
    then:       sums of the parts            ->  most votes
"""

from __future__ import annotations

from typing import NamedTuple

from algorithms.core.arrays import Float64s, Int32s, Int64s, int64
from algorithms.core.events import APPLIED, INSERT, PREDICT, Batch
from algorithms.core.fixed_point import PER_UNIT, UNIT
from algorithms.core.jit import inlined, jit
from algorithms.dynamic.state import Out
from algorithms.forests.draws import Draws, sees
from algorithms.forests.ledger import NONE, Hashes, Plan
from algorithms.trees.predict import loss_of


class Said(NamedTuple):
    """What the trees of all parts made of a plan; scratch. A part writes to its own rows."""

    votes: Int64s  # int64[parts, moves, c], in units of 2^-20, where a move is a prediction
    rebuilt: Int64s  # int64[parts, moves], how many examples subtrees were rebuilt from


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
def thin(
    draws: Draws, plan: Plan, batch: Batch, hashes: Hashes, told: Batch, part: int, parts: int
) -> tuple[int, int, int]:
    """Write what each move is to the trees of a part: tree t of key k is there its tree k T' + t / parts.

    Return how many events, features and predictions they are told of. Where there are more features than `told`
    has room for, they are not written. O(trees x (moves + features)).
    """
    trees = plan.times.shape[1]
    own = (trees - part + parts - 1) // parts  # T', the trees of a forest in this part
    to = int64(0)
    end = int64(0)
    asked = int64(0)
    told.pointer[0] = 0
    for move in range(plan.used[0]):
        event = plan.event[move]
        op = int64(plan.op[move])
        first = int64(batch.key[event]) * own
        for tree in range(part, trees, parts):
            count = int64(plan.times[move, tree])
            if count == 0:
                continue
            told.key[to] = first + tree // parts
            told.op[to] = op
            told.label[to] = batch.label[event]
            told.weight[to] = count * batch.weight[event] if op == INSERT else UNIT
            told.id_high[to] = plan.high[move]
            told.id_low[to] = plan.low[move]
            asked += op == PREDICT
            if op in (INSERT, PREDICT):
                for at in range(batch.pointer[event], batch.pointer[event + 1]):
                    if sees(draws, tree, int64(hashes.first[at])):
                        if end < told.feature.size:
                            told.feature[end] = batch.feature[at]
                            told.value[end] = batch.value[at]
                            told.kind[end] = batch.kind[at]
                        end += 1
            to += 1
            told.pointer[to] = end
    return to, end, asked


@inlined
def _add_vote(weights: Float64s, at: int, said: Said, part: int, move: int) -> None:
    """Add one tree's vote: it divides 2^20 units among the classes of the node that answers, in whole units."""
    total = 0.0
    for k in range(weights.shape[1]):
        total += weights[at, k]
    if total > 0.0:
        for k in range(weights.shape[1]):
            said.votes[part, move, k] += int64(weights[at, k] / total * UNIT)


@jit
def read(plan: Plan, out: Out, said: Said, part: int, parts: int) -> int:
    """Read what the trees of a part made of a plan, and leave what they write to as they found it.

    Return how many events were refused.
    """
    at = int64(0)
    asked = int64(0)
    refused = int64(0)
    for move in range(plan.used[0]):
        said.rebuilt[part, move] = 0
        for k in range(said.votes.shape[2]):
            said.votes[part, move, k] = 0
        for tree in range(part, plan.times.shape[1], parts):
            if plan.times[move, tree] == 0:
                continue
            refused += out.status[at] != APPLIED
            said.rebuilt[part, move] += out.rebuilt[at]
            out.rebuilt[at] = 0
            out.scanned[at] = 0
            at += 1
            if plan.op[move] == PREDICT:
                _add_vote(out.shares, asked, said, part, move)
                asked += 1
    out.counts[0] = 0
    return refused


@jit
def count(plan: Plan, batch: Batch, said: Said, poll: Poll) -> None:
    """Write what the votes on each prediction of a plan come to: most votes, the lowest class of equal ones."""
    for move in range(plan.used[0]):
        event = plan.event[move]
        for part in range(said.rebuilt.shape[0]):
            poll.rebuilt[event] += said.rebuilt[part, move]
        if plan.op[move] != PREDICT:
            continue
        best = int64(0)
        for k in range(poll.sums.size):
            poll.sums[k] = 0
            for part in range(said.votes.shape[0]):
                poll.sums[k] += said.votes[part, move, k]
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
