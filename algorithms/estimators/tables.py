"""What estimators for scikit-learn have in common: tables and sparse matrices, labels, drawings, copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from algorithms.core.arrays import Float64s, Int64s, UInt32s
from algorithms.core.events import Events, Op, Status
from algorithms.core.fixed_point import MAX_TOTAL, UNIT
from algorithms.estimators.base import MESSAGES
from algorithms.estimators.drawing import Node, class_nodes, html, importances, number_nodes, text
from algorithms.estimators.encoding import LARGEST_VALUE
from algorithms.estimators.parameters import FEATURES, check_choice

_COPIED = "_arrays"


class Columns(BaseEstimator):
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

    def _asked(self, X: Any) -> Any:  # noqa: N803
        """Return checked rows of a question."""
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", reset=False, dtype="numeric")

    def _answered(self, X: Any) -> Any:  # noqa: N803
        rows = self._asked(X)  # first: without a fit there is no pool, and that is what to tell
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


class Classes(ClassifierMixin, Columns):
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


class Numbers(RegressorMixin, Columns):
    """Labels that are numbers."""

    _LABEL = np.float64

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn all rows, in order, and nothing else; labels are numbers, else as of the classifiers."""
        self._begin()
        rows, labels = self._rows(X, y, first=True)
        return self._learn(rows, self._numbers(labels), sample_weight)

    def _numbers(self, labels: Any) -> Float64s:
        numbers: Float64s = labels.astype(np.float64)
        return numbers

    def _nodes(self, tree: int = 0) -> list[Node]:
        return number_nodes(self._tree(tree), self._name)
