"""The policy BETA: a node keeps its split while no other is known that gains more, by more than beta.

A node's floor (slack.py) is that of all splits, its own among them. In a node of weight n a split that scores s
gains (whole - s) / n, so its split is feasible while its score is at most the floor and beta n. A leaf gains
nothing: it is feasible while its impurity, times n, is so. Which values are beside its threshold does not matter.
"""

from __future__ import annotations

from algorithms.core.jit import inlined


@inlined
def stands(floor: float, own: float, most: float, noise: float) -> bool:
    """Return whether no split gains more, by more than beta, than one that scores `own`; `most` is beta n."""
    return own + noise <= floor + most
