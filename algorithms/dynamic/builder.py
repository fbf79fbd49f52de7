"""`build_tree`: the greedy tree of a batch of sparse examples, as paper 003 builds it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Float64s, Int32s, Int64s, UInt32s, int64
from algorithms.core.canonical import Canonicaliser, plain
from algorithms.core.criteria import UNIT, make_criterion
from algorithms.core.events import Events, Op, Status
from algorithms.core.fixed_point import MAX_TOTAL
from algorithms.core.hashing import mix
from algorithms.core.jit import jit
from algorithms.core.kinds import BINARY, Kind
from algorithms.core.names import NO_NAMES, Names
from algorithms.core.rows import Rows
from algorithms.core.schema import Kinds, Schema, kind_of
from algorithms.dynamic import best_first, build, nodes, segment, vocabulary
from algorithms.dynamic.canonical import TERMS, check_kinds
from algorithms.dynamic.examples import of_table
from algorithms.dynamic.nodes import NONE
from algorithms.dynamic.slack import NO_SLACK
from algorithms.dynamic.splitter import Way
from algorithms.dynamic.terms import Terms
from algorithms.trees.snapshot import Tree

UNBOUNDED = 1 << 30  # a depth that no tree reaches
_TABLED = 1 << 24  # features below it are looked up in a table


class Sample(NamedTuple):
    """Examples in CSR columns."""

    pointer: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[entries], any ids, in any order
    value: Float64s  # float64[entries], finite; 0 is the same as absent
    label: Int64s  # int64[n], 0 to classes - 1
    weight: Int64s  # int64[n], in units of 2^-20, above 0


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
    sample: Sample,
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
    sample : Sample
        The examples; their order does not matter without `bootstrap`.
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
    sorted anew in each node.
    """
    check_terms(criterion, classes, alpha, min_examples, max_depth)
    check_kinds([default, *(kinds or {}).values()])
    for name, bound in (("max_leaves", max_leaves), ("max_features", max_features)):
        if bound is not None and bound < 1:
            raise ValueError(f"expected {name} of at least 1, got {bound}")
    total = sum(sample.weight.tolist())
    schema = Schema(default, kinds or {})
    entries = _checked(sample, total, classes, schema)
    if bootstrap:
        entries = _drawn(entries, _salt(seed, "example"))
        total = sum(entries.weight.tolist())
    n = len(entries.label)
    known = _distinct(entries.feature)
    kind = schema.of(known)
    words = vocabulary.make(max(len(known), 1))
    columns = np.empty(len(known), np.int32)
    _learn(words, NO_NAMES, known, kind.astype(np.int64), columns)
    plain = not (kind == Kind.NUMERIC).any()
    draws = max_features is not None and max_features < len(known)
    scratch = segment.make(n, len(entries.feature), max(len(known), 1), classes, plain, draws=draws)
    if len(known) and known[-1] < _TABLED:
        column_of = np.full(known[-1] + 1, NONE, np.int32)
        column_of[known] = columns
        scratch = scratch._replace(column_of=column_of)
    scratch.rows[:] = np.arange(n)
    scratch.sizes[segment.HELD] = n
    examples = of_table(
        entries.pointer, entries.feature, entries.value, entries.label.astype(np.int64), entries.weight
    )
    drawn = int(max_features or 0) if draws else 0
    terms = Terms(alpha, min_examples, max_depth, int(way), drawn, _salt(seed, "feature"))
    made = make_criterion(criterion, total // UNIT)
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


def _drawn(sample: Sample, salt: int) -> Sample:
    """Return the examples of a sample that are drawn, weighing as many times as they are; see `_draw_rows`."""
    n = len(sample.label)
    times = np.zeros(n, np.int64)
    _draw_rows(times, salt)
    total = sum(weight * count for weight, count in zip(sample.weight.tolist(), times.tolist(), strict=True))
    if total >= MAX_TOTAL:
        raise ValueError(f"expected weights below {MAX_TOTAL} units of 2^-20 in all, drawn are {total}")
    kept = times > 0
    sizes = np.diff(sample.pointer)
    of_kept = np.repeat(kept, sizes)
    return Sample(
        pointer=np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64),
        feature=sample.feature[of_kept],
        value=sample.value[of_kept],
        label=sample.label[kept],
        weight=sample.weight[kept] * times[kept],
    )


@jit
def _draw_rows(times: Int64s, salt: int) -> None:
    """Draw as many examples as there are, with replacement; count how often each is."""
    n = int64(times.size)
    for draw in range(n):
        times[(mix(salt, draw) * n) >> 32] += 1


def _distinct(feature: UInt32s) -> Int64s:
    """Return all features, ascending."""
    if len(feature) and (most := int(feature.max())) < _TABLED:
        is_there = np.zeros(most + 1, np.bool_)
        _mark(is_there, feature)
        return np.flatnonzero(is_there)
    return np.unique(feature).astype(np.int64)


def _checked(sample: Sample, total: int, classes: int, schema: Schema) -> Sample:
    """Return a sample whose features are canonical; raise ValueError where it is none."""
    n = len(sample.label)
    if len(sample.pointer) != n + 1 or len(sample.weight) != n:
        raise ValueError(
            f"expected {n} weights and {n + 1} pointers for {n} labels, got {len(sample.weight)} and "
            f"{len(sample.pointer)}"
        )
    if n and not (0 <= int(sample.label.min()) and int(sample.label.max()) < classes):
        raise ValueError(f"expected labels from 0 to {classes - 1}, got {sorted(set(sample.label.tolist()))}")
    if n and int(sample.weight.min()) < 1:
        raise ValueError(f"expected weights above 0, got {int(sample.weight.min())}")
    if total >= MAX_TOTAL:
        raise ValueError(f"expected weights below {MAX_TOTAL} units of 2^-20 in all, got {total}")
    schema.intern(None)
    inserts = np.full(n, Op.INSERT, np.int8)
    events = plain(Events.of(inserts, sample.label, sample.pointer, sample.feature, sample.value))
    if _is_canonical(schema.known, events.pointer, events.feature, events.value):
        return sample._replace(pointer=events.pointer, feature=events.feature, value=events.value)
    if len(odd := np.flatnonzero(~np.isfinite(sample.value))):
        example = int(np.searchsorted(sample.pointer, odd[0], side="right")) - 1
        raise ValueError(f"expected finite values, example {example} has another")
    entries = Canonicaliser(TERMS)(events, schema.known)
    if len(twice := np.flatnonzero(entries.status == Status.REPEATED_FEATURE)):
        raise ValueError(f"example {twice[0]} lists a feature twice")
    return sample._replace(pointer=entries.pointer, feature=entries.feature, value=entries.value)


@jit
def _is_canonical(known: Kinds, pointer: Int64s, feature: UInt32s, value: Float64s) -> bool:
    """Return whether features ascend and values are what `Canonicaliser` makes of them: most samples come so."""
    if pointer[0] != 0 or pointer[pointer.size - 1] != feature.size:
        return False
    for i in range(pointer.size - 1):
        before = int64(-1)
        for at in range(pointer[i], pointer[i + 1]):
            now = int64(feature[at])
            if now <= before or not 0.0 < abs(value[at]) < math.inf:
                return False
            if value[at] != 1.0 and kind_of(known, now) == BINARY:
                return False
            before = now
    return True


@jit
def _mark(is_there: npt.NDArray[np.bool_], feature: UInt32s) -> None:
    for each in feature:
        is_there[each] = True


@jit
def _learn(words: Rows, names: Names, features: Int64s, kinds: Int64s, columns: Int32s) -> None:
    """Give each of these features, all of them new, its column."""
    for at in range(features.size):
        columns[at] = vocabulary.enter(words, names, features[at], kinds[at])
