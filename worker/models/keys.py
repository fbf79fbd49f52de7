"""The record keys of a model's instances: a pool knows each by a small number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int64s
from algorithms.core.names import HIGH, Interner, Names
from algorithms.core.stored import flattened, rebuilt
from worker.codec.events import Int32s
from worker.log.port import Records
from worker.models.intake import Bools

_NAME = "keys"  # of the arrays in checkpoints, before their own


class Keys:
    """Numbers for keys, given out when an event comes and taken back where nothing has come of it."""

    def __init__(self, arrays: Names | None = None) -> None:
        self._interner = Interner(arrays)

    def emptied(self) -> Keys:
        """Return an empty one with room for as many keys as there are here."""
        capacity = max(16, len(self))
        sizes = self._interner.arrays.size[: self.reached]
        text = 2 * int(sizes[sizes >= 0].sum())
        return Keys(
            Names(
                start=np.zeros(capacity, np.int64),
                size=np.full(capacity, -1, np.int32),
                references=np.zeros(capacity, np.int32),
                text=np.zeros(max(256, text), np.uint8),
                orphans=np.zeros(capacity, np.int32),
                counts=np.zeros(3, np.int64),
            )
        )

    def __len__(self) -> int:
        return len(self._interner)

    def numbers(self, records: Records) -> Int32s:
        """Return the number of each record's key; no key is the empty one."""
        keys = cast("list[bytes]", records.keys) if all(records.keys) else [key or b"" for key in records.keys]
        return np.array(self._interner.intern_all(keys), np.int32)

    def given(self, keys: Iterable[bytes]) -> Int32s:
        """Return the numbers of keys; what is new is to be kept or will be given to another."""
        return np.array(self._interner.intern_all(keys), np.int32)

    def known(self, keys: Iterable[bytes]) -> Int32s:
        """Return the numbers of those of these keys that have one."""
        return np.array([number for number in self._interner.find_all(keys) if number is not None], np.int32)

    @property
    def reached(self) -> int:
        """How many numbers were ever given out: the arrays of a pool are at least as long."""
        return int(self._interner.arrays.counts[HIGH])

    def in_use(self, begin: int, limit: int) -> tuple[Int32s, int]:
        """Return some numbers in use, `begin` the lowest, and where the next begin. O(limit) on the whole way."""
        found: list[Int64s] = []
        missing, size = limit, self._interner.arrays.size[: self.reached]
        while missing > 0 and begin < len(size):
            part = np.flatnonzero(size[begin : begin + 8 * limit] >= 0)[:missing] + begin
            is_full = len(part) == missing
            begin = int(part[-1]) + 1 if is_full else begin + 8 * limit
            missing -= len(part)
            found.append(part)
        return np.concatenate([*found, np.zeros(0, np.int64)]).astype(np.int32), begin

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

    def forget(self, numbers: Int32s) -> None:
        """Take numbers back."""
        for number in numbers.tolist():
            self._interner.forget(number)

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
