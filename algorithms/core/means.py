"""The one step of all running means."""

from __future__ import annotations

from algorithms.core.jit import inlined


@inlined
def moved(mean: float, x: float, share: float) -> float:
    """Return a mean moved towards a number by its share of the weight.

    It stays between the two whatever is rounded: so squared deviations never fall, and prototypes stay in order.
    """
    return min(max(mean + (x - mean) * share, min(mean, x)), max(mean, x))
