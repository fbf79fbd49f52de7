"""Events applied to splits of K labels and of any features, strictly in order.

The way of one event::

    apply:  insert | delete | predict | drop  ->  status
    decide: is a split or a snapshot due?     ->  decision

A batch of 1 and a batch of 1000 give the same answers. A refused event changes nothing. Where the arrays would not
hold the next event the kernel stops before it, the pool enlarges them and the kernel goes on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from algorithms.core import example_store
from algorithms.core.arrays import Float64s, Int8s, Int64s, int64
from algorithms.core.cadence import CHANGE, is_due, next_period
from algorithms.core.class_sums import impurity
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
from algorithms.core.example_store import ExampleStore
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY, NOMINAL, NUMERIC
from algorithms.core.names import Names, refer, release
from algorithms.core.stored import stored
from algorithms.dynamic.examples import content_key, value_in
from algorithms.mixed import questions as asked
from algorithms.mixed.heads import (
    ALIVE,
    EVENTS,
    FIRST,
    LAST,
    LAST_VALUE,
    LOWERED,
    RARE,
    ROOT,
    SECOND,
    SPLIT_PERIOD,
    TREE_PERIOD,
)
from algorithms.mixed.questions import (
    AT,
    BEFORE,
    BLOCK,
    IS_RARE,
    KIND,
    LENGTH,
    NEXT,
    SIZE,
    TOTAL,
    WEIGHT,
    Questions,
)
from algorithms.mixed.search import (
    Found,
    kind_of_row,
    lower,
    most_lowered,
    part,
    search,
    whole_key,
)
from algorithms.splits import last
from algorithms.splits.slots import NONE
from algorithms.trees.refusals import refusal

_CATEGORIES = 1 << 32  # above the highest
_IGNORE, _REPLACE = 1, 2  # of `OnDuplicate`

# Bits of `Decisions.due`.
SPLIT_DUE, TREE_DUE = 1, 2

# What must be enlarged before the kernel can go on, beside `DONE`.
ROWS, CONTENT, QUESTIONS, BLOCKS = range(2, 6)


class Rules(NamedTuple):
    """The settings of a pool, as its kernel sees them."""

    classes: int
    window: int  # 0: no window of a number of examples
    span: int  # in ms, 0: no window by time
    on_duplicate: int
    max_keys: int
    max_live_ids: int
    split_when: int
    split_argument: int
    tree_when: int
    tree_argument: int


class Out(NamedTuple):
    """Where the kernel writes; rows beyond the counts are garbage."""

    status: Int8s
    event: Int64s  # int64[n]
    due: Int8s  # int8[n]
    numbers: Int64s  # int64[n, 4]: feature, kind, runner-up, events
    threshold: Float64s  # float64[n]
    totals: Int64s  # int64[n, K]
    high: Int64s  # int64[n, K]
    scores: Float64s  # float64[n, 3]: best, runner-up, node
    asked: Int64s  # int64[predictions, 2]: event, leaf
    weights: Int64s  # int64[predictions, K]
    counts: Int64s  # int64[3]: decisions, predictions, changes of a best split


@stored("heads", "numbers", "totals", "alive", "questions", "ledger", "values", None, None)
class State(NamedTuple):
    """All that the kernel works on."""

    heads: Int64s  # int64[indexes, 9]
    numbers: Float64s  # float64[indexes, NUMBERS]
    totals: Int64s  # int64[indexes, K], weights of the classes
    alive: Int64s  # int64[1], how many indexes are alive
    questions: Questions
    store: ExampleStore  # all live examples
    values: Float64s  # float64[...] beside the store's features; of no size where all are binary
    names: Names  # stored by the pool, where features have names
    criterion: Any


# --- counting


@jit
def _whole_key(state: State, index: int, found: Found) -> float:
    """Return the key of a question of an index that parts nothing."""
    for k in range(found.totals.size):
        found.totals[k] = state.totals[index, k]
    return whole_key(state.criterion, found.totals, state.numbers[index, LOWERED])


@inlined
def _enter(state: State, index: int, row: int, key: float) -> None:
    """Put a row into the heap by floors."""
    state.heads[index, ROOT] = asked.enter(state.questions, state.heads[index, ROOT], row, key)


@inlined
def _leave(state: State, index: int, row: int) -> None:
    """Take a row out of its heap, before it goes."""
    heap = RARE if state.questions.rows[row, IS_RARE] == 1 else ROOT
    state.heads[index, heap] = asked.leave(state.questions, state.heads[index, heap], row)
    if state.heads[index, FIRST] == row:
        state.heads[index, FIRST] = NONE
    if state.heads[index, SECOND] == row:
        state.heads[index, SECOND] = NONE


@inlined
def _enter_rare(state: State, index: int, row: int) -> None:
    """Put a row into the heap of rare features, by its weight."""
    key = -asked.cap_of(state.questions.rows[row, TOTAL])
    state.heads[index, RARE] = asked.enter(state.questions, state.heads[index, RARE], row, key)
    state.questions.rows[row, IS_RARE] = 1


@jit
def _place(state: State, index: int, column: int, feature: int, value: float, found: Found) -> tuple[int, int]:
    """Return the block of a value and where it lies, made where it is new."""
    questions = state.questions
    rows = questions.rows
    block = asked.block_for(questions, column, value)
    if block == NONE:
        block = asked.create(questions, index, feature, BLOCK, 0)
        asked.link(questions, column, block, NONE)
        _enter(state, index, block, _whole_key(state, index, found))
    at = asked.place_for(questions, block, value)
    end = rows[block, AT] + rows[block, SIZE]
    if at < end and questions.value[at] == value:
        return block, at
    if rows[block, SIZE] == LENGTH:
        upper = asked.create(questions, index, feature, BLOCK, 0)
        asked.link(questions, column, upper, block)
        asked.shift(questions, block, LENGTH // 2, upper)
        _enter(state, index, upper, questions.floor[block])
        if value > questions.value[rows[block, AT] + rows[block, SIZE] - 1]:
            block = upper
        at = asked.place_for(questions, block, value)
        end = rows[block, AT] + rows[block, SIZE]
    # Until now its question was that of the next value outwards, or parted nothing where there is none.
    outer = rows[block, BEFORE] if value < 0.0 else rows[block, NEXT]
    is_outermost = at == rows[block, AT] if value < 0.0 else at == end
    if is_outermost:
        is_same_side = outer != NONE  # outwards of a value below 0 all are below 0
        key = questions.floor[outer] if is_same_side else _whole_key(state, index, found)
        state.heads[index, ROOT] = lower(questions, state.heads[index, ROOT], block, key)
    asked.put(questions, block, at, value)
    return block, at


@jit
def _add(
    state: State, index: int, label: int, weight: int, feature: int, kind: int, value: float, found: Found
) -> None:
    """Add a weight to what one value of an example tells; there must be room."""
    questions = state.questions
    category = int64(value) if kind == NOMINAL else int64(0)
    row = asked.lookup(questions, index, feature, category)
    if row == NONE:
        row = asked.create(questions, index, feature, kind, category)
        refer(state.names, feature)
        if kind != NUMERIC:
            _enter_rare(state, index, row)
    questions.rows[row, WEIGHT + label] += weight
    questions.rows[row, TOTAL] += weight
    if questions.rows[row, IS_RARE] == 1 and questions.rows[row, TOTAL] > -questions.floor[row]:
        state.heads[index, RARE] = asked.leave(questions, state.heads[index, RARE], row)
        _enter_rare(state, index, row)
    if kind == NUMERIC:
        block, at = _place(state, index, row, feature, value, found)
        questions.weight[at, label] += weight
        questions.rows[block, WEIGHT + label] += weight


@jit
def _join(state: State, index: int, block: int, after: int) -> None:
    """Let two neighbouring blocks become one, where they fill half of one."""
    questions = state.questions
    rows = questions.rows
    if block == NONE or after == NONE or rows[block, SIZE] + rows[after, SIZE] > LENGTH // 2:
        return
    key = min(questions.floor[block], questions.floor[after])
    asked.shift(questions, block, rows[block, SIZE], after)
    _leave(state, index, block)
    asked.unlink(questions, block)
    asked.remove(questions, block)
    state.heads[index, ROOT] = lower(questions, state.heads[index, ROOT], after, key)


@jit
def _subtract_value(state: State, index: int, label: int, weight: int, column: int, value: float) -> None:
    """Take a weight away from a value of a numeric column."""
    questions = state.questions
    rows = questions.rows
    block = asked.block_for(questions, column, value)
    at = asked.place_for(questions, block, value)
    questions.weight[at, label] -= weight
    rows[block, WEIGHT + label] -= weight
    for k in range(questions.weight.shape[1]):
        if questions.weight[at, k] != 0:
            return
    asked.take(questions, block, at)
    before = rows[block, BEFORE]
    after = rows[block, NEXT]
    if rows[block, SIZE] == 0:
        _leave(state, index, block)
        asked.unlink(questions, block)
        asked.remove(questions, block)
        return
    if rows[block, SIZE] < LENGTH // 4:
        if after != NONE and rows[block, SIZE] + rows[after, SIZE] <= LENGTH // 2:
            _join(state, index, block, after)
        else:
            _join(state, index, before, block)


@jit
def row_of(questions: Questions, index: int, feature: int, value: float) -> int:
    """Return the row that a feature has, of a nominal feature that of the category `value`; NONE without one."""
    row = asked.lookup(questions, index, feature, 0)
    if row == NONE and 0.0 <= value < _CATEGORIES:  # any number where a numeric feature is gone
        row = asked.lookup(questions, index, feature, int64(value))
    return row


@jit
def _subtract(state: State, index: int, label: int, weight: int, feature: int, value: float) -> None:
    """Take a weight away from what one value of a live example tells."""
    questions = state.questions
    row = row_of(questions, index, feature, value)
    questions.rows[row, WEIGHT + label] -= weight
    questions.rows[row, TOTAL] -= weight
    if questions.rows[row, KIND] == NUMERIC:
        _subtract_value(state, index, label, weight, row, value)
    if questions.rows[row, TOTAL] == 0:
        if questions.rows[row, KIND] != NUMERIC:
            _leave(state, index, row)
        if questions.rows[row, KIND] != NOMINAL or value == state.numbers[index, LAST_VALUE]:
            state.heads[index, LAST] = last.without(state.names, state.heads[index, LAST], feature)
        asked.remove(questions, row)
        release(state.names, feature)


@jit
def _forget(state: State, row: int) -> None:
    """Take a live example out of the counts; it stays in the store."""
    store = state.store.rows
    index = store[row, example_store.OWNER] >> 1
    label = store[row, example_store.LABEL]
    weight = store[row, example_store.WEIGHT]
    start = store[row, example_store.START]
    others = -state.totals[index, label]
    for k in range(state.totals.shape[1]):
        others += state.totals[index, k]
    lowered = most_lowered(state.criterion, weight, others, state.numbers[index, LOWERED])
    state.numbers[index, LOWERED] = lowered
    for at in range(start, start + store[row, example_store.LENGTH]):
        value = state.values[at] if state.values.size > 0 else 1.0
        _subtract(state, index, label, weight, int64(state.store.features[at]), value)
        if state.values.size > 0:
            state.values[at] = 0.0
    state.totals[index, label] -= weight
    if weight > 0 and others == 0 and state.totals[index, label] == 0:
        state.numbers[index, LOWERED] = 0.0  # nothing is left that has a floor


@jit
def _learn(state: State, owner: int, high: int, low: int, batch: Batch, event: int, found: Found) -> None:
    """Count an example, and enter it in the store."""
    index = owner >> 1
    start = batch.pointer[event]
    stop = batch.pointer[event + 1]
    label = int64(batch.label[event])
    weight = batch.weight[event]
    example_store.add(state.store, owner, high, low, label, weight, batch.feature, start, stop)
    to = state.store.rows[state.store.heads[index, example_store.NEWEST], example_store.START]
    for at in range(start, stop):
        _add(state, index, label, weight, int64(batch.feature[at]), int64(batch.kind[at]), batch.value[at], found)
        if state.values.size > 0:
            state.values[to + at - start] = batch.value[at]
    state.totals[index, label] += weight


# --- operations


@jit
def _insert(state: State, rules: Rules, batch: Batch, event: int, found: Found) -> int:
    index = int64(batch.key[event])
    named = int64(batch.named[event])
    weight = batch.weight[event]
    label = int64(batch.label[event])
    high, low = batch.id_high[event], batch.id_low[event]
    owner = index * 2 + named
    status = refusal(weight, label, rules.classes)
    if status != APPLIED:
        return status
    if state.heads[index, ALIVE] == 0 and state.alive[0] >= rules.max_keys:
        return TOO_MANY_KEYS
    total = int64(0)
    for k in range(rules.classes):
        total += state.totals[index, k]
    if weight >= MAX_TOTAL - total:
        return COUNT_OVERFLOW
    if named:
        old = example_store.lookup(state.store, owner, high, low)
        if old != NONE and state.store.rows[old, example_store.STATE] == example_store.LIVE:
            if rules.on_duplicate != _REPLACE:
                return IGNORED if rules.on_duplicate == _IGNORE else DUPLICATE_ID
            _forget(state, old)
        elif state.store.counts[example_store.NAMED] >= rules.max_live_ids:
            return TOO_MANY_LIVE_IDS
        if old != NONE:
            example_store.remove(state.store, old)
    else:
        start, stop = batch.pointer[event], batch.pointer[event + 1]
        high, low = content_key(batch.feature, batch.bits, start, stop, label, weight)
    if state.heads[index, ALIVE] == 0:
        state.heads[index, ALIVE] = 1
        state.alive[0] += 1
    _learn(state, owner, high, low, batch, event, found)
    example_store.date(state.store, index, batch, event)
    if rules.window > 0 and state.store.heads[index, example_store.LIVES] > rules.window:
        oldest = state.store.heads[index, example_store.OLDEST]
        _forget(state, oldest)
        example_store.expire(state.store, oldest, rules.window)
    return APPLIED


@jit
def _delete(state: State, rules: Rules, batch: Batch, event: int) -> int:
    index = int64(batch.key[event])
    label = int64(batch.label[event])
    weight = batch.weight[event]
    if batch.named[event]:
        row = example_store.lookup(state.store, index * 2 + 1, batch.id_high[event], batch.id_low[event])
        if row == NONE:
            return ABSENT_ID
        if state.store.rows[row, example_store.STATE] == example_store.DROPPED:
            is_known = example_store.is_remembered(state.store, row, batch, event, rules.span)
            return ALREADY_DROPPED if is_known else ABSENT_ID
    else:
        if weight <= 0 or label < 0 or label >= rules.classes:
            return ABSENT_EXAMPLE
        start, stop = batch.pointer[event], batch.pointer[event + 1]
        high, low = content_key(batch.feature, batch.bits, start, stop, label, weight)
        row = example_store.lookup(state.store, index * 2, high, low)
        if row == NONE:
            return ABSENT_EXAMPLE
    _forget(state, row)
    example_store.remove(state.store, row)
    return APPLIED


@jit
def _drop(state: State, index: int) -> None:
    """Forget an index: its examples and all that they told."""
    heads = state.store.heads
    while heads[index, example_store.OLDEST] != NONE:
        row = heads[index, example_store.OLDEST]
        _forget(state, row)
        example_store.remove(state.store, row)
    while heads[index, example_store.FIRST_DROPPED] != NONE:
        example_store.remove(state.store, heads[index, example_store.FIRST_DROPPED])
    state.alive[0] -= state.heads[index, ALIVE]
    for column in range(state.heads.shape[1]):
        state.heads[index, column] = NONE
    state.heads[index, EVENTS] = 0
    state.heads[index, ALIVE] = 0
    for column in range(state.numbers.shape[1]):
        state.numbers[index, column] = 0.0


# --- deciding


@jit
def find(state: State, index: int, both: bool, found: Found) -> None:
    """Search an index: its best split, and where `both` the best on another feature."""
    heads = state.heads
    lowered = state.numbers[index, LOWERED]
    search(state.questions, state.names, state.criterion, heads, state.totals, index, lowered, both, found)
    heads[index, FIRST] = found.row[0]
    if both:
        heads[index, SECOND] = found.row[1]


@inlined
def _decide(state: State, rules: Rules, index: int, event: int, time: int, found: Found, out: Out) -> None:
    """Write a decision where one is due."""
    heads = state.heads
    if last.has_left(heads[index, LAST]):
        before = last.departed(heads[index, LAST])
        if row_of(state.questions, index, before, state.numbers[index, LAST_VALUE]) != NONE:
            heads[index, LAST] = before
        else:
            heads[index, LAST] = last.GONE
            state.numbers[index, LAST_VALUE] = 0.0
    events = heads[index, EVENTS]
    split_due = is_due(rules.split_when, rules.split_argument, events, time, heads[index, SPLIT_PERIOD])
    tree_due = is_due(rules.tree_when, rules.tree_argument, events, time, heads[index, TREE_PERIOD])
    watched = rules.split_when == CHANGE or rules.tree_when == CHANGE
    if split_due or tree_due or watched:
        find(state, index, split_due or tree_due, found)
        row = found.row[0]
        threshold = part(state.questions, found, 0) if row != NONE else 0.0
        feature = asked.feature_of(state.questions, row) if row != NONE else int64(NONE)
        if feature != heads[index, LAST] or threshold != state.numbers[index, LAST_VALUE]:
            out.counts[2] += 1
            if not (split_due or tree_due):
                find(state, index, True, found)
            split_due = split_due or rules.split_when == CHANGE
            tree_due = tree_due or rules.tree_when == CHANGE
        if split_due or tree_due:
            _write(
                state, index, event, (SPLIT_DUE if split_due else 0) | (TREE_DUE if tree_due else 0), found, out
            )
        heads[index, LAST] = feature
        state.numbers[index, LAST_VALUE] = threshold
    heads[index, SPLIT_PERIOD] = next_period(
        rules.split_when, rules.split_argument, time, heads[index, SPLIT_PERIOD]
    )
    heads[index, TREE_PERIOD] = next_period(rules.tree_when, rules.tree_argument, time, heads[index, TREE_PERIOD])


@jit
def _write(state: State, index: int, event: int, due: int, found: Found, out: Out) -> None:
    at = out.counts[0]
    out.counts[0] += 1
    out.event[at] = event
    out.due[at] = due
    for k in range(found.totals.size):
        out.totals[at, k] = state.totals[index, k]
        found.totals[k] = state.totals[index, k]
        out.high[at, k] = 0
    node = impurity(state.criterion, found.totals)
    best, second = found.row[0], found.row[1]
    out.numbers[at, 0] = NONE
    out.numbers[at, 1] = NONE
    out.threshold[at] = 0.0
    if best != NONE:
        out.threshold[at] = part(state.questions, found, 0)
        out.numbers[at, 0] = asked.feature_of(state.questions, best)
        out.numbers[at, 1] = kind_of_row(state.questions, best)
        for k in range(found.totals.size):
            out.high[at, k] = found.below[k]
    out.numbers[at, 2] = asked.feature_of(state.questions, second) if second != NONE else int64(NONE)
    out.numbers[at, 3] = state.heads[index, EVENTS]
    out.scores[at, 0] = found.score[0] if best != NONE else node
    out.scores[at, 1] = found.score[1] if second != NONE else node
    out.scores[at, 2] = node


@inlined
def side_of(kind: int, threshold: float, value: float) -> bool:
    """Return whether a value is on the high side: present, of the category, or above the threshold."""
    if kind == BINARY:
        return value != 0.0
    return value == threshold if kind == NOMINAL else value > threshold


@jit
def _predict(state: State, rules: Rules, batch: Batch, event: int, found: Found, out: Out) -> None:
    """Answer with the weights of the leaf that the example falls into: 0 the whole, 1 the low side, 2 the high."""
    index = int64(batch.key[event])
    find(state, index, False, found)
    at = out.counts[1]
    out.counts[1] += 1
    out.asked[at, 0] = event
    out.asked[at, 1] = 0
    row = found.row[0]
    if row == NONE:
        for k in range(rules.classes):
            out.weights[at, k] = state.totals[index, k]
        return
    threshold = part(state.questions, found, 0)
    feature = asked.feature_of(state.questions, row)
    value = value_in(batch.feature, batch.value, batch.pointer[event], batch.pointer[event + 1], feature)
    is_high = side_of(kind_of_row(state.questions, row), threshold, value)
    out.asked[at, 1] = 2 if is_high else 1
    for k in range(rules.classes):
        out.weights[at, k] = found.below[k] if is_high else state.totals[index, k] - found.below[k]


# --- the loop


@inlined
def _shortage(state: State, batch: Batch, event: int) -> int:
    """Return what must be enlarged before an event can be applied, DONE where all is there."""
    if batch.op[event] != INSERT:
        return DONE
    ones = batch.pointer[event + 1] - batch.pointer[event]
    rows, content = example_store.room(state.store, ones)
    if not rows:
        return ROWS
    if not content:
        return CONTENT
    # A numeric value makes a column and a block at most, or a block more where one is full.
    if not asked.has_room(state.questions, 2 * ones):
        return QUESTIONS
    return DONE if state.values.size == 0 or asked.has_blocks(state.questions, ones) else BLOCKS


@jit
def apply(state: State, rules: Rules, found: Found, batch: Batch, out: Out, event: int) -> tuple[int, int]:
    """Apply events from `event` on; return where it stopped, and why."""
    while event < batch.key.size:
        op = batch.op[event]
        due = int64(NONE)
        if op == LET_GO:
            due = example_store.turn(state.store, batch, event, rules.span)
        index = int64(batch.key[event])
        short = _shortage(state, batch, event)
        if short != DONE:
            return event, short
        status = APPLIED
        if op == INSERT:
            status = _insert(state, rules, batch, event, found)
        elif op == DELETE:
            status = _delete(state, rules, batch, event)
        elif op == PREDICT:
            _predict(state, rules, batch, event, found, out)
        elif op == DROP:
            _drop(state, index)
        elif due != NONE:
            _forget(state, due)
            example_store.let_go(state.store, due, batch, event, rules.span)
        else:
            status = SKIPPED
        out.status[event] = status
        if status == APPLIED and (op <= DELETE or op == LET_GO):
            state.heads[index, EVENTS] += 1
            _decide(state, rules, index, event, batch.time[event], found, out)
        event += 1
    return event, DONE
