"""The formats of events on topics: record values to the values of msgpack events, which one decoder reads.

A format is one file with a `Reader`, and one case in `reader_of`. A reader turns a batch of values into msgpack
events, and says why one cannot be: then its record is a dead letter with the bytes that came. What an event may
hold is judged by the decoder (worker/codec), whatever the format.
"""

from __future__ import annotations

from worker.formats.columns import to_event
from worker.formats.json_events import JsonReader
from worker.formats.port import Document, Reader, Refused, Shape, as_document
from worker.formats.schemas import NO_SCHEMAS, Schemas
from worker.settings.topics import TopicSettings

__all__ = ["NO_SCHEMAS", "Document", "Reader", "Refused", "Schemas", "reader_of"]


def reader_of(topic: TopicSettings, schemas: Schemas) -> Reader | None:
    """Return what reads the records of a topic; None where they are msgpack events already."""
    shape: Shape = as_document if topic.columns is None else to_event(topic.columns)
    match topic.format:
        case "json":
            return JsonReader(shape)
        case "avro":
            from worker.formats.avro import AvroReader  # loads what not everybody has installed

            return AvroReader(shape, schemas, topic.reader_schema)
        case "protobuf":
            from worker.formats.protobuf import ProtobufReader

            label = None if topic.columns is None else topic.columns.label
            return ProtobufReader(shape, schemas, label, is_event=topic.columns is None)
    return None
