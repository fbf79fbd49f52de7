"""A kind of model in some thirty lines, as anybody may add one: of each key the class that has most weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Le

from algorithms.core.events import Op, Status
from algorithms.core.fixed_point import UNIT
from worker.codec import Bounds
from worker.models import register
from worker.models.base import Prepared
from worker.models.classifier import Answers, ClassifierModel
from worker.models.rows import Rows
from worker.settings.models import ClassifierSettings, EvaluateSettings


class MajoritySettings(ClassifierSettings):
    """A model that predicts the class of most weight among a key's examples, whatever their features."""

    SAMPLE: ClassVar[Mapping[str, Any]] = {"least": 2.0, "evaluate": {"window": 20, "emit": {"every": 15}}}

    kind: Literal["majority"]
    least: Annotated[float, Ge(0.0), Le(1e6)] = 0.0  # a key with less weight has no prediction
    evaluate: EvaluateSettings | None = None


class MajorityModel(ClassifierModel[Rows, Answers]):
    """All instances of one model name in one partition."""

    def __init__(self, name: str, settings: MajoritySettings, bounds: Bounds) -> None:
        super().__init__(name, settings, Rows(len(settings.classes), bounds.keys), settings.evaluate)
        self._least = settings.least * UNIT

    def _apply(self, prepared: Prepared) -> Answers:
        columns = (prepared.op, prepared.instance, prepared.label, prepared.events.weight)
        before, status = np.zeros((len(prepared.op), len(self._classes)), np.int64), []
        self._pool.grow(prepared.instance)
        for at, event in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            before[at] = self._pool.rows[event[1]]
            status.append(self._learn(*event))
        known = before.sum(axis=1) >= max(self._least, 1)
        return Answers.by_weight(prepared, np.array(status, np.int8), before * known[:, np.newaxis])

    def _learn(self, op: int, key: int, label: int, weight: int) -> Status:
        if op == Op.DROP:
            return self._pool.drop(key)
        if op == Op.DELETE and label < 0:
            return Status.ABSENT_ID  # ids are not kept
        if op in (Op.INSERT, Op.DELETE):
            return self._pool.add(key, label, weight if op == Op.INSERT else -weight)
        return Status.APPLIED if op == Op.PREDICT else Status.SKIPPED


register(MajoritySettings, MajorityModel)
