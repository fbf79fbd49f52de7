"""UPDGINI of paper 000, section 5: the intervals B_i of rho = c_j01 / n_j0, for the Gini index.

With beta = alpha / (alpha + 2), B_i = [(i/2 - 1/4) beta, (i/2 + 3/4) beta] and mu_i is its middle. A feature
lies in exactly one bin: here a stranger could win a bin unjustly. Neighbours overlap by half, so that a
feature that has just been put into a bin is at least beta / 4 away from leaving it.
"""

from __future__ import annotations

import numpy as np

from algorithms.core.arrays import Float64s
from algorithms.splits import count_groups
from algorithms.splits.count_groups import COST0, COST1, LOWER, START, UPPER, Bins


def ladder(alpha: float) -> tuple[Float64s, int]:
    """Return the bins 0, 1, ..., l as rows for `Bins`, and their number: none is mirrored."""
    beta = alpha / (alpha + 2.0)
    # A bin for every rho up to 1: floor(2 / beta) + 1 of them, where the quotient is not off by a rounding error.
    count = int(2.0 / beta)
    while count / 2 * beta <= 1.0:
        count += 1
    rows = np.zeros((count, count_groups.LADDER_COLUMNS))
    for i, row in enumerate(rows):
        mu = (i / 2 + 0.25) * beta
        row[[START, LOWER, UPPER]] = (i / 2 * beta, (i / 2 - 0.25) * beta, (i / 2 + 0.75) * beta)
        # K = h(a, b) - 2 c_j10 mu or - 2 c_j11 (1 - mu): Proposition 5.1
        row[[COST0, COST1]] = (2.0 * mu, 0.0) if mu >= 0.5 else (0.0, 2.0 * (1.0 - mu))
    return rows, len(rows)


def make(indexes: int, capacity: int, alpha: float) -> Bins:
    """Make the finder for so many indexes and slots."""
    rows, middle = ladder(alpha)
    return count_groups.make(indexes, capacity, rows, middle, widens=False)
