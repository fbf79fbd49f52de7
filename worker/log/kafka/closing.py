"""Closing clients, which may wait for a broker that is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

CLOSE_SECONDS = 10.0  # to leave the group in an orderly way; after that it finds out by the session timeout

_logger = structlog.get_logger("kafka")


def close_within(close: Callable[[], object], seconds: float = CLOSE_SECONDS) -> None:
    """Call `close`, and leave it to itself where it takes longer than `seconds`."""
    thread = threading.Thread(target=close, name="close kafka client", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        _logger.warning("a client could not be closed, the brokers do not answer", waited_seconds=seconds)
