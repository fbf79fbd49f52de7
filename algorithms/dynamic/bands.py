"""Bands: neighbouring thresholds of a numeric column of a node, and what lies inside and beside them.

::

    edges      -inf   1 . . 4   6   7 . . . 12   inf     a band: all thresholds from one edge on, below the next
    AT         the examples that have the value of its lower edge
    INSIDE     those between its edges

The first and the last band have the thresholds that part nothing, until an example comes beyond all others. Edits
keep what is counted true. thresholds.py has what bands are for, and how they are laid out.

A column has bands once it was scanned alone; those of a node's own as long as it is known what is beside its
threshold. Where no row is free it goes without: the trees are the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core import free_list
from algorithms.core.arrays import Float64s, Int32s, Int64s, extended, int64
from algorithms.core.criteria import Criterion
from algorithms.core.free_list import NONE, USED
from algorithms.core.jit import inlined, jit
from algorithms.core.stored import stored
from algorithms.dynamic import columns
from algorithms.dynamic.labels import by_target
from algorithms.dynamic.variance import SUM, WEIGHT, Variance

WIDTH = 40  # bands of a column
WORTHWHILE = 100  # examples; a smaller node is scanned in less time than bands take
NODES = 12  # for so many nodes there is a row

# Columns of `Bands.heads`.
NEXT, SIZE = 0, 1  # in the free list; how many bands
OWN, CENTER = 2, 3  # that of the node's threshold, 0 in other columns; of numbers what labels are counted from

# What is counted for each band, two rows of `Bands.sums`.
AT, INSIDE = 0, 1

# Of numbers: what is counted beside weight and sum, and what `Bands.gone` has beside the weight.
POSITIVE = 2  # the sum of labels above 0
GONE_POSITIVE, GONE_NEGATIVE = 1, 2  # those sums without a sign
OF_NUMBERS = 3

# Rows of `Bands.scratch`.
LOW, LOW_BEFORE, ZEROS = range(3)


@stored("of", "heads", "edges", "least", "floors", "sums", "before", "gone", "whole", "used", None)
class Bands(NamedTuple):
    """Rows of bands; of no size where no node has any. Labels that are numbers are counted from a center."""

    of: Int32s  # int32[nodes, columns.WIDTH], the row of each column of a node, plus 1; 0: it has none
    heads: Int64s  # int64[rows, 4]
    edges: Float64s  # float64[rows, WIDTH + 1], ascending
    least: Float64s  # float64[rows, WIDTH], what the best threshold left at the scan, see thresholds.py
    floors: Float64s  # float64[rows, WIDTH], under what thresholds leave, as of a column: see columns.py
    sums: Int64s  # int64[rows, 2 * WIDTH, c], what is AT and INSIDE each band
    before: Int64s  # int64[rows, 2 * WIDTH, c], the same at the scan
    gone: Int64s  # int64[rows, WIDTH, c], no less than what was inside at the scan and is gone
    whole: Int64s  # int64[rows, c], the sums of the node at the scan
    used: Int64s  # int64[3], a free list
    scratch: Int64s  # int64[3, c]


def make(nodes: int, classes: int, *, of_numbers: bool) -> Bands:
    """Return storage beside so many nodes; of no nodes: none, and it never grows."""
    rows, sums = _rows(nodes), OF_NUMBERS if of_numbers else classes
    return Bands(
        of=np.zeros((nodes, columns.WIDTH), np.int32),
        heads=np.zeros((rows, 4), np.int64),
        edges=np.zeros((rows, WIDTH + 1)),
        least=np.zeros((rows, WIDTH)),
        floors=np.zeros((rows, WIDTH)),
        sums=np.zeros((rows, 2 * WIDTH, sums), np.int64),
        before=np.zeros((rows, 2 * WIDTH, sums), np.int64),
        gone=np.zeros((rows, WIDTH, sums), np.int64),
        whole=np.zeros((rows, sums), np.int64),
        used=np.array([0, 0, NONE], np.int64),
        scratch=np.zeros((3, sums), np.int64),
    )


def grown(bands: Bands, nodes: int) -> Bands:
    """Return the same storage beside more nodes."""
    if not len(bands.of):
        return bands
    rows = (extended(each, _rows(nodes)) for each in bands[1:-2])
    parts: Any = (extended(bands.of, nodes), *rows, bands.used, bands.scratch)
    return Bands(*parts)


def _rows(nodes: int) -> int:
    return -(-nodes // NODES)


def check(bands: Bands, rows: list[int]) -> None:
    """Raise AssertionError unless these rows are in use, and nothing is left in others. O(everything)."""
    free_list.check(bands.used, bands.heads[:, NEXT], rows)
    others = np.setdiff1d(np.arange(len(bands.heads)), rows)
    assert not bands.heads[others, NEXT + 1 :].any()
    for part in (bands.edges, bands.least, bands.floors, bands.sums, bands.before, bands.gone, bands.whole):
        assert not part[others].any(), "a band that is gone"
    for row in rows:
        size = bands.heads[row, SIZE]
        assert 0 <= bands.heads[row, OWN] < size - 1
        assert (np.diff(bands.edges[row, : size + 1]) > 0.0).all()
        assert not bands.edges[row, size + 1 :].any(), "beyond the last band"
        for part in (bands.least, bands.floors, bands.gone):
            assert not part[row, size:].any(), "beyond the last band"
        for part in (bands.sums, bands.before):
            assert not part[row, 2 * size :].any(), "beyond the last band"


# --- of nodes


@inlined
def row_of(bands: Bands, node: int, at: int) -> int:
    """Return the row of a column of a node, NONE where it has no bands."""
    return int64(bands.of[node, at]) - 1 if bands.of.size > 0 else int64(NONE)


@jit
def take(bands: Bands, node: int, at: int, examples: int) -> int:
    """Return an empty row for a column of a node of so many examples; NONE: it is too small, or none is free."""
    drop(bands, node, at)
    if bands.of.size == 0 or examples < WORTHWHILE or bands.used[USED] == bands.heads.shape[0]:
        return int64(NONE)
    row = free_list.take(bands.used, bands.heads[:, NEXT])
    bands.heads[row, NEXT] = 0
    bands.of[node, at] = row + 1
    return row


@inlined
def drop_all(bands: Bands, node: int) -> None:
    """Give back the rows of all columns of a node."""
    for at in range(bands.of.shape[1] if bands.of.size > 0 else 0):
        if bands.of[node, at] > 0:
            drop(bands, node, int64(at))


@jit
def drop(bands: Bands, node: int, at: int) -> None:
    """Give back the row of a column of a node, if it has one; what it held is wiped."""
    row = row_of(bands, node, at)
    if row == NONE:
        return
    for band in range(bands.heads[row, SIZE]):
        bands.least[row, band] = 0.0
        bands.floors[row, band] = 0.0
        for k in range(bands.whole.shape[1]):
            bands.gone[row, band, k] = 0
            for place in (AT, INSIDE):
                bands.sums[row, 2 * band + place, k] = 0
                bands.before[row, 2 * band + place, k] = 0
    for edge in range(bands.heads[row, SIZE] + 1):
        bands.edges[row, edge] = 0.0
    for k in range(bands.whole.shape[1]):
        bands.whole[row, k] = 0
    for column in range(bands.heads.shape[1]):
        bands.heads[row, column] = 0
    free_list.give(bands.used, bands.heads[:, NEXT], row)
    bands.of[node, at] = 0


@jit
def note(criterion: Any, bands: Bands, row: int, value: float, label: int, change: int) -> None:
    """Note that an example with this value of the column has come or, of a change below 0, gone. O(log bands)."""
    edges, center = bands.edges, bands.heads[row, CENTER]
    low, high = int64(0), bands.heads[row, SIZE]  # the band is one of low to high - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if edges[row, middle] <= value:
            low = middle
        else:
            high = middle
    if value == edges[row, low]:
        add(criterion, bands.sums[row], 2 * low + AT, center, label, change)
    else:
        add(criterion, bands.sums[row], 2 * low + INSIDE, center, label, change)
        _note_inside(criterion, bands, row, low, label, change)


# --- what is counted


@inlined
def _add_class(criterion: Criterion, sums: Int64s, at: int, center: int, label: int, change: int) -> None:
    sums[at, label] += change


@inlined
def _add_number(criterion: Variance, sums: Int64s, at: int, center: int, label: int, change: int) -> None:
    sums[at, WEIGHT] += change
    sums[at, SUM] += change * (label - center)
    sums[at, POSITIVE] += change * max(label - center, 0)


@inlined
def _note_class_inside(criterion: Criterion, bands: Bands, row: int, band: int, label: int, change: int) -> None:
    if change < 0:
        most = bands.before[row, 2 * band + INSIDE, label]
        bands.gone[row, band, label] = min(bands.gone[row, band, label] - change, most)


@inlined
def _note_number_inside(criterion: Variance, bands: Bands, row: int, band: int, label: int, change: int) -> None:
    if change > 0:
        return
    gone, before, inside = bands.gone, bands.before, 2 * band + INSIDE
    label -= bands.heads[row, CENTER]
    positive = before[row, inside, POSITIVE]
    negative = positive - before[row, inside, SUM]
    gone[row, band, WEIGHT] = min(gone[row, band, WEIGHT] - change, before[row, inside, WEIGHT])
    gone[row, band, GONE_POSITIVE] = min(gone[row, band, GONE_POSITIVE] - change * max(label, 0), positive)
    gone[row, band, GONE_NEGATIVE] = min(gone[row, band, GONE_NEGATIVE] + change * min(label, 0), negative)


add = by_target("Add an example to what is counted; a negative weight takes it out.", _add_class, _add_number)
_note_inside = by_target(
    "Note what may be gone of what was inside a band at the scan.",
    _note_class_inside,
    _note_number_inside,
)
