"""When something is due that a model writes unasked: at a change, every n events, every period of event time."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from algorithms.core.jit import inlined


class When(IntEnum):
    """When it is due."""

    NEVER = 0
    CHANGE = 1  # what is written is another than after the event before
    EVERY = 2  # the key has applied a multiple of n events
    EVERY_MS = 3  # event time enters another period of so many ms


class Emit(NamedTuple):
    """When something is due; the argument of `EVERY` and `EVERY_MS` is at least 1."""

    when: When = When.NEVER
    argument: int = 1


CHANGE = int(When.CHANGE)
_EVERY, _EVERY_MS = int(When.EVERY), int(When.EVERY_MS)
_LAST_PERIOD = (1 << 63) - 2


@inlined
def is_due(when: int, argument: int, events: int, time: int, period: int) -> bool:
    """Return whether it is due after an event, changes apart; `period` is what event time was in, -1 before it."""
    if when == _EVERY:
        return events % argument == 0
    if when == _EVERY_MS:
        return period >= 0 and time // argument > period
    return False


@inlined
def next_period(when: int, argument: int, time: int, period: int) -> int:
    """Return the period that event time is in after an event; time that runs backwards changes nothing.

    It is below 2^63 - 1, so that one more is a number, too.
    """
    return max(period, min(time // argument, _LAST_PERIOD)) if when == _EVERY_MS else period
