"""The SQLite file under the embedded log: its schema, its transactions, what is read and written at a time.

The file is put into write-ahead mode by the first write and taken out of it on close. So a log that
is only read is not changed by a byte, and a log at rest is one plain file that can be copied, checked
in, or read from a read-only disk. (After a crash its write-ahead file belongs to it; the next one to
write and close folds it in.)
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from worker.log.compaction import COMPACTION_SCHEMA, Superfluous
from worker.log.port import LogError, OutRecord, Records, TopicPartition
from worker.log.rows import OFFSET_BITS, Row, headers_packer, unpack_rows

APPLICATION_ID = 0x616E6162  # "anab", in the header of every log file
PLAIN_VERSION = 1  # of a file without compacted topics
COMPACTED_VERSION = 2  # of a file that has had one
BUSY_SECONDS = 10.0  # how long to wait for another process that is writing
_PAUSE_SECONDS = 0.01  # before looking again whether it is
# Of values, after which one read stops. For columns of more the system would have to clear memory in each batch;
# these are made where those of the batch before have been.
READ_BYTES = 8 << 20

# The column note is the metadata of an offset: files that are there have it by that name.
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
            raise LogError(
                f"{path}: expected an existing log file, found none; check the path, or publish events first"
            )
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
            self._extend(SCHEMA, PLAIN_VERSION)
            self.query(f"PRAGMA application_id = {APPLICATION_ID}")

    def _extend(self, schema: str, version: int) -> None:
        for statement in schema.split(";"):
            self.query(statement)
        self.query(f"PRAGMA user_version = {version}")

    def _check(self) -> None:
        if self._pragma("application_id") != APPLICATION_ID:
            raise LogError(
                f"{self.path}: expected a log file, found an SQLite file of another kind; check the path"
            )
        version = self._pragma("user_version")
        if version > COMPACTED_VERSION:
            raise LogError(
                f"{self.path}: expected a log file of schema version {COMPACTED_VERSION} or older, "
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
            self._begin_write_ahead()
        with self._transaction("IMMEDIATE"):
            yield

    def _begin_write_ahead(self) -> None:
        """Have readers go on while one writes.

        SQLite waits for who reads the file, but not for who writes to it: that is another one that makes the log.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        while not self._write_ahead:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL").fetchall()
                self._write_ahead = True
            except sqlite3.Error as error:
                if "locked" not in str(error) or time.monotonic() >= deadline:
                    raise LogError(_explain(self.path, error)) from error
                time.sleep(_PAUSE_SECONDS)

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

    def is_compacted(self, topic: str) -> bool:
        """Return whether only the last record of each key of the topic is kept."""
        return self._may_compact() and bool(self.query("SELECT 1 FROM compacted WHERE topic = ?", (topic,)))

    def compact(self, topic: str) -> None:
        """Keep only the last record of each key from now on, of a topic that has none yet; inside `writing`."""
        if not self._may_compact():
            self._extend(COMPACTION_SCHEMA, COMPACTED_VERSION)
        self.query("INSERT OR IGNORE INTO compacted (topic) VALUES (?)", (topic,))

    def _may_compact(self) -> bool:
        return self._pragma("user_version") >= COMPACTED_VERSION

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
            size += sum(map(len, filter(None, map(_VALUE, some))))
            done = len(some) < chunk
            chunk *= 2
        found.close()
        if done and len(rows) < limit:
            next_offset = max(start, partition.high)  # all is read, even where the last offsets are a gap
        else:
            next_offset = rows[-1][0] - first + 1 if rows else start
        return unpack_rows(partition.id, partition.source, rows, next_offset)

    def append(self, records: Iterable[OutRecord]) -> int:
        """Write records at the ends of their partitions, inside `writing`, and return how many."""
        held = self.query("SELECT topic, number, id, high FROM partitions")
        ends = {(topic, number): id_ << OFFSET_BITS | high for topic, number, id_, high in held}
        before = ends.copy()
        pack = headers_packer()  # a packer for each record would take as long as the rest

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
        """Write rows of `records`, inside `writing`; the caller keeps the watermarks.

        Raises `LogError` where a row of a compacted topic has no key.
        """
        sql = "INSERT INTO records (id, timestamp, key, value, headers) VALUES (?, ?, ?, ?, ?)"
        compacted = self._compacted_partitions()
        if not compacted:
            self.query_many(sql, rows)
            return
        superfluous = Superfluous(compacted)
        self.query_many(sql, superfluous.watch(rows))
        for statement, parameters in superfluous.statements():
            self.query_many(statement, parameters)

    def forget(self, partition: Partition, low: int) -> None:
        """Drop the records of a partition below an offset, inside `writing`; the watermark follows."""
        first = partition.id << OFFSET_BITS
        self.query("DELETE FROM records WHERE id >= ? AND id < ?", (first, first + low))
        if self._may_compact():
            self.query("DELETE FROM latest WHERE partition = ? AND id < ?", (partition.id, first + low))
        self.query("UPDATE partitions SET low = max(low, ?) WHERE id = ?", (low, partition.id))

    def _compacted_partitions(self) -> dict[int, str]:
        if not self._may_compact():
            return {}
        return dict(self.query("SELECT id, topic FROM partitions JOIN compacted USING (topic)"))

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


_VALUE = itemgetter(3)  # of a row


def _explain(path: Path, error: sqlite3.Error) -> str:
    if "locked" in str(error):
        return f"{path}: another process kept it locked for {BUSY_SECONDS:.0f} s ({error}); wait for that one"
    if "not a database" in str(error):
        return f"{path}: expected a log file, found no SQLite file at all; check the path"
    if "closed database" in str(error):
        return f"{path}: the log is closed; open it again"
    return f"{path}: {error}; nothing of the transaction was written"
