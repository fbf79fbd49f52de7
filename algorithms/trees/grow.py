"""The loop that grows trees.

::

    route -> predict (where asked) -> count -> adapt (hat) -> is an attempt due? -> rank -> split or wait

Events are applied strictly in order, so a batch of 1 and a batch of 1000 give the same trees. A refused event
changes nothing. Where the arrays would not hold the next event or split the kernel stops before it, the pool
enlarges them and the kernel goes on.
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
    INSERT,
    PREDICT,
    SKIPPED,
    TEST_THEN_TRAIN,
    TOLD,
    TOO_MANY_KEYS,
    Batch,
)
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.jit import inlined, jit
from algorithms.core.kinds import BINARY, NOMINAL, NUMERIC, QUANTISED
from algorithms.core.names import refer, release
from algorithms.core.rows import COUNT, NEXT, NONE
from algorithms.trees import gaussians, nodes, observers, policies
from algorithms.trees.bounds import margin
from algorithms.trees.gain import impurity
from algorithms.trees.leaves import begin_leaf, count, forget, free_all, free_below
from algorithms.trees.nodes import (
    ASLEEP,
    BESIDE,
    DEPTH,
    FEATURE,
    KIND,
    NUMBER,
    PRIOR,
    RIPE,
    SEEN,
    THRESHOLD,
    TREE,
    WEIGHT,
    is_pure,
)
from algorithms.trees.observers import PART
from algorithms.trees.policies import alternates
from algorithms.trees.predict import keep_score, loss_of, predict
from algorithms.trees.ranking import is_sure, rank
from algorithms.trees.refusals import refusal
from algorithms.trees.routing import descend, next_on_way
from algorithms.trees.state import (
    ATTEMPTS,
    EVENTS,
    LATER,
    LEARNED,
    LEAVES,
    PERIOD,
    SHORT,
    SNAPSHOT_DUE,
    SPLIT_MADE,
    SPLITS,
    TREE_COLUMNS,
    WAITED,
    Choice,
    Forest,
    Out,
    Rules,
)

# What must be enlarged before the kernel can go on, beside `DONE` and `TOLD`.
NODES, FEATURES, VALUES, GAUSSIANS, POLICY = range(2, 7)


@inlined
def _insert(forest: Forest, rules: Rules, batch: Batch, event: int, out: Out, is_asked: bool) -> int:
    """Predict an example where that is wanted, then learn it; where it `is_asked`, tell the shares as well."""
    tree = int64(batch.key[event])
    weight = batch.weight[event]
    label = int64(batch.label[event])
    status = refusal(weight, label, rules.classes)
    if status != APPLIED:
        return status
    root = nodes.root_of(forest.nodes, tree)
    leaf = root
    lacking = int64(NONE)
    # What a tree has learned bounds all its sums: a node saw some of its examples, PRIOR is what others weighed.
    if weight >= MAX_TOTAL - forest.trees[tree, LEARNED]:
        return COUNT_OVERFLOW
    if root == NONE:
        if forest.alive[0] >= rules.max_keys:
            return TOO_MANY_KEYS
    else:
        leaf, lacking = descend(forest.nodes, batch, event, root)
    is_tested = rules.evaluated or is_asked
    if is_tested:
        out.predicted[event] = predict(
            forest.nodes, forest.features, rules, batch, event, leaf, lacking != NONE, out
        )
        out.loss[event] = loss_of(out.weights, label)
    if is_asked:
        _tell(forest, rules, leaf, out)
    if root == NONE:
        leaf = begin_leaf(forest, tree, int64(nodes.ROOTS), tree)
        forest.alive[0] += 1
    elif lacking != NONE:
        leaf = begin_leaf(forest, tree, leaf, lacking)
    predicted = int64(out.predicted[event])
    keep_score(forest.nodes, forest.features, rules, batch, event, leaf, is_tested, predicted, out)
    out.node[event] = leaf
    if rules.keeps and root != NONE:
        out.node[event] = root
        while root != leaf:
            count(forest, rules, batch, event, root)
            root = next_on_way(forest.nodes, batch, event, root)
    count(forest, rules, batch, event, leaf)
    forest.trees[tree, EVENTS] += 1
    forest.trees[tree, LEARNED] += weight
    alternates.adapt(forest.policy, forest, rules, batch, event, out)
    return APPLIED


@jit
def _answer(forest: Forest, rules: Rules, batch: Batch, event: int, out: Out) -> None:
    """Answer a prediction; no state is touched."""
    node = nodes.root_of(forest.nodes, int64(batch.key[event]))
    lacking = int64(NONE)
    if node != NONE:
        node, lacking = descend(forest.nodes, batch, event, node)
    out.predicted[event] = predict(forest.nodes, forest.features, rules, batch, event, node, lacking != NONE, out)
    _tell(forest, rules, node, out)


@inlined
def _tell(forest: Forest, rules: Rules, node: int, out: Out) -> None:
    """Tell the next answer: the number of the node that gave it, and the class weights, which are in `out`."""
    out.leaf[out.counts[0]] = forest.nodes.links[node, NUMBER] if node != NONE else 0
    for k in range(rules.classes):
        out.shares[out.counts[0], k] = out.weights[k]
    out.counts[0] += 1


@jit
def _drop(forest: Forest, tree: int) -> None:
    """Forget a tree."""
    root = nodes.root_of(forest.nodes, tree)
    if root == NONE:
        return
    top = nodes.alternate_of(forest.nodes, root)
    if top != NONE:
        free_all(forest, top)
    free_all(forest, root)
    forest.alive[0] -= 1
    for column in range(TREE_COLUMNS):
        forest.trees[tree, column] = 0


@jit
def _branches(forest: Forest, choice: Choice, kind: int) -> int:
    """Return how many branches a choice has at most."""
    if kind != NOMINAL:
        return int64(2)
    branches = int64(1)
    value = forest.features.about[choice.row, PART]
    while value != NONE:
        branches += 1
        value = forest.features.values.cells[value, NEXT]
    return branches


@jit
def _split(forest: Forest, rules: Rules, leaf: int, choice: Choice, feature: int, kind: int) -> None:
    """Make a leaf an inner node, with a leaf for each branch that has weight; an inner node loses all below it."""
    classes = forest.nodes.prior.shape[1]
    cells = forest.nodes.rows.cells
    prior = forest.nodes.prior
    links = forest.nodes.links
    tree = links[leaf, TREE]
    part = 1 - links[leaf, BESIDE]  # of the tree
    if links[leaf, FEATURE] != NONE:
        free_below(forest, leaf)
        release(forest.names, links[leaf, FEATURE])
    else:
        forest.trees[tree, LEAVES] -= part
    if kind != NOMINAL:
        low = begin_leaf(forest, tree, leaf, int64(0))
        high = begin_leaf(forest, tree, leaf, int64(1))
        for k in range(classes):
            above = policies.weight_above(forest.policy, forest, leaf, choice.row, choice.threshold, k)
            prior[high, k] = above
            prior[low, k] = cells[leaf, COUNT + k] - above
            links[high, PRIOR] += above
            links[low, PRIOR] += cells[leaf, COUNT + k] - above
    else:
        absent = links[leaf, WEIGHT]
        for k in range(classes):
            absent -= forest.features.rows.cells[choice.row, COUNT + k]
        if absent > 0:
            low = begin_leaf(forest, tree, leaf, int64(0))
            for k in range(classes):
                prior[low, k] = cells[leaf, COUNT + k] - forest.features.rows.cells[choice.row, COUNT + k]
            links[low, PRIOR] = absent
        value = forest.features.about[choice.row, PART]
        while value != NONE:
            child = begin_leaf(forest, tree, leaf, rows.item_of(forest.features.values, value))
            for k in range(classes):
                prior[child, k] = forest.features.values.cells[value, COUNT + k]
                links[child, PRIOR] += prior[child, k]
            value = forest.features.values.cells[value, NEXT]
    refer(forest.names, feature)
    if rules.keeps:
        policies.end(forest.policy, forest, leaf)
    else:
        forget(forest, leaf)
    links[leaf, FEATURE] = feature
    links[leaf, KIND] = NUMERIC if kind == QUANTISED else kind
    forest.nodes.numbers[leaf, THRESHOLD] = choice.threshold
    forest.trees[tree, SPLITS] += part
    if rules.measured and links[leaf, RIPE] > 0:
        forest.trees[tree, WAITED] += (links[leaf, SEEN] - links[leaf, RIPE]) * part
        links[leaf, RIPE] = 0


@jit
def _write(forest: Forest, leaf: int, choice: Choice, out: Out) -> None:
    """Note what the tree will not tell any more of a split that is about to be made."""
    whole = impurity(forest.criterion, forest.nodes.rows, leaf)
    out.told[0] |= SPLIT_MADE
    out.scores[0] = choice.score
    out.scores[1] = min(choice.second, whole)  # EFDT's own split may divide nothing any more: its score is inf
    out.scores[2] = whole


@inlined
def _attempt(forest: Forest, rules: Rules, leaf: int, out: Out) -> int:
    """Split a leaf where its best split is sure enough; return what ran short, nothing being changed then."""
    choice = policies.seek(forest.policy, forest, rules, leaf)
    if choice.row == SHORT:
        return POLICY
    if choice.row == LATER:
        return DONE
    tree = forest.nodes.links[leaf, TREE]
    if choice.row != NONE and is_sure(forest.nodes, rules, leaf, choice.score, choice.second):
        kind = int64(BINARY) if rules.plain else forest.features.about[choice.row, observers.KIND]
        if rows.room(forest.nodes.rows) < _branches(forest, choice, kind):
            return NODES
        feature = policies.feature_at(forest.policy, forest, choice.row)
        if not forest.nodes.links[leaf, BESIDE]:
            _write(forest, leaf, choice, out)
        _split(forest, rules, leaf, choice, feature, kind)
    else:
        policies.failed(forest.policy, forest, rules, leaf, choice)
        if rules.drop_poor:
            observers.drop_poor(forest.features, forest.nodes, leaf, margin(forest.nodes, rules, leaf, 0))
    forest.trees[tree, ATTEMPTS] += 1
    return DONE


@jit
def _depth(forest: Forest, batch: Batch, event: int) -> int:
    """Return how many nodes an example passes, one that it may lack included."""
    node = nodes.root_of(forest.nodes, int64(batch.key[event]))
    if node == NONE:
        return int64(1)
    node, _ = descend(forest.nodes, batch, event, node)
    return forest.nodes.links[node, DEPTH] + 2


@inlined
def _is_due(forest: Forest, rules: Rules, batch: Batch, event: int, node: int) -> bool:
    """Return whether a node shall try to split now."""
    links = forest.nodes.links
    return (
        links[node, DEPTH] < rules.max_depth
        and links[node, ASLEEP] == 0
        and policies.due(forest.policy, forest, rules, batch, event, node)
        and not is_pure(forest.nodes, node)
    )


@jit
def _note_ripe(forest: Forest, rules: Rules, node: int) -> None:
    """Note whether a leaf could split now, which costs as much as an attempt and changes nothing else."""
    links = forest.nodes.links
    if links[node, RIPE] > 0 or not nodes.is_leaf(forest.nodes, node) or is_pure(forest.nodes, node):
        return
    choice = rank(forest.nodes, forest.features, forest.names, forest.criterion, node, False)
    if choice.row != NONE and is_sure(forest.nodes, rules, node, choice.score, choice.second):
        links[node, RIPE] = links[node, SEEN]


@jit
def _try_to_split(forest: Forest, rules: Rules, batch: Batch, event: int, out: Out, due: bool) -> int:
    """Let the nodes that learned an example try to split, from `out.node` on; return what ran short.

    `due` says that the first of them was found due before.
    """
    while True:
        node = out.node[event]
        if rules.measured:
            _note_ripe(forest, rules, node)
        if due or _is_due(forest, rules, batch, event, node):
            short = _attempt(forest, rules, node, out)
            if short != DONE:
                return short
        due = False
        if out.told[0] & SPLIT_MADE:
            return DONE
        following = alternates.next_learner(forest.policy, forest, batch, event, node)
        if following == NONE:
            return DONE
        out.node[event] = following


@inlined
def _shortage(forest: Forest, rules: Rules, batch: Batch, event: int) -> int:
    """Return what must be enlarged before an event can be applied, DONE where all is there."""
    if batch.op[event] not in (INSERT, TEST_THEN_TRAIN):
        return DONE
    ones = batch.pointer[event + 1] - batch.pointer[event]
    learners = int64(1)
    if rules.keeps or rules.adapts:
        learners = _depth(forest, batch, event)
    ones *= learners
    if rows.room(forest.nodes.rows) < learners:
        return NODES
    if rules.counted and rows.room(forest.features.rows) < ones:
        return FEATURES
    if not rules.plain and rows.room(forest.features.values) < ones:
        return VALUES
    if not rules.plain and gaussians.room(forest.features.gaussians) < ones:
        return GAUSSIANS
    return DONE if policies.ready(forest.policy, ones, learners) else POLICY


@inlined
def _note_snapshot(forest: Forest, rules: Rules, batch: Batch, event: int, out: Out) -> None:
    """Note whether a snapshot is due after an example that was learned."""
    tree = int64(batch.key[event])
    when, argument, time = rules.snapshot_when, rules.snapshot_argument, batch.time[event]
    period = forest.trees[tree, PERIOD] - 1
    if is_due(when, argument, forest.trees[tree, EVENTS], time, period) or (when == CHANGE and out.told[0]):
        out.told[0] |= SNAPSHOT_DUE
    forest.trees[tree, PERIOD] = next_period(when, argument, time, period) + 1


@jit
def apply(
    forest: Forest, rules: Rules, batch: Batch, out: Out, event: int, attempt: bool
) -> tuple[int, bool, int]:
    """Apply events from `event` on; `attempt` says that this one is learned and `out.node` is to try to split.

    Returns where it stopped, whether that event is learned, and why: TOLD where the event before is to be told of.
    """
    while event < batch.key.size:
        op = batch.op[event]
        learned = attempt
        if not attempt:
            out.told[0] = 0
            short = _shortage(forest, rules, batch, event)
            if short != DONE:
                return event, False, short
            status = APPLIED
            if op in (INSERT, TEST_THEN_TRAIN):
                status = _insert(forest, rules, batch, event, out, op == TEST_THEN_TRAIN)
                learned = status == APPLIED
            elif op == PREDICT:
                _answer(forest, rules, batch, event, out)
            elif op == DROP:
                _drop(forest, int64(batch.key[event]))
            else:
                status = CANNOT_FORGET if op == DELETE else SKIPPED
            out.status[event] = status
        if learned:
            short = _try_to_split(forest, rules, batch, event, out, attempt)
            if short != DONE:
                return event, True, short
            _note_snapshot(forest, rules, batch, event, out)
            if out.told[0]:
                return event + 1, False, TOLD
        attempt = False
        event += 1
    return event, False, DONE
