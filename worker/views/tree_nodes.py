"""The nodes of a snapshot as whoever draws it goes through them. Nothing recurses: trees may be deep."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from worker.codec.encode import Tree
from worker.views.words import branch_word, feature_word


def children_of(tree: Tree) -> list[list[int]]:
    """Return for each node the places of its children in the columns, in the order of their branches."""
    place = {number: at for at, number in enumerate(tree.node)}
    children: list[list[int]] = [[] for _ in tree.node]
    for at, parent in enumerate(tree.parent[1:], 1):
        children[place[parent]].append(at)
    return children


def opened(children: list[list[int]], most: int, deepest: int) -> set[int]:
    """Return the nodes whose children are drawn, where at most so many nodes are, down to a depth.

    The top of the tree comes first: level by level, and of a node all children or none.
    """
    nodes: set[int] = set()
    drawn, waiting = 1, deque([(0, 0)] if children else [])
    while waiting:
        node, depth = waiting.popleft()
        below = children[node]
        if below and depth < deepest and drawn + len(below) <= most:
            nodes.add(node)
            drawn += len(below)
            waiting.extend((child, depth + 1) for child in below)
    return nodes


def preorder(children: list[list[int]], open_nodes: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the nodes that are drawn and their depths, parents first, from the root or the cut on."""
    stack = [(0, 0)] if children else []
    while stack:
        node, depth = stack.pop()
        yield node, depth
        if node in open_nodes:
            stack.extend((child, depth + 1) for child in reversed(children[node]))


def sizes(children: list[list[int]]) -> list[int]:
    """Return how many nodes there are below each, itself included; children stand behind their parents."""
    found = [1] * len(children)
    for node in reversed(range(len(children))):
        found[node] += sum(found[child] for child in children[node])
    return found


def feature_at(tree: Tree, node: int, most: int = 60) -> str:
    """Return the feature that a node tests as a word, of a name at most so many characters."""
    feature = tree.feature[node]
    return feature_word(feature if tree.names is None or feature is None else tree.names[feature], most)


def counted_word(tree: Tree) -> str:
    """Return of when the counts at inner nodes are, as said behind one; empty where a record tells no kind."""
    match tree.parameters.get("kind"), tree.parameters.get("policy"):
        case "dynamic-tree", _:
            return "live"
        case "tree", "efdt":  # goes on counting there, to reconsider the split
            return "so far"
        case "tree", _:
            return "at the split"
        case _:
            return ""


def branch_to(tree: Tree, parent: int, child: int) -> str:
    """Return what leads from a node to one of its children."""
    return branch_word(tree.kind[parent], tree.threshold[parent], tree.branch[child])


def heaviest(tree: Tree, node: int) -> int | None:
    """Return which class weighs most at a node, the first of equals; None where nothing was learned."""
    weights = tree.counts[node]
    return max(range(len(weights)), key=weights.__getitem__) if any(weights) else None
