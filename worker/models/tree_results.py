"""What all kinds of trees write: snapshots, predictions, evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from algorithms.core.arrays import Int32s, Int64s
from algorithms.core.criteria import UNIT
from algorithms.core.kinds import Kind
from algorithms.dynamic.pool import Answers as DynamicAnswers
from algorithms.trees.answers import Answers as TreeAnswers
from algorithms.trees.snapshot import Tree as Snapshot
from worker.codec import Events, Prediction, Source, Tree, cut
from worker.log.port import Records
from worker.models.evaluation import Evaluations, Guesses
from worker.models.intake import id_of, source_of
from worker.models.port import Result
from worker.settings.models import ClassName

SPLIT_SEQ, EVALUATION_SEQ, TREE_SEQ = 0, 1, 2  # a tree's parts go on from there
Parameters = dict[str, bool | int | float | str | None]
Answers = TreeAnswers | DynamicAnswers


class TreeResults:
    """Makes records of what a pool of trees answered.

    Parameters
    ----------
    name : str
        The model's name in the settings.
    classes : sequence of int or of str
        Label 0, label 1 and so on.
    named : bool
        Features have names.
    parameters : dict
        What snapshots tell of the model's settings.
    evaluations : Evaluations, optional
        Judges predictions.
    """

    def __init__(
        self,
        name: str,
        classes: Sequence[ClassName],
        named: bool,
        parameters: Parameters,
        evaluations: Evaluations | None,
    ) -> None:
        self._name = name
        self._classes = classes
        self._named = named
        self._parameters = parameters
        self._evaluations = evaluations

    def results(
        self, records: Records, events: Events, label: Int32s, judged: Int64s, answers: Answers
    ) -> Iterator[Result]:
        """Yield what is to be written, in any order; `judged` are the inserts that were predicted first."""
        source_at = partial(source_of, records, events)
        for event, version, tree in answers.snapshots:
            for number, part in enumerate(cut(self._tree(version, tree, source_at(event)))):
                yield result_of(events, event, TREE_SEQ + number, part)
        if self._evaluations is not None:
            guesses = Guesses(
                judged,
                label[judged],
                events.weight[judged],
                events.time[judged],
                answers.guess[judged],
                answers.loss[judged],
            )
            for event, evaluation in self._evaluations.add(guesses, source_at):
                yield result_of(events, event, EVALUATION_SEQ, evaluation, keyed=False)
        for event, leaf, weights in zip(
            answers.asked.tolist(), answers.leaf.tolist(), answers.weights.tolist(), strict=True
        ):
            guess = int(answers.guess[event])
            prediction = Prediction(
                model=self._name,
                id=id_of(events, event),
                label=None if guess < 0 else self._classes[guess],
                weights=weights,
                leaf=leaf,
                known=guess >= 0,
                source=source_at(event),
            )
            yield result_of(events, event, 0, prediction)

    def _tree(self, version: int, tree: Snapshot, source: Source) -> Tree:
        names: list[bytes] | None = None
        feature: list[Any] = tree.feature
        if self._named:
            names = sorted({name for name in tree.feature if isinstance(name, bytes)})
            place = {name: at for at, name in enumerate(names)}
            feature = [None if name is None else place[name] for name in feature]
        numeric = [kind == Kind.NUMERIC for kind in tree.kind]
        return Tree(
            model=self._name,
            version=version,
            chunk=0,
            chunks=1,
            node=tree.number.tolist(),
            parent=[-1 if parent < 0 else int(tree.number[parent]) for parent in tree.parent.tolist()],
            branch=tree.branch.tolist(),
            feature=feature,
            kind=[None if kind is None else kind.name.lower() for kind in tree.kind],
            threshold=[at if has else None for at, has in zip(tree.threshold.tolist(), numeric, strict=True)],
            counts=(tree.weight / UNIT).tolist(),
            classes=self._classes,
            names=None if names is None else [name.decode() for name in names],
            parameters=self._parameters,
            source=source,
        )


def result_of(events: Events, event: int, seq: int, output: Any, *, keyed: bool = True) -> Result:
    """Return a result that follows from an event."""
    return Result(int(events.record[event]), int(events.row[event]), seq, output, keyed)


def place(result: Result) -> tuple[int, int, int]:
    """Return what results are sorted by."""
    return result.record, result.row, result.seq
