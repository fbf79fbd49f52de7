"""What the kinds of trees that forget have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from algorithms.core.events import OnDuplicate
from algorithms.core.names import Interner
from algorithms.dynamic.state import ALIVE
from algorithms.trees.snapshot import NumberTree as RegressionTree
from algorithms.trees.snapshot import Tree
from worker.codec import Bounds
from worker.models import tree_base
from worker.models.base import Prepared
from worker.models.holdings import Holdings, keys_of, live_examples, remembered, store_of
from worker.models.port import Outcome
from worker.models.tree_base import TreesModel
from worker.models.tree_results import Parameters
from worker.models.two_kinds import TwoKindsModel, kinds_of_pool
from worker.settings.models import ForgettingTreesSettings
from worker.settings.values import ms_of, number_of
from worker.watching.status import ModelStatus

if TYPE_CHECKING:  # a model loads the kernels of its own pool alone
    from algorithms.dynamic.pool import Answers as TreeAnswers
    from algorithms.dynamic.pool import DynamicPool
    from algorithms.forests.pool import Answers as ForestAnswers
    from algorithms.forests.pool import ForestPool

_TOLD = (
    "alpha",
    "beta",
    "criterion",
    "epsilon",
    "guarantee",
    "kind",
    "max_depth",
    "max_work",
    "min_examples",
    "window",
)

AnyTree: TypeAlias = Tree | RegressionTree

P = TypeVar("P", bound="DynamicPool | ForestPool")
A = TypeVar("A", bound="TreeAnswers | ForestAnswers")


class ForgettingTreesModel(TwoKindsModel[P, A], TreesModel[P, A]):
    """A model of trees that are rebuilt when enough of what they learned has changed; see `TreesModel`."""

    def __init__(self, name: str, settings: ForgettingTreesSettings, pool: P, parameters: Parameters) -> None:
        super().__init__(name, settings, pool, parameters)
        self._take_kinds(settings)

    def _outcome(self, prepared: Prepared, answers: A) -> Outcome:
        changes = int(np.count_nonzero(answers.rebuilt))
        return super()._outcome(prepared, answers)._replace(changes=changes)

    def status(self) -> ModelStatus:
        """Return how large the model is, and how good."""
        return super().status()._replace(examples=self._pool.live_examples)


def told_of(settings: ForgettingTreesSettings, also: Sequence[str] = ()) -> Parameters:
    """Return what snapshots tell of the settings."""
    names = [each for each in _TOLD if getattr(settings, each, None) is not None or each == "window"]
    return tree_base.told_of(settings, [*names, *also], settings.recorded)


def holdings_of(
    settings: ForgettingTreesSettings,
    arrays: Mapping[str, Any],
    names: Interner | None,
    trees_of: Callable[[int], Iterable[AnyTree]],
) -> Mapping[bytes, Holdings]:
    """Return for each key its live examples and, where that follows from them alone, its tree."""
    keys, store = keys_of(arrays), store_of(arrays)
    return {
        keys.name(index): Holdings(
            live=live_examples(store, index, names, arrays["values"]),
            remembered=remembered(store, index),
            learned=learned(settings, partial(trees_of, index)),
            windowed=settings.window is not None,
        )
        for index in np.flatnonzero(arrays["trees"][:, ALIVE]).tolist()
    }


def learned(settings: ForgettingTreesSettings, trees: Callable[[], Iterable[AnyTree]]) -> list[list[Any]] | None:
    """Return trees where they follow from the live examples alone, else None.

    With epsilon 0 that is so but for the numbers of nodes, which tell how often a subtree was rebuilt; with a
    `max_work` a rebuild may be under way.
    """
    is_exact = settings.guarantee == "exact"
    if not is_exact and (settings.epsilon != 0.0 or settings.max_work is not None):
        return None
    columns: list[Any] = [column for tree in trees() for column in list(tree)[0 if is_exact else 1 :]]
    return [column if isinstance(column, list) else column.tolist() for column in columns]


def pool_terms(settings: ForgettingTreesSettings, bounds: Bounds) -> dict[str, Any]:
    """Return what settings and bounds say to the pool, but when snapshots are due."""
    return shared_terms(settings, bounds) | {
        "alpha": settings.alpha,
        "criterion": settings.criterion,
        "classes": len(settings.classes),
        "max_work": settings.max_work,
    }


def shared_terms(settings: ForgettingTreesSettings, bounds: Bounds) -> dict[str, Any]:
    """Return the same as far as it has nothing to do with what labels are."""
    default, kinds = kinds_of_pool(settings)
    return {
        "epsilon": settings.epsilon,
        "beta": settings.beta,
        "guarantee": settings.guarantee,
        "min_examples": settings.min_examples,
        "max_depth": settings.max_depth,
        "default": default,
        "kinds": kinds,
        "window": number_of(settings.window),
        "span": ms_of(settings.window),
        "on_duplicate": OnDuplicate[settings.on_duplicate.upper()],
        "names": settings.features == "names",
        "evaluate": settings.evaluate is not None,
        "max_keys": bounds.keys,
        "max_live_ids": bounds.live_ids,
    }
