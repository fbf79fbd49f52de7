"""Whether examples are forgotten: what a group's models hold, beside models that never saw these.

::

    the state of the group --------> its models, as of the committed offset --+
                                                                              +--> equal, and nothing left?
    the records below the offset,                                             |
    without all that name the ids -> models that never saw the examples ------+

Both are looked at in a form that does not depend on the order in which things came (worker/models/holdings.py).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgpack
import numpy as np

from worker.checkpoint import returned
from worker.codec import Bounds, Events, RecordFault, decode_batch
from worker.codec.event import encode_event
from worker.codec.events import DELETE, DROP, INSERT, LABEL, NO_FEATURES, NO_ID, NO_LABEL, PREDICT
from worker.codec.selected import ONES
from worker.formats import Schemas
from worker.formats.kept import schemas_of
from worker.late.pending import PendingExamples, Waiting
from worker.log.port import Log, LogError, Records, TopicPartition
from worker.models.evaluation import PREFIX
from worker.models.holdings import Holdings, Id, held_names, holds_digest
from worker.models.intake import id_digests, id_of
from worker.models.port import Model
from worker.pipeline import Pipeline
from worker.restore import catch_up, follow
from worker.settings import Settings
from worker.state import restored

Named = int | str  # an id as events have it
PENDING = "pending"  # what a finding calls the examples that wait for their labels, no model's own
_SECONDS = 120.0  # without progress


class Finding(NamedTuple):
    """What was found of one model in one partition."""

    source: TopicPartition
    offset: int  # the records below it are in the models
    model: str  # PENDING of the examples that wait for their labels
    kind: str
    left: tuple[str, ...]  # what is left of the examples: must be empty
    unproven: tuple[str, ...]  # what nobody can tell, and why
    digest: str  # of all that the model holds, in canonical form; empty where there is none


class Audit(NamedTuple):
    """What an audit led to."""

    ids: tuple[Named, ...]  # that were looked for
    unseen: tuple[Named, ...]  # of these, that no event names
    live: tuple[Named, ...]  # of these, whose last event is no delete
    findings: tuple[Finding, ...]

    @property
    def is_clean(self) -> bool:
        """Whether all are deleted, and nothing was found of any."""
        return not self.unseen and not self.live and not any(finding.left for finding in self.findings)


def audit(log: Log, settings: Settings, ids: Collection[Named], sample: int = 0, seed: int = 0) -> Audit:
    """Look for examples in the state of a group; nothing is written.

    Parameters
    ----------
    log : Log
        With the inputs, the state topics and the group's offsets.
    settings : Settings
        With which the group runs.
    ids : collection of int or of str
        The examples; 17 and "17" are two.
    sample : int
        How many more to draw of those whose last event is a delete.
    seed : int
        Of the draw.

    Raises
    ------
    LogError
        Where the state cannot be restored, or is that of other settings.
    """
    schemas = schemas_of(log, settings, lambda words: None)
    sources = [
        TopicPartition(topic, number) for topic in settings.routes for number in range(log.partitions(topic) or 0)
    ]
    if sample:
        ids = [*ids, *_drawn(log, settings, sources, schemas, sample, seed)]
    digests = {digest_of(named): named for named in ids}
    if not digests:
        return Audit((), (), (), ())
    last = _Last()
    findings = [
        finding for source in sources for finding in _of_partition(log, settings, source, schemas, digests, last)
    ]
    return Audit(
        ids=tuple(digests.values()),
        unseen=tuple(named for digest, named in digests.items() if digest not in last.ops),
        live=tuple(
            named for digest, named in digests.items() if digest in last.ops and not last.is_deleted(digest)
        ),
        findings=tuple(findings),
    )


def digest_of(named: Named) -> Id:
    """Return the digest of an id, as models keep it."""
    events, _ = decode_batch([encode_event(op="delete", id=named)], np.ones(1, np.int64), Bounds(), [b"any"])
    return _digests(events, [0])[0]


def _digests(events: Events, wanted: Sequence[int]) -> dict[int, Id]:
    """Return the digests of the ids of some events, by their numbers."""
    high, low = (half[wanted].tolist() for half in id_digests(events))
    return dict(zip(wanted, zip(high, low, strict=True), strict=True))


class _Last:
    """The last operation of each id in each key; a tombstone of the key is a delete of all of them.

    A predict counts where its features are kept, and a label where they may be.
    """

    def __init__(self) -> None:
        self.ops: dict[Id, dict[bytes | None, int]] = {}
        self.names: dict[Id, Named] = {}

    def note(self, records: Records, events: Events, digests: Mapping[int, Id], *, waits: bool) -> None:
        """Note the events of a batch that name an id, by their number, and the tombstones."""
        for event in sorted({*digests, *np.flatnonzero(events.op == DROP).tolist()}):
            key, op = records.keys[int(events.record[event])], int(events.op[event])
            if op == DROP:
                for of_key in self.ops.values():
                    if key in of_key:
                        of_key[key] = DELETE
            elif op in (INSERT, DELETE) or (waits and op == PREDICT):
                self.ops.setdefault(digests[event], {})[key] = op
            elif op == LABEL and self.ops.get(digests[event], {}).get(key) == PREDICT:
                self.ops[digests[event]][key] = INSERT

    def is_deleted(self, digest: Id) -> bool:
        """Return whether no key has it any more."""
        return all(op == DELETE for op in self.ops[digest].values())


class _Without(Pipeline):
    """A pipeline in which events that name some ids say nothing, and which notes what the last of each was."""

    def leave_out(self, ids: Collection[Id], last: _Last) -> None:
        """Say which, and where to note."""
        self._left_out, self._last = ids, last
        self._high = np.array([high for high, _ in ids], np.int64)

    def _decode(self, records: Records) -> tuple[Events, list[RecordFault]]:
        events, faults = super()._decode(records)
        like = (events.id_kind != NO_ID) & np.isin(id_digests(events)[0], self._high)  # few, if not those alone
        found = _digests(events, np.flatnonzero(like).tolist())
        found = {event: digest for event, digest in found.items() if digest in self._left_out}
        self._last.note(records, events, found, waits=self.late.store is not None)
        return _emptied(events, list(found)), faults


def _of_partition(
    log: Log,
    settings: Settings,
    source: TopicPartition,
    schemas: Schemas,
    digests: Mapping[Id, Named],
    last: _Last,
) -> Iterator[Finding]:
    """Look at the models of a partition; note the last event of each id."""
    pipeline, start = restored(log, settings, source, schemas)
    if start.change is not None:
        raise LogError(
            f"{source}: expected the settings with which its state was made, got others; audit with those, or "
            "let a worker take these over first"
        )
    returned(catch_up(log, pipeline, start.behind, start.offset, time.monotonic, _SECONDS))
    other = _Without(source, settings, time.monotonic, schemas)
    models = {model.name: settings.models[model.name] for model in pipeline.models}
    pending, store = settings.topic(source.topic).pending, pipeline.late.store
    waits_from = 0 if store is None else store.first or 0
    other.have(models, settings.bounds, pending, behind=models, waits_from=waits_from)
    other.skips.update(pipeline.skips)
    other.leave_out(digests.keys(), last)
    firsts, low = {name: entry.first for name, entry in start.epoch.models.items()}, log.watermarks(source).low
    behind = {name: max(first, low) for name, first in firsts.items()}
    limits_changed = store is not None and store.was_changed
    returned(catch_up(log, other, behind, start.offset, time.monotonic, _SECONDS))
    if store is not None:
        yield _of_pending(log, source, store, other, digests, start.offset)
    for model, without in zip(pipeline.models, other.models, strict=True):
        first = firsts[model.name]
        gone = f"the records from offset {first} to {low - 1} are gone" if first < low else ""
        holdings = model.holdings()
        if limits_changed and settings.models[model.name].late_labels:
            gone = gone or "other limits held for what is pending before"
        left, unproven = _compared(model, holdings, without, digests, gone)
        yield Finding(
            source=source,
            offset=start.offset,
            model=model.name,
            kind=settings.models[model.name].kind,
            left=tuple(left),
            unproven=tuple(unproven),
            digest="" if holdings is None else _canonical_digest(holdings),
        )


def _of_pending(
    log: Log,
    source: TopicPartition,
    store: PendingExamples,
    other: Pipeline,
    digests: Mapping[Id, Named],
    offset: int,
) -> Finding:
    """Look at what waits for its label, beside a store that never had the examples."""
    low, first = log.watermarks(source).low, store.first or 0
    returned(follow(log, other, max(low, first), offset, time.monotonic, _SECONDS))
    assert other.late.store is not None
    arrays, held, others = store.arrays(), _waiting(store), _waiting(other.late.store)
    left, unproven = [], []
    for digest, named in digests.items():
        if any(digest == each.id for each in held):
            left.append(f"the example {named!r} waits for its label")
        elif holds_digest(arrays, digest):
            left.append(f"the digest of the id {named!r} is in a row that is not in use")
    if names := held_names(arrays) - held_names(other.late.store.arrays()):
        left.append(f"names of features that only they had: {len(names)}")
    if more := held - others:
        left.append(f"examples that wait and would not without them: {len(more)}")
    if held != others and store.was_full:
        unproven.append("others had to go for them that would wait if these had never come (pending.max)")
    elif others - held:
        left.append(f"examples that would wait without them: {len(others - held)}")
    told = sorted((each.key, each.id, each.features) for each in held)
    told_digest = hashlib.sha256(msgpack.packb(told)).hexdigest()
    return Finding(source, offset, PENDING, PENDING, tuple(left), tuple(unproven), told_digest)


def _waiting(store: PendingExamples) -> set[Waiting]:
    """Return what waits; how much has gone of what is due depends on how many events came since."""
    return {each for row, each in store.waiting() if not store.is_due(row)}


def _compared(
    model: Model, own: Mapping[bytes, Holdings] | None, without: Model, digests: Mapping[Id, Named], gone: str
) -> tuple[list[str], list[str]]:
    """Return what a model holds that one without the examples does not, and what nobody can tell."""
    left, unproven = [], []
    model.settle()
    arrays, others = model.arrays(), without.holdings()
    remembered = {digest for each in (own or {}).values() for digest in each.remembered}
    live = {example.id for each in (own or {}).values() for example in each.live}
    for digest, named in digests.items():
        if digest in live:
            left.append(f"the example {named!r} is live")
        elif digest in remembered:
            left.append(f"that the window dropped {named!r} is remembered, by the digest of the id")
        elif holds_digest(arrays, digest):
            left.append(f"the digest of the id {named!r} is in a row that is not in use")
    if any(name.startswith(PREFIX) for name in arrays):
        unproven.append("the figures of its evaluation count the predictions of all that was ever learned")
    if own is None or others is None:
        unproven.append("what it has learned does not follow from the live examples alone")
        return left, unproven
    if gone:
        unproven.append(f"it cannot be compared with a model that never saw them: {gone}")
        return left, unproven
    if names := held_names(arrays) - held_names(without.arrays()):
        left.append(f"names of features that only they had: {len(names)}")
    differing = [key for key in sorted({*own, *others}) if own.get(key) != others.get(key)]
    if differing and any(each.windowed for each in own.values()):
        unproven.append("its window has let others go at other events than if these had never come")
    elif differing:
        left.append(f"keys that hold something else than without them: {len(differing)}, first {differing[0]!r}")
    if any(each.learned is None for each in own.values()):
        unproven.append("what it answers may be near to what the live examples say (epsilon, max_work)")
    return left, unproven


def _canonical_digest(holdings: Mapping[bytes, Holdings]) -> str:
    told = [(key, [each.live, sorted(each.remembered), each.learned]) for key, each in sorted(holdings.items())]
    return hashlib.sha256(msgpack.packb(told, default=int)).hexdigest()


def _drawn(
    log: Log, settings: Settings, sources: Sequence[TopicPartition], schemas: Schemas, count: int, seed: int
) -> list[Named]:
    """Draw ids of those whose last event is a delete."""
    last = _Last()
    for source in sources:
        seen = _Seen(source, settings, time.monotonic, schemas)
        seen.have({}, settings.bounds, None)
        seen.last, seen.waits = last, settings.topic(source.topic).pending is not None
        committed = log.committed(source)
        behind = {"": log.watermarks(source).low}
        returned(catch_up(log, seen, behind, committed or 0, time.monotonic, _SECONDS))
    deleted = sorted((last.names[digest] for digest in last.ops if last.is_deleted(digest)), key=str)
    chosen = np.random.default_rng(seed).permutation(len(deleted))[:count]
    return [deleted[at] for at in sorted(chosen.tolist())]


class _Seen(Pipeline):
    """A pipeline that notes the last operation of every id."""

    last: _Last
    waits: bool

    def _decode(self, records: Records) -> tuple[Events, list[RecordFault]]:
        events, faults = super()._decode(records)
        found = _digests(events, np.flatnonzero(events.id_kind != NO_ID).tolist())
        for event, digest in found.items():
            named = id_of(events, event)
            assert named is not None
            self.last.names[digest] = named
        self.last.note(records, events, found, waits=self.waits)
        return events, faults


def _emptied(events: Events, which: Sequence[int]) -> Events:
    """Return the events with predicts of nothing in the place of some: the clock goes on, and no more. O(ones)."""
    if not which:
        return events
    sizes = np.diff(events.pointer)
    op, id_kind, space = events.op.copy(), events.id_kind.copy(), events.space.copy()
    op[which], id_kind[which], space[which] = PREDICT, NO_ID, NO_FEATURES
    label_kind = events.label_kind.copy()
    label_kind[which] = NO_LABEL
    wanted = np.ones(len(events.op), np.bool_)
    wanted[which] = False
    entries = np.repeat(wanted, sizes)
    columns = {name: getattr(events, name)[entries] for name in ONES}
    pointer = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.where(wanted, sizes, 0))])
    return events._replace(op=op, id_kind=id_kind, label_kind=label_kind, space=space, pointer=pointer, **columns)
