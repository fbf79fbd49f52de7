"""What a leaf says of an example: its majority, naive Bayes, or whichever was right more often."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Float64s, Int64s, int64
from algorithms.core.criteria import log2
from algorithms.core.events import Batch
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY, NOMINAL, NUMERIC, QUANTISED
from algorithms.core.rows import COUNT, NEXT, NONE
from algorithms.trees import gaussians, quantised
from algorithms.trees.nodes import ASLEEP, BAYES, MAJORITY, OBSERVED, SEEN, WEIGHT, Nodes, class_weight
from algorithms.trees.normal import exp2
from algorithms.trees.observers import KIND, PART, POOR, Features
from algorithms.trees.quantised import SIZE
from algorithms.trees.routing import value_of
from algorithms.trees.state import Out, Rules

# Logarithms of likelihoods are summed in integers: a leaf's features have an order that tells how names came to be
# interned, and what is predicted must not depend on it.
_PER_BIT = float(1 << 28)
# Bits, and 2^-4096 is 0. A sum of two million of them fits: of the values of an example. What absence says is at
# most 63 bits (all counts are below 2^63), and 2^27 of these fit: more features than a leaf can have in memory.
_LARGEST_LOG = 4096.0
_IMPOSSIBLE = -(1 << 62)  # the sum of a class that the leaf never saw
_HEAVIEST = 1 << 61  # units that an example counts for at most in `_smooth`, so that twice that and a total fit
_LEAST_SHARE = 2.0**-50  # what the true class is taken to have been given at least, so that a loss is finite


class Predict(IntEnum):
    """How a leaf predicts."""

    MAJORITY = 0
    NAIVE_BAYES = 1
    ADAPTIVE = 2  # naive Bayes unless the majority has been right more often in this leaf
    ADAPTIVE_PRESENT = 3  # likewise, but what is absent from an example says nothing


_MAJORITY, _NAIVE_BAYES, _ADAPTIVE, _ADAPTIVE_PRESENT = (int(each) for each in Predict)


@inlined
def _majority(nodes: Nodes, node: int, weights: Float64s) -> None:
    for k in range(weights.size):
        weights[k] = class_weight(nodes, node, k) * PER_UNIT


@inlined
def _fixed(log: float) -> int:
    """Return a logarithm in units of 2^-28."""
    return int64(np.rint(min(max(log, -_LARGEST_LOG), _LARGEST_LOG) * _PER_BIT))


@inlined
def _smooth(nodes: Nodes, leaf: int) -> int:
    """Return what counts are smoothed by: one example of the leaf's mean weight, so that scale does not matter.

    n + 2 of it is below 2^63, as n < 2^62. So is n + c of it for c categories: they are at most as many as the
    examples seen, so that c of it weigh no more than the leaf.
    """
    return max(min(nodes.links[leaf, WEIGHT] // nodes.links[leaf, SEEN], _HEAVIEST), 1)


@inlined
def _is_dropped(features: Features, rules: Rules, row: int) -> bool:
    return rules.drop_poor and features.about[row, KIND] == POOR


@inlined
def _begin_logs(nodes: Nodes, leaf: int, logs: Int64s) -> None:
    for k in range(logs.size):
        weight = nodes.rows.cells[leaf, COUNT + k]
        logs[k] = _fixed(log2(weight * PER_UNIT)) if weight > 0 else _IMPOSSIBLE


@jit
def _add_absent(nodes: Nodes, features: Features, rules: Rules, leaf: int, row: int, logs: Int64s) -> None:
    """Add what the absence of a feature says for each class."""
    if _is_dropped(features, rules, row):
        return
    smooth = _smooth(nodes, leaf)
    for k in range(logs.size):
        n = nodes.rows.cells[leaf, COUNT + k]
        if n > 0:
            absent = n - features.rows.cells[row, COUNT + k]
            logs[k] += _fixed(log2((absent + smooth) / (n + 2 * smooth)))


@jit
def _add_present(
    nodes: Nodes, features: Features, rules: Rules, leaf: int, row: int, value: float, logs: Int64s
) -> None:
    """Add what a value other than 0 of a feature says for each class."""
    if _is_dropped(features, rules, row):
        return
    smooth = _smooth(nodes, leaf)
    kind = int64(BINARY) if rules.plain else features.about[row, KIND]  # a cache miss less
    part = features.about[row, PART] if kind != BINARY else int64(NONE)
    category = int64(NONE)
    categories = int64(0)
    spread = 0.0
    if kind == NUMERIC:
        least, most = gaussians.extremes(features.gaussians, part)
        spread = most - least
    elif kind == QUANTISED:
        category = quantised.find(features.values, features.quantised, row, value)
        categories = features.quantised.about[row, SIZE]
    elif kind == NOMINAL:
        category = rows.find(features.values, row, int64(value))
        while part != NONE:
            categories += 1
            part = features.values.cells[part, NEXT]
    for k in range(logs.size):
        present = features.rows.cells[row, COUNT + k]
        n = nodes.rows.cells[leaf, COUNT + k]
        if n == 0:
            continue
        logs[k] += _fixed(log2((present + smooth) / (n + 2 * smooth)))
        if kind == NUMERIC:
            logs[k] += _fixed(gaussians.log2_likelihood(features.gaussians, part, k, present, value, spread))
        elif kind != BINARY:
            of_category = features.values.cells[category, COUNT + k] if category != NONE else present * 0
            logs[k] += _fixed(log2((of_category + smooth) / (present + categories * smooth)))


@jit
def _naive_bayes(
    nodes: Nodes, features: Features, rules: Rules, batch: Batch, event: int, leaf: int, out: Out
) -> None:
    """Share a leaf's weight among the classes as naive Bayes does.

    Whether a feature is present, and its value where it is, count as independent given the class. Where absent
    ones count too this is O(features of the leaf), else O(features of the example). The slots of a quantised
    feature are categories; as all are of one width, no class gains by it that they are no densities.
    """
    logs = out.logs
    _begin_logs(nodes, leaf, logs)
    if rules.predict == _ADAPTIVE_PRESENT:
        for at in range(batch.pointer[event], batch.pointer[event + 1]):
            if batch.value[at] != 0.0:
                row = rows.find(features.rows, leaf, int64(batch.feature[at]))
                if row != NONE:
                    _add_present(nodes, features, rules, leaf, row, batch.value[at], logs)
    else:
        row = nodes.links[leaf, OBSERVED]
        while row != NONE:
            value = value_of(batch, event, rows.item_of(features.rows, row))
            if value != 0.0:
                _add_present(nodes, features, rules, leaf, row, value, logs)
            else:
                _add_absent(nodes, features, rules, leaf, row, logs)
            row = features.rows.cells[row, NEXT]
    _normalise(logs, nodes.links[leaf, WEIGHT] * PER_UNIT, out.weights)


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


@inlined
def _trusts_bayes(nodes: Nodes, rules: Rules, node: int) -> bool:
    """Return whether a leaf that has seen something answers by naive Bayes."""
    links = nodes.links
    return rules.predict == _NAIVE_BAYES or (
        rules.predict >= _ADAPTIVE and links[node, BAYES] >= links[node, MAJORITY]
    )


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
    bayes = _trusts_bayes(nodes, rules, node)
    if bayes and not whole and links[node, WEIGHT] > 0 and not links[node, ASLEEP]:
        _naive_bayes(nodes, features, rules, batch, event, node, out)
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
    nodes: Nodes,
    features: Features,
    rules: Rules,
    batch: Batch,
    event: int,
    leaf: int,
    evaluated: bool,
    predicted: int,
    out: Out,
) -> None:
    """Note whether majority and naive Bayes would have been right about an example that is about to be learned.

    `evaluated` says that the leaf was asked just now, and `predicted` what it said.
    """
    links = nodes.links
    if rules.predict < _ADAPTIVE or links[leaf, WEIGHT] == 0 or links[leaf, ASLEEP]:
        return
    label = int64(batch.label[event])
    if not (evaluated and _trusts_bayes(nodes, rules, leaf)):  # naive Bayes costs too much to ask twice
        _naive_bayes(nodes, features, rules, batch, event, leaf, out)
        predicted = _heaviest(out.weights)
    if predicted == label:
        links[leaf, BAYES] += batch.weight[event]
    _majority(nodes, leaf, out.weights)
    if _heaviest(out.weights) == label:
        links[leaf, MAJORITY] += batch.weight[event]
