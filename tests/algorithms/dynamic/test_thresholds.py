"""Thresholds in bands: what is counted is true, bounds hold for every threshold, and few edits cost a scan."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from algorithms.core.criteria import UNIT
from algorithms.core.events import Op
from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.dynamic import bands
from algorithms.dynamic.bands import INSIDE, OWN, SIZE
from algorithms.dynamic.numbers import DynamicNumberPool
from algorithms.dynamic.pool import DynamicPool
from tests.algorithms.dynamic.test_dynamic import OFF, steps
from tests.oracles.naive_dynamic import Event, Settings
from tests.oracles.naive_dynamic_numbers import NumberSettings
from tests.oracles.naive_guarantees import GreedyPair
from tests.oracles.naive_number_guarantees import NumberGreedyPair

KINDS: dict[Any, Kind] = {0: Kind.NUMERIC}
TERMS: dict[str, Any] = {"epsilon": None, "guarantee": "exact", "max_depth": 2, "kinds": KINDS, "evaluate": False}
LABELS = {"two": 2, "seven": 7, "numbers": 0, "far numbers": 0}


def pair_of(labels: str, criterion: str) -> GreedyPair:
    """Return a pool of trees that are two deep, on one feature, beside its twin."""
    if LABELS[labels]:
        return GreedyPair(Settings(**TERMS, classes=LABELS[labels], criterion=criterion))
    low = 1e6 if labels == "far numbers" else -50.0
    return NumberGreedyPair(NumberSettings(**TERMS, scale=(low, low + 100.0, 0.5)))


class Stream:
    """Values of one feature, of which labels say something; live examples go by their ids, any of them."""

    def __init__(self, labels: str, seed: int, *, values: int, heavy: bool) -> None:
        self._random = random.Random(seed)
        self._labels, self._values, self._heavy = labels, values, heavy
        self._live: list[int] = []
        self._next = 0

    def insert(self) -> Event:
        """Return an insert."""
        draw = self._random
        value = round(draw.gauss(0.0, 1.0) * self._values) / self._values
        self._live.append(self._next)
        self._next += 1
        weight = draw.choice((UNIT, UNIT, 3 * UNIT)) if self._heavy else UNIT
        return Event(Op.INSERT, {0: value} if value else {}, self._label(value), weight, self._live[-1])

    def delete(self) -> Event:
        """Return a delete."""
        at = self._random.randrange(len(self._live))
        self._live[at], self._live[-1] = self._live[-1], self._live[at]
        return Event(Op.DELETE, id=self._live.pop())

    def edit(self) -> Event:
        """Return either."""
        return self.delete() if len(self._live) > 50 and self._random.random() < 0.6 else self.insert()

    def _label(self, value: float) -> Any:
        noise = self._random.gauss(0.0, 0.7)
        if LABELS[self._labels]:
            return min(max(int((value + noise) * 2.0 + 1.0), 0), LABELS[self._labels] - 1)
        middle = 0.0 if self._labels == "numbers" else 1e6 + 50.0
        return middle + max(min(round((value + noise) * 12.0), 49), -49)


@pytest.mark.skipif(not OFF, reason="compiled kernels do not see another width, and trees are small")
@pytest.mark.parametrize("width", [3, 4, 7, 48])
@pytest.mark.parametrize(
    ("labels", "criterion"),
    [
        *((labels, criterion) for labels in ("two", "seven") for criterion in ("gini", "entropy")),
        *((labels, "") for labels in ("numbers", "far numbers")),
    ],
)
def test_bands_are_true_and_under_what_thresholds_leave(
    labels: str, criterion: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each edit, however many there were since the last look; where there are few bands, and many."""
    monkeypatch.setattr(bands, "WIDTH", width + 2)
    monkeypatch.setattr(bands, "WORTHWHILE", 2)
    wide = moved = 0
    for seed, values, looks in ((1, 4, 0.1), (2, 30, 0.03), (3, 1000, 0.02), (4, 1000, 0.3)):
        pair, stream = pair_of(labels, criterion), Stream(labels, seed, values=values, heavy=seed % 2 == 0)
        draw = random.Random(seed)
        pair.feed([stream.insert() for _ in range(70)])
        for _ in range(steps(120)):
            pair.feed([stream.edit()])
            if not pair.pool._state.slack.bands.of.any() or draw.random() < looks:
                pair.feed([Event(Op.PREDICT, {0: draw.gauss(0.0, 1.0)}) for _ in range(3)])
            held = pair.pool._state.slack.bands
            for row in (held.of[held.of > 0] - 1).tolist():
                inside = held.sums[row, INSIDE : 2 * held.heads[row, SIZE] : 2]
                wide += int(np.count_nonzero(inside.any(axis=1)))
                moved += int(np.count_nonzero(held.gone[row]))
        pair.check()
        pair.restored()
    assert wide > 100
    assert moved > 30


@pytest.mark.skipif(OFF, reason="how much is scanned does not depend on the compiler")
@pytest.mark.parametrize("numbers", [False, True])
def test_few_edits_make_a_column_scanned(numbers: bool) -> None:
    """Of a thousand examples, whose order of values is no order in time, hardly any edit has a look scan them."""
    stream = Stream("far numbers" if numbers else "two", 5, values=10_000, heavy=False)
    pool: Any = DynamicPool(guarantee="exact", max_depth=1, kinds=KINDS, evaluate=True)
    if numbers:
        scale = Scale(1e6, 1e6 + 100.0, 0.5)
        pool = DynamicNumberPool(scale, guarantee="exact", max_depth=1, kinds=KINDS, evaluate=True)
    scanned = 0
    for at in range(1200):
        event = stream.insert()
        pool.insert(event.x, event.label, id=event.id)
        if at >= 1000:
            pool.delete(id=at - 1000)
            _, answers = pool._one(Op.PREDICT, event.x, 0, UNIT, None, 0, 1)
            scanned += int(answers.scanned.sum())
    held = pool._state.slack.bands
    assert held.of.any()
    assert held.heads[held.of[held.of > 0] - 1, OWN].all()
    assert scanned < (90 if numbers else 40) * 1000
