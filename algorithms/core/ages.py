"""How old live examples are: those of all keys in one list, in the order in which they came, each with a stamp.

A window by time lets the oldest go first, whichever key they are of. The list is linked, so an example that is
deleted leaves it in O(1) and leaves nothing behind. A cursor stands at the first that is not due yet, and counts
those before it: how many are due is known without looking. Beside it is a list of those that have gone and whose
ids are remembered, in the order in which they went.

::

    oldest -> ... -> | not due -> ... -> newest        gone, remembered: first -> ... -> last
              due    cursor

A place in these lists is a number of its own, not the row of the example: while keys move from one pool to another
their examples get other rows and keep their places. The row of what has not moved yet is there as ~row.

A stamp is a time in ms. What it will be may be known only later; until then it is `LATER` and the number of the
record that the example came with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import free_list
from algorithms.core.arrays import Int32s, Int64s, extended, filled, int64
from algorithms.core.free_list import EVER, NONE, USED
from algorithms.core.jit import ahead, inlined, jit
from algorithms.core.stored import stored

LATER = 1 << 62  # above all times: the stamp follows, see `settle`

# Columns of `Ages.links`, which lead from place to place.
OLDER, NEWER = 0, 1

# Rows of `Ages.counts` after those of a free list, which is linked through OLDER.
OLDEST, NEWEST = 3, 4  # ends of the list of live examples
FIRST_GONE, LAST_GONE = 5, 6  # ends of the list of those that are remembered
CURSOR = 7  # the first that is not due, or NONE
DUE = 8  # how many are
LIMIT = 9  # those with a stamp of at most this are
GONE = 10  # how many have gone so far


@stored("place", "row", "stamp", "links", "counts")
class Ages(NamedTuple):
    """Ages of the examples of an example store; of no size where nobody asks for them."""

    place: Int32s  # int32[rows of the store], where each example stands, or NONE
    row: Int32s  # int32[places]
    stamp: Int64s  # int64[places]
    links: Int32s  # int32[places, 2]
    counts: Int64s  # int64[11]


def make(rows: int) -> Ages:
    """Return ages for a store with so many rows; 0: nobody asks for them."""
    counts = np.zeros(11, np.int64)
    counts[[free_list.FREE, OLDEST, NEWEST, FIRST_GONE, LAST_GONE, CURSOR]] = NONE
    return Ages(
        place=filled(rows, NONE, np.int32),
        row=np.zeros(rows, np.int32),
        stamp=np.zeros(rows, np.int64),
        links=np.zeros((rows, 2), np.int32),
        counts=counts,
    )


@inlined
def are_kept(ages: Ages) -> bool:
    """Return whether somebody asks for ages."""
    return ages.place.size > 0


@inlined
def room(ages: Ages) -> int:
    """Return how many more examples there is room for."""
    return ages.row.size - ages.counts[USED]


def with_rows(ages: Ages, rows: int) -> Ages:
    """Return ages for a store with so many rows."""
    if not are_kept(ages):
        return ages
    place = filled(rows, NONE, np.int32)
    place[: len(ages.place)] = ages.place
    return ages._replace(place=place)


def with_places(ages: Ages) -> Ages:
    """Return ages with twice as many places."""
    places = 2 * len(ages.row)
    return ages._replace(
        row=extended(ages.row, places), stamp=extended(ages.stamp, places), links=extended(ages.links, places)
    )


# --- the lists


@jit
def _append(ages: Ages, at: int, first: int) -> None:
    """Add a place at the end of the list whose ends are at `first` of the counts."""
    last = ages.counts[first + 1]
    ages.links[at, OLDER] = last
    ages.links[at, NEWER] = NONE
    if last != NONE:
        ages.links[last, NEWER] = at
    else:
        ages.counts[first] = at
    ages.counts[first + 1] = at


@jit
def _detach(ages: Ages, at: int, first: int) -> None:
    """Take a place out of the list whose ends are at `first` of the counts."""
    older = int64(ages.links[at, OLDER])
    newer = int64(ages.links[at, NEWER])
    if older != NONE:
        ages.links[older, NEWER] = newer
    else:
        ages.counts[first] = newer
    if newer != NONE:
        ages.links[newer, OLDER] = older
    else:
        ages.counts[first + 1] = older


@jit
def enter(ages: Ages, row: int, stamp: int) -> None:
    """Enter a live example, the newest: its stamp is no less than that of any other. There must be room."""
    at = free_list.take(ages.counts, ages.links[:, OLDER])
    ages.place[row] = at
    ages.row[at] = row
    ages.stamp[at] = stamp
    _append(ages, at, OLDEST)
    if ages.counts[CURSOR] == NONE:
        ages.counts[CURSOR] = at


@inlined
def _leave(ages: Ages, at: int) -> None:
    """Take a place out of the list of live examples."""
    if ages.stamp[at] <= ages.counts[LIMIT]:
        ages.counts[DUE] -= 1
    if at == ages.counts[CURSOR]:
        ages.counts[CURSOR] = int64(ages.links[at, NEWER])
    _detach(ages, at, OLDEST)


@jit
def forget(ages: Ages, row: int, is_live: bool) -> None:
    """Strike out the age of an example that is struck out, be it live or remembered."""
    at = int64(ages.place[row])
    if at == NONE:
        return
    if is_live:
        _leave(ages, at)
    else:
        _detach(ages, at, FIRST_GONE)
    ages.place[row] = NONE
    ages.row[at] = 0
    ages.stamp[at] = 0
    free_list.give(ages.counts, ages.links[:, OLDER], at)


@jit
def shelve(ages: Ages, row: int) -> None:
    """Let a live example become one that is remembered."""
    at = int64(ages.place[row])
    if at != NONE:
        _leave(ages, at)
        _append(ages, at, FIRST_GONE)


@jit
def move(ages: Ages, row: int, into: Ages, to: int) -> None:
    """Let an example have another row in another pool; the places are shared."""
    at = ages.place[row]
    ages.place[row] = NONE
    into.place[to] = at
    into.row[at] = to


# --- what is due


@jit
def oldest_due(ages: Ages, limit: int) -> int:
    """Return the row of the oldest live example with a stamp of at most `limit`, or NONE.

    Limits only rise. Amortised O(1).
    """
    look(ages, limit)
    return int64(ages.row[ages.counts[OLDEST]]) if ages.counts[DUE] > 0 else int64(NONE)


@ahead(lambda: (make(8), 0))
@jit
def look(ages: Ages, limit: int) -> None:
    """Count those that have become due, up to a limit that only rises."""
    if limit <= ages.counts[LIMIT]:
        return
    ages.counts[LIMIT] = limit
    at = ages.counts[CURSOR]
    while at != NONE and ages.stamp[at] <= limit:
        ages.counts[DUE] += 1
        at = int64(ages.links[at, NEWER])
    ages.counts[CURSOR] = at


@ahead(lambda: (make(8), 0, np.zeros(8, np.int64), np.zeros(8, np.int32)))
@jit
def upcoming(ages: Ages, limit: int, stamps: Int64s, left: Int32s) -> tuple[int, int]:
    """Write the stamps of the oldest that are due at a limit, and the rows (~row) of those that have not moved.

    Return how many of each: as many as there are, or as there is room for.
    """
    count = int64(0)
    waiting = int64(0)
    at = ages.counts[OLDEST]
    while at != NONE and ages.stamp[at] <= limit and (count < stamps.size or waiting < left.size):
        if count < stamps.size:
            stamps[count] = ages.stamp[at]
            count += 1
        if ages.row[at] < 0 and waiting < left.size:
            left[waiting] = ages.row[at]
            waiting += 1
        at = int64(ages.links[at, NEWER])
    return count, waiting


@ahead(lambda: (make(8), 0, np.zeros(1, np.int64)))
@jit
def settle(ages: Ages, first: int, clock: Int64s) -> None:
    """Write the stamps that were not known: the time two records later.

    `clock` is the time after each record, of which `first` is the number of the first one.
    """
    at = ages.counts[NEWEST]
    while at != NONE and ages.stamp[at] >= LATER:
        record = max(ages.stamp[at] - LATER + 2 - first, 0)
        if record < clock.size and clock[record] > 0:
            ages.stamp[at] = clock[record]
        at = int64(ages.links[at, OLDER])


# --- fewer places


def packed(ages: Ages) -> Ages:
    """Return ages with room for those that there are and no more. O(all)."""
    if not are_kept(ages):
        return ages
    size = 8
    while size < ages.counts[USED]:
        size *= 2
    if size == len(ages.row):
        return ages
    smaller = make(size)._replace(place=ages.place)
    pack(ages, smaller)
    return smaller


@ahead(lambda: (make(8), make(8)))
@jit
def pack(ages: Ages, smaller: Ages) -> None:
    """Write all places to others, in order."""
    cursor = ages.counts[CURSOR]
    for first in (OLDEST, FIRST_GONE):
        at = ages.counts[first]
        while at != NONE:
            to = free_list.take(smaller.counts, smaller.links[:, OLDER])
            smaller.row[to] = ages.row[at]
            smaller.stamp[to] = ages.stamp[at]
            smaller.place[ages.row[at]] = to
            _append(smaller, to, first)
            if at == cursor:
                smaller.counts[CURSOR] = to
            at = int64(ages.links[at, NEWER])
    for count in (DUE, LIMIT, GONE):
        smaller.counts[count] = ages.counts[count]


def _listed(ages: Ages, first: int) -> list[int]:
    """Return the places in a list, in order."""
    found, before, at = [], NONE, int(ages.counts[first])
    while at != NONE:
        assert ages.links[at, OLDER] == before
        found.append(at)
        before, at = at, int(ages.links[at, NEWER])
    assert ages.counts[first + 1] == before
    return found


def check(ages: Ages, live: list[int], remembered: list[int]) -> None:
    """Raise AssertionError unless these rows, live and remembered, have ages; others may be another pool's."""
    if not are_kept(ages):
        return
    lists = [_listed(ages, OLDEST), _listed(ages, FIRST_GONE)]
    for places, rows in zip(lists, (live, remembered), strict=True):
        stamps = ages.stamp[places].tolist()
        assert stamps == sorted(stamps), "ages are not in order"
        for row in rows:
            assert ages.place[row] in places, "an example has no age, or that of another state"
            assert ages.row[ages.place[row]] in (row, ~row)
    in_use = ages.place[ages.place != NONE].tolist()
    assert sorted(in_use) == sorted(ages.place[[*live, *remembered]].tolist()), "an age of no example"
    limit, due = ages.counts[[LIMIT, DUE]].tolist()
    assert due == sum(int(ages.stamp[at]) <= limit for at in lists[0])
    assert ages.counts[CURSOR] == (lists[0][due] if due < len(lists[0]) else NONE)
    free_list.check(ages.counts, ages.links[:, OLDER], [*lists[0], *lists[1]])
    assert ages.counts[EVER] <= len(ages.row)
