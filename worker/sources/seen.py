"""What the cells of a column look like, and so what the column is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from worker.sources.columns import Kind
from worker.sources.words import words

MISSING = frozenset(("NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "?"))
"""What stands for a number that is not known, beside an empty cell. As a category `NA` is a name like others."""

PRESENT = frozenset(("1", "true", "yes", "t", "y"))
ABSENT = frozenset(("0", "false", "no", "f", "n"))
_PAIRS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"))

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]{1,3})?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+")
_CODE = re.compile(r"[+-]?0[0-9]+")  # 007 is a name: as a number it would lose its noughts
_WHOLE = re.compile(r"[+-]?[0-9]{16,}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]+(?:Z|[+-][0-9:]+)?)?")
_FOREIGN_DATE = re.compile(r"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}(?:[ T][0-9:.]+(?: ?[aApP][mM])?)?")
_EXACT = 1 << 53  # beyond, a float64 does not hold every whole number
_MOSTLY = 0.8  # of the values are numbers: the others are more likely slips than categories
_WORDS = 4  # in the mean, and most values different: text
_KEPT = 20_000  # different values that are counted one by one
_LONGEST = 256  # of these; characters


class Seen:
    """What was seen of a column.

    Attributes
    ----------
    cells, empty, unknown
        How many cells there were, without anything, and with a name for what is not known.
    numbers, codes, commas, dates
        How many of the others are numbers; of these, such that have to stay names; numbers with a
        decimal comma; dates.
    low, high
        The least and the greatest number.
    values
        How often each value came, the first `_KEPT` different ones that are short.
    has_more
        Whether there were others.
    odd
        A value that is no number, the first one.
    counts_rows
        Whether the cells are 0, 1, 2 and so on, or from 1: an index that a program wrote beside the data.
    """

    def __init__(self, name: str, *, decimal_comma: bool, missing: frozenset[str]) -> None:
        self.name = name
        self._number = _COMMA_NUMBER if decimal_comma else _NUMBER
        self._decimal_comma = decimal_comma
        self._missing = missing
        self.cells = self.empty = self.unknown = 0
        self.numbers = self.codes = self.commas = self.dates = self.words = 0
        self.low, self.high = float("inf"), float("-inf")
        self.values: Counter[str] = Counter()
        self.has_more = False
        self.odd: str | None = None
        self.counts_rows = True
        self._first = 1

    def add(self, cells: Iterable[str]) -> None:
        """Look at some more cells."""
        stripped = [*map(str.strip, cells)]
        if self.counts_rows and stripped:
            if self.cells == 0:
                self._first = 0 if stripped[0] == "0" else 1
            begin = self._first + self.cells
            self.counts_rows = stripped == [str(row) for row in range(begin, begin + len(stripped))]
        for cell, count in Counter(stripped).items():
            self.cells += count
            if not cell or cell in self._missing:
                self.empty += count
            else:
                self._add(cell, count)

    def _add(self, cell: str, count: int) -> None:
        if cell in self.values or (len(self.values) < _KEPT and len(cell) <= _LONGEST):
            self.values[cell] += count
        else:
            self.has_more = True
        if cell in MISSING:
            self.unknown += count
            return
        value = self._value(cell)
        if value is not None:
            self.numbers += count
            self.low, self.high = min(self.low, value), max(self.high, value)
            if _CODE.fullmatch(cell) or (_WHOLE.fullmatch(cell) and abs(int(cell)) > _EXACT):
                self.codes += count
            return
        self.odd = self.odd or cell
        if _COMMA_NUMBER.fullmatch(cell):
            self.commas += count
        elif is_date(cell):
            self.dates += count
        else:
            self.words += count * len(words(cell[:1_000]))

    def _value(self, cell: str) -> float | None:
        plain = _NUMBER.fullmatch(cell) is not None
        if self._decimal_comma and _COMMA_NUMBER.fullmatch(cell):
            cell, plain = cell.replace(",", "."), True
        elif self._decimal_comma and "." in cell:
            plain = False
        value = float(cell) if plain else float("inf")
        return value if abs(value) < float("inf") else None

    @property
    def known(self) -> int:
        """How many cells hold a value."""
        return self.cells - self.empty - self.unknown

    @property
    def has_decimal_commas(self) -> bool:
        """Whether all values are numbers, some of them with a comma before the fraction."""
        return 0 < self.commas and self.commas + self.numbers == self.known

    @property
    def has_thousands(self) -> bool:
        """Whether all commas have three digits behind them, as those between thousands do."""
        return all(_THOUSANDS.fullmatch(value) for value in self.values if "," in value)

    @property
    def has_slips(self) -> bool:
        """Whether most values are numbers, and some are not."""
        return _MOSTLY * self.known <= self.numbers < self.known

    @property
    def is_time(self) -> bool:
        """Whether all values are dates or times."""
        return 0 < self.dates == self.known

    @property
    def has_foreign_dates(self) -> bool:
        """Whether the values are dates, though none that ISO 8601 knows."""
        return bool(self.values) and all(_FOREIGN_DATE.fullmatch(value) for value in self.values)

    @property
    def is_mostly_different(self) -> bool:
        """Whether more than half of the values came once only."""
        return self.has_more or len(self.values) * 2 > self.known

    @property
    def is_all_different(self) -> bool:
        """Whether no value came twice, as far as they were counted one by one."""
        return max(self.values.values(), default=0) <= 1

    @property
    def kind(self) -> Kind:
        """What the column is, as far as its values tell."""
        if self.known == 0:
            return "binary"
        if self.numbers == self.known and not self.codes:
            return "binary" if self._is_among(("1", "0")) else "numeric"
        if any(self._is_among(pair) for pair in _PAIRS):
            return "binary"
        if self.is_time:
            return "ignored"
        if self.has_foreign_dates:
            return "nominal"
        if self.words >= _WORDS * self.known and self.is_mostly_different:
            return "text"
        return "nominal"

    def _is_among(self, pair: tuple[str, str]) -> bool:
        return not self.has_more and all(value.lower() in pair or value in MISSING for value in self.values)


def is_date(cell: str) -> bool:
    """Return whether a cell is a date, or a date and a time."""
    if not _DATE.fullmatch(cell):
        return False
    try:
        datetime.fromisoformat(cell)
    except ValueError:
        return False
    return True
