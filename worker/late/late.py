"""What a pipeline has of late labels: the store of its partition, and what each model answered.

A model that is new and learns silently what was before it keeps what is pending in a store of its own meanwhile:
the store of the partition is of today, and the records are not. Once it has caught up, both hold the same examples
as far as both have seen them, and it goes over to that of the partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy.typing as npt

from worker.codec import Events, Reason, RecordFault
from worker.codec.events import LABEL
from worker.codec.selected import selected
from worker.late.given import Given, given_of
from worker.late.pending import PendingExamples, Resolved, Tally
from worker.log.port import Records
from worker.models.port import Outcome
from worker.settings.models import ModelSettings
from worker.settings.topics import PendingSettings
from worker.watching.status import Quality

Arrays = Mapping[str, npt.NDArray[Any]]

# Names of arrays in checkpoints, where those of models stand; no model can be called so.
_STORE, _OWN, _GIVEN = "~pending", "~pending ", "~given "


class Batch(NamedTuple):
    """The events of a batch, for each model."""

    events: Events  # for those that are not named below
    of_models: Mapping[str, Events]
    resolved: Mapping[str, Resolved]  # of the models that take part
    faults: list[RecordFault]
    forgotten: frozenset[tuple[int, int]]  # record and row of deletes whose example was pending
    tally: Tally

    def of(self, model: str) -> Events:
        """Return the events for a model."""
        return self.of_models.get(model, self.events)

    def judged(self, outcome: Outcome) -> Outcome:
        """Return a model's outcome without refusals of deletes that have forgotten a pending example."""
        if not self.forgotten or not outcome.refusals:
            return outcome
        refusals = [
            refusal
            for refusal in outcome.refusals
            if refusal.reason is not Reason.ABSENT_ID or (refusal.record, refusal.row) not in self.forgotten
        ]
        return outcome._replace(refusals=refusals)


class LateLabels:
    """The examples of a partition that wait for their labels; nothing where the settings of the topic say so."""

    def __init__(self) -> None:
        self._limits: PendingSettings | None = None
        self._store: PendingExamples | None = None
        self._own: dict[str, PendingExamples] = {}  # of models that are behind
        self._given: dict[str, Given] = {}
        self._models: dict[str, ModelSettings] = {}

    @property
    def store(self) -> PendingExamples | None:
        """The store of the partition."""
        return self._store

    def have(
        self,
        models: Mapping[str, ModelSettings],
        limits: PendingSettings | None,
        kept: Collection[str],
        behind: Collection[str],
        begin: int = 0,
    ) -> None:
        """Have these models from now on, and these limits.

        What is pending stays as far as it may. Models that are not kept have answered nothing so far; those of
        them that are behind get a store of their own. New stores keep nothing of what is below the offset `begin`.
        """
        before = {name: each.arrays() for name, each in self._given.items() if name in kept}
        self._models = {name: model for name, model in models.items() if model.late_labels}
        self._limits = limits
        gone = None
        if limits is None:
            self._store = None
        elif self._store is None:
            self._store = PendingExamples(limits.max, limits.for_.ms, begin)
        else:
            gone = self._store.limit(limits.max, limits.for_.ms)
        self._own = {name: each for name, each in self._own.items() if name in kept and name in self._models}
        for name in behind:
            if limits is not None and name in self._models and name not in kept:
                self._own[name] = PendingExamples(limits.max, limits.for_.ms, begin)
        self._make_given()
        for name, arrays in before.items():
            if name in self._given:
                self._given[name].restore(arrays)
                if gone is not None and name not in self._own:
                    self._given[name].wipe(gone)

    def _make_given(self) -> None:
        found = {
            name: given_of(name, model)
            for name, model in self._models.items()
            if self._store is not None or name in self._own
        }
        self._given = {name: each for name, each in found.items() if each is not None}

    def warm_up(self) -> None:
        """Compile the kernel that no event calls, or load it."""
        if self._store is not None:
            PendingExamples(1, 1).limit(1, 2)

    # --- a batch

    def batch(self, records: Records, events: Events) -> Batch:
        """Return the events for the models that are not behind, as the store of the partition has it."""
        if self._store is None:
            is_label = events.op == LABEL
            if not is_label.any():
                return Batch(events, {}, {}, [], frozenset(), Tally())
            places = zip(events.record[is_label].tolist(), events.row[is_label].tolist(), strict=True)
            faults = [RecordFault(record, row, Reason.NOT_PENDING, _NOTHING_IS) for record, row in places]
            return Batch(selected(events, ~is_label), {}, {}, faults, frozenset(), Tally())
        resolved = self._store.resolve(records, events)
        part = [name for name in self._models if name not in self._own]
        return Batch(
            resolved.plain,
            dict.fromkeys(part, resolved.events),
            dict.fromkeys(part, resolved),
            [RecordFault(record, row, Reason.NOT_PENDING, self._is_not()) for record, row in resolved.late],
            resolved.forgotten,
            resolved.tally,
        )

    def batch_behind(self, records: Records, events: Events, names: Collection[str]) -> Batch:
        """Return the events for some of the models that are behind, each as its own store has it."""
        resolved = {name: self._own[name].resolve(records, events) for name in names if name in self._own}
        is_label = events.op == LABEL
        plain = selected(events, ~is_label) if is_label.any() else events
        own = {name: each.events for name, each in resolved.items()}
        return Batch(plain, own, resolved, [], frozenset(), Tally())

    def after(self, model: str, outcome: Outcome, batch: Batch, records: Records) -> Outcome:
        """Note what a model has answered, and judge what it answered before; return its outcome with that."""
        outcome = batch.judged(outcome)
        given, resolved = self._given.get(model), batch.resolved.get(model)
        if given is None or resolved is None:
            return outcome
        return given.after(outcome, resolved, records)

    def _is_not(self) -> str:
        assert self._limits is not None
        return (
            "expected the id of a pending example, this one is not: its label came before, or it was predicted "
            f"longer ago than {self._limits.for_.words} (pending.for of the topic), or before "
            f"{self._limits.max:,} others (pending.max), or with another key, or never (7 is another id than "
            "'7'); send an insert with the features"
        )

    def caught_up(self, names: Iterable[str]) -> None:
        """Let models that have caught up go over to the store of the partition."""
        for name in names:
            own = self._own.pop(name, None)
            if own is None or (given := self._given.get(name)) is None:
                continue
            if self._store is None:
                del self._given[name]
                continue
            places = ((row, self._store.row_of(each.key, each.id)) for row, each in own.waiting())
            given.moved({row: place for row, place in places if place >= 0})

    # --- state

    @property
    def waiting(self) -> int | None:
        """How many examples wait for their labels, None where the settings say that none do."""
        return None if self._store is None else len(self._store)

    def quality(self, model: str) -> Quality | None:
        """Return how good the answers of a model were that were given to predicts, where that is evaluated."""
        given = self._given.get(model)
        return None if given is None else given.quality()

    def arrays(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Return the state as named arrays, not copied, beside those of models."""
        found = {} if self._store is None else {_STORE: self._store.arrays()}
        found |= {f"{_OWN}{name}": each.arrays() for name, each in self._own.items()}
        return found | {f"{_GIVEN}{name}": each.arrays() for name, each in self._given.items()}

    def expect(self, saved: Iterable[str]) -> None:
        """Make the stores of models that were behind when a state was saved."""
        names = {name.removeprefix(_OWN) for name in saved if name.startswith(_OWN)}
        self._own = {name: PendingExamples(1, 1) for name in sorted(names) if name in self._models}
        self._make_given()

    def restore(self, saved: Mapping[str, Arrays]) -> None:
        """Take over a state that `arrays` returned, which may be among others."""
        if self._store is not None:
            self._store.restore(saved[_STORE])
        for name, own in self._own.items():
            own.restore(saved[f"{_OWN}{name}"])
        for name, given in self._given.items():
            given.restore(saved[f"{_GIVEN}{name}"])

    def check(self) -> None:
        """Raise AssertionError unless every invariant holds. For tests."""
        for each in [*self._own.values(), *([] if self._store is None else [self._store])]:
            each.check()
        for name, given in self._given.items():
            store = self._own.get(name, self._store)
            assert store is not None
            assert set(given.holds().tolist()) <= {row for row, _ in store.waiting()}, "an answer of what is gone"


_NOTHING_IS = (
    "expected a topic whose predicts are kept until their labels come, this one has no 'pending'; set it under "
    "topics (pending: {max: 100000, for: 7d}), or send an insert with the features"
)

__all__ = ["Batch", "LateLabels"]
