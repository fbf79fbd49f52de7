"""A tree for people: as lines of text, as HTML for a notebook, and how much each feature takes part in it.

All three look at the leaves: an inner node is the sum of those below it, so that what is told adds up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.criteria import log2
from algorithms.core.fixed_point import PER_UNIT
from algorithms.core.kinds import Kind
from algorithms.estimators.encoding import Feature, Label, decoded

MOST_NODES = 200  # that are drawn; the others are counted

_LAST, _MIDDLE, _THROUGH, _GAP = "└─ ", "├─ ", "│  ", "   "
_COLORS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2")


class Known(NamedTuple):
    """What a node knows of the labels."""

    weight: float  # of its examples
    impurity: float  # weight times impurity: what splits below it lower
    answer: str  # what it predicts
    told: str  # what of its labels is told beside that
    shares: list[float]  # of the classes; of numbers none


class Node(NamedTuple):
    """A node of a drawing; nodes stand in preorder."""

    parent: int  # -1: the root
    branch: str  # which of the parent's
    tests: Feature | None  # None: a leaf
    known: Known


def word(feature: Any) -> str:
    """Return what a person reads of a feature or label: one line, and nothing that steers a terminal."""
    return feature if isinstance(feature, str) and feature.isprintable() and feature else repr(feature)


def _counted(label: Label, weight: float) -> str:
    """Return a label with its weight; beside a label that is a number, what of the two is the weight is marked."""
    is_number = isinstance(label, int | float) and not isinstance(label, bool)
    return f"{word(label)}{':' if is_number else ''} {number_word(weight)}"


def number_word(value: float) -> str:
    """Return a number, short: whole ones whole."""
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:,.5g}"


def summed(
    parents: Sequence[int], leaves: Sequence[bool], values: Any, add: Callable[[Any, Any], Any]
) -> list[Any]:
    """Return for each node the sum of the leaves below it; nodes stand in preorder."""
    sums = [value if leaf else None for value, leaf in zip(values, leaves, strict=True)]
    for node in range(len(parents) - 1, 0, -1):
        up = parents[node]
        sums[up] = sums[node] if sums[up] is None else add(sums[node], sums[up])
    return sums


def class_impurity(criterion: str, weights: Sequence[float]) -> float:
    """Return weight times impurity: entropy in bits, Gini as 1 - sum p^2, or sqrt, which is for two classes."""
    total = math.fsum(weights)
    if not total:
        return 0.0
    shares = [weight / total for weight in weights if weight > 0.0]
    if criterion == "sqrt":
        return 2.0 * math.sqrt(weights[0] * weights[1])
    if criterion == "entropy":
        return total * max(0.0, -math.fsum(share * float(log2(share)) for share in shares))
    return total * max(0.0, 1.0 - math.fsum(share * share for share in shares))


def branch_words(tree: Any, at: int) -> str:
    """Return which branch of its parent leads to a node of a pool's tree."""
    parent, high = int(tree.parent[at]), int(tree.branch[at])
    if parent < 0:
        return ""
    if tree.kind[parent] in (Kind.NUMERIC, Kind.QUANTISED):
        return f"{'>' if high else '≤'} {tree.threshold[parent]:.5g}"
    return "present" if high else "absent"


def class_nodes(tree: Any, labels: dict[Label, int], criterion: str, name: Any = decoded) -> list[Node]:
    """Return a tree of classes for people.

    Parameters
    ----------
    tree : Tree
        Of a pool.
    labels : dict
        The number of each label.
    criterion : str
        What impurity is.
    name : callable
        Returns the feature of a pool's.
    """
    order = list(labels.values())
    leaves = [feature is None for feature in tree.feature]
    weights = summed(tree.parent.tolist(), leaves, tree.weight[:, order] * PER_UNIT, np.add)
    nodes = []
    for at, (parent, feature) in enumerate(zip(tree.parent.tolist(), tree.feature, strict=True)):
        own = weights[at].tolist()
        total = sum(own)
        best = max(zip(labels, own, strict=True), key=lambda pair: pair[1])[0] if total else None
        told = "  ".join(_counted(label, each) for label, each in zip(labels, own, strict=True) if each)
        known = Known(
            weight=total,
            impurity=class_impurity(criterion, own),
            answer=word(best) if total else "nothing",
            told=told,
            shares=[each / total for each in own] if total else [],
        )
        nodes.append(Node(parent, branch_words(tree, at), None if feature is None else name(feature), known))
    return nodes


def _merged(left: tuple[float, float, float], right: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return weight, mean and weight times variance of two sets of labels together."""
    n = left[0] + right[0]
    if not n:
        return (0.0, 0.0, 0.0)
    apart = right[1] - left[1]
    squares = left[2] + right[2] + apart * apart * (left[0] * right[0] / n)
    return n, left[1] + apart * (right[0] / n), squares


def number_nodes(tree: Any, name: Any = decoded) -> list[Node]:
    """Return a regression tree for people; impurity is the variance."""
    leaves = [feature is None for feature in tree.feature]
    own = zip(tree.weight.tolist(), tree.mean.tolist(), (tree.weight * tree.variance).tolist(), strict=True)
    known = summed(tree.parent.tolist(), leaves, list(own), _merged)
    nodes = []
    for at, (parent, feature) in enumerate(zip(tree.parent.tolist(), tree.feature, strict=True)):
        weight, mean, squares = known[at]
        deviation = math.sqrt(squares / weight) if weight else 0.0
        told = f"{number_word(weight)} of mean {mean:.5g}, deviation {deviation:.5g}"
        tests = None if feature is None else name(feature)
        nodes.append(Node(parent, branch_words(tree, at), tests, Known(weight, squares, f"{mean:.5g}", told, [])))
    return nodes


def importances(nodes: Sequence[Node]) -> dict[Feature, float]:
    """Return the share of each feature in what all splits lower the impurity by, the largest first."""
    lowered: dict[Feature, float] = {}
    below = [0.0] * len(nodes)
    for node in nodes:
        if node.parent >= 0:
            below[node.parent] += node.known.impurity
    for node, rest in zip(nodes, below, strict=True):
        if node.tests is not None:
            lowered[node.tests] = lowered.get(node.tests, 0.0) + max(0.0, node.known.impurity - rest)
    total = math.fsum(lowered.values())
    ranked = sorted(lowered, key=lambda feature: (-lowered[feature], str(feature)))
    return {feature: lowered[feature] / total if total else 0.0 for feature in ranked}


def mean_importances(trees: Sequence[dict[Feature, float]]) -> dict[Feature, float]:
    """Return the mean share of each feature, over the trees that have a split; the largest first."""
    telling = [shares for shares in trees if shares]
    features = dict.fromkeys(feature for shares in telling for feature in shares)
    means = {each: math.fsum(shares.get(each, 0.0) for shares in telling) / len(telling) for each in features}
    return {feature: means[feature] for feature in sorted(means, key=lambda each: (-means[each], str(each)))}


def forest_text(title: str, trees: Sequence[Sequence[Node]]) -> str:
    """Return a forest as text, one line a tree: its size and what it asks first."""
    if not any(trees):
        return f"{title}: has learned nothing"
    lines = [title]
    for number, nodes in enumerate(trees):
        asked = [node.tests for node in nodes if node.tests is not None]
        first = f"{word(asked[0])}?" if asked else "no split"
        lines.append(f"tree {number}: {len(nodes)} nodes, {first}")
    return "\n".join(lines)


def text(title: str, nodes: Sequence[Node], most: int = MOST_NODES) -> str:
    """Return a tree as text, one line a node."""
    if not nodes:
        return f"{title}: has learned nothing"
    rows: list[tuple[str, str]] = []
    for stems, node in _walk(nodes):
        if len(rows) == most:
            break
        rows.append((stems + _said(node), node.known.told))
    width = max(len(label) for label, _ in rows)
    lines = [f"{label:<{width}}  {told}".rstrip() for label, told in rows]
    if len(nodes) > len(rows):
        lines.append(f"... and {len(nodes) - len(rows):,} more nodes")
    return "\n".join([title, *lines])


def _said(node: Node) -> str:
    answer = f"{word(node.tests)}?" if node.tests is not None else f"→ {node.known.answer}"
    return f"{node.branch}: {answer}" if node.branch else answer


def _children(nodes: Sequence[Node]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in nodes]
    for at, node in enumerate(nodes):
        if node.parent >= 0:
            children[node.parent].append(at)
    return children


def _walk(nodes: Sequence[Node]) -> Iterator[tuple[str, Node]]:
    """Yield nodes with the stems before them. A stack of its own: trees may be deeper than Python's."""
    children = _children(nodes)
    stack = [(0, "", "")]
    while stack:
        at, stems, below = stack.pop()
        yield stems, nodes[at]
        last = True
        for child in reversed(children[at]):
            stack.append((child, below + (_LAST if last else _MIDDLE), below + (_GAP if last else _THROUGH)))
            last = False


def html(title: str, nodes: Sequence[Node], most: int = MOST_NODES) -> str:
    """Return a tree as HTML that needs nothing else: one line a node, with a bar of its classes."""
    lines = [f"<div>{escape(title)}</div>"]
    if not nodes:
        lines.append("<div>has learned nothing</div>")
    depth = [0] * len(nodes)
    for at, node in enumerate(nodes[:most]):
        depth[at] = depth[node.parent] + 1 if node.parent >= 0 else 0
        told = f"{escape(_said(node))} <small>{escape(node.known.told)}</small>"
        lines.append(
            f'<div style="margin-left:{1.5 * min(depth[at], 40)}em">{_bar(node.known.shares)}{told}</div>'
        )
    if len(nodes) > most:
        lines.append(f"<div>... and {len(nodes) - most:,} more nodes</div>")
    return f'<div style="font-family:monospace;white-space:pre">{"".join(lines)}</div>'


def _bar(shares: Sequence[float]) -> str:
    style = "display:inline-block;height:.7em"
    cells = "".join(
        f'<span style="{style};width:{5 * share:.2f}em;background:{_COLORS[at % len(_COLORS)]}"></span>'
        for at, share in enumerate(shares)
        if share > 0.0
    )
    return f"{cells} " if cells else ""
