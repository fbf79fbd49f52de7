"""The differential harness: a pool of trees and its oracle, given the same, compared after each batch."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from algorithms.core.arrays import Float64s, Int64s, UInt32s
from algorithms.core.events import Events
from algorithms.core.names import Interner


def entries_of(
    events: Sequence[Any], names: Interner | None, rng: random.Random | None
) -> tuple[Int64s, UInt32s, Float64s]:
    """Return pointer, features and values of events, the features of each in the order given, or shuffled."""
    items = [list(event.x.items()) for event in events]
    if rng is not None:
        for each in items:
            rng.shuffle(each)
    flat = [item for each in items for item in each]
    numbers = [names.intern(f) if names is not None and isinstance(f, bytes) else f for f, _ in flat]
    return (
        np.cumsum([0, *map(len, items)], dtype=np.int64),
        np.array(numbers, np.uint32),
        np.array([value for _, value in flat], np.float64),
    )


def columns_of(
    events: Sequence[Any], pool: Any, rng: random.Random | None = None, label: type = np.int32, **others: Any
) -> Events:
    """Return the oracle's events in columns, the features of each in the order given, or shuffled."""
    pointer, feature, value = entries_of(events, pool.names, rng)
    return Events.of(
        np.array([event.op for event in events], np.int8),
        np.array([event.label for event in events], label),
        pointer,
        feature,
        value,
        key=np.array([event.key for event in events], np.int32),
        weight=np.array([event.weight for event in events], np.int64),
        **others,
    )


def times_of(events: Sequence[Any]) -> Int64s:
    """Return the times of the oracle's events."""
    return np.array([event.time for event in events], np.int64)


class Differential:
    """A pool and its oracle, compared after every batch; a suite says how."""

    def __init__(self, settings: Any, twin: Any, outcomes: Callable[..., list[Any]]) -> None:
        self.settings = settings
        self.pool: Any = settings.pool()
        self.twin = twin
        self._outcomes = outcomes
        self._rng = random.Random(7)

    def feed(self, events: Sequence[Any]) -> list[Any]:
        """Apply events as one batch; raise AssertionError where pool and oracle differ."""
        expected = [self.twin.apply(event) for event in events]
        got = self._outcomes(self.pool, events, None if self.settings.names else self._rng)
        for at, event in enumerate(events):
            assert got[at] == expected[at], f"event {at}: {event}"
        for key in sorted({event.key for event in events}):
            self.compare(key)
        return got

    def compare(self, key: int) -> None:
        """Compare a tree with the oracle's."""
        raise NotImplementedError

    def restored(self) -> None:
        """Go on with a copy of the pool's state in a new pool."""
        arrays = {name: array.copy() for name, array in self.pool.arrays().items()}
        self.pool = self.settings.pool().restore(arrays)
