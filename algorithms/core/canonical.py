"""The features of many examples, made what kernels want; those of one come from given.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int8s, Int64s, UInt32s
from algorithms.core.events import Batch, Events, Status

Bools = npt.NDArray[np.bool_]


class InOrder(NamedTuple):
    """The features of n examples, ascending in each."""

    row: Int64s  # int64[entries], which example
    feature: Int64s  # int64[entries]
    value: Float64s  # float64[entries]
    repeated: Bools  # bool[n], which examples name a feature twice


def in_order(pointer: Int64s, feature: UInt32s, value: Float64s) -> InOrder:
    """Return entries in order. O(entries), with a sort where they are not in order."""
    n = len(pointer) - 1
    number = feature.astype(np.int64)
    row = np.repeat(np.arange(n), np.diff(pointer))
    if not (np.diff(number) + (np.diff(row) << 33) > 0).all():
        order = np.lexsort((number, row))
        number, value = number[order], value[order]
    repeated = np.zeros(n, np.bool_)
    repeated[row[1:][(np.diff(number) == 0) & (np.diff(row) == 0)]] = True
    return InOrder(row, number, value, repeated)


def refusals(events: Events, wrong: Int64s | Bools, repeated: Bools, looked_at: Bools) -> Int8s:
    """Return int8[n], the `Status` of each event that is refused for its features, 0 of the others.

    Parameters
    ----------
    events : Events
        All of them.
    wrong : int64[..] or bool[n]
        Those that have a value that is none for its feature.
    repeated : bool[n]
        Those that name a feature twice.
    looked_at : bool[n]
        Those of which somebody looks at the features.
    """
    status = np.zeros(len(events.op), np.int8)
    status[wrong] = Status.WRONG_VALUE
    status[repeated] = Status.REPEATED_FEATURE
    status[~looked_at] = 0
    return status


def batch_of(events: Events, refused: Int8s | None = None, **columns: Any) -> Batch:
    """Return events as kernels take them, those skipped that are refused.

    `columns` are what changes, and what the kernel reads beside the columns that all do.
    """
    op = events.op if refused is None else np.where(refused > 0, np.int8(-1), events.op).astype(np.int8)
    batch = Batch(events.key, op, events.label, events.weight, events.time, events.pointer, events.feature)
    return batch._replace(**columns)
