"""The experiments of `bench report`: each a function that yields rows ready for JSON."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from algorithms.core.cadence import Emit, When
from algorithms.splits import scan
from algorithms.splits.count_groups import OF_BINS, USED
from algorithms.splits.finders import FINDERS
from algorithms.splits.pool import SplitPool
from worker.bench import anchor
from worker.bench.cases import Case, Progress, Row, measured, significant
from worker.bench.hard import hard
from worker.bench.kinds import by_kind
from worker.bench.optimal import APPROXIMATE
from worker.bench.sides import FLOORS, criteria_of, finding, floors
from worker.bench.streams import Stream, between, first, load, sparse
from worker.bench.updates import Workload, workload

SETS = ("farm_ads", "victorian_eltec", "imdb", "news20_bigram")
LARGEST = "news20_bigram"  # whose cost per one is what hard streams are held against

_PARTS = 20  # of a stream that is measured as it goes on

# An O(d) scan is left out where it would look at more features than this: about a minute.
_FEASIBLE = 2_500_000_000


class Sizes(NamedTuple):
    """How large the experiments are; the first three are paper 000's, section 6."""

    examples: int
    prefixes: tuple[int, ...]
    features: tuple[int, ...]
    alphas: tuple[float, ...]
    wide: tuple[int, ...]
    wide_examples: int
    kinds: int  # examples for every kind of model
    window: int
    hard: tuple[int, int]  # events, features
    limit: int | None  # examples taken of a recorded set


FULL = Sizes(
    examples=10_000,
    prefixes=(1_000, 2_000, 5_000, 10_000, 20_000, 50_000),
    features=(500, 1_000, 2_000, 5_000, 10_000),
    alphas=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
    wide=(1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    wide_examples=100_000,
    kinds=10_000,
    window=1_000,
    hard=(20_000, 20_000),
    limit=None,
)
QUICK = Sizes(
    examples=200,
    prefixes=(100, 200),
    features=(100, 200),
    alphas=(0.1, 1.0),
    wide=(1_000, 10_000),
    wide_examples=200,
    kinds=200,
    window=50,
    hard=(200, 100),
    limit=200,
)


class Scope(NamedTuple):
    """What an experiment is told."""

    sizes: Sizes
    repeats: int
    time_limit: float  # s, after which a case is not run again
    data: Path | None  # where the recorded sets are
    anchor: Path | None  # a foreign program
    progress: Progress


Experiment = Callable[[Scope], Iterator[Row]]


def by_alpha(scope: Scope) -> Iterator[Row]:
    """Time against the guarantee, for the finders that have one; the others have no alpha. Figures 1b and 1d."""
    work = workload(_paper(scope.sizes.examples, 10_000))
    cases = floors(work) + _finders(work, [finder for finder in FINDERS if finder not in APPROXIMATE])
    for finder in APPROXIMATE:
        for criterion in criteria_of(finder):
            cases += [finding(work, finder, criterion, alpha=alpha) for alpha in scope.sizes.alphas]
    yield from _measured(scope, cases)


def by_trees(scope: Scope) -> Iterator[Row]:
    """How many search trees the approximate finders keep at the end, against the guarantee. Figures 1a and 1c."""
    work = workload(_paper(scope.sizes.examples, 10_000))
    for finder in APPROXIMATE:
        for criterion in criteria_of(finder):
            for alpha in scope.sizes.alphas:
                pool = SplitPool(finder=finder, criterion=criterion, alpha=alpha)
                for batch in work.batches:
                    pool.apply(batch, checked=True)
                yield {
                    "data": work.data,
                    "finder": finder,
                    "criterion": criterion,
                    "alpha": alpha,
                    "examples": work.examples,
                    "trees": int(pool.arrays()["finder.counts"][OF_BINS, USED]),
                }


def by_examples(scope: Scope) -> Iterator[Row]:
    """Time against n. Figures 2a and 2c."""
    stream = _paper(max(scope.sizes.prefixes), 10_000)
    for n in scope.sizes.prefixes:
        work = workload(first(stream, n))
        yield from _measured(scope, floors(work) + _finders(work))


def by_points(scope: Scope) -> Iterator[Row]:
    """Time of one example, and how many search trees there are, as the stream goes on. Figures 2b and 3."""
    yield from _along(scope, _paper(scope.sizes.examples, 10_000))


def along_sets(scope: Scope) -> Iterator[Row]:
    """Time so far, as recorded sets go on. Figures 5 and 6."""
    for name in recorded(scope.data):
        for row in _along(scope, _recorded(scope, name)):
            yield row | {f"so_far_{name}": row["seconds"]}  # each set has a plot of its own


def by_features(scope: Scope) -> Iterator[Row]:
    """Time against d, and against density, at the same number of ones. Figure 4."""
    for d in scope.sizes.features:
        work = workload(_paper(scope.sizes.examples, d))
        for row in _measured(scope, floors(work) + _finders(work)):
            yield row | {"density": significant(work.ones / work.examples / work.features)}


def by_width(scope: Scope) -> Iterator[Row]:
    """Cost of an example against d far beyond the paper's, at 15 ones an example."""
    for d in scope.sizes.wide:
        work = workload(_paper(scope.sizes.wide_examples, d))
        yield from _measured(scope, floors(work) + _finders(work, ["exact", "baseent"], ["entropy"]))


def deletes(scope: Scope) -> Iterator[Row]:
    """Cost of forgetting: explicit deletes, checked against the live examples or not, and a pool's own window."""
    size = scope.sizes.window
    stream = _largest(scope)
    plain, window, random = (
        workload(stream, updates) for updates in ("incremental", f"window:{size}", "random:0.5")
    )
    checked = window._replace(updates=f"{window.updates}, checked")
    own = plain._replace(updates=f"{window.updates}, the pool's own")
    cases = [
        *(floor for work in (plain, window, checked, own, random) for floor in floors(work)),
        finding(plain, "exact", "entropy"),
        finding(window, "exact", "entropy"),
        finding(checked, "exact", "entropy", verify_deletes=True),
        finding(own, "exact", "entropy", window=size),
        finding(random, "exact", "entropy"),
    ]
    rows = list(_measured(scope, cases))
    inserts = _cost(rows, "us_per_example", updates="incremental", finder="exact")
    for row in rows:
        if row["finder"] == "exact":
            row["to_inserts"] = significant(row["us_per_example"] / inserts)
        yield row


def by_hardness(scope: Scope) -> Iterator[Row]:
    """Cost per one on streams made to be hard, beside the largest recorded set."""
    works = [workload(_largest(scope)), *hard(*scope.sizes.hard)]
    cases = [
        case
        for work in works
        for case in [*floors(work), *(finding(work, "exact", criterion) for criterion in criteria_of("exact"))]
    ]
    rows = list(_measured(scope, cases))
    for row in rows:
        base = _cost(rows, "ns_per_one", data=works[0].data, finder=row["finder"], criterion=row["criterion"])
        yield row | {"to_largest": significant(row["ns_per_one"] / base)}


def by_set(scope: Scope) -> Iterator[Row]:
    """All finders on the recorded sets, and the anchor where there is one. Table 2."""
    for name in recorded(scope.data):
        stream = _recorded(scope, name)
        work = workload(stream)
        cases = floors(work) + _finders(work)
        if scope.anchor is None:
            yield from _measured(scope, cases)
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{name}.bin"
            anchor.write(stream, file)
            cases.append(anchor.anchored(scope.anchor, work, file))
            yield from _measured(scope, cases, (*FLOORS, anchor.NAME))


def kinds(scope: Scope) -> Iterator[Row]:
    """Every kind of model on the same events."""
    yield from by_kind(scope.sizes.kinds, scope.repeats, scope.time_limit, scope.progress)


EXPERIMENTS: dict[str, Experiment] = {
    "alpha": by_alpha,
    "trees": by_trees,
    "examples": by_examples,
    "points": by_points,
    "features": by_features,
    "width": by_width,
    "deletes": deletes,
    "hard": by_hardness,
    "sets": by_set,
    "along": along_sets,
    "kinds": kinds,
}


def recorded(data: Path | None) -> list[str]:
    """Return the names of the recorded sets that a folder has.

    Raises
    ------
    ValueError
        It has none of them.
    """
    if data is None:
        return []
    there = [name for name in SETS if (data / f"{name}.npz").is_file()]
    if not there:
        raise ValueError(f"expected a folder with {', '.join(f'{name}.npz' for name in SETS)}; {data} has none")
    return there


def _paper(n: int, d: int) -> Stream:
    """Return paper 000's sparse(n, 10, d, 10/d): 15 ones an example, whatever d."""
    return sparse(n, 10, d, 10 / d)


def _recorded(scope: Scope, name: str) -> Stream:
    assert scope.data is not None
    return load(str(scope.data / f"{name}.npz"), scope.sizes.limit)


def _largest(scope: Scope) -> Stream:
    """Return the largest recorded set, or a generated stream where it is not to be had."""
    if LARGEST in recorded(scope.data):
        return _recorded(scope, LARGEST)
    return _paper(scope.sizes.examples, 10_000)


def _finders(
    work: Workload, finders: Sequence[str] = tuple(FINDERS), criteria: Sequence[str] | None = None
) -> list[Case]:
    """Return a case for each finder and criterion, scans only where they end in reasonable time."""
    seen = np.zeros(work.features, bool)
    for batch in work.batches:
        seen[batch.feature] = True
    scans = work.events * int(np.count_nonzero(seen)) <= _FEASIBLE
    return [
        finding(work, finder, criterion)
        for finder in finders
        for criterion in criteria_of(finder)
        if (criteria is None or criterion in criteria) and (scans or FINDERS[finder].module is not scan)
    ]


def _along(scope: Scope, stream: Stream) -> Iterator[Row]:
    """Yield a row for each finder and each part of a stream: the time of an example in it, and of all so far."""
    work = workload(stream)
    marks = np.linspace(0, work.examples, _PARTS + 1).astype(np.int64).tolist()
    parts = [workload(between(stream, *pair)).batches for pair in pairwise(marks) if pair[0] < pair[1]]
    cases = _finders(work)
    taken: list[list[list[float]]] = [[] for _ in cases]  # of each case, of each round, of each part
    trees: list[list[int]] = [[] for _ in cases]
    for turn in range(scope.repeats):
        for at, case in enumerate(cases):
            if sum(map(sum, taken[at])) > scope.time_limit:
                continue
            scope.progress(f"{work.data}, along: {case.finder}, round {turn + 1} of {scope.repeats}")
            pool = SplitPool(finder=case.finder, criterion=case.criterion or "", splits=Emit(When.CHANGE))
            taken[at].append([])
            trees[at] = []
            for batches in parts:
                start = time.perf_counter()
                for batch in batches:
                    pool.apply(batch, checked=True)
                taken[at][-1].append(time.perf_counter() - start)
                if FINDERS[case.finder].approximate is not None:
                    trees[at].append(int(pool.arrays()["finder.counts"][OF_BINS, USED]))
    for case, runs, counted in zip(cases, taken, trees, strict=True):
        for at, end in enumerate(marks[1 : len(parts) + 1]):
            yield {
                "data": work.data,
                "finder": case.finder,
                "criterion": case.criterion,
                "examples": end,
                "seconds": significant(statistics.median(sum(run[: at + 1]) for run in runs)),
                "us_per_example": significant(
                    statistics.median(run[at] for run in runs) / (end - marks[at]) * 1e6
                ),
                **({"trees": counted[at]} if counted else {}),
                "repeats": len(runs),
            }


def _measured(scope: Scope, cases: Sequence[Case], bases: Sequence[str] = FLOORS) -> Iterator[Row]:
    yield from measured(cases, bases, scope.repeats, scope.progress, scope.time_limit)


def _cost(rows: Sequence[Row], figure: str, **of: str | None) -> float:
    """Return a figure of the one row that has these values."""
    (found,) = (row for row in rows if all(row[key] == value for key, value in of.items()))
    return float(found[figure])
