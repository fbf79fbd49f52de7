"""The features of many examples, made what kernels want; those of one come from given.py.

::

    copy -> sort what is not in order -> repeated? -> kinds -> wrong values? -> is the event refused?

A kernel does it in one pass, for a batch of any size: one event through a dozen of numpy's calls took four times
what its tree needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int8s, Int64s, UInt32s, int64
from algorithms.core.events import (
    APPLIED,
    DELETE,
    INSERT,
    PREDICT,
    REPEATED_FEATURE,
    WRONG_VALUE,
    Batch,
    Events,
)
from algorithms.core.jit import direct, inlined, jit
from algorithms.core.kinds import BINARY, NOMINAL
from algorithms.core.schema import Kinds, kind_of
from algorithms.core.sorting import sort

_REFUSED = -1  # an op that kernels skip
_CATEGORIES = float(1 << 32)


class Terms(NamedTuple):
    """What a kind of pool wants of features."""

    largest: float  # a value beyond it in size is refused, and so is what is no number
    deletes: bool = False  # the features of deletes without an id are looked at, as those of inserts always are
    sparse: bool = False  # what is 0 is left out, and what is binary is 1


class Canonical(NamedTuple):
    """The features of n events, ascending in each, and which events are refused for them."""

    op: Int8s  # int8[n], negative where the event is refused
    status: Int8s  # int8[n], the `Status` of each that is refused, 0 of the others
    asked: Int64s  # int64[..], the events that are predictions, ascending
    pointer: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[entries]
    value: Float64s  # float64[entries]
    kind: Int8s  # int8[entries], a `Kind`


def batch_of(events: Events, made: Canonical) -> Batch:
    """Return events as kernels take them, with the features made of theirs (not copied)."""
    return Batch(
        key=events.key,
        op=made.op,
        label=events.label,
        weight=events.weight,
        time=events.time,
        pointer=made.pointer,
        feature=made.feature,
        value=made.value,
        kind=made.kind,
        bits=made.value.view(np.int64),
        named=events.named,
        id_high=events.id_high,
        id_low=events.id_low,
        clock=events.clock,
    )


class _Given(NamedTuple):
    """Columns of `Events`."""

    op: Int8s
    named: Int8s
    pointer: Int64s
    feature: UInt32s
    value: Float64s


class _Spare(NamedTuple):
    """Room to sort in."""

    feature: UInt32s  # uint32[entries]
    value: Float64s  # float64[entries]


@inlined
def _is_wrong(kind: int, value: float, largest: float) -> bool:
    """Return whether a value is none for a feature of this kind."""
    if not abs(value) <= largest:
        return True
    return kind == NOMINAL and not (0.0 <= value < _CATEGORIES and value == int64(value))


@inlined
def _copy(given: _Given, event: int, made: Canonical, begin: int, spare: _Spare) -> int:
    """Copy the features of an event to `begin`, in order; return where they end there."""
    to = begin
    ordered = True
    for at in range(given.pointer[event], given.pointer[event + 1]):
        made.feature[to] = given.feature[at]
        made.value[to] = given.value[at]
        ordered = ordered and (to == begin or made.feature[to - 1] <= made.feature[to])
        to += 1
    if not ordered:
        sort(made.feature, made.value, begin, to, spare.feature, spare.value)
    return to


@inlined
def _is_looked_at(terms: Terms, given: _Given, event: int) -> bool:
    """Return whether somebody looks at the features of an event."""
    op = given.op[event]
    return op in (INSERT, PREDICT) or (terms.deletes and op == DELETE and given.named[event] == 0)


@jit
def canonicalise(known: Kinds, terms: Terms, given: _Given, made: Canonical, spare: _Spare) -> tuple[int, int]:
    """Fill `made`; return how many entries and predictions there are. O(entries), where they are in order."""
    to = int64(0)
    asked = int64(0)
    made.pointer[0] = 0
    for event in range(given.op.size):
        begin = to
        end = _copy(given, event, made, begin, spare)
        status = int64(APPLIED)
        before = int64(-1)
        for at in range(begin, end):
            feature = int64(made.feature[at])
            value = made.value[at]
            kind = kind_of(known, feature)
            if feature == before:
                status = int64(REPEATED_FEATURE)
            elif status == APPLIED and _is_wrong(kind, value, terms.largest):
                status = int64(WRONG_VALUE)
            before = feature
            if not terms.sparse or value != 0.0:
                made.feature[to] = feature
                made.value[to] = 1.0 if terms.sparse and kind == BINARY else value
                made.kind[to] = kind
                to += 1
        made.pointer[event + 1] = to
        if not _is_looked_at(terms, given, event):
            status = int64(APPLIED)
        made.status[event] = status
        made.op[event] = given.op[event] if status == APPLIED else _REFUSED
        if made.op[event] == PREDICT:
            made.asked[asked] = event
            asked += 1
    return to, asked


class Canonicaliser:
    """Makes the features of events what the kernel of a pool wants."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._canonicalise = direct(canonicalise)
        self._spare = _Spare(np.empty(0, np.uint32), np.empty(0))

    def __call__(self, events: Events, known: Kinds) -> Canonical:
        """Return the features of events, whose columns are plain: see `plain`."""
        n, entries = len(events.op), len(events.feature)
        if entries > len(self._spare.feature):
            self._spare = _Spare(np.empty(2 * entries, np.uint32), np.empty(2 * entries))
        given = _Given(events.op, events.named, events.pointer, events.feature, events.value)
        op, status, asked = np.empty(n, np.int8), np.empty(n, np.int8), np.empty(n, np.int64)
        pointer, feature = np.empty(n + 1, np.int64), np.empty(entries, np.uint32)
        value, kind = np.empty(entries, np.float64), np.empty(entries, np.int8)
        made = Canonical(op, status, asked, pointer, feature, value, kind)
        left, questions = self._canonicalise(known, self._terms, given, made, self._spare)
        if left < entries:
            feature, value, kind = feature[:left], value[:left], kind[:left]
        return Canonical(op, status, asked[:questions], pointer, feature, value, kind)


def plain(events: Events) -> Events:
    """Return events whose columns are contiguous, aligned and writable: kernels are made for such arrays alone."""
    for column in events:
        if not column.flags.carray:
            return Events(*[np.array(each, order="C") for each in events])
    return events
