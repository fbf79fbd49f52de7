"""Windows by time in plain Python: before every event all live examples are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.oracles.naive_expiry import NaiveExpiry

AT_ONCE = 2


class Row(NamedTuple):
    """One event of a record."""

    op: str  # insert, delete, predict, drop or refused
    id: int | None = None
    x: tuple[int, ...] = ()
    y: int = 0


class Went(NamedTuple):
    """An example that went because it was time."""

    offset: int
    row: int
    key: bytes
    example: Row
    since: int
    gone: int
    due: int


class NaiveWindow(NaiveExpiry):
    """Live examples of all keys in the order in which they came, each with the number of its record."""

    def __init__(self, span: int) -> None:
        super().__init__(span)
        self.live: list[tuple[bytes, Row, int]] = []
        self.shelved: dict[tuple[bytes, int], int] = {}  # ids that went, with the number of their record
        self.gone = 0
        self.already_dropped = 0
        self.refused = 0

    def _old(self, record: int, spans: int) -> bool:
        """Return whether what came with a record came at least so many spans ago."""
        since = self._since(record)
        return since is not None and 0 < self.clocks[-1] >= since + spans * self.span

    def due(self) -> list[tuple[bytes, Row, int]]:
        """Return what is due now."""
        return [each for each in self.live if self._old(each[2], 1)]

    def rows(self, offset: int, key: bytes, rows: Sequence[Row], timestamp: int) -> list[Went]:
        """Take a record; return what goes at it."""
        if timestamp >= 0:
            self.timestamps.append(timestamp)
        self.clocks.append(self._clock())
        found = []
        for number, row in enumerate(rows):
            due = self.due()
            for place, each in enumerate(due[:AT_ONCE]):
                self.live.remove(each)
                self.gone += 1
                owner, example, record = each
                if example.id is not None:
                    self.shelved[owner, example.id] = record
                since = self._since(record)
                assert since is not None
                found.append(Went(offset, number, owner, example, since, self.gone, len(due) - place - 1))
            self._apply(key, row)
        return found

    def _apply(self, key: bytes, row: Row) -> None:
        named = [each for each in self.live if row.id is not None and each[:2][0] == key and each[1].id == row.id]
        if row.op == "insert" and named:
            self.refused += 1
        elif row.op == "insert":
            self.live.append((key, row, len(self.clocks) - 1))
            if row.id is not None:
                self.shelved.pop((key, row.id), None)
        elif row.op == "delete":
            same = [each for each in self.live if each[0] == key and each[1] == row._replace(op="insert")]
            if row.id is not None:
                same = named
            if same:
                self.live.reverse()  # of equal ones the newest goes
                self.live.remove(same[-1])
                self.live.reverse()
            elif row.id is not None and (record := self.shelved.get((key, row.id))) is not None:
                if self._old(record, 2):
                    self.refused += 1
                else:
                    self.already_dropped += 1
            else:
                self.refused += 1
        elif row.op == "refused":
            self.refused += 1
        elif row.op == "drop":
            self.live = [each for each in self.live if each[0] != key]
            self.shelved = {name: record for name, record in self.shelved.items() if name[0] != key}
