"""The ledger: which examples of each key are live, and what the trees have to do about an event.

::

    event -> refused? -> a live id? its example goes -> a new one comes -> the window's oldest goes
                                  |                          |                      |
    moves                      DELETE                     INSERT                 DELETE     with draws of each tree

It knows an example by its digest: features are in the trees that see them, and nowhere else. Rows are those of an
example store without features.

Copies
------
Examples without an id that are the same in features, label and weight are copies, numbered from 0 in the order in
which they came. To the trees they differ by how often each weighs there. Whichever goes, the trees give back the
highest number: after any history c live copies are those numbered 0 to c - 1, and nothing needs to be
stored but c.
"""

from __future__ import annotations

from typing import NamedTuple

from algorithms.core import example_store
from algorithms.core.arrays import Int8s, Int64s, UInt32s, int64
from algorithms.core.cadence import is_due, next_period
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
    TOLD,
    TOO_MANY_KEYS,
    TOO_MANY_LIVE_IDS,
    Batch,
)
from algorithms.core.example_store import NONE as NONE
from algorithms.core.example_store import ExampleStore
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names
from algorithms.core.stored import stored
from algorithms.dynamic.examples import content_key
from algorithms.forests.draws import Draws, of_copy, ticket, times
from algorithms.trees.refusals import refusal

# Columns of `Ledger.keys`.
ALIVE = 0  # 1 once the key has learned something, until it is dropped
EVENTS = 1  # inserts and deletes applied
WEIGHT = 2  # of the live examples, in units
PERIOD = 3  # the period of event time that the last event was in, plus 1; 0: none yet
KEY_COLUMNS = 4

# A column of the rows of the store, which has no features here: of the newest copy, how many live ones there are.
COPIES = example_store.START

MOVES = 4  # that an event leads to at most: predict, delete, insert, delete

ROWS = 2  # what must be enlarged before the kernel can go on, beside `DONE` and `TOLD`

_IGNORE, _REPLACE = 1, 2  # of `OnDuplicate`


@stored("keys", "alive", "ledger", None)
class Ledger(NamedTuple):
    """The live examples of all keys."""

    keys: Int64s  # int64[keys, KEY_COLUMNS]
    alive: Int64s  # int64[1], how many keys are alive
    store: ExampleStore  # an index for each key
    names: Names  # stored by the pool, where features have names


class Rules(NamedTuple):
    """The settings of a forest, as its kernels see them."""

    draws: Draws
    classes: int
    window: int  # 0: no window of a number of examples
    span: int  # in ms, 0: no window by time
    on_duplicate: int
    evaluated: bool  # whether every example is predicted before it is learned
    max_weight: int  # the weights of a key sum to less
    max_keys: int
    max_live_ids: int
    snapshot_when: int  # a `When`, but for `CHANGE`
    snapshot_argument: int


class Plan(NamedTuple):
    """What the trees have to do, in order; scratch."""

    event: Int64s  # int64[moves], which event of the batch it is for
    op: Int8s  # int8[moves]
    high: Int64s  # int64[moves], the digest of the example in the trees
    low: Int64s  # int64[moves]
    times: Int8s  # int8[moves, trees], how many times its weight it weighs in each; 0: the tree has no part in it
    used: Int64s  # int64[2], moves so far, and how many trees examples come to, or leave, in them
    due: Int8s  # int8[1], 1: a snapshot is, once they are made


class Hashes(NamedTuple):
    """Two hashes of each feature of a batch, which do not depend on how names are numbered."""

    first: UInt32s
    second: UInt32s


@inlined
def _move(plan: Plan, event: int, op: int) -> int:
    """Note a move in which all trees have a part; return its place."""
    at = plan.used[0]
    plan.used[0] += 1
    plan.event[at] = event
    plan.op[at] = op
    plan.high[at] = 0
    plan.low[at] = 0
    for tree in range(plan.times.shape[1]):
        plan.times[at, tree] = 1
    return at


@jit
def _move_example(
    rules: Rules, plan: Plan, event: int, op: int, high: int, low: int, named: int, copy: int
) -> None:
    """Note that an example comes or goes, in the trees that have it."""
    at = _move(plan, event, op)
    plan.high[at] = high if named else of_copy(high, copy, 1)
    plan.low[at] = low if named else of_copy(low, copy, 2)
    drawn = ticket(high, low, copy)
    chosen = int64(0)
    for tree in range(plan.times.shape[1]):
        count = times(rules.draws, tree, drawn, chosen)
        chosen += count
        plan.times[at, tree] = count
        plan.used[1] += count > 0


@jit
def _give_back(ledger: Ledger, rules: Rules, plan: Plan, event: int, row: int) -> None:
    """Let the trees give back a live example, the highest of its copies; it stays in the ledger."""
    rows = ledger.store.rows
    owner, high, low = rows[row, example_store.OWNER], rows[row, example_store.HIGH], rows[row, example_store.LOW]
    named = owner & 1
    ledger.keys[owner >> 1, WEIGHT] -= rows[row, example_store.WEIGHT]
    copy = int64(0)
    if not named:
        newest = example_store.lookup(ledger.store, owner, high, low)
        copy = rows[newest, COPIES] - 1
        rows[newest, COPIES] = copy
        if newest == row and copy > 0:
            rows[rows[row, example_store.DUPLICATE], COPIES] = copy
    _move_example(rules, plan, event, DELETE, high, low, named, copy)


@inlined
def _forget(ledger: Ledger, rules: Rules, plan: Plan, event: int, row: int) -> None:
    """Strike out a live example."""
    _give_back(ledger, rules, plan, event, row)
    example_store.remove(ledger.store, row)


@jit
def _digest(batch: Batch, hashes: Hashes, event: int) -> tuple[int, int]:
    """Return the digest of an example's content; each half is from other hashes of its features."""
    start, stop = batch.pointer[event], batch.pointer[event + 1]
    label, weight = int64(batch.label[event]), batch.weight[event]
    high, _ = content_key(hashes.first, batch.bits, start, stop, label, weight)
    _, low = content_key(hashes.second, batch.bits, start, stop, label, weight)
    return high, low


@jit
def _insert(ledger: Ledger, rules: Rules, batch: Batch, hashes: Hashes, event: int, plan: Plan) -> int:
    key = int64(batch.key[event])
    named = int64(batch.named[event])
    label = int64(batch.label[event])
    weight = batch.weight[event]
    high, low = batch.id_high[event], batch.id_low[event]
    owner = key * 2 + named
    store = ledger.store
    status = refusal(weight, label, rules.classes)
    if status != APPLIED:
        return status
    is_new = ledger.keys[key, ALIVE] == 0
    if is_new and ledger.alive[0] >= rules.max_keys:
        return TOO_MANY_KEYS
    if weight >= rules.max_weight - ledger.keys[key, WEIGHT]:
        return COUNT_OVERFLOW
    if not named:
        high, low = _digest(batch, hashes, event)
    old = example_store.lookup(store, owner, high, low)
    is_live = old != NONE and store.rows[old, example_store.STATE] == example_store.LIVE
    if named and is_live and rules.on_duplicate != _REPLACE:
        return IGNORED if rules.on_duplicate == _IGNORE else DUPLICATE_ID
    if named and not is_live and store.counts[example_store.NAMED] >= rules.max_live_ids:
        return TOO_MANY_LIVE_IDS
    if rules.evaluated:
        _move(plan, event, PREDICT)
    copy = int64(0)
    if named and is_live:
        _forget(ledger, rules, plan, event, old)
    elif named and old != NONE:
        example_store.remove(store, old)
    elif old != NONE:
        copy = store.rows[old, COPIES]
    if is_new:
        ledger.keys[key, ALIVE] = 1
        ledger.alive[0] += 1
    nothing = int64(0)
    example_store.add(store, owner, high, low, label, weight, batch.feature, nothing, nothing)
    store.rows[store.heads[key, example_store.NEWEST], COPIES] = copy + 1
    example_store.date(store, key, batch, event)
    ledger.keys[key, WEIGHT] += weight
    _move_example(rules, plan, event, INSERT, high, low, named, copy)
    if rules.window > 0 and store.heads[key, example_store.LIVES] > rules.window:
        oldest = store.heads[key, example_store.OLDEST]
        _give_back(ledger, rules, plan, event, oldest)
        example_store.expire(store, oldest, rules.window)
    return APPLIED


@jit
def _delete(ledger: Ledger, rules: Rules, batch: Batch, hashes: Hashes, event: int, plan: Plan) -> int:
    key = int64(batch.key[event])
    label = int64(batch.label[event])
    if batch.named[event]:
        row = example_store.lookup(ledger.store, key * 2 + 1, batch.id_high[event], batch.id_low[event])
        if row == NONE:
            return ABSENT_ID
        if ledger.store.rows[row, example_store.STATE] == example_store.DROPPED:
            is_known = example_store.is_remembered(ledger.store, row, batch, event, rules.span)
            return ALREADY_DROPPED if is_known else ABSENT_ID
    else:
        if batch.weight[event] <= 0 or label < 0 or label >= rules.classes:
            return ABSENT_EXAMPLE
        high, low = _digest(batch, hashes, event)
        row = example_store.lookup(ledger.store, key * 2, high, low)
        if row == NONE:
            return ABSENT_EXAMPLE
    _forget(ledger, rules, plan, event, row)
    return APPLIED


@jit
def _drop(ledger: Ledger, event: int, key: int, plan: Plan) -> None:
    """Forget a key and its examples."""
    if ledger.keys[key, ALIVE] == 0:
        return
    _move(plan, event, DROP)
    heads = ledger.store.heads
    while heads[key, example_store.OLDEST] != NONE:
        example_store.remove(ledger.store, heads[key, example_store.OLDEST])
    while heads[key, example_store.FIRST_DROPPED] != NONE:
        example_store.remove(ledger.store, heads[key, example_store.FIRST_DROPPED])
    ledger.alive[0] -= 1
    for column in range(KEY_COLUMNS):
        ledger.keys[key, column] = 0


@inlined
def _is_snapshot_due(ledger: Ledger, rules: Rules, key: int, time: int) -> bool:
    """Count an event of a key; return whether a snapshot is due after it."""
    ledger.keys[key, EVENTS] += 1
    when, argument = rules.snapshot_when, rules.snapshot_argument
    period = ledger.keys[key, PERIOD] - 1
    ledger.keys[key, PERIOD] = next_period(when, argument, time, period) + 1
    return is_due(when, argument, ledger.keys[key, EVENTS], time, period)


@jit
def enter(
    ledger: Ledger, rules: Rules, batch: Batch, hashes: Hashes, status: Int8s, plan: Plan, event: int
) -> tuple[int, int]:
    """Enter events from `event` on, and write what the trees have to do.

    Return where it stopped, and why: TOLD where the trees must act first: the plan is full, or a snapshot is due.
    """
    while event < batch.key.size:
        op = batch.op[event]
        if plan.used[0] + MOVES > plan.op.size:
            return event, TOLD
        if op == INSERT and not example_store.room(ledger.store, int64(0))[0]:
            return event, ROWS
        status[event] = APPLIED
        if op == INSERT:
            status[event] = _insert(ledger, rules, batch, hashes, event, plan)
        elif op == DELETE:
            status[event] = _delete(ledger, rules, batch, hashes, event, plan)
        elif op == PREDICT:
            _move(plan, event, PREDICT)
        elif op == DROP:
            _drop(ledger, event, int64(batch.key[event]), plan)
        elif op == LET_GO:
            row = example_store.turn(ledger.store, batch, event, rules.span)
            if row != NONE:
                _give_back(ledger, rules, plan, event, row)
                example_store.let_go(ledger.store, row, batch, event, rules.span)
            else:
                status[event] = SKIPPED
        else:
            status[event] = SKIPPED
        event += 1
        if status[event - 1] == APPLIED and op in (INSERT, DELETE, LET_GO):
            key = int64(batch.key[event - 1])
            if _is_snapshot_due(ledger, rules, key, batch.time[event - 1]):
                plan.due[0] = 1
                return event, TOLD
    return event, DONE
