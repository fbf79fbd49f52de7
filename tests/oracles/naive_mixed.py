"""The oracle of splits of K labels and of any features: lists of live examples, and every question scored anew.

It is written from what `MixedSplitPool` promises, not from how it works, and shares log2 and the ids' digests
with it, because ties are decided on floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.mixed.pool import Split
from tests.oracles.naive_dynamic import Terms

Feature: TypeAlias = int | bytes
NOTHING: dict[Feature, float] = {}


class Example(NamedTuple):
    """A live example: no zeros, the weight in units."""

    x: Mapping[Feature, float]
    label: int
    weight: int
    id: Any


@dataclass
class Key:
    """What is held of a key."""

    live: list[Example] = field(default_factory=list)  # oldest first
    dropped: list[Any] = field(default_factory=list)  # ids that the window let go, oldest first


@dataclass
class NaiveMixed:
    """The parameters of `MixedSplitPool`, with the same meaning."""

    classes: int = 2
    criterion: str = "entropy"
    default: Kind = Kind.BINARY
    kinds: dict[Feature, Kind] = field(default_factory=dict)
    window: int | None = None
    on_duplicate: OnDuplicate = OnDuplicate.REJECT
    max_keys: int = 1 << 30
    max_live_ids: int = 1 << 30
    keys: dict[int, Key] = field(default_factory=dict)

    @property
    def terms(self) -> Terms:
        """How nodes are scored."""
        return Terms(classes=self.classes, criterion=self.criterion, default=self.default, kinds=self.kinds)

    def canonical(self, x: Mapping[Feature, float] | Iterable[Feature]) -> dict[Feature, float]:
        """Return an example without its zeros, 1 where what is binary is present."""
        pairs = x.items() if isinstance(x, Mapping) else ((each, 1.0) for each in x)
        return {
            name: 1.0 if self.terms.kind(name) == Kind.BINARY else float(value) for name, value in pairs if value
        }

    # --- events

    def insert(self, x: Any, label: int, weight: float = 1.0, id: Any = None, key: int = 0) -> Status:
        """Learn an example."""
        units = round(weight * UNIT)
        if units == 0:
            return Status.IGNORED
        if key not in self.keys and len(self.keys) >= self.max_keys:
            return Status.TOO_MANY_KEYS
        held = self.keys.get(key, Key())
        if units + sum(each.weight for each in held.live) >= MAX_TOTAL:
            return Status.COUNT_OVERFLOW
        same = [each for each in held.live if id is not None and each.id == id]
        if same and self.on_duplicate != OnDuplicate.REPLACE:
            return Status.IGNORED if self.on_duplicate == OnDuplicate.IGNORE else Status.DUPLICATE_ID
        named = sum(each.id is not None for every in self.keys.values() for each in every.live)
        if id is not None and not same and named >= self.max_live_ids:
            return Status.TOO_MANY_LIVE_IDS
        self.keys[key] = held
        held.live = [each for each in held.live if each not in same]
        held.dropped = [each for each in held.dropped if each != id]
        held.live.append(Example(self.canonical(x), label, units, id))
        if self.window is not None and len(held.live) > self.window:
            gone = held.live.pop(0)
            if gone.id is not None:
                held.dropped.append(gone.id)
                del held.dropped[: -self.window]
        return Status.APPLIED

    def delete(self, x: Any = (), label: int = 0, weight: float = 1.0, id: Any = None, key: int = 0) -> Status:
        """Forget an example; of equal ones the newest."""
        held = self.keys.get(key, Key())
        if id is not None:
            found = [each for each in held.live if each.id == id]
            if not found:
                return Status.ALREADY_DROPPED if id in held.dropped else Status.ABSENT_ID
        else:
            wanted = Example(self.canonical(x), label, round(weight * UNIT), None)
            found = [each for each in held.live if each == wanted]
            if not found:
                return Status.ABSENT_EXAMPLE
        at = max(at for at, each in enumerate(held.live) if each == found[-1])
        del held.live[at]
        return Status.APPLIED

    def drop(self, key: int = 0) -> None:
        """Forget a key."""
        self.keys.pop(key, None)

    # --- looking

    def questions(self, live: Sequence[Example]) -> list[tuple[Feature, float]]:
        """Return feature and threshold, or category, of all that can be asked of examples."""
        found: list[tuple[Feature, float]] = []
        for feature in {name for each in live for name in each.x}:
            values = sorted({each.x.get(feature, 0.0) for each in live})
            kind = self.terms.kind(feature)
            if kind == Kind.NUMERIC:
                middles = [(low, low / 2.0 + high / 2.0, high) for low, high in pairwise(values)]
                found += [(feature, middle if low <= middle < high else low) for low, middle, high in middles]
            else:
                found += [(feature, value if kind == Kind.NOMINAL else 0.0) for value in values if value]
        return found

    def is_high(self, feature: Feature, threshold: float, x: Mapping[Feature, float]) -> bool:
        """Return whether an example is present, of the category, or above the threshold."""
        value, kind = x.get(feature, 0.0), self.terms.kind(feature)
        if kind == Kind.NUMERIC:
            return value > threshold
        return value == threshold if kind == Kind.NOMINAL else value != 0.0

    def weights(self, live: Iterable[Example]) -> list[int]:
        """Return the weights of the labels of examples."""
        found = [0] * self.classes
        for each in live:
            found[each.label] += each.weight
        return found

    def best(self, key: int = 0) -> Split:
        """Return the best split of a key."""
        live = self.keys.get(key, Key()).live
        totals = self.weights(live)
        node = self.terms.impurity(totals)
        none = Split(None, None, None, node, None, node, node, tuple(totals), (0,) * self.classes)
        if sum(each > 0 for each in totals) < 2:
            return none
        scored = []
        for feature, threshold in self.questions(live):
            above = self.weights(each for each in live if self.is_high(feature, threshold, each.x))
            low = [whole - part for whole, part in zip(totals, above, strict=True)]
            if any(above) and any(low):
                scored.append(
                    (self.terms.impurity(low) + self.terms.impurity(above), feature, threshold, tuple(above))
                )
        if not scored:
            return none
        score, feature, threshold, high = min(scored)
        others = [each for each in scored if each[1] != feature]
        kind = self.terms.kind(feature)
        return Split(
            feature,
            kind,
            None if kind == Kind.BINARY else threshold,
            score,
            min(others)[1] if others else None,
            min(others)[0] if others else node,
            node,
            tuple(totals),
            high,
        )

    def predict(self, x: Any, key: int = 0) -> list[float]:
        """Return the weights of the labels on the side of the best split that an example is on."""
        split, live = self.best(key), self.keys.get(key, Key()).live
        if split.feature is not None:
            threshold = split.threshold or 0.0
            side = self.is_high(split.feature, threshold, self.canonical(x))
            live = [each for each in live if self.is_high(split.feature, threshold, each.x) == side]
        return [each / UNIT for each in self.weights(live)]
