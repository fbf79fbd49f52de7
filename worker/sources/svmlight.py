"""SVMlight / LIBSVM: ``label id:value id:value ... # comment``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from worker.sources.columns import Columns
from worker.sources.example import Entry, UnreadableError, brief, each_line, label, number
from worker.sources.lines import Lines

_ID = re.compile("[0-9]{1,10}")


def read(lines: Lines, _: Columns) -> Iterator[Entry]:
    """Yield the examples of an SVMlight file: ids of those present, with values where one is not 1."""

    def parse(line: str) -> tuple[None, dict[str, Any]] | None:
        cells = line.partition("#")[0].split()
        if not cells:
            return None
        if len(cells) > 1 and cells[1].startswith("qid:"):
            del cells[1]
            lines.note("qid is ignored: a tree knows no queries")
        if ":" in cells[0]:
            raise UnreadableError(f"expected a label first, got {brief(cells[0])}")
        return None, {"x": _features(cells[1:]), "y": label(cells[0])}

    return each_line(lines, parse)


def _features(cells: list[str]) -> list[int] | dict[str, list[Any]]:
    ids, values = [], []
    for cell in cells:
        feature, colon, value = cell.partition(":")
        if not colon or not _ID.fullmatch(feature) or int(feature) >= 1 << 32:
            raise UnreadableError(f"expected id:value with an id from 0 to 4294967295, got {brief(cell)}")
        ids.append(int(feature))
        values.append(1.0 if value == "1" else number(value))
    if values.count(1.0) == len(values):
        return ids
    return {"i": ids, "v": values}
