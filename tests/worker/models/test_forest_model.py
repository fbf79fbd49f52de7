"""Models of kind `forest`: what they write, what they refuse, that they forget, whatever the batches."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from algorithms.forests.pool import ForestPool
from tests.oracles.tree_streams import tree_columns
from tests.support.model_contents import model_contents
from tests.support.one_model import labelled, one_model, records_of, results_of, run, same_however_run
from tests.worker.commands.test_show import TREE
from worker.codec import DeadLetter, Evaluation, Prediction, Reason, Tree, all_joined, cut
from worker.models.forest import ForestModel
from worker.models.port import Result
from worker.pipeline import Pipeline, _fitting


def pipeline_of(bounds: dict[str, int] | None = None, **model: Any) -> Pipeline:
    """Return a pipeline with one forest of four trees."""
    base = {"kind": "forest", "input": "in", "classes": ["a", "b"], "features": "names", "trees": 4}
    return one_model(base | model, bounds)


def named(events: list[tuple[bytes, Any]]) -> list[tuple[bytes, Any]]:
    """Return events with their places as ids."""
    return [(key, event | {"id": at}) for at, (key, event) in enumerate(events)]


def forest_of(pipeline: Pipeline) -> ForestPool:
    """Return the pool of the model."""
    model = pipeline.models[0]
    assert isinstance(model, ForestModel)
    return model._pool


def test_trees_are_written_with_their_numbers() -> None:
    """A snapshot is a record for each tree, which says which it is, of how many, and how much its vote weighs."""
    pipeline = pipeline_of(emit={"snapshots": {"every": 100}}, window=60, seed=3, bagging="2 of 4")
    trees = [each for each in run(pipeline, labelled(200)) if isinstance(each, Tree)]
    assert [(tree.version, tree.tree, tree.trees, tree.weight) for tree in trees] == [
        (version, number, 4, 1.0) for version in (100, 200) for number in range(4)
    ]
    assert len({tree.source for tree in trees}) == 2
    told = trees[0].parameters
    assert list(told) == sorted(told)
    assert (told["kind"], told["bagging"], told["subspace"], told["seed"]) == ("forest", "2 of 4", 0.6, 3)
    weights = [sum(tree.counts[0]) for tree in trees[4:]]
    assert sum(weights) == 2 * 60, "each of the window's examples is in two trees"
    pool = forest_of(pipeline)
    assert [list(tree.node) for tree in trees[4:]] == [pool.tree(number).number.tolist() for number in range(4)]


def test_snapshots_are_due_by_event_time() -> None:
    """A forest is written when event time enters another period, wherever batches end."""
    events = [(b"k", {"x": ["w"], "y": "a", "ts": 1_000_000 + 40 * at}) for at in range(10)]
    outputs = same_however_run(partial(pipeline_of, emit={"snapshots": {"every_ms": 100}}), events)
    versions = [each.version for each in results_of(outputs) if isinstance(each, Tree) and each.tree == 0]
    assert versions == [4, 6, 9]


def test_predictions_are_votes() -> None:
    """Weights are votes in trees, which all trees together have; nothing is known of a key without examples."""
    question = {"op": "predict", "id": 7, "x": ["told"]}
    outputs = run(pipeline_of(subspace=1), [*labelled(200), (b"key 0", question), (b"nobody", question)])
    known, unknown = [each for each in outputs if isinstance(each, Prediction)]
    assert (known.id, known.label, known.known, known.leaf) == (7, "b", True, 0)
    assert sum(known.weights) == pytest.approx(4.0, abs=1e-5)
    assert (unknown.label, unknown.known, list(unknown.weights)) == (None, False, [0.0, 0.0])


@pytest.mark.parametrize("terms", [{"guarantee": "exact"}, {"epsilon": 0}], ids=str)
def test_what_is_deleted_is_forgotten(terms: dict[str, Any]) -> None:
    """Where trees are exact those after deletes are those of the examples that are left, however they went."""
    events = named(labelled(120))
    gone = [each for at, each in enumerate(events) if at % 3]
    pipeline, other = pipeline_of(**terms), pipeline_of(**terms)
    run(pipeline, [*events, *((key, {"op": "delete", "id": event["id"]}) for key, event in gone)])
    run(other, events[::3])
    ours, theirs = (
        [[row[1:] for row in tree_columns(tree)] for tree in forest_of(each).trees(0)]
        for each in (pipeline, other)
    )  # without the numbers of nodes, which were others on the way
    assert ours == theirs
    assert pipeline.models[0].status().examples == 40


def test_evaluations_stand_beside_baselines() -> None:
    """Every example is predicted before it is learned, and what always the same would have said is told beside."""
    outputs = run(pipeline_of(evaluate={"window": 50, "emit": {"every": 200}}), labelled(200))
    [evaluation] = [each for each in outputs if isinstance(each, Evaluation)]
    accuracy, majority = evaluation.recent.accuracy, evaluation.recent.majority
    assert accuracy is not None
    assert majority is not None
    assert accuracy > majority > 0


def test_a_delete_changes_no_evaluation() -> None:
    """What was predicted stays, to the bit, even where all examples go."""
    pipeline = pipeline_of(evaluate={"window": 30, "emit": "never"})
    events = named(labelled(100))

    def evaluation() -> dict[str, Any]:
        arrays = pipeline.arrays()["tree"]
        return {name: array.tolist() for name, array in arrays.items() if name.startswith("evaluation.")}

    run(pipeline, events)
    before = evaluation()
    run(pipeline, [(key, {"op": "delete", "id": event["id"]}) for key, event in events])
    assert pipeline.models[0].status().examples == 0
    assert evaluation() == before
    pipeline.models[0].check()


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"op": "delete", "id": "never there"}, Reason.ABSENT_ID),
        ({"op": "delete", "x": ["told"], "y": "a"}, Reason.ABSENT_EXAMPLE),
        ({"op": "delete", "x": ["told"], "y": "unheard of"}, Reason.UNKNOWN_CLASS),
        ({"id": 3, "x": ["told"], "y": "a"}, Reason.DUPLICATE_ID),
        ({"x": ["told"], "y": "c"}, Reason.UNKNOWN_CLASS),
        ({"x": [1, 2], "y": "a"}, Reason.WRONG_FEATURE_SPACE),
        ({"x": {"told": 2.0}, "y": "a"}, Reason.NOT_BINARY),
        ({"x": {"price": 1e300}, "y": "a"}, Reason.BAD_VALUE),
    ],
)
def test_what_a_forest_does_not_take(event: Any, reason: Reason) -> None:
    """Such an event is refused, with a reason, and changes nothing."""
    pipeline = pipeline_of(attributes={"numeric": ["price"]}, evaluate={})
    run(pipeline, named(labelled(30)))
    before = model_contents(pipeline.models[0])
    outputs = results_of(pipeline.process(records_of([(b"key 0", event)], 30)).outputs)
    assert [output.reason for output in outputs if isinstance(output, DeadLetter)] == [reason]
    assert len(outputs) == 1
    assert model_contents(pipeline.models[0]) == before
    pipeline.models[0].check()


@pytest.mark.parametrize(
    ("bounds", "reason"), [({"keys": 1}, Reason.TOO_MANY_KEYS), ({"live_ids": 1}, Reason.TOO_MANY_LIVE_IDS)]
)
def test_bounds(bounds: dict[str, int], reason: Reason) -> None:
    """What passes bounds.keys or bounds.live_ids is refused, until a tombstone makes room."""
    pipeline = pipeline_of(bounds=bounds)
    one, two = (b"one", {"x": [], "y": "a", "id": 1}), (b"two", {"x": [], "y": "a", "id": 2})
    letters = run(pipeline, [one, two, (b"one", None), two])
    assert [(each.reason, each.source.offset) for each in letters if isinstance(each, DeadLetter)] == [(reason, 1)]


VARIANTS: dict[str, dict[str, Any]] = {
    "eager": {"epsilon": 0, "max_depth": 3, "emit": {"snapshots": {"every": 10}}},
    "exact": {"guarantee": "exact", "bagging": "2 of 4", "window": 25, "emit": {"snapshots": {"every": 15}}},
    "in parts": {"max_work": 64, "epsilon": 0.05, "emit": {"snapshots": {"every": 5}}},
    "near": {"beta": 0.05, "bagging": "poisson:1", "emit": {"snapshots": {"every_ms": 40_000}}},
    "window": {
        "window": 15,
        "bagging": "poisson:1",
        "emit": {"snapshots": {"every": 7}},
        "on_duplicate": "ignore",
    },
    "replacing": {"on_duplicate": "replace", "evaluate": {"window": 9, "emit": {"every": 20}}},
    "bits": {"criterion": "entropy", "bagging": "1 of 4", "emit": {"snapshots": {"every_ms": 30_000}}},
    "numbers": {"attributes": {"numeric": ["word 0", "word 3"]}, "evaluate": {}, "subspace": "sqrt of 4"},
    "one": {"trees": 1, "bagging": "none", "subspace": 1, "emit": {"snapshots": {"every": 20}}},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_results_do_not_depend_on_batches_or_restarts(variant: str) -> None:
    """Batches of any size, and states saved and taken up again in between, give the same bytes."""
    draw = random.Random(5)
    events = named(labelled(150, keys=3))
    for at in range(20, 200, 9):
        key = b"key %d" % draw.randrange(3)
        other: list[Any] = [
            None,
            {"op": "delete", "id": draw.randrange(at)},
            {"op": "delete", "x": ["told"], "y": "b"},
            {"x": ["told", "word 1"], "y": "a", "id": draw.randrange(at)},
            {"x": ["only here"], "y": "c"},
            {"op": "predict", "x": ["told", "word 2"]},
        ]
        events.insert(at, (key, draw.choice(other)))
    outputs = results_of(same_however_run(partial(pipeline_of, **VARIANTS[variant]), events))
    assert {type(output) for output in outputs} >= {DeadLetter, Prediction}
    assert any(isinstance(output, Tree | Evaluation) for output in outputs) or variant == "numbers"


def test_trees_as_json_are_numbered_on() -> None:
    """As JSON a tree comes in more parts; the results of one event still have numbers of their own."""
    names = [f"{at:05}" + '"' * 120 for at in range(4_000)]
    every = list(range(len(names)))
    tree = TREE._replace(
        node=every,
        parent=[-1, *every[:-1]],
        branch=[0] * len(every),
        feature=every,
        kind=["binary"] * len(every),
        threshold=[None] * len(every),
        counts=[[1.0, 0.0]] * len(every),
        names=names,
    )
    trees = [tree._replace(tree=number, trees=3) for number in range(3)]
    parts = [part for each in trees for part in cut(each)]
    results = [Result(0, row, 5 + number, part) for row in range(2) for number, part in enumerate(parts)]
    cut_anew = list(_fitting(results))
    for row in range(2):
        ours = [each for each in cut_anew if each.row == row]
        assert [each.seq for each in ours] == list(range(5, 5 + len(ours)))
        assert len(ours) > len(parts) > 3
        found: list[Any] = [each.output for each in ours]
        assert all_joined(found) == trees


def test_status_tells_the_size() -> None:
    """Keys, live examples, each once, nodes, depth and quality; what the window drops leaves no trace."""
    pipeline = pipeline_of(evaluate={}, window=50, bagging="none")
    run(pipeline, labelled(200, keys=2))
    status = pipeline.models[0].status()
    assert (status.keys, status.examples) == (2, 100)
    assert status.nodes >= 8
    assert status.depth >= 1
    assert status.slots > 0
    assert status.quality is not None
    assert status.quality.examples == 200
