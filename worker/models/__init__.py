"""The kinds of model. A new kind is one file with a class like `SplitModel` and one line in `KINDS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from worker.models.dynamic import DynamicTreeModel
from worker.models.port import Model, Outcome, Refusal, Result
from worker.models.split import SplitModel
from worker.models.tree import TreeModel

KINDS: dict[str, Callable[..., Model]] = {
    "split": SplitModel,
    "tree": TreeModel,
    "dynamic-tree": DynamicTreeModel,
}


def make_model(name: str, settings: Any, bounds: Any) -> Model:
    """Make the model that the settings describe, empty."""
    return KINDS[settings.kind](name, settings, bounds)


__all__ = ["KINDS", "Model", "Outcome", "Refusal", "Result", "make_model"]
