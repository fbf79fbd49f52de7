"""What all kinds of trees have in common: kinds of features, snapshots, what they tell of their size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from algorithms.core.arrays import UInt32s
from worker.codec import Events
from worker.models.base import Prepared
from worker.models.classifier import ClassifierModel
from worker.models.intake import source_of
from worker.models.port import Result
from worker.models.tree_results import Parameters, TreeResults
from worker.models.values import Values, checked_values
from worker.settings.models import TreesSettings
from worker.settings.values import Section, written
from worker.watching.status import ModelStatus

if TYPE_CHECKING:  # a model loads the kernels of its own pool alone
    from algorithms.dynamic.pool import Answers as DynamicAnswers
    from algorithms.dynamic.pool import DynamicPool
    from algorithms.forests.growing import Answers as GrowingAnswers
    from algorithms.forests.growing import GrowingForestPool
    from algorithms.forests.pool import Answers as ForestAnswers
    from algorithms.forests.pool import ForestPool
    from algorithms.trees.answers import Answers as TreeAnswers
    from algorithms.trees.pool import TreePool

P = TypeVar("P", bound="TreePool | DynamicPool | ForestPool | GrowingForestPool")
A = TypeVar("A", bound="TreeAnswers | DynamicAnswers | ForestAnswers | GrowingAnswers")


def told_of(settings: Section, names: Iterable[str], recorded: Callable[[str], str] = str) -> Parameters:
    """Return what snapshots tell of settings, by the names that they have in records."""
    return {recorded(each): written(getattr(settings, each)) for each in names}


class TreesModel(ClassifierModel[P, A]):
    """A model of trees; see `ClassifierModel`.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    settings : TreesSettings
        What the settings say of it.
    pool : TreePool, DynamicPool, ForestPool or GrowingForestPool
        An empty one.
    parameters : Parameters
        What snapshots tell of the settings, see `told_of`.
    """

    def __init__(self, name: str, settings: TreesSettings, pool: P, parameters: Parameters) -> None:
        super().__init__(name, settings, pool, settings.evaluate)
        told = dict(sorted(parameters.items()))
        self._trees = TreeResults(name, settings.classes, settings.features == "names", told)

    def _checked(self, feature: UInt32s, events: Events) -> Values:
        return checked_values(self._pool.kinds_of(feature), events.value)

    def _records(self, prepared: Prepared, answers: A) -> Iterator[Result]:
        source_at = partial(source_of, prepared.records, prepared.events)
        yield from self._trees.snapshots(prepared.result, answers.snapshots, source_at)

    def status(self) -> ModelStatus:
        """Return how large the model is, and how good."""
        pool = self._pool
        return super().status()._replace(slots=pool.slots, nodes=pool.node_count, depth=pool.depth)
