"""What a leaf says of an example: its majority, naive Bayes, or whichever was right more often."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from algorithms.arrays import Float64s, Int64s, int64
from algorithms.criteria import log2
from algorithms.jit import inlined, jit
from algorithms.trees import gaussians, quantised, rows
from algorithms.trees.kinds import BINARY, NOMINAL, NUMERIC, QUANTISED
from algorithms.trees.nodes import ASLEEP, BAYES, MAJORITY, OBSERVED, SEEN, WEIGHT, Nodes, class_weight
from algorithms.trees.normal import exp2
from algorithms.trees.observers import KIND, PART, Features
from algorithms.trees.quantised import SIZE
from algorithms.trees.routing import value_of
from algorithms.trees.rows import COUNT, NEXT, NONE
from algorithms.trees.state import Batch, Out, Rules
from algorithms.units import PER_UNIT

# Logarithms of likelihoods are summed in integers: a leaf's features have an order that tells how names came to be
# interned, and what is predicted must not depend on it.
_PER_BIT = float(1 << 28)
_LARGEST_LOG = 4096.0  # bits; a sum of two million of them fits, and 2^-4096 is 0
_IMPOSSIBLE = -(1 << 62)  # the sum of a class that the leaf never saw
_LEAST_SHARE = 2.0**-50  # what the true class is taken to have been given at least, so that a loss is finite


class Predict(IntEnum):
    """How a leaf predicts."""

    MAJORITY = 0
    NAIVE_BAYES = 1
    ADAPTIVE = 2  # naive Bayes unless the majority has been right more often in this leaf


_MAJORITY, _NAIVE_BAYES, _ADAPTIVE = (int(each) for each in Predict)


@inlined
def _majority(nodes: Nodes, node: int, weights: Float64s) -> None:
    for k in range(weights.size):
        weights[k] = class_weight(nodes, node, k) * PER_UNIT


@inlined
def _fixed(log: float) -> int:
    """Return a logarithm in units of 2^-28."""
    return int64(np.rint(min(max(log, -_LARGEST_LOG), _LARGEST_LOG) * _PER_BIT))


@jit
def _naive_bayes(nodes: Nodes, features: Features, batch: Batch, event: int, leaf: int, out: Out) -> None:
    """Share a leaf's weight among the classes as naive Bayes does. O(features of the leaf).

    Whether a feature is present, and its value where it is, count as independent given the class. Counts are
    smoothed by one example of the leaf's mean weight, so that the scale of weights does not matter. The slots of a
    quantised feature are categories; as all are of one width, no class gains by it that they are no densities.
    """
    links = nodes.links
    cells = nodes.rows.cells
    smooth = max(links[leaf, WEIGHT] // links[leaf, SEEN], 1)
    logs = out.logs
    for k in range(logs.size):
        logs[k] = _fixed(log2(cells[leaf, COUNT + k] * PER_UNIT)) if cells[leaf, COUNT + k] > 0 else _IMPOSSIBLE
    row = links[leaf, OBSERVED]
    while row != NONE:
        kind = features.about[row, KIND]
        part = features.about[row, PART]
        value = value_of(batch, event, rows.item_of(features.rows, row))
        category = int64(NONE)
        categories = int64(0)
        if kind == QUANTISED and value != 0.0:
            category = quantised.find(features.values, features.quantised, row, value)
            categories = features.quantised.about[row, SIZE]
        if kind == NOMINAL and value != 0.0:
            category = rows.find(features.values, row, int64(value))
            while part != NONE:
                categories += 1
                part = features.values.cells[part, NEXT]
        for k in range(logs.size):
            present = features.rows.cells[row, COUNT + k]
            n = cells[leaf, COUNT + k]
            if n == 0:
                continue
            likely = present if value != 0.0 else n - present
            logs[k] += _fixed(log2((likely + smooth) / (n + 2 * smooth)))
            if value == 0.0 or kind == BINARY:
                continue
            if kind == NUMERIC:
                logs[k] += _fixed(gaussians.log2_likelihood(features.gaussians, part, k, present, value))
            else:
                of_category = features.values.cells[category, COUNT + k] if category != NONE else present * 0
                logs[k] += _fixed(log2((of_category + smooth) / (present + categories * smooth)))
        row = features.rows.cells[row, NEXT]
    _normalise(logs, links[leaf, WEIGHT] * PER_UNIT, out.weights)


@jit
def _normalise(logs: Int64s, total: float, weights: Float64s) -> None:
    """Turn logarithms of likelihoods into shares of a total."""
    most = logs[0]
    for k in range(1, logs.size):
        most = max(most, logs[k])
    all_of_them = 0.0
    for k in range(logs.size):
        weights[k] = exp2((logs[k] - most) / _PER_BIT) if logs[k] != _IMPOSSIBLE else 0.0
        all_of_them += weights[k]
    for k in range(weights.size):
        weights[k] = total * (weights[k] / all_of_them)


@inlined
def _heaviest(weights: Float64s) -> int:
    """Return the class with most weight, the lowest of equal ones; NONE where there is no weight."""
    best = int64(NONE)
    most = 0.0
    for k in range(weights.size):
        if weights[k] > most:
            most = weights[k]
            best = int64(k)
    return best


@jit
def predict(
    nodes: Nodes,
    features: Features,
    rules: Rules,
    batch: Batch,
    event: int,
    node: int,
    whole: bool,
    out: Out,
) -> int:
    """Write the class weights for an example that ends in a node to `out.weights`; return the class, or NONE.

    `whole` says that the example goes no further than an inner node, which answers with what it saw itself.
    """
    weights = out.weights
    if node == NONE:
        for k in range(weights.size):
            weights[k] = 0.0
        return int64(NONE)
    links = nodes.links
    bayes = rules.predict == _NAIVE_BAYES or (
        rules.predict == _ADAPTIVE and links[node, BAYES] >= links[node, MAJORITY]
    )
    if bayes and not whole and links[node, WEIGHT] > 0 and not links[node, ASLEEP]:
        _naive_bayes(nodes, features, batch, event, node, out)
    else:
        _majority(nodes, node, weights)
    return _heaviest(weights)


@inlined
def loss_of(weights: Float64s, k: int) -> float:
    """Return -log2 of the share given to a class, all classes alike where there is no weight."""
    total = 0.0
    for other in range(weights.size):
        total += weights[other]
    share = weights[k] / total if total > 0.0 else 1.0 / weights.size
    return -log2(max(share, _LEAST_SHARE))


@jit
def keep_score(
    nodes: Nodes, features: Features, rules: Rules, batch: Batch, event: int, leaf: int, out: Out
) -> None:
    """Note whether majority and naive Bayes would have been right about an example that is about to be learned."""
    links = nodes.links
    if rules.predict != _ADAPTIVE or links[leaf, WEIGHT] == 0 or links[leaf, ASLEEP]:
        return
    label = int64(batch.label[event])
    _majority(nodes, leaf, out.weights)
    if _heaviest(out.weights) == label:
        links[leaf, MAJORITY] += batch.weight[event]
    _naive_bayes(nodes, features, batch, event, leaf, out)
    if _heaviest(out.weights) == label:
        links[leaf, BAYES] += batch.weight[event]
