"""Formats with schemas against a real registry, written by the serializers of confluent-kafka."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.support.format_runs import TIMESTAMP, examples, results, settings_of, written_to
from tests.support.other_formats import AVRO_EVENT, PROTOBUF_EVENT, _message, _of_avro, avro, written
from tests.support.schema_registry import SchemaRegistry
from tests.support.workers import worker_on
from tests.worker.kafka.test_kafka_worker import Place
from worker.broker import Cluster
from worker.codec import DeadLetter, Reason, decode_output
from worker.commands.record import record
from worker.commands.replay import replay
from worker.formats import Schemas
from worker.formats import registry as registry_module
from worker.formats.registry import Registry
from worker.formats.schemas import RegistryAway
from worker.log.embedded import EmbeddedLog
from worker.log.port import LogError, TopicPartition
from worker.settings.topics import RegistrySettings


def _subject() -> str:
    return f"subject-{uuid4().hex[:10]}"


def _fetching(registry: SchemaRegistry) -> Schemas:
    return Schemas(Registry(RegistrySettings(url=registry.url)).fetch)


def _events(registry: SchemaRegistry, format: str, events: list[dict[str, Any]]) -> list[bytes]:
    """Return records as a producer with a registry writes them; it registers the schema itself."""
    context = SerializationContext(_subject(), MessageField.VALUE)
    with SchemaRegistryClient({"url": registry.url}) as client:
        return _serialized(client, context, format, events)


def _serialized(
    client: Any, context: SerializationContext, format: str, events: list[dict[str, Any]]
) -> list[bytes]:
    if format == "avro":
        serialize: Any = AvroSerializer(client, AVRO_EVENT, lambda event, _: _of_avro(event))
        return [serialize(event, context) for event in events]
    serialize = ProtobufSerializer(_message(), client, {"use.deprecated.format": False})
    body = 6  # what our own writer puts in front: the frame and a place of one byte
    return [serialize(_message().FromString(written(event, "protobuf")[body:]), context) for event in events]


@pytest.mark.parametrize("format", ["avro", "protobuf"])
def test_what_confluents_serializers_write_is_read(
    tmp_path: Path, schema_registry: SchemaRegistry, format: str
) -> None:
    """The results are those of the msgpack events, to the byte."""
    events = examples(40)
    values = _events(schema_registry, format, events)
    found = results(tmp_path / "a.db", values, {"format": format}, 7, lambda: _fetching(schema_registry))
    assert found == results(tmp_path / "b.db", [written(event, "msgpack") for event in events], {})
    assert found["in.dead"] == []


def test_schemas_and_their_references_are_fetched(schema_registry: SchemaRegistry) -> None:
    """A schema comes with all that it refers to, each after what it needs itself; an unknown id is none."""
    inner, outer = _subject(), _subject()
    schema_registry.register(inner, '{"type":"record","name":"Inner","fields":[{"name":"a","type":"int"}]}')
    text = '{"type":"record","name":"Outer","fields":[{"name":"i","type":"Inner"}]}'
    number = schema_registry.register(outer, text, references=[("Inner", inner)])
    registry = Registry(RegistrySettings(url=schema_registry.url))
    schema = registry.fetch(number)
    assert schema is not None
    assert (schema.kind, json.loads(schema.text), [name for name, _ in schema.references]) == (
        "AVRO",
        json.loads(text),
        ["Inner"],
    )
    assert registry.fetch(1_000_000) is None
    proto = schema_registry.register(_subject(), PROTOBUF_EVENT, "PROTOBUF")
    found = registry.fetch(proto)
    assert found is not None
    assert found.kind == "PROTOBUF"
    assert "message Event" in found.text


def test_an_evolved_schema_with_a_default_works(tmp_path: Path, schema_registry: SchemaRegistry) -> None:
    """Records of two versions of a subject are read as the second: what the first lacks has its default."""
    first: dict[str, Any] = {
        "type": "record",
        "name": "Click",
        "fields": [{"name": "word", "type": "string"}, {"name": "label", "type": "string"}],
    }
    second = {**first, "fields": [*first["fields"], {"name": "country", "type": "string", "default": "nz"}]}
    (tmp_path / "second.avsc").write_text(json.dumps(second))
    subject = _subject()
    old, new = (schema_registry.register(subject, json.dumps(each)) for each in (first, second))
    values = [
        avro(first, {"word": "free", "label": "spam"}, old),
        avro(second, {"word": "see", "label": "ham", "country": "fr"}, new),
        avro(first, {"word": "see", "label": "ham"}, old),
    ]
    topic = {"format": "avro", "columns": {"label": "label"}, "reader_schema": str(tmp_path / "second.avsc")}
    found = results(tmp_path / "a.db", values, topic, schemas=lambda: _fetching(schema_registry))
    same = [
        {"x": ["word=free", "country=nz"], "y": "spam"},
        {"x": ["word=see", "country=fr"], "y": "ham"},
        {"x": ["word=see", "country=nz"], "y": "ham"},
    ]
    assert found == results(tmp_path / "b.db", [written(event, "msgpack") for event in same], {})


def test_a_wrong_address_ends_the_worker_with_what_to_do(
    schema_registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path where no registry is must not make dead letters of everything; nobody there is waited for."""
    wrong = Registry(RegistrySettings(url=schema_registry.url.replace("ccompat", "nothing")))
    with pytest.raises(LogError, match=r"check registry\.url"):
        wrong.fetch(1)
    with pytest.raises(RegistryAway, match="Connect"):
        Registry(RegistrySettings(url="http://127.0.0.1:9")).fetch(1)
    monkeypatch.setattr(registry_module, "_SECONDS", 0.5)
    registry = Registry(RegistrySettings(url=schema_registry.url))
    with schema_registry.away(), pytest.raises(RegistryAway, match="Timeout"):
        registry.fetch(1)


def test_a_recording_needs_no_registry(tmp_path: Path, schema_registry: SchemaRegistry) -> None:
    """The schemas are kept with the records, unknown ids too, and a replay gives the worker's bytes without it."""
    events = examples(40)
    values = _events(schema_registry, "avro", events)
    values.insert(5, written(events[0], "avro", number=999_999))
    path = tmp_path / "log.db"
    expected = results(path, values, {"format": "avro"}, schemas=lambda: _fetching(schema_registry))
    for url, name in ((schema_registry.url, "worker.yaml"), ("http://127.0.0.1:9", "away.yaml")):
        dumped = settings_of(path, {"format": "avro"}, registry={"url": url}).model_dump(
            mode="json", exclude_defaults=True
        )
        (tmp_path / name).write_text(json.dumps(dumped))
    copy, again = tmp_path / "copy.db", tmp_path / "again.db"
    run = CliRunner().invoke(record, [str(tmp_path / "worker.yaml"), str(copy)])
    assert run.exit_code == 0, run.output
    with EmbeddedLog(copy) as log:
        kept = log.read(TopicPartition("in.schemas", 0), 0, 10)
        assert len(kept.keys) == 2
        assert kept.keys[-1] == (999_999).to_bytes(4, "big")
    replayed = CliRunner().invoke(
        replay, [str(tmp_path / "away.yaml"), str(copy), str(again), "--expect", str(path)]
    )
    assert replayed.exit_code == 0, replayed.output
    with EmbeddedLog(again) as log:
        assert {name: written_to(log, name) for name in ("in.out", "in.dead")} == expected


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_on_kafka_a_registry_that_is_away_costs_neither_records_nor_the_group(
    kafka: Cluster, schema_registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """Longer than the group would wait for a worker, it waits, keeps its partitions, and goes on where it was."""
    monkeypatch.setattr(registry_module, "_SECONDS", 1.0)
    place = Place(kafka, 2, registry={"url": schema_registry.url})
    if protocol == "consumer":  # whose session the brokers set
        place.properties = {"group.protocol": "consumer", "max.poll.interval.ms": 3_000}
    settings = place.settings.model_copy(
        update={"topics": {place.topic: settings_of(Path("unused"), {"format": "avro"}).topics["in"]}}
    )
    values = _events(schema_registry, "avro", [event for event in examples(60) if event.get("op") != "delete"])
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number, value in enumerate(values):
        producer.produce(place.topic, value, b"k", partition=number % 2, timestamp=TIMESTAMP)
    producer.flush()
    with place.log("one") as log:
        worker = worker_on(log, settings)
        worker.join()
        with schema_registry.away():
            until = time.monotonic() + 12.0  # max.poll.interval.ms is 3 s, the session 1.5 s
            while time.monotonic() < until:
                worker.run_once()
            assert set(log.owned or ()) == {TopicPartition(place.topic, 0), TopicPartition(place.topic, 1)}
            assert [log.committed(source) for source in log.owned or ()] == [None, None]
        assigned = dict(log.owned or {})
        until = time.monotonic() + 60.0
        while time.monotonic() < until and sum(log.committed(source) or 0 for source in assigned) < len(values):
            worker.run_once()
        assert dict(log.owned or {}) == assigned
        assert sum(log.committed(source) or 0 for source in assigned) == len(values)
        dead = TopicPartition(f"{place.topic}.dead", 0)
        assert log.watermarks(dead).high == 0


def test_an_unknown_id_is_a_dead_letter(tmp_path: Path, schema_registry: SchemaRegistry) -> None:
    """The registry says that it does not have it: the record is refused, and not waited for."""
    value = written({"x": ["a"], "y": "ham"}, "avro", number=888_888)
    found = results(tmp_path / "a.db", [value], {"format": "avro"}, schemas=lambda: _fetching(schema_registry))
    (letter,) = (decode_output(each.value or b"", each.headers) for each in found["in.dead"])
    assert isinstance(letter, DeadLetter)
    assert (letter.reason, letter.value) == (Reason.UNKNOWN_SCHEMA, value)
