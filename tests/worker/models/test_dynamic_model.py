"""Models of kind `dynamic-tree`: what they write, what they refuse, that they forget, whatever the batches."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from algorithms.dynamic.aside import IDLE, PARTING, SCANNING, STAGE, WIPING
from algorithms.dynamic.pool import DynamicPool
from tests.oracles.tree_streams import tree_columns
from tests.support.model_contents import model_contents
from tests.support.one_model import labelled, one_model, records_of, results_of, run, same_however_run
from worker.codec import DeadLetter, Evaluation, Prediction, Reason, Tree
from worker.models.dynamic import DynamicTreeModel
from worker.pipeline import Pipeline


def pipeline_of(bounds: dict[str, int] | None = None, **model: Any) -> Pipeline:
    """Return a pipeline with one tree that forgets."""
    base = {"kind": "dynamic-tree", "input": "in", "classes": ["a", "b"], "features": "names"}
    return one_model(base | model, bounds)


def named(events: list[tuple[bytes, Any]]) -> list[tuple[bytes, Any]]:
    """Return events with their places as ids."""
    return [(key, event | {"id": at}) for at, (key, event) in enumerate(events)]


def test_a_tree_grows_and_answers() -> None:
    """Snapshots and answers are written as they come about, with numbers of nodes that agree."""
    pipeline = pipeline_of(emit={"snapshots": "change"}, max_depth=2)
    outputs = run(pipeline, [*labelled(200), (b"key 0", {"op": "predict", "id": 7, "x": ["told"]})])
    trees = [output for output in outputs if isinstance(output, Tree)]
    (answer,) = [output for output in outputs if isinstance(output, Prediction)]
    last = trees[-1]
    assert last.names is not None
    root = last.feature[0]
    assert root is not None
    assert last.names[root] == "told"
    assert last.parameters["epsilon"] == 0.1
    assert 1 < len(last.node) <= 7
    assert (answer.id, answer.label, answer.known) == (7, "b", True)
    assert answer.leaf in last.node
    assert last.feature[last.node.index(answer.leaf)] is None


def test_what_is_deleted_is_forgotten() -> None:
    """With epsilon 0 the tree after deletes is that of the examples that are left, however they went."""
    events = named(labelled(120))
    kept = events[::3]
    gone = [each for at, each in enumerate(events) if at % 3]
    pipeline = pipeline_of(epsilon=0, emit={"snapshots": {"every": 1}})
    outputs = run(pipeline, [*events, *((key, {"op": "delete", "id": event["id"]}) for key, event in gone)])
    pool = DynamicPool(epsilon=0, max_depth=10, names=True)
    for _, event in kept:
        pool.insert([word.encode() for word in event["x"]], "ab".index(event["y"]))
    model = pipeline.models[0]
    assert isinstance(model, DynamicTreeModel)
    left = model._pool.tree(0)
    ours = [row[1:] for row in tree_columns(left)]  # without the numbers of nodes, which were others on the way
    assert [row[1:] for row in tree_columns(pool.tree(0))] == ours
    assert sum(map(sum, [output for output in outputs if isinstance(output, Tree)][-1].counts[:1])) == len(kept)


def test_a_delete_changes_no_evaluation() -> None:
    """Sums, window, baselines and the watch over the error stay to the bit, even where all examples go."""
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


def test_an_exact_tree_says_so() -> None:
    """Snapshots tell the guarantee, and no epsilon; a tree is the one that a batch learner builds."""
    events = named(labelled(90))
    pipeline = pipeline_of(guarantee="exact", emit={"snapshots": {"every": 30}})
    last = [output for output in run(pipeline, events) if isinstance(output, Tree)][-1]
    assert last.parameters["guarantee"] == "exact"
    assert "epsilon" not in last.parameters
    pool = DynamicPool(epsilon=0, max_depth=10, names=True)
    for _, event in events:
        pool.insert([word.encode() for word in event["x"]], "ab".index(event["y"]))
    model = pipeline.models[0]
    assert isinstance(model, DynamicTreeModel)
    assert [row[1:] for row in tree_columns(pool.tree(0))] == [
        row[1:] for row in tree_columns(model._pool.tree(0))
    ]
    within = pipeline_of(beta=0.02, emit={"snapshots": {"every": 30}})
    told = next(output for output in run(within, events) if isinstance(output, Tree)).parameters
    assert told["beta"] == 0.02
    assert not {"epsilon", "guarantee"} & set(told)


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
def test_what_a_tree_does_not_take(event: Any, reason: Reason) -> None:
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
    "window": {"window": 15, "epsilon": 0.3, "emit": {"snapshots": "change"}, "on_duplicate": "ignore"},
    "replacing": {"on_duplicate": "replace", "evaluate": {"window": 9, "emit": {"every": 20}}},
    "bits": {"criterion": "entropy", "min_examples": 4, "emit": {"snapshots": {"every_ms": 30_000}}},
    "numbers": {"attributes": {"numeric": ["word 0", "word 3"]}, "evaluate": {}},
    "exact": {
        "guarantee": "exact",
        "window": 40,
        "attributes": {"numeric": ["word 0"]},
        "evaluate": {"window": 9, "emit": {"every": 20}},
    },
    "exact at a look": {"guarantee": "exact", "criterion": "entropy", "emit": {"snapshots": "change"}},
    "within beta": {"beta": 0.02, "on_duplicate": "replace", "emit": {"snapshots": {"every": 10}}},
    "bounded": {"max_work": 64, "epsilon": 0.05, "emit": {"snapshots": "change"}},
    "bounded numbers": {
        "max_work": 64,
        "epsilon": 0.05,
        "attributes": {"numeric": ["word 0", "word 3"]},
        "evaluate": {"window": 9, "emit": {"every": 20}},
    },
    "promised": {"alpha": 0.9, "beta": 0.9, "epsilon": 0.05, "emit": {"snapshots": "change"}},
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


def test_a_rebuild_in_parts_does_not_depend_on_batches_or_restarts() -> None:
    """While subtrees are built aside, too, batches of any size and restarts give the same bytes."""
    draw = random.Random(8)
    events: list[tuple[bytes, Any]] = []
    for at, (key, event) in enumerate(labelled(180, keys=2)):
        words = [f"rare {number}" for number in range(400) if draw.random() < 0.1]
        events.append((key, event | {"x": [*event["x"], *words], "id": at}))
        if draw.random() < 0.3:
            events.append((b"key %d" % draw.randrange(2), {"op": "delete", "id": draw.randrange(at + 1)}))
        if draw.random() < 0.3:
            events.append((key, {"op": "predict", "x": ["told", *words[:3]]}))
    events[250:250] = [(b"key 1", None)]
    make = partial(pipeline_of, epsilon=0.1, max_work=1024, max_depth=5, window=60, emit={"snapshots": "change"})
    pipeline, stages = make(), set()
    for at, event in enumerate(events):
        pipeline.process(records_of([event], at))
        stages |= set(pipeline.models[0].arrays()["aside.heads"][:, STAGE].tolist())
    assert stages >= {IDLE, SCANNING, WIPING, PARTING}, "rebuilds are under way between events"
    assert any(isinstance(output, Tree) for output in results_of(same_however_run(make, events)))


def test_status_tells_the_size() -> None:
    """Keys, live examples, nodes, depth and quality; what the window drops leaves no trace."""
    pipeline = pipeline_of(evaluate={}, window=50)
    run(pipeline, labelled(200, keys=2))
    model = pipeline.models[0]
    assert isinstance(model, DynamicTreeModel)
    status = model.status()
    assert (status.keys, status.examples) == (2, 100)
    assert status.nodes >= 4
    assert status.depth >= 1
    assert status.slots > 0
    assert status.quality is not None
    assert status.quality.examples == 200
