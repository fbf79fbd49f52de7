"""Which tree sees what: hashes of (seed, tree, feature) and of (seed, tree, example). Nothing is drawn twice.

::

    subspace  0.5           tree 0 sees features 1 3 4 .   tree 1 sees 0 3 5 .    whatever features there will be
    bagging   poisson:1     an example weighs in each tree 0, 1, 2 .. times what it was given with
    bagging   3 of 10       an example is in exactly three trees, and a delete touches these alone

The same hash gives the same answer when an example goes as when it came, so nobody keeps lists. An example is
known by its *ticket*: the hash of its id, or, where it has none, of its content and of which copy of it it is.
"""

from __future__ import annotations

import hashlib
import math
import re
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np

from algorithms.core.arrays import Int64s, UInt32s, int64
from algorithms.core.hashing import mix
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names

_M32 = (1 << 32) - 1
_M61 = (1 << 61) - 1
ALL = 1 << 32  # a share of all features

MOST_TREES = 1000
MOST_PARTS = 4  # that the trees of a forest are in, see parts.py
MOST_SEED = (1 << 62) - 1

BAGGINGS = "none, poisson:1, poisson:6 (a whole number up to 10), or k of T trees as in '3 of 10'"
SUBSPACES = "a share above 0 and up to 1, or 'sqrt of D' where there are D features"

FEATURES, EXAMPLES = 0, 1  # columns of `Draws.salts`


class Draws(NamedTuple):
    """How a forest draws, as its kernels see it."""

    salts: Int64s  # int64[trees, 2], 32 bits for features and 32 for examples
    share: int  # of all 2^32 hashes of a feature, those by which a tree sees it
    steps: Int64s  # int64[..], ascending: an example weighs as many times as there are steps at or below its hash
    chosen: int  # k of `k of T`, else 0

    @property
    def most(self) -> int:
        """How many times its weight an example can weigh in a tree."""
        return len(self.steps)


def draws(trees: int, seed: int, subspace: float | str, bagging: str) -> Draws:
    """Return how a forest draws.

    Parameters
    ----------
    trees : int
        T.
    seed : int
        Another one, another forest.
    subspace : float or str
        The share of the features that a tree sees, or ``sqrt of D``: 1 / sqrt(D).
    bagging : str
        ``none``, ``poisson:1``, ``poisson:6`` or ``k of T``.

    Raises
    ------
    ValueError
        With what was expected.
    """
    salts = [
        [int.from_bytes(hashlib.blake2b(f"{seed} {tree} {what}".encode(), digest_size=4).digest(), "little")]
        for tree in range(trees)
        for what in ("feature", "example")
    ]
    steps, chosen = bag(trees, bagging)
    return Draws(
        np.array(salts, np.int64).reshape(trees, 2), share_of(subspace), np.array(steps, np.int64), chosen
    )


def share_of(subspace: float | str) -> int:
    """Return a share of the features in 2^-32; raise ValueError where it is none."""
    share = subspace
    if isinstance(subspace, str):
        found = re.fullmatch(r"sqrt of ([1-9]\d{0,8})", subspace)
        share = 1.0 / math.sqrt(int(found[1])) if found else 0.0
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share <= 1.0:
        raise ValueError(f"expected as subspace {SUBSPACES}, got {subspace!r}")
    return max(1, round(share * ALL))


def bag(trees: int, bagging: str) -> tuple[list[int], int]:
    """Return the steps of a bagging, and k; raise ValueError where it is none."""
    text = bagging if isinstance(bagging, str) else ""
    if text == "none":
        return [0], 0
    if found := re.fullmatch(r"poisson:([1-9]|10)", text):
        return _poisson(int(found[1])), 0
    found = re.fullmatch(r"([1-9]\d{0,8}) of ([1-9]\d{0,8})", text)
    if found and int(found[1]) <= int(found[2]) == trees:
        return [0], int(found[1])
    raise ValueError(f"expected as bagging of {trees} trees {BAGGINGS}, got {bagging!r}")


def _poisson(mean: int) -> list[int]:
    """Return the distribution function of Poisson times 2^32, rounded, as far as it is below 2^32.

    In decimals, whose results are the same on every machine; those of exp are not.
    """
    steps: list[int] = []
    with localcontext() as context:
        context.prec = 50
        term = total = (Decimal(-mean)).exp()
        while (step := int((total * ALL).to_integral_value())) < ALL:
            steps.append(step)
            term = term * mean / len(steps)
            total += term
    return steps


# --- hashes, for kernels


@inlined
def sees(draws: Draws, tree: int, hashed: int) -> bool:
    """Return whether a tree sees a feature with this hash."""
    return draws.share == ALL or mix(draws.salts[tree, FEATURES], hashed) < draws.share


@inlined
def ticket(high: int, low: int, copy: int) -> int:
    """Return the ticket of an example: 32 bits of its digest, and of which copy it is."""
    top = mix(high & _M32, (high >> 32) & _M32)
    bottom = mix(low & _M32, (low >> 32) & _M32)
    return mix(mix(top, bottom), copy & _M32)  # not top ^ bottom: callers may give the same number for both


@inlined
def times(draws: Draws, tree: int, ticket: int, chosen: int) -> int:
    """Return how many times its weight an example weighs in a tree; `chosen` trees before this one have it.

    k of T is drawn as Knuth's algorithm S does it: a tree is taken with the chance (k - chosen) / (T - tree).
    """
    hashed = mix(draws.salts[tree, EXAMPLES], ticket)
    if draws.chosen > 0:
        left = draws.salts.shape[0] - tree
        return int64(1) if hashed * left < (draws.chosen - chosen) << 32 else int64(0)
    count = int64(0)
    while count < draws.steps.size and draws.steps[count] <= hashed:
        count += 1
    return count


@inlined
def of_copy(half: int, copy: int, which: int) -> int:
    """Return half a digest of a content as that of one of its copies: 0 is the first, `which` is 1 or 2."""
    return (half + (mix(copy & _M32, which) << 29) + mix(which, copy & _M32)) & _M61


@jit
def hash_names(names: Names, feature: UInt32s, first: UInt32s, second: UInt32s) -> None:
    """Write two hashes of the name of each feature: numbers of names depend on what came before."""
    for at in range(feature.size):
        number = int64(feature[at])
        start = names.start[number]
        size = int64(names.size[number])
        one = mix(size, 1)
        other = mix(size, 2)
        for begin in range(0, size, 4):
            word = int64(0)
            for offset in range(begin, min(begin + 4, size)):
                word = (word << 8) | int64(names.text[start + offset])
            one = mix(one, word)
            other = mix(word, other)
        first[at] = one
        second[at] = other
