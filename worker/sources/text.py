"""Labelled text: ``label<TAB>text``, one message a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from worker.sources.columns import Columns
from worker.sources.example import Entry, UnreadableError, brief, each_line, label
from worker.sources.lines import Lines
from worker.sources.words import words


def read(lines: Lines, _: Columns) -> Iterator[Entry]:
    """Yield the examples of a file of labelled lines; their features are the words of the text."""
    return each_line(lines, _parse)


def _parse(line: str) -> tuple[None, dict[str, Any]] | None:
    if not line.strip():
        return None
    first, tab, text = line.partition("\t")
    if not tab or not first:
        raise UnreadableError(f"expected a label, a tab and a text, got {brief(line)}")
    return None, {"x": words(text), "y": label(first)}
