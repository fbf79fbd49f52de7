"""`bench regression`: regression trees over each observer, and such as forget, beside river's on request.

Every label is predicted, then learned. Ours get batches in columns, river one example at a time as a dict of what
is present.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.criteria import UNIT
from algorithms.core.events import Events, Op
from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.dynamic.numbers import DynamicNumberPool, NumberAnswers
from algorithms.regression.evaluation import Evaluated, Prequential
from algorithms.regression.pool import RegressionPool
from worker.bench.cases import Progress, Row, machine, significant

BATCH = 1_000  # examples in one call of the kernel
_RECOVERED, _HOLDS = 200, 0.88  # after a drift: examples in a row, and the share of 0.9 that has to be within
_WORDS, _PRESENT = 2_000, 20  # of the stream of words: in all, and in an example

# Both sides are one thread that computes: CPU time is what the work takes on a machine that does other work as
# well.
_clock = time.process_time


class Stream(NamedTuple):
    """Examples in columns."""

    name: str
    kind: Kind  # of the features that `binary` does not name
    pointer: Int64s  # int64[n + 1]
    feature: Int64s  # int64[ones], ascending in an example
    value: Float64s  # float64[ones]
    y: Float64s  # float64[n]
    binary: frozenset[int] = frozenset()
    drift: int | None = None  # the example with which it changes


def friedman(n: int, seed: int) -> Stream:
    """Return Friedman's first function: ten uniform features of which five tell the label, and noise of 1."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 10))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    feature = np.tile(np.arange(10, dtype=np.int64), n)
    return Stream(
        "friedman",
        Kind.NUMERIC,
        np.arange(n + 1, dtype=np.int64) * 10,
        feature,
        x.ravel(),
        y + rng.normal(0, 1, n),
    )


def words(n: int, seed: int) -> Stream:
    """Return texts of 20 words out of 2,000, some frequent; the first hundred move the label, with noise of 1."""
    rng = np.random.default_rng(seed)
    drawn = np.sort((_WORDS * rng.random((n, _PRESENT)) ** 3).astype(np.int64), axis=1)
    kept = np.concatenate([np.ones((n, 1), bool), np.diff(drawn, axis=1) > 0], axis=1)
    effect = np.zeros(_WORDS)
    effect[:100] = rng.normal(0, 3, 100)
    y = (effect[drawn] * kept).sum(axis=1) + rng.normal(0, 1, n)
    pointer = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64)
    feature = drawn[kept]
    return Stream("words", Kind.BINARY, pointer, feature, np.ones(len(feature)), np.asarray(y, np.float64))


def friedman_drift(n: int, seed: int) -> Stream:
    """Return Friedman's function, which in the middle exchanges its features with the others, and noise of 5."""
    stream = friedman(n, seed)
    middle = n // 2
    x = stream.value.reshape(n, 10)
    later = x[middle:]
    x[middle:] = later[:, ::-1].copy()
    noise = 4 * np.random.default_rng(seed + 1).normal(0, 1, n - middle)
    stream.y[middle:] += noise
    return stream._replace(name="friedman_drift", drift=middle)


STREAMS: dict[str, Callable[[int, int], Stream]] = {
    "friedman": friedman,
    "words": words,
    "friedman_drift": friedman_drift,
}

# Options of `RegressionPool`.
SIDES: dict[str, dict[str, Any]] = {
    "qo": {"observer": "qo"},
    "qo-third": {"observer": "qo", "options": {"fraction": 1 / 3}},
    "qo-0.01": {"observer": "qo", "options": {"radius": 0.01}},
    "tebst": {"observer": "tebst", "options": {"decimals": 3}},
    "ebst": {"observer": "ebst"},
    "qo-linear": {"observer": "qo", "predict": "linear"},
    "qo-adaptive": {"observer": "qo", "predict": "adaptive"},
    "qo-interval": {"observer": "qo", "predict": "adaptive", "interval": 0.9},
}


# Options of `DynamicNumberPool`: trees that forget, of all examples and of the last thousand. Those with a
# guarantee are looked through by every example that is predicted, `forgets-scratch` is built anew after each.
FORGETTING: dict[str, dict[str, Any]] = {
    "forgets": {"epsilon": 0.1},
    "forgets-1000": {"epsilon": 0.1, "window": 1_000},
    "forgets-exact": {"guarantee": "exact", "window": 1_000},
    "forgets-beta": {"beta": 0.01, "window": 1_000},
    "forgets-scratch": {"epsilon": 0.0, "window": 1_000},
}
_LEAVES: dict[str, Any] = {"max_depth": 10, "min_examples": 20}  # of them hold as many examples as give a mean
_UNITS = 1 << 24  # in the range of a stream's labels

_Trees: TypeAlias = RegressionPool | DynamicNumberPool


class Terms(NamedTuple):
    """What all sides agree on."""

    grace_period: int  # n_min
    split_confidence: float
    tie_threshold: float
    repeats: int  # of ours; river runs once


def bench_regression(
    streams: Sequence[Stream],
    sides: Sequence[str],
    terms: Terms,
    beside: Callable[[Terms], dict[str, Any]] | None = None,
    progress: Progress = lambda step: None,
) -> Iterator[Row]:
    """Yield a line for each stream and side.

    Parameters
    ----------
    streams : sequence of Stream
        Every example is predicted, then learned, in order.
    sides : sequence of str
        Names in `SIDES` or `FORGETTING`.
    terms : Terms
        Parameters of all sides.
    beside : callable, optional
        Returns regressors as river has them, by name; see `river_trees`.
    progress : callable
        Called with what is about to run.
    """
    for stream in streams:
        batches = batches_of(stream)
        for side in sides if stream.kind == Kind.NUMERIC else _without_observers(sides):
            progress(f"{stream.name}: {side}")
            run(_pool(stream, side, terms), batches[:1])
            runs = [run(_pool(stream, side, terms), batches) for _ in range(terms.repeats)]
            pool, evaluated, within, work = runs[0][1:]
            seconds = statistics.median(each[0] for each in runs)
            yield (
                _row(stream, side, seconds, evaluated)
                | _coverage(stream, within)
                | _work(stream, work)
                | {
                    "leaves": pool.sizes().leaves,
                    "elements": pool.element_count if isinstance(pool, RegressionPool) else pool.live_examples,
                    "state_bytes": pool.nbytes,
                    "machine": machine(),
                }
            )
        for side, tree in (beside(terms) if beside is not None else {}).items():
            progress(f"{stream.name}: {side}")
            seconds, evaluated = run_peer(tree, stream)
            yield _row(stream, side, seconds, evaluated) | {"leaves": tree.n_leaves, "machine": machine()}


def _without_observers(sides: Sequence[str]) -> list[str]:
    """Return one side for each way to predict: binary features need no observer, so it speaks for all of them."""
    observed = [side for side in sides if side in SIDES]
    ways = {(SIDES[side].get("predict"), SIDES[side].get("interval")): side for side in reversed(observed)}
    return [*list(ways.values())[::-1], *(side for side in sides if side in FORGETTING)]


def _row(stream: Stream, side: str, seconds: float, evaluated: Evaluated) -> Row:
    measures = evaluated.measures()
    return {
        "bench": "regression",
        "data": stream.name,
        "side": side,
        "examples": len(stream.y),
        "us_per_example": significant(seconds / len(stream.y) * 1e6),
        "mae": significant(measures.mae),
        "rmse": significant(measures.rmse),
        "r2": significant(measures.r2),
    }


def _pool(stream: Stream, side: str, terms: Terms) -> _Trees:
    if side in FORGETTING:
        low, high = float(stream.y.min()), float(stream.y.max())
        kinds: dict[int | bytes, Kind] = dict.fromkeys(stream.binary, Kind.BINARY)
        scale = Scale(low, high, (high - low) / _UNITS)
        told = _LEAVES | FORGETTING[side]
        return DynamicNumberPool(scale, default=stream.kind, kinds=kinds, evaluate=True, **told)
    return RegressionPool(
        default=stream.kind,
        kinds=dict.fromkeys(stream.binary, Kind.BINARY),
        grace_period=terms.grace_period,
        split_confidence=terms.split_confidence,
        tie_threshold=terms.tie_threshold,
        **SIDES[side],
    )


def batches_of(stream: Stream) -> list[Events]:
    """Return a stream's examples as inserts of weight 1, `BATCH` in each batch but the last."""
    batches = []
    for start in range(0, len(stream.y), BATCH):
        y = stream.y[start : start + BATCH]
        pointer = stream.pointer[start : start + BATCH + 1]
        op = np.full(len(y), Op.INSERT, np.int8)
        ones = slice(pointer[0], pointer[-1])
        feature = stream.feature[ones].astype(np.uint32)
        batches.append(Events.of(op, y, pointer - pointer[0], feature, stream.value[ones]))
    return batches


class Ran(NamedTuple):
    """What a run led to."""

    seconds: float
    pool: _Trees
    evaluated: Evaluated
    within: Float64s  # float64[n], 1: the label was within its interval, nan: there was none; [0] nobody asked
    work: Int64s  # int64[2], of trees that forget: examples that were rebuilt and scanned; else int64[0]


def _coverage(stream: Stream, within: Float64s) -> Row:
    """Return the share of labels within their intervals, and how soon it was back after a drift."""
    if not len(within):
        return {}
    parts = [np.nanmean(within[at : at + BATCH]) for at in range(0, len(within) - BATCH + 1, BATCH)]
    found: Row = {"coverage": significant(float(np.nanmean(within)))}
    if parts:
        found |= {
            "least_coverage": significant(float(min(parts))),
            "most_coverage": significant(float(max(parts))),
        }
    if stream.drift is not None:
        after = within[stream.drift :]
        holds = [at for at in range(_RECOVERED, len(after)) if np.nanmean(after[at - _RECOVERED : at]) >= _HOLDS]
        found["holds_again_after"] = holds[0] if holds else None
        found["coverage_of_the_hundreds_after"] = [
            significant(float(np.nanmean(after[at : at + 100]))) for at in range(0, min(len(after), 500), 100)
        ]
    return found


def _work(stream: Stream, work: Int64s) -> Row:
    """Return how many examples an event of trees that forget rebuilt and scanned."""
    named = zip(("rebuilt_per_example", "scanned_per_example"), work.tolist(), strict=False)
    return {name: significant(each / len(stream.y)) for name, each in named}


def run(pool: _Trees, batches: Sequence[Events]) -> Ran:
    """Return what a pool takes for all batches, and how well it predicted."""
    kept = Prequential(BATCH)
    seconds = 0.0
    within = [np.zeros(0)]
    work = np.zeros(2 if isinstance(pool, DynamicNumberPool) else 0, np.int64)
    for batch in batches:
        start = _clock()
        answers = pool.apply(batch)
        seconds += _clock() - start
        kept.add(batch.label, answers.predicted, batch.weight)
        if isinstance(answers, NumberAnswers):
            work += (answers.rebuilt.sum(), answers.scanned.sum())
        elif (margin := answers.margin) is not None:
            told = np.abs(batch.label - answers.predicted) <= margin
            within.append(np.where(np.isnan(margin), np.nan, told))
    return Ran(seconds, pool, kept.total(), np.concatenate(within), work)


def run_peer(tree: Any, stream: Stream) -> tuple[float, Evaluated]:
    """Return the seconds that a regressor as river has them takes, and how well it predicted.

    What it says before the first example, when nothing is known, is not evaluated.
    """
    predicted = np.full(len(stream.y), np.nan)
    seconds = 0.0
    for at, y in enumerate(stream.y.tolist()):
        ones = slice(stream.pointer[at], stream.pointer[at + 1])
        x = dict(zip(stream.feature[ones].tolist(), stream.value[ones].tolist(), strict=True))
        start = _clock()
        said = tree.predict_one(x)
        tree.learn_one(x, y)
        seconds += _clock() - start
        if at:
            predicted[at] = said
    kept = Prequential(BATCH)
    kept.add(stream.y, predicted, np.full(len(stream.y), UNIT, np.int64))
    return seconds, kept.total()


def river_trees(terms: Terms) -> dict[str, Any]:
    """Return river's Hoeffding trees over its splitters, with leaves that predict the mean, and as it has them.

    Raises
    ------
    ModuleNotFoundError
        Where it is not installed.
    """
    from river.tree import HoeffdingTreeRegressor
    from river.tree.splitter import EBSTSplitter, QOSplitter, TEBSTSplitter

    splitters = {"qo-0.25": QOSplitter, "tebst": partial(TEBSTSplitter, digits=3), "ebst": EBSTSplitter}
    own = {
        "grace_period": terms.grace_period,
        "delta": terms.split_confidence,
        "tau": terms.tie_threshold,
    }
    trees = {
        f"river-{name}": HoeffdingTreeRegressor(**own, leaf_prediction="mean", splitter=made())
        for name, made in splitters.items()
    }
    return trees | {"river-qo-0.25-adaptive": HoeffdingTreeRegressor(**own, splitter=QOSplitter())}
