"""A look at a whole file before it is published: what its columns are, and what its events hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from worker.codec.event import is_packed
from worker.sources.columns import KINDS, SINGLE, Columns, Kind
from worker.sources.example import BadLine, Entry, Label
from worker.sources.layout import Layout, layout
from worker.sources.lines import Lines
from worker.sources.rows import Row
from worker.sources.table import look, look_at

_CHUNK = 10_000  # rows
_MOST = 1_000_000  # keys, and features, that are told apart


def whole_table(
    lines: Lines, columns: Columns, rows: Iterator[Row], advance: Callable[[], None]
) -> tuple[Layout, Columns]:
    """Return what the columns of a table are by all of its rows, and what has to be said for that.

    Parameters
    ----------
    lines, columns, rows
        The file, what was said of it, and its rows.
    advance
        Called now and then.

    Returns
    -------
    tuple
        The columns; and what was said, with the label and the kinds that the first rows tell otherwise.
    """
    sample = look(lines, columns, rows)
    first = _kinds(layout(lines, columns, sample.seen, header=sample.header))
    while chunk := list(islice(rows, _CHUNK)):
        look_at(sample.seen, [row.cells for row in chunk if not row.fault])
        advance()
    lines.notes.clear()
    made = layout(lines, columns, sample.seen, header=sample.header)
    more = {name: kind for name, kind in _kinds(made).items() if first[name] != kind}
    said: dict[str, Any] = {
        kind: (*getattr(columns, kind), *(name for name, found in more.items() if found == kind)) for kind in KINDS
    }
    uses = {use: made.names[at] for use in SINGLE if (at := getattr(made, use)) >= 0}
    # Where there is a header it is found again; columns that go by numbers could be taken for one.
    return made, replace(columns, **said, **uses, header=columns.header if sample.header else False)


def _kinds(made: Layout) -> dict[str, Kind]:
    found: dict[str, Kind] = dict.fromkeys(made.left_out, "ignored")
    return found | {feature.name: feature.kind for feature in made.features}


@dataclass
class Contents:
    """What the events of a file hold.

    Attributes
    ----------
    events, bad
        How many there are, and lines that are none.
    first_bad
        The first of these.
    labels, ops
        How often each came.
    keys
        All of them, as many as are told apart.
    features
        All of them, as many as are told apart.
    numbers
        The least and the greatest value of each that had others than 0 and 1.
    values
        How many features an event has, all together.
    """

    events: int = 0
    bad: int = 0
    first_bad: BadLine | None = None
    labels: Counter[Label] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    keys: set[str | None] = field(default_factory=set)
    features: set[int | str] = field(default_factory=set)
    numbers: dict[int | str, tuple[float, float]] = field(default_factory=dict)
    values: int = 0

    def _add(self, key: str | None, fields: dict[str, Any]) -> None:
        self.events += 1
        if len(self.keys) < _MOST:
            self.keys.add(key)
        self.ops[fields.get("op", "insert")] += 1
        if isinstance(label := fields.get("y"), int | float | str):
            self.labels[label] += 1
        x: Any = fields.get("x") or ()
        packed = isinstance(x, dict) and is_packed(x)
        names = x["i"] if packed else x
        self.values += len(names)
        if len(self.features) < _MOST:
            self.features.update(names)
        if not isinstance(x, dict):
            return
        for name, value in zip(names, x.get("v", ()), strict=False) if packed else x.items():
            if value not in (0, 1):
                low, high = self.numbers.get(name, (value, value))
                self.numbers[name] = (min(low, value), max(high, value))


def contents(entries: Iterable[Entry], advance: Callable[[int], None]) -> Contents:
    """Return what events hold, which a worker can read; `advance` is called now and then."""
    found = Contents()
    for entry in entries:
        if isinstance(entry, BadLine):
            found.bad += 1
            found.first_bad = found.first_bad or entry
            continue
        found._add(entry.key, entry.fields)
        if not found.events % _CHUNK:
            advance(found.events)
    return found
