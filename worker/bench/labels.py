"""`bench labels`: the best split of K labels, of any features and of numbers beside the index of two labels.

All sides take turns in one run. Counting is an index of two labels that only counts, and scans when it is asked.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.cadence import Emit, When
from algorithms.core.events import Events, Op
from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.mixed import questions
from algorithms.mixed.heads import RARE, ROOT
from algorithms.mixed.pool import MixedSplitPool
from algorithms.splits.labels import LabelSplits
from algorithms.splits.numbers import NumberSplitPool
from algorithms.splits.pool import SplitPool
from worker.bench.cases import Progress, Row, machine, significant
from worker.bench.datasets import load
from worker.sources.generators import BINARY, NUMERIC

_PRESENT = 10  # features of an example, beside the one that tells of its label
_FIRST = 1 << 31  # the first of the features that are not binary
_OTHERS = 5  # how many there are
_CATEGORIES = 20
_CRITERIA = ("gini", "entropy")
_ONE_BY_ONE = ("labels",)  # sides without batches


class Example(NamedTuple):
    """One of the stream."""

    features: list[int]
    label: int
    values: tuple[float, ...] = ()  # of the features that are not binary


def stream(labels: int, examples: int, features: int, seed: int = 0, others: str = "") -> list[Example]:
    """Return examples with some of many features, and mostly one that tells of their label.

    `others` is ``numbers`` or ``categories``: then the first of five more tells, too. With ``nothing`` none does.
    """
    rng = random.Random(seed)
    found = []
    for _ in range(examples):
        label = rng.randrange(labels)
        present = {labels + rng.randrange(features) for _ in range(_PRESENT)}
        tells = rng.random() < 0.8 and others != "nothing"
        values: tuple[float, ...] = ()
        if others == "numbers":
            values = (rng.gauss(label, 0.5), *(rng.gauss(0.0, 1.0) for _ in range(_OTHERS - 1)))
        elif others == "categories":
            first = label + 1 if tells and label < _CATEGORIES else rng.randrange(1, _CATEGORIES + 1)
            values = (first, *(rng.randrange(1, _CATEGORIES + 1) for _ in range(_OTHERS - 1)))
        found.append(Example(sorted(present | ({label} if tells else set())), label, values))
    return found


class _Side(NamedTuple):
    """What takes part in the run."""

    name: str
    labels: int
    criterion: str
    others: str = ""

    def make(self, splits: Emit) -> Any:
        """Return an empty one that looks for the best split at each event where `splits` says so."""
        if self.name.startswith("two"):
            return SplitPool(criterion=self.criterion, splits=splits)
        if self.name == "counting":
            return SplitPool(criterion=self.criterion, finder="basegini", splits=splits)
        if self.name == "numbers":
            return NumberSplitPool(Scale(0.0, 1.0, 0.001), splits=splits)
        if self.name == "labels":
            return LabelSplits(self.labels, criterion=self.criterion)
        kind = {"numbers": Kind.NUMERIC, "categories": Kind.NOMINAL}.get(self.others, Kind.BINARY)
        kinds: dict[int | bytes, Kind] = {_FIRST + number: kind for number in range(_OTHERS)}
        return MixedSplitPool(
            classes=self.labels,
            criterion=self.criterion,
            kinds=kinds if self.others in ("numbers", "categories") else None,
            splits=splits,
        )


def _sides(labels: Sequence[int]) -> list[_Side]:
    return [
        side
        for criterion in _CRITERIA
        for side in (
            _Side("two labels", 2, criterion),
            *([_Side("counting", 2, criterion), _Side("numbers", 2, criterion)] if criterion == "gini" else []),
            *(_Side("labels", k, criterion) for k in labels),
            *(_Side("mixed", k, criterion) for k in labels),
            *(_Side(f"mixed, {what}", k, criterion, what) for what in ("categories", "numbers") for k in labels),
            _Side("two, nothing tells", 2, criterion, "nothing"),
            *(_Side("mixed, nothing tells", k, criterion, "nothing") for k in labels),
        )
    ]


class _Took(NamedTuple):
    """Seconds of one event."""

    update: float
    query: float
    batch: float  # of an event in one batch, looked after; nan where there are no batches


def bench_labels(
    labels: Sequence[int],
    examples: int,
    features: int,
    window: int,
    repeats: int,
    progress: Progress = lambda step: None,
) -> Iterator[Row]:
    """Yield a line for the index of two labels, and for each number of labels, kind of features and criterion.

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
    sides = _sides(labels)
    taken: list[list[_Took]] = [[] for _ in sides]
    looked: list[float | None] = [None] * len(sides)
    sizes = [0] * len(sides)
    for turn in range(repeats + 1):  # the first compiles
        for at, side in enumerate(sides):
            progress(f"{side.name} {side.labels}, {side.criterion}, round {turn} of {repeats}")
            made = stream(side.labels, examples, features, others=side.others)
            splits = side.make(Emit())
            update, query, looked[at] = _run(splits, made, window)
            sizes[at] = splits.nbytes
            batch = (
                float("nan") if side.name in _ONE_BY_ONE else _in_one(side.make(Emit(When.CHANGE)), made, window)
            )
            if turn:
                taken[at].append(_Took(update, query, batch))
    for side, runs, seen, size in zip(sides, taken, looked, sizes, strict=True):
        base = taken[sides.index(_Side("two labels", 2, side.criterion))]

        def middle(of: Callable[[_Took], float], runs: list[_Took] = runs) -> float:
            return significant(statistics.median(map(of, runs)))

        def ratio(of: Callable[[_Took], float], runs: list[_Took] = runs, base: list[_Took] = base) -> float:
            pairs = zip(runs, base, strict=True)
            return significant(statistics.median(of(one) / of(other) for one, other in pairs))

        has_batches = side.name not in _ONE_BY_ONE
        yield {
            "bench": "labels",
            "side": side.name,
            "labels": side.labels,
            "criterion": side.criterion,
            "examples": examples,
            "features": features,
            "window": window,
            "us_per_update": middle(lambda took: took.update * 1e6),
            "us_per_query": middle(lambda took: took.query * 1e6),
            "us_in_batches": middle(lambda took: took.batch * 1e6) if has_batches else None,
            "updates_to_two": ratio(lambda took: took.update),
            "queries_to_two": ratio(lambda took: took.query),
            "batches_to_two": ratio(lambda took: took.batch) if has_batches else None,
            "looked_at": significant(seen) if seen is not None else None,
            "state_bytes": size,
            "repeats": repeats,
            "machine": machine(),
        }


def _x(example: Example) -> Any:
    """Return the features of an example as pools take them."""
    if not example.values:
        return example.features
    return dict.fromkeys(example.features, 1.0) | {_FIRST + at: value for at, value in enumerate(example.values)}


def _run(splits: Any, made: Sequence[Example], window: int) -> tuple[float, float, float | None]:
    """Return seconds of an insert or delete, those of a query, and how many questions a query scored."""
    updates = queries = 0.0
    count, looked = 0, 0
    clock = time.perf_counter
    for number, example in enumerate(made):
        x = _x(example)
        start = clock()
        splits.insert(x, example.label, id=number)
        count += 1
        if number >= window:
            splits.delete(id=number - window)
            count += 1
        middle = clock()
        best = splits.best()
        queries += clock() - middle
        updates += middle - start
        looked += splits.looked_at[1] if isinstance(splits, MixedSplitPool) else getattr(best, "looked_at", 0)
    seen = looked / len(made) if isinstance(splits, MixedSplitPool | LabelSplits) else None
    return updates / count, queries / len(made), seen


def _in_one(pool: Any, made: Sequence[Example], window: int) -> float:
    """Return seconds of an event where all come in one batch, and the pool looks after each."""
    events = _batch([_x(each) for each in made], [each.label for each in made], window)
    if isinstance(pool, NumberSplitPool):
        events = events._replace(label=events.label.astype(np.float64))
    start = time.perf_counter()
    pool.apply(events)
    return (time.perf_counter() - start) / len(events.op)


def _batch(xs: Sequence[Any], labels: Sequence[int], window: int) -> Events:
    """Return inserts as columns, each followed by the delete of one that is so many older."""
    op, label, pointer, named = [], [], [0], []
    feature: list[int] = []
    value: list[float] = []
    for number, (x, y) in enumerate(zip(xs, labels, strict=True)):
        pairs: Mapping[int, float] = x if isinstance(x, dict) else dict.fromkeys(x, 1.0)
        feature += pairs.keys()
        value += pairs.values()
        op.append(int(Op.INSERT))
        label.append(y)
        named.append(number)
        pointer.append(len(feature))
        if number >= window:
            op.append(int(Op.DELETE))
            label.append(0)
            named.append(number - window)
            pointer.append(len(feature))
    ids = np.array(named, np.int64)
    return Events.of(
        np.array(op, np.int8),
        np.array(label, np.int32),
        np.array(pointer, np.int64),
        np.array(feature, np.uint32),
        np.array(value, np.float64),
        named=np.ones(len(op), np.int8),
        id_high=ids,
        id_low=ids,
    )


def bench_sets(
    names: Sequence[str],
    folder: Path,
    examples: int,
    window: int,
    repeats: int,
    progress: Progress = lambda step: None,
) -> Iterator[Row]:
    """Yield a line for each recorded set and criterion: its best split of all labels after each event.

    Raises
    ------
    ValueError
        Where a set is unknown, or not in the folder.
    """
    tables = [load(name, folder, examples) for name in names]
    for table in tables:
        kinds: dict[int | bytes, Kind] = {
            at: Kind.NUMERIC if each == NUMERIC else Kind.BINARY if each == BINARY else Kind.NOMINAL
            for at, each in enumerate(table.kinds.tolist())
        }
        # Categories of tables are 0, 1, ..., and 0 is absent; here each is asked for.
        shift = np.array([kinds[at] == Kind.NOMINAL for at in range(len(kinds))], np.float64)
        xs: list[dict[int, float]] = []
        for begin, end in zip(table.pointer[:-1].tolist(), table.pointer[1:].tolist(), strict=True):
            x = dict.fromkeys(np.flatnonzero(shift).tolist(), 1.0)
            own = zip(table.feature[begin:end].tolist(), table.value[begin:end].tolist(), strict=True)
            xs.append(x | {feature: value + float(shift[feature]) for feature, value in own})
        events = _batch(xs, table.label.tolist(), window)
        for criterion in _CRITERIA:
            progress(f"{table.name}, {criterion}")
            seconds: dict[When, list[float]] = {When.CHANGE: [], When.NEVER: []}
            for turn in range(repeats + 1):  # the first compiles
                for when, taken in seconds.items():
                    pool = MixedSplitPool(
                        classes=len(table.classes), criterion=criterion, kinds=kinds, splits=Emit(when)
                    )
                    start = time.perf_counter()
                    answers = pool.apply(events)
                    if turn:
                        taken.append((time.perf_counter() - start) / len(events.op))
                    if when == When.CHANGE:
                        changes = answers.changes
            state = pool._state
            yield {
                "bench": "labels",
                "side": table.name,
                "labels": len(table.classes),
                "criterion": criterion,
                "examples": len(table.label),
                "features": len(table.kinds),
                "window": window,
                "us_in_batches": significant(statistics.median(seconds[When.CHANGE]) * 1e6),
                "us_counting": significant(statistics.median(seconds[When.NEVER]) * 1e6),
                "questions": len(questions.told(state.questions, state.heads[0, [ROOT, RARE]].tolist())),
                "changes": changes,
                "state_bytes": pool.nbytes,
                "repeats": repeats,
                "machine": machine(),
            }
