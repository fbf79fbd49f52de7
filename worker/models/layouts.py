"""Layouts: how the arrays of a kind of model are called and made, by number, and the way from each to the next.

A checkpoint may be of an older version of Anabranch. A kind whose arrays have changed since has a migration for
each change: it makes arrays of one layout from those of the layout before. The number of the layout is an array of
its own in the state, from 2 on. Arrays that were merely added need no migration: see `Model.LATER`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from worker.models.moving import MOVED, moved_of

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
# Takes the arrays of one pool, of all keys or, while keys move to another pool, of those in either, and the
# settings of the model.
Migration: TypeAlias = Callable[[Arrays, Any], Arrays]

_NUMBER = "layout"


class NewerLayoutError(Exception):
    """Arrays have a layout that only a newer version knows."""


def numbered(arrays: Arrays, migrations: Sequence[Migration]) -> Arrays:
    """Return a state of today's layout with its number."""
    return {**arrays, _NUMBER: np.array([1 + len(migrations)])} if migrations else arrays


def migrated(saved: Arrays, migrations: Sequence[Migration], settings: Any) -> Arrays:
    """Return a state of today's layout, without its number, made from one of any layout before.

    Parameters
    ----------
    saved : mapping
        The state, by the names of its arrays.
    migrations : sequence of callable
        Those of the model's kind.
    settings : ModelSettings
        What the model is told.

    Raises
    ------
    NewerLayoutError
        Where its layout is newer than today's.
    """
    number = int(saved[_NUMBER][0]) if _NUMBER in saved else 1
    if number > 1 + len(migrations):
        raise NewerLayoutError
    into: Arrays = moved_of(saved)
    rest: Arrays = {name: array for name, array in saved.items() if name != _NUMBER and not name.startswith(MOVED)}
    for migrate in migrations[number - 1 :]:
        rest, into = migrate(rest, settings), migrate(into, settings) if into else into
    return {**rest, **{MOVED + name: array for name, array in into.items()}}
