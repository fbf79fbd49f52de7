"""The names that arrays have in a checkpoint: names of their own, so that fields may be renamed.

Checkpoints outlive the code that wrote them. What is stored is nested NamedTuples of arrays, and each of these
classes says what its arrays are called on disk, in the order of its fields::

    @stored("table", "cells", "used")
    class Rows(NamedTuple):
        table: Int64s
        cells: Int64s
        used: Int64s

The array `cells` of the rows of the nodes of a pool is ``nodes.rows.cells``. A field without a name is not stored:
it is made anew, as the memo of a criterion is. tests/algorithms/core/test_stored.py has all names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
Arrays = dict[str, npt.NDArray[Any]]


def stored(*names: str | None) -> Callable[[type[T]], type[T]]:
    """Say under which names the fields of a NamedTuple are stored, in their order; None: the field is not.

    Raises
    ------
    TypeError
        Where there are not as many names as fields, a name twice, or one that is empty or has a dot.
    """

    def named(kind: type[T]) -> type[T]:
        fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # of a NamedTuple
        if len(names) != len(fields):
            raise TypeError(
                f"expected a name for each of the {len(fields)} fields of {kind.__name__}, got {names}"
            )
        kept = [name for name in names if name is not None]
        if len(set(kept)) < len(kept) or any(not name or "." in name for name in kept):
            raise TypeError(f"expected different names, without dots, for {kind.__name__}, got {names}")
        kind.stored_names = names  # type: ignore[attr-defined]
        return kind

    return named


def _parts(state: Any, name: str) -> Iterator[tuple[str, str, Any]]:
    """Yield field, name and content of what is stored of a state that is called `name`."""
    names = getattr(type(state), "stored_names", None)
    if names is None:
        raise TypeError(f"expected a class with @stored names for its arrays, got {type(state).__name__}")
    for field, own, part in zip(state._fields, names, state, strict=True):
        if own is not None:
            yield field, f"{name}.{own}" if name else own, part


def flattened(state: Any, name: str = "") -> Arrays:
    """Return the arrays of a state by their names in a checkpoint, not copied."""
    if isinstance(state, np.ndarray):
        return {name: state}
    return {key: array for _, own, part in _parts(state, name) for key, array in flattened(part, own).items()}


def rebuilt(like: T, arrays: Mapping[str, npt.NDArray[Any]], name: str = "") -> T:
    """Return a state of the same shape as `like` of the arrays that `flattened` named, which may be among others.

    What is not stored is taken from `like`. Nothing is copied.
    """
    if isinstance(like, np.ndarray):
        return arrays[name]  # type: ignore[return-value]  # T is an array
    parts = {field: rebuilt(part, arrays, own) for field, own, part in _parts(like, name)}
    return like._replace(**parts)  # type: ignore[attr-defined]
