"""Decoded events: one row an event, features in CSR form, everything in flat arrays.

This is what the codec hands to the models. Nothing in it depends on a model's settings; classes,
feature space and weights are checked against the model later.
"""

from __future__ import annotations

from typing import NamedTuple

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt8s, UInt32s, UInt64s
from algorithms.core.events import DELETE, DROP, INSERT, PREDICT
from algorithms.core.fixed_point import UNIT

__all__ = [
    "DELETE",
    "DROP",
    "INSERT",
    "LABEL",
    "PREDICT",
    "Events",
    "Float64s",
    "Int8s",
    "Int32s",
    "Int64s",
    "UInt8s",
    "UInt32s",
    "UInt64s",
]

LABEL = 4  # of a pending example; an op of no pool: worker/late/ makes an insert of it

# Kinds of label (`Events.label_kind`)
NO_LABEL, INT_LABEL, FLOAT_LABEL, TEXT_LABEL = 0, 1, 2, 3

# What the features of an event are (`Events.space`)
NO_FEATURES, IDS, NAMES = 0, 1, 2

NO_ID, INT_ID, TEXT_ID = 0, 1, 2  # kinds of example id (`Events.id_kind`)

WEIGHT_UNIT = UNIT  # weights are int64 multiples of 2^-20, so that a delete undoes an insert to the bit


class Events(NamedTuple):
    """The readable events of one `Records`, ascending by (record, row)."""

    buffer: UInt8s  # the bytes that the *_start columns point into
    record: Int32s  # int32[n], index of the record in its `Records`
    row: Int32s  # int32[n], row inside a columnar record, 0 for a single event
    op: Int8s  # int8[n]
    time: Int64s  # int64[n], event time in ms, at least 1
    weight: Int64s  # int64[n], in WEIGHT_UNIT-ths, > 0
    id_kind: Int8s  # int8[n]
    id_high: UInt64s  # uint64[n], 128-bit digest of the id (kind and content), 0 without one
    id_low: UInt64s  # uint64[n]
    id_start: Int64s  # int64[n], the id's own msgpack bytes in `buffer`
    id_size: Int32s  # int32[n]
    label_kind: Int8s  # int8[n]
    label: Int64s  # int64[n]: the int; the float's bits; where the text starts in `buffer`
    label_size: Int32s  # int32[n], bytes of a TEXT_LABEL
    space: Int8s  # int8[n]
    pointer: Int64s  # int64[n + 1], CSR row pointer into the three columns below
    feature: UInt32s  # uint32[ones], the id (space IDS), else 0
    name_start: Int64s  # int64[ones], where the name starts in `buffer` (space NAMES), else 0
    name_size: Int32s  # int32[ones], bytes of the name
    value: Float64s  # float64[ones], never 0 and never NaN; 1.0 where the event lists what is present
