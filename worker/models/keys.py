"""The record keys of a model's instances: a pool knows each by a small number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.core.names import Interner
from algorithms.core.stored import flattened, rebuilt
from worker.codec.events import Int32s
from worker.log.port import Records
from worker.models.intake import Bools

_NAME = "keys"  # of the arrays in checkpoints, before their own


class Keys:
    """Numbers for keys, given out when an event comes and taken back where nothing has come of it."""

    def __init__(self) -> None:
        self._interner = Interner()

    def __len__(self) -> int:
        return len(self._interner)

    def numbers(self, records: Records) -> Int32s:
        """Return the number of each record's key; no key is the empty one."""
        return np.array(self._interner.intern_all(key or b"" for key in records.keys), np.int32)

    def key(self, number: int) -> bytes:
        """Return the key behind a number in use."""
        return self._interner.name(number)

    def find(self, key: bytes) -> int | None:
        """Return the number of a key, None where it has none."""
        return self._interner.find(key)

    def keep(self, numbers: Int32s, are_alive: Callable[[Int32s], Bools]) -> None:
        """Keep those whose instance is alive, now that it is known which events were accepted."""
        routed = np.unique(numbers)
        self._interner.keep(routed, are_alive(routed))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the state as named arrays, not copied."""
        return flattened(self._interner.arrays, _NAME)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` returned, which may be among others."""
        self._interner = Interner(rebuilt(self._interner.arrays, arrays, _NAME))

    def check(self, alive: int) -> None:
        """Raise AssertionError unless all invariants hold and so many instances are alive. For tests."""
        self._interner.check()
        assert alive == len(self), "a key without an instance, or an instance without a key"
