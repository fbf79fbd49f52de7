"""Events as Protobuf, with the writer's schema from a registry.

A schema is the text of a .proto file. protoc, which grpcio-tools bring, makes descriptors of it, in a process of
its own: once for each schema. Where a registry keeps what producers in Python sent, it is a descriptor in base64.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeAlias

import google.protobuf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2, wrappers_pb2
from google.protobuf.message import DecodeError

from worker.codec.bounds import Bounds
from worker.codec.reasons import Reason
from worker.codec.survey import DEPTH, RefusedError
from worker.formats.framing import message_place, schema_id, schema_ids
from worker.formats.port import Document, Refused, Shape, malformed, packed, read_each
from worker.formats.schema_faults import UnusableError, unknown_schema, unusable_schema
from worker.formats.schemas import Schema, Schemas

Place: TypeAlias = tuple[int, ...]

_MAIN = "main.proto"
_SECONDS = 60.0  # that protoc may take
_MESSAGE, _ENUM = 11, 14  # types of a field, as descriptors have them
_TIMESTAMP = "google.protobuf.Timestamp"
_WELL_KNOWN = (timestamp_pb2, wrappers_pb2)  # imported so that the default pool has them
_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


class ProtobufReader:
    """Reads Protobuf.

    Parameters
    ----------
    shape : callable
        Makes an event of a document.
    schemas : Schemas
        What records are written with.
    label : str, optional
        The column whose value counts even where it is 0 and the schema does not tell 0 from none.
    is_event : bool
        Whether a record is an event: then what is set of a oneof goes by the oneof's name.
    """

    def __init__(
        self, shape: Shape, schemas: Schemas, label: str | None = None, *, is_event: bool = False
    ) -> None:
        self._shape = shape
        self._schemas = schemas
        self._label = label
        self._is_event = is_event
        self._files: dict[int, _File | Refused] = {}
        self._messages: dict[tuple[int, Place], _Message | Refused] = {}

    def read(self, values: Sequence[bytes | None], bounds: Bounds) -> list[bytes | Refused | None]:
        """Return the msgpack event of each value, or why there is none."""
        return read_each(values, bounds, self._event)

    def schemas(self, values: Sequence[bytes | None]) -> Collection[int]:
        """Return the ids of the schemas that these values are written with."""
        return schema_ids(values)

    def _event(self, value: bytes) -> bytes:
        number = schema_id(value)
        place, start = message_place(value)
        message = self._messages.get((number, place))
        if message is None:
            message = self._message(number, place)
        if isinstance(message, Refused):
            raise RefusedError(*message)
        try:
            parsed = message.parse(value[start:])
        except DecodeError:
            raise malformed(
                f"one Protobuf message of schema {number}",
                "other bytes",
                "write it with the schema whose id it carries",
            ) from None
        return packed(self._shape(message.document(parsed)))

    def _message(self, number: int, place: Place) -> _Message | Refused:
        file = self._files.get(number)
        if file is None:
            schema = self._schemas[number]
            if schema is None:
                return unknown_schema(number)
            try:
                file = _compiled(schema)
            except UnusableError as error:
                file = unusable_schema(number, str(error))
            self._files[number] = file
        if isinstance(file, Refused):
            return file
        descriptor = file.at(place)
        if descriptor is None:
            found = ".".join(map(str, place))
            return Refused(
                Reason.MALFORMED,
                f"expected the place of a message in schema {number}, found {found}; send such a place",
            )
        message = self._messages[number, place] = _Message(descriptor, self._label, self._is_event)
        return message


class _File:
    """A compiled .proto file."""

    def __init__(self, files: Sequence[Any]) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        for file in files:
            self._pool.Add(file)
        self._main = files[-1]

    def at(self, place: Place) -> Any:
        """Return the descriptor of the message at a place, None where there is none."""
        messages, name = self._main.message_type, self._main.package
        for index in place:
            if not 0 <= index < len(messages):
                return None
            name = f"{name}.{messages[index].name}" if name else messages[index].name
            messages = messages[index].nested_type
        return self._pool.FindMessageTypeByName(name)


class _Label(NamedTuple):
    """A label whose value 0 is not written."""

    name: str
    default: Any


class _Message:
    """One type of message, and its documents."""

    def __init__(self, descriptor: Any, label: str | None, is_event: bool) -> None:
        self.parse: Callable[[bytes], Any] = message_factory.GetMessageClass(descriptor).FromString
        self._is_event = is_event
        field = descriptor.fields_by_name.get(label)
        self._label = None
        if field is not None and not field.has_presence and not _is_repeated(field):
            self._label = _Label(field.name, _plain(field, field.default_value, DEPTH))

    def document(self, message: Any) -> Document:
        """Return what is set in a message, and its label in any case."""
        document = _document(message, DEPTH, by_oneof=self._is_event)
        if self._label is not None:
            document.setdefault(*self._label)
        return document


def _document(message: Any, deeper: int, *, by_oneof: bool = False) -> Document:
    document: Document = {}
    for field, content in message.ListFields():
        oneof = field.containing_oneof if by_oneof else None
        name = field.name if oneof is None or len(oneof.fields) == 1 else oneof.name
        document[name] = (
            _repeated(field, content, deeper) if _is_repeated(field) else _plain(field, content, deeper)
        )
    return document


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _repeated(field: Any, content: Any, deeper: int) -> Any:
    inner = field.message_type
    if inner is None:
        return [_plain(field, each, deeper) for each in content] if field.type == _ENUM else list(content)
    if not inner.GetOptions().map_entry:
        return content  # not built: no feature is made of messages in a list, but the column may be ignored
    value = inner.fields_by_name["value"]
    if value.type == _MESSAGE:
        return content
    return {str(name): _plain(value, each, deeper) for name, each in content.items()}


def _plain(field: Any, content: Any, deeper: int) -> Any:
    if field.type == _ENUM:
        known = field.enum_type.values_by_number.get(content)
        return content if known is None else known.name
    if field.type != _MESSAGE:
        return content
    name = field.message_type.full_name
    if name == _TIMESTAMP:
        return 1_000 * content.seconds + content.nanos // 1_000_000
    if name in _WRAPPERS:
        return content.value
    if not deeper:
        raise RefusedError(
            Reason.TOO_DEEP, f"expected at most {DEPTH} messages inside each other, found more; flatten the record"
        )
    return _document(content, deeper - 1)


@lru_cache(maxsize=256)  # each partition has a reader of its own, and protoc takes 0.1 s
def _compiled(schema: Schema) -> _File:
    if schema.kind != "PROTOBUF":
        raise UnusableError(f"a Protobuf schema, found {schema.kind}; set the topic's format to what it is")
    main = _described(schema.text)
    try:
        if main is not None:
            return _File([*_imported(main, schema.references, {}), main])
        return _File(descriptor_pb2.FileDescriptorSet.FromString(_protoc(schema)).file)
    except (TypeError, KeyError, DecodeError):
        raise UnusableError("a Protobuf schema with all that it imports, found less; register it anew") from None


def _described(text: str) -> Any:
    """Return the descriptor that a text is in base64, None where it is something else."""
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return None
    return file if file.message_type else None


def _imported(file: Any, references: Sequence[tuple[str, str]], found: dict[str, Any]) -> list[Any]:
    """Return the descriptors that one imports, each after those that it imports itself."""
    texts = dict(references)
    for name in file.dependency:
        if name in found:
            continue
        found[name] = None  # seen
        if name in texts:
            imported = _described(texts[name])
            if imported is None:
                raise KeyError(name)
            imported.name = name
        else:
            imported = descriptor_pb2.FileDescriptorProto()
            descriptor_pool.Default().FindFileByName(name).CopyToProto(imported)
        _imported(imported, references, found)
        found[name] = found.pop(name) or imported  # behind its own
    return [each for each in found.values() if each is not None]


def _protoc(schema: Schema) -> bytes:
    """Return the descriptors of a text and of all that it imports, itself the last one."""
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        for name, text in (*schema.references, (_MAIN, schema.text)):
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise UnusableError(
                    "a Protobuf schema whose imports are relative paths, found others; rename them"
                )
            file = Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        return _run_protoc(Path(folder))


def _run_protoc(folder: Path) -> bytes:
    packages = Path(google.protobuf.__file__).parents[
        2
    ]  # where google/type and the like are, if they are installed
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{packages}", "--include_imports"]
    try:
        subprocess.run(
            [*command, "--descriptor_set_out=set", _MAIN],
            cwd=folder,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
        )
        return (folder / "set").read_bytes()
    except (subprocess.SubprocessError, OSError):
        raise UnusableError(
            "a Protobuf schema that protoc compiles, found another text; register it anew"
        ) from None
