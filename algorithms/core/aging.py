"""What pools have in common whose windows may be spans of time: the ages of their examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from algorithms.core import ages
from algorithms.core.ages import Ages
from algorithms.core.arrays import Int32s, Int64s
from algorithms.core.events import Events
from algorithms.core.example_store import OWNER, ExampleStore
from algorithms.core.pool import Answered, Pool, State
from algorithms.core.stored import Arrays, flattened, rebuilt

_NAME = "ages"  # of the arrays, before their own


class Storing(State, Protocol):
    """The arrays of a pool with an example store."""

    @property
    def store(self) -> ExampleStore:
        """The live examples."""
        ...


class Upcoming(NamedTuple):
    """What is due, or will be at a limit, the oldest first."""

    stamps: Int64s  # of examples
    left: Int32s  # keys of examples that have not moved here yet, by their numbers in the pool that they are in


S = TypeVar("S", bound=Storing)
A = TypeVar("A", bound=Answered)
P = TypeVar("P")


class AgingPool(Pool[S, A, P], Generic[S, A, P]):
    """A pool whose window may be a span of time, see ages.py: events tell what the clock shows."""

    @property
    def _ages(self) -> Ages:
        return self._state.store.ages

    def _begin(self, events: Events, checked: bool) -> Events:
        if ages.are_kept(self._ages) and len(events.clock) != len(events.key):
            raise ValueError(
                "expected a clock for each event of a pool with a span, got none; give `apply` events with a clock"
            )
        return super()._begin(events, checked)

    def _set_ages(self, own: Ages) -> None:
        self._state = self._state._replace(store=self._state.store._replace(ages=own))

    @property
    def due(self) -> int:
        """How many live examples are due, as of the last time that was looked."""
        return int(self._ages.counts[ages.DUE])

    @property
    def gone(self) -> int:
        """How many examples have gone because it was time, so far."""
        return int(self._ages.counts[ages.GONE])

    def upcoming(self, limit: int, most: int, left: AgingPool[S, A, P] | None = None) -> Upcoming:
        """Return what is due at a limit: up to so many stamps, and so many of what is still in another pool."""
        stamps = np.empty(most, np.int64)
        rows = np.empty(most if left is not None else 0, np.int32)
        count, waiting = ages.upcoming(self._ages, limit, stamps, rows)
        keys = np.zeros(0, np.int32)
        if left is not None:
            keys = np.unique(left._state.store.rows[~rows[:waiting], OWNER] >> 1).astype(np.int32)
        return Upcoming(stamps[:count], keys)

    def settle_stamps(self, first: int, clock: Int64s) -> None:
        """Write stamps that were not known; `clock` is the time after each record, the first of that number."""
        ages.settle(self._ages, first, clock)

    def look_for_due(self, limit: int) -> None:
        """Count what is due at a limit."""
        ages.look(self._ages, limit)

    # --- state

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied)."""
        return super().arrays() | (flattened(self._ages, _NAME) if ages.are_kept(self._ages) else {})

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        if ages.are_kept(self._ages):
            self._set_ages(rebuilt(self._ages, arrays, _NAME))
        return super().restore(arrays)
