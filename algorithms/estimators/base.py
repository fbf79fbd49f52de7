"""What all estimators do alike: parameters, examples that wait for the next question, copies.

`learn_one` notes an example; many of them go to the pool at once, when something is asked or enough have come. So
learning costs what a batch costs, and nothing that is shown depends on it: batches of any size lead to the same.
All that can be wrong with an example is found when it is given.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from algorithms.core.events import INSERT, PREDICT, SKIPPED, Events, Status
from algorithms.core.fixed_point import UNIT
from algorithms.core.given import digest_of, fixed_point_of, id_of, is_number
from algorithms.core.pool import Id
from algorithms.estimators.encoding import Encoder, Entries, Label, is_numeric, mapping_of
from algorithms.estimators.parameters import FEATURES, check_choice

MOST_WAITING = 512  # examples
_MOST_NAMES = 1 << 15  # features of them

MESSAGES = {
    Status.COUNT_OVERFLOW: "expected weights that sum to less than 2^42, got more; give smaller weights",
    Status.DUPLICATE_ID: "expected an id that no live example has; unlearn that one first",
}
NUMBER_MESSAGES = MESSAGES | {
    Status.COUNT_OVERFLOW: (
        "expected weights of live examples that sum to less than 2^31, and times the units in the label_range to "
        "less than 2^62, got more; give smaller weights, a coarser label_unit or a window"
    )
}


class Waiting(NamedTuple):
    """Examples that the pool has not seen yet, one behind the other."""

    names: list[bytes]
    values: list[float]
    ends: list[int]  # of each example in these
    labels: list[float]
    units: list[int]


class One(NamedTuple):
    """One event."""

    op: int  # an `Op`
    entries: Entries
    label: float = 0
    units: int = UNIT
    id: Id | None = None


class Estimator:
    """A model of one stream, over a pool that has one key."""

    features: str

    _DIGITS: ClassVar[type] = np.int32  # of labels
    _MESSAGES: ClassVar[Mapping[Status, str]] = MESSAGES
    _heavy = 1 << 60  # units: below what pools bound the sum by; then each example is given to the pool at once

    # --- what an estimator adds

    def _check(self) -> None:
        """Raise ValueError where a parameter is none."""
        raise NotImplementedError

    def _made(self, numeric: bool) -> Any:
        """Return an empty pool."""
        raise NotImplementedError

    def _number(self, y: Any) -> float:
        """Return a label as the pool has it; raise ValueError where it is none."""
        raise NotImplementedError

    def _known(self, y: Any) -> float | None:
        """Return a label as the pool has it, as `_number` does; None where no example can have it."""
        return self._number(y)

    def _units(self, w: Any) -> int:
        """Return a weight in units; raise ValueError where it is none."""
        return UNIT if w == 1.0 and (type(w) is float or is_number(w)) else fixed_point_of(w)

    # --- parameters

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = inspect.signature(cls).parameters
        return {name: parameter.default for name, parameter in parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  (scikit-learn's signature)
        """Return the parameters by their names."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of a model that has learned nothing.

        Raises
        ------
        ValueError
            Where there is no such parameter, where one is wrong, or where the model has learned something.
        """
        if unknown := sorted(set(parameters) - set(self._defaults())):
            raise ValueError(f"expected parameters of {', '.join(self._defaults())}, got {', '.join(unknown)}")
        if self._knows:
            raise ValueError("expected a model that has learned nothing; set the parameters of model.clone()")
        before = self.get_params()
        try:
            self.__init__(**(before | parameters))  # type: ignore[misc]  # all that it does is to set them
        except ValueError:
            self.__init__(**before)  # type: ignore[misc]
            raise
        return self

    def clone(self, new_params: Mapping[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """Return a model with the same parameters, or some new ones, that has learned nothing.

        Parameters
        ----------
        new_params : Mapping[str, Any], optional
            Parameters to change.
        include_attributes : bool
            Keep what the model has learned, as `copy.copy` does.
        """
        clone = type(self)(**(self.get_params() | dict(new_params or {})))
        if include_attributes:
            clone.__setstate__(self.__getstate__() | clone.get_params())
        return clone

    def __repr__(self) -> str:
        own = self.get_params()
        told = [f"{name}={own[name]!r}" for name, usual in self._defaults().items() if own[name] != usual]
        return f"{type(self).__name__}({', '.join(told)})"

    # --- state

    def _begin(self) -> None:
        """Check the parameters, and know nothing."""
        check_choice("features", self.features, FEATURES)
        self._check()
        self._pool: Any = None
        self._numeric: bool | None = None if self.features == "auto" else self.features == "numeric"
        self._encoder = Encoder()
        self._labels: dict[Label, int] = {}  # of classes, their numbers
        self._total = 0  # units ever learned
        self._waiting = Waiting([], [], [], [], [])

    @property
    def _knows(self) -> bool:
        return self._pool is not None or bool(self._waiting.ends)

    def _learned(self) -> dict[str, Any]:
        """Return what is learned beside the pool."""
        return {"_numeric": self._numeric, "_total": self._total}

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        arrays = None if self._pool is None else {n: a.copy() for n, a in self._pool.arrays().items()}
        return self.get_params() | self._learned() | {"arrays": arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        arrays = state.pop("arrays")
        parameters = {name: state.pop(name) for name in self._defaults()}
        self.__init__(**parameters)  # type: ignore[misc]
        self.__dict__.update(state)
        if arrays is not None:
            self._pool = self._made(bool(self._numeric)).restore({n: a.copy() for n, a in arrays.items()})

    # --- examples

    def _entries(self, x: Any) -> tuple[Entries, bool]:
        """Return the entries of an example, and whether values are numbers, as far as is known with it."""
        given = x if type(x) is dict else mapping_of(x)
        numeric = self._numeric
        if numeric is None:
            numeric = is_numeric(given)
        return self._encoder.entries(given, numeric), numeric

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn an example.

        Parameters
        ----------
        x : dict, list, tuple, set, row of a CSR matrix or of pandas
            From features to values, or the features that are present.
        y : hashable, or float
            The label: any of classes, a number of regressors.
        w : float
            The weight; 0 says that there is nothing to learn.

        Raises
        ------
        ValueError
            Where one of these is wrong; nothing has changed.
        """
        entries, numeric = self._entries(x)
        units = self._units(w)
        if units:
            self._note(entries, numeric, self._number(y), units)

    def _note(self, entries: Entries, numeric: bool, label: float, units: int) -> None:
        """Have an example wait for its pool."""
        self._numeric = numeric
        names, values, ends, labels, weights = self._waiting
        names += entries.names
        values += entries.values
        ends.append(len(names))
        labels.append(label)
        weights.append(units)
        self._total += units
        if len(ends) >= MOST_WAITING or len(names) >= _MOST_NAMES or self._total >= self._heavy:
            self._settle()

    def _settle(self) -> None:
        """Let the pool learn what waits."""
        if self._waiting.ends:
            self._apply(None)

    def _ask(self, entries: Entries) -> Any:
        """Return what the pool answers to one prediction, behind what waits; None where nothing was learned."""
        return self._apply(One(PREDICT, entries)) if self._knows else None

    def _apply(self, last: One | None) -> Any:
        """Apply what waits, and then one event where there is one; its status is for the caller to look at."""
        if self._pool is None:
            self._pool = self._made(bool(self._numeric))
        pool, (names, values, ends, labels, weights) = self._pool, self._waiting
        n = len(ends)
        self._waiting = Waiting([], [], [], [], [])
        numbers = pool.names.intern_all(names)
        if last is not None:
            own, more = self._numbers_of(last)
            numbers, values = numbers + own, values + more
            ends = [*ends, len(numbers)]
            labels, weights = [*labels, last.label], [*weights, last.units]
        events = _alike(n, None if last is None else last.op)._replace(
            label=np.array(labels, self._DIGITS),
            weight=np.array(weights, np.int64),
            pointer=np.array([0, *ends], np.int64),
            feature=np.array(numbers, np.uint32),
            value=np.array(values, np.float64),
            **({} if last is None or last.id is None else _named(n, last.id)),
        )
        answers = pool.apply(events, checked=True)
        if n or last is None or last.op != PREDICT:
            pool.sweep(events.feature)
        if n:
            self._raise_refused(answers.status[:n])
        return answers

    def _raise_refused(self, status: Any) -> None:
        """Raise ValueError where an event was refused."""
        if np.count_nonzero(status > SKIPPED):
            worst = Status(int(status.max()))
            raise ValueError(self._MESSAGES.get(worst, f"the example was refused: {worst.name}"))

    def _numbers_of(self, one: One) -> tuple[list[int], list[float]]:
        """Return the numbers of features and their values; to a question an unknown one says nothing."""
        names, values = one.entries
        if one.op != PREDICT:
            return self._pool.names.intern_all(names), values
        found = self._pool.names.find_all(names)
        if None not in found:
            return found, values
        known = [(number, value) for number, value in zip(found, values, strict=True) if number is not None]
        return [number for number, _ in known], [value for _, value in known]


@lru_cache(maxsize=8)
def _alike(inserts: int, last: int | None) -> Events:
    """Return events of which only the columns that do not depend on examples count; pools write to none."""
    op = np.array([INSERT] * inserts + ([] if last is None else [last]), np.int8)
    return Events.of(op, np.zeros(len(op)), np.zeros(len(op) + 1, np.int64), np.zeros(0, np.uint32))


def _named(waiting: int, id: Id) -> dict[str, Any]:
    """Return the columns that give an id to the event behind those that wait."""
    high, low = digest_of(id_of(id))
    zeros = [0] * waiting
    return {
        "named": np.array([*zeros, 1], np.int8),
        "id_high": np.array([*zeros, high], np.int64),
        "id_low": np.array([*zeros, low], np.int64),
    }
