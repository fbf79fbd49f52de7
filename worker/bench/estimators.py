"""`bench estimators`: what `learn_one`, `predict_one`, `unlearn_one` and `partial_fit` cost.

::

    task                  a side and what it stands beside, in the same rounds
    learn_one             ours : river's tree, the same dicts
    predict, then learn   ours : river's tree, both in river's progressive_val_score
    partial_fit           ours for scikit-learn : its pool, which applies the same events
    unlearn_one           the tree that forgets : what it took to learn these examples

To make the dicts, matrices and events is not part of what is measured.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.events import Events
from algorithms.estimators.online import ForgettingTreeClassifier, TreeClassifier, tree_pool
from algorithms.trees.predict import Predict
from worker.bench.cases import Progress, Row, machine, significant
from worker.bench.peers import PREDICTIONS
from worker.bench.tables import Table, first
from worker.bench.trees import BATCH, batches_of
from worker.sources.generators import BINARY

SETS = ("electricity", "spam_katakis")
SHORT = 3_000  # rows of a short stream, where what a first call does counts
_WARM_UP = 300

Example = tuple[dict[str, Any], int]  # features by their names; the class

# All sides are one thread that computes: CPU time is what work takes on a machine that does other work as well.
_clock = time.process_time


class Peers(NamedTuple):
    """Whom we are measured beside, and ours where these are needed for them."""

    versions: dict[str, str]
    tree: Callable[..., Any]  # takes what river.tree.HoeffdingTreeClassifier takes
    ours: Callable[..., Any]  # `algorithms.estimators.river.TreeClassifier`
    columns: Callable[..., Any]  # `algorithms.estimators.sklearn.TreeClassifier`
    score: Callable[[list[Example], Any], Any]  # predict each example, then learn it
    csr: Callable[..., Any]  # takes what scipy.sparse.csr_matrix takes


class Terms(NamedTuple):
    """What both sides agree on, and how long they run."""

    predictions: list[Predict]
    grace_period: int  # n_min
    split_confidence: float
    tie_threshold: float
    unlearned: int  # examples that are learned and unlearned, at most
    repeats: int


class _Side(NamedTuple):
    """One side of a comparison."""

    name: str
    seconds: Callable[[], float]  # do all of it anew and return how long it took


def peers() -> Peers:
    """Return river and scikit-learn.

    Raises
    ------
    ModuleNotFoundError
        Where one is not installed.
    """
    import river
    import sklearn
    from river.evaluate import progressive_val_score
    from river.metrics import Accuracy
    from river.tree import HoeffdingTreeClassifier
    from scipy.sparse import csr_matrix

    from algorithms.estimators import river as for_river
    from algorithms.estimators import sklearn as for_sklearn

    return Peers(
        versions={"river": river.__version__, "scikit-learn": sklearn.__version__},
        tree=HoeffdingTreeClassifier,
        ours=for_river.TreeClassifier,
        columns=for_sklearn.TreeClassifier,
        score=lambda examples, model: progressive_val_score(examples, model, Accuracy()),
        csr=csr_matrix,
    )


def bench_estimators(
    table: Table, beside: Peers, terms: Terms, progress: Progress = lambda step: None
) -> Iterator[Row]:
    """Yield two lines for each task: of what ours stands beside; of ours, with how many times its time it took.

    Parameters
    ----------
    table : Table
        A stream; its features that have categories are numbers to all sides.
    beside : Peers
        See `peers`.
    terms : Terms
        Parameters of all sides. Whatever else the others can be told stays as it is by default.
    progress : callable
        Called with what is about to run.
    """
    about = {"versions": beside.versions | {"anabranch": version("anabranch")}, "machine": machine()}
    for row in _rows(table, beside, terms, progress):
        yield {"bench": "estimators", "data": table.name} | row | about


def _rows(table: Table, beside: Peers, terms: Terms, progress: Progress) -> Iterator[Row]:
    examples = list(_examples(table))
    for prediction in terms.predictions:
        told = {"predict": prediction.name.lower().replace("_", "-")}
        mine, its = _ours(terms, prediction), _rivers(terms, prediction)
        for task, run in (("learn_one", _learn), ("predict, then learn", beside.score)):
            progress(f"{table.name}: {task}, {told['predict']}")
            run(examples[:_WARM_UP], beside.ours(**mine))  # compiles
            sides = [
                _Side("river", partial(_taken, run, examples, partial(beside.tree, **its))),
                _Side("anabranch", partial(_taken, run, examples, partial(beside.ours, **mine))),
            ]
            yield from _compared({"task": task, **told}, sides, len(examples), terms.repeats)
        for rows in sorted({len(examples), min(len(examples), SHORT)}):
            progress(f"{table.name}: partial_fit of {rows} rows, {told['predict']}")
            sides = _fitting(first(table, rows), beside, mine)
            yield from _compared({"task": "partial_fit", **told, "batch": BATCH}, sides, rows, terms.repeats)
    progress(f"{table.name}: unlearn_one")
    part = examples[: terms.unlearned]
    _forget(part[:_WARM_UP])
    rounds = [_forget(part) for _ in range(terms.repeats)]
    learned, unlearned = ([each[side] for each in rounds] for side in (0, 1))
    yield from _lines({"task": "unlearn_one"}, "learn_one", learned, "unlearn_one", unlearned, len(part))


def _compared(about: Row, sides: list[_Side], examples: int, repeats: int) -> Iterator[Row]:
    """Yield the lines of two sides, which take turns."""
    rounds = [[side.seconds() for side in sides] for _ in range(repeats)]
    base, other = sides
    yield from _lines(about, base.name, [a for a, _ in rounds], other.name, [b for _, b in rounds], examples)


def _lines(
    about: Row, base: str, of_base: list[float], side: str, taken: list[float], examples: int
) -> Iterator[Row]:
    """Yield the line of what one side took, and the line of the other, with the median of the rounds' ratios."""

    def line(name: str, seconds: list[float]) -> Row:
        each = statistics.median(seconds) / examples * 1e6
        return about | {
            "side": name,
            "examples": examples,
            "us_per_example": significant(each),
            "repeats": len(seconds),
        }

    ratio = statistics.median(mine / other for mine, other in zip(taken, of_base, strict=True))
    yield line(base, of_base)
    yield line(side, taken) | {f"to_{base}": significant(ratio)}


# --- one at a time


def _examples(table: Table) -> Iterator[Example]:
    """Yield a table's examples as people have them: columns with their values; words that are present."""
    names = table.names or tuple(map(str, range(len(table.kinds))))
    zeros = dict.fromkeys(table.names, 0.0)
    words = not table.names and bool((table.kinds == BINARY).all())
    for label, (start, stop) in zip(table.label.tolist(), pairwise(table.pointer.tolist()), strict=True):
        present = [names[feature] for feature in table.feature[start:stop].tolist()]
        values = [True] * (stop - start) if words else table.value[start:stop].tolist()
        yield zeros | dict(zip(present, values, strict=True)), label


def _ours(terms: Terms, prediction: Predict) -> dict[str, Any]:
    return {
        "grace_period": terms.grace_period,
        "split_confidence": terms.split_confidence,
        "tie_threshold": terms.tie_threshold,
        "leaf_prediction": prediction.name.lower(),
    }


def _rivers(terms: Terms, prediction: Predict) -> dict[str, Any]:
    return {
        "grace_period": terms.grace_period,
        "delta": terms.split_confidence,
        "tau": terms.tie_threshold,
        "split_criterion": "info_gain",
        "leaf_prediction": PREDICTIONS[prediction],
    }


def _learn(examples: list[Example], model: Any) -> None:
    """Learn all examples; the last line has ours learn what waits for a question."""
    for x, label in examples:
        model.learn_one(x, label)
    model.predict_one(examples[-1][0])


def _taken(run: Callable[[list[Example], Any], Any], examples: list[Example], make: Callable[[], Any]) -> float:
    model = make()
    start = _clock()
    run(examples, model)
    return _clock() - start


def _forget(examples: list[Example]) -> tuple[float, float]:
    """Return the seconds that it took to learn examples, and to unlearn them, the oldest first."""
    model = ForgettingTreeClassifier()
    start = _clock()
    _learn(examples, model)
    learned = _clock()
    for x, label in examples:
        model.unlearn_one(x, label)
    return learned - start, _clock() - learned


# --- rows


def _fitting(table: Table, beside: Peers, parameters: dict[str, Any]) -> list[_Side]:
    """Return a pool that applies batches, and the adapter that fits the same rows."""
    batches = batches_of(table)
    classes = np.arange(len(table.classes))
    # As the adapter has it: columns of numbers, or sparse rows of ones.
    numeric = bool(table.names) or bool((table.value != 1.0).any())
    model = TreeClassifier(**parameters)
    shape = len(table.kinds)
    parts = [(_matrix(batch, shape, beside.csr, dense=bool(table.names)), batch.label) for batch in batches]

    def applied() -> float:
        start = _clock()
        pool = tree_pool(model, numeric, len(classes), names=False)
        for batch in batches:
            pool.apply(batch, checked=True)
        return _clock() - start

    def fitted() -> float:
        start = _clock()
        tree = beside.columns(**parameters)
        for rows, labels in parts:
            tree.partial_fit(rows, labels, classes)
        return _clock() - start

    applied()  # compiles
    return [_Side("pool", applied), _Side("partial_fit", fitted)]


def _matrix(batch: Events, columns: int, csr: Callable[..., Any], *, dense: bool) -> Any:
    """Return examples as a matrix: dense where all columns belong to every example."""
    n = len(batch.label)
    if not dense:
        return csr((batch.value, batch.feature.astype(np.int32), batch.pointer), (n, columns))
    rows = np.zeros((n, columns))
    rows[np.repeat(np.arange(n), np.diff(batch.pointer)), batch.feature] = batch.value
    return rows
