from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.codec.encode import decode_output, to_record
from worker.codec.split_columns import SplitColumns
from worker.log.port import LARGEST_RECORD

_WEIGHT = st.sampled_from([0.0, 0.5, 1.0, 3.0, 2.0**-20, 2.0**41, 12345.678])
_FEATURE = st.one_of(
    st.none(),
    st.sampled_from([0, 1, 127, 128, 255, 256, 65_535, 65_536, 4_294_967_295]),
    st.text(max_size=40),
)
_NUMBER = st.sampled_from([0, 1, 127, 128, 255, 256, 65_535, 65_536, 1 << 32, (1 << 40) - 1])
_ROW = st.tuples(
    *(_FEATURE, _FEATURE, _WEIGHT, _WEIGHT, _WEIGHT, _WEIGHT, st.floats(0.0, 1e9), st.floats(0.0, 1e9)),
    *(st.floats(0.0, 1e9), _NUMBER, st.integers(0, 65_535), st.integers(1, 1 << 53), st.binary(max_size=20)),
)


def _columns(rows: list[Any], **settings: Any) -> tuple[SplitColumns, list[bytes]]:
    """Return the columns of such rows, and their keys."""
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * 13
    feature, runner_up, n0, n1, a, b, score, behind, impurity, offset, row, time, keys = columns
    # Without a weight nothing splits.
    runner_up = [each if n0[at] + n1[at] + a[at] + b[at] else None for at, each in enumerate(runner_up)]
    present = np.array([a, b], np.float64).T
    common: dict[str, Any] = {"model": "m", "criterion": "gini", "classes": (0, 1), "topic": "in", "partition": 0}
    splits = SplitColumns(
        **common | settings,
        offset=np.array(offset, np.int64),
        row=np.array(row, np.int32),
        time=np.array(time, np.int64),
        feature=list(feature),
        runner_up=list(runner_up),
        score=np.array(score, np.float64),
        runner_up_score=np.array(behind, np.float64),
        impurity=np.array(impurity, np.float64),
        totals=np.array([n0, n1], np.float64).T + present,
        present=present,
    )
    return splits, list(keys)


@given(rows=st.lists(_ROW, max_size=5), seq=st.integers(0, 1))
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {
            "model": "ä" * 20,
            "criterion": "entropy",
            "classes": ("ham", "spam"),
            "topic": "t" * 249,
            "partition": 300,
        },
    ],
)
def test_records_are_those_that_are_made_one_by_one(settings: dict[str, Any], rows: list[Any], seq: int) -> None:
    """Key, value, headers, time and place are the same, byte by byte."""
    splits, keys = _columns(rows, **settings)
    one_by_one = [to_record(splits.split(at), "out", key, seq) for at, key in enumerate(keys)]
    assert list(splits.records("out", keys, seq)) == one_by_one


def test_a_split_reads_back() -> None:
    """What is written is the split."""
    splits, keys = _columns([(3, 4, 1.0, 2.0, 3.0, 4.0, 1.5, 1.75, 2.5, 7, 0, 99, b"k")])
    [record] = splits.records("out", keys, 0)
    assert record.value is not None
    read = decode_output(record.value, record.headers)
    assert msgpack.packb(read) == msgpack.packb(splits.split(0))
    assert splits.split(0).counts == ((1.0, 2.0), (3.0, 4.0))
    assert splits.split(0).gain == pytest.approx(0.1)


def test_a_split_that_no_record_has_room_for_is_cut_as_any_other() -> None:
    """Where a key and names take nearly all of the room, branches are left out."""
    splits, _ = _columns([("x" * 400_000, "y" * 400_000, 1.0, 2.0, 3.0, 4.0, 1.5, 1.75, 2.5, 7, 0, 99, b"")])
    beside = to_record(splits.split(0), "out", b"", 0).size
    keys = [b"k" * (LARGEST_RECORD - beside + more) for more in (-2_000, 0, 1)]
    for key in keys:
        [record] = splits.records("out", [key], 0)
        assert record == to_record(splits.split(0), "out", key, 0)
        assert record.size <= LARGEST_RECORD
