"""The client's own log lines, which go where the worker's go."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping

from worker.log.kafka.checking import without_values

_SECRET = re.compile(r"password|secret|token|pem|jaas|oauth|key|credential|username")  # names of properties
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
    """Leaves out the values of the client's properties, which it tells at debug level."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: dict[str, str] = {}  # by name, of the clients made last

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the line where it tells a value; it always passes."""
        record.msg, record.args = self._hidden(record.getMessage()), ()
        return True

    def _hidden(self, line: str) -> str:
        line = without_values(line, self.secrets)
        return re.sub(r"(\[thrd:app\]:\s+[a-z0-9_.]+ = ).*", r"\1...", line)


_hiding = Hiding()
client_log = logging.getLogger("kafka")
client_log.addFilter(Sparing())
client_log.addFilter(_hiding)


def hide_values_of(properties: Mapping[str, object]) -> None:
    """Leave the values of secret properties out of all lines from now on."""
    _hiding.secrets |= {
        f"{name} {value}": str(value) for name, value in properties.items() if _SECRET.search(name) and value
    }
