"""Models of kind `dynamic-tree`: a classification tree for each key that forgets what is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from algorithms.core.events import OnDuplicate, Op
from algorithms.core.kinds import Kind
from algorithms.dynamic.events import Status
from algorithms.dynamic.pool import Answers, DynamicPool
from algorithms.dynamic.pool import Events as Batch
from worker.codec import Bounds, Events
from worker.codec.events import NO_ID
from worker.log.port import Records
from worker.models import refusals
from worker.models.evaluation import Evaluations
from worker.models.intake import Intake, refusal
from worker.models.keys import Keys
from worker.models.port import Outcome, Refusal
from worker.models.tree_results import Parameters, TreeResults, judged_by, place
from worker.models.tree_state import TreeState
from worker.models.values import judged_values
from worker.settings.models import DynamicTreeSettings

_REFUSED = {
    Status.DUPLICATE_ID: refusals.DUPLICATE_ID,
    Status.ABSENT_ID: refusals.ABSENT_ID,
    Status.ABSENT_EXAMPLE: refusals.ABSENT_EXAMPLE,
    Status.TOO_MANY_TREES: refusals.TOO_MANY_KEYS,
    Status.TOO_MANY_LIVE_IDS: refusals.TOO_MANY_LIVE_IDS,
    Status.COUNT_OVERFLOW: refusals.COUNT_OVERFLOW,
}


class DynamicTreeModel(TreeState[DynamicPool]):
    """All instances of one model name in one partition.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    settings : DynamicTreeSettings
        What the settings say of it.
    bounds : Bounds
        Of which `keys` and `live_ids` hold for it.
    """

    def __init__(self, name: str, settings: DynamicTreeSettings, bounds: Bounds) -> None:
        self.name = name
        self._intake = Intake(settings.classes, settings.features)
        self._keys = Keys()
        rules = settings.evaluate
        self._evaluations = Evaluations(name, settings.classes, rules) if rules is not None else None
        named = settings.features == "names"
        self._pool = DynamicPool(
            epsilon=settings.epsilon,
            alpha=settings.alpha,
            beta=settings.beta,
            min_examples=settings.min_examples,
            max_depth=settings.max_depth,
            criterion=settings.criterion,
            classes=len(settings.classes),
            default=Kind[settings.attributes.default.upper()],
            kinds=settings.attributes.kinds,
            window=settings.window,
            on_duplicate=OnDuplicate[settings.on_duplicate.upper()],
            names=named,
            evaluate=rules is not None,
            max_trees=bounds.keys,
            max_live_ids=bounds.live_ids,
            snapshots=settings.emit.snapshots.due,
        )
        parameters: Parameters = {
            "alpha": settings.alpha,
            "beta": settings.beta,
            "criterion": settings.criterion,
            "epsilon": settings.epsilon,
            "kind": settings.kind,
            "max_depth": settings.max_depth,
            "min_examples": settings.min_examples,
            "window": settings.window,
        }
        self._trees = TreeResults(name, settings.classes, named, parameters, self._evaluations)

    def apply(self, records: Records, events: Events) -> Outcome:
        """Apply the events of a batch of records, strictly in order; a refused one changes nothing."""
        label = self._intake.labels(events)
        feature = self._intake.numbers(events, self._pool.names)
        by_id = (events.op == Op.DELETE) & (events.id_kind != NO_ID)  # needs neither features nor label
        bare = (events.op == Op.DROP) | by_id
        values = judged_values(self._pool.kinds_of(feature), events.value)
        op, refused = self._intake.judge(events, label, bare, values.wrong, partial(values.detail, events))
        keys = self._keys.numbers(records)
        answers = self._pool.apply(
            Batch(
                index=keys[events.record],
                op=op,
                label=label,
                weight=events.weight,
                time=events.time,
                named=(events.id_kind != NO_ID).astype(np.int8),
                id_high=(events.id_high >> np.uint64(3)).astype(np.int64),
                id_low=(events.id_low >> np.uint64(3)).astype(np.int64),
                pointer=events.pointer,
                feature=feature,
                value=events.value,
            )
        )
        applied = answers.status == Status.APPLIED
        judged = judged_by(self._evaluations, applied, op)
        outcome = Outcome(
            results=sorted(self._trees.results(records, events, label, judged, answers), key=place),
            refusals=sorted([*refused, *_refusals(events, answers)], key=lambda r: (r.record, r.row)),
            applied={kind.name.lower(): int(np.count_nonzero(applied & (op == kind))) for kind in Op},
            changes=int(np.count_nonzero(answers.rebuilt)),
            ignored=int(np.count_nonzero(answers.status == Status.IGNORED)),
            already_dropped=int(np.count_nonzero(answers.status == Status.ALREADY_DROPPED)),
            judged=len(judged),
            right=int(np.count_nonzero(answers.guess[judged] == label[judged])),
        )
        # Names and keys were interned before it was known whether their events would be accepted.
        self._pool.sweep(feature)
        self._keys.keep(keys, self._pool.are_alive)
        return outcome


def _refusals(events: Events, answers: Answers) -> Iterator[Refusal]:
    for event in np.flatnonzero(answers.status > Status.SKIPPED).tolist():
        yield refusal(events, event, *_REFUSED[Status(int(answers.status[event]))])
