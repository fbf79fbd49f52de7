"""Weight, mean and squared deviations of a target, and what a split takes from its variance. Paper 004, section 3.

Nothing here sums squares of labels, or weights times labels: only deviations are multiplied, so labels of 1e-9
keep their digits. A mean of labels near 1e9 still has no more digits than they have, and what it loses adds up
over a million examples. So whoever counts (a leaf, an observer on its own) takes its first label from all of them:
a difference of neighbours is exact, variances do not change, and means get it back in the end.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from algorithms.core.arrays import int64
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import ahead, inlined
from algorithms.core.means import moved

_NOISE = 2.0**-40  # of M_2: what rounding may have taken from it
_SLACK = 1.0 + 2.0**-20  # a bound times this is one, whatever its rounding


class Moments(NamedTuple):
    """What is kept of the labels of some examples."""

    weight: int  # n, in units of 2^-20
    mean: float
    squares: float  # M_2, the sum of w (y - mean)^2, w in examples


@inlined
def nothing() -> Moments:
    """Return the moments of no example."""
    return Moments(int64(0), 0.0, 0.0)


@inlined
def learned(seen: Moments, y: float, weight: int) -> Moments:
    """Return the moments with one example more, of weight above 0. Equations 2 and 3, with weights.

    Weights of a tree are below 2^62 units in all, labels and steps between them at most 2e140 in size: so M_2 is
    finite, here and below.
    """
    total = seen.weight + weight
    mean = moved(seen.mean, y, weight / total)
    return Moments(total, mean, seen.squares + weight * PER_UNIT * ((y - seen.mean) * (y - mean)))


# Evaluations of several models are added outside kernels, their weights as floats.
@ahead(lambda: (Moments(1.0, 0.0, 0.0), Moments(1.0, 0.0, 0.0)))  # type: ignore[arg-type]
@inlined
def merged(a: Moments, b: Moments) -> Moments:
    """Return the moments of both. Equations 4 and 5; the mean of 4 as a step from the mean of A."""
    if a.weight == 0:
        return b
    if b.weight == 0:
        return a
    total = a.weight + b.weight
    step = b.mean - a.mean
    share = b.weight / total
    return Moments(
        total, a.mean + step * share, a.squares + b.squares + step * step * (a.weight * PER_UNIT * share)
    )


@inlined
def unmerged(whole: Moments, b: Moments) -> Moments:
    """Return the moments of what is in the whole and not in B. Equations 6 and 7.

    The mean of 6 as a step from that of the whole. Where a heavy B leaves a light rest, rounding of the whole's
    mean would be as much larger in the step; but weight times step^2 is no more than B leaves of M_2, which bounds
    it. M_2 is at least 0; its error is one of rounding in M_2 of the whole, so that a merit loses nothing that the
    whole's variance still has.
    """
    weight = whole.weight - b.weight
    if weight == 0:
        return nothing()
    if b.weight == 0:
        return whole
    left = max(whole.squares - b.squares, 0.0) + _NOISE * whole.squares
    farthest = math.sqrt(left / (weight * PER_UNIT)) * _SLACK
    mean = whole.mean + min(max((whole.mean - b.mean) * (b.weight / weight), -farthest), farthest)
    step = b.mean - mean
    between = step * step * (weight * PER_UNIT * (b.weight / whole.weight))
    return Moments(weight, mean, max(whole.squares - b.squares - between, 0.0))


@inlined
def variance(seen: Moments, one: float) -> float:
    """Return s^2 = M_2 / (n - 1), where n - 1 is the weight less that of `one` mean example.

    The mean example is that of the node that is split, also for what goes to either side: so the scale of weights
    changes nothing. What weighs no more than one, where the paper has no variance, gets M_2 / n: 0 for one
    example.
    """
    n = seen.weight * PER_UNIT
    if n > one:
        return seen.squares / (n - one)
    return seen.squares / n if n > 0.0 else 0.0


@inlined
def reduction(whole: Moments, low: Moments, high: Moments, one: float) -> float:
    """Return VR, the merit of a split: by how much it reduces the variance. Equation 1, both signs being minus."""
    below = low.weight / whole.weight * variance(low, one)
    above = high.weight / whole.weight * variance(high, one)
    return variance(whole, one) - below - above
