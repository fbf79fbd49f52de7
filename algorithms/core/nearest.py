"""The double nearest to d^2 / m, of whole numbers d and m: a function of the fraction, however it is written.

Fractions are compared by these doubles, so equal ones tie, on every machine. A quotient of doubles would not do:
36 / 9 and 4 / 1 may come out different once their digits are too many.

The quotient is computed in pairs of doubles, whose sums have twice the digits (Dekker 1971, Knuth). Where that
does not tell to which side a number is rounded, since it is all but in the middle of two doubles, both are
compared in whole numbers.
"""

from __future__ import annotations

import math

from algorithms.core import digits
from algorithms.core.arrays import Int64s, int64
from algorithms.core.jit import apart, inlined, jit

ROWS = 4  # of digits that are needed
_ONE, _OTHER, _WORK, _MORE = range(ROWS)

_FACTOR = float((1 << 27) + 1)
_EXACT = 1 << 53  # whole numbers up to it are doubles
_ERROR = 2.0**-97  # of the quotient in pairs, and more
_HALF = 31  # bits of half a word, see wide.py
_LOW_HALF = (1 << _HALF) - 1


@inlined
def _sum(a: float, b: float) -> tuple[float, float]:
    """Return the nearest double of a sum, and what it lacks."""
    s = a + b
    other = s - a
    return s, (a - (s - other)) + (b - other)


@inlined
def _parts(a: float) -> tuple[float, float]:
    """Return a double as a sum of two with half its digits."""
    c = _FACTOR * a
    high = c - (c - a)
    return high, a - high


@inlined
def _product(a: float, b: float) -> tuple[float, float]:
    """Return the nearest double of a product, and what it lacks."""
    p = a * b
    a_high, a_low = _parts(a)
    b_high, b_low = _parts(b)
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@jit
def nearest_ratio(spare: Int64s, high: int, low: int, divisor: int) -> float:
    """Return the double nearest to d^2 / m, of two in the same distance the even one.

    Parameters
    ----------
    spare : int64[4, ..]
        Scratch, see digits.py.
    high, low : int
        The words of d, see wide.py: from 0, below 2^93.
    divisor : int
        m, from 1, below 2^60.
    """
    near = float(high) * 2.0**62 + float(low)
    if near * near <= float(_EXACT) and divisor <= _EXACT:
        return near * near / float(divisor)
    upper = (high << _HALF) + (low >> _HALF)
    first = float(upper)
    rest = float(upper - int64(first)) * 2.0**_HALF + float(low & _LOW_HALF)
    d, d_rest = _sum(first * 2.0**_HALF, rest)
    m = float(divisor)
    m_rest = float(divisor - int64(m))
    square, lacks = _product(d, d)
    square, lacks = _sum(square, lacks + (2.0 * d * d_rest + d_rest * d_rest))
    quotient = square / m
    again, lacks_again = _product(quotient, m)
    left = (((square - again) - lacks_again) + lacks) - quotient * m_rest
    quotient, rest = _sum(quotient, left / m)
    below = quotient + (rest - quotient * _ERROR)
    above = quotient + (rest + quotient * _ERROR)
    return below if below == above else _nearer(spare, high, low, divisor, below, above)


@apart
def _nearer(spare: Int64s, high: int, low: int, divisor: int, below: float, above: float) -> float:
    """Return to which of two neighbouring doubles d^2 / m is nearer, by comparing it with the middle."""
    part, exponent = math.frexp(below)
    mantissa = int64(part * float(_EXACT))
    exponent -= 54  # the middle is (2 mantissa + 1) 2^exponent
    digits.put(spare, _WORK, high, low)
    digits.multiply(spare, _ONE, _WORK, _WORK)
    digits.set_to(spare, _WORK, 2 * mantissa + 1)
    digits.set_to(spare, _MORE, divisor)
    digits.multiply(spare, _OTHER, _WORK, _MORE)
    digits.set_to_power(spare, _WORK, abs(exponent))
    scaled = _ONE if exponent < 0 else _OTHER
    for at in range(spare.shape[1]):
        spare[_MORE, at] = spare[scaled, at]
    digits.multiply(spare, scaled, _MORE, _WORK)
    order = digits.compare(spare, _ONE, _OTHER)
    if order == 0:
        return below if mantissa & 1 == 0 else above
    return above if order > 0 else below
