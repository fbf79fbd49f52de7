"""Models of kind `split`: the best split of each key's examples, all keys of a partition in one pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Int64s, UInt32s
from algorithms.core.criteria import UNIT
from algorithms.core.events import OnDuplicate
from algorithms.core.names import name_or_id
from algorithms.core.stored import rebuilt
from algorithms.splits import slots
from algorithms.splits.kernel import ALIVE, SPLIT_DUE, TREE_DUE, Decisions
from algorithms.splits.pool import SplitPool
from worker.codec import Bounds, Events, Prediction, Source, Tree
from worker.codec.encode import Feature
from worker.codec.split_columns import SplitColumns
from worker.log.port import Records
from worker.models.awaited import Awaited
from worker.models.base import PoolModel, Prepared
from worker.models.holdings import NO_VALUES, Holdings, keys_of, live_examples, names_of, remembered, store_of
from worker.models.intake import ClassIntake, Intake, id_of, source_of
from worker.models.port import Outcome, Result
from worker.models.split_results import SplitResults
from worker.models.values import Values, binary_values
from worker.settings.models import SplitSettings
from worker.settings.values import ms_of, number_of, span_of, written
from worker.watching.status import ModelStatus

SPLIT_SEQ, TREE_SEQ = 0, 1
_NONE = -1  # a feature that is none


def options_of(settings: SplitSettings, bounds: Bounds) -> dict[str, Any]:
    """Return what any pool of splits of binary features is told."""
    return {
        "window": number_of(settings.window),
        "span": ms_of(settings.window),
        "verify_deletes": settings.verify_deletes,
        "on_duplicate": OnDuplicate[settings.on_duplicate.upper()],
        "names": settings.features == "names",
        "splits": settings.emit.splits.due,
        "trees": settings.emit.snapshots.due,
        "max_keys": bounds.keys,
        "max_live_ids": bounds.live_ids,
    }


class _Decision(NamedTuple):
    """What a snapshot needs of a row of `Decisions` in Python's own numbers, weights in examples."""

    event: int
    due: int
    feature: int
    events: int
    n0: float
    n1: float
    a: float
    b: float


class SplitModel(PoolModel[SplitPool, Decisions]):
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
        pool, intake = self._made(settings, bounds)
        _, kinds = settings.feature_kinds  # binary ones, of which the pool need not know
        awaited = Awaited(settings.classes, kinds, complete=settings.names_all_features, kept=False)
        super().__init__(name, intake, pool, awaited, settings.expire, span_of(settings.window))
        self._settings = settings

    def _made(self, settings: SplitSettings, bounds: Bounds) -> tuple[SplitPool, Intake]:
        """Return an empty pool, and what it takes."""
        alpha = settings.alpha if settings.alpha is not None else 0.1
        pool = SplitPool(
            finder=settings.finder, criterion=settings.criterion, alpha=alpha, **options_of(settings, bounds)
        )
        return pool, ClassIntake(settings.classes, settings.features)

    # --- events

    def _checked(self, feature: UInt32s, events: Events) -> Values:  # noqa: ARG002
        return binary_values(events.value)

    def _outcome(self, prepared: Prepared, answers: Decisions) -> Outcome:
        if len(answers.asked) or len(prepared.clock) or np.count_nonzero(answers.due != SPLIT_DUE):
            return Outcome(list(self._results(prepared, answers)), changes=answers.changes)
        # With many keys most events change a split: then there are nearly as many results as events.
        record = prepared.events.record[answers.event].tolist()
        row = prepared.events.row[answers.event].tolist()
        splits = SplitResults(self._splits(prepared, answers), record, row, SPLIT_SEQ)
        return Outcome(splits, changes=answers.changes)

    # --- results

    def _splits(self, prepared: Prepared, decisions: Decisions) -> SplitColumns:
        records, events = prepared.records, prepared.events
        return SplitColumns(
            model=self.name,
            criterion=self._settings.criterion,
            classes=self._settings.classes,
            topic=records.source.topic,
            partition=records.source.partition,
            offset=records.offsets[events.record[decisions.event]],
            row=events.row[decisions.event],
            time=events.time[decisions.event],
            # Now: after this batch numbers may be those of other names.
            feature=self._names(decisions.feature),
            runner_up=self._names(decisions.runner_up),
            score=decisions.score,
            runner_up_score=decisions.runner_up_score,
            impurity=decisions.impurity,
            totals=decisions.totals / UNIT,
            present=decisions.present / UNIT,
        )

    def _names(self, features: Int64s) -> list[Feature | None]:
        return [self._name(feature) for feature in features.tolist()]

    def _results(self, prepared: Prepared, answers: Decisions) -> Iterator[Result]:
        """Yield what is to be written, in the order of events."""
        records, events, decisions = prepared.records, prepared.events, answers
        predictions = self._predictions(records, events, decisions)
        answer = next(predictions, None)
        splits = self._splits(prepared, decisions)
        for at, decision in enumerate(_rows(decisions)):
            where = (int(events.record[decision.event]), int(events.row[decision.event]))
            while answer is not None and (answer.record, answer.row) < where:
                yield answer
                answer = next(predictions, None)
            if decision.due & SPLIT_DUE:
                yield prepared.result(decision.event, SPLIT_SEQ, splits.split(at))
            if decision.due & TREE_DUE:
                source = source_of(records, events, decision.event)
                yield prepared.result(decision.event, TREE_SEQ, self._tree(decision, source))
        while answer is not None:
            yield answer
            answer = next(predictions, None)

    def _name(self, feature: int) -> Feature | None:
        if feature == _NONE:
            return None
        return feature if self._pool.names is None else self._pool.names.name(feature).decode()

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
                "window": written(self._settings.window),
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

    def status(self) -> ModelStatus:
        """Return how large the model is."""
        pools = [self._pool, *([self._left.pool] if self._left is not None else [])]
        return (
            super()
            .status()
            ._replace(slots=sum(pool.slots for pool in pools), examples=sum(pool.live_examples for pool in pools))
        )

    def holdings(self) -> Mapping[bytes, Holdings]:
        """Return for each key the live examples that are kept, and the counts of labels and of features."""
        self.settle()
        arrays = self.arrays()
        keys, names, store = keys_of(arrays), names_of(arrays), store_of(arrays)
        counted: slots.Slots = rebuilt(slots.make(1, 1), arrays, "slots")
        counts: dict[int, list[tuple[int | bytes, int, int]]] = {}
        for row in counted.rows[: counted.counts[slots.EVER]].tolist():
            if row[slots.KEY] >= 0:
                name = name_or_id(names, row[slots.KEY] & 0xFFFFFFFF)
                counts.setdefault(row[slots.KEY] >> 32, []).append((name, row[slots.C0], row[slots.C1]))
        return {
            keys.name(index): Holdings(
                live=live_examples(store, index, names, NO_VALUES),
                remembered=remembered(store, index),
                learned=(
                    counted.heads[index, [slots.N0, slots.N1]].tolist(),
                    sorted(counts.get(index, [])),
                ),
                windowed=self._settings.window is not None,
            )
            for index in np.flatnonzero(arrays["heads"][:, ALIVE]).tolist()
        }


def _rows(decisions: Decisions) -> Iterator[_Decision]:
    columns = (
        *(decisions.event, decisions.due, decisions.feature, decisions.events),
        *(decisions.totals.T / UNIT),
        *(decisions.present.T / UNIT),
    )
    # Converted column by column: a tenth of what numpy's scalars cost one by one.
    return map(_Decision._make, zip(*(column.tolist() for column in columns), strict=True))
