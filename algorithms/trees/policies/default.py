"""The functions of a policy that does not say otherwise: it ranks all features of a leaf that tries to split."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Int64s
from algorithms.core.events import Batch
from algorithms.core.jit import inlined
from algorithms.core.kinds import is_number
from algorithms.core.rows import COUNT
from algorithms.trees import gain
from algorithms.trees.observers import KIND
from algorithms.trees.ranking import rank
from algorithms.trees.state import Choice, Forest, Rules

P = TypeVar("P")  # the state of a policy


@inlined
def end(policy: Any, forest: Forest, leaf: int) -> None:
    """Nothing is kept for a leaf."""


@inlined
def ready(policy: Any, ones: int, learners: int) -> bool:
    """Nothing can run short."""
    return True


@inlined
def learn(policy: Any, forest: Forest, batch: Batch, event: int, leaf: int) -> None:
    """Count nothing: the observers count all that is needed."""


@inlined
def seek(policy: Any, forest: Forest, rules: Rules, leaf: int) -> Choice:
    """Rank the features."""
    return rank(forest.nodes, forest.features, forest.names, forest.criterion, leaf, rules.drop_poor)


@inlined
def failed(policy: Any, forest: Forest, rules: Rules, leaf: int, choice: Choice) -> None:
    """Nothing follows from an attempt that failed."""


def enlarged(policy: P, ones: int, rows: int) -> P:
    """Nothing can run short."""
    return policy


def is_full(policy: Any, ones: int, rows: int) -> bool:
    """Nothing of its own grows with what leaves saw."""
    return False


def keys(policy: Any) -> Int64s:
    """Nothing is counted outside the observers."""
    return np.zeros(0, np.int64)


@inlined
def feature_at(policy: Any, forest: Forest, row: int) -> int:
    """Return the feature of a choice."""
    return rows.item_of(forest.features.rows, row)


@inlined
def weight_above(policy: Any, forest: Forest, leaf: int, row: int, threshold: float, k: int) -> int:
    """Return the weight of a class on the present or greater side of a choice with two branches."""
    if is_number(forest.features.about[row, KIND]):
        return gain.weight_above(forest.features, forest.nodes, leaf, row, k, threshold)
    return forest.features.rows.cells[row, COUNT + k]
