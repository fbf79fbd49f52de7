"""The oracle of prequential evaluation: the examples themselves in a list, and measures by their definitions."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import NamedTuple


class Judged(NamedTuple):
    """An example, and what the model and the baselines said of it; None: nothing."""

    truth: int
    predicted: int | None
    majority: int | None
    last: int | None
    weight: int


class NaiveBaselines:
    """The labels of each key."""

    def __init__(self) -> None:
        self._labels: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def drop(self, key: int) -> None:
        """Forget a key."""
        self._labels.pop(key, None)

    def judge(self, key: int, truth: int, predicted: int | None, weight: int) -> Judged:
        """Ask the baselines, then let them learn."""
        labels = self._labels[key]
        weights: dict[int, int] = defaultdict(int)
        for label, each in labels:
            weights[label] += each
        majority = min(weights, key=lambda label: (-weights[label], label)) if weights else None
        last = labels[-1][0] if labels else None
        labels.append((truth, weight))
        return Judged(truth, predicted, majority, last, weight)


def share_right(judged: list[Judged], who: str) -> Fraction | None:
    """Return the share of weight that somebody (a field) was right about."""
    whole = sum(each.weight for each in judged)
    right = sum(each.weight for each in judged if getattr(each, who) == each.truth)
    return Fraction(right, whole) if whole else None


def kappa_against(judged: list[Judged], baseline: str) -> Fraction | None:
    """Return 1 - error / error of the baseline, None where that is none."""
    accuracy, other = share_right(judged, "predicted"), share_right(judged, baseline)
    if accuracy is None or other is None or other == 1:
        return None
    return 1 - (1 - accuracy) / (1 - other)
