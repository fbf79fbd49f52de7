"""`bench splitter`: the greedy tree of a batch, by each way of paper 003 and beside scikit-learn's."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.fixed_point import UNIT
from algorithms.core.kinds import Kind
from algorithms.dynamic.builder import UNBOUNDED, build_tree
from algorithms.dynamic.samples import ColumnSample, Sample
from algorithms.dynamic.splitter import Way
from worker.bench.cases import Progress, Row, machine, significant
from worker.bench.datasets import SETS, load
from worker.bench.tables import Table
from worker.sources.generators import BINARY, NUMERIC

WAYS = {way.name.lower(): way for way in Way}
RECORDED = ("a9a", "farm_ads", "imdb", "news20_unigram", "gas_sensor", "news20_counts")
_MADE = re.compile(r"(single|random):(\d+(?:\.\d+)?)")
_ROWS, _COLUMNS = 4_000, 1_000  # of `random`


class Side(NamedTuple):
    """A builder of trees."""

    name: str
    build: Callable[[], int]  # of a tree; it returns how many nodes that has


class Terms(NamedTuple):
    """What is measured."""

    criterion: str
    depths: Sequence[int | None]  # None: no bound
    ways: Sequence[str]  # keys of `WAYS`
    dense_bytes: int  # scikit-learn also builds from a dense matrix of at most so many
    repeats: int
    time_limit: float  # s; a side that has taken longer at a depth is not run again there


def table_for(data: str, folder: Path | None, limit: int | None) -> Table:
    """Return a table.

    Parameters
    ----------
    data : str
        A recorded set; ``random:0.01``, numbers of which this share is not 0, in a matrix of 4,000 by 1,000; or
        ``single:16000``, so many features that one example has each, and a feature that they all have.
    folder : Path, optional
        Of the recorded sets.
    limit : int, optional
        Take only so many examples of a recorded set.

    Raises
    ------
    ValueError
        With what was expected.
    """
    if data in SETS:
        if folder is None:
            raise ValueError(f"expected --folder with the file of {data}, got none; name the folder")
        return load(data, folder, limit)
    made = _MADE.fullmatch(data)
    if made is None or (made[1] == "random" and not 0.0 < float(made[2]) <= 1.0):
        raise ValueError(f"expected {', '.join(SETS)}, random:SHARE or single:FEATURES, got {data!r}")
    return _random(data, float(made[2])) if made[1] == "random" else _single(data, int(float(made[2])))


def _random(name: str, share: float) -> Table:
    random = np.random.default_rng(0)
    label = random.integers(0, 2, _ROWS)
    present = random.random((_ROWS, _COLUMNS)) < share
    value = random.standard_normal((_ROWS, _COLUMNS)) + label[:, None] * (np.arange(_COLUMNS) % 50 == 0)
    return _of(name, present, value[present], label)


def _single(name: str, features: int) -> Table:
    random = np.random.default_rng(0)
    rows = max(2, features // 8)
    pointer = np.linspace(0, features, rows + 1).astype(np.int64)
    return Table(
        name=name,
        pointer=pointer,
        feature=np.arange(features, dtype=np.uint32),
        value=random.standard_normal(features),
        label=random.integers(0, 2, rows),
        kinds=np.full(features, NUMERIC, np.int64),
        names=(),
        classes=("0", "1"),
    )


def _of(name: str, present: npt.NDArray[np.bool_], value: npt.NDArray[np.float64], label: Any) -> Table:
    pointer = np.concatenate([[0], np.cumsum(np.count_nonzero(present, axis=1))]).astype(np.int64)
    return Table(
        name=name,
        pointer=pointer,
        feature=np.nonzero(present)[1].astype(np.uint32),
        value=value,
        label=label,
        kinds=np.full(present.shape[1], NUMERIC, np.int64),
        names=(),
        classes=("0", "1"),
    )


def bench_splitter(
    table: Table,
    terms: Terms,
    peer: Callable[[Table, Terms], Sequence[Callable[[int | None], Side]]] | None = None,
    progress: Progress = lambda step: None,
) -> Iterator[Row]:
    """Yield one line for each depth and side, which take turns.

    Parameters
    ----------
    table : Table
        A stream; features are binary where all are, else all are numeric.
    terms : Terms
        What is measured.
    peer : callable, optional
        Makes the sides of another library, see `scikit_learn`. It is given columns, and, as another side, rows;
        so are we then. To check them, and to make of them what is needed, belongs to the time of a side.
    progress : callable
        Called with what is about to run.
    """
    ours: list[Callable[[int | None], Side]] = []
    for way in terms.ways:
        ours.append(partial(_side, table, terms.criterion, way, False))
        if peer is not None and WAYS[way] == Way.ORDERED:
            ours.append(partial(_side, table, terms.criterion, way, True))
    theirs = peer(table, terms) if peer is not None else []
    for make in ours:
        make(1).build()  # compiles
    n, entries, d = len(table.label), len(table.feature), len(table.kinds)
    about: Row = {
        "bench": "splitter",
        "data": table.name,
        "examples": n,
        "features": d,
        "entries": entries,
        "density": significant(entries / (n * d)),
        "classes": len(table.classes),
        "binary": bool((table.kinds == BINARY).all()),
        "criterion": terms.criterion,
    }
    for depth in terms.depths:
        sides = [make(depth) for make in (*ours, *theirs)]
        taken: list[list[float]] = [[] for _ in sides]
        nodes = [0] * len(sides)
        for turn in range(terms.repeats):
            for at, side in enumerate(sides):
                if sum(taken[at]) > terms.time_limit:
                    continue
                progress(f"{table.name}, depth {depth}: {side.name}, round {turn + 1} of {terms.repeats}")
                start = time.perf_counter()
                nodes[at] = side.build()
                taken[at].append(time.perf_counter() - start)
        for side, seconds, count in zip(sides, taken, nodes, strict=True):
            row = about | {"depth": depth, "side": side.name, "seconds": significant(statistics.median(seconds))}
            for base in sides[:1] + sides[len(ours) :]:
                ratios = [a / b for a, b in zip(seconds, taken[sides.index(base)], strict=False)]
                row[f"to_{base.name.replace(' ', '_').replace('-', '_')}"] = significant(statistics.median(ratios))
            yield row | {"nodes": count, "repeats": len(seconds), "machine": machine()}


def _side(table: Table, criterion: str, way: str, by_columns: bool, depth: int | None) -> Side:
    is_binary = bool((table.kinds == BINARY).all()) and WAYS[way] != Way.DENSE  # which has zeros and ones
    kind = Kind.BINARY if is_binary else Kind.NUMERIC
    weight = np.full(len(table.label), UNIT, np.int64)
    rows = Sample(table.pointer, table.feature, table.value, table.label, weight)
    sample = _columns_of(rows, len(table.kinds)) if by_columns else rows

    def build() -> int:
        tree = build_tree(
            sample,
            classes=max(2, len(table.classes)),
            criterion=criterion,
            default=kind,
            max_depth=UNBOUNDED if depth is None else depth,
            way=WAYS[way],
        )
        return len(tree.number)

    return Side(f"{way} columns" if by_columns else way, build)


def _columns_of(sample: Sample, features: int) -> ColumnSample:
    """Return the same examples in columns."""
    order = np.argsort(sample.feature, kind="stable")
    row = np.repeat(np.arange(len(sample.label), dtype=np.int32), np.diff(sample.pointer))
    pointer = np.zeros(features + 1, np.int64)
    np.cumsum(np.bincount(sample.feature, minlength=features), out=pointer[1:])
    ids = np.arange(features, dtype=np.uint32)
    return ColumnSample(pointer, row[order], sample.value[order], sample.label, sample.weight, ids)


def scikit_learn(table: Table, terms: Terms) -> list[Callable[[int | None], Side]]:
    """Return what makes the sides of scikit-learn, by its sparse splitter and, for small tables, its dense one.

    "scikit-learn rows" makes columns of rows first, as our sides do; "scikit-learn" has them.

    Raises
    ------
    ModuleNotFoundError
        Where it is not installed.
    """
    from scipy.sparse import csr_matrix
    from sklearn.tree import DecisionTreeClassifier

    shape = (len(table.label), len(table.kinds))
    rows = csr_matrix((table.value.astype(np.float32), table.feature.astype(np.int32), table.pointer), shape)
    matrices = {"scikit-learn": rows.tocsc(), "scikit-learn rows": rows}
    if 4 * shape[0] * shape[1] <= terms.dense_bytes:
        matrices["scikit-learn dense"] = rows.toarray()

    def side(name: str, depth: int | None) -> Side:
        tree = DecisionTreeClassifier(criterion=terms.criterion, max_depth=depth, random_state=0)
        return Side(name, lambda: int(tree.fit(matrices[name], table.label).tree_.node_count))

    return [partial(side, name) for name in matrices]
