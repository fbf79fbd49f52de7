"""What pools of trees that grow have in common: how batches meet their kernel, and how they become small again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from algorithms.core.arrays import Int32s, Int64s
from algorithms.core.free_list import EVER, USED
from algorithms.core.jit import direct
from algorithms.core.packing import Numbers
from algorithms.core.pool import A, P, Pool, S
from algorithms.trees.packing import packed_names


class GrowingPool(Pool[S, A, P]):
    """Any number of trees in one set of arrays, grown by one kernel call a batch.

    Parameters
    ----------
    state : NamedTuple
        A pool without trees.
    others
        As those of `Pool`.
    """

    _KERNEL: ClassVar[Callable[..., Any]]  # applies a batch
    _START = (0, False)
    rules: Any  # the settings, as kernels see them

    def __init__(self, state: S, **others: Any) -> None:
        super().__init__(state, **others)
        self._apply = direct(self._KERNEL)

    def _step(self, batch: Any, out: Any, *at: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._apply(self._state, self.rules, batch, out, *at)
        return found

    @property
    def held(self) -> tuple[int, int]:
        """Bytes of what is in use, and of all that ever was: about."""
        parts = list(self._held_in())
        used, ever = (sum(int(each[at]) * size for each, size in parts) for at in (USED, EVER))
        return used, ever

    @abstractmethod
    def _held_in(self) -> Iterable[tuple[Int64s, int]]:
        """Return the free list of each array that counts, and how many bytes a row takes, about."""

    def pack(self, keys: Int32s) -> None:
        """Give keys, which rise and are all that are alive, the numbers from 0 on, in arrays for no more.

        Names of features get other numbers, too. O(what is in use and what ever was).
        """
        names = None
        if self.names is not None:
            self.names, names = packed_names(self.names)
            self._schema.find(self.names)
        self.pack_trees(keys, names)
        self._show_names()

    def pack_trees(self, keys: Int32s, names: Numbers | None) -> None:
        """Do the same, where names of features have been given these numbers already."""
        self._state = self._packed(keys, names)
        self._apply = direct(self._KERNEL)  # the last call holds on to the arrays that it was given

    @abstractmethod
    def _packed(self, keys: Int32s, names: Numbers | None) -> S:
        """Return the trees of these keys in arrays without gaps."""
