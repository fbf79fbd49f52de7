"""Models of kind `regression-tree`: what they write and refuse, by their oracle, however they are run."""

from __future__ import annotations

import io
import math
import random
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgpack
import numpy as np
import pytest
from rich.console import Console

from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import UNIT
from algorithms.core.kinds import Kind
from tests.oracles.naive_regression import Event, NaiveForest, Node, Outcome, Settings, columns, tree_columns
from tests.support.model_contents import model_contents
from tests.support.one_model import one_model, records_of, results_of, run, same_however_run
from worker.codec import (
    DeadLetter,
    Output,
    Reason,
    RegressionEvaluation,
    RegressionPrediction,
    RegressionSplit,
    RegressionTree,
    Source,
    cut,
    joined,
    to_record,
)
from worker.codec.event import encode_batch
from worker.log.port import LARGEST_RECORD
from worker.models.regression_tree import RegressionTreeModel
from worker.pipeline import Pipeline
from worker.views.output_text import intervals_table, output_line, regression_predictions_table
from worker.views.split_text import regression_split_line

EAGER = {"grace_period": 20, "split_confidence": 0.3, "tie_threshold": 0.2}
KINDS = {"numeric": ["size", "age"], "nominal": ["zone"]}


def pipeline_of(bounds: dict[str, int] | None = None, **model: Any) -> Pipeline:
    """Return a pipeline with one regression tree, eager to split."""
    base = {"kind": "regression-tree", "input": "in", "features": "names", "attributes": KINDS, **EAGER}
    return one_model(base | model, bounds)


def priced(
    count: int, seed: int = 0, keys: int = 1, others: bool = False, zones: bool = False
) -> list[tuple[bytes, Any]]:
    """Return inserts whose label follows from a size and a word; with others predictions, tombstones and so on."""
    draw = random.Random(seed)
    events: list[tuple[bytes, Any]] = []
    for number in range(count):
        key = b"key %d" % draw.randrange(keys)
        x: dict[str, float] = {"size": round(draw.uniform(-2, 9), 2), "noise": 1}
        if draw.random() < 0.5:
            x["new"] = 1
        if draw.random() < 0.3:
            x["age"] = float(draw.randrange(1, 5))
        if zones:
            x["zone"] = float(draw.choice((0, 1, 2, 7, 4294967295)))
        y: float = 100 * (x["size"] > 3) + 30 * ("new" in x) + round(draw.gauss(0, 2), 3)
        y += 40 * (x.get("zone", 0.0) % 5)
        event: dict[str, Any] = {"x": x, "y": int(y) if draw.random() < 0.1 else y}
        if draw.random() < 0.3:
            event["w"] = draw.choice((0.5, 2, 3.25, 0.1))
        what = draw.random() if others else 1.0
        if what < 0.1:
            events.append((key, {"op": "predict", "id": number, "x": x}))
        elif what < 0.15:
            events.append((key, {"op": "delete", "x": x, "y": y}))
        elif what < 0.16:
            events.append((key, None))
        elif what < 0.2:
            events.append((key, {"x": x, "y": draw.choice(("text", 1e141, "1.5"))}))
        else:
            events.append((key, event))
    return events


def of(kind: type, outputs: Sequence[Output]) -> list[Any]:
    """Return the results of a kind."""
    return [output for output in outputs if isinstance(output, kind)]


def test_a_tree_grows_and_answers() -> None:
    """Splits, snapshots and answers are written as they come about, with numbers of nodes that agree."""
    pipeline = pipeline_of(emit={"snapshots": "change"})
    asked = (b"key 0", {"op": "predict", "id": 7, "x": {"size": 8.0, "new": 1}})
    outputs = run(pipeline, [asked, *priced(400), asked])
    splits, trees = of(RegressionSplit, outputs), of(RegressionTree, outputs)
    before, after = of(RegressionPrediction, outputs)
    assert (before.value, before.n, before.deviation, before.known) == (None, 0.0, 0.0, False)
    assert after.known
    assert after.value == pytest.approx(130, abs=5)
    assert 0 < after.deviation < 20
    assert len(splits) == len(trees) > 2
    first, last = splits[0], trees[-1]
    assert (first.node, first.feature, first.kind, first.branches) == (0, "size", "numeric", [0, 1])
    assert first.threshold == pytest.approx(3, abs=0.5)
    assert first.merit > first.runner_up_merit >= 0
    assert first.n == pytest.approx(sum(n for n, _, _ in first.labels))
    assert first.labels[0][1] < first.value < first.labels[1][1]
    assert last.names is not None
    assert last.names[last.feature[0]] == "size"
    assert last.parameters == {"delta": 0.3, "kind": "regression-tree", "observer": "qo", "tau": 0.2}
    assert {split.node for split in splits} == {
        node for node, feature in zip(last.node, last.feature, strict=True) if feature is not None
    }
    assert last.feature[last.node.index(after.leaf)] is None
    told = of(RegressionTree, run(pipeline_of(emit={"snapshots": "change"}, predict="linear"), priced(400)))
    assert told[-1].parameters == {**last.parameters, "predict": "linear"}
    quiet = pipeline_of(emit={"splits": "never"})
    assert run(quiet, priced(400)) == []


@pytest.mark.parametrize(
    ("observer", "predict"), [("qo", "mean"), ("ebst", "linear"), ("tebst", "adaptive"), ("qo", "adaptive")]
)
def test_it_does_what_the_oracle_does(observer: str, predict: str) -> None:
    """Every answer, split, snapshot and refusal of a long stream is the oracle's, to the bit."""
    events = priced(700, seed=3, keys=3, others=True, zones=predict != "adaptive")
    naive = Settings(
        observer=observer,
        options={"most": 40},
        predict=predict,
        interval=0.8,
        kinds={b"size": Kind.NUMERIC, b"age": Kind.NUMERIC, b"zone": Kind.NOMINAL},
        names=True,
        max_keys=2,
    )
    forest = NaiveForest(naive)
    expected: list[Any] = []
    sides = Baselines()
    within: list[tuple[float, bool, float]] = []
    for number, (key, event) in enumerate(events):
        op = Op.DROP if event is None else Op[event.get("op", "insert").upper()]
        event = event or {}
        label, x = event.get("y", 0.0), {name.encode(): float(value) for name, value in event.get("x", {}).items()}
        if op == Op.DELETE:
            expected.append((number, Reason.CANNOT_FORGET))
            continue
        if op == Op.INSERT and (isinstance(label, str) or abs(label) > 1e140):
            expected.append((number, Reason.NOT_A_NUMBER))
            continue
        weight = round(event.get("w", 1) * UNIT)
        told = Event(op, x, float(label), weight, int(key[4:]))
        leaf = forest._leaf(told)
        outcome = forest.apply(told)
        if op == Op.INSERT and outcome.status == Status.TOO_MANY_KEYS:
            expected.append((number, Reason.TOO_MANY_KEYS))
            continue
        if op == Op.PREDICT:
            expected.append((number, event["id"], *answer(leaf, outcome)))
        elif op == Op.DROP:
            sides.drop(told.key)
        else:
            if outcome.split:
                expected.append((number, *outcome.split[:1], outcome.split[2], *outcome.split[5:]))
            sides.judge(told, float.fromhex(outcome.predicted))
            margin = float.fromhex(outcome.margin)
            if not math.isnan(margin):
                error = abs(float(label) - float.fromhex(outcome.predicted))
                within.append((weight / UNIT, error <= margin, 2 * margin))
    pipeline = pipeline_of(
        {"keys": 2},
        observer=observer,
        predict=predict,
        interval=0.8,
        max_elements=40,
        evaluate={"window": 50, "emit": {"every": len(sides.seen)}},
    )
    outputs = run(pipeline, events)
    found = [
        *(told_split(each) for each in of(RegressionSplit, outputs)),
        *(
            (
                each.source.offset,
                each.id,
                "nan" if each.value is None else each.value.hex(),
                each.n.hex(),
                each.deviation.hex(),
                each.leaf,
                each.low,
                each.high,
            )
            for each in of(RegressionPrediction, outputs)
        ),
        *((each.source.offset, each.reason) for each in of(DeadLetter, outputs)),
    ]
    assert sorted(found, key=lambda each: each[0]) == expected
    model = pipeline.models[0]
    assert isinstance(model, RegressionTreeModel)
    kept = model_contents(model)
    grown = {b"key %d" % key: columns(tree) for key, tree in forest.trees.items()}
    assert {key: each.nodes for key, each in kept.items() if key} == grown
    assert max(len(nodes) for nodes in grown.values()) > 4
    (evaluation,) = of(RegressionEvaluation, outputs)
    assert evaluation.examples == len(sides.seen)
    for measures, rows in ((evaluation.total, sides.seen), (evaluation.recent, sides.seen[-50:])):
        assert list(measures)[:-2] == pytest.approx(expected_measures(rows), rel=1e-9)
    weight = sum(each[0] for each in within)
    assert weight > 100
    assert evaluation.total.coverage == pytest.approx(sum(w for w, is_in, _ in within if is_in) / weight)
    assert evaluation.total.width == pytest.approx(sum(w * width for w, _, width in within) / weight)
    assert evaluation.recent.coverage is not None


def told_split(split: RegressionSplit) -> tuple[Any, ...]:
    """Return a split record in the oracle's words."""
    threshold = 0.0 if split.threshold is None else split.threshold
    numbers = (threshold, split.merit, split.runner_up_merit, split.n, split.value, split.variance)
    sides = [each for side in split.labels for each in side]
    assert isinstance(split.feature, str)
    told = [float(each or 0.0).hex() for each in (*numbers, *sides)]
    return (split.source.offset, split.node, split.feature.encode(), *told)


def answer(leaf: Node | None, outcome: Outcome) -> tuple[Any, ...]:
    """Return what a leaf of the oracle answers: value, n, standard deviation, number, interval."""
    if leaf is None:
        return "nan", (0.0).hex(), (0.0).hex(), 0, None, None
    value, margin = float.fromhex(outcome.predicted), float.fromhex(outcome.margin)
    interval = (None, None) if math.isnan(margin) else (value - margin, value + margin)
    known = leaf.known()
    n = known.weight / UNIT
    return outcome.predicted, n.hex(), math.sqrt(known.squares / n).hex(), leaf.number, *interval


class Baselines:
    """The labels of each key, and what the model and the baselines said of each example."""

    def __init__(self) -> None:
        self._labels: dict[int, list[tuple[float, float]]] = {}
        self.seen: list[tuple[float, float, float | None, float | None, float | None]] = []

    def drop(self, key: int) -> None:
        """Forget a key."""
        self._labels.pop(key, None)

    def judge(self, event: Event, predicted: float) -> None:
        """Ask the baselines, then let them learn."""
        labels, weight = self._labels.setdefault(event.key, []), event.weight / UNIT
        whole = sum(w for _, w in labels)
        mean = sum(y * w for y, w in labels) / whole if labels else None
        last = labels[-1][0] if labels else None
        labels.append((event.label, weight))
        self.seen.append((event.label, weight, None if math.isnan(predicted) else predicted, mean, last))


def expected_measures(rows: list[tuple[float, float, float | None, float | None, float | None]]) -> list[float]:
    """Return the measures by their definitions."""
    judged = [row for row in rows if row[2] is not None]
    weight = sum(w for _, w, *_ in judged)
    mean = sum(y * w for y, w, *_ in judged) / weight
    squares = sum(w * (y - mean) ** 2 for y, w, *_ in judged)
    found = [weight]
    for who in (2, 3, 4):
        errors = [(row[1], row[0] - float(row[who] or 0.0)) for row in judged]
        squared = sum(w * e * e for w, e in errors)
        found += [sum(w * abs(e) for w, e in errors) / weight, math.sqrt(squared / weight), 1 - squared / squares]
    return found


@pytest.mark.parametrize(
    "more",
    [
        {"emit": {"snapshots": "change"}, "evaluate": {"window": 30, "emit": {"every": 7}}},
        {"emit": {"snapshots": {"every": 9}}, "on_delete": "ignore", "observer": "tebst", "decimals": 1},
        {
            "emit": {"snapshots": {"every_ms": 5_000}},
            "evaluate": {"emit": {"every_ms": 4_000}},
            "observer": "ebst",
        },
        {"attributes": {"default": "numeric", "binary": ["new"]}, "max_depth": 2, "radius": 0.5},
        {
            "interval": 0.5,
            "predict": "adaptive",
            "emit": {"snapshots": {"every": 50}},
            "evaluate": {"emit": {"every": 50}},
        },
    ],
)
def test_results_depend_on_events_alone(more: dict[str, Any]) -> None:
    """Batches of any size and restarts leave results and state as they are, whatever is asked for."""
    events = priced(300, seed=5, keys=3, others=True)
    outputs = results_of(same_however_run(partial(pipeline_of, {"keys": 2}, **more), events))
    kinds = {type(each) for each in outputs}
    assert kinds >= {RegressionSplit, RegressionPrediction, DeadLetter}
    assert (RegressionTree in kinds) == ("emit" in more)
    assert (RegressionEvaluation in kinds) == ("evaluate" in more)


def test_labels_that_are_no_numbers_are_refused_with_a_reason() -> None:
    """Each is a dead letter that says what was expected and what came; what is good goes on."""
    x = {"size": 1.0}
    events: list[tuple[bytes, Any]] = [
        (b"a", {"x": x, "y": "12.5"}),
        (b"a", {"x": x, "y": ""}),
        (b"a", {"x": x, "y": 1e308}),
        (b"a", {"x": x, "y": -1.0000000000000002e140}),
        (b"a", {"x": x, "y": math.nan}),
        (b"a", {"x": x, "y": -math.inf}),
        (b"a", {"x": x, "y": True}),
        (b"a", {"x": x, "y": None}),
        (b"a", {"x": x}),
        (b"a", {"x": x, "y": 2**64 - 1}),
        (b"a", {"x": {"noise": 2.0}, "y": 1.0}),
        (b"a", {"x": {"size": 1e141}, "y": 1.0}),
        (b"a", {"x": [3], "y": 1.0}),
        (b"a", {"x": x, "y": 1e140}),
        (b"a", {"x": x, "y": -(2**63)}),
        (b"a", {"x": x, "y": -0.0}),
        (b"a", {"op": "predict", "x": x}),
    ]
    outputs = run(pipeline_of(), events)
    letters = sorted(of(DeadLetter, outputs), key=lambda each: each.source.offset)
    assert [each.source.offset for each in letters] == list(range(13))
    assert [each.reason for each in letters] == [
        *[Reason.NOT_A_NUMBER] * 4,
        *[Reason.BAD_LABEL] * 4,
        Reason.MISSING_LABEL,
        Reason.BAD_LABEL,
        Reason.NOT_BINARY,
        Reason.BAD_VALUE,
        Reason.WRONG_FEATURE_SPACE,
    ]
    assert [each.detail for each in letters[:4]] == [
        "expected a number as the label, got the text '12.5'; send an int or a float",
        "expected a number as the label, got the text ''; send an int or a float",
        "expected a number up to 1e+140 in size as the label, got 1e+308; send another unit",
        "expected a number up to 1e+140 in size as the label, got -1.0000000000000003e+140; send another unit",
    ]
    assert {each.model for each in letters[:4]} == {"tree"}
    (answered,) = of(RegressionPrediction, outputs)
    assert answered.n == 3.0
    assert answered.value == pytest.approx(1e140 / 3)


def test_columns_hold_numbers() -> None:
    """Labels in columns, packed or in a list, are those of single events; a refused row leaves the others."""
    xs: list[Any] = [{"size": 1.0}, {"size": 7.0}, {"size": 2.0}]
    value = encode_batch(xs, [1.5, 2.5, -4.0])
    mixed = msgpack.packb(msgpack.unpackb(value) | {"y": [1, "two", 3.5]})
    found = []
    for record in (value, mixed):
        pipeline = pipeline_of()
        asked = records_of([(b"a", {"op": "predict", "x": {"size": 1.0}})], 1)
        batch = records_of([(b"a", {})])._replace(values=[record])
        outputs = results_of(pipeline.process(batch).outputs + pipeline.process(asked).outputs)
        (prediction,) = of(RegressionPrediction, outputs)
        found.append((prediction.value, [(each.source.row, each.reason) for each in of(DeadLetter, outputs)]))
    assert found == [(0.0, []), (2.25, [(1, Reason.NOT_A_NUMBER)])]


@pytest.mark.parametrize(("scale", "offset"), [(1e-9, 0.0), (1.0, 1e9), (1e12, 0.0), (1e3, -1e12)])
def test_labels_of_any_size_are_split_alike(scale: float, offset: float) -> None:
    """Labels of 1e-9 and 1e12, and small differences of large ones, give splits at the same places."""
    places = []
    for by, plus in ((1.0, 0.0), (scale, offset)):
        events = [(key, event | {"y": event["y"] * by + plus}) for key, event in priced(400, seed=6)]
        splits = of(RegressionSplit, run(pipeline_of(), events))
        places.append([(each.source.offset, each.node, each.feature, each.threshold) for each in splits])
    assert len(places[0]) > 1
    assert places[0][:2] == places[1][:2]


def test_equal_labels_never_split() -> None:
    """Where all labels are the same, however many come, the tree is one leaf with a deviation of 0."""
    events = [(key, event | {"y": 0.1}) for key, event in priced(300, seed=7)]
    outputs = run(pipeline_of(), [*events, (b"key 0", {"op": "predict", "x": {"size": 1.0}})])
    (answered,) = of(RegressionPrediction, outputs)
    assert (answered.value, answered.deviation, answered.leaf) == (0.1, 0.0, 0)
    assert of(RegressionSplit, outputs) == []


def test_memory_of_a_leaf_that_never_splits_is_bounded() -> None:
    """A feature that tells nothing keeps no more values than it may, with each observer."""
    draw = random.Random(8)
    events = [(b"a", {"x": {"size": draw.random()}, "y": draw.random()}) for _ in range(600)]
    for observer in ("qo", "ebst", "tebst"):
        pipeline = pipeline_of(observer=observer, max_elements=50, grace_period=10_000)
        run(pipeline, events)
        model = pipeline.models[0]
        assert isinstance(model, RegressionTreeModel)
        assert 0 < model._pool.element_count <= 50
        assert model.status().nodes == 1


def test_large_trees_come_in_parts_that_fit() -> None:
    """A snapshot is cut into records that brokers take, and put together again."""
    nodes = 40_001
    source = of(RegressionTree, run(pipeline_of(emit={"snapshots": {"every": 50}}), priced(50)))[0].source
    tree = RegressionTree(
        model="tree",
        version=3,
        chunk=0,
        chunks=1,
        node=list(range(nodes)),
        parent=[-1, *((at - 1) // 2 for at in range(1, nodes))],
        branch=[0, *(1 - at % 2 for at in range(1, nodes))],
        feature=[at % 9 if at < nodes // 2 else None for at in range(nodes)],
        kind=["numeric" if at < nodes // 2 else None for at in range(nodes)],
        threshold=[at / 7 if at < nodes // 2 else None for at in range(nodes)],
        n=np.full(nodes, 1 / 3).tolist(),
        value=np.full(nodes, -1 / 3).tolist(),
        variance=np.full(nodes, 1 / 7).tolist(),
        names=[f"{at}{'n' * 250}" for at in range(9)],
        parameters={"kind": "regression-tree"},
        source=source,
    )
    parts = cut(tree)
    assert len(parts) > 2
    assert max(to_record(part, "out", b"k" * 1_024, 2).size for part in parts) < LARGEST_RECORD
    assert joined(parts) == tree


@pytest.mark.parametrize("more", [{}, {"interval": 0.9}])
def test_what_is_written_can_be_read(more: dict[str, Any]) -> None:
    """Records of each type are read back as what they were, and say so in their header."""
    model: dict[str, Any] = {"emit": {"snapshots": {"every": 40}}, "evaluate": {"emit": {"every": 50}}}
    pipeline = pipeline_of(**model, **more)
    records = pipeline.process(records_of(priced(200, others=True))).outputs
    shown = "\n".join(
        output_line(record.key, output).plain for record, output in zip(records, results_of(records), strict=True)
    )
    has_intervals = bool(more)
    assert has_intervals == ("  within 0." in shown) == bool(re.search(r"is [\d.]+  [\d.]+ to [\d.]+  ±", shown))
    evaluations = of(RegressionEvaluation, results_of(records))
    assert has_intervals == (intervals_table(evaluations) is not None)
    predictions = [(None, each) for each in of(RegressionPrediction, results_of(records))]
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(regression_predictions_table(predictions))
    assert has_intervals == ("interval" in console.export_text())
    types = {dict(record.headers)["type"] for record in records}
    assert types == {b"split", b"tree", b"prediction", b"evaluation", b"dead-letter"}
    for record, output in zip(records, results_of(records), strict=True):
        seq = int((dict(record.headers)["out_id"] or b"").rsplit(b":", 1)[1])
        assert to_record(output, record.topic, record.key, seq) == record
    assert all(record.key is None for record in records if dict(record.headers)["type"] == b"evaluation")


def test_its_size_and_quality_are_told() -> None:
    """The status has keys, nodes, depth and how good predictions are, which outcomes add up to."""
    pipeline = pipeline_of(evaluate={"window": 100}, interval=0.9)
    events = priced(300, keys=2)
    outcomes = [pipeline.process(records_of(events[at : at + 100], at)).outcomes[0][1] for at in (0, 100, 200)]
    status = pipeline.models[0].status()
    assert (status.keys, status.examples) == (2, 0)
    assert status.nodes > 4
    assert status.depth >= 1
    assert status.slots > 0
    assert status.quality is not None
    assert status.quality.covered is not None
    assert status.quality.covered_recently is not None
    for covered in (status.quality.covered, status.quality.covered_recently):
        assert 0.8 < covered.measures().coverage <= 1.0
        assert covered.measures().width > 0.0
    both = status.quality.plus(status.quality).covered
    assert both is not None
    assert both.measures() == pytest.approx(status.quality.covered.measures())
    measures: Any = status.quality.total.measures()
    assert measures.r2 > 0.5 > abs(measures.mean_r2)
    assert measures.no_change_r2 < 0
    errors = [outcome.errors for outcome in outcomes]
    assert None not in errors
    first: Any = errors[0]
    added = first.plus(errors[1]).plus(errors[2]).measures()
    assert list(added) == pytest.approx(list(measures), rel=1e-9)
    assert sum(outcome.evaluated for outcome in outcomes) == 300
    assert tree_columns(pipeline.models[0]._pool.tree(0))  # type: ignore[attr-defined]


def test_a_split_of_many_categories_tells_the_heaviest() -> None:
    """More branches than a record holds are counted, and those that are told are the heaviest, in order."""
    labels = [(2.0 if at % 2 else 1.0, float(at), 0.5) for at in range(60_000)]
    split = RegressionSplit(
        model="m",
        node=0,
        feature="zone",
        kind="nominal",
        threshold=None,
        merit=1.0,
        runner_up_merit=0.0,
        n=90_000.0,
        value=3.0,
        variance=4.0,
        branches=range(60_000),
        labels=labels,
        source=Source("in", 0, 0, 0, 1),
    )
    (back,) = results_of([record := to_record(split, "out", b"k")])
    assert isinstance(back, RegressionSplit)
    assert 0.99 * LARGEST_RECORD < record.size <= LARGEST_RECORD
    assert len(back.branches) + back.left_out == 60_000
    assert [at for at in back.branches if at % 2] == list(range(1, 60_000, 2))
    assert [value for _, value, _ in back.labels] == [float(at) for at in back.branches]
    line = regression_split_line(back).plain
    assert line.startswith("zone  absent: 0 ± 0.707, = 1: 1 ± 0.707, ")
    assert f"and {60_000 - 4:,}".replace(",", "") in line.replace(",", "")


def test_leaves_sleep_where_memory_is_limited() -> None:
    """The limit reaches the pool: with many words leaves sleep, however the worker is run."""
    model: dict[str, Any] = {"memory_limit": 1 << 20, "predict": "adaptive", "interval": 0.9}
    pipeline = pipeline_of(**model)
    draw = random.Random(5)
    events = [
        (b"key %d" % draw.randrange(2), {"x": {f"w{draw.randrange(20_000)}": 1 for _ in range(100)}, "y": at % 7})
        for at in range(200)
    ]
    run(pipeline, events)
    tree = pipeline.models[0]
    assert isinstance(tree, RegressionTreeModel)
    assert tree._pool.slots < (1 << 20) // 2 // 100 < 200 * 100


def test_which_leaf_sleeps_does_not_depend_on_batches() -> None:
    """Of two keys that promise the same the one that came first stays awake, though a batch numbers it later."""
    events: list[tuple[bytes, Any]] = [(b"refused", {"op": "delete", "x": {"word": 1}, "y": 1.0})]
    keys = (b"first", b"second")
    for at in range(4):
        words = [{f"{key.decode()} {at * 1_100 + word}": 1 for word in range(1_100)} for key in keys]
        events += [(key, {"x": x, "y": float(at % 2)}) for key, x in zip(keys, words, strict=True)]
    for key, x in zip(keys, words, strict=True):
        events += [(key, {"x": x, "y": 5.0}), (key, {"op": "predict", "x": x})]
    seen = []
    for first in (1, 2, len(events)):
        pipeline = pipeline_of(memory_limit=1 << 20, predict="linear", attributes={})
        outputs = pipeline.process(records_of(events[:first])).outputs
        for at in range(first, len(events)):
            outputs += pipeline.process(records_of(events[at : at + 1], at)).outputs
        seen.append([each.value for each in of(RegressionPrediction, results_of(outputs))])
        tree = pipeline.models[0]
        assert isinstance(tree, RegressionTreeModel)
        assert tree._pool.asleep == 1
        assert not tree._pool.can_move, "rows of a packed pool come in another order"
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][0] != pytest.approx(seen[0][1], abs=1.0), "the leaf that sleeps tells nothing"


def test_a_tree_of_depth_0_is_one_model() -> None:
    """With `max_depth: 0` and linear leaves a key has one linear model, which learns sums over words."""
    draw = random.Random(6)
    events: list[tuple[bytes, Any]] = []
    for _ in range(600):
        words = draw.sample(range(20), 5)
        events.append(
            (b"k", {"x": {f"w{word}": 1 for word in words}, "y": float(sum(words)) + draw.gauss(0, 0.1)})
        )
    asked = (b"k", {"op": "predict", "x": {"w1": 1, "w7": 1, "w19": 1, "w3": 1, "w4": 1}})
    pipeline = pipeline_of(max_depth=0, predict="linear")
    (prediction,) = of(RegressionPrediction, run(pipeline, [*events, asked]))
    assert prediction.value == pytest.approx(34.0, abs=1.5)
    assert pipeline.models[0].status().nodes == 1


HOSTILE_LABELS = (
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    -1e308,
    math.nextafter(1e140, math.inf),
    "12",
    "",
    True,
    None,
)
EDGES = (1e140, -1e140, 5e-324, -5e-324, -0.0, 2**53 + 1, 2**63 - 1)


@pytest.mark.parametrize("predict", ["mean", "linear", "adaptive"])
def test_hostile_labels_are_refused_or_learned_exactly(predict: str) -> None:
    """What is no label is a dead letter and changes nothing; the largest and the least numbers are learned."""
    model: dict[str, Any] = {"predict": predict, "interval": 0.9, "evaluate": {"emit": {"every": 5}}}
    good = [(b"k", {"x": {"size": at % 7, "zone": at % 3, "w": 1}, "y": y}) for at, y in enumerate(EDGES * 9)]
    asked = [(b"k", {"op": "predict", "id": at, "x": {"size": at, "zone": 2}}) for at in range(4)]
    bad = [(b"k", {"x": {"size": 1, "w": 1}, "y": label}) for label in HOSTILE_LABELS]
    told, pools = [], []
    for events in ([*good, *asked], [*good[:30], *bad, *good[30:], *asked]):
        pipeline = pipeline_of(**model)
        outputs = run(pipeline, events)
        pipeline.models[0].check()
        kept: list[Any] = [each for each in outputs if not isinstance(each, DeadLetter)]
        told.append([each._replace(source=None) for each in kept])
        pools.append(model_contents(pipeline.models[0]))
    assert told[0] == told[1]
    assert pools[0] == pools[1]
    refused = of(DeadLetter, outputs)
    assert len(refused) == len(bad)
    assert {each.reason for each in refused} == {Reason.BAD_LABEL, Reason.NOT_A_NUMBER}
    predictions = of(RegressionPrediction, outputs)
    assert all(math.isfinite(each.value) and abs(each.value) <= 1e140 for each in predictions)
