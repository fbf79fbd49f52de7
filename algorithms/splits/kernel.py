"""Events applied to the splits of many keys, strictly in order.

The way of one event::

    apply:  insert | delete | predict | drop  ->  status
    decide: is a split or a snapshot due?     ->  decision

A batch of 1 and a batch of 1000 give the same answers. A refused event changes nothing. Where the arrays would not
hold the next event the kernel stops before it, the pool enlarges them and the kernel goes on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from algorithms.core import example_store
from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, UInt32s, int64
from algorithms.core.cadence import CHANGE, is_due, next_period
from algorithms.core.criteria import Criterion, score
from algorithms.core.events import (
    ABSENT_EXAMPLE,
    ABSENT_ID,
    ALREADY_DROPPED,
    APPLIED,
    COUNT_OVERFLOW,
    DELETE,
    DONE,
    DROP,
    DUPLICATE_ID,
    IGNORED,
    INSERT,
    LET_GO,
    PREDICT,
    SKIPPED,
    TOO_MANY_KEYS,
    TOO_MANY_LIVE_IDS,
    Batch,
)
from algorithms.core.example_store import ExampleStore, content_key
from algorithms.core.fixed_point import MAX_TOTAL as MAX_TOTAL  # for all who import it from here
from algorithms.core.jit import apart, dispatch, inlined, jit, prefetch
from algorithms.core.names import Names, refer, release
from algorithms.core.stored import stored
from algorithms.splits import finders, last, slots, variance
from algorithms.splits.exact import SHORT, is_alone
from algorithms.splits.ranking import Ranking
from algorithms.splits.slots import BEST, C0, C1, CHAIN, GRAIN, N0, N1, NONE, Slots, feature_of
from algorithms.splits.variance import Variance

_IGNORE, _REPLACE = 1, 2
_WEIGHT_BITS = 44  # a weight has fewer where a label has more than 32: it is in examples then, and below 2^42

# Columns of `SplitPool`'s own heads.
EVENTS = 0  # inserts and deletes applied
ALIVE = 1  # 1 once an insert was applied, until the index is dropped
LAST = 2  # the best feature after the event before, or NONE, or what last.py says
SPLIT_PERIOD, TREE_PERIOD = 3, 4  # the period of event time that the last event was in, -1 before the first
HEAD = (0, 0, NONE, -1, -1)

# Bits of `Decisions.due`.
SPLIT_DUE, TREE_DUE = 1, 2

# What must be enlarged before the kernel can go on, beside `DONE` and `TOLD`.
SLOTS, BOXES, ROWS, CONTENT = range(2, 6)


class Rules(NamedTuple):
    """The settings of a pool, as its kernel sees them."""

    window: int  # 0: no window of a number of examples
    span: int  # in ms, 0: no window by time
    tracked: bool  # every live example is in the example store
    keyed: bool  # the caller gives the digests of anonymous examples' contents, see shards.py
    on_duplicate: int
    max_keys: int
    max_live_ids: int
    split_when: int
    split_argument: int
    tree_when: int
    tree_argument: int


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
    next_present: Int64s  # int64[k, 2], weights of the labels among the examples with the second best
    asked: Int64s  # int64[p], the events that were predictions
    leaf: Int64s  # int64[p]: 0 no split yet, 1 feature absent, 2 feature present
    weights: Int64s  # int64[p, 2], weights of the labels in that leaf
    guide: Int64s  # int64[p], the best feature, by which the leaf was chosen, or NONE
    guide_score: Float64s  # float64[p]
    changes: int  # how often a best feature became another, as far as was looked


class Out(NamedTuple):
    """Where the kernel writes; rows beyond the counts are garbage."""

    status: Int8s
    event: Int64s
    due: Int8s
    numbers: Int64s  # int64[n, 9]: feature, runner-up, n0, n1, a, b, events, a and b of the runner-up
    scores: Float64s  # float64[n, 3]: best, runner-up, node
    asked: Int64s  # int64[n, 5]: event, leaf, weights, the best feature
    guides: Float64s  # float64[n], the score of that feature
    counts: Int64s  # int64[3]: decisions, predictions, changes of a best feature
    scratch: Int32s  # the slots of one example
    hashes: UInt32s  # of the features of the batch, each in its event's index, where the storage is spread


@stored("heads", "alive", "slots", "finder", "ledger", None, None)
class State(NamedTuple):
    """All that the kernel works on."""

    heads: Int64s  # int64[indexes, 5]
    alive: Int64s  # int64[1], how many indexes are alive
    slots: Slots
    finder: Any
    store: ExampleStore
    names: Names  # stored by the pool, where features have names
    criterion: Any


# --- counting


_share = dispatch(
    "Return how much an example weighs in a label: all in its own, where labels are classes.",
    {Criterion: variance.class_share, Variance: variance.number_share},
)
_room = dispatch(
    "Return which weight an example must be below, for weights to sum to less than so much.",
    {Criterion: variance.class_room, Variance: variance.number_room},
)


@inlined
def _gather(pool: State, index: int, features: UInt32s, start: int, stop: int, found: Int32s) -> bool:
    """Write the slots of an example to `found`; False where a feature has none."""
    for at in range(start, stop):
        slot = slots.lookup(pool.slots, index, int64(features[at]))
        if slot == NONE:
            return False
        found[at - start] = slot
    return True


@inlined
def _gather_or_create(
    pool: State, index: int, features: UInt32s, hashes: UInt32s, start: int, stop: int, found: Int32s
) -> None:
    """Write the slots of an example to `found`, made where there are none."""
    is_spread = slots.is_spread(pool.slots)
    for at in range(start, stop):
        feature = int64(features[at])
        hashed = int64(hashes[at]) if is_spread else slots.hash_of(index, feature)
        slot = slots.find(pool.slots, index, feature, hashed)
        if slot == NONE:
            slot = slots.enter(pool.slots, index, feature, hashed)
            refer(pool.names, feature)
        found[at - start] = slot


@inlined
def _add(pool: State, index: int, of: int, weight: int, found: Int32s, ones: int) -> None:
    """Add an example of a label and weight (negative: take it away) to the totals and to the slots found."""
    heads = pool.slots.heads
    rows = pool.slots.rows
    for label in range(2):
        share = _share(pool.criterion, label, of, weight)
        if share == 0:
            continue
        heads[index, N0 + label] += share
        lowest_bit = share & -share
        if heads[index, GRAIN] == 0 or lowest_bit < heads[index, GRAIN]:
            heads[index, GRAIN] = lowest_bit
        for at in range(ones):
            slot = int64(found[at])
            rows[slot, C0 + label] += share
            finders.touched(pool.finder, pool.slots, index, slot, label, share)


@inlined
def _remove_slot(pool: State, index: int, slot: int) -> None:
    feature = feature_of(pool.slots, slot)
    finders.removing(pool.finder, pool.slots, index, slot)
    slots.remove(pool.slots, index, slot)
    pool.heads[index, LAST] = last.without(pool.names, pool.heads[index, LAST], feature)
    release(pool.names, feature)


@jit
def _remove_empty(pool: State, index: int, found: Int32s, ones: int) -> None:
    rows = pool.slots.rows
    for at in range(ones):
        slot = int64(found[at])
        if rows[slot, C0] + rows[slot, C1] == 0:
            _remove_slot(pool, index, slot)


@jit
def _subtract(
    pool: State,
    index: int,
    of: int,
    weight: int,
    features: UInt32s,
    start: int,
    stop: int,
    found: Int32s,
    trusted: bool,
) -> bool:
    """Take an example out of the counts; False, and nothing changed, where it cannot have been in them.

    `trusted` says that the store vouches for the example. Otherwise the counts must: none may fall
    below zero, and no feature may be left with more than the totals.
    """
    rows = pool.slots.rows
    ones = stop - start
    for label in range(2):
        if pool.slots.heads[index, N0 + label] < _share(pool.criterion, label, of, weight):
            return False
    if not _gather(pool, index, features, start, stop, found):
        return False
    for label in range(2):
        share = _share(pool.criterion, label, of, weight)
        if not trusted:
            for at in range(ones):
                if rows[int64(found[at]), C0 + label] < share:
                    return False
    grain = pool.slots.heads[index, GRAIN]
    for label in range(2):
        share = _share(pool.criterion, label, of, weight)
        if share > 0:
            finders.taking(pool.finder, pool.slots, pool.criterion, index, label, share)
    _add(pool, index, of, -weight, found, ones)
    if not trusted and finders.overfull(pool.finder, pool.slots, index):
        _add(pool, index, of, weight, found, ones)
        pool.slots.heads[index, GRAIN] = grain
        return False
    _remove_empty(pool, index, found, ones)
    return True


@jit
def _forget_row(pool: State, index: int, row: int, found: Int32s, trusted: bool) -> bool:
    """Take the example of an example store row out of the counts."""
    rows = pool.store.rows
    start = rows[row, example_store.START]
    stop = start + rows[row, example_store.LENGTH]
    return _subtract(
        pool,
        index,
        rows[row, example_store.LABEL],
        rows[row, example_store.WEIGHT],
        pool.store.features,
        start,
        stop,
        found,
        trusted,
    )


@inlined
def digest(features: UInt32s, start: int, stop: int, label: int, weight: int) -> tuple[int, int]:
    """Return the digest of an example without an id. A label that is a number may take more than 32 bits."""
    return content_key(features, start, stop, label & 0xFFFFFFFF, weight + ((label >> 32) << _WEIGHT_BITS))


@jit
def _enter_row(pool: State, owner: int, high: int, low: int, batch: Batch, event: int) -> None:
    """Enter an inserted example in the example store, which holds on to the names of its features."""
    start = batch.pointer[event]
    stop = batch.pointer[event + 1]
    label = int64(batch.label[event])
    example_store.add(pool.store, owner, high, low, label, batch.weight[event], batch.feature, start, stop)
    for at in range(start, stop):
        refer(pool.names, int64(batch.feature[at]))


@jit
def _release_names(pool: State, row: int) -> None:
    """Let go of the names that a row of the store holds, before it is struck out or loses its features."""
    start = pool.store.rows[row, example_store.START]
    for at in range(start, start + pool.store.rows[row, example_store.LENGTH]):
        release(pool.names, int64(pool.store.features[at]))


@jit
def _strike_row(pool: State, row: int) -> None:
    """Strike out an example store row, live or dropped."""
    _release_names(pool, row)
    example_store.remove(pool.store, row)


# --- operations


@inlined
def _insert(pool: State, rules: Rules, batch: Batch, event: int, hashes: UInt32s, found: Int32s) -> int:
    index = int64(batch.key[event])
    named = int64(batch.named[event])
    weight = batch.weight[event]
    label = int64(batch.label[event])
    start = batch.pointer[event]
    stop = batch.pointer[event + 1]
    owner = index * 2 + named
    if pool.heads[index, ALIVE] == 0 and pool.alive[0] >= rules.max_keys:
        return TOO_MANY_KEYS
    if weight >= _room(pool.criterion, MAX_TOTAL - (pool.slots.heads[index, N0] + pool.slots.heads[index, N1])):
        return COUNT_OVERFLOW
    high = batch.id_high[event]
    low = batch.id_low[event]
    if named:
        row = example_store.lookup(pool.store, owner, high, low)
        if row != NONE and pool.store.rows[row, example_store.STATE] == example_store.LIVE:
            if rules.on_duplicate == _IGNORE:
                return IGNORED
            if rules.on_duplicate != _REPLACE:
                return DUPLICATE_ID
            if not _forget_row(pool, index, row, found, rules.tracked):
                return ABSENT_EXAMPLE
            _strike_row(pool, row)
        else:
            if pool.store.counts[example_store.NAMED] >= rules.max_live_ids:
                return TOO_MANY_LIVE_IDS
            if row != NONE:
                _strike_row(pool, row)
    elif rules.tracked and not rules.keyed:
        high, low = digest(batch.feature, start, stop, label, weight)
    if pool.heads[index, ALIVE] == 0:
        pool.heads[index, ALIVE] = 1
        pool.alive[0] += 1
    _gather_or_create(pool, index, batch.feature, hashes, start, stop, found)
    _add(pool, index, label, weight, found, stop - start)
    if named or rules.tracked:
        _enter_row(pool, owner, high, low, batch, event)
        example_store.date(pool.store, index, batch, event)
    if rules.window > 0 and pool.store.heads[index, example_store.LIVES] > rules.window:
        oldest = pool.store.heads[index, example_store.OLDEST]
        _forget_row(pool, index, oldest, found, True)
        _release_names(pool, oldest)
        example_store.expire(pool.store, oldest, rules.window)
    return APPLIED


@jit
def _delete(pool: State, rules: Rules, batch: Batch, event: int, found: Int32s) -> int:
    index = int64(batch.key[event])
    named = int64(batch.named[event])
    start = batch.pointer[event]
    stop = batch.pointer[event + 1]
    weight = batch.weight[event]
    label = int64(batch.label[event])
    high = batch.id_high[event]
    low = batch.id_low[event]
    if named:
        row = example_store.lookup(pool.store, index * 2 + 1, high, low)
        if row == NONE:
            return ABSENT_ID
        if pool.store.rows[row, example_store.STATE] == example_store.DROPPED:
            is_known = example_store.is_remembered(pool.store, row, batch, event, rules.span)
            return ALREADY_DROPPED if is_known else ABSENT_ID
    elif rules.tracked:
        if not rules.keyed:
            high, low = digest(batch.feature, start, stop, label, weight)
        row = example_store.lookup(pool.store, index * 2, high, low)
        if row == NONE:
            return ABSENT_EXAMPLE
    elif weight >= _room(pool.criterion, MAX_TOTAL):
        return ABSENT_EXAMPLE  # no sum could hold it
    else:
        gone = _subtract(pool, index, label, weight, batch.feature, start, stop, found, False)
        return APPLIED if gone else ABSENT_EXAMPLE
    if not _forget_row(pool, index, row, found, rules.tracked):
        return ABSENT_EXAMPLE
    _strike_row(pool, row)
    return APPLIED


@jit
def _let_go(pool: State, rules: Rules, row: int, batch: Batch, event: int, found: Int32s) -> None:
    """Let an example go that is due."""
    _forget_row(pool, int64(batch.key[event]), row, found, True)
    _release_names(pool, row)
    example_store.let_go(pool.store, row, batch, event, rules.span)


@jit
def drop(pool: State, index: int) -> None:
    """Forget an index: its slots, boxes, live examples and marks."""
    slot = pool.slots.heads[index, CHAIN]
    while slot != NONE:
        _remove_slot(pool, index, slot)
        slot = pool.slots.heads[index, CHAIN]
    finders.dropping(pool.finder, pool.slots, index)
    heads = pool.store.heads
    while heads[index, example_store.OLDEST] != NONE:
        _strike_row(pool, heads[index, example_store.OLDEST])
    while heads[index, example_store.FIRST_DROPPED] != NONE:
        _strike_row(pool, heads[index, example_store.FIRST_DROPPED])
    slots.reset(pool.slots, index)
    pool.alive[0] -= pool.heads[index, ALIVE]
    pool.heads[index, EVENTS] = 0
    pool.heads[index, ALIVE] = 0
    pool.heads[index, LAST] = NONE
    pool.heads[index, SPLIT_PERIOD] = -1
    pool.heads[index, TREE_PERIOD] = -1


# --- deciding


@jit
def score_of(pool: State, index: int, slot: int) -> float:
    """Return the score of a slot; without one, of the node left whole."""
    n0 = pool.slots.heads[index, N0]
    n1 = pool.slots.heads[index, N1]
    if slot == NONE:
        return score(pool.criterion, 0, 0, n0, n1)
    return score(pool.criterion, pool.slots.rows[slot, C0], pool.slots.rows[slot, C1], n0, n1)


@inlined
def _as_found(criterion: Criterion, pool: State, index: int, excluded: int, best: int) -> int:
    return best


@apart
def _settled(criterion: Variance, pool: State, index: int, excluded: int, best: int) -> int:
    """Return which of the slots that score like the best is the best in whole numbers; NONE splits nothing."""
    if best < 0:  # NONE or SHORT
        return best
    if excluded != NONE or not is_alone(pool.finder, pool.slots, criterion, index, best):
        variance.begin(criterion, excluded, score_of(pool, index, best))
        finders.rank(pool.finder, pool.slots, pool.names, criterion, index, criterion)
        best = variance.best_of(criterion)
    return best if variance.reduces(pool.slots, criterion, index, best) else NONE


_settle = dispatch(
    "Return the best slot, given the one with the least score.", {Criterion: _as_found, Variance: _settled}
)


@inlined
def best_slot(pool: State, index: int) -> int:
    """Return the slot of the best split now, NONE where nothing splits the node, or SHORT."""
    heads = pool.slots.heads
    if heads[index, N0] == 0 or heads[index, N1] == 0:
        return NONE  # a pure node needs no split
    best = finders.find(pool.finder, pool.slots, pool.names, pool.criterion, index, NONE)
    if best != SHORT:
        heads[index, BEST] = best
    return _settle(pool.criterion, pool, index, NONE, best)


@jit
def find(pool: State, index: int, excluded: int) -> int:
    """Return the best slot of an index but `excluded`, NONE where there is none."""
    found = finders.find(pool.finder, pool.slots, pool.names, pool.criterion, index, excluded)
    return _settle(pool.criterion, pool, index, excluded, found)


@inlined
def _decide(pool: State, rules: Rules, index: int, event: int, time: int, out: Out) -> bool:
    """Settle the finder and write a decision where one is due; False, and none is lost, where it ran short."""
    if not finders.settle(pool.finder, pool.slots, pool.names, pool.criterion, index):
        return False
    heads = pool.heads
    if last.has_left(heads[index, LAST]):
        before = last.departed(heads[index, LAST])
        is_back = slots.lookup(pool.slots, index, before) != NONE
        heads[index, LAST] = before if is_back else last.GONE
    events = heads[index, EVENTS]
    split_due = is_due(rules.split_when, rules.split_argument, events, time, heads[index, SPLIT_PERIOD])
    tree_due = is_due(rules.tree_when, rules.tree_argument, events, time, heads[index, TREE_PERIOD])
    watched = rules.split_when == CHANGE or rules.tree_when == CHANGE
    changed = 0
    if split_due or tree_due or watched:
        best = best_slot(pool, index)
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
                runner_up = find(pool, index, best)
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
def _write(
    pool: State,
    index: int,
    event: int,
    best: int,
    runner_up: int,
    split_due: bool,
    tree_due: bool,
    out: Out,
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
    out.numbers[at, 7] = pool.slots.rows[runner_up, C0] if runner_up != NONE else 0
    out.numbers[at, 8] = pool.slots.rows[runner_up, C1] if runner_up != NONE else 0
    out.scores[at, 0] = score_of(pool, index, best)
    out.scores[at, 1] = score_of(pool, index, runner_up)
    out.scores[at, 2] = score_of(pool, index, NONE)


@jit
def _predict(pool: State, batch: Batch, event: int, out: Out) -> bool:
    """Answer with the weights of the leaf that the example falls into; False where the finder ran short."""
    index = int64(batch.key[event])
    best = best_slot(pool, index)
    if best == SHORT:
        return False
    at = out.counts[1]
    out.counts[1] += 1
    out.asked[at, 0] = event
    out.asked[at, 1] = 0
    out.asked[at, 2] = pool.slots.heads[index, N0]
    out.asked[at, 3] = pool.slots.heads[index, N1]
    out.asked[at, 4] = NONE
    out.guides[at] = score_of(pool, index, best)
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

# Events ahead: their heads and the places of their features in the table are seen to; one ahead, their rows.
_FAR = 2


@inlined
def _hash(batch: Batch, hashes: UInt32s, first: int) -> None:
    """Make the hashes of all features of a batch from an event on: once, where each is asked for three times."""
    for event in range(first, batch.key.size):
        index = int64(batch.key[event])
        for at in range(batch.pointer[event], batch.pointer[event + 1]):
            hashes[at] = slots.hash_of(index, int64(batch.feature[at]))


@inlined
def _see_to(pool: State, batch: Batch, hashes: UInt32s, event: int) -> None:
    """Have what the next events will look at brought to the cache, where the storage is larger than that."""
    if not slots.is_spread(pool.slots):
        return
    if event + _FAR < batch.key.size:
        index = int64(batch.key[event + _FAR])
        prefetch(pool.heads, index)
        prefetch(pool.slots.heads, index)
        for at in range(batch.pointer[event + _FAR], batch.pointer[event + _FAR + 1]):
            slots.see_to_entry(pool.slots, int64(hashes[at]))
    if event + 1 < batch.key.size:
        for at in range(batch.pointer[event + 1], batch.pointer[event + 2]):
            slots.see_to_row(pool.slots, int64(hashes[at]))


@inlined
def _shortage(pool: State, rules: Rules, batch: Batch, event: int) -> int:
    """Return what must be enlarged before an event can be applied, DONE where all is there."""
    op = batch.op[event]
    if op != INSERT and op != DELETE and op != LET_GO:
        return DONE
    index = int64(batch.key[event])
    ones = batch.pointer[event + 1] - batch.pointer[event]
    touched = ones
    if op == INSERT:
        if slots.room(pool.slots) < ones:
            return SLOTS
        if batch.named[event] or rules.tracked:
            rows, content = example_store.room(pool.store, ones)
            if not rows:
                return ROWS
            if not content:
                return CONTENT
    if batch.named[event]:
        row = example_store.lookup(pool.store, index * 2 + 1, batch.id_high[event], batch.id_low[event])
        if row != NONE:
            touched += pool.store.rows[row, example_store.LENGTH]
    if rules.window > 0 or op == LET_GO:
        oldest = pool.store.heads[index, example_store.OLDEST]
        if oldest != NONE:
            touched += pool.store.rows[oldest, example_store.LENGTH]
    # A refused delete goes forth and back, hence twice.
    return DONE if finders.ready(pool.finder, 2 * touched) else BOXES


@jit
def apply(pool: State, rules: Rules, batch: Batch, out: Out, event: int, decide: bool) -> tuple[int, bool, int]:
    """Apply events from `event` on; `decide` says that this one is applied and only its decision is due.

    Returns where it stopped, whether that event is applied, and why.
    """
    if slots.is_spread(pool.slots):
        _hash(batch, out.hashes, event)
    while event < batch.key.size:
        op = batch.op[event]
        due = int64(NONE)
        if op == LET_GO and not decide:
            due = example_store.turn(pool.store, batch, event, rules.span)
        index = int64(batch.key[event])
        if not decide:
            _see_to(pool, batch, out.hashes, event)
            short = _shortage(pool, rules, batch, event)
            if short != DONE:
                return event, False, short
            status = APPLIED
            if op == INSERT:
                status = _insert(pool, rules, batch, event, out.hashes, out.scratch)
            elif op == DELETE:
                status = _delete(pool, rules, batch, event, out.scratch)
            elif op == DROP:
                drop(pool, index)
            elif due != NONE:
                _let_go(pool, rules, due, batch, event, out.scratch)
            elif op < 0 or op == LET_GO:
                status = SKIPPED
            out.status[event] = status
            decide = status == APPLIED and op != DROP
            if decide and op != PREDICT:
                pool.heads[index, EVENTS] += 1
        if decide:
            if op == PREDICT:
                enough = _predict(pool, batch, event, out)
            else:
                enough = _decide(pool, rules, index, event, batch.time[event], out)
            if not enough:
                return event, True, BOXES
        decide = False
        event += 1
    return event, False, DONE


@jit
def rank(pool: State, index: int, found: Ranking) -> None:
    """Offer the features of an index to a ranking."""
    heads = pool.slots.heads
    if heads[index, N0] > 0 and heads[index, N1] > 0:  # a pure node needs no split
        finders.rank(pool.finder, pool.slots, pool.names, pool.criterion, index, found)
