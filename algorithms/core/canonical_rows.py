"""Whether rows are as a `Canonicaliser` would make them: most samples of the batch learners come so."""

from __future__ import annotations

import math

from algorithms.core.arrays import Float64s, Int64s, UInt32s, int64
from algorithms.core.jit import jit
from algorithms.core.kinds import BINARY
from algorithms.core.schema import Kinds, kind_of


@jit
def are_canonical(known: Kinds, pointer: Int64s, feature: UInt32s, value: Float64s, count: Int64s) -> bool:
    """Return whether features ascend in each row, values are finite and not 0, and those of binary features are 1.

    On the way the entries of each feature are counted, unless `count` is of no size.
    """
    if pointer[0] != 0 or pointer[pointer.size - 1] != feature.size:
        return False
    counts = count.size > 0
    for i in range(pointer.size - 1):
        before = int64(-1)
        for at in range(pointer[i], pointer[i + 1]):
            now = int64(feature[at])
            if now <= before or not 0.0 < abs(value[at]) < math.inf:
                return False
            if value[at] != 1.0 and kind_of(known, now) == BINARY:
                return False
            if counts:
                count[now] += 1
            before = now
    return True
