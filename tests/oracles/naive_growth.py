"""The oracle of what `build_tree` may draw, and of trees that grow where a split gains most, in plain Python."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from tests.oracles.naive_dynamic import Example, Node, Terms, best_of, side, splits

_M32 = (1 << 32) - 1


@dataclass
class Growth:
    """How a tree grows, and what is drawn: parameters of `build_tree`, with the same meaning."""

    max_leaves: int | None = None
    max_features: int | None = None
    bootstrap: bool = False
    seed: int = 0


def mixed(x: int, y: int) -> int:
    """Return the hash of two numbers."""
    h = (x * 0x2545F491 ^ y * 0x5851F42D) & _M32
    h = (h ^ h >> 16) * 0x2C1B3C6D & _M32
    h = (h ^ h >> 13) * 0x297A2D39 & _M32
    return h ^ h >> 16


def salt_of(seed: int, what: str) -> int:
    """Return the 32 bits of a seed for features or examples."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {what}".encode(), digest_size=4).digest(), "little")


def resampled(examples: Sequence[Example], seed: int) -> list[Example]:
    """Return the examples that are drawn, each once, weighing as many times as it was drawn."""
    n, salt = len(examples), salt_of(seed, "example")
    drawn = [mixed(salt, draw) * n >> 32 for draw in range(n)]
    times = [(example, drawn.count(at)) for at, example in enumerate(examples)]
    return [Example(each.x, each.label, each.weight * often) for each, often in times if often]


@dataclass(eq=False)
class _Waiting:
    node: Node
    examples: list[Example]
    salt: int
    order: int
    gain: float = 0.0
    children: list[_Waiting] = field(default_factory=list)


def build(terms: Terms, growth: Growth, examples: Sequence[Example]) -> Node:
    """Return the tree; nodes are numbered in preorder."""
    live = resampled(examples, growth.seed) if growth.bootstrap else list(examples)
    order = count()
    waiting: list[_Waiting] = []

    def look(here: list[Example], depth: int, salt: int) -> Node:
        node = Node(0, depth, len(here), sum(terms.counts(here)), examples=here)
        counts = terms.counts(here)
        entry = _Waiting(node, here, salt, next(order))
        impure = terms.impurity(counts) > 0.5 * terms.alpha * (sum(counts) / (1 << 20))
        if len(here) > terms.min_examples and impure and depth < terms.max_depth:
            found = splits(terms, here)
            if growth.max_features is not None:
                features = sorted({each[1] for each in found}, key=lambda j: (mixed(salt, j) >> 1, j))
                found = [each for each in found if each[1] in features[: growth.max_features]]
            if found:
                entry.gain, node.feature, node.threshold = best_of(terms, here, found)
                waiting.append(entry)
        return node

    root = look(live, 0, salt_of(growth.seed, "feature"))
    leaves = 1
    while waiting and leaves != growth.max_leaves:
        entry = min(waiting, key=lambda each: (-each.gain, each.order))
        waiting.remove(entry)
        node = entry.node
        parts: list[list[Example]] = [[], []]
        for example in entry.examples:
            assert node.feature is not None
            parts[side(terms, node.feature, node.threshold, example.x)].append(example)
        node.examples = []
        node.children = [look(part, node.depth + 1, mixed(entry.salt, 2 + way)) for way, part in enumerate(parts)]
        leaves += 1
    for entry in waiting:
        entry.node.feature, entry.node.threshold = None, 0.0
    for number, node in enumerate(root.preorder()):
        node.number = number
    return root
