"""What `anabranch publish` reads: a file, or a generated stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

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
    """

    name: str
    entries: Iterator[Entry]
    notes: Mapping[str, str]
    size: Callable[[], int]
    total: int | None
    position: Callable[[int], int]
    in_bytes: bool


def file_source(file: str, format_name: str, columns: Columns, encoding: str, stack: ExitStack) -> Source:
    """Open a file, - for standard input; raise `SourceError` where there is none."""
    stream, total = _open(file, stack)
    lines = Lines("standard input" if file == "-" else file, stream, encoding)
    return Source(
        name=lines.name,
        entries=FORMATS[format_name].read(lines, columns),
        notes=lines.notes,
        size=lambda: lines.size,
        total=total,
        position=lambda _: stream.tell() if total else 0,  # a pipe has no position
        in_bytes=True,
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
