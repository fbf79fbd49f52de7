"""What the columns of a table are: what a person says of them."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["numeric", "nominal", "binary", "text", "ignored"]
SINGLE = ("label", "key", "id", "time", "weight", "op")  # each the use of one column at most
KINDS: tuple[Kind, ...] = ("numeric", "nominal", "binary", "text", "ignored")


@dataclass(frozen=True, slots=True)
class Columns:
    """What is known of the columns of a table; what is not is found out from its first rows.

    A column goes by its name, or by its number from 1 where it has none.

    Parameters
    ----------
    label, key, id, time, weight, op
        The columns of the label, the model's key, the example's id, the event time, the weight, and
        of what is to be done: insert, delete, predict or label.
    text
        Columns that are cut into words.
    numeric, nominal, binary
        Columns of numbers, of names of categories, and of what is present or absent.
    ignored
        Columns that are left out.
    features
        The columns that are features; None: all that are left.
    header
        Whether the first line names the columns; None: found out.
    delimiter
        What stands between cells; None: found out.
    decimal
        What stands before the fraction of a number; None: a point, and commas are asked about.
    missing
        What else stands for a cell without a value, beside nothing at all and `NA`.
    time_unit
        What a time is counted in; None: milliseconds, and what looks like seconds is asked about.
    unlabelled
        Whether rows need no label, as they are predicts or deletes.
    identified
        Whether rows need an id, as they are labels of what was predicted.
    published
        Whether rows become events of a topic, where those without a label can be predicts.
    """

    label: str | None = None
    key: str | None = None
    id: str | None = None
    time: str | None = None
    weight: str | None = None
    op: str | None = None
    text: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    nominal: tuple[str, ...] = ()
    binary: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    header: bool | None = None
    delimiter: str | None = None
    decimal: Literal["point", "comma"] | None = None
    missing: tuple[str, ...] = ()
    time_unit: Literal["ms", "s"] | None = None
    unlabelled: bool = False
    identified: bool = False
    published: bool = True

    def __post_init__(self) -> None:
        twice = [column for column, uses in Counter(self.special).items() if uses > 1]
        if twice:
            raise ValueError(f"expected one use of each column, got several of {twice[0]!r}; name it once")

    @property
    def special(self) -> list[str]:
        """The columns that have a use or a kind by what was said."""
        uses = [column for column in self.uses.values() if column is not None]
        return [*uses, *self.text, *self.numeric, *self.nominal, *self.binary, *self.ignored]

    @property
    def named(self) -> list[str]:
        """All columns that were named."""
        return [*self.special, *(self.features or ())]

    @property
    def uses(self) -> dict[str, str | None]:
        """The column of each use."""
        return {use: getattr(self, use) for use in SINGLE}

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kind of each column that has one by what was said."""
        return {column: kind for kind in KINDS for column in getattr(self, kind)}


def option(name: str, column: str) -> str:
    """Return an option about a column as it is to be typed, quoted for lists and for the shell.

    Examples
    --------
    >>> print(option("--numeric", "price, net"))
    --numeric '"price, net"'
    """
    as_it_is = not set(column) & set(',"') and column == column.strip()
    quoted = column if as_it_is else '"' + column.replace('"', '""') + '"'
    return f"{name} {shlex.quote(quoted)}"
