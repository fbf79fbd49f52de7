"""Files that can be published as events: one reader a format, all behind `FORMATS`. Made streams: `generators`."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from worker.sources import jsonl, npz, parquet, svmlight, table, text
from worker.sources.columns import Columns
from worker.sources.example import BadLine, Entry, Example, Reader
from worker.sources.lines import Lines, SourceError

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
    is_table: bool = False
    has_ids: bool = False  # features may be integers


FORMATS = {
    "csv": Format((".csv",), table.read_csv, is_table=True),
    "tsv": Format((".tsv", ".tab"), table.read_tsv, is_table=True),
    "parquet": Format((".parquet", ".pq"), parquet.read, is_table=True),
    "svmlight": Format((".svmlight", ".libsvm", ".svm"), svmlight.read, has_ids=True),
    "jsonl": Format((".jsonl", ".ndjson"), jsonl.read, has_ids=True),
    "npz": Format((".npz",), npz.read, has_ids=True),
    "text": Format((".txt", ".text"), text.read),
}


def format_of(file: str) -> str | None:
    """Return the format that the suffix stands for, before a ``.gz``; None where it stands for none."""
    suffix = PurePath(file.lower().removesuffix(".gz")).suffix
    return next((name for name, format in FORMATS.items() if suffix in format.suffixes), None)
