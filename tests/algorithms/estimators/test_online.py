"""Models for one stream: the same answers as their pools, any labels, copies that go on alike."""

from __future__ import annotations

import copy
import doctest
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms
from algorithms import (
    BestSplit,
    ForestClassifier,
    ForgettingForestClassifier,
    ForgettingTreeClassifier,
    ForgettingTreeRegressor,
    TreeClassifier,
    TreeRegressor,
)
from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.dynamic.numbers import DynamicNumberPool
from algorithms.dynamic.pool import DynamicPool
from algorithms.estimators import drawing, online
from algorithms.estimators.base import MOST_WAITING
from algorithms.estimators.encoding import Encoder
from algorithms.estimators.online import LEAF_PREDICTIONS
from algorithms.forests.growing import GrowingForestPool
from algorithms.forests.pool import ForestPool
from algorithms.regression.pool import RegressionPool
from algorithms.splits.pool import SplitPool
from algorithms.trees.policies import POLICIES
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from tests.algorithms.estimators.streams import tables, texts, trees_equal

Stream = list[tuple[Any, Any]]


def _named(x: Any, numeric: bool) -> Any:
    names, values = Encoder().entries(x, numeric)
    return dict(zip(names, values, strict=True))


def _learn(model: Any, stream: Stream) -> Any:
    for x, y in stream:
        model.learn_one(x, y)
    return model


# --- the pool is the oracle


@pytest.mark.parametrize("asked_every", [1, 7, 10_000])
@pytest.mark.parametrize("leaf_prediction", ["majority", "adaptive_present"])
@pytest.mark.parametrize("make", [texts, tables])
def test_tree_classifier_is_its_pool(make: Callable[..., Stream], leaf_prediction: str, asked_every: int) -> None:
    """However often it is asked, a model answers as a pool that takes the same events one by one."""
    numeric = make is tables
    model = TreeClassifier(grace_period=20, tie_threshold=0.3, leaf_prediction=leaf_prediction)
    pool = TreePool(
        grace_period=20,
        check_every=20,
        tie_threshold=0.3,
        predict=LEAF_PREDICTIONS[leaf_prediction],
        default=Kind.NUMERIC if numeric else Kind.BINARY,
        names=True,
    )
    numbers: dict[str, int] = {}
    for event, (x, y) in enumerate(make(300)):
        if event and event % asked_every == asked_every - 1:
            weights = pool.predict(_named(x, numeric))
            told = model.predict_proba_one(x)
            assert [told[label] for label in numbers] == pytest.approx(weights[: len(numbers)] / weights.sum())
            best = max(numbers, key=lambda label: weights[numbers[label]])
            assert model.predict_one(x) == best
        model.learn_one(x, y)
        pool.insert(_named(x, numeric), numbers.setdefault(y, len(numbers)))
    model.predict_one([] if not numeric else {})
    assert trees_equal(model._pool.tree(), pool.tree())
    assert model.n_leaves == pool.sizes().leaves > 1
    model._pool.check()


def test_best_split_is_its_pool() -> None:
    """The best split and the ranks are those of the pool, gains are what the scores say."""
    model, pool = BestSplit(criterion="gini"), SplitPool(criterion="gini", names=True)
    numbers: dict[str, int] = {}
    for x, y in texts(200):
        model.learn_one(x, y)
        pool.insert(list(_named(x, False)), numbers.setdefault(y, len(numbers)))
        best, own = model.best(), pool.best()
        assert own.feature == (None if best.feature is None else b"s" + best.feature.encode())  # type: ignore[union-attr]
        assert best.n == sum(own.totals) / (1 << 20)
        assert list(best.present.values()) == [units / (1 << 20) for units in own.present][: len(best.present)]
    whole = 2.0 * numbers_of(own.totals)
    assert best.gain == pytest.approx((whole - own.score) / best.n)
    assert [b"s" + str(row.feature).encode() for row in model.top(5)] == [row.feature for row in pool.top(0, 5)]
    assert model.top(2)[0].gain == best.gain > best.runner_up_gain == model.top(2)[1].gain
    weights = pool.predict([b"swin"])
    assert list(model.predict_proba_one(["win"]).values()) == (weights / weights.sum()).tolist()


def numbers_of(totals: tuple[int, int]) -> float:
    """Return u v / (u + v) in examples."""
    u, v = (units / (1 << 20) for units in totals)
    return u * v / (u + v)


@pytest.mark.parametrize("make", [texts, tables])
def test_forgetting_tree_is_its_pool(make: Callable[..., Stream]) -> None:
    """With a window, ids and three labels that are known from the start."""
    numeric = make is tables
    model = ForgettingTreeClassifier(window=40, epsilon=0.2)
    default = Kind.NUMERIC if numeric else Kind.BINARY
    pool = DynamicPool(window=40, epsilon=0.2, classes=3, names=True, default=default)
    stream = make(120, 3, seed=4)
    numbers: dict[str, int] = {}
    for event, (x, y) in enumerate(stream):
        number = numbers.setdefault(y, len(numbers))
        name = f"id {event}" if event % 2 else None
        model.learn_one(x, y, id=name)
        pool.insert(_named(x, numeric), number, id=name)
        if event % 10 == 5:
            model.unlearn_one(id=name)
            pool.delete(id=name)
        if event % 5 == 0:
            weights = pool.predict(_named(x, numeric))
            told = model.predict_proba_one(x)
            assert list(told.values()) == (weights / weights.sum())[: len(numbers)].tolist()
    assert trees_equal(model._tree(), pool.tree())
    model._pool.check()


@pytest.mark.parametrize("make", [texts, tables])
def test_forgetting_forest_is_its_pool(make: Callable[..., Stream]) -> None:
    """With a window, ids, and labels that come when the forest has learned others already."""
    numeric = make is tables
    told = {"trees": 3, "window": 40, "epsilon": 0.2, "bagging": "poisson:1", "subspace": 0.8, "seed": 5}
    model = ForgettingForestClassifier(**told)  # type: ignore[arg-type]
    pool = ForestPool(classes=3, names=True, default=Kind.NUMERIC if numeric else Kind.BINARY, **told)  # type: ignore[arg-type]
    numbers: dict[str, int] = {}
    for event, (x, y) in enumerate(make(120, 3, seed=4)):
        number = numbers.setdefault(y, len(numbers))
        name = f"id {event}" if event % 2 else None
        model.learn_one(x, y, id=name)
        pool.insert(_named(x, numeric), number, id=name)
        if event % 10 == 5:
            model.unlearn_one(id=name)
            pool.delete(id=name)
        if event % 5 == 0:
            weights = pool.predict(_named(x, numeric))
            shares = weights / weights.sum() if weights.any() else []
            assert list(model.predict_proba_one(x).values()) == pytest.approx(shares[: len(numbers)])
    assert all(trees_equal(model._pool.tree(number), pool.tree(number)) for number in range(3))
    assert model.n_leaves == pool.sizes().leaves > 3
    model._pool.check()
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_proba_one(x) == model.predict_proba_one(x)


@pytest.mark.parametrize("make", [texts, tables])
def test_forest_is_its_pool(make: Callable[..., Stream]) -> None:
    """With labels that come when the forest has learned others already."""
    numeric = make is tables
    told = {"trees": 3, "bagging": "poisson:1", "subspace": 0.8, "seed": 5}
    model = ForestClassifier(**told)  # type: ignore[arg-type]
    pool = GrowingForestPool(classes=3, names=True, default=Kind.NUMERIC if numeric else Kind.BINARY, **told)  # type: ignore[arg-type]
    numbers: dict[str, int] = {}
    for event, (x, y) in enumerate(make(300, 3, seed=4)):
        number = numbers.setdefault(y, len(numbers))
        model.learn_one(x, y)
        pool.insert(_named(x, numeric), number)
        if event % 5 == 0:
            weights = pool.predict(_named(x, numeric))
            shares = weights / weights.sum() if weights.any() else []
            assert list(model.predict_proba_one(x).values()) == pytest.approx(shares[: len(numbers)])
    assert model.n_leaves == pool.sizes().leaves > 3
    assert all(trees_equal(model._pool.tree(number), pool.tree(number)) for number in range(3))
    model._pool.check()
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_proba_one(x) == model.predict_proba_one(x)


@pytest.mark.parametrize("kind", [ForestClassifier, ForgettingForestClassifier])
def test_a_forest_tells_what_its_trees_look_at(kind: Any) -> None:
    """A line for each tree, or one tree; importances are means over the trees that have a split."""
    model = kind(trees=4, subspace=1.0)
    assert model.to_text() == f"{kind.__name__}(trees=4, subspace=1.0): has learned nothing"
    assert (model.feature_importances_, model.n_leaves) == ({}, 0)
    _learn(model, [({"heat": at % 9, "wet": at % 2 == 0}, "yes" if at % 9 > 4 else "no") for at in range(90)])
    lines = model.to_text().splitlines()
    assert [line.partition(":")[0] for line in lines[1:]] == [f"tree {number}" for number in range(4)]
    assert all(line.endswith("nodes, heat?") for line in lines[1:])
    assert "heat?" in model.to_text(3)
    assert model.feature_importances_["heat"] > 0.9
    assert sum(model.feature_importances_.values()) == pytest.approx(1.0)


def test_a_label_of_a_forest_is_forgotten_with_its_last_example() -> None:
    """Its number is given to a new label only when no example of it is live, wherever that was drawn."""
    model = ForgettingForestClassifier(trees=3, bagging="1 of 3", window=4)
    for at in range(40):
        model.learn_one([f"word {at % 3}"], f"label {at // 8}")
    assert len(model.classes_) == 2
    model._pool.check()


@pytest.mark.parametrize("way", ["mean", "linear", "adaptive"])
def test_regressor_is_its_pool(way: str) -> None:
    """Predictions are those of the pool, before and after."""
    model = TreeRegressor(grace_period=20, tie_threshold=0.3, leaf_prediction=way)
    pool = RegressionPool(grace_period=20, tie_threshold=0.3, default=Kind.NUMERIC, names=True, predict=way)
    assert model.predict_one({"heat": 3}) is None
    for x, _ in tables(200):
        y = 3.0 if x["heat"] > 1 else -1.0
        model.learn_one(x, y)
        pool.insert(_named(x, True), y)
        assert model.predict_one(x) == pool.predict(_named(x, True))
    assert trees_equal(model._tree(), pool.tree())
    assert list(model.feature_importances_) == ["heat"]
    assert "heat?" in model.to_text()


@pytest.mark.parametrize("make", [texts, tables])
def test_forgetting_regressor_is_its_pool(make: Callable[..., Stream]) -> None:
    """With a window, ids, deletes by value, and a range of labels without 0."""
    numeric = make is tables
    model = ForgettingTreeRegressor((10, 90), 0.5, window=40, epsilon=0.2)
    default = Kind.NUMERIC if numeric else Kind.BINARY
    pool = DynamicNumberPool(Scale(10, 90, 0.5), window=40, epsilon=0.2, names=True, default=default)
    assert model.predict_one({"heat": 3} if numeric else ["win"]) is None
    for event, (x, label) in enumerate(make(120, 3, seed=4)):
        y = 10.0 + 25.5 * int(label[-1]) + event % 3 / 2
        name = f"id {event}" if event % 2 else None
        model.learn_one(x, y, id=name)
        pool.insert(_named(x, numeric), y, id=name)
        if event % 10 == 5:
            model.unlearn_one(id=name)
            pool.delete(id=name)
        if event % 10 == 8:
            model.unlearn_one(x, y)
            pool.delete(_named(x, numeric), y)
        if event % 5 == 0:
            assert model.predict_one(x) == pool.predict(_named(x, numeric))
    assert trees_equal(model._tree(), pool.tree())
    assert len(model.feature_importances_)
    model._pool.check()


def test_weights() -> None:
    """Twice the weight is the example twice; 0 is nothing, and not even a label."""
    heavy, twice = BestSplit(), BestSplit()
    for x, y in texts(50):
        heavy.learn_one(x, y, w=2.0)
        twice.learn_one(x, y)
        twice.learn_one(x, y)
    heavy.learn_one(["other"], "other", w=0.0)
    assert heavy.best() == twice.best()
    assert heavy.classes_ == twice.classes_


# --- labels


_CRITERIA = {
    "periodic": "gini",
    "osm": "gini",
    "imac": "gini",
    "efdt": "entropy",
    "efdt-imac": "gini",
    "hat": "entropy",
    "hat-imac": "gini",
}


def test_all_policies_are_tried() -> None:
    """Each that serves more than two classes, with a criterion whose kernels are compiled anyhow."""
    assert list(_CRITERIA) == [name for name, policy in POLICIES.items() if not policy.only_binary]


@pytest.mark.parametrize(("policy", "criterion"), _CRITERIA.items())
@pytest.mark.parametrize("make", [texts, tables])
def test_classes_that_come_later(make: Callable[..., Stream], policy: str, criterion: str) -> None:
    """Where the bound does not matter, here for its threshold, a tree is that of a pool which knew the classes."""
    numeric = make is tables
    model = TreeClassifier(policy, criterion, grace_period=20, tie_threshold=5.0, leaf_prediction="adaptive")
    pool = TreePool(
        policy=policy,
        criterion=criterion,
        classes=5,
        grace_period=20,
        check_every=20,
        tie_threshold=5.0,
        predict=Predict.ADAPTIVE,
        default=Kind.NUMERIC if numeric else Kind.BINARY,
        names=True,
    )
    stream = [example for labels in (1, 2, 3, 5) for example in make(120, labels, seed=labels)]
    numbers: dict[str, int] = {}
    for event, (x, y) in enumerate(stream):
        number = numbers.setdefault(y, len(numbers))
        if event and event % 3 == 0:
            weights = pool.predict(_named(x, numeric))
            told = model.predict_proba_one(x)
            assert [told[label] for label in numbers if label in told] == pytest.approx(
                (weights / weights.sum())[: len(told)].tolist()
            )
        model.learn_one(x, y)
        pool.insert(_named(x, numeric), number)
    assert model.classes_ == list(numbers)
    assert trees_equal(model._tree(), pool.tree())
    assert model.n_leaves > 2
    model._pool.check()


def test_classes_that_come_to_a_tree_that_forgets() -> None:
    """Its tree is that of a pool which knew their number."""
    model, pool = ForgettingTreeClassifier(epsilon=0), DynamicPool(epsilon=0, classes=4, names=True)
    numbers: dict[str, int] = {}
    for x, y in [example for labels in (1, 2, 3, 4) for example in texts(20, labels, seed=labels)]:
        model.learn_one(x, y)
        pool.insert(_named(x, False), numbers.setdefault(y, len(numbers)))
        model.predict_one(x)
    assert trees_equal(model._tree(), pool.tree())
    model._pool.check()


def test_no_rebuild_is_left_for_later() -> None:
    """However large: the tree is what its parameters promise after each call."""
    model = ForgettingTreeClassifier(epsilon=0)
    many = [f"word {number}" for number in range(4500)]
    for number in range(8):
        model.learn_one([*many, f"mail {number}"], "ham", id=number)
    model.learn_one([*many, "prize"], "spam")
    assert model.predict_one([*many, "prize"]) == "spam"
    model.unlearn_one(id=3)
    assert model.predict_one([*many, "prize"]) == "spam"


@pytest.mark.parametrize("labels", [(True, False), (0, 1), ("a", "b"), (None.__class__, 2.5), (("a", 1), b"x")])
def test_any_hashable_label(labels: tuple[Any, Any]) -> None:
    """Labels come back as they were first given."""
    model = TreeClassifier()
    for label in labels:
        model.learn_one([str(label)], label)
    assert model.classes_ == list(labels)
    assert set(model.predict_proba_one([])) == set(labels)
    assert model.predict_one([]) is labels[0], "ties go to the earlier"


def test_labels_of_numpy_are_those_of_python() -> None:
    """np.True_ is True, and is shown as that."""
    model = TreeClassifier()
    model.learn_one(["a"], np.bool_(True))
    model.learn_one(["a"], True)
    model.learn_one(["b"], np.str_("x"))
    assert [type(label) for label in model.classes_] == [bool, str]


@pytest.mark.parametrize("label", [None, float("nan"), np.float64("nan"), [], {}, np.zeros(2)])
def test_what_is_no_label(label: Any) -> None:
    """A label that is missing, or no key of a dict, is refused; the model stays as it was."""
    model = _learn(TreeClassifier(), texts(10))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="label"):
        model.learn_one(["a"], label)
    assert pickle.dumps(model) == before


def test_a_third_label() -> None:
    """Two is what a best split is for, and what the exact policy serves; the model stays as it was."""
    for model in (BestSplit(), TreeClassifier(policy="exact")):
        _learn(model, texts(10))
        before = (model.classes_, model.to_text(), model.predict_proba_one(["win"]))
        with pytest.raises(ValueError, match="two"):
            model.learn_one(["a"], "other")
        assert (model.classes_, model.to_text(), model.predict_proba_one(["win"])) == before


def test_a_label_that_was_forgotten_makes_room() -> None:
    """Where no example of a label is left another one may take its place."""
    model = BestSplit()
    model.learn_one(["a"], 1)
    model.learn_one(["b"], 2)
    model.unlearn_one(["a"], 1)
    model.learn_one(["c"], 3)
    assert model.classes_ == [2, 3]
    assert model.best().present == {2: 0.0, 3: 1.0} or model.best().present == {2: 1.0, 3: 0.0}
    assert model.predict_one(["c"]) == 3
    assert model.predict_one(["b"]) == 2
    tree = ForgettingTreeClassifier(window=2)
    for number in range(20):
        tree.learn_one([f"w{number}"], number)
    assert tree._count == 3, "the window holds two labels while a third one comes"
    assert tree.predict_one(["w19"]) == 19


# --- forgetting


_MOVES = st.lists(st.tuples(st.integers(0, 11), st.booleans(), st.booleans()), max_size=40)


@given(
    st.sampled_from(
        [
            BestSplit(),
            BestSplit("gini", verify=True),
            ForgettingTreeClassifier(epsilon=0),
            ForgettingForestClassifier(trees=3, epsilon=0),
            ForgettingTreeRegressor(epsilon=0),
        ]
    ),
    _MOVES,
)
def test_what_was_unlearned_leaves_nothing(like: Any, moves: list[tuple[int, bool, bool]]) -> None:
    """After any history of comings and goings a model is one that never saw what went, to the bit."""
    model, fresh = like.clone(), like.clone()
    examples = texts(12)
    if isinstance(like, ForgettingTreeRegressor):
        examples = [(x, 0.1 + int(y[-1]) * len(x)) for x, y in examples]
    first = {y: x for x, y in examples[::-1]}
    for y, x in sorted(first.items()):  # so that labels have the same numbers
        for each in (model, fresh):
            each.learn_one(x, y)
    live: dict[int, str | None] = {}
    for at, asks, named in moves:  # an example comes, or goes where it is there
        if asks:
            model.predict_one(examples[at][0])
        if at not in live:
            live[at] = f"id {at}" if named else None
            model.learn_one(*examples[at], id=live[at])
        elif (name := live.pop(at)) is not None:
            model.unlearn_one(id=name)
        else:
            model.unlearn_one(*examples[at])
    for at in live:
        fresh.learn_one(*examples[at], id=live[at])  # a forest draws by the id
    for x, _ in examples:
        assert model.predict_one(x) == fresh.predict_one(x)
        if not isinstance(model, ForgettingTreeRegressor):
            assert model.predict_proba_one(x) == fresh.predict_proba_one(x)
    if isinstance(model, BestSplit):
        assert model.best() == fresh.best()
        assert model.top(100) == fresh.top(100)
    else:
        assert all(trees_equal(*pair) for pair in zip(_trees(model), _trees(fresh), strict=True))
        assert model.to_text() == fresh.to_text()
    model._pool.check()


def test_what_cannot_be_unlearned() -> None:
    """What is not there is a LookupError that shows it; nothing has changed."""
    for model in (BestSplit(), BestSplit(verify=True), ForgettingTreeClassifier(), ForgettingForestClassifier()):
        absent: list[Any] = [(["a"], "x"), (["a"], [])]
        for example in absent:
            with pytest.raises(LookupError, match="expected an example that was learned"):
                model.unlearn_one(*example)
        model.learn_one(["a"], "x")
        model.learn_one(["b"], "y", id=7)
        before = pickle.dumps(model)
        absent = [(["a"], "y"), (["z"], "x"), (["a"], "z"), (["a"], "x", 2.0)]
        for example in absent:
            with pytest.raises(LookupError, match="expected an example that was learned"):
                model.unlearn_one(*example)
        with pytest.raises(LookupError, match="with the id '7'"):
            model.unlearn_one(id="7")
        with pytest.raises(ValueError, match=r"unlearn_one\(id=...\)"):
            model.unlearn_one()
        with pytest.raises(ValueError, match="the label that the example was learned with"):
            model.unlearn_one(["a"])
        with pytest.raises(ValueError, match=r"unlearn_one\(id=...\)"):
            model.unlearn_one(["a"], "x", id=7)
        with pytest.raises(ValueError, match="no live example has"):
            model.learn_one(["c"], "x", id=7)
        if not (isinstance(model, BestSplit) and not model.verify):  # which has counts alone
            with pytest.raises(LookupError, match=r"if it had an id, say unlearn_one\(id=\.\.\.\)"):
                model.unlearn_one(["b"], "y")
        after = pickle.loads(before)
        assert after.predict_proba_one(["b"]) == model.predict_proba_one(["b"])
        model.unlearn_one(id=7)
        model.unlearn_one(["a"], "x")
        assert model.predict_one(["a"]) is None
        assert model.predict_proba_one(["a"]) == {}


def test_what_only_grows_says_who_forgets() -> None:
    """The message names the estimator that takes examples back."""
    for model in (TreeClassifier(), TreeRegressor(), ForestClassifier()):
        with pytest.raises(NotImplementedError, match=f"use Forgetting{type(model).__name__}, which does"):
            model.unlearn_one(["a"], 1)
        with pytest.raises(NotImplementedError, match=f"use Forgetting{type(model).__name__}, which does"):
            model.unlearn_one(id=1)


def test_numbers_that_cannot_be_unlearned() -> None:
    """What is not there is a LookupError, also where a label is in the same unit; nothing has changed."""
    model = ForgettingTreeRegressor((10, 20), 0.5)
    with pytest.raises(LookupError, match="expected an example that was learned"):
        model.unlearn_one(["a"], 11)
    model.learn_one(["a"], 11)
    model.learn_one(["b"], 15, id=7)
    for example in ((["a"], 12), (["z"], 11), (["a"], 11, 2), (["b"], 15)):
        with pytest.raises(LookupError, match="expected an example that was learned"):
            model.unlearn_one(*example)
    with pytest.raises(LookupError, match="with the id 8"):
        model.unlearn_one(id=8)
    with pytest.raises(ValueError, match="no live example has"):
        model.learn_one(["c"], 12, id=7)
    assert (model.predict_one(["a"]), model.predict_one(["b"])) == (11, 15)
    model.unlearn_one(["a"], 11.1)  # which is 11 in units of a half
    model.unlearn_one(id=7)
    assert model.predict_one(["a"]) is None


# --- copies


def _trees(model: Any) -> list[Any]:
    """Return the trees of a model."""
    model._settle()
    numbers = range(getattr(model, "trees", 0))
    return [model._pool.tree(number) for number in numbers] or [model._pool.tree()]


def _models() -> list[tuple[Any, Stream]]:
    numbers = [(x, x["heat"] ** 2) for x, _ in tables(120)]
    return [
        (TreeClassifier(grace_period=20, tie_threshold=0.3), texts(120, 3)),
        (TreeClassifier(grace_period=20, tie_threshold=0.3, leaf_prediction="adaptive"), tables(120, 3)),
        (TreeClassifier("exact", grace_period=20, tie_threshold=0.3), texts(120)),
        (ForgettingForestClassifier(trees=3, window=50), tables(120, 3)),
        (ForgettingTreeClassifier(window=50), tables(120, 3)),
        (ForgettingTreeClassifier(), texts(80, 3)),
        (BestSplit(window=30), texts(120)),
        (BestSplit(), texts(120)),
        (TreeRegressor(grace_period=20, tie_threshold=0.3), numbers),
        (ForgettingTreeRegressor((0, 30), 0.01, window=50), numbers),
    ]


def _pickled(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, _pickled])
@pytest.mark.parametrize("at", range(len(_models())))
@pytest.mark.parametrize("when", [0, 1, 50])
def test_copies_go_on_alike(at: int, how: Callable[[Any], Any], when: int) -> None:
    """A copy made in the middle of a stream goes on as the model does; neither changes the other."""
    model, stream = _models()[at]
    _learn(model, stream[:when])
    twin = how(model)
    assert repr(twin) == repr(model)
    untouched = pickle.dumps(twin)
    for x, y in stream[when:]:
        model.learn_one(x, y)
        model.predict_one(x)
    assert pickle.dumps(twin) == untouched, "the model changed its copy"
    _learn(twin, stream[when:])
    for x, _ in stream:
        assert twin.predict_one(x) == model.predict_one(x)
    if not isinstance(model, BestSplit):
        assert all(trees_equal(*pair) for pair in zip(_trees(twin), _trees(model), strict=True))
    if when:
        twin._pool.check()


def test_learning_waits_and_nothing_shows_it() -> None:
    """Many examples go to the pool at once; those that wait are copied, and are the same in the end."""
    waiting, asked = BestSplit(), BestSplit()
    stream = texts(MOST_WAITING + 10)
    for x, y in stream:
        waiting.learn_one(x, y)
        asked.learn_one(x, y)
        asked.predict_one(x)
    assert len(waiting._waiting.ends) == 10
    assert copy.copy(waiting).best() == asked.best() == waiting.best()
    assert waiting.top(100) == asked.top(100)


def test_heavy_examples_do_not_wait() -> None:
    """Where weights come near their bound the example that passes it is refused, and no other."""
    model = TreeClassifier(leaf_prediction="majority")
    model.learn_one(["a"], 0, w=2.0**41)
    model.learn_one(["a"], 1, w=2.0**40)
    with pytest.raises(ValueError, match=r"weights that sum to less than 2\^42"):
        model.learn_one(["b"], 1, w=2.0**41)
    assert model.predict_proba_one(["a"]) == {0: pytest.approx(2 / 3), 1: pytest.approx(1 / 3)}


def test_heavy_numbers_do_not_wait() -> None:
    """The bound of a tree of numbers follows from the units in the range, and the message says what helps."""
    for units, most in ((1, 2**31 - 1), (2**36, 2**26 - 1)):
        model = ForgettingTreeRegressor((0, units), 1)
        model.learn_one(["a"], units, w=most)
        with pytest.raises(ValueError, match="coarser label_unit or a window"):
            model.learn_one(["b"], 0)
        model.unlearn_one(["a"], units, w=most)
        model.learn_one(["b"], units)
        assert model.predict_one(["b"]) == units


# --- parameters


def test_parameters() -> None:
    """They can be read, set before the first example, and are cloned without what was learned."""
    model = TreeClassifier(grace_period=50)
    assert model.get_params()["grace_period"] == 50
    assert model.set_params(grace_period=60, criterion="gini") is model
    assert repr(model) == "TreeClassifier(criterion='gini', grace_period=60)"
    assert repr(TreeRegressor()) == "TreeRegressor()"
    with pytest.raises(ValueError, match="grace_period, a whole number from 1"):
        model.set_params(grace_period=0, criterion="entropy")
    assert repr(model) == "TreeClassifier(criterion='gini', grace_period=60)", "half of it was set"
    with pytest.raises(ValueError, match=r"expected parameters of policy, criterion.*got period"):
        model.set_params(period=3)
    model.learn_one(["a"], 1)
    with pytest.raises(ValueError, match=r"model\.clone\(\)"):
        model.set_params(grace_period=3)
    clone = model.clone()
    assert repr(clone) == repr(model)
    assert clone.predict_one(["a"]) is None
    assert model.clone({"grace_period": 7}).grace_period == 7
    assert model.clone(include_attributes=True).predict_one(["a"]) == 1


@pytest.mark.parametrize(
    ("kind", "parameters", "said"),
    [
        (TreeClassifier, {"policy": "best"}, "expected a policy of periodic, osm"),
        (TreeClassifier, {"criterion": "sqrt"}, "expected a criterion of entropy, gini"),
        (TreeClassifier, {"grace_period": 0}, "grace_period"),
        (TreeClassifier, {"grace_period": "many"}, "grace_period"),
        (TreeClassifier, {"split_confidence": 1.0}, "split_confidence between 0 and 1"),
        (TreeClassifier, {"split_confidence": float("nan")}, "split_confidence"),
        (TreeClassifier, {"tie_threshold": -1}, "tie_threshold of at least 0"),
        (TreeClassifier, {"leaf_prediction": "nba"}, "leaf_prediction of majority, naive_bayes"),
        (TreeClassifier, {"max_depth": -1}, "max_depth"),
        (TreeClassifier, {"criterion": "gini", "local_range": True}, "whose range is 1 whatever the classes"),
        (TreeClassifier, {"features": "both"}, "features of auto, binary, numeric"),
        (TreeRegressor, {"grace_period": 1.5}, "grace_period"),
        (TreeRegressor, {"leaf_prediction": "majority"}, "leaf_prediction of mean, linear, adaptive"),
        (ForgettingTreeRegressor, {"epsilon": -0.1}, "epsilon of at least 0"),
        (ForgettingTreeRegressor, {"window": 0}, "window"),
        (ForgettingTreeRegressor, {"label_range": 5}, "label_range of the least and the greatest label, got 5"),
        (ForgettingTreeRegressor, {"label_range": (5, 1)}, "range of 1 to 2\\^40 units"),
        (ForgettingTreeRegressor, {"label_range": ("a", 1)}, "a bound of labels, a finite number"),
        (ForgettingTreeRegressor, {"label_unit": 1e-9}, "range of 1 to 2\\^40 units"),
        (ForgettingTreeClassifier, {"epsilon": -0.1}, "epsilon of at least 0"),
        (ForgettingTreeClassifier, {"window": 0}, "window"),
        (ForgettingTreeClassifier, {"min_examples": 0}, "min_examples"),
        (ForestClassifier, {"policy": "hat"}, "a policy of periodic, osm, imac, exact"),
        (ForestClassifier, {"drift": 1}, "a drift between 0 and 1"),
        (ForestClassifier, {"warning": "often"}, "a warning, a finite number"),
        (ForestClassifier, {"trees": 0}, "trees, a whole number from 1"),
        (ForestClassifier, {"grace_period": 0}, "grace_period"),
        (ForgettingForestClassifier, {"trees": 0}, "trees, a whole number from 1"),
        (ForgettingForestClassifier, {"bagging": "2 of 3"}, "bagging of 10 trees"),
        (ForgettingForestClassifier, {"subspace": 0}, "subspace"),
        (ForgettingForestClassifier, {"seed": 0.5}, "a seed"),
        (ForgettingForestClassifier, {"window": 0}, "window"),
        (ForgettingTreeClassifier, {"criterion": "sqrt"}, "criterion of gini, entropy"),
        (BestSplit, {"criterion": "best"}, "criterion of entropy, gini, sqrt"),
        (BestSplit, {"window": -1}, "window"),
    ],
)
def test_parameters_that_are_wrong(kind: Any, parameters: dict[str, Any], said: str) -> None:
    """They are refused when the model is made, in the words that it was made with."""
    with pytest.raises(ValueError, match=said):
        kind(**parameters)


@pytest.mark.parametrize("rule", ["inherit", "local_range"])
def test_leaves_split_sooner_on_request(rule: str) -> None:
    """Leaves that inherit, or that count their own classes only, split after fewer examples."""
    leaves = []
    for told in (False, True):
        model = TreeClassifier(grace_period=20, tie_threshold=0.0, features="binary").set_params(**{rule: told})
        for t in range(300):
            a, b, wrong = t % 2, t // 2 % 2, t // 4 % 10 == 0
            model.learn_one({"a": bool(a), "b": bool(b)}, 2 * a + (b ^ wrong))
        leaves.append(model.n_leaves)
    assert leaves == [2, 4]


@pytest.mark.parametrize("w", [-1, float("nan"), float("inf"), 2.0**42, "1", None, True])
def test_weights_that_are_wrong(w: Any) -> None:
    """A weight is a number from 0 to less than 2^42."""
    for model in (
        TreeClassifier(),
        BestSplit(),
        ForgettingTreeClassifier(),
        ForestClassifier(),
        ForgettingForestClassifier(),
        TreeRegressor(),
        ForgettingTreeRegressor(),
    ):
        with pytest.raises(ValueError, match="weight"):
            model.learn_one(["a"], 1, w=w)


@pytest.mark.parametrize("y", ["a", None, float("nan"), 1e141, True, [1]])
def test_labels_that_are_no_numbers(y: Any) -> None:
    """A regression tree takes finite numbers."""
    for model in (TreeRegressor(), ForgettingTreeRegressor()):
        with pytest.raises(ValueError, match="expected a label, a finite number"):
            model.learn_one(["a"], y)


def test_what_a_tree_that_forgets_numbers_does_not_take() -> None:
    """Labels beyond the range, and weights that are not whole: the message says what to do."""
    model = ForgettingTreeRegressor()
    with pytest.raises(
        ValueError, match=r"from -1000000.0 to 1000000.0, got 10000000.0; .*a label_range that holds"
    ):
        model.learn_one(["a"], 1e7)
    with pytest.raises(ValueError, match=r"whole number, got 0\.5"):
        model.learn_one(["a"], 1, w=0.5)
    model.learn_one(["a"], 1, w=0)
    assert model.predict_one(["a"]) is None


def test_features_that_become_numbers_later() -> None:
    """The first example says what features are; a number later on is refused, and the message says what to do."""
    model = TreeClassifier()
    model.learn_one({"a": True}, 1)
    with pytest.raises(ValueError, match="features='numeric'"):
        model.learn_one({"a": 2.5}, 1)
    numeric = TreeClassifier(features="numeric")
    numeric.learn_one(["a"], 1)
    numeric.learn_one({"a": 2.5}, 1)
    assert numeric.predict_one({"a": 1}) == 1


# --- pictures


def test_numbers_as_labels_are_told_from_weights() -> None:
    """Beside a label that is a number stands what of the two is the weight."""
    model = ForgettingTreeClassifier()
    for label in (0, 1, 1, True, 2.5, "a"):
        model.learn_one([], label)
    assert model.to_text().splitlines()[-1] == "→ 1  0: 1  1: 3  2.5: 1  a 1"


def test_a_split_that_has_learned_nothing_says_so() -> None:
    """As a tree does."""
    assert BestSplit().to_text() == "BestSplit(): has learned nothing"


def test_pictures_are_of_the_tree() -> None:
    """Text and HTML show each node; what was told in features and labels cannot steer the page or the terminal."""
    model = ForgettingTreeClassifier()
    assert "has learned nothing" in model.to_text()
    assert "has learned nothing" in model._repr_html_()
    model.learn_one(["<b>&\n\x1b[31m"], "<script>")
    model.learn_one([], "b\n")
    text, html = model.to_text(), model._repr_html_()
    assert len(text.splitlines()) == 1 + 3
    assert "\x1b" not in text + html
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "present: → <script>" in text
    nodes = model._nodes()
    assert drawing.text("tree", nodes, most=1).splitlines()[2:] == ["... and 2 more nodes"]
    assert "... and 2 more nodes" in drawing.html("tree", nodes, most=1)


def test_importances() -> None:
    """Shares of what splits lower the impurity by: they sum to 1, and the feature that tells most has most."""
    model = ForgettingTreeClassifier()
    assert model.feature_importances_ == {}
    for x, y in texts(60):
        model.learn_one(x, y)
    shares = model.feature_importances_
    assert sum(shares.values()) == pytest.approx(1.0)
    assert next(iter(shares)) == max(shares, key=lambda feature: shares[feature])
    assert str(next(iter(shares))).startswith("topic")


# --- the package


def test_examples_in_docstrings() -> None:
    """They run, and say what they say."""
    for module in (online, algorithms):
        found = doctest.testmod(module)
        assert found.attempted > 0
        assert found.failed == 0


def test_importing_costs_nothing() -> None:
    """The package imports what is asked for, when it is; nothing but numpy and numba is needed."""
    code = (
        "import sys, algorithms\n"
        "assert not {'numba', 'numpy', 'river', 'sklearn', 'pandas', 'scipy'} & set(sys.modules)\n"
        "algorithms.TreeClassifier\n"
        "assert not {'river', 'sklearn', 'pandas', 'scipy', 'worker'} & set(sys.modules)\n"
        "assert set(algorithms.__all__) <= set(dir(algorithms))\n"
        "assert all(getattr(algorithms, name) for name in algorithms.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'Tree'"):
        algorithms.Tree  # noqa: B018
