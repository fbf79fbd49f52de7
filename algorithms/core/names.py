"""Interned byte strings: feature names (and the worker's model keys) as small numbers, and back.

The arrays are the state; the dictionary is a cache of them. Numbers are given out again when a name
goes, so nothing that leaves the pool may depend on them: ties are broken by the names' bytes.

Several may hold on to names whose kernels run side by side. Each then counts references in arrays of its own, and
a name goes when nobody refers to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int32s, Int64s, UInt8s, extended
from algorithms.core.jit import inlined, jit
from algorithms.core.stored import stored


@stored("start", "size", "references", "text", "orphans", "counts")
class Names(NamedTuple):
    """The arrays of an interner, as kernels see them."""

    start: Int64s  # int64[capacity], where the name starts in `text`
    size: Int32s  # int32[capacity], its bytes; -1: the number is not in use
    references: Int32s  # int32[capacity], how many slots name it
    text: UInt8s  # uint8[...]
    orphans: Int32s  # int32[capacity], stack of numbers whose last reference went
    counts: Int64s  # int64[3]: numbers ever used, bytes of text used, orphans


@stored("references", "orphans", "counts")
class References(NamedTuple):
    """The references of one of several that hold on to the same names."""

    references: Int32s  # as of `Names`, like those that follow; of `counts` only the orphans count
    orphans: Int32s
    counts: Int64s


HIGH, TEXT, ORPHANS = 0, 1, 2
NO_NAMES = Names(
    np.zeros(0, np.int64),
    np.zeros(0, np.int32),
    np.zeros(0, np.int32),
    np.zeros(0, np.uint8),
    np.zeros(0, np.int32),
    np.zeros(3, np.int64),
)  # of a pool whose features are plain ids


@jit
def precedes(names: Names, j: int, k: int) -> bool:
    """Return whether feature j comes before feature k: by the bytes of the name, else by the id."""
    if names.start.size == 0:
        return j < k
    shorter = min(names.size[j], names.size[k])
    for offset in range(shorter):
        left = names.text[names.start[j] + offset]
        right = names.text[names.start[k] + offset]
        if left != right:
            return left < right
    return names.size[j] < names.size[k]


@inlined
def refer(names: Names, number: int) -> None:
    """Count one more reference to a name."""
    if names.start.size > 0:
        names.references[number] += 1


@inlined
def release(names: Names, number: int) -> None:
    """Count one reference less; a name without any is noted for `Interner.sweep`."""
    if names.start.size > 0:
        names.references[number] -= 1
        if names.references[number] == 0:
            # A name may come and go many times in one batch; past the stack's end the sweep looks at all.
            if names.counts[ORPHANS] < names.orphans.size:
                names.orphans[names.counts[ORPHANS]] = number
            names.counts[ORPHANS] += 1


class Interner:
    """Byte strings to small numbers and back, with reference counts.

    Parameters
    ----------
    arrays : Names, optional
        Those of an interner before; else it has no names.
    beside : sequence of References, optional
        Of those that hold on to names, too, each in arrays of its own.
    """

    def __init__(self, arrays: Names | None = None, beside: Sequence[References] = ()) -> None:
        self.arrays = arrays or Names(
            np.zeros(16, np.int64),
            np.full(16, -1, np.int32),
            np.zeros(16, np.int32),
            np.zeros(256, np.uint8),
            np.zeros(16, np.int32),
            np.zeros(3, np.int64),
        )
        high = int(self.arrays.counts[HIGH])
        self._numbers = {self.name(number): number for number in range(high) if self.arrays.size[number] >= 0}
        self._free = [number for number in range(high - 1, -1, -1) if self.arrays.size[number] < 0]
        self.beside = list(beside)
        self._seen: list[Names] = []

    def share(self, holders: int) -> None:
        """Have so many hold on to names beside the one that always may."""
        capacity = len(self.arrays.start)
        while len(self.beside) < holders:
            made = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32), np.zeros(3, np.int64)
            self.beside.append(References(*made))

    def seen_by(self, holder: int) -> Names:
        """Return the names as one sees them that holds on to them: 0, or 1 and more of those beside it."""
        if not self._seen or self._seen[0] is not self.arrays:
            own = self.arrays
            self._seen = [own, *(own._replace(**each._asdict()) for each in self.beside)]
        return self._seen[holder]

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self._numbers)

    def name(self, number: int) -> bytes:
        """Return the name behind a number in use."""
        start, size = int(self.arrays.start[number]), int(self.arrays.size[number])
        return self.arrays.text[start : start + size].tobytes()

    def find(self, name: bytes) -> int | None:
        """Return the number of a name, None where it has none."""
        return self._numbers.get(name)

    def find_all(self, names: Iterable[bytes]) -> list[int | None]:
        """Return the number of each of these names, None where one has none."""
        get = self._numbers.get
        return [get(name) for name in names]

    def intern(self, name: bytes) -> int:
        """Return the number of a name; a new one has no references yet."""
        return self.intern_all([name])[0]

    def intern_all(self, names: Iterable[bytes]) -> list[int]:
        """Return the numbers of many names; new ones have no references yet."""
        names = list(names)
        numbers = self._numbers
        found = [numbers.get(name, -1) for name in names]
        if -1 not in found:
            return found
        self._add(list(dict.fromkeys(name for name, number in zip(names, found, strict=True) if number < 0)))
        return [numbers[name] for name in names]

    def _add(self, names: list[bytes]) -> None:
        """Give numbers to different names that have none: freed ones first."""
        counts = self.arrays.counts
        reused = min(len(names), len(self._free))
        numbers = [self._free.pop() for _ in range(reused)]
        high = int(counts[HIGH])
        numbers += range(high, high + len(names) - reused)
        counts[HIGH] = high + len(names) - reused
        while counts[HIGH] > len(self.arrays.start):
            self._grow_numbers()
        more = sum(map(len, names))
        if counts[TEXT] + more > len(self.arrays.text):
            self._make_text_room(more)
        self._write(names, numbers)
        self.arrays.references[numbers] = 0
        self._numbers.update(zip(names, numbers, strict=True))

    def _write(self, names: Collection[bytes], numbers: list[int]) -> None:
        """Append names to the text, where there is room."""
        text = np.frombuffer(b"".join(names), np.uint8)
        start = int(self.arrays.counts[TEXT])
        sizes = np.array([len(name) for name in names], np.int64)
        self.arrays.text[start : start + len(text)] = text
        self.arrays.start[numbers] = start + np.cumsum(sizes) - sizes
        self.arrays.size[numbers] = sizes
        self.arrays.counts[TEXT] = start + len(text)

    def _grow_numbers(self) -> None:
        capacity = 2 * len(self.arrays.start)
        size = extended(self.arrays.size, capacity)
        size[capacity // 2 :] = -1
        self.arrays = self.arrays._replace(
            start=extended(self.arrays.start, capacity),
            size=size,
            references=extended(self.arrays.references, capacity),
            orphans=extended(self.arrays.orphans, capacity),
        )
        self.beside = [
            each._replace(references=extended(each.references, capacity), orphans=extended(each.orphans, capacity))
            for each in self.beside
        ]

    def _make_text_room(self, more: int) -> None:
        """Copy the names in use to a text of twice their length: what was forgotten goes."""
        needed = sum(map(len, self._numbers)) + more
        self.arrays.counts[TEXT] = 0
        self.arrays = self.arrays._replace(text=np.zeros(max(256, 2 * needed), np.uint8))
        self._write(self._numbers.keys(), list(self._numbers.values()))

    def forget(self, number: int) -> None:
        """Let go of a name in use, and wipe it; its number will be given out again."""
        del self._numbers[self.name(number)]
        start = int(self.arrays.start[number])
        self.arrays.text[start : start + int(self.arrays.size[number])] = 0
        self.arrays.size[number] = -1
        self._free.append(number)

    def keep(self, numbers: Int32s, wanted: npt.NDArray[np.bool_]) -> None:
        """Hold on to the numbers that are wanted and forget the others; for names that no kernel refers to."""
        self.arrays.references[numbers] = wanted
        self.sweep(numbers)

    def _references(self, numbers: npt.NDArray[Any]) -> Int32s:
        """Return how many references these numbers have, over all that hold on to names."""
        found: Int32s = self.arrays.references.take(numbers)
        for each in self.beside:
            found += each.references.take(numbers)
        return found

    def sweep(self, interned: npt.NDArray[Any]) -> None:
        """Forget the names without references: of those just interned, and those that kernels released."""
        holders: list[Names | References] = [self.arrays, *self.beside]
        noted = [int(each.counts[ORPHANS]) for each in holders]
        if not any(noted) and np.count_nonzero(self._references(interned)) == len(interned):  # mostly so
            return
        released = []
        for each, count in zip(holders, noted, strict=True):
            each.counts[ORPHANS] = 0
            fits = count <= len(each.orphans)
            released.append(each.orphans[:count] if fits else np.arange(self.arrays.counts[HIGH]))
        candidates = np.unique(np.concatenate([interned, *released]).astype(np.int64))
        for number in candidates[self._references(candidates) == 0].tolist():
            if self.arrays.size[number] >= 0:
                self.forget(number)

    def check(self) -> None:
        """Raise AssertionError unless arrays and dictionary agree."""
        arrays = self.arrays
        in_use = [number for number in range(int(arrays.counts[HIGH])) if arrays.size[number] >= 0]
        assert sorted(self._numbers.values()) == in_use
        assert all(self._numbers[self.name(number)] == number for number in in_use)
        assert sorted(in_use + self._free) == list(range(int(arrays.counts[HIGH])))

    def check_references(self, held: Iterable[npt.NDArray[Any]]) -> None:
        """Raise AssertionError unless `check` holds and a name has as many references as it occurs in `held`."""
        self.check()
        found = np.concatenate([np.zeros(0, np.int64), *held]).astype(np.int64)
        seen = np.bincount(found, minlength=len(self.arrays.references))
        in_use = self.arrays.size >= 0
        counted = self._references(np.arange(len(in_use)))
        assert np.array_equal(seen[in_use], counted[in_use]), "a name is held wrongly"
        assert not seen[~in_use].any()


def name_or_id(names: Interner | None, number: int) -> int | bytes:
    """Return the feature behind a number: an id is its own."""
    return number if names is None else names.name(number)
