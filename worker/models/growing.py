"""What the kinds of classification trees that only grow have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from algorithms.core.events import Events as Columns
from algorithms.core.events import Op
from worker.models.base import Prepared
from worker.models.intake import NOTHING
from worker.models.port import Outcome
from worker.models.tree_base import TreesModel
from worker.models.tree_results import Parameters
from worker.settings.models import GrowingForestSettings, TreeSettings

if TYPE_CHECKING:  # a model loads the kernels of its own pool alone
    from algorithms.forests.growing import Answers as ForestAnswers
    from algorithms.forests.growing import GrowingForestPool
    from algorithms.trees.answers import Answers as TreeAnswers
    from algorithms.trees.pool import TreePool

P = TypeVar("P", bound="TreePool | GrowingForestPool")
A = TypeVar("A", bound="TreeAnswers | ForestAnswers")


class GrowingTreesModel(TreesModel[P, A]):
    """A model of trees that cannot take a delete: it is refused, or passed by; see `TreesModel`."""

    def __init__(
        self, name: str, settings: TreeSettings | GrowingForestSettings, pool: P, parameters: Parameters
    ) -> None:
        super().__init__(name, settings, pool, parameters)
        self._passes_deletes_by = settings.on_delete == "ignore"

    @abstractmethod
    def _changes(self, answers: A) -> int:
        """Return how often trees have changed."""

    def _looks_at_deletes(self) -> bool:
        return False  # it cannot take any

    def _columns(self, prepared: Prepared) -> Columns:
        columns = prepared.columns()
        if not self._passes_deletes_by:
            return columns
        return columns._replace(op=np.where(columns.op == Op.DELETE, NOTHING, columns.op))

    def _outcome(self, prepared: Prepared, answers: A) -> Outcome:
        deletes = int(np.count_nonzero(prepared.op == Op.DELETE)) if self._passes_deletes_by else 0
        outcome = super()._outcome(prepared, answers)
        return outcome._replace(changes=self._changes(answers), deletes_ignored=deletes)
