"""What settings are made of: sections, names, and when something is written."""

from __future__ import annotations

import re
from typing import Annotated, Literal, NamedTuple, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer, PlainValidator

from algorithms.core.cadence import Emit, When
from worker.settings.problems import expected

T = TypeVar("T")


class Section(BaseModel):
    """A mapping in the settings file: frozen, strict, without unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _model_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
        raise expected("a model name (a-z, 0-9, '_' and '-', at most 64, a letter or digit first)")
    return name


def _topic_name(name: str) -> str:
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) or name in (".", ".."):
        raise expected("a topic name (letters, digits, '.', '_' and '-', at most 249)")
    return name


class Cadence(NamedTuple):
    """When something is written: on change, every n events of the key, every n ms of event time, or never."""

    kind: Literal["change", "every", "every_ms", "never"]
    n: int = 0  # events or milliseconds; 0 for the kinds without a number

    @property
    def due(self) -> Emit:
        """The same in the words of the pools."""
        return Emit(When[self.kind.upper()], max(self.n, 1))

    @property
    def words(self) -> str:
        """The same for a person, behind what is written."""
        match self.kind:
            case "change":
                return "whenever a key's tree changes"
            case "every":
                return f"after every {self.n:,} events of a key"
            case "every_ms":
                return f"after every {self.n / 1000:,g} s of a key's event time"
        return "never, as emit.snapshots says"


def _cadence(value: object) -> Cadence:
    if isinstance(value, Cadence):
        return value
    if value == "change" or value == "never":
        return Cadence(value)
    if isinstance(value, dict) and len(value) == 1:
        ((kind, n),) = value.items()
        if kind in ("every", "every_ms") and type(n) is int and n >= 1:
            return Cadence(kind, n)
    raise expected("'change', 'never', {every: N} or {every_ms: T} with a number from 1", ("change", "never"))


def _written(cadence: Cadence) -> str | dict[str, int]:
    return {cadence.kind: cadence.n} if cadence.n else cadence.kind


class Span(NamedTuple):
    """A time span, written as a number and a unit."""

    ms: int

    @property
    def words(self) -> str:
        """The span in the largest unit of which it is a whole number."""
        unit = next(unit for unit, ms in _UNITS.items() if self.ms % ms == 0)
        return f"{self.ms // _UNITS[unit]}{unit}"


_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}  # in ms, the largest first
_LONGEST = 36_500 * _UNITS["d"]


def _span_in(value: object) -> Span | None:
    if isinstance(value, Span):
        return value
    if isinstance(value, str) and (found := re.fullmatch(r"([1-9][0-9]{0,11})([dhms])", value)):
        ms = int(found[1]) * _UNITS[found[2]]
        if ms <= _LONGEST:
            return Span(ms)
    return None


def _span(value: object) -> Span:
    if (span := _span_in(value)) is not None:
        return span
    raise expected("a time span from 1s to 36500d: a whole number and d, h, m or s, as in 90d")


def _window(value: object) -> int | Span:
    if type(value) is int and 1 <= value <= _MOST:
        return value
    if (span := _span_in(value)) is not None:
        return span
    raise expected(f"a number of examples from 1 to {_MOST}, or a time span from 1s to 36500d, as in 1000 or 30d")


_MOST = 1 << 30

Window: TypeAlias = Annotated[int | Span, PlainValidator(_window), PlainSerializer(lambda window: written(window))]


def written(value: T | Span) -> T | str:
    """Return a value as it is written in settings."""
    return value.words if isinstance(value, Span) else value


def number_of(window: int | Span | None) -> int | None:
    """Return how many examples a window has, None where it is a span of time, or none."""
    return None if isinstance(window, Span) else window


def span_of(window: int | Span | None) -> Span | None:
    """Return the span of a window, None where it is a number of examples, or none."""
    return window if isinstance(window, Span) else None


def ms_of(window: int | Span | None) -> int | None:
    """Return the span of a window in ms, None where it has none."""
    return window.ms if isinstance(window, Span) else None


ModelName: TypeAlias = Annotated[str, AfterValidator(_model_name)]
TopicName: TypeAlias = Annotated[str, AfterValidator(_topic_name)]
TimeSpan: TypeAlias = Annotated[Span, PlainValidator(_span), PlainSerializer(lambda span: span.words)]
Due: TypeAlias = Annotated[Cadence, PlainValidator(_cadence), PlainSerializer(_written)]
