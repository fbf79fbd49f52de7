"""The policy EXACT: a node keeps its split while the batch builder, given the live examples, would choose it.

A node's floor (slack.py) is that of all splits but its own. So it keeps its split while this scores less than the
floor and gains more than rounding, by the very score that the builder computes. A tie is scanned, whatever the
builder's rule would say.

What is its own? All thresholds between the two values of live examples beside its threshold: they part the
examples alike. The floor says nothing of them, so what happens there is noted::

    values      3  3   5 | 8  9        the threshold 6.5 is between 5 and 8
    insert 7    3  3   5 | 7  8  9     between them: there are two thresholds now where one was
    delete 5    3  3     | 8  9        the last at one of them: the threshold is 5.5 now

After either its own column is scanned before the node is looked through. Where the scan finds the same parts, the
threshold alone moves: the subtrees stay.

A leaf that no split parted keeps a floor of infinity, until an example comes that differs from one of its own.
"""

from __future__ import annotations

import math

from algorithms.core.arrays import int64
from algorithms.core.example_store import LENGTH, START
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY
from algorithms.core.names import Names, precedes
from algorithms.dynamic import bands
from algorithms.dynamic.columns import UNKNOWN, Columns, forget_own, has_own, knows_own
from algorithms.dynamic.examples import Examples
from algorithms.dynamic.slack import ABOVE, AT_BELOW, BELOW, Slack, clear_beside


@inlined
def is_ahead(names: Names, own: float, feature: int, score: float, rival: int) -> bool:
    """Return whether the builder would take a split rather than the best one of another feature, by scores."""
    return own < score or (own == score and precedes(names, feature, rival))


@inlined
def leaf_stands(slack: Slack, node: int) -> bool:
    """Return whether surely no split parts the examples of a leaf."""
    return bool(slack.floor[node] == math.inf)


@inlined
def keeps(kind: int, threshold: float, below: float, above: float) -> bool:
    """Return whether a node parts its examples as a split of its feature does that is between two values."""
    return kind == BINARY or below <= threshold < above


@inlined
def knows_beside(columns: Columns, node: int, feature: int) -> bool:
    """Return whether it is known which values are beside a node's threshold."""
    return has_own(columns, node, feature) and knows_own(columns, node)


@inlined
def note_value(slack: Slack, node: int, feature: int, value: float, sign: int) -> None:
    """Note that an example with this value of a node's numeric feature has come (sign 1) or gone (-1)."""
    columns = slack.columns
    if not knows_beside(columns, node, feature):
        return
    is_lost = slack.beside[node, BELOW] < value < slack.beside[node, ABOVE]
    for side in (BELOW, ABOVE):
        if value == slack.beside[node, side]:
            slack.counts[node, AT_BELOW + side] += sign
            is_lost = is_lost or slack.counts[node, AT_BELOW + side] == 0
    if is_lost:  # a value that nobody has any more is nowhere
        clear_beside(slack, node)
        forget_own(columns, node)
        bands.drop(slack.bands, node, int64(0))


@jit
def note_at_leaf(slack: Slack, node: int, examples: Examples, row: int, other: int) -> None:
    """Note that an example has come to a leaf where another one is."""
    if not _are_alike(examples, row, other):
        slack.floor[node] = UNKNOWN  # all may be below it: the node is scanned at the next look


@inlined
def _are_alike(examples: Examples, row: int, other: int) -> bool:
    """Return whether two examples have the same features and values."""
    length = examples.rows[row, LENGTH]
    if length != examples.rows[other, LENGTH]:
        return False
    here, there = examples.rows[row, START], examples.rows[other, START]
    for at in range(length):
        if examples.features[here + at] != examples.features[there + at]:
            return False
        if examples.values.size > 0 and examples.values[here + at] != examples.values[there + at]:
            return False
    return True
