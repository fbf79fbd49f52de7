"""What a file or a topic holds, for people."""

from __future__ import annotations

from worker.safe_text import printable
from worker.sources.columns import SINGLE
from worker.sources.layout import Layout
from worker.sources.overview import Contents
from worker.sources.seen import Seen
from worker.views.fitting import Column, Sheet
from worker.views.words import feature_word, number_word

_VALUES = 3  # of a column that are named
_CLASSES = 20
_FEATURES = 20


def columns_table(layout: Layout) -> Sheet:
    """Return what each column of a table is, what it holds, and how much of it is missing."""
    columns = [Column("column"), Column("is"), Column("values"), Column("missing", is_number=True)]
    what: dict[int, str] = {feature.at: feature.kind for feature in layout.features}
    what |= {getattr(layout, use): use for use in SINGLE}
    lines = []
    for at, seen in enumerate(layout.seen):
        kind = what.get(at, "left out")
        missing = seen.empty + (0 if kind == "nominal" else seen.unknown)
        share = share_of(missing, seen.cells) if missing else ""
        lines.append([printable(seen.name), kind, _values(seen, kind), share])
    return Sheet(columns, lines)


def _values(seen: Seen, kind: str) -> str:
    if kind == "numeric" and seen.numbers:
        return _range(seen.low, seen.high)
    if kind == "binary":
        present = sum(
            count for value, count in seen.values.items() if value.lower() in ("1", "true", "yes", "t", "y")
        )
        return f"present in {share_of(present, max(1, seen.cells))}"
    if kind in ("text", "id"):
        return ""
    most = ", ".join(printable(value, 20) for value, _ in seen.values.most_common(_VALUES))
    if not seen.values:
        return ""
    count = f"more than {len(seen.values):,}" if seen.has_more else f"{len(seen.values):,}"
    return f"{count}: {most}" + (", ..." if len(seen.values) > _VALUES else "")


def features_table(found: Contents) -> Sheet:
    """Return the features that most events have: what each is, and how many events are without it."""
    columns = [Column("feature"), Column("is"), Column("values"), Column("absent or 0", is_number=True)]
    lines = []
    for feature, count in found.features.most_common(_FEATURES):
        low, high = found.numbers.get(feature, (None, None))
        kind = ["binary", ""] if low is None or high is None else ["numeric", _range(low, high)]
        absent = share_of(found.events - count, found.events) if count < found.events else ""
        lines.append([feature_word(feature), *kind, absent])
    more = len(found.features) - _FEATURES
    return Sheet(
        columns, lines + ([[f"and {more:,} more", "", "", ""]] if more > 0 else []), _features_words(found)
    )


def _features_words(found: Contents) -> str:
    """Return what features events have, in a line."""
    mean = found.values / max(1, found.events)
    told = f"{len(found.features):,} features, {mean:.1f} in an event"
    return f"{told}, all binary" if not found.numbers else f"{told}; numbers: {len(found.numbers):,} of them"


def keys_words(found: Contents) -> str:
    """Return which keys there are, in a line; empty where none was named."""
    named = [(key, count) for key, count in found.keys.most_common(_VALUES) if key is not None]
    if not named:
        return ""
    shown = ", ".join(f"{printable(key)} {share_of(count, found.events)}" for key, count in named)
    more = len(found.keys) - len(named)
    return f"{len(found.keys):,} key{'s' if len(found.keys) > 1 else ''}: {shown}" + (", ..." if more > 0 else "")


def labels_table(found: Contents) -> Sheet:
    """Return each class with its share, the commonest first; of numbers how far they reach."""
    title = ", ".join([f"{found.events:,} events", *_ops_words(found)])
    if found.has_number_labels and found.label_range is not None:
        different = f"{len(found.labels):,} different"
        return Sheet(
            [Column("label"), Column("values")], [["number", f"{_range(*found.label_range)}, {different}"]], title
        )
    columns = [Column("class"), Column("events", is_number=True), Column("share", is_number=True)]
    total = found.labels.total()
    lines = [
        [printable(str(label)), f"{count:,}", share_of(count, total)]
        for label, count in found.labels.most_common(_CLASSES)
    ]
    more = len(found.labels) - _CLASSES
    return Sheet(columns, lines + ([[f"and {more:,} more", "", ""]] if more > 0 else []), title)


def _ops_words(found: Contents) -> list[str]:
    """Return how many events of each op there are, where not all are inserts."""
    return [f"{count:,} of them {op}s" for op, count in sorted(found.ops.items()) if op != "insert"]


def share_of(count: int, total: int) -> str:
    """Return a share in percent, which is 0 or 100 only where it is that exactly."""
    if not total:
        return ""
    if 0 < count < 0.0005 * total:
        return "<0.1%"
    return ">99.9%" if 0.9995 * total <= count < total else f"{count / total:.1%}"


def _range(low: float, high: float) -> str:
    return f"{number_word(low)} to {number_word(high)}"
