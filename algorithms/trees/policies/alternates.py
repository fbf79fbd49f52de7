"""Alternates: subtrees that grow beside a tree, and take a node's place where they do better.

Where the errors at an inner node have risen an alternate begins beside it, a leaf that has seen nothing. From then
on the examples that pass the node are learned twice, by the tree and by the alternate. Once the alternate is
surely better all below the node goes and the alternate takes its place; once it is surely worse it goes itself.
Predictions come from the tree alone. An alternate has no alternates of its own before it is part of the tree.
"""

from __future__ import annotations

from typing import Any

from algorithms.core import rows
from algorithms.core.arrays import int64
from algorithms.core.events import Batch
from algorithms.core.jit import dispatch, inlined, jit
from algorithms.core.rows import NEXT, NONE
from algorithms.trees import nodes
from algorithms.trees.leaves import begin_leaf, count, free_all
from algorithms.trees.nodes import ALTERNATES, BESIDE, FIRST, ROOTS, TREE
from algorithms.trees.policies import POLICIES, hat
from algorithms.trees.policies.hat import Hat
from algorithms.trees.predict import keep_score, predict
from algorithms.trees.routing import descend, next_on_way
from algorithms.trees.state import LEAVES, REPLACED, Forest, Out, Rules


@jit
def _learn(policy: Hat, forest: Forest, rules: Rules, batch: Batch, event: int, top: int, out: Out) -> None:
    """Let an alternate predict an example, then learn it."""
    links = forest.nodes.links
    leaf, lacking = descend(forest.nodes, batch, event, top)
    predicted = predict(forest.nodes, forest.features, rules, batch, event, leaf, lacking != NONE, out)
    wrong = predicted != int64(batch.label[event])
    if lacking != NONE:
        leaf = begin_leaf(forest, links[top, TREE], leaf, lacking)
    keep_score(forest.nodes, forest.features, rules, batch, event, leaf, True, predicted, out)
    count(forest, rules, batch, event, leaf)
    node = top
    while node != leaf:
        hat.notice(policy, node, wrong)
        node = next_on_way(forest.nodes, batch, event, node)
    hat.notice(policy, leaf, wrong)


@jit
def _join(forest: Forest, top: int) -> None:
    """Make the nodes of an alternate part of its tree."""
    links, cells = forest.nodes.links, forest.nodes.rows.cells
    tree = links[top, TREE]
    node = top
    while True:
        links[node, BESIDE] = 0
        if nodes.is_leaf(forest.nodes, node):
            forest.trees[tree, LEAVES] += 1
        if links[node, FIRST] != NONE:
            node = links[node, FIRST]
            continue
        while node != top and cells[node, NEXT] == NONE:
            node = rows.owner_of(forest.nodes.rows, node)
        if node == top:
            return
        node = cells[node, NEXT]


@jit
def _promote(forest: Forest, node: int, top: int) -> None:
    """Let an alternate take the place of its node, which goes with all below."""
    links, cells = forest.nodes.links, forest.nodes.rows.cells
    parent = rows.owner_of(forest.nodes.rows, node)
    branch = rows.item_of(forest.nodes.rows, node)
    following = cells[node, NEXT]
    if parent != ROOTS:
        if links[parent, FIRST] == node:
            links[parent, FIRST] = top
        else:
            before = links[parent, FIRST]
            while cells[before, NEXT] != node:
                before = cells[before, NEXT]
            cells[before, NEXT] = top
    free_all(forest, node)
    rows.move(forest.nodes.rows, top, parent, branch, following)
    _join(forest, top)


@jit
def _first_learner(forest: Forest, batch: Batch, event: int, node: int) -> int:
    """Return the first leaf that learned an example, from a node of the tree down: alternates' come first."""
    while not nodes.is_leaf(forest.nodes, node):
        top = nodes.alternate_of(forest.nodes, node)
        if top != NONE:
            leaf, _ = descend(forest.nodes, batch, event, top)
            return leaf
        node = next_on_way(forest.nodes, batch, event, node)
    return node


@jit
def _adapt(policy: Hat, forest: Forest, rules: Rules, batch: Batch, event: int, out: Out) -> None:
    """Do what follows from an example that the tree has predicted and learned, from the root down.

    There must be room for a leaf, and for what it sees of the example, beside each inner node.
    """
    tree = int64(batch.key[event])
    wrong = out.predicted[event] != batch.label[event]
    node = nodes.root_of(forest.nodes, tree)
    alone = True
    while True:
        risen = hat.notice(policy, node, wrong)
        if nodes.is_leaf(forest.nodes, node):
            break
        top = nodes.alternate_of(forest.nodes, node)
        if top != NONE:
            alone = False
            _learn(policy, forest, rules, batch, event, top, out)
            verdict = hat.judge(policy, node, top)
            if verdict == hat.BETTER:
                _promote(forest, node, top)
                policy.counts[hat.PROMOTED] += 1
                out.told[0] |= REPLACED
                break  # the alternate has learned the example, and has noticed its own error
            if verdict == hat.WORSE:
                free_all(forest, top)
        elif risen:
            begin_leaf(forest, tree, int64(ALTERNATES), node)
            policy.counts[hat.STARTED] += 1
        node = next_on_way(forest.nodes, batch, event, node)
    if not alone:
        out.node[event] = _first_learner(forest, batch, event, nodes.root_of(forest.nodes, tree))


@jit
def _next_learner(policy: Hat, forest: Forest, batch: Batch, event: int, node: int) -> int:
    """Return the leaf that learned an example next after another, NONE after the tree's own."""
    if not forest.nodes.links[node, BESIDE]:
        return int64(NONE)
    while rows.owner_of(forest.nodes.rows, node) != ALTERNATES:
        node = rows.owner_of(forest.nodes.rows, node)
    beside = rows.item_of(forest.nodes.rows, node)
    return _first_learner(forest, batch, event, next_on_way(forest.nodes, batch, event, beside))


@inlined
def _leave(policy: Any, forest: Forest, rules: Rules, batch: Batch, event: int, out: Out) -> None:
    """Leave the tree as it is."""


@inlined
def _next_below(policy: Any, forest: Forest, batch: Batch, event: int, node: int) -> int:
    """Return the next node on the way of an example, NONE after its leaf."""
    if nodes.is_leaf(forest.nodes, node):
        return int64(NONE)
    return next_on_way(forest.nodes, batch, event, node)


# Policies without alternates are compiled without all this.
adapt = dispatch(
    "Do what follows from an example that the tree has learned; `out.node` is then who learned it first.",
    {policy.kind: _adapt if policy.adapts else _leave for policy in POLICIES.values()},
)
next_learner = dispatch(
    "Return the node that learned an example next after another, NONE after the tree's leaf.",
    {policy.kind: _next_learner if policy.adapts else _next_below for policy in POLICIES.values()},
)
