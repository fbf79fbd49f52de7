"""`bench forests`: forests beside one tree, and beside the adaptive random forests of river and MOA.

All predict every example, then learn it; those that forget keep a window. Times are of CPU, as in `bench peers`;
beside it stands what the clock on the wall says, which threads shorten.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from algorithms.core.events import Op
from algorithms.core.kinds import Kind
from algorithms.core.schema import Feature
from algorithms.dynamic.pool import DynamicPool
from algorithms.forests.growing import GrowingForestPool
from algorithms.forests.growing import Sizes as GrownSizes
from algorithms.forests.pool import ForestPool
from algorithms.trees.evaluation import Measures, Prequential
from worker.bench.cases import Progress, Row, against_baselines, machine, significant
from worker.bench.moa import READING, Moa, evaluated, write_arff
from worker.bench.peers import fed
from worker.bench.tables import Table, first
from worker.bench.trees import BATCH, batches_of
from worker.bench.updates import one_of
from worker.sources.generators import BINARY

_WARM_UP = 300
_ASKED = 500  # deletes that are timed one by one
_DELETE, _PREDICT = np.array([Op.DELETE], np.int8), np.array([Op.PREDICT], np.int8)

_CPU = "evaluation time (cpu seconds)"  # as MOA calls it

_clock = time.process_time


class Learner(Protocol):
    """A classifier as river has them."""

    def predict_one(self, x: Any) -> Any:
        """Return the class of an example, None where nothing is known."""

    def learn_one(self, x: Any, y: Any) -> Any:
        """Learn an example of class y."""


class Peer(NamedTuple):
    """Whom we are measured beside."""

    version: str
    forest: Any  # takes what river.forest.ARFClassifier takes


class Terms(NamedTuple):
    """What is measured."""

    trees: int
    baggings: Sequence[str]
    subspaces: Sequence[float | str]
    options: Mapping[str, Any]  # of the trees: window, epsilon, ..
    seed: int
    seconds: float  # of CPU; the peer stops at the first example after so many, ours gets the same examples
    repeats: int  # of ours; figures are medians over the rounds
    latency: bool = False  # whether single deletes and questions are timed, too
    growing: Mapping[str, Any] | None = None  # of the trees of forests that grow; None: these are not measured
    threads: Sequence[int] = (1,)  # each forest is measured with so many


_AnyPool: TypeAlias = "DynamicPool | ForestPool | GrowingForestPool"
_Side: TypeAlias = tuple[str, Mapping[str, Any]]  # what it is, and settings of its own


class _Run(NamedTuple):
    pool: _AnyPool
    seconds: float  # of CPU
    wall_seconds: float
    measures: Measures


def river() -> Peer:
    """Return river.

    Raises
    ------
    ModuleNotFoundError
        Where it is not installed.
    """
    import river
    from river.forest import ARFClassifier

    return Peer(river.__version__, ARFClassifier)


def bench_forests(
    table: Table,
    terms: Terms,
    peer: Peer | None = None,
    progress: Progress = lambda step: None,
    moa: Moa | None = None,
) -> Iterator[Row]:
    """Yield a line for each peer that there is, for one tree, and for each bagging and subspace.

    Parameters
    ----------
    table : Table
        Every example is predicted, then learned, in order.
    terms : Terms
        What is measured.
    peer : Peer, optional
        See `river`.
    progress : callable
        Called with what is about to run.
    moa : Moa, optional
        See `worker.bench.moa.find_moa`: its adaptive random forest, on as many examples.
    """
    about = {"bench": "forests", "data": table.name, "of": len(table.label)}
    rate = None
    if peer is not None:
        progress(f"{table.name}: river")
        row = _theirs(table, peer, terms)
        table, rate = first(table, row["examples"]), row["examples_per_second"]
        yield about | {"side": "river"} | row | {"version": peer.version, "machine": machine()}
    if moa is not None:
        progress(f"{table.name}: MOA")
        row = _moas(table, moa, terms)
        yield about | {"side": "moa"} | row | {"version": moa.version, "machine": machine()}
    own = [
        {"trees": terms.trees, "bagging": bagging, "subspace": subspace, "seed": terms.seed, "threads": threads}
        for bagging, subspace, threads in product(terms.baggings, terms.subspaces, terms.threads)
    ]
    sides: list[_Side] = [("tree", {}), *(("forest", each) for each in own)]
    if terms.growing is not None:
        sides += [("growing", {**each, **terms.growing}) for each in own]
    progress("compile")
    warm = first(table, _WARM_UP)
    for side in {kind: (kind, each) for kind, each in sides}.values():
        _run(warm, side, terms.options)
    rounds: list[list[_Run]] = [[] for _ in sides]
    for repeat in range(terms.repeats):
        for side, done in zip(sides, rounds, strict=True):
            progress(f"{table.name}: {side[0]} {side[1]}, round {repeat + 1} of {terms.repeats}")
            done.append(_run(table, side, terms.options))
    for side, done in zip(sides, rounds, strict=True):
        forgets = side[0] != "growing"
        row = {"side": side[0], **side[1], **(terms.options if forgets else {}), **_figures(table, done)}
        if terms.latency and forgets:
            progress(f"{table.name}: {side[0]} {side[1]}, one by one")
            row |= _latencies(table, side, terms.options)
        if rate is not None:
            row["times_river"] = significant(row["examples_per_second"] / rate)
        yield about | row | {"version": version("anabranch"), "machine": machine()}


def _pool(table: Table, side: _Side, options: Mapping[str, Any]) -> _AnyPool:
    """Return an empty pool of a side; one that grows has no options of those that forget."""
    kinds: dict[Feature, Kind] = {
        feature: Kind.NUMERIC for feature, values in enumerate(table.kinds.tolist()) if values != BINARY
    }
    shared: dict[str, Any] = {"classes": len(table.classes), "kinds": kinds}
    if side[0] == "growing":
        return GrowingForestPool(**side[1], **shared)
    made = ForestPool if side[0] == "forest" else DynamicPool
    pool: _AnyPool = made(**side[1], **shared, **options)
    return pool


def _run(table: Table, side: _Side, options: Mapping[str, Any]) -> _Run:
    """Return what a tree, or a forest where there are settings of its own, does; only the pool's time counts."""
    pool = _pool(table, side, {"evaluate": True, **options})
    kept = Prequential(len(table.classes), BATCH)
    seconds = wall = 0.0
    for batch in batches_of(table):
        start = _clock(), time.perf_counter()
        answers = pool.apply(batch)
        seconds, wall = seconds + _clock() - start[0], wall + time.perf_counter() - start[1]
        kept.add(batch.label, answers.predicted, batch.weight, answers.loss)
    return _Run(pool, seconds, wall, kept.total().measures())


def _latencies(table: Table, side: _Side, options: Mapping[str, Any]) -> Row:
    """Return how long single calls took, in microseconds: median, 99 % and longest.

    As many examples as the window has are live, and each delete is followed by two questions: the first finds what
    the delete has left to look at.
    """
    pool = _pool(table, side, {name: value for name, value in options.items() if name != "window"})
    held = batches_of(first(table, options.get("window", len(table.label))))
    size = 0
    for batch in held:
        ids = np.arange(size, size + len(batch.op))
        pool.apply(batch._replace(named=np.ones(len(ids), np.int8), id_high=ids, id_low=ids))
        size += len(ids)
    examples = [one_of(held[0], at) for at in range(min(size, _ASKED))]
    taken: dict[str, list[float]] = {"delete": [], "look_after_delete": [], "look": []}
    for at, number in enumerate(np.random.default_rng(0).permutation(size)[: _ASKED + 1].tolist()):
        look = examples[at % len(examples)]._replace(op=_PREDICT)
        id = np.array([number])
        delete = look._replace(op=_DELETE, named=np.ones(1, np.int8), id_high=id, id_low=id)
        for what, event in zip(taken, (delete, look, look), strict=True):
            start = time.perf_counter()
            pool.apply(event, checked=True)  # as the worker does
            taken[what].append(time.perf_counter() - start)
    return {
        f"{what}_us": [
            significant(float(figure) * 1e6) for figure in (*np.quantile(times[1:], (0.5, 0.99)), max(times[1:]))
        ]
        for what, times in taken.items()  # the first of each finds caches cold
    }


def _figures(table: Table, done: list[_Run]) -> Row:
    pool, _, _, measures = done[-1]
    seconds = statistics.median(each.seconds for each in done)
    wall = statistics.median(each.wall_seconds for each in done)
    sizes = pool.sizes()
    if isinstance(sizes, GrownSizes):
        did: Row = {"drifts": sizes.drifts, "warnings": sizes.warnings}
    else:
        did = {"rebuilt_per_example": significant(sizes.rebuilt / len(table.label))}
    return {
        "examples": len(table.label),
        "cpu_seconds": significant(seconds),
        "wall_seconds": significant(wall),
        "examples_per_second": significant(len(table.label) / seconds),
        "accuracy": significant(measures.accuracy),
        **against_baselines(measures),
        "log_loss": significant(measures.log_loss),
        **did,
        "nodes": sizes.nodes,
        "state_bytes": pool.nbytes,
        "repeats": len(done),
    }


def _moas(table: Table, moa: Moa, terms: Terms) -> Row:
    """Return what MOA's adaptive random forest does; it learns from a file, whose reading is timed alone, too."""
    learner = f"meta.AdaptiveRandomForest -s {terms.trees}"
    with tempfile.TemporaryDirectory() as name:
        write_arff(table, Path(name) / "table.arff")
        reading = float(evaluated(moa, Path(name), READING)[_CPU])
        said = evaluated(moa, Path(name), learner)
    seconds = float(said[_CPU])
    return {
        "trees": terms.trees,
        "learner": learner,
        "examples": len(table.label),
        "cpu_seconds": significant(seconds),
        "reading_seconds": significant(reading),
        "examples_per_second": significant(len(table.label) / seconds),
        "accuracy": significant(float(said["classifications correct (percent)"]) / 100),
        "repeats": 1,
    }


def _theirs(table: Table, peer: Peer, terms: Terms) -> Row:
    """Return what the peer does in the time it has."""
    learner: Learner = peer.forest(n_models=terms.trees, seed=terms.seed)
    kept = Prequential(len(table.classes), BATCH)
    labels, guesses, taken = [], [], 0.0
    for x, label in fed(table, dense=bool(table.names)):
        start = _clock()
        guess = learner.predict_one(x)
        learner.learn_one(x, label)
        taken += _clock() - start
        labels.append(label)
        guesses.append(-1 if guess is None else guess)
        if taken > terms.seconds:
            break
    n = len(labels)
    kept.add(np.array(labels, np.int32), np.array(guesses, np.int32), np.full(n, 1 << 20, np.int64), np.zeros(n))
    measures = kept.total().measures()
    return {
        "trees": terms.trees,
        "examples": n,
        "cpu_seconds": significant(taken),
        "examples_per_second": significant(n / taken),
        "accuracy": significant(measures.accuracy),
        **against_baselines(measures),
        "repeats": 1,
    }
