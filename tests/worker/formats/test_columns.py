"""Columns of a record as an event: roles, kinds of values, and what cannot be."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.codec.bounds import Bounds
from worker.codec.reasons import Reason
from worker.codec.reference import Fault, decode
from worker.formats import NO_SCHEMAS, Refused, reader_of
from worker.settings.topics import ColumnSettings, TopicSettings

BOUNDS = Bounds()
LABEL = ColumnSettings(label="y")


def _read(record: dict[str, Any] | str, **columns: Any) -> Any:
    topic = TopicSettings(format="json", columns=ColumnSettings(**columns))
    text = record if isinstance(record, str) else json.dumps(record)
    reader = reader_of(topic, NO_SCHEMAS)
    assert reader is not None
    (event,) = reader.read([text.encode()], BOUNDS)
    if not isinstance(event, bytes):
        return event
    fields = msgpack.unpackb(event)
    if isinstance(fields.get("x"), list):  # the other form of the same
        if len(set(fields["x"])) < len(fields["x"]):
            (fault,) = decode(event, 0, BOUNDS)
            assert isinstance(fault, Fault)
            return Refused(fault.reason, fault.detail)
        fields["x"] = dict.fromkeys(fields["x"], 1)
    return fields


CASES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        {"age": 3, "job": "clerk", "clicked": 1},
        {"label": "clicked"},
        {"x": {"age": 3, "job=clerk": 1}, "y": 1},
    ),
    (
        {"a": 1.5, "b": True, "c": False, "d": None, "e": "", "f": 0, "y": "spam"},
        {"label": "y"},
        {"x": {"a": 1.5, "b": 1, "f": 0}, "y": "spam"},
    ),
    (
        {"tags": ["x", "y", 7], "none": [], "y": 1},
        {"label": "y"},
        {"x": {"tags=x": 1, "tags=y": 1, "tags=7": 1}, "y": 1},
    ),
    (
        {"user": {"age": 3, "home": {"city": "Nelson"}}, "y": 1},
        {"label": "y"},
        {"x": {"user.age": 3, "user.home.city=Nelson": 1}, "y": 1},
    ),
    ({"a": {"y": 2, "b": 5}}, {"label": "a.y"}, {"x": {"a.b": 5}, "y": 2}),
    (
        {"a": 1, "b": 2, "c": 3, "y": 0},
        {"label": "y", "features": ("c", "a", "z")},
        {"x": {"c": 3, "a": 1}, "y": 0},
    ),
    ({"a": 1, "b": {"c": [{}]}, "y": 0}, {"label": "y", "ignore": ("b.c",)}, {"x": {"a": 1}, "y": 0}),
    (
        {"op": "insert", "n": 7, "w": 0.5, "t": 5, "a": 1, "y": 0},
        {"label": "y", "op": "op", "id": "n", "weight": "w", "time": "t"},
        {"op": "insert", "id": 7, "ts": 5, "x": {"a": 1}, "y": 0, "w": 0.5},
    ),
    (
        {"op": "predict", "a": 1, "y": 0, "w": 2},
        {"label": "y", "op": "op", "weight": "w"},
        {"op": "predict", "x": {"a": 1}},
    ),
    (
        {"op": "delete", "n": "u7", "a": 1, "y": 0},
        {"label": "y", "op": "op", "id": "n"},
        {"op": "delete", "id": "u7"},
    ),
    (
        {"op": "delete", "n": "", "a": 1, "y": 0},
        {"label": "y", "op": "op", "id": "n"},
        {"op": "delete", "x": {"a": 1}, "y": 0},
    ),
    ({"a": 1, "y": 1.0}, {"label": "y"}, {"x": {"a": 1}, "y": 1}),
    ({"a": 1, "y": 0.5}, {"label": "y"}, {"x": {"a": 1}, "y": 0.5}),
    ({"a": 1, "y": True}, {"label": "y"}, {"x": {"a": 1}, "y": 1}),
]


@pytest.mark.parametrize(("record", "columns", "event"), CASES, ids=[str(record) for record, _, _ in CASES])
def test_columns_make_an_event(record: dict[str, Any], columns: dict[str, Any], event: dict[str, Any]) -> None:
    """Each kind of column is what the page says it is."""
    found = _read(record, **columns)
    assert found == event
    assert type(found.get("y")) is type(event.get("y"))


TIMES = [
    (1_714_564_800_123, "ms", 1_714_564_800_123),
    (1_714_564_800, "s", 1_714_564_800_000),
    (1_714_564_800.1235, "s", 1_714_564_800_124),
    (1_714_564_800_123_999, "us", 1_714_564_800_123),
    (1_714_564_800_123_999_999, "ns", 1_714_564_800_123),
    ("2024-05-01T12:00:00Z", "ms", 1_714_564_800_000),
    ("2024-05-01 12:00:00.1239", "ns", 1_714_564_800_123),
    ("2024-05-01T14:00:00.1+02:00", "ms", 1_714_564_800_100),
]


@pytest.mark.parametrize(("time", "unit", "expected"), TIMES)
def test_times_are_ms(time: object, unit: str, expected: int) -> None:
    """Numbers are in the unit of the settings, texts are RFC 3339."""
    assert _read({"t": time, "y": 1}, label="y", time="t", time_unit=unit)["ts"] == expected


@pytest.mark.parametrize(
    "time", ["", "now", "2024-05-01", "2024-13-01T00:00:00Z", "2024-05-01T24:00:00Z", "0001-01-01T00:00:00Z", True,
             "2024-05-01T12:00:00+99:00", [1], -5, 1e300, "٢٠٢٤-05-01T12:00:00Z"],
)  # fmt: skip
def test_what_is_no_time_is_refused(time: object) -> None:
    """The event is refused for its time, and for nothing else."""
    event = _read({"t": time, "a": 1, "y": 1}, label="y", time="t")
    (fault,) = decode(msgpack.packb(event), 0, BOUNDS)
    assert isinstance(fault, Fault)
    assert fault.reason == Reason.BAD_TIME


REFUSED = [
    ('{"a": [1.5], "y": 1}', Reason.BAD_FEATURES),
    ('{"a": [true], "y": 1}', Reason.BAD_FEATURES),
    ('{"a": [{"b": 1}], "y": 1}', Reason.BAD_FEATURES),
    ('{"a": ["x", "x"], "y": 1}', Reason.REPEATED_FEATURE),
    ('{"a": "x", "a=x": 1, "y": 1}', Reason.REPEATED_FEATURE),
    ('{"a=x": 1, "a": "x", "y": 1}', Reason.REPEATED_FEATURE),
    ('{"a.b": 1, "a": {"b": 1}, "y": 1}', Reason.DUPLICATE_FIELD),
    ('{"a": {"b": 1}, "a.b": 1, "y": 1}', Reason.DUPLICATE_FIELD),
    ('{"a": {"b": {"c": {"d": {"e": 1}}}}, "y": 1}', Reason.TOO_DEEP),
    ('{"a": 1, "a": 1, "y": 1}', Reason.DUPLICATE_FIELD),
    ('[{"a": 1}]', Reason.NOT_A_MAP),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_no_column_can_be_is_refused(text: str, reason: Reason) -> None:
    """What would be lost, or taken for something else, is refused."""
    found = _read(text, label="y")
    assert isinstance(found, Refused)
    assert found.reason == reason
    assert found.detail.startswith("expected")


CELLS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 60), 1 << 60)
    | st.floats(allow_nan=False)
    | st.text("ab=.", max_size=3)
)
COLUMNS = st.dictionaries(
    st.text("abyn.=", max_size=3), CELLS | st.lists(st.text("ab", max_size=2), max_size=3), max_size=6
)


@given(COLUMNS)
def test_columns_are_as_one_by_one(record: dict[str, Any]) -> None:
    """All columns together give what each gives alone, or are refused where two give the same feature."""
    if not all(isinstance(cell, float) is False or abs(cell) < float("inf") for cell in record.values()):
        return
    expected: list[tuple[str, float]] = []
    for name, cell in record.items():
        if name in ("y", "n"):
            continue
        match cell:
            case bool() | None:
                expected += [(name, 1)] if cell else []
            case int() | float():
                expected.append((name, cell))
            case str():
                expected += [(f"{name}={cell}", 1)] if cell else []
            case list():
                expected += [(f"{name}={each}", 1) for each in cell]
    found = _read(record, label="y", id="n")
    if isinstance(found, Refused):
        assert found.reason == Reason.REPEATED_FEATURE
        assert len(dict(expected)) < len(expected)
    else:
        assert list(found.get("x", {}).items()) == expected
