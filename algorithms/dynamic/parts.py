"""A rebuild in parts: with each event of a key some of it is done, while the old subtree answers and counts.

::

    event -> UPDATE, which lets both subtrees follow -> parts: stage by stage, until `max_work` is spent

The stages are those of aside.py. Work is counted in entries, by what was measured: an example that is counted is
one more than it has features, of which a numeric one is four, one that is moved is two, by a split six, a feature
that is compared or no longer counted is three, so is a leaf of values that is no longer needed, and BUILD of some
examples is three times as much as counting them, each feature one. All of that depends on the events of the key
alone.

Only the nodes of many examples are built like this. Below them, and everywhere where a rebuild fits into the work
of an event, BUILD does as it always does. One subtree of a tree is built aside at a time. What is due meanwhile,
and is neither beside it nor small, waits: it is still due at the next event that it sees.
"""

from __future__ import annotations

from algorithms.core import example_store, rows
from algorithms.core.arrays import Float64s, Int32s, Int64s, int64
from algorithms.core.criteria import Criterion
from algorithms.core.example_store import ExampleStore
from algorithms.core.free_list import USED
from algorithms.core.jit import apart, dispatch, inlined, jit
from algorithms.core.kinds import BINARY
from algorithms.core.names import refer
from algorithms.core.rows import Rows
from algorithms.dynamic import epsilon, nodes, values, vocabulary
from algorithms.dynamic.aside import (
    BEFORE,
    CURSOR,
    FOUND,
    FREEING,
    GATHERING,
    HOLDERS,
    IDLE,
    NEGATIVE,
    NEW,
    NEXT,
    NODE,
    OLD,
    PARTING,
    POSITIVE,
    SCANNING,
    STAGE,
    TO_WIPE,
    WAITING,
    WEIGHTS,
    WIPING,
    Aside,
    has_values,
)
from algorithms.dynamic.build import is_done
from algorithms.dynamic.choosing import choose, low_side
from algorithms.dynamic.examples import AFTER, Examples, link, side_of, unlink, value_of
from algorithms.dynamic.labels import by_target
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
from algorithms.dynamic.segment import HELD, Segment
from algorithms.dynamic.slack import NoSlack, Slack
from algorithms.dynamic.splitter import NO_SPLIT, Choice
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
from algorithms.dynamic.variance import Variance

_MOVE, _WIPE = 2, 3  # an example that is moved, and what is no longer counted, are as much
_PART = 6  # one that is moved by its value of a feature, which must be found in it
_ORDER = 3  # and a value that is put in order, beside being counted
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


@inlined
def more_values(forest: Forest, rules: Rules, tree: int, ones: int) -> int:
    """Return how many values an event with so many features may put in order at most.

    What is left of `max_work` may be passed by one example.
    """
    if not has_values(forest.aside):
        return int64(0)
    most = rules.max_work // (1 + _ORDER) + forest.aside.values.longest[0]
    return min(most, forest.trees[tree, ENTRIES]) + 2 * ones


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
def _place(criterion: Criterion, forest: Forest, rules: Rules, tree: int, leaf: int, row: int, sign: int) -> None:
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
    is_at_work = False
    while True:
        is_at_work = is_at_work or node == heads[tree, NODE]
        links[node, EXAMPLES] += sign
        forest.nodes.weights[node, label] += sign * weight
        epsilon.note(forest, node, weight)
        if links[node, FEATURE] == NONE:
            break
        node = child_of(forest, node, value_at(forest, row, node))
    is_scanned = is_at_work and heads[tree, STAGE] == SCANNING
    if sign > 0:
        _note_length(forest.aside, forest.store.rows, row)
        links[node, FIRST] = link(examples_of(forest), links[node, FIRST], row)
        forest.aside.counted[row] = 1 if is_scanned else 0
    else:
        if is_scanned and heads[tree, CURSOR] == row:
            heads[tree, CURSOR] = int64(forest.chain[row, AFTER])
        _take_out(forest, leaf, heads[tree, NODE], node, row)
    # What comes is ahead of all that the scan has still to see.
    if (is_scanned or (is_at_work and heads[tree, STAGE] == WIPING)) and forest.aside.counted[row] == 1:
        _count(forest.aside, forest.store, forest.values, forest.words, tree, row, sign)


@inlined
def _note_length(aside: Aside, store: Int64s, row: int) -> None:
    """Note how many values an example may have that will be counted at once."""
    aside.values.longest[0] = max(aside.values.longest[0], store[row, example_store.LENGTH])


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
def _count(aside: Aside, store: ExampleStore, own: Float64s, words: Rows, tree: int, row: int, sign: int) -> int:
    """Count the features of an example (sign 1), or take them back (-1); return what work it is.

    A feature that none has any more that was counted is not in the table: it may be forgotten. What has been wiped
    already is not there to be taken back.
    """
    seen = aside.seen
    start = store.rows[row, example_store.START]
    change = sign * store.rows[row, example_store.WEIGHT]
    is_scanned = aside.heads[tree, STAGE] == SCANNING
    work = 1 + store.rows[row, example_store.LENGTH]
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
        is_valued = has_values(aside) and _is_valued(seen, words, at, feature)
        if is_valued:
            made = _put_in_order(aside, store, at, own[entry], row, sign)
            aside.heads[tree, TO_WIPE] += made if is_scanned else 0
            work += _ORDER
        seen.cells[at, HOLDERS] += sign
        seen.cells[at, WEIGHTS + store.rows[row, example_store.LABEL]] += change
        if is_scanned and seen.cells[at, HOLDERS] == (1 if sign > 0 else 0):
            aside.heads[tree, TO_WIPE] += sign * (4 if is_valued else 2)
        if seen.cells[at, HOLDERS] == 0:
            before = seen.cells[at, BEFORE]
            after = rows.remove(seen, at)
            if after != NONE:
                seen.cells[after, BEFORE] = before
            if before == 0:
                aside.heads[tree, FOUND] = after
            else:
                seen.cells[before - 1, rows.NEXT] = after
    return work


@inlined
def _is_valued(seen: Rows, words: Rows, at: int, feature: int) -> bool:
    """Return whether a feature is numeric, and has values that are not wiped, or its first one comes."""
    if seen.cells[at, HOLDERS] > 0:
        return bool(seen.cells[at, NEGATIVE] + seen.cells[at, POSITIVE] > 0)
    return bool(words.cells[vocabulary.find(words, feature), vocabulary.KIND] != BINARY)


@jit
def _put_in_order(aside: Aside, store: ExampleStore, at: int, value: float, row: int, sign: int) -> int:
    """Put a value among those of its feature, a row of `seen` (sign 1), or take it out (-1).

    Returns how many more nodes there are.
    """
    held = aside.values
    before = held.used[USED]
    side = NEGATIVE if value < 0.0 else POSITIVE
    top = aside.seen.cells[at, side] - 1
    if sign > 0:
        top = values.add(held, store.rows, top, values.key_of(value), row)
    else:
        top = values.take(held, store.rows, top, values.key_of(value), row)
    aside.seen.cells[at, side] = top + 1
    return held.used[USED] - before


# --- stage by stage


@apart
def _spend(
    criterion: Criterion, forest: Forest, rules: Rules, segment: Segment, tree: int, event: int, out: Out
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
            left = _scan(forest.aside, forest.store, forest.values, forest.words, forest.chain, tree, left)
            if left > 0 and left < min(rules.max_work, _work_to_choose(forest.aside, tree)):
                left = int64(0)  # it is done with the next event, which has more left
            elif left > 0:
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
            _note_length(aside, examples.rows, row)
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
def _scan(
    aside: Aside, store: ExampleStore, own: Float64s, words: Rows, chain: Int32s, tree: int, left: int
) -> int:
    """Count examples of the node at work."""
    row = aside.heads[tree, CURSOR]
    while left > 0 and row != NONE:
        left -= _count(aside, store, own, words, tree, row, int64(1))
        aside.counted[row] = 1
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
        work = _work_to_choose(forest.aside, tree)
        choice = choose(forest.criterion, forest, segment, heads[tree, FOUND], links[node, EXAMPLES])
    if choice.column != NONE:
        _split(forest, segment, tree, node, choice)
    _settle(forest, node)
    heads[tree, STAGE] = WIPING
    heads[tree, TO_WIPE] = _to_wipe(forest.aside, tree)
    return work


@inlined
def _to_wipe(aside: Aside, tree: int) -> int:
    """Return how many features and leaves are counted of a node that is scanned, or more.

    It is one for each feature, and for each leaf at least: of l leaves in t tries, two tries a feature at most,
    there are 2 l - t nodes.
    """
    return (aside.heads[tree, TO_WIPE] + 1) >> 1


@inlined
def _work_to_choose(aside: Aside, tree: int) -> int:
    return 1 + _WIPE * _to_wipe(aside, tree)


@jit
def _split(forest: Forest, segment: Segment, tree: int, node: int, choice: Choice) -> None:
    """Let a new node have the split that was chosen, and children that know their class weights."""
    links = forest.nodes.links
    feature, depth = vocabulary.feature_of(forest.words, choice.column), links[node, DEPTH]
    made = forest.trees[tree, MADE]
    low = nodes.create(forest.nodes, node, int64(LOW), depth + 1, made)
    high = nodes.create(forest.nodes, node, int64(HIGH), depth + 1, made + 1)
    forest.trees[tree, MADE] += 2
    links[node, FEATURE] = feature
    links[node, KIND] = forest.words.cells[choice.column, vocabulary.KIND]
    forest.nodes.threshold[node] = choice.threshold
    refer(forest.names, feature)
    at = rows.find(forest.aside.seen, tree, feature)
    if links[node, KIND] == BINARY:
        links[low, EXAMPLES] = links[node, EXAMPLES] - forest.aside.seen.cells[at, HOLDERS]
        for k in range(segment.totals.size):
            segment.below[k] = segment.totals[k] - forest.aside.seen.cells[at, WEIGHTS + k]
    else:
        links[low, EXAMPLES] = low_side(forest, segment, at, choice.threshold, links[node, EXAMPLES])
    links[high, EXAMPLES] = links[node, EXAMPLES] - links[low, EXAMPLES]
    for k in range(segment.totals.size):
        forest.nodes.weights[low, k] = segment.below[k]
        forest.nodes.weights[high, k] = segment.totals[k] - segment.below[k]


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

    What a delete has taken back meanwhile takes work as well: which of its features come late in the chain follows
    from the numbers of names, and these from batches.
    """
    heads = aside.heads
    while left > 0 and heads[tree, TO_WIPE] > 0:
        if heads[tree, FOUND] != NONE:
            _wipe_some(aside, tree, heads[tree, FOUND])
        heads[tree, TO_WIPE] -= 1
        left -= _WIPE
    if heads[tree, FOUND] != NONE:
        aside.seen.cells[heads[tree, FOUND], BEFORE] = 0
    return left


@inlined
def _wipe_some(aside: Aside, tree: int, at: int) -> None:
    """Forget a leaf of the values of a feature, the first of its chain, or the feature where it has none."""
    cells = aside.seen.cells
    if has_values(aside):
        for side in (NEGATIVE, POSITIVE):
            if cells[at, side] > 0:
                cells[at, side] = values.drop_first(aside.values, cells[at, side] - 1) + 1
                return
    aside.heads[tree, FOUND] = rows.remove(aside.seen, at)


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
        left -= _PART
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
def _abandon(criterion: Criterion, forest: Forest, rules: Rules, tree: int) -> None:
    """Give back all that is aside of a tree that is dropped."""
    if rules.max_work == 0 or forest.aside.heads[tree, STAGE] == IDLE:
        return
    heads = forest.aside.heads
    if heads[tree, STAGE] != FREEING:
        heads[tree, TO_WIPE] = ALL
        while heads[tree, FOUND] != NONE:
            _wipe(forest.aside, tree, _WIPE)
        heads[tree, OLD] = heads[tree, NEW]
    _free(forest, tree, ALL)


# --- by the clock alone, and of classes alone


@inlined
def _place_in_leaf(
    criterion: Variance, forest: Forest, rules: Rules, tree: int, leaf: int, row: int, sign: int
) -> None:
    _list(forest, leaf, row, sign)


@inlined
def _spend_nothing(
    criterion: Variance, forest: Forest, rules: Rules, segment: Segment, tree: int, event: int, out: Out
) -> None:
    pass


@inlined
def _abandon_nothing(criterion: Variance, forest: Forest, rules: Rules, tree: int) -> None:
    pass


_place_of = by_target("See `place`.", _place, _place_in_leaf)
_spend_of = by_target("See `_spend`.", _spend, _spend_nothing)
_abandon_of = by_target("See `_abandon`.", _abandon, _abandon_nothing)


@inlined
def _place_by_clock(
    known: NoSlack, forest: Forest, rules: Rules, tree: int, leaf: int, row: int, sign: int
) -> None:
    _place_of(forest.criterion, forest, rules, tree, leaf, row, sign)


@inlined
def _place_with_floors(
    known: Slack, forest: Forest, rules: Rules, tree: int, leaf: int, row: int, sign: int
) -> None:
    _list(forest, leaf, row, sign)


@inlined
def _spend_by_clock(
    known: NoSlack, forest: Forest, rules: Rules, segment: Segment, tree: int, event: int, out: Out
) -> None:
    _spend_of(forest.criterion, forest, rules, segment, tree, event, out)


@inlined
def _spend_with_floors(
    known: Slack, forest: Forest, rules: Rules, segment: Segment, tree: int, event: int, out: Out
) -> None:
    pass


@inlined
def _abandon_by_clock(known: NoSlack, forest: Forest, rules: Rules, tree: int) -> None:
    _abandon_of(forest.criterion, forest, rules, tree)


@inlined
def _abandon_with_floors(known: Slack, forest: Forest, rules: Rules, tree: int) -> None:
    pass


place = dispatch(
    "Put an example in the list where it belongs (sign 1), or take it out (-1): of a leaf, or aside.",
    {NoSlack: _place_by_clock, Slack: _place_with_floors},
)
spend = dispatch("Build on aside, see `_spend`.", {NoSlack: _spend_by_clock, Slack: _spend_with_floors})
abandon = dispatch("See `_abandon`.", {NoSlack: _abandon_by_clock, Slack: _abandon_with_floors})
