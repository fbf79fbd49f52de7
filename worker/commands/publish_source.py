"""What `anabranch publish` reads: a file, or a generated stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import IO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from worker.sources import FORMATS, Columns, Entry, Lines, SourceError
from worker.sources.generators import Generator
from worker.sources.generators.events import events


@dataclass(frozen=True)
class Source:
    """Events, and how far they have been read.

    Parameters
    ----------
    name
        What messages call it.
    entries
        What comes out of it, once.
    notes
        What was found worth telling by the end.
    size
        Tells how many bytes were read so far, unzipped.
    total
        How far a progress bar goes: bytes of the file, or events; None where that is not known.
    position
        Tells how far it has come, from the count of events.
    in_bytes
        Whether that is in bytes.
    known
        To be filled with features of the topic, see `Lines`.
    """

    name: str
    entries: Iterator[Entry]
    notes: Mapping[str, str]
    size: Callable[[], int]
    total: int | None
    position: Callable[[int], int]
    in_bytes: bool
    known: set[str]


def file_source(file: str, format_name: str, columns: Columns, encoding: str, stack: ExitStack) -> Source:
    """Open a file, - for standard input; raise `SourceError` where there is none."""
    lines, source = lines_source(file, encoding, stack)
    return replace(source, entries=FORMATS[format_name].read(lines, columns))


def lines_source(file: str, encoding: str, stack: ExitStack) -> tuple[Lines, Source]:
    """Open a file; return it, and how far it has been read, without entries."""
    stream, total = _open(file, stack)
    lines = Lines("standard input" if file == "-" else file, stream, encoding)
    return lines, Source(
        name=lines.name,
        entries=iter(()),
        notes=lines.notes,
        size=lambda: lines.size,
        total=total,
        position=lambda _: stream.tell() if total else 0,  # a pipe has no position
        in_bytes=True,
        known=lines.known,
    )


def generated_source(described: str, stream: Generator, ids: bool, limit: int | None, _: ExitStack) -> Source:
    """Return a generated stream, of which `limit` events are wanted."""
    return Source(
        name=described,
        entries=events(stream, ids=ids),
        notes={},
        size=lambda: 0,
        total=limit,
        position=lambda events: events,
        in_bytes=False,
        known=set(),
    )


def _open(file: str, stack: ExitStack) -> tuple[IO[bytes], int | None]:
    """Return the file as bytes, and its size where that is known."""
    if file == "-":
        return sys.stdin.buffer, None
    try:
        stream: IO[bytes] = stack.enter_context(open(file, "rb"))  # noqa: SIM115  # the stack closes it
        return stream, os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise SourceError(
            f"{file}: expected a file to read, got none ({error.strerror}); check the path"
        ) from error


@contextmanager
def show_progress(source: Source, what: str = "events") -> Iterator[Callable[[int], None]]:
    """Show on a terminal how far it has come; yield what is to be told the count."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (
        TextColumn(f"{{task.fields[events]:,}} {what}"),
        BarColumn() if source.total else SpinnerColumn(),
        *([DownloadColumn()] if source.in_bytes else []),
        TimeRemainingColumn() if source.total else TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=source.total, events=0)
        yield lambda events: progress.update(task, completed=source.position(events), events=events)
