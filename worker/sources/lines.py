"""The lines of a file or of standard input, gzip or not, and how far they have been read."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
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
    encoding
        What the text is in, by a name that Python knows. UTF-16 is recognised by its first two bytes.

    Attributes
    ----------
    number
        The number of the last line read, from 1.
    size
        How many bytes were read, unzipped; of another encoding than UTF-8, characters.
    notes
        What a reader found worth telling, once each, with the place of the first time.
    known
        Features of the topic that the file goes to, with which columns have to agree; filled before it is read.

    Raises
    ------
    SourceError
        Where the gzip data is damaged, a line is endless, text is in another encoding, or reading fails.
    """

    def __init__(self, name: str, stream: IO[bytes], encoding: str = "utf-8") -> None:
        self.name = name
        self.encoding = encoding
        self.number = 0
        self.size = 0
        self.notes: dict[str, str] = {}
        self.known: set[str] = set()
        # A buffered reader of its own would close the stream when it goes, and standard input is not ours.
        owned = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stream))
        zipped = owned.peek(2)[:2] == b"\x1f\x8b"
        self._bytes = gzip.GzipFile(fileobj=owned) if zipped else owned
        with self._told():
            begin = self._bytes.peek(2)[:2]
        if begin in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            self.encoding = "utf-16"
        self._text: io.TextIOWrapper | None = None
        if codecs.lookup(self.encoding).name != "utf-8":
            # Only a line feed ends a line here too.
            self._text = io.TextIOWrapper(cast(IO[bytes], self._bytes), self.encoding, newline="\n")

    def whole(self) -> IO[bytes]:
        """Return the stream, unzipped, for a format that is not made of lines; it can be read anywhere."""
        with self._told():
            plain = isinstance(self._bytes, io.BufferedReader) and self._bytes.seekable()
            return cast(IO[bytes], self._bytes) if plain else io.BytesIO(self._bytes.read())

    def note(self, what: str, line: int | None = None) -> None:
        """Keep something that a person should know, once; of a line, else of the last one read."""
        self.notes.setdefault(what, f"{self.name}:{line or self.number}: {what}")

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        with self._told():
            data: str | bytes = (self._text or self._bytes).readline(LONGEST)
        if not data:
            raise StopIteration
        self.number += 1
        if len(data) == LONGEST and data[-1] not in ("\n", 10):
            raise SourceError(
                f"{self.name}:{self.number}: expected lines of at most {LONGEST} bytes, got a longer one; "
                "check that the file is text"
            )
        self.size += len(data)
        if isinstance(data, str):
            return data
        if self.number == 1:
            data = data.removeprefix(codecs.BOM_UTF8)
        return data.decode("utf-8", "surrogateescape")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what can go wrong with a stream into messages."""
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SourceError(
                f"{self.name}:{self.number + 1}: expected whole gzip data, got damaged data ({error}); "
                "copy the file again"
            ) from error
        except OSError as error:
            raise SourceError(f"{self.name}: cannot be read ({error}); check the path") from error
        except UnicodeError as error:
            raise SourceError(
                f"{self.name}:{self.number + 1}: expected text in {self.encoding}, got other bytes ({error}); "
                "say --encoding NAME, the one that it was written in"
            ) from error
