"""Live examples as kernels see them: rows of the example store, values beside, the lists of leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core import example_store
from algorithms.core.arrays import Float64s, Int32s, Int64s, UInt32s, extended, int64
from algorithms.core.example_store import (
    EVER,
    LABEL,
    LENGTH,
    LIVE,
    NONE,
    START,
    STATE,
    WEIGHT,
    ExampleStore,
)
from algorithms.core.hashing import mix
from algorithms.core.jit import ahead, inlined, jit
from algorithms.core.kinds import BINARY

# Columns of `Examples.chain`: the neighbours in the list of a leaf's examples.
BEFORE, AFTER = 0, 1

_M61 = (1 << 61) - 1


class Examples(NamedTuple):
    """Examples; one is a row number."""

    rows: Int64s  # int64[capacity, 12], of which LABEL, WEIGHT, START and LENGTH count here, see example_store.py
    features: UInt32s  # uint32[...], ascending in an example, no repeats
    values: Float64s  # float64[...] beside `features`, none is 0; of no size where all features are binary
    chain: Int32s  # int32[capacity, 2]


class Route(NamedTuple):
    """Entries start to stop: what an example has that is on its way down a tree. A stop of -1: all ways."""

    features: UInt32s  # ascending
    values: Float64s  # beside `features`, none is 0; of no size where all features are binary
    start: int
    stop: int


@inlined
def everywhere(examples: Examples) -> Route:
    """Return all ways down a tree."""
    return Route(examples.features, examples.values, int64(0), int64(-1))


@inlined
def value_in(features: UInt32s, values: Float64s, start: int, stop: int, feature: int) -> float:
    """Return the value of a feature in entries start to stop, 0 where it is absent. O(log entries)."""
    low = start
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if int64(features[middle]) < feature:
            low = middle + 1
        else:
            high = middle
    if low < stop and int64(features[low]) == feature:
        return values[low] if values.size > 0 else 1.0
    return 0.0


@inlined
def value_of(examples: Examples, row: int, feature: int) -> float:
    """Return the value of a feature in an example, 0 where it is absent. O(log features of the example)."""
    start = examples.rows[row, START]
    stop = start + examples.rows[row, LENGTH]
    return value_in(examples.features, examples.values, start, stop, feature)


@inlined
def value_on(route: Route, feature: int) -> float:
    """Return the value of a feature of the example on its way."""
    return value_in(route.features, route.values, route.start, route.stop, feature)


@inlined
def side_of(kind: int, threshold: float, value: float) -> int:
    """Return 1 where a value goes to the high side: present, or above the threshold."""
    if kind == BINARY:
        return 1 if value != 0.0 else 0
    return 1 if value > threshold else 0


@inlined
def link(examples: Examples, first: int, row: int) -> int:
    """Put an example ahead of the list that begins with `first`, or NONE; return what it begins with now."""
    examples.chain[row, BEFORE] = NONE
    examples.chain[row, AFTER] = first
    if first != NONE:
        examples.chain[first, BEFORE] = row
    return row


@inlined
def unlink(examples: Examples, first: int, row: int) -> int:
    """Take an example out of the list that begins with `first`; return what it begins with now."""
    before = int64(examples.chain[row, BEFORE])
    after = int64(examples.chain[row, AFTER])
    if after != NONE:
        examples.chain[after, BEFORE] = before
    if before == NONE:
        return after
    examples.chain[before, AFTER] = after
    return first


@inlined
def _hash_of_label(label: int, number: int) -> int:
    """Return a hash of a label, which may be a number of more than 32 bits; `number` is 1 or 2."""
    return mix(label & 0xFFFFFFFF, number + ((label >> 32) << 2))


@jit
def content_key(
    features: UInt32s, bits: Int64s, start: int, stop: int, label: int, weight: int
) -> tuple[int, int]:
    """Return the digest of an example's content, values among it; `bits` are theirs."""
    high = (_hash_of_label(label, 1) << 29) + mix(weight & 0xFFFFFFFF, weight >> 32)
    low = (_hash_of_label(label, 2) << 29) + mix(weight >> 32, weight & 0xFFFFFFFF)
    for at in range(start, stop):
        feature = int64(features[at])
        one = mix(bits[at] & 0xFFFFFFFF, (bits[at] >> 32) & 0xFFFFFFFF)
        other = mix((bits[at] >> 32) & 0xFFFFFFFF, bits[at] & 0xFFFFFFFF)
        high = (high + (mix(feature, one) << 29) + mix(other, feature)) & _M61
        low = (low + (mix(feature, other) << 29) + mix(one, feature)) & _M61
    return high, low


def with_features(state: ExampleStore, values: Float64s, more: int) -> tuple[ExampleStore, Float64s]:
    """Return a store with room for `more` features, as `example_store.with_features`, and the values beside."""
    if not values.size:
        return example_store.with_features(state, more), values
    squeezed = np.zeros_like(values)
    _squeeze(state, values, squeezed)
    larger = example_store.with_features(state, more)
    kept = np.zeros(len(larger.features))
    kept[: larger.counts[example_store.END]] = squeezed[: larger.counts[example_store.END]]
    return larger, kept


@ahead(lambda: (example_store.make(1), np.zeros(1), np.zeros(1)))
@jit
def _squeeze(state: ExampleStore, values: Float64s, squeezed: Float64s) -> None:
    """Write the values of live examples in the order in which the example store puts their features."""
    end = 0
    for row in range(state.counts[EVER]):
        if state.rows[row, STATE] == LIVE:
            start = state.rows[row, START]
            for at in range(state.rows[row, LENGTH]):
                squeezed[end + at] = values[start + at]
            end += state.rows[row, LENGTH]


def with_rows(state: ExampleStore, chain: Int32s) -> tuple[ExampleStore, Int32s]:
    """Return an example store with room for twice as many examples, and the lists beside it."""
    larger = example_store.with_rows(state)
    return larger, extended(chain, len(larger.rows))


def of_table(pointer: Int64s, feature: UInt32s, value: Float64s, label: Int64s, weight: Int64s) -> Examples:
    """Return examples in no example store: row i is the i-th of CSR columns, whose features ascend."""
    n = len(label)
    rows = np.zeros((n, 12), np.int64)
    rows[:, LABEL], rows[:, WEIGHT] = label, weight
    rows[:, START], rows[:, LENGTH] = pointer[:-1], np.diff(pointer)
    return Examples(rows, feature, value, np.full((n, 2), NONE, np.int32))
