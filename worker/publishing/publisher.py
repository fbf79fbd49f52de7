"""From the entries of a file to records of a log, in chunks.

Every event is read by the worker's own decoder before it is written, so that what is published is
what a worker accepts, and what it would refuse is said with the line of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from worker.codec.bounds import Bounds
from worker.codec.columns import decode_batch
from worker.codec.event import encode_batch, encode_event, is_packed
from worker.codec.reference import LATEST
from worker.log.port import CommitAborted, Log, OutRecord
from worker.publishing.partitioners import Partitioner, crc32
from worker.sources import BadLine, Entry, Example
from worker.sources.example import Label, as_op

CHUNK_EVENTS = 10_000
CHUNK_BYTES = 8 << 20  # of the file; a chunk is held in memory several times over
_ATTEMPTS = 10  # of a transaction that the log gives up
BATCH_BYTES = 256 << 10  # of events one by one; ids grow fourfold in columns, and brokers take 1 MiB


@dataclass(frozen=True, slots=True)
class Form:
    """How events become records.

    Parameters
    ----------
    topic, partitions
        Where they go.
    key
        The key of an event whose file names none.
    packed
        Whether features are packed.
    batch
        How many events of a key share a columnar record, fewer where they are large; None: every event
        is a record.
    partitioner
        Which partition a key goes to.
    """

    topic: str
    partitions: int
    key: str
    packed: bool = False
    batch: int | None = None
    partitioner: Partitioner = crc32


class Chunk(NamedTuple):
    """What became of a stretch of a file."""

    records: list[OutRecord]
    events: int
    bad: list[BadLine]  # ascending by line


def write(log: Log, records: Sequence[OutRecord]) -> int:
    """Write records in a transaction of their own and return how many; send it again where the log gives it up.

    Raises `LogError` where that does not help; then none of them was written.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            log.commit(records, {})
            break
        except CommitAborted:
            if attempt == _ATTEMPTS:
                raise
    return len(records)


def finish(
    entries: Iterable[Entry], labels: dict[Label, Label], *, number_ids: bool, op: str = "insert"
) -> Iterator[Entry]:
    """Rename labels, number examples, say what is to be done with those that do not say it themselves.

    Ids are 0, 1, 2, ..., bad lines counted, so that they stay put.
    """
    for number, entry in enumerate(entries):
        if isinstance(entry, BadLine) or not (labels or number_ids or op != "insert"):
            yield entry
            continue
        fields: dict[str, Any] = {"id": number} if number_ids else {}
        fields |= entry.fields
        if labels and isinstance(fields.get("y"), int | float | str):
            fields["y"] = labels.get(fields["y"], fields["y"])
        yield replace(entry, fields=fields if "op" in fields else as_op(fields, op))


def chunks(entries: Iterable[Entry], size: Callable[[], int]) -> Iterator[list[Entry]]:
    """Cut a file into chunks of bounded memory; `size` tells how many bytes were read so far."""
    chunk: list[Entry] = []
    start = size()
    for entry in entries:
        chunk.append(entry)
        if len(chunk) >= CHUNK_EVENTS or size() - start >= CHUNK_BYTES:
            yield chunk
            chunk, start = [], size()
    if chunk:
        yield chunk


def make_records(entries: Sequence[Entry], form: Form, now: int) -> Chunk:
    """Return the records of a chunk, and the lines that are no events.

    Parameters
    ----------
    entries
        What a reader yielded.
    form
        How they become records.
    now
        ms since the epoch: the record's timestamp where the event has no time.
    """
    examples = [entry for entry in entries if isinstance(entry, Example)]
    bad = [entry for entry in entries if isinstance(entry, BadLine)]
    judged, refused = _judge(examples, form, now)
    bad = sorted([*bad, *refused.values()], key=lambda each: each.line)
    good = [(example, value) for index, (example, value) in enumerate(judged) if index not in refused]
    if form.batch is None:
        records = [_record([example], value, form, now) for example, value in good]
    else:
        batches = _batches(good, form, form.batch)
        records = [_record(rows, _columns(rows), form, now) for rows in batches]
    return Chunk(records, len(good), bad)


def judged(entries: Iterable[Entry], size: Callable[[], int]) -> Iterator[Entry]:
    """Yield entries as they would be published: an example that a worker would refuse is a bad line."""
    for chunk in chunks(entries, size):
        bad = {each.line: each for each in make_records(chunk, Form("", 1, "k"), now=LATEST).bad}
        for entry in chunk:
            yield bad.get(entry.line, entry)


def _judge(
    examples: Sequence[Example], form: Form, now: int
) -> tuple[list[tuple[Example, bytes]], dict[int, BadLine]]:
    """Return each example with its bytes, and by index those that a worker, or the form, would refuse."""
    refused = {}
    values: list[bytes] = []
    for index, example in enumerate(examples):
        value = b""
        try:
            value = encode_event(**example.fields, packed=form.packed)
        except ValueError as error:
            refused[index] = BadLine(example.line, str(error))
        values.append(value)
    timestamps = np.array([_timestamp(example, now) for example in examples], np.int64)
    keys = [_key(example, form) for example in examples]
    _, faults = decode_batch(values, timestamps, Bounds(), keys)
    for fault in faults:
        refused.setdefault(fault.record, BadLine(examples[fault.record].line, fault.detail))
    return list(zip(examples, values, strict=True)), refused


def _key(example: Example, form: Form) -> bytes:
    return (form.key if example.key is None else example.key).encode()


def _timestamp(example: Example, now: int) -> int:
    ts = example.fields.get("ts")
    return ts if isinstance(ts, int) and 0 < ts <= LATEST else now


def _batches(judged: Sequence[tuple[Example, bytes]], form: Form, limit: int) -> Iterator[list[Example]]:
    """Yield runs of examples that can share a record, each key's in their order."""
    keys: dict[bytes, list[tuple[Example, bytes]]] = {}
    for example, value in judged:
        keys.setdefault(_key(example, form), []).append((example, value))
    for of_key in keys.values():
        for _, alike in groupby(of_key, lambda each: _shape(each[0])):
            run: list[Example] = []
            size = 0
            for example, value in alike:
                if run and (len(run) == limit or size + len(value) > BATCH_BYTES):
                    yield run
                    run, size = [], 0
                run.append(example)
                size += len(value)
            yield run


def _shape(example: Example) -> tuple[Any, ...]:
    """Return what the rows of one record have in common: the op, the columns, and the kind of features."""
    fields = example.fields
    x = fields.get("x")
    features = x["i"] if isinstance(x, dict) and is_packed(x) else x
    first = next(iter(features), None) if features else None
    return fields.get("op", "insert"), frozenset(fields) - {"op"}, isinstance(first, str)


def _columns(examples: Sequence[Example]) -> bytes:
    fields = examples[0].fields
    columns = {name: [example.fields[name] for example in examples] for name in fields if name != "op"}
    return encode_batch(
        columns.get("x"),
        columns.get("y"),
        op=fields.get("op", "insert"),
        ids=columns.get("id"),
        ws=columns.get("w"),
        ts=columns.get("ts"),
    )


def _record(examples: Sequence[Example], value: bytes, form: Form, now: int) -> OutRecord:
    key = _key(examples[0], form)
    # A time far beyond its record's timestamp would be refused, so the latest is the record's.
    timestamp = max(_timestamp(example, now) for example in examples)
    return OutRecord(form.topic, form.partitioner(key, form.partitions), key, value, (), timestamp)
