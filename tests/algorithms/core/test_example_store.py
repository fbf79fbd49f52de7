import random
from collections import defaultdict

import numpy as np
import pytest

from algorithms.core import example_store
from algorithms.core.arrays import UInt32s
from algorithms.core.example_store import ExampleStore, content_key

NO_FEATURES = np.zeros(0, np.uint32)


def roomy(state: ExampleStore, ones: int) -> ExampleStore:
    """Return the example store with room for one more example of so many features."""
    rows, content = example_store.room(state, ones)
    if not rows:
        state = example_store.with_rows(state)
    return state if content else example_store.with_features(state, ones)


def dropped(state: example_store.ExampleStore, index: int) -> None:
    """Strike out all rows of an index."""
    for first in (example_store.OLDEST, example_store.FIRST_DROPPED):
        while state.heads[index, first] != example_store.NONE:
            example_store.remove(state, int(state.heads[index, first]))


def entered(state: ExampleStore, owner: int, key: int, features: UInt32s = NO_FEATURES) -> ExampleStore:
    """Return the example store with one more example, of label 1 and weight 5."""
    state = roomy(state, len(features))
    example_store.add(state, owner, key, key + 1, 1, 5, features, 0, len(features))
    return state


def test_twins_leave_newest_first() -> None:
    """Of equal anonymous examples, the newest is found and struck out first."""
    state = example_store.make(1)
    for ones in range(3):
        state = entered(state, 0, 7, np.arange(ones, dtype=np.uint32))
    for ones in (2, 1, 0):
        row = example_store.lookup(state, 0, 7, 8)
        assert state.rows[row, example_store.LENGTH] == ones
        example_store.remove(state, row)
        example_store.check(state)
    assert example_store.lookup(state, 0, 7, 8) == example_store.NONE


def test_an_elder_twin_can_leave_from_the_middle() -> None:
    """A window takes the oldest of equal examples; the younger ones stay found."""
    state = example_store.make(1)
    for _ in range(3):
        state = entered(state, 0, 7)
    for left in (2, 1, 0):
        example_store.remove(state, int(state.heads[0, example_store.OLDEST]))
        example_store.check(state)
        assert len(example_store.live(state, 0)) == left


def test_named_and_anonymous_examples_do_not_meet() -> None:
    """The same digest means another example for another index, and for an id than for content."""
    state = example_store.make(2)
    for owner in range(4):
        state = entered(state, owner, 7)
    rows = {example_store.lookup(state, owner, 7, 8) for owner in range(4)}
    assert len(rows) == 4
    dropped(state, 0)
    example_store.check(state)
    assert [example_store.lookup(state, owner, 7, 8) == example_store.NONE for owner in range(4)] == [
        True,
        True,
        False,
        False,
    ]


def test_as_many_dropped_ids_are_remembered_as_asked() -> None:
    """The ids that left a window are forgotten oldest first."""
    state = example_store.make(1)
    for key in range(5):
        state = entered(state, 1, key, np.arange(3, dtype=np.uint32))
    for _ in range(4):
        example_store.expire(state, int(state.heads[0, example_store.OLDEST]), 2)
        example_store.check(state)
    rows = [example_store.lookup(state, 1, key, key + 1) for key in range(5)]
    states = [
        example_store.FREE if row == example_store.NONE else int(state.rows[row, example_store.STATE])
        for row in rows
    ]
    assert states == [
        example_store.FREE,
        example_store.FREE,
        example_store.DROPPED,
        example_store.DROPPED,
        example_store.LIVE,
    ]


@pytest.mark.parametrize("seed", range(3))
def test_the_store_is_the_list_of_what_was_entered_and_not_struck_out(seed: int) -> None:
    """Through growth, squeezing, shelving and drops the live examples stay the oracle's, in order."""
    rng = random.Random(seed)
    state, expected = example_store.make(3), defaultdict[int, list[tuple[int, list[int]]]](list)
    for step in range(600):
        index = rng.randrange(3)
        examples = expected[index]
        act = rng.random()
        if act < 0.55 or not examples:
            named = rng.random() < 0.5
            features = np.array([rng.randrange(1 << 32) for _ in range(rng.randrange(9))], np.uint32)
            key = step if named else rng.randrange(4)
            state = entered(state, 2 * index + named, key, features)
            examples.append((2 * index + named, features.tolist()))
        elif act < 0.75:
            oldest = int(state.heads[index, example_store.OLDEST])
            example_store.expire(state, oldest, 3)
            del examples[0]
        elif act < 0.99:
            row = int(state.heads[index, example_store.NEWEST])
            for _ in range(back := rng.randrange(len(examples))):
                row = int(state.rows[row, example_store.OLDER])
            example_store.remove(state, row)
            del examples[-1 - back]
        else:
            dropped(state, index)
            examples.clear()
        assert [features.tolist() for features, _, _ in example_store.live(state, index)] == [
            f for _, f in examples
        ]
        if step % 20 == 0:
            example_store.check(state)
    example_store.check(state)


def test_a_content_key_ignores_the_order_of_features_only() -> None:
    """Label, weight and the set of features make the key, at both ends of their ranges."""
    features = np.array([3, 0, 4294967295, 17], np.uint32)
    key = content_key(features, 0, 4, 0, 1)
    assert content_key(features[::-1].copy(), 0, 4, 0, 1) == key
    others = {content_key(features, 0, 3, 0, 1), content_key(features, 1, 4, 0, 1)}
    others |= {content_key(features, 0, 4, 1, 1), content_key(features, 0, 4, 0, 2)}
    others |= {content_key(features, 0, 4, 0, 1 << 32), content_key(features, 0, 4, 0, (1 << 62) - 1)}
    others |= {content_key(np.array([3, 0, 4294967295, 18], np.uint32), 0, 4, 0, 1)}
    assert len(others) == 7
    assert key not in others
    assert all(0 <= part < 1 << 61 for each in (*others, key, content_key(features, 0, 0, 1, 7)) for part in each)
