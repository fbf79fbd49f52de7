"""`build_regression_tree`: the greedy tree of a batch of sparse examples whose labels are numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int32s, Int64s, UInt32s
from algorithms.core.canonical import Canonicaliser, plain
from algorithms.core.canonical import Terms as Values
from algorithms.core.canonical_rows import are_canonical
from algorithms.core.events import Events, Op, Status
from algorithms.core.fixed_point import UNIT
from algorithms.core.given import check_columns
from algorithms.core.kinds import BINARY, Kind
from algorithms.core.schema import Schema
from algorithms.regression import batch
from algorithms.regression.sorted_columns import scratch
from algorithms.trees.gaussians import LARGEST_VALUE
from algorithms.trees.snapshot import NumberTree as Tree

UNBOUNDED = 1 << 30  # a depth that no tree reaches
_SUM_BITS = 61  # of the sum of all labels
_LABEL_BITS = 50  # of one
_TABLED = 1 << 24  # features below it are looked up in a table


class NumberSample(NamedTuple):
    """Examples in CSR columns."""

    pointer: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[entries], any ids, in any order
    value: Float64s  # float64[entries], finite; 0 is the same as absent
    label: Float64s  # float64[n], finite, up to 1e140 in size
    weight: Int64s  # int64[n], in units of 2^-20, above 0


def build_regression_tree(
    sample: NumberSample,
    *,
    unit: float | None = None,
    default: Kind = Kind.BINARY,
    kinds: Mapping[int, Kind] | None = None,
    min_examples: int = 1,
    max_depth: int = UNBOUNDED,
) -> Tree:
    """Build the tree that reduces the variance of labels most at each node.

    Parameters
    ----------
    sample : NumberSample
        The examples; the order of them matters to the last bits of variances alone.
    unit : float, optional
        Labels are learned as the nearest multiple of it above the least one. Without it, it is as small as sums
        that are exact allow: the range of labels by 2^50, or less where weights are many.
    default, kinds : Kind, Mapping[int, Kind]
        What values of features mean, ``BINARY`` or ``NUMERIC``.
    min_examples, max_depth : int
        A node of at most so many examples, or so deep, is a leaf.

    Returns
    -------
    Tree
        Nodes in preorder. Examples with one label, and examples with the same features, are a leaf. Of splits that
        gain the same the lowest feature and then the lowest threshold is taken, also where none gains anything,
        as two features may only tell together.

    Raises
    ------
    ValueError
        Where the sample or a parameter is not as said.

    Notes
    -----
    O(entries) to put those that are not binary in order, and then a level. Gains are computed from whole numbers:
    where these are below 2^53, as labels in a coarse `unit` are, what gains the same ties.
    """
    if min_examples < 1 or max_depth < 0:
        raise ValueError(
            f"expected min_examples of at least 1 and max_depth of at least 0, got {min_examples} and {max_depth}"
        )
    if not {default, *(kinds or {}).values()} <= {Kind.BINARY, Kind.NUMERIC}:
        raise ValueError("expected kinds of features BINARY or NUMERIC, got others")
    entries = _checked(sample, Schema(default, kinds or {}))
    n = len(entries.label)
    low = float(entries.label.min()) if n else 0.0
    weight, per_weight = _divided(entries.weight)
    steps, unit = _steps(entries.label, low, sum(weight.tolist()), unit)
    known = _numbered(entries)
    examples = batch.Examples(steps, weight, np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros(n, np.int8))
    columns = _columns(entries, known)
    most = min(n, 1 << min(max_depth, _SUM_BITS))  # nodes of a level
    nodes = batch.make_nodes(max(2 * most - 1, 0))
    size, made = (1, 1) if n else (0, 0)
    level, following = batch.make_level(most), batch.make_level(most)
    scan = batch.Scan(np.zeros((most, 6), np.int64), np.zeros((most, 2)), np.zeros(most, np.int64))
    if n:
        nodes.parent[0] = batch.NONE
    while size:
        if batch.describe(examples, level, nodes, size, min_examples, max_depth):
            batch.scan_all(columns, examples, level, scan)
        size, made = batch.divide(columns, examples, level, following, nodes, size, made)
        level, following = following, level
    return _tree(nodes, made, known.feature, entries.kind_of, low, unit, per_weight)


class _Entries(NamedTuple):
    """A sample whose features are canonical."""

    pointer: Int64s
    feature: UInt32s
    value: Float64s
    label: Float64s
    weight: Int64s
    entries: Int64s  # int64[features], how many each has; empty where these are too many for a table
    kind_of: Schema


def _checked(sample: NumberSample, schema: Schema) -> _Entries:
    """Return a sample whose features are canonical; raise ValueError where it is none."""
    n = len(sample.label)
    if len(sample.pointer) != n + 1 or len(sample.weight) != n:
        raise ValueError(
            f"expected {n} weights and {n + 1} pointers for {n} labels, got {len(sample.weight)} and "
            f"{len(sample.pointer)}"
        )
    if not (np.abs(sample.label) <= LARGEST_VALUE).all():
        raise ValueError(f"expected labels up to {LARGEST_VALUE:g} in size, got another")
    inserts, label = np.full(n, Op.INSERT, np.int8), np.zeros(n, np.int64)
    given = Events.of(inserts, label, sample.pointer, sample.feature, sample.value, weight=sample.weight)
    check_columns(given, np.int64, None)
    if n and int(sample.weight.min()) < 1:
        raise ValueError(f"expected weights above 0, got {int(sample.weight.min())}")
    schema.intern(None)
    events = plain(given)
    pointer, feature, value = events.pointer, events.feature, events.value
    label_of = np.asarray(sample.label, np.float64)
    largest = int(feature.max(initial=0))
    count = np.zeros(largest + 1 if largest < _TABLED else 0, np.int64)
    if not are_canonical(schema.known, pointer, feature, value, count):
        made = Canonicaliser(Values(largest=np.finfo(np.float64).max, sparse=True))(events, schema.known)
        if len(twice := np.flatnonzero(made.status == Status.REPEATED_FEATURE)):
            raise ValueError(f"example {twice[0]} lists a feature twice")
        if len(odd := np.flatnonzero(made.status)):
            raise ValueError(f"expected finite values, example {odd[0]} has another")
        pointer, feature, value = made.pointer, made.feature, made.value
        count = np.bincount(feature) if len(count) else count
    return _Entries(pointer, feature, value, label_of, sample.weight, count, schema)


def _divided(weight: Int64s) -> tuple[Int64s, float]:
    """Return weights as small whole numbers, and what one of them is in examples."""
    common = int(np.gcd.reduce(weight)) if len(weight) else UNIT
    return weight // common, common / UNIT


def _steps(label: Float64s, low: float, weight: int, unit: float | None) -> tuple[Int64s, float]:
    """Return labels as whole numbers of a unit above the least one."""
    bits = min(_SUM_BITS - weight.bit_length(), _LABEL_BITS)
    spread = float(label.max()) - low if len(label) else 0.0
    if bits < 1:
        raise ValueError(
            f"expected weights whose sum has at most {_SUM_BITS - 1} bits in their unit, got {weight}"
        )
    if unit is None:
        unit = math.ldexp(spread, -bits) or 1.0
    if not (0.0 < unit < math.inf and spread / unit <= 1 << bits):
        raise ValueError(f"expected a unit of which at most 2^{bits} are between labels, got {unit}")
    return np.rint((label - low) / unit).astype(np.int64), unit


class _Known(NamedTuple):
    """The features of a sample, and where each entry has its own among them: at ``place[number]``."""

    feature: Int64s  # int64[c], ascending
    entries: Int64s  # int64[c], how many each has
    place: Int32s
    number: UInt32s  # uint32[entries]


def _numbered(entries: _Entries) -> _Known:
    """Find the features of a sample. O(entries), or O(entries log entries) if too large for a table."""
    if not len(entries.entries):
        distinct, number, count = np.unique(entries.feature, return_inverse=True, return_counts=True)
        place = np.arange(len(distinct), dtype=np.int32)
        return _Known(distinct.astype(np.int64), count.astype(np.int64), place, number.astype(np.uint32))
    known = np.flatnonzero(entries.entries)
    place = np.zeros(len(entries.entries), np.int32)
    place[known] = np.arange(len(known), dtype=np.int32)
    return _Known(known, entries.entries[known], place, entries.feature)


def _columns(entries: _Entries, known: _Known) -> batch.Columns:
    """Return the columns of features, those that are not binary in order."""
    begin = np.cumsum(known.entries) - known.entries
    is_binary = (entries.kind_of.of(known.feature) == BINARY).astype(np.int8)
    made = batch.Columns(
        begin=begin,
        end=begin.copy(),
        owner=np.empty(len(known.number), np.int32),
        value=np.empty(len(known.number), np.float64),
        binary=is_binary,
        chosen=np.zeros(len(begin), np.int8),
    )
    in_order = known.entries[is_binary == 0]
    longest = int(in_order.max(initial=0))
    spare = scratch(int(in_order.sum()), longest)
    owners = np.empty(longest, np.int32)
    batch.lay_out(made, known.place, known.number, entries.pointer, entries.value, spare, owners)
    return made


def _tree(
    nodes: batch.Nodes, made: int, known: Int64s, schema: Schema, low: float, unit: float, per_weight: float
) -> Tree:
    """Return the tree that was made, in preorder."""
    order = np.zeros(made, np.int64)
    if made:
        batch.preorder(nodes, order, np.zeros(made + 1, np.int64))
    place = np.zeros(made, np.int64)
    place[order] = np.arange(made)
    column, parent = nodes.column[order], nodes.parent[order]
    is_inner = column != batch.NONE
    kind = np.full(made, BINARY, np.int8)
    kind[is_inner] = schema.of(known[column[is_inner]])
    features = np.where(is_inner, known[column] if len(known) else 0, 0).tolist()
    return Tree(
        number=np.arange(made),
        parent=np.where(parent == batch.NONE, -1, place[parent]),
        branch=nodes.branch[order],
        depth=nodes.depth[order],
        feature=[each if inner else None for each, inner in zip(features, is_inner.tolist(), strict=True)],
        kind=[Kind(each) if inner else None for each, inner in zip(kind.tolist(), is_inner.tolist(), strict=True)],
        threshold=np.where(kind == BINARY, 0.0, nodes.threshold[order]),
        weight=nodes.weight[order].astype(np.float64) * per_weight,
        mean=low + unit * nodes.mean[order],
        variance=nodes.variance[order] * unit * unit,
    )
