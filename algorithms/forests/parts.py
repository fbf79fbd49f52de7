"""The trees of forests in a few parts, each a pool of its own, so that kernels run side by side.

::

    trees      0 1 2 3 4 5 6 7 8 9
    part 0     0   2   4   6   8          part = tree mod parts
    part 1       1   3   5   7   9

How many parts there are follows from how many trees there are, never from threads: the arrays are the same with
any number of them.

A tree reads nothing of another, and parts write to no array of another: names count references for each part apart
(core/names.py). So it does not matter which part is first, nor in which thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from algorithms.core.arrays import Int64s
from algorithms.core.crew import Crew, Task
from algorithms.core.names import Interner, References
from algorithms.core.packing import Numbers
from algorithms.core.schema import Schema
from algorithms.core.stored import Arrays, flattened, rebuilt
from algorithms.forests.draws import MOST_PARTS

_MANY = 20  # trees
_TREES, _NAMES = "trees.", "names."

P = TypeVar("P", bound=Any)  # a pool


def parts_of(trees: int) -> int:
    """Return in how many parts the trees of a forest are.

    A part costs each batch some microseconds, which a few trees do not bring in again.
    """
    return min(trees, 2 if trees < _MANY else MOST_PARTS)


class Parts(Generic[P]):
    """The pools of the trees of any number of forests.

    Parameters
    ----------
    trees : int
        T, how many a forest has.
    threads : int
        How many run at the same time, from 1, where none is started.
    make : callable
        Makes an empty pool.
    each : int
        How many a pool has for each tree of a forest: two, where one grows beside the other.
    """

    def __init__(self, trees: int, threads: int, make: Callable[[], P], each: int = 1) -> None:
        self.trees = trees
        self.crew = Crew(threads)
        self.pools: list[P] = [make() for _ in range(parts_of(trees))]
        self._sizes = [len(range(part, trees, len(self.pools))) for part in range(len(self.pools))]
        self._each = each
        self.reserve(1)

    def __len__(self) -> int:
        """Return how many parts there are."""
        return len(self.pools)

    def size(self, part: int) -> int:
        """Return how many trees of a forest are in a part."""
        return self._sizes[part]

    def home(self, number: int) -> tuple[P, int]:
        """Return the pool of a tree, and its number there.

        Of those of each forest, tree t of key k has the number k T + t, or the two numbers from 2 (k T + t) on.
        """
        place, side = divmod(number, self._each)
        key, tree = divmod(place, self.trees)
        index, part = divmod(tree, len(self.pools))
        return self.pools[part], (key * self._sizes[part] + index) * self._each + side

    def numbers(self, part: int, local: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """Return the numbers that trees have in all forests which have these in their part."""
        place, side = np.divmod(local, self._each)
        key, index = np.divmod(place, self._sizes[part])
        numbers: npt.NDArray[np.integer] = (key * self.trees + index * len(self.pools) + part) * self._each + side
        return numbers

    def local(self, part: int, keys: Iterable[int]) -> list[int]:
        """Return the numbers that the trees of keys have in a part, for one key after the other."""
        size = self._sizes[part] * self._each
        return [number for key in keys for number in range(key * size, (key + 1) * size)]

    def reserve(self, keys: int) -> None:
        """Make room for the trees of so many keys."""
        for pool, size in zip(self.pools, self._sizes, strict=True):
            pool._reserve(keys * size * self._each)

    def share(self, names: Interner | None, kinds: Schema) -> None:
        """Let the trees have the names and the kinds of features of their forests."""
        if names is not None:
            names.share(len(self.pools))
        for holder, pool in enumerate(self.pools, 1):
            pool.names, pool._schema, pool._holder = names, kinds, holder

    def show_names(self) -> None:
        """Let kernels see the names as they are now."""
        for pool in self.pools:
            pool._show_names()

    def run(self, tasks: Sequence[Task]) -> None:
        """Run a task of each part, side by side."""
        self.crew.run(tasks)

    def pack(self, keys: Int64s, names: Numbers | None) -> None:
        """Give the trees of keys, which rise and are all that are alive, the numbers from 0 on: see `pack`."""
        for part, pool in enumerate(self.pools):
            pool.pack_trees(np.array(self.local(part, keys.tolist()), np.int32), names)

    # --- looking

    def tree(self, number: int) -> Any:
        """Return a tree."""
        pool, at = self.home(number)
        return pool.tree(at)

    @property
    def alive(self) -> int:
        """How many trees have learned something."""
        return sum(pool.alive for pool in self.pools)

    def living(self) -> npt.NDArray[np.integer]:
        """Return the numbers of the trees that have learned something."""
        own = [np.flatnonzero(pool._heads[:, pool._ALIVE]) for pool in self.pools]
        return np.concatenate([self.numbers(part, each) for part, each in enumerate(own)])

    @property
    def node_count(self) -> int:
        """How many nodes all trees have."""
        return sum(pool.node_count for pool in self.pools)

    @property
    def depth(self) -> int:
        """The depth of the deepest tree, 0 where none has split."""
        return max(pool.depth for pool in self.pools)

    # --- state

    def arrays(self) -> Arrays:
        """Return the arrays of all parts (not copied); those of part 0 begin with ``trees.0.``."""
        found: Arrays = {}
        for part, pool in enumerate(self.pools):
            begin = f"{_TREES}{part}."
            found |= {begin + name: each for name, each in pool.arrays().items() if not name.startswith(_NAMES)}
            if pool.names is not None:
                found |= flattened(pool.names.beside[part], f"{begin}names")
        return found

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], names: Interner | None, kinds: Schema) -> None:
        """Take over what `arrays` of parts of as many trees returned (not copied), beside names as restored."""
        like = References(*(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64)))
        for part, pool in enumerate(self.pools):
            begin = f"{_TREES}{part}."
            own = {name.removeprefix(begin): each for name, each in arrays.items() if name.startswith(begin)}
            pool.names = None  # they are the forests', and restored with these
            pool.restore(own)
            if names is not None:
                names.beside.append(rebuilt(like, own, "names"))
        self.share(names, kinds)

    def check(self) -> list[npt.NDArray[Any]]:
        """Raise AssertionError unless the parts are right; return the features that they hold on to."""
        found = []
        for part, pool in enumerate(self.pools):
            assert pool.alive == np.count_nonzero(pool._heads[:, pool._ALIVE])
            held = list(pool._check())
            if pool.names is not None:
                counted = pool.names.beside[part].references
                seen = np.concatenate([np.zeros(0, np.int64), *held]).astype(np.int64)
                assert np.array_equal(np.bincount(seen, minlength=len(counted)), counted), "held by another part"
            found += held
        return found
