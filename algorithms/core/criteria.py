"""The impurity of a node, un-normalised, from the weights of its two labels: one definition for everyone.

A criterion is a concave function h(u, v), homogeneous of degree 1 and symmetric to the bit. A split's
score is h of the side where the feature is present plus h of the other side: lower is better. Scans,
the exact index and the naive twin in the tests all call these functions, because ties are decided on
floats. Weights are int64 in units of 2^-20 (`UNIT`).

A new criterion is one file like kearns_mansour.py, which is the shortest, and one entry in `CRITERIA`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, extended
from algorithms.core.fixed_point import LN2, PER_UNIT, UNIT_BITS
from algorithms.core.fixed_point import UNIT as UNIT  # for all who import it from here
from algorithms.core.jit import inlined, jit, select
from algorithms.core.kearns_mansour import kearns_mansour

_TABLE_LIMIT = 1 << 20  # 8 MB; a longer table would miss the cache more often than log2 costs

_SQRT_HALF = math.sqrt(0.5)
# 2 / ln 2 / (2 k + 1): log2(x) = 2 / ln 2 * atanh((x - 1) / (x + 1))
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10 = (2.0 / LN2 / (2 * k + 1) for k in range(11))


@jit
def log2(x: float) -> float:
    """Return log2 of a finite x > 0 from additions, multiplications and one division.

    Library versions differ in the last bit from one platform to the next; this one does not, and it
    is exact at powers of two. The error stays below one unit in the last place.
    """
    mantissa, exponent = math.frexp(x)
    if mantissa < _SQRT_HALF:
        mantissa *= 2.0
        exponent -= 1
    f = (mantissa - 1.0) / (mantissa + 1.0)
    s = f * f
    tail = _C5 + s * (_C6 + s * (_C7 + s * (_C8 + s * (_C9 + s * _C10))))
    return exponent + f * (_C0 + s * (_C1 + s * (_C2 + s * (_C3 + s * (_C4 + s * tail)))))


class Criterion(NamedTuple):
    """Which criterion it is. One kernel serves all of them: compiling takes far longer than a comparison."""

    table: Float64s  # n log2(n) of whole numbers n, a memo of `_xlogx`; 0 alone where none is needed
    number: int  # in `CRITERIA`


@jit
def _xlogx(x: float) -> float:
    return x * log2(x) if x > 0.0 else 0.0


@inlined
def xlogx_fixed(table: Float64s, units: int) -> float:
    """Return X(n) = n log2(n) of a weight in units of 2^-20, from the memo where it is a whole number."""
    whole = units >> UNIT_BITS
    if whole < table.size and whole << UNIT_BITS == units:
        return float(table[whole])
    return _xlogx(units * PER_UNIT)


@inlined
def entropy(criterion: Criterion, u: int, v: int) -> float:
    """Return (u + v) H(u / (u + v)) in bits; `u` and `v` are in units of 2^-20. Paper 000, section 3."""
    table = criterion.table
    return xlogx_fixed(table, u + v) - (xlogx_fixed(table, u) + xlogx_fixed(table, v))


@inlined
def gini(criterion: Criterion, u: int, v: int) -> float:  # noqa: ARG001  (all criteria are called alike)
    """Return 2 u v / (u + v), weight times Gini index; `u` and `v` are in units of 2^-20. Paper 000, section 3."""
    total = u + v
    if total == 0:
        return 0.0
    x = u * PER_UNIT
    y = v * PER_UNIT
    return 2.0 * (x * y) / (total * PER_UNIT)


@jit
def _fill(table: Float64s, start: int) -> None:
    for n in range(start, table.size):
        table[n] = _xlogx(float(n))


def _table(examples: int) -> Float64s:
    table = np.zeros(min(_TABLE_LIMIT, max(1024, 1 << examples.bit_length())), np.float64)
    _fill(table, 1)
    return table


# name -> its equation for two labels; a criterion's number is its place here
CRITERIA: dict[str, Callable[..., float]] = {"entropy": entropy, "gini": gini, "sqrt": kearns_mansour}
_WITH_LOGARITHMS = ("entropy",)


def make_criterion(name: str, examples: int) -> Criterion:
    """Make a criterion for nodes of up to about `examples` examples (it is correct beyond them too)."""
    table = _table(examples) if name in _WITH_LOGARITHMS else np.zeros(1, np.float64)
    return Criterion(table, list(CRITERIA).index(name))


def covering(criterion: Criterion, examples: int) -> Criterion:
    """Return a criterion with a longer memo, for nodes of so many examples; the one given is used no more.

    Nothing is made again: an event that waits for this waits for what is added.
    """
    table, size = criterion.table, min(_TABLE_LIMIT, examples + 1)
    if len(table) == 1 or size <= len(table):
        return criterion
    longer = extended(table, size)
    _fill(longer, len(table))
    return criterion._replace(table=longer)


def by_criterion(doc: str, **equations: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that calls the equation of the criterion that is its first argument.

    What the last of `CRITERIA` cannot do may be left out.
    """
    return select(doc, [equations[name] for name in list(CRITERIA)[: len(equations)]])


impurity = by_criterion("Return h(u, v) of the criterion given first.", **CRITERIA)


@inlined
def score(criterion: Any, a: int, b: int, c0: int, c1: int) -> float:
    """Return F(a, b) = h(a, b) + h(c0 - a, c1 - b): lower is better.

    `a` and `b` are the weights of the two labels among the examples with the feature, c0 and c1 among
    all examples of the node.
    """
    return impurity(criterion, a, b) + impurity(criterion, c0 - a, c1 - b)


@jit
def rounding(c0: int, c1: int) -> float:
    """Return a bound on the rounding error of any score in a node with these totals.

    A score adds six terms x log2(x) with |x log2 x| <= n |log2 n| + 1, each good to one unit in the last
    place; 2^-46 leaves a factor of ten. Bounds prune only beyond it, so that ties survive to the tie rule.
    """
    n = (c0 + c1) * PER_UNIT
    return 2.0**-46 * (abs(n * log2(n)) + n + 1.0) if n > 0.0 else 0.0


@inlined
def coarse_rounding(c0: int, c1: int) -> float:
    """Return a looser bound than `rounding` without a logarithm: totals are below 2^62 units."""
    return 2.0**-40 * ((c0 + c1) * PER_UNIT + 1.0)
