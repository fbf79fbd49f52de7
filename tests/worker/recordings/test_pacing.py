"""When the records of a recording are due."""

from __future__ import annotations

import pytest

from worker.log.browse import Record
from worker.log.port import NO_TIMESTAMP, TopicPartition
from worker.recordings import pacing
from worker.recordings.pacing import Pacing

START = 1_700_000_000_000  # ms


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        assert seconds > 0
        self.now += seconds


def _record(timestamp: int, size: int = 1) -> Record:
    return Record(TopicPartition("t", 0), 0, timestamp, b"k", b"x" * size, ())


def _played(speed: float | None, timestamps: list[int]) -> list[tuple[float, list[int]]]:
    """Return what comes when: seconds since the start, and the timestamps."""
    clock = Clock()
    playing = Pacing(speed, lambda: clock.now, clock.sleep)
    batches = playing.batches(map(_record, timestamps), lambda: False)
    return [(round(clock.now - 1_000, 3), [record.timestamp for record in batch]) for batch in batches]


def test_at_once() -> None:
    """Without a speed all records come at once, in their order."""
    timestamps = [START, START + 3_600_000, START + 5]
    assert _played(None, timestamps) == [(0.0, timestamps)]


@pytest.mark.parametrize("speed", [0.5, 1.0, 10.0])
def test_in_time(speed: float) -> None:
    """With a speed each record comes as long after the first as it did, divided by the speed; never early."""
    timestamps = [START, START + 1_000, START + 1_000, START + 60_000]
    assert _played(speed, timestamps) == [
        (0.0, [START]),
        (1 / speed, [START + 1_000] * 2),
        (60 / speed, [START + 60_000]),
    ]


def test_close_records_go_together() -> None:
    """Records a few ms apart share a transaction, of which there are ten a second at most."""
    came = _played(1.0, [START + n for n in range(1_000)])
    assert sum(len(batch) for _, batch in came) == 1_000
    assert len(came) == 11
    assert all(when * 1_000 >= max(batch) - START for when, batch in came)
    assert all(when * 1_000 < min(batch) - START + 101 for when, batch in came)


def test_times_that_go_back() -> None:
    """A record without a time, or of an earlier one than the record before, waits for nothing."""
    timestamps = [NO_TIMESTAMP, START, START + 1_000, START - 5_000, NO_TIMESTAMP, START + 2_000]
    assert _played(1.0, timestamps) == [(0.0, timestamps[:2]), (1.0, timestamps[2:5]), (2.0, timestamps[5:])]


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch ends with so many records, or so many bytes."""
    monkeypatch.setattr(pacing, "BATCH_RECORDS", 3)
    monkeypatch.setattr(pacing, "BATCH_BYTES", 10)
    sizes = [1, 1, 1, 1, 12, 1, 5, 5, 5]
    batches = Pacing(None).batches((_record(START, size) for size in sizes), lambda: False)
    assert [[len(record.value or b"") for record in batch] for batch in batches] == [
        [1, 1, 1],
        [1, 12],
        [1, 5, 5],
        [5],
    ]


def test_long_waits_are_told_and_end_on_a_signal() -> None:
    """Before a long wait it is told how long that is, and a signal ends it."""
    clock, told = Clock(), list[float]()
    playing = Pacing(1.0, lambda: clock.now, clock.sleep, told.append)
    records = [_record(START), _record(START + 9_000), _record(START + 3_600_000)]
    batches = playing.batches(records, lambda: clock.now >= 1_100)
    assert [len(batch) for batch in batches] == [1, 1, 1]
    assert told == [3_591.0]
    assert clock.now == pytest.approx(1_100, abs=0.2)
