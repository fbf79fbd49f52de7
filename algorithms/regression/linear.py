"""Linear models of leaves: what a leaf says of an example by a coefficient for each feature that is present.

A model is a diagonal Kalman filter, which is AROW for regression (Vaits and Crammer, 2011): each coefficient has
an uncertainty, and an error is shared among the coefficients of the example by these. A step takes away a part of
the error, never more than all of it, whatever the values are: values of numeric features are taken as deviations
from their mean, in standard deviations. Uncertainties fall as coefficients learn, and stay at `FLOOR` at least: a
model follows labels that change.

Categories of nominal features are not numbers, and have no part in it.

A feature's coefficient lies in the row that the leaf has for the feature. Where a leaf splits, its rows stay with
it: the leaves below begin with copies, each when it first sees the feature. So a split copies nothing, and memory
follows what nodes have seen.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from algorithms.core import rows
from algorithms.core.arrays import Float64s, int64
from algorithms.core.events import Batch
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY, NOMINAL
from algorithms.core.means import moved
from algorithms.core.rows import NONE
from algorithms.regression.state import (
    CENTER,
    COEFFICIENT,
    ERROR_OF_LINEAR,
    ERROR_OF_MEAN,
    HIGH,
    INTERCEPT,
    LOW,
    OFFSET,
    SPREAD,
    UNCERTAINTY,
    UNCERTAINTY_OF_INTERCEPT,
    VALUES,
    Forest,
    Rules,
)
from algorithms.trees.nodes import ASLEEP, ROOTS, SEEN, WEIGHT


class Predict(IntEnum):
    """How a leaf predicts."""

    MEAN = 0
    LINEAR = 1
    ADAPTIVE = 2  # by the linear model where its squared errors have been less than the mean's of late


MEAN_ALONE, ADAPTIVE = int(Predict.MEAN), int(Predict.ADAPTIVE)

# Measured on friedman, words, bike_hour, beijing_pm25, metro_traffic, ccpp and flights: a first uncertainty of 0.3
# to 100, and a floor of 0.005 to 0.02, change the error of each by a tenth at most.
FIRST = 1.0  # uncertainty of a coefficient that has learned nothing, that of a label being 1
FLOOR = 0.01
FADE = 0.995  # of squared errors at every example of a leaf: the last 200 or so count
FARTHEST = 4.0  # standard deviations that a value is taken to be from the mean at most
_LARGEST = 1e200  # of a coefficient; beyond what labels can lead to, so that no product overflows

# Parts are summed in integers: a leaf's features have an order that tells how names came to be interned, and what
# is predicted must not depend on it. A sum of 2^24 parts fits.
_OF_RANGE = 2.0**30  # units in the range of labels
_MOST_UNITS = 2.0**38
_OF_UNCERTAINTY = 2.0**32  # units; one of a value is 16 at most


class Said(NamedTuple):
    """What a linear model says of an example."""

    label: float  # less the model's offset, whether labels go that far or not
    uncertainty: float  # of that, without the label's own


class Lesson(NamedTuple):
    """What an example teaches each coefficient."""

    step: float  # of one whose uncertainty and value are 1
    uncertainty: float  # of the model and of the label


@inlined
def speaks(forest: Forest, rules: Rules, leaf: int) -> bool:
    """Return whether a leaf has a model: all have one or none, but for those that sleep."""
    return rules.predict != MEAN_ALONE and forest.nodes.links[leaf, ASLEEP] == 0


@inlined
def begin(forest: Forest, leaf: int, label: float) -> None:
    """Begin the model of a root with its first label."""
    own = forest.models.leaves
    for column in range(own.shape[1]):
        own[leaf, column] = 0.0
    own[leaf, OFFSET] = label
    own[leaf, UNCERTAINTY_OF_INTERCEPT] = FIRST
    own[leaf, LOW] = label
    own[leaf, HIGH] = label


@inlined
def inherit(forest: Forest, leaf: int, parent: int) -> None:
    """Let a new leaf begin with its parent's model."""
    own = forest.models.leaves
    for column in range(own.shape[1]):
        own[leaf, column] = own[parent, column]


@inlined
def restart(forest: Forest, leaf: int, mean: float) -> None:
    """Let a leaf that has forgotten its coefficients begin with the mean of its labels."""
    own = forest.models.leaves
    own[leaf, INTERCEPT] = mean - own[leaf, OFFSET]
    own[leaf, UNCERTAINTY_OF_INTERCEPT] = FIRST
    own[leaf, LOW] = min(own[leaf, LOW], mean)
    own[leaf, HIGH] = max(own[leaf, HIGH], mean)
    own[leaf, ERROR_OF_MEAN] = 0.0
    own[leaf, ERROR_OF_LINEAR] = 0.0


@jit
def find(forest: Forest, leaf: int, feature: int) -> int:
    """Return the row with a feature's coefficient: the leaf's, or that of the nearest node above. O(depth)."""
    node = leaf
    while node != ROOTS:
        row = rows.find(forest.features.rows, node, feature)
        if row != NONE:
            return row
        node = rows.owner_of(forest.nodes.rows, node)
    return NONE


@inlined
def begin_feature(forest: Forest, row: int, known: int) -> None:
    """Begin the coefficient of a feature with that of the row `known`, which may be none."""
    own = forest.models.features
    for column in range(own.shape[1]):
        own[row, column] = own[known, column] if known != NONE else 0.0
    if known == NONE:
        own[row, UNCERTAINTY] = FIRST


@inlined
def _scaled(own: Float64s, row: int, kind: int, value: float) -> float:
    """Return a value as deviation from the mean, in standard deviations; 0 before there are any."""
    if kind == BINARY:
        return 1.0
    deviation = math.sqrt(own[row, SPREAD] / max(own[row, VALUES], 1.0))
    if deviation == 0.0:
        return 0.0
    return min(max((value - own[row, CENTER]) / deviation, -FARTHEST), FARTHEST)


@inlined
def _held(coefficient: float) -> float:
    return min(max(coefficient, -_LARGEST), _LARGEST)


@jit
def look(forest: Forest, batch: Batch, event: int, leaf: int) -> Said:
    """Return what the model of a leaf says of an example. O(features of the example), new ones O(depth) each."""
    own, features = forest.models.leaves, forest.models.features
    breadth = own[leaf, HIGH] - own[leaf, LOW]
    total = int64(0)
    uncertainty = int64(0)
    for at in range(batch.pointer[event], batch.pointer[event + 1]):
        if batch.value[at] == 0.0 or batch.kind[at] == NOMINAL:
            continue
        row = find(forest, leaf, int64(batch.feature[at]))
        if row == NONE:
            uncertainty += int64(FIRST * _OF_UNCERTAINTY) if batch.kind[at] == BINARY else 0
            continue
        x = _scaled(features, row, int64(batch.kind[at]), batch.value[at])
        uncertainty += int64(np.rint(features[row, UNCERTAINTY] * (x * x) * _OF_UNCERTAINTY))
        if breadth > 0.0:
            part = features[row, COEFFICIENT] * x / breadth * _OF_RANGE
            total += int64(np.rint(min(max(part, -_MOST_UNITS), _MOST_UNITS)))
    return Said(
        own[leaf, INTERCEPT] + total * (breadth / _OF_RANGE),
        own[leaf, UNCERTAINTY_OF_INTERCEPT] + uncertainty / _OF_UNCERTAINTY,
    )


@inlined
def bounded(forest: Forest, leaf: int, said: Said) -> float:
    """Return the label that a model predicts: what it says, within the labels that it has seen."""
    own = forest.models.leaves
    return min(max(own[leaf, OFFSET] + said.label, own[leaf, LOW]), own[leaf, HIGH])


@inlined
def chosen(forest: Forest, rules: Rules, leaf: int, mean: float, said: Said) -> float:
    """Return the label that a leaf predicts, by its mean or by its model."""
    own = forest.models.leaves
    if not speaks(forest, rules, leaf):
        return mean
    if rules.predict == ADAPTIVE and not own[leaf, ERROR_OF_LINEAR] < own[leaf, ERROR_OF_MEAN]:
        return mean
    return bounded(forest, leaf, said)


@inlined
def judge(forest: Forest, leaf: int, label: float, mean: float, said: Said) -> None:
    """Count how wrong the mean and the model would have been."""
    own = forest.models.leaves
    of_mean, of_linear = label - mean, label - bounded(forest, leaf, said)
    own[leaf, ERROR_OF_MEAN] = FADE * own[leaf, ERROR_OF_MEAN] + of_mean * of_mean
    own[leaf, ERROR_OF_LINEAR] = FADE * own[leaf, ERROR_OF_LINEAR] + of_linear * of_linear


@inlined
def learn(forest: Forest, leaf: int, label: float, weight: int, said: Said) -> Lesson:
    """Let the intercept of a leaf that has counted an example learn it; return what coefficients learn.

    The label is as uncertain as the example is light, beside the mean one of the leaf.
    """
    own, links = forest.models.leaves, forest.nodes.links
    # As floats: a heavy example and many light ones multiply to more than an int64 holds.
    whole = said.uncertainty + links[leaf, WEIGHT] / (float(weight) * float(links[leaf, SEEN]))
    lesson = Lesson((label - own[leaf, OFFSET] - said.label) / whole, whole)
    before = own[leaf, UNCERTAINTY_OF_INTERCEPT]
    own[leaf, INTERCEPT] = _held(own[leaf, INTERCEPT] + before * lesson.step)
    own[leaf, UNCERTAINTY_OF_INTERCEPT] = max(before - before * before / whole, FLOOR)
    own[leaf, LOW] = min(own[leaf, LOW], label)
    own[leaf, HIGH] = max(own[leaf, HIGH], label)
    return lesson


@inlined
def learn_feature(forest: Forest, row: int, kind: int, value: float, lesson: Lesson) -> None:
    """Let a coefficient learn an example, and its values."""
    own = forest.models.features
    if kind == NOMINAL:
        return
    x = _scaled(own, row, kind, value)
    before = own[row, UNCERTAINTY] * x
    own[row, COEFFICIENT] = _held(own[row, COEFFICIENT] + before * lesson.step)
    own[row, UNCERTAINTY] = max(own[row, UNCERTAINTY] - before * before / lesson.uncertainty, FLOOR)
    if kind != BINARY:
        own[row, VALUES] += 1.0
        center = own[row, CENTER]
        own[row, CENTER] = moved(center, value, 1.0 / own[row, VALUES])
        own[row, SPREAD] += (value - center) * (value - own[row, CENTER])
