"""The loop from event to tree.

::

    insert:  look, predict (where asked) -> duplicate? -> enter -> UPDATE -> window: UPDATE for what is too old
    delete:  look up -> UPDATE -> strike
    both:    what is built aside goes on (parts.py)
    predict: look -> route -> class weights, or sums of labels

A look (looks.py) is taken where floors are kept; so it is at all of a tree whose snapshot may be due.

Events are applied strictly in order, so a batch of 1 and a batch of 1000 give the same trees. A refused event
changes nothing. Where the arrays would not hold the next event the kernel stops before it, the pool enlarges them
and the kernel goes on.
"""

from __future__ import annotations

from algorithms.core import example_store, rows
from algorithms.core.arrays import int64
from algorithms.core.cadence import CHANGE, is_due, next_period
from algorithms.core.events import (
    ABSENT_EXAMPLE,
    ABSENT_ID,
    ALREADY_DROPPED,
    APPLIED,
    ASK,
    COUNT_OVERFLOW,
    DELETE,
    DONE,
    DROP,
    DUPLICATE_ID,
    IGNORED,
    INSERT,
    LET_GO,
    LOOK,
    PREDICT,
    SKIPPED,
    TOLD,
    TOO_MANY_KEYS,
    TOO_MANY_LIVE_IDS,
    WRONG_LABEL,
    WRONG_WEIGHT,
    Batch,
)
from algorithms.core.jit import inlined, jit
from algorithms.dynamic import nodes, parts, slack, values, vocabulary
from algorithms.dynamic.examples import Route, content_key, side_of, value_in
from algorithms.dynamic.labels import guess, is_label, loss, room_for, told, weight_of
from algorithms.dynamic.looks import is_current, look, look_at_all
from algorithms.dynamic.nodes import EXAMPLES, FEATURE, KIND, LOW, NONE, NUMBER
from algorithms.dynamic.segment import HELD, Segment
from algorithms.dynamic.state import (
    ALIVE,
    CHANGED,
    ENTRIES,
    EVENTS,
    PERIOD,
    ROOT,
    SNAPSHOT_DUE,
    TREE_COLUMNS,
    Forest,
    Out,
    Rules,
)
from algorithms.dynamic.subtrees import discard
from algorithms.dynamic.terms import EPSILON
from algorithms.dynamic.update import begin, update

_IGNORE, _REPLACE = 1, 2  # of `OnDuplicate`

# What must be enlarged before the kernel can go on, beside `DONE` and `TOLD`.
ROWS, CONTENT, WORDS, NODES, SCRATCH, INDEXES, SEEN, VALUES = range(2, 10)


# --- examples


@jit
def _enter(forest: Forest, owner: int, high: int, low: int, batch: Batch, event: int) -> int:
    """Enter an example in the example store, its values and features; return its row."""
    start = batch.pointer[event]
    stop = batch.pointer[event + 1]
    label = int64(batch.label[event])
    example_store.add(forest.store, owner, high, low, label, batch.weight[event], batch.feature, start, stop)
    row = forest.store.heads[owner >> 1, example_store.NEWEST]
    to = forest.store.rows[row, example_store.START]
    for at in range(start, stop):
        vocabulary.hold(forest.words, forest.names, int64(batch.feature[at]), int64(batch.kind[at]))
        if forest.values.size > 0:
            forest.values[to + at - start] = batch.value[at]
    forest.trees[owner >> 1, ENTRIES] += stop - start
    return row


@jit
def _let_go(forest: Forest, row: int) -> None:
    """Let go of the features of an example, and wipe their values, before it is struck out or shelved."""
    start = forest.store.rows[row, example_store.START]
    length = forest.store.rows[row, example_store.LENGTH]
    for at in range(start, start + length):
        vocabulary.let_go(forest.words, forest.names, int64(forest.store.features[at]))
        if forest.values.size > 0:
            forest.values[at] = 0.0
    forest.trees[forest.store.rows[row, example_store.OWNER] >> 1, ENTRIES] -= length


# --- predicting


@inlined
def _predict(forest: Forest, tree: int, batch: Batch, event: int, out: Out) -> int:
    """Write the sums of labels of the last node on an example's way that holds any; return it, or NONE.

    A leaf that deletes have emptied leaves the answer to the nodes above.
    """
    links = forest.nodes.links
    node = int64(NONE)
    for k in range(out.weights.size):
        out.weights[k] = 0
    if forest.trees[tree, ALIVE] == 0 or links[forest.trees[tree, ROOT], EXAMPLES] == 0:
        return node
    node = forest.trees[tree, ROOT]
    while links[node, FEATURE] != NONE:
        start = batch.pointer[event]
        value = value_in(batch.feature, batch.value, start, batch.pointer[event + 1], links[node, FEATURE])
        child = links[node, LOW + side_of(links[node, KIND], forest.nodes.threshold[node], value)]
        if links[child, EXAMPLES] == 0:
            break
        node = child
    for k in range(out.weights.size):
        out.weights[k] = told(forest.criterion, forest.nodes.weights[node, k])
    return node


@inlined
def _look(forest: Forest, rules: Rules, segment: Segment, batch: Batch, event: int, out: Out) -> None:
    """Look through what an example will be predicted by."""
    tree = int64(batch.key[event])
    if forest.trees[tree, ALIVE] == 1:
        route = Route(batch.feature, batch.value, batch.pointer[event], batch.pointer[event + 1])
        look(forest.slack, forest, rules, segment, tree, route, event, out)


@jit
def _answer(forest: Forest, rules: Rules, segment: Segment, batch: Batch, event: int, out: Out) -> None:
    """Answer a prediction; nothing but a look touches the state."""
    _look(forest, rules, segment, batch, event, out)
    node = _predict(forest, int64(batch.key[event]), batch, event, out)
    out.predicted[event] = guess(forest.criterion, out.weights, node)
    at = out.counts[0]
    out.leaf[at] = forest.nodes.links[node, NUMBER] if node != NONE else 0
    for k in range(out.weights.size):
        out.shares[at, k] = out.weights[k]
    out.counts[0] += 1


# --- learning and forgetting


@jit
def _remove(forest: Forest, rules: Rules, segment: Segment, row: int, event: int, out: Out) -> None:
    """Let a live example leave its tree and let go of its features; it stays in the store."""
    update(forest, rules, segment, forest.store.rows[row, example_store.OWNER] >> 1, row, int64(-1), event, out)
    _let_go(forest, row)


@jit
def _insert(forest: Forest, rules: Rules, segment: Segment, batch: Batch, event: int, out: Out) -> int:
    tree = int64(batch.key[event])
    named = int64(batch.named[event])
    weight = batch.weight[event]
    label = int64(batch.label[event])
    high, low = batch.id_high[event], batch.id_low[event]
    owner = tree * 2 + named
    if weight < 0:
        return WRONG_WEIGHT
    if not is_label(forest.criterion, label, rules.classes):
        return WRONG_LABEL
    if weight == 0:
        return IGNORED
    is_new = forest.trees[tree, ALIVE] == 0
    if is_new and forest.alive[0] >= rules.max_keys:
        return TOO_MANY_KEYS
    total = int64(0)
    if not is_new:
        total = weight_of(forest.criterion, forest.nodes.weights, forest.trees[tree, ROOT])
    if weight >= room_for(forest.criterion) - total:
        return COUNT_OVERFLOW
    old = int64(NONE)
    if named:
        old = example_store.lookup(forest.store, owner, high, low)
        if old != NONE and forest.store.rows[old, example_store.STATE] == example_store.LIVE:
            if rules.on_duplicate != _REPLACE:
                return IGNORED if rules.on_duplicate == _IGNORE else DUPLICATE_ID
        elif forest.store.counts[example_store.NAMED] >= rules.max_live_ids:
            return TOO_MANY_LIVE_IDS
    else:
        high, low = content_key(
            batch.feature, batch.bits, batch.pointer[event], batch.pointer[event + 1], label, weight
        )
    if rules.evaluated:
        _look(forest, rules, segment, batch, event, out)
        node = _predict(forest, tree, batch, event, out)
        out.predicted[event] = guess(forest.criterion, out.weights, node)
        out.loss[event] = loss(forest.criterion, out.weights, label)
    if old != NONE:
        if forest.store.rows[old, example_store.STATE] == example_store.LIVE:
            _remove(forest, rules, segment, old, event, out)
        example_store.remove(forest.store, old)
    if is_new:
        forest.trees[tree, ALIVE] = 1
        forest.alive[0] += 1
        segment.sizes[HELD] = 0
        begin(forest, rules, segment, tree, int64(NONE), int64(LOW), int64(0))
    row = _enter(forest, owner, high, low, batch, event)
    example_store.date(forest.store, tree, batch, event)
    update(forest, rules, segment, tree, row, int64(1), event, out)
    if rules.window > 0 and forest.store.heads[tree, example_store.LIVES] > rules.window:
        oldest = forest.store.heads[tree, example_store.OLDEST]
        _remove(forest, rules, segment, oldest, event, out)
        example_store.expire(forest.store, oldest, rules.window)
    return APPLIED


@jit
def _delete(forest: Forest, rules: Rules, segment: Segment, batch: Batch, event: int, out: Out) -> int:
    tree = int64(batch.key[event])
    label = int64(batch.label[event])
    weight = batch.weight[event]
    if batch.named[event]:
        row = example_store.lookup(forest.store, tree * 2 + 1, batch.id_high[event], batch.id_low[event])
        if row == NONE:
            return ABSENT_ID
        if forest.store.rows[row, example_store.STATE] == example_store.DROPPED:
            is_known = example_store.is_remembered(forest.store, row, batch, event, rules.span)
            return ALREADY_DROPPED if is_known else ABSENT_ID
    else:
        if weight <= 0 or not is_label(forest.criterion, label, rules.classes):
            return ABSENT_EXAMPLE
        high, low = content_key(
            batch.feature, batch.bits, batch.pointer[event], batch.pointer[event + 1], label, weight
        )
        row = example_store.lookup(forest.store, tree * 2, high, low)
        if row == NONE:
            return ABSENT_EXAMPLE
    _remove(forest, rules, segment, row, event, out)
    example_store.remove(forest.store, row)
    return APPLIED


@jit
def _drop(forest: Forest, rules: Rules, tree: int) -> None:
    """Forget a tree and its examples."""
    if forest.trees[tree, ALIVE] == 0:
        return
    parts.abandon(forest.slack, forest, rules, tree)
    discard(forest, forest.trees[tree, ROOT])
    heads = forest.store.heads
    while heads[tree, example_store.OLDEST] != NONE:
        _let_go(forest, heads[tree, example_store.OLDEST])
        example_store.remove(forest.store, heads[tree, example_store.OLDEST])
    while heads[tree, example_store.FIRST_DROPPED] != NONE:
        example_store.remove(forest.store, heads[tree, example_store.FIRST_DROPPED])
    forest.alive[0] -= 1
    for column in range(TREE_COLUMNS):
        forest.trees[tree, column] = 0


# --- the loop


@inlined
def _shortage(forest: Forest, rules: Rules, segment: Segment, batch: Batch, event: int) -> int:
    """Return what must be enlarged before an event can be applied, DONE where all is there."""
    op = batch.op[event]
    tree = int64(batch.key[event])
    if op < 0 or op == ASK:
        return DONE
    if op == PREDICT and (rules.terms.policy == EPSILON or forest.trees[tree, ALIVE] == 0):
        return DONE
    ones = batch.pointer[event + 1] - batch.pointer[event]
    if op == INSERT:
        is_row, is_content = example_store.room(forest.store, ones)
        if not is_row:
            return ROWS
        if not is_content:
            return CONTENT
        if rows.room(forest.words) < ones:
            return WORDS
    examples = forest.store.heads[tree, example_store.LIVES] + 1
    is_twice = parts.may_be_under_way(forest, rules, tree, examples, ones)
    if nodes.room(forest.nodes) < nodes.needed(examples, rules.terms.max_depth) * (2 if is_twice else 1):
        return NODES
    if is_twice and not parts.has_room(forest, ones):
        return SEEN
    if is_twice and values.room(forest.aside.values) < parts.more_values(forest, rules, tree, ones):
        return VALUES
    if slack.is_short(forest.slack):
        return INDEXES
    fits = segment.rows.size >= examples and segment.column.size >= forest.trees[tree, ENTRIES] + ones
    return DONE if fits and segment.present.size >= forest.words.cells.shape[0] else SCRATCH


@jit
def _note_snapshot(forest: Forest, rules: Rules, segment: Segment, batch: Batch, event: int, out: Out) -> None:
    """Note whether a snapshot is due after an example has come or gone.

    Only a look tells whether a tree has changed that waits for one.
    """
    tree = int64(batch.key[event])
    when, argument, time = rules.snapshot_when, rules.snapshot_argument, batch.time[event]
    period = forest.trees[tree, PERIOD] - 1
    due = is_due(when, argument, forest.trees[tree, EVENTS], time, period)
    if due or when == CHANGE:
        look_at_all(forest.slack, forest, rules, segment, tree, event, out)
    if due or (when == CHANGE and out.told[0] & CHANGED != 0):
        out.told[0] |= SNAPSHOT_DUE
    forest.trees[tree, PERIOD] = next_period(when, argument, time, period) + 1


@jit
def apply(forest: Forest, rules: Rules, segment: Segment, batch: Batch, out: Out, event: int) -> tuple[int, int]:
    """Apply events from `event` on. Return where it stopped, and why: TOLD where a snapshot of the last is due."""
    while event < batch.key.size:
        op = batch.op[event]
        out.told[0] = 0
        due = int64(NONE)
        if op == LET_GO:
            due = example_store.turn(forest.store, batch, event, rules.span)
            if due == NONE:
                out.status[event] = SKIPPED
                event += 1
                continue
        short = _shortage(forest, rules, segment, batch, event)
        if short != DONE:
            return event, short
        status = APPLIED
        if op == INSERT:
            status = _insert(forest, rules, segment, batch, event, out)
        elif op == DELETE:
            status = _delete(forest, rules, segment, batch, event, out)
        elif op == PREDICT:
            _answer(forest, rules, segment, batch, event, out)
        elif op == DROP:
            _drop(forest, rules, int64(batch.key[event]))
        elif op == LET_GO:
            _remove(forest, rules, segment, due, event, out)
            example_store.let_go(forest.store, due, batch, event, rules.span)
        elif op == LOOK:
            look_at_all(forest.slack, forest, rules, segment, int64(batch.key[event]), event, out)
        elif op == ASK and is_current(forest.slack, forest, rules, segment, int64(batch.key[event])):
            status = APPLIED
        else:
            status = SKIPPED
        out.status[event] = status
        if status == APPLIED and (op <= DELETE or op == LET_GO):
            forest.trees[int64(batch.key[event]), EVENTS] += 1
            parts.spend(forest.slack, forest, rules, segment, int64(batch.key[event]), event, out)
            _note_snapshot(forest, rules, segment, batch, event, out)
            if out.told[0] & SNAPSHOT_DUE:
                return event + 1, TOLD
        event += 1
    return event, DONE
