"""Properties of the clients, errors sorted, and lines of the clients that are spared; no broker is asked."""

from __future__ import annotations

import ast
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

import worker
from worker.log.kafka import KafkaLog, refused_properties
from worker.log.kafka.client_log import Sparing
from worker.log.kafka.errors import Verdict, verdict
from worker.log.kafka.outage import Outage
from worker.log.kafka.properties import (
    client_properties,
    member_properties,
    producer_properties,
    reader_properties,
    transaction_properties,
)
from worker.log.port import LogError

NOWHERE = "127.0.0.1:1"  # nobody listens on this port


@pytest.mark.parametrize(
    "name",
    [
        "enable.auto.commit",
        "enable.auto.offset.store",
        "isolation.level",
        "auto.offset.reset",
        "enable.partition.eof",
        "group.id",
        "group.instance.id",
        "transactional.id",
        "enable.idempotence",
        "acks",
        "request.required.acks",
        "max.in.flight",
        "max.in.flight.requests.per.connection",
        "retries",
        "delivery.report.only.error",
        "error_cb",
        "on_delivery",
    ],
)
def test_what_exactly_once_depends_on_cannot_be_set(name: str) -> None:
    """A property that would undo a promise is refused with the reason, also by the log."""
    assert set(refused_properties({name: "1", "linger.ms": 3})) == {name}
    with pytest.raises(LogError, match=f"property {name} was set, but .*; leave it out"):
        KafkaLog({"bootstrap.servers": NOWHERE, name: "1"}, group="g", instance="i")


def test_the_protocol_decides_what_can_be_set() -> None:
    """With group.protocol=consumer the broker keeps time; without it assignors must take all at once."""
    timeouts = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1_000}
    assert refused_properties(timeouts) == {}
    assert set(refused_properties({**timeouts, "group.protocol": "consumer"})) == set(timeouts)
    assert refused_properties({"partition.assignment.strategy": "roundrobin,range"}) == {}
    for strategy in ("cooperative-sticky", "range,cooperative-sticky"):
        refused = refused_properties({"partition.assignment.strategy": strategy})
        assert "group.protocol=consumer" in refused["partition.assignment.strategy"]


def test_a_property_that_does_not_exist_is_refused() -> None:
    """A misspelt name, and a value that is none, are errors before anything is asked of a broker."""
    for wrong in ({"bootstrap.server": NOWHERE}, {"bootstrap.servers": NOWHERE, "socket.timeout.ms": "soon"}):
        with pytest.raises(LogError, match=r"bootstrap.server|socket.timeout.ms"):
            KafkaLog(wrong, group="g", instance="i")


GIVEN: Mapping[str, str | int | float | bool] = {
    "bootstrap.servers": NOWHERE,
    "sasl.username": "worker",
    "sasl.password": "secret",
    "ssl.ca.location": "/etc/ssl/ca.pem",
    "client.id": "mine",
    "retry.backoff.ms": 77,
    "fetch.max.bytes": 9_000_000,
    "max.poll.interval.ms": 60_000,
    "session.timeout.ms": 9_000,
    "linger.ms": 3,
    "compression.type": "zstd",
    "transaction.timeout.ms": 9_000,
}


def test_each_client_is_given_its_own_properties(caplog: pytest.LogCaptureFixture) -> None:
    """Properties go to the clients that know them, of which none then warns, and pass over the defaults."""
    everyone = {"sasl.username", "sasl.password", "ssl.ca.location", "client.id", "retry.backoff.ms"}
    reading, membership = {"fetch.max.bytes"}, {"max.poll.interval.ms", "session.timeout.ms"}
    writing = {"linger.ms", "compression.type", "transaction.timeout.ms"}
    made = {
        "client": (client_properties(GIVEN), everyone),
        "reader": (reader_properties(GIVEN, "g"), everyone | reading),
        "member": (member_properties(GIVEN, "g", "i"), everyone | reading | membership),
        "producer": (producer_properties(GIVEN), everyone | writing),
        "transactions": (transaction_properties(GIVEN, "g", "i"), everyone | writing),
    }
    for properties, expected in made.values():
        assert {name for name in properties if name in GIVEN} == expected | {"bootstrap.servers"}
        assert all(properties[name] == GIVEN[name] for name in expected)
    harmless = {name: value for name, value in GIVEN.items() if not name.startswith(("sasl.", "ssl."))}
    logger = logging.getLogger("kafka")
    consumers = [
        Consumer({**reader_properties(harmless, "g"), "bootstrap.servers": "", "logger": logger}),
        Consumer({**member_properties(harmless, "g", "i"), "bootstrap.servers": "", "logger": logger}),
    ]
    producer = Producer({**transaction_properties(harmless, "g", "i"), "bootstrap.servers": "", "logger": logger})
    for consumer in consumers:
        consumer.consume(1, 0.1)
        consumer.close()
    producer.poll(0.1)
    assert [record.getMessage() for record in caplog.records if "property" in record.getMessage()] == []


def test_names_that_brokers_know_stay_the_same() -> None:
    """A process that is started again is the same member and the same writer."""
    member = member_properties(GIVEN, "spam", "worker-0")
    assert (member["group.id"], member["group.instance.id"]) == ("spam", "worker-0")
    assert transaction_properties(GIVEN, "spam", "worker-0")["transactional.id"] == "spam-worker-0"
    assert "group.instance.id" not in reader_properties(GIVEN, "spam")
    assert "transactional.id" not in producer_properties(GIVEN)


# Errors


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KafkaError(KafkaError._TIMED_OUT, retriable=True), Verdict.WAIT),
        (KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS), Verdict.WAIT),
        (KafkaError(KafkaError._MSG_TIMED_OUT), Verdict.WAIT),
        (KafkaError(KafkaError._MSG_TIMED_OUT, txn_requires_abort=True), Verdict.ABORT),
        (KafkaError(KafkaError.INVALID_PRODUCER_EPOCH, txn_requires_abort=True), Verdict.ABORT),
        (KafkaError(KafkaError.ILLEGAL_GENERATION, txn_requires_abort=True), Verdict.STALE),
        (KafkaError(KafkaError.UNKNOWN_MEMBER_ID, txn_requires_abort=True), Verdict.LOST),
        (KafkaError(KafkaError.FENCED_INSTANCE_ID, txn_requires_abort=True), Verdict.LOST),
        (KafkaError(KafkaError._FENCED, fatal=True), Verdict.FENCED),
        (KafkaError(KafkaError._FATAL, "Static consumer fenced by other consumer"), Verdict.FENCED),
        (KafkaError(KafkaError._FATAL, "out of memory"), Verdict.REFUSED),
        (KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, txn_requires_abort=True), Verdict.REFUSED),
        (KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), Verdict.REFUSED),
        (KafkaError(KafkaError.UNKNOWN), Verdict.REFUSED),
    ],
)
def test_errors_are_sorted(error: Any, expected: Verdict) -> None:
    """Each error has one consequence, whichever call it comes from."""
    assert verdict(error) is expected


def test_short_outages_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is back soon is no news; one that stays away is told once, and once that it is back."""
    now = 100.0
    monkeypatch.setattr("worker.log.kafka.outage.time.monotonic", lambda: now)
    told: list[str] = []
    outage = Outage(told.append)
    outage.seen("restarting")
    now += 1.5
    outage.seen("restarting")
    outage.over()
    now += 1.5
    outage.seen("again")
    assert told == []
    for _ in range(5):
        now += 1.5
        outage.seen("again")
    outage.over()
    outage.over()
    assert told == ["no answer from the brokers (again); waiting for them", "the brokers answer again"]


def test_repeated_lines_of_the_client_are_spared() -> None:
    """Failed connections of one client are logged now and then, whatever else it says each time."""
    sparing = Sparing()

    def passes(code: str, client: str) -> bool:
        return sparing.filter(logging.LogRecord("kafka", 40, "", 0, "%s %s %s", (code, client, "..."), None))

    assert [passes("FAIL", "a"), passes("FAIL", "a"), passes("FAIL", "b"), passes("ERROR", "a")] == [
        True,
        False,
        True,
        True,
    ]
    assert all(passes("CONFWARN", "a") for _ in range(3))


def test_nothing_else_knows_the_client() -> None:
    """The client library is imported by the adapter, by benchmarks that measure it, and by nothing else.

    Its package has a client of schema registries, too, which knows no broker.
    """
    (root,) = worker.__path__
    users = {
        path.relative_to(root).parent.as_posix()
        for path in Path(root).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any(
            "confluent_kafka" in name and "schema_registry" not in name
            for name in [getattr(node, "module", "") or "", *(a.name for a in node.names)]
        )
    }
    assert users - {"bench"} == {"log/kafka"}
