"""What a model holds of each key, in a form that does not depend on the way to it: audits compare it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.core import example_store
from algorithms.core.example_store import HIGH, LABEL, LENGTH, LOW, NEWER, NONE, OWNER, START, WEIGHT, ExampleStore
from algorithms.core.names import HIGH as HIGH_NUMBER
from algorithms.core.names import NO_NAMES, Interner, name_or_id
from algorithms.core.stored import rebuilt

Id: TypeAlias = tuple[int, int]  # the digest of an id, as models keep it
Feature: TypeAlias = int | bytes
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
NO_VALUES = np.zeros(0)  # of features that are present or absent


class Example(NamedTuple):
    """A live example."""

    id: Id | None
    label: int
    weight: int  # in units of 2^-20
    features: tuple[tuple[Feature, float], ...]  # ascending


class Holdings(NamedTuple):
    """What the model of a key holds."""

    live: tuple[Example, ...]  # ascending
    remembered: frozenset[Id]  # of examples that the window dropped: their ids, and nothing else
    learned: Any  # plain values that follow from the live examples alone, whatever came and went before
    windowed: bool  # whether a window lets examples go, which others would outlive had some never come


def keys_of(arrays: Arrays) -> Interner:
    """Return the keys of a model by their numbers."""
    return Interner(rebuilt(NO_NAMES, arrays, "keys"))


def names_of(arrays: Arrays) -> Interner | None:
    """Return the names of features by their numbers, None where features are ids."""
    return Interner(rebuilt(NO_NAMES, arrays, "names")) if "names.start" in arrays else None


def held_names(arrays: Arrays) -> frozenset[bytes]:
    """Return the names of features that are in use."""
    names = names_of(arrays)
    if names is None:
        return frozenset()
    used = np.flatnonzero(names.arrays.size[: names.arrays.counts[HIGH_NUMBER]] >= 0)
    return frozenset(names.name(number) for number in used.tolist())


def store_of(arrays: Arrays) -> ExampleStore:
    """Return the live examples of a model."""
    return rebuilt(example_store.make(1), arrays, "ledger")


def live_examples(
    store: ExampleStore, index: int, names: Interner | None, values: npt.NDArray[np.float64]
) -> tuple[Example, ...]:
    """Return the live examples of a key, ascending; `values` of no size where all are 1."""
    found = []
    for row in _rows(store, index, example_store.OLDEST):
        cells = slice(row[START], row[START] + row[LENGTH])
        numbers = store.features[cells].tolist()
        of_each = values[cells].tolist() if values.size else [1.0] * len(numbers)
        features = sorted(
            (name_or_id(names, number), value) for number, value in zip(numbers, of_each, strict=True)
        )
        found.append(Example(_id(row), row[LABEL], row[WEIGHT], tuple(features)))
    return tuple(sorted(found, key=lambda each: (each.id or (0, 0), each)))


def remembered(store: ExampleStore, index: int) -> frozenset[Id]:
    """Return the ids of a key's examples that the window dropped, as far as they are kept."""
    found = (_id(row) for row in _rows(store, index, example_store.FIRST_DROPPED))
    return frozenset(digest for digest in found if digest is not None)


def holds_digest(arrays: Arrays, digest: Id) -> bool:
    """Return whether an array holds the digest of an id, be it in a row that is not in use."""
    return any(
        array.ndim == 2 and array.dtype == np.int64 and (array == digest[0]).any() and (array == digest[1]).any()
        for array in arrays.values()
    )


def _rows(store: ExampleStore, index: int, first: int) -> Iterator[list[int]]:
    at = int(store.heads[index, first])
    while at != NONE:
        row: list[int] = store.rows[at].tolist()
        yield row
        at = row[NEWER]


def _id(row: list[int]) -> Id | None:
    return (row[HIGH], row[LOW]) if row[OWNER] & 1 else None
