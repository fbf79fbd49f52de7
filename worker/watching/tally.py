"""What a run led to, counted: for its last words, and for those on what was refused while it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from algorithms.regression.baselines import Compared
from worker.codec.reasons import Reason
from worker.log.port import Records, TopicPartition
from worker.models import Outcome
from worker.pipeline import Processed

_QUIET_SECONDS = 10.0  # between two warnings of the same kind
_ENOUGH = 10_000  # inserts of a model, after which what it names should have come


class Refuser(NamedTuple):
    """Who refused, and why."""

    topic: str
    model: str  # "" where an event could not be read
    reason: Reason


_Place: TypeAlias = tuple[TopicPartition, int, int]  # partition, offset, row


@dataclass(slots=True)
class Refused:
    """How much was refused for one reason."""

    first: _Place
    last: _Place
    events: int = 0  # or whole records
    told: int = 0  # of these, in warnings so far
    quiet_until: float = 0.0


class Tally:
    """Counts of all that a worker processed since it was started.

    Attributes
    ----------
    records : Counter
        Read, by topic.
    applied : Counter
        Events that changed or asked a model, by model and op.
    passed_over : Counter
        Events without effect, by model.
    splits, evaluated, right, majority, no_change : Counter
        Splits that changed, examples evaluated, and those predicted rightly: by the model, by always saying the
        most frequent label, by always saying the last one. By model; of numbers none is predicted rightly.
    errors : dict
        How good predictions of numbers were, by model.
    refused : dict
        What was refused, in the order of the first time.
    """

    def __init__(self) -> None:
        self.records: Counter[str] = Counter()
        self.applied: Counter[tuple[str, str]] = Counter()
        self.passed_over: Counter[str] = Counter()
        self.splits: Counter[str] = Counter()
        self.evaluated: Counter[str] = Counter()
        self.right: Counter[str] = Counter()
        self.majority: Counter[str] = Counter()
        self.no_change: Counter[str] = Counter()
        self.errors: dict[str, Compared] = {}
        self.refused: dict[Refuser, Refused] = {}
        self._missing: dict[str, dict[TopicPartition, frozenset[str]]] = {}
        self._others: set[str] = set()
        self._announced: set[str] = set()

    def add(self, records: Records, processed: Processed) -> None:
        """Count what a batch led to."""
        topic = records.source.topic
        self.records[topic] += len(records.values)
        for fault in processed.faults:
            self._refuse(Refuser(topic, "", fault.reason), records, fault.record, fault.row or 0)
        for model, outcome in processed.outcomes:
            self.applied.update({(model, op): events for op, events in outcome.applied.items()})
            self.passed_over[model] += outcome.ignored + outcome.already_dropped + outcome.deletes_ignored
            self.splits[model] += outcome.changes
            self.evaluated[model] += outcome.evaluated
            self.right[model] += outcome.right
            self.majority[model] += outcome.majority
            self.no_change[model] += outcome.no_change
            if outcome.errors is not None:
                before = self.errors.get(model)
                self.errors[model] = outcome.errors if before is None else before.plus(outcome.errors)
            self._await(model, records.source, outcome)
            for refusal in outcome.refusals:
                self._refuse(Refuser(topic, model, refusal.reason), records, refusal.record, refusal.row)

    def _await(self, model: str, source: TopicPartition, outcome: Outcome) -> None:
        self._missing.setdefault(model, {})[source] = outcome.missing
        if outcome.has_others:
            self._others.add(model)

    def awaited(self, model: str) -> str:
        """Return what settings and events of a model have not in common, in a sentence; empty where there is none.

        Names are those of the settings; those of features that the settings do not name are data.
        """
        missing = frozenset.intersection(*self._missing.get(model, {}).values() or [frozenset()])
        said = [f"no event had {', '.join(sorted(missing))}"] if missing else []
        if model in self._others:
            said.append("events had features that its attributes do not name, which are taken as binary")
        return "; ".join(said)

    def untold_awaited(self) -> Iterator[tuple[str, str]]:
        """Yield, once for each model, its name and what `awaited` says after enough inserts."""
        for model in sorted(self._missing.keys() - self._announced):
            if self.applied[model, "insert"] >= _ENOUGH:
                self._announced.add(model)
                if said := self.awaited(model):
                    yield model, said

    def _refuse(self, refuser: Refuser, records: Records, record: int, row: int) -> None:
        place = (records.source, int(records.offsets[record]), row)
        refused = self.refused.setdefault(refuser, Refused(place, place))
        refused.last = place
        refused.events += 1

    def untold(self, now: float, *, all_of_it: bool = False) -> Iterator[tuple[Refuser, Refused, int]]:
        """Yield what a warning is due of, and how many events it is about: at once, then every ten seconds."""
        for refuser, refused in self.refused.items():
            more = refused.events - refused.told
            if more and (all_of_it or now >= refused.quiet_until):
                refused.told, refused.quiet_until = refused.events, now + _QUIET_SECONDS
                yield refuser, refused, more

    @property
    def is_all_refused(self) -> bool:
        """Whether something was refused, and nothing else came of all that was read."""
        return bool(self.refused) and not self.applied.total() and not self.passed_over.total()

    def refused_by(self, model: str) -> int:
        """Return how many events a model refused."""
        return sum(refused.events for refuser, refused in self.refused.items() if refuser.model == model)
