"""Events to record bytes: what a producer sends. Three forms, one meaning: plain, packed, columnar.

Copy this file into a producer that has msgpack and numpy but not Anabranch: it imports nothing else.
What an event may hold is judged by the reader; here only what the bytes could not express is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgpack
import numpy as np

Features: TypeAlias = Iterable[int] | Iterable[str] | Mapping[Any, Any]
Label: TypeAlias = int | float | str
Id: TypeAlias = int | str


def encode_event(
    x: Features | None = None,
    y: Label | None = None,
    *,
    op: str = "insert",
    id: Id | None = None,
    w: float | None = None,
    ts: int | None = None,
    packed: bool = False,
) -> bytes:
    """Return the value of the record that holds one event.

    Parameters
    ----------
    x
        The features: ids or names of those present; or a mapping of ids or names to numbers, where
        absent means 0; or already as on the wire, ``{"i": ids, "v": numbers}``.
    y
        The label: 0 or 1, the name of a class, or a number. None on a predict.
    op
        "insert", "delete", "predict" or "label".
    id
        Names the example, so that a delete can name it; a delete by id needs nothing else. A label names what was
        predicted with this id before, and has no features.
    w
        Weight above 0, 1 where none is given.
    ts
        Event time in ms since the epoch; where none is given, the record's timestamp is taken.
    packed
        Write feature ids as little-endian uint32 and numbers as float64: quicker to read.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        Where the features are names, or no uint32, and are to be packed; where something is not of a
        type, or a size, that msgpack has.

    Examples
    --------
    >>> encode_event([3, 17], 1).hex(" ")
    '82 a1 78 92 03 11 a1 79 01'
    >>> spam = encode_event(["free", "win"], "spam", id="message 7")
    >>> gone = encode_event(op="delete", id="message 7")
    >>> late = encode_event(op="label", id="message 8", y="ham")
    """
    fields: dict[str, Any] = {} if op == "insert" else {"op": op}
    if id is not None:
        fields["id"] = id
    if x is not None:
        fields["x"] = _packed(x) if packed else _plain(x)
    fields |= {name: value for name, value in (("y", y), ("w", w), ("ts", ts)) if value is not None}
    return _bytes(fields)


def encode_batch(
    xs: Sequence[Features] | None,
    ys: Sequence[Label] | None = None,
    *,
    op: str = "insert",
    ids: Sequence[Id | None] | None = None,
    ws: Sequence[float] | None = None,
    ts: int | Sequence[int] | None = None,
) -> bytes:
    """Return the value of the record that holds many events of one key and one op in columns.

    It means the same as its rows one by one, in their order, and is read many times faster.

    Parameters
    ----------
    xs
        The features of each row, in any form of `encode_event`; all ids or all names. None where
        rows are deleted by id, or labelled.
    ys
        The label of each row; None on a predict or a delete by id.
    op
        "insert", "delete", "predict" or "label", for all rows.
    ids
        The id of each row; None in a row without one.
    ws
        The weight of each row.
    ts
        Event time in ms since the epoch: of each row, or one for all.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        Where columns differ in length, the features are not all ids or all names, or something is
        not of a type that msgpack has.

    Examples
    --------
    >>> value = encode_batch([[3, 17], [3], []], [1, 0, 0], ids=[100, 101, 102])
    """
    columns = [column for column in (xs, ys, ids, ws, ts) if column is not None and not isinstance(column, int)]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise ValueError(
            f"expected columns of one length, got {sorted(lengths)}; give one entry a row in each column"
        )
    fields: dict[str, Any] = {"n": lengths.pop()}
    if xs is not None:
        fields |= _features_in_columns([_parts(x) for x in xs])
    if ys is not None:
        fields["y"] = _label_column(ys)
    if op != "insert":
        fields["op"] = op
    if ids is not None:
        fields["ids"] = list(ids)
    if ws is not None:
        fields["w"] = _pack_numbers(ws)
    if ts is not None:
        fields["ts"] = ts if isinstance(ts, int) else np.asarray(ts, "<i8").tobytes()
    return _bytes(fields)


def _bytes(fields: dict[str, Any]) -> bytes:
    try:
        value: bytes = msgpack.packb(fields)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"expected ints of 64 bits, finite numbers and text that UTF-8 can hold, got others ({error})"
        ) from error
    return value


def _parts(x: Features) -> tuple[list[Any], list[Any] | None]:
    """Return the features and their numbers; None where those listed are simply present."""
    if not isinstance(x, Mapping):
        return _list(x), None
    if is_packed(x):
        return _list(x["i"]), _list(x["v"]) if "v" in x else None
    return list(x), list(x.values())


def is_packed(x: Mapping[Any, Any]) -> bool:
    """Return whether a mapping holds columns. A feature may be called "i" too, but then its value is a number."""
    return "i" in x and x.keys() <= {"i", "v"} and not isinstance(x["i"], int | float)


def _list(column: Any) -> list[Any]:
    if isinstance(column, np.ndarray):
        listed: list[Any] = column.tolist()  # msgpack does not know numpy's own numbers
        return listed
    if isinstance(column, Iterable) and not isinstance(column, str | bytes):
        return list(column)
    raise ValueError(f"expected a list of features or of numbers, got {column!r:.60}; send a list")


def _plain(x: Features) -> Any:
    if not isinstance(x, Mapping):
        # What can be no features (text, a number) goes through as it is, for the reader to refuse.
        return x if isinstance(x, str | bytes) or not isinstance(x, Iterable) else _list(x)
    if x and isinstance(next(iter(x)), int):
        return {"i": list(x), "v": list(x.values())}
    return x


def _packed(x: Features) -> dict[str, bytes]:
    features, values = _parts(x)
    fields = {"i": _pack_ids(features)}
    if values is not None:
        fields["v"] = _pack_numbers(values)
    return fields


def _pack_ids(features: list[Any]) -> bytes:
    # Numpy would turn True into 1, and 2^32 into 0.
    if not all(type(feature) is int and 0 <= feature < 1 << 32 for feature in features):
        raise ValueError(
            "expected feature ids from 0 to 4294967295, got other features; send names in the plain form"
        )
    return np.array(features, "<u4").tobytes()


def _pack_numbers(numbers: Sequence[Any]) -> bytes:
    column = _list(numbers)
    if not all(type(number) in (int, float) for number in column):
        raise ValueError("expected numbers to be packed, got other values; send ints and floats")
    return np.array(column, "<f8").tobytes()


def _features_in_columns(rows: list[tuple[list[Any], list[Any] | None]]) -> dict[str, Any]:
    features = [feature for row, _ in rows for feature in row]
    pointer = np.cumsum([0, *(len(row) for row, _ in rows)])
    if features and all(isinstance(feature, str) for feature in features):
        column: bytes | list[Any] = features
    else:
        column = _pack_ids(features)
    fields: dict[str, Any] = {"ptr": pointer.astype("<u4").tobytes(), "i": column}
    if any(values is not None for _, values in rows):
        numbers = [number for row, values in rows for number in (values or [1.0] * len(row))]
        fields["v"] = _pack_numbers(numbers)
    return fields


def _label_column(labels: Sequence[Label]) -> bytes | list[Label]:
    column = _list(labels)
    if all(type(label) is int and 0 <= label < 256 for label in column):
        return bytes(column)
    if all(type(label) is float for label in column):
        return _pack_numbers(column)
    return column
