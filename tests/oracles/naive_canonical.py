"""The oracle of core/canonical.py: the same from lists and dictionaries, an event at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from algorithms.core.canonical import Terms
from algorithms.core.events import Op, Status
from algorithms.core.kinds import Kind

Entry = tuple[int, float]  # a feature and its value


class Raw(NamedTuple):
    """An event as it is given."""

    op: int  # negative: skip
    named: bool
    entries: Sequence[Entry]


class Made(NamedTuple):
    """An event as a kernel takes it."""

    op: int
    status: int
    entries: Sequence[tuple[int, float, Kind]]


def is_taken(value: float, kind: Kind, largest: float) -> bool:
    """Return whether a value is one of a feature of this kind."""
    if math.isnan(value) or abs(value) > largest:
        return False
    return kind != Kind.NOMINAL or (0 <= value < 2**32 and value.is_integer())


def canonical(raw: Raw, default: Kind, kinds: Mapping[int, Kind], terms: Terms) -> Made:
    """Return an event with its features in order and their kinds, refused where something is wrong with them."""
    entries = [
        (feature, value, kinds.get(feature, default))
        for feature, value in sorted(raw.entries, key=lambda entry: entry[0])  # stable
    ]
    looked_at = raw.op in (Op.INSERT, Op.PREDICT) or (raw.op == Op.DELETE and terms.deletes and not raw.named)
    status = Status.APPLIED
    if looked_at and not all(is_taken(value, kind, terms.largest) for _, value, kind in entries):
        status = Status.WRONG_VALUE
    if looked_at and len({feature for feature, _, _ in entries}) < len(entries):
        status = Status.REPEATED_FEATURE
    if terms.sparse:
        present = [entry for entry in entries if entry[1] != 0]
        entries = [(feature, 1.0 if kind == Kind.BINARY else value, kind) for feature, value, kind in present]
    return Made(raw.op if status == Status.APPLIED else -1, status, entries)
