"""Rows of delimited text: cells, with the line where each row begins, whatever its quotes do."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

from worker.sources.example import UnreadableError, check_text
from worker.sources.lines import LONGEST, Lines, SourceError

_LONGEST_ROW = 4 << 20  # bytes over several lines: a quote that nobody closes must not fill the memory
_SAMPLE = 100  # lines that tell the delimiter
_ALIKE = 0.9  # of which so many have to have the width of the first


class Row(NamedTuple):
    """A row, or the line that is none."""

    line: int  # where it begins, from 1
    cells: list[str]
    fault: str = ""  # what was expected and what came; "" where it is a row


class Rows:
    """Iterates over the rows of a table.

    All rows have as many cells as the first. A quoted cell may go over several lines. Where such a row
    turns out to be none (a quote that nobody closes, text after a quote that closes), only its first
    line is bad; the others are read anew, so that a bad quote costs one row.

    Parameters
    ----------
    lines
        The file.
    delimiter
        What stands between cells; None: what fits the first lines.
    likely
        What may do so, the likeliest first.
    quoted
        Whether a cell may be quoted; else a quote is a character like any other.
    """

    def __init__(self, lines: Lines, delimiter: str | None, likely: str, *, quoted: bool) -> None:
        csv.field_size_limit(LONGEST)  # of this process: cells are as long as lines may be
        self._lines = lines
        self._ahead: deque[tuple[int, str]] = deque()
        self._row: list[tuple[int, str]] = []  # the lines of the row that is read, with their numbers
        self._width = 0  # of the first row
        self._quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
        self._likely = likely
        self.delimiter = delimiter or self._found()
        try:
            self._cells = self._reader()
        except (TypeError, ValueError) as error:
            raise SourceError(
                f"expected one character between cells, got {delimiter!r} ({error}); say --delimiter ';'"
            ) from error

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        while True:
            self._row.clear()
            fault = ""
            try:
                cells = next(self._cells)
                for cell in cells:
                    check_text(cell)
            except csv.Error as error:
                fault = _fault(error, len(self._row) - 1)
            except UnreadableError as error:
                fault = str(error)
            else:
                if not cells:
                    continue
                self._width = self._width or len(cells)
                if len(cells) != self._width:
                    fault = f"expected {self._width} cells, got {len(cells)}"
            line = self._row[0][0]
            if fault:
                self._read_again()
                return Row(line, [], fault)
            return Row(line, cells)

    def _read_again(self) -> None:
        """Read all lines of this row but its first as the begin of rows."""
        self._ahead.extendleft(reversed(self._row[1:]))
        self._cells = self._reader()  # a generator that raised has ended

    def _reader(self) -> Iterator[list[str]]:
        return csv.reader(self._fed(), delimiter=self.delimiter, quoting=self._quoting, strict=True)

    def _fed(self) -> Iterator[str]:
        size = 0
        while True:
            if self._ahead:
                number, text = self._ahead.popleft()
            else:
                following = next(self._lines, None)
                if following is None:
                    return
                number, text = self._lines.number, following
            size = len(text) + (size if self._row else 0)
            if size > _LONGEST_ROW and self._row:
                self._ahead.appendleft((number, text))
                raise csv.Error("unexpected end of data")
            self._row.append((number, text))
            yield text

    def _found(self) -> str:
        """Return the first delimiter that cuts the first lines into rows of one width, else the likeliest."""
        self._ahead.extend((self._lines.number, line) for line in islice(self._lines, _SAMPLE))
        sample = [line for _, line in self._ahead]
        for delimiter in self._likely:
            rows = csv.reader(sample, delimiter=delimiter, quoting=self._quoting)
            try:
                widths = [len(cells) for cells in rows if cells]
            except csv.Error:
                continue
            if widths and widths[0] > 1 and widths.count(widths[0]) >= _ALIKE * len(widths):
                return delimiter
        return self._likely[0]


def _fault(error: csv.Error, more: int) -> str:
    if "end of data" in str(error):
        return (
            "expected the quote that opens a cell here to be closed, got no other one"
            f"{f' in {more:,} more lines' if more else ''}"
        )
    if "new-line" in str(error):
        return (
            "expected lines that end with a line feed, got a carriage return within one; end lines as Unix does, "
            "or quote the cell"
        )
    return f"expected cells as csv quotes them, got others ({error})"
