"""Reading up to given ends, over offsets without records, and what is not fetched in vain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from worker.log.bounded import NO_END, BoundedReader, Stretch, below
from worker.log.embedded import EmbeddedLog
from worker.log.embedded_reader import EmbeddedReader
from worker.log.port import NO_TIMESTAMP, OutRecord, Records, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def _records(source: TopicPartition, offsets: list[int], next_offset: int, timestamps: list[int]) -> Records:
    n = len(offsets)
    keys = [b"%d" % offset for offset in offsets]
    return Records(source, np.array(offsets), np.array(timestamps), keys, [b""] * n, [()] * n, next_offset)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """Yield a log whose first partition has the offsets 3, 4, 7, 8 and ends at 10; the second has 0 to 5."""
    with EmbeddedLog(tmp_path / "log.db") as opened:
        opened.create_topic("t", 2)
        opened.record(_records(A, [3, 4, 7, 8], 10, [100, NO_TIMESTAMP, 50, 300]))
        opened.append(OutRecord("t", 1, None, b"", (), 200) for _ in range(6))
        yield opened


def _read(bounded: BoundedReader, limit: int = 100) -> dict[TopicPartition, list[int]]:
    """Return the offsets that come until all is read."""
    found: dict[TopicPartition, list[int]] = {}
    while bounded.remaining:
        for records in bounded.poll(limit, 0):
            assert len(records.keys) == len(records.values) == len(records.headers) == len(records.timestamps)
            found.setdefault(records.source, []).extend(records.offsets.tolist())
    return found


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize(
    ("stretch", "expected"),
    [
        (Stretch(3, 10), [3, 4, 7, 8]),
        (Stretch(3, 9), [3, 4, 7, 8]),
        (Stretch(3, 8), [3, 4, 7]),
        (Stretch(4, 6), [4]),
        (Stretch(5, 7), []),
        (Stretch(6, 6), []),
        (Stretch(7, 4), []),
    ],
)
def test_ends(log: EmbeddedLog, limit: int, stretch: Stretch, expected: list[int]) -> None:
    """What lies below the end comes, however few records at a time, and the position ends up there."""
    bounded = BoundedReader(log.reader(), {A: stretch})
    assert _read(bounded, limit).get(A, []) == expected
    assert bounded.positions == {A: max(stretch)}


@pytest.mark.parametrize(
    ("before", "expected", "position"),
    [(301, [3, 4, 7, 8], 10), (300, [3, 4, 7], 8), (100, [], 3), (101, [3, 4, 7], 8)],
)
def test_times(log: EmbeddedLog, before: int, expected: list[int], position: int) -> None:
    """A partition ends at its first record of the time or later; records before it may be in any order."""
    bounded = BoundedReader(log.reader(), {A: Stretch(3, 10)}, before)
    assert _read(bounded, 1).get(A, []) == expected
    assert bounded.positions == {A: position}


def test_an_end_ahead(log: EmbeddedLog) -> None:
    """Without an end it goes on with what is written later."""
    bounded = BoundedReader(log.reader(), {B: Stretch(5, NO_END)})
    assert [records.offsets.tolist() for records in bounded.poll(10, 0)] == [[5]]
    assert bounded.poll(10, 0) == []
    log.append([OutRecord("t", 1, None, b"", (), 1)])
    assert [records.offsets.tolist() for records in bounded.poll(10, 0)] == [[6]]
    assert bounded.remaining == {B: 7}


def test_partitions_that_are_done(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that is done and has more is left out soon; one that has no more costs nothing."""
    assigned: list[Mapping[TopicPartition, int]] = []
    assign = EmbeddedReader.assign

    def noted(reader: EmbeddedReader, positions: Mapping[TopicPartition, int]) -> None:
        assigned.append(dict(positions))
        assign(reader, positions)

    monkeypatch.setattr(EmbeddedReader, "assign", noted)
    assert _read(BoundedReader(log.reader(), {A: Stretch(3, 4), B: Stretch(0, 6)}), 2) == {
        A: [3],
        B: list(range(6)),
    }
    assert len(assigned) == 2
    assert list(assigned[1]) == [B]
    assigned.clear()
    assert _read(BoundedReader(log.reader(), {A: Stretch(3, 10), B: Stretch(0, 6)}), 2)[B] == list(range(6))
    assert len(assigned) == 1


def test_below() -> None:
    """Records that end by then are left alone; others are cut, down to none."""
    records = _records(A, [3, 4, 7], 9, [1, 2, 3])
    assert below(records, 9) is records
    assert [below(records, end).offsets.tolist() for end in (8, 7, 5, 0)] == [[3, 4, 7], [3, 4], [3, 4], []]
    assert below(records, 5).next_offset == 5
