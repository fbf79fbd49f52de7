"""What does not fit into a terminal: names are cut, with a mark; a number is there whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_NAME = 8  # cells that a column of names keeps at least
_INDENT = "  "


def cut_name(name: str, most: int) -> str:
    """Return a name in at most so many cells, with a mark where it is cut."""
    if cell_len(name) <= most:
        return name
    kept = ""
    for char in name:
        if cell_len(kept + char) > most - 1:
            break
        kept += char
    return kept + "…" if most > 0 else ""


def fitted(line: Text, width: int) -> Text:
    """Return a line in at most so many cells, cut between words: only the first, a name, may itself be cut."""
    if line.cell_len <= width:
        return line
    ends = [at for at, char in enumerate(line.plain) if char == " " and line[:at].cell_len <= width - 2]
    kept = line[: max(ends, default=0)]
    kept.rstrip()
    if not kept:
        return Text(cut_name(line.plain, width), line.spans[0].style if line.spans else "")
    return kept.append(" …", "dim")


class Column(NamedTuple):
    """A column of a sheet; one of names may be folded or cut, one of numbers not."""

    heading: str
    is_number: bool = False
    style: str = ""
    left: bool = False  # where numbers begin at the left


class Sheet:
    """A table for a rich console; where the terminal is too narrow for its numbers, each row is some lines.

    Parameters
    ----------
    columns, rows
        What is shown; a cell is a text, or one with a style.
    title
        The line above.
    """

    def __init__(self, columns: Sequence[Column], rows: Iterable[Sequence[str | Text]], title: str = "") -> None:
        self._columns = columns
        self._rows = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
        self._title = title

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        # Names are folded between their words, and words only where closer columns do not help.
        for whole, between in ((True, 3), (True, 2), (False, 3), (False, 2)):  # cells from one column to the next
            widths = self._widths(options.max_width - (between * (len(self._columns) - 1) + 2), whole=whole)
            if widths is not None:
                break
        else:
            yield from self._blocks(options.max_width)
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, between - 2))
        if self._title:
            table.title, table.title_justify, table.title_style = Text(self._title), "left", "bold"
        for column, width in zip(self._columns, widths, strict=True):
            table.add_column(
                Text(column.heading),
                width=width,
                style=column.style,
                justify="right" if column.is_number and not column.left else "left",
                no_wrap=column.is_number,
                overflow="fold",
            )
        for row in self._rows:
            table.add_row(*row)
        yield table

    def _widths(self, room: int, *, whole: bool) -> list[int] | None:
        """Return how wide each column is: as its contents where there is room, None where there is too little."""
        columns = list(zip(self._columns, *self._rows, strict=True))
        natural = [
            max(_widest(column.heading), *(_widest(cell.plain) for cell in cells), 0) for column, *cells in columns
        ]
        widths = []
        for width, (column, *cells) in zip(natural, columns, strict=True):
            kept = [_NAME, *map(cell_len, column.heading.split())]
            kept += [_longest_word(cell) if whole else _longest_number(cell) for cell in cells]
            widths.append(width if column.is_number else min(width, max(kept)))
        spare = room - sum(widths)
        if spare < 0:
            return None
        for at, width in enumerate(natural):
            more = min(spare, width - widths[at])
            widths[at] += more
            spare -= more
        return widths

    def _blocks(self, width: int) -> Iterable[Text]:
        if self._title:
            yield Text(self._title, "bold")
        for row in self._rows:
            yield Text()
            for column, cell in zip(self._columns, row, strict=True):
                heading = column.heading.replace("\n", " ")
                if cell_len(f"{heading}  {cell.plain}") <= width:
                    yield Text(f"{heading}  ", "dim").append_text(cell)
                    continue
                yield Text(cut_name(heading, width), "dim")
                for line in _folded(cell.plain, width - len(_INDENT), column):
                    yield Text(_INDENT + line, column.style)


def _widest(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _longest_word(cell: Text) -> int:
    return max(map(cell_len, cell.plain.split()), default=0)


def _longest_number(cell: Text) -> int:
    """Return the length of the longest number beside a name in a cell."""
    words = cell.plain.split(" ")[1:]
    return max((len(word) for word in words if any(map(str.isdigit, word))), default=0)


def _folded(text: str, width: int, column: Column) -> Iterable[str]:
    """Yield the lines of a text, cut between words and between the numbers of a list."""
    line = ""
    for word in re.split(r"(?<=[/ ])", text):
        if line and cell_len(line + word.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += "…" if column.is_number and cell_len(word) > width else cut_name(word, width)
    yield line.rstrip()
