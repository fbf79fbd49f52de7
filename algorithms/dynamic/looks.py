"""Looks: where floors are kept, what a record looks through is made what the policy promises.

::

    root stands? -> child stands? -> no: scan it -> it keeps its split, or BUILD -> child, .. -> leaf

Nodes that no record looks through wait, however many edits they have seen. As a floor stays true whatever comes, a
node is judged when it is looked at, and not before: what closes and opens again between two looks costs nothing.
"""

from __future__ import annotations

import math

from algorithms.core.arrays import Float64s, UInt32s, int64
from algorithms.core.class_sums import impurity, noise, score
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.jit import apart, dispatch, inlined, jit
from algorithms.core.names import precedes
from algorithms.dynamic import beta, exact, indexes, rivals, vocabulary
from algorithms.dynamic.build import is_done, settle, wanted
from algorithms.dynamic.examples import side_of, value_in
from algorithms.dynamic.nodes import DEPTH, FEATURE, HIGH, KIND, LOW, NONE, PARENT
from algorithms.dynamic.segment import HELD, TOUCHED, Segment, clear, lay_out
from algorithms.dynamic.slack import BLOCK, INDEXED, IS_KNOWN, NoSlack, Slack
from algorithms.dynamic.splitter import NO_SPLIT, Choice, best_split, forget
from algorithms.dynamic.state import CHANGED, ROOT, Forest, Out, Rules, examples_of
from algorithms.dynamic.subtrees import gather
from algorithms.dynamic.terms import EXACT
from algorithms.dynamic.update import replace

_NOT_KNOWN = -2  # in the place of a feature: it takes a search to tell


@apart
def _look(
    known: Slack,
    forest: Forest,
    rules: Rules,
    segment: Segment,
    tree: int,
    features: UInt32s,
    values: Float64s,
    start: int,
    stop: int,
    event: int,
    out: Out,
) -> None:
    links = forest.nodes.links
    node = _renewed(forest, rules, segment, tree, forest.trees[tree, ROOT], event, out)
    while links[node, FEATURE] != NONE:
        value = value_in(features, values, start, stop, links[node, FEATURE])
        child = links[node, LOW + side_of(links[node, KIND], forest.nodes.threshold[node], value)]
        node = _renewed(forest, rules, segment, tree, child, event, out)


@apart
def _look_at_all(
    known: Slack, forest: Forest, rules: Rules, segment: Segment, tree: int, event: int, out: Out
) -> None:
    node = forest.trees[tree, ROOT] if tree != NONE else int64(NONE)
    while node != NONE:
        node = _next(forest, _renewed(forest, rules, segment, tree, node, event, out))


@inlined
def _no_look(
    known: NoSlack,
    forest: Forest,
    rules: Rules,
    segment: Segment,
    tree: int,
    features: UInt32s,
    values: Float64s,
    start: int,
    stop: int,
    event: int,
    out: Out,
) -> None:
    pass


@inlined
def _no_look_at_all(
    known: NoSlack, forest: Forest, rules: Rules, segment: Segment, tree: int, event: int, out: Out
) -> None:
    pass


look = dispatch(
    "Look through the nodes on the way of an example, whose features are entries start to stop.",
    {NoSlack: _no_look, Slack: _look},
)
look_at_all = dispatch(
    "Look through all nodes of a tree. O(nodes), and what is scanned and rebuilt.",
    {NoSlack: _no_look_at_all, Slack: _look_at_all},
)


@apart
def _is_current(known: Slack, forest: Forest, rules: Rules, segment: Segment, tree: int) -> bool:
    node = forest.trees[tree, ROOT] if tree != NONE else int64(NONE)
    while node != NONE:
        if not _stands(forest, rules, segment, node, False):
            return False
        node = _next(forest, node)
    return True


@inlined
def _is_always(known: NoSlack, forest: Forest, rules: Rules, segment: Segment, tree: int) -> bool:
    return True


is_current = dispatch(
    "Return whether `look_at_all` would surely leave a tree as it is; nothing is changed. O(nodes).",
    {NoSlack: _is_always, Slack: _is_current},
)


@inlined
def _next(forest: Forest, node: int) -> int:
    """Return the node after this in preorder, NONE after the last."""
    links = forest.nodes.links
    if links[node, FEATURE] != NONE:
        return links[node, LOW]
    while links[node, PARENT] != NONE and links[links[node, PARENT], HIGH] == node:
        node = links[node, PARENT]
    return links[links[node, PARENT], HIGH] if links[node, PARENT] != NONE else int64(NONE)


@jit
def _stands(forest: Forest, rules: Rules, segment: Segment, node: int, may_search: bool) -> bool:
    """Return whether a node surely is what the policy promises, as its floor, rivals and index tell.

    Unless an index `may_search`, nothing is changed.
    """
    known, links = forest.slack, forest.nodes.links
    if known.counts[node, IS_KNOWN] == 1:
        return True
    is_leaf = links[node, FEATURE] == NONE
    if is_done(forest.criterion, forest.nodes, segment, rules.terms, node, links[node, DEPTH]):
        return bool(is_leaf)
    if rules.terms.policy == EXACT and is_leaf:
        return exact.leaf_stands(known, node)
    own, whole, weight = _scores(forest, segment, node)
    error = noise(weight, segment.totals.size)
    rival, score_of_it = int64(NONE), math.inf
    if known.counts[node, BLOCK] == INDEXED:
        rival, score_of_it = _best_binary(forest, segment, node, may_search)
        if rival == _NOT_KNOWN:
            return False
        if rival == links[node, FEATURE]:
            rival, score_of_it = int64(NONE), math.inf
    else:
        rival, score_of_it = _best_rival(forest, segment, node)
    if rules.terms.policy == EXACT:
        is_ahead = rival == NONE or exact.is_ahead(forest.names, own, links[node, FEATURE], score_of_it, rival)
        return is_ahead and exact.stands(known, node, own, whole, error)
    floor = min(known.floor[node], score_of_it - error)
    return beta.stands(floor, own, rules.terms.beta * (weight * PER_UNIT), error)


@jit
def _best_binary(forest: Forest, segment: Segment, node: int, may_search: bool) -> tuple[int, float]:
    """Return the binary feature that scores least in a node, its own among them, and its score; NONE and inf.

    By the node's index, which is made where it lacks one; where there is no room for it, by counts.
    """
    held = forest.slack.indexes
    if held.of[node] > 0 and not may_search:
        slot = indexes.surely_best(held, forest.criterion, held.of[node] - 1)
        if slot == NONE:
            return int64(_NOT_KNOWN), math.inf
        return indexes.feature_of(held, slot), indexes.score_of(held, forest.criterion, held.of[node] - 1, slot)
    if not may_search:
        return int64(_NOT_KNOWN), math.inf
    if held.of[node] == 0:
        gather(forest, segment, node)
        lay_out(forest.criterion, segment, examples_of(forest), forest.words)
        held.of[node] = indexes.begin(held, segment, forest.words) + 1
        feature, least = _best_counted(forest, segment)
        forget(segment)
        clear(segment)
        return feature, least
    slot = indexes.best(held, forest.criterion, forest.names, held.of[node] - 1)
    if slot == NONE:
        return int64(NONE), math.inf
    return indexes.feature_of(held, slot), indexes.score_of(held, forest.criterion, held.of[node] - 1, slot)


@jit
def _best_counted(forest: Forest, segment: Segment) -> tuple[int, float]:
    """Return the binary feature that scores least, of those that a segment has counted; NONE and inf."""
    best, least = int64(NONE), math.inf
    for at in range(segment.sizes[TOUCHED]):
        column = segment.touched[at]
        if segment.numeric[column] == 1 or segment.present[column] == segment.sizes[HELD]:
            continue
        for k in range(segment.totals.size):
            segment.below[k] = segment.totals[k] - segment.counts[column, k]
        now = score(forest.criterion, segment.below, segment.totals)
        feature = vocabulary.feature_of(forest.words, column)
        if now < least or (now == least and precedes(forest.names, feature, best)):
            best, least = feature, now
    return best, least


@jit
def _best_rival(forest: Forest, segment: Segment, node: int) -> tuple[int, float]:
    """Return the feature of the rival that scores least, the lowest of equal ones, and its score; NONE and inf."""
    held = forest.slack.rivals
    block = forest.slack.counts[node, BLOCK] - 1
    best, least = int64(NONE), math.inf
    if block < 0:
        return best, least
    for at in range(block * rivals.WIDTH, block * rivals.WIDTH + held.heads[block, rivals.SIZE]):
        feature = held.cells[at, rivals.FEATURE]
        for k in range(segment.totals.size):
            segment.below[k] = held.cells[at, rivals.WEIGHTS + k]
        now = score(forest.criterion, segment.below, segment.totals)
        if now < least or (now == least and precedes(forest.names, feature, best)):
            best, least = feature, now
    return best, least


@inlined
def _scores(forest: Forest, segment: Segment, node: int) -> tuple[float, float, int]:
    """Return the score of what a node does, its impurity and weight; `totals` has its class weights."""
    links = forest.nodes.links
    whole = impurity(forest.criterion, segment.totals)
    weight = int64(0)
    for k in range(segment.totals.size):
        weight += segment.totals[k]
    own = whole
    if links[node, FEATURE] != NONE:
        for k in range(segment.totals.size):
            segment.below[k] = forest.nodes.weights[links[node, LOW], k]
        own = score(forest.criterion, segment.below, segment.totals)
    return own, whole, weight


@jit
def _renewed(forest: Forest, rules: Rules, segment: Segment, tree: int, node: int, event: int, out: Out) -> int:
    """Make a node what the policy promises; return the node that is in its place now."""
    if _stands(forest, rules, segment, node, True):
        return node
    links = forest.nodes.links
    gather(forest, segment, node)
    lay_out(forest.criterion, segment, examples_of(forest), forest.words)
    choice = NO_SPLIT
    if not is_done(forest.criterion, forest.nodes, segment, rules.terms, node, links[node, DEPTH]):
        held = segment.sizes[HELD]
        out.scanned[event] += held
        kept = wanted(forest.slack, segment, held)
        choice = best_split(
            forest.criterion,
            segment,
            forest.words,
            forest.names,
            int64(0),
            held,
            rules.terms.way,
            int64(0),
            rules.terms.drawn,
            rules.terms.salt,
            kept,
        )
        if _keeps(forest, rules, segment, node, choice):
            _keep(forest, rules, segment, node, choice, out)
            return node
    return replace(forest, rules, segment, tree, node, choice, event, out)


@jit
def _keeps(forest: Forest, rules: Rules, segment: Segment, node: int, choice: Choice) -> bool:
    """Return whether a node that was scanned stays, but for its threshold; `totals` has its class weights."""
    links = forest.nodes.links
    if choice.column == NONE or (links[node, FEATURE] == NONE and rules.terms.policy == EXACT):
        return bool(links[node, FEATURE] == choice.column)  # both are NONE: still no split parts the examples
    if rules.terms.policy == EXACT:
        is_same = links[node, FEATURE] == vocabulary.feature_of(forest.words, choice.column)
        return bool(
            is_same and exact.keeps(links[node, KIND], forest.nodes.threshold[node], choice.below, choice.above)
        )
    own, _, weight = _scores(forest, segment, node)
    most = rules.terms.beta * (weight * PER_UNIT)
    return beta.stands(choice.score, own, most, 2.0 * noise(weight, segment.totals.size))


@jit
def _keep(forest: Forest, rules: Rules, segment: Segment, node: int, choice: Choice, out: Out) -> None:
    """Note what the scan of a node has told that keeps its split."""
    own, _, _ = _scores(forest, segment, node)
    settle(
        forest.criterion,
        forest.nodes,
        forest.slack,
        segment,
        examples_of(forest),
        forest.words,
        rules.terms,
        node,
        int64(0),
        segment.sizes[HELD],
        choice,
        own,
    )
    if rules.terms.policy == EXACT and forest.nodes.threshold[node] != choice.threshold:
        forest.nodes.threshold[node] = choice.threshold
        out.told[0] |= CHANGED
    forget(segment)
    clear(segment)
