"""Clusters that want TLS, a login and permissions: what is wrong is told, in seconds, with what to do."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.support.secured import Secured
from worker.log.kafka import KafkaLog
from worker.log.kafka.listener import Listener, ask, mismatch
from worker.log.kafka.properties import Properties
from worker.log.port import LogError

SECONDS = 8.0  # in which a person is told; on a busy machine


def refusal(properties: Properties) -> str:
    """Return the error by which the first question to the brokers ends."""
    started = time.monotonic()
    with KafkaLog(properties, group="g", instance="i") as log, pytest.raises(LogError) as error:
        log.partitions("events")
    assert time.monotonic() - started < SECONDS
    return str(error.value)


# --- what is spoken


def test_a_wrong_authority_is_told(secured: Secured) -> None:
    """A certificate that the client cannot trust ends it, with the property to correct."""
    user = secured.user()
    for wrong in (
        {"ssl.ca.location": str(secured.stranger.authority)},
        {"bootstrap.servers": secured.address.replace("127.0.0.1", "localhost")},
    ):
        said = refusal({**user, **wrong})
        assert "certificate verify failed" in said
        assert "correct the property ssl.ca.location" in said


@pytest.mark.parametrize(
    ("protocol", "open_port", "told"),
    [
        ("SASL_SSL", True, "it speaks plain text and wants no login; set security.protocol to PLAINTEXT,"),
        ("SSL", True, "it speaks plain text and wants no login; set security.protocol to PLAINTEXT,"),
        ("PLAINTEXT", False, r"it speaks TLS and wants a login \(SCRAM-SHA-512\); set .* to SASL_SSL,"),
        ("SASL_PLAINTEXT", False, r"it speaks TLS and wants a login \(SCRAM-SHA-512\); set .* to SASL_SSL,"),
        ("SSL", False, r"it speaks TLS and wants a login \(SCRAM-SHA-512\); set .* to SASL_SSL,"),
    ],
)
def test_a_port_that_speaks_otherwise_is_told(secured: Secured, protocol: str, open_port: bool, told: str) -> None:
    """A client and a port that speak past each other end in seconds, with the value that fits."""
    user = {**secured.user(), "security.protocol": protocol}
    if open_port:
        user["bootstrap.servers"] = secured.cluster.bootstrap
    if "SASL" not in protocol:
        user = {name: value for name, value in user.items() if not name.startswith("sasl.")}
    if "SSL" not in protocol:
        del user["ssl.ca.location"]
    said = refusal(user)
    assert re.search(told, said)
    assert f"which is {protocol};" in said


def test_a_wrong_login_is_told(secured: Secured) -> None:
    """A wrong password ends the client, and is not repeated."""
    user = {**secured.user(), "sasl.password": "hunter2"}
    said = refusal(user)
    assert "did not let this client in" in said
    assert "hunter2" not in said


def test_a_port_is_told_by_its_answer(secured: Secured) -> None:
    """What a port speaks is found out without the client, and a client that fits is not suspected."""
    host, _, port = secured.address.rpartition(":")
    assert ask(host, int(port)) == Listener(True, True, "SCRAM-SHA-512")
    assert ask(host, secured.cluster.nodes[0].port) == Listener(False, False, "")
    assert mismatch(secured.user()) is None
    assert mismatch({"bootstrap.servers": f"nowhere.invalid,{secured.cluster.bootstrap}"}) is None


@pytest.fixture(params=[b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x00\x00\x06\x00\x00\x00\x01\x00", None])
def other_port(request: pytest.FixtureRequest) -> Iterator[int]:
    """Return a port that says something at once and closes, or (None) says nothing."""
    with ExitStack() as held:
        server = held.enter_context(socket.create_server(("127.0.0.1", 0)))

        def serve() -> None:
            while True:
                try:
                    connection = held.enter_context(server.accept()[0])
                except OSError:
                    return
                if request.param is not None:
                    with suppress(OSError):
                        connection.sendall(request.param)
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_what_is_no_broker_is_waited_for(other_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that is no broker's, such as a proxy's whose broker is away, gives no reason to stop waiting."""
    monkeypatch.setattr("worker.log.kafka.listener._SECONDS", 0.2)
    assert ask("127.0.0.1", other_port) is None
    for protocol in ("PLAINTEXT", "SASL_SSL"):
        properties = {"bootstrap.servers": f"127.0.0.1:{other_port}", "security.protocol": protocol}
        assert mismatch(properties) is None


def test_addresses_are_read_as_by_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each broker that is named is asked, with or without a port, and by its IPv6 address."""
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr("worker.log.kafka.listener.ask", lambda *address: asked.append(address))
    assert mismatch({"bootstrap.servers": "a:1, b, PLAINTEXT://c:2 ,[::1]:3"}) is None
    assert asked == [("a", 1), ("b", 9092), ("c", 2), ("::1", 3)]
