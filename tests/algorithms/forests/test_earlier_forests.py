"""States of forests that had a pool for each tree number, or one for all, made when there were such."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from algorithms.core.events import OnDuplicate
from algorithms.core.jit import IS_OFF
from algorithms.core.kinds import Kind
from algorithms.forests.earlier import in_one, in_parts
from algorithms.forests.pool import ForestPool
from tests.support.places import GOLDEN

FORESTS = GOLDEN / "forests_apart.npz"  # after 120 steps, and the votes of the next 80
IN_ONE = GOLDEN / "forests_in_one.npz"  # of each of `TERMS`, after so many steps, and the votes of the next 80

MORE = 10 if IS_OFF else 80  # steps
ALIKE = 20  # with a beta: nodes beside the way of a look are built later than they were, which may change votes

TERMS: dict[str, tuple[int, dict[str, Any]]] = {
    "epsilon": (120, {"trees": 6, "bagging": "2 of 6", "epsilon": 0.2, "classes": 3, "window": 30}),
    "exact": (400, {"trees": 5, "bagging": "none", "guarantee": "exact", "classes": 2, "window": 230}),
    "beta": (120, {"trees": 5, "bagging": "poisson:1", "beta": 0.02, "classes": 3, "window": 50}),
}


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
    ).restore(in_parts(in_one(arrays), trees=3))
    pool.check()
    draw, other = random.Random(8), ForestPool(trees=1, bagging="none", classes=3, default=Kind.NUMERIC)
    for at in range(120):
        _step(other, draw, at)  # so that the draws go on
    assert [_step(pool, draw, at) for at in range(120, 120 + MORE)] == expected[:MORE]
    pool.check()


def _named_step(pool: ForestPool, draw: random.Random, at: int) -> list[float]:
    """Insert, delete or drop examples of features with names, and return the votes on one."""
    x = {b"hot": round(draw.gauss(0.0, 2.0), 1), b"wet": round(draw.random(), 1)}
    x |= dict.fromkeys((b"word %d" % each for each in range(9) if draw.random() < 0.3), 1.0)
    if draw.random() < 0.1:
        x[b"rare %d" % at] = 1.0
    key = draw.randrange(2) if at < 100 else 0
    is_two = pool.rules.classes == 2
    label = int(x[b"hot"] > 0.5) ^ (draw.random() < 0.2) if is_two else draw.randrange(3)
    pool.insert(x, label, weight=draw.choice((1.0, 0.5)), id=at if at % 3 else None, key=key)
    if at % 4 == 0:
        pool.delete(id=draw.randrange(at + 1), key=key)
    if at == 90:
        pool.drop(1)
    votes: list[float] = pool.predict(x, key=key).tolist()
    return votes


@pytest.mark.parametrize("name", TERMS)
def test_forests_whose_trees_were_in_one_pool_go_on(name: str) -> None:
    """Parts hold what the one pool held, floors, rivals and references to names included, and vote as it did."""
    with np.load(IN_ONE) as kept:
        arrays = {each.removeprefix(f"{name}/"): kept[each] for each in kept if each.startswith(f"{name}/")}
    expected = arrays.pop("votes").tolist()
    steps, terms = TERMS[name]
    kinds: dict[int | bytes, Kind] = {b"hot": Kind.NUMERIC, b"wet": Kind.NUMERIC}
    shared: dict[str, Any] = {"subspace": 0.7, "seed": 4, "names": True, "kinds": kinds}
    pool = ForestPool(**shared, **terms, on_duplicate=OnDuplicate.REPLACE)
    pool.restore(in_parts(arrays, terms["trees"]))
    pool.check()
    draw, other = random.Random(8), ForestPool(trees=1, bagging="none", classes=terms["classes"], names=True)
    for at in range(steps):
        _named_step(other, draw, at)  # so that the draws go on
    alike = min(MORE, ALIKE) if name == "beta" else MORE
    votes = [_named_step(pool, draw, at) for at in range(steps, steps + MORE)]
    assert votes[:alike] == expected[:alike]
    pool.check()
