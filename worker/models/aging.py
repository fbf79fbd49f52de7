"""Windows by time: what the clock shows at each event, and at which events examples may go because it is time.

The clock is the partition's of expiry.py. The stamp of an example is what the clock shows two records after that
of its insert, when the median can have come to the insert's own timestamp: after a long silence the clock jumps,
and an example that came just before is new. An example is due once the clock has gone on by the span since then.
Before each event up to `AT_ONCE` of those that are due go, the oldest of all keys first. An event adds one example
at most, so what is due gets less while events come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from algorithms.core.ages import LATER
from algorithms.core.aging import Upcoming
from algorithms.core.arrays import Int8s, Int32s, Int64s
from algorithms.core.events import INSERT, WHEN
from worker.codec.events import Events
from worker.models.expiry import NO_TIMES, Clock, Part

AT_ONCE = 2
TOLD_EVERY = 100  # of what goes: a result each time would be one for each example
_NAME = "window"  # of the arrays in checkpoints, before their own


class Pool(Protocol):
    """What a window by time needs of a pool, see `AgingPool`."""

    def upcoming(self, limit: int, most: int, left: Any = None) -> Upcoming:
        """Return the stamps of what is due at a limit, and the keys of what is in another pool."""
        ...

    def settle_stamps(self, first: int, clock: Int64s) -> None:
        """Write stamps that were not known."""
        ...

    def look_for_due(self, limit: int) -> None:
        """Count what is due at a limit."""
        ...


class Aging:
    """The clock of a model whose window is a span of time.

    Parameters
    ----------
    span : int
        In ms, above 0.
    """

    def __init__(self, span: int) -> None:
        self._span = span
        self._clock = Clock()
        self._records: Int64s = np.zeros(1, np.int64)  # how many had events so far
        self._now: Int64s = NO_TIMES  # of a batch, after each record with events
        self._stamp: Int64s = NO_TIMES  # of what is inserted by each of these
        self._record: Int64s = NO_TIMES  # int64[records], which of these a record is

    def see(self, events: Events, timestamps: Int64s, pool: Pool) -> None:
        """Take the records of a batch with events, and write the stamps that are known now."""
        records = np.unique(events.record)
        first, m = int(self._records[0]), len(records)
        was_set = self._clock.now[0] > 0
        now = self._clock.see(timestamps[records])
        if not was_set and self._clock.now[0] > 0:  # once it goes, it is taken to have gone from the beginning
            now[now == 0] = now[np.argmax(now > 0)]
        if now[-1] > 0:
            pool.settle_stamps(first, now)
        self._now, self._stamp = now, LATER + first + np.arange(m)
        known = now[2:] > 0
        self._stamp[: m - 2][known] = now[2:][known]
        self._record = np.zeros(len(timestamps), np.int64)
        self._record[records] = np.arange(m)
        self._records[0] += m

    def clock(self, events: Events, op: Int8s) -> Int64s:
        """Return the clock at each event, as pools take it."""
        record = self._record[events.record]
        clock = np.zeros((len(op), 3), np.int64)
        clock[:, WHEN] = np.where(op == INSERT, self._stamp[record], self._now[record])
        return clock

    def turns(self, part: Part, pool: Pool, left: Any) -> tuple[Int64s, Int32s]:
        """Return before which events of a part examples may go, and which keys must have moved here for that.

        An event comes as often as examples may go there. Where an example goes before its turn, by a delete, the
        pool finds nothing at the last of them.
        """
        n = len(part.instance)
        record = self._record[part.events.record]
        limits = self._now[record] - self._span
        if not self._now[-1]:
            return NO_TIMES, np.zeros(0, np.int32)
        stamps, keys = pool.upcoming(int(limits[-1]), AT_ONCE * n, left)
        new = self._stamp[record][part.events.op == INSERT]
        stamps = np.concatenate([stamps, new[new <= limits[-1]]])[: AT_ONCE * n]
        place = np.arange(len(stamps))
        # The k-th goes when it is due, and not before those of an event earlier have gone.
        event = np.searchsorted(limits, stamps)
        for lane in range(AT_ONCE):
            turn = place[lane::AT_ONCE] // AT_ONCE
            event[lane::AT_ONCE] = np.maximum.accumulate(event[lane::AT_ONCE] - turn) + turn
        return event[event < n], keys

    def done(self, pool: Pool) -> None:
        """Let the pool count what is due after a batch."""
        if self._now[-1] > 0:
            pool.look_for_due(int(self._now[-1]) - self._span)

    # --- state

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the state as named arrays, not copied."""
        return {
            f"{_NAME}.last": self._clock.last,
            f"{_NAME}.now": self._clock.now,
            f"{_NAME}.records": self._records,
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` returned, which may be among others."""
        self._clock.last, self._clock.now, self._records = (
            arrays[f"{_NAME}.{name}"] for name in ("last", "now", "records")
        )
