"""The schemas that users copy say what the worker takes and writes.

The Avro schema and the .proto file are those that tests/worker/formats writes events with.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from tests.support.format_runs import MODELS, TIMESTAMP, examples, results
from tests.support.hostile_json import HOSTILE_JSON
from tests.support.other_formats import SCHEMAS, written
from worker.codec import Bounds, Reason
from worker.codec.encode import _TYPES
from worker.codec.reference import Event, decode
from worker.formats import NO_SCHEMAS, reader_of
from worker.settings.topics import TopicSettings

# What a JSON Schema cannot say: bytes and bounds of settings, and that 1.0 is no integer.
_BEYOND = re.compile("bytes|byte char|repeated|float|int64|ahead|65|fewer|one packed|rounds|as v$|for two")
_NO_DOCUMENT = (Reason.MALFORMED, Reason.DUPLICATE_FIELD)


def _schema(name: str) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / name).read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_the_events_of_the_schema_are_those_that_are_read() -> None:
    """Good events are valid, and bad ones are not, as far as a schema can tell."""
    schema = _schema("event.schema.json")
    reader = reader_of(TopicSettings(format="json"), NO_SCHEMAS)
    assert reader is not None
    for event in examples(60):
        assert schema.is_valid(event)
        (packed,) = reader.read([json.dumps(event).encode()], Bounds())
        (outcome,) = decode(cast(bytes, packed), TIMESTAMP, Bounds())
        assert isinstance(outcome, Event)
    wrong = []
    seen = 0
    for name, text, reason in HOSTILE_JSON:
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if reason in _NO_DOCUMENT:
            continue
        seen += 1
        if schema.is_valid(event) and not _BEYOND.search(name):
            wrong.append((name, reason, text[:60]))
    assert seen > 100
    assert wrong == []


@pytest.mark.parametrize("columns", [False, True])
def test_results_are_valid(tmp_path: Path, columns: bool) -> None:
    """Each kind of result that a run writes is what its schema says, with all its fields."""
    schema = json.loads((SCHEMAS / "result.schema.json").read_text("utf-8"))
    topic: dict[str, Any] = {"format": "json", "results": "json"}
    values = [written(event, "json") for event in examples(120)] + [b"\xff", b'{"x": ["a"], "y": "eggs"}']
    if columns:
        topic["columns"] = {"label": "y", "id": "id", "op": "op", "weight": "w", "time": "ts"}
    found = results(tmp_path / "log.db", values, topic)
    seen = set()
    for record in (*found["in.out"], *found["in.dead"]):
        kind = (dict(record.headers)["type"] or b"").decode()
        result = json.loads(record.value or b"")
        own = schema["$defs"][kind]
        Draft202012Validator({**own, "$defs": schema["$defs"]}).validate(result)
        assert Draft202012Validator(schema).is_valid(result)
        assert result.keys() <= own["properties"].keys()
        seen.add(kind)
    assert seen >= {"split", "tree", "prediction", "evaluation", "dead-letter"}
    assert MODELS.keys() >= {"best", "grown"}


def test_each_kind_of_result_has_its_schema_with_its_fields() -> None:
    """The fields come in the order in which they are written."""
    schema = json.loads((SCHEMAS / "result.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    for kind, name in _TYPES.items():
        own = f"regression-{name}" if kind.__name__.startswith("Regression") else name
        assert tuple(schema["$defs"][own]["properties"]) == kind._fields
