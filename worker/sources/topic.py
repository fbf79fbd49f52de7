"""A look at some events of a topic: what they hold, as a worker would read them."""

from __future__ import annotations

from collections.abc import Iterable

from worker.codec.bounds import Bounds
from worker.codec.events import DELETE, DROP, INSERT, LABEL, PREDICT
from worker.codec.reference import Event, check_key, decode
from worker.log.browse import Record
from worker.sources.overview import Contents

_ROWS = 500  # of a record, spread over it: one may hold more events than are looked at in all
_OPS = {INSERT: "insert", DELETE: "delete", PREDICT: "predict", DROP: "drop", LABEL: "label"}


def topic_contents(records: Iterable[Record], most_events: int, most_bytes: int) -> Contents:
    """Return what events of records hold, up to the record that has so many of them, or so many bytes in all."""
    found, bounds, size = Contents("records"), Bounds(), 0
    for record in records:
        place = f"{record.source.topic}/{record.source.partition} offset {record.offset}"
        fault = check_key(record.key, bounds)
        rows = [fault] if fault is not None else decode(record.value, record.timestamp, bounds)
        seen = rows[:: -(-len(rows) // _ROWS)]
        found.skipped += len(rows) - len(seen)
        for row in seen:
            if isinstance(row, Event):
                key = (record.key or b"").decode("utf-8", "backslashreplace")
                found.add(key, _OPS[row.op], row.label, row.features, row.values)
            else:
                found.add_bad(place if row.row is None else f"{place} row {row.row}", row.detail)
        size += len(record.value or b"")
        if found.events + found.bad >= most_events or size >= most_bytes:
            break
    return found
