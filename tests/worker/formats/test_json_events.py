"""Events as JSON: read as a plain parser reads them, refused for the reason that msgpack events are."""

from __future__ import annotations

import json
import math
import time
import tracemalloc
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import naive_json
from tests.support.hostile_json import HOSTILE_JSON
from worker.codec.bounds import Bounds
from worker.codec.reasons import Reason
from worker.codec.reference import Event, Fault, decode
from worker.codec.survey import RefusedError
from worker.formats import Refused, reader_of
from worker.formats.json_events import parse
from worker.formats.schemas import NO_SCHEMAS
from worker.settings.topics import ColumnSettings, TopicSettings

BOUNDS = Bounds()
TIMESTAMP = 1_700_000_000_000


def _read(text: bytes | str, columns: ColumnSettings | None = None) -> bytes | Refused:
    reader = reader_of(TopicSettings(format="json", columns=columns), NO_SCHEMAS)
    assert reader is not None
    (event,) = reader.read([text.encode() if isinstance(text, str) else text], BOUNDS)
    assert event is not None
    return event


def _judged(text: bytes | str, columns: ColumnSettings | None = None) -> Event | Refused | Fault:
    event = _read(text, columns)
    if isinstance(event, Refused):
        return event
    (outcome,) = decode(event, TIMESTAMP, BOUNDS)
    return outcome


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are the same, 1 and 1.0 and their signs told apart."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) and (not isinstance(one, float) or math.copysign(1, one) == math.copysign(1, other))


def _as_naive(text: bytes) -> None:
    """Assert that a text is read as by hand, or refused for what is wrong with it."""
    expected: Any = None
    reason: Reason | None = None
    try:
        expected = naive_json.parse(text)
        if not isinstance(expected, dict):
            reason = Reason.NOT_A_MAP
    except naive_json.TwiceError:
        reason = Reason.DUPLICATE_FIELD
    except naive_json.NoJsonError:
        reason = Reason.MALFORMED
    if reason is None:
        assert _same(parse(text), expected)
        return
    with pytest.raises(RefusedError) as refused:
        parse(text)
    # What has a name twice may be no JSON further on.
    twice = {Reason.DUPLICATE_FIELD, Reason.MALFORMED}
    assert refused.value.reason == reason or {refused.value.reason, reason} == twice


NUMBERS = st.integers(-(1 << 70), 1 << 70) | st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(["x", "y", '"', "\\", "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, VALUES, max_size=5), st.booleans(), st.sampled_from([None, 0, 1]))
def test_documents_are_read_as_by_hand(document: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    """Whatever JSON writes is read back as it was, however it was written."""
    _as_naive(json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode())


@given(
    st.dictionaries(NAMES, VALUES, max_size=4),
    st.lists(st.tuples(st.integers(0, 200), st.sampled_from(list(b'"\\{}[]:,0-1.eEu \xff\x00tn'))), max_size=3),
)
def test_wrong_documents_are_refused_as_by_hand(document: dict[str, Any], changes: list[tuple[int, int]]) -> None:
    """A text with wrong bytes in it is refused, or is another right one."""
    text = bytearray(json.dumps(document, ensure_ascii=False).encode())
    for at, byte in changes:
        text[at % len(text)] = byte
    _as_naive(bytes(text))


@given(st.lists(st.tuples(NAMES, VALUES), max_size=5))
def test_names_that_come_twice_are_seen(pairs: list[tuple[str, Any]]) -> None:
    """An object with a name twice is refused, with escapes or without."""
    inside = ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in pairs)
    _as_naive(f"{{{inside}}}".encode())
    _as_naive(f'{{"x": [{{{inside}}}]}}'.encode())


@given(st.text("0123456789.eE+-", min_size=1, max_size=25))
def test_numbers_are_read_as_by_hand(digits: str) -> None:
    """Each number is the nearest float64, or an int of any size; what looks like one is refused."""
    _as_naive(f'{{"a": {digits}}}'.encode())


@pytest.mark.parametrize(("name", "text", "reason"), HOSTILE_JSON, ids=[name for name, _, _ in HOSTILE_JSON])
def test_hostile_texts_have_their_reason(name: str, text: bytes, reason: Reason) -> None:
    """Each bad text is refused as a whole, for its reason, in a short sentence."""
    del name
    outcome = _judged(text)
    assert isinstance(outcome, Refused | Fault)
    assert outcome.reason == reason
    assert outcome.detail.startswith("expected")
    assert len(outcome.detail) <= 400


_SIZE = 2 << 20
WORST = {
    "many ints": b'{"x": [' + b"7," * (_SIZE // 2) + b"7]}",
    "many texts": b'{"x": [' + b",".join(b'"%x"' % at for at in range(_SIZE // 8)) + b"]}",
    "many names": b'{"x": {' + b",".join(b'"%x":1' % at for at in range(_SIZE // 10)) + b"}}",
    "many lists": b'{"x": [' + b"[]," * (_SIZE // 3) + b"[]]}",
    "brackets in a text": b'{"x": ["' + b"[{" * (_SIZE // 2) + b'"]}',
    "escapes": b'{"x": ["' + rb"\u0041" * (_SIZE // 6) + b'"]}',
    "digits": b'{"x": {"a": ' + b"7" * _SIZE + b"}}",
    "digits of a float": b'{"x": {"a": 0.' + b"7" * _SIZE + b"}}",
    "blanks": b" " * _SIZE,
    "quotes": b'{"x": [' + b'"' * _SIZE,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORST)
def test_time_and_memory_are_bounded(name: str) -> None:
    """The worst records cost seconds at most, and memory sixty times their size."""
    started = time.perf_counter()
    tracemalloc.start()
    try:
        outcome = _judged(WORST[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(outcome, Refused | Fault)
    assert peak < 60 * _SIZE
    assert time.perf_counter() - started < 20


GOOD = [
    ('{"x": [1, 2], "y": 1}', {"x": [1, 2], "y": 1}),
    (
        '{"x": {"a": 1.5}, "y": "b", "id": 7, "w": 2, "ts": 5}',
        {"x": {"a": 1.5}, "y": "b", "id": 7, "w": 2, "ts": 5},
    ),
    ('{"op": "predict", "x": {"i": [3], "v": [0.5]}}', {"op": "predict", "x": {"i": [3], "v": [0.5]}}),
    ('{"op": null, "id": null, "x": {"a": null, "b": 2}, "y": 1.0}', {"x": {"b": 2}, "y": 1.0}),
    ('{"x": {"a": 18446744073709551616}, "y": 1}', {"x": {"a": 2.0**64}, "y": 1}),
    ('{"x": {"a": -9223372036854775809}, "y": 1}', {"x": {"a": -(2.0**63)}, "y": 1}),
    (r'{"x": ["\u00e9\ud83d\ude00"], "y": 1}', {"x": ["é😀"], "y": 1}),
]


@pytest.mark.parametrize(("text", "event"), GOOD, ids=[text for text, _ in GOOD])
def test_events_are_those_of_msgpack(text: str, event: dict[str, Any]) -> None:
    """A text is the msgpack event with the same fields; null is absent; 1 and 1.0 stay apart."""
    found = _read(text)
    assert isinstance(found, bytes)
    assert _same(msgpack.unpackb(found), event)


def test_the_frame_of_a_registry_is_passed_over() -> None:
    """What a serializer of JSON Schema writes is read, too; it needs no registry."""
    assert _read(b'\0\0\0\0\x07{"x": [1], "y": 0}') == _read('{"x": [1], "y": 0}')


def test_a_tombstone_stays_one_and_size_is_bounded() -> None:
    """A record without a value is passed on, one that is too large is refused before it is read."""
    reader = reader_of(TopicSettings(format="json"), NO_SCHEMAS)
    assert reader is not None
    none, large = reader.read([None, b'{"x": [1], "y": 1}'], Bounds(record_bytes=10))
    assert none is None
    assert isinstance(large, Refused)
    assert large.reason == Reason.TOO_LARGE
    assert reader.schemas([b"\0\0\0\0\1"]) == ()
