"""Trees in arrays without gaps go on as they were."""

from __future__ import annotations

import random

import numpy as np
import pytest

from algorithms.trees.pool import TreePool
from tests.oracles.tree_streams import tree_columns


def _learn(pool: TreePool, drawn: random.Random, key: int, *, turned: bool, count: int = 1) -> None:
    for _ in range(count):
        x = [feature for feature in range(8) if drawn.random() < 0.5]
        pool.insert(x, int((0 in x) != turned), key=key)


def _told(pool: TreePool, key: int) -> tuple[object, ...]:
    answers = [pool.predict([feature], key=key).tolist() for feature in range(8)]
    return tree_columns(pool.tree(key)), pool.sizes(key), pool.alternates, answers


def test_alternates_are_packed_with_what_they_grow_beside() -> None:
    """A tree with a subtree beside it learns on as one in a pool that was not packed, up to the change of both."""
    packed, other = (TreePool(policy="hat", grace_period=20, tie_threshold=0.5) for _ in range(2))
    for pool in (packed, other):
        drawn = random.Random(5)
        for key in range(40):
            _learn(pool, drawn, key, turned=False, count=3)
        _learn(pool, drawn, 21, turned=False, count=400)
        while not pool.alternates.open:
            _learn(pool, drawn, 21, turned=True)
        _learn(pool, drawn, 21, turned=True, count=10)
        for key in set(range(40)) - {21, 30}:
            pool.drop(key)
    before = packed.nbytes
    packed.pack(np.array([21, 30], np.int32))
    packed.check()
    assert packed.nbytes < before / 2
    assert [_told(packed, 0), _told(packed, 1)] == [_told(other, 21), _told(other, 30)]
    for pool, key in ((packed, 0), (other, 21)):
        drawn = random.Random(6)
        while not pool.alternates.promoted:
            _learn(pool, drawn, key, turned=True)
        _learn(pool, drawn, key, turned=True, count=200)
    packed.check()
    assert _told(packed, 0) == _told(other, 21)


@pytest.mark.parametrize("settings", [{"memory_limit": 100_000}, {"policy": "exact"}])
def test_pools_whose_rows_have_an_order_are_not_packed(settings: dict[str, object]) -> None:
    """Which leaves sleep may depend on it; the indexes of exact trees are another storage."""
    assert not TreePool(**settings).can_move  # type: ignore[arg-type]
    assert TreePool().can_move
