"""What a leaf saw of a nominal feature: an element for each category, whose key is the category.

A split has a branch for each category that was seen, and one for the examples without the feature.
"""

from __future__ import annotations

import numpy as np

from algorithms.core.jit import inlined, jit
from algorithms.regression import elements as storage
from algorithms.regression.elements import FIRST, NEXT, NONE, SIZE, Elements, chain, moments_of
from algorithms.regression.moments import Moments, variance


@inlined
def count(elements: Elements, observer: int, category: int, y: float, weight: int) -> None:
    """Count an example of a category; there must be room for an element."""
    element = storage.find(elements, observer, category)
    if element == NONE:
        element = storage.create(elements, observer, category)
    storage.absorb(elements, element, float(category), y, weight)


@jit
def merit(elements: Elements, observer: int, whole: Moments, absent: Moments, one: float) -> float:
    """Return by how much a branch for each category reduces the variance; -inf where there is one branch alone."""
    if elements.heads[observer, SIZE] + (absent.weight > 0) < 2:
        return -np.inf
    found = variance(whole, one) - absent.weight / whole.weight * variance(absent, one)
    element = elements.heads[observer, FIRST]
    while element != NONE:
        seen = moments_of(elements, element)
        found -= seen.weight / whole.weight * variance(seen, one)
        element = elements.links[element, NEXT]
    return found


def check(elements: Elements, observer: int) -> list[int]:
    """Raise AssertionError unless every element lies under its category; return the elements."""
    own = storage.check_tree(elements, observer)
    assert chain(elements, observer) == own
    assert (elements.numbers[own, storage.X] == elements.key[own]).all()
    return own
