"""What the settings of a model name and has not come yet, and the other way round: a name may be misspelt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from algorithms.core.arrays import UInt32s
from algorithms.core.names import Interner
from worker.codec.encode import Class
from worker.models.intake import Labels


class Awaited:
    """Classes and attributes that settings name, until events have them; it is no part of a model's state.

    Parameters
    ----------
    classes : sequence of int or of str
        Label 0, label 1 and so on; none of a model of numbers.
    attributes : collection of int or of bytes
        The features that the settings name.
    complete : bool
        Whether they are taken to name all, so that others are worth a word.
    kept : bool
        Whether the pool keeps the numbers of these features from its start on; otherwise a name may have
        another in each batch.

    Attributes
    ----------
    missing : frozenset of str
        Those that no event has had since the model was made, as the settings write them.
    has_others : bool
        Whether an event had a feature that a complete list of attributes does not name.
    kept : bool
        As the parameter.
    """

    def __init__(
        self,
        classes: Iterable[Class],
        attributes: Collection[int | bytes] = (),
        *,
        complete: bool = False,
        kept: bool = True,
    ) -> None:
        self._classes = {number: f"class {name}" for number, name in enumerate(classes)}
        self._shown = {
            name: f"attribute {name.decode() if isinstance(name, bytes) else name}" for name in attributes
        }
        self._attributes: dict[int, str] | None = None  # by numbers, which a restore may change
        self._declared: UInt32s = np.zeros(0, np.uint32)
        self._complete = complete
        self.kept = kept
        self.missing = frozenset([*self._classes.values(), *self._shown.values()])
        self.has_others = False

    def see(self, label: Labels, feature: UInt32s, names: Interner | None) -> None:
        """Look at the labels and features of a batch. O(entries) while something is missing, else nothing."""
        if not self.missing and (self.has_others or not self._complete):
            return
        if self._attributes is None or not self.kept:
            numbered = _by_number(self._shown, names)
            self._attributes = {number: shown for number, shown in numbered.items() if shown in self.missing}
            self._declared = np.array(sorted(numbered), np.uint32)
        for found, awaited in ((label, self._classes), (feature, self._attributes)):
            if awaited:
                for number in np.intersect1d(found, np.fromiter(awaited, np.int64)).tolist():
                    self.missing -= {awaited.pop(number)}
        if self._complete and not self.has_others:
            self.has_others = not np.isin(feature, self._declared).all()


def _by_number(shown: Mapping[int | bytes, str], names: Interner | None) -> dict[int, str]:
    """Return attributes by their numbers; one whose name has none is of no feature of the batch."""
    numbers = {name: name if isinstance(name, int) or names is None else names.find(name) for name in shown}
    return {number: shown[name] for name, number in numbers.items() if isinstance(number, int)}
