"""Arrays of numpy: sparse (`indptr`, `indices`, `labels`, perhaps `counts` and `shape`), or dense (`X`, `y`)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from worker.sources.columns import Columns
from worker.sources.example import BadLine, Entry, Example, Label
from worker.sources.lines import Lines, SourceError

_Array: TypeAlias = npt.NDArray[Any]
_EXACT = 1 << 53


def read(lines: Lines, columns: Columns) -> Iterator[Entry]:
    """Yield the examples of arrays, a row each: ids of columns, with values where one is not 1.

    The line of an example is the number of its row, from 1.
    """
    try:
        with np.load(lines.whole(), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise SourceError(
            f"{lines.name}: expected arrays that numpy.savez wrote, without objects, got others ({error})"
        ) from error
    labels = arrays.get(columns.label or "labels", arrays.get("y") if columns.label is None else None)
    if labels is None and not columns.unlabelled:
        raise _unfit(lines, columns.label or "labels, or y (another by --label NAME)", arrays)
    if {"indptr", "indices"} <= arrays.keys():
        rows = _sparse(lines, arrays)
        count = len(arrays["indptr"]) - 1
    elif "X" in arrays and arrays["X"].ndim == 2 and arrays["X"].dtype.kind in "biuf":
        rows = _dense(lines, arrays["X"])
        count = len(arrays["X"])
    else:
        raise _unfit(lines, "indptr and indices, or X of two dimensions with numbers", arrays)
    if labels is not None and (labels.shape != (count,) or labels.dtype.kind not in "biufU"):
        raise _unfit(lines, f"{count} labels, numbers or text, in one dimension", arrays)
    for number, (ids, values) in enumerate(rows):
        lines.number = number + 1
        if not np.isfinite(values).all():
            yield BadLine(lines.number, "expected finite values, got an infinite one")
            continue
        fields: dict[str, Any] = {"x": ids.tolist()}
        if not (values == 1.0).all():
            fields["x"] = {"i": fields["x"], "v": values.tolist()}
        if labels is not None:
            fields["y"] = _label(labels[number].item())
        yield Example(None, fields, lines.number)


def _sparse(lines: Lines, arrays: dict[str, _Array]) -> Iterator[tuple[_Array, _Array]]:
    """Return the rows of arrays in CSR form, which are looked at first."""
    pointer, indices = arrays["indptr"], arrays["indices"]
    counts = arrays.get("counts", arrays.get("data", np.ones(len(indices))))
    fits = pointer.ndim == indices.ndim == 1 and pointer.dtype.kind in "iu" and indices.dtype.kind in "iu"
    if (
        not fits
        or not len(pointer)
        or pointer[0] != 0
        or pointer[-1] != len(indices)
        or (np.diff(pointer) < 0).any()
    ):
        raise _unfit(lines, "indptr that rises from 0 to the length of indices, both whole numbers", arrays)
    if counts.shape != indices.shape or counts.dtype.kind not in "biuf":
        raise _unfit(lines, "as many counts as indices, all numbers", arrays)
    if len(indices) and not 0 <= indices.min() <= indices.max() < 1 << 32:
        raise _unfit(lines, "indices from 0 to 4294967295", arrays)
    bounds = zip(pointer[:-1].tolist(), pointer[1:].tolist(), strict=True)
    return ((indices[low:high], counts[low:high].astype(np.float64)) for low, high in bounds)


def _dense(lines: Lines, table: _Array) -> Iterator[tuple[_Array, _Array]]:
    """Yield the columns of each row that are not 0, and their values."""
    for lines.number, row in enumerate(table.astype(np.float64, copy=False), 1):
        known = ~np.isnan(row)
        if not known.all():
            lines.note("a value is missing (NaN): it counts as 0")
        (ids,) = np.nonzero(known & (row != 0.0))
        yield ids, row[ids]


def _label(value: Any) -> Label:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    return value if isinstance(value, str) else int(value)


def _unfit(lines: Lines, wanted: str, arrays: dict[str, _Array]) -> SourceError:
    found = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in sorted(arrays.items()))
    return SourceError(f"{lines.name}: expected {wanted}, got {found or 'no array'}; save them so")
