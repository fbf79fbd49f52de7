"""Models of kind `split` whose labels are numbers: settings, results, refusals, whatever the batches."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.oracles.naive_numbers import Naive
from tests.support.examples import budget
from tests.support.model_contents import model_contents
from tests.support.one_model import one_model, records_of, results_of, run, same_however_run
from worker.codec import (
    DeadLetter,
    LetGo,
    Reason,
    RegressionPrediction,
    RegressionSplit,
    RegressionTree,
    decode_output,
)
from worker.codec.encode import encode
from worker.codec.event import encode_event
from worker.commands import main
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord
from worker.pipeline import Pipeline
from worker.settings import Settings, fingerprint, load
from worker.settings.file import SettingsError
from worker.settings.models import SplitSettings
from worker.views.output_text import output_line
from worker.views.split_text import regression_split_line

BASE: dict[str, Any] = {
    "kind": "split",
    "input": "in",
    "target": "number",
    "label_range": [-100, 100],
    "label_unit": 0.25,
    "features": "names",
}


def pipeline_of(bounds: dict[str, int] | None = None, **model: Any) -> Pipeline:
    """Return a pipeline with one such model."""
    return one_model(BASE | model, bounds)


def stream(count: int, seed: int = 0, keys: int = 1) -> list[tuple[bytes, Any]]:
    """Return inserts, and among them deletes by id and by value, and predicts: of sums around 0, with ties."""
    draw = random.Random(seed)
    events: list[tuple[bytes, Any]] = []
    for number in range(count):
        x = sorted({f"word {draw.randrange(9)}" for _ in range(3)})
        label = draw.choice((-1, 1)) * draw.choice((0.25, 1, 30)) + 5 * ("word 3" in x)
        label *= draw.random() < 0.7
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
        if draw.random() < 0.2:
            events.append((key, {"op": "predict", "x": x, "id": number}))
    return events


class Twin(Naive):
    """The oracle of events: one that is anonymous is named by what it is."""

    def apply(self, event: Any) -> bool:
        """Apply an event; return whether it is accepted."""
        weight, label = event.get("w", 1), Fraction(event.get("y", 0))
        content = (tuple(event.get("x", ())), label, weight)
        if event.get("op") == "delete":
            if "id" in event:
                return self.delete(event["id"])
            found = [at for at, live in enumerate(self.live) if live[3] == content]
            for at in found[-1:]:
                del self.live[at]
            return bool(found)
        self.insert(event["x"], label, weight, event.get("id", content))
        return True

    def labels(self, feature: Any, side: bool | None) -> tuple[float, float, None]:
        """Return weight and mean of the examples with a feature, without it, or of all."""
        own = [each for each in self.live if side is None or (feature in each[0]) == side]
        n = sum(each[2] for each in own)
        return float(n), float(sum((each[1] * each[2] for each in own), Fraction(0)) / n) if n else 0.0, None


@pytest.mark.parametrize("window", [None, 12])
def test_results_are_those_of_the_oracle(window: int | None) -> None:
    """After each event the split that is written, and each answer, are exactly those of a scan of what is live."""
    events = stream(budget(150))
    emit = {"splits": {"every": 1}, "snapshots": {"every": 1}}
    pipeline = pipeline_of(window=window, verify_deletes=True, emit=emit)
    naive, seen = Twin(window), set()
    for number, (key, event) in enumerate(events):
        outputs = results_of(pipeline.process(records_of([(key, event)], number)).outputs)
        if event.get("op") == "predict":
            [answer] = outputs
            feature, _ = naive.best()
            leaf = None if feature is None else feature in event["x"]
            n, mean, _ = naive.labels(feature, leaf)
            assert isinstance(answer, RegressionPrediction)
            assert (answer.value, answer.n, answer.known) == (mean if n else None, n, n > 0)
            assert (answer.leaf, answer.deviation) == (0 if leaf is None else 1 + leaf, None)
            continue
        if not naive.apply(event):
            assert all(isinstance(each, DeadLetter) for each in outputs)
            continue
        split, tree = outputs
        assert isinstance(split, RegressionSplit)
        assert isinstance(tree, RegressionTree)
        (feature, reduction), *rest = naive.ranked()
        second = rest[0] if rest else (None, Fraction(0))
        assert (split.feature, split.merit) == (feature, float(reduction))
        assert (split.runner_up, split.runner_up_merit) == (second[0], float(second[1]))
        whole = naive.labels(None, None)
        sides = [naive.labels(feature, side) for side in (False, True)]
        assert (split.n, split.value, split.variance) == whole
        assert [tuple(each) for each in split.labels] == (sides if feature else [whole, (0.0, 0.0, None)])
        assert list(zip(tree.n, tree.value, tree.variance, strict=True)) == [whole, *(sides if feature else [])]
        seen.add(feature)
    pipeline.models[0].check()
    assert len(seen) > 3


@pytest.mark.parametrize("window", [None, 10, "20s"])
@pytest.mark.parametrize("verify", [False, True])
def test_results_and_state_depend_on_events_alone(window: Any, verify: bool) -> None:
    """Whatever the batches and restarts; also where many tie, and where labels are dead letters."""
    events = stream(200, seed=3, keys=3)
    draw = random.Random(1)
    for bad in ("text", 1e300, 101, -100.5, 3, None):
        x = ["word 1"]
        event = {"x": x, "y": bad, "w": 0.5} if bad == 3 else {"x": x, "y": bad} if bad is not None else None
        events.insert(draw.randrange(len(events)), (b"key 0", event))
    model = {"window": window, "verify_deletes": verify, "expire": "60s", "on_duplicate": "replace"}
    outputs = same_however_run(lambda: pipeline_of(**model, emit={"snapshots": {"every": 9}}), events)
    told = results_of(outputs)
    assert sum(isinstance(each, RegressionSplit) for each in told) > 10
    if isinstance(window, str):
        assert any(isinstance(each, LetGo) for each in told)


def test_deletes_leave_nothing() -> None:
    """What is deleted might as well never have come: by id and by value, in any order, after any labels."""
    kept = [(b"k", {"x": [f"w{at % 5}"], "y": at % 7 - 3, "id": at}) for at in range(30)]
    gone = [(b"k", {"x": [f"w{at % 3}", "gone"], "y": (-1) ** at * 100, "id": f"gone {at}"}) for at in range(20)]
    bare = [(b"k", {"x": ["w1", "bare"], "y": 12.25, "w": 3})] * 2
    events = [*kept[:15], *gone[:10], *bare, *kept[15:], *gone[10:]]
    random.Random(2).shuffle(gone)
    undo = [(b"k", {"op": "delete", "id": event["id"]}) for _, event in gone]
    undo += [(b"k", {"op": "delete", **event}) for _, event in bare]
    both = [pipeline_of(verify_deletes=True) for _ in range(2)]
    run(both[0], [*events, *undo])
    run(both[1], kept)
    held = [pipeline.models[0].holdings() for pipeline in both]
    assert held[0] == held[1]
    assert held[0] is not None


def test_labels_that_no_sum_could_hold_are_dead_letters() -> None:
    """A label that is none, or not in the range, and a weight that is a fraction, change nothing."""
    pipeline = pipeline_of()
    run(pipeline, [(b"k", {"x": ["a"], "y": -100}), (b"k", {"x": ["b"], "y": 100.0, "w": 4})])
    before = model_contents(pipeline.models[0])
    cases: list[tuple[dict[str, Any], Reason, str]] = [
        ({"y": float("nan")}, Reason.BAD_LABEL, "a finite float"),
        ({"y": float("inf")}, Reason.BAD_LABEL, "a finite float"),
        ({"y": 1e308}, Reason.NOT_A_NUMBER, "got 1e+308"),
        ({"y": "much"}, Reason.NOT_A_NUMBER, "got the text 'much'"),
        ({"y": 100.5}, Reason.OUT_OF_RANGE, "expected a label from -100.0 to 100.0 (label_range), got 100.5"),
        ({"y": -(2**62)}, Reason.OUT_OF_RANGE, "got -4611686018427387904"),
        ({"y": 1, "w": 0.5}, Reason.BAD_WEIGHT, "expected a whole number as the weight"),
        ({"y": 1, "op": "delete", "w": 1.5}, Reason.BAD_WEIGHT, "got 1.5"),
        ({"y": 1, "op": "delete"}, Reason.ABSENT_EXAMPLE, "expected an example that is there"),
    ]
    for told, reason, words in cases:
        [letter] = run(pipeline, [(b"k", {"x": ["a"], **told})])
        assert isinstance(letter, DeadLetter)
        assert (letter.reason, words in letter.detail) == (reason, True), letter.detail
    assert model_contents(pipeline.models[0]) == before


def test_weights_that_pass_the_bound_are_dead_letters() -> None:
    """Sums of labels stay below 2^62 units: what would pass that changes nothing, and no sum wraps."""
    pipeline = pipeline_of(label_range=[0, 2.0**40 - 2], label_unit=1)
    heavy = {"x": ["a"], "y": 2.0**39, "w": 2.0**20}
    found = run(pipeline, [(b"k", heavy)] * 5 + [(b"k", {"x": ["b"], "y": 0, "w": 2.0**31})])
    reasons = [each.reason for each in found if isinstance(each, DeadLetter)]
    assert reasons == [Reason.COUNT_OVERFLOW] * 3
    [answer] = run(pipeline, [(b"k", {"op": "predict", "x": ["a"]})])
    assert isinstance(answer, RegressionPrediction)
    assert (answer.value, answer.n) == (2.0**39, 3 * 2.0**20)
    before = model_contents(pipeline.models[0])
    # Of this example the sum of labels would be 0 in 64 bits.
    [letter] = run(pipeline, [(b"k", {"op": "delete", "x": ["a"], "y": 2.0**34 - 1, "w": 2.0**30})])
    assert isinstance(letter, DeadLetter)
    assert letter.reason == Reason.ABSENT_EXAMPLE
    assert model_contents(pipeline.models[0]) == before
    pipeline.models[0].check()


def test_a_delete_by_value_finds_its_label_alone() -> None:
    """An example is told apart by its whole label, which may have more than 32 bits, and by its weight."""
    pipeline = pipeline_of(label_range=[0, 2.0**40 - 2], label_unit=1, verify_deletes=True)
    event: dict[str, Any] = {"x": ["a"], "y": 1, "w": 3}
    run(pipeline, [(b"k", event)])
    for other in ({"y": 1 + 2**32}, {"y": 1 + 2**33}, {"w": 2}, {"y": 0, "w": 3 + 2**12}, {"x": ["b"]}):
        [letter] = run(pipeline, [(b"k", {"op": "delete", **event, **other})])
        assert isinstance(letter, DeadLetter)
        assert letter.reason == Reason.ABSENT_EXAMPLE
    assert run(pipeline, [(b"k", {"op": "delete", **event})]) == []


def test_labels_that_are_all_the_same_are_never_split() -> None:
    """Without variance no split is written, however many features tie, nor once one label more has gone again."""
    pipeline = pipeline_of(label_range=[0, 1000], label_unit=1e-6, emit={"splits": {"every": 1}})
    same = [(b"k", {"x": [f"w{at % 40}", f"v{at % 7}"], "y": 0.1}) for at in range(200)]
    other = [(b"k", {"x": ["w1"], "y": 0.100001, "id": 1}), (b"k", {"op": "delete", "id": 1})]
    *found, split, after = run(pipeline, [*same, *other])
    assert {each.feature for each in found if isinstance(each, RegressionSplit)} == {None}
    assert isinstance(split, RegressionSplit)
    assert isinstance(after, RegressionSplit)
    assert (split.feature, after.feature, after.merit) == ("w1", None, 0.0)


def test_late_labels_and_predicts_are_learned_as_numbers() -> None:
    """What was predicted is learned once its label comes; one out of the range is a dead letter."""
    pipeline = one_model(BASE | {"emit": {"splits": {"every": 1}}}, pending={"max": 10, "for": "1h"})
    events: list[tuple[bytes, Any]] = [
        (b"k", {"op": "predict", "x": ["a"], "id": 1}),
        (b"k", {"op": "predict", "x": ["b"], "id": 2}),
        (b"k", {"op": "label", "id": 1, "y": 10}),
        (b"k", {"op": "label", "id": 2, "y": 1000}),
    ]
    found = run(pipeline, events)
    [split] = [each for each in found if isinstance(each, RegressionSplit)]
    assert (split.n, split.value) == (1.0, 10.0)
    assert [each.reason for each in found if isinstance(each, DeadLetter)] == [Reason.OUT_OF_RANGE]


# --- settings


def problems(tmp_path: Path, **model: Any) -> list[str]:
    """Return what is wrong with such a model's settings."""
    path = tmp_path / "worker.yaml"
    told = {name: value for name, value in (BASE | model).items() if value != "not told"}
    path.write_text(json.dumps({"log": {"embedded": "log.db"}, "models": {"it": told}}))
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
        ({"label_unit": 0}, "models.it.label_unit: expected more than 0"),
        ({"label_unit": 1e-20}, "models.it.label_unit: expected a unit of which 1 to 2^40 are in the range"),
        ({"label_range": [1, 1]}, "models.it.label_range: expected the least label and then a greater one"),
        ({"label_range": [100, -100]}, "models.it.label_range: expected the least label and then a greater one"),
        ({"label_range": "0 to 9"}, "models.it.label_range: expected a list, got '0 to 9'"),
        ({"label_range": [0, 1e200]}, "models.it.label_range.1: expected 1e+140 or less"),
        ({"criterion": "gini"}, "models.it.criterion: expected 'variance', as labels are numbers"),
        (
            {"criterion": "variance", "finder": "exact", "target": "class"},
            "models.it.criterion: expected one of classes",
        ),
        ({"finder": "updgini"}, "models.it.finder: expected 'exact', as labels are numbers"),
        ({"attributes": {"numeric": ["a"]}}, "models.it.attributes: expected binary features only"),
        ({"target": "class"}, "models.it.classes: expected a value"),
        ({"target": "class", "classes": "none, as labels are numbers"}, "models.it.classes: expected 2 to 1000"),
        ({"target": "class", "classes": ["a", "b"]}, "models.it.label_range: expected null, or beside it"),
        ({"target": "words"}, "models.it.target: expected 'class' or 'number'"),
    ],
)
def test_wrong_settings_are_told(tmp_path: Path, model: dict[str, Any], message: str) -> None:
    """What is missing, what does not fit, and where."""
    found = problems(tmp_path, **model)
    assert any(message in each for each in found), found


def test_settings_of_classes_are_as_they_were(tmp_path: Path) -> None:
    """What came for numbers is in no fingerprint of classes; that of numbers depends on range and unit."""
    assert problems(tmp_path, finder="exact", attributes={"binary": ["a"]}) == []
    assert problems(tmp_path) == []
    settings = load(tmp_path / "worker.yaml", {})
    model = settings.models["it"]
    assert isinstance(model, SplitSettings)
    assert model.summary == "exact, variance"
    told = Settings.model_validate_json(
        json.dumps(
            {
                "log": {"embedded": "log.db"},
                "models": {"it": {"kind": "split", "input": "in", "classes": ["a", "b"], "features": "names"}},
            }
        )
    )
    classes = told.models["it"].relevant()
    assert not {"target", "label_range", "label_unit"} & classes.keys()
    before = fingerprint(settings)
    assert problems(tmp_path, label_unit=0.5) == []
    assert fingerprint(load(tmp_path / "worker.yaml", {})) != before


# --- for people


def test_views_tell_values_without_deviations(tmp_path: Path) -> None:
    """A line, tables, `show` and drawings have the means of both sides, and no deviation."""
    path = tmp_path / "worker.yaml"
    path.write_text(
        json.dumps(
            {
                "log": {"embedded": str(tmp_path / "log.db")},
                "metrics": None,
                "models": {"price": BASE | {"emit": {"snapshots": {"every": 4}}}},
            }
        )
    )
    events = [encode_event(["sea", "new"], 50), encode_event(["old"], 20), encode_event(["sea"], 40)]
    events += [encode_event(["new"], 22, id=4), encode_event(["sea"], op="predict", id="q")]
    with EmbeddedLog(tmp_path / "log.db") as log:
        log.create_topic("in", 1)
        log.append([OutRecord("in", 0, b"home", event, (), 1_700_000_000_000) for event in events])
    assert CliRunner().invoke(main, ["run", str(path), "--until-end"]).exit_code == 0
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "log.db"), "--topic", "in.out"])
    assert shown.exit_code == 0, shown.output
    for words in ("sea", "144", "45", "21", "predictions of numbers"):
        assert words in shown.output
    assert "±" not in shown.output
    for form in ("svg", "dot"):
        one = ["--topic", "in.out", "--key", "home", "--model", "price", "--format", form]
        drawn = CliRunner().invoke(main, ["show", str(tmp_path / "log.db"), *one])
        assert drawn.exit_code == 0, drawn.output
        assert "±" not in drawn.output
        assert "45" in drawn.output


def test_a_split_in_one_line() -> None:
    """It has the means of both sides, the merit and the second best; and a line where nothing is split."""
    pipeline = pipeline_of(emit={"splits": {"every": 1}})
    rows = [(["sea", "new"], 50), (["old"], 20), (["sea"], 40), (["new"], 22)]
    found = run(pipeline, [(b"home", {"x": x, "y": y}) for x, y in rows])
    splits = [each for each in found if isinstance(each, RegressionSplit)]
    assert regression_split_line(splits[0]).plain == "no split  50  n 1"
    words = "sea  present: 45, absent: 21  merit 144  next old 56.3333  n 4"
    assert regression_split_line(splits[-1]).plain == words
    told = output_line(b"home", splits[-1]).plain
    assert told.startswith("home  tree  sea")
    assert decode_output(encode(splits[-1]), (("type", b"split"),)) == splits[-1]
