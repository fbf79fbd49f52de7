"""Decision trees that learn from, and forget, streams of sparse examples.

The estimators are what to begin with; below them are pools, which take events in columns for many models at once.
What is named here is imported when it is first used: ``import algorithms`` itself costs nothing.

Examples
--------
>>> from algorithms import TreeClassifier
>>> model = TreeClassifier()
>>> model.learn_one({"outlook": "sunny", "windy": False}, "out")
>>> model.predict_one({"outlook": "sunny"})
'out'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from algorithms.dynamic.numbers import DynamicNumberPool as DynamicNumberPool
    from algorithms.dynamic.pool import DynamicPool as DynamicPool
    from algorithms.estimators.online import BestSplit as BestSplit
    from algorithms.estimators.online import ForestClassifier as ForestClassifier
    from algorithms.estimators.online import ForgettingForestClassifier as ForgettingForestClassifier
    from algorithms.estimators.online import ForgettingTreeClassifier as ForgettingTreeClassifier
    from algorithms.estimators.online import ForgettingTreeRegressor as ForgettingTreeRegressor
    from algorithms.estimators.online import TreeClassifier as TreeClassifier
    from algorithms.estimators.online import TreeRegressor as TreeRegressor
    from algorithms.forests.growing import GrowingForestPool as GrowingForestPool
    from algorithms.forests.pool import ForestPool as ForestPool
    from algorithms.regression.pool import RegressionPool as RegressionPool
    from algorithms.splits.pool import SplitPool as SplitPool
    from algorithms.trees.pool import TreePool as TreePool

_WHERE = {
    "BestSplit": "algorithms.estimators.online",
    "ForestClassifier": "algorithms.estimators.online",
    "ForgettingForestClassifier": "algorithms.estimators.online",
    "ForgettingTreeClassifier": "algorithms.estimators.online",
    "ForgettingTreeRegressor": "algorithms.estimators.online",
    "TreeClassifier": "algorithms.estimators.online",
    "TreeRegressor": "algorithms.estimators.online",
    "DynamicNumberPool": "algorithms.dynamic.numbers",
    "DynamicPool": "algorithms.dynamic.pool",
    "ForestPool": "algorithms.forests.pool",
    "GrowingForestPool": "algorithms.forests.growing",
    "RegressionPool": "algorithms.regression.pool",
    "SplitPool": "algorithms.splits.pool",
    "TreePool": "algorithms.trees.pool",
}

__all__ = [
    "BestSplit",
    "DynamicNumberPool",
    "DynamicPool",
    "ForestClassifier",
    "ForestPool",
    "ForgettingForestClassifier",
    "ForgettingTreeClassifier",
    "ForgettingTreeRegressor",
    "GrowingForestPool",
    "RegressionPool",
    "SplitPool",
    "TreeClassifier",
    "TreePool",
    "TreeRegressor",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_WHERE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return what can be imported."""
    return sorted({*globals(), *_WHERE})
