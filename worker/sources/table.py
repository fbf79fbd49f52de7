"""Tables, csv and tsv: a line is an example, its columns are label, key, id, text, time and features."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any, NamedTuple

from worker.sources.example import (
    BadLine,
    Columns,
    Entry,
    Example,
    UnreadableError,
    brief,
    check_text,
    label,
    moment,
    name,
    words,
)
from worker.sources.lines import Lines, SourceError

_PRESENT, _ABSENT = "1", ("0", "")


def read_csv(lines: Lines, columns: Columns) -> Iterator[Entry]:
    """Yield the examples of a comma-separated file; cells may be quoted."""
    return _read(lines, columns, csv.reader(lines, strict=True))


def read_tsv(lines: Lines, columns: Columns) -> Iterator[Entry]:
    """Yield the examples of a tab-separated file; a quote is a character like any other."""
    return _read(lines, columns, csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


class _Layout(NamedTuple):
    """Where in a row what is found; -1: nowhere."""

    width: int
    label: int
    key: int
    id: int
    text: int
    time: int
    features: tuple[tuple[int, str, bool], ...]  # index, name, whether it is categorical


def _read(lines: Lines, columns: Columns, rows: Iterator[list[str]]) -> Iterator[Entry]:
    layout = None
    while True:
        line = lines.number + 1
        try:
            row = next(rows, None)
            if row is None:
                return
            if not row:
                continue
            for cell in row:
                check_text(cell)
            if layout is None:
                layout = _layout(lines.name, columns, row)
                if columns.header:
                    continue
            yield _example(row, layout, line)
        except csv.Error as error:
            yield BadLine(line, f"expected cells as csv quotes them, got others ({error})")
        except UnreadableError as error:
            yield BadLine(line, str(error))


def _layout(file: str, columns: Columns, first: list[str]) -> _Layout:
    names = first if columns.header else [str(number) for number in range(1, len(first) + 1)]
    where = {column: index for index, column in reversed(list(enumerate(names)))}

    def index(column: str) -> int:
        if column not in where:
            raise SourceError(
                f"{file}:1: expected a column {column!r}, got {brief(', '.join(names))}; "
                "name one of these (without a header, columns are numbered from 1)"
            )
        return where[column]

    special = {
        what: -1 if column is None else index(column)
        for what, column in {
            "label": columns.label,
            "key": columns.key,
            "id": columns.id,
            "text": columns.text,
            "time": columns.time,
        }.items()
    }
    features = columns.features
    if features is None:
        left = [column for column in names if where[column] not in special.values()]
        features = () if columns.text is not None else tuple(left)
    marked = tuple((index(column), column, column in columns.categorical) for column in features)
    for column in columns.categorical:
        index(column)
    return _Layout(width=len(names), features=marked, **special)


def _example(row: list[str], layout: _Layout, line: int) -> Example:
    if len(row) != layout.width:
        raise UnreadableError(f"expected {layout.width} cells, got {len(row)}")
    x = words(row[layout.text]) if layout.text >= 0 else []
    for index, column, categorical in layout.features:
        cell = row[index]
        if categorical and cell:
            x.append(f"{column}={cell}")
        elif cell == _PRESENT:
            x.append(column)
        elif cell not in _ABSENT:
            x.append(f"{column}={cell}")
    fields: dict[str, Any] = {}
    if layout.id >= 0:
        fields["id"] = name(row[layout.id])
    fields["x"] = list(dict.fromkeys(x))  # a column may go by the name of a word
    if layout.label >= 0:
        if not row[layout.label]:
            raise UnreadableError("expected a label, got an empty cell")
        fields["y"] = label(row[layout.label])
    if layout.time >= 0:
        fields["ts"] = moment(row[layout.time])
    return Example(row[layout.key] if layout.key >= 0 else None, fields, line)
