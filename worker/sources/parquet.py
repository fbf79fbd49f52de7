"""Parquet, by pyarrow: a table like any other, whose cells are read as a csv file would hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from worker.sources.columns import Columns, option
from worker.sources.example import Entry
from worker.sources.lines import Lines, SourceError
from worker.sources.rows import Row
from worker.sources.table import read_table

_BATCH = 10_000  # rows


def read(lines: Lines, columns: Columns) -> Iterator[Entry]:
    """Yield the examples of a Parquet file; the line of each is the number of its row, from 1."""
    return read_table(lines, replace(columns, header=True, delimiter=None), rows(lines, columns))


def rows(lines: Lines, columns: Columns) -> Iterator[Row]:
    """Yield a row of names, then all rows as text; raise `SourceError` for what text cannot hold."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise SourceError(
            f"{lines.name}: expected pyarrow, which reads Parquet, found none; pip install 'anabranch[parquet]'"
        ) from error
    try:
        file = pq.ParquetFile(lines.whole())
        schema = file.schema_arrow
        writers = [_writer(lines, field, columns.ignored) for field in schema]
        yield Row(1, list(schema.names))
        size = lines.whole().seek(0, 2)
        for batch in file.iter_batches(_BATCH):
            cells = [
                [write(value) for value in _plain(pa, column).to_pylist()]
                for write, column in zip(writers, batch.columns, strict=True)
            ]
            for row in zip(*cells, strict=True):
                lines.number += 1
                yield Row(lines.number, list(row))
            lines.size = size * lines.number // max(1, file.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{lines.name}: expected a whole Parquet file, got another ({error})") from error


def _writer(lines: Lines, field: Any, ignored: tuple[str, ...]) -> Callable[[Any], str]:
    """Return what writes a value of a column as text."""
    from pyarrow import types

    if field.name in ignored:
        return lambda value: ""
    type_ = field.type.value_type if types.is_dictionary(field.type) else field.type
    if types.is_boolean(type_):
        return lambda value: "" if value is None else "true" if value else "false"
    if types.is_floating(type_):
        return lambda value: "" if value is None else repr(value)
    if types.is_integer(type_) or types.is_null(type_) or types.is_string(type_) or types.is_large_string(type_):
        return lambda value: "" if value is None else str(value)
    if types.is_decimal(type_):
        return lambda value: "" if value is None else f"{value:f}"
    if types.is_timestamp(type_) or types.is_date(type_):
        return lambda value: "" if value is None else value.isoformat()
    raise SourceError(
        f"{lines.name}: expected numbers, text, truth values or times in each column, got {field.type} in "
        f"{field.name!r}; say {option('--ignore', field.name)}"
    )


def _plain(pa: Any, column: Any) -> Any:
    """Return a column that Python's own types can hold: times in whole milliseconds."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ms", column.type.tz), safe=False)
    return column
