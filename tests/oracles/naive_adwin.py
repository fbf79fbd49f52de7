"""The oracle of ADWIN: the inputs themselves, in a list, and how they are cut into buckets."""

import math
from fractions import Fraction

from algorithms.core.criteria import log2


def _ln(x: float) -> float:
    return float(log2(x)) * math.log(2.0)


class Window:
    """A window over zeros and ones."""

    def __init__(self, delta: float = 0.002) -> None:
        self._delta = delta
        self.inputs: list[int] = []
        self.sizes: list[int] = []  # of the buckets, the oldest first
        self._time = 0

    @property
    def mean(self) -> Fraction:
        """Return the share of ones."""
        return Fraction(sum(self.inputs), len(self.inputs))

    def add(self, one: int) -> bool:
        """Add an input; return whether the mean has risen."""
        before = self.mean if self.inputs else Fraction(0)
        self.inputs.append(one)
        self.sizes.append(1)
        size = 1
        while self.sizes.count(size) > 5:
            oldest = self.sizes.index(size)
            size *= 2
            self.sizes[oldest : oldest + 2] = [size]
        self._time += 1
        changed = False
        while self._time % 32 == 0 and self._differs():
            del self.inputs[: self.sizes.pop(0)]
            changed = True
        return changed and self.mean > before

    def _differs(self) -> bool:
        """Return whether some cut between buckets leaves parts that differ."""
        n, ones = len(self.inputs), sum(self.inputs)
        if n <= 10:
            return False
        variance = (ones / n) * (1.0 - ones / n)
        d = _ln(2.0 * _ln(float(n)) / self._delta)
        for bucket in range(1, len(self.sizes)):
            older = sum(self.sizes[:bucket])
            newer, inside = n - older, sum(self.inputs[:older])
            if older > 6 and newer > 6:
                m = 1.0 / (older - 4) + 1.0 / (newer - 4)
                gap = abs(inside / older - (ones - inside) / newer)
                if gap > math.sqrt(2.0 * m * variance * d) + 2.0 / 3.0 * m * d:
                    return True
        return False
