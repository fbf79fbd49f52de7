"""What only the embedded log does: its file, recordings, retention, crashes and fair shares."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.support.logs import Interrupted, contents, drain, numbered, out, values
from tests.support.places import ROOT
from worker.log import storage
from worker.log.embedded import EmbeddedLog
from worker.log.port import NO_TIMESTAMP, Log, LogError, Records, TopicPartition

SOURCE = TopicPartition("events", 0)
RESULTS = TopicPartition("splits", 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the log is."""
    return tmp_path / "log.db"


@pytest.fixture
def log(path: Path) -> Iterator[EmbeddedLog]:
    """Yield a log with one topic of one partition."""
    with EmbeddedLog(path) as opened:
        opened.create_topic(SOURCE.topic, 1)
        yield opened


def state(folder: Path) -> dict[str, str]:
    """Return the digest of each file in a folder."""
    files = [entry for entry in folder.iterdir() if entry.is_file()]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def records(offsets: list[int], next_offset: int, timestamp: int = 1_000) -> Records:
    """Return records of another log, at these offsets."""
    n = len(offsets)
    timestamps = np.full(n, timestamp, np.int64)
    keys, columns = [b"key"] * n, [b"%d" % offset for offset in offsets]
    return Records(SOURCE, np.array(offsets, np.int64), timestamps, keys, columns, [()] * n, next_offset)


# Opening


def test_is_a_log(path: Path) -> None:
    """The embedded log has the shape of the port."""
    log: Log = EmbeddedLog(path)
    log.close()


def test_foreign_database_is_refused_and_left_alone(path: Path) -> None:
    """An SQLite file of something else is no log, and opening it does not change it."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE photographs (id INTEGER)")
    connection.close()
    before = state(path.parent)
    with pytest.raises(LogError, match=r"expected a log file, found an SQLite file of another kind"):
        EmbeddedLog(path)
    assert state(path.parent) == before


def test_other_file_is_refused_and_left_alone(path: Path) -> None:
    """A file that is not even SQLite's is no log, and opening it does not change it."""
    path.write_bytes(b"not a log at all, but long enough to have a header" * 40)
    before = state(path.parent)
    with pytest.raises(LogError, match="no SQLite file at all"):
        EmbeddedLog(path)
    assert state(path.parent) == before


def test_newer_schema_is_refused(path: Path) -> None:
    """A log written by a newer version is refused with both versions named."""
    EmbeddedLog(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(LogError, match=r"schema version 2 or older, found version 7"):
        EmbeddedLog(path)


def test_missing_file_is_refused_without_create(path: Path) -> None:
    """Without `create` a path without a file is an error, and none is made."""
    with pytest.raises(LogError, match="expected an existing log file"):
        EmbeddedLog(path, create=False)
    assert not path.exists()


def test_empty_file_becomes_a_log_only_with_create(path: Path) -> None:
    """An empty file is taken for a new log, but not where an existing one was asked for."""
    path.touch()
    with pytest.raises(LogError, match="expected a log file"):
        EmbeddedLog(path, create=False)
    with EmbeddedLog(path) as log:
        assert log.topics() == {}


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    """A log cannot be made in a folder that is not there."""
    with pytest.raises(LogError, match="check the path"):
        EmbeddedLog(tmp_path / "missing" / "log.db")


def test_many_may_create_the_same_log(path: Path) -> None:
    """Logs and topics made by several at the same time are made once."""

    def create(_: int) -> dict[str, int]:
        with EmbeddedLog(path) as log:
            log.create_topic("events", 2)
            log.append([out(SOURCE)])
            return log.topics()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(create, range(16))) == [{"events": 2}] * 16
    with EmbeddedLog(path) as log:
        assert log.watermarks(SOURCE) == (0, 16)


def test_a_log_that_another_process_is_making_is_waited_for(path: Path) -> None:
    """Whoever comes while the first one still writes waits for it, as it does later on."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        over = threading.Timer(0.3, other.execute, ["COMMIT"])
        over.start()
        with EmbeddedLog(path) as log:
            log.create_topic("events", 2)
            assert log.topics() == {"events": 2}
        over.join()


def test_name_of_the_file_may_be_anything(tmp_path: Path) -> None:
    """Characters that mean something in a URI mean nothing in the name of a log."""
    path = tmp_path / "a?mode=ro#100% größe.db"
    with EmbeddedLog(path) as log:
        log.create_topic("events", 1)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_closed_log_says_so(log: EmbeddedLog) -> None:
    """Using a closed log is an error that says what to do."""
    log.close()
    with pytest.raises(LogError, match="closed; open it again"):
        log.append([out(SOURCE)])
    with pytest.raises(LogError, match="closed; open it again"):
        log.topics()


def test_log_may_be_handed_to_another_thread(log: EmbeddedLog) -> None:
    """The thread that owns a log need not be the one that opened it."""
    thread = threading.Thread(target=lambda: log.append(numbered(SOURCE, 3)))
    thread.start()
    thread.join()
    assert log.watermarks(SOURCE).high == 3


# The file at rest


def test_log_at_rest_is_one_plain_file(log: EmbeddedLog, path: Path) -> None:
    """A closed log leaves one file, which is not in write-ahead mode."""
    log.append(numbered(SOURCE, 100))
    assert len(list(path.parent.iterdir())) > 1
    log.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes()[18:20] == b"\x01\x01"


def test_reading_changes_nothing(log: EmbeddedLog, path: Path) -> None:
    """A log that is opened, read and closed is the same to the byte."""
    log.commit(numbered(SOURCE, 100), {SOURCE: 5})
    log.close()
    before = state(path.parent)
    with EmbeddedLog(path) as again:
        again.assign({SOURCE: 0})
        drain(again, 100)
        assert again.committed(SOURCE) == 5
    assert state(path.parent) == before


# Writing


def test_append_counts(log: EmbeddedLog) -> None:
    """Appending takes any iterable and says how many records there were."""
    assert log.append(iter(numbered(SOURCE, 12))) == 12
    assert log.append([]) == 0
    assert log.watermarks(SOURCE) == (0, 12)


def test_append_is_all_or_nothing(log: EmbeddedLog) -> None:
    """An append that meets an unknown partition writes none of its records."""
    with pytest.raises(LogError, match=r"'events' has partitions 0 to 0, but 4 was named"):
        log.append([*numbered(SOURCE, 5), out(SOURCE._replace(partition=4))])
    assert log.watermarks(SOURCE) == (0, 0)
    assert log.read(SOURCE, 0, 10).keys == ()


@pytest.mark.parametrize("timestamp", [0, -1])
def test_record_needs_a_timestamp(log: EmbeddedLog, timestamp: int) -> None:
    """A record to be written has a timestamp of at least 1, as on a broker."""
    with pytest.raises(LogError, match=f"timestamp {timestamp}; expected ms since the epoch"):
        log.commit([out(SOURCE, timestamp=timestamp)], {})


def test_topic_has_a_partition(log: EmbeddedLog) -> None:
    """A topic without partitions is refused."""
    with pytest.raises(LogError, match="expected at least 1"):
        log.create_topic("none", 0)


def test_topics_are_listed(log: EmbeddedLog) -> None:
    """All topics are listed with their numbers of partitions, by name."""
    log.create_topic("clicks", 4)
    assert list(log.topics().items()) == [("clicks", 4), ("events", 1)]


def test_writers_take_turns(log: EmbeddedLog, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that waits too long for another gives up with an error, and writes nothing."""
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.05)
    errors: list[str] = []
    with EmbeddedLog(path) as other:

        def write() -> None:
            with pytest.raises(LogError, match="another process kept it locked") as error:
                other.append([out(SOURCE, b"late")])
            errors.append(str(error.value))

        log.commit(Interrupted(numbered(SOURCE, 2), write), {})
    assert len(errors) == 1
    assert values([log.read(SOURCE, 0, 10)]) == [b"0", b"1"]


CRASH = """
import os, sys
from tests.support.logs import (Interrupted, out)
from worker.log.embedded import EmbeddedLog
from worker.log.port import TopicPartition

source = TopicPartition("events", 0)
log = EmbeddedLog(sys.argv[1])
log.commit(Interrupted([out(source, b"x" * int(sys.argv[2]))] * 1_000, lambda: os._exit(7)), {source: 9})
"""


@pytest.mark.parametrize("size", [10, 20_000], ids=["in memory", "spilt to disk"])
def test_crash_in_a_transaction_leaves_nothing(log: EmbeddedLog, path: Path, size: int) -> None:
    """A process that dies between begin and commit has written nothing, and the log goes on."""
    log.commit([out(SOURCE, b"before")], {SOURCE: 1})
    root = ROOT
    command = [sys.executable, "-c", CRASH, str(path), str(size)]
    assert subprocess.run(command, cwd=root, check=False).returncode == 7
    with EmbeddedLog(path) as other:
        assert other.committed(SOURCE) == 1
        assert values([other.read(SOURCE, 0, 10)]) == [b"before"]
        other.append([out(SOURCE, b"after")])
    assert values([log.read(SOURCE, 0, 10)]) == [b"before", b"after"]


READ = """
import sys
from worker.log.embedded import EmbeddedLog
from worker.log.port import TopicPartition

with EmbeddedLog(sys.argv[1], create=False) as log:
    print(log.watermarks(TopicPartition("events", 0)).high)
"""


def test_second_process_reads_while_one_writes(log: EmbeddedLog, path: Path) -> None:
    """Another process is not held up by an open transaction, and sees what was committed before it."""
    root = ROOT
    printed: list[str] = []

    def look() -> None:
        command = [sys.executable, "-c", READ, str(path)]
        printed.append(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)

    log.append(numbered(SOURCE, 3))
    log.commit(Interrupted(numbered(SOURCE, 10), look), {})
    look()
    assert printed == ["3\n", "13\n"]


# Reading


def test_read_needs_no_assignment(log: EmbeddedLog) -> None:
    """Reading a range leaves the positions of polls alone."""
    log.append(numbered(SOURCE, 10))
    log.assign({SOURCE: 2})
    batch = log.read(SOURCE, 4, 3)
    assert (values([batch]), batch.next_offset) == ([b"4", b"5", b"6"], 7)
    assert log.read(SOURCE, 8, 100).next_offset == 10
    assert values([log.read(SOURCE, 10, 5)]) == []
    assert log.read(SOURCE, 3, 0).next_offset == 3
    assert values(log.poll(1, 0.0)) == [b"2"]


def test_partitions_share_a_poll(log: EmbeddedLog) -> None:
    """Partitions that have enough get equal shares, and what a slim one leaves goes to the next."""
    log.create_topic("clicks", 4)
    sources = [TopicPartition("clicks", number) for number in range(4)]
    counts = dict(zip(sources, (0, 100, 2, 100), strict=True))
    log.append(record for source, how_many in counts.items() for record in numbered(source, how_many))
    log.assign(dict.fromkeys(sources, 0))
    shares = {batch.source.partition: len(batch.keys) for batch in log.poll(30, 0.0)}
    assert shares == {1: 10, 2: 2, 3: 18}


def test_small_limit_serves_partitions_in_turn(log: EmbeddedLog) -> None:
    """Where the limit is below the number of partitions, they are served one after the other."""
    log.create_topic("clicks", 3)
    sources = [TopicPartition("clicks", number) for number in range(3)]
    log.append(record for source in sources for record in numbered(source, 4))
    log.assign(dict.fromkeys(sources, 0))
    served = [batch.source.partition for _ in range(6) for batch in log.poll(1, 0.0)]
    assert served == [0, 1, 2, 0, 1, 2]


def test_position_outside_the_watermarks_is_refused(log: EmbeddedLog) -> None:
    """An assignment below what is kept or beyond the end is an error and changes nothing."""
    log.append(numbered(SOURCE, 10))
    log.truncate(SOURCE, 4)
    log.assign({SOURCE: 10})
    for position in (3, 11, -1):
        with pytest.raises(LogError, match=f"offset {position}; expected one between its low watermark 4"):
            log.assign({SOURCE: position})
    with pytest.raises(LogError, match="no topic 'missing'"):
        log.assign({SOURCE: 4, TopicPartition("missing", 0): 0})
    assert log.poll(10, 0.0) == []
    log.assign({SOURCE: 4})
    assert values(drain(log, 6)) == [b"%d" % number for number in range(4, 10)]


# Compaction


@pytest.fixture
def state_topic(log: EmbeddedLog) -> TopicPartition:
    """Return a partition of a compacted topic, beside one of a plain topic."""
    log.create_topic("state", 2, compacted=True)
    return TopicPartition("state", 1)


def test_a_record_replaces_the_earlier_one_of_its_key(log: EmbeddedLog, state_topic: TopicPartition) -> None:
    """Earlier records of a key go, in one transaction or several, and leave gaps; other partitions keep theirs."""
    keys = [b"a", b"b", b"a", b"", b"b", b"b"]
    log.append(out(state_topic, b"%d" % number, key=key) for number, key in enumerate(keys))
    log.append([out(state_topic._replace(partition=0), b"apart", key=b"a"), *numbered(SOURCE, 3)])
    batch = log.read(state_topic, 0, 10)
    assert (batch.offsets.tolist(), batch.keys, batch.next_offset) == ([2, 3, 5], (b"a", b"", b"b"), 6)
    log.append([out(state_topic, b"last", key=b"a")])
    batch = log.read(state_topic, 0, 10)
    assert (batch.offsets.tolist(), batch.values) == ([3, 5, 6], (b"3", b"5", b"last"))
    assert log.watermarks(state_topic) == (0, 7)
    assert values([log.read(state_topic._replace(partition=0), 0, 10), log.read(SOURCE, 0, 10)]) == [
        b"apart",
        b"0",
        b"1",
        b"2",
    ]


def test_a_tombstone_is_read_until_the_next_write(log: EmbeddedLog, state_topic: TopicPartition) -> None:
    """A tombstone removes its key, can be read, and goes when its partition is written to once more."""
    log.append([out(state_topic, b"1", key=b"a"), out(state_topic, b"2", key=b"b")])
    log.append([out(state_topic, None, key=b"a")])
    assert contents([log.read(state_topic, 0, 10)])[1][:2] == (b"a", None)
    log.append([out(state_topic._replace(partition=0), b"apart", key=b"a")])
    assert values([log.read(state_topic, 0, 10)]) == [b"2", None]
    log.append([out(state_topic, None, key=b"b")])
    batch = log.read(state_topic, 0, 10)
    assert (batch.offsets.tolist(), batch.keys) == ([3], (b"b",))
    log.append([out(state_topic, b"again", key=b"a"), out(state_topic, b"again", key=b"b")])
    assert values([log.read(state_topic, 0, 10)]) == [b"again", b"again"]


def test_compaction_behaves_like_a_dictionary(log: EmbeddedLog, state_topic: TopicPartition) -> None:
    """After any writes a compacted partition holds what a dictionary would, but for tombstones just written."""
    random = np.random.default_rng(7)
    expected: dict[bytes, bytes | None] = {}
    for turn in range(60):
        written = [
            out(state_topic, None if random.random() < 0.3 else b"%d" % turn, key=b"%d" % random.integers(8))
            for _ in range(random.integers(1, 6))
        ]
        log.append(written)
        expected = {key: value for key, value in expected.items() if value is not None}
        expected |= {record.key: record.value for record in written if record.key is not None}
        read = [content[:2] for content in contents([log.read(state_topic, 0, 100)])]
        assert (len(read), dict(read)) == (len(expected), expected)


def test_a_failed_write_compacts_nothing(log: EmbeddedLog, state_topic: TopicPartition) -> None:
    """Where a transaction fails, the records that it would have replaced are still there."""
    log.append([out(state_topic, b"kept", key=b"a")])
    for wrong in (out(state_topic, key=None), out(TopicPartition("missing", 0))):
        with pytest.raises(LogError, match=r"'state' has no key|no topic 'missing'"):
            log.append([out(state_topic, b"new", key=b"a"), wrong])
    assert values([log.read(state_topic, 0, 10)]) == [b"kept"]


def test_cut_compacted_topic_goes_on(log: EmbeddedLog, state_topic: TopicPartition) -> None:
    """Retention may cut a compacted topic, whose keys are then written anew."""
    log.append([out(state_topic, b"old", key=b"a"), out(state_topic, b"kept", key=b"b")])
    log.truncate(state_topic, 1)
    log.append([out(state_topic, b"new", key=b"a")])
    assert values([log.read(state_topic, 0, 10)]) == [b"kept", b"new"]


def test_recorded_compacted_topic_is_compacted(log: EmbeddedLog, state_topic: TopicPartition) -> None:
    """Records of another log replace each other too, where the recording's topic is compacted."""
    log.record(records([3, 5, 9], 11)._replace(source=state_topic))
    assert log.read(state_topic, 0, 10).offsets.tolist() == [9]
    assert log.watermarks(state_topic) == (3, 11)


def test_file_has_the_older_schema_until_a_topic_is_compacted(log: EmbeddedLog, path: Path) -> None:
    """A file without compacted topics can be opened by what knows of none, and can still get one."""

    def version() -> int:
        return int.from_bytes(path.read_bytes()[60:64], "big")

    log.append(numbered(SOURCE, 3))
    assert not log.is_compacted(SOURCE.topic)
    log.close()
    assert version() == 1
    with EmbeddedLog(path) as again:
        again.create_topic("state", 1, compacted=True)
        again.append([out(TopicPartition("state", 0), b"%d" % number) for number in range(5)])
    assert version() == 2
    with EmbeddedLog(path.parent / "replay.db", source=path) as replay:
        assert replay.is_compacted("state")
        assert not replay.is_compacted(SOURCE.topic)
        assert values([replay.read(TopicPartition("state", 0), 0, 10)]) == [b"4"]
        assert len(replay.read(SOURCE, 0, 10).keys) == 3


# Retention


def test_truncation_raises_the_low_watermark(log: EmbeddedLog) -> None:
    """Records below the cut are gone, a lower cut changes nothing, and writing goes on at the end."""
    log.append(numbered(SOURCE, 10))
    log.truncate(SOURCE, 10)
    log.truncate(SOURCE, 2)
    assert log.watermarks(SOURCE) == (10, 10)
    log.append([out(SOURCE, b"more")])
    batch = log.read(SOURCE, 0, 100)
    assert (batch.offsets.tolist(), batch.values) == ([10], (b"more",))
    with pytest.raises(LogError, match="expected at most 11"):
        log.truncate(SOURCE, 12)


def test_reader_below_the_cut_is_told(log: EmbeddedLog, path: Path) -> None:
    """A reader whose next record was dropped gets an error, never a silent jump."""
    log.append(numbered(SOURCE, 10))
    log.assign({SOURCE: 2})
    with EmbeddedLog(path) as other:
        other.truncate(SOURCE, 5)
    with pytest.raises(LogError, match="offset 2; expected one between its low watermark 5"):
        log.poll(10, 0.0)


# Recordings


def test_recording_keeps_offsets_gaps_and_timestamps(log: EmbeddedLog) -> None:
    """A recording starts at the first offset recorded and has the gaps of the log it was taken from."""
    log.record(records([1_000, 1_001, 1_005], 1_006))
    log.record(records([1_008], 1_010, timestamp=NO_TIMESTAMP))
    assert log.watermarks(SOURCE) == (1_000, 1_010)
    log.assign({SOURCE: 1_000})
    batches = drain(log, 4, limit=2)
    assert [batch.offsets.tolist() for batch in batches] == [[1_000, 1_001], [1_005, 1_008]]
    assert [batch.next_offset for batch in batches] == [1_002, 1_009]
    assert [content[3] for content in contents(batches)] == [1_000, 1_000, 1_000, NO_TIMESTAMP]
    log.append([out(SOURCE, b"after the gap")])
    assert log.read(SOURCE, 1_009, 5).offsets.tolist() == [1_010]


def test_poll_passes_a_gap_at_the_end(log: EmbeddedLog) -> None:
    """The next offset after the last record lies beyond the gap that follows it."""
    log.record(records([0, 1], 5))
    log.assign({SOURCE: 0})
    assert [batch.next_offset for batch in log.poll(10, 0.0)] == [5]
    log.assign({SOURCE: 2})
    (rest,) = log.poll(10, 0.0)
    assert (rest.keys, rest.next_offset) == ((), 5)
    assert log.poll(10, 0.0) == []


def test_recording_goes_on_where_it_ended(log: EmbeddedLog) -> None:
    """Offsets that a recording already has, or that no file can hold, are refused."""
    log.record(records([5, 6], 7))
    with pytest.raises(LogError, match=r"offsets 6 to 8 of events/0 .* expected none below 7"):
        log.record(records([6, 7], 8))
    with pytest.raises(LogError, match=r"none above 2\^40"):
        log.record(records([1 << 40], (1 << 40) + 1))
    assert log.watermarks(SOURCE) == (5, 7)


def test_replay_leaves_the_recording_alone(log: EmbeddedLog, path: Path, tmp_path: Path) -> None:
    """Records come from the recording, results and committed offsets go to the log's own file."""
    log.commit(numbered(SOURCE, 10), {SOURCE: 8})
    log.close()
    recorded = path.rename(tmp_path / "recorded.db")
    before, changed = state(tmp_path), recorded.stat().st_mtime_ns
    own = tmp_path / "replay"
    own.mkdir()
    with EmbeddedLog(own / "log.db", source=recorded) as replay:
        assert replay.partitions("events") == 1
        assert replay.committed(SOURCE) is None
        replay.create_topic(RESULTS.topic, 1)
        replay.assign({SOURCE: 0})
        assert len(values(drain(replay, 10))) == 10
        replay.commit(numbered(RESULTS, 2), {SOURCE: 10})
        assert replay.committed(SOURCE) == 10
        assert replay.topics() == {"events": 1, "splits": 1}
        with pytest.raises(LogError, match="no topic 'events'"):
            replay.append([out(SOURCE)])
        with pytest.raises(LogError, match="no topic 'events'"):
            replay.truncate(SOURCE, 3)
    assert state(tmp_path) == before
    assert recorded.stat().st_mtime_ns == changed
    with EmbeddedLog(own / "log.db") as results:
        assert results.topics() == {"splits": 1}
        assert values([results.read(RESULTS, 0, 10)]) == [b"0", b"1"]
        assert results.committed(SOURCE) == 10


def test_own_topic_hides_the_recorded_one(log: EmbeddedLog, path: Path, tmp_path: Path) -> None:
    """A topic that was created anew is read from the log's own file, not from the recording."""
    log.create_topic(RESULTS.topic, 1)
    log.append([out(RESULTS, b"recorded"), out(SOURCE, b"event")])
    with EmbeddedLog(tmp_path / "replay.db", source=path) as replay:
        with pytest.raises(LogError, match="exists with 1"):
            replay.create_topic(RESULTS.topic, 2)
        assert replay.topics() == {"events": 1, "splits": 1}
        assert values([replay.read(RESULTS, 0, 10)]) == [b"recorded"]
        replay.create_topic(RESULTS.topic, 1)
        assert replay.watermarks(RESULTS) == (0, 0)
        replay.commit([out(RESULTS, b"replayed")], {SOURCE: 1})
        assert values([replay.read(RESULTS, 0, 10)]) == [b"replayed"]
        assert values([replay.read(SOURCE, 0, 10)]) == [b"event"]
    assert values([log.read(RESULTS, 0, 10)]) == [b"recorded"]


def test_own_number_of_partitions_counts(log: EmbeddedLog, tmp_path: Path) -> None:
    """Where both files hold a topic, the number of its partitions is that of the log's own file."""
    with EmbeddedLog(tmp_path / "replay.db") as own:
        own.create_topic(SOURCE.topic, 3)
    with EmbeddedLog(tmp_path / "replay.db", source=tmp_path / "log.db") as replay:
        assert replay.partitions(SOURCE.topic) == 3
        assert log.partitions(SOURCE.topic) == 1


def test_recording_of_a_crashed_writer_is_whole(log: EmbeddedLog, path: Path, tmp_path: Path) -> None:
    """What was committed before a crash is read from the recording, and its file is not changed."""
    log.close()
    command = [sys.executable, "-c", CRASH.replace("log.commit", "log.append([out(source)]); log.commit")]
    subprocess.run([*command, str(path), "10"], cwd=ROOT, check=False)
    before = path.read_bytes()
    assert len(list(path.parent.glob("log.db-wal"))) == 1
    with EmbeddedLog(tmp_path / "replay.db", source=path) as replay:
        assert values([replay.read(SOURCE, 0, 10)]) == [b"value"]
    assert path.read_bytes() == before


def test_recording_may_still_grow(log: EmbeddedLog, path: Path, tmp_path: Path) -> None:
    """A recording that is being written can be read from, up to what was committed."""
    with EmbeddedLog(tmp_path / "replay.db", source=path) as replay:
        replay.assign({SOURCE: 0})
        assert replay.poll(10, 0.0) == []
        log.append(numbered(SOURCE, 3))
        assert values(drain(replay, 3)) == [b"0", b"1", b"2"]


def test_recording_is_not_made(path: Path, tmp_path: Path) -> None:
    """A recording that is not there is an error, and neither file is made."""
    with pytest.raises(LogError, match="expected an existing log file"):
        EmbeddedLog(path, source=tmp_path / "missing.db")
    assert list(tmp_path.iterdir()) == []


def test_recording_takes_no_results(log: EmbeddedLog, path: Path, tmp_path: Path) -> None:
    """A recording cannot be the file that results go to, by whatever name."""
    log.close()
    link = tmp_path / "link.db"
    os.symlink(path, link)
    for own in (path, link):
        with pytest.raises(LogError, match="give the results another file"):
            EmbeddedLog(own, source=path)
