"""scikit-learn's words over the pools: `fit`, `partial_fit`, `predict`, `predict_proba`, and `unlearn`.

Columns are features, and a batch goes to the pool as it is: no row is looked at in Python. Needs scikit-learn::

    pip install 'anabranch[sklearn]'
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from algorithms.core.arrays import Float64s, Int64s
from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import UNIT
from algorithms.estimators.base import NUMBER_MESSAGES
from algorithms.estimators.batch import BatchTreeClassifier as BatchTreeClassifier
from algorithms.estimators.batch import BatchTreeRegressor as BatchTreeRegressor
from algorithms.estimators.drawing import (
    forest_text,
    html,
    text,
)
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
from algorithms.estimators.tables import Classes, Columns, Numbers


class _Streaming(Classes):
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


class _Forgetting(Columns):
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


class _StreamingNumbers(Numbers):
    """Numbers that are learned batch by batch."""

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn more rows."""
        first = not hasattr(self, "pool_")
        if first:
            self._begin()
        rows, labels = self._rows(X, y, first)
        return self._learn(rows, self._numbers(labels), sample_weight)

    def predict(self, X: Any) -> Float64s:  # noqa: N803
        """Return float64[n], the label that the leaf of each row predicts."""
        guess: Float64s = self._answered(X).predicted
        return guess


class TreeRegressor(_StreamingNumbers):
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


class ForgettingTreeRegressor(_Forgetting, _StreamingNumbers):
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
