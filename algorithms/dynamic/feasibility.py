"""When a tree that is rebuilt now and then is feasible after every event: paper 002, theorem 3.2."""

from __future__ import annotations


def missing(epsilon: float, alpha: float, beta: float, min_examples: int, criterion: str) -> str | None:
    """Return what a `beta` above 0 would need beside it, None where its promise is kept."""
    if beta == 0.0:
        return None
    if criterion != "gini":
        return "the criterion gini, whose gains are the ones that the proof bounds"
    if alpha == 0.0:
        return "an alpha above 0"
    most = min(1.0 / (min_examples + 1), alpha / 5.0, beta / 12.5)
    if epsilon >= most:
        return f"an epsilon below {most:g}, the least of 1 / (min_examples + 1), alpha / 5 and beta / 12.5"
    return None
