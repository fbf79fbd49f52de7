"""States of forests that had a pool for each tree number, made when there were such."""

from __future__ import annotations

import random

import numpy as np

from algorithms.core.events import OnDuplicate
from algorithms.core.kinds import Kind
from algorithms.forests.earlier import in_one
from algorithms.forests.pool import ForestPool
from tests.support.places import GOLDEN

FORESTS = GOLDEN / "forests_apart.npz"  # after 120 steps, and the votes of the next 80


def _step(pool: ForestPool, draw: random.Random, at: int) -> list[float]:
    """Insert, delete or drop, and return the votes on an example."""
    x = {f: round(draw.gauss(f, 2.0), 2) for f in range(4)}
    x |= dict.fromkeys((f for f in (5, 9, 11) if draw.random() < 0.4), 1.0)
    key, label, weight = draw.randrange(2), draw.randrange(3), draw.choice((1.0, 0.5))
    pool.insert(x, label, weight=weight, id=at if at % 3 else None, key=key)
    if at % 4 == 0:
        pool.delete(id=draw.randrange(at + 1), key=key)
    if at == 90:
        pool.drop(1)
    votes: list[float] = pool.predict(x, key=key).tolist()
    return votes


def test_forests_with_a_pool_for_each_tree_go_on() -> None:
    """One pool of all trees holds what they held, numbers and lists included, and votes as they did."""
    with np.load(FORESTS) as kept:
        arrays = {name: kept[name] for name in kept}
    expected = arrays.pop("votes").tolist()
    pool = ForestPool(
        trees=3,
        bagging="2 of 3",
        subspace=0.7,
        seed=4,
        classes=3,
        default=Kind.NUMERIC,
        kinds={5: Kind.BINARY, 9: Kind.BINARY},
        window=30,
        on_duplicate=OnDuplicate.REPLACE,
    ).restore(in_one(arrays))
    pool.check()
    draw, other = random.Random(8), ForestPool(trees=1, bagging="none", classes=3, default=Kind.NUMERIC)
    for at in range(120):
        _step(other, draw, at)  # so that the draws go on
    assert [_step(pool, draw, at) for at in range(120, 200)] == expected
    pool.check()
