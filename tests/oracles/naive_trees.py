"""The oracle of the trees that grow: the same behaviour from dictionaries and lists, in the plainest words.

`NaiveTrees` is written from what `TreePool` promises, not from how it works. It shares the scalar functions
(log2, the normal distribution) with it, because ties are decided on floats. `Pair` feeds both and compares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numba

from algorithms.core.cadence import When
from algorithms.core.criteria import UNIT, log2
from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.trees.normal import cumulative, exp2
from algorithms.trees.policies import POLICIES
from algorithms.trees.predict import Predict
from tests.oracles.tree_parts import (
    Candidate,
    Event,
    Feature,
    Node,
    Outcome,
    Seen,
    Settings,
    Slot,
    Tree,
    branch_of,
    code_of,
    columns,
    fixed,
    heaviest,
    is_number,
    likelihood,
    majority,
    regroup,
    total,
    xlogx,
)

Score: TypeAlias = tuple[float, float]  # score, threshold


# Every policy with both criteria where the compiler is off. A combination takes a minute to compile, and the
# criterion is one file that no policy knows: compiled, `periodic` has both and the others one each.
_BOTH: tuple[str, ...] = ("entropy", "gini")
_COMPILED: dict[str, tuple[str, ...]] = {
    "osm": ("gini",),
    "imac": ("gini",),
    "efdt": ("entropy",),
    "hat": ("entropy",),
    "efdt-imac": ("gini",),
    "hat-imac": ("gini",),
    "exact": ("entropy",),
}
KINDS = [
    (policy, criterion)
    for policy in POLICIES
    for criterion in (_BOTH if numba.config.DISABLE_JIT else _COMPILED.get(policy, _BOTH))
]


class NaiveTrees:
    """Trees in dictionaries and lists."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._keeps = settings.policy in ("efdt", "efdt-imac")
        self._adapts = settings.policy in ("hat", "hat-imac")
        self._scores = settings.policy in ("imac", "efdt-imac", "hat-imac")
        self.trees: dict[int, Tree] = {}
        self.started, self.promoted = 0, 0  # alternates
        r = 1.0 if settings.criterion == "gini" else float(log2(float(max(2, settings.classes))))
        if settings.local_range:
            r = 1.0
        self.bound = r * r * float(log2(1.0 / settings.split_confidence)) * math.log(2.0) / 2.0

    # --- the way of an event

    def apply(self, event: Event) -> Outcome:
        """Apply one event."""
        if event.op == Op.DROP:
            self.trees.pop(event.key, None)
            return Outcome(Status.APPLIED)
        if event.op == Op.DELETE:
            return Outcome(Status.CANNOT_FORGET)
        x = {feature: value for feature, value in event.x.items() if value != 0}
        tree = self.trees.get(event.key)
        root = tree.root if tree is not None else None
        if event.op == Op.PREDICT:
            weights = self.weights(root, x)
            return Outcome(
                Status.APPLIED,
                predicted=heaviest(weights),
                weights=tuple(float(weight).hex() for weight in weights),
                leaf=self._walk(root, x)[0].number if root is not None else 0,
            )
        if event.weight < 0:
            return Outcome(Status.WRONG_WEIGHT)
        if not 0 <= event.label < self.settings.classes:
            return Outcome(Status.WRONG_LABEL)
        if event.weight == 0:
            return Outcome(Status.IGNORED)
        if event.weight + (tree.learned if tree is not None else 0) >= MAX_TOTAL:
            return Outcome(Status.COUNT_OVERFLOW)
        if tree is None and len(self.trees) >= self.settings.max_keys:
            return Outcome(Status.TOO_MANY_KEYS)
        predicted, loss = -1, ""
        if self.settings.evaluate or self._adapts:
            weights = self.weights(root, x)
            predicted, total = heaviest(weights), 0.0
            for weight in weights:
                total += weight
            share = weights[event.label] / total if total > 0 else 1.0 / self.settings.classes
            loss = (-float(log2(max(share, 2.0**-50)))).hex()
        tree = tree or self.trees.setdefault(event.key, Tree(Node(self.settings.classes)))
        split, replaced = self._learn(tree, x, event, predicted != event.label)
        changed = split is not None or replaced
        snapshot = columns(tree) if self._is_snapshot_due(tree, event, changed) else None
        return Outcome(Status.APPLIED, predicted, loss, split=split, snapshot=snapshot)

    def _is_snapshot_due(self, tree: Tree, event: Event, changed: bool) -> bool:
        when, n = self.settings.snapshots
        before = tree.period
        tree.period = event.time // n if before is None else max(before, event.time // n)
        return {
            When.NEVER: False,
            When.CHANGE: changed,
            When.EVERY: tree.events % n == 0,
            When.EVERY_MS: before is not None and tree.period > before,
        }[when]

    def _walk(self, node: Node, x: dict[Feature, float]) -> tuple[Node, int | None]:
        """Return the last node on the way of an example, and the branch that it lacks."""
        while node.feature is not None:
            branch = branch_of(node.kind, node.threshold, x.get(node.feature, 0.0))
            if branch not in node.children:
                return node, branch
            node = node.children[branch]
        return node, None

    def _learn(self, tree: Tree, x: dict[Feature, float], event: Event, wrong: bool) -> tuple[Any, bool]:
        """Learn an example; return the split that it led to, and whether an alternate took a node's place."""
        leaf = self._reached(tree, tree.root, x, event)
        tree.events += 1
        tree.learned += event.weight
        learners = self._way(tree.root, x) if self._keeps else [leaf]
        for node in learners:
            self._count(node, x, event)
        replaced = False
        if self._adapts:
            replaced = self._adapt(tree, x, event, wrong)
            beside = [node.alternate for node in self._way(tree.root, x) if node.alternate is not None]
            for node in beside:
                self._try(tree, self._walk(node, x)[0], x, event)
            learners = self._way(tree.root, x)[-1:]
        split = next((split for node in learners if (split := self._try(tree, node, x, event)) is not None), None)
        tree.splits += split is not None
        return split, replaced

    def _reached(self, tree: Tree, top: Node, x: dict[Feature, float], event: Event) -> Node:
        """Return the leaf that is to learn an example, made where there was none."""
        leaf, lacking = self._walk(top, x)
        if lacking is not None:
            leaf.children[lacking] = leaf = Node(self.settings.classes, tree.next_number(), leaf.depth + 1)
        if self.settings.predict >= Predict.ADAPTIVE and leaf.weight:
            for which, weights in enumerate((majority(leaf), self._bayes(leaf, x))):
                leaf.right[which] += event.weight if heaviest(weights) == event.label else 0
        return leaf

    def _count(self, node: Node, x: dict[Feature, float], event: Event) -> None:
        node.seen += 1
        node.squares += (event.weight / UNIT) * (event.weight / UNIT)
        node.counts[event.label] += event.weight
        for feature in sorted(x):
            self._observe(node, feature, x[feature], event)

    def _adapt(self, tree: Tree, x: dict[Feature, float], event: Event, wrong: bool) -> bool:
        """Do what HAT does once the tree has learned; return whether an alternate took a node's place."""
        above = None
        for node in self._way(tree.root, x):
            risen = node.window.add(wrong)
            if node.feature is not None and node.alternate is not None:
                self._learn_beside(tree, node.alternate, x, event)
                better = self._better_by(node, node.alternate)
                if better > 0:
                    if above is None:
                        tree.root = node.alternate
                    else:
                        [branch] = [branch for branch, child in above.children.items() if child is node]
                        above.children[branch] = node.alternate
                    self.promoted += 1
                    return True
                if better < 0:
                    node.alternate = None
            elif node.feature is not None and risen:
                node.alternate = Node(self.settings.classes, tree.next_number(), node.depth)
                self.started += 1
            above = node
        return False

    def _learn_beside(self, tree: Tree, top: Node, x: dict[Feature, float], event: Event) -> None:
        wrong = heaviest(self.weights(top, x)) != event.label
        self._count(self._reached(tree, top, x, event), x, event)
        for node in self._way(top, x):
            node.window.add(wrong)

    def _better_by(self, node: Node, alternate: Node) -> int:
        """Return 1 where an alternate is surely better, -1 where it is surely worse, else 0."""
        n, m = len(node.window.inputs), len(alternate.window.inputs)
        if n < 300 or m < 300:
            return 0
        error = float(node.window.mean)
        gap = error - float(alternate.window.mean)
        constant = 2.0 * float(log2(2.0 / 0.05)) * math.log(2.0)
        bound = math.sqrt(constant * error * (1.0 - error) * (1.0 / n + 1.0 / m))
        return (gap > bound) - (-gap > bound)

    def _way(self, node: Node, x: dict[Feature, float]) -> list[Node]:
        """Return the nodes on the way of an example that lacks no branch."""
        way = [node]
        while node.feature is not None:
            node = node.children[branch_of(node.kind, node.threshold, x.get(node.feature, 0.0))]
            way.append(node)
        return way

    def _try(self, tree: Tree, leaf: Node, x: dict[Feature, float], event: Event) -> Any:
        """Let a node split where that is due, and tell how."""
        due = leaf.depth < self.settings.max_depth and self._is_due(leaf, x, event)
        if not due or sum(count > 0 for count in leaf.counts) < 2:
            return None
        tree.attempts += 1
        best, second = self.best(leaf)
        if self._keeps:
            best, second = self._better(leaf, best)
        if best is not None and self._is_sure(leaf, best[0], second):
            whole = self.impurity(leaf.counts)
            floats = tuple(each.hex() for each in (best[2], best[0], min(second, whole), whole))
            kind = Kind.NUMERIC if is_number(leaf.features[best[1]].kind) else leaf.features[best[1]].kind
            self._split(tree, leaf, best[1], best[2])
            branches = {branch: tuple(child.prior) for branch, child in leaf.children.items()}
            return (leaf.number, best[1], kind, leaf.depth, *floats, tuple(leaf.counts), branches)
        self._failed(leaf, best, second)
        return None

    def _better(self, node: Node, best: tuple[float, Any, float] | None) -> tuple[Any, float]:
        """Return the best split and the score that it must beat, in EFDT: of no split, or of the node's own."""
        if best is None or node.feature is None:
            return best, self.impurity(node.counts)
        own, _ = self.score(node, node.features[node.feature])
        better = best[1] != node.feature and (own - best[0]) / (node.weight / UNIT) > self.margin(node)
        return best if better else None, own

    def _observe(self, leaf: Node, feature: Feature, value: float, event: Event) -> None:
        kind = self.settings.kinds.get(feature, self.settings.default)
        classes = self.settings.classes
        if feature not in leaf.features:
            leaf.features[feature] = Seen(kind, [0] * classes)
            leaf.features[feature].moments = [[0.0, 0.0, math.inf, -math.inf] for _ in range(classes)]
        seen = leaf.features[feature]
        seen.counts[event.label] += event.weight
        if kind == Kind.NOMINAL:
            seen.values.setdefault(int(value), [0] * classes)[event.label] += event.weight
        if kind == Kind.NUMERIC:
            moments = seen.moments[event.label]
            before = value - moments[0]
            mean = moments[0] + before * (float(event.weight) / float(seen.counts[event.label]))
            moments[0] = min(max(mean, min(moments[0], value)), max(moments[0], value))
            moments[1] += event.weight / UNIT * (before * (value - moments[0]))
            moments[2:] = [min(moments[2], value), max(moments[3], value)]
        if kind == Kind.QUANTISED:
            slot = self._slot(seen, value)
            slot.counts[event.label] += event.weight
            mean = slot.mean + (value - slot.mean) * (float(event.weight) / float(sum(slot.counts)))
            slot.mean = min(max(mean, min(slot.mean, value)), max(slot.mean, value))

    def _slot(self, seen: Seen, value: float) -> Slot:
        """Return the slot that a value belongs to, a new one where it has none yet."""
        if not seen.slots:
            seen.radius = self.settings.radius
        if seen.radius is None:
            if value in seen.slots or len(seen.slots) < min(32, self.settings.max_slots):
                return seen.slots.setdefault(value, Slot(value, [0] * self.settings.classes))
            self._settle(seen)
        while True:
            if (code := code_of(seen, value)) is not None:
                if not seen.slots:
                    seen.origin = code - 2**31
                fits = 0 <= code - seen.origin < 2**32
                if fits and (code in seen.slots or len(seen.slots) < self.settings.max_slots):
                    return seen.slots.setdefault(code, Slot(value, [0] * self.settings.classes))
            assert seen.radius is not None
            seen.radius, seen.origin = 2 * seen.radius, seen.origin // 2 - 2**30
            regroup(seen)

    def _settle(self, seen: Seen) -> None:
        """Set the radius from the deviation of the values so far."""
        points = [
            (slot.mean, sum(slot.counts)) for slot in sorted(seen.slots.values(), key=lambda slot: slot.mean)
        ]
        total, middle, squares = sum(weight for _, weight in points), 0.0, 0.0
        for mean, weight in points:
            middle += mean * weight
        middle /= total
        largest = max(middle - points[0][0], points[-1][0] - middle)
        for mean, weight in points:
            squares += weight * (((mean - middle) / largest) * ((mean - middle) / largest))
        deviation = largest * math.sqrt(squares / total)
        seen.radius = max(self.settings.radius_fraction * deviation, 2.0**-1022)
        while True:
            first, last = code_of(seen, points[0][0]), code_of(seen, points[-1][0])
            if first is not None and last is not None and last - first < 2**31:
                break
            seen.radius *= 2
        seen.origin = first - 2**31
        regroup(seen)

    def _split(self, tree: Tree, leaf: Node, feature: Feature, threshold: float) -> None:
        seen = leaf.features[feature]
        absent = [n - count for n, count in zip(leaf.counts, seen.counts, strict=True)]
        if seen.kind == Kind.NOMINAL:
            branches = {0: absent, **dict(reversed(seen.values.items()))}
        elif seen.kind == Kind.BINARY:
            branches = {0: absent, 1: seen.counts}
        else:
            branches = dict(enumerate(self._sides(leaf, seen, threshold)))
        leaf.feature, leaf.threshold = feature, threshold
        leaf.kind = Kind.NUMERIC if is_number(seen.kind) else seen.kind
        leaf.children = {}
        for branch, prior in branches.items():
            if sum(prior):
                leaf.children[branch] = Node(leaf.classes, tree.next_number(), leaf.depth + 1, list(prior))
        leaf.candidates = []
        if self._keeps:
            leaf.since = leaf.seen
        else:
            leaf.features = {}

    # --- scores

    def impurity(self, counts: Sequence[int]) -> float:
        """Return weight times impurity."""
        total, so_far = 0, 0.0
        for count in counts:
            if self.settings.criterion == "gini":
                so_far += (total / UNIT) * (count / UNIT)
            else:
                so_far += xlogx(count)
            total += count
        if self.settings.criterion == "gini":
            return 2.0 * so_far / (total / UNIT) if total else 0.0
        return xlogx(total) - so_far

    def _sides(self, leaf: Node, seen: Seen, threshold: float) -> tuple[list[int], list[int]]:
        """Return the class weights up to a threshold and above it, as estimated."""
        if seen.kind == Kind.QUANTISED:
            lower = [counts for mean, counts in self._points(leaf, seen) if mean <= threshold]
            upper = [counts for mean, counts in self._points(leaf, seen) if mean > threshold]
            return total(lower, leaf.classes), total(upper, leaf.classes)
        below = []
        for n, count, (mean, squares, least, most) in zip(leaf.counts, seen.counts, seen.moments, strict=True):
            deviation = math.sqrt(squares / (count / UNIT)) if count else 0.0
            if threshold < least or not count:
                low = 0
            elif threshold >= most:
                low = count
            elif deviation == 0.0:
                low = count if threshold >= mean else 0
            else:
                low = min(count, int(count * float(cumulative((threshold - mean) / deviation))))
            below.append(low + (n - count if threshold >= 0 else 0))
        return below, [n - low for n, low in zip(leaf.counts, below, strict=True)]

    def _points(self, leaf: Node, seen: Seen) -> list[tuple[float, list[int]]]:
        """Return the prototypes of slots with their class weights, and those of the zeros, in order."""
        points = [(slot.mean, slot.counts) for slot in seen.slots.values()]
        absent = [n - count for n, count in zip(leaf.counts, seen.counts, strict=True)]
        return sorted(points + [(0.0, absent)] * (sum(absent) > 0))

    def score(self, leaf: Node, seen: Seen) -> Score:
        """Return the score of a feature and its threshold; inf where it is no split."""
        if seen.poor:
            return math.inf, 0.0
        absent = [n - count for n, count in zip(leaf.counts, seen.counts, strict=True)]
        if seen.kind == Kind.NUMERIC:
            least = min([moments[2] for moments in seen.moments] + [0.0] * (sum(absent) > 0))
            most = max([moments[3] for moments in seen.moments] + [0.0] * (sum(absent) > 0))
            step = (most - least) / 11
            best = (math.inf, 0.0)
            for threshold in (least + step * k for k in range(1, 11)):
                if least <= threshold < most:
                    low, high = self._sides(leaf, seen, threshold)
                    if sum(low) and sum(high):
                        best = min(best, (self.impurity(low) + self.impurity(high), threshold), key=lambda s: s[0])
            return best
        if seen.kind == Kind.QUANTISED:
            best = (math.inf, 0.0)
            means = [mean for mean, _ in self._points(leaf, seen)]
            for a, b in pairwise(means):
                threshold = a / 2 + b / 2 if a <= a / 2 + b / 2 < b else a
                low, high = self._sides(leaf, seen, threshold)
                best = min(best, (self.impurity(low) + self.impurity(high), threshold), key=lambda s: s[0])
            return best
        branches = list(reversed(seen.values.values())) if seen.kind == Kind.NOMINAL else [seen.counts]
        if len(branches) + (sum(absent) > 0) < 2:
            return math.inf, 0.0
        score = self.impurity(absent)
        for branch in branches:
            score += self.impurity(branch)
        return score, 0.0

    def noise(self, leaf: Node) -> float:
        """Return the gain that could be the error of rounding."""
        n = leaf.weight / UNIT
        return leaf.classes * (2.0**-46 * (abs(n * float(log2(n))) + n + 1.0))

    def best(self, leaf: Node) -> tuple[tuple[float, Any, float] | None, float]:
        """Return the best split (score, feature, threshold) or None, and the score of the second."""
        scores = {feature: self.score(leaf, seen) for feature, seen in leaf.features.items()}
        leaf.gains = {feature: -score / (leaf.weight / UNIT) for feature, (score, _) in scores.items()}
        ranked = sorted((score, feature, at) for feature, (score, at) in scores.items() if score < math.inf)
        whole = self.impurity(leaf.counts)
        if not ranked or not ranked[0][0] < whole - self.noise(leaf):
            return None, whole
        return ranked[0], min([score for score, _, _ in ranked[1:2]] + [whole])

    def examples(self, leaf: Node) -> float:
        """Return the effective number of examples."""
        n = leaf.weight / UNIT
        return n * (n + (sum(leaf.prior) / UNIT if self.settings.inherit else 0.0)) / leaf.squares

    def margin(self, leaf: Node, more: int = 0) -> float:
        """Return the Hoeffding bound."""
        return math.sqrt(self.bound_at(leaf) / (self.examples(leaf) + more))

    def bound_at(self, leaf: Node) -> float:
        """Return R^2 ln(1 / delta) / 2, R being of all classes or of those that a leaf has seen."""
        if not self.settings.local_range:
            return self.bound
        told = leaf.prior if self.settings.inherit else [0] * leaf.classes
        seen = sum(own + other > 0 for own, other in zip(leaf.counts, told, strict=True))
        r = float(log2(float(max(2, seen))))
        return self.bound * (r * r)

    def _is_sure(self, leaf: Node, score: float, second: float) -> bool:
        margin = self.margin(leaf)
        return (second - score) / (leaf.weight / UNIT) > margin or margin < self.settings.tie_threshold

    # --- policies

    def _is_due(self, leaf: Node, x: dict[Feature, float], event: Event) -> bool:
        policy = self.settings.policy
        if policy == "exact":
            return True
        if policy == "osm":
            if leaf.seen < max(leaf.next, self.settings.grace_period):
                return False
            leaf.next = leaf.seen + self.settings.grace_period
            return True
        inner = leaf.feature is not None
        if self._scores and leaf.candidates:
            return self._candidates_say_so(leaf, x, event)
        if leaf.seen - leaf.since < (self.settings.check_every if inner else self.settings.grace_period):
            return False
        leaf.since = leaf.seen
        return True

    def _failed(self, leaf: Node, best: tuple[float, Any, float] | None, second: float) -> None:
        if self.settings.policy == "osm" and best is not None:
            leaf.next = leaf.seen + self._wait(leaf, best, second)
        if self._scores and leaf.feature is None:
            leaf.since = leaf.seen
            top = max(leaf.gains.values(), default=-math.inf)
            leaf.illegal = {feature for feature, gain in leaf.gains.items() if top - gain > self.margin(leaf)}
            able = sorted((-gain, feature) for feature, gain in leaf.gains.items() if gain > -math.inf)
            most = self.settings.candidates or max(5, min(10, len(leaf.features) // 10))
            leaf.candidates = [self._candidate(leaf, feature) for _, feature in able[:most]]
        if self.settings.drop_poor:
            top = max(leaf.gains.values(), default=-math.inf)
            kept = {each.feature for each in leaf.candidates}
            for feature, gain in leaf.gains.items():
                if gain > -math.inf and top - gain > self.margin(leaf) and feature not in kept:
                    leaf.features[feature].poor = True
                    leaf.gains[feature] = -math.inf

    def _wait(self, leaf: Node, best: tuple[float, Any, float], second: float) -> int:
        """Return for how many examples OSM waits."""
        score, feature, threshold = best
        seen = leaf.features[feature]
        absent = [n - count for n, count in zip(leaf.counts, seen.counts, strict=True)]
        if is_number(seen.kind):
            branches = list(self._sides(leaf, seen, threshold))
        else:
            branches = [absent, *(reversed(seen.values.values()) if seen.kind == Kind.NOMINAL else [seen.counts])]
        purest = max((b for b in branches if sum(b)), key=lambda b: max(b) / sum(b))
        each = max(min(leaf.weight // leaf.seen, 2**61 // 100_000), 1)
        n = leaf.weight / UNIT

        def exceeds(x: int) -> bool:
            after = score + self.step(purest, purest.index(max(purest)), x * each) if x else score
            gap = second / n - after / ((leaf.weight + x * each) / UNIT)
            return gap > self.margin(leaf, x)

        low, high = 0, 100_000
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if exceeds(middle) else (middle, high)
        wait = max(high, self.settings.grace_period)
        if self.settings.tie_threshold > 0:
            enough = self.settings.tie_threshold * self.settings.tie_threshold
            until_tie = self.bound_at(leaf) / enough - self.examples(leaf)
            wait = min(wait, max(1, math.floor(until_tie) + 1))
        return wait

    def step(self, branch: Sequence[int], label: int, units: int) -> float:
        """Return what an example adds to a score: theorems 1 and 2."""
        n, m = sum(branch), branch[label]
        if self.settings.criterion == "entropy":
            return (xlogx(n + units) - xlogx(n)) - (xlogx(m + units) - xlogx(m))
        w, total = units / UNIT, n / UNIT
        squares = 0.0
        for count in branch:
            squares += (count / UNIT) * (count / UNIT)
        step = w - (2.0 * w * (m / UNIT) + w * w) / (total + w)
        return step + w * squares / (total * (total + w)) if n else step

    def _candidate(self, leaf: Node, feature: Feature) -> Candidate:
        score, threshold = self.score(leaf, leaf.features[feature])
        seen = leaf.features[feature]
        branches = [list(side) for side in self._sides(leaf, seen, threshold)] if is_number(seen.kind) else []
        return Candidate(feature, score, threshold, branches)

    def _candidates_say_so(self, leaf: Node, x: dict[Feature, float], event: Event) -> bool:
        for each in leaf.candidates:
            self._advance(leaf, each, x.get(each.feature, 0.0), event)
        n = leaf.weight / UNIT
        if leaf.seen - leaf.since >= self.settings.check_every:
            leaf.since = leaf.seen
            taken = {each.feature for each in leaf.candidates} | leaf.illegal
            able = [
                (-leaf.gains[feature], feature)
                for feature in leaf.features
                if feature not in taken and leaf.gains.get(feature, -math.inf) > -math.inf
            ]
            if able:
                rival = self._candidate(leaf, min(able)[1])
                worst = max(leaf.candidates, key=lambda each: (each.score, each.feature))
                loser = worst if rival.score < worst.score else rival
                if loser is worst:
                    leaf.candidates[leaf.candidates.index(worst)] = rival
                top = min(each.score for each in leaf.candidates)
                leaf.gains[loser.feature] = -loser.score / n
                if (loser.score - top) / n > self.margin(leaf):
                    leaf.illegal.add(loser.feature)
        scores = sorted(each.score for each in leaf.candidates)
        whole = self.impurity(leaf.counts)
        if not scores[0] < whole - self.noise(leaf):
            return False
        second = min(scores[1], whole) if scores[1:] and not self._keeps else whole  # EFDT asks for none
        return self._is_sure(leaf, scores[0], second)

    def _advance(self, leaf: Node, each: Candidate, value: float, event: Event) -> None:
        seen = leaf.features[each.feature]
        side = branch_of(seen.kind, each.threshold, value)
        if is_number(seen.kind):
            each.branches[side][event.label] += event.weight
            branch = list(each.branches[side])
        elif side == 0:
            branch = [n - count for n, count in zip(leaf.counts, seen.counts, strict=True)]
        else:
            branch = list(seen.values[side] if seen.kind == Kind.NOMINAL else seen.counts)
        branch[event.label] -= event.weight
        each.score += self.step(branch, event.label, event.weight)

    # --- predictions

    def weights(self, top: Node | None, x: dict[Feature, float]) -> list[float]:
        """Return the class weights for an example, from a node down."""
        if top is None:
            return [0.0] * self.settings.classes
        node, lacking = self._walk(top, x)
        bayes = self.settings.predict == Predict.NAIVE_BAYES or (
            self.settings.predict >= Predict.ADAPTIVE and node.right[1] >= node.right[0]
        )
        if bayes and lacking is None and node.weight:
            return self._bayes(node, x)
        return majority(node)

    def _bayes(self, leaf: Node, x: dict[Feature, float]) -> list[float]:
        smooth = max(min(leaf.weight // leaf.seen, 1 << 61), 1)
        logs = [fixed(float(log2(n / UNIT))) if n else -math.inf for n in leaf.counts]
        for feature, seen in leaf.features.items():
            if seen.poor:
                continue
            value = x.get(feature, 0.0)
            silent = not value and self.settings.predict == Predict.ADAPTIVE_PRESENT
            for k, n in enumerate(leaf.counts):
                if not n or silent:
                    continue
                count = seen.counts[k]
                logs[k] += fixed(float(log2(((count if value else n - count) + smooth) / (n + 2 * smooth))))
                if value and seen.kind == Kind.NOMINAL:
                    of_value = seen.values.get(int(value), [0] * len(logs))[k]
                    logs[k] += fixed(float(log2((of_value + smooth) / (count + len(seen.values) * smooth))))
                if value and seen.kind == Kind.QUANTISED:
                    key = value if seen.radius is None else code_of(seen, value)
                    of_value = seen.slots[key].counts[k] if key in seen.slots else 0
                    logs[k] += fixed(float(log2((of_value + smooth) / (count + len(seen.slots) * smooth))))
                if value and seen.kind == Kind.NUMERIC:
                    logs[k] += fixed(likelihood(seen, k, value))
        shares = [float(exp2((log - max(logs)) / (1 << 28))) for log in logs]
        total = 0.0
        for share in shares:
            total += share
        return [leaf.weight / UNIT * (share / total) for share in shares]
