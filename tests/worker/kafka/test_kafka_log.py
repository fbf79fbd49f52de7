"""What only the Kafka log does: groups that share partitions out, fencing, outages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.logs import (
    TIME_LIMIT,
    Interrupted,
    contents,
    drain,
    ignore,
    kafka_log,
    numbered,
    out,
    own,
    read_all,
    values,
)
from worker.broker import Cluster
from worker.log.kafka import KafkaLog
from worker.log.port import CommitAborted, LogError, OwnershipLost, TopicPartition

NOWHERE = "127.0.0.1:1"  # nobody listens on this port


class Group:
    """A group of its own for each test, and the logs that are its members."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.name = f"group-{uuid4().hex[:12]}"
        self.opened: list[KafkaLog] = []
        self.told: list[str] = []

    def member(
        self, instance: str, *, hasty: bool = False, transactional: bool = True, **properties: str | int
    ) -> KafkaLog:
        """Return a log that can be a member; a hasty one is put out of the group soon where it is not polled."""
        log = kafka_log(
            self.bootstrap,
            self.name,
            instance,
            hasty=hasty,
            transactional=transactional,
            notify=self.told.append,
            **properties,
        )
        self.opened.append(log)
        return log


@pytest.fixture
def group(kafka: Cluster) -> Iterator[Group]:
    """Yield a group without members."""
    made = Group(kafka.bootstrap)
    yield made
    for log in made.opened:
        log.close()


def create(bootstrap: str, prefix: str, partitions: int, **config: str) -> str:
    """Create a topic that no other test has used, and return its name once brokers tell of it."""
    name = f"{prefix}-{uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in config.items()})
    deadline = time.monotonic() + 2 * TIME_LIMIT
    while time.monotonic() < deadline:
        # A node that was frozen before may keep a request to itself until that times out, and what is created is
        # known to the controller first.
        try:
            admin.create_topics([new], request_timeout=5.0)[name].result(TIME_LIMIT)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                continue
        if admin.list_topics(name, TIME_LIMIT).topics[name].error is None:
            return name
        time.sleep(0.1)
    raise AssertionError(f"no broker tells of {name}")


@pytest.fixture
def topic(kafka: Cluster) -> str:
    """Return a topic of three partitions that no other test has used."""
    return create(kafka.bootstrap, "events", 3)


@pytest.fixture
def source(topic: str) -> TopicPartition:
    """Return the first partition of the topic."""
    return TopicPartition(topic, 0)


def until(condition: Callable[[], object], *logs: KafkaLog, seconds: float = 2 * TIME_LIMIT) -> None:
    """Poll all the logs, which bring nothing, until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        for log in logs:
            assert values(log.poll(10, 0.02)) == []
    assert condition()


def shared_by(*logs: KafkaLog) -> Callable[[], bool]:
    """Return whether each of the logs owns something, and together they own three partitions."""
    return lambda: all(log.owned for log in logs) and sum(len(log.owned or {}) for log in logs) == 3


# Sharing partitions


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_share_partitions(group: Group, topic: str, protocol: str) -> None:
    """A member that makes room for another is told before, when it can still commit, and both go on."""
    results = f"{topic}-results"
    first = group.member("first", group_protocol=protocol)
    first.create_topic(results, 1)
    committed: list[Mapping[TopicPartition, int]] = []

    def leaving() -> None:
        owned = dict.fromkeys(first.owned or {}, 7)
        first.commit([out(TopicPartition(results, 0), b"last")], owned, "metadata")
        committed.append(owned)

    own(first, topic, leaving=leaving)
    numbers: dict[TopicPartition, int] = dict(first.owned or {})
    second = group.member("second", group_protocol=protocol)
    second.join([topic], ignore)
    until(shared_by(first, second), first, second)

    assert not set(first.owned or {}) & set(second.owned or {})
    assert committed == [dict.fromkeys(numbers, 7)]
    for source in second.owned or {}:
        assert (second.committed(source), second.metadata(source)) == (7, "metadata")
        with pytest.raises(OwnershipLost, match=f"{source.topic}/{source.partition}"):
            first.commit([out(source)], {source: 9})
    for source, number in (first.owned or {}).items():
        # All partitions were taken and given again, or only those that moved.
        assert (number == numbers[source]) == (protocol == "consumer")
        first.commit([], {source: 8})
    for source in second.owned or {}:
        second.commit([], {source: 8})
    assert values(first_records(first, TopicPartition(results, 0))) == [b"last"]


def first_records(log: KafkaLog, source: TopicPartition) -> Any:
    """Return what a partition holds now."""
    reader = log.reader()
    reader.assign({source: 0})
    batches = reader.poll(1_000, TIME_LIMIT)
    reader.close()
    return batches


def test_positions_are_given_anew_after_a_change(group: Group, topic: str) -> None:
    """What was started is no longer read once it was taken, not even by the member that gets it back."""
    first = group.member("first")
    sources = [TopicPartition(topic, number) for number in range(3)]
    own(first, topic)
    for source in sources:
        first.start(source, 0)
    second = group.member("second")
    second.join([topic], ignore)
    until(shared_by(first, second), first, second)
    first.commit([record for source in sources for record in numbered(source, 2)], {})
    assert values(first.poll(10, 0.3)) == []
    for log in (first, second):
        for source in log.owned or {}:
            log.start(source, 0)
        assert len(values(drain(log, 2 * len(log.owned or {})))) == 2 * len(log.owned or {})


def test_a_partition_that_was_cut_is_read_from_where_it_begins(group: Group, source: TopicPartition) -> None:
    """Where the first records are gone a member is given the partition all the same, and starts at the rest."""
    log = group.member("reader")
    log.commit(numbered(source, 5), {})
    admin = AdminClient({"bootstrap.servers": group.bootstrap})
    place = Place(*source, 3)
    admin.delete_records([place])[place].result(TIME_LIMIT)
    assert log.watermarks(source).low == 3
    own(log, source.topic)
    with pytest.raises(LogError, match="offset 2; expected one between its low watermark 3"):
        log.start(source, 2)
    assert values(log.poll(10, 1.0)) == []
    log.start(source, 3)
    assert values(drain(log, 2)) == [b"3", b"4"]


def test_a_member_without_partitions_is_a_member(group: Group, topic: str) -> None:
    """Of more members than partitions some own none, which is not the same as not to know yet."""
    logs = [group.member(f"member-{number}") for number in range(4)]
    for log in logs:
        log.join([topic], ignore)
    until(lambda: sorted(-1 if log.owned is None else len(log.owned) for log in logs) == [0, 1, 1, 1], *logs)


def test_what_leaving_raises_poll_raises(group: Group, topic: str) -> None:
    """An error while partitions are given away comes out of the poll, and they are gone all the same."""

    def leaving() -> None:
        raise RuntimeError("while leaving")

    first, second = group.member("first"), group.member("second")
    own(first, topic, leaving=leaving)
    before: dict[TopicPartition, int] = dict(first.owned or {})
    second.join([topic], ignore)
    with pytest.raises(RuntimeError, match="while leaving"):
        until(shared_by(first, second), first, second)
    assert not set((first.owned or {}).items()) & set(before.items())
    until(shared_by(first, second), first, second)


def test_a_restarted_instance_gets_its_partitions_back(group: Group, topic: str) -> None:
    """Under the same name a member that is back soon takes up its partitions, and the others notice nothing."""
    first, second = group.member("first"), group.member("second")
    first.join([topic], ignore)
    second.join([topic], ignore)
    until(shared_by(first, second), first, second)
    before, others = set(first.owned or {}), dict(second.owned or {})
    first.close()
    again = group.member("first")
    again.join([topic], lambda: pytest.fail("nothing was to be taken away"))
    until(lambda: again.owned, again, second)
    assert set(again.owned or {}) == before
    assert second.owned == others


def test_a_topic_that_is_gone_is_an_error(
    group: Group, source: TopicPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member whose topic is deleted is told so, and does not wait for it."""
    monkeypatch.setattr("worker.log.kafka.reading.GONE_SECONDS", 1.0)
    log = group.member("reader", topic_metadata_refresh_interval_ms=200)
    own(log, source.topic)
    log.start(source, 0)
    admin = AdminClient({"bootstrap.servers": group.bootstrap})
    admin.delete_topics([source.topic])[source.topic].result(TIME_LIMIT)
    with pytest.raises(LogError, match=f"{source.topic}.*create the topic, or check the name"):
        until(lambda: False, log)


# Members that are no longer what they were


def test_a_member_that_was_put_out_is_not_asked_to_leave(group: Group, source: TopicPartition) -> None:
    """A member that the group has put out cannot commit, and hears of it in the next poll, as of a loss."""
    log = group.member("sleeper", hasty=True)
    own(log, source.topic, leaving=lambda: pytest.fail("it is too late for that"))
    log.commit([], {source: 1})
    lost: dict[TopicPartition, int] = dict(log.owned or {})
    deadline = time.monotonic() + 2 * TIME_LIMIT
    with pytest.raises(OwnershipLost, match="put this member out"):  # noqa: PT012 - it takes the group a moment
        while time.monotonic() < deadline:
            time.sleep(0.2)
            log.commit([], {source: 1})
    assert log.owned is None
    until(lambda: log.owned, log)
    assert set(log.owned or {}) == set(lost)
    assert not set(lost.items()) & set((log.owned or {}).items())
    log.commit([], {source: 2})


def test_a_second_process_of_the_same_name_shuts_the_first_out(group: Group, source: TopicPartition) -> None:
    """Where two processes go by one name, the later one works, and the earlier one is told what to do."""
    first = group.member("same")
    own(first, source.topic)
    first.commit([out(source, b"first")], {source: 1})
    second = group.member("same")
    second.join([source.topic], ignore)
    with pytest.raises(LogError, match="under the name of this instance") as error:
        first.commit([out(source, b"fenced")], {source: 5})
    assert not isinstance(error.value, CommitAborted | OwnershipLost)
    until(lambda: second.owned, second)
    second.commit([out(source, b"second")], {source: 2})
    assert [content[1] for content in read_all(second, source, 2)] == [b"first", b"second"]
    with pytest.raises(LogError, match="under the name of this instance"):
        until(lambda: False, first)


@contextmanager
def usurper(bootstrap: str, group: str, topic: str, instance: str) -> Iterator[None]:
    """Join the group under a name that is taken, as a request does that its sender has given up; then be still."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "group.instance.id": instance})
    given: list[object] = []
    consumer.subscribe([topic], on_assign=lambda _, partitions: given.append(partitions))
    deadline = time.monotonic() + 2 * TIME_LIMIT
    while not given:
        consumer.poll(0.1)
        assert time.monotonic() < deadline
    yield
    consumer.close()


@pytest.mark.parametrize("transactional", [True, False], ids=["exactly once", "at least once"])
def test_a_member_that_was_replaced_by_nobody_joins_again(
    group: Group, source: TopicPartition, transactional: bool
) -> None:
    """A member whose name the group has given away, but no other process writes under it, is let in anew."""
    log = group.member("same", transactional=transactional)
    own(log, source.topic, leaving=lambda: pytest.fail("it is too late for that"))
    log.commit([out(source, b"before")], {source: 1})
    log.start(source, 1)
    before = dict(log.owned or {})
    with usurper(group.bootstrap, group.name, source.topic, "same"):
        until(lambda: log.owned is not None and log.owned != before, log)
        assert (log.owned or {}).keys() == before.keys()
        assert not set((log.owned or {}).items()) & set(before.items())
        log.start(source, 1)
        log.commit([out(source, b"after")], {source: 2})
        assert log.committed(source) == 2
        assert values(drain(log, 1)) == [b"after"]
    assert any("joining it anew" in sentence for sentence in group.told)


def test_a_member_that_is_replaced_again_and_again_ends(
    group: Group, source: TopicPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the name is given away time and again there is another process, and a person is told."""
    monkeypatch.setattr("worker.log.kafka.member.RENEWALS", 1)
    log = group.member("same")
    own(log, source.topic)
    with usurper(group.bootstrap, group.name, source.topic, "same"):
        before = log.owned
        until(lambda: log.owned is not None and log.owned != before, log)
    with (
        usurper(group.bootstrap, group.name, source.topic, "same"),
        pytest.raises(LogError, match="another process is in the group"),
    ):
        until(lambda: False, log)


def test_a_member_that_is_not_let_in_asks_anew(group: Group, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the group gives nothing for longer than it can take, another client asks, and then it is told."""
    monkeypatch.setattr("worker.log.kafka.log.longest_rebalance", lambda properties: -1.0)
    monkeypatch.setattr("worker.log.kafka.outage.Outage.lasts", False)  # whatever else the broker is busy with
    log = group.member("early")
    log.join([topic], ignore)
    with pytest.raises(LogError, match="expected the group to share out its partitions"):  # noqa: PT012
        while True:
            log.poll(10, 0.0)
    assert sum("joining it anew" in sentence for sentence in group.told) == 4


@pytest.mark.parametrize("keeps", [True, False], ids=["one more", "others"])
def test_an_instance_comes_back_with_other_topics(group: Group, topic: str, keeps: bool) -> None:
    """It is given those, though the brokers know the instance by the topics that it had before."""
    first, second = group.member("first"), group.member("second")
    for log in (first, second):
        log.join([topic], ignore)
    until(shared_by(first, second), first, second)
    new = f"{topic}-new"
    first.create_topic(new, 3)
    wanted = {TopicPartition(each, number) for each in ([topic, new] if keeps else [new]) for number in range(3)}
    for log in (first, second):
        log.close()
    again = [group.member("second"), group.member("first")]  # the one that led the group last of all
    for log in again:
        log.join(sorted({each.topic for each in wanted}), ignore)
    until(lambda: {source for log in again for source in log.owned or ()} == wanted, *again)
    assert all(source.topic in (topic, new) for log in again for source in log.owned or ())


def test_members_of_frozen_brokers_stay_members(kafka: Cluster, group: Group, topic: str) -> None:
    """Brokers that wake up find several requests of one member to be let in again, and answer in any order.

    A request is given up after max.poll.interval.ms and 3 s: here shortly before the brokers wake up.
    """
    logs = [group.member(name, hasty=True, max_poll_interval_ms=3_000) for name in ("first", "second")]
    for log in logs:
        log.join([topic], ignore)
    until(shared_by(*logs), *logs)
    kafka.nodes[0].pause()
    back = threading.Timer(8.1, kafka.nodes[0].resume)
    back.start()
    until(lambda: not back.is_alive(), *logs)
    until(shared_by(*logs), *logs, seconds=60)


# Transactions


def test_an_open_transaction_counts_in_the_high_watermark(group: Group, source: TopicPartition) -> None:
    """The high watermark lies beyond what is open, and reading stops below it until that is over."""
    log = group.member("reader")
    other = Producer({"bootstrap.servers": group.bootstrap, "transactional.id": group.name})
    other.init_transactions(TIME_LIMIT)
    other.begin_transaction()
    other.produce(source.topic, b"open", b"key", 0)
    other.flush(TIME_LIMIT)
    assert log.watermarks(source) == (0, 1)
    reader = log.reader()
    reader.assign({source: 0})
    assert reader.poll(10, 0.3) == []
    other.commit_transaction(TIME_LIMIT)
    assert values(reader.poll(10, TIME_LIMIT)) == [b"open"]
    reader.close()


def test_committed_waits_for_an_open_transaction(group: Group, source: TopicPartition) -> None:
    """The committed offset is not told while a transaction may still change it."""
    log = group.member("reader")
    log.commit([], {source: 1}, "before")
    outsider = Consumer({"bootstrap.servers": group.bootstrap, "group.id": group.name})
    other = Producer({"bootstrap.servers": group.bootstrap, "transactional.id": group.name})
    other.init_transactions(TIME_LIMIT)
    other.begin_transaction()
    place = Place(*source, 5, "after")
    other.send_offsets_to_transaction([place], outsider.consumer_group_metadata(), TIME_LIMIT)
    timer = threading.Timer(1.5, other.commit_transaction)
    timer.start()
    assert (log.committed(source), log.metadata(source)) == (5, "after")
    timer.join()
    outsider.close()


def test_aborted_records_are_passed_over(kafka: Cluster, group: Group, topic: str) -> None:
    """A transaction that could not be written in time is aborted, may be sent again, and is read once."""
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    log = group.member("writer", message_timeout_ms=1_000)
    log.commit([out(first, b"before"), out(second, b"before")], {first: 1})

    looker = group.member("looker")

    def freeze() -> None:
        deadline = time.monotonic() + TIME_LIMIT
        while looker.watermarks(first).high < 3:  # the record, its end, and one of the first half
            assert time.monotonic() < deadline
        kafka.nodes[0].pause()
        threading.Timer(2.5, kafka.nodes[0].resume).start()

    records = [*numbered(first, 2), *numbered(second, 2)]
    with pytest.raises(CommitAborted, match="timed out"):
        log.commit(Interrupted(records, freeze), {first: 3})
    assert log.committed(first) == 1
    log.commit(records, {first: 3})
    assert log.committed(first) == 3
    assert [content[1] for content in read_all(log, first, 3)] == [b"before", b"0", b"1"]
    assert [content[1] for content in read_all(log, second, 3)] == [b"before", b"0", b"1"]
    assert log.watermarks(first).high > 5  # of which some were aborted, and some are the ends of transactions


def test_an_end_without_records_is_told(group: Group, source: TopicPartition) -> None:
    """Where only the end of a transaction lies a member moves on to the high watermark, without records."""
    log = group.member("reader")
    log.commit(numbered(source, 3), {})
    assert len(read_all(log, source, 3)) == 3
    end = log.watermarks(source).high
    own(log, source.topic)
    log.start(source, 3)
    (rest,) = log.poll(10, TIME_LIMIT)
    assert (rest.source, rest.keys, rest.offsets.tolist(), rest.next_offset) == (source, [], [], end)
    assert log.poll(10, 0.3) == []


@pytest.mark.parametrize(
    ("size", "advice"), [(1_500_000, "message.max.bytes"), (5_000, "max.message.bytes of the topic")]
)
def test_a_record_that_is_too_large_is_named(group: Group, size: int, advice: str) -> None:
    """A record that the client or the topic refuses for its size is an error with place, size and remedy."""
    topic = create(group.bootstrap, "small", 1, max_message_bytes="2000")
    source = TopicPartition(topic, 0)
    log = group.member("writer")
    with pytest.raises(LogError, match=rf"{topic}/0 of {size + 3:,} bytes was refused: .*{advice}") as error:
        log.commit([out(source, b"fits"), out(source, bytes(size))], {source: 1})
    assert not isinstance(error.value, CommitAborted)
    try:
        log.commit([out(source, b"after")], {})
    except CommitAborted:  # the client counts the refused ones as written, and notices only now
        log.commit([out(source, b"after")], {})
    assert [content[1] for content in read_all(log, source, 1)] == [b"after"]
    assert log.committed(source) is None


def test_a_timestamp_below_one_is_refused(group: Group, source: TopicPartition) -> None:
    """A record to be written has a timestamp: the client would take 0 for now."""
    with pytest.raises(LogError, match="timestamp 0; expected ms since the epoch"):
        group.member("writer").commit([out(source), out(source, timestamp=0)], {})


def test_records_of_the_future_are_written(group: Group) -> None:
    """A topic that the log made takes event times of any year."""
    topic = f"future-{uuid4().hex[:12]}"
    log = group.member("writer")
    log.create_topic(topic, 1)
    log.commit([out(TopicPartition(topic, 0), timestamp=4_102_444_800_000)], {})
    assert contents(first_records(log, TopicPartition(topic, 0)))[0][3] == 4_102_444_800_000


# Without transactions


def test_at_least_once(group: Group, topic: str) -> None:
    """Without transactions a commit leaves outputs, offsets and their metadata, and ownership counts."""
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    log = group.member("writer", transactional=False)
    own(log, topic)
    log.commit(numbered(second, 3), {first: 4}, "größer")
    assert (log.committed(first), log.metadata(first)) == (4, "größer")
    assert [content[1] for content in read_all(log, second, 3)] == [b"0", b"1", b"2"]
    assert log.watermarks(second).high == 3
    with pytest.raises(OwnershipLost, match=f"{topic}/5"):
        log.commit([], {TopicPartition(topic, 5): 4})


def test_at_least_once_writes_before_it_commits(group: Group, source: TopicPartition) -> None:
    """Where an output is refused or fails midway, the offsets stay, and the next commit goes through."""
    log = group.member("writer", transactional=False)
    log.commit([], {source: 1})

    def fail() -> None:
        raise RuntimeError("midway")

    with pytest.raises(LogError, match=r"message\.max\.bytes"):
        log.commit([out(source, bytes(1_500_000))], {source: 2})
    with pytest.raises(RuntimeError, match="midway"):
        log.commit(Interrupted(numbered(source, 2), fail), {source: 2})
    assert log.committed(source) == 1
    log.commit([out(source, b"after")], {source: 2})
    assert log.committed(source) == 2
    assert values(first_records(log, source))[-1] == b"after"


def test_at_least_once_of_a_member_that_was_put_out(group: Group, source: TopicPartition) -> None:
    """Without transactions too a member that the group has put out does not commit offsets."""
    log = group.member("sleeper", hasty=True, transactional=False)
    own(log, source.topic)
    deadline = time.monotonic() + 2 * TIME_LIMIT
    with pytest.raises(OwnershipLost, match="put this member out"):  # noqa: PT012 - it takes the group a moment
        while time.monotonic() < deadline:
            time.sleep(0.2)
            log.commit([], {source: 1})
    assert log.owned is None


# Brokers that are away


def test_an_outage_is_waited_out(kafka: Cluster, group: Group, source: TopicPartition) -> None:
    """Polls and commits go on when the brokers are back, and a person is told once of both."""
    reader, writer = group.member("reader", hasty=True), Group(kafka.bootstrap).member("writer")
    own(reader, source.topic)
    reader.start(source, 0)
    writer.commit(numbered(source, 1), {source: 1})
    assert values(drain(reader, 1)) == [b"0"]
    node = kafka.nodes[0]
    node.stop()
    back = threading.Timer(2.5, node.start)
    back.start()
    try:
        until(lambda: group.told, reader)
        writer.commit([out(source, b"after")], {source: 2})
    finally:
        back.join()
        writer.close()
    until(lambda: reader.owned, reader)
    reader.start(source, 1)
    assert values(drain(reader, 1)) == [b"after"]
    assert [sentence.partition(" (")[0] for sentence in group.told] == [
        "no answer from the brokers",
        "the brokers answer again",
    ]


@pytest.mark.parametrize("transactional", [True, False], ids=["exactly once", "at least once"])
def test_an_output_that_is_deleted_is_named(group: Group, source: TopicPartition, transactional: bool) -> None:
    """A topic that is gone is not taken for brokers that are away: it is named at once, and nothing is written."""
    results = TopicPartition(f"{source.topic}-results", 0)
    log = group.member("writer", transactional=transactional)
    log.create_topic(results.topic, 1)
    log.commit([out(results)], {source: 1})
    admin = AdminClient({"bootstrap.servers": group.bootstrap})
    admin.delete_topics([results.topic])[results.topic].result(TIME_LIMIT)
    started, done = time.monotonic(), 1
    with pytest.raises(LogError, match=rf"'{results.topic}'.*create it") as error:  # noqa: PT012 - as the worker does
        while True:
            with suppress(CommitAborted):  # where the brokers refused it before the client knew which topic
                log.commit([out(source), out(results)], {source: done + 1})
                done += 1  # a broker that has not heard of the deletion yet still takes it
    assert not isinstance(error.value, CommitAborted)
    assert time.monotonic() - started < TIME_LIMIT / 2
    assert log.committed(source) == done
    if transactional:
        log.commit([out(source, b"next")], {source: done + 1})
        assert read_all(log, source, done)[-1][1] == b"next"


@pytest.mark.slow
def test_the_time_limit_may_end_it(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """A caller may say how long to wait; the error names a remedy, and the client writes to the log alone."""
    told: list[str] = []
    with KafkaLog(
        {"bootstrap.servers": NOWHERE}, group="g", instance="i", notify=told.append, time_limit=2.5
    ) as log:
        with pytest.raises(LogError, match=r"topic 'events': expected an answer .* check bootstrap.servers"):
            log.partitions("events")
        started = time.monotonic()
    assert time.monotonic() - started < 5.0
    assert len(told) == 1
    assert {record.name for record in caplog.records} == {"kafka"}
    assert len(caplog.records) == 1  # though it tried more often
    assert capfd.readouterr().err == ""


def test_what_the_brokers_refuse_is_not_waited_for(group: Group) -> None:
    """A client that is not let in ends with an error: its password will not become another one."""
    properties = {
        "bootstrap.servers": group.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "worker",
        "sasl.password": "hunter2",
    }
    with KafkaLog(properties, group="g", instance="i") as log:
        with pytest.raises(LogError, match=r"did not let this client in: .*correct the security") as error:
            log.partitions("events")
        assert "hunter2" not in str(error.value)


def test_a_group_that_admits_nobody_is_left(group: Group, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that the brokers should admit at once, and do not, says what they may be lacking."""
    monkeypatch.setattr("worker.log.kafka.member.JOIN_SECONDS", -1.0)
    monkeypatch.setattr("worker.log.kafka.outage.Outage.lasts", False)  # whatever else the broker is busy with
    log = group.member("early", group_protocol="consumer")
    log.join([topic], ignore)
    with pytest.raises(LogError, match=r"needs Kafka 4\.0"):
        log.poll(10, 0.0)


def test_a_closed_log_says_so(group: Group, source: TopicPartition) -> None:
    """Using a closed log is an error that says what to do, and it owns nothing."""
    log = group.member("closed")
    own(log, source.topic)
    log.close()
    for use in (lambda: log.partitions("x"), lambda: log.poll(1, 0.0), lambda: log.commit([], {source: 1})):
        with pytest.raises(LogError, match="closed; open it again"):
            use()
    assert log.owned is None
