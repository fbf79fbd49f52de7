"""What every generator offers: a schema, and the next examples in columns."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from algorithms.core.arrays import Float64s, Int64s

NUMERIC = 0
BINARY = 2
NUMBERS = 0  # in the place of how many classes there are


class Attribute(NamedTuple):
    """One attribute of the examples; its feature id is its place in the schema."""

    name: str
    values: int  # NUMERIC, or how many values a nominal one has: 0, 1, ..., values - 1


class Schema(NamedTuple):
    """What the columns of the examples are."""

    attributes: tuple[Attribute, ...]
    classes: int  # labels are 0, 1, ..., classes - 1; NUMBERS: they are numbers

    @property
    def is_binary(self) -> bool:
        """Whether every attribute is either absent or present."""
        return all(attribute.values == BINARY for attribute in self.attributes)


class Examples(NamedTuple):
    """Consecutive examples of a stream."""

    value: Float64s  # float64[n, attributes]; the value of a nominal attribute is a whole number
    label: Int64s | Float64s  # int64[n]; of numbers float64[n]


class Generator(Protocol):
    """An endless stream of examples, the same for ever for the same parameters.

    The definitions are those of MOA (Bifet, Holmes, Kirkby and Pfahringer: MOA: Massive Online Analysis. Journal
    of Machine Learning Research 11, 2010); the random numbers are not, so streams equal MOA's in distribution.
    """

    @property
    def schema(self) -> Schema:
        """What the columns are."""
        ...

    def take(self, n: int) -> Examples:
        """Return the next n examples: however many calls they are taken in, they are the same."""
        ...


def within(name: str, value: float, low: float, high: float) -> None:
    """Raise `ValueError` where a parameter lies outside its bounds."""
    if not low <= value <= high:
        raise ValueError(f"expected {name} from {low} to {high}, got {value}; choose another")


def at_least(name: str, value: float, low: float) -> None:
    """Raise `ValueError` where a parameter lies below its bound, or beyond all measure."""
    within(name, value, low, (1 << 63) - 1)
