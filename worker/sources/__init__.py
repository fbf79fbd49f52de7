"""Files that can be published as events: one reader a format, all behind `FORMATS`. Made streams: `generators`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import NamedTuple

from worker.sources import jsonl, jsonrows, npz, parquet, svmlight, table, text
from worker.sources.columns import Columns
from worker.sources.example import BadLine, Entry, Example, Reader
from worker.sources.lines import Lines, SourceError
from worker.sources.rows import Row

__all__ = [
    "FORMATS",
    "BadLine",
    "Columns",
    "Entry",
    "Example",
    "Format",
    "Lines",
    "Reader",
    "SourceError",
    "format_of",
]


class Format(NamedTuple):
    """A format of files."""

    suffixes: tuple[str, ...]
    read: Reader
    rows: Callable[[Lines, Columns], Iterator[Row]] | None = None  # of a table
    has_ids: bool = False  # features may be integers

    @property
    def is_table(self) -> bool:
        """Whether it has columns."""
        return self.rows is not None


FORMATS = {
    "csv": Format((".csv",), table.read_csv, table.csv_rows),
    "tsv": Format((".tsv", ".tab"), table.read_tsv, table.tsv_rows),
    "parquet": Format((".parquet", ".pq"), parquet.read, parquet.rows),
    "svmlight": Format((".svmlight", ".libsvm", ".svm"), svmlight.read, has_ids=True),
    "jsonl": Format((".jsonl", ".ndjson"), jsonl.read, has_ids=True),
    "jsonrows": Format((), jsonrows.read, jsonrows.rows),
    "npz": Format((".npz",), npz.read, has_ids=True),
    "text": Format((".txt", ".text"), text.read),
}


def format_of(file: str) -> str | None:
    """Return the format that the suffix stands for, before a ``.gz``; None where it stands for none."""
    suffix = PurePath(file.lower().removesuffix(".gz")).suffix
    return next((name for name, format in FORMATS.items() if suffix in format.suffixes), None)
