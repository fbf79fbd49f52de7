"""JSON lines that are rows of a table: an object a line, whose names are the columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

from worker.sources.columns import Columns
from worker.sources.example import Entry, UnreadableError, brief, check_text
from worker.sources.jsonl import parse_object
from worker.sources.lines import Lines
from worker.sources.rows import Row
from worker.sources.table import SAMPLE_ROWS, read_table


class _Parsed(NamedTuple):
    line: int
    cells: dict[str, str]
    fault: str = ""


def read(lines: Lines, columns: Columns) -> Iterator[Entry]:
    """Yield the examples of a file of objects; those of objects inside them are columns like `outer.inner`."""
    return read_table(lines, replace(columns, header=True, delimiter=None), rows(lines, columns))


def rows(lines: Lines, columns: Columns) -> Iterator[Row]:
    """Yield a row of names, those of the first objects, then all rows as text; what is left out is empty."""
    parsed = _parsed(lines, frozenset(columns.ignored))
    sample = list(islice(parsed, SAMPLE_ROWS))
    names = list(dict.fromkeys(name for each in sample for name in each.cells))
    if names:
        yield Row(1, names)
    known = set(names)
    for each in chain(sample, parsed):
        fault = each.fault
        if not fault and not each.cells.keys() <= known:
            new = next(name for name in each.cells if name not in known)
            fault = f"expected the columns of the first {SAMPLE_ROWS:,} lines, got {brief(new)} too; leave it out"
        yield Row(each.line, [] if fault else [each.cells.get(name, "") for name in names], fault)


def _parsed(lines: Lines, ignored: frozenset[str]) -> Iterator[_Parsed]:
    for line in lines:
        if not line.strip():
            continue
        try:
            check_text(line)
            cells = dict(_cells(parse_object(line), "", ignored))
        except UnreadableError as error:
            yield _Parsed(lines.number, {}, str(error))
        else:
            yield _Parsed(lines.number, cells)


def _cells(value: dict[str, Any], prefix: str, ignored: frozenset[str]) -> Iterable[tuple[str, str]]:
    for name, inner in value.items():
        column = prefix + name
        if column in ignored or inner is None:
            yield column, ""
        elif isinstance(inner, dict):
            yield from _cells(inner, f"{column}.", ignored)
        elif isinstance(inner, list):
            raise UnreadableError(
                f"expected text, numbers, truth values or objects of these, got a list in {brief(column)}; say "
                f"--ignore {column}, or write events with x, y and so on"
            )
        else:
            yield column, inner if isinstance(inner, str) else json.dumps(inner)
