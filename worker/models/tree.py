"""Models of kind `tree`: a classification tree for each key that grows with its examples, all in one pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.arrays import Int64s
from algorithms.criteria import UNIT
from algorithms.names import Interner, Names
from algorithms.splits import Op
from algorithms.trees.answers import Answers
from algorithms.trees.answers import Split as Made
from algorithms.trees.gaussians import LARGEST_VALUE
from algorithms.trees.grow import Status
from algorithms.trees.kinds import Kind, is_category
from algorithms.trees.pool import Events as Batch
from algorithms.trees.pool import TreePool
from algorithms.trees.predict import Predict
from algorithms.trees.snapshot import Tree as Snapshot
from worker.codec import Bounds, Events, Prediction, Reason, Source, Split, Tree, cut
from worker.codec.encode import Feature
from worker.log.port import Records
from worker.models.evaluation import Evaluations
from worker.models.intake import Bools, Intake, binary_detail, id_of, refusal, source_of
from worker.models.port import Outcome, Refusal, Result
from worker.settings_models import TreeSettings
from worker.status import ModelStatus

_NONE = np.zeros(0, np.int64)
_SPLIT_SEQ, _EVALUATION_SEQ, _TREE_SEQ = 0, 1, 2  # a tree's parts go on from there

_REFUSED = {
    Status.CANNOT_FORGET: (
        Reason.CANNOT_FORGET,
        "expected no delete, a tree only grows; send a tombstone to drop the key's tree, or set on_delete: ignore",
    ),
    Status.TOO_MANY_TREES: (
        Reason.TOO_MANY_KEYS,
        "expected a known key, this one is new and no more fit (bounds.keys); tombstones make room",
    ),
    Status.COUNT_OVERFLOW: (
        Reason.COUNT_OVERFLOW,
        "expected the weights of a key to sum to less than 2^42, with this one they would not",
    ),
}


class TreeModel:
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
        self._keys = Interner()
        rules = settings.evaluate
        self._evaluations = Evaluations(name, settings, rules) if rules is not None else None
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
        self._parameters: dict[str, bool | int | float | str | None] = {
            "criterion": settings.criterion,
            "delta": settings.delta,
            "kind": settings.kind,
            "policy": settings.policy,
            "tau": settings.tau,
        }

    # --- events

    def apply(self, records: Records, events: Events) -> Outcome:
        """Apply the events of a batch of records, strictly in order; a refused one changes nothing."""
        label = self._intake.labels(events)
        feature = self._intake.numbers(events, self._pool.names)
        bare = (events.op == Op.DROP) | (events.op == Op.DELETE)
        wrong, kinds = self._wrong(events, feature)
        complain = partial(self._value_detail, events, wrong, kinds)
        op, refusals = self._intake.judge(events, label, bare, wrong, complain)
        deletes = op == Op.DELETE
        if self._settings.on_delete == "ignore":
            op[deletes] = -1
        keys = self._keys.intern_all(key or b"" for key in records.keys)
        batch = Batch(
            index=np.array(keys, np.int32)[events.record],
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
        judged = np.flatnonzero(applied & (op == Op.INSERT)) if self._evaluations is not None else _NONE
        outcome = Outcome(
            results=sorted(self._results(records, events, batch, answers, judged), key=_place),
            refusals=sorted([*refusals, *_refusals(events, answers)], key=lambda r: (r.record, r.row)),
            applied={kind.name.lower(): int(np.count_nonzero(applied & (op == kind))) for kind in Op},
            changes=len(answers.splits),
            deletes_ignored=int(np.count_nonzero(deletes & (op < 0))),
            judged=len(judged),
            right=int(np.count_nonzero(answers.guess[judged] == label[judged])),
        )
        # Names and keys were interned before it was known whether their events would be accepted.
        self._pool.sweep(feature)
        routed = np.unique(np.array(keys, np.int32))
        self._keys.keep(routed, self._pool.are_alive(routed))
        return outcome

    def _wrong(self, events: Events, feature: npt.NDArray[np.uint32]) -> tuple[Bools, npt.NDArray[np.int8]]:
        """Return which values their features do not take, and the kinds of the features."""
        kinds, value = self._pool.kinds_of(feature), events.value
        wrong: Bools = np.where(kinds == Kind.BINARY, value != 1.0, ~(np.abs(value) <= LARGEST_VALUE))
        return wrong | ((kinds == Kind.NOMINAL) & ~is_category(value)), kinds

    def _value_detail(
        self, events: Events, wrong: Bools, kinds: npt.NDArray[np.int8], event: int
    ) -> tuple[Reason, str]:
        start = int(events.pointer[event])
        at = start + int(np.argmax(wrong[start : events.pointer[event + 1]]))
        value = float(events.value[at])
        if kinds[at] == Kind.BINARY:
            return Reason.NOT_BINARY, binary_detail(value)
        if kinds[at] == Kind.NOMINAL:
            return (
                Reason.NOT_A_CATEGORY,
                f"expected a whole number from 0 to 4294967295 as the value of a nominal feature, got {value!r}",
            )
        return Reason.BAD_VALUE, f"expected at most {LARGEST_VALUE:g} as the size of a value, got {value!r}"

    # --- results

    def _results(
        self, records: Records, events: Events, batch: Batch, answers: Answers, judged: Int64s
    ) -> Iterator[Result]:
        """Yield what is to be written, in any order."""

        def result(event: int, seq: int, output: Any, *, keyed: bool = True) -> Result:
            return Result(int(events.record[event]), int(events.row[event]), seq, output, keyed)

        if self._settings.emit.splits != "never":
            for made in answers.splits:
                yield result(made.event, _SPLIT_SEQ, self._split(made, source_of(records, events, made.event)))
        for event, version, tree in answers.snapshots:
            source = source_of(records, events, event)
            for number, part in enumerate(cut(self._tree(version, tree, source))):
                yield result(event, _TREE_SEQ + number, part)
        if self._evaluations is not None:
            source_at = partial(source_of, records, events)
            for event, evaluation in self._evaluations.add(judged, batch, answers, source_at):
                yield result(event, _EVALUATION_SEQ, evaluation, keyed=False)
        for event, leaf, weights in zip(
            answers.asked.tolist(), answers.leaf.tolist(), answers.weights.tolist(), strict=True
        ):
            guess = int(answers.guess[event])
            yield result(
                event,
                0,
                Prediction(
                    model=self.name,
                    id=id_of(events, event),
                    label=None if guess < 0 else self._settings.classes[guess],
                    weights=weights,
                    leaf=leaf,
                    known=guess >= 0,
                    source=source_of(records, events, event),
                ),
            )

    def _split(self, made: Made, source: Source) -> Split:
        n = int(made.totals.sum()) / UNIT
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
            branches=made.branches.tolist(),
            counts=(made.counts / UNIT).tolist(),
            classes=self._settings.classes,
            source=source,
        )

    def _tree(self, version: int, tree: Snapshot, source: Source) -> Tree:
        names: list[bytes] | None = None
        feature: list[Any] = tree.feature
        if self._pool.names is not None:
            names = sorted({name for name in tree.feature if isinstance(name, bytes)})
            place = {name: at for at, name in enumerate(names)}
            feature = [None if name is None else place[name] for name in feature]
        numeric = [kind == Kind.NUMERIC for kind in tree.kind]
        return Tree(
            model=self.name,
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
            classes=self._settings.classes,
            names=None if names is None else [name.decode() for name in names],
            parameters=self._parameters,
            source=source,
        )

    # --- state

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state as named arrays, not copied."""
        arrays = {f"keys.{field}": array for field, array in self._keys.arrays._asdict().items()}
        if self._evaluations is not None:
            arrays |= {f"evaluation.{name}": array for name, array in self._evaluations.arrays().items()}
        return arrays | self._pool.arrays()

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` of a model with the same settings returned."""
        self._keys = Interner(Names(**{field: arrays[f"keys.{field}"] for field in Names._fields}))
        if self._evaluations is not None:
            own = "evaluation."
            self._evaluations.restore({n.removeprefix(own): a for n, a in arrays.items() if n.startswith(own)})
        self._pool.restore(arrays)

    def status(self) -> ModelStatus:
        """Return how large the model is, and how good."""
        pool = self._pool
        return ModelStatus(
            self.name,
            keys=pool.alive,
            slots=pool.slots,
            examples=0,
            bytes=sum(array.nbytes for array in self.arrays().values()),
            nodes=pool.node_count,
            depth=pool.depth,
            quality=self._evaluations.quality() if self._evaluations is not None else None,
        )

    def check(self) -> None:
        """Raise AssertionError unless every invariant of the state holds. For tests."""
        self._pool.check()
        self._keys.check()
        assert self._pool.alive == len(self._keys), "a key without a tree, or a tree without a key"


def _place(result: Result) -> tuple[int, int, int]:
    return result.record, result.row, result.seq


def _feature(feature: int | bytes) -> Feature:
    return feature.decode() if isinstance(feature, bytes) else feature


def _refusals(events: Events, answers: Answers) -> Iterator[Refusal]:
    for event in np.flatnonzero(answers.status > Status.SKIPPED).tolist():
        yield refusal(events, event, *_REFUSED[Status(int(answers.status[event]))])
