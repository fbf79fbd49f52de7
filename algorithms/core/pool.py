"""What all pools are: any number of models, each under the number of its key, in one set of arrays.

A pool consists of a state, which is a NamedTuple of arrays with names of their own (stored.py), and of a kernel
that applies events to it. The way of a batch::

    check columns -> room for its keys -> memo of the criterion -> the pool prepares the events ->
        kernel -> short of something: enlarge it, go on -> something to tell: the pool reads it, go on -> done

`OneByOne` has the calls for one event, `Pool` all that is done alike to a state. A pool adds its settings, its
kernel, what it enlarges and how its answers are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt32s, are_set, larger
from algorithms.core.canonical import plain
from algorithms.core.criteria import covering
from algorithms.core.events import DONE, TOLD, Events, Op, Status
from algorithms.core.fixed_point import UNIT
from algorithms.core.given import (
    check_columns,
    digest_of,
    entries_of,
    fixed_point_of,
    id_of,
    key_of,
    label_of,
    whole,
)
from algorithms.core.names import Interner, Names, name_or_id
from algorithms.core.schema import Schema
from algorithms.core.stored import Arrays, flattened, rebuilt

MEMO = 1024  # examples of weight 1 that the memo of a criterion covers at first
_MEMO_STEP = 1 << 16  # that it covers more at most, where it grows
LAST_TIME = 1 << 62

Example = Mapping[Any, float] | Iterable[Any]  # features with their values, or those that are present
Id = int | str | bytes


class Answered(Protocol):
    """What a batch led to; a pool knows more of it."""

    @property
    def status(self) -> Int8s:
        """int8[n], a `Status` for each event."""
        ...


class State(Protocol):
    """The arrays of a pool, a NamedTuple."""

    @property
    def alive(self) -> Int64s:
        """int64[1], how many models have learned something."""
        ...

    @property
    def names(self) -> Names:
        """As kernels see them."""
        ...

    def _replace(self, *args: Any, **parts: Any) -> Self: ...


S = TypeVar("S", bound=State)
A = TypeVar("A", bound=Answered)
P = TypeVar("P")  # what one prediction is


class OneByOne(ABC, Generic[A, P]):
    """The calls for one event, for library users; a worker gives batches."""

    names: Interner | None = None  # of features that are byte strings; else these are ids below 2^32
    _classes = 2

    _LABEL: ClassVar[type] = np.int32
    _VALUES: ClassVar[str] = "finite values"  # what a pool takes as values
    _LEAST: ClassVar[int] = 0  # the least weight in units

    @cached_property
    def _row(self) -> Events:
        """The columns of one event, which each call fills anew: making them takes longer than all they are for."""
        zero, none = np.zeros(1, np.int8), np.zeros(0, np.uint32)
        events = Events.of(zero, np.zeros(1, self._LABEL), np.zeros(2, np.int64), none)
        return events._replace(id_low=np.zeros(1, np.int64))  # not the array of the other half

    @abstractmethod
    def apply(self, events: Events, *, checked: bool = False) -> A:
        """Apply events in order.

        Parameters
        ----------
        events : Events
            A batch of them; batches of any size lead to the same.
        checked : bool
            Whether the caller has made sure that the columns fit together, as the worker's codec has.

        Raises
        ------
        ValueError
            Where they are no events; none is applied. Whatever else is wrong with one is told by its status.
        """

    @abstractmethod
    def sweep(self, interned: Int64s | UInt32s) -> None:
        """Forget the names that nothing refers to any more: of those just interned, and of what was forgotten."""

    @abstractmethod
    def _prediction(self, answers: A) -> P:
        """Return the answer to the one prediction of a batch."""

    def _label(self, given: Any) -> float:
        """Return a label; raise ValueError where it is none."""
        return label_of(given, self._classes)

    def _entries(self, x: Example) -> tuple[UInt32s, Float64s]:
        """Return the features of an example and their values; raise ValueError where they are none."""
        return entries_of(x, self.names)

    def insert(
        self, x: Example, label: float, *, weight: float = 1.0, id: Id | None = None, key: int = 0, time: int = 1
    ) -> Status:
        """Learn one example; see `apply` for many.

        Parameters
        ----------
        x : Mapping or Iterable
            Features with their values, or those that are present.
        label : int or float
            The number of the class; of regression a number.
        weight : float
            Below 2^42.
        id : int, str or bytes, optional
            Names the example, so that it can be deleted by that alone, where the pool takes deletes.
        key : int
            Whose model learns it.
        time : int
            Event time in ms.

        Raises
        ------
        ValueError
            Where the example is not one: a wrong feature, value, label or weight. Nothing has changed.
        """
        return self._one(Op.INSERT, x, self._label(label), fixed_point_of(weight, self._LEAST), id, key, time)[0]

    learn = insert

    def delete(
        self,
        x: Example = (),
        label: float = 0,
        *,
        weight: float = 1.0,
        id: Id | None = None,
        key: int = 0,
        time: int = 1,
    ) -> Status:
        """Forget one example, by its id or else by value, as it was given to `insert`.

        What is not there is told by the status, as is that the pool cannot forget.

        Raises
        ------
        ValueError
            Where the example is not one.
        """
        return self._one(Op.DELETE, x, self._label(label), fixed_point_of(weight, self._LEAST), id, key, time)[0]

    def predict(self, x: Example, *, key: int = 0) -> P:
        """Return what is predicted for an example; no state is changed.

        Of classes it is float64[c], their weights, in examples: all 0 where nothing is known. Of regression it is
        the label, nan where nothing is known.

        Raises
        ------
        ValueError
            Where the example is not one.
        """
        return self._prediction(self._one(Op.PREDICT, x, 0, UNIT, None, key, 1)[1])

    def drop(self, key: int = 0) -> None:
        """Forget a key: its model, and its examples where they are kept."""
        self._one(Op.DROP, (), 0, UNIT, None, key, 1)

    def _one(
        self, op: Op, x: Example, label: float, units: int, id: Id | None, key: int, time: int
    ) -> tuple[Status, A]:
        key, time = key_of(key), whole("a time in ms", time, 0, LAST_TIME)
        high, low = (0, 0) if id is None else digest_of(id_of(id))
        feature, value = self._entries(x)
        events = self._row._replace(feature=feature, value=value)
        events.key[0] = key
        events.op[0] = op
        events.label[0] = label
        events.weight[0] = units
        events.time[0] = time
        events.named[0] = id is not None
        events.id_high[0] = high
        events.id_low[0] = low
        events.pointer[1] = len(feature)
        answers = self.apply(events, checked=True)
        self.sweep(feature)
        status = Status(int(answers.status[0]))
        if status == Status.WRONG_VALUE:
            raise ValueError(f"expected {self._VALUES}, got {x!r}")
        return status, answers


class Pool(OneByOne[A, P], Generic[S, A, P]):
    """Any number of models in one state.

    Parameters
    ----------
    state : NamedTuple
        An empty one.
    names : bool
        Features are byte strings, interned here; otherwise ids below 2^32.
    kinds : Schema
        The kinds of features.
    criterion : str, optional
        Name of the criterion, which is the field `criterion` of the state.
    """

    _ALIVE: ClassVar[int]  # the column of `_heads` that is above 0 where a key has learned something
    _START: ClassVar[tuple[Any, ...]] = (0,)  # what the kernel is told beside the batch when it begins one
    _holder = 0  # which of those it is that hold on to its names

    def __init__(self, state: S, *, names: bool, kinds: Schema, criterion: str | None = None) -> None:
        self.names = Interner() if names else None
        self._state = state
        self._schema = kinds
        self._criterion = criterion
        self._reach = MEMO
        self._covered = MEMO  # examples of weight 1 until a model could have outgrown the memo
        kinds.intern(self.names)

    # --- what a pool adds

    @property
    @abstractmethod
    def _heads(self) -> Int64s:
        """int64[keys, ..], a row for each key."""

    @abstractmethod
    def _grow_keys(self, keys: int) -> None:
        """Make room for so many keys."""

    @abstractmethod
    def _step(self, batch: Any, out: Any, *at: Any) -> tuple[Any, ...]:
        """Call the kernel from `at` on; return where it stopped, an event first of all, and at the end why."""

    @abstractmethod
    def _enlarge(self, short: int, key: int, ones: int) -> None:
        """Enlarge what is short for an event of a key with so many features."""

    @abstractmethod
    def _check(self) -> Iterable[npt.NDArray[Any]]:
        """Assert what is the kind's own; return the features that it holds on to, each as often as it does."""

    def _heaviest(self) -> int:
        """Return the weight, in units, of the heaviest that the criterion is asked about."""
        return 0

    # --- a batch

    def _begin(self, events: Events, checked: bool) -> Events:
        """Make sure that a batch can be applied, and make room for its keys; return it with plain columns."""
        if not checked:
            check_columns(events, self._LABEL, self.names)
        events = plain(events)
        if np.count_nonzero(events.key >= len(self._heads)):
            self._reserve(int(events.key.max()) + 1)
        self._cover(len(events.key))
        self._show_names()
        return events

    def _run(self, batch: Any, out: Any) -> Iterator[int]:
        """Let the kernel apply a batch; yield each event after which it has something to tell."""
        at = self._START
        while True:
            *at, stopped = self._step(batch, out, *at)  # type: ignore[assignment]  # a list is as good
            event = at[0]
            if stopped == DONE:
                return
            if stopped == TOLD:
                yield event - 1
            else:
                ones = int(batch.pointer[event + 1] - batch.pointer[event])
                self._enlarge(stopped, int(batch.key[event]), ones)

    def _reserve(self, keys: int) -> None:
        before = len(self._heads)
        if keys > before:
            self._grow_keys(larger(before, keys))

    def _show_names(self) -> None:
        """Let kernels see the names as they are now."""
        if self.names is not None:
            shown = self.names.seen_by(self._holder)
            if shown is not self._state.names:
                self._state = self._state._replace(names=shown)

    def _cover(self, inserts: int) -> None:
        """Make the memo of the criterion long enough for what so many inserts could make of a model."""
        self._covered -= inserts
        if self._criterion is None or self._covered >= 0:
            return
        largest = self._heaviest() // UNIT + inserts
        # With room, or a sliding window would come here all the time; but no event waits for much of it.
        reach = largest + min(largest, _MEMO_STEP)
        if reach > self._reach:
            self._reach = reach
            state: Any = self._state
            self._state = state._replace(criterion=covering(state.criterion, reach))
        self._covered = self._reach - largest

    # --- looking

    def kinds_of(self, feature: Int64s | UInt32s) -> Int8s:
        """Return the `Kind` of each of these features, which are given by their numbers."""
        return self._schema.of(feature)

    def _features(self, numbers: Sequence[Any]) -> list[int | bytes | None]:
        """Return the features behind numbers, None where there is none."""
        return [None if number is None else name_or_id(self.names, int(number)) for number in numbers]

    @property
    def alive(self) -> int:
        """How many keys have learned something since they were last dropped."""
        return int(self._state.alive[0])

    def are_alive(self, keys: Int32s) -> npt.NDArray[np.bool_]:
        """Return which of these keys have learned something since they were last dropped."""
        return are_set(self._heads[:, self._ALIVE], keys)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the state, room to grow included."""
        return sum(array.nbytes for array in self.arrays().values())

    def warm_up(self) -> None:
        """Compile the kernels that no event calls, or load them. No state is changed."""

    # --- state

    def sweep(self, interned: Int64s | UInt32s) -> None:
        """Forget the names that nothing refers to any more: of those just interned, and of what was forgotten."""
        if self.names is not None:
            self.names.sweep(interned)

    def arrays(self) -> Arrays:
        """Return the whole state as named arrays (not copied)."""
        names = flattened(self.names.arrays, "names") if self.names is not None else {}
        return flattened(self._state) | names

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""
        if self.names is not None:
            self.names = Interner(rebuilt(self.names.arrays, arrays, "names"))
            self._schema.find(self.names)
        self._state = rebuilt(self._state, arrays)
        self._covered = 0
        return self

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. O(everything)."""
        assert self.alive == np.count_nonzero(self._heads[:, self._ALIVE])
        held = self._check()
        if self.names is not None:
            self.names.check_references([*held, self._schema.numbers])
