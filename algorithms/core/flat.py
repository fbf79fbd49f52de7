"""Nested NamedTuples of arrays as one dictionary of named arrays, and back: what a checkpoint stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def flattened(state: Any, name: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a state under dotted names, not copied."""
    if isinstance(state, np.ndarray):
        return {name: state}
    return {
        key: array
        for field, part in state._asdict().items()
        for key, array in flattened(part, f"{name}.{field}").items()
    }


def rebuilt(like: Any, name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
    """Return a state of the same shape as `like` whose arrays `flattened` named."""
    if isinstance(like, np.ndarray):
        return arrays[name]
    return type(like)(
        **{field: rebuilt(part, f"{name}.{field}", arrays) for field, part in like._asdict().items()}
    )
