"""VFDT: a leaf tries to split whenever it has seen another n_min examples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Int64s, extended
from algorithms.core.events import Batch
from algorithms.core.jit import inlined
from algorithms.core.stored import stored
from algorithms.trees.nodes import SEEN
from algorithms.trees.state import Forest, Rules


@stored("tried")
class Periodic(NamedTuple):
    """When each leaf last tried."""

    tried: Int64s  # int64[nodes], how many examples the leaf had seen


@inlined
def begin(policy: Periodic, leaf: int) -> None:
    """Start a leaf that has seen nothing."""
    policy.tried[leaf] = 0


@inlined
def due(policy: Periodic, forest: Forest, rules: Rules, batch: Batch, event: int, leaf: int) -> bool:
    """Return whether the period is over."""
    seen = forest.nodes.links[leaf, SEEN]
    if seen - policy.tried[leaf] < rules.grace_period:
        return False
    policy.tried[leaf] = seen
    return True


def make(nodes: int, features: int, classes: int, candidates: int) -> Periodic:
    """Make the policy."""
    return Periodic(np.zeros(nodes, np.int64))


def grown(policy: Periodic, nodes: int) -> Periodic:
    """Return the policy with room for more nodes."""
    return Periodic(extended(policy.tried, nodes))


def check(policy: Periodic, forest: Forest, leaves: list[int]) -> None:
    """Raise AssertionError unless the policy's state is right."""
    assert (policy.tried[leaves] <= forest.nodes.links[leaves, SEEN]).all()
