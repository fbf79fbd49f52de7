"""Sections of which one may stand in a place, told apart by `kind`. Which there are is asked anew each time.

What is made of others tells of which: ``{kind: forest, of: {kind: tree}}`` is of the kind ``forest of tree``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Union, get_args

from pydantic import BaseModel, Discriminator, GetCoreSchemaHandler, Tag, TypeAdapter, ValidationInfo
from pydantic_core import CoreSchema, core_schema

_OF = " of "


class ByKind:
    """Marks a type whose values are sections of any kind that is registered.

    Pydantic's own unions hold what was there when their class was made. This one asks, so that a kind may be
    registered at any time before settings are read.

    Parameters
    ----------
    registered : callable
        Returns the sections by their kinds, two at least.
    """

    def __init__(self, registered: Callable[[], Mapping[str, type[BaseModel]]]) -> None:
        self.sections = registered

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let pydantic ask which sections there are; values are written as what they are."""
        return core_schema.with_info_plain_validator_function(self._validated)

    def _validated(self, value: Any, info: ValidationInfo) -> Any:
        union = _union(tuple(self.sections().values()))
        if info.mode == "python":
            return union.validate_python(value, context=info.context)
        return union.validate_json(json.dumps(value), context=info.context)


def kind_of(section: type[BaseModel]) -> str:
    """Return the kind of the sections of a class.

    Raises
    ------
    TypeError
        Where the class does not tell exactly one.
    """
    field, of = section.model_fields.get("kind"), section.model_fields.get("of")
    match get_args(field.annotation) if field is not None else ():
        case (str(kind),):
            return kind if of is None else f"{kind}{_OF}{kind_of(of.annotation)}"  # type: ignore[arg-type]
    raise TypeError(
        f"{section.__name__}: expected a field 'kind' of the type Literal with the kind's name, "
        f"got {'none' if field is None else field.annotation}; add kind: Literal['...']"
    )


def kind_told(told: Mapping[str, Any]) -> str:
    """Return the kind that a section tells; one that is none where it tells none."""
    kind, of = told.get("kind"), told.get("of")
    return f"{kind}{_OF}{of.get('kind')}" if isinstance(of, Mapping) else str(kind)


def words_of(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return what may stand after `kind:`, each once."""
    return tuple(dict.fromkeys(kind.partition(_OF)[0] for kind in kinds))


@cache
def _union(sections: tuple[type[BaseModel], ...]) -> TypeAdapter[Any]:
    kinds = {kind_of(section): section for section in sections}

    def chosen(value: Any) -> str | None:
        """Return the kind by which a value is read: where it tells of what it is, one that is of something."""
        if not isinstance(value, Mapping):
            return kind_of(type(value)) if isinstance(value, BaseModel) else None
        if "kind" not in value:
            return None
        kind = kind_told(value)
        made = [each for each in kinds if each.startswith(f"{value['kind']}{_OF}")] if "of" in value else []
        return kind if kind in kinds or not made else made[0]

    tagged = tuple(Annotated[section, Tag(kind)] for kind, section in kinds.items())
    # A union that is made at run time is no type to mypy.
    return TypeAdapter(Annotated[Union[tagged], Discriminator(chosen)])  # type: ignore[arg-type]  # noqa: UP007
