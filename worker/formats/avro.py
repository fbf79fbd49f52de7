"""Events as Avro, with the writer's schema from a registry.

fastavro takes some bytes that no writer makes: of a map's key that comes twice it keeps the last value, and it
counts a negative index of an enum or a union from the end. What they are read as is always the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import fastavro

from worker.codec.bounds import Bounds
from worker.codec.reasons import Reason
from worker.codec.survey import RefusedError
from worker.formats.framing import FRAME, schema_id, schema_ids
from worker.formats.port import Refused, Shape, malformed, packed, read_each
from worker.formats.schema_faults import UnusableError, unknown_schema, unusable_schema
from worker.formats.schemas import Schema, Schemas
from worker.log.port import LogError

Definitions: TypeAlias = dict[str, Any]
Decoder: TypeAlias = Callable[[BytesIO], Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_MOST_TYPES = 100_000  # in a schema
_DEEPEST = 200  # levels of its JSON


class AvroReader:
    """Reads Avro.

    Parameters
    ----------
    shape : callable
        Makes an event of a document.
    schemas : Schemas
        What records are written with.
    reader_schema : Path, optional
        A file with what they are read as: fields that a record lacks have their defaults, others are left out.
        Without it, a record is read as it was written.
    """

    def __init__(self, shape: Shape, schemas: Schemas, reader_schema: Path | None = None) -> None:
        self._shape = shape
        self._schemas = schemas
        self._reader = None if reader_schema is None else _loaded(reader_schema)
        self._decoders: dict[int, Decoder | Refused] = {}

    def read(self, values: Sequence[bytes | None], bounds: Bounds) -> list[bytes | Refused | None]:
        """Return the msgpack event of each value, or why there is none."""
        return read_each(values, bounds, self._event)

    def schemas(self, values: Sequence[bytes | None]) -> Collection[int]:
        """Return the ids of the schemas that these values are written with."""
        return schema_ids(values)

    def _event(self, value: bytes) -> bytes:
        number = schema_id(value)
        decoder = self._decoders.get(number)
        if decoder is None:
            decoder = self._decoder(number)
        if isinstance(decoder, Refused):
            raise RefusedError(*decoder)
        stream = BytesIO(value)
        stream.seek(FRAME)
        try:
            document = decoder(stream)
        except MemoryError:
            raise
        except Exception:  # fastavro raises whatever its reading of wrong bytes meets
            raise _not_avro(number) from None
        if stream.tell() != len(value):
            raise _not_avro(number)
        if not isinstance(document, dict):
            raise RefusedError(
                Reason.NOT_A_MAP,
                f"expected a record or a map as schema {number}, found another type; send a record",
            )
        return packed(self._shape(document))

    def _decoder(self, number: int) -> Decoder | Refused:
        schema = self._schemas[number]
        if schema is None:  # not kept: what the registry does not know is bounded elsewhere
            return unknown_schema(number)
        decoder: Decoder | Refused
        try:
            decoder = _compiled(schema, self._reader)
        except UnusableError as error:
            decoder = unusable_schema(number, str(error))
        self._decoders[number] = decoder
        return decoder


def _not_avro(number: int) -> RefusedError:
    return malformed(
        f"one Avro value of schema {number}", "other bytes", "write it with the schema whose id it carries"
    )


def _loaded(path: Path) -> Any:
    """Return the schema of a file, as plain JSON."""
    try:
        schema = json.loads(path.read_bytes())
        _check(fastavro.parse_schema(schema), {}, builds=True)
    except UnusableError as error:
        raise LogError(f"{path}: expected {error} (reader_schema)") from error
    except Exception as error:
        raise LogError(
            f"{path}: expected an Avro schema (reader_schema), got an error ({type(error).__name__}); correct it"
        ) from error
    return schema


def _compiled(schema: Schema, reader: Any) -> Decoder:
    if schema.kind != "AVRO":
        raise UnusableError(f"an Avro schema, found {schema.kind}; set the topic's format to what it is")
    if any(map(_is_deep, (schema.text, *(text for _, text in schema.references)))):
        raise UnusableError(f"an Avro schema at most {_DEEPEST} levels deep, found a deeper one; flatten it")
    definitions: Definitions = {}
    try:
        for _, text in schema.references:
            fastavro.parse_schema(json.loads(text), definitions)
        writer = fastavro.parse_schema(json.loads(schema.text), definitions)
    except Exception:  # whatever the text makes fastavro meet
        raise UnusableError("an Avro schema, found another text; register it anew") from None
    _check(writer, definitions, builds=reader is None)
    read_as = None if reader is None else fastavro.parse_schema(reader)
    is_plain = not schema.references and _is_plain(json.loads(schema.text) if reader is None else reader)

    def decode(stream: BytesIO) -> Any:
        document = fastavro.schemaless_reader(stream, writer, read_as)
        return document if is_plain else _plain(document)

    return decode


def _is_deep(text: str) -> bool:
    """Return whether lists and objects go deeper than any schema needs, and than libraries bear."""
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", text):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > _DEEPEST:
            return True
    return False


def _is_plain(schema: Any) -> bool:
    """Return whether values of a schema are plain, or None in the record itself."""
    text = json.dumps(schema)
    return "logicalType" not in text and text.count('"record"') <= 1


class _Walk:
    """A walk over a schema, which refuses those that make few bytes into endlessly many values."""

    def __init__(self, definitions: Definitions, builds: bool) -> None:
        self.definitions = dict(definitions)
        self.builds = builds
        self.open: set[str] = set()
        self.types = 0

    def takes_nothing(self, schema: Any, inside: bool) -> bool:
        """Return whether a value of this type may have no bytes; `inside` of a list or map it must have some."""
        self.types += 1
        if self.types > _MOST_TYPES:
            raise UnusableError(f"an Avro schema of at most {_MOST_TYPES:,} types; name a smaller one")
        nothing = self._of(schema, inside)
        if nothing and inside:
            raise UnusableError("an Avro schema whose lists hold no empty values; leave out what is always null")
        return nothing

    def _of(self, schema: Any, inside: bool) -> bool:
        if isinstance(schema, list):
            for each in schema:
                if each != "null":
                    self.takes_nothing(each, inside)
            return False
        if isinstance(schema, str):
            return self._named(schema, inside)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema, inside)
        if kind in ("array", "map"):
            items = schema["items" if kind == "array" else "values"]
            if self.builds and self._is_container(items):
                raise UnusableError(
                    "an Avro schema whose lists hold plain values, found lists or records in them; leave the "
                    "field out with a reader_schema"
                )
            self.takes_nothing(items, inside=True)
            return False
        if kind == "fixed":
            return bool(schema["size"] == 0)
        return False if kind == "enum" else self.takes_nothing(kind, inside)

    def _named(self, name: str, inside: bool) -> bool:
        if name not in self.definitions:
            return name == "null"
        return self.takes_nothing(self.definitions[name], inside)

    def _record(self, schema: Any, inside: bool) -> bool:
        name = schema["name"]
        if name in self.open:
            raise UnusableError(f"an Avro schema that does not hold itself, found {name[:40]!r}; flatten it")
        self.definitions[name] = schema
        self.open.add(name)
        empty = [self.takes_nothing(field["type"], inside) for field in schema["fields"]]  # looks at every field
        self.open.discard(name)
        return all(empty)

    def _is_container(self, schema: Any) -> bool:
        if isinstance(schema, list):
            return any(map(self._is_container, schema))
        if isinstance(schema, str):
            return schema in self.definitions and self._is_container(self.definitions[schema])
        kind = schema["type"]
        return kind in ("record", "error", "array", "map") or (
            not isinstance(kind, str) and self._is_container(kind)
        )


def _check(schema: Any, definitions: Definitions, *, builds: bool) -> None:
    """Raise where a schema holds itself, or where lists of it could be longer than their bytes tell."""
    _Walk(definitions, builds).takes_nothing(schema, inside=False)


def _plain(value: Any) -> Any:
    """Return a value of fastavro's as one of a document: times in ms, decimals as floats, no null in a record."""
    match value:
        case dict():
            return {name: _plain(content) for name, content in value.items() if content is not None}
        case datetime():
            return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // _MS
        case date():
            return (datetime(value.year, value.month, value.day, tzinfo=UTC) - _EPOCH) // _MS
        case time():
            return (
                3_600_000 * value.hour + 60_000 * value.minute + 1_000 * value.second + value.microsecond // 1_000
            )
        case Decimal():
            return float(value)
        case UUID():
            return str(value)
        case list():
            return [_plain(each) for each in value]
    return value
