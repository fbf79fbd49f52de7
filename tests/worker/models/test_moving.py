"""Pools of which most has gone become small again, and nothing that is written tells of it."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from algorithms.regression import memory
from algorithms.splits.slots import KEY
from tests.support.model_contents import model_contents
from tests.support.one_model import SOURCE, one_model
from worker.commands.running import worker_on
from worker.log.embedded import EmbeddedLog
from worker.log.port import OutRecord, Records, TopicPartition
from worker.models import moving
from worker.models.base import PoolModel
from worker.models.keys import Keys
from worker.models.split import SplitModel
from worker.pipeline import Pipeline
from worker.settings import Settings

SPLIT: dict[str, Any] = {
    "kind": "split",
    "input": "in",
    "classes": [0, 1],
    "features": "ids",
    "emit": {"splits": {"every": 3}},
}
MODELS: dict[str, dict[str, Any]] = {
    "ids": SPLIT,
    "names": SPLIT | {"features": "names", "on_duplicate": "replace"},
    "window": SPLIT | {"features": "names", "window": 3},
    "verified": SPLIT | {"features": "names", "verify_deletes": True, "finder": "baseent"},
    "expire": SPLIT | {"expire": "10s"},
    "expire, window": SPLIT | {"expire": "10s", "window": 2, "features": "names"},
    "numbers": {name: value for name, value in SPLIT.items() if name != "classes"}
    | {"target": "number", "label_range": [0, 2], "label_unit": 1e-10}  # labels of more than 32 bits
    | {"features": "names", "verify_deletes": True},
}
TREE: dict[str, Any] = {
    "kind": "tree",
    "input": "in",
    "classes": [0, 1],
    "features": "ids",
    "grace_period": 2,
    "tie_threshold": 0.9,
    "evaluate": {"emit": {"every": 4}},
    "on_delete": "ignore",
}
ATTRIBUTES = {"attributes": {"numeric": [1, 2], "nominal": [3], "quantised": [4]}}
VALUES = ATTRIBUTES | {"predict": "adaptive"}
FOREST: dict[str, Any] = {
    "kind": "forest",
    "of": {"kind": "tree", "grace_period": 2, "tie_threshold": 0.9},
    **{name: TREE[name] for name in ("input", "classes", "features", "evaluate", "on_delete")},
    "trees": 2,
    "warning": 0.999,
    "drift": 0.9,
}
NUMBERS: dict[str, Any] = {
    "kind": "regression-tree",
    "input": "in",
    "features": "ids",
    "grace_period": 4,
    "tie_threshold": 0.9,
    "evaluate": {"emit": {"every": 4}},
    "attributes": {"numeric": [1, 2, 3]},
}
PACKED: dict[str, dict[str, Any]] = {
    "periodic": TREE | {"policy": "periodic"},
    "imac": TREE | VALUES | {"policy": "imac", "check_every": 2},
    "osm": TREE | VALUES | {"policy": "osm", "expire": "10s"},
    "efdt": TREE | VALUES | {"policy": "efdt", "check_every": 3},
    "efdt-imac": TREE | VALUES | {"policy": "efdt-imac", "criterion": "gini", "check_every": 3},
    "hat": TREE | VALUES | {"policy": "hat"},
    "hat-imac": TREE | VALUES | {"policy": "hat-imac", "criterion": "gini", "check_every": 2},
    "names": TREE | {"features": "names", "attributes": {"numeric": ["word 1"], "quantised": ["word 2"]}},
    "poor": TREE | VALUES | {"drop_poor": True, "grace_period": 3},
    "forest": FOREST | ATTRIBUTES,
    "forest names": FOREST
    | {"features": "names", "attributes": {"numeric": ["word 1"], "quantised": ["word 2"]}, "expire": "10s"},
    "regression": NUMBERS | {"expire": "10s"},
    "linear": NUMBERS | {"observer": "ebst", "predict": "adaptive", "interval": 0.8},
    "limited": NUMBERS | {"predict": "adaptive", "memory_limit": 1 << 20},
    "regression names": NUMBERS | {"features": "names", "attributes": {"numeric": ["word 1", "word 2"]}},
}
BOUNDS = {"keys": 14, "live_ids": 12}

Event = tuple[bytes, Any, int]  # key, value, timestamp


@pytest.fixture(autouse=True)
def _from_the_first_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pools of a few keys move, too, and a limit of memory be reached by a few features."""
    monkeypatch.setattr(moving, "LEAST", 0)
    rows_within = memory.rows_within
    monkeypatch.setattr(memory, "rows_within", lambda limit, **of: (30, 60) if limit else rows_within(limit, **of))


def _records(events: Sequence[Event], start: int) -> Records:
    keys, values, times = zip(*events, strict=True)
    packed = [None if value is None else msgpack.packb(value) for value in values]
    offsets = np.arange(start, start + len(events))
    empty: list[Any] = [()] * len(events)
    return Records(SOURCE, offsets, np.array(times, np.int64), list(keys), packed, empty, start + len(events))


def _run(model: dict[str, Any], events: Sequence[Event], sizes: Sequence[int], *, restart: bool) -> Any:
    """Return what is written, what the model is in the end, and how often a move was under way."""
    pipeline, outputs, start, turn, moves = one_model(model, BOUNDS), [], 0, 0, 0
    while start < len(events):
        size = sizes[turn % len(sizes)]
        outputs += pipeline.process(_records(events[start : start + size], start)).outputs
        moves += _is_moving(pipeline)
        pipeline.models[0].check()
        if restart:
            _restart(pipeline)
            pipeline.models[0].check()
        start, turn = start + size, turn + 1
    return _in_order(outputs), model_contents(pipeline.models[0]), moves


def _in_order(outputs: list[OutRecord]) -> list[OutRecord]:
    return sorted(outputs, key=lambda record: record.topic)


def _restart(pipeline: Pipeline) -> None:
    pipeline.restore(
        {
            name: {each: array.copy() for each, array in arrays.items()}
            for name, arrays in pipeline.arrays().items()
        }
    )


def _is_moving(pipeline: Pipeline) -> bool:
    [model] = pipeline.models
    assert isinstance(model, PoolModel)
    return model._left is not None


@st.composite
def _streams(draw: st.DrawFn, names: bool) -> list[Event]:
    """Return rounds in which many keys learn something, and then most of them go, at once or one by one."""
    now = 1_000_000
    events: list[Event] = []
    for _ in range(draw(st.integers(1, 4))):
        keys = draw(st.lists(st.integers(0, 15), min_size=1, max_size=24))
        for key in keys:
            events.append((b"%d" % key, draw(_inserts(names)), now))
            now += draw(st.sampled_from([1, 500, 4_000]))
        now += draw(st.sampled_from([0, 0, 30_000]))
        for key in sorted(set(keys)):
            kind = draw(st.sampled_from(["drop", "drop", "drop", "stay", "other"]))
            if kind != "stay":
                events.append((b"%d" % key, None if kind == "drop" else draw(_others(names)), now))
                now += 1
        for _ in range(draw(st.integers(0, 6))):
            events.append((b"%d" % draw(st.integers(0, 15)), draw(_others(names) | _inserts(names)), now))
            now += draw(st.sampled_from([1, 4_000]))
    return events


def _x(names: bool) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.integers(0, 6), max_size=4, unique=True).map(
        lambda x: [f"word {each}" for each in x] if names else x
    )


def _inserts(names: bool) -> st.SearchStrategy[dict[str, Any]]:
    plain = {"x": _x(names), "y": st.integers(0, 1)}
    named = st.fixed_dictionaries({**plain, "id": st.integers(0, 5)})
    return named | st.fixed_dictionaries(plain)


def _others(names: bool) -> st.SearchStrategy[dict[str, Any]]:
    by_id = st.fixed_dictionaries({"op": st.just("delete"), "id": st.integers(0, 5)})
    by_value = st.fixed_dictionaries({"op": st.just("delete"), "x": _x(names), "y": st.integers(0, 1)})
    predict = st.fixed_dictionaries({"op": st.just("predict"), "x": _x(names)})
    return by_id | by_value | predict


@pytest.mark.parametrize("told", MODELS)
@given(st.data())
@settings(max_examples=60, phases=[Phase.explicit, Phase.generate])
def test_results_are_those_of_a_pool_that_never_moves(told: str, data: st.DataObject) -> None:
    """Whatever the batches, and with a restore after each: the same bytes, refusals at bounds among them."""
    model = MODELS[told]
    events = data.draw(_streams(model["features"] == "names"))
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    restart = data.draw(st.booleans())
    outputs, contents, _ = _run(model, events, sizes, restart=restart)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moving, "LEAST", 1 << 62)
        expected = _run(model, events, [len(events)], restart=False)
    assert (outputs, contents, 0) == expected


def _growing(seed: int, names: bool) -> list[Event]:
    """Return rounds in which keys learn enough for their trees to grow, and then most of them go."""
    drawn, now, events = random.Random(seed), 1_000_000, list[Event]()

    def example() -> dict[str, Any]:
        turned = len(events) > 400  # what alternates of trees are for
        present = [each for each in range(7) if drawn.random() < 0.5]
        values = [drawn.choice([1, 2, 3, 5]) if each in (1, 2, 3, 4) else 1 for each in present]
        if names:
            values = [value if each in (1, 2) else 1 for each, value in zip(present, values, strict=True)]
        told: list[Any] = [f"word {each}" for each in present] if names else present
        return {
            "x": {"i": told, "v": [float(value) for value in values]},
            "y": int((0 in present or 5 in values) != turned),
        }

    for _ in range(drawn.randint(1, 3)):
        keys = drawn.sample(range(14), drawn.randint(1, 14))
        for _ in range(drawn.randint(10, 150)):
            events.append((b"%d" % drawn.choice([3, 3, 3, *keys]), example(), now))
            now += drawn.choice([1, 1, 1, 500])
        now += drawn.choice([0, 0, 30_000])
        for key in keys:
            if key != 3 and drawn.random() < 0.9:
                events.append((b"%d" % key, None, now))
        for _ in range(drawn.randint(0, 12)):
            told = example()
            if drawn.random() < 0.5:
                told = {"op": "predict", "x": told["x"]}
            events.append((b"%d" % drawn.randrange(15), told, now))
            now += drawn.choice([1, 4_000])
    return events


@pytest.mark.wide(4)
@pytest.mark.parametrize("told", PACKED)
@given(st.integers(0, 1 << 32), st.lists(st.integers(1, 40), min_size=1, max_size=5), st.booleans())
@settings(max_examples=6, phases=[Phase.explicit, Phase.generate])
def test_results_are_those_of_trees_that_stay_where_they_are(
    told: str, seed: int, sizes: list[int], restart: bool
) -> None:
    """Trees whose arrays are made anew, at once, go on as they were: whatever the batches, and after restores."""
    model = PACKED[told]
    events = _growing(seed, model["features"] == "names")
    outputs, contents, _ = _run(model, events, sizes, restart=restart)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moving, "LEAST", 1 << 62)
        expected = _run(model, events, [len(events)], restart=False)
    assert (outputs, contents, 0) == expected


def _most_go(keys: int, left: int) -> list[Event]:
    inserts = [(b"%d" % key, {"x": [key % 7, 9], "y": key % 2, "id": key}, 1) for key in range(keys)]
    return [*inserts, *((b"%d" % key, None, 1) for key in range(left, keys))]


def test_arrays_are_as_large_as_if_only_the_rest_had_ever_been() -> None:
    """Of 400 keys ten stay: all arrays become those of ten keys, the old ones go."""
    model = one_model(SPLIT)
    events = [*_most_go(400, 10), *[(b"0", {"op": "predict", "x": [1]}, 1)] * 8]
    for start in range(0, len(events), 5):
        model.process(_records(events[start : start + 5], start))
    assert not _is_moving(model)
    only = one_model(SPLIT)
    only.process(_records(_most_go(10, 10), 0))
    assert model.models[0].status().bytes <= 1.5 * only.models[0].status().bytes
    assert model_contents(model.models[0]) == model_contents(only.models[0])


@pytest.mark.parametrize("told", ["imac", "forest", "regression"])
def test_arrays_of_trees_are_as_large_as_if_only_the_rest_had_ever_been(told: str) -> None:
    """Of 400 keys ten stay, and what is known of their labels beside the trees stays with them."""
    settings = PACKED[told]
    model, only = one_model(settings), one_model(settings)
    learned, drops = _most_go(400, 10)[:400], _most_go(400, 10)[400:]
    model.process(_records([*learned, *drops], 0))
    model.models[0].check()
    only.process(_records(learned[:10], 0))
    before, after = (each.models[0].status() for each in (only, model))
    assert (after.keys, after.slots, after.nodes) == (10, before.slots, before.nodes)
    assert after.bytes <= 1.2 * before.bytes
    contents, expected = (model_contents(each.models[0]) for each in (model, only))
    contents[b""], expected[b""] = (each[b""]["labels"] for each in (contents, expected))
    assert contents == expected


@pytest.mark.parametrize("told", ["names", "forest names", "regression names"])
def test_names_of_features_that_only_keys_that_went_had_take_no_room(told: str) -> None:
    """Of 200 keys ten stay, each with names of its own; what is awaited is still found."""
    settings = PACKED[told]
    attributes = settings["attributes"] | {"binary": ["of everybody"]}
    model, only = one_model(settings | {"attributes": attributes}), one_model(settings)
    learned = [
        (b"%d" % key, {"x": [f"word {each} of {key}" for each in range(9)], "y": key % 2}, 1) for key in range(200)
    ]
    model.process(_records([*learned, *((b"%d" % key, None, 1) for key in range(10, 200))], 0))
    model.models[0].check()
    only.process(_records(learned[:10], 0))
    assert model.models[0].status().bytes <= 1.2 * only.models[0].status().bytes
    outcome = model.process(_records([(b"3", {"x": ["of everybody", "word 1"], "y": 1}, 1)], 390)).outcomes[0][1]
    assert outcome.missing == {"attribute word 2"}
    model.models[0].check()


def test_each_event_lets_so_many_keys_move() -> None:
    """Beside its own key an event moves `AT_ONCE` others; a checkpoint on the way holds both pools."""
    model = one_model(SPLIT)
    model.process(_records(_most_go(100, 40), 0))
    [split] = model.models
    assert isinstance(split, SplitModel)
    assert split._left is not None
    model.process(_records([(b"30", {"op": "predict", "x": [1]}, 1)] * 3, 160))
    assert len(split._left.keys) == 40 - 1 - 3 * moving.AT_ONCE
    assert (split.status().keys, split.status().slots, split.status().examples) == (40, 80, 40)
    assert {name.startswith(moving.MOVED) for name in split.arrays()} == {False, True}
    _restart(model)
    model.process(_records([(b"30", {"op": "predict", "x": [1]}, 1)] * 20, 163))
    assert not _is_moving(model)
    split.check()


def test_keys_of_a_batch_move_in_the_order_of_its_records() -> None:
    """Where rows lie follows from what came: workers with the same batches have the same arrays."""
    model = one_model(SPLIT)
    model.process(_records(_most_go(100, 40), 0))
    [split] = model.models
    assert isinstance(split, SplitModel)
    told = [b"%d" % key for key in (*range(39, 20, -1), *range(0, 20, 2), 39, 0)]
    model.process(_records([(key, {"op": "predict", "x": [1]}, 1) for key in told], 160))
    heads = split._pool.arrays()["slots.rows"][: 2 * len(set(told)), KEY] >> 32
    assert [split._keys.key(number) for number in heads[::2].tolist()] == list(dict.fromkeys(told))


def test_memory_is_made_ready_before_the_first_key_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event makes `FOUND` bytes ready; that begins anew where the pool was full again meanwhile."""
    monkeypatch.setattr(moving, "FOUND", 100)
    inserts, drops = _most_go(100, 40)[:100], _most_go(100, 40)[100:]
    model = one_model(SPLIT)
    [split] = model.models
    assert isinstance(split, SplitModel)
    model.process(_records([*inserts, *drops], 0))
    assert (split.is_moving, split._left) == (True, None)
    model.process(_records(inserts[40:], 160))
    assert not split.is_moving
    model.process(_records(drops, 220))
    size = moving.needed(split._pool, split._keys)
    for event in range(-(-size // 100) - len(drops)):
        assert (split.is_moving, split._left) == (True, None)
        model.process(_records(_uses(1), 280 + event))
    assert split._left is not None


@pytest.mark.parametrize("expire", [{}, {"expire": "10s"}], ids=["plain", "expire"])
def test_a_worker_that_is_started_on_the_way_goes_on(tmp_path: Path, expire: dict[str, str]) -> None:
    """Its checkpoint holds both pools; it restores them, and results are those of a run without a restart."""
    told = {
        "log": {"embedded": str(tmp_path / "log.db")},
        "metrics": {"port": None},
        "models": {"split": SPLIT | expire},
        "checkpoint": {"records": 10},
    }
    worker_settings = Settings.model_validate_json(json.dumps(told))
    with EmbeddedLog(tmp_path / "log.db", group=worker_settings.group) as log:
        log.create_topic("in", 1)
        log.append(_published([*_most_go(100, 40), *_uses(5)]))
        with worker_on(log, worker_settings) as (worker, _):
            worker.run(lambda: False, until_end=True)
            assert _is_moving(worker.partitions[SOURCE].pipeline)
        log.append(_published(_uses(5)))
        with worker_on(log, worker_settings) as (worker, _):
            worker.run(lambda: False, until_end=True)
            pipeline = worker.partitions[SOURCE].pipeline
            assert _is_moving(pipeline)
            assert pipeline.models[0].status().keys == 40
            pipeline.models[0].check()
        high = log.watermarks(TopicPartition("in.state", 0)).high
        assert high > 0, "there was a checkpoint"


def _uses(count: int) -> list[Event]:
    return [(b"30", {"op": "predict", "x": [1]}, 1)] * count


def _published(events: Sequence[Event]) -> list[OutRecord]:
    packed = [(key, None if value is None else msgpack.packb(value), at) for key, value, at in events]
    return [OutRecord("in", 0, key, value, (), at) for key, value, at in packed]


def test_a_finder_whose_answers_follow_from_its_history_stays() -> None:
    """What updent would answer after a move is within its bound, but not the same."""
    model = one_model(SPLIT | {"finder": "updent", "alpha": 0.1})
    model.process(_records(_most_go(100, 10), 0))
    assert not _is_moving(model)


def test_keys_begin_anew_with_room_for_as_many() -> None:
    """What is given to no more keys than there were needs no other arrays."""
    keys = Keys()
    numbers = keys.given(b"key %d" % key for key in range(200))
    keys.keep(numbers, lambda each: each < 50)
    anew = keys.emptied()
    assert (len(anew), anew.reached) == (0, 0)
    before = anew.arrays()
    assert anew.given(map(keys.key, range(50))).tolist() == list(range(50))
    assert all(before[name] is array for name, array in anew.arrays().items())
    assert len(before["keys.start"]) == 50
    anew.keep(np.arange(50, dtype=np.int32), lambda each: each >= 0)
    anew.check(50)


def test_numbers_in_use_are_told_in_turn() -> None:
    """They are told so many at a time, from the lowest on, over gaps that are longer than a look."""
    keys = Keys()
    numbers = keys.given(b"%d" % key for key in range(200))
    keys.keep(numbers, lambda each: (each % 50 == 3) | (each > 190))
    found, at = [], 0
    while True:
        part, at = keys.in_use(at, 2)
        if not len(part):
            break
        found.append(part.tolist())
    assert found == [[3, 53], [103, 153], *([at, at + 1] for at in range(191, 199, 2)), [199]]
