"""Whole numbers of up to 392 bits, for comparisons that must be exact: a row of digits to the base 2^28 each.

The lowest digit is the first, so that sums of 14 products of two fit a word. All numbers are at least 0.
"""

from __future__ import annotations

import numpy as np

from algorithms.core.arrays import Int64s
from algorithms.core.jit import apart, inlined, jit

_BITS = 28
_DIGIT = (1 << _BITS) - 1
_DIGITS = 14
_UP = 62 - _BITS  # of what comes down from a high word, see wide.py


def make(rows: int) -> Int64s:
    """Make room for so many numbers."""
    return np.zeros((rows, _DIGITS), np.int64)


@inlined
def put(digits: Int64s, row: int, high: int, low: int) -> None:
    """Write a number of two words, as those of wide.py, to a row."""
    for at in range(_DIGITS):
        digits[row, at] = low & _DIGIT
        low = (low >> _BITS) + ((high & _DIGIT) << _UP)
        high >>= _BITS


@jit
def set_to(digits: Int64s, row: int, value: int) -> None:
    """Write a number from 0 to 2^63 - 1 to a row."""
    for at in range(_DIGITS):
        digits[row, at] = value & _DIGIT
        value >>= _BITS


@jit
def set_to_power(digits: Int64s, row: int, exponent: int) -> None:
    """Write a power of 2 below 2^392 to a row."""
    for at in range(_DIGITS):
        digits[row, at] = 0
    digits[row, exponent // _BITS] = 1 << (exponent % _BITS)


@apart
def multiply(digits: Int64s, row: int, first: int, second: int) -> None:
    """Write the product of two rows to another."""
    carry = 0
    for at in range(_DIGITS):
        for each in range(at + 1):
            carry += digits[first, each] * digits[second, at - each]
        digits[row, at] = carry & _DIGIT
        carry >>= _BITS


@jit
def compare(digits: Int64s, first: int, second: int) -> int:
    """Return 1, 0 or -1: whether the first of two rows is the greater."""
    for at in range(_DIGITS - 1, -1, -1):
        if digits[first, at] != digits[second, at]:
            return 1 if digits[first, at] > digits[second, at] else -1
    return 0


@jit
def subtract(digits: Int64s, row: int, other: int) -> None:
    """Take the smaller of two rows from the greater, and write what is left to the first."""
    sign = compare(digits, row, other)
    borrow = 0
    for at in range(_DIGITS):
        left = sign * (digits[row, at] - digits[other, at]) - borrow
        digits[row, at] = left & _DIGIT
        borrow = 1 if left < 0 else 0
