"""The models of online.py as parts of river: pipelines, metrics, `progressive_val_score`. Needs river.

::

    pip install 'anabranch[river]'
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from river import base

from algorithms.estimators import online
from algorithms.estimators.labels import Regressor


class TreeClassifier(online.TreeClassifier, base.Classifier):
    """A decision tree that grows with a stream; `algorithms.TreeClassifier` has its parameters.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from algorithms.estimators.river import TreeClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), TreeClassifier(), metrics.Accuracy())
    Accuracy: 80.94%
    """

    @property
    def _multiclass(self) -> bool:
        return self.policy != "exact"


class ForgettingTreeClassifier(online.ForgettingTreeClassifier, base.Classifier):
    """A decision tree of the live examples; `algorithms.ForgettingTreeClassifier` has its parameters.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from algorithms.estimators.river import ForgettingTreeClassifier
    >>> model = ForgettingTreeClassifier(window=500)
    >>> evaluate.progressive_val_score(datasets.Phishing().take(500), model, metrics.Accuracy())
    Accuracy: 85.37%
    """

    @property
    def _multiclass(self) -> bool:
        return True

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"window": 100}


class ForgettingForestClassifier(online.ForgettingForestClassifier, base.Classifier):
    """A forest of trees of the live examples; `algorithms.ForgettingForestClassifier` has its parameters.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from algorithms.estimators.river import ForgettingForestClassifier
    >>> model = ForgettingForestClassifier(window=500)
    >>> evaluate.progressive_val_score(datasets.Phishing().take(500), model, metrics.Accuracy())
    Accuracy: 89.58%
    """

    @property
    def _multiclass(self) -> bool:
        return True

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"trees": 3, "window": 100}


class ForestClassifier(online.ForestClassifier, base.Classifier):
    """A forest of trees that grow with a stream; `algorithms.ForestClassifier` has its parameters.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from algorithms.estimators.river import ForestClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing().take(500), ForestClassifier(), metrics.Accuracy())
    Accuracy: 84.57%
    """

    @property
    def _multiclass(self) -> bool:
        return self.policy != "exact"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"trees": 3}


class BestSplit(online.BestSplit, base.Classifier):
    """The best feature to split examples of two labels by; `algorithms.BestSplit` has its parameters.

    Values are True or False, or text: river's checks feed numbers, and skip it.
    """


class _FromZero(Regressor):
    """A regressor that predicts 0 before the first example, as river's models do."""

    UNKNOWN: ClassVar[float] = 0.0

    def predict_one(self, x: Any) -> float:
        """Return the label that the leaf of an example predicts."""
        found = super().predict_one(x)
        return self.UNKNOWN if found is None else found


class TreeRegressor(_FromZero, online.TreeRegressor, base.Regressor):
    """A regression tree that grows with a stream; `algorithms.TreeRegressor` has its parameters.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from algorithms.estimators.river import TreeRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), TreeRegressor(), metrics.MAE())
    MAE: 1.567555
    """


class ForgettingTreeRegressor(_FromZero, online.ForgettingTreeRegressor, base.Regressor):
    """A regression tree of the live examples; `algorithms.ForgettingTreeRegressor` has its parameters.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from algorithms.estimators.river import ForgettingTreeRegressor
    >>> model = ForgettingTreeRegressor(label_range=(0, 100), window=500)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.25503
    """

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"window": 100}
