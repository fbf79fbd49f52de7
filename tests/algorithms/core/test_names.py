import random
from itertools import pairwise

import numpy as np
import pytest

from algorithms.core.names import NO_NAMES, Interner, precedes, refer, release
from tests.oracles.naive import words

EMPTY = np.zeros(0, np.int64)


def test_names_come_back_as_they_went_in() -> None:
    """Empty names, zeros, high bytes and prefixes of each other are all names."""
    names = Interner()
    numbers = [names.intern(word) for word in words(300)]
    assert [names.name(number) for number in numbers] == list(words(300))
    assert [names.intern(word) for word in words(300)] == numbers
    assert names.intern_all(words(310))[:300] == numbers
    assert names.find(b"no such name") is None
    names.check()


def test_names_are_ordered_by_their_bytes() -> None:
    """The order is that of unsigned bytes, a prefix first, whatever the numbers."""
    names = Interner()
    numbers = {word: names.intern(word) for word in words(60)}
    for first, second in pairwise(sorted(numbers)):
        assert precedes(names.arrays, numbers[first], numbers[second])
        assert not precedes(names.arrays, numbers[second], numbers[first])
    assert not precedes(names.arrays, numbers[b"a"], numbers[b"a"])


def test_ids_are_ordered_as_numbers() -> None:
    """Without names, the lower id comes first."""
    assert precedes(NO_NAMES, 2, 10)
    assert not precedes(NO_NAMES, 4294967295, 0)


def test_a_name_goes_with_its_last_reference() -> None:
    """A sweep forgets what nothing refers to, and nothing else."""
    names = Interner()
    kept, gone, unused = (names.intern(word) for word in (b"kept", b"gone", b"unused"))
    for number in (kept, kept, gone):
        refer(names.arrays, number)
    release(names.arrays, kept)
    release(names.arrays, gone)
    names.sweep(np.array([unused]))
    assert len(names) == 1
    assert names.find(b"kept") == kept
    names.check()


def test_a_name_that_came_back_before_the_sweep_stays() -> None:
    """What lost its last reference and got another one is still in use."""
    names = Interner()
    number = names.intern(b"name")
    for _ in range(100):  # more often than the stack of orphans is deep
        refer(names.arrays, number)
        release(names.arrays, number)
    refer(names.arrays, number)
    names.sweep(EMPTY)
    assert names.find(b"name") == number
    release(names.arrays, number)
    names.sweep(EMPTY)
    assert len(names) == 0
    names.check()


def test_a_copy_of_the_arrays_is_the_interner() -> None:
    """An interner made from arrays knows the same names under the same numbers."""
    names = Interner()
    numbers = names.intern_all(words(40))
    for number in numbers[::3]:
        names.forget(number)
    copy = Interner(names.arrays._replace(text=names.arrays.text.copy()))
    copy.check()
    assert {copy.name(number) for number in numbers if copy.arrays.size[number] >= 0} == {
        word for at, word in enumerate(words(40)) if at % 3
    }


@pytest.mark.parametrize("seed", range(3))
def test_forgotten_names_leave_room(seed: int) -> None:
    """Through thousands of names coming and going the text stays a small multiple of what is in use."""
    rng = random.Random(seed)
    names, expected = Interner(), dict[bytes, int]()
    for _ in range(3000):
        if rng.random() < 0.5 or not expected:
            word = b"%d" % rng.randrange(200) * rng.randrange(6)
            expected[word] = names.intern(word)
        else:
            names.forget(expected.pop(rng.choice(sorted(expected))))
        assert len(names) == len(expected)
    names.check()
    assert all(names.name(number) == word for word, number in expected.items())
    assert names.arrays.text.size <= 8192


def test_a_name_goes_when_none_of_those_refers_to_it_that_share_it() -> None:
    """Each counts in arrays of its own, which grow with the names; what any has released is looked at."""
    names = Interner()
    names.share(2)
    first = names.intern(b"a")
    for holder in (1, 2):
        refer(names.seen_by(holder), first)
    many = names.intern_all([b"%d" % number for number in range(40)])
    for number in many:
        refer(names.seen_by(0), number)
    names.sweep(np.array([first, *many]))
    release(names.seen_by(1), first)
    names.sweep(EMPTY)
    assert names.find(b"a") == first
    names.check_references([np.array([first]), np.array(many)])
    release(names.seen_by(2), first)
    names.sweep(EMPTY)
    assert names.find(b"a") is None
    copy = Interner(names.arrays, names.beside)
    assert copy.intern(b"b") == names.intern(b"b") == first
    names.check()
