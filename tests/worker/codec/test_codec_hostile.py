from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from tests.support.contents import contents
from tests.support.hostile import HOSTILE, HOSTILE_ROWS, TIMESTAMP, batch
from worker.codec.bounds import Bounds
from worker.codec.columns import RecordFault, decode_batch
from worker.codec.events import DROP
from worker.codec.reasons import Reason
from worker.codec.reference import Event, Fault, decode

BOUNDS = Bounds()
GOOD = b"\x82\xa1x\x92\x01\x02\xa1y\x01"


def test_every_hostile_record_has_its_reason_in_the_reference_decoder() -> None:
    """Each bad record is refused as a whole, for its reason, in a short sentence of ours."""
    wrong: list[object] = []
    for name, value, reason in HOSTILE:
        outcome = decode(value, TIMESTAMP, BOUNDS)
        assert len(outcome) == 1, name
        fault = outcome[0]
        if not (isinstance(fault, Fault) and fault.row is None and fault.reason == reason):
            wrong.append((name, reason, outcome))
        elif len(fault.detail) > 400 or not fault.detail.startswith("expected"):
            wrong.append((name, reason, fault.detail))
    assert wrong == []


def test_every_hostile_record_has_its_reason_in_a_batch_and_leaves_its_neighbours_alone() -> None:
    """Bad records between good ones give one fault each, and every good one is decoded."""
    values: list[bytes | None] = [GOOD]
    for _, value, _ in HOSTILE:
        values += [value, GOOD]
    timestamps = np.full(len(values), TIMESTAMP)
    events, faults = decode_batch(values, timestamps, BOUNDS, [b"k"] * len(values))
    assert [(fault.record, fault.row, fault.reason) for fault in faults] == [
        (2 * k + 1, None, reason) for k, (_, _, reason) in enumerate(HOSTILE)
    ]
    expected = decode(GOOD, TIMESTAMP, BOUNDS)[0]
    assert contents(events) == [(2 * k, 0, expected) for k in range(len(HOSTILE) + 1)]


def test_a_bad_row_is_refused_alone() -> None:
    """A fault in one row of a batch leaves the other row an event, numbered as it was."""
    values = [value for _, value, _ in HOSTILE_ROWS]
    n = len(values)
    for _, value, reason in HOSTILE_ROWS:
        first, second = decode(value, TIMESTAMP, BOUNDS)
        assert isinstance(first, Event)
        assert isinstance(second, Fault)
        assert (second.row, second.reason) == (1, reason)
    events, faults = decode_batch(values, np.full(n, TIMESTAMP), BOUNDS, [b"k"] * n)
    assert [(fault.record, fault.row, fault.reason) for fault in faults] == [
        (k, 1, reason) for k, (_, _, reason) in enumerate(HOSTILE_ROWS)
    ]
    assert [(record, row) for record, row, _ in contents(events)] == [(k, 0) for k in range(n)]


def test_keys_are_judged_before_values() -> None:
    """A record without a key, or with one too long, is refused whatever its value, also a tombstone."""
    keys = [None, b"k" * 1_025, b"k" * 1_024, None, b""]
    events, faults = decode_batch([GOOD, b"\xc1", GOOD, None, None], np.zeros(5, np.int64), BOUNDS, keys)
    assert [(fault.record, fault.reason) for fault in faults] == [
        (0, Reason.NO_KEY),
        (1, Reason.KEY_TOO_LONG),
        (3, Reason.NO_KEY),
    ]
    assert [(record, event.op) for record, _, event in contents(events)] == [(2, 0), (4, DROP)]


def test_faults_come_in_order_of_record_and_row() -> None:
    """Faults of keys, records and rows are sorted by record, then row."""
    rows = batch(y=[None, None])
    events, faults = decode_batch([b"", GOOD, rows, b""], np.zeros(4, np.int64), BOUNDS, [b"k", None, b"k", b"k"])
    assert [(fault.record, fault.row) for fault in faults] == [
        (0, None),
        (1, None),
        (2, 0),
        (2, 1),
        (3, None),
    ]
    assert isinstance(faults[0], RecordFault)
    assert events.op.size == 0


def test_every_reason_of_the_bytes_and_the_shape_is_reached() -> None:
    """The list of hostile records leaves out no reason that decoding can give, but those of keys."""
    decoding = list(Reason)[: list(Reason).index(Reason.NO_KEY)]
    assert {reason for _, _, reason in HOSTILE} == set(decoding)


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        b"\x82\xa1x\xdd\x00\x04\x00\x00" + b"\x90" * (1 << 18),
        b"\x82\xa1y\x01\xa1x\xdd\x00\x04\x00\x00" + b"\xa1a" * (1 << 18),
        b"\x82\xa1x\xdc\xff\xff" + (b"\xdc\xff\xff" + b"\x90" * 65_535) * 5,
        b"\x91" * (8 << 20),
    ],
    ids=["many lists", "many names", "lists of lists", "deep"],
)
def test_time_and_memory_are_bounded(value: bytes) -> None:
    """The worst records cost seconds at most, and memory some ten times their size."""
    started = time.perf_counter()
    tracemalloc.start()
    try:
        _, faults = decode_batch([value], np.array([TIMESTAMP]), BOUNDS, [b"k"])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(faults) == 1
    assert peak < 128 << 20
    assert time.perf_counter() - started < 30
