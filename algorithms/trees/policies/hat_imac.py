"""HAT whose leaves try to split when IMAC's candidates say so: what hat.py watches, and when imac.py tries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Int64s
from algorithms.core.events import Batch
from algorithms.core.jit import inlined
from algorithms.core.stored import stored
from algorithms.trees.policies import adwin, hat, imac
from algorithms.trees.policies.adwin import Windows
from algorithms.trees.policies.imac import Imac
from algorithms.trees.state import Choice, Forest, Rules


@stored("leaves", "windows", "counts")
class HatImac(NamedTuple):
    """The candidates of leaves, and how often each node was wrong."""

    leaves: Imac
    windows: Windows  # as of `Hat`
    counts: Int64s  # int64[2], as of `Hat`


@inlined
def begin(policy: HatImac, leaf: int) -> None:
    """Start a leaf that has seen nothing."""
    imac.begin(policy.leaves, leaf)
    adwin.begin(policy.windows, leaf)


@inlined
def end(policy: HatImac, forest: Forest, leaf: int) -> None:
    """Give back the candidates of a leaf."""
    imac.end(policy.leaves, forest, leaf)


@inlined
def ready(policy: HatImac, ones: int, learners: int) -> bool:
    """Return whether a leaf of the tree and one beside it can be given candidates."""
    return imac.ready(policy.leaves, ones, learners)


@inlined
def due(policy: HatImac, forest: Forest, rules: Rules, batch: Batch, event: int, leaf: int) -> bool:
    """Return whether the candidates say that an attempt can succeed."""
    return imac.due(policy.leaves, forest, rules, batch, event, leaf)


@inlined
def seek(policy: HatImac, forest: Forest, rules: Rules, leaf: int) -> Choice:
    """Rank the features; their gains say which of them become candidates."""
    return imac.seek(policy.leaves, forest, rules, leaf)


@inlined
def failed(policy: HatImac, forest: Forest, rules: Rules, leaf: int, choice: Choice) -> None:
    """Make the best features candidates."""
    imac.failed(policy.leaves, forest, rules, leaf, choice)


def make(nodes: int, features: int, classes: int, candidates: int) -> HatImac:
    """Make the policy."""
    return HatImac(imac.make(nodes, features, classes, candidates), adwin.make(nodes), np.zeros(2, np.int64))


def grown(policy: HatImac, nodes: int) -> HatImac:
    """Return the policy with room for more nodes."""
    return HatImac(imac.grown(policy.leaves, nodes), adwin.grown(policy.windows, nodes), policy.counts)


def enlarged(policy: HatImac, ones: int, rows: int) -> HatImac:
    """Return the policy with room for twice as many sets."""
    return policy._replace(leaves=imac.enlarged(policy.leaves, ones, rows))


def check(policy: HatImac, forest: Forest, leaves: list[int]) -> None:
    """Raise AssertionError unless the policy's state is right."""
    imac.check(policy.leaves, forest, leaves)
    hat.check_windows(policy.windows, policy.counts, forest)
