"""Trees of all rows at once, in the words of scikit-learn: the batch learners of dynamic/ and regression/."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.fixed_point import PER_UNIT, UNIT
from algorithms.core.kinds import Kind
from algorithms.dynamic.builder import build_tree
from algorithms.dynamic.samples import ColumnSample, Sample
from algorithms.estimators.parameters import check_choice, check_whole, depth_of
from algorithms.estimators.tables import Classes, Columns, Numbers, entries_of
from algorithms.regression.builder import NumberSample, build_regression_tree
from algorithms.trees.leaves_of import leaves_of


class _Batch(Columns):
    """What is learned at once is a tree."""

    max_depth: int | None
    min_examples: int

    def _check(self) -> None:
        check_whole("max_depth", self.max_depth, 0, optional=True)
        check_whole("min_examples", self.min_examples, 1)

    def _tree(self, number: int) -> Any:  # noqa: ARG002
        return self.tree_

    def _weighed(self, rows: Any, label: Any, sample_weight: Any) -> tuple[Any, Any, Int64s]:
        """Return the rows that weigh something, their labels and their weights in units."""
        units = self._units(sample_weight, rows)
        if units is None:
            return rows, label, np.full(len(label), UNIT, np.int64)
        return (rows, label, units) if units.all() else (rows[units > 0], label[units > 0], units[units > 0])

    def _default(self) -> Kind:
        return Kind.NUMERIC if self.numeric_ else Kind.BINARY

    def _leaves(self, X: Any) -> Int64s:  # noqa: N803
        pointer, feature, value = entries_of(self._asked(X))
        self._check_values(value)
        return leaves_of(self.tree_, pointer, feature, value)


class BatchTreeClassifier(_Batch, Classes):
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
        super()._check()
        check_choice("criterion", self.criterion, ("gini", "entropy"))
        check_whole("max_leaves", self.max_leaves, 1, optional=True)
        check_whole("max_features", self.max_features, 1, optional=True)

    def _learn(self, rows: Any, label: Any, sample_weight: Any) -> Self:
        rows, label, units = self._weighed(rows, label, sample_weight)
        self._kind(rows)
        sample = _sample_of(rows, label.astype(np.int64), units)
        self._check_values(sample.value)
        self.tree_ = build_tree(
            sample,
            classes=max(2, len(self.classes_)),
            criterion=self.criterion,
            default=self._default(),
            min_examples=self.min_examples,
            max_depth=depth_of(self.max_depth),
            max_leaves=self.max_leaves,
            max_features=self.max_features,
            bootstrap=self.bootstrap,
            seed=self.seed,
        )
        return self

    def _weights(self, X: Any) -> Float64s:  # noqa: N803
        leaf = self._leaves(X)
        return np.float64(PER_UNIT) * self.tree_.weight[leaf, : len(self.classes_)]


def _sample_of(rows: Any, label: Int64s, units: Int64s) -> Sample | ColumnSample:
    """Return rows, or a matrix that is by columns, as `build_tree` takes them."""
    if getattr(rows, "format", "") != "csc":
        return Sample(*entries_of(rows), label, units)
    pointer, row, value = entries_of(rows)
    ids = np.arange(rows.shape[1], dtype=np.uint32)
    return ColumnSample(pointer, row.astype(np.int32), value, label, units, ids)


class BatchTreeRegressor(_Batch, Numbers):
    """The tree that reduces the variance of all rows' labels most, as `DecisionTreeRegressor` builds it.

    Parameters
    ----------
    max_depth : int, optional
        A node so deep is a leaf.
    min_examples : int
        A node of at most so many rows is a leaf.
    features : str
        ``numeric``, ``binary``, or ``auto``: sparse matrices of ones, and bools, are binary.

    Examples
    --------
    >>> from algorithms.estimators.sklearn import BatchTreeRegressor
    >>> model = BatchTreeRegressor(max_depth=1).fit([[0, 1], [1, 0], [1, 1]], [1.5, 4.0, 2.5])
    >>> model.predict([[0, 2], [5, 0]]).round(9).tolist()
    [2.0, 4.0]
    """

    def __init__(self, max_depth: int | None = None, min_examples: int = 1, features: str = "auto") -> None:
        self.max_depth = max_depth
        self.min_examples = min_examples
        self.features = features

    def _learn(self, rows: Any, label: Any, sample_weight: Any) -> Self:
        rows, label, units = self._weighed(rows, label, sample_weight)
        self._kind(rows)
        sample = NumberSample(*entries_of(rows), label, units)
        self._check_values(sample.value)
        self.tree_ = build_regression_tree(
            sample,
            default=self._default(),
            min_examples=self.min_examples,
            max_depth=depth_of(self.max_depth),
        )
        return self

    def predict(self, X: Any) -> Float64s:  # noqa: N803
        """Return float64[n], the mean of the labels in the leaf of each row."""
        leaf = self._leaves(X)
        mean: Float64s = self.tree_.mean[leaf]
        return mean
