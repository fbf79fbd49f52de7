"""What each node knows of all splits but its own: a floor under what they leave, kept true by every edit.

A floor is true for features, values and thresholds that nobody has seen when the node was scanned; floors.py has
the proof. Only a split that is left out of a floor, as `exact` leaves out a node's own, needs more care: exact.py.
What has a place of its own does not count: binary features that are rivals (rivals.py) or in an index
(indexes.py), and the numeric features of columns.py, whose thresholds may be in bands (bands.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int64s, extended
from algorithms.core.jit import apart, dispatch, inlined, jit
from algorithms.core.stored import flattened, stored
from algorithms.dynamic import bands, columns, indexes, rivals
from algorithms.dynamic.bands import Bands
from algorithms.dynamic.columns import Columns
from algorithms.dynamic.indexes import Indexes
from algorithms.dynamic.rivals import Rivals

# Columns of `Slack.beside`: the values on both sides of a numeric threshold.
BELOW, ABOVE = 0, 1

# Columns of `Slack.counts`.
IS_KNOWN = 0  # 1 until the next edit: the node's choice stands, whatever the floor is
AT_BELOW, AT_ABOVE = 1, 2  # how many examples of the node have these values
BLOCK = 3  # of its rivals, plus 1; 0: it has none; INDEXED: its floor says nothing of binary features
_COUNTS = 4

INDEXED = -1


class NoSlack(NamedTuple):
    """Where trees are rebuilt by the clock: nothing is known, and kernels have no code for it."""


NO_SLACK = NoSlack()


@stored("floor", "seen", "old", "lightest", "beside", "counts", "rivals", None, "columns", "bands")
class Slack(NamedTuple):
    """Of each node. The next three after `floor` are told in floors.py; of numbers they have no size."""

    floor: Float64s  # float64[capacity]
    seen: Float64s  # float64[capacity], under splits that parted examples of the last scan; inf: there are none
    old: Int64s  # int64[capacity, classes], no more than the class weights of those examples that are still there
    lightest: Int64s  # int64[capacity], no example of the node weighs less; 0: that is not known
    beside: Float64s  # float64[capacity, 2]
    counts: Int64s  # int64[capacity, 4]
    rivals: Rivals
    indexes: Indexes
    columns: Columns
    bands: Bands


def make(
    capacity: int, classes: int, *, has_binary: bool, has_numeric: bool, of_numbers: bool, is_exact: bool
) -> Slack:
    """Return storage for so many nodes; without binary features there are no rivals and no indexes."""
    counts = np.zeros((capacity, _COUNTS), np.int64)
    held = rivals.make(capacity if has_binary else 0, classes)
    made = indexes.make(capacity, has_indexes=has_binary and classes == 2 and not of_numbers)
    parts = columns.make(capacity, has_numeric=has_numeric, of_numbers=of_numbers)
    in_bands = bands.make(capacity if has_numeric and is_exact else 0, classes, of_numbers=of_numbers)
    size = 0 if of_numbers else capacity
    seen, old = np.zeros(size), np.zeros((size, classes), np.int64)
    lightest, beside = np.zeros(size, np.int64), np.zeros((capacity, 2))
    return Slack(np.zeros(capacity), seen, old, lightest, beside, counts, held, made, parts, in_bands)


def grown(slack: Slack, capacity: int) -> Slack:
    """Return the same storage with room for more nodes."""
    return Slack(
        extended(slack.floor, capacity),
        extended(slack.seen, capacity if len(slack.seen) else 0),
        extended(slack.old, capacity if len(slack.old) else 0),
        extended(slack.lightest, capacity if len(slack.lightest) else 0),
        extended(slack.beside, capacity),
        extended(slack.counts, capacity),
        rivals.grown(slack.rivals, capacity),
        indexes.beside(slack.indexes, capacity),
        columns.grown(slack.columns, capacity),
        bands.grown(slack.bands, capacity),
    )


def with_later(arrays: Mapping[str, npt.NDArray[Any]], name: str, like: Slack) -> Mapping[str, npt.NDArray[Any]]:
    """Return a state with what an earlier version did not know of columns, and of thresholds.

    Trees of classes had no floors of columns: those of nodes hold for numeric features, too. Which values are
    beside a threshold is told by the floor of a column now, and some floors held for what had sums of its own: a
    node is scanned when the next edit has come. Of what a scan has seen nothing was told beside the floor.

    Parameters
    ----------
    arrays : mapping
        The state.
    name : str
        What its slack is called there.
    like : Slack
        That of an empty pool with the same settings.
    """
    nodes = len(arrays[f"{name}.floor"])
    empty = flattened(columns.grown(like.columns, nodes), f"{name}.columns")
    empty |= flattened(bands.grown(like.bands, nodes), f"{name}.bands")
    empty[f"{name}.seen"] = np.full(nodes if len(like.seen) else 0, columns.UNKNOWN)
    empty[f"{name}.old"] = np.zeros((len(empty[f"{name}.seen"]), like.old.shape[1]), np.int64)
    empty[f"{name}.lightest"] = np.zeros(len(empty[f"{name}.seen"]), np.int64)
    is_narrow = f"{name}.bands.of" in arrays and arrays[f"{name}.bands.of"].ndim == 1
    if is_narrow:  # there were bands of a node's own column alone, laid out in another way: it goes without them
        arrays = {key: array for key, array in arrays.items() if not key.startswith(f"{name}.bands.")}
    later = {key: part for key, part in empty.items() if key not in arrays}
    saved = {**arrays, **later}
    if is_narrow or f"{name}.bands.of" not in later or not len(like.bands.of):
        return saved
    known, floors = arrays[f"{name}.counts"].copy(), saved[f"{name}.columns.floors"].copy()
    floors[(known[:, AT_BELOW] > 0) & (saved[f"{name}.columns.sizes"] > 0), 0] = columns.UNKNOWN
    known[:, [AT_BELOW, AT_ABOVE]] = 0
    beside = np.zeros_like(arrays[f"{name}.beside"])
    return {**saved, f"{name}.counts": known, f"{name}.beside": beside, f"{name}.columns.floors": floors}


@jit
def clear(slack: Slack, node: int) -> None:
    """Forget what is known of a node, but for its index."""
    slack.floor[node] = 0.0
    if slack.seen.size > 0:
        slack.seen[node] = 0.0
        slack.lightest[node] = 0
        for k in range(slack.old.shape[1]):
            slack.old[node, k] = 0
    clear_beside(slack, node)
    columns.clear(slack.columns, node)
    bands.drop_all(slack.bands, node)
    if slack.counts[node, BLOCK] > 0:
        rivals.give(slack.rivals, slack.counts[node, BLOCK] - 1)
    for column in range(_COUNTS):
        slack.counts[node, column] = 0


@inlined
def clear_beside(slack: Slack, node: int) -> None:
    """Forget which values are beside the threshold of a node."""
    for side in (BELOW, ABOVE):
        slack.beside[node, side] = 0.0
        slack.counts[node, AT_BELOW + side] = 0


@inlined
def _forget_nothing(slack: NoSlack, node: int) -> None:
    pass


@apart
def _forget(slack: Slack, node: int) -> None:
    clear(slack, node)
    indexes.drop(slack.indexes, node)


@inlined
def _never_short(slack: NoSlack) -> bool:
    return False


@inlined
def _is_short(slack: Slack) -> bool:
    return indexes.is_short(slack.indexes)


forget = dispatch("Forget all that is known of a node that goes.", {NoSlack: _forget_nothing, Slack: _forget})
is_short = dispatch(
    "Return whether room for indexes has been missed since there was more.",
    {NoSlack: _never_short, Slack: _is_short},
)
