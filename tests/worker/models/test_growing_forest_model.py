"""Models of kind `forest` of trees that grow: what they write, what they refuse, whatever the batches."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from algorithms.forests.growing import GrowingForestPool
from tests.support.model_contents import model_contents
from tests.support.one_model import labelled, one_model, records_of, results_of, run, same_however_run
from worker.codec import DeadLetter, Evaluation, Prediction, Reason, Tree
from worker.models.growing_forest import GrowingForestModel
from worker.pipeline import Pipeline


def pipeline_of(bounds: dict[str, int] | None = None, **model: Any) -> Pipeline:
    """Return a pipeline with one forest of four trees that split soon."""
    own = {"kind": "tree", "tie_threshold": 0.3} | model.pop("of", {})
    base = {"kind": "forest", "of": own, "input": "in", "classes": ["a", "b"], "features": "names", "trees": 4}
    return one_model(base | model, bounds)


def turning(count: int, keys: int = 1) -> list[tuple[bytes, Any]]:
    """Return inserts whose labels turn once they are half through: trees that were right before drift."""
    events = labelled(count, keys=keys)
    for _, event in events[count // 2 :]:
        event["y"] = {"a": "b", "b": "a"}[event["y"]]
    return events


def forest_of(pipeline: Pipeline) -> GrowingForestPool:
    """Return the pool of the model."""
    model = pipeline.models[0]
    assert isinstance(model, GrowingForestModel)
    return model._pool


def test_trees_are_written_with_the_weights_of_their_votes() -> None:
    """A snapshot is a record for each tree, which says which it is, of how many, and how much its vote weighs."""
    pipeline = pipeline_of(emit={"snapshots": {"every": 100}}, seed=3, bagging="2 of 4", of={"policy": "osm"})
    trees = [each for each in run(pipeline, labelled(200)) if isinstance(each, Tree)]
    assert [(tree.version, tree.tree, tree.trees) for tree in trees] == [
        (version, number, 4) for version in (100, 200) for number in range(4)
    ]
    pool = forest_of(pipeline)
    weights = [tree.weight for tree in trees[4:]]
    assert weights == pool.accuracies().tolist()
    assert 0.5 < min(weights) < max(weights) < 1.0
    assert [list(tree.node) for tree in trees[4:]] == [tree.number.tolist() for tree in pool.trees()]
    told = trees[0].parameters
    assert list(told) == sorted(told)
    assert told == {
        "bagging": "2 of 4",
        "criterion": "gini",
        "delta": 0.5,
        "drift": 0.001,
        "kind": "forest",
        "policy": "osm",
        "seed": 3,
        "subspace": 0.6,
        "tau": 0.3,
        "warning": 0.01,
    }


def test_predictions_are_votes() -> None:
    """Weights are votes in trees; nothing is known of a key without examples."""
    question = {"op": "predict", "id": 7, "x": ["told"]}
    outputs = run(pipeline_of(subspace=1), [*labelled(200), (b"key 0", question), (b"nobody", question)])
    known, unknown = [each for each in outputs if isinstance(each, Prediction)]
    assert (known.id, known.label, known.known, known.leaf) == (7, "b", True, 0)
    assert 2.0 < sum(known.weights) < 4.0
    assert (unknown.label, unknown.known, list(unknown.weights)) == (None, False, [0.0, 0.0])


def test_what_drifts_is_replaced() -> None:
    """When labels turn trees are replaced, what was counted as changes tells of it, and predictions follow."""
    pipeline = pipeline_of(subspace=1, drift=1e-6, of={"split_confidence": 1e-9, "tie_threshold": 0.0})
    events = turning(1_200)
    batches = [pipeline.process(records_of(events[at : at + 50], at)) for at in range(0, 1_200, 50)]
    changes = sum(batch.outcomes[0][1].changes for batch in batches)
    sizes = forest_of(pipeline).sizes()
    assert sizes.drifts >= 4
    assert changes > sizes.drifts
    [answer] = run(pipeline, [(b"key 0", {"op": "predict", "x": ["told"]})])
    assert isinstance(answer, Prediction)
    assert answer.label == "a"


@pytest.mark.parametrize("on_delete", ["reject", "ignore"])
def test_deletes_change_nothing(on_delete: str) -> None:
    """A delete, by id or by value, is refused; or it is counted and passed by."""
    deletes: list[Any] = [{"op": "delete", "id": 3}, {"op": "delete", "x": ["told"], "y": "b"}]
    pipeline = pipeline_of(on_delete=on_delete)
    run(pipeline, labelled(50))
    before = model_contents(pipeline.models[0])
    results = pipeline.process(records_of([(b"key 0", each) for each in deletes], 50))
    letters = results_of(results.outputs)
    reasons = [each.reason for each in letters if isinstance(each, DeadLetter)]
    assert reasons == ([Reason.CANNOT_FORGET] * 2 if on_delete == "reject" else [])
    assert results.outcomes[0][1].deletes_ignored == (2 if on_delete == "ignore" else 0)
    assert model_contents(pipeline.models[0]) == before


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"x": ["told"], "y": "c"}, Reason.UNKNOWN_CLASS),
        ({"x": [1, 2], "y": "a"}, Reason.WRONG_FEATURE_SPACE),
        ({"x": {"told": 2.0}, "y": "a"}, Reason.NOT_BINARY),
        ({"x": {"price": 1e300}, "y": "a"}, Reason.BAD_VALUE),
        ({"x": {"town": 0.5}, "y": "a"}, Reason.NOT_A_CATEGORY),
    ],
)
def test_what_a_forest_does_not_take(event: Any, reason: Reason) -> None:
    """Such an event is refused, with a reason, and changes nothing."""
    pipeline = pipeline_of(attributes={"numeric": ["price"], "nominal": ["town"]}, evaluate={})
    run(pipeline, labelled(30))
    before = model_contents(pipeline.models[0])
    outputs = results_of(pipeline.process(records_of([(b"key 0", event)], 30)).outputs)
    assert [output.reason for output in outputs if isinstance(output, DeadLetter)] == [reason]
    assert len(outputs) == 1
    assert model_contents(pipeline.models[0]) == before
    pipeline.models[0].check()


def test_too_many_keys_are_refused() -> None:
    """What passes bounds.keys is refused, until a tombstone makes room."""
    pipeline = pipeline_of(bounds={"keys": 1})
    one, two = (b"one", {"x": [], "y": "a"}), (b"two", {"x": [], "y": "a"})
    letters = [each for each in run(pipeline, [one, two, (b"one", None), two]) if isinstance(each, DeadLetter)]
    assert [(each.reason, each.source.offset) for each in letters] == [(Reason.TOO_MANY_KEYS, 1)]


VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"emit": {"snapshots": {"every": 10}}, "warning": 0.9, "drift": 0.3},
    "exact": {"of": {"policy": "exact", "predict": "majority"}, "emit": {"snapshots": {"every_ms": 40_000}}},
    "imac": {"of": {"policy": "imac", "criterion": "entropy", "local_range": True}, "bagging": "1 of 4"},
    "osm": {"of": {"policy": "osm", "inherit": True, "max_depth": 2}, "bagging": "none", "on_delete": "ignore"},
    "one": {"trees": 1, "subspace": 1, "emit": {"snapshots": {"every": 20}}, "evaluate": {"emit": {"every": 20}}},
    "kinds": {
        "attributes": {"numeric": ["word 0"], "nominal": ["word 1"], "quantised": ["word 3"], "radius": 0.5},
        "evaluate": {"window": 9, "emit": {"every": 20}},
        "subspace": "sqrt of 4",
    },
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_results_do_not_depend_on_batches_or_restarts(variant: str) -> None:
    """Batches of any size, and states saved and taken up again in between, give the same bytes."""
    events = turning(240, keys=3)
    others: list[Any] = [
        None,
        {"op": "delete", "x": ["told"], "y": "b"},
        {"x": ["only here"], "y": "c"},
        {"op": "predict", "x": ["told", "word 2"]},
    ]
    for number, at in enumerate(range(20, 240, 9)):
        events.insert(at, (b"key %d" % (number % 3), others[number % 4]))
    outputs = results_of(same_however_run(partial(pipeline_of, **VARIANTS[variant]), events))
    assert {type(output) for output in outputs} >= {DeadLetter, Prediction}
    written = any(isinstance(output, Tree | Evaluation) for output in outputs)
    assert written == ("emit" in VARIANTS[variant] or "evaluate" in VARIANTS[variant])


def test_evaluations_stand_beside_baselines() -> None:
    """Every example is predicted before it is learned, and what always the same would have said is told beside."""
    outputs = run(pipeline_of(evaluate={"window": 50, "emit": {"every": 200}}), labelled(200))
    [evaluation] = [each for each in outputs if isinstance(each, Evaluation)]
    accuracy, majority = evaluation.recent.accuracy, evaluation.recent.majority
    assert accuracy is not None
    assert majority is not None
    assert accuracy > majority > 0


def test_status_and_what_is_told_of_a_key() -> None:
    """Keys, nodes of all trees, depth, and what detectors did of one key."""
    pipeline = pipeline_of(evaluate={}, warning=0.9, drift=0.3)
    run(pipeline, turning(400, keys=2))
    [model] = pipeline.models
    status = model.status()
    assert (status.keys, status.examples) == (2, 0)
    assert status.nodes > 8
    assert status.depth >= 1
    told = model.about(b"key 1")
    assert told["events"] + model.about(b"key 0")["events"] == 400
    assert told["warnings"] + told["drifts"] > 0
    other = model.about(b"key 0")
    assert (status.warnings, status.drifts) == tuple(told[what] + other[what] for what in ("warnings", "drifts"))
    assert status.plus(status).drifts == 2 * (told["drifts"] + other["drifts"])
    assert model.holdings() is None
