"""The records of a recording in batches, at once or in the time that they once took."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator

from worker.log.browse import Record

BATCH_RECORDS = 5_000
BATCH_BYTES = 8 << 20  # of values
_GRAIN = 0.1  # s; records that fall due within it go together, as a transaction for each would be too many
_STEP = 0.1  # s between two looks at whether to stop
_LONG = 10.0  # s, of a wait that a person is told of


class Pacing:
    """Decides when a record is due.

    Parameters
    ----------
    speed : float, optional
        How many times as fast as by the records' timestamps; None: all are due at once. What has no timestamp,
        or an earlier one than a record before it, is due with that.
    clock, sleep : callable
        Seconds, monotonic, and how to let some pass.
    notify : callable
        Told the seconds of a wait that takes long.
    """

    def __init__(
        self,
        speed: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        notify: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._speed = speed
        self._clock = clock
        self._sleep = sleep
        self._notify = notify
        self._started: float | None = None
        self._first = self._latest = -1  # timestamps

    def batches(self, records: Iterable[Record], stopped: Callable[[], bool]) -> Iterator[list[Record]]:
        """Yield the records when they are due. Where `stopped` ends a wait they come early: check it first."""
        batch: list[Record] = []
        size = 0
        for record in records:
            due = self._due(record.timestamp)
            is_early = due > self._clock()
            if batch and (is_early or len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES):
                yield batch
                batch, size = [], 0
            if is_early:
                self._wait(due, stopped)
            batch.append(record)
            size += len(record.value or b"")
        if batch:
            yield batch

    def _due(self, timestamp: int) -> float:
        """Return when a record is due, on the clock."""
        if self._speed is None:
            return -math.inf
        if self._started is None:
            self._started = self._clock()
        if self._first < 0:
            self._first = timestamp
        self._latest = max(self._latest, timestamp)
        seconds = (self._latest - self._first) / 1000 / self._speed
        return self._started + math.ceil(seconds / _GRAIN) * _GRAIN

    def _wait(self, due: float, stopped: Callable[[], bool]) -> None:
        if due - self._clock() >= _LONG:
            self._notify(due - self._clock())
        while (left := due - self._clock()) > 0 and not stopped():
            self._sleep(min(left, _STEP))
