"""Models of kind `split` with more than two classes, or with features that are categories or numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import UInt32s
from algorithms.core.events import OnDuplicate
from algorithms.core.fixed_point import UNIT
from algorithms.core.kinds import Kind
from algorithms.core.names import name_or_id
from algorithms.core.stored import rebuilt
from algorithms.mixed import questions
from algorithms.mixed.heads import ALIVE, RARE, ROOT
from algorithms.mixed.kernel import SPLIT_DUE, TREE_DUE
from algorithms.mixed.pool import Decisions, MixedSplitPool
from algorithms.splits.slots import NONE
from worker.codec import Bounds, Events, Prediction, Source, Split, Tree
from worker.codec.encode import Feature
from worker.models.awaited import Awaited
from worker.models.base import PoolModel, Prepared
from worker.models.holdings import Holdings, keys_of, live_examples, names_of, remembered, store_of
from worker.models.intake import ClassIntake, id_of, result_of, source_of
from worker.models.port import Outcome, Result
from worker.models.values import Values, checked_values
from worker.settings.models import SplitSettings
from worker.settings.values import ms_of, number_of, span_of, written
from worker.watching.status import ModelStatus

_SPLIT_SEQ, _TREE_SEQ = 0, 1
_WORDS = {Kind.BINARY: "binary", Kind.NOMINAL: "category", Kind.NUMERIC: "numeric"}


class _Decision(NamedTuple):
    """One row of `Decisions` in Python's own numbers, weights in examples."""

    event: int
    due: int
    feature: Feature | None
    kind: str | None
    threshold: float | None
    runner_up: Feature | None
    events: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    score: float
    runner_up_score: float
    impurity: float

    @property
    def n(self) -> float:
        """The weight of all."""
        return sum(self.low) + sum(self.high)


class MixedSplitModel(PoolModel[MixedSplitPool, Decisions]):
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
        default, kinds = settings.feature_kinds
        pool = MixedSplitPool(
            classes=len(settings.classes),
            criterion=settings.criterion,
            default=default,
            kinds=kinds,
            window=number_of(settings.window),
            span=ms_of(settings.window),
            on_duplicate=OnDuplicate[settings.on_duplicate.upper()],
            names=settings.features == "names",
            splits=settings.emit.splits.due,
            trees=settings.emit.snapshots.due,
            max_keys=bounds.keys,
            max_live_ids=bounds.live_ids,
        )
        intake = ClassIntake(settings.classes, settings.features)
        awaited = Awaited(settings.classes, kinds, complete=settings.names_all_features)
        super().__init__(name, intake, pool, awaited, settings.expire, span_of(settings.window))
        self._settings = settings

    # --- events

    def _checked(self, feature: UInt32s, events: Events) -> Values:
        return checked_values(self._pool.kinds_of(feature), events.value)

    def _outcome(self, prepared: Prepared, answers: Decisions) -> Outcome:
        results = [*self._decided(prepared, answers), *self._predictions(prepared, answers)]
        return Outcome(sorted(results, key=attrgetter("place")), changes=answers.changes)

    # --- results

    def _name(self, feature: int) -> Feature | None:
        if feature == NONE:
            return None
        return feature if self._pool.names is None else self._pool.names.name(feature).decode()

    def _rows(self, decisions: Decisions) -> Iterator[_Decision]:
        columns = (
            *(decisions.event, decisions.due, decisions.feature, decisions.kind, decisions.threshold),
            *(decisions.runner_up, decisions.events),
            *((decisions.totals - decisions.high) / UNIT, decisions.high / UNIT),
            *(decisions.score, decisions.runner_up_score, decisions.impurity),
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for event, due, feature, kind, threshold, runner_up, events, low, high, *scores in rows:
            yield _Decision(
                event,
                due,
                self._name(feature),
                None if feature == NONE else _WORDS[Kind(kind)],
                None if feature == NONE or kind == Kind.BINARY else threshold,
                self._name(runner_up),
                events,
                tuple(low),
                tuple(high),
                *scores,
            )

    def _decided(self, prepared: Prepared, answers: Decisions) -> Iterator[Result]:
        """Yield splits and snapshots that are due."""
        for decision in self._rows(answers):
            source = source_of(prepared.records, prepared.events, decision.event)
            for bit, seq, record in ((SPLIT_DUE, _SPLIT_SEQ, self._split), (TREE_DUE, _TREE_SEQ, self._tree)):
                if decision.due & bit:
                    yield prepared.result(decision.event, seq, record(decision, source))

    def _split(self, decision: _Decision, source: Source) -> Split:
        n = decision.n
        return Split(
            model=self.name,
            node=0,
            feature=decision.feature,
            kind=decision.kind,
            threshold=decision.threshold,
            criterion=self._settings.criterion,
            score=decision.score / n if n else 0.0,
            gain=(decision.impurity - decision.score) / n if n else 0.0,
            runner_up=decision.runner_up,
            runner_up_gain=(
                None if decision.runner_up is None else (decision.impurity - decision.runner_up_score) / n
            ),
            n=n,
            branches=(0, 1),
            counts=(decision.low, decision.high),
            classes=self._settings.classes,
            source=source,
        )

    def _tree(self, decision: _Decision, source: Source) -> Tree:
        """Return the split as a tree: a root and, where something splits it, two leaves."""
        whole = decision.feature is None
        named = self._pool.names is not None
        totals = tuple(low + high for low, high in zip(decision.low, decision.high, strict=True))
        feature = 0 if named else decision.feature
        assert not isinstance(feature, str)
        return Tree(
            model=self.name,
            version=decision.events,
            chunk=0,
            chunks=1,
            node=[0] if whole else [0, 1, 2],
            parent=[-1] if whole else [-1, 0, 0],
            branch=[0] if whole else [0, 0, 1],
            feature=[None] if whole else [feature, None, None],
            kind=[None] if whole else [decision.kind, None, None],
            threshold=[None] if whole else [decision.threshold, None, None],
            counts=[totals] if whole else [totals, decision.low, decision.high],
            classes=self._settings.classes,
            names=None if not named else [] if whole else [str(decision.feature)],
            parameters={
                "criterion": self._settings.criterion,
                "finder": self._settings.finder,
                "kind": self._settings.kind,
                "window": written(self._settings.window),
            },
            source=source,
        )

    def _predictions(self, prepared: Prepared, answers: Decisions) -> Iterator[Result]:
        events, classes = prepared.events, self._settings.classes
        shares, best = (answers.weights / UNIT).tolist(), answers.weights.argmax(axis=1).tolist()
        rows = zip(answers.asked.tolist(), answers.leaf.tolist(), shares, best, strict=True)
        for event, leaf, weights, label in rows:
            known = any(weights)
            prediction = Prediction(
                model=self.name,
                id=id_of(events, event),
                label=classes[label] if known else None,
                weights=weights,
                leaf=leaf,
                known=known,
                source=source_of(prepared.records, events, event),
            )
            yield result_of(events, event, 0, prediction)

    # --- state

    def status(self) -> ModelStatus:
        """Return how large the model is."""
        return super().status()._replace(slots=self._pool.slots, examples=self._pool.live_examples)

    def holdings(self) -> Mapping[bytes, Holdings]:
        """Return for each key the live examples, and the weights of labels, also at each value of a feature."""
        arrays = self.arrays()
        keys, names, store = keys_of(arrays), names_of(arrays), store_of(arrays)
        counted = rebuilt(questions.make(1, 1, len(self._settings.classes)), arrays, "questions")
        learned: dict[int, list[tuple[int | bytes, float, list[int]]]] = {}
        for index, roots in enumerate(arrays["heads"][:, [ROOT, RARE]].tolist()):
            for feature, value, weights in questions.told(counted, roots):
                learned.setdefault(index, []).append((name_or_id(names, feature), value, weights))
        return {
            keys.name(index): Holdings(
                live=live_examples(store, index, names, arrays["values"]),
                remembered=remembered(store, index),
                learned=(arrays["totals"][index].tolist(), sorted(learned.get(index, []))),
                windowed=self._settings.window is not None,
            )
            for index in np.flatnonzero(arrays["heads"][:, ALIVE]).tolist()
        }
