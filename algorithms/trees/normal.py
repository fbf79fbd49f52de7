"""The normal distribution from plain IEEE operations, so that results depend on no library's last bit.

`cumulative` is Hart's algorithm 5666 in the form of G. West, "Better approximations to cumulative normal
functions", 2005: good to 1e-15.
"""

from __future__ import annotations

import math

from algorithms.core.criteria import log2
from algorithms.core.fixed_point import LN2
from algorithms.core.jit import inlined, jit

_LOG2_E = 1.0 / LN2
_HALF_LOG2_TAU = 1.3257480647361595  # of 2 pi
_FARTHEST = 2.0**100
_ROOT_TAU = math.sqrt(2.0 * math.pi)
# 1 / k!, the coefficients of exp
_E2, _E3, _E4, _E5, _E6, _E7, _E8 = (1.0 / math.factorial(k) for k in range(2, 9))
_E9, _E10, _E11, _E12, _E13 = (1.0 / math.factorial(k) for k in range(9, 14))


@jit
def exp2(x: float) -> float:
    """Return 2^x for x <= 1000; 0 below -1000. The error stays within a few units in the last place."""
    if x < -1000.0:
        return 0.0
    whole = math.floor(x + 0.5)
    t = (x - whole) * LN2
    tail = _E8 + t * (_E9 + t * (_E10 + t * (_E11 + t * (_E12 + t * _E13))))
    fraction = 1.0 + t * (1.0 + t * (_E2 + t * (_E3 + t * (_E4 + t * (_E5 + t * (_E6 + t * (_E7 + t * tail)))))))
    return math.ldexp(fraction, int(whole))


@jit
def cumulative(z: float) -> float:
    """Return the probability that a standard normal variable is at most z."""
    size = abs(z)
    if size > 37.0:
        return 1.0 if z > 0.0 else 0.0
    density = exp2(-0.5 * size * size * _LOG2_E)
    if size < 7.07106781186547:
        above = 3.52624965998911e-02 * size + 0.700383064443688
        above = above * size + 6.37396220353165
        above = above * size + 33.912866078383
        above = above * size + 112.079291497871
        above = above * size + 221.213596169931
        above = density * (above * size + 220.206867912376)
        below = 8.83883476483184e-02 * size + 1.75566716318264
        below = below * size + 16.064177579207
        below = below * size + 86.7807322029461
        below = below * size + 296.564248779674
        below = below * size + 637.333633378831
        below = below * size + 793.826512519948
        tail = above / (below * size + 440.413735824752)
    else:
        tail = density / (size + 1.0 / (size + 2.0 / (size + 3.0 / (size + 4.0 / (size + 0.65))))) / _ROOT_TAU
    return 1.0 - tail if z > 0.0 else tail


@inlined
def log2_density(x: float, mean: float, deviation: float) -> float:
    """Return log2 of the density of a normal distribution with a deviation of at least 2^-1022.

    Beyond 2^100 deviations it stays as it is, so that no quotient and no square overflows.
    """
    z = min(abs(x - mean), deviation * _FARTHEST) / deviation
    return -(0.5 * _LOG2_E * (z * z) + log2(deviation) + _HALF_LOG2_TAU)
