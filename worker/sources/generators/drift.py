"""Concept drift: one stream gives way to another."""

from __future__ import annotations

import numpy as np

from algorithms.core.arrays import Float64s, Int64s
from worker.sources.generators.draws import CHOICE, Draws, ln
from worker.sources.generators.port import NUMBERS, Examples, Generator, Schema, at_least

_LEAST = 2.0**-54  # in the place of 0, whose logarithm is none


def drift(one: Generator, other: Generator, at: int, width: float = 0, *, seed: int = 1) -> Generator:
    """Return a stream of examples of `one` first, of `other` later.

    The t-th example, from 1, is the next of `other` with probability 1 / (1 + exp(-4 (t - at) / width)), else the
    next of `one`: Bifet, Holmes, Pfahringer, Kirkby and Gavalda: New ensemble methods for evolving data streams.
    KDD 2009; MOA's `ConceptDriftStream`. Drifts compose: `drift(drift(a, b, 1000), c, 2000)`.

    Parameters
    ----------
    one, other : Generator
        Streams of the same attributes and classes. They are taken from, so give each to one drift only.
    at : int
        Examples before the middle of the change; 0 or more.
    width : float
        Examples over which the probability goes from 0.12 to 0.88. With 0 the change is abrupt: the first `at`
        examples are of `one`, all others of `other`.
    seed : int
        Of the choice between the two; 0 or more.

    Raises
    ------
    ValueError
        Where the streams differ in attributes or classes, or a number is negative.
    """
    return _Drift(one, other, at, width, seed)


class _Drift:
    """See `drift`."""

    def __init__(self, one: Generator, other: Generator, at: int, width: float, seed: int) -> None:
        if one.schema != other.schema:
            raise ValueError(
                f"expected streams of the same attributes and classes, got {_brief(one.schema)} and "
                f"{_brief(other.schema)}; drift between parameters that leave these alone"
            )
        at_least("the place of a drift", at, 0)
        at_least("the width of a drift", width, 0)
        at_least("seed", seed, 0)
        self.schema = one.schema
        self._one, self._other = one, other
        self._at, self._width = at, width
        self._taken = 0
        self._draws = Draws(seed, CHOICE)

    def take(self, n: int) -> Examples:
        """Return the next n examples."""
        late = self._taken + np.arange(1.0, n + 1) - self._at
        self._taken += n
        drawn = self._draws.uniform(n)
        if self._width > 0:
            # Whether the number is below the sigmoid of 4 late / width, whose inverse is ln(p / (1 - p)).
            changed = ln(np.maximum(drawn, _LEAST)) - ln(1.0 - drawn) < 4.0 * late / self._width
        else:
            changed = late > 0
        value = np.empty((n, len(self.schema.attributes)))
        is_number = self.schema.classes == NUMBERS
        label: Int64s | Float64s = np.empty(n, np.float64) if is_number else np.empty(n, np.int64)
        for stream, where in ((self._one, ~changed), (self._other, changed)):
            value[where], label[where] = stream.take(int(where.sum()))
        return Examples(value, label)


def _brief(schema: Schema) -> str:
    names = [attribute.name for attribute in schema.attributes]
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    labels = "numbers" if schema.classes == NUMBERS else f"{schema.classes} classes"
    return f"{len(names)} ({shown}; {labels})"
