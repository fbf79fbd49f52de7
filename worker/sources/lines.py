"""The lines of a file or of standard input, gzip or not, and how far they have been read."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from typing import IO, cast

LONGEST = 16 << 20  # bytes of a line; a file without line ends must not fill the memory


class SourceError(Exception):
    """A file cannot be read at all; the message says what was expected, what came and what to do."""


class Lines:
    """Iterates over the lines of a stream, with their ends, as UTF-8 text.

    Only a line feed ends a line: a carriage return may be part of a message. Bytes that are not UTF-8
    become lone surrogates, for the reader to refuse with the line.

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
        How many bytes were read, unzipped.
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
        # A buffered reader of its own would close the stream when it goes, and standard input is not ours.
        owned = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stream))
        zipped = owned.peek(2)[:2] == b"\x1f\x8b"
        self._bytes = gzip.GzipFile(fileobj=owned) if zipped else owned

    def note(self, what: str) -> None:
        """Keep something that a person should know, once."""
        self.notes.setdefault(what, f"{self.name}:{self.number}: {what}")

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            data = self._bytes.readline(LONGEST)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SourceError(
                f"{self.name}:{self.number + 1}: expected whole gzip data, got damaged data ({error}); "
                "copy the file again"
            ) from error
        except OSError as error:
            raise SourceError(f"{self.name}: cannot be read ({error}); check the path") from error
        if not data:
            raise StopIteration
        self.number += 1
        self.size += len(data)
        if len(data) == LONGEST and not data.endswith(b"\n"):
            raise SourceError(
                f"{self.name}:{self.number}: expected lines of at most {LONGEST} bytes, got a longer one; "
                "check that the file is text"
            )
        if self.number == 1:
            data = data.removeprefix(codecs.BOM_UTF8)
        return data.decode("utf-8", "surrogateescape")
