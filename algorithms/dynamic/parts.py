"""A rebuild in parts: with each event of a key some of it is done, while the old subtree answers and counts.

::

    event -> UPDATE, which lets both subtrees follow -> parts: stage by stage, until `max_work` is spent

The stages are those of aside.py. Work is counted in entries, by what was measured: an example that is counted is
one more than it has features, one that is moved is two, a feature that is compared or no longer counted is three,
and BUILD of some examples is three times as much as counting them. All of that depends on the events of the key
alone.

Only the nodes of many examples are built like this. Below them, and everywhere where a rebuild fits into the work
of an event, BUILD does as it always does. One subtree of a tree is built aside at a time. What is due meanwhile,
and is neither beside it nor small, waits: it is still due at the next event that it sees.
"""

from __future__ import annotations

from algorithms.core import example_store, rows
from algorithms.core.arrays import Int32s, Int64s, int64
from algorithms.core.example_store import ExampleStore
from algorithms.core.free_list import USED
from algorithms.core.jit import apart, dispatch, inlined, jit
from algorithms.core.names import refer
from algorithms.dynamic import epsilon, nodes, vocabulary
from algorithms.dynamic.aside import (
    BEFORE,
    CURSOR,
    FOUND,
    FREEING,
    GATHERING,
    HOLDERS,
    IDLE,
    NEW,
    NEXT,
    NODE,
    OLD,
    PARTING,
    SCANNING,
    STAGE,
    TO_WIPE,
    WAITING,
    WEIGHTS,
    WIPING,
    Aside,
)
from algorithms.dynamic.build import is_done
from algorithms.dynamic.examples import AFTER, Examples, link, side_of, unlink, value_of
from algorithms.dynamic.nodes import (
    BUILT,
    BUILT_WEIGHT,
    DEPTH,
    EDITED_WEIGHT,
    EDITS,
    EXAMPLES,
    FEATURE,
    FIRST,
    HIGH,
    KIND,
    LOW,
    NONE,
    PARENT,
    Nodes,
)
from algorithms.dynamic.segment import HEAVIEST, HELD, LIGHTEST, TOUCHED, WHOLE, Segment
from algorithms.dynamic.slack import NoSlack, Slack
from algorithms.dynamic.splitter import NO_SPLIT, best_split, forget
from algorithms.dynamic.state import (
    CHANGED,
    ENTRIES,
    MADE,
    REBUILDS,
    REBUILT,
    ROOT,
    Forest,
    Out,
    Rules,
    examples_of,
)
from algorithms.dynamic.subtrees import ALL, child_of, discard, gather, give_back, put_below, stand_of, value_at

_MOVE, _WIPE = 2, 3  # an example that is moved, and a feature that is no longer counted, are as much
_BUILD = 3  # how often BUILD looks at an entry, about


# --- what is built at once, and what is not


@inlined
def going(forest: Forest, rules: Rules, tree: int) -> int:
    """Return the top of the subtree whose successor is built aside, NONE where there is none."""
    if rules.max_work == 0:
        return int64(NONE)
    heads = forest.aside.heads
    return heads[tree, OLD] if IDLE < heads[tree, STAGE] < FREEING else int64(NONE)


@inlined
def is_idle(forest: Forest, tree: int) -> bool:
    """Return whether no subtree of a tree is built aside, or given back."""
    return bool(forest.aside.heads[tree, STAGE] == IDLE)


@inlined
def is_on_the_way(forest: Forest, node: int, below: int) -> bool:
    """Return whether a node is on the way from the root to another, which may be NONE. O(depth)."""
    while below != NONE and below != node:
        below = forest.nodes.links[below, PARENT]
    return below != NONE


@jit
def work_of(forest: Forest, rules: Rules, segment: Segment, tree: int, top: int) -> int:
    """Return what it takes to build a subtree anew, 0 where that is too much for one event.

    Where it is not, its examples are gathered.
    """
    most = at_once(rules.max_work)
    if forest.nodes.links[top, EXAMPLES] >= most:
        return int64(0)
    if rules.max_work > 0 and not is_idle(forest, tree):
        # What waits asks at each event: not all are looked at then.
        mean = forest.trees[tree, ENTRIES] // max(forest.store.heads[tree, example_store.LIVES], 1)
        if forest.nodes.links[top, EXAMPLES] * (1 + mean) > 2 * most:
            return int64(0)
    gather(forest, segment, top)
    work = int64(1)
    for at in range(segment.sizes[HELD]):
        work += 1 + forest.store.rows[segment.rows[at], example_store.LENGTH]
    return _BUILD * work if work <= most else int64(0)


@inlined
def at_once(max_work: int) -> int:
    """Return how many entries examples may have for BUILD to be called for them."""
    return max(max_work // _BUILD, 1) if max_work > 0 else ALL


@inlined
def may_be_under_way(forest: Forest, rules: Rules, tree: int, examples: int, ones: int) -> bool:
    """Return whether something may be built aside of a tree at an event, after which it has so many examples.

    The event has `ones` features.
    """
    if rules.max_work == 0:
        return False
    return not is_idle(forest, tree) or 1 + examples + forest.trees[tree, ENTRIES] + ones > at_once(rules.max_work)


@inlined
def has_room(forest: Forest, ones: int) -> bool:
    """Return whether there is room to count the features of a node of any tree, after an event with so many."""
    return rows.room(forest.aside.seen) >= forest.words.used[USED] + ones


@jit
def begin(aside: Aside, state: Nodes, trees: Int64s, tree: int, top: int) -> None:
    """Begin to build a subtree anew aside of it. There must be none yet."""
    heads, links = aside.heads, state.links
    new = nodes.create(state, int64(NONE), int64(LOW), links[top, DEPTH], trees[tree, MADE])
    trees[tree, MADE] += 1
    links[new, EXAMPLES] = links[top, EXAMPLES]
    for k in range(state.weights.shape[1]):
        state.weights[new, k] = state.weights[top, k]
    leaf = top
    while links[leaf, FEATURE] != NONE:
        leaf = links[leaf, HIGH]
    heads[tree, STAGE] = GATHERING
    heads[tree, OLD] = top
    heads[tree, NEW] = new
    heads[tree, NODE] = leaf
    heads[tree, CURSOR] = NONE
    heads[tree, WAITING] = NONE
    heads[tree, FOUND] = NONE
    heads[tree, TO_WIPE] = 0


# --- edits meanwhile


@inlined
def _place(known: NoSlack, forest: Forest, rules: Rules, tree: int, leaf: int, row: int, sign: int) -> None:
    old = going(forest, rules, tree)
    if old != NONE and is_on_the_way(forest, old, leaf):
        _follow(forest, tree, leaf, row, sign)
    else:
        _list(forest, leaf, row, sign)


@inlined
def _list(forest: Forest, leaf: int, row: int, sign: int) -> None:
    """Put an example in the list of a leaf (sign 1), or take it out (-1)."""
    links = forest.nodes.links
    if sign > 0:
        links[leaf, FIRST] = link(examples_of(forest), links[leaf, FIRST], row)
    else:
        links[leaf, FIRST] = unlink(examples_of(forest), links[leaf, FIRST], row)


@apart
def _follow(forest: Forest, tree: int, leaf: int, row: int, sign: int) -> None:
    """Let an example come to the new subtree (sign 1), or leave it (-1).

    In the old one, where it belongs to `leaf`, all is done but for the leaf's list.
    """
    heads, links = forest.aside.heads, forest.nodes.links
    label = forest.store.rows[row, example_store.LABEL]
    weight = forest.store.rows[row, example_store.WEIGHT]
    node = heads[tree, NEW]
    while True:
        links[node, EXAMPLES] += sign
        forest.nodes.weights[node, label] += sign * weight
        epsilon.note(forest, node, weight)
        if links[node, FEATURE] == NONE:
            break
        node = child_of(forest, node, value_at(forest, row, node))
    is_scanned = heads[tree, STAGE] == SCANNING and heads[tree, NODE] == node
    if sign > 0:
        links[node, FIRST] = link(examples_of(forest), links[node, FIRST], row)
        forest.aside.counted[row] = 1 if is_scanned else 0
    else:
        if is_scanned and heads[tree, CURSOR] == row:
            heads[tree, CURSOR] = int64(forest.chain[row, AFTER])
        _take_out(forest, leaf, heads[tree, NODE], node, row)
    if is_scanned and forest.aside.counted[row] == 1:  # what comes is ahead of all that the scan has still to see
        _count(forest.aside, forest.store, tree, row, sign)
    elif sign < 0 and heads[tree, STAGE] == WIPING:
        _count(forest.aside, forest.store, tree, row, int64(0))


@inlined
def _take_out(forest: Forest, leaf: int, at_work: int, new_leaf: int, row: int) -> None:
    """Take an example out of the list that it is in: of an old leaf, of a node at work or of a new leaf."""
    links = forest.nodes.links
    first = unlink(examples_of(forest), int64(NONE), row)
    if links[leaf, FIRST] == row:
        links[leaf, FIRST] = first
    elif links[new_leaf, FIRST] == row:
        links[new_leaf, FIRST] = first
    elif at_work != NONE and links[at_work, FIRST] == row:
        links[at_work, FIRST] = first


@jit
def _count(aside: Aside, store: ExampleStore, tree: int, row: int, sign: int) -> None:
    """Count the features of an example (sign 1), or take them back (-1), or forget what was counted of them (0).

    A feature that none has any more that was counted is not in the table: it may be forgotten.
    """
    seen = aside.seen
    start = store.rows[row, example_store.START]
    change = sign * store.rows[row, example_store.WEIGHT]
    for entry in range(start, start + store.rows[row, example_store.LENGTH]):
        feature = int64(store.features[entry])
        at = rows.find(seen, tree, feature)
        if sign > 0 and at == NONE:
            first = aside.heads[tree, FOUND]
            at = rows.create(seen, tree, feature, first)
            if first != NONE:
                seen.cells[first, BEFORE] = at + 1
            aside.heads[tree, FOUND] = at
        if at == NONE:
            continue
        seen.cells[at, HOLDERS] += sign
        seen.cells[at, WEIGHTS + store.rows[row, example_store.LABEL]] += change
        if sign == 0 or seen.cells[at, HOLDERS] == 0:
            before = seen.cells[at, BEFORE]
            after = rows.remove(seen, at)
            if after != NONE:
                seen.cells[after, BEFORE] = before
            if before == 0:
                aside.heads[tree, FOUND] = after
            else:
                seen.cells[before - 1, rows.NEXT] = after


# --- stage by stage


@apart
def _spend(
    known: NoSlack, forest: Forest, rules: Rules, segment: Segment, tree: int, event: int, out: Out
) -> None:
    """Do what an event can do of the subtree that is built aside, if there is one."""
    if rules.max_work == 0:
        return
    heads = forest.aside.heads
    left = rules.max_work
    while left > 0 and heads[tree, STAGE] != IDLE:
        stage = heads[tree, STAGE]
        if stage == GATHERING:
            left = _gather(forest.aside, forest.nodes, examples_of(forest), tree, left)
        elif stage == NEXT and heads[tree, WAITING] == NONE:
            _hand_over(forest, tree, event, out)
        elif stage == NEXT:
            left = _take_next(forest, rules, segment, tree, left)
        elif stage == SCANNING:
            left = _scan(forest.aside, forest.store, forest.chain, tree, left)
            if left > 0:
                left -= _choose(forest, rules, segment, tree)
        elif stage == WIPING:
            left = _wipe(forest.aside, tree, left)
            if heads[tree, TO_WIPE] == 0:
                _go_on(forest, tree)
        elif stage == PARTING:
            left = _part(forest.aside, forest.nodes, examples_of(forest), tree, left)
        else:
            _free(forest, tree, left)
            left = int64(0)


@jit
def _gather(aside: Aside, state: Nodes, examples: Examples, tree: int, left: int) -> int:
    """Move examples from the old leaves, which come in the order of `gather`, to the new one."""
    heads, links = aside.heads, state.links
    old, new, leaf = heads[tree, OLD], heads[tree, NEW], heads[tree, NODE]
    while left > 0:
        left -= _MOVE
        row = links[leaf, FIRST]
        if row != NONE:
            links[leaf, FIRST] = unlink(examples, row, row)
            links[new, FIRST] = link(examples, links[new, FIRST], row)
            aside.counted[row] = 0
            continue
        while leaf != old and links[links[leaf, PARENT], LOW] == leaf:
            leaf = links[leaf, PARENT]
        if leaf == old:
            heads[tree, NODE] = NONE
            heads[tree, STAGE] = NEXT
            _wait(aside, state, tree, new)
            return left
        leaf = links[links[leaf, PARENT], LOW]
        while links[leaf, FEATURE] != NONE:
            leaf = links[leaf, HIGH]
    heads[tree, NODE] = leaf
    return left


@inlined
def _wait(aside: Aside, state: Nodes, tree: int, leaf: int) -> None:
    """Let a new leaf wait, ahead of all others."""
    state.links[leaf, LOW] = aside.heads[tree, WAITING]
    aside.heads[tree, WAITING] = leaf


@jit
def _take_next(forest: Forest, rules: Rules, segment: Segment, tree: int, left: int) -> int:
    """Take the leaf that has waited least: see what becomes of it."""
    heads, links = forest.aside.heads, forest.nodes.links
    leaf = heads[tree, WAITING]
    work = work_of(forest, rules, segment, tree, leaf)
    if work > left and left < rules.max_work:
        return int64(0)  # it is done with the next event, which has more left
    heads[tree, WAITING] = links[leaf, LOW]
    links[leaf, LOW] = NONE
    if work > 0:
        _build(forest, rules, segment, tree, leaf)
    elif is_done(forest.criterion, forest.nodes, segment, rules.terms, leaf, links[leaf, DEPTH]):
        _settle(forest, leaf)
    else:
        heads[tree, NODE] = leaf
        heads[tree, CURSOR] = links[leaf, FIRST]
        heads[tree, STAGE] = SCANNING
    return left - max(work, 1)


@inlined
def _build(forest: Forest, rules: Rules, segment: Segment, tree: int, leaf: int) -> None:
    """Let BUILD make the subtree of a new leaf, whose examples have been gathered."""
    parent, side, depth = stand_of(forest, leaf)
    discard(forest, leaf)
    top = put_below(forest, rules, segment, tree, parent, side, depth)
    if parent == NONE:
        forest.aside.heads[tree, NEW] = top


@jit
def _scan(aside: Aside, store: ExampleStore, chain: Int32s, tree: int, left: int) -> int:
    """Count examples of the node at work."""
    row = aside.heads[tree, CURSOR]
    while left > 0 and row != NONE:
        _count(aside, store, tree, row, int64(1))
        aside.counted[row] = 1
        left -= 1 + store.rows[row, example_store.LENGTH]
        row = int64(chain[row, AFTER])
    aside.heads[tree, CURSOR] = row
    return left


@jit
def _choose(forest: Forest, rules: Rules, segment: Segment, tree: int) -> int:
    """Choose the split of the node at work, whose examples are all counted, or none; return what it took."""
    heads, links = forest.aside.heads, forest.nodes.links
    node = heads[tree, NODE]
    depth = links[node, DEPTH]
    work = int64(1)
    choice = NO_SPLIT
    if not is_done(forest.criterion, forest.nodes, segment, rules.terms, node, depth):
        work += _WIPE * _lay_out(forest, segment, tree)
        choice = best_split(
            forest.criterion,
            segment,
            forest.words,
            forest.names,
            int64(0),
            links[node, EXAMPLES],
            rules.terms.way,
            int64(0),
            rules.terms.drawn,
            rules.terms.salt,
            int64(0),
        )
    if choice.column != NONE:
        feature = vocabulary.feature_of(forest.words, choice.column)
        made = forest.trees[tree, MADE]
        low = nodes.create(forest.nodes, node, int64(LOW), depth + 1, made)
        high = nodes.create(forest.nodes, node, int64(HIGH), depth + 1, made + 1)
        forest.trees[tree, MADE] += 2
        links[node, FEATURE] = feature
        links[node, KIND] = forest.words.cells[choice.column, vocabulary.KIND]
        refer(forest.names, feature)
        links[high, EXAMPLES] = segment.present[choice.column]
        links[low, EXAMPLES] = links[node, EXAMPLES] - links[high, EXAMPLES]
        for k in range(segment.totals.size):
            forest.nodes.weights[high, k] = segment.counts[choice.column, k]
            forest.nodes.weights[low, k] = segment.totals[k] - segment.counts[choice.column, k]
    forget(segment)
    _settle(forest, node)
    heads[tree, STAGE] = WIPING
    heads[tree, TO_WIPE] = _found(forest.aside, tree)
    return work


@inlined
def _lay_out(forest: Forest, segment: Segment, tree: int) -> int:
    """Give what was counted to the splitter, but for the weights of examples; return how many features it is."""
    seen = forest.aside.seen
    touched = int64(0)
    at = forest.aside.heads[tree, FOUND]
    while at != NONE:
        column = vocabulary.find(forest.words, rows.item_of(seen, at))
        segment.touched[touched] = column
        segment.present[column] = seen.cells[at, HOLDERS]
        for k in range(segment.totals.size):
            segment.counts[column, k] = seen.cells[at, WEIGHTS + k]
        touched += 1
        at = seen.cells[at, rows.NEXT]
    segment.sizes[TOUCHED] = touched
    weight = int64(0)
    for k in range(segment.totals.size):
        weight += segment.totals[k]
    segment.sizes[WHOLE] = 0
    segment.sizes[LIGHTEST] = 1
    segment.sizes[HEAVIEST] = weight
    return touched


@inlined
def _found(aside: Aside, tree: int) -> int:
    """Return of how many features something is counted."""
    found = int64(0)
    at = aside.heads[tree, FOUND]
    while at != NONE:
        found += 1
        at = aside.seen.cells[at, rows.NEXT]
    return found


@inlined
def _settle(forest: Forest, node: int) -> None:
    """Let s(v) and c(v) of a new node begin."""
    links = forest.nodes.links
    weight = int64(0)
    for k in range(forest.nodes.weights.shape[1]):
        weight += forest.nodes.weights[node, k]
    links[node, BUILT] = links[node, EXAMPLES]
    links[node, BUILT_WEIGHT] = weight
    links[node, EDITS] = 0
    links[node, EDITED_WEIGHT] = 0


@jit
def _wipe(aside: Aside, tree: int, left: int) -> int:
    """Forget what was counted of the node at work.

    Features that a delete has forgotten meanwhile take work as well: which of its features come late in the chain
    follows from the numbers of names, and these from batches.
    """
    heads = aside.heads
    while left > 0 and heads[tree, TO_WIPE] > 0:
        if heads[tree, FOUND] != NONE:
            heads[tree, FOUND] = rows.remove(aside.seen, heads[tree, FOUND])
        heads[tree, TO_WIPE] -= 1
        left -= _WIPE
    if heads[tree, FOUND] != NONE:
        aside.seen.cells[heads[tree, FOUND], BEFORE] = 0
    return left


@inlined
def _go_on(forest: Forest, tree: int) -> None:
    """Go on with a node that has been scanned: its examples are parted, or it stays a leaf."""
    heads = forest.aside.heads
    heads[tree, STAGE] = PARTING
    if forest.nodes.links[heads[tree, NODE], FEATURE] == NONE:
        heads[tree, STAGE] = NEXT
        heads[tree, NODE] = NONE


@jit
def _part(aside: Aside, state: Nodes, examples: Examples, tree: int, left: int) -> int:
    """Move examples of the node at work to its children."""
    heads, links = aside.heads, state.links
    node = heads[tree, NODE]
    while left > 0 and links[node, FIRST] != NONE:
        row = links[node, FIRST]
        links[node, FIRST] = unlink(examples, row, row)
        value = value_of(examples, row, links[node, FEATURE])
        child = links[node, LOW + side_of(links[node, KIND], state.threshold[node], value)]
        links[child, FIRST] = link(examples, links[child, FIRST], row)
        aside.counted[row] = 0
        left -= _MOVE
    if links[node, FIRST] == NONE:
        heads[tree, NODE] = NONE
        heads[tree, STAGE] = NEXT
        _wait(aside, state, tree, links[node, HIGH])
        _wait(aside, state, tree, links[node, LOW])
    return left


@inlined
def _hand_over(forest: Forest, tree: int, event: int, out: Out) -> None:
    """Put the new subtree in the place of the old one, whose nodes are given back from now on."""
    heads, links, trees = forest.aside.heads, forest.nodes.links, forest.trees
    old, new = heads[tree, OLD], heads[tree, NEW]
    parent, side, _ = stand_of(forest, old)
    links[new, PARENT] = parent
    if parent == NONE:
        trees[tree, ROOT] = new
    else:
        links[parent, side] = new
    trees[tree, REBUILDS] += 1
    trees[tree, REBUILT] += links[new, EXAMPLES]
    out.rebuilt[event] += links[new, EXAMPLES]
    if links[old, FEATURE] != NONE or links[new, FEATURE] != NONE:
        out.told[0] |= CHANGED
    links[old, PARENT] = NONE
    heads[tree, NEW] = NONE
    heads[tree, STAGE] = FREEING


@inlined
def _free(forest: Forest, tree: int, most: int) -> None:
    """Give so many nodes of the old subtree back, at most."""
    heads = forest.aside.heads
    heads[tree, OLD] = give_back(forest, heads[tree, OLD], most)
    if heads[tree, OLD] == NONE:
        for column in range(heads.shape[1]):
            heads[tree, column] = 0


@inlined
def _abandon(known: NoSlack, forest: Forest, rules: Rules, tree: int) -> None:
    """Give back all that is aside of a tree that is dropped."""
    if rules.max_work == 0 or forest.aside.heads[tree, STAGE] == IDLE:
        return
    heads = forest.aside.heads
    if heads[tree, STAGE] != FREEING:
        heads[tree, TO_WIPE] = _found(forest.aside, tree)
        _wipe(forest.aside, tree, ALL)
        heads[tree, OLD] = heads[tree, NEW]
    _free(forest, tree, ALL)


# --- by the clock alone


@inlined
def _place_in_leaf(known: Slack, forest: Forest, rules: Rules, tree: int, leaf: int, row: int, sign: int) -> None:
    _list(forest, leaf, row, sign)


@inlined
def _spend_nothing(
    known: Slack, forest: Forest, rules: Rules, segment: Segment, tree: int, event: int, out: Out
) -> None:
    pass


@inlined
def _abandon_nothing(known: Slack, forest: Forest, rules: Rules, tree: int) -> None:
    pass


place = dispatch(
    "Put an example in the list where it belongs (sign 1), or take it out (-1): of a leaf, or aside.",
    {NoSlack: _place, Slack: _place_in_leaf},
)
spend = dispatch("Build on aside, see `_spend`.", {NoSlack: _spend, Slack: _spend_nothing})
abandon = dispatch("See `_abandon`.", {NoSlack: _abandon, Slack: _abandon_nothing})
