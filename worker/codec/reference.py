"""The decoder in plain Python: what a record means, and what is wrong with one that means nothing.

It is the oracle of the fast decoder and the judge of every record that the fast one leaves. Decoding
never raises on what a record holds: each row comes back as an `Event` or as a `Fault`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, TypeGuard

import msgpack

from worker.codec.bounds import Bounds
from worker.codec.events import DELETE, DROP, INSERT, LABEL, PREDICT, WEIGHT_UNIT
from worker.codec.reasons import Reason
from worker.codec.survey import RefusedError, survey

Id: TypeAlias = int | str
Label: TypeAlias = int | float | str
Fields: TypeAlias = Mapping[str, Any]
Parts: TypeAlias = tuple[Sequence[Any], Sequence[Any] | None]  # features and their values, not judged yet

OPS = {"insert": INSERT, "delete": DELETE, "predict": PREDICT, "label": LABEL}
LATEST = 1 << 53  # ms; also the largest int that a float64 reader of the outputs keeps exact
HEAVIEST = 1 << 31
SINGLE_FIELDS = ("op", "id", "x", "y", "w", "ts")
BATCH_FIELDS = ("n", "ptr", "i", "v", "y", "op", "ids", "w", "ts")


@dataclass(frozen=True, slots=True)
class Event:
    """One readable event.

    Parameters
    ----------
    op
        INSERT, DELETE, PREDICT, LABEL or DROP of `worker.codec.events`.
    time
        Event time in ms, at least 1.
    weight
        In WEIGHT_UNIT-ths, above 0.
    id
        The example's id, None without one.
    label
        The label, None without one.
    features
        Feature ids (all int) or names (all str), as sent, without those whose value is 0.
    values
        One finite number other than 0 for each feature; 1.0 where the event lists what is present.
    """

    op: int
    time: int
    weight: int = WEIGHT_UNIT
    id: Id | None = None
    label: Label | None = None
    features: tuple[int, ...] | tuple[str, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row (`row` is None: the whole record) is refused; `detail` is a sentence for a person."""

    row: int | None
    reason: Reason
    detail: str


def check_key(key: bytes | None, bounds: Bounds) -> Fault | None:
    """Return what is wrong with a record's key, None where it can name a model."""
    if key is None:
        return Fault(None, Reason.NO_KEY, "expected a record key that names the model, found none; set the key")
    if len(key) > bounds.key_bytes:
        detail = (
            f"expected a key of at most {bounds.key_bytes} bytes, it has {len(key)}; "
            "shorten it or raise bounds.key_bytes"
        )
        return Fault(None, Reason.KEY_TOO_LONG, detail)
    return None


def decode(value: bytes | None, timestamp: int, bounds: Bounds) -> list[Event | Fault]:
    """Read one record's value.

    Parameters
    ----------
    value
        The record's value; None is a tombstone and reads as one DROP.
    timestamp
        The record's timestamp in ms; 0 and below mean that it has none.
    bounds
        What the record may hold at most.

    Returns
    -------
    list
        One entry a row, in order; or a single `Fault` with row None where the whole record is refused.
    """
    if value is None:
        return [Event(DROP, max(timestamp, 1))]
    try:
        fields = _fields(value, bounds)
        if "n" in fields:
            return _batch(fields, timestamp, bounds)
        return [_event(fields, _parts(fields["x"]) if "x" in fields else None, timestamp, bounds)]
    except RefusedError as refused:
        return [Fault(None, refused.reason, refused.detail)]


def _fields(value: bytes, bounds: Bounds) -> Fields:
    if len(value) > bounds.record_bytes:
        raise RefusedError(
            Reason.TOO_LARGE,
            f"expected at most {bounds.record_bytes} bytes, the record has {len(value)}; "
            "send smaller records or raise bounds.record_bytes",
        )
    survey(value, bounds)
    # Maps come as tuples of pairs, lists as lists: so duplicate keys are seen, and no key is hashed.
    event = msgpack.unpackb(value, raw=False, strict_map_key=False, object_pairs_hook=tuple)
    if not isinstance(event, tuple):
        raise RefusedError(Reason.NOT_A_MAP, f"expected a map of fields, found {brief(event)}; send a msgpack map")
    allowed = BATCH_FIELDS if any(isinstance(name, str) and name == "n" for name, _ in event) else SINGLE_FIELDS
    fields: dict[str, Any] = {}
    for name, content in event:
        if not isinstance(name, str):
            raise RefusedError(
                Reason.BAD_FIELD_NAME, f"expected strings as field names, found {brief(name)}; name the field"
            )
        if name not in allowed:
            raise RefusedError(
                Reason.UNKNOWN_FIELD,
                f"expected the fields {', '.join(allowed)}, found {brief(name)}; leave it out",
            )
        if name in fields:
            raise RefusedError(
                Reason.DUPLICATE_FIELD, f"expected each field once, {name} comes again; send it once"
            )
        fields[name] = content
    return fields


# One event


def _event(fields: Fields, x: Parts | None, timestamp: int, bounds: Bounds) -> Event:
    op = _op(fields.get("op", "insert"))
    example = _id(fields["id"], bounds) if "id" in fields else None
    by_id = op in (DELETE, LABEL) and example is not None
    if op == LABEL and not by_id:
        raise _without_id("id")
    if op == LABEL and x is not None:
        raise _with_features("x")
    if x is None and not by_id:
        raise RefusedError(
            Reason.MISSING_FIELD, "expected the features in x, found no x; send x, or an id with a delete"
        )
    features, values = _features(*x, bounds) if x is not None else ((), ())
    if "y" in fields and op == PREDICT:
        raise RefusedError(Reason.UNEXPECTED_LABEL, "expected no label on a predict, found y; leave it out")
    if "y" not in fields and (op == LABEL or not (by_id or op == PREDICT)):
        raise RefusedError(
            Reason.MISSING_LABEL, "expected a label in y, found none; send y, or an id with a delete"
        )
    label = _label(fields["y"], bounds) if "y" in fields else None
    if "w" in fields and op == PREDICT:
        raise RefusedError(Reason.BAD_WEIGHT, "expected no weight on a predict, found w; leave it out")
    weight = _weight(fields["w"]) if "w" in fields else WEIGHT_UNIT
    time = _time(fields["ts"], timestamp, bounds) if "ts" in fields else max(timestamp, 1)
    return Event(op, time, weight, example, label, features, values)


def _without_id(field: str) -> RefusedError:
    return RefusedError(
        Reason.MISSING_FIELD, f"expected the {field} of what was predicted, found none; send it with the label"
    )


def _with_features(field: str) -> RefusedError:
    return RefusedError(
        Reason.BAD_FEATURES,
        f"expected no features on a label, the predict had them, found {field}; leave it out, or send an insert",
    )


def _op(op: object) -> int:
    if not isinstance(op, str) or op not in OPS:
        # Labels are not named: what replays make of such a record stays what it was before there were any.
        raise RefusedError(
            Reason.BAD_OP, f"expected op insert, delete or predict, found {brief(op)}; send one of them"
        )
    return OPS[op]


def _id(example: object, bounds: Bounds) -> Id:
    if _is_int(example) and example < 1 << 63:
        return example
    if isinstance(example, str) and len(example.encode()) <= bounds.id_bytes:
        return example
    raise RefusedError(
        Reason.BAD_ID,
        f"expected an id that is a 64-bit signed int or a string of at most {bounds.id_bytes} bytes, "
        f"found {brief(example)}; send such an id",
    )


def _parts(x: object) -> Parts:
    """Return the features of x, not judged yet, and their values (None: all present ones are 1)."""
    if isinstance(x, list):
        return x, None
    if not isinstance(x, tuple):
        raise RefusedError(
            Reason.BAD_FEATURES,
            f"expected x to be a list, a map of numbers, or a map of i and v, found {brief(x)}; "
            "send one of these forms",
        )
    names = [name for name, _ in x]
    content = [value for _, value in x]
    if names not in (["i"], ["i", "v"], ["v", "i"]) or not isinstance(content[names.index("i")], list | bytes):
        return names, content
    features = _unpack_ids(content[names.index("i")])
    if len(names) == 1:
        return features, None
    values = _unpack_values(content[names.index("v")], len(features))
    if len(values) != len(features):
        raise RefusedError(
            Reason.BAD_FEATURES,
            f"expected as many values as features, found {len(values)} and {len(features)}; "
            "send one value a feature",
        )
    return features, values


def _unpack_ids(packed: list[Any] | bytes) -> Sequence[Any]:
    if isinstance(packed, list):
        return packed
    if len(packed) % 4:
        raise RefusedError(
            Reason.BAD_FEATURES,
            f"expected i to be packed uint32, 4 bytes a feature, found {len(packed)} bytes; pack it so",
        )
    return struct.unpack(f"<{len(packed) // 4}I", packed)


def _unpack_values(packed: object, count: int) -> Sequence[Any]:
    if isinstance(packed, list):
        return packed
    if isinstance(packed, bytes):
        if len(packed) == 8 * count:
            return struct.unpack(f"<{count}d", packed)
        if len(packed) == 4 * count:
            return struct.unpack(f"<{count}f", packed)
    raise RefusedError(
        Reason.BAD_FEATURES,
        f"expected v to be a list or bin of float32 or float64, {4 * count} or {8 * count} bytes for "
        f"{count} features, found {brief(packed)}; pack it so",
    )


def _features(
    features: Sequence[Any], values: Sequence[Any] | None, bounds: Bounds
) -> tuple[tuple[int, ...] | tuple[str, ...], tuple[float, ...]]:
    if len(features) > bounds.features:
        raise RefusedError(
            Reason.TOO_MANY_ELEMENTS,
            f"expected at most {bounds.features} features, the event has {len(features)}; "
            "send fewer or raise bounds.features",
        )
    named = bool(features) and isinstance(features[0], str)
    for feature in features:
        if not (_is_name(feature, bounds) if named else _is_int(feature) and 0 <= feature < 1 << 32):
            expected = (
                f"names of at most {bounds.name_bytes} bytes, as the first feature is a name"
                if named
                else "ids from 0 to 4294967295"
            )
            raise RefusedError(
                Reason.BAD_FEATURES,
                f"expected features to be {expected}, found {brief(feature)}; use one kind",
            )
    if len(set(features)) != len(features):
        seen: set[Any] = set()
        for feature in features:
            if feature in seen:
                raise RefusedError(
                    Reason.REPEATED_FEATURE,
                    f"expected each feature once, {brief(feature)} comes again; send it once",
                )
            seen.add(feature)
    if values is None:
        return tuple(features), (1.0,) * len(features)
    numbers = [_value(value) for value in values]
    present = [k for k, number in enumerate(numbers) if number != 0]
    return tuple(features[k] for k in present), tuple(numbers[k] for k in present)


def _value(value: object) -> float:
    if not _is_number(value) or not math.isfinite(value):
        raise RefusedError(
            Reason.BAD_VALUE,
            f"expected feature values to be finite numbers, found {brief(value)}; leave it out",
        )
    return float(value)


def _label(label: object, bounds: Bounds) -> Label:
    if isinstance(label, float) and math.isfinite(label):
        return label + 0.0  # -0.0 and 0.0 are one label, so that one deletes the other
    if _is_int(label) and label < 1 << 63:
        return label
    if _is_name(label, bounds):
        return label
    raise RefusedError(
        Reason.BAD_LABEL,
        f"expected y to be a 64-bit signed int, a finite float or a string of at most {bounds.name_bytes} "
        f"bytes, found {brief(label)}; send such a label",
    )


def _weight(weight: object) -> int:
    if _is_number(weight) and 0 < weight <= HEAVIEST:
        units = round(float(weight) * WEIGHT_UNIT)
        if units > 0:
            return units
    raise RefusedError(
        Reason.BAD_WEIGHT,
        f"expected w to be a number from 2^-20 to 2^31, found {brief(weight)}; send such a weight",
    )


def _time(time: object, timestamp: int, bounds: Bounds) -> int:
    if not _is_int(time) or not 1 <= time <= LATEST:
        raise RefusedError(
            Reason.BAD_TIME,
            f"expected ts to be an int from 1 to 2^53 (ms), found {brief(time)}; send such a time",
        )
    if timestamp > 0 and time - timestamp > bounds.ahead_ms:
        raise RefusedError(
            Reason.BAD_TIME,
            f"expected ts at most {bounds.ahead_ms} ms after the record's timestamp {timestamp}, "
            f"found {time}; correct the clock or raise bounds.ahead_ms",
        )
    return time


# Events in columns


def _batch(fields: Fields, timestamp: int, bounds: Bounds) -> list[Event | Fault]:
    n = fields["n"]
    if not _is_int(n) or n < 0:
        raise _bad_batch(f"n to be the number of rows, found {brief(n)}")
    if n > bounds.rows:
        raise RefusedError(
            Reason.TOO_MANY_ELEMENTS,
            f"expected at most {bounds.rows} rows, the record has {n}; send fewer or raise bounds.rows",
        )
    op = _op(fields.get("op", "insert"))
    by_id = op in (DELETE, LABEL) and "ids" in fields
    if op == LABEL and not by_id:
        raise _without_id("ids")
    if op == LABEL and (found := [name for name in ("ptr", "i", "v") if name in fields]):
        raise _with_features(found[0])
    if ("ptr" in fields) != ("i" in fields) or ("i" not in fields and ("v" in fields or not by_id)):
        raise RefusedError(
            Reason.MISSING_FIELD,
            "expected the columns ptr and i, found not both; send them, or ids alone with op delete",
        )
    if op == PREDICT and "y" in fields:
        raise RefusedError(Reason.UNEXPECTED_LABEL, "expected no labels on a predict, found y; leave it out")
    if op == PREDICT and "w" in fields:
        raise RefusedError(Reason.BAD_WEIGHT, "expected no weights on a predict, found w; leave it out")
    if "y" not in fields and (op == LABEL or not (op == PREDICT or by_id)):
        raise RefusedError(Reason.MISSING_LABEL, "expected the labels in y, found none; send y")
    if "ts" in fields and not isinstance(fields["ts"], bytes):
        _time(fields["ts"], timestamp, bounds)
    xs = _rows_of_x(fields, n, bounds) if "ptr" in fields else [None] * n
    columns = {
        field: _column(name, fields[name], n)
        for name, field in (("ids", "id"), ("y", "y"), ("w", "w"), ("ts", "ts"))
        if name in fields
    }
    rows: list[Event | Fault] = []
    for k in range(n):
        row = {"op": fields.get("op", "insert")} | {field: column[k] for field, column in columns.items()}
        if row.get("id", 0) is None:  # nil in ids: a row without an id
            del row["id"]
        try:
            rows.append(_event(row, xs[k], timestamp, bounds))
        except RefusedError as refused:
            rows.append(Fault(k, refused.reason, refused.detail))
    return rows


def _rows_of_x(fields: Fields, n: int, bounds: Bounds) -> Sequence[Parts]:
    packed = fields["ptr"]
    if not isinstance(packed, bytes) or len(packed) != 4 * (n + 1):
        raise _bad_batch(f"ptr to be packed uint32, {4 * (n + 1)} bytes for {n} rows, found {brief(packed)}")
    pointer = struct.unpack(f"<{n + 1}I", packed)
    features: Sequence[Any]
    match fields["i"]:
        case bytes() as data if len(data) % 4 == 0:
            features = struct.unpack(f"<{len(data) // 4}I", data)
        case list() as features:
            pass
        case other:
            raise _bad_batch(f"i to be packed uint32 or a list, found {brief(other)}")
    if len(features) > bounds.elements:
        raise RefusedError(
            Reason.TOO_MANY_ELEMENTS,
            f"expected at most {bounds.elements} features in a record, it has {len(features)}; "
            "send smaller records or raise bounds.elements",
        )
    if pointer[0] != 0 or pointer[-1] != len(features) or any(a > b for a, b in pairwise(pointer)):
        raise _bad_batch(f"ptr to rise from 0 to the number of features, {len(features)}, found other numbers")
    spans = [slice(start, stop) for start, stop in pairwise(pointer)]
    if "v" not in fields:
        return [(features[span], None) for span in spans]
    packed = fields["v"]
    if not isinstance(packed, bytes) or len(packed) not in (4 * len(features), 8 * len(features)):
        raise _bad_batch(f"v to be packed float32 or float64, one for each i, found {brief(packed)}")
    values = _unpack_values(packed, len(features))
    return [(features[span], values[span]) for span in spans]


def _column(name: str, content: object, n: int) -> Sequence[Any]:
    """Return the cells of one of the columns ids, y, w and ts; each is judged with its row."""
    if name == "ts" and _is_int(content):
        return [content] * n
    if name != "ts" and isinstance(content, list) and len(content) == n:
        return content
    if isinstance(content, bytes):
        if name == "y" and len(content) == n:
            return content  # uint8 labels: the bytes are the ints
        if name in _PACKED and len(content) == 8 * n:
            return struct.unpack(f"<{n}{_PACKED[name]}", content)
    raise _bad_batch(f"{name} to hold {n} rows, {_COLUMN_FORMS[name]}, found {brief(content)}")


_PACKED = {"y": "d", "w": "d", "ts": "q"}
_COLUMN_FORMS = {
    "ids": "as a list",
    "y": "as packed uint8 or float64 or as a list",
    "w": "as packed float64 or as a list",
    "ts": "as one int for all or packed int64",
}


def _bad_batch(expected: str) -> RefusedError:
    return RefusedError(Reason.BAD_BATCH, f"expected {expected}; make the columns fit together")


# Kinds of values


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_name(value: object, bounds: Bounds) -> TypeGuard[str]:
    return isinstance(value, str) and len(value.encode()) <= bounds.name_bytes


def brief(value: object) -> str:
    """Return a value as a few words: never long, never recursive, the same on every machine."""
    if isinstance(value, str | bytes) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}... ({len(value)} long)"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, tuple):
        return f"a map of {len(value)}"
    return "nil" if value is None else repr(value)


_SHOWN = 40
