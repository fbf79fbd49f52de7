"""Split models: the best split of every key's stream, after every event, in one pool of flat arrays.

The way of one event through the kernel::

    apply:  insert | delete | predict | drop  ->  status
    decide: is a split or a snapshot due?     ->  decision

Events are applied strictly in order, so a batch of 1 and a batch of 1000 give the same answers. A
refused event changes nothing. Where the arrays would not hold the next event the kernel stops before
it, `SplitPool` enlarges them and the kernel goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from algorithms import finders, ledger, ranking, slots
from algorithms.arrays import Float64s, Int8s, Int32s, Int64s, UInt32s, are_set, extended, int64
from algorithms.cadence import CHANGE, Emit, When, is_due, next_period
from algorithms.criteria import CRITERIA, UNIT, score
from algorithms.exact import SHORT
from algorithms.given import check_batch, features_of, index_of, label_of, units_of, whole
from algorithms.jit import inlined, jit
from algorithms.ledger import Ledger, content_key
from algorithms.names import NO_NAMES, Interner, Names, name_or_id, refer, release
from algorithms.ranking import Ranking
from algorithms.slots import BEST, C0, C1, CHAIN, FEATURES, GRAIN, N0, N1, NONE, Slots, feature_of
from algorithms.units import MAX_TOTAL as MAX_TOTAL  # for all who import it from here


class Op(IntEnum):
    """What an event asks for."""

    INSERT = 0
    DELETE = 1
    PREDICT = 2
    DROP = 3  # forget the whole index


class Status(IntEnum):
    """What became of an event; codes from `DUPLICATE_ID` on are refusals, which change nothing."""

    APPLIED = 0
    IGNORED = 1  # a repeated id, with on_duplicate "ignore"
    ALREADY_DROPPED = 2  # a delete of an example that the window had dropped before
    DUPLICATE_ID = 3
    ABSENT_ID = 4
    ABSENT_EXAMPLE = 5
    TOO_MANY_INDEXES = 6
    TOO_MANY_LIVE_IDS = 7
    COUNT_OVERFLOW = 8
    SKIPPED = 9  # the caller had refused the event before


class OnDuplicate(IntEnum):
    """What to do with an insert whose id is live."""

    REJECT = 0
    IGNORE = 1
    REPLACE = 2


_INSERT, _DELETE, _PREDICT, _DROP = (int(op) for op in Op)
_APPLIED, _IGNORED, _ALREADY_DROPPED, _DUPLICATE_ID, _ABSENT_ID, _ABSENT_EXAMPLE = range(6)
_TOO_MANY_INDEXES, _TOO_MANY_LIVE_IDS, _COUNT_OVERFLOW, _SKIPPED = range(6, 10)
_IGNORE, _REPLACE = 1, 2

# Columns of `SplitPool`'s own heads.
EVENTS = 0  # inserts and deletes applied
ALIVE = 1  # 1 once an insert was applied, until the index is dropped
LAST = 2  # the best feature after the event before, or NONE; watched, it has a slot between events
SPLIT_PERIOD, TREE_PERIOD = 3, 4  # the period of event time that the last event was in, -1 before the first
_HEAD = (0, 0, NONE, -1, -1)
_LAST_TIME = 1 << 62

# Bits of `Decisions.due`.
SPLIT_DUE, TREE_DUE = 1, 2

# Why the kernel stopped.
_DONE, _SLOTS, _BOXES, _ROWS, _CONTENT = 0, 1, 2, 3, 4


class Rules(NamedTuple):
    """The settings of a pool, as its kernel sees them."""

    window: int  # 0: no window
    tracked: bool  # every live example is in the ledger
    keyed: bool  # the caller gives the digests of anonymous examples' contents, see shards.py
    on_duplicate: int
    max_indexes: int
    max_live_ids: int
    split_when: int
    split_argument: int
    tree_when: int
    tree_argument: int


class Batch(NamedTuple):
    """Events for a pool, in order."""

    index: Int32s  # type: ignore[assignment]  # int32[n], whose event (hides tuple.index, which nobody needs)
    op: Int8s  # int8[n], an `Op`; negative: skip
    label: Int8s  # int8[n], 0 or 1
    weight: Int64s  # int64[n], in units of 2^-20, > 0
    time: Int64s  # int64[n], event time, ms
    named: Int8s  # int8[n], 1 where the example has an id
    id_high: Int64s  # int64[n], 61 bits of the digest of the id
    id_low: Int64s  # int64[n], 61 more
    pointer: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[ones], no repeats in an example


class Decisions(NamedTuple):
    """What a batch led to, trimmed to size. Scores are un-normalised (weight times impurity)."""

    status: Int8s  # int8[n], a `Status` for each event
    event: Int64s  # int64[k], the events after which something was due, ascending
    due: Int8s  # int8[k], SPLIT_DUE | TREE_DUE
    feature: Int64s  # int64[k], the best feature, NONE where nothing splits the node
    runner_up: Int64s  # int64[k], likewise the second best
    totals: Int64s  # int64[k, 2], weights of the labels in the node
    present: Int64s  # int64[k, 2], among the examples with the feature
    events: Int64s  # int64[k], how many events the index had applied
    score: Float64s  # float64[k], of the best; the node's own impurity where there is none
    runner_up_score: Float64s  # float64[k]
    impurity: Float64s  # float64[k], of the node itself
    asked: Int64s  # int64[p], the events that were predictions
    leaf: Int64s  # int64[p]: 0 no split yet, 1 feature absent, 2 feature present
    weights: Int64s  # int64[p, 2], weights of the labels in that leaf
    guide: Int64s  # int64[p], the best feature, by which the leaf was chosen, or NONE
    guide_score: Float64s  # float64[p]
    changes: int  # how often a best feature became another, as far as was looked


class _Out(NamedTuple):
    """Where the kernel writes; rows beyond the counts are garbage."""

    status: Int8s
    event: Int64s
    due: Int8s
    numbers: Int64s  # int64[n, 7]: feature, runner-up, n0, n1, a, b, events
    scores: Float64s  # float64[n, 3]: best, runner-up, node
    asked: Int64s  # int64[n, 5]: event, leaf, weights, the best feature
    guides: Float64s  # float64[n], the score of that feature
    counts: Int64s  # int64[3]: decisions, predictions, changes of a best feature
    scratch: Int32s  # the slots of one example


class _Pool(NamedTuple):
    """All that the kernel works on."""

    slots: Slots
    finder: Any
    criterion: Any
    names: Names
    ledger: Ledger
    heads: Int64s  # int64[indexes, 5]
    alive: Int64s  # int64[1], how many indexes are alive


# --- counting


@inlined
def _gather(pool: _Pool, index: int, features: UInt32s, start: int, stop: int, found: Int32s) -> bool:
    """Write the slots of an example to `found`; False where a feature has none."""
    for at in range(start, stop):
        slot = slots.lookup(pool.slots, index, int64(features[at]))
        if slot == NONE:
            return False
        found[at - start] = slot
    return True


@inlined
def _gather_or_create(pool: _Pool, index: int, features: UInt32s, start: int, stop: int, found: Int32s) -> None:
    """Write the slots of an example to `found`, made where there are none."""
    for at in range(start, stop):
        feature = int64(features[at])
        slot = slots.lookup(pool.slots, index, feature)
        if slot == NONE:
            slot = slots.create(pool.slots, index, feature)
            refer(pool.names, feature)
        found[at - start] = slot


@inlined
def _add(pool: _Pool, index: int, label: int, weight: int, found: Int32s, ones: int) -> None:
    """Add a weight (negative: take it away) to the totals and to the slots found."""
    heads = pool.slots.heads
    rows = pool.slots.rows
    heads[index, N0 + label] += weight
    lowest_bit = weight & -weight
    if heads[index, GRAIN] == 0 or lowest_bit < heads[index, GRAIN]:
        heads[index, GRAIN] = lowest_bit
    for at in range(ones):
        slot = int64(found[at])
        rows[slot, C0 + label] += weight
        finders.touched(pool.finder, pool.slots, index, slot, label, weight)


@inlined
def _remove_slot(pool: _Pool, index: int, slot: int) -> None:
    feature = feature_of(pool.slots, slot)
    finders.removing(pool.finder, pool.slots, index, slot)
    slots.remove(pool.slots, index, slot)
    release(pool.names, feature)


@jit
def _remove_empty(pool: _Pool, index: int, found: Int32s, ones: int) -> None:
    rows = pool.slots.rows
    for at in range(ones):
        slot = int64(found[at])
        if rows[slot, C0] + rows[slot, C1] == 0:
            _remove_slot(pool, index, slot)


@jit
def _subtract(
    pool: _Pool,
    index: int,
    label: int,
    weight: int,
    features: UInt32s,
    start: int,
    stop: int,
    found: Int32s,
    trusted: bool,
) -> bool:
    """Take an example out of the counts; False, and nothing changed, where it cannot have been in them.

    `trusted` says that the ledger vouches for the example. Otherwise the counts must: none may fall
    below zero, and no feature may be left with more than the totals.
    """
    rows = pool.slots.rows
    ones = stop - start
    if pool.slots.heads[index, N0 + label] < weight or not _gather(pool, index, features, start, stop, found):
        return False
    if not trusted:
        for at in range(ones):
            if rows[int64(found[at]), C0 + label] < weight:
                return False
    grain = pool.slots.heads[index, GRAIN]
    finders.taking(pool.finder, pool.slots, pool.criterion, index, label, weight)
    _add(pool, index, label, -weight, found, ones)
    if not trusted and finders.overfull(pool.finder, pool.slots, index):
        _add(pool, index, label, weight, found, ones)
        pool.slots.heads[index, GRAIN] = grain
        return False
    _remove_empty(pool, index, found, ones)
    return True


@jit
def _forget_row(pool: _Pool, index: int, row: int, found: Int32s, trusted: bool) -> bool:
    """Take the example of a ledger row out of the counts."""
    rows = pool.ledger.rows
    start = rows[row, ledger.START]
    stop = start + rows[row, ledger.LENGTH]
    return _subtract(
        pool,
        index,
        rows[row, ledger.LABEL],
        rows[row, ledger.WEIGHT],
        pool.ledger.features,
        start,
        stop,
        found,
        trusted,
    )


@jit
def _enter_row(pool: _Pool, owner: int, high: int, low: int, batch: Batch, event: int) -> None:
    """Enter an inserted example in the ledger, which holds on to the names of its features."""
    start = batch.pointer[event]
    stop = batch.pointer[event + 1]
    label = int64(batch.label[event])
    ledger.add(pool.ledger, owner, high, low, label, batch.weight[event], batch.feature, start, stop)
    for at in range(start, stop):
        refer(pool.names, int64(batch.feature[at]))


@jit
def _release_names(pool: _Pool, row: int) -> None:
    """Let go of the names that a ledger row holds on to, before the row is struck out or loses its features."""
    start = pool.ledger.rows[row, ledger.START]
    for at in range(start, start + pool.ledger.rows[row, ledger.LENGTH]):
        release(pool.names, int64(pool.ledger.features[at]))


@jit
def _strike_row(pool: _Pool, row: int) -> None:
    """Strike out a ledger row, live or dropped."""
    _release_names(pool, row)
    ledger.remove(pool.ledger, row)


# --- operations


@inlined
def _insert(pool: _Pool, rules: Rules, batch: Batch, event: int, found: Int32s) -> int:
    index = int64(batch.index[event])
    named = int64(batch.named[event])
    weight = batch.weight[event]
    label = int64(batch.label[event])
    start = batch.pointer[event]
    stop = batch.pointer[event + 1]
    owner = index * 2 + named
    if pool.heads[index, ALIVE] == 0 and pool.alive[0] >= rules.max_indexes:
        return _TOO_MANY_INDEXES
    if weight >= MAX_TOTAL - (pool.slots.heads[index, N0] + pool.slots.heads[index, N1]):
        return _COUNT_OVERFLOW
    high = batch.id_high[event]
    low = batch.id_low[event]
    if named:
        row = ledger.lookup(pool.ledger, owner, high, low)
        if row != NONE and pool.ledger.rows[row, ledger.STATE] == ledger.LIVE:
            if rules.on_duplicate == _IGNORE:
                return _IGNORED
            if rules.on_duplicate != _REPLACE:
                return _DUPLICATE_ID
            if not _forget_row(pool, index, row, found, rules.tracked):
                return _ABSENT_EXAMPLE
            _strike_row(pool, row)
        else:
            if pool.ledger.counts[ledger.NAMED] >= rules.max_live_ids:
                return _TOO_MANY_LIVE_IDS
            if row != NONE:
                _strike_row(pool, row)
    elif rules.tracked and not rules.keyed:
        high, low = content_key(batch.feature, start, stop, label, weight)
    if pool.heads[index, ALIVE] == 0:
        pool.heads[index, ALIVE] = 1
        pool.alive[0] += 1
    _gather_or_create(pool, index, batch.feature, start, stop, found)
    _add(pool, index, label, weight, found, stop - start)
    if named or rules.tracked:
        _enter_row(pool, owner, high, low, batch, event)
    if rules.window > 0 and pool.ledger.heads[index, ledger.LIVES] > rules.window:
        oldest = pool.ledger.heads[index, ledger.OLDEST]
        _forget_row(pool, index, oldest, found, True)
        _release_names(pool, oldest)
        ledger.shelve(pool.ledger, oldest, rules.window)
    return _APPLIED


@jit
def _delete(pool: _Pool, rules: Rules, batch: Batch, event: int, found: Int32s) -> int:
    index = int64(batch.index[event])
    named = int64(batch.named[event])
    start = batch.pointer[event]
    stop = batch.pointer[event + 1]
    weight = batch.weight[event]
    label = int64(batch.label[event])
    high = batch.id_high[event]
    low = batch.id_low[event]
    if named:
        row = ledger.lookup(pool.ledger, index * 2 + 1, high, low)
        if row == NONE:
            return _ABSENT_ID
        if pool.ledger.rows[row, ledger.STATE] == ledger.DROPPED:
            return _ALREADY_DROPPED
    elif rules.tracked:
        if not rules.keyed:
            high, low = content_key(batch.feature, start, stop, label, weight)
        row = ledger.lookup(pool.ledger, index * 2, high, low)
        if row == NONE:
            return _ABSENT_EXAMPLE
    else:
        gone = _subtract(pool, index, label, weight, batch.feature, start, stop, found, False)
        return _APPLIED if gone else _ABSENT_EXAMPLE
    if not _forget_row(pool, index, row, found, rules.tracked):
        return _ABSENT_EXAMPLE
    _strike_row(pool, row)
    return _APPLIED


@jit
def _drop(pool: _Pool, index: int) -> None:
    """Forget an index: its slots, boxes, live examples and marks."""
    slot = pool.slots.heads[index, CHAIN]
    while slot != NONE:
        _remove_slot(pool, index, slot)
        slot = pool.slots.heads[index, CHAIN]
    finders.dropping(pool.finder, pool.slots, index)
    heads = pool.ledger.heads
    while heads[index, ledger.OLDEST] != NONE:
        _strike_row(pool, heads[index, ledger.OLDEST])
    while heads[index, ledger.FIRST_DROPPED] != NONE:
        _strike_row(pool, heads[index, ledger.FIRST_DROPPED])
    slots.reset(pool.slots, index)
    pool.alive[0] -= pool.heads[index, ALIVE]
    pool.heads[index, EVENTS] = 0
    pool.heads[index, ALIVE] = 0
    pool.heads[index, LAST] = NONE
    pool.heads[index, SPLIT_PERIOD] = -1
    pool.heads[index, TREE_PERIOD] = -1


# --- deciding


@inlined
def _best(pool: _Pool, index: int) -> int:
    """Return the slot of the best split now, NONE where nothing splits the node, or SHORT."""
    heads = pool.slots.heads
    if heads[index, N0] == 0 or heads[index, N1] == 0:
        return NONE  # a pure node needs no split
    best = finders.find(pool.finder, pool.slots, pool.names, pool.criterion, index, NONE)
    if best != SHORT:
        heads[index, BEST] = best
    return best


@inlined
def _decide(pool: _Pool, rules: Rules, index: int, event: int, time: int, out: _Out) -> bool:
    """Settle the finder and write a decision where one is due; False, and none is lost, where it ran short."""
    if not finders.settle(pool.finder, pool.slots, pool.names, pool.criterion, index):
        return False
    heads = pool.heads
    events = heads[index, EVENTS]
    split_due = is_due(rules.split_when, rules.split_argument, events, time, heads[index, SPLIT_PERIOD])
    tree_due = is_due(rules.tree_when, rules.tree_argument, events, time, heads[index, TREE_PERIOD])
    watched = rules.split_when == CHANGE or rules.tree_when == CHANGE
    changed = 0
    if split_due or tree_due or watched:
        best = _best(pool, index)
        if best == SHORT:
            return False
        feature = feature_of(pool.slots, best) if best != NONE else NONE
        if feature != heads[index, LAST]:
            changed = 1
            split_due = split_due or rules.split_when == CHANGE
            tree_due = tree_due or rules.tree_when == CHANGE
        if split_due or tree_due:
            runner_up = NONE
            if best != NONE:
                runner_up = finders.find(pool.finder, pool.slots, pool.names, pool.criterion, index, best)
            if runner_up == SHORT:
                return False
            _write(pool, index, event, best, runner_up, split_due, tree_due, out)
        heads[index, LAST] = feature
        out.counts[2] += changed
    heads[index, SPLIT_PERIOD] = next_period(
        rules.split_when, rules.split_argument, time, heads[index, SPLIT_PERIOD]
    )
    heads[index, TREE_PERIOD] = next_period(rules.tree_when, rules.tree_argument, time, heads[index, TREE_PERIOD])
    return True


@jit
def _score_of(pool: _Pool, index: int, slot: int) -> float:
    """Return the score of a slot; without one, of the node left whole."""
    n0 = pool.slots.heads[index, N0]
    n1 = pool.slots.heads[index, N1]
    if slot == NONE:
        return score(pool.criterion, 0, 0, n0, n1)
    return score(pool.criterion, pool.slots.rows[slot, C0], pool.slots.rows[slot, C1], n0, n1)


@jit
def _write(
    pool: _Pool,
    index: int,
    event: int,
    best: int,
    runner_up: int,
    split_due: bool,
    tree_due: bool,
    out: _Out,
) -> None:
    at = out.counts[0]
    out.counts[0] += 1
    out.event[at] = event
    out.due[at] = (SPLIT_DUE if split_due else 0) | (TREE_DUE if tree_due else 0)
    out.numbers[at, 0] = feature_of(pool.slots, best) if best != NONE else NONE
    out.numbers[at, 1] = feature_of(pool.slots, runner_up) if runner_up != NONE else NONE
    out.numbers[at, 2] = pool.slots.heads[index, N0]
    out.numbers[at, 3] = pool.slots.heads[index, N1]
    out.numbers[at, 4] = pool.slots.rows[best, C0] if best != NONE else 0
    out.numbers[at, 5] = pool.slots.rows[best, C1] if best != NONE else 0
    out.numbers[at, 6] = pool.heads[index, EVENTS]
    out.scores[at, 0] = _score_of(pool, index, best)
    out.scores[at, 1] = _score_of(pool, index, runner_up)
    out.scores[at, 2] = _score_of(pool, index, NONE)


@jit
def _predict(pool: _Pool, batch: Batch, event: int, out: _Out) -> bool:
    """Answer with the weights of the leaf that the example falls into; False where the finder ran short."""
    index = int64(batch.index[event])
    best = _best(pool, index)
    if best == SHORT:
        return False
    at = out.counts[1]
    out.counts[1] += 1
    out.asked[at, 0] = event
    out.asked[at, 1] = 0
    out.asked[at, 2] = pool.slots.heads[index, N0]
    out.asked[at, 3] = pool.slots.heads[index, N1]
    out.asked[at, 4] = NONE
    out.guides[at] = _score_of(pool, index, best)
    if best == NONE:
        return True
    feature = feature_of(pool.slots, best)
    out.asked[at, 4] = feature
    a = pool.slots.rows[best, C0]
    b = pool.slots.rows[best, C1]
    for k in range(batch.pointer[event], batch.pointer[event + 1]):
        if int64(batch.feature[k]) == feature:
            out.asked[at, 1] = 2
            out.asked[at, 2] = a
            out.asked[at, 3] = b
            return True
    out.asked[at, 1] = 1
    out.asked[at, 2] -= a
    out.asked[at, 3] -= b
    return True


# --- the loop


@inlined
def _shortage(pool: _Pool, rules: Rules, batch: Batch, event: int) -> int:
    """Return what must be enlarged before an event can be applied, _DONE where all is there."""
    op = batch.op[event]
    if op != _INSERT and op != _DELETE:
        return _DONE
    index = int64(batch.index[event])
    ones = batch.pointer[event + 1] - batch.pointer[event]
    touched = ones
    if op == _INSERT:
        if slots.room(pool.slots) < ones:
            return _SLOTS
        if batch.named[event] or rules.tracked:
            rows, content = ledger.room(pool.ledger, ones)
            if not rows:
                return _ROWS
            if not content:
                return _CONTENT
    if batch.named[event]:
        row = ledger.lookup(pool.ledger, index * 2 + 1, batch.id_high[event], batch.id_low[event])
        if row != NONE:
            touched += pool.ledger.rows[row, ledger.LENGTH]
    if rules.window > 0:
        oldest = pool.ledger.heads[index, ledger.OLDEST]
        if oldest != NONE:
            touched += pool.ledger.rows[oldest, ledger.LENGTH]
    # A refused delete goes forth and back, hence twice.
    return _DONE if finders.ready(pool.finder, 2 * touched) else _BOXES


@jit
def _apply(pool: _Pool, rules: Rules, batch: Batch, out: _Out, event: int, decide: bool) -> tuple[int, bool, int]:
    """Apply events from `event` on; `decide` says that this one is applied and only its decision is due.

    Returns where it stopped, whether that event is applied, and why.
    """
    while event < batch.index.size:
        op = batch.op[event]
        index = int64(batch.index[event])
        if not decide:
            short = _shortage(pool, rules, batch, event)
            if short != _DONE:
                return event, False, short
            status = _APPLIED
            if op == _INSERT:
                status = _insert(pool, rules, batch, event, out.scratch)
            elif op == _DELETE:
                status = _delete(pool, rules, batch, event, out.scratch)
            elif op == _DROP:
                _drop(pool, index)
            elif op < 0:
                status = _SKIPPED
            out.status[event] = status
            decide = status == _APPLIED and op != _DROP
            if decide and op != _PREDICT:
                pool.heads[index, EVENTS] += 1
        if decide:
            if op == _PREDICT:
                enough = _predict(pool, batch, event, out)
            else:
                enough = _decide(pool, rules, index, event, batch.time[event], out)
            if not enough:
                return event, True, _BOXES
        decide = False
        event += 1
    return event, False, _DONE


class Split(NamedTuple):
    """A split of one index, as a library user sees it."""

    feature: int | bytes | None
    score: float  # weight times impurity after the split; of the node itself where there is none
    runner_up: int | bytes | None
    runner_up_score: float
    totals: tuple[int, int]  # in units of 2^-20
    present: tuple[int, int]


class Ranked(NamedTuple):
    """One of the best features of an index."""

    feature: int | bytes
    score: float  # weight times impurity after the split
    present: tuple[int, int]  # weights of the labels where the feature is present, in units of 2^-20


class SplitPool:
    """Any number of split models in one set of arrays; an index is a small integer.

    Parameters
    ----------
    finder : str
        A name in `FINDERS`.
    criterion : str
        A name in `CRITERIA`.
    alpha : float
        For the finders updent and updgini, from 0.001 to 100: their answers score at most (1 + alpha) times
        the best. The others ignore it.
    window : int, optional
        Keep only the last so many examples of each index.
    verify_deletes : bool
        Keep every live example, so that a delete by value is checked exactly. Without it a delete by
        value is refused where the counts show that the example cannot be there.
    on_duplicate : OnDuplicate
        What an insert of a live id does.
    names : bool
        Features are byte strings, interned here; otherwise ids below 2^32.
    splits, trees : Emit
        When a decision is due.
    max_indexes, max_live_ids : int
        Bounds; what would pass them is refused.
    """

    def __init__(
        self,
        *,
        finder: str = "exact",
        criterion: str = "entropy",
        alpha: float = 0.1,
        window: int | None = None,
        verify_deletes: bool = False,
        on_duplicate: OnDuplicate = OnDuplicate.REJECT,
        names: bool = False,
        splits: Emit = Emit(When.CHANGE),  # noqa: B008  (a constant)
        trees: Emit = Emit(),  # noqa: B008
        max_indexes: int = 1 << 30,
        max_live_ids: int = 1 << 30,
    ) -> None:
        _check_choice("finder", finder, finders.FINDERS)
        _check_choice("criterion", criterion, CRITERIA)
        if min(splits.argument, trees.argument) < 1:
            raise ValueError("expected n or ms of at least 1 for what is emitted every so often")
        only = finders.FINDERS[finder].criterion
        if only not in (None, criterion):
            raise ValueError(f"finder {finder!r} serves the criterion {only!r} only, not {criterion!r}")
        if not 0.001 <= alpha <= 100.0:
            raise ValueError(f"expected an alpha from 0.001 to 100, got {alpha}")
        if window is not None and window < 1:
            raise ValueError(f"expected a window of at least 1 example, got {window}")
        self._module = finders.FINDERS[finder].module
        self._make_criterion: Callable[[int], Any] = CRITERIA[criterion][2]
        self._reach = 1024  # weights that the criterion's memo covers
        self._covered = self._reach  # inserts of weight 1 until an index could have outgrown it
        self.rules = Rules(
            window=window or 0,
            tracked=verify_deletes or window is not None,
            keyed=False,
            on_duplicate=int(on_duplicate),
            max_indexes=max_indexes,
            max_live_ids=max_live_ids,
            split_when=int(splits.when),
            split_argument=splits.argument,
            tree_when=int(trees.when),
            tree_argument=trees.argument,
        )
        self.names = Interner() if names else None
        self._pool = _Pool(
            slots=slots.make(1, 16),
            finder=finders.FINDERS[finder].make(1, 16, alpha),
            criterion=self._make_criterion(self._reach),
            names=self.names.arrays if self.names is not None else NO_NAMES,
            ledger=ledger.make(1),
            heads=np.array([_HEAD], np.int64),
            alive=np.zeros(1, np.int64),
        )

    # --- events

    def apply(self, batch: Batch, *, checked: bool = False) -> Decisions:
        """Apply events in order and return what was due. Amortised O(ones) for all that is built in but scans.

        Parameters
        ----------
        batch : Batch
            The events.
        checked : bool
            Whether the caller has made sure of what `check_events` looks for, as the worker's codec has.

        Raises
        ------
        ValueError
            Where it is no such batch; no event is applied.
        """
        if not checked:
            check_events(batch, self.names)
        n = len(batch.index)
        if n:
            self._reserve(int(batch.index.max()) + 1)
        self._provide_memo(n)
        longest = int(np.diff(batch.pointer).max(initial=0))
        out = _Out(
            status=np.zeros(n, np.int8),
            event=np.empty(n, np.int64),
            due=np.empty(n, np.int8),
            numbers=np.empty((n, 7), np.int64),
            scores=np.empty((n, 3), np.float64),
            asked=np.empty((n, 5), np.int64),
            guides=np.empty(n, np.float64),
            counts=np.zeros(3, np.int64),
            scratch=np.empty(max(longest, self._longest_live), np.int32),
        )
        if self.rules.tracked or batch.named.any():
            self._longest_live = max(self._longest_live, longest)
        if self.names is not None:
            self._pool = self._pool._replace(names=self.names.arrays)
        event, applied, short = 0, False, _SLOTS
        while short != _DONE:
            event, applied, short = _apply(self._pool, self.rules, batch, out, event, applied)
            if short != _DONE:
                self._enlarge(short, int(batch.pointer[event + 1] - batch.pointer[event]))
        return _trimmed(out)

    _longest_live = 0  # features of the largest example in the ledger

    def _reserve(self, indexes: int) -> None:
        before = len(self._pool.heads)
        if indexes > before:
            self._grow(max(indexes, 2 * before), len(self._pool.slots.rows))

    def _grow(self, indexes: int, capacity: int) -> None:
        before = len(self._pool.heads)
        heads = extended(self._pool.heads, indexes)
        heads[before:] = _HEAD
        self._pool = self._pool._replace(
            slots=slots.grown(self._pool.slots, indexes, capacity),
            finder=self._module.grown(self._pool.finder, indexes, capacity),
            ledger=ledger.grown(self._pool.ledger, indexes),
            heads=heads,
        )

    def _enlarge(self, short: int, ones: int) -> None:
        pool = self._pool
        if short == _SLOTS:
            self._grow(len(pool.heads), 2 * max(len(pool.slots.rows), ones))
        elif short == _BOXES:
            self._pool = pool._replace(finder=self._module.enlarged(pool.finder))
        elif short == _ROWS:
            self._pool = pool._replace(ledger=ledger.with_rows(pool.ledger))
        else:
            self._pool = pool._replace(ledger=ledger.with_features(pool.ledger, ones))

    def _provide_memo(self, inserts: int) -> None:
        """Make the memo of the criterion long enough for the largest index."""
        self._covered -= inserts
        if self._covered >= 0:
            return
        heads = self._pool.slots.heads
        largest = int((heads[:, N0] + heads[:, N1]).max()) // UNIT + inserts
        if 2 * largest > self._reach:  # with room, or a sliding window would come here all the time
            self._reach = 2 * largest
            self._pool = self._pool._replace(criterion=self._make_criterion(self._reach))
        self._covered = self._reach - largest

    # --- one event at a time, for library users

    def insert(
        self, features: Sequence[int | bytes], label: int, *, weight: float = 1.0, index: int = 0, time: int = 1
    ) -> Status:
        """Learn one example; see `apply` for many.

        Raises
        ------
        ValueError
            Where the example is not one: a wrong feature, label or weight.
        """
        return self._one(Op.INSERT, features, label, weight, index, time)

    def delete(
        self, features: Sequence[int | bytes], label: int, *, weight: float = 1.0, index: int = 0, time: int = 1
    ) -> Status:
        """Forget one example, given by value; see `apply` for many.

        Raises
        ------
        ValueError
            Where the example is not one.
        """
        return self._one(Op.DELETE, features, label, weight, index, time)

    def _one(
        self, op: Op, features: Sequence[int | bytes], label: int, weight: float, index: int, time: int
    ) -> Status:
        batch = Batch(
            index=np.array([index_of(index)], np.int32),
            op=np.array([op], np.int8),
            label=np.array([label_of(label, 2)], np.int8),
            weight=np.array([units_of(weight, 1)], np.int64),
            time=np.array([whole("a time in ms", time, 0, _LAST_TIME)], np.int64),
            named=np.zeros(1, np.int8),
            id_high=np.zeros(1, np.int64),
            id_low=np.zeros(1, np.int64),
            pointer=np.zeros(2, np.int64),
            feature=features_of(features, self.names),
        )
        batch.pointer[1] = len(batch.feature)
        status = Status(int(self.apply(batch, checked=True).status[0]))
        self.sweep(batch.feature)
        return status

    def best(self, index: int = 0) -> Split:
        """Return the best split of an index now."""
        index = index_of(index)
        self._reserve(index + 1)
        heads, rows = self._pool.slots.heads, self._pool.slots.rows
        if self.names is not None:
            self._pool = self._pool._replace(names=self.names.arrays)
        while (best := _best(self._pool, index)) == SHORT:
            self._enlarge(_BOXES, 0)
        runner_up = NONE
        if best != NONE:
            while (runner_up := self._second(index, best)) == SHORT:
                self._enlarge(_BOXES, 0)
        return Split(
            feature=self._feature(best),
            score=float(_score_of(self._pool, index, best)),
            runner_up=self._feature(runner_up),
            runner_up_score=float(_score_of(self._pool, index, runner_up)),
            totals=(int(heads[index, N0]), int(heads[index, N1])),
            present=(int(rows[best, C0]), int(rows[best, C1])) if best != NONE else (0, 0),
        )

    def top(self, index: int = 0, k: int = 10, limit: float = np.inf) -> list[Ranked]:
        """Return the `k` best features of an index now, by score, then by feature.

        Those that score worse than `limit` are left out. A search like that for the best, at worst a look at
        every feature; it changes no state.
        """
        index = index_of(index)
        k = whole("k", k, 1, 1 << 32)
        self._reserve(index + 1)
        pool, rows = self._pool, self._pool.slots.rows
        if self.names is not None:
            pool = pool._replace(names=self.names.arrays)
        found = ranking.make(min(k, self.features(index)), limit)
        _rank(pool, index, found)
        count = int(found.taken[0])
        scored = zip(found.score[:count].tolist(), found.slot[:count].tolist(), strict=True)
        ranked = sorted((score, self._number_or_name(slot), slot) for score, slot in scored)
        return [
            Ranked(feature, score, (int(rows[slot, C0]), int(rows[slot, C1]))) for score, feature, slot in ranked
        ]

    def within(self, index: int = 0, alpha: float = 0.0) -> list[int | bytes]:
        """Return the features whose score is at most (1 + alpha) times the best, by score, then by feature.

        Where nothing splits the node there are none. No state is changed.
        """
        return within(self, index, alpha)

    def _second(self, index: int, best: int) -> int:
        return int(_find(self._pool, index, best))

    def _feature(self, slot: int) -> int | bytes | None:
        return None if slot == NONE else self._number_or_name(slot)

    def _number_or_name(self, slot: int) -> int | bytes:
        return name_or_id(self.names, int(feature_of(self._pool.slots, slot)))

    # --- state

    def sweep(self, interned: Int64s | UInt32s) -> None:
        """Forget the names that nothing refers to any more: of those just interned, and of deleted features."""
        if self.names is not None:
            self.names.sweep(interned)

    def are_alive(self, indexes: Int32s) -> npt.NDArray[np.bool_]:
        """Return which of these indexes have learned something since they were last dropped."""
        return are_set(self._pool.heads[:, ALIVE], indexes)

    @property
    def alive(self) -> int:
        """How many indexes are alive."""
        return int(self._pool.alive[0])

    @property
    def slots(self) -> int:
        """How many (index, feature) pairs are counted."""
        return int(self._pool.slots.counts[slots.USED])

    @property
    def live_examples(self) -> int:
        """How many live examples the ledger holds."""
        return int(self._pool.ledger.heads[:, ledger.LIVES].sum())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the state."""
        return sum(array.nbytes for array in self.arrays().values())

    def features(self, index: int) -> int:
        """Return how many features an index has seen."""
        return int(self._pool.slots.heads[index, FEATURES])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays (not copied)."""
        pool = self._pool
        named: dict[str, npt.NDArray[Any]] = {"heads": pool.heads, "alive": pool.alive}
        parts: dict[str, Any] = {"slots": pool.slots, "finder": pool.finder, "ledger": pool.ledger}
        if self.names is not None:
            parts["names"] = self.names.arrays
        for part, state in parts.items():
            named.update({f"{part}.{field}": array for field, array in state._asdict().items()})
        return named

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take over the state that `arrays` of a pool with the same settings returned (not copied)."""

        def part(name: str, kind: Any) -> Any:
            return kind(**{field: arrays[f"{name}.{field}"] for field in kind._fields})

        if self.names is not None:
            self.names = Interner(part("names", Names))
        self._pool = _Pool(
            slots=part("slots", Slots),
            finder=part("finder", type(self._pool.finder)),
            criterion=self._pool.criterion,
            names=self.names.arrays if self.names is not None else NO_NAMES,
            ledger=part("ledger", Ledger),
            heads=arrays["heads"],
            alive=arrays["alive"],
        )
        self._longest_live = int(self._pool.ledger.rows[:, ledger.LENGTH].max())
        self._covered = 0
        return self

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. O(everything)."""
        pool = self._pool
        slots.check(pool.slots)
        self._module.check(pool.finder, pool.slots)
        ledger.check(pool.ledger)
        assert pool.alive[0] == np.count_nonzero(pool.heads[:, ALIVE])
        for index in range(len(pool.heads)):
            if not pool.heads[index, ALIVE]:
                assert tuple(pool.heads[index].tolist()) == _HEAD
                assert pool.slots.heads[index, FEATURES] == 0
                assert pool.ledger.heads[index, ledger.LIVES] == 0
        if self.names is not None:
            keys = pool.slots.rows[: pool.slots.counts[slots.HIGH], slots.KEY]
            kept = [row for index in range(len(pool.heads)) for row, _, _ in ledger.live(pool.ledger, index)]
            self.names.check_references([keys[keys >= 0] & 0xFFFFFFFF, *kept])


class _Ranks(Protocol):
    def top(self, index: int, k: int, limit: float = ...) -> list[Ranked]: ...
    def features(self, index: int) -> int: ...


def within(pool: _Ranks, index: int, alpha: float) -> list[int | bytes]:
    """Return the features of a pool's index whose score is at most (1 + alpha) times the best."""
    if not 0.0 <= alpha < np.inf:
        raise ValueError(f"expected a finite alpha of at least 0, got {alpha}")
    return [
        row.feature
        for best in pool.top(index, 1)
        for row in pool.top(index, pool.features(index), (1.0 + alpha) * best.score)
    ]


def check_events(batch: Batch, names: Interner | None) -> None:
    """Raise ValueError unless the events of a batch can be applied: see `Batch`. O(ones), with a sort."""
    check_batch(batch, np.int8, names)
    learned = (batch.op == Op.INSERT) | ((batch.op == Op.DELETE) & (batch.named == 0))
    for what, wrong, column in (
        ("labels 0 or 1", (batch.label < 0) | (batch.label > 1), batch.label),
        ("weights of at least 1 unit", batch.weight < 1, batch.weight),
    ):
        if (wrong & learned).any():
            event = int(np.argmax(wrong & learned))
            raise ValueError(f"expected {what}, got {column[event]} in the event {event}")
    row = np.repeat(np.arange(len(batch.index)), np.diff(batch.pointer))
    order = np.lexsort((batch.feature, row))
    row, feature = row[order], batch.feature[order]
    repeated = (row[1:] == row[:-1]) & (feature[1:] == feature[:-1])
    if repeated.any():
        event = int(row[int(np.argmax(repeated))])
        raise ValueError(f"expected each feature of an example once, got one twice in the event {event}")


def _check_choice(what: str, name: str, choices: Mapping[str, Any]) -> None:
    if name not in choices:
        raise ValueError(f"expected a {what} of {', '.join(choices)}, got {name!r}")


@jit
def _find(pool: _Pool, index: int, excluded: int) -> int:
    return finders.find(pool.finder, pool.slots, pool.names, pool.criterion, index, excluded)


@jit
def _rank(pool: _Pool, index: int, found: Ranking) -> None:
    heads = pool.slots.heads
    if heads[index, N0] > 0 and heads[index, N1] > 0:  # a pure node needs no split
        finders.rank(pool.finder, pool.slots, pool.names, pool.criterion, index, found)


def _trimmed(out: _Out) -> Decisions:
    decisions, predictions, changes = out.counts.tolist()
    numbers, scores, asked = out.numbers[:decisions], out.scores[:decisions], out.asked[:predictions]
    return Decisions(
        status=out.status,
        event=out.event[:decisions],
        due=out.due[:decisions],
        feature=numbers[:, 0],
        runner_up=numbers[:, 1],
        totals=numbers[:, 2:4],
        present=numbers[:, 4:6],
        events=numbers[:, 6],
        score=scores[:, 0],
        runner_up_score=scores[:, 1],
        impurity=scores[:, 2],
        asked=asked[:, 0],
        leaf=asked[:, 1],
        weights=asked[:, 2:4],
        guide=asked[:, 4],
        guide_score=out.guides[:predictions],
        changes=changes,
    )
