"""Examples that wait for their labels, in plain Python: all of them are looked at before every event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.oracles.naive_expiry import NaiveExpiry


class Row(NamedTuple):
    """One event of a record."""

    op: str  # insert, delete, predict, label or drop
    id: int | str | None = None
    x: Any = None
    y: Any = None


class Kept(NamedTuple):
    """A pending example."""

    x: Any
    record: int  # number of the record
    at: tuple[int, int]  # offset and row of the predict


class Fate(NamedTuple):
    """What became of an event: "labelled", "late", "settled", "forgotten", or nothing."""

    what: str = ""
    kept: Kept | None = None


class NaiveLate(NaiveExpiry):
    """Pending examples by key and id, in the order in which they came."""

    def __init__(self, most: int, span: int) -> None:
        super().__init__(span)
        self.most = most
        self.pending: dict[tuple[bytes, int | str], Kept] = {}
        self.tally = dict.fromkeys(("kept", "labelled", "settled", "forgotten", "late"), 0)

    def rows(self, offset: int, key: bytes, rows: Sequence[Row], timestamp: int) -> list[Fate]:
        """Take a record; return what became of its events."""
        if timestamp >= 0:
            self.timestamps.append(timestamp)
        self.clocks.append(self._clock())
        return [self._row(offset, number, key, row) for number, row in enumerate(rows)]

    def _row(self, offset: int, number: int, key: bytes, row: Row) -> Fate:
        now = self.clocks[-1]
        for name, kept in list(self.pending.items()):
            since = self._since(kept.record)
            if since is not None and now > 0 and since + self.span <= now:
                del self.pending[name]
        if row.op == "drop":
            of_key = [name for name in self.pending if name[0] == key]
            self.tally["forgotten"] += len(of_key)
            for name in of_key:
                del self.pending[name]
        if row.id is None:
            return Fate()
        if row.op == "predict":
            self.pending.pop((key, row.id), None)
            if len(self.pending) == self.most:
                del self.pending[next(iter(self.pending))]
            self.pending[key, row.id] = Kept(row.x, len(self.clocks) - 1, (offset, number))
            self.tally["kept"] += 1
            return Fate()
        found = self.pending.pop((key, row.id), None)
        if found is None and row.op != "label":
            return Fate()
        what = {"insert": "settled", "delete": "forgotten", "label": "labelled" if found else "late"}[row.op]
        self.tally[what] += 1
        return Fate(what, found)
