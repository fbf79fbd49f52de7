"""Compacted topics of an embedded log: only the last record of each key is kept.

A broker compacts now and then; here a record replaces the earlier one of its key when it is written. A
tombstone can be read until the next transaction that writes to its partition. What was dropped leaves a gap
in the offsets.

The tables below come with the first compacted topic, which makes the file one of schema version 2. A file
without such a topic stays what it was, and pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from worker.log.port import LogError
from worker.log.rows import OFFSET_BITS, Row

COMPACTION_SCHEMA = """
CREATE TABLE compacted (topic TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE latest (
    partition INTEGER NOT NULL,
    key BLOB NOT NULL,
    id INTEGER NOT NULL,
    tombstone INTEGER NOT NULL,
    PRIMARY KEY (partition, key)
) WITHOUT ROWID;
CREATE INDEX tombstones ON latest (partition) WHERE tombstone;
"""


class Superfluous:
    """Watches the rows that one transaction writes, and says what they make superfluous.

    Parameters
    ----------
    partitions
        The ids of the compacted partitions, with their topics; rows of others pass by.
    """

    def __init__(self, partitions: Mapping[int, str]) -> None:
        self._partitions = partitions
        self._latest: dict[tuple[int, bytes], tuple[int, bool]] = {}  # row id, and whether it is a tombstone
        self._replaced: list[tuple[int]] = []  # row ids, of this transaction

    def watch(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows as they are; raise `LogError` where one has no key that could be replaced."""
        for row in rows:
            id_, _, key, value, _ = row
            partition = id_ >> OFFSET_BITS
            if partition in self._partitions:
                if key is None:
                    raise LogError(
                        f"a record for the compacted topic {self._partitions[partition]!r} has no key; "
                        "expected one, by which a later record replaces it"
                    )
                before = self._latest.get((partition, key))
                if before is not None:
                    self._replaced.append((before[0],))
                self._latest[partition, key] = (id_, value is None)
            yield row

    def statements(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """Yield the statements, with their rows, that drop the superfluous once all rows are written."""
        keys: list[tuple[Any, ...]] = list(self._latest)
        yield "DELETE FROM records WHERE id = (SELECT id FROM latest WHERE partition = ? AND key = ?)", keys
        yield "DELETE FROM records WHERE id = ?", list(self._replaced)
        written: list[tuple[Any, ...]] = [(id_,) for id_ in {partition for partition, _ in self._latest}]
        tombstones = "SELECT id FROM latest WHERE partition = ? AND tombstone"
        yield f"DELETE FROM records WHERE id IN ({tombstones})", written
        yield "DELETE FROM latest WHERE partition = ? AND tombstone", written
        rows: list[tuple[Any, ...]] = [(*key, *latest) for key, latest in self._latest.items()]
        yield "INSERT OR REPLACE INTO latest (partition, key, id, tombstone) VALUES (?, ?, ?, ?)", rows
