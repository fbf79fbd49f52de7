"""Keys that nobody uses expire: the same as the naive twin says, however records are batched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.oracles.naive_expiry import Gone, NaiveExpiry
from tests.support.majority import MajorityModel
from tests.support.model_contents import model_contents
from tests.support.one_model import SOURCE, one_model
from worker.codec import Expired, Prediction, decode_output
from worker.codec.event import encode_batch, encode_event
from worker.log.port import OutRecord, Records
from worker.models.expiry import Clock
from worker.pipeline import Pipeline
from worker.settings.models import SplitSettings
from worker.settings.values import Span

SPAN = 10_000
MAJORITY = {"kind": "majority", "input": "in", "classes": ["a", "b"], "features": "ids", "expire": "10s"}
SPLIT = {"kind": "split", "input": "in", "classes": [0, 1], "features": "ids", "expire": "10s"}
TREE = {"kind": "tree", "input": "in", "classes": [0, 1], "features": "ids", "expire": "10s"}
FOREST = {"kind": "forest", "input": "in", "classes": [0, 1], "features": "ids", "expire": "10s"}
GROWING = FOREST | {"of": {"kind": "tree"}, "trees": 2}
NUMBERS = {"kind": "regression-tree", "input": "in", "features": "ids", "expire": "10s"}
SUMS = NUMBERS | {"kind": "split", "target": "number", "label_range": [0, 9], "label_unit": 0.5}
DYNAMIC = {"kind": "dynamic-tree", "input": "in", "classes": [0, 1], "features": "ids", "expire": "10s"}
FORGOTTEN = NUMBERS | {"kind": "dynamic-tree", "target": "number", "label_range": [0, 9], "label_unit": 0.5}


class Record(NamedTuple):
    """A record of some events of a key."""

    key: bytes
    rows: tuple[str, ...]
    timestamp: int


def _value(rows: Sequence[str], label: Any) -> bytes | None:
    """Return the value of a record: one event, or columns of one op."""
    if rows == ("drop",):
        return None
    op, y = ("insert", "none of them") if rows[0] == "refused" else (rows[0], label)
    told = None if op == "predict" else y
    if len(rows) == 1:
        return encode_event([1], told, op=op)
    return encode_batch([[1]] * len(rows), None if told is None else [told] * len(rows), op=op)


def _records(records: Sequence[Record], start: int, label: Any = "a") -> Records:
    offsets = np.arange(start, start + len(records))
    return Records(
        SOURCE,
        offsets,
        np.array([record.timestamp for record in records], np.int64),
        [record.key for record in records],
        [_value(record.rows, label) for record in records],
        [()] * len(records),
        start + len(records),
    )


def _run(
    model: dict[str, Any], records: Sequence[Record], sizes: Sequence[int], *, restart: bool
) -> tuple[list[OutRecord], Pipeline]:
    pipeline = one_model(model)
    outputs: list[OutRecord] = []
    start = turn = 0
    label = model.get("classes", [0])[0]
    while start < len(records):
        size = sizes[turn % len(sizes)]
        outputs += pipeline.process(_records(records[start : start + size], start, label)).outputs
        pipeline.models[0].check()
        if restart:
            pipeline.restore(
                {
                    name: {each: array.copy() for each, array in arrays.items()}
                    for name, arrays in pipeline.arrays().items()
                }
            )
        start, turn = start + size, turn + 1
    return sorted(outputs, key=lambda record: record.topic), pipeline


def _gone(outputs: Sequence[OutRecord]) -> list[Gone]:
    found = []
    for record in outputs:
        output = decode_output(record.value or b"", record.headers)
        if isinstance(output, Expired):
            where = (output.source.offset, output.source.row, record.key or b"")
            found.append(Gone(*where, output.idle_since, output.expired, output.due))
    return found


def _told_by_twin(records: Sequence[Record]) -> tuple[list[Gone], NaiveExpiry]:
    twin, found = NaiveExpiry(SPAN), []
    for offset, record in enumerate(records):
        found += twin.record(offset, record.key, record.rows, record.timestamp)
    return found, twin


@st.composite
def _streams(draw: st.DrawFn) -> list[Record]:
    """Return records of a few keys: the time goes on by little, or jumps, and some timestamps are wrong."""
    steps = st.sampled_from([0, 1, 500, 3_000, SPAN - 1, SPAN, 5 * SPAN])
    now, records = draw(st.integers(0, 50_000)), []
    for _ in range(draw(st.integers(0, 50))):
        now += draw(steps)
        op = draw(st.sampled_from(["insert", "insert", "insert", "predict", "refused", "drop"]))
        rows = (op,) * (1 if op == "drop" else draw(st.sampled_from([1, 1, 1, 3])))
        timestamp = draw(st.sampled_from([now, now, now, now, now - 4_000, now + 40 * SPAN, -1]))
        records.append(Record(b"%d" % draw(st.integers(0, 11)), rows, max(timestamp, -1)))
    return records


@given(_streams(), st.lists(st.integers(1, 9), min_size=1, max_size=5), st.booleans())
def test_the_keys_that_the_twin_names_go(records: list[Record], sizes: list[int], restart: bool) -> None:
    """Whatever the batches, and with a restore after each, the same keys go at the same events."""
    expected, twin = _told_by_twin(records)
    outputs, pipeline = _run(MAJORITY, records, sizes, restart=restart)
    assert _gone(outputs) == expected
    model = pipeline.models[0]
    assert isinstance(model, MajorityModel)
    assert model._expiry is not None
    assert [model._keys.key(key) for key, _ in model._expiry.uses()] == list(twin.used)
    assert model.status().keys == len(twin.used)
    if records:
        assert _run(MAJORITY, records, [len(records)], restart=False)[0] == outputs


def _long(keys: int = 40, rounds: int = 14) -> list[Record]:
    """Return records of which all keys but a tenth go idle for good after the first round."""
    records = [Record(b"%d" % key, ("insert",), 1_000_000 + key) for key in range(keys)]
    for turn in range(1, rounds):
        at = 1_000_000 + turn * 4_000
        records += [Record(b"%d" % key, ("insert", "insert"), at + key) for key in range(0, keys, 10)]
    return records


@pytest.mark.parametrize(
    "model",
    [SPLIT, TREE, DYNAMIC, FOREST, GROWING, NUMBERS, SUMS, FORGOTTEN],
    ids=lambda model: str(model["kind"]),
)
def test_an_expired_key_is_as_if_it_had_got_a_tombstone(model: dict[str, Any]) -> None:
    """Results and state are those of a model without `expire` for which tombstones come where the keys went."""
    records = _long()
    outputs, pipeline = _run(model, records, [7], restart=True)
    gone = _gone(outputs)
    assert gone == _told_by_twin(records)[0]
    assert len(gone) == 36
    assert pipeline.models[0].status().keys == 4
    without = one_model({name: value for name, value in model.items() if name != "expire"})
    for offset, record in enumerate(records):
        for each in (each for each in gone if each.offset == offset):
            without.process(_records([Record(each.key, ("drop",), record.timestamp)], offset))
        without.process(_records([record], offset, 0))
    assert model_contents(pipeline.models[0]) == model_contents(without.models[0])
    assert _run(model, records, [len(records)], restart=False)[0] == outputs


def test_so_many_go_at_an_event_and_what_is_due_is_told() -> None:
    """One key goes at an event; the records, the outcome and the status tell how many went and are due."""
    records = [Record(b"%d" % key, ("insert",), 1_000_000) for key in range(20)]
    records += [Record(b"new", ("insert",), 1_020_000)] * 3
    outputs, pipeline = _run(MAJORITY, records, [len(records)], restart=False)
    assert [(gone.expired, gone.due) for gone in _gone(outputs)] == [(1, 19)]
    assert (pipeline.models[0].status().keys, pipeline.models[0].status().due) == (20, 19)
    processed = pipeline.process(_records([Record(b"new", ("insert",), 1_020_000)], len(records)))
    [(_, outcome)] = processed.outcomes
    assert (outcome.expired, dict(outcome.applied)) == (1, {"insert": 1, "delete": 0, "predict": 0, "drop": 0})
    assert pipeline.models[0].status().due == 18
    again = one_model(MAJORITY)
    again.restore(pipeline.arrays())
    assert again.models[0].status().due == 18, "known before there is a batch"


def test_a_key_that_is_due_goes_before_its_own_event() -> None:
    """A predict of a key that has been idle for the span knows nothing, however many others are due before it."""
    records = [Record(b"%d" % key, ("insert",), 1_000_000) for key in range(20)]
    records += [Record(b"new", ("insert",), 1_020_000)] * 3 + [Record(b"19", ("predict",), 1_020_000)]
    outputs, _ = _run(MAJORITY, records, [3], restart=False)
    assert _gone(outputs)[1].key == b"19"
    [prediction] = [
        output
        for record in outputs
        if isinstance(output := decode_output(record.value or b"", record.headers), Prediction)
    ]
    assert not prediction.known


def test_evaluations_forget_the_labels_of_a_key_that_expired() -> None:
    """What the baselines know of a key goes with it, and evaluations go on over all keys."""
    records = _long()
    _, pipeline = _run(MAJORITY | {"evaluate": {"emit": {"every": 10}}}, records, [7], restart=False)
    pipeline.models[0].check()
    quality = pipeline.models[0].status().quality
    assert quality is not None
    assert quality.examples == sum(len(record.rows) for record in records)


def test_a_shadow_tells_of_no_key() -> None:
    """A model that writes evaluations alone lets keys go silently."""
    outputs, pipeline = _run(MAJORITY | {"shadow": True}, _long(), [7], restart=False)
    assert (outputs, pipeline.models[0].status().keys) == ([], 4)


def test_the_clock_does_not_follow_two_wrong_timestamps_and_never_goes_back() -> None:
    """Two of any five are passed over whether early or late, the third is believed; none is 0 before the fifth."""
    clock, far = Clock(), 1 << 60
    assert clock.see(np.array([10, far, 0, 11])).tolist() == [0, 0, 0, 0]
    assert clock.see(np.array([12, 13, far, 14, 15])).tolist() == [11, 12, 12, 13, 14]
    assert clock.see(np.array([-1, 0, 0, 0])).tolist() == [14, 14, 14, 14]
    assert clock.see(np.array([far, far, far])).tolist() == [14, 14, far]
    assert clock.see(np.array([(1 << 63) - 1] * 3)).tolist() == [far, far, 1 << 61]


def test_a_key_that_is_used_after_a_long_silence_is_not_idle() -> None:
    """The clock comes to know of a jump two records late; keys used meanwhile do not go with the idle."""
    records = [Record(b"old", ("insert",), 1_000_000)] * 5
    records += [Record(b"a", ("insert",), 9_000_000), Record(b"b", ("insert",), 9_000_001)]
    records += [Record(b"c", ("insert",), 9_000_002)] * 3
    for size in (1, 3, 20):
        outputs, pipeline = _run(MAJORITY, records, [size], restart=True)
        assert [gone.key for gone in _gone(outputs)] == [b"old"]
        assert pipeline.models[0].status().keys == 3


@pytest.mark.parametrize("told", ["90d", "36h", "5m", "1s"])
def test_spans_are_a_number_and_a_unit(told: str) -> None:
    """A span is written as it was told, and the same span in another unit is the same setting."""
    settings = SplitSettings.model_validate_json(json.dumps(SPLIT | {"expire": told}))
    assert settings.expire is not None
    assert settings.model_dump(mode="json")["expire"] == told
    assert Span(36 * 3_600_000).words == "36h"
    assert Span(172_800_000).words == "2d"


@pytest.mark.parametrize("told", ["0d", "90", 90, "1w", "-1d", "1.5h", "36501d", ""])
def test_other_spans_are_refused(told: Any) -> None:
    """What is no span is told as such."""
    with pytest.raises(ValidationError, match="expected a time span from 1s to 36500d"):
        SplitSettings.model_validate_json(json.dumps(SPLIT | {"expire": told}))


def test_fingerprints_of_models_without_it_are_those_from_before() -> None:
    """A model that says nothing of `expire` has the fingerprint that it had."""
    without = SplitSettings.model_validate_json(json.dumps(SPLIT | {"expire": None}))
    assert "expire" not in without.relevant()
    assert SplitSettings.model_validate_json(json.dumps(SPLIT)).relevant()["expire"] == "10s"
