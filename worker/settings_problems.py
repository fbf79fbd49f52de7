"""Say what is wrong with settings in the reader's terms: what was expected, what came, what was meant."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from worker.settings_file import Document, Location, Problem

# Pydantic's kinds of error, and what each says was expected.
_EXPECTED = {
    "missing": "a value",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "string_type": "a string",
    "path_type": "a path",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dataclass_type": "a mapping",
    "literal_error": "{expected}",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "string_too_short": "at least {min_length} character",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} entry",
}
_UNKNOWN_NAME = ("extra_forbidden", "unexpected_keyword_argument")
_KEY = "[key]"  # how pydantic marks an error in a mapping's key


class Conflict(NamedTuple):
    """Settings that are right one by one and do not fit together."""

    location: Location
    expected: str
    got: object
    about_name: bool = False  # the name at the location is wrong, not its value
    choices: tuple[str, ...] = ()  # what may have been meant


def expected(what: str, choices: tuple[str, ...] = ()) -> PydanticCustomError:
    """Return the error for a validator to raise; what came is known from the settings."""
    return PydanticCustomError("expected", "expected {expected}", {"expected": what, "choices": choices})


def conflicting(conflicts: list[Conflict]) -> PydanticCustomError:
    """Return the error for a validator of the whole to raise."""
    text = "; ".join(f"expected {conflict.expected}, got {show(conflict.got)}" for conflict in conflicts)
    return PydanticCustomError("conflicts", "{text}", {"text": text, "conflicts": conflicts})


def explain(error: ValidationError, document: Document, kind: type[BaseModel]) -> list[Problem]:
    """Turn what pydantic found into problems with places, in the order of the file."""
    problems = []
    for detail in error.errors(include_url=False):
        problems += [_problem(document, conflict) for conflict in _conflicts(detail, kind)]
    return sorted(problems, key=lambda problem: (problem.place.line or 0, problem.place.column or 0))


def show(value: object) -> str:
    """Return a value as the settings file would have it, in at most some 60 characters."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a mapping"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _conflicts(detail: ErrorDetails, kind: type[BaseModel]) -> Iterator[Conflict]:
    context = detail.get("ctx", {})
    if detail["type"] == "conflicts":
        yield from context["conflicts"]
        return
    location = tuple(part for part in detail["loc"] if part != _KEY)
    if detail["type"] in _UNKNOWN_NAME:
        names = tuple(_names(kind, location[:-1]))
        yield Conflict(location, f"one of {', '.join(names)}", location[-1], about_name=True, choices=names)
    elif detail["type"] == "expected":
        about_name = _KEY in detail["loc"]
        yield Conflict(location, context["expected"], detail["input"], about_name, context["choices"])
    else:
        known = _EXPECTED.get(detail["type"])
        wanted = known.format(**context) if known else detail["msg"]
        got = _Nothing() if detail["type"] == "missing" else detail["input"]
        choices = re.findall(r"'([^']+)'", wanted) if detail["type"] == "literal_error" else ()
        yield Conflict(location, wanted, got, choices=tuple(choices))


def _problem(document: Document, conflict: Conflict) -> Problem:
    places = document.key_place if conflict.about_name else document.value_place
    message = f"expected {conflict.expected}, got {show(conflict.got)}"
    close = difflib.get_close_matches(str(conflict.got), conflict.choices, n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    return Problem(places(conflict.location), conflict.location, message + hint)


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


def _names(kind: Any, location: Sequence[str | int]) -> list[str]:
    """Return the names that the section at this location may hold."""
    for part in location:
        kind = _fields(kind).get(str(part)) or _values(kind)
    return sorted(_fields(kind))


def _fields(kind: Any) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    if dataclasses.is_dataclass(kind):
        return get_type_hints(kind)
    return {}


def _values(kind: Any) -> Any:
    """Return the kind of a mapping's values."""
    if get_origin(kind) is Mapping:
        return get_args(kind)[1]
    return next((part for part in get_args(kind) if part is not NoneType), None)
