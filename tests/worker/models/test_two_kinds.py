"""Nominal and quantised features of trees of live examples: as if their events had binary and numeric ones."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.one_model import one_model, records_of, results_of, run, same_however_run
from tests.worker.models.test_dynamic_number_model import problems
from worker.codec import DeadLetter, Output, Prediction, Reason, RegressionPrediction, RegressionTree, Tree
from worker.pipeline import Pipeline

RADIUS = 0.75
DECLARED: dict[str, Any] = {
    "nominal": ["colour", "shape"],
    "quantised": ["size"],
    "radius": RADIUS,
    "numeric": ["speed"],
}
CLASSES: dict[str, Any] = {"classes": ["a", "b"], "evaluate": {"emit": {"every": 20}}}
NUMBERS: dict[str, Any] = {"target": "number", "label_range": [-100, 100], "label_unit": 0.25}
BASE: dict[str, Any] = {"input": "in", "features": "names", "window": 60, "emit": {"snapshots": {"every": 10}}}
MODELS = {
    "exact": {"kind": "dynamic-tree", "guarantee": "exact", **CLASSES},
    "epsilon": {"kind": "dynamic-tree", "epsilon": 0.2, "max_work": 4096, **CLASSES},
    "numbers": {"kind": "dynamic-tree", "guarantee": "exact", "criterion": "variance", **NUMBERS},
    "forest": {"kind": "forest", "trees": 3, "bagging": "2 of 3", **CLASSES},
}


def pipeline_of(model: str = "exact", **changed: Any) -> Pipeline:
    """Return a pipeline with one such model."""
    return one_model(BASE | MODELS[model] | changed)


def stream(count: int, *, numbers: bool) -> list[tuple[bytes, Any]]:
    """Return inserts, deletes by id and by value, and predicts, of all kinds of features."""
    draw = random.Random(count)
    events: list[tuple[bytes, Any]] = []
    for number in range(count):
        x = {
            "colour": draw.randrange(4),
            "shape": draw.choice((0, 7, 4294967295)),
            "size": draw.choice((0, -2.0, draw.uniform(-3, 3), 1e140, 0.375)),
            "speed": draw.randrange(3),
            "word": draw.randrange(2),
        }
        told = x["colour"] == 2 or x["size"] > 1
        event = {"x": x, "y": 10.0 * told if numbers else "ab"[told], "w": draw.choice((1, 2))}
        if draw.random() < 0.5:
            event["id"] = number
        events.append((b"k%d" % draw.randrange(2), event))
        if draw.random() < 0.4:
            key, gone = draw.choice([each for each in events if "op" not in each[1]])
            events.append((key, {"op": "delete", **({"id": gone["id"]} if "id" in gone else gone)}))
        if draw.random() < 0.3:
            events.append((b"k%d" % draw.randrange(2), {"op": "predict", "x": x}))
    return events


def in_two_kinds(events: list[tuple[bytes, Any]]) -> list[tuple[bytes, Any]]:
    """Return the same events as a producer writes them who declares binary and numeric features."""
    made = []
    for key, event in events:
        x: dict[str, Any] = {}
        for name, value in event.get("x", {}).items():
            if name in DECLARED["nominal"]:
                x |= {f"{name}={value}": 1} if value else {}
            elif name == "size":
                slot = value / RADIUS
                nearest = round(slot) if abs(slot) < 2**53 else slot  # half to even, too
                x[name] = nearest * RADIUS if abs(slot) < 2**53 else value
            else:
                x[name] = value
        made.append((key, event | {"x": x} if "x" in event else event))
    return made


def told(outputs: list[Output]) -> list[Output]:
    """Return results, of dead letters what does not depend on the bytes that came."""
    return [
        each._replace(value=b"", size=0, sha256=b"") if isinstance(each, DeadLetter) else each for each in outputs
    ]


@pytest.mark.parametrize("model", MODELS)
def test_they_are_binary_and_numeric_ones(model: str) -> None:
    """Every result is the one that such features of the same meaning lead to, whatever the batches."""
    events = stream(300, numbers=model == "numbers")
    found = same_however_run(partial(pipeline_of, model, attributes=DECLARED), events)
    plain = {"numeric": ["size", "speed"]}
    expected = same_however_run(partial(pipeline_of, model, attributes=plain), in_two_kinds(events))
    assert told(results_of(found)) == told(results_of(expected))
    trees = [each for each in results_of(found) if isinstance(each, Tree | RegressionTree)]
    assert any("colour=2" in (tree.names or ()) for tree in trees)
    assert any(isinstance(each, Prediction | RegressionPrediction) for each in results_of(found))


def test_a_default_is_taken_too() -> None:
    """What is not named may be nominal, or quantised; ids may be quantised."""
    events = [(b"k", {"x": {"a": at % 3, "b": at % 2}, "y": "ab"[at % 3 == 2]}) for at in range(30)]
    outputs = run(pipeline_of(attributes={"default": "nominal"}), events)
    trees = [each for each in outputs if isinstance(each, Tree)]
    assert trees[-1].names == ["a=2"]
    attributes = {"default": "quantised", "radius": 10}
    by_id = [(b"k", {"x": {5: 18 + at % 3}, "y": "ab"[at % 2]}) for at in range(30)]
    outputs = run(pipeline_of(attributes=attributes, features="ids"), by_id)
    assert all(tree.feature == [None] for tree in outputs if isinstance(tree, Tree)), "18, 19, 20 are 20"
    with_another = [*by_id, (b"k", {"x": {5: 14.5}, "y": "a"}), (b"k", {"x": {5: 14.5}, "y": "a"})]
    pipeline = pipeline_of(attributes=attributes, features="ids", emit={"snapshots": {"every": 32}})
    tree = next(each for each in run(pipeline, with_another) if isinstance(each, Tree))
    assert (tree.feature[0], tree.threshold[0]) == (5, 15.0), "10 and 20"


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        ({"colour": 1.5}, Reason.NOT_A_CATEGORY),
        ({"colour": -1}, Reason.NOT_A_CATEGORY),
        ({"colour": 1 << 32}, Reason.NOT_A_CATEGORY),
        ({"word": 2}, Reason.NOT_BINARY),
        ({"size": 1e200}, Reason.BAD_VALUE),
        ([["colour", 1], ["colour", 2]], Reason.REPEATED_FEATURE),
        ([["colour", 0], ["colour", 2]], Reason.REPEATED_FEATURE),
        ([["colour", 2], ["colour=2", 1]], Reason.REPEATED_FEATURE),
    ],
)
def test_what_is_none_is_refused(x: Any, reason: Reason) -> None:
    """As by kinds that know these features; an event beside it is learned, and names do not stay."""
    pipeline = pipeline_of(attributes=DECLARED)
    good = (b"k", {"x": {"colour": 1}, "y": "a"})
    if isinstance(x, list):
        x = _packed(x)
    outputs = run(pipeline, [good, (b"k", {"x": x, "y": "a"}), good])
    letters = [each for each in outputs if isinstance(each, DeadLetter)]
    assert [(each.source.offset, each.reason) for each in letters] == [(1, reason)]
    pipeline.models[0].check()
    left = sorted(pipeline.models[0]._pool.names._numbers)  # type: ignore[attr-defined]
    assert left == [b"colour=1", b"size", b"speed"], "and the names of settings that the pool knows"


def test_a_declared_name_that_comes_is_not_missing() -> None:
    """A worker says of a name in the settings that no event has it; a category is one that has it."""
    pipeline = pipeline_of(attributes=DECLARED)
    outcome = pipeline.models[0].apply(*_understood(pipeline, {"colour": 1}))
    assert outcome.missing == {"attribute shape", "attribute size", "attribute speed", "class b"}
    outcome = pipeline.models[0].apply(*_understood(pipeline, {"shape": 1, "size": 0.1}))
    assert outcome.missing == {"attribute speed", "class b"}
    assert not outcome.has_others


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            {"features": "ids", "attributes": {"nominal": [1]}},
            "expected features: names, which nominal features need in models of kind 'dynamic-tree': a category "
            "is the binary feature FEATURE=CATEGORY",
        ),
        (
            {"attributes": {"default": "numeric", "nominal": ["a"]}},
            "expected numeric features in a list, and binary or nominal as the default, beside nominal features "
            "of kind 'dynamic-tree', whose categories are binary features",
        ),
        (
            {"attributes": {"quantised": ["a"]}},
            "expected a radius beside quantised features of kind 'dynamic-tree', which rounds to multiples of it",
        ),
        ({"attributes": {"nominal": ["a"]}}, None),
        ({"attributes": {"quantised": ["a"], "radius": 0.5}}, None),
        ({"features": "ids", "attributes": {"quantised": [1], "radius": 0.5}}, None),
        ({"attributes": {"default": "nominal", "numeric": ["a"]}}, None),
    ],
)
def test_settings(tmp_path: Path, model: dict[str, Any], message: str | None) -> None:
    """What does not go together is told with what to do, which works."""
    found = problems(tmp_path, **model)
    assert [each.removeprefix("models.it.attributes: ").split(", got")[0] for each in found] == (
        [message] if message else []
    )


def _packed(pairs: list[list[Any]]) -> Any:
    return {"i": [name for name, _ in pairs], "v": [value for _, value in pairs]}


def _understood(pipeline: Pipeline, x: Any) -> Any:
    records = records_of([(b"k", {"x": x, "y": "a"})])
    return records, pipeline._decode(records)[0]
