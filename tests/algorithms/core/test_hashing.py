import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core import hashing
from algorithms.core.arrays import Int64s
from tests.support.examples import budget

HASHES = [0, 1, 7, 8, 15, (1 << 32) - 1, (1 << 32) - 2, 1 << 31]  # most share a home in a small table


def found(table: Int64s, hashed: int) -> set[int]:
    """Return the rows that a probe for a hash meets."""
    rows: set[int] = set()
    at = hashed & (len(table) - 1)
    while table[at]:
        if hashing.entry_hash(int(table[at])) == hashed:
            rows.add(hashing.entry_row(int(table[at])))
        at = (at + 1) & (len(table) - 1)
    return rows


@settings(max_examples=budget(200), deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(st.sampled_from("ptsg"), st.sampled_from(HASHES), st.integers(0, 99)), max_size=60))
def test_a_table_holds_what_was_put_and_not_taken(steps: list[tuple[str, int, int]]) -> None:
    """After any puts, takes, swaps and growth, every row is found under its hash and no other."""
    table, expected = hashing.table_for(4), dict[int, int]()
    fresh = 0
    for step, hashed, choice in steps:
        if step == "g":
            table = hashing.grown(table, 2 * len(expected) + 4)
        elif step == "p" or not expected:
            table = hashing.grown(table, len(expected) + 1)
            hashing.put(table, hashed, fresh)
            expected[fresh] = hashed
            fresh += 1
        else:
            row = sorted(expected)[choice % len(expected)]
            if step == "t":
                hashing.take(table, expected.pop(row), row)
            else:
                hashing.swap(table, expected[row], row, fresh)
                expected[fresh] = expected.pop(row)
                fresh += 1
        for each in HASHES:
            assert found(table, each) == {row for row, its in expected.items() if its == each}
    assert np.count_nonzero(table) == len(expected)


def test_the_largest_row_and_hash_fit_an_entry() -> None:
    """An entry holds the highest hash and row number without touching the sign."""
    table = np.zeros(8, np.int64)
    hashing.put(table, (1 << 32) - 1, (1 << 31) - 2)
    entry = int(table.max())
    assert (hashing.entry_hash(entry), hashing.entry_row(entry)) == ((1 << 32) - 1, (1 << 31) - 2)


def test_mix_scatters_and_does_not_depend_on_the_compiler() -> None:
    """Sequential pairs hardly collide in 20 bits, and interpreted code gives the same hashes."""
    rng = random.Random(0)
    python = getattr(hashing.mix, "py_func", hashing.mix)
    pairs = [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(200)]
    for x, y in [(0, 0), (1, 0), (0, 1), (0xFFFFFFFF, 0xFFFFFFFF), *pairs]:
        assert hashing.mix(x, y) == python(x, y)
        assert 0 <= hashing.mix(x, y) < 1 << 32
    for mask in ((1 << 20) - 1, (1 << 32) - 1):
        distinct = {hashing.mix(x, y) & mask for x in range(40) for y in range(40)}
        assert len(distinct) >= 1590


def test_a_table_is_at_most_two_thirds_full() -> None:
    """Probes stay short, and a full table, which would be probed for ever, cannot come about."""
    for rows in range(1, 200):
        size = len(hashing.table_for(rows))
        assert size & (size - 1) == 0
        assert rows * 3 <= size * 2
