"""What all kinds of trees write: snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from algorithms.core.criteria import UNIT
from algorithms.core.kinds import Kind
from algorithms.trees.snapshot import NumberTree as RegressionSnapshot
from algorithms.trees.snapshot import Tree as Snapshot
from worker.codec import RegressionTree, Source, Tree, cut
from worker.models.classifier import TREE_SEQ
from worker.models.port import Result
from worker.settings.models import ClassName

Parameters = dict[str, bool | int | float | str | None]
T = TypeVar("T", Tree, RegressionTree)


class TreeResults:
    """Makes records of the trees of a pool.

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
    """

    def __init__(self, name: str, classes: Sequence[ClassName], named: bool, parameters: Parameters) -> None:
        self._name = name
        self._classes = classes
        self._named = named
        self._parameters = parameters

    def snapshots(
        self,
        result_of: Callable[[int, int, Tree], Result],
        due: Iterable[tuple[Any, ...]],
        source_at: Callable[[int], Source],
    ) -> Iterator[Result]:
        """Yield those that are due, in as many parts as each takes.

        Of each there is told: event, version, a tree or all of a forest; of a forest whose votes weigh differently
        their weights.
        """
        for event, version, found, *weights in due:
            source = source_at(event)
            if isinstance(found, list):
                told = weights[0] if weights else [1.0] * len(found)
                trees = [
                    self.record(version, tree, source)._replace(tree=number, trees=len(found), weight=weight)
                    for number, (tree, weight) in enumerate(zip(found, told, strict=True))
                ]
            else:
                trees = [self.record(version, found, source)]
            yield from in_parts(result_of, event, trees)

    def record(self, version: int, tree: Snapshot, source: Source) -> Tree:
        """Return the snapshot of a tree."""
        return Tree(
            model=self._name,
            version=version,
            chunk=0,
            chunks=1,
            **structure(tree, named=self._named),
            counts=(tree.weight / UNIT).tolist(),
            classes=self._classes,
            parameters=self._parameters,
            source=source,
        )


def structure(tree: Snapshot | RegressionSnapshot, *, named: bool) -> dict[str, Any]:
    """Return the fields of a record that say what the nodes of a tree are and test, features by name or not."""
    names: list[bytes] | None = None
    feature: list[Any] = tree.feature
    if named:
        names = sorted({name for name in tree.feature if isinstance(name, bytes)})
        place = {name: at for at, name in enumerate(names)}
        feature = [None if name is None else place[name] for name in feature]
    numeric = [kind == Kind.NUMERIC for kind in tree.kind]
    return {
        "node": tree.number.tolist(),
        "parent": [-1 if parent < 0 else int(tree.number[parent]) for parent in tree.parent.tolist()],
        "branch": tree.branch.tolist(),
        "feature": feature,
        "kind": [None if kind is None else kind.name.lower() for kind in tree.kind],
        "threshold": [at if has else None for at, has in zip(tree.threshold.tolist(), numeric, strict=True)],
        "names": None if names is None else [name.decode() for name in names],
    }


def in_parts(result_of: Callable[[int, int, T], Result], event: int, trees: Iterable[T]) -> Iterator[Result]:
    """Yield snapshots that follow from an event, each in as many parts as it takes."""
    parts = (part for tree in trees for part in cut(tree))
    for number, part in enumerate(parts, TREE_SEQ):
        yield result_of(event, number, part)
