"""What a file holds, for people."""

from __future__ import annotations

from worker.safe_text import printable
from worker.sources.columns import SINGLE
from worker.sources.layout import Layout
from worker.sources.overview import Contents
from worker.sources.seen import Seen
from worker.views.fitting import Column, Sheet

_VALUES = 3  # of a column that are named
_CLASSES = 20


def columns_table(layout: Layout) -> Sheet:
    """Return what each column of a table is, what it holds, and how much of it is missing."""
    columns = [Column("column"), Column("is"), Column("values"), Column("missing", is_number=True)]
    what: dict[int, str] = {feature.at: feature.kind for feature in layout.features}
    what |= {getattr(layout, use): use for use in SINGLE}
    lines = []
    for at, seen in enumerate(layout.seen):
        kind = what.get(at, "left out")
        missing = seen.empty + (0 if kind == "nominal" else seen.unknown)
        share = f"{missing / seen.cells:.1%}" if missing else ""
        lines.append([printable(seen.name), kind, _values(seen, kind), share])
    return Sheet(columns, lines)


def _values(seen: Seen, kind: str) -> str:
    if kind == "numeric" and seen.numbers:
        return f"{seen.low:g} to {seen.high:g}"
    if kind == "binary":
        present = sum(
            count for value, count in seen.values.items() if value.lower() in ("1", "true", "yes", "t", "y")
        )
        return f"present in {present / max(1, seen.cells):.1%}"
    if kind in ("text", "id"):
        return ""
    most = ", ".join(printable(value, 20) for value, _ in seen.values.most_common(_VALUES))
    count = f"more than {len(seen.values):,}" if seen.has_more else f"{len(seen.values):,}"
    return f"{count}: {most}" + (", ..." if len(seen.values) > _VALUES else "")


def features_words(found: Contents) -> str:
    """Return what features events have, in a line."""
    mean = found.values / max(1, found.events)
    told = f"{len(found.features):,} features, {mean:.1f} in an event"
    if not found.numbers:
        return f"{told}, all binary"
    low, high = min(each[0] for each in found.numbers.values()), max(each[1] for each in found.numbers.values())
    return f"{told}; numbers: {len(found.numbers):,} of them, {low:g} to {high:g}"


def labels_table(found: Contents) -> Sheet:
    """Return each class with its share, the commonest first."""
    total = max(1, found.labels.total())
    columns = [Column("class"), Column("events", is_number=True), Column("share", is_number=True)]
    lines = [
        [printable(str(label)), f"{count:,}", f"{count / total:.1%}"]
        for label, count in found.labels.most_common(_CLASSES)
    ]
    more = len(found.labels) - _CLASSES
    return Sheet(
        columns, lines + ([[f"and {more:,} more", "", ""]] if more > 0 else []), f"{found.events:,} events"
    )
