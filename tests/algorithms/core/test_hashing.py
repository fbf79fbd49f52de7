import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core import hashing
from algorithms.core.arrays import Int64s
from tests.support.examples import budget

HASHES = [0, 1, 7, 8, 15, (1 << 32) - 1, (1 << 32) - 2, 1 << 31]  # most share a home in a small table


class Twin:
    """A table as a dictionary, and the probes that README.md promises as the plainest loops."""

    def __init__(self) -> None:
        self.hash_of: dict[int, int] = {}  # of each row

    def home(self, places: int, hashed: int) -> int:
        """Return where a probe begins: at the hash modulo the power of two above, or below if that is too far."""
        above = 1
        while above < places:
            above *= 2
        return hashed % above if hashed % above < places else hashed % (above // 2)

    def check(self, table: Int64s) -> None:
        """Assert that each row is found under its hash, no other is, and nothing else is in the table."""
        hashing.check(table, len(self.hash_of))
        for each in {*HASHES, *self.hash_of.values()}:
            assert hashing.home(table, each) == self.home(len(table), each)
            rows, at = set(), self.home(len(table), each)
            while table[at]:
                if hashing.entry_hash(int(table[at])) == each:
                    rows.add(hashing.entry_row(int(table[at])))
                at = (at + 1) % len(table)
            assert rows == {row for row, its in self.hash_of.items() if its == each}


@settings(max_examples=budget(400), deadline=None, derandomize=True, database=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("pptsgl"), st.sampled_from(HASHES) | st.integers(0, 63), st.integers(0, 99)),
        max_size=80,
    )
)
def test_a_table_holds_what_was_put_and_not_taken(steps: list[tuple[str, int, int]]) -> None:
    """After any puts, takes, swaps, doubling and lengthening, every row is found under its hash and no other."""
    table, twin = hashing.table_for(4), Twin()
    expected = twin.hash_of
    fresh = 0
    for step, hashed, choice in steps:
        if step == "g":
            table = hashing.grown(table, 2 * len(expected) + 4)
        elif step == "l":
            above = 8
            while above <= len(table):
                above *= 2
            table = hashing.lengthened(table, 1 + choice % min(above - len(table), 16))
        elif step == "p" or not expected:
            if len(expected) + 1 == len(table):  # as full as can be: growth has to put up with it
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
        twin.check(table)


@settings(max_examples=budget(100), deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**32), st.integers(8, 100), st.floats(0.3, 0.98), st.booleans())
def test_a_full_table_is_lengthened(seed: int, places: int, share: float, crowded: bool) -> None:
    """However full it is and however long its runs are, step by step to twice its places and beyond."""
    rng = random.Random(seed)
    table, twin = np.zeros(places, np.int64), Twin()
    for row in range(int(share * places)):
        twin.hash_of[row] = rng.choice(HASHES) if crowded else rng.getrandbits(32)
        hashing.put(table, twin.hash_of[row], row)
    twin.check(table)
    while len(table) < 3 * places:
        power = 1 << len(table).bit_length()
        table = hashing.lengthened(table, rng.randint(1, power - len(table)))
        twin.check(table)


def test_large_tables_grow_by_steps() -> None:
    """Each step is as large as the one before, however large the table is, and makes room for 4,096 rows."""
    table = hashing.table_for(1)
    while len(table) < 1 << 20:
        before, held = len(table), hashing.holds(table)
        table = hashing.grown(table, held + 1)
        assert len(table) - before == (before if before < 1 << 17 else 1 << 16)
        assert hashing.holds(table) - held >= min(before // 2, 4096)
        outgrown = 1 << (len(table).bit_length() - 1)
        assert 4 * hashing.holds(table) <= 3 * outgrown, "what is not shared out yet is too full"


def test_a_table_grows_for_what_is_needed_once_it_is_large() -> None:
    """A small one is made for all rows that there may be, so that it seldom grows."""
    few = hashing.grown(hashing.table_for(1), 50_000, 10)
    assert hashing.holds(few) >= 50_000
    many = hashing.grown(few, 10_000_000, 90_000)
    assert 90_000 <= hashing.holds(many) < 100_000


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
        assert size == 8 or rows * 3 > size
