"""`bench labels`: the best split of K labels, an index for each, and of numbers, beside that of two labels.

All sides take turns in one run. Counting is an index of two labels that only counts, and scans when it is asked.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from algorithms.splits.labels import LabelSplits
from algorithms.splits.numbers import NumberSplits
from algorithms.splits.pool import SplitPool
from worker.bench.cases import Progress, Row, machine, significant

_PRESENT = 10  # features of an example, beside the one that tells of its label


class Example(NamedTuple):
    """One of the stream."""

    features: list[int]
    label: int


def stream(labels: int, examples: int, features: int, seed: int = 0) -> list[Example]:
    """Return examples with some of many features, and mostly one that tells of their label."""
    rng = random.Random(seed)
    found = []
    for _ in range(examples):
        label = rng.randrange(labels)
        present = {labels + rng.randrange(features) for _ in range(_PRESENT)}
        found.append(Example(sorted(present | ({label} if rng.random() < 0.8 else set())), label))
    return found


def bench_labels(
    labels: Sequence[int],
    examples: int,
    features: int,
    window: int,
    repeats: int,
    progress: Progress = lambda step: None,
) -> Iterator[Row]:
    """Yield a line for the index of two labels, and for each number of labels and criterion.

    Parameters
    ----------
    labels : sequence of int
        K.
    examples, features, window : int
        Of the stream; after `window` inserts each is followed by the delete of the oldest.
    repeats : int
        Rounds, in which all sides take turns.
    progress : callable
        Called with what is about to run.
    """
    sides: list[tuple[str, int, str]] = [
        (name, k, criterion)
        for criterion in ("gini", "entropy")
        for name, k in [
            ("two labels", 2),
            *([("counting", 2), ("numbers", 2)] if criterion == "gini" else []),
            *(("labels", each) for each in labels),
        ]
    ]
    taken: list[list[tuple[float, float]]] = [[] for _ in sides]
    looked = [0.0] * len(sides)
    sizes = [0] * len(sides)
    for turn in range(repeats + 1):  # the first compiles
        for at, (name, k, criterion) in enumerate(sides):
            progress(f"{name} {k}, {criterion}, round {turn} of {repeats}")
            made = stream(k, examples, features)
            if name == "labels":
                splits = LabelSplits(k, criterion=criterion)
                updates, queries, seen = _run(splits, made, window)
                looked[at], sizes[at] = seen, splits.nbytes
            else:
                pool: SplitPool | NumberSplits = SplitPool(
                    criterion=criterion, finder="basegini" if name == "counting" else "exact"
                )
                if name == "numbers":
                    pool = NumberSplits(0.0, 1.0, unit=0.001)
                updates, queries, _ = _run(pool, made, window)
                sizes[at] = pool.nbytes
            if turn:
                taken[at].append((updates, queries))
    for (name, k, criterion), runs, seen, size in zip(sides, taken, looked, sizes, strict=True):
        base = taken[sides.index(("two labels", 2, criterion))]
        yield {
            "bench": "labels",
            "side": name,
            "labels": k,
            "criterion": criterion,
            "examples": examples,
            "features": features,
            "window": window,
            "us_per_update": significant(statistics.median(each[0] for each in runs) * 1e6),
            "us_per_query": significant(statistics.median(each[1] for each in runs) * 1e6),
            "updates_to_two": significant(statistics.median(a[0] / b[0] for a, b in zip(runs, base, strict=True))),
            "queries_to_two": significant(statistics.median(a[1] / b[1] for a, b in zip(runs, base, strict=True))),
            "looked_at": significant(seen) if name == "labels" else None,
            "state_bytes": size,
            "repeats": repeats,
            "machine": machine(),
        }


def _run(
    splits: LabelSplits | SplitPool | NumberSplits, made: Sequence[Example], window: int
) -> tuple[float, float, float]:
    """Return seconds of an insert or delete, those of a query, and how many features a query scored."""
    updates = queries = 0.0
    count, looked = 0, 0
    clock = time.perf_counter
    for number, example in enumerate(made):
        start = clock()
        splits.insert(example.features, example.label, id=number)
        count += 1
        if number >= window:
            splits.delete(id=number - window)
            count += 1
        middle = clock()
        best = splits.best()
        queries += clock() - middle
        updates += middle - start
        looked += getattr(best, "looked_at", 0)
    return updates / count, queries / len(made), looked / len(made)
