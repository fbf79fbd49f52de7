"""What several commands need: settings or a clear message, a worker with its page, an end on signals."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, LogError
from worker.safe_text import printable_lines
from worker.settings import Settings, load
from worker.settings.file import SettingsError

_STOPPING = (signal.SIGTERM, signal.SIGINT)

settings_argument = click.argument(
    "settings_file", metavar="SETTINGS", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)


def fail(message: str) -> NoReturn:
    """End the command with a message for a person and exit code 1."""
    raise click.ClickException(printable_lines(message))


def show_command(path: Path, topic: str) -> str:
    """Return the command that shows a topic of a log, or of the log that settings name, ready to be copied."""
    return f"anabranch show {shlex.quote(str(path))} --topic {shlex.quote(topic)}"


def read_settings(path: Path, *, thorough: bool = False) -> Settings:
    """Return the settings of a file, or end the command with every problem, one a line; see `load`."""
    try:
        return load(path, os.environ, thorough=thorough)
    except SettingsError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        count = len(error.problems)
        fail(f"{count} problem{'s' if count > 1 else ''} in the settings")


def in_transactions_of(records: int, settings: Settings) -> Settings:
    """Return the settings with another number of records in a poll and transaction."""
    transaction = settings.transaction.model_copy(update={"records": records})
    return settings.model_copy(update={"transaction": transaction})


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn the errors that a person can do something about into messages."""
    try:
        yield
    except LogError as error:
        fail(str(error))


def configure_logs(settings: Settings) -> None:
    """Send the logs to standard error as the settings say."""
    from worker.watching import logs  # takes its time, which commands that log nothing do not have

    logs.configure(settings.logging.level, settings.logging.format, sys.stderr)


@contextmanager
def open_log(
    settings: Settings, pulse: Callable[[], None] = lambda: None, *, role: str = "", create: bool = False
) -> Iterator[Log]:
    """Open the log that the settings name.

    Parameters
    ----------
    settings : Settings
        Whose log it is.
    pulse : callable, optional
        Called while a call waits for brokers that are away. What it raises ends the wait.
    role : str, optional
        Added to the name of the instance, by commands that must not be taken for the worker itself.
    create : bool, optional
        Whether to make the file of an embedded log where there is none.
    """
    with ExitStack() as stack:
        if settings.log.kafka is None:
            assert settings.log.embedded is not None
            yield stack.enter_context(EmbeddedLog(settings.log.embedded, group=settings.group, create=create))
        else:
            import structlog

            from worker.log.kafka import KafkaLog  # loads the client

            kafka = settings.log.kafka
            yield stack.enter_context(
                KafkaLog(
                    kafka.resolved(),
                    group=settings.group,
                    instance=kafka.name + role,
                    transactional=kafka.guarantee == "exactly_once",
                    notify=structlog.get_logger("anabranch").warning,
                    pulse=pulse,
                )
            )


@contextmanager
def until_signalled() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether SIGTERM or SIGINT has come. A second one ends the process at once."""
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        # A handler in Python would have to wait for what the first signal waits for, a hanging commit say.
        for each in _STOPPING:
            signal.signal(each, signal.SIG_DFL)

    previous = {number: signal.signal(number, note) for number in _STOPPING}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
