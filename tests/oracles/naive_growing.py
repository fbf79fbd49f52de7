"""The oracle of forests that grow: naive trees and naive detectors, a list of places for each key."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from algorithms.core.criteria import UNIT, log2
from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.kinds import Kind
from algorithms.forests.growing import GrowingForestPool
from algorithms.trees.predict import Predict
from tests.oracles import naive_forest, tree_parts
from tests.oracles.differential import Differential, columns_of
from tests.oracles.naive_adwin import Window
from tests.oracles.naive_forest import halves, hashes_of, mixed, poisson, salt
from tests.oracles.naive_trees import NaiveTrees
from tests.oracles.tree_parts import Event, Feature, columns
from tests.oracles.tree_streams import tree_columns

_M32 = 2**32 - 1


@dataclass(frozen=True)
class Settings:
    """The parameters of `GrowingForestPool`, with the same meaning."""

    trees: int = 3
    subspace: float | str = 1.0
    bagging: str = "poisson:1"
    seed: int = 0
    warning: float = 0.999  # loose, so that short streams drift
    drift: float = 0.02
    policy: str = "periodic"
    criterion: str = "entropy"
    predict: Predict = Predict.ADAPTIVE
    grace_period: int = 10
    split_confidence: float = 0.5
    tie_threshold: float = 0.3
    inherit: bool = False
    local_range: bool = False
    max_depth: int = 1 << 30
    classes: int = 2
    default: Kind = Kind.BINARY
    kinds: dict[Feature, Kind] = field(default_factory=dict)
    names: bool = False
    max_keys: int = 1 << 30
    threads: int = 1

    def pool(self) -> GrowingForestPool:
        """Return a new pool with these settings."""
        return GrowingForestPool(**vars(self))

    def of_a_tree(self) -> tree_parts.Settings:
        """Return the settings of one tree."""
        own = ("trees", "subspace", "bagging", "seed", "warning", "drift", "names", "max_keys", "threads")
        shared = {name: value for name, value in vars(self).items() if name not in own}
        return tree_parts.Settings(**shared, check_every=self.grace_period, evaluate=False)


@dataclass(frozen=True)
class Outcome:
    """All that an event led to; floats as hexadecimal text."""

    status: Status
    predicted: int = -1
    loss: str = ""
    votes: tuple[int, ...] = ()


@dataclass
class Member:
    """A tree, by the number of its place's trees; how often it was asked, and has lately been right."""

    number: int
    asked: int = 0
    right: int = 0

    def note(self, predicted: int, label: int) -> None:
        """Note whether it was right, where it knew something."""
        if predicted < 0:
            return
        right = predicted == label
        self.asked += 1
        self.right += (UNIT * right - self.right) // min(self.asked, 256)


@dataclass
class Place:
    """A place in a forest."""

    voter: Member
    warnings: Window
    drifts: Window
    beside: Member | None = None
    made: int = 0
    counts: list[int] = field(default_factory=lambda: [0, 0])  # warnings, drifts


@dataclass
class Forest:
    """One key."""

    places: list[Place]
    events: int = 0
    learned: int = 0


class NaiveGrowing:
    """Forests, in lists and dictionaries."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.trees = NaiveTrees(settings.of_a_tree())  # by key, place and number
        self.keys: dict[int, Forest] = {}
        self._most = 1
        if settings.bagging.startswith("poisson:"):
            self._most = 1 + poisson(int(settings.bagging[8:]), _M32 - 1)

    def apply(self, event: Event) -> Outcome:
        """Apply one event."""
        settings = self.settings
        if event.op == Op.DROP:
            self.keys.pop(event.key, None)
            for at in [at for at in self.trees.trees if at[0] == event.key]:  # type: ignore[index]
                del self.trees.trees[at]
            return Outcome(Status.APPLIED)
        if event.op == Op.DELETE:
            return Outcome(Status.CANNOT_FORGET)
        if event.op == Op.PREDICT:
            forest = self.keys.get(event.key) or self._forest()
            votes = [self._ask(event, at, place.voter)[1] for at, place in enumerate(forest.places)]
            return self._said(event, votes, asked=True)
        if event.weight < 0:
            return Outcome(Status.WRONG_WEIGHT)
        if not 0 <= event.label < settings.classes:
            return Outcome(Status.WRONG_LABEL)
        if event.weight == 0:
            return Outcome(Status.IGNORED)
        if event.key not in self.keys and len(self.keys) >= settings.max_keys:
            return Outcome(Status.TOO_MANY_KEYS)
        forest = self.keys.get(event.key) or self._forest()
        if forest.learned + event.weight >= MAX_TOTAL // self._most:
            return Outcome(Status.COUNT_OVERFLOW)
        self.keys[event.key] = forest
        halved = mixed(*halves(forest.events))
        drawn = naive_forest.times_of(settings, mixed(mixed(halved, halved), 0))  # type: ignore[arg-type]
        votes = [self._learn(event, at, place, drawn[at]) for at, place in enumerate(forest.places)]
        forest.events += 1
        forest.learned += event.weight
        return self._said(event, votes, asked=False)

    def _forest(self) -> Forest:
        return Forest(
            [
                Place(Member(0), Window(self.settings.warning), Window(self.settings.drift))
                for _ in range(self.settings.trees)
            ]
        )

    def _said(self, event: Event, votes: Sequence[Sequence[int]], *, asked: bool) -> Outcome:
        summed = [sum(vote[k] for vote in votes) for k in range(self.settings.classes)]
        best = max(range(len(summed)), key=lambda k: (summed[k], -k)) if any(summed) else -1
        if asked:
            return Outcome(Status.APPLIED, best, votes=tuple(summed))
        share = summed[event.label] / sum(summed) if any(summed) else 1.0 / len(summed)
        return Outcome(Status.APPLIED, best, (-float(log2(max(share, 2.0**-50)))).hex())

    def _seen(self, event: Event, at: int, member: Member) -> dict[Feature, float]:
        """Return what a tree sees of an example: each that a place has had sees another part."""
        share = self.settings.subspace
        if isinstance(share, str):
            share = 1 / math.sqrt(int(share.split()[-1]))
        own = mixed(salt(self.settings.seed, at, "feature"), member.number)
        return {f: value for f, value in event.x.items() if mixed(own, hashes_of(f)[0]) < share * 2**32}

    def _ask(self, event: Event, at: int, member: Member) -> tuple[int, list[int]]:
        """Return what a tree predicts, and its vote."""
        told = self._tell(Op.PREDICT, event, at, member)
        weights, total = [float.fromhex(weight) for weight in told.weights], 0.0
        for weight in weights:
            total += weight
        right = max(member.right, UNIT // 256) if member.asked else UNIT
        votes = [(int(weight / total * UNIT) * right) >> 20 if total else 0 for weight in weights]
        return told.predicted, votes

    def _tell(self, op: Op, event: Event, at: int, member: Member, times: int = 1) -> tree_parts.Outcome:
        key: Any = (event.key, at, member.number)
        x = self._seen(event, at, member)
        out = self.trees.apply(Event(op, x, event.label, times * event.weight, key=key))
        assert out.status == Status.APPLIED
        return out

    def _learn(self, event: Event, at: int, place: Place, times: int) -> list[int]:
        """Ask the trees of a place, let them learn, watch the one that votes; return its vote."""
        predicted, votes = self._ask(event, at, place.voter)
        wrong = predicted != event.label
        place.voter.note(predicted, event.label)
        if place.beside is not None:
            place.beside.note(self._ask(event, at, place.beside)[0], event.label)
        for member in (place.voter, place.beside):
            if member is not None and times:
                self._tell(Op.INSERT, event, at, member, times)
        warned, drifted = place.warnings.add(wrong), place.drifts.add(wrong)
        if drifted:
            place.counts[1] += 1
            self.trees.trees.pop((event.key, at, place.voter.number), None)  # type: ignore[call-overload]
            place.voter = place.beside or self._begun(place)
            place.beside = None
            place.warnings, place.drifts = Window(self.settings.warning), Window(self.settings.drift)
        elif warned:
            place.counts[0] += 1
            if place.beside is not None:
                self.trees.trees.pop((event.key, at, place.beside.number), None)  # type: ignore[call-overload]
            place.beside = self._begun(place)
        return votes

    def _begun(self, place: Place) -> Member:
        place.made += 1
        return Member(place.made)


def outcomes(pool: GrowingForestPool, events: Sequence[Event], rng: random.Random | None = None) -> list[Outcome]:
    """Apply events to a pool as one batch and return what each led to, in the oracle's words."""
    batch = columns_of(events, pool, rng)
    answers = pool.apply(batch)
    pool.sweep(batch.feature)
    votes = dict(zip(answers.asked.tolist(), answers.votes.tolist(), strict=True))
    return [
        Outcome(
            status=Status(status),
            predicted=int(answers.predicted[at]),
            loss=float(answers.loss[at]).hex() if status == 0 and events[at].op == Op.INSERT else "",
            votes=tuple(votes.get(at, ())),
        )
        for at, status in enumerate(answers.status.tolist())
    ]


class Pair(Differential):
    """A differential harness: a pool beside its oracle, compared after every batch."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, NaiveGrowing(settings), outcomes)

    def compare(self, key: int) -> None:
        """Compare the trees of a key that vote, how often they were right, and what the detectors have led to."""
        forest = self.twin.keys.get(key)
        places = forest.places if forest is not None else []
        for at, tree in enumerate(self.pool.trees(key) if places else ()):
            naive = self.twin.trees.trees.get((key, at, places[at].voter.number))
            assert tree_columns(tree) == columns(naive)
        sizes = self.pool.sizes(key)
        assert (sizes.warnings, sizes.drifts) == tuple(sum(each.counts[n] for each in places) for n in (0, 1))
        assert sizes.beside == sum(place.beside is not None for place in places)
        if places:
            right = [place.voter.right / UNIT if place.voter.asked else -1.0 for place in places]
            told = self.pool.accuracies(key)
            assert [-1.0 if math.isnan(each) else each for each in told.tolist()] == right

    def check(self) -> None:
        """Raise AssertionError unless the pool's invariants hold and it has the oracle's trees."""
        self.pool.check()
        assert self.pool.alive == len(self.twin.keys)
        assert self.pool.parts.alive == len(self.twin.trees.trees)
