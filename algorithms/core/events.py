"""Events, the same for all kinds of models: what they ask for, their columns, and what became of them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt32s
from algorithms.core.fixed_point import UNIT

Labels = npt.NDArray[Any]


class Op(IntEnum):
    """What an event asks for."""

    INSERT = 0
    DELETE = 1
    PREDICT = 2
    DROP = 3  # forget the whole key


class OnDuplicate(IntEnum):
    """What to do with an insert whose id is live."""

    REJECT = 0
    IGNORE = 1
    REPLACE = 2


class Status(IntEnum):
    """What became of an event; codes behind `SKIPPED` are refusals, which change nothing."""

    APPLIED = 0
    IGNORED = 1  # an example of weight 0; a repeated id, with on_duplicate "ignore"
    ALREADY_DROPPED = 2  # a delete of an example that the window had dropped before
    SKIPPED = 3  # the caller had refused the event before
    DUPLICATE_ID = 4
    ABSENT_ID = 5
    ABSENT_EXAMPLE = 6
    CANNOT_FORGET = 7  # a delete: a tree that only grows cannot undo an example
    TOO_MANY_KEYS = 8
    TOO_MANY_LIVE_IDS = 9
    COUNT_OVERFLOW = 10
    WRONG_LABEL = 11
    WRONG_WEIGHT = 12
    WRONG_VALUE = 13  # not finite, too large, or no category
    REPEATED_FEATURE = 14


# The same as plain numbers, for kernels.
INSERT, DELETE, PREDICT, DROP = (int(op) for op in Op)
# An op that is no user's: the oldest example of all keys goes if it is due, where a window is a span of time.
LET_GO = 5  # 4 is the op of labels in records, which no pool sees
# Two more, of trees that wait for looks: look through all of it; skipped where that could change it.
LOOK, ASK = 6, 7
TEST_THEN_TRAIN = 8  # to a tree that grows: PREDICT, then INSERT of an example that is fit to be learned
APPLIED, IGNORED, ALREADY_DROPPED, SKIPPED = range(4)
DUPLICATE_ID, ABSENT_ID, ABSENT_EXAMPLE, CANNOT_FORGET = range(4, 8)
TOO_MANY_KEYS, TOO_MANY_LIVE_IDS, COUNT_OVERFLOW = range(8, 11)
WRONG_LABEL, WRONG_WEIGHT, WRONG_VALUE, REPEATED_FEATURE = range(11, 15)

# Why a kernel stopped: all events are applied; there is something to tell of the event before. All else is what
# must be enlarged before it can go on, of which each kernel has its own.
DONE, TOLD = 0, 1


# Columns of `Events.clock`.
WHEN = 0  # what the clock shows; of an insert the stamp that its example gets
SINCE, LEFT = 1, 2  # of a LET_GO, to which the pool writes it: the stamp of what went, how many more are due

_NO_CLOCK = np.zeros((0, 3), np.int64)


class Events(NamedTuple):
    """Events for a pool, in order: one row an event, features in CSR form."""

    key: Int32s  # int32[n], the number of the key whose event it is, from 0: each key has a model, an instance
    op: Int8s  # int8[n], an `Op`; negative: skip
    label: Labels  # int32[n], the number of the class; of regression float64[n], finite, up to 1e140 in size
    weight: Int64s  # int64[n], in units of 2^-20
    time: Int64s  # int64[n], event time in ms; only what is due by time depends on it
    named: Int8s  # int8[n], 1 where the example has an id
    id_high: Int64s  # int64[n], 61 bits of the digest of the id
    id_low: Int64s  # int64[n], 61 more
    pointer: Int64s  # int64[n + 1], where the features of each example begin, and end
    feature: UInt32s  # uint32[entries], ids or numbers of names, in any order
    value: Float64s  # float64[entries], 1 where the feature is just present; 0 is the same as absent
    clock: Int64s = _NO_CLOCK  # int64[n, 3], where a window is a span of time, else of no size

    @classmethod
    def of(
        cls,
        op: Int8s,
        label: Labels,
        pointer: Int64s,
        feature: UInt32s,
        value: Float64s | None = None,
        **others: Any,
    ) -> Events:
        """Return events of which only what is given is known: else of key 0, weight 1, no id, time 1, value 1."""
        n = len(op)
        zeros = np.zeros(n, np.int64)
        columns = cls(
            key=np.zeros(n, np.int32),
            op=op,
            label=label,
            weight=np.full(n, UNIT, np.int64),
            time=np.ones(n, np.int64),
            named=np.zeros(n, np.int8),
            id_high=zeros,
            id_low=zeros,
            pointer=pointer,
            feature=feature,
            value=np.ones(len(feature)) if value is None else value,
        )
        return columns._replace(**others) if others else columns


UNREAD: Any = None  # a column that a kernel does not read: it takes less to compile without it


class Batch(NamedTuple):
    """Events as kernels take them: the columns of `Events` that one reads, and more of each feature."""

    key: Int32s
    op: Int8s  # negative, too, where an event is refused for its features
    label: Labels
    weight: Int64s
    time: Int64s
    pointer: Int64s
    feature: UInt32s  # no repeats in an example; of trees ascending
    value: Float64s = UNREAD  # finite
    kind: Int8s = UNREAD  # int8[entries], a `Kind`
    bits: Int64s = UNREAD  # int64[entries], of the values
    named: Int8s = UNREAD
    id_high: Int64s = UNREAD
    id_low: Int64s = UNREAD
    clock: Int64s = UNREAD
