"""Models of kind `split` of many classes and features: settings, results, refusals, whatever the batches."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from algorithms.core.events import OnDuplicate
from algorithms.core.kinds import Kind
from tests.oracles.naive_mixed import NaiveMixed
from tests.support.model_contents import model_contents
from tests.support.one_model import one_model, records_of, results_of, run, same_however_run
from worker.codec import DeadLetter, Prediction, Reason, Split, Tree
from worker.codec.encode import encode
from worker.commands import main
from worker.models.mixed_split import MixedSplitModel
from worker.models.split import SplitModel
from worker.pipeline import Pipeline
from worker.settings import Settings, fingerprint, load
from worker.settings.file import SettingsError
from worker.settings.models import SplitSettings
from worker.views.output_text import splits_table
from worker.views.split_text import split_line

KINDS: dict[int | bytes, Kind] = {b"hot": Kind.NUMERIC, b"town": Kind.NOMINAL}
BASE: dict[str, Any] = {
    "kind": "split",
    "input": "in",
    "classes": ["a", "b", "c"],
    "features": "names",
    "attributes": {"numeric": ["hot"], "nominal": ["town"]},
}


def pipeline_of(bounds: dict[str, int] | None = None, **model: Any) -> Pipeline:
    """Return a pipeline with one such model."""
    return one_model(BASE | model, bounds)


def stream(count: int, seed: int = 0, keys: int = 1) -> list[tuple[bytes, Any]]:
    """Return inserts, and among them deletes by id and by value, and predicts."""
    draw = random.Random(seed)
    events: list[tuple[bytes, Any]] = []
    for number in range(count):
        label = draw.randrange(3)
        x: dict[str, float] = {f"word {draw.randrange(9)}": 1 for _ in range(2)}
        x["hot"] = round(draw.gauss(label * (1 if number < count / 2 else -1), 0.5), 2)
        if draw.random() < 0.7:
            x["town"] = label + 1 if draw.random() < 0.7 else draw.randrange(4)
        key = b"key %d" % draw.randrange(keys)
        event: dict[str, Any] = {"x": x, "y": "abc"[label], "w": draw.choice((1, 0.5, 2))}
        if draw.random() < 0.6:
            event["id"] = number
        events.append((key, event))
        if draw.random() < 0.3:
            key, gone = draw.choice(events)
            if "op" not in gone:
                by_id = {"id": gone["id"]} if "id" in gone else gone
                events.append((key, {"op": "delete", **by_id}))
        if draw.random() < 0.2:
            events.append((key, {"op": "predict", "x": x, "id": number}))
    return events


@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@pytest.mark.parametrize("window", [None, 15])
def test_results_are_those_of_the_oracle(criterion: str, window: int | None) -> None:
    """After each event the split that is written, and each answer, are those of a scan of all live examples."""
    events = stream(120)
    pipeline = pipeline_of(
        criterion=criterion, window=window, emit={"splits": {"every": 1}, "snapshots": {"every": 1}}
    )
    naive = NaiveMixed(classes=3, criterion=criterion, kinds=KINDS, window=window, on_duplicate=OnDuplicate.REJECT)
    kinds = {Kind.BINARY: "binary", Kind.NUMERIC: "numeric", Kind.NOMINAL: "category"}
    seen = set()
    for at, (key, event) in enumerate(events):
        outputs = results_of(pipeline.process(records_of([(key, event)], at)).outputs)
        x = {name.encode(): value for name, value in event.get("x", {}).items()}
        if event.get("op") == "predict":
            (answer,) = outputs
            assert isinstance(answer, Prediction)
            assert list(answer.weights) == naive.predict(x)
            continue
        told = {
            "x": x,
            "label": "abc".index(event.get("y", "a")),
            "weight": event.get("w", 1),
            "id": event.get("id"),
        }
        status = naive.delete(**told) if event.get("op") == "delete" else naive.insert(**told)
        if status:
            assert not outputs or isinstance(outputs[0], DeadLetter)
            continue
        split, tree = outputs
        assert isinstance(split, Split)
        assert isinstance(tree, Tree)
        best = naive.best()
        n = sum(best.totals) / 2**20
        high = [each / 2**20 for each in best.high]
        low = [(whole - part) / 2**20 for whole, part in zip(best.totals, best.high, strict=True)]
        assert split.feature == (None if best.feature is None else str(best.feature, "utf-8"))  # type: ignore[arg-type]
        assert split.kind == (None if best.kind is None else kinds[best.kind])
        assert split.threshold == best.threshold
        assert [list(each) for each in split.counts] == [low, high]
        assert split.score == (best.score / n if n else 0.0)
        assert split.gain == ((best.impurity - best.score) / n if n else 0.0)
        assert split.runner_up == (None if best.runner_up is None else str(best.runner_up, "utf-8"))  # type: ignore[arg-type]
        assert tree.kind[0] == split.kind
        assert tree.threshold[0] == split.threshold
        assert len(tree.node) == (1 if best.feature is None else 3)
        assert [list(each) for each in tree.counts][1:] == ([low, high] if best.feature is not None else [])
        seen.add(split.kind)
    pipeline.models[0].check()
    assert {"numeric", "category"} <= seen


def test_same_results_whatever_the_batches() -> None:
    """Batches and restarts change neither results nor state; bounds, windows and expiry included."""
    events = stream(150, seed=2, keys=4)
    for model in (
        {"on_duplicate": "replace", "emit": {"snapshots": {"every": 7}}},
        {"window": 9, "criterion": "gini", "emit": {"splits": {"every": 3}, "snapshots": "change"}},
        {"window": "12s", "on_duplicate": "ignore"},
        {"expire": "20s", "emit": {"splits": {"every_ms": 5_000}}},
        {"attributes": None, "classes": ["a", "b", "c", "d"]},
    ):
        outputs = same_however_run(lambda model=model: pipeline_of({"keys": 3, "live_ids": 30}, **model), events)
        assert len(outputs) > 20


def test_results_are_told_in_words() -> None:
    """`show` says what leads to a branch: a category, a threshold or a feature that is present."""
    events = stream(60)
    splits = [each for each in run(pipeline_of(emit={"splits": {"every": 1}}), events) if isinstance(each, Split)]
    by_kind = {split.kind: split for split in splits}
    assert "= " in split_line(by_kind["category"]).plain
    assert "≠ " in split_line(by_kind["category"]).plain
    assert "> " in split_line(by_kind["numeric"]).plain
    sheet = splits_table("m", [(b"k", by_kind["category"]), (b"k", by_kind["numeric"])])
    assert [column.heading for column in sheet._columns][5:] == ["absent, ≤, ≠\na/b/c", "present, >, =\na/b/c"]
    assert str(sheet._rows[0][1]) == f"town = {by_kind['category'].threshold:.0f}"


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"op": "delete", "id": "never there"}, Reason.ABSENT_ID),
        ({"op": "delete", "x": ["told"], "y": "a"}, Reason.ABSENT_EXAMPLE),
        ({"op": "delete", "x": {"hot": 2.0}, "y": "unheard of"}, Reason.UNKNOWN_CLASS),
        ({"id": 3, "x": ["told"], "y": "a"}, Reason.DUPLICATE_ID),
        ({"x": ["told"], "y": "d"}, Reason.UNKNOWN_CLASS),
        ({"x": [1, 2], "y": "a"}, Reason.WRONG_FEATURE_SPACE),
        ({"x": {"told": 2.0}, "y": "a"}, Reason.NOT_BINARY),
        ({"x": {"town": 2.5}, "y": "a"}, Reason.NOT_A_CATEGORY),
        ({"x": {"hot": 1e300}, "y": "a"}, Reason.BAD_VALUE),
    ],
)
def test_what_it_does_not_take(event: Any, reason: Reason) -> None:
    """Such an event is refused, with a reason, and changes nothing."""
    pipeline = pipeline_of()
    run(pipeline, [(b"key", {"id": 3, "x": {"hot": 1.5, "town": 2}, "y": "a"}), (b"key", {"x": [], "y": "b"})])
    before = model_contents(pipeline.models[0])
    (letter,) = run(pipeline, [(b"key", event)])
    assert isinstance(letter, DeadLetter)
    assert letter.reason == reason
    assert model_contents(pipeline.models[0]) == before


def _model(**told: Any) -> SplitSettings:
    model = {"kind": "split", "input": "in", "classes": [0, 1], "features": "ids"} | told
    settings = {"log": {"embedded": "unused.db"}, "models": {"m": model}}
    found = Settings.model_validate_json(json.dumps(settings)).models["m"]
    assert isinstance(found, SplitSettings)
    return found


@pytest.mark.parametrize(
    ("told", "is_mixed", "summary"),
    [
        ({}, False, "exact, entropy"),
        ({"attributes": {}}, False, "exact, entropy"),
        ({"attributes": {"binary": [3]}, "finder": "baseent"}, False, "baseent, entropy"),
        ({"classes": [0, 1, 2], "window": 5}, True, "exact, entropy, 3 classes, last 5 examples"),
        ({"attributes": {"numeric": [3]}, "criterion": "gini"}, True, "exact, gini, 2 classes"),
        ({"attributes": {"default": "nominal"}}, True, "exact, entropy, 2 classes"),
    ],
)
def test_which_model_is_made(told: dict[str, Any], is_mixed: bool, summary: str) -> None:
    """Two classes and binary features have their own index, whatever attributes are written."""
    settings = _model(**told)
    assert settings.is_mixed == is_mixed
    assert settings.summary == summary
    made = one_model({"kind": "split", "input": "in", "classes": [0, 1], "features": "ids"} | told).models[0]
    assert isinstance(made, MixedSplitModel if is_mixed else SplitModel)


def test_older_fingerprints_hold() -> None:
    """Without attributes what results depend on is what it was; kinds of features change it."""
    assert "attributes" not in _model().relevant()
    for binary in ({}, {"default": "binary"}, {"binary": [3]}):
        assert _model(attributes=binary).relevant() == _model().relevant()
    assert _model(attributes={"numeric": [3]}).relevant()["attributes"] == {
        "binary": [],
        "default": "binary",
        "nominal": [],
        "numeric": [3],
    }
    settings = [
        Settings.model_validate_json(
            json.dumps({"log": {"embedded": "a.db"}, "models": {"m": BASE | {"attributes": attributes}}})
        )
        for attributes in (None, {"numeric": ["hot"]}, {"nominal": ["hot"]})
    ]
    assert len({fingerprint(each) for each in settings}) == 3


_ALONE = "as others serve two classes and binary features"
_MIXED = "with more than two classes, or features that are not binary,"


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ("classes: [a, b, c], finder: basegini", f"finder: expected 'exact', {_ALONE}, got 'basegini'"),
        ("attributes: {numeric: [p]}, finder: updent", f"finder: expected 'exact', {_ALONE}, got 'updent'"),
        ("classes: [a, b, c], criterion: sqrt", f"criterion: expected 'entropy' or 'gini', {_ALONE}, got 'sqrt'"),
        (
            "attributes: {nominal: [p]}, verify_deletes: true",
            f"verify_deletes: expected false: {_MIXED} all live examples are kept, so deletes are always verified",
        ),
        (
            "attributes: {quantised: [p]}",
            "attributes: expected no quantised features, kind 'split' looks at each value; declare them as",
        ),
        ("attributes: {numeric: [3]}", "attributes: expected features as names, as 'features' says, got "),
    ],
)
def test_what_is_not_offered_is_told(tmp_path: Path, told: str, message: str) -> None:
    """A combination that nobody serves is a problem with its place, and says what is served."""
    text = {"kind": "split", "input": "in", "classes": "[a, b]", "features": "names"}
    path = tmp_path / "worker.yaml"
    given = "\n".join(f"    {name}: {value}" for name, value in text.items() if f"{name}:" not in told)
    lines = "\n".join(f"    {each}" for each in told.replace("], ", "]\n").replace("}, ", "}\n").split("\n"))
    path.write_text(f"log: {{embedded: a.db}}\nmetrics: null\nmodels:\n  m:\n{given}\n{lines}\n")
    with pytest.raises(SettingsError) as caught:
        load(path, {})
    [problem] = caught.value.problems
    assert f"{problem.location[-1]}: {problem.message}".startswith(message)


def test_it_is_validated_with_names(tmp_path: Path) -> None:
    """`validate` tells the model in its words."""
    path = tmp_path / "worker.yaml"
    path.write_text(f"log: {{embedded: a.db}}\nmetrics: null\nmodels:\n  m: {json.dumps(BASE)}\n")
    result = CliRunner().invoke(main, ["validate", str(path)])
    assert result.exit_code == 0, result.output
    assert "m: split (exact, entropy, 3 classes) in -> in.out" in result.output


def test_large_splits_fit_into_a_record() -> None:
    """A thousand classes with long names fit."""
    classes = [f"{number:03d}" + "x" * 200 for number in range(1_000)]
    pipeline = pipeline_of(classes=classes, emit={"splits": "change", "snapshots": "change"})
    outputs = run(
        pipeline, [(b"k", {"x": {"hot": 1.5}, "y": classes[0]}), (b"k", {"x": {"hot": 2}, "y": classes[9]})]
    )
    splits = [each for each in outputs if isinstance(each, Split)]
    assert splits[-1].threshold == 1.75
    assert len(encode(splits[-1])) < 1 << 20
