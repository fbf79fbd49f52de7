"""The Gaussian observer of numeric features: mean and spread of each class's values.

Only values other than 0 are observed. Those that are 0, explicit or absent, are known exactly from the leaf's
totals and go to one side of a threshold as a whole, so that sparse numeric features keep their point mass.
As in VFML and MOA, a threshold is one of ten between the least and the greatest value; the weight below it is
estimated from a normal distribution within the least and greatest value of the class, and exact outside.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from algorithms.core import free_list
from algorithms.core.arrays import Float64s, Int32s, Int64s, extended
from algorithms.core.criteria import log2
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.means import moved
from algorithms.core.rows import COUNT, NONE, USED, Rows
from algorithms.core.stored import stored
from algorithms.trees import normal

# The last axis of `Gaussians.moments`.
MEAN, SQUARES, LEAST, MOST = 0, 1, 2, 3  # mean; weighted sum of squared deviations; extremes

CANDIDATES = 10  # thresholds tried between the extremes
LARGEST_VALUE = 1e140  # squares times weights stay finite
_NARROWEST = 2.0**-10  # of the range: the least deviation that naive Bayes assumes
_LEAST = (
    2.0**-1022
)  # the least deviation of all: smaller numbers have fewer digits, and no quotient by them is safe


@stored("moments", "following", "used")
class Gaussians(NamedTuple):
    """Moments of the values of numeric features; the class weights are in the feature's row."""

    moments: Float64s  # float64[capacity, c, 4]
    following: Int32s  # int32[capacity], the free list
    used: Int64s  # int64[3], a free list through `following`


def make(capacity: int, classes: int) -> Gaussians:
    """Return empty storage."""
    return Gaussians(
        np.zeros((capacity, classes, 4)), np.zeros(capacity, np.int32), np.array([0, 0, NONE], np.int64)
    )


def grown(gaussians: Gaussians, capacity: int) -> Gaussians:
    """Return the same storage with room for more rows."""
    return Gaussians(
        extended(gaussians.moments, capacity), extended(gaussians.following, capacity), gaussians.used
    )


@inlined
def room(gaussians: Gaussians) -> int:
    """Return how many rows can be made before the storage must grow."""
    return gaussians.following.size - gaussians.used[USED]


@jit
def create(gaussians: Gaussians) -> int:
    """Return a row that has seen nothing; there must be room."""
    row = free_list.take(gaussians.used, gaussians.following)
    for k in range(gaussians.moments.shape[1]):
        gaussians.moments[row, k, MEAN] = 0.0
        gaussians.moments[row, k, SQUARES] = 0.0
        gaussians.moments[row, k, LEAST] = np.inf
        gaussians.moments[row, k, MOST] = -np.inf
    return row


@jit
def remove(gaussians: Gaussians, row: int) -> None:
    """Give back a row."""
    free_list.give(gaussians.used, gaussians.following, row)


@jit
def observe(gaussians: Gaussians, row: int, k: int, weight: int, total: int, value: float) -> None:
    """Add a value of class k; `total` is the weight of the class's values with this one, in units.

    The squares are at most 4e280 times a weight below 2^42.
    """
    moments = gaussians.moments
    mean = moments[row, k, MEAN]
    before = value - mean
    moments[row, k, MEAN] = moved(mean, value, weight / total)
    moments[row, k, SQUARES] += (weight * PER_UNIT) * (before * (value - moments[row, k, MEAN]))
    moments[row, k, LEAST] = min(moments[row, k, LEAST], value)
    moments[row, k, MOST] = max(moments[row, k, MOST], value)


@inlined
def deviation(gaussians: Gaussians, row: int, k: int, total: int) -> float:
    """Return the standard deviation of class k's values, whose weight is `total` > 0 units."""
    return math.sqrt(gaussians.moments[row, k, SQUARES] / (total * PER_UNIT))


@jit
def below(gaussians: Gaussians, row: int, k: int, total: int, threshold: float) -> int:
    """Return the estimated weight, in units, of class k's values that are at most `threshold`."""
    moments = gaussians.moments
    if total == 0 or threshold < moments[row, k, LEAST]:
        return 0
    if threshold >= moments[row, k, MOST]:
        return total
    spread = deviation(gaussians, row, k, total)
    if spread <= 0.0:  # squares of tiny values underflow
        return total if threshold >= moments[row, k, MEAN] else 0
    share = normal.cumulative((threshold - moments[row, k, MEAN]) / spread)
    return min(total, int(total * share))


@jit
def extremes(gaussians: Gaussians, row: int) -> tuple[float, float]:
    """Return the least and the greatest value of all classes."""
    least = np.inf
    most = -np.inf
    for k in range(gaussians.moments.shape[1]):
        least = min(least, gaussians.moments[row, k, LEAST])
        most = max(most, gaussians.moments[row, k, MOST])
    return least, most


@jit
def log2_likelihood(gaussians: Gaussians, row: int, k: int, total: int, value: float, spread: float) -> float:
    """Return log2 of the density of a value in class k, for naive Bayes; 0 where all values seen are equal.

    `spread` is the range of all classes. A class without values is uniform over it; no class is narrower than a
    1024th of it, nor than the least number with all its digits.
    """
    if spread <= 0.0:
        return 0.0
    if total == 0:
        return -log2(spread)
    narrow = max(deviation(gaussians, row, k, total), spread * _NARROWEST, _LEAST)
    return normal.log2_density(value, gaussians.moments[row, k, MEAN], narrow)


def check(gaussians: Gaussians, features: Rows, owners: dict[int, int]) -> None:
    """Raise AssertionError unless the rows in use are those of `owners` (row -> its feature's row)."""
    free_list.check(gaussians.used, gaussians.following, list(owners))
    for row, feature in owners.items():
        for k, total in enumerate(features.cells[feature, COUNT:].tolist()):
            _, squares, least, most = gaussians.moments[row, k].tolist()
            assert (least <= most) == (total > 0)
            assert squares >= 0.0
