"""What observers keep: an element for each value or slot, found by its key, in the order of keys.

An element has the moments of the labels that came with its values, and the mean of these values. Those of one
observer are the leaves of a crit-bit tree over the 64 bits of their keys: an inner node asks for the highest bit
in which what is below it differs. So an element is at most 64 steps away, whatever their number and however they
came: the shape follows from the keys alone, sorted input included, and nothing is ever balanced. A chain has them
in ascending order, so a split is sought in one walk.

::

    keys 0011, 0110, 0111:    bit 2 --0-- 0011                   chain: 0011 -> 0110 -> 0111
                                    --1-- bit 0 --0-- 0110
                                                --1-- 0111

Row e of the arrays holds an element and the inner node that was made with it; an observer's first has no inner
node. A reference is that of an inner node where it is at least 0, else -1 less an element.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from algorithms.core import free_list
from algorithms.core.arrays import Float64s, Int64s, extended, int64
from algorithms.core.free_list import EVER as EVER
from algorithms.core.free_list import NONE as NONE
from algorithms.core.free_list import USED as USED
from algorithms.core.jit import inlined, jit
from algorithms.core.means import moved
from algorithms.core.stored import stored
from algorithms.regression.moments import Moments, learned, merged

# Columns of `Elements.links`.
NEXT = 0  # the element with the next key, or NONE
LOW, HIGH = 1, 2  # references: below an inner node, where its bit is 0 and where it is 1
BIT = 3  # which bit that is, 0 to 63

# Columns of `Elements.numbers`.
X = 0  # the mean of the values, an element's prototype
MEAN, SQUARES = 1, 2  # of their labels, see moments.py

# Columns of `Elements.heads`.
ROOT = 0  # a reference, of no meaning where there are no elements
FIRST = 1  # the element with the lowest key, or NONE
SIZE = 2  # how many elements

_SIGN = int64(-(2**63))


@stored("key", "links", "weight", "numbers", "used", "heads", "radius")
class Elements(NamedTuple):
    """The elements of any number of observers; an observer is the number of a row in `heads`."""

    key: Int64s  # int64[capacity], see `ordered`
    links: Int64s  # int64[capacity, 4]
    weight: Int64s  # int64[capacity], in units; 0: the row is free
    numbers: Float64s  # float64[capacity, 3]
    used: Int64s  # int64[3], a free list through NEXT
    heads: Int64s  # int64[observers, 3]
    radius: Float64s  # float64[observers], the width of the slots of those that have slots


def make(capacity: int, observers: int) -> Elements:
    """Return empty storage."""
    return Elements(
        key=np.zeros(capacity, np.int64),
        links=np.zeros((capacity, 4), np.int64),
        weight=np.zeros(capacity, np.int64),
        numbers=np.zeros((capacity, 3)),
        used=np.array([0, 0, NONE], np.int64),
        heads=np.zeros((observers, 3), np.int64),
        radius=np.zeros(observers),
    )


def grown(elements: Elements, capacity: int) -> Elements:
    """Return the same storage with room for more elements."""
    return elements._replace(
        key=extended(elements.key, capacity),
        links=extended(elements.links, capacity),
        weight=extended(elements.weight, capacity),
        numbers=extended(elements.numbers, capacity),
    )


def with_observers(elements: Elements, observers: int) -> Elements:
    """Return the same storage for more observers."""
    return elements._replace(
        heads=extended(elements.heads, observers), radius=extended(elements.radius, observers)
    )


@inlined
def room(elements: Elements) -> int:
    """Return how many elements can be made before the storage must grow."""
    return elements.key.size - elements.used[USED]


@inlined
def ordered(number: float) -> int:
    """Return a key for a finite number: the bits of keys ascend as the numbers do; -0.0 is 0.0."""
    bits = int64(np.float64(number + 0.0).view(np.int64))
    return ~bits if bits < 0 else bits ^ _SIGN


@inlined
def _bit(key: int, at: int) -> int:
    return (key >> at) & 1


@inlined
def _highest(bits: int) -> int:
    """Return the number of the highest bit that is set; one must be."""
    if bits < 0:
        return int64(63)
    at = int64(0)
    for shift in (32, 16, 8, 4, 2, 1):
        if bits >> shift:
            at += shift
            bits >>= shift
    return at


@inlined
def begin(elements: Elements, observer: int, radius: float) -> None:
    """Start an observer that has seen nothing."""
    elements.heads[observer, ROOT] = NONE
    elements.heads[observer, FIRST] = NONE
    elements.heads[observer, SIZE] = 0
    elements.radius[observer] = radius


@inlined
def _nearest(elements: Elements, observer: int, key: int) -> int:
    """Return the element that has the key if any has; there must be one at least."""
    links = elements.links
    at = elements.heads[observer, ROOT]
    while at >= 0:
        at = links[at, LOW + _bit(key, links[at, BIT])]
    return -1 - at


@inlined
def find(elements: Elements, observer: int, key: int) -> int:
    """Return the element with a key, or NONE. At most 64 steps."""
    if elements.heads[observer, SIZE] == 0:
        return int64(NONE)
    near = _nearest(elements, observer, key)
    return near if elements.key[near] == key else int64(NONE)


@jit
def _last(elements: Elements, at: int) -> int:
    """Return the element with the highest key below a reference."""
    while at >= 0:
        at = elements.links[at, HIGH]
    return -1 - at


@jit
def _seat(elements: Elements, observer: int, key: int) -> tuple[int, int, int, int]:
    """Return where a key belongs that no element has; there must be an element.

    It is the bit at which it differs, what is above and below, and the element with the next lower key or NONE.
    """
    links = elements.links
    bit = _highest(key ^ elements.key[_nearest(elements, observer, key)])
    above = int64(NONE)
    right = int64(NONE)  # the last inner node whose higher side the key is on
    at = elements.heads[observer, ROOT]
    while at >= 0 and links[at, BIT] > bit:
        above = at
        if _bit(key, links[at, BIT]):
            right = at
        at = links[at, LOW + _bit(key, links[at, BIT])]
    before = int64(NONE)
    if _bit(key, bit):
        before = _last(elements, at)
    elif right != NONE:
        before = _last(elements, links[right, LOW])
    return bit, above, at, before


@jit
def floor(elements: Elements, observer: int, key: int) -> int:
    """Return the element with the next lower key than one that none has, else the lowest; there must be one."""
    _, _, _, before = _seat(elements, observer, key)
    return before if before != NONE else elements.heads[observer, FIRST]


@jit
def insert(elements: Elements, observer: int, element: int) -> None:
    """Give a row with a key that no element of the observer has to the observer. At most 192 steps."""
    key = elements.key[element]
    links = elements.links
    heads = elements.heads
    before = int64(NONE)
    if heads[observer, SIZE] == 0:
        heads[observer, ROOT] = -1 - element
    else:
        bit, above, at, before = _seat(elements, observer, key)
        side = _bit(key, bit)
        links[element, BIT] = bit
        links[element, LOW + side] = -1 - element
        links[element, HIGH - side] = at
        if above == NONE:
            heads[observer, ROOT] = element
        else:
            links[above, LOW + _bit(key, links[above, BIT])] = element
    if before == NONE:
        links[element, NEXT] = heads[observer, FIRST]
        heads[observer, FIRST] = element
    else:
        links[element, NEXT] = links[before, NEXT]
        links[before, NEXT] = element
    heads[observer, SIZE] += 1


@jit
def create(elements: Elements, observer: int, key: int) -> int:
    """Return a new element without examples under a key that none has; there must be room."""
    element = free_list.take(elements.used, elements.links[:, NEXT])
    elements.key[element] = key
    elements.weight[element] = 0
    for column in range(elements.numbers.shape[1]):
        elements.numbers[element, column] = 0.0
    insert(elements, observer, element)
    return element


@inlined
def release(elements: Elements, element: int) -> None:
    """Give back the row of an element that its observer no longer has."""
    elements.weight[element] = 0
    free_list.give(elements.used, elements.links[:, NEXT], element)


@jit
def forget(elements: Elements, observer: int) -> None:
    """Give back all elements of an observer."""
    element = elements.heads[observer, FIRST]
    while element != NONE:
        following = elements.links[element, NEXT]
        release(elements, element)
        element = following
    elements.heads[observer, FIRST] = NONE
    elements.heads[observer, SIZE] = 0


@inlined
def moments_of(elements: Elements, element: int) -> Moments:
    """Return the moments of an element's labels."""
    numbers = elements.numbers
    return Moments(elements.weight[element], numbers[element, MEAN], numbers[element, SQUARES])


@inlined
def _write(elements: Elements, element: int, seen: Moments) -> None:
    elements.weight[element] = seen.weight
    elements.numbers[element, MEAN] = seen.mean
    elements.numbers[element, SQUARES] = seen.squares


@inlined
def absorb(elements: Elements, element: int, x: float, y: float, weight: int) -> None:
    """Add an example to an element."""
    _write(elements, element, learned(moments_of(elements, element), y, weight))
    share = weight / elements.weight[element]
    elements.numbers[element, X] = moved(elements.numbers[element, X], x, share)


@jit
def take_in(elements: Elements, element: int, other: int) -> None:
    """Add what is in another element to an element; the other stays as it is."""
    both = merged(moments_of(elements, element), moments_of(elements, other))
    _write(elements, element, both)
    numbers = elements.numbers
    numbers[element, X] = moved(numbers[element, X], numbers[other, X], elements.weight[other] / both.weight)


def chain(elements: Elements, observer: int) -> list[int]:
    """Return the elements of an observer in the order of their keys. For `check` and readers."""
    found = []
    element = int(elements.heads[observer, FIRST])
    while element != NONE:
        found.append(element)
        element = int(elements.links[element, NEXT])
    return found


def check_tree(elements: Elements, observer: int) -> list[int]:
    """Raise AssertionError unless the tree and the chain of an observer agree; return its elements."""
    own = chain(elements, observer)
    assert len(own) == elements.heads[observer, SIZE]
    keys = [int(elements.key[element]) % 2**64 for element in own]
    assert all(low < high for low, high in pairwise(keys)), "elements are out of order"
    assert (elements.weight[own] > 0).all(), "an empty element was kept"
    assert (elements.numbers[own, SQUARES] >= 0.0).all()
    reached, inner = [], 0
    todo = [(int(elements.heads[observer, ROOT]), 64)] if own else []
    while todo:
        at, above = todo.pop()
        if at < 0:
            reached.append(-1 - at)
            continue
        inner += 1
        bit = int(elements.links[at, BIT])
        assert bit < above, "bits do not descend"
        todo += [(int(elements.links[at, HIGH]), bit), (int(elements.links[at, LOW]), bit)]
    assert reached == own, "the tree has another order than the chain"
    assert inner == max(0, len(own) - 1)
    for element in own:
        assert find(elements, observer, elements.key[element]) == element, "not found under its key"
    return own


def check(elements: Elements, owned: list[int]) -> None:
    """Raise AssertionError unless the rows in use are those of observers. O(everything)."""
    free_list.check(elements.used, elements.links[:, NEXT], owned)
    assert not np.delete(elements.weight[: elements.used[EVER]], owned).any()
