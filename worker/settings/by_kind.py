"""Sections of which one may stand in a place, told apart by `kind`. Which there are is asked anew each time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Union, get_args

from pydantic import BaseModel, Field, GetCoreSchemaHandler, TypeAdapter, ValidationInfo
from pydantic_core import CoreSchema, core_schema


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
    """Return the `kind` of the sections of a class.

    Raises
    ------
    TypeError
        Where the class does not tell exactly one.
    """
    field = section.model_fields.get("kind")
    match get_args(field.annotation) if field is not None else ():
        case (str(kind),):
            return kind
    raise TypeError(
        f"{section.__name__}: expected a field 'kind' of the type Literal with the kind's name, "
        f"got {'none' if field is None else field.annotation}; add kind: Literal['...']"
    )


@cache
def _union(sections: tuple[type[BaseModel], ...]) -> TypeAdapter[Any]:
    # A union that is made at run time is no type to mypy.
    return TypeAdapter(Annotated[Union[sections], Field(discriminator="kind")])  # type: ignore[arg-type]  # noqa: UP007
