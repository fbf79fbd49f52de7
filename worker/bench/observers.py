"""`bench observers`: observers of one numeric feature for regression, by the protocol of paper 004's section 5.

A sample is drawn, observed example by example, and asked for its best split. Figures are means over distributions,
noise and repetitions, as in the paper's Figure 1; the last line has mean ranks, as its Figures 2, 4, 5 and 6.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np

from algorithms.core.arrays import Float64s
from algorithms.regression.observer import Observer
from worker.bench.cases import Progress, Row, machine, significant

TASKS = ("lin", "cub")
BASE = "ebst"
_RADIUS = 0.01
_DECIMALS = 3

# Both sides are one thread that computes: CPU time is what the work takes on a machine that does other work as
# well.
_clock = time.process_time_ns


class Distribution(NamedTuple):
    """What values are drawn from: one or two parts, each as likely."""

    name: str
    uniform: bool
    parts: tuple[tuple[float, float], ...]  # mean and deviation of a normal one, bounds of a uniform one
    noise: float  # deviation of what is added to the values of noisy examples


# Table 1. The smaller noise is for the distributions that are narrow themselves.
DISTRIBUTIONS = (
    Distribution("normal(0,1)", False, ((0.0, 1.0),), 0.1),
    Distribution("normal(0,0.1)", False, ((0.0, 0.1),), 0.01),
    Distribution("normal(0,7)", False, ((0.0, 7.0),), 0.1),
    Distribution("uniform(-1,1)", True, ((-1.0, 1.0),), 0.1),
    Distribution("uniform(-0.1,0.1)", True, ((-0.1, 0.1),), 0.01),
    Distribution("uniform(-7,7)", True, ((-7.0, 7.0),), 0.1),
    Distribution("bimodal(-1,1|1,1)", False, ((-1.0, 1.0), (1.0, 1.0)), 0.1),
    Distribution("bimodal(-0.1,0.1|0.1,0.1)", False, ((-0.1, 0.1), (0.1, 0.1)), 0.01),
    Distribution("bimodal(-7,7|7,0.1)", False, ((-7.0, 7.0), (7.0, 0.1)), 0.1),
)
NOISY = (0.0, 0.1)  # share of examples


class Sample(NamedTuple):
    """What is observed."""

    x: Float64s  # float64[n]
    y: Float64s  # float64[n]


class Found(NamedTuple):
    """What an observer made of a sample."""

    threshold: float
    merit: float  # as the observer has it
    elements: int
    observe_ns: int
    split_ns: int


class Watcher(Protocol):
    """An observer of a feature."""

    def observe(self, sample: Sample) -> None:
        """Count all examples, one after the other."""

    def best(self) -> tuple[float, float]:
        """Return threshold and merit of the best split."""

    def size(self) -> int:
        """Return how many elements are kept."""


class _Ours:
    """An observer of ours."""

    def __init__(self, name: str, **options: Any) -> None:
        self._observer = Observer(name, **options)

    def observe(self, sample: Sample) -> None:
        self._observer.observe(*sample)

    def best(self) -> tuple[float, float]:
        found = self._observer.best_split()
        assert found is not None
        return found.threshold, found.merit

    def size(self) -> int:
        return self._observer.size


class _River:
    """A splitter of river, which takes an example at a time and is told what the tree knows of all labels."""

    def __init__(self, splitter: Any) -> None:
        from river.stats import Var
        from river.tree.split_criterion import VarianceReductionSplitCriterion

        self._splitter = splitter
        self._total = Var()
        self._criterion = VarianceReductionSplitCriterion(min_samples_split=1)

    def observe(self, sample: Sample) -> None:
        for x, y in zip(sample.x.tolist(), sample.y.tolist(), strict=True):
            self._total.update(y, 1.0)
            self._splitter.update(x, y, 1.0)

    def best(self) -> tuple[float, float]:
        found = self._splitter.best_evaluated_split_suggestion(self._criterion, self._total, 0)
        return float(found.split_info), float(found.merit)

    def size(self) -> int:
        if hasattr(self._splitter, "_quantizer"):
            return len(self._splitter._quantizer)
        nodes, todo = 0, [self._splitter._root]
        while todo:
            node = todo.pop()
            if node is not None:
                nodes += 1
                todo += [node._left, node._right]
        return nodes


def _deviation(sample: Sample) -> float:
    return float(np.std(sample.x, ddof=1))


# As the paper has them, the radius from the deviation of the whole sample; then as a tree has them, from its
# first.
SIDES: dict[str, Callable[[Sample], Watcher]] = {
    "ebst": lambda sample: _Ours("ebst"),
    "tebst": lambda sample: _Ours("tebst", decimals=_DECIMALS),
    "qo-0.01": lambda sample: _Ours("qo", radius=_RADIUS),
    "qo-deviation/2": lambda sample: _Ours("qo", radius=_deviation(sample) / 2),
    "qo-deviation/3": lambda sample: _Ours("qo", radius=_deviation(sample) / 3),
    "qo-first/2": lambda sample: _Ours("qo", fraction=1 / 2),
    "qo-first/3": lambda sample: _Ours("qo", fraction=1 / 3),
}


def river_sides() -> dict[str, Callable[[Sample], Watcher]]:
    """Return river's splitters, under names that begin with river.

    Raises
    ------
    ModuleNotFoundError
        Where it is not installed.
    """
    from river.tree.splitter import EBSTSplitter, QOSplitter, TEBSTSplitter

    return {
        "river-ebst": lambda sample: _River(EBSTSplitter()),
        "river-tebst": lambda sample: _River(TEBSTSplitter(digits=_DECIMALS)),
        "river-qo-0.01": lambda sample: _River(QOSplitter(radius=_RADIUS)),
        "river-qo-deviation/2": lambda sample: _River(QOSplitter(radius=_deviation(sample) / 2)),
        "river-qo-deviation/3": lambda sample: _River(QOSplitter(radius=_deviation(sample) / 3)),
    }


def draw(distribution: Distribution, task: str, noisy: float, n: int, rng: np.random.Generator) -> Sample:
    """Draw a sample.

    The coefficients of the target are uniform in [-1, 1], which the paper leaves open, and anew in each sample.
    Noise is added to the values once the labels are made.
    """
    part = np.array(distribution.parts)[rng.integers(len(distribution.parts), size=n)]
    x = rng.uniform(part[:, 0], part[:, 1]) if distribution.uniform else rng.normal(part[:, 0], part[:, 1])
    coefficients = rng.uniform(-1.0, 1.0, 2 if task == "lin" else 4)
    y = np.asarray(np.polynomial.polynomial.polyval(x, coefficients), np.float64)
    return Sample(np.where(rng.random(n) < noisy, x + rng.normal(0.0, distribution.noise, n), x), y)


def watched(make: Callable[[Sample], Watcher], sample: Sample) -> Found:
    """Return what an observer makes of a sample."""
    watcher = make(sample)
    start = _clock()
    watcher.observe(sample)
    observed = _clock()
    threshold, merit = watcher.best()
    return Found(threshold, merit, watcher.size(), observed - start, _clock() - observed)


def achieved(sample: Sample, threshold: float) -> float:
    """Return the variance reduction that a threshold has on the sample itself, -inf where all go one way."""
    low = sample.x <= threshold
    sides = [sample.y[low], sample.y[~low]]
    if min(map(len, sides)) == 0:
        return -np.inf
    parts = sum(len(side) * float(np.var(side, ddof=1)) for side in sides if len(side) > 1)
    return float(np.var(sample.y, ddof=1)) - parts / len(sample.y)


def bench_observers(
    sides: dict[str, Callable[[Sample], Watcher]],
    tasks: Sequence[str],
    sizes: Sequence[int],
    repeats: int,
    seed: int,
    progress: Progress = lambda step: None,
    ascending: bool = False,
) -> Iterator[Row]:
    """Yield a line for each task, size and side, and one of mean ranks.

    Parameters
    ----------
    sides : dict
        Some of `SIDES` and `river_sides`, `BASE` among them.
    tasks : sequence of str
        Some of `TASKS`.
    sizes : sequence of int
        Examples in a sample, at least 2.
    repeats : int
        Samples of each task, size, distribution and share of noise; all sides get the same ones.
    seed : int
        Of the samples.
    progress : callable
        Called with what is about to run.
    ascending : bool
        Observe the examples in the order of their values, not as they are drawn.
    """
    warm_up = draw(DISTRIBUTIONS[0], TASKS[0], 0.0, 100, np.random.default_rng(seed))
    for name, make in sides.items():
        progress(f"compile {name}")
        watched(make, warm_up)
    ranked: dict[str, list[Float64s]] = {"merit": [], "elements": [], "observe": [], "split": []}
    for task, n in product(tasks, sizes):
        found: list[list[Found]] = []  # of each sample, by side
        reached: list[list[float]] = []
        for at, distribution in enumerate(DISTRIBUTIONS):
            progress(f"{task}, {n} examples, {distribution.name}")
            here: list[list[Found]] = []
            for noisy, repeat in product(NOISY, range(repeats)):
                rng = np.random.default_rng([seed, TASKS.index(task), n, at, int(noisy > 0), repeat])
                sample = draw(distribution, task, noisy, n, rng)
                if ascending:
                    order = np.argsort(sample.x)
                    sample = Sample(sample.x[order], sample.y[order])
                here.append([watched(make, sample) for make in sides.values()])
                reached.append([achieved(sample, each.threshold) for each in here[-1]])
            found += here
            _rank(ranked, np.array(here))
        for row in _rows(task, n, list(sides), np.array(found), np.array(reached)):
            yield {"bench": "observers", "ascending": ascending} | row | {"machine": machine()}
    names = list(sides)
    means = {key: np.mean(ranks, axis=0) for key, ranks in ranked.items()}
    yield {
        "bench": "observers",
        "mean_ranks": {key: dict(zip(names, map(significant, means[key]), strict=True)) for key in means},
        "ranked": len(ranked["merit"]),
        "machine": machine(),
    }


def _rank(ranked: dict[str, list[Float64s]], found: Float64s) -> None:
    """Note the ranks of the sides by their means over samples; 1 is best, equal ones share theirs."""
    means = found.mean(axis=0)
    columns = {
        name: means[:, Found._fields.index(name)] for name in ("elements", "observe_ns", "split_ns", "merit")
    }
    ranked["merit"].append(ranks(-columns["merit"]))
    ranked["elements"].append(ranks(columns["elements"]))
    ranked["observe"].append(ranks(columns["observe_ns"]))
    ranked["split"].append(ranks(columns["split_ns"]))


def ranks(figures: Float64s) -> Float64s:
    """Return the rank of each figure, 1 the lowest; equal ones share the mean of theirs."""
    below = (figures[:, None] > figures[None, :]).sum(axis=1)
    equal = (figures[:, None] == figures[None, :]).sum(axis=1)
    return np.asarray(below + (equal + 1) / 2, np.float64)


def _rows(task: str, n: int, names: list[str], found: Float64s, reached: Float64s) -> Iterator[Row]:
    """Yield a line for each side: means over samples, times as ratios of their sums."""
    base = names.index(BASE)
    column = partial(_column, found)
    for side, name in enumerate(names):
        yield {
            "task": task,
            "examples": n,
            "observer": name,
            "samples": len(found),
            "elements": significant(column("elements", side).mean()),
            "merit": significant(column("merit", side).mean()),
            "merit_to_ebst": significant((column("merit", side) / column("merit", base)).mean()),
            "achieved_to_ebst": significant((reached[:, side] / reached[:, base]).mean()),
            "split_difference": significant(np.abs(column("threshold", side) - column("threshold", base)).mean()),
            "observe_ns_per_example": significant(column("observe_ns", side).mean() / n),
            "observe_to_ebst": significant(column("observe_ns", side).sum() / column("observe_ns", base).sum()),
            "split_us": significant(column("split_ns", side).mean() / 1e3),
            "split_to_ebst": significant(column("split_ns", side).sum() / column("split_ns", base).sum()),
        }


def _column(found: Float64s, name: str, side: int) -> Float64s:
    return found[:, side, Found._fields.index(name)]
