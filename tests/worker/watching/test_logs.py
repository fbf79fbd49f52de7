import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import structlog

from worker.watching.logs import configure


class Terminal(io.StringIO):
    """A stream that a person reads."""

    def isatty(self) -> bool:
        """Say that somebody is there."""
        return True


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    """Leave the process's logging as it was."""
    root, numba = logging.getLogger(), logging.getLogger("numba")
    handlers, levels = list(root.handlers), (root.level, numba.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    numba.setLevel(levels[1])
    structlog.reset_defaults()


def _lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_lines() -> None:
    """Where no person reads, each entry is one line of JSON with its time in UTC."""
    stream = io.StringIO()
    configure("info", "auto", stream)
    structlog.get_logger("worker.run").info("committed", offset=np.int64(7), topic="sms")
    (line,) = _lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "committed",
        "level": "info",
        "logger": "worker.run",
        "offset": 7,
        "topic": "sms",
    }


@pytest.mark.parametrize(
    ("format", "stream"), [("auto", Terminal()), ("text", io.StringIO())], ids=["terminal", "asked for"]
)
def test_text(format: Any, stream: io.StringIO) -> None:
    """On a terminal, or where it is asked for, entries are text with key=value pairs."""
    configure("info", format, stream)
    structlog.get_logger("worker.run").info("committed", offset=7)
    assert "committed" in stream.getvalue()
    assert "\x1b" in stream.getvalue() or "offset=7" in stream.getvalue()
    assert ("\x1b" in stream.getvalue()) is stream.isatty()


def test_libraries_log_the_same_way() -> None:
    """What a library logs through the standard library has the same form."""
    stream = io.StringIO()
    configure("info", "json", stream)
    logging.getLogger("some.library").warning("%d of %s", 3, "these")
    (line,) = _lines(stream)
    assert (line["event"], line["level"], line["logger"]) == ("3 of these", "warning", "some.library")


def test_warnings_are_entries() -> None:
    """A warning is an entry like others, in one line, with what it is and where it comes from."""
    stream = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        configure("info", "json", stream)
        warnings.warn("nothing is kept", RuntimeWarning, stacklevel=1)
    (line,) = _lines(stream)
    assert (line["event"], line["level"], line["category"]) == ("nothing is kept", "warning", "RuntimeWarning")
    assert line["place"].startswith(__file__)


def test_level() -> None:
    """Entries below the level are dropped, and the compiler's chatter always."""
    stream = io.StringIO()
    configure("warning", "json", stream)
    structlog.get_logger().info("no")
    configure("debug", "json", stream)
    logging.getLogger("numba.core").debug("no")
    structlog.get_logger().debug("yes")
    assert [line["event"] for line in _lines(stream)] == ["yes"]


def test_configuring_twice() -> None:
    """The last stream configured is the only one written to, by loggers already made too."""
    first, second = io.StringIO(), io.StringIO()
    configure("info", "json", first)
    logger = structlog.get_logger()
    logger.info("one")
    configure("info", "json", second)
    logger.info("two")
    assert [line["event"] for line in _lines(first)] == ["one"]
    assert [line["event"] for line in _lines(second)] == ["two"]


@pytest.mark.parametrize("format", ["text", "json"])
def test_bytes_of_events_are_never_written(format: Any) -> None:
    """Bytes, arrays and the locals of a traceback stay out of the logs, wherever they are put."""
    stream = io.StringIO()
    configure("info", format, stream)
    secret = b"SECRET"
    logger = structlog.get_logger()
    logger.info("a", value=secret, view=memoryview(secret), array=np.frombuffer(secret, np.uint8))
    logger.info("b", values=[secret, {"key": (bytearray(secret), {secret: 1})}])
    logging.getLogger("some.library").warning("%r", secret)
    try:
        raise ValueError("bad")
    except ValueError:
        logger.exception("c")
        logging.getLogger("some.library").exception("d %s", secret)
    text = stream.getvalue()
    assert "SECRET" not in text
    assert str(list(secret))[1:-1] not in text  # as an array would show it
    assert text.count("<6 bytes>") == 8
    assert text.count("ValueError: bad") == 2
