"""What each node knows of all splits but its own: a floor under their scores, kept true by every edit.

A split is a function of an example, so all of them can be asked about any set of examples; one that parts nothing
scores the impurity of the whole. A scan of a node leaves the least score of all, its floor. From then on:

* An insert lowers no score. The impurity h of a side, un-normalised, is concave and homogeneous, so it is
  superadditive: h(s + e) >= h(s) + h(e), and h(e) = 0.
* A delete of weight w lowers a score by at most h(w, m), where m is the weight of the node's other classes: by
  concavity h(s) - h(s - e) is the larger, the less of its class the side holds, and it grows with the side's other
  classes, which are m at most. For Gini h(w, m) = 2 w m / (w + m) < 2 w, for entropy
  h(w, m) <= w (log2((w + m) / w) + log2 e).

So a floor is true for features, values and thresholds that nobody has seen when it was scanned. Only a split that
is left out of a floor, as `exact` leaves out a node's own, needs more care: exact.py.

Scores are rounded. A floor is lowered by what the rounding of the scan's scores may be, and at each delete by more
than that of one subtraction, so what is decided by floors is what scores in full would decide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int64s, extended
from algorithms.core.criteria import coarse_rounding, impurity
from algorithms.core.jit import apart, dispatch, inlined, jit
from algorithms.core.stored import stored
from algorithms.dynamic import indexes, rivals
from algorithms.dynamic.indexes import Indexes
from algorithms.dynamic.rivals import Rivals

# Columns of `Slack.beside`: the values on both sides of a numeric threshold.
BELOW, ABOVE = 0, 1

# Columns of `Slack.counts`.
IS_KNOWN = 0  # 1 until the next edit: the node's choice stands, whatever the floor is
AT_BELOW, AT_ABOVE = 1, 2  # how many examples of the node have these values
BLOCK = 3  # of its rivals, plus 1; 0: it has none; INDEXED: its floor says nothing of binary features
_COUNTS = 4

INDEXED = -1


class NoSlack(NamedTuple):
    """Where trees are rebuilt by the clock: nothing is known, and kernels have no code for it."""


NO_SLACK = NoSlack()


@stored("floor", "beside", "counts", "rivals", None)
class Slack(NamedTuple):
    """Of each node."""

    floor: Float64s  # float64[capacity]
    beside: Float64s  # float64[capacity, 2]
    counts: Int64s  # int64[capacity, 4]
    rivals: Rivals
    indexes: Indexes


def make(capacity: int, classes: int, *, has_binary: bool = False) -> Slack:
    """Return storage for so many nodes; without binary features there are no rivals and no indexes."""
    counts = np.zeros((capacity, _COUNTS), np.int64)
    held = rivals.make(capacity if has_binary else 0, classes)
    made = indexes.make(capacity, has_indexes=has_binary and classes == 2)
    return Slack(np.zeros(capacity), np.zeros((capacity, 2)), counts, held, made)


def grown(slack: Slack, capacity: int) -> Slack:
    """Return the same storage with room for more nodes."""
    return Slack(
        extended(slack.floor, capacity),
        extended(slack.beside, capacity),
        extended(slack.counts, capacity),
        rivals.grown(slack.rivals, capacity),
        indexes.beside(slack.indexes, capacity),
    )


@jit
def clear(slack: Slack, node: int) -> None:
    """Forget what is known of a node, but for its index."""
    slack.floor[node] = 0.0
    for side in (BELOW, ABOVE):
        slack.beside[node, side] = 0.0
    if slack.counts[node, BLOCK] > 0:
        rivals.give(slack.rivals, slack.counts[node, BLOCK] - 1)
    for column in range(_COUNTS):
        slack.counts[node, column] = 0


@jit
def lower(criterion: Any, slack: Slack, node: int, weight: int, others: int) -> None:
    """Note that an example of this weight has left a node; `others` is the weight of the other classes there."""
    most = impurity(criterion, weight, others)
    slack.floor[node] -= most + coarse_rounding(weight, others)


@inlined
def _forget_nothing(slack: NoSlack, node: int) -> None:
    pass


@apart
def _forget(slack: Slack, node: int) -> None:
    clear(slack, node)
    indexes.drop(slack.indexes, node)


@inlined
def _never_short(slack: NoSlack) -> bool:
    return False


@inlined
def _is_short(slack: Slack) -> bool:
    return indexes.is_short(slack.indexes)


forget = dispatch("Forget all that is known of a node that goes.", {NoSlack: _forget_nothing, Slack: _forget})
is_short = dispatch(
    "Return whether room for indexes has been missed since there was more.",
    {NoSlack: _never_short, Slack: _is_short},
)
