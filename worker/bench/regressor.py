"""`bench regressor`: the greedy tree of a batch whose labels are numbers, beside scikit-learn's on sparse columns.

Labels are those of a table with noise, so that few splits tie; values are rounded to float32, as in scikit-learn.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from algorithms.core.fixed_point import UNIT
from algorithms.core.kinds import Kind
from algorithms.regression.builder import UNBOUNDED, NumberSample, build_regression_tree
from worker.bench.cases import Progress, Row, machine, significant
from worker.bench.tables import Table
from worker.sources.generators import BINARY

_NOISE = 0.25  # standard deviation; labels of tables are 0, 1, ...


class Grown(NamedTuple):
    """What is compared of a tree."""

    nodes: int
    mse: float  # of the examples that it was built of


Build = Callable[[], Grown]
Peer = Callable[[Table], dict[str, Callable[[int | None], Build]]]


def bench_regressor(
    table: Table,
    depths: Sequence[int | None],
    repeats: int,
    time_limit: float,
    peer: Peer | None = None,
    progress: Progress = lambda step: None,
) -> Iterator[Row]:
    """Yield one line for each depth and side, which take turns.

    Parameters
    ----------
    table : Table
        A stream; features are binary where all are, else all are numeric.
    depths : sequence of int, optional
        Of the trees; None: no bound.
    repeats : int
        Rounds.
    time_limit : float
        In s: a side that has taken longer at a depth is not run again there.
    peer : callable, optional
        Makes the sides of another library, see `scikit_learn`.
    progress : callable
        Called with what is about to run.
    """
    sides: dict[str, Callable[[int | None], Build]] = {"anabranch": partial(_ours, table)}
    sides["anabranch"](1)()  # compiles
    if peer is not None:
        sides |= peer(table)
    for depth in depths:
        builds = {name: make(depth) for name, make in sides.items()}
        taken: dict[str, list[float]] = {name: [] for name in sides}
        grown = dict.fromkeys(sides, Grown(0, 0.0))
        for turn in range(repeats):
            for name, build in builds.items():
                if sum(taken[name]) > time_limit:
                    continue
                progress(f"{table.name}, depth {depth}: {name}, round {turn + 1} of {repeats}")
                start = time.perf_counter()
                grown[name] = build()
                taken[name].append(time.perf_counter() - start)
        for name, seconds in taken.items():
            ratios = [own / base for own, base in zip(seconds, taken["anabranch"], strict=False)]
            yield {
                "bench": "regressor",
                "data": table.name,
                "examples": len(table.label),
                "features": len(table.kinds),
                "entries": len(table.feature),
                "depth": depth,
                "side": name,
                "seconds": significant(statistics.median(seconds)),
                "to_anabranch": significant(statistics.median(ratios)),
                "nodes": grown[name].nodes,
                "mse": grown[name].mse,
                "repeats": len(seconds),
                "machine": machine(),
            }


def labels_of(table: Table) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the labels of a table with noise."""
    return table.label + np.random.default_rng(0).normal(0.0, _NOISE, len(table.label))


def _ours(table: Table, depth: int | None) -> Build:
    is_binary = bool((table.kinds == BINARY).all())
    value = table.value.astype(np.float32).astype(np.float64)
    weight = np.full(len(table.label), UNIT, np.int64)
    sample = NumberSample(table.pointer, table.feature, value, labels_of(table), weight)

    def build() -> Grown:
        tree = build_regression_tree(
            sample,
            default=Kind.BINARY if is_binary else Kind.NUMERIC,
            max_depth=UNBOUNDED if depth is None else depth,
        )
        is_leaf = np.array([feature is None for feature in tree.feature])
        squares = float((tree.weight * tree.variance)[is_leaf].sum())
        return Grown(len(tree.number), squares / len(table.label))

    return build


def scikit_learn(table: Table) -> dict[str, Callable[[int | None], Build]]:
    """Return what makes the sides of scikit-learn, which has columns, or makes them of rows as our side does.

    Raises
    ------
    ModuleNotFoundError
        Where it is not installed.
    """
    from scipy.sparse import csr_matrix
    from sklearn.tree import DecisionTreeRegressor

    shape = (len(table.label), len(table.kinds))
    rows = csr_matrix((table.value.astype(np.float32), table.feature.astype(np.int32), table.pointer), shape)
    matrices = {"scikit-learn": rows.tocsc(), "scikit-learn rows": rows}
    label = labels_of(table)

    def side(name: str, depth: int | None) -> Build:
        model = DecisionTreeRegressor(max_depth=depth, random_state=0)

        def build() -> Grown:
            tree = model.fit(matrices[name], label).tree_
            is_leaf = tree.children_left < 0
            squares = float((tree.weighted_n_node_samples * tree.impurity)[is_leaf].sum())
            return Grown(int(tree.node_count), squares / len(label))

        return build

    return {name: partial(side, name) for name in matrices}
