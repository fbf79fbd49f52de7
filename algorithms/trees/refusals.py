"""What of an example that is to be learned no tree or split of classes takes, whatever it has learned before."""

from __future__ import annotations

from algorithms.core.events import APPLIED, IGNORED, WRONG_LABEL, WRONG_WEIGHT
from algorithms.core.jit import inlined


@inlined
def refusal(weight: int, label: int, classes: int) -> int:
    """Return the status of an insert by its weight and label alone, APPLIED where nothing is wrong with them."""
    if weight < 0:
        return WRONG_WEIGHT
    if label < 0 or label >= classes:
        return WRONG_LABEL
    return APPLIED if weight > 0 else IGNORED
