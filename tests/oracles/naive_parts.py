"""The oracle of trees of which large subtrees are built aside, some with each event.

When a node is decided, and when the new subtree takes over, is read from the pool: that follows from how work is
counted. What it is decided to be is not: the split of a new node must be the best one of the node's live examples
at that moment, and all else is as it is where a rebuild happens at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from algorithms.dynamic import aside, nodes
from algorithms.dynamic.parts import at_once
from algorithms.dynamic.pool import DynamicPool
from algorithms.dynamic.state import MADE
from tests.oracles.naive_dynamic import (
    Event,
    Example,
    Live,
    NaiveForgetful,
    Node,
    Outcome,
    Pair,
    Settings,
    Tree,
    best_split,
    outcomes,
    side,
)

_COUNTERS = [nodes.BUILT, nodes.EDITS, nodes.BUILT_WEIGHT, nodes.EDITED_WEIGHT]


@dataclass(eq=False)
class Build:
    """A subtree that is built aside of one that will go."""

    old: Node
    new: Node
    undecided: list[Node] = field(default_factory=list)


def work_of(examples: Sequence[Example]) -> int:
    """Return what it takes to count examples."""
    return 1 + sum(1 + len(example.x) for example in examples)


def _place(nodes_: Sequence[Any], wanted: Any) -> int:
    return next(at for at, each in enumerate(nodes_) if each is wanted)


class NaiveInParts(NaiveForgetful):
    """Trees that forget, whose rebuilds take many events; `pool` is the pool beside it, an event ahead."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.pool: DynamicPool = settings.pool()
        self.builds: dict[int, Build] = {}
        self.busy: set[int] = set()  # whose old nodes are still given back
        self.handed_over = 0
        assert settings.max_work is not None
        self.most = at_once(settings.max_work)

    def way(self, top: Node, example: Example) -> list[Node]:
        """Return the nodes on the way of an example."""
        path = [top]
        while path[-1].children:
            node = path[-1]
            assert node.feature is not None
            path.append(node.children[side(self.terms, node.feature, node.threshold, example.x)])
        return path

    def update(self, tree: Tree, example: Live, sign: int) -> None:
        """UPDATE, where a rebuild may be begun, or wait."""
        path, build = self.way(tree.root, example), self.builds.get(id(tree))
        twins = self.way(build.new, example) if build and any(node is build.old for node in path) else []
        for leaf in [path[-1], *twins[-1:]]:
            if sign > 0:
                leaf.examples.append(example)
            else:
                del leaf.examples[_place(leaf.examples, example)]
        for node in twins:
            node.edits += 1
            node.edited_weight += example.weight
        for i, node in enumerate(path):
            if build is not None and node is build.old:
                return
            node.edits += 1
            node.edited_weight += example.weight
            if not self.is_due(node):
                continue
            most = 2 ** (node.built - 1).bit_length() if node.built else 0
            j = next(at for at in range(i + 1) if path[at].built <= most)
            if build is not None and any(each is build.old for each in path[j].preorder()):
                continue
            live = tree.live if sign > 0 else [*tree.live, example]
            mean = sum(len(each.x) for each in live) // len(live)
            is_busy = build is not None or id(tree) in self.busy
            if is_busy and len(path[j].all_examples()) * (1 + mean) > 2 * self.most:
                continue
            if work_of(path[j].all_examples()) <= self.most:
                self._rebuild(tree, path[j], path[j - 1] if j else None)
                return
            if build is None and id(tree) not in self.busy:
                examples = path[j].all_examples()
                new = Node(next(tree.numbers), path[j].depth, 0, 0, examples=examples)
                self.builds[id(tree)] = Build(path[j], new, [new])
                return

    def spend(self, tree: Tree, key: int) -> None:
        """Let what the pool has decided at this event be decided here, by the live examples of now."""
        forest = self.pool._state
        head = forest.aside.heads[key].tolist()
        build = self.builds.get(id(tree))
        if build is not None:
            is_over = head[aside.STAGE] in (aside.FREEING, aside.IDLE)
            parent = next((node for node in tree.root.preorder() if build.old in node.children), None)
            top = head[aside.NEW]
            if is_over:
                top = int(self.pool._root(key))
                for above, below in self._turns(tree.root, build.old):
                    top = int(forest.nodes.links[top, nodes.LOW + _place(above.children, below)])
            self._decide(build, build.new, top, self._undecided(head))
            if is_over:
                assert not build.undecided
                self._hand_over(tree, build, parent)
        self.busy.discard(id(tree))
        if head[aside.STAGE] == aside.FREEING:
            self.busy.add(id(tree))
        assert (id(tree) in self.builds) == (head[aside.STAGE] not in (aside.FREEING, aside.IDLE))
        tree.numbers = count(int(forest.trees[key, MADE]))

    def _turns(self, top: Node, wanted: Node) -> Iterator[tuple[Node, Node]]:
        """Yield parent and child on the way down to a node."""
        while top is not wanted:
            child = next(child for child in top.children if any(each is wanted for each in child.preorder()))
            yield top, child
            top = child

    def _undecided(self, head: list[int]) -> set[int]:
        """Return the nodes of the pool that nothing has been decided of."""
        found = set()
        if head[aside.STAGE] == aside.GATHERING:
            found.add(head[aside.NEW])
        if head[aside.STAGE] == aside.SCANNING:
            found.add(head[aside.NODE])
        links = self.pool._state.nodes.links
        if head[aside.STAGE] == aside.PARTING or (
            head[aside.STAGE] == aside.WIPING and links[head[aside.NODE], nodes.FEATURE] != nodes.NONE
        ):
            found |= set(links[head[aside.NODE], [nodes.LOW, nodes.HIGH]].tolist())
        waiting = head[aside.WAITING] if head[aside.STAGE] not in (aside.FREEING, aside.IDLE) else nodes.NONE
        while waiting != nodes.NONE:
            found.add(waiting)
            waiting = int(links[waiting, nodes.LOW])
        return found

    def _decide(self, build: Build, node: Node, at: int, undecided: set[int]) -> None:
        """Decide a node and those below, as far as the pool has done so; `at` is the node there."""
        links = self.pool._state.nodes.links
        if any(each is node for each in build.undecided):
            node.number = int(links[at, nodes.NUMBER])
            if at in undecided:
                return
            del build.undecided[_place(build.undecided, node)]
            counts = self.terms.counts(node.examples)
            node.built, node.built_weight = len(node.examples), sum(counts)
            node.edits = node.edited_weight = 0
            impure = self.terms.impurity(counts) > 0.5 * self.terms.alpha * (sum(counts) / (1 << 20))
            if node.built > self.terms.min_examples and impure and node.depth < self.terms.max_depth:
                found = best_split(self.terms, node.examples)
                if found is not None:
                    node.feature, node.threshold = found
                    for way in (0, 1):
                        there = [each for each in node.examples if side(self.terms, *found, each.x) == way]
                        node.children.append(Node(0, node.depth + 1, 0, 0, examples=there))
                    node.examples = []
                    build.undecided += node.children
        assert links[at, _COUNTERS].tolist() == [node.built, node.edits, node.built_weight, node.edited_weight]
        for way, child in enumerate(node.children):
            self._decide(build, child, int(links[at, nodes.LOW + way]), undecided)

    def _hand_over(self, tree: Tree, build: Build, parent: Node | None) -> None:
        if parent is None:
            tree.root = build.new
        else:
            parent.children[_place(parent.children, build.old)] = build.new
        tree.rebuilds += 1
        tree.rebuilt += len(build.new.all_examples())
        tree.changed |= bool(build.old.children or build.new.children)
        del self.builds[id(tree)]
        self.handed_over += 1


class PairInParts(Pair):
    """A pool beside its oracle, which is told of each event after the pool."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.twin: NaiveInParts = NaiveInParts(settings)
        self.twin.pool = self.pool

    def feed(self, events: Sequence[Event]) -> list[Outcome]:
        """Apply events one by one; raise AssertionError where pool and oracle differ."""
        return [self._step(event) for event in events]

    def _step(self, event: Event) -> Outcome:
        before = self.twin.trees.get(event.key)
        [got] = outcomes(self.pool, [event], None if self.settings.names else self._rng)
        expected = self.twin.apply(event)
        if event.key not in self.twin.trees and before is not None:
            self.twin.builds.pop(id(before), None)
            self.twin.busy.discard(id(before))
        assert got == expected, f"{event}"
        self.compare(event.key)
        return got

    def restored(self) -> None:
        """Go on with a copy of the pool's state in a new pool."""
        super().restored()
        self.twin.pool = self.pool

    def check(self) -> None:
        """Raise AssertionError unless the pool's invariants hold."""
        self.pool.check()
        assert self.pool.alive == len(self.twin.trees)
        assert self.pool.live_examples == sum(len(tree.live) for tree in self.twin.trees.values())
