"""Random numbers that depend on the seed alone: not on how many are asked for at once, not on library or CPU."""

from __future__ import annotations

import math

import numpy as np

from algorithms.core.arrays import Float64s

EXAMPLES, NORMALS, MODEL, CHOICE = range(4)  # independent sequences of one seed

_STEP = 2.0**-53
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

        By ratios of uniform numbers (Kinderman and Monahan, ACM Transactions on Mathematical Software 3, 1977):
        the logarithm, whose last bit is not the same on every CPU, decides, but is no part of the result.
        """
        parts = []
        while n:
            # Exactly as many as are missing, so that none is left over for the next call.
            first, second = self.uniform(n, 2).T
            second = 1.0 - second
            ratio = _WIDTH * (first - 0.5) / second
            parts.append(ratio[ratio * ratio / 4.0 <= -np.log(second)])
            n -= len(parts[-1])
        return np.concatenate(parts) if parts else np.empty(0)
