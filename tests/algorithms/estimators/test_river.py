"""The models as parts of river: its own checks, pipelines and measures."""

from __future__ import annotations

import doctest
from importlib import import_module
from typing import Any

import pytest

from algorithms.core.jit import IS_OFF
from tests.algorithms.estimators.peers import needed
from tests.algorithms.estimators.streams import tables, texts

needed("river")
compose, evaluate, metrics, utils = (
    import_module(f"river.{name}") for name in ("compose", "evaluate", "metrics", "utils")
)
ours = import_module("algorithms.estimators.river")

KINDS = [
    "TreeClassifier",
    "ForgettingTreeClassifier",
    "ForgettingForestClassifier",
    "ForestClassifier",
    "TreeRegressor",
    "ForgettingTreeRegressor",
]


def _checks() -> list[Any]:
    found = []
    for kind in (getattr(ours, name) for name in KINDS):
        for parameters in kind._unit_test_params():
            model = kind(**parameters)
            for number, check in enumerate(import_module("river.checks").yield_checks(model)):
                found.append(pytest.param(model, check, id=f"{kind.__name__}-{check.__name__}-{number}"))
    return found


@pytest.mark.skipif(IS_OFF, reason="thousands of examples, which take minutes in plain Python")
@pytest.mark.parametrize(("model", "check"), _checks())
def test_rivers_own_checks(model: Any, check: Any) -> None:
    """All of them pass: none is left out."""
    check(model.clone())


def test_no_check_is_left_out() -> None:
    """Neither by us nor by river: 53 of each classifier and 25 of each regression tree, in river 0.26."""
    for name in KINDS:
        assert not getattr(ours, name)()._unit_test_skips()
    assert len(_checks()) >= 4 * 53 + 2 * 25


@pytest.mark.skipif(IS_OFF, reason="thousands of examples, which take minutes in plain Python")
def test_examples_in_docstrings() -> None:
    """`progressive_val_score` runs, and says what they say."""
    found = doctest.testmod(ours)
    assert found.attempted == 21
    assert found.failed == 0


def test_best_split_predicts_in_river() -> None:
    """Its features are flags; what it does is measured like any other."""
    metric = metrics.Accuracy()
    stream = [(dict.fromkeys(x, True), y) for x, y in texts(200)]
    evaluate.progressive_val_score(iter(stream), ours.BestSplit(), metric)
    assert metric.get() > 0.6


def test_pipelines_and_grids() -> None:
    """A model is a step of a pipeline, and is cloned with other parameters."""
    model = compose.Discard("wet") | ours.TreeClassifier(grace_period=20)
    for x, y in tables(60):
        model.learn_one(x, y)
    assert model.predict_one({"heat": 4.0}) == "label 1"
    grid = utils.expand_param_grid(ours.TreeClassifier(), {"grace_period": [10, 20]})
    assert [each.grace_period for each in grid] == [10, 20]
