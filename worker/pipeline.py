"""The way of a batch through one partition: decode, route and update, encode. No log, no clock of its own.

What it returns depends on the records and the settings alone: not on how records were batched, and not
on other partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np

from worker.checkpoint.marks import Skip
from worker.codec import (
    AnyTree,
    Bounds,
    DelayedEvaluation,
    Drift,
    Evaluation,
    Events,
    Reason,
    RecordFault,
    RegressionDelayedEvaluation,
    RegressionEvaluation,
    Source,
    cut,
    dead_letter,
    decode_batch,
    joined,
    to_record,
)
from worker.formats import NO_SCHEMAS, Refused, Schemas, reader_of
from worker.late import Batch, LateLabels, Tally
from worker.log.port import OutRecord, Records, TopicPartition
from worker.models import KINDS, Model, Outcome, Refusal, make_model
from worker.models.layouts import Arrays, Migration, migrated, numbered
from worker.models.port import Result
from worker.models.split_results import SplitResults
from worker.settings import Settings
from worker.settings.by_kind import kind_of
from worker.settings.models import ModelSettings
from worker.settings.topics import PendingSettings

# All that they write.
_OF_SHADOWS = (Evaluation, DelayedEvaluation, RegressionEvaluation, RegressionDelayedEvaluation, Drift)


class Processed(NamedTuple):
    """What a batch of records led to."""

    outputs: list[OutRecord]  # results, then dead letters, each ascending by source offset
    outcomes: Sequence[tuple[str, Outcome]]  # of each model
    faults: Sequence[RecordFault]  # what could not be read, or is a label of what is not pending
    late: Tally  # what became of pending examples
    decode_seconds: float
    update_seconds: float
    encode_seconds: float


class Pipeline:
    """All models of one input partition, and the way to them.

    Parameters
    ----------
    source : TopicPartition
        The input partition.
    settings : Settings
        Which models it has, until it is told to `have` others, and where results go.
    clock : callable
        Seconds, monotonic; only for `Processed`.
    schemas : Schemas, optional
        What records are written with, where the format of the topic has schemas.

    Attributes
    ----------
    state : TopicPartition
        Where its checkpoints and skips are.
    skips : dict
        Records that are passed by, by offset.
    shadows : frozenset of str
        The models that learn and are evaluated, and write nothing else.
    late : LateLabels
        The examples that wait for their labels.
    """

    def __init__(
        self,
        source: TopicPartition,
        settings: Settings,
        clock: Callable[[], float],
        schemas: Schemas = NO_SCHEMAS,
    ) -> None:
        self.source = source
        self.models: list[Model] = []
        self._route = settings.routes[source.topic]
        self._clock = clock
        topic = settings.topic(source.topic)
        self._form = topic.results
        self._schemas = schemas
        self._reader = reader_of(topic, schemas)
        self.state = TopicPartition(self._route.state, source.partition)
        self.skips: dict[int, Skip] = {}
        self.late = LateLabels()
        self._own = {name: model for name, model in settings.models.items() if model.input == source.topic}
        self.have(self._own, settings.bounds, topic.pending)

    def have(
        self,
        models: Mapping[str, ModelSettings],
        bounds: Bounds,
        pending: PendingSettings | None,
        kept: Collection[str] = (),
        behind: Collection[str] = (),
        waits_from: int = 0,
    ) -> None:
        """Have these models from now on: those that are kept go on with their state, the others are empty.

        Parameters
        ----------
        models : mapping of str to ModelSettings
            All of them; how they are run the worker's own settings say.
        bounds : Bounds
            What events may hold.
        pending : PendingSettings, optional
            For how long labels are waited for, if they are; what is pending stays.
        kept : collection of str
            The models that go on.
        behind : collection of str
            Those of the others that learn what was before them first.
        waits_from : int
            The offset from which on labels are waited for, where that is not the first that comes.
        """
        before = {model.name: model.arrays() for model in self.models if model.name in kept}
        self.late.have(models, pending, kept, behind, waits_from)
        run = {name: model.run_as(self._own.get(name)) for name, model in models.items()}
        self._told, self._bounds = dict(sorted(run.items())), bounds
        self.shadows = frozenset(name for name, model in models.items() if model.shadow)
        self.models = self._new_models()
        for model in self.models:
            if model.name in before:
                model.restore(before[model.name])

    def _new_models(self) -> list[Model]:
        return [make_model(name, model, self._bounds) for name, model in self._told.items()]

    def warm_up(self) -> None:
        """Compile the kernels, or load them: before there is a heartbeat to miss."""
        none = np.zeros(0, np.int64)
        self.process(Records(self.source, none, none, [], [], [], 0))
        self.late.warm_up()
        for model in self.models:
            model.warm_up()

    def has_schemas(self, records: Records) -> bool:
        """Return whether all is there that records are read with; if not, it is asked for: call again.

        Raises `LogError` where the registry refuses to answer.
        """
        return self._reader is None or self._schemas.has(self._reader.schemas(records.values))

    def process(self, records: Records) -> Processed:
        """Apply a batch of records; the models change, the log does not."""
        started = self._clock()
        events, faults = self._decode(records)
        decoded = self._clock()
        batch = self.late.batch(records, events)
        if batch.faults:
            faults = sorted([*faults, *batch.faults], key=_place)
        outcomes = [(model.name, self._apply(model, records, batch)) for model in self.models]
        updated = self._clock()
        outputs = [*self._results(records, outcomes), *self._dead_letters(records, faults, outcomes)]
        seconds = (decoded - started, updated - decoded, self._clock() - updated)
        return Processed(outputs, outcomes, faults, batch.tally, *seconds)

    def learn(self, records: Records, names: Collection[str], *, behind: bool = False) -> None:
        """Apply a batch of records to some of the models; nothing comes of it but their state.

        Where these are `behind`, the store of pending examples of the partition has had the records already.
        """
        events, _ = self._decode(records)
        batch = self.late.batch_behind(records, events, names) if behind else self.late.batch(records, events)
        for model in self.models:
            if model.name in names:
                self._apply(model, records, batch)

    def _apply(self, model: Model, records: Records, batch: Batch) -> Outcome:
        return self.late.after(model.name, model.apply(records, batch.of(model.name)), batch, records)

    def _decode(self, records: Records) -> tuple[Events, list[RecordFault]]:
        """Read the records; one that is passed by is not looked at, a fault stands in its place."""
        passed = {
            index: self.skips[offset]
            for index, offset in enumerate(records.offsets.tolist() if self.skips else ())
            if offset in self.skips
        }
        values: Sequence[bytes | None] = records.values
        if passed:
            values = [b"" if at in passed else value for at, value in enumerate(values)]
        refused: dict[int, Refused] = {}
        if self._reader is not None:
            read = self._reader.read(values, self._bounds)
            refused = {at: event for at, event in enumerate(read) if isinstance(event, Refused)}
            values = [b"" if isinstance(event, Refused) else event for event in read]
        events, faults = decode_batch(values, records.timestamps, self._bounds, records.keys)
        for at, fault in enumerate(
            faults
        ):  # an empty value is no event, which is its only fault but one of its key
            if fault.record in passed:
                faults[at] = RecordFault(fault.record, None, Reason.DEFECT, passed[fault.record].detail)
            elif fault.record in refused and fault.reason not in _OF_KEYS:
                faults[at] = RecordFault(fault.record, None, *refused[fault.record])
        return events, faults

    def _results(self, records: Records, outcomes: Sequence[tuple[str, Outcome]]) -> Iterator[OutRecord]:
        """Yield the records of all results, in the order of the events."""
        if self._form == "json":
            yield from self._json_results(records, outcomes)
            return
        placed = [each for name, outcome in outcomes for each in self._placed(records, name, outcome.results)]
        if len(outcomes) > 1:  # models come in the order of their names, and sorting is stable
            placed.sort(key=itemgetter(0))
        for _, record in placed:
            yield record

    def _placed(
        self, records: Records, name: str, results: Sequence[Result]
    ) -> Iterator[tuple[tuple[int, int], OutRecord]]:
        """Yield where the event of each result of a model is, record and row, and the result's record."""
        if isinstance(results, SplitResults) and name not in self.shadows:
            yield from results.placed(records, self._route.output)
            return
        for result in self._written(name, results):
            yield (result.record, result.row), self._record(records, result)

    def _written(self, name: str, results: Sequence[Result]) -> Iterable[Result]:
        """Return the results of a model that become records: of a shadow not all do."""
        if name not in self.shadows:
            return results
        return (result for result in results if isinstance(result.output, _OF_SHADOWS))

    def _record(self, records: Records, result: Result) -> OutRecord:
        key = result.key if result.key is not None else records.keys[result.record] if result.keyed else None
        return to_record(result.output, self._route.output, key, result.seq, self._form)

    def _json_results(self, records: Records, outcomes: Sequence[tuple[str, Outcome]]) -> Iterator[OutRecord]:
        results = [result for name, outcome in outcomes for result in self._written(name, outcome.results)]
        if len(outcomes) > 1:
            results.sort(key=attrgetter("record", "row"))
        for result in _fitting(results):
            yield self._record(records, result)

    def _dead_letters(
        self, records: Records, faults: Sequence[RecordFault], outcomes: Sequence[tuple[str, Outcome]]
    ) -> Iterator[OutRecord]:
        """Yield one dead letter for each record and each party that refused something of it."""
        refused: list[tuple[int, str, Sequence[RecordFault | Refusal]]] = []
        parties: list[tuple[str, Sequence[RecordFault | Refusal]]] = [("", faults)]
        parties += [(name, outcome.refusals) for name, outcome in outcomes if name not in self.shadows]
        for name, complaints in parties:
            refused += [(record, name, list(of_record)) for record, of_record in groupby(complaints, _record)]
        for record, name, complaints in sorted(refused, key=lambda entry: entry[:2]):
            letter = dead_letter(
                Source(
                    topic=self.source.topic,
                    partition=self.source.partition,
                    offset=int(records.offsets[record]),
                    row=0,
                    time=max(1, int(records.timestamps[record])),
                ),
                [(complaint.row, complaint.reason, complaint.detail) for complaint in complaints],
                records.keys[record],
                records.values[record],
                self._bounds,
                model=name or None,
                form=self._form,
            )
            yield to_record(letter, self._route.dead_letters, letter.key, form=self._form)

    # --- state

    def arrays(self) -> dict[str, Arrays]:
        """Return the whole state: the named arrays of each model, not copied, and what is pending beside them."""
        own = {model.name: numbered(model.arrays(), self._migrations(model)) for model in self.models}
        return own | self.late.arrays()

    def migrated(self, saved: Mapping[str, Arrays]) -> Mapping[str, Arrays]:
        """Return a state of this or an earlier version with the layouts of today.

        What is in it of models that are no longer here stays as it is. Raises `NewerLayoutError` where it is of a
        newer version.
        """
        known = {model.name: (self._migrations(model), self._told[model.name]) for model in self.models}
        return {
            name: migrated(arrays, *known[name]) if name in known else arrays for name, arrays in saved.items()
        }

    def _migrations(self, model: Model) -> Sequence[Migration]:
        return KINDS[kind_of(type(self._told[model.name]))].migrations

    def restore(self, saved: Mapping[str, Arrays]) -> None:
        """Put models in place that have the state which `arrays` or `migrated` returned; others may be in it."""
        self.models = self._new_models()
        for model in self.models:
            model.restore(saved[model.name])
        self.late.restore(saved)


_OF_KEYS = (Reason.NO_KEY, Reason.KEY_TOO_LONG)


def _fitting(results: Sequence[Result]) -> Iterator[Result]:
    """Yield results whose trees are cut anew: as JSON they take more room than in the parts that models make."""
    parts: list[Any] = []  # of one tree, of classes or of numbers
    more = 0  # parts than before of the trees of a forest that came before
    for result in results:
        if not isinstance(result.output, AnyTree):
            yield result
            continue
        parts.append(result.output)
        if result.output.chunk + 1 < result.output.chunks:
            continue
        if not getattr(result.output, "tree", None):  # the only one, or the first
            more = 0
        first = result.seq - result.output.chunk + more
        anew = cut(joined(parts), form="json")
        for number, part in enumerate(anew, first):
            yield result._replace(output=part, seq=number)
        more += len(anew) - len(parts)
        parts.clear()


def _record(complaint: RecordFault | Refusal) -> int:
    return complaint.record


def _place(fault: RecordFault) -> tuple[int, int]:
    return fault.record, -1 if fault.row is None else fault.row
