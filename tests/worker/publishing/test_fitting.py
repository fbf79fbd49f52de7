"""Events that no model of the topic takes are told as they are published, with what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from worker.commands.publish import publish
from worker.publishing.fitting import fitting
from worker.settings import load
from worker.sources import BadLine, Example

SPLIT = {"kind": "split", "input": "sms", "classes": ["ham", "spam"], "features": "names"}
TREE = {
    "kind": "tree",
    "input": "sms",
    "classes": [0, 1, 2],
    "features": "ids",
    "attributes": {"numeric": [7], "nominal": [8]},
}

PRICES: dict[str, Any] = {name: value for name, value in SPLIT.items() if name != "classes"}
PRICES |= {"target": "number", "label_range": [0, 500], "label_unit": 0.01}


def _settings(folder: Path, *models: dict[str, Any]) -> Path:
    path = folder / "worker.yaml"
    named = {f"m{at}": model for at, model in enumerate(models)}
    path.write_text(yaml.safe_dump({"log": {"embedded": "events.db"}, "models": named}))
    return path


def _publish(folder: Path, text: str, *options: str) -> Result:
    (folder / "events.jsonl").write_text(text)
    arguments = [str(folder / "events.jsonl"), "--to", str(folder / "worker.yaml"), *options]
    return CliRunner().invoke(publish, arguments)


def _line(**fields: Any) -> str:
    return json.dumps({"x": ["a"], "y": "ham"} | fields) + "\n"


@pytest.mark.parametrize(
    ("model", "fields", "message"),
    [
        (
            SPLIT,
            {"y": 0},
            "a label among the classes of the model 'm0' (ham, spam), got '0'; rename",
        ),
        (SPLIT, {"y": "Ham"}, "a label among the classes of the model 'm0' (ham, spam), got 'Ham'; rename"),
        (TREE, {"x": [1], "y": 1.0}, "a label among the classes of the model 'm0' (0, 1, 2), got '1.0'"),
        (
            SPLIT,
            {"x": [1]},
            "features as names, as the model 'm0' has, got ids, as '1'; set features: ids",
        ),
        (
            TREE,
            {"y": 1},
            "features as ids, as the model 'm0' has, got names, as 'a'; set features: names",
        ),
        (
            SPLIT,
            {"x": {"price": 2.5}},
            "0 or 1 of 'price', a binary feature of the model 'm0', got 2.5; set attributes: {default: "
            "numeric} of the model, or name its numeric features there",
        ),
        (TREE, {"x": {"i": [7, 8, 9], "v": [2.5, 3, 2]}, "y": 1}, "0 or 1 of 9, a binary feature of"),
        (
            PRICES,
            {"y": "ham"},
            "a number up to 1e+140 in size as the label, which the model 'm0' learns, got 'h",
        ),
        (PRICES, {"y": 501}, "a label from 0 to 500, the label_range of the model 'm0', got 501; set another"),
    ],
)
def test_what_no_model_takes(tmp_path: Path, model: dict[str, Any], fields: dict[str, Any], message: str) -> None:
    """An event that would be a dead letter is a bad line, with its place; with --skip-bad it is passed over."""
    _settings(tmp_path, model)
    result = _publish(tmp_path, _line(**fields))
    assert result.exit_code == 1
    assert f"events.jsonl:1: expected {message}" in result.stderr
    skipped = _publish(tmp_path, _line(**fields), "--skip-bad")
    assert skipped.exit_code == 0
    assert "skipped 1 line" in skipped.stderr


def test_labels_of_the_range_are_published(tmp_path: Path) -> None:
    """A model whose labels are numbers takes what is in its range."""
    _settings(tmp_path, PRICES)
    assert _publish(tmp_path, _line(y=19.99) + _line(y=0) + _line(y=500)).exit_code == 0


def test_numbers_are_categories_of_a_model_that_takes_none(tmp_path: Path) -> None:
    """A split of labels that are numbers has binary features; what its message advises is published."""
    _settings(tmp_path, PRICES)
    (tmp_path / "rides.csv").write_text("km,y\n9,19.5\n12,25.5\n")
    arguments = [str(tmp_path / "rides.csv"), "--to", str(tmp_path / "worker.yaml")]
    refused = CliRunner().invoke(publish, arguments)
    assert "with --nominal, leave it out with --ignore, or take a regression-tree" in refused.stderr
    assert CliRunner().invoke(publish, [*arguments, "--nominal", "km"]).exit_code == 0
    assert CliRunner().invoke(publish, [*arguments, "--ignore", "km"]).exit_code == 0


def test_the_advice_works(tmp_path: Path) -> None:
    """The labels are renamed as the message says."""
    _settings(tmp_path, SPLIT)
    text = _line(y=0) + _line(y=1)
    (advice,) = re.findall(r"--map-label (\S+),", _publish(tmp_path, text).stderr)
    assert advice == "0=ham,1=spam"
    assert _publish(tmp_path, text, "--map-label", advice).exit_code == 0
    assert "as with --map-label yes=CLASS, or set" in _publish(tmp_path, _line(y="yes")).stderr


def test_one_model_is_enough(tmp_path: Path) -> None:
    """What one of the topic's models takes is published; the others refuse it, as they are there to."""
    _settings(tmp_path, SPLIT, TREE)
    assert _publish(tmp_path, _line() + _line(x={"i": [7], "v": [2.5]}, y=2)).exit_code == 0
    assert _publish(tmp_path, _line(y=2)).exit_code == 1


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(["a", "ham"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["i", "v", "a"]), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["x", "y", "op", "id"]), VALUE))
def test_whatever_comes_is_an_entry(tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any]) -> None:
    """No event is too odd to be looked at."""
    settings = load(_settings(tmp_path_factory.getbasetemp(), SPLIT), {})
    (entry,) = fitting([Example(None, fields, 1)], settings, "sms")
    assert isinstance(entry, Example | BadLine)
