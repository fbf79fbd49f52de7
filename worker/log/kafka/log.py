"""The Kafka log: the port `Log` in front of a consumer, a producer and an admin client."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Self, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from worker.log.kafka.acls import create_acls
from worker.log.kafka.at_least_once import AtLeastOnce
from worker.log.kafka.client_log import client_log
from worker.log.kafka.closing import close_within
from worker.log.kafka.errors import Fenced, Forbidden, Needed, as_log_errors, explain
from worker.log.kafka.listener import mismatch
from worker.log.kafka.member import Member
from worker.log.kafka.outage import Outage
from worker.log.kafka.properties import (
    Properties,
    client_properties,
    is_incremental,
    longest_rebalance,
    member_properties,
    producer_properties,
    reader_properties,
    refused_properties,
    transaction_properties,
    transactional_id,
)
from worker.log.kafka.reader import KafkaReader
from worker.log.kafka.secrets import hide_values_of, without
from worker.log.kafka.sender import Sender
from worker.log.kafka.topics import Topics
from worker.log.kafka.transactions import Transactions
from worker.log.permission import Permission
from worker.log.port import LogError, Metadata, OutRecord, OwnershipLost, Records, TopicPartition, Watermarks

T = TypeVar("T")


class KafkaLog:
    """A log in a Kafka cluster, behind the port `Log`.

    Parameters
    ----------
    properties
        Those of librdkafka, `bootstrap.servers` among them; not those of `refused_properties`.
    group
        The consumer group, under whose name offsets are committed.
    instance
        What this member of the group is called, always the same and no other one: with it, a process that is
        started again gets its partitions back, and one that is still there is shut out.
    transactional
        Whether outputs and offsets are committed together. Otherwise outputs come first, and a crash in between
        writes them again.
    notify
        Told in a sentence when the brokers do not answer, and when they do again.
    pulse
        Called again and again while a call waits for the brokers. What it raises ends the wait.
    time_limit
        Seconds that one call waits for the brokers.

    Raises
    ------
    LogError
        Where a property is refused, by the worker or by librdkafka.

    Notes
    -----
    Leaving the group is left to the session timeout, as for all members with a name: a worker that is back by
    then disturbs nobody.
    """

    def __init__(
        self,
        properties: Properties,
        *,
        group: str,
        instance: str,
        transactional: bool = True,
        notify: Callable[[str], None] = lambda sentence: None,
        pulse: Callable[[], None] = lambda: None,
        time_limit: float = math.inf,
    ) -> None:
        for name, reason in refused_properties(properties).items():
            raise LogError(f"property {name} was set, but {reason}; leave it out")
        self._properties = {"client.id": f"{group}-{instance}", **properties}
        self._group = group
        self._instance = instance
        self._transactional = transactional
        self._outage = Outage(notify, pulse, time_limit, partial(mismatch, properties))
        self._closed = False
        self._topics  # noqa: B018 - finds wrong properties now rather than at the first call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions the topic has, None where there is no such topic."""
        return self._topics.partitions(topic)

    def is_compacted(self, topic: str) -> bool:
        """Return whether the log keeps only the last record of each key of this topic."""
        return self._topics.is_compacted(topic)

    def expires(self, topic: str) -> bool:
        """Return whether the log deletes records of this topic for their age, or for the size of the topic."""
        return self._topics.expires(topic)

    def create_topic(self, topic: str, partitions: int, *, compacted: bool = False) -> None:
        """Create a topic; raise `LogError` where it exists with another number of partitions, or not compacted."""
        self._topics.create(topic, partitions, compacted=compacted)

    def allow(self, principal: str, permissions: Iterable[Permission]) -> None:
        """Let somebody do something; raise `LogError` where this client may not give that permission."""
        create_acls(self._admin, self._outage, principal, permissions)

    def watermarks(self, source: TopicPartition) -> Watermarks:
        """Return the low and high watermark of a partition, open transactions included."""
        return self._topics.watermarks([source])[source]

    def committed(self, source: TopicPartition) -> int | None:
        """Return the group's committed offset (the next to be read), None where it has committed none.

        Where a transaction that commits another one is open, wait for its end.
        """
        offset: int = self._stored(source).offset
        return offset if offset >= 0 else None  # words like "none" are negative numbers

    def metadata(self, source: TopicPartition) -> str:
        """Return the metadata that was committed with the offset, empty where there is none."""
        return self._stored(source).metadata or ""

    def _stored(self, source: TopicPartition) -> Any:
        what = f"the committed offset of {source}, which an open transaction may hold back"
        with as_log_errors(what, Needed("Read", "group", self._group), Needed("Describe", "topic", source.topic)):
            return self._outage.wait_for(what, lambda seconds: self._member.committed(source, seconds))

    def reader(self) -> KafkaReader:
        """Return a reader of its own positions; the caller closes it."""
        return KafkaReader(
            self._new(Consumer, reader_properties(self._properties, self._group)),
            self._outage,
            Needed("Describe", "group", self._group),
            self._topics.check_positions,
        )

    def join(self, topics: Collection[str], leaving: Callable[[], None]) -> None:
        """Become a member of the group that reads these topics; partitions come in later polls.

        Raises `LogError` where a topic is unknown, and where another process goes by the name of the instance.
        """
        for topic in topics:
            self._topics.existing(topic)
        self._writer.prepare()
        self._member.join(topics, leaving)

    @property
    def owned(self) -> Mapping[TopicPartition, int] | None:
        """The partitions that the group has given to this member, each with the number of the assignment.

        None while the group shares them out anew, also before the first time.
        """
        return None if self._closed else self._member.owned

    def start(self, source: TopicPartition, offset: int) -> None:
        """Read an owned partition from this offset on.

        Raises `LogError` where it is not owned, or the offset lies outside its watermarks.
        """
        if source not in (self.owned or ()):
            raise LogError(f"{source} was to be read, but is not owned; wait until it is given")
        self._topics.check_positions({source: offset})
        self._member.start(source, offset)

    def stop(self, source: TopicPartition) -> None:
        """Read no more of a partition until it is started again."""
        self._member.stop(source)

    def poll(self, limit: int, timeout: float) -> list[Records]:
        """Return up to `limit` committed records of the started partitions; wait up to `timeout` s for one."""
        try:
            return self._member.poll(limit, timeout)
        except Fenced as fenced:
            self._outage.notify("the group has taken another client for this one; joining it anew")
            self._member.renew(fenced, self._writer.check_alone)
            return []

    def commit(
        self, outputs: Sequence[OutRecord], offsets: Mapping[TopicPartition, int], metadata: Metadata = ""
    ) -> None:
        """Write the outputs and the consumed offsets in one transaction: all of it, or (on an error) none.

        Without transactions outputs may be there where it raises.

        Raises
        ------
        CommitAborted
            Nothing was written, and the same call may be made again.
        OwnershipLost
            Nothing was written: one of the offsets is no longer this member's to commit.
        LogError
            Nothing was written, and trying again would not help.
        """
        self._member.check_owned(offsets)
        for source in offsets:
            self._writer.expect(source)
        try:
            self._writer.commit(outputs, offsets, metadata)
        except OwnershipLost as lost:
            self._member.lost()
            names = ", ".join(map(str, offsets))
            raise OwnershipLost(f"{names}: {lost}") from lost
        except Forbidden as error:
            # The brokers do not say which of the topics it is.
            told = self._topics.forbidden_of("Write", {record.topic for record in outputs})
            told = told or self._topics.forbidden_of("Read", {source.topic for source in offsets})
            raise LogError(told or str(error)) from error

    def close(self) -> None:
        """Give back the connections. Closing twice is harmless."""
        if not self._closed:
            self._closed = True
            clients = [
                self.__dict__.pop(name)
                for name in ("_writer", "_member", "_topics", "_admin")
                if name in self.__dict__
            ]
            close_within(lambda: _release(clients))

    # The clients, made when they are first needed: a log of which only topics are asked for needs one of them.

    @cached_property
    def _topics(self) -> Topics:
        return Topics(self._admin, self._outage)

    @cached_property
    def _admin(self) -> AdminClient:
        return self._new(AdminClient, client_properties(self._properties))

    @cached_property
    def _member(self) -> Member:
        properties = member_properties(self._properties, self._group, self._instance)
        incremental = is_incremental(self._properties)
        new = partial(self._new, Consumer, properties)
        wait = longest_rebalance(self._properties)
        return Member(new, self._outage, self._group, wait=wait, incremental=incremental)

    @cached_property
    def _writer(self) -> Transactions | AtLeastOnce:
        if self._transactional:
            name = transactional_id(self._group, self._instance)
            return Transactions(self._new_producer, self._new_sender, self._outage, self._member, name)
        sender = self._new_sender()
        return AtLeastOnce(self._new_producer(sender.on_delivery), sender, self._outage, self._member)

    def _new_sender(self) -> Sender:
        return Sender(self._topics.expect, self._topics.expect_still)

    def _new_producer(self, on_delivery: Callable[[Any, Any], None]) -> Producer:
        properties = (
            transaction_properties(self._properties, self._group, self._instance)
            if self._transactional
            else producer_properties(self._properties)
        )
        return self._new(Producer, {**properties, "on_delivery": on_delivery})

    def _new(self, kind: Callable[[dict[str, Any]], T], properties: Mapping[str, Any]) -> T:
        if self._closed:
            raise LogError("the log is closed; open it again")
        hide_values_of(self._properties)
        try:
            return kind({**properties, "logger": client_log, "error_cb": self._outage.on_error})
        except KafkaException as failure:
            told = without(explain(failure.args[0]), self._properties.values())
            raise LogError(f"the properties of the Kafka client: {told}") from None


def _release(clients: list[Any]) -> None:
    while clients:
        held = clients.pop()
        if isinstance(held, Member):
            held.leave()
