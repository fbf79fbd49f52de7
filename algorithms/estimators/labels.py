"""What all classifiers do alike: any hashable label, and classes that may come at any time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from algorithms.core.events import Op, Status
from algorithms.core.given import id_of
from algorithms.core.pool import Id
from algorithms.core.stored import Arrays
from algorithms.estimators.base import Estimator, One, raise_refused, weight_units
from algorithms.estimators.encoding import Entries, Label

# What a class that was never seen begins with, where that is not 0: the extremes of its values.
_FIRST: Mapping[str, list[float]] = {"features.gaussians.moments": [0.0, 0.0, np.inf, -np.inf]}


def widened(arrays: Arrays, few: Arrays, many: Arrays) -> Arrays:
    """Return the arrays of a pool as one with more classes has them.

    Which axis is that of the classes follows from two empty pools.

    Parameters
    ----------
    arrays : dict[str, ndarray]
        Of the pool.
    few, many : dict[str, ndarray]
        Of empty pools with as many classes as that one, and with more.
    """
    wider = {}
    for name, array in arrays.items():
        more = [after - before for before, after in zip(few[name].shape, many[name].shape, strict=True)]
        if any(more):
            axis = int(np.argmax(more))
            shape = list(array.shape)
            shape[axis] = more[axis]
            padding = np.zeros(shape, array.dtype)
            padding[...] = _FIRST.get(name, 0)
            array = np.concatenate([array, padding], axis)
        wider[name] = array
    return wider


class Classifier(Estimator):
    """A model of labels. Those are numbered in the order in which they came; ties go to the earlier one."""

    def _begin(self) -> None:
        super()._begin()
        self._labels: dict[Label, int] = {}
        self._count = 2  # classes of the pool

    def _made(self, numeric: bool) -> Any:
        return self._made_for(numeric, self._count)

    def _made_for(self, numeric: bool, classes: int) -> Any:
        """Return an empty pool for so many classes."""
        raise NotImplementedError

    def _learned(self) -> dict[str, Any]:
        return super()._learned() | {"_labels": dict(self._labels), "_count": self._count}

    @property
    def classes_(self) -> list[Label]:
        """The labels seen so far, in the order in which they came."""
        return list(self._labels)

    # --- labels

    def _number(self, y: Label) -> int:
        """Return the number of a label, a new one where it is new; raise ValueError where it is none."""
        try:
            number = self._labels.get(y)
        except TypeError as error:
            raise ValueError(f"expected a hashable label, as text or a number, got {y!r}") from error
        if number is None:
            if isinstance(y, np.generic):
                y = y.item()
            if y is None or y != y:
                raise ValueError(f"expected a label, got {y!r}; leave out examples without one")
            self._labels[y] = number = self._free_number(y)
        return number

    def _free_number(self, y: Label) -> int:
        taken = len(self._labels)
        if taken < self._count:
            return next(number for number in range(taken + 1) if number not in self._labels.values())
        self._settle()
        for label, number in list(self._labels.items()):
            if self._is_forgotten(number):
                del self._labels[label]
                return number
        self._widen(y)
        return taken

    def _is_forgotten(self, number: int) -> bool:  # noqa: ARG002  (only what forgets knows better)
        """Return whether no example of a class is left."""
        return False

    def _widen(self, y: Label) -> None:  # noqa: ARG002  (some can tell only so many)
        """Make room for one class more; what was learned stays."""
        numeric = bool(self._numeric)
        few, many = self._made_for(numeric, self._count), self._made_for(numeric, self._count + 1)
        if self._pool is not None:
            self._pool = many.restore(widened(self._pool.arrays(), few.arrays(), many.arrays()))
        self._count += 1

    # --- one at a time

    def learn_one(self, x: Any, y: Label, w: float = 1.0) -> None:
        """Learn an example.

        Parameters
        ----------
        x : dict, list, tuple, set, row of a CSR matrix or of pandas
            From features to values, or the features that are present.
        y : hashable
            The label.
        w : float
            The weight; 0 says that there is nothing to learn.

        Raises
        ------
        ValueError
            Where one of these is wrong; nothing has changed.
        """
        entries, numeric = self._entries(x)
        units = weight_units(w)
        if units:
            self._note(entries, numeric, self._number(y), units)

    def predict_proba_one(self, x: Any) -> dict[Label, float]:
        """Return the share of each label that was seen; an empty dict where nothing was learned."""
        answers = self._ask(self._entries(x)[0])
        if answers is None:
            return {}
        weights = self._weights(answers)
        total = sum(weights)
        if not total:
            return {}
        return {label: weights[number] / total for label, number in self._labels.items()}

    def predict_one(self, x: Any) -> Label | None:
        """Return the label of most weight, the earlier of several; None where nothing was learned."""
        answers = self._ask(self._entries(x)[0])
        if answers is None:
            return None
        weights = self._weights(answers)
        most, best = 0.0, None
        for label, number in self._labels.items():
            if weights[number] > most:
                most, best = weights[number], label
        return best

    def _weights(self, answers: Any) -> list[float]:
        """Return the weight of each class in the answer to one prediction."""
        weights: list[float] = answers.weights[0].tolist()
        return weights


class Forgetting(Classifier):
    """A classifier that takes examples back: by value, or by an id."""

    def learn_one(self, x: Any, y: Label, w: float = 1.0, *, id: Id | None = None) -> None:
        """Learn an example.

        Parameters
        ----------
        x : dict, list, tuple, set, row of a CSR matrix or of pandas
            From features to values, or the features that are present.
        y : hashable
            The label.
        w : float
            The weight; 0 says that there is nothing to learn.
        id : int, str or bytes, optional
            Names the example, so that `unlearn_one` needs no more than that.

        Raises
        ------
        ValueError
            Where one of these is wrong; nothing has changed.
        """
        if id is None:
            super().learn_one(x, y, w)
            return
        entries, numeric = self._entries(x)
        units = weight_units(w)
        id_of(id)
        if not units:
            return
        before = dict(self._labels)
        number = self._number(y)
        self._numeric = numeric
        answers = self._apply(One(Op.INSERT, entries, number, units, id))
        if answers.status[-1] > Status.SKIPPED:
            self._labels = before
            raise_refused(answers.status)

    def unlearn_one(self, x: Any = None, y: Label = None, w: float = 1.0, *, id: Id | None = None) -> None:
        """Forget an example: its id, or else its features, label and weight, as they were learned.

        What was learned with an id is forgotten by this id.
        An example that a window has dropped is forgotten already.

        Raises
        ------
        LookupError
            Where there is no such example.
        ValueError
            Where what is given is wrong.
        """
        if (id is None) == (x is None):
            raise ValueError("expected an example, as unlearn_one(x, y), or its id, as unlearn_one(id=...)")
        if id is None and y is None:
            raise ValueError(
                "expected the label that the example was learned with, as unlearn_one(x, y), got None"
            )
        entries = Entries([], [])
        number: int | None = 0
        if id is None:
            entries, _ = self._entries(x)
            number = next((number for label, number in self._labels.items() if label == y), None)
        units = weight_units(w)
        if not units:
            return
        status = Status.ABSENT_EXAMPLE
        if self._knows and number is not None:
            status = Status(int(self._apply(One(Op.DELETE, entries, number, units, id)).status[-1]))
        if status in (Status.ABSENT_EXAMPLE, Status.ABSENT_ID):
            said = f"with the id {id!r}"
            if id is None:
                said = f"{x!r} of the label {y!r} and the weight {w!r}; if it had an id, say unlearn_one(id=...)"
            raise LookupError(f"expected an example that was learned and not unlearned since, got one {said}")
