"""scikit-learn's words over the pools: `fit`, `partial_fit`, `predict`, `predict_proba`, and `unlearn`.

Columns are features, and a batch goes to the pool as it is: no row is looked at in Python. Needs scikit-learn::

    pip install 'anabranch[sklearn]'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from algorithms.core.arrays import Float64s, Int64s, UInt32s
from algorithms.core.events import Events, Op, Status
from algorithms.core.fixed_point import MAX_TOTAL, PER_UNIT, UNIT
from algorithms.core.kinds import Kind
from algorithms.dynamic.builder import build_tree
from algorithms.dynamic.samples import ColumnSample, Sample
from algorithms.estimators.base import MESSAGES, NUMBER_MESSAGES
from algorithms.estimators.drawing import (
    Node,
    class_nodes,
    forest_text,
    html,
    importances,
    number_nodes,
    text,
)
from algorithms.estimators.encoding import LARGEST_VALUE
from algorithms.estimators.online import (
    LABEL_RANGE,
    LABEL_UNIT,
    check_forest,
    check_forgetting,
    check_forgetting_numbers,
    check_growing_forest,
    check_regression,
    check_tree,
    forest_pool,
    forgetting_number_pool,
    forgetting_pool,
    growing_forest_pool,
    not_in_range,
    regression_pool,
    scale_of,
    tree_pool,
)
from algorithms.estimators.parameters import FEATURES, check_choice, check_whole, depth_of
from algorithms.trees.leaves_of import leaves_of

_COPIED = "_arrays"


class _Columns(BaseEstimator):
    """Rows of tables and of sparse matrices as events of a pool whose features are the columns."""

    features: str

    def _check(self) -> None:
        """Raise ValueError where a parameter is none."""
        raise NotImplementedError

    def _made(self) -> Any:
        """Return an empty pool."""
        raise NotImplementedError

    def _numbers(self, labels: Any) -> Any:
        """Return labels as the pool has them; raise ValueError where one is none."""
        raise NotImplementedError

    def _nodes(self, tree: int = 0) -> list[Node]:
        """Return the tree, or that of a forest, for people."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- copies: a pool goes as its arrays

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        pool = state.pop("pool_", None)
        if pool is not None:
            state[_COPIED] = {name: array.copy() for name, array in pool.arrays().items()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = state.get(_COPIED)
        super().__setstate__({name: value for name, value in state.items() if name != _COPIED})
        if arrays is not None:
            self.pool_ = self._made().restore({name: array.copy() for name, array in arrays.items()})

    # --- from tables to events

    def _begin(self) -> None:
        """Forget everything; check the parameters."""
        check_choice("features", self.features, FEATURES)
        self._check()
        self.__dict__.pop("pool_", None)

    def _rows(self, X: Any, y: Any, first: bool) -> tuple[Any, Any]:  # noqa: N803  (scikit-learn's name)
        """Return checked rows and labels; the first ones say how many columns there are."""
        if _is_plain(X, y):
            if first:
                self.n_features_in_ = X.shape[1]
                self.__dict__.pop("feature_names_in_", None)
            if X.shape[1] == self.n_features_in_ and not hasattr(self, "feature_names_in_"):
                return X, y
        rows, labels = validate_data(self, X, y, accept_sparse=self._SPARSE, reset=first, dtype="numeric")
        return rows, labels

    _SPARSE: Any = "csr"  # the forms of sparse matrices that are learned as they are

    def _kind(self, rows: Any) -> None:
        """Settle what kind the features are of: sparse rows of ones, and bools, are present or absent."""
        self.numeric_ = self.features == "numeric"
        if self.features == "auto":
            ones = not isinstance(rows, np.ndarray) and rows.nnz > 0 and bool((rows.data == 1).all())
            self.numeric_ = rows.dtype != np.bool_ and not ones

    def _events(self, rows: Any, op: Op, label: Any = None, units: Int64s | None = None) -> Events:
        pointer, feature, value = entries_of(rows)
        n = len(pointer) - 1
        self._check_values(value)
        if label is None:
            label = np.zeros(n, self._LABEL)
        events = Events.of(np.full(n, op, np.int8), label, pointer, feature, value)
        return events if units is None else events._replace(weight=units)

    def _check_values(self, value: Float64s) -> None:
        """Raise ValueError where a value other than 0 is none for the features."""
        if value.size and not -LARGEST_VALUE <= value.min() <= value.max() <= LARGEST_VALUE:
            raise ValueError(f"expected finite values up to {LARGEST_VALUE:g} in size, got {np.abs(value).max()}")
        if not self.numeric_ and (value != 1.0).any():
            odd = value[value != 1.0][0]
            raise ValueError(
                f"expected values of 0 and 1, as features are present or absent here, got {odd:g}; make the model "
                "with features='numeric', or give X > 0"
            )

    _LABEL: type = np.int32
    _MESSAGES: Mapping[Status, str] = MESSAGES

    def _units(self, sample_weight: Any, rows: Any) -> Int64s | None:
        """Return weights in units; None where all are 1."""
        if sample_weight is None:
            return None
        weight = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        if weight.size and weight.max() >= MAX_TOTAL // UNIT:
            raise ValueError(f"expected weights below 2^42, got {weight.max()}")
        units: Int64s = np.rint(weight * UNIT).astype(np.int64)
        return units

    def _learn(self, rows: Any, label: Any, sample_weight: Any) -> Self:
        units = self._units(sample_weight, rows)
        if not hasattr(self, "pool_"):
            self._kind(rows)
            self.pool_ = self._made()
        status = self.pool_.apply(self._events(rows, Op.INSERT, label, units), checked=True).status
        if (status > Status.SKIPPED).any():
            row = int(np.argmax(status > Status.SKIPPED))
            worst = Status(int(status[row]))
            raise ValueError(f"row {row}: {self._MESSAGES.get(worst, worst.name)}; the rows before it are learned")
        return self

    def _answered(self, X: Any) -> Any:  # noqa: N803
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", reset=False, dtype="numeric")
        return self.pool_.apply(self._events(rows, Op.PREDICT), checked=True)

    # --- the tree

    def _name(self, column: int) -> Any:
        names = getattr(self, "feature_names_in_", None)
        return column if names is None else names[column]

    def to_text(self) -> str:
        """Return the tree as text, a line for each of its first nodes."""
        check_is_fitted(self)
        return text(repr(self), self._nodes())

    def to_html(self) -> str:
        """Return the tree as HTML, for a notebook: ``IPython.display.HTML(model.to_html())``."""
        check_is_fitted(self)
        return html(repr(self), self._nodes())

    @property
    def feature_importances_(self) -> Float64s:
        """float64[columns], shares in what all splits of the tree lower the impurity, or the variance, by."""
        check_is_fitted(self)
        return self._importances()

    def _importances(self, tree: int = 0) -> Float64s:
        columns = zip(self._nodes(tree), self._tree(tree).feature, strict=True)
        found = importances([node._replace(tests=column) for node, column in columns])
        return np.array([found.get(column, 0.0) for column in range(self.n_features_in_)])

    def _tree(self, number: int) -> Any:  # noqa: ARG002  (only a forest has more than one)
        return self.pool_.tree()


def _is_plain(X: Any, y: Any) -> bool:  # noqa: N803
    """Return whether scikit-learn would hand back a table and labels as they are; it asks for long to say so."""
    return (
        type(X) is type(y) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.size > 0
        and y.shape == X.shape[:1]
        and (y.dtype.kind in "biu" or (y.dtype == np.float64 and bool(np.isfinite(y).all())))
        and bool(np.isfinite(X).all())
    )


def entries_of(rows: Any) -> tuple[Int64s, UInt32s, Float64s]:
    """Return where each row's entries begin and end, their columns, and their values; zeros are left out.

    Of a matrix by columns, where each column's begin and end, and their rows.
    """
    if isinstance(rows, np.ndarray):
        n, d = rows.shape
        columns = np.tile(np.arange(d, dtype=np.uint32), n)
        values = rows.ravel().astype(np.float64, copy=False)
        is_present = values != 0.0
        present = np.flatnonzero(is_present)  # of bools it takes a third of the time that it takes of floats
        pointer = np.arange(n + 1) * d
        if len(present) < len(values):
            pointer[1:] = np.cumsum(is_present)[d - 1 :: d]
            columns, values = columns.take(present), values.take(present)
        return pointer, columns, values
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data.astype(np.float64)


class _Classes(ClassifierMixin, _Columns):
    """Labels of any type that numpy sorts."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn all rows, in order, and nothing else.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n, columns)
            The examples.
        y : array of shape (n,)
            Their labels.
        sample_weight : array of shape (n,), optional
            Their weights.
        """
        self._begin()
        rows, labels = self._rows(X, y, first=True)
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        return self._learn(rows, numbers.astype(np.int32), sample_weight)

    def _weights(self, X: Any) -> Float64s:  # noqa: N803
        answers = self._answered(X)
        weights: Float64s = answers.weights[:, : len(self.classes_)]
        return weights

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the label of most weight for each row, the first of several."""
        best = self._weights(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Float64s:  # noqa: N803
        """Return float64[n, classes], the share of each label; equal ones where nothing is known."""
        weights = self._weights(X)
        total = weights.sum(axis=1, keepdims=True)
        shares: Float64s = np.where(total > 0.0, weights, 1.0) / np.where(total > 0.0, total, len(self.classes_))
        return shares

    def _nodes(self, tree: int = 0) -> list[Node]:
        labels = {label: number for number, label in enumerate(self.classes_.tolist())}
        return class_nodes(self._tree(tree), labels, self.criterion, self._name)


class _Streaming(_Classes):
    """Classes that are learned batch by batch."""

    def partial_fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn more rows.

        Parameters
        ----------
        X, y, sample_weight
            As of `fit`.
        classes : array, optional
            All labels that may come; needed in the first call.
        """
        first = not hasattr(self, "pool_")
        if first:
            self._begin()
        rows, labels = self._rows(X, y, first)
        if labels.dtype.kind not in "biuU":  # those are classes, whatever they are; it takes long to say so
            check_classification_targets(labels)
        if first:
            if classes is None:
                raise ValueError("expected all labels that may come as `classes` in the first call of partial_fit")
            self.classes_ = np.unique(classes)
        elif not (classes is None or self._are_mine(classes) or self._are_mine(np.unique(classes))):
            raise ValueError(f"`classes={classes!r}` is not the same as on last call: {self.classes_!r}")
        return self._learn(rows, self._numbers(labels), sample_weight)

    def _are_mine(self, classes: Any) -> bool:
        return np.array_equal(classes, self.classes_)

    def _numbers(self, labels: Any) -> Any:
        """Return the number of each label; raise ValueError where one is not among the classes."""
        numbers = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        if (wrong := self.classes_[numbers] != labels).any():
            raise ValueError(f"expected labels of {self.classes_.tolist()}, got {labels[wrong][0]!r}")
        return numbers.astype(np.int32)


class TreeClassifier(_Streaming):
    """A decision tree that grows with a stream; `algorithms.TreeClassifier` has its parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms.estimators.sklearn import TreeClassifier
    >>> X = np.arange(400).reshape(-1, 1) % 10
    >>> model = TreeClassifier(grace_period=50).fit(X, X[:, 0] > 4)
    >>> model.predict([[2], [7]])
    array([False,  True])
    >>> model.score(X, X[:, 0] > 4)
    1.0
    """

    def __init__(
        self,
        policy: str = "periodic",
        criterion: str = "entropy",
        grace_period: int = 200,
        split_confidence: float = 1e-7,
        tie_threshold: float = 0.05,
        leaf_prediction: str = "adaptive_present",
        max_depth: int | None = None,
        features: str = "auto",
        inherit: bool = False,
        local_range: bool = False,
    ) -> None:
        self.policy = policy
        self.criterion = criterion
        self.grace_period = grace_period
        self.split_confidence = split_confidence
        self.tie_threshold = tie_threshold
        self.leaf_prediction = leaf_prediction
        self.max_depth = max_depth
        self.features = features
        self.inherit = inherit
        self.local_range = local_range

    def _check(self) -> None:
        check_tree(self)

    def _made(self) -> Any:
        return tree_pool(self, self.numeric_, max(2, len(self.classes_)), names=False)

    def unlearn(self, X: Any, y: Any) -> None:  # noqa: N803
        """Raise NotImplementedError: this tree only grows."""
        raise NotImplementedError(
            "a TreeClassifier only grows; use ForgettingTreeClassifier, which takes rows back"
        )


class _Forgetting(_Columns):
    """A model that takes rows back."""

    def unlearn(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Forget rows that were learned with these labels and weights; those that a window dropped are forgotten.

        Raises
        ------
        LookupError
            Where one was not learned; the others are forgotten.
        """
        check_is_fitted(self)
        rows, labels = self._rows(X, y, first=False)
        events = self._events(rows, Op.DELETE, self._numbers(labels), self._units(sample_weight, rows))
        status = self.pool_.apply(events, checked=True).status
        if (absent := np.flatnonzero(status > Status.SKIPPED)).size:
            raise LookupError(
                f"expected rows that were learned and not unlearned since, got {absent.size} other(s), the first "
                f"of them row {absent[0]}; the rest is forgotten"
            )
        return self


class ForgettingTreeClassifier(_Forgetting, _Streaming):
    """A decision tree of the live examples; `algorithms.ForgettingTreeClassifier` has its parameters.

    Examples
    --------
    >>> from algorithms.estimators.sklearn import ForgettingTreeClassifier
    >>> model = ForgettingTreeClassifier(epsilon=0).fit([[1, 0], [0, 1], [1, 1]], ["a", "b", "b"])
    >>> model.predict([[1, 0]]).tolist()
    ['a']
    >>> model.unlearn([[1, 0]], ["a"]).predict([[1, 0]]).tolist()
    ['b']
    """

    def __init__(
        self,
        criterion: str = "gini",
        epsilon: float = 0.1,
        window: int | None = None,
        min_examples: int = 1,
        max_depth: int | None = None,
        features: str = "auto",
    ) -> None:
        self.criterion = criterion
        self.epsilon = epsilon
        self.window = window
        self.min_examples = min_examples
        self.max_depth = max_depth
        self.features = features

    def _check(self) -> None:
        check_forgetting(self)

    def _made(self) -> Any:
        return forgetting_pool(self, self.numeric_, max(2, len(self.classes_)), names=False)


class _Voting(_Streaming):
    """A classifier that is a forest."""

    trees: int

    def _tree(self, number: int) -> Any:
        return self.pool_.tree(number)

    def to_text(self, tree: int | None = None) -> str:
        """Return a tree, by its number from 0, as text; or a line for each tree."""
        check_is_fitted(self)
        if tree is not None:
            return text(f"{self!r}, tree {tree}", self._nodes(tree))
        return forest_text(repr(self), [self._nodes(number) for number in range(self.trees)])

    def to_html(self, tree: int = 0) -> str:
        """Return a tree as HTML, for a notebook: ``IPython.display.HTML(model.to_html())``."""
        check_is_fitted(self)
        return html(f"{self!r}, tree {tree}", self._nodes(tree))

    @property
    def feature_importances_(self) -> Float64s:
        """float64[columns], the mean over all trees that have a split of the shares in what splits gain."""
        check_is_fitted(self)
        each = [shares for number in range(self.trees) if (shares := self._importances(number)).any()]
        means: Float64s = np.mean(each, axis=0) if each else np.zeros(self.n_features_in_)
        return means


class ForgettingForestClassifier(_Forgetting, _Voting):
    """A forest of trees of the live examples; `algorithms.ForgettingForestClassifier` has its parameters.

    Examples
    --------
    >>> from algorithms.estimators.sklearn import ForgettingForestClassifier
    >>> rows = [[1, 0], [0, 1], [1, 1], [0, 0]] * 5
    >>> model = ForgettingForestClassifier(subspace=1.0, epsilon=0).fit(rows, ["a", "b", "a", "b"] * 5)
    >>> model.predict([[1, 0], [0, 1]]).tolist()
    ['a', 'b']
    >>> model.unlearn(rows[:4], ["a", "b", "a", "b"]).predict([[1, 0]]).tolist()
    ['a']
    """

    def __init__(
        self,
        trees: int = 10,
        subspace: float | str = 0.6,
        bagging: str = "poisson:6",
        seed: int = 0,
        criterion: str = "gini",
        epsilon: float = 0.1,
        window: int | None = None,
        min_examples: int = 1,
        max_depth: int | None = None,
        features: str = "auto",
    ) -> None:
        self.trees = trees
        self.subspace = subspace
        self.bagging = bagging
        self.seed = seed
        self.criterion = criterion
        self.epsilon = epsilon
        self.window = window
        self.min_examples = min_examples
        self.max_depth = max_depth
        self.features = features

    def _check(self) -> None:
        check_forest(self)

    def _made(self) -> Any:
        return forest_pool(self, self.numeric_, max(2, len(self.classes_)), names=False)


class ForestClassifier(_Voting):
    """A forest of trees that grow with a stream; `algorithms.ForestClassifier` has its parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms.estimators.sklearn import ForestClassifier
    >>> X = np.arange(400).reshape(-1, 1) % 10
    >>> ForestClassifier(subspace=1.0).fit(X, X[:, 0] > 4).predict([[2], [7]])
    array([False,  True])
    """

    def __init__(
        self,
        trees: int = 10,
        subspace: float | str = 0.6,
        bagging: str = "poisson:6",
        seed: int = 0,
        warning: float = 0.01,
        drift: float = 0.001,
        policy: str = "periodic",
        criterion: str = "gini",
        grace_period: int = 10,
        split_confidence: float = 0.5,
        tie_threshold: float = 0.05,
        leaf_prediction: str = "adaptive",
        max_depth: int | None = None,
        features: str = "auto",
    ) -> None:
        self.trees = trees
        self.subspace = subspace
        self.bagging = bagging
        self.seed = seed
        self.warning = warning
        self.drift = drift
        self.policy = policy
        self.criterion = criterion
        self.grace_period = grace_period
        self.split_confidence = split_confidence
        self.tie_threshold = tie_threshold
        self.leaf_prediction = leaf_prediction
        self.max_depth = max_depth
        self.features = features

    def _check(self) -> None:
        check_growing_forest(self)

    def _made(self) -> Any:
        return growing_forest_pool(self, self.numeric_, max(2, len(self.classes_)), names=False)

    def unlearn(self, X: Any, y: Any) -> None:  # noqa: N803
        """Raise NotImplementedError: these trees only grow."""
        raise NotImplementedError(
            "a ForestClassifier only grows; use ForgettingForestClassifier, which takes rows back"
        )


class BatchTreeClassifier(_Classes):
    """The greedy tree of all rows at once, as `DecisionTreeClassifier` builds it, faster where rows are sparse.

    Tables, and CSR and CSC matrices of any width, are taken as they are. Equal splits tie by the lowest column and
    threshold, so the same rows in any order give the same tree.

    Parameters
    ----------
    criterion : str
        ``gini`` or ``entropy``.
    max_depth, max_leaves : int, optional
        A node so deep is a leaf; the tree grows where a split gains most, until it has so many leaves.
    min_examples : int
        A node of at most so many rows is a leaf.
    max_features : int, optional
        A node looks at so many columns alone, drawn from those that part its rows.
    bootstrap : bool
        As many rows as there are, are drawn with replacement.
    seed : int
        Of all that is drawn.
    features : str
        ``numeric``, ``binary``, or ``auto``: sparse matrices of ones, and bools, are binary.

    Examples
    --------
    >>> from algorithms.estimators.sklearn import BatchTreeClassifier
    >>> model = BatchTreeClassifier().fit([[0, 1], [1, 0], [1, 1]], ["a", "b", "a"])
    >>> model.predict([[0, 2], [5, 0]])
    array(['a', 'b'], dtype='<U1')
    """

    _SPARSE = ("csr", "csc")

    def __init__(
        self,
        criterion: str = "gini",
        max_depth: int | None = None,
        max_leaves: int | None = None,
        min_examples: int = 1,
        max_features: int | None = None,
        bootstrap: bool = False,
        seed: int = 0,
        features: str = "auto",
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_examples = min_examples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.seed = seed
        self.features = features

    def _check(self) -> None:
        check_choice("criterion", self.criterion, ("gini", "entropy"))
        check_whole("max_depth", self.max_depth, 0, optional=True)
        check_whole("max_leaves", self.max_leaves, 1, optional=True)
        check_whole("min_examples", self.min_examples, 1)
        check_whole("max_features", self.max_features, 1, optional=True)

    def _learn(self, rows: Any, label: Any, sample_weight: Any) -> Self:
        units = self._units(sample_weight, rows)
        if units is not None and not units.all():  # rows of no weight are none
            rows, label, units = rows[units > 0], label[units > 0], units[units > 0]
        self._kind(rows)
        units = np.full(len(label), UNIT, np.int64) if units is None else units
        sample = _sample_of(rows, label.astype(np.int64), units)
        self._check_values(sample.value)
        self.tree_ = build_tree(
            sample,
            classes=max(2, len(self.classes_)),
            criterion=self.criterion,
            default=Kind.NUMERIC if self.numeric_ else Kind.BINARY,
            min_examples=self.min_examples,
            max_depth=depth_of(self.max_depth),
            max_leaves=self.max_leaves,
            max_features=self.max_features,
            bootstrap=self.bootstrap,
            seed=self.seed,
        )
        return self

    def _tree(self, number: int) -> Any:  # noqa: ARG002
        return self.tree_

    def _weights(self, X: Any) -> Float64s:  # noqa: N803
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", reset=False, dtype="numeric")
        pointer, feature, value = entries_of(rows)
        self._check_values(value)
        leaf = leaves_of(self.tree_, pointer, feature, value)
        return np.float64(PER_UNIT) * self.tree_.weight[leaf, : len(self.classes_)]


def _sample_of(rows: Any, label: Int64s, units: Int64s) -> Sample | ColumnSample:
    """Return rows, or a matrix that is by columns, as `build_tree` takes them."""
    if getattr(rows, "format", "") != "csc":
        return Sample(*entries_of(rows), label, units)
    pointer, row, value = entries_of(rows)
    ids = np.arange(rows.shape[1], dtype=np.uint32)
    return ColumnSample(pointer, row.astype(np.int32), value, label, units, ids)


class _Numbers(RegressorMixin, _Columns):
    """Labels that are numbers."""

    _LABEL = np.float64

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn all rows, in order, and nothing else; labels are numbers, else as of the classifiers."""
        self._begin()
        return self.partial_fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn more rows."""
        first = not hasattr(self, "pool_")
        if first:
            self._begin()
        rows, labels = self._rows(X, y, first)
        return self._learn(rows, self._numbers(labels), sample_weight)

    def _numbers(self, labels: Any) -> Float64s:
        numbers: Float64s = labels.astype(np.float64)
        return numbers

    def predict(self, X: Any) -> Float64s:  # noqa: N803
        """Return float64[n], the label that the leaf of each row predicts."""
        guess: Float64s = self._answered(X).predicted
        return guess

    def _nodes(self, tree: int = 0) -> list[Node]:  # noqa: ARG002  (there is one)
        return number_nodes(self.pool_.tree(), self._name)


class TreeRegressor(_Numbers):
    """A regression tree that grows with a stream; `algorithms.TreeRegressor` has its parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms.estimators.sklearn import TreeRegressor
    >>> X = np.arange(400).reshape(-1, 1) % 10
    >>> model = TreeRegressor(grace_period=50).fit(X, np.where(X[:, 0] > 4, 5.0, 1.0))
    >>> model.predict([[2], [7]])
    array([1., 5.])
    """

    def __init__(
        self,
        grace_period: int = 200,
        split_confidence: float = 1e-7,
        tie_threshold: float = 0.05,
        max_depth: int | None = None,
        features: str = "auto",
        leaf_prediction: str = "mean",
    ) -> None:
        self.grace_period = grace_period
        self.split_confidence = split_confidence
        self.tie_threshold = tie_threshold
        self.max_depth = max_depth
        self.features = features
        self.leaf_prediction = leaf_prediction

    def _check(self) -> None:
        check_regression(self)

    def _made(self) -> Any:
        return regression_pool(self, self.numeric_, names=False)

    def unlearn(self, X: Any, y: Any) -> None:  # noqa: N803
        """Raise NotImplementedError: this tree only grows."""
        raise NotImplementedError("a TreeRegressor only grows; use ForgettingTreeRegressor, which takes rows back")


class ForgettingTreeRegressor(_Forgetting, _Numbers):
    """A regression tree of the live examples; `algorithms.ForgettingTreeRegressor` has its parameters.

    Examples
    --------
    >>> from algorithms.estimators.sklearn import ForgettingTreeRegressor
    >>> model = ForgettingTreeRegressor(epsilon=0).fit([[1, 0], [0, 1], [1, 1]], [1.5, 2.0, 4.0])
    >>> model.predict([[1, 0]]).tolist()
    [1.5]
    >>> model.unlearn([[1, 0]], [1.5]).predict([[1, 0]]).tolist()
    [4.0]
    """

    _MESSAGES = NUMBER_MESSAGES

    def __init__(
        self,
        label_range: tuple[float, float] = LABEL_RANGE,
        label_unit: float = LABEL_UNIT,
        epsilon: float = 0.1,
        window: int | None = None,
        min_examples: int = 1,
        max_depth: int | None = None,
        features: str = "auto",
    ) -> None:
        self.label_range = label_range
        self.label_unit = label_unit
        self.epsilon = epsilon
        self.window = window
        self.min_examples = min_examples
        self.max_depth = max_depth
        self.features = features

    def _check(self) -> None:
        check_forgetting_numbers(self)

    def _made(self) -> Any:
        return forgetting_number_pool(self, self.numeric_, names=False)

    def _numbers(self, labels: Any) -> Float64s:
        numbers = super()._numbers(labels)
        if not (held := scale_of(self).holds(numbers)).all():
            raise not_in_range(self, numbers[~held][0])
        return numbers

    def _units(self, sample_weight: Any, rows: Any) -> Int64s | None:
        units = super()._units(sample_weight, rows)
        if units is not None and (odd := units % UNIT != 0).any():
            raise ValueError(f"expected weights that are whole numbers, got {units[odd][0] / UNIT}")
        return units
