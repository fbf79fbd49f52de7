"""UPDENT of paper 000, section 4: the intervals B_i of rho = c_j01 / n_j0, for conditional entropy.

::

    i       -inf    -l        ...         -2        -1   |   1         2        ...         l     inf
    B_i   rho = 0  [s_-l,t_-l]  ...  [s_-2, t_-2] [s_-1, 1/2] [1/2, t_1] [s_2, t_2]  ...  [s_l, t_l]  rho = 1
                                                          |
    s_-i = 2^-((1 + alpha)^i), t_-i = s_-(i-1), mu_-i = s_-i   mirrored: rho and 1 - rho, labels 0 and 1

A feature may lie in a run of neighbouring bins, which only grows until the feature is seen again, for a
feature's score in a bin that its rho has left is overestimated, which does no harm (Proposition 4.4).
"""

from __future__ import annotations

import math

import numpy as np

from algorithms.core.arrays import Float64s
from algorithms.core.criteria import log2
from algorithms.core.fixed_point import LN2
from algorithms.splits import count_groups
from algorithms.splits.count_groups import COST0, COST1, LOWER, START, UPPER, Bins

_LOWEST = 64.0  # no share of weights below 2^62 is smaller than 2^-62: further bins would stay empty


def _exp2(x: float) -> float:
    """Return 2^x from additions and multiplications: the platform's library may differ in the last bit."""
    whole = math.floor(x + 0.5)
    y = (x - whole) * LN2
    total = 1.0
    for k in range(20, 0, -1):
        total = 1.0 + total * y / k
    return math.ldexp(total, whole)


def ladder(alpha: float) -> tuple[Float64s, int]:
    """Return the bins -inf, -l, ..., -1, 1, ..., l, inf as rows for `Bins`, and the rank of bin 1."""
    exponents = [1.0]  # (1 + alpha)^k; that of bin k = 0 is the upper end of bin -1
    while exponents[-1] < _LOWEST:
        exponents.append(min(exponents[-1] * (1.0 + alpha), _LOWEST))
    levels = len(exponents) - 1
    rows = np.zeros((2 * levels + 2, count_groups.LADDER_COLUMNS))
    for k in range(1, levels + 1):
        lower, upper = _exp2(-exponents[k]), _exp2(-exponents[k - 1])
        # K = h(a, b) + c_j10 log(1 - mu) + c_j11 log(mu): Proposition 4.1
        rare, common = exponents[k], -float(log2(1.0 - lower))
        below, above = rows[levels + 1 - k], rows[levels + k]
        below[[START, LOWER, UPPER, COST0, COST1]] = (lower, lower, upper, common, rare)
        above[[START, LOWER, UPPER, COST0, COST1]] = (lower, lower, upper, rare, common)
    return rows, levels + 1


def make(indexes: int, capacity: int, alpha: float) -> Bins:
    """Make the finder for so many indexes and slots."""
    rows, middle = ladder(alpha)
    return count_groups.make(indexes, capacity, rows, middle, widens=True)
