"""What the worker needs of a kind of model. A new kind is one file like split.py and one line in `KINDS`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy.typing as npt

from algorithms.regression.baselines import Compared
from worker.codec import Events, Reason
from worker.codec.encode import Output
from worker.log.port import Records
from worker.models.holdings import Holdings
from worker.watching.status import ModelStatus

BEFORE = 2_000_000  # from this `seq` on: results of what a model does itself before the event, because it is time


class Result(NamedTuple):
    """Something to write, and which event it follows from."""

    record: int  # index of the record in its `Records`
    row: int
    seq: int  # number among the results of this model for the same event
    output: Output
    keyed: bool = True  # whether the record has the event's key
    key: bytes | None = None  # that it has instead

    @property
    def place(self) -> tuple[int, int, bool, int]:
        """What results are ordered by: what happened before an event is told before what the event led to."""
        return self.record, self.row, self.seq < BEFORE, self.seq


class Refusal(NamedTuple):
    """An event that the model refused, and why. It changed nothing."""

    record: int
    row: int
    reason: Reason
    detail: str


class Outcome(NamedTuple):
    """What a batch of events led to."""

    results: Sequence[Result]  # ascending by `Result.place`
    refusals: Sequence[Refusal] = ()  # ascending by (record, row)
    applied: Mapping[str, int] = MappingProxyType({})  # events applied, by operation
    changes: int = 0  # how often a best split became another, a node of a tree split, a subtree was rebuilt
    ignored: int = 0  # inserts of live ids that the settings say to ignore
    already_dropped: int = 0  # deletes of examples that the window had dropped before
    deletes_ignored: int = 0  # deletes sent to a tree, where the settings say to ignore them
    evaluated: int = 0  # examples that were predicted before they were learned
    right: int = 0  # of these, predicted rightly
    majority: int = 0  # and rightly by always saying the key's most frequent label so far
    no_change: int = 0  # and by always saying its last one
    missing: frozenset[str] = frozenset()  # classes and attributes that settings name and nothing has had so far
    has_others: bool = False  # whether events had features that settings do not name, where these name all
    drifts: int | None = None  # how often the error of predictions rose, None where nobody watches it
    errors: Compared | None = None  # of numbers predicted before they were learned, where that is evaluated
    expired: int = 0  # keys that were dropped because nobody used them
    let_go: int = 0  # examples that left a window by time

    def then(self, later: Outcome) -> Outcome:
        """Return what the events of both led to, those of the other being the later ones."""
        ops = [*self.applied, *(op for op in later.applied if op not in self.applied)]
        return Outcome(
            results=[*self.results, *later.results],
            refusals=[*self.refusals, *later.refusals],
            applied={op: self.applied.get(op, 0) + later.applied.get(op, 0) for op in ops},
            missing=later.missing,
            has_others=later.has_others,
            errors=later.errors if self.errors is None or later.errors is None else self.errors.plus(later.errors),
            drifts=None if later.drifts is None else later.drifts + (self.drifts or 0),
            **{name: getattr(self, name) + getattr(later, name) for name in _COUNTED},
        )


_COUNTED = (
    *("changes", "ignored", "already_dropped", "deletes_ignored"),
    *("evaluated", "right", "majority", "no_change", "expired", "let_go"),
)


class Model(Protocol):
    """All instances of one model name in one partition.

    Attributes
    ----------
    name : str
        The model's name in the settings.
    LATER : frozenset of str
        Names of arrays that a checkpoint of an earlier version may lack: `restore` does without them.
    """

    name: str
    LATER: ClassVar[frozenset[str]]

    def apply(self, records: Records, events: Events) -> Outcome:
        """Apply the events of a batch of records, strictly in order; a refused one changes nothing."""
        ...

    def warm_up(self) -> None:
        """Compile the kernels that no event calls, or load them."""
        ...

    def settle(self) -> None:
        """Finish what is done bit by bit beside the events, so that arrays hold what the model is."""
        ...

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        ...

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` of a model with the same settings returned."""
        ...

    def status(self) -> ModelStatus:
        """Return how large the model is."""
        ...

    def keys(self) -> list[bytes]:
        """Return the keys that it holds something of."""
        ...

    def about(self, key: bytes) -> Mapping[str, Any]:
        """Return how large what it holds of such a key is and what it did, as numbers with names."""
        ...

    def holdings(self) -> Mapping[bytes, Holdings] | None:
        """Return what it holds of each key, None where that does not follow from the live examples alone."""
        ...

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. For tests."""
        ...
