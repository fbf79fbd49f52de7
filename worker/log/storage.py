"""The SQLite file under the embedded log: its schema, its transactions, and how records are laid out.

A record's row id is ``partition id << 40 | offset``, so the records of a partition lie next to each
other in one B-tree: reading on from an offset is one range scan, without an index and without a sort.

The file is put into write-ahead mode by the first write and taken out of it on close. So a log that
is only read is not changed by a byte, and a log at rest is one plain file that can be copied, checked
in, or read from a read-only disk. (After a crash its write-ahead file belongs to it; the next one to
write and close folds it in.)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgpack
import numpy as np

from worker.log.port import Headers, LogError, OutRecord, Records, TopicPartition

APPLICATION_ID = 0x616E6162  # "anab", in the header of every log file
SCHEMA_VERSION = 1
BUSY_SECONDS = 10.0  # how long to wait for another process that is writing
READ_BYTES = 32 << 20  # of values, after which one read stops, so that large records do not fill the memory
OFFSET_BITS = 40  # 10^12 offsets in a partition and 2^23 partitions fit a signed 64-bit row id

SCHEMA = """
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY,
    topic TEXT NOT NULL,
    number INTEGER NOT NULL,
    low INTEGER NOT NULL DEFAULT 0,
    high INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic, number)
);
CREATE TABLE records (id INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL, key BLOB, value BLOB, headers BLOB);
CREATE TABLE offsets (
    grp TEXT NOT NULL,
    topic TEXT NOT NULL,
    number INTEGER NOT NULL,
    next_offset INTEGER NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY (grp, topic, number)
) WITHOUT ROWID;
"""

Mode: TypeAlias = Literal["ro", "rw", "rwc"]  # read only; an existing file; create it where there is none
Row: TypeAlias = tuple[int, int, bytes | None, bytes | None, bytes | None]  # a row of `records`


class Partition(NamedTuple):
    """A partition as its file holds it."""

    file: LogFile
    source: TopicPartition
    id: int
    low: int
    high: int


class LogFile:
    """One open SQLite file that holds topics.

    Every failure of SQLite comes out as a `LogError` that names the file.

    Parameters
    ----------
    path
        The file.
    mode
        "ro" never changes the file, "rw" wants an existing one, "rwc" makes it where it is missing.

    Raises
    ------
    LogError
        Where there is no such file, it is no log, or a newer version of Anabranch wrote it.
    """

    def __init__(self, path: Path, mode: Mode) -> None:
        self.path = path
        self._write_ahead = False
        if mode != "rwc" and not path.is_file():
            raise LogError(f"{path}: expected an existing log file, found none; check the path")
        try:
            # One thread owns a log, but it need not be the one that opened it.
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}",
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise LogError(f"{path}: cannot be opened ({error}); check the path and its permissions") from error
        try:
            self.query("PRAGMA synchronous = FULL")  # a commit that returned survives a power cut
            if mode == "rwc" and self._is_blank():
                self._create()
            self._check()
        except BaseException:
            self._connection.close()
            raise

    def _is_blank(self) -> bool:
        return self._pragma("application_id") == 0 and not self.query("SELECT 1 FROM sqlite_master LIMIT 1")

    def _create(self) -> None:
        with self.writing():
            if not self._is_blank():  # another process was faster
                return
            for statement in SCHEMA.split(";"):
                self.query(statement)
            self.query(f"PRAGMA application_id = {APPLICATION_ID}")
            self.query(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _check(self) -> None:
        if self._pragma("application_id") != APPLICATION_ID:
            raise LogError(
                f"{self.path}: expected a log file, found an SQLite file of another kind; check the path"
            )
        version = self._pragma("user_version")
        if version > SCHEMA_VERSION:
            raise LogError(
                f"{self.path}: expected a log file of schema version {SCHEMA_VERSION} or older, "
                f"found version {version}; open it with a newer Anabranch"
            )

    def _pragma(self, name: str) -> int:
        value: int = self.query(f"PRAGMA {name}")[0][0]
        return value

    def query(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Execute one statement and return all its rows."""
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise LogError(_explain(self.path, error)) from error

    def query_many(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Execute one statement for each row."""
        try:
            self._connection.executemany(sql, rows)
        except sqlite3.Error as error:
            raise LogError(_explain(self.path, error)) from error

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read everything inside from one and the same state of the file."""
        with self._transaction("DEFERRED"):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write everything inside, or nothing where it raises; nobody else sees it before the end."""
        if not self._write_ahead:
            self.query("PRAGMA journal_mode = WAL")  # readers go on while one writes
            self._write_ahead = True
        with self._transaction("IMMEDIATE"):
            yield

    @contextmanager
    def _transaction(self, kind: Literal["DEFERRED", "IMMEDIATE"]) -> Iterator[None]:
        self.query(f"BEGIN {kind}")
        try:
            yield
            self.query("COMMIT")
        except BaseException:
            # On some errors, a full disk for one, SQLite has already rolled back.
            if self._connection.in_transaction:
                self.query("ROLLBACK")
            raise

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic, in the order of the names."""
        return dict(self.query("SELECT topic, count(*) FROM partitions GROUP BY topic ORDER BY topic"))

    def partition(self, source: TopicPartition) -> Partition | None:
        """Return a partition as it is now, None where there is none."""
        rows = self.query("SELECT id, low, high FROM partitions WHERE topic = ? AND number = ?", tuple(source))
        return Partition(self, source, *rows[0]) if rows else None

    def read(self, partition: Partition, start: int, limit: int) -> Records:
        """Return up to `limit` records from offset `start` on, below the high watermark in `partition`.

        Where records are large, fewer: it stops soon after `READ_BYTES`.
        """
        first = partition.id << OFFSET_BITS
        found = self._connection.execute(
            "SELECT id, timestamp, key, value, headers FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
            (first + start, first + partition.high, limit),
        )
        rows: list[Row] = []
        size, chunk, done = 0, 16, False
        while not done and size < READ_BYTES:
            some = found.fetchmany(chunk)
            rows += some
            size += sum(len(row[3]) for row in some if row[3] is not None)
            done = len(some) < chunk
            chunk *= 2
        found.close()
        if done and len(rows) < limit:
            next_offset = max(start, partition.high)  # all is read, even where the last offsets are a gap
        else:
            next_offset = rows[-1][0] - first + 1 if rows else start
        return _columns(partition, rows, next_offset)

    def append(self, records: Iterable[OutRecord]) -> int:
        """Write records at the ends of their partitions, inside `writing`, and return how many."""
        held = self.query("SELECT topic, number, id, high FROM partitions")
        ends = {(topic, number): id_ << OFFSET_BITS | high for topic, number, id_, high in held}
        before = ends.copy()
        pack = msgpack.Packer().pack  # a packer for each record would take as long as the rest

        def rows() -> Iterator[Row]:
            for topic, number, key, value, headers, timestamp in records:
                id_ = ends.get((topic, number))
                if id_ is None:
                    raise LogError(f"{self.path}: {self.unknown(TopicPartition(topic, number))}")
                if timestamp < 1:
                    raise LogError(
                        f"a record for {topic}/{number} has timestamp {timestamp}; "
                        "expected ms since the epoch, at least 1; set one"
                    )
                ends[topic, number] = id_ + 1
                yield id_, timestamp, key, value, pack(headers) if headers else None

        self.insert(rows())
        grown = {target: end - before[target] for target, end in ends.items() if end != before[target]}
        self.query_many(
            "UPDATE partitions SET high = high + ? WHERE topic = ? AND number = ?",
            [(count, *target) for target, count in grown.items()],
        )
        return sum(grown.values())

    def insert(self, rows: Iterable[Row]) -> None:
        """Write rows of `records`, inside `writing`; the caller keeps the watermarks."""
        self.query_many("INSERT INTO records (id, timestamp, key, value, headers) VALUES (?, ?, ?, ?, ?)", rows)

    def unknown(self, source: TopicPartition) -> str:
        """Return what to tell a person who named a partition that is not there."""
        count = self.topics().get(source.topic)
        if count is None:
            return f"no topic {source.topic!r}; create it first, or check the name"
        return f"topic {source.topic!r} has partitions 0 to {count - 1}, but {source.partition} was named"

    def close(self) -> None:
        """Close the file. Closing twice is harmless."""
        if self._write_ahead:
            # Refused at once while another process has the file open: it goes on in write-ahead mode.
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA busy_timeout = 0")
                self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()


def pack_rows(partition: Partition, records: Records) -> Iterator[Row]:
    """Yield the rows that hold `records` in `partition`, offsets kept."""
    first = partition.id << OFFSET_BITS
    pack = msgpack.Packer().pack
    columns = (records.offsets.tolist(), records.timestamps.tolist(), records.keys, records.values)
    for offset, timestamp, key, value, headers in zip(*columns, records.headers, strict=True):
        yield first | offset, timestamp, key, value, pack(headers) if headers else None


def _columns(partition: Partition, rows: list[Row], next_offset: int) -> Records:
    ids, timestamps, keys, values, packed = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return Records(
        source=partition.source,
        offsets=np.array(ids, dtype=np.int64) - (partition.id << OFFSET_BITS),
        timestamps=np.array(timestamps, dtype=np.int64),
        keys=keys,
        values=values,
        # Events seldom have headers, so the usual column is made without a look at each record.
        headers=[_unpacked(each) for each in packed] if any(packed) else ((),) * len(packed),
        next_offset=next_offset,
    )


def _unpacked(packed: bytes | None) -> Headers:
    if packed is None:
        return ()
    headers: Headers = msgpack.unpackb(packed, use_list=False)
    return headers


def _explain(path: Path, error: sqlite3.Error) -> str:
    if "locked" in str(error):
        return f"{path}: another process kept it locked for {BUSY_SECONDS:.0f} s ({error}); wait for that one"
    if "not a database" in str(error):
        return f"{path}: expected a log file, found no SQLite file at all; check the path"
    if "closed database" in str(error):
        return f"{path}: the log is closed; open it again"
    return f"{path}: {error}; nothing of the transaction was written"
