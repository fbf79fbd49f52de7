"""The kernel of core/canonical.py against the oracle in naive_canonical.py."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core.canonical import Canonical, Canonicaliser, Terms, plain
from algorithms.core.events import Events, Op, Status
from algorithms.core.kinds import Kind
from algorithms.core.schema import Schema
from tests.oracles.naive_canonical import Raw, canonical
from tests.support.examples import budget

LAST = 4294967295  # of feature ids
VALUES = [
    *(0.0, -0.0, 1.0, -1.0, 2.5, 3.0, 5e-324, 1e140, -1e140, 1.1e140, sys.float_info.max),
    *(4294967295.0, 4294967296.0, 4294967295.5, np.inf, -np.inf, np.nan),
]
FEATURES = [0, 1, 2, 3, 7, 1 << 31, LAST - 1, LAST]
TERMS = [Terms(1e140), Terms(sys.float_info.max, deletes=True, sparse=True), Terms(1.0, deletes=True)]
OPS = [*Op, -1, -128]

features = st.sampled_from(FEATURES) | st.integers(0, LAST)
raws = st.builds(
    Raw,
    st.sampled_from(OPS).map(int),
    st.booleans(),
    st.lists(st.tuples(features, st.sampled_from(VALUES)), max_size=40),
)


def events_of(raw: Sequence[Raw]) -> Events:
    """Return events in columns."""
    entries = [entry for each in raw for entry in each.entries]
    return Events.of(
        op=np.array([each.op for each in raw], np.int8),
        label=np.zeros(len(raw), np.int32),
        pointer=np.cumsum([0, *(len(each.entries) for each in raw)], dtype=np.int64),
        feature=np.array([feature for feature, _ in entries], np.uint32),
        value=np.array([value for _, value in entries], np.float64),
        named=np.array([each.named for each in raw], np.int8),
    )


def compare(raw: Sequence[Raw], default: Kind, kinds: Mapping[int, Kind], terms: Terms) -> Canonical:
    """Raise AssertionError where the kernel makes of events what the oracle does not; return what it makes."""
    schema = Schema(default, kinds)
    schema.intern(None)
    made = Canonicaliser(terms)(events_of(raw), schema.known)
    expected = [canonical(each, default, kinds, terms) for each in raw]
    assert made.op.tolist() == [each.op for each in expected]
    assert made.status.tolist() == [each.status for each in expected]
    assert made.asked.tolist() == [row for row, each in enumerate(expected) if each.op == Op.PREDICT]
    assert made.pointer.tolist() == np.cumsum([0, *(len(each.entries) for each in expected)]).tolist()
    entries = [entry for each in expected for entry in each.entries]
    assert made.feature.tolist() == [feature for feature, _, _ in entries]
    assert made.value.tobytes() == np.array([value for _, value, _ in entries], np.float64).tobytes()
    assert made.kind.tolist() == [kind for _, _, kind in entries]
    return made


# --- against the oracle


@given(
    st.lists(raws, max_size=8),
    st.sampled_from(list(Kind)),
    st.dictionaries(features, st.sampled_from(list(Kind)), max_size=6),
    st.sampled_from(TERMS),
)
@settings(max_examples=budget(400), deadline=None, derandomize=True, database=None)
def test_events_are_made_as_by_the_oracle(
    raw: list[Raw], default: Kind, kinds: dict[int, Kind], terms: Terms
) -> None:
    """Whatever is given, order, kinds, values and refusals are the oracle's to the bit."""
    compare(raw, default, kinds, terms)


def test_long_examples_are_sorted() -> None:
    """A thousand features in any order, more than one run of the merge sort, beside one that is in order."""
    rng = np.random.default_rng(3)
    numbers = rng.choice(LAST, 1000, replace=False).tolist()
    entries = [(feature, float(at)) for at, feature in enumerate(numbers)]
    made = compare(
        [Raw(Op.INSERT, False, sorted(entries)), Raw(Op.INSERT, False, entries)], Kind.NUMERIC, {}, TERMS[0]
    )
    assert (np.diff(made.feature[1000:].astype(np.int64)) > 0).all()


def test_batches_of_any_size_make_the_same() -> None:
    """What one batch makes of events is what one for each of them makes, also by the same canonicaliser."""
    raw = [Raw(op, False, [(feature, value) for feature in (3, 1)]) for op in OPS for value in VALUES]
    schema = Schema(Kind.NUMERIC, {3: Kind.NOMINAL})
    schema.intern(None)
    one = Canonicaliser(TERMS[0])
    whole = one(events_of(raw), schema.known)
    parts = [one(events_of([each]), schema.known) for each in raw]
    for name in ("op", "status", "feature", "value", "kind"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert getattr(whole, name).tobytes() == joined.tobytes(), name


def test_a_repeated_feature_is_told_of_before_a_wrong_value() -> None:
    """An event with both faults is refused for the repeated feature, whichever comes first."""
    for entries in ([(1, np.nan), (2, 1.0), (2, 1.0)], [(1, 1.0), (1, 1.0), (2, np.nan)]):
        made = compare([Raw(Op.INSERT, False, entries)], Kind.NUMERIC, {}, TERMS[0])
        assert made.status.tolist() == [Status.REPEATED_FEATURE]


# --- columns


def test_what_is_given_is_left_as_it_is() -> None:
    """No column of the events is written to, though they are sorted and zeros are left out."""
    events = events_of([Raw(Op.INSERT, False, [(7, 0.0), (3, 2.0), (5, np.nan)])])
    before: list[Any] = [np.copy(getattr(events, name)) for name in Events._fields]
    Canonicaliser(TERMS[1])(events, Schema(Kind.BINARY, {}).known)
    for name, was in zip(Events._fields, before, strict=True):
        column: Any = getattr(events, name)
        assert column.tobytes() == was.tobytes()


def _read_only(column: Any) -> Any:
    column = column.copy()
    column.flags.writeable = False
    return column


@pytest.mark.parametrize("change", [lambda column: np.repeat(column, 2)[::2], _read_only])
def test_columns_are_made_plain(change: Any) -> None:
    """Strided and read-only columns are copied, for kernels are made for others; what is plain is not."""
    events = events_of([Raw(Op.INSERT, False, [(7, 0.5), (3, 2.0)]), Raw(Op.PREDICT, False, [(1, 1.0)])])
    assert plain(events) is events
    made = plain(Events(*[change(column) for column in events]))
    for name in Events._fields:
        column: Any = getattr(made, name)
        assert column.flags.carray
        assert column.tolist() == getattr(events, name).tolist()
