"""The kinds of features that a pool was told, by the numbers of the features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Int8s, Int64s, UInt32s, int64
from algorithms.core.given import number_of
from algorithms.core.jit import inlined
from algorithms.core.kinds import Kind
from algorithms.core.names import Interner

Feature = int | bytes


class Kinds(NamedTuple):
    """What a schema says, as kernels see it."""

    numbers: Int64s  # int64[..], features, ascending
    kinds: Int8s  # int8[..], the `Kind` of each
    default: int  # that of all others


@inlined
def kind_of(known: Kinds, feature: int) -> int:
    """Return the `Kind` of a feature. O(log of the features that have one of their own)."""
    low = int64(0)
    high = int64(known.numbers.size)
    while low < high:
        middle = (low + high) >> 1
        if known.numbers[middle] < feature:
            low = middle + 1
        else:
            high = middle
    if low < known.numbers.size and known.numbers[low] == feature:
        return int64(known.kinds[low])
    return known.default


class Schema:
    """The kinds of features.

    Parameters
    ----------
    default : Kind
        Of the features that `kinds` does not name.
    kinds : Mapping[int | bytes, Kind]
        Of others.
    """

    def __init__(self, default: Kind, kinds: Mapping[Feature, Kind] | Mapping[int, Kind]) -> None:
        self._default = default
        self._named: dict[Feature, Kind] = dict(kinds.items())
        self._note({})

    def intern(self, names: Interner | None) -> None:
        """Give the features their numbers; a name among them is never forgotten."""
        self._note({number_of(feature, names): kind for feature, kind in self._named.items()})
        if names is not None:
            names.arrays.references[self.numbers] += 1

    def find(self, names: Interner) -> None:
        """Look the features up in restored names, which have them already."""
        found = {names.find(name): kind for name, kind in self._named.items() if isinstance(name, bytes)}
        self._note({number: kind for number, kind in found.items() if number is not None})

    def _note(self, kinds: Mapping[int, Kind]) -> None:
        numbers = sorted(kinds)
        self.known = Kinds(
            numbers=np.array(numbers, np.int64),
            kinds=np.array([kinds[number] for number in numbers], np.int8),
            default=int(self._default),
        )

    @property
    def all(self) -> set[Kind]:
        """The kinds that features may have."""
        return {self._default, *self._named.values()}

    @property
    def numbers(self) -> Int64s:
        """int64[..], the numbers of the features whose kinds were told, ascending."""
        return self.known.numbers

    def of(self, feature: Int64s | UInt32s) -> Int8s:
        """Return the `Kind` of each of these features, which are given by their numbers."""
        numbers, kinds, default = self.known
        kind = np.full(len(feature), default, np.int8)
        if len(numbers):
            at = np.minimum(np.searchsorted(numbers, feature), len(numbers) - 1)
            found = numbers[at] == feature
            kind[found] = kinds[at[found]]
        return kind
