"""What to make of an error of the client or the broker: the one place that sorts them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any, Literal, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from worker.log.kafka.secrets import hidden
from worker.log.port import LogError


class Verdict(Enum):
    """What is to be done about an error."""

    WAIT = auto()  # the same call may succeed later
    ABORT = auto()  # give the transaction up; it may be sent again
    STALE = auto()  # the group has changed, and this member has not heard of it yet
    LOST = auto()  # this member is no longer the one that the group takes it for
    FENCED = auto()  # another process goes by the same name
    REFUSED = auto()  # it would be the same again


_STALE = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.REBALANCE_IN_PROGRESS,
}

_LOST = {
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._MAX_POLL_EXCEEDED,
}

_FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.UNRELEASED_INSTANCE_ID,
}

_WAIT = {
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError._WAIT_CACHE,
    KafkaError._RETRY,
    KafkaError._PURGE_QUEUE,
    KafkaError._PURGE_INFLIGHT,
    KafkaError._NODE_UPDATE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.NOT_CONTROLLER,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.CONCURRENT_TRANSACTIONS,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
}

# Codes of a topic or partition that the client or the broker does not know.
MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}

_PERMISSION = "allow it; anabranch topics create SETTINGS --acls User:NAME shows all that a worker needs"

# What to do about errors that stay the same however often one tries.
_ADVICE = {
    KafkaError.MSG_SIZE_TOO_LARGE: "raise the property message.max.bytes here and max.message.bytes of the "
    "topic, or make smaller records",
    KafkaError.RECORD_LIST_TOO_LARGE: "lower the property batch.size, or raise max.message.bytes of the topic",
    KafkaError.INVALID_RECORD: "a compacted topic wants a key in each record, and a timestamp must lie within "
    "message.timestamp.before.max.ms and message.timestamp.after.max.ms of the topic",
    KafkaError.INVALID_TIMESTAMP: "raise message.timestamp.before.max.ms and message.timestamp.after.max.ms "
    "of the topic",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "create the topic, or check the name",
    KafkaError._UNKNOWN_TOPIC: "create the topic, or check the name",
    KafkaError._UNKNOWN_PARTITION: "check the number of partitions",
    KafkaError.TOPIC_EXCEPTION: "use letters, digits, '.', '_' and '-', at most 249",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _PERMISSION,
    KafkaError.GROUP_AUTHORIZATION_FAILED: _PERMISSION,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: _PERMISSION,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _PERMISSION,
    KafkaError._SSL: "correct the property ssl.ca.location, the authority that signed the brokers' "
    "certificates, or the names in bootstrap, which must be those in the certificates; where the brokers want "
    "a certificate too, set ssl.certificate.location and ssl.key.location",
    KafkaError._AUTHENTICATION: "correct the security.* and sasl.* properties",
    KafkaError.SASL_AUTHENTICATION_FAILED: "correct the security.* and sasl.* properties",
    KafkaError.OFFSET_METADATA_TOO_LARGE: "raise offset.metadata.max.bytes of the broker",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "lower the property transaction.timeout.ms, or raise "
    "transaction.max.timeout.ms of the broker",
    KafkaError.INVALID_SESSION_TIMEOUT: "keep session.timeout.ms within group.min.session.timeout.ms and "
    "group.max.session.timeout.ms of the broker",
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: "give all members of the group the same group.protocol and "
    "partition.assignment.strategy",
    KafkaError.INVALID_REPLICATION_FACTOR: "start more brokers, or lower default.replication.factor",
    KafkaError.POLICY_VIOLATION: "create the topic as the cluster's policy wants it",
    KafkaError.UNSUPPORTED_VERSION: "use a newer broker, or the classic group.protocol",
    KafkaError._UNSUPPORTED_FEATURE: "use a newer broker, or the classic group.protocol",
    KafkaError._AUTO_OFFSET_RESET: "the records from there on are gone, or never were; start from another offset",
}


def verdict(error: Any) -> Verdict:
    """Return what is to be done about an error of the client."""
    code = error.code()
    if error.fatal() or code == KafkaError._FATAL:
        # Of a client that is beyond repair the code often says no more than that; the reason is in the words.
        words = ("fenced", "instance ID is still used")
        fenced = code in _FENCED or any(word in error.str() for word in words)
        return Verdict.FENCED if fenced else Verdict.REFUSED
    if code in _STALE:
        return Verdict.STALE
    if code in _LOST:
        return Verdict.LOST
    if code in _ADVICE:
        return Verdict.REFUSED
    if error.txn_requires_abort():
        return Verdict.ABORT
    if error.retriable() or code in _WAIT:
        return Verdict.WAIT
    return Verdict.REFUSED


class Needed(NamedTuple):
    """What a call must be allowed to do."""

    operation: str  # as brokers call it
    resource: Literal["topic", "group", "transactional-id"]
    name: str


_FORBIDDEN = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
}


def forbidden(needed: Needed) -> str:
    """Return what to tell a person whose brokers do not allow something."""
    operation, resource, name = needed
    what = f"the {resource.replace('-', ' ')} {name!r}"
    return (
        f"expected the permission {operation} for {what}; the brokers refuse it; give it: kafka-acls.sh --add "
        f"--allow-principal User:NAME --operation {operation} --{resource} {name}; all that a worker needs: "
        "anabranch topics create SETTINGS --acls User:NAME"
    )


def explain(error: Any, *needed: Needed) -> str:
    """Return what an error says, without secrets, and what to do; `needed` is what the call must be allowed."""
    for each in needed:
        if _FORBIDDEN.get(error.code()) == each.resource:
            return forbidden(each)
    advice = _ADVICE.get(error.code())
    told = f"{hidden(error.str())} ({error.name()})"
    return f"{told}; {advice}" if advice else told


class Fenced(LogError):
    """The group knows somebody else by the name of this member: another process, or this one's own lost request.

    A member that hears nothing for longer than its session asks to be let in anew, once more where nothing comes
    back. Brokers that wake up answer all of it, in any order; whoever they answered last is the member, and the
    client takes the other answer for the end.
    """


class Forbidden(LogError):
    """The brokers do not allow something with a topic, and do not say which."""


@contextmanager
def as_log_errors(what: str, *needed: Needed) -> Iterator[None]:
    """Turn errors of the client into `LogError`, which says what was being done, and what it `needed`."""
    try:
        yield
    except KafkaException as failure:
        raise LogError(f"{what}: {explain(failure.args[0], *needed)}") from failure
