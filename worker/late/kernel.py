"""What becomes of the pending examples at each event, in order: kept, labelled, forgotten, let go.

An example stands in the example store of algorithms/core, and in a queue in the order of arrival. The places of
those that went are passed by, and squeezed out when the queue is full::

    row    [ 4  -1  0  2 ]    of an example in the store; -1: it is gone
    stamp  [ 7   7  9  . ]    when it came, by the clock of the partition; not known yet of the last two records
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import example_store
from algorithms.core.arrays import Int8s, Int32s, Int64s, UInt32s, int64
from algorithms.core.events import DROP, INSERT, PREDICT
from algorithms.core.example_store import LENGTH, LIVES, NONE, OLDEST, OWNER, START, USED, ExampleStore
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names, refer, release
from algorithms.core.stored import stored
from worker.codec.events import LABEL

# What the columns of the store that are for labels and weights hold of a pending example.
PLACE = example_store.LABEL  # in the queue, times 8, and what its words are
NUMBER = example_store.WEIGHT  # of the examples that were kept so far
NAMED, VALUED = 1, 2  # its features are names; their values come behind them, two words each
KINDS = 8  # of words

# Columns of `Pending.counts`.
HEAD, BEFORE, LAST, TAIL = 0, 1, 2, 3  # of the queue: begin; of the last record but one; of the last one; end
NOW, KEPT = 4, 5  # the clock; how many were ever kept
MOST, SPAN = 6, 7  # how many at most, and for how long, in ms
FIRST = 8  # the offset of the first record that was followed, and 1 more; 0: there was none
CHANGED, CROWDED = 9, 10  # how often the limits became others; how many went for others
COUNTS = 11

NEVER = np.iinfo(np.int64).max  # the stamp of what came with the last two records
AT_ONCE = 16  # that go at an event because it is time; a label of one that is due comes too late in any case

# What became of an event.
NOTHING, TAKEN, LABELLED, SETTLED, FORGOTTEN, LATE = range(6)

# Why the kernel stopped; but for the first, what must be enlarged before it goes on.
DONE, FULL_ROWS, FULL_FEATURES, FULL_QUEUE, FULL_WORDS, FULL_GONE = range(6)

# Columns of `Found.counts`.
EVENT, RECORD, WORDS, GONE = 0, 1, 2, 3  # how far it is; used of `words` and of `gone`
EXPIRED, CROWDED_OUT, DROPPED = 4, 5, 6  # examples that went: in time, for others, with their key


@stored("examples", "row", "stamp", "counts")
class Pending(NamedTuple):
    """Examples that have no label yet, of all keys."""

    examples: ExampleStore
    row: Int32s
    stamp: Int64s
    counts: Int64s


class Asked(NamedTuple):
    """The events of a batch, as far as they matter here."""

    op: Int8s
    key: Int32s  # its number
    named: Int8s  # 1 where the event has an id
    high: Int64s
    low: Int64s
    record: Int64s  # which of the records with events it is of
    clock: Int64s  # after each of these records
    start: Int64s  # int64[n + 1], of predicts with an id: where their words begin
    words: UInt32s
    kind: Int8s  # NAMED, VALUED


class Found(NamedTuple):
    """What became of them."""

    fate: Int8s
    row: Int32s  # of the example that was kept, labelled or settled
    number: Int64s  # its number
    start: Int64s  # of labelled ones: where their words begin
    size: Int32s  # how many
    kind: Int8s
    words: UInt32s
    gone: Int32s  # rows that became free, or were given to another
    gone_key: Int32s  # and the keys whose examples they had
    counts: Int64s


@jit
def follow(pending: Pending, names: Names, asked: Asked, found: Found) -> int:
    """Go through the events from `found.counts[EVENT]` on; return why it stopped."""
    store, counts, done = pending.examples, pending.counts, found.counts
    while done[EVENT] < asked.op.size:
        event = done[EVENT]
        op, key = asked.op[event], asked.key[event]
        dropped = store.heads[key, LIVES] if op == DROP else 0
        if done[GONE] + dropped + AT_ONCE + 2 > found.gone.size:
            return FULL_GONE
        takes = op == PREDICT and asked.named[event] == 1
        row = int64(NONE)
        if asked.named[event] == 1 and (takes or store.counts[USED] > 0):
            row = int64(example_store.lookup(store, int64(key) * 2 + 1, asked.high[event], asked.low[event]))
        if takes:
            rows, features = example_store.room(store, asked.start[event + 1] - asked.start[event])
            if not rows and store.counts[USED] < counts[MOST]:
                return FULL_ROWS
            if not features:
                return FULL_FEATURES
            if counts[TAIL] == pending.row.size:
                return FULL_QUEUE
        elif op == LABEL and row != NONE and done[WORDS] + store.rows[row, LENGTH] > found.words.size:
            return FULL_WORDS
        # From here on nothing stops it, so that the state does not depend on what was too small.
        if done[RECORD] != asked.record[event]:
            done[RECORD] = asked.record[event]
            _begin(pending, asked.clock[asked.record[event]])
        if row != NONE and _is_due(pending, row):
            _let_go(pending, names, row, found)
            done[EXPIRED] += 1
            row = int64(NONE)
        for _ in range(AT_ONCE):
            oldest = _oldest(pending)
            if oldest == NONE or not _is_due(pending, oldest):
                break
            _let_go(pending, names, oldest, found)
            done[EXPIRED] += 1
        if op == DROP:
            while store.heads[key, OLDEST] != NONE:
                _let_go(pending, names, store.heads[key, OLDEST], found)
                done[DROPPED] += 1
        elif takes:
            if row != NONE:
                _let_go(pending, names, row, found)
            if store.counts[USED] == counts[MOST]:
                _let_go(pending, names, _oldest(pending), found)
                done[CROWDED_OUT] += 1
                counts[CROWDED] += 1
            _keep(pending, names, asked, event, found)
        elif row == NONE:
            if op == LABEL:
                found.fate[event] = LATE
        else:
            if op == LABEL:
                _copy(pending, row, event, found)
            found.fate[event] = LABELLED if op == LABEL else SETTLED if op == INSERT else FORGOTTEN
            found.row[event] = row
            found.number[event] = store.rows[row, NUMBER]
            _let_go(pending, names, row, found)
        done[EVENT] += 1
    return DONE


@jit
def shorten(pending: Pending, names: Names, most: int, found: Found) -> None:
    """Let go of what is due among the oldest, and of the oldest that are more than so many.

    `found.gone` and `found.gone_key` must have room for all there are.
    """
    while True:
        oldest = _oldest(pending)
        if oldest == NONE or (pending.examples.counts[USED] <= most and not _is_due(pending, oldest)):
            return
        _let_go(pending, names, oldest, found)


@inlined
def _copy(pending: Pending, row: int, event: int, found: Found) -> None:
    """Hand out what a labelled example holds. There must be room."""
    store, end = pending.examples, found.counts[WORDS]
    start, size = store.rows[row, START], store.rows[row, LENGTH]
    found.start[event] = end
    found.size[event] = size
    found.kind[event] = store.rows[row, PLACE] % KINDS
    for at in range(size):
        found.words[end + at] = store.features[start + at]
    found.counts[WORDS] += size


@inlined
def _begin(pending: Pending, clock: int) -> None:
    """Begin a record: the time of what came with the last but one is known now."""
    counts = pending.counts
    for place in range(counts[BEFORE], counts[LAST]):
        pending.stamp[place] = clock
    counts[BEFORE] = counts[LAST]
    counts[LAST] = counts[TAIL]
    if counts[NOW] == 0 and clock > 0:  # once the clock goes, it is taken to have gone from the beginning
        for place in range(counts[HEAD], counts[BEFORE]):
            pending.stamp[place] = clock
    counts[NOW] = clock


@inlined
def _is_due(pending: Pending, row: int) -> bool:
    """Return whether an example has waited for too long."""
    stamp = pending.stamp[pending.examples.rows[row, PLACE] // KINDS]
    now = pending.counts[NOW]
    due: bool = stamp != NEVER and now > 0 and now - stamp >= pending.counts[SPAN]
    return due


@inlined
def _oldest(pending: Pending) -> int:
    """Return the row of the example that has waited longest, NONE: there is none."""
    counts = pending.counts
    while counts[HEAD] < counts[TAIL] and pending.row[counts[HEAD]] == NONE:
        counts[HEAD] += 1
    return int64(pending.row[counts[HEAD]]) if counts[HEAD] < counts[TAIL] else NONE


@jit
def _keep(pending: Pending, names: Names, asked: Asked, event: int, found: Found) -> None:
    """Keep what a predict holds. There must be room."""
    store, counts = pending.examples, pending.counts
    start, stop = asked.start[event], asked.start[event + 1]
    if asked.kind[event] & NAMED:
        for at in range(start, stop if not asked.kind[event] & VALUED else start + (stop - start) // 3):
            refer(names, asked.words[at])
    place = counts[TAIL] * KINDS + asked.kind[event]
    owner = int64(asked.key[event]) * 2 + 1
    example_store.add(
        store, owner, asked.high[event], asked.low[event], place, counts[KEPT], asked.words, start, stop
    )
    row = example_store.lookup(store, owner, asked.high[event], asked.low[event])
    pending.row[counts[TAIL]] = row
    pending.stamp[counts[TAIL]] = NEVER
    found.fate[event] = TAKEN
    found.row[event] = row
    found.number[event] = counts[KEPT]
    counts[TAIL] += 1
    counts[KEPT] += 1


@jit
def _let_go(pending: Pending, names: Names, row: int, found: Found) -> None:
    """Forget an example."""
    store = pending.examples
    place = store.rows[row, PLACE] // KINDS
    kind = store.rows[row, PLACE] % KINDS
    start, size = store.rows[row, START], store.rows[row, LENGTH]
    if kind & NAMED:
        for at in range(start, start + (size // 3 if kind & VALUED else size)):
            release(names, store.features[at])
    pending.row[place] = NONE
    pending.stamp[place] = 0
    found.gone[found.counts[GONE]] = row
    found.gone_key[found.counts[GONE]] = store.rows[row, OWNER] >> 1
    found.counts[GONE] += 1
    example_store.remove(store, row)
