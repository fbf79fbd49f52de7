"""The arrays of a forest and of its trees: those of the trees begin with ``trees.``, and names are shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from algorithms.core.stored import Arrays

_TREES, _NAMES = "trees.", "names."


def with_trees(own: Arrays, trees: Arrays) -> Arrays:
    """Return the arrays of a forest and of the pool of its trees (not copied)."""
    return own | {f"{_TREES}{name}": array for name, array in trees.items() if not name.startswith(_NAMES)}


def of_trees(arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """Return those of the arrays that the pool of trees is restored from."""
    names = {name: array for name, array in arrays.items() if name.startswith(_NAMES)}
    return names | {name.removeprefix(_TREES): each for name, each in arrays.items() if name.startswith(_TREES)}
