"""Models of kind `dynamic-tree` whose labels are numbers: results, refusals, settings, whatever the batches."""

from __future__ import annotations

import io
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from algorithms.core.criteria import UNIT
from algorithms.core.events import Op, Status
from algorithms.core.kinds import Kind
from tests.oracles.naive_dynamic import Event, Feature, Outcome
from tests.oracles.naive_dynamic_numbers import NaiveNumbers, NumberSettings
from tests.oracles.naive_number_guarantees import NaiveGreedyNumbers
from tests.support.examples import budget
from tests.support.model_contents import model_contents
from tests.support.one_model import one_model, records_of, results_of, run, same_however_run
from worker.codec import (
    DeadLetter,
    LetGo,
    Reason,
    RegressionDelayedEvaluation,
    RegressionEvaluation,
    RegressionPrediction,
    RegressionTree,
)
from worker.pipeline import Pipeline
from worker.settings import fingerprint, load
from worker.settings.file import SettingsError
from worker.settings.models import DynamicTreeSettings
from worker.views import tree_svg, tree_text

BASE: dict[str, Any] = {
    "kind": "dynamic-tree",
    "input": "in",
    "target": "number",
    "label_range": [-100, 100],
    "label_unit": 0.25,
    "features": "names",
    "attributes": {"numeric": ["size"]},
    "epsilon": 0.3,
    "max_depth": 5,
}


def pipeline_of(**model: Any) -> Pipeline:
    """Return a pipeline with one such model."""
    return one_model(BASE | model)


def stream(count: int, seed: int = 0, keys: int = 1) -> list[tuple[bytes, Any]]:
    """Return inserts, and among them deletes by id and by value, and predicts."""
    draw = random.Random(seed)
    events: list[tuple[bytes, Any]] = []
    for number in range(count):
        x: dict[str, float] = {f"word {draw.randrange(6)}": 1.0 for _ in range(2)}
        if draw.random() < 0.7:
            x["size"] = float(draw.randrange(-4, 5)) or 0.5
        label = 20 * ("word 3" in x) + 5 * x.get("size", 0.0) + draw.choice((0, 0.25, 1))
        event: dict[str, Any] = {"x": x, "y": label, "w": draw.choice((1, 1, 2, 5))}
        if draw.random() < 0.6:
            event["id"] = number
        key = b"key %d" % draw.randrange(keys)
        events.append((key, event))
        if draw.random() < 0.4:
            key, gone = draw.choice(events)
            if "op" not in gone:
                by_id = {"id": gone["id"]} if "id" in gone else gone
                events.append((key, {"op": "delete", **by_id}))
        if draw.random() < 0.3:
            events.append((key, {"op": "predict", "x": x, "id": number}))
    return events


def told(naive: NaiveNumbers, event: dict[str, Any]) -> Outcome:
    """Let the oracle apply an event."""
    op = {"delete": Op.DELETE, "predict": Op.PREDICT}.get(event.get("op", ""), Op.INSERT)
    id = None if op == Op.PREDICT else event.get("id")
    x: dict[Feature, float] = {name.encode(): value for name, value in event.get("x", {}).items()}
    return naive.apply(Event(op, x, event.get("y", 0.0), event.get("w", 1) * UNIT, id))


EXACT: dict[str, Any] = {"epsilon": None, "guarantee": "exact"}


@pytest.mark.parametrize("policy", [{"epsilon": 0.3}, EXACT])
@pytest.mark.parametrize("window", [None, 12])
def test_results_are_those_of_the_oracle(window: int | None, policy: dict[str, Any]) -> None:
    """After each event the tree that is written, and each answer, are exactly those of the oracle."""
    pipeline = pipeline_of(window=window, emit={"snapshots": {"every": 1}}, **policy)
    naive = (NaiveGreedyNumbers if policy == EXACT else NaiveNumbers)(
        NumberSettings(
            **policy,
            scale=(-100.0, 100.0, 0.25),
            max_depth=5,
            kinds={b"size": Kind.NUMERIC},
            window=window,
            evaluate=False,
        )
    )
    sizes = set()
    for number, (key, event) in enumerate(stream(budget(200))):
        outputs = results_of(pipeline.process(records_of([(key, event)], number)).outputs)
        expected = told(naive, event)
        if expected.status != Status.APPLIED:
            assert all(isinstance(each, DeadLetter) for each in outputs)
            continue
        [output] = outputs
        if event.get("op") == "predict":
            assert isinstance(output, RegressionPrediction)
            n, variance, value = map(float.fromhex, expected.weights)
            assert (output.n, output.deviation, output.leaf) == (n, math.sqrt(variance), expected.leaf)
            assert output.value == (None if math.isnan(value) else value)
            continue
        assert isinstance(output, RegressionTree)
        rows = naive.columns(naive.trees[0])
        assert output.names is not None
        assert output.node == [row[0] for row in rows]
        names = [None if each is None else output.names[int(each)].encode() for each in output.feature]
        assert names == [row[4] for row in rows]
        assert output.n == [row[7] for row in rows]
        means = [float.fromhex(row[8]) for row in rows]
        assert output.value == [0.0 if math.isnan(mean) else mean for mean in means]
        assert [each.hex() for each in output.variance if each is not None] == [row[9] for row in rows]
        sizes.add(len(rows))
    pipeline.models[0].check()
    assert len(sizes) > 3


@pytest.mark.parametrize("policy", [{}, EXACT, {"epsilon": None, "beta": 0.05}])
@pytest.mark.parametrize("window", [None, 10, "20s"])
def test_results_and_state_depend_on_events_alone(window: Any, policy: dict[str, Any]) -> None:
    """Whatever the batches and restarts; also where labels are dead letters."""
    events = stream(150, seed=3, keys=3)
    draw = random.Random(1)
    for bad in ("text", 1e300, 101, -100.5, 3, None):
        x = ["word 1"]
        event = {"x": x, "y": bad, "w": 0.5} if bad == 3 else {"x": x, "y": bad} if bad is not None else None
        events.insert(draw.randrange(len(events)), (b"key 0", event))
    model = {"window": window, "expire": "60s", "on_duplicate": "replace", "evaluate": {"emit": {"every": 20}}}
    outputs = same_however_run(lambda: pipeline_of(**model, **policy, emit={"snapshots": {"every": 9}}), events)
    found = results_of(outputs)
    assert sum(isinstance(each, RegressionTree) for each in found) > 10
    [*_, last] = [each for each in found if isinstance(each, RegressionEvaluation)]
    assert last.total.rmse is not None
    assert last.total.mean_rmse is not None
    if isinstance(window, str):
        assert any(isinstance(each, LetGo) for each in found)


@pytest.mark.parametrize("policy", [{"epsilon": 0}, EXACT])
def test_deletes_leave_nothing(policy: dict[str, Any]) -> None:
    """What is deleted might as well never have come: by id and by value, in any order, after any labels."""
    kept = [(b"k", {"x": [f"w{at % 5}"], "y": at % 7 - 3, "id": at}) for at in range(30)]
    gone = [(b"k", {"x": [f"w{at % 3}", "gone"], "y": (-1) ** at * 100, "id": f"gone {at}"}) for at in range(20)]
    bare = [(b"k", {"x": ["w1", "bare"], "y": 12.25, "w": 3})] * 2
    events = [*kept[:15], *gone[:10], *bare, *kept[15:], *gone[10:]]
    random.Random(2).shuffle(gone)
    undo = [(b"k", {"op": "delete", "id": event["id"]}) for _, event in gone]
    undo += [(b"k", {"op": "delete", **event}) for _, event in bare]
    both = [pipeline_of(**policy) for _ in range(2)]
    run(both[0], [*events, *undo])
    run(both[1], kept)
    held = [pipeline.models[0].holdings() for pipeline in both]
    assert held[0] == held[1]
    assert held[0] is not None
    assert held[0][b"k"].learned is not None


def test_labels_that_no_sum_could_hold_are_dead_letters() -> None:
    """A label that is none, or not in the range, and a weight that is a fraction, change nothing."""
    pipeline = pipeline_of()
    run(pipeline, [(b"k", {"x": ["a"], "y": -100}), (b"k", {"x": ["b"], "y": 100.0, "w": 4})])
    before = model_contents(pipeline.models[0])
    cases: list[tuple[dict[str, Any], Reason, str]] = [
        ({"y": float("nan")}, Reason.BAD_LABEL, "a finite float"),
        ({"y": 1e308}, Reason.NOT_A_NUMBER, "got 1e+308"),
        ({"y": "much"}, Reason.NOT_A_NUMBER, "got the text 'much'"),
        ({"y": 100.5}, Reason.OUT_OF_RANGE, "expected a label from -100.0 to 100.0 (label_range), got 100.5"),
        ({"y": 1, "w": 0.5}, Reason.BAD_WEIGHT, "expected a whole number as the weight"),
        ({"y": 1, "w": 2.0**31}, Reason.COUNT_OVERFLOW, ""),
        ({"y": 1, "op": "delete"}, Reason.ABSENT_EXAMPLE, "expected an example that is there"),
    ]
    for event, reason, words in cases:
        [letter] = run(pipeline, [(b"k", {"x": ["a"], **event})])
        assert isinstance(letter, DeadLetter)
        assert (letter.reason, words in letter.detail) == (reason, True), letter.detail
    assert model_contents(pipeline.models[0]) == before


def test_late_labels_are_learned_as_numbers() -> None:
    """What was predicted is learned once its label comes; one out of the range is a dead letter."""
    model = BASE | {"emit": {"snapshots": {"every": 1}}, "evaluate": {"emit": {"every": 1}}}
    pipeline = one_model(model, pending={"max": 10, "for": "1h"})
    events: list[tuple[bytes, Any]] = [
        (b"k", {"op": "predict", "x": ["a"], "id": 1}),
        (b"k", {"op": "predict", "x": ["b"], "id": 2}),
        (b"k", {"op": "label", "id": 1, "y": 10}),
        (b"k", {"op": "label", "id": 2, "y": 1000}),
        (b"k", {"op": "predict", "x": ["a"], "id": 3}),
        (b"k", {"op": "label", "id": 3, "y": 12}),
    ]
    found = run(pipeline, events)
    trees = [each for each in found if isinstance(each, RegressionTree)]
    assert [(tree.n, tree.value) for tree in trees] == [([1.0], [10.0]), ([2.0], [11.0])]
    [*_, last] = [each for each in found if isinstance(each, RegressionDelayedEvaluation)]
    assert (last.examples, last.total.mae) == (2, 2.0)
    assert [each.reason for each in found if isinstance(each, DeadLetter)] == [Reason.OUT_OF_RANGE]


def test_people_see_values() -> None:
    """A drawing in text and one in SVG tell the values of nodes, and snapshots tell the settings."""
    pipeline = pipeline_of(emit={"snapshots": {"every": 60}}, window=50)
    [tree, *_] = [each for each in run(pipeline, stream(80)) if isinstance(each, RegressionTree)]
    assert tree.parameters == {
        "criterion": "variance",
        "epsilon": 0.3,
        "kind": "dynamic-tree",
        "label_unit": 0.25,
        "max_depth": 5,
        "min_examples": 1,
        "window": 50,
    }
    for policy, told in ((EXACT, {"guarantee": "exact"}), ({"epsilon": None, "beta": 0.1}, {"beta": 0.1})):
        found = run(pipeline_of(emit={"snapshots": {"every": 60}}, **policy), stream(80))
        [other, *_] = [each for each in found if isinstance(each, RegressionTree)]
        without = {name: each for name, each in tree.parameters.items() if name not in ("epsilon", "window")}
        assert other.parameters == without | told | {"window": None}
    assert "word 3" in tree_svg.draw(tree, b"k")
    file = io.StringIO()
    Console(file=file, width=120).print(tree_text.draw(tree))
    assert "word 3" in file.getvalue()


# --- settings


def problems(tmp_path: Path, **model: Any) -> list[str]:
    """Return what is wrong with such a model's settings."""
    path = tmp_path / "worker.yaml"
    given = {name: value for name, value in (BASE | model).items() if value != "not told"}
    path.write_text(json.dumps({"log": {"embedded": "log.db"}, "models": {"it": given}}))
    try:
        load(path, {})
    except SettingsError as error:
        return [f"{problem.path}: {problem.message}" for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"classes": ["a", "b"]}, "models.it.target: expected 'class', or no classes beside it"),
        ({"label_range": "not told"}, "models.it.label_range: expected the least and the greatest label"),
        ({"label_unit": "not told"}, "models.it.label_unit: expected a number, as 0.01"),
        ({"criterion": "gini"}, "models.it.criterion: expected 'variance', as labels are numbers"),
        ({"guarantee": "exact"}, "models.it.guarantee: expected null, or no epsilon beside it"),
        ({"beta": 0.1}, "models.it.beta: expected 0, which promises nothing, or beside it no epsilon"),
        ({"alpha": 0.1}, "models.it.alpha: expected 0, as labels are numbers"),
        ({"max_work": 4096}, "models.it.max_work: expected null, as labels are numbers"),
        ({"evaluate": {"drift": {}}}, "models.it.evaluate: expected no drift, as labels are numbers"),
        (
            {"attributes": {"quantised": ["a"]}},
            "models.it.attributes: expected a radius beside quantised features",
        ),
        ({"target": "class"}, "models.it.classes: expected a value"),
    ],
)
def test_wrong_settings_are_told(tmp_path: Path, model: dict[str, Any], message: str) -> None:
    """What is missing, what does not fit, and where."""
    found = problems(tmp_path, **model)
    assert any(message in each for each in found), found


def test_settings_of_classes_are_as_they_were(tmp_path: Path) -> None:
    """What came for numbers is in no fingerprint of classes; that of numbers depends on range and unit."""
    classes = dict.fromkeys(("target", "label_range", "label_unit"), "not told") | {"classes": ["a", "b"]}
    assert problems(tmp_path, **classes, evaluate={}) == []
    relevant = load(tmp_path / "worker.yaml", {}).models["it"].relevant()
    assert not {"target", "label_range", "label_unit"} & relevant.keys()
    assert problems(tmp_path, evaluate={"window": 7}) == []
    settings = load(tmp_path / "worker.yaml", {})
    model = settings.models["it"]
    assert isinstance(model, DynamicTreeSettings)
    assert model.summary == "epsilon 0.3, variance, numbers"
    assert model.evaluate is not None
    assert model.evaluate.drift is None
    assert problems(tmp_path, evaluate={"window": 7}, label_unit=0.5) == []
    assert fingerprint(load(tmp_path / "worker.yaml", {})) != fingerprint(settings)
