"""`bench dynamic`: trees that forget, over epsilon and models of updates: paper 002, Table 2 and Figure 1."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Int8s, Int64s
from algorithms.core.events import Events, Op
from algorithms.core.kinds import Kind
from algorithms.dynamic.pool import DynamicPool
from algorithms.trees.evaluation import Measures, Prequential
from worker.bench.cases import Progress, Row, against_baselines, machine, significant
from worker.bench.tables import Table, first
from worker.bench.updates import BATCH, plan
from worker.sources.generators import BINARY

_WARM_UP = 300


class Run(NamedTuple):
    """What one run over a stream came to."""

    pool: DynamicPool
    seconds: float
    measures: Measures


def against(table: Table, positive: str) -> Table:
    """Return a table whose label is 1 for one class and 0 for all others, as paper 002 makes them.

    Raises
    ------
    ValueError
        Where the class is unknown.
    """
    if positive not in table.classes:
        raise ValueError(f"expected a class of {', '.join(table.classes)}, got {positive!r}")
    label = (table.label == table.classes.index(positive)).astype(np.int64)
    return table._replace(label=label, classes=(f"not {positive}", positive))


def bench_dynamic(
    table: Table,
    updates: Sequence[str],
    epsilons: Sequence[float],
    options: Mapping[str, Any],
    repeats: int,
    progress: Progress = lambda step: None,
) -> Iterator[Row]:
    """Yield one line for each model of updates and epsilon.

    Parameters
    ----------
    table : Table
        Every example is predicted when it is inserted.
    updates : sequence of str
        As `worker.bench.updates.workload` takes them.
    epsilons : sequence of float
        0 builds the tree from scratch at each update; where it is among them, lines say how their times compare.
    options : mapping
        Further parameters of `DynamicPool`, the same for all.
    repeats : int
        Rounds; in each round every epsilon has its turn, times are medians over the rounds.
    progress : callable
        Called with what is about to run.
    """
    progress("compile")
    warm = first(table, _WARM_UP)
    run(pool_for(table, 0.1, options), batches_of(warm, *plan(len(warm.label), "window:50")), len(table.classes))
    for model in updates:
        op, example = plan(len(table.label), model)
        batches = batches_of(table, op, example)
        taken: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
        last: dict[float, Run] = {}
        for repeat in range(repeats):
            for epsilon in epsilons:
                progress(f"{table.name}, {model}: epsilon {epsilon}, round {repeat + 1} of {repeats}")
                last[epsilon] = run(pool_for(table, epsilon, options), batches, len(table.classes))
                taken[epsilon].append(last[epsilon].seconds)
        for epsilon in epsilons:
            row: Row = {"bench": "dynamic", "data": table.name, "updates": model, "epsilon": epsilon, **options}
            row |= {"inserts": len(table.label), "events": len(op)} | _figures(last[epsilon], len(op))
            row["us_per_event"] = significant(statistics.median(taken[epsilon]) / len(op) * 1e6)
            if 0.0 in taken:
                pairs = zip(taken[epsilon], taken[0.0], strict=True)
                row["to_from_scratch"] = significant(statistics.median(mine / whole for mine, whole in pairs))
            yield row | {"repeats": repeats, "machine": machine()}


def _figures(done: Run, events: int) -> Row:
    sizes = done.pool.sizes()
    return {
        "accuracy": significant(done.measures.accuracy),
        "f1": significant(float(done.measures.f1[1])),
        "macro_f1": significant(done.measures.macro_f1),
        **against_baselines(done.measures),
        "rebuilds": sizes.rebuilds,
        "rebuilt_per_event": significant(sizes.rebuilt / events),
        "live": sizes.examples,
        "nodes": sizes.nodes,
        "depth": done.pool.depth,
        "state_bytes": done.pool.nbytes,
    }


def pool_for(table: Table, epsilon: float, options: Mapping[str, Any]) -> DynamicPool:
    """Return an empty pool for a table; a nominal feature counts as a number, as in the paper."""
    kinds: dict[int | bytes, Kind] = {
        feature: Kind.NUMERIC for feature, values in enumerate(table.kinds.tolist()) if values != BINARY
    }
    return DynamicPool(epsilon=epsilon, classes=len(table.classes), kinds=kinds, evaluate=True, **options)


def run(pool: DynamicPool, batches: list[Events], classes: int) -> Run:
    """Apply batches; only the pool's own time counts."""
    kept = Prequential(classes, BATCH)
    seconds = 0.0
    for batch in batches:
        start = time.perf_counter()
        answers = pool.apply(batch)
        seconds += time.perf_counter() - start
        new = batch.op == Op.INSERT
        kept.add(batch.label[new], answers.predicted[new], batch.weight[new], answers.loss[new])
    return Run(pool, seconds, kept.total().measures())


def batches_of(table: Table, op: Int8s, example: Int64s) -> list[Events]:
    """Return operations on the examples of a table, `BATCH` in each batch but the last; deletes are by id."""
    batches = []
    for begin in range(0, len(op), BATCH):
        whose = example[begin : begin + BATCH]
        n = len(whose)
        start = table.pointer[whose]
        length = table.pointer[whose + 1] - start
        pointer = np.zeros(n + 1, np.int64)
        np.cumsum(length, out=pointer[1:])
        source = np.arange(pointer[-1]) + np.repeat(start - pointer[:-1], length)
        label = table.label[whose].astype(np.int32)
        events = Events.of(op[begin : begin + BATCH], label, pointer, table.feature[source], table.value[source])
        batches.append(events._replace(named=np.ones(n, np.int8), id_high=whose, id_low=whose))
    return batches
