"""QO, the quantization observer of paper 004: labels in slots of width r, floor(x / r).

A slot's prototype is the mean of its values; thresholds lie midway between the prototypes of neighbours. What is
on either side of one is a sum of slots (algorithm 2). The paper finds slots by a hash and sorts them when a split
is sought; here they are kept in order, see elements.py.

The radius is given, or is a share of the standard deviation. Before there is a deviation the paper takes 0.01,
which says nothing to a feature that is measured in billionths. Here the first `EXACT` different values are kept
one by one, which is enough for all of many features; the next one settles the radius from their deviation, and it
stays until the leaf splits. Beyond `most` slots the radius doubles: neighbours become one, and floor(x / 2r) =
floor(floor(x / r) / 2), so nothing that was counted is in the wrong slot.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import int64
from algorithms.core.jit import inlined, jit
from algorithms.regression import elements as storage
from algorithms.regression.elements import FIRST, NEXT, NONE, SIZE, Elements, X, ordered
from algorithms.trees import quantised
from algorithms.trees.gaussians import LARGEST_VALUE

EXACT = 32  # different values that are kept one by one

LEAST_RADIUS = 1e-160  # floor(x / r) is a number for any value


class Qo(NamedTuple):
    """How values are put into slots."""

    radius: float  # 0: each feature of each leaf has its own, a share of its deviation
    fraction: float  # that share
    most: int  # slots, at least 2; beyond them the radius doubles


def make(*, radius: float | None = None, fraction: float = 0.5, most: int | None = None) -> Qo:
    """Return the observer.

    Parameters
    ----------
    radius : float, optional
        The width of a slot, `LEAST_RADIUS` to `LARGEST_VALUE`. Without it each observer has its own.
    fraction : float
        That as a share of the standard deviation of the first values, up to 100: 1/2 or 1/3 in the paper.
    most : int, optional
        Slots, at least 2: where they would be more their width doubles. Without it 65,536 of a given radius, and
        256 of an own one, which first values that happen to lie near each other may have made too narrow.

    Raises
    ------
    ValueError
        With what was expected.
    """
    if radius is not None and not LEAST_RADIUS <= radius <= LARGEST_VALUE:
        raise ValueError(f"expected a radius from {LEAST_RADIUS:g} to {LARGEST_VALUE:g}, or None, got {radius}")
    if not 0.0 < fraction <= 100.0:
        raise ValueError(f"expected a fraction above 0 and up to 100, got {fraction}")
    if most is None:
        most = 256 if radius is None else 1 << 16
    if most < 2:
        raise ValueError(f"expected most, the bound on slots, of at least 2, got {most}")
    return Qo(radius or 0.0, float(fraction), int(most))


@inlined
def begin(kind: Qo, elements: Elements, observer: int) -> None:
    """Start an observer without slots."""
    storage.begin(elements, observer, kind.radius)


@inlined
def _code(x: float, radius: float) -> float:
    """Return floor(x / r). A negative value has a negative code, also where the quotient underflows to 0."""
    code = np.floor(x / radius)
    return min(code, -1.0) if x < 0.0 else code


@inlined
def _key(x: float, radius: float) -> int:
    """Return the key of a value's slot, of the value itself where there is no radius yet."""
    return ordered(_code(x, radius) if radius > 0.0 else x)


@jit
def _regroup(elements: Elements, observer: int, radius: float) -> None:
    """Put the slots under their codes by another radius; those of the same code become one. O(slots)."""
    elements.radius[observer] = radius
    element = elements.heads[observer, FIRST]
    elements.heads[observer, FIRST] = NONE
    elements.heads[observer, SIZE] = 0
    kept = int64(NONE)
    while element != NONE:
        following = elements.links[element, NEXT]
        key = _key(elements.numbers[element, X], radius)
        if kept != NONE and elements.key[kept] == key:
            storage.take_in(elements, kept, element)
            storage.release(elements, element)
        else:
            elements.key[element] = key
            storage.insert(elements, observer, element)
            kept = element
        element = following


@jit
def _deviation(elements: Elements, observer: int) -> float:
    """Return the standard deviation of the prototypes in their weights, of which there are two at least. O(slots).

    It is divided by n, not n - 1, and found in parts of the largest: neither the scale of weights nor that of
    values changes anything.
    """
    numbers, weight, links = elements.numbers, elements.weight, elements.links
    first = elements.heads[observer, FIRST]
    total = 0.0
    middle = 0.0
    largest = 0.0
    element = first
    while element != NONE:
        total += weight[element]
        middle += (numbers[element, X] - middle) * (weight[element] / total)
        element = links[element, NEXT]
    element = first
    while element != NONE:
        largest = max(largest, abs(numbers[element, X] - middle))
        element = links[element, NEXT]
    squares = 0.0
    element = first
    while element != NONE:
        part = (numbers[element, X] - middle) / largest
        squares += weight[element] * (part * part)
        element = links[element, NEXT]
    return largest * math.sqrt(squares / total)


@jit
def _slot(kind: Qo, elements: Elements, observer: int, x: float) -> int:
    """Return a slot for a value that has none. Amortised at most 192 steps, O(slots) where the radius changes."""
    heads, radius = elements.heads, elements.radius
    if radius[observer] == 0.0:
        if heads[observer, SIZE] < min(EXACT, kind.most):
            return storage.create(elements, observer, _key(x, 0.0))
        _regroup(elements, observer, max(kind.fraction * _deviation(elements, observer), LEAST_RADIUS))
    while True:
        key = _key(x, radius[observer])
        slot = storage.find(elements, observer, key)
        if slot != NONE:
            return slot
        if heads[observer, SIZE] < kind.most:
            return storage.create(elements, observer, key)
        _regroup(elements, observer, 2.0 * radius[observer])


@inlined
def observe(kind: Qo, elements: Elements, observer: int, x: float, y: float, weight: int) -> None:
    """Count an example; there must be room for an element. Algorithm 1."""
    slot = storage.find(elements, observer, _key(x, elements.radius[observer]))
    if slot == NONE:
        slot = _slot(kind, elements, observer, x)
    storage.absorb(elements, slot, x, y, weight)


@inlined
def between(kind: Qo, low: float, high: float) -> float:  # noqa: ARG001  (observers are called alike)
    """Return the threshold between neighbouring prototypes: midway. Algorithm 2."""
    return quantised.between(low, high)


def check(kind: Qo, elements: Elements, observer: int, own: list[int]) -> None:
    """Raise AssertionError unless every slot lies under the code of its prototype."""
    assert len(own) <= kind.most
    radius = float(elements.radius[observer])
    assert radius > 0.0 or len(own) <= EXACT
    for slot in own:
        assert elements.key[slot] == _key(float(elements.numbers[slot, X]), radius), "a slot under another's code"
