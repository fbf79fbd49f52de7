"""Which policy the settings of a tree choose, and what its promise needs."""

from __future__ import annotations

import math

from algorithms.dynamic.terms import BETA, EPSILON, EXACT

DEFAULT = 0.1  # epsilon, where nothing else says when a tree is rebuilt

VARIANCE = "variance"  # the criterion of labels that are numbers

LEAST_WORK = 64  # below which a rebuild might never be done
UNBOUNDED_WITH = "with a guarantee, or a beta without an epsilon: there rebuilds are not bounded"


def policy_of(
    guarantee: str | None, epsilon: float | None, alpha: float, beta: float, min_examples: int, criterion: str
) -> tuple[int, float]:
    """Return the policy and its epsilon; raise ValueError where settings contradict each other."""
    if guarantee not in (None, "exact"):
        raise ValueError(f"expected the guarantee 'exact', or none, got {guarantee!r}")
    if epsilon is not None:
        check_epsilon(epsilon)
    if not 0.0 <= beta <= 1.0:
        raise ValueError(f"expected a beta from 0 to 1, got {beta}")
    if guarantee is not None:
        if needed := beside_exact(epsilon, beta):
            raise ValueError(
                f"expected {needed} with the guarantee 'exact', got epsilon {epsilon} and beta {beta}"
            )
        return EXACT, 0.0
    if epsilon is None and beta > 0.0:
        return BETA, 0.0
    chosen = DEFAULT if epsilon is None else float(epsilon)
    if needed := missing(chosen, alpha, beta, min_examples, criterion):
        raise ValueError(
            f"expected a beta of 0, which promises nothing, no epsilon, or {needed}; "
            f"got {beta} with epsilon {chosen}"
        )
    return EPSILON, chosen


def check_epsilon(epsilon: float) -> None:
    """Raise ValueError where an epsilon is none."""
    if not 0.0 <= epsilon < math.inf:
        raise ValueError(f"expected a finite epsilon of at least 0, got {epsilon}")


def beside_exact(epsilon: float | None, beta: float) -> str | None:
    """Return what the guarantee `exact` expects beside it, None where it is so."""
    return "no epsilon and no beta" if epsilon is not None or beta > 0.0 else None


def missing(epsilon: float, alpha: float, beta: float, min_examples: int, criterion: str) -> str | None:
    """Return what a `beta` above 0 would need beside an epsilon, None where its promise is kept.

    Paper 002, theorem 3.2: when a tree that is rebuilt now and then is feasible after every event.
    """
    if beta == 0.0:
        return None
    if criterion == VARIANCE:
        return "no epsilon, as the proof is of classes"
    if criterion != "gini":
        return "the criterion gini, whose gains are the ones that the proof bounds"
    if alpha == 0.0:
        return "an alpha above 0"
    most = min(1.0 / (min_examples + 1), alpha / 5.0, beta / 12.5)
    if epsilon >= most:
        return f"an epsilon below {most:g}, the least of 1 / (min_examples + 1), alpha / 5 and beta / 12.5"
    return None


def work_of(max_work: int | None, policy: int) -> int:
    """Return how many entries an event may touch of what is built aside, 0 where nothing bounds it."""
    if max_work is not None and max_work < 1:
        raise ValueError(f"expected a max_work of at least 1, or None, got {max_work}")
    if policy == EPSILON:
        return max_work or 0
    if max_work is not None:
        raise ValueError(f"expected a max_work of None {UNBOUNDED_WITH}, got {max_work}")
    return 0
