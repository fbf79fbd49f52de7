import random
from collections import defaultdict

import numpy as np
import pytest

from algorithms.core import ledger
from algorithms.core.arrays import UInt32s
from algorithms.core.ledger import Ledger, content_key

NO_FEATURES = np.zeros(0, np.uint32)


def roomy(state: Ledger, ones: int) -> Ledger:
    """Return the ledger with room for one more example of so many features."""
    rows, content = ledger.room(state, ones)
    if not rows:
        state = ledger.with_rows(state)
    return state if content else ledger.with_features(state, ones)


def dropped(state: ledger.Ledger, index: int) -> None:
    """Strike out all rows of an index."""
    for first in (ledger.OLDEST, ledger.FIRST_DROPPED):
        while state.heads[index, first] != ledger.NONE:
            ledger.remove(state, int(state.heads[index, first]))


def entered(state: Ledger, owner: int, key: int, features: UInt32s = NO_FEATURES) -> Ledger:
    """Return the ledger with one more example, of label 1 and weight 5."""
    state = roomy(state, len(features))
    ledger.add(state, owner, key, key + 1, 1, 5, features, 0, len(features))
    return state


def test_twins_leave_newest_first() -> None:
    """Of equal anonymous examples, the newest is found and struck out first."""
    state = ledger.make(1)
    for ones in range(3):
        state = entered(state, 0, 7, np.arange(ones, dtype=np.uint32))
    for ones in (2, 1, 0):
        row = ledger.lookup(state, 0, 7, 8)
        assert state.rows[row, ledger.LENGTH] == ones
        ledger.remove(state, row)
        ledger.check(state)
    assert ledger.lookup(state, 0, 7, 8) == ledger.NONE


def test_an_elder_twin_can_leave_from_the_middle() -> None:
    """A window takes the oldest of equal examples; the younger ones stay found."""
    state = ledger.make(1)
    for _ in range(3):
        state = entered(state, 0, 7)
    for left in (2, 1, 0):
        ledger.remove(state, int(state.heads[0, ledger.OLDEST]))
        ledger.check(state)
        assert len(ledger.live(state, 0)) == left


def test_named_and_anonymous_examples_do_not_meet() -> None:
    """The same digest means another example for another index, and for an id than for content."""
    state = ledger.make(2)
    for owner in range(4):
        state = entered(state, owner, 7)
    rows = {ledger.lookup(state, owner, 7, 8) for owner in range(4)}
    assert len(rows) == 4
    dropped(state, 0)
    ledger.check(state)
    assert [ledger.lookup(state, owner, 7, 8) == ledger.NONE for owner in range(4)] == [
        True,
        True,
        False,
        False,
    ]


def test_as_many_dropped_ids_are_remembered_as_asked() -> None:
    """The ids that left a window are forgotten oldest first."""
    state = ledger.make(1)
    for key in range(5):
        state = entered(state, 1, key, np.arange(3, dtype=np.uint32))
    for _ in range(4):
        ledger.shelve(state, int(state.heads[0, ledger.OLDEST]), 2)
        ledger.check(state)
    rows = [ledger.lookup(state, 1, key, key + 1) for key in range(5)]
    states = [ledger.FREE if row == ledger.NONE else int(state.rows[row, ledger.STATE]) for row in rows]
    assert states == [ledger.FREE, ledger.FREE, ledger.DROPPED, ledger.DROPPED, ledger.LIVE]


@pytest.mark.parametrize("seed", range(3))
def test_a_ledger_is_the_list_of_what_was_entered_and_not_struck_out(seed: int) -> None:
    """Through growth, squeezing, shelving and drops the live examples stay the oracle's, in order."""
    rng = random.Random(seed)
    state, expected = ledger.make(3), defaultdict[int, list[tuple[int, list[int]]]](list)
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
            oldest = int(state.heads[index, ledger.OLDEST])
            ledger.shelve(state, oldest, 3)
            del examples[0]
        elif act < 0.99:
            row = int(state.heads[index, ledger.NEWEST])
            for _ in range(back := rng.randrange(len(examples))):
                row = int(state.rows[row, ledger.OLDER])
            ledger.remove(state, row)
            del examples[-1 - back]
        else:
            dropped(state, index)
            examples.clear()
        assert [features.tolist() for features, _, _ in ledger.live(state, index)] == [f for _, f in examples]
        if step % 20 == 0:
            ledger.check(state)
    ledger.check(state)


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
