"""What all classifiers do alike, and all regressors: labels. Classes are hashable, and may come at any time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from algorithms.core import given
from algorithms.core.stored import Arrays
from algorithms.estimators.base import Estimator
from algorithms.estimators.encoding import LARGEST_VALUE, Label

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

    def _known(self, y: Any) -> float | None:
        """Return the number of a label; None where it has none."""
        return next((number for label, number in self._labels.items() if label == y), None)

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


class Regressor(Estimator):
    """A model of labels that are numbers."""

    _DIGITS = np.float64

    def _number(self, y: Any) -> float:
        return given.number("a label", y, LARGEST_VALUE)

    def predict_one(self, x: Any) -> float | None:
        """Return the label that the leaf of an example predicts; None where nothing is known."""
        answers = self._ask(self._entries(x)[0])
        predicted = math.nan if answers is None else float(answers.predicted[-1])
        return None if math.isnan(predicted) else predicted
