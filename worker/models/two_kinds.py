"""Nominal and quantised features of trees of live examples, which know binary and numeric ones.

A category is a binary feature of its own, called ``FEATURE=CATEGORY`` (paper 002, theorem 3.3, where features have
few values). A quantised number is numeric, and the nearest multiple of the radius: a tree has fewer thresholds to
look at, and parts no two numbers of a slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np

from algorithms.core import pool as core
from algorithms.core.arrays import Float64s, Int8s, Int64s, UInt32s
from algorithms.core.kinds import Kind
from algorithms.core.names import Interner
from algorithms.core.schema import Feature, Schema
from worker.codec import Events
from worker.models.base import Pool, PoolModel
from worker.models.values import Values, checked_values
from worker.settings.models import TreesSettings

_TAKEN_AS = {Kind.NOMINAL: Kind.BINARY, Kind.QUANTISED: Kind.NUMERIC}
_MOST_SLOTS = float(1 << 53)  # beyond it a float64 is a multiple of its radius, about, or there is no such number


class KindsPool(Pool, Protocol):
    """A pool that knows two kinds of features."""

    def kinds_of(self, feature: Int64s | UInt32s) -> Int8s:
        """Return the `Kind` of each of these features."""
        ...


P = TypeVar("P", bound=KindsPool)
A = TypeVar("A", bound=core.Answered)


def kinds_of_pool(settings: TreesSettings) -> tuple[Kind, Mapping[Feature, Kind]]:
    """Return the kinds of features that the pool of a model is told."""
    default, kinds = settings.feature_kinds
    taken = {name: _TAKEN_AS.get(kind, kind) for name, kind in kinds.items() if kind != Kind.NOMINAL}
    return _TAKEN_AS.get(default, default), taken


class TwoKinds:
    """The features of events, in the kinds that a pool knows.

    Parameters
    ----------
    settings : TreesSettings
        Which say of what kinds they are.
    """

    def __init__(self, settings: TreesSettings) -> None:
        self._declared = Schema(*settings.feature_kinds)
        self._radius = settings.attributes.radius or 0.0
        self.are_all = not self._declared.all & _TAKEN_AS.keys()
        if settings.features == "ids":
            self._declared.intern(None)

    def of(self, feature: UInt32s, names: Interner | None) -> Int8s:
        """Return the declared kinds of features; a name may have another number in each batch."""
        if names is not None:
            self._declared.find(names)
        return self._declared.of(feature)

    def taken(
        self, feature: UInt32s, events: Events, values: Values, names: Interner | None
    ) -> tuple[UInt32s, Float64s]:
        """Return the features of events and their values as the pool takes them; what is wrong stays as it is.

        O(entries), and a look for the name of each category in the batch.
        """
        is_slotted = (values.kinds == Kind.QUANTISED) & ~values.wrong
        value = np.where(is_slotted, self._rounded(events.value), events.value)
        if names is None:
            return feature, value
        at = np.flatnonzero((values.kinds == Kind.NOMINAL) & ~values.wrong & (value != 0.0))
        pairs = feature[at].astype(np.uint64) << np.uint64(32) | value[at].astype(np.uint64)
        different, place = np.unique(pairs, return_inverse=True)
        of_each = [(pair >> 32, pair & 0xFFFFFFFF) for pair in different.tolist()]
        numbers = names.intern_all([b"%b=%d" % (names.name(number), category) for number, category in of_each])
        feature, value[at] = feature.copy(), 1.0
        feature[at] = np.array(numbers, np.uint32)[place]
        return feature, value

    def _rounded(self, value: Float64s) -> Float64s:
        if not self._radius:
            return value
        with np.errstate(over="ignore", invalid="ignore"):
            slot = np.rint(value / self._radius)
            return np.where(np.abs(slot) < _MOST_SLOTS, slot * self._radius, value)


class TwoKindsModel(PoolModel[P, A]):
    """A model whose pool knows binary and numeric features; see `PoolModel`."""

    _kinds: TwoKinds

    def _take_kinds(self, settings: TreesSettings) -> None:
        """Take features as settings declare them."""
        self._kinds = TwoKinds(settings)
        self._awaited.kept = self._kinds.are_all

    def _checked(self, feature: UInt32s, events: Events) -> Values:
        pool = self._pool
        kinds = pool.kinds_of(feature) if self._kinds.are_all else self._kinds.of(feature, pool.names)
        return checked_values(kinds, events.value)

    def _taken(self, feature: UInt32s, events: Events, values: Values) -> tuple[UInt32s, Events]:
        if self._kinds.are_all:
            return feature, events
        taken, value = self._kinds.taken(feature, events, values, self._pool.names)
        return taken, events._replace(value=value)
