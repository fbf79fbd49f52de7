"""Models of kind `split` whose labels are numbers: the best split by variance of each key's examples."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from algorithms.core.scale import Labels
from algorithms.splits.kernel import SPLIT_DUE, TREE_DUE, Decisions
from algorithms.splits.numbers import NumberSplitPool
from worker.codec import Bounds, RegressionPrediction, RegressionSplit, RegressionTree, Source
from worker.codec.encode import Feature
from worker.models.base import Prepared
from worker.models.intake import Intake, RangeIntake, id_of, result_of, source_of
from worker.models.port import Outcome, Result
from worker.models.split import SPLIT_SEQ, TREE_SEQ, SplitModel, options_of
from worker.settings.models import SplitSettings
from worker.settings.values import written

Weights = tuple[int, int]


class NumberSplitModel(SplitModel):
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

    def _made(self, settings: SplitSettings, bounds: Bounds) -> tuple[NumberSplitPool, Intake]:
        self._scale = settings.scale
        pool = NumberSplitPool(self._scale, **options_of(settings, bounds))
        return pool, RangeIntake(self._scale, settings.features)

    def _outcome(self, prepared: Prepared, answers: Decisions) -> Outcome:
        return Outcome(list(self._results(prepared, answers)), changes=answers.changes)

    # --- results

    def _results(self, prepared: Prepared, answers: Decisions) -> Iterator[Result]:
        """Yield what is to be written, in the order of events."""
        found = [*self._decided(prepared, answers), *self._answered(prepared, answers)]
        yield from sorted(found, key=attrgetter("place"))

    def _decided(self, prepared: Prepared, answers: Decisions) -> Iterator[Result]:
        """Yield splits and snapshots that are due."""
        columns = (
            *(answers.event, answers.due, answers.feature, answers.runner_up, answers.events),
            *(answers.totals, answers.present, answers.next_present),
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for event, due, feature, runner_up, version, totals, present, next_present in rows:
            source = source_of(prepared.records, prepared.events, event)
            found = _Found(self._name(feature), self._name(runner_up), totals, present, next_present)
            if due & SPLIT_DUE:
                yield prepared.result(event, SPLIT_SEQ, self._number_split(found, source))
            if due & TREE_DUE:
                yield prepared.result(event, TREE_SEQ, self._number_tree(found, version, source))

    def _number_split(self, found: _Found, source: Source) -> RegressionSplit:
        whole, *sides = self._labels(found)
        reduction = self._scale.reduction
        return RegressionSplit(
            model=self.name,
            node=0,
            feature=found.feature,
            kind=None if found.feature is None else "binary",
            threshold=None,
            merit=reduction(found.totals, found.present),
            runner_up_merit=reduction(found.totals, found.next_present),
            n=float(whole.weight),
            value=_value(whole),
            variance=None,
            branches=(0, 1),
            labels=[(float(side.weight), _value(side), None) for side in sides],
            source=source,
            runner_up=found.runner_up,
        )

    def _number_tree(self, found: _Found, version: int, source: Source) -> RegressionTree:
        """Return the split as a tree: a root and, where something splits it, two leaves."""
        is_whole = found.feature is None
        named = self._pool.names is not None
        nodes = self._labels(found)[: 1 if is_whole else 3]
        feature = 0 if named else found.feature
        assert not isinstance(feature, str)
        settings = self._settings
        return RegressionTree(
            model=self.name,
            version=version,
            chunk=0,
            chunks=1,
            node=[0, 1, 2][: len(nodes)],
            parent=[-1, 0, 0][: len(nodes)],
            branch=[0, 0, 1][: len(nodes)],
            feature=[None if is_whole else feature, None, None][: len(nodes)],
            kind=[None if is_whole else "binary", None, None][: len(nodes)],
            threshold=[None] * len(nodes),
            n=[float(each.weight) for each in nodes],
            value=[_value(each) for each in nodes],
            variance=[None] * len(nodes),
            names=None if not named else [] if is_whole else [str(found.feature)],
            parameters={
                "criterion": settings.criterion,
                "kind": settings.kind,
                "label_unit": settings.label_unit,
                "window": written(settings.window),
            },
            source=source,
        )

    def _labels(self, found: _Found) -> tuple[Labels, Labels, Labels]:
        """Return what is known of the labels of all, of those without the feature and of those with it."""
        (n0, n1), (a, b) = found.totals, found.present
        parts = ((n0, n1), (n0 - a, n1 - b), (a, b))
        whole, absent, present = map(self._scale.labels, parts)
        return whole, absent, present

    def _answered(self, prepared: Prepared, answers: Decisions) -> Iterator[Result]:
        rows = zip(answers.asked.tolist(), answers.leaf.tolist(), answers.weights.tolist(), strict=True)
        for event, leaf, weights in rows:
            labels = self._scale.labels(weights)
            prediction = RegressionPrediction(
                model=self.name,
                id=id_of(prepared.events, event),
                value=labels.mean if labels.weight else None,
                n=float(labels.weight),
                deviation=None,
                leaf=leaf,
                known=labels.weight > 0,
                source=source_of(prepared.records, prepared.events, event),
            )
            yield result_of(prepared.events, event, 0, prediction)


class _Found(NamedTuple):
    """What is decided after an event."""

    feature: Feature | None
    runner_up: Feature | None
    totals: Weights  # of both classes of the index, from which follow the examples and the sum of their labels
    present: Weights
    next_present: Weights


def _value(labels: Labels) -> float:
    return labels.mean if labels.weight else 0.0
