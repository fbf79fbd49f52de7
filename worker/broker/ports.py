"""Ports of the loopback interface."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Collection, Iterable

from worker.broker.errors import BrokerError

HOST = "127.0.0.1"

# Below the ranges from which systems take the ports of outgoing connections: nobody gets the port of a node
# that is down for a while, least of all a client that tries to reach it and would be connected to itself.
_RANGE = range(20_000, 32_000)


def free_ports(count: int, beside: Collection[int] = ()) -> list[int]:
    """Return ports that nobody listens on, drawn at random, different ones and none of those `beside` them."""
    # Not the shared generator: with its seed set, two test runs at a time would draw the same ports.
    candidates = random.SystemRandom().sample(_RANGE, len(_RANGE))
    free = (port for port in candidates if port not in beside and is_free(port))
    return [next(free) for _ in range(count)]


def is_free(port: int) -> bool:
    """Return whether a node could listen on the port."""
    with socket.socket() as probe:
        # As a node does it: connections that an earlier one has closed do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        return True


def expect_free(ports: Iterable[int]) -> None:
    """Raise `BrokerError` where a port is taken."""
    for port in ports:
        if not is_free(port):
            raise BrokerError(
                f"expected port {port} of {HOST} to be free, something listens there; "
                "stop it or choose another port"
            )
