"""E-BST and TE-BST, the baselines of paper 004: an element for each different value, every value a threshold.

E-BST keeps the values as they are, TE-BST truncated to so many decimals. The original keeps, in a binary search
tree, the sums of all values below a node, and degrades to a list where values come in order; here elements.py
keeps the elements, which come out the same, and so do thresholds and merits. What x <= c sends low are the
elements up to c, the value of one of them.

A leaf that never splits would keep values for ever. Where a bound is set, a value that comes when there are so
many is counted as the next lower one, or else as the lowest: thresholds stay values that were seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.jit import inlined
from algorithms.regression import elements as storage
from algorithms.regression.elements import NONE, SIZE, Elements, X, ordered

_WHOLE = 2.0**53  # from here on no double has a fraction


class Ebst(NamedTuple):
    """Which values are kept apart."""

    scale: float  # 10^decimals; 0: all
    most: int  # different values; beyond them new ones are counted as the next lower


_ALL = 1 << 62


def make(*, most: int | None = None) -> Ebst:
    """Return E-BST, which keeps all values, or so many, 2 or more.

    Raises
    ------
    ValueError
        With what was expected.
    """
    return Ebst(0.0, _bounded(most))


def make_truncated(*, decimals: int = 3, most: int | None = None) -> Ebst:
    """Return TE-BST, which keeps values to so many decimals, 0 to 15, all of them or so many, 2 or more.

    Raises
    ------
    ValueError
        With what was expected.
    """
    if not 0 <= decimals <= 15:
        raise ValueError(f"expected 0 to 15 decimals, got {decimals}")
    return Ebst(float(10**decimals), _bounded(most))


def _bounded(most: int | None) -> int:
    if most is not None and most < 2:
        raise ValueError(f"expected most, the bound on values, of at least 2, got {most}")
    return _ALL if most is None else int(most)


@inlined
def begin(kind: Ebst, elements: Elements, observer: int) -> None:  # noqa: ARG001  (observers are called alike)
    """Start an observer without values."""
    storage.begin(elements, observer, 0.0)


@inlined
def truncated(x: float, scale: float) -> float:
    """Return a value without its further decimals; 0.29 at two of them is 0.29, though 0.29 * 100 is below 29."""
    size = abs(x)
    if size * scale >= _WHOLE:
        return x
    whole = np.floor(size * scale)
    if (whole + 1.0) / scale <= size:
        whole += 1.0
    elif whole / scale > size:
        whole -= 1.0
    return whole / scale if x >= 0.0 else 0.0 - whole / scale


@inlined
def observe(kind: Ebst, elements: Elements, observer: int, x: float, y: float, weight: int) -> None:
    """Count an example; there must be room for an element."""
    value = truncated(x, kind.scale) if kind.scale > 0.0 else x
    key = ordered(value)
    element = storage.find(elements, observer, key)
    if element == NONE:
        if elements.heads[observer, SIZE] < kind.most:
            element = storage.create(elements, observer, key)
        else:
            element = storage.floor(elements, observer, key)
            value = elements.numbers[element, X]
    storage.absorb(elements, element, value, y, weight)


@inlined
def between(kind: Ebst, low: float, high: float) -> float:  # noqa: ARG001  (observers are called alike)
    """Return the threshold between neighbouring values: the lower."""
    return low


def check(kind: Ebst, elements: Elements, observer: int, own: list[int]) -> None:
    """Raise AssertionError unless every element lies under its value, and they are not too many."""
    assert elements.heads[observer, SIZE] <= kind.most
    for element in own:
        value = float(elements.numbers[element, X])
        assert elements.key[element] == ordered(value)
        assert kind.scale == 0.0 or truncated(value, kind.scale) == value
