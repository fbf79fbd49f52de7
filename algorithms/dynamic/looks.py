"""Looks: where floors are kept, what a record looks through is made what the policy promises.

::

    root stands? -> child stands? -> no: scan it -> it keeps its split, or BUILD -> child, .. -> leaf

Nodes that no record looks through wait, however many edits they have seen. As a floor stays true whatever comes, a
node is judged when it is looked at, and not before: what closes and opens again between two looks costs nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from algorithms.core.arrays import int64
from algorithms.core.criteria import Criterion
from algorithms.core.jit import apart, dispatch, inlined, jit
from algorithms.core.kinds import BINARY
from algorithms.core.names import precedes
from algorithms.dynamic import bands, beta, columns, exact, floors, indexes, rivals, slack, thresholds, vocabulary
from algorithms.dynamic.build import is_done, settle, waits, wanted
from algorithms.dynamic.examples import Route, everywhere, side_of, value_on
from algorithms.dynamic.labels import by_target, score
from algorithms.dynamic.nodes import DEPTH, FEATURE, HIGH, KIND, LOW, NONE, PARENT
from algorithms.dynamic.segment import HELD, TOUCHED, Segment, clear, lay_out
from algorithms.dynamic.slack import ABOVE, AT_BELOW, BELOW, BLOCK, INDEXED, IS_KNOWN, NoSlack, Slack
from algorithms.dynamic.splitter import (
    NO_SPLIT,
    Choice,
    best_split,
    best_threshold,
    forget,
    sort_alone,
)
from algorithms.dynamic.state import CHANGED, ROOT, Forest, Out, Rules, examples_of
from algorithms.dynamic.subtrees import gather
from algorithms.dynamic.terms import EXACT
from algorithms.dynamic.update import replace
from algorithms.dynamic.variance import Variance
from algorithms.trees.quantised import between

_NOT_KNOWN = -2  # in the place of a feature: it takes a search to tell


@inlined
def _look(
    known: Slack,
    forest: Forest,
    rules: Rules,
    segment: Segment,
    tree: int,
    route: Route,
    event: int,
    out: Out,
) -> None:
    """Pass known nodes, which are most, without a call."""
    links = forest.nodes.links
    node = forest.trees[tree, ROOT]
    while _is_known(forest, rules, node) and links[node, FEATURE] != NONE:
        node = _child_on(forest, node, route)
    if not _is_known(forest, rules, node):
        _look_on(forest, rules, segment, tree, node, route, event, out)


@apart
def _look_on(
    forest: Forest, rules: Rules, segment: Segment, tree: int, node: int, route: Route, event: int, out: Out
) -> None:
    """Look through a node, and those below it on the way."""
    node = _renewed(forest, rules, segment, tree, node, route, event, out)
    while forest.nodes.links[node, FEATURE] != NONE:
        node = _checked(forest, rules, segment, tree, _child_on(forest, node, route), route, event, out)


@inlined
def _child_on(forest: Forest, node: int, route: Route) -> int:
    """Return the child of an inner node on the way of an example."""
    links = forest.nodes.links
    value = value_on(route, links[node, FEATURE])
    return links[node, LOW + side_of(links[node, KIND], forest.nodes.threshold[node], value)]


@apart
def _look_at_all(
    known: Slack, forest: Forest, rules: Rules, segment: Segment, tree: int, event: int, out: Out
) -> None:
    node = forest.trees[tree, ROOT] if tree != NONE else int64(NONE)
    route = everywhere(examples_of(forest))
    while node != NONE:
        node = _next(forest, _checked(forest, rules, segment, tree, node, route, event, out))


@inlined
def _no_look(
    known: NoSlack,
    forest: Forest,
    rules: Rules,
    segment: Segment,
    tree: int,
    route: Route,
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
    "Look through the nodes on the way of an example.",
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
        if not _stands(forest, rules, segment, tree, node, False):
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


class _Own(NamedTuple):
    """What a node does: its split, or where it is a leaf nothing."""

    score: float
    left: float  # what that leaves, see floors.py
    whole: floors.Whole
    gains: bool  # whether it gains more than rounding
    most: float  # how much more than the best it may leave, of the policy BETA


@inlined
def _is_known(forest: Forest, rules: Rules, node: int) -> bool:
    """Return whether a node has been checked since its last edit, where nothing else may have changed for it."""
    is_known = forest.slack.counts[node, IS_KNOWN] == 1
    return bool(is_known and (rules.terms.policy == EXACT or floors.is_local(forest.criterion)))


@inlined
def _is_open(forest: Forest, rules: Rules, node: int) -> bool:
    """Return whether a node is a leaf that any split is to part: for EXACT each is, else one that waits."""
    is_leaf = forest.nodes.links[node, FEATURE] == NONE
    return bool(is_leaf and (rules.terms.policy == EXACT or waits(forest.slack, node)))


@inlined
def _checked(
    forest: Forest, rules: Rules, segment: Segment, tree: int, node: int, route: Route, event: int, out: Out
) -> int:
    """Do as `_renewed`: most nodes that a look comes to are known, and a call takes longer than to see that."""
    if _is_known(forest, rules, node):
        return node
    return _renewed(forest, rules, segment, tree, node, route, event, out)


@jit
def _stands(forest: Forest, rules: Rules, segment: Segment, tree: int, node: int, may_search: bool) -> bool:
    """Return whether a node surely is what the policy promises, as its floors, rivals and index tell.

    Unless an index `may_search`, nothing is changed.
    """
    known, links = forest.slack, forest.nodes.links
    if _is_known(forest, rules, node):
        return True
    is_leaf = links[node, FEATURE] == NONE
    if is_done(forest.criterion, forest.nodes, segment, rules.terms, node, links[node, DEPTH]):
        return bool(is_leaf)
    if _is_open(forest, rules, node):
        return exact.leaf_stands(known, node)
    own = _own(forest, rules, segment, tree, node)
    return _beats_rest(forest, rules, segment, node, own, may_search) and _beats_columns(
        forest, rules, segment, node, own, may_search
    )


@inlined
def _beats_rest(forest: Forest, rules: Rules, segment: Segment, node: int, own: _Own, may_search: bool) -> bool:
    """Return whether a node surely is so beside all splits but those of columns that have floors of their own."""
    known, links = forest.slack, forest.nodes.links
    if known.counts[node, BLOCK] == INDEXED:
        rival, score_of_it = _best_binary(forest.criterion, forest, segment, node, may_search)
        if rival == _NOT_KNOWN:
            return False
        if rival == links[node, FEATURE]:
            rival, score_of_it = int64(NONE), math.inf
    else:
        rival, score_of_it = _best_rival(forest, segment, node)
    if rules.terms.policy == EXACT:
        is_ahead = rival == NONE or exact.is_ahead(
            forest.names, own.score, links[node, FEATURE], score_of_it, rival
        )
        if not (is_ahead and own.gains):
            return False
        if own.left < known.floor[node] - own.whole.error:
            return True
        return bool(own.left < floors.rest(forest.criterion, known, node) - own.whole.error)
    floor = max(known.floor[node], floors.rest(forest.criterion, known, node))
    if rival != NONE:
        floor = min(floor, floors.left_by(forest.criterion, own.whole, score_of_it) - own.whole.error)
    return beta.stands(floor, own.left, own.most, own.whole.error)


@inlined
def _no_best_binary(
    criterion: Variance, forest: Forest, segment: Segment, node: int, may_search: bool
) -> tuple[int, float]:
    return int64(NONE), math.inf


@apart
def _best_indexed(
    criterion: Criterion, forest: Forest, segment: Segment, node: int, may_search: bool
) -> tuple[int, float]:
    held = forest.slack.indexes
    if held.of[node] > 0 and not may_search:
        slot = indexes.surely_best(held, criterion, held.of[node] - 1)
        if slot == NONE:
            return int64(_NOT_KNOWN), math.inf
        return indexes.feature_of(held, slot), indexes.score_of(held, criterion, held.of[node] - 1, slot)
    if not may_search:
        return int64(_NOT_KNOWN), math.inf
    if held.of[node] == 0:
        gather(forest, segment, node)
        lay_out(criterion, segment, examples_of(forest), forest.words)
        held.of[node] = indexes.begin(held, segment, forest.words) + 1
        feature, least = _best_counted(forest, segment)
        forget(segment)
        clear(segment)
        return feature, least
    slot = indexes.best(held, criterion, forest.names, held.of[node] - 1)
    if slot == NONE:
        return int64(NONE), math.inf
    return indexes.feature_of(held, slot), indexes.score_of(held, criterion, held.of[node] - 1, slot)


_best_binary = by_target(
    "Return the binary feature that scores least in a node, its own among them, and its score; NONE and inf. By "
    "the node's index, which is made where it lacks one; where there is no room for it, by counts.",
    _best_indexed,
    _no_best_binary,
)


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


@inlined
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


@jit
def _own(forest: Forest, rules: Rules, segment: Segment, tree: int, node: int) -> _Own:
    """Return what a node does, by its sums, which are in `totals`, and those of its low side."""
    links, weights = forest.nodes.links, forest.nodes.weights
    whole = floors.whole_of(forest.criterion, weights, node, segment.totals)
    now = whole.score
    if links[node, FEATURE] != NONE:
        for k in range(segment.totals.size):
            segment.below[k] = weights[links[node, LOW], k]
        now = score(forest.criterion, segment.below, segment.totals)
    most = 0.0
    if rules.terms.policy != EXACT:
        most = floors.allowed(forest.criterion, weights, forest.trees[tree, ROOT], whole, rules.terms.beta)
    left = floors.left_by(forest.criterion, whole, now)
    return _Own(now, left, whole, floors.gains(forest.criterion, whole, now), most)


@jit
def _renewed(
    forest: Forest, rules: Rules, segment: Segment, tree: int, node: int, route: Route, event: int, out: Out
) -> int:
    """Make a node what the policy promises; return the node that is in its place now.

    Where it is another, the nodes below it are built as far as they are on the way.
    """
    known, links = forest.slack, forest.nodes.links
    if _stands(forest, rules, segment, tree, node, True):
        known.counts[node, IS_KNOWN] = 1
        return node
    if _stands_once_scanned(forest, rules, segment, tree, node, event, out):
        known.counts[node, IS_KNOWN] = 1
        return node
    gather(forest, segment, node)
    lay_out(forest.criterion, segment, examples_of(forest), forest.words)
    choice = NO_SPLIT
    if not is_done(forest.criterion, forest.nodes, segment, rules.terms, node, links[node, DEPTH]):
        held = segment.sizes[HELD]
        out.scanned[event] += held
        kept = wanted(known, segment, held)
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
        if _keeps(forest, rules, segment, tree, node, choice):
            _keep(forest, rules, segment, node, choice, out)
            return node
    return replace(forest, rules, segment, tree, node, choice, route, event, out)


@jit
def _keeps(forest: Forest, rules: Rules, segment: Segment, tree: int, node: int, choice: Choice) -> bool:
    """Return whether a node that was scanned stays, but for its threshold; `totals` has its sums."""
    links = forest.nodes.links
    if choice.column == NONE or _is_open(forest, rules, node):
        return bool(links[node, FEATURE] == choice.column)  # both are NONE: still no split parts the examples
    if rules.terms.policy == EXACT:
        is_same = links[node, FEATURE] == vocabulary.feature_of(forest.words, choice.column)
        return bool(
            is_same and exact.keeps(links[node, KIND], forest.nodes.threshold[node], choice.below, choice.above)
        )
    own = _own(forest, rules, segment, tree, node)
    best = floors.left_by(forest.criterion, own.whole, choice.score)
    return beta.stands(best, own.left, own.most, 2.0 * own.whole.error)


@jit
def _keep(forest: Forest, rules: Rules, segment: Segment, node: int, choice: Choice, out: Out) -> None:
    """Note what the scan of a node has told that keeps its split."""
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
    )
    if rules.terms.policy == EXACT and forest.nodes.threshold[node] != choice.threshold:
        forest.nodes.threshold[node] = choice.threshold
        out.told[0] |= CHANGED
    forget(segment)
    clear(segment)


# --- columns that have floors of their own


@inlined
def _beats_columns(forest: Forest, rules: Rules, segment: Segment, node: int, own: _Own, may_change: bool) -> bool:
    """Return whether a node surely is what the policy promises, beside columns that have floors of their own."""
    if not _knows_beside(forest, rules, node):
        return False
    known = forest.slack.columns
    size = columns.size_of(known, node)
    at = int64(0)
    while at < size and _beats(forest, rules, segment, node, at, own, may_change):
        at += 1
    return bool(at == size)


@inlined
def _knows_beside(forest: Forest, rules: Rules, node: int) -> bool:
    """Return whether the values beside a node's threshold are known, where that counts."""
    links = forest.nodes.links
    if rules.terms.policy != EXACT or links[node, KIND] == BINARY:
        return True
    return exact.knows_beside(forest.slack.columns, node, links[node, FEATURE])


@inlined
def _beats(
    forest: Forest, rules: Rules, segment: Segment, node: int, at: int, own: _Own, may_change: bool
) -> bool:
    """Return whether a node surely is what the policy promises, beside what a column offers."""
    known = forest.slack.columns
    floor = columns.floor_of(known, node, at)
    if rules.terms.policy != EXACT:
        return beta.stands(floor, own.left, own.most, own.whole.error)
    if own.left < floor - own.whole.error:
        return True
    row = bands.row_of(forest.slack.bands, node, at)
    if row == NONE:
        return False
    floor = thresholds.floor_of(
        forest.criterion,
        forest.slack.bands,
        row,
        own.score,
        own.whole,
        segment.totals,
        segment.below,
        known.lost[node],
        may_change,
    )
    if floor == -math.inf:
        return False
    if may_change:
        columns.put(known, node, at, floor)
    return True


@jit
def _stands_once_scanned(
    forest: Forest, rules: Rules, segment: Segment, tree: int, node: int, event: int, out: Out
) -> bool:
    """Scan the columns of a node whose floors are spent, where nothing else must be; return whether it stands."""
    known = forest.slack.columns
    links = forest.nodes.links
    if is_done(forest.criterion, forest.nodes, segment, rules.terms, node, links[node, DEPTH]):
        return False
    if _is_open(forest, rules, node):
        return False
    own = _own(forest, rules, segment, tree, node)
    if columns.size_of(known, node) == 0 or not _beats_rest(forest, rules, segment, node, own, True):
        return False
    if not _knows_beside(forest, rules, node) and not columns.has_own(known, node, links[node, FEATURE]):
        return False
    gather(forest, segment, node)
    out.scanned[event] += segment.sizes[HELD]
    stands = True
    at = int64(0)
    while stands and at < known.sizes[node]:
        if not _beats(forest, rules, segment, node, at, own, True):
            stands = _stands_beside(forest, rules, segment, node, at, own, out)
        at += 1
    if stands:  # a column was scanned, so the labels are there
        floors.begin_labels(forest.criterion, forest.slack, node, segment.label[0])
        for i in range(1, segment.sizes[HELD]):
            floors.note_label(forest.criterion, forest.slack, node, segment.label[i])
    segment.sizes[HELD] = 0
    return stands


@jit
def _stands_beside(
    forest: Forest, rules: Rules, segment: Segment, node: int, at: int, own: _Own, out: Out
) -> bool:
    """Scan a column of the examples that are gathered; return whether a node stands beside what it offers.

    For EXACT its own threshold must part them as the best one does.
    """
    known, links = forest.slack.columns, forest.nodes.links
    feature, threshold = known.features[node, at], forest.nodes.threshold[node]
    is_exact = rules.terms.policy == EXACT
    is_own = is_exact and feature == links[node, FEATURE]
    entries = sort_alone(segment, examples_of(forest), feature)
    found = best_threshold(forest.criterion, segment, entries, is_own)
    least = floors.left_by(
        forest.criterion, own.whole, min(found.second if is_own else found.score, own.whole.score)
    )
    if is_own:
        stands = found.score < math.inf and exact.keeps(links[node, KIND], threshold, found.below, found.above)
    elif is_exact:
        stands = exact.is_ahead(forest.names, own.score, links[node, FEATURE], found.score, feature)
    else:
        stands = beta.stands(least, own.left, own.most, 2.0 * own.whole.error)
    if not stands:
        return False
    floor = least - own.whole.error
    held = segment.sizes[HELD] if found.score < math.inf else int64(0)  # of one value there are no thresholds
    row = bands.take(forest.slack.bands, node, at, held)
    if row != NONE:
        lost = known.lost[node]
        floor = thresholds.scan(
            forest.criterion, forest.slack.bands, row, segment, entries, found.below, is_own, own.whole, lost
        )
    columns.put(known, node, at, floor)
    if is_own:
        _move_threshold(forest, segment, node, found.below, found.above, entries, out)
    return True


@jit
def _move_threshold(
    forest: Forest, segment: Segment, node: int, below: float, above: float, entries: int, out: Out
) -> None:
    """Let a node part its examples as before, between values that a scan of its column has found beside."""
    known = forest.slack
    slack.clear_beside(known, node)
    zeros = segment.sizes[HELD] - entries
    known.beside[node, BELOW] = below
    known.beside[node, ABOVE] = above
    for side in (BELOW, ABOVE):
        if known.beside[node, side] == 0.0:
            known.counts[node, AT_BELOW + side] = zeros
    for entry in range(entries):
        for side in (BELOW, ABOVE):
            if segment.found_value[entry] == known.beside[node, side]:
                known.counts[node, AT_BELOW + side] += 1
    threshold = between(below, above)
    if forest.nodes.threshold[node] != threshold:
        forest.nodes.threshold[node] = threshold
        out.told[0] |= CHANGED
