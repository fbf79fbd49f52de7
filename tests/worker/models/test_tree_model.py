"""Models of kind `tree`: what they write, what they refuse, and that neither depends on batches or restarts."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pytest

from algorithms.core.criteria import UNIT
from algorithms.core.events import Op
from algorithms.trees.evaluation import Evaluated, Prequential
from algorithms.trees.predict import Predict
from algorithms.trees.state import LEARNED
from tests.oracles.naive_evaluation import Judged, NaiveBaselines, share_right
from tests.oracles.naive_trees import NaiveTrees
from tests.oracles.tree_parts import Event as NaiveEvent
from tests.oracles.tree_parts import Settings as NaiveSettings
from tests.support.model_contents import model_contents
from tests.support.one_model import labelled, one_model, records_of, results_of, run, same_however_run
from worker.codec import (
    DeadLetter,
    Drift,
    Evaluation,
    Prediction,
    Reason,
    Split,
    Tree,
    cut,
    joined,
)
from worker.codec.event import encode_batch
from worker.models.tree import TreeModel
from worker.pipeline import Pipeline
from worker.restore import _layout

EAGER = {"grace_period": 10, "check_every": 5, "split_confidence": 0.3, "tie_threshold": 0.2}


def pipeline_of(bounds: dict[str, int] | None = None, **model: Any) -> Pipeline:
    """Return a pipeline with one tree, eager to split."""
    base = {
        "kind": "tree",
        "input": "in",
        "classes": ["a", "b"],
        "features": "names",
        "policy": "periodic",
        **EAGER,
    }
    return one_model(base | model, bounds)


def test_a_tree_grows_and_answers() -> None:
    """Splits, snapshots and answers are written as they come about, with numbers of nodes that agree."""
    pipeline = pipeline_of(emit={"snapshots": "change"})
    outputs = run(pipeline, [*labelled(400), (b"key 0", {"op": "predict", "id": 7, "x": ["told"]})])
    splits = [output for output in outputs if isinstance(output, Split)]
    trees = [output for output in outputs if isinstance(output, Tree)]
    (answer,) = [output for output in outputs if isinstance(output, Prediction)]
    assert len(splits) == len(trees) >= 1
    first, tree = splits[0], trees[0]
    assert (first.node, first.feature, first.kind, first.threshold) == (0, "told", "binary", None)
    assert list(first.branches) == [0, 1]
    assert sum(map(sum, first.counts)) == first.n == first.source.offset + 1
    assert 0 < first.gain <= 1
    assert tree.source == first.source
    assert tree.version == first.source.offset + 1
    assert (tree.node, tree.parent, tree.branch) == ([0, 1, 2], [-1, 0, 0], [0, 0, 1])
    assert (tree.feature, tree.names, tree.kind) == ([0, None, None], ["told"], ["binary", None, None])
    assert tree.counts[1:] == first.counts
    last = trees[-1]
    assert (answer.id, answer.label, answer.known) == (7, "b", True)
    assert answer.leaf in last.node
    assert last.feature[last.node.index(answer.leaf)] is None


def test_an_empty_tree_answers_that_it_knows_nothing() -> None:
    """Before any example, and after a tombstone, the answer is that nothing is known."""
    ask = (b"key 0", {"op": "predict", "x": ["told"]})
    outputs = run(pipeline_of(emit={"splits": "never"}), [ask, *labelled(300), (b"key 0", None), ask])
    assert [
        (output.label, output.weights, output.known) for output in outputs if isinstance(output, Prediction)
    ] == [(None, [0.0, 0.0], False)] * 2


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"op": "delete", "id": 3}, Reason.CANNOT_FORGET),
        ({"op": "delete", "x": ["told"], "y": "a"}, Reason.CANNOT_FORGET),
        ({"op": "delete", "x": ["told"], "y": "unheard of"}, Reason.CANNOT_FORGET),
        ({"x": ["told"], "y": "c"}, Reason.UNKNOWN_CLASS),
        ({"x": [1, 2], "y": "a"}, Reason.WRONG_FEATURE_SPACE),
        ({"x": {"told": 2.0}, "y": "a"}, Reason.NOT_BINARY),
        ({"x": {"color": 1.5}, "y": "a"}, Reason.NOT_A_CATEGORY),
        ({"x": {"color": -1}, "y": "a"}, Reason.NOT_A_CATEGORY),
        ({"op": "predict", "x": {"color": 4294967296}}, Reason.NOT_A_CATEGORY),
        ({"x": {"price": 1e300}, "y": "a"}, Reason.BAD_VALUE),
    ],
)
def test_what_a_tree_does_not_take(event: Any, reason: Reason) -> None:
    """Such an event is refused, with a reason, and changes nothing."""
    pipeline = pipeline_of(attributes={"nominal": ["color"], "numeric": ["price"]}, evaluate={})
    run(pipeline, labelled(100))
    before = model_contents(pipeline.models[0])
    outputs = results_of(pipeline.process(records_of([(b"key 0", event), (b"another", event)], 100)).outputs)
    assert [output.reason for output in outputs if isinstance(output, DeadLetter)] == [reason] * 2
    assert len(outputs) == 2
    assert model_contents(pipeline.models[0]) == before
    pipeline.models[0].check()


def test_deletes_may_be_ignored() -> None:
    """Where others take the deletes of a topic, a tree may be told to look away; it counts them."""
    pipeline = pipeline_of(on_delete="ignore")
    run(pipeline, labelled(50))
    processed = pipeline.process(records_of([(b"key 0", {"op": "delete", "id": 3})] * 3, 50))
    assert processed.outputs == []
    assert processed.outcomes[0][1].deletes_ignored == 3


def test_too_many_keys() -> None:
    """Trees beyond bounds.keys are refused, until a tombstone makes room."""
    pipeline = pipeline_of(bounds={"keys": 1})
    one, two = (b"one", {"x": [], "y": "a"}), (b"two", {"x": [], "y": "a"})
    letters = run(pipeline, [one, two, (b"one", None), two])
    assert [(each.reason, each.source.offset) for each in letters if isinstance(each, DeadLetter)] == [
        (Reason.TOO_MANY_KEYS, 1)
    ]


def test_numbers_categories_and_classes() -> None:
    """Numeric and nominal splits tell thresholds and categories, whoever observed; labels may be many integers."""
    draw = random.Random(1)
    events = []
    for _ in range(400):
        label, height = draw.randrange(3), draw.gauss(0, 1)
        x = {"1": 4.0 * (label == 2) + draw.random(), "2": float(10 + label) if draw.random() < 0.9 else 0.0}
        events.append((b"k", {"x": {"i": [1, 2, 3], "v": [x["1"], x["2"], height]}, "y": label}))
    for numeric, nominal, quantised in (([1, 3], [2], []), ([1, 2, 3], [], []), ([], [], [1, 2, 3])):
        pipeline = pipeline_of(
            classes=[0, 1, 2],
            features="ids",
            attributes={"numeric": numeric, "nominal": nominal, "quantised": quantised},
            policy="periodic",
            emit={"snapshots": "change"},
        )
        outputs = run(pipeline, events)
        splits = [output for output in outputs if isinstance(output, Split)]
        trees = [output for output in outputs if isinstance(output, Tree)]
        if nominal:
            (split,) = [split for split in splits if split.kind == "nominal"][:1]
            assert set(split.branches) <= {0, 10, 11, 12}
            assert len(split.branches) == len(split.counts) >= 3
            assert split.threshold is None
        else:
            assert {split.kind for split in splits} == {"numeric"}
            assert all(isinstance(split.threshold, float) for split in splits)
        assert trees[-1].kind[0] == splits[0].kind
        assert len(trees[-1].classes) == 3


def test_evaluation_is_of_predictions_made_before_learning() -> None:
    """Records tell every so many examples, over all keys, what the oracle's own predictions were worth."""
    events = labelled(250, keys=3)
    pipeline = pipeline_of(
        policy="periodic",
        predict="adaptive",
        evaluate={"window": 60, "emit": {"every": 100}},
        emit={"splits": "never"},
    )
    processed = pipeline.process(records_of(events))
    twin = NaiveTrees(NaiveSettings(predict=Predict.ADAPTIVE, names=True, **EAGER))  # type: ignore[arg-type]
    expected = Prequential(2, 60)
    told = [output for output in results_of(processed.outputs) if isinstance(output, Evaluation)]
    assert [record.key for record in processed.outputs] == [None, None]
    for number, (key, event) in enumerate(events):
        label = "ab".index(event["y"])
        x = {word.encode(): 1.0 for word in event["x"]}
        outcome = twin.apply(NaiveEvent(Op.INSERT, x, label, UNIT, int(key[4:])))
        loss = np.array([float.fromhex(outcome.loss)])
        expected.add(np.array([label]), np.array([outcome.predicted]), np.array([UNIT]), loss)
        if number in (99, 199):
            found = told[number // 100]
            assert found.examples == number + 1
            assert found.source.offset == number
            assert found.total.accuracy == expected.total().measures().accuracy
            assert found.recent.accuracy == expected.recent().measures().accuracy
            assert found.recent.log_loss == expected.recent().measures().log_loss
    outcome_of_model = processed.outcomes[0][1]
    total = expected.total()
    assert outcome_of_model.evaluated == 250
    assert outcome_of_model.right == int(np.diagonal(total.confusion).sum()) // UNIT
    quality = pipeline.models[0].status().quality
    assert quality is not None
    assert isinstance(quality.total, Evaluated)
    assert quality.total.measures().accuracy == total.measures().accuracy


@pytest.mark.parametrize("batch", [1, 13, 240])
def test_baselines_are_those_of_each_key(batch: int) -> None:
    """What costs nothing is judged by the labels of the example's own key since its last tombstone alone."""
    events = labelled(240, keys=3)
    for at in (50, 100, 101, 180):
        events.insert(at, (b"key %d" % (at % 3), None))
    events.insert(120, (b"key 1", {"x": ["only here"], "y": "c"}))  # refused
    pipeline = pipeline_of(policy="periodic", evaluate={"window": 60, "emit": {"every": 40}})
    told, counts = [], [0, 0, 0, 0]
    for start in range(0, len(events), batch):
        processed = pipeline.process(records_of(events[start : start + batch], start))
        told += [output for output in results_of(processed.outputs) if isinstance(output, Evaluation)]
        for model in pipeline.models:
            model.check()
        (_, outcome) = processed.outcomes[0]
        more = (outcome.evaluated, outcome.right, outcome.majority, outcome.no_change)
        counts = [one + other for one, other in zip(counts, more, strict=True)]
    twin, judged = NaiveBaselines(), list[Judged]()
    for key, event in events:
        if event is None:
            twin.drop(int(key[4:]))
        elif event["y"] != "c":
            judged.append(twin.judge(int(key[4:]), "ab".index(event["y"]), None, UNIT))
            if len(judged) % 40 == 0:
                found = told[len(judged) // 40 - 1]
                for measures, part in ((found.total, judged), (found.recent, judged[-60:])):
                    assert measures.accuracy is not None
                    for share, kappa, who in (
                        (measures.majority, measures.kappa_m, "majority"),
                        (measures.no_change, measures.kappa_temporal, "last"),
                    ):
                        expected = share_right(part, who)
                        assert expected is not None
                        assert share == float(expected)
                        assert kappa == pytest.approx(1 - (1 - measures.accuracy) / (1 - float(expected)))
    assert len(told) == 6
    assert counts[0] == 240
    assert counts[2:] == [sum(getattr(each, who) == each.truth for each in judged) for who in ("majority", "last")]


VARIANTS: dict[str, dict[str, Any]] = {
    "exact": {"policy": "exact", "predict": "naive_bayes", "emit": {"snapshots": "change"}},
    "imac": {"policy": "imac", "criterion": "gini", "predict": "adaptive", "evaluate": {"emit": {"every": 13}}},
    "osm": {"policy": "osm", "criterion": "gini", "emit": {"snapshots": {"every": 17}}},
    "efdt": {"policy": "efdt", "evaluate": {"window": 9, "emit": {"every_ms": 20_000}}},
    "hat": {"policy": "hat", "predict": "adaptive", "emit": {"snapshots": "change"}},
    "mixed": {
        "policy": "periodic",
        "predict": "naive_bayes",
        "attributes": {"numeric": ["word 0", "word 3"], "nominal": ["word 1"]},
        "emit": {"snapshots": {"every_ms": 30_000}},
    },
    "slots": {
        "policy": "imac",
        "criterion": "gini",
        "predict": "adaptive",
        "attributes": {"quantised": ["word 0", "word 3"], "radius_fraction": 0.2},
        "drop_poor": True,
    },
    "small": {"policy": "periodic", "predict": "naive_bayes", "memory_limit": 1 << 20, "inherit": True},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_results_do_not_depend_on_batches_or_restarts(variant: str) -> None:
    """Batches of any size, and states saved and taken up again in between, give the same bytes."""
    events = labelled(300, keys=4)
    draw = random.Random(5)
    for at in range(20, 320, 15):
        key = b"key %d" % draw.randrange(4)
        others: list[Any] = [None, {"op": "delete", "id": 1}, {"x": ["only here"], "y": "c"}]
        asked = [{"op": "predict", "x": [f"word {number}", "told"]} for number in range(5)]
        events.insert(at, (key, draw.choice(others + asked)))
    outputs = same_however_run(partial(pipeline_of, **VARIANTS[variant]), events)
    assert {type(output) for output in results_of(outputs)} >= {DeadLetter, Prediction, Split}


def changing() -> list[tuple[bytes, Any]]:
    """Return examples of two keys whose label is told by a word, and after 600 of them by its absence."""
    draw = random.Random(7)
    events: list[tuple[bytes, Any]] = []
    for at in range(1_000):
        label = draw.randrange(2)
        told = ["told"] if label == (at < 600) else []
        events.append((b"key %d" % draw.randrange(2), {"x": told, "y": "ab"[label]}))
    return events


def test_a_rise_of_the_error_is_told() -> None:
    """Records say from what to what it rose, soon after the stream changed, whatever batches and restarts."""
    make = partial(pipeline_of, policy="exact", evaluate={"window": 60, "emit": "never"}, emit={"splits": "never"})
    events = changing()
    outputs = same_however_run(make, events)
    told = results_of(outputs)
    assert {type(each) for each in told} == {Drift}
    first = told[0]
    assert isinstance(first, Drift)
    assert 600 < first.examples == first.source.offset + 1 < 700
    assert first.before < 0.1 < 0.5 < first.after
    assert 0 < first.width < first.examples
    assert outputs[0].key is None
    assert outputs[0].headers == (
        ("type", b"drift"),
        ("out_id", f"tree:0:{first.source.offset}:0:1000000".encode()),
    )
    pipeline = make()
    processed = pipeline.process(records_of(events))
    assert processed.outcomes[0][1].drifts == len(told)
    quality = pipeline.models[0].status().quality
    assert quality is not None
    last = told[-1]
    assert isinstance(last, Drift)
    assert (quality.drifts, quality.since) == (len(told), 1_000 - last.examples)


@pytest.mark.parametrize(
    ("drift", "expected"), [({"delta": 1e-300}, 0), (None, None)], ids=["rarely", "turned off"]
)
def test_nobody_is_told_of_what_is_not_watched(drift: dict[str, float] | None, expected: int | None) -> None:
    """A delta that finds nothing counts none; turned off there is no record, no count and no state."""
    pipeline = pipeline_of(policy="exact", evaluate={"emit": "never", "drift": drift}, emit={"splits": "never"})
    processed = pipeline.process(records_of(changing()))
    assert processed.outputs == []
    assert processed.outcomes[0][1].drifts == expected
    names = {name for name in pipeline.arrays()["tree"] if name.startswith("evaluation.drift")}
    assert bool(names) == (expected is not None)


@pytest.mark.parametrize("policy", ["exact", "efdt", "imac"])
def test_states_of_earlier_versions_are_taken_up(policy: str) -> None:
    """Without what trees have learned, with sums of one word, the layout is today's; the same bytes follow."""
    events = labelled(400, keys=3)
    criterion = "gini" if policy == "imac" else "entropy"  # of which kernels are kept
    make = partial(pipeline_of, policy=policy, criterion=criterion, evaluate={"window": 30, "emit": {"every": 7}})
    pipeline, again = make(), make()
    pipeline.process(records_of(events[:250]))
    saved = {name: array.copy() for name, array in pipeline.arrays()["tree"].items()}
    saved["trees"][:, LEARNED] = saved["trees"][:, LEARNED] > 0
    for name in ("confusion", "windowed", "loss"):
        whole = saved[f"evaluation.{name}"]
        saved[f"evaluation.{name}"] = whole[: len(whole) // 2].copy()
    earlier = {"tree": saved}
    assert _layout(earlier) == _layout(again.arrays())
    again.restore(earlier)
    for name, array in pipeline.arrays()["tree"].items():
        assert np.array_equal(again.arrays()["tree"][name], array), name
    expected = pipeline.process(records_of(events[250:], 250)).outputs
    assert again.process(records_of(events[250:], 250)).outputs == expected


def test_an_evaluation_refuses_no_event_for_its_weight() -> None:
    """Three keys nearly as heavy as keys can be: what is judged passes 2^63 units, and stays a share of it all."""
    pipeline = pipeline_of(policy="exact", evaluate={"window": 5_000, "emit": {"every": 5_000}})
    for key in range(3):
        rows = [["told"] if at % 2 else [] for at in range(2_040)]
        value = encode_batch(rows, ["ab"[at % 2] for at in range(2_040)], ws=[2.0**31] * 2_040)
        records = records_of([(b"key %d" % key, {})], key)._replace(values=[value])
        outputs = results_of(pipeline.process(records).outputs)
    told = next(output for output in outputs if isinstance(output, Evaluation))
    assert (told.examples, told.total.weight, told.recent.weight) == (5_000, 5_000 * 2.0**31, 5_000 * 2.0**31)
    assert told.total == told.recent
    assert told.total.accuracy is not None
    assert 0.9 < told.total.accuracy < 1.0
    quality = pipeline.models[0].status().quality
    assert quality is not None
    assert quality.plus(quality).total.measures().weight == 2 * 6_120 * 2.0**31


def test_a_large_tree_is_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot that is too large for a record comes in several, numbered, with ids of their own."""
    monkeypatch.setattr("worker.models.tree_results.cut", partial(cut, most=150))
    pipeline = pipeline_of(policy="exact", emit={"snapshots": "change", "splits": "never"})
    outputs = pipeline.process(records_of(labelled(300))).outputs
    trees = [output for output in results_of(outputs) if isinstance(output, Tree)]
    assert {tree.chunks for tree in trees} > {2}
    ids = [dict(record.headers)["out_id"] for record in outputs]
    assert len(set(ids)) == len(ids)
    last = [tree for tree in trees if tree.source == trees[-1].source]
    whole = joined(last)
    assert (whole.node[0], whole.parent[0], whole.chunks) == (0, -1, 1)
    assert len(whole.node) == sum(len(part.node) for part in last)


def test_status_tells_the_size() -> None:
    """Keys, nodes, depth and what leaves count, summed where several partitions have the model."""
    pipeline = pipeline_of(evaluate={})
    run(pipeline, labelled(300, keys=2))
    model = pipeline.models[0]
    assert isinstance(model, TreeModel)
    status = model.status()
    assert (status.keys, status.examples) == (2, 0)
    assert status.nodes >= 4
    assert status.depth >= 1
    assert status.slots > 0
    both = status.plus(status)
    assert (both.nodes, both.depth) == (2 * status.nodes, status.depth)
    assert both.quality is not None
    assert both.quality.examples == 600
