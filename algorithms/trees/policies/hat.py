"""HAT: VFDT whose nodes watch how often they are wrong, and give way to an alternate that does better.

Bifet, Gavalda: Adaptive learning from evolving data streams. IDA 2009. Here is what is watched and how it is
judged; alternates.py does what follows from it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Int64s, extended, int64
from algorithms.core.jit import inlined, jit
from algorithms.core.stored import stored
from algorithms.trees.nodes import SEEN
from algorithms.trees.policies import adwin, periodic
from algorithms.trees.policies.adwin import WIDTH, Windows
from algorithms.trees.state import Forest

# What becomes of an alternate.
WORSE, OPEN, BETTER = -1, 0, 1

# Columns of `Hat.counts`.
STARTED, PROMOTED = 0, 1

_LEAST = 300  # examples in both windows before errors are compared
_DELTA = 0.05  # how likely the comparison is wrong
_LN = 7.3777589082278725  # 2 ln(2 / _DELTA)


@stored("tried", "windows", "counts")
class Hat(NamedTuple):
    """When each leaf last tried, and how often each node was wrong."""

    tried: Int64s  # int64[nodes], how many examples the leaf had seen
    # Of each node, over the examples that passed it: 1 where the tree, or the alternate that the node is part of,
    # was wrong about the example before it was learned.
    windows: Windows
    counts: Int64s  # int64[2], alternates ever started, and those that took a node's place


@inlined
def begin(policy: Hat, leaf: int) -> None:
    """Start a leaf that has seen nothing."""
    policy.tried[leaf] = 0
    adwin.begin(policy.windows, leaf)


@inlined
def notice(policy: Hat, node: int, wrong: bool) -> bool:
    """Note whether an example that passed a node was predicted wrongly; return whether errors there have risen."""
    return adwin.add(policy.windows, node, int64(wrong), adwin.DELTA)


@jit
def judge(policy: Hat, node: int, alternate: int) -> int:
    """Return whether an alternate is `BETTER` than its node or `WORSE`, OPEN where that is not sure.

    The bound for errors over n and m examples is sqrt(2 e (1 - e) ln(2 / delta) (1 / n + 1 / m)), e being that of
    the node.
    """
    windows = policy.windows
    n = windows.sums[node, WIDTH]
    m = windows.sums[alternate, WIDTH]
    if min(n, m) < _LEAST:
        return OPEN
    error = adwin.mean(windows, node)
    gap = error - adwin.mean(windows, alternate)
    bound = math.sqrt(_LN * error * (1.0 - error) * (1.0 / n + 1.0 / m))
    if gap > bound:
        return BETTER
    return WORSE if -gap > bound else OPEN


due = periodic.due


def make(nodes: int, features: int, classes: int, candidates: int) -> Hat:
    """Make the policy."""
    return Hat(np.zeros(nodes, np.int64), adwin.make(nodes), np.zeros(2, np.int64))


def grown(policy: Hat, nodes: int) -> Hat:
    """Return the policy with room for more nodes."""
    return Hat(extended(policy.tried, nodes), adwin.grown(policy.windows, nodes), policy.counts)


def check(policy: Hat, forest: Forest, leaves: list[int]) -> None:
    """Raise AssertionError unless the policy's state is right."""
    assert (policy.tried[leaves] <= forest.nodes.links[leaves, SEEN]).all()
    check_windows(policy.windows, policy.counts, forest)


def check_windows(windows: Windows, counts: Int64s, forest: Forest) -> None:
    """Raise AssertionError unless what is known of errors is right."""
    used = np.flatnonzero(forest.nodes.rows.cells[: forest.nodes.rows.used[rows.EVER], rows.KEY] != rows.NONE)
    adwin.check(windows, used.tolist())
    assert 0 <= counts[PROMOTED] <= counts[STARTED]
