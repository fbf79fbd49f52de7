"""The schemas of a recording: kept beside the records, so that a replay needs no registry.

They are in the topic INPUT.schemas of the recording, one record for each id. An id that the registry did not know
is kept, too: a replay refuses what the worker refused, whatever the registry learns later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

import msgpack

from worker.formats.framing import schema_ids
from worker.formats.registry import Registry
from worker.formats.schemas import Schema, Schemas
from worker.log.embedded import EmbeddedLog
from worker.log.port import Log, OutRecord, TopicPartition
from worker.settings import Settings
from worker.settings.topics import WITH_SCHEMAS

_BATCH = 10_000  # records at a time


def schemas_of(log: Log, settings: Settings, notify: Callable[[str], None]) -> Schemas:
    """Return the schemas that a worker reads records with: those that the log keeps, others from the registry.

    Raises `LogError` where the client of the registry is not installed or does not take its properties.
    """
    inputs = [topic for topic in settings.routes if settings.topic(topic).format in WITH_SCHEMAS]
    if not inputs or settings.registry is None:
        return Schemas()
    known: dict[int, Schema | None] = {}
    if settings.log.embedded is not None:
        for topic in inputs:
            known |= kept_schemas(log, topic)
    return Schemas(Registry(settings.registry).fetch, known, notify)


def kept_schemas(log: Log, topic: str) -> dict[int, Schema | None]:
    """Return the schemas that a log keeps for an input."""
    place = _place(topic)
    if log.partitions(place.topic) is None:
        return {}
    known: dict[int, Schema | None] = {}
    low, high = log.watermarks(place)
    with closing(log.reader()) as reader:
        reader.assign({place: low})
        while low < high:
            for records in reader.poll(_BATCH, 1.0):
                low = records.next_offset
                for key, value in zip(records.keys, records.values, strict=True):
                    known[int.from_bytes(key or b"", "big")] = _unpacked(value or b"\xc0")
    return known


def lacking_schemas(recording: EmbeddedLog, topic: str) -> set[int]:
    """Return the ids of the schemas that the records of an input are written with, and that are not kept yet."""
    lacking: set[int] = set()
    for number in range(recording.partitions(topic) or 0):
        source = TopicPartition(topic, number)
        at, high = recording.watermarks(source)
        while at < high:
            records = recording.read(source, at, _BATCH)
            lacking |= schema_ids(records.values)
            at = records.next_offset if records.keys else high
    return lacking.difference(kept_schemas(recording, topic))


def keep(recording: EmbeddedLog, topic: str, schemas: Mapping[int, Schema | None]) -> None:
    """Keep schemas for an input."""
    place = _place(topic)
    recording.create_topic(place.topic, 1, compacted=True)
    now = max(1, int(time.time() * 1000))
    recording.append(_records(place, schemas, now))


def _records(place: TopicPartition, schemas: Mapping[int, Schema | None], now: int) -> Iterable[OutRecord]:
    for number, schema in sorted(schemas.items()):
        yield OutRecord(*place, number.to_bytes(4, "big"), msgpack.packb(schema), (), now)


def _unpacked(value: bytes) -> Schema | None:
    content = msgpack.unpackb(value)
    if content is None:
        return None
    kind, text, references = content
    return Schema(kind, text, tuple((name, each) for name, each in references))


def _place(topic: str) -> TopicPartition:
    return TopicPartition(f"{topic}.schemas", 0)
