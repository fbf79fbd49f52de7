"""The lines of a file or of standard input, gzip or not, and how far they have been read."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import IO, cast

LONGEST = 16 << 20  # characters of a line; a file without line ends must not fill the memory


class SourceError(Exception):
    """A file cannot be read at all; the message says what was expected, what came and what to do."""


class Lines:
    """Iterates over the lines of a stream, with their ends, as UTF-8 text.

    Bytes that are not UTF-8 become lone surrogates, for the reader to refuse with the line.

    Parameters
    ----------
    name
        What messages call the stream.
    stream
        Binary; gzip is recognised by its first two bytes.

    Attributes
    ----------
    number
        The number of the last line read, from 1.
    size
        How many characters were read.
    notes
        What a reader found worth telling, once each, with the place of the first time.

    Raises
    ------
    SourceError
        From the iteration: where the gzip data is damaged, a line is endless, or reading fails.
    """

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self.name = name
        self.number = 0
        self.size = 0
        self.notes: dict[str, str] = {}
        peekable = io.BufferedReader(cast(io.RawIOBase, stream))
        zipped = peekable.peek(2)[:2] == b"\x1f\x8b"
        binary = cast(IO[bytes], gzip.GzipFile(fileobj=peekable)) if zipped else peekable
        # Line ends stay, and only \n is one: a carriage return may be part of a message.
        self._text = io.TextIOWrapper(binary, "utf-8-sig", errors="surrogateescape", newline="\n")

    def note(self, what: str) -> None:
        """Keep something that a person should know, once."""
        self.notes.setdefault(what, f"{self.name}:{self.number}: {what}")

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            line = self._text.readline(LONGEST)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SourceError(
                f"{self.name}:{self.number + 1}: expected whole gzip data, got damaged data ({error}); "
                "copy the file again"
            ) from error
        except OSError as error:
            raise SourceError(f"{self.name}: cannot be read ({error}); check the path") from error
        if not line:
            raise StopIteration
        self.number += 1
        self.size += len(line)
        if len(line) == LONGEST and not line.endswith("\n"):
            raise SourceError(
                f"{self.name}:{self.number}: expected lines of at most {LONGEST} characters, got more; "
                "check that the file is text"
            )
        return line
