"""The fast decoder: a batch of record values into `Events` columns, no Python object an event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgpack
import numpy as np

from worker.codec.bounds import Bounds
from worker.codec.events import DELETE, INSERT, LABEL, PREDICT, WEIGHT_UNIT, Events, Int64s
from worker.codec.kernel import (
    FULL_ONES,
    FULL_ROWS,
    PADDING,
    SKIPPED,
    TOMBSTONE,
    Limits,
    Pieces,
    Scratch,
    fill,
)
from worker.codec.reasons import Reason
from worker.codec.reference import BATCH_FIELDS, LATEST, Event, check_key, decode
from worker.codec.wire import Bools

_OPS = {INSERT: "insert", DELETE: "delete", PREDICT: "predict", LABEL: "label"}


@dataclass(frozen=True, slots=True)
class RecordFault:
    """Why a record, or one row of it, is refused.

    Parameters
    ----------
    record
        Index of the record in the batch.
    row
        Row inside a columnar record; None where the whole record is refused.
    reason, detail
        As in `worker.codec.reference.Fault`.
    """

    record: int
    row: int | None
    reason: Reason
    detail: str


def decode_batch(
    values: Sequence[bytes | None],
    timestamps: Int64s,
    bounds: Bounds,
    keys: Sequence[bytes | None],
) -> tuple[Events, list[RecordFault]]:
    """Read the values of a batch of records; the result does not depend on how records are batched.

    Parameters
    ----------
    values
        One a record; None is a tombstone.
    timestamps
        int64[n], ms; 0 and below mean that the record has none.
    bounds
        What a record may hold at most.
    keys
        One a record.

    Returns
    -------
    tuple
        The events, and the faults of the records and rows that are none; both ascending by (record, row).
    """
    faults = _key_faults(keys, bounds)
    sizes = _sizes(values)
    if faults:
        values = list(values)
        for unkeyed in faults:
            values[unkeyed.record] = None
            sizes[unkeyed.record] = SKIPPED
    pieces = _whole_records(sizes, timestamps)
    events = _read(values, pieces, bounds)
    if pieces.left.any():
        values, pieces = _judge(values, pieces, bounds, faults)
        events = _read(values, pieces, bounds)
        assert not pieces.left.any(), "expected the kernel to read every canonical event; it left one"
        faults.sort(key=lambda fault: (fault.record, -1 if fault.row is None else fault.row))
    return events, faults


def read_plain(values: Sequence[bytes | None], timestamps: Int64s, bounds: Bounds) -> tuple[Events, Bools]:
    """Read what the kernel understands by itself; return its events and bool[n], the records that it left."""
    pieces = _whole_records(_sizes(values), timestamps)
    return _read(values, pieces, bounds), pieces.left


def _whole_records(sizes: Int64s, timestamps: Int64s) -> Pieces:
    n = sizes.size
    return _pieces(sizes, np.arange(n, dtype=np.int32), np.zeros(n, np.int32), timestamps, np.zeros(n, np.bool_))


def _key_faults(keys: Sequence[bytes | None], bounds: Bounds) -> list[RecordFault]:
    try:
        if max(map(len, cast("Sequence[bytes]", keys)), default=0) <= bounds.key_bytes:
            return []
    except TypeError:  # a record without a key
        pass
    judged = ((record, check_key(key, bounds)) for record, key in enumerate(keys))
    return [RecordFault(record, None, fault.reason, fault.detail) for record, fault in judged if fault]


def _sizes(values: Sequence[bytes | None]) -> Int64s:
    try:
        return np.fromiter(map(len, cast("Sequence[bytes]", values)), np.int64, len(values))
    except TypeError:  # a tombstone: seldom, and to look for one first would take as long
        return np.fromiter((TOMBSTONE if value is None else len(value) for value in values), np.int64, len(values))


def _judge(
    values: Sequence[bytes | None], pieces: Pieces, bounds: Bounds, faults: list[RecordFault]
) -> tuple[list[bytes | None], Pieces]:
    """Put canonical events in the place of the pieces that were left; add what is wrong with the rest."""
    texts: list[bytes | None] = []
    columns: list[tuple[int, int, int, int, bool]] = []  # size, record, row, timestamp, trusted
    for record, value in enumerate(values):
        timestamp = int(pieces.timestamp[record])
        if not pieces.left[record]:
            texts.append(value)
            columns.append((int(pieces.size[record]), record, 0, timestamp, False))
            continue
        for row, outcome in enumerate(decode(value, timestamp, bounds)):
            if isinstance(outcome, Event):
                texts.append(canonical(outcome))
                columns.append((len(texts[-1] or b""), record, row, outcome.time, True))
            else:
                faults.append(RecordFault(record, outcome.row, outcome.reason, outcome.detail))
    sizes, records, rows, timestamps, trusted = zip(*columns, strict=True) if columns else ((),) * 5
    return texts, _pieces(
        np.array(sizes, np.int64),
        np.array(records, np.int32),
        np.array(rows, np.int32),
        np.array(timestamps, np.int64),
        np.array(trusted, np.bool_),
    )


def canonical(event: Event) -> bytes:
    """Return the one form in which an event that has been judged good is written (its time is left out)."""
    fields: dict[str, Any] = {"op": _OPS[event.op]}
    if event.id is not None:
        fields["id"] = event.id
    if event.label is not None:
        fields["y"] = event.label
    if event.weight != WEIGHT_UNIT:
        fields["w"] = event.weight / WEIGHT_UNIT
    if event.op != LABEL:
        fields["x"] = {"i": list(event.features), "v": np.array(event.values, "<f8").tobytes()}
    packed: bytes = msgpack.packb(fields)
    return packed


def _pieces(sizes: Any, records: Any, rows: Any, timestamps: Any, trusted: Any) -> Pieces:
    lengths = np.maximum(sizes, 0)
    starts = np.cumsum(lengths) - lengths
    return Pieces(starts, sizes, records, rows, timestamps, trusted, np.zeros(sizes.size, np.bool_))


def _read(values: Sequence[bytes | None], pieces: Pieces, bounds: Bounds) -> Events:
    joined = bytearray().join([*filter(None, values), bytes(PADDING)])
    limits = Limits(
        bounds.record_bytes,
        bounds.features,
        bounds.rows,
        bounds.elements,
        bounds.name_bytes,
        bounds.id_bytes,
        min(bounds.ahead_ms, LATEST),
    )
    features = min(bounds.features, len(joined))  # a feature takes at least a byte
    scratch = Scratch(
        np.empty(len(BATCH_FIELDS) + 2, np.int64),
        np.empty(features, np.uint64),
        np.empty(2 << features.bit_length(), np.int32),
    )
    # Most features take 3 to 5 bytes; where they take fewer, or rows come in columns, `out` grows.
    rows, ones = pieces.size.size + 1, len(joined) // 3
    columns = {name: np.empty(rows, dtype) for name, dtype in _ROW_COLUMNS.items()}
    columns |= {name: np.empty(ones, dtype) for name, dtype in _ONE_COLUMNS.items()}
    out = Events(buffer=np.frombuffer(joined, np.uint8), pointer=np.zeros(rows + 1, np.int64), **columns)
    status, piece, events = 0, 0, 0
    with np.errstate(over="ignore"):  # digests wrap around; only seen where the compiler is off
        while True:
            status, piece, events = fill(pieces, piece, events, limits, out, scratch)
            if status == FULL_ROWS:
                out = _grown(out, ["pointer", *_ROW_COLUMNS], events + 1)
            elif status == FULL_ONES:
                out = _grown(out, _ONE_COLUMNS, int(out.pointer[events]))
            else:
                return _cut(out, events)


_ROW_COLUMNS = {
    "record": np.int32,
    "row": np.int32,
    "op": np.int8,
    "time": np.int64,
    "weight": np.int64,
    "id_kind": np.int8,
    "id_high": np.uint64,
    "id_low": np.uint64,
    "id_start": np.int64,
    "id_size": np.int32,
    "label_kind": np.int8,
    "label": np.int64,
    "label_size": np.int32,
    "space": np.int8,
}
_ONE_COLUMNS = {"feature": np.uint32, "name_start": np.int64, "name_size": np.int32, "value": np.float64}


def _grown(out: Events, names: Iterable[str], used: int) -> Events:
    """Return `out` with these columns four times as long; they hold `used` entries worth keeping."""
    longer = {}
    for name in names:
        column = getattr(out, name)
        longer[name] = np.empty(4 * column.size + 16, column.dtype)
        kept = column[:used]
        longer[name][: kept.size] = kept
    return out._replace(**longer)


def _cut(out: Events, rows: int) -> Events:
    ones = int(out.pointer[rows])
    columns: dict[str, Any] = {name: getattr(out, name)[:rows] for name in _ROW_COLUMNS}
    columns |= {name: getattr(out, name)[:ones] for name in _ONE_COLUMNS}
    return Events(buffer=out.buffer, pointer=out.pointer[: rows + 1], **columns)
