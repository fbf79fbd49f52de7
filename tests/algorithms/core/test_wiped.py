"""What pools forget is in none of their arrays any more: checkpoints are copies of these."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest

from algorithms.core.events import OnDuplicate
from algorithms.core.given import digest_of
from algorithms.core.kinds import Kind
from algorithms.dynamic.pool import DynamicPool
from algorithms.forests.pool import ForestPool
from algorithms.mixed.pool import MixedSplitPool
from algorithms.splits.pool import SplitPool

NAME, NUMBER, VALUE = b"a diagnosis that nobody else has", 4_000_000_007, 1234.0625
ID = "somebody"
OTHERS = [[b"cough", b"cold"], [b"cough"], [b"fever", b"cold"]]

POOLS: dict[str, Callable[..., Any]] = {
    "split": partial(SplitPool, on_duplicate=OnDuplicate.REPLACE),
    "split that verifies deletes": partial(SplitPool, verify_deletes=True, on_duplicate=OnDuplicate.REPLACE),
    "mixed split": partial(MixedSplitPool, on_duplicate=OnDuplicate.REPLACE),
    "mixed split of numbers": partial(MixedSplitPool, default=Kind.NUMERIC, on_duplicate=OnDuplicate.REPLACE),
    "dynamic tree": partial(DynamicPool, epsilon=0.0, on_duplicate=OnDuplicate.REPLACE),
    "dynamic tree of numbers": partial(
        DynamicPool, epsilon=0.0, default=Kind.NUMERIC, on_duplicate=OnDuplicate.REPLACE
    ),
    "forest": partial(ForestPool, trees=3, on_duplicate=OnDuplicate.REPLACE),
}


def _traces(pool: Any) -> list[str]:
    """Return the arrays that hold the name, the feature's number, the value or the id's digest."""
    found = []
    for array_name, array in pool.arrays().items():
        if array.dtype == np.uint8 and NAME in array.tobytes():
            found.append(f"{array_name}: the name")
        if (
            array.dtype.kind in "iu"
            and array.itemsize > 1
            and (array.astype(np.int64) & 0xFFFFFFFF == NUMBER).any()
        ):
            found.append(f"{array_name}: the number")
        if array.dtype == np.float64 and (array == VALUE).any():
            found.append(f"{array_name}: the value")
        if array.dtype == np.int64 and np.isin(array, digest_of(ID)).any():
            found.append(f"{array_name}: the id")
    return found


def _example(features: Iterable[Any], kind: str) -> Any:
    """Return an example as the kind takes it."""
    return (
        {feature: VALUE if feature in (NAME, NUMBER) else 1.0 for feature in features}
        if "numbers" in kind
        else list(features)
    )


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("how", ["delete", "replace", "drop", "window"])
def test_nothing_is_left_in_any_array(kind: str, names: bool, how: str) -> None:
    """A delete, another example under the id, a dropped key and a window that moves on wipe what they forget."""
    pool = POOLS[kind](names=names, window=3) if how == "window" else POOLS[kind](names=names)
    others = [_example(words if names else range(1, len(words) + 1), kind) for words in OTHERS]
    for number, x in enumerate(others[:2]):
        pool.insert(x, number % 2, id=number)
    pool.insert(_example([NAME, b"cough"] if names else [NUMBER, 1], kind), 1, id=ID)
    assert _traces(pool), "what is looked for is found while it is there"
    if how == "delete":
        pool.delete(id=ID)
    elif how == "replace":
        pool.insert(others[0], 0, id=ID)
        pool.delete(id=ID)
    elif how == "drop":
        pool.drop()
    else:
        for number in range(20):
            pool.insert(others[number % 3], number % 2, id=number + 10)
    pool.check()
    assert _traces(pool) == []
