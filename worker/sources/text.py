"""Labelled text: ``label<TAB>text``, one message a line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from worker.sources.columns import Columns
from worker.sources.example import Entry, UnreadableError, brief, each_line, label
from worker.sources.lines import Lines
from worker.sources.words import words


def read(lines: Lines, columns: Columns) -> Iterator[Entry]:
    """Yield the examples of a file of labelled lines; their features are the words of the text.

    Where examples need no label, a line may be the text alone.
    """
    return each_line(lines, partial(_parse, columns.unlabelled))


def _parse(unlabelled: bool, line: str) -> tuple[None, dict[str, Any]] | None:
    if not line.strip():
        return None
    first, tab, text = line.partition("\t")
    if unlabelled and not (tab and first):
        return None, {"x": words(text if tab else first)}
    if not tab or not first:
        raise UnreadableError(f"expected a label, a tab and a text, got {brief(line)}")
    return None, {"x": words(text), "y": label(first)}
