"""Which properties of librdkafka may be set, and which client is given which.

All of them may, but for those on which exactly-once and the worker's own bookkeeping depend. Those of
consumers are not given to producers, nor the other way round: the client would warn of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Value: TypeAlias = str | int | float | bool
Properties: TypeAlias = Mapping[str, Value]

_COMMITTED_WITH_RESULTS = "offsets are committed with the results, in one transaction"
_ORDER_AND_ONCE = "results must be written once, in order and to all in-sync replicas"
_LOUD = "a position without a record must stop the worker; it would skip records or read them again"
_CALLBACK = "it is no setting but a function of the program"
_BY_BROKER = "with group.protocol=consumer the broker decides it, see its properties group.consumer.*"

_REFUSED = {
    "group.id": "it is the setting `group`",
    "group.instance.id": "it is the name of the instance",
    "transactional.id": "it is made of the group and the name of the instance",
    "enable.auto.commit": _COMMITTED_WITH_RESULTS,
    "auto.commit.enable": _COMMITTED_WITH_RESULTS,
    "auto.commit.interval.ms": _COMMITTED_WITH_RESULTS,
    "enable.auto.offset.store": _COMMITTED_WITH_RESULTS,
    "offset.store.method": _COMMITTED_WITH_RESULTS,
    "isolation.level": "only committed records may be read; anything else shows what was given up",
    "auto.offset.reset": _LOUD,
    "enable.partition.eof": "it tells where a partition ends, without which a restore would not",
    "allow.auto.create.topics": "a misspelt topic must be found, not made",
    "enable.idempotence": _ORDER_AND_ONCE,
    "enable.gapless.guarantee": _ORDER_AND_ONCE,
    "acks": _ORDER_AND_ONCE,
    "request.required.acks": _ORDER_AND_ONCE,
    "max.in.flight": _ORDER_AND_ONCE,
    "max.in.flight.requests.per.connection": _ORDER_AND_ONCE,
    "retries": _ORDER_AND_ONCE,
    "message.send.max.retries": _ORDER_AND_ONCE,
    "queuing.strategy": _ORDER_AND_ONCE,
    "delivery.report.only.error": "the worker counts on reports of failures, and on no others",
    "log.queue": "the client's log goes where the worker's goes",
    "enabled_events": _CALLBACK,
    "opaque": _CALLBACK,
    "interceptors": _CALLBACK,
    "default_topic_conf": _CALLBACK,
    "logger": _CALLBACK,
    "on_delivery": _CALLBACK,
    "on_commit": _CALLBACK,
}

_EAGER = {"range", "roundrobin"}
_CLASSIC_ONLY = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "partition.assignment.strategy",
    "group.protocol.type",
)

_CONSUMER_ONLY = {
    "group.id",
    "group.instance.id",
    "partition.assignment.strategy",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.protocol.type",
    "group.protocol",
    "group.remote.assignor",
    "coordinator.query.interval.ms",
    "max.poll.interval.ms",
    "queued.min.messages",
    "queued.max.messages.kbytes",
    "fetch.wait.max.ms",
    "fetch.queue.backoff.ms",
    "fetch.message.max.bytes",
    "max.partition.fetch.bytes",
    "fetch.max.bytes",
    "fetch.min.bytes",
    "fetch.error.backoff.ms",
    "check.crcs",
    "consume.callback.max.messages",
    "offset.store.path",
    "offset.store.sync.interval.ms",
}
# Of these a reader, which belongs to no group, is given none.
_MEMBER_ONLY = {name for name in _CONSUMER_ONLY if name.startswith(("group.", "session.", "heartbeat."))} | {
    "partition.assignment.strategy",
    "max.poll.interval.ms",
}

_PRODUCER_ONLY = {
    "transaction.timeout.ms",
    "queue.buffering.max.messages",
    "queue.buffering.max.kbytes",
    "queue.buffering.max.ms",
    "linger.ms",
    "queue.buffering.backpressure.threshold",
    "compression.codec",
    "compression.type",
    "compression.level",
    "batch.num.messages",
    "batch.size",
    "sticky.partitioning.linger.ms",
    "request.timeout.ms",
    "message.timeout.ms",
    "delivery.timeout.ms",
    "produce.offset.report",
    "partitioner",
    "msg_order_cmp",
}

_WRITING_DEFAULTS: dict[str, Value] = {
    # Otherwise, when the last broker that a client knows is gone, it forgets who coordinates its transactions, and
    # never asks again: the call that waits for that does not come back.
    "metadata.recovery.strategy": "none",
}

_READING: dict[str, Value] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
}
_CLIENT_DEFAULTS: dict[str, Value] = {
    # A broker that is back is noticed soon; 10 s by default.
    "reconnect.backoff.max.ms": 2_000,
    # A transaction that begins right after another waits until the brokers have written the end of that one, some
    # milliseconds; 100 ms by default. It grows with each attempt.
    "retry.backoff.ms": 10,
}
_READING_DEFAULTS: dict[str, Value] = {
    # A partition that is started waits for the broker's answer to the request before.
    "fetch.wait.max.ms": 100,
    # A second by default, for which reading stands still whenever the queue was full.
    "fetch.queue.backoff.ms": 10,
    # What one client holds, fetched and not yet read.
    "queued.max.messages.kbytes": 32 << 10,
    "fetch.max.bytes": 16 << 20,
}


def refused_properties(properties: Mapping[str, object]) -> dict[str, str]:
    """Return those of the properties that may not be set, each with the reason."""
    refused = {name: reason for name, reason in _REFUSED.items() if name in properties}
    refused |= {name: _CALLBACK for name in properties if name.endswith("_cb")}
    if properties.get("group.protocol") == "consumer":
        refused |= {name: _BY_BROKER for name in _CLASSIC_ONLY if name in properties}
    else:
        strategies = str(properties.get("partition.assignment.strategy", "range")).split(",")
        if not {strategy.strip() for strategy in strategies} <= _EAGER:
            refused["partition.assignment.strategy"] = (
                "expected range or roundrobin; where partitions are to move one by one, "
                "set group.protocol=consumer instead"
            )
    return refused


def is_incremental(properties: Properties) -> bool:
    """Return whether the group moves partitions one by one, rather than all of them at each change."""
    return properties.get("group.protocol") == "consumer"


def longest_rebalance(properties: Properties) -> float:
    """Return the seconds after which a group has shared out its partitions, whatever becomes of its members.

    Members have max.poll.interval.ms to ask for their share, once more where an answer is lost; one that is dead
    is missed for session.timeout.ms.
    """
    poll, session = (
        float(properties.get(name, default)) / 1_000
        for name, default in (("max.poll.interval.ms", 300_000), ("session.timeout.ms", 45_000))
    )
    return 2 * poll + session


def client_properties(properties: Properties) -> dict[str, Value]:
    """Return the properties of a client that neither reads nor writes records."""
    given = {name: value for name, value in properties.items() if name not in _CONSUMER_ONLY | _PRODUCER_ONLY}
    return {**_CLIENT_DEFAULTS, **given}


def reader_properties(properties: Properties, group: str) -> dict[str, Value]:
    """Return the properties of a consumer that names its partitions itself.

    The client insists on a group. It is the worker's own, of which the reader does not become a member: another
    one would need permissions of its own.
    """
    given = {name: value for name, value in properties.items() if name not in _PRODUCER_ONLY | _MEMBER_ONLY}
    return {**_CLIENT_DEFAULTS, **_READING_DEFAULTS, **given, **_READING, "group.id": group}


def member_properties(properties: Properties, group: str, instance: str) -> dict[str, Value]:
    """Return the properties of a consumer that is a member of the group, always under the same name."""
    given = {name: value for name, value in properties.items() if name in _MEMBER_ONLY}
    if not is_incremental(properties):
        given.setdefault("partition.assignment.strategy", "range")
    return {**reader_properties(properties, group), **given, "group.instance.id": instance}


def producer_properties(properties: Properties) -> dict[str, Value]:
    """Return the properties of a producer whose records arrive once and in order."""
    given = {name: value for name, value in properties.items() if name not in _CONSUMER_ONLY}
    return {
        **_CLIENT_DEFAULTS,
        **_WRITING_DEFAULTS,
        **given,
        "enable.idempotence": True,
        "delivery.report.only.error": True,
    }


def transaction_properties(properties: Properties, group: str, instance: str) -> dict[str, Value]:
    """Return the properties of a producer that writes in transactions, always under the same name.

    With another name at each start the broker would keep the last transaction of the process before open until
    its time is over, and the offsets in it unreadable.
    """
    return {**producer_properties(properties), "transactional.id": transactional_id(group, instance)}


def transactional_id(group: str, instance: str) -> str:
    """Return the name under which an instance of a group writes."""
    return f"{group}-{instance}"
