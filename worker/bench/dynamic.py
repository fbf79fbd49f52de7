"""`bench dynamic`: trees that forget, over policies and models of updates: paper 002, Table 2 and Figure 1."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Int8s, Int64s
from algorithms.core.events import Events, Op
from algorithms.core.kinds import Kind
from algorithms.core.stored import Arrays
from algorithms.dynamic.pool import DynamicPool
from algorithms.trees.evaluation import Measures, Prequential
from worker.bench.cases import Progress, Row, against_baselines, machine, significant
from worker.bench.tables import Table, first
from worker.bench.updates import BATCH, plan
from worker.sources.generators import BINARY

_WARM_UP = 300

Policy = Mapping[str, Any]  # parameters of `DynamicPool` that say when subtrees are rebuilt


class Run(NamedTuple):
    """What one run over a stream came to."""

    pool: DynamicPool
    seconds: float
    measures: Measures
    scanned: int  # examples of nodes whose splits were looked for, beside those that were rebuilt


def bench_dynamic(
    table: Table,
    updates: Sequence[str],
    policies: Sequence[Policy],
    options: Mapping[str, Any],
    repeats: int,
    progress: Progress = lambda step: None,
    latency: bool = False,
    times: int = 1,
    last: int | None = None,
) -> Iterator[Row]:
    """Yield one line for each model of updates and policy.

    Parameters
    ----------
    table : Table
        Every example is predicted when it is inserted.
    updates : sequence of str
        As `worker.bench.updates.workload` takes them.
    policies : sequence of mapping
        ``epsilon``, ``beta`` or ``guarantee`` of each, and its ``max_work``, if it has one. An epsilon of 0
        builds the tree from scratch at each update; where it is among them, lines say how their times compare.
    options : mapping
        Further parameters of `DynamicPool`, the same for all.
    repeats : int
        Rounds; in each round every policy has its turn, times are medians over the rounds.
    progress : callable
        Called with what is about to run.
    latency : bool
        Apply the events once more, one by one, and tell how long each took, and how long the first look took at
        what an example is predicted by after its delete: of the processor's time.
    times : int
        Go through the table so often, each time with new ids.
    last : int, optional
        Only the last so many events count. What comes before them is learned once, with an epsilon of 1, and each
        policy, which must have an epsilon, goes on with that.
    """
    progress("compile")
    warm = first(table, _WARM_UP)
    for policy in policies:
        run(
            pool_for(table, policy, options),
            batches_of(warm, *plan(len(warm.label), "window:50")),
            len(table.classes),
        )
    inserts = times * len(table.label)
    for model in updates:
        op, example = plan(inserts, model)
        begin = len(op) - min(last or len(op), len(op))
        start = _learned(table, op[:begin], example[:begin], options)
        op, example = op[begin:], example[begin:]
        taken: list[list[float]] = [[] for _ in policies]
        runs: list[Run] = []
        for repeat in range(repeats):
            runs = []
            for at, policy in enumerate(policies):
                progress(f"{table.name}, {model}: {_words(policy)}, round {repeat + 1} of {repeats}")
                pool = _begun(pool_for(table, policy, options), start)
                runs.append(run(pool, batches_of(table, op, example), len(table.classes)))
                taken[at].append(runs[-1].seconds)
        scratch = [times for policy, times in zip(policies, taken, strict=True) if policy == {"epsilon": 0.0}]
        for policy, seconds, done in zip(policies, taken, runs, strict=True):
            row: Row = {"bench": "dynamic", "data": table.name, "updates": model, **policy, **options}
            row |= {"inserts": inserts, "events": len(op)} | _figures(done, len(op))
            row["us_per_event"] = significant(statistics.median(seconds) / len(op) * 1e6)
            if scratch:
                pairs = zip(seconds, scratch[0], strict=True)
                row["to_from_scratch"] = significant(statistics.median(mine / whole for mine, whole in pairs))
            if latency:
                progress(f"{table.name}, {model}: {_words(policy)}, one by one")
                pool = _begun(pool_for(table, policy, options), start)
                row |= _latencies(pool, batches_of(table, op, example, 1))
            yield row | {"repeats": repeats, "machine": machine()}


def _words(policy: Policy) -> str:
    return ", ".join(f"{name} {value}" for name, value in policy.items())


def _learned(table: Table, op: Int8s, example: Int64s, options: Mapping[str, Any]) -> Arrays:
    """Return a state that has learned some operations, with few rebuilds; of none, none."""
    if not len(op):
        return {}
    pool = pool_for(table, {"epsilon": 1.0}, options)
    for batch in batches_of(table, op, example):
        pool.apply(batch)
    return pool.arrays()


def _begun(pool: DynamicPool, start: Arrays) -> DynamicPool:
    """Return a pool that begins with a copy of a state, where there is one."""
    return pool.restore({name: array.copy() for name, array in start.items()}) if start else pool


def _latencies(pool: DynamicPool, events: Iterable[Events]) -> Row:
    """Return how long each of the last events took, in microseconds of the processor, the pool's call included."""
    taken: dict[str, list[float]] = {"insert": [], "delete": [], "look_after_delete": []}
    for event in events:
        is_delete = event.op[0] == Op.DELETE
        start = time.thread_time()
        pool.apply(event)
        taken["delete" if is_delete else "insert"].append(time.thread_time() - start)
        if is_delete:
            look = event._replace(op=np.array([Op.PREDICT], np.int8))
            start = time.thread_time()
            pool.apply(look)
            taken["look_after_delete"].append(time.thread_time() - start)
    return {
        f"{what}_us": [
            significant(float(figure) * 1e6) for figure in (*np.quantile(times, (0.5, 0.99)), max(times))
        ]
        for what, times in taken.items()
        if times
    }


def _figures(done: Run, events: int) -> Row:
    sizes = done.pool.sizes()
    return {
        "accuracy": significant(done.measures.accuracy),
        "f1": significant(float(done.measures.f1[1])),
        "macro_f1": significant(done.measures.macro_f1),
        **against_baselines(done.measures),
        "rebuilds": sizes.rebuilds,
        "rebuilt_per_event": significant(sizes.rebuilt / events),
        "scanned_per_event": significant(done.scanned / events),
        "live": sizes.examples,
        "nodes": sizes.nodes,
        "depth": done.pool.depth,
        "state_bytes": done.pool.nbytes,
    }


def pool_for(table: Table, policy: Policy, options: Mapping[str, Any]) -> DynamicPool:
    """Return an empty pool for a table; a nominal feature counts as a number, as in the paper."""
    kinds: dict[int | bytes, Kind] = {
        feature: Kind.NUMERIC for feature, values in enumerate(table.kinds.tolist()) if values != BINARY
    }
    return DynamicPool(classes=len(table.classes), kinds=kinds, evaluate=True, **policy, **options)


def run(pool: DynamicPool, batches: Iterable[Events], classes: int) -> Run:
    """Apply batches; only the pool's own time counts."""
    kept = Prequential(classes, BATCH)
    seconds = 0.0
    scanned = 0
    for batch in batches:
        start = time.perf_counter()
        answers = pool.apply(batch)
        seconds += time.perf_counter() - start
        scanned += int(answers.scanned.sum())
        new = batch.op == Op.INSERT
        kept.add(batch.label[new], answers.predicted[new], batch.weight[new], answers.loss[new])
    return Run(pool, seconds, kept.total().measures(), scanned)


def batches_of(table: Table, op: Int8s, example: Int64s, size: int = BATCH) -> Iterator[Events]:
    """Yield operations on the examples of a table, `size` in each batch but the last; deletes are by id.

    Beyond the last example the table begins anew, with new ids.
    """
    for begin in range(0, len(op), size):
        numbers = example[begin : begin + size]
        whose = numbers % len(table.label)
        n = len(whose)
        start = table.pointer[whose]
        length = table.pointer[whose + 1] - start
        pointer = np.zeros(n + 1, np.int64)
        np.cumsum(length, out=pointer[1:])
        source = np.arange(pointer[-1]) + np.repeat(start - pointer[:-1], length)
        label = table.label[whose].astype(np.int32)
        events = Events.of(op[begin : begin + size], label, pointer, table.feature[source], table.value[source])
        yield events._replace(named=np.ones(n, np.int8), id_high=numbers, id_low=numbers)
