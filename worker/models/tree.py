"""Models of kind `tree`: a classification tree for each key that grows with its examples, all in one pool."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.core.arrays import Int64s
from algorithms.core.criteria import UNIT
from algorithms.core.kinds import Kind
from algorithms.trees.answers import Answers
from algorithms.trees.answers import Split as Made
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from worker.codec import Bounds, Source, Split
from worker.codec.encode import Feature, branch_bytes
from worker.log.port import LARGEST_RECORD
from worker.models.base import Prepared
from worker.models.classifier import SPLIT_SEQ
from worker.models.growing import GrowingTreesModel
from worker.models.intake import result_of, source_of
from worker.models.port import Result
from worker.models.tree_base import told_of
from worker.settings.models import TreeSettings

TOLD = ("criterion", "kind", "policy", "split_confidence", "tie_threshold")


class TreeModel(GrowingTreesModel[TreePool, Answers]):
    """All instances of one model name in one partition.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    settings : TreeSettings
        What the settings say of it.
    bounds : Bounds
        Of which `keys` holds for it.
    """

    def __init__(self, name: str, settings: TreeSettings, bounds: Bounds) -> None:
        default, kinds = settings.feature_kinds
        pool = TreePool(
            policy=settings.policy,
            criterion=settings.criterion,
            classes=len(settings.classes),
            predict=Predict[settings.predict.upper()],
            grace_period=settings.grace_period,
            check_every=settings.check_every,
            candidates=settings.candidates,
            split_confidence=settings.split_confidence,
            tie_threshold=settings.tie_threshold,
            default=default,
            kinds=kinds,
            radius=settings.attributes.radius,
            radius_fraction=settings.attributes.radius_fraction or 0.5,
            names=settings.features == "names",
            evaluate=settings.evaluate is not None,
            max_keys=bounds.keys,
            max_depth=settings.max_depth,
            inherit=settings.inherit,
            local_range=settings.local_range,
            drop_poor=settings.drop_poor,
            memory_limit=settings.memory_limit,
            snapshots=settings.emit.snapshots.due,
        )
        super().__init__(name, settings, pool, told_of(settings, TOLD, settings.recorded))
        self._settings = settings

    def _changes(self, answers: Answers) -> int:
        return len(answers.splits)

    # --- results

    def _records(self, prepared: Prepared, answers: Answers) -> Iterator[Result]:
        yield from self._splits(prepared, answers)
        yield from super()._records(prepared, answers)

    def _splits(self, prepared: Prepared, answers: Answers) -> Iterator[Result]:
        if self._settings.emit.splits != "never":
            for made in answers.splits:
                split = self._split(made, source_of(prepared.records, prepared.events, made.event))
                yield result_of(prepared.events, made.event, SPLIT_SEQ, split)

    def _split(self, made: Made, source: Source) -> Split:
        n = int(made.totals.sum()) / UNIT
        branches, counts = heaviest(made, LARGEST_RECORD // branch_bytes(len(self._settings.classes)))
        return Split(
            model=self.name,
            node=made.node,
            feature=_feature(made.feature),
            kind=made.kind.name.lower(),
            threshold=made.threshold if made.kind == Kind.NUMERIC else None,
            criterion=self._settings.criterion,
            score=made.score / n,
            gain=(made.impurity - made.score) / n,
            runner_up=None,
            runner_up_gain=(made.impurity - made.second) / n,
            n=n,
            branches=branches.tolist(),
            counts=(counts / UNIT).tolist(),
            classes=self._settings.classes,
            source=source,
            left_out=len(made.branches) - len(branches),
        )


def heaviest(made: Made, most: int) -> tuple[Int64s, Int64s]:
    """Return the heaviest branches and their weights, as many as a record might hold, before lists are made."""
    if len(made.branches) <= most:
        return made.branches, made.counts
    kept = np.sort(np.argsort(-made.counts.sum(axis=1), kind="stable")[:most])
    return made.branches[kept], made.counts[kept]


def _feature(feature: int | bytes) -> Feature:
    return feature.decode() if isinstance(feature, bytes) else feature
