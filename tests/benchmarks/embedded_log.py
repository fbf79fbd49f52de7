"""How fast the embedded log writes and reads small records, next to bare SQLite; one JSON line for each side.

Run it with ``python -m tests.benchmarks.embedded_log``. The ratio is what to watch: both sides take
turns in one run, so a busy machine slows them alike.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from worker.log.embedded import EmbeddedLog
from worker.log.port import Headers, OutRecord, TopicPartition

PARTITIONS = 4
BATCH = 5_000  # records a transaction and a poll
ROUNDS = 60


def outputs(headers: Headers) -> list[OutRecord]:
    """Return a batch of records of some 50 bytes, spread over the partitions."""
    return [
        OutRecord("events", n % PARTITIONS, b"key-%d" % (n % 100), bytes(40), headers, 1_700_000_000_000 + n)
        for n in range(BATCH)
    ]


def bare(path: Path) -> sqlite3.Connection:
    """Return a table of the same columns, written with the same durability."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, a INTEGER, b BLOB, c BLOB, d BLOB)")
    return connection


def seconds(action: Callable[[], object]) -> float:
    """Return how long an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def report(what: str, records: str, ours: list[float], floor: list[float]) -> None:
    """Print the rates, and how many times as long as bare SQLite the log takes."""
    figures = {
        "benchmark": "embedded_log",
        "what": what,
        "records": records,
        "median_records_per_s": round(BATCH / statistics.median(ours)),
        "best_records_per_s": round(BATCH / min(ours)),
        "times_bare_sqlite": round(statistics.median(ours) / statistics.median(floor), 2),
    }
    print(json.dumps(figures))


def measure(records: str, headers: Headers) -> None:
    """Measure commits and polls of records with these headers."""
    sources = [TopicPartition("events", number) for number in range(PARTITIONS)]
    batch = outputs(headers)
    commits, inserts, polls, selects = [], [], [], []
    with tempfile.TemporaryDirectory() as folder, EmbeddedLog(Path(folder) / "log.db") as log:
        floor = bare(Path(folder) / "floor.db")

        def insert() -> None:
            rows = [(None, record.timestamp, record.key, record.value, None) for record in batch]
            floor.execute("BEGIN IMMEDIATE")
            floor.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
            floor.execute("COMMIT")

        def select(start: int) -> None:
            floor.execute("SELECT * FROM records WHERE id > ? LIMIT ?", (start, BATCH)).fetchall()

        log.create_topic("events", PARTITIONS)
        for number in range(ROUNDS):
            commits.append(seconds(partial(log.commit, batch, dict.fromkeys(sources, number))))
            inserts.append(seconds(insert))
        log.assign(dict.fromkeys(sources, 0))
        for number in range(ROUNDS):
            polls.append(seconds(partial(log.poll, BATCH, 0.0)))
            selects.append(seconds(partial(select, number * BATCH)))
        assert log.poll(BATCH, 0.0) == []
        floor.close()
    report("commit", records, commits, inserts)
    report("poll", records, polls, selects)


if __name__ == "__main__":
    measure("plain", ())
    measure("two headers", (("type", b"split"), ("out_id", b"model:0:12345:0:0")))
