"""`bench trees`: policies on the same streams: attempts, delay, time, accuracy, as in paper 001's Table 2."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.events import Events, Op
from algorithms.core.kinds import Kind
from algorithms.core.schema import Feature
from algorithms.trees.evaluation import Measures, Prequential
from algorithms.trees.policies import POLICIES
from algorithms.trees.pool import TreePool
from worker.bench import datasets
from worker.bench.cases import Progress, Row, against_baselines, machine, significant
from worker.bench.tables import PAPER_001, Table, first, generated, paper_001
from worker.sources.generators import BINARY, NUMERIC

REFERENCE = "reference"  # VFDT that tries to split after every example
CHOICES = [*POLICIES, REFERENCE]
NUMERICS = {"gaussian": Kind.NUMERIC, "quantised": Kind.QUANTISED}  # observers of numeric features
BATCH = 1_000  # examples in one call of the kernel
_WARM_UP = 1_000


class Side(NamedTuple):
    """One side of the comparison."""

    policy: str
    numeric: str = "gaussian"  # a name in `NUMERICS`


def table_of(data: str, folder: Path | None, examples: int | None) -> Table:
    """Return a table by its name.

    Parameters
    ----------
    data : str
        A name in `PAPER_001` or in `datasets.SETS`, or what `generate` takes.
    folder : Path, optional
        Where the recorded sets are.
    examples : int, optional
        Take only so many; a generator makes 100,000 unless told.

    Raises
    ------
    ValueError
        With what was expected.
    """
    if data in datasets.SETS:
        if folder is None:
            raise ValueError(f"expected --folder as well: {data} is a recorded set")
        return datasets.load(data, folder, examples)
    n = examples or 100_000
    return generated(paper_001(data, n) if data in PAPER_001 else data, n)._replace(name=data)


def bench_trees(
    table: Table,
    policies: list[str],
    options: Mapping[str, Any],
    repeats: int,
    progress: Progress = lambda step: None,
    numerics: Sequence[str] = ("gaussian",),
    delays: bool = True,
) -> Iterator[Row]:
    """Yield one line for each policy and observer of numeric features.

    Parameters
    ----------
    table : Table
        Every example is predicted, then learned, in order.
    policies : list of str
        Names in `POLICIES`, or `REFERENCE`.
    options : mapping
        Further parameters of `TreePool`, the same for all.
    repeats : int
        Rounds; in each round every policy runs once, figures are medians over the rounds.
    progress : callable
        Called with what is about to run.
    numerics : sequence of str
        Names in `NUMERICS`.
    delays : bool
        Measure delays: an attempt after every example, in a run of its own.
    """
    batches = batches_of(table)
    sides = [Side(policy, numeric) for policy in policies for numeric in numerics]
    chosen = [side for side in sides if refusal(table, side, options) is None]
    for side in chosen:
        progress(f"compile {side.policy}")
        run(pool_for(table, side, options), batches_of(first(table, _WARM_UP)))
    taken: dict[Side, list[float]] = {side: [] for side in chosen}
    for repeat in range(repeats):
        for side in chosen:
            progress(f"{table.name}: {side.policy}, {side.numeric}, round {repeat + 1} of {repeats}")
            taken[side].append(run(pool_for(table, side, options), batches)[0])
    reference = Side("periodic", numerics[0])
    for side in sides:
        row: Row = {"bench": "trees", "data": table.name, **side._asdict(), "examples": len(table.label)}
        row |= {"features": len(table.kinds), "grace_period": options.get("grace_period")}
        if side not in taken:
            yield row | {"refused": refusal(table, side, options), "machine": machine()}
            continue
        progress(f"{table.name}: {'delay' if delays else 'accuracy'} of {side.policy}")
        row |= _figures(table, side, options, batches, delays)
        seconds = statistics.median(taken[side])
        row |= {
            "seconds": significant(seconds),
            "us_per_example": significant(seconds / len(table.label) * 1e6),
            "repeats": repeats,
        }
        if reference in taken:
            pairs = zip(taken[side], taken[reference], strict=True)
            row["to_periodic"] = significant(statistics.median(mine / other for mine, other in pairs))
        yield row | {"machine": machine()}


def pool_for(table: Table, side: Side, options: Mapping[str, Any]) -> TreePool:
    """Return an empty pool for the features and classes of a table."""
    kinds: dict[Feature, Kind] = {
        feature: NUMERICS[side.numeric] if values == NUMERIC else Kind.NOMINAL
        for feature, values in enumerate(table.kinds.tolist())
        if values != BINARY
    }
    named: dict[str, Any] = {"policy": side.policy}
    if side.policy == REFERENCE:
        named = {"policy": "periodic", "grace_period": 1}
    if side.policy not in POLICIES or not POLICIES[side.policy].scores:
        named["candidates"] = None
    return TreePool(**{"classes": len(table.classes), "kinds": kinds, "evaluate": True, **options, **named})


def refusal(table: Table, side: Side, options: Mapping[str, Any]) -> str | None:
    """Return why a policy does not serve a table, None where it does."""
    try:
        pool_for(table, side, options)
    except ValueError as error:
        return str(error)
    return None


def _figures(table: Table, side: Side, options: Mapping[str, Any], batches: list[Events], delays: bool) -> Row:
    """Return what a policy does, from a run that may measure delays."""
    is_counted = side.policy in POLICIES and POLICIES[side.policy].counted
    measured = {"measure_delay": True} if delays and is_counted else {}
    pool = pool_for(table, side, {**options, **measured})
    measures = run(pool, batches, len(table.classes))[1]
    sizes = pool.sizes()
    assert measures is not None
    return {
        "accuracy": significant(measures.accuracy),
        **({"f1": significant(float(measures.f1[1]))} if len(measures.f1) == 2 else {}),
        "kappa": significant(measures.kappa),
        "log_loss": significant(measures.log_loss),
        **against_baselines(measures),
        "attempts": sizes.attempts,
        "splits": sizes.splits,
        "leaves": sizes.leaves,
        "replaced": pool.alternates.promoted,
        "average_delay": significant(sizes.waited / sizes.splits) if sizes.splits and delays else None,
        "state_bytes": pool.nbytes,
    }


def run(
    pool: TreePool,
    batches: list[Events],
    classes: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, Measures | None]:
    """Return the seconds that a pool takes for all batches and, where classes are given, how well it predicted."""
    kept = Prequential(classes, BATCH) if classes else None
    seconds = 0.0
    for batch in batches:
        start = clock()
        answers = pool.apply(batch)
        seconds += clock() - start
        if kept is not None:
            kept.add(batch.label, answers.predicted, batch.weight, answers.loss)
    return seconds, kept.total().measures() if kept is not None else None


def batches_of(table: Table) -> list[Events]:
    """Return a table's examples as inserts of weight 1, `BATCH` in each batch but the last."""
    batches = []
    for start in range(0, len(table.label), BATCH):
        label = table.label[start : start + BATCH].astype(np.int32)
        pointer = table.pointer[start : start + BATCH + 1]
        op = np.full(len(label), Op.INSERT, np.int8)
        ones = slice(pointer[0], pointer[-1])
        batches.append(Events.of(op, label, pointer - pointer[0], table.feature[ones], table.value[ones]))
    return batches
