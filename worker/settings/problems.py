"""Say what is wrong with settings in the reader's terms: what was expected, what came, what was meant."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from worker.settings.by_kind import ByKind, words_of
from worker.settings.file import REGISTRY_TEXTS, TEXTS, Document, Location, Problem, texts_at

# Pydantic's kinds of error, and what each says was expected.
_EXPECTED = {
    "missing": "a value",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "string_type": "a string",
    "path_type": "a path",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dataclass_type": "a mapping",
    "literal_error": "{expected}",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "greater_than": "more than {gt}",
    "less_than": "less than {lt}",
    "string_too_short": "at least {min_length} character",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} entry",
    "too_long": "at most {max_length} entries",
}
_UNKNOWN_NAME = ("extra_forbidden", "unexpected_keyword_argument")
_NO_TAG = ("union_tag_invalid", "union_tag_not_found")  # a section whose kind is not told, or unknown
# Which may hold a password by mistake.
_ADDRESSES: tuple[Location, ...] = (("log", "kafka", "bootstrap"), ("registry", "url"))
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
    text = "; ".join(f"expected {conflict.expected}, got {_got(conflict)}" for conflict in conflicts)
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
            return "a mapping" if value else "an empty mapping"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _conflicts(detail: ErrorDetails, kind: type[BaseModel]) -> Iterator[Conflict]:
    context = detail.get("ctx", {})
    if detail["type"] == "conflicts":
        yield from context["conflicts"]
        return
    location, section = _followed(detail["loc"], kind)
    if detail["type"] in _UNKNOWN_NAME:
        yield _unknown_name(location, section)
    elif detail["type"] in _NO_TAG:
        words = words_of(_tags(section))
        got = detail["input"]["kind"] if "tag" in context else Words("nothing")
        *most, last = map(repr, words)
        yield Conflict((*location, "kind"), f"{', '.join(most)} or {last}", got, choices=words)
    elif detail["type"] == "expected":
        about_name = _KEY in detail["loc"]
        yield Conflict(location, context["expected"], detail["input"], about_name, context["choices"])
    else:
        known = _EXPECTED.get(detail["type"])
        wanted = known.format(**context) if known else detail["msg"]
        got = Words("nothing") if detail["type"] == "missing" else detail["input"]
        choices = re.findall(r"'([^']+)'", wanted) if detail["type"] == "literal_error" else ()
        yield Conflict(location, wanted, got, choices=tuple(choices))


def _unknown_name(location: Location, section: Any) -> Conflict:
    """Say that a section has no such setting, or has it by another name already."""
    name, names, aliases = str(location[-1]), tuple(sorted(_fields(section))), _aliases(section)
    if name in aliases:
        wanted = f"either '{aliases[name]}' or '{name}', two names of one setting"
        return Conflict(location, wanted, Words("both"), about_name=True)
    reason = getattr(section, "ELSEWHERE", {}).get(name)
    if reason:
        return Conflict(location, f"no '{name}' ({reason})", name, about_name=True)
    return Conflict(location, f"one of {', '.join(names)}", name, about_name=True, choices=(*names, *aliases))


def _problem(document: Document, conflict: Conflict) -> Problem:
    places = document.key_place if conflict.about_name else document.value_place
    message = f"expected {conflict.expected}, got {_got(conflict)}"
    close = difflib.get_close_matches(str(conflict.got), conflict.choices, n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    return Problem(places(conflict.location), conflict.location, message + hint)


class Words(str):
    """What is said to have come, in words."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _got(conflict: Conflict) -> str:
    """Return what came; nothing of it where a property of a client may be in it, which may be secret."""
    got, location = conflict.got, conflict.location
    inside = texts_at(location) is not None or location in _ADDRESSES
    holds = any(
        location == texts[: len(location)] and (len(location) > 1 or (isinstance(got, list) and bool(got)))
        for texts in (TEXTS, REGISTRY_TEXTS)
    )
    if conflict.about_name or isinstance(got, Words) or not (inside or holds):
        return show(got)
    match got:
        case list():
            return "a list"
        case dict() | None:
            return show(got)
    return "something else (it is not shown)"


def _followed(location: Location, kind: Any) -> tuple[Location, Any]:
    """Return a location without what pydantic adds to names, and the kind of the last section on the way."""
    written: list[str | int] = []
    section = kind
    for part in location:
        if part == _KEY:
            continue
        if part in _tags(kind):
            section = kind = _tags(kind)[str(part)]
            continue
        if _fields(kind) or _tags(kind):
            section = kind
        kind = _present(_fields(kind).get(str(part)) or _values(kind))
        written.append(part)
    return tuple(written), kind if _tags(kind) else section


def _tags(kind: Any) -> Mapping[str, Any]:
    """Return the sections of which one may stand here, by the `kind` that tells them apart."""
    marks = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((mark.sections() for mark in marks if isinstance(mark, ByKind)), {})


def _aliases(kind: Any) -> dict[str, str]:
    """Return the settings of a section that have another name, too, by that name."""
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return {}
    return {
        str(alias): name
        for name, field in kind.model_fields.items()
        if isinstance(field.validation_alias, AliasChoices)
        for alias in field.validation_alias.choices
        if alias != name
    }


def _fields(kind: Any) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    if dataclasses.is_dataclass(kind):
        return get_type_hints(kind)
    return {}


def _present(kind: Any) -> Any:
    """Return a kind without the None that may stand in its place."""
    parts = [part for part in get_args(kind) if part is not NoneType]
    return parts[0] if NoneType in get_args(kind) and len(parts) == 1 else kind


def _values(kind: Any) -> Any:
    """Return the kind of a mapping's values."""
    if get_origin(kind) is Mapping:
        return get_args(kind)[1]
    return next(iter(get_args(kind)), None)
