"""A look at data before a model is made for it: what the columns of a file are, and what events hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

from worker.codec.event import is_packed
from worker.sources.columns import KINDS, SINGLE, Columns, Kind
from worker.sources.example import BadLine, Entry, Label
from worker.sources.layout import Layout, is_of_each_row, layout, numbers_rows
from worker.sources.lines import Lines
from worker.sources.rows import Row
from worker.sources.table import look, look_at

_CHUNK = 10_000  # rows
_MOST = 1_000_000  # keys, features and labels that are told apart
_COUNTED = 100  # different whole numbers that may be classes

T = TypeVar("T")


def whole_table(
    lines: Lines, columns: Columns, rows: Iterator[Row], advance: Callable[[], None]
) -> tuple[Layout, Columns, list[str]]:
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
        The columns; what was said, with the label and the kinds that the first rows tell otherwise; and the
        columns that are left out as they tell a model nothing: dates that are read as names, categories that are
        nearly all different, and numbers that count the rows.
    """
    sample = look(lines, columns, rows)
    first = _kinds(layout(lines, columns, sample.seen, header=sample.header))
    while chunk := list(islice(rows, _CHUNK)):
        look_at(sample.seen, [row.cells for row in chunk if not row.fault])
        advance()
    made = layout(lines, columns, sample.seen, header=sample.header)
    useless = _useless(made)
    columns = replace(columns, ignored=(*columns.ignored, *useless))
    made = layout(lines, columns, sample.seen, header=sample.header)
    more = {name: kind for name, kind in _kinds(made).items() if name not in useless and first[name] != kind}
    said: dict[str, Any] = {
        kind: (*getattr(columns, kind), *(name for name, found in more.items() if found == kind)) for kind in KINDS
    }
    uses = {use: made.names[at] for use in SINGLE if (at := getattr(made, use)) >= 0}
    # Where there is a header it is found again; columns that go by numbers could be taken for one.
    return made, replace(columns, **said, **uses, header=columns.header if sample.header else False), useless


def _useless(made: Layout) -> list[str]:
    """Return the columns whose values tell a model nothing, unless there are no others."""
    seen = [(each, made.seen[each.at]) for each in made.features if not each.declared]
    useless = [
        each.name
        for each, values in seen
        if (each.kind == "nominal" and (values.has_foreign_dates or is_of_each_row(values)))
        or (each.kind == "numeric" and numbers_rows(values))
    ]
    return useless if len(useless) < len(made.features) else []


def _kinds(made: Layout) -> dict[str, Kind]:
    found: dict[str, Kind] = dict.fromkeys(made.left_out, "ignored")
    return found | {feature.name: feature.kind for feature in made.features}


@dataclass
class Contents:
    """What events hold, of a file or a topic.

    Attributes
    ----------
    unit
        What an event comes in, for messages.
    events, bad
        How many events there are, and lines or records that are none.
    first_bad
        The first of these, with its place and why.
    skipped
        Events that were not looked at.
    labels, ops
        How often each came; of labels as many as are told apart.
    label_range
        The least and the greatest of those that are numbers, None where there is none.
    keys
        How many events each has, as many as are told apart.
    features
        How many events have each, as many as are told apart.
    numbers
        The least and the greatest value of each that had others than 0 and 1.
    values
        How many features an event has, all together.
    """

    unit: str = "lines"
    events: int = 0
    bad: int = 0
    first_bad: str = ""
    skipped: int = 0
    labels: Counter[Label] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    keys: Counter[str | None] = field(default_factory=Counter)
    features: Counter[int | str] = field(default_factory=Counter)
    numbers: dict[int | str, tuple[float, float]] = field(default_factory=dict)
    values: int = 0
    label_range: tuple[float, float] | None = None

    @property
    def has_number_labels(self) -> bool:
        """Whether labels are numbers to be predicted, rather than classes: with a fraction, or very many."""
        if not self.labels or any(isinstance(label, str) for label in self.labels):
            return False
        return len(self.labels) > _COUNTED or any(isinstance(label, float) for label in self.labels)

    def add(
        self, key: str | None, op: str, label: Label | None, x: Iterable[int | str], values: Iterable[float] = ()
    ) -> None:
        """Count an event; values are those of its features, none where all are 1."""
        self.events += 1
        _count(self.keys, [key])
        self.ops[op] += 1
        if label is not None:
            _count(self.labels, [label])
            if not isinstance(label, str):
                low, high = self.label_range or (label, label)
                self.label_range = min(low, label), max(high, label)
        names = list(x)
        self.values += len(names)
        _count(self.features, names)
        for name, value in zip(names, values, strict=False):
            if value not in (0, 1):
                low, high = self.numbers.get(name, (value, value))
                self.numbers[name] = (min(low, value), max(high, value))

    def add_bad(self, place: str, why: str) -> None:
        """Count what is no event."""
        self.bad += 1
        self.first_bad = self.first_bad or f"{place}: {why}"


def _count(counts: Counter[T], found: Iterable[T]) -> None:
    """Count what is known, and new ones as long as there is room."""
    counts.update(found if len(counts) < _MOST else (each for each in found if each in counts))


def contents(entries: Iterable[Entry], advance: Callable[[int], None]) -> Contents:
    """Return what events hold, which a worker can read; `advance` is called now and then."""
    found = Contents()
    for entry in entries:
        if isinstance(entry, BadLine):
            found.add_bad(f"line {entry.line}", entry.why)
            continue
        x: Any = entry.fields.get("x") or ()
        label = entry.fields.get("y")
        packed = isinstance(x, dict) and is_packed(x)
        found.add(
            entry.key,
            entry.fields.get("op", "insert"),
            label if isinstance(label, int | float | str) else None,
            x["i"] if packed else x,
            (x.get("v", ()) if packed else x.values()) if isinstance(x, dict) else (),
        )
        if not found.events % _CHUNK:
            advance(found.events)
    return found
