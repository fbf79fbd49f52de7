"""The client's own log lines, which go where the worker's go."""

from __future__ import annotations

import logging
import re
import time

from worker.log.kafka.secrets import hidden

_PROPERTY = re.compile(r"(\[thrd:app\]:\s+[a-z0-9_.]+ = ).*")
_QUIET_SECONDS = 30.0
_REPEATED = {"FAIL", "ERROR"}  # said at each attempt to connect, ten times a second in an outage


class Sparing(logging.Filter):
    """Lets each client tell of failed connections only now and then: `Outage` tells when they matter."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[object, ...], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line may pass; its arguments are a code, the name of the client and the message."""
        if not isinstance(record.args, tuple) or record.args[0] not in _REPEATED:
            return True
        about, now = record.args[:2], time.monotonic()
        said = self._said.get(about)
        if said is not None and now - said < _QUIET_SECONDS:
            return False
        self._said[about] = now
        return True


class Hiding(logging.Filter):
    """Leaves the values of properties out, which the client tells at debug level."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change a line that tells a value; each may pass."""
        record.msg, record.args = _PROPERTY.sub(r"\1...", hidden(record.getMessage())), ()
        return True


client_log = logging.getLogger("kafka")
client_log.addFilter(Sparing())
client_log.addFilter(Hiding())
