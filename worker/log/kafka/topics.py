"""Topics and their bounds, as the brokers tell them."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import confluent_kafka as client
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, NewTopic, OffsetSpec

from worker.log.kafka.errors import MISSING, Needed, as_log_errors, forbidden
from worker.log.kafka.outage import Outage
from worker.log.port import LogError, TopicPartition, Watermarks

_BROKERS_CHOICE = -1  # of the replication factor
_LATE_SECONDS = 5.0
_UNLIMITED = "-1"
_WITH_PERMISSIONS = MappingProxyType({"include_authorized_operations": True})
_ANY_TIME = str(2**63 - 1)
_LOOK_SECONDS = 0.5
_ASKED = 3  # times before a topic is taken to be missing: not every broker has heard of a new one at once
_ASKED_SECONDS = 0.05  # between two of them

# What the client says of a partition that has none at the moment, or is not there at all.
_NO_LEADER = {KafkaError._NOENT, *MISSING}

# What a broker says of a client that has not heard of an election.
_OLD_LEADER = {
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}


class Topics:
    """Asks about topics and makes them.

    Parameters
    ----------
    admin : AdminClient
        A client of its own.
    outage : Outage
        How to wait where no broker answers.
    """

    def __init__(self, admin: AdminClient, outage: Outage) -> None:
        self._admin = admin
        self._outage = outage

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions the topic has, None where there is no such topic.

        Raises `LogError` where brokers do not say, as this client must not know.
        """
        for _ in range(_ASKED):
            count = self._described(topic)
            if count is not None:
                return count
            time.sleep(_ASKED_SECONDS)
        needed = Needed("Describe", "topic", topic)
        what = f"topic {topic!r}"
        with as_log_errors(what):
            allowed = self._outage.wait_for(what, partial(self._allowed, topic))
        if allowed is not None and AclOperation.DESCRIBE not in allowed:
            raise LogError(f"{what}: {forbidden(needed)} (Read and Write include it)")
        return None

    def _allowed(self, topic: str, seconds: float) -> Collection[AclOperation] | None:
        """Return what this client may do with a topic, None where there is none."""
        try:
            told = self._asked("describe_topics", client.TopicCollection([topic]), seconds, _WITH_PERMISSIONS)
        except KafkaException as failure:
            code = failure.args[0].code()
            if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return []
            if code in MISSING:
                return None
            raise
        operations: Collection[AclOperation] = told.authorized_operations
        return operations

    def forbidden_of(self, operation: str, topics: Collection[str]) -> str | None:
        """Return what to tell a person about the first topic with which this client may not do something.

        None where it may do that with all of them, or they are gone.
        """
        for topic in sorted(topics):
            what = f"what may be done with topic {topic!r}"
            with as_log_errors(what):
                allowed = self._outage.wait_for(what, partial(self._allowed, topic))
            if allowed is not None and AclOperation[operation.upper()] not in allowed:
                return forbidden(Needed(operation, "topic", topic))
        return None

    def _described(self, topic: str) -> int | None:
        """Return what one broker knows, another one at each call."""

        def look(seconds: float) -> int | None:
            # All topics: asked for one by name, a broker may be set up to create it. And not `describe_topics`,
            # which keeps a core busy for as long as any of the brokers is away.
            self._admin.poll(0)
            told = self._admin.list_topics(timeout=seconds).topics.get(topic)
            return len(told.partitions) if told is not None and told.error is None else None

        what = f"topic {topic!r}"
        with as_log_errors(what):
            return self._outage.wait_for(what, look)

    def existing(self, topic: str) -> int:
        """Return how many partitions the topic has; raise `LogError` where there is no such topic."""
        count = self.partitions(topic)
        if count is None:
            raise LogError(f"no topic {topic!r}; create it first, or check the name")
        return count

    def is_compacted(self, topic: str) -> bool:
        """Return whether the brokers keep only the last record of each key of this topic."""
        return "compact" in self._configured(topic)["cleanup.policy"]

    def expires(self, topic: str) -> bool:
        """Return whether the brokers delete records of this topic for their age, or for the size of the topic."""
        configured = self._configured(topic)
        limits = (configured["retention.ms"], configured["retention.bytes"])
        return "delete" in configured["cleanup.policy"] and limits != (_UNLIMITED, _UNLIMITED)

    def _configured(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)

        def describe(seconds: float) -> Any:
            self.existing(topic)
            try:
                return self._asked("describe_configs", [resource], seconds)
            except KafkaException as failure:
                if failure.args[0].code() not in MISSING:
                    raise
                raise KafkaException(KafkaError(KafkaError._WAIT_CACHE)) from failure  # of another broker

        what = f"the settings of topic {topic!r}"
        with as_log_errors(what, Needed("DescribeConfigs", "topic", topic)):
            told = self._outage.wait_for(what, describe)
        return {name: entry.value for name, entry in told.items()}

    def create(self, topic: str, partitions: int, *, compacted: bool) -> None:
        """Create a topic, with as many replicas as the brokers choose.

        Raises `LogError` where it exists with another number of partitions, or not compacted.
        """
        if partitions < 1:
            raise LogError(f"topic {topic!r} was to have {partitions} partitions; expected at least 1")
        if self._described(topic) is None:
            self._create(topic, partitions, compacted)
        count = self._outage.wait_for(f"the new topic {topic!r}", lambda _: self._seen(topic))
        if count != partitions:
            raise LogError(
                f"topic {topic!r} was to have {partitions} partitions, but it exists with {count}; "
                f"ask for {count}, or use another topic"
            )
        if compacted and not self.is_compacted(topic):
            raise LogError(f"topic {topic!r} was to be compacted, but it exists and is not; use another topic")

    def _create(self, topic: str, partitions: int, compacted: bool) -> None:
        # Results carry the time of their events, which may lie further ahead than brokers take it by default.
        config = {"message.timestamp.after.max.ms": _ANY_TIME}
        if compacted:
            config["cleanup.policy"] = "compact"

        def create(seconds: float) -> None:
            try:
                self._asked(
                    "create_topics", [NewTopic(topic, partitions, _BROKERS_CHOICE, config=config)], seconds
                )
            except KafkaException as failure:
                code = failure.args[0].code()
                if code == KafkaError.INVALID_CONFIG and config.pop("message.timestamp.after.max.ms", None):
                    create(seconds)  # the name came with Kafka 3.6
                elif code != KafkaError.TOPIC_ALREADY_EXISTS:  # somebody else was faster, or the answer was lost
                    raise

        what = f"topic {topic!r}, to be created"
        with as_log_errors(what, Needed("Create", "topic", topic)):
            self._outage.wait_for(what, create)

    def _seen(self, topic: str) -> int:
        """Return how many partitions the new topic has, once the broker that is asked has heard of it."""
        count = self._described(topic)
        if count is None:
            raise KafkaException(KafkaError(KafkaError._WAIT_CACHE))
        return count

    def watermarks(self, sources: Collection[TopicPartition]) -> dict[TopicPartition, Watermarks]:
        """Return the watermarks of partitions, open transactions included.

        Raises `LogError` where a partition is unknown.
        """
        lows = self._ends(sources, OffsetSpec.earliest())
        highs = self._ends(sources, OffsetSpec.latest())
        return {source: Watermarks(lows[source], highs[source]) for source in sources}

    def _ends(self, sources: Collection[TopicPartition], which: OffsetSpec) -> dict[TopicPartition, int]:
        asked = {source: client.TopicPartition(*source) for source in sources}

        def ask(seconds: float) -> dict[TopicPartition, int]:
            answers = self._admin.list_offsets(
                dict.fromkeys(asked.values(), which),
                isolation_level=client.IsolationLevel.READ_UNCOMMITTED,
                request_timeout=seconds,
            )
            self._admin.poll(0)
            try:
                ends = {source: _result(answers[partition], seconds).offset for source, partition in asked.items()}
            except KafkaException as failure:
                code = failure.args[0].code()
                if code in _OLD_LEADER:
                    self._admin.list_topics(timeout=seconds)  # the client does not look for the new one by itself
                if code not in _NO_LEADER:
                    raise
                for source in sources:
                    self.expect(source)
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)) from failure
            if min(ends.values()) < 0:  # "invalid" is a number too, and comes without an error in an election
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
            return ends

        names = ", ".join(sorted({source.topic for source in sources}))
        what = f"the watermarks of {names}"
        with as_log_errors(what, Needed("Describe", "topic", names)):
            return self._outage.wait_for(what, ask) if asked else {}

    def expect(self, source: TopicPartition) -> None:
        """Raise `LogError` where there is no such partition."""
        count = self.existing(source.topic)
        if not 0 <= source.partition < count:
            raise LogError(
                f"topic {source.topic!r} has partitions 0 to {count - 1}, but {source.partition} was named"
            )

    def expect_still(self, topics: Collection[str]) -> None:
        """Raise `LogError` where topics are gone that were there before, as far as the brokers answer at once."""
        gone = set(topics)
        for _ in range(_ASKED):
            try:
                gone -= self._admin.list_topics(timeout=_LOOK_SECONDS).topics.keys()
            except KafkaException:
                return
            if not gone:
                return
            time.sleep(_ASKED_SECONDS)
        raise LogError(
            f"expected the topic {min(gone)!r}, to which records are written; it was there, and is gone; create "
            "it anew, and start again"
        )

    def check_positions(self, positions: dict[TopicPartition, int]) -> None:
        """Raise `LogError` where a partition is unknown or a position lies outside its watermarks."""
        for source, (low, high) in self.watermarks(positions).items():
            if not low <= positions[source] <= high:
                raise LogError(
                    f"{source} was to be read from offset {positions[source]}; expected "
                    f"one between its low watermark {low} (older records are gone) and its high watermark {high}; "
                    "start from one of these"
                )

    def _asked(
        self, call: str, request: Any, seconds: float, more: Mapping[str, object] = MappingProxyType({})
    ) -> Any:
        """Return the only result of a call of the client."""
        # The client goes on working on the mapping, which must not be gone before the result is there.
        answers = getattr(self._admin, call)(request, request_timeout=seconds, **more)
        self._admin.poll(0)
        (answer,) = answers.values()
        return _result(answer, seconds)


def _result(answer: Any, seconds: float) -> Any:
    """Return the result of a call of the client, which may fail to end it in the time that it was given."""
    try:
        return answer.result(seconds + _LATE_SECONDS)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
