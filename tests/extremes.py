"""Extremes through every kind of model, for as long as is wanted: nothing fails, and all that is written is sane.

::

    python -m tests.extremes --minutes 60 --seed 3
    NUMBA_BOUNDSCHECK=1 python -m tests.extremes --minutes 10 --kinds tree-efdt dynamic
    NUMBA_DISABLE_JIT=1 python -m tests.extremes --minutes 10

A round draws the settings of a model and a stream for it: the least and the greatest weights, values, ids, names,
labels of all kinds, deletes, windows, tombstones, and a key that is nearly as heavy as a key can be. After each
batch the model checks its state, results are read back, and numbers must be possible. Now and then the same stream
goes through another pipeline in one batch and from a copy of the state: the same bytes must come.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgpack
import numpy as np

from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import MAX_TOTAL, UNIT
from algorithms.core.kinds import Kind
from algorithms.forests.growing import POLICIES as GROWING
from algorithms.regression.baselines import Compared
from algorithms.regression.evaluation import Prequential
from algorithms.regression.observers import OBSERVERS
from algorithms.regression.pool import RegressionPool
from algorithms.splits.finders import FINDERS
from algorithms.trees.gaussians import LARGEST_VALUE
from algorithms.trees.policies import POLICIES
from algorithms.trees.predict import Predict
from tests.oracles.differential import columns_of
from tests.oracles.naive_regression import Event
from tests.support.hostile import HOSTILE
from tests.support.model_contents import model_contents
from tests.support.one_model import SOURCE, one_model, sorted_by_source
from worker.codec import (
    DeadLetter,
    DelayedEvaluation,
    Drift,
    Evaluation,
    Expired,
    LetGo,
    Output,
    Prediction,
    RegressionDelayedEvaluation,
    RegressionEvaluation,
    RegressionPrediction,
    RegressionSplit,
    RegressionTree,
    Split,
    Tree,
    decode_output,
)
from worker.codec.encode import Measures, encode
from worker.codec.event import encode_batch, encode_event
from worker.log.port import OutRecord, Records
from worker.models import KINDS
from worker.pipeline import Pipeline
from worker.settings.by_kind import kind_told
from worker.settings.models import MemberSettings

Record = tuple[bytes | None, bytes | None]  # key and value

WEIGHTS = (2.0**-20, 2.0**31, 2.0**31 - 2.0**-20, 1.0, 0.1, 3.0, 1e-3, 2.0**20, 1e9 + 0.5)
TINY = (0.0, -0.0, 5e-324, 1e-323, -5e-324, 1.5e-323)
SMALL = (2.2250738585072014e-308, -2.225073858507201e-308, 1e-300, 1e-162, 1e-9)
NEAR = (1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0), -1.0, 0.1, 7.5, -1e9, 2.0**53, 2.0**53 + 2.0)
HUGE = (1e140, math.nextafter(1e140, 0.0), -1e140, 1e70, -1e70)
VALUES = TINY + SMALL + NEAR + HUGE
WRONG_VALUES = (1.7976931348623157e308, -1.7976931348623157e308, 1.0000000000000002e140, math.inf, math.nan)
CATEGORIES = (0.0, 1.0, 2.0, 255.0, 2.0**31, 2.0**32 - 1)
IDS = (0, 1, 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 7, 65_535, 65_536)
NAMES = ("a", "b" * 256, "ü" * 128, "\0", " ", "naïve", "b" * 255, "\U0010ffff" * 64, "0", "n\n")
INTS = (0, 1, -1, 2**63 - 1, -(2**63), 255, 256, 1_000)
TEXTS = ("", "a", "z" * 256, "ß" * 128, "0", "\0", "True", "null")
TIMES = (-1, 0, 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1)  # of records, which are the sender's
EXAMPLES = (0, -(2**63), 2**63 - 1, "", "0", "e" * 256, 7, "7")
WINDOWS = (None, None, 1, 2, 30, "1s", "20s", "36500d")
SPANS = (None, None, None, "1s", "20s", "36500d")  # for which keys are kept
PENDING = (None, {"max": 1, "for": "1s"}, {"max": 3, "for": "20s"}, {"max": 1 << 30, "for": "36500d"})
KEYS = (b"\0", b"k" * 1_024, b"\xff\xfe", b"key")


# --- what a round is about


def split_settings(draw: random.Random, finder: str, criterion: str) -> dict[str, Any]:
    """Return settings of a model of kind `split`."""
    window = draw.choice(WINDOWS)
    return {
        "kind": "split",
        "finder": finder,
        "criterion": criterion,
        "window": window,
        "verify_deletes": draw.random() < 0.4,
        "on_duplicate": draw.choice(("reject", "ignore", "replace")),
        "emit": {
            "splits": draw.choice(("change", {"every": 3})),
            "snapshots": draw.choice(("never", {"every": 5}, {"every_ms": 1})),
        },
        **({"alpha": draw.choice((0.001, 0.1, 100.0))} if FINDERS[finder].approximate is not None else {}),
    }


def mixed_settings(draw: random.Random, criterion: str) -> dict[str, Any]:
    """Return settings of a model of kind `split` with any number of classes, and features that are not binary."""
    return {
        "kind": "split",
        "criterion": criterion,
        "window": draw.choice(WINDOWS),
        "on_duplicate": draw.choice(("reject", "ignore", "replace")),
        "emit": {
            "splits": draw.choice(("change", {"every": 3})),
            "snapshots": draw.choice(("never", {"every": 5}, {"every_ms": 1})),
        },
    }


def number_settings(draw: random.Random) -> dict[str, Any]:
    """Return settings of a model of kind `split` whose labels are numbers; some streams have none in the range."""
    ranges = ((-1e140, 1e140, 1e130), (-1e10, 2.0**54, 2.0**15), (-1.0, 8.0, 1e-11), (0.0, 1e-322, 5e-324))
    low, high, unit = draw.choice(ranges)
    return {
        **split_settings(draw, "exact", "variance"),
        "target": "number",
        "label_range": [low, high],
        "label_unit": unit,
    }


def tree_settings(draw: random.Random, policy: str, criterion: str) -> dict[str, Any]:
    """Return settings of a model of kind `tree`."""
    rules = POLICIES[policy]
    return {
        "kind": "tree",
        "policy": policy,
        "criterion": criterion,
        "predict": draw.choice(list(Predict)).name.lower(),
        "grace_period": draw.choice((1, 3, 20)),
        "check_every": draw.choice((1, 4, 20)),
        **({"candidates": draw.choice((None, 2, 3, 1_000))} if rules.scores else {}),
        "split_confidence": draw.choice((5e-324, 1e-300, 1e-7, 0.5, 0.999)),
        "tie_threshold": draw.choice((0.0, 5e-324, 1e-170, 0.05, 1.0)),
        "max_depth": draw.choice((1, 4, 1 << 20)),
        "inherit": draw.random() < 0.3,
        "local_range": criterion == "entropy" and draw.random() < 0.3,
        "drop_poor": rules.drops and draw.random() < 0.3,
        "memory_limit": 1 << 20 if rules.limits and draw.random() < 0.2 else None,
        "on_delete": draw.choice(("reject", "ignore")),
        "evaluate": draw.choice(
            (None, {"window": draw.choice((1, 7, 1_000)), "emit": draw.choice(({"every": 9}, {"every_ms": 1}))})
        ),
        "emit": {"snapshots": draw.choice(("never", "change", {"every": 11}, {"every_ms": 1}))},
    }


def dynamic_settings(draw: random.Random, criterion: str) -> dict[str, Any]:
    """Return settings of a model of kind `dynamic-tree`."""
    return {
        "kind": "dynamic-tree",
        "criterion": criterion,
        **draw.choice(
            (
                {"epsilon": draw.choice((0.0, 0.1, 1_000.0))},
                {"guarantee": "exact"},
                {"beta": draw.choice((1e-6, 0.02, 1.0))},
            )
        ),
        "min_examples": draw.choice((1, 1, 5)),
        "max_depth": draw.choice((1, 5, 1 << 20)),
        "alpha": draw.choice((0.0, 0.3)),
        "window": draw.choice(WINDOWS),
        "on_duplicate": draw.choice(("reject", "ignore", "replace")),
        "evaluate": draw.choice(
            (None, {"window": draw.choice((1, 7, 1_000)), "emit": draw.choice(({"every": 9}, {"every_ms": 1}))})
        ),
        "emit": {"snapshots": draw.choice(("never", "change", {"every": 11}, {"every_ms": 1}))},
    }


def dynamic_number_settings(draw: random.Random) -> dict[str, Any]:
    """Return settings of a model of kind `dynamic-tree` whose labels are numbers."""
    told = dynamic_settings(draw, "variance") | {"alpha": 0.0}
    of_numbers = number_settings(draw)
    return told | {name: of_numbers[name] for name in ("target", "label_range", "label_unit")}


def growing_settings(draw: random.Random, policy: str) -> dict[str, Any]:
    """Return settings of a model of kind `forest` of trees that grow."""
    criterion = draw.choice(("entropy", "gini"))
    told = tree_settings(draw, policy, criterion)
    trees = draw.choice((1, 3))
    return {
        "kind": "forest",
        "of": {name: told[name] for name in MemberSettings.model_fields},
        "trees": trees,
        "bagging": draw.choice(("none", "poisson:1", "poisson:10", f"1 of {trees}")),
        "subspace": draw.choice((1.0, 0.6, 1e-9)),
        "warning": draw.choice((5e-324, 0.01, 0.999)),
        "drift": draw.choice((5e-324, 0.001, 0.999)),
        "on_delete": told["on_delete"],
        "evaluate": told["evaluate"],
        "emit": {"snapshots": draw.choice(("never", {"every": 11}, {"every_ms": 1}))},
    }


def sample_settings(draw: random.Random, kind: str) -> dict[str, Any]:
    """Return settings of a model of a kind of which nothing else is known than what its settings say."""
    section = KINDS[kind].settings
    window = {"window": draw.choice(WINDOWS)} if "window" in section.model_fields else {}
    return {"kind": kind.partition(" ")[0], **section.SAMPLE, **window}


def some_values(draw: random.Random) -> list[float]:
    """Return the values of a feature: of all sizes, or all of one."""
    of = draw.choice((VALUES, VALUES, TINY, SMALL, NEAR, HUGE))
    return draw.sample(of, draw.randrange(1, 6))


class Stream:
    """Records for a model, drawn anew for each round."""

    def __init__(self, draw: random.Random, settings: dict[str, Any]) -> None:
        self._draw = draw
        kind = kind_told(settings)
        section = KINDS[kind].settings
        is_exact = settings.get("of", settings).get("policy") == "exact"
        two = is_exact or "finder" in settings
        only_binary = two or "attributes" not in section.model_fields
        self.names = draw.random() < 0.5
        self._features: list[Any] = draw.sample(NAMES if self.names else IDS, draw.randrange(1, 9))
        self._is_number = "classes" not in section.model_fields or settings.get("target") == "number"
        if self._is_number:
            self.classes: list[Any] = [*some_values(draw), draw.choice(VALUES)]  # the labels that there are
        elif draw.random() < 0.1 and not two:
            self.classes = [f"class {number}" for number in range(draw.choice((40, 300)))]
        else:
            pool = draw.choice((INTS, TEXTS))
            self.classes = draw.sample(pool, 2 if two else draw.randrange(2, 5))
        kinds = ["binary"] if only_binary else ["binary", "numeric"]
        if kind in ("split", "tree", "forest of tree") and not only_binary:
            kinds += ["nominal"] if kind == "split" else ["nominal", "quantised"]
        self._kinds = {feature: draw.choice(kinds) for feature in self._features}
        self._weights: list[float | None] = [None, *draw.sample(WEIGHTS, draw.randrange(1, 4))]
        self._values = {each: some_values(draw) for each in self._features}
        self._live: list[dict[str, Any]] = []
        settings |= {"features": "names" if self.names else "ids", "input": SOURCE.topic}
        if not self._is_number:
            settings["classes"] = self.classes
        if not only_binary:
            attributes: dict[str, Any] = {
                each: [feature for feature, of in self._kinds.items() if of == each] for each in kinds[1:]
            }
            if attributes.get("quantised") and draw.random() < 0.5:
                attributes["radius"] = draw.choice((5e-324, 1e-300, 1.0, 1e140))
            settings["attributes"] = attributes

    def batch(self, size: int) -> list[Record]:
        """Return the next records."""
        return [self._record() for _ in range(size)]

    def heavy(self, rows: int) -> Record:
        """Return a record of rows that weigh as much as rows can."""
        half, first = rows // 2, self._features[0]
        xs = [self._x() if at % 4 == 0 else [] for at in range(rows)]
        # From the half on the first feature tells another class than before.
        ys = [self.classes[int((first in x) == (at < half))] for at, x in enumerate(xs)]
        return KEYS[0], encode_batch(xs, ys, ws=[2.0**31] * rows)

    def _plain(self, x: Any) -> bool:
        return not isinstance(x, dict)

    def _record(self) -> Record:
        draw = self._draw
        key = draw.choice(KEYS[: draw.randrange(1, len(KEYS) + 1)])
        what = draw.choices(
            ("insert", "delete", "predict", "label", "batch", "tombstone", "hostile"), (68, 12, 10, 6, 5, 1, 2)
        )[0]
        if what == "tombstone":
            return key, None
        if what == "hostile":
            return key, draw.choice(HOSTILE)[1][:10_000]
        if what == "predict":
            return key, encode_event(self._x(), op="predict", id=draw.choice((None, *EXAMPLES)))
        if what == "label":
            told = {"op": "label", "id": draw.choice(EXAMPLES), "y": self._example()["y"]}
            return key, msgpack.packb(told if draw.random() < 0.5 else told | {"w": draw.choice(WEIGHTS)})
        if what == "delete":
            gone = draw.choice(self._live) if self._live and draw.random() < 0.8 else self._example()
            if "id" in gone and draw.random() < 0.9:
                return gone.get("key", key), encode_event(op="delete", id=gone["id"])
            return gone.get("key", key), encode_event(
                gone["x"], gone["y"], op="delete", w=gone["w"], id=gone.get("id")
            )
        if what == "batch":
            rows = [self._example() for _ in range(draw.randrange(1, 12))]
            xs = [list(row["x"]) if self._plain(row["x"]) else dict(row["x"]) for row in rows]
            return key, encode_batch(xs, [row["y"] for row in rows], ws=[row["w"] or 1.0 for row in rows])
        example = self._example()
        self._live = [*self._live[-40:], example | {"key": key}]
        return key, encode_event(example["x"], example["y"], w=example["w"], id=example.get("id"))

    def _example(self) -> dict[str, Any]:
        draw = self._draw
        x = self._x()
        first = self._features[0]
        told = bool(x) and first in x and (self._plain(x) or x[first] > self._values[first][0])
        y = self.classes[(int(told) + (draw.random() < 0.15)) % len(self.classes)]
        if draw.random() < 0.03:
            y = draw.choice((0.5, "nobody", -7, 1e300))
        example = {"x": x, "y": y, "w": draw.choice(self._weights)}
        return example | {"id": draw.choice(EXAMPLES)} if draw.random() < 0.3 else example

    def _x(self) -> Any:
        draw = self._draw
        present = [feature for feature in self._features if draw.random() < 0.6]
        if all(self._kinds[feature] == "binary" for feature in present) and draw.random() < 0.7:
            return present
        return {feature: self._value(feature) for feature in present}

    def _value(self, feature: Any) -> float:
        draw = self._draw
        if draw.random() < 0.01:
            return draw.choice(WRONG_VALUES)
        if self._kinds[feature] == "binary":
            return draw.choice((1.0, 1.0, 0.0))
        if self._kinds[feature] == "nominal":
            return draw.choice(CATEGORIES)
        return draw.choice(self._values[feature])


# --- what must hold


def sane(what: str, number: float | None, least: float = 0.0, most: float = math.inf) -> None:
    """Raise AssertionError unless a number is finite and within bounds; None is no number."""
    assert number is None or (math.isfinite(number) and least <= number <= most), f"{what} is {number!r}"


def check_measures(measures: Measures) -> None:
    """Raise AssertionError unless measures are possible."""
    sane("a weight", measures.weight)
    for what in ("accuracy", "macro_f1", "majority", "no_change"):
        sane(what, getattr(measures, what), 0.0, 1.0 + 1e-9)
    for what in ("kappa", "kappa_m", "kappa_temporal"):
        sane(what, getattr(measures, what), -math.inf, 1.0 + 1e-9)
    sane("a log-loss", measures.log_loss, 0.0, 35.0)  # 50 bits
    for each in measures.f1:
        sane("F1", each, 0.0, 1.0 + 1e-9)


_LARGEST_MEAN = LARGEST_VALUE * (1.0 + 1e-12)  # sums are rounded


def check_labels(labels: Sequence[tuple[float, float, float | None]]) -> None:
    """Raise AssertionError unless what is told of some labels is possible: weight, mean and variance."""
    for n, value, variance in labels:
        sane("a weight", n, 0.0, MAX_TOTAL / UNIT)
        sane("a mean", value, -_LARGEST_MEAN, _LARGEST_MEAN)
        sane("a variance", variance)


def check_output(output: Output) -> None:
    """Raise AssertionError unless the numbers of a result are possible."""
    match output:
        case Split():
            # A gain may be less than nothing by what rounding takes from a sum.
            slack = 1e-9 * (1.0 + abs(output.score))
            sane("a score", output.score, -slack)
            sane("a gain", output.gain, -slack)
            sane("a second gain", output.runner_up_gain, -math.inf)
            sane("a threshold", output.threshold, -LARGEST_VALUE, LARGEST_VALUE)
            sane("a total", output.n, 0.0, MAX_TOTAL / UNIT)
            weights = [weight for row in output.counts for weight in row]
        case Tree():
            for threshold in output.threshold:
                sane("a threshold", threshold, -LARGEST_VALUE, LARGEST_VALUE)
            weights = [weight for row in output.counts for weight in row]
            assert sorted(output.node) == sorted(set(output.node)), "a node is there twice"
        case Prediction():
            weights = list(output.weights)
        case RegressionSplit():
            sane("a merit", output.merit, -math.inf)
            sane("a second merit", output.runner_up_merit, -math.inf)
            sane("a threshold", output.threshold, -LARGEST_VALUE, LARGEST_VALUE)
            check_labels([(output.n, output.value, output.variance), *output.labels])
            return
        case RegressionTree():
            check_labels(list(zip(output.n, output.value, output.variance, strict=True)))
            assert sorted(output.node) == sorted(set(output.node)), "a node is there twice"
            return
        case RegressionPrediction():
            sane("a prediction", output.value, -_LARGEST_MEAN, _LARGEST_MEAN)
            sane("a deviation", output.deviation)
            sane("a low end", output.low, -math.inf)
            sane("a high end", output.high, -math.inf)
            return
        case RegressionEvaluation() | RegressionDelayedEvaluation():
            for measures in (output.total, output.recent):
                sane("a weight", measures.weight)
                for error in (measures.mae, measures.rmse, measures.mean_mae):
                    sane("an error", error)
                sane("R2", measures.r2, -math.inf, 1.0 + 1e-9)
            return
        case Evaluation() | DelayedEvaluation():
            check_measures(output.total)
            check_measures(output.recent)
            return
        case Drift():
            assert 0.0 <= output.before < output.after <= 1.0
            assert 0 < output.width < output.examples
            return
        case Expired() | LetGo():
            assert output.due >= 0
            return
        case DeadLetter():
            assert output.detail
            return
    for weight in weights:
        sane("a weight", weight, 0.0, MAX_TOTAL / UNIT)
    sane("the sum of weights", sum(weights), 0.0, math.inf)


def check_outputs(outputs: Sequence[OutRecord]) -> None:
    """Raise AssertionError unless results can be read back to the byte, and are possible."""
    for record in outputs:
        assert record.value is not None
        output = decode_output(record.value, record.headers)
        assert encode(output) == record.value, "what was read back is encoded otherwise"
        check_output(output)


def check_model(pipeline: Pipeline) -> None:
    """Raise AssertionError unless the state of a model is right, and what the pages show of it is possible."""
    [model] = pipeline.models
    model.check()
    quality = model.status().quality
    if quality is not None:
        for judged in (quality.total, quality.recent, quality.plus(quality).total):
            found: Any = judged.measures()
            if isinstance(judged, Compared):
                assert all(math.isnan(each) or 0.0 <= each < math.inf for each in (found.mae, found.rmse)), found
                continue
            assert math.isnan(found.accuracy) or 0.0 <= found.accuracy <= 1.0 + 1e-9, found
            assert math.isnan(found.log_loss) or 0.0 <= found.log_loss <= 35.0, found
            assert found.weight >= 0.0, found


# --- rounds


def records_of(records: Sequence[Record], start: int, times: Sequence[int]) -> Records:
    """Return records, a second apart or, where there are some, at these times in turn."""
    offsets = np.arange(start, start + len(records))
    keys, values = [key for key, _ in records], [value for _, value in records]
    at = 1_000 * offsets + 1
    if times:
        at = np.array([times[offset % len(times)] for offset in offsets.tolist()], np.int64)
    return Records(SOURCE, offsets, at, keys, values, [()] * len(records), start + len(records))


def model_round(draw: random.Random, settings: dict[str, Any]) -> int:
    """Drive a model of the worker once; return how many events it applied."""
    stream = Stream(draw, settings)
    bounds = {"keys": draw.choice((2, 100)), "live_ids": draw.choice((3, 100))}
    settings |= {"expire": draw.choice(SPANS)}
    pending = draw.choice(PENDING)
    pipeline = one_model(settings, bounds, pending)
    times = draw.sample(TIMES, draw.randrange(1, 5)) if draw.random() < 0.3 else []
    applied = 0
    sent: list[Record] = []
    outputs: list[OutRecord] = []
    batches = [stream.batch(draw.choice((1, 3, 40, 100))) for _ in range(draw.randrange(2, 9))]
    # Without the compiler it would take minutes to rebuild a tree, or to ask hundreds of classes, after each row.
    if draw.random() < 0.2 and settings.get("epsilon") != 0.0 and len(stream.classes) < 10:
        batches.insert(draw.randrange(len(batches)), [stream.heavy(draw.choice((2_040, 2_047, 2_050)))])
    for batch in batches:
        processed = pipeline.process(records_of(batch, len(sent), times))
        sent += batch
        check_outputs(processed.outputs)
        check_model(pipeline)
        outputs += processed.outputs
        applied += sum(sum(outcome.applied.values()) for _, outcome in processed.outcomes)
    if draw.random() < 0.3:
        again = one_model(settings, bounds, pending)
        half = len(sent) // 2
        twice = [*again.process(records_of(sent[:half], 0, times)).outputs]
        again.restore(
            {name: {each: array.copy() for each, array in of.items()} for name, of in again.arrays().items()}
        )
        twice += again.process(records_of(sent[half:], half, times)).outputs
        assert sorted_by_source(twice) == sorted_by_source(outputs), "another batch size, or a restart, tells"
        assert model_contents(again.models[0]) == model_contents(pipeline.models[0])
    return applied


def regression_round(draw: random.Random, observer: str) -> int:
    """Drive a pool of regression trees once; return how many events it applied."""
    kinds: dict[int | bytes, Kind] = {
        each: draw.choice((Kind.BINARY, Kind.NUMERIC, Kind.NUMERIC, Kind.NOMINAL)) for each in draw.sample(IDS, 5)
    }
    options: dict[str, Any] = {}
    if observer == "qo":
        options = draw.choice(({}, {"radius": 1e-160}, {"radius": 1e140}, {"most": 2}, {"fraction": 100.0}))
    elif observer == "tebst":
        options = {"decimals": draw.choice((0, 15))}
    rest: dict[str, Any] = {
        "grace_period": draw.choice((1, 5)),
        "tie_threshold": draw.choice((0.0, 0.05, 1e9)),
        "max_depth": draw.choice((2, 1 << 30)),
        "predict": draw.choice(("mean", "linear", "adaptive")),
        "interval": draw.choice((None, 0.9)),
        "memory_limit": draw.choice((None, None, 1, 5_000, 1 << 20)),
    }
    pool = RegressionPool(observer=observer, options=options, kinds=kinds, **rest)
    categories = (0.0, 1.0, 2.0, 7.0, 2.0**32 - 1.0)
    values = {
        feature: draw.sample(categories, 3) if kind == Kind.NOMINAL else some_values(draw)
        for feature, kind in kinds.items()
    }
    labels = some_values(draw)
    weights = [round(weight * UNIT) for weight in draw.sample(WEIGHTS, 3)] + [0, -1, (MAX_TOTAL >> 2) - 5]
    kept, count = Prequential(7), 0
    for _ in range(draw.randrange(4, 20)):
        events = []
        for _ in range(draw.choice((1, 20, 60))):
            op = draw.choices((Op.INSERT, Op.PREDICT, Op.DELETE, Op.DROP), (85, 10, 3, 1))[0]
            x: dict[int | bytes, float] = {
                each: draw.choice(values[each]) for each in kinds if draw.random() < 0.7
            }
            if draw.random() < 0.02:
                x[3] = draw.choice(WRONG_VALUES)
            label = draw.choice(labels if draw.random() < 0.98 else WRONG_VALUES)
            weight = draw.choices(weights, (30, 30, 30, 1, 1, 1))[0]
            events.append(Event(op, x, label, weight, draw.randrange(2)))
        batch = columns_of(events, pool, label=np.float64)
        answers = pool.apply(batch)
        pool.check()
        count += int(np.count_nonzero(answers.status == Status.APPLIED))
        known = ~np.isnan(answers.predicted)
        assert np.isfinite(answers.predicted[known]).all(), "a prediction is no number"
        for split in answers.splits:
            sane("a merit", split.merit, -math.inf)
            sane("a threshold", split.threshold, -LARGEST_VALUE, LARGEST_VALUE)
        learned = (answers.status == Status.APPLIED) & (batch.op == Op.INSERT)
        kept.add(batch.label[learned], answers.predicted[learned], batch.weight[learned])
        for measures in (kept.total().measures(), kept.recent().measures()):
            for what, measure in zip(measures._fields, measures, strict=True):
                assert not math.isinf(measure), f"{what} is {measure}"
        for index in range(2):
            tree = pool.tree(index)
            assert np.isfinite(tree.mean).all()
            assert (tree.variance >= 0.0).all()
    return count


def others() -> list[str]:
    """Return the kinds of models whose settings are not drawn here."""
    return [kind for kind in KINDS if kind not in ("split", "tree", "dynamic-tree", "forest of tree")]


def _rounds() -> dict[str, Callable[[random.Random], int]]:
    """Return how a round of each kind is driven."""
    found: dict[str, Callable[[random.Random], int]] = {}

    def add(name: str, settings_of: Callable[..., dict[str, Any]], *arguments: str) -> None:
        found[name] = lambda draw: model_round(draw, settings_of(draw, *arguments))

    for finder, rules in FINDERS.items():
        for criterion in (rules.criterion,) if rules.criterion else ("entropy", "gini", "sqrt"):
            add(f"split-{finder}-{criterion}", split_settings, finder, criterion)
    for criterion in ("entropy", "gini"):
        add(f"split-mixed-{criterion}", mixed_settings, criterion)
        for policy in POLICIES:
            add(f"tree-{policy}-{criterion}", tree_settings, policy, criterion)
        add(f"dynamic-{criterion}", dynamic_settings, criterion)
    add("split-numbers", number_settings)
    add("dynamic-numbers", dynamic_number_settings)
    for policy in GROWING:
        add(f"forest-tree-{policy}", growing_settings, policy)
    for kind in others():
        add(kind, sample_settings, kind)
    for observer in OBSERVERS:
        found[f"regression-{observer}"] = lambda draw, observer=observer: regression_round(draw, observer)  # type: ignore[misc]
    return found


ROUNDS = _rounds()


def one_round(kind: str, seed: int, number: int) -> int:
    """Drive one round; return how many events were applied. What is drawn follows from the arguments alone."""
    return ROUNDS[kind](random.Random(f"{seed} {kind} {number}"))


def chosen(prefixes: Sequence[str]) -> Iterator[str]:
    """Yield the kinds whose names begin with one of these, all where there are none."""
    for kind in ROUNDS:
        if not prefixes or kind.startswith(tuple(prefixes)):
            yield kind


def main() -> None:
    """Drive rounds until the time is over; tell of each failure with what repeats it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=[], help=f"or how they begin; of {', '.join(ROUNDS)}")
    parser.add_argument("--round", type=int, help="only this round of each kind")
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    kinds = list(chosen(arguments.kinds))
    if not kinds:
        parser.error(f"expected --kinds of {', '.join(ROUNDS)}, got {' '.join(arguments.kinds)}")
    told: dict[str, list[float]] = {kind: [0, 0, 0.0, 0] for kind in kinds}  # rounds, events, seconds, failures
    end = time.monotonic() + 60.0 * arguments.minutes
    number = arguments.round or 0
    while (time.monotonic() < end or number == 0) and (arguments.round in (None, number)):
        for kind in kinds:
            started = time.monotonic()
            if started >= end and number > 0 and arguments.round is None:
                break
            try:
                told[kind][1] += one_round(kind, arguments.seed, number)
            except Exception:  # whatever it is, it is what was sought
                told[kind][3] += 1
                print(f"--seed {arguments.seed} --kinds {kind} --round {number} failed:", file=sys.stderr)
                traceback.print_exc()
            told[kind][0] += 1
            told[kind][2] += time.monotonic() - started
        number += 1
    for kind, (rounds, events, seconds, failures) in told.items():
        print(f"{kind}: {rounds} rounds, {events} events applied, {seconds:.1f} s, {failures} failed")
    if any(failures for _, _, _, failures in told.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
