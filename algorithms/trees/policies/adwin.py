"""ADWIN: a window over zeros and ones that forgets its oldest part when the rest differs from it.

Bifet, Gavalda: Learning from time-changing data with adaptive windowing. SDM 2007. The window is kept as an
exponential histogram: buckets of 1, 2, 4, .. inputs, at most `M` of a size, of which only the ones are counted.
All sums are whole numbers, so nothing drifts.

::

    level      2          1          0
    inputs    4  4       2  2  2    1  1  1  1      22 inputs in 9 buckets, the oldest first
    ones      3  4       1  0  1    0  0  1  0

The constants and the bound are those of its authors' implementation in MOA.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Int8s, Int32s, Int64s, extended, int64
from algorithms.core.criteria import log2
from algorithms.core.fixed_point import LN2
from algorithms.core.jit import inlined, jit
from algorithms.core.stored import stored

M = 5  # buckets of a size at most
LEVELS = 20  # of sizes; a window holds up to 5 (2^20 - 1) inputs, more than five million
EVERY = 32  # inputs from one look for a change to the next
LEAST = 10  # a window with no more inputs is not looked at
LEAST_PART = 6  # nor is a cut that leaves a part with no more
DELTA = 0.002  # of the same implementation

# Columns of `Windows.sums`.
WIDTH = 0  # inputs in the window
ONES = 1  # how many of them are 1
CLOCK = 2  # inputs since the window was begun, modulo EVERY
COLUMNS = 3


@stored("sums", "buckets", "ones")
class Windows(NamedTuple):
    """Any number of windows."""

    sums: Int64s  # int64[windows, COLUMNS]
    buckets: Int8s  # int8[windows, LEVELS], how many there are of each size
    ones: Int32s  # int32[windows, LEVELS * M], in each bucket, the oldest of a size first


def make(capacity: int) -> Windows:
    """Return so many empty windows."""
    return Windows(
        np.zeros((capacity, COLUMNS), np.int64),
        np.zeros((capacity, LEVELS), np.int8),
        np.zeros((capacity, LEVELS * M), np.int32),
    )


def grown(windows: Windows, capacity: int) -> Windows:
    """Return the same windows and more of them."""
    return Windows(
        extended(windows.sums, capacity), extended(windows.buckets, capacity), extended(windows.ones, capacity)
    )


@jit
def begin(windows: Windows, at: int) -> None:
    """Empty a window."""
    for column in range(COLUMNS):
        windows.sums[at, column] = 0
    for level in range(LEVELS):
        windows.buckets[at, level] = 0


@inlined
def mean(windows: Windows, at: int) -> float:
    """Return the mean of a window that is not empty."""
    return windows.sums[at, ONES] / windows.sums[at, WIDTH]


@inlined
def _drop_oldest(windows: Windows, at: int, level: int) -> None:
    """Forget the oldest bucket of a level, the others of its level moving up."""
    for bucket in range(level * M, level * M + M - 1):
        windows.ones[at, bucket] = windows.ones[at, bucket + 1]
    windows.buckets[at, level] -= 1


@jit
def _append(windows: Windows, at: int, one: int) -> None:
    """Add an input. O(1) amortised: where a level is full its two oldest buckets become one of the next."""
    windows.sums[at, WIDTH] += 1
    windows.sums[at, ONES] += one
    newest = int64(one)
    for level in range(LEVELS):
        full = windows.buckets[at, level] == M
        merged = int64(0)
        if full:
            merged = int64(windows.ones[at, level * M]) + int64(windows.ones[at, level * M + 1])
            _drop_oldest(windows, at, level)
            _drop_oldest(windows, at, level)
        windows.ones[at, level * M + int64(windows.buckets[at, level])] = newest
        windows.buckets[at, level] += 1
        if not full:
            return
        newest = merged
    # There is no next level: the window is as wide as it gets.
    windows.sums[at, WIDTH] -= int64(1) << LEVELS
    windows.sums[at, ONES] -= newest


@jit
def _differs(windows: Windows, at: int, delta: float) -> bool:
    """Return whether the window can be cut between two buckets into parts whose means differ too much.

    The bound for parts of n_0 and n_1 of n inputs with variance v is sqrt(2 m v d) + 2/3 m d, where
    d = ln(2 ln(n) / delta) and m = 1 / (n_0 - 4) + 1 / (n_1 - 4).
    """
    width = windows.sums[at, WIDTH]
    ones = windows.sums[at, ONES]
    share = ones / width
    variance = share * (1.0 - share)
    d = log2(2.0 * (log2(float(width)) * LN2) / delta) * LN2
    older = int64(0)
    older_ones = int64(0)
    for down in range(LEVELS):
        level = LEVELS - 1 - down
        for bucket in range(level * M, level * M + int64(windows.buckets[at, level])):
            older += int64(1) << level
            older_ones += windows.ones[at, bucket]
            newer = width - older
            if newer <= LEAST_PART:
                return False
            if older > LEAST_PART:
                m = 1.0 / (older - 4) + 1.0 / (newer - 4)
                gap = abs(older_ones / older - (ones - older_ones) / newer)
                if gap > math.sqrt(2.0 * m * variance * d) + 2.0 / 3.0 * m * d:
                    return True
    return False


@jit
def _forget_oldest(windows: Windows, at: int) -> None:
    """Forget the oldest bucket of a window."""
    level = LEVELS - 1
    while windows.buckets[at, level] == 0:
        level -= 1
    windows.sums[at, WIDTH] -= int64(1) << level
    windows.sums[at, ONES] -= windows.ones[at, level * M]
    _drop_oldest(windows, at, level)


@jit
def add(windows: Windows, at: int, one: int, delta: float) -> bool:
    """Add an input, 0 or 1, and return whether that shows that the mean has risen.

    `delta` is how likely a look finds a change where there is none.

    Of what was before the change, as much is forgotten as differs.
    """
    width = windows.sums[at, WIDTH]
    ones = windows.sums[at, ONES]
    _append(windows, at, one)
    clock = (windows.sums[at, CLOCK] + 1) % EVERY
    windows.sums[at, CLOCK] = clock
    if clock != 0:
        return False
    changed = False
    while windows.sums[at, WIDTH] > LEAST and _differs(windows, at, delta):
        _forget_oldest(windows, at)
        changed = True
    # Means are compared as fractions, by whole numbers: a window holds at most 5 (2^20 - 1), its square fits.
    return changed and windows.sums[at, ONES] * width > ones * windows.sums[at, WIDTH]


def check(windows: Windows, used: list[int]) -> None:
    """Raise AssertionError unless the windows are right. O(windows)."""
    for at in used:
        width, ones, clock = windows.sums[at].tolist()
        buckets = windows.buckets[at].tolist()
        assert 0 <= clock < EVERY
        assert width == sum(count << level for level, count in enumerate(buckets)), "a bucket is lost"
        highest = max((level for level, count in enumerate(buckets) if count), default=-1)
        assert all(1 <= count <= M for count in buckets[: highest + 1]), "a size is left out"
        kept = [
            (int(inside), level)
            for level, count in enumerate(buckets)
            for inside in windows.ones[at, level * M : level * M + count]
        ]
        assert ones == sum(inside for inside, _ in kept)
        assert all(0 <= inside <= 1 << level for inside, level in kept)
