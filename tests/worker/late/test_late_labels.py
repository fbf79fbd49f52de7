"""Labels that come later: the same as a naive twin says, however records are batched, with restores in between."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.naive_late import Fate, Kept, NaiveLate, Row
from tests.support.majority import MajorityModel
from tests.support.model_contents import model_contents
from worker.codec import (
    DelayedEvaluation,
    Prediction,
    RegressionDelayedEvaluation,
    RegressionPrediction,
    decode_output,
)
from worker.codec.event import encode_batch, encode_event
from worker.log.port import OutRecord, Records, TopicPartition
from worker.models.port import Outcome
from worker.pipeline import Pipeline
from worker.settings import Settings

assert MajorityModel.LATER  # the import registers its kind
SOURCE = TopicPartition("in", 0)
SPAN = 10_000
EVERY = {"emit": {"every": 2}, "window": 3}
IDS: dict[str, dict[str, Any]] = {
    "split": {"kind": "split", "classes": ["a", "b"], "features": "ids", "on_duplicate": "replace"},
    "tree": {"kind": "tree", "classes": ["a", "b"], "features": "ids", "evaluate": EVERY, "expire": "20s"},
    "mixed": {"kind": "split", "classes": ["a", "b", "c"], "features": "ids", "attributes": {"nominal": [3]}},
    "without": {
        "kind": "majority",
        "classes": ["a", "b"],
        "features": "ids",
        "evaluate": EVERY,
        "late_labels": False,
    },
    "window": {
        "kind": "dynamic-tree",
        "classes": ["a", "b"],
        "features": "ids",
        "evaluate": EVERY,
        "window": 3,
    },
}
NAMES: dict[str, dict[str, Any]] = {
    "number": {
        "kind": "regression-tree",
        "features": "names",
        "evaluate": EVERY,
        "attributes": {"default": "numeric"},
    },
    "tree": {
        "kind": "dynamic-tree",
        "classes": [1, 2],
        "features": "names",
        "evaluate": EVERY,
        "attributes": {"default": "numeric"},
    },
}


class Record(NamedTuple):
    """A record of some events of a key."""

    key: bytes
    rows: tuple[Row, ...]
    timestamp: int


def pipeline_of(models: dict[str, dict[str, Any]], pending: dict[str, Any] | None) -> Pipeline:
    """Return a pipeline with these models."""
    told = {name: {"input": "in", **model} for name, model in models.items()}
    settings: dict[str, Any] = {"log": {"embedded": "unused.db"}, "models": told}
    if pending is not None:
        settings["topics"] = {"in": {"pending": pending}}
    return Pipeline(SOURCE, Settings.model_validate_json(json.dumps(settings)), time.monotonic)


def value_of(rows: Sequence[Row]) -> bytes | None:
    """Return the value of a record: one event, or columns of one op."""
    (op,) = {row.op for row in rows}
    if op == "drop":
        return None
    if len(rows) == 1:
        row = rows[0]
        return encode_event(row.x, row.y, op=op, id=row.id)
    has_x, has_y = op in ("insert", "predict"), op in ("insert", "label")
    return encode_batch(
        [row.x for row in rows] if has_x else None,
        [row.y for row in rows] if has_y else None,
        op=op,
        ids=[row.id for row in rows],
    )


def records_of(records: Sequence[Record], start: int) -> Records:
    """Return records as a pipeline takes them."""
    offsets = np.arange(start, start + len(records))
    return Records(
        SOURCE,
        offsets,
        np.array([record.timestamp for record in records], np.int64),
        [record.key for record in records],
        [value_of(record.rows) for record in records],
        [()] * len(records),
        start + len(records),
    )


class Ran(NamedTuple):
    """What came of records."""

    results: dict[str, list[OutRecord]]  # of each model, without delayed evaluations
    delayed: dict[str, list[Any]]
    refusals: dict[str, list[tuple[int, int, str]]]  # offset, row, reason
    faults: list[tuple[int, int]]
    pipeline: Pipeline


def run(pipeline: Pipeline, records: Sequence[Record], sizes: Sequence[int], *, restart: bool = False) -> Ran:
    """Apply records in batches of these sizes, in turn; with a restore after each where it says so."""
    names = [model.name for model in pipeline.models]
    ran = Ran({n: [] for n in names}, {n: [] for n in names}, {n: [] for n in names}, [], pipeline)
    start = turn = 0
    while start < len(records):
        batch = records[start : start + sizes[turn % len(sizes)]]
        processed = pipeline.process(records_of(batch, start))
        for record in processed.outputs:
            if record.topic != "in.out":
                continue
            output = decode_output(record.value or b"", record.headers)
            assert output.model is not None
            if isinstance(output, DelayedEvaluation | RegressionDelayedEvaluation):
                ran.delayed[output.model].append(output)
            else:
                ran.results[output.model].append(record)
        for name, outcome in processed.outcomes:
            told: Outcome = outcome
            ran.refusals[name].extend((start + each.record, each.row, str(each.reason)) for each in told.refusals)
        ran.faults.extend(
            (start + each.record, each.row or 0) for each in processed.faults if each.reason == "not-pending"
        )
        pipeline.late.check()
        if restart:
            saved = {
                model: {name: array.copy() for name, array in arrays.items()}
                for model, arrays in pipeline.arrays().items()
            }
            pipeline.restore(saved)
        start, turn = start + len(batch), turn + 1
    for model in pipeline.models:
        model.check()
    return ran


def judged(records: Sequence[Record], most: int) -> tuple[list[list[Fate]], NaiveLate]:
    """Return what the twin says of each event."""
    twin = NaiveLate(most, SPAN)
    return [twin.rows(at, *record) for at, record in enumerate(records)], twin


def translated(records: Sequence[Record], fates: list[list[Fate]], *, learns: bool) -> list[Record]:
    """Return the records with inserts in the place of labels; what nobody learns has no label that is any."""
    found = []
    for record, of_rows in zip(records, fates, strict=True):
        rows = record.rows
        if rows[0].op == "label":
            rows = tuple(
                Row("insert", row.id, fate.kept.x, row.y)
                if learns and fate.kept is not None
                else Row("insert", row.id, [], [])
                for row, fate in zip(rows, of_rows, strict=True)
            )
        found.append(record._replace(rows=rows))
    return found


@st.composite
def streams(draw: st.DrawFn, world: str) -> list[Record]:
    """Draw records of a few keys and ids: the time goes on by little, or jumps."""
    steps = st.sampled_from([0, 1, 500, 3_000, SPAN - 1, SPAN, 5 * SPAN])
    now, records = draw(st.integers(0, 20_000)), []
    features: st.SearchStrategy[Any] = (
        st.lists(st.integers(0, 5), unique=True, max_size=4)
        if world == "ids"
        else st.dictionaries(st.sampled_from(["p", "q", "r"]), st.sampled_from([1.0, 2.5, -3.0]), max_size=3)
    )
    label: st.SearchStrategy[Any] = st.sampled_from(["a", "b", "b", "c"] if world == "ids" else [1, 2])
    for _ in range(draw(st.integers(0, 60))):
        now += draw(steps)
        op = draw(st.sampled_from(["predict", "predict", "predict", "label", "label", "insert", "delete", "drop"]))
        rows = []
        for _ in range(1 if op == "drop" else draw(st.sampled_from([1, 1, 1, 4]))):
            named = draw(st.integers(0, 6))
            must = op in ("label", "delete")
            rows.append(
                Row(
                    op,
                    None if op == "drop" or (named == 6 and not must) else named if named % 2 else f"id {named}",
                    draw(features) if op in ("insert", "predict") else None,
                    draw(label) if op in ("insert", "label") else None,
                )
            )
        timestamp = draw(st.sampled_from([now, now, now, now, now - 4_000, now + 40 * SPAN, -1]))
        records.append(Record(b"key %d" % draw(st.integers(0, 2)), tuple(rows), max(timestamp, -1)))
    return records


def _answers(results: list[OutRecord]) -> dict[tuple[int, int], Any]:
    found = {}
    for record in results:
        output = decode_output(record.value or b"", record.headers)
        if isinstance(output, Prediction):
            found[output.source.offset, output.source.row] = output.label
        elif isinstance(output, RegressionPrediction):
            found[output.source.offset, output.source.row] = output.value
    return found


def check_as_the_twin_says(
    models: dict[str, dict[str, Any]], records: list[Record], most: int, sizes: list[int], *, restart: bool
) -> None:
    """Check what a pipeline does with records against the twin, and against plain pipelines with inserts."""
    fates, twin = judged(records, most)
    pipeline = pipeline_of(models, {"max": most, "for": f"{SPAN // 1000}s"})
    ran = run(pipeline, records, sizes, restart=restart)
    assert ran.faults == [
        (at, row) for at, rows in enumerate(fates) for row, fate in enumerate(rows) if fate.what == "late"
    ]
    store = pipeline.late.store
    assert store is not None
    assert len(store) >= len(twin.pending)  # what is due may be there a little longer
    forgotten = {
        (at, row) for at, rows in enumerate(fates) for row, fate in enumerate(rows) if fate.what == "forgotten"
    }
    for name, model in models.items():
        plain = {each: told for each, told in model.items() if each != "late_labels"}
        learns = model.get("late_labels", True)
        expected = run(pipeline_of({name: plain}, None), translated(records, fates, learns=learns), [1_000])
        assert ran.results[name] == expected.results[name], name
        labels = {
            (at, row) for at, rows in enumerate(fates) for row, fate in enumerate(rows) if fate.what == "late"
        }
        if not learns:
            labels |= {
                (at, row)
                for at, each in enumerate(records)
                for row, told in enumerate(each.rows)
                if told.op == "label"
            }
        assert ran.refusals[name] == [
            each
            for each in expected.refusals[name]
            if not (each[2] == "absent-id" and each[:2] in forgotten) and each[:2] not in labels
        ]
        mine = next(each for each in pipeline.models if each.name == name)
        assert model_contents(mine) == model_contents(expected.pipeline.models[0])
        if "evaluate" in model and learns:
            _check_delayed(model, records, fates, _answers(ran.results[name]), ran.delayed[name])
        else:
            assert not ran.delayed[name]


def _check_delayed(
    model: dict[str, Any],
    records: list[Record],
    fates: list[list[Fate]],
    answers: dict[tuple[int, int], Any],
    told: list[Any],
) -> None:
    """Check the evaluations of answers that were given when the predicts came."""
    judgements: list[tuple[Any, Any]] = []  # truth and answer
    expected = []
    for record, rows in zip(records, fates, strict=True):
        for row, fate in zip(record.rows, rows, strict=True):
            kept: Kept | None = fate.kept
            if fate.what not in ("labelled", "settled") or kept is None or kept.at not in answers:
                continue
            if model["kind"] == "regression-tree" or row.y in model["classes"]:
                judgements.append((row.y, answers[kept.at]))
                if len(judgements) % 2 == 0:
                    expected.append(list(judgements))
    assert [each.examples for each in told] == [len(each) for each in expected]
    for evaluation, all_of_them in zip(told, expected, strict=True):
        for measures, some in ((evaluation.total, all_of_them), (evaluation.recent, all_of_them[-3:])):
            if model["kind"] == "regression-tree":
                errors = [abs(truth - answer) for truth, answer in some if answer is not None]
                assert measures.weight == len(errors)
                assert not errors or abs(measures.mae - sum(errors) / len(errors)) < 1e-9
            else:
                assert measures.weight == len(some)
                assert measures.accuracy == sum(truth == answer for truth, answer in some) / len(some)
                assert measures.log_loss is measures.majority is measures.kappa_m is None


@pytest.mark.slow
@given(streams("ids"), st.integers(1, 6), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.booleans())
def test_models_learn_what_the_twin_says(
    records: list[Record], most: int, sizes: list[int], restart: bool
) -> None:
    """Whatever the batches, and with a restore after each, models end and write as after inserts at label time."""
    check_as_the_twin_says(IDS, records, most, sizes, restart=restart)


@pytest.mark.slow
@given(streams("names"), st.integers(1, 6), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.booleans())
def test_names_and_values_are_kept(records: list[Record], most: int, sizes: list[int], restart: bool) -> None:
    """The same of features that have names and values, and of labels that are numbers."""
    check_as_the_twin_says(NAMES, records, most, sizes, restart=restart)
