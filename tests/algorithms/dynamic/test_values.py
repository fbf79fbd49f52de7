"""Values in tries, against a list that is sorted anew, and the best threshold of them against all scores."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.core.arrays import Int64s
from algorithms.core.criteria import UNIT
from algorithms.core.example_store import LABEL, WEIGHT
from algorithms.core.free_list import NONE
from algorithms.dynamic import values
from algorithms.dynamic.values import WIDTH, Values
from tests.support.examples import budget

CLASSES = 3

NUMBERS = st.one_of(
    st.sampled_from([1.0, 2.0, 3.0, 0.1, 5e-324, 1.7976931348623157e308]),
    st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False),
    st.integers(1, 300).map(float),
)


class Pair:
    """A trie beside a list of its entries: (value, row)."""

    def __init__(self, rows: int, seed: int = 0) -> None:
        rng = random.Random(seed)
        self.store = np.zeros((rows, 12), np.int64)
        self.store[:, LABEL] = [rng.randrange(CLASSES) for _ in range(rows)]
        self.store[:, WEIGHT] = [rng.choice([UNIT, UNIT // 3, 5 * UNIT]) for _ in range(rows)]
        self.held: Values = values.make(16, CLASSES)
        self.top = NONE
        self.entries: list[tuple[float, int]] = []

    def add(self, value: float) -> None:
        """Enter a value of the next example."""
        if values.room(self.held) < 1:
            self.held = values.grown(self.held)
        row = min({*range(len(self.store))} - {row for _, row in self.entries})
        key = values.key_of(np.float64(value))
        self.top = int(values.add(self.held, self.store, self.top, key, row))
        self.entries.append((value, row))

    def take(self, at: int) -> None:
        """Take an entry out."""
        value, row = self.entries.pop(at)
        self.top = int(values.take(self.held, self.store, self.top, values.key_of(np.float64(value)), row))

    def weights(self, most: float) -> tuple[int, list[int]]:
        """Return how many entries are at most a value, and their class weights."""
        own = [row for value, row in self.entries if value <= most]
        counts = np.zeros(CLASSES, np.int64)
        np.add.at(counts, self.store[own, LABEL], self.store[own, WEIGHT])
        return len(own), counts.tolist()

    def check(self) -> None:
        """Raise AssertionError where trie and list differ."""
        values.check(self.held, self.store, [self.top] if self.top != NONE else [])
        ordered = sorted(value for value, _ in self.entries)
        if not ordered:
            assert self.top == NONE
            return
        is_negative = ordered[0] < 0
        assert [values.value_of_key(key, is_negative) for key in values.found(self.held, self.top)] == ordered
        assert values.value_of_key(values.greatest(self.held, self.top), is_negative) == ordered[-1]
        least = [
            values.value_of_key(key, is_negative) if key != NONE else None
            for key in values.two_least(self.held, self.top)
        ]
        assert least == [*sorted({*ordered}), None][:2]
        asked = [*ordered, *(low / 2 + high / 2 for low, high in pairwise(ordered))]
        for most in asked:
            if most == 0.0:
                continue
            counts: Int64s = np.zeros(CLASSES, np.int64)
            key = values.key_of(np.float64(most))
            count = values.add_up_to(self.held, self.store, self.top, key, counts)
            assert (count, counts.tolist()) == self.weights(most)


@settings(
    max_examples=budget(200),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_values_come_and_go_in_any_order(data: st.DataObject) -> None:
    """Whatever comes and goes, a trie has the values of the list, their order and their class weights."""
    pair = Pair(120)
    sign = data.draw(st.sampled_from([1.0, -1.0]))
    pool = data.draw(st.lists(NUMBERS, min_size=1, max_size=60))
    for at in data.draw(st.lists(st.integers(-40, 100), max_size=110)):
        if at >= 0:
            pair.add(sign * pool[at % len(pool)])
        elif pair.entries:
            pair.take(at % len(pair.entries))
    pair.check()
    while pair.entries:
        pair.take(0)
    pair.check()
    assert not pair.held.cells[:, [column for column in range(8) if column != values.LOW]].any()


@pytest.mark.parametrize("kind", ["ascending", "descending", "shuffled", "same", "few"])
def test_no_order_makes_a_trie_deep(kind: str) -> None:
    """Whole numbers that ascend lie no deeper than others, and one value needs one leaf."""
    count = 600
    pair = Pair(count)
    numbers = [float(number) for number in range(1, count + 1)]
    if kind == "descending":
        numbers.reverse()
    elif kind == "shuffled":
        random.Random(1).shuffle(numbers)
    elif kind in ("same", "few"):
        numbers = [float(1 + number % (1 if kind == "same" else 7)) for number in range(count)]
    for number in numbers:
        pair.add(number)
    pair.check()
    if kind == "same":
        assert pair.held.used[0] == 1
        assert pair.held.taken[0] == 0
    elif kind == "few":
        assert pair.held.taken[0] <= 1
    else:
        assert pair.held.taken[0] <= 4 * count / WIDTH
    while pair.top != NONE:
        before = int(pair.held.used[0])
        pair.top = int(values.drop_first(pair.held, pair.top))
        assert before - 2 <= pair.held.used[0] < before
        if pair.top != NONE:
            values.check(pair.held, pair.store, [pair.top])
    assert not pair.held.rows.any()


def test_a_value_takes_four_nodes_and_two_blocks_at_most() -> None:
    """One that parts a full block and lies beside both parts takes most, and the storage has room for it."""
    pair = Pair(WIDTH + 1)
    for number in range(WIDTH):
        pair.add(1.0 + number / 1024)
    before = [int(pair.held.used[0]), int(pair.held.taken[0])]
    pair.add(1e9)
    assert [int(pair.held.used[0]) - before[0], int(pair.held.taken[0]) - before[1]] == [4, 2]
    pair.check()


def test_keys_are_in_the_order_of_their_values() -> None:
    """Each value has a key of its own, from the least to the greatest of its sign."""
    rng = random.Random(5)
    numbers = sorted(
        {5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1.0, math.nextafter(1.0, 2.0)}
        | {math.ldexp(rng.random() + 0.01, rng.randrange(-1070, 1020)) for _ in range(300)}
    )
    for sign in (1.0, -1.0):
        ordered = sorted(sign * number for number in numbers)
        keys = [values.key_of(np.float64(number)) for number in ordered]
        assert keys == sorted({*keys})
        assert min(keys) >= 0
        assert [values.value_of_key(key, sign < 0) for key in keys] == ordered
