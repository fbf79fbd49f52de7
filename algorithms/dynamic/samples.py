"""Samples of `build_tree`, by rows and by columns: what they must be, and how the one is made of the other."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int32s, Int64s, UInt32s, int64
from algorithms.core.canonical import Canonicaliser, plain
from algorithms.core.canonical_rows import are_canonical
from algorithms.core.events import Events, Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.given import check_columns
from algorithms.core.hashing import mix
from algorithms.core.jit import jit
from algorithms.core.schema import Schema
from algorithms.dynamic.canonical import TERMS

_PLAIN: Final = ("C", "A", "W")  # contiguous, aligned, writable: kernels are made for such arrays alone


class Sample(NamedTuple):
    """Examples in CSR columns."""

    pointer: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[entries], any ids, in any order
    value: Float64s  # float64[entries], finite; 0 is the same as absent
    label: Int64s  # int64[n], 0 to classes - 1
    weight: Int64s  # int64[n], in units of 2^-20, above 0


class ColumnSample(NamedTuple):
    """Examples in CSC columns: `indptr`, `indices` and `data` as SciPy has them, of any types of numbers."""

    pointer: Int64s  # int64[features + 1]
    row: Int32s  # int32[entries], 0 to n - 1, in any order
    value: Float64s  # float64[entries], finite; 0 is the same as absent
    label: Int64s  # int64[n], 0 to classes - 1
    weight: Int64s  # int64[n], in units of 2^-20, above 0
    feature: UInt32s  # uint32[features], the id of each column


def weight_of(sample: Sample | ColumnSample) -> int:
    """Return what all examples weigh, in units."""
    n = len(sample.weight)
    if n and int(np.abs(sample.weight).max()) > MAX_TOTAL // n:  # numpy's sum might overflow
        return sum(sample.weight.tolist())
    return int(sample.weight.sum())


def check_examples(sample: Sample | ColumnSample, total: int, classes: int) -> None:
    """Raise ValueError where labels or weights are none."""
    n = len(sample.label)
    for name, column in (("label", sample.label), ("weight", sample.weight)):
        _whole(name, column)
    if len(sample.weight) != n:
        raise ValueError(f"expected {n} weights for {n} labels, got {len(sample.weight)}")
    if n and not (0 <= int(sample.label.min()) and int(sample.label.max()) < classes):
        raise ValueError(f"expected labels from 0 to {classes - 1}, got {sorted(set(sample.label.tolist()))}")
    if n and int(sample.weight.min()) < 1:
        raise ValueError(f"expected weights above 0, got {int(sample.weight.min())}")
    if total >= MAX_TOTAL:
        raise ValueError(f"expected weights below {MAX_TOTAL} units of 2^-20 in all, got {total}")


def plain_columns(sample: ColumnSample) -> ColumnSample:
    """Return columns as kernels take them, not copied where they are so; raise ValueError where they do not fit.

    Rows and values are for those who read them.
    """
    features, entries = len(sample.feature), len(sample.row)
    pointer, row = _whole("pointer", sample.pointer), _whole("row", sample.row)
    if len(pointer) != features + 1 or pointer[0] != 0 or pointer[-1] != entries or (np.diff(pointer) < 0).any():
        raise ValueError(
            f"expected {features + 1} pointers for {features} features, ascending from 0 to {entries}, got "
            f"{pointer.tolist()[:9]}"
        )
    if len(sample.value) != entries:
        raise ValueError(f"expected {entries} values for {entries} rows, got {len(sample.value)}")
    if row.dtype != np.int32:
        _check_rows(row, len(sample.label))
    ids = _whole("feature", sample.feature)
    if features and not 0 <= int(ids.min()) <= int(ids.max()) < 1 << 32:
        raise ValueError(f"expected features from 0 to {(1 << 32) - 1}, got {ids.min()} to {ids.max()}")
    return ColumnSample(
        pointer=np.require(pointer, np.int64, _PLAIN),
        row=np.require(row, np.int32, _PLAIN),
        value=np.require(sample.value, np.float64, _PLAIN),
        label=np.require(sample.label, np.int64, _PLAIN),
        weight=np.require(sample.weight, np.int64, _PLAIN),
        feature=np.require(ids, np.uint32, _PLAIN),
    )


def _whole(name: str, column: Any) -> Any:
    """Return a column; raise ValueError where its numbers are no whole ones."""
    if column.dtype.kind not in "iu":
        raise ValueError(f"expected the column {name} as whole numbers, got {column.dtype}")
    return column


def _check_rows(row: Any, n: int) -> None:
    if len(row) and not 0 <= int(row.min()) <= int(row.max()) < n:
        raise ValueError(f"expected rows from 0 to {n - 1}, got {row.min()} to {row.max()}")


def rows_of(sample: ColumnSample) -> Sample:
    """Return the examples of plain columns in rows; raise ValueError where a row is none. O(entries)."""
    entries, n = len(sample.row), len(sample.label)
    _check_rows(sample.row, n)
    first = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(sample.row, minlength=n), out=first[1:])
    made = Sample(first, np.empty(entries, np.uint32), np.empty(entries), sample.label, sample.weight)
    _transpose(*sample[:3], sample.feature, first[:-1].copy(), *made[1:3])
    return made


@jit
def _transpose(
    pointer: Int64s, row: Int32s, value: Float64s, ids: UInt32s, to: Int64s, feature: UInt32s, values: Float64s
) -> None:
    """Write the entries of columns where `to` says, which moves along."""
    for column in range(ids.size):
        for at in range(pointer[column], pointer[column + 1]):
            place = to[row[at]]
            to[row[at]] = place + 1
            feature[place] = ids[column]
            values[place] = value[at]


def checked(sample: Sample, schema: Schema) -> Sample:
    """Return a sample whose features are canonical; raise ValueError where there are no such rows."""
    n = len(sample.label)
    if len(sample.pointer) != n + 1:
        raise ValueError(f"expected {n + 1} pointers for {n} labels, got {len(sample.pointer)}")
    schema.intern(None)
    inserts, label = np.full(n, Op.INSERT, np.int8), np.zeros(n, np.int64)
    given = Events.of(inserts, label, sample.pointer, sample.feature, sample.value)
    check_columns(given, np.int64, None)
    events = plain(given)
    uncounted = np.zeros(0, np.int64)
    if are_canonical(schema.known, events.pointer, events.feature, events.value, uncounted):
        return sample._replace(pointer=events.pointer, feature=events.feature, value=events.value)
    if len(odd := np.flatnonzero(~np.isfinite(sample.value))):
        example = int(np.searchsorted(sample.pointer, odd[0], side="right")) - 1
        raise ValueError(f"expected finite values, example {example} has another")
    entries = Canonicaliser(TERMS)(events, schema.known)
    if len(twice := np.flatnonzero(entries.status == Status.REPEATED_FEATURE)):
        raise ValueError(f"example {twice[0]} lists a feature twice")
    return sample._replace(pointer=entries.pointer, feature=entries.feature, value=entries.value)


def drawn(sample: Sample, salt: int) -> Sample:
    """Return the examples of a sample that are drawn, weighing as many times as they are; see `_draw_rows`."""
    n = len(sample.label)
    times = np.zeros(n, np.int64)
    _draw_rows(times, salt)
    total = sum(weight * count for weight, count in zip(sample.weight.tolist(), times.tolist(), strict=True))
    if total >= MAX_TOTAL:
        raise ValueError(f"expected weights below {MAX_TOTAL} units of 2^-20 in all, drawn are {total}")
    kept = times > 0
    sizes = np.diff(sample.pointer)
    of_kept = np.repeat(kept, sizes)
    return Sample(
        pointer=np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64),
        feature=sample.feature[of_kept],
        value=sample.value[of_kept],
        label=sample.label[kept],
        weight=sample.weight[kept] * times[kept],
    )


@jit
def _draw_rows(times: Int64s, salt: int) -> None:
    """Draw as many examples as there are, with replacement; count how often each is."""
    n = int64(times.size)
    for draw in range(n):
        times[(mix(salt, draw) * n) >> 32] += 1
