"""The fast decoder against the reference decoder."""

from __future__ import annotations

import struct
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.contents import contents
from tests.support.hostile import HOSTILE, HOSTILE_ROWS
from worker.codec import columns
from worker.codec.bounds import Bounds
from worker.codec.events import WEIGHT_UNIT
from worker.codec.reference import Event, decode

BOUNDS = Bounds(ahead_ms=1_000)
SMALL = Bounds(
    record_bytes=200, features=4, rows=3, elements=6, name_bytes=3, id_bytes=3, key_bytes=3, ahead_ms=10
)
TIMESTAMP = 5_000

ids = st.integers(0, 300) | st.integers(0, (1 << 32) - 1)
names = st.text(max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(1 << 63), (1 << 64) - 1) | st.just(0.0)
float32s = st.floats(allow_nan=False, allow_infinity=False, width=32)
examples = st.text(max_size=20) | st.integers(-(1 << 63), (1 << 63) - 1)
labels = st.integers(-(1 << 63), (1 << 63) - 1) | numbers.filter(lambda y: isinstance(y, float)) | names
weights = st.floats(WEIGHT_UNIT**-1, 2.0**31) | st.integers(1, 1 << 31)
times = st.integers(1, TIMESTAMP + 1_000)


@st.composite
def features(draw: st.DrawFn) -> Any:
    """Draw x in any of its forms."""
    form = draw(st.sampled_from(["list", "map", "i", "packed"]))
    kind: st.SearchStrategy[Any] = draw(st.sampled_from([ids, names]))
    if form == "map":
        return draw(st.dictionaries(kind, numbers, max_size=8))
    found = draw(st.lists(ids if form == "packed" else kind, unique=True, max_size=20))
    if form == "list":
        return found
    x: dict[str, Any] = {"i": struct.pack(f"<{len(found)}I", *found) if form == "packed" else found}
    width = draw(st.sampled_from("-fdl"))
    if width == "l":
        x["v"] = draw(st.lists(numbers, min_size=len(found), max_size=len(found)))
    elif width != "-":
        values = draw(st.lists(float32s | st.sampled_from([0.0, -0.0]), min_size=len(found), max_size=len(found)))
        x["v"] = struct.pack(f"<{len(found)}{width}", *values)
    return x


@st.composite
def single(draw: st.DrawFn) -> bytes:
    """Draw a good single event, its fields in any order."""
    op = draw(st.sampled_from(["insert", "delete", "predict", "label", None]))
    fields: dict[str, Any] = {} if op is None else {"op": op}
    if op == "label" or draw(st.booleans()):
        fields["id"] = draw(examples)
    optional = op == "delete" and "id" in fields
    if op != "label" and (not optional or draw(st.booleans())):
        fields["x"] = draw(features())
    if op != "predict" and (not optional or draw(st.booleans())):
        fields["y"] = draw(labels)
    if op != "predict" and draw(st.booleans()):
        fields["w"] = draw(weights)
    if draw(st.booleans()):
        fields["ts"] = draw(times)
    packed: bytes = msgpack.packb(dict(draw(st.permutations(list(fields.items())))))
    return packed


@st.composite
def batch(draw: st.DrawFn) -> bytes:
    """Draw a good columnar record, its fields in any order."""
    n = draw(st.integers(0, 5))
    op = draw(st.sampled_from(["insert", "delete", "predict", "label", None]))
    fields: dict[str, Any] = {"n": n} | ({} if op is None else {"op": op})

    def column(cells: st.SearchStrategy[Any], size: int = n) -> list[Any]:
        return draw(st.lists(cells, min_size=size, max_size=size))

    if op == "label":
        fields["ids"] = column(examples)
    elif draw(st.booleans()):
        fields["ids"] = column(examples | st.none())
    optional = op == "delete" and None not in fields.get("ids", [None])
    if op != "label" and (not optional or draw(st.booleans())):
        rows = column(st.lists(ids, unique=True, max_size=4) | st.lists(names, unique=True, max_size=4))
        flat = [feature for row in rows for feature in row]
        packable = all(isinstance(feature, int) for feature in flat)
        fields["ptr"] = struct.pack(f"<{n + 1}I", *np.cumsum([0, *map(len, rows)]).tolist())
        fields["i"] = struct.pack(f"<{len(flat)}I", *flat) if packable and draw(st.booleans()) else flat
        width = draw(st.sampled_from("-fd"))
        if width != "-":
            fields["v"] = struct.pack(f"<{len(flat)}{width}", *column(float32s, len(flat)))
    if op != "predict" and (not optional or draw(st.booleans())):
        fields["y"] = draw(
            st.binary(min_size=n, max_size=n)
            | st.just(struct.pack(f"<{n}d", *column(float32s)))
            | st.just(column(labels))
        )
    if op != "predict" and draw(st.booleans()):
        floats = column(st.floats(WEIGHT_UNIT**-1, 2.0**31))
        fields["w"] = draw(st.sampled_from([struct.pack(f"<{n}d", *floats), column(weights)]))
    if draw(st.booleans()):
        fields["ts"] = draw(times | st.just(struct.pack(f"<{n}q", *column(times))))
    packed: bytes = msgpack.packb(dict(draw(st.permutations(list(fields.items())))))
    return packed


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Draw a good record and spoil some of its bytes."""
    value = bytearray(draw(single() | batch()))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(value)))
        match draw(st.sampled_from(["set", "cut", "insert", "remove"])):
            case "set" if at < len(value):
                value[at] = draw(st.integers(0, 255) | st.sampled_from([0xC0, 0xC2, 0xCA, 0xDC, 0xDF, 0xD9]))
            case "cut":
                del value[at:]
            case "insert":
                value.insert(at, draw(st.integers(0, 255)))
            case "remove":
                del value[at : at + 1]
    return bytes(value)


def check(values: list[bytes | None], timestamps: list[int], bounds: Bounds) -> None:
    """Compare both decoders, the fast one with and without the help of the reference decoder."""
    column = np.array(timestamps, np.int64)
    events, faults = columns.decode_batch(values, column, bounds, [b"k"] * len(values))
    expected, refused = [], []
    for record, (value, timestamp) in enumerate(zip(values, timestamps, strict=True)):
        for row, outcome in enumerate(decode(value, timestamp, bounds)):
            if isinstance(outcome, Event):
                expected.append((record, row, outcome))
            else:
                refused.append((record, outcome.row, outcome.reason, outcome.detail))
    found = contents(events)
    assert repr(found) == repr(expected)  # repr tells 1 from 1.0
    assert [(fault.record, fault.row, fault.reason, fault.detail) for fault in faults] == refused
    read = columns.read_plain(values, column, bounds)
    left = set(np.flatnonzero(read[1]).tolist())
    assert repr(contents(read[0])) == repr([entry for entry in expected if entry[0] not in left])
    assert {record for record, *_ in refused} <= left


records = st.lists(single() | batch() | st.none(), max_size=4)


@given(records)
@settings(max_examples=150, deadline=None)
def test_good_records_decode_alike(values: list[bytes | None]) -> None:
    """Both decoders read every form of a good event alike, and refuse none of its rows differently."""
    check(values, [TIMESTAMP] * len(values), BOUNDS)


@pytest.mark.slow
@given(st.lists(mutated(), min_size=1, max_size=3), st.sampled_from([-1, 0, 1, TIMESTAMP]))
@settings(max_examples=300, deadline=None)
def test_spoilt_records_decode_alike(values: list[bytes | None], timestamp: int) -> None:
    """What the kernel accepts of spoilt bytes, the reference decoder accepts with the same content."""
    check(values, [timestamp] * len(values), BOUNDS)


@given(records, st.sampled_from([1, TIMESTAMP]))
@settings(max_examples=100, deadline=None)
def test_bounds_are_the_same_for_both(values: list[bytes | None], timestamp: int) -> None:
    """Both decoders draw the line at the same place where bounds are small."""
    check(values, [timestamp] * len(values), SMALL)


def test_hostile_records_are_left_by_the_kernel() -> None:
    """The kernel accepts nothing that is known to be bad."""
    values: list[bytes | None] = [value for _, value, _ in (*HOSTILE, *HOSTILE_ROWS)]
    _, left = columns.read_plain(values, np.full(len(values), 1_700_000_000_000), Bounds())
    assert left.all()


def test_fast_forms_are_not_left_to_the_reference_decoder() -> None:
    """The forms that carry traffic are read by the kernel alone."""
    packed = struct.pack("<2I", 1, 2)
    forms: list[Any] = [
        {"x": [1, 300], "y": 1, "op": "insert", "id": "a", "w": 2, "ts": 5},
        {"x": [2, 1], "y": "spam"},
        {"x": ["b", "a"], "y": 0.5, "id": 7},
        {"x": {"a": 1, "b": 0.5}, "y": 1},
        {"x": {"i": packed}, "y": 1},
        {"x": {"i": packed, "v": struct.pack("<2f", 1, 2)}, "y": 1},
        {"x": {"i": packed, "v": struct.pack("<2d", 1, 2)}, "op": "predict"},
        {"op": "delete", "id": "a"},
        {"n": 1, "ptr": struct.pack("<2I", 0, 2), "i": packed, "y": b"\x01", "ids": ["a"], "ts": 5},
        {"n": 1, "ptr": struct.pack("<2I", 0, 2), "i": packed, "v": bytes(8), "y": [1], "w": [1]},
    ]
    values: list[bytes | None] = [msgpack.packb(form) for form in forms]
    _, left = columns.read_plain(values, np.ones(len(values), np.int64), BOUNDS)
    assert not left.any()


@given(records)
@settings(max_examples=50, deadline=None)
def test_batches_do_not_matter(values: list[bytes | None]) -> None:
    """Records decode to the same columns one by one and together, digests included."""
    n = len(values)
    together, _ = columns.decode_batch(values, np.full(n, TIMESTAMP), BOUNDS, [b"k"] * n)
    high: list[int] = []
    found = []
    for record, value in enumerate(values):
        alone, _ = columns.decode_batch([value], np.array([TIMESTAMP]), BOUNDS, [b"k"])
        high += alone.id_high.tolist()
        found += [(record, row, event) for _, row, event in contents(alone)]
    assert repr(contents(together)) == repr(found)
    assert together.id_high.tolist() == high


def test_columns_grow_to_what_comes() -> None:
    """Many one-byte features and many rows in one record outgrow the first guess and arrive whole."""
    values: list[bytes | None] = [msgpack.packb({"x": list(range(120)), "y": 1}) for _ in range(50)]
    n = 10_000
    values.append(msgpack.packb({"n": n, "op": "delete", "ids": list(range(n))}))
    check(values, [TIMESTAMP] * len(values), BOUNDS)


def test_crafted_hashes_are_left_and_decoded() -> None:
    """Ids that all fall into one slot are not probed one by one; the record is decoded all the same."""
    prime = 0x9E3779B97F4A7C15
    crowd = [k for k in range(1 << 18) if (k * prime % (1 << 64) >> 32) % 512 == 0][255::-1]
    values: list[bytes | None] = [msgpack.packb({"x": crowd, "y": 1})]
    _, left = columns.read_plain(values, np.array([TIMESTAMP]), BOUNDS)
    assert left.all()
    check(values, [TIMESTAMP], BOUNDS)
