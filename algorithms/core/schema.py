"""The kinds of features that a pool was told, by the numbers of the features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from algorithms.core.arrays import Int8s, Int64s, UInt32s
from algorithms.core.given import number_of
from algorithms.core.kinds import Kind
from algorithms.core.names import Interner

Feature = int | bytes


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
        self.numbers: Int64s = np.array(sorted(kinds), np.int64)
        self._kinds: Int8s = np.array([kinds[number] for number in self.numbers.tolist()], np.int8)

    def of(self, feature: Int64s | UInt32s) -> Int8s:
        """Return the `Kind` of each of these features, which are given by their numbers."""
        kind = np.full(len(feature), self._default, np.int8)
        if len(self.numbers):
            at = np.minimum(np.searchsorted(self.numbers, feature), len(self.numbers) - 1)
            found = self.numbers[at] == feature
            kind[found] = self._kinds[at[found]]
        return kind
