"""Settings by offset: which models a partition of an input has from an offset on, and by which settings.

::

    offset  0            1,000                          5,000
            epoch 1      epoch 2                        epoch 3
            spam         spam, tree (learns from 0)     tree

An epoch is kept in the state topic. Beside the committed offset stands its note, a digest. What a partition
writes is a function of its records and its epochs: a restore, the next owner of the partition and the replay of a
recording all go by them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgpack
from pydantic import ValidationError

from worker.checkpoint.keys import PIECE_BYTES, Key, unpack_key
from worker.codec.bounds import Bounds
from worker.log.port import LogError, OutRecord, TopicPartition
from worker.models import KINDS
from worker.settings import Settings
from worker.settings.by_kind import kind_of, kind_told
from worker.settings.models import ModelSettings
from worker.settings.topics import PendingSettings

Fate: TypeAlias = Literal["kept", "retimed", "added", "changed", "begun anew", "removed"]
_NOTE = "epoch "  # begins the note of an epoch, unless that is a fingerprint
FATES: tuple[Fate, ...] = get_args(Fate)
_LOST: tuple[Fate, ...] = ("changed", "removed")  # whose state goes


class ModelEntry(NamedTuple):
    """A model in an epoch."""

    settings: Mapping[str, Any]  # those that differ from the defaults
    behaviour: int  # the number of its kind; with another one it writes other results
    first: int  # the offset from which on it learned the records
    joined: int  # the offset from which on it writes results: what it learned before, it learned silently

    @property
    def identity(self) -> str:
        """What the state depends on: with another identity it is another model."""
        return _canonical([_parts(self.settings)[0], self.behaviour])

    @property
    def timing(self) -> str:
        """What says when results are written, and which."""
        return _canonical(_parts(self.settings)[1])

    def goes_on_from(self, before: ModelEntry | None) -> bool:
        """Return whether it is the model of an entry before, with its state."""
        return before is not None and (before.identity, *before[2:]) == (self.identity, *self[2:])

    def parsed(self) -> ModelSettings | None:
        """Return the settings, None where this version has no such model."""
        kind = KINDS.get(kind_told(self.settings))
        if kind is None or kind.behaviour != self.behaviour:
            return None
        try:
            return kind.settings.model_validate_json(json.dumps(self.settings))
        except ValidationError:
            return None


class Epoch(NamedTuple):
    """Settings that hold in a partition from an offset on, until the next epoch."""

    number: int  # from 1
    offset: int
    revision: int
    bounds: Mapping[str, int]
    models: Mapping[str, ModelEntry]
    results: tuple[str, str]  # where results and dead letters went, for replays
    format: Mapping[str, Any]  # of the topic, as far as it is not the default
    note: str = ""  # beside committed offsets, and in checkpoints
    pending: Mapping[str, Any] = MappingProxyType({})  # of the topic: empty where no labels are waited for

    @property
    def content(self) -> str:
        """What the settings say, the same wherever and whenever the epoch began."""
        models = {name: [entry.identity, entry.timing] for name, entry in self.models.items()}
        told = [models, _bounds(self.parsed_bounds)]
        return _canonical([*told, dict(self.pending)] if self.pending else told)

    @property
    def parsed_bounds(self) -> Bounds:
        """The bounds; those that came later are as they are unless told."""
        return Bounds(**self.bounds)

    @property
    def parsed_pending(self) -> PendingSettings | None:
        """For how long, and for how many predicts, labels are waited for."""
        return PendingSettings.model_validate(dict(self.pending)) if self.pending else None

    def parsed(self) -> dict[str, ModelSettings] | None:
        """Return the settings of all models, None where this version cannot run one of them."""
        found: dict[str, ModelSettings] = {}
        for name, entry in self.models.items():
            if (settings := entry.parsed()) is None:
                return None
            found[name] = settings
        return found

    def noted(self) -> Epoch:
        """Return the epoch with its note."""
        told = list(self._replace(note="", pending=dict(self.pending)))
        # As it was before there was anything pending.
        return self._replace(
            note=f"{_NOTE}{self.number} {_digest(_canonical(told if self.pending else told[:-1]))}"
        )

    def records(self, group: str, target: TopicPartition, now: int) -> list[OutRecord]:
        """Return what is kept of it in the state topic; `now` in ms since the epoch of the clock."""
        fields = self._asdict() | {"models": {name: entry._asdict() for name, entry in self.models.items()}}
        fields["pending"] = dict(self.pending)
        packed: bytes = msgpack.packb(fields)
        pieces = [packed[start : start + PIECE_BYTES] for start in range(0, len(packed), PIECE_BYTES)]
        return [
            OutRecord(*target, _key(self.number, group, at), msgpack.packb((len(pieces), piece)), (), max(1, now))
            for at, piece in enumerate(pieces)
        ]


def is_note(note: str) -> bool:
    """Return whether the note of an epoch tells of one that only the state topic knows."""
    return note.startswith(_NOTE)


def _key(number: int, group: str, piece: int) -> bytes:
    """Return the key of a piece: the number stands where other keys have a generation, the group for a model."""
    return Key("epoch", b"", number, group, "", piece).pack()


def unpack_epochs(kept: Mapping[bytes, bytes]) -> dict[str, tuple[Epoch, ...]]:
    """Return the epochs of each group, in their order, from keys and values of `Epoch.records`."""
    pieces: dict[tuple[str, int], dict[int, tuple[int, bytes]]] = {}
    for packed, value in kept.items():
        key = unpack_key(packed)
        count, piece = msgpack.unpackb(value)
        pieces.setdefault((key.model, key.generation), {})[key.number] = (count, piece)
    found: dict[str, tuple[Epoch, ...]] = {}
    for (group, _), parts in sorted(pieces.items()):
        count = parts[0][0] if 0 in parts else len(parts) + 1
        if all(at in parts for at in range(count)):
            packed = b"".join(parts[at][1] for at in range(count))
            found[group] = (*found.get(group, ()), _unpacked(packed))
    return found


def _unpacked(packed: bytes) -> Epoch:
    fields = msgpack.unpackb(packed, strict_map_key=False)
    known = {name: fields[name] for name in Epoch._fields if name in fields or name not in Epoch._field_defaults}
    models = {
        name: ModelEntry(**{each: entry[each] for each in ModelEntry._fields})
        for name, entry in known["models"].items()
    }
    return Epoch(**known | {"models": models, "results": tuple(known["results"])})


# --- from settings to epochs


def first_epoch(settings: Settings, topic: str, offset: int, low: int, note: str) -> Epoch:
    """Return the epoch with which a partition begins.

    Parameters
    ----------
    settings : Settings
        The worker's.
    topic : str
        The input.
    offset : int
        Where it goes live.
    low : int
        The least offset that the topic still has.
    note : str
        The fingerprint of the settings, with which versions without epochs go on as well, where they can.
    """
    models = {name: _entered(settings, name, offset, low) for name in _readers(settings, topic)}
    epoch = _epoch(settings, topic, 1, offset, models)
    is_plain = settings.revision == 0 and all(
        entry.first == offset and not entry.settings.get("shadow") for entry in models.values()
    )
    return epoch._replace(note=note) if is_plain or settings.checkpoint is None else epoch.noted()


def taken_over(settings: Settings, topic: str, note: str) -> Epoch:
    """Return the epoch of a partition that a version without epochs has left, by settings of the same note."""
    models = {name: _entered(settings, name, 0, 0) for name in _readers(settings, topic)}
    plain = {
        name: entry._replace(settings={each: told for each, told in entry.settings.items() if each != "shadow"})
        for name, entry in models.items()
    }
    return _epoch(settings, topic, 1, 0, plain)._replace(revision=0, note=note)


def _epoch(settings: Settings, topic: str, number: int, offset: int, models: dict[str, ModelEntry]) -> Epoch:
    route, told = settings.routes[topic], settings.topic(topic)
    bounds, pending = _bounds(settings.bounds), _pending(settings, topic)
    return Epoch(
        number, offset, settings.revision, bounds, models, route.results, told.relevant(), pending=pending
    )


def _pending(settings: Settings, topic: str) -> dict[str, Any]:
    pending = settings.topic(topic).pending
    return {} if pending is None else pending.told()


def _readers(settings: Settings, topic: str) -> list[str]:
    return sorted(name for name, model in settings.models.items() if model.input == topic)


def _entered(settings: Settings, name: str, offset: int, low: int) -> ModelEntry:
    """Return the entry of a model that begins at an offset."""
    model = settings.models[name]
    begins = model.start or settings.start
    first = min(low, offset) if begins == "earliest" else offset
    return ModelEntry(_told(model), KINDS[kind_of(type(model))].behaviour, first, offset)


# --- what becomes of the models


class Change(NamedTuple):
    """What other settings do to a partition."""

    models: Mapping[str, Fate]
    bounds: bool  # whether they are others
    pending: bool  # whether labels are waited for otherwise
    revision: bool  # whether it is raised
    format: bool  # whether records or results are written otherwise, which no worker does

    @property
    def is_any(self) -> bool:
        """Whether there is anything to do."""
        others = self.bounds or self.pending or self.revision or self.format
        return others or any(fate != "kept" for fate in self.models.values())

    def of(self, *fates: Fate) -> list[str]:
        """Return the models that meet one of these fates."""
        return [name for name, fate in self.models.items() if fate in fates]

    @property
    def kept(self) -> list[str]:
        """The models that go on with their state."""
        return self.of("kept", "retimed")

    @property
    def lost(self) -> list[str]:
        """The models whose state goes."""
        return self.of(*_LOST)


def compare(epoch: Epoch, settings: Settings, topic: str, anew: Sequence[str] = ()) -> Change:
    """Return what the settings of a worker change in a partition; models in `anew` cannot go on as they are."""
    names = _readers(settings, topic)
    fates: dict[str, Fate] = {}
    for name in sorted({*epoch.models, *names}):
        if name not in names:
            fates[name] = "removed"
        elif name not in epoch.models:
            fates[name] = "added"
        else:
            before, now = epoch.models[name], _entered(settings, name, 0, 0)
            is_same = before.identity == now.identity
            if not is_same:
                fates[name] = "changed"
            elif name in anew:
                fates[name] = "begun anew"
            else:
                fates[name] = "kept" if before.timing == now.timing else "retimed"
    return Change(
        models=fates,
        bounds=epoch.parsed_bounds != settings.bounds,
        pending=epoch.parsed_pending != settings.topic(topic).pending,
        revision=settings.revision > epoch.revision,
        format=_canonical(epoch.format) != _canonical(settings.topic(topic).relevant()),
    )


def next_epoch(epoch: Epoch, change: Change, settings: Settings, topic: str, offset: int, low: int) -> Epoch:
    """Return the epoch that follows where a change is made.

    Parameters
    ----------
    epoch : Epoch
        The one before.
    change : Change
        What `compare` found.
    settings : Settings
        The worker's.
    topic : str
        The input.
    offset : int
        The committed offset, at which the change is made.
    low : int
        The least offset that the topic still has.
    """
    models = {}
    for name in _readers(settings, topic):
        models[name] = _entered(settings, name, offset, low)
        if name in change.kept:
            before = epoch.models[name]
            models[name] = models[name]._replace(first=before.first, joined=before.joined)
    return _epoch(settings, topic, epoch.number + 1, offset, models).noted()


def replaced_by(history: Sequence[Epoch], settings: Settings, topic: str, *, is_shared: bool) -> Epoch | None:
    """Return the last epoch where the settings are older than its, else None.

    Parameters
    ----------
    history : sequence of Epoch
        Those of the partition, one at least.
    settings : Settings
        Of the worker.
    topic : str
        The input.
    is_shared : bool
        Whether other workers may run with other settings: then settings that a partition has had before are those
        of a worker that has not been restarted yet, not a step back.
    """
    *before, last = history
    own = first_epoch(settings, topic, 0, 0, "").content
    if own == last.content or settings.revision > last.revision:
        return None
    if settings.revision < last.revision:
        return last
    if not is_shared:
        return None
    return last if any(own == each.content and each.revision == settings.revision for each in before) else None


def cannot_run(epoch: Epoch, what: str) -> LogError:
    """Return what to say where an epoch has models that this version does not know, or knows as others."""
    unknown = [name for name, entry in epoch.models.items() if entry.parsed() is None]
    return LogError(
        f"{what}: expected models that this version has, got others since offset {epoch.offset}: "
        f"{', '.join(unknown)}; run the version that wrote them"
    )


# --- texts


def _told(model: ModelSettings) -> dict[str, Any]:
    """Return the settings of a model as they were told: a default that was told says more than none."""
    return model.model_dump(mode="json", exclude_unset=True, exclude=set(model.HOW))


def _parts(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a model's state depends on and what only says when and what it writes.

    Both by the names that settings have today and without defaults, where this version knows them.
    """
    kind = KINDS.get(kind_told(settings))
    state: dict[str, Any] = json.loads(json.dumps(dict(settings)))
    when: dict[str, Any] = {}
    if kind is not None:
        with suppress(ValidationError):
            model = kind.settings.model_validate_json(json.dumps(state))
            state = model.model_dump(mode="json", exclude_defaults=True)
            if model.names_all_features:
                when["names_all_features"] = True  # the log tells of others
    for path in (kind.settings if kind else ModelSettings).WHEN:
        *sections, name = path
        section: Any = state
        for each in sections:
            section = section.get(each) if isinstance(section, dict) else None
        if isinstance(section, dict) and name in section:
            when[".".join(path)] = section.pop(name)
    when.pop("start", None)  # tells of the beginning alone
    return state, when


def _bounds(bounds: Bounds) -> dict[str, int]:
    return {name: getattr(bounds, name) for name in Bounds.__dataclass_fields__}


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
