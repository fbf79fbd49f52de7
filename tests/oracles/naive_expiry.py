"""The clock of a partition and the keys that expire, in plain Python, record by record and event by event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

AT_ONCE = 1


class Gone(NamedTuple):
    """A key that went."""

    offset: int
    row: int
    key: bytes
    since: int
    expired: int
    due: int


class NaiveExpiry:
    """Knows of each key the record of its last event, and looks at all keys before every event."""

    def __init__(self, span: int) -> None:
        self.span = span
        self.timestamps: list[int] = []
        self.clocks: list[int] = []  # after each record
        self.used: dict[bytes, int] = {}  # the number of the record; in the order of the last uses
        self.expired = 0

    def _clock(self) -> int:
        last = sorted(self.timestamps[-5:])
        now = last[2] if len(last) == 5 else 0
        return max(now, self.clocks[-1] if self.clocks else 0)

    def _since(self, record: int) -> int | None:
        """Return when a use in a record was: by the clock two records later, None while that is not known."""
        if record + 2 >= len(self.clocks):
            return None
        return self.clocks[record + 2] or next((clock for clock in self.clocks if clock), None)

    def _due(self) -> list[tuple[bytes, int]]:
        now = self.clocks[-1]
        since = [(key, self._since(record)) for key, record in self.used.items()]
        return [(key, at) for key, at in since if at is not None and at + self.span <= now]

    def record(self, offset: int, key: bytes, rows: Sequence[str], timestamp: int) -> list[Gone]:
        """Take a record with events, each "insert", "drop" or "predict"; return which keys go at it."""
        if timestamp >= 0:
            self.timestamps.append(timestamp)
        self.clocks.append(self._clock())
        found = []
        for row, op in enumerate(rows):
            due = self._due()
            going = [each for each in due if each[0] == key]
            going += [each for each in due if each[0] != key][:AT_ONCE]
            for number, (each, since) in enumerate(going):
                del self.used[each]
                self.expired += 1
                found.append(Gone(offset, row, each, since, self.expired, len(due) - number - 1))
            was_alive = self.used.pop(key, None) is not None
            if op == "insert" or (was_alive and op != "drop"):
                self.used[key] = len(self.clocks) - 1
        return found
