"""The oracle of forests that forget: naive trees, and lists for all that a forest decides itself.

Hashes are written down anew, on Python's numbers and bytes. Trees are those of naive_dynamic.py.
"""

from __future__ import annotations

import hashlib
import math
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any

from algorithms.core.criteria import UNIT, log2
from algorithms.core.events import OnDuplicate, Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.given import digest_of
from algorithms.core.kinds import Kind
from algorithms.dynamic.terms import EPSILON
from algorithms.forests.pool import ForestPool
from tests.oracles import naive_dynamic
from tests.oracles.differential import Differential
from tests.oracles.naive_dynamic import Event, Feature, NaiveForgetful, columns, counters_of, events_of, rows_of
from tests.oracles.naive_guarantees import NaiveGreedy, check_floors

_E = Fraction("2.718281828459045235360287471352662497757247093699959574966967627724")
_M32 = 2**32 - 1


@dataclass(frozen=True)
class Settings:
    """The parameters of `ForestPool`, with the same meaning."""

    trees: int = 3
    subspace: float | str = 1.0
    bagging: str = "poisson:1"
    seed: int = 0
    epsilon: float | None = 0.1
    guarantee: str | None = None
    alpha: float = 0.0
    min_examples: int = 1
    max_depth: int = 1 << 30
    criterion: str = "gini"
    classes: int = 2
    default: Kind = Kind.BINARY
    kinds: dict[Feature, Kind] = field(default_factory=dict)
    window: int | None = None
    on_duplicate: OnDuplicate = OnDuplicate.REJECT
    names: bool = False
    evaluate: bool = True
    max_keys: int = 1 << 30
    max_live_ids: int = 1 << 30
    max_work: int | None = None
    threads: int = 1

    def pool(self) -> ForestPool:
        """Return a new pool with these settings."""
        return ForestPool(**vars(self))

    def of_a_tree(self) -> naive_dynamic.Settings:
        """Return the settings of one tree."""
        shared = (
            "epsilon",
            "guarantee",
            "alpha",
            "min_examples",
            "max_depth",
            "criterion",
            "classes",
            "default",
            "kinds",
            "max_work",
        )
        return naive_dynamic.Settings(**{name: getattr(self, name) for name in shared}, evaluate=False)


@dataclass(frozen=True)
class Outcome:
    """All that an event led to; floats as hexadecimal text."""

    status: Status
    predicted: int = -1
    loss: str = ""
    rebuilt: int = 0
    votes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Live:
    """A live example of the forest."""

    x: dict[Feature, float]
    label: int
    weight: int
    id: int | None

    @property
    def content(self) -> tuple[Any, ...]:
        """What copies have in common."""
        return (tuple(sorted(self.x.items())), self.label, self.weight)


@dataclass
class Forest:
    """One key."""

    live: list[Live] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    in_trees: dict[Any, int] = field(default_factory=dict)  # an id, or content and copy -> the id in the trees


# --- hashes


def mixed(x: int, y: int) -> int:
    """Return the hash of two numbers of 32 bits."""
    h = (x * 0x2545F491 ^ y * 0x5851F42D) & _M32
    h = (h ^ h >> 16) * 0x2C1B3C6D & _M32
    h = (h ^ h >> 13) * 0x297A2D39 & _M32
    return h ^ h >> 16


def halves(number: int) -> tuple[int, int]:
    """Return the low and the high 32 bits of a number."""
    return number & _M32, number >> 32 & _M32


def hashes_of(feature: Feature) -> tuple[int, int]:
    """Return two hashes of a feature."""
    if isinstance(feature, int):
        return feature, feature
    one, other = mixed(len(feature), 1), mixed(len(feature), 2)
    for at in range(0, len(feature), 4):
        word = int.from_bytes(feature[at : at + 4], "big")
        one, other = mixed(one, word), mixed(word, other)
    return one, other


def content_digest(example: Live) -> tuple[int, int]:
    """Return the digest of an example's content, two numbers of 61 bits."""
    digest = []
    low_weight, high_weight = halves(example.weight)
    for which in (0, 1):
        weight = (low_weight, high_weight) if which == 0 else (high_weight, low_weight)
        total = (mixed(example.label, which + 1) << 29) + mixed(*weight)
        for feature, value in example.x.items():
            own = hashes_of(feature)[which]
            low, high = halves(struct.unpack("<q", struct.pack("<d", value))[0])
            one, other = mixed(low, high), mixed(high, low)
            if which == 0:
                total += (mixed(own, one) << 29) + mixed(other, own)
            else:
                total += (mixed(own, other) << 29) + mixed(one, own)
        digest.append(total & (2**61 - 1))
    return digest[0], digest[1]


def ticket_of(example: Live, copy: int) -> int:
    """Return the ticket of an example."""
    high, low = digest_of(example.id) if example.id is not None else content_digest(example)
    return mixed(mixed(mixed(*halves(high)), mixed(*halves(low))), copy)


def salt(seed: int, tree: int, what: str) -> int:
    """Return the salt of a tree."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {tree} {what}".encode(), digest_size=4).digest(), "little")


def is_seen(settings: Settings, tree: int, feature: Feature) -> bool:
    """Return whether a tree sees a feature."""
    share = settings.subspace
    if isinstance(share, str):
        share = 1 / math.sqrt(int(share.split()[-1]))
    return mixed(salt(settings.seed, tree, "feature"), hashes_of(feature)[0]) < share * 2**32


def times_of(settings: Settings, ticket: int) -> list[int]:
    """Return how many times its weight an example weighs in each tree."""
    found: list[int] = []
    for tree in range(settings.trees):
        hashed = mixed(salt(settings.seed, tree, "example"), ticket)
        if settings.bagging == "none":
            found.append(1)
        elif settings.bagging.startswith("poisson:"):
            found.append(poisson(int(settings.bagging[8:]), hashed))
        else:
            chance = Fraction(int(settings.bagging.split()[0]) - sum(found), settings.trees - tree)
            found.append(int(Fraction(hashed, 2**32) < chance))
    return found


def poisson(mean: int, hashed: int) -> int:
    """Return where a hash is in the distribution of Poisson."""
    chance = total = 1 / _E**mean
    found = 0
    while round(total * 2**32) <= hashed:
        found += 1
        chance = chance * mean / found
        total += chance
    return found


# --- the forest


class _Alone:
    """A tree whose rebuilds are spread, in a pool of its own: its oracle is that of naive_parts.py."""

    def __init__(self, settings: naive_dynamic.Settings) -> None:
        self.pool = settings.pool()

    def apply(self, event: Event) -> naive_dynamic.Outcome:
        """Apply one event."""
        return naive_dynamic.outcomes(self.pool, [event])[0]


class NaiveForest:
    """Forests, in lists and dictionaries."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.terms = settings.of_a_tree().terms()
        of_live = NaiveGreedy if settings.guarantee == "exact" else NaiveForgetful
        kind = of_live if settings.max_work is None else _Alone
        self.trees: list[Any] = [kind(settings.of_a_tree()) for _ in range(settings.trees)]
        self.keys: dict[int, Forest] = {}
        self._numbers: Iterator[int] = count()
        self._most = 1
        if settings.bagging.startswith("poisson:"):
            self._most = 1 + poisson(int(settings.bagging[8:]), _M32 - 1)

    def apply(self, event: Event) -> Outcome:
        """Apply one event."""
        if event.op == Op.DROP:
            self.keys.pop(event.key, None)
            for tree in self.trees:
                tree.apply(event)
            return Outcome(Status.APPLIED)
        by_id = event.op == Op.DELETE and event.id is not None
        if not by_id and any(not math.isfinite(value) for value in event.x.values()):
            return Outcome(Status.WRONG_VALUE)
        x = {f: 1.0 if self.terms.kind(f) == Kind.BINARY else value for f, value in event.x.items() if value != 0}
        if event.op == Op.PREDICT:
            votes = self.votes(event.key, x)
            return Outcome(Status.APPLIED, _most_votes(votes), votes=tuple(votes))
        example = Live(x, event.label, event.weight, event.id)
        return self._insert(event.key, example) if event.op == Op.INSERT else self._delete(event.key, example)

    def votes(self, key: int, x: dict[Feature, float]) -> list[int]:
        """Return the votes of all trees on an example."""
        votes = [0] * self.settings.classes
        for number, tree in enumerate(self.trees):
            out = tree.apply(Event(Op.PREDICT, self._seen(number, x), key=key))
            weights = [float.fromhex(weight) for weight in out.weights]
            total = 0.0
            for weight in weights:
                total += weight
            if total:
                votes = [vote + int(weight / total * UNIT) for vote, weight in zip(votes, weights, strict=True)]
        return votes

    def _seen(self, tree: int, x: dict[Feature, float]) -> dict[Feature, float]:
        return {feature: value for feature, value in x.items() if is_seen(self.settings, tree, feature)}

    def _insert(self, key: int, example: Live) -> Outcome:
        settings, forest = self.settings, self.keys.get(key)
        if example.weight < 0:
            return Outcome(Status.WRONG_WEIGHT)
        if not 0 <= example.label < settings.classes:
            return Outcome(Status.WRONG_LABEL)
        if example.weight == 0:
            return Outcome(Status.IGNORED)
        if forest is None and len(self.keys) >= settings.max_keys:
            return Outcome(Status.TOO_MANY_KEYS)
        live = forest.live if forest is not None else []
        if sum(each.weight for each in live) + example.weight >= MAX_TOTAL // self._most:
            return Outcome(Status.COUNT_OVERFLOW)
        old = next((each for each in live if each.id is not None and each.id == example.id), None)
        if old is not None and settings.on_duplicate != OnDuplicate.REPLACE:
            ignored = settings.on_duplicate == OnDuplicate.IGNORE
            return Outcome(Status.IGNORED if ignored else Status.DUPLICATE_ID)
        named = sum(each.id is not None for other in self.keys.values() for each in other.live)
        if example.id is not None and old is None and named >= settings.max_live_ids:
            return Outcome(Status.TOO_MANY_LIVE_IDS)
        predicted, loss, rebuilt = -1, "", 0
        if settings.evaluate:
            votes = self.votes(key, example.x)
            predicted = _most_votes(votes)
            share = votes[example.label] / sum(votes) if sum(votes) else 1.0 / settings.classes
            loss = (-float(log2(max(share, 2.0**-50)))).hex()
        forest = self.keys.setdefault(key, Forest())
        if old is not None:
            rebuilt += self._forget(key, forest.live.index(old))
        if example.id in forest.dropped:
            forest.dropped.remove(example.id)
        copy = self._copies(forest, example)
        forest.live.append(example)
        number = forest.in_trees[self._name(example, copy)] = next(self._numbers)
        for tree, times in enumerate(times_of(settings, ticket_of(example, copy))):
            if times:
                x, weight = self._seen(tree, example.x), times * example.weight
                rebuilt += self._apply(tree, Event(Op.INSERT, x, example.label, weight, number, key))
        if settings.window is not None and len(forest.live) > settings.window:
            oldest = forest.live[0]
            rebuilt += self._forget(key, 0)
            if oldest.id is not None:
                forest.dropped = [*forest.dropped, oldest.id][-settings.window :]
        return Outcome(Status.APPLIED, predicted, loss, rebuilt)

    def _delete(self, key: int, wanted: Live) -> Outcome:
        forest = self.keys.get(key, Forest())
        if wanted.id is not None:
            at = next((at for at, each in enumerate(forest.live) if each.id == wanted.id), None)
            if at is None:
                return Outcome(Status.ALREADY_DROPPED if wanted.id in forest.dropped else Status.ABSENT_ID)
        else:
            same = [at for at, each in enumerate(forest.live) if each == wanted]
            at = same[-1] if same else None
            if at is None:
                return Outcome(Status.ABSENT_EXAMPLE)
        return Outcome(Status.APPLIED, rebuilt=self._forget(key, at))

    def _copies(self, forest: Forest, example: Live) -> int:
        """Return how many live copies an example has, 0 of one with an id."""
        return 0 if example.id is not None else forest.live.count(example)

    def _name(self, example: Live, copy: int) -> Any:
        return example.id if example.id is not None else (example.content, copy)

    def _forget(self, key: int, at: int) -> int:
        """Strike an example out: the trees forget its highest copy; return how many examples were rebuilt."""
        forest = self.keys[key]
        example = forest.live.pop(at)
        copy = self._copies(forest, example)
        number = forest.in_trees.pop(self._name(example, copy))
        times = times_of(self.settings, ticket_of(example, copy))
        return sum(
            self._apply(tree, Event(Op.DELETE, id=number, key=key)) for tree, often in enumerate(times) if often
        )

    def _apply(self, tree: int, event: Event) -> int:
        out: naive_dynamic.Outcome = self.trees[tree].apply(event)
        assert out.status == Status.APPLIED
        return out.rebuilt


def _most_votes(votes: Sequence[int]) -> int:
    return max(range(len(votes)), key=lambda k: (votes[k], -k)) if any(votes) else -1


# --- a pool beside it


def outcomes(pool: ForestPool, events: Sequence[Event], rng: random.Random | None = None) -> list[Outcome]:
    """Apply events to a pool as one batch and return what each led to, in the oracle's words."""
    batch = events_of(events, pool, rng)
    answers = pool.apply(batch)
    pool.sweep(batch.feature)
    votes = dict(zip(answers.asked.tolist(), answers.votes.tolist(), strict=True))
    told = pool.rules.evaluated
    is_counted = (
        pool.parts.pools[0].rules.terms.policy == EPSILON
    )  # looks rebuild what they find, and when is theirs
    return [
        Outcome(
            status=Status(status),
            predicted=int(answers.predicted[at]),
            loss=float(answers.loss[at]).hex() if told and status == 0 and events[at].op == Op.INSERT else "",
            rebuilt=int(answers.rebuilt[at]) if is_counted else 0,
            votes=tuple(votes.get(at, ())),
        )
        for at, status in enumerate(answers.status.tolist())
    ]


class Pair(Differential):
    """A differential harness: a pool beside its oracle, compared after every batch."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, NaiveForest(settings), outcomes)

    def compare(self, key: int) -> None:
        """Compare all trees of a key, their s(v) and c(v), and its sizes with the oracle's."""
        nodes = 0
        for number, naive in enumerate(self.twin.trees):
            if self.settings.max_work is not None:
                assert rows_of(self.pool.tree(number, key)) == rows_of(naive.pool.tree(key))
                nodes += len(naive.pool.tree(key).number)
                continue
            tree = naive.trees.get(key)
            own = columns(naive.terms, tree.root if tree is not None else None)
            assert rows_of(self.pool.tree(number, key)) == own
            trees, at = self.pool.parts.home(key * self.settings.trees + number)
            if self.settings.guarantee == "exact":
                check_floors(trees, naive.terms, at)
            else:
                assert counters_of(trees, at) == [
                    (node.built, node.edits, node.built_weight, node.edited_weight)
                    for node in (tree.root.preorder() if tree is not None else ())
                ]
            nodes += len(own)
        sizes = self.pool.sizes(key)
        forest = self.twin.keys.get(key, Forest())
        assert (sizes.examples, sizes.nodes) == (len(forest.live), nodes)

    def check(self) -> None:
        """Raise AssertionError unless the pool's invariants hold and its sizes are the oracle's."""
        self.pool.check()
        assert self.pool.alive == len(self.twin.keys)
        assert self.pool.live_examples == sum(len(forest.live) for forest in self.twin.keys.values())
