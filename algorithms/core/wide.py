"""Sums that no stream can overflow: whole numbers of two words each, 62 bits in the low one.

An array of them has twice as many rows as numbers: first all low words, then all high ones. So it has the type and
the width of an array of plain sums, which checkpoints of earlier versions have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int64s
from algorithms.core.jit import inlined

_BITS = 62
_LOW = (1 << _BITS) - 1
BASE = 2.0**_BITS
_HALF = _BITS // 2
_LOW_HALF = (1 << _HALF) - 1

Numbers = npt.NDArray[Any]


def zeros(*shape: int) -> Int64s:
    """Return so many numbers, all 0."""
    return np.zeros((2 * shape[0], *shape[1:]), np.int64)


@inlined
def low_of(word: int) -> int:
    """Return what stays in a low word, to which less than 2^62 in size was added."""
    return word & _LOW


@inlined
def carry_of(word: int) -> int:
    """Return what goes to the high word."""
    return word >> _BITS


@inlined
def product(one: int, other: int) -> tuple[int, int]:
    """Return the high and the low word of a product of two numbers from 0, below 2^62 each."""
    a, b = one >> _HALF, one & _LOW_HALF
    c, d = other >> _HALF, other & _LOW_HALF
    middle = a * d + b * c
    low = b * d + ((middle & _LOW_HALF) << _HALF)
    return a * c + (middle >> _HALF) + (low >> _BITS), low & _LOW


@inlined
def difference(high: int, low: int, other_high: int, other_low: int) -> tuple[int, int]:
    """Return the high and the low word of one number less another: the high one has the sign."""
    left = low - other_low
    return high - other_high + (left >> _BITS), left & _LOW


def whole_numbers(high: Int64s, low: Int64s) -> list[int]:
    """Return numbers by their words, as Python's integers."""
    return [(upper << _BITS) + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)]


def words_of(number: int) -> tuple[int, int]:
    """Return the high and the low word of a number."""
    return number >> _BITS, number & _LOW


def restored(words: Int64s, rows: int) -> Int64s:
    """Return so many rows of numbers as they were saved; where that was as plain sums, the numbers below 2^64."""
    if len(words) != rows:
        return words
    return np.concatenate([words & _LOW, (words.view(np.uint64) >> np.uint64(_BITS)).view(np.int64)])


def plus(words: Int64s, others: Int64s) -> Int64s:
    """Return the sums of numbers."""
    both = words + others
    rows = len(both) // 2
    both[rows:] += both[:rows] >> _BITS
    both[:rows] &= _LOW
    return both


def numbers(words: Int64s) -> Numbers:
    """Return the numbers: int64 where all of them together fit, which is nearly always, else Python's integers."""
    rows = len(words) // 2
    low, high = words[:rows], words[rows:]
    if not high.any() and low.sum(dtype=np.float64) < BASE:
        return low
    return low.astype(object) + (high.astype(object) << _BITS)
