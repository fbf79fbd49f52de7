"""Numeric features of a node, each with a floor of its own: an edit makes one of them scanned, not all.

::

    floor 61.2    own: feature 4 at 0.5    columns: 4 from 48.1, 2 from 57.0, 9 from 60.3    lost 3.4

Along a column the thresholds next to the best one leave almost as little as it does (floors.py). So the floor of
a node's own column is spent after few edits, and at once by an edit between the values beside the threshold. Those
of other columns last longer. A look scans what does not surely stand, column by column. The node as a whole is
scanned where its floor (slack.py) is spent, which is that of all features that have no place here.

Where the floor of a column is spent, an exact node may know more of its thresholds: thresholds.py.

Deletes lower all floors of a node by the same (floors.py), so this is noted once, in `lost`. A floor is stored
with what had been lost by then, and what has been lost until now is taken off where it is asked for. A feature may
be forgotten and its number given to another: a floor holds for that one, which parted nothing when it was written.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int64s, extended, int64
from algorithms.core.jit import apart, dispatch, inlined, jit
from algorithms.core.stored import stored

WIDTH = 16  # columns of a node; where it has more, the best ones

# Columns of `Columns.extremes`.
LEAST, GREATEST = 0, 1

UNKNOWN = -math.inf  # a floor where nothing is known of what splits leave
_MORE, _LESS = 1.0 + 2.0**-50, 1.0 - 2.0**-50  # by more than what rounding makes of a sum


@stored("features", "floors", "sizes", "lost", "extremes")
class Columns(NamedTuple):
    """Of each node; of no size where no feature is numeric."""

    features: Int64s  # int64[capacity, WIDTH], of an inner node its own first where it is numeric and among them
    floors: Float64s  # float64[capacity, WIDTH], with what was lost before; -inf: what it may leave is not known
    sizes: Int64s  # int64[capacity], how many
    lost: Float64s  # float64[capacity], what deletes may have taken off what splits leave, since the last scan
    extremes: Int64s  # int64[capacity, 2], no label of the node is less, or greater; of no size where classes are


class NoColumns(NamedTuple):
    """A scan keeps none, as it does by the clock: kernels have no code for them."""


NO_COLUMNS = NoColumns()


class KeptColumns(NamedTuple):
    """What a scan keeps of numeric features, scratch beside a segment."""

    column: Int64s  # int64[WIDTH]
    score: Float64s  # float64[WIDTH]
    second: Float64s  # float64[WIDTH], no other threshold of the column scores less
    size: Int64s  # int64[1]


def make(capacity: int, *, has_numeric: bool, of_numbers: bool) -> Columns:
    """Return storage for so many nodes."""
    size = capacity if has_numeric or of_numbers else 0
    return Columns(
        np.zeros((size, WIDTH), np.int64),
        np.zeros((size, WIDTH)),
        np.zeros(size, np.int64),
        np.zeros(size),
        np.zeros((capacity if of_numbers else 0, 2), np.int64),
    )


def make_kept() -> KeptColumns:
    """Return scratch for a scan."""
    return KeptColumns(np.zeros(WIDTH, np.int64), np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(1, np.int64))


def grown(columns: Columns, capacity: int) -> Columns:
    """Return the same storage with room for more nodes."""
    parts: Any = (extended(each, capacity if len(each) else 0) for each in columns)
    return Columns(*parts)


def check(columns: Columns, unused: list[int]) -> None:
    """Raise AssertionError where something is left of nodes that are not in use, or beyond what is in a node."""
    assert not columns.extremes[unused if len(columns.extremes) else []].any()
    if not len(columns.sizes):
        return
    assert not columns.sizes[unused].any()
    assert not columns.lost[unused].any()
    beyond = np.arange(WIDTH) >= columns.sizes[:, None]
    assert not columns.features[beyond].any()
    assert not columns.floors[beyond].any()
    assert (columns.lost >= 0.0).all()


# --- of nodes


@inlined
def lowered(floor: float) -> float:
    """Return a sum, less what rounding may have added to it."""
    return floor * (_LESS if floor > 0.0 else _MORE)


@inlined
def size_of(columns: Columns, node: int) -> int:
    """Return how many columns of a node have floors of their own."""
    return columns.sizes[node] if columns.sizes.size > 0 else int64(0)


@jit
def clear(columns: Columns, node: int) -> None:
    """Forget what is known of the columns of a node."""
    if columns.extremes.size > 0:
        columns.extremes[node, LEAST] = 0
        columns.extremes[node, GREATEST] = 0
    if columns.sizes.size == 0:
        return
    for at in range(columns.sizes[node]):
        columns.features[node, at] = 0
        columns.floors[node, at] = 0.0
    columns.sizes[node] = 0
    columns.lost[node] = 0.0


@inlined
def floor_of(columns: Columns, node: int, at: int) -> float:
    """Return a floor under what any split of a column leaves, of a node's own any other split."""
    return columns.floors[node, at] - columns.lost[node]


@inlined
def put(columns: Columns, node: int, at: int, floor: float) -> None:
    """Write the floor of a column, of now."""
    columns.floors[node, at] = lowered(floor + columns.lost[node])


@jit
def add(columns: Columns, node: int, feature: int, floor: float, is_own: bool) -> None:
    """Add a column to a node, the node's own as the first."""
    at = columns.sizes[node]
    columns.sizes[node] += 1
    if is_own:
        columns.features[node, at] = columns.features[node, 0]
        columns.floors[node, at] = columns.floors[node, 0]
        at = int64(0)
    columns.features[node, at] = feature
    put(columns, node, at, floor)


@inlined
def lose(columns: Columns, node: int, most: float) -> None:
    """Note that all that splits of a node leave may be less by so much."""
    if columns.sizes.size > 0:
        columns.lost[node] = (columns.lost[node] + most) * _MORE


@inlined
def begin_extremes(columns: Columns, node: int, label: int) -> None:
    """Begin to note the least and the greatest label of a node; `label` is one of them."""
    columns.extremes[node, LEAST] = label
    columns.extremes[node, GREATEST] = label


@inlined
def note_label(columns: Columns, node: int, label: int) -> None:
    """Note that a node has a label."""
    columns.extremes[node, LEAST] = min(columns.extremes[node, LEAST], label)
    columns.extremes[node, GREATEST] = max(columns.extremes[node, GREATEST], label)


@inlined
def has_own(columns: Columns, node: int, feature: int) -> bool:
    """Return whether a node's own numeric feature has its place."""
    return bool(size_of(columns, node) > 0 and columns.features[node, 0] == feature)


@inlined
def forget_own(columns: Columns, node: int) -> None:
    """Note that nothing is known of what other splits of a node's own column leave."""
    columns.floors[node, 0] = UNKNOWN


@inlined
def knows_own(columns: Columns, node: int) -> bool:
    """Return whether something is."""
    return bool(columns.floors[node, 0] > UNKNOWN)


# --- of a scan


@inlined
def _begin_nothing(kept: NoColumns) -> None:
    pass


@inlined
def _begin(kept: KeptColumns) -> None:
    kept.size[0] = 0


@inlined
def _keep_none(kept: NoColumns, column: int, score: float, second: float) -> float:
    return math.inf


@apart
def _keep(kept: KeptColumns, column: int, score: float, second: float) -> float:
    at = kept.size[0]
    left_out = math.inf
    if at < WIDTH:
        kept.size[0] += 1
    else:
        at = _worst(kept)
        left_out = kept.score[at]
        if score >= left_out:
            return score
    kept.column[at] = column
    kept.score[at] = score
    kept.second[at] = second
    return left_out


@inlined
def _worst(kept: KeptColumns) -> int:
    worst = int64(0)
    for at in range(1, WIDTH):
        if kept.score[at] > kept.score[worst]:
            worst = int64(at)
    return worst


@inlined
def _no_bar(kept: NoColumns) -> float:
    return math.inf


@inlined
def _bar(kept: KeptColumns) -> float:
    return kept.score[_worst(kept)] if kept.size[0] == WIDTH else math.inf


begin = dispatch("Begin a scan.", {NoColumns: _begin_nothing, KeptColumns: _begin})
keep = dispatch(
    "Keep a column by its best and its second best threshold; return the score of what is not kept then, or inf.",
    {NoColumns: _keep_none, KeptColumns: _keep},
)
bar = dispatch(
    "Return what a column that is not kept yet must score less than to be kept.",
    {NoColumns: _no_bar, KeptColumns: _bar},
)
