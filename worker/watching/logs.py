"""The worker's logs: text where a person reads along, JSON lines otherwise; times in UTC.

Whoever logs passes `key=value` pairs. Events hold personal data, so bytes and arrays are never written,
only how many bytes they have; tracebacks go without local variables for the same reason.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import MutableMapping
from io import StringIO
from typing import Any, Literal, TextIO

import numpy as np
import structlog

from worker.safe_text import printable, printable_lines

_HANDLER = "anabranch"


def configure(level: str, format: Literal["auto", "text", "json"], stream: TextIO) -> None:
    """Send all logs of the process, those of libraries and warnings included, to a stream.

    Parameters
    ----------
    level : str
        `debug`, `info`, `warning` or `error`.
    format : str
        `text`, `json`, or `auto`: text where the stream is a terminal.
    stream : TextIO
        Usually `sys.stderr`.
    """
    terminal = stream.isatty()
    text = format == "text" or (format == "auto" and terminal)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _hide_bytes,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # a second call of this function must reach loggers already made
    )
    handler = logging.StreamHandler(stream)
    handler.set_name(_HANDLER)
    handler.addFilter(_hide_arguments)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(text, colors=terminal),
            ],
        )
    )
    root = logging.getLogger()
    for old in [old for old in root.handlers if old.get_name() == _HANDLER]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(level.upper())
    warnings.showwarning = _warned
    # At debug level the compiler prints every bytecode that it looks at.
    for chatty in ("numba", "httpx", "httpx2"):  # the last two tell of each request to a schema registry
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _warned(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001 - as Python calls it
    line: str | None = None,  # noqa: ARG001
) -> None:
    """Log a warning, so that whoever reads JSON lines finds nothing else among them."""
    place = f"{filename}:{lineno}"
    structlog.get_logger("warnings").warning(str(message), category=category.__name__, place=place)


def _renderers(text: bool, *, colors: bool) -> list[structlog.typing.Processor]:
    if text:
        return [_escape, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=_traceback)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]


def _escape(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape what could steer a terminal, or look like another line; as JSON it is escaped anyway."""
    for name in [name for name in event if name not in ("exc_info", "stack_info")]:
        event[_safe(name)] = _safe(event.pop(name))
    return event


def _safe(value: Any) -> Any:
    return printable(value, len(value)) if isinstance(value, str) else value


def _traceback(stream: TextIO, exception: structlog.typing.ExcInfo) -> None:
    """Write a traceback without colours or the values of variables."""
    written = StringIO()
    structlog.dev.plain_traceback(written, exception)
    stream.write(printable_lines(written.getvalue()))


def _hide_bytes(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if not name.startswith("_"):  # the formatter's own entries
            event[name] = _shown(value)
    return event


def _hide_arguments(record: logging.LogRecord) -> bool:
    """Hide bytes among the arguments of a message that a library formats itself."""
    if isinstance(record.args, tuple):
        record.args = tuple(_shown(value) for value in record.args)
    return True


def _shown(value: Any) -> Any:
    """Return what may be logged of a value."""
    match value:
        case bytes() | bytearray() | memoryview() | np.ndarray():
            size = len(value) if isinstance(value, bytes | bytearray) else value.nbytes
            return f"<{size} bytes>"
        case np.generic():
            return value.item()
        case tuple() | list() | set() | frozenset():
            return [_shown(item) for item in value]
        case dict():
            return {str(_shown(name)): _shown(item) for name, item in value.items()}
    return value
