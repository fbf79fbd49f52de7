"""What every log does, whatever keeps the records; an adapter joins by adding itself to `BACKENDS`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import count, product
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support.log_machine import LogMachine
from tests.support.logs import (
    TIME_LIMIT,
    Interrupted,
    Opener,
    contents,
    drain,
    ignore,
    kafka_log,
    numbered,
    out,
    own,
    read_all,
    read_to_the_end,
    values,
)
from worker.log.embedded import EmbeddedLog
from worker.log.kafka import KafkaLog
from worker.log.port import (
    Headers,
    Log,
    LogError,
    OwnershipLost,
    Reader,
    TopicPartition,
)


class Backend(NamedTuple):
    """A log to be tested."""

    opener: Callable[[pytest.FixtureRequest], AbstractContextManager[Opener]]
    examples: int  # random sequences of operations
    marks: tuple[pytest.MarkDecorator, ...] = ()


@contextmanager
def embedded(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Yield what opens one embedded log."""
    path: Path = request.getfixturevalue("tmp_path") / "log.db"
    opened: list[EmbeddedLog] = []

    def open_log(group: str = "readers", *, hasty: bool = False) -> Log:  # noqa: ARG001 - all of them may
        opened.append(EmbeddedLog(path, group=group))
        return opened[-1]

    yield open_log
    for log in opened:
        log.close()


@contextmanager
def kafka(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Yield what opens a log in the running Kafka, each time as another member."""
    bootstrap: str = request.getfixturevalue("kafka").bootstrap
    names, numbers = uuid4().hex[:12], count()
    opened: list[KafkaLog] = []

    def open_log(group: str = "readers", *, hasty: bool = False) -> Log:
        opened.append(kafka_log(bootstrap, f"{group}-{names}", f"member-{next(numbers)}", hasty=hasty))
        return opened[-1]

    yield open_log
    for log in opened:
        log.close()


BACKENDS = {
    "embedded": Backend(embedded, examples=30),
    "kafka": Backend(kafka, examples=3, marks=(pytest.mark.broker,)),
}


@pytest.fixture(params=[pytest.param(name, marks=each.marks) for name, each in sorted(BACKENDS.items())])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Return the log under test."""
    return BACKENDS[request.param]


@pytest.fixture
def open_log(request: pytest.FixtureRequest, backend: Backend) -> Iterator[Opener]:
    """Yield what opens the log under test."""
    with backend.opener(request) as opener:
        yield opener


@pytest.fixture
def log(open_log: Opener) -> Log:
    """Return the log under test, opened once."""
    return open_log()


@pytest.fixture
def reader(log: Log) -> Iterator[Reader]:
    """Yield a reader of the log under test."""
    opened = log.reader()
    yield opened
    opened.close()


@pytest.fixture
def topic() -> str:
    """Name a topic that no other test has used, for logs that outlive a test."""
    return f"events-{uuid4().hex[:12]}"


@pytest.fixture
def source(log: Log, topic: str) -> TopicPartition:
    """Return the only partition of a new topic."""
    log.create_topic(topic, 1)
    return TopicPartition(topic, 0)


def test_topic_has_its_partitions(log: Log, topic: str) -> None:
    """A topic has the partitions it was created with, and one that was not created has none."""
    assert log.partitions(topic) is None
    log.create_topic(topic, 3)
    assert log.partitions(topic) == 3


def test_topic_is_created_once(log: Log, topic: str) -> None:
    """Creating a topic again changes nothing, and with another number of partitions is refused."""
    log.create_topic(topic, 2)
    log.create_topic(topic, 2)
    with pytest.raises(LogError, match=topic):
        log.create_topic(topic, 3)
    assert log.partitions(topic) == 2


def test_watermarks_bound_the_records(log: Log, reader: Reader, source: TopicPartition) -> None:
    """An empty partition starts and ends at 0, and a write moves its end past the last record."""
    assert log.watermarks(source) == (0, 0)
    log.commit(numbered(source, 5), {})
    low, high = log.watermarks(source)
    assert low == 0
    reader.assign({source: low})
    assert drain(reader, 5)[-1].offsets[-1] < high


def test_null_is_not_empty(log: Log, source: TopicPartition) -> None:
    """Keys and values come back as they were written, and a null is told from an empty one."""
    keys = [None, b"", b"key", b"\x00\xff"]
    pairs = list(product(keys, [None, b"", b"value", bytes(range(256))]))
    log.commit([out(source, value, key=key) for key, value in pairs], {})
    assert [content[:2] for content in read_all(log, source, len(pairs))] == pairs


def test_headers_come_back(log: Log, source: TopicPartition) -> None:
    """Headers keep their order, their repeats, a null apart from an empty one, and any bytes in a name."""
    headers: list[Headers] = [
        (),
        (("type", b"split"),),
        (("type", None), ("empty", b"")),
        (("b", b"1"), ("a", b"2"), ("b", b"3"), ("b", b"3")),
        (),
        (("größe", b"\x00\xff"), ("", b"no name"), ("", None)),
        tuple((bytes([255, number]).decode("utf-8", "surrogateescape"), b"") for number in range(1, 256)),
        tuple((f"name{number % 100}", b"%d" % number) for number in range(5_000)),
    ]
    log.commit([out(source, headers=each) for each in headers], {})
    assert [content[2] for content in read_all(log, source, len(headers))] == headers


def test_timestamps_come_back(log: Log, source: TopicPartition) -> None:
    """Timestamps are those of the writer, in any order."""
    timestamps = [1_700_000_000_123, 1, 4_102_444_800_000]
    log.commit([out(source, timestamp=timestamp) for timestamp in timestamps], {})
    assert [content[3] for content in read_all(log, source, 3)] == timestamps


def test_columns_have_their_types(log: Log, reader: Reader, source: TopicPartition) -> None:
    """Offsets and timestamps are int64 arrays, and all columns are equally long."""
    log.commit(numbered(source, 3), {})
    reader.assign({source: 0})
    for batch in drain(reader, 3):
        assert batch.source == source
        assert batch.offsets.dtype == batch.timestamps.dtype == "int64"
        columns = (batch.offsets, batch.timestamps, batch.keys, batch.values, batch.headers)
        assert len({len(column) for column in columns}) == 1


def test_offsets_of_a_transaction_are_consecutive(log: Log, reader: Reader, source: TopicPartition) -> None:
    """The records of one transaction get consecutive offsets in the order of writing."""
    log.commit(numbered(source, 20), {})
    reader.assign({source: 0})
    batches = drain(reader, 20, limit=6)
    assert [offset for batch in batches for offset in batch.offsets.tolist()] == list(range(20))
    assert values(batches) == [b"%d" % number for number in range(20)]


def test_next_offset_is_where_reading_goes_on(log: Log, reader: Reader, source: TopicPartition) -> None:
    """A reader that starts from the next offset of a batch gets exactly what came after it."""
    log.commit(numbered(source, 4), {})
    log.commit(numbered(source, 3), {})
    reader.assign({source: 0})
    whole = values(drain(reader, 7))
    reader.assign({source: 0})
    for read in range(1, 8):
        [batch] = reader.poll(1, TIME_LIMIT)
        assert batch.next_offset > batch.offsets[-1]
        with closing(log.reader()) as other:
            other.assign({source: batch.next_offset})
            assert values(drain(other, 7 - read)) == whole[read:]


def test_poll_keeps_to_its_limit(log: Log, reader: Reader, topic: str) -> None:
    """A poll brings at most as many records as asked for, over all partitions together."""
    log.create_topic(topic, 3)
    sources = [TopicPartition(topic, number) for number in range(3)]
    log.commit([record for source in sources for record in numbered(source, 20)], {})
    for limit in (1, 2, 7, 60):
        reader.assign(dict.fromkeys(sources, 0))
        left, deadline = 60, time.monotonic() + TIME_LIMIT
        while left and time.monotonic() < deadline:
            came = sum(len(batch.keys) for batch in reader.poll(limit, TIME_LIMIT))
            assert came <= limit
            left -= came
        assert left == 0


def test_partitions_keep_their_order(log: Log, reader: Reader, topic: str) -> None:
    """Every partition is read in its own order, whatever the others hold."""
    log.create_topic(topic, 3)
    sources = [TopicPartition(topic, number) for number in range(3)]
    log.commit([out(sources[number % 3], b"%d" % number) for number in range(30)], {})
    reader.assign(dict.fromkeys(sources, 0))
    batches = drain(reader, 30, limit=7)
    for source in sources:
        read = values([batch for batch in batches if batch.source == source])
        assert read == [b"%d" % number for number in range(source.partition, 30, 3)]


def test_full_partition_starves_nobody(log: Log, reader: Reader, topic: str) -> None:
    """A partition with one record has its turn long before one with three megabytes is read."""
    log.create_topic(topic, 2)
    full, slim = TopicPartition(topic, 0), TopicPartition(topic, 1)
    log.commit([*[out(full, bytes(1_000))] * 3_000, out(slim)], {})
    reader.assign({full: 0, slim: 0})
    read = 0
    while read < 2_900:
        batches = reader.poll(100, TIME_LIMIT)
        if any(batch.source == slim for batch in batches):
            return
        read += sum(len(batch.keys) for batch in batches)
    pytest.fail("the full partition was read to its end first")


def test_empty_poll_waits_and_returns_nothing(reader: Reader, source: TopicPartition) -> None:
    """A poll of what has no records waits for the time it was given, not much longer."""
    reader.assign({source: 0})
    reader.poll(1, 0.0)
    start = time.monotonic()
    assert reader.poll(10, 0.15) == []
    assert 0.14 <= time.monotonic() - start < 2.0


def test_reader_without_an_assignment_reads_nothing(log: Log, reader: Reader, source: TopicPartition) -> None:
    """A reader reads only what it was assigned."""
    log.commit(numbered(source, 1), {})
    assert reader.poll(10, 0.05) == []


def test_closed_reader_leaves_the_log_open(log: Log, source: TopicPartition) -> None:
    """A reader may be closed twice, and the log goes on."""
    reader = log.reader()
    reader.assign({source: 0})
    reader.close()
    reader.close()
    log.commit(numbered(source, 2), {})
    assert len(read_all(log, source, 2)) == 2


def test_readers_do_not_disturb_each_other(log: Log, reader: Reader, source: TopicPartition) -> None:
    """Each reader has positions of its own."""
    log.commit(numbered(source, 4), {})
    reader.assign({source: 2})
    assert [content[1] for content in read_all(log, source, 4)] == [b"0", b"1", b"2", b"3"]
    assert values(drain(reader, 2)) == [b"2", b"3"]


def test_position_outside_the_watermarks_is_refused(log: Log, reader: Reader, source: TopicPartition) -> None:
    """An assignment beyond the end, or to a partition that is not there, is an error and changes nothing."""
    log.commit(numbered(source, 3), {})
    end = log.watermarks(source).high
    reader.assign({source: 1})
    for wrong in (
        {source: end + 100},
        {source: 0, source._replace(partition=7): 0},
        {TopicPartition("missing", 0): 0},
    ):
        with pytest.raises(LogError, match=r"offset|partitions 0 to 0|missing"):
            reader.assign(wrong)
    assert values(drain(reader, 2)) == [b"1", b"2"]


def test_reader_reaches_the_high_watermark(log: Log, reader: Reader, source: TopicPartition) -> None:
    """The position ends up at the high watermark, whatever the offsets below it hold."""
    log.commit(numbered(source, 3), {})
    log.commit([], {})
    reader.assign({source: 0})
    assert values(read_to_the_end(log, reader, source)) == [b"0", b"1", b"2"]
    reader.assign({source: log.watermarks(source).high})
    assert reader.poll(10, 0.1) == []


def test_waiting_poll_sees_a_new_record(open_log: Opener, reader: Reader, source: TopicPartition) -> None:
    """A poll that waits returns when another writer commits, well before its time is over."""
    reader.assign({source: 0})
    writer = open_log("writers")
    timer = threading.Timer(0.1, lambda: writer.commit(numbered(source, 1), {}))
    timer.start()
    start = time.monotonic()
    batches = reader.poll(10, TIME_LIMIT)
    timer.join()
    assert values(batches) == [b"0"]
    assert time.monotonic() - start < TIME_LIMIT / 2


def test_assign_replaces_the_assignment(log: Log, reader: Reader, topic: str) -> None:
    """A new assignment starts from its own positions and leaves out what it does not name."""
    log.create_topic(topic, 2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    log.commit([*numbered(first, 3), *numbered(second, 3)], {})
    reader.assign({first: 0, second: 0})
    drain(reader, 6)
    reader.assign({second: 1})
    log.commit([out(first, b"unread")], {})
    assert values(drain(reader, 2)) == [b"1", b"2"]
    reader.assign({})
    assert reader.poll(10, 0.05) == []


def test_commit_writes_outputs_and_offsets(open_log: Opener, log: Log, topic: str) -> None:
    """A transaction brings its outputs and its offsets to everyone."""
    log.create_topic(topic, 2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert log.committed(first) is None
    log.commit([*numbered(first, 2), *numbered(second, 1)], {first: 7, second: 0})
    log.commit([], {first: 9})
    other = open_log()
    assert (other.committed(first), other.committed(second)) == (9, 0)
    assert len(read_all(other, first, 2)) == 2
    assert len(read_all(other, second, 1)) == 1


def test_groups_commit_apart(open_log: Opener, log: Log, source: TopicPartition) -> None:
    """The committed offset of one group is none of another's."""
    other = open_log("others")
    log.commit([], {source: 3})
    assert other.committed(source) is None
    other.commit([], {source: 5})
    assert (log.committed(source), other.committed(source)) == (3, 5)


def test_a_note_is_kept_with_the_offset(open_log: Opener, log: Log, source: TopicPartition) -> None:
    """An offset is committed with metadata, which the next commit replaces."""
    assert log.metadata(source) == ""
    log.commit([], {source: 3}, "first")
    log.commit([], {source: 4}, "größer")
    assert open_log().metadata(source) == "größer"


def test_a_member_is_given_the_partitions_of_its_topics(log: Log, topic: str) -> None:
    """A log owns nothing before it joins, and then all partitions, where it is the only member."""
    other = f"{topic}-other"
    for name, partitions in ((topic, 3), (other, 1), (f"{topic}-third", 1)):
        log.create_topic(name, partitions)
    assert log.owned is None
    own(log, topic, other)
    numbers: dict[TopicPartition, int] = dict(log.owned or {})
    log.poll(10, 0.05)
    assert log.owned == numbers


def test_joining_a_topic_that_is_not_there_is_refused(log: Log, topic: str) -> None:
    """A group cannot read a topic that does not exist."""
    with pytest.raises(LogError, match=topic):
        log.join([topic], ignore)


def test_only_what_was_started_is_read(log: Log, topic: str) -> None:
    """An owned partition is read once it is started, from the offset given, while others wait."""
    log.create_topic(topic, 2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    log.commit([*numbered(first, 3), *numbered(second, 3)], {})
    own(log, topic)
    assert log.poll(10, 0.2) == []
    log.start(first, 1)
    assert values(drain(log, 2)) == [b"1", b"2"]
    log.start(second, 0)
    log.commit(numbered(first, 1), {})
    assert sorted((batch.source, *batch.values) for batch in drain(log, 4) if batch.keys) == [
        (first, b"0"),
        (second, b"0", b"1", b"2"),
    ]


def test_started_partition_can_be_started_again(log: Log, source: TopicPartition) -> None:
    """A second start goes back, or on, to its own offset."""
    log.commit(numbered(source, 5), {})
    own(log, source.topic)
    log.start(source, 3)
    assert values(drain(log, 2)) == [b"3", b"4"]
    log.start(source, 0)
    assert values(log.poll(2, TIME_LIMIT)) == [b"0", b"1"]
    log.start(source, 4)
    assert values(drain(log, 1)) == [b"4"]


def test_stopped_partition_is_read_again_once_it_is_started(log: Log, topic: str) -> None:
    """What is stopped brings nothing and stays owned; others are read on; stopping it again is harmless."""
    log.create_topic(topic, 2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    log.commit([*numbered(first, 3), *numbered(second, 2)], {})
    own(log, topic)
    log.stop(first)
    for source in (first, second):
        log.start(source, 0)
    log.stop(first)
    log.stop(first)
    batches = [batch for batch in drain(log, 2) if batch.keys]
    assert {batch.source for batch in batches} == {second}
    assert set(log.owned or ()) == {first, second}
    log.start(first, 1)
    assert values(drain(log, 2)) == [b"1", b"2"]


def test_reading_starts_anywhere_while_records_come(log: Log, reader: Reader, topic: str) -> None:
    """Wherever and however often a partition is started, what comes is what lies there from that offset on."""
    log.create_topic(topic, 3)
    sources = [TopicPartition(topic, number) for number in range(3)]
    random, number = Random(5), count()
    own(log, topic)
    starts: list[tuple[TopicPartition, int]] = []
    read: dict[int, list[tuple[int, bytes | None]]] = {}  # offsets and values, by the place of the start
    started: dict[TopicPartition, int] = {}  # the place of the last start of a partition
    for _ in range(25):
        log.commit([out(source, b"%d" % next(number)) for source in random.choices(sources, k=40)], {})
        for source in random.sample(sources, random.randrange(3)):
            offset = random.randint(0, log.watermarks(source).high)
            log.start(source, offset)
            started[source] = len(starts)
            starts.append((source, offset))
        for batch in log.poll(random.choice([1, 10, 500]), 0.02):
            rows = zip(batch.offsets.tolist(), batch.values, strict=True)
            read.setdefault(started[batch.source], []).extend(rows)
    for source in sources:
        reader.assign({source: 0})
        batches = read_to_the_end(log, reader, source)
        there = [row for batch in batches for row in zip(batch.offsets.tolist(), batch.values, strict=True)]
        for place, (of, offset) in enumerate(starts):
            if of == source:
                came = read.get(place, [])
                assert came == [row for row in there if row[0] >= offset][: len(came)]
    assert sum(map(len, read.values())) > 100


def test_start_is_for_what_is_owned(log: Log, source: TopicPartition) -> None:
    """A partition that is not this member's, and an offset that is not there, cannot be started."""
    with pytest.raises(LogError, match="not owned"):
        log.start(source, 0)
    own(log, source.topic)
    with pytest.raises(LogError, match="not owned"):
        log.start(source._replace(partition=1), 0)
    with pytest.raises(LogError, match="offset 9;"):
        log.start(source, 9)


def test_member_commits_what_it_read(open_log: Opener, log: Log, source: TopicPartition) -> None:
    """What a member has read and made is committed together, and the next of the group goes on from there."""
    results = f"{source.topic}-results"
    log.create_topic(results, 1)
    log.commit(numbered(source, 3), {})
    own(log, source.topic)
    log.start(source, 0)
    read = drain(log, 3)
    log.commit(numbered(TopicPartition(results, 0), 2), {source: read[-1].next_offset}, "metadata")
    other = open_log()
    assert (other.committed(source), other.metadata(source)) == (read[-1].next_offset, "metadata")
    assert len(read_all(other, TopicPartition(results, 0), 2)) == 2


def test_member_commits_nothing_that_it_does_not_own(log: Log, topic: str) -> None:
    """A member cannot commit the offset of a partition of somebody else, and writes nothing."""
    log.create_topic(topic, 1)
    log.create_topic(f"{topic}-other", 1)
    mine, other = TopicPartition(topic, 0), TopicPartition(f"{topic}-other", 0)
    own(log, topic)
    with pytest.raises(OwnershipLost, match=f"{topic}-other/0"):
        log.commit([out(mine)], {mine: 1, other: 1})
    assert log.committed(mine) is log.committed(other) is None
    assert read_all(log, mine, 0) == []


def test_a_replaced_member_cannot_commit(open_log: Opener, source: TopicPartition) -> None:
    """A member that slept while another took its partition and committed writes nothing, and is told."""
    log = open_log(hasty=True)
    results = f"{source.topic}-results"
    log.create_topic(results, 1)
    target = TopicPartition(results, 0)
    log.commit(numbered(source, 3), {})
    own(log, source.topic)
    assert log.committed(source) is None
    other = open_log()
    own(other, source.topic)
    assert other.committed(source) is None
    other.commit([out(target, b"theirs")], {source: 2})
    with pytest.raises(OwnershipLost, match=source.topic):
        log.commit([out(target, b"mine")], {source: 1})
    other.commit([], {source: 3})
    assert other.committed(source) == 3
    assert [content[1] for content in read_all(other, target, 1)] == [b"theirs"]


def test_compacted_topics_are_known(log: Log, topic: str) -> None:
    """A log tells which topics it compacts, and does not take one that it does not for one that it does."""
    log.create_topic(topic, 2, compacted=True)
    log.create_topic(topic, 2, compacted=True)
    log.create_topic(topic, 2)
    log.create_topic(f"{topic}-plain", 2)
    assert log.is_compacted(topic)
    assert not log.is_compacted(f"{topic}-plain")
    assert not log.expires(topic)
    with pytest.raises(LogError, match="compacted"):
        log.create_topic(f"{topic}-plain", 2, compacted=True)
    with pytest.raises(LogError, match="missing"):
        log.is_compacted(f"{topic}-missing")


def test_compacted_topic_keeps_the_last_of_each_key(log: Log, topic: str, reader: Reader) -> None:
    """Whatever was compacted away, the last record of each key is there, and reading gets past the gaps."""
    log.create_topic(topic, 1, compacted=True)
    source = TopicPartition(topic, 0)
    log.commit([out(source, b"%d" % number, key=b"%d" % (number % 3)) for number in range(10)], {})
    log.commit([out(source, b"more", key=b"1"), out(source, None, key=b"2")], {})
    reader.assign({source: 0})
    batches = read_to_the_end(log, reader, source)
    last = {key: value for key, value, _, _ in contents(batches)}
    assert last == {b"0": b"9", b"1": b"more", b"2": None}
    offsets = [offset for batch in batches for offset in batch.offsets.tolist()]
    assert offsets == sorted(set(offsets))


def test_compacted_topic_wants_keys(log: Log, topic: str) -> None:
    """A record without a key for a compacted topic is refused, and nothing is written."""
    log.create_topic(topic, 1, compacted=True)
    source = TopicPartition(topic, 0)
    with pytest.raises(LogError, match=r"compacted|Compacted|key"):
        log.commit([out(source), out(source, key=None)], {})
    assert read_all(log, source, 0) == []


@pytest.mark.parametrize("wrong", ["topic", "partition", "offset topic", "offset partition"])
def test_unknown_target_leaves_nothing(log: Log, source: TopicPartition, wrong: str) -> None:
    """A transaction that names a topic or partition that is not there writes none of its parts."""
    log.commit([out(source, b"before")], {source: 1})
    nowhere = TopicPartition(source.topic + "-missing", 0) if "topic" in wrong else source._replace(partition=9)
    outputs = numbered(source, 3)
    offsets: Mapping[TopicPartition, int] = {source: 4}
    if wrong.startswith("offset"):
        offsets = {source: 4, nowhere: 4}
    else:
        outputs = [*outputs, out(nowhere)]
    with pytest.raises(LogError, match=nowhere.topic):
        log.commit(outputs, offsets)
    assert log.committed(source) == 1
    assert [content[1] for content in read_all(log, source, 1)] == [b"before"]


def test_error_midway_leaves_nothing(open_log: Opener, log: Log, source: TopicPartition) -> None:
    """A transaction that fails midway writes nothing, and the next one goes through."""

    def fail() -> None:
        raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        log.commit(Interrupted(numbered(source, 10), fail), {source: 4})
    log.commit([out(source, b"after")], {})
    other = open_log()
    assert other.committed(source) is None
    assert [content[1] for content in read_all(other, source, 1)] == [b"after"]


def test_only_committed_records_are_read(open_log: Opener, log: Log, source: TopicPartition) -> None:
    """While a transaction is open nobody else sees its records or its offsets."""
    log.commit([out(source, b"before")], {source: 1})
    other = open_log()
    reader = other.reader()
    reader.assign({source: 0})
    assert values(drain(reader, 1)) == [b"before"]
    seen: list[object] = []

    def look() -> None:
        seen.extend([values(reader.poll(10, 0.1)), other.committed(source)])

    log.commit(Interrupted(numbered(source, 10), look), {source: 2})
    assert seen == [[], 1]
    assert values(drain(reader, 10)) == [b"%d" % number for number in range(10)]
    assert other.committed(source) == 2
    reader.close()


def test_high_watermark_covers_an_open_transaction(open_log: Opener, log: Log, source: TopicPartition) -> None:
    """Reading up to the high watermark that was seen in an open transaction waits that transaction out."""
    log.commit([out(source, b"before")], {})
    other = open_log("others")
    seen: list[int] = []
    log.commit(Interrupted(numbered(source, 10), lambda: seen.append(other.watermarks(source).high)), {})
    with closing(other.reader()) as reader:
        reader.assign({source: 0})
        read = reader.poll(1_000, TIME_LIMIT)
        while read[-1].next_offset < seen[0]:
            read += reader.poll(1_000, TIME_LIMIT)
    assert values(read)[0] == b"before"


def test_log_outlives_its_user(open_log: Opener, log: Log, source: TopicPartition) -> None:
    """Topics, records and committed offsets are there when the log is opened again."""
    log.commit(numbered(source, 3), {source: 2})
    log.close()
    again = open_log()
    assert again.partitions(source.topic) == 1
    assert again.committed(source) == 2
    again.commit([out(source, b"more")], {})
    assert [content[1] for content in read_all(again, source, 4)] == [b"0", b"1", b"2", b"more"]


def test_closing_twice_is_harmless(log: Log) -> None:
    """A closed log may be closed again."""
    log.close()
    log.close()


def test_log_behaves_like_lists(open_log: Opener, backend: Backend, topic: str) -> None:
    """Any sequence of transactions, failures, reads, seeks and restarts does what it does to plain lists."""
    numbers = count()

    class Machine(LogMachine):
        def __init__(self) -> None:
            super().__init__(open_log, f"{topic}-{next(numbers)}")

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=backend.examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
