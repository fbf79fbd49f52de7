"""Tables, csv and tsv: a line is an example, its columns are label, key, id, time, weight, op and features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from worker.sources.columns import Columns, option
from worker.sources.example import (
    BadLine,
    Entry,
    Example,
    UnreadableError,
    as_op,
    brief,
    label,
    moment,
    name,
    number,
)
from worker.sources.layout import Feature, Layout, check_number, has_header, layout, names_of, survey
from worker.sources.lines import Lines, SourceError
from worker.sources.rows import Row, Rows
from worker.sources.seen import ABSENT, MISSING, PRESENT, Seen
from worker.sources.words import words

SAMPLE_ROWS = 10_000
_SAMPLE_BYTES = 16 << 20
_MS = 1_000


def read_csv(lines: Lines, columns: Columns) -> Iterator[Entry]:
    """Yield the examples of a comma-separated file; cells may be quoted."""
    return read_table(lines, columns, csv_rows(lines, columns))


def read_tsv(lines: Lines, columns: Columns) -> Iterator[Entry]:
    """Yield the examples of a tab-separated file; a quote is a character like any other."""
    return read_table(lines, columns, tsv_rows(lines, columns))


def csv_rows(lines: Lines, columns: Columns) -> Rows:
    """Return the rows of a comma-separated file, or of one that other delimiters fit better."""
    return _rows(lines, columns, ",;\t|", quoted=True)


def tsv_rows(lines: Lines, columns: Columns) -> Rows:
    """Return the rows of a tab-separated file, likewise."""
    return _rows(lines, columns, "\t,;|", quoted=False)


def _rows(lines: Lines, columns: Columns, likely: str, *, quoted: bool) -> Rows:
    rows = Rows(lines, columns.delimiter, likely, quoted=quoted)
    if columns.delimiter is None and rows.delimiter != likely[0]:
        lines.note(f"cells are taken to end with {rows.delimiter!r}; else say --delimiter", line=1)
    return rows


def read_table(lines: Lines, columns: Columns, rows: Iterator[Row]) -> Iterator[Entry]:
    """Yield the examples of a table, after a look at its first rows."""
    sample = look(lines, columns, rows)
    made = layout(lines, columns, sample.seen, header=sample.header)
    reading = _Reading(lines, columns, made)
    for row in chain(sample.rows, rows):
        if row.fault:
            yield BadLine(row.line, row.fault)
            continue
        try:
            yield Example(*reading.fields(row), row.line)
        except UnreadableError as error:
            yield BadLine(row.line, str(error))


class Sample(NamedTuple):
    """The first rows of a table."""

    rows: list[Row]  # without the header
    header: bool  # whether there is one
    seen: list[Seen]  # of each column


def look(lines: Lines, columns: Columns, rows: Iterator[Row]) -> Sample:
    """Return the first rows, and what they show of each column; raise `SourceError` where there are none."""
    sample, size = [], 0
    for row in islice(rows, SAMPLE_ROWS):
        sample.append(row)
        size += sum(map(len, row.cells))
        if size > _SAMPLE_BYTES:
            break
    good = [row.cells for row in sample if not row.fault]
    if sample and sample[0].fault and columns.header is not False:
        raise SourceError(
            f"{lines.name}:{sample[0].line}: {sample[0].fault}; it is the first line, which tells the columns, so "
            "correct it"
        )
    if not good:
        raise SourceError(f"{lines.name}: expected a table, got no row; check the file")
    header = has_header(columns, good)
    if not header and columns.header is None:
        lines.note(
            "the first line holds values, so columns go by their numbers from 1; where it names them say --header",
            line=1,
        )
    seen = survey(columns, names_of(lines, columns, good[0], header=header))
    look_at(seen, good[header:])
    return Sample(sample[header:], header, seen)


def look_at(seen: list[Seen], rows: Iterable[list[str]]) -> None:
    """Look at some more rows."""
    for column, cells in zip(seen, zip(*rows, strict=True), strict=False):  # without rows there are no columns
        column.add(cells)


class _Reading:
    """What the cells of a row mean."""

    def __init__(self, lines: Lines, columns: Columns, made: Layout) -> None:
        self._lines = lines
        self._columns = columns
        self._layout = made
        self._missing = frozenset(columns.missing) | {""}

    def fields(self, row: Row) -> tuple[str | None, dict[str, Any]]:
        """Return the key and the fields of an event; raise `UnreadableError` where a cell does not fit."""
        made = self._layout
        cells = ["" if (cell := each.strip()) in self._missing else cell for each in row.cells]
        cells.append("")  # what is nowhere is empty
        fields: dict[str, Any] = {}
        if cells[made.id]:
            fields["id"] = name(cells[made.id])
        fields["x"] = self._features(row.cells, row.line)
        if cells[made.label]:
            fields["y"] = label(cells[made.label])
        if cells[made.weight]:
            fields["w"] = number(cells[made.weight])
        if cells[made.time]:
            fields["ts"] = self._time(cells[made.time])
        op = cells[made.op] or "insert"
        if op not in ("insert", "delete", "predict", "label"):
            raise UnreadableError(
                f"expected insert, delete, predict or label in the column {made.names[made.op]!r}, got {brief(op)}"
            )
        if "y" not in fields and op in ("insert", "label") and not self._columns.unlabelled:
            others = ", or publish such rows apart with --as predict" if self._columns.published else ""
            raise UnreadableError(f"expected a label, got an empty cell; fill it in{others}")
        if "y" in fields and op == "predict":
            self._lines.note("labels of predicts are left out: a model answers with its own", line=row.line)
        return cells[made.key] or None, as_op(fields, op)

    def _features(self, cells: list[str], line: int) -> list[str] | dict[str, float]:
        x: dict[str, float] = {}
        for feature in self._layout.features:
            cell = cells[feature.at]
            if feature.kind == "text":
                x |= dict.fromkeys([feature.prefix + word for word in words(cell)], 1.0)
        in_text = set(x)
        for feature in self._layout.features:
            if feature.kind == "text":
                continue
            found, value = self._feature(cells[feature.at].strip(), feature, line)
            if found in in_text:
                self._lines.note(f"{found!r} is a word of the text and a column: they are one feature", line=line)
            if value:
                x[found] = value
        return list(x) if all(value == 1.0 for value in x.values()) else x

    def _feature(self, cell: str, feature: Feature, line: int) -> tuple[str, float]:
        """Return the feature that a cell names, and its value, 0 where it is absent."""
        if cell in self._missing or (cell in MISSING and feature.kind != "nominal"):
            if feature.kind == "numeric":
                self._lines.note(
                    f"a value is missing in the numeric column {feature.name!r}: it counts as 0", line=line
                )
            return feature.name, 0.0
        if feature.kind == "nominal":
            return f"{feature.name}={cell}", 1.0
        if feature.kind == "numeric":
            return feature.name, check_number(cell, feature, self._columns)
        if (word := cell.lower()) in PRESENT:
            return feature.name, 1.0
        if word in ABSENT:
            return feature.name, 0.0
        if not feature.declared:
            try:
                return feature.name, number(cell)  # the first rows held 0 and 1 alone
            except UnreadableError:
                pass
        raise UnreadableError(
            f"expected 1 or 0, true or false, yes or no in the column {feature.name!r}, got {brief(cell)}; say "
            f"{option('--numeric', feature.name)}, {option('--nominal', feature.name)}, or "
            f"{option('--missing', cell)} where that is no value"
        )

    def _time(self, cell: str) -> int:
        if self._columns.time_unit == "s":
            try:
                return round(number(cell) * _MS)
            except UnreadableError:
                pass
        return moment(cell)
