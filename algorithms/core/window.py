"""The last so many examples of a stream, the oldest first: what is known of each, in columns of one length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int64s
from algorithms.core.stored import Arrays

_SIZE, _EXAMPLES = "size", "examples"


class Window:
    """The window of an evaluation.

    Parameters
    ----------
    size : int
        How many examples it holds, at least 1.
    **columns : (dtype, int or None)
        By the name that it has in checkpoints: what a column is made of, and how many of them an example has;
        None: one number.
    """

    def __init__(self, size: int, **columns: tuple[type, int | None]) -> None:
        self._columns: Arrays = {
            name: np.zeros(size if width is None else (size, width), dtype)
            for name, (dtype, width) in columns.items()
        }
        self._size = size
        self._held: Int64s = np.zeros(1, np.int64)
        self._examples: Int64s = np.zeros(1, np.int64)

    @property
    def examples(self) -> int:
        """How many examples there were in all."""
        return int(self._examples[0])

    def columns(self) -> list[npt.NDArray[Any]]:
        """Return what the window holds, not copied."""
        return [column[: self._held[0]] for column in self._columns.values()]

    def push(self, *new: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Add examples, in order; return those that go, perhaps some of the new ones. O(window + examples)."""
        both = [np.concatenate(each) for each in zip(self.columns(), new, strict=True)]
        gone = max(0, len(both[0]) - self._size)
        self._held[0] = len(both[0]) - gone
        self._examples += len(new[0])
        for column, each in zip(self.columns(), both, strict=True):
            column[:] = each[gone:]
        return [each[:gone] for each in both]

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied)."""
        return {**self._columns, _SIZE: self._held, _EXAMPLES: self._examples}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over the state that `arrays` of a window of the same size returned (not copied).

        A column that an earlier version did not have is zero for the examples that are there.
        """
        self._columns = {name: arrays.get(name, np.zeros_like(own)) for name, own in self._columns.items()}
        self._held, self._examples = arrays[_SIZE], arrays[_EXAMPLES]
