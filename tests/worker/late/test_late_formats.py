"""Labels that come later in each format: the same bytes, whatever wrote the events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.format_runs import results
from tests.support.other_formats import FORMATS, written
from tests.support.places import ROOT
from worker.codec import DeadLetter, DelayedEvaluation, decode_output

PENDING = {"pending": {"max": 100, "for": "1d"}}


def _events() -> list[dict[str, Any]]:
    """Return predicts, and their labels some events later; some come twice."""
    events: list[dict[str, Any]] = []
    for number in range(60):
        spam = number * 7 % 3 == 0
        names = ["free" if spam else "see", f"word {number % 5}"]
        named: int | str = number if number % 2 else f"m{number}"
        events.append({"op": "predict", "x": {"i": names, "v": [1.0, 1.0]}, "id": named})
        if number % 3 == 2:
            for before in (number - 2, number - 1, number, number):
                label = "spam" if before * 7 % 3 == 0 else "ham"
                event = {"op": "label", "y": label, "id": before if before % 2 else f"m{before}"}
                events.append(event | ({"w": 2.0} if before % 5 == 1 else {}))
    return events


def test_the_same_labels_give_the_same_results_by_each_format(tmp_path: Path) -> None:
    """Results are the same bytes; dead letters have the bytes that came."""
    seen = {
        format: results(
            tmp_path / f"{format}.db",
            [written(event, format) for event in _events()],
            {"format": format} | PENDING,
        )
        for format in FORMATS
    }
    first = seen["msgpack"]
    outputs = [decode_output(each.value or b"", each.headers) for each in first["in.out"]]
    assert sum(isinstance(output, DelayedEvaluation) for output in outputs) == 3
    letters = [decode_output(each.value or b"", each.headers) for each in first["in.dead"]]
    assert [str(letter.reason) for letter in letters if isinstance(letter, DeadLetter)] == ["not-pending"] * 20
    for format, found in seen.items():
        assert found["in.out"] == first["in.out"], format
        assert len(found["in.dead"]) == 20


def test_columns_of_a_row_that_is_a_label(tmp_path: Path) -> None:
    """Its columns of features are passed over."""
    rows = [
        {"op": "predict", "request": "r1", "age": 1, "job": "clerk"},
        {"op": "label", "request": "r1", "age": 5, "job": None, "class": "spam"},
    ]
    events: list[dict[str, Any]] = [
        {"op": "predict", "id": "r1", "x": {"age": 1, "job=clerk": 1}},
        {"op": "label", "id": "r1", "y": "spam"},
    ]
    columns = {"label": "class", "id": "request", "op": "op"}
    ours = [json.dumps(row).encode() for row in rows]
    theirs = [written(event, "msgpack") for event in events]
    found = results(tmp_path / "a.db", ours, {"format": "json", "columns": columns} | PENDING)
    expected = results(tmp_path / "b.db", theirs, PENDING)
    assert found["in.out"] == expected["in.out"]
    assert found["in.dead"] == expected["in.dead"] == []


def test_delayed_evaluations_as_json_are_what_the_schema_says(tmp_path: Path) -> None:
    """With nil for what is not kept."""
    topic = {"format": "json", "results": "json"} | PENDING
    found = results(tmp_path / "log.db", [written(event, "json") for event in _events()], topic)
    schema = json.loads((ROOT / "deploy" / "schemas" / "result.schema.json").read_text("utf-8"))
    own = schema["$defs"]["delayed-evaluation"] | {"$defs": schema["$defs"]}
    kept = [
        json.loads(each.value or b"")
        for each in found["in.out"]
        if dict(each.headers)["type"] == b"delayed-evaluation"
    ]
    assert len(kept) == 3
    for each in kept:
        jsonschema.Draft202012Validator(own).validate(each)
        assert each["total"]["log_loss"] is None


@pytest.mark.parametrize(
    ("event", "is_good"),
    [
        ({"op": "label", "id": 7, "y": "spam"}, True),
        ({"op": "label", "id": 7, "y": "spam", "w": 2, "ts": 5, "x": None}, True),
        ({"op": "label", "id": 7}, False),
        ({"op": "label", "y": "spam"}, False),
        ({"op": "label", "id": None, "y": "spam"}, False),
        ({"op": "label", "id": 7, "y": "spam", "x": ["a"]}, False),
    ],
)
def test_the_schema_of_events_knows_labels(event: dict[str, Any], is_good: bool) -> None:
    """As the decoder judges them."""
    schema = json.loads((ROOT / "deploy" / "schemas" / "event.schema.json").read_text("utf-8"))
    assert jsonschema.Draft202012Validator(schema).is_valid(event) == is_good
