"""A pool in shards answers like a pool in one piece, and like the oracle, to the bit."""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

from algorithms.core.cadence import Emit, When
from algorithms.core.events import OnDuplicate, Op, Status
from algorithms.splits.kernel import Decisions
from algorithms.splits.pool import SplitPool
from algorithms.splits.shards import ShardedPool
from tests.oracles.naive import Event, Mix, Pair, Settings, Stream, batch_of, ids
from tests.support.examples import budget

CHANGE, THIRD, PERIOD, NEVER = Emit(When.CHANGE), Emit(When.EVERY, 3), Emit(When.EVERY_MS, 40), Emit()
SHARDS = [1, 3, 8]
# By value, by id and in windows; without an example store, deletes are by id.
HISTORIES: dict[str, tuple[Mix, dict[str, Any]]] = {
    "verified": (Mix(ids(200), indexes=3, drops=0.01, longest=12), {"verify_deletes": True}),
    "twins": (Mix(ids(4), longest=3, false_deletes=0.2), {"verify_deletes": True}),
    "window": (Mix(ids(200), indexes=2, ids=0.5, drops=0.005, longest=12), {"window": 40}),
    "window-of-twins": (Mix(ids(4), longest=3, false_deletes=0.2), {"window": 9}),
    "replaced": (
        Mix(ids(60), ids=1.0, false_deletes=0.0),
        {"on_duplicate": OnDuplicate.REPLACE, "max_live_ids": 25},
    ),
    "ignored": (
        Mix(ids(60), ids=1.0, indexes=3, drops=0.02, false_deletes=0.0),
        {"on_duplicate": OnDuplicate.IGNORE, "max_keys": 2},
    ),
}


@dataclass(frozen=True)
class Sharded(Settings):
    """Settings of a pool in shards."""

    shards: int = 1

    def pool(self) -> SplitPool:
        """Return a new pool; all that tests call is the same."""
        return cast(SplitPool, ShardedPool(**vars(self)))


def whole(settings: Sharded) -> SplitPool:
    """Return the pool in one piece that has the same settings."""
    return SplitPool(**{name: value for name, value in vars(settings).items() if name != "shards"})


def assert_same(sharded: SplitPool, single: SplitPool, events: list[Event]) -> None:
    """Apply events to both pools and compare all that comes back."""
    batch = batch_of(events, single)
    answers, expected = sharded.apply(batch), single.apply(batch)
    for name in Decisions._fields:
        got, wanted = np.asarray(getattr(answers, name)), np.asarray(getattr(expected, name))
        assert np.array_equal(got, wanted), name
        assert got.dtype == wanted.dtype, name


@pytest.mark.parametrize("emit", [(CHANGE, PERIOD), (THIRD, CHANGE), (PERIOD, THIRD), (CHANGE, CHANGE)])
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("shards", SHARDS)
def test_shards_answer_like_one_pool(shards: int, history: str, emit: tuple[Emit, Emit]) -> None:
    """Statuses, decisions, predictions and changes are the single pool's, through deletes, drops and copies."""
    mix, rest = HISTORIES[history]
    settings = Sharded(shards=shards, splits=emit[0], trees=emit[1], **rest)
    sharded, single = settings.pool(), whole(settings)
    stream = Stream(shards)
    for deletes in (0.1, 0.6, 0.3):
        for events in stream.batches(stream.take(budget(300), replace(mix, deletes=deletes, predicts=0.1))):
            assert_same(sharded, single, events)
        sharded.check()
        sharded = settings.pool().restore({name: array.copy() for name, array in sharded.arrays().items()})
    for events in stream.batches(stream.drain()):
        assert_same(sharded, single, events)
    for key in range(3):
        assert sharded.best(key) == single.best(key)
        assert sharded.top(key, 20) == single.top(key, 20)
        assert sharded.within(key, 0.1) == single.within(key, 0.1)
    sizes = [(pool.alive, pool.slots, pool.live_examples, pool.features(0)) for pool in (sharded, single)]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("shards", SHARDS)
def test_shards_answer_like_the_oracle(shards: int, history: str) -> None:
    """The same against dictionaries and lists, with looks at the best features after every batch."""
    mix, rest = HISTORIES[history]
    pair = Pair(Sharded(shards=shards, splits=CHANGE, trees=THIRD, criterion="gini", **rest))
    stream = Stream(40 + shards)
    for deletes in (0.1, 0.6):
        for events in stream.batches(stream.take(budget(200), replace(mix, deletes=deletes, predicts=0.1))):
            pair.feed(events)
        pair.check()


def test_a_delete_that_one_shard_alone_could_refuse_is_refused_by_all() -> None:
    """Examples of the same features, differently combined, are told apart though no shard sees a whole one."""
    pair = Pair(Sharded(shards=8, verify_deletes=True))
    pair.feed([Event(Op.INSERT, features, label) for features in ((1, 2), (3, 4)) for label in (0, 1)])
    got = pair.feed([Event(Op.DELETE, (1, 4)), Event(Op.DELETE, (1,)), Event(Op.DELETE, (2, 1))])
    assert [each.status for each in got] == [Status.ABSENT_EXAMPLE] * 2 + [Status.APPLIED]
    pair.check()


def test_a_delete_by_value_without_a_store_is_refused_before_anything_is_applied() -> None:
    """Counts alone cannot tell all shards the same, so the batch raises and changes nothing."""
    pool = Sharded(shards=3).pool()
    events = [Event(Op.INSERT, (1,)), Event(Op.DELETE, (1,))]
    with pytest.raises(ValueError, match="verify_deletes"):
        pool.apply(batch_of(events, pool))
    assert pool.alive == 0
    pool.apply(batch_of(events[:1], pool))
    assert pool.slots == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shards": 0}, "shards"),
        ({"shards": 257}, "shards"),
        ({"names": True}, "names"),
        ({"finder": "updent"}, "approximate"),
        ({"finder": "exactly"}, "expected a finder"),
    ],
)
def test_settings_that_shards_cannot_serve_are_named(settings: dict[str, Any], message: str) -> None:
    """The number of shards has bounds, features are ids, and finders are exact."""
    with pytest.raises(ValueError, match=message):
        ShardedPool(**{"shards": 2, **settings})


def test_a_batch_of_nothing_gives_nothing() -> None:
    """An empty batch is no error."""
    pool = Sharded(shards=3).pool()
    assert not any(np.size(column) for column in pool.apply(batch_of([], pool))[:-1])


def test_features_spread_evenly_over_shards() -> None:
    """Consecutive ids, of which the low ones are frequent, meet in no shard."""
    pool = ShardedPool(shards=8)
    pool.apply(batch_of([Event(Op.INSERT, tuple(range(8000)))], cast(SplitPool, pool)))
    each = [int(pool.arrays()[f"{shard}.slots.counts"][0]) for shard in range(8)]
    assert sum(each) == 8000
    assert 900 < min(each) <= max(each) < 1100
