"""Models of kind `tree`: a classification tree for each key that grows with its examples, all in one pool."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from algorithms.core.arrays import Int32s, Int64s
from algorithms.core.criteria import UNIT
from algorithms.core.events import Op
from algorithms.core.kinds import Kind
from algorithms.trees.answers import Answers
from algorithms.trees.answers import Split as Made
from algorithms.trees.grow import Status
from algorithms.trees.pool import Events as Batch
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from worker.codec import Bounds, Events, Reason, Source, Split
from worker.codec.encode import Feature, branch_bytes
from worker.log.port import LARGEST_RECORD, Records
from worker.models import refusals
from worker.models.evaluation import Evaluations
from worker.models.intake import Intake, refusal, source_of
from worker.models.keys import Keys
from worker.models.port import Outcome, Refusal, Result
from worker.models.tree_results import SPLIT_SEQ, Parameters, TreeResults, judged_by, place, result_of
from worker.models.tree_state import TreeState
from worker.models.values import judged_values
from worker.settings.models import TreeSettings

_REFUSED = {
    Status.CANNOT_FORGET: (
        Reason.CANNOT_FORGET,
        "expected no delete, a tree only grows; send a tombstone to drop the key's tree, or set on_delete: ignore",
    ),
    Status.TOO_MANY_TREES: refusals.TOO_MANY_KEYS,
    Status.COUNT_OVERFLOW: refusals.COUNT_OVERFLOW,
}


class TreeModel(TreeState[TreePool]):
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
        self.name = name
        self._settings = settings
        self._intake = Intake(settings.classes, settings.features)
        self._keys = Keys()
        rules = settings.evaluate
        self._evaluations = Evaluations(name, settings.classes, rules) if rules is not None else None
        self._pool = TreePool(
            policy=settings.policy,
            criterion=settings.criterion,
            classes=len(settings.classes),
            predict=Predict[settings.predict.upper()],
            period=settings.period,
            check_every=settings.check_every,
            delta=settings.delta,
            tau=settings.tau,
            default=Kind[settings.attributes.default.upper()],
            kinds=settings.attributes.kinds,
            radius=settings.attributes.radius,
            radius_fraction=settings.attributes.radius_fraction or 0.5,
            names=settings.features == "names",
            evaluate=rules is not None,
            max_trees=bounds.keys,
            max_depth=settings.max_depth,
            inherit=settings.inherit,
            drop_poor=settings.drop_poor,
            memory_limit=settings.memory_limit,
            snapshots=settings.emit.snapshots.due,
        )
        parameters: Parameters = {
            "criterion": settings.criterion,
            "delta": settings.delta,
            "kind": settings.kind,
            "policy": settings.policy,
            "tau": settings.tau,
        }
        named = settings.features == "names"
        self._trees = TreeResults(name, settings.classes, named, parameters, self._evaluations)

    # --- events

    def apply(self, records: Records, events: Events) -> Outcome:
        """Apply the events of a batch of records, strictly in order; a refused one changes nothing."""
        label = self._intake.labels(events)
        feature = self._intake.numbers(events, self._pool.names)
        bare = (events.op == Op.DROP) | (events.op == Op.DELETE)
        values = judged_values(self._pool.kinds_of(feature), events.value)
        op, refused = self._intake.judge(events, label, bare, values.wrong, partial(values.detail, events))
        deletes = op == Op.DELETE
        if self._settings.on_delete == "ignore":
            op[deletes] = -1
        keys = self._keys.numbers(records)
        batch = Batch(
            index=keys[events.record],
            op=op,
            label=label,
            weight=events.weight,
            time=events.time,
            pointer=events.pointer,
            feature=feature,
            value=events.value,
        )
        answers = self._pool.apply(batch)
        applied = answers.status == Status.APPLIED
        judged = judged_by(self._evaluations, applied, op)
        outcome = Outcome(
            results=sorted(self._results(records, events, label, judged, answers), key=place),
            refusals=sorted([*refused, *_refusals(events, answers)], key=lambda r: (r.record, r.row)),
            applied={kind.name.lower(): int(np.count_nonzero(applied & (op == kind))) for kind in Op},
            changes=len(answers.splits),
            deletes_ignored=int(np.count_nonzero(deletes & (op < 0))),
            judged=len(judged),
            right=int(np.count_nonzero(answers.guess[judged] == label[judged])),
        )
        # Names and keys were interned before it was known whether their events would be accepted.
        self._pool.sweep(feature)
        self._keys.keep(keys, self._pool.are_alive)
        return outcome

    # --- results

    def _results(
        self, records: Records, events: Events, label: Int32s, judged: Int64s, answers: Answers
    ) -> Iterator[Result]:
        """Yield what is to be written, in any order."""
        if self._settings.emit.splits != "never":
            for made in answers.splits:
                split = self._split(made, source_of(records, events, made.event))
                yield result_of(events, made.event, SPLIT_SEQ, split)
        yield from self._trees.results(records, events, label, judged, answers)

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


def _refusals(events: Events, answers: Answers) -> Iterator[Refusal]:
    for event in np.flatnonzero(answers.status > Status.SKIPPED).tolist():
        yield refusal(events, event, *_REFUSED[Status(int(answers.status[event]))])
