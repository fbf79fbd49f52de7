"""How far a delete lowers what a split leaves, where no split gains more than is known: of classes, by Gini.

Let an example go that weighs w. Its side of a split weighs k, of which the share r is of other classes. In the
node their share is p. Of K classes, with q_j their shares in the side, and p_j in the node:

* The fall is h(s) - h(s - e) = w k / (k - w) (r^2 + sum over others q_j^2) <= 2 w r^2 k / (k - w).
* A split gains the sum over both sides of k times sum (q_j - p_j)^2. So it gains c k (r - p)^2 at least, c being
  K / (K - 1), as the shares of the others differ by r - p in all.
* The side has the example, so k >= w / (1 - r). If nothing else is in it, nothing falls. Else k >= u / r, where no
  example weighs less than u.

With a gain of at most G, c k (r - p)^2 <= G. Each bound of k rises in r where r > p, times (r - p)^2, so r is at
most the lesser of the two where it meets G::

    u / r (r - p)^2       = G / c    r = p + t / 2 + sqrt(t p + t^2 / 4),         t = G / (c u)
    w / (1 - r) (r - p)^2 = G / c    r = p - g / 2 + sqrt(g (1 - p) + g^2 / 4),   g = G / (c w)

The fall rises in r, too, with k as small as may be: it is at most 2 w r, and at most 2 w r^2 u / (u - w r) where u
is above w r. In a node that is nearly pure, whose splits gain little, this is far less than 2 w.
"""

from __future__ import annotations

import math

from algorithms.core.criteria import Criterion, by_criterion
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import inlined, jit

_MORE = 1.0 + 2.0**-40


@inlined
def _by_entropy(
    criterion: Criterion, weight: int, others: int, total: int, gain: float, lightest: int, classes: int
) -> float:
    return math.inf


@jit
def _by_gini(
    criterion: Criterion, weight: int, others: int, total: int, gain: float, lightest: int, classes: int
) -> float:
    if not gain < math.inf:
        return math.inf
    w, u, p = weight * PER_UNIT, lightest * PER_UNIT, others / float(total)
    most = max(gain, 0.0) * (classes - 1) / classes
    g = most / w
    share = p - 0.5 * g + math.sqrt(g * (1.0 - p) + 0.25 * g * g)
    if u > 0.0:
        t = most / u
        share = min(share, p + 0.5 * t + math.sqrt(t * p + 0.25 * t * t))
    share = (max(share, p) + 2.0**-50 * (1.0 + g)) * _MORE  # the difference above may have cancelled out
    fall = 2.0 * w * share
    if u > w * share:
        fall = min(fall, fall * share * u / (u - w * share))
    return fall * _MORE


fall = by_criterion(
    "Return how much less a split may leave, which gains `gain` at most, once an example of this weight goes from "
    "a node of weight `total`, where other classes weigh `others`; no example weighs less than `lightest`, 0 "
    "where that is not known. inf: nothing is known.",
    entropy=_by_entropy,
    gini=_by_gini,
)
