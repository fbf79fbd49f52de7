"""UPDATE of paper 002: an example comes or goes; the policy says what is rebuilt, now or at the next look.

::

    EPSILON:      to the leaf -> the clocks on the way -> due? -> BUILD
    EXACT, BETA:  to the leaf, noting what floors need -> is a side empty now? -> a leaf, which waits
"""

from __future__ import annotations

import math

from algorithms.core import example_store
from algorithms.core.arrays import int64
from algorithms.core.criteria import Criterion
from algorithms.core.jit import apart, dispatch, inlined, jit
from algorithms.core.kinds import BINARY
from algorithms.dynamic import bands, columns, epsilon, exact, floors, indexes, nodes, parts, rivals, vocabulary
from algorithms.dynamic.build import grow, wait
from algorithms.dynamic.examples import Examples, Route, value_of
from algorithms.dynamic.labels import add_to_node, by_target
from algorithms.dynamic.nodes import EXAMPLES, FEATURE, FIRST, KIND, NONE
from algorithms.dynamic.segment import HANDED, HELD, Segment, take_label
from algorithms.dynamic.slack import BLOCK, IS_KNOWN, NoSlack, Slack
from algorithms.dynamic.splitter import Choice
from algorithms.dynamic.state import CHANGED, REBUILDS, REBUILT, ROOT, Forest, Out, Rules, examples_of
from algorithms.dynamic.subtrees import child_of, discard, gather, put_below, stand_of, value_at
from algorithms.dynamic.terms import EXACT
from algorithms.dynamic.variance import Variance


@jit
def update(
    forest: Forest, rules: Rules, segment: Segment, tree: int, row: int, sign: int, event: int, out: Out
) -> None:
    """Let an example of the example store come to a tree (sign 1) or leave it (-1). There must be room."""
    links = forest.nodes.links
    label = forest.store.rows[row, example_store.LABEL]
    weight = forest.store.rows[row, example_store.WEIGHT]
    node = forest.trees[tree, ROOT]
    while True:
        links[node, EXAMPLES] += sign
        _note(forest.slack, forest, node, row, label, weight, sign)
        add_to_node(forest.criterion, forest.nodes.weights, node, label, sign * weight)
        if links[node, FEATURE] == NONE:
            break
        value = value_at(forest, row, node)
        if rules.terms.policy == EXACT and links[node, KIND] != BINARY:
            _note_value(forest.slack, node, links[node, FEATURE], value, sign)
        node = child_of(forest, node, value)
    if rules.terms.policy == EXACT and sign > 0 and links[node, FIRST] != NONE:
        _note_at_leaf(forest.slack, node, examples_of(forest), row, links[node, FIRST])
    parts.place(forest.slack, forest, rules, tree, node, row, sign)
    _judge(forest.slack, forest, rules, segment, tree, row, sign * weight, event, out)


@apart
def _note_edit(known: Slack, forest: Forest, node: int, row: int, label: int, weight: int, sign: int) -> None:
    """Keep the floor of a node, its rivals and its index true, before its own class weights change."""
    known.counts[node, IS_KNOWN] = 0
    if known.indexes.of[node] > 0:
        _note_index(forest.criterion, forest, node, row, label, sign * weight)
    if known.counts[node, BLOCK] > 0:
        _note_rivals(forest, node, row, label, sign * weight)
    _note_bands(forest, node, row, label, sign * weight)
    floors.note(forest.criterion, known, forest.nodes.weights, node, label, weight, sign)


@inlined
def _note_no_index(criterion: Variance, forest: Forest, node: int, row: int, label: int, change: int) -> None:
    pass


@apart
def _note_index_of_classes(
    criterion: Criterion, forest: Forest, node: int, row: int, label: int, change: int
) -> None:
    held = forest.slack.indexes
    index = held.of[node] - 1
    if not indexes.note(held, criterion, forest.words, examples_of(forest), index, row, label, change):
        indexes.drop(held, node)


_note_index = by_target(
    "Keep the index of a node true; without room for it the node loses it until the next look.",
    _note_index_of_classes,
    _note_no_index,
)


@jit
def _note_rivals(forest: Forest, node: int, row: int, label: int, change: int) -> None:
    """Keep the class weights of rivals true. One that no example has any more is dropped, a new feature is one."""
    held, links = forest.slack.rivals, forest.nodes.links
    block = forest.slack.counts[node, BLOCK] - 1
    known = int64(0)
    if links[node, FEATURE] != NONE and value_at(forest, row, node) != 0.0:
        known = int64(1)
    at = block * rivals.WIDTH
    while at < block * rivals.WIDTH + held.heads[block, rivals.SIZE]:
        if value_of(examples_of(forest), row, held.cells[at, rivals.FEATURE]) == 0.0:
            floors.add_to_rival(forest.criterion, held.cells, at, label, change)
        else:
            known += 1
            if change < 0 and floors.is_last(
                forest.criterion, held.cells, at, forest.nodes.weights, node, label, change
            ):
                rivals.drop(held, block, at)
                if forest.slack.floor[node] < math.inf:
                    left = floors.left_without(forest.criterion, forest.nodes.weights, node, label, change)
                    forest.slack.floor[node] = min(forest.slack.floor[node], left)
                continue
        at += 1
    if (
        change > 0
        and forest.slack.floor[node] == math.inf
        and known < forest.store.rows[row, example_store.LENGTH]
    ):
        _note_new(forest, node, row)


@jit
def _note_new(forest: Forest, node: int, row: int) -> None:
    """Make rivals of the features of an example that are none; where not all can be, the node gets a floor."""
    held = forest.slack.rivals
    block = forest.slack.counts[node, BLOCK] - 1
    before = held.heads[block, rivals.SIZE]
    start = forest.store.rows[row, example_store.START]
    fits = True
    for entry in range(start, start + forest.store.rows[row, example_store.LENGTH]):
        feature = int64(forest.store.features[entry])
        is_known = feature == forest.nodes.links[node, FEATURE]
        for at in range(block * rivals.WIDTH, block * rivals.WIDTH + before):
            is_known = is_known or held.cells[at, rivals.FEATURE] == feature
        if is_known or not fits:
            continue
        kind = forest.words.cells[vocabulary.find(forest.words, feature), vocabulary.KIND]
        if kind != BINARY or held.heads[block, rivals.SIZE] == rivals.WIDTH:
            fits = False
            continue
        at = block * rivals.WIDTH + held.heads[block, rivals.SIZE]
        held.heads[block, rivals.SIZE] += 1
        held.cells[at, rivals.FEATURE] = feature
        for k in range(held.cells.shape[1] - rivals.WEIGHTS):
            held.cells[at, rivals.WEIGHTS + k] = forest.nodes.weights[node, k]
    if not fits:
        while held.heads[block, rivals.SIZE] > before:  # in which order features come must not count
            rivals.drop(held, block, block * rivals.WIDTH + held.heads[block, rivals.SIZE] - 1)
        weights = forest.nodes.weights
        forest.slack.floor[node] = floors.left_without(forest.criterion, weights, node, int64(0), int64(0))


@inlined
def _note_bands(forest: Forest, node: int, row: int, label: int, change: int) -> None:
    """Keep what is counted in bands true."""
    known = forest.slack
    for at in range(columns.size_of(known.columns, node) if known.bands.of.size > 0 else int64(0)):
        held = bands.row_of(known.bands, node, at)
        if held != NONE:
            value = value_of(examples_of(forest), row, known.columns.features[node, at])
            bands.note(forest.criterion, known.bands, held, value, label, change)


@apart
def _run_clocks(
    known: NoSlack,
    forest: Forest,
    rules: Rules,
    segment: Segment,
    tree: int,
    row: int,
    change: int,
    event: int,
    out: Out,
) -> None:
    """Count an edit on the way of an example, as far as the first node that is due, and rebuild there.

    Where a rebuild is more than an event may do it is begun, or waits for the one that is under way.
    """
    weight = abs(change)
    going = parts.going(forest, rules, tree)
    node = forest.trees[tree, ROOT]
    while node != going:
        epsilon.note(forest, node, weight)
        if epsilon.is_due(forest, rules.epsilon, node):
            top = epsilon.supertree(forest, node)
            if not parts.is_on_the_way(forest, top, going):
                if parts.work_of(forest, rules, segment, tree, top) > 0:
                    renew(forest, rules, segment, tree, top, event, out)
                    return
                if parts.is_idle(forest, tree):
                    parts.begin(forest.aside, forest.nodes, forest.trees, tree, top)
                    return
        if forest.nodes.links[node, FEATURE] == NONE:
            return
        node = child_of(forest, node, value_at(forest, row, node))


@apart
def _close(
    known: Slack,
    forest: Forest,
    rules: Rules,
    segment: Segment,
    tree: int,
    row: int,
    change: int,
    event: int,
    out: Out,
) -> None:
    """Let the highest node on the way of an example wait one of whose sides a delete has left empty.

    It is a leaf at once: a node that splits on what nobody has would keep its name.
    """
    if change > 0:
        return
    links = forest.nodes.links
    node = forest.trees[tree, ROOT]
    while links[node, FEATURE] != NONE:
        child = child_of(forest, node, value_at(forest, row, node))
        if links[child, EXAMPLES] == 0:
            _fold(forest, segment, tree, node, out)
            return
        node = child


@jit
def _fold(forest: Forest, segment: Segment, tree: int, top: int, out: Out) -> None:
    """Put a leaf that waits for a look in the place of a subtree. O(its nodes and examples)."""
    parent, side, depth = stand_of(forest, top)
    number = forest.nodes.links[top, nodes.NUMBER]
    gather(forest, segment, top)
    held = segment.sizes[HELD]
    for i in range(held):
        take_label(segment, examples_of(forest), i)
        segment.order[i] = i
    discard(forest, top)
    leaf = wait(
        forest.criterion,
        forest.nodes,
        forest.slack,
        segment,
        examples_of(forest),
        parent,
        side,
        depth,
        number,
        int64(0),
        held,
    )
    if parent == NONE:
        forest.trees[tree, ROOT] = leaf
    segment.sizes[HELD] = 0
    out.told[0] |= CHANGED


# --- by the clock or with floors


@inlined
def _note_nothing(known: NoSlack, forest: Forest, node: int, row: int, label: int, weight: int, sign: int) -> None:
    pass


@inlined
def _note_no_value(known: NoSlack, node: int, feature: int, value: float, sign: int) -> None:
    pass


@inlined
def _note_at_no_leaf(known: NoSlack, node: int, examples: Examples, row: int, other: int) -> None:
    pass


_note = dispatch("Keep what is known of a node true.", {NoSlack: _note_nothing, Slack: _note_edit})
_note_value = dispatch("See `exact.note_value`.", {NoSlack: _note_no_value, Slack: exact.note_value})
_note_at_leaf = dispatch("See `exact.note_at_leaf`.", {NoSlack: _note_at_no_leaf, Slack: exact.note_at_leaf})
_judge = dispatch(
    "Rebuild what an edit, a change of weight on the way of an example, has made due.",
    {NoSlack: _run_clocks, Slack: _close},
)


# --- rebuilding


@jit
def renew(forest: Forest, rules: Rules, segment: Segment, tree: int, top: int, event: int, out: Out) -> None:
    """Put the tree that BUILD makes of a subtree's examples, which are gathered, in its place: lines 10 and 11."""
    parent, side, depth = stand_of(forest, top)
    was_leaf = forest.nodes.links[top, FEATURE] == NONE
    _hand_on(forest.slack, segment, top)
    discard(forest, top)
    top = begin(forest, rules, segment, tree, parent, side, depth)
    _tell(forest, top, was_leaf, event, out)


@jit
def replace(
    forest: Forest,
    rules: Rules,
    segment: Segment,
    tree: int,
    top: int,
    choice: Choice,
    route: Route,
    event: int,
    out: Out,
) -> int:
    """Do as `renew`, on a way, where the examples are laid out and the split is chosen; return the new top."""
    links = forest.nodes.links
    parent, side, depth = stand_of(forest, top)
    was_leaf = links[top, FEATURE] == NONE
    number = links[top, nodes.NUMBER]
    _hand_on(forest.slack, segment, top)
    discard(forest, top)
    forest.trees[tree, REBUILDS] += 1
    forest.trees[tree, REBUILT] += segment.sizes[HELD]
    top, _ = grow(
        forest.criterion,
        forest.nodes,
        forest.slack,
        segment,
        examples_of(forest),
        forest.words,
        forest.names,
        rules.terms,
        parent,
        side,
        depth,
        number,
        choice,
        int64(1),
        route,
    )
    if parent == NONE:
        forest.trees[tree, ROOT] = top
    _tell(forest, top, was_leaf, event, out)
    return top


@inlined
def _hand_on_nothing(known: NoSlack, segment: Segment, top: int) -> None:
    pass


@inlined
def _hand_on_index(known: Slack, segment: Segment, top: int) -> None:
    segment.sizes[HANDED] = indexes.take(known.indexes, top)


_hand_on = dispatch(
    "Leave the index of a node that goes to the one that comes: it has the same examples.",
    {NoSlack: _hand_on_nothing, Slack: _hand_on_index},
)


@inlined
def _tell(forest: Forest, top: int, was_leaf: bool, event: int, out: Out) -> None:
    """Note how many examples a rebuild took in, and whether the tree may have changed by it."""
    out.rebuilt[event] += forest.nodes.links[top, EXAMPLES]
    if not was_leaf or forest.nodes.links[top, FEATURE] != NONE:
        out.told[0] |= CHANGED


@jit
def begin(forest: Forest, rules: Rules, segment: Segment, tree: int, parent: int, side: int, depth: int) -> int:
    """Build the tree of the examples in a segment, below a parent or as the root; return its top."""
    forest.trees[tree, REBUILDS] += 1
    forest.trees[tree, REBUILT] += segment.sizes[HELD]
    top = put_below(forest, rules, segment, tree, parent, side, depth)
    if parent == NONE:
        forest.trees[tree, ROOT] = top
    return top
