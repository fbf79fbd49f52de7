"""Random numbers that depend on the seed alone: not on how many are asked for at once, not on library or CPU."""

from __future__ import annotations

import math

import numpy as np

from algorithms.core.arrays import Float64s
from algorithms.core.fixed_point import LN2

EXAMPLES, NORMALS, MODEL, CHOICE = range(4)  # independent sequences of one seed

_STEP = 2.0**-53
_SQRT_HALF = math.sqrt(0.5)
_WIDTH = (
    1.7155277699214135  # 4 exp(-1/2) / sqrt(2), of the strip that ratios come from; written out for its last bit
)


class Draws:
    """One sequence of random numbers.

    Numpy promises that the raw words of a bit generator stay as they are, of its distributions it does not; so
    these are made of the words here.

    Parameters
    ----------
    seed : int
        0 or more.
    sequence : int
        Which of the seed's sequences.
    """

    def __init__(self, seed: int, sequence: int = EXAMPLES) -> None:
        self._words = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(sequence,)))

    def uniform(self, *shape: int) -> Float64s:
        """Return numbers from [0, 1), in row order: multiples of 2^-53."""
        words = self._words.random_raw(math.prod(shape))
        numbers: Float64s = (words >> np.uint64(11)).astype(np.float64) * _STEP
        return numbers.reshape(shape)

    def below(self, limit: int) -> int:
        """Return one of 0, 1, ..., limit - 1."""
        return int(self.uniform(1)[0] * limit)

    def normal(self, n: int) -> Float64s:
        """Return n standard normal numbers.

        By ratios of uniform numbers (Kinderman and Monahan, ACM Transactions on Mathematical Software 3, 1977).
        """
        parts = []
        while n:
            # Exactly as many as are missing, so that none is left over for the next call.
            first, second = self.uniform(n, 2).T
            second = 1.0 - second
            ratio = _WIDTH * (first - 0.5) / second
            parts.append(ratio[ratio * ratio / 4.0 <= -ln(second)])
            n -= len(parts[-1])
        return np.concatenate(parts) if parts else np.empty(0)


def ln(x: Float64s) -> Float64s:
    """Return the natural logarithms of finite numbers above 0: numpy's have not the same last bit on every CPU.

    They are made of additions, multiplications and one division, as `algorithms.core.criteria.log2`, and good to
    three units in the last place.
    """
    mantissa, exponent = np.frexp(x)
    is_low = mantissa < _SQRT_HALF
    mantissa, exponent = np.where(is_low, 2.0 * mantissa, mantissa), exponent - is_low
    f = (mantissa - 1.0) / (mantissa + 1.0)
    square = f * f
    series = np.zeros(len(x))  # atanh(f) / f
    for k in reversed(range(11)):
        series = series * square + 1.0 / (2 * k + 1)
    logarithm: Float64s = exponent * LN2 + 2.0 * f * series
    return logarithm
