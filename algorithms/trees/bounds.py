"""How sure a leaf must be: the Hoeffding bound."""

from __future__ import annotations

import math

from algorithms.core.criteria import log2
from algorithms.core.fixed_point import LN2, PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.rows import COUNT
from algorithms.trees.nodes import PRIOR, SQUARES, WEIGHT, Nodes
from algorithms.trees.state import Rules

_LARGEST = 2.0**1023


def check_bound(split_confidence: float, tie_threshold: float) -> None:
    """Raise ValueError unless there is a bound for these, and ties can be broken."""
    if not 0.0 < split_confidence < 1.0:
        raise ValueError(f"expected a split_confidence between 0 and 1, got {split_confidence}")
    if not 0.0 <= tie_threshold < math.inf:
        raise ValueError(f"expected a finite tie_threshold of at least 0, got {tie_threshold}")


def check_range(criterion: str, *, local: bool) -> None:
    """Raise ValueError where the range is to follow the classes of a leaf, and the criterion's does not."""
    if local and criterion != "entropy":
        raise ValueError(
            f"expected no local_range with the criterion {criterion}, whose range is 1 whatever the classes; "
            "leave it out"
        )


def squared_range(criterion: str, classes: int) -> float:
    """Return R^2, R being the range of the criterion: log2(c) of the entropy, 1 of the Gini index."""
    if criterion == "gini":
        return 1.0
    widest = float(log2(float(max(2, classes))))
    return widest * widest  # not ** 2, which the library of the machine rounds


def bound_of(squared_range: float, delta: float) -> float:
    """Return R^2 ln(1 / delta) / 2, from which `epsilon` follows by the number of examples."""
    inverse = min(1.0 / delta, _LARGEST)  # of the least deltas it is inf
    return squared_range * float(log2(inverse)) * LN2 / 2.0


@inlined
def examples(nodes: Nodes, leaf: int, inherit: bool) -> float:
    """Return how many examples of equal weight say as much as those that a leaf has seen: (sum w)^2 / sum w^2.

    Hoeffding's inequality for a weighted mean has this in the place of n. It is n where all weights are
    equal, whatever they are, so that scaling the weights of a stream changes nothing. Those that the split above
    said the leaf would have, which count where leaves `inherit`, are taken to weigh as its own do.
    """
    weight = nodes.links[leaf, WEIGHT] * PER_UNIT
    told = weight + nodes.links[leaf, PRIOR] * PER_UNIT if inherit else weight
    return weight * told / nodes.numbers[leaf, SQUARES]


@jit
def _local_bound(nodes: Nodes, rules: Rules, leaf: int) -> float:
    """Return R^2 ln(1 / delta) / 2 where R is log2 of how many classes a leaf has seen, or was told of."""
    seen = 0
    for k in range(nodes.prior.shape[1]):
        if nodes.rows.cells[leaf, COUNT + k] > 0 or (rules.inherit and nodes.prior[leaf, k] > 0):
            seen += 1
    widest = log2(float(max(2, seen)))
    return rules.bound * (widest * widest)


@inlined
def leaf_bound(nodes: Nodes, rules: Rules, leaf: int) -> float:
    """Return R^2 ln(1 / delta) / 2 of a leaf."""
    return _local_bound(nodes, rules, leaf) if rules.local_range else rules.bound


@inlined
def margin(nodes: Nodes, rules: Rules, leaf: int, more: int) -> float:
    """Return by how much a gain may be off in a leaf, or would be after so many examples more."""
    return epsilon(leaf_bound(nodes, rules, leaf), examples(nodes, leaf, rules.inherit) + more)


@inlined
def epsilon(bound: float, n: float) -> float:
    """Return by how much the mean of n observations may be off. Paper 001, equation 1."""
    return math.sqrt(bound / n)
