"""Events as Avro and Protobuf: what is read, what is refused, and what no bytes can do."""

from __future__ import annotations

import base64
import json
import re
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hostile import HOSTILE, TIMESTAMP
from tests.support.other_formats import AVRO, AVRO_EVENT, PROTOBUF, PROTOBUF_EVENT, avro, known, written
from worker.codec.bounds import Bounds
from worker.codec.reasons import Reason
from worker.codec.reference import Event, Fault, decode
from worker.formats import Refused, reader_of
from worker.formats.framing import frame, message_place, schema_id
from worker.formats.schemas import Schema, Schemas
from worker.log.port import LogError
from worker.settings.topics import ColumnSettings, TopicSettings

BOUNDS = Bounds()
FORMATS = ("avro", "protobuf")
EVENTS: list[dict[str, Any]] = [
    {"x": [1, 2, 70_000], "y": 1},
    {"x": ["free", "Größe", ""], "y": "spam", "id": "message 7", "w": 0.5, "ts": TIMESTAMP},
    {"x": {"i": [3, 4], "v": [0.5, -1.25]}, "y": 1.0, "id": -(1 << 63)},
    {"x": [], "y": 0},
    {"op": "predict", "x": ["a"]},
    {"op": "delete", "id": 7},
    {"op": "delete", "x": [1], "y": -5},
]


def _read(value: bytes, topic: TopicSettings, schemas: Schemas | None = None) -> bytes | Refused:
    reader = reader_of(topic, schemas or known())
    assert reader is not None
    (event,) = reader.read([value], BOUNDS)
    assert event is not None
    return event


def _fields(value: bytes, topic: TopicSettings, schemas: Schemas | None = None) -> Any:
    event = _read(value, topic, schemas)
    assert isinstance(event, bytes), event
    return msgpack.unpackb(event)


def _reason(value: bytes, topic: TopicSettings, schemas: Schemas | None = None) -> Reason:
    event = _read(value, topic, schemas)
    if isinstance(event, bytes):
        (event,) = decode(event, TIMESTAMP, BOUNDS)  # type: ignore[assignment]
    assert isinstance(event, Refused | Fault), event
    assert event.detail.startswith("expected")
    assert len(event.detail) <= 400
    return event.reason


def _topic(format: Any, **more: Any) -> TopicSettings:
    return TopicSettings(format=format, **more)


def _of(schema: Any, number: int = 9, kind: str = "AVRO", *references: tuple[str, str]) -> Schemas:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return Schemas(known={number: Schema(kind, text, references)})


def _record(**types: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "R",
        "fields": [{"name": name, "type": kind} for name, kind in types.items()],
    }


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_events_mean_what_msgpack_events_mean(event: dict[str, Any], format: str) -> None:
    """Each event, written with the schemas that users find, is read as the msgpack event."""
    found = _read(written(event, format), _topic(format))
    assert isinstance(found, bytes)
    (outcome,) = decode(found, TIMESTAMP, BOUNDS)
    assert isinstance(outcome, Event)
    assert [outcome] == decode(msgpack.packb(event), TIMESTAMP, BOUNDS)


def _writable(value: bytes) -> dict[str, Any] | None:
    """Return a bad event that the schemas can write, None for others."""
    try:
        event = msgpack.unpackb(value, strict_map_key=False)
        text = json.dumps(event)  # no bytes
    except (ValueError, TypeError):
        return None
    if "true" in text or "false" in text:
        return None
    if not isinstance(event, dict) or not event.keys() <= {"op", "id", "x", "y", "w", "ts"}:
        return None
    kinds: dict[str, Any] = {
        "op": str,
        "id": (int, str),
        "x": (list, dict),
        "y": (int, float, str),
        "w": (int, float),
        "ts": int,
    }
    if any(isinstance(each, bool) or not isinstance(each, kinds[name]) for name, each in event.items()):
        return None
    return event


# What the schemas write as another event.
_UNWRITABLE = re.compile("repeated key|v without i|packed|as v$|beyond int64|uint64")


@pytest.mark.parametrize("format", FORMATS)
def test_bad_events_have_the_reasons_of_msgpack_events(format: str) -> None:
    """What the schemas can write of the hostile list is refused for the same reason, whatever wrote it."""
    seen = set()
    for name, value, reason in HOSTILE:
        event = _writable(value)
        if event is None or reason == Reason.DUPLICATE_FIELD or _UNWRITABLE.search(name):
            continue
        try:
            sent = written(event, format)
        except (ValueError, TypeError, OverflowError, AttributeError, KeyError, IndexError):
            continue  # a type that the schema does not have
        assert _reason(sent, _topic(format)) == reason, name
        seen.add(reason)
    assert len(seen) >= 10, seen


@pytest.mark.parametrize("format", FORMATS)
def test_values_that_are_cut_or_go_on_are_malformed(format: str) -> None:
    """A value is read whole, and nothing follows it."""
    whole = written({"x": ["abc", "d"], "y": "spam", "id": 7}, format)
    assert isinstance(_read(whole, _topic(format)), bytes)
    cut = {_reason(whole[:size], _topic(format)) for size in range(len(whole))}
    # A Protobuf message that ends behind a field is whole, and may lack the label.
    assert cut == {Reason.MALFORMED} | (
        {Reason.MISSING_FIELD, Reason.MISSING_LABEL} if format == "protobuf" else set()
    )
    assert _reason(whole + b"\0", _topic(format)) == Reason.MALFORMED


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_wrong_bytes_are_refused_or_read_as_other_events(format: str, data: st.DataObject) -> None:
    """Whatever bytes come, they are an event or a refusal, and the same one each time."""
    value = bytearray(written({"x": ["abc", "d"], "y": "spam", "id": 7, "ts": 5}, format))
    for _ in range(data.draw(st.integers(1, 4))):
        value[data.draw(st.integers(5, len(value) - 1))] = data.draw(st.integers(0, 255))
    first, again = (_read(bytes(value), _topic(format)) for _ in range(2))
    assert first == again
    assert first is not None


@pytest.mark.parametrize("format", FORMATS)
def test_what_has_no_frame_is_malformed(format: str) -> None:
    """A record that no serializer of a registry wrote says so."""
    for value in (b"", b"\0", b"\0\0\0\0", b"\1\0\0\0\1abc", b"{}", msgpack.packb({"x": [1], "y": 1})):
        assert _reason(value, _topic(format)) == Reason.MALFORMED


@pytest.mark.parametrize("format", FORMATS)
def test_unknown_and_unusable_schemas_are_told_apart(format: str) -> None:
    """An id that the registry does not have, one of another format, one that is no schema: each has its reason."""
    schemas = Schemas(known={1: None, 2: Schema("JSON", "{}"), 3: Schema(format.upper(), "no schema")})
    frames = {number: frame(number, [0] if format == "protobuf" else None) + b"abc" for number in (1, 2, 3)}
    assert _reason(frames[1], _topic(format), schemas) == Reason.UNKNOWN_SCHEMA
    assert _reason(frames[2], _topic(format), schemas) == Reason.UNUSABLE_SCHEMA
    assert _reason(frames[3], _topic(format), schemas) == Reason.UNUSABLE_SCHEMA


# --- Avro


def test_an_evolved_avro_schema_is_read_with_the_defaults_of_the_reader(tmp_path: Path) -> None:
    """A field that older records lack has the reader's default, and one that the reader lacks is left out."""
    reader = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "clicked", "type": "int"},
            {"name": "age", "type": "double"},
            {"name": "country", "type": "string", "default": "unknown"},
        ],
    }
    (tmp_path / "reader.avsc").write_text(json.dumps(reader))
    old, new = (
        _record(clicked="int", age="int"),
        _record(clicked="int", age="double", country="string", more="int"),
    )
    schemas = Schemas(known={1: Schema("AVRO", json.dumps(old)), 2: Schema("AVRO", json.dumps(new))})
    topic = _topic("avro", columns=ColumnSettings(label="clicked"), reader_schema=tmp_path / "reader.avsc")
    first = avro(old, {"clicked": 1, "age": 3}, 1)
    second = avro(new, {"clicked": 0, "age": 4.5, "country": "nz", "more": 8}, 2)
    assert _fields(first, topic, schemas) == {"x": {"age": 3.0, "country=unknown": 1}, "y": 1}
    assert _fields(second, topic, schemas) == {"x": {"age": 4.5, "country=nz": 1}, "y": 0}


def test_logical_types_are_times_and_numbers() -> None:
    """Times are ms, decimals numbers, uuids texts."""
    schema = _record(
        at={"type": "long", "logicalType": "timestamp-micros"},
        day={"type": "int", "logicalType": "date"},
        price={"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        who={"type": "string", "logicalType": "uuid"},
        label="boolean",
    )
    when = datetime(2024, 5, 1, 12, 0, 0, 1_500, UTC)
    record = {
        "at": when,
        "day": date(1970, 1, 2),
        "price": Decimal("12.30"),
        "who": UUID("12345678-1234-5678-1234-567812345678"),
        "label": True,
    }
    columns = ColumnSettings(label="label", time="at", id="who")
    found = _fields(avro(schema, record, 9), _topic("avro", columns=columns), _of(schema))
    assert found == {
        "x": {"day": 86_400_000, "price": 12.3},
        "y": 1,
        "ts": 1_714_564_800_001,
        "id": "12345678-1234-5678-1234-567812345678",
    }


def test_references_of_an_avro_schema_are_followed() -> None:
    """A type that another schema of the registry defines is known."""
    inner = {"type": "record", "name": "other.Inner", "fields": [{"name": "a", "type": "int"}]}
    outer = _record(inner="other.Inner", label="int")
    named: dict[str, Any] = {}
    fastavro.parse_schema(inner, named)
    value = avro(
        {**outer, "fields": [{"name": "inner", "type": inner}, outer["fields"][1]]},
        {"inner": {"a": 5}, "label": 1},
        9,
    )
    schemas = _of(outer, 9, "AVRO", ("other.Inner", json.dumps(inner)))
    found = _fields(value, _topic("avro", columns=ColumnSettings(label="label")), schemas)
    assert found == {"x": {"inner.a": 5}, "y": 1}


LINKED = _record(next=["null", "R"], value="int")
UNUSABLE = {
    "a record that holds itself": LINKED,
    "a list of nothing": _record(x={"type": "array", "items": "null"}),
    "a list of empty records": _record(
        x={"type": "array", "items": {"type": "record", "name": "E", "fields": []}}
    ),
    "a list of empty bytes": _record(x={"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}),
    "a map of nothing": _record(x={"type": "map", "values": "null"}),
    "a list of lists": _record(x={"type": "array", "items": {"type": "array", "items": "int"}}),
    "a list of maps": _record(x={"type": "array", "items": ["null", {"type": "map", "values": "int"}]}),
    "a list of records": _record(x={"type": "array", "items": _record(y="int") | {"name": "I"}}),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_schemas_that_make_much_of_few_bytes_are_not_used(name: str) -> None:
    """A value may not be deeper or longer than its bytes: such schemas are refused before a byte is read."""
    many = frame(9) + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(100_000)
    deep = frame(9) + b"\x02" * 3_000_000
    started = time.perf_counter()
    assert _reason(many, _topic("avro"), _of(UNUSABLE[name])) == Reason.UNUSABLE_SCHEMA
    assert _reason(deep, _topic("avro"), _of(UNUSABLE[name])) == Reason.UNUSABLE_SCHEMA
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("depth", [300, 100_000])
def test_a_deep_schema_is_not_used(depth: int) -> None:
    """Libraries walk over schemas by recursion, which a deep one would make end the process."""
    text = '{"type":"array","items":' * depth + '"int"' + "}" * depth
    assert _reason(frame(9) + bytes(10), _topic("avro"), _of(text)) == Reason.UNUSABLE_SCHEMA


def test_a_schema_of_schemas_of_schemas_is_not_used() -> None:
    """Types that double at every step are seen without being written out."""
    fields: Any = [{"name": "a", "type": "int"}]
    names: list[tuple[str, str]] = []
    for step in range(30):
        names.append((f"T{step}", json.dumps({"type": "record", "name": f"T{step}", "fields": fields})))
        fields = [{"name": "a", "type": f"T{step}"}, {"name": "b", "type": f"T{step}"}]
    schemas = _of({"type": "record", "name": "R", "fields": fields}, 9, "AVRO", *names)
    assert _reason(frame(9) + bytes(10), _topic("avro"), schemas) == Reason.UNUSABLE_SCHEMA


def test_a_list_of_records_can_be_left_out_with_a_reader_schema(tmp_path: Path) -> None:
    """What no feature is made of need not be built."""
    (tmp_path / "reader.avsc").write_text(json.dumps(_record(a="int", label="int")))
    schema = _record(items={"type": "array", "items": _record(b="int") | {"name": "Item"}}, a="int", label="int")
    value = avro(schema, {"items": [{"b": 1}, {"b": 2}], "a": 5, "label": 0}, 9)
    topic = _topic("avro", columns=ColumnSettings(label="label"), reader_schema=tmp_path / "reader.avsc")
    assert _fields(value, topic, _of(schema)) == {"x": {"a": 5}, "y": 0}


@pytest.mark.parametrize("text", ["", "no schema", json.dumps(LINKED)])
def test_a_wrong_reader_schema_is_an_error_at_once(tmp_path: Path, text: str) -> None:
    """The file is named, before anything is read."""
    path = tmp_path / "reader.avsc"
    path.write_text(text)
    with pytest.raises(LogError, match=r"reader\.avsc: expected an Avro schema"):
        reader_of(_topic("avro", reader_schema=path), known())


def test_avro_that_is_no_record_is_no_event() -> None:
    """A schema of a single number has no fields."""
    assert _reason(avro("int", 5, 9), _topic("avro"), _of('"int"')) == Reason.NOT_A_MAP


# --- Protobuf

CLICKS = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Other { int32 a = 1; }
message Clicks {
  message Inner { double depth = 1; Inner more = 2; }
  enum Job { UNKNOWN = 0; CLERK = 1; }
  int64 clicked = 1;
  double age = 2;
  Job job = 3;
  Inner inner = 4;
  map<string, double> scores = 5;
  repeated string tags = 6;
  google.protobuf.Timestamp at = 7;
  google.protobuf.Int32Value visits = 8;
  repeated Inner inners = 9;
  bool member = 10;
  oneof pay { double card = 11; double cash = 12; }
}
"""


def _clicks(**fields: Any) -> bytes:
    from google.protobuf import json_format, message_factory

    from worker.formats.protobuf import _compiled

    kind = message_factory.GetMessageClass(_compiled(Schema("PROTOBUF", CLICKS)).at((1,)))
    message: Any = json_format.ParseDict(fields, kind())
    data: bytes = message.SerializeToString()
    return frame(9, [1]) + data


def test_columns_of_a_protobuf_message() -> None:
    """Messages inside, maps, lists, enums, times and wrapped numbers are columns; a label of 0 is one."""
    columns = ColumnSettings(label="clicked", time="at", ignore=("inners",))
    value = _clicks(
        age=3, job="CLERK", inner={"depth": 0.5}, scores={"a": 2}, tags=["x", "y"], at="2024-05-01T12:00:00.0015Z",
        visits=7, inners=[{"depth": 1}], member=True, cash=5,
    )  # fmt: skip
    found = _fields(value, _topic("protobuf", columns=columns), _of(CLICKS, 9, "PROTOBUF"))
    assert found == {
        "x": {
            "age": 3.0, "job=CLERK": 1, "inner.depth": 0.5, "scores.a": 2.0, "tags=x": 1, "tags=y": 1, "visits": 7,
            "member": 1, "cash": 5.0,
        },
        "y": 0,
        "ts": 1_714_564_800_001,
    }  # fmt: skip


def test_lists_of_messages_are_no_features() -> None:
    """They are refused where nobody said to ignore them."""
    topic = _topic("protobuf", columns=ColumnSettings(label="clicked"))
    assert _reason(_clicks(inners=[{"depth": 1}]), topic, _of(CLICKS, 9, "PROTOBUF")) == Reason.BAD_FEATURES


def test_deep_messages_are_refused() -> None:
    """A message may hold itself; what goes deeper than events do is refused."""
    topic = _topic("protobuf", columns=ColumnSettings(label="clicked"))
    for depth, reason in ((20, Reason.TOO_DEEP), (5_000, Reason.MALFORMED)):
        inner = b""
        for _ in range(depth):
            inner = b"\x12" + _varint(len(inner)) + inner
        value = frame(9, [1]) + b"\x22" + _varint(len(inner)) + inner
        assert _reason(value, topic, _of(CLICKS, 9, "PROTOBUF")) == reason


def _varint(number: int) -> bytes:
    head = b""
    while number >= 0x80:
        head += bytes([number & 0x7F | 0x80])
        number >>= 7
    return head + bytes([number])


def test_an_evolved_protobuf_schema_is_read_as_it_was_written() -> None:
    """Fields that older records lack are absent, and new ones are features."""
    old = 'syntax = "proto3"; message R { optional int32 clicked = 1; double age = 2; }'
    new = 'syntax = "proto3"; message R { optional int32 clicked = 1; double age = 2; string country = 3; }'
    schemas = Schemas(known={1: Schema("PROTOBUF", old), 2: Schema("PROTOBUF", new)})
    topic = _topic("protobuf", columns=ColumnSettings(label="clicked"))
    body = b"\x08\x01\x11" + bytes(6) + b"\x08\x40"
    assert _fields(frame(1, [0]) + body, topic, schemas) == {"x": {"age": 3.0}, "y": 1}
    assert _fields(frame(2, [0]) + body + b"\x1a\x02nz", topic, schemas) == {
        "x": {"age": 3.0, "country=nz": 1},
        "y": 1,
    }


def test_imports_of_a_protobuf_schema_are_followed() -> None:
    """A file that the registry refers to is found; a name that leads out of the folder is not used."""
    outer = 'syntax = "proto3"; import "a/inner.proto"; message R { Inner x = 1; optional int32 y = 2; }'
    inner = 'syntax = "proto3"; message Inner { repeated uint32 i = 1; }'
    value = frame(9, [0]) + b"\x0a\x03\x0a\x01\x07\x10\x01"
    schemas = _of(outer, 9, "PROTOBUF", ("a/inner.proto", inner))
    assert _fields(value, _topic("protobuf"), schemas) == {"x": {"i": [7]}, "y": 1}
    for path in ("../inner.proto", "/tmp/inner.proto"):
        schemas = _of(outer.replace("a/inner.proto", path), 9, "PROTOBUF", (path, inner))
        assert _reason(value, _topic("protobuf"), schemas) == Reason.UNUSABLE_SCHEMA


def test_descriptors_in_base64_are_schemas_too() -> None:
    """Confluent's serializer for Python registers these; what they import is found, or the schema is not used."""
    from google.protobuf import descriptor_pb2, timestamp_pb2

    def described(name: str, *imports: str) -> Any:
        file = descriptor_pb2.FileDescriptorProto(name=name, syntax="proto3", dependency=imports)
        message = file.message_type.add(name=name[0].upper())
        message.field.add(name="a", number=1, type=5, label=1)
        for number, kind in enumerate((".B", ".C", ".google.protobuf.Timestamp")[: len(imports)], 2):
            message.field.add(name=f"f{number}", number=number, type=11, label=1, type_name=kind)
        return base64.b64encode(file.SerializeToString()).decode()

    inner, outer = described("c.proto"), described("a.proto", "b", "c", timestamp_pb2.DESCRIPTOR.name)
    references = [("b", described("b.proto", "c")), ("c", inner)]
    # b.proto says that its second field is a .B, which holds itself; that is allowed.
    schemas = _of(outer, 9, "PROTOBUF", *references)
    topic = _topic("protobuf", columns=ColumnSettings(label="a"))
    value = frame(9, [0]) + b"\x08\x01\x12\x02\x08\x02\x1a\x02\x08\x03\x22\x02\x08\x04"
    assert _fields(value, topic, schemas) == {"x": {"f2.a": 2, "f3.a": 3, "f4": 4_000}, "y": 1}
    for lacking in ([], references[:1], references[1:]):
        assert _reason(value, topic, _of(outer, 9, "PROTOBUF", *lacking)) == Reason.UNUSABLE_SCHEMA


def test_the_place_of_a_message_is_followed() -> None:
    """Messages inside others are found by their indexes; a place without a message is malformed."""
    schemas = _of(CLICKS, 9, "PROTOBUF")
    topic = _topic("protobuf", columns=ColumnSettings(label="depth"))
    assert _fields(frame(9, [1, 0]), topic, schemas) == {"x": {}, "y": 0}
    for indexes in ([7], [1, 5], [0, 0], [1, 0, 0]):
        assert _reason(frame(9, indexes), topic, schemas) == Reason.MALFORMED
    for place in (b"\xff", b"\x80\x80\x80\x80\x80\x80", b"\x41" + bytes(40), b"\x03"):
        assert _reason(frame(9) + place, topic, schemas) == Reason.MALFORMED


@given(st.integers(0, (1 << 32) - 1), st.lists(st.integers(0, 300), min_size=1, max_size=16))
def test_frames_are_read_as_they_are_written(number: int, place: list[int]) -> None:
    """The id of the schema and the place of the message come back."""
    value = frame(number, place) + b"rest"
    found, start = message_place(value)
    assert (schema_id(value), list(found), value[start:]) == (number, place, b"rest")


def test_the_schemas_that_users_find_are_right() -> None:
    """They compile, and are those that other tests write events with."""
    assert fastavro.schema.fullname(json.loads(AVRO_EVENT)) == "anabranch.Event"
    assert known()[AVRO] == Schema("AVRO", AVRO_EVENT)
    assert known()[PROTOBUF] == Schema("PROTOBUF", PROTOBUF_EVENT)
