"""What leaves saw: for each (leaf, feature) the class weights where the feature is present, and more by its kind.

Nothing is kept for "absent": it follows from the leaf's totals, so an example touches only what it contains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Float64s, Int64s, extended, int64
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY, NOMINAL, NUMERIC, QUANTISED
from algorithms.core.names import Names, refer, release
from algorithms.core.rows import COUNT, NEXT, NONE, Rows
from algorithms.core.stored import stored
from algorithms.trees import gaussians, quantised
from algorithms.trees.gaussians import Gaussians
from algorithms.trees.nodes import OBSERVED, Nodes
from algorithms.trees.quantised import Quantised, Quantiser

# Columns of `Features.about`.
KIND = 0
PART = 1  # a nominal feature's newest row in `values`, a numeric one's row in `gaussians`
MARK = 2  # belongs to the policy; 0 until it says otherwise

POOR = 4  # the kind of a feature that was dropped: it is a `Kind` no more, and not looked at as long as its leaf
HELD = 1  # the mark of a feature that the policy needs and that is not dropped


@stored("rows", "about", "gain", "values", "gaussians", "quantised")
class Features(NamedTuple):
    """The features that leaves saw."""

    rows: Rows  # (leaf, feature): class weights where it is present
    about: Int64s  # int64[capacity, 3]
    gain: Float64s  # float64[capacity], -score / weight when it was last scored; -inf before
    values: Rows  # (row of a nominal or quantised feature, category or slot): class weights
    gaussians: Gaussians
    quantised: Quantised  # of no size where no feature is quantised


def make(capacity: int, classes: int, *, slots: bool) -> Features:
    """Return empty storage; `slots` says that there may be quantised features."""
    return Features(
        rows.make(capacity, classes),
        np.zeros((capacity, 3), np.int64),
        np.full(capacity, -np.inf),
        rows.make(8, classes),
        gaussians.make(8, classes),
        quantised.make(8 if slots else 0, capacity if slots else 0, classes),
    )


def with_rows(features: Features, capacity: int) -> Features:
    """Return the same storage with room for more features."""
    return features._replace(
        rows=rows.grown(features.rows, capacity),
        about=extended(features.about, capacity),
        gain=extended(features.gain, capacity),
        quantised=_beside(features.quantised, len(features.values.cells), capacity),
    )


def _beside(state: Quantised, values: int, capacity: int) -> Quantised:
    return quantised.grown(state, values, capacity) if len(state.radius) else state


def with_values(features: Features, capacity: int) -> Features:
    """Return the same storage with room for more values of nominal features and slots of quantised ones."""
    return features._replace(
        values=rows.grown(features.values, capacity),
        quantised=_beside(features.quantised, capacity, len(features.about)),
    )


def with_gaussians(features: Features, capacity: int) -> Features:
    """Return the same storage with room for more numeric features."""
    return features._replace(gaussians=gaussians.grown(features.gaussians, capacity))


@inlined
def count(
    features: Features,
    nodes: Nodes,
    names: Names,
    quantiser: Quantiser,
    leaf: int,
    feature: int,
    kind: int,
    value: float,
    k: int,
    weight: int,
) -> None:
    """Count a value other than 0 of a feature in an example of class k; there must be room."""
    row = rows.find(features.rows, leaf, feature)
    if row == NONE:
        row = _begin(features, nodes, names, quantiser, leaf, feature, kind)
    features.rows.cells[row, COUNT + k] += weight
    if kind != BINARY:
        _count_value(features, quantiser, row, kind, value, k, weight)


@jit
def _begin(
    features: Features, nodes: Nodes, names: Names, quantiser: Quantiser, leaf: int, feature: int, kind: int
) -> int:
    row = rows.create(features.rows, leaf, feature, nodes.links[leaf, OBSERVED])
    nodes.links[leaf, OBSERVED] = row
    features.about[row, KIND] = kind
    features.about[row, PART] = gaussians.create(features.gaussians) if kind == NUMERIC else NONE
    if kind == QUANTISED:
        quantised.begin(features.quantised, quantiser, row)
    features.about[row, MARK] = 0
    features.gain[row] = -np.inf
    refer(names, feature)
    return row


@jit
def _count_value(
    features: Features, quantiser: Quantiser, row: int, kind: int, value: float, k: int, weight: int
) -> None:
    if features.about[row, KIND] == POOR:
        return
    if kind == QUANTISED:
        quantised.observe(features.values, features.quantised, quantiser, row, k, weight, value)
        return
    part = features.about[row, PART]
    if kind == NUMERIC:
        gaussians.observe(features.gaussians, part, k, weight, features.rows.cells[row, COUNT + k], value)
        return
    category = int64(value)
    at = rows.find(features.values, row, category)
    if at == NONE:
        at = rows.create(features.values, row, category, part)
        features.about[row, PART] = at
    features.values.cells[at, COUNT + k] += weight


@jit
def _forget_values(features: Features, row: int) -> None:
    kind = features.about[row, KIND]
    part = features.about[row, PART]
    if kind == NUMERIC:
        gaussians.remove(features.gaussians, part)
    elif kind == NOMINAL:
        while part != NONE:
            part = rows.remove(features.values, part)
    elif kind == QUANTISED:
        quantised.forget(features.values, features.quantised, row)


@jit
def drop_poor(features: Features, nodes: Nodes, leaf: int, margin: float) -> None:
    """Drop the features of a leaf that were just scored and are worse than the best by more than a margin.

    What was counted of their values is given back. O(features of the leaf).
    """
    best = -np.inf
    row = nodes.links[leaf, OBSERVED]
    while row != NONE:
        best = max(best, features.gain[row])
        row = features.rows.cells[row, NEXT]
    row = nodes.links[leaf, OBSERVED]
    while row != NONE:
        gain = features.gain[row]
        if gain > -np.inf and best - gain > margin and features.about[row, MARK] != HELD:
            _forget_values(features, row)
            features.about[row, KIND] = POOR
            features.about[row, PART] = NONE
            features.gain[row] = -np.inf
        row = features.rows.cells[row, NEXT]


@jit
def forget(features: Features, nodes: Nodes, names: Names, leaf: int) -> None:
    """Give back all that a leaf saw. O(features of the leaf)."""
    row = nodes.links[leaf, OBSERVED]
    while row != NONE:
        _forget_values(features, row)
        release(names, rows.item_of(features.rows, row))
        row = rows.remove(features.rows, row)
    nodes.links[leaf, OBSERVED] = NONE


def check(features: Features, nodes: Nodes, leaves: list[int]) -> None:
    """Raise AssertionError unless all invariants hold. O(everything)."""
    chained: list[int] = []
    values: list[int] = []
    normal: dict[int, int] = {}
    for leaf in leaves:
        for row in rows.chain(features.rows, int(nodes.links[leaf, OBSERVED])):
            assert rows.owner_of(features.rows, row) == leaf
            counts = features.rows.cells[row, COUNT:]
            assert (counts <= nodes.rows.cells[leaf, COUNT:]).all(), "a feature weighs more than its class"
            assert counts.sum() > 0, "an empty row was kept"
            kind, part, _ = features.about[row].tolist()
            chained.append(row)
            if kind == NUMERIC:
                normal[part] = row
            elif kind == NOMINAL:
                own = rows.chain(features.values, part)
                assert (features.values.cells[own, COUNT:].sum(axis=0) == counts).all()
                values.extend(own)
            elif kind == QUANTISED:
                values.extend(quantised.check(features.values, features.quantised, row, counts))
    rows.check(features.rows, chained)
    rows.check(features.values, values)
    gaussians.check(features.gaussians, features.rows, normal)
