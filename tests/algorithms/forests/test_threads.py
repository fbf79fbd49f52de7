"""Forests whose trees run in threads: results and arrays are the same bytes with any number of them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numba
import numpy as np
import pytest

from algorithms.core.crew import Crew, Task
from algorithms.forests import growing, pool
from algorithms.forests.growing import GrowingForestPool
from algorithms.forests.pool import ForestPool
from tests.algorithms.dynamic import test_dynamic
from tests.algorithms.forests import test_forests, test_growing_forests
from tests.oracles import differential, naive_dynamic
from tests.support.examples import budget

OFF = bool(numba.config.DISABLE_JIT)
THREADS = (1, 2, 3, 5)


class Settings(Protocol):
    """What a pool is made of."""

    def pool(self) -> Any:
        """Return a new pool."""


Feed = Callable[[Any, Sequence[Any]], Any]


def _forgetting(**rest: Any) -> tuple[Any, Sequence[Any], Feed]:
    mix = test_dynamic.MIXES["keys"]
    if rest.get("names"):
        mix = test_dynamic.Mix({b"%d" % at: kind for at, kind in enumerate(mix.kinds.values())}, indexes=2)
    chosen = test_forests.of(mix, trees=21, subspace=0.7, window=25, **rest)
    events = test_dynamic.Stream(5, mix).take(budget(400))

    def feed(forests: ForestPool, batch: Sequence[Any]) -> Any:
        told = naive_dynamic.events_of(batch, forests)
        answers = forests.apply(told)
        forests.sweep(told.feature)
        return answers

    return chosen, events, feed


def _growing(**rest: Any) -> tuple[Any, Sequence[Any], Feed]:
    mix = test_growing_forests.NAMED if rest.get("names") else test_growing_forests.MIXED
    chosen = test_growing_forests.of(mix, trees=7, subspace=0.7, **rest)
    events = list(test_growing_forests.drifting(5, mix, budget(400), every=40))

    def feed(forests: GrowingForestPool, batch: Sequence[Any]) -> Any:
        told = differential.columns_of(batch, forests)
        answers = forests.apply(told)
        forests.sweep(told.feature)
        return answers

    return chosen, events, feed


FORESTS: dict[str, Callable[[], tuple[Any, Sequence[Any], Feed]]] = {
    "forgetting": lambda: _forgetting(bagging="poisson:6"),
    "forgetting, names": lambda: _forgetting(bagging="3 of 21", names=True),
    "forgetting, exact": lambda: _forgetting(bagging="poisson:1", epsilon=None, guarantee="exact"),
    "growing": lambda: _growing(bagging="poisson:6"),
    "growing, names": lambda: _growing(bagging="3 of 7", names=True),
}


def _digest(parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return found.hexdigest()


def _made(chosen: Settings, threads: int) -> Any:
    """Return a new pool with these settings and so many threads."""
    return type(chosen)(**vars(chosen) | {"threads": threads}).pool()


@pytest.mark.parametrize("size", [1, 9, 150])
@pytest.mark.parametrize("name", FORESTS)
def test_threads_change_no_byte(monkeypatch: pytest.MonkeyPatch, name: str, size: int) -> None:
    """After every batch, of any size and restored anywhere: answers and all arrays."""
    for module in (pool, growing):
        monkeypatch.setattr(module, "_APART", 0)  # so that there is always enough to do
    used, run = set[int](), Crew.run

    def noted(crew: Crew, tasks: Sequence[Task]) -> None:
        used.add(crew.threads)
        run(crew, tasks)

    monkeypatch.setattr(Crew, "run", noted)
    chosen, events, feed = FORESTS[name]()
    events = events[: 60 if size == 1 else None]
    seen = []
    for threads in THREADS:
        forests, draw, own = _made(chosen, threads), random.Random(size), []
        for begin in range(0, len(events), size):
            own.append(_digest(feed(forests, events[begin : begin + size])))
            own.append(_digest(each for pair in forests.arrays().items() for each in pair))
            if draw.random() < 0.2:
                arrays = {each: array.copy() for each, array in forests.arrays().items()}
                forests = _made(chosen, draw.choice(THREADS)).restore(arrays)
        forests.check()
        seen.append(own)
    assert all(each == seen[0] for each in seen)
    assert used == set(THREADS)


def test_little_work_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single example of few trees is learned before another thread would have begun."""
    started = list[object]()
    monkeypatch.setattr(Crew, "_start", lambda crew: started.append(crew))
    for make in (ForestPool, GrowingForestPool):
        forests: Any = make(threads=2)
        forests.apply(growing._NOTHING)
        for at in range(5):
            forests.insert([at], at % 2)
            forests.predict([at])
    assert not started


@pytest.mark.parametrize("make", [ForestPool, GrowingForestPool])
@pytest.mark.parametrize("threads", [0, 65, "2"])
def test_wrong_numbers_of_threads_are_refused(make: Any, threads: Any) -> None:
    """What was expected is told."""
    with pytest.raises(ValueError, match="threads, a whole number from 1 to 64"):
        make(threads=threads)
