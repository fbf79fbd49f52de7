"""The double nearest to d^2 / m, against Python's whole numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.core import digits
from algorithms.core.nearest import ROWS, nearest_ratio
from algorithms.core.wide import BASE, difference, product, words_of
from tests.support.examples import budget

_SPARE = digits.make(ROWS)
_MOST = (1 << 93) - 1
_EXAMPLES = settings(max_examples=budget(2_000), deadline=None, derandomize=True, database=None)


def nearest(d: int, m: int) -> float:
    """Return what the kernel does."""
    high, low = words_of(d)
    return float(nearest_ratio(_SPARE, high, low, m))


@_EXAMPLES
@given(st.integers(0, 93), st.integers(0, 60), st.data())
def test_it_is_the_nearest_double(bits: int, more: int, data: st.DataObject) -> None:
    """Of numbers of any size it is what Python's division says, which is exact."""
    d = data.draw(st.integers(0, (1 << bits) - 1))
    m = data.draw(st.integers(1, max((1 << more) - 1, 1)))
    assert nearest(d, m) == d * d / m


@_EXAMPLES
@given(st.integers(1 << 26, (1 << 27) - 1), st.integers(1, (1 << 29) - 1), st.integers(0, 3), st.integers(-1, 1))
def test_it_is_even_in_the_middle(root: int, factor: int, more: int, off: int) -> None:
    """Squares of 27 bits have a digit too many for a double: what is in the middle of two goes to the even one."""
    d = (root | 1) * factor << more
    assert nearest(d + off, factor * factor) == (d + off) ** 2 / factor**2


@_EXAMPLES
@given(st.integers(1, (1 << 30) - 1), st.integers(1, (1 << 60) - 1), st.integers(1, 1 << 20))
def test_equal_fractions_give_the_same_double(d: int, m: int, times: int) -> None:
    """However a fraction is written, it has one double."""
    m = m // times**2 or 1
    assert nearest(d, m) == nearest(d * times, m * times**2)


@pytest.mark.parametrize("d", [0, 1, _MOST, (1 << 62) - 1, 1 << 62, 94_906_265, 94_906_266])
@pytest.mark.parametrize("m", [1, 3, (1 << 60) - 1, 1 << 53, (1 << 53) + 1])
def test_the_ends_of_what_it_takes(d: int, m: int) -> None:
    """So it is for the smallest and the largest numbers."""
    assert nearest(d, m) == d * d / m


@_EXAMPLES
@given(*[st.integers(0, (1 << 62) - 1)] * 4)
def test_products_and_differences_of_two_words(a: int, b: int, c: int, d: int) -> None:
    """Words of products and of their differences are those of the numbers."""
    one, other = product(a, b), product(c, d)
    assert one == words_of(a * b)
    assert difference(*one, *other) == words_of(a * b - c * d)
    assert BASE == 1 << 62
