"""A tree's snapshot in parts, where one record would be too large for a broker, and put together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

from worker.codec.encode import AnyTree, Form, Tree
from worker.codec.regression import RegressionTree
from worker.codec.result_json import to_json

PART_BYTES = 500_000  # about; brokers take a record of 1 MiB unless told otherwise
_NODE_BYTES, _COUNT_BYTES = 48, 9  # of a node without its name and counts, at most; of a count
# And feature, an index into the names.
_COLUMNS = ("node", "parent", "branch", "kind", "threshold", "counts", "n", "value", "variance")

T = TypeVar("T", Tree, RegressionTree)


def cut(tree: T, most: int = PART_BYTES, form: Form = "msgpack") -> list[T]:
    """Return a tree as parts of at most so many bytes, one node at least: itself where it fits."""
    ranges = list(_ranges(tree, most, form))
    if len(ranges) == 1:
        return [tree]
    return [_part(tree, chunk, len(ranges), rows) for chunk, rows in enumerate(ranges)]


def joined(parts: Sequence[T]) -> T:
    """Return the tree that was cut into these parts, given in order; all are of one kind."""
    first = parts[0]
    names: list[str] | None = None
    feature = [each for part in parts for each in part.feature]
    if first.names is not None:
        names = sorted({name for part in parts for name in part.names or ()}, key=str.encode)
        place = {name: at for at, name in enumerate(names)}
        feature = [
            None if each is None or part.names is None else place[part.names[each]]
            for part in parts
            for each in part.feature
        ]
    columns: Any = {
        column: [each for part in parts for each in getattr(part, column)] for column in _columns(first)
    }
    return first._replace(chunks=1, feature=feature, names=names, **columns)


def all_joined(parts: Sequence[T]) -> list[T]:
    """Return the trees that were cut into these parts, in order: one, or those of a forest."""
    return [joined(list(of_one)) for _, of_one in groupby(parts, lambda part: getattr(part, "tree", None))]


def _columns(tree: AnyTree) -> list[str]:
    return [column for column in _COLUMNS if column in tree._fields]


def _ranges(tree: AnyTree, most: int, form: Form) -> Iterator[slice]:
    start, size = 0, 0
    for at in range(len(tree.feature)):
        more = _node_bytes(tree, at) if form == "msgpack" else _json_bytes(tree, at)
        if size and size + more > most:
            yield slice(start, at)
            start, size = at, 0
        size += more
    yield slice(start, len(tree.feature))


def _node_bytes(tree: AnyTree, at: int) -> int:
    feature = tree.feature[at]
    name = len(tree.names[feature].encode()) if tree.names and feature is not None else 0
    numbers = len(tree.classes) if isinstance(tree, Tree) else 3  # n, value and variance
    return _NODE_BYTES + _COUNT_BYTES * numbers + name


def _json_bytes(tree: AnyTree, at: int) -> int:
    feature = tree.feature[at]
    name = tree.names[feature] if tree.names and feature is not None else None
    return len(to_json([name, feature, *(getattr(tree, column)[at] for column in _columns(tree))]))


def _part(tree: T, chunk: int, chunks: int, rows: slice) -> T:
    feature, names = tree.feature[rows], tree.names
    if names is not None:
        used = sorted({each for each in feature if each is not None})
        place = {number: at for at, number in enumerate(used)}
        feature = [None if each is None else place[each] for each in feature]
        names = [names[number] for number in used]
    columns: Any = {column: getattr(tree, column)[rows] for column in _columns(tree)}
    return tree._replace(chunk=chunk, chunks=chunks, feature=feature, names=names, **columns)
