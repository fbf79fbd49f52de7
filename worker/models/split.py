"""Models of kind `split`: the best split of each key's examples, all keys of a partition in one pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate, Op
from algorithms.splits.kernel import SPLIT_DUE, TREE_DUE, Batch, Decisions, Status
from algorithms.splits.pool import SplitPool
from worker.codec import Bounds, Events, Prediction, Reason, Source, Split, Tree
from worker.codec.encode import Feature
from worker.codec.events import NO_ID, Int8s
from worker.log.port import Records
from worker.models import refusals
from worker.models.intake import Intake, binary_detail, id_of, refusal, source_of
from worker.models.keys import Keys
from worker.models.port import Outcome, Refusal, Result
from worker.settings.models import SplitSettings
from worker.watching.status import ModelStatus

_SPLIT_SEQ, _TREE_SEQ = 0, 1
_NONE = -1  # a feature that is none

_REFUSED = {
    Status.DUPLICATE_ID: refusals.DUPLICATE_ID,
    Status.ABSENT_ID: refusals.ABSENT_ID,
    Status.ABSENT_EXAMPLE: refusals.ABSENT_EXAMPLE,
    Status.TOO_MANY_INDEXES: refusals.TOO_MANY_KEYS,
    Status.TOO_MANY_LIVE_IDS: refusals.TOO_MANY_LIVE_IDS,
    Status.COUNT_OVERFLOW: refusals.COUNT_OVERFLOW,
}


class _Decision(NamedTuple):
    """One row of `Decisions` in Python's own numbers, weights in examples."""

    event: int
    due: int
    feature: int
    runner_up: int
    events: int
    score: float
    runner_up_score: float
    impurity: float
    n0: float
    n1: float
    a: float
    b: float


class SplitModel:
    """All instances of one model name in one partition.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    settings : SplitSettings
        What the settings say of it.
    bounds : Bounds
        Of which `keys` and `live_ids` hold for it.
    """

    def __init__(self, name: str, settings: SplitSettings, bounds: Bounds) -> None:
        self.name = name
        self._settings = settings
        self._intake = Intake(settings.classes, settings.features)
        self._keys = Keys()
        self._pool = SplitPool(
            finder=settings.finder,
            criterion=settings.criterion,
            alpha=settings.alpha if settings.alpha is not None else 0.1,
            window=settings.window,
            verify_deletes=settings.verify_deletes,
            on_duplicate=OnDuplicate[settings.on_duplicate.upper()],
            names=settings.features == "names",
            splits=settings.emit.splits.due,
            trees=settings.emit.snapshots.due,
            max_indexes=bounds.keys,
            max_live_ids=bounds.live_ids,
        )

    # --- events

    def apply(self, records: Records, events: Events) -> Outcome:
        """Apply the events of a batch of records, strictly in order; a refused one changes nothing."""
        label = self._intake.labels(events)
        by_id = (events.op == Op.DELETE) & (events.id_kind != NO_ID)  # needs neither features nor label
        bare = (events.op == Op.DROP) | by_id
        complain = partial(self._value_detail, events)
        op, refused = self._intake.judge(events, label, bare, events.value != 1.0, complain)
        keys = self._keys.numbers(records)
        batch = Batch(
            index=keys[events.record],
            op=op,
            label=label.astype(np.int8),
            weight=events.weight,
            time=events.time,
            named=(events.id_kind != NO_ID).astype(np.int8),
            id_high=(events.id_high >> np.uint64(3)).astype(np.int64),
            id_low=(events.id_low >> np.uint64(3)).astype(np.int64),
            pointer=events.pointer,
            feature=self._intake.numbers(events, self._pool.names),
        )
        decisions = self._pool.apply(batch, checked=True)
        outcome = Outcome(
            results=list(self._results(records, events, decisions)),
            refusals=sorted([*refused, *_refusals(events, decisions)], key=lambda r: (r.record, r.row)),
            applied=_applied(op, decisions),
            changes=decisions.changes,
            ignored=int(np.count_nonzero(decisions.status == Status.IGNORED)),
            already_dropped=int(np.count_nonzero(decisions.status == Status.ALREADY_DROPPED)),
        )
        # Names and keys were interned before it was known whether their events would be accepted.
        self._pool.sweep(batch.feature)
        self._keys.keep(keys, self._pool.are_alive)
        return outcome

    def _value_detail(self, events: Events, event: int) -> tuple[Reason, str]:
        values = events.value[events.pointer[event] : events.pointer[event + 1]]
        return Reason.NOT_BINARY, binary_detail(float(values[values != 1.0][0]))

    # --- results

    def _results(self, records: Records, events: Events, decisions: Decisions) -> Iterator[Result]:
        """Yield what is to be written, in the order of events."""
        answers = self._predictions(records, events, decisions)
        answer = next(answers, None)
        for decision in _rows(decisions):
            where = (int(events.record[decision.event]), int(events.row[decision.event]))
            while answer is not None and (answer.record, answer.row) < where:
                yield answer
                answer = next(answers, None)
            source = source_of(records, events, decision.event)
            if decision.due & SPLIT_DUE:
                yield Result(*where, _SPLIT_SEQ, self._split(decision, source))
            if decision.due & TREE_DUE:
                yield Result(*where, _TREE_SEQ, self._tree(decision, source))
        while answer is not None:
            yield answer
            answer = next(answers, None)

    def _name(self, feature: int) -> Feature | None:
        if feature == _NONE:
            return None
        return feature if self._pool.names is None else self._pool.names.name(feature).decode()

    def _split(self, decision: _Decision, source: Source) -> Split:
        n0, n1, a, b = decision.n0, decision.n1, decision.a, decision.b
        n = n0 + n1
        return Split(
            model=self.name,
            node=0,
            feature=self._name(decision.feature),
            kind=None if decision.feature == _NONE else "binary",
            threshold=None,
            criterion=self._settings.criterion,
            score=decision.score / n if n else 0.0,
            gain=(decision.impurity - decision.score) / n if n else 0.0,
            runner_up=self._name(decision.runner_up),
            runner_up_gain=(
                None if decision.runner_up == _NONE else (decision.impurity - decision.runner_up_score) / n
            ),
            n=n,
            branches=(0, 1),
            counts=((n0 - a, n1 - b), (a, b)),
            classes=self._settings.classes,
            source=source,
        )

    def _tree(self, decision: _Decision, source: Source) -> Tree:
        """Return the split as a tree: a root and, where something splits it, two leaves."""
        n0, n1, a, b = decision.n0, decision.n1, decision.a, decision.b
        whole = decision.feature == _NONE
        named = self._pool.names is not None
        return Tree(
            model=self.name,
            version=decision.events,
            chunk=0,
            chunks=1,
            node=[0] if whole else [0, 1, 2],
            parent=[-1] if whole else [-1, 0, 0],
            branch=[0] if whole else [0, 0, 1],
            feature=[None] if whole else [0 if named else decision.feature, None, None],
            kind=[None] if whole else ["binary", None, None],
            threshold=[None] if whole else [None, None, None],
            counts=[(n0, n1)] if whole else [(n0, n1), (n0 - a, n1 - b), (a, b)],
            classes=self._settings.classes,
            names=None if not named else [] if whole else [str(self._name(decision.feature))],
            parameters={
                **({} if self._settings.alpha is None else {"alpha": self._settings.alpha}),
                "criterion": self._settings.criterion,
                "finder": self._settings.finder,
                "kind": self._settings.kind,
                "window": self._settings.window,
            },
            source=source,
        )

    def _predictions(self, records: Records, events: Events, decisions: Decisions) -> Iterator[Result]:
        for event, leaf, (w0, w1) in zip(
            decisions.asked.tolist(), decisions.leaf.tolist(), decisions.weights.tolist(), strict=True
        ):
            known = w0 + w1 > 0
            yield Result(
                int(events.record[event]),
                int(events.row[event]),
                0,
                Prediction(
                    model=self.name,
                    id=id_of(events, event),
                    label=self._settings.classes[int(w1 > w0)] if known else None,
                    weights=(w0 / UNIT, w1 / UNIT),
                    leaf=leaf,
                    known=known,
                    source=source_of(records, events, event),
                ),
            )

    # --- state

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        return self._keys.arrays() | self._pool.arrays()

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` of a model with the same settings returned."""
        self._keys.restore(arrays)
        self._pool.restore(arrays)

    def status(self) -> ModelStatus:
        """Return how large the model is."""
        size = sum(array.nbytes for array in self.arrays().values())
        return ModelStatus(self.name, self._pool.alive, self._pool.slots, self._pool.live_examples, size)

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. For tests."""
        self._pool.check()
        self._keys.check(self._pool.alive)


def _rows(decisions: Decisions) -> Iterator[_Decision]:
    columns = (
        *(decisions.event, decisions.due, decisions.feature, decisions.runner_up, decisions.events),
        *(decisions.score, decisions.runner_up_score, decisions.impurity),
        *(decisions.totals.T / UNIT),
        *(decisions.present.T / UNIT),
    )
    # Converted column by column: a tenth of what numpy's scalars cost one by one.
    return map(_Decision._make, zip(*(column.tolist() for column in columns), strict=True))


def _applied(op: Int8s, decisions: Decisions) -> dict[str, int]:
    counts = np.bincount(op[decisions.status == Status.APPLIED], minlength=len(Op))
    return {kind.name.lower(): int(counts[kind]) for kind in Op}


def _refusals(events: Events, decisions: Decisions) -> Iterator[Refusal]:
    status: Int8s = decisions.status
    for event in np.flatnonzero((status >= Status.DUPLICATE_ID) & (status != Status.SKIPPED)).tolist():
        reason, detail = _REFUSED[Status(int(status[event]))]
        yield refusal(events, event, reason, detail)
