"""What callers give, over all pools: what is refused, with which words, and that nothing comes of it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from algorithms.core.arrays import Int8s
from algorithms.core.events import Events, Op
from algorithms.dynamic.pool import DynamicPool
from algorithms.forests.growing import GrowingForestPool
from algorithms.forests.pool import ForestPool
from algorithms.mixed.pool import MixedSplitPool
from algorithms.regression.pool import RegressionPool
from algorithms.splits.pool import SplitPool
from algorithms.splits.shards import ShardedPool
from algorithms.trees.pool import TreePool

POOLS: dict[str, tuple[Callable[..., Any], type]] = {  # how it is made, the type of its labels
    "splits": (SplitPool, np.int32),
    "mixed splits": (MixedSplitPool, np.int32),
    "trees": (TreePool, np.int32),
    "dynamic": (DynamicPool, np.int32),
    "forests": (partial(ForestPool, trees=1, bagging="none", subspace=1.0), np.int32),
    "growing forests": (partial(GrowingForestPool, trees=1, bagging="none", subspace=1.0), np.int32),
    "regression": (RegressionPool, np.float64),
}
# What others say in weight, trees in votes.
_TOLD: dict[str, Any] = {"regression": 1.0, "forests": [0.0, 1.0], "growing forests": [0.0, 1.0]}
ONE_BY_ONE = pytest.mark.parametrize("kind", POOLS)
NAN, INF = float("nan"), float("inf")

WEIGHTS = [
    -1,
    NAN,
    INF,
    -INF,
    1 << 42,
    2.0**42,
    1 << 43,
    1 << 400,
    True,
    False,
    None,
    "1",
    b"1",
    [1.0],
    np.bool_(True),
]
IDS = [1.5, np.float64(0.5), -1, 1 << 32, 1 << 70, NAN, INF, True, None, "1", b"a", np.bool_(False), (1,)]
CLASSES = [0.5, -1, 2, 1 << 70, NAN, INF, None, "0", b"0", np.float64(0.25), [0]]
LABELS = [NAN, INF, 1e141, 1 << 600, True, None, "0", b"0", np.bool_(True), [0.0]]
NAMES = ["a", 1, None, True, bytearray(b"a"), (b"a",)]
EXAMPLES = [None, 5, "ab", b"ab", bytearray(b"ab"), [1, 1], [1, 1.0], [np.int64(1), 1]]
VALUES = [NAN, INF, True, None, "1", b"1", 1 << 2000, np.bool_(True), [1.0]]
KEYS = [-1, 0.5, (1 << 31) - 1, 1 << 80, True, None, "0", NAN]


def is_untouched(pool: Any) -> bool:
    """Return whether a pool holds what a new one does, and no name."""
    pool.check()
    return pool.alive == 0 and (pool.names is None or len(pool.names) == 0)


@ONE_BY_ONE
def test_what_is_no_example_is_refused_with_what_came(kind: str) -> None:
    """Labels, ids, names, weights, values and keys that are none raise the same error in all pools."""
    pool, named = POOLS[kind][0](), POOLS[kind][0](names=True)
    calls: list[tuple[Any, Any, str, dict[str, Any]]] = [
        *((pool, [1], "a weight", {"weight": each}) for each in WEIGHTS),
        *((pool, [3, each], "a feature id", {}) for each in IDS),
        *((pool, [1], "a label", {"label": each}) for each in (LABELS if kind == "regression" else CLASSES)),
        *((named, [b"b", each], "a feature's name in bytes", {}) for each in NAMES),
        *((pool, each, "feature", {}) for each in EXAMPLES),
        *((pool, [1], "the number of a key", {"key": each}) for each in KEYS),
    ]
    if kind == "splits":
        calls.append((pool, {1: 1.0}, "without values", {}))
    else:
        calls += [(pool, {1: each}, "value", {}) for each in VALUES]
    for at, x, expected, rest in calls:
        with pytest.raises(ValueError, match=f"expected .*{expected}.*, got "):
            at.insert(x, **{"label": 0} | rest)
        assert is_untouched(at)


@ONE_BY_ONE
def test_numbers_of_numpy_are_numbers(kind: str) -> None:
    """Whole numbers may be numpy's, or floats without a fraction; weights up to the last one below 2^42."""
    pool = POOLS[kind][0]()
    pool.insert([np.uint32(1), np.int64(2), 3.0, np.float64(4)], np.int16(1), weight=np.float32(0.5))
    pool.insert(np.array([1, 2], np.uint32), np.float64(0.0), key=np.int8(1), weight=2.0**42 - 1)
    pool.insert((), 1, key=np.uint64(2), weight=2.0**-20)
    assert pool.alive == 3
    if kind != "regression":  # a comparison tells two classes
        pool.insert([1], np.bool_(True), key=3)
        pool.insert([2], False, key=3)
    pool.check()


@ONE_BY_ONE
def test_the_heaviest_examples_fit_once(kind: str) -> None:
    """What a key weighs stays below 2^42: one example may come near it, the next one is refused by status."""
    pool = POOLS[kind][0]()
    assert pool.insert([1], 0, weight=2.0**42 - 2.0**-10) == 0
    assert pool.insert([2], 1, weight=2.0**-10).name == "COUNT_OVERFLOW"
    assert pool.insert([2], 1, weight=2.0**-10 - 2.0**-20) == 0
    assert pool.insert([2], 1, weight=2.0**-20).name == "COUNT_OVERFLOW"
    pool.check()


def batch_of(kind: str, **columns: Any) -> Events:
    """Return a batch of an insert and a prediction, but for these columns."""
    good = Events.of(
        np.array([Op.INSERT, Op.PREDICT], np.int8),
        np.array([1, 0], POOLS[kind][1]),
        np.array([0, 2, 3], np.int64),
        np.array([7, 9, 7], np.uint32),
    )
    return good._replace(**columns)


BATCHES: list[tuple[dict[str, Any], str]] = [
    ({"key": np.array([0, -1], np.int32)}, "keys from 0 to 2147483646, got -1 to 0"),
    (
        {"key": np.array([0, 0], np.int64)},
        "the column key as an array of int32 of 1 dimension, got int64 of 1",
    ),
    ({"key": [0, 0]}, "the column key as an array of int32 .*, got list"),
    (
        {"key": np.zeros((2, 1), np.int32)},
        "the column key as an array of int32 of 1 dimension, got int32 of 2",
    ),
    ({"weight": np.ones(2)}, "the column weight as an array of int64 .*, got float64"),
    ({"weight": np.ones(3, np.int64)}, "2 rows in the column weight, got 3"),
    ({"op": np.array([0, 4], np.int8)}, "ops from -128 to 3, got 0 to 4"),
    ({"pointer": np.array([0, 3], np.int64)}, "3 rows in the column pointer, got 2"),
    ({"pointer": np.array([1, 2, 3], np.int64)}, "a pointer that ascends from 0 to 3"),
    ({"pointer": np.array([0, 4, 3], np.int64)}, "a pointer that ascends from 0 to 3"),
    ({"pointer": np.array([0, -1, 3], np.int64)}, "a pointer that ascends from 0 to 3"),
    ({"pointer": np.array([0, 2, 2], np.int64)}, "a pointer that ascends from 0 to 3"),
    ({"feature": np.array([7, 9, 7], np.int64)}, "the column feature as an array of uint32"),
]


@ONE_BY_ONE
def test_columns_that_are_none_are_refused(kind: str) -> None:
    """What would lead a kernel astray is refused before an event is applied: types, lengths, pointers, keys."""
    for columns, reason in BATCHES:
        pool = POOLS[kind][0]()
        with pytest.raises(ValueError, match=f"expected {reason}"):
            pool.apply(batch_of(kind, **columns))
        assert is_untouched(pool)
    named = POOLS[kind][0](names=True)
    with pytest.raises(ValueError, match="expected features from 0 to 15, got 7 to 16"):
        named.apply(batch_of(kind, feature=np.array([7, 16, 7], np.uint32)))
    pool.apply(batch_of(kind))
    assert pool.alive == 1


@ONE_BY_ONE
def test_all_pools_speak_the_same_words(kind: str) -> None:
    """Every pool inserts, which it calls learning too, deletes, predicts and drops, one event at a time."""
    pool = POOLS[kind][0](names=True)
    pool.insert([b"a", b"b"], 1, id="first", key=1)
    pool.learn([b"b"], 1, weight=2.0, key=1, time=7)
    assert pool.are_alive(np.array([0, 1, 9], np.int32)).tolist() == [False, True, False]
    assert np.array_equal(pool.predict([b"b"], key=1), _TOLD.get(kind, [0.0, 3.0]))
    assert np.array_equal(pool.predict([], key=9), np.nan if kind == "regression" else [0.0, 0.0], equal_nan=True)
    grows_only = kind in ("trees", "growing forests", "regression")
    for given in ({"id": "first"}, {"x": [b"b"], "label": 1, "weight": 2.0}):
        assert pool.delete(key=1, **given).name == ("CANNOT_FORGET" if grows_only else "APPLIED")
    pool.check()
    assert len(pool.names) == (2 if grows_only else 0)
    assert pool.nbytes == sum(array.nbytes for array in pool.arrays().values())
    pool.drop(key=1)
    assert is_untouched(pool)


def test_shards_speak_the_words_of_one_pool() -> None:
    """A pool in shards takes single events too."""
    single, sharded = SplitPool(verify_deletes=True), ShardedPool(shards=2, verify_deletes=True)
    for pool in (single, sharded):
        pool.insert(range(20), 1, id="first")
        pool.learn([3], 0)
        pool.learn([5], 1, weight=2.0)
    assert sharded.predict([3]).tolist() == single.predict([3]).tolist() == [1.0, 0.0]  # without 5
    assert sharded.best() == single.best()
    assert sharded.delete(id="first") == sharded.delete([3], 0) == 0
    sharded.check()
    sharded.drop()
    sharded.check()
    assert sharded.alive == 0


@pytest.mark.parametrize("make", [SplitPool, lambda: ShardedPool(shards=2)], ids=["one", "shards"])
def test_splits_refuse_events_that_they_have_no_status_for(make: Callable[[], Any]) -> None:
    """What is inserted, or deleted by value, has a label 0 or 1, a weight above 0 and no repeats."""
    for columns, reason in (
        ({"label": np.array([2, 0], np.int32)}, "labels 0 or 1, got 2 in the event 0"),
        ({"label": np.array([-1, 0], np.int32)}, "labels 0 or 1, got -1 in the event 0"),
        ({"weight": np.array([0, 1], np.int64)}, "weights of at least 1 unit, got 0 in the event 0"),
        ({"feature": np.array([7, 7, 7], np.uint32)}, "each feature of an example once"),
        ({"value": np.array([1.0, 1.0, 0.5])}, "features of the value 1, got 0.5 in the event 1"),
    ):
        pool = make()
        with pytest.raises(ValueError, match=f"expected {reason}"):
            pool.apply(batch_of("splits", **columns))
        assert pool.alive == 0
    ops: Int8s = np.array([Op.PREDICT, -1], np.int8)
    make().apply(batch_of("splits", op=ops, label=np.full(2, 9, np.int32), weight=np.zeros(2, np.int64)))


def test_ids_are_told_apart_by_what_they_are() -> None:
    """Numpy's numbers and texts name the examples that Python's do; what is no id is refused."""
    pool = DynamicPool()
    for id in (7, "7", b"7"):
        pool.insert([1], 0, id=id)
    for given in (np.int64(7), np.str_("7"), np.bytes_(b"7")):
        assert pool.delete(id=given) == 0  # type: ignore[arg-type]
    for wrong in (True, 7.0, (7,), np.float64(7), np.bool_(True)):
        with pytest.raises(ValueError, match="expected an id that is a whole number, text or bytes, got"):
            pool.insert([1], 0, id=wrong)  # type: ignore[arg-type]
    assert pool.sizes().examples == 0
