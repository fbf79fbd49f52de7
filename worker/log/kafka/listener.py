"""What the brokers' ports speak, asked without the client.

That one only says that it was cut off, as it does of a broker that is going down. One request is enough, by
which a client would begin to log in: a port that wants no login answers that too.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from typing import NamedTuple

from worker.log.kafka.properties import Properties

_SECONDS = 1.0  # for each port to connect and to answer
_PORT = 9092
_SASL_HANDSHAKE, _VERSION = 17, 1
_NO_LOGIN_HERE = 34  # ILLEGAL_SASL_STATE
_LONGEST = 1 << 16  # bytes of an answer that can be one


class Listener(NamedTuple):
    """What a port speaks."""

    tls: bool
    login: bool | None  # whether it wants one; None where it does not tell
    mechanisms: str = ""

    @property
    def protocols(self) -> list[str]:
        """The values of security.protocol that fit."""
        protocol = "SSL" if self.tls else "PLAINTEXT"
        return [f"SASL_{protocol}"] * (self.login is not False) + [protocol] * (self.login is not True)


def mismatch(properties: Properties) -> str | None:
    """Return what is wrong with `security.protocol`, None where nothing is, or no broker answers."""
    given = str(properties.get("security.protocol", "plaintext")).upper()
    for host, port in _addresses(str(properties.get("bootstrap.servers", ""))):
        found = ask(host, port)
        if found is None or given in found.protocols:
            continue
        speaks = "TLS" if found.tls else "plain text"
        if found.login is not None:
            speaks += f" and wants a login ({found.mechanisms})" if found.login else " and wants no login"
        return (
            f"expected the broker at {host}:{port} to speak as the property security.protocol says, which is "
            f"{given}; it speaks {speaks}; set security.protocol to {' or '.join(found.protocols)}, or "
            "correct the port in bootstrap"
        )
    return None


def ask(host: str, port: int) -> Listener | None:
    """Return what a port speaks, None where it is nothing known, or nobody answers."""
    answer = _exchange(host, port, None)
    if answer is not None:
        return Listener(False, *answer)
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    try:
        answer = _exchange(host, port, anybody)
    except ssl.SSLError as error:
        # An alert is TLS too: of a port that wants a certificate of the client, say.
        return Listener(True, None) if "ALERT" in (error.reason or "") else None
    return None if answer is None else Listener(True, *answer)


def _exchange(host: str, port: int, tls: ssl.SSLContext | None) -> tuple[bool | None, str] | None:
    """Begin to log in; return whether that is wanted and how, None where no broker answers."""
    try:
        with socket.create_connection((host, port), _SECONDS) as plain:
            if tls is None:
                return _begin_login(plain)
            with tls.wrap_socket(plain, server_hostname=host) as wrapped:
                return _begin_login(wrapped)
    except ssl.SSLError:
        raise
    except (OSError, struct.error, ValueError):
        return None


def _begin_login(connection: socket.socket) -> tuple[bool, str]:
    request = struct.pack(">hhih", _SASL_HANDSHAKE, _VERSION, 1, -1) + struct.pack(">h", 1) + b"?"
    connection.sendall(struct.pack(">i", len(request)) + request)
    (length,) = struct.unpack(">i", _receive(connection, 4))
    if not 0 < length < _LONGEST:
        raise ValueError("no answer of a broker")
    answer = _receive(connection, length)
    number, code = struct.unpack_from(">ih", answer)
    if number != 1:
        raise ValueError("no answer of a broker")
    return code != _NO_LOGIN_HERE, ", ".join(_strings(answer[6:]))


def _receive(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        some = connection.recv(length - len(received))
        if not some:
            raise ValueError("no answer of a broker")
        received += some
    return received


def _strings(data: bytes) -> Iterator[str]:
    """Yield the strings of an array."""
    (count,) = struct.unpack_from(">i", data)
    at = 4
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data, at)
        yield data[at + 2 : at + 2 + length].decode("ascii", "backslashreplace")
        at += 2 + length


def _addresses(bootstrap: str) -> Iterator[tuple[str, int]]:
    """Yield host and port of each broker, read as the client does."""
    for each in bootstrap.split(","):
        host, colon, port = each.rpartition("://")[2].strip().rpartition(":")
        if not colon or not port.isdigit():
            host, port = f"{host}{colon}{port}", str(_PORT)
        yield host.strip("[]"), int(port)
