"""What becomes of a transaction whose producer fails in ways that no broker can be made to show on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from worker.log.kafka import outage, transactions
from worker.log.kafka.member import Member
from worker.log.kafka.outage import Outage
from worker.log.kafka.sender import Sender
from worker.log.kafka.transactions import Transactions
from worker.log.port import CommitAborted, LogError, OutRecord, OwnershipLost, TopicPartition

SOURCE = TopicPartition("events", 0)
RECORD = OutRecord("splits", 0, b"key", b"value", (), 1)


class Scripted:
    """A producer that does what it is told to, by the name of the call, and notes which calls were made."""

    def __init__(self, **does: Callable[[], object]) -> None:
        self.does = does
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*_: object, **__: object) -> Any:
            self.calls.append(name)
            return self.does.get(name, lambda: None)()

        return call


class Alone(Member):
    """A member of no group, which knows what offset the brokers have."""

    def __init__(self, stored: int = -1, *, incremental: bool = False) -> None:
        super().__init__(
            lambda: Scripted(consumer_group_metadata=lambda: b"me"),
            Outage(print),
            "g",
            wait=60.0,
            incremental=incremental,
        )
        self.stored = stored

    def committed(self, source: TopicPartition, seconds: float) -> Any:  # noqa: ARG002 - as the member's
        """Return the stored offset."""
        return Place(*source, self.stored)


@pytest.fixture
def forever() -> Iterator[Callable[[], object]]:
    """Yield a call that does not come back before the test is over."""
    over = threading.Event()
    yield over.wait
    over.set()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up soon what does not come back."""
    monkeypatch.setattr(transactions, "RENEW_SECONDS", 0.1)
    monkeypatch.setattr(transactions, "STALE_SECONDS", 0.0)
    monkeypatch.setattr(outage, "ATTEMPT_SECONDS", 0.05)


def raising(code: int, **flags: bool) -> Callable[[], object]:
    """Return a call that fails."""

    def fail() -> object:
        raise KafkaException(KafkaError(code, "as the test wants it", **flags))

    return fail


def writer(*producers: Scripted, member: Member | None = None) -> Transactions:
    """Return what writes with one of these producers after the other."""
    rest = iter(producers)
    return Transactions(
        lambda on_delivery: next(rest),
        lambda: Sender(lambda target: None, lambda topics: None),
        Outage(print),
        member or Alone(),
        "g-i",
    )


def test_a_transaction_ends_with_its_commit() -> None:
    """Records, offsets and the commit go to one producer, which is made ready once."""
    producer = Scripted()
    log = writer(producer)
    log.commit([RECORD], {SOURCE: 1}, "metadata")
    log.commit([], {}, "")
    assert [call for call in producer.calls if call != "poll"] == [
        "init_transactions",
        "begin_transaction",
        "produce",
        "send_offsets_to_transaction",
        "commit_transaction",
        "begin_transaction",
        "commit_transaction",
    ]


def test_a_producer_that_does_not_come_back_is_replaced(forever: Callable[[], object]) -> None:
    """Where a call hangs before the commit, another producer ends the transaction, which can be sent again."""
    stuck, other = Scripted(send_offsets_to_transaction=forever), Scripted()
    log = writer(stuck, other)
    with pytest.raises(CommitAborted, match="a new producer has ended it"):
        log.commit([RECORD], {SOURCE: 1}, "")
    assert "commit_transaction" not in stuck.calls
    log.commit([RECORD], {SOURCE: 1}, "")
    assert other.calls.count("init_transactions") == other.calls.count("commit_transaction") == 1


def test_a_producer_that_hangs_at_the_start_is_replaced(forever: Callable[[], object]) -> None:
    """Where not even the start comes back, another producer is tried."""
    other = Scripted()
    writer(Scripted(init_transactions=forever), other).prepare()
    assert other.calls[0] == "init_transactions"


@pytest.mark.parametrize(("stored", "sent_again"), [(2, False), (1, True)])
def test_a_commit_that_hangs_is_found_out(forever: Callable[[], object], stored: int, sent_again: bool) -> None:
    """Where the commit itself hangs, the committed offset tells whether it was made."""
    member = Alone()
    turns = iter([lambda: None, forever])
    log = writer(Scripted(commit_transaction=lambda: next(turns)()), Scripted(), member=member)
    log.commit([RECORD], {SOURCE: 1}, "")
    member.stored = stored
    if sent_again:
        with pytest.raises(CommitAborted, match="is not committed"):
            log.commit([RECORD], {SOURCE: 2}, "")
    log.commit([RECORD], {SOURCE: 2}, "")


@pytest.mark.parametrize("offsets", [{}, {SOURCE: 1}], ids=["without offsets", "with the offset of the last one"])
def test_a_commit_that_cannot_be_found_out_is_an_error(
    forever: Callable[[], object], offsets: dict[TopicPartition, int]
) -> None:
    """Where a commit hangs that moved no offset, nobody can tell whether it was made, and nobody guesses."""
    turns = iter([lambda: None, forever])
    log = writer(Scripted(commit_transaction=lambda: next(turns)()), Scripted(), member=Alone(stored=1))
    log.commit([RECORD], {SOURCE: 1}, "")
    with pytest.raises(LogError, match="do not tell whether it was committed") as error:
        log.commit([RECORD], offsets, "")
    assert not isinstance(error.value, CommitAborted)


def test_a_producer_that_cannot_abort_is_replaced() -> None:
    """Where the client cannot abort, another producer does, and the transaction can be sent again."""
    broken = Scripted(
        commit_transaction=raising(KafkaError._MSG_TIMED_OUT, txn_requires_abort=True),
        abort_transaction=raising(KafkaError.INVALID_TXN_STATE, fatal=True),
    )
    other = Scripted()
    log = writer(broken, other)
    with pytest.raises(CommitAborted, match="was aborted"):
        log.commit([RECORD], {}, "")
    log.commit([RECORD], {}, "")
    assert "commit_transaction" in other.calls


def test_who_writes_under_the_name_is_found_out() -> None:
    """Asked whether it is alone, a writer commits nothing, and tells another one by the brokers' answer."""
    lost = raising(KafkaError.FENCED_INSTANCE_ID, txn_requires_abort=True)  # of the group, not of the writer
    for answer in (lambda: None, lost):
        alone = Scripted(send_offsets_to_transaction=answer)
        writer(alone).check_alone(SOURCE, b"nobody")
        assert alone.calls.count("abort_transaction") == 1
        assert "commit_transaction" not in alone.calls
    with pytest.raises(LogError, match="has shut this one out"):
        writer(Scripted(send_offsets_to_transaction=raising(KafkaError._FENCED, fatal=True))).check_alone(
            SOURCE, b"nobody"
        )


def test_a_writer_that_gets_no_answer_is_taken_to_be_alone(forever: Callable[[], object]) -> None:
    """Where the question does not come back, a new producer takes the name, as after any such call."""
    other = Scripted()
    writer(Scripted(send_offsets_to_transaction=forever), other).check_alone(SOURCE, b"nobody")
    assert other.calls[0] == "init_transactions"


def test_a_fenced_producer_is_not_replaced() -> None:
    """Where another process has shut this one out, it is told, and does not shut that one out in turn."""
    fenced = Scripted(
        commit_transaction=raising(KafkaError._MSG_TIMED_OUT, txn_requires_abort=True),
        abort_transaction=raising(KafkaError._FENCED, fatal=True),
    )
    with pytest.raises(LogError, match="has shut this one out"):
        writer(fenced).commit([RECORD], {}, "")


@pytest.mark.parametrize(("incremental", "expected"), [(True, CommitAborted), (False, OwnershipLost)])
def test_a_stale_member_may_still_be_the_owner(incremental: bool, expected: type[LogError]) -> None:
    """Where partitions move one by one a member that has not heard of a change tries again; else it has lost."""
    stale = raising(KafkaError.ILLEGAL_GENERATION, txn_requires_abort=True)
    producer = Scripted(send_offsets_to_transaction=stale)
    with pytest.raises(expected):
        writer(producer, member=Alone(incremental=incremental)).commit([RECORD], {SOURCE: 1}, "")
    assert producer.calls.count("abort_transaction") == 1


@pytest.mark.parametrize("told", [True, False], ids=["with its report", "without a report"])
def test_a_client_in_a_state_of_error_is_not_the_reason(told: bool) -> None:
    """Records after a refused one fail for the client's state: the refused one is told, or all is tried again."""
    senders: list[Sender] = []

    def sender() -> Sender:
        senders.append(Sender(lambda target: None, lambda topics: None))
        return senders[-1]

    def report() -> None:
        if told:
            record = Scripted(topic=lambda: "splits", partition=lambda: 0, key=lambda: b"key", value=lambda: b"")
            senders[-1].on_delivery(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), record)

    turns = iter([lambda: None, raising(KafkaError._STATE)])
    producer = Scripted(produce=lambda: next(turns)(), abort_transaction=report)
    log = Transactions(lambda on_delivery: producer, sender, Outage(print), Alone(), "g-i")
    large = RECORD._replace(topic="dead", value=b"much more")
    with pytest.raises(LogError) as error:
        log.commit([RECORD, large], {SOURCE: 1}, "")
    assert isinstance(error.value, CommitAborted) is not told
    assert told == ("expected the permission Write for the topic 'splits'" in str(error.value))
