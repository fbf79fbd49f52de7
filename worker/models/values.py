"""Which values the declared kinds of features take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int8s
from algorithms.core.kinds import Kind, is_category
from algorithms.trees.gaussians import LARGEST_VALUE
from worker.codec import Events, Reason
from worker.models.intake import Bools


class Values(NamedTuple):
    """What a model says of the values of some events, by the kinds of features that it declares."""

    kinds: Int8s
    wrong: Bools  # those that their features do not take

    def detail(self, events: Events, event: int) -> tuple[Reason, str]:
        """Say why an event with such a value is refused."""
        start = int(events.pointer[event])
        at = start + int(np.argmax(self.wrong[start : events.pointer[event + 1]]))
        value = float(events.value[at])
        if self.kinds[at] == Kind.BINARY:
            return Reason.NOT_BINARY, f"expected 0 or 1 as the value of a binary feature, got {value!r}"
        if self.kinds[at] == Kind.NOMINAL:
            return (
                Reason.NOT_A_CATEGORY,
                f"expected a whole number from 0 to 4294967295 as the value of a nominal feature, got {value!r}",
            )
        return Reason.BAD_VALUE, f"expected at most {LARGEST_VALUE:g} as the size of a value, got {value!r}"


def any_values(value: Float64s) -> Values:
    """Return that a model takes all values."""
    return Values(np.broadcast_to(np.int8(Kind.NUMERIC), value.shape), np.zeros(value.shape, np.bool_))


def binary_values(value: Float64s) -> Values:
    """Return which values features do not take that are all binary."""
    return Values(np.broadcast_to(np.int8(Kind.BINARY), value.shape), value != 1.0)


def checked_values(kinds: Int8s, value: Float64s) -> Values:
    """Return which values features of these kinds do not take."""
    wrong: Bools = np.where(kinds == Kind.BINARY, value != 1.0, ~(np.abs(value) <= LARGEST_VALUE))
    return Values(kinds, wrong | ((kinds == Kind.NOMINAL) & ~is_category(value)))
