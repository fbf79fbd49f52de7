"""`build_tree`: the greedy tree of a batch of sparse examples, as paper 003 builds it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int64s, UInt32s
from algorithms.core.criteria import UNIT, make_criterion
from algorithms.core.jit import jit
from algorithms.core.kinds import Kind
from algorithms.core.names import NO_NAMES, Names
from algorithms.core.rows import Rows
from algorithms.core.schema import Schema
from algorithms.dynamic import best_first, build, nodes, segment, stump, vocabulary
from algorithms.dynamic.canonical import check_kinds
from algorithms.dynamic.examples import of_table
from algorithms.dynamic.nodes import NONE
from algorithms.dynamic.samples import (
    ColumnSample,
    Sample,
    check_examples,
    checked,
    drawn,
    plain_columns,
    rows_of,
    weight_of,
)
from algorithms.dynamic.slack import NO_SLACK
from algorithms.dynamic.splitter import Way
from algorithms.dynamic.terms import Terms
from algorithms.trees.snapshot import Tree

UNBOUNDED = 1 << 30  # a depth that no tree reaches
_TABLED = 1 << 24  # features below it are looked up in a table


def check_terms(criterion: str, classes: int, alpha: float, min_examples: int, max_depth: int) -> None:
    """Raise ValueError where a tree cannot be built by these terms."""
    if criterion not in ("entropy", "gini"):
        raise ValueError(f"expected the criterion entropy or gini, got {criterion!r}")
    if classes < 2:
        raise ValueError(f"expected at least 2 classes, got {classes}")
    if not 0.0 <= alpha < np.inf:
        raise ValueError(f"expected a finite alpha of at least 0, got {alpha}")
    check_sizes(min_examples, max_depth)


def check_sizes(min_examples: int, max_depth: int) -> None:
    """Raise ValueError where a node of any size, or at any depth, would be a leaf by these."""
    if min_examples < 1 or max_depth < 0:
        raise ValueError(
            f"expected min_examples of at least 1 and max_depth of at least 0, got {min_examples} and {max_depth}"
        )


def build_tree(
    sample: Sample | ColumnSample,
    *,
    classes: int = 2,
    criterion: str = "gini",
    default: Kind = Kind.BINARY,
    kinds: Mapping[int, Kind] | None = None,
    alpha: float = 0.0,
    min_examples: int = 1,
    max_depth: int = UNBOUNDED,
    max_leaves: int | None = None,
    max_features: int | None = None,
    bootstrap: bool = False,
    seed: int = 0,
    way: Way = Way.ORDERED,
) -> Tree:
    """Build a tree on a batch of examples: BUILD of paper 002 with the splitter of paper 003.

    Parameters
    ----------
    sample : Sample or ColumnSample
        The examples, by rows or by columns; their order does not matter without `bootstrap`.
    classes : int
        Labels are 0 to classes - 1.
    criterion : str
        ``gini`` or ``entropy``.
    default, kinds : Kind, Mapping[int, Kind]
        What values of features mean, ``BINARY`` or ``NUMERIC``.
    alpha : float
        A node whose impurity (Gini index, or entropy in bits) is at most half of it is a leaf.
    min_examples, max_depth : int
        k and h of paper 002: a node of at most k examples, or so deep, is a leaf.
    max_leaves : int, optional
        The tree grows where a split gains most (weight times impurity; then where a node was made first), until
        it has so many leaves.
    max_features : int, optional
        A node looks at so many features alone, drawn from those that part its examples.
    bootstrap : bool
        The tree is that of n examples which are drawn with replacement. One that is drawn twice weighs twice, and
        is one example to `min_examples`.
    seed : int
        What is drawn depends on it, on the ids of features, and with `bootstrap` on the order of the examples.
    way : Way
        How the non-zeros of a column are found: the tree is the same.

    Returns
    -------
    Tree
        Nodes in preorder. Examples of one class, and examples with the same features, are a leaf. Where no split
        gains anything the lowest feature and threshold are taken, as two features may only tell together.

    Raises
    ------
    ValueError
        Where the sample or a parameter is not as said.

    Notes
    -----
    O(entries) a level, and a sort of each numeric column. With the other ways a numeric column is looked up and
    sorted anew in each node. A tree of one split is made from columns alone; for others rows are made of them
    first.
    """
    check_terms(criterion, classes, alpha, min_examples, max_depth)
    check_kinds([default, *(kinds or {}).values()])
    for name, bound in (("max_leaves", max_leaves), ("max_features", max_features)):
        if bound is not None and bound < 1:
            raise ValueError(f"expected {name} of at least 1, got {bound}")
    total = weight_of(sample)
    check_examples(sample, total, classes)
    schema = Schema(default, kinds or {})
    made = make_criterion(criterion, total // UNIT)
    if isinstance(sample, ColumnSample):
        sample = plain_columns(sample)
        if max_depth <= 1 and max_features is None and not bootstrap:
            is_leaf = max_depth < 1 or len(sample.label) <= min_examples or max_leaves == 1
            tree = stump.build_stump(made, sample, classes, schema, alpha=alpha, is_leaf=is_leaf)
            if tree is not None:
                return tree
        sample = rows_of(sample)
    entries = checked(sample, schema)
    if bootstrap:
        entries = drawn(entries, _salt(seed, "example"))
        made = make_criterion(criterion, weight_of(entries) // UNIT)
    n = len(entries.label)
    known = _distinct(entries.feature)
    kind = schema.of(known)
    plain = not (kind == Kind.NUMERIC).any()
    draws = max_features is not None and max_features < len(known)
    scratch = segment.make(n, len(entries.feature), max(len(known), 1), classes, plain, draws=draws)
    if len(known) and known[-1] < _TABLED:
        words = vocabulary.listed(known, kind)
        column_of = np.full(known[-1] + 1, NONE, np.int32)
        column_of[known] = np.arange(len(known))
        scratch = scratch._replace(column_of=column_of)
    else:
        words = vocabulary.make(max(len(known), 1))
        _learn(words, NO_NAMES, known, kind.astype(np.int64))
    scratch.rows[:] = np.arange(n)
    scratch.sizes[segment.HELD] = n
    examples = of_table(
        entries.pointer, entries.feature, entries.value, entries.label.astype(np.int64), entries.weight
    )
    looked_at = int(max_features or 0) if draws else 0
    terms = Terms(alpha, min_examples, max_depth, int(way), looked_at, _salt(seed, "feature"))
    capacity = int(nodes.needed(n, max_depth))
    if max_leaves is not None and 2 * max_leaves - 1 < capacity:
        state = nodes.make(2 * max_leaves - 1, classes)
        waiting = best_first.frontier(2 * max_leaves - 1)
        root = best_first.build_best_first(
            made, state, scratch, waiting, examples, words, NO_NAMES, terms, max_leaves
        )
    else:  # no tree has more leaves, and the order of growing does not matter
        state = nodes.make(capacity, classes)
        root, _ = build.build(made, state, NO_SLACK, scratch, examples, words, NO_NAMES, terms, NONE, 0, 0, 0)
    return nodes.snapshot(state, int(root))


def _salt(seed: int, what: str) -> int:
    """Return the 32 bits of a seed by which something is drawn."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {what}".encode(), digest_size=4).digest(), "little")


def _distinct(feature: UInt32s) -> Int64s:
    """Return all features, ascending."""
    if len(feature) and (most := int(feature.max())) < _TABLED:
        is_there = np.zeros(most + 1, np.bool_)
        _mark(is_there, feature)
        return np.flatnonzero(is_there)
    return np.unique(feature).astype(np.int64)


@jit
def _mark(is_there: npt.NDArray[np.bool_], feature: UInt32s) -> None:
    for each in feature:
        is_there[each] = True


@jit
def _learn(words: Rows, names: Names, features: Int64s, kinds: Int64s) -> None:
    """Give each of these features, all of them new, its column."""
    for at in range(features.size):
        vocabulary.enter(words, names, features[at], kinds[at])
