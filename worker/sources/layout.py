"""What each column of a table is: what was said of it, else what its first rows show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from worker.sources.columns import SINGLE, Columns, Kind, option
from worker.sources.example import UnreadableError, brief, label, number
from worker.sources.lines import Lines, SourceError
from worker.sources.seen import MISSING, Seen, is_date

_LABELS = ("label", "class", "target", "y")  # a column of this name is the label where none was named
_TIMES = ("ts", "time", "timestamp")
_OPS = frozenset(("insert", "delete", "predict", "label"))
_MANY_CLASSES = 1_000  # a model has no more
_ALIKE_ROWS = 1_000  # in which a name that comes again is no name of a column
_ENOUGH = 20  # rows that tell something of how values differ
_SHOWN = 8  # columns of a kind in a message
_SECONDS = range(10**8, 10**11)  # as ms these would be times of 1970 to 1973


class Feature(NamedTuple):
    """A column that gives features."""

    at: int  # its index
    name: str
    kind: Kind
    declared: bool  # by a person; else its first rows tell
    prefix: str = ""  # before the words of a text


class Layout(NamedTuple):
    """Where in a row what is found; -1: nowhere."""

    names: list[str]
    label: int
    key: int
    id: int
    time: int
    weight: int
    op: int
    features: tuple[Feature, ...]
    seen: list[Seen]  # of each column

    @property
    def width(self) -> int:
        """How many cells a row has."""
        return len(self.names)

    def of(self, kind: Kind) -> list[str]:
        """Return the columns of a kind."""
        return [feature.name for feature in self.features if feature.kind == kind]

    @property
    def left_out(self) -> list[str]:
        """The columns that are nothing."""
        used = {feature.at for feature in self.features} | {getattr(self, use) for use in SINGLE}
        return [name for index, name in enumerate(self.names) if index not in used]

    def describe(self) -> str:
        """Return what the columns are, in a line."""
        uses = [f"{use} {self.names[at]!r}" for use in SINGLE if (at := getattr(self, use)) >= 0]
        kinds: list[tuple[str, list[str]]] = [
            (kind, self.of(kind)) for kind in ("numeric", "nominal", "binary", "text")
        ]
        parts = [f"{kind} {_few(names)}" for kind, names in [*kinds, ("left out", self.left_out)] if names]
        return "; ".join(["columns: " + ", ".join(uses) if uses else "columns", *parts])


def has_header(columns: Columns, rows: Sequence[list[str]]) -> bool:
    """Return whether the first of some rows names the columns."""
    if columns.header is not None:
        return columns.header
    first, *others = rows[:_ALIKE_ROWS]
    if columns.named and set(columns.named) <= {cell.strip() for cell in first}:
        return True
    for index, cell in enumerate(map(str.strip, first)):
        if cell and (_is_value(cell) or any(len(row) > index and row[index].strip() == cell for row in others)):
            return False
    return True


def _is_value(cell: str) -> bool:
    seen = Seen("", decimal_comma=True, missing=frozenset())
    seen.add([cell])
    return bool(seen.numbers or seen.commas) or cell in MISSING or is_date(cell)


def names_of(lines: Lines, columns: Columns, first: list[str], *, header: bool) -> list[str]:
    """Return the name of each column: what the first row says, else its number from 1."""
    names = [cell.strip() if header else "" for cell in first]
    for index, name in enumerate(names):
        if name and name in names[:index]:
            raise SourceError(
                f"{lines.name}:1: expected each column name once, got {brief(name)} for the columns "
                f"{names.index(name) + 1} and {index + 1}; rename one in the file, or say --no-header where "
                "its first line is no header"
            )
    numbered = [name or str(index) for index, name in enumerate(names, 1)]
    for column in columns.named:
        if column not in numbered:
            without = "" if header else " (columns go by their numbers, as no header was found or wanted)"
            meant = get_close_matches(column.lower(), [name.lower() for name in numbered], 1)
            like = [name for name in numbered if name.lower() in meant][:1] or ["one of these"]
            raise SourceError(
                f"{lines.name}:1: expected a column {column!r}, got {_few(numbered)}{without}; name {like[0]}"
            )
    if len(set(numbered)) < len(numbered):
        raise SourceError(
            f"{lines.name}:1: expected a name for each column, got none for one and its number for another; "
            "name it in the file"
        )
    return numbered


def survey(columns: Columns, names: Iterable[str]) -> list[Seen]:
    """Return where to keep what is seen of each column."""
    comma = columns.decimal == "comma"
    return [Seen(name, decimal_comma=comma, missing=frozenset(columns.missing)) for name in names]


def layout(lines: Lines, columns: Columns, seen: list[Seen], *, header: bool) -> Layout:
    """Return what each column is.

    Raises `SourceError` where no column is the label, or what was seen of one can mean two things.
    """
    names = [each.name for each in seen]
    uses = _uses(lines, columns, seen)
    if uses["label"] is None and not columns.unlabelled:
        if not seen:
            raise SourceError(
                f"{lines.name}:1: expected rows with a column for the label, got rows without columns"
            )
        example = option("--label", _likeliest_label(seen).name)
        raise SourceError(
            f"{lines.name}:1: expected to be told the label's column, as none is called {', '.join(_LABELS)}; got "
            f"{_few(names)}; say {example}, or whichever it is{_without_label(columns, names, header=header)}"
        )
    if uses["id"] is None and columns.identified:
        raise SourceError(
            f"{lines.name}:1: expected to be told the id's column, as none is called id, and a label has that of "
            f"its predict; got {_few(names)}; say --id COLUMN"
        )
    taken = {column for column in uses.values() if column is not None}
    wanted = names if columns.features is None else [*dict.fromkeys([*columns.features, *columns.kinds])]
    features = []
    for name in (name for name in wanted if name not in taken):
        index = names.index(name)
        declared = columns.kinds.get(name)
        kind = declared or _kind_of(lines, columns, seen[index], unnamed=header and name == str(index + 1))
        if kind != "ignored":
            features.append(Feature(index, name, kind, declared is not None))
    _check_alike(lines, [each for each in features if not each.declared and seen[each.at].known])
    texts = sum(feature.kind == "text" for feature in features)
    if texts > 1:
        features = [each._replace(prefix=f"{each.name}:") if each.kind == "text" else each for each in features]
    places = {use: -1 if column is None else names.index(column) for use, column in uses.items()}
    made = Layout(names=names, features=tuple(features), seen=seen, **places)
    _look_at_labels(lines, made)
    lines.note(made.describe(), line=1)
    return made


def _check_alike(lines: Lines, features: Iterable[Feature]) -> None:
    """Raise where a column that was guessed gives other features than the topic has: categories, or none."""
    plain = {known for known in lines.known if "=" not in known}
    nominal = {known.partition("=")[0] for known in lines.known if "=" in known}
    for name, kind in ((each.name, each.kind) for each in features):
        was = "categories" if name in nominal else "numbers or truth values"
        if kind == "nominal" and name in plain - nominal:
            say = (option("--numeric", name), option("--binary", name), option("--nominal", name))
        elif kind in ("numeric", "binary") and name in nominal - plain:
            say = (option("--nominal", name), option(f"--{kind}", name), "")
        else:
            continue
        raise SourceError(
            f"{lines.name}:1: expected {was} in the column {name!r}, as the topic's events and models have them, "
            f"got what looks {kind}; say what it is: {', or '.join(filter(None, say))}"
        )


def _likeliest_label(seen: list[Seen]) -> Seen:
    """Return the last or the first column if it holds a few names, else the column with the fewest values."""
    for each in (seen[-1], seen[0]):
        if not each.numbers and not each.has_more and 2 <= len(each.values) <= _MANY_CLASSES:
            return each
    return min(reversed(seen), key=lambda each: (each.has_more, len(each.values) < 2, len(each.values)))


def _without_label(columns: Columns, names: list[str], *, header: bool) -> str:
    """Return what can be said of a table that has no label."""
    text = ", or --format text where lines are a label, a tab and a text" if len(names) == 2 and not header else ""
    return f"{text}; without labels, publish --as predict" if columns.published else text


def _uses(lines: Lines, columns: Columns, seen: list[Seen]) -> dict[str, str | None]:
    """Return the column of each use: the one that was named, else one that is called so and looks so."""
    uses = dict(columns.uses)
    free = {each.name.lower(): each for each in reversed(seen) if each.name not in columns.named}
    if uses["label"] is None:
        called = [name for name in _LABELS if name in free]
        uses["label"] = free[called[0]].name if len(called) == 1 else None
    if uses["time"] is None:
        uses["time"] = next((free[name].name for name in _TIMES if name in free and _are_times(free[name])), None)
    looks: dict[str, Callable[[Seen], bool]] = {
        "op": lambda each: bool(_OPS & set(each.values)),
        # A delete has the id of an insert; a label has that of a predict, and may come twice.
        "id": lambda each: columns.identified or uses["op"] is not None or each.is_all_different,
        "key": lambda each: True,
    }
    for use, fits in looks.items():
        if uses[use] is None and use in free and fits(free[use]):
            uses[use] = free[use].name
    if uses["time"] is not None and columns.time_unit is None:
        _check_unit(lines, next(each for each in seen if each.name == uses["time"]))
    return uses


def _are_times(seen: Seen) -> bool:
    """Return whether a column that is called a time holds one: dates, or ms since 1973."""
    return seen.is_time or (0 < seen.numbers == seen.known and seen.low >= _SECONDS.stop)


def _check_unit(lines: Lines, seen: Seen) -> None:
    if 0 < seen.numbers == seen.known and seen.low >= _SECONDS.start and seen.high < _SECONDS.stop:
        raise SourceError(
            f"{lines.name}: expected ms since the epoch in the column {seen.name!r}, got {seen.low:.0f} to "
            f"{seen.high:.0f}, which would be of the years 1970 to 1973; say --time-unit s where these are "
            "seconds, or --time-unit ms"
        )


def _kind_of(lines: Lines, columns: Columns, seen: Seen, *, unnamed: bool) -> Kind:
    """Return what a column is of which nothing was said."""
    name = seen.name
    if unnamed and seen.counts_rows:
        lines.note(f"column {name} has no name and counts the rows: it is left out", line=1)
        return "ignored"
    choices = f"{option('--nominal', name)}, or {option('--ignore', name)}"
    if columns.decimal is None and seen.has_decimal_commas:
        raise SourceError(
            f"{lines.name}: expected numbers with a decimal point, got {brief(seen.odd or '')} in the column "
            f"{name!r}; say --decimal comma where commas begin a fraction, "
            f"{'take them out of the file where they stand between thousands, ' if seen.has_thousands else ''}"
            f"{choices}"
        )
    if seen.has_slips:
        slip = seen.odd or ""
        raise SourceError(
            f"{lines.name}: expected numbers in the column {name!r}, as {seen.numbers:,} of its first "
            f"{seen.known:,} values are, got {brief(slip)} too; say {option('--missing', slip)} where that is no "
            f"value, {option('--numeric', name)} to have such lines refused, {choices}"
        )
    kind = seen.kind
    if kind == "ignored":
        lines.note(
            f"column {name!r} holds times: it is left out; {option('--time', name)} makes it the event time",
            line=1,
        )
    elif kind == "nominal" and seen.has_foreign_dates:
        lines.note(
            f"column {name!r} holds dates, but not as ISO 8601 writes them: it is nominal; "
            f"{option('--ignore', name)} leaves it out",
            line=1,
        )
    elif kind == "nominal" and is_of_each_row(seen):
        lines.note(
            f"nearly every row has a value of its own in column {name!r}, which tells a model nothing; "
            f"{option('--text', name)} takes its words, {option('--id', name)} or {option('--key', name)} its "
            f"meaning, {option('--ignore', name)} leaves it out",
            line=1,
        )
    return kind


def is_of_each_row(seen: Seen) -> bool:
    """Return whether nearly every row has a value of its own, which tells a model nothing."""
    return seen.known >= _ENOUGH and seen.is_mostly_different


def numbers_rows(seen: Seen) -> bool:
    """Return whether the values are the numbers of the rows, which are too many for an accident."""
    return seen.counts_rows and seen.cells >= _ENOUGH


def _look_at_labels(lines: Lines, made: Layout) -> None:
    """Tell of labels that are neither classes nor numbers to be predicted."""
    if made.label < 0:
        return
    seen = made.seen[made.label]
    if seen.numbers == seen.known:
        return  # a model may predict such a number
    if seen.has_more or len(seen.values) > _MANY_CLASSES:
        lines.note(
            f"label {seen.name!r} has more than {_MANY_CLASSES:,} different values in the first rows, and a "
            "model tells apart as many classes at most",
            line=1,
        )
    elif is_of_each_row(seen):
        lines.note(
            f"nearly every row has a label of its own in column {seen.name!r}, so that there is nothing to learn; "
            "name another column with --label",
            line=1,
        )


def check_number(cell: str, feature: Feature, columns: Columns) -> float:
    """Return the number of a cell; raise `UnreadableError` with what can be said where it is none."""
    text = cell
    if columns.decimal == "comma":
        text = "" if "." in cell else cell.replace(",", ".")
    try:
        return number(text)
    except UnreadableError:
        raise UnreadableError(
            f"expected a number in the column {feature.name!r}, got {brief(cell)}; correct it, or say "
            f"{option('--missing', cell)} where that is no value, or {option('--nominal', feature.name)}"
        ) from None


def classes_of(made: Layout) -> dict[int | float | str, int]:
    """Return how often each label was seen."""
    counts: dict[int | float | str, int] = {}
    for text, count in made.seen[made.label].values.items() if made.label >= 0 else ():
        counts[label(text)] = counts.get(label(text), 0) + count
    return counts


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(map(brief, names[:_SHOWN]))
    return shown + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
