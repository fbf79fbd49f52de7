"""Bad records, each with the reason that it must be refused for."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgpack

from worker.codec.reasons import Reason

TIMESTAMP = 1_700_000_000_000  # ms, the record timestamp that the list is judged with

# One value for each type code of msgpack (one of each range of codes).
_BY_KIND: dict[str, list[bytes]] = {
    "int": [
        b"\x07", b"\x7f", b"\xcc\xff", b"\xcd\x01\x00", b"\xce\x00\x01\x00\x00", b"\xcf" + bytes(7) + b"\x07",
        b"\xd0\x07", b"\xd1\x00\x07", b"\xd2\x00\x00\x00\x07", b"\xd3" + bytes(7) + b"\x07",
    ],
    "negative": [
        b"\xff", b"\xe0", b"\xd0\x80", b"\xd1\x80\x00", b"\xd2\x80\x00\x00\x00", b"\xd3\x80" + bytes(7),
    ],
    "uint64": [b"\xcf" + b"\xff" * 8],
    "float": [b"\xca\x3f\x80\x00\x00", b"\xcb\x3f\xf0" + bytes(6)],
    "str": [b"\xa1z", b"\xd9\x01z", b"\xda\x00\x01z", b"\xdb\x00\x00\x00\x01z"],
    "bin": [b"\xc4\x01z", b"\xc5\x00\x01z", b"\xc6\x00\x00\x00\x01z"],
    "array": [b"\x90", b"\xdc\x00\x00", b"\xdd\x00\x00\x00\x00"],
    "map": [b"\x80", b"\xde\x00\x00", b"\xdf\x00\x00\x00\x00"],
    "nil": [b"\xc0"],
    "bool": [b"\xc2", b"\xc3"],
    "reserved": [b"\xc1"],
    "extension": [
        b"\xc7\x01\x05z", b"\xc8\x00\x01\x05z", b"\xc9\x00\x00\x00\x01\x05z", b"\xd4\x05z", b"\xd5\x05zz",
        b"\xd6\x05" + bytes(4), b"\xd7\x05" + bytes(8), b"\xd8\x05" + bytes(16),
        b"\xd6\xff" + bytes(4), b"\xd7\xff" + bytes(8), b"\xc7\x0c\xff" + bytes(12),  # timestamps
    ],
}  # fmt: skip


def _pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value)
    return packed


def _event(**fields: Any) -> bytes:
    return _pack({"x": [1, 2], "y": 1} | fields)


def _with(field: str, raw: bytes) -> bytes:
    """Return a good event whose field is these bytes."""
    rest = {name: value for name, value in {"x": [1, 2], "y": 1}.items() if name != field}
    return bytes([0x80 + len(rest) + 1]) + _pack(rest)[1:] + _pack(field) + raw


def _u32s(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


def _f64s(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def batch(**columns: Any) -> bytes:
    """Return a batch of two rows of two features each, but for these columns (None leaves one out)."""
    good = {"n": 2, "ptr": _u32s(0, 2, 4), "i": _u32s(1, 2, 1, 3), "y": b"\x00\x01"}
    return _pack({name: column for name, column in (good | columns).items() if column is not None})


def _types() -> list[tuple[str, bytes, Reason]]:
    """Every type code in every place where an event has a value, except where it is allowed."""
    places: dict[
        str, tuple[Callable[[bytes], bytes], set[str], Reason]
    ] = {  # name: (a record with the value there, kinds allowed there, the reason of the others)
        "the event": (lambda raw: raw, {"map"}, Reason.NOT_A_MAP),
        "a field's name": (lambda raw: b"\x81" + raw + b"\x01", {"str"}, Reason.BAD_FIELD_NAME),
        "op": (lambda raw: _with("op", raw), set(), Reason.BAD_OP),
        "id": (lambda raw: _with("id", raw), {"int", "negative", "str"}, Reason.BAD_ID),
        "x": (lambda raw: _with("x", raw), {"array", "map"}, Reason.BAD_FEATURES),
        "a feature": (lambda raw: _with("x", b"\x91" + raw), {"int", "str"}, Reason.BAD_FEATURES),
        "a feature's name": (
            lambda raw: _with("x", b"\x81" + raw + b"\x01"),
            {"int", "str"},
            Reason.BAD_FEATURES,
        ),
        "a value": (
            lambda raw: _with("x", b"\x81\xa1p" + raw),
            {"int", "negative", "uint64", "float"},
            Reason.BAD_VALUE,
        ),
        "an item of i": (lambda raw: _with("x", b"\x81\xa1i\x91" + raw), {"int", "str"}, Reason.BAD_FEATURES),
        "v": (lambda raw: _with("x", b"\x82\xa1i\x91\x05\xa1v" + raw), set(), Reason.BAD_FEATURES),
        "y": (lambda raw: _with("y", raw), {"int", "negative", "float", "str"}, Reason.BAD_LABEL),
        "w": (lambda raw: _with("w", raw), {"int", "float"}, Reason.BAD_WEIGHT),
        "ts": (lambda raw: _with("ts", raw), {"int"}, Reason.BAD_TIME),
        "n": (lambda raw: b"\x81\xa1n" + raw, {"int", "uint64"}, Reason.BAD_BATCH),
        "ptr": (lambda raw: b"\x83\xa1n\x01\xa3ptr" + raw + b"\xa1i\xc4\x00", set(), Reason.MISSING_LABEL),
    }
    special = {"reserved": Reason.MALFORMED, "extension": Reason.UNSUPPORTED_TYPE}
    found = []
    for place, (build, allowed, reason) in places.items():
        for kind, values in _BY_KIND.items():
            if kind not in allowed:
                found += [
                    (f"{kind} {raw[:3].hex()} as {place}", build(raw), special.get(kind, reason)) for raw in values
                ]
    return found


def _truncated() -> list[tuple[str, bytes, Reason]]:
    whole = _event(op="insert", id="abc", w=0.5, ts=TIMESTAMP, x={"i": ["a", "b"], "v": [1, 2.5]})
    columns = batch(v=_f64s(1, 2, 3, 4), ids=["a", 2])
    return [
        (f"{what} cut after {k} bytes", value[:k], Reason.MALFORMED)
        for what, value in (("event", whole), ("batch", columns))
        for k in range(len(value))
    ]


_HUGE = b"\xff\xff\xff\xff"
_NAN, _INF = float("nan"), float("inf")

HOSTILE: list[tuple[str, bytes, Reason]] = [
    # The bytes
    ("no bytes", b"", Reason.MALFORMED),
    ("too large", bytes((8 << 20) + 1), Reason.TOO_LARGE),
    ("trailing byte", _event() + b"\x00", Reason.MALFORMED),
    ("two events", _event() + _event(), Reason.MALFORMED),
    ("not UTF-8 as a name", _with("x", b"\x91\xa2\xc3\x28"), Reason.MALFORMED),
    ("surrogate as a name", _with("x", b"\x91\xa3\xed\xa0\x80"), Reason.MALFORMED),
    ("overlong UTF-8", _with("x", b"\x91\xa2\xc0\xaf"), Reason.MALFORMED),
    ("beyond U+10FFFF", _with("x", b"\x91\xa4\xf4\x90\x80\x80"), Reason.MALFORMED),
    ("cut UTF-8", _with("id", b"\xa1\xe2"), Reason.MALFORMED),
    ("not UTF-8 as label", _with("y", b"\xa1\xff"), Reason.MALFORMED),
    ("not UTF-8 as field", b"\x81\xa1\xff\x01", Reason.MALFORMED),
    ("1,100 lists deep", b"\x91" * 1_100 + b"\x01", Reason.TOO_DEEP),
    ("1,100 lists deep in x", _with("x", b"\x91" * 1_100 + b"\x01"), Reason.TOO_DEEP),
    ("1,100 maps deep", b"\x81\xa1x" * 1_100 + b"\x01", Reason.TOO_DEEP),
    ("a million lists deep", b"\x91" * 1_000_000, Reason.TOO_DEEP),
    ("declared str of 2^32-1", _with("id", b"\xdb" + _HUGE), Reason.MALFORMED),
    ("declared bin of 2^32-1", _with("x", b"\x81\xa1i\xc6" + _HUGE), Reason.MALFORMED),
    ("declared array of 2^32-1", _with("x", b"\xdd" + _HUGE), Reason.TOO_MANY_ELEMENTS),
    ("declared map of 2^32-1", _with("x", b"\xdf" + _HUGE), Reason.TOO_MANY_ELEMENTS),
    ("declared event of 2^32-1", b"\xdf" + _HUGE, Reason.TOO_MANY_ELEMENTS),
    ("declared array within bounds", _with("x", b"\xdd\x00\x10\x00\x00"), Reason.MALFORMED),
    ("lists of lists beyond bounds", _with("x", b"\xdc\xff\xff" + (b"\xdc\xff\xff" + b"\x01" * 65_535) * 90),
     Reason.TOO_MANY_ELEMENTS),
    ("65 containers", _with("x", b"\xdc\x00\x40" + b"\x90" * 64), Reason.TOO_MANY_ELEMENTS),
    ("65,537 features", _event(x=list(range(65_537))), Reason.TOO_MANY_ELEMENTS),
    ("65,537 packed features", _event(x={"i": _u32s(*range(65_537))}), Reason.TOO_MANY_ELEMENTS),
    ("65,537 rows", batch(n=65_537), Reason.TOO_MANY_ELEMENTS),
    # The shape
    ("empty event", b"\x80", Reason.MISSING_FIELD),
    ("no x", _pack({"y": 1}), Reason.MISSING_FIELD),
    ("delete with neither id nor x", _pack({"op": "delete", "y": 1}), Reason.MISSING_FIELD),
    ("predict without x", _pack({"op": "predict", "id": 3}), Reason.MISSING_FIELD),
    ("unknown field", _event(z=1), Reason.UNKNOWN_FIELD),
    ("field in capitals", _event(OP="insert"), Reason.UNKNOWN_FIELD),
    ("field with a zero byte", _event(**{"\0w": 1}), Reason.UNKNOWN_FIELD),
    ("column in a single event", _event(ids=[1]), Reason.UNKNOWN_FIELD),
    ("duplicate field", b"\x83\xa1x\x90\xa1y\x01\xa1y\x01", Reason.DUPLICATE_FIELD),
    ("duplicate x", b"\x83\xa1x\x90\xa1x\x90\xa1y\x01", Reason.DUPLICATE_FIELD),
    ("op upsert", _event(op="upsert"), Reason.BAD_OP),
    ("op in capitals", _event(op="INSERT"), Reason.BAD_OP),
    ("op drop", _event(op="drop"), Reason.BAD_OP),
    ("empty op", _event(op=""), Reason.BAD_OP),
    ("id of 257 bytes", _event(id="a" * 257), Reason.BAD_ID),
    ("id of 129 two-byte characters", _event(id="\u00e9" * 129), Reason.BAD_ID),
    ("id beyond int64", _event(id=1 << 63), Reason.BAD_ID),
    # The features
    ("feature beyond uint32", _event(x=[1 << 32]), Reason.BAD_FEATURES),
    ("feature below 0", _event(x=[-1]), Reason.BAD_FEATURES),
    ("ids and names", _event(x=[1, "a"]), Reason.BAD_FEATURES),
    ("names and ids", _event(x=["a", 1]), Reason.BAD_FEATURES),
    ("ids and names as keys", _event(x={1: 1, "a": 1}), Reason.BAD_FEATURES),
    ("bool after an id", _event(x=[0, False]), Reason.BAD_FEATURES),
    ("name of 257 bytes", _event(x=["a" * 257]), Reason.BAD_FEATURES),
    ("packed ids of 5 bytes", _event(x={"i": bytes(5)}), Reason.BAD_FEATURES),
    ("fewer values than features", _event(x={"i": [1, 2], "v": [1]}), Reason.BAD_FEATURES),
    ("packed values of 5 bytes", _event(x={"i": _u32s(1), "v": bytes(5)}), Reason.BAD_FEATURES),
    ("one packed value for two", _event(x={"i": _u32s(1, 2), "v": bytes(4)}), Reason.BAD_FEATURES),
    ("repeated id", _event(x=[1, 2, 1]), Reason.REPEATED_FEATURE),
    ("repeated name", _event(x=["a", "b", "a"]), Reason.REPEATED_FEATURE),
    ("repeated key", _with("x", b"\x82\xa1a\x01\xa1a\x02"), Reason.REPEATED_FEATURE),
    ("repeated packed id", _event(x={"i": _u32s(7, 7)}), Reason.REPEATED_FEATURE),
    ("repeated id whose value is 0", _event(x={"i": [3, 3], "v": [1, 0]}), Reason.REPEATED_FEATURE),
    ("repeated id in two encodings", _with("x", b"\x92\x05\xcc\x05"), Reason.REPEATED_FEATURE),
    ("value NaN", _event(x={"a": _NAN}), Reason.BAD_VALUE),
    ("value infinity", _event(x={"a": _INF}), Reason.BAD_VALUE),
    ("value minus infinity", _event(x={"a": -_INF}), Reason.BAD_VALUE),
    ("value float32 NaN", _with("x", b"\x81\xa1a\xca\x7f\xc0\x00\x00"), Reason.BAD_VALUE),
    ("packed value NaN", _event(x={"i": _u32s(1), "v": _f64s(_NAN)}), Reason.BAD_VALUE),
    ("packed float32 infinity", _event(x={"i": _u32s(1), "v": b"\x00\x00\x80\x7f"}), Reason.BAD_VALUE),
    ("listed value True", _event(x={"i": [1], "v": [True]}), Reason.BAD_VALUE),
    ("v without i being columns", _event(x={"v": [1.0]}), Reason.BAD_VALUE),
    # Label, weight, time
    ("no label", _pack({"x": [1]}), Reason.MISSING_LABEL),
    ("delete without label and id", _pack({"op": "delete", "x": [1]}), Reason.MISSING_LABEL),
    ("label on a predict", _event(op="predict"), Reason.UNEXPECTED_LABEL),
    ("label NaN", _event(y=_NAN), Reason.BAD_LABEL),
    ("label infinity", _event(y=_INF), Reason.BAD_LABEL),
    ("label beyond int64", _event(y=1 << 63), Reason.BAD_LABEL),
    ("label of 257 bytes", _event(y="a" * 257), Reason.BAD_LABEL),
    ("weight 0", _event(w=0), Reason.BAD_WEIGHT),
    ("weight that rounds to 0", _event(w=2.0**-21), Reason.BAD_WEIGHT),
    ("weight beyond 2^31", _event(w=2.0**31 + 1), Reason.BAD_WEIGHT),
    ("weight NaN", _event(w=_NAN), Reason.BAD_WEIGHT),
    ("weight infinity", _event(w=_INF), Reason.BAD_WEIGHT),
    ("weight on a predict", _pack({"op": "predict", "x": [1], "w": 1}), Reason.BAD_WEIGHT),
    ("time 0", _event(ts=0), Reason.BAD_TIME),
    ("time beyond 2^53", _event(ts=(1 << 53) + 1), Reason.BAD_TIME),
    ("time a day and 1 ms ahead", _event(ts=TIMESTAMP + 86_400_001), Reason.BAD_TIME),
    # Batches whose structure does not fit
    ("negative n", batch(n=-1), Reason.BAD_BATCH),
    ("n too small", batch(n=1), Reason.BAD_BATCH),
    ("n too large", batch(n=3), Reason.BAD_BATCH),
    ("batch with x", batch(x=[1]), Reason.UNKNOWN_FIELD),
    ("batch with id", batch(id=1), Reason.UNKNOWN_FIELD),
    ("batch without ptr", batch(ptr=None), Reason.MISSING_FIELD),
    ("batch without i", batch(i=None), Reason.MISSING_FIELD),
    ("batch delete without ids and features", batch(op="delete", ptr=None, i=None), Reason.MISSING_FIELD),
    ("ptr not from 0", batch(ptr=_u32s(1, 2, 4)), Reason.BAD_BATCH),
    ("ptr that falls", batch(ptr=_u32s(0, 5, 4)), Reason.BAD_BATCH),
    ("ptr beyond i", batch(ptr=_u32s(0, 2, 5)), Reason.BAD_BATCH),
    ("ptr short of i", batch(ptr=_u32s(0, 2, 3)), Reason.BAD_BATCH),
    ("ptr as a list", batch(ptr=[0, 2, 4]), Reason.BAD_BATCH),
    ("i of 15 bytes", batch(i=bytes(15)), Reason.BAD_BATCH),
    ("i as a map", batch(i={"a": 1}), Reason.BAD_BATCH),
    ("i as text", batch(i="abcd"), Reason.BAD_BATCH),
    ("v short", batch(v=_f64s(1, 2, 3)), Reason.BAD_BATCH),
    ("v as a list", batch(v=[1, 2, 3, 4]), Reason.BAD_BATCH),
    ("y short", batch(y=b"\x00"), Reason.BAD_BATCH),
    ("y list short", batch(y=[1]), Reason.BAD_BATCH),
    ("y one int", batch(y=1), Reason.BAD_BATCH),
    ("ids short", batch(ids=["a"]), Reason.BAD_BATCH),
    ("ids as bin", batch(ids=bytes(16)), Reason.BAD_BATCH),
    ("w short", batch(w=_f64s(1)), Reason.BAD_BATCH),
    ("w one number", batch(w=1.0), Reason.BAD_BATCH),
    ("ts short", batch(ts=bytes(8)), Reason.BAD_BATCH),
    ("ts as a list", batch(ts=[1, 2]), Reason.BAD_TIME),
    ("ts 0 for all", batch(ts=0), Reason.BAD_TIME),
    ("batch op a list", batch(op=["insert", "insert"]), Reason.BAD_OP),
    ("batch predict with labels", batch(op="predict"), Reason.UNEXPECTED_LABEL),
    ("batch predict with weights", batch(op="predict", y=None, w=_f64s(1, 1)), Reason.BAD_WEIGHT),
    ("batch insert without labels", batch(y=None), Reason.MISSING_LABEL),
    *_types(),
    *_truncated(),
]  # fmt: skip

# Batches of two rows whose second row alone is bad.
HOSTILE_ROWS: list[tuple[str, bytes, Reason]] = [
    ("repeated id", batch(i=_u32s(1, 2, 3, 3)), Reason.REPEATED_FEATURE),
    ("repeated id, not ascending", batch(ptr=_u32s(0, 1, 4), i=_u32s(1, 4, 3, 4)), Reason.REPEATED_FEATURE),
    ("repeated name", batch(i=["a", "b", "c", "c"]), Reason.REPEATED_FEATURE),
    ("ids and names", batch(i=[1, 2, "a", 3]), Reason.BAD_FEATURES),
    ("value NaN", batch(v=_f64s(1, 2, 3, _NAN)), Reason.BAD_VALUE),
    ("float32 infinity", batch(v=struct.pack("<4f", 1, 2, 3, _INF)), Reason.BAD_VALUE),
    ("bool as id", batch(ids=["a", True]), Reason.BAD_ID),
    ("long id", batch(ids=["a", "b" * 257]), Reason.BAD_ID),
    ("label nil", batch(y=[1, None]), Reason.BAD_LABEL),
    ("label NaN", batch(y=_f64s(1, _NAN)), Reason.BAD_LABEL),
    ("weight 0", batch(w=_f64s(1, 0)), Reason.BAD_WEIGHT),
    ("weight a string", batch(w=[1, "2"]), Reason.BAD_WEIGHT),
    ("time 0", batch(ts=struct.pack("<2q", 5, 0)), Reason.BAD_TIME),
    ("time far ahead", batch(ts=struct.pack("<2q", 5, TIMESTAMP + 86_400_001)), Reason.BAD_TIME),
    ("delete with no id", _pack({"n": 2, "op": "delete", "ids": [1, None]}), Reason.MISSING_FIELD),
    ("delete with no id and label", batch(op="delete", y=None, ids=[1, None]), Reason.MISSING_LABEL),
]
