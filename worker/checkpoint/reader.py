"""The newest valid checkpoint of a partition and its marks, from the records of the state topic."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from worker.checkpoint.keys import (
    DIGEST_BYTES,
    SCHEMA,
    ArrayEntry,
    CheckpointRecord,
    Key,
    Manifest,
    digest,
    is_of_another,
    unpack_checkpoint,
    unpack_key,
    unpack_manifest,
)
from worker.checkpoint.marks import Attempt, Marks, Skip, unpack_attempt, unpack_skip
from worker.checkpoint.shadow import PAGE_BYTES
from worker.log.port import Log, LogError, TopicPartition

_BATCH = 1_000  # records at a time, at most 64 MB
_STEP_PAGES = 64  # put in their places at a time: 4 MB, some ms in which live partitions wait


class _Value(NamedTuple):
    """A record's value."""

    data: bytes
    digest: bytes


T = TypeVar("T")
Values: TypeAlias = dict[bytes, _Value]  # by the record's key


class Saved(NamedTuple):
    """A checkpoint that was read."""

    record: CheckpointRecord
    lineage: bytes
    models: dict[str, dict[str, npt.NDArray[Any]]]  # the named arrays of each
    manifests: dict[str, Manifest]
    manifest_keys: list[bytes]
    keys: list[bytes]  # of all records that the checkpoint consists of
    obsolete: list[bytes]  # of all records that it does not need: leftovers
    generation: int  # the highest one seen


def read_checkpoint(
    log: Log, target: TopicPartition, clock: Callable[[], float], restore_timeout: float, group: str = ""
) -> Generator[int, None, tuple[Saved | None, Marks]]:
    """Read a partition of the state topic; yield how many offsets remain, and return what was found.

    Parameters
    ----------
    log : Log
        Where it is.
    target : TopicPartition
        Of the state topic.
    clock : callable
        Seconds, monotonic.
    restore_timeout : float
        For how many seconds nothing may come before it is given up.
    group : str
        Whose checkpoint it shall be; what tells that it is of another group is passed over.

    Yields
    ------
    int
        Offsets that remain.

    Returns
    -------
    Saved or None
        The checkpoint, None where there never was one.
    Marks
        What else it says.

    Raises
    ------
    LogError
        Where a transaction stays open, a page is missing or damaged, or a newer version wrote the checkpoint.
    """
    values: Values = {}
    yield from _read_all(
        log,
        target,
        values,
        clock,
        restore_timeout,
        wanted=lambda key: not is_of_another(unpack_key(key).lineage, group),
    )
    marks = _taken_marks(values)
    return (yield from _newest(target, values, group)), marks


def read_marks(
    log: Log, target: TopicPartition, clock: Callable[[], float], restore_timeout: float
) -> Generator[int, None, Marks]:
    """Read the marks alone, none where there is no state topic; otherwise as `read_checkpoint`."""
    values: Values = {}
    if log.partitions(target.topic) is not None:
        yield from _read_all(log, target, values, clock, restore_timeout, wanted=_is_mark)
    return _taken_marks(values)


def returned(reading: Generator[int, None, T]) -> T:
    """Return what a reading returns, for those that have nothing to do meanwhile."""
    while True:
        try:
            next(reading)
        except StopIteration as end:
            result: T = end.value
            return result


def _is_mark(key: bytes) -> bool:
    return unpack_key(key).kind in ("skip", "attempt", "epoch")


def _taken_marks(values: Values) -> Marks:
    """Take the marks out of what was read and return them."""
    skips: dict[int, Skip] = {}
    attempt: Attempt | None = None
    epochs: dict[bytes, bytes] = {}
    for key in [key for key in values if _is_mark(key)]:
        value = values.pop(key).data
        match unpack_key(key).kind:
            case "attempt":
                attempt = unpack_attempt(value)
            case "epoch":
                epochs[key] = value
            case _:
                skip = unpack_skip(value)
                skips[skip.offset] = skip
    return Marks(skips, attempt, epochs)


def is_silent(
    log: Log, target: TopicPartition, begin: int, end: int, clock: Callable[[], float], time_limit: float
) -> bool:
    """Return whether there is no record from one offset to another, but ends of transactions at most.

    Where a transaction is open there, so that nobody can tell within `time_limit` seconds, it is not.
    """
    if begin > end:
        return False
    with closing(log.reader()) as reader:
        reader.assign({target: begin})
        until = clock() + time_limit
        while begin < end and clock() < until:
            for records in reader.poll(1, 0.1):
                if records.keys:
                    return False
                begin = records.next_offset
    return begin >= end


def _read_all(
    log: Log,
    target: TopicPartition,
    values: Values,
    clock: Callable[[], float],
    restore_timeout: float,
    wanted: Callable[[bytes], bool] = lambda key: True,
) -> Generator[int, None, None]:
    """Read to the high watermark, not just to what is committed now: an open transaction may hold the newest."""
    low, high = log.watermarks(target)
    position = low
    with closing(log.reader()) as reader:
        reader.assign({target: low})
        progress_at = clock()
        while position < high:
            batches = reader.poll(_BATCH, 0.05)
            for records in batches:
                position = records.next_offset
                progress_at = clock()
                for key, value in zip(records.keys, records.values, strict=True):
                    if key is None or not wanted(key):
                        continue
                    if value is None:
                        values.pop(key, None)
                    else:
                        values[key] = _Value(value, digest(value))  # while the client fetches more
            if clock() - progress_at > restore_timeout:
                raise LogError(
                    f"{target}: expected to read up to offset {high}, but nothing came behind {position} for "
                    f"{restore_timeout:.0f} s: a transaction is open there, perhaps of a worker that just ended; "
                    "start again once it is over (transaction.timeout.ms), or end it with kafka-transactions.sh"
                )
            yield max(0, high - position)


def _newest(target: TopicPartition, values: Values, group: str) -> Generator[int, None, Saved | None]:
    named = {key: unpack_key(key) for key in values}
    found = [
        (name, unpack_checkpoint(values[key].data)) for key, name in named.items() if name.kind == "checkpoint"
    ]
    others = {name.lineage for name, record in found if record.group not in ("", group)}
    named = {key: name for key, name in named.items() if name.lineage not in others}
    found = [(name, record) for name, record in found if name.lineage not in others]
    if not found:
        return None
    name, record = max(found, key=lambda each: (each[1].offset, each[1].generation))
    if record.schema > SCHEMA:
        raise LogError(
            f"{target}: expected a checkpoint of schema {SCHEMA} or older, found {record.schema}, made by "
            f"Anabranch {record.version}; run that version, or a newer one"
        )
    assembly = _Assembly(target, values, name.lineage)
    manifests = {entry.model: assembly.manifest(record.generation, *entry) for entry in record.manifests}
    manifest_keys = list(assembly.used)
    models: dict[str, dict[str, npt.NDArray[Any]]] = {}
    for model, manifest in manifests.items():
        models[model] = {}
        for entry in manifest.arrays:
            models[model][entry.name] = yield from assembly.array(model, entry)
    keys = [*assembly.used, Key("checkpoint", name.lineage).pack()]
    needed = set(keys)
    return Saved(
        record=record,
        lineage=name.lineage,
        models=models,
        manifests=manifests,
        manifest_keys=manifest_keys,
        keys=keys,
        obsolete=[key for key in named if key not in needed],
        generation=max(key.generation for key in (*named.values(), Key("page", b"", record.generation))),
    )


class _Assembly:
    """Puts arrays together from their records, each of which must be there and undamaged."""

    def __init__(self, target: TopicPartition, values: Values, lineage: bytes) -> None:
        self._target = target
        self._values = values
        self._lineage = lineage
        self.used: list[bytes] = []  # keys

    def manifest(self, generation: int, model: str, pieces: int, expected: bytes) -> Manifest:
        packed = b"".join(
            self._value(Key("manifest", self._lineage, generation, model, "", number)).data
            for number in range(pieces)
        )
        if digest(packed) != expected:
            raise self._damaged(f"the manifest of model {model!r}")
        return unpack_manifest(packed)

    def array(self, model: str, entry: ArrayEntry) -> Generator[int, None, npt.NDArray[Any]]:
        array = np.zeros(entry.shape, np.dtype(entry.dtype))
        flat = array.reshape(-1).view(np.uint8)
        for number, generation in enumerate(np.frombuffer(entry.generations, "<i8").tolist()):
            if generation == 0:
                continue
            if number % _STEP_PAGES == _STEP_PAGES - 1:
                yield 0
            data, found = self._value(Key("page", self._lineage, generation, model, entry.name, number))
            if found != entry.digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]:
                raise self._damaged(f"page {number} of {entry.name!r} of model {model!r}")
            flat[number * PAGE_BYTES : number * PAGE_BYTES + len(data)] = np.frombuffer(data, np.uint8)
        return array

    def _value(self, key: Key) -> _Value:
        packed = key.pack()
        self.used.append(packed)
        try:
            return self._values.pop(packed)  # two copies of a large state are enough
        except KeyError:
            what = f"{key.kind} {key.number} of {key.array or 'the arrays'} of model {key.model!r}"
            raise self._damaged(f"{what}, generation {key.generation},") from None

    def _damaged(self, what: str) -> LogError:
        return LogError(
            f"{self._target}: {what} is missing or not what was written; bring the state topic back as it "
            "was; or delete it and create it anew (anabranch topics create), and the models are rebuilt from the "
            "input as far as that is kept"
        )
