"""Windows by time: what goes is what the naive twin says, however records are batched."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.oracles.naive_window import NaiveWindow, Row, Went
from tests.support.model_contents import Forgetting, Instance, model_contents
from tests.support.one_model import SOURCE, one_model
from worker.codec import LetGo, RegressionTree, Tree, decode_output
from worker.codec.event import encode_batch, encode_event
from worker.log.port import OutRecord, Records
from worker.models import aging, moving
from worker.pipeline import Pipeline
from worker.settings import Settings
from worker.settings.models import SplitSettings

SPAN = 10_000
_COMMON = {"input": "in", "classes": [0, 1], "features": "ids", "window": "10s"}
SPLIT = _COMMON | {"kind": "split", "emit": {"splits": "change", "snapshots": {"every": 5}}}
DYNAMIC = _COMMON | {"kind": "dynamic-tree", "epsilon": 0.3, "emit": {"snapshots": "change"}}
FOREST = _COMMON | {"kind": "forest", "trees": 2, "epsilon": 0.3, "emit": {"snapshots": {"every": 4}}}
MIXED = SPLIT | {"classes": [0, 1, 2], "attributes": {"nominal": [2]}}
NUMBERS: dict[str, Any] = {name: value for name, value in SPLIT.items() if name != "classes"}
NUMBERS |= {"target": "number", "label_range": [-10, 10], "label_unit": 0.25}
FORGOTTEN: dict[str, Any] = {name: value for name, value in DYNAMIC.items() if name != "classes"}
FORGOTTEN |= {"target": "number", "label_range": [-10, 10], "label_unit": 0.25}
KINDS = [SPLIT, MIXED, NUMBERS, DYNAMIC, FORGOTTEN, FOREST]


class Record(NamedTuple):
    """A record of events of a key, all with the same op, and all with ids or none."""

    key: bytes
    rows: tuple[Row, ...]
    timestamp: int


def _value(rows: Sequence[Row]) -> bytes | None:
    op = rows[0].op
    if op == "drop":
        return None
    labels: list[Any] = ["none of them" if op == "refused" else row.y for row in rows]
    op = "insert" if op == "refused" else op
    x, ids = [list(row.x) for row in rows], [row.id for row in rows]
    if len(rows) == 1:
        return encode_event(x[0], None if op == "predict" else labels[0], op=op, id=ids[0])
    return encode_batch(
        x, None if op == "predict" else labels, op=op, ids=None if None in ids else [each for each in ids if each]
    )


def _records(records: Sequence[Record], start: int) -> Records:
    return Records(
        SOURCE,
        np.arange(start, start + len(records)),
        np.array([record.timestamp for record in records], np.int64),
        [record.key for record in records],
        [_value(record.rows) for record in records],
        [()] * len(records),
        start + len(records),
    )


class Ran(NamedTuple):
    """What a run led to."""

    outputs: list[OutRecord]
    pipeline: Pipeline
    let_go: int
    already_dropped: int
    refused: int


def _run(model: dict[str, Any], records: Sequence[Record], sizes: Sequence[int], *, restart: bool) -> Ran:
    pipeline = one_model(model)
    outputs: list[OutRecord] = []
    start = turn = let_go = already_dropped = refused = 0
    while start < len(records):
        processed = pipeline.process(_records(records[start : (stop := start + sizes[turn % len(sizes)])], start))
        outputs += processed.outputs
        for _, outcome in processed.outcomes:
            let_go += outcome.let_go
            already_dropped += outcome.already_dropped
            refused += len(outcome.refusals)
        pipeline.models[0].check()
        if restart:
            pipeline.restore(
                {
                    name: {each: array.copy() for each, array in arrays.items()}
                    for name, arrays in pipeline.arrays().items()
                }
            )
        start, turn = stop, turn + 1
    return Ran(sorted(outputs, key=lambda record: record.topic), pipeline, let_go, already_dropped, refused)


def _twin(records: Sequence[Record]) -> tuple[NaiveWindow, list[Went]]:
    twin, found = NaiveWindow(SPAN), []
    for offset, record in enumerate(records):
        found += twin.rows(offset, record.key, record.rows, record.timestamp)
    return twin, found


def _without(model: dict[str, Any], records: Sequence[Record], went: Sequence[Went]) -> Pipeline:
    """Return a pipeline without a window to which deletes of what went came before the events at which it did."""
    without = {name: value for name, value in model.items() if name != "window"}
    if model["kind"] == "split" and "attributes" not in model:
        without["verify_deletes"] = True
    pipeline = one_model(without)
    for offset, record in enumerate(records):
        for number, row in enumerate(record.rows):
            for each in went:
                if (each.offset, each.row) == (offset, number):
                    gone = Record(each.key, (each.example._replace(op="delete"),), record.timestamp)
                    pipeline.process(_records([gone], offset))
            pipeline.process(_records([Record(record.key, (row,), record.timestamp)], offset))
    return pipeline


def _contents(pipeline: Pipeline) -> dict[bytes, Any]:
    """Return what a model holds, without remembered ids; which of equal examples is older is no matter."""
    found: dict[bytes, Any] = {}
    for key, each in model_contents(pipeline.models[0]).items():
        if isinstance(each, Instance):
            found[key] = each._replace(dropped=[], live=sorted(each.live, key=repr))
        elif isinstance(each, Forgetting):
            found[key] = each._replace(live=sorted(each.live))
        else:
            found[key] = (*each[:-1], sorted(each[-1])) if key else each
    return found


def _told(outputs: Sequence[OutRecord]) -> list[LetGo]:
    found = [decode_output(record.value or b"", record.headers) for record in outputs]
    return [each for each in found if isinstance(each, LetGo)]


@st.composite
def _streams(draw: st.DrawFn) -> list[Record]:
    """Return records of a few keys: the time goes on by little, or jumps, and some timestamps are wrong."""
    steps = st.sampled_from([0, 1, 500, 1_000, 3_000, SPAN - 1, SPAN, 5 * SPAN])
    ops = st.sampled_from(["insert"] * 8 + ["delete"] * 3 + ["predict", "refused", "drop"])
    now, records = draw(st.integers(0, 50_000)), []
    for _ in range(draw(st.integers(0, 40))):
        now += draw(steps)
        op, named = draw(ops), draw(st.booleans())
        rows = []
        for _ in range(1 if op == "drop" else draw(st.sampled_from([1, 1, 1, 4]))):
            x = tuple(sorted(draw(st.sets(st.integers(0, 3), max_size=3))))
            rows.append(Row(op, draw(st.integers(1, 9)) if named else None, x, draw(st.integers(0, 1))))
        timestamp = draw(st.sampled_from([now, now, now, now, now - 4_000, now + 40 * SPAN, -1]))
        records.append(Record(draw(st.sampled_from([b"a", b"b", b"c"])), tuple(rows), max(timestamp, -1)))
    return records


@pytest.mark.parametrize("model", KINDS, ids=lambda model: str(model["kind"]))
@given(records=_streams(), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5), restart=st.booleans())
def test_what_goes_is_what_the_twin_says(
    model: dict[str, Any], records: list[Record], sizes: list[int], restart: bool
) -> None:
    """Whatever the batches, and with a restore after each: the state is that of deletes where examples went."""
    twin, went = _twin(records)
    ran = _run(model, records, sizes, restart=restart)
    assert ran.let_go == len(went)
    assert (ran.already_dropped, ran.refused) == (twin.already_dropped, twin.refused)
    assert _contents(ran.pipeline) == _contents(_without(model, records, went))
    told = [(each.source.offset, each.source.row, each.since, each.gone, each.due) for each in _told(ran.outputs)]
    assert told == [
        (each.offset, each.row, each.since, each.gone, each.due)
        for each in went
        if each.gone % aging.TOLD_EVERY == 1
    ]
    assert ran.pipeline.models[0].status().examples_due == len(twin.due() if records else [])
    assert ran.outputs == _run(model, records, [max(len(records), 1)], restart=False).outputs


def _inserts(count: int, at: int, key: bytes = b"a", first: int = 1) -> list[Record]:
    return [
        Record(key, (Row("insert", first + number, (number % 3,), number % 2),), at) for number in range(count)
    ]


def test_two_go_at_an_event_and_what_is_due_is_told() -> None:
    """The outcome, the status and one record of a hundred tell how many went and are due, of any key."""
    records = _inserts(205, 1_000_000) + _inserts(3, 1_020_000, b"b")
    ran = _run(SPLIT, records, [len(records)], restart=False)
    assert [(each.gone, each.due) for each in _told(ran.outputs)] == [(1, 204)]
    assert (ran.let_go, ran.pipeline.models[0].status().examples_due) == (2, 203)
    processed = ran.pipeline.process(_records(_inserts(1, 1_020_000, b"b", first=9), len(records)))
    [(_, outcome)] = processed.outcomes
    assert (outcome.let_go, dict(outcome.applied)) == (2, {"insert": 1, "delete": 0, "predict": 0, "drop": 0})
    again = one_model(SPLIT)
    again.restore(ran.pipeline.arrays())
    assert again.models[0].status().examples_due == 201
    more = again.process(_records([Record(b"c", (Row("predict"),), 1_020_000)] * 120, len(records) + 1))
    assert [(each.gone, each.due, each.since) for each in _told(more.outputs)] == [
        (101, 104, 1_000_000),
        (201, 4, 1_000_000),
    ]
    status = again.models[0].status()
    assert (status.examples_due, status.examples, status.keys) == (0, 4, 2)


@pytest.mark.parametrize("model", KINDS, ids=lambda model: str(model["kind"]))
def test_results_of_what_goes_have_its_key_and_the_source_of_the_event(model: dict[str, Any]) -> None:
    """A split or a tree that an example leads to as it goes is of its key; each result has a number of its own."""
    emit: dict[str, Any] = {"snapshots": {"every": 1}}
    records = _inserts(6, 1_000_000) + _inserts(3, 1_020_000, b"b")
    ran = _run(model | {"emit": emit}, records, [len(records)], restart=False)
    trees = [
        (record.key, output.version)
        for record in ran.outputs
        if isinstance(output := decode_output(record.value or b"", record.headers), Tree | RegressionTree)
        and output.source.offset == len(records) - 1
    ]
    of_each = 2 if model["kind"] == "forest" else 1
    assert sorted(trees) == sorted([(b"a", 7), (b"a", 8), (b"b", 3)] * of_each)
    numbers = [dict(record.headers)["out_id"] for record in ran.outputs]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("model", KINDS, ids=lambda model: str(model["kind"]))
def test_results_of_a_key_stand_in_the_order_in_which_it_changed(model: dict[str, Any]) -> None:
    """What an event led to comes after what went before it: the last tree of a key is the tree that it has."""
    records = _inserts(6, 1_000_000) + _inserts(4, 1_020_000, first=20)
    ran = _run(model | {"emit": {"snapshots": {"every": 1}}}, records, [len(records)], restart=False)
    outputs = [decode_output(record.value or b"", record.headers) for record in ran.outputs]
    trees = [output for output in outputs if isinstance(output, Tree | RegressionTree)]
    versions = [tree.version for tree in trees if getattr(tree, "tree", None) in (0, None)]
    assert ran.let_go == 4
    assert versions == list(range(1, 15))


@pytest.mark.parametrize("model", KINDS, ids=lambda model: str(model["kind"]))
def test_event_time_of_one_key_is_not_that_of_another(model: dict[str, Any]) -> None:
    """Before an event with a far time examples of another key go: the periods of that key stay what they were."""
    pipeline = one_model(model | {"emit": {"snapshots": {"every_ms": 60_000}}})
    told = [(b"a", 60_000 * 10 + at, 1_000_000) for at in range(6)]
    told += [(b"b", 60_000 * 999, 1_020_000)] * 4 + [(b"a", 60_000 * 11, 1_020_000)]
    values = [encode_event([1], 1, id=at + 1, ts=ts) for at, (_, ts, _) in enumerate(told)]
    keys, _, times = zip(*told, strict=True)
    n = len(told)
    processed = pipeline.process(
        Records(SOURCE, np.arange(n), np.array(times), list(keys), list(values), [()] * n, n)
    )
    assert sum(outcome.let_go for _, outcome in processed.outcomes) == 6
    outputs = [decode_output(record.value or b"", record.headers) for record in processed.outputs]
    sources = {output.source for output in outputs if isinstance(output, Tree | RegressionTree)}
    assert [(source.offset, source.time) for source in sources] == [(n - 1, 60_000 * 11)]


def test_a_label_that_comes_later_counts_from_the_label() -> None:
    """An example whose features came long ago is new when its label comes."""
    settings = {
        "log": {"embedded": "unused.db"},
        "models": {"tree": SPLIT},
        "topics": {"in": {"pending": {"max": 10, "for": "1h"}}},
    }
    pipeline = Pipeline(SOURCE, Settings.model_validate_json(json.dumps(settings)), time.monotonic)
    asked = Record(b"a", (Row("predict", 1, (2,)),), 1_000_000)
    at = 1_000_000 + 3 * SPAN
    pipeline.process(_records([asked, *_inserts(5, at, b"b")], 0))
    label = _records([asked], 6)._replace(
        values=[msgpack.packb({"op": "label", "id": 1, "y": 1})], timestamps=np.array([at])
    )
    pipeline.process(label)
    pipeline.process(_records(_inserts(3, at + SPAN - 1, b"b", first=10), 7))
    assert pipeline.models[0].status().examples == 9
    pipeline.process(_records(_inserts(3, at + SPAN, b"b", first=20), 10))
    assert pipeline.models[0].status().examples < 12


def test_names_that_nothing_refers_to_any_more_are_forgotten() -> None:
    """What has gone is in no array: neither its names nor its id."""
    named = SPLIT | {"features": "names"}
    pipeline = one_model(named)
    values = [encode_event(["secret"], 1, id=77_777)] + [encode_event(["open"], 1, id=at) for at in range(20)]
    times = [1_000_000] * 5 + [1_020_000] * 8 + [1_040_000] * 8
    records = Records(SOURCE, np.arange(21), np.array(times), [b"a"] * 21, values, [()] * 21, 21)
    pipeline.process(records)
    arrays = pipeline.models[0].arrays()
    held = b"".join(array.tobytes() for array in arrays.values())
    assert b"open" in held
    assert b"secret" not in held
    pipeline.models[0].check()


@pytest.mark.parametrize("told", ["30d", "1s", 1, 1 << 30])
def test_a_window_is_a_number_or_a_span(told: Any) -> None:
    """Either is written as it was told, and a window by number has the fingerprint that it had."""
    settings = SplitSettings.model_validate_json(json.dumps(SPLIT | {"window": told}))
    assert settings.model_dump(mode="json")["window"] == told
    assert settings.relevant()["window"] == told


@pytest.mark.parametrize("told", [0, -5, (1 << 30) + 1, "30", "0d", "1w", True, 1.5, []])
def test_other_windows_are_refused(told: Any) -> None:
    """What is neither is told as such."""
    with pytest.raises(ValidationError, match="expected a number of examples from 1 to 1073741824, or a time"):
        SplitSettings.model_validate_json(json.dumps(SPLIT | {"window": told}))


def _falling(seed: int) -> list[Record]:
    """Return records of 40 keys of which 36 are dropped, while the time goes on fast."""
    draw, now, records = random.Random(seed), 1_000_000, []
    for number in range(300):
        now += 1_500 if 165 <= number <= 200 else draw.choice([0, 0, 10, 50, 100])
        op = draw.choices(["insert", "delete", "predict"], [10, 2, 1])[0]
        key = draw.randrange(40) if number < 150 else draw.choice([36, 37, 38, 39, 1, 2, 41])
        if 150 <= number < 186:
            op, key = "drop", number - 150
        x, named = tuple(sorted(draw.sample(range(5), draw.randrange(3)))), draw.random() < 0.6
        row = Row(op, draw.randrange(1, 60) if named else None, x, draw.randrange(2))
        records.append(Record(b"%d" % key, (row,) * (1 if named or op == "drop" else 2), now))
    return records


@pytest.mark.parametrize("more", [{}, {"expire": "30s"}], ids=["", "beside expire"])
@pytest.mark.parametrize("restart", [False, True], ids=["", "restored"])
def test_a_pool_becomes_small_while_examples_go(
    monkeypatch: pytest.MonkeyPatch, restart: bool, more: dict[str, Any]
) -> None:
    """Keys move to a smaller pool, some because their examples are due; the same goes as if none moved."""
    of_left, turns = 0, aging.Aging.turns

    def counted(*given: Any) -> Any:
        nonlocal of_left
        found = turns(*given)
        of_left += len(found[1])
        return found

    monkeypatch.setattr(aging.Aging, "turns", counted)
    for seed in range(3):
        monkeypatch.setattr(moving, "LEAST", 1)
        ran = _run(SPLIT | more, _falling(seed), [1, 2], restart=restart)
        assert not ran.pipeline.models[0].is_moving  # type: ignore[attr-defined]
        monkeypatch.setattr(moving, "LEAST", 1 << 30)
        still = _run(SPLIT | more, _falling(seed), [300], restart=False)
        assert still.outputs == ran.outputs
        assert still.let_go == ran.let_go > 20
        assert more or ran.let_go == len(_twin(_falling(seed))[1])
    assert of_left > 10
