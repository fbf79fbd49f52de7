"""The loop that grows regression trees.

::

    route -> predict -> count -> is an attempt due? -> rank -> split or wait

Events are applied strictly in order, so a batch of 1 and a batch of 1000 give the same trees. A refused event
changes nothing. Where the arrays would not hold the next event the kernel stops before it, the pool enlarges them
and the kernel goes on.
"""

from __future__ import annotations

from algorithms.core import rows
from algorithms.core.arrays import int64
from algorithms.core.cadence import CHANGE, is_due, next_period
from algorithms.core.events import (
    APPLIED,
    CANNOT_FORGET,
    COUNT_OVERFLOW,
    DELETE,
    DONE,
    DROP,
    IGNORED,
    INSERT,
    PREDICT,
    SKIPPED,
    TOLD,
    TOO_MANY_KEYS,
    WRONG_WEIGHT,
    Batch,
)
from algorithms.core.fixed_point import MAX_TOTAL, PER_UNIT
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import NOMINAL
from algorithms.core.names import refer
from algorithms.core.rows import NONE
from algorithms.regression import elements as storage
from algorithms.regression import intervals, linear
from algorithms.regression.attempt import Choice, is_sure, rank
from algorithms.regression.elements import FIRST as FIRST_ELEMENT
from algorithms.regression.elements import NEXT, SIZE
from algorithms.regression.leaves import begin, count, forget, free_all, known_of, mean_of, retire
from algorithms.regression.linear import MEAN_ALONE, Said
from algorithms.regression.moments import Moments, nothing
from algorithms.regression.state import FIRST_LABEL, SQUARES, Forest, Out, Rules
from algorithms.trees import nodes
from algorithms.trees.nodes import ASLEEP, DEPTH, FEATURE, KIND, NUMBER, SEEN, THRESHOLD, TREE
from algorithms.trees.routing import descend
from algorithms.trees.state import (
    ATTEMPTS,
    EVENTS,
    LEARNED,
    LEAVES,
    PERIOD,
    SNAPSHOT_DUE,
    SPLIT_MADE,
    SPLITS,
    TREE_COLUMNS,
)

# What must be enlarged before the kernel can go on, beside `DONE` and `TOLD`.
NODES, FEATURES, ELEMENTS, MEMORY = range(2, 6)


@inlined
def _look(forest: Forest, rules: Rules, batch: Batch, event: int, leaf: int) -> Said:
    """Return what the model of a leaf says of an example, nothing where it has none."""
    return linear.look(forest, batch, event, leaf) if linear.speaks(forest, rules, leaf) else Said(0.0, 0.0)


@jit
def _begin_below(forest: Forest, rules: Rules, node: int, branch: int, said: Moments) -> int:
    """Return a new leaf below a node, of which a split said this. Model and residuals it takes over from there."""
    leaf = begin(forest, forest.nodes.links[node, TREE], node, branch, said)
    if rules.interval > 0.0:
        intervals.inherit(forest, leaf, node)
    if rules.predict != MEAN_ALONE:
        linear.inherit(forest, leaf, node)
    return leaf


@jit
def _insert(forest: Forest, rules: Rules, batch: Batch, event: int, out: Out) -> int:
    """Predict an example, then learn it."""
    tree = int64(batch.key[event])
    weight = batch.weight[event]
    if weight < 0:
        return WRONG_WEIGHT
    if weight == 0:
        return IGNORED
    if weight >= MAX_TOTAL - forest.trees[tree, LEARNED]:
        return COUNT_OVERFLOW
    leaf = nodes.root_of(forest.nodes, tree)
    if leaf == NONE:
        if forest.alive[0] >= rules.max_keys:
            return TOO_MANY_KEYS
        leaf = begin(forest, tree, int64(nodes.ROOTS), tree, nothing())
        forest.alive[0] += 1
        if rules.predict != MEAN_ALONE:
            linear.begin(forest, leaf, batch.label[event])
        if rules.interval > 0.0:
            intervals.begin(forest, rules, tree, leaf)
        said = _look(forest, rules, batch, event, leaf)
    else:
        leaf, lacking = descend(forest.nodes, batch, event, leaf)
        mean = mean_of(forest, leaf)
        out.leaf[event] = forest.nodes.links[leaf, NUMBER]
        if lacking != NONE:  # a category that the node above has not seen: its leaf knows what that knows
            leaf = _begin_below(forest, rules, leaf, lacking, nothing())
        said = _look(forest, rules, batch, event, leaf)
        predicted = linear.chosen(forest, rules, leaf, mean, said)
        out.predicted[event] = predicted
        if rules.interval > 0.0:
            margin = intervals.margin_of(forest, tree, leaf)
            out.margin[event] = margin
            intervals.learn(forest, rules, tree, leaf, abs(batch.label[event] - predicted), margin)
        if linear.speaks(forest, rules, leaf):
            linear.judge(forest, leaf, batch.label[event], mean, said)
    out.node[event] = leaf
    count(forest, rules, batch, event, leaf, said)
    forest.trees[tree, EVENTS] += 1
    forest.trees[tree, LEARNED] += weight
    return APPLIED


@jit
def _answer(forest: Forest, rules: Rules, batch: Batch, event: int, out: Out) -> None:
    """Answer a prediction; no state is touched."""
    node = nodes.root_of(forest.nodes, int64(batch.key[event]))
    if node != NONE:
        node, _ = descend(forest.nodes, batch, event, node)
        known = known_of(forest, node)
        said = _look(forest, rules, batch, event, node)
        out.predicted[event] = linear.chosen(forest, rules, node, mean_of(forest, node), said)
        out.leaf[event] = forest.nodes.links[node, NUMBER]
        if rules.interval > 0.0:
            out.margin[event] = intervals.margin_of(forest, int64(batch.key[event]), node)
        out.known[event, 0] = known.weight * PER_UNIT
        out.known[event, 1] = known.squares


@jit
def _drop(forest: Forest, tree: int) -> None:
    """Forget a tree."""
    root = nodes.root_of(forest.nodes, tree)
    if root == NONE:
        return
    free_all(forest, root)
    forest.alive[0] -= 1
    for column in range(TREE_COLUMNS):
        forest.trees[tree, column] = 0
    for column in range(forest.intervals.trees.shape[1]):
        forest.intervals.trees[tree, column] = 0.0


@jit
def _branches(forest: Forest, row: int) -> int:
    """Return how many branches a split on the feature of a row has at most."""
    return forest.elements.heads[row, SIZE] + 1 if forest.features.kind[row] == NOMINAL else int64(2)


@jit
def _split(forest: Forest, rules: Rules, leaf: int, choice: Choice) -> None:
    """Make a leaf an inner node with leaves, which predict what the split says until they know better."""
    links = forest.nodes.links
    first = forest.targets.numbers[leaf, FIRST_LABEL]
    low, high = choice.cut.low, choice.cut.high
    feature = rows.item_of(forest.features.rows, choice.row)
    kind = forest.features.kind[choice.row]
    if kind != NOMINAL or low.weight > 0:
        _begin_below(forest, rules, leaf, int64(0), Moments(low.weight, first + low.mean, low.squares))
    if kind != NOMINAL:
        _begin_below(forest, rules, leaf, int64(1), Moments(high.weight, first + high.mean, high.squares))
    else:
        element = forest.elements.heads[choice.row, FIRST_ELEMENT]
        while element != NONE:
            seen = storage.moments_of(forest.elements, element)
            said = Moments(seen.weight, first + seen.mean, seen.squares)
            _begin_below(forest, rules, leaf, forest.elements.key[element], said)
            element = forest.elements.links[element, NEXT]
    refer(forest.names, feature)
    if rules.predict != MEAN_ALONE:
        retire(forest, leaf)
    else:
        forget(forest, leaf)
    links[leaf, FEATURE] = feature
    links[leaf, KIND] = kind
    forest.nodes.numbers[leaf, THRESHOLD] = choice.cut.threshold
    forest.trees[links[leaf, TREE], LEAVES] -= 1
    forest.trees[links[leaf, TREE], SPLITS] += 1


@inlined
def _is_due(forest: Forest, rules: Rules, leaf: int) -> bool:
    """Return whether a leaf shall try to split now: not where all labels are the same, or where it sleeps."""
    seen = forest.nodes.links[leaf, SEEN]
    if seen - forest.targets.tried[leaf] < rules.grace_period or forest.nodes.links[leaf, ASLEEP] == 1:
        return False
    forest.targets.tried[leaf] = seen
    return forest.nodes.links[leaf, DEPTH] < rules.max_depth and forest.targets.numbers[leaf, SQUARES] > 0.0


@jit
def _attempt(forest: Forest, rules: Rules, leaf: int, out: Out) -> int:
    """Split a leaf where its best split is sure enough; return what ran short, nothing being changed then."""
    choice = rank(forest, leaf)
    if is_sure(forest, rules, leaf, choice):
        if rows.room(forest.nodes.rows) < _branches(forest, choice.row):
            return NODES
        out.scores[0] = choice.cut.merit
        out.scores[1] = choice.second
        out.told[0] |= SPLIT_MADE
        _split(forest, rules, leaf, choice)
    forest.trees[forest.nodes.links[leaf, TREE], ATTEMPTS] += 1
    return DONE


@jit
def _note_snapshot(forest: Forest, rules: Rules, batch: Batch, event: int, out: Out) -> None:
    """Note whether a snapshot is due after an example that was learned."""
    tree, time = int64(batch.key[event]), batch.time[event]
    when, argument = rules.snapshot_when, rules.snapshot_argument
    period = forest.trees[tree, PERIOD] - 1
    if is_due(when, argument, forest.trees[tree, EVENTS], time, period) or (when == CHANGE and out.told[0]):
        out.told[0] |= SNAPSHOT_DUE
    forest.trees[tree, PERIOD] = next_period(when, argument, time, period) + 1


@inlined
def _shortage(forest: Forest, rules: Rules, batch: Batch, event: int) -> int:
    """Return what must be enlarged before an event can be applied, DONE where all is there."""
    if batch.op[event] != INSERT:
        return DONE
    ones = batch.pointer[event + 1] - batch.pointer[event]
    features, elements = forest.features.rows.used[rows.USED], forest.elements.used[storage.USED]
    # Not the room of arrays: that tells how they grew.
    if features + ones > max(rules.most_features, 2 * ones) or elements + ones > max(
        rules.most_elements, 2 * ones
    ):
        return MEMORY
    if rows.room(forest.nodes.rows) < 3:  # a root or the leaf of a new category, and those of a split in two
        return NODES
    if rows.room(forest.features.rows) < ones:
        return FEATURES
    return ELEMENTS if storage.room(forest.elements) < ones else DONE


@jit
def apply(
    forest: Forest, rules: Rules, batch: Batch, out: Out, event: int, attempt: bool
) -> tuple[int, bool, int]:
    """Apply events from `event` on; `attempt` says that this one is learned and its leaf is to try to split.

    Returns where it stopped, whether that event is learned, and why: TOLD where the event before is to be told of.
    """
    while event < batch.key.size:
        op = batch.op[event]
        learned = attempt
        if not attempt:
            short = _shortage(forest, rules, batch, event)
            if short != DONE:
                return event, False, short
            status = APPLIED
            out.told[0] = 0
            if op == INSERT:
                status = _insert(forest, rules, batch, event, out)
                learned = status == APPLIED
                attempt = learned and _is_due(forest, rules, out.node[event])
            elif op == PREDICT:
                _answer(forest, rules, batch, event, out)
            elif op == DROP:
                _drop(forest, int64(batch.key[event]))
            else:
                status = CANNOT_FORGET if op == DELETE else SKIPPED
            out.status[event] = status
        if attempt:
            short = _attempt(forest, rules, out.node[event], out)
            if short != DONE:
                return event, True, short
            attempt = False
        if learned:
            _note_snapshot(forest, rules, batch, event, out)
        event += 1
        if out.told[0]:
            return event, False, TOLD
    return event, False, DONE
