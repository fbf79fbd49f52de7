"""scikit-learn's words: its own checks, and the same answers as pools that take the rows one by one."""

from __future__ import annotations

import doctest
import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from algorithms.core.fixed_point import UNIT
from algorithms.core.kinds import Kind
from algorithms.core.scale import Scale
from algorithms.dynamic.builder import build_tree
from algorithms.dynamic.numbers import DynamicNumberPool
from algorithms.dynamic.pool import DynamicPool
from algorithms.dynamic.samples import Sample
from algorithms.forests.growing import GrowingForestPool
from algorithms.forests.pool import ForestPool
from algorithms.regression.builder import NumberSample, build_regression_tree
from algorithms.regression.pool import RegressionPool
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from tests.algorithms.estimators.peers import needed
from tests.algorithms.estimators.streams import trees_equal

sklearn = needed("sklearn")
sparse = needed("scipy.sparse")
ours = import_module("algorithms.estimators.sklearn")
tables = import_module("algorithms.estimators.tables")
batch = import_module("algorithms.estimators.batch")
checks = import_module("sklearn.utils.estimator_checks")

_ORDER = (
    "a tree that grows with a stream counts examples: one of weight 2 comes once, so leaves split at other times "
    "than after two examples, and naive Bayes smooths by an example of mean weight"
)
_DRAWN = "each example is drawn for itself: one of weight 2 weighs in other trees than two examples do"
_GRACE = "200 examples, and no leaf splits before the grace period of 200 is over: the mean is predicted"
EXPECTED = {
    "TreeClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _ORDER,
        "check_sample_weight_equivalence_on_sparse_data": _ORDER,
    },
    "ForgettingTreeClassifier": {},
    "BatchTreeClassifier": {},
    "BatchTreeRegressor": {},
    "ForgettingForestClassifier(trees=5)": {
        "check_sample_weight_equivalence_on_dense_data": _DRAWN,
        "check_sample_weight_equivalence_on_sparse_data": _DRAWN,
    },
    "ForestClassifier(trees=3)": {
        "check_sample_weight_equivalence_on_dense_data": _DRAWN,
        "check_sample_weight_equivalence_on_sparse_data": _DRAWN,
    },
    "TreeRegressor": {"check_regressors_train": _GRACE},
    "ForgettingTreeRegressor": {},
    "TreeRegressor(grace_period=10, tie_threshold=1.0)": {
        "check_sample_weight_equivalence_on_dense_data": _ORDER,
        "check_sample_weight_equivalence_on_sparse_data": _ORDER,
    },
}


REGRESSORS = (ours.TreeRegressor, ours.ForgettingTreeRegressor)


def _made(name: str) -> Any:
    kind, _, parameters = name.partition("(")
    return eval(f"ours.{kind}({parameters or ')'}")


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks(name: str) -> None:
    """All pass but those that are listed with their reasons, and these fail."""
    results = checks.check_estimator(
        _made(name), expected_failed_checks=EXPECTED[name], on_fail=None, on_skip=None
    )
    by_status: dict[str, set[str]] = {}
    for result in results:
        by_status.setdefault(result["status"], set()).add(result["check_name"])
    assert by_status.get("failed", set()) == set()
    assert by_status.get("xfail", set()) == set(EXPECTED[name])
    assert by_status.get("skipped", set()) <= {"check_array_api_input"}
    assert len(by_status["passed"]) > 45


def test_cross_validation() -> None:
    """`cross_val_score` runs, on tables and on sparse matrices."""
    table = np.random.default_rng(0).normal(size=(300, 3))
    label = np.where(table[:, 1] > 0, "up", "down")
    selection = import_module("sklearn.model_selection")
    for model in (ours.TreeClassifier(grace_period=20), ours.ForgettingTreeClassifier()):
        assert selection.cross_val_score(model, table, label, cv=3).min() > 0.8
        assert selection.cross_val_score(model, sparse.csr_array(table > 0), label, cv=3).min() > 0.9
    search = selection.GridSearchCV(ours.TreeRegressor(tie_threshold=1.0), {"grace_period": [10, 1000]}, cv=3)
    assert search.fit(table, table[:, 1] > 0).best_params_ == {"grace_period": 10}


@pytest.mark.parametrize("options", [{"max_depth": 1}, {"max_leaves": 4}, {"criterion": "entropy"}])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_a_batch_tree_is_the_builders(form: Any, options: dict[str, Any]) -> None:
    """In any form of the rows it is what `build_tree` makes of them, and says what its leaves hold."""
    table, label = _rows()
    table = table + 0.0  # no negative zeros
    weight = np.arange(len(label)) % 4 / 2
    model = ours.BatchTreeClassifier(features="numeric", **options).fit(form(table), label, weight)
    kept = weight > 0
    pointer, feature, value = tables.entries_of(table[kept])
    units = np.rint(weight[kept] * UNIT).astype(np.int64)
    sample = Sample(pointer, feature, value, label[kept], units)
    tree = build_tree(sample, classes=3, default=Kind.NUMERIC, **options)
    assert trees_equal(model.tree_, tree)
    proba = model.predict_proba(form(table))
    leaves = [_leaf_of(tree, row) for row in table.tolist()]
    assert proba == pytest.approx(tree.weight[leaves] / tree.weight[leaves].sum(axis=1, keepdims=True))
    assert (model.predict(table) == model.classes_[proba.argmax(axis=1)]).all()
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert pickle.loads(pickle.dumps(model)).predict_proba(table).tolist() == proba.tolist()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_a_batch_tree_of_numbers_is_the_builders(form: Any) -> None:
    """In any form of the rows it is what `build_regression_tree` makes of them, and tells the means of leaves."""
    table, label = _rows()
    table, label = table + 0.0, label * 1.5 - table[:, 1]
    weight = np.arange(len(label)) % 3 / 2
    model = ours.BatchTreeRegressor(features="numeric", max_depth=4).fit(form(table), label, weight)
    kept = weight > 0
    units = np.rint(weight[kept] * UNIT).astype(np.int64)
    pointer, feature, value = tables.entries_of(table[kept])
    sample = NumberSample(pointer, feature, value, label[kept], units)
    tree = build_regression_tree(sample, default=Kind.NUMERIC, max_depth=4)
    leaves = [_leaf_of(tree, row) for row in table.tolist()]
    assert model.predict(form(table)).tolist() == tree.mean[leaves].tolist()
    assert model.tree_.threshold.tolist() == tree.threshold.tolist()
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert "of mean" in model.to_text()


def _leaf_of(tree: Any, row: list[float]) -> int:
    at = 0
    while tree.feature[at] is not None:
        branch = int(row[tree.feature[at]] > tree.threshold[at])
        [at] = [child for child in np.flatnonzero(tree.parent == at).tolist() if tree.branch[child] == branch]
    return at


def test_a_batch_tree_of_binary_columns_asks_for_presence() -> None:
    """Sparse ones are binary: then other values are refused, in words that say what to do."""
    rows = sparse.csr_array([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]])
    model = ours.BatchTreeClassifier().fit(rows, ["a", "b", "a", "b"])
    assert model.tree_.kind[0] == Kind.BINARY
    assert model.predict(rows).tolist() == ["a", "b", "a", "b"]
    with pytest.raises(ValueError, match=r"got 2; make the model with features='numeric'"):
        model.predict(rows * 2)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"criterion": "log_loss"}, "criterion of gini, entropy, got 'log_loss'"),
        ({"max_depth": -1}, "max_depth"),
        ({"max_leaves": 0}, "max_leaves"),
        ({"min_examples": 0.5}, "min_examples"),
        ({"max_features": "sqrt"}, "max_features, a whole number from 1"),
    ],
)
def test_wrong_parameters_of_a_batch_tree_are_refused(options: dict[str, Any], problem: str) -> None:
    """Before anything is built."""
    with pytest.raises(ValueError, match=problem):
        ours.BatchTreeClassifier(**options).fit([[0], [1]], [0, 1])


def _rows(n: int = 200) -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    table = random.integers(0, 3, size=(n, 4)) * random.normal(size=(n, 4)).round(1)
    return table, random.integers(0, 3, n) * (table[:, 0] > 0)


def _insert_all(pool: Any, table: Any, label: Any, weight: Any) -> None:
    for row, y, w in zip(table, label, weight, strict=True):
        pool.insert({column: value for column, value in enumerate(row.tolist()) if value}, y, weight=w)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_batches_are_the_events_of_their_pools(form: Any) -> None:
    """A batch in any form leads to the tree that a pool has after its rows one by one."""
    table, label = _rows()
    weight: Any = np.arange(len(label)) % 3 / 2
    whole: list[tuple[Any, Any]] = [
        (
            ours.TreeClassifier(grace_period=20, tie_threshold=1.0),
            TreePool(
                classes=3,
                grace_period=20,
                tie_threshold=1.0,
                default=Kind.NUMERIC,
                predict=Predict.ADAPTIVE_PRESENT,
            ),
        ),
        (ours.ForgettingTreeClassifier(), DynamicPool(classes=3, default=Kind.NUMERIC)),
        (
            ours.TreeRegressor(grace_period=20, tie_threshold=1.0),
            RegressionPool(grace_period=20, tie_threshold=1.0, default=Kind.NUMERIC),
        ),
        (
            ours.ForgettingTreeRegressor((-9, 9), 0.5),
            DynamicNumberPool(Scale(-9, 9, 0.5), epsilon=0.1, default=Kind.NUMERIC),
        ),
    ]
    for model, pool in whole:
        if isinstance(pool, DynamicNumberPool):
            weight = np.arange(len(label)) % 3
        half = len(label) // 2
        classes = {} if isinstance(model, REGRESSORS) else {"classes": [0, 1, 2]}
        model.partial_fit(form(table[:half]), label[:half], sample_weight=weight[:half], **classes)
        model.partial_fit(form(table[half:]), label[half:], sample_weight=weight[half:])
        _insert_all(pool, table, label, weight)
        assert trees_equal(model.pool_.tree(), pool.tree())
        assert len(model.pool_.tree().feature) > 1
        told = [pool.predict(dict(enumerate(row))) for row in table.tolist()]
        if isinstance(model, REGRESSORS):
            assert model.predict(form(table)).tolist() == told
        else:
            shares = np.array(told) / np.sum(told, axis=1, keepdims=True)
            assert np.array_equal(model.predict_proba(form(table)), shares)
            assert model.predict(form(table)).tolist() == shares.argmax(axis=1).tolist()


def test_what_was_unlearned_leaves_nothing() -> None:
    """With epsilon 0 the tree is that of the rows that stay, to the bit."""
    table, label = _rows(80)
    went = np.arange(80) % 3 == 0
    model = ours.ForgettingTreeClassifier(epsilon=0).fit(table, label)
    assert model.unlearn(table[went], label[went]) is model
    fresh = ours.ForgettingTreeClassifier(epsilon=0)
    fresh.partial_fit(table[~went], label[~went], classes=model.classes_)
    assert trees_equal(model.pool_.tree(), fresh.pool_.tree())
    with pytest.raises(LookupError, match=r"got 1 other\(s\), the first of them row 0"):
        model.unlearn([[9, 9, 9, 9]], label[:1])
    model.unlearn(table[~went], label[~went])
    assert np.array_equal(
        model.predict_proba(table[:2]), np.full((2, len(model.classes_)), 1 / len(model.classes_))
    )


def test_numbers_that_were_unlearned_leave_nothing() -> None:
    """As of classes; labels beyond the range and weights that are not whole are told in words."""
    table, label = _rows(80)
    label = label + 0.25
    went = np.arange(80) % 3 == 0
    model = ours.ForgettingTreeRegressor((0, 3), epsilon=0).fit(table, label)
    model.unlearn(table[went], label[went])
    fresh = ours.ForgettingTreeRegressor((0, 3), epsilon=0).fit(table[~went], label[~went])
    assert trees_equal(model.pool_.tree(), fresh.pool_.tree())
    with pytest.raises(ValueError, match=r"from 0 to 3, got 7.0; .*a label_range that holds"):
        model.partial_fit(table[:1], [7.0])
    with pytest.raises(ValueError, match=r"whole numbers, got 0\.5"):
        model.partial_fit(table[:2], label[:2], sample_weight=[1, 0.5])
    with pytest.raises(LookupError, match=r"got 1 other\(s\), the first of them row 0"):
        model.unlearn(table[:1], [0.125])
    model.unlearn(table[~went], label[~went])
    assert np.isnan(model.predict(table[:2])).all()


def test_what_only_grows_says_who_forgets() -> None:
    """The message names the estimator that takes rows back."""
    for model in (ours.TreeClassifier(), ours.TreeRegressor(), ours.ForestClassifier()):
        with pytest.raises(NotImplementedError, match=f"use Forgetting{type(model).__name__}, which"):
            model.unlearn([[1]], [1])


def test_kinds_of_features() -> None:
    """Bools, and sparse rows of ones, are present or absent; what fits neither is refused with what to do."""
    label = [0, 1]
    made = ours.TreeClassifier
    assert not made().fit(np.eye(2, dtype=bool), label).numeric_
    assert not made().fit(sparse.csr_array(np.eye(2)), label).numeric_
    assert made().fit(np.eye(2), label).numeric_
    assert made().fit(sparse.csr_array(2 * np.eye(2)), label).numeric_
    model = made().fit(sparse.csr_array(np.eye(2)), label)
    with pytest.raises(ValueError, match="features='numeric', or give X > 0"):
        model.partial_fit(2 * np.eye(2), label)
    with pytest.raises(ValueError, match="finite values up to 1e"):
        made().fit(np.eye(2) * 1e200, label)
    with pytest.raises(ValueError, match="features of auto, binary, numeric"):
        made(features="some").fit(np.eye(2), label)
    with pytest.raises(ValueError, match="grace_period"):
        made(grace_period=0).fit(np.eye(2), label)


def test_labels() -> None:
    """Classes are told in the first call; another label is refused, and nothing has changed."""
    model = ours.TreeClassifier()
    with pytest.raises(ValueError, match="`classes` in the first call"):
        model.partial_fit([[1]], ["a"])
    model.partial_fit([[1]], ["a"], classes=["b", "a"])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"expected labels of \['a', 'b'\], got .*'c'"):
        model.partial_fit([[1]], ["c"])
    with pytest.raises(ValueError, match="not the same as on last call"):
        model.partial_fit([[1]], ["a"], classes=["a", "c"])
    assert pickle.dumps(model) == before


def test_weights_that_are_too_large() -> None:
    """They are refused, and which row passed the bound on their sum is told."""
    with pytest.raises(ValueError, match=r"weights below 2\^42"):
        ours.TreeClassifier().fit([[1], [0]], [0, 1], sample_weight=[1, 2.0**42])
    with pytest.raises(ValueError, match="row 1: expected weights that sum to less"):
        ours.TreeClassifier().fit([[1], [0]], [0, 1], sample_weight=[2.0**41, 2.0**41])


def test_tables_of_pandas() -> None:
    """Columns have names, which the picture and `feature_names_in_` tell."""
    pandas = needed("pandas")
    numbers, _ = _rows()
    table = pandas.DataFrame(numbers, columns=["heat", "wind", "rain", "sun"])
    model = ours.ForgettingTreeClassifier(max_depth=1).fit(table, table["heat"] > 0)
    assert model.feature_names_in_.tolist() == list(table.columns)
    assert "heat?" in model.to_text()
    assert "heat?" in model.to_html()
    assert model.feature_importances_.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert model.score(table, table["heat"] > 0) == 1.0


def test_copies_go_on_alike() -> None:
    """A model that went through a pickle learns on as the model itself."""
    table, label = _rows()
    for model in (
        ours.TreeClassifier(grace_period=20),
        ours.ForgettingTreeClassifier(),
        ours.TreeRegressor(),
        ours.ForgettingTreeRegressor(),
    ):
        model.fit(table, label)
        twin = pickle.loads(pickle.dumps(model))
        for each in (model, twin):
            each.partial_fit(table, label)
        assert trees_equal(model.pool_.tree(), twin.pool_.tree())


def test_a_forest_is_its_pool() -> None:
    """Batches, copies and what is unlearned lead to the trees of a pool that takes the rows one by one."""
    table, label = _rows(120)
    told: dict[str, Any] = {"trees": 3, "epsilon": 0.0, "bagging": "2 of 3", "subspace": 0.8}
    model = ours.ForgettingForestClassifier(**told).fit(table, label)
    pool = ForestPool(classes=3, default=Kind.NUMERIC, **told)
    _insert_all(pool, table, label, np.ones(len(label)))
    votes = np.array([pool.predict(dict(enumerate(row))) for row in table.tolist()])
    assert np.array_equal(model.predict_proba(table), votes / votes.sum(axis=1, keepdims=True))
    twin = pickle.loads(pickle.dumps(model))
    went = np.arange(120) % 3 == 0
    for each in (model, twin):
        each.unlearn(table[went], label[went])
    fresh = ours.ForgettingForestClassifier(**told)
    fresh.partial_fit(table[~went], label[~went], classes=model.classes_)
    for number in range(3):
        assert trees_equal(model.pool_.tree(number), twin.pool_.tree(number))
        assert trees_equal(model.pool_.tree(number), fresh.pool_.tree(number))
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.to_text().count("nodes") == 3
    assert "tree 2" in model.to_text(2)
    assert "tree 2" in model.to_html(2)


def test_a_forest_that_grows_is_its_pool() -> None:
    """Batches and copies lead to the trees of a pool that takes the rows one by one; it takes none back."""
    table, label = _rows(120)
    told: dict[str, Any] = {"trees": 3, "bagging": "2 of 3", "subspace": 0.8, "policy": "osm", "grace_period": 5}
    model = ours.ForestClassifier(**told).fit(table, label)
    pool = GrowingForestPool(classes=3, default=Kind.NUMERIC, **told)
    _insert_all(pool, table, label, np.ones(len(label)))
    votes = np.array([pool.predict(dict(enumerate(row))) for row in table.tolist()])
    assert np.array_equal(model.predict_proba(table), votes / votes.sum(axis=1, keepdims=True))
    twin = pickle.loads(pickle.dumps(model))
    for each in (model, twin):
        each.partial_fit(table, label)
    assert all(trees_equal(model.pool_.tree(number), twin.pool_.tree(number)) for number in range(3))
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert "tree 2" in model.to_html(2)
    with pytest.raises(NotImplementedError, match="use ForgettingForestClassifier"):
        model.unlearn(table, label)


def test_examples_in_docstrings() -> None:
    """They run, and say what they say."""
    found = [doctest.testmod(module) for module in (ours, batch)]
    assert [each.attempted for each in found] == [28, 6]
    assert [each.failed for each in found] == [0, 0]


# --- rows that scikit-learn would hand back as they are


class _Asked(np.ndarray):
    """An array that scikit-learn is asked about."""


def test_plain_tables_are_learned_as_all_others() -> None:
    """A table of numbers that is taken as it is leads to the model that lists of the same numbers lead to."""
    rng = np.random.default_rng(5)
    table = rng.integers(0, 4, (300, 3)).astype(np.float64)
    y = (table[:, 1] > 1).astype(np.int64)
    for model in (ours.TreeClassifier, ours.ForgettingTreeClassifier, *REGRESSORS):
        plain, other = model(), model()
        for start in range(0, 300, 100):
            rows = slice(start, start + 100)
            more = {} if model in REGRESSORS else {"classes": [0, 1]}
            plain.partial_fit(table[rows], y[rows], **more)
            other.partial_fit(table[rows].tolist(), y[rows].tolist(), **more)
        assert plain.n_features_in_ == other.n_features_in_ == 3
        assert pickle.dumps(plain) == pickle.dumps(other)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda table, y: (table[:, :2], y),
        lambda table, y: (np.where(table == table.max(), np.nan, table), y),
        lambda table, y: (table[:-1], y),
        lambda table, y: (table[0], y),
        lambda table, y: (table[:0], y[:0]),
        lambda table, y: (table, y + 0.5),
        lambda table, y: (table, np.where(y == 0, np.nan, y)),
        lambda table, y: (table.astype(str), y),
    ],
)
def test_wrong_tables_are_refused_with_scikit_learns_words(wrong: Any) -> None:
    """What is wrong with an array is said as of others that are never taken as they are; nothing is learned."""
    table, y = np.arange(12.0).reshape(4, 3), np.array([0, 1, 0, 1])
    model = ours.TreeClassifier().partial_fit(table, y, classes=[0, 1])
    before = pickle.dumps(model)
    said = []
    for given in (wrong(table, y), [each.view(_Asked) for each in wrong(table, y)]):
        with pytest.raises(ValueError) as caught:  # noqa: PT011  (whatever it says, twice)
            model.partial_fit(*given)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert pickle.dumps(model) == before


def test_names_of_columns_are_missed_where_they_were_told_before() -> None:
    """An array after a table with named columns warns, as with all of scikit-learn; and fit forgets names."""
    pandas = pytest.importorskip("pandas", reason="pip install 'anabranch[peers]'")
    table, y = np.arange(12.0).reshape(4, 3), np.array([0, 1, 0, 1])
    model = ours.TreeClassifier().fit(pandas.DataFrame(table, columns=["a", "b", "c"]), y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.partial_fit(table, y)
    assert not hasattr(model.fit(table, y), "feature_names_in_")
